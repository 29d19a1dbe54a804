"""A second SQLite: whatever else looks into an open ledger, or deletes its files, no acknowledged write is lost."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from tests.faults.processes import FULL, PATIENCE, ROOT, TENANT, check_log

from woodrat.clock import SystemClock
from woodrat.engines.sqlite import file_lock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.file_lock import FileLock
from woodrat.errors import Unavailable
from woodrat.testing.ledgers import ledger_on

RACES: Final = 40 if FULL else 1
"""How often processes and threads write and look at the same time."""
RACED: Final = 60
"""How many writes each of them makes in a race."""
FILES: Final = ("", "-wal", "-shm", "-queue")


def _read_by_sql(file: Path) -> None:
    connection = sqlite3.connect(file)
    with suppress(sqlite3.DatabaseError):  # during a write it may see pages of two moments; the file is sound
        connection.execute("SELECT count(*), sum(length(body)) FROM body").fetchall()
    connection.close()


def _read(file: Path) -> None:
    file.read_bytes()
    shutil.copy(file, file.with_name("copy"))


def _copy_all(file: Path) -> None:
    for end in FILES:
        with suppress(FileNotFoundError):
            shutil.copy(f"{file}{end}", file.with_name("copy"))


def _look_in_a_thread(file: Path) -> None:
    threads = [threading.Thread(target=look, args=(file,)) for look in (_read_by_sql, _copy_all)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)


LOOKS: Final[dict[str, Callable[[Path], None]]] = {
    "sql": _read_by_sql,
    "read": _read,
    "copy all": _copy_all,
    "thread": _look_in_a_thread,
}


class Neighbour:
    """Another process that has the ledger open now and then."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.neighbour"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, *words: object) -> None:
        """Say what it is to do."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Wait until it is done."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, *words: object) -> Any:
        """Have it do something."""
        self.tell(*words)
        return self.answer()

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def held() -> Iterator[Neighbour]:
    """A process on a system that has locks of descriptors."""
    neighbour = Neighbour()
    yield neighbour
    neighbour.end()


@pytest.fixture(scope="module")
def plain() -> Iterator[Neighbour]:
    """A process on a system that has none."""
    neighbour = Neighbour()
    assert neighbour.ask("plain") == "done"
    yield neighbour
    neighbour.end()


class Here:
    """This process's ledger, the neighbour, and what both were told was written."""

    def __init__(self, file: Path, neighbour: Neighbour, look: Callable[[Path], None] = _read_by_sql) -> None:
        self.file, self.neighbour, self._look = file, neighbour, look
        self.acknowledged: dict[str, int] = {}
        self._engine: SqliteEngine | None = None
        self._kept: list[sqlite3.Connection] = []

    @property
    def engine(self) -> SqliteEngine:
        """The engine of this process."""
        assert self._engine is not None
        return self._engine

    def store(self, id: str = "") -> None:
        """Write here."""
        id = id or f"here {len(self.acknowledged)}"
        report = ledger_on(self.engine, TENANT, clock=SystemClock()).store({"entity_type": "memo", "id": id})
        self.acknowledged[id] = report.position

    def follow(self, order: str) -> None:
        """Open, write, look and close in an order.

        `(` and `)` open and close here, `[` and `]` there; `a` writes here, `b` there; `x` looks in this process, `g`
        does so in the middle of a commit that two writes share; `<` and `>` open and close a connection that stays.
        """
        for step in order:
            if step == "(":
                self._engine = SqliteEngine(self.file)
            elif step == ")":
                self.engine.close()
            elif step == "[":
                self.neighbour.ask("open", self.file)
            elif step == "]":
                self.neighbour.ask("close")
            elif step == "a":
                self.store()
            elif step == "b":
                id = f"there {len(self.acknowledged)}"
                self.acknowledged[id] = self.neighbour.ask("store", id)
            elif step == "x":
                self._look(self.file)
            elif step == "g":
                with self.engine.together():
                    self.store()
                    self._look(self.file)
                    self.store()
            elif step == "<":
                self._kept.append(sqlite3.connect(self.file))
                self._kept[-1].execute("SELECT count(*) FROM entry").fetchall()
            else:
                assert step == ">"
                self._kept.pop().close()

    def lost(self) -> dict[str, int]:
        """Return acknowledged writes that another process does not find in their place."""
        there = self.neighbour.ask("check", self.file)
        return {id: position for id, position in self.acknowledged.items() if there.get(id) != [position]}


ORDERS: Final = (
    "(xaxaa[bbaxabb])",
    "(a[bxabab]xa)",
    "(ax[b]a[bx]a[b])",
    "[b(xab]axa[b])",
    "(ax[]ax[b]gax)[b]",
    "(g[bg]gx[b]xg)",
    "(a<a[b>a]<a[ba]>a)",
)


def check_orders(tmp_path: Path, neighbour: Neighbour, look: Callable[[Path], None]) -> dict[str, int]:
    """Follow all orders, each on a ledger of its own; return what was lost."""
    lost: dict[str, int] = {}
    for number, order in enumerate(ORDERS):
        here = Here(tmp_path / f"{number}.db", neighbour, look)
        here.follow(order)
        lost.update({f"{order}: {id}": position for id, position in here.lost().items()})
    return lost


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_from_the_same_process_loses_nothing(tmp_path: Path, held: Neighbour, look: str) -> None:
    """Reading or copying an open ledger past us, before, between, during and after writes, loses no write."""
    assert check_orders(tmp_path, held, LOOKS[look]) == {}


@pytest.mark.parametrize("look", ["sql", "copy all"])
def test_without_locks_of_descriptors_the_check_finds_out(
    tmp_path: Path, plain: Neighbour, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system has no such locks, a write is acknowledged only after it is in the file at the path."""
    monkeypatch.setattr(file_lock, "SET_LOCK", None)
    assert check_orders(tmp_path, plain, LOOKS[look]) == {}


def test_without_either_writes_are_lost(tmp_path: Path, plain: Neighbour, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: without locks and check, a look deletes the log under the writer, and its writes are gone."""
    monkeypatch.setattr(file_lock, "SET_LOCK", None)
    monkeypatch.setattr(FileLock, "moved", lambda self, *ends: False)
    here = Here(tmp_path / "l.db", plain)
    here.follow("(aaxaa[bbaabb])")
    assert len(here.lost()) == 4


# Writing and looking at the same time


def race(here: Here, seed: int) -> None:
    """Write in two threads here and in a process there, while two more threads look in every way there is."""
    random = Random(seed)
    looks = [random.sample(list(LOOKS.values()), len(LOOKS)) for _ in range(2)]
    failures: list[BaseException] = []
    over = threading.Event()

    def write(name: str) -> None:
        try:
            for number in range(RACED):
                here.store(f"{name} {number}")
        except BaseException as error:
            failures.append(error)

    def look(ways: list[Callable[[Path], None]]) -> None:
        try:
            while not over.is_set():
                for way in ways:
                    way(here.file)
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(name,)) for name in ("one", "other")]
    lookers = [threading.Thread(target=look, args=(ways,)) for ways in looks]
    here.neighbour.ask("open", here.file)
    here.neighbour.ask("close")
    here.neighbour.tell("race", RACED)
    for thread in (*writers, *lookers):
        thread.start()
    for thread in writers:
        thread.join(PATIENCE)
    here.acknowledged.update(here.neighbour.answer())
    over.set()
    for thread in lookers:
        thread.join(PATIENCE)
    assert failures == []


@pytest.mark.skipif(file_lock.SET_LOCK is None, reason="this system has no locks of descriptors")
@pytest.mark.parametrize("seed", range(RACES))
def test_looks_while_threads_and_processes_write_lose_nothing(tmp_path: Path, held: Neighbour, seed: int) -> None:
    """Threads and processes that write while others look into the ledger lose nothing, and leave no gap."""
    here = Here(tmp_path / "l.db", held)
    here.follow("(")
    race(here, seed)
    here.follow(")")
    assert len(here.acknowledged) == 3 * RACED
    assert here.lost() == {}


@pytest.mark.skipif(file_lock.SET_LOCK is None, reason="this system has no locks of descriptors")
def test_a_copy_of_all_files_does_not_open_the_gate(tmp_path: Path, held: Neighbour) -> None:
    """A writer whose process copies the ledger's files keeps its turn, although SQLite's own lock is lost by it."""
    here = Here(tmp_path / "l.db", held)
    here.follow("(a")
    assert held.ask("gate", here.file)
    with here.engine.together():
        here.store()
        _copy_all(here.file)
        assert not held.ask("gate", here.file)
    assert held.ask("gate", here.file)
    here.follow(")")


# Files that are deleted or replaced


DELETIONS: Final = [
    *((("-wal",), order) for order in ("aDa)", "aaxaD)", "aGa)")),  # others would be refused by SQLite itself
    *((("-shm",), order) for order in ("aDa)", "aGa)", "a[bDa])")),
    *((("-shm", "-wal"), order) for order in ("aDa)", "aaxaD)", "aGa)", "a[bDa])", "aD[]a)")),
]
"""Files, and orders in which `D` deletes them, `G` in the middle of a commit that two writes share."""


def delete(file: Path, *ends: str) -> None:
    """Delete files of a ledger that is open."""
    for end in ends:
        os.unlink(f"{file}{end}")


@pytest.mark.parametrize(("ends", "order"), DELETIONS)
def test_commits_in_a_deleted_log_are_brought_into_the_file(
    tmp_path: Path, held: Neighbour, ends: tuple[str, ...], order: str
) -> None:
    """After the log was deleted, the next write, commit or close brings all writes into the file, in their places."""
    here = Here(tmp_path / "l.db", held)
    here.follow("(")
    for step in order:
        if step == "D":
            delete(here.file, *ends)
        elif step == "G":
            with here.engine.together():
                here.store()
                delete(here.file, *ends)
                here.store()
        else:
            here.follow(step)
    assert here.lost() == {}
    assert sorted(os.listdir(tmp_path)) == ["l.db", "l.db-queue"]


def test_a_read_that_goes_on_puts_the_repair_off(tmp_path: Path, held: Neighbour) -> None:
    """While a view of the deleted log is open, writes are refused; after it all of them are brought into the file."""
    here = Here(tmp_path / "l.db", held)
    here.follow("(a")
    with here.engine.view(TENANT) as view:
        size = view.head().size
        delete(here.file, "-wal", "-shm")
        with pytest.raises(Unavailable, match=r"deleted or replaced .* Nothing of this call was written"):
            here.store()
        assert view.head().size == size
    here.follow("a[b])")
    assert here.lost() == {}


def test_a_file_that_went_on_without_the_last_writes_is_not_written_to(tmp_path: Path, held: Neighbour) -> None:
    """If another process wrote to the file after the log was deleted, the last writes are saved in a ledger beside."""
    here = Here(tmp_path / "l.db", held)
    here.follow("(a")
    here.engine.close()
    here.follow("(aa")
    delete(here.file, "-wal", "-shm")
    gone = {id: here.acknowledged.pop(id) for id in ("here 1", "here 2")}
    here.follow("[b")
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"may lack the last writes .* saved in .*l\.db-saved-1") as refused:
            here.store()
        assert refused.value.details["fenced"] is True
    here.follow("b])")
    assert here.lost() == {}
    saved = Here(tmp_path / "l.db-saved-1", held)
    saved.acknowledged = gone
    assert saved.lost() == {}
    here.follow("(")
    ledger_on(here.engine, TENANT, clock=SystemClock()).log.sync(saved.file)
    here.follow(")")
    assert held.ask("check", here.file).keys() == gone.keys() | here.acknowledged.keys()


def test_a_file_that_was_replaced_is_not_written_to(tmp_path: Path, held: Neighbour) -> None:
    """If another file stands at the path, writes are refused, and closing does not touch that file or its log."""
    here, other = Here(tmp_path / "l.db", held), Here(tmp_path / "other.db", held)
    other.follow("(aa)")
    here.follow("(a")
    os.replace(other.file, here.file)
    delete(here.file, "-wal", "-shm")
    other.file = here.file
    other.follow("[b")
    for _ in range(2):
        with pytest.raises(Unavailable, match="moved, replaced or deleted"):
            here.store("late")
    here.engine.close()
    other.follow("b]")
    assert other.lost() == {}


# What is let go of


def test_a_ledger_that_is_closed_leaves_no_log(tmp_path: Path) -> None:
    """The last engine of a process takes the log over when it closes; one that is collected does so too."""
    file = tmp_path / "l.db"
    one, other = SqliteEngine(file), SqliteEngine(file)
    for engine in (one, other):
        ledger_on(engine, TENANT, clock=SystemClock()).store({"entity_type": "memo", "id": f"{id(engine)}"})
    one.close()
    assert sorted(os.listdir(tmp_path)) == ["l.db", "l.db-queue", "l.db-shm", "l.db-wal"]
    other.close()
    assert sorted(os.listdir(tmp_path)) == ["l.db", "l.db-queue"]
    forgotten = SqliteEngine(file)
    ledger_on(forgotten, TENANT, clock=SystemClock()).store({"entity_type": "memo", "id": "last"})
    del forgotten, one, other, engine
    gc.collect()
    assert sorted(os.listdir(tmp_path)) == ["l.db", "l.db-queue"]
    engine = SqliteEngine(file)
    check_log(engine)
    engine.close()
    assert not [held for held in file_lock._held.values() if held.abandoned]


def test_a_forked_process_holds_nothing(tmp_path: Path) -> None:
    """A process that was forked does not keep the files of its parent."""
    file = tmp_path / "l.db"
    engine = SqliteEngine(file)
    ledger_on(engine, TENANT, clock=SystemClock()).store({"entity_type": "memo", "id": "1"})
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os._exit(len(os.read(read, 1)) + len(file_lock._held))
    engine.close()
    assert sorted(os.listdir(tmp_path)) == ["l.db", "l.db-queue"]
    os.close(write)
    os.close(read)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
