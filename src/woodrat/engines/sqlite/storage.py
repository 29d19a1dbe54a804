"""Storage: the bytes of a database as they lie in its files, to be searched after an erasure.

Files are opened once and stay open. Closing any descriptor of a file gives up all locks that this process has on it,
SQLite's own included, and another process could then write into what this one reads. Once there are many, those of
databases that nobody here has open any more are closed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Storage
from woodrat.engines.sqlite.connection import queries, translated

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from woodrat.engines.sqlite.cached_connection import CachedConnection
    from woodrat.engines.sqlite.view import SqliteView

FILES: Final = ("", "-wal", "-shm", "-journal", "-queue")
"""What the names of the files of a database end in: the file itself, those of SQLite beside it, and ours."""
HEAD_BYTES: Final = 8
"""How many bytes of a digest the tables keep as a number."""

OPEN_MAX: Final = 64
"""How many files stay open before those that are no longer needed are closed."""

_OPEN: dict[tuple[str, int, int], int] = {}
_LOCK = threading.Lock()


class Readable(Protocol):
    """The engine of the database, as far as its files are searched."""

    path: str
    """The file itself."""

    def view(self, tenant: TenantId) -> AbstractContextManager[SqliteView]:
        """Open a view of a tenant."""

    def take(self) -> CachedConnection:
        """Return a connection to read by."""

    def give_back(self, reader: CachedConnection) -> None:
        """Take a connection back."""


class SqliteStorage(Storage):
    """The files of one database, as far as one tenant is concerned."""

    def __init__(self, engine: Readable, tenant: TenantId, open_paths: Callable[[], Sequence[str]]) -> None:
        self._engine, self._tenant, self._open_paths = engine, tenant, open_paths

    @property
    def shared(self) -> bool:
        """Whether the files hold other tenants too."""
        with self._engine.view(self._tenant) as view:
            return view.shares()

    def files(self) -> Sequence[str]:
        real = os.path.realpath(self._engine.path)
        return [path for suffix in FILES if os.path.isfile(path := real + suffix)]

    def read(self, path: str, offset: int, size: int) -> bytes:
        try:
            with _LOCK:
                descriptor = _descriptor(path, self._open_paths)
                os.lseek(descriptor, offset, os.SEEK_SET)
                return os.read(descriptor, size)
        except FileNotFoundError:  # SQLite takes its files away when the last one closes the database
            return b""

    def holding(self, data: bytes, *, others: bool) -> int:
        number = int.from_bytes(data, "big", signed=True) if len(data) == HEAD_BYTES else None
        values = {"name": self._tenant, "others": others, "data": data, "number": number}
        found = 0
        reader = self._engine.take()
        try:
            with translated(self._engine.path):
                for query in queries("storage.sql").values():
                    found += int(reader.connection.execute(query, values).get)
        finally:
            self._engine.give_back(reader)
        return found


def _descriptor(path: str, open_paths: Callable[[], Sequence[str]]) -> int:
    """Return an open descriptor of a file, the same for every search."""
    found = os.stat(path)
    key = (path, found.st_dev, found.st_ino)
    if key not in _OPEN:
        if len(_OPEN) >= OPEN_MAX:
            _close_unused(open_paths())
        _OPEN[key] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return _OPEN[key]


def _close_unused(open_paths: Sequence[str]) -> None:
    """Close the files of databases that no engine of this process has open."""
    used = tuple(map(os.path.realpath, open_paths))
    for key in list(_OPEN):
        if not key[0].startswith(used):
            os.close(_OPEN.pop(key))
