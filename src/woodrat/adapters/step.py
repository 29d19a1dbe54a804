"""Steps: the code that the recorders of all frameworks share.

A framework reports the start and the end of a call separately, often in two threads. A `RecordedCall` is opened on
the first and closed on the second, in a separate context, so that neither changes the current run for the code around
it. An error while recording becomes a problem of the run and never reaches the framework.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any
from weakref import WeakKeyDictionary

import woodrat


@contextmanager
def guarded(run: woodrat.Run) -> Iterator[None]:
    """Turn errors inside the block into problems of the run, unless the run raises them or is being replayed."""
    try:
        yield
    except Exception as problem:
        if run.on_error == "raise" or run.recording is not None:
            raise
        run.keep_problem(problem)


class RecordedCall:
    """One call of a tool or a model, recorded from its start event to its end event."""

    def __init__(self, run: woodrat.Run, make: Callable[[], Any], inside: RecordedCall | None = None) -> None:
        self.run = run
        """The run it is a step of."""
        self.call: Any = None
        """The `woodrat.Call`; None if it could not begin."""
        self._make = make
        self._inside = inside
        self._context: Context = copy_context()
        self._is_open = False

    def open(self) -> RecordedCall:
        """Begin the call, inside another step if one is named."""
        if self._inside is not None and self._inside.call is not None:
            self._context = self._inside.copy_context()
        with guarded(self.run):
            call = self._make()
            self._context.run(call.__enter__)
            self.call, self._is_open = call, True
        return self

    def copy_context(self) -> Context:
        """Return a context in which code runs inside this step."""
        return self._context.copy()

    @property
    def recorded(self) -> bool:
        """Whether the log has the answer, of a run that is replayed or resumed."""
        return self.call is not None and bool(self.call.recorded)

    def replayed(self) -> Any:
        """Close the step with the log's answer and return that, or raise the error that was recorded."""
        error, result = self.call.recorded_error, self.call.result
        self.close(result, error=error)
        if error is not None:
            raise error
        return result

    def close(
        self, result: object = None, *, usage: Mapping[str, int] | None = None, error: BaseException | None = None
    ) -> None:
        """Say how the call ended; only the first time counts."""
        if not self._is_open:
            return
        self._is_open = False
        with guarded(self.run):
            self.call.result = result
            if usage is not None:
                self.call.usage = usage
            self._context.run(self.call.__exit__, type(error) if error is not None else None, error, None)


class TaskStep:
    """One awaited call of a tool or a model: its effects are recorded inside this step."""

    def __init__(self, run: woodrat.Run, make: Callable[[], Any]) -> None:
        self.run = run
        """The run it is a step of."""
        self.call: Any = None
        """The `woodrat.Call`; none when it could not be begun."""
        self._make = make

    async def enter(self) -> TaskStep:
        """Begin the call."""
        with guarded(self.run):
            call = self._make()
            await call.__aenter__()
            self.call = call
        return self

    @property
    def recorded(self) -> bool:
        """Whether the log has the answer, of a run that is replayed or resumed."""
        return self.call is not None and bool(self.call.recorded)

    async def leave_replayed(self) -> Any:
        """End with the log's answer and return that, or raise the error that was recorded."""
        error, result = self.call.recorded_error, self.call.result
        await self.leave(result, error=error)
        if error is not None:
            raise error
        return result

    async def leave(
        self,
        result: object = None,
        *,
        usage: Mapping[str, int] | None = None,
        error: BaseException | None = None,
        at_once: bool = False,
    ) -> None:
        """Record the end of the call; `at_once` does not wait, as required in a task that is being cancelled."""
        if self.call is None:
            return
        with guarded(self.run):
            self.call.result = result
            if usage is not None:
                self.call.usage = usage
            how = (type(error) if error is not None else None, error, None)
            if at_once or not isinstance(error, Exception | None):
                self.call.__exit__(*how)
            else:
                await self.call.__aexit__(*how)


def tool_call(run: woodrat.Run, name: str, arguments: object) -> Any:
    """Return the call of a tool, not begun yet; arguments without names are its `input`."""
    if isinstance(arguments, dict) and all(isinstance(key, str) for key in arguments):
        return run.tool(name, **arguments)
    return run.tool(name, **({} if arguments is None else {"input": arguments}))


def tool_step(run: woodrat.Run, name: str, arguments: object, inside: RecordedCall | None = None) -> RecordedCall:
    """Return the step of a tool's call, not opened yet."""
    return RecordedCall(run, lambda: tool_call(run, name, arguments), inside)


def choose(run: woodrat.Run, stage: str, chosen: object, because: str, on: Mapping[str, Any]) -> None:
    """Record a branch that a model or a framework took, with its evidence."""
    with guarded(run):
        run.decided(stage, chosen, because=because, on=dict(on))


def begun(
    ledger: woodrat.Ledger | None, query: str, inputs: Mapping[str, Any], about: Mapping[str, Any]
) -> woodrat.Run | None:
    """Return a new run for a call of a framework; None if it cannot start."""
    if ledger is None:
        return None
    run: woodrat.Run = ledger.run(query, **{"inputs": dict(inputs), **about})
    try:
        return run.start()
    except Exception as problem:
        if run.on_error == "raise":
            raise
        run.keep_problem(problem)
        return None


_call_ids: WeakKeyDictionary[woodrat.Run, dict[str, str]] = WeakKeyDictionary()
_call_ids_lock = threading.Lock()


def call_name(run: woodrat.Run, call_id: Any) -> Any:
    """Return the number of the call in its run that an id means: ids are new every time."""
    if not isinstance(call_id, str):
        return call_id
    with _call_ids_lock:
        known = _call_ids.setdefault(run, {})
        return known.setdefault(call_id, f"call_{len(known) + 1}")


def parsed(text: object) -> Any:
    """Return the value of JSON in a text; anything else unchanged."""
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
