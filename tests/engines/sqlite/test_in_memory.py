"""SQLite in memory: nothing on a disk, views that stay as they were, and threads that wait for each other."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import woodrat
from woodrat.canon.ids import TenantId
from woodrat.engines.sqlite import in_memory
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import Refused, Unavailable
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

T = TenantId("t")


def test_nothing_is_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file appears beside a program, whatever it does; a backup of one is refused."""
    monkeypatch.chdir(tmp_path)
    with woodrat.open(":memory:") as ledger:
        ledger.store({"entity_type": "memo", "id": "1", "text": "here"}, idempotency_key="k")
        assert ledger.verify(deep=True).sound
        assert ledger.rebuild().agreed
        with pytest.raises(Refused, match="memory"):
            ledger.log.backup(tmp_path / "b.db")
    assert list(tmp_path.iterdir()) == []


def test_each_has_a_database_of_its_own() -> None:
    """What one engine holds another does not, however many there are."""
    engines = [InMemoryEngine() for _ in range(20)]
    for number, engine in enumerate(engines):
        for id in range(number):
            ledger_on(engine).store({"entity_type": "memo", "id": str(id)})
    sizes = []
    for engine in engines:
        with engine.view(T) as view:
            sizes.append(len(view.entities(None, view.head().position)))
    assert sizes == list(range(20))


def test_a_view_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes of the thread that has a view open do not show in it; all of them together cost one copy."""
    engine, copies = InMemoryEngine(), []
    ledger, connect = ledger_on(engine), in_memory._connected
    ledger.store({"entity_type": "memo", "id": "0"})
    monkeypatch.setattr(in_memory, "_connected", lambda *data: copies.append(1) or connect(*data))  # type: ignore[func-returns-value]
    with engine.view(T) as old:
        stream = old.entries()
        before = [next(stream)]
        for number in range(1, 6):
            ledger.store({"entity_type": "memo", "id": str(number)})
            with engine.view(T) as new:
                assert len(new.entities(None, new.head().position)) == number + 1
        head = old.head()
        assert [*before, *stream] == list(old.entries())
        assert len(old.entities(None, head.position + 9)) == 1
    assert len(copies) == 1
    assert ledger.rebuild().agreed


def test_a_reader_waits_for_the_writer() -> None:
    """Another thread sees all of a write or nothing of it."""
    engine, seen = InMemoryEngine(), []
    ledger = ledger_on(engine)
    ledger.store({"entity_type": "memo", "id": "0"})

    def look() -> None:
        with engine.view(T) as view:
            seen.append(view.head().size)

    reader = threading.Thread(target=look)
    with engine.view(T) as view:
        size = view.head().size
    with engine.together():
        ledger.store({"entity_type": "memo", "id": "1"})
        reader.start()
        reader.join(0.05)
        assert not seen
        ledger.store({"entity_type": "memo", "id": "2"})
    reader.join()
    assert seen == [size + 2]


def test_threads_write_one_after_the_other() -> None:
    """Writes and reads of several threads lose nothing and see no half of anything."""
    engine = InMemoryEngine()
    faults: list[int] = []

    def work(name: str) -> None:
        ledger = ledger_on(engine, agent=name)
        for number in range(20):
            ledger.store([{"entity_type": "memo", "id": f"{name}-{number}-{half}"} for half in "ab"])
            shown = ledger.show(f"memo/{name}-{number}-a")
            with engine.view(T) as view:
                if view.head().size % 2 != first % 2 or shown.position >= view.head().size:
                    faults.append(number)

    ledger_on(engine).store({"entity_type": "memo", "id": "first"})
    with engine.view(T) as view:
        first = view.head().size
    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.view(T) as view:
        assert view.head().size == first + 160
    assert not faults
    assert ledger_on(engine).verify().sound


def test_closing_waits_for_what_is_open() -> None:
    """A view that is open reads on; whatever comes later is refused, and closing again changes nothing."""
    engine = InMemoryEngine()
    ledger = ledger_on(engine)
    ledger.store({"entity_type": "memo", "id": "1"})
    with engine.view(T) as view:
        engine.close()
        assert len(list(view.entries())) == view.head().size
        with pytest.raises(Unavailable, match="closed"):
            ledger.show("memo/1")
    engine.close()
    with pytest.raises(Unavailable, match="closed"):
        ledger.store({"entity_type": "memo", "id": "2"})


def test_a_write_inside_a_write_is_a_mistake() -> None:
    """It would be lost with the one around it, so it is told."""
    engine = InMemoryEngine()
    with pytest.raises(AssertionError, match="one write"), engine.transaction(T), engine.transaction(T):
        pass
    assert ledger_on(engine).store({"entity_type": "memo", "id": "1"}).positions


def test_an_erasure_is_finished_and_compacts_in_memory(tmp_path: Path) -> None:
    """What is erased is complete at once, and a compaction leaves out free pages, with a view open or not."""
    make_keys(tmp_path / "keys", FixedClock())
    engine = InMemoryEngine()
    with woodrat.open(":memory:", keys=tmp_path / "keys") as ledger:
        ledger.store({"entity_type": "memo", "id": "1", "text": "secret " * 20_000})
        assert ledger.erase("memo/1", reason="asked").complete
        finished = ledger.finish_erasure(compact=True)
        found = finished.compaction
        assert found is not None
        assert found.size_bytes is not None
        assert found.size_after_bytes is not None
        assert found.size_after_bytes < found.size_bytes
        assert ledger.verify(deep=True).sound
    ledger_on(engine).store({"entity_type": "memo", "id": "2"})
    with engine.view(T) as view:
        engine.compact()
        assert view.head().position == 0
