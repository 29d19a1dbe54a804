"""Calls: tools and models called in a run, recorded with what they were given and what came of it.

A tool marked `once` is recorded twice, when it begins and when its result is known, so that whoever resumes the run
knows of every effect that may have happened.
"""

from __future__ import annotations

from hashlib import sha256
from inspect import iscoroutine, iscoroutinefunction
from types import FunctionType, MappingProxyType, MethodType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from woodrat.canon import form
from woodrat.runs import steps, values
from woodrat.runs.facts import at_pointer, pointer_to
from woodrat.runs.recorded_values import recorded_value
from woodrat.runs.recorder import current
from woodrat.runs.recorder.current import Frame
from woodrat.runs.recorder.recorded_errors import recorded_error
from woodrat.runs.recorder.recording import UnknownOutcome
from woodrat.runs.recorder.restoration import restored
from woodrat.runs.recorder.steps import Begun, ModelPlace, milliseconds
from woodrat.runs.recorder.streams import CLOSED, Items, is_stream, read_back, stream_of, streamed
from woodrat.runs.shape import SHAPE
from woodrat.state.fact import STATED, Fact
from woodrat.state.redaction import hiding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from woodrat.canon.form import Json
    from woodrat.runs.recorder.steps import StepRecorder
    from woodrat.state.fact import Origin

P = ParamSpec("P")
Q = ParamSpec("Q")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)

NOT_CALLED = "The tool was not called."


class Call:
    """One call of a tool: what it was given, and what came of it."""

    kind = "tool"

    def __init__(
        self, run: StepRecorder | None, name: str, args: object, *, once: bool = False, redact: Iterable[str] = ()
    ) -> None:
        self.run = run
        """The run it is recorded in."""
        self.name = values.text(name)
        """The tool, or the model."""
        self._hidden = run.hiding(redact) if run is not None else hiding(values.NOTHING, redact)
        self.args = values.bounded(args, hidden=self._hidden)
        """What it was given, as recorded."""
        self.once = once
        """Whether an acknowledged effect must never be repeated."""
        self.result: Any = None
        """What it returned; inside a block, set it."""
        self.recorded = False
        """Whether the result is the log's answer, of a run that is resumed."""
        self.span: str | None = None
        """The step of the run; none when it is not recorded."""
        self.duration_ms: int | None = None
        """How long it took, where that is known from elsewhere; left out, it is measured."""
        self._begun: Begun | None = None
        self._is_announced = False
        self._stream: dict[str, Json] | None = None
        self._answer: Mapping[str, Json] | None = None
        self._load: Callable[[Any], Any] | None = None
        self._unrestorable: tuple[str, ...] = ()
        self._entered: current.Entered | None = None

    def fact(self, path: str = "") -> Fact:
        """Return a value of the result as a fact: the one a JSON Pointer such as `/score` leads to."""
        found, value = at_pointer(values.plain(self.result), path)
        name = path.rpartition("/")[2].replace("~1", "/").replace("~0", "~") if path else self.name
        return Fact(name, value, self._origin(path), missing=not found)

    def facts(self) -> dict[str, Fact]:
        """Return the members of the result as facts, by name; of a result that is no object, itself."""
        result = values.plain(self.result)
        if not isinstance(result, dict):
            return {self.name: self.fact()}
        return {name: Fact(name, value, self._origin(pointer_to(name))) for name, value in result.items()}

    def _origin(self, path: str) -> Origin:
        return STATED if self.span is None else {"kind": self.kind, "span": self.span, "path": path}

    @property
    def recorded_error(self) -> Exception | None:
        """The error that the log answers with, of a run that is resumed; a block that finds one raises it."""
        answer = self._answer
        return recorded_error(answer.get("error")) if answer is not None and answer.get("errored") is True else None

    # -- as a block

    def __enter__(self) -> Call:
        self._open(block=True)
        frame = self._frame()
        self._entered = None if frame is None else current.enter(frame)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entered is not None:
            current.leave(self._entered)
        self._close(error)

    async def __aenter__(self) -> Call:
        import asyncio

        if not self._open(block=True, announce=False):
            await asyncio.to_thread(self._announce)
        frame = self._frame()
        self._entered = None if frame is None else current.enter(frame)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        if self._entered is not None:
            current.leave(self._entered)
        await asyncio.to_thread(self._close, error)

    # -- as a function

    def perform(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...] = (),
        given: Mapping[str, Any] = MappingProxyType({}),
        load: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Call a function as this call, unless the log has its answer; return the call, or an awaitable of it."""
        self._load = load
        if is_async(function):
            return self._perform_async(function, arguments, given)
        if self.run is None:
            self.result = function(*arguments, **given)
            return self
        if self._open():
            self.answered(function)
            return self
        try:
            with current.entered(self._frame() or current.current_frame()):
                self.result = function(*arguments, **given)
        except BaseException as error:
            self._close(error)
            raise
        if iscoroutine(self.result):  # a plain function that hands on an async one's coroutine
            return self._awaited(self.result)
        return self._over()

    async def _perform_async(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        given: Mapping[str, Any],
    ) -> Call:
        """As `perform`; the ledger is written to in a worker thread, so that the loop goes on meanwhile."""
        import asyncio

        if self.run is None:
            self.result = await function(*arguments, **given)
            return self
        # At once, before others can: which of several equal calls this is depends on the order in which they begin.
        if self._open(announce=False):
            self.answered(function)
            return self
        await asyncio.to_thread(self._announce)
        return await self._awaited(function(*arguments, **given))

    async def _awaited(self, result: Awaitable[Any]) -> Call:
        import asyncio

        try:
            with current.entered(self._frame() or current.current_frame()):
                self.result = await result
        except BaseException as error:
            await asyncio.to_thread(self._close, error)
            raise
        return await asyncio.to_thread(self._over)

    def _over(self) -> Call:
        """Record how a call ended that has returned; one that returned a generator ends when that was read."""
        if not is_stream(self.result):
            self._close(None)
            return self
        items, frame, inner = Items(), self._frame() or current.current_frame(), self.result

        def finish(error: BaseException | None, returned: object) -> None:
            self.result, closed = items.value, returned is CLOSED
            kept = None if closed else values.bounded(returned, values.ITEM_BYTES_MAX, self._hidden)
            self._stream = stream_of(inner, closed=closed, returned=kept)
            self._close(error)

        self.result = streamed(inner, lambda: current.entered(frame), items, finish)
        return self

    # -- from beginning to end

    def _open(self, *, block: bool = False, announce: bool = True) -> bool:
        """Begin the call; return whether the log has its answer, so that nothing is to be done."""
        run = self.run
        assert run is not None
        if self.kind == Call.kind:
            run.called[self.name] = run.called.get(self.name, 0) + 1
        if run.recording is not None:
            answer = self._recorded_answer()
            if answer is not None:
                if run.recording.copies:
                    return self._copied(answer, block)
                self.span = str(answer["span"])
                if answer.get("begun") is True:
                    return self._settled(answer)
                self._answer = answer
                self.recorded = True
                self.result = self._restored(answer)
                if not block:
                    run.recording.answered_whole(answer)
                return not block
        self._begun = run.begin_step()
        if self._begun is not None:
            self.span = self._begun.span
            if announce:
                self._announce()
        return False

    def _copied(self, answer: Mapping[str, Json], block: bool) -> bool:
        """Answer from the recording of another run, and record the call in this one."""
        run = self.run
        assert run is not None
        assert run.recording is not None
        self._answer, self.recorded, self.result = answer, True, self._restored(answer)
        self._begun = run.begin_step()
        self.span = None if self._begun is None else self._begun.span
        if not block and self._begun is not None:
            run.record_step(f"run.{self.kind}", self._begun, run.recording.copied(answer, self._begun, run.id))
            run.recording.answered_whole(answer)
            run.recording.copy_inside(run, answer.get("span"), self._begun.span)
        return not block

    def _announce(self) -> None:
        """Record that a call begins whose effect must not be repeated."""
        if self.once and self._begun is not None and self.run is not None and not self._is_announced:
            self._is_announced = True
            self.run.record_step(f"run.{self.kind}", self._begun, {**self._body(), "begun": True})

    def _settled(self, answer: Mapping[str, Json]) -> bool:
        """Carry on a call that has only begun, in its old place: with the result found out for it, or live."""
        run, under = self.run, answer.get("under")
        assert run is not None
        step, at = answer["step"], str(answer["started_at"])
        assert isinstance(step, int)
        self._is_announced = True
        self._begun = Begun(step, str(self.span), at, under if isinstance(under, str) else None, run.agent)
        if "result" not in answer:
            return False
        self.result = answer["result"]
        self._close(None)
        self._answer = answer
        return True

    def _close(self, error: BaseException | None) -> None:
        """Record how the call ended; not where it ended by a call inside whose outcome is unknown."""
        run = self.run
        assert run is not None
        if isinstance(error, UnknownOutcome):
            return
        body: dict[str, Json] = {"errored": error is not None}
        if error is not None:
            body["error"] = values.error(error)
        if error is None or self._stream is not None:
            body.update(self._outcome())
        if self._stream is not None:
            body["stream"] = self._stream
        if self._answer is not None:
            # A block cannot be left out; what it did again is only recorded when it came out differently.
            recording = run.recording
            assert recording is not None
            is_edited = recording.is_edited(self._answer) and error is None
            if is_edited or all(self._answer.get(name) == value for name, value in body.items() if name != SHAPE):
                if is_edited:
                    self.result = self._restored(self._answer)
                run.note_result(self.kind, str(self.span), self._kept(self._answer))
                if recording.copies and self._begun is not None:
                    run.record_step(
                        f"run.{self.kind}", self._begun, recording.copied(self._answer, self._begun, run.id)
                    )
                return
            recording.differed(self.kind, self.name, self._answer, body)
            self.recorded = False
            if not recording.copies:
                self._begun = run.begin_step()
                self.span = None if self._begun is None else self._begun.span
        if self._begun is None:
            return
        measured = milliseconds(self._begun.at, run.log.clock.now())
        body["duration_ms"] = measured if self.duration_ms is None else self.duration_ms
        run.note_result(self.kind, self._begun.span, self._kept(body))
        if self._unrestorable and self._load is None:  # what a function makes from JSON needs no type
            run.keep_unrestored(self._named(), self._begun.step, self._unrestorable)
        run.record_step(f"run.{self.kind}", self._begun, {**self._body(), **body})

    def _frame(self) -> Frame | None:
        """Return where the code of the call runs."""
        return None if self.run is None or self.span is None else Frame(self.run, self.span)

    def _body(self) -> dict[str, Json]:
        """Return what all entries of the call say."""
        assert self._begun is not None and self.run is not None
        said: dict[str, Json] = {**self._begun.body(self.run.id), "name": self.name, "args": self.args}
        if further := self.run.hidden_further(self._hidden):
            said["redact"] = further
        return {**said, "once": True} if self.once else said

    def _outcome(self) -> dict[str, Json]:
        return self._recorded("result")

    def _recorded(self, name: str) -> dict[str, Json]:
        """Return what an entry says of the result: its JSON, and its shape where that alone would not give it back."""
        json, shape, self._unrestorable = recorded_value(self.result, values.RESULT_BYTES_MAX, self._hidden)
        return {name: json} if shape is None else {name: json, SHAPE: shape}

    def _restored(self, answer: Mapping[str, Json]) -> Any:
        """Return the result that the log answers with as it was; as JSON where a function makes it from that."""
        assert self.run is not None
        made = restored(self._kept(answer), answer.get(SHAPE), typed=self._load is None)
        if made.problems:
            self.run.keep_unrestored(self._named(), answer.get("step"), made.problems)
        return made.value

    def _named(self) -> str:
        return f"{self.kind} {self.name}"

    def _kept(self, body: Mapping[str, Json]) -> Json:
        """Return the result as recorded."""
        return body.get("result")

    def _recorded_answer(self) -> Mapping[str, Json] | None:
        assert self.run is not None and self.run.recording is not None
        return self.run.recording.tool(self.name, self.args, once=self.once)

    def answered(self, function: Callable[..., Any]) -> None:
        """Give the log's answer: the recorded result, or the recorded error raised again."""
        assert self._answer is not None and self.run is not None
        stream, error = self._answer.get("stream"), self.recorded_error
        if error is not None and stream is None:
            raise error
        self.run.note_result(self.kind, str(self.span), self._kept(self._answer))
        if self._load is not None:
            self.result = self._load(self.result)
        self.result = read_back(function, self.result, stream, error, self._read_on)

    def _read_on(self) -> None:
        """Hear that a stream is read further than when it was recorded."""
        assert self.run is not None and self.run.recording is not None and self._answer is not None
        self.run.recording.read_on(self.kind, self.name, self._answer)


class LiveModelCall(Call):
    """One call of a model: the request's digest, the response, what it cost."""

    kind = "model"

    def __init__(
        self,
        run: StepRecorder,
        name: str,
        args: Json,
        *,
        request: str,
        messages: Json,
        parameters: Json,
        usage: Mapping[str, int] | None,
        sent: object = None,
    ) -> None:
        super().__init__(run, name, args)
        self._sent = sent
        self._takes_prompt = False
        self._is_prompt_edited = False
        self.request = request
        """Hex SHA-256 of the canonical request."""
        self.messages = messages
        self.parameters = parameters
        self.usage: Mapping[str, Any] | None = usage
        """What it cost, as `{"input", "output"}` tokens; taken from the response where it says so."""

    @property
    def response(self) -> Any:
        """What the model answered: the `result` of the call, by the name that the record has for it."""
        return self.result

    @response.setter
    def response(self, value: Any) -> None:
        self.result = value

    def _body(self) -> dict[str, Json]:
        assert self._begun is not None and self.run is not None
        said: dict[str, Json] = {**self._begun.body(self.run.id), "model": self.name, "request": self.request}
        if self.messages is not None:
            said["messages"] = self.messages
        return {**said, "parameters": self.parameters} if self.parameters else said

    def _outcome(self) -> dict[str, Json]:
        body = self._recorded("response")
        response = body["response"]
        if values.is_mark(response):  # it was cut, and what it cost is in the whole of it
            response = values.plain(self.result, self._hidden)
        usage = usage_of(self.usage) or usage_of(response.get("usage") if isinstance(response, dict) else None)
        if usage:
            body["usage"] = usage
            if self._answer is None and self.run is not None:
                self.run.note_usage(usage)
        return body

    def _kept(self, body: Mapping[str, Json]) -> Json:
        return body.get("response")

    def _recorded_answer(self) -> Mapping[str, Json] | None:
        assert self.run is not None and self.run.recording is not None
        return self.run.recording.model(self.name, self.request, self.messages, self.parameters)

    @property
    def prompt(self) -> Any:
        """The messages to send: those given to `run.model`, or in a fork those that were edited."""
        self._takes_prompt = True
        return self._sent

    def perform(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...] = (),
        given: Mapping[str, Any] = MappingProxyType({}),
        load: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Call a function as this call; one that takes an argument is given the messages."""
        if not arguments and takes_argument(function):
            self._takes_prompt = True
            # Read when the function is called: only then it is known whether the prompt is edited.
            return super().perform(function, cast("Any", _Prompt(self)), given, load)
        return super().perform(function, arguments, given, load)

    def _edit_prompt(self, messages: Json, block: bool) -> None:
        """Send other messages than the agent asked to, in a fork."""
        assert self.run is not None
        if not block and not self._takes_prompt:
            self._refuse_prompt("its function takes no argument")
        asked = {"messages": messages, "model": self.name, "parameters": self.parameters}
        self.request = sha256(form.serialise(values.plain(asked, self._hidden))).hexdigest()
        self.messages = values.bounded(messages, hidden=self._hidden)
        self._sent, self._is_prompt_edited = messages, True

    def _refuse_prompt(self, problem: str) -> None:
        assert self.run is not None
        assert self.run.recording is not None
        remedy = "write run.model(name, lambda messages: …, messages=…), or send call.prompt inside a block"
        self.run.recording.stop(f"the edited prompt cannot reach model {self.name}, as {problem}; {remedy}")

    def _open(self, *, block: bool = False, announce: bool = True) -> bool:
        if self.run is not None and self.run.recording is not None:
            messages = self.run.recording.prompt(self.name, self.request)
            if messages is not None:
                self._edit_prompt(messages, block)
        is_answered = super()._open(block=block, announce=announce)
        if not is_answered and self.span is not None:
            self._note_place(self.span)  # what is chosen inside of the call is chosen by it
        return is_answered

    def _close(self, error: BaseException | None) -> None:
        super()._close(error)
        if error is None:
            self._note_place()
            if self._is_prompt_edited and not self._takes_prompt:
                self._refuse_prompt("its block did not ask for call.prompt")

    def _note_place(self, *spans: str) -> None:
        """Let the run know that this model was called last, inside the step around it and in all."""
        run, step, under = self.run, None, None
        if self._begun is not None:
            step, under = self._begun.step, self._begun.under
        elif self._answer is not None:
            step, under = steps.whole(self._answer.get("step")), steps.text(self._answer.get("under"))
        if run is not None and self.span is not None and step is not None:
            run.note_model(ModelPlace(self.name, self.span, step), *(spans or (under or run.span, "")))

    def answered(self, function: Callable[..., Any]) -> None:
        super().answered(function)
        self._note_place()
        usage = self._answer.get("usage") if self._answer is not None else None
        if isinstance(usage, dict) and self.run is not None:
            self.run.note_usage(usage)


class _Prompt:
    """The messages of a call as the arguments of a function."""

    def __init__(self, call: LiveModelCall) -> None:
        self._call = call

    def __iter__(self) -> Iterator[Any]:
        yield self._call.prompt


def takes_argument(function: Callable[..., Any]) -> bool:
    """Return whether a function needs an argument; only plain functions and methods are looked at."""
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    own = 1 if isinstance(function, MethodType) else 0
    defaults = getattr(function, "__defaults__", None) or ()
    return bool(code.co_argcount - own - len(defaults) > 0)


def usage_of(found: object) -> dict[str, Json]:
    """Return tokens read and written, by whichever names a provider gives them."""
    usage = values.plain(found) if found is not None else None
    if not isinstance(usage, dict):
        return {}
    names = {
        "input": ("input", "input_tokens", "prompt_tokens"),
        "output": ("output", "output_tokens", "completion_tokens"),
    }
    said: dict[str, Json] = {}
    for ours, theirs in names.items():
        count = next((usage[name] for name in theirs if type(usage.get(name)) is int), None)
        if count is not None:
            said[ours] = count
    return said


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling a function gives a coroutine."""
    if type(function) is FunctionType:
        return iscoroutinefunction(function)
    return iscoroutinefunction(function) or iscoroutinefunction(getattr(type(function), "__call__", None))  # noqa: B004
