"""Backing up: the pages of a file as they were at one moment, copied while others write.

The copy is made by SQLite's backup interface inside one read transaction. With a write-ahead log a reader keeps its
moment whatever is written meanwhile, so the copy never begins anew. `VACUUM INTO` would promise the same and cost
several times as much, since it makes every index again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import apsw

from woodrat.engines import private
from woodrat.engines.sqlite.connection import translated
from woodrat.engines.sqlite.engine import SqliteEngine

STEP_PAGES: Final = 4_096
"""How many pages are copied before it is told how far it came."""


def copy_pages(engine: SqliteEngine, path: str, progress: Callable[[int, int], object] | None = None) -> None:
    """Copy the file of an engine to a new one, as it is at this moment."""
    with translated(path):
        reader = engine.take()
        try:
            reader.connection.execute("BEGIN")
            try:
                reader.connection.execute("SELECT count(*) FROM tenant").get  # noqa: B018 - from here on it is this moment
                _copy(reader.connection, path, progress)
            finally:
                reader.connection.execute("ROLLBACK")
        finally:
            engine.give_back(reader)


def _copy(source: apsw.Connection, path: str, progress: Callable[[int, int], object] | None) -> None:
    private.make(path)
    target = apsw.Connection(path)
    try:
        with target.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(STEP_PAGES)
                if progress is not None:
                    progress(backup.page_count - backup.remaining, backup.page_count)
    finally:
        target.close()


def check_pages(path: str) -> str | None:
    """Return what is wrong with the pages of a file, or nothing."""
    with translated(path):
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            found = connection.execute("PRAGMA quick_check(1)").get
            return None if found == "ok" else str(found)
        finally:
            connection.close()
