"""Commit: one write of a tenant, or several that become durable in one commit, each of them whole or not at all.

A write has its turn among those of its process and tenant from before its first statement until after its commit, so
that what is known of the tenant is never used by two of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import psycopg
from psycopg.sql import Literal

from woodrat.engines.postgres.connection import LOCK_SECONDS, translation
from woodrat.engines.postgres.prefetch import Answers, answers_to, by_key
from woodrat.engines.postgres.statements import all_compiled
from woodrat.engines.postgres.tenant_writer import TenantWriter, end_of, write_questions
from woodrat.engines.postgres.wire import Command, Connection, Rows
from woodrat.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

    from woodrat.canon.ids import TenantId
    from woodrat.engines.postgres.transaction import PostgresTransaction
    from woodrat.engines.records import Asks

BRIEF_MILLISECONDS: Final = 100
"""How long a shared commit waits for a tenant that it was not known to write to: far shorter than it takes until the
server looks for those who wait for each other."""


COMMIT: Final = Command("COMMIT")


@lru_cache(maxsize=1_024)
def set_tenant(tenant: TenantId) -> Command:
    """Return the statement that says for which tenant a transaction is.

    It is `SET LOCAL`, which a coordinator of Citus hands on to other nodes; a function it would not.
    """
    return Command(f"SET LOCAL woodrat.tenant = {Literal(tenant).as_string(None)}")


def on_head(name: str, tenant: TenantId) -> Command:
    """Return one of the statements that take the row of a tenant's head by its name."""
    return Command(all_compiled()[name].parts[0], {"tenant": tenant})


def first_of(rows: Rows) -> tuple[Any, ...] | None:
    """Return the one row there is, or none."""
    return rows[0] if rows else None


class Writable(Protocol):
    """The engine that is written to."""

    url: str
    location: str | None

    def place(self, tenant: TenantId) -> TenantWriter:
        """Return the place of a tenant, whose turn it is now."""

    def begin_write(self, tenant: TenantId, questions: Sequence[Command] = ()) -> tuple[Connection, Any, Answers]:
        """Begin a transaction that has its tenant locked; return the connection, the row of the head, and answers."""

    def opening(
        self, connection: Connection, tenant: TenantId, place: TenantWriter, asks: Asks, found: Any, answers: Answers
    ) -> PostgresTransaction:
        """Return what one write goes through."""

    def settle(self, tenant: TenantId, first_leaf: tuple[int, bytes] | None) -> bool | None:
        """Return whether a commit that was not answered came to be, by the first leaf that it added to a log."""

    def committed(self) -> None:
        """Let other servers know that something was committed."""

    def give_back(self, connection: Connection) -> None:
        """End what a connection is in, and let the next one have it."""

    def translated(self, outcome: str = ...) -> AbstractContextManager[None]:
        """Turn the driver's exceptions into ours."""


class Writing:
    """A transaction while it lasts."""

    def __init__(self, engine: Writable, tenant: TenantId, asks: Asks) -> None:
        self._engine, self._tenant, self._asks = engine, tenant, asks

    def __enter__(self) -> PostgresTransaction:
        engine = self._engine
        self._place = engine.place(self._tenant)
        try:
            with engine.translated():
                questions = write_questions(self._tenant, self._place, self._asks)
                self._connection, found, answers = engine.begin_write(self._tenant, questions)
                try:
                    self._write = engine.opening(
                        self._connection, self._tenant, self._place, self._asks, found, answers
                    )
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
            write.exchange(COMMIT)
        except psycopg.OperationalError as error:
            if not self._connection.closed:
                raise
            settled = engine.settle(write.name, write.first_leaf)
            if settled is None:
                raise _unknown(engine) from error
            if not settled:
                raise
            place.forget()
            engine.committed()
            return
        place.note_change()
        write.trim()
        engine.committed()


class SharedCommit:
    """A commit to be shared, while it lasts. Only the thread that opened it writes in it.

    The tenants it is known to write to are locked with the first write, in the order of their names, in one round trip:
    two processes that share commits over the same tenants wait for one another and never for each other.
    """

    def __init__(self, engine: Writable, tenants: Iterable[TenantId]) -> None:
        self._engine = engine
        self._expected = sorted(set(tenants))
        self.connection: Connection | None = None
        """Its connection, once a write began."""
        self.places: dict[TenantId, TenantWriter] = {}
        """The tenants that were written to, whose turn it has."""
        self.failed = False
        """Whether it cannot go on: it could not begin, or the connection was lost."""
        self._held: set[TenantId] = set()
        """The tenants of which a write was opened: they are locked, and what is known of them holds."""
        self._changed: set[TenantId] = set()
        """Those of which one was carried out. The ends of their logs are noted with the commit."""
        self._tenant: TenantId | None = None
        """For which tenant the statements are now."""
        self._added: tuple[TenantId, tuple[int, bytes]] | None = None
        """The first entry that it appended to any log."""
        self._unsent: list[Command] = []
        """What the last write adds: it goes to the server with the beginning of the next one, or with the commit."""

    def begin(self, tenant: TenantId, asks: Asks) -> tuple[Connection, TenantWriter, Any, Answers]:
        """Begin one write of it: return the connection, the tenant's place, the row of its head, and answers."""
        engine = self._engine
        if self.failed:
            raise _ended(engine)
        if self.connection is None:
            self.failed = True  # until it is begun
            self._lock(sorted({*self._expected, tenant}))
            self.failed = False
        assert self.connection is not None
        is_new = tenant not in self.places
        if is_new:
            self.places[tenant] = engine.place(tenant)
        place = self.places[tenant]
        if tenant not in self._held:
            self._send_rest()  # what goes wrong from here on concerns this write alone
        has_unsent = bool(self._unsent)
        commands = [*self._taken_rest(), Command("SAVEPOINT part")]
        if is_new:  # out of order: whoever has it may wait for one of ours
            commands.append(Command(f"SET LOCAL lock_timeout = {BRIEF_MILLISECONDS}"))
        if tenant != self._tenant:
            commands.append(set_tenant(tenant))
        if is_new:
            commands.append(on_head("add_head", tenant))
        locked_at = len(commands)
        if tenant not in self._held:
            commands.append(on_head("lock", tenant))
        if is_new:
            commands.append(Command(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
        questions = by_key(write_questions(tenant, place, asks))
        try:
            rows = self.connection.exchange([*commands, *questions.values()])
        except BaseException:
            if has_unsent:
                self.failed = True  # it may be the write before that did not come to be
            else:
                self.take_back(None, tenant)
            raise
        self._tenant = tenant
        # The row is not read again: its end of the log is noted with the commit.
        found = (place.changes,) if tenant in self._held else first_of(rows[locked_at])
        self._held.add(tenant)
        return self.connection, place, found, answers_to(questions, rows[len(commands) :])

    def _lock(self, tenants: list[TenantId]) -> None:
        """Begin, and lock tenants in the order they come in."""
        engine = self._engine
        for tenant in tenants:
            self.places[tenant] = engine.place(tenant)
        first, *others = tenants
        self.connection, found, _ = engine.begin_write(first)
        commands: list[Command] = []
        for tenant in tenants if found is None else others:
            commands.append(set_tenant(tenant))
            # Two who begin the same logs wait here, before either has locked what the other needs.
            for name in ("add_head", "lock")[0 if self.places[tenant].changes is None else 1 :]:
                commands.append(on_head(name, tenant))
        if commands:
            self.connection.exchange(commands)
        self._tenant = tenants[-1]

    def release(self, write: PostgresTransaction) -> None:
        """End one write of it, which is whole."""
        assert self.connection is not None
        if write.finish(note_end=False):
            self._changed.add(write.name)
            if self._added is None and write.first_leaf is not None:
                self._added = write.name, write.first_leaf
        self._unsent += [*write.hand_over(), Command("RELEASE part")]
        write.trim()

    def _taken_rest(self) -> list[Command]:
        unsent, self._unsent = self._unsent, []
        return unsent

    def _send_rest(self) -> None:
        """Send what was not sent yet; where that fails, nothing of the commit comes to be."""
        if self._unsent:
            assert self.connection is not None
            try:
                self.connection.exchange(self._taken_rest())
            except BaseException:
                self.failed = True
                raise

    def take_back(self, write: PostgresTransaction | None, tenant: TenantId) -> None:
        """Undo one write of it."""
        assert self.connection is not None
        if write is None or self.connection.closed:
            self.places[tenant].forget()
            self._held.discard(tenant)
            # Where the log goes on was known here alone.
            self.failed = self.failed or tenant in self._changed
        elif write.has_changed:
            write.take_back()
        if self.connection.closed:
            self.failed = True
            return
        self._tenant = None  # the savepoint may have been set before it
        if tenant not in self._changed:
            self._held.discard(tenant)  # and before the lock
        self._unsent += [Command("ROLLBACK TO part"), Command("RELEASE part")]

    def commit(self) -> None:
        """Make all of it durable."""
        if self.failed:
            self.undo()
            raise _ended(self._engine)
        if self.connection is None or not self._changed:
            return
        with self._engine.translated():
            try:
                commands = self._taken_rest()
                for tenant in sorted(self._changed):
                    note_end = Command(all_compiled()["set_head"].parts[0], end_of(tenant, self.places[tenant].memory))
                    commands += (set_tenant(tenant), note_end)
                self.connection.exchange([*commands, COMMIT])
            except BaseException as error:
                self.undo()
                if not isinstance(error, psycopg.OperationalError) or not self.connection.closed:
                    raise
                settled = None if self._added is None else self._engine.settle(*self._added)
                if settled is None:
                    raise _unknown(self._engine) from error
                if not settled:
                    raise
            else:
                for tenant in self._changed:
                    self.places[tenant].note_change()
        self._engine.committed()

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


class SharedWrite:
    """One write of a shared commit, while it lasts."""

    def __init__(self, engine: Writable, shared: SharedCommit, tenant: TenantId, asks: Asks) -> None:
        self._engine, self._shared, self._tenant, self._asks = engine, shared, tenant, asks
        self._write: PostgresTransaction | None = None

    def __enter__(self) -> PostgresTransaction:
        shared = self._shared
        with self._engine.translated():
            connection, self._place, found, answers = shared.begin(self._tenant, self._asks)
            try:
                self._write = self._engine.opening(connection, self._tenant, self._place, self._asks, found, answers)
            except BaseException:
                shared.take_back(None, self._tenant)
                raise
            return self._write

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        write = self._write
        assert write is not None, "it was entered"
        with self._engine.translated():
            try:
                if error is None:
                    self._shared.release(write)
            except BaseException as late:
                error = late
                raise
            finally:
                write.end_view()
                if error is not None:
                    self._shared.take_back(write, self._tenant)
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
