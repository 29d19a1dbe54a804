"""Reads: how a read is carried out: in turn, within its time, in a thread or in a process of its own.

What takes longer than its time, or is for nobody any more, is stopped.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import WoodratError
from woodrat.server import heavy_reads, logs
from woodrat.server.problems import Rejected, closed
from woodrat.server.readers import Switching

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from woodrat.api.ledger import Ledger
    from woodrat.ledger.progress import Progress
    from woodrat.server.access import Caller
    from woodrat.server.heavy_reads import Job
    from woodrat.server.rates import Turns
    from woodrat.server.readers import Readers
    from woodrat.server.tenants import Tenants
    from woodrat.server.workers import Workers

SWITCH_SECONDS: Final = 0.0001
"""How long a thread keeps the interpreter from another while something is read in one of them."""


class Reads:
    """Carries out reads; from one event loop."""

    def __init__(
        self,
        tenants: Tenants,
        threads: Mapping[str, Readers],
        turns: Mapping[str, Turns],
        workers: Workers | None,
        closing: asyncio.Event,
        read_seconds: float,
    ) -> None:
        self._tenants, self._threads, self._turns = tenants, threads, turns
        self._closing, self._read_seconds = closing, read_seconds
        self.workers = workers
        """Processes that answer heavy reads; without them threads do."""
        self._switching = Switching(SWITCH_SECONDS)
        self._awaited: set[asyncio.Future[Any]] = set()
        """What is being read for somebody who waits."""
        self._catching_up: set[str] = set()
        """Tenants whose indexes are being brought up to date."""

    async def read(self, caller: Caller, call: Callable[[], Any], job: Job | None = None) -> Any:
        """Do something that reads; where the `job` is heavy, another process does that instead."""
        try:
            async with asyncio.timeout(self._read_seconds):
                ledger = self._tenants.ledger(caller)
                if job is None or not await self._is_heavy(job, ledger):
                    async with self._turns["reads"].turn(caller.key):
                        work = asyncio.wrap_future(self._threads["reads"].submit(call))
                        with self._switching, self._awaiting(work):
                            return await work
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

    @asynccontextmanager
    async def reading(
        self, caller: Caller, call: Callable[[], Any], job: Job, tell: Progress | None = None
    ) -> AsyncIterator[asyncio.Future[Any]]:
        """Begin a heavy read in its turn, and give its answer to come; whoever leaves stops it. It has no time limit.

        `tell` is told how far it is from another thread, if the job tells.
        """
        async with self._turns["heavy_reads"].turn(caller.key):
            workers, threads = self.workers, self._threads["heavy"]
            work = threads.submit(call) if workers is None else threads.submit(workers.ask, job, tell)
            if workers is not None and job.verb in heavy_reads.INDEXED:
                self._catch_up(self._tenants.ledger(caller))
            with self._awaiting(asyncio.wrap_future(work)) as reading:
                yield reading

    async def look_up(self, call: Callable[[], Any]) -> Any:
        """Look something small up, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads["lookups"], call)

    def give_up(self) -> None:
        """Cancel what is being read: the server ends."""
        for reading in tuple(self._awaited):
            reading.cancel()

    async def _is_heavy(self, job: Job, ledger: Ledger) -> bool:
        if job.verb in heavy_reads.ALWAYS:
            return True
        return bool(await self.look_up(lambda: heavy_reads.is_heavy(job.verb, job.given, ledger)))

    @contextmanager
    def _awaiting(self, reading: asyncio.Future[Any]) -> Iterator[asyncio.Future[Any]]:
        self._awaited.add(reading)
        try:
            yield reading
        finally:
            self._awaited.discard(reading)
            reading.cancel()

    def _catch_up(self, ledger: Ledger) -> None:
        """Have the indexes of a tenant brought up to date, unless that is being done."""
        if ledger.tenant in self._catching_up:
            return
        self._catching_up.add(ledger.tenant)

        def catch_up() -> None:
            try:
                heavy_reads.catch_up(ledger)
            except WoodratError as error:  # it is tried again with the next such question
                logs.failed(error)
            finally:
                self._catching_up.discard(ledger.tenant)

        self._threads["indexes"].submit(catch_up)
