"""Impact: what leaned on something: runs, the fields that were written from it, and exports, however many runs away.

Recorded reads, recalls and the origins of evidence are followed, never text. A run that read something may have written
from it whatever it wrote afterwards, so that counts too, and so does whoever read that; the log does not say whether it
came of what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from woodrat.canon.form import Json
from woodrat.explain.lineage import Node, shown
from woodrat.explain.references import Affected, evidence, references, references_of
from woodrat.record_json import IN_PYTHON_ONLY, WHEN_SET, Record
from woodrat.records import Deferrable, dataclass, field, replace
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision, Read, Write
from woodrat.state.match import Match
from woodrat.training.exports import Export


@dataclass(frozen=True, slots=True)
class WonField(Record):
    """A field whose value an observation takes part in."""

    entity: str
    """The entity, as a reference."""
    field: str
    """The field."""
    value: Json
    """What is believed."""
    observation: str
    """The observation."""
    distance: int = 0
    """How many runs lie between it and what was asked about."""


@dataclass(frozen=True, slots=True)
class AffectedRead(Record):
    """A read that saw what was asked about."""

    read: Read
    """The read."""
    fields: tuple[str, ...]
    """The fields it saw it in."""
    runs: tuple[str, ...] = ()
    """Of a recall, the runs that lean on it which were found."""


@dataclass(frozen=True, slots=True)
class AffectedDecision(Record):
    """A decision whose evidence what was asked about is part of."""

    decision: Decision
    """The decision."""
    facts: tuple[str, ...]
    """Names of the facts it is part of."""


@dataclass(frozen=True, slots=True)
class AffectedRun(Deferrable, Record):
    """A run that leaned on what was asked about, and where in it."""

    run: str
    """The run."""
    agent: str | None
    """Who ran."""
    query: str | None
    """What was asked."""
    subject: str | None
    """The entity it is about."""
    status: str
    """How it stands."""
    answer: Json
    """What it answered."""
    reads: tuple[AffectedRead, ...]
    """The reads that saw it."""
    decisions: tuple[AffectedDecision, ...]
    """The decisions whose evidence it is part of."""
    writes: tuple[Write, ...]
    """What the run said afterwards."""
    distance: int
    """How many runs away it is: 1 for a run that leaned on it directly."""
    through: str
    """What it leaned on first: an observation, a decision as RUN#stage, or a run that it recalled."""
    through_run: str | None
    """The run that this comes from; none where it is what was asked about."""


@dataclass(frozen=True, slots=True)
class ImpactCounts(Record):
    """How much leaned on something, on all pages together."""

    observations: int
    """The observations that what was asked about stands for."""
    runs: int | None
    """The runs that leaned on it; none on a page before the one that lists the last of them."""
    decisions: int | None
    """The decisions of these runs whose evidence it is part of; none as long as for the runs."""
    fields: int | None
    """The fields; none on a page before the one that lists the last of them."""
    exports: int | None
    """The exports; none on a page before the one that lists the first of them."""


@dataclass(frozen=True, slots=True)
class Impact(Record):
    """What leaned on something: one page of it. Runs come first, then fields, exports and observations."""

    kind: str
    """`observation`, `source`, `interpretation`, `agent`, `entity`, `run` or `decision`."""
    id: str
    """What was asked about."""
    runs: tuple[AffectedRun, ...]
    """The runs that leaned on it, the nearest first, and of those as near by the entry they were found by.

    Each comes with the steps that lean on something nearer; one that has further such steps at a greater distance comes
    again there, with these.
    """
    fields: tuple[WonField, ...]
    """The fields that it, and what was written from it, take part in now; the nearest first."""
    exports: tuple[Export, ...]
    """The exports with rows of those runs, by position."""
    observations: tuple[str, ...]
    """The observations that what was asked about stands for, by position."""
    counts: ImpactCounts
    """How much there is on all pages."""
    depth: int | None
    """How many runs away it was to be looked for; none: however many."""
    left_out: int | None
    """How many runs are one further away than that; more may lie behind them. None as long as for the count of runs."""
    cursor: str | None
    """What to ask with for what follows; none when that was all."""
    position: int
    """The log position it was answered at."""
    matched: Match | None = field(default=None, metadata=WHEN_SET)
    """How the entity asked about was found, where that was by a value that identifies it."""
    following: Callable[[], Impact] | None = field(default=None, compare=False, repr=False, metadata=IN_PYTHON_ONLY)
    """Reads the page that follows; none where there is none, or nobody can."""

    def next_page(self) -> Impact | None:
        """Return the page that follows, as of the same position; `None` after the last."""
        return None if self.cursor is None or self.following is None else self.following()

    def followed_by(self, following: Callable[[], Impact]) -> Impact:
        """Return the page with what reads the page that follows."""
        return self if self.cursor is None else replace(self, following=following)

    @property
    def tree(self) -> Node:
        """The page as a tree: a run below what it leaned on, if that is on the page too."""
        below: dict[str, list[Node]] = {}
        listed = {write.observation for found in self.runs for write in found.writes}
        listed.update(found.run for found in self.runs)
        for found in reversed(self.runs):
            place = found.through if found.through in listed else found.through_run
            below.setdefault(place if place in listed else "", []).append(_run(found, below))
        nodes = [
            Node("field", f"{won.entity}#{won.field}", f"{won.entity}#{won.field} = {shown(won.value)}", won.to_json())
            for won in self.fields
        ]
        details = {"observations": list(self.observations), "position": self.position}
        exports = [Node("export", found.id, found.sentence, found.to_json()) for found in self.exports]
        runs = below.get("", [])[::-1]
        return Node(self.kind, self.id, f"{self.kind} {self.id}", details, (*nodes, *runs, *exports))


def _run(found: AffectedRun, below: dict[str, list[Node]]) -> Node:
    nodes = [_read(found.run, affected) for affected in found.reads]
    nodes += [_decision(found.run, affected.decision, affected.facts) for affected in found.decisions]
    if found.answer is not None:
        nodes.append(Node("answer", found.run, f"answered {shown(found.answer)}", {"answer": found.answer}))
    for write in found.writes:
        label = f"wrote {write.entity} {shown(dict(write.fields))}"
        readers = tuple(reversed(below.get(write.observation, ())))
        nodes.append(Node("write", write.observation, label, write.to_json(), readers))
    nodes += reversed(below.get(found.run, ()))
    by = "" if found.agent is None else f" by {found.agent}"
    details = {"query": found.query, "distance": found.distance, "through": found.through}
    return Node("run", found.run, f"{found.run}{by}, {found.status}", details, tuple(nodes))


def _read(run: str, affected: AffectedRead) -> Node:
    read = affected.read
    seen = ", ".join([*(f"{read.entity}#{name}" for name in affected.fields), *affected.runs])
    label = f"{'recalled' if affected.runs else 'read'} {seen} at position {read.as_of}"
    details = {"position": read.position, "fields": list(affected.fields)}
    return Node("read", f"{run}/{read.span}/{read.entity}", label, details)


def _decision(run: str, decision: Decision, facts: tuple[str, ...]) -> Node:
    label = f"decided {decision.stage} = {shown(decision.chosen)} on {', '.join(facts)}"
    details = {"position": decision.position, "facts": list(facts), "chosen": decision.chosen}
    return Node("decision", f"{run}/{decision.span}", label, details)


@dataclass(frozen=True, slots=True)
class LeaningNames:
    """What of a step leans on something."""

    fields: tuple[str, ...] = ()
    """Of a read, the fields it saw it in."""
    runs: tuple[str, ...] = ()
    """Of a recall, the runs it found that lean on it."""
    facts: tuple[str, ...] = ()
    """Of a decision, the facts it is part of."""
    is_decision: bool = False
    """Whether the step is a decision."""


def leaning_names(step: Read | Decision, among: Sequence[Affected]) -> LeaningNames:
    """Return what of a step leans on anything that is affected."""
    if isinstance(step, Decision):
        named = {name: references_of([origin]) for name, origin in evidence(step).items()}
        facts = (name for name, each in named.items() if any(some.leans(each, step.position) for some in among))
        return LeaningNames(facts=tuple(facts), is_decision=True)
    fields = (
        name
        for name in sorted(step.fields)
        if any(not some.observations.isdisjoint(step.behind(name)) for some in among)
    )
    runs = (each.run for each in step.recalled if any(some.recalled(each.run, step.position) for some in among))
    return LeaningNames(tuple(fields), tuple(runs))


def leans(record: RunRecord, affected: Affected) -> bool:
    """Return whether any read or decision of a run leans on something affected."""
    steps: tuple[Read | Decision, ...] = (*record.reads, *record.decisions)
    return any(affected.leans(references(step), step.position) for step in steps)


class LeaningRun(Protocol):
    """What is told of a run that leaned on something: of its record, or of what stands in indexes."""

    @property
    def id(self) -> str: ...
    @property
    def agent(self) -> str | None: ...
    @property
    def query(self) -> str | None: ...
    @property
    def subject(self) -> str | None: ...
    @property
    def status(self) -> str: ...
    @property
    def answer(self) -> Json: ...
    @property
    def reads(self) -> tuple[Read, ...]: ...
    @property
    def decisions(self) -> tuple[Decision, ...]: ...
    @property
    def writes(self) -> tuple[Write, ...]: ...


def affected_parts(
    record: LeaningRun, names: Mapping[int, LeaningNames], written: Collection[str]
) -> dict[str, tuple[Any, ...]]:
    """Return where a run leaned on something: in the steps at these positions, and in what it wrote after them."""
    reads = [AffectedRead(read, each.fields, each.runs) for read in record.reads if (each := names.get(read.position))]
    decisions = [AffectedDecision(made, each.facts) for made in record.decisions if (each := names.get(made.position))]
    writes = (write for write in record.writes if write.position is None or write.observation in written)
    return {"reads": tuple(reads), "decisions": tuple(decisions), "writes": tuple(writes)}


def affected_run(
    record: LeaningRun, parts: Callable[[str], Mapping[str, Any]], distance: int, through: str, through_run: str | None
) -> AffectedRun:
    """Return a run that leaned on something; `parts` returns `affected_parts`, when they are asked for."""
    return AffectedRun.deferred(
        parts,
        run=record.id,
        agent=record.agent,
        query=record.query,
        subject=record.subject,
        status=record.status,
        answer=record.answer,
        distance=distance,
        through=through,
        through_run=through_run,
    )
