"""Append-only: no statement on the engine's own connection changes the log, and a strange connection meets triggers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw
import pytest

from woodrat.engines.sqlite.connection import _PROTECTED
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on, log_of, told_on

INSTEAD: Final = {
    "entry": "SELECT id, log, recorded_at + 1, kind, write, length, request, commitment, zeroblob(32) FROM entry",
    "body": "SELECT id, nonce, X'7B7D' FROM body",
    "tenant": "SELECT id, name || 'x' FROM tenant",
    "log": "SELECT id, name || 'x' FROM log",
    "receipt": "SELECT tenant, agent, key, request, X'00', nonce FROM receipt",
    "origin": "SELECT id, log, position + 1 FROM origin",
    "clone": "SELECT id, log + 1 FROM clone",
}
"""Other rows under the same keys, by table."""
OTHER: Final = {
    "entry": "leaf = zeroblob(32)",
    "body": "body = X'7B7D'",
    "tenant": "name = name || 'x'",
    "log": "name = name || 'x'",
    "receipt": "report = X'00'",
    "origin": "position = position + 1",
    "clone": "log = log + 1",
}
"""Other values, by table."""
ROWS: Final = {
    statement: table
    for table in sorted(INSTEAD)
    for statement in (
        f"UPDATE {table} SET {OTHER[table]}",
        f"UPDATE OR REPLACE {table} SET {OTHER[table]}",
        f"DELETE FROM {table}",
        f"INSERT OR REPLACE INTO {table} {INSTEAD[table]}",
        f"REPLACE INTO {table} {INSTEAD[table]}",
        f"INSERT INTO {table} {INSTEAD[table]} WHERE true ON CONFLICT DO UPDATE SET {OTHER[table]}",
    )
}
"""Statements that change rows, and the tables they change."""


STRUCTURE: Final = [
    *(f"DROP TABLE {table}" for table in sorted(INSTEAD)),
    "DROP TRIGGER entry_no_update",
    "DROP TRIGGER body_no_delete",
    "DROP INDEX entry_kind",
    "ALTER TABLE entry RENAME TO old",
    "ALTER TABLE entry DROP COLUMN length",
    "ALTER TABLE body ADD COLUMN more TEXT",
    "CREATE TABLE more (x)",
    "CREATE TEMP TABLE entry (id, leaf)",
    "CREATE TEMP VIEW body AS SELECT 1 AS id, X'00' AS nonce, X'00' AS body",
    "CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM entity; END",
    "CREATE TEMP TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM entity; END",
    "CREATE VIEW v AS SELECT 1",
    "CREATE VIRTUAL TABLE v USING fts5(x)",
    "ATTACH ':memory:' AS other",
    "VACUUM INTO '/nowhere/copy.db'",
    "DELETE FROM sqlite_schema",
    "UPDATE sqlite_schema SET sql = ''",
]
"""Statements that change what tables there are, or put others in their place."""
SETTINGS: Final = [
    "journal_mode = DELETE",
    "journal_mode = OFF",
    "journal_mode(MEMORY)",
    "main.journal_mode = DELETE",
    "synchronous = OFF",
    "synchronous = NORMAL",
    "recursive_triggers = OFF",
    "writable_schema = ON",
    "trusted_schema = ON",
    "ignore_check_constraints = ON",
    "locking_mode = EXCLUSIVE",
    "wal_autocheckpoint = 0",
    "application_id = 1",
    "user_version = 1",
    "schema_version = 1",
    "max_page_count = 1",
    "query_only = ON",
    "cell_size_check = OFF",
]
"""Settings that would weaken what protects the log."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a story in it, to copy."""
    path = tmp_path_factory.mktemp("told") / "story.db"
    made = SqliteEngine(path)
    elsewhere = ledger_on(InMemoryEngine(), clock=FixedClock(seed="elsewhere"))
    elsewhere.store({"entity_type": "thing", "id": "far"})
    told_on(made).log.sync(elsewhere, push=False)
    ledger_on(made, tenant="clone").log.sync(elsewhere, push=False)
    made.close()
    return path


@pytest.fixture
def story(told: Path, tmp_path: Path) -> Path:
    """A file with a story in it, closed."""
    return Path(shutil.copy(told, tmp_path / "story.db"))


@pytest.fixture
def engine(story: Path) -> Iterator[SqliteEngine]:
    """An engine with a story in it."""
    made = SqliteEngine(story)
    yield made
    made.close()


def rows(connection: apsw.Connection) -> dict[str, list[object]]:
    """Return all rows of the tables that only grow."""
    return {table: list(connection.execute(f"SELECT * FROM main.{table}")) for table in sorted(INSTEAD)}


def test_every_protected_table_is_tried() -> None:
    """The statements below cover every table that only grows."""
    assert set(INSTEAD) == _PROTECTED


@pytest.mark.parametrize("statement", [*ROWS, *STRUCTURE])
def test_the_engines_own_connection_refuses(engine: SqliteEngine, statement: str) -> None:
    """No statement changes or replaces a row of the log, its tables or its triggers."""
    before, log = rows(engine._writer.connection), log_of(engine)
    with pytest.raises(apsw.Error):
        engine._writer.connection.execute(statement)
    assert rows(engine._writer.connection) == before
    assert log_of(engine) == log


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_that_protect_the_log_stay(engine: SqliteEngine, setting: str) -> None:
    """No setting that makes the log durable or append-only can be changed on the engine's connection."""
    with pytest.raises(apsw.AuthError):
        engine._writer.connection.execute(f"PRAGMA {setting}")


@pytest.mark.parametrize("statement", [*ROWS, *STRUCTURE])
def test_reading_connections_refuse_too(engine: SqliteEngine, statement: str) -> None:
    """A connection for reading changes nothing either."""
    reader = engine.take().connection
    with pytest.raises(apsw.Error):
        reader.execute(statement)
    reader.close()


@pytest.mark.parametrize("statement", [*ROWS])
def test_a_strange_connection_meets_triggers(story: Path, statement: str) -> None:
    """A program without our authorizer is refused by the file itself, REPLACE included where triggers recurse."""
    raw = apsw.Connection(str(story))
    raw.execute("PRAGMA recursive_triggers = ON")
    before = rows(raw)
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        raw.execute(statement)
    assert rows(raw) == before
    raw.close()


@pytest.mark.parametrize("statement", ROWS)
def test_without_protection_the_statements_succeed(story: Path, statement: str) -> None:
    """The statements are refused because of triggers and authorizer: on a file without them each changes rows."""
    raw = apsw.Connection(str(story))
    for (name,) in list(raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")):
        raw.execute(f'DROP TRIGGER "{name}"')
    before = rows(raw)
    raw.execute(statement)
    assert rows(raw) != before
    raw.close()


@pytest.mark.parametrize("statement", [s for s in STRUCTURE if "sqlite_schema" not in s and "VACUUM" not in s])
def test_without_an_authorizer_the_structure_changes(engine: SqliteEngine, statement: str) -> None:
    """The structure is safe because of the authorizer: without it the same statements pass."""
    engine._writer.connection.authorizer = None
    engine._writer.connection.execute(statement)


@pytest.mark.parametrize(("name", "value"), [("synchronous", 2), ("recursive_triggers", 1), ("trusted_schema", 0)])
def test_a_connection_has_the_safe_settings(engine: SqliteEngine, name: str, value: int) -> None:
    """Commits are synced in full, triggers recurse, and what the schema calls is not trusted."""
    engine._writer.connection.authorizer = None
    assert engine._writer.connection.execute(f"PRAGMA {name}").get == value
