"""Resuming: an interrupted run carried on, and a run of another process continued from here.

Its recorded steps are answered from the log (`recording.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.ownership import check_owner
from woodrat.record_json import Record
from woodrat.records import dataclass, replace
from woodrat.runs import trace, values
from woodrat.runs.facts import READS
from woodrat.runs.recorder import current
from woodrat.runs.recorder.agent_function import AgentCall, agent_call
from woodrat.runs.recorder.log import family, steps_of
from woodrat.runs.recorder.recording import FAIL, RETRY, Body, OnUnknown, Recording, Steps
from woodrat.runs.recorder.restoration import Restored, restored
from woodrat.runs.recorder.start import begin
from woodrat.runs.recorder.steps import NOTHING_RECORDED, ModelPlace
from woodrat.runs.shape import SHAPE
from woodrat.state.meaning import RunEntry
from woodrat.state.run_owner import owner_of

if TYPE_CHECKING:
    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.runs.recorder.log import LocalLog
    from woodrat.runs.recorder.run import Run
    from woodrat.runs.recorder.steps import Begun, RunLog, StepRecorder


@dataclass(frozen=True, slots=True)
class Resumed(Record):
    """What came of carrying on a run."""

    run: str
    """Id of the run."""
    status: str
    """How it ended."""
    answer: Any
    """What it answered."""
    result: Any
    """What the agent's function returned."""
    from_log: int
    """How many steps the log answered."""
    unused: int
    """How many recorded steps the agent's function did not ask for again."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        # What the agent answers and returns may be any object of Python.
        return Record.to_json(replace(self, answer=values.plain(self.answer), result=values.plain(self.result)))


def carried_on(
    log: LocalLog,
    run_id: str,
    agent: Callable[..., Any],
    *,
    on_unknown: OnUnknown = FAIL,
    on_error: str = "note",
    presented: Callable[[Run], Any] | None = None,
) -> tuple[Run, AgentCall]:
    """Return an interrupted run, its recorded steps ready to answer, and how the agent's function is called for it.

    The run has taken note of being resumed; where anything is refused, nothing was written.
    """
    check_on_unknown(on_unknown)
    run, steps = interrupted(log, run_id, on_unknown=on_unknown, on_error=on_error)
    call = call_of(run, agent, presented)
    claim_resumed(log, run, steps)
    return run, call


def interrupted(log: LocalLog, run_id: str, *, on_unknown: OnUnknown, on_error: str) -> tuple[Run, Steps]:
    """Return an interrupted run that is held by this process, and its recorded steps; nothing is written."""
    told = family(log.context, run_id)
    steps = told[0]
    check_owner(log.agent, run_id, owner_of(run_id, steps), "Nothing was resumed.")
    if log.is_recorded(run_id):
        problem = "this process is recording it"
        raise Refused([Fault(f"run {run_id}", problem, "End it, or let it end.")], "Nothing was resumed.")
    recording = Recording.of_family(told, on_unknown)
    if recording.has_ended:
        status = next(body.get("status") for kind, body in steps if kind == "run.ended")
        problem = f"it has ended ({status})"
        remedy = "Only a run without an end is resumed; start another."
        raise Refused([Fault(f"run {run_id}", problem, remedy)], "Nothing was resumed.")
    recording.check_settled()
    run = begun_again(log, run_id, recording.started, on_error)
    run.take_over(recording)
    return run, steps


def claim_resumed(log: LocalLog, run: Run, steps: Steps) -> None:
    """Note in the log that a run is resumed here; of two who do so at the same time, one is refused."""
    begun = run.take_number()
    said: dict[str, Json] = {"text": "The run was resumed.", "data": {"event": "resumed", "recorded": len(steps)}}
    try:
        _claim(log, run, "resume", begun, said, steps)
    except Refused as refusal:
        problem = "another process resumed it at the same time"
        raise Refused(
            [Fault(f"run {run.id}", problem, "Wait for the outcome first.")], "Nothing was resumed."
        ) from refusal


def check_on_unknown(on_unknown: object) -> None:
    """Refuse what says nothing about a call whose end nobody knows."""
    if not callable(on_unknown) and on_unknown not in (FAIL, RETRY):
        remedy = "Use fail, retry, or a function of the tool's name and arguments."
        raise Refused([Fault("on_unknown", f"got {shown(on_unknown)}", remedy)], "Nothing was resumed.")


def _claim(log: LocalLog, run: Run, verb: str, begun: Begun, said: dict[str, Json], steps: Steps) -> None:
    """Note that a run is taken over here. Of two who do so after the same entries, one is refused."""
    if not run.is_held:
        raise Refused([Fault(f"run {run.id}", "this process is recording it", "End it, or let it end.")])
    event = _event("run.noted", said)
    times = sum(_event(kind, body) == event for kind, body in steps)
    body = values.fit({**begun.body(run.id), **said, "agent": run.agent})
    arguments: dict[str, Json] = {"run": run.id, "span": begun.span}
    try:
        # The key is the same for whoever comes after the same entries, in another process too.
        log.write_entries(
            verb,
            arguments,
            lambda draft: draft.add("run.noted", body, RunEntry(run.id)),
            key=f"{run.id}.{verb}.{times}",
        )
    except BaseException:
        run.release()
        raise


def continued(
    log: LocalLog, run_id: str | None = None, *, ends: bool = False, on_error: str = "note", alone: bool = False
) -> Run:
    """Return a run of another process, to be recorded into from here as well; `alone` is refused to all but one."""
    if run_id is None:
        place, traceparent = current.named_by_environment()
        place = place or trace.traced(traceparent)
        if place is None:
            problem = f"neither an id nor {trace.RUN_VARIABLE} names a run"
            remedy = "Send the run's id, or start this process with the variables of run.environment()."
            raise Refused([Fault("run", problem, remedy)], NOTHING_RECORDED)
    else:
        place = trace.traced(run_id) or trace.place_of(run_id) if isinstance(run_id, str) else None
    steps = steps_of(log.context, run_id if place is None else place.run)
    assert place is not None
    check_owner(log.agent, place.run, owner_of(place.run, steps), NOTHING_RECORDED)
    recording = Recording(steps, live=True)
    if recording.has_ended:
        raise Refused([Fault(f"run {place.run}", "it has ended", "Judge it, or start another.")], NOTHING_RECORDED)
    run = begun_again(log, place.run, recording.started, on_error)
    run.take_over(recording)
    run.recording = None
    run.ends = ends
    run.under = place.span if place.span != run.span else None
    remember(run, steps)
    begun = run.take_number()
    # Keys of this process are its own: what it writes is not a repetition of what another wrote.
    run.counter = f"{begun.span}."
    said: dict[str, Json] = {"text": "The run was continued in another process.", "data": {"event": "continued"}}
    if alone:
        _claim(log, run, "continue", begun, said, steps)
    else:
        run.record_step("run.noted", begun, {**begun.body(run.id), **said})
    return run


def _event(kind: str, body: Body) -> object:
    data = body.get("data") if kind == "run.noted" else None
    return data.get("event") if isinstance(data, dict) else None


def begun_again(log: RunLog, run_id: str, started: Body, on_error: str) -> Run:
    """Return a run as its beginning in the log describes it."""
    if not started:
        problem = "its start is not in the log"
        raise Refused([Fault(f"run {run_id}", problem, "Start another run.")], "Nothing was resumed.")
    recorded = started.get("inputs")
    inputs = restored(recorded, started.get(SHAPE))
    if isinstance(recorded, dict) and type(inputs.value) is not dict:
        inputs = Restored(recorded, ("the whole value: its shape does not fit",), inputs.is_whole)
    run = begin(
        log,
        started.get("query", ""),
        subject=started.get("subject"),
        conversation=started.get("conversation"),
        principal=started.get("principal"),
        inputs=None if values.is_mark(recorded) else inputs.value,
        agent=started.get("agent"),
        code=started.get("code"),
        redact=started.get("redact", ()),
        on_error=on_error,
        recall=started.get("recall") is True,
    )
    run.keep_unrestored("inputs", None, inputs.problems)
    return run


def remember(run: StepRecorder, steps: Steps) -> None:
    """Let a run know what it has read and been answered in another process."""
    from woodrat.canon.ids import parse_ref

    for kind, body in steps:
        if kind == "run.tool" and "result" in body:
            run.note_result("tool", str(body.get("span")), body["result"])
        elif kind == "run.model" and "response" in body:
            run.note_result("model", str(body.get("span")), body["response"])
            if isinstance(body.get("model"), str) and type(body.get("step")) is int:
                call = ModelPlace(body["model"], str(body.get("span")), body["step"])
                run.note_model(call, str(body.get("under") or run.span), "")
        elif kind == "run.read" and isinstance(body.get("fields"), dict) and isinstance(body.get("entity"), str):
            with suppress(Refused):  # what a recorder elsewhere calls an entity may be none
                remember_read(run, parse_ref(body["entity"]), body)


def remember_read(run: StepRecorder, entity: Ref, body: Body) -> None:
    """Let a run know what it has read of an entity in another process."""
    for name, item in body["fields"].items():
        told = item.get("observations", [item.get("observation")]) if isinstance(item, dict) else []
        named = [id for id in told if isinstance(id, str)] if isinstance(told, list) else []
        if not named:
            continue
        origin = {"kind": "read", "entity": body["entity"], "field": name, "observations": named}
        if values.is_whole(item.get("value")):
            run.links.add(READS, name, item["value"], {**origin, "position": body.get("position")})
        run.links.see(entity, named)


def resume(run: Run, call: AgentCall) -> Resumed:
    """Go on with a run that is carried on here, with the agent's function; of an async one, in a loop of its own."""
    from inspect import iscoroutine

    with run:
        result = call()
        if iscoroutine(result):
            import asyncio

            result = asyncio.run(result)
        answer_with(run, result)
    return resumed(run, result)


def call_of(run: Run, agent: Callable[..., Any], presented: Callable[[Run], Any] | None = None) -> AgentCall:
    """Return how the agent's function is called to go on with a run; where it cannot be, the run stays interrupted."""
    try:
        call = agent_call(agent, run, presented)
    except BaseException:
        run.release()
        raise
    run.is_aside = call.begins_run
    return call


def answer_with(run: Run, result: object) -> None:
    """Take what the agent's function returned as the answer, unless the run has one."""
    if run.answered is None and result is not None and not run.ended:
        run.answer(result)


def resumed(run: Run, result: object) -> Resumed:
    """Return what came of a run that was carried on."""
    if run.is_aside and run.successor is None:
        remedy = "Resume it with the function that began it, or with one that takes the run."
        problem = "the function was to begin it, with ledger.run or memory.turn, and did not"
        raise Refused([Fault(f"run {run.id}", problem, remedy)], "The run was not resumed.")
    went_on: Any = run if run.successor is None else run.successor
    assert went_on.recording is not None and went_on.status is not None
    recording = went_on.recording
    return Resumed(run.id, went_on.status, went_on.answered, result, recording.answered, recording.unused)
