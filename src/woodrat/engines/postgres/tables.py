"""View: reading of one tenant, in one transaction of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import moment
from woodrat.canon.ids import KEY_BYTES_MAX
from woodrat.engines.port import BEFORE_ALL, Head
from woodrat.engines.postgres.statements import BytesColumn, NumberColumn, all_compiled, named
from woodrat.engines.sql.tables import ALL
from woodrat.engines.sql.view import SqlView
from woodrat.errors import Unavailable
from woodrat.log.tree import Frontier

if TYPE_CHECKING:
    from woodrat.canon.ids import Ref, TenantId
    from woodrat.engines.port import Audit, View
    from woodrat.engines.postgres.connection import Connection
    from woodrat.engines.sql.cache import Memory

PAGE: Final = 1_000
"""How many entries are read at a time. It costs less than a cursor of the server, and holds nothing open."""
FIRST_PAGE: Final = 64
"""How many are read at first: whoever wants a page of a list takes no more."""


class PostgresView(SqlView):
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

    def first_row(self, query: str, **values: Any) -> tuple[Any, ...] | None:
        rows = PostgresView.select(self, query, **values)
        return rows[0] if rows else None

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

    def audit(self, size: int | None = None) -> Audit:
        from woodrat.engines.postgres.audit import PostgresAudit

        return PostgresAudit(self, size, self.ask)

    def unlike(self, old: View) -> Iterator[tuple[Ref, bool]]:
        from woodrat.engines.postgres.kept_states import PostgresKeptStates
        from woodrat.engines.sql.state_comparison import unlike

        assert isinstance(old, PostgresView)
        return unlike(PostgresKeptStates(self.select), PostgresKeptStates(old.select))


def _head(found: tuple[Any, ...] | None) -> Head:
    """Return the end of a log as its row has it."""
    if found is None or not found[2]:
        return Head(None, 0, None, Frontier())
    _, log, size, recorded_at, frontier = found
    return Head(log, size, moment.from_micros(recorded_at), Frontier.from_bytes(frontier))
