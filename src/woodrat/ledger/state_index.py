"""State indexes: rows that states ask for, kept in ordered indexes which trail the log, and how far they go.

No write waits for them. Steps make them (`state_steps.py`), and how far each index goes is noted beside it. A row is
true from the end of the write that made it true to the end of the write that ended it, so the rows as of a position are
those of the last write that ended there or before. Whoever reads at a moment inside a write, or at one the rows have
not come to, folds what was said since and lays it over them (`Coverage`).

A new schema that changes what an index says of a type is taken in entity by entity. Meanwhile the rows of the type are
those before the write that brought it, and the type is folded from there on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.engines.port import BEFORE_ALL, Transaction, View
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

LAID_OVER_MAX: Final = 10_000
"""How many entries a read lays over the rows at most; when they are further behind, it does without them."""

NOTHING: Final = BEFORE_ALL - 1
"""Stands for the base of rows of which none are there yet."""

Place = tuple[str, bytes]
"""Where a row stands: its index and its key."""
Rows = Mapping[Place, bytes]
"""Rows of a fold: values by place."""


class Fold:
    """What is believed of a group under its smallest entity, for all indexes of a step."""

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


@dataclass(frozen=True, slots=True)
class StateIndex:
    """Which rows a fold has in some ordered indexes."""

    name: str
    """What it is called; under it the engine notes how far it goes."""
    indexes: tuple[str, ...]
    """The ordered indexes its rows stand in."""
    rows: Callable[[Fold], Rows]
    """Returns the rows of a fold that exists."""
    alike: Callable[[Rules, Rules], bool]
    """Returns whether folds of a type have the same rows under two sets of rules."""
    keep: Callable[[Transaction, Mapping[Ref, Rows], Progress], None] | None = None
    """Puts down what entities have now in place of what they had, and how far that goes.

    It is for an index that speaks of the present alone. Without it rows begin and end, and the past can be asked about.
    """
    lists_absent: bool = False
    """Whether a fold also has rows for indexed fields that it has no value of."""
    same: Callable[[Fold, Fold], bool] | None = None
    """Returns whether two folds of one lone entity, both shown, have the same rows for certain, in less time."""


# How far rows go


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the rows of an index go."""

    position: int = BEFORE_ALL
    """They are true for the log through this position, the end of a write."""
    base: int = BEFORE_ALL
    """Those of types in `filling` are true for the log through this one: before the write with the new schemas.

    It is `NOTHING` while an index of the present is made for the first time: then there are none of them.
    """
    filling: tuple[tuple[str, str], ...] = ()
    """Types with a new schema that is being taken in, each with the last key that is done; empty before the first."""

    def covers(self, type: str, position: int) -> bool:
        """Return whether the rows of a type are known as of a position, not after the one they go to."""
        return not self.filling or position <= self.base or all(type != name for name, _ in self.filling)

    def to_bytes(self) -> bytes:
        """Return the progress as it is noted."""
        if not self.filling:
            return str(self.position).encode()
        filling = [list(each) for each in self.filling]
        return form.serialise({"base": self.base, "filling": filling, "position": self.position})


def progress_of(view: View, name: str) -> Progress:
    """Return how far the rows of an index go."""
    noted = view.meta(name)
    if noted is None:
        return Progress()
    try:
        stated: Any = form.decode(noted)
        if type(stated) is int:
            return Progress(stated)
        pairs = tuple((type, key) for type, key in stated["filling"])
        found = Progress(stated["position"], stated["base"], pairs)
    except (Refused, KeyError, TypeError, ValueError) as error:
        raise garbled(f"How far the index {name} goes") from error
    texts = [text for pair in pairs for text in pair]
    if any(type(number) is not int for number in (found.position, found.base)) or not all(
        isinstance(text, str) for text in texts
    ):
        raise garbled(f"How far the index {name} goes")
    return found


def reached(view: View, name: str) -> int:
    """Return the last position that an index is wholly made for, as people see it."""
    known = progress_of(view, name)
    return max(known.base, BEFORE_ALL) if known.filling else known.position


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
        self._known, self._base = known, base
        self.through: int | None = None if base == known.position else base
        """The position to scan at; none for the present."""
        self.laid_over: set[Ref] = set()
        """Entities of which the rows are not to be believed."""
        self.roots: list[Ref] = []
        """The folds that these are in at the as-of; each is to be looked at instead."""
        self._new_types: set[str] = set()
        if base < position:
            for entry in view.entries(base, position, {"schema"}):
                if entry.body is not None:
                    self._new_types.add(schema.stored(entry.body).type)
            spoken = touched(view.touched(base, position))
            before = Reader(view, AsOf(base), reader.policies)
            self.laid_over = {member for ref in spoken for member in (*before.group(ref), *reader.group(ref))}
            roots = {reader.group(ref)[0] for ref in self.laid_over}
            self.roots = sorted(roots, key=lambda ref: (ref.type.encode(), ref.key.encode()))

    def covers(self, type: str) -> bool:
        """Return whether the rows of a type are known."""
        return type not in self._new_types and self._known.covers(type, self._base)

    def uncovered(self) -> Collection[str]:
        """Return the types whose rows are not known."""
        filling = (type for type, _ in self._known.filling)
        return {*self._new_types, *(type for type in filling if not self._known.covers(type, self._base))}


def coverage(reader: Reader, index: StateIndex) -> Coverage | None:
    """Return what the rows of an index cover of what a reader is asked; none when they are no help."""
    if reader.asof.effective is not None:
        return None  # rows do not say when what they say was true
    view, position = reader.view, reader.asof.position
    known = progress_of(view, index.name)
    if known.position == BEFORE_ALL or position == BEFORE_ALL:
        return None
    base = known.position if position >= known.position else WriteEnds(view).floor(position)
    return None if base == BEFORE_ALL or position - base > LAID_OVER_MAX else Coverage(reader, known, base)


def rows_of(indexes: Iterable[StateIndex], fold: Fold) -> dict[Place, bytes]:
    """Return the rows that a fold has in some indexes."""
    found: dict[Place, bytes] = {}
    if fold.state.exists:
        for index in indexes:
            found.update(index.rows(fold))
    return found
