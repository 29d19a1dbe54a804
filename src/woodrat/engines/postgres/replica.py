"""Replica: a copy of the database that follows it, from which the past is read.

What a log held at a position never changes, so a replica that has got there answers as the server would. Where it has
not, or cannot be reached, the server is asked. An erasure counts there as soon as it has arrived.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Protocol

import psycopg

from woodrat.clock import monotonic
from woodrat.engines.postgres.connection import arguments, shown_address
from woodrat.errors import Fault, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from woodrat.canon.ids import TenantId
    from woodrat.engines.postgres.view import PostgresView

AGAIN_SECONDS: Final = 5.0
"""How long a replica that could not be reached is not asked."""
_IDENTITY: Final = "SELECT system_identifier, current_database() FROM pg_control_system()"


class Readable(Protocol):
    """An engine that only reads."""

    def view(self, tenant: TenantId) -> AbstractContextManager[PostgresView]:
        """Open a view of a tenant."""

    def close(self) -> None:
        """Give up its connections."""


class Replica:
    """The replica of an engine, opened when it is first needed. Any thread may use it."""

    def __init__(self, url: str, primary: str, opened: Callable[[str], Readable]) -> None:
        self._url, self._primary, self._opened = url, primary, opened
        self._lock = threading.Lock()
        self._engine: Readable | None = None
        self._absent_until = 0.0
        self.reads = 0
        """How many views it has given."""
        self.behind = 0
        """How often it was asked for more than it had."""

    def view(self, stack: ExitStack, tenant: TenantId, through: int) -> PostgresView | None:
        """Open a view that has all entries up to a position; `None` where it is behind or away."""
        if monotonic() < self._absent_until:
            return None
        try:
            engine = self._open()
            with ExitStack() as own:
                view = own.enter_context(engine.view(tenant))
                if view.head().position < through:
                    self.behind += 1
                    return None
                stack.push(own.pop_all())
        except Unavailable:
            self._absent_until = monotonic() + AGAIN_SECONDS
            return None
        self.reads += 1
        return view

    def close(self) -> None:
        """Give up its connections."""
        with self._lock:
            if self._engine is not None:
                self._engine.close()

    def _open(self) -> Readable:
        with self._lock:
            if self._engine is None:
                if _identity(self._url) != _identity(self._primary):
                    problem = f"{shown_address(self._url)} is no replica of {shown_address(self._primary)}"
                    raise Refused([Fault("db", problem, "Name a standby of the same server.")], "Nothing was read.")
                self._engine = self._opened(self._url)
            return self._engine


def _identity(url: str) -> Any:
    """Return what a server and all its replicas have in common."""
    try:
        with psycopg.connect(url, **arguments()) as connection:
            return connection.execute(_IDENTITY, prepare=False).fetchone()
    except psycopg.OperationalError as error:
        raise Unavailable(f"{shown_address(url)} cannot be reached.", {"path": shown_address(url)}) from error
