"""`woodrat verify` on the command line: what it prints for people and programs, checkpoints from files, refusals."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import apsw
import pytest
from tests.commands import Cli

from woodrat.log.checkpoint import VerifierKey

SIGNATURE = base64.b64encode(bytes(68)).decode()
"""Four bytes of a key's hash and 64 of a signature, which nobody made."""


def note(path: Path, found: dict[str, object], root: str | None = None) -> str:
    """Write a checkpoint of what a verification found, as a signed note has it; return the file's name."""
    data = base64.b64encode(bytes.fromhex(str(root or found["root"]))).decode()
    logs = found["logs"]
    assert isinstance(logs, list)
    path.write_text(f"{logs[0]}\n{found['entries']}\n{data}\n\n— signer {SIGNATURE}\n", "utf-8")
    return str(path)


def test_a_sound_ledger_is_said_to_be_sound(ana: Cli) -> None:
    """A sound ledger exits with 0, in a sentence for people and as JSON for programs."""
    found = ana("verify").json
    assert (found["sound"], found["entries"], found["damage"]) == (True, 3, [])
    assert found["fingerprint"] == ana("fingerprint").json["fingerprint"]
    shown = ana("verify", "--deep", "-o", "table").out
    assert shown.startswith("The ledger is sound: 3 entries, 1 entities.\n")
    assert "search, indexes, vectors" in shown
    assert "no checkpoint covers 0 to 2" in shown


def test_checkpoints_come_from_files(ana: Cli, tmp_path: Path) -> None:
    """Each `--checkpoint` is a note in a file; the tail is what they leave, and one that disagrees exits with 5."""
    found = ana("verify").json
    held = note(tmp_path / "held.note", found)
    assert ana("store", '--json={"entity_type": "memo","id":"1"}').code == 0
    later = ana("verify", "--checkpoint", held).json
    assert (later["sound"], later["covered"], later["tail"]) == (True, 3, 1)
    forged = note(tmp_path / "forged.note", found, root="00" * 32)
    ran = ana("verify", "--checkpoint", held, "--checkpoint", forged, "-o", "table")
    assert ran.code == 5
    assert ran.out.startswith("The log is damaged. The first bad position is 3.") or "forked" in ran.out
    key = tmp_path / "signer.pub"
    key.write_text(f"{VerifierKey('signer', bytes(range(32)))}\n", "utf-8")
    unsigned = ana("verify", "--checkpoint", held, "--key", str(key))
    assert unsigned.code == 2
    assert "not by signer+" in unsigned.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--checkpoint", "/nowhere.note"), "/nowhere.note cannot be read"),
        (("--embedder", "nonsense"), "nonsense"),
    ],
)
def test_bad_arguments_exit_with_2(ana: Cli, words: tuple[str, ...], says: str) -> None:
    """What cannot be taken is refused by name before anything is verified."""
    ran = ana("verify", *words)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_a_file_that_is_no_checkpoint_is_refused(ana: Cli, tmp_path: Path) -> None:
    """A file with other text is no checkpoint."""
    (tmp_path / "x.note").write_text("hello", "utf-8")
    ran = ana("verify", "--checkpoint", str(tmp_path / "x.note"))
    assert ran.code == 2
    assert "a note is text, an empty line, and signature lines" in ran.err


def test_damage_is_told_with_its_remedy(ana: Cli, db: Path) -> None:
    """Stale derived data exits with 1 and leads to a rebuild, a damaged log exits with 5 and leads to a backup."""
    raw = apsw.Connection(str(db))
    raw.execute("UPDATE entity SET first = first + 1")
    raw.close()
    ran = ana("verify", "-o", "table")
    assert ran.code == 1
    assert ran.out.startswith("The log is intact, but data derived from it is out of date.")
    assert "woodrat rebuild" in ran.out
    assert ana("rebuild").code in (0, 1)
    assert ana("verify").code == 0
    raw = apsw.Connection(str(db))
    trigger = raw.execute("SELECT sql FROM sqlite_schema WHERE name = 'entry_no_update'").get
    raw.execute("DROP TRIGGER entry_no_update")
    raw.execute("UPDATE entry SET leaf = zeroblob(32) WHERE id % 4 = 1")
    raw.execute(trigger)
    raw.close()
    ran = ana("verify", "-o", "table")
    assert ran.code == 5
    assert ran.out.startswith("The log is damaged. The first bad position is 1.")
    assert "(leaf)" in ran.out
    assert "restore a backup" in ran.out
    assert json.loads(ana("verify", "-o", "json").out)["first"] == 1
