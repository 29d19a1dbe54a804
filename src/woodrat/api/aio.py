"""The library for async code: the same verbs, as typed coroutines.

The ledger itself is synchronous: each call runs in a worker thread, so no code is written twice. A verb is listed here
by name; it has the parameters and the result of the synchronous method with that name (`coroutine.py`).
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from woodrat.api.aio_run import AsyncReading, AsyncRun
from woodrat.api.coroutine import coroutine
from woodrat.api.interpretations import Interpretations, PastInterpretations
from woodrat.api.ledger import Ledger
from woodrat.api.log import Log, PastLog
from woodrat.api.open import open_ledger
from woodrat.api.past import Past
from woodrat.api.proofs import Proofs
from woodrat.api.runs import PastRuns, Runs
from woodrat.api.schemas import PastSchemas, Schemas
from woodrat.api.sources import PastSources, Sources
from woodrat.api.training import Training

if TYPE_CHECKING:
    from woodrat.canon.moment_words import Time
    from woodrat.compare.divergence import Divergence
    from woodrat.exchange.verbs.sync import Synced
    from woodrat.explain.stale import Stale
    from woodrat.explain.workers.subscription import Subscription
    from woodrat.ledger.moments import Moment
    from woodrat.replay.result import Replayed
    from woodrat.runs.recorder.fork import Forked
    from woodrat.runs.recorder.resume import Resumed
    from woodrat.runs.recorder.run import Run

P = ParamSpec("P")
T = TypeVar("T")
N = TypeVar("N")


class AsyncNamespace(Generic[N]):
    """A namespace of a ledger; its verbs are coroutines."""

    def __init__(self, target: N) -> None:
        self.target = target
        """The synchronous namespace behind this one."""


class AsyncPastRuns(AsyncNamespace[PastRuns]):
    """Runs at one moment; the verbs are coroutines."""

    list = coroutine(PastRuns.list)
    show = coroutine(PastRuns.show)
    steps = coroutine(PastRuns.steps)
    group = coroutine(PastRuns.group)

    async def diff(
        self,
        first: Any,
        second: Any,
        *,
        skip: int | None = None,
        limit: int | None = None,
        differing: bool = False,
        other: AsyncPast | Past | None = None,
    ) -> Divergence:
        """Show where two runs first differ, as `PastRuns.diff` does; the other ledger may be an async one."""
        elsewhere = other.target if isinstance(other, AsyncPast) else other
        return await asyncio.to_thread(
            self.target.diff, first, second, skip=skip, limit=limit, differing=differing, other=elsewhere
        )


def presented(run: Run) -> AsyncRun:
    """Return a run as async code has it, with an async ledger; for functions that replay or resume it."""
    found = AsyncRun(run)
    if run.ledger is not None:
        found.ledger = AsyncLedger(run.ledger)
    return found


class AsyncRuns(AsyncPastRuns):
    """Runs; the verbs are coroutines."""

    target: Runs

    judge = coroutine(Runs.judge)
    evaluate = coroutine(Runs.evaluate)
    import_ = coroutine(Runs.import_)

    def continue_(self, run: str | None = None, *, ends: bool = False, on_error: str = "note") -> AsyncRun:
        """Continue a run that another process started, as `Runs.continue_` does; entering the block looks it up."""
        return AsyncRun(functools.partial(self.target.continue_, run, ends=ends, on_error=on_error))

    async def resume(self, run: str, agent: Callable[..., Any], **given: Any) -> Resumed:
        """Resume an interrupted run, as `Runs.resume` does; an async function gets this asynchronous run."""
        from woodrat.runs.recorder.resume import answer_with, resumed

        function = getattr(agent, "recorded_function", agent)
        if not inspect.iscoroutinefunction(function):
            return await asyncio.to_thread(self.target.resume, run, agent, **given)
        carried, call = await asyncio.to_thread(self.target.carry_on, run, agent, presented=presented, **given)
        async with carried:
            result = await call()
            answer_with(carried, result)
        return resumed(carried, result)

    async def fork(self, run: str, with_: Callable[..., Any], **given: Any) -> Forked:
        """Fork a run, as `Runs.fork` does; an async function gets this asynchronous run."""
        from woodrat.runs.recorder.agent_function import agent_call
        from woodrat.runs.recorder.fork import ForkStopped, ended, standing_in, went_on
        from woodrat.runs.recorder.resume import answer_with

        if not inspect.iscoroutinefunction(getattr(with_, "recorded_function", with_)):
            return await asyncio.to_thread(self.target.fork, run, with_, **given)
        made = await asyncio.to_thread(self.target.forked, run, **given)
        call = agent_call(with_, made, presented)
        async with AsyncExitStack() as stack:
            if call.begins_run:
                stack.enter_context(standing_in(made))
            else:
                await stack.enter_async_context(made)
            try:
                result = await call()
                answer_with(went_on(made), result)
            except (ForkStopped, Exception) as problem:
                if made.is_aside and made.successor is None:
                    raise
                return await asyncio.to_thread(ended, went_on(made), None, problem)
            return await asyncio.to_thread(ended, went_on(made), result)

    async def replay(self, runs: Any, agent: Callable[..., Any], **given: Any) -> Replayed:
        """Run an agent's function again on recorded runs, as `Runs.replay` does; an async one is given async runs."""
        if inspect.iscoroutinefunction(getattr(agent, "recorded_function", agent)):
            given["presented"] = presented
        return await asyncio.to_thread(self.target.replay, runs, agent, **given)


class AsyncPastSchemas(AsyncNamespace[PastSchemas]):
    """Schemas at one moment; the verbs are coroutines."""

    list = coroutine(PastSchemas.list)
    show = coroutine(PastSchemas.show)
    infer = coroutine(PastSchemas.infer)


class AsyncSchemas(AsyncPastSchemas):
    """Schemas; the verbs are coroutines."""

    target: Schemas

    register = coroutine(Schemas.register)
    check = coroutine(Schemas.check)
    add_pack = coroutine(Schemas.add_pack)


class AsyncPastSources(AsyncNamespace[PastSources]):
    """Sources at one moment; the verbs are coroutines."""

    list = coroutine(PastSources.list)
    show = coroutine(PastSources.show)
    content = coroutine(PastSources.content)


class AsyncSources(AsyncPastSources):
    """Sources; the verbs are coroutines."""

    target: Sources

    add = coroutine(Sources.add)


class AsyncPastInterpretations(AsyncNamespace[PastInterpretations]):
    """Interpretations at one moment; the verbs are coroutines."""

    list = coroutine(PastInterpretations.list)
    show = coroutine(PastInterpretations.show)
    diff = coroutine(PastInterpretations.diff)


class AsyncInterpretations(AsyncPastInterpretations):
    """Interpretations; the verbs are coroutines."""

    target: Interpretations

    @asynccontextmanager
    async def start(self, source: str, **given: Any) -> AsyncIterator[AsyncReading]:
        """Start an interpretation of a source, as `Interpretations.start` does."""
        manager = self.target.start(source, **given)
        reading = await asyncio.to_thread(manager.__enter__)
        try:
            yield AsyncReading(reading)
        except BaseException as error:
            # The manager records the error and raises it again; the caller gets the original.
            await asyncio.to_thread(manager.__exit__, type(error), error, error.__traceback__)
            raise
        await asyncio.to_thread(manager.__exit__, None, None, None)


class AsyncPastLog(AsyncNamespace[PastLog]):
    """The log at one moment; the verbs are coroutines."""

    entries = coroutine(PastLog.entries)


class AsyncLog(AsyncPastLog):
    """The log; the verbs are coroutines."""

    target: Log

    export = coroutine(Log.export)
    import_ = coroutine(Log.import_)
    backup = coroutine(Log.backup)

    async def sync(self, other: Any, **given: Any) -> Synced:
        """Exchange entries with another ledger, as `Log.sync` does; the other ledger may be async too."""
        elsewhere: Any = other.target if isinstance(other, AsyncPast) else other
        return await asyncio.to_thread(self.target.sync, elsewhere, **given)


class AsyncTraining(AsyncNamespace[Training]):
    """Recorded runs as training data; the verbs are coroutines."""

    export = coroutine(Training.export)


class AsyncProofs(AsyncNamespace[Proofs]):
    """Proofs; the verbs are coroutines."""

    checkpoint = coroutine(Proofs.checkpoint)
    checkpoints = coroutine(Proofs.checkpoints)
    prove = coroutine(Proofs.prove)
    prove_consistency = coroutine(Proofs.prove_consistency)
    capsule = coroutine(Proofs.capsule)


class AsyncPast:
    """A moment of a ledger; the verbs are coroutines."""

    def __init__(self, target: Past) -> None:
        self.target = target
        """The synchronous ledger behind this one."""

    def __repr__(self) -> str:
        return f"<async {repr(self.target).removeprefix('<')}"

    @property
    def tenant(self) -> str:
        """The tenant."""
        return self.target.tenant

    @property
    def position(self) -> int:
        """The log position reads are answered at; a short look at the database, made at once."""
        return self.target.position

    async def at(self, moment: Moment | None = None, *, valid_at: Time | None = None) -> AsyncPast:
        """Return the ledger at another moment, as `Past.at` does."""
        return AsyncPast(await asyncio.to_thread(self.target.at, moment, valid_at=valid_at))

    show = coroutine(Past.show)
    elements = coroutine(Past.elements)
    search = coroutine(Past.search)
    query = coroutine(Past.query)
    duplicates = coroutine(Past.duplicates)
    observations = coroutine(Past.observations)
    history = coroutine(Past.history)
    timeline = coroutine(Past.timeline)
    blame = coroutine(Past.blame)
    conflicts = coroutine(Past.conflicts)
    diff = coroutine(Past.diff)
    diff_against = coroutine(Past.diff_against)
    values = coroutine(Past.values)
    related = coroutine(Past.related)
    ids = coroutine(Past.ids)
    fingerprint = coroutine(Past.fingerprint)
    why = coroutine(Past.why)
    recall = coroutine(Past.recall)
    lineage = coroutine(Past.lineage)
    impact = coroutine(Past.impact)
    stale = coroutine(Past.stale)
    bisect = coroutine(Past.bisect)
    reduce = coroutine(Past.reduce)
    sql = coroutine(Past.sql)
    what_if = coroutine(Past.what_if)

    @property
    def runs(self) -> AsyncPastRuns:
        """Runs."""
        return AsyncPastRuns(self.target.runs)

    @property
    def schemas(self) -> AsyncPastSchemas:
        """Schemas."""
        return AsyncPastSchemas(self.target.schemas)

    @property
    def sources(self) -> AsyncPastSources:
        """Sources."""
        return AsyncPastSources(self.target.sources)

    @property
    def interpretations(self) -> AsyncPastInterpretations:
        """Interpretations."""
        return AsyncPastInterpretations(self.target.interpretations)

    @property
    def log(self) -> AsyncPastLog:
        """The log."""
        return AsyncPastLog(self.target.log)

    @property
    def training(self) -> AsyncTraining:
        """Recorded runs as training data."""
        return AsyncTraining(self.target.training)


class AsyncLedger(AsyncPast):
    """A ledger whose verbs are coroutines; an async context manager."""

    target: Ledger

    @property
    def agent(self) -> str:
        """Who writes."""
        return self.target.agent

    def as_agent(self, agent: str) -> AsyncLedger:
        """Return the same ledger with another agent as the writer."""
        return AsyncLedger(self.target.as_agent(agent))

    store = coroutine(Ledger.store)
    correct = coroutine(Ledger.correct)
    retract = coroutine(Ledger.retract)
    delete = coroutine(Ledger.delete)
    restore = coroutine(Ledger.restore)
    relate = coroutine(Ledger.relate)
    remember = coroutine(Ledger.remember)
    merge = coroutine(Ledger.merge)
    split = coroutine(Ledger.split)
    tag = coroutine(Ledger.tag)
    verify = coroutine(Ledger.verify)
    overview = coroutine(Ledger.overview)
    prove_order = coroutine(Ledger.prove_order)
    rebuild = coroutine(Ledger.rebuild)
    reindex = coroutine(Ledger.reindex)
    erase = coroutine(Ledger.erase)
    erase_again = coroutine(Ledger.erase_again)
    finish_erasure = coroutine(Ledger.finish_erasure)

    @property
    def runs(self) -> AsyncRuns:
        """Runs."""
        return AsyncRuns(self.target.runs)

    @property
    def schemas(self) -> AsyncSchemas:
        """Schemas."""
        return AsyncSchemas(self.target.schemas)

    @property
    def sources(self) -> AsyncSources:
        """Sources."""
        return AsyncSources(self.target.sources)

    @property
    def interpretations(self) -> AsyncInterpretations:
        """Interpretations."""
        return AsyncInterpretations(self.target.interpretations)

    @property
    def log(self) -> AsyncLog:
        """The log."""
        return AsyncLog(self.target.log)

    @property
    def proofs(self) -> AsyncProofs:
        """Proofs."""
        return AsyncProofs(self.target.proofs)

    def run(self, query: str, **given: Any) -> AsyncRun:
        """Return a run to be recorded, as `Ledger.run` does: `async with ledger.run(…) as run`."""
        return AsyncRun(self.target.run(query, **given))

    def recorded(self, query: str | None = None, **about: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Make every call of a function a run, as `Ledger.recorded` does."""
        return self.target.recorded(query, **about)

    def on_stale(self, callback: Callable[[tuple[Stale, ...]], object]) -> Subscription:
        """Have a function called with the decisions that a write makes stale, as `Ledger.on_stale` does."""
        return self.target.on_stale(callback)

    async def follow_stale(self, *, after: int | str | None = None) -> AsyncIterator[Stale]:
        """Yield decisions as writes make them stale, as `Ledger.follow_stale` does; the loop is free meanwhile."""
        follower = await asyncio.to_thread(self.target.stale_follower, after)
        while True:
            for found in await asyncio.to_thread(lambda: list(follower.new())):
                yield found
            await follower.wait_on_loop()

    async def close(self) -> None:
        """Close the ledger, as `Ledger.close` does."""
        await asyncio.to_thread(self.target.close)

    async def __aenter__(self) -> AsyncLedger:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _async(opened: Callable[P, Ledger]) -> Callable[P, Awaitable[AsyncLedger]]:
    async def aopen(*arguments: P.args, **named: P.kwargs) -> AsyncLedger:
        return AsyncLedger(await asyncio.to_thread(opened, *arguments, **named))

    aopen.__doc__ = "Open a ledger as `woodrat.open` does; its verbs are coroutines."
    return aopen


aopen = _async(open_ledger)
"""Opens a ledger as `woodrat.open` does; its verbs are coroutines."""
