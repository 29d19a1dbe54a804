"""Paper: plain text for people, aligned to the terminal; in colour if wanted and supported.

Recorded text is printed without control characters, so no stored value can drive a terminal.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from woodrat.merge.diff import FieldChange
    from woodrat.state.match import Match

BOLD, DIM, GREEN, YELLOW, RED = "1", "2", "32", "33", "31"
"""Styles a line can have."""

CELL_WIDTH_MIN = 8
"""A column is never cut to fewer characters than this."""
TEXT_WIDTH_MIN = 16
"""Text is not cut below this width as long as another part can move to a line below its row."""
COLUMNS_MIN = 2
"""Least number of columns in a row before others move below it."""
COLUMNS = 80
"""How wide a terminal is taken to be that does not say."""
GAP = "  "
SHORT_ID_CHARACTERS = 10
"""Characters of an id on a terminal after its prefix: almost always unique, and reads complete it."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
ID_PREFIXES = ("run_", "obs_", "src_", "int_", "ent_", "sch_")
"""Prefixes of ids that are shortened on terminals."""
FIXED_HEADS = " AT"
"""How heads of columns end that hold dates, which are cut last, as ids are."""

_MAY_BE_JSON = frozenset('-0123456789tfn"[{NI')


class Paper:
    """Where a table is printed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        terminal = stream.isatty()
        self.width = columns(stream) if terminal else None
        self.colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line."""
        text = clean(text)
        self._stream.write((f"\033[{style}m{text}\033[0m" if style and self.colour else text) + "\n")

    def id(self, id: str) -> str:
        """Return an id for display: whole in a pipe, a prefix on a terminal; other text unchanged."""
        whole = 4 + SHORT_ID_CHARACTERS
        if self.width is None or not id.startswith(ID_PREFIXES) or len(id) <= whole or not id[4:].isalnum():
            return id
        return id[:whole]

    def flush(self) -> None:
        """Flush the printed text."""
        self._stream.flush()

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]], styles: Sequence[str] = ()) -> None:
        """Print rows under their heads; on a terminal, cut to its width.

        On a terminal ids are shortened, and empty columns are omitted. If the rest does not fit, the last columns move
        to a line of their own below each row; then text is cut, and ids and dates last.
        """
        cells = [list(heads), *([clean(cell) for cell in row] for row in rows)]
        below: list[str] = []
        if self.width is None:
            widths = _widths(cells)
        else:
            cells[1:] = [[self.id(cell) for cell in row] for row in cells[1:]]
            said = [any(row[column] for row in cells[1:]) or not heads[column] for column in range(len(heads))]
            cells = [[cell for cell, counts in zip(row, said, strict=True) if counts] for row in cells]
            below = [""] * len(cells)
            widths = _fitted(cells, self.width, TEXT_WIDTH_MIN)
            while _whole(widths) > self.width and len(widths) > COLUMNS_MIN:
                below = [GAP.join(filter(None, (row.pop(), rest))) for row, rest in zip(cells, below, strict=True)]
                widths = _fitted(cells, self.width, TEXT_WIDTH_MIN)
            widths = _fitted(cells, self.width, CELL_WIDTH_MIN)
            while _whole(widths) > self.width and max(widths) > CELL_WIDTH_MIN:
                widths[widths.index(max(widths))] -= 1
        for number, row in enumerate(cells):
            padded = [_fit(cell, width) for cell, width in zip(row, widths, strict=True)]
            style = BOLD if number == 0 else styles[number - 1] if number <= len(styles) else ""
            self.line(GAP + GAP.join(padded).rstrip(), style)
            if below and number and below[number]:
                assert self.width is not None
                self.line(GAP * 2 + _fit(below[number], self.width - 2 * len(GAP)).rstrip(), DIM)


def columns(stream: TextIO) -> int:
    """Return the width of the terminal; `COLUMNS` takes precedence, as in the standard library."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isascii() and stated.isdigit() and int(stated):
        return int(stated)
    try:
        return os.get_terminal_size(stream.fileno()).columns or COLUMNS
    except (OSError, ValueError):
        return COLUMNS


def clean(text: str) -> str:
    """Return text with everything that is not printable written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else {"\n": "\\n", "\t": "\\t"}.get(c) or f"\\u{ord(c):04x}" for c in text)


def value(found: Any) -> str:
    """Return a JSON value for a cell: text bare unless that is ambiguous, the rest as JSON."""
    if isinstance(found, str) and found and found.strip() == found and not _is_json(found):
        return found
    import json

    return json.dumps(found, ensure_ascii=False)


def _is_json(text: str) -> bool:
    if text[0] not in _MAY_BE_JSON:
        return False
    import json

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def time(fixed: str | None) -> str:
    """Return a fixed-width moment in a readable form, such as `16 Nov 2026, 15:56 UTC`; other text unchanged."""
    if not fixed or len(fixed) < 17 or fixed[4] != "-" or not fixed.endswith("Z"):
        return fixed or ""
    return f"{int(fixed[8:10])} {MONTHS[int(fixed[5:7]) - 1]} {fixed[:4]}, {fixed[11:16]} UTC"


_COMPARISONS = {
    "lt": ("is below", "is not below"),
    "lte": ("is at most", "is above"),
    "gt": ("is above", "is not above"),
    "gte": ("is at least", "is below"),
    "eq": ("is", "is not"),
    "ne": ("is not", "is"),
    "in": ("is one of", "is none of"),
    "not_in": ("is none of", "is one of"),
    "matches": ("matches", "does not match"),
}
"""How each operator reads when it holds, and when it does not."""


def comparison(actual: Any, op: str, operand: Any, holds: bool | None) -> str:
    """Return a comparison as words, such as `580 is below 600`."""
    if op == "exists":
        return "may exist" if holds is None else "exists" if holds is bool(operand) else "does not exist"
    if holds is None or op not in _COMPARISONS:
        return f"{value(actual)} {op} {value(operand)}: unknown"
    return f"{value(actual)} {_COMPARISONS[op][not holds]} {value(operand)}"


def fields(found: Any) -> str:
    """Return values by field for a cell."""
    return ", ".join(f"{name}={value(item)}" for name, item in found.items())


def changed(field: FieldChange) -> str:
    """Return one field before and after."""
    before = value(field.before) if field.had else "(nothing)"
    after = value(field.after) if field.has else "(nothing)"
    return f"{field.field}: {before} → {after}"


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(_width(row[column]) for row in cells) for column in range(len(cells[0]))]


def _fitted(cells: Sequence[Sequence[str]], width: int, least: int) -> list[int]:
    """Return column widths with text columns cut to fit, none of them below `least` characters."""
    widths = [min(column, width) for column in _widths(cells)]
    text = [
        column
        for column, head in enumerate(cells[0])
        if not head.endswith(FIXED_HEADS) and not any(row[column].startswith(ID_PREFIXES) for row in cells[1:])
    ]
    while _whole(widths) > width and text:
        widest = max(text, key=lambda column: widths[column])
        if widths[widest] <= least:
            break
        widths[widest] -= 1
    return widths


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * len(widths)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)


def _fit(text: str, width: int) -> str:
    size = _width(text)
    if size > width:
        # Cells can be as long as a prompt: examine only the characters that fit.
        text = text[: width - 1]
        while _width(text) > width - 1:
            text = text[:-1]
        text += "…"
        size = _width(text)
    return text + " " * (width - size)


def match_line(match: Match) -> str:
    """Return the match of a loose name in words."""
    return f"{match.asked} is {match.entity}, found by its {match.rule}"
