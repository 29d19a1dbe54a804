"""The overview: how far a log goes, how it has grown day by day, and the last checkpoint it must extend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.canon import moment
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.moments import NO_READ
from woodrat.log.checkpoint import Checkpoint
from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.engines.view import View

DAYS_MAX: Final = 366
"""How many days an overview goes back at most."""
_DAY_MICROS: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class DayCount(Record):
    """How many entries were recorded on one day."""

    day: str
    """The day, in UTC, such as `2026-11-16`."""
    entries: int
    """How many entries the log got."""


@dataclass(frozen=True, slots=True)
class Overview(Record):
    """How far the log goes and how it has grown."""

    position: int
    """Position of the last entry; −1 before the first."""
    recorded_at: str | None
    """When that was recorded; none before the first entry."""
    days: tuple[DayCount, ...]
    """How it has grown, day by day in UTC, up to and including today."""
    checkpoint: Checkpoint | None
    """The last signed checkpoint, which the log must extend; none without keys, or before the first was signed."""


def overview(context: Context, days: object, checkpoint: Checkpoint | None) -> Overview:
    """Return how the log has grown; a day costs a few look-ups, whatever it holds."""
    if type(days) is not int or not 1 <= days <= DAYS_MAX:
        problem = f"expected a whole number from 1 to {DAYS_MAX}, got {shown(days)}"
        raise Refused([Fault("days", problem, "Send how many days to count.")], NO_READ)
    today = moment.to_micros(context.clock.now()) // _DAY_MICROS
    with context.engine.view(context.tenant) as view:
        head = view.head().position
        last = view.entry(head) if head >= 0 else None
        ends = _positions(view, today - days, today, head)
    counts = (
        DayCount(moment.from_micros(day * _DAY_MICROS)[:10], after - before)
        for day, before, after in zip(range(today - days + 1, today + 1), ends, ends[1:], strict=False)
    )
    return Overview(head, None if last is None else last.recorded_at, tuple(counts), checkpoint)


def _positions(view: View, first: int, last: int, head: int) -> list[int]:
    """Return the position at the end of each day; of days on which nothing came only the first and the last is asked.

    What was recorded later than today, by a clock that was ahead, counts as of today.
    """

    def at(day: int) -> int:
        return view.position_at(moment.from_micros((day + 1) * _DAY_MICROS - 1)) if day < last else head

    def between(low: int, at_low: int, high: int, at_high: int) -> list[int]:
        """Return the positions at the ends of the days after `low` and before `high`."""
        if high - low <= 1:
            return []
        if at_low == at_high:
            return [at_low] * (high - low - 1)
        middle = (low + high) // 2
        at_middle = at(middle)
        return [*between(low, at_low, middle, at_middle), at_middle, *between(middle, at_middle, high, at_high)]

    at_first = at(first)
    return [at_first, *between(first, at_first, last, head), head]
