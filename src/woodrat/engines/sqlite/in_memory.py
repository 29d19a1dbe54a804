"""In memory: a SQLite database that is in no file, and gone once its engine is closed.

One connection serves all threads of the process, one at a time: whoever reads waits for the one who writes, so that
nobody sees half a write. There are no other processes, so nothing is locked, queued for or flushed.

A view stays as it was when it was opened. A thread that has one open and writes all the same goes on in a copy of the
database, and a view that it opens inside a write reads a copy: of what was there before, if the write has changed
nothing yet.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import apsw

from woodrat.clock import monotonic
from woodrat.engines.sqlite.cached_connection import CachedConnection
from woodrat.engines.sqlite.connection import authorize, check_version, pid, prepare, queries, set_up, translated
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.storage import SqliteStorage
from woodrat.engines.sqlite.write_stop import WriteStop
from woodrat.engines.sqlite.writer_queue import WriterQueue
from woodrat.errors import Unavailable

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.records import Compaction

MEMORY: Final = ":memory:"
"""What SQLite calls a database in memory."""


class InMemoryEngine(SqliteEngine):
    """Logs of any number of tenants in this process."""

    name = "memory"
    _keeps_few = False
    """Whether no more entities are kept at hand than for reading."""

    def __init__(self) -> None:
        check_version()
        self.path, self.location, self.readonly = MEMORY, None, False
        self.queries = queries()
        self._process = pid()
        self.writer_queue, self.write_stop = WriterQueue(None), WriteStop(MEMORY)
        self.sound = set()
        self.shared_commit = self._make = None
        self.closed = False
        self._lock = threading.RLock()
        """Held by the thread that reads or writes."""
        self._users = 0
        """How many views and writes are open, all of one thread."""
        self._commits = 0
        self._use(self._connect())

    def _connect(self) -> apsw.Connection:
        """Open a database without rows."""
        return _connected()

    def _use(self, connection: apsw.Connection) -> None:
        """Read and write by a connection from now on; views that are open stay with theirs."""
        reads = self._keeps_few
        self._writer, self._reader = CachedConnection(connection, reads=reads), _Reader(connection, reads=reads)
        self._views = 0
        """How many views are open that read by it."""

    def elsewhere(self) -> None:
        return None

    def stamp(self) -> bytes:
        self._check()
        return b"%d" % self._commits

    def purge(self) -> bool:
        """Forget that an erasure waits: what it freed was overwritten, and there is no file."""
        with self._lock:
            self._check()
            connection = self._writer.connection
            connection.authorizer = None
            try:
                connection.execute("DELETE FROM purge")
            finally:
                connection.authorizer = authorize
        return True

    def blockers(self) -> Sequence[str]:
        return ()

    def compact(self) -> Compaction:
        """Leave out the pages that nothing uses."""
        from woodrat.engines.sqlite.compaction import estimate  # only erasures need it

        connection = self.take_writer().connection
        try:
            found, started = estimate(connection), monotonic()
            connection.authorizer = None
            connection.execute("VACUUM")
            seconds = round(monotonic() - started, 3)
            return found._replace(seconds=seconds, size_after_bytes=estimate(connection).size_bytes)
        finally:
            connection.authorizer = authorize
            self.give_back_writer()

    def storage(self, tenant: TenantId) -> InMemoryStorage:
        return InMemoryStorage(self, tenant, lambda: ())

    def close(self) -> None:
        with self._lock:
            self.closed = True
            if not self._users:
                self._writer.close()

    def take(self) -> CachedConnection:
        self._enter()
        try:
            if not self._writer.connection.getautocommit():
                return _Reader(self._copy())  # all others wait, so this thread itself writes
            self._views += 1
            return self._reader
        except BaseException:
            self._leave()
            raise

    def give_back(self, reader: CachedConnection) -> None:
        if reader is self._reader:
            self._views -= 1
        self._leave()

    def take_writer(self) -> CachedConnection:
        self._enter()
        try:
            assert self._writer.connection.getautocommit(), "a thread has one write open at a time"
            if self._views:
                self._use(self._copy())
            return self._writer
        except BaseException:
            self._leave()
            raise

    def give_back_writer(self) -> None:
        self._leave()

    def acknowledge(self) -> CachedConnection:
        self._commits += 1
        return self._writer

    def take_over(self) -> None:
        pass

    def _check(self) -> None:
        # A forked process goes on by itself, with what was there: no file or lock is shared with its parent.
        if self.closed:
            raise Unavailable("The ledger is closed. Nothing was written. Open it again.")

    def _enter(self) -> None:
        self._lock.acquire()
        try:
            self._check()
        except BaseException:
            self._lock.release()
            raise
        self._users += 1

    def _leave(self) -> None:
        self._users -= 1
        try:
            if self.closed and not self._users:
                self._writer.close()
        finally:
            self._lock.release()

    def _copy(self) -> apsw.Connection:
        """Open a database that holds what this one does."""
        with translated(self.path):
            return _connected(self._writer.connection.serialize("main"))


class _Reader(CachedConnection):
    """A connection as views use it: nobody writes meanwhile, so they need no transaction of SQLite."""

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass


class InMemoryStorage(SqliteStorage):
    """The rows of one tenant: nothing is in any file."""

    @property
    def shared(self) -> bool:
        """Whether files hold other tenants too."""
        return False

    def files(self) -> Sequence[str]:
        return ()


def _connected(data: bytes | None = None) -> apsw.Connection:
    """Open a database with what another one held, or one without rows."""
    connection = apsw.Connection(MEMORY)
    source = apsw.Connection(MEMORY)
    try:
        # Not used as it is: SQLite lets a database that was given to it as bytes grow to 1 GiB and no further.
        source.deserialize("main", data or _without_rows())
        with connection.backup("main", source, "main") as backup:
            backup.step()
    finally:
        source.close()
    set_up(connection)
    return connection


@lru_cache(maxsize=1)
def _without_rows() -> bytes:
    """Return a database that has its tables and nothing in them; to make them takes 3 ms."""
    connection = apsw.Connection(MEMORY)
    try:
        prepare(connection, MEMORY, readonly=False)
        return connection.serialize("main")
    finally:
        connection.close()
