"""The PostgreSQL engine: views and transactions over one database.

A write locks the row of its tenant's head, so positions are taken in the order of commits. Writers of one process queue
before they take a connection; those of several processes queue at the row. What is known of a tenant counts as long as
the row says that nobody else has changed anything.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from woodrat.engines.engine import Engine
from woodrat.engines.postgres.commit import (
    SharedCommit,
    SharedWrite,
    Writing,
    changes_of,
    first_of,
    on_head,
    set_tenant,
)
from woodrat.engines.postgres.connection import (
    CONNECT_SECONDS,
    OWNER,
    READER,
    WRITER,
    addresses,
    arguments,
    check,
    configure,
    shown_address,
    translation,
)
from woodrat.engines.postgres.listener import Listener
from woodrat.engines.postgres.prefetch import Answers, Readers, answers_to, by_key, first_questions
from woodrat.engines.postgres.replica import Replica
from woodrat.engines.postgres.statements import all_compiled
from woodrat.engines.postgres.tenant_writer import TenantWriter, write_questions
from woodrat.engines.postgres.vectors import VectorView, is_there
from woodrat.engines.postgres.view import PostgresView
from woodrat.engines.postgres.wire import Command, Connection, Rows
from woodrat.engines.records import NOTHING_ASKED, Asks
from woodrat.errors import Unavailable

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.postgres.storage import PostgresStorage
    from woodrat.engines.postgres.transaction import PostgresTransaction

CONNECTIONS_MAX: Final = 32
"""How many connections one engine opens at most. A view holds one, and so does a write."""
AT_HAND_MAX: Final = 4
"""How many of them are kept at hand; the pool closes others that nobody needs."""
USES_MAX: Final = 1_000
"""After how many uses one is given to the pool."""
PLACES_MAX: Final = 64
"""Of how many tenants a process that writes keeps what it knows."""
TURN_SECONDS: Final = 60
"""How long a writer waits for those of its own process and tenant."""

_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_PURGED: Final = (
    *("body", "receipt", "entity", "said", "naming", "kept", "element", "late"),
    *("index_row", "index_past", "meta", "node"),
)
"""Tables that an erasure takes something out of."""


class PostgresEngine(Engine):
    """Logs of any number of tenants in one database."""

    name = "postgres"
    serves_several = True

    def __init__(self, url: str, *, readonly: bool = False) -> None:
        url, replica = addresses(url)
        self.url = url
        self.replica = None if replica is None else Replica(replica, url, self._open_replica)
        """A copy of the database that follows it, to read the past from."""
        self.reads_elsewhere = self.replica is not None
        self.location: str | None = shown_address(url)
        self.readonly = readonly
        self.closed = False
        self.sound: set[TenantId] = set()
        """Tenants whose log was found sound at its end since the engine was made."""
        self._process = os.getpid()
        self._places: OrderedDict[TenantId, TenantWriter] = OrderedDict()
        self._guard = threading.Lock()
        self._at_hand: deque[Connection] = deque()
        """Connections that were used last. What they are to end may not have been answered yet."""
        self._readers: dict[TenantId, Readers] = {}
        self._shared = threading.local()
        self._sharing = threading.Lock()
        self._listener = Listener(url)
        role = READER if readonly else WRITER
        with self.translated("Nothing was opened."):
            # The pool would try again until its time is up, whatever the server says: this says it at once.
            with psycopg.connect(url, **arguments()) as first:
                check(first, url, role)
                self._view: type[PostgresView] = VectorView if is_there(first) else PostgresView
            self._pool = ConnectionPool(
                url,
                connection_class=Connection,
                kwargs=arguments(),
                configure=lambda connection: configure(connection, role),
                min_size=0,
                max_size=CONNECTIONS_MAX,
                timeout=CONNECT_SECONDS,
                num_workers=1,
                name="woodrat",
                open=True,
            )

    def elsewhere(self) -> Callable[[], Engine]:
        return partial(PostgresEngine, self.url, readonly=True)

    # Other servers

    def heard(self) -> bytes | None:
        return self._listener.heard()

    def listen(self, wake: Callable[[], object]) -> None:
        self._listener.listen(wake)

    def has_duty(self, name: str) -> bool:
        return self._listener.has_duty(name)

    def committed(self) -> None:
        """Let other servers know that something was committed."""
        self._listener.say()

    # Reading

    @contextmanager
    def view(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> Iterator[PostgresView]:
        self._check()
        with self.translated("Nothing was changed."):
            readers = self._readers_of(tenant)
            late = readers.are_late

            def questions(connection: Connection) -> list[Command]:
                memory = None if late else connection.memories.of(tenant)
                return [*first_questions(tenant, asks, memory), *readers.questions(late=late)]

            connection, found, answers = self._begin(tenant, _READ, "open", questions)
            try:
                memory = connection.memories.of(tenant)
                is_known = memory.changes == changes_of(found)
                if not is_known:
                    connection.memories.forget_one(tenant)
                    memory = connection.memories.of(tenant)
                    memory.changes = changes_of(found)
                view = self._view(connection, tenant, memory, found, answers)
                if not is_known and not late:
                    view.ask_ahead([*first_questions(tenant, asks, None), *readers.questions(late=True)])
                try:
                    yield view
                finally:
                    readers.learn(view.asked, late=not is_known)
                    view.end_view()
                    if memory.is_full or memory.large:
                        memory.trim()
            finally:
                self.give_back(connection, "COMMIT")

    def _readers_of(self, tenant: TenantId) -> Readers:
        """Return those who read a tenant."""
        found = self._readers.get(tenant)
        if found is None:
            with self._guard:
                if len(self._readers) >= PLACES_MAX:
                    self._readers.clear()
                found = self._readers[tenant] = Readers()
        return found

    @contextmanager
    def view_at(self, tenant: TenantId, through: int) -> Iterator[PostgresView]:
        """Open a view that has all entries up to a position: of a replica that has got there, or else of the server."""
        with ExitStack() as stack:
            view = None if self.replica is None else self.replica.view(stack, tenant, through)
            yield stack.enter_context(self.view(tenant)) if view is None else view

    @staticmethod
    def _open_replica(url: str) -> PostgresEngine:
        return PostgresEngine(url, readonly=True)

    def tenants(self) -> list[str]:
        self._check()
        with self.translated("Nothing was changed."), self.owner() as connection:
            return [row[0] for row in _run(connection, "tenants")]

    # Writing

    def transaction(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> Writing | SharedWrite:
        self._check_writable()
        shared: SharedCommit | None = getattr(self._shared, "now", None)
        return Writing(self, tenant, asks) if shared is None else SharedWrite(self, shared, tenant, asks)

    @contextmanager
    def together(self, tenants: Iterable[TenantId] = ()) -> Iterator[None]:
        self._check_writable()
        assert getattr(self._shared, "now", None) is None, "it is not opened twice"
        # One at a time: two could each hold a tenant that the other waits for.
        if not self._sharing.acquire(timeout=TURN_SECONDS):
            raise self.waited()
        try:
            shared = self._shared.now = SharedCommit(self, tenants)
            try:
                yield
            except BaseException:
                shared.undo()
                raise
            else:
                shared.commit()
            finally:
                self._shared.now = None
                shared.leave()
        finally:
            self._sharing.release()

    def place(self, tenant: TenantId) -> TenantWriter:
        """Return the place of a tenant, whose turn it is now; whoever took it releases it."""
        with self._guard:
            found = self._places.get(tenant)
            if found is None:
                found = self._places[tenant] = TenantWriter()
                for name in list(self._places)[:-PLACES_MAX]:
                    if not self._places[name].turn.locked():
                        del self._places[name]
            self._places.move_to_end(tenant)
        if not found.turn.acquire(timeout=TURN_SECONDS):
            raise self.waited()
        return found

    def opening(
        self, connection: Connection, tenant: TenantId, place: TenantWriter, asks: Asks, found: Any, answers: Answers
    ) -> PostgresTransaction:
        """Return what one write goes through, once its tenant is locked and its first questions are answered."""
        from woodrat.engines.postgres.transaction import PostgresTransaction  # most commands only read

        if found is None:
            found = first_of(connection.exchange((on_head("add_head", tenant), on_head("lock", tenant)))[1])
        place.is_shared = place.changes != changes_of(found)
        if place.is_shared:
            place.forget()
            place.changes = changes_of(found)
            questions = by_key(write_questions(tenant, place, asks))
            unknown = {key: questions[key] for key in questions.keys() - answers.keys()}
            if unknown:
                answers.update(answers_to(unknown, connection.exchange(list(unknown.values()))))
        return PostgresTransaction(connection, tenant, place, found, self.sound, answers)

    def begin_write(self, tenant: TenantId, questions: Sequence[Command] = ()) -> tuple[Connection, Any, Answers]:
        """Begin a transaction that has its tenant locked; return the connection, the row of the head, and answers."""
        return self._begin(tenant, "BEGIN", "lock", lambda _: questions)

    def settle(self, tenant: TenantId, first_leaf: tuple[int, bytes] | None) -> bool | None:
        """Return whether a commit that was not answered came to be, by the first leaf that it added to a log.

        `None` where nobody knows yet. Whoever asks waits for the lock first, so that the lost transaction is over, one
        way or the other.
        """
        if first_leaf is None:
            return None
        position, leaf = first_leaf
        try:
            connection, _, _ = self.begin_write(tenant)
            try:
                return _run(connection, "leaves", tenant=tenant, low=position, high=position) == [(leaf,)]
            finally:
                self.give_back(connection)
        except (psycopg.Error, PoolTimeout):
            return None

    # Looking after it

    def purge(self) -> bool:
        self._check()
        if self.readonly:
            return self.purged()
        outcome = "What was erased is gone from the log and may still stand in files."
        with self.translated(outcome), self.owner() as connection:
            due = [row[0] for row in _run(connection, "purge_due")]
            if not due:
                return True
            for table in _PURGED:
                connection.execute(f"VACUUM (FULL) {table}")
            _run(connection, "purge_done", **all_compiled()["purge_done"].arrays({"tenants": due}))
        return True

    def purged(self) -> bool:
        self._check()
        with self.translated("Nothing was changed."), self.owner() as connection:
            return not _run(connection, "purge_due")

    def storage(self, tenant: TenantId) -> PostgresStorage:
        from woodrat.engines.postgres.storage import PostgresStorage  # only erasures need it

        return PostgresStorage(self, tenant)

    def settings(self) -> dict[str, Any]:
        """Return what server, database and connections are set to, as people read it."""
        from woodrat.engines.postgres.settings import settings  # only `doctor` asks

        self._check()
        with self.translated("Nothing was changed."):
            self._hand_back(0)
            connection = self._pool.getconn()
            try:
                return settings(connection, self._pool)
            finally:
                self.give_back(connection)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self._process == os.getpid():
                if self.replica is not None:
                    self.replica.close()
                self._listener.close()
                self._hand_back(0)
                self._pool.close()

    # Connections

    @contextmanager
    def owner(self) -> Iterator[Connection]:
        """Give a connection that acts as the owner of the tables, outside of any transaction."""
        connection = self._take()
        try:
            connection.settle()
            role = READER if self.readonly else WRITER
            connection.execute(f"SET ROLE {OWNER}")
            try:
                yield connection
            finally:
                if not connection.closed:
                    connection.execute(f"SET ROLE {role}")
        finally:
            self.give_back(connection)

    def _begin(
        self, tenant: TenantId, begin: str, look: str, asking: Callable[[Connection], Sequence[Command]]
    ) -> tuple[Connection, Any, Answers]:
        """Begin a transaction of a tenant, look at its head and ask some questions, in one round trip."""
        for again in (True, False):
            connection = self._take()
            try:
                questions = by_key(asking(connection))
                commands = (Command(begin), set_tenant(tenant), on_head(look, tenant), *questions.values())
                _, _, head, *rows = connection.exchange(commands)
                found = first_of(head)
                if found is not None:
                    connection.plan_for(found[2])
                return connection, found, answers_to(questions, rows)
            except BaseException as error:
                if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                    connection.close()  # it was the leader's: the next one looks for who is now
                lost = connection.closed and isinstance(error, psycopg.Error)
                self.give_back(connection)
                if not (lost and again):
                    raise
                # The server was away: no connection of before is good any more.
                self._hand_back(0)
                self._pool.check()
        raise AssertionError("it returns or raises")

    def _take(self) -> Connection:
        """Return a connection that nobody uses."""
        try:
            return self._at_hand.pop()
        except IndexError:
            return self._pool.getconn()

    def give_back(self, connection: Connection, end: str = "ROLLBACK") -> None:
        """End what a connection is in, without waiting for it, and let the next one have it."""
        if not connection.closed and connection.pgconn.transaction_status != TransactionStatus.IDLE:
            connection.send(end)
        connection.uses += 1
        if connection.closed or self.closed:
            self._pool.putconn(connection)
        elif connection.uses % USES_MAX == 0:  # the pool closes those that are old
            with suppress(psycopg.Error):
                connection.settle()
            self._pool.putconn(connection)
        else:
            self._at_hand.append(connection)
            if len(self._at_hand) > AT_HAND_MAX:
                self._hand_back(AT_HAND_MAX)

    def _hand_back(self, left: int) -> None:
        """Have the pool look after the connections that were used least recently, but for so many."""
        while len(self._at_hand) > left:
            try:
                connection = self._at_hand.popleft()
            except IndexError:
                return  # somebody else was faster
            with suppress(psycopg.Error):
                connection.settle()
            self._pool.putconn(connection)

    @contextmanager
    def translated(self, outcome: str = "Nothing of this call was written.") -> Iterator[None]:
        """Turn the driver's exceptions into ours; they stay as the cause."""
        try:
            yield
        except Exception as error:
            ours = translation(error, self.url, outcome)
            if ours is None:
                raise
            raise ours from error

    def waited(self) -> Unavailable:
        """Return the error for who waited too long for other writers of this process."""
        return Unavailable(
            f"{self.location}: other writers of this process took more than {TURN_SECONDS} seconds. Nothing of this "
            "call was written. Send the same call again.",
            {"path": self.location},
        )

    def _check(self) -> None:
        if self.closed:
            raise Unavailable("The ledger is closed. Nothing was written. Open it again.")
        if self._process != os.getpid():
            raise Unavailable(
                f"{self.location} was opened before this process was forked. Nothing was written. "
                "Open the ledger again in each process."
            )

    def _check_writable(self) -> None:
        self._check()
        if self.readonly:
            raise Unavailable(f"{self.location} was opened read-only. Nothing was written. Open it for writing.")


def _run(connection: Connection, name: str, **values: Any) -> Rows:
    """Run a statement, and return its rows."""
    return connection.exchange((Command(all_compiled()[name].parts[0], values),))[0]
