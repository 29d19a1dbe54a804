"""View: reading of one tenant of a file, in one transaction of SQLite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from woodrat.engines.port import BEFORE_ALL
from woodrat.engines.sql import codec
from woodrat.engines.sql.view import SqlView

if TYPE_CHECKING:
    import apsw

    from woodrat.canon.ids import Ref, TenantId
    from woodrat.engines.port import Audit, View
    from woodrat.engines.sql.cache import Memory


class SqliteView(SqlView):
    """Reading of one tenant of a file."""

    last_text = b"\xff"  # to SQLite all bytes come after all text

    def __init__(self, connection: apsw.Connection, named: dict[str, str], tenant: TenantId, memory: Memory) -> None:
        self.execute = connection.execute
        self.queries = named
        self.memory = memory
        self.name = tenant
        if memory.number is None:
            memory.number = self.value("tenant", name=tenant)
        self.number = memory.number
        self.base = codec.base(self.number or 0)
        self.begin()

    def select(self, query: str, **values: Any) -> apsw.Cursor:
        return self.execute(self.queries[query], values)

    def value(self, query: str, **values: Any) -> Any:
        return self.execute(self.queries[query], values).get

    def first_row(self, query: str, **values: Any) -> tuple[Any, ...] | None:
        for row in self.execute(self.queries[query], values):
            return tuple(row)
        return None

    def stream(self, query: str, after: int, through: int | None, **values: Any) -> apsw.Cursor:
        return self.select(query, **values, **self.bounds(after, through))

    def bounds(self, after: int = BEFORE_ALL, through: int | None = None) -> dict[str, int]:
        last = self.base + (1 << codec.TENANT_BITS) - 1 if through is None else self.base + through
        return {"low": self.base + after + 1, "high": last if self.number is not None else -1}

    def many_of(self, values: Sequence[int]) -> str:
        return orjson.dumps(values).decode()

    def ranges_of(self, pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, Any]:
        return {"sought": orjson.dumps([(first.hex(), last.hex()) for first, last in pairs]).decode()}

    def audit(self, size: int | None = None) -> Audit:
        from woodrat.engines.sqlite.file_audit import SqliteAudit

        return SqliteAudit(self, size, self.execute)

    def purged(self) -> bool:
        """Return whether no erasure waits for its bytes to be taken out of the file."""
        return self.value("purge_due") is None

    def shares(self) -> bool:
        """Return whether the file holds other tenants too."""
        return self.value("other_tenant", name=self.name) is not None

    def unlike(self, old: View) -> Iterator[tuple[Ref, bool]]:
        from woodrat.engines.sql.state_comparison import unlike
        from woodrat.engines.sqlite.kept_states import SqliteKeptStates

        assert isinstance(old, SqliteView)
        return unlike(SqliteKeptStates(self), SqliteKeptStates(old))
