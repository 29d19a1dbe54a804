"""Stamping: whether anything was committed to the file, without asking SQLite.

The first 96 bytes of the write-ahead log's index (`-shm`) are its header, twice: how many transactions there were, how
long the log is, and checksums. Every commit changes it. SQLite's own readers compare these very bytes with those they
saw last, to know whether what they keep is still good, and a commit counts from the moment they change. Here they are
compared without a system call, and without letting other threads in between.

SQLite locks by this file too, and POSIX drops all locks that a process has on a file when it closes any descriptor of
it. So a descriptor opened here is kept, one for a file, until the file is gone.
"""

from __future__ import annotations

import os
import threading
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
            if self._tried:
                return None
            self._tried = True
            found = self._map = _mapped(self._path)
        return None if found is None else found[:HEADER_BYTES]


_kept: dict[tuple[int, int], tuple[int, mmap.mmap]] = {}
"""Descriptors and mappings of indexes, by device and inode."""
_keeping = threading.Lock()


def _mapped(path: str) -> mmap.mmap | None:
    """Return the beginning of a file as it is in memory; `None` where that cannot be had."""
    if os.name != "posix":
        return None
    import mmap

    with _keeping:
        for place, (descriptor, mapping) in list(_kept.items()):
            if not os.fstat(descriptor).st_nlink:  # SQLite removes it when nobody has it open any more
                del _kept[place]
                mapping.close()
                os.close(descriptor)
        try:
            known = os.stat(path)
            place = (known.st_dev, known.st_ino)
            if place not in _kept:
                if known.st_size < HEADER_BYTES:
                    return None
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                opened = os.fstat(descriptor)
                place = (opened.st_dev, opened.st_ino)
                _kept[place] = (descriptor, mmap.mmap(descriptor, HEADER_BYTES, access=mmap.ACCESS_READ))
            return _kept[place][1]
        except (OSError, ValueError):
            return None  # without it everything is asked of SQLite, as ever
