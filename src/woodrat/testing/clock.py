"""Clocks for tests: time and randomness that repeat exactly."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from woodrat.canon import moment

START = "2026-01-01T00:00:00.000000Z"
"""Default start of a fixed clock."""


class FixedClock:
    """A clock that advances by a fixed step at each reading, and random bytes derived from a seed."""

    def __init__(self, start: str = START, step_micros: int = 1_000_000, seed: str = "woodrat") -> None:
        self._next = moment.to_micros(start)
        self._step = step_micros
        self._seed = seed
        self._drawn = 0

    def now(self) -> str:
        self._next += self._step
        return moment.from_micros(self._next - self._step)

    def random(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            found += hashlib.sha256(f"{self._seed}/{self._drawn}".encode()).digest()
            self._drawn += 1
        return found[:count]


class JumpingClock(FixedClock):
    """A clock that shows the given moments one after the other, and the last one ever after."""

    def __init__(self, moments: Iterable[str], seed: str = "woodrat") -> None:
        super().__init__(seed=seed)
        self._moments = [moment.parse(text) for text in moments]
        assert self._moments, "a clock shows at least one moment"

    def now(self) -> str:
        return self._moments.pop(0) if len(self._moments) > 1 else self._moments[0]
