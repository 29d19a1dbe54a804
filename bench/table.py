"""Table: figures as lines for people, and as JSON for programs."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from statistics import fmean
from typing import Any

import apsw

from bench.records import Records
from bench.rows import Row
from bench.stage import Scale
from bench.timing import Figure

_MARKS = {True: "met", False: "missed", None: "-"}


class Table:
    """Lines of one width, which can be printed as the figures come."""

    def __init__(self, rows: Iterable[Row], scale: Scale) -> None:
        self._scale = scale
        self._width = max(len(row.heading(scale)) for row in rows)

    def header(self) -> str:
        """Return the names of the columns."""
        return self._line("", "value", "goal", "ours", "against", "")

    def line(self, row: Row, figure: Figure) -> str:
        """Return a measured row."""
        unit = "×" if row.is_ratio else f" {figure.unit}"
        return self._line(
            row.heading(self._scale),
            _short(row.value(figure)) + unit,
            "-" if row.goal is None else f"{row.goal:,g}{unit}",
            quantity(figure.ours, figure.unit),
            quantity(figure.against, figure.unit),
            _MARKS[row.met(figure)],
        )

    def _line(self, title: str, value: str, goal: str, ours: str, against: str, mark: str) -> str:
        return f"{title:{self._width}}  {value:>8}  {goal:>7}  {ours:>9}  {against:>9}  {mark}".rstrip()


def footer() -> str:
    """Return what holds for all lines."""
    rows = Records("footer").batch(range(1_000)).rows()
    size = fmean(len(body) for (body,) in rows)
    return (
        "Medians of both sides in turns, on the same bytes, in WAL mode with synchronous=FULL. "
        f"Bodies of {size:.0f} bytes; SQLite {apsw.sqlite_lib_version()}, Python {platform.python_version()}."
    )


def to_json(row: Row, figure: Figure, scale: Scale) -> dict[str, Any]:
    """Return a measured row as plain JSON."""
    return {
        "name": row.name,
        "title": row.heading(scale),
        "value": row.value(figure),
        "goal": row.goal,
        "met": row.met(figure),
        "ours": figure.ours,
        "against": figure.against,
        "unit": figure.unit,
        "turns": figure.turns,
    }


def quantity(number: float, unit: str) -> str:
    """Return a number that is easy to read, in the unit that suits its size."""
    if unit == "µs":
        for larger in ("ms", "s"):
            if number < 1_000:
                break
            number, unit = number / 1_000, larger
    return f"{_short(number)} {unit}"


def _short(number: float) -> str:
    return f"{number:,.{2 if number < 10 else 1 if number < 100 else 0}f}"
