"""View: reading of one tenant of a file, in one transaction of SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from woodrat.engines import codec
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.view import View

if TYPE_CHECKING:
    import apsw

    from woodrat.canon.ids import TenantId
    from woodrat.engines.cache import Memory
    from woodrat.engines.records import Mismatch


class SqliteView(View):
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

    def stream(self, query: str, after: int, through: int | None, **values: Any) -> apsw.Cursor:
        return self.select(query, **values, **self.bounds(after, through))

    def bounds(self, after: int = BEFORE_ALL, through: int | None = None) -> dict[str, int]:
        last = self.base + (1 << codec.TENANT_BITS) - 1 if through is None else self.base + through
        return {"low": self.base + after + 1, "high": last if self.number is not None else -1}

    def many_of(self, values: Sequence[int]) -> str:
        return orjson.dumps(values).decode()

    def ranges_of(self, pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, Any]:
        return {"sought": orjson.dumps([(first.hex(), last.hex()) for first, last in pairs]).decode()}

    def comparing(self, query: str, **values: Any) -> Iterable[tuple[Any, ...]]:
        from woodrat.engines.sqlite.connection import queries  # only verification needs them

        return self.execute(queries("comparison.sql")[query], values)

    def structure(self) -> list[Mismatch]:
        from woodrat.engines.sqlite.structure import Structure

        found = Structure(self, self.execute)
        found.check()
        return found.wrong

    def purged(self) -> bool:
        """Return whether no erasure waits for its bytes to be taken out of the file."""
        return self.value("purge_due") is None

    def shares(self) -> bool:
        """Return whether the file holds other tenants too."""
        return self.value("other_tenant", name=self.name) is not None
