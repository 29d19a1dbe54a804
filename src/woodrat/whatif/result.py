"""What-if: the outcomes of recorded decisions under a supposition, listed and counted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.explain.lineage import shown as told
from woodrat.explain.remake import FLIP, SAME, UNKNOWN, UNMOVED, DecisionNow
from woodrat.record_json import WHEN_SET, Record, derived
from woodrat.records import dataclass, field
from woodrat.runs.steps import Decision
from woodrat.state.match import Match
from woodrat.whatif.supposition import Supposition, Sweep

CHOICES_MAX: Final = 100
"""Number of different choices in the table of a sweep; the rest are counted together."""


@dataclass(frozen=True, slots=True)
class FactChange(Record):
    """One fact that a decision was made on and that would be another."""

    key: str
    """Its name in the decision."""
    entity: str | None
    """The entity it was read from; None if it was not read."""
    field: str | None
    """The field."""
    before: Json
    """The recorded value; also null if there was none."""
    now: Json
    """The supposed value; also null if there would be none."""
    missing: bool
    """Whether there would be nothing."""
    observations: tuple[str, ...]
    """The observations behind it on record."""
    observations_now: tuple[str, ...]
    """The observations that would be behind it; none of a value that is supposed."""


@dataclass(frozen=True, slots=True)
class Range(Record):
    """Neighbouring values of a sweep that come to the same."""

    first: Json
    """The first of them."""
    last: Json
    """The last of them."""
    values: int
    """How many they are."""
    now: DecisionNow
    """The outcome of the decision at each of them."""

    @derived
    def sentence(self) -> str:
        """The outcome of the decision there, in a few words."""
        span = told(self.first) if self.values == 1 else f"{told(self.first)}..{told(self.last)}"
        if self.now.outcome == UNKNOWN:
            return f"{span}: {self.now.sentence}"
        return f"{span}: {told(self.now.chosen)}" + (" (as recorded)" if self.now.outcome == SAME else "")


@dataclass(frozen=True, slots=True)
class Supposed(Record):
    """A recorded decision, and its outcome under the supposition."""

    run: str
    """The run it was made in."""
    agent: str | None
    """Who decided."""
    subject: str | None
    """The entity the run is about."""
    decision: Decision
    """The recorded choice, with its rule and evidence."""
    changes: tuple[FactChange, ...]
    """Its changed facts; in a sweep, without the swept one."""
    now: DecisionNow
    """The supposed choice; in a sweep, whether it differs anywhere."""
    ranges: tuple[Range, ...] = ()
    """In a sweep: the choices with their values."""

    @derived
    def outcome(self) -> str:
        """`same`, `flip` or `unknown`."""
        return self.now.outcome

    @derived
    def sentence(self) -> str:
        """The outcome, in a few words."""
        return "; ".join(part.sentence for part in self.ranges) if self.ranges else self.now.sentence


@dataclass(frozen=True, slots=True)
class ChoiceCount(Record):
    """How many decisions would choose something."""

    chosen: Json
    """Their choice."""
    decisions: int
    """How many would."""


@dataclass(frozen=True, slots=True)
class SweepRow(Record):
    """The outcomes of all decisions at one value of a sweep."""

    value: Json
    """The value."""
    choices: tuple[ChoiceCount, ...]
    """Number of decisions per choice, in the order of the whole table."""
    same: int
    """How many would come out as recorded."""
    flip: int
    """How many would come out differently."""
    unknown: int
    """Of how many that is not known."""


@dataclass(frozen=True, slots=True)
class WhatIf(Record):
    """The outcomes of recorded decisions under a supposition."""

    supposition: Supposition
    """The supposition."""
    decisions: tuple[Supposed, ...]
    """The decisions, by position; as many as were asked for."""
    same: int
    """How many decisions would come out the same, listed or not."""
    flip: int
    """How many would come out differently; of a sweep, at one value or more."""
    unknown: int
    """Of how many that is not known; of a sweep, at one value or more, and that differ at no other."""
    rows: tuple[SweepRow, ...]
    """In a sweep: the outcomes of all decisions at each value; on the first page."""
    unaffected: int
    """Of a sweep: how many further decisions it does not concern."""
    notes: tuple[str, ...]
    """Suppositions without effect, in sentences; on the first page."""
    position: int
    """The position the log was read at."""
    cursor: str | None
    """Leads to the decisions that are not listed; none when all are."""
    matched: tuple[Match, ...] = field(default=(), metadata=WHEN_SET)
    """How entities were found that were named by values that identify them."""
    times: Mapping[str, str] = field(default=MappingProxyType({}), metadata=WHEN_SET)
    """Times that words such as `yesterday` resolved to, by argument."""

    @derived
    def sentence(self) -> str:
        """A summary of all outcomes, in one line."""
        whole = self.same + self.flip + self.unknown
        if not whole:
            return "No decision is concerned."
        counts = f"{self.flip} would flip, {self.same} would stay the same, {self.unknown} unknown"
        return f"{whole} decision{'s' if whole > 1 else ''}: {counts}."


# Sweeping


def segments(sweep: Sweep, ascending: bool, points: Iterable[Json]) -> list[tuple[int, int]]:
    """Return stretches of values, as `[start, stop)`, with equal comparisons inside each stretch.

    `points` are the operands that the values are compared with. For numbers in order, a comparison changes at its
    operand and nowhere else; a comparison with anything but a number is the same for all numbers.
    """
    values = sweep.values
    if not ascending:
        return [(index, index + 1) for index in range(len(values))]
    cuts = {0, len(values)}
    for point in points:
        if type(point) in (int, float):
            cuts.add(bisect_left(values, point))  # type: ignore[type-var]
            cuts.add(bisect_right(values, point))  # type: ignore[type-var]
    ordered = sorted(cuts)
    return list(pairwise(ordered))


def joined(sweep: Sweep, found: Sequence[tuple[int, int, DecisionNow]]) -> tuple[Range, ...]:
    """Return stretches as ranges, neighbours that come to the same as one."""
    merged: list[tuple[int, int, DecisionNow]] = []
    for start, stop, again in found:
        if merged and _alike(merged[-1][2], again):
            start, _, before = merged.pop()
            again = again if before.reason == UNMOVED else before  # it is true of one value alone
        merged.append((start, stop, again))
    values = sweep.values
    return tuple(Range(values[start], values[stop - 1], stop - start, again) for start, stop, again in merged)


def _alike(one: DecisionNow, other: DecisionNow) -> bool:
    if (one.outcome, one.rule) != (other.outcome, other.rule) or not form.same(one.chosen, other.chosen):
        return False
    return one.outcome != UNKNOWN or one.reason == other.reason


def overall(ranges: Sequence[Range]) -> DecisionNow:
    """Return True if a decision differs anywhere in a sweep."""
    for outcome, told_as in ((FLIP, "differs at some values"), (UNKNOWN, "")):
        there = [part for part in ranges if part.now.outcome == outcome]
        if there:
            first = there[0].now
            if len(there) == len(ranges) == 1:
                return first
            return DecisionNow(outcome, None, None, told_as or first.reason)
    return DecisionNow(SAME, ranges[0].now.chosen, ranges[0].now.rule, "it comes out as recorded at every value")


class Tally:
    """Counts the choices at each value of a sweep, stretch by stretch."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._outcomes = {outcome: [0] * (len(sweep.values) + 1) for outcome in (SAME, FLIP, UNKNOWN)}
        self._chosen: dict[bytes, tuple[Json, list[int]]] = {}
        self._names: dict[str, bytes] = {}

    def add(self, start: int, stop: int, again: DecisionNow) -> None:
        """Count one decision at all values of a stretch."""
        counts = [self._outcomes[again.outcome]]
        if again.outcome != UNKNOWN:
            counts.append(self._counts(again.chosen))
        for count in counts:
            count[start] += 1
            count[stop] -= 1

    def _counts(self, chosen: Json) -> list[int]:
        if isinstance(chosen, str):
            name = self._names.get(chosen) or self._names.setdefault(chosen, form.serialise(chosen))
        else:
            name = form.serialise(chosen)
        found = self._chosen.get(name)
        if found is None:
            if len(self._chosen) >= CHOICES_MAX:
                name, chosen = b"", "(others)"
            found = self._chosen.setdefault(name, (chosen, [0] * (len(self._sweep.values) + 1)))
        return found[1]

    def rows(self) -> Iterator[SweepRow]:
        """Yield the table, by value."""
        ordered = [self._chosen[name] for name in sorted(self._chosen)]
        running = [0] * len(ordered)
        outcomes = dict.fromkeys(self._outcomes, 0)
        for index, value in enumerate(self._sweep.values):
            for outcome, counts in self._outcomes.items():
                outcomes[outcome] += counts[index]
            for number, (_, counts) in enumerate(ordered):
                running[number] += counts[index]
            counted = zip(ordered, running, strict=True)
            choices = tuple(ChoiceCount(choice, count) for (choice, _), count in counted if count)
            yield SweepRow(value, choices, outcomes[SAME], outcomes[FLIP], outcomes[UNKNOWN])
