"""Writes that wait together share one durable transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from woodrat import Ledger, Refused, Report, Unavailable
from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.records import NOTHING_ASKED, Asks
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.committer import Committer
from woodrat.runs.rules import Rule
from woodrat.testing.ledgers import ledger_on


class Counting(Engine):
    """An engine that counts the commits that are shared, and can fail at one."""

    def __init__(self, inner: Engine) -> None:
        self.inner, self.name, self.location = inner, inner.name, inner.location
        self.shared = 0
        self.failing: Exception | None = None

    def view(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> Any:
        return self.inner.view(tenant, asks)

    def transaction(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> Any:
        return self.inner.transaction(tenant, asks)

    def together(self, tenants: Iterable[TenantId] = ()) -> AbstractContextManager[None]:
        self.shared += 1
        return cast("AbstractContextManager[None]", _Together(self))

    def tenants(self) -> list[str]:
        return self.inner.tenants()

    def elsewhere(self) -> Any:
        return self.inner.elsewhere()

    def purge(self) -> bool:
        return self.inner.purge()

    def purged(self) -> bool:
        return self.inner.purged()

    def storage(self, tenant: TenantId) -> Any:
        return self.inner.storage(tenant)

    def close(self) -> None:
        self.inner.close()


class _Together:
    def __init__(self, engine: Counting) -> None:
        self._engine, self._inner = engine, engine.inner.together()

    def __enter__(self) -> None:
        self._inner.__enter__()

    def __exit__(self, *error: Any) -> Any:
        failing = self._engine.failing
        if failing is None:
            return self._inner.__exit__(*error)
        self._inner.__exit__(type(failing), failing, None)
        raise failing


@pytest.fixture(params=["memory", "sqlite"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Counting]:
    found = Counting(InMemoryEngine() if request.param == "memory" else SqliteEngine(tmp_path / "shared.db"))
    yield found
    found.close()


@pytest.fixture
def ledger(engine: Counting) -> Ledger:
    return ledger_on(engine)


def together(committer: Committer, writes: list[Any]) -> list[Future[Any]]:
    """Submit writes while the committer is busy, so that they wait together."""
    started, free = threading.Event(), threading.Event()

    def busy() -> None:
        started.set()
        free.wait(10)

    committer.submit(busy)
    started.wait(10)
    futures = [committer.submit(write) for write in writes]
    free.set()
    wait(futures, 10)
    return futures


def test_writes_that_wait_together_share_a_commit(engine: Counting, ledger: Ledger) -> None:
    """Twenty writes that wait share one commit; each is answered with its own report."""
    with Committer(engine) as committer:
        writes = [lambda n=n: ledger.store({"entity_type": "thing", "id": str(n)}) for n in range(20)]
        reports: list[Report] = [future.result() for future in together(committer, writes)]
    assert engine.shared == 1
    assert [report.entities for report in reports] == [(f"thing/{n}",) for n in range(20)]
    assert [report.position for report in reports] == list(range(20))
    assert ledger.rebuild().agreed


def test_one_write_alone_shares_nothing(engine: Counting, ledger: Ledger) -> None:
    """A write that nobody waits beside is an ordinary transaction."""
    with Committer(engine) as committer:
        assert committer.submit(lambda: ledger.store({"entity_type": "thing", "id": "1"})).result(10).position == 0
    assert engine.shared == 0


def test_a_refused_write_fails_alone(engine: Counting, ledger: Ledger) -> None:
    """One bad request never fails its neighbours."""
    good, bad = {"entity_type": "thing", "id": "1"}, {"entity_type": "thing"}
    with Committer(engine) as committer:
        first, refused, last = together(
            committer, [lambda record=record: ledger.store(record) for record in (good, bad, {**good, "city": "Lugo"})]
        )
    assert first.result().position == 0
    assert last.result().position == 1
    assert isinstance(refused.exception(), Refused)


def test_nothing_is_acknowledged_when_the_commit_fails(engine: Counting, ledger: Ledger) -> None:
    """When the commit fails all that share it hear of it, a refused one its own refusal; none is stored."""
    engine.failing = Unavailable("the disk is full")
    with Committer(engine) as committer:
        futures = together(
            committer,
            [lambda n=n: ledger.store({"entity_type": "thing", **({"id": str(n)} if n else {})}) for n in range(3)],
        )
    assert [type(future.exception()) for future in futures] == [Refused, Unavailable, Unavailable]
    assert ledger.query().items == ()


def test_closing_finishes_what_was_submitted(engine: Counting, ledger: Ledger) -> None:
    """Closing carries out what waits, and refuses what comes after."""
    committer = Committer(engine)
    futures = [
        committer.submit(lambda n=n: ledger.store({"entity_type": "thing", "id": str(n)}))  # type: ignore[misc]
        for n in range(10)
    ]
    committer.close()
    assert all(future.done() and future.exception() is None for future in futures)
    with pytest.raises(Unavailable, match="shutting down"):
        committer.submit(lambda: ledger.store({"entity_type": "thing", "id": "late"}))


def test_closing_finishes_what_has_only_just_arrived(engine: Counting, ledger: Ledger) -> None:
    """What a loop was asked for before the committer was closed is carried out, though it was not handed over yet."""

    async def ask() -> Report:
        committer = Committer(engine)
        asked = asyncio.ensure_future(committer.carry_out(partial(ledger.store, {"entity_type": "thing", "id": "1"})))
        await asyncio.sleep(0)
        assert committer._arrived, "it waits for the loop"
        committer.close()
        with pytest.raises(Unavailable, match="shutting down"):
            await committer.carry_out(partial(ledger.store, {"entity_type": "thing", "id": "late"}))
        return await asked

    assert asyncio.run(ask()).position == 0


def test_what_arrives_at_once_shares_a_commit(engine: Counting, ledger: Ledger) -> None:
    """Calls that a loop has at hand at the same time are handed over together, the first of them too."""

    async def ask() -> list[Report]:
        with Committer(engine) as committer:
            writes = [partial(ledger.store, {"entity_type": "thing", "id": str(n)}) for n in range(8)]
            return await asyncio.gather(*(committer.carry_out(write) for write in writes))

    assert [report.position for report in asyncio.run(ask())] == list(range(8))
    assert engine.shared == 1


def test_watchers_are_told_after_the_shared_commit(engine: Counting, ledger: Ledger) -> None:
    """Whoever watches for stale decisions hears of a write once it is durable, and nothing of one that was undone."""
    for n in range(2):
        ledger.store({"entity_type": "loan", "id": str(n), "score": 580})
        with ledger.run("Approve?") as run:
            run.decide("risk", run.show(f"loan/{n}"), [Rule("rejected", {"score": {"lt": 600}})], default="approved")
    told: list[Any] = []

    def hear(found: tuple[Any, ...]) -> None:
        # What is told of can be read by now, by everybody.
        scores = [ledger.show(f"loan/{n}").fields["score"] for n in range(2)]
        told.extend((one.now.chosen, *scores) for one in found)

    corrections = [lambda n=n: ledger.correct(f"loan/{n}", {"score": 700}) for n in range(2)]
    with ledger.on_stale(hear) as subscription, Committer(engine) as committer:
        engine.failing = Unavailable("the disk is full")
        together(committer, corrections)
        assert subscription.flush()
        assert told == []
        engine.failing = None
        together(committer, corrections)
    assert told == [("approved", 700, 700)] * 2


def test_a_write_alone_reads_what_it_wrote(engine: Counting, ledger: Ledger) -> None:
    """A call that reads its own writes shares no commit, whoever waits beside it."""

    def both() -> int:
        ledger.store({"entity_type": "thing", "id": "own"})
        return ledger.show("thing/own").position

    with Committer(engine) as committer:
        busy = threading.Event()
        committer.submit(lambda: busy.wait(10))
        futures: list[Future[Any]] = [
            committer.submit(lambda: ledger.store({"entity_type": "thing", "id": "1"})),
            committer.submit(both, alone=True),
            committer.submit(lambda: ledger.store({"entity_type": "thing", "id": "2"})),
        ]
        busy.set()
        assert [future.exception(10) for future in futures] == [None] * 3


def test_coroutines_that_wait_together_are_woken_once(engine: Counting, ledger: Ledger) -> None:
    """Coroutines whose writes share a commit each get their own report or refusal, and their loop one call."""
    calls: list[Any] = []

    async def all_of_them() -> list[Any]:
        loop = asyncio.get_running_loop()
        with Committer(engine) as committer:
            busy = threading.Event()
            committer.submit(lambda: busy.wait(10))
            records = [{"entity_type": "thing", "id": str(n)} if n != 3 else {"entity_type": "thing"} for n in range(8)]
            writes = [asyncio.ensure_future(committer.carry_out(partial(ledger.store, record))) for record in records]
            await asyncio.sleep(0)
            woken = loop.call_soon_threadsafe

            def call(*given: Any, **further: Any) -> Any:
                calls.append(given)
                return woken(*given, **further)

            cast(Any, loop).call_soon_threadsafe = call
            busy.set()
            return await asyncio.gather(*writes, return_exceptions=True)

    found = asyncio.run(all_of_them())
    assert isinstance(found.pop(3), Refused)
    assert [report.entities for report in found] == [(f"thing/{n}",) for n in range(8) if n != 3]
    assert len(calls) == 1


def test_a_coroutine_that_gave_up_writes_nothing(engine: Counting, ledger: Ledger) -> None:
    """A write that nobody waits for any more is not begun; one that was begun is carried out."""

    async def give_up() -> None:
        with Committer(engine) as committer:
            busy = threading.Event()
            committer.submit(lambda: busy.wait(10))
            things = [{"entity_type": "thing", "id": id} for id in ("gone", "stays")]
            gone, stays = (asyncio.ensure_future(committer.carry_out(partial(ledger.store, one))) for one in things)
            await asyncio.sleep(0)
            gone.cancel()
            busy.set()
            await stays

    asyncio.run(give_up())
    assert [found.entity.key for found in ledger.query().items] == ["stays"]
