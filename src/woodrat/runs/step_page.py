"""Step pages: some steps of a run in order, and what is said of the run as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.record_json import Record
from woodrat.records import dataclass, fields_of
from woodrat.runs.step_order import RunStep
from woodrat.runs.steps import Judgement
from woodrat.runs.summary import RunSummary, summary_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from woodrat.canon.form import Json
    from woodrat.runs.record import RunRecord


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


def steps_page(record: RunRecord, total: int, skipped: int, steps: Iterable[RunStep]) -> RunSteps:
    """Return a page of a run."""
    made: dict[str, Any] = {"run": summary_of(record), "erased": len(record.erased), "total": total, "skipped": skipped}
    same = {name: getattr(record, name) for name in fields_of(RunSteps) if name not in {*made, "items"}}
    return RunSteps(**same, **made, items=tuple(steps))
