"""Database: the SQLite file of a Neotoma server, read in one transaction and never written to.

The file is checked completely before anything is imported: that it is undamaged, that it is Neotoma's, and that it has
the tables and columns of a known version.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

from woodrat.errors import Fault, NotFound, Refused, Unavailable, WoodratError

NOTHING_IMPORTED: Final = "Nothing was imported."

NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "sources": ("id", "content_hash", "mime_type", "storage_url", "original_filename", "created_at", "user_id"),
    "interpretations": ("id", "source_id", "interpretation_config", "status", "started_at", "completed_at", "user_id"),
    "observations": (
        *("id", "entity_id", "entity_type", "source_id", "interpretation_id", "observed_at", "source_priority"),
        *("fields", "user_id"),
    ),
    "entities": ("id", "entity_type", "canonical_name", "created_at", "merged_to_entity_id", "user_id"),
    "entity_snapshots": ("entity_id", "entity_type", "snapshot", "user_id"),
    "relationship_observations": (
        *("id", "relationship_type", "source_entity_id", "target_entity_id", "source_id", "observed_at"),
        *("source_priority", "metadata", "user_id"),
    ),
    "raw_fragments": ("id", "entity_id", "entity_type", "fragment_key", "fragment_value", "created_at", "user_id"),
    "entity_merges": ("id", "from_entity_id", "to_entity_id", "reason", "merged_by", "created_at", "user_id"),
    "schema_registry": ("id", "entity_type", "schema_definition", "reducer_config", "active", "user_id"),
}
"""The tables that are read, and the columns that they must have."""
OPTIONAL: Final[Mapping[str, tuple[str, ...]]] = {
    "entity_splits": ("id", "source_entity_id", "new_entity_id", "reason", "split_by", "created_at", "user_id"),
}
"""Tables that are read where they are there."""
DERIVED: Final = frozenset(
    {
        *("timeline_events", "relationship_snapshots", "source_entity_edges", "source_event_edges", "substrate_events"),
        *("entity_embedding_rows", "auto_enhancement_queue", "schema_recommendations", "field_blacklist"),
    }
)
"""Tables that Neotoma makes of others, or that steer its own work."""
ACCOUNTS: Final = ("mcp_oauth_", "auth_", "local_auth_", "sandbox_", "sqlite_", "overflow_")
"""Prefixes of tables with logins and the like, which are never read."""
OLDER: Final = frozenset({"records", "record_relationships", "payload_submissions", "interpretation_runs"})
"""Tables of versions that are no longer supported."""


class Database:
    """An open database, in one read transaction."""

    def __init__(self, connection: sqlite3.Connection, path: str, user: str | None) -> None:
        self.path, self.user = path, user
        self._connection = connection
        self._columns = {name: _columns(connection, name) for name in _tables(connection)}
        self.unread = sorted(
            name
            for name in self._columns
            if name not in {*NEEDED, *OPTIONAL, *DERIVED, *OLDER} and not name.startswith(ACCOUNTS)
        )
        """Unknown tables."""

    def rows(self, table: str, order: str = "id") -> Iterator[dict[str, Any]]:
        """Yield the rows of a table that belong to the user, JSON columns as text."""
        if table not in self._columns:
            return
        where = "WHERE user_id = :user OR user_id IS NULL" if self.user is not None else ""
        cursor = self._connection.execute(f"SELECT * FROM {table} {where} ORDER BY {order}", {"user": self.user})
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))

    def count(self, table: str) -> int:
        """Return the number of rows of a table that belong to the user."""
        if table not in self._columns:
            return 0
        where = "WHERE user_id = :user OR user_id IS NULL" if self.user is not None else ""
        found = self._connection.execute(f"SELECT count(*) FROM {table} {where}", {"user": self.user})
        return int(found.fetchone()[0])

    def file_of(self, source: Mapping[str, Any]) -> bytes | None:
        """Return the content of a source if its file is beside the database and unchanged."""
        from hashlib import sha256

        named = source.get("storage_url")
        if not isinstance(named, str) or not named or "://" in named or os.path.isabs(named):
            return None
        for folder in ("sources", "sources_prod"):
            root = os.path.join(os.path.dirname(os.path.abspath(self.path)), folder)
            path = os.path.normpath(os.path.join(root, named))
            if path.startswith(root + os.sep) and os.path.isfile(path):
                with open(path, "rb") as file:
                    content = file.read()
                stated = source.get("content_hash")
                return content if not stated or sha256(content).hexdigest() == stated else None
        return None


@contextmanager
def opened(path: str, user: str | None = None) -> Iterator[Database]:
    """Open a database for reading; a database that cannot be imported is refused, with all reasons."""
    if not os.path.isfile(path):
        raise NotFound(f"There is no file {path}. {NOTHING_IMPORTED} Name the database of a Neotoma server.", {})
    with open(path, "rb") as file:
        if file.read(16) != b"SQLite format 3\0":
            problem = f"{path} is not an SQLite database"
            raise Refused([Fault("file", problem, "Name the database of a Neotoma server.")], NOTHING_IMPORTED)
    try:
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, isolation_level=None, timeout=0.3)
    except sqlite3.Error as error:
        raise _failed(path, error) from error
    try:
        try:
            connection.execute("BEGIN")
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise _damaged(path, state)
            _check(connection, path)
            database = Database(connection, path, _user(connection, user))
            yield database
        except sqlite3.Error as error:
            raise _failed(path, error) from error
    finally:
        connection.close()


def _tables(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def _check(connection: sqlite3.Connection, path: str) -> None:
    """Refuse a database that is not Neotoma's, or that has tables of an unknown version."""
    tables = set(_tables(connection))
    missing = sorted(NEEDED.keys() - tables)
    if len(missing) == len(NEEDED):
        found = ", ".join(sorted(tables)[:8]) or "none"
        problem = f"{path} is not a Neotoma database: its tables are {found}"
        raise Refused([Fault("file", problem, "Name the neotoma.db of a Neotoma server.")], NOTHING_IMPORTED)
    remedy = "Open it once with Neotoma 0.22, which brings older files up to date, and import it then."
    faults = [Fault(f"file/{name}", f"{path} has no table {name}", remedy) for name in missing]
    for name, columns in {**NEEDED, **OPTIONAL}.items():
        if name in tables:
            lacking = sorted(set(columns) - _columns(connection, name))
            faults += [Fault(f"file/{name}", f"the table has no column {column}", remedy) for column in lacking]
    if faults:
        raise Refused(faults, NOTHING_IMPORTED)


def _user(connection: sqlite3.Connection, stated: str | None) -> str | None:
    """Return the user whose rows are imported: the only one of a file, or the named one."""
    found = connection.execute("SELECT DISTINCT user_id FROM observations WHERE user_id IS NOT NULL ORDER BY user_id")
    users = [row[0] for row in found]
    if stated is not None:
        if stated not in users:
            problem = f"there are no observations of {stated}"
            remedy = f"Name one of: {', '.join(users)}." if users else "The file has no observations."
            raise Refused([Fault("user", problem, remedy)], NOTHING_IMPORTED)
        return stated
    if len(users) > 1:
        remedy = f"Name one with --user, and import each into a separate tenant: {', '.join(users)}."
        raise Refused([Fault("user", f"the file has data of {len(users)} users", remedy)], NOTHING_IMPORTED)
    return users[0] if users else None


def _damaged(path: str, why: object) -> Refused:
    remedy = "Restore it from a backup, or copy it again while the server is stopped."
    return Refused([Fault("file", f"{path} is damaged or cut off ({why})", remedy)], NOTHING_IMPORTED)


def _failed(path: str, error: sqlite3.Error) -> WoodratError:
    """Return the refusal for an error of SQLite."""
    text = str(error)
    if "locked" in text or "busy" in text:
        remedy = "Stop the Neotoma server, or import a copy of the file."
        return Unavailable(f"{path} is in use. {NOTHING_IMPORTED} {remedy}", {"path": path})
    if "malformed" in text or "not a database" in text or "disk I/O" in text:
        return _damaged(path, text)
    return Unavailable(f"{path}: cannot be read ({text}). {NOTHING_IMPORTED} Fix it and try again.", {"path": path})


def parsed(text: Any) -> Any:
    """Return the value of a JSON column; text that is not JSON unchanged."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
