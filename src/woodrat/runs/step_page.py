"""Step pages: some steps of a run in the order in which they happened, and what is said of the run as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.runs.step_order import NumberedStep
from woodrat.runs.steps import Decision, Judgement, ModelCall, Note, Part, Read, ToolCall, Write
from woodrat.runs.summary import RunSummary, summary_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from woodrat.canon.form import Json
    from woodrat.runs.record import RunRecord

STEP_KINDS: Final = ("read", "tool", "model", "decision", "note", "write")
"""What kinds of steps there are."""


@dataclass(frozen=True, slots=True)
class RunStep(Record):
    """One step of a run; of what happened in it, the one field that its kind names is set."""

    number: int
    """What the step is called by, in `runs show --step` and in a fork."""
    kind: str
    """`read`, `tool`, `model`, `decision`, `note` or `write`."""
    agent: str | None
    """Which of several agents took it, where that is recorded."""
    depth: int
    """Inside how many calls it happened."""
    inside: int | None
    """Number of the call inside which it happened."""
    read: Read | None
    """What was read."""
    tool: ToolCall | None
    """The tool that was called."""
    model: ModelCall | None
    """The model that was called."""
    decision: Decision | None
    """What was decided."""
    note: Note | None
    """What was remarked."""
    writes: tuple[Write, ...]
    """What was written, all of it in one step."""


@dataclass(frozen=True, slots=True)
class RunSteps(Record):
    """Some steps of a run, in order, and what is said of the run as a whole."""

    run: RunSummary
    """The run in short."""
    query: str | None
    """What was asked, in full."""
    inputs: Mapping[str, Json]
    """What it was given."""
    code: str | None
    """Version of the agent's code."""
    basis: Mapping[str, Any] | None
    """The end of the log when it began: `{"log", "position"}`."""
    start: int | None
    """Position of the entry it began with; none when that is missing."""
    end: int | None
    """Position of the entry it ended with; none when there is none."""
    forked_from: Mapping[str, Any] | None
    """The run and step it is a fork of, and the edit: `{"run", "step", "span", "what", "set", "was"}`."""
    answer: Json
    """What it answered, in full."""
    error: Json
    """What ended it, where that was an error, in full."""
    judgements: tuple[Judgement, ...]
    """What was thought of it, in order."""
    problems: tuple[str, ...]
    """What could not be recorded, and which facts rules asked for and did not get, each once."""
    erased: int
    """How many of its entries were erased."""
    total: int
    """How many steps it has; of the kind that was asked for, where one was."""
    skipped: int
    """How many of them stand before those of this page."""
    items: tuple[RunStep, ...]
    """The steps of this page."""


def step_kind(part: Part | tuple[Write, ...]) -> str:
    """Return what kind of step it is, in a word."""
    words = {Read: "read", ToolCall: "tool", ModelCall: "model", Decision: "decision", tuple: "write"}
    return words.get(type(part), "note")


def steps_page(record: RunRecord, total: int, skipped: int, steps: Iterable[NumberedStep]) -> RunSteps:
    """Return a page of a run."""
    return RunSteps(
        run=summary_of(record),
        query=record.query,
        inputs=record.inputs,
        code=record.code,
        basis=record.basis,
        start=record.start,
        end=record.end,
        forked_from=record.forked_from,
        answer=record.answer,
        error=record.error,
        judgements=record.judgements,
        problems=record.problems,
        erased=len(record.erased),
        total=total,
        skipped=skipped,
        items=tuple(map(_step, steps)),
    )


def _step(step: NumberedStep) -> RunStep:
    part = step.part
    return RunStep(
        number=step.number,
        kind=step_kind(part),
        agent=step.agent,
        depth=step.depth,
        inside=step.inside,
        read=part if isinstance(part, Read) else None,
        tool=part if isinstance(part, ToolCall) else None,
        model=part if isinstance(part, ModelCall) else None,
        decision=part if isinstance(part, Decision) else None,
        note=part if isinstance(part, Note) else None,
        writes=part if isinstance(part, tuple) else (),
    )
