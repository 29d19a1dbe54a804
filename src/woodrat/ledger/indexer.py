"""The indexer: brings everything that trails the log up to date, a bounded step at a time.

What trails the log is listed by whoever knows the rooms (`api/trailing_indexes.py`). The one that lacks most goes on
first. Each step works its rows out in a view and writes them in a short transaction, so that nobody waits for it long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.engines.port import View

STEP_ENTRIES: Final = 1_000
"""About how many entries one step takes in."""


@dataclass(frozen=True, slots=True)
class Trailing:
    """Something that trails the log."""

    name: str
    """What it is, as people see it."""
    position: Callable[[View], int]
    """Returns how far it goes."""
    go_on: Callable[[Context, int], bool]
    """Takes in about so many entries more; returns whether it went on."""


@dataclass(frozen=True, slots=True)
class IndexPosition(Record):
    """How far something that trails the log goes."""

    name: str
    """What it is."""
    position: int
    """The last position it knows; -1 before its first use."""
    lacking: int
    """How many entries came since."""


def positions(view: View, indexes: Sequence[Trailing]) -> tuple[IndexPosition, ...]:
    """Return how far each index goes."""
    head = view.head().position
    found = ((index.name, index.position(view)) for index in indexes)
    return tuple(IndexPosition(name, position, max(head - position, 0)) for name, position in found)


def go_on(context: Context, indexes: Sequence[Trailing], entries_max: int = STEP_ENTRIES) -> int:
    """Take one step with the index that lacks most; return how many entries the one that lacks most lacks then.

    One that cannot go on now leaves its turn to the next.
    """
    with context.engine.view(context.tenant) as view:
        behind = sorted(positions(view, indexes), key=lambda one: -one.lacking)
    by_name = {index.name: index for index in indexes}
    for one in behind:
        if one.lacking and by_name[one.name].go_on(context, entries_max):
            with context.engine.view(context.tenant) as view:
                return max(after.lacking for after in positions(view, indexes))
    return 0
