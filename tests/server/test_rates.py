"""Who may work now: places, those who wait for one, and the share of the time that a key may use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future

import pytest

from woodrat.records import replace
from woodrat.server.access import Caller
from woodrat.server.limits import Places
from woodrat.server.problems import Rejected
from woodrat.server.rates import Pace, Turns

PLACES = Places(running_max=2, running_per_key=1, waiting_max=3, waiting_per_key=2)


class Holding:
    """Calls that have their places until they are let go; each key is of its own tenant, unless it is said."""

    def __init__(self, turns: Turns, tenants: Mapping[str, str] | None = None) -> None:
        self._turns, self.begun = turns, []  # type: ignore[var-annotated]
        self._tenants = tenants or {}
        self.ends: dict[str, asyncio.Event] = {}

    def ask(self, name: str) -> asyncio.Task[None]:
        """Have a call, `key` and a number, ask for a place."""
        self.ends[name] = asyncio.Event()
        return asyncio.ensure_future(self._hold(name))

    async def _hold(self, name: str) -> None:
        async with self._turns.turn(Caller(self._tenants.get(name[0], name[0]), "agent", key=name[0])):
            self.begun.append(name)
            await self.ends[name].wait()

    async def end(self, *names: str) -> None:
        """Let some go, and those who waited for them begin."""
        for name in names:
            self.ends[name].set()
        await settled()


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def run(story: Callable[[Turns, Holding], Awaitable[None]]) -> None:
    async def told() -> None:
        turns = Turns("are long", PLACES)
        await story(turns, Holding(turns))

    asyncio.run(told())


def test_keys_take_turns() -> None:
    """No key has more than its places, and what it has waiting does not stand before another key's first call."""

    async def story(turns: Turns, holding: Holding) -> None:
        for name in ("a1", "a2", "a3", "b1", "c1"):
            holding.ask(name)
        await settled()
        assert (holding.begun, turns.running, turns.waiting) == (["a1", "b1"], 2, 3)
        await holding.end("b1")
        assert holding.begun[2:] == ["c1"]
        await holding.end("a1", "c1")
        assert holding.begun[3:] == ["a2"]
        await holding.end("a2")
        await holding.end("a3")
        assert (holding.begun[4:], turns.running, turns.waiting) == (["a3"], 0, 0)

    run(story)


def test_who_waits_is_bounded_by_key_and_in_total() -> None:
    """Beyond its number a key is told 429, and beyond that of all 503; both say when to call again."""

    async def story(turns: Turns, holding: Holding) -> None:
        for name in ("a1", "a2", "a3", "b1", "b2"):
            holding.ask(name)
        await settled()
        for name, status in (("a4", 429), ("c1", 503)):
            with pytest.raises(Rejected) as rejected:
                await holding.ask(name)
            assert (rejected.value.status, rejected.value.code) == (status, "unavailable")
            assert dict(rejected.value.headers)[b"retry-after"].isdigit()
        assert turns.refused == 2
        await holding.end("a1", "a2", "a3", "b1", "b2")

    run(story)


def test_whoever_gives_up_leaves_no_trace() -> None:
    """A call that is cancelled while it waits, or as its place is given to it, does not keep the place."""

    async def story(turns: Turns, holding: Holding) -> None:
        holding.ask("a1")
        waiting = [holding.ask(name) for name in ("a2", "a3")]
        await settled()
        waiting[0].cancel()
        await settled()
        assert turns.waiting == 1
        holding.ends["a1"].set()
        await asyncio.sleep(0)  # the place is given away now
        waiting[1].cancel()
        await settled()
        assert (turns.running, turns.waiting, turns.keys) == (0, 0, set())

    run(story)


@pytest.mark.parametrize(("per_tenant", "begun"), [(None, ["a1", "c1"]), (2, ["a1", "b1"])])
def test_no_tenant_has_all_places(per_tenant: int | None, begun: list[str]) -> None:
    """However many keys a tenant has, it leaves a place to others; the planted fault, a tenant with all, is seen."""

    async def story() -> None:
        turns = Turns("are long", replace(PLACES, running_per_tenant=per_tenant))
        holding = Holding(turns, {"a": "one", "b": "one", "c": "two"})
        for name in ("a1", "b1", "c1"):
            holding.ask(name)
        await settled()
        assert holding.begun == begun
        await holding.end("a1", "b1", "c1")
        await holding.end("b1", "c1")
        assert (sorted(holding.begun), turns.running, turns.keys) == (["a1", "b1", "c1"], 0, set())

    asyncio.run(story())


def test_what_a_tenant_has_waiting_leaves_room() -> None:
    """What all keys of a tenant have waiting leaves room for as much as a key of another tenant may have waiting."""

    async def story() -> None:
        turns = Turns("are long", Places(running_max=1, running_per_key=1, waiting_max=4, waiting_per_key=2))
        holding = Holding(turns, {"a": "one", "b": "one", "c": "one", "d": "two"})
        for name in ("a1", "a2", "b1"):
            holding.ask(name)
        await settled()
        with pytest.raises(Rejected, match="2 calls of this tenant") as rejected:
            await holding.ask("c1")
        assert rejected.value.status == 429
        for name in ("d1", "d2"):
            holding.ask(name)
        await settled()
        assert turns.waiting == 4
        turns.give_up(lambda: Rejected(503, "the end"))
        await holding.end("a1")

    asyncio.run(story())


def test_a_place_is_free_when_its_thread_is() -> None:
    """Who leaves while a thread still works for them does not make room for another: the thread is not free."""

    async def story(turns: Turns, _: Holding) -> None:
        work: Future[None] = Future()
        work.set_running_or_notify_cancel()
        async with turns.turn(Caller("one", "agent", key="a")) as place:
            place.work = work
        assert turns.running == 1
        await asyncio.to_thread(work.set_result, None)
        await settled()
        assert turns.running == 0

    run(story)


def test_a_key_waits_for_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its burst a key waits as long as its share says; other keys do not wait for it."""

    async def story() -> None:
        pace, slept = Pace(share=0.25, burst_seconds=0.5), []
        loop = asyncio.get_running_loop()
        now = [100.0]
        monkeypatch.setattr(loop, "time", lambda: now[0])

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            now[0] += seconds

        monkeypatch.setattr(asyncio, "sleep", sleep)
        pace.charge("a", 0.4)
        await pace.wait("a")
        pace.charge("a", 0.6)
        await pace.wait("b")
        assert slept == []
        await pace.wait("a")
        assert slept == [pytest.approx(2.0)]
        now[0] += 100
        await pace.wait("a")
        assert not pace.debts

    asyncio.run(story())
