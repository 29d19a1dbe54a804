"""Shared commit: writes of several callers that become durable in one commit, each of them whole or not at all.

A commit waits for the disk; writes that wait at the same time can share it. They are one transaction of SQLite, and
each of them a savepoint: one that is refused is undone by itself, and its neighbours never notice.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

import apsw

from woodrat.engines.sqlite.connection import translation
from woodrat.errors import Unavailable

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.sqlite.cached_connection import CachedConnection
    from woodrat.engines.sqlite.transaction import SqliteTransaction
    from woodrat.engines.sqlite.write_stop import WriteStop
    from woodrat.engines.sqlite.writer_queue import WriterQueue


class Opening(Protocol):
    """Opens what one write goes through."""

    def __call__(self, writer: CachedConnection, tenant: TenantId) -> SqliteTransaction: ...


class Writable(Protocol):
    """The engine whose commit is shared."""

    path: str
    writer_queue: WriterQueue
    write_stop: WriteStop
    shared_commit: SharedCommit | None
    """The commit that is shared now."""

    def take_writer(self) -> CachedConnection:
        """Return the connection to write by, to the one whose turn it is."""

    def give_back_writer(self) -> None:
        """Take it back."""

    def acknowledge(self) -> CachedConnection:
        """Make sure of a commit before anybody is told; return the connection to go on with."""

    def take_over(self) -> None:
        """Take over pages of the log once there are many."""


class SharedCommit:
    """A commit to be shared, while it lasts. Only the thread that opened it writes in it."""

    __slots__ = ("_engine", "_open", "_thread", "_turn", "_writer")

    def __init__(self, engine: Writable, opening: Opening) -> None:
        self._engine, self._open = engine, opening
        self._thread = threading.get_ident()

    def __enter__(self) -> None:
        engine = self._engine
        self._turn = engine.writer_queue.turn()
        self._turn.__enter__()
        try:
            self._writer = engine.take_writer()
            try:
                self._writer.connection.execute("BEGIN IMMEDIATE")
            except BaseException:
                engine.give_back_writer()
                raise
            engine.shared_commit = self
        except BaseException as error:
            self._turn.__exit__(None, None, None)
            ours = translation(error, engine.path) if isinstance(error, apsw.Error) else None
            if ours is None:
                raise
            raise ours from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        engine, connection = self._engine, self._writer.connection
        try:
            engine.shared_commit = None
            if error is None and connection.getautocommit():
                raise _ended(engine.path)
            if error is None:
                connection.execute("COMMIT")
                self._writer.committed()
                self._writer = engine.acknowledge()
                engine.take_over()
        except BaseException as late:
            error = late
            if isinstance(late, apsw.Error) and (ours := translation(late, engine.path)) is not None:
                raise ours from late
            raise
        finally:
            try:
                if error is not None:
                    self._writer.undo(None)
            finally:
                try:
                    engine.write_stop.watch(error, connection)
                    engine.give_back_writer()
                finally:
                    self._turn.__exit__(None, None, None)

    def is_mine(self) -> bool:
        """Return whether this thread may write in it."""
        return self._thread == threading.get_ident()

    def part(self, tenant: TenantId) -> SharedWrite:
        """Return one write of it."""
        return SharedWrite(self._engine.path, self._writer, self._open, tenant)


class SharedWrite:
    """One write of a shared commit, while it lasts."""

    __slots__ = ("_open", "_path", "_tenant", "_write", "_writer")
    _write: SqliteTransaction | None

    def __init__(self, path: str, writer: CachedConnection, opening: Opening, tenant: TenantId) -> None:
        self._path, self._writer, self._open, self._tenant = path, writer, opening, tenant
        self._write = None

    def __enter__(self) -> SqliteTransaction:
        connection = self._writer.connection
        if connection.getautocommit():
            raise _ended(self._path)
        try:
            connection.execute("SAVEPOINT part")
            try:
                self._write = self._open(self._writer, self._tenant)
                return self._write
            except BaseException:
                self._undo()
                raise
        except apsw.Error as error:
            raise translation(error, self._path) or error from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is not None:
                self._undo()
            else:
                try:
                    assert self._write is not None, "it was entered"
                    self._write.flush()
                    self._writer.connection.execute("RELEASE part")
                    self._write.trim()
                except BaseException:
                    self._undo()
                    raise
        except apsw.Error as late:
            raise translation(late, self._path) or late from late
        if isinstance(error, apsw.Error) and (ours := translation(error, self._path)) is not None:
            raise ours from error

    def _undo(self) -> None:
        self._writer.undo_part(self._write)


def _ended(path: str) -> Unavailable:
    return Unavailable(
        f"{path}: the transaction this write was part of has failed. Nothing of this call was written, and all earlier "
        "writes are safe. Send the same call again.",
        {"path": path},
    )
