"""The same verbs as coroutines. The ledger itself is synchronous: each call runs in a worker thread."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from woodrat.api.ledger import Ledger
from woodrat.api.open import open_ledger
from woodrat.api.past import Past
from woodrat.runs.calls import recipe_of
from woodrat.runs.recorder import Run
from woodrat.runs.run_reads import RunPast

if TYPE_CHECKING:
    from woodrat.compare.divergence import Divergence
    from woodrat.explain.stale import Stale
    from woodrat.ledger.sources import Reading
    from woodrat.replay.resume import Resumed

P = ParamSpec("P")
T = TypeVar("T")


class AsyncPast:
    """A ledger, or a moment of one, whose verbs are coroutines."""

    def __init__(self, past: Past) -> None:
        self._past = past

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._past, name)
        return _coroutine(found) if callable(found) else found

    async def runs_diff(self, first: Any, second: Any, *, other: AsyncPast | Past | None = None) -> Divergence:
        """Return where two runs part and why, as `Past.runs_diff` does; the other ledger may be an async one."""
        elsewhere = other._past if isinstance(other, AsyncPast) else other
        return await asyncio.to_thread(self._past.runs_diff, first, second, other=elsewhere)


class AsyncLedger(AsyncPast):
    """A ledger whose verbs are coroutines; an async context manager."""

    _past: Ledger

    def by(self, agent: str) -> AsyncLedger:
        """Return the same ledger, written to by another agent."""
        return AsyncLedger(self._past.by(agent))

    async def sync(self, other: Any, **given: Any) -> Any:
        """Exchange entries with another ledger, as `Ledger.sync` does; that one may be async too."""
        elsewhere: Any = other._past if isinstance(other, AsyncPast) else other
        return await asyncio.to_thread(self._past.sync, elsewhere, **given)

    @asynccontextmanager
    async def interpretation(self, source_id: str, **given: Any) -> AsyncIterator[AsyncReading]:
        """Record one reading of a source, as `Ledger.interpretation` does."""
        manager = self._past.interpretation(source_id, **given)
        reading = await asyncio.to_thread(manager.__enter__)
        try:
            yield AsyncReading(reading)
        except BaseException as error:
            # The manager records the error and raises it again: that one goes on to the caller.
            await asyncio.to_thread(manager.__exit__, type(error), error, error.__traceback__)
            raise
        await asyncio.to_thread(manager.__exit__, None, None, None)

    def run(self, query: str, **given: Any) -> AsyncRun:
        """Return a run to be recorded, as `Ledger.run` does: `async with ledger.run(…) as run`."""
        return AsyncRun(self._past.run(query, **given))

    def continue_run(self, run: str | None = None, **given: Any) -> AsyncRun:
        """Return a run that another process began, as `Ledger.continue_run` does; it is looked up on entering."""
        return AsyncRun(functools.partial(self._past.continue_run, run, **given))

    def recorded(self, query: str | None = None, **about: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Make every call of a function a run, as `Ledger.recorded` does."""
        return self._past.recorded(query, **about)

    async def resume(self, run: str, agent: Callable[..., Any], **given: Any) -> Resumed:
        """Carry on an interrupted run, as `Ledger.resume` does; an async function is given the run as it is here."""
        from woodrat.replay.resume import answer_with, invoke, resumed

        function = getattr(agent, "recorded_function", agent)
        if not inspect.iscoroutinefunction(function):
            return await asyncio.to_thread(self._past.resume, run, agent, **given)
        carried = await asyncio.to_thread(self._past._carry_on, run, **given)
        async with carried:
            result = await invoke(agent, AsyncRun(carried))
            answer_with(carried, result)
        return resumed(carried, result)

    async def replay(self, runs: Any, agent: Callable[..., Any], *, steps_max: int | None = None, **given: Any) -> Any:
        """Run an agent's function again on recorded runs, as `Ledger.replay` does; an async one is given async runs."""
        from woodrat.replay import verbs as replay_verbs

        is_async = inspect.iscoroutinefunction(getattr(agent, "recorded_function", agent))
        limit = replay_verbs.STEPS_MAX if steps_max is None else steps_max
        further = {"steps_max": limit, "presented": AsyncRun if is_async else None, **given}
        copied = getattr(self._past, "local_copy", None)  # behind a server: the agent's code runs here
        runs = replay_verbs.ids_of(runs)
        ledger = self._past if copied is None else await asyncio.to_thread(copied, runs)
        return await asyncio.to_thread(replay_verbs.replay, ledger, runs, agent, **further)

    async def follow_stale(self, *, after: Any = None) -> AsyncIterator[Stale]:
        """Yield decisions as writes make them stale, as `Ledger.follow_stale` does; the loop is free meanwhile."""
        from woodrat.explain.workers import POLL_SECONDS

        follower = await asyncio.to_thread(self._past.stale_follower, after)
        while True:
            for found in await asyncio.to_thread(lambda: list(follower.new())):
                yield found
            await asyncio.sleep(POLL_SECONDS)

    async def __aenter__(self) -> AsyncLedger:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._past.close)


class AsyncReading:
    """A source being read, whose verbs are coroutines."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.id, self.source, self.usage = reading.id, reading.source, reading.usage

    async def store(self, records: Any, **given: Any) -> Any:
        """Store records as `Reading.store` does."""
        return await asyncio.to_thread(self._reading.store, records, **given)


class AsyncReads:
    """Recorded reads of a run, whose verbs are coroutines."""

    def __init__(self, reads: RunPast) -> None:
        self._reads = reads

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._reads, name)
        return _coroutine(found) if callable(found) else found


class AsyncRun(AsyncReads):
    """A run whose verbs are coroutines; an async context manager.

    What touches no log is called as it is: `input`, `answer`, `environment`, `executor`, `current`. The current run is
    the same for `woodrat.decide` and tools, which record at once wherever they are called; `await run.decide(…)` leaves
    the loop free meanwhile.
    """

    def __init__(self, run: Run | Callable[[], Run]) -> None:
        self._opening = None if isinstance(run, Run) else run
        if isinstance(run, Run):
            super().__init__(run)
            self._run = run

    def __getattr__(self, name: str) -> Any:
        if name in ("_run", "_reads"):
            raise AttributeError("the run has not been entered yet")
        found = getattr(self._run, name)
        return _coroutine(found) if callable(found) and name not in _AT_ONCE else found

    def tool(self, name: str, function: Callable[..., Any] | None = None, /, *arguments: Any, **given: Any) -> Any:
        """Call a tool as `Run.tool` does: await it with a function, else use it as `async with`."""
        if function is None or inspect.iscoroutinefunction(recipe_of(function).function):
            return self._run.tool(name, function, *arguments, **given)
        return asyncio.to_thread(self._run.tool, name, function, *arguments, **given)

    def model(self, model: str, function: Callable[[], Any] | None = None, /, **given: Any) -> Any:
        """Call a model as `Run.model` does: await it with a function or a response, else use it as `async with`."""
        if function is None and given.get("response") is None:
            return self._run.model(model, **given)
        return self._called(model, function, given)

    async def _called(self, model: str, function: Callable[[], Any] | None, given: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(function):
            return await self._run.model(model, function, **given)
        found = await asyncio.to_thread(self._run.model, model, function, **given)
        return await found if inspect.isawaitable(found) else found

    async def __aenter__(self) -> AsyncRun:
        if self._opening is not None:
            self._run = await asyncio.to_thread(self._opening)
            self._reads, self._opening = self._run, None
        await self._run.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._run.__aexit__(kind, error, trace)


_AT_ONCE = frozenset({"input", "answer", "environment", "executor", "current", "interpretation"})
"""What a run does without touching the log, or hands on as a block."""


def _coroutine(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    async def verb(*arguments: Any, **given: Any) -> Any:
        found = await asyncio.to_thread(call, *arguments, **given)
        if isinstance(found, RunPast):
            return AsyncReads(found)
        # A moment of a ledger behind a server is no `Past`, and has its verbs.
        return AsyncPast(found) if isinstance(found, Past) or call.__name__ == "at" else found

    return verb


async def aopen(*arguments: Any, **given: Any) -> AsyncLedger:
    """Open a ledger as `woodrat.open` does; its verbs are coroutines."""
    return AsyncLedger(await asyncio.to_thread(open_ledger, *arguments, **given))
