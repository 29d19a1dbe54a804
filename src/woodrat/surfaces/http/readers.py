"""Readers: the threads that read for requests. A process that ends does not wait for them: a read changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

END_SECONDS: Final = 2.0
"""How long is waited for what is being read when the server ends."""
_Work = tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class Readers(Executor):
    """So many threads, begun as they are needed; further work waits its turn."""

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._busy = 0
        """Pieces of work that were taken on and are not done."""
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a function called by a reader."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the readers were let go")
            self._busy += 1
            if self._busy > len(self._threads) and len(self._threads) < self._count:
                thread = threading.Thread(target=self._read, name=f"{self._name}-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._waiting.put((future, fn, args, kwargs))
        return future

    def _read(self) -> None:
        while (work := self._waiting.get()) is not None:
            future, call, args, kwargs = work
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call(*args, **kwargs))
                except BaseException as error:
                    future.set_exception(error)
            with self._lock:
                self._busy -= 1
            del work, future, call, args, kwargs  # a reader that waits keeps nothing of what it read

    def close(self, within_seconds: float) -> None:
        """Take nothing more, drop what waits, and wait for what is being read, but no longer than that."""
        with self._lock:
            if not self._closed:
                self._closed = True
                while not self._waiting.empty():
                    if (work := self._waiting.get()) is not None:
                        work[0].cancel()
                        self._busy -= 1
                for _ in self._threads:
                    self._waiting.put(None)
        each = within_seconds / max(1, len(self._threads))
        for thread in self._threads:
            thread.join(each)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Close, as any executor is."""
        self.close(END_SECONDS if wait else 0.0)
