"""Comparison: derived rows, set side by side with those that were derived anew from the same log.

Both come in the order of their keys, table by table. A row that is missing, of which there is one too many, or that
says something else is named. Two things may lawfully differ. Merge state may be stored for other positions, after
schemas and erasures: then it has to be what the log folds to there. And of a large collection there may be rows for
other positions: then those as of each position have to be what the log gives.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge as merged
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from woodrat.canon.ids import Ref
from woodrat.engines.records import BEFORE_ALL, KEPT_EVERY, Mismatch, StoredPart, StoredState
from woodrat.engines.view import View
from woodrat.ledger.before import Before
from woodrat.ledger.read import Reader
from woodrat.merge import Policy, fold, packed_state
from woodrat.merge.fold import MergeState
from woodrat.merge.packing import UNREADABLE
from woodrat.merge.rules import Rules
from woodrat.state import observation
from woodrat.state.asof import AsOf
from woodrat.state.relation import SAME_AS

WRONG_MAX: Final = 100
"""How many mismatches are named."""
READERS_MAX: Final = 50
"""How many readers of the past are kept at hand."""

Row = tuple[Any, ...]


class Table(NamedTuple):
    """A table whose rows follow from the log without choice."""

    name: str
    """What it is called."""
    key: int
    """By how many columns a row is found."""
    columns: tuple[str, ...] = ()
    """The names of its columns; `type` and `key` name an entity, and `position` a place in the log."""
    missing: str = ""
    """What is wrong where a row is missing or says something else."""


TABLES: Final = (
    Table("entity", 2, ("type", "key", "digest", "first", "last", "until"), "entity does not have the entity"),
    Table("said", 1, ("position", "type", "key", "previous", "digest"), "said does not have the observation"),
    Table("naming", 2, ("target", "position"), "naming does not have what the observation names"),
    Table("late", 4, ("type", "key", "valid_from", "position"), "late does not have the observation"),
    Table("anchor", 3, ("type", "key", "position"), "anchor does not have the observation"),
    Table("node", 2, ("height", "place", "hash")),
)
"""Whatever is noted of entities, observations and the tree; states and ordered indexes are compared by themselves."""


def differing(found: Iterator[Row], right: Iterator[Row], key: int) -> Iterator[tuple[Row | None, Row | None]]:
    """Yield the rows that two tables have not alike, in pairs by their first columns; rows come in that order."""
    one, other = next(found, None), next(right, None)
    while one is not None or other is not None:
        if one == other:
            one, other = next(found, None), next(right, None)
        elif other is None or (one is not None and _order(one[:key]) < _order(other[:key])):
            yield one, None
            one = next(found, None)
        elif one is None or one[:key] != other[:key]:
            yield None, other
            other = next(right, None)
        else:
            yield one, other
            one, other = next(found, None), next(right, None)


def _order(key: Row) -> list[tuple[int, Any]]:
    """Return how a key sorts; in a damaged table values of any type stand beside each other, as SQLite sorts them."""
    return [(0 if v is None else 1 if isinstance(v, int | float) else 2 if isinstance(v, str) else 3, v) for v in key]


class Comparison:
    """Compares what one view holds with what another derived anew, both of one log; `wrong` is what was found."""

    def __init__(
        self, found: View, right: View, policies: Mapping[str, Policy], wrong_max: int | None = WRONG_MAX
    ) -> None:
        self._wrong_max = wrong_max
        self._found, self._right, self.policies = found, right, policies
        self._head = right.head().position
        self._joins_since = self._first_join()
        self._readers: dict[int, Reader] = {}
        self.wrong: list[Mismatch] = []
        """What does not agree."""

    def _amiss(self, part: str, position: object, entity: Ref | None, problem: str) -> None:
        if self._wrong_max is None or len(self.wrong) < self._wrong_max:
            place = position if isinstance(position, int) and position >= 0 else None
            self.wrong.append(Mismatch(part, place, entity, problem))

    def _surplus(self, table: str, count: int, position: int | None = None) -> None:
        if count:
            many = f"{count} rows" if count > 1 else "a row"
            self._amiss("surplus", position, None, f"{table} has {many} that the log does not speak of")

    # Entities, observations and the tree

    def table(self, table: Table) -> None:
        """Compare a table whose rows follow from the log without choice."""
        more, first = 0, None
        name, columns = table.name, table.columns
        found, right = self._found.derived(name), self._right.derived(name)
        for row, wanted in differing(found, right, table.key):
            values = dict(zip(columns, wanted or row or (), strict=True))
            entity = Ref(values["type"], values["key"]) if wanted is not None and "type" in values else None
            if name == "entity" and row is None and values["first"] < 0:
                continue  # nothing was said of it: it stands for a group, for which a state may have been kept or not
            if wanted is None and name == "entity":
                ref = Ref(values["type"], values["key"])
                self._amiss("surplus", None, ref, "entity has a row that the log does not speak of")
            elif wanted is None:
                if name != "anchor" or not self._is_old_anchor(values):
                    more, first = more + 1, values.get("position") if name == "said" and not more else first
            elif name == "node":
                height, place = values["height"], values["place"]
                state = "is not there" if row is None else "is another"
                problem = f"the kept root over {place << height} to {((place + 1) << height) - 1} {state}"
                self._amiss("tree", place << height, None, problem)
            elif name == "entity" and row is not None:
                self._entity(entity, row, wanted)
            else:
                part = "entity" if name == "entity" else "index"
                position = values["first"] if name == "entity" else values["position"]
                self._amiss(part, position, entity or self.about(position), table.missing)
        self._surplus(name, more, first)

    def _entity(self, ref: Ref | None, row: Row, wanted: Row) -> None:
        """Name what of an entity's row is not what its observations say."""
        _, _, digest, first, last, until = wanted
        if row[2] != digest:
            self._amiss("entity", None, ref, "the digest is another")
        if row[3] != first:
            self._amiss("entity", first, ref, f"the first observation is at {first}, not {row[3]}")
        if row[4] != last:
            self._amiss("index", last, ref, f"the last observation is at {last}, not {row[4]}")
        if row[5] != until:
            problem = f"what was said reaches until {until or 'nothing'}, not {row[5] or 'nothing'}"
            self._amiss("entity", None, ref, problem)

    def about(self, position: object) -> Ref | None:
        """Return the entity that the observation at a position speaks of."""
        kind, body = self._right.bodies([position]).get(position, ("", b"")) if isinstance(position, int) else ("", b"")
        return observation.stored(body).entity if kind == "observation" else None

    def _first_join(self) -> int:
        joins = self._right.entities(SAME_AS, self._head)
        firsts = [one.position for ref in joins for one in self._right.observations(ref.digest, -1, self._head)[:1]]
        return min(firsts, default=self._head + 1)

    def _is_old_anchor(self, values: Mapping[str, Any]) -> bool:
        """Return whether an anchor is one from before the first `same_as`: that may have been erased since."""
        position, ref = values["position"], (values["type"], values["key"])
        if not isinstance(position, int) or position >= self._joins_since or self.about(position) != ref:
            return False
        kind, body = self._right.bodies([position])[position]
        return kind == "observation" and not observation.stored(body).digest[7] % KEPT_EVERY

    # Ordered indexes

    def index(self, name: str, part: str = "index", ignored: Callable[[bytes], bool] | None = None) -> None:
        """Compare the rows of an ordered index, those that ended too."""
        for table, key in (("index_row", 1), ("index_past", 2)):
            more = 0
            found, right = self._found.derived(table, name), self._right.derived(table, name)
            for row, wanted in differing(found, right, key):
                if ignored is not None and ignored((wanted or row or ())[0]):
                    continue
                if wanted is None:
                    more += 1
                else:
                    since = wanted[1]
                    entry = next(self._right.rows(since - 1, since), None)
                    alone = entry is not None and entry.length == 1
                    problem = f"the index {name} does not have a row"
                    self._amiss(part, since, self.about(since) if alone else None, problem)
            self._surplus(table, more)

    # States

    def states(self, left_out: Collection[str] = ()) -> None:
        """Compare the merge states that are stored, present and along histories, and parts of collections.

        Entities of types that are left out are passed by.
        """
        odd = merged(self._odd_states(), self._odd("kept", 3), self._odd("element", 5), key=_order)
        for (type, key), _ in groupby(odd):
            if isinstance(type, str) and isinstance(key, str) and type not in left_out:
                self._check(Ref(type, key))

    def _odd_states(self) -> Iterator[tuple[Any, Any]]:
        """Yield the entities whose present state may be wrong; one that is not there is folded when it is read."""
        for row, right in differing(self._found.derived("state"), self._right.derived("state"), 2):
            if row is None or row[2:] == (None, None):
                continue
            # The right state stands where it was last touched, and is true from there on.
            numbers = right is not None and isinstance(row[2], int) and isinstance(right[2], int)
            if right is None or row[3] != right[3] or not numbers or not right[2] <= row[2] <= self._head:
                yield row[0], row[1]

    def _odd(self, table: str, key: int) -> Iterator[tuple[Any, Any]]:
        """Yield the entities of which rows of a table differ; a state that is missing along a history does no harm."""
        for row, right in differing(self._found.derived(table), self._right.derived(table), key):
            if row is not None:
                yield row[0], row[1]
            elif right is not None and table == "element":
                yield right[0], right[1]

    def _check(self, ref: Ref) -> None:
        """Compare all states of an entity, and the parts of its collections, with what the log folds to."""
        try:
            self._follow(ref, *self._found.states_of(ref))
        except UNREADABLE as error:
            problem = f"what is kept of it cannot be read ({type(error).__name__}: {error})"
            self._amiss("state", None, ref, problem)

    def _follow(self, ref: Ref, states: Sequence[StoredState], rows: Sequence[StoredPart]) -> None:
        stored: dict[int, list[StoredState]] = {}
        for one in states:
            if (one.position is None) != (one.packed is None):
                self._amiss("state", None, ref, "a state without a position, or a position without a state")
            elif one.position is not None:
                stored.setdefault(one.position, []).append(one)
        parts = _Parts(rows)
        said = [one.position for one in self._right.observations(ref.digest, BEFORE_ALL, self._head)]
        state: MergeState | None = None
        members: tuple[Ref, ...] = ()
        rules: Rules | None = None
        at = BEFORE_ALL
        for position in sorted({*stored, *parts.positions}):
            reader = self._reader(position)
            group, now = reader.group(ref), reader.rules(ref.type)
            if state is None or group != members or now is not rules:
                state = self._whole(group, now, position)
            else:
                state = self._further(state, group, now, at, position)
            members, rules, at = group, now, position
            if (amiss := parts.amiss(state, position)) is not None:
                self._amiss("element", position, ref, _wording(*amiss))
            last = said[count - 1] if (count := bisect_right(said, position)) else BEFORE_ALL
            packed = packed_state.pack(state, now, apart=True)
            for one in stored.get(position, ()):
                along = one.until is not None or one.last is not None
                if one.packed != packed or (along and (one.last, one.until) != (last, state.until)):
                    problem = f"the merge state kept for position {position} is not what the log gives"
                    self._amiss("state", position, ref, problem)
            state = fold.handed_over(state)

    def _reader(self, position: int) -> Reader:
        found = self._readers.get(position)
        if found is None:
            if len(self._readers) >= READERS_MAX:
                self._readers.clear()
            found = self._readers[position] = Reader(self._right, AsOf(position), self.policies)
        return found

    def _whole(self, members: Sequence[Ref], rules: Rules, position: int) -> MergeState:
        said = [s for ref in members for s in self._right.observations(ref.digest, BEFORE_ALL, position)]
        return fold.fold((s.observation for s in said), members, rules) if said else fold.empty(members, rules)

    def _further(
        self, state: MergeState, members: tuple[Ref, ...], rules: Rules, after: int, through: int
    ) -> MergeState:
        """Return a fold's state at a later position; its members and rules are the same."""
        since = [s for ref in members for s in self._right.observations(ref.digest, after, through)]
        found: MergeState | None = state
        for position, said in sorted(since, key=itemgetter(0)):
            known = Before(self._right, members, position - 1)
            found = None if found is None else fold.extend(found, said, rules, known)
        return found if found is not None else self._whole(members, rules, through)


class _Parts:
    """Compares the rows of one fold with its state, position by position, each part once for each change of it."""

    def __init__(self, rows: Iterable[StoredPart]) -> None:
        self._rows = list(rows)
        """By position."""
        self.positions = sorted({row.position for row in self._rows})
        """Where there are rows."""
        self._next = 0
        self._there: dict[str, dict[bytes, bytes]] = {}

    def amiss(self, state: MergeState, position: int) -> tuple[str, bytes] | None:
        """Return a field and a key at which the rows as of a position are not what a state holds.

        Called from one position to the next, and with a state that was `handed_over` when it was compared before.
        """
        changed: dict[str, set[bytes]] = {}
        while self._next < len(self._rows) and self._rows[self._next].position <= position:
            row = self._rows[self._next]
            self._next += 1
            there = self._there.setdefault(row.field, {})
            if row.packed is None:
                there.pop(row.key, None)
            else:
                there[row.key] = row.packed
            changed.setdefault(row.field, set()).add(row.key)
        spread = fold.spread(state)
        for name in sorted({*spread, *changed, *(name for name, there in self._there.items() if there)}):
            held, there = spread.get(name), self._there.get(name, {})
            if held is None:
                if there:
                    return name, min(there)
                continue
            if held.parts.follows:
                keys = changed.get(name, set()).union(held.parts.new)
            else:
                keys = {*there, *held.parts}
            for key in sorted(keys):
                part = held.parts.get(key)
                if there.get(key) != (None if part is None else held.pack_part(part)):
                    return name, key
            if len(there) != len(held.parts):
                return name, b""
        return None


def _wording(name: str, key: bytes) -> str:
    """Return the clause that says which element is not what the log gives."""
    which = f"the element {key.hex()[:32]}" if key else "the number of elements"
    return f"{which} kept of {name} is not what the log gives"
