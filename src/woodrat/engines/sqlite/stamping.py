"""Stamping: whether anything was committed to the file, without asking SQLite.

The first 96 bytes of the write-ahead log's index (`-shm`) are its header, twice: how many transactions there were, how
long the log is, and checksums. Every commit changes it. SQLite's own readers compare these very bytes with those they
saw last, to know whether what they keep is still good, and a commit counts from the moment they change. Here they are
compared without a system call, and without letting other threads in between.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import mmap

HEADER_BYTES: Final = 96
"""Both copies of the header. A commit writes the second first, so both are as they were only when nothing happened."""


class Stamps:
    """Reads the header of a database's index. Some connection to the database stays open as long as it is used."""

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path) + "-shm"
        self._map: mmap.mmap | None = None
        self._tried = False

    def now(self) -> bytes | None:
        """Return the header as it is; `None` where there is none to be read."""
        found = self._map
        if found is None:
            found = self._open()
            if found is None:
                return None
        return found[:HEADER_BYTES]

    def _open(self) -> mmap.mmap | None:
        if not self._tried:
            self._tried = True
            import mmap

            try:
                with open(self._path, "rb") as file:
                    self._map = mmap.mmap(file.fileno(), HEADER_BYTES, access=mmap.ACCESS_READ)
            except (OSError, ValueError):
                pass  # without it everything is asked of SQLite, as ever
        return self._map
