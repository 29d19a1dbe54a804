"""Pending erasures: a server finishes what was in the way of an erasure, and compacts only in its window."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.faults.test_compaction import Planting, _moved_row, erase, is_pending, tell

from woodrat import Refused
from woodrat.api.ledger import Ledger
from woodrat.engines.sqlite import compaction
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.erasure.verbs import byte_scan
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.server import erasures
from woodrat.server.erasures import PendingErasures, Window, window
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger with a person to be forgotten."""
    make_keys(tmp_path / "keys", FixedClock())
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(tmp_path / "keys"))
    monkeypatch.setattr(compaction, "PATIENCE_SECONDS", 0)
    (tmp_path / "store").mkdir()
    told = ledger_on(SqliteEngine(tmp_path / "store" / "l.db"), "default")
    tell(told)
    return told


def work_on(ledger: Ledger, hours: Window | None) -> PendingErasures:
    """Return what a server does about the pending erasures of a ledger."""
    engine, clock = ledger.context.engine, FixedClock("2026-01-05T03:00:00.000000Z")
    return PendingErasures(engine, lambda tenant: ledger_on(engine, tenant), clock, hours, asyncio.Event())


def test_what_a_reader_was_in_the_way_of_is_finished(ledger: Ledger) -> None:
    """An erasure that a reader held up is complete after the server looked again, without a compaction."""
    with ledger.context.engine.view(ledger.tenant):
        assert not erase(ledger).purged
        work_on(ledger, None).finish()
        assert is_pending(ledger)
    work_on(ledger, None).finish()
    assert not is_pending(ledger)
    assert ledger.context.engine.purged()


@pytest.mark.parametrize(
    ("hours", "compacted"),
    [(None, False), ("04:00-06:00", False), ("02:00-04:00", True), ("23:00-03:01", True), ("03:01-03:00", False)],
)
def test_a_file_is_compacted_in_its_window_alone(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: str | None, compacted: bool
) -> None:
    """What the search found stays pending until the window opens; it is not searched for again before."""
    _moved_row(Planting(monkeypatch, tmp_path / "store" / "l.db"))
    assert not erase(ledger).complete
    work = work_on(ledger, None if hours is None else window(hours))
    work.finish()
    assert is_pending(ledger) is not compacted
    searches: list[object] = []
    monkeypatch.setattr(byte_scan, "scan", lambda *given: searches.append(given))
    work.finish()
    assert searches == []


def test_it_looks_time_and_again_until_the_server_ends(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that runs finishes an erasure by itself, and ends when it is closed."""
    monkeypatch.setattr(erasures, "PAUSE_SECONDS", 0.01)
    with ledger.context.engine.view(ledger.tenant):
        assert not erase(ledger).purged

    async def run() -> None:
        closing = asyncio.Event()
        engine = ledger.context.engine
        work = PendingErasures(engine, lambda tenant: ledger_on(engine, tenant), FixedClock(), None, closing)
        task = asyncio.create_task(work.tend())
        async with asyncio.timeout(60):
            while is_pending(ledger):
                await asyncio.sleep(0.01)
        closing.set()
        await task

    asyncio.run(run())


@pytest.mark.parametrize("text", ["", "2-4", "02:00", "24:00-01:00", "02:00-04:60", "02:00-04:00 "])
def test_a_window_that_cannot_be_read_is_refused(text: str) -> None:
    """A window is two times of day; anything else is refused by name."""
    with pytest.raises(Refused, match="HH:MM-HH:MM"):
        window(text)
