"""What goes wrong around a command, in processes of its own: signals, pipes, disks, files, and bad input.

Each ends in a message that says what became of the data, in an exit code of the surface, and in a ledger that is sound.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
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
    assert b"Interrupted. What was acknowledged is safe. A write that was not is there whole or not at all" in seen
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


def test_a_reader_that_has_enough_ends_the_log(large: Path) -> None:
    """`woodrat log | head -1` prints one line and no traceback."""
    if not shutil.which("bash"):
        pytest.skip("this system has no bash")
    script = '"$@" log | head -1; echo "${PIPESTATUS[0]}"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", *WOODRAT, "--db", str(large)], capture_output=True, text=True, timeout=60
    )
    first, code = done.stdout.splitlines()
    assert json.loads(first)["position"] == 0
    assert (code, done.stderr) == ("141", "")


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


def test_a_bar_is_drawn_for_a_terminal_alone(large: Path) -> None:
    """In a pipe standard error stays empty, however long the work."""
    for words in (("rebuild",), ("schemas", "infer", "thing"), ("prove-order", "--shuffles", "1")):
        code, _, err = run(*words, db=large)
        assert (code, err) == (0, "")


# Disks and files


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one mebibyte; skipped where mounting is not allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("a disk of its own takes the right to mount one")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting was refused: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    """A batch that does not fit is refused whole with exit 4; reads go on, and with space again writes do too."""
    db = small_disk / "agents.db"
    assert run("store", "--json", BARCELONA, db=db)[0] == 0
    file = tmp_path / "records.jsonl"
    records = ({"entity_type": "thing", "name": f"{number}", "x": "x" * 500} for number in range(3_000))
    file.write_text("\n".join(map(json.dumps, records)), "utf-8")
    for words in (("store", "--file", str(file)), ("store", "--file", str(file), "-o", "json")):
        code, out, err = run(*words, db=db)
        assert (code, out) == (4, "")
        assert "the disk is full" in err
        assert "Nothing of this call was written, and all earlier writes are safe." in err
    filling = small_disk / "filling"
    with contextlib.suppress(OSError), filling.open("wb", buffering=0) as stream:
        while True:
            stream.write(b"x" * 4096)
    os.truncate(filling, filling.stat().st_size - 40_960)  # what a reader needs, and hardly more
    for new in (db, small_disk / "another.db"):
        code, _, err = run("store", "--json", RECORD, db=new)
        assert code == 4
        assert "the disk is full" in err
    assert run("show", ANA, db=db)[0] == 0
    filling.unlink()
    assert run("store", "--json", RECORD, db=db)[0] == 0
    assert entries(db) == 3


def test_a_full_disk_behind_the_output_is_told(db: Path) -> None:
    """Output that nobody can keep ends in exit 4."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*WOODRAT, "--db", str(db), "log"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 4
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_read_only_disk_takes_no_writes(small_disk: Path) -> None:
    """On a disk that cannot be written a write exits with 4, says so, and changes nothing."""
    db = small_disk / "agents.db"
    assert run("store", "--json", BARCELONA, db=db)[0] == 0
    content = db.read_bytes()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        for words in (("store", "--json", RECORD), ("delete", ANA), ("rebuild",)):
            code, out, err = run(*words, db=db)
            assert (code, out) == (4, "")
            assert str(db) in err
            assert "Nothing of this call was written." in err
        assert run("store", "--json", RECORD, db=small_disk / "new.db")[0] == 4
        code, _, err = run("show", ANA, db=db)
        assert code == 0, err
        assert db.read_bytes() == content
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert entries(db) == 2


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


def of_another_program(path: Path) -> None:
    """Make a database that is not ours."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()


def of_another_version(path: Path) -> None:
    """Make a database that another version of woodrat wrote."""
    woodrat.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (Path.mkdir, "is a directory. Name a file in it."),
        (lambda path: path.write_bytes(b"These are my notes. " * 300), "is not a SQLite database. Name another file."),
        (of_another_program, "another program"),
        (of_another_version, "Use the version that wrote it"),
        (os.mkfifo, "is not a file. Name a file."),
    ],
    ids=["a directory", "a text", "another program's", "another version's", "a pipe"],
)
@pytest.mark.parametrize("words", [("show", ANA), ("store", "--json", RECORD)], ids=["show", "store"])
def test_what_is_no_ledger_is_left_alone(tmp_path: Path, make: Any, says: str, words: tuple[str, ...]) -> None:
    """Whatever else --db names is refused with exit 2 by reads and writes alike, and stays as it is."""
    path = tmp_path / "thing"
    make(path)
    content = path.read_bytes() if path.is_file() else b""
    code, out, err = run(*words, db=path)
    assert (code, out) == (2, "")
    assert str(path) in err
    assert says in err
    assert "Nothing was " in err
    assert content == (path.read_bytes() if path.is_file() else b"")


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    """Reading what is not there exits with 3; writing into a folder that is not there, or to nonsense, with 2."""
    code, _, err = run("show", ANA, db=tmp_path / "none.db")
    assert code == 3
    assert "There is no database at" in err
    assert list(tmp_path.iterdir()) == []
    assert run("store", "--json", RECORD, db=tmp_path / "none" / "a.db")[0] == 2
    code, _, err = run("show", ANA, db=Path("x" * 5_000))
    assert code == 2
    assert "Name another file." in err


# Bad input


def about(**parts: Any) -> str:
    """Return a record with this in its `$`."""
    return json.dumps({"entity_type": "contact", "name": "Ana Rivera", "city": "Girona", "$": parts})


def contact(fields: str) -> str:
    """Return a record with further fields, given as JSON text."""
    return f'{{"entity_type":"contact","name":"Ana Rivera",{fields}}}'


STORED = [
    ("", "standard input: it is empty"),
    ('[{"entity_type":"contact",}]', "not JSON at line 1 column 27"),
    ("[", "not JSON at line 1 column 2"),
    ("\ufeff[]", "byte order mark"),
    ("[" * 100_000 + "]" * 100_000, "line 1 column 65"),
    ("[]", "the list is empty"),
    ("42", "got 42 (number)"),
    ('["contact"]', '/0: expected an object, got "contact" (text)'),
    ("{}", "/entity_type: missing"),
    ('{"entity_type":"Contact","name":"x"}', '"Contact" (text) is not a type'),
    ('{"entity_type":"contact","city":"Reus"}', "nothing identifies this contact"),
    ('{"entity_type":"contact","$":{"key":"x"}}', "states nothing about"),
    ('{"entity_type":"same_as","name":"x"}', "same_as"),
    (contact('"name":"x"'), "more than once"),
    (contact('"n":NaN'), "NaN"),
    (contact('"n":-Infinity'), "-Infinity"),
    (contact('"n":-0'), "-0"),
    (contact('"n":9007199254740993'), "9007199254740993"),
    (contact('"n":1e400'), "1e400"),
    (contact('"n":"\\ud800"'), "surrogate"),
    (contact('"n":"\\u0000"'), "NUL"),
    (contact('"":1'), "the field name is empty"),
    (contact(f'"{"f" * 257}":1'), "257 bytes"),
    (contact('"city":42,"phone":false'), "contact.phone: expected text, got false (boolean)"),
    (contact('"tags":null'), "contact.tags: expected an array, got null"),
    (contact('"tags":7'), "contact.tags[0]: expected text, got 7 (number)"),
    (about(kye="x"), "unknown name"),
    (about(key="a\nb"), "U+000A"),
    (about(priority=1.5), "expected an integer, got 1.5 (number)"),
    (about(confidence=2), "got 2 (number)"),
    (about(source="src_none"), 'no source "src_none" (text) here'),
    (about(remove={"city": ["Reus"]}), "merges by latest"),
    (about(relate=[{"type": "Knows", "to": ANA}]), '"Knows"'),
    (about(observed_at="2026-02-30T00:00:00Z"), "not a day of the calendar"),
    (about(observed_at="2026-01-01T00:00:00"), "has no UTC offset"),
    (about(observed_at="2016-12-31T23:59:60Z"), "is a leap second"),
]
"""What is sent to `store` on standard input, and part of what is said about it."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger that no test changes."""
    path = tmp_path_factory.mktemp("bad") / "agents.db"
    with woodrat.open(path, agent="crm") as ledger:
        ledger.store(json.loads(BARCELONA))
    return path


@pytest.mark.parametrize(("text", "says"), STORED, ids=[text[:60] for text, _ in STORED])
def test_bad_records_are_refused(shared: Path, text: str, says: str) -> None:
    """A record that cannot be stored exits with 2, names the place and the value, and nothing was written."""
    code, out, err = run("store", "--file", "-", "--idempotency-key", "once", db=shared, stdin=text.encode())
    assert (code, out) == (2, ""), err
    assert says in err
    assert err.endswith("\nNothing was written.\nSee: woodrat store --help\n")
    with woodrat.open(shared, readonly=True) as ledger:
        assert ledger.position == 1


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("store", "--file", "/nowhere/at/all.json"), 2, "No such file or directory"),
        (("store", "--file", "/"), 2, "Is a directory"),
        (("store", f"--json={RECORD}", "--idempotency-key", "k" * 257), 2, "257 bytes"),
        (("store", f"--json={RECORD}", "--tenant", "a/b"), 2, '"a/b" (text) is not a tenant'),
        (("store", f"--json={RECORD}", "--if-version", "7"), 6, "version"),
        (("show", "contact/"), 2, "the key is empty"),
        (("show", "contact/Nobody"), 3, "not known at position"),
        (("show", "ent_" + "a" * 26), 3, "There is no entity"),
        (("show", ANA, "--as-of", "someday"), 2, '"someday" (text)'),
        (("show", ANA, "--as-of", "9" * 5_000), 3, "There is no position"),
        (("diff", "--from", "0", "--to", "99"), 3, "There is no position"),
        (("tag", ""), 2, "not a tag"),
        (("sources", "show", "src_" + "a" * 26), 3, "`sources list` lists them"),
        (("retract", "obs_" + "a" * 26, "--reason", "x"), 3, "there is no observation"),
        (("--db", "mysql://ann:secret@db.example/x", "show", ANA), 2, "mysql://db.example"),
        (("--db", "postgresql://ann:secret@127.0.0.1:9/x", "show", ANA), 4, "postgresql://ann@127.0.0.1:9/x"),
    ],
    ids=lambda part: " ".join(part)[:60] if isinstance(part, tuple) else "",
)
def test_bad_arguments_end_in_their_exit_code(shared: Path, words: tuple[str, ...], code: int, says: str) -> None:
    """What a verb cannot take exits with the code of the surface, and secrets stay out of the message."""
    found, out, err = run(*words, db=shared)
    assert (found, out) == (code, ""), err
    assert says in err
    assert "secret" not in err
    as_json = json.loads(run(*words, "-o", "json", db=shared)[2])
    assert says.split('"')[0] in as_json["message"]
    with woodrat.open(shared, readonly=True) as ledger:
        assert ledger.position == 1
