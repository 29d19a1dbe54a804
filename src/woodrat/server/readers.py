"""Readers: the threads that read for requests. A stopping process does not wait for them, because reads change nothing.

Work cancelled in the queue never starts. Cancelled work stops at its next check (`engines/cancellation.py`), so that a
caller who gave up does not occupy a thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from woodrat.engines import cancellation
from woodrat.engines.cancellation import Cancellation, RightOfWay
from woodrat.errors import Unavailable
from woodrat.server.limits import READERS, RECALLERS

P = ParamSpec("P")
T = TypeVar("T")

END_SECONDS: Final = 2.0
"""Grace period for running reads when the server stops."""
WAITING_MAX: Final = 4_096
"""Most queued jobs."""
THREADS: Final[Mapping[str, int]] = {
    "reads": READERS,
    "recalls": RECALLERS,
    "lookups": 2,
    "streams": 2,
    "bodies": 2,
    "keys": 1,
    "audit": 1,
    "indexes": 1,
}
"""Number of threads for each kind of work besides heavy reads."""


class Full(Unavailable):
    """The queue is full. Nothing was done; retry later."""


class Work(Future[T]):
    """A job and its answer."""

    def __init__(self, way: RightOfWay | None) -> None:
        super().__init__()
        self.cancellation = Cancellation(way)

    def cancel(self) -> bool:
        """Cancel it: it does not start, or stops at its next check."""
        gone = super().cancel()
        if not self.done() or gone:
            self.cancellation.cancel()
        return gone


class _Item(NamedTuple):
    work: Work[Any]
    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Readers(Executor):
    """A pool of threads, started on demand, with a bounded queue."""

    def __init__(self, count: int, name: str, waiting_max: int = WAITING_MAX, way: RightOfWay | None = None) -> None:
        """`way` names the work with priority over these threads."""
        self._count, self._name, self._waiting_max, self._way = count, name, waiting_max, way
        self._waiting: SimpleQueue[_Item | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self.busy = 0
        """Accepted jobs that are not done."""
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function in a thread of the pool; raise `Full` if the queue is full."""
        work: Work[T] = Work(self._way)
        with self._lock:
            if self._closed:
                raise RuntimeError("the readers were closed")
            if self.busy >= self._count + self._waiting_max:
                raise Full(
                    f"{self.busy} reads are queued or running, which is the limit. Nothing was done. "
                    "Send the same call again later.",
                    {"waiting_max": self._waiting_max},
                )
            self.busy += 1
            if self.busy > len(self._threads) and len(self._threads) < self._count:
                thread = threading.Thread(target=self._read, name=f"{self._name}-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._waiting.put(_Item(work, fn, args, kwargs))
        return work

    def _read(self) -> None:
        while (item := self._waiting.get()) is not None:
            work, call, args, kwargs = item
            if work.set_running_or_notify_cancel():
                try:
                    with cancellation.under(work.cancellation):
                        work.set_result(call(*args, **kwargs))
                except BaseException as error:
                    work.set_exception(error)
            with self._lock:
                self.busy -= 1
            del item, work, call, args, kwargs  # an idle reader holds nothing it has read

    def close(self, within_seconds: float) -> None:
        """Accept nothing more, drop the queue, and wait for running reads, at most for a time."""
        with self._lock:
            if not self._closed:
                self._closed = True
                while not self._waiting.empty():
                    if (item := self._waiting.get()) is not None:
                        item.work.cancel()
                        self.busy -= 1
                for _ in self._threads:
                    self._waiting.put(None)
        each = within_seconds / max(1, len(self._threads))
        for thread in self._threads:
            thread.join(each)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Close, as any executor is."""
        self.close(END_SECONDS if wait else 0.0)


def threads_of(heavy: int, way: RightOfWay | None = None) -> dict[str, Readers]:
    """Return one thread pool per kind of work, so that no kind waits for another; `heavy` is the number of heavy reads.

    `way` lets the event loop go before them.

    Above all, a revoked key must not wait for its reads or for writes.
    """
    return {name: Readers(count, f"woodrat-{name}", way=way) for name, count in {**THREADS, "heavy": heavy}.items()}


class Switching:
    """Makes threads switch more often while one of them does long work, so that others wait less for it.

    A context manager, which may be entered several times; one event loop uses it.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._before, self._inside = seconds, 0.0, 0

    def __enter__(self) -> None:
        if not self._inside:
            self._before = sys.getswitchinterval()
            sys.setswitchinterval(min(self._before, self._seconds))
        self._inside += 1

    def __exit__(self, *error: object) -> None:
        self._inside -= 1
        if not self._inside:
            sys.setswitchinterval(self._before)
