"""Opening and running out: every unsafe file or place is refused by name, and damage is never answered from."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import apsw
import pytest
from tests.faults.processes import FULL, PATIENCE, ROOT, check_derived, check_log

import woodrat
from woodrat.context import Context
from woodrat.engines.sqlite import connection
from woodrat.engines.sqlite.connection import APPLICATION_ID, LAYOUT, check_version
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.errors import Corrupt, Refused, Unavailable, WoodratError
from woodrat.ledger.write import Draft, Writer
from woodrat.merge import BUILTIN
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import answers, ledger_on, log_of, spelled, tell

RECORD: Final[dict[str, Any]] = {"entity_type": "memo", "id": "1", "text": "x"}
DAMAGES: Final = 200 if FULL else 25
"""How many files are damaged, each in another place."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a ledger will be."""
    return tmp_path / "l.db"


def raw(path: Path, *statements: str) -> None:
    """Run statements on a file, as another program would."""
    other = apsw.Connection(str(path))
    for statement in statements:
        other.execute(statement)
    other.close()


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder that holds anything; SQLite leaves an index of the log behind a reader."""
    found = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    return {name: data for name, data in found.items() if data and not name.endswith("-shm")}


def told(path: Path) -> tuple[bytes, bytes]:
    """Tell the story on a new file, with a source of many pages; return its log and answers."""
    engine, clock = SqliteEngine(path), FixedClock()
    a, b = (ledger_on(engine, "default", agent, clock) for agent in "ab")
    for _ in tell(a, b):
        pass
    a.sources.add(bytes(random.Random(1).randbytes(20_000)), name="long")
    for number in range(10):
        a.store([{**RECORD, "id": f"{number}-{n}", "text": "x" * 400 * n} for n in range(8)])
    a.fingerprint()
    found = spelled(log_of(engine, "default")), spelled(answers(a.at("now")))
    engine.close()
    raw(path, "VACUUM")  # a new file is mostly free pages
    return found


# What is refused


def test_a_file_that_is_no_database_is_refused(file: Path) -> None:
    """A file with other content is refused by name and left as it is."""
    file.write_bytes(b"These are my notes, not a database.\n" * 100)
    before = bytes_of(file.parent)
    with pytest.raises(Refused, match=r"l\.db is not a SQLite database") as refused:
        woodrat.open(file)
    assert isinstance(refused.value.__cause__, apsw.NotADBError)
    assert bytes_of(file.parent) == before


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("readonly", [False, True])
def test_a_database_of_another_program_is_refused(file: Path, readonly: bool, mode: str) -> None:
    """A database of another program is refused, and not a byte of it changes, its journal mode included."""
    raw(file, f"PRAGMA journal_mode = {mode}", "CREATE TABLE person (name)", "INSERT INTO person VALUES ('Ana')")
    before = bytes_of(file.parent)
    with pytest.raises(Refused, match="database of another program"):
        woodrat.open(file, readonly=readonly)
    assert bytes_of(file.parent) == before


@pytest.mark.parametrize("mark", ["application_id", "user_version"])
@pytest.mark.parametrize("readonly", [False, True])
def test_a_database_that_another_program_has_only_marked_is_refused(file: Path, readonly: bool, mark: str) -> None:
    """A database that has no tables yet, and the mark of another program, is not taken for an empty file."""
    raw(file, f"PRAGMA {mark} = 7")
    before = bytes_of(file.parent)
    with pytest.raises(Refused, match=r"database of another program[\s\S]*Nothing was changed"):
        woodrat.open(file, readonly=readonly)
    assert bytes_of(file.parent) == before


@pytest.mark.parametrize("number", [0, 1, LAYOUT - 1, LAYOUT + 1])
@pytest.mark.parametrize("readonly", [False, True])
def test_another_layout_is_refused(file: Path, readonly: bool, number: int) -> None:
    """A file of an older or a newer version is refused with both layouts and what to do, and left as it is."""
    with woodrat.open(file) as ledger:
        ledger.store(RECORD)
    raw(file, f"PRAGMA user_version = {number}")
    before = bytes_of(file.parent)
    with pytest.raises(Refused, match=f"has layout {number}, and .* knows layout {LAYOUT} alone") as refused:
        woodrat.open(file, readonly=readonly)
    for words in ("the version that wrote it", "`woodrat export log`", "`woodrat import log`", "Nothing was changed."):
        assert words in str(refused.value)
    assert bytes_of(file.parent) == before
    raw(file, f"PRAGMA user_version = {LAYOUT}")
    with woodrat.open(file, readonly=readonly) as ledger:
        assert ledger.show("memo/1").fields["text"] == "x"


@pytest.mark.parametrize("readonly", [False, True])
def test_a_directory_is_refused(tmp_path: Path, readonly: bool) -> None:
    """A directory is not a ledger."""
    with pytest.raises(Refused, match="is a directory"):
        woodrat.open(tmp_path, readonly=readonly)


def test_a_thing_that_is_no_file_is_refused(tmp_path: Path) -> None:
    """A pipe or a device is not a ledger."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Refused, match="is not a file"):
        woodrat.open(tmp_path / "pipe")


@pytest.mark.parametrize("readonly", [False, True])
def test_a_missing_folder_is_refused(tmp_path: Path, readonly: bool) -> None:
    """A folder that is not there is named, and not made."""
    with pytest.raises(Refused, match="Create the folder first"):
        woodrat.open(tmp_path / "none" / "l.db", readonly=readonly)
    assert not (tmp_path / "none").exists()


def test_a_missing_file_is_not_made_by_reading(file: Path) -> None:
    """A file that is not there cannot be opened read-only, and is not made."""
    with pytest.raises(Refused, match="does not exist"):
        woodrat.open(file, readonly=True)
    assert not file.exists()


def test_an_empty_file_is_a_new_ledger(file: Path) -> None:
    """An empty file may become a ledger; read-only it is none yet."""
    file.touch()
    with pytest.raises(Refused, match=r"has no tables yet\. Open it for writing once"):
        woodrat.open(file, readonly=True)
    with woodrat.open(file) as ledger:
        assert ledger.store(RECORD).position == 0


# Setting up


@pytest.fixture
def before_each(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], object]], None]:
    """What has a call made with each statement that a connection is about to run."""

    def have(call: Callable[[str], object]) -> None:
        def trace(cursor: object, statement: str, values: object) -> bool:
            call(statement)
            return True

        monkeypatch.setattr(apsw, "connection_hooks", [lambda made: setattr(made, "exec_trace", trace)])

    return have


def test_a_set_up_that_is_cut_off_leaves_an_empty_file(
    tmp_path: Path, before_each: Callable[[Callable[[str], object]], None]
) -> None:
    """A process that is killed before any statement of the set-up leaves no table; the next one sets the file up."""
    statements: list[str] = []
    before_each(statements.append)
    woodrat.open(tmp_path / "whole.db").close()
    first, last = statements.index("BEGIN IMMEDIATE"), statements.index("COMMIT")
    assert last - first > 40
    for number in (*range(first), *range(first, last, 1 if FULL else 9), last - 1, last):
        file = tmp_path / f"{number}.db"
        if (child := os.fork()) == 0:
            before_each(partial(_end_after, iter(range(number))))
            try:
                woodrat.open(file)
            finally:
                os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        with pytest.raises(Refused, match="has no tables yet"):
            woodrat.open(file, readonly=True)
        with woodrat.open(file) as ledger:
            assert ledger.store(RECORD).position == 0
            assert ledger.verify().sound


def _end_after(left: Iterator[int], statement: str) -> None:
    if next(left, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("number", [LAYOUT, LAYOUT + 1])
def test_a_file_that_is_set_up_meanwhile(
    tmp_path: Path, before_each: Callable[[Callable[[str], object]], None], number: int
) -> None:
    """Whoever finds tables where there were none a statement ago takes them as they are, or refuses their layout."""
    for place in range(1_000):
        file, left, turns = tmp_path / f"{place}.db", iter(range(place)), list[str]()

        def other(statement: str, file: Path = file, left: Iterator[int] = left, turns: list[str] = turns) -> None:
            if not turns and next(left, None) is None:
                turns.append(statement)
                with woodrat.open(file) as ledger:
                    ledger.store(RECORD)
                raw(file, f"PRAGMA user_version = {number}")

        before_each(other)
        if number == LAYOUT:
            with woodrat.open(file) as ledger:
                assert ledger.store({**RECORD, "id": "2"}).position == 1
                assert ledger.verify().sound
        else:
            with pytest.raises(Refused, match=f"has layout {number}"):
                woodrat.open(file)
        if turns == ["BEGIN IMMEDIATE"]:
            return
    raise AssertionError("nothing was set up")


def test_processes_that_set_up_a_file_at_once(file: Path) -> None:
    """Of several processes that open a new file at the same time one makes its tables, and all write."""
    code = (
        "import sys, woodrat; input(); ledger = woodrat.open(sys.argv[1], agent=sys.argv[2]); "
        "ledger.store({'entity_type': 'memo', 'id': sys.argv[2], 'text': 'x'}); ledger.close()"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(file), str(number)], cwd=ROOT, stdin=subprocess.PIPE)
        for number in range(4)
    ]
    for each in running:
        assert each.stdin is not None
        each.stdin.write(b"go\n")
        each.stdin.close()
    assert [each.wait(PATIENCE) for each in running] == [0] * 4
    with woodrat.open(file) as ledger:
        assert {ledger.show(f"memo/{number}").fields["text"] for number in range(4)} == {"x"}
        assert ledger.verify().sound


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ("3.7.0", False),
        ("3.43.2", False),
        ("3.44.5", False),
        ("3.44.6", True),
        ("3.44.10", True),
        ("3.45.0", False),
        ("3.49.2", False),
        ("3.50.6", False),
        ("3.50.7", True),
        ("3.51.0", False),
        ("3.51.2", False),
        ("3.51.3", True),
        ("3.52.0", True),
        ("3.100.0", True),
        ("4.0.0", True),
        (apsw.sqlite_lib_version(), True),
    ],
)
def test_versions_with_the_reset_bug_are_refused(version: str, safe: bool) -> None:
    """Versions of SQLite that can lose what was committed are refused by name, and the fixed ones are not."""
    if safe:
        check_version(version)
    else:
        with pytest.raises(Refused, match=f"SQLite {version} can corrupt"):
            check_version(version)


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph"])
def test_network_file_systems_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A file on a network file system is refused, also through a link and below a mount point with a space."""
    far = tmp_path / "my disk"
    (far / "deep").mkdir(parents=True)
    (tmp_path / "link.db").symlink_to(far / "l.db")
    named = str(far).replace(" ", "\\040")
    _mounted(monkeypatch, f"/dev/sda / ext4 rw 0 0\nserver:/x {named} {kind} rw 0 0\ntmpfs /run tmpfs rw 0 0\n")
    for path in (far / "l.db", far / "deep" / "l.db", tmp_path / "link.db"):
        with pytest.raises(Refused, match=rf"network file system \({kind}\)"):
            woodrat.open(path)
    assert list(far.iterdir()) == [far / "deep"]
    woodrat.open(tmp_path / "my disk.db").close()


def test_a_local_disk_inside_a_network_file_system_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest mount point counts, and the last of those at one place."""
    _mounted(monkeypatch, f"s:/ / nfs rw 0 0\ns:/ {tmp_path} nfs rw 0 0\n/dev/b {tmp_path} ext4 rw 0 0\n")
    woodrat.open(tmp_path / "l.db").close()


def _mounted(monkeypatch: pytest.MonkeyPatch, mounts: str) -> None:
    monkeypatch.setattr("woodrat.engines.sqlite.connection._mounts", lambda: mounts)


# What is in place


def test_what_an_open_file_is(file: Path) -> None:
    """A ledger's file says whose it is, keeps a write-ahead log, and syncs every commit."""
    engine = SqliteEngine(file)
    ledger_on(engine).store(RECORD)
    assert file.with_name("l.db-wal").stat().st_size > 0
    engine._writer.connection.authorizer = None
    settings = {
        "application_id": APPLICATION_ID,
        "user_version": LAYOUT,
        "journal_mode": "wal",
        "synchronous": 2,
        "recursive_triggers": 1,
    }
    assert {name: engine._writer.connection.execute(f"PRAGMA {name}").get for name in settings} == settings
    engine.close()
    assert bytes.fromhex("57524154") == file.read_bytes()[68:72]


@pytest.mark.parametrize("readonly", [False, True])
def test_a_closed_ledger_says_so(file: Path, readonly: bool) -> None:
    """After close every call is unavailable, closing again is fine, and what was acknowledged is there."""
    with woodrat.open(file) as ledger:
        ledger.store(RECORD)
    ledger = woodrat.open(file, readonly=readonly)
    assert ledger.show("memo/1").fields["text"] == "x"
    ledger.close()
    ledger.close()
    calls: list[Callable[[], object]] = [
        lambda: ledger.store(RECORD),
        lambda: ledger.show("memo/1"),
        ledger.fingerprint,
        lambda: ledger.at(0),
    ]
    for call in calls:
        with pytest.raises(Unavailable, match="closed"):
            call()
    with woodrat.open(file) as ledger:
        assert ledger.show("memo/1").fields["text"] == "x"


def test_a_write_under_way_when_the_ledger_is_closed_is_finished(file: Path) -> None:
    """Closing waits for nobody and cuts nobody off: the write under way is kept, the next one is unavailable."""
    engine = SqliteEngine(file)
    ledger = ledger_on(engine)
    ledger.store(RECORD)
    begun, closed = threading.Event(), threading.Event()
    answers: list[object] = []

    def plan(draft: Draft) -> None:
        begun.set()
        closed.wait(60)
        draft.add("tag", b"{}")

    def write() -> None:
        context = Context(engine, ledger.tenant, BUILTIN, FixedClock(), "a")
        answers.append(Writer(context).write("tag", {}, plan).position)

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait(60)
    engine.close()
    closed.set()
    thread.join(60)
    assert answers == [1]
    with pytest.raises(Unavailable, match="closed"):
        ledger.store({**RECORD, "id": "2"})
    again = SqliteEngine(file)
    assert ledger_on(again).store({**RECORD, "id": "2"}).position == 2
    again.close()


def test_a_read_only_ledger_reads_and_refuses_to_write(file: Path) -> None:
    """Read-only, everything can be read, nothing can be written, and no file changes."""
    log, said = told(file)
    before = file.read_bytes()
    engine = SqliteEngine(file, readonly=True)
    ledger = ledger_on(engine, "default")
    assert spelled(log_of(engine, "default")) == log
    assert spelled(answers(ledger.at("now"))) == said
    calls: list[Callable[[], object]] = [
        lambda: ledger.store(RECORD),
        lambda: ledger.delete("memo/1"),
        lambda: ledger.tag("x"),
    ]
    for call in calls:
        with pytest.raises(Unavailable, match="read-only"):
            call()
    with pytest.raises(apsw.ReadOnlyError):
        engine._writer.connection.execute("INSERT INTO tenant (name) VALUES ('x')")
    engine.close()
    assert file.read_bytes() == before


# Permissions, as a user whom they bind


def _as_nobody(work: Callable[[], None]) -> str:
    """Return how a call fails for a user without rights, from a forked process: root is bound by no permission."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            try:
                work()
                os.write(write, b"fine")
            except WoodratError as error:
                os.write(write, f"{error.code}: {error}".encode())
            except BaseException as error:
                os.write(write, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as heard:
        answer = heard.read()
    os.waitpid(child, 0)
    return answer


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Path]:
    """A folder that everybody can reach, with a ledger in it."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder.stat().st_mode & 0o011 != 0o011:
            folder.chmod(folder.stat().st_mode | 0o011)
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    told(shelf / "l.db")
    yield shelf
    shelf.chmod(0o755)


def _write(path: Path) -> None:
    with woodrat.open(path) as ledger:
        ledger.store({**RECORD, "id": "new"})


def _read(path: Path) -> None:
    with woodrat.open(path, readonly=True) as ledger:
        assert ledger.show("memo/1-1").fields["text"]


def test_a_file_that_cannot_be_written_says_so(shelf: Path) -> None:
    """A file without write permission is unavailable for writing, in words, and loses nothing."""
    (shelf / "l.db").chmod(0o444)
    shelf.chmod(0o777)
    assert _as_nobody(lambda: _write(shelf / "l.db")).startswith("unavailable: ")
    assert _as_nobody(lambda: _read(shelf / "l.db")) == "fine"


def test_a_folder_that_cannot_be_written_says_so(shelf: Path) -> None:
    """In a folder without write permission nothing can be made or written, and the answer says so in words."""
    (shelf / "l.db").chmod(0o666)
    shelf.chmod(0o555)
    for path in (shelf / "l.db", shelf / "new.db"):
        assert _as_nobody(lambda path=path: _write(path)).startswith("unavailable: ")  # type: ignore[misc]
    answer = _as_nobody(lambda: _read(shelf / "l.db"))
    assert answer == "fine" or answer.startswith("unavailable: ")


def test_a_file_that_cannot_be_read_says_so(shelf: Path) -> None:
    """A file without any permission is unavailable, in words."""
    (shelf / "l.db").chmod(0o000)
    for work in (_read, _write):
        assert _as_nobody(lambda work=work: work(shelf / "l.db")).startswith("unavailable: ")  # type: ignore[misc]


# A full disk


def test_a_full_database_loses_nothing_and_goes_on(file: Path) -> None:
    """A write that finds no page left is unavailable and leaves nothing; with space again the same call is stored."""
    engine = SqliteEngine(file)
    ledger = ledger_on(engine, "default")
    ledger.store(RECORD)
    before = spelled(log_of(engine, "default"))
    _limit(engine, engine._writer.connection.execute("PRAGMA page_count").get + 3)
    big = [{**RECORD, "id": f"big-{n}", "text": "x" * 200_000} for n in range(50)]
    with pytest.raises(Unavailable, match="the disk is full") as full:
        ledger.store(big, idempotency_key="big")
    assert isinstance(full.value.__cause__, apsw.FullError)
    assert "Free some space and send the same call again." in str(full.value)
    assert spelled(log_of(engine, "default")) == before
    _limit(engine, 2**30)
    report = ledger.store(big, idempotency_key="big")
    assert (report.repeated, len(report.positions)) == (False, 50)
    check_log(engine)
    check_derived(engine)
    engine.close()


def _limit(engine: SqliteEngine, pages: int) -> None:
    engine._writer.connection.authorizer = None
    engine._writer.connection.execute(f"PRAGMA max_page_count = {pages}")
    engine._writer.connection.authorizer = connection.authorize


FILLING: Final = """
import resource, sys
import woodrat
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    ledger = woodrat.open(sys.argv[1])
except woodrat.Unavailable as error:
    print("not opened", error)
    sys.exit()
done = 0
try:
    for number in range(400):
        ledger.store([{"entity_type": "memo", "id": f"{number}-{n}", "text": "x" * 4000} for n in range(10)])
        done += 1
    print("never full")
except woodrat.Unavailable as error:
    assert ledger.position == done * 10 - 1
    print("full", done, error)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        report = ledger.store({"entity_type": "memo", "id": "after"})
        print("then", report.position - done * 10)
"""


def _filling(path: Path, limit: int) -> str:
    """Let a process write until nothing more fits; return what it said, which is never a raw exception."""
    done = subprocess.run(
        [sys.executable, "-c", FILLING, str(path), str(limit)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kibibytes", [1, 8, 100, 4000, 4200, 6000])
def test_files_that_may_not_grow(file: Path, kibibytes: int) -> None:
    """Where the system lets no file grow, a call is unavailable, nothing is lost, and writes go on after."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    said = _filling(file, kibibytes * 1024)
    if said.startswith("full"):
        done = int(said.split()[1])
        assert said.endswith("then 0\n")
    else:
        assert said.startswith("not opened")
        done = None
    engine = SqliteEngine(file)
    check_log(engine)
    if done is not None:
        assert ledger_on(engine, "default").position == done * 10
    ledger_on(engine, "default").store({**RECORD, "id": "last"})
    check_derived(engine)
    engine.close()


@pytest.mark.parametrize("kibibytes", [4, 64, 4096, 8300, 12000])
def test_a_full_disk(tmp_path: Path, kibibytes: int) -> None:
    """On a disk that is really full, opening or writing is unavailable, and all goes on once there is space."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(disk)]
    if os.getuid() != 0 or shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("only root can mount a small disk here")
    try:
        said = _filling(disk / "l.db", 0)
        assert said.startswith(("full", "not opened"))
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        engine = SqliteEngine(disk / "l.db")
        check_log(engine)
        if said.startswith("full"):
            assert ledger_on(engine, "default").position == int(said.split()[1]) * 10 - 1
        ledger_on(engine, "default").store({**RECORD, "id": "last"})
        check_derived(engine)
        engine.close()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# Damage


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, bytes]:
    """A good file, its log and its answers."""
    path = tmp_path_factory.mktemp("good") / "good.db"
    return path, *told(path)


def zeroed(path: Path, chance: random.Random) -> str:
    """Write zeros over one page, but not the first: without that it is no database at all."""
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    page = chance.randrange(1, len(data) // size)
    data[page * size : (page + 1) * size] = bytes(size)
    path.write_bytes(data)
    return f"page {page + 1}"


def cut(path: Path, chance: random.Random) -> str:
    """Cut the file somewhere after its first page."""
    length = chance.randrange(4096, path.stat().st_size)
    os.truncate(path, length)
    return f"{length} bytes"


@pytest.mark.parametrize("damage", [zeroed, cut])
def test_damage_is_never_answered_from(
    good: tuple[Path, bytes, bytes], tmp_path: Path, damage: Callable[[Path, random.Random], str]
) -> None:
    """A damaged file is refused as corrupt or answers as before; no answer is wrong and no exception raw."""
    source, log, said = good
    chance = random.Random(7)
    found: dict[str, int] = {}
    wrong: list[str] = []
    for number in range(DAMAGES):
        path = tmp_path / f"{number}.db"
        shutil.copy(source, path)
        where = damage(path, chance)
        result = _examined(path, log, said)
        found[result.split(":")[0]] = found.get(result.split(":")[0], 0) + 1
        if result.startswith(("raw", "wrong")):
            wrong.append(f"{where}: {result}")
        for left in tmp_path.iterdir():
            left.unlink()
    print(found)
    assert wrong == []
    assert found.get("corrupt", 0) > 0


def test_no_page_of_zeros_is_answered_from(good: tuple[Path, bytes, bytes], tmp_path: Path) -> None:
    """Whichever page is lost, also one that only holds the rest of a long body, no answer is wrong."""
    source, log, said = good
    data = source.read_bytes()
    size = int.from_bytes(data[16:18], "big")
    wrong: list[str] = []
    for page in range(1, len(data) // size):
        path = tmp_path / f"{page}.db"
        path.write_bytes(data[: page * size] + bytes(size) + data[(page + 1) * size :])
        result = _examined(path, log, said)
        if result.startswith(("raw", "wrong")):
            wrong.append(f"page {page + 1}: {result}")
        for left in tmp_path.iterdir():
            left.unlink()
    assert wrong == []


def _examined(path: Path, log: bytes, said: bytes) -> str:
    """Return how a damaged file answers: as before, corrupt, wrong, or with an exception that is not ours."""
    try:
        engine = SqliteEngine(path)
    except WoodratError as error:
        return error.code
    except Exception as error:
        return f"raw: {error!r}"
    try:
        ledger = ledger_on(engine, "default")
        try:
            if spelled(answers(ledger.at("now"))) != said:
                return "wrong: other answers"
            if spelled(log_of(engine, "default")) != log:
                return "wrong: another log"
            ledger.store({**RECORD, "id": "1-1", "text": "after"})
        except Corrupt:
            return "corrupt"
        except WoodratError as error:
            return f"wrong: {error!r}"
        except Exception as error:
            return f"raw: {error!r}"
        return "unharmed"
    finally:
        engine.close()


HINDERING: Final = {
    "raises": "AFTER INSERT ON entry BEGIN SELECT RAISE(ABORT, 'not today'); END",
    "fails": "AFTER INSERT ON entry BEGIN SELECT abs(-9223372036854775807 - 1); END",
    "looks": "AFTER INSERT ON entry BEGIN SELECT * FROM nowhere; END",
    "changes": "AFTER INSERT ON entry BEGIN DELETE FROM entity; END",
    "adds": "AFTER INSERT ON entry BEGIN INSERT INTO entity SELECT * FROM entity WHERE false; END",
    "skips": "BEFORE INSERT ON entry BEGIN SELECT RAISE(IGNORE); END",
}
"""Triggers of somebody else on our tables."""


def with_trigger(file: Path, body: str) -> None:
    raw = apsw.Connection(str(file))
    raw.execute(f"CREATE TRIGGER theirs {body}")
    raw.close()


@pytest.mark.parametrize("kind", HINDERING)
def test_a_file_with_foreign_triggers_is_only_read(file: Path, kind: str) -> None:
    """No write runs a trigger that somebody else made: the file is not opened for writing, and says why; it is read."""
    with woodrat.open(file) as ledger:
        ledger.store(RECORD)
    with_trigger(file, HINDERING[kind])
    with pytest.raises(Unavailable, match=r'did not make: "theirs".*Nothing of this call was written') as refused:
        woodrat.open(file)
    assert refused.value.details["triggers"] == ["theirs"]
    with woodrat.open(file, readonly=True) as ledger:
        assert ledger.show("memo/1").fields["text"] == "x"
        assert any("theirs is not one of ours" in fault.problem for fault in ledger.verify().damage)


@pytest.mark.parametrize("kind", [kind for kind in HINDERING if kind != "skips"])
def test_a_foreign_trigger_that_is_made_meanwhile_stops_writes(file: Path, kind: str) -> None:
    """A trigger that raises, fails or changes rows undoes the write, which says so in a sentence; nothing is lost."""
    with woodrat.open(file) as ledger:
        ledger.store(RECORD)
        with_trigger(file, HINDERING[kind])
        with pytest.raises(Unavailable, match=r'did not make: "theirs".*hindered this write'):
            ledger.store({**RECORD, "id": "2"})
        assert ledger.show("memo/1").fields["text"] == "x"
        assert ledger.position == 0
        raw = apsw.Connection(str(file))
        raw.execute("DROP TRIGGER theirs")
        raw.close()
        ledger.store({**RECORD, "id": "2"})
    with woodrat.open(file) as ledger:
        assert ledger.verify().sound


def test_our_own_triggers_are_known(file: Path) -> None:
    """Every trigger that a new file has is one of ours by its name."""
    woodrat.open(file).close()
    raw = apsw.Connection(str(file))
    made = {name for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    raw.close()
    assert made <= connection._OWN_TRIGGERS


def test_a_missing_table_is_damage(file: Path) -> None:
    """A file that lacks a table is corrupt, in words."""
    told(file)
    raw(file, "DROP TABLE said")
    with woodrat.open(file) as ledger, pytest.raises(Corrupt, match="a part of the file is missing"):
        ledger.store(RECORD)


def test_a_file_without_its_first_page_is_refused(good: tuple[Path, bytes, bytes], tmp_path: Path) -> None:
    """A file whose beginning is gone is refused as no database of ours."""
    path = Path(shutil.copy(good[0], tmp_path / "l.db"))
    data = bytearray(path.read_bytes())
    data[:4096] = bytes(4096)
    path.write_bytes(data)
    with pytest.raises((Refused, Corrupt)):
        woodrat.open(path)
