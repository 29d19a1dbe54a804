"""State index: how far the rows that states ask for go, and what a read adds where they do not reach.

No write waits for these rows. They trail the log: steps make them (`state_steps.py`), from what one table says
(`state_rows.py`). A row is true from the end of the write that made it true to the end of the write that ended it, so
the rows as of a position are those of the last write that ended there or before. Whoever reads at a moment inside a
write, or at one that the rows have not come to, folds the entities touched since and lays them over the rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.view import View
from woodrat.errors import Refused
from woodrat.ledger.read import Reader
from woodrat.ledger.transitions import touched
from woodrat.merge import snapshot
from woodrat.merge.fold import MergeState
from woodrat.merge.packing import garbled
from woodrat.merge.rules import Rules
from woodrat.records import dataclass
from woodrat.state import schema
from woodrat.state.asof import AsOf

NAME: Final = "state"
"""Under it the engine notes how far the rows go."""
LAID_OVER_MAX: Final = 10_000
"""How many entries a read lays over the rows at most; when they are further behind, it does without them."""

Place = tuple[str, bytes]
"""Where a row stands: its index and its key."""
Rows = Mapping[Place, bytes]
"""Rows of a fold: values by place."""


class Fold:
    """The state of a group under its smallest entity."""

    __slots__ = ("_values", "root", "rules", "state")

    def __init__(self, root: Ref, state: MergeState, rules: Rules) -> None:
        self.root, self.state, self.rules = root, state, rules
        self._values: dict[str, Json] | None = None

    @property
    def values(self) -> dict[str, Json]:
        """The values of all fields, none of what is deleted; worked out once."""
        if self._values is None:
            self._values = snapshot.fields_of(self.state, self.rules)
        return self._values

    @property
    def is_shown(self) -> bool:
        """Whether lists show it: it exists and is not deleted."""
        return self.state.exists and not self.state.deleted


# How far rows go


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the rows go."""

    position: int = BEFORE_ALL
    """They are true for the log through this position, the end of a write."""
    filling: tuple[tuple[str, str, int], ...] = ()
    """Types whose rows the schemas in the next write change, each with the last key that is done, empty before the
    first, and how many entities are done. Rows that begin or end with that write are there already for these."""

    def to_bytes(self) -> bytes:
        """Return the progress as it is noted."""
        filling = [list(each) for each in self.filling]
        return form.serialise({"filling": filling, "position": self.position})


def progress_of(view: View) -> Progress:
    """Return how far the rows go."""
    noted = view.meta(NAME)
    if noted is None:
        return Progress()
    try:
        stated: Any = form.decode(noted)
        found = Progress(stated["position"], tuple((type, key, done) for type, key, done in stated["filling"]))
    except (Refused, KeyError, TypeError, ValueError) as error:
        raise garbled("How far the state index goes") from error
    kinds = {tuple(map(type, each)) for each in found.filling}
    if type(found.position) is not int or not kinds <= {(str, str, int)}:
        raise garbled("How far the state index goes")
    return found


def reached(view: View) -> int:
    """Return the last position that the rows are true for."""
    return progress_of(view).position


def schemas_between(view: View, after: int, through: int) -> Sequence[tuple[int, str]]:
    """Return where new schemas came after a position and not after another, and of which types: rows lack them."""
    if after >= through:
        return ()
    entries = view.entries(after, through, {"schema"})
    return [(entry.position, schema.stored(entry.body).type) for entry in entries if entry.body is not None]


class WriteEnds:
    """Where the writes of a log end; what was looked up once is known for all positions of a write."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def bounds(self, position: int) -> tuple[int, int]:
        """Return the first and the last position of the write that a position belongs to."""
        at = bisect_right(self._firsts, position) - 1
        if at >= 0 and self._lasts[at] >= position:
            return self._firsts[at], self._lasts[at]
        row = next(self._view.rows(position - 1, position))
        opening = row if row.write == position else next(self._view.rows(row.write - 1, row.write))
        first, last = row.write, row.write + (opening.length or 1) - 1
        self.note(first, last)
        return first, last

    def note(self, first: int, last: int) -> None:
        """Remember a write."""
        at = bisect_left(self._firsts, first)
        if at == len(self._firsts) or self._firsts[at] != first:
            self._firsts.insert(at, first)
            self._lasts.insert(at, last)

    def end(self, position: int) -> int:
        """Return the last position of the write that a position belongs to."""
        return self.bounds(position)[1]

    def floor(self, position: int) -> int:
        """Return the last position not after one at which a write ends; the one before all if there is none."""
        if position == BEFORE_ALL:
            return position
        first, last = self.bounds(position)
        return position if position == last else first - 1


# Reading


class Coverage:
    """What the rows say at the as-of of a reader, and what is to be laid over them."""

    def __init__(self, reader: Reader, known: Progress, base: int) -> None:
        view, position = reader.view, reader.asof.position
        self.through: int | None = None if base == known.position and not known.filling else base
        """The position to scan at; none for the present."""
        self.laid_over: set[Ref] = set()
        """Entities whose rows are outdated."""
        self.roots: list[Ref] = []
        """The folds that these are in at the as-of; each is to be looked at instead."""
        self.uncovered: Collection[str] = {type for _, type in schemas_between(view, base, position)}
        """Types that have a new schema since: their rows are not known."""
        if base < position:
            spoken = touched(view.touched(base, position))
            before = Reader(view, AsOf(base), reader.policies)
            self.laid_over = {member for ref in spoken for member in (*before.group(ref), *reader.group(ref))}
            roots = {reader.group(ref)[0] for ref in self.laid_over}
            self.roots = sorted(roots, key=lambda ref: (ref.type.encode(), ref.key.encode()))

    def covers(self, type: str) -> bool:
        """Return whether the rows of a type are known."""
        return type not in self.uncovered


def coverage(reader: Reader) -> Coverage | None:
    """Return what the rows cover of what a reader is asked; none when they are no help."""
    if reader.asof.effective is not None:
        return None  # rows do not say when what they say was true
    view, position = reader.view, reader.asof.position
    known = progress_of(view)
    if known.position == BEFORE_ALL or position == BEFORE_ALL:
        return None
    base = known.position if position >= known.position else WriteEnds(view).floor(position)
    return None if base == BEFORE_ALL or position - base > LAID_OVER_MAX else Coverage(reader, known, base)
