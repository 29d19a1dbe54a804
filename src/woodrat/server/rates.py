"""Rates: how often a key may call. A bucket holds ten seconds' worth of calls and fills evenly."""

from __future__ import annotations

from typing import Final

from woodrat.server.requests import NOTHING_DONE, Rejected

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
