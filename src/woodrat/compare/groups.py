"""Crowd: many runs of one input, clustered by where they part from the way most of them took.

Each step becomes a key of what it asked and what came of it, so that runs are sorted into a tree of steps in one pass;
only one run of each cluster is compared with one of those it parted from. The order in which runs are given does not
show. Keys may tell more apart than a comparison does, and a cluster that turns out to be the same is joined again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.compare import contrast
from woodrat.compare.alignment import ComparedStep, steps_of
from woodrat.compare.cause import NO_LINEAGE, Cause, Lineage
from woodrat.compare.contrast import Sides, without_call_ids
from woodrat.compare.divergence import compare, where
from woodrat.compare.logs import FIRST
from woodrat.record_json import Record, derived
from woodrat.records import dataclass, replace
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision, ModelCall, Read, ToolCall
from woodrat.runs.values import REDACTED

EXPLAINED_MAX: Final = 200
"""How many clusters are compared with those they parted from, the largest first; the rest only say where."""
NAMED_MAX: Final = 3
"""How many places of parting a sentence names."""


@dataclass(frozen=True, slots=True)
class StageChoice(Record):
    """What a run chose at one stage."""

    stage: str
    """The stage."""
    chosen: Json
    """What was chosen."""


@dataclass(frozen=True, slots=True)
class Cluster(Record):
    """Runs that took one way."""

    runs: tuple[str, ...]
    """Ids of its runs by when they began, those of its own clusters included."""
    agree: int
    """How many of them are the same to the end."""
    representative: str
    """Id of the earliest run that is the same to the end."""
    step: int | None
    """The row at which it parts from those it stands under; none for the main one, or with nothing in common."""
    label: str | None
    """What stands at that row, as a sentence says it."""
    cause: Cause | None
    """Why it parts there; none for the main one, and where it was not compared."""
    answer: Json
    """What its representative answered."""
    ending: str
    """How its representative ended, in short."""
    decisions: tuple[StageChoice, ...]
    """What its representative decided."""
    clusters: tuple[Cluster, ...]
    """Those of its runs that part further on, the largest first."""

    @derived
    def size(self) -> int:
        """How many runs it has."""
        return len(self.runs)


@dataclass(frozen=True, slots=True)
class Aside(Record):
    """Runs that were asked or given something else, and so take no part."""

    runs: tuple[str, ...]
    """Their ids."""
    query: str | None
    """What they were asked."""
    subject: str | None
    """What they are about."""
    inputs: Mapping[str, Json]
    """What they were given."""


@dataclass(frozen=True, slots=True)
class Crowd(Record):
    """Many runs, clustered by where they part."""

    total: int
    """How many runs were given, those set aside included."""
    main: Cluster
    """The way most took; the others stand under it."""
    aside: tuple[Aside, ...]
    """Runs with other inputs, the most first."""
    sentence: str
    """All of it in one sentence."""

    @derived
    def same(self) -> bool:
        """Whether all runs agree and none was set aside."""
        return self.main.agree == self.total


def gather(records: Iterable[RunRecord], lineage: Lineage = NO_LINEAGE) -> Crowd:
    """Return runs clustered by where they part; `lineage` tells who said what they read.

    At least one run is needed. The cost grows with the steps of all runs, and with the steps of one run a cluster.
    """
    once = {record.id: record for record in records}
    ordered = sorted(once.values(), key=lambda record: (record.started_at or "", record.id))
    alike: dict[bytes, list[RunRecord]] = {}
    for record in ordered:
        alike.setdefault(form.serialise([record.query, record.subject, dict(record.inputs)]), []).append(record)
    # Sorting keeps the order of equals, so that of two as many the one that began first is the main one.
    main, *others = sorted(alike.values(), key=len, reverse=True)
    found = _Gathering(main, lineage).cluster()
    aside = tuple(
        Aside(tuple(r.id for r in group), group[0].query, group[0].subject, group[0].inputs) for group in others
    )
    return Crowd(len(ordered), found, aside, _sentence(found, aside))


@dataclass(frozen=True, slots=True)
class _Way:
    """One run, as the tree of steps sees it."""

    record: RunRecord
    keys: tuple[int, ...]
    """What it asked and came to at each step, and how it ended."""
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Branch:
    """Runs that share a way to the end, with those that leave it."""

    members: list[_Way]
    agree: int
    reference: _Way
    parted: int
    """How many keys it shares with those it stands under."""
    branches: list[_Branch]


class _Gathering:
    """Runs of one input being clustered."""

    def __init__(self, records: Sequence[RunRecord], lineage: Lineage) -> None:
        self._lineage = lineage
        self._known: dict[tuple[object, ...], int] = {}
        self._ways = [self._way(record) for record in records]

    def _way(self, record: RunRecord) -> _Way:
        steps = steps_of(record)
        ended = ("end", record.status, _spelled(record.answer), _spelled(record.error))
        keys = (*((*step.asked, *_came_to(step)) for step in steps), ended)
        labels = (*(f"step {number}, the {step.label}" for number, step in enumerate(steps, 1)), "the answer")
        return _Way(record, tuple(self._known.setdefault(key, len(self._known)) for key in keys), labels)

    def cluster(self) -> Cluster:
        """Return all of them as one cluster."""
        root = _branch(self._ways, 0)
        by_size = sorted(_below(root), key=lambda branch: -len(branch.members))
        explained = {id(branch) for branch in by_size[:EXPLAINED_MAX]}
        return self._told(root, None, 0, explained)

    def _told(self, branch: _Branch, above: _Way | None, stayed: int, explained: set[int]) -> Cluster:
        record = branch.reference.record
        step, label, cause = None, None, None
        if above is not None:
            step, label = branch.parted + 1, above.labels[branch.parted]
            if id(branch) in explained:
                sides = _sides(stayed, len(branch.members))
                found = compare(above.record, record, self._lineage, sides=sides)
                step, cause = found.step, found.cause
                if cause is not None and cause.details.get("newer") == FIRST:
                    # What was written is what the main runs read; without this it would sound the other way round.
                    cause = replace(cause, text=f"{cause.text}, after {sides.again} had read it")
                label = None if step is None else where(found.rows[step])
        agree = branch.agree
        below: list[Cluster] = []
        for inner in (self._told(inner, branch.reference, branch.agree, explained) for inner in branch.branches):
            if inner.cause is None and inner.step is None:  # the keys differ, and yet they are the same
                agree += inner.agree
                below += inner.clusters
            else:
                below.append(inner)
        return Cluster(
            runs=tuple(way.record.id for way in branch.members),
            agree=agree,
            representative=record.id,
            step=step,
            label=label,
            cause=cause,
            answer=record.answer,
            ending=contrast.ending(record),
            decisions=tuple(StageChoice(decision.stage, decision.chosen) for decision in record.decisions),
            clusters=tuple(sorted(below, key=lambda cluster: (-len(cluster.runs), cluster.step or 0))),
        )


def _sides(stayed: int, left: int) -> Sides:
    """Return what a clause calls the runs that stayed on the way, and those that left it."""
    main = "the main run" if stayed == 1 else "the main runs"
    return Sides(main, "this run", "this one") if left == 1 else Sides(main, "these runs", "these")


def _branch(members: list[_Way], depth: int) -> _Branch:
    """Follow the way that most take, step by step; those that leave it are branches, each half as large at most."""
    here, parted, branches = members, depth, []
    while depth < len(here[0].keys):
        ways: dict[int, list[_Way]] = {}
        for way in here:
            ways.setdefault(way.keys[depth], []).append(way)
        here = max(ways.values(), key=len)  # of equals the first, which has the run that began first
        for leaving in ways.values():
            if leaving is not here:
                branches.append(replace(_branch(leaving, depth + 1), parted=depth))
        depth += 1
    return _Branch(members, len(here), here[0], parted, branches)


def _below(branch: _Branch) -> Iterable[_Branch]:
    for inner in branch.branches:
        yield inner
        yield from _below(inner)


def _came_to(step: ComparedStep) -> tuple[object, ...]:
    """Return what came of a step: two steps that asked and came to the same do not differ."""
    part = step.part
    if isinstance(part, Read):
        hidden = [(name, part.behind(name)) for name, value in sorted(part.values.items()) if value == REDACTED]
        return part.found, _spelled(part.values), tuple(hidden)
    if isinstance(part, ToolCall):
        return part.begun, _spelled(part.result), _spelled(part.error)
    if isinstance(part, ModelCall):
        return part.model, _spelled(without_call_ids(part.response)), _spelled(part.error)
    if isinstance(part, Decision):
        rules = [
            [rule.label, rule.when, rule.predicate, rule.chosen]
            + [[c.key, c.op, c.operand, c.actual, c.result] for c in rule.conditions]
            for rule in part.rules
        ]
        return part.default, part.mode, _spelled([part.chosen, part.rule, dict(part.facts), rules])
    return ()  # all that a write says is what it is asked by


def _spelled(value: Any) -> bytes:
    return form.serialise(value)


# The sentence


def _sentence(main: Cluster, aside: Sequence[Aside]) -> str:
    total = len(main.runs)
    if total == 1:
        said = ["There is one run, and none to compare it with"]
    elif not main.clusters:
        said = [f"All {total} runs agree"]
    elif main.agree == 1:
        alone = all(cluster.agree == 1 for cluster in _inside(main))
        said = [f"No two of {total} runs agree" if alone else f"Only one of {total} runs took the main way to its end"]
    else:
        said = [f"{main.agree} of {total} runs agree"]
    places = [
        (label, list(together))
        for label, together in groupby(
            sorted(main.clusters, key=lambda cluster: (cluster.step or 0, cluster.label or "")),
            key=lambda cluster: cluster.label,
        )
    ]
    places.sort(key=lambda place: -_size(place[1]))
    for label, together in places[:NAMED_MAX]:
        said.append(_parting(label, together))
    rest = places[NAMED_MAX:]
    if rest:
        count = sum(_size(together) for _, together in rest)
        said.append(f"{_s(count, 'one more parts', f'{count} more part')} elsewhere")
    if aside:
        count = sum(len(found.runs) for found in aside)
        said.append(_s(count, "one was set aside for its", f"{count} were set aside for their") + " other inputs")
    return "; ".join(said) + "."


def _inside(cluster: Cluster) -> Iterable[Cluster]:
    for inner in cluster.clusters:
        yield inner
        yield from _inside(inner)


def _parting(label: str | None, together: Sequence[Cluster]) -> str:
    count, largest = _size(together), max(together, key=lambda cluster: len(cluster.runs))
    if label is None:
        return f"{_s(count, 'one has', f'{count} have')} nothing in common with them"
    ways = f", in {len(together)} ways" if len(together) > 1 else ""
    cause = "" if largest.cause is None else f"{', for one' if ways else ''}: {largest.cause.text}"
    return f"{_s(count, 'one parts', f'{count} part')} at {label}{ways}{cause}"


def _size(clusters: Iterable[Cluster]) -> int:
    return sum(len(cluster.runs) for cluster in clusters)


def _s(count: int, one: str, many: str) -> str:
    return one if count == 1 else many
