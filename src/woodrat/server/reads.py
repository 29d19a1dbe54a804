"""Reads: executing a read: queued, within its time limit, in a thread or in a separate process.

A read that exceeds its time limit, or whose caller has gone, is cancelled.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from woodrat.server import heavy_reads
from woodrat.server.problems import Rejected, closed
from woodrat.server.readers import Switching

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from woodrat.api.ledger import Ledger
    from woodrat.ledger.progress import Progress
    from woodrat.server.access import Caller
    from woodrat.server.heavy_reads import Job
    from woodrat.server.indexing import Indexing
    from woodrat.server.rates import Turns
    from woodrat.server.readers import Readers
    from woodrat.server.tenants import Tenants
    from woodrat.server.workers import Workers

SWITCH_SECONDS: Final = 0.0001
"""Thread switch interval while a thread reads."""


class ReadExecutor:
    """Executes reads; from one event loop."""

    def __init__(
        self,
        tenants: Tenants,
        threads: Mapping[str, Readers],
        turns: Mapping[str, Turns],
        indexing: Indexing,
        workers: Workers | None,
        closing: asyncio.Event,
        read_seconds: float,
    ) -> None:
        self._tenants, self._threads, self._turns, self._indexing = tenants, threads, turns, indexing
        self._closing, self._read_seconds = closing, read_seconds
        self.workers = workers
        """Processes for heavy reads; without them, threads run these."""
        self._switching = Switching(SWITCH_SECONDS)
        self._awaited: set[asyncio.Future[Any]] = set()
        """Reads in progress with waiting callers."""

    async def read(self, caller: Caller, call: Callable[[], Any], job: Job | None = None) -> Any:
        """Execute a read; a heavy `job` is executed in another process instead."""
        try:
            async with asyncio.timeout(self._read_seconds):
                ledger = self._tenants.ledger(caller)
                if job is not None and job.verb == heavy_reads.RECALL:
                    self._indexing.recalled.add(ledger.tenant)
                    return await self._read_in_thread("recalls", caller, call)
                if job is None or not await self._is_heavy(job, ledger):
                    return await self._read_in_thread("reads", caller, call)
                async with self.reading(caller, call, job) as work:
                    return await work
        except asyncio.CancelledError:
            if self._closing.is_set():
                raise closed() from None
            raise
        except TimeoutError:
            text = (
                f"The answer took more than {self._read_seconds:g} seconds and was cancelled. Nothing was "
                "changed. Ask for less, such as one entity, one type or a page."
            )
            raise Rejected(503, text, code="unavailable") from None

    async def _read_in_thread(self, kind: str, caller: Caller, call: Callable[[], Any]) -> Any:
        """Read in a thread of one kind, once it is the caller's turn."""
        async with self._turns[kind].turn(caller) as place:
            place.work = self._threads[kind].submit(call)
            work = asyncio.wrap_future(place.work)
            with self._switching, self._awaiting(work):
                return await work

    @asynccontextmanager
    async def reading(
        self, caller: Caller, call: Callable[[], Any], job: Job, tell: Progress | None = None
    ) -> AsyncIterator[asyncio.Future[Any]]:
        """Queue a heavy read, and return a future; a caller who leaves cancels it. It has no time limit.

        Its place is free once it is done, even if the caller has gone. `tell` gets the progress, from another
        thread, if the job reports it.
        """
        async with self._turns["heavy_reads"].turn(caller) as place:
            workers, threads = self.workers, self._threads["heavy"]
            place.work = work = threads.submit(call) if workers is None else threads.submit(workers.ask, job, tell)
            with self._awaiting(asyncio.wrap_future(work)) as reading:
                reading.add_done_callback(lambda _: place.give_back())
                yield reading

    async def look_up(self, call: Callable[[], Any]) -> Any:
        """Run a short look-up in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads["lookups"], call)

    def give_up(self) -> None:
        """Cancel the reads in progress: the server stops."""
        for reading in tuple(self._awaited):
            reading.cancel()

    async def _is_heavy(self, job: Job, ledger: Ledger) -> bool:
        if heavy_reads.is_heavy(job.verb, job.given):
            return True
        return bool(await self.look_up(lambda: ledger.position) >= heavy_reads.LONG_LOG_ENTRIES)

    @contextmanager
    def _awaiting(self, reading: asyncio.Future[Any]) -> Iterator[asyncio.Future[Any]]:
        self._awaited.add(reading)
        try:
            yield reading
        finally:
            self._awaited.discard(reading)
            reading.cancel()
