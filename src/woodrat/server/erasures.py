"""Pending erasures: a server completes erasures that readers delayed, and compacts its file in a configured window.

Erased data is gone from every answer already. The rest of an erasure is to truncate the write-ahead log and to search
the files; if the search finds erased bytes, the file is compacted while writers wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from woodrat.errors import Fault, Refused, WoodratError, shown
from woodrat.server import logs
from woodrat.server.access import OWN_TENANTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.api.ledger import Ledger
    from woodrat.clock import Clock
    from woodrat.engines.engine import Engine

PAUSE_SECONDS: Final = 60.0
"""Interval between two checks for pending erasures."""
_WINDOW: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)


class Window(NamedTuple):
    """A time of day at which writers may wait for a compaction, in minutes of UTC; it may go past midnight."""

    first: int
    last: int
    """The minute before which a compaction begins."""

    def holds(self, now: str) -> bool:
        """Return True if a moment, as the clock spells it, is inside."""
        minute = int(now[11:13]) * 60 + int(now[14:16])
        if self.first < self.last:
            return self.first <= minute < self.last
        return minute >= self.first or minute < self.last


def window(text: str) -> Window:
    """Return a window given as HH:MM-HH:MM."""
    found = _WINDOW.fullmatch(text)
    if found is None:
        remedy = "Use HH:MM-HH:MM in UTC, such as 02:00-04:00."
        raise Refused([Fault("--compact-window", f"got {shown(text)}", remedy)], "The server was not started.")
    hours = [int(number) for number in found.groups()]
    return Window(hours[0] * 60 + hours[1], hours[2] * 60 + hours[3])


class PendingErasures:
    """Finishes the pending erasures of all tenants; from one event loop."""

    def __init__(
        self,
        engine: Engine,
        ledger_of: Callable[[str], Ledger],
        clock: Clock,
        compact_window: Window | None,
        closing: asyncio.Event,
    ) -> None:
        self._engine, self._ledger_of, self._clock, self._closing = engine, ledger_of, clock, closing
        self._window = compact_window
        self._found: set[str] = set()
        """Tenants whose search found erased bytes: only a compaction helps."""

    async def tend(self) -> None:
        """Look for pending erasures at a fixed interval until the server stops."""
        while self._engine.compacts and not self._closing.is_set():
            await asyncio.to_thread(self.finish)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), PAUSE_SECONDS)

    def finish(self) -> None:
        """Complete the erasures that can be completed now."""
        compacts = self._window is not None and self._window.holds(self._clock.now())
        try:
            for tenant in self._engine.tenants():
                if not tenant.startswith(OWN_TENANTS) and not self._closing.is_set():
                    self._finish(tenant, compacts=compacts)
        except WoodratError as error:  # it is tried again soon
            logs.failed(error)

    def _finish(self, tenant: str, *, compacts: bool) -> None:
        from woodrat.erasure.verbs import byte_scan, pending_search

        context = self._ledger_of(tenant).context
        with self._engine.view(context.tenant) as view:
            if not pending_search.is_pending(view):
                self._found.discard(tenant)
                return
        if tenant in self._found and not compacts:
            return
        finished = byte_scan.finish(context, compact="if_found" if compacts else "never")
        if finished.hits:
            self._found.add(tenant)
        seconds = None if finished.compaction is None else finished.compaction.seconds
        logs.event("erasure", tenant=tenant, complete=finished.complete, compacted_seconds=seconds)
