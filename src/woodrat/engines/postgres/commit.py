"""Commit: one write of a tenant, or several that become durable in one commit, each of them whole or not at all.

A write has its turn among those of its process and tenant from before its first statement until after its commit, so
that what is known of the tenant is never used by two of them.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import psycopg
from psycopg.sql import Literal

from woodrat.engines.postgres.connection import translation
from woodrat.engines.sql.cache import Memory
from woodrat.errors import Unavailable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from woodrat.canon.ids import TenantId
    from woodrat.engines.postgres.connection import Connection
    from woodrat.engines.postgres.statements import Statement
    from woodrat.engines.postgres.transaction import PostgresTransaction


@lru_cache(maxsize=1_024)
def set_tenant(tenant: TenantId) -> str:
    """Return the statement that says for which tenant a transaction is.

    It is `SET LOCAL`, which a coordinator of Citus hands on to other nodes; a function it would not.
    """
    return f"SET LOCAL woodrat.tenant = {Literal(tenant).as_string(None)}"


class Place:
    """One tenant as a process that writes knows it, and the turn to write to it."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.memory = Memory()
        self.changes: int | None = None
        """How many changes the tenant had when this was known."""

    def forget(self) -> None:
        """Forget everything: what was known may not have come to be."""
        self.memory, self.changes = Memory(), None


class Writable(Protocol):
    """The engine that is written to."""

    url: str
    location: str | None
    statements: dict[str, Statement]

    def place(self, tenant: TenantId) -> Place:
        """Return the place of a tenant, whose turn it is now."""

    def begin_write(self, tenant: TenantId) -> tuple[Connection, Any]:
        """Begin a transaction that has its tenant locked; return the connection and the row of the head."""

    def opening(self, connection: Connection, tenant: TenantId, place: Place, found: Any) -> PostgresTransaction:
        """Return what one write goes through."""

    def settle(self, write: PostgresTransaction) -> bool | None:
        """Return whether a write whose commit was not answered is in the log."""

    def give_back(self, connection: Connection) -> None:
        """End what a connection is in, and let the next one have it."""

    def translated(self, outcome: str = ...) -> AbstractContextManager[None]:
        """Turn the driver's exceptions into ours."""


class Writing:
    """A transaction while it lasts."""

    def __init__(self, engine: Writable, tenant: TenantId) -> None:
        self._engine, self._tenant = engine, tenant

    def __enter__(self) -> PostgresTransaction:
        engine = self._engine
        self._place = engine.place(self._tenant)
        try:
            with engine.translated():
                self._connection, found = engine.begin_write(self._tenant)
                try:
                    self._write = engine.opening(self._connection, self._tenant, self._place, found)
                except BaseException:
                    self._place.forget()
                    engine.give_back(self._connection)
                    raise
                return self._write
        except BaseException:
            self._place.turn.release()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        engine, write, place = self._engine, self._write, self._place
        try:
            with engine.translated():
                try:
                    if error is None:
                        self._commit()
                    elif write.has_changed:
                        place.forget()
                except BaseException:
                    place.forget()
                    raise
                finally:
                    write.end_view()
                    engine.give_back(self._connection)
                if error is not None and translation(error, engine.url) is not None:
                    raise error
        finally:
            place.turn.release()

    def _commit(self) -> None:
        engine, write, place = self._engine, self._write, self._place
        if not write.finish():
            return
        try:
            with self._connection.pipeline():
                write.send()
                self._connection.execute("COMMIT")
        except psycopg.OperationalError as error:
            if not self._connection.closed:
                raise
            settled = engine.settle(write)
            if settled is None:
                raise _unknown(engine) from error
            if not settled:
                raise
            place.forget()
            return
        assert place.changes is not None
        place.changes += 1
        write.trim()


class Together:
    """A commit to be shared, while it lasts. Only the thread that opened it writes in it."""

    def __init__(self, engine: Writable) -> None:
        self._engine = engine
        self.connection: Connection | None = None
        """Its connection, once a write began."""
        self.places: dict[TenantId, Place] = {}
        """The tenants that were written to, whose turn it has."""
        self.failed = False
        """Whether the connection was lost."""
        self._changed = False

    def begin(self, tenant: TenantId) -> tuple[Connection, Place, Any]:
        """Begin one write of it: return the connection, the tenant's place and the row of its head."""
        engine = self._engine
        if self.failed:
            raise _ended(engine)
        if tenant not in self.places:
            self.places[tenant] = engine.place(tenant)
        place = self.places[tenant]
        if self.connection is None:
            self.connection, found = engine.begin_write(tenant)
            self.connection.execute("SAVEPOINT part")
            return self.connection, place, found
        try:
            with self.connection.pipeline():
                self.connection.execute("SAVEPOINT part")
                self.connection.execute(set_tenant(tenant), prepare=False)
                cursor = self.connection.execute(engine.statements["lock"].parts[0], {"tenant": tenant}, binary=True)
        except BaseException:
            self.take_back(None, place)
            raise
        return self.connection, place, cursor.fetchone()

    def release(self, write: PostgresTransaction, place: Place) -> None:
        """End one write of it, which is whole."""
        assert self.connection is not None
        if write.finish():
            self._changed = True
            assert place.changes is not None
            place.changes += 1
        with self.connection.pipeline():
            write.send()
            self.connection.execute("RELEASE part")
        write.trim()

    def take_back(self, write: PostgresTransaction | None, place: Place) -> None:
        """Undo one write of it."""
        assert self.connection is not None
        if write is None or write.has_changed:
            place.forget()
        if self.connection.closed:
            self.failed = True
            return
        self.connection.execute("ROLLBACK TO part; RELEASE part", prepare=False)

    def commit(self) -> None:
        """Make all of it durable."""
        if self.failed:
            self.undo()
            raise _ended(self._engine)
        if self.connection is None or not self._changed:
            return
        with self._engine.translated(
            "It is not known whether the writes of this call were made: all of them are there or none."
        ):
            try:
                self.connection.execute("COMMIT")
            except BaseException:
                self.undo()
                raise

    def undo(self) -> None:
        """Have nothing of it happen: what was known of its tenants may not have come to be."""
        for place in self.places.values():
            place.forget()

    def leave(self) -> None:
        """Give up the connection and all turns."""
        try:
            if self.connection is not None:
                self._engine.give_back(self.connection)
        finally:
            for place in self.places.values():
                place.turn.release()


class Part:
    """One write of a shared commit, while it lasts."""

    def __init__(self, engine: Writable, shared: Together, tenant: TenantId) -> None:
        self._engine, self._shared, self._tenant = engine, shared, tenant
        self._write: PostgresTransaction | None = None

    def __enter__(self) -> PostgresTransaction:
        shared = self._shared
        with self._engine.translated():
            connection, self._place, found = shared.begin(self._tenant)
            try:
                self._write = self._engine.opening(connection, self._tenant, self._place, found)
            except BaseException:
                shared.take_back(None, self._place)
                raise
            return self._write

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        write = self._write
        assert write is not None, "it was entered"
        with self._engine.translated():
            try:
                if error is None:
                    self._shared.release(write, self._place)
            except BaseException as late:
                error = late
                raise
            finally:
                write.end_view()
                if error is not None:
                    self._shared.take_back(write, self._place)
            if error is not None and translation(error, self._engine.url) is not None:
                raise error


def changes_of(found: Any) -> int:
    """Return how many changes a tenant had, by the row of its head; of one that has none, none."""
    return 0 if found is None else int(found[0])


def _unknown(engine: Writable) -> Unavailable:
    return Unavailable(
        f"{engine.location}: the connection was lost during the commit, and the server cannot be asked. It is not "
        "known whether this call was written: it is there whole or not at all. Sent again under its idempotency key, "
        "the same call is stored once.",
        {"path": engine.location},
    )


def _ended(engine: Writable) -> Unavailable:
    return Unavailable(
        f"{engine.location}: the transaction this write was part of has failed. Nothing of this call was written, and "
        "all earlier writes are safe. Send the same call again.",
        {"path": engine.location},
    )
