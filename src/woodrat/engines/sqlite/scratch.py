"""Scratch: a database to which a log is copied, to derive everything from it anew; nothing of it stays.

It is a file without a name, which the system removes once it is closed, however the process ends. Nothing is flushed,
and no write can be undone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

import apsw

from woodrat.canon import moment
from woodrat.engines import codec
from woodrat.engines.sqlite.connection import prepare, set_up
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import Unavailable

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.log.check import Row

ENTRY_BYTES: Final = 2_500
"""About how much room an entry takes with all that is derived from it, beside the bytes of its body."""
BODY_TIMES: Final = 4
"""About how often the bytes of a body are in the file: as it is, in states and in indexes."""
CACHE_KIBIBYTES: Final = 32_768
"""How much of the file is kept in memory."""
_SETTINGS: Final = (
    *("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "secure_delete = OFF"),
    f"cache_size = -{CACHE_KIBIBYTES}",
)


def folder_beside(location: str | None) -> str:
    """Return the folder for temporary files: the one that is set, that of the database, or the system's."""
    beside = None if location is None else os.path.dirname(location)
    if not os.environ.get("TMPDIR") and beside is not None and os.access(beside, os.W_OK | os.X_OK):
        return beside
    return tempfile.gettempdir()


def check_space(folder: str, entries: int, body_bytes: int) -> None:
    """Raise `Unavailable` if a folder has too little space for what a log comes to."""
    needed, free = entries * ENTRY_BYTES + body_bytes * BODY_TIMES, shutil.disk_usage(folder).free
    if free < needed:
        raise Unavailable(
            f"Verifying takes about {needed:,} bytes of free disk space in {folder}, which has {free:,}. Nothing was "
            "verified. Free some space, or name another folder with TMPDIR.",
            {"path": folder, "needed_bytes": needed, "free_bytes": free},
        )


class ScratchEngine(InMemoryEngine):
    """The log of one tenant, and what is derived from it, for as long as this is open."""

    name = "scratch"
    _keeps_few = True

    def __init__(self, folder: str) -> None:
        self._folder = folder
        super().__init__()

    def _connect(self) -> apsw.Connection:
        handle, path = tempfile.mkstemp(prefix="woodrat-", suffix=".scratch", dir=self._folder)
        os.close(handle)
        try:
            connection = apsw.Connection(path)
        finally:
            os.unlink(path)
        set_up(connection)
        connection.authorizer = None
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        prepare(connection, path, readonly=False)
        return connection

    def load(self, tenant: TenantId, rows: Iterable[Row]) -> None:
        """Add rows of a log, which were checked, without anything derived from them."""
        with self.transaction(tenant) as write:
            if write.number is None:
                write.enrol()
            base, micros_of = write.base, moment.to_micros

            @cache
            def log_of(name: str) -> int:
                known = write.value("log", name=name)
                return int(write.value("add_log", name=name) if known is None else known)

            entries, bodies, origins = [], [], []
            for position, log, at, kind, begun, length, request, promise, leaf, nonce, body, origin in rows:
                id = base + position
                header = (id, log_of(log or ""), micros_of(at), codec.NUMBERS[kind])
                entries.append((*header, begun, length, request, promise, leaf))
                bodies.append((id, nonce, body))
                if origin is not None:
                    origins.append((id, log_of(origin.log), origin.position))
            write.many("add_entry", entries)
            write.many("add_body", bodies)
            write.many("add_origin", origins)
            write.memory.head = None
