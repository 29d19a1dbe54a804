"""Running: a run recorded as it happens.

Each step is one write of its own, durable before the agent goes on. Recording never breaks the agent: what cannot be
recorded is kept in `run.problems` and warned of, unless the run was asked to raise (`on_error="raise"`). Steps that
could not be written because the engine was unavailable are written together with the next one.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form, moment
from woodrat.clock import not_before
from woodrat.errors import Fault, NotFound, Refused, Unavailable, shown
from woodrat.ledger.moments import resolve_ref
from woodrat.ledger.ownership import unknown_run
from woodrat.ledger.write import Writer
from woodrat.records import replace
from woodrat.runs import current as current_run
from woodrat.runs import gaps, live, threads, values
from woodrat.runs import rules as rule
from woodrat.runs.calls import Call, arguments_of, perform, recipe_of, signature_of
from woodrat.runs.current import Frame, Place
from woodrat.runs.facts import facts_of, hidden_among
from woodrat.runs.links import CALLS, INPUTS, READS, Links
from woodrat.runs.owner import fresh_run
from woodrat.runs.rules import DECIDE, NOTHING_DECIDED, Verdict
from woodrat.runs.rules import RAISE as FAIL
from woodrat.runs.run_reads import RunPast
from woodrat.runs.run_writes import RunWrites, Writing
from woodrat.runs.step_gaps import accounted, step_gaps
from woodrat.runs.steps import SELECT
from woodrat.runs.values import ITEM_BYTES_MAX, NOTHING, VALUE_BYTES_MAX
from woodrat.state.fact import Fact
from woodrat.state.meaning import Step
from woodrat.state.redaction import hiding
from woodrat.state.schema import schema_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager
    from contextvars import Token
    from types import TracebackType

    from woodrat.api.ledger import Ledger
    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.ledger.report import Report
    from woodrat.ledger.write import Draft
    from woodrat.log.entry import Entry
    from woodrat.merge.snapshot import Snapshot
    from woodrat.replay.resume import Recording
    from woodrat.runs.rules import Rule
    from woodrat.runs.start import Beginning
    from woodrat.state.fact import Origin

DONE, ERROR, CANCELLED = "done", "error", "cancelled"
STATUSES: Final = (DONE, ERROR, CANCELLED)
"""How a run can end."""

NOTE, RAISE = "note", "raise"
"""What becomes of a recording problem: it is kept and warned of, or it is raised."""

PROBLEMS_MAX: Final = 100
"""How many problems a run keeps."""
PROBLEMS_SAID_MAX: Final = 20
"""How many of them its end says."""
PENDING_MAX: Final = 1_000
"""How many steps wait for an engine that is unavailable."""

NOTHING_RECORDED = "Nothing was recorded."


class RecordingWarning(UserWarning):
    """A step of a run could not be recorded; the agent went on."""


class MissingFact(Exception):
    """A fact that a rule asked for was missing or could not be compared; among the problems of a run."""


class Begun(NamedTuple):
    """A step that has begun: its number, what tells it apart, when, and who records it."""

    step: int
    span: str
    at: str
    under: str | None
    agent: str

    def body(self, run: str) -> dict[str, Json]:
        """Return what every body says."""
        said: dict[str, Json] = {
            "run": run,
            "agent": self.agent,
            "step": self.step,
            "span": self.span,
            "started_at": self.at,
        }
        return said if self.under is None else {**said, "under": self.under}


class Run(RunPast, RunWrites):
    """One execution of an agent, being recorded; a context manager, `async with` too.

    Inside its block it is the current run: `woodrat.decide`, `woodrat.select` and tools record into it. Reads and
    writes through it are part of it; those through the ledger are not.
    """

    def __init__(
        self,
        ledger: Ledger,
        beginning: Beginning,
        *,
        id: str | None = None,
        redact: Iterable[str] = (),
        on_error: str = NOTE,
    ) -> None:
        super().__init__(None, ledger, None)
        self._ledger = ledger
        self._beginning = beginning
        self._clock = ledger.context.clock
        self._hidden = hiding(ledger.context.hidden, redact)
        self._on_error = on_error
        self._stated_id = id is not None
        self._lock = threading.RLock()
        self._next_step = 0
        self._last_at: str | None = None
        self._pending: list[tuple[int, Callable[[Draft], None]]] = []
        self._unrecorded: set[int] = set()
        self._shared = False
        self._tokens: list[Token[Frame | None]] = []
        self._state = "new"
        self._ends = True
        self._is_living = False
        self._recorder = ""
        self._written: dict[str, int] = {}
        self._links = Links()
        self._answer: tuple[object] | None = None
        self._usage = {"input": 0, "output": 0}
        self._log: str | None = None
        self._trace: str | None = None
        self._under: str | None = None
        self._spans: Iterator[str] | None = None
        self.recording: Recording | None = None
        """What the log answers while the run is resumed; none otherwise."""
        self.counted: tuple[str, int] | None = None
        """Who counts equal requests elsewhere, and how many came before, while one of theirs is being written."""
        self.span: str = self._fresh_span()
        """The span of its beginning."""
        self.id: str = id if id is not None else fresh_run(self._clock.now(), self.agent, self.span)
        """The run's id; final once it has started."""
        self.started_at: str | None = None
        """When it began."""
        self.basis: int | None = None
        """The position of the log it began at; `pinned()` reads there."""
        self.problems: list[Exception] = []
        """What could not be recorded, and which facts rules asked for and did not get (`MissingFact`)."""
        self.status: str | None = None
        """How it ended; none while it runs."""

    # ------------------------------------------------------------------------------------------ what it is

    @property
    def _run(self) -> Run:
        return self  # not kept: a run that nobody holds any more is gone at once, and reads as interrupted

    @property
    def ledger(self) -> Ledger:
        """The ledger it is recorded in; what is read or written through that is not part of the run."""
        return self._ledger

    @property
    def agent(self) -> str:
        """Who runs."""
        return self._ledger.agent

    @property
    def asked(self) -> str:
        """What was asked: the query it was begun with."""
        return self._beginning.query

    @property
    def subject(self) -> str | None:
        """The entity it is about."""
        return self._beginning.subject

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What it was given, as plain values; `input` gives one with its origin."""
        return self._beginning.inputs

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._state == "ended"

    def input(self, name: str) -> Fact:
        """Return an input as a fact: its value, and that it came from the inputs."""
        given = self._beginning.inputs
        value = values.plain(given[name]) if name in given else None
        return Fact(name, value, {"kind": "input", "name": name}, missing=name not in given)

    def pinned(self) -> RunPast:
        """Return the state the run began with: recorded reads that show the same however long it runs."""
        if self.basis is None:
            raise Refused([Fault("run", f"{self.id} has no basis", "Start the run first.")], "Nothing was read.")
        return RunPast(self, self._ledger.at(self.basis), self.basis)

    # ------------------------------------------------------------------------------------------ from start to end

    def start(self) -> Run:
        """Begin the run, for callers that cannot use `with`; it is not the current run by that."""
        with self._lock:
            if self._state != "new":
                raise _refused(self.id, "it has started already", "Start a run of its own with ledger.run.")
            self._state = "running"
        if self._adopted():
            return self
        self._live()
        begun = self._begun(self.span)
        self.started_at = begun.at
        self._note_inputs()
        try:
            parent, trace = self._parent()
        except Exception:
            self._leave()
            self._state = "new"
            raise
        if trace is not None:
            self._trace = trace.split("-")[1]
        failure = self._append("run.started", begun, lambda draft: self._plan_start(draft, begun, parent, trace))
        if failure is not None:
            if self._on_error == RAISE or isinstance(failure, Refused | NotFound):
                self._leave()
                self._state = "new"
                self._pending.clear()
                raise failure
            self._problem(failure)
        return self

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended, and takes no further steps; a replay keeps hold of what outlives it."""
        return self._state == "ended" and not (self.recording is not None and self.recording.replays)

    def _live(self) -> None:
        """Let others in this process know that the run is being recorded."""
        if live.begin(self.id, self, self._records_the_same):
            threads.begin()
            self._is_living = True

    def _records_the_same(self, other: object) -> bool:
        return isinstance(other, Run) and other._is_with(self._ledger)

    @staticmethod
    def is_recorded(ledger: Ledger, run: str) -> bool:
        """Return whether a run of this log is being recorded in this process."""
        found = live.recorder(run)
        return isinstance(found, Run) and found._is_with(ledger)

    def _leave(self) -> None:
        """Let others know that it is not any more."""
        if self._is_living:
            live.finish(self.id, self)
            threads.finish()
            self._is_living = False

    def _adopted(self) -> bool:
        """Take the place of a run that was started here before, when the run around it is being resumed."""
        frame = current_run.current_frame()
        around = frame.run if frame is not None else None
        if around is None or around.recording is None:
            return False
        # Inside a replay no run is begun, wherever it would be recorded.
        if not around.recording.replays and (not around._is_with(self._ledger) or self._stated_id):
            return False
        recording = around.recording.child(self._ledger, self._beginning.body(self.agent, self._hidden))
        if recording is None:
            return False
        recording.take_over(self)
        return True

    def _is_with(self, ledger: Ledger) -> bool:
        """Return whether another ledger is the same log; a run never names one of another tenant."""
        return ledger.context.engine is self._ledger.context.engine and ledger.tenant == self._ledger.tenant

    def _parent(self) -> tuple[Place | None, str | None]:
        """Return the step that started this run, and the traceparent where that is all that is known."""
        stated = self._beginning.parent
        if stated is not None:
            self._known(stated.run)
            return stated, None
        trace = self._beginning.trace
        if trace is None:
            frame = current_run.current_frame()
            if frame is not None and frame.run._is_with(self._ledger):
                return Place(frame.run.id, frame.span), None
            place, trace = current_run.named_by_environment()
            if place is not None:
                return (place, None) if self._is_known(place.run) else (None, None)
        named = current_run.traced(trace)
        if named is not None and self._is_known(named.run):
            return named, None
        return None, trace

    def _is_known(self, run: str) -> bool:
        try:
            self._known(run)
        except Exception:
            return False
        return True

    def _known(self, run: str) -> None:
        with self._ledger.context.engine.view(self._ledger.tenant) as view:
            if not view.run(run, view.head().position):
                raise unknown_run(run)

    def _plan_start(self, draft: Draft, begun: Begun, parent: Place | None, trace: str | None) -> None:
        position = draft.before.asof.position
        if self._stated_id and draft.view.run(self.id, position):
            raise _refused(self.id, "there is a run with this id", "Leave the id out, or use ledger.continue_run.")
        body = {**begun.body(self.id), **self._beginning.body(self.agent, self._hidden)}
        subject: Ref | None = None
        if self._beginning.subject is not None:
            subject = resolve_ref(draft.before, self._beginning.subject, NOTHING_RECORDED)
            body["subject"] = str(subject)
        if parent is not None:
            body["parent"] = {"run": parent.run} if parent.span is None else {"run": parent.run, "span": parent.span}
        if trace is not None:
            body["trace"] = trace
        body["basis"] = {"log": draft.log, "position": position}
        using, unknown = self._beginning.using(draft)
        if using:
            body["using"] = using
        for problem in unknown:
            self._problem(problem)
        self._log, self.basis = draft.log, position
        draft.id = self.id
        draft.add("run.started", values.fit(body), Step(self.id, subject))

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
            raise Refused([Fault("status", f"no such end of a run: {shown(status)}", remedy)], NOTHING_RECORDED)
        with self._lock:
            if self._state == "new":
                raise _refused(self.id, "it has not started", "Start it first.")
            if self._state == "ended":
                raise _refused(self.id, "it has ended already", "A run ends once; judge it, or start another.")
            if answer is not None:
                self._answer = (answer,)
            begun = self._begun()
            self._state = "ended"
            self.status = status
        try:
            self._end(begun, status, error, usage)
        finally:
            # Only now: a run that nobody records and that has no end on record would be an interrupted one.
            self._leave()

    def _end(self, begun: Begun, status: str, error: BaseException | None, usage: Mapping[str, int] | None) -> None:
        if self.recording is not None and self.recording.has_ended:
            return
        body = self._ending(begun, status, error, usage)
        waiting = {begun.step, *(step for step, _ in self._pending)}

        def plan(draft: Draft) -> None:
            position = draft.before.asof.position
            for entry in draft.view.run(self.id, position):
                if entry.kind == "run.ended" and self._is_own(entry):
                    raise _refused(self.id, "another process has ended it", "A run ends once; judge it instead.")
            # Mostly one recorder took every step and all of them left something; the log is asked only otherwise.
            gaps: list[int] | None = []
            if self._shared or self._unrecorded - waiting:
                gaps = step_gaps(draft.view, self.id, position, begun.step)
                gaps = None if gaps is None else [step for step in gaps if step not in waiting]
            draft.add("run.ended", values.fit({**accounted(body, gaps), "agent": self.agent}), Step(self.id))

        failure = self._append("run.ended", begun, plan)
        if isinstance(failure, Refused):
            raise failure
        self._settle(failure)

    def _is_own(self, entry: Entry) -> bool:
        """Return whether an entry of the run counts: what another agent said of it, in another log, does not."""
        body: Any = None if entry.body is None else form.decode(entry.body)
        return isinstance(body, dict) and body.get("agent") == self.agent

    def _ending(
        self, begun: Begun, status: str, error: BaseException | None, usage: Mapping[str, int] | None
    ) -> dict[str, Json]:
        """Return what the entry of its end says."""
        body: dict[str, Json] = {**begun.body(self.id), "status": status}
        if self._answer is not None:
            body["answer"] = values.bounded(self._answer[0], hidden=self._hidden)
        if error is not None:
            body["error"] = values.error(error)
        counted = dict(usage) if usage is not None else {name: count for name, count in self._usage.items() if count}
        if counted:
            body["usage"] = values.bounded(counted)
        if self.started_at is not None:
            body["duration_ms"] = milliseconds(self.started_at, begun.at)
        if self.problems:
            said = self.problems[:PROBLEMS_SAID_MAX]
            body["problems"] = [values.text(_worded(each)) for each in said]
        return body

    def __enter__(self) -> Run:
        if self._state != "running":
            self.start()
        self._tokens.append(current_run.enter(Frame(self, self._under or self.span)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        current_run.leave(self._tokens.pop())
        self._finish(error)

    async def __aenter__(self) -> Run:
        import asyncio

        if self._state != "running":
            await asyncio.to_thread(self.start)
        self._tokens.append(current_run.enter(Frame(self, self._under or self.span)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        current_run.leave(self._tokens.pop())
        await asyncio.to_thread(self._finish, error)

    def _finish(self, error: BaseException | None) -> None:
        """End the run as its block ended; one that was ended inside, or is only continued here, stays as it is."""
        if self._state != "running":
            return
        if not self._ends:
            self._leave()
            if self._answer is not None:
                remedy = "Continue the run with ends=True, or call end(), where it is to be answered."
                self._settle(_refused(self.id, "its answer was given where it does not end", remedy))
            return
        status, told = ended_by(error)
        try:
            self.end(status, error=told)
        except Exception as problem:
            if self._on_error == RAISE and error is None:
                raise
            self._problem(problem)  # the agent's own exception is the one to be seen

    def flush(self) -> bool:
        """Try once more to record what could not be; return whether nothing waits any more."""
        with self._lock:
            plans, self._pending = self._pending, []
        if plans:
            step, last = plans.pop()
            self._pending = plans
            self._settle(self._append("run.flushed", Begun(step, self.span, "", None, self.agent), last))
        return not self._pending

    def current(self) -> AbstractContextManager[None]:
        """Make the run the current one inside a block, without starting or ending it."""
        return current_run.entered(Frame(self, self.span))

    # ------------------------------------------------------------------------------------------ other places

    def executor(self, max_workers: int | None = None) -> Executor:
        """Return a pool of threads whose work runs in this run."""
        return current_run.carrying_executor(Frame(self, self._place()), max_workers)

    @property
    def traceparent(self) -> str:
        """Where the run is, as W3C Trace Context writes it; for headers of requests to others."""
        return current_run.traceparent(self._trace or current_run.trace_id(self.id), self._place())

    def environment(self) -> dict[str, str]:
        """Return the variables that name the run to a process started from here."""
        return {
            current_run.RUN_VARIABLE: f"{self.id}/{self._place()}",
            current_run.AGENT_VARIABLE: self.agent,
            current_run.TRACE_VARIABLE: self.traceparent,
        }

    def _place(self) -> str:
        """Return the span the caller is inside of."""
        frame = current_run.current_frame()
        return frame.span if frame is not None and frame.run is self else self._under or self.span

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
        return self._decide(DECIDE, stage, facts, rules, default, rationale, redact, on_missing)

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
        return self._decide(SELECT, stage, facts, rules, default, rationale, redact, on_missing)

    def _decide(
        self,
        mode: str,
        stage: str,
        facts: object,
        rules: object,
        default: object,
        rationale: str | None,
        redact: Iterable[str],
        on_missing: str,
    ) -> Verdict:
        check_decision(stage, on_missing)
        given = rule.as_rules(rules)
        sourced = facts_of(facts, self._link)
        hidden = hidden_among(sourced, self._hiding(redact, NOTHING_DECIDED))
        if self.recording is not None:
            answered = self.recording.decision(stage, mode, sourced, given, default, hidden, on_missing)
            if answered is not None:
                return replace(answered, run=self.id)
        begun = self._begin()
        verdict = rule.attempt(
            sourced,
            given,
            default,
            mode,
            hidden=hidden,
            stage=stage,
            rationale=None if rationale is None else values.text(rationale),
            run=None if begun is None else self.id,
            span=None if begun is None else begun.span,
            on_missing=on_missing,
        )
        lacking = gaps.gaps_of(verdict.rules)
        refusal = rule.refusal_of(verdict) if lacking else None
        if refusal is not None:
            self._undecided(begun, gaps.undecided(values.text(stage), mode, lacking))
            raise refusal
        if begun is not None:
            body = {**begun.body(self.id), "stage": values.text(stage), **rule.body_of(verdict, sourced, hidden)}
            if verdict.rationale is not None:
                body["rationale"] = verdict.rationale
            if further := self._hidden_further(hidden):
                body["redact"] = further
            self._record("run.decided", begun, body)
            if lacking:
                self._lacked(gaps.problems(values.text(stage), lacking))
        return verdict

    def _undecided(self, begun: Begun | None, said: dict[str, Json]) -> None:
        """Note why nothing was decided. The caller is told as well, and may send the same decision again."""
        if begun is not None:
            # A span of its own: the one of a decision is taken where it is made.
            body = {**begun._replace(span=self._clock.random(8).hex()).body(self.id), **said}
            try:
                self._record("run.noted", begun, body)
            except Exception as problem:
                self._problem(problem)  # why nothing was decided is the error to be seen
        self._lacked([str(said["text"])])

    def _lacked(self, problems: Iterable[str]) -> None:
        """Keep what rules asked for and did not get among the problems of the run, each once."""
        for text in problems:
            with self._lock:
                known = any(isinstance(each, MissingFact) and str(each) == text for each in self.problems)
                if not known and len(self.problems) < PROBLEMS_MAX:
                    self.problems.append(MissingFact(text))

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
        function: Callable[[], Any] | None = None,
        /,
        *,
        messages: object = None,
        parameters: Mapping[str, Any] | None = None,
        request: object = None,
        response: object = None,
        usage: Mapping[str, int] | None = None,
    ) -> Any:
        """Call a model and record it: request digest, response, parameters, usage. Returns the `Call`.

        With a function (of no arguments) it is called at once, or answered from the log when the run is resumed. With
        `response` a call that was made is recorded. With neither the call is a context manager: set `call.result`, and
        `call.usage` where the response does not say it itself. The digest is of `request` as a whole where it is given,
        and else of model, messages and parameters.
        """
        from woodrat.runs.calls import ModelCall

        asked = {"messages": messages, "model": model, "parameters": dict(parameters or {})}
        # Of what is left when hidden values are taken out: from a digest a short secret could be guessed.
        spelled = form.serialise(values.plain(asked if request is None else request, self._hidden))
        call = ModelCall(
            self,
            values.text(model, ITEM_BYTES_MAX),
            None,
            request=sha256(spelled).hexdigest(),
            messages=None if messages is None else values.bounded(messages, hidden=self._hidden),
            parameters=values.bounded(dict(parameters or {}), hidden=self._hidden),
            usage=usage,
        )
        if function is not None:
            return call.perform(function)
        if response is not None:
            with call:
                call.result = response
        return call

    def note(self, text: str, data: object = None) -> None:
        """Record a remark."""
        said: dict[str, Json] = {"text": values.text(text, VALUE_BYTES_MAX)}
        if data is not None:
            said["data"] = values.bounded(data, hidden=self._hidden)
        if self.recording is not None and self.recording.note(said):
            return
        begun = self._begin()
        if begun is not None:
            self._record("run.noted", begun, {**begun.body(self.id), **said})

    def answer(self, answer: object) -> None:
        """Say what the run answers; it is recorded with its end, and the last answer counts."""
        if self._state == "ended":
            raise _refused(self.id, "it has ended", "Answer before the end, or judge it with a preferred answer.")
        self._answer = (answer,)

    @property
    def answered(self) -> Any:
        """What the run answers so far."""
        return None if self._answer is None else self._answer[0]

    def judge(self, verdict: str, **about: Any) -> Report:
        """Say what is thought of the run, as `Ledger.judge` does; also after its end."""
        from woodrat.runs.judgement import judge

        return judge(self._ledger, self.id, verdict, hidden=self._hidden, **about)

    # ------------------------------------------------------------------------------------------ recording

    def _writing(self) -> Writing:
        with self._lock:
            if self._state != "running":
                problem = "it has ended" if self._state == "ended" else "it has not started"
                raise _refused(self.id, problem, "Write through the ledger instead.", "Nothing was written.")
            return Writing(self, self._begun().step)

    def _wrote(self, report: Report, step: int) -> None:
        if report.observations and not report.repeated and not report.dry_run:
            self._unrecorded.discard(step)
        if self.recording is not None:
            self.recording.wrote(report.repeated)

    def _fresh_span(self) -> str:
        return self._clock.random(8).hex() if self._spans is None else next(self._spans)

    @contextmanager
    def spanned(self, spans: Iterator[str] | None) -> Iterator[None]:
        """Take the spans of the steps recorded inside a block from here; none leaves them to chance."""
        self._spans = spans
        try:
            yield
        finally:
            self._spans = None

    def count_on(self, step: int) -> None:
        """Number the steps that follow from here on, where others have recorded some meanwhile."""
        with self._lock:
            self._shared = True
            self._next_step = max(self._next_step, step)

    def told(self) -> dict[str, Json]:
        """Return what its beginning says that does not depend on the log."""
        return self._beginning.body(self.agent, self._hidden)

    def let_go(self) -> None:
        """Record it here no longer, without an end: another process may continue it."""
        self._leave()

    def _hiding(self, redact: Iterable[str], outcome: str = NOTHING_RECORDED) -> frozenset[str]:
        return hiding(self._hidden, redact, outcome)

    def _hidden_further(self, hidden: frozenset[str]) -> list[Json]:
        """Return the keys that one step hides beyond those of the run; its entry says them."""
        return [] if hidden is self._hidden else [*sorted(set(hidden).difference(self._hidden))]

    def _schema_at(self, entity: str, position: int) -> str | None:
        """Return the full name of the schema in force for an entity's type at a position."""
        with self._ledger.context.engine.view(self._ledger.tenant) as view:
            return schema_name(view.schema(entity.partition("/")[0], position))

    def _begun(self, span: str | None = None) -> Begun:
        """Take the next step number, whatever state the run is in."""
        with self._lock:
            step = self._next_step
            self._next_step += 1
            self._unrecorded.add(step)
            self._last_at = not_before(self._clock.now(), self._last_at)
            place = self._place()
            under = None if place == self.span else place
            return Begun(step, span or self._fresh_span(), self._last_at, under, self.agent)

    def _begin(self) -> Begun | None:
        """Begin a step; none when the run cannot take one, which is a problem."""
        with self._lock:
            over = self.recording is not None and self.recording.has_ended
            if self._state == "running" and not over:
                return self._begun()
            ended = over or self._state == "ended"
        if ended:
            self._settle(_refused(self.id, "it has ended", "Record before its end, or start another run."))
        else:
            self._settle(_refused(self.id, "it has not started", "Use it as a context manager, or call start()."))
        return None

    def _record(self, kind: str, begun: Begun, *bodies: dict[str, Json]) -> None:
        """Append the entries of one step."""
        run, written = Step(self.id), [values.fit({**body, "agent": self.agent}) for body in bodies]

        def plan(draft: Draft) -> None:
            for data in written:
                draft.add(kind, data, run)

        self._settle(self._append(kind, begun, plan))

    def _append(self, verb: str, begun: Begun, plan: Callable[[Draft], None]) -> Exception | None:
        """Write what waits and what is new, as one write; return what went wrong.

        What the engine could not take now waits for the next step.
        """
        with self._lock:
            plans, self._pending = [*self._pending, (begun.step, plan)], []

        def whole(draft: Draft) -> None:
            for _, each in plans:
                each(draft)

        try:
            arguments: dict[str, Json] = {"run": self.id, "span": begun.span, "step": begun.step}
            Writer(current_run.write_context(self._ledger.context)).write(
                verb, arguments, plan if len(plans) == 1 else whole
            )
        except Unavailable as problem:
            with self._lock:
                self._pending = (plans + self._pending)[:PENDING_MAX]
            return problem
        except Exception as problem:
            return problem
        self._unrecorded.difference_update([step for step, _ in plans])
        return None

    def _settle(self, problem: Exception | None) -> None:
        """Raise a problem or keep it, as the run was asked to."""
        if problem is None:
            return
        if self._on_error == RAISE:
            raise problem
        self._problem(problem)

    def _problem(self, problem: Exception) -> None:
        with self._lock:
            if len(self.problems) < PROBLEMS_MAX:
                self.problems.append(problem)
        # Warnings may be errors in this process; a recording problem still must not break the agent.
        with suppress(Warning):
            warnings.warn(f"{self.id}: {problem}", RecordingWarning, stacklevel=_levels_to_the_agent())

    # ------------------------------------------------------------------------------------------ where values came from

    def _link(self, name: str, value: Json) -> Origin | None:
        with self._lock:
            return self._links.find(name, value)

    def _note_inputs(self) -> None:
        for name, value in self._beginning.inputs.items():
            self._links.add(INPUTS, str(name), values.plain(value), {"kind": "input", "name": str(name)})

    def _saw(self, snapshot: Snapshot, origins: Mapping[str, Origin]) -> None:
        """Remember what a snapshot showed."""
        with self._lock:
            for name, origin in origins.items():
                self._links.add(READS, name, snapshot.fields[name], origin)
                self._links.see(snapshot.entity, origin["observations"])

    def _called(self, kind: str, span: str, result: Json) -> None:
        """Remember what a call returned."""
        if isinstance(result, dict) and not values.is_mark(result):
            from woodrat.runs.facts import pointer_to

            with self._lock:
                for name, value in result.items():
                    self._links.add(CALLS, name, value, {"kind": kind, "span": span, "path": pointer_to(name)})

    def _spent(self, usage: Mapping[str, Json]) -> None:
        with self._lock:
            for name in self._usage:
                count = usage.get(name)
                self._usage[name] += count if type(count) is int else 0


# -- outside of a run -------------------------------------------------------------------------------------------------


def decide(
    stage: str,
    facts: object,
    rules: Iterable[Rule | Mapping[str, Any]],
    default: Any = None,
    *,
    rationale: str | None = None,
    redact: Iterable[str] = (),
    on_missing: str = FAIL,
) -> Verdict:
    """Take the first branch whose rule matches the facts; recorded in the current run, where there is one.

    A rule that asks for a fact that is missing or cannot be compared, and of which nothing else is false, is *unknown*.
    Before the first match it is `Refused`, and nothing is decided; with `on_missing="skip"` it is skipped.

    verdict = woodrat.decide("classify-risk", loan, [
        woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    ], default="manual-review")
    """
    return _decide(DECIDE, stage, facts, rules, default, rationale, redact, on_missing)


def select(
    stage: str,
    facts: object,
    rules: Iterable[Rule | Mapping[str, Any]],
    default: Any = None,
    *,
    rationale: str | None = None,
    redact: Iterable[str] = (),
    on_missing: str = FAIL,
) -> Verdict:
    """Take every branch whose rule matches the facts, as a list; recorded in the current run, where there is one.

    Any rule that is unknown, as `decide` says, is `Refused`; with `on_missing="skip"` it is skipped.
    """
    return _decide(SELECT, stage, facts, rules, default, rationale, redact, on_missing)


def _decide(
    mode: str,
    stage: str,
    facts: object,
    rules: object,
    default: object,
    rationale: str | None,
    redact: Iterable[str],
    on_missing: str,
) -> Verdict:
    run = current_run.current_run()
    if run is not None:
        return run._decide(mode, stage, facts, rules, default, rationale, redact, on_missing)
    check_decision(stage, on_missing)
    said = None if rationale is None else values.text(rationale)
    sourced = facts_of(facts, lambda name, value: None)
    hidden = hidden_among(sourced, hiding(NOTHING, redact, NOTHING_DECIDED))
    given, about = rule.as_rules(rules), {"stage": stage, "rationale": said}
    return rule.evaluate(sourced, given, default, mode, hidden=hidden, on_missing=on_missing, **about)


def _levels_to_the_agent() -> int:
    """Return how many frames of ours lie between a warning and the agent's code, which it should point at."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("woodrat."):
        frame, level = frame.f_back, level + 1
    return level


def check_decision(stage: object, on_missing: object) -> None:
    """Refuse a stage that is no name, and what says nothing about rules that are unknown."""
    if isinstance(stage, str) and stage and on_missing == FAIL:
        return
    faults = rule.check_on_missing(on_missing)
    if not isinstance(stage, str) or not stage:
        problem = f"expected the name of what is decided, got {shown(stage)}"
        faults.append(Fault("stage", problem, "Send it as text."))
    if faults:
        raise Refused(faults, NOTHING_DECIDED)


def _worded(problem: Exception) -> str:
    """Return a problem as the end of a run says it."""
    return str(problem) if isinstance(problem, MissingFact) else f"{type(problem).__name__}: {problem}"


def ended_by(error: BaseException | None) -> tuple[str, BaseException | None]:
    """Return how a block that was left so ends its run: done, by an error, or cancelled from outside."""
    if error is None:
        return DONE, None
    if isinstance(error, SystemExit):
        return (DONE, None) if error.code in (None, 0) else (ERROR, error)
    return (ERROR if isinstance(error, Exception) else CANCELLED), error


def milliseconds(start: str, end: str) -> int:
    """Return how long something took; never less than nothing, whatever the clock did."""
    if start[:20] == end[:20]:  # mostly within one second: two moments that nobody else asks about are not read whole
        micros = int(end[20:26]) - int(start[20:26])
    else:
        micros = moment.to_micros(end) - moment.to_micros(start)
    return max(0, micros) // 1_000


def _refused(run: str, problem: str, remedy: str, outcome: str = NOTHING_RECORDED) -> Refused:
    return Refused([Fault(f"run {run}", problem, remedy)], outcome)
