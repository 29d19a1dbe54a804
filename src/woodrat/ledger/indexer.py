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
    go_on: Callable[[Context, int], object]
    """Takes in about so many entries more."""


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
    """Take one step with the index that lacks most; return how many entries the one that lacks most lacks then."""
    with context.engine.view(context.tenant) as view:
        before = positions(view, indexes)
    behind = max(before, key=lambda one: one.lacking, default=None)
    if behind is None or not behind.lacking:
        return 0
    next(index for index in indexes if index.name == behind.name).go_on(context, entries_max)
    with context.engine.view(context.tenant) as view:
        after = positions(view, indexes)
    if after == before:
        return 0  # nothing can be written now, or somebody else goes on with it
    return max(one.lacking for one in after)
