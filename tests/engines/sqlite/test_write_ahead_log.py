"""The write-ahead log: it grows while somebody reads the past, and shrinks once nobody does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from woodrat import Ledger
from woodrat.engines.sqlite import write_ahead_log
from woodrat.engines.sqlite.connection import BUSY_MILLISECONDS, WAL_PAGES
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.write_ahead_log import PAUSE_COMMITS, size_of
from woodrat.testing.ledgers import ledger_on

LARGE = 2 * WAL_PAGES * 4096


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteEngine]:
    """An engine whose write-ahead log is soon called large."""
    monkeypatch.setattr(write_ahead_log, "LARGE_BYTES", LARGE)
    engine = SqliteEngine(tmp_path / "ledger.db")
    yield engine
    engine.close()


def fill(ledger: Ledger, engine: SqliteEngine, size: int) -> None:
    """Write until the write-ahead log has a size."""
    for number in range(100):
        if size_of(engine.path) >= size:
            return
        ledger.store([{"entity_type": "memo", "id": f"{number}-{n}", "text": "x" * 2_000} for n in range(500)])
    raise AssertionError("it does not grow")


def test_the_file_shrinks_once_nobody_reads_the_past(engine: SqliteEngine) -> None:
    """While a view is open the write-ahead log grows; the first write after it cuts the file."""
    ledger = ledger_on(engine)
    ledger.store({"entity_type": "memo", "id": "first"})
    with engine.view(ledger.tenant) as view:
        head = view.head()
        fill(ledger, engine, 2 * LARGE)
        assert view.head() == head
    assert size_of(engine.path) >= 2 * LARGE
    ledger.store({"entity_type": "memo", "id": "last"})
    assert size_of(engine.path) < LARGE
    assert [ledger.show(f"memo/{id}").fields["id"] for id in ("first", "last")] == ["first", "last"]
    assert ledger.verify().sound


def test_a_reader_in_the_way_is_not_waited_for_again_and_again(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone who reads the newest state keeps the file; writers try to cut it now and then, and wait but shortly."""
    waits: list[int] = []
    ledger = ledger_on(engine)
    ledger.store({"entity_type": "memo", "id": "first"})
    with engine.view(ledger.tenant) as view:
        view.head()
        fill(ledger, engine, LARGE)
    log = engine._write_ahead_log

    class Counted:
        """The writer's connection, as far as cutting needs it."""

        def __getattr__(self, name: str) -> object:
            return getattr(engine._writer.connection, name)

        def set_busy_timeout(self, milliseconds: int) -> None:
            waits.append(milliseconds)
            engine._writer.connection.set_busy_timeout(milliseconds)

    monkeypatch.setattr(log, "_connection", Counted())
    with engine.view(ledger.tenant) as view:
        view.head()
        for _ in range(PAUSE_COMMITS + 1):
            log.take_over()
        assert size_of(engine.path) >= LARGE
    assert waits == [write_ahead_log.CUT_MILLISECONDS, BUSY_MILLISECONDS] * 2
    for number in range(PAUSE_COMMITS):
        ledger.store({"entity_type": "memo", "id": "more", "n": number})
    assert size_of(engine.path) < LARGE


def test_no_file_has_no_size(tmp_path: Path) -> None:
    """A database that does not exist has no write-ahead log."""
    assert size_of(str(tmp_path / "none.db")) == 0
