"""Streams: new entries of the log, and progress of long reads, over a connection that stays open.

Every entry comes in order and at least once. A follower that was cut off resumes after the last position it has: with
`after`, or with the `Last-Event-ID` that browsers send by themselves. A long read sends its progress, and then its
result.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import orjson

from woodrat.api.parameters import WAIT_SECONDS_MAX
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.exchange.lines import line
from woodrat.exchange.relay import peers
from woodrat.ledger.moments import NO_READ
from woodrat.server import log_routes, requests
from woodrat.server.problems import NOTHING_DONE, closed
from woodrat.server.readers import Full
from woodrat.server.reply import past_at

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.ledger.growth import Growth
    from woodrat.log.entry import Entry
    from woodrat.server.gateway import HttpGateway
    from woodrat.server.reply import Reply
    from woodrat.server.requests import Exchange

PART_BYTES: Final = 262_144
"""Approximate bytes of entries read at a time, and so held for a slow reader."""
ALLOWED_SECONDS: Final = 5.0
"""Interval at which the key of an idle follower is checked again."""
QUIET_SECONDS: Final = 15.0
"""Idle time after which a comment shows that the connection lives."""
STEP_SECONDS: Final = 0.25
"""Interval of progress events."""
FULL_SECONDS: Final = 0.2
"""Delay of a follower when too many read at once."""
STILL_HERE: Final = b": still here\n\n"
"""A comment in a stream of events."""
FILL: Final = b":" + b" " * 65_533 + b"\n\n"
"""A long comment. The system and the HTTP server buffer some megabytes for a reader who reads nothing, and progress
events would not fill them in hours. So while others wait for its place, comments do.
"""
FILL_BYTES: Final = 16 * 1_048_576
"""Bytes sent before it is clear that the client reads: several times the buffer."""
FILL_SECONDS: Final = 600.0
"""Lifetime of that result, before a new check."""
_ENDS: Final = ("limit", "as_of")
"""Arguments that end the reading of the log."""


class LogStreams:
    """Serves followers of a log, and callers that wait for new entries."""

    def __init__(self, gateway: HttpGateway, threads: Executor, growth: Growth, closing: asyncio.Event) -> None:
        self._reads, self._callers = gateway.reads, gateway.callers
        self._threads, self._growth, self._closing = threads, growth, closing

    async def answer(self, exchange: Exchange, ledger: Ledger, given: dict[str, Any]) -> None:
        """Answer with the log itself: to its present end as lines, or on and on as events."""
        log_routes.check_page(after := given.get("after", -1), limit := given.get("limit"))
        if exchange.accepts(requests.LINES):
            through = None
            if "as_of" in given:
                through = await self._reads.look_up(lambda: past_at(ledger, given["as_of"], None).position)
            await exchange.stream(requests.LINES, lines(ledger, self._threads, after, through, limit))
            return
        endless = [Fault(name, "a stream has no end", "Leave it out.") for name in _ENDS if name in given]
        if endless:
            raise Refused(endless, NO_READ)
        last = exchange.header(b"last-event-id")
        if last:  # some send it empty before the first event
            if not (last.isascii() and last.isdigit() and len(last) <= 16):
                raise Refused([Fault("Last-Event-ID", f"got {shown(last)}", "Send the position you had last.")])
            after = int(last)
        # A log that ends earlier is another log, such as an older copy: its follower would miss new entries.
        head = await self._reads.look_up(lambda: ledger.position)
        if after > head:
            text = (
                f"There is no position {after}; the log ends at {head}. {NOTHING_DONE} Follow from a position it has."
            )
            raise NotFound(text, details={"position": after, "head": head})

        def allowed() -> bool:
            return self._callers.is_known(exchange)

        entries = events(ledger, self._threads, after, self._closing, allowed, self._growth)
        await exchange.stream(requests.EVENTS, entries)

    async def wait(self, ledger: Ledger, given: dict[str, Any]) -> None:
        """Wait until the log has entries after a position, or the caller's time is over."""
        seconds = given.pop("wait", 0)
        if not 0 <= seconds <= WAIT_SECONDS_MAX:
            raise Refused([Fault("wait", f"got {seconds}", f"Send 0 to {WAIT_SECONDS_MAX}.")], NO_READ)
        after = given.setdefault("after", await self._reads.look_up(lambda: ledger.position))
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end and not self._closing.is_set():
            seen = self._growth.stamp()  # before the log is read, so that a newer entry ends the wait
            if await self._reads.look_up(lambda: ledger.position) != after:
                return
            await _grown(self._growth, seen, end - loop.time(), self._closing)


async def _grown(growth: Growth, seen: bytes | None, seconds: float, closing: asyncio.Event) -> None:
    """Wait until a log may have grown since its stamp was read, or the server closes; at most so many seconds."""
    waiting = [asyncio.ensure_future(wait) for wait in (growth.wait_on_loop(seen, seconds), closing.wait())]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


async def lines(
    past: Past, readers: Executor, after: int, through: int | None, limit: int | None = None
) -> AsyncGenerator[bytes, None]:
    """Yield the entries after a position, each as its line of an exported log."""
    loop = asyncio.get_running_loop()
    parts = peers.parts(past.context.engine, past.tenant, after, through, PART_BYTES)
    while part := await loop.run_in_executor(readers, next_lines, parts):
        found = part if limit is None else part[:limit]
        yield b"".join(found)
        if limit is not None and (limit := limit - len(found)) == 0:
            return


def next_lines(parts: Iterator[list[Entry]]) -> list[bytes]:
    """Return the lines of the next part; empty at the end."""
    return [line(entry) for entry in next(parts, ())]


async def events(
    past: Past,
    readers: Executor,
    after: int,
    closing: asyncio.Event,
    allowed: Callable[[], bool],
    growth: Growth,
) -> AsyncGenerator[bytes, None]:
    """Yield entries after a position as server-sent events, including future ones.

    It ends when the server closes, or the follower is no longer `allowed`: its key may be revoked meanwhile. Without
    `growth`, the log is not read.
    """
    loop = asyncio.get_running_loop()
    sent = loop.time()
    seen: bytes | None = None
    yield b"retry: 1000\n\n"
    while not closing.is_set() and allowed():
        now = growth.stamp()  # before the log is read, so that entries newer than the stamp are read next time
        seconds = ALLOWED_SECONDS
        try:
            page = await loop.run_in_executor(readers, _page, past, after) if now is None or now != seen else []
        except Full:  # too many followers look at once: this one looks again soon
            page, now, seconds = [], None, FULL_SECONDS
        if page:
            yield b"".join(b"id: %d\nevent: entry\ndata: %b\n\n" % item for item in page)
            after, sent = page[-1][0], loop.time()
            continue
        seen = now
        await _grown(growth, seen, seconds, closing)
        if loop.time() - sent >= QUIET_SECONDS:
            yield STILL_HERE
            sent = loop.time()


def _page(past: Past, after: int) -> list[tuple[int, bytes]]:
    entries = next(peers.parts(past.context.engine, past.tenant, after, None, PART_BYTES), ())
    return [(entry.position, orjson.dumps(log_routes.logged(past, entry).to_json())) for entry in entries]


class Steps:
    """The progress of a long read. The thread that reads says it, and the loop looks."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._reached: tuple[int, int] | None = None

    def tell(self, done: int, whole: int) -> None:
        """Add to the work done and to the total; repeated comparisons do not lower it."""
        reached = self._reached
        if reached is None or done > reached[0]:
            self._reached = (done, whole)

    def json(self) -> bytes:
        """Return the progress as JSON; empty before it is known."""
        if self._reached is None:
            return b""
        done, whole = self._reached
        return orjson.dumps({"done": done, "total": whole, "what": self._what})


async def progress(
    reading: asyncio.Future[Reply], steps: Steps, identify: Callable[[], object], is_wanted: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """Yield the progress of a long read as server-sent events, then its answer, or raise its error.

    It ends when the server closes, or when `identify` raises: a key may be revoked meanwhile. `is_wanted` says whether
    others wait for the place of this read: then its client has to keep reading.
    """
    loop = asyncio.get_running_loop()
    told, sent, asked = b"", loop.time(), loop.time()
    filled, fill_from = 0, 0.0
    while True:
        await asyncio.wait((reading,), timeout=STEP_SECONDS)
        done, now = reading.done(), loop.time()
        if (reached := steps.json()) != told:
            yield requests.event(b"progress", reached)
            told, sent = reached, now
        elif now - sent >= QUIET_SECONDS:
            yield STILL_HERE
            sent = now
        if not done and now >= fill_from and is_wanted():
            yield FILL
            filled += len(FILL)
            if filled >= FILL_BYTES:
                filled, fill_from = 0, now + FILL_SECONDS
        if done or now - asked >= ALLOWED_SECONDS:
            identify()
            asked = now
        if done:
            if reading.cancelled():
                raise closed()
            yield requests.event(b"result", reading.result().body)
            return
