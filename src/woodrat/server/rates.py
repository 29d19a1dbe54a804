"""Rates: what one key may take from the others: how often it calls, how much runs at once, how much time it uses.

`Rates` counts calls: a bucket holds ten seconds' worth of them and fills evenly. `Turns` are the places of one kind of
work: so many at once, fewer for one key, and a bounded number that waits, where keys take turns. What one key asks for
never fills all places, and what it has waiting never stands before another key's first call. A `Pace` is for work that
holds others up however few do it at once. The event loop alone uses them, so no lock is needed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from woodrat.server.problems import NOTHING_DONE, Rejected

if TYPE_CHECKING:
    from woodrat.server.limits import Limits, Places

BURST_SECONDS: Final = 10
"""How many seconds' worth of calls may be made at once."""
RETRY_SECONDS: Final = 5
"""When to call again, as a caller who waits behind long work is told."""


class Rates:
    """The buckets of all keys; there are no more of them than keys."""

    def __init__(self, calls_per_second: int | None) -> None:
        self._rate = calls_per_second
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: str, now: float) -> None:
        """Count one call of a key; refuse it when the bucket is empty, saying when to call again."""
        if self._rate is None:
            return
        full = float(self._rate * BURST_SECONDS)
        left, since = self._buckets.get(key, (full, now))
        left = min(full, left + (now - since) * self._rate)
        if left < 1.0:
            self._buckets[key] = (left, now)
            wait = max(1, round((1.0 - left) / self._rate + 0.5))
            later = "a second" if wait == 1 else f"{wait} seconds"
            text = f"This key calls more than {self._rate} times a second. {NOTHING_DONE} Call again in {later}."
            raise Rejected(429, text, ((b"retry-after", str(wait).encode()),), code="unavailable")
        self._buckets[key] = (left - 1.0, now)


class Failures:
    """Attempts that failed, by what they have in common: a few at once, then one now and then."""

    def __init__(self, seconds_each: float, counted_max: int) -> None:
        self._seconds_each, self._counted_max = seconds_each, counted_max
        self._counts: dict[str, tuple[float, float]] = {}
        """By what they have in common how many failures count, and as of when."""

    def wait(self, bursts: Mapping[str, int], now: float) -> float:
        """Return for how many seconds attempts of these kinds fail too often; 0 where a further one may fail."""
        over = max(self._count(kind, now) - burst + 1 for kind, burst in bursts.items())
        return max(0.0, over * self._seconds_each)

    def note(self, kinds: Iterable[str], now: float) -> None:
        """Count a failure."""
        for kind in kinds:
            count = self._count(kind, now) + 1
            self._counts.pop(kind, None)
            while len(self._counts) >= self._counted_max:
                self._counts.pop(next(iter(self._counts)))
            self._counts[kind] = (count, now)

    def _count(self, kind: str, now: float) -> float:
        count, since = self._counts.get(kind, (0.0, now))
        return max(0.0, count - (now - since) / self._seconds_each)


class Turns:
    """The places of one kind of work, and who waits for one."""

    def __init__(self, what: str, places: Places) -> None:
        self._what, self._places = what, places
        self._running: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By key, in the order in which the keys are served next."""
        self._ended: Callable[[], Exception] | None = None
        self.running = 0
        """How many have a place now."""
        self.waiting = 0
        """How many wait for one."""
        self.refused = 0
        """How many were refused because too many waited."""

    @property
    def keys(self) -> set[str]:
        """The keys that have a place or wait for one."""
        return {*self._running, *self._waiting}

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Have a place while this lasts; one too many is refused, and told when to call again."""
        if self._ended is not None:
            raise self._ended()
        if self.running < self._places.running_max and self._running.get(key, 0) < self._places.running_per_key:
            self._begin(key)
        else:
            await self._wait(key)
        try:
            yield
        finally:
            self._end(key)

    def give_up(self, why: Callable[[], Exception]) -> None:
        """Refuse those who wait, and all who come: the server ends."""
        self._ended = why
        for waiting in self._waiting.values():
            for place in waiting:
                if not place.done():
                    place.set_exception(why())
        self._waiting.clear()
        self.waiting = 0

    def _begin(self, key: str) -> None:
        self.running += 1
        self._running[key] = self._running.get(key, 0) + 1

    def _end(self, key: str) -> None:
        self.running -= 1
        left = self._running[key] - 1
        if left:
            self._running[key] = left
        else:
            del self._running[key]
        self._pass_on()

    async def _wait(self, key: str) -> None:
        mine = self._waiting.get(key, ())
        if len(mine) >= self._places.waiting_per_key:
            raise self._too_many(429, f"{len(mine)} calls of this key", "wait already")
        if self.waiting >= self._places.waiting_max:
            raise self._too_many(503, f"{self.waiting} calls", "wait already, of all keys")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(place)
        self.waiting += 1
        try:
            await place
        except asyncio.CancelledError:
            if (
                place.done() and not place.cancelled() and place.exception() is None
            ):  # the place was given away to somebody who is gone
                self._end(key)
            else:
                self._leave(key, place)
            raise

    def _leave(self, key: str, place: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None and place in waiting:
            waiting.remove(place)
            self.waiting -= 1
            if not waiting:
                del self._waiting[key]

    def _pass_on(self) -> None:
        """Give free places to those who wait, to one key after the other."""
        places = self._places
        while self.running < places.running_max:
            key = next((key for key in self._waiting if self._running.get(key, 0) < places.running_per_key), None)
            if key is None:
                return
            waiting = self._waiting.pop(key)
            place = waiting.popleft()
            self.waiting -= 1
            if waiting:
                self._waiting[key] = waiting  # behind all others
            if not place.done():
                self._begin(key)
                place.set_result(None)

    def _too_many(self, status: int, who: str, how: str) -> Rejected:
        self.refused += 1
        text = f"{who} that {self._what} {how}. {NOTHING_DONE} Call again in {RETRY_SECONDS} seconds, or one at a time."
        return Rejected(status, text, ((b"retry-after", str(RETRY_SECONDS).encode()),), code="unavailable")


class Pace:
    """How much of the server's time each key may use for one kind of work: a share of it, and a burst at first."""

    def __init__(self, share: float, burst_seconds: float) -> None:
        self._share, self._burst_seconds = share, burst_seconds
        self.debts: dict[str, tuple[float, float]] = {}
        """By key how many seconds it has used and not waited for, and when that was so."""

    def charge(self, key: str, seconds: float) -> None:
        """Count that a key has used so much time."""
        now = asyncio.get_running_loop().time()
        self.debts[key] = (self._debt(key, now) + seconds, now)

    async def wait(self, key: str) -> None:
        """Wait until a key may use more; others go on meanwhile."""
        loop = asyncio.get_running_loop()
        while (over := self._debt(key, loop.time()) - self._burst_seconds) > 0:
            await asyncio.sleep(over / self._share)

    def _debt(self, key: str, now: float) -> float:
        used, since = self.debts.get(key, (0.0, now))
        left = max(0.0, used - self._share * (now - since))
        if not left:
            self.debts.pop(key, None)
        return left


def turns_of(limits: Limits) -> dict[str, Turns]:
    """Return the turns of each kind of work, by its name in `Limits`."""
    return {
        "reads": Turns("read", limits.reads),
        "heavy_reads": Turns("take long", limits.heavy_reads),
        "heavy_writes": Turns("keep all writers waiting", limits.heavy_writes),
        "long_writes": Turns("write many records", limits.long_writes),
        "exports": Turns("read a whole log", limits.exports),
        "follows": Turns("follow a log", limits.follows),
        "bodies": Turns("have a long body", limits.bodies),
    }
