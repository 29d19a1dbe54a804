"""Audit: the tables of one tenant compared with its log, without writing.

A question costs a round trip, whatever it asks for. So entities are read some at a time, with their histories, and rows
that the log asks for are looked up many at a time. What is held meanwhile is bounded by number and by bytes: a history
that is longer is asked for by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon.ids import Ref
from woodrat.engines.port import VECTORS, Keeping, Products
from woodrat.engines.postgres import shown
from woodrat.engines.postgres.statements import NumberColumn, all_compiled
from woodrat.engines.sql.audit import SqlAudit

if TYPE_CHECKING:
    from woodrat.engines.port import IndexRow
    from woodrat.engines.sql.view import SqlView
    from woodrat.merge.fold import MergeState
    from woodrat.merge.rules import Rules

ENTITIES: Final = 250
"""How many entities are read at a time."""
LINKS: Final = 32
"""How many observations of each are read with them, the last ones."""
LINKS_ALONE: Final = 10_000
"""How many observations of a longer history are asked for at a time."""
BYTES: Final = 8 * 1_048_576
"""How many bytes of bodies, and of states kept along histories, are read ahead."""
ROWS: Final = 500
"""How many rows of a table are looked up at a time."""
ROWS_BYTES: Final = 4 * 1_048_576
"""From how many bytes on fewer are."""
_COLUMNS: Final = {
    "anchor": ("entity", "position"),
    "late": ("entity", "valid_from", "id"),
    "naming": ("target", "id"),
    "index_row": ("name", "key", "since", "value"),
    "vector": ("name", "key", "since", "value"),
    "index_past": ("name", "key", "since", "value", "until"),
    "shown": ("entity", "fields", "more", "version"),
}
"""What rows are looked up by; a row with a vector is one of `index_row` as well."""


class _Row(NamedTuple):
    """A row that the log asks for."""

    values: tuple[Any, ...]
    part: str
    position: int | None
    entity: Ref | None
    problem: str | None
    """What is wrong if it is not there; nothing where it need not be."""


class PostgresAudit(SqlAudit):
    """Compares the tables of one tenant with its log, within one view."""

    def __init__(
        self, view: SqlView, size: int | None, ask: Callable[[str, dict[str, Any]], list[tuple[Any, ...]]]
    ) -> None:
        self._ask, self._name, self._multiplies = ask, view.name, isinstance(view, Products)
        self._named = all_compiled("audit.sql")
        self._waiting: dict[str, list[_Row]] = {}
        """By table, rows that are to be looked up."""
        self._waiting_bytes = 0
        self._kept: dict[int, list[tuple[Any, ...]]] = {}
        """By entity, the states kept along its history; without their bytes where these are too many."""
        self._chains: dict[int, list[tuple[Any, ...]]] = {}
        """By the last observation of an entity, the last ones of its history, back from there."""
        self._read: dict[int, bytes] = {}
        """Bodies of these by id, as many as are held."""
        super().__init__(view, size)

    def _all(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        values["tenant"] = self._name
        (part,) = self._named[query].parts
        return self._ask(part, values)

    def structure(self) -> None:
        """Check that the log ends where it is noted to, and that every row belongs to an entry and an entity."""
        noted = self._one("head")
        if (noted or 0) != self._size:
            problem = f"the log is noted to have {noted or 0} entries, and has {self._size}"
            self._amiss("truncated", min(self._size, noted or 0), None, problem, log=True)
        for query, damage, problem in (
            ("unowned_body", "unowned", "there is a body of no entry"),
            ("unowned_origin", "unowned", "there is an origin of no entry"),
            ("odd_clones", "clone", "what was taken over does not end here"),
        ):
            for (id,) in self._all(query):
                self._amiss(damage, id, None, problem, log=True)
        for (table,) in self._all("orphans"):
            self._amiss("surplus", None, None, f"{table} has a row that belongs to no entity")
        for table, position in self._all("beyond", size=self._size):
            problem = f"{table} speaks of position {position}, and the log ends before"
            self._amiss("truncated", self._size, None, problem, log=True)
        self._repeated()

    # Entities, some at a time

    def _entities(
        self, within: tuple[int, int], ahead: Callable[[Sequence[Ref]], object] | None
    ) -> Iterator[tuple[Any, ...]]:
        for low in range(within[0], within[1] + 1, ENTITIES):
            high = min(low + ENTITIES - 1, within[1])
            rows = self._all("entities_within", low=low, high=high)
            if not rows:
                continue
            if ahead is not None:
                ahead([Ref(row[1], row[2]) for row in rows])
            self._look_ahead(low, high, [row[5] for row in rows if row[5] >= 0])
            yield from rows

    def _look_ahead(self, low: int, high: int, lasts: Sequence[int]) -> None:
        """Read the histories of some entities, as far as they are not too long."""
        self._kept, self._chains = {}, {}
        for entity, *kept in self._all("kept_within", low=low, high=high, bytes=BYTES):
            self._kept.setdefault(entity, []).append(tuple(kept))
        for start, *link in self._links_of(lasts, LINKS):
            self._chains.setdefault(start, []).append(tuple(link))
        ids = [link[0] for chain in self._chains.values() for link in chain]
        found = self._all("bodies_within", ids=NumberColumn(ids), bytes=BYTES) if ids else ()
        self._read = {id: body for id, body in found if body is not None}

    def _links_of(self, starts: Iterable[int], count: int) -> list[tuple[Any, ...]]:
        return self._all("links_of", starts=NumberColumn(list(dict.fromkeys(starts))), count=count)

    def _kept_of(self, number: int) -> Iterable[tuple[Any, ...]]:
        rows = self._kept.get(number, ())
        return rows if all(row[-1] is not None for row in rows) else super()._kept_of(number)

    def _chain(self, start: int) -> Iterator[tuple[Any, ...]]:
        count, rows = LINKS, self._chains.pop(start, None)
        while True:
            if rows is None:
                count, rows = LINKS_ALONE, [row[1:] for row in self._links_of([start], LINKS_ALONE)]
            yield from rows
            if len(rows) < count or not 0 <= rows[-1][2] < rows[-1][0]:
                return
            start, rows = rows[-1][2], None

    def _bodies(self, ids: Sequence[int]) -> dict[int, bytes | None]:
        read, found = self._read, dict[int, bytes | None]()
        for id in ids:
            if (body := read.pop(id, None)) is not None:
                found[id] = body
        rest = [id for id in ids if id not in found] if len(found) < len(ids) else ()
        return {**found, **super()._bodies(rest)} if rest else found

    # Rows, many at a time

    def _expect(self, table: str, values: tuple[Any, ...], position: int, entity: Ref, problem: str | None) -> None:
        self._wait(table, _Row(values, "index", position, entity, problem))

    def listed(self, row: IndexRow, entity: Ref | None = None, part: str = "index") -> None:
        """Look up a row of an index, with others."""
        name, key, since, value, until = row
        problem = f"the index {name} does not have a row"
        if until is None:
            table = "vector" if self._multiplies and name.startswith(VECTORS) else "index_row"
            self._wait(table, _Row((name, key, since, value), part, since, entity, problem))
        else:
            self._wait("index_past", _Row((name, key, since, value, until), part, since, entity, problem))

    def _showing(self, ref: Ref, number: int, present: Keeping) -> tuple[Keeping, Callable[[bool, int], object] | None]:
        """Have the columns that plain SQL shows compared with the fold that the present state stands for."""
        fold: tuple[MergeState, Rules] | None = None

        def agrees(state: MergeState, rules: Rules, last: int) -> bool:
            nonlocal fold
            fold = state, rules
            return present.agrees(state, rules, last)

        def shows(is_root: bool, version: int) -> None:
            state, rules = fold if fold is not None and is_root else (None, None)
            fields, more, _ = shown.columns(state, rules, None)
            is_shown = fields != shown.NOTHING
            self._waiting_bytes += len(fields)
            problem = "the fields or the version that the view woodrat.state shows are not what the log gives"
            values = number, fields, more, version if is_shown else None
            self._wait("shown", _Row(values, "state", None, ref, problem))

        return present._replace(agrees=agrees), shows

    def _wait(self, table: str, row: _Row) -> None:
        waiting = self._waiting.setdefault(table, [])
        waiting.append(row)
        if len(waiting) >= ROWS or self._waiting_bytes >= ROWS_BYTES:
            self._look_up(table)

    def _settle(self) -> None:
        for table in tuple(self._waiting):
            self._look_up(table)

    def _look_up(self, table: str) -> None:
        """Look up the rows of a table that wait."""
        asked = self._waiting.pop(table, ())
        if table == "shown":
            self._waiting_bytes = 0
        if not asked:
            return
        columns = zip(_COLUMNS[table], zip(*(row.values for row in asked), strict=True), strict=True)
        lacking = self._all(f"lacking_{table}", **self._named[f"lacking_{table}"].arrays(dict(columns)))
        seen = "index_row" if table == "vector" else table
        self._seen[seen] = self._seen.get(seen, 0) + len(asked) - len(lacking)
        for (number,) in lacking:
            _, part, position, entity, problem = asked[number - 1]
            if problem is not None:
                self._amiss(part, position, entity, problem)
