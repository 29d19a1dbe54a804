"""Raw: rows of bytes in a SQLite file, through apsw alone, as durable as a ledger and with the same settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import apsw

from woodrat.engines.sqlite.connection import CACHE_KIBIBYTES, WAL_PAGES

_STATES = "SELECT state FROM entity WHERE state IS NOT NULL ORDER BY id"


class Raw:
    """One table of rows under an integer key."""

    def __init__(self, path: Path, page_bytes: int) -> None:
        self.path = path
        self._connection = apsw.Connection(str(path))
        self._run = self._connection.execute
        self._run(f"PRAGMA page_size = {page_bytes}")
        settle(self._connection)
        self._page_bytes = page_bytes
        self._run("CREATE TABLE said (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")

    def grow(self) -> None:
        """Grow the write-ahead log to where it is taken over, with rows that nobody looks at."""
        self._run("CREATE TABLE filling (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        self._run("BEGIN IMMEDIATE")
        filling = [(bytes(self._page_bytes // 2),)] * (3 * WAL_PAGES)
        self._connection.executemany("INSERT INTO filling (body) VALUES (?)", filling)
        self._run("COMMIT")

    def add(self, row: tuple[bytes]) -> None:
        """Insert one row, in a commit of its own."""
        self._run("INSERT INTO said (body) VALUES (?)", row)

    def add_all(self, rows: Sequence[tuple[bytes]]) -> None:
        """Insert many rows in one transaction."""
        self._run("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO said (body) VALUES (?)", rows)
        self._run("COMMIT")

    def get(self, id: int) -> bytes:
        """Return one row by its key; the first has 1."""
        found: bytes = self._run("SELECT body FROM said WHERE id = ?", (id,)).get
        return found

    def digest_all(self) -> int:
        """Read all rows in order and take the SHA-256 of each; return how many there are."""
        count = 0
        for (body,) in self._run("SELECT body FROM said ORDER BY id"):
            sha256(body).digest()
            count += 1
        return count

    def close(self) -> None:
        self._connection.close()


def settle(connection: apsw.Connection) -> None:
    """Give a connection the settings that a ledger has."""
    for setting in (
        "journal_mode = WAL",
        "synchronous = FULL",
        f"wal_autocheckpoint = {WAL_PAGES}",
        f"cache_size = -{CACHE_KIBIBYTES}",
        "temp_store = MEMORY",
    ):
        connection.execute(f"PRAGMA {setting}")


def page_bytes(path: Path) -> int:
    """Return the page size of a file."""
    with _opened(path) as connection:
        return int(connection.execute("PRAGMA page_size").get)


def file_bytes(path: Path) -> int:
    """Return how large a file is once its write-ahead log is taken over into it."""
    with _opened(path) as connection:
        busy, *_ = next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        assert not busy, "somebody still reads the file"
    return path.stat().st_size


def states(path: Path) -> list[tuple[bytes]]:
    """Return the merge states a ledger's file holds, as rows."""
    with _opened(path) as connection:
        return list(connection.execute(_STATES))


@contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        yield connection
    finally:
        connection.close()
