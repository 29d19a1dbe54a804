"""Runs: one execution of an agent, recorded as it happens."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.errors import Fault, Refused, shown
from woodrat.records import replace
from woodrat.runs import trace, values
from woodrat.runs.facts import READS
from woodrat.runs.recorder import current, threads
from woodrat.runs.recorder.calls import Call, LiveModelCall
from woodrat.runs.recorder.current import Frame
from woodrat.runs.recorder.decisions import make_choice, make_decision
from woodrat.runs.recorder.reads import RunPast
from woodrat.runs.recorder.recalls import RECALL, RecallFound, RecordedRecall, recall_body
from woodrat.runs.recorder.recording import UnknownOutcome
from woodrat.runs.recorder.steps import (
    ENDED,
    NEW,
    NOTE,
    NOTHING_RECORDED,
    RAISE,
    RUNNING,
    MissingFact,
    StepRecorder,
    UnrestoredValue,
    current_recorder,
    milliseconds,
    refused,
)
from woodrat.runs.recorder.tools import arguments_of, perform, recipe_of, signature_of
from woodrat.runs.recorder.writes import RunWrites
from woodrat.runs.rules import DECIDE
from woodrat.runs.rules import RAISE as FAIL
from woodrat.runs.steps import SELECT
from woodrat.runs.values import ITEM_BYTES_MAX, VALUE_BYTES_MAX
from woodrat.state.fact import Fact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager
    from threading import Thread
    from types import TracebackType

    from woodrat.canon.form import Json
    from woodrat.ledger.report import Report
    from woodrat.runs.recorder.beginning import Beginning
    from woodrat.runs.recorder.steps import Begun, RunLog
    from woodrat.runs.rules import Rule, Verdict

DONE, ERROR, CANCELLED = "done", "error", "cancelled"
STATUSES: Final = (DONE, ERROR, CANCELLED)
"""How a run can end."""

PROBLEMS_SAID_MAX: Final = 20
"""How many problems the end of a run says."""


class Run(RunPast, RunWrites, StepRecorder):
    """One execution of an agent, being recorded; a context manager, `async with` too.

    Inside its block it is the current run: `woodrat.decide`, `woodrat.select` and tools record into it. Reads and
    writes through it are part of it; those through the ledger are not.
    """

    def __init__(
        self,
        log: RunLog,
        beginning: Beginning,
        *,
        id: str | None = None,
        redact: Iterable[str] = (),
        on_error: str = NOTE,
    ) -> None:
        StepRecorder.__init__(self, log, beginning, id=id, redact=redact, on_error=on_error)
        RunPast.__init__(self, None, log.reads, None)
        self._tokens: list[current.Entered] = []
        self._answer: tuple[object] | None = None
        self.error: BaseException | None = None
        """What ended it, where that was an error."""

    # ------------------------------------------------------------------------------------------ what it is

    @property
    def recorder(self) -> Run:
        """The run that reads: itself."""
        return self  # not kept: a run that nobody holds any more is gone at once, and reads as interrupted

    @property
    def ledger(self) -> Any:
        """The ledger it is recorded in; what is read or written through that is not part of the run."""
        return self.log.ledger

    @property
    def asked(self) -> str:
        """What was asked: the query it was begun with."""
        return self.beginning.query

    @property
    def subject(self) -> str | None:
        """The entity it is about."""
        return self.beginning.subject

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What it was given, as plain values; `input` gives one with its origin."""
        return self.beginning.inputs

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.state == ENDED

    def input(self, name: str) -> Fact:
        """Return an input as a fact: its value, and that it came from the inputs."""
        given = self.beginning.inputs
        value = values.plain(given[name]) if name in given else None
        return Fact(name, value, {"kind": "input", "name": name}, missing=name not in given)

    def pinned(self) -> RunPast:
        """Return the state the run began with: recorded reads that show the same however long it runs."""
        if self.basis is None:
            raise Refused([Fault("run", f"{self.id} has no basis", "Start the run first.")], "Nothing was read.")
        return RunPast(self, self.log.reads.at(self.basis), self.basis)

    # ------------------------------------------------------------------------------------------ from start to end

    def start(self) -> Run:
        """Begin the run, for callers that cannot use `with`; it is not the current run by that."""
        with self.lock:
            if self.state != NEW:
                raise refused(self.id, "it has started already", "Start a run of its own with ledger.run.")
            self.state = RUNNING
        if self._adopted():
            return self
        try:
            self.log.start(self)
        except BaseException:
            self.release()
            self.state = NEW
            raise
        self.keep_unrestored("inputs", None, self.beginning.shaped_inputs(self.hidden)[2])
        self.recording = self.inherited
        return self

    def _adopted(self) -> bool:
        """Take the place of a run that was started here before, when that or the run around it is on record."""
        around: StepRecorder | None = current.recorder_around()
        if around is None or around.recording is None:
            return False
        if around.recording.copies and around.is_aside and around.successor is None:
            around.successor, self.inherited = self, around.recording
            self.beginning = replace(self.beginning, forked_from=around.beginning.forked_from)
            self.move_to(around.log)
            return False
        if around.successor is None and around.recording.is_begun_by(self.told(), certain=around.is_aside):
            around.hand_over(self)
            self.log.adopted(around.log)
            return True
        if around.is_aside:  # the agent's function goes on after its run, or beside it
            around.recording.passed()
            return False
        # Inside a replay no run is begun, wherever it would be recorded.
        if self.inherited is not None:
            return False
        if not around.recording.replays and (self.has_stated_id or not around.log.is_same(self.log)):
            return False
        recording = around.recording.child(self.log, self.told())
        if recording is None:
            return False
        if recording.copies:
            self.inherited = recording
            return False
        if recording.replays:
            self.move_to(around.log)
        self.take_over(recording)
        self.log.adopted(around.log)
        return True

    def move_to(self, log: RunLog) -> None:
        """Be recorded in another log than the one it was made for, before it starts."""
        super().move_to(log)
        self._reads = self.log.reads

    def end(
        self,
        status: str = DONE,
        *,
        answer: object = None,
        error: BaseException | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> None:
        """End the run, for callers that cannot use `with`. A run ends once."""
        if status not in STATUSES:
            remedy = f"Use one of {', '.join(STATUSES)}."
            raise Refused([Fault("status", f"unknown status of a run: {shown(status)}", remedy)], NOTHING_RECORDED)
        with self.lock:
            if self.state == NEW:
                raise refused(self.id, "it has not started", "Start it first.")
            if self.state == ENDED:
                raise refused(self.id, "it has ended already", "A run ends once; judge it, or start another.")
            if answer is not None:
                self._answer = (answer,)
            begun = self.take_number()
            self.state = ENDED
            self.status, self.error = status, error
        try:
            self._end(begun, status, error, usage)
        finally:
            # Only now: a run that nobody records and that has no end on record would be an interrupted one.
            self.release()

    def _end(self, begun: Begun, status: str, error: BaseException | None, usage: Mapping[str, int] | None) -> None:
        if self.recording is not None and self.recording.has_ended:
            return
        failure = self.log.end(self, begun, self._ending(begun, status, error, usage))
        if isinstance(failure, Refused):
            raise failure
        self.settle(failure)

    def _ending(
        self, begun: Begun, status: str, error: BaseException | None, usage: Mapping[str, int] | None
    ) -> dict[str, Json]:
        """Return what the entry of its end says."""
        body: dict[str, Json] = {**begun.body(self.id), "status": status}
        if self._answer is not None:
            body["answer"] = values.bounded(self._answer[0], hidden=self.hidden)
        if error is not None:
            body["error"] = values.error(error)
        counted = dict(usage) if usage is not None else {name: count for name, count in self.usage.items() if count}
        if counted:
            body["usage"] = values.bounded(counted)
        if self.started_at is not None:
            body["duration_ms"] = milliseconds(self.started_at, begun.at)
        if self.problems:
            body["problems"] = [values.text(_worded(each)) for each in self.problems[:PROBLEMS_SAID_MAX]]
        return body

    def __enter__(self) -> Run:
        if self.state != RUNNING:
            self.start()
        self._tokens.append(current.enter(Frame(self, self.under or self.span)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        current.leave(self._tokens.pop())
        self.finish(error)

    async def __aenter__(self) -> Run:
        import asyncio

        if self.state != RUNNING:
            await asyncio.to_thread(self.start)
        self._tokens.append(current.enter(Frame(self, self.under or self.span)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        current.leave(self._tokens.pop())
        await asyncio.to_thread(self.finish, error)

    def finish(self, error: BaseException | None) -> None:
        """End the run as its block ended; one that was ended inside, or is only continued here, stays as it is."""
        if self.state != RUNNING:
            return
        if self.is_aside:  # it was to be begun by the agent's function, and was not
            self.release()
            return
        if isinstance(error, UnknownOutcome):  # it can be resumed once the outcome is known
            self.release()
            return
        if not self.ends:
            self.release()
            if self._answer is not None:
                remedy = "Continue the run with ends=True, or call end(), where it is to be answered."
                self.settle(refused(self.id, "its answer was given where it does not end", remedy))
            return
        status, cause = ended_by(error)
        try:
            self.end(status, error=cause)
        except Exception as problem:
            if self.on_error == RAISE and error is None:
                raise
            self.keep_problem(problem)  # the agent's own exception is the one to be seen

    def flush(self) -> bool:
        """Try once more to record what could not be; return whether nothing waits any more."""
        self.settle(self.log.flush(self))
        return not self.log.is_waiting

    def current(self) -> AbstractContextManager[None]:
        """Make the run the current one inside a block, without starting or ending it."""
        return current.entered(Frame(self, self.span))

    # ------------------------------------------------------------------------------------------ other places

    def thread(
        self,
        target: Callable[..., object],
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        daemon: bool | None = None,
    ) -> Thread:
        """Return a `threading.Thread`, not started yet, in which this run is the current one."""
        return threads.thread(Frame(self, self.place()), target, args, kwargs, name, daemon)

    def executor(self, max_workers: int | None = None) -> Executor:
        """Return a pool of threads whose work runs in this run."""
        return threads.executor(Frame(self, self.place()), max_workers)

    @property
    def traceparent(self) -> str:
        """Where the run is, as W3C Trace Context writes it; for headers of requests to others."""
        return trace.traceparent(self.trace or trace.trace_id(self.id), self.place())

    def environment(self) -> dict[str, str]:
        """Return the variables that name the run to a process started from here."""
        return {
            trace.RUN_VARIABLE: f"{self.id}/{self.place()}",
            trace.AGENT_VARIABLE: self.agent,
            trace.TRACE_VARIABLE: self.traceparent,
        }

    # ------------------------------------------------------------------------------------------ what it does

    def decide(
        self,
        stage: str,
        facts: object,
        rules: Iterable[Rule | Mapping[str, Any]],
        default: Any = None,
        *,
        rationale: str | None = None,
        redact: Iterable[str] = (),
        on_missing: str = FAIL,
    ) -> Verdict:
        """Take the first branch whose rule matches the facts, and record what was looked at.

        A rule that asks for a fact that is missing, and before which none matches, is `Refused`: nothing is decided,
        and the run says why. With `on_missing="skip"` such rules are skipped.
        """
        return make_decision(self, DECIDE, stage, facts, rules, default, rationale, redact, on_missing)

    def select(
        self,
        stage: str,
        facts: object,
        rules: Iterable[Rule | Mapping[str, Any]],
        default: Any = None,
        *,
        rationale: str | None = None,
        redact: Iterable[str] = (),
        on_missing: str = FAIL,
    ) -> Verdict:
        """Take every branch whose rule matches the facts, and record what was looked at.

        Any rule that asks for a fact that is missing is `Refused`: nothing is decided, and the run says why. With
        `on_missing="skip"` such rules are skipped.
        """
        return make_decision(self, SELECT, stage, facts, rules, default, rationale, redact, on_missing)

    def decided(
        self,
        stage: str,
        chosen: Any,
        *,
        because: str | None = None,
        on: object = (),
        model: str | None = None,
        redact: Iterable[str] = (),
    ) -> Verdict:
        """Record a choice that no rule made: a model's own, or the agent's, with the facts it is based on.

            run.decided("plan", "Postgres", because="many writers", on=[loan, call.fact("/score"), {"writers": 40}])

        `on` is a list of facts: snapshots, calls, values from `.fact()`, verdicts, what was recalled, values by name.
        It was chosen by `model`, default: the model that was called last, in the same step or in the run; in a run
        without one, by the agent itself. What such a choice would be on other facts is unknown.
        """
        return make_choice(self, stage, chosen, because, on, model, redact)

    def tool(self, name: str, function: Callable[..., Any] | None = None, /, *arguments: Any, **given: Any) -> Any:
        """Call a tool and record it: arguments, result or error, duration. Returns the `Call`.

        With a function it is called at once, and `call.result` is what it returned; of an async function an awaitable
        of the call. Without one the call is a context manager: set `call.result` inside its block.

            call = run.tool("bureau", lookup, application_id)
            with run.tool("bureau", application_id="42") as call:
                call.result = fetch("42")
        """
        if function is None:
            return Call(self, name, given)
        recipe = replace(recipe_of(function), name=name)
        args = arguments_of(signature_of(recipe.function), arguments, given)
        return perform(self, recipe, args, arguments, given)

    def model(
        self,
        model: str,
        function: Callable[..., Any] | None = None,
        /,
        *,
        messages: object = None,
        parameters: Mapping[str, Any] | None = None,
        request: object = None,
        response: object = None,
        usage: Mapping[str, int] | None = None,
    ) -> Any:
        """Call a model and record it: request digest, response, parameters, usage. Returns the `Call`.

        With a function it is called at once, or answered from the log when the run is resumed; one that takes an
        argument is given the messages, which a fork may edit. With
        `response` a call that was made is recorded. With neither the call is a context manager: set `call.result`, and
        `call.usage` where the response does not say it itself. The digest is of `request` as a whole where it is given,
        and else of model, messages and parameters.
        """
        asked = {"messages": messages, "model": model, "parameters": dict(parameters or {})}
        # Of what is left when hidden values are taken out: from a digest a short secret could be guessed.
        spelled = form.serialise(values.plain(asked if request is None else request, self.hidden))
        call = LiveModelCall(
            self,
            values.text(model, ITEM_BYTES_MAX),
            None,
            request=sha256(spelled).hexdigest(),
            messages=None if messages is None else values.bounded(messages, hidden=self.hidden),
            parameters=values.bounded(dict(parameters or {}), hidden=self.hidden),
            usage=usage,
            sent=messages,
        )
        if function is not None:
            return call.perform(function)
        if response is not None:
            with call:
                call.result = response
        return call

    def recorded_recall(self, args: Mapping[str, Any], as_of: int | None) -> RecordedRecall | None:
        """Return what its recording holds of a recall, where it is replayed or resumed; none where that is live."""
        if self.recording is None:
            return None
        return self.recording.recall(values.bounded(dict(args)), as_of)

    def repeat_recall(
        self, args: Mapping[str, Any], as_of: int | None, known: RecordedRecall, found: RecallFound
    ) -> None:
        """Take note of a recall that its recording answered; a fork records it as a read of its own."""
        if self.recording is not None and self.recording.copies:
            self.record_recall(args, as_of, found)
        else:
            self._note_recalled(known.span, found)

    def record_recall(self, args: Mapping[str, Any], as_of: int | None, found: RecallFound) -> None:
        """Record a recall as a read at its position."""
        begun = self.begin_step()
        if begun is not None:
            body = {**begun.body(self.id), **recall_body(args, as_of, found)}
            if self.log_name is not None:
                body["log"] = self.log_name
            self.record_step("run.read", begun, body)
            self._note_recalled(begun.span, found)

    def _note_recalled(self, span: str, found: RecallFound) -> None:
        """Remember what the runs it recalled decided, so that its evidence can name them."""
        with self.lock:
            for hit in reversed(found.hits):
                for stage, chosen in found.decisions.get(hit.run, {}).items():
                    origin = {"kind": RECALL, "span": span, "run": hit.run, "stage": stage}
                    self.links.add(READS, stage, chosen, origin)

    def note(self, text: str, data: object = None) -> None:
        """Record a remark."""
        said: dict[str, Json] = {"text": values.text(text, VALUE_BYTES_MAX)}
        if data is not None:
            said["data"] = values.bounded(data, hidden=self.hidden)
        if self.recording is not None and self.recording.note(said):
            return
        begun = self.begin_step()
        if begun is not None:
            self.record_step("run.noted", begun, {**begun.body(self.id), **said})

    def answer(self, answer: object) -> None:
        """Say what the run answers; it is recorded with its end, and the last answer counts."""
        if self.state == ENDED:
            raise refused(self.id, "it has ended", "Answer before the end, or judge it with a preferred answer.")
        self._answer = (answer,)

    @property
    def answered(self) -> Any:
        """What the run answers so far."""
        return None if self._answer is None else self._answer[0]

    def judge(self, verdict: str, **about: Any) -> Report:
        """Say what is thought of the run, as `ledger.runs.judge` does; also after its end."""
        return self.log.judge(self.id, verdict, self.hidden, about)

    def told(self) -> dict[str, Json]:
        """Return what its beginning says that does not depend on the log."""
        return self.beginning.body(self.agent, self.hidden)


def current_run() -> Run | None:
    """Return the run that `decide`, `select` and tools record into here; none outside of one."""
    run = current_recorder()
    assert run is None or isinstance(run, Run)
    return run


def _worded(problem: Exception) -> str:
    """Return a problem as the end of a run says it."""
    return (
        str(problem) if isinstance(problem, MissingFact | UnrestoredValue) else f"{type(problem).__name__}: {problem}"
    )


def ended_by(error: BaseException | None) -> tuple[str, BaseException | None]:
    """Return how a block that was left so ends its run: done, by an error, or cancelled from outside."""
    if error is None:
        return DONE, None
    if isinstance(error, SystemExit):
        return (DONE, None) if error.code in (None, 0) else (ERROR, error)
    return (ERROR if isinstance(error, Exception) else CANCELLED), error
