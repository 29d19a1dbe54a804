"""Rates: how often a key may call, and how much of the server's time it may use.

Calls come out of a bucket that holds ten seconds' worth of them and fills evenly. A `Pace` is for work that holds
others up however few do it at once. The event loop alone uses both, so no lock is needed.
"""

from __future__ import annotations

import asyncio
from typing import Final

from woodrat.server.problems import NOTHING_DONE, Rejected

BURST_SECONDS: Final = 10
"""How many seconds' worth of calls may be made at once."""


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
