"""Importing a Neotoma database: everything is kept, once, traceable to its row; a bad file leaves nothing behind."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.neotoma import foreign_database
from tests.server.conftest import Start, engine, start

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.cli.main import main
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import NotFound, Refused, Unavailable
from woodrat.ledger.own_policy import registry
from woodrat.neotoma.comparison import compare
from woodrat.neotoma.database import opened
from woodrat.neotoma.importer import ImportedDatabase, Importer

__all__ = ["engine", "start"]

TASK = "ent_00000000000000000000000a"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of thirty types, with everything that there is in one."""
    path = tmp_path_factory.mktemp("neotoma") / "neotoma.db"
    foreign_database.make(path, observations=160)
    return path


@pytest.fixture
def ledger() -> Iterator[woodrat.Ledger]:
    with woodrat.open(":memory:", agent="mover") as opened_ledger:
        yield opened_ledger


def imported(ledger: woodrat.Ledger, path: Path) -> ImportedDatabase:
    """Import a database."""
    with opened(str(path)) as found:
        return Importer(ledger, found).run()


def small(path: Path, *rows: dict[str, Any]) -> Path:
    """Make a database with observations of one task, in this order."""
    connection = foreign_database.empty(path)
    row = {"id": TASK, "entity_type": "task", "canonical_name": "Ship", "created_at": "2026-01-01T00:00:00Z"}
    foreign_database.insert(connection, "entities", **row)
    for number, told in enumerate(rows):
        about = {"entity_id": TASK, "entity_type": "task", "source_priority": 100, "id": f"obs-{number}"}
        foreign_database.insert(connection, "observations", **{**about, **told})
    connection.commit()
    connection.close()
    return path


def test_importing_twice_is_importing_once(ledger: woodrat.Ledger, database: Path) -> None:
    """The second import adds nothing, and a ledger that was imported into elsewhere has the same state."""
    first = imported(ledger, database)
    found = ledger.fingerprint()
    again = imported(ledger, database)
    assert (first.added > 250, again.added, ledger.fingerprint()) == (True, 0, found)
    assert (first.not_kept, first.rows["observations"]) == (0, 160)
    with woodrat.open(":memory:", agent="another") as other:
        imported(other, database)
        assert other.fingerprint() == found
    assert ledger.verify().sound


def test_an_interrupted_import_goes_on(ledger: woodrat.Ledger, database: Path) -> None:
    """What was written before it stopped is known, and the rest is added."""

    class Stopped(Exception):
        pass

    def stop(done: int, whole: int | None) -> None:
        if done > 60:
            raise Stopped

    with opened(str(database)) as found, pytest.raises(Stopped):
        Importer(ledger, found, stop).run()
    part = ledger.position
    rest = imported(ledger, database)
    with woodrat.open(":memory:", agent="mover") as whole:
        assert imported(whole, database).added == part + 1 + rest.added
        assert whole.fingerprint() == ledger.fingerprint()


def test_every_observation_leads_to_its_row(ledger: woodrat.Ledger, database: Path) -> None:
    """Each names its row, and has its time, priority, agent, source and reading."""
    imported(ledger, database)
    named = {
        item.observation.optional["reason"]: item.observation
        for item in ledger.observations(limit=1_000).items
        if "reason" in item.observation.optional
    }
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    rows = connection.execute("SELECT * FROM observations").fetchall()
    assert len(rows) == 160
    for row in rows:
        said = named[f"Neotoma observation {row['id']}"]
        assert said.observed_at[:16] == row["observed_at"][:16]
        assert said.agent == json.loads(row["provenance"])["client_name"]
        assert said.op == _op(row)
        assert ("source" in said.optional, "interpretation" in said.optional) == (
            row["source_id"] is not None,
            row["interpretation_id"] is not None,
        )
        if said.op == "assert":
            assert said.priority == row["source_priority"]
    connection.close()
    (reading,) = ledger.interpretations.list().items
    assert (reading.model, reading.status) == ("m-1", "done")
    assert ledger.schemas.show("gadget").properties.keys() == {"name", "parts"}


def _op(row: sqlite3.Row) -> str:
    fields = json.loads(row["fields"])
    if "_deleted" in fields:
        return "delete" if fields["_deleted"] else "restore"
    return "correct" if row["source_priority"] >= 1_000 else "assert"


def test_the_check_explains_every_difference(ledger: woodrat.Ledger, database: Path) -> None:
    """Most snapshots are the same; each other value names the rule that chooses the one here."""
    imported(ledger, database)
    with opened(str(database)) as found:
        report = compare(ledger, found)
    assert report.snapshots > 50
    assert report.same > 0.9 * report.snapshots
    assert sum(report.reasons.values()) == report.differing == len(report.differences)
    assert all(item.reason for item in report.differences)
    assert not any("import the database first" in reason for reason in report.reasons)


def test_the_order_of_rows_there_does_not_show_here(tmp_path: Path) -> None:
    """Rows of one time settle by value; a correction holds, and the check says so."""
    rows: list[dict[str, Any]] = [
        {"observed_at": "2026-01-05T09:00:00Z", "fields": {"title": "Ship", "status": "todo", "assignee": "ann"}},
        {"observed_at": "2026-01-05T09:00:00Z", "fields": {"title": "Ship", "status": "done"}},
        {"observed_at": "2026-01-06T09:00:00Z", "fields": {"assignee": "bob"}, "source_priority": 1_000},
        {"observed_at": "2026-01-07T09:00:00Z", "fields": {"assignee": "cid"}},
    ]
    states = []
    for turn, order in enumerate((rows, rows[::-1])):
        path = small(tmp_path / f"{turn}.db", *order)
        connection = sqlite3.connect(path)
        there = {"title": "Ship", "status": order[0]["fields"].get("status", "done"), "assignee": "cid"}
        foreign_database.insert(connection, "entity_snapshots", entity_id=TASK, entity_type="task", snapshot=there)
        connection.commit()
        connection.close()
        with woodrat.open(":memory:", agent="mover") as ledger:
            imported(ledger, path)
            states.append(dict(ledger.show("task/Ship").fields))
            with opened(str(path)) as found:
                reasons = {item.field: item.reason for item in compare(ledger, found).differences}
        assert "correction holds" in reasons["assignee"]
    assert states[0] == states[1]
    assert (states[0]["status"], states[0]["assignee"]) == ("todo", "bob")


def test_deletions_and_restores_are_kept_in_turn(ledger: woodrat.Ledger, tmp_path: Path) -> None:
    """The last of them counts, at any depth."""
    told: list[dict[str, Any]] = [{"observed_at": "2026-01-05T09:00:00Z", "fields": {"title": "Ship"}}]
    for day, deleted in ((6, True), (7, False), (8, True)):
        row = {"observed_at": f"2026-01-0{day}T09:00:00Z", "fields": {"_deleted": deleted}, "source_priority": 1_000}
        told.append(row)
        path = small(tmp_path / f"{day}.db", *told)
        with woodrat.open(":memory:", agent="mover") as opened_ledger:
            imported(opened_ledger, path)
            assert opened_ledger.show("task/Ship").deleted is deleted


def test_what_cannot_be_kept_is_told(ledger: woodrat.Ledger, tmp_path: Path) -> None:
    """Numbers that no ledger takes and values of another type are kept apart, and each is named."""
    fields = {"title": "Ship", "assignee": 7, "effort": 2**70, "due_context": None}
    path = small(tmp_path / "n.db", {"observed_at": "2026-01-05T09:00:00Z", "fields": fields})
    report = imported(ledger, path)
    assert report.not_kept == 3
    assert {text.split(": ")[1].split()[0] for text in report.problems} == {"assignee", "effort", "due_context"}
    found = ledger.show("task/Ship").fields
    assert found["raw_fragments"] == {"assignee": 7, "effort": str(2**70)}


def test_files_beside_the_database_are_sources(ledger: woodrat.Ledger, tmp_path: Path) -> None:
    """The content of a source is kept where its file is there and is what it was."""
    from hashlib import sha256

    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/a.txt").write_bytes(b"Net-30")
    path = small(
        tmp_path / "n.db", {"observed_at": "2026-01-05T09:00:00Z", "fields": {"title": "Ship"}, "source_id": "s1"}
    )
    connection = sqlite3.connect(path)
    rows = [("s1", "a.txt", sha256(b"Net-30").hexdigest()), ("s2", "../n.db", ""), ("s3", "a.txt", "00")]
    for id, url, stated in rows:
        about = {
            "id": id,
            "storage_url": url,
            "content_hash": stated,
            "original_filename": "a.txt",
            "mime_type": "text/plain",
        }
        foreign_database.insert(connection, "sources", created_at="2026-01-05T09:00:00Z", **about)
    connection.commit()
    connection.close()
    report = imported(ledger, path)
    assert report.not_kept == 2  # one that lies outside, and one that has changed
    (said,) = [
        item.observation for item in ledger.observations("task/Ship").items if "source" in item.observation.optional
    ]
    assert ledger.sources.content(str(said.optional["source"])) == b"Net-30"


def test_an_imported_entity_is_found_by_the_id_it_had(start: Start, engine: InMemoryEngine, database: Path) -> None:
    """Clients that kept ids go on, and a merged one leads to what it was merged into."""
    server = start()
    ledger = Ledger(engine, tenant="default", agent="mover", clock=SystemClock(), policies=registry(()))
    imported(ledger, database)
    gone = "ent_ffffffffffffffffffffffff"
    answer = server.call("POST", "/neotoma/get_entity_snapshot", {"entity_id": gone}, key="k")
    assert answer.status == 200, answer.body
    assert answer.json["observation_count"] > 1
    about = {"entities": [{"entity_type": answer.json["entity_type"], "target_id": gone, "colour": "blue"}]}
    stored = server.call("POST", "/neotoma/store", about, key="k")
    assert stored.status == 200, stored.body
    assert server.call("GET", f"/neotoma/entities/{gone}", key="k").json["snapshot"]["colour"] == "blue"


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (lambda path: path.unlink(), NotFound, "There is no file"),
        (lambda path: path.write_bytes(b"words"), Refused, "not an SQLite database"),
        (lambda path: path.write_bytes(path.read_bytes()[:9_000]), Refused, "damaged or cut off"),
        (lambda path: _execute(path, "DROP TABLE entity_snapshots"), Refused, "no table entity_snapshots"),
        (lambda path: _execute(path, "ALTER TABLE observations DROP COLUMN fields"), Refused, "no column fields"),
        (lambda path: _foreign(path), Refused, "not a Neotoma database: its tables are albums"),
        (
            lambda path: _execute(path, "INSERT INTO observations (id, user_id) VALUES ('x', 'other')"),
            Refused,
            "2 users",
        ),
    ],
    ids=["missing", "no database", "cut off", "another version", "another column", "foreign", "two users"],
)
def test_a_bad_file_leaves_nothing_behind(
    ledger: woodrat.Ledger, database: Path, tmp_path: Path, spoil: Any, error: type[Exception], words: str
) -> None:
    """It is refused before anything is written, and the error says what is wrong and what became of the data."""
    path = tmp_path / "copy.db"
    path.write_bytes(database.read_bytes())
    spoil(path)
    with pytest.raises(error, match=words) as caught, opened(str(path)) as found:
        Importer(ledger, found).run()
    assert "Nothing was imported." in str(caught.value)
    assert ledger.position == -1


def test_a_file_in_use_is_told(database: Path, tmp_path: Path) -> None:
    """A database that somebody holds exclusively is not waited for."""
    path = tmp_path / "copy.db"
    path.write_bytes(database.read_bytes())
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Unavailable, match=r"is in use\. Nothing was imported\."), opened(str(path)):
        pass
    holder.close()


def test_tables_of_others_are_named(ledger: woodrat.Ledger, database: Path, tmp_path: Path) -> None:
    """They are not read, and the report says so."""
    path = tmp_path / "copy.db"
    path.write_bytes(database.read_bytes())
    _execute(path, "CREATE TABLE albums (id)")
    assert imported(ledger, path).unread == ("albums",)


def test_the_command_imports_and_checks(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`import neotoma FILE --check` says what was read, what is new, and how many snapshots are the same."""
    target = str(tmp_path / "a.db")
    assert main(["import", "neotoma", str(database), "--db", target, "--check", "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"]["observations"], told["check"]["snapshots"] > 50) == (160, True)
    assert main(["import", "neotoma", str(database), "--db", target, "-o", "table"]) == 0
    assert "0 new entries" in capsys.readouterr().out
    assert main(["import", "neotoma", str(tmp_path / "none.db"), "--db", str(tmp_path / "b.db")]) == 3
    assert not (tmp_path / "b.db").exists()


def _execute(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def _foreign(path: Path) -> None:
    path.unlink()
    _execute(path, "CREATE TABLE albums (id)")
