"""Read-only file: one that lies where nothing can be written, such as a disc, a snapshot or a volume mounted read-only.

SQLite makes two files beside a database with a write-ahead log, even to read it, which fails there. A ledger that was
closed has nothing in that log, so its file alone is all of it, and is opened as one that does not change. A log that
holds something is needed: without it the last writes would be missing.

That nothing changes holds for whoever is on this side of the mount. A volume may still be written to from the other
side, so it is looked at again before each view.
"""

from __future__ import annotations

import os

import apsw

from woodrat.errors import Unavailable

WAL, SHM = "-wal", "-shm"


def is_readonly(path: str) -> bool:
    """Return whether the file system that a file is on takes no writes, from anybody here."""
    try:
        found = os.statvfs(os.path.dirname(os.path.realpath(path)))
    except (AttributeError, OSError):
        return False
    return bool(found.f_flag & os.ST_RDONLY)


class ReadonlyFile:
    """A file on a read-only medium, as it was when it was opened."""

    __slots__ = ("_path", "_real", "_was")

    def __init__(self, path: str) -> None:
        self._path, self._real = path, os.path.realpath(path)
        self._was = self._now()
        self._check_log()

    @classmethod
    def of(cls, path: str) -> ReadonlyFile | None:
        """Return a file that can be read without the files beside it; none where SQLite reads it as any other.

        `Unavailable` where its write-ahead log is needed and cannot be read.
        """
        real = os.path.realpath(path)
        if not os.path.isfile(real) or not is_readonly(real):
            return None
        if all(os.path.exists(real + end) for end in (WAL, SHM)):
            return None  # somebody has it open, or it was left so: SQLite can read all three
        return cls(path)

    def connect(self) -> apsw.Connection:
        """Open it to read, as a file that does not change."""
        from urllib.parse import quote  # most ledgers lie on disks that can be written

        address = f"file:{quote(self._real)}?immutable=1"
        return apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)

    def check(self) -> None:
        """Refuse to go on reading a file that was changed after all."""
        if self._now() != self._was:
            raise Unavailable(
                f"{self._path}: the file is on a read-only medium, and was changed elsewhere since it was "
                "opened. Nothing was read. Open the ledger again.",
                {"path": self._path},
            )
        self._check_log()

    def _now(self) -> tuple[int, ...]:
        found = os.stat(self._real)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def _check_log(self) -> None:
        try:
            size = os.path.getsize(self._real + WAL)
        except OSError:
            return
        if size:
            raise Unavailable(
                f"{self._path}: the ledger was not closed: its write-ahead log {self._path}{WAL} holds {size} bytes "
                "that are not in the file yet, and on a read-only medium SQLite cannot read them. Nothing was read. "
                "Copy both files to a folder that can be written, and open the copy.",
                {"path": self._path, "wal_bytes": size},
            )


def check_writable(path: str) -> None:
    """Refuse to write to a file on a read-only medium, in words."""
    if is_readonly(path):
        raise Unavailable(
            f"{path}: it is on a read-only medium, where nothing can be written. Nothing of this call was written. "
            "To read it, open it read-only (readonly=True; commands that only read do so); to write, copy it to "
            "another folder.",
            {"path": path, "readonly": True},
        )


def connect_readonly(path: str) -> apsw.Connection:
    """Open a file to read, wherever it lies, without any setting."""
    found = ReadonlyFile.of(path)
    return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY) if found is None else found.connect()
