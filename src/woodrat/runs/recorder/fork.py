"""Forks: a new run that answers from the recording of another up to a step, where something is edited.

What the agent asks for before that step is answered from the recording and copied into the new run; at the step it is
given the edited value, and from there on everything is done for real. Tools marked `once` are never called again for an
effect that is on record. Where the agent leaves the recording before it has come to the step, it is stopped.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, NoReturn, cast

from woodrat.canon import form
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.receipts import report_again
from woodrat.merge.snapshot import Snapshot
from woodrat.record_json import Record
from woodrat.records import dataclass, replace
from woodrat.runs import edits, values
from woodrat.runs.recorder import current
from woodrat.runs.recorder.agent_function import agent_call
from woodrat.runs.recorder.current import Frame
from woodrat.runs.recorder.log import steps_of
from woodrat.runs.recorder.recalls import RECALL, recorded_recall
from woodrat.runs.recorder.recording import Recording, begun_with, is_answerable, spelled
from woodrat.runs.recorder.restoration import restored
from woodrat.runs.recorder.resume import answer_with
from woodrat.runs.recorder.start import begin
from woodrat.runs.shape import SHAPE, shape_of
from woodrat.state.fact import STATED, Fact

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.canon.moment_words import Time
    from woodrat.context import Context
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.report import Report
    from woodrat.runs.facts import Facts
    from woodrat.runs.recorder.recalls import RecordedRecall
    from woodrat.runs.recorder.recording import Body, InnerRuns, Steps
    from woodrat.runs.recorder.run import Run
    from woodrat.runs.recorder.steps import Begun, Reads, RunLog, StepRecorder
    from woodrat.runs.rules import Rule, Verdict

NOTHING_FORKED: Final = "Nothing was forked."

LIVE, RECORDED = "live", "recorded"
"""Where tools answer from after the edit: they are called, or the recording answers and the fork stops without one."""

_PLACE: Final = frozenset({"run", "agent", "step", "span", "started_at", "under"})
_CALL: Final = frozenset(
    {*_PLACE, "name", "args", "result", "errored", "error", "duration_ms", "once", "redact"}
    | {"model", "request", "messages", "parameters", "response", "usage"}
)
"""What of a call stays when its outcome is edited; anything else describes the outcome as it was."""


WORDS_MAX: Final = 200
"""How much of the arguments of a call a statement shows."""


class ForkStopped(BaseException):
    """Ends an agent whose fork has no answer; no `except Exception` of the agent keeps it going."""


class NotInRecording(Exception):
    """A fork was stopped: the agent asked for something that the recording does not answer."""


@dataclass(frozen=True, slots=True)
class Forked(Record):
    """What came of a fork."""

    run: str
    """Id of the new run."""
    parent: str
    """Id of the run it was forked from."""
    step: int
    """The step that was edited."""
    set: Mapping[str, Json]
    """What was edited there, by path."""
    was: Mapping[str, Json]
    """What the recording has there, by path."""
    status: str
    """How the new run ended."""
    answer: Any
    """What it answered."""
    result: Any
    """What the agent's function returned."""
    from_log: int
    """How many steps the recording answered."""
    stopped: str | None
    """Why the fork was stopped; none where it came to its end."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        # What the agent answers and returns may be any object of Python.
        return Record.to_json(replace(self, answer=values.plain(self.answer), result=values.plain(self.result)))


class ForkPlace(NamedTuple):
    """The step at which a run is forked, and what is edited there."""

    run: str
    step: int
    span: str
    kind: str
    label: str
    set: dict[str, Json]
    """The edits, by path."""
    was: dict[str, Json]
    """What was recorded there."""
    parts: dict[str, Json]
    """The parts of the step that change, as they become."""

    def told(self, hidden: Collection[str]) -> dict[str, Json]:
        """Return what the beginning of the fork says of it."""
        sides = {"set": self.set, "was": self.was}
        shown_sides: dict[str, Json] = {
            name: {path: _shown(path, value, hidden) for path, value in side.items()} for name, side in sides.items()
        }
        return {"run": self.run, "step": self.step, "span": self.span, "what": self.label, **shown_sides}


def _shown(path: str, value: Json, hidden: Collection[str]) -> Json:
    """Return a value as the beginning of a fork may show it."""
    if any(name in hidden for name in edits.names_in(path)):
        return values.REDACTED
    return values.bounded(value, values.ITEM_BYTES_MAX, frozenset(hidden))


class ForkRecording(Recording):
    """What the log holds of a run up to a step, answering its fork."""

    copies: ClassVar[bool] = True

    def __init__(
        self, steps: Steps, place: ForkPlace | None, tools: str, source: Context, outer: ForkRecording | None
    ) -> None:
        before, after = _parted(steps, place)
        super().__init__(before)
        self.has_ended = False  # it is another run that ended
        self.parent = str(steps[0][1].get("run"))
        """The run it answers from."""
        self._place, self._tools, self._source, self._outer = place, tools, source, outer
        self.hidden: frozenset[str] = values.NOTHING
        """Keys whose values the fork hides."""
        self._after = Recording(after)
        self._all = steps
        self._reached = place is not None and place.kind == "run.started"
        self._reads = threading.local()
        self.statement: str | None = None
        """Why it was stopped, in words."""
        self._inside: list[ForkRecording] | None = None

    # -- where it is

    @property
    def reached(self) -> bool:
        """Whether the step that is edited has come."""
        return self._reached if self._outer is None else self._outer.reached

    @property
    def stopped(self) -> str | None:
        """Why the fork was stopped."""
        return self.statement if self._outer is None else self._outer.stopped

    def stop(self, statement: str) -> NoReturn:
        """End the fork: it asks for what nobody can answer."""
        first = self if self._outer is None else self._outer
        first.statement = first.statement or statement
        raise ForkStopped

    def _check(self) -> None:
        if self.stopped is not None:
            raise ForkStopped  # in another thread, or in code that caught the first one

    def _is_edited(self, body: Mapping[str, Json]) -> bool:
        return self._place is not None and body.get("span") == self._place.span

    def _take(
        self, key: tuple[Any, ...], *, fits: Callable[[Body], bool] | None = None, once: bool = False
    ) -> Body | None:
        with self._lock:
            queue = self._waiting.get(key)
            for body in list(queue or ()):
                if body.get("span") not in self._left_out and (fits is None or fits(body)):
                    assert queue is not None
                    queue.remove(body)
                    self.answered += 1
                    return body
        return None

    def _missing(self, what: str, key: tuple[Any, ...]) -> None:
        """Stop where the agent asks for what the recording does not hold before the edit; else go on live."""
        if self.reached or self._after._waiting.get(key):  # noqa: SLF001 - one class, two halves of a recording
            return
        where = "" if self._place is None else f" before step {self._place.step}"
        self.stop(f"the agent asked for {what}, which the recording of {self.parent} does not hold{where}")

    # -- what is asked for

    def tool(self, name: str, args: Json, *, once: bool) -> Body | None:
        self._check()
        key = ("run.tool", name, spelled(args))
        body = self._take(key)
        what = f"tool {name}({spelled(args).decode()[:WORDS_MAX]})"
        if body is not None:
            return self._answer_of(body, what)
        if once or self._tools == RECORDED:
            later = self._after._take(key, once=True)  # noqa: SLF001
            if later is not None:
                self.answered += 1
                return self._answer_of(later, what)
            if self._tools == RECORDED and self.reached:
                self.stop(f"tools are answered from the recording only, and it does not hold {what}")
        self._missing(what, key)
        return None

    def _answer_of(self, body: Body, what: str) -> Body:
        """Return a recorded call as the fork is given it."""
        if self._is_edited(body):
            body = self._edited(body)
        if not is_answerable(body):
            known = "it began, and its end is not recorded" if body.get("begun") is True else "it was not kept whole"
            self.stop(f"the recording of {self.parent} cannot answer {what}: {known}")
        return body

    def _edited(self, body: Body) -> Body:
        """Return the step at which the run is forked, as it becomes."""
        assert self._place is not None
        self._reached = True
        parts = {part: value for part, value in self._place.parts.items() if part not in ("prompt", "fields")}
        if all(form.same(body.get(part), value) for part, value in parts.items()):
            return body
        found = {name: value for name, value in body.items() if name in _CALL}
        if "error" in parts:
            error = parts["error"]
            failure = error if isinstance(error, dict) else {"type": "RuntimeError", "message": str(error)}
            return {**{k: v for k, v in found.items() if k != "result"}, "errored": True, "error": failure}
        found.pop("error", None)
        (part,) = parts
        value = _edited_value(restored(body.get(part), body.get(SHAPE)).value, part, self._place)
        plain = values.plain(value)
        shape, _ = shape_of(value, plain)
        # A shape speaks of JSON as the log has it.
        kept = form.decode(form.serialise(plain))
        return {**found, part: kept, "errored": False, **({} if shape is None else {SHAPE: shape})}

    def model(self, model: str, request: str, messages: Json = None, parameters: Json = None) -> Body | None:
        self._check()
        key = ("run.model", model, request)
        body = self._take(key)
        if body is not None:
            return self._answer_of(body, f"model {model}")
        self._missing(f"model {model} with another request", key)
        return None

    def prompt(self, model: str, request: str) -> Json:
        """Return the messages that a call of a model sends in place of its own; none for all but an edited one."""
        place = self._place
        if place is None or "prompt" not in place.parts or self._reached:
            return None
        body = self._take(("run.model", model, request), fits=self._is_edited)
        if body is None:
            return None
        self._reached = True
        return place.parts["prompt"]

    def is_edited(self, body: Mapping[str, Json]) -> bool:
        """Return whether an answer is the edited one, which holds whatever a block does."""
        return self._is_edited(body)

    def differed(self, kind: str, name: str, recorded: Mapping[str, Json], now: Mapping[str, Json]) -> None:
        """A block came out differently from what is recorded, and the fork goes on with that."""

    def read(self, verb: str, args: Mapping[str, Json], as_of: int | None, effective: str | None) -> int | None:
        self._check()
        asked = args["ref"] if verb == "show" else spelled(dict(args))
        key = ("run.read", verb, asked, as_of, effective)
        body = self._take(key)
        if body is None:
            self._missing(f"a read of {args['ref']}" if "ref" in args else verb, key)
            return None
        if self._is_edited(body):
            self._reached = self._reads.edited = True
        return int(body["position"])

    def recall(self, args: Json, as_of: int | None) -> RecordedRecall | None:
        self._check()
        key = ("run.read", RECALL, spelled(args), as_of, None)
        body = self._take(key)
        if body is None:
            self._missing("a recall", key)
            return None
        return recorded_recall(body)

    def answering(self, reads: Reads) -> Reads:
        """Return the reads that answer the read that was asked for last in this thread."""
        if not getattr(self._reads, "edited", False):
            return reads
        self._reads.edited = False
        assert self._place is not None
        return EditedReads(reads, self._place.parts["fields"])

    def note(self, said: Mapping[str, Json]) -> bool:
        """Return that it is to be recorded in the fork too."""
        self._check()
        return False

    def wrote(self, repeated: bool) -> None:
        """What was written before the edit is answered by `report`."""

    def report(self, key: str) -> Report | None:
        """Return what a write of the recorded run was answered, before the edit; it is not written again."""
        self._check()
        if self.reached:
            return None
        source, agent = self._source, str(self.started.get("agent"))
        with source.engine.view(source.tenant) as view:
            receipt = view.receipt(agent, f"{self.parent}.{key}")
            report = None if receipt is None else report_again(view, source.policies, receipt)
        if report is None:
            where = "" if self._place is None else f" before step {self._place.step}"
            self.stop(f"the agent wrote something that the recording of {self.parent} does not hold{where}")
        self.answered += 1
        return report

    def decision(
        self, stage: str, mode: str, facts: Facts, rules: Sequence[Rule], default: object, hidden: Collection[str],
        on_missing: str,
    ) -> Verdict | None:  # fmt: skip
        """Return none: rules are evaluated anew, and what comes of them is recorded in the fork."""
        self._check()
        return None

    def choice(self, stage: str, made: Mapping[str, Json], facts: Facts, hidden: Collection[str]) -> Verdict | None:
        """Return none: what is chosen is recorded in the fork."""
        self._check()
        return None

    # -- what is copied

    def copied(self, body: Mapping[str, Json], begun: Begun, run: str) -> dict[str, Json]:
        """Return the entry of the fork that a recorded step becomes."""
        said = {name: value for name, value in body.items() if name not in _PLACE and name != "copy_of"}
        for part in ("result", "response"):
            if self._is_edited(body) and part in said:
                shown_part = values.bounded(said[part], values.RESULT_BYTES_MAX, self.hidden)
                if not form.same(shown_part, said[part]):  # hidden or cut: its shape would tell of it
                    said.pop(SHAPE, None)
                said[part] = shown_part
        return {**begun.body(run), **said, "copy_of": {"run": self.parent, "span": body.get("span")}}

    def copy_inside(self, run: StepRecorder, span: object, new: str) -> None:
        """Copy what happened inside a call that is answered whole: it does not happen again."""
        spans = {span: new}
        for kind, body in self._all:
            under = body.get("under")
            if under not in spans or kind in ("run.started", "run.ended", "run.judged"):
                continue
            begun = run.begin_step()
            if begun is None:
                return
            begun = begun._replace(under=spans[under])
            if body.get("span") in spans:  # the entities that one search found
                begun = begun._replace(span=spans[body["span"]])
            spans[body.get("span")] = begun.span
            run.record_step(kind, begun, self.copied(_respanned(body, spans), begun, run.id))

    def child(self, log: InnerRuns, beginning: Mapping[str, Json]) -> Recording | None:
        """Return what answers a run that is started inside, where the recorded run started such a one before."""
        self._check()
        if self.reached:
            return None
        with self._lock:
            if self._inside is None:
                self._inside = list(self._runs_inside())
            wanted = _without_agent(beginning)
            for found in self._inside:
                if _without_agent(found.started) == wanted:
                    self._inside.remove(found)
                    self.answered += 1
                    return found
        what = f"a run inside ({shown(beginning.get('query'))})"
        self._missing(what, ())
        return None

    def _runs_inside(self) -> Sequence[ForkRecording]:
        from woodrat.runs.recorder.log import LocalLog

        told = LocalLog(self._source).runs_inside(self.started)
        outer = self if self._outer is None else self._outer
        return [ForkRecording(steps, None, self._tools, self._source, outer) for steps in told]


def _edited_value(value: Any, part: str, place: ForkPlace) -> Any:
    """Return a value as the agent had it, with what was edited in it; what JSON says where that cannot be done."""
    for edit in edits.parse(place.set, []):
        if edit.part == part:
            try:
                value = edits.replaced(value, edit.path, edit.value)
            except (AssertionError, LookupError, TypeError, ValueError):
                return place.parts[part]
    return value


def _without_agent(beginning: Mapping[str, Json]) -> bytes:
    return spelled({name: value for name, value in begun_with(beginning).items() if name != "agent"})


def _respanned(body: Mapping[str, Json], spans: Mapping[object, str]) -> dict[str, Any]:
    """Return a step whose facts came from calls that were copied, with the spans these have now."""

    def follow(value: Any) -> Any:
        if isinstance(value, dict):
            found = {name: follow(item) for name, item in value.items()}
            if found.get("kind") in ("tool", "model", "decision") and found.get("span") in spans:
                found["span"] = spans[found["span"]]
            return found
        return [follow(item) for item in value] if isinstance(value, list) else value

    parts = {name: follow(body[name]) for name in ("facts_origin", "rules", "chosen_by") if name in body}
    return {**body, **parts}


def _parted(steps: Steps, place: ForkPlace | None) -> tuple[list[tuple[str, Body]], list[tuple[str, Body]]]:
    """Return the steps up to the edited one, itself included, and those after it."""
    if place is None:
        return list(steps), []
    if place.kind == "run.started":
        return [steps[0]], list(steps[1:])
    last = max(number for number, (_, body) in enumerate(steps) if body.get("span") == place.span)
    return list(steps[: last + 1]), list(steps[last + 1 :])


class EditedReads:
    """Reads that show one entity as it was edited."""

    def __init__(self, reads: Reads, fields: Json) -> None:
        self._shown, self._fields = reads, fields

    @property
    def position(self) -> int:
        """The position reads are answered at."""
        return self._shown.position

    @property
    def valid_at(self) -> str | None:
        """What was true by this time alone counts."""
        return self._shown.valid_at

    def at(self, moment: Moment | None = None, *, valid_at: Time | None = None) -> Reads:
        """Return the reads as of another moment, which are not edited."""
        return self._shown.at(moment, valid_at=valid_at)

    def ask(self, verb: str, *arguments: Any, **given: Any) -> Any:
        """Return what a verb answers, with the edited fields."""
        found = self._shown.ask(verb, *arguments, **given)
        assert isinstance(found, Snapshot) and isinstance(self._fields, dict)
        return EditedSnapshot.of(found, self._fields)


class EditedSnapshot(Snapshot):
    """What was believed about an entity, but for the fields that a fork has edited: nobody said these."""

    @staticmethod
    def of(snapshot: Snapshot, fields: Mapping[str, Json]) -> Snapshot:
        """Return a snapshot that shows these fields."""
        edited = {name for name, value in fields.items() if not form.same(snapshot.fields.get(name), value)}
        if not edited and fields.keys() == snapshot.fields.keys():
            return snapshot
        found = EditedSnapshot.__new__(EditedSnapshot)
        found.__dict__.update({**snapshot.__dict__, "fields": dict(sorted(fields.items())), "edited": edited})
        return found

    def fact(self, name: str) -> Fact:
        """Return one field as a fact; an edited one is stated, as nobody said it."""
        found = super().fact(name)
        return replace(found, origin=STATED) if name in self.__dict__["edited"] else found


# -- from the beginning to the end


def fork_of(
    log: RunLog,
    source: Context,
    run_id: object,
    *,
    at: object,
    edited: object,
    tools: str = LIVE,
    on_error: str = "note",
) -> Run:
    """Return a new run that answers from the recording of another up to a step; it has not started yet."""
    steps = steps_of(source, run_id)
    faults: list[Fault] = []
    if tools not in (LIVE, RECORDED):
        faults.append(Fault("tools", f"got {shown(tools)}", f"Use {LIVE} or {RECORDED}."))
    changes = edits.parse(edited, faults)
    place = _find(steps, str(run_id), at, changes, faults)
    if faults or place is None:
        raise Refused(faults, NOTHING_FORKED)
    started, inputs = steps[0][1], steps[0][1].get("inputs")
    given = restored(inputs, started.get(SHAPE)).value
    if "inputs" in place.parts:
        inputs = place.parts["inputs"]
        given = _edited_value(given, "inputs", place)
    if not values.is_whole(inputs):
        problem = "its inputs were hidden, cut or erased, so the agent cannot be given them again"
        raise Refused([Fault(f"run {run_id}", problem, "Fork it at step 0 and set inputs=…")], NOTHING_FORKED)
    hidden = started.get("redact", ())
    run = begin(
        log,
        place.parts.get("query", started.get("query", "")),
        subject=started.get("subject"),
        conversation=started.get("conversation"),
        principal=started.get("principal"),
        inputs=given,
        code=started.get("code"),
        redact=hidden,
        on_error=on_error,
        recall=started.get("recall") is True,
    )
    run.beginning = replace(run.beginning, forked_from=place.told(run.hidden))
    recording = ForkRecording(steps, place, tools, source, None)
    recording.hidden = run.hidden
    run.inherited = recording
    return run


def _find(steps: Steps, run: str, at: object, changes: tuple[edits.Edit, ...], faults: list[Fault]) -> ForkPlace | None:
    """Return the step to be edited, and what becomes of it."""
    if steps[0][0] != "run.started":
        faults.append(Fault(f"run {run}", "its start is not in the log", "Fork another run."))
        return None
    shown_steps = [(kind, body) for kind, body in steps if kind not in ("run.ended", "run.judged")]
    found = [
        (kind, body)
        for kind, body in shown_steps
        if (body.get("step") == at and type(at) is int) or (isinstance(at, str) and body.get("span") == at)
    ]
    spans = {body.get("span") for _, body in found}
    if len(spans) != 1:
        told = [f"{body.get('step')} {_label(kind, body)}" for kind, body in shown_steps if kind in edits.PARTS]
        listed = ", ".join(dict.fromkeys(told[:20])) + (" …" if len(told) > 20 else "")
        problem = f"{run} has {'no step' if not spans else 'several steps'} {shown(at)}"
        remedy = f"Name one of {listed}." if not spans else f"Name the span: {', '.join(sorted(map(str, spans)))}."
        faults.append(Fault("at", problem, remedy))
        return None
    kind, body = found[-1]  # of a tool marked `once` the entry that has its result
    label = _label(kind, body)
    if kind not in edits.PARTS or (kind == "run.read" and body.get("within") is not None):
        told = [str(each.get("step")) for name, each in shown_steps if name in edits.PARTS]
        problem = f"step {body.get('step')} is the {label}, which cannot be edited"
        remedy = "Edit an input, the result of a tool, the answer or prompt of a model, or what `show` read: steps "
        faults.append(Fault("at", problem, remedy + ", ".join(dict.fromkeys(told[:20])) + "."))
        return None
    if kind == "run.read" and body.get("found") is not True:
        faults.append(Fault("at", f"{label} found nothing, so there is nothing to edit", "Edit another step."))
        return None
    parts, was = edits.apply(kind, body, changes, faults)
    step = body.get("step")
    return ForkPlace(
        run, step if type(step) is int else 0, str(body.get("span")), kind, label,
        {edit.text: edit.value for edit in changes}, was, parts,
    )  # fmt: skip


def _label(kind: str, body: Mapping[str, Any]) -> str:
    match kind:
        case "run.started":
            return "start"
        case "run.tool":
            return f"tool {body.get('name')}"
        case "run.model":
            return f"model {body.get('model')}"
        case "run.decided":
            return f"decision {body.get('stage')}"
        case "run.noted":
            return "note"
    return f"read of {body.get('entity')}" if body.get("within") is None else str(body["within"])


def fork(run: Run, agent: Callable[..., Any]) -> Forked:
    """Carry out a fork with the agent's function; of an async one, in a loop of its own."""
    from inspect import iscoroutine

    call = agent_call(agent, run)
    with standing_in(run) if call.begins_run else run:
        try:
            result = call()
            if iscoroutine(result):
                import asyncio

                result = asyncio.run(result)
            answer_with(went_on(run), result)
        except (ForkStopped, Exception) as problem:
            if run.is_aside and run.successor is None:
                raise
            return ended(went_on(run), None, problem)
        return ended(went_on(run), result)


@contextmanager
def standing_in(run: Run) -> Iterator[None]:
    """Let a fork stand where the agent's function begins it itself: the run that it begins is the fork."""
    run.is_aside, run.recording = True, run.inherited
    with current.entered(Frame(run, run.span)):
        yield


def went_on(run: Run) -> Run:
    """Return the run that is the fork: the one that was made, or the one that the agent's function began."""
    if not run.is_aside:
        return run
    if run.successor is None:
        problem = "the function was to begin the fork, with ledger.run or memory.turn, and did not"
        remedy = "Fork it with the function that began the run, or with one that takes the run."
        raise Refused([Fault("with_", problem, remedy)], "Nothing was recorded.")
    return cast("Run", run.successor)


def ended(run: Run, result: object, problem: BaseException | None = None) -> Forked:
    """End a fork as its agent ended, and return what came of it."""
    recording = run.recording
    assert isinstance(recording, ForkRecording)
    told: Any = run.beginning.forked_from
    stopped = recording.stopped
    if stopped is None and problem is None and not recording.reached:
        stopped = f"the agent never came to step {told['step']} ({told['what']}), so nothing was edited"
    if not run.ended:
        if stopped is not None:
            run.end("error", error=NotInRecording(stopped))
        elif isinstance(problem, Exception):
            run.end("error", error=problem)
        else:
            run.end()
    return Forked(
        run.id, told["run"], told["step"], told["set"], told["was"], str(run.status), run.answered, result,
        recording.answered, stopped,
    )  # fmt: skip
