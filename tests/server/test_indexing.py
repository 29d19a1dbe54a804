"""Indexing: a server brings what trails its logs up to date while nobody writes, and says how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.server.server import Server

from woodrat.api.ledger import Ledger
from woodrat.api.trailing_indexes import TRAILING
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger import indexer, lists
from woodrat.server import indexing
from woodrat.server.indexing import Indexing
from woodrat.server.status import indexes_text
from woodrat.testing.ledgers import ledger_on


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return SqliteEngine(tmp_path / "l.db")


def told(engine: Engine, tenant: str, count: int) -> Ledger:
    """Return a ledger of which somebody said some things."""
    ledger = ledger_on(engine, tenant=tenant)
    ledger.store([{"entity_type": "memo", "id": f"{number}", "text": "word"} for number in range(count)])
    return ledger


def lacks(ledger: Ledger) -> bool:
    """Return whether any index of a ledger that is wanted is behind its log."""
    wanted = [index for index in TRAILING if index.is_wanted(ledger.context)]
    with ledger.context.engine.view(ledger.tenant) as view:
        return any(one.lacking for one in indexer.positions(view, wanted))


def is_behind(work: Indexing) -> bool:
    """Return whether work is left on an index that needs no first question."""
    return any(lacking for name, lacking in work.lacking.items() if not name.startswith("recall"))


async def tended(engine: Engine, *ledgers: Ledger) -> Indexing:
    """Let a server's indexing go on until nothing is left to do; return it."""
    closing = asyncio.Event()
    with ThreadPoolExecutor(1) as thread:
        work = Indexing(engine, lambda tenant: ledger_on(engine, tenant=tenant), thread, closing)
        task = asyncio.create_task(work.tend())
        async with asyncio.timeout(60):
            while any(map(lacks, ledgers)) or is_behind(work) or not work.lacking:
                await asyncio.sleep(0.01)
        closing.set()
        await task
    return work


def test_quiet_logs_are_brought_up_to_date(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every index of every tenant, in steps; the server's own tenants are left alone."""
    monkeypatch.setattr(indexing, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(indexer, "STEP_ENTRIES", 10)
    ledgers = [told(engine, tenant, 35) for tenant in ("one", "two")]
    own = told(engine, "woodrat.audit", 3)
    work = asyncio.run(tended(engine, *ledgers))
    assert set(work.lacking) == {index.name for index in TRAILING}
    assert lacks(own)
    assert 'woodrat_index_lacking{index="state"} 0\n' in indexes_text(work.lacking)
    for ledger in ledgers:
        assert len(ledger.search("word", limit=50).items) == 35
        assert ledger.fingerprint() == ledger.at("now").fingerprint()
        assert ledger.verify(deep=True).sound


def test_a_log_that_is_written_to_waits(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is done for a log that changed since the last look, unless its indexes lack very much."""
    ledger = told(engine, "one", 20)
    with ThreadPoolExecutor(1) as thread:
        work = Indexing(engine, lambda tenant: ledger_on(engine, tenant=tenant), thread, asyncio.Event())
        work._go_on()
        assert work.lacking["state"] == 20
        ledger.store({"entity_type": "memo", "id": "late"})
        work._go_on()
        assert work.lacking["state"] == 21
        monkeypatch.setattr(indexing, "LACKING_MAX", 5)
        ledger.store({"entity_type": "memo", "id": "later"})
        work._go_on()
        assert min(work.lacking.values()) == 0


def test_a_rebuild_is_noticed_though_nobody_writes(engine: Engine) -> None:
    """What a rebuild forgot is made again without waiting for a write."""
    ledger = told(engine, "one", 20)
    with ThreadPoolExecutor(1) as thread:
        work = Indexing(engine, lambda tenant: ledger_on(engine, tenant=tenant), thread, asyncio.Event())
        for _ in range(20):
            work._go_on()
        assert not is_behind(work)
        ledger.rebuild()
        assert lacks(ledger)
        for _ in range(20):
            work._go_on()
        assert not lacks(ledger)


def test_recall_is_brought_on_once_somebody_recalled(engine: Engine) -> None:
    """Its index is held in memory as a whole, so that a server in which nobody recalls does without it."""
    ledger = told(engine, "one", 20)
    with ThreadPoolExecutor(1) as thread:
        work = Indexing(engine, lambda tenant: ledger_on(engine, tenant=tenant), thread, asyncio.Event())
        for _ in range(20):
            work._go_on()
        assert (is_behind(work), work.lacking["recall"]) == (False, 20)
        assert ledger.recall("which word was it?", threshold=0).position == ledger.position
        ledger.store({"entity_type": "memo", "id": "late", "text": "another word"})
        for _ in range(20):
            work._go_on()
        assert (work.lacking["recall"], lacks(ledger)) == (0, False)


def test_a_list_that_waits_for_a_schema_is_503_with_the_progress(
    start: Callable[..., Server], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large type does not keep a list waiting: the answer names how far it is, and other reads go on."""
    monkeypatch.setattr(indexing, "QUIET_SECONDS", 600)  # nobody else takes the schema in
    monkeypatch.setattr(lists, "SCHEMA_SECONDS", 0)
    ledger = told(engine, "default", 3)
    while indexer.go_on(ledger.context, TRAILING):
        pass
    server = start()
    text = {"type": "string", "x-woodrat-index": True}
    position = ledger.schemas.register({"title": "memo", "properties": {"text": text}}).position
    for path in ("/v1/entities?entity_type=memo", "/v1/search?query=word", "/v1/conflicts", "/v1/duplicates"):
        answer = server.call("GET", path)
        assert (answer.status, answer.json["code"]) == (503, "unavailable")
        assert answer.json["details"] | {"entity_type": "memo", "entities": 3, "indexed": 0} == answer.json["details"]
        assert answer.json["details"]["position"] == position
    assert server.call("GET", "/v1/entities/memo%2F1").status == 200
    assert server.call("GET", "/v1/entities?entity_type=other").status == 200
    monkeypatch.setattr(lists, "SCHEMA_SECONDS", 60)
    assert len(server.call("GET", "/v1/entities?entity_type=memo").json["items"]) == 3
