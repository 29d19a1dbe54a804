"""Threads that carry a run: one, a pool, or all of them when asked for.

Python hands the context on to tasks, not to threads. `run.thread` and `run.executor` make threads that record into
their run. For code that cannot be changed, `carry_threads` has `Thread.start` and `ThreadPoolExecutor.submit` hand on
which run is current, and nothing else: where none is current they do what they always do, and they are put back when
the last who asked has finished. A thread that outlives the run it was given so has none.
"""

from __future__ import annotations

import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from woodrat.runs.recorder.current import Frame, current_frame, entered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from concurrent.futures import Executor, Future, ThreadPoolExecutor
    from types import TracebackType

T = TypeVar("T")


def thread(
    frame: Frame,
    target: Callable[..., object],
    args: Iterable[Any],
    kwargs: Mapping[str, Any] | None,
    name: str | None,
    daemon: bool | None,
) -> threading.Thread:
    """Return a thread, not started yet, whose work runs in the frame."""

    fork = frame.run.fork()

    def work(*args: Any, **kwargs: Any) -> None:
        with entered(frame, fork):
            target(*args, **kwargs)

    return threading.Thread(target=work, args=tuple(args), kwargs=kwargs, name=name, daemon=daemon)


def executor(frame: Frame, workers_max: int | None) -> Executor:
    """Return a pool of threads whose work runs in the frame, or in the one that is current where it is submitted."""
    from concurrent.futures import ThreadPoolExecutor

    class CarryingExecutor(ThreadPoolExecutor):
        """A pool of threads that carries the context of whoever submits."""

        def submit(self, function: Callable[..., T], /, *arguments: Any, **given: Any) -> Future[T]:
            place = current_frame() or frame
            with entered(place, place.run.fork()):
                context = copy_context()  # one for each: a context runs one thing at a time
            return super().submit(context.run, function, *arguments, **given)

    return CarryingExecutor(workers_max, thread_name_prefix="woodrat-run")


# -- all threads, when asked for -------------------------------------------------------------------------------------

_lock = threading.Lock()
_asked = 0
_before: dict[str, Any] = {}


class carry_threads:
    """Have every thread and thread pool of this process carry the run that is current where work is handed to it.

    It replaces `Thread.start` and `ThreadPoolExecutor.submit` until the block ends, or until `stop()` where it is used
    without one. It is for code that cannot be changed; `run.thread`, `run.executor` and `carry` need no such thing.

    with woodrat.carry_threads(), ledger.run("Approve?") as run:
        framework.execute(...)
    """

    def __init__(self) -> None:
        self._active = True
        _start_carrying()

    def stop(self) -> None:
        """Let threads be as they were, once nobody else asks for it either. A second call does nothing."""
        if self._active:
            self._active = False
            _stop_carrying()

    def __enter__(self) -> carry_threads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def threads_are_carried() -> bool:
    """Return whether all threads carry the current run now."""
    return _asked > 0


def _start_carrying() -> None:
    global _asked
    from concurrent.futures import ThreadPoolExecutor

    with _lock:
        _asked += 1
        if _asked == 1:
            _before["start"], _before["submit"] = threading.Thread.start, ThreadPoolExecutor.submit
            threading.Thread.start = _start  # type: ignore[method-assign,assignment]
            ThreadPoolExecutor.submit = _submit  # type: ignore[assignment,method-assign]


def _stop_carrying() -> None:
    """Put things back once nobody asks any more, unless someone else has changed them meanwhile."""
    global _asked
    from concurrent.futures import ThreadPoolExecutor

    with _lock:
        _asked -= 1
        if _asked == 0:
            if threading.Thread.start is _start:
                threading.Thread.start = _before["start"]  # type: ignore[method-assign]
            if ThreadPoolExecutor.submit is _submit:
                ThreadPoolExecutor.submit = _before["submit"]  # type: ignore[method-assign]


def _start(thread: threading.Thread) -> None:
    frame = current_frame()
    if frame is not None:
        borrowed, run, fork = frame._replace(borrowed=True), thread.run, frame.run.fork()

        def carried() -> None:
            with entered(borrowed, fork):
                run()

        thread.run = carried  # type: ignore[method-assign]
    _before["start"](thread)


def _submit(pool: ThreadPoolExecutor, function: Callable[..., Any], /, *arguments: Any, **given: Any) -> Future[Any]:
    frame = current_frame()
    if frame is None:
        plain: Future[Any] = _before["submit"](pool, function, *arguments, **given)
        return plain
    borrowed, fork = frame._replace(borrowed=True), frame.run.fork()

    def carried(*arguments: Any, **given: Any) -> Any:
        with entered(borrowed, fork):
            return function(*arguments, **given)

    # The pool may start a worker now, and that one will work for others too: it is given nothing.
    with entered(None):
        future: Future[Any] = _before["submit"](pool, carried, *arguments, **given)
    return future
