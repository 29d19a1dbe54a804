"""The file lock: files that are open stay the files at their path, and every write checks that they did.

SQLite's locks belong to the process. A second SQLite in the same process (Python's `sqlite3` is one) does not notice
them, and closing any descriptor of a file gives them up: a copy or a plain read of the ledger is enough. Whoever closes
the ledger next then believes to be the last, and deletes the write-ahead log while we write to it.

The lock of an open file description belongs to one descriptor: every SQLite notices it, and nobody else can give it up.
Where the system has no such locks (Linux has them), only the check is left. Windows needs neither: there all locks
belong to handles, and a file that is open cannot be deleted.
"""

from __future__ import annotations

import errno
import os
import struct
import threading
from contextlib import suppress
from typing import Final

from woodrat.engines import private

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

SET_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None)
"""The system call that locks for one descriptor; its blocking form is the next number."""
DATABASE, WAL, SHM = "", "-wal", "-shm"
_ENDS: Final = (WAL, SHM, DATABASE)
HAS_LOG_AT, HAS_LOG = 18, b"\2\2"
"""What the header of a database says, and where, once it has a write-ahead log."""
SHARED_BYTES: Final = (0x40000002, 510)
"""Start and length of what every connection locks of the database; whoever deletes the log has it alone."""
OPENED_BYTE: Final = (128, 1)
"""The byte of the log's index that every connection locks; whoever finds it free empties the index."""
PATIENCE_SECONDS: Final = 10.0
"""How long to wait for a process that closes the ledger as the last."""
PAUSE_SECONDS: Final = 0.002

_FLOCK: Final = struct.Struct("hhqqi0q")
"""The system's `struct flock` with 64 bits for offsets: kind, whence, start, length, process."""

Id = tuple[int, int]
"""Device and inode of a file."""


def lock(descriptor: int, kind: int, start: int, length: int, *, wait: bool = False) -> None:
    """Lock or unlock bytes of a file for one descriptor; `OSError` where that is impossible, now or ever."""
    global SET_LOCK
    assert SET_LOCK is not None
    try:
        fcntl.fcntl(descriptor, SET_LOCK + wait, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))
    except OSError as error:
        if error.errno == errno.EINVAL:
            SET_LOCK = None  # a system that knows the name and not the thing
        raise


class _LockedFiles:
    """The files of one ledger, for all engines of this process that have it open."""

    def __init__(self) -> None:
        self.count = 0
        self.descriptors: list[tuple[int, tuple[int, int]]] = []
        """Descriptors, and the bytes that they lock."""
        self.locked = False
        """Whether nobody can delete the log."""
        self.ids: dict[str, Id] = {}
        """The files that the connections have open, by what their names end in."""
        self.abandoned = False
        """Whether nobody closed it, and nobody will."""

    def open(self, path: str) -> int | None:
        """Open the database to lock it; return its descriptor, or None if it is not there or has no log yet."""
        if os.path.exists(path + "-journal"):
            return None  # the process that made it was killed, and SQLite has to have it alone to undo that
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        if os.pread(descriptor, len(HAS_LOG), HAS_LOG_AT) == HAS_LOG:
            return descriptor
        os.close(descriptor)
        return None

    def lock(self, descriptor: int, place: tuple[int, int]) -> bool:
        """Lock bytes of a file until all is unlocked; return False where that is impossible."""
        self.descriptors.append((descriptor, place))
        for _ in range(int(PATIENCE_SECONDS / PAUSE_SECONDS)):
            if SET_LOCK is None:
                break
            try:
                lock(descriptor, fcntl.F_RDLCK, *place)
            except (BlockingIOError, PermissionError):
                threading.Event().wait(PAUSE_SECONDS)
            except OSError:
                break
            else:
                return True
        return False

    def unlock(self) -> None:
        self.locked = False
        for descriptor, place in self.descriptors:
            if SET_LOCK is not None:
                with suppress(OSError):
                    lock(descriptor, fcntl.F_UNLCK, *place)

    def close(self) -> None:
        """Close its descriptors, which gives up the locks that SQLite itself has on these files in this process."""
        while self.descriptors:
            os.close(self.descriptors.pop()[0])


_held: dict[Id, _LockedFiles] = {}
_holding = threading.RLock()  # what is collected meanwhile is let go of in the same thread


class FileLock:
    """Locks the files of a ledger for one engine."""

    def __init__(self, path: str) -> None:
        self._real = os.path.realpath(path)
        self._paths = {end: self._real + end for end in _ENDS}
        self._held: _LockedFiles | None = None
        self._counts = False
        """Whether it counts among those who hold the files."""
        self._pin: int | None = None

    def take(self) -> bool:
        """FileLock the database before it is opened; return False if it has to be made first."""
        with _holding:
            for old, other in list(_held.items()):
                if other.abandoned:
                    other.close()
                    del _held[old]
            place = _id(self._real)
            held = _held.get(place) if place is not None else None
            if held is None or not held.count:
                held = held or _LockedFiles()
                descriptor = held.open(self._real)
                if descriptor is None:
                    return False
                held.ids.clear()
                held.locked = held.lock(descriptor, SHARED_BYTES)
                known = os.fstat(descriptor)
                _held[known.st_dev, known.st_ino] = held
            held.count += 1
            self._held, self._counts = held, True
            if not held.locked and WAL not in held.ids:
                with suppress(OSError):
                    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                    self._pin = os.open(self._paths[WAL], flags, private.mode_like(self._real))
            return True

    def note(self) -> bool:
        """Take note of the files that the connections have open; return False if they are gone already."""
        with _holding:
            held, pin, self._pin = self._held, self._pin, None
            assert held is not None
            if pin is not None:  # whatever is at the path all the time is what was opened meanwhile
                known = os.fstat(pin)
                os.close(pin)  # nobody locks this file
                held.ids[WAL] = known.st_dev, known.st_ino
            for end, path in self._paths.items():
                if end not in held.ids and (found := _id(path)) is not None:
                    held.ids[end] = found
                    if end == SHM and held.locked:
                        with suppress(OSError):
                            held.lock(os.open(path, os.O_RDONLY | os.O_CLOEXEC), OPENED_BYTE)
            return not self.moved()

    def moved(self, *ends: str) -> bool:
        """Return whether one of the files at the path is not the one that is open."""
        held = self._held
        if held is None:
            return False
        for end in ends or _ENDS:
            known = held.ids.get(end)
            if known is not None:
                try:
                    found = os.stat(self._paths[end])
                except OSError:
                    return True
                if found.st_ino != known[1] or found.st_dev != known[0]:
                    return True
        return False

    @property
    def alone(self) -> bool:
        """Whether no other engine of this process has the ledger open."""
        return self._held is None or self._held.count == 1

    def let_go(self) -> None:
        """Allow whoever closes the ledger as the last to delete its log; before the last connection is closed."""
        with _holding:
            held = self._held
            if held is not None and self._counts:
                self._counts = False
                held.count -= 1
                if held.count == 0:
                    held.unlock()

    def close(self) -> None:
        """Close its descriptors; after the last connection is closed."""
        with _holding:
            self.let_go()
            if self._pin is not None:
                os.close(self._pin)
                self._pin = None
            held, self._held = self._held, None
            if held is not None and held.count == 0:
                held.close()
                for place in [place for place, other in _held.items() if other is held]:
                    del _held[place]

    def abandon(self) -> None:
        """Let go of what was never closed; its connections are closed by whoever collects them."""
        with _holding:
            self.let_go()
            held, self._held = self._held, None
            if held is not None:
                held.abandoned = held.count == 0


def _id(path: str) -> Id | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _forget() -> None:
    """Begin anew in a forked process: its parent's files are not its own."""
    global _held, _holding
    for held in list(_held.values()):
        held.close()
    _held, _holding = {}, threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
