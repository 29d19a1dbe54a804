"""Compaction: what secure deletion leaves in the files is found by the search, and goes when the file is compacted.

Faults are planted where copies could stay: in pages, free pages, the write-ahead log, the queue file and derived rows.
Processes read, write, are killed and run out of disk while the file is compacted.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw
import pytest
from tests.faults.cutting import folder
from tests.faults.processes import FULL, PATIENCE, ROOT
from tests.faults.test_readonly_medium import Disk, disk

import woodrat
from woodrat import Ledger, Unavailable
from woodrat.canon.ids import TenantId
from woodrat.engines.sqlite import compaction, connection, file_lock, writer_queue
from woodrat.engines.sqlite.connection import APPLICATION_ID, LAYOUT, connect
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.writer_queue import WriterQueue
from woodrat.erasure.index import AffectedData
from woodrat.erasure.verbs import pending_search
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock

SEEDS: Final = 40 if FULL else 4
REF: Final = "person/Zoe Zweigmann"
SECRET: Final = b"Zoe Zweigmann"
WORD: Final = b"quittenallee\0person\0"
"""How a row of the search index begins that holds a word of hers."""
TENANT: Final = TenantId("default")
__all__ = ["disk"]


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An erasure key; nobody waits for readers."""
    make_keys(tmp_path / "keys", FixedClock())
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(tmp_path / "keys"))
    monkeypatch.setattr(compaction, "PATIENCE_SECONDS", 0)
    return tmp_path / "keys"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Where the ledger is."""
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "people.db"


@pytest.fixture
def ledger(db: Path) -> Iterator[Ledger]:
    """A ledger with a person to be forgotten, and others."""
    with woodrat.open(db, clock=FixedClock()) as opened:
        tell(opened)
        yield opened


def tell(ledger: Ledger) -> None:
    """Say something of a person several times, and of others."""
    for number in range(12):
        ledger.store(
            [
                {"entity_type": "person", "name": "Zoe Zweigmann", "street": "Quittenallee 77b", "n": number},
                {"entity_type": "person", "name": f"Bob {number}", "note": "of no concern " * 40},
            ]
        )
    assert ledger.search("Quittenallee").items


def engine_of(ledger: Ledger) -> SqliteEngine:
    """Return the engine of a ledger in a file."""
    engine = ledger.context.engine
    assert isinstance(engine, SqliteEngine)
    return engine


def erase(ledger: Ledger) -> Any:
    """Erase the person."""
    return ledger.erase(REF, reason="a request")


def is_pending(ledger: Ledger) -> bool:
    """Return whether an erasure waits to be finished."""
    with ledger.context.engine.view(TENANT) as view:
        return pending_search.is_pending(view)


def files_with(db: Path, text: bytes = SECRET) -> set[str]:
    """Return which files hold some bytes."""
    return {path.name.removeprefix(db.name) for path in db.parent.iterdir() if text in path.read_bytes()}


# Secure deletion


def test_every_connection_that_writes_overwrites_what_it_frees(ledger: Ledger, db: Path) -> None:
    """Secure deletion is on for the writer from the first write on, and for whoever compacts; others cannot write."""
    for opened, wanted in ((connect(str(db)), 1), (engine_of(ledger)._writer.connection, 1)):
        opened.authorizer = None
        assert opened.execute("PRAGMA secure_delete").get == wanted
        opened.authorizer = connection.authorize
    reader = connect(str(db), readonly=True)
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("DELETE FROM meta")


SIZES: Final = (0, 1, 3, 9, 40, 200, 480, 900, 1_200, 4_080, 4_100, 9_000, 30_000)
TABLES: Final = f"""
CREATE TABLE purge (id INTEGER PRIMARY KEY);
CREATE TABLE plain (id INTEGER PRIMARY KEY, short BLOB, long BLOB);
CREATE INDEX plain_short ON plain (short);
CREATE TABLE keyed (short BLOB, id INTEGER, long BLOB, PRIMARY KEY (short, id)) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {LAYOUT};
"""


class File:
    """A database that rows of all sizes come to and go from, each version with a mark of its own."""

    vfs: str | None = None

    def __init__(self, path: Path, seed: int) -> None:
        self.path = str(path)
        self.writer_queue = WriterQueue(path)
        self.chance = random.Random(seed)
        raw = apsw.Connection(self.path)
        list(raw.execute(TABLES))
        raw.close()
        self.writer = connect(self.path)
        self.marks = 0

    def value(self, sizes: tuple[int, ...] = SIZES) -> bytes:
        self.marks += 1
        mark = b"<%07x>" % self.marks
        size = max(9, self.chance.choice(sizes))
        return (mark * (size // len(mark) + 1))[:size]

    def change(self, count: int) -> None:
        """Put some rows, in place of others or besides them, and take some away."""
        chance, run = self.chance, self.writer.execute
        run("BEGIN IMMEDIATE")
        for _ in range(count):
            id = chance.choice((chance.randrange(300), chance.randrange(60) << 35))
            match chance.randrange(12):
                case 0:
                    run("DELETE FROM plain WHERE id = ?", (id,))
                case 1:
                    run("DELETE FROM keyed WHERE id = ?", (id,))
                case 2:
                    low = chance.randrange(300)
                    run("DELETE FROM plain WHERE id BETWEEN ? AND ?", (low, low + chance.randrange(20)))
                case 3 | 4 | 5 | 6:
                    run("INSERT OR REPLACE INTO keyed VALUES (?, ?, ?)", (self.value(SIZES[:8]), id, self.value()))
                case _:
                    run("INSERT OR REPLACE INTO plain VALUES (?, ?, ?)", (id, self.value(SIZES[:7]), self.value()))
        run("COMMIT")

    def left(self) -> tuple[int, int]:
        """Return how many marks of what is gone are still in the files, and of how many."""
        rows = self.writer.execute("SELECT short, long FROM plain UNION ALL SELECT short, long FROM keyed")
        live = {value[:9] for row in rows for value in row}
        gone = {b"<%07x>" % number for number in range(1, self.marks + 1)} - live
        data = b"".join(Path(self.path + ending).read_bytes() for ending in ("", "-wal"))
        return sum(mark in data for mark in gone), len(gone)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_compaction_leaves_nothing_that_is_gone(seed: int) -> None:
    """Overflow pages, free pages and cells are overwritten but for a few copies; after a compaction there is none."""
    with folder() as place:
        file = File(place / "f.db", seed)
        for _ in range(6):
            file.change(100)
        assert compaction.truncate(file)
        left, gone = file.left()
        assert left * 20 < gone, (left, gone)
        compaction.compact(file)
        assert compaction.truncate(file)
        assert file.left()[0] == 0
        assert file.writer.execute("PRAGMA integrity_check").get == "ok"
        file.writer.close()


# Planted faults


class Planting(NamedTuple):
    """Puts something into a file after the write-ahead log was truncated, as a fault would leave it there."""

    patch: pytest.MonkeyPatch
    db: Path

    def after_truncation(self, put: Callable[[], None]) -> None:
        real, done = compaction.truncate, list[bool]()

        def truncate(engine: Any) -> bool:
            if not real(engine):
                return False
            if not done:  # a compaction is no place for it to come back
                put()
                done.append(True)
            return True

        self.patch.setattr(compaction, "truncate", truncate)

    def put(self, offset: int, data: bytes) -> None:
        """Write past SQLite; the descriptor stays open, as closing it would give up locks."""
        os.pwrite(os.open(self.db, os.O_RDWR), data, offset)


def _gap(db: Path, size: int) -> int:
    """Return where a leaf page has so many free bytes between its pointers and its cells."""
    data = db.read_bytes()
    page_size = int.from_bytes(data[16:18], "big")
    for start in range(page_size, len(data), page_size):
        page = data[start : start + page_size]
        if page[0] in (10, 13):
            first, last = 8 + 2 * int.from_bytes(page[3:5], "big"), int.from_bytes(page[5:7], "big")
            if last - first >= size + 8:
                return start + first + 4
    raise AssertionError("no page has room")


def _moved_row(planting: Planting) -> None:
    planting.after_truncation(lambda: planting.put(_gap(planting.db, 50), b"Zoe Zweigmann"))


def _moved_word(planting: Planting) -> None:
    planting.after_truncation(lambda: planting.put(_gap(planting.db, 50), WORD))


def _free_page(planting: Planting) -> None:
    raw = apsw.Connection(str(planting.db))
    raw.execute("CREATE TABLE gone (value); INSERT INTO gone VALUES (zeroblob(100000)); DROP TABLE gone").fetchall()
    raw.close()

    def put() -> None:
        data = planting.db.read_bytes()
        page_size = int.from_bytes(data[16:18], "big")
        trunk = int.from_bytes(data[32:36], "big")
        at = (trunk - 1) * page_size
        assert int.from_bytes(data[at + 4 : at + 8], "big") > 0, "the list of free pages has one"
        leaf = int.from_bytes(data[at + 8 : at + 12], "big")
        planting.put((leaf - 1) * page_size + 1000, SECRET)

    planting.after_truncation(put)


def _not_overwritten(planting: Planting) -> None:
    real = connection.set_up

    def set_up(opened: apsw.Connection) -> None:
        real(opened)
        opened.authorizer = None
        opened.execute("PRAGMA secure_delete = OFF")
        opened.authorizer = connection.authorize

    planting.patch.setattr(connection, "set_up", set_up)


def _write_ahead_log(planting: Planting) -> None:
    real, done = compaction.truncate, list[bool]()

    def truncate(engine: Any) -> bool:
        if done:
            return real(engine)
        done.append(True)
        return True

    planting.patch.setattr(compaction, "truncate", truncate)


@pytest.mark.parametrize(
    ("fault", "where"),
    [(_moved_row, ""), (_moved_word, ""), (_free_page, ""), (_not_overwritten, ""), (_write_ahead_log, "-wal")],
    ids=lambda one: one.__name__.strip("_") if callable(one) else one,
)
def test_what_is_left_is_found_and_compacted_away(
    db: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Planting], None], where: str
) -> None:
    """A copy that stays in a file makes the erasure pending; finishing compacts the file and completes it."""
    if fault in (_not_overwritten, _write_ahead_log):
        fault(Planting(monkeypatch, db))
    with woodrat.open(db, clock=FixedClock()) as ledger:
        tell(ledger)
        if fault not in (_not_overwritten, _write_ahead_log):
            fault(Planting(monkeypatch, db))
        begun = erase(ledger)
        assert not begun.complete
        assert f"{db.name}{where}" in begun.hits
        assert "compacts it" in begun.warnings[0]
        assert is_pending(ledger)
        finished = ledger.finish_erasure()
        assert finished.complete
        assert finished.compaction is not None or fault is _write_ahead_log
        (certificate,) = finished.certificates
        assert certificate.complete
        assert not any("Pending" in text for text in certificate.warnings)
        assert not is_pending(ledger)
        assert files_with(db) == set()
        assert files_with(db, WORD) == set()
        assert ledger.verify(deep=True).sound


def _queue_file(ledger: Ledger, patch: pytest.MonkeyPatch) -> None:
    queue = Path(engine_of(ledger).path + "-queue")
    os.pwrite(os.open(queue, os.O_RDWR), SECRET, 10)


def _kept_state(ledger: Ledger, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("woodrat.ledger.derived_part.SHARE_MAX", 0)
    patch.setattr(AffectedData, "derive_again", lambda _: None)


def _cache(ledger: Ledger, patch: pytest.MonkeyPatch) -> None:
    real = pending_search.note

    def note(write: Any, *given: Any) -> Any:
        write.set_meta("cache", b"seen: Zoe Zweigmann")
        return real(write, *given)

    patch.setattr(pending_search, "note", note)


@pytest.mark.parametrize("fault", [_queue_file, _kept_state, _cache], ids=lambda fault: fault.__name__.strip("_"))
def test_what_a_compaction_cannot_take_is_never_complete(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Ledger, pytest.MonkeyPatch], None]
) -> None:
    """What stands in a row or beside the database is found before and after, and no certificate says complete."""
    with monkeypatch.context() as patch:
        fault(ledger, patch)
        assert not erase(ledger).complete
    finished = ledger.finish_erasure()
    assert finished.compaction is not None
    assert not finished.complete
    assert finished.hits
    (certificate,) = finished.certificates
    assert not certificate.complete
    assert "still occurs in a file" in certificate.warnings[0]


def test_a_word_that_is_said_again_is_no_leftover(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of the search index that somebody else uses by the time of the search do not count."""
    with monkeypatch.context() as patch:
        patch.setattr(SqliteEngine, "purge", lambda _: False)
        assert not erase(ledger).purged
    ledger.store({"entity_type": "person", "name": "Carla", "street": "quittenallee 5"})
    assert ledger.search("Quittenallee").items
    assert ledger.finish_erasure().complete


# Others


HOLDING: Final = """
import sys
import apsw
raw = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)
raw.execute("BEGIN")
raw.execute("SELECT count(*) FROM body").get
print("reads", flush=True)
sys.stdin.readline()
"""


def child(script: str, *words: str) -> subprocess.Popen[str]:
    """Start a process."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_reader_of_an_older_state_makes_it_pending(ledger: Ledger, db: Path) -> None:
    """While another process reads an older state, the erasure is pending and says which process; then it ends."""
    with child(HOLDING, str(db)) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "reads\n"
        begun = erase(ledger)
        assert (begun.purged, begun.searched, begun.complete) == (False, False, False)
        assert "Pending" in begun.warnings[0]
        waiting = ledger.finish_erasure(compact=True)
        assert waiting.compaction is not None
        assert not waiting.purged
        if Path("/proc/locks").exists():
            assert waiting.blockers == (f"a read in process {other.pid}",)
        assert files_with(db) != set()
        ledger.store({"entity_type": "memo", "id": "goes on"})
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.wait(PATIENCE) == 0
    assert ledger.finish_erasure().complete
    assert files_with(db) == set()


def test_readers_go_on_while_the_file_is_compacted(ledger: Ledger) -> None:
    """A view sees the same before, during and after a compaction, and a new one what was written since."""
    engine = engine_of(ledger)
    with engine.view(TENANT) as old:
        before = [entry.body for entry in old.entries()]
        took = engine.compact()
        assert [entry.body for entry in old.entries()] == before
        assert engine.blockers() in ([], ["a read in this process"])
        assert not engine.purge()
        ledger.store({"entity_type": "memo", "id": "1"})
        assert [entry.body for entry in old.entries()] == before
    assert engine.purge()
    assert took.seconds is not None
    assert took.size_after_bytes is not None
    assert ledger.verify(deep=True).sound


def test_writers_of_other_processes_wait_for_as_long_as_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever would not queue any longer does so while a turn is a long one, and is next."""
    path = str(tmp_path / "file-queue")
    long, other = writer_queue._ProcessQueue(path), writer_queue._ProcessQueue(path)
    if file_lock.SET_LOCK is None:
        pytest.skip("two queues of one process do not see each other here")
    monkeypatch.setattr(writer_queue, "PATIENCE_SECONDS", 0.001)
    asked = threading.Semaphore(0)
    real = writer_queue._is_long

    def is_long(descriptor: int) -> bool:
        found = real(descriptor)
        asked.release()
        return found

    monkeypatch.setattr(writer_queue, "_is_long", is_long)
    got: list[int | None] = []
    held = long.pass_gate()
    assert held is not None
    lasting = long.take_long()
    assert lasting is not None
    waiting = threading.Thread(target=lambda: got.append(other.pass_gate()))
    waiting.start()
    for _ in range(5):
        assert asked.acquire(timeout=PATIENCE)
    assert got == []
    long.free_gate(held)
    waiting.join(PATIENCE)
    assert got == [other._descriptor]
    writer_queue._unlock(lasting, writer_queue.LONG)


WRITING: Final = """
import sys
import woodrat
with woodrat.open(sys.argv[1], agent="other") as ledger:
    print("open", flush=True)
    for number in range(40):
        ledger.store({"entity_type": "memo", "id": f"other {number}"})
print("stored", flush=True)
"""


def test_nobody_fails_while_a_file_is_compacted(ledger: Ledger, db: Path) -> None:
    """Another process writes on while the file is compacted again and again, and all that it wrote is there."""
    erase(ledger)
    with child(WRITING, str(db)) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        while other.poll() is None:
            assert engine_of(ledger).compact().seconds is not None
        assert other.stdout.readline() == "stored\n"
        assert other.returncode == 0
    assert all(ledger.show(f"memo/other {number}") for number in range(40))
    assert ledger.finish_erasure().purged
    assert ledger.verify(deep=True).sound


def test_a_second_sqlite_deletes_nothing_after_a_compaction(ledger: Ledger, db: Path) -> None:
    """Python's own SQLite opens and closes the file after a compaction, and every write made since is there."""
    erase(ledger)
    ledger.finish_erasure(compact=True)
    for number in range(5):
        raw = sqlite3.connect(db)
        raw.execute("SELECT count(*) FROM body").fetchall()
        raw.close()
        db.read_bytes()
        ledger.store({"entity_type": "memo", "id": f"{number}"})
    held = engine_of(ledger)._file_lock
    assert held is not None
    assert not held.moved()
    ledger.close()
    with woodrat.open(db) as again:
        assert all(again.show(f"memo/{number}") for number in range(5))


# Failures


def test_without_space_nothing_is_begun(ledger: Ledger, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compaction for which there is too little space is refused with the figures, and the erasure stays pending."""
    fault = Planting(monkeypatch, db)
    _moved_row(fault)
    assert not erase(ledger).complete
    estimate = ledger.finish_erasure(dry_run=True).compaction
    assert estimate is not None
    assert estimate.needed_bytes is not None
    assert estimate.seconds is None
    assert estimate.needed_bytes > db.stat().st_size
    before = db.stat().st_size
    with monkeypatch.context() as patch:
        patch.setattr(compaction, "SPARE_BYTES", 1 << 60)
        with pytest.raises(Unavailable, match=r"bytes of free disk space in .* stays pending"):
            ledger.finish_erasure()
    assert db.stat().st_size == before
    assert is_pending(ledger)
    assert ledger.finish_erasure().complete


FULL_DISK: Final = """
import resource, sys
import woodrat
from woodrat.engines.sqlite import compaction
with woodrat.open(sys.argv[1]) as ledger:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    try:
        ledger.finish_erasure(compact=True)
        print("compacted")
    except woodrat.Unavailable as error:
        print("unavailable:", error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    ledger.store({"entity_type": "memo", "id": "after"})
"""

KILLED: Final = """
import os, signal, sys
import woodrat
from woodrat.engines.sqlite import compaction
real, left = compaction.connect, [int(sys.argv[2])]

def connect(*given, **named):
    connection = real(*given, **named)
    connection.set_progress_handler(step, 50)
    return connection

def step():
    left[0] -= 1
    if left[0] <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return False

with woodrat.open(sys.argv[1]) as ledger:
    compaction.connect = connect
    ledger.finish_erasure(compact=True)
"""


@pytest.fixture
def pending(db: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A closed ledger whose erasure is pending, with a copy left in a page."""
    with monkeypatch.context() as patch, woodrat.open(db, clock=FixedClock()) as opened:
        tell(opened)
        _moved_row(Planting(patch, db))
        assert not erase(opened).complete
    assert files_with(db) == {""}
    return db


def is_finished(db: Path) -> None:
    """Check that a file is sound and its erasure pending, and finish it."""
    with woodrat.open(db) as ledger:
        assert ledger.verify(deep=True).sound
        assert is_pending(ledger)
        assert ledger.finish_erasure().complete
        assert ledger.verify(deep=True).sound
    assert files_with(db) == set()


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6])
def test_a_disk_that_fills_up_leaves_the_file_as_it_was(pending: Path, share: float) -> None:
    """A compaction that the disk has no room for leaves the file intact; writes go on, and it can be made later."""
    limit = int(pending.stat().st_size * share)
    with child(FULL_DISK, str(pending), str(limit)) as other:
        said, _ = other.communicate(timeout=PATIENCE)
    assert other.returncode == 0
    assert said.startswith("unavailable:"), said
    with woodrat.open(pending) as ledger:
        assert ledger.show("memo/after")
    is_finished(pending)


def test_a_disk_without_space_is_told_before_and_in_the_middle(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk that is full, finishing says what it needs; if the disk fills up later, the file stays as it was."""
    db = disk.folder / "people.db"
    with monkeypatch.context() as patch, woodrat.open(db, clock=FixedClock()) as opened:
        tell(opened)
        _moved_row(Planting(patch, db))
        assert not erase(opened).complete
    filler = disk.folder / "filler"
    with woodrat.open(db) as ledger:
        free = os.statvfs(disk.folder)
        filler.write_bytes(bytes(free.f_bavail * free.f_frsize - db.stat().st_size // 2))
        with pytest.raises(Unavailable, match="bytes of free disk space"):
            ledger.finish_erasure()
        with monkeypatch.context() as patch:
            patch.setattr(compaction, "_check_space", lambda *_: None)
            with pytest.raises(Unavailable, match="the disk is full"):
                ledger.finish_erasure()
        assert is_pending(ledger)
        filler.unlink()
        ledger.store({"entity_type": "memo", "id": "after"})
        assert ledger.verify(deep=True).sound
        assert ledger.finish_erasure().complete
    assert files_with(db) == set()


def test_a_read_only_medium_keeps_an_erasure_pending(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a medium that cannot be written an erasure stays pending, and the estimate can still be asked for."""
    db = disk.folder / "people.db"
    with monkeypatch.context() as patch, woodrat.open(db, clock=FixedClock()) as opened:
        tell(opened)
        patch.setattr(SqliteEngine, "purge", lambda _: False)
        assert not erase(opened).complete
    disk.protect()
    with woodrat.open(db, readonly=True) as ledger:
        assert is_pending(ledger)
        estimate = ledger.finish_erasure(dry_run=True).compaction
        assert estimate is not None
        assert estimate.size_bytes == db.stat().st_size
        with pytest.raises(Unavailable, match="read-only"):
            ledger.finish_erasure()
    with pytest.raises(Unavailable):
        woodrat.open(db)


@pytest.mark.parametrize("steps", [1, 5, 25, 60])
def test_a_kill_during_a_compaction_leaves_the_file_as_it_was(pending: Path, steps: int) -> None:
    """Killed anywhere in a compaction, a process leaves a sound file with an erasure that is pending."""
    with child(KILLED, str(pending), str(steps)) as other:
        other.communicate(timeout=PATIENCE)
    assert other.returncode == -signal.SIGKILL
    is_finished(pending)


def test_a_ledger_that_only_reads_finishes_nothing(pending: Path) -> None:
    """Opened to read, a ledger says that nothing was written, and the erasure stays pending."""
    with woodrat.open(pending, readonly=True) as ledger:
        with pytest.raises(Unavailable, match="read-only"):
            ledger.finish_erasure()
        assert ledger.finish_erasure(dry_run=True).compaction is not None
    is_finished(pending)


def test_one_compaction_serves_all_erasures(db: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Erasures of several tenants are finished by one compaction, and sizes of a shared file do not show."""
    with woodrat.open(db, tenant="one") as one, woodrat.open(db, tenant="two") as two:
        for ledger in (one, two):
            tell(ledger)
        with monkeypatch.context() as patch:
            patch.setattr(SqliteEngine, "purge", lambda _: False)
            assert not erase(one).complete
            assert not erase(two).complete
            one.store({"entity_type": "person", "name": "Yves Zweigmann"})
            assert not one.erase("person/Yves Zweigmann", reason="another").complete
        first = one.finish_erasure(compact=True)
        assert first.compaction is not None
        assert (first.compaction.size_bytes, first.compaction.needed_bytes) == (None, None)
        assert first.compaction.seconds is not None
        assert [certificate.complete for certificate in first.certificates] == [True, True]
        second = two.finish_erasure()
        assert second.compaction is None
        assert second.complete
    assert files_with(db) == set()


def test_a_ledger_in_memory_has_nothing_to_compact() -> None:
    """What is in no file is complete once no row holds it, and a compaction has nothing to say."""
    with woodrat.open(":memory:") as ledger:
        tell(ledger)
        assert erase(ledger).complete
        assert ledger.finish_erasure(dry_run=True).to_json()["searched"] is False


def test_a_clone_that_follows_an_erasure_searches_its_files(
    ledger: Ledger, db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a clone erases because its log did is searched for there, and compacted away if a copy is found."""
    (tmp_path / "clone").mkdir()
    path = tmp_path / "clone" / "people.db"
    with woodrat.open(path) as clone:
        clone.log.sync(str(db))
        with clone.context.engine.view(TENANT) as view:
            entry = next(entry for entry in view.entries(kinds={"observation"}) if SECRET in (entry.body or b""))
        nonce = entry.nonce
        assert nonce is not None
        erase(ledger)
        planting = Planting(monkeypatch, path)
        planting.after_truncation(lambda: planting.put(_gap(path, 50), nonce))
        took: list[object] = []
        real = compaction.compact

        def compact(engine: Any) -> Any:
            took.append(engine)
            return real(engine)

        monkeypatch.setattr(compaction, "compact", compact)
        clone.log.sync(str(db))
        assert len(took) == 1
    assert files_with(path) == set()
    assert files_with(path, nonce) == set()
