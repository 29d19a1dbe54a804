"""The flip search: which change of its facts would have led a decision by rules to another choice.

Conditions split the values of a fact into finitely many classes (`runs/value_classes.py`), so trying one value of each
covers all. Changes of one fact are tried first, then of two, and so on; the first number of facts that flips the
decision is the smallest, and all changes of that size are found. The work is bounded: where it is cut off, the answer
says so.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.runs import margin
from woodrat.runs import values as run_values
from woodrat.runs.margin import FactSource, Margin, MarginFlip, NeededChange, SoleSource
from woodrat.runs.missing_facts import SKIP
from woodrat.runs.rules import all_chosen
from woodrat.runs.run_fields import SNAPSHOT
from woodrat.runs.steps import SELECT, Decision, Tried
from woodrat.runs.value_classes import Axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from woodrat.canon.form import Json

STEPS_MAX: Final = 200_000
"""How many conditions one search looks at before it is cut off."""
FLIPS_MAX: Final = 100
"""How many changes an answer lists; it says how many more there are."""

_UNDECIDED: Final = object()
"""What comes of facts on which a rule is unknown: nothing would be decided, which is no other choice."""

Sources = dict[str, tuple[FactSource, ...]]
"""By fact, where it came from; several where its value is made of what several said."""


class _Branch(NamedTuple):
    """One rule: conditions as fact and number among the conditions on that fact."""

    chosen: Json
    label: str | None
    asks: tuple[tuple[str, int], ...]


class _CutOff(Exception):
    """Ends a search that has taken too long."""


def margin_of(decision: Decision, sources: Sources | None = None) -> Margin:
    """Return how near a decision was to another choice; `sources` says where its facts came from."""
    problem = _problem(decision)
    if problem is None:
        search = _Search(decision)
        if search.taken is not _UNDECIDED and form.same(search.taken, decision.chosen):
            return search.margin(origin_sources(decision) if sources is None else sources)
        problem = "its rules do not lead to what it chose on the facts that are on record"
    return Margin(margin.UNKNOWN, problem, (), 0, (), (), complete=False)


def _problem(decision: Decision) -> str | None:
    """Return why nobody can say what would have flipped a decision."""
    rules = (*decision.rules, *(decision.untried or ()))
    if not rules and (not decision.default or SNAPSHOT in decision.attributes):
        return f"it was decided {decision.by(margin.shown)}, and no rules are on record"
    if decision.omitted.get("rules"):
        return "some of its rules are not on record"
    if not decision.default and decision.untried is None:
        return "the rules after the one that matched are not on record"
    for rule in rules:
        name = margin.shown(rule.label if rule.label is not None else rule.predicate or rule.chosen)
        if not isinstance(rule.when, dict):
            return f"rule {name} is a predicate in the agent's code, which only a replay can run"
        if not run_values.is_whole(rule.when):
            return f"rule {name} was hidden or cut in the record"
    if not all(run_values.is_whole(item) for item in (decision.chosen, *(rule.chosen for rule in rules))):
        return "what it chose was hidden or cut in the record"
    known = decision.known_facts
    asked = {key for rule in rules if isinstance(rule.when, dict) for key in rule.when}
    hidden = sorted(key for key in asked if not run_values.is_whole(known.get(key)))
    return f"{', '.join(hidden)} was hidden or cut in the record" if hidden else None


def origin_sources(decision: Decision) -> Sources:
    """Return where the facts of a decision came from, as far as its own record tells."""
    found: Sources = {}
    for key, origin in decision.fact_origins.items():
        found[key] = tuple(_named(key, origin))
    return found


def _named(key: str, origin: Mapping[str, Any]) -> Iterator[FactSource]:
    kind = origin.get("kind")
    if kind == "read":
        place = f"{origin.get('entity')}#{origin.get('field')}"
        named = origin.get("observations")
        for id in named if isinstance(named, list) else ():
            yield FactSource("observation", str(id), f"{place} ({id})")
    elif kind in ("tool", "model"):
        label = origin.get("call") or f"a {kind} call that is not on record"
        yield FactSource(str(kind), str(origin.get("span")), str(label))
    elif kind == "input":
        yield FactSource("input", str(origin.get("name")), f"input {origin.get('name')}")
    else:
        yield FactSource("stated", "stated", "what the agent stated")


class _Search:
    """The rules of one decision, ready to be tried on other facts."""

    def __init__(self, decision: Decision) -> None:
        self._decision = decision
        self._values = decision.known_facts
        self._several = decision.mode == SELECT
        self._skips = decision.on_missing == SKIP
        asked: dict[str, list[tuple[str, Json]]] = {}
        rules = (*decision.rules, *(decision.untried or ()))
        self._branches = [self._branch(rule, asked) for rule in rules]
        self._axes = {key: Axis(key, conditions, self._values) for key, conditions in asked.items()}
        self._truth = {key: axis.current for key, axis in self._axes.items()}
        self._left = STEPS_MAX
        self.taken = self._outcome({})[0]
        """What its rules choose on the facts that are on record."""

    @staticmethod
    def _branch(rule: Tried, asked: dict[str, list[tuple[str, Json]]]) -> _Branch:
        assert isinstance(rule.when, dict)
        asks: list[tuple[str, int]] = []
        for key, wanted in rule.when.items():
            conditions = asked.setdefault(key, [])
            pairs = wanted.items() or [("", None)] if isinstance(wanted, dict) else [("eq", wanted)]
            for pair in pairs:
                asks.append((key, len(conditions)))
                conditions.append(pair)
        return _Branch(rule.chosen, rule.label, tuple(asks))

    def _outcome(self, changed: Mapping[str, tuple[bool | None, ...]]) -> tuple[Any, Json]:
        """Return what is chosen, and by which rule, if the conditions on some facts came out like this."""
        chosen: list[Json] = []
        labels: list[Json] = []
        for branch in self._branches:
            self._left -= 1
            result: bool | None = True if branch.asks else None
            for key, number in branch.asks:
                self._left -= 1
                held = (changed.get(key) or self._truth[key])[number]
                if held is False:
                    result = False
                    break
                if held is None:
                    result = None
            if self._left < 0:
                raise _CutOff
            if result is None and not self._skips:
                return _UNDECIDED, None
            if result:
                if not self._several:
                    return branch.chosen, branch.label
                chosen.append(branch.chosen)
                labels.append(branch.label)
        if chosen:
            return chosen, labels
        return self._otherwise(), labels if self._several else None

    def _otherwise(self) -> Json:
        decision = self._decision
        if decision.default:
            return decision.chosen
        return all_chosen([], decision.otherwise) if self._several else decision.otherwise

    def margin(self, sources: Sources) -> Margin:
        """Return the smallest changes, the facts without effect and the sources that would flip it alone."""
        active = [key for key, axis in self._axes.items() if axis.classes]
        reasons = [axis.problem for axis in self._axes.values() if axis.problem is not None]
        found: list[tuple[tuple[str, ...], _Grid]] = []
        sole: list[SoleSource] = []
        try:
            if self._may_flip():
                for size in range(1, len(active) + 1):
                    for keys in combinations(active, size):
                        grids = self._grids(keys)
                        found += [(keys, grid) for grid in grids]
                    if found:
                        break
                sole = list(self._sole(sources, found))
        except _CutOff:
            reasons.append(f"the search was cut off after {STEPS_MAX} comparisons")
        flips = sorted((self._flip(keys, grid) for keys, grid in found), key=self._rank)
        complete = not reasons
        every = [*dict.fromkeys((*self._decision.facts, *self._axes))]
        part = {change.fact for flip in flips for change in flip.facts} if complete else set(self._axes)
        return Margin(
            outcome=margin.FLIPS if flips else margin.NEVER if complete else margin.UNKNOWN,
            reason="; ".join(dict.fromkeys(reasons)) or None,
            flips=tuple(flips[:FLIPS_MAX]),
            omitted=max(0, len(flips) - FLIPS_MAX),
            without_effect=tuple(key for key in every if key not in part),
            sources=tuple(sole),
            complete=complete,
        )

    def _may_flip(self) -> bool:
        """Return whether any rule, or the default, leads to another choice at all."""
        if self._several:
            return True
        outcomes = [self._otherwise(), *(branch.chosen for branch in self._branches)]
        return not all(form.same(outcome, self.taken) for outcome in outcomes)

    def _grids(self, keys: tuple[str, ...]) -> list[_Grid]:
        """Return the changes of all these facts at once that flip the decision, those to one choice together."""
        outcomes: dict[bytes, _Grid] = {}
        for combination in product(*(range(len(self._axes[key].classes)) for key in keys)):
            truths = {key: self._axes[key].classes[number] for key, number in zip(keys, combination, strict=True)}
            chosen, rule = self._outcome(truths)
            if chosen is _UNDECIDED or form.same(chosen, self.taken):
                continue
            name = form.serialise([chosen, rule])
            outcomes.setdefault(name, _Grid(chosen, rule, [])).blocks.append(
                tuple(frozenset((number,)) for number in combination)
            )
        return [_Grid(grid.chosen, grid.rule, [block]) for grid in outcomes.values() for block in _joined(grid.blocks)]

    def _sole(self, sources: Sources, found: Sequence[tuple[tuple[str, ...], _Grid]]) -> Iterator[SoleSource]:
        """Yield the sources whose facts alone can flip the decision."""
        facts: dict[tuple[str, str], list[str]] = {}
        named: dict[tuple[str, str], FactSource] = {}
        for key in self._axes:
            for source in sources.get(key, ()):
                facts.setdefault((source.kind, source.id), []).append(key)
                named.setdefault((source.kind, source.id), source)
        least = len(found[0][0]) if found else len(self._axes) + 1
        for place, keys in facts.items():
            flips = [(part, grid) for part, grid in found if set(part) <= set(keys)]
            active = [key for key in keys if self._axes[key].classes]
            for size in range(least + 1, len(active) + 1) if not flips else ():
                flips = [(part, grid) for part in combinations(active, size) for grid in self._grids(part)]
                if flips:
                    break
            if flips:
                facts_of_flips = {key for part, _ in flips for key in part}
                yield SoleSource(named[place], tuple(k for k in keys if k in facts_of_flips), flips[0][1].chosen)

    def _flip(self, keys: tuple[str, ...], grid: _Grid) -> MarginFlip:
        (block,) = grid.blocks
        changes = []
        for key, numbers in zip(keys, block, strict=True):
            axis = self._axes[key]
            truths = {axis.classes[number] for number in numbers}
            changes.append(NeededChange(key, self._values.get(key), key not in self._values, axis.regions(truths)))
        return MarginFlip(grid.chosen, grid.rule, tuple(changes))

    def _rank(self, flip: MarginFlip) -> int:
        """Return what flips are sorted by: those that keep the kinds of the values first, in the order of the rules."""
        return sum(self._axes[change.fact].kind != change.to[0].kind for change in flip.facts)


class _Grid(NamedTuple):
    """Changes that lead to one choice by one rule."""

    chosen: Json
    rule: Json
    blocks: list[tuple[frozenset[int], ...]]
    """For each fact the classes of values; every combination of them is meant."""


def _joined(blocks: list[tuple[frozenset[int], ...]]) -> list[tuple[frozenset[int], ...]]:
    """Return blocks with those joined that differ in the values of one fact only."""
    for place in range(len(blocks[0]) if blocks else 0):
        joined: dict[tuple[frozenset[int], ...], frozenset[int]] = {}
        for block in blocks:
            rest = block[:place] + block[place + 1 :]
            joined[rest] = joined.get(rest, frozenset()) | block[place]
        blocks = [(*rest[:place], classes, *rest[place:]) for rest, classes in joined.items()]
    return blocks
