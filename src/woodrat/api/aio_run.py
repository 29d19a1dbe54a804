"""Runs and interpretations for async code: their recording methods as coroutines."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from woodrat.runs.recorder import current
from woodrat.runs.recorder.reads import RunPast
from woodrat.runs.recorder.run import Run
from woodrat.runs.recorder.tools import recipe_of

if TYPE_CHECKING:
    from woodrat.ledger.sources import Reading


class AsyncReading:
    """An interpretation in progress; its verbs are coroutines."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.id, self.source, self.usage = reading.id, reading.source, reading.usage

    async def store(self, records: Any, **given: Any) -> Any:
        """Store records as `Reading.store` does."""
        return await asyncio.to_thread(self._reading.store, records, **given)


class AsyncReads:
    """Recorded reads of a run; the verbs are coroutines."""

    def __init__(self, reads: RunPast) -> None:
        self._reads = reads

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._reads, name)
        return _coroutine(found) if callable(found) else found


class AsyncRun(AsyncReads):
    """A run whose verbs are coroutines; an async context manager.

    Methods that touch no log are not coroutines: `input`, `answer`, `environment`, `thread`, `executor` and `current`.
    The current run is the same for `woodrat.decide` and tools, which record synchronously wherever they are called;
    `await run.decide(…)` does not block the event loop.
    """

    ledger: Any
    """The ledger that records it; reads and writes through this ledger directly are not part of the run."""

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
        return current.in_thread(self._run.tool, name, function, *arguments, **given)

    def model(self, model: str, function: Callable[[], Any] | None = None, /, **given: Any) -> Any:
        """Call a model as `Run.model` does: await it with a function or a response, else use it as `async with`."""
        if function is None and given.get("response") is None:
            return self._run.model(model, **given)
        return self._called(model, function, given)

    async def _called(self, model: str, function: Callable[[], Any] | None, given: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(function):
            return await self._run.model(model, function, **given)
        found = await current.in_thread(self._run.model, model, function, **given)
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


_AT_ONCE = frozenset({"input", "answer", "environment", "thread", "executor", "current", "interpretation"})
"""Methods of a run that do not touch the log, or that open a block."""


def _coroutine(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    async def verb(*arguments: Any, **given: Any) -> Any:
        found = await current.in_thread(call, *arguments, **given)
        return AsyncReads(found) if isinstance(found, RunPast) else found

    return verb
