"""Write: one write of one tenant.

What it adds is queued, and goes to the server with the next question, or with the commit: a write that asks nothing
after its first look takes two round trips.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import moment
from woodrat.engines.postgres.connection import ERASER, WRITER
from woodrat.engines.postgres.tables import PostgresView
from woodrat.engines.sql.columns import COLUMNS
from woodrat.engines.sql.write import SqlTransaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from woodrat.canon.ids import TenantId
    from woodrat.engines.postgres.connection import Connection
    from woodrat.engines.sql.cache import Memory
    from woodrat.log.entry import Write
    from woodrat.state.meaning import Meaning

QUEUE_MAX: Final = 64
"""After so many statements a queue is sent, so that memory does not grow with a write."""
_KEYS: Final = {"add_element": 4, "add_index_past": 4}
"""Statements that replace rows, and how many of their columns are a key: of two rows with one key the last counts."""


class PostgresTransaction(SqlTransaction, PostgresView):
    """One write of one tenant."""

    def __init__(
        self,
        connection: Connection,
        tenant: TenantId,
        memory: Memory,
        found: tuple[Any, ...] | None,
        sound: set[TenantId],
    ) -> None:
        PostgresView.__init__(self, connection, tenant, memory, found)
        self._queue: list[tuple[str, dict[str, Any] | None]] = []
        self.sent = False
        """Whether anything was sent that changes the tables."""
        self.first_leaf: tuple[int, bytes] | None = None
        """The first entry that it appended, by position and leaf."""
        self.begin_write(sound)

    @property
    def has_changed(self) -> bool:
        """Whether it changed anything, in the tables or of what is known."""
        return self.has_noted or self.sent or bool(self._queue)

    def ask(self, part: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        if not self._queue:
            return super().ask(part, values)
        assert self._connection is not None
        with self._connection.pipeline():
            self.send()
            cursor = self._connection.execute(part, values, binary=True)
        return cursor.fetchall()

    def send(self) -> None:
        """Send what is queued; within a pipeline nothing is waited for."""
        assert self._connection is not None
        queue, self._queue = self._queue, []
        self.sent = self.sent or bool(queue)
        for part, values in queue:
            self._connection.execute(part, values, binary=True)

    def _add(self, part: str, values: dict[str, Any] | None = None) -> None:
        self._queue.append((part, values))
        if len(self._queue) >= QUEUE_MAX:
            assert self._connection is not None
            with self._connection.pipeline():
                self.send()

    def many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        rows = list(rows)
        if not rows:
            return
        if (key := _KEYS.get(query)) is not None:
            rows = list({row[:key]: row for row in rows}.values())
        statement = self._statements[query]
        (part,) = statement.parts
        values: dict[str, Any] = statement.arrays(dict(zip(COLUMNS[query], zip(*rows, strict=True), strict=True)))
        self._add(part, {"tenant": self.name, **values})

    def run(self, query: str, **values: Any) -> None:
        values["tenant"] = self.name
        for part in self._statements[query].parts:
            self._add(part, values)

    def enrol(self) -> None:
        raise AssertionError("a tenant is called by its name")

    def append(self, writes: Sequence[Write], meanings: Sequence[Meaning]) -> None:
        if self.first_leaf is None and writes:
            self.first_leaf = writes[0].first, writes[0].leaves[0]
        super().append(writes, meanings)

    def erase(self, positions: Iterable[int], receipts: Iterable[tuple[str, str]]) -> None:
        self.run("due")
        self._add(f"SET LOCAL ROLE {ERASER}")
        self.many("erase_body", [(position,) for position in positions])
        self.many("erase_receipt", [(self.name, *name) for name in receipts])
        self._add(f"SET LOCAL ROLE {WRITER}")

    def drop_tables(self) -> None:
        self.run("drop_derived")

    def finish(self) -> bool:
        """Queue all that is left, and the new end of the log; return whether anything changed."""
        if not self.has_changed:
            return False
        self.flush()
        head = self.head()
        recorded_at = None if head.recorded_at is None else moment.to_micros(head.recorded_at)
        frontier = head.frontier.to_bytes()
        self.run("set_head", log=head.log, size=head.size, recorded_at=recorded_at, frontier=frontier)
        return True
