"""Crowd: many runs of one task, clustered by what they did, and what separates the good from the bad.

A task is whatever runs the caller chose. Each run becomes a sequence of keys of what its steps asked and came to, so
that runs are sorted into a tree of steps in one pass; only one run of each cluster is compared with one of those it
parted from. What models and users write takes no part, nor do values that differ from run to run or repeat what the run
was given, nor the order of calls that do not depend on each other. The order in which runs are given does not show.

Of a place with many values only those count that many runs share, and prose counts only where it is always the same.
Where the runs were given different inputs, values that hardly two runs share are taken to follow from these; in a large
group, so are three values or more of which none is that of every second run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from woodrat.canon.form import Json
from woodrat.compare import contrast
from woodrat.compare.alignment import parts_of
from woodrat.compare.cause import FIRST, Cause, Lineage
from woodrat.compare.contrast import Sides
from woodrat.compare.divergence import compare, where
from woodrat.compare.features import (
    ARGUMENT,
    BEHAVIOUR,
    INPUT,
    READ,
    READ_STEP,
    RESULT,
    FeatureSlot,
    FeatureTable,
    Track,
    is_long_text,
    value_of,
)
from woodrat.compare.noise import steady
from woodrat.compare.separation import Separation, separate
from woodrat.compare.value_difference import joined, opened, says_much
from woodrat.compare.verdicts import RunVerdict, settle, verdict_of
from woodrat.record_json import WHEN_SET, Record, derived
from woodrat.records import dataclass, field, replace
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Read, ToolCall

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
    lineage: Lineage | None = None,
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
    verdicts: list[RunVerdict] = []
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
    noise = GroupNoise(table)
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
        noise: GroupNoise,
        good: Sequence[bool | None],
        find: Callable[[str], RunRecord],
        lineage: Lineage | None,
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
        lineage = self._lineage if beside.subject == record.subject else None
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
        numbers = {part.position: number for number, part in enumerate(parts_of((beside, record)[which]), 1)}
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


# Noise

VALUES_MAX: Final = 8
"""How many values of one place tell runs apart; where there are more, only those that many runs share."""
COMMON: Final = 0.25
"""How large a part of the runs must share one of many values, for it to tell them apart."""
RUNS_MIN: Final = 20
"""From how many runs on values of which none is that of every second run are taken to vary by chance."""
HIDDEN: Final = "(differs from run to run)"
"""What stands where a value is noise."""


class GroupNoise:
    """Which values say nothing about the behaviour of the runs of one table, and runs without them."""

    def __init__(self, table: FeatureTable) -> None:
        self._table = table
        self.differing_inputs = _differing_inputs(table)
        """Which inputs not all runs have the same value of, sorted."""
        self.telling = self._telling()
        """Of each feature whether it tells the behaviour of runs apart: 1, or 0 for noise."""

    def _telling(self) -> bytearray:
        table, varied = self._table, bool(self.differing_inputs)
        telling = bytearray(b"\1" * len(table.features))
        for slot, values in table.slots.items():
            if slot.kind not in BEHAVIOUR:
                continue
            if slot.kind == READ and "/" in slot.name and table.is_one_of_many(slot.name):
                for number in values:
                    telling[number] = 0  # the same is followed under its type
                continue
            sizes = [len(table.places[number].runs) for number in values]
            many = len(values) > VALUES_MAX or slot in table.overflow
            scattered = len(values) > 2 and (
                (varied and len(values) > sum(sizes) / 2)
                or (len(table.tracks) >= RUNS_MIN and max(sizes) < sum(sizes) / 2)
            )
            prose = len(values) > 1 and any(is_long_text(table.features[number].value) for number in values)
            if many or scattered or prose:
                least = COMMON * len(table.tracks)
                for number, size in zip(values, sizes, strict=True):
                    telling[number] = not prose and not scattered and size >= least
        return telling

    def without(self, record: RunRecord, like: RunRecord) -> RunRecord:
        """Return a run as if it had been asked and given what another was, without its models and other noise."""
        given = {value for value in _plain_values(dict(record.inputs)) if says_much(value)}
        if record.subject is not None:
            given.update((record.subject, record.subject.partition("/")[2]))
        return replace(
            record,
            query=like.query,
            inputs=like.inputs,
            subject=like.subject,
            models=(),
            tool_calls=tuple(self._tool_call(call, given) for call in record.tool_calls),
            reads=tuple(self._read(part, record, like, given) for part in record.reads),
            writes=tuple(
                replace(write, entity=self._entity(write.entity, record, like, given)) for write in record.writes
            ),
        )

    def _entity(self, entity: str, record: RunRecord, like: RunRecord, given: set[Json]) -> str:
        """Return the counterpart of an entity in the other run: the subject of that run, its type alone, or itself."""
        if entity == record.subject and like.subject is not None:
            return like.subject
        kind, _, key = entity.partition("/")
        return f"{kind}/{HIDDEN}" if key in given or self._table.is_one_of_many(entity) else entity

    def _tool_call(self, call: ToolCall, given: set[Json]) -> ToolCall:
        args = self._value(call.args, FeatureSlot(ARGUMENT, call.name, ""), given)
        result = self._value(call.result, FeatureSlot(RESULT, call.name, ""), given)
        return replace(call, args=args, result=result)

    def _read(self, part: Read, record: RunRecord, like: RunRecord, given: set[Json]) -> Read:
        if not part.entity:
            return part
        entity = self._entity(part.entity, record, like, given)
        whole = entity != part.entity or part.entity == record.subject
        name = part.entity.split("/", 1)[0] if whole else part.entity
        fields = {
            field: item
            for field, item in part.fields.items()
            if isinstance(item, dict)
            and self._value(shown := item.get("value"), FeatureSlot(READ, name, field), given) == shown
        }
        return replace(part, entity=entity, fields=fields)

    def _value(self, value: Any, slot: FeatureSlot, given: set[Json]) -> Json:
        """Return a value with whatever is noise in it hidden."""
        value = opened(value)
        if isinstance(value, dict):
            inner: Mapping[str, Json] = value
            return {
                name: self._value(item, slot._replace(path=joined(slot.path, name)), given)
                for name, item in inner.items()
            }
        if isinstance(value, list):
            return [self._value(item, slot._replace(path=f"{slot.path}[]"), given) for item in value]
        if value is None:
            return None
        if says_much(value) and value in given:
            return HIDDEN
        number = self._table.known(slot, value)
        return value_of(steady(value)) if number is not None and self.telling[number] else HIDDEN


def _differing_inputs(table: FeatureTable) -> tuple[str, ...]:
    total = len(table.tracks)
    return tuple(
        sorted(
            slot.path
            for slot, values in table.slots.items()
            if slot.kind == INPUT and (len(values) > 1 or len(table.places[values[0]].runs) < total)
        )
    )


def _plain_values(value: Json) -> list[Json]:
    """Return the plain values inside a value."""
    found: list[Json] = []
    todo: list[Json] = [value]
    while todo:
        item = opened(todo.pop())
        if isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
        else:
            found.append(item)
    return found
