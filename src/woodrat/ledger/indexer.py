"""The indexer: brings everything that trails the log up to date, a bounded step at a time.

Each is a `Trailing`, which says how far it goes and takes a step. Whoever knows the rooms lists them all
(`api/trailing_indexes.py`); `doctor` and `/metrics` show them.

- The state index has rows for every entity (`state_rows.py` says which).
- Anything else, such as the vectors of an embedder, is a `Trailing` of its own: a `position` that reads how far it goes
  from a view (`index.covered`, where `index.cover` noted it), and a `go_on` that takes in about so many entries more.
  `go_on` works in a view and writes in a short transaction that does nothing if the position is another by then, or if
  anything was erased since the view (`erasures.erased_since`): what it read may be gone.

The one that lacks most goes on first, so that nothing waits for long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from woodrat.errors import Unavailable
from woodrat.ledger import state_index, state_steps
from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.engines.view import View

STEP_ENTRIES: Final = 1_000
"""About how many entries one step takes in."""


def _always(_: Context) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Trailing:
    """Something that trails the log."""

    name: str
    """What it is, as people see it."""
    position: Callable[[View], int]
    """Returns how far it goes."""
    go_on: Callable[[Context, int], bool]
    """Takes in about so many entries more; returns whether it went on. It raises `Unavailable` if it cannot write."""
    is_wanted: Callable[[Context], bool] = _always
    """Whether to bring it on before somebody asks: what is held in memory as a whole waits for a first question."""


def _state_goes_on(context: Context, entries_max: int) -> bool:
    return state_steps.go_on(context.engine, context.tenant, context.policies, entries_max)


STATE: Final = Trailing(state_index.NAME, state_index.reached, _state_goes_on)
"""The state index."""


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
        if one.lacking and _goes_on(by_name[one.name], context, entries_max):
            with context.engine.view(context.tenant) as view:
                return max(after.lacking for after in positions(view, indexes))
    return 0


def _goes_on(index: Trailing, context: Context, entries_max: int) -> bool:
    try:
        return index.go_on(context, entries_max)
    except Unavailable:
        return False
