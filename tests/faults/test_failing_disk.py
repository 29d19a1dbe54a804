"""Failing disks: full, read-only, or not keeping what they took. Errors are clear, reads go on, nothing is lost."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import apsw
import pytest
from tests.faults import cutting
from tests.faults.cutting import FILE, Broken, Ends, deed, ends, examine, folder, tenant_for
from tests.faults.disk import ACKNOWLEDGED, BEGUN, SYNC, WRITE, Recorder, cuts, failure
from tests.faults.processes import FULL, PATIENCE, ROOT

import woodrat
from woodrat.canon.ids import TenantId
from woodrat.engines.sqlite.engine import SqliteEngine, _Writing
from woodrat.engines.sqlite.write_stop import WriteStop
from woodrat.errors import Corrupt, Unavailable
from woodrat.log import tree
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

WRITES: Final = 14
"""How many writes a session on a failing disk makes."""
TRIES: Final = 10_000 if FULL else 9
"""At how many places of a session the disk fails at most; in the long profile at all of them."""
FENCED: Final = (
    "a flush to the disk failed earlier, so no more writes are accepted here. Nothing of this call was written"
)


@dataclass
class Fault:
    """One way to fail, from some operation on."""

    kind: str
    """The operation that fails: write or sync."""
    error: Callable[[], apsw.Error]
    """How."""
    message: str
    """What the user is told."""
    fences: bool = False
    """Whether the engine takes no more writes afterwards."""
    lasting: bool = True
    """Whether it fails until it is mended; a failed flush says so once."""

    def at(self, number: int, disk: Recorder) -> None:
        """Let a disk fail from that operation on."""
        left = iter(range(number))

        def fault(kind: str, name: str) -> None:
            if kind == self.kind and next(left, None) is None:
                if not self.lasting:
                    mend(disk)
                raise self.error()

        disk.fault = fault


def mend(disk: Recorder) -> None:
    """Let a disk work."""
    disk.fault = lambda kind, name: None


FAULTS: Final = {
    "full": Fault(WRITE, lambda: failure(apsw.FullError, apsw.SQLITE_FULL), "the disk is full. Nothing of this call"),
    "write": Fault(
        WRITE,
        lambda: failure(apsw.IOError, apsw.SQLITE_IOERR_WRITE),
        "cannot be read or written .* Nothing of this call was written",
    ),
    "readonly": Fault(
        WRITE, lambda: failure(apsw.ReadOnlyError, apsw.SQLITE_READONLY), "the file cannot be written. Nothing of this"
    ),
    "flush": Fault(
        SYNC,
        lambda: failure(apsw.IOError, apsw.SQLITE_IOERR_FSYNC),
        "a flush to the disk failed .* It is not known whether this call was written",
        fences=True,
        lasting=False,
    ),
}


@dataclass
class Failing:
    """A session on a disk that fails once, and is mended once the failure was looked at."""

    path: Path
    disk: Recorder
    fault: Fault
    known: list[Ends] = field(default_factory=list)
    failed: bool = False
    """Whether the user was told of the failure."""
    fenced: bool = False
    """Whether a write was refused since."""
    clock: FixedClock = field(default_factory=FixedClock)

    def run(self) -> None:
        """Write everything; look around whenever the disk fails."""
        engine = self.opened()
        try:
            self.known.append(ends(engine))
            for number in range(WRITES):
                self.disk.mark(BEGUN)
                while not self.written(engine, number):
                    self.look(engine)
                    if self.fault.fences:
                        engine.close()
                        engine = self.opened()
                    mend(self.disk)
                self.disk.mark(ACKNOWLEDGED)
                self.known.append(ends(engine))
                if self.known[-1] == self.known[-2]:
                    raise Broken("lost", f"write {number} was acknowledged and is not there")
            mend(self.disk)
        finally:
            mend(self.disk)
            engine.close()
        self.check_file(self.path)

    def opened(self) -> SqliteEngine:
        """Open the file; if the disk fails meanwhile, mend it and open the file again."""
        try:
            return SqliteEngine(self.path, vfs=self.disk.name)
        except Unavailable as told:
            self.told(told)
            mend(self.disk)
            return SqliteEngine(self.path, vfs=self.disk.name)

    def written(self, engine: SqliteEngine, number: int) -> bool:
        """Make one write; return whether it was acknowledged."""
        try:
            deed(ledger_on(engine, tenant_for(number), clock=self.clock), 0, number)
        except Unavailable as told:
            self.told(told)
            return False
        return True

    def told(self, told: Unavailable) -> None:
        """The message says what is wrong, what became of the data and what to do."""
        if self.fault.fences and FENCED in str(told):
            self.fenced = True
        else:
            assert not self.failed or self.fault.lasting, f"told twice: {told}"
            assert re.search(self.fault.message, str(told)), told
        self.failed = True
        assert told.details["path"] == str(self.path)
        assert re.search(r"Free some space|Check the disk|Make it writable", str(told))

    def look(self, engine: SqliteEngine) -> None:
        """After a failure reads go on, nothing acknowledged is lost, and behind the fence nothing is written."""
        assert ends(engine) == self.known[-1], "what is read after a failure is what was acknowledged"
        for tenant in cutting.TENANTS:
            ledger = ledger_on(engine, tenant)
            assert ledger.fingerprint() == ledger.at("now").fingerprint()
        if self.fault.fences:
            for _ in range(2):
                with pytest.raises(Unavailable, match=FENCED):
                    ledger_on(engine, "acme").store({"entity_type": "memo", "id": "behind the fence"})
            self.fenced = True
        self.check_power()

    def check_power(self) -> None:
        """The power may fail as well: what the disk holds then has every acknowledged write."""
        *_, crashes = cuts(self.disk.log, random.Random(0))
        with folder() as ground:
            for state in (crashes.all(), crashes.synced(), crashes.mixed()):
                state.put(ground)
                known = [*self.known, *self.unknown(ground / FILE)]
                examine(ground / FILE, known, crashes, 0, 0)

    def unknown(self, path: Path) -> Iterator[Ends]:
        """Yield how the logs end, if by the one write of which nobody knows: the rest must be as it was."""
        tenant, before = TenantId(tenant_for(len(self.known) - 1)), self.known[-1]
        engine = SqliteEngine(path)
        try:
            now = ends(engine)
            size = before[tenant][0]
            with engine.view(tenant) as view:
                leaves, first = view.leaves(now[tenant][0]), view.entry(size)
            one_more = first is not None and first.envelope.length == len(leaves) - size
            if one_more and tree.root(leaves[:size]) == before[tenant][1]:
                yield {**before, tenant: now[tenant]}
        finally:
            engine.close()

    def check_file(self, path: Path) -> None:
        """In the end every write is there, whole and once."""
        *_, crashes = cuts(self.disk.log, random.Random(0))
        assert crashes.acknowledged == crashes.begun == WRITES
        for thorough in (0, 3):
            examine(path, self.known, crashes, 0, thorough)


def operations(kind: str) -> int:
    """Return how many operations of a kind a session has."""
    disk = Recorder()
    with folder() as live:
        Failing(live / FILE, disk, FAULTS["full"]).run()
    disk.unregister()
    return sum(op.kind == kind for op in disk.log)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the write-ahead log be taken over often, and its file be cut now and then."""
    monkeypatch.setattr("woodrat.engines.sqlite.write_ahead_log.WAL_PAGES", 25)
    monkeypatch.setattr("woodrat.engines.sqlite.write_ahead_log.LARGE_BYTES", 50 * 4096)


@pytest.mark.parametrize("name", FAULTS)
def test_a_disk_that_fails_anywhere_loses_nothing(name: str) -> None:
    """Wherever a session meets the failure: a clear error, reads go on, nothing is lost, and all is written in the end.

    After a failed flush the engine takes no write until the file is opened again, though the disk works by then.
    """
    fault = FAULTS[name]
    count = operations(fault.kind)
    step = max(1, count // TRIES)
    told = fenced = 0
    for number in range(0, count, step):
        disk = Recorder()
        fault.at(number, disk)
        with folder() as live:
            failing = Failing(live / FILE, disk, fault)
            failing.run()
        told += failing.failed
        fenced += failing.fenced
        disk.unregister()
    tried = len(range(0, count, step))
    print(f"{name}: {tried} of {count} operations failed, {told} told of, {fenced} fenced")
    assert told >= tried // 2, "other failures only put off what is done later anyway, or happen on closing"
    assert (fenced > 0) == fault.fences


# Planted faults


def test_an_engine_without_a_fence_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that goes on after a failed flush, as if nothing had been, is noticed."""
    monkeypatch.setattr(WriteStop, "watch", lambda self, error, connection: None)
    disk = Recorder()
    FAULTS["flush"].at(20, disk)
    with folder() as live, pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        Failing(live / FILE, disk, FAULTS["flush"]).run()
    disk.unregister()


def test_an_engine_that_acknowledges_what_failed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that keeps a failure to itself has acknowledged a write that is not there, and is noticed."""
    real = _Writing.__exit__

    def silent(self: _Writing, kind: object, error: BaseException | None, trace: object) -> None:
        with suppress(Unavailable):
            real(self, kind, error, trace)

    monkeypatch.setattr(_Writing, "__exit__", silent)
    caught = 0
    for number in range(290, 320, 3):  # not every operation is part of a commit
        disk = Recorder()
        fault = replace(FAULTS["full"], lasting=False)
        fault.at(number, disk)
        with folder() as live:
            try:
                Failing(live / FILE, disk, fault).run()
            except Broken as broken:
                caught += "was acknowledged and is not there" in str(broken)
        disk.unregister()
    assert caught


def test_a_disk_that_forgets_is_caught() -> None:
    """A disk that only pretends to flush is noticed when it is full."""
    disk = Recorder(drops_syncs=True)
    FAULTS["full"].at(300, disk)
    with folder() as live, pytest.raises(Broken, match="lost"):
        Failing(live / FILE, disk, FAULTS["full"]).run()
    disk.unregister()


# The fence


@pytest.fixture
def disk() -> Iterator[Recorder]:
    """A disk that works until told otherwise."""
    made = Recorder()
    yield made
    made.unregister()


NOTE: Final = {"entity_type": "memo", "id": "1", "text": "x"}


def refuse_flush(disk: Recorder, file: str) -> None:
    """Let the next flush of one file fail, and none after."""

    def fault(kind: str, name: str) -> None:
        if (kind, name) == (SYNC, file):
            mend(disk)
            raise failure(apsw.IOError, apsw.SQLITE_IOERR_FSYNC)

    disk.fault = fault


def test_a_failed_flush_fences_this_engine_alone(tmp_path: Path, disk: Recorder) -> None:
    """Writers that wait meanwhile are refused too; another engine on the file is not, and a new one takes the retry."""
    engine, other = SqliteEngine(tmp_path / FILE, vfs=disk.name), SqliteEngine(tmp_path / FILE)
    ledger_on(engine).store(NOTE)
    answers: list[str] = []

    def wait(number: int) -> None:
        try:
            ledger_on(engine).store({**NOTE, "id": f"{number}"})
        except Unavailable as told:
            answers.append(str(told))

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(4)]

    def hold() -> None:
        with engine.transaction(TenantId("t")) as write:
            for thread in threads:
                thread.start()
            write.set_meta("note", b"x")

    refuse_flush(disk, f"{FILE}-wal")
    with pytest.raises(Unavailable, match="It is not known whether this call was written"):
        hold()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(answers) == 4
    assert all(FENCED in answer for answer in answers)
    assert ledger_on(other).store({**NOTE, "id": "other"}).position == 1
    assert ledger_on(engine).show("memo/other").fields["text"] == "x"
    again = SqliteEngine(tmp_path / FILE, vfs=disk.name)
    assert ledger_on(again).store({**NOTE, "id": "again"}).position == 2
    for each in (engine, other, again):
        each.close()


def test_a_failed_flush_of_the_file_is_not_kept_secret(tmp_path: Path, disk: Recorder) -> None:
    """If taking the log over fails, the write before it stands acknowledged, and the next one is refused."""
    engine = SqliteEngine(tmp_path / FILE, vfs=disk.name)
    refuse_flush(disk, FILE)
    number = 0
    told: Unavailable | None = None
    while told is None and number < 100:
        try:
            assert ledger_on(engine).store({**NOTE, "id": f"{number}"}).position == number
            number += 1
        except Unavailable as error:
            told = error
    assert FENCED in str(told)
    assert 0 < number < 100
    engine.close()
    again = SqliteEngine(tmp_path / FILE, vfs=disk.name)
    assert ledger_on(again).store({**NOTE, "id": "again"}).position == number
    again.close()


def test_behind_the_fence_closing_writes_nothing(tmp_path: Path, disk: Recorder) -> None:
    """A fenced engine leaves the write-ahead log as it is when it closes; the next opening finds all in it."""
    engine = SqliteEngine(tmp_path / FILE, vfs=disk.name)
    ledger_on(engine).store(NOTE)
    refuse_flush(disk, f"{FILE}-wal")
    with pytest.raises(Unavailable, match="It is not known whether this call was written") as told:
        ledger_on(engine).store({**NOTE, "id": "2"}, idempotency_key="k")
    assert told.value.details["fenced"] is True
    before = len(disk.log)
    assert ledger_on(engine).show("memo/1").fields["text"] == "x"
    assert [f"{hit.snapshot.entity}" for hit in ledger_on(engine).search("x").items] == ["memo/1"]
    engine.close()
    assert disk.log[before:] == []
    assert (tmp_path / f"{FILE}-wal").stat().st_size > 0
    again = SqliteEngine(tmp_path / FILE)
    for _ in range(2):
        assert ledger_on(again).store({**NOTE, "id": "2"}, idempotency_key="k").position == 1
    again.close()


# Opening anew


@pytest.mark.parametrize("size", [1, 16, 17, 300])
@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("UPDATE entry SET leaf = zeroblob(32) WHERE id = (SELECT max(id) FROM entry)", "leaf"),
        ("UPDATE entry SET recorded_at = recorded_at + 1 WHERE id = (SELECT max(id) FROM entry)", "leaf"),
        ("UPDATE body SET body = X'7B7D' WHERE id = (SELECT max(id) FROM body)", "body"),
        ("UPDATE entry SET length = length + 1 WHERE length IS NOT NULL", "write"),
        ("UPDATE node SET hash = zeroblob(32)", "node"),
    ],
)
def test_nothing_is_built_on_a_damaged_end(tmp_path: Path, size: int, damage: str, what: str) -> None:
    """Before the first write since it was opened, the end of a log is checked; damage is named and nothing written."""
    path = tmp_path / FILE
    with woodrat.open(path) as ledger:
        ledger.store([{**NOTE, "id": f"{number}"} for number in range(size)])
    raw = apsw.Connection(str(path))
    for (trigger,) in list(raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")):
        raw.execute(f"DROP TRIGGER {trigger}")
    raw.execute(damage)
    damaged = bool(raw.changes())
    raw.close()
    with woodrat.open(path) as ledger:
        if damaged:
            with pytest.raises(Corrupt, match=f"its {what} is gone or is not what was written"):
                ledger.store({**NOTE, "id": "after"})
        else:
            assert (what, size) == ("node", 1)
            ledger.store({**NOTE, "id": "after"})
        assert ledger.position == size - damaged
        if what == "node" and damaged:
            ledger.rebuild()
            assert ledger.store({**NOTE, "id": "after"}).position == size


# A flush that fails in the system


STRACE: Final = shutil.which("strace")
STORY: Final = """
import sys, woodrat
path = sys.argv[1]
def write(ledger, number):
    records = [{"entity_type": "memo", "id": f"{number}.{part}", "text": "x" * 3000} for part in range(4)]
    return ledger.store(records, idempotency_key=f"{number}", observed_at="2026-01-01T00:00:00Z").position
number, told, ledger = 0, "", None
while number < 12:
    try:
        ledger = ledger or woodrat.open(path)
        write(ledger, number)
        number += 1
    except woodrat.Unavailable as error:
        told = str(error).split(": ", 1)[1]
        print("told", number, told)
        if ledger is not None:
            assert ledger.position == 4 * number - 1
            try:
                write(ledger, number)
            except woodrat.Unavailable as refused:
                print("refused", refused.details["fenced"])
            ledger.close()
            ledger = None
print("written", ledger.position)
"""
FLUSHES: Final = 19
"""How many flushes the story has: seven while the file is made, and one for each write."""


@pytest.mark.parametrize("number", range(1, FLUSHES + 1) if FULL else (3, 8, FLUSHES))
def test_a_flush_that_fails_in_the_system(tmp_path: Path, number: int) -> None:
    """With an injected failure of the system's own flush the user is told, the writer fenced, and nothing lost."""
    if STRACE is None:
        pytest.skip("strace is not installed; the same is tried through a VFS above")
    inject = f"inject=fsync,fdatasync:error=EIO:when={number}"
    trace = [STRACE, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", inject, "-o", str(tmp_path / "trace")]
    done = subprocess.run(
        [*trace, sys.executable, "-c", STORY, str(tmp_path / FILE)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if "ptrace" in done.stderr and not done.stdout:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert "INJECTED" in (tmp_path / "trace").read_text()
    lines = done.stdout.splitlines()
    assert lines[-1] == "written 47"
    with woodrat.open(tmp_path / FILE) as ledger:
        assert ledger.rebuild().agreed
        assert ledger.position == 47
    if lines[0].startswith("told"):
        assert "flush to the disk failed" in lines[0] or "cannot be read or written" in lines[0]
    if any("It is not known whether this call was written" in line for line in lines) and "told 0" not in lines[0]:
        assert "refused True" in lines
