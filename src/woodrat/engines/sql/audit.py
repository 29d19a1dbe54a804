"""Audit: tables compared with the log they are derived from, row by row, without writing.

What the log says must be there is looked up by its primary key, and counted; a table that has more rows than were
looked up has some that the log does not speak of. So every row is compared, whatever order a table is in, and memory
does not grow with the log.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.canon.digest import digest as digest_of
from woodrat.canon.ids import Ref
from woodrat.engines.port import BEFORE_ALL, KEPT_EVERY, IndexRow, Keeping, Mismatch, Told
from woodrat.engines.sql import codec, elements
from woodrat.engines.sql.nodes import NODE_STEP
from woodrat.merge import fold, packed_state
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.state import observation
from woodrat.state.asof import Stored
from woodrat.state.observation import RETRACT, Observation
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from woodrat.engines.sql.view import SqlView

BODIES: Final = 250
"""How many bodies of a history are fetched at a time."""
TRIM_EVERY: Final = 500
"""After so many entities what the view keeps at hand of them is let go."""
WRONG_MAX: Final = 100
"""How many mismatches are named."""


class SqlAudit:
    """Compares the tables of one tenant with its log, within one view. An engine says how its statements are run."""

    def __init__(self, view: SqlView, size: int | None) -> None:
        self._tables = view
        self._tenant, self._base = view.tenant_number, view.base
        last = self._one("last_id", **view.bounds())
        self._size = 0 if last is None else last - self._base + 1
        self.size = self._size if size is None else size
        joins = self._one("joins_since", tenant=self._tenant, type=SAME_AS)
        self._joins_since = self._size if joins is None else int(joins)
        self._visited = bytearray(self._size // 8 + 1)
        self._wrong: list[Mismatch] = []
        self._seen: dict[str, int] = {}

    @property
    def wrong(self) -> list[Mismatch]:
        """What was found so far; whoever reads it empties it."""
        self._settle()
        return self._wrong

    @wrong.setter
    def wrong(self, found: list[Mismatch]) -> None:
        self._wrong = found

    @property
    def seen(self) -> dict[str, int]:
        """How many rows of each part were looked up and found."""
        self._settle()
        return self._seen

    @seen.setter
    def seen(self, found: dict[str, int]) -> None:
        self._seen = found

    def _settle(self) -> None:
        """Look up what waits to be looked up with others, where an engine has it wait."""

    def _all(self, query: str, **values: Any) -> Iterable[tuple[Any, ...]]:
        """Return the rows that a query gives."""
        raise NotImplementedError

    def _one(self, query: str, **values: Any) -> Any:
        """Return the one value that a query gives, or None."""
        return next((row[0] for row in self._all(query, **values)), None)

    def _is_there(self, query: str, values: tuple[Any, ...]) -> bool:
        """Return whether a query finds a row."""
        raise NotImplementedError

    def _has(self, table: str, *values: Any) -> bool:
        """Return whether a row is there, and count it."""
        if not self._is_there("has_" + table, values):
            return False
        self._seen[table] = self._seen.get(table, 0) + 1
        return True

    def _expect(self, table: str, values: tuple[Any, ...], position: int, entity: Ref, problem: str | None) -> None:
        """Look up a row that says something of an entity, and count it; what is wrong without it may be nothing."""
        if not self._has(table, *values) and problem is not None:
            self._amiss("index", position, entity, problem)

    def _amiss(self, part: str, position: int | None, entity: Ref | None, problem: str, *, log: bool = False) -> None:
        if len(self._wrong) < WRONG_MAX:
            self._wrong.append(Mismatch(part, position, entity, problem, log))

    # The log

    def _repeated(self) -> None:
        """Find observations that stand in the log twice."""
        known: dict[bytes, int] = {}
        for (id,) in self._all("repeated", **self._tables.bounds(through=self._size - 1)):
            body = self._bodies([id]).get(id)
            if body is None:
                continue
            digest = digest_of("observation", body)
            first = known.setdefault(digest, id - self._base)
            if first != id - self._base:
                problem = f"the observation at {first} stands in the log again"
                self._amiss("repeated", id - self._base, None, problem, log=True)

    # The tree

    def subtrees(self, height: int, place: int, roots: Sequence[bytes]) -> None:
        """Compare the subtrees of one height; only every so many heights are kept."""
        if not height or height % NODE_STEP or not roots:
            return
        rows = self._all("nodes", tenant=self._tenant, height=height, low=place, high=place + len(roots) - 1)
        there = {row[0]: row[1] for row in rows}
        for number, root in enumerate(roots, place):
            found = there.get(number)
            if found is not None:
                self._seen["node"] = self._seen.get("node", 0) + 1
            if found != root:
                first, last = number << height, ((number + 1) << height) - 1
                state = "is not there" if found is None else "is another"
                self._amiss("tree", first, None, f"the kept root over {first} to {last} {state}")

    # Entities and their observations

    def slices(self, count: int) -> Sequence[tuple[int, int]]:
        """Return runs of entity numbers."""
        for low, high in self._all("entity_numbers"):
            if low is not None:
                step = max(1, (high - low + count) // count)
                return [(start, min(start + step - 1, high)) for start in range(low, high + 1, step)]
        return []

    def told(self, within: tuple[int, int], ahead: Callable[[Sequence[Ref]], object] | None = None) -> Iterator[Told]:
        """Yield entities by number."""
        spread = {row[0] for row in self._all("spread", low=within[0], high=within[1])}
        rows = self._entities(within, ahead)
        for count, (number, type, key, head, first, last, until, at, packed) in enumerate(rows, 1):
            ref = Ref(type, key)
            if codec.head(ref.digest) != head:
                self._amiss("entity", None, ref, "the digest is another")
            compared = self._comparison(number) if number in spread else None
            states = [
                Keeping(position, partial(self._agrees, ref, state, kept_last, kept_until, compared, position))
                for position, kept_last, kept_until, state in self._kept_of(number)
            ]
            shows = None
            if (at is None) != (packed is None):
                self._amiss("state", None, ref, "a state without a position, or a position without a state")
            elif at is not None:
                present = Keeping(at, partial(self._agrees, ref, packed, None, None, compared, at))
                present, shows = self._showing(ref, number, present)
                states.append(present)
            if compared is not None:
                between = set(compared.positions).difference(kept.position for kept in states)
                states += [Keeping(at, partial(self._agree_between, ref, compared, at)) for at in between]
                states.sort(key=lambda kept: kept.position)
            yield Told(ref, self._observations(ref, number, first, last, until), states, shows)
            if not count % TRIM_EVERY:
                self._tables.memory.entities.clear()

    def _entities(
        self, within: tuple[int, int], ahead: Callable[[Sequence[Ref]], object] | None
    ) -> Iterable[tuple[Any, ...]]:
        """Return what the table holds of the entities of a slice."""
        return self._all("entities_within", low=within[0], high=within[1], tenant=self._tenant)

    def _kept_of(self, number: int) -> Iterable[tuple[Any, ...]]:
        """Return the merge states kept along the history of an entity."""
        return self._tables.select("kept_of", entity=number)

    def _showing(self, ref: Ref, number: int, present: Keeping) -> tuple[Keeping, Callable[[bool, int], object] | None]:
        """Return what compares the present state of an entity, and what an engine shows of it besides, if it does."""
        return present, None

    def _comparison(self, number: int) -> elements.Comparison:
        return elements.Comparison(elements.Row(*row) for row in self._all("elements_of", entity=number))

    def _agrees(
        self,
        ref: Ref,
        packed: bytes,
        last: int | None,
        until: str | None,
        compared: elements.Comparison | None,
        position: int,
        state: MergeState,
        rules: Rules,
        latest: int,
    ) -> bool:
        """Return whether a row holds this state; `last` and `until` are those of a row along the history."""
        if compared is not None or fold.is_spread(state):
            self._agree_between(ref, compared or elements.Comparison(()), position, state, rules, latest)
        if last is not None and (last != latest or until != state.until):
            return False
        return packed_state.pack(state, rules, apart=True) == packed

    def _agree_between(
        self, ref: Ref, compared: elements.Comparison, position: int, state: MergeState, rules: Rules, latest: int
    ) -> bool:
        """Compare the parts of collections that are kept one by one, as of a position."""
        amiss = compared.amiss(state, position)
        if amiss is not None:
            self._amiss("element", position, ref, elements.wording(*amiss))
        return True

    def _observations(self, ref: Ref, number: int, first: int, last: int, until: str) -> Iterator[Stored]:
        """Yield what was said of an entity, comparing every index of it on the way."""
        base = self._base
        ids, heads = self._links(ref, number, last)
        begins = ids[-1] - base if ids else BEFORE_ALL
        if begins != first:
            self._amiss(
                "entity", max(begins, 0) if ids else None, ref, f"the first observation is at {begins}, not {first}"
            )
        reached = ""
        for start in range(len(ids), 0, -BODIES):
            part = slice(max(0, start - BODIES), start)
            wanted = ids[part][::-1]
            bodies = self._bodies(wanted)
            for id, head in zip(wanted, heads[part][::-1], strict=True):
                position = id - base
                found = self._parsed(position, bodies.get(id), head, ref)
                if found is None:
                    continue
                if not head % KEPT_EVERY:
                    # There may be anchors from before the first `same_as`, once that was erased.
                    problem = "anchor does not have the observation" if position >= self._joins_since else None
                    self._expect("anchor", (number, position), position, ref, problem)
                if found.op == RETRACT:
                    self._expect("late", (number, "", id), position, ref, "late does not have the retraction")
                elif found.valid_from >= reached:
                    reached = found.valid_from
                else:
                    asked = (number, found.valid_from, id)
                    self._expect("late", asked, position, ref, "late does not have the observation")
                if found.replaces:
                    for name in found.replaces:
                        problem = "naming does not have what the observation names"
                        self._expect("naming", (codec.head(name), id), position, ref, problem)
                yield Stored(position, found)
        if reached != until:
            self._amiss(
                "entity", None, ref, f"what was said reaches until {reached or 'nothing'}, not {until or 'nothing'}"
            )

    def _links(self, ref: Ref, number: int, last: int) -> tuple[array[int], array[int]]:
        """Return the ids of an entity's observations and the beginnings of their digests, the last first."""
        ids, heads = array("q"), array("q")
        base, expected, size = self._base, last, self._size
        visited = self._visited
        if last >= 0:
            for id, entity, previous, head in self._chain(base + last):
                position = id - base
                if entity != number:
                    self._amiss("index", position, ref, "said has the observation under another entity")
                    break
                if previous >= position:
                    self._amiss("index", position, ref, f"said has {previous} as the observation before")
                expected = previous
                if position < size:
                    visited[position >> 3] |= 1 << (position & 7)
                ids.append(id)
                heads.append(head)
            if expected >= 0 and (not ids or expected < ids[-1] - base):
                self._amiss("index", expected, ref, "said does not have an observation that another comes after")
        self._seen["said"] = (
            self._seen.get("said", 0)
            + len(ids)
            - (0 if self.size >= size else sum(id >= base + self.size for id in ids))
        )
        return ids, heads

    def _chain(self, start: int) -> Iterable[tuple[Any, ...]]:
        """Return the observations of an entity from an id back, each with its entity, the one before and its digest."""
        return self._all("links", start=start, base=self._base)

    def _parsed(self, position: int, body: bytes | None, head: int, ref: Ref) -> Observation | None:
        if body is None:
            self._amiss("index", position, ref, "said has an observation that is gone")
            return None
        try:
            value = form.decode(body)
            found = observation.stored(body, value)
            canonical = observation.is_canonical(body, value)
        except (AssertionError, AttributeError, KeyError, TypeError, ValueError):
            self._amiss("body", position, ref, "the body is no observation", log=True)
            return None
        if not canonical:
            self._amiss("canonical", position, ref, "the body is not in canonical form", log=True)
        if found.entity != ref:
            self._amiss("index", position, ref, f"said has the observation under another entity than {found.entity}")
            return None
        if codec.head(found.digest) != head:
            self._amiss("index", position, ref, "said has another digest of the observation")
        return found

    def _bodies(self, ids: Sequence[int]) -> dict[int, bytes | None]:
        """Return bodies by id."""
        return dict(map(tuple, self._all("bodies", ids=self._tables.many_of(list(ids)))))

    def listed(self, row: IndexRow, entity: Ref | None = None, part: str = "index") -> None:
        """Look up a row of an index."""
        asked = (self._tenant, row.name, row.key, row.since, row.value)
        there = self._has("index_row", *asked) if row.until is None else self._has("index_past", *asked, row.until)
        if not there:
            self._amiss(part, row.since, entity, f"the index {row.name} does not have a row")

    def indexes(self) -> Sequence[str]:
        """Return the names of the indexes that have rows."""
        names = [row[0] for row in self._all("index_names", tenant=self._tenant)]
        found = [name for name in names if isinstance(name, str)]
        if len(found) < len(names):
            self._amiss("index", None, None, "an index has a name that is no text")
        return found

    def notes(self) -> Mapping[str, bytes]:
        """Return what is noted, by name."""
        return dict(map(tuple, self._all("notes", tenant=self._tenant)))

    def pass_over(self, name: str) -> None:
        """Count the rows of an index as found."""
        for table, count in self._all("rows_of_index", tenant=self._tenant, name=name):
            self._seen[table] = self._seen.get(table, 0) + count

    # What is there besides

    def surplus(self, seen: Mapping[str, int]) -> None:
        """Count the rows of every table, and name one that was not seen where that is easily found."""
        bounds = self._tables.bounds(through=self._size - 1)
        counts = [*self._all("counts", tenant=self._tenant, **bounds)]
        for table, count in counts:
            more = count - seen.get(table, 0)
            if more > 0:
                position = self._unseen(bounds) if table == "said" else None
                many = f"{more} rows" if more > 1 else "a row"
                self._amiss("surplus", position, None, f"{table} has {many} that the log does not speak of")

    def _unseen(self, bounds: Mapping[str, int]) -> int | None:
        """Return the first position of an observation that its entity's history does not lead to."""
        for (id,) in self._all("said_ids", **bounds):
            position = int(id - self._base)
            if not self._visited[position >> 3] >> (position & 7) & 1:
                return position
        return None

    def unnoted(self) -> int | None:
        """Return the first position of an observation that no entity's history leads to."""
        for row in self._tables.rows(BEFORE_ALL, self._size - 1):
            seen = self._visited[row.position >> 3] >> (row.position & 7) & 1
            if row.kind == "observation" and row.body is not None and not seen:
                return row.position
        return None
