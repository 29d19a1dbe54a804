"""Wording: recorded values as words of a line, and how many tokens a text is taken to cost.

Whatever was recorded may be hostile. A value never breaks its line, never hides anything, and never holds `<`, `>` or
the beginning of a citation, so nothing recorded can close a fence, pose as another message or cite an entry.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from woodrat.canon.form import Json

VALUE_CHARACTERS_MAX: Final = 400
"""How much of one value a line shows unless it shows everything."""

# By code point, since Unicode tables differ between Python versions: controls, line and paragraph separators, marks of
# direction, invisible characters and selectors that can carry hidden text, private planes' tags, and both brackets.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff<>]"
)
# A citation, and the marks some models take for the edge of an instruction.
_POSING = re.compile(r"\[(?=#|/?INST)", re.IGNORECASE)
_BARE = re.compile(r"[A-Za-z0-9_.:@/#+-]{1,200}")
_PIECES = re.compile(r"[A-Za-z]+|[0-9]+|[^\x00-\x7f]+|[^\sA-Za-z0-9]|\n")
_LETTERS, _DIGITS, _BYTES = 6, 3, 3


def safe(text: str) -> str:
    """Return text with everything that could break out of its line written as JSON escapes it."""
    return _POSING.sub(r"\\u005b", _UNSAFE.sub(_escaped, text))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def value(found: Json, characters_max: int | None = VALUE_CHARACTERS_MAX) -> str:
    """Return a value as JSON on one line, cut at a length; the cut says how much is left out."""
    whole = safe(json.dumps(found, ensure_ascii=False, sort_keys=True))
    if characters_max is None or len(whole) <= characters_max:
        return whole
    return f"{whole[:characters_max]}… ({len(whole) - characters_max} more characters)"


def name(found: str) -> str:
    """Return a name bare where nothing about it could be misread, else quoted."""
    return found if _BARE.fullmatch(found) and not _POSING.search(found) else value(found)


def values(found: Mapping[str, Json], characters_max: int | None = VALUE_CHARACTERS_MAX) -> str:
    """Return values by name."""
    return ", ".join(f"{name(key)}={value(item, characters_max)}" for key, item in found.items())


def time(fixed: str | None) -> str:
    """Return a moment without the zeros that say nothing."""
    return "an unknown time" if not fixed else safe(fixed.replace(".000000Z", "Z"))


def tokens(text: str) -> int:
    """Return how many tokens a text is taken to cost; pinned, so that a budget always cuts at the same line.

    Six letters or three digits in a row are one token, begun ones counted whole, as are three bytes in a row beyond
    ASCII; every other sign and every line break is one; blanks are free. Real tokenizers differ, mostly downwards.
    """
    count = 0
    for piece in _PIECES.findall(text):
        first = piece[0]
        if not first.isascii():
            count += -(-len(piece.encode("utf-8", "surrogatepass")) // _BYTES)
        elif first.isalpha():
            count += -(-len(piece) // _LETTERS)
        elif first.isdigit():
            count += -(-len(piece) // _DIGITS)
        else:
            count += 1
    return count
