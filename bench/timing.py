"""Timing: two sides take turns, and their medians are compared."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import TypeVar

T = TypeVar("T")

TURNS_MIN = 3
"""How many turns are measured even when time is up."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured of both sides, for one unit of work."""

    ours: float
    """Woodrat."""
    against: float
    """The other side."""
    unit: str
    """`µs` or `B`."""
    turns: int = 1
    """How often each side was measured."""


def take_turns(
    turns: Iterable[Sequence[T]],
    ours: Callable[[T], object],
    against: Callable[[T], object],
    *,
    per: int = 1,
    per_against: int = 1,
    warm: int = 0,
    seconds: float,
) -> Figure:
    """Give the items of each turn to the other side, then to ours, and return the medians of the turns.

    The first `warm` turns are not measured. Making the items takes no part in the time. Turns that would begin after
    `seconds` are left out, as long as a few were measured. `per` and `per_against` are how many units of
    work either side does for one item.
    """
    times: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    began = perf_counter_ns()
    for number, items in enumerate(turns):
        for side, call, units in zip(times, (against, ours), (per_against, per), strict=True):
            start = perf_counter_ns()
            for item in items:
                call(item)
            end = perf_counter_ns()
            if number >= warm:
                side.append((end - start) / 1_000 / len(items) / units)
        if len(times[0]) >= TURNS_MIN and perf_counter_ns() - began > seconds * 1e9:
            break
    other, own = map(median, times)
    return Figure(own, other, "µs", len(times[0]))
