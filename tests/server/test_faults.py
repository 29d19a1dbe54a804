"""What goes wrong around a command, in processes of its own: signals, pipes, disks, files, and bad input.

Each ends in a message that says what became of the data, in an exit code of the surface, and in a ledger that is sound.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.commands import BARCELONA

import woodrat

ANA = "contact/Ana Rivera"
WOODRAT = (sys.executable, "-m", "woodrat")
RECORD = '{"entity_type":"contact","name":"B"}'
MANY = 5_000
"""How many entities make work long enough to be interrupted."""


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the processes share what they compile, so that each starts in half the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("compiled")))
        yield


def run(*words: str, db: Path, before: Sequence[str] = (), stdin: bytes = b"", **given: Any) -> tuple[int, str, str]:
    """Run a command in a process of its own; return its exit code and what it printed."""
    done = subprocess.run(
        [*before, *WOODRAT, "--db", str(db), *words], input=stdin, capture_output=True, timeout=120, **given
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err, err
    return done.returncode, out, err


def entries(db: Path) -> int:
    """Return how many entries a ledger has, having made sure that everything derived agrees with them."""
    with woodrat.open(db) as ledger:
        assert ledger.rebuild().agreed
        return ledger.position + 1


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A ledger with one contact."""
    path = tmp_path / "agents.db"
    with woodrat.open(path, agent="crm") as ledger:
        ledger.store(json.loads(BARCELONA), observed_at="2026-01-05T09:00:00Z")
    return path


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with many entities, made once."""
    path = tmp_path_factory.mktemp("large") / "large.db"
    with woodrat.open(path) as ledger:
        ledger.store([{"entity_type": "thing", "name": f"thing {number}", "n": number} for number in range(MANY)])
    return path


@pytest.fixture
def large(once: Path, tmp_path: Path) -> Path:
    """A ledger with many entities, for one test."""
    return Path(shutil.copy(once, tmp_path / "large.db"))


# Ctrl-C


def watched(words: Sequence[str], db: Path, until: bytes) -> tuple[int, bytes, bytes]:
    """Run a command whose standard error is a terminal, and press Ctrl-C as soon as the terminal shows `until`."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    printed = db.with_suffix(".out")
    with printed.open("wb") as out:
        process = subprocess.Popen(
            [*WOODRAT, "--db", str(db), *words],
            stdout=out,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
    os.close(theirs)
    seen, pressed = b"", False
    with contextlib.suppress(OSError):  # how a terminal says that nobody is left
        while part := os.read(ours, 65_536):
            seen += part
            if until in seen and not pressed:
                process.send_signal(signal.SIGINT)
                pressed = True
    os.close(ours)
    code = process.wait(60)
    assert pressed, seen
    assert b"Traceback" not in seen
    return code, printed.read_bytes(), seen


def test_an_interrupted_write_is_not_there_at_all(large: Path, tmp_path: Path) -> None:
    """Ctrl-C in the middle of storing many records: exit 130, what to do, nothing of it stored, all else as it was."""
    records = [{"entity_type": "thing", "name": f"thing {number}", "m": number} for number in range(4 * MANY)]
    file = tmp_path / "records.json"
    file.write_text(json.dumps(records), "utf-8")
    code, out, seen = watched(("store", "--file", str(file)), large, f"Storing {4 * MANY} records".encode())
    assert (code, out) == (130, b"")
    assert b"Interrupted. Acknowledged writes are safe. An unacknowledged write is there whole or not at all" in seen
    assert entries(large) == MANY
    assert run("store", "--json", json.dumps(records[:10]), db=large)[0] == 0
    assert entries(large) == MANY + 10


@pytest.mark.parametrize(
    ("words", "until"),
    [
        (("rebuild",), b"% of"),
        (("prove-order", "--shuffles", "1000"), b"Proving"),
        (("schemas", "infer", "thing"), b"% of"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, tuple) else "",
)
def test_interrupted_work_leaves_everything_as_it_was(large: Path, words: tuple[str, ...], until: bytes) -> None:
    """Ctrl-C in the middle of long work: exit 130, the bar is wiped away, and the ledger is as it was."""
    before = run("fingerprint", db=large)[1]
    code, out, seen = watched(words, large, until)
    assert (code, out) == (130, b"")
    assert b" \r\r\nInterrupted. " in seen
    assert run("log", db=large)[1].count("\n") == MANY
    assert run("fingerprint", db=large)[1] == before


def test_following_ends_with_ctrl_c(db: Path) -> None:
    """`log --follow` prints what other processes append, at once, and Ctrl-C is its good end."""
    process = subprocess.Popen(
        [*WOODRAT, "--db", str(db), "log", "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert [json.loads(process.stdout.readline())["position"] for _ in range(2)] == [0, 1]
    for number in (2, 3):
        assert run("store", "--json", f'{{"entity_type":"thing","name":"{number}"}}', db=db)[0] == 0
        entry = json.loads(process.stdout.readline())
        assert (entry["position"], entry["kind"]) == (number, "observation")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert process.stdout.read() == ""
    assert process.stderr.read() == ""
    process.stdout.close()
    process.stderr.close()


# Pipes


def test_a_reader_that_goes_away_ends_following_too(db: Path) -> None:
    """`log --follow` notices that its reader went away, though no entry comes."""
    process = subprocess.Popen(
        [*WOODRAT, "--db", str(db), "log", "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    for _ in range(2):
        process.stdout.readline()
    process.stdout.close()
    assert process.wait(30) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


# Disks and files


def held_back() -> Sequence[str]:
    """Return what a command is started with so that permissions hold for it; nothing unless root runs the tests."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("permissions do not hold for root, and there is no setpriv to change that")
    without = "-dac_override,-dac_read_search"
    return (setpriv, f"--bounding-set={without}", f"--inh-caps={without}")


def test_a_read_only_file_can_be_read(db: Path) -> None:
    """A file that may not be written answers every read; writes exit with 4 and say what to do."""
    before = held_back()
    content = db.read_bytes()
    db.chmod(0o444)
    words: tuple[str, ...]
    for words in (
        ("show", ANA),
        ("log",),
        ("fingerprint",),
        ("entities", "list"),
        ("entities", "search", "--query", "Ana"),
        ("conflicts",),
    ):
        code, out, err = run(*words, db=db, before=before)
        assert code == 0, err
        assert out
    for words in (("store", "--json", RECORD), ("delete", ANA), ("rebuild",), ("tag", "x")):
        code, _, err = run(*words, db=db, before=before)
        assert code == 4
        assert f"{db}: the file cannot be written. Nothing of this call was written." in err
    assert db.read_bytes() == content
    db.chmod(0o000)
    code, _, err = run("show", ANA, db=db, before=before)
    assert code == 4
    assert str(db) in err


# Bad input


def contact(fields: str) -> str:
    """Return a record with further fields, given as JSON text."""
    return f'{{"entity_type":"contact","name":"Ana Rivera",{fields}}}'
