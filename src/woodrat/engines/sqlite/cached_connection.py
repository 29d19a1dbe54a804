"""CachedConnection: a connection to a file, and what is known through it.

A change by anybody else is seen by the data version.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import apsw

from woodrat.engines.cache import Memories, Memory

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId


class Change(Protocol):
    """A write, as far as undoing it is concerned."""

    @property
    def has_changed(self) -> bool:
        """Whether it has changed anything."""

    def take_back(self) -> None:
        """Forget what it has changed of what is known."""


class CachedConnection(Memories):
    """A connection, and what is known through it as long as no other connection writes."""

    def __init__(self, connection: apsw.Connection, *, reads: bool = False) -> None:
        self.connection = connection
        super().__init__(reads=reads)
        self.cursor = connection.cursor()
        """For statements that are done with once they return; a new cursor for each would cost half as much again."""
        self._version: object = None
        self._closed = False

    def begin(self) -> None:
        """Begin what one view reads."""
        self.connection.execute("BEGIN")

    def end(self) -> None:
        """End it."""
        with suppress(apsw.SQLError):  # an error has ended it already
            self.connection.execute("ROLLBACK")

    def remember(self, tenant: TenantId) -> Memory:
        """Return what is known of a tenant; nothing when someone else has written since."""
        # To ask in SQL begins what a view reads; a writer has begun already, and is told without a statement.
        version = self.cursor.execute("PRAGMA data_version").get if self._reads else self.connection.data_version()
        if version != self._version:
            self.forget()
            self._version = version
        return self.of(tenant)

    def committed(self) -> None:
        """Take note that a write of this connection itself was committed: what it knows is what is there now."""
        self._version = self.connection.data_version()

    def undo(self, write: Change | None) -> None:
        """Undo a write that failed; one that changed nothing leaves what is known as it is."""
        if write is None or write.has_changed:
            self.forget()
        # A full disk and the like end the whole transaction by themselves; then there is nothing to go back to.
        if not self._closed and not self.connection.getautocommit():
            self.connection.execute("ROLLBACK")

    def undo_part(self, write: Change | None) -> None:
        """Undo one write of a shared commit, and forget what it changed; its neighbours stay."""
        if write is None or self._closed or self.connection.getautocommit():
            self.forget()
        elif write.has_changed:
            write.take_back()
        if not self._closed and not self.connection.getautocommit():
            self.connection.execute("ROLLBACK TO part; RELEASE part")

    def close(self) -> None:
        """Close the connection; nothing is left to undo."""
        self._closed = True
        self.connection.close()
