"""Ambient: which run is current, in this task, thread and process, and how it reaches others.

Tasks and nested calls inherit the current run by themselves, and so do threads and pools that are handed work inside it
(`lending.py`). Work that is made now and handed over elsewhere takes it along by `carry`. Another process is told by
the variables of `run.environment()` and picks the run up with `ledger.continue_run()`, or as the parent of its own.
"""

from __future__ import annotations

import os
import re
from contextvars import ContextVar, Token, copy_context
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar, cast

from woodrat.canon.digest import base32, unbase32

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor

    from woodrat.context import Context, StandIn
    from woodrat.runs.recorder import Run

P = ParamSpec("P")
T = TypeVar("T")

RUN_VARIABLE: Final = "WOODRAT_RUN"
"""Names the current run to other processes: its id, a slash, and the span it is at."""
AGENT_VARIABLE: Final = "WOODRAT_AGENT"
"""Names the run's owner to other processes: only this agent records in the run."""
TRACE_VARIABLE: Final = "TRACEPARENT"
"""The same as W3C Trace Context writes it; other tracers set it too."""

_SPAN = re.compile("[0-9a-f]{16}")
_TRACE_ID = re.compile("[0-9a-f]{32}")
_TRACE = re.compile("([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class Frame(NamedTuple):
    """Where code is running: in which run, inside which step of it."""

    run: Run
    span: str
    lent: bool = False
    """Whether a thread has it from the one that started it; it is worth nothing once the run has ended."""


_current: ContextVar[Frame | None] = ContextVar("woodrat_run", default=None)


def current_frame() -> Frame | None:
    """Return the current run and the step inside which it is."""
    frame = _current.get()
    return None if frame is not None and frame.lent and frame.run.has_ended else frame


def current_run() -> Run | None:
    """Return the run that `decide`, `select` and tools record into here; none outside of one."""
    frame = current_frame()
    return None if frame is None else frame.run


def write_context(context: Context) -> Context:
    """Return the context in which a caller's write is carried out.

    It is the one given, unless the current run is a replay on the same log: then the recording takes the write.
    """
    frame = _current.get()
    recording = None if frame is None or context.stand_in is not None else frame.run.recording
    if frame is None or recording is None or not recording.replays:
        return context
    home: Context = frame.run.ledger.context
    if home.engine is not context.engine or home.tenant != context.tenant:
        return context
    return context.taken_by(cast("StandIn", recording))


class entered:
    """Make a frame the current one inside the block, as a context."""

    __slots__ = ("_frame", "_token")

    def __init__(self, frame: Frame | None) -> None:
        self._frame = frame

    def __enter__(self) -> None:
        self._token = _current.set(self._frame)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        leave(self._token)


def enter(frame: Frame) -> Token[Frame | None]:
    """Make a frame the current one until `leave` is called with what this returns."""
    return _current.set(frame)


def leave(token: Token[Frame | None]) -> None:
    """Make the frame before the current one again."""
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
    if iscoroutinefunction(function):

        @wraps(function)
        async def carried_async(*arguments: P.args, **given: P.kwargs) -> Any:
            with entered(frame):
                return await function(*arguments, **given)

        return cast("Callable[P, T]", carried_async)

    @wraps(function)
    def carried(*arguments: P.args, **given: P.kwargs) -> T:
        with entered(frame):
            return function(*arguments, **given)

    return carried


def carrying_executor(frame: Frame, workers_max: int | None) -> Executor:
    """Return a pool of threads whose work runs in the frame, or in the one that is current where it is submitted."""
    from concurrent.futures import Future, ThreadPoolExecutor

    class Carrying(ThreadPoolExecutor):
        """A pool of threads that carries the context of whoever submits."""

        def submit(self, function: Callable[..., T], /, *arguments: Any, **given: Any) -> Future[T]:
            with entered(current_frame() or frame):
                context = copy_context()  # one for each: a context runs one thing at a time
            return super().submit(context.run, function, *arguments, **given)

    return Carrying(workers_max, thread_name_prefix="woodrat-run")


# -- other processes --------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A run, and a step of it, as another process names it."""

    run: str
    span: str | None


def place_of(text: str) -> Place:
    """Return what `WOODRAT_RUN` names: a run's id, and after a slash the span of a step."""
    run, _, span = text.strip().partition("/")
    return Place(run, span if _SPAN.fullmatch(span) else None)


def traced(text: object) -> Place | None:
    """Return the run and span that a W3C `traceparent` would name, or none when it is not one."""
    match = _TRACE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or match[1] == "ff" or not int(match[2], 16) or not int(match[3], 16):
        return None
    return Place(run_of(match[2]), match[3])


def run_of(trace: str) -> str:
    """Return the run whose id spells a trace id, as that of a run which was recorded by the library does."""
    return f"run_{base32(bytes.fromhex(trace))}"


def trace_of(text: object) -> str | None:
    """Return the trace id of a `traceparent`, or of a trace id itself; none when it is neither."""
    if isinstance(text, str) and _TRACE_ID.fullmatch(text):
        return text
    return None if traced(text) is None else str(text).strip().split("-")[1]


def trace_id(run: str) -> str:
    """Return the trace id of a run: the 16 bytes its id spells, or a digest of an id that spells others."""
    data = unbase32(run.removeprefix("run_"))
    return (data if data is not None and len(data) == 16 else sha256(run.encode()).digest()[:16]).hex()


def traceparent(trace: str, span: str) -> str:
    """Return a W3C `traceparent`, sampled."""
    return f"00-{trace}-{span}-01"


def named_by_environment(environment: Mapping[str, str] | None = None) -> tuple[Place | None, str | None]:
    """Return the run that the process's environment names, and its `traceparent` where that is all there is."""
    found = os.environ if environment is None else environment
    if named := found.get(RUN_VARIABLE):
        return place_of(named), None
    trace = found.get(TRACE_VARIABLE)
    return None, trace if traced(trace) else None
