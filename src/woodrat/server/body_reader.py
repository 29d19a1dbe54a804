"""Body reader: reads request bodies within limits; long bodies queue and are parsed in a thread.

Unpacking, counting and parsing a long body holds the interpreter, so a key that sends many of them waits between them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import shown
from woodrat.server import body, requests
from woodrat.server.arguments import ABSENT
from woodrat.server.body import BodyLimits, HeldBytes
from woodrat.server.problems import NOTHING_DONE, Rejected
from woodrat.server.rates import Pace
from woodrat.server.readers import Switching

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from woodrat.server.access import Caller
    from woodrat.server.limits import Limits
    from woodrat.server.rates import Turns
    from woodrat.server.readers import Readers
    from woodrat.server.requests import Exchange
    from woodrat.server.route import Route

LONG_BYTES: Final = 65_536
"""Number of bytes from which a body is read in a thread."""
BYTE_SECONDS: Final = 1e-8
"""Estimated time to unpack and count one byte of a body."""
SHARE: Final = 0.2
"""Share of the time that one key may use for long bodies."""
BURST_SECONDS: Final = 0.5
"""Burst before that share applies."""
SWITCH_SECONDS: Final = 0.0001
"""Thread switch interval while a long body is read."""


RECORDINGS: Final = frozenset({"runs_import", "runs_diff", "runs_group"})
"""Verbs whose bodies may contain recordings of other tools."""


class BodyReader:
    """Reads bodies; from one event loop."""

    def __init__(self, limits: Limits, threads: Mapping[str, Readers], turns: Mapping[str, Turns]) -> None:
        self._limits, self._threads, self._turns = limits, threads, turns
        self._pace = Pace(SHARE, BURST_SECONDS)
        self._switching = Switching(SWITCH_SECONDS)
        self.held = HeldBytes(limits.bodies_bytes_max)
        """Memory reserved for the long bodies in progress."""

    def limits_of(self, writes: bool) -> BodyLimits:
        """Return the size limits of a body, for a writing or a reading call."""
        limits = self._limits
        if writes:
            return BodyLimits(limits.body_bytes_max, limits.values_max)
        return BodyLimits(
            min(limits.read_body_bytes_max, limits.body_bytes_max), min(limits.read_values_max, limits.values_max)
        )

    async def body_of(self, exchange: Exchange, route: Route, caller: Caller) -> Any:
        """Return the body of a call; JSON lines get their other arguments from the query string."""
        if route.method != "POST":
            return ABSENT
        kind, limits = exchange.content_type(), self.limits_of(route.writes)
        if kind == requests.LINES and route.verb == "store":
            return await self.take(exchange, caller, limits, body.lines, lines=True)
        if kind == requests.LINES and route.lines:
            return {"entries": await exchange.spooled(self._limits.import_bytes_max)}
        if kind != requests.JSON:
            taken = "application/json or application/x-ndjson" if route.lines else "application/json"
            got = shown(kind.decode("latin-1"))
            raise Rejected(415, f"content-type: got {got}. {NOTHING_DONE} Send {taken}.")
        parse = body.recordings if route.verb in RECORDINGS else body.document
        return await self.take(exchange, caller, limits, parse)

    async def take(
        self,
        exchange: Exchange,
        caller: Caller,
        limits: BodyLimits,
        parse: Callable[[bytes], Any],
        *,
        lines: bool = False,
    ) -> Any:
        """Return the value of a body; a long body queues and is parsed in a thread, within the key's share of time."""
        if not exchange.may_be_long:
            return parse(await exchange.body(limits, lines=lines))
        loop, key = asyncio.get_running_loop(), caller.key
        async with self._turns["bodies"].turn(caller):
            await self._pace.wait(key)
            try:
                data = await exchange.body(limits, lines=lines)
            finally:
                self._pace.charge(key, exchange.taken * BYTE_SECONDS)
            if len(data) <= LONG_BYTES:
                return parse(data)
            began = loop.time()
            try:
                with self._switching:
                    return await loop.run_in_executor(self._threads["bodies"], parse, data)
            finally:
                self._pace.charge(key, loop.time() - began)
