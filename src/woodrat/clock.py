"""Clock: the only source of time, randomness and fresh ids.

Everything else takes them as arguments, so equal arguments give equal bytes; tests put a `Clock` of their own here.
"""

from __future__ import annotations

import os
import time
from typing import Protocol

from woodrat.canon import moment
from woodrat.canon.digest import base32


class Clock(Protocol):
    """Time and randomness for the shell."""

    def now(self) -> str:
        """Return the present moment, fixed-width UTC."""

    def random(self, count: int) -> bytes:
        """Return `count` unpredictable bytes."""


class SystemClock:
    """The machine's clock and random source, and the zone that its user counts days in."""

    def __init__(self, zone: str | None = None) -> None:
        self.zone = zone
        """Name of the time zone of days, such as `Europe/Madrid`; None: UTC."""

    def now(self) -> str:
        return moment.from_micros(time.time_ns() // 1_000)

    def random(self, count: int) -> bytes:
        return os.urandom(count)


def zone_of(clock: Clock) -> str | None:
    """Return the time zone that the user of a clock counts days in; None: UTC."""
    found: str | None = getattr(clock, "zone", None)
    return found


def monotonic() -> float:
    """Return seconds of a monotonic clock: for waiting, never for records."""
    return time.monotonic()


def fresh_id(clock: Clock, prefix: str) -> str:
    """Return a new id: the prefix, then base32 of six bytes of milliseconds and ten random bytes."""
    milliseconds = max(0, moment.to_micros(clock.now()) // 1_000)
    return prefix + base32(milliseconds.to_bytes(6, "big") + clock.random(10))


def not_before(now: str, last: str | None) -> str:
    """Return `now`, or a microsecond after `last` when the clock did not move past it."""
    return now if last is None or now > last else moment.from_micros(moment.to_micros(last) + 1)
