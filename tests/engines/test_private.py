"""Files that only their owner reads: the database and what lies beside it, exports, backups, keys."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import woodrat
from woodrat.engines import open as engines_open
from woodrat.engines import private
from woodrat.errors import Refused
from woodrat.proofs.verbs.keys import Keys

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """A umask of the process, also one that hides nothing."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir() if path.is_file()}


def test_a_database_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    """The file, those that SQLite keeps beside it, and the queue are made with mode 600, whatever the umask is."""
    with woodrat.open(tmp_path / "x.db") as ledger:
        ledger.store({"entity_type": "thing", "id": "1"})
        found = modes(tmp_path)
    assert set(found) == {"x.db", "x.db-wal", "x.db-shm", "x.db-queue"}
    assert set(found.values()) == {0o600}


def test_what_is_written_from_it_is_too(tmp_path: Path, umask: int) -> None:
    """Exported logs and backups hold the same data, and have the same mode."""
    out = tmp_path / "out"
    out.mkdir(mode=0o700)
    with woodrat.open(tmp_path / "x.db") as ledger:
        ledger.store({"entity_type": "thing", "id": "1"})
        ledger.log.export(out / "log.jsonl")
        ledger.log.backup(out / "backup.db")
    assert modes(out) == {"log.jsonl": 0o600, "backup.db": 0o600}


def test_a_mode_that_was_given_stays(tmp_path: Path) -> None:
    """Whoever shares a database with a group keeps doing so: the queue is open to those whom the file is open to."""
    path = tmp_path / "x.db"
    with woodrat.open(path) as ledger:
        ledger.store({"entity_type": "thing", "id": "1"})
    (tmp_path / "x.db-queue").unlink()
    path.chmod(0o660)
    with woodrat.open(path) as ledger:
        ledger.store({"entity_type": "thing", "id": "2"})
        assert set(modes(tmp_path).values()) == {0o660}


def test_the_usual_folder_is_made_for_its_owner(tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the usual database is made with mode 700."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("sys.platform", "linux")
    engines_open.engine_for(None).close()
    assert stat.S_IMODE((tmp_path / "data" / "woodrat").stat().st_mode) == 0o700


def test_a_key_that_all_may_read_signs_nothing(tmp_path: Path) -> None:
    """A signing key, and the one that recognises erased records, must be their owner's alone."""
    woodrat.init(tmp_path / "keys")
    keys = Keys.open(tmp_path / "keys")
    assert keys.signer.name
    for name in ("signer.key", "erasure.key"):
        (tmp_path / "keys" / name).chmod(0o644)
    with pytest.raises(Refused, match="chmod 600"):
        keys.sign(b"x")
    with pytest.raises(Refused, match="chmod 600"):
        assert keys.erasure


def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    """What is written over keeps its mode, and what is made has that of its owner alone."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("x")
    old.chmod(0o644)
    for path in (old, new):
        with open(path, "w", opener=private.opener) as file:
            file.write("y")
    assert modes(tmp_path) == {"old": 0o644, "new": 0o600}
    assert private.is_open_to_all(str(old))
    assert not private.is_open_to_all(str(new))
    assert not private.is_open_to_all(str(tmp_path / "none"))
