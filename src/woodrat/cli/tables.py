"""Paper: plain text for people, aligned to the terminal; colour only where it is wanted and shown.

Whatever a record says is printed without control characters, so no stored value can drive a terminal.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from woodrat.merge.diff import FieldChange

BOLD, DIM, GREEN, YELLOW, RED = "1", "2", "32", "33", "31"
"""Styles a line can have."""

CELL_WIDTH_MIN = 8
"""A column is never cut to fewer characters than this."""
COLUMNS = 80
"""How wide a terminal is taken to be that does not say."""
GAP = "  "
ID_HEADS = frozenset({"ID", "OBSERVATION"})
"""Heads of columns that hold ids."""

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

    def flush(self) -> None:
        """Show what was printed so far."""
        self._stream.flush()

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]], styles: Sequence[str] = ()) -> None:
        """Print rows under their heads, cut to fit the terminal.

        Ids are there to be copied and are never cut: where they stand last and do not fit, they go on lines of their
        own. Then the widest columns are cut.
        """
        cells = [list(heads), *([clean(cell) for cell in row] for row in rows)]
        below: list[str] = []
        widths = _widths(cells)
        if self.width is not None and _whole(widths) > self.width:
            if heads[-1] in ID_HEADS:
                below = [row.pop() for row in cells]
                widths = _widths(cells)
            widths = [min(width, self.width) for width in widths]
            while _whole(widths) > self.width and max(widths) > CELL_WIDTH_MIN:
                widths[widths.index(max(widths))] -= 1
        for number, row in enumerate(cells):
            padded = [_fit(cell, width) for cell, width in zip(row, widths, strict=True)]
            style = BOLD if number == 0 else styles[number - 1] if number <= len(styles) else ""
            self.line(GAP + GAP.join(padded).rstrip(), style)
            if below and number:
                self.line(GAP * 2 + below[number], DIM)


def columns(stream: TextIO) -> int:
    """Return how wide a terminal is; `COLUMNS` has the last word, as in the standard library."""
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
    """Return a JSON value for a cell: text bare unless it could be taken for something else, the rest as JSON."""
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
    """Return a fixed-width moment without the zeros that say nothing."""
    return "" if fixed is None else fixed.replace(".000000Z", "Z")


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
        # Cells can be as long as a prompt: what is looked at one by one is no more than what can show.
        text = text[: width - 1]
        while _width(text) > width - 1:
            text = text[:-1]
        text += "…"
        size = _width(text)
    return text + " " * (width - size)
