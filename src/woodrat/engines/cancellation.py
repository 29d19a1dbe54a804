"""Cancellation: work that nobody waits for any more stops at its next check, instead of running to its end.

Python cannot stop a thread from outside. So whoever hands work to a thread also hands it a `Cancellation`, and the
loops that may take long call `check`: it costs a look at one thread-local value, and raises once the work was
cancelled. A read changes nothing, so it may stop anywhere; writes are never run under a cancellation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from woodrat.errors import Unavailable


class Cancelled(Unavailable):
    """Nobody waits for this answer any more, so the work was stopped. Nothing was changed."""


class RightOfWay:
    """Lets one thread, which answers many, go before those that work for long: they wait at their next check.

    All share one interpreter. Whoever waits for the network or the disk gives it away each time, and would get it back
    only after the others had their share of it.
    """

    def __init__(self) -> None:
        self.taken = False
        """Whether the one goes now."""
        self._free = threading.Event()

    def take(self) -> None:
        """Have the others wait."""
        self.taken = True
        self._free.clear()

    def give(self) -> None:
        """Let the others go on."""
        self.taken = False
        self._free.set()

    def wait(self) -> None:
        """Wait while the one goes, but not for long, as there may be no end of it."""
        self._free.wait(WAIT_SECONDS)


WAIT_SECONDS = 0.005
"""How long work waits at a check for the one that goes first, at most."""


class Cancellation:
    """Says whether a piece of work was cancelled. Any thread may cancel it, and it stays cancelled."""

    def __init__(self, way: RightOfWay | None = None) -> None:
        self.cancelled = False
        """Whether it was."""
        self.way = way
        """Who goes first, if anybody does."""
        self._lock = threading.Lock()
        self._calls: list[Callable[[], None]] = []

    def cancel(self) -> None:
        """Cancel the work, and call whatever waits for that."""
        with self._lock:
            self.cancelled = True
            calls, self._calls = self._calls, []
        for call in calls:
            call()

    @contextmanager
    def calling(self, stop: Callable[[], None]) -> Iterator[None]:
        """Have `stop` called when the work is cancelled meanwhile; at once if it was cancelled before."""
        with self._lock:
            late = self.cancelled
            if not late:
                self._calls.append(stop)
        if late:
            stop()
        try:
            yield
        finally:
            with self._lock:
                if stop in self._calls:
                    self._calls.remove(stop)


class _Here(threading.local):
    work: Cancellation | None = None


_HERE = _Here()


@contextmanager
def under(work: Cancellation) -> Iterator[None]:
    """Let `check` in this thread ask this cancellation."""
    before, _HERE.work = _HERE.work, work
    try:
        yield
    finally:
        _HERE.work = before


def here() -> Cancellation | None:
    """Return the cancellation of this thread's work, if it has one."""
    return _HERE.work


def check() -> None:
    """Raise `Cancelled` if the work of this thread was cancelled, and let others go first; for loops that take long."""
    work = _HERE.work
    if work is None:
        return
    if work.cancelled:
        raise Cancelled("The work was cancelled, as nobody waits for its answer. Nothing was changed. Ask again.")
    if work.way is not None and work.way.taken:
        work.way.wait()
