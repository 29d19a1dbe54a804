"""Compaction: how what was erased leaves the files of a database.

SQLite overwrites what it frees (`secure_delete`). Older versions of pages stay in the write-ahead log until it is
truncated, and a page that was rebuilt may keep a copy of a row that moved: only `VACUUM` is sure to leave none. It
rewrites the whole file while writers wait. Readers go on; one that reads an older state keeps the old bytes.
"""

from __future__ import annotations

import os
import shutil
import threading
from typing import TYPE_CHECKING, Final, Protocol

import apsw

from woodrat.clock import monotonic
from woodrat.engines.records import Compaction
from woodrat.engines.sqlite.connection import connect
from woodrat.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from woodrat.engines.sqlite.writer_queue import WriterQueue

PATIENCE_SECONDS: Final = 10.0
"""How long a truncation waits for readers of an older state before it is put off."""
BUSY_MILLISECONDS: Final = 20
"""How long writers wait with it at a time."""
PAUSE_SECONDS: Final = 0.03
"""How long it waits before it tries again."""
BYTES_PER_SECOND: Final = 100_000_000
"""How much a compaction rewrites in a second, for the estimate."""
SPARE_BYTES: Final = 16 << 20
"""Disk space that has to stay free."""
_FRAME_HEADER_BYTES: Final = 24
_READ_LOCKS: Final = range(123, 128)
"""Bytes of the index of the write-ahead log that readers lock."""
_LOCKS: Final = "/proc/locks"


class Compactable(Protocol):
    """The engine whose files are compacted."""

    path: str
    vfs: str | None
    writer_queue: WriterQueue


def truncate(engine: Compactable) -> bool:
    """Move the write-ahead log into the file, cut it off and drop the mark; return False if somebody is in the way."""
    connection = connect(engine.path, vfs=engine.vfs)
    try:
        connection.authorizer = None
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        deadline = monotonic() + PATIENCE_SECONDS
        while True:
            with engine.writer_queue.turn():
                if _truncated(connection):
                    return True
            if monotonic() >= deadline:
                return False
            threading.Event().wait(PAUSE_SECONDS)
    finally:
        connection.close()


def _truncated(connection: apsw.Connection) -> bool:
    try:
        busy, _, _ = next(iter(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")))
        if not busy:
            connection.execute("DELETE FROM purge")
        return not busy
    except (apsw.BusyError, apsw.LockedError):
        return False


def blockers(path: str) -> list[str]:
    """Return who keeps the write-ahead log of a database from being truncated, as far as the system says."""
    try:
        known = os.stat(os.path.realpath(path) + "-shm")
        with open(_LOCKS, encoding="ascii", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    place = f"{os.major(known.st_dev):02x}:{os.minor(known.st_dev):02x}:{known.st_ino}"
    found = {process for process, first, last in _locks(lines, place) if first in _READ_LOCKS or last in _READ_LOCKS}
    mine = os.getpid()
    return [
        "a read in this process" if process == mine else f"a read in process {process}"
        for process in sorted(found, key=lambda process: (process != mine, process))
    ]


def _locks(lines: list[str], place: str) -> Iterator[tuple[int, int, int]]:
    """Yield process, first and last byte of the locks of one file."""
    for line in lines:
        words = line.split()
        # A lock that somebody waits for has an arrow before it; one of an open file has no process.
        if len(words) == 8 and words[1] == "POSIX" and words[5] == place and words[7].isdigit():
            yield int(words[4]), int(words[6]), int(words[7])


def estimate(connection: apsw.Connection) -> Compaction:
    """Return what a compaction of the file of a connection would take."""
    authorizer, connection.authorizer = connection.authorizer, None
    try:
        size, pages, free = (
            int(connection.execute(f"PRAGMA {name}").get) for name in ("page_size", "page_count", "freelist_count")
        )
    finally:
        connection.authorizer = authorizer
    used = pages - free
    return Compaction(
        size_bytes=pages * size,
        # Once in the write-ahead log, and once where SQLite keeps temporary files.
        needed_bytes=used * (size + _FRAME_HEADER_BYTES) + used * size,
        estimated_seconds=round(used * size / BYTES_PER_SECOND, 2),
    )


def compact(engine: Compactable) -> Compaction:
    """Rewrite the file with `VACUUM` while writers wait, and return what it took; `truncate` has to follow.

    Writers of other processes wait for as long as it takes. Cut short anywhere, it leaves the same database.
    """
    connection = connect(engine.path, vfs=engine.vfs)
    try:
        connection.authorizer = None
        connection.execute("PRAGMA temp_store = FILE")
        with engine.writer_queue.turn(), engine.writer_queue.long_turn():
            found = estimate(connection)
            _check_space(engine.path, found.needed_bytes // 2)
            started = monotonic()
            connection.execute("VACUUM")
            after = int(connection.execute("PRAGMA page_count").get) * int(connection.execute("PRAGMA page_size").get)
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get  # noqa: B018 - readers may be in the way
            return found._replace(seconds=round(monotonic() - started, 3), size_after_bytes=after)
    finally:
        connection.close()


def _check_space(path: str, copy_bytes: int) -> None:
    """Refuse a compaction for which there is too little space, before anybody waits for it."""
    needed: dict[int, tuple[str, int]] = {}
    for folder in (os.path.dirname(os.path.realpath(path)), _temporary_folder()):
        device = os.stat(folder).st_dev
        needed[device] = (folder, needed.get(device, ("", SPARE_BYTES))[1] + copy_bytes)
    for folder, size in needed.values():
        free = shutil.disk_usage(folder).free
        if free < size:
            raise Unavailable(
                f"{path}: compacting it takes {size:,} bytes of free disk space in {folder}, which has {free:,}. "
                "Nothing was changed, and the erasure stays pending. Free some space, then run "
                "`woodrat erase --finish` again.",
                {"path": path, "needed_bytes": size, "free_bytes": free},
            )


def _temporary_folder() -> str:
    """Return where SQLite keeps temporary files."""
    named = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp")
    for folder in named:
        if folder and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    return os.getcwd()
