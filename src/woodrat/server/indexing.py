"""Indexing: the thread that brings indexes up to date while nobody writes, and their lag.

A log with recent writes is left alone for a moment, unless its indexes lag far behind: a search brings its own index up
to date, and should find little left to do. Of several servers on one database, one does this.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from woodrat.errors import WoodratError
from woodrat.ledger import indexer
from woodrat.server import logs
from woodrat.server.access import OWN_TENANTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor

    from woodrat.api.ledger import Ledger
    from woodrat.engines.engine import Engine

QUIET_SECONDS: Final = 0.5
"""Polling interval for writes; a log without a write in between is idle."""
LACKING_MAX: Final = 20_000
"""Index lag beyond which indexing runs although a writer is active."""
STEP_PAUSE_SECONDS: Final = 0.01
"""Pause between two steps, for other work."""
DUTY: Final = "indexing"
"""Name of the duty that only one of several servers performs."""


class Indexing:
    """Brings the indexes of all tenants up to date; from one event loop."""

    def __init__(
        self, engine: Engine, ledger_of: Callable[[str], Ledger], thread: Executor, closing: asyncio.Event
    ) -> None:
        self._engine, self._ledger_of, self._thread, self._closing = engine, ledger_of, thread, closing
        self._heads: dict[str, int] = {}
        self._found: dict[str, tuple[indexer.IndexPosition, ...]] = {}
        self.recalled: set[str] = set()
        """Tenants with recent recalls: their index is in memory, so every server updates its own."""
        self._is_due = False
        """True if a step was taken and more work is left."""
        self._waits = False
        """True if a log was skipped because a writer is active."""

    @property
    def lacking(self) -> Mapping[str, int]:
        """Lag of each index in entries, over all tenants, at the last look."""
        lacking: dict[str, int] = {}
        for found in list(self._found.values()):
            for one in found:
                lacking[one.name] = lacking.get(one.name, 0) + one.lacking
        return lacking

    async def tend(self) -> None:
        """Look for index work at a fixed interval until the server stops."""
        loop = asyncio.get_running_loop()
        seen: object = self  # nothing was checked yet
        while not self._closing.is_set():
            on_duty = self._engine.has_duty(DUTY)
            stamp = self._engine.heard() if on_duty else self
            if not on_duty:
                self._found, self._waits = {}, False
            if stamp is None or stamp != seen or self._is_due or self._waits or self.recalled:
                seen = stamp
                await loop.run_in_executor(self._thread, self._go_on, on_duty)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), STEP_PAUSE_SECONDS if self._is_due else QUIET_SECONDS)

    def _go_on(self, on_duty: bool = True) -> None:
        """Take a step in the index of each recall, and, if on duty, in every log that is idle or far behind."""
        from woodrat.recall import index as recall_index

        self._is_due = self._waits = False
        try:
            for tenant in tuple(self.recalled):
                self.recalled.discard(tenant)  # before the step, so that a recall during the step counts
                if not self._closing.is_set() and recall_index.go_on(self._ledger_of(tenant).context):
                    self.recalled.add(tenant)
                    self._is_due = True
            for tenant in self._engine.tenants() if on_duty else ():
                if not tenant.startswith(OWN_TENANTS) and not self._closing.is_set():
                    self._tenant(tenant)
        except WoodratError as error:  # it is tried again soon
            logs.failed(error)

    def _tenant(self, tenant: str) -> None:
        """Take a step in one log, if it is idle or far behind."""
        from woodrat.api.trailing_indexes import TRAILING

        context = self._ledger_of(tenant).context
        with self._engine.view(context.tenant) as view:
            head = view.head().position
            found = self._found[tenant] = indexer.positions(view, TRAILING)
        is_quiet = self._heads.get(tenant) == head
        self._heads[tenant] = head
        wanted = {index.name: index for index in TRAILING if index.is_wanted(context)}
        most = max(one.lacking for one in found if one.name in wanted)
        if most and (is_quiet or most > LACKING_MAX):
            self._is_due |= indexer.go_on(context, tuple(wanted.values())) > 0
            with self._engine.view(context.tenant) as view:
                self._found[tenant] = indexer.positions(view, TRAILING)
        elif most:
            self._waits = True
