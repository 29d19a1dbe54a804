"""Indexing: what trails the logs of a server, brought up to date while nobody writes, and how far it is.

A log that was just written to is left alone for a moment, unless its indexes lack very much: a search brings its own
index on, and what it would otherwise find undone is done by then. Of several servers on one database, one does it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, cast

from woodrat.errors import WoodratError
from woodrat.ledger import growth, indexer
from woodrat.server import logs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor

    from woodrat.api.ledger import Ledger
    from woodrat.engines.port import Engine, Shared, View

QUIET_SECONDS: Final = 0.5
"""How often it is looked whether anything was written; a log is quiet that was not written to in between."""
LACKING_MAX: Final = 20_000
"""What lacks more entries goes on even though somebody writes."""
DUTY: Final = "indexing"
"""What one of several servers does."""
OWN: Final = "woodrat."
"""What the names of the server's own tenants begin with; nobody searches them."""


def has_duty(engine: Engine, name: str) -> bool:
    """Return whether a duty that one server has at a time is this process's; where there is only one, it always is."""
    return cast("Shared", engine).has_duty(name) if hasattr(engine, "has_duty") else True


class Indexing:
    """Brings the indexes of all tenants up to date; from one event loop."""

    def __init__(
        self, engine: Engine, open_ledger: Callable[[str], Ledger], thread: Executor, closing: asyncio.Event
    ) -> None:
        self._engine, self._open, self._thread, self._closing = engine, open_ledger, thread, closing
        self._ledgers: dict[str, Ledger] = {}
        self._heads: dict[str, int] = {}
        self._found: dict[str, tuple[indexer.IndexPosition, ...]] = {}
        self._due: set[str] = set()
        self._waits = False
        """Whether a log was left alone because somebody writes to it."""

    @property
    def lacking(self) -> Mapping[str, int]:
        """How many entries each index lacks, over all tenants, as of the last look."""
        lacking: dict[str, int] = {}
        for found in list(self._found.values()):
            for one in found:
                lacking[one.name] = lacking.get(one.name, 0) + one.lacking
        return lacking

    async def tend(self) -> None:
        """Look for what is to be done, time and again, until the server ends."""
        loop = asyncio.get_running_loop()
        seen: object = self  # nothing was looked at yet
        while not self._closing.is_set():
            if not has_duty(self._engine, DUTY):
                seen, self._found, self._due = self, {}, set()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), QUIET_SECONDS)
                continue
            stamp = growth.heard(self._engine)
            if stamp is None or stamp != seen or self._due or self._waits:
                seen = stamp
                await loop.run_in_executor(self._thread, self._go_on)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), 0.01 if self._due else QUIET_SECONDS)

    def _go_on(self) -> None:
        """Take a step in every log that is quiet, or far behind."""
        try:
            due: set[str] = set()
            self._waits = False
            for tenant in self._engine.tenants():
                if not tenant.startswith(OWN) and not self._closing.is_set():
                    self._tenant(tenant, due)
            self._due = due
        except WoodratError as error:  # it is tried again soon
            self._due = set()
            logs.failed(error)

    def _is_done(self, tenant: str, view: View) -> bool:
        """Return whether nothing lacks anything, nor did anybody forget what was there, as a rebuild does."""
        from woodrat.api.trailing_indexes import TRAILING

        found = self._found[tenant]
        context = self._ledgers[tenant].context
        wanted = {index.name for index in TRAILING if index.is_wanted(context)}
        is_behind = any(one.lacking for one in found if one.name in wanted)
        return not is_behind and TRAILING[0].position(view) == found[0].position

    def _tenant(self, tenant: str, due: set[str]) -> None:
        """Take a step in one log, if it is quiet or far behind."""
        from woodrat.api.trailing_indexes import TRAILING

        ledger = self._ledgers.get(tenant)
        if ledger is None:
            ledger = self._ledgers[tenant] = self._open(tenant)
        context = ledger.context
        with self._engine.view(context.tenant) as view:
            head = view.head().position
            is_quiet = self._heads.get(tenant) == head
            if is_quiet and self._is_done(tenant, view):
                return
            self._heads[tenant] = head
            found = self._found[tenant] = indexer.positions(view, TRAILING)
        wanted = [index for index in TRAILING if index.is_wanted(context)]
        names = {index.name for index in wanted}
        most = max(one.lacking for one in found if one.name in names)
        if most and (is_quiet or most > LACKING_MAX):
            if indexer.go_on(context, wanted):
                due.add(tenant)
            with self._engine.view(context.tenant) as view:
                self._found[tenant] = indexer.positions(view, TRAILING)
        elif most:
            self._waits = True
