"""View: reading of one tenant, in one transaction of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import moment
from woodrat.canon.ids import KEY_BYTES_MAX
from woodrat.engines.postgres import state_columns
from woodrat.engines.postgres.statements import BytesColumn, NumberColumn, all_compiled, named
from woodrat.engines.records import BEFORE_ALL, Head, Mismatch
from woodrat.engines.tables import ALL
from woodrat.engines.view import View
from woodrat.errors import Unavailable
from woodrat.log.tree import Frontier

if TYPE_CHECKING:
    from woodrat.canon.ids import Ref, TenantId
    from woodrat.engines.cache import Memory
    from woodrat.engines.postgres.connection import Connection
    from woodrat.merge.fold import MergeState
    from woodrat.merge.rules import Rules

PAGE: Final = 1_000
"""How many entries are read at a time. It costs less than a cursor of the server, and holds nothing open."""
SHOWN: Final = 250
"""Of how many entities what plain SQL shows is compared at a time."""
SHOWN_COLUMNS: Final = ("entity", *state_columns.COLUMNS)
"""What is compared of each."""
FIRST_PAGE: Final = 64
"""How many are read at first: whoever wants a page of a list takes no more."""


class PostgresView(View):
    """Reading of one tenant."""

    last_text = "\U0010ffff" * (KEY_BYTES_MAX // 4 + 1)

    def __init__(self, connection: Connection, tenant: TenantId, memory: Memory, found: tuple[Any, ...] | None) -> None:
        self.queries = named()
        self._statements = all_compiled()
        self._connection: Connection | None = connection
        self.memory = memory
        self.name = tenant
        self.number = tenant
        self.base = 0
        if memory.head is None:
            memory.head = _head(found)
        self.begin()

    def end_view(self) -> None:
        """Let go of the connection: whatever is asked from now on is asked too late."""
        self._connection = None

    def ask(self, part: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        connection = self._connection
        if connection is None:
            raise Unavailable("The view is closed. Nothing was read. Ask again within a new one.")
        return connection.execute(part, values, binary=True).fetchall()

    def select(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        values.setdefault("limit", ALL)
        values["tenant"] = self.name
        (part,) = self._statements[query].parts
        return self.ask(part, values)

    def value(self, query: str, **values: Any) -> Any:
        rows = PostgresView.select(self, query, **values)
        return rows[0][0] if rows else None

    def stream(self, query: str, after: int, through: int | None, **values: Any) -> Iterator[tuple[Any, ...]]:
        bounds, limit = self.bounds(after, through), FIRST_PAGE
        while True:
            rows = PostgresView.select(self, query, limit=limit, **values, **bounds)
            yield from rows
            if len(rows) < limit:
                return
            bounds["low"], limit = rows[-1][0] + 1, PAGE

    def bounds(self, after: int = BEFORE_ALL, through: int | None = None) -> dict[str, int]:
        return {"low": after + 1, "high": ALL if through is None else through}

    def many_of(self, values: Sequence[int]) -> NumberColumn:
        return NumberColumn(values)

    def ranges_of(self, pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, Any]:
        firsts, lasts = [first for first, _ in pairs], [last for _, last in pairs]
        return {"firsts": BytesColumn(firsts), "lasts": BytesColumn(lasts)}

    def comparing(self, query: str, **values: Any) -> Iterable[tuple[Any, ...]]:
        """Return the rows that a statement gives, read by a cursor of the server: there may be any number of them."""
        connection = self._connection
        if connection is None:
            raise Unavailable("The view is closed. Nothing was read. Ask again within a new one.")
        (part,) = all_compiled("comparison.sql")[query].parts
        with connection.cursor(f"compare_{query}", binary=True) as cursor:
            cursor.itersize = PAGE
            cursor.execute(part, {**values, "tenant": self.name})
            yield from cursor

    def structure(self) -> list[Mismatch]:
        found: list[Mismatch] = []
        size = self.extent()
        noted = next(((row[0] or 0) for row in self.comparing("head")), 0)
        if noted != size:
            problem = f"the log is noted to have {noted} entries, and has {size}"
            found.append(Mismatch("truncated", min(size, noted), None, problem, log=True))
        for query, damage, problem in (
            ("unowned_body", "unowned", "there is a body of no entry"),
            ("unowned_origin", "unowned", "there is an origin of no entry"),
            ("odd_clones", "clone", "what was taken over does not end here"),
        ):
            found += (Mismatch(damage, id, None, problem, log=True) for (id,) in self.comparing(query))
        for (table,) in self.comparing("orphans"):
            found.append(Mismatch("surplus", None, None, f"{table} has a row that belongs to no entity"))
        for table, position in self.comparing("beyond", size=size):
            problem = f"{table} speaks of position {position}, and the log ends before"
            found.append(Mismatch("truncated", size, None, problem, log=True))
        return found

    def misshown(self, folds: Iterable[tuple[Ref, MergeState | None, Rules | None, int]]) -> Iterator[Ref]:
        statement = all_compiled("comparison.sql")["lacking_shown"]
        left = iter(folds)
        while some := list(islice(left, SHOWN)):
            refs = [ref for ref, *_ in some]
            rows = []
            for known, (_, state, rules, version) in zip(self.known_entities(refs), some, strict=True):
                fields, more, _ = state_columns.columns(state, rules, None)
                is_shown = known is not None and fields != state_columns.NOTHING
                rows.append((-1 if known is None else known.number, fields, more, version if is_shown else None))
            columns = statement.arrays(dict(zip(SHOWN_COLUMNS, zip(*rows, strict=True), strict=True)))
            (part,) = statement.parts
            for (number,) in self.ask(part, {"tenant": self.name, **columns}):
                yield refs[number - 1]


def _head(found: tuple[Any, ...] | None) -> Head:
    """Return the end of a log as its row has it."""
    if found is None or not found[2]:
        return Head(None, 0, None, Frontier())
    _, log, size, recorded_at, frontier = found
    return Head(log, size, moment.from_micros(recorded_at), Frontier.from_bytes(frontier))
