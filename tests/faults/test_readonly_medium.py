"""A read-only medium: a ledger that was closed is read there with every verb that reads, and writes are refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.faults.test_tampering import told

import woodrat
from woodrat.cli.main import main
from woodrat.engines.sqlite import readonly_file
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.errors import Unavailable
from woodrat.proofs.verbs.keys import Keys, make
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import answers, ledger_on, spelled

RECORD: Final = '--json={"entity_type": "memo","id":"new"}'


class Disk:
    """A small disk that can be made read-only, as root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def protect(self) -> None:
        """Let nothing more be written."""
        subprocess.run(["mount", "-o", "remount,ro", str(self.folder)], check=True)
        with pytest.raises(OSError, match="Read-only file system"):
            (self.folder / "x").touch()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    if os.getuid() != 0 or shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("only root can mount a disk here")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def made_keys(folder: Path) -> Keys:
    """Make keys, the same in every folder."""
    return make(folder / "keys", FixedClock(seed="keys"), "example.com/test").keys


@pytest.fixture
def keys(disk: Disk) -> Keys:
    """Keys on the same disk."""
    return made_keys(disk.folder)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger that was signed and closed, in a folder of its own."""
    folder = tmp_path_factory.mktemp("signed")
    path = folder / "l.db"
    told(path)
    with woodrat.open(path, keys=made_keys(folder).folder) as ledger:
        ledger.store({"entity_type": "memo", "id": "signed", "text": "x"})
        ledger.proofs.checkpoint()
    assert not Path(f"{path}-wal").exists()
    return path


@pytest.fixture
def db(disk: Disk, keys: Keys, signed: Path) -> Path:
    """That ledger, with its keys, on a disk that takes no more writes."""
    path = Path(shutil.copy(signed, disk.folder / "l.db"))
    shutil.copytree(signed.parent / "keys", keys.folder, dirs_exist_ok=True)
    disk.protect()
    return path


def run_of(path: Path) -> str:
    """Return the run of the story."""
    with woodrat.open(path, readonly=True) as ledger:
        return ledger.runs.list().items[0].id


def test_every_answer_is_as_it_was(db: Path, tmp_path: Path) -> None:
    """In the library a ledger on a read-only medium says what a copy of it says that can be written."""
    shutil.copy(db, tmp_path / "copy.db")
    found = []
    for path in (db, tmp_path / "copy.db"):
        engine = SqliteEngine(path, readonly=True)
        found.append(spelled(answers(ledger_on(engine, "default").at("now"))))
        engine.close()
    assert found[0] == found[1]


READING: Final = (
    "show contact/Long",
    "elements box/large#things",
    "entities list",
    "entities search --query long",
    "observations list",
    "history contact/Long",
    "timeline",
    "diff --from 3",
    "blame contact/Long",
    "conflicts",
    "related contact/Long",
    "schemas list",
    "sources list",
    "interpretations list",
    "log",
    "fingerprint",
    "fingerprint --provenance",
    "verify",
    "verify --deep",
    "prove-order --shuffles 2",
    "runs list",
    "runs show RUN",
    "why contact/Long",
    "lineage contact/Long#city",
    "impact a",
    "stale",
    "recall near",
    "checkpoint",
    "prove 3 --out OUT/proof.json",
    "capsule RUN --out OUT/run.json",
    "capsule contact/Long#city --out OUT/field.json",
    "export log --out OUT/log.jsonl",
    "backup create OUT/backup.db",
    "copy --from DB --to OUT/copy.db",
    "export training sft --no-record --out OUT/rows.jsonl",
    "doctor",
)
"""Commands that read."""


@pytest.mark.parametrize("command", READING)
def test_commands_that_read_work_there(
    command: str, db: Path, keys: Keys, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command that reads answers from a read-only medium, keys included."""
    run = run_of(db) if "RUN" in command else ""
    words = [
        word.replace("RUN", run).replace("OUT", str(tmp_path)).replace("DB", str(db)) for word in command.split(" ")
    ]
    code = main([*words, "--db", str(db), "--signing-keys", keys.folder])
    printed = capsys.readouterr()
    assert code == 0, printed
    assert "WARNING" not in printed.err


@pytest.mark.parametrize(
    "command", [("store", RECORD), ("delete", "memo/1"), ("tag", "x"), ("rebuild",), ("reindex",), ("serve",)]
)
def test_commands_that_write_are_refused_there(
    command: tuple[str, ...], db: Path, keys: Keys, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command that writes says that the medium is read-only, and what to do."""
    assert main([*command, "--db", str(db), "--signing-keys", keys.folder]) == 4
    said = capsys.readouterr().err
    assert "read-only medium" in said
    assert "copy it to another folder" in said


def test_the_library_refuses_to_write_there(db: Path, keys: Keys) -> None:
    """Opening for writing is refused in words; opened to read, a write is too."""
    with pytest.raises(Unavailable, match="is on a read-only medium"):
        woodrat.open(db)
    with woodrat.open(db, readonly=True, keys=keys.folder) as ledger:
        with pytest.raises(Unavailable, match="opened read-only"):
            ledger.store({"entity_type": "memo", "id": "new"})
        assert ledger.verify(deep=True).sound
        assert ledger.proofs.capsule("contact/Long#city").checkpoint.new is False


def test_a_new_checkpoint_that_cannot_be_kept_is_unavailable(disk: Disk, keys: Keys, tmp_path: Path) -> None:
    """A signer whose folder takes no writes says so instead of failing with the system's own error."""
    disk.protect()
    with woodrat.open(tmp_path / "l.db", keys=keys.folder) as ledger:
        with pytest.warns(woodrat.CheckpointWarning, match="could not record the log at this location"):
            ledger.store({"entity_type": "memo", "id": "1"})
        with pytest.raises(Unavailable, match="Nothing was signed"):
            ledger.proofs.checkpoint()
        ledger.signing._written = -1  # type: ignore[union-attr] # nothing to sign at close


def left_open(disk: Disk, *ends: str) -> Path:
    """Return a ledger that was not closed, with some of the files beside it."""
    ledger = woodrat.open(disk.folder / "open.db")
    ledger.store({"entity_type": "memo", "id": "1", "text": "x"})
    for end in ("", *ends):
        shutil.copy(disk.folder / f"open.db{end}", disk.folder / f"left.db{end}")
    ledger.close()
    disk.protect()
    return disk.folder / "left.db"


def test_a_ledger_that_was_not_closed_is_refused_by_name(disk: Disk) -> None:
    """Without the index of its write-ahead log the last writes could not be read: that is said, and nothing is."""
    path = left_open(disk, "-wal")
    with pytest.raises(Unavailable, match="was not closed") as caught:
        woodrat.open(path, readonly=True)
    assert "Copy both files to a folder that can be written" in str(caught.value)
    assert main(["show", "memo/1", "--db", str(path)]) == 4


def test_a_ledger_that_was_not_closed_is_read_where_its_index_is_there(disk: Disk) -> None:
    """With all of its files SQLite reads it, the last writes included."""
    with woodrat.open(left_open(disk, "-wal", "-shm"), readonly=True) as ledger:
        assert ledger.show("memo/1").fields["text"] == "x"


def test_an_empty_log_beside_the_file_is_no_hindrance(disk: Disk) -> None:
    """A write-ahead log of 0 bytes holds nothing that is missing."""
    with woodrat.open(disk.folder / "l.db") as ledger:
        ledger.store({"entity_type": "memo", "id": "1", "text": "x"})
    (disk.folder / "l.db-wal").touch()
    disk.protect()
    with woodrat.open(disk.folder / "l.db", readonly=True) as ledger:
        assert ledger.show("memo/1").fields["text"] == "x"


@pytest.mark.parametrize("how", ["the file", "its log"])
def test_a_file_that_changes_from_elsewhere_is_noticed(how: str, disk: Disk, db: Path) -> None:
    """A volume may be written to from the other side of the mount: nothing is read from a file that changed."""
    with woodrat.open(db, readonly=True) as ledger:
        ledger.show("contact/Long")
        subprocess.run(["mount", "-o", "remount,rw", str(disk.folder)], check=True)
        if how == "the file":
            os.utime(db, ns=(1, 1))
        else:
            Path(f"{db}-wal").write_bytes(b"x")
        with pytest.raises(Unavailable, match=r"changed elsewhere|was not closed"):
            ledger.show("contact/Long")


def test_a_name_with_odd_characters_is_read(disk: Disk) -> None:
    """A path is not an address: question marks, percent signs and spaces in it are its own."""
    path = disk.folder / "a ?b=1&immutable=0#%41.db"
    with woodrat.open(path) as ledger:
        ledger.store({"entity_type": "memo", "id": "1", "text": "x"})
    disk.protect()
    with woodrat.open(path, readonly=True) as ledger:
        assert ledger.show("memo/1").fields["text"] == "x"


def test_a_disk_that_can_be_written_is_not_taken_for_one_that_cannot(tmp_path: Path) -> None:
    """Where others may write, a file is never opened as one that does not change."""
    with woodrat.open(tmp_path / "l.db") as ledger:
        ledger.store({"entity_type": "memo", "id": "1"})
    (tmp_path / "l.db").chmod(0o444)
    assert readonly_file.ReadonlyFile.of(str(tmp_path / "l.db")) is None


# A planted fault


def test_an_opener_that_knows_no_medium_is_caught(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the look at the medium, as it was before, no ledger opens there."""
    monkeypatch.setattr(readonly_file, "is_readonly", lambda path: False)
    with pytest.raises(Unavailable):
        woodrat.open(db, readonly=True)
