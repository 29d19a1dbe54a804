"""A database that a real Neotoma server made of 5,000 observations: imported, compared, interrupted and spoiled.

It runs where WOODRAT_NEOTOMA_SOURCE names its built source, and nowhere else. WOODRAT_NEOTOMA_DATABASE names a database
that was made before, which saves the minutes that it takes.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.neotoma import real_database, real_neotoma

import woodrat
from woodrat.errors import Refused, Unavailable
from woodrat.neotoma.comparison import compare
from woodrat.neotoma.database import opened
from woodrat.neotoma.importer import ImportedDatabase, Importer

pytestmark = [
    pytest.mark.skipif(not real_neotoma.is_there(), reason=real_neotoma.MISSING),
    pytest.mark.timeout(3_600),
]

NOT_EXPLAINED = ("no observation says it", "ranks highest", "import the database first", "without an entity")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a server that was stopped."""
    made = os.environ.get("WOODRAT_NEOTOMA_DATABASE")
    folder = tmp_path_factory.mktemp("real") / "data"
    if made:
        shutil.copytree(Path(made).parent, folder)
    else:
        with real_neotoma.server(folder) as port:
            teller = real_database.fill(port)
        assert set(teller.refused) <= {"entities/split"}, teller.refused
    return folder / "neotoma.db"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[woodrat.Ledger]:
    with woodrat.open(str(tmp_path / "imported.db"), agent="mover") as opened_ledger:
        yield opened_ledger


def imported(ledger: woodrat.Ledger, path: Path) -> ImportedDatabase:
    with opened(str(path)) as found:
        return Importer(ledger, found).run()


def test_it_is_imported_whole_and_explained(ledger: woodrat.Ledger, database: Path) -> None:
    """Twice is once; every observation leads to its row; each value that differs has the rule that chooses it."""
    first = imported(ledger, database)
    found, end = ledger.fingerprint(), ledger.position
    again = imported(ledger, database)
    assert (again.added, ledger.fingerprint(), ledger.position) == (0, found, end)
    assert (first.not_kept, first.problems, first.unread) == (0, (), ())
    assert first.rows["observations"] >= 5_000
    assert all(first.rows[name] for name in ("entity_merges", "entity_splits", "interpretations", "sources"))
    connection = sqlite3.connect(database)
    ids = {row[0] for row in connection.execute("SELECT id FROM observations")}
    kinds = connection.execute("SELECT count(DISTINCT entity_type) FROM observations").fetchone()[0]
    connection.close()
    named = set()
    cursor: str | None = None
    while True:
        page = ledger.observations(limit=1_000, cursor=cursor)
        named |= {str(item.observation.optional.get("reason", "")).rpartition(" ")[2] for item in page.items}
        cursor = page.cursor
        if cursor is None:
            break
    assert (kinds >= 30, ids - named) == (True, set())
    with opened(str(database)) as open_database:
        report = compare(ledger, open_database)
    assert report.same + len({item.neotoma_id for item in report.differences}) == report.snapshots
    unexplained = [item for item in report.differences if any(text in item.reason for text in NOT_EXPLAINED)]
    assert not unexplained, unexplained[:5]
    print(first.rows, report.snapshots, report.same, dict(report.reasons))
    assert ledger.verify().sound


def test_an_interrupted_import_goes_on(ledger: woodrat.Ledger, database: Path, tmp_path: Path) -> None:
    """Stopped at several places it comes to the same as in one go."""

    class Stopped(Exception):
        pass

    for part in (0.2, 0.5, 0.8):

        def stop(done: int, whole: int | None, part: float = part) -> None:
            if whole and done > part * whole:
                raise Stopped

        with opened(str(database)) as found, pytest.raises(Stopped):
            Importer(ledger, found, stop).run()
    imported(ledger, database)
    with woodrat.open(str(tmp_path / "whole.db"), agent="mover") as whole:
        imported(whole, database)
        assert whole.fingerprint() == ledger.fingerprint()


@pytest.mark.parametrize("spoiled", ["cut off", "no database", "empty", "older", "held"])
def test_a_bad_file_leaves_nothing_behind(ledger: woodrat.Ledger, database: Path, tmp_path: Path, spoiled: str) -> None:
    """A copy that is spoiled, or held by another program, is refused before anything is written."""
    path = tmp_path / "copy.db"
    source, copy = sqlite3.connect(database), sqlite3.connect(path, isolation_level=None)
    source.backup(copy)
    source.close()
    copy.execute("PRAGMA journal_mode = DELETE")
    if spoiled == "older":
        copy.execute("DROP TABLE raw_fragments")
    if spoiled == "held":
        copy.execute("BEGIN EXCLUSIVE")
    else:
        copy.close()
    content = path.read_bytes()
    if spoiled == "cut off":
        path.write_bytes(content[: len(content) // 2])
    if spoiled == "no database":
        path.write_bytes(b"name,city\n")
    if spoiled == "empty":
        path.write_bytes(b"")
    with pytest.raises((Refused, Unavailable), match="Nothing was imported"):
        imported(ledger, path)
    assert ledger.position == -1
    copy.close()
