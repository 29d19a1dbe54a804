"""Tokens: the words of search, cut by pinned rules.

Nothing here uses the machine's Unicode tables, which differ between versions of Python: letters A to Z are lowered,
every other character is unchanged, and separators are listed by code point. `docs/formats/search.md` is the
specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache
from typing import Final

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.state.match import fold

TOKEN_CHARACTERS_MAX: Final = 64
"""Longest token; the rest of a longer word is ignored, in queries and in values."""
TOKENS_MAX: Final = 10_000
"""Most distinct tokens of one entity: those of its keys come first, then its fields by name."""

LETTERS_FROM: Final = 0xC0
"""From this code point on everything is part of a word unless it is listed as a separator."""

SEPARATORS: Final = (
    (0x00D7, 0x00D7),  # multiplication sign
    (0x00F7, 0x00F7),  # division sign
    (0x02C2, 0x02C5),  # arrowheads
    (0x02D2, 0x02DF),  # tone and spacing marks
    (0x037E, 0x037E),  # Greek question mark
    (0x0387, 0x0387),  # Greek ano teleia
    (0x055A, 0x055F),  # Armenian punctuation
    (0x0589, 0x058A),  # Armenian full stop, hyphen
    (0x05BE, 0x05BE),  # Hebrew maqaf
    (0x05C0, 0x05C0),  # Hebrew paseq
    (0x05C3, 0x05C3),  # Hebrew sof pasuq
    (0x05F3, 0x05F4),  # Hebrew geresh, gershayim
    (0x0609, 0x060D),  # Arabic per mille, comma
    (0x061B, 0x061F),  # Arabic semicolon, question mark
    (0x066A, 0x066D),  # Arabic per cent, separators
    (0x06D4, 0x06D4),  # Arabic full stop
    (0x0964, 0x0965),  # Devanagari danda
    (0x0E3F, 0x0E3F),  # baht sign
    (0x0E4F, 0x0E4F),  # Thai fongman
    (0x0E5A, 0x0E5B),  # Thai angkhankhu, khomut
    (0x104A, 0x104F),  # Myanmar section marks
    (0x10FB, 0x10FB),  # Georgian paragraph separator
    (0x1360, 0x1368),  # Ethiopic punctuation
    (0x1680, 0x1680),  # Ogham space
    (0x17D4, 0x17DA),  # Khmer punctuation
    (0x1800, 0x180A),  # Mongolian punctuation
    (0x2000, 0x206F),  # spaces, dashes, quotation marks, joiners
    (0x20A0, 0x20CF),  # currency signs
    (0x2190, 0x23FF),  # arrows, mathematical and technical signs
    (0x2500, 0x25FF),  # lines, blocks, geometric shapes
    (0x27C0, 0x27FF),  # further mathematical signs and arrows
    (0x2900, 0x2BFF),  # further arrows and mathematical signs
    (0x2E00, 0x2E7F),  # supplemental punctuation
    (0x3000, 0x3004),  # ideographic space, comma, full stop
    (0x3008, 0x3020),  # East Asian brackets
    (0x3030, 0x3030),  # wavy dash
    (0x303D, 0x303D),  # part alternation mark
    (0x30A0, 0x30A0),  # katakana double hyphen
    (0x30FB, 0x30FB),  # katakana middle dot
    (0xD800, 0xDFFF),  # surrogates, which are no characters
    (0xFE10, 0xFE1F),  # vertical punctuation
    (0xFE30, 0xFE6F),  # compatibility and small punctuation
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFF01, 0xFF0F),  # full-width punctuation
    (0xFF1A, 0xFF20),
    (0xFF3B, 0xFF40),
    (0xFF5B, 0xFF65),
    (0xFFE0, 0xFFEE),  # full-width signs
    (0xFFF0, 0xFFFF),  # specials
)
"""Separators above `LETTERS_FROM`, as first and last code point."""

SINGLE: Final = (
    (0x3041, 0x309F),  # hiragana
    (0x30A1, 0x30FA),  # katakana
    (0x30FC, 0x30FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
"""Characters of scripts written without spaces between words: each is a separate token."""

_SHORT: Final = 128
"""Longest text whose tokens are cached."""
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def _gaps(taken: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges from `LETTERS_FROM` up that none of the given ones takes."""
    start = LETTERS_FROM
    for first, last in sorted(taken):
        if start < first:
            yield start, first - 1
        start = last + 1
    yield start, 0x10FFFF


def _set(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


_TOKEN = re.compile(f"[{_set(SINGLE)}]|[a-z0-9{_set(_gaps(SEPARATORS + SINGLE))}]+")

Words = Mapping[str, tuple[str, ...]]
"""The tokens of one entity, each with its fields, by name; a token only in the key has none."""


def tokens(text: str) -> list[str]:
    """Return the tokens of a text in order; a repeated word appears repeatedly."""
    return [found[:TOKEN_CHARACTERS_MAX] for found in _TOKEN.findall(lowered(text))]


@lru_cache(maxsize=4_096)
def _tokens_at_hand(text: str) -> tuple[str, ...]:
    """Return the tokens of a short text; cached, since many values repeat."""
    return tuple(tokens(text))


def spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the tokens of a text as `tokens` does, each with where its word begins and ends in the text."""
    return ((found[0][:TOKEN_CHARACTERS_MAX], found.start(), found.end()) for found in _TOKEN.finditer(lowered(text)))


def lowered(text: str) -> str:
    """Return a text with A to Z lowered and nothing else changed; its length stays."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


def whole(name: str) -> str:
    """Return the token of a whole key or identifying value, so that an exact match is a token.

    No other token holds NUL, so none is a prefix of it.
    """
    return f"\0{fold(name)}\0"


def texts(value: Json) -> Iterator[str]:
    """Yield every text in a value, at any depth, in order; keys of objects are not values."""
    waiting: list[Json] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            waiting.extend(reversed(item))
        elif isinstance(item, dict):
            waiting.extend(item[name] for name in sorted(item, reverse=True))


def words(
    members: Iterable[Ref], identifying: Iterable[str], fields: Mapping[str, Json], searchable: Set[str]
) -> Words:
    """Return the tokens of an entity: of its keys, of its identifying values as a whole, and of its text values.

    If a schema marks fields as `searchable`, only these count, otherwise all. Tokens beyond `TOKENS_MAX` are dropped.
    """
    found: dict[str, tuple[str, ...]] = {}
    for member in members:
        found[whole(member.key)] = ()
        for token in tokens(member.key):
            if len(found) < TOKENS_MAX:
                found.setdefault(token, ())
    found.update((whole(value), ()) for value in identifying)
    for name in sorted(fields):
        if searchable and name not in searchable:
            continue
        value, here = fields[name], (name,)
        for text in (value,) if isinstance(value, str) else texts(value):
            for token in _tokens_at_hand(text) if len(text) <= _SHORT else tokens(text):
                known = found.get(token)
                if known is None:
                    if len(found) < TOKENS_MAX:
                        found[token] = here
                elif known[-1:] != here:
                    found[token] = known + here
    return found


def matches(words: Words, wanted: Iterable[str]) -> frozenset[str] | None:
    """Return the fields that the wanted tokens match by prefix, or `None` when one of them matches no token."""
    hit: set[str] = set()
    for prefix in wanted:
        found = [fields for token, fields in words.items() if token.startswith(prefix)]
        if not found:
            return None
        hit.update(*found)
    return frozenset(hit)
