"""Writes: executing writes by the one committer, with a bounded queue.

Writes that wait at the same time share a durable transaction. Long writes block all others, so they run one after the
other, and one key gets a limited share of the time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon.ids import TenantId
from woodrat.errors import Forbidden, NotFound, Refused
from woodrat.server import access, heavy_reads
from woodrat.server.body import JsonLines
from woodrat.server.problems import Rejected
from woodrat.server.rates import Pace, count_down
from woodrat.server.reply import Reply, reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from woodrat.api.ledger import Ledger
    from woodrat.ledger.committer import Committer
    from woodrat.runs.relay import Relay
    from woodrat.server.access import Caller
    from woodrat.server.limits import Limits
    from woodrat.server.rates import Turns
    from woodrat.server.readers import Readers
    from woodrat.server.route import Route

PACED_RECORDS: Final = 500
"""Number of records from which a write is long."""
LONG_RECORDS: Final = 20
"""Number of records from which a report is serialised in a thread."""
SHARE: Final = 0.5
"""Share of the time that one key may use for long writes."""
BURST_SECONDS: Final = 0.5
"""Burst before that share applies."""


class WriteExecutor:
    """Executes writes; from one event loop."""

    def __init__(
        self,
        committer: Committer,
        relay: Relay,
        limits: Limits,
        threads: Mapping[str, Readers],
        turns: Mapping[str, Turns],
    ) -> None:
        self._committer, self._relay, self._limits = committer, relay, limits
        self._threads, self._turns = threads, turns
        self._pace = Pace(SHARE, BURST_SECONDS)
        self._waiting: Counter[tuple[str, str | None]] = Counter()
        """Queue length by tenant and key; the whole tenant's under no key."""
        self.open = 0
        """Queue length of all keys."""

    async def write(self, caller: Caller, call: Callable[[], Any]) -> Any:
        """Execute a write; it is durable before this returns."""
        self._begin(caller)
        try:
            return await self._committer.carry_out(call, tenant=TenantId(caller.tenant))
        finally:
            self._end(caller)

    async def carry_out(self, caller: Caller, ledger: Ledger, route: Route, given: dict[str, Any], body: Any) -> Reply:
        """Execute a call of a route that writes."""
        records = given.get("records")
        count = len(records) if isinstance(records, list) else 1
        self._begin(caller)
        try:
            if route.verb in heavy_reads.WRITES:
                async with self._turns["heavy_writes"].turn(caller):
                    answer = await self._commit(ledger, route, given, body)
            elif count >= PACED_RECORDS:
                answer = await self._commit_in_pace(caller, ledger, route, given, body)
            else:
                answer = await self._commit(ledger, route, given, body)
        finally:
            self._end(caller)
        answer = access.told(caller, given, answer)
        if count > LONG_RECORDS:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads["bodies"], reply, route, ledger, answer)
        return reply(route, ledger, answer)

    async def _commit_in_pace(
        self, caller: Caller, ledger: Ledger, route: Route, given: dict[str, Any], body: Any
    ) -> Any:
        """Commit a long write, which blocks all others; one at a time for a key, within its share of time."""
        loop, key = asyncio.get_running_loop(), caller.key
        async with self._turns["long_writes"].turn(caller):
            await self._pace.wait(key)
            began = loop.time()
            try:
                return await self._commit(ledger, route, given, body)
            finally:
                self._pace.charge(key, loop.time() - began)

    async def _commit(self, ledger: Ledger, route: Route, given: dict[str, Any], body: Any) -> Any:
        if route.relays:
            return await self._commit_step(ledger, route, given)
        try:
            return await self._committer.carry_out(
                lambda: route.answer(ledger, **given), alone=route.alone, tenant=ledger.tenant
            )
        except Refused as refusal:
            raise body.refused(refusal) if type(body) is JsonLines else refusal from None

    async def _commit_step(self, ledger: Ledger, route: Route, given: dict[str, Any]) -> Any:
        """Record a step of a run; a run that could not be recorded whole is dropped from memory, because the log has
        its state."""
        relay = self._relay
        try:
            return await self._committer.carry_out(
                lambda: route.answer(ledger, relay, **given), alone=route.alone, tenant=ledger.tenant
            )
        except (Refused, Forbidden, NotFound):
            raise
        except Exception:
            if "run" in given:
                self._committer.submit(lambda: relay.forget(ledger.tenant, given["run"]))
            raise

    def _begin(self, caller: Caller) -> None:
        """Count a waiting write; refuse it beyond the limit of its key, its tenant or all."""
        limits, waiting = self._limits, self._waiting
        key_max, all_max = limits.writes_waiting_per_key, limits.writes_waiting_max
        if waiting[caller.tenant, caller.key] >= key_max:
            raise _too_many(429, f"{key_max} writes of this key wait")
        if waiting[caller.tenant, None] >= (tenant_max := max(key_max, all_max - key_max)):
            raise _too_many(429, f"{tenant_max} writes of this tenant wait")
        if self.open >= all_max:
            raise _too_many(503, f"{all_max} writes wait")
        for key in (caller.key, None):
            waiting[caller.tenant, key] += 1
        self.open += 1

    def _end(self, caller: Caller) -> None:
        """Uncount a queued write."""
        self.open -= 1
        for key in (caller.key, None):
            count_down(self._waiting, (caller.tenant, key))


def _too_many(status: int, many: str) -> Rejected:
    """Return the error if too many writes wait for their commit."""
    text = f"{many} to be committed, which is the limit. Nothing was written. Send the same call again in a second."
    return Rejected(status, text, ((b"retry-after", b"1"),), code="unavailable")
