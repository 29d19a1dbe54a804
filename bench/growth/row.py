"""A row: one case measured at all its sizes, and whether the goal is met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import woodrat
from bench.growth.case import LIBRARY, Case, Facts
from bench.growth.meter import CALLS_MAX, Meter, Outcome, in_child, measured
from bench.growth.slope import ALL, GOALS, PAGE, SHOWS_MAX, cost_at, slope_of
from bench.growth.stock import Stock
from bench.growth.surface import served, show_call
from woodrat.api.ledger import Ledger
from woodrat.api.trailing_indexes import TRAILING
from woodrat.clock import SystemClock
from woodrat.ledger.indexer import positions
from woodrat.proofs.verbs import keys

PAGE_ITEMS = 50
"""Items of a page; fewer where the smallest ledger does not have several such pages."""
ROUNDS = 3
"""How often a first call is measured if it costs little, each time on a copy of its own; the least counts."""
CHEAP_MS = 20.0
"""What little is."""
PREPARE_FACTOR = 5
"""How much longer than a call what makes ready for it may take."""
AGAIN = 0.1
"""A row that misses the goal of its slope by less is measured again; the lesser cost at each size counts."""
SMALL = 20
"""The size of the ledger on which a call is made before it is measured."""
SMALL_FACTS: Facts = {"smallest": SMALL, "page": 2}
"""What is known of it beside what its builder reports."""
_GROWS = {"cold": "first call grows", "warm": "later calls grow"}
INDEXED_ENTRIES = 64
"""A first call that brought an index on by more entries than this derived rows from them, whatever it returned."""


@dataclass(slots=True)
class Row:
    """What was measured of one case."""

    case: Case
    """The case."""
    sizes: Sequence[int]
    """The sizes it was to be measured at."""
    cold: dict[int, float] = field(default_factory=dict)
    """What the first call cost, by size, in the unit of the case."""
    warm: dict[int, float] = field(default_factory=dict)
    """What the calls after it cost, in the median."""
    memory: dict[int, int] = field(default_factory=dict)
    """Peak memory of a call, in bytes, by size."""
    shown: dict[int, float] = field(default_factory=dict)
    """What one `show` costs on the ledger of a page, by size."""
    indexed: dict[int, int] = field(default_factory=dict)
    """By how many entries the first call brought indexes on, all together, by size."""
    problem: str | None = None
    """Why it was not measured at all sizes."""

    @property
    def slopes(self) -> Mapping[str, float | None]:
        """How the cost of the first call and of those after it grows."""
        return {"cold": slope_of(self.cold), "warm": slope_of(self.warm)}

    @property
    def shows(self) -> float | None:
        """How many times one `show` a page costs, at the largest size that was measured; none for other kinds."""
        if not self.shown:
            return None
        size = max(self.shown)
        return self.warm[size] / self.shown[size]

    @property
    def goals(self) -> Mapping[str, float]:
        """The largest slope of the first call and of those after it.

        A first call that brings indexes up to date derives rows from all that was written since; those after it do not.
        """
        goal = self.case.goal
        caught_up = any(entries > INDEXED_ENTRIES for entries in self.indexed.values())
        return {"cold": max(goal, GOALS[ALL]) if caught_up else goal, "warm": goal}

    @property
    def misses(self) -> tuple[str, ...]:
        """Which goals are missed, and why it was not measured at all sizes."""
        slopes = {name: slope for name, slope in self.slopes.items() if slope is not None}
        misses = [_GROWS[name] for name, slope in slopes.items() if slope > self.goals[name]]
        if self.shows is not None and self.shows > SHOWS_MAX:
            misses.append(f"more than {SHOWS_MAX:g} × show")
        if self.problem is not None:
            misses.append(self.problem)
        elif not slopes:
            misses.append("not measured")
        return tuple(misses)

    @property
    def met(self) -> bool:
        """Whether it was measured at all sizes and meets its goals."""
        return not self.misses

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain JSON."""
        case = self.case
        about = {"name": case.name, "verb": case.verb, "kind": case.kind, "goal": case.goal, "unit": case.unit}
        where = {"world": case.world.name, "surface": case.surface, "sizes": list(self.sizes)}
        costs = {"cold": self.cold, "warm": self.warm, "memory_bytes": self.memory, "slopes": dict(self.slopes)}
        shows = {"show": self.shown, "shows": self.shows, "indexed_entries": self.indexed}
        outcome = {"misses": self.misses, "met": self.met}
        return {**about, **where, **costs, **shows, "problem": self.problem, **outcome}

    @classmethod
    def of_json(cls, case: Case, told: Mapping[str, Any]) -> Row:
        """Return a row that was measured before, as `to_json` told it and JSON keeps it."""
        names = {
            "cold": "cold",
            "warm": "warm",
            "memory": "memory_bytes",
            "shown": "show",
            "indexed": "indexed_entries",
        }
        costs: dict[str, Any] = {
            name: {int(size): cost for size, cost in told[key].items()} for name, key in names.items()
        }
        return cls(case, tuple(told["sizes"]), problem=told["problem"], **costs)


def measure(case: Case, stock: Stock, sizes: Sequence[int], seconds_max: float, rounds: int = ROUNDS) -> Row:
    """Measure a case at all sizes, smallest first.

    A process that works longer than `seconds_max`, or twice that where everything is returned, is ended. A size is left
    out when the goal is missed without it and the sizes before it say that it would take that long. A row that misses
    its goal by little is measured twice: other work on the machine can make a call dearer, and never cheaper.
    """
    row = _measured_once(case, stock, sizes, seconds_max, rounds)
    over = [slope - row.goals[name] for name, slope in row.slopes.items() if slope is not None]
    if row.problem is None and over and 0 < max(over) < AGAIN:
        again = _measured_once(case, stock, sizes, seconds_max, rounds)
        for costs, others in ((row.cold, again.cold), (row.warm, again.warm)):
            costs.update({size: min(cost, others.get(size, cost)) for size, cost in costs.items()})
    return row


def _measured_once(case: Case, stock: Stock, sizes: Sequence[int], seconds_max: float, rounds: int) -> Row:
    row = Row(case, sizes)
    limit = seconds_max * (2 if case.kind == ALL else 1)
    for size in sizes:
        expected = _expected_ms(row, size)
        if expected is not None and expected / 1_000 > limit:
            row.problem = f"not run at {size:,}, would take about {expected / 1_000:,.0f} s"
            break
        outcome = _measure_at(case, stock, size, min(sizes), limit)
        if "cold" in outcome.results:
            row.cold[size] = _first_call(case, stock, size, min(sizes), outcome, rounds, limit)
        if "warm" in outcome.results:
            row.warm[size] = outcome.results["warm"]
            if case.kind == PAGE:
                row.shown[size] = _shown_ms(case, stock, size, min(sizes), limit)
        if "indexed" in outcome.results:
            row.indexed[size] = outcome.results["indexed"]
        memory = [outcome.results[name] for name in ("cold_bytes", "warm_bytes") if name in outcome.results]
        if memory:
            row.memory[size] = max(memory)
        if outcome.problem is not None:
            row.problem = f"at {size:,}: {outcome.problem}"
            break
    return row


def try_out(case: Case, stock: Stock) -> None:
    """Make the call on a tiny ledger, twice where it can be repeated, in this process; raise what it raises."""
    with stock.copy(case.world, SMALL, is_bare=case.is_bare) as (db, facts):
        _Stage(case, db, {**facts, **SMALL_FACTS}).try_out()


def _expected_ms(row: Row, size: int) -> float | None:
    """Return what a call would cost at a further size, where the sizes before it already miss the goal."""
    over = [slope - row.goals[name] for name, slope in row.slopes.items() if slope is not None]
    if not over or max(over) <= 0 or row.case.unit != "ms":
        return None
    costs = [cost_at(each, size) for each in (row.cold, row.warm)]
    return sum(cost for cost in costs if cost is not None)


def _shown_ms(page: Case, stock: Stock, size: int, smallest: int, limit: float) -> float:
    """Return what one `show` costs through the surface of a page; measured once, where nobody has read before."""
    key = (page.world.name, size, page.surface)
    if key not in stock.shown_ms:
        show = show_call(page.surface)
        case = replace(
            page,
            name="one show",
            call=lambda target, facts, number: show(target, page.world.shown(facts, number)),
            prepare=None,
        )
        outcome = _measure_at(case, stock, size, smallest, limit)
        if outcome.problem is not None:
            raise SystemExit(f"One show of {page.world.name} at {size:,} could not be measured: {outcome.problem}")
        stock.shown_ms[key] = outcome.results["warm"]
    return stock.shown_ms[key]


def _first_call(
    case: Case, stock: Stock, size: int, smallest: int, outcome: Outcome, rounds: int, limit: float
) -> float:
    """Return what a first call costs: the least of several where it is so cheap that other work would show."""
    costs = [float(outcome.results["cold"])]
    if case.unit == "ms" and costs[0] < CHEAP_MS and outcome.problem is None:
        once = replace(case, repeats=False)
        for _ in range(rounds - 1):
            again = _measure_at(once, stock, size, smallest, limit)
            costs += [again.results["cold"]] if "cold" in again.results else []
    return min(costs)


def _measure_at(case: Case, stock: Stock, size: int, smallest: int, limit: float) -> Outcome:
    known = {"smallest": smallest, "page": min(PAGE_ITEMS, max(2, smallest // case.world.pages_min))}
    with (
        stock.copy(case.world, size, is_bare=case.is_bare) as (db, facts),
        stock.copy(case.world, SMALL, is_bare=case.is_bare) as (small_db, small_facts),
    ):
        meter = Meter() if stock.database is None else stock.database.meter()
        large = _Stage(case, db, {**facts, **known}, meter)
        small = _Stage(case, small_db, {**small_facts, **SMALL_FACTS})
        for stage in (large,) if case.surface != LIBRARY else (small, large):
            problem = stage.prepare(limit * PREPARE_FACTOR)
            if problem is not None:
                return Outcome(problem=f"preparing: {problem}")
        return in_child(large.served if case.surface != LIBRARY else lambda: large.called(small), limit)


class _Stage:
    """A copy of a ledger on which a case is called."""

    def __init__(self, case: Case, db: str, facts: Facts, meter: Meter | None = None) -> None:
        self._case, self._db, self._facts = case, db, facts
        self._meter = Meter() if meter is None else meter
        self._keys = Path(facts["path"]).with_name("keys")
        # Of a small ledger not every call would find something of its own to work on.
        self._calls_max = max(1, min(CALLS_MAX, facts["smallest"] // 10))

    @contextmanager
    def _open(self) -> Iterator[Ledger]:
        if self._case.keys:
            keys.make(self._keys, SystemClock())
        agent = str(self._facts.get("agent", "crm-sync"))
        with woodrat.open(self._db, agent=agent, keys=self._keys if self._case.keys else None) as ledger:
            yield ledger

    def prepare(self, limit: float) -> str | None:
        """Make ready what is not measured; return what went wrong, if anything did."""
        prepare = self._case.prepare
        if prepare is None:
            return None

        def work() -> Iterator[dict[str, Any]]:
            with self._open() as ledger:
                yield dict(prepare(ledger, self._facts))

        outcome = in_child(work, limit)
        self._facts = {**self._facts, **outcome.results}
        return outcome.problem

    def try_out(self) -> None:
        """Make ready and call, twice where that can be repeated."""
        case = self._case
        with self._open() as ledger:
            if case.prepare is not None:
                self._facts = {**self._facts, **case.prepare(ledger, self._facts)}
            for number in range(2 if case.repeats else 1):
                case.call(ledger, self._facts, number)

    def called(self, small: _Stage) -> Iterator[dict[str, Any]]:
        """Call the library, after a call on a small ledger that loads its modules; yield what it cost."""
        call, facts = self._case.call, self._facts
        with small._open() as ledger:
            call(ledger, small._facts, 0)
        with self._open() as ledger:
            if self._case.unit == "ms":
                calls_max = self._calls_max if self._case.repeats else 0
                before = _indexed(ledger)
                for costs in measured(lambda number: call(ledger, facts, number), self._meter, calls_max=calls_max):
                    yield {**costs, "indexed": _indexed(ledger) - before} if "cold" in costs else costs
            else:
                yield {"cold": call(ledger, facts, 0)}

    def served(self) -> Iterator[dict[str, Any]]:
        """Call a server; yield what its processes worked for an answer."""
        with served(self._db) as (client, meter):
            call, facts = self._case.call, self._facts
            calls_max = self._calls_max
            yield from measured(lambda number: call(client, facts, number), meter, calls_max=calls_max, first=False)


def _indexed(ledger: Ledger) -> int:
    """Return how many entries all indexes that trail the log have taken in."""
    with ledger.context.engine.view(ledger.tenant) as view:
        return sum(found.position + 1 for found in positions(view, TRAILING))
