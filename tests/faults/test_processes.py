"""Several writers: turns are fair between threads and processes, and nobody sees or leaves half a write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from tests.faults.processes import (
    FULL,
    PATIENCE,
    ROOT,
    TENANT,
    Writing,
    check_acknowledged,
    check_derived,
    check_log,
    writing,
)

import woodrat
from woodrat.clock import SystemClock
from woodrat.engines.sqlite import writer_queue
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.writer_queue import WriterQueue
from woodrat.errors import Unavailable
from woodrat.testing.ledgers import ledger_on

SECONDS: Final = 10.0 if FULL else 3.0
"""How long processes write side by side."""
NAMES: Final = ("a", "b", "c")
RECORD: Final[dict[str, Any]] = {"entity_type": "memo", "id": "1", "text": "x"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a ledger will be."""
    return tmp_path / "l.db"


def shares(file: Path) -> list[int]:
    """Let three processes write side by side for a while, check what they left, return how many writes each made."""
    with writing(file, *NAMES) as running:
        for process in running:
            process.go()
        for process in running:
            process.acknowledges(1)
        before = [len(process.acknowledged) for process in running]
        threading.Event().wait(SECONDS)
        made = [len(process.acknowledged) - already for process, already in zip(running, before, strict=True)]
        for process in running:
            process.stop()
    engine = SqliteEngine(file)
    check_log(engine)
    for process in running:
        check_acknowledged(engine, process.name, process.acknowledged)
    check_derived(engine)
    engine.close()
    return made


def test_writing_processes_get_their_share_and_lose_nothing(tmp_path: Path) -> None:
    """Three writing processes leave no gap, lose nothing, and the least served gets half its fair share."""
    made: list[int] = []
    for attempt in ("first", "second"):  # a machine busy with other work may starve a process of its own accord
        made = shares(tmp_path / f"{attempt}.db")
        print(f"writes of three processes in {SECONDS} s: {made}")
        if min(made) >= sum(made) / len(made) / 2:
            return
    pytest.fail(f"the least served process got less than half its share: {made}")


def test_a_reader_sees_only_whole_writes(file: Path) -> None:
    """A process that reads while another writes sees a log that ends with a whole write, again and again."""
    with writing(file, "a") as (process,):
        process.go()
        process.acknowledges(1)
        reader = SqliteEngine(file, readonly=True)
        last = 0
        for wanted in range(1, 40):
            process.acknowledges(wanted)
            check_log(reader)
            with reader.view(TENANT) as view:
                size = view.head().size
            assert size >= last
            assert size > process.acknowledged[wanted - 1][1], "an acknowledged write is not seen"
            last = size
        reader.close()


def test_processes_that_make_a_file_together_all_succeed(file: Path) -> None:
    """Several processes may open a ledger that is not there yet, at once."""
    with writing(file, *"abcdef") as running:
        for process in running:
            process.go()
        for process in running:
            process.acknowledges(2)
        for process in running:
            process.stop()
    engine = SqliteEngine(file)
    check_log(engine)
    for process in running:
        check_acknowledged(engine, process.name, process.acknowledged)
    engine.close()


# Threads


@contextmanager
def held(turn: WriterQueue) -> Iterator[None]:
    """FileLock the gate in a thread of its own, until the end."""
    entered, end = threading.Event(), threading.Event()

    def hold() -> None:
        with turn.turn():
            entered.set()
            assert end.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(PATIENCE)
    try:
        yield
    finally:
        end.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()


def waiting(*gates: WriterQueue) -> int:
    """Return how many threads wait at these gates."""
    return sum(len(queue._waiting) for queue in {turn._queue for turn in gates} if queue is not None)


def until(come: Callable[[], bool]) -> None:
    """Wait for something that no event tells."""
    pause = threading.Event()
    for _ in range(int(PATIENCE * 1000)):
        if come():
            return
        pause.wait(0.001)
    pytest.fail("it never came")


@pytest.mark.parametrize("count", [1, 2], ids=["one gate", "two gates"])
def test_threads_are_served_in_order_of_arrival(file: Path, count: int) -> None:
    """Threads of one process take turns in the order they came, also when they opened the file separately."""
    gates = [WriterQueue(file) for _ in range(count)]
    served: list[int] = []
    threads = []

    def take(number: int) -> None:
        with gates[number % count].turn():
            served.append(number)

    with held(gates[0]):
        for number in range(20):
            threads.append(threading.Thread(target=take, args=(number,)))
            threads[-1].start()
            until(lambda number=number: waiting(*gates) == number + 1)  # type: ignore[misc]
        assert served == []
    for thread in threads:
        thread.join(PATIENCE)
    assert served == list(range(20))


def test_a_writer_that_is_interrupted_while_it_waits_lets_the_others_on(file: Path) -> None:
    """A wait that ends by an exception gives up its place, and nobody waits for it."""
    turn = WriterQueue(file)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with held(turn):
            main = threading.main_thread().ident
            assert main is not None

            def send() -> None:
                until(lambda: waiting(turn) == 1)
                signal.pthread_kill(main, signal.SIGUSR1)

            sender = threading.Thread(target=send)
            sender.start()
            with pytest.raises(KeyboardInterrupt), turn.turn():
                pytest.fail("the gate was held")
            sender.join(PATIENCE)
            assert waiting(turn) == 0
    finally:
        signal.signal(signal.SIGUSR1, before)
    with held(turn):
        pass


def test_an_exception_in_a_turn_passes_it_on(file: Path) -> None:
    """A writer that fails frees the writer_queue."""
    turn = WriterQueue(file)
    with pytest.raises(ZeroDivisionError), turn.turn():
        raise ZeroDivisionError
    with held(turn):
        pass


# Two engines of one process


def test_two_engines_on_one_file_in_one_process(file: Path) -> None:
    """Two engines of one process write to one file in turns, see each other's writes, and one may be closed first."""
    one, other = SqliteEngine(file), SqliteEngine(file)
    assert one.writer_queue._queue is other.writer_queue._queue
    ledgers = [ledger_on(engine, TENANT, name, SystemClock()) for engine, name in ((one, "a"), (other, "b"))]
    failures: list[BaseException] = []

    def write(ledger: woodrat.Ledger) -> None:
        try:
            for number in range(30):
                ledger.store({**RECORD, "id": f"{ledger.agent}{number}"})
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(ledger,)) for ledger in ledgers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert failures == []
    check_log(one)
    assert ledgers[0].position == ledgers[1].position == 59
    other.close()
    assert ledgers[0].store(RECORD).position == 60
    one.close()


def _child(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


HOLDER: Final = """
import sys
from pathlib import Path
from woodrat.engines.sqlite.writer_queue import WriterQueue
with WriterQueue(Path(sys.argv[1])).turn():
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def held_elsewhere(file: Path) -> Iterator[subprocess.Popen[str]]:
    """FileLock the gate in another process."""
    child = _child(HOLDER, str(file))
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
    finally:
        child.kill()
        child.communicate(timeout=PATIENCE)


def test_closing_one_engine_does_not_let_others_into_the_gate_of_another(file: Path) -> None:
    """A process keeps its place when it closes a second engine on the same file: its locks are not lost with it."""
    one, other = WriterQueue(file), WriterQueue(file)
    with other.turn():
        pass
    with one.turn():
        other.close()
        child = _child(HOLDER, str(file))
        try:
            assert child.stdout is not None
            told: list[str] = []
            listener = threading.Thread(target=lambda: told.append(child.stdout.readline()))  # type: ignore[union-attr]
            listener.start()
            listener.join(1.0)
            assert told == [], "another process passed a gate that is held"
        finally:
            child.kill()
            child.wait(PATIENCE)
            listener.join(PATIENCE)
            child.communicate(timeout=PATIENCE)


def test_a_dead_process_holds_no_gate(file: Path) -> None:
    """A writer killed in its turn lets the next one in."""
    with held_elsewhere(file) as child:
        child.kill()
        with held(WriterQueue(file)):
            pass


def test_a_stopped_process_does_not_stop_the_others(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waited long enough at the gate goes on without: SQLite's own lock keeps the file safe."""
    monkeypatch.setattr(writer_queue, "PATIENCE_SECONDS", 0.1)
    with held_elsewhere(file):
        engine = SqliteEngine(file)
        assert ledger_on(engine).store(RECORD).position == 0
        engine.close()


def test_a_queue_that_cannot_be_made_is_done_without(file: Path) -> None:
    """Writes go on when the queue's file cannot be opened."""
    file.with_name("l.db-queue").mkdir()
    engine = SqliteEngine(file)
    assert ledger_on(engine).store(RECORD).position == 0
    engine.close()


# Forks


def _forked(work: Callable[[], str]) -> str:
    """Return what a forked process has to say; it ends without cleaning up after its parent."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            os.write(write, work().encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as heard:
        told = heard.read()
    os.waitpid(child, 0)
    return told


def _complaint(call: Callable[[], object]) -> str:
    try:
        return f"no complaint: {call()}"
    except Unavailable as error:
        return f"{error.code}: {error}"
    except BaseException as error:
        return repr(error)


@pytest.mark.parametrize("verb", ["write", "read", "fingerprint"])
def test_a_forked_process_cannot_use_its_parents_ledger(file: Path, verb: str) -> None:
    """A ledger carried over a fork refuses every call, says what to do, and the parent's goes on unharmed."""
    engine = SqliteEngine(file)
    ledger = ledger_on(engine)
    ledger.store(RECORD)
    calls: dict[str, Callable[[], object]] = {
        "write": lambda: ledger.store({**RECORD, "id": "2"}),
        "read": lambda: ledger.show("memo/1"),
        "fingerprint": ledger.fingerprint,
    }

    def work() -> str:
        told = _complaint(calls[verb])
        ledger.close()
        return told

    told = _forked(work)
    assert told.startswith("unavailable: ")
    assert "forked" in told
    assert "Open the ledger again in each process." in told
    assert ledger.store({**RECORD, "id": "3"}).position == 1
    engine.close()


def test_a_process_forked_while_a_thread_writes_can_open_the_file_itself(file: Path) -> None:
    """A forked process opens the file anew and writes, whatever its parent's threads were doing."""
    engine = SqliteEngine(file)
    ledger = ledger_on(engine)
    ledger.store(RECORD)
    entered, end = threading.Event(), threading.Event()

    def hold() -> None:
        with engine.writer_queue._queue._lock if engine.writer_queue._queue else threading.Lock():
            entered.set()
            end.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(PATIENCE)

    def work() -> str:
        mine = SqliteEngine(file)
        position = ledger_on(mine).store({**RECORD, "id": "2"}).position
        mine.close()
        return str(position)

    try:
        assert _forked(work) == "1"
    finally:
        end.set()
        thread.join(PATIENCE)
    assert ledger.store({**RECORD, "id": "3"}).position == 2
    engine.close()


def test_a_writing_process_says_what_went_wrong(tmp_path: Path) -> None:
    """The tests' own writer shows its error when it ends early, so that a failure here can be understood."""
    process = Writing(tmp_path / "no folder" / "l.db", "a")
    try:
        with pytest.raises(AssertionError, match="Create the folder first"):
            process.heard("ready")
    finally:
        process.kill()
