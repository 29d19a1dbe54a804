"""Lending: work handed to another thread while a run is current records into that run.

Python hands the context on to tasks, not to threads. While this process records a run, `Thread.start` and
`ThreadPoolExecutor.submit` hand on which run is current, and nothing else; where none is current they do what they
always do, and once no run is recorded any more they are put back. A thread that outlives the run it was lent has none.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from woodrat.runs.current import current_frame, entered

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor

_lock = threading.Lock()
_recording = 0
_before: dict[str, Any] = {}


def begin() -> None:
    """Lend runs to threads, until `finish` was called as often."""
    global _recording
    from concurrent.futures import ThreadPoolExecutor

    with _lock:
        _recording += 1
        if _recording == 1:
            _before["start"], _before["submit"] = threading.Thread.start, ThreadPoolExecutor.submit
            threading.Thread.start = _start  # type: ignore[method-assign,assignment]
            ThreadPoolExecutor.submit = _submit  # type: ignore[assignment,method-assign]


def finish() -> None:
    """Put things back once nobody records any more, unless someone else has changed them meanwhile."""
    global _recording
    from concurrent.futures import ThreadPoolExecutor

    with _lock:
        _recording -= 1
        if _recording == 0:
            if threading.Thread.start is _start:
                threading.Thread.start = _before["start"]  # type: ignore[method-assign]
            if ThreadPoolExecutor.submit is _submit:
                ThreadPoolExecutor.submit = _before["submit"]  # type: ignore[method-assign]


def _start(thread: threading.Thread) -> None:
    frame = current_frame()
    if frame is not None:
        lent, run = frame._replace(lent=True), thread.run

        def within() -> None:
            with entered(lent):
                run()

        thread.run = within  # type: ignore[method-assign]
    _before["start"](thread)


def _submit(pool: ThreadPoolExecutor, function: Callable[..., Any], /, *arguments: Any, **given: Any) -> Future[Any]:
    frame = current_frame()
    if frame is None:
        found: Future[Any] = _before["submit"](pool, function, *arguments, **given)
        return found
    lent = frame._replace(lent=True)

    def within(*arguments: Any, **given: Any) -> Any:
        with entered(lent):
            return function(*arguments, **given)

    # The pool may start a worker now, and that one will work for others too: it is lent nothing.
    with entered(None):
        found = _before["submit"](pool, within, *arguments, **given)
    return found
