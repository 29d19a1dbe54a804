"""The write-ahead log: when it is taken over into the file, and when its own file is cut.

Commits append to the write-ahead log. Once it is long, what it holds is taken over into the database, and the next
commit begins it anew, in the same place. While somebody reads an old state neither is possible, so it grows. Its file
would then stay as large as it ever was; it is cut off once nobody is in the way.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import apsw

from woodrat.engines.sqlite.connection import BUSY_MILLISECONDS, WAL_PAGES

if TYPE_CHECKING:
    from woodrat.engines.sqlite.write_stop import WriteStop

LARGE_BYTES: Final = 16 << 20
"""From this size on the file is cut off: about four times of what it has while nobody reads for long."""
CUT_MILLISECONDS: Final = 20
"""How long the writer waits for short reads to end when it cuts the file."""
PAUSE_COMMITS: Final = 16
"""How many commits go by before it is tried again after somebody was in the way."""


def size_of(path: str) -> int:
    """Return how many bytes the write-ahead log of a database has; 0 where there is none."""
    try:
        return os.stat(os.path.realpath(path) + "-wal").st_size
    except OSError:
        return 0


class WriteAheadLog:
    """The write-ahead log as the writer of one engine sees it."""

    def __init__(self, path: str, connection: apsw.Connection, write_stop: WriteStop) -> None:
        self._path, self._connection, self._write_stop = path, connection, write_stop
        self._pages = 0
        self._pause = 0
        connection.set_wal_hook(self._grown)

    def _grown(self, connection: apsw.Connection, name: str, pages: int) -> int:
        """Take note of its length, after each commit."""
        self._pages = pages
        return apsw.SQLITE_OK

    def take_over(self) -> None:
        """Take it over into the file, if it is long; what cannot be now can after the next write."""
        pause = self._pause
        if pause:
            self._pause -= 1
        if self._pages < WAL_PAGES and pause != 1:
            return
        try:
            pages, done = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if pages == done and pause <= 1 and size_of(self._path) >= LARGE_BYTES:
                self._cut()
        except apsw.Error as error:
            self._write_stop.watch(error, self._connection)

    def _cut(self) -> None:
        """Cut its file to nothing, unless somebody reads from it for longer than the writer waits."""
        self._connection.set_busy_timeout(CUT_MILLISECONDS)
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            self._pause = PAUSE_COMMITS
        else:
            self._pages = 0
        finally:
            self._connection.set_busy_timeout(BUSY_MILLISECONDS)
