"""Write: one write of one tenant of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from woodrat.engines import codec
from woodrat.engines.sqlite.connection import erasing
from woodrat.engines.sqlite.view import SqliteView
from woodrat.engines.transaction import Transaction

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.cache import Memory
    from woodrat.engines.sqlite.cached_connection import CachedConnection


class SqliteTransaction(Transaction, SqliteView):
    """One write of one tenant of a file."""

    def __init__(
        self,
        writer: CachedConnection,
        named: dict[str, str],
        tenant: TenantId,
        memory: Memory,
        sound: set[TenantId],
    ) -> None:
        SqliteView.__init__(self, writer.connection, named, tenant, memory)
        self._connection = writer.connection
        self._has_written = False
        self._executemany = writer.cursor.executemany
        self.begin_write(sound)

    @property
    def has_changed(self) -> bool:
        """Whether it changed anything, in the tables or of what is known."""
        return self.has_noted or self._has_written

    def many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._has_written = True
        self._executemany(self.queries[query], rows)

    def run(self, query: str, **values: Any) -> None:
        self._has_written = True
        self.execute(self.queries[query], values)

    def enrol(self) -> None:
        self.number = self.memory.number = self.value("add_tenant", name=self.name)
        self.base = codec.base(self.tenant_number)

    @contextmanager
    def erasing(self) -> Iterator[None]:
        with erasing(self._connection):
            self.run("due")
            yield

    def drop_tables(self) -> None:
        if self.shares():
            self.run("drop_derived", tenant=self.tenant_number, **self.bounds())
        else:
            self.run("drop_all_derived")
