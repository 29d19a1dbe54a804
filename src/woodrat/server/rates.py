"""Rates: limits on how much of the server one key or tenant can use: calls, running work and time.

`Rates` counts calls: a bucket holds ten seconds' worth of them and fills evenly. `Turns` are the places for one kind of
work: a maximum at once, fewer for one key or one tenant, and a bounded queue in which keys take turns. One tenant never
fills all places, and queued calls of one key never pass another key's first call. A `Pace` is for work that blocks
others even if few do it at once. Only the event loop uses them, so no lock is needed.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from woodrat.server.problems import NOTHING_DONE, Rejected

if TYPE_CHECKING:
    from concurrent.futures import Future

    from woodrat.server.access import Caller
    from woodrat.server.limits import Limits, Places

BURST_SECONDS: Final = 10
"""Seconds' worth of calls that may be made at once."""
RETRY_SECONDS: Final = 5
"""Retry delay for a caller who waits behind long work."""


class Rates:
    """The buckets of all keys, at most one per key."""

    def __init__(self, calls_per_second: int | None) -> None:
        self._rate = calls_per_second
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: str, now: float) -> None:
        """Count one call of a key; refuse it if the bucket is empty, with the time to retry."""
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
    """Failed attempts by a shared property: a burst, then a slow rate."""

    def __init__(self, seconds_each: float, counted_max: int) -> None:
        self._seconds_each, self._counted_max = seconds_each, counted_max
        self._counts: dict[str, tuple[float, float]] = {}
        """Counted failures by property, and the time of the count."""

    def wait(self, bursts: Mapping[str, int], now: float) -> float:
        """Return the seconds for which attempts with these properties are blocked; 0 if an attempt is allowed now."""
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


_Who = tuple[str, str]
"""A tenant and one of its keys."""


class Permit:
    """An occupied place; it is free once it was given back and its thread is done."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end: Callable[[], None] | None = end
        self.work: Future[Any] | None = None
        """The work of a thread in this place. A thread does not stop at once when its caller is gone."""

    def give_back(self) -> None:
        """Give the place back as soon as its work is done."""
        if self.work is not None and not self.work.done():
            loop = asyncio.get_running_loop()

            def later(_: object) -> None:
                with suppress(RuntimeError):  # the server has ended
                    loop.call_soon_threadsafe(self.give_back)

            self.work.add_done_callback(later)
        elif self._end is not None:
            end, self._end = self._end, None
            end()


class Turns:
    """The places of one kind of work, and their queue."""

    def __init__(self, what: str, places: Places) -> None:
        self._what, self._places = what, places
        self._running: Counter[_Who] = Counter()
        self._tenants: Counter[str] = Counter()
        """Occupied places by tenant."""
        self._waiting: dict[_Who, deque[asyncio.Future[None]]] = {}
        """The queue by key, in the order of service."""
        self._ended: Callable[[], Exception] | None = None
        self.running = 0
        """Number of occupied places."""
        self.waiting = 0
        """Length of the queue."""
        self.refused = 0
        """Number of refused calls."""

    @property
    def keys(self) -> set[_Who]:
        """The keys with a place or in the queue."""
        return {*self._running, *self._waiting}

    @asynccontextmanager
    async def turn(self, caller: Caller) -> AsyncIterator[Permit]:
        """Occupy a place while this lasts and a thread works in it; beyond the limit the call is refused."""
        if self._ended is not None:
            raise self._ended()
        who = (caller.tenant, caller.key)
        if self._has_room(who):
            self._begin(who)
        else:
            await self._wait(who)
        place = Permit(lambda: self._end(who))
        try:
            yield place
        finally:
            place.give_back()

    def give_up(self, why: Callable[[], Exception]) -> None:
        """Refuse waiting and new calls: the server stops."""
        self._ended = why
        for waiting in self._waiting.values():
            for place in waiting:
                if not place.done():
                    place.set_exception(why())
        self._waiting.clear()
        self.waiting = 0

    def _has_room(self, who: _Who) -> bool:
        places = self._places
        return (
            self.running < places.running_max
            and self._running[who] < places.running_per_key
            and self._tenants[who[0]] < places.tenant_running_max
        )

    def _begin(self, who: _Who) -> None:
        self.running += 1
        self._running[who] += 1
        self._tenants[who[0]] += 1

    def _end(self, who: _Who) -> None:
        self.running -= 1
        count_down(self._running, who)
        count_down(self._tenants, who[0])
        self._pass_on()

    async def _wait(self, who: _Who) -> None:
        places = self._places
        if not places.waiting_max:
            raise self._full(who)
        mine = len(self._waiting.get(who, ()))
        of_tenant = sum(len(waiting) for other, waiting in self._waiting.items() if other[0] == who[0])
        if mine >= places.waiting_per_key:
            raise self._too_many(429, f"{mine} calls of this key", "wait already")
        if of_tenant >= places.tenant_waiting_max:
            raise self._too_many(429, f"{of_tenant} calls of this tenant", "wait already")
        if self.waiting >= places.waiting_max:
            raise self._too_many(503, f"{self.waiting} calls", "wait already, of all keys")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(place)
        self.waiting += 1
        try:
            await place
        except asyncio.CancelledError:
            if (
                place.done() and not place.cancelled() and place.exception() is None
            ):  # the caller who got the place has gone
                self._end(who)
            else:
                self._leave(who, place)
            raise

    def _leave(self, who: _Who, place: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(who)
        if waiting is not None and place in waiting:
            waiting.remove(place)
            self.waiting -= 1
            if not waiting:
                del self._waiting[who]

    def _pass_on(self) -> None:
        """Give free places to waiting calls, one key after the other."""
        while self.running < self._places.running_max:
            who = next(filter(self._has_room, self._waiting), None)
            if who is None:
                return
            waiting = self._waiting.pop(who)
            place = waiting.popleft()
            self.waiting -= 1
            if waiting:
                self._waiting[who] = waiting  # behind all others
            if not place.done():
                self._begin(who)
                place.set_result(None)

    def _full(self, who: _Who) -> Rejected:
        """Return the error for a call without a place, or None if it may queue."""
        places = self._places
        if self._running[who] >= places.running_per_key:
            status, whose, limit = 429, "This key", places.running_per_key
        elif self._tenants[who[0]] >= places.tenant_running_max:
            status, whose, limit = 429, "This tenant", places.tenant_running_max
        else:
            status, whose, limit = 503, "The server", places.running_max
        remedy = f"Close one of them, or let several readers share one, and call again in {RETRY_SECONDS} seconds."
        return self._refusal(status, f"{whose} has {limit} open calls that {self._what}, which is the limit", remedy)

    def _too_many(self, status: int, who: str, how: str) -> Rejected:
        remedy = f"Call again in {RETRY_SECONDS} seconds, or one at a time."
        return self._refusal(status, f"{who} that {self._what} {how}", remedy)

    def _refusal(self, status: int, problem: str, remedy: str) -> Rejected:
        self.refused += 1
        text = f"{problem}. {NOTHING_DONE} {remedy}"
        return Rejected(status, text, ((b"retry-after", str(RETRY_SECONDS).encode()),), code="unavailable")


def count_down(counts: Counter[Any], what: Any) -> None:
    """Decrement a count, and drop it at zero."""
    counts[what] -= 1
    if not counts[what]:
        counts.pop(what)


class Pace:
    """Server time that each key may use for one kind of work: a share, and a burst at first."""

    def __init__(self, share: float, burst_seconds: float) -> None:
        self._share, self._burst_seconds = share, burst_seconds
        self.debts: dict[str, tuple[float, float]] = {}
        """Used seconds by key that were not waited for, and the time of the count."""

    def charge(self, key: str, seconds: float) -> None:
        """Count time that a key used."""
        now = asyncio.get_running_loop().time()
        self.debts[key] = (self._debt(key, now) + seconds, now)

    async def wait(self, key: str) -> None:
        """Wait until a key has time left; other work goes on."""
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
        "recalls": Turns("recall", limits.recalls),
        "heavy_reads": Turns("take long", limits.heavy_reads),
        "heavy_writes": Turns("keep all writers waiting", limits.heavy_writes),
        "long_writes": Turns("write many records", limits.long_writes),
        "exports": Turns("read a whole log", limits.exports),
        "follows": Turns("follow a log", limits.follows),
        "bodies": Turns("have a long body", limits.bodies),
    }
