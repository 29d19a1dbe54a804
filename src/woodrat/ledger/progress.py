"""Progress: how those who do something long say how far they are."""

from __future__ import annotations

from collections.abc import Callable

from woodrat.clock import monotonic

Progress = Callable[[int, int], object]
"""Is told how much is done, and how much there is to do."""


def seldom(tell: Progress, seconds: float) -> Progress:
    """Return what passes on the beginning and the end, and no more often than every so many seconds what is between."""
    due = monotonic()

    def told(done: int, whole: int) -> None:
        nonlocal due
        now = monotonic()
        if done >= whole or now >= due:
            due = now + seconds
            tell(done, whole)

    return told
