"""The write stop: after a failed flush nothing more is written through an engine, until the file is opened anew.

A flush that fails may be the only sign that the system dropped what it was to keep, and the next one may succeed all
the same. So what was written since the last good flush counts for nothing until it was read again from the disk. The
same holds once the file was replaced, or went on without writes that were made here.
"""

from __future__ import annotations

import os

import apsw

from woodrat.errors import Unavailable

_FLUSHES = frozenset({apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC})


def is_flush(error: object) -> bool:
    """Return whether an error of the driver says that a flush failed.

    A failed write is none: its bytes came nowhere, the transaction was undone, and the next one writes in its place.
    """
    return isinstance(error, apsw.IOError) and getattr(error, "extendedresult", None) in _FLUSHES


_FLUSH_FAILED = (
    "a flush to the disk failed earlier, so no more writes are accepted here. Nothing of this call was written; all "
    "that was acknowledged is safe, and reads go on. Check the disk, close the ledger and open it again, then send the "
    "same call again."
)


class WriteStop:
    """Stops the writer of one engine once a flush failed, or its file went on without it."""

    __slots__ = ("_path", "_why")

    def __init__(self, path: str) -> None:
        self._path = path
        self._why: str | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether no more writes are accepted."""
        return self._why is not None

    def check(self) -> None:
        """Refuse a write if writes are stopped."""
        if self._why is not None:
            raise Unavailable(f"{self._path}: {self._why}", {"path": self._path, "fenced": True})

    def stop(self, why: str) -> None:
        """Refuse all later writes, and say why."""
        self._why = why

    def watch(self, error: object, connection: apsw.Connection) -> None:
        """Stop writes if this error of the writer says that a flush failed."""
        if self.is_stopped or not is_flush(error):
            return
        self.stop(_FLUSH_FAILED)
        # Closing would take the write-ahead log over into the file and delete it; it stays for the next opening.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        _drop_cached(os.path.realpath(self._path) + "-wal")


def _drop_cached(path: str) -> None:
    """Ask the system to forget what it holds of a file in memory, so that the next reader sees what the disk has.

    Only for the write-ahead log: closing any other descriptor of the file itself would drop the locks of SQLite.
    """
    if hasattr(os, "posix_fadvise"):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError:
            pass  # it was a request
        finally:
            os.close(descriptor)
