"""Growth: whoever waits for a log to grow is woken by any write, and by nothing else."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import growth
from woodrat.ledger.growth import Growth, growth_of
from woodrat.testing.ledgers import ledger_on

LONG_SECONDS = 60.0


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(tmp_path / "ledger.db")
    yield engine
    engine.close()


@pytest.fixture
def waiting(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> Growth:
    """Those who wait at the engine; nobody looks for them but the test."""
    monkeypatch.setattr(Growth, "_look", lambda self: None)
    return growth_of(engine)


def test_one_looks_for_all_who_wait(engine: SqliteEngine, waiting: Growth) -> None:
    """A write wakes all who saw the log before it, once; without a write nobody is woken."""
    ledger = ledger_on(engine)
    ledger.store({"entity_type": "memo", "id": "1"})
    assert growth_of(engine) is waiting
    assert not waiting.wake(), "nobody waits"
    woken: list[int] = []
    seen = waiting.stamp()
    for number in range(3):
        waiting.add(seen, lambda number=number: woken.append(number))  # type: ignore[misc]
    gone = waiting.add(seen, lambda: woken.append(-1))
    waiting.remove(gone)
    assert waiting.wake()
    assert woken == []
    ledger.store({"entity_type": "memo", "id": "2"})
    waiting.add(waiting.stamp(), lambda: woken.append(99))
    waiting.wake()
    waiting.wake()
    assert woken == [0, 1, 2]


def test_a_write_of_another_engine_is_seen(engine: SqliteEngine, waiting: Growth) -> None:
    """What is written to the file through another engine wakes those who wait at this one."""
    ledger_on(engine).store({"entity_type": "memo", "id": "1"})
    seen = waiting.stamp()
    woken = threading.Event()
    waiting.add(seen, woken.set)
    other = SqliteEngine(engine.path)
    ledger_on(other).store({"entity_type": "memo", "id": "2"})
    waiting.wake()
    other.close()
    assert woken.is_set()


def test_a_thread_and_a_loop_are_woken(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting ends with the write that comes meanwhile, in a thread and on an event loop, and long before its time."""
    monkeypatch.setattr(growth, "LOOK_SECONDS", 0.001)
    ledger = ledger_on(engine)
    ledger.store({"entity_type": "memo", "id": "0"})
    waiting = growth_of(engine)
    seen = waiting.stamp()
    thread = threading.Thread(target=waiting.wait, args=(seen, LONG_SECONDS))
    thread.start()

    async def follow() -> None:
        task = asyncio.create_task(waiting.wait_on_loop(seen, LONG_SECONDS))
        await asyncio.sleep(0)
        await asyncio.to_thread(ledger.store, {"entity_type": "memo", "id": "1"})
        await asyncio.wait_for(task, LONG_SECONDS / 2)
        await waiting.wait_on_loop(waiting.stamp(), 0.0)

    asyncio.run(follow())
    thread.join(LONG_SECONDS / 2)
    assert not thread.is_alive()
    waiting.wait(waiting.stamp(), 0.0)


def test_without_a_stamp_everybody_looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who wait at an engine that has no stamp are woken at every look."""
    monkeypatch.setattr(Growth, "_look", lambda self: None)
    monkeypatch.setattr(InMemoryEngine, "stamp", lambda self: None)
    engine = InMemoryEngine()
    waiting = growth_of(engine)
    assert waiting.stamp() is None
    woken = threading.Event()
    waiting.add(None, woken.set)
    waiting.wake()
    assert woken.is_set()


def test_a_closed_engine_wakes_all(engine: SqliteEngine, waiting: Growth) -> None:
    """Who waits at an engine that is closed is woken, and learns of it by asking."""
    woken = threading.Event()
    waiting.add(waiting.stamp(), woken.set)
    engine.close()
    waiting.wake()
    assert woken.is_set()


def test_nobody_holds_on_to_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting at an engine does not keep it, and the thread ends when nobody waits."""
    monkeypatch.setattr(growth, "LOOK_SECONDS", 0.001)
    engine = InMemoryEngine()
    waiting = growth_of(engine)
    waiting.wait(None, LONG_SECONDS)
    threads = [thread for thread in threading.enumerate() if thread.name == "woodrat-growth"]
    for thread in threads:
        thread.join(LONG_SECONDS / 2)
    assert not any(thread.is_alive() for thread in threads)
    gone = weakref.ref(engine)
    del engine
    gc.collect()
    assert gone() is None
    assert waiting.stamp() is None
