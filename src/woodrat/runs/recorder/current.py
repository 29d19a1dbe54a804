"""The current run: which run this task, thread or process is in, and which runs this process records.

It is the one ambient value. Tasks and nested calls inherit it by themselves. A thread has none unless it is carried
there: by `run.thread`, `run.executor` and `carry`, or by all threads when asked for (`threads.py`). Another process is
told by the variables of `run.environment()` and picks the run up with `ledger.runs.continue_()`, or as the parent of
its own.
"""

from __future__ import annotations

import os
import threading
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar, cast
from weakref import WeakValueDictionary

from woodrat.runs import trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.context import Context

P = ParamSpec("P")
T = TypeVar("T")


class Frame(NamedTuple):
    """Where code is running: in which run, inside which step of it."""

    run: Any
    """The run (`steps.StepRecorder`), which knows of frames itself."""
    span: str
    borrowed: bool = False
    """Whether a thread has it without having asked; it is worth nothing once the run has ended."""


_current: ContextVar[Frame | None] = ContextVar("woodrat_run", default=None)
_last: ContextVar[tuple[str, str] | None] = ContextVar("woodrat_step", default=None)
"""The run, and the step of it that this thread or task took last: it tells equal calls of several threads apart."""


LIVE: Final = "live"
"""What a thread or task comes after once it has asked for a step that the log does not hold."""


class Entered(NamedTuple):
    """What was current before a frame was entered."""

    frame: Token[Frame | None]
    step: tuple[str, str] | None


def last_step(run: str, start: str) -> str:
    """Return the span of the step that a run took last in this thread or task; `start` where there is none."""
    last = _last.get()
    return start if last is None or last[0] != run else last[1]


def mark_step(run: str, span: str) -> None:
    """Note which step a run takes in this thread or task."""
    _last.set((run, span))


def current_frame() -> Frame | None:
    """Return the current run and the step inside which it is."""
    frame = _current.get()
    if frame is None or frame.run.is_aside:
        return None
    return None if frame.borrowed and frame.run.has_ended else frame


def recorder_around() -> Any:
    """Return the run inside which a run is begun, also one that stands in for it until then; none outside of one."""
    frame = _current.get()
    return None if frame is None or (frame.borrowed and frame.run.has_ended) else frame.run


def write_context(context: Context) -> Context:
    """Return the context in which a caller's write is carried out.

    It is the one given, unless the current run is a replay on the same log: then the recording takes the write.
    """
    frame = _current.get()
    recording = None if frame is None or context.stand_in is not None else frame.run.recording
    if frame is None or recording is None or not recording.replays:
        return context
    home: Context = frame.run.log.context
    if not home.is_same_log(context):
        return context
    return context.taken_by(recording)


def check_write(what: str) -> None:
    """Stop the agent of a replay that is about to write something to a server: nothing of a replay goes out."""
    frame = _current.get()
    recording = None if frame is None else frame.run.recording
    if recording is not None and recording.replays:
        recording.refuse_write(what)


class entered:
    """Make a frame the current one inside the block, as a context."""

    __slots__ = ("_entered", "_fork", "_frame")

    def __init__(self, frame: Frame | None, fork: str | None = None) -> None:
        self._frame = frame
        self._fork = fork
        """Which thread of the run this is, where it is one: what its first step comes after."""

    def __enter__(self) -> None:
        self._entered = Entered(_current.set(self._frame), _last.get())
        if self._fork is not None and self._frame is not None:
            mark_step(self._frame.run.id, self._fork)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        leave(self._entered)


def enter(frame: Frame) -> Entered:
    """Make a frame the current one until `leave` is called with what this returns."""
    return Entered(_current.set(frame), _last.get())


def leave(entered: Entered) -> None:
    """Make the frame before the current one again."""
    token = entered.frame
    _last.set(entered.step)
    try:
        _current.reset(token)
    except ValueError:
        # Left in another context than it was entered in, as async generators are: that one has its own frame.
        _current.set(None if token.old_value is Token.MISSING else token.old_value)


def carry(function: Callable[P, T]) -> Callable[P, T]:
    """Return `function` so that it runs in the run that is current now, whichever thread calls it, and how often.

    `pool.map(woodrat.carry(work), items)` and `Thread(target=woodrat.carry(work))` record into this run.
    """
    from functools import wraps
    from inspect import iscoroutinefunction

    frame = _current.get()
    fork = None if frame is None else frame.run.fork()
    if iscoroutinefunction(function):

        @wraps(function)
        async def carried_async(*arguments: P.args, **given: P.kwargs) -> Any:
            with entered(frame, fork):
                return await function(*arguments, **given)

        return cast("Callable[P, T]", carried_async)

    @wraps(function)
    def carried(*arguments: P.args, **given: P.kwargs) -> T:
        with entered(frame, fork):
            return function(*arguments, **given)

    return carried


async def in_thread(function: Callable[P, T], *arguments: P.args, **given: P.kwargs) -> T:
    """Call a function in a worker thread, as `asyncio.to_thread` does; the step it takes is one of this task."""
    import asyncio
    from contextvars import copy_context
    from functools import partial

    context = copy_context()
    call: Callable[[], T] = partial(context.run, function, *arguments, **given)
    try:
        return await asyncio.get_running_loop().run_in_executor(None, call)
    finally:
        _last.set(context.get(_last))


def named_by_environment() -> tuple[trace.Place | None, str | None]:
    """Return the run that this process's environment names, and its `traceparent` where that is all there is."""
    return trace.named_by(os.environ)


# -- runs that this process records; any other run without an end reads as interrupted ---------------------------------

_recorders: WeakValueDictionary[str, object] = WeakValueDictionary()
_recorders_lock = threading.Lock()


def add_recorder(run: str, recorder: object, is_same: Callable[[object], bool]) -> bool:
    """Note that a recorder of this process records a run, until it is removed or gone.

    Return whether it was noted: not when there is a recorder of the same run already.
    """
    with _recorders_lock:
        before = _recorders.get(run)
        if before is not None and is_same(before):
            return False
        _recorders[run] = recorder
        return True


def remove_recorder(run: str, recorder: object) -> None:
    """Note that a recorder no longer records a run."""
    with _recorders_lock:
        if _recorders.get(run) is recorder:
            del _recorders[run]


def recorder_of(run: str) -> object | None:
    """Return what records a run in this process."""
    return _recorders.get(run)


def is_recorded(run: str) -> bool:
    """Return whether this process is recording a run."""
    return run in _recorders


def recorded_runs() -> list[str]:
    """Return the runs that this process is recording."""
    return list(_recorders)
