"""Following: the log as it grows, over a connection that stays open.

Every entry comes in order and at least once. Whoever was cut off says the last position they had, and goes on after it:
with `after`, or with the `Last-Event-ID` that browsers send by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Final

import orjson

from woodrat.exchange.lines import line
from woodrat.exchange.relay import peers
from woodrat.server import answers
from woodrat.server.readers import Full

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from woodrat.api.past import Past
    from woodrat.log.entry import Entry

PART_BYTES: Final = 262_144
"""About how many bytes of entries are read at a time: so much is held for a reader who does not take it."""
POLL_SECONDS: Final = 0.2
"""How often to look for entries of other processes."""
QUIET_SECONDS: Final = 15.0
"""How long nothing is sent before a comment shows that the connection lives."""


async def lines(
    past: Past, readers: Executor, after: int, through: int | None, limit: int | None = None
) -> AsyncIterator[bytes]:
    """Yield the entries there are after a position, each the line that an exported log has of it."""
    loop = asyncio.get_running_loop()
    parts = peers.parts(past.context.engine, past.tenant, after, through, PART_BYTES)
    while part := await loop.run_in_executor(readers, _next, parts):
        found = part if limit is None else part[:limit]
        yield b"".join(found)
        if limit is not None and (limit := limit - len(found)) == 0:
            return


def _next(parts: Iterator[list[Entry]]) -> list[bytes]:
    return [line(entry) for entry in next(parts, ())]


async def events(
    past: Past,
    readers: Executor,
    after: int,
    closing: asyncio.Event,
    allowed: Callable[[], bool],
    stamp: Callable[[], bytes | None],
) -> AsyncIterator[bytes]:
    """Yield entries after a position as server-sent events, those still to come too.

    It ends when the server closes, or the follower is no longer `allowed`: a key may be revoked meanwhile. While the
    `stamp` stays nothing was committed, and nothing is looked for.
    """
    loop = asyncio.get_running_loop()
    quiet = 0.0
    seen: bytes | None = None
    yield b"retry: 1000\n\n"
    while not closing.is_set() and allowed():
        now = stamp()  # before the log is looked at: what is newer than the stamp is looked for again
        try:
            page = await loop.run_in_executor(readers, _page, past, after) if now is None or now != seen else []
        except Full:  # too many followers look at once: this one looks again soon
            page, now = [], None
        if page:
            yield b"".join(b"id: %d\nevent: entry\ndata: %b\n\n" % item for item in page)
            after, quiet = page[-1][0], 0.0
            continue
        seen = now
        try:
            await asyncio.wait_for(closing.wait(), POLL_SECONDS)
        except TimeoutError:
            quiet += POLL_SECONDS
        if quiet >= QUIET_SECONDS:
            yield b": still here\n\n"
            quiet = 0.0


def _page(past: Past, after: int) -> list[tuple[int, bytes]]:
    entries = next(peers.parts(past.context.engine, past.tenant, after, None, PART_BYTES), ())
    return [(entry.position, orjson.dumps(answers.told_entry(past, entry))) for entry in entries]
