"""Log: the entries themselves, exported, imported, exchanged and backed up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.api.verb import verb
from woodrat.context import Context
from woodrat.engines.records import BEFORE_ALL
from woodrat.ledger import reads
from woodrat.ledger.moments import Moment
from woodrat.runs.recorder import current

if TYPE_CHECKING:
    from os import PathLike
    from typing import BinaryIO

    from woodrat.api.namespace import ReadableLedger, WritableLedger
    from woodrat.api.parameters import (
        EntriesMax,
        PositionArg,
    )
    from woodrat.exchange.server import Server
    from woodrat.exchange.verbs.backup import Backup
    from woodrat.exchange.verbs.export import ExportedLog
    from woodrat.exchange.verbs.importer import Imported
    from woodrat.exchange.verbs.sync import Synced
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry


class PastLog:
    """The verbs of log that read, at one moment."""

    def __init__(self, ledger: ReadableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    @verb(get="/v1/log", command="log")
    def entries(self, *, after: PositionArg = BEFORE_ALL, limit: EntriesMax | None = None) -> tuple[Entry, ...]:
        """Read entries of the log.

        Returns the entries after a position, in order, up to the moment this reads at.
        """
        return reads.entries(self.context, after=after, limit=limit)


class Log(PastLog):
    """The verbs of log."""

    ledger: WritableLedger

    def __init__(self, ledger: WritableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    def export(
        self,
        out: str | PathLike[str] | BinaryIO,
        *,
        after: int = -1,
        through: Moment = "now",
        force: bool = False,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> ExportedLog:
        """Write the log as JSON lines, from which another ledger can be made.

        Writes one line for each entry, to a path or an open binary file.

        `after` and `through` select a range of whole writes. A file appears at the path once everything is written, and
        replaces an existing one only with `force`. With `resume`, the new entries of the log are appended to an
        existing export.
        """
        from woodrat.exchange.verbs import export

        return export.export(
            self.context, out, after=after, through=through, force=force, resume=resume, progress=progress
        )

    def import_(self, source: str | PathLike[str] | BinaryIO, *, progress: Progress | None = None) -> Imported:
        """Import an exported log.

        Reads a path or an open binary file; importing it again changes nothing.

        An empty ledger becomes a clone with the same positions and roots; a clone of an earlier part of the same log is
        extended. Into any other ledger, the entries are merged. `progress` is called with the number of bytes that are
        done.
        """
        from woodrat.exchange.verbs import importer

        return importer.import_file(current.write_context(self.context), source, progress)

    def sync(
        self,
        other: str | PathLike[str] | ReadableLedger,
        *,
        key: str | None = None,
        pull: bool = True,
        push: bool = True,
        progress: Progress | None = None,
    ) -> Synced:
        """Exchange entries with another ledger until both hold the same set.

        `other` is the file of a ledger, whose tenant of the same name is used; an open ledger; an exported log, from
        which entries are only read; or the address of a server, whose tenant belongs to the `key`. If a connection
        breaks, received entries stay; call it again to continue from there.
        """
        from woodrat.exchange.verbs import sync as exchange_sync

        context = getattr(other, "context", None)
        there = current.write_context(context) if isinstance(context, Context) else getattr(other, "server", other)
        return exchange_sync.sync(
            current.write_context(self.context),
            there,
            key=key,
            pulls=pull,
            pushes=push,
            progress=progress,
            connect=_connected,
        )

    def backup(self, out: str | PathLike[str], *, force: bool = False, progress: Progress | None = None) -> Backup:
        """Write a backup of the logs of all tenants while others go on writing.

        The backup is a consistent moment of all logs. It is checked before it is moved into place, and replaces an
        existing file only with `force`. It can be opened directly; `woodrat.copy` restores it up to any position.
        """
        from woodrat.exchange.verbs import backup

        return backup.backup(self.context, out, force=force, progress=progress)


def _connected(address: str, key: str | None) -> Server:
    """Return a connection for syncing with the server at an address; its timeout allows for long imports."""
    from woodrat.api.transport import Transport
    from woodrat.clock import SystemClock
    from woodrat.exchange.relay.remote_peer import ANSWER_SECONDS

    return Transport(address, key, SystemClock(), timeout_seconds=ANSWER_SECONDS)
