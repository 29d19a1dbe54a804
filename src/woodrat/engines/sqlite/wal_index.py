"""The index of a write-ahead log: the header that all connections share, and the pages that its frames hold.

The header is read as it lies in memory, and only read. Closing any descriptor of its file gives up SQLite's locks, so
descriptors stay open until the file is gone.
"""

from __future__ import annotations

import os
import threading
from struct import unpack_from
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import mmap

HEADER_BYTES: Final = 96
"""Both copies of the header. A commit writes the second first, so both are as they were only when nothing happened."""
_WAL_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24


class Generation(NamedTuple):
    """What the header says of the write-ahead log."""

    salt: int
    """Counts how often it was begun anew."""
    frames: int
    """How many frames it has."""
    mark: bytes
    """What every frame of it bears."""
    page_size: int


class WalIndex:
    """Reads the index of a database. Some connection to the database stays open as long as it is used."""

    def __init__(self, path: str) -> None:
        self._wal = os.path.realpath(path) + "-wal"
        self._path = os.path.realpath(path) + "-shm"
        self._map: mmap.mmap | None = None
        self._tried = False

    def header(self) -> bytes | None:
        """Return the header as it is; `None` where there is none to be read."""
        found = self._map
        if found is None:
            if self._tried:
                return None
            self._tried = True
            found = self._map = _mapped(self._path)
        return None if found is None else found[:HEADER_BYTES]

    def generation(self) -> Generation | None:
        """Return what the header says; only whoever may write knows that it stays so. `None` where it cannot be had."""
        data = self.header()
        if data is None or data[:48] != data[48:]:
            return None
        size = int(unpack_from("=H", data, 14)[0])
        frames = int(unpack_from("=I", data, 16)[0])
        return Generation(int.from_bytes(data[32:36], "big"), frames, data[32:40], (size & 0xFE00) + ((size & 1) << 16))

    def pages(self, generation: Generation) -> set[int] | None:
        """Return the pages that the frames of a generation hold; `None` if the file is not of that generation."""
        found: set[int] = set()
        if not generation.frames:
            return found
        step = _FRAME_HEADER_BYTES + generation.page_size
        descriptor = os.open(self._wal, os.O_RDONLY | os.O_CLOEXEC)
        try:  # nobody locks this file, so it may be closed
            for number in range(generation.frames):
                header = os.pread(descriptor, _FRAME_HEADER_BYTES, _WAL_HEADER_BYTES + number * step)
                if header[8:16] != generation.mark:
                    return None
                found.add(int.from_bytes(header[:4], "big"))
        finally:
            os.close(descriptor)
        return found


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
