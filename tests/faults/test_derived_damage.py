"""Damaged derived rows: whatever a table other than the log holds, reading answers or is `Corrupt` with what to do.

Each case damages one column of one derived table in a copy of a file that every table of is filled: random bytes, NULL,
values of another type, rows that are gone. SQLite would refuse most of it, so the layout is loosened meanwhile and put
back. Then every verb that reads is called. `verify` must name the damage, or nothing may read otherwise than before,
and `rebuild` must put it right.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw
import pytest
from tests.faults.processes import FULL
from tests.faults.test_tampering import told

from woodrat import Ledger
from woodrat.cli.main import main
from woodrat.engines.sqlite import engine as engines
from woodrat.engines.sqlite.connection import _PROTECTED
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.errors import Corrupt, WoodratError
from woodrat.ledger import index as log_index
from woodrat.ledger import state_index
from woodrat.recall import index as recall_index
from woodrat.testing.ledgers import answers, ledger_on, spelled

CASES: Final = 40 if FULL else 2
"""How often each table is damaged, each time elsewhere and otherwise."""
TENANTS: Final = ("default", "other")
PAST: Final = 58
"""A position in the middle of the history of `contact/Long`."""
VALUES: Final = (
    *(None, -1, 0, 7, 2**62, -(2**63), 1.5, "", "text", "\x00", "{", "[1]", "[{}]", "2026-01-01T00:00:00.000000Z"),
    *(b"", b"\xff\xfe", b"[]", b"{}", b"[[[1]]]", bytes(32), bytes(9)),
)
"""What is put in the place of a value."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that every table of is filled."""
    path = tmp_path_factory.mktemp("derived") / "l.db"
    told(path)
    engine = SqliteEngine(path)
    ledger_on(engine, "default").query(where={"city": "City 1"})  # brings the state index up to date
    engine.close()
    return path


def derived_tables(path: Path) -> list[str]:
    """Return every table that is not the log's."""
    connection = apsw.Connection(str(path))
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    connection.close()
    return [name for name in names if name not in _PROTECTED | {"purge"} and not name.startswith("sqlite_")]


TABLES: Final = (
    *("anchor", "element", "entity", "index_past", "index_row", "kept", "late", "meta", "naming", "node"),
    "said",
)


def test_every_derived_table_is_tried(story: Path) -> None:
    """A table that is added to the layout is added here too, and none of them is empty."""
    assert derived_tables(story) == sorted(TABLES)
    connection = apsw.Connection(str(story))
    assert all(connection.execute(f"SELECT count(*) FROM {name}").get for name in TABLES)
    connection.close()


@contextmanager
def loosened(path: Path) -> Iterator[apsw.Connection]:
    """Open a file in which every column takes every value; the layout is put back afterwards."""
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    made = list(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%'"))
    _set_layout(connection, [(name, str(sql).replace("NOT NULL", "").replace("STRICT, ", "")) for name, sql in made])
    connection.close()
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    loose = [(name, sql.replace(") STRICT", ")")) for name, sql in _layout(connection)]
    _set_layout(connection, loose)
    connection.close()
    connection = apsw.Connection(str(path))
    try:
        yield connection
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        _set_layout(connection, [(str(name), str(sql)) for name, sql in made])
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()


def _layout(connection: apsw.Connection) -> list[tuple[str, str]]:
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql IS NOT NULL")
    return [(str(name), str(sql)) for name, sql in rows]


def _set_layout(connection: apsw.Connection, tables: list[tuple[str, str]]) -> None:
    connection.execute("PRAGMA writable_schema = ON")
    for name, sql in tables:
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE type = 'table' AND name = ?", (sql, name))
    connection.execute("PRAGMA writable_schema = RESET")


def damaged(path: Path, table: str, chance: random.Random) -> str:
    """Damage a derived table of a file; return what was done to it."""
    with loosened(path) as connection:
        columns = list(connection.execute(f"PRAGMA table_info({table})"))
        key = [str(column[1]) for column in columns if column[5]] or ["rowid"]
        where = " AND ".join(f"{name} IS ?" for name in key)
        rows = [tuple(row) for row in connection.execute(f"SELECT {', '.join(key)} FROM {table}")]
        some = rows if chance.random() < 0.4 else chance.sample(rows, min(3, len(rows)))
        if chance.random() < 0.15:
            connection.executemany(f"DELETE FROM {table} WHERE {where}", some)
            return f"{table}: {len(some)} rows deleted"
        _, column, kind, *_ = chance.choice(columns)
        done = f"{table}.{column}"
        for row in some:
            value = chance.choice(VALUES)
            if kind in ("BLOB", "TEXT") and chance.random() < 0.5:
                value = _garbled(connection.execute(f"SELECT {column} FROM {table} WHERE {where}", row).get, chance)
            cast = "CAST(? AS TEXT)" if kind == "TEXT" and isinstance(value, bytes) and chance.random() < 0.5 else "?"
            try:
                connection.execute(f"UPDATE OR REPLACE {table} SET {column} = {cast} WHERE {where}", (value, *row))
                done += f" {value!r}"
            except apsw.Error:
                pass  # not even a loose table takes it, such as text for a row's number
        return done[:200]


def _garbled(value: Any, chance: random.Random) -> bytes | None:
    data = bytearray(value if isinstance(value, bytes) else str(value).encode())
    for _ in range(chance.choice((1, 1, 4))):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data[: chance.randrange(len(data))] if data and chance.random() < 0.2 else data)


def reads(ledger: Ledger) -> dict[str, Callable[[], object]]:
    """Return every verb that reads, with something to ask."""
    return {
        "show": lambda: [ledger.show(ref).to_json() for ref in ("contact/Long", "box/large")],
        "show at": lambda: ledger.at(PAST).show("contact/Long").to_json(),
        "show effective": lambda: ledger.at(valid_at="2026-01-01T00:00:30Z").show("contact/Long").to_json(),
        "elements": lambda: ledger.elements("box/large", "things"),
        "answers": lambda: spelled(answers(ledger.at("now"))),
        "answers at": lambda: spelled(answers(ledger.at(PAST))),
        "search": lambda: ledger.search("long"),
        "query": lambda: ledger.query(entity_type="contact"),
        "query by field": lambda: ledger.query(where={"city": "City 5"}, sort="city", descending=True),
        "query by range": lambda: ledger.query(entity_type="contact", where={"city": {"prefix": "City"}}),
        "conflicts": ledger.conflicts,
        "duplicates": ledger.duplicates,
        "infer": lambda: ledger.schemas.infer("contact"),
        "diff": lambda: ledger.diff(3, "now"),
        "entries": ledger.log.entries,
        "runs": lambda: [ledger.runs.show(run.id) for run in ledger.runs.list().items],
        "runs about": lambda: ledger.runs.list(subject="contact/Long"),
        "why": lambda: ledger.why("contact/Long"),
        "recall": lambda: ledger.recall("Is Long near?"),
        "lineage": lambda: ledger.lineage("contact/Long#city"),
        "impact": lambda: ledger.impact(agent="a"),
        "stale": ledger.stale,
        "bisect": lambda: ledger.bisect("contact/Long", {"city": "City 5"}),
        "what_if": lambda: ledger.what_if(without_agents="b"),
        "prove_order": lambda: ledger.prove_order(shuffles=1),
        "fingerprint": ledger.fingerprint,
        "content": lambda: [ledger.sources.content(one.source) for one in ledger.sources.list()],
        "interpretations": ledger.interpretations.list,
    }


ANSWERS: Final = ("show", "show at", "answers", "answers at")
"""Reads whose answers are plain, to compare."""


def asked(ledger: Ledger) -> dict[str, object]:
    """Return what each verb answers; anything but an answer or an error of ours is the test's failure."""
    found: dict[str, object] = {}
    for name, read in reads(ledger).items():
        try:
            found[name] = read()
        except WoodratError as error:
            found[name] = error
            if error.code == "corrupt" and "`woodrat re" not in str(error) and "restore a backup" not in str(error):
                raise AssertionError(f"{name}: it does not say what to do: {error}") from error
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
    return found


def check(path: Path, table: str, seed: int, good: dict[str, object]) -> str:
    """Damage a copy and ask it everything; return what came of it."""
    done = damaged(path, table, random.Random(f"{table} {seed}"))
    engine = SqliteEngine(path, readonly=True)
    try:
        ledger = ledger_on(engine, "default")
        found = asked(ledger)
        verified = ledger.verify(deep=True)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, {done}: {error}") from error
    finally:
        engine.close()
    if verified.sound:
        other = [name for name in ANSWERS if found[name] != good[name]]
        assert not other, f"seed {seed}, {done}: other answers from {other}, and verify found nothing"
    engine = SqliteEngine(path)
    try:
        for tenant in TENANTS:
            ledger_on(engine, tenant).rebuild()
        ledger = ledger_on(engine, "default")
        again = ledger.verify(deep=True)
        assert again.sound, f"seed {seed}, {done}: after a rebuild {again.damage[:3]}"
        assert {name: ledger_answer for name, ledger_answer in asked(ledger).items() if name in ANSWERS} == {
            name: good[name] for name in ANSWERS
        }, f"seed {seed}, {done}"
    finally:
        engine.close()
    return "sound" if verified.sound else "found"


@pytest.fixture(scope="module")
def good(story: Path) -> dict[str, object]:
    """What the undamaged file answers."""
    engine = SqliteEngine(story, readonly=True)
    found = asked(ledger_on(engine, "default"))
    engine.close()
    assert not [name for name in ANSWERS if isinstance(found[name], WoodratError)]
    return found


@pytest.mark.parametrize("table", TABLES)
def test_damaged_rows_are_corrupt_in_words(table: str, story: Path, good: dict[str, object], tmp_path: Path) -> None:
    """Whatever a derived table holds, only our own errors come, `verify` names it, and `rebuild` puts it right."""
    for seed in range(CASES):
        path = tmp_path / f"{seed}.db"
        shutil.copy(story, path)
        check(path, table, seed, good)
        path.unlink()


def test_a_row_without_its_owner_is_cleared_away(story: Path, good: dict[str, object], tmp_path: Path) -> None:
    """NULL where a table takes none is found by `verify` and goes with a rebuild, though SQLite never looks for it."""
    path = tmp_path / "null.db"
    shutil.copy(story, path)
    check(path, "kept", 18, good)


def test_commands_on_damaged_rows_say_what_to_do(
    story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command exits with 5 and names `rebuild`; after that it answers."""
    path = Path(shutil.copy(story, tmp_path / "l.db"))
    with loosened(path) as connection:
        connection.execute("UPDATE entity SET last = 'text', state = x'ff'")
    assert main(["show", "contact/Long", "--db", str(path)]) == 5
    assert "`woodrat rebuild`" in capsys.readouterr().err
    assert main(["verify", "--db", str(path)]) in (1, 5)
    for tenant in TENANTS:
        assert main(["rebuild", "--db", str(path), "--tenant", tenant]) == 1
    assert main(["verify", "--db", str(path)]) == 0
    assert main(["show", "contact/Long", "--db", str(path)]) == 0
    capsys.readouterr()


def test_writes_on_damaged_rows_are_corrupt_in_words(story: Path, tmp_path: Path) -> None:
    """A write that has to read a damaged row is refused with what to do, and nothing of it is there."""
    for column, value in (
        ("last", "text"),
        ("until", b"\xff"),
        ("state", b"\xff"),
        ("state_at", "x"),
        ("key", b"\xff"),
    ):
        path = Path(shutil.copy(story, tmp_path / f"{column}.db"))
        with loosened(path) as connection:
            connection.execute(f"UPDATE OR REPLACE entity SET {column} = ?", (value,))
        engine = SqliteEngine(path)
        ledger = ledger_on(engine, "default")
        before = ledger.position
        outcome = _stored(ledger)
        assert isinstance(outcome, Corrupt) or column in ("state", "key"), "the log has all that a fold needs"
        assert ledger.position == before + (outcome is None)
        engine.close()


def _stored(ledger: Ledger) -> WoodratError | None:
    """Store something about an entity that is known; return what was said against it."""
    try:
        ledger.store({"entity_type": "contact", "name": "Long", "city": "after"})
    except WoodratError as error:
        return error
    return None


# Planted faults: one decoder without translation


def _found(story: Path, tmp_path: Path, tables: tuple[str, ...]) -> bool:
    for table in tables:
        for seed in range(160):
            path = tmp_path / "planted.db"
            shutil.copy(story, path)
            damaged(path, table, random.Random(f"{table} {seed}"))
            engine = SqliteEngine(path, readonly=True)
            try:
                asked(ledger_on(engine, "default"))
            except AssertionError:
                return True
            finally:
                engine.close()
    return False


@pytest.mark.parametrize("fault", ["rows", "notes", "vectors", "state"])
def test_a_decoder_without_translation_is_caught(
    fault: str, story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine, or one decoder of it, that lets Python's own errors through does not get past these cases."""
    tables: tuple[str, ...]
    match fault:
        case "rows":
            monkeypatch.setattr(engines, "unreadable", lambda error, path, asserted=True: None)
            tables = ("index_row",)
        case "notes":
            monkeypatch.setattr(log_index, "garbled", lambda what: ValueError(what))
            tables = ("meta",)
        case "vectors":
            monkeypatch.setattr(recall_index, "UNREADABLE", ())
            tables = ("index_row",)
        case _:
            monkeypatch.setattr(state_index, "garbled", lambda what: ValueError(what))
            tables = ("meta",)
    assert _found(story, tmp_path, tables)
