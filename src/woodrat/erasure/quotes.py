"""Quotes: which texts belong to the erased data, and where they are quoted.

A text that some surviving observation states literally is not theirs alone (a city, a status), and stays. Texts shorter
than `TEXT_CHARACTERS_MIN` and numbers with fewer digits than `DIGITS_MIN` would be found everywhere; they are searched
for only where a name assigns them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, AnyStr, Final, Generic

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.log.erasure import ERASED
from woodrat.runs.values import REDACTED

TEXT_CHARACTERS_MIN: Final = 4
"""Shortest searchable text."""
DIGITS_MIN: Final = 6
"""Fewest digits of a searchable number."""
FEW: Final = 64
"""Up to this many texts are searched one by one."""

_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_TEXT, _NUMBER_KIND, _REF = "text", "number", "ref"
# Letters of scripts that put spaces between words, by code point: elsewhere a word has no end that could be seen.
_WORD: Final = re.compile("[0-9A-Za-z\u00c0-\u024f\u0370-\u052f]")
_DIGIT_BEFORE: Final = re.compile(r"[0-9]\.?$")
_DIGIT: Final = re.compile(r"\.?[0-9]")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[bfnrt])$")
_PREFIX: Final = 3  # the shortest reference, such as a/b, has three characters
_NAME: Final = re.compile(rb"(?:obs|src|ent|int|run)_[a-z2-7]{26}")
_OURS: Final = frozenset({ERASED, REDACTED})


def leaves(value: Json) -> Iterator[str]:
    """Yield every text in a value at any depth, and every number as written."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield form.serialise(item).decode()
        elif isinstance(item, Mapping):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)


def texts(value: Json) -> Iterator[str]:
    """Yield the parts of a value that can be searched for: texts at any depth, without keys of objects, and numbers."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str) or (isinstance(item, int | float) and not isinstance(item, bool)):
            yield from leaves(item)
        elif isinstance(item, Mapping):
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)


def is_long_enough(text: str) -> bool:
    """Return True if a text is long enough to be searched."""
    if text in _OURS:
        return False
    if _NUMBER.fullmatch(text):
        return sum(character.isdigit() for character in text) >= DIGITS_MIN
    return len(text) >= TEXT_CHARACTERS_MIN


class Quoted:
    """Search texts, matched as whole words: a name is not quoted by a longer one that begins with it."""

    def __init__(self, values: Iterable[str], refs: Iterable[str] = ()) -> None:
        self._kinds = {spelling: _kind(spelling) for text in values for spelling in _spellings(text)}
        self._kinds |= {spelling: _REF for text in refs for spelling in _spellings(text)}
        spelled = self._kinds.keys()
        self._in_texts = Finder(spelled)
        self._in_bodies = Finder(form.spell_text(text)[1:-1] for text in spelled)
        self._in_contents = Finder(text.encode() for text in spelled)

    def __bool__(self) -> bool:
        return bool(self._kinds)

    @property
    def texts(self) -> Iterable[str]:
        """The texts in every spelling."""
        return self._kinds.keys()

    def spellings(self, kept: Iterable[tuple[str, bytes]] = ()) -> frozenset[bytes]:
        """Return every spelling that a file may hold, except inside longer words of surviving data."""
        inside: set[bytes] = set()
        for kind, body in kept:
            finder = self._in_contents if kind == "source" else self._in_bodies
            inside.update(found for _, found in finder.places(body))
        return (self._in_bodies.sought | self._in_contents.sought) - inside

    def may_be_in(self, kind: str, body: bytes) -> bool:
        """Return True if the body of an entry may quote; a wrong True costs a second look."""
        return (self._in_contents if kind == "source" else self._in_bodies).finds(body)

    def is_in(self, text: str) -> bool:
        """Return True if a text quotes."""
        return any(self._is_whole(text, start, found) for start, found in self._in_texts.places(text))

    def is_number(self, value: float) -> bool:
        """Return True if a number is one of the searched ones."""
        return form.serialise(value).decode() in self._kinds

    def taken_out(self, text: str) -> str:
        """Return a text with `[ERASED]` in every place where it quotes; of several that begin there, the longest."""
        parts, end = [], 0
        for start, found in self._in_texts.places(text):
            if start >= end and self._is_whole(text, start, found):
                parts += [text[end:start], ERASED]
                end = start + len(found)
        return "".join([*parts, text[end:]])

    def _is_whole(self, text: str, start: int, spelling: str) -> bool:
        """Return True if a spelling at a place is not part of a longer word, number or reference."""
        end = start + len(spelling)
        kind = self._kinds[spelling]
        if kind == _NUMBER_KIND:
            return not _DIGIT_BEFORE.search(text[max(0, start - 2) : start]) and not _DIGIT.match(text, end)
        if _WORD.match(spelling[-1]) and _WORD.match(text, end):
            return False
        return kind == _REF or not _WORD.match(spelling[0]) or not _word_before(text, start)


class Finder(Generic[AnyStr]):
    """Searches for any of some texts, or bytes; with many of them the time depends on the searched data alone."""

    def __init__(self, sought: Iterable[AnyStr]) -> None:
        self.sought: frozenset[AnyStr] = frozenset(sought)
        # Grouped by prefix and length, the longest first: a lookup needs no search.
        self._by_prefix: dict[AnyStr, dict[int, set[AnyStr]]] = {}
        for item in sorted(self.sought, key=len, reverse=True):
            self._by_prefix.setdefault(item[:_PREFIX], {}).setdefault(len(item), set()).add(item)

    def finds(self, data: AnyStr) -> bool:
        """Return True if any of them occurs in the data."""
        if len(self.sought) <= FEW:
            return any(item in data for item in self.sought)
        return next(self.places(data), None) is not None

    def places(self, data: AnyStr) -> Iterator[tuple[int, AnyStr]]:
        """Yield the places of matches, in order; of matches at one place, the longest first."""
        if len(self.sought) <= FEW and not self.finds(data):
            return
        prefixes = self._by_prefix
        for start in range(len(data) - _PREFIX + 1):
            found = prefixes.get(data[start : start + _PREFIX])
            if found is not None:
                for length, items in found.items():
                    item = data[start : start + length]
                    if item in items:
                        yield start, item


def _kind(text: str) -> str:
    return _NUMBER_KIND if _NUMBER.fullmatch(text) else _TEXT


def _word_before(text: str, start: int) -> bool:
    """Return True if a letter or digit precedes a place; the n of a line break that JSON escapes does not count."""
    escape = _ESCAPE.search(text[max(0, start - 6) : start])
    if escape is None:
        return start > 0 and _WORD.match(text[start - 1]) is not None
    return escape[1] is not None and _WORD.match(chr(int(escape[1], 16))) is not None


def _spellings(text: str) -> set[str]:
    """Return the spellings of a text inside another: literal, or as JSON stored as text."""
    return {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}


def names_any(names: Collection[str]) -> Callable[[bytes], bool]:
    """Return a test whether a body names any of these short ids, also as part of the full name."""
    if len(names) <= FEW:
        spelled = [name.encode() for name in names]
        return lambda body: any(name in body for name in spelled)
    known = frozenset(name.encode() for name in names)
    return lambda body: any(name in known for name in _NAME.findall(body))


def unsearched(body: bytes) -> int:
    """Return the number of values in an entry that were cut when they were recorded, or are bytes that are no text."""
    return body.count(b'{"$truncated":{') + body.count(b'{"escaped":"')
