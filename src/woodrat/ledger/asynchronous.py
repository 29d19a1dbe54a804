"""The same verbs as coroutines. The ledger itself is synchronous: each call runs in a worker thread."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

from woodrat.ledger.ledger import Ledger, Reading
from woodrat.ledger.opening import open_ledger
from woodrat.ledger.past import Past


class AsyncPast:
    """A ledger, or a moment of one, whose verbs are coroutines."""

    def __init__(self, past: Past) -> None:
        self._past = past

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._past, name)
        return _coroutine(found) if callable(found) else found


class AsyncLedger(AsyncPast):
    """A ledger whose verbs are coroutines; an async context manager."""

    _past: Ledger

    def by(self, agent: str) -> AsyncLedger:
        """Return the same ledger, written to by another agent."""
        return AsyncLedger(self._past.by(agent))

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


def _coroutine(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    async def verb(*arguments: Any, **given: Any) -> Any:
        found = await asyncio.to_thread(call, *arguments, **given)
        return AsyncPast(found) if isinstance(found, Past) else found

    return verb


async def aopen(*arguments: Any, **given: Any) -> AsyncLedger:
    """Open a ledger as `woodrat.open` does; its verbs are coroutines."""
    return AsyncLedger(await asyncio.to_thread(open_ledger, *arguments, **given))
