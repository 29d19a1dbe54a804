"""Readers: the threads that read for requests. A process that ends does not wait for them: a read changes nothing.

Work that is cancelled while it waits is never begun. Work that is cancelled while it is done stops at its next check
(`engines/cancellation.py`), so that a caller who gave up does not keep a thread.
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
"""How long is waited for what is being read when the server ends."""
WAITING_MAX: Final = 4_096
"""How many pieces of work may wait for a reader."""
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
"""How many threads there are for each kind of work besides heavy reads."""


class Full(Unavailable):
    """Too much work waits already. Nothing was done; ask again later."""


class Work(Future[T]):
    """A piece of work, and its answer."""

    def __init__(self, way: RightOfWay | None) -> None:
        super().__init__()
        self.cancellation = Cancellation(way)

    def cancel(self) -> bool:
        """Give it up: it is not begun, or stops at its next check."""
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
    """So many threads, begun as they are needed; further work waits its turn, up to a number."""

    def __init__(self, count: int, name: str, waiting_max: int = WAITING_MAX, way: RightOfWay | None = None) -> None:
        """`way` says who goes before these threads, where anybody does."""
        self._count, self._name, self._waiting_max, self._way = count, name, waiting_max, way
        self._waiting: SimpleQueue[_Item | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self.busy = 0
        """Pieces of work that were taken on and are not done."""
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a function called by a reader; `Full` when too much waits already."""
        work: Work[T] = Work(self._way)
        with self._lock:
            if self._closed:
                raise RuntimeError("the readers were let go")
            if self.busy >= self._count + self._waiting_max:
                raise Full(
                    f"{self.busy} reads wait or are being answered, and no more may wait. Nothing was done. "
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
            del item, work, call, args, kwargs  # a reader that waits keeps nothing of what it read

    def close(self, within_seconds: float) -> None:
        """Take nothing more, drop what waits, and wait for what is being read, but no longer than that."""
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
    """Return the threads of each kind of work, so that none waits for another; `heavy` is how many heavy reads run.

    `way` lets the loop go before them.

    Above all a key that was revoked must not wait for what it asked, nor for what is being written.
    """
    return {name: Readers(count, f"woodrat-{name}", way=way) for name, count in {**THREADS, "heavy": heavy}.items()}


class Switching:
    """Lets threads take turns more often while long work is done in one of them, so that others wait less for it.

    A context, which several may be in at once; one event loop uses it.
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
