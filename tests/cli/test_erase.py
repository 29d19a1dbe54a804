"""`woodrat erase` as it is typed."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from tests.commands import Cli

from woodrat.cli.main import main
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock

REF = "contact/Ana Rivera"


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an erasure key, named by WOODRAT_SIGNING_KEYS."""
    folder = tmp_path / "keys"
    make_keys(folder, FixedClock())
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(folder))
    return folder


def test_a_dry_run_lists_and_erases_nothing(ana: Cli) -> None:
    """`--dry-run` counts what would go, and everything is still there."""
    found = ana("erase", REF, "--reason", "asked to", "--dry-run").json
    assert found["dry_run"]
    assert found["kinds"] == {"observation": 2}
    assert ana("show", REF).code == 0
    assert (
        "2 entries would be erased. Nothing was erased."
        in ana("erase", REF, "--reason", "asked to", "--dry-run", "-o", "table").out
    )


def test_an_erasure_writes_its_certificate(ana: Cli, tmp_path: Path, db: Path) -> None:
    """With `--yes` it erases, prints the certificate, and writes it to a new file; asking again says erased."""
    out = tmp_path / "certificate.json"
    ran = ana("erase", REF, "--reason", "asked to", "--yes", "--out", str(out))
    assert ran.json["complete"]
    assert json.loads(out.read_text("utf-8")) == ran.json
    assert b"San Francisco" not in db.read_bytes()
    again = ana("show", REF)
    assert again.code == 3
    assert f"erased at {ran.json['position']}" in again.err
    assert f"(erased at {ran.json['position']})" in ana("log", "-o", "table").out
    lines = [json.loads(line) for line in ana("log").out.splitlines()]
    assert [line["erased_at"] for line in lines if line["body"] is None] == [ran.json["position"]] * 2


def test_a_table_tells_what_went(ana: Cli) -> None:
    """For people it says how many entries of which kind went, where, and that the files were searched."""
    out = ana("erase", REF, "--reason", "asked to", "--yes", "-o", "table").out
    assert "2 entries erased at 3." in out
    assert "positions: 1-2" in out
    assert "nothing left: woodrat.db" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((REF, "--yes"), "missing: --reason"),
        ((REF, "--reason", "asked to"), "there is no terminal to ask for confirmation"),
        (("--reason", "asked to", "--yes"), "0 things to erase are named"),
        ((REF, "--agent", "crm", "--reason", "asked to", "--yes"), "2 things to erase are named"),
        ((REF, "--finish"), "--finish cannot be combined"),
        (("--finish", "--again"), "--finish cannot be combined"),
        (("--compact",), "--compact belongs to --finish"),
        (("--again", "--agent", "crm"), "--again cannot be combined"),
        ((REF, "--reason", "for Ana Rivera", "--yes"), "it quotes the data to erase"),
        (("no ref", "--reason", "asked to", "--yes"), "expected TYPE/KEY"),
    ],
)
def test_what_is_refused_erases_nothing(ana: Cli, words: tuple[str, ...], told: str) -> None:
    """A call that is not in order says what is wrong, and the entity stays."""
    ran = ana("erase", *words)
    assert ran.code == 2
    assert told in ran.err
    assert "Nothing was erased." in ran.err
    assert ana("show", REF).code == 0


def test_a_certificate_never_goes_over_another_file(ana: Cli, tmp_path: Path) -> None:
    """`--out` names a new file; one that is there stops the erasure before it begins."""
    out = tmp_path / "taken.json"
    out.write_text("mine")
    ran = ana("erase", REF, "--reason", "asked to", "--yes", "--out", str(out))
    assert ran.code == 2
    assert out.read_text() == "mine"
    assert ana("show", REF).code == 0


def test_a_refused_erasure_leaves_no_certificate(ana: Cli, tmp_path: Path) -> None:
    """Where nothing was erased there is no file that says otherwise."""
    out = tmp_path / "certificate.json"
    ran = ana("erase", "contact/nobody", "--reason", "asked to", "--yes", "--out", str(out))
    assert ran.code == 3
    assert not out.exists()


@pytest.mark.parametrize(("answer", "code"), [("yes\n", 0), ("no\n", 2), ("", 2)])
def test_a_terminal_is_asked(ana: Cli, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    """On a terminal it says how much goes and wants a yes."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    told = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", told)
    assert main(["erase", REF, "--reason", "asked to"]) == code
    assert "2 entries will be erased, 0 of them replaced" in told.getvalue()
    monkeypatch.undo()


def test_without_a_key_it_says_how_to_make_one(ana: Cli, keys: Path) -> None:
    """Without an erasure key the refusal names `woodrat init`."""
    (keys / "erasure.key").unlink()
    ran = ana("erase", REF, "--reason", "asked to", "--yes")
    assert ran.code == 2
    assert "woodrat init" in ran.err


def test_finishing_says_that_nothing_waits(ana: Cli) -> None:
    """`--finish` with nothing to do is done."""
    assert ana("erase", "--finish").json["purged"]
    assert "Nothing erased is left to remove" in ana("erase", "--finish", "-o", "table").out


def test_finishing_says_what_a_compaction_takes(ana: Cli, db: Path) -> None:
    """`--finish --dry-run` says how long writers would wait; `--finish --compact` compacts and says how long it was."""
    planned = ana("erase", "--finish", "--dry-run").json["compaction"]
    assert planned["seconds"] is None
    assert planned["size_bytes"] == db.stat().st_size
    assert "Writers would wait." in ana("erase", "--finish", "--dry-run", "-o", "table").out
    done = ana("erase", "--finish", "--compact").json["compaction"]
    assert done["seconds"] >= 0
    assert done["size_after_bytes"] == db.stat().st_size
    assert done["estimated_seconds"] == planned["estimated_seconds"]
    assert "Compacted the file in" in ana("erase", "--finish", "--compact", "-o", "table").out


def test_a_restored_copy_is_made_to_forget(ana: Cli, db: Path, tmp_path: Path) -> None:
    """`--again` erases in an older copy what was erased since, and says so when there is nothing."""
    copy = tmp_path / "copy.db"
    copy.write_bytes(db.read_bytes())
    assert ana("erase", "--again").json == []
    ana("erase", REF, "--reason", "asked to", "--yes")
    assert "contains nothing that was erased elsewhere" in ana("erase", "--again", "-o", "table").out
    (found,) = ana("erase", "--again", "--db", str(copy)).json
    assert found["complete"]
    assert found["reason"] == "asked to"
    assert ana("show", REF, "--db", str(copy)).code == 3


def test_an_agent_is_erased_by_its_name(ana: Cli) -> None:
    """`--agent` takes all that one agent said, and lists what returned to the top."""
    found = ana("erase", "--agent", "web", "--reason", "it guessed", "--yes").json
    assert found["returned"] == ["contact/Ana Rivera#city"]
    assert ana("show", REF).json["fields"]["city"] == "Barcelona"
