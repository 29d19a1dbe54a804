"""Tables: the rows of one tenant, reached by queries that have names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.engines.port import BEFORE_ALL
from woodrat.engines.sqlite import codec

if TYPE_CHECKING:
    import apsw

    from woodrat.canon.ids import TenantId
    from woodrat.engines.sqlite.cache import Memory


class Tables:
    """What one tenant has in the tables, within one transaction of SQLite."""

    def __init__(self, connection: apsw.Connection, named: dict[str, str], tenant: TenantId, memory: Memory) -> None:
        self.execute = connection.execute
        self.queries = named
        self.memory = memory
        self.name = tenant
        if memory.number is None:
            memory.number = self.value("tenant", name=tenant)
        self.number = memory.number
        """The number of the tenant; none for one that has written nothing."""
        self.base = codec.base(self.number or 0)
        """What the ids of its entries begin at."""

    def select(self, query: str, **values: Any) -> apsw.Cursor:
        """Return the rows that a query gives."""
        return self.execute(self.queries[query], values)

    def value(self, query: str, **values: Any) -> Any:
        """Return the one value of the one row there is, or None."""
        return self.execute(self.queries[query], values).get

    def first_row(self, query: str, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row there is, or None."""
        for row in self.execute(self.queries[query], values):
            return tuple(row)
        return None

    @property
    def tenant_number(self) -> int:
        """The number of the tenant; 0 for one that has written nothing."""
        return self.number or 0

    def bounds(self, after: int = BEFORE_ALL, through: int | None = None) -> dict[str, int]:
        """Return the ids of the entries between two positions, as a query takes them."""
        last = self.base + (1 << codec.TENANT_BITS) - 1 if through is None else self.base + through
        return {"low": self.base + after + 1, "high": last if self.number is not None else -1}
