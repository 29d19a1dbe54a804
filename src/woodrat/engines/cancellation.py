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


class Cancellation:
    """Says whether a piece of work was cancelled. Any thread may cancel it, and it stays cancelled."""

    def __init__(self) -> None:
        self.cancelled = False
        """Whether it was."""
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
    """Raise `Cancelled` if the work of this thread was cancelled; for loops that may take long."""
    work = _HERE.work
    if work is not None and work.cancelled:
        raise Cancelled("The work was cancelled, as nobody waits for its answer. Nothing was changed. Ask again.")
