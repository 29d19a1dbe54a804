"""The SQLite engine: views and transactions over one file.

A transaction is one `BEGIN IMMEDIATE`; what it appended and what was derived from it are committed together. Writers
of one process queue in the order they came; writers of several processes queue at a file beside it,
because SQLite's own lock serves whoever asks most often.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import apsw

from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.records import NOTHING_ASKED
from woodrat.engines.sqlite.cached_connection import CachedConnection
from woodrat.engines.sqlite.connection import (
    check_place,
    check_version,
    connect,
    is_purged,
    pid,
    prepare,
    queries,
    translated,
    translation,
    unreadable,
)
from woodrat.engines.sqlite.file_lock import DATABASE, WAL, FileLock
from woodrat.engines.sqlite.readonly_file import ReadonlyFile, check_writable
from woodrat.engines.sqlite.shared_commit import SharedCommit, SharedWrite
from woodrat.engines.sqlite.view import SqliteView
from woodrat.engines.sqlite.write_ahead_log import WriteAheadLog
from woodrat.engines.sqlite.write_stop import WriteStop
from woodrat.engines.sqlite.writer_queue import WriterQueue
from woodrat.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from woodrat.engines.records import Asks, Compaction
    from woodrat.engines.sqlite.storage import SqliteStorage
    from woodrat.engines.sqlite.transaction import SqliteTransaction


_T = TypeVar("_T")

OPENINGS = 10
"""How often a ledger is opened whose write-ahead log is deleted meanwhile."""
_ENGINES: weakref.WeakSet[SqliteEngine] = weakref.WeakSet()


def open_paths() -> list[str]:
    """Return the files that engines of this process have open."""
    return [engine.path for engine in list(_ENGINES) if not engine.closed]


class SqliteEngine(Engine):
    """Logs of any number of tenants in one file."""

    name = "sqlite"
    compacts = True
    path: str

    def __init__(self, path: str | os.PathLike[str], *, readonly: bool = False, vfs: str | None = None) -> None:
        check_version()
        self.path = os.fspath(path)
        self.location: str | None = os.path.abspath(self.path)
        self.readonly = readonly
        check_place(self.path)
        self.queries = queries()
        self._process = pid()
        self.writer_queue = WriterQueue(self.path)
        self._idle: list[CachedConnection] = []
        self._readers = 0
        """How many connections to read by are open, idle or not."""
        self._pool = threading.RLock()
        self.closed = self._writing = False
        self.vfs = vfs
        self._watcher: apsw.Connection | None = None
        """Never writes, so that its data version tells of every commit."""
        self._watchers = 0
        """How many watchers were opened: the data versions of two cannot be compared."""
        self.write_stop = WriteStop(self.path)
        self.sound: set[TenantId] = set()
        """Tenants whose log was found sound at its end since the file was opened."""
        self.shared_commit: SharedCommit | None = None
        self._make: type[SqliteTransaction] | None = None
        self._readonly_file: ReadonlyFile | None = None
        if vfs is None and readonly:
            self._readonly_file = ReadonlyFile.of(self.path)
        elif vfs is None:
            check_writable(self.path)
        plain = vfs is None and self._readonly_file is None and os.name == "posix"
        self._file_lock = FileLock(self.path) if plain else None
        if self._file_lock is not None:
            self._abandon = weakref.finalize(self, self._file_lock.abandon)
        with translated(self.path):
            self._writer = CachedConnection(self._open())
            if not readonly and not is_purged(self._writer.connection):
                self.purge()  # whoever erased did not live to see the end of it
        self._write_ahead_log = WriteAheadLog(self.path, self._writer.connection, self.write_stop)
        _ENGINES.add(self)

    def _open(self) -> apsw.Connection:
        """Open a connection to write by, to files that are held from before it opens them."""
        lock = self._file_lock
        for _ in range(OPENINGS):
            with ExitStack() as undo:
                if lock is not None:
                    undo.callback(lock.close)
                made = lock is None or lock.take()
                connection = connect(self.path, readonly=self.readonly, vfs=self.vfs, readonly_file=self._readonly_file)
                undo.callback(connection.close)
                prepare(connection, self.path, readonly=self.readonly)
                if lock is None or (made and lock.note()):
                    undo.pop_all()
                    return connection
        raise _deleted(self.path, "Nothing was opened.")

    def elsewhere(self) -> Callable[[], Engine] | None:
        return partial(SqliteEngine, os.path.abspath(self.path), readonly=True)

    def view(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> _Viewing:
        self._check()
        return _Viewing(self, tenant)

    def stamp(self) -> bytes | None:
        with self._pool, translated(self.path):
            self._check()
            if self._watcher is None:
                self._watcher = self._open_reader()
                self._watchers += 1
            version = self._watcher.execute("PRAGMA data_version").get
            return b"%d:%d" % (self._watchers, version)

    def transaction(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> _Writing | SharedWrite:
        if self.closed or self.readonly or self._process != pid():
            self._check_writable()
        shared = self.shared_commit
        if shared is not None and shared.is_mine():
            return shared.part(tenant)
        return _Writing(self, tenant)

    def together(self, tenants: Iterable[TenantId] = ()) -> SharedCommit:
        self._check_writable()
        return SharedCommit(self, self.opening)

    def tenants(self) -> list[str]:
        self._check()
        reader = self.take()
        try:
            with translated(self.path):
                return [row[0] for row in reader.connection.execute(self.queries["tenants"])]
        finally:
            self.give_back(reader)

    def opening(self, writer: CachedConnection, tenant: TenantId) -> SqliteTransaction:
        """Return what one write goes through."""
        make = self._make
        if make is None:
            from woodrat.engines.sqlite.transaction import SqliteTransaction  # most commands only read

            make = self._make = SqliteTransaction
        return make(writer, self.queries, tenant, writer.remember(tenant), self.sound)

    def _check_writable(self) -> None:
        self._check()
        if self.readonly:
            raise Unavailable(f"{self.path} was opened read-only. Nothing was written. Open it for writing.")

    def check_writes(self) -> None:
        self.write_stop.check()

    def purge(self) -> bool:
        self._check_writable()
        from woodrat.engines.sqlite.compaction import truncate  # only erasures need it

        return self._carried_out(truncate)

    def purged(self) -> bool:
        with self.view(TenantId("")) as view:
            return view.purged()

    def blockers(self) -> Sequence[str]:
        from woodrat.engines.sqlite.compaction import blockers  # only erasures need it

        return blockers(self.path)

    def estimate(self) -> Compaction:
        from woodrat.engines.sqlite.compaction import estimate  # only erasures need it

        self._check()
        reader = self.take()
        try:
            with translated(self.path):
                return estimate(reader.connection)
        finally:
            self.give_back(reader)

    def compact(self) -> Compaction:
        from woodrat.engines.sqlite.compaction import compact  # only erasures need it

        self._check_writable()
        return self._carried_out(compact)

    def _carried_out(self, work: Callable[[SqliteEngine], _T]) -> _T:
        """Do something to the file that is no write of a tenant."""
        self.write_stop.check()
        with translated(self.path):
            try:
                return work(self)
            except apsw.Error as error:
                self.write_stop.watch(error, self._writer.connection)
                raise

    def storage(self, tenant: TenantId) -> SqliteStorage:
        from woodrat.engines.sqlite.storage import SqliteStorage  # only erasures need it

        return SqliteStorage(self, tenant, open_paths)

    def close(self) -> None:
        try:
            if (
                not (self.closed or self.readonly or self._writing or self.write_stop.is_stopped)
                and self._process == pid()
            ):
                self._check_before_closing()
        finally:
            with self._pool:
                if not self.closed:
                    self.closed = True
                    self.writer_queue.close()
                    if self._process == pid():
                        self._close_idle()
                        if not self._writing:
                            self._close_writer()

    def _check_before_closing(self) -> None:
        """Bring what was written here into the file, if its write-ahead log was deleted."""
        lock = self._file_lock
        if lock is None or not lock.moved() or lock.moved(DATABASE):
            return
        with translated(self.path), self.writer_queue.turn():
            try:
                self.take_writer()
            except Unavailable as error:
                from woodrat.engines.sqlite.recovery import save  # almost never needed

                if self.write_stop.is_stopped or (saved := save(self._writer.connection, self.path)) is None:
                    raise
                raise _deleted(self.path, _saved(saved)) from error
            self.give_back_writer()

    def _close_writer(self) -> None:
        if self._file_lock is not None:
            self._abandon.detach()
            if self._file_lock.moved(WAL):
                # Closing would put old pages into the file, and delete a log that is not ours.
                self._writer.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._file_lock.let_go()
        self._writer.close()
        self._close_file_lock()

    def _close_file_lock(self) -> None:
        if self._file_lock is not None and not self._readers:
            self._file_lock.close()

    def _check(self) -> None:
        if self.closed:
            raise Unavailable("The ledger is closed. Nothing was written. Open it again.")
        if self._process != pid():
            raise Unavailable(
                f"{self.path} was opened before this process was forked. Nothing was written. "
                "Open the ledger again in each process."
            )

    def take(self) -> CachedConnection:
        """Return a connection to read by, for one view at a time."""
        if self._readonly_file is not None:
            self._readonly_file.check()
        try:
            return self._idle.pop()
        except IndexError:
            pass
        with self._pool:
            return CachedConnection(self._open_reader(), reads=True)

    def _open_reader(self) -> apsw.Connection:
        """Open a connection to read by; whoever calls has the pool."""
        if self._file_lock is not None and self._file_lock.moved():
            raise _deleted(self.path, "Nothing was read.")
        connection = connect(self.path, readonly=True, vfs=self.vfs, readonly_file=self._readonly_file)
        self._readers += 1
        return connection

    def give_back(self, reader: CachedConnection) -> None:
        """Keep a connection for the next view; once the engine is closed, close it too."""
        # Taking from a list and adding to it need no lock, and whoever closes comes after or is seen here.
        self._idle.append(reader)
        if self.closed:
            with self._pool:
                self._close_idle()
                if not self._writing:
                    self._close_file_lock()

    def _close_idle(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None
            self._readers -= 1
        try:
            while True:
                self._idle.pop().connection.close()
                self._readers -= 1
        except IndexError:
            pass

    def take_writer(self) -> CachedConnection:
        """Return the connection to write by, to the one whose turn it is."""
        with self._pool:
            if self.closed:
                self._check()
            self.write_stop.check()
            if self._file_lock is not None and self._file_lock.moved(WAL):
                self._go_on(_NOTHING)
            self._writing = True
            return self._writer

    def give_back_writer(self) -> None:
        """Let the next writer have the connection; once the engine is closed, close it."""
        with self._pool:
            self._writing = False
            if self.closed:
                self._close_writer()

    def acknowledge(self) -> CachedConnection:
        """Make sure that the last commit is in the files at the path; return the connection to write by."""
        if self._file_lock is not None and self._file_lock.moved():
            with self._pool:
                self._go_on(_UNKNOWN)
        return self._writer

    def _go_on(self, outcome: str) -> None:
        """Write to the files at the path from now on, and bring the commits there that went into others.

        Only in the writer's turn. All connections of a process share one index of the log, so all are closed.
        """
        assert self._file_lock is not None
        if self._file_lock.moved(DATABASE):
            raise self._stopped(_REPLACED, outcome, "See which file is the right one.")
        self._close_idle()
        if self._readers or not self._file_lock.alone:
            raise _deleted(self.path, outcome)
        from woodrat.engines.sqlite.recovery import bring, save  # almost never needed

        saved = save(self._writer.connection, self.path)
        self._writer.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._writer.close()
        self._file_lock.close()
        cause: Exception | None = None
        try:
            self._writer = CachedConnection(self._open())
            self._write_ahead_log = WriteAheadLog(self.path, self._writer.connection, self.write_stop)
            self.sound.clear()
            if saved is None or bring(saved, self._writer.connection):
                return
        except (apsw.Error, Unavailable) as error:
            cause = error
        raise self._stopped(_DELETED, outcome, _saved(saved)) from cause

    def _stopped(self, problem: str, outcome: str, remedy: str) -> Unavailable:
        """Accept no more writes; return what to say of this one."""
        problem += " No more writes are accepted here, and reads go on."
        remedy += " Close the ledger and open it again."
        self.write_stop.stop(f"{problem} {_NOTHING} {remedy}")
        return Unavailable(f"{self.path}: {problem} {outcome} {remedy}", {"path": self.path, "fenced": True})

    def take_over(self) -> None:
        """Take the write-ahead log over into the file, if it is long; what cannot be now can after the next write."""
        self._write_ahead_log.take_over()


_DELETED = "another program deleted or replaced files beside the ledger (its -wal or -shm) while it was open."
_REPLACED = "another program moved, replaced or deleted the file while it was open."
_NOTHING = "Nothing of this call was written."
_UNKNOWN = (
    "It is not known whether this call was written: it is there whole or not at all. Sent again under its idempotency "
    "key, it is stored once."
)


def _deleted(path: str, outcome: str) -> Unavailable:
    remedy = "Close the ledger and open it again."
    return Unavailable(f"{path}: {_DELETED} {outcome} {remedy}", {"path": path})


def _saved(path: str | None) -> str:
    """Say where the last writes are, if they are not in the file."""
    if path is None:
        return "All earlier writes are in the file."
    return (
        f"The file may lack the last writes that were made here. They are saved in {path}, a ledger of its own: "
        f"`woodrat sync {path}` stores those that are missing, at new positions."
    )


class _Viewing:
    """A view while it lasts."""

    __slots__ = ("_engine", "_memory", "_reader", "_tenant")

    def __init__(self, engine: SqliteEngine, tenant: TenantId) -> None:
        self._engine, self._tenant = engine, tenant

    def __enter__(self) -> SqliteView:
        engine = self._engine
        try:
            self._reader = reader = engine.take()
            try:
                reader.begin()
                self._memory = memory = reader.remember(self._tenant)
                return SqliteView(reader.connection, engine.queries, self._tenant, memory)
            except BaseException:
                self._leave()
                raise
        except apsw.Error as error:
            raise translation(error, engine.path) or error from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._memory.is_full or self._memory.large:
            self._memory.trim()
        try:
            self._leave()
        except apsw.Error as late:
            error = error or late
        if error is not None and isinstance(error, apsw.Error):
            ours = translation(error, self._engine.path)
            if ours is not None:
                raise ours from error
        elif error is not None and (found := unreadable(error, self._engine.path)) is not None:
            raise found from error

    def _leave(self) -> None:
        try:
            self._reader.end()
        finally:
            self._engine.give_back(self._reader)


class _Writing:
    """A transaction while it lasts."""

    __slots__ = ("_engine", "_tenant", "_turn", "_write", "_writer")
    _write: SqliteTransaction | None

    def __init__(self, engine: SqliteEngine, tenant: TenantId) -> None:
        self._engine, self._tenant = engine, tenant
        self._write = None

    def __enter__(self) -> SqliteTransaction:
        engine = self._engine
        self._turn = engine.writer_queue.turn()
        self._turn.__enter__()
        try:
            self._writer = writer = engine.take_writer()
            try:
                writer.cursor.execute("BEGIN IMMEDIATE")
                self._write = engine.opening(writer, self._tenant)
                return self._write
            except BaseException as error:
                engine.write_stop.watch(error, writer.connection)
                self._undo()
                engine.give_back_writer()
                raise
        except BaseException as error:
            self._turn.__exit__(None, None, None)
            ours = translation(error, engine.path) if isinstance(error, apsw.Error) else None
            if ours is None:
                raise
            raise ours from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            try:
                assert self._write is not None, "it was entered"
                if error is None:
                    self._write.flush()
                    self._writer.cursor.execute("COMMIT")
                    self._writer.committed()
                    self._write.trim()
                    self._writer = self._engine.acknowledge()
                    self._engine.take_over()
                else:
                    self._undo()
            except BaseException as late:
                error = late
                self._undo()
                raise
            finally:
                try:
                    if error is not None:
                        self._engine.write_stop.watch(error, self._writer.connection)
                    self._engine.give_back_writer()
                finally:
                    self._turn.__exit__(None, None, None)
        except apsw.Error as late:
            raise translation(late, self._engine.path) or late from late
        if error is None:
            return
        if isinstance(error, apsw.Error) and (ours := translation(error, self._engine.path)) is not None:
            raise ours from error
        if (found := unreadable(error, self._engine.path, asserted=False)) is not None:
            raise found from error

    def _undo(self) -> None:
        self._writer.undo(self._write)
