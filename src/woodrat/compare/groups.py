"""Crowd: many runs of one task, clustered by what they did, and what separates the good from the bad.

A task is whatever runs the caller chose. Each run becomes a sequence of keys of what its steps asked and came to, so
that runs are sorted into a tree of steps in one pass; only one run of each cluster is compared with one of those it
parted from. What models and users write takes no part, nor do values that differ from run to run or repeat what the run
was given, nor the order of calls that do not depend on each other. The order in which runs are given does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final

from woodrat.canon.form import Json
from woodrat.compare import contrast
from woodrat.compare.cause import NO_LINEAGE, Cause, Lineage
from woodrat.compare.contrast import Sides
from woodrat.compare.divergence import compare, where
from woodrat.compare.features import READ_STEP, FeatureTable, Track, behaviour
from woodrat.compare.logs import FIRST
from woodrat.compare.noise import Noise
from woodrat.compare.separation import Separation, separate
from woodrat.compare.verdicts import Verdict, settle, verdict_of
from woodrat.record_json import WHEN_SET, Record, derived
from woodrat.records import dataclass, field, replace
from woodrat.runs.record import RunRecord

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
    """How many of them did the same to the end."""
    representative: str
    """Id of the earliest run that did the same to the end."""
    step: int | None
    """The step at which it parts from those it stands under; none for the main one, or with nothing in common."""
    label: str | None
    """What stands there, as a sentence says it."""
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
    good: int = 0
    """How many of its runs are good, those of its own clusters included; 0 where nothing is known of that."""
    bad: int = 0
    """How many are bad."""

    @derived
    def size(self) -> int:
        """How many runs it has."""
        return len(self.runs)


@dataclass(frozen=True, slots=True)
class Crowd(Record):
    """Many runs, clustered by what they did."""

    total: int
    """How many runs there are."""
    main: Cluster
    """The way most took; the others stand under it."""
    differing_inputs: tuple[str, ...]
    """Which inputs differ between the runs, the question included, sorted."""
    separation: Separation | None
    """What separates the bad runs from the good ones; none where no run has a verdict, a reward or an error."""
    sentence: str
    """All of it in a few plain sentences."""
    times: Mapping[str, str] = field(default=MappingProxyType({}), metadata=WHEN_SET)
    """What times that were asked for in words turned out to be, by argument."""

    @derived
    def same(self) -> bool:
        """Whether all runs did the same."""
        return self.main.agree == self.total


def gather(
    records: Iterable[RunRecord],
    lineage: Lineage = NO_LINEAGE,
    *,
    find: Callable[[str], RunRecord] | None = None,
    reward_min: float | None = None,
) -> Crowd:
    """Return runs clustered by what they did; `lineage` tells who said what they read.

    At least one run is needed. Records are looked at one at a time: `find` returns one again by its id, and without it
    all are held. `reward_min` is the smallest reward of a good run. The cost grows with the steps of all runs, and with
    the steps of one run a cluster.
    """
    table = FeatureTable()
    verdicts: list[Verdict] = []
    seen: set[str] = set()
    held: dict[str, RunRecord] = {}
    for record in records:
        if record.id not in seen:
            seen.add(record.id)
            if find is None:
                held[record.id] = record
            table.add(record)
            verdicts.append(verdict_of(record))
    settled = settle(verdicts, reward_min)
    noise = Noise(table)
    main = _Gathering(table, noise, settled.good, find or held.__getitem__, lineage).cluster()
    judged = settled.sources or settled.undecided is not None
    separation = separate(table, settled) if judged else None
    sentence = _sentence(main) if separation is None else f"{_sentence(main)} {separation.sentence}"
    return Crowd(len(seen), main, noise.differing_inputs, separation, sentence)


@dataclass(frozen=True, slots=True)
class _Way:
    """One run, as the tree of steps sees it."""

    id: str
    good: bool | None
    keys: tuple[tuple[int, ...], ...]
    """What it asked and came to at each step, and how it ended: on how many others it depends, its name, its values."""


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
    """Runs being clustered."""

    def __init__(
        self,
        table: FeatureTable,
        noise: Noise,
        good: Sequence[bool | None],
        find: Callable[[str], RunRecord],
        lineage: Lineage,
    ) -> None:
        self._find, self._lineage, self._table, self._noise = find, lineage, table, noise
        # Features were numbered as they came; their ranks do not depend on that.
        ranked = sorted(range(len(table.features)), key=lambda number: repr(table.features[number]))
        self._ranks = [0] * len(ranked)
        for rank, number in enumerate(ranked):
            self._ranks[number] = rank
        self._names = ranked
        self._places = [self._place(number) for number in range(len(ranked))]
        shared: dict[tuple[int, ...], tuple[int, ...]] = {}
        order = sorted(range(len(table.tracks)), key=lambda n: (table.tracks[n].started_at, table.tracks[n].id))
        self._ways = [
            _Way(track.id, good[number], tuple(shared.setdefault(key, key) for key in self._keys(track)))
            for number in order
            for track in (table.tracks[number],)
        ]

    def _place(self, number: int) -> int:
        """Return the rank of a step's name; a read of one of many entities counts as a read of its type."""
        kind, name, path, _ = self._table.features[number]
        if kind == READ_STEP and "/" in name and self._table.is_one_of_many(name):
            number = self._table.number_of((kind, name.split("/", 1)[0], path, None), False) or number
        return self._ranks[number]

    def _keys(self, track: Track) -> Iterable[tuple[int, ...]]:
        """Return what a run did, step by step; calls that do not depend on each other stand in a fixed order."""
        steps, place, keys = track.steps, 0, []
        ranks, telling = self._ranks, self._noise.telling
        while place < len(steps):
            block, level, name, count = steps[place : place + 4]
            held = steps[place + 4 : place + 4 + count]
            keys.append((block, level, self._places[name], *sorted(ranks[n] for n in held if telling[n])))
            place += 4 + count
        last = keys.pop()
        keys.sort()
        return (key[1:] for key in (*keys, last))

    def cluster(self) -> Cluster:
        """Return all of them as one cluster."""
        root = _branch(self._ways, 0)
        by_size = sorted(_below(root), key=lambda branch: -len(branch.members))
        explained = {id(branch) for branch in by_size[:EXPLAINED_MAX]}
        return self._cluster(root, None, 0, explained)

    def _cluster(self, branch: _Branch, above: _Way | None, stayed: int, explained: set[int]) -> Cluster:
        record = self._find(branch.reference.id)
        step, label, cause = None, None, None
        if above is not None:
            step, label = branch.parted + 1, self._label(above, branch.parted)
            if id(branch) in explained:
                sides = _sides(stayed, len(branch.members))
                step, label, cause = self._parting(self._find(above.id), record, sides)
        agree = branch.agree
        below: list[Cluster] = []
        for inner in (self._cluster(inner, branch.reference, branch.agree, explained) for inner in branch.branches):
            if inner.cause is None and inner.step is None:  # the keys differ, and yet they are the same
                agree += inner.agree
                below += inner.clusters
            else:
                below.append(inner)
        return Cluster(
            runs=tuple(way.id for way in branch.members),
            agree=agree,
            representative=record.id,
            step=step,
            label=label,
            cause=cause,
            answer=record.answer,
            ending=contrast.ending(record),
            decisions=tuple(StageChoice(decision.stage, decision.chosen) for decision in record.decisions),
            clusters=tuple(sorted(below, key=lambda cluster: (-len(cluster.runs), cluster.step or 0))),
            good=sum(way.good is True for way in branch.members),
            bad=sum(way.good is False for way in branch.members),
        )

    def _parting(
        self, beside: RunRecord, record: RunRecord, sides: Sides
    ) -> tuple[int | None, str | None, Cause | None]:
        """Return at which step a run parts from another, what stands there, and why; nothing where it does not."""
        lineage = self._lineage if beside.subject == record.subject else NO_LINEAGE
        pair = self._noise.without(beside, beside), self._noise.without(record, beside)
        found = compare(*pair, lineage, sides=sides)
        cause = found.cause
        if found.same or cause is None:
            return None, None, None
        if cause.details.get("newer") == FIRST:
            # What was written is what the main runs read; without this it would sound the other way round.
            cause = replace(cause, text=f"{cause.text}, after {sides.again} had read it")
        if found.step is None:
            return None, None, cause
        row = found.rows[found.step]
        which = 0 if row.positions[0] is not None else 1
        numbers = {part.position: number for number, part in behaviour((beside, record)[which])}
        step = numbers.get(row.positions[which] or 0, found.step) if row.kind not in ("start", "answer") else found.step
        return step, where(replace(row, step=step)), cause

    def _label(self, way: _Way, place: int) -> str:
        """Return what stands at a place of a way, as a sentence says it."""
        if place + 1 >= len(way.keys):
            return "the answer"
        kind, name, *_ = self._table.features[self._names[way.keys[place][1]]]
        return f"step {place + 1}, the {kind} {name}"


def _sides(stayed: int, left: int) -> Sides:
    """Return what a clause calls the runs that stayed on the way, and those that left it."""
    main = "the main run" if stayed == 1 else "the main runs"
    return Sides(main, "this run", "this one") if left == 1 else Sides(main, "these runs", "these")


def _branch(members: list[_Way], depth: int) -> _Branch:
    """Follow the way that most take, step by step; those that leave it are branches, each half as large at most."""
    here, parted, branches = members, depth, []
    while depth < len(here[0].keys):
        ways: dict[tuple[int, ...], list[_Way]] = {}
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


# The sentence


def _sentence(main: Cluster) -> str:
    total = len(main.runs)
    if total == 1:
        clauses = ["There is one run, and none to compare it with"]
    elif not main.clusters:
        clauses = [f"All {total} runs agree"]
    elif main.agree == 1:
        alone = all(cluster.agree == 1 for cluster in _inside(main))
        clauses = [
            f"No two of {total} runs agree" if alone else f"Only one of {total} runs took the main way to its end"
        ]
    else:
        clauses = [f"{main.agree} of {total} runs agree"]
    places = [
        (label, list(together))
        for label, together in groupby(
            sorted(main.clusters, key=lambda cluster: (cluster.step or 0, cluster.label or "")),
            key=lambda cluster: cluster.label,
        )
    ]
    places.sort(key=lambda place: -_size(place[1]))
    for label, together in places[:NAMED_MAX]:
        clauses.append(_parting(label, together))
    rest = places[NAMED_MAX:]
    if rest:
        count = sum(_size(together) for _, together in rest)
        clauses.append(f"{_s(count, 'one more parts', f'{count} more part')} elsewhere")
    return "; ".join(clauses) + "."


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
