"""Logs of this process: where the entries of a run go that is recorded in an engine here.

Each step is one write of its own, durable before the agent goes on. Steps that could not be written because the engine
was unavailable are written together with the next one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.errors import Fault, NotFound, Refused, Unavailable, shown
from woodrat.ledger import entry_index, facts, lists, moments, reads
from woodrat.ledger.moments import resolve_ref
from woodrat.ledger.ownership import unknown_run
from woodrat.ledger.write import Writer
from woodrat.records import replace
from woodrat.runs import trace, values
from woodrat.runs.recorder import current
from woodrat.runs.recorder.recording import Body, Steps, in_order
from woodrat.runs.recorder.steps import NOTHING_RECORDED, RAISE, Begun, RunLog, StepRecorder, WriteStep, refused
from woodrat.state.meaning import RunEntry
from woodrat.state.schema import schema_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.canon.moment_words import Time
    from woodrat.context import Context, StandIn
    from woodrat.engines.view import View
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.report import Report
    from woodrat.ledger.write import Draft
    from woodrat.log.entry import Entry
    from woodrat.runs.trace import Place

PENDING_MAX: Final = 1_000
"""How many steps wait for an engine that is unavailable."""
GAPS_MAX: Final = 10_000
"""Most numbers without an entry that an end lists; beyond these it does not say that its steps are numbered."""


class LocalReads:
    """The verbs that read, of an engine of this process."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def position(self) -> int:
        """The position reads are answered at."""
        with moments.open_reader(self._context) as reader:
            return reader.asof.position

    @property
    def valid_at(self) -> str | None:
        """What was true by this time alone counts."""
        return self._context.valid_at

    def at(self, moment: Moment | None = None, *, valid_at: Time | None = None) -> LocalReads:
        """Return the reads as of another moment, or as it was true by another time."""
        return LocalReads(moments.at(self._context, moment, valid_at=valid_at))

    def ask(self, verb: str, *arguments: Any, **given: Any) -> Any:
        """Return the answer of a reading verb."""
        room = lists if hasattr(lists, verb) else reads
        return getattr(room, verb)(self._context, *arguments, **given)


class LocalLog:
    """Where one run is recorded: a tenant of an engine of this process."""

    def __init__(self, context: Context, ledger: Any = None, opener: str | None = None) -> None:
        self.context = context
        """The tenant, and who records."""
        self.ledger = ledger
        """What the caller opened; None where nobody did."""
        self.opener = opener
        """What opens such a ledger in another process, as `module:function`; None where there is no such thing."""
        self.agent = context.agent
        self.clock = context.clock
        self.hidden = context.hidden
        self.reads = LocalReads(context)
        self._pending: list[tuple[int, Callable[[Draft], None]]] = []

    @property
    def is_waiting(self) -> bool:
        """Whether steps wait for an engine that was unavailable."""
        return bool(self._pending)

    def by(self, agent: str | None) -> LocalLog:
        """Return the same log for another run, of another agent or of this one."""
        if agent is None or agent == self.agent:
            return LocalLog(self.context, self.ledger, self.opener)
        ledger = None if self.ledger is None else self.ledger.as_agent(agent)
        return LocalLog(replace(self.context, agent=agent), ledger, self.opener)

    def is_same(self, other: object) -> bool:
        """Return whether another is the same log; a run never names one of another tenant."""
        if not isinstance(other, LocalLog):
            return False
        return other.context.is_same_log(self.context)

    def redirect(self, stand_in: StandIn) -> None:
        """Have somebody take what the run writes in place of the log, while it is replayed."""
        self.context = self.context.taken_by(stand_in)

    # -- whether this process records it

    def hold(self, run: StepRecorder) -> bool:
        """Let others in this process know that a run is being recorded; return whether it was nobody else's."""
        return current.add_recorder(run.id, run, self._records_the_same)

    def release(self, run: StepRecorder) -> None:
        """Let others know that it is not any more."""
        current.remove_recorder(run.id, run)

    def _records_the_same(self, other: object) -> bool:
        return isinstance(other, StepRecorder) and other.log.is_same(self)

    def is_recorded(self, run: str) -> bool:
        """Return whether a run of this log is being recorded in this process."""
        return self._records_the_same(current.recorder_of(run))

    # -- from start to end

    def start(self, run: StepRecorder) -> None:
        """Record the beginning of a run."""
        run.hold()
        begun = run.take_number(run.span)
        run.started_at = begun.at
        run.note_inputs()
        parent, traceparent = self._parent(run)
        if traceparent is not None:
            run.trace = traceparent.split("-")[1]
        failure = self._append(run, "run.started", begun, partial(self._begin, run, begun, parent, traceparent))
        if failure is not None:
            if run.on_error == RAISE or isinstance(failure, Refused | NotFound):
                self._pending.clear()
                raise failure
            run.keep_problem(failure)

    def adopted(self, around: RunLog) -> None:
        """Hear that the run takes the place of one that is on record; its time is the engine's all the same."""

    def _begin(
        self, run: StepRecorder, begun: Begun, parent: Place | None, traceparent: str | None, draft: Draft
    ) -> None:
        """Add the first entry of a run."""
        beginning, position = run.beginning, draft.before.asof.position
        if run.has_stated_id and entry_index.has_run(draft.view, run.id, position):
            raise refused(run.id, "there is a run with this id", "Leave the id out, or use ledger.runs.continue_.")
        body = {**begun.body(run.id), **beginning.body(run.agent, run.hidden)}
        subject: Ref | None = None
        if beginning.subject is not None:
            subject = resolve_ref(draft.before, beginning.subject, NOTHING_RECORDED)
            body["subject"] = str(subject)
        if parent is not None:
            body["parent"] = {"run": parent.run} if parent.span is None else {"run": parent.run, "span": parent.span}
        if traceparent is not None:
            body["trace"] = traceparent
        if beginning.forked_from is not None and not entry_index.has_run(
            draft.view, str(beginning.forked_from["run"]), position
        ):
            raise unknown_run(str(beginning.forked_from["run"]))
        body["basis"] = {"log": draft.log, "position": position}
        using, unknown = beginning.using(draft)
        if using:
            body["using"] = using
        for problem in unknown:
            run.keep_problem(problem)
        run.log_name, run.basis = draft.log, position
        draft.id = run.id
        draft.add("run.started", values.fit(body), RunEntry(run.id, subject))

    def _parent(self, run: StepRecorder) -> tuple[Place | None, str | None]:
        """Return the step that started a run, and the traceparent where that is all that is known."""
        stated = run.beginning.parent
        if stated is not None:
            self._check_known(stated.run)
            return stated, None
        traceparent = run.beginning.trace
        if traceparent is None:
            frame = current.current_frame()
            if frame is not None and frame.run.log.is_same(self):
                return trace.Place(frame.run.id, frame.span), None
            place, traceparent = current.named_by_environment()
            if place is not None:
                return (place, None) if self._is_known(place.run) else (None, None)
        named = trace.traced(traceparent)
        if named is not None and self._is_known(named.run):
            return named, None
        return None, traceparent

    def _is_known(self, run: str) -> bool:
        try:
            self._check_known(run)
        except Exception:
            return False
        return True

    def _check_known(self, run: str) -> None:
        with self.context.engine.view(self.context.tenant) as view:
            if not entry_index.has_run(view, run, view.head().position):
                raise unknown_run(run)

    def append(self, run: StepRecorder, kind: str, begun: Begun, bodies: Sequence[dict[str, Json]]) -> Exception | None:
        """Append the entries of one step."""
        step, encoded = RunEntry(run.id), [values.fit({**body, "agent": self.agent}) for body in bodies]

        def plan(draft: Draft) -> None:
            for data in encoded:
                draft.add(kind, data, step)

        return self._append(run, kind, begun, plan)

    def end(self, run: StepRecorder, begun: Begun, body: dict[str, Json]) -> Exception | None:
        """Append the end of a run; a run ends once."""
        waiting = {begun.step, *(step for step, _ in self._pending)}

        def plan(draft: Draft) -> None:
            position = draft.before.asof.position
            for entry in entry_index.run_entries(draft.view, run.id, position):
                if entry.kind == "run.ended" and self._is_own(entry):
                    raise refused(run.id, "another process has ended it", "A run ends once; judge it instead.")
            # Mostly one recorder took every step and all of them left something; the log is asked only otherwise.
            gaps: list[int] | None = []
            if run.is_shared or run.unrecorded - waiting:
                gaps = step_gaps(draft.view, run.id, position, begun.step)
                gaps = None if gaps is None else [step for step in gaps if step not in waiting]
            draft.add("run.ended", values.fit({**accounted(body, gaps), "agent": self.agent}), RunEntry(run.id))

        return self._append(run, "run.ended", begun, plan)

    def _is_own(self, entry: Entry) -> bool:
        """Return whether an entry of the run counts: what another agent said of it, in another log, does not."""
        body: Any = None if entry.body is None else form.decode(entry.body)
        return isinstance(body, dict) and body.get("agent") == self.agent

    def flush(self, run: StepRecorder) -> Exception | None:
        """Try once more to write what waits, and return what went wrong."""
        with run.lock:
            plans, self._pending = self._pending, []
        if not plans:
            return None
        step, last = plans.pop()
        self._pending = plans
        return self._append(run, "run.flushed", Begun(step, run.span, "", None, self.agent), last)

    def _append(self, run: StepRecorder, verb: str, begun: Begun, plan: Callable[[Draft], None]) -> Exception | None:
        """Write what waits and what is new, as one write; return what went wrong.

        What the engine could not take now waits for the next step.
        """
        with run.lock:
            plans, self._pending = [*self._pending, (begun.step, plan)], []

        def whole(draft: Draft) -> None:
            for _, each in plans:
                each(draft)

        try:
            arguments: dict[str, Json] = {"run": run.id, "span": begun.span, "step": begun.step}
            self.write_entries(verb, arguments, plan if len(plans) == 1 else whole)
        except Unavailable as problem:
            with run.lock:
                self._pending = (plans + self._pending)[:PENDING_MAX]
            return problem
        except Exception as problem:
            return problem
        run.unrecorded.difference_update([step for step, _ in plans])
        return None

    def write_entries(
        self, verb: str, arguments: Mapping[str, Json], plan: Callable[[Draft], None], key: str | None = None
    ) -> Report:
        """Write what a plan says."""
        return Writer(current.write_context(self.context)).write(verb, arguments, plan, key=key)

    # -- what a run does with the log

    def write(self, step: WriteStep, verb: str, arguments: Sequence[Any], about: Mapping[str, Any]) -> Report:
        """Carry out a verb of the library that writes, as a step of a run."""
        report: Report = getattr(facts, verb)(current.write_context(self.context), *arguments, **about, within=step)
        return report

    def interpretation(self, step: WriteStep, source: str, about: Mapping[str, Any]) -> AbstractContextManager[Any]:
        """Read a source, as a step of a run."""
        from woodrat.ledger import sources

        return sources.interpretation(current.write_context(self.context), source, **about, within=step)

    def judge(self, run: str, verdict: str, hidden: frozenset[str], about: Mapping[str, Any]) -> Report:
        """Say what is thought of a run."""
        from woodrat.runs.verbs.judgement import judge

        return judge(current.write_context(self.context), run, verdict, hidden=hidden, **about)

    def schema_at(self, entity: str, position: int) -> str | None:
        """Return the full name of the schema in force for an entity's type at a position."""
        with self.context.engine.view(self.context.tenant) as view:
            return schema_name(entry_index.schema_of(view, entity.partition("/")[0], position))

    def runs_inside(self, started: Body) -> list[Steps]:
        """Return the steps of the runs that a run started, in the order they began."""
        with self.context.engine.view(self.context.tenant) as view:
            return [steps for _, steps in _inside(view, str(started.get("run")))]


def check_id(run: object) -> str:
    """Return a run's id, if it can be one."""
    if not isinstance(run, str):
        raise Refused([Fault("run", f"expected a run's id, got {shown(run)}", "Send it as text.")], NOTHING_RECORDED)
    return run


def steps_of(context: Context, run: object) -> list[tuple[str, Body]]:
    """Return the entries of a run as (kind, body), in the order of its steps; `NotFound` when there are none."""
    run = check_id(run)
    with context.engine.view(context.tenant) as view:
        steps = in_order(entry_index.run_entries(view, run, view.head().position))
    if not steps:
        raise unknown_run(run)
    return steps


def family(context: Context, run: str) -> list[Steps]:
    """Return the steps of a run, and after it those of all runs that were started inside of it, at any depth."""
    runs: dict[str, Steps] = {run: steps_of(context, run)}
    with context.engine.view(context.tenant) as view:
        waiting = [run]
        for each in waiting:  # it grows meanwhile
            inner = [(id, steps) for id, steps in _inside(view, each) if id not in runs]
            runs.update(inner)
            waiting += [id for id, _ in inner]
    return list(runs.values())


def _inside(view: View, run: str) -> list[tuple[str, Steps]]:
    """Return the runs that a run started, in the order in which the log heard of them, with their steps."""
    from woodrat.runs.index import inside

    position = view.head().position
    return [(id, in_order(entry_index.run_entries(view, id, position))) for id in inside(view, run, position)]


def step_gaps(view: View, run: str, through: int, end: int) -> list[int] | None:
    """Return the numbers below `end` under which the log holds nothing of a run; `None` for one no recorder began."""
    owner: Any = None
    start: int | None = None
    taken: set[int] = set()
    for entry in entry_index.run_entries(view, run, through):
        body: Any = form.decode(entry.body) if entry.body is not None else {}
        if entry.kind == "run.started" and start is None:
            owner, start = body.get("agent"), entry.position
            if "basis" not in body:
                return None  # imported: whoever made it counted otherwise
        if entry.kind != "run.judged" and body.get("agent") == owner and type(body.get("step")) is int:
            taken.add(body["step"])
    if start is None or end - len(taken) > GAPS_MAX:
        return None
    missing = {number for number in range(end) if number not in taken}
    if missing:
        from woodrat.runs.index import written

        # Only where a step left no entry of the run: then it wrote something, or nothing at all.
        for entry in written(view, run, through):
            body = form.decode(entry.body or b"{}")
            if body.get("agent") == owner:
                missing.discard(body.get("step"))
    return sorted(missing)


def accounted(body: dict[str, Any], gaps: list[int] | None) -> dict[str, Any]:
    """Return the body of an end that says which numbers left nothing, where that is known."""
    if gaps is None:
        return body
    return {**body, "numbered": True, **({"skipped": gaps} if gaps else {})}
