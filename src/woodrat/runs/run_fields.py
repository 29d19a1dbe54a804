"""Run fields: what the log holds about one run, and what follows from it alone.

`RunRecord` (`record.py`) adds the forms that other modules make of these fields, and these modules take the fields.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from woodrat.record_json import IN_PYTHON_ONLY, Record, derived
from woodrat.records import dataclass, field
from woodrat.runs import missing_facts
from woodrat.runs import steps as run_steps
from woodrat.runs.facts import decision_fact
from woodrat.runs.steps import Decision, Judgement, ModelCall, Note, Part, Read, ToolCall, Write

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from woodrat.canon.form import Json
    from woodrat.state.fact import Fact

DONE, ERROR, CANCELLED = "done", "error", "cancelled"
"""How a run can have ended."""
RUNNING, INTERRUPTED = "running", "interrupted"
"""How a run stands that has not ended: its recorder lives, or nobody knows."""
STATUSES: Final = frozenset({DONE, ERROR, CANCELLED, RUNNING, INTERRUPTED})

GOOD: Final = frozenset({"good", "passed"})
"""Verdicts that a run is as it should be: the words of `run.judge` and of an `evaluation`."""
BAD: Final = frozenset({"bad", "failed"})
"""Verdicts that it is not."""
SNAPSHOT: Final = "snapshot"
"""The attribute that holds what only a snapshot can say, of a run that was imported as one."""
WRITES: Final = "writes"
"""The attribute that holds what a run wrote in another log, of one that was imported as its own JSON."""
_PLACE: Final = attrgetter("started_at", "step", "span")
"""What steps are sorted by, in a form that costs little."""
MIXED: Final = "mixed"
"""The verdict on a run whose judges differ."""
SCORED: Final = "scored"
"""The verdict of a judge who gives a number and does not say whether it is good."""


def verdict_of(judgements: Iterable[Judgement]) -> str | None:
    """Return what the judges of a run think of the whole of it, by their judgements in order; none without any."""
    latest = {(each.by, each.agent): each.verdict for each in judgements if each.about is None}
    words = set(latest.values())
    words = words - {SCORED} or words
    return words.pop() if len(words) == 1 else MIXED if words else None


@dataclass(frozen=True, slots=True)
class RunFields(Record):
    """What the log holds about one execution of an agent."""

    id: str
    """The run."""
    status: str
    """`done`, `error`, `cancelled`, `interrupted` or `running`."""
    agent: str | None
    """Who ran: the owner of the run, who recorded all of it."""
    names: tuple[str, ...]
    """What agents inside call themselves, sorted, where whoever recorded the run was trusted to say so."""
    query: str | None
    """What was asked."""
    subject: str | None
    """The entity it is about, as a reference."""
    principal: str | None
    """On whose behalf."""
    conversation: str | None
    """Which conversation it is part of."""
    inputs: Mapping[str, Json]
    """What it was given."""
    code: str | None
    """Version of the agent's code."""
    basis: Mapping[str, Any] | None
    """The end of the log when it began: `{"log", "position"}`."""
    parent: Mapping[str, Any] | None
    """The step of another run that started it: `{"run", "span"}`."""
    forked_from: Mapping[str, Any] | None
    """The run and step it is a fork of, and the edit: `{"run", "step", "span", "what", "set", "was"}`."""
    trace: str | None
    """The W3C traceparent it was started with, where that names no run of this log; of a run that came as spans, the
    id of their trace."""
    linked: tuple[str, ...]
    """Other runs of the same trace, sorted."""
    using: Mapping[str, Any]
    """Versions in force: runbooks, tool configurations; the pipeline and the session it is part of."""
    recall: bool
    """Whether it answers from memory."""
    attributes: Mapping[str, Any]
    """What else an import said."""
    started_at: str | None
    """When it began; the time of the first step when no beginning is known."""
    ended_at: str | None
    """When it ended."""
    duration_ms: int | float | None
    """How long it took."""
    answer: Json
    """What it answered."""
    error: Json
    """What ended it, where that was an error."""
    noted_problems: tuple[str, ...]
    """What its recorder says at its end: what could not be recorded, and which facts rules did not get."""
    input_tokens: int
    """Tokens its models read."""
    output_tokens: int
    """Tokens its models wrote."""
    decisions: tuple[Decision, ...]
    """What it decided, in order."""
    tool_calls: tuple[ToolCall, ...]
    """The tools it called, in order."""
    models: tuple[ModelCall, ...]
    """The models it called, in order."""
    reads: tuple[Read, ...]
    """What it read, in order."""
    notes: tuple[Note, ...]
    """Its remarks, in order."""
    judgements: tuple[Judgement, ...]
    """What was thought of it, in order."""
    writes: tuple[Write, ...]
    """The observations it said, by position; first those in the log that it was imported from."""
    start: int | None
    """Position of the entry it began with; none when that is missing."""
    end: int | None
    """Position of the entry it ended with; none when there is none."""
    positions: tuple[int, ...]
    """Where its entries stand in the log."""
    erased: tuple[int, ...]
    """Those of them whose bodies were erased."""
    foreign: tuple[int, ...]
    """Where entries and observations of other agents stand that name the run; they are no part of it."""
    steps: tuple[Part, ...] = field(init=False, compare=False, repr=False, metadata=IN_PYTHON_ONLY)
    """Everything it did and all that was said about it, in order."""

    def __post_init__(self) -> None:
        """Put the steps in order; those of the same time, number and span are in the order of the kinds."""
        steps: list[Part] = [*self.reads, *self.tool_calls, *self.models, *self.decisions]
        steps += [*self.notes, *self.judgements]
        try:
            ordered = sorted(steps, key=_PLACE)
        except TypeError:  # some say when they began, and some do not
            ordered = sorted(steps, key=lambda step: step.order)
        object.__setattr__(self, "steps", tuple(ordered))

    @property
    def lacked(self) -> tuple[str, ...]:
        """Which facts its rules asked for and did not get, as its steps tell it; also where it has not ended."""
        found: dict[str, None] = {}
        for step in self.steps:
            if isinstance(step, Decision):
                found.update(dict.fromkeys(missing_facts.recorded_problems(step)))
            elif isinstance(step, Note) and missing_facts.is_undecided(step.data):
                found[step.text] = None
        return tuple(found)

    @derived
    def problems(self) -> tuple[str, ...]:
        """What could not be recorded, and which facts rules asked for and did not get, each once."""
        return tuple(dict.fromkeys((*self.noted_problems, *self.lacked)))

    @derived
    def previews_only(self) -> bool:
        """Whether its results and responses are previews: it was imported as a snapshot, which has no more."""
        return isinstance(self.attributes.get(SNAPSHOT), dict)

    @derived
    def iterations(self) -> int:
        """How often it asked a model."""
        return len(self.models)

    @derived
    def verdict(self) -> str | None:
        """What its judges think of the whole run: their one word, `mixed` when they differ, nothing without any.

        Of several judgements by one judge the latest counts. A mere score counts where nobody says more.
        """
        return verdict_of(self.judgements)

    @property
    def preferred(self) -> Judgement | None:
        """The latest judgement that states a better answer."""
        stated = [j for j in self.judgements if j.preferred is not None and j.about is None]
        return stated[-1] if stated else None

    @derived
    def pipeline(self) -> str | None:
        """The pipeline it is a step of, as a reference."""
        return run_steps.text(self.using.get("pipeline"))

    @derived
    def session(self) -> str | None:
        """The session it is part of, as a reference."""
        return run_steps.text(self.using.get("agent_session"))

    @property
    def in_force(self) -> tuple[dict[str, Any], ...]:
        """The runbooks and tool configurations in force when it began, each with its version."""
        return tuple(
            {"type": kind, **item}
            for kind in ("runbook", "tool_config")
            for item in run_steps.listed(self.using.get(kind))
            if isinstance(item, dict)
        )

    def facts(self) -> dict[str, Fact]:
        """Return what it decided as facts that a decision of another run can be based on, by stage; the last counts."""
        return {made.stage: decision_fact(made.stage, made.chosen, self.id, made.span) for made in self.decisions}

    @property
    def observations(self) -> frozenset[str]:
        """Ids of the observations it leaned on: those it read, and those behind its evidence."""
        leaned: list[frozenset[str]] = [read.observations for read in self.reads]
        return frozenset().union(*leaned, *(decision.observations for decision in self.decisions))
