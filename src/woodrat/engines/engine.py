"""Engine: a place that keeps logs, one for each tenant, and beside each what can be dropped and derived again.

An engine neither merges nor decides: the ledger does, inside the engine's transaction. There are two, SQLite (in a file
or in memory) and PostgreSQL. What they do differently stands here, in `Storage` and in `Tables`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from woodrat.engines.records import NOTHING_ASKED

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.records import Asks, Compaction
    from woodrat.engines.transaction import Transaction
    from woodrat.engines.view import View


class Storage:
    """What an engine keeps in files, byte for byte, as far as one tenant is concerned."""

    @property
    def shared(self) -> bool:
        """Whether the files hold other tenants too."""
        raise NotImplementedError

    def files(self) -> Sequence[str]:
        """Return every file that can hold bytes of a tenant's, as paths."""
        raise NotImplementedError

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return some bytes of one of the files; fewer at its end, none of one that is gone. No lock is taken."""
        raise NotImplementedError

    def holding(self, data: bytes, *, others: bool) -> int:
        """Return how many rows of the tenant hold some bytes; of `others`, those of all but the server's own."""
        raise NotImplementedError

    def beyond_reach(self) -> Sequence[tuple[str, str]]:
        """Return what still holds what was erased by design, and what whoever runs it has to do, each as a pair."""
        return ()


class Engine:
    """A place that keeps logs."""

    name: str
    location: str | None
    """The file or server that the logs are in; none where they are in this process alone."""
    path: str | None = None
    """The file that the logs are in, as it was named; none where there is no file."""
    readonly: bool = False
    """Whether it was opened to read alone."""
    compacts: bool = False
    """Whether its file may keep copies of what was erased, until it is rewritten while writers wait."""
    reads_elsewhere: bool = False
    """Whether the past may be read from a replica."""
    serves_several: bool = False
    """Whether several servers use it at once: what one commits the others hear of, and duties go to one of them."""

    def view(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> AbstractContextManager[View]:
        """Open a consistent view of a tenant; one that never wrote is empty.

        `asks` is what it will be asked first: an engine that is far away asks it along with the beginning.
        """
        raise NotImplementedError

    def transaction(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> AbstractContextManager[Transaction]:
        """Open the one write a tenant can have at a time. Leaving by an exception undoes all of it.

        `asks` is what it will ask first, as of a view.
        """
        raise NotImplementedError

    def together(self, tenants: Iterable[TenantId] = ()) -> AbstractContextManager[None]:
        """Make the transactions this thread opens until it is left durable together, when it is left.

        Each is still whole or not at all: one that is left by an exception is undone by itself. Nothing may be answered
        before it is left; leaving it by an exception undoes all of them. It is not opened twice. `tenants` are those
        that will be written to, as far as is known: whoever shares commits takes them in one order, so that
        no two wait for each other. A write to another may be `Unavailable` while somebody else writes to it.
        """
        raise NotImplementedError

    def tenants(self) -> list[str]:
        """Return the names of the tenants that have a log, sorted; for whoever looks after the engine, not for one."""
        raise NotImplementedError

    def storage(self, tenant: TenantId) -> Storage:
        """Return the bytes of what is kept, to be searched for what a tenant has erased."""
        raise NotImplementedError

    def purge(self) -> bool:
        """Take out of every file what erasures left there; return whether nothing is left to do.

        Someone who still reads the past, or writes, can be in the way: then it is to be called again.
        """
        raise NotImplementedError

    def purged(self) -> bool:
        """Return whether no erasure waits for a purge."""
        raise NotImplementedError

    def close(self) -> None:
        """Give up what the engine holds; nothing that was acknowledged is lost."""
        raise NotImplementedError

    # What an engine may do besides

    def elsewhere(self) -> Callable[[], Engine] | None:
        """Return what opens the same logs in another process, to read; `None` where they are in this one alone."""
        return None

    def view_at(self, tenant: TenantId, through: int) -> AbstractContextManager[View]:
        """Open a view that has all entries up to a position, and maybe not the latest ones: of a replica, if any."""
        return self.view(tenant)

    def stamp(self) -> bytes | None:
        """Return what stays the same as long as nothing is committed, by whomever; `None` where that is not known.

        It never comes back once it has changed, and asking for it costs next to nothing.
        """
        return None

    def heard(self) -> bytes | None:
        """Return what is another a moment after anything was committed, by whomever; `None` while that is not known.

        What was committed a moment ago may not have been heard of yet: it tells when to look, not what is the case.
        """
        return self.stamp()

    def listen(self, wake: Callable[[], object]) -> None:
        """Have a function called, by another thread, whenever something was heard."""

    def has_duty(self, name: str) -> bool:
        """Return whether a duty is this process's, as long as it lives and reaches the database.

        Two may take it for theirs for some seconds after a connection was cut: what they do must bear that.
        """
        return True

    def check_writes(self) -> None:
        """Raise `Unavailable` if no more writes are accepted, whatever becomes of reads."""

    def blockers(self) -> Sequence[str]:
        """Return who is in the way of a purge, as far as that is known."""
        return ()

    def estimate(self) -> Compaction:
        """Return what a compaction would take; only where the engine compacts."""
        raise NotImplementedError

    def compact(self) -> Compaction:
        """Rewrite the file; `purge` has to follow. `Unavailable` if there is too little space."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any] | None:
        """Return what server, database and connections are set to, as people read it; none where there is no server."""
        return None
