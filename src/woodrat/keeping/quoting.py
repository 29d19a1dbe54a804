"""Quoting: which texts belong to what is erased, and where they are quoted.

A text that some surviving observation states in so many words is not theirs alone (a city, a status), and is left
where it stands. Texts shorter than `TEXT_CHARACTERS_MIN` and numbers with fewer digits than `DIGITS_MIN` would be
found everywhere; they are looked for only where a name says whose they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.log.erasure import ERASED
from woodrat.runs.bounding import REDACTED

TEXT_CHARACTERS_MIN: Final = 4
"""Shortest text that is looked for."""
DIGITS_MIN: Final = 6
"""Fewest digits of a number that is looked for."""
FEW: Final = 64
"""Up to this many texts are looked for one by one."""

_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NEVER: Final = re.compile("(?!)")
_NOTHING_LONGER: Final = (_NEVER, _NEVER)
_LONGER_REF: Final = (_NEVER, re.compile(r"\w"))
_LONGER_NUMBER: Final = (re.compile(r"[0-9]\.?$"), re.compile(r"\.?[0-9]"))
_PREFIX: Final = 3  # the shortest reference, such as a/b, has three characters
_OURS: Final = frozenset({ERASED, REDACTED})


def leaves(value: Json) -> Iterator[str]:
    """Yield every text in a value at any depth, and every number as it is spelled."""
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
    """Yield what of a value could be looked for: texts at any depth, keys of objects left out, and numbers."""
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
    """Return whether a text is long enough to be looked for by itself."""
    if text in _OURS:
        return False
    if _NUMBER.fullmatch(text):
        return sum(character.isdigit() for character in text) >= DIGITS_MIN
    return len(text) >= TEXT_CHARACTERS_MIN


class Quoted:
    """Texts to be looked for: values wherever they stand, references and numbers unless they go on."""

    def __init__(self, values: Iterable[str], refs: Iterable[str] = ()) -> None:
        spelled = dict.fromkeys((spelling for text in values for spelling in _spellings(text)), _NOTHING_LONGER)
        spelled |= dict.fromkeys((spelling for text in refs for spelling in _spellings(text)), _LONGER_REF)
        self._longer = {text: _LONGER_NUMBER if _NUMBER.fullmatch(text) else longer for text, longer in spelled.items()}
        """By spelling, what shows that it stands there as part of something longer: before it and behind it."""
        # The longest first, so that replacing a part of a text does not hide the whole of it.
        self._longest = sorted(spelled, key=lambda text: (-len(text), text))
        self._in_bodies = _Finder({form.spell_text(text)[1:-1] for text in spelled})
        self._in_contents = _Finder({text.encode() for text in spelled})

    def __bool__(self) -> bool:
        return bool(self._longer)

    @property
    def spellings(self) -> frozenset[bytes]:
        """Every spelling, as a file may hold it."""
        return self._in_bodies.sought | self._in_contents.sought

    def may_be_in(self, kind: str, body: bytes) -> bool:
        """Return whether the body of an entry may quote; wrongly true costs a second look."""
        return (self._in_contents if kind == "source" else self._in_bodies).finds(body)

    def is_in(self, text: str) -> bool:
        """Return whether a text quotes."""
        return any(self._places(text, spelling) for spelling in self._longest if spelling in text)

    def _places(self, text: str, spelling: str) -> list[int]:
        """Return where a spelling stands in a text, each place once."""
        (before, behind), found, start = self._longer[spelling], [], text.find(spelling)
        while start >= 0:
            end = start + len(spelling)
            if before.search(text[max(0, start - 2) : start]) or behind.match(text[end : end + 2]):
                start = text.find(spelling, start + 1)
            else:
                found.append(start)
                start = text.find(spelling, end)
        return found

    def is_number(self, value: float) -> bool:
        """Return whether a number is one of those looked for."""
        return form.serialise(value).decode() in self._longer

    def taken_out(self, text: str) -> str:
        """Return a text with `[ERASED]` in every place where it quotes."""
        for spelling in self._longest:
            for start in reversed(self._places(text, spelling) if spelling in text else ()):
                text = text[:start] + ERASED + text[start + len(spelling) :]
        return text


class _Finder:
    """Looks for any of some bytes."""

    def __init__(self, sought: Iterable[bytes]) -> None:
        self.sought = frozenset(sought)
        self._by_prefix: dict[bytes, list[bytes]] = {}
        if len(self.sought) > FEW:
            for data in self.sought:
                self._by_prefix.setdefault(data[:_PREFIX], []).append(data)

    def finds(self, data: bytes) -> bool:
        """Return whether any of them is in the data; with many of them the time depends on the data alone."""
        if not self._by_prefix:
            return any(sought in data for sought in self.sought)
        prefixes = self._by_prefix
        for start in range(len(data) - _PREFIX + 1):
            found = prefixes.get(data[start : start + _PREFIX])
            if found is not None and any(data.startswith(sought, start) for sought in found):
                return True
        return False


def _spellings(text: str) -> set[str]:
    """Return how a text may stand inside another: as it is, or as JSON that was kept as text spells it."""
    return {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
