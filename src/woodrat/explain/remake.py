"""The remake: a recorded decision, made again on other facts or by other rules.

Rules that are data are evaluated exactly. A fact may be *open*: what it would be is not known, and there is a reason.
A rule with an open fact is settled where another of its conditions fails, or where every branch that is left leads to
the same choice; otherwise the outcome is unknown, with that reason. So it is where a fact would be missing, or could
not be compared, and a rule before the first match would be unknown for it: nothing would be decided then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.explain.lineage import shown
from woodrat.log.erasure import ERASED
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.runs import values as run_values
from woodrat.runs.missing_facts import SKIP, Gap, gaps_of
from woodrat.runs.operators import NO_CONDITION, NO_FACT, holds
from woodrat.runs.rules import Rule, all_chosen
from woodrat.runs.run_fields import SNAPSHOT
from woodrat.runs.steps import SELECT, Decision, Tried, chooser, mapping
from woodrat.runs.values import REDACTED
from woodrat.state.fact import Fact

SAME, FLIP, UNKNOWN = "same", "flip", "unknown"
"""What would come of a decision."""

UNMOVED: Final = "nothing it looked at would be otherwise"
"""Why a decision stays the same on the facts it was made on."""

_MARKS: Final = frozenset({"$truncated", "$unserialisable"})
_NO_DEFAULT: Final = "the rule that matched no longer does, and the rules after it are not on record"


@dataclass(frozen=True, slots=True)
class DecisionNow(Record):
    """What a decision would come to on other facts."""

    outcome: str
    """`same`, `flip` or `unknown`."""
    chosen: Json
    """What would be chosen; null where that is not known."""
    rule: Json
    """Label of the rule that would match, a list of them under `select`."""
    reason: str
    """Why, in a clause."""

    @property
    def sentence(self) -> str:
        """What would come of the decision, in a few words."""
        if self.outcome == FLIP:
            return f"would flip to {shown(self.chosen)}"
        return "would stay the same" if self.outcome == SAME else f"unknown: {self.reason}"


class Unknown(Exception):
    """Ends an evaluation that cannot be exact."""


class Undecided(Unknown):
    """Ends an evaluation that is exact, and in which nothing would be decided: a rule is unknown."""


class _Condition(NamedTuple):
    """One condition of a rule that is data."""

    key: str
    op: str
    operand: Json
    whole: bool
    """Whether the operand is on record as it was."""


class _Branch(NamedTuple):
    """One rule, ready to be tried."""

    name: str
    label: str | None
    chosen: Json
    conditions: tuple[_Condition, ...] | None
    """None of a predicate in code."""
    looked: frozenset[str] | None
    """What a predicate looked at when it was tried; none when it was not, or when that is not all on record."""
    matched: bool
    """What a predicate said then."""
    failed: str | None
    """Why a predicate was unknown then."""


Threshold = tuple[str, str, Json]
"""Fact, operator, operand: a condition with this operand in place of the one on record."""


class Remade:
    """A recorded decision, ready to be made again many times."""

    def __init__(
        self,
        decision: Decision,
        rules: Sequence[Rule] | None = None,
        thresholds: Sequence[Threshold] = (),
    ) -> None:
        self.decision = decision
        self.met: set[int] = set()
        """Which of the thresholds stand in a rule, by number."""
        self._problem: str | None = None
        if rules is not None:
            tried = [Tried(rule.label, rule.chosen, False, (), when=rule.when) for rule in rules]
            found = [(rule, False) for rule in tried]
        else:
            found = [(rule, True) for rule in decision.rules]
            found += [(rule, False) for rule in decision.untried or ()]
            if decision.omitted.get("rules"):
                self._problem = "some of its rules are not on record"
            elif decision.chosen_by is not None:
                self._problem = f"it was chosen {chooser(decision.chosen_by)}, which may choose otherwise"
            elif not found and not (decision.default and _has_rules(decision)):
                self._problem = "it was made elsewhere, and its rules are not on record"
        self.altered = rules is not None
        """Whether the rules are not those on record."""
        whole_looks = not decision.omitted.get("conditions")
        self._branches = [self._branch(rule, tried and whole_looks, thresholds) for rule, tried in found]

    @property
    def no_rules(self) -> str | None:
        """Why nobody can say what it would come to on other facts; none where rules are on record."""
        return None if self._branches else self._problem

    @property
    def keys(self) -> set[str]:
        """The facts that its rules look at, as far as they are on record."""
        found = {condition.key for branch in self._branches for condition in branch.conditions or ()}
        return found.union(*(branch.looked or () for branch in self._branches))

    def operands(self, key: str) -> Iterator[Json]:
        """Yield all that a fact is compared with, the members of lists one by one."""
        for branch in self._branches:
            for condition in branch.conditions or ():
                if condition.key == key:
                    yield from condition.operand if isinstance(condition.operand, list) else (condition.operand,)

    def _branch(self, tried: Tried, was_tried: bool, thresholds: Sequence[Threshold]) -> _Branch:
        name = shown(tried.label if tried.label is not None else tried.predicate or tried.chosen)
        if not isinstance(tried.when, dict):
            looked = frozenset(condition.key for condition in tried.conditions) if was_tried else None
            failed = "; ".join(gap.clause for gap in gaps_of([tried])) if tried.unknown else None
            return _Branch(name, tried.label, tried.chosen, None, looked, tried.matched, failed)
        conditions = tuple(self._conditions(tried.when, thresholds))
        return _Branch(name, tried.label, tried.chosen, conditions, None, False, None)

    def _conditions(self, when: Mapping[str, Json], thresholds: Sequence[Threshold]) -> Iterator[_Condition]:
        if run_values.is_mark(when):
            yield _Condition("", "eq", None, False)
            return
        for key, wanted in when.items():
            pairs = wanted.items() if isinstance(wanted, dict) and not run_values.is_mark(wanted) else [("eq", wanted)]
            if not pairs:
                yield _Condition(key, "", None, True)  # an object without operators asks for nothing
            for op, operand in pairs:
                for number, (fact, operator, value) in enumerate(thresholds):
                    if (fact, operator) == (key, op):
                        self.met.add(number)
                        self.altered = self.altered or not form.same(operand, value)
                        operand = value
                yield _Condition(key, op, operand, is_whole(operand))

    def on(
        self, now: Mapping[str, Fact], open: Mapping[str, str] | None = None, values: dict[str, Json] | None = None
    ) -> DecisionNow:
        """Return what it would come to if these facts, by the names it gave them, had been so.

        `values` are those of another decision that differs in nothing else (`rules_key`).
        """
        values = self.decision.known_facts if values is None else values.copy()
        changed: set[str] = set()
        for key, fact in now.items():
            if fact.missing:
                changed.update({key} if values.pop(key, fact) is not fact else ())
            elif key not in values or not form.same(values[key], fact.value):
                values[key] = fact.value
                changed.add(key)
        return self.by(values, changed, open or {})

    def by(self, values: Mapping[str, Json], changed: Collection[str], open: Mapping[str, str]) -> DecisionNow:
        """Return what it would come to on all these values, of which some are not those on record."""
        try:
            return self._by(values, changed, open)
        except Unknown as problem:
            return DecisionNow(UNKNOWN, None, None, str(problem))

    def _by(self, values: Mapping[str, Json], changed: Collection[str], open: Mapping[str, str]) -> DecisionNow:
        if self._problem is not None:
            raise Unknown(self._problem)
        chosen: list[Json] = []
        labels: list[Json] = []
        possible: list[Json] = []
        doubt: Unknown | None = None
        several = self.decision.mode == SELECT
        for branch in self._branches:
            try:
                matched = self._matches(branch, values, changed, open)
            except Undecided as problem:
                raise doubt or problem from None  # the first reason, in the order the rules are tried
            except Unknown as problem:
                if several:
                    raise
                doubt = doubt or problem
                possible.append(branch.chosen)
                continue
            if matched:
                chosen.append(branch.chosen)
                labels.append(branch.label)
                if not several:
                    break
        rule: Json
        if several:
            taken: Json = chosen or self._otherwise(several=True)
            rule = labels
        else:
            taken = chosen[0] if chosen else self._otherwise(several=False, doubt=doubt)
            rule = labels[0] if labels else None
        if doubt is not None and not all(form.same(taken, item) for item in possible):
            raise doubt
        if not is_whole(taken):
            raise Unknown("what would be chosen was hidden or cut in the record")
        by = f"rule {shown(rule)} matches" if labels else "no rule matches"
        if doubt is not None:
            rule, by = None, "every rule that may match leads there"
        return DecisionNow(SAME if form.same(taken, self.decision.chosen) else FLIP, taken, rule, by)

    def _otherwise(self, *, several: bool, doubt: Unknown | None = None) -> Json:
        """Return what is chosen when no rule matches."""
        decision = self.decision
        if decision.default:
            return decision.chosen
        if decision.untried is None:
            raise doubt or Unknown(_NO_DEFAULT)
        if several:
            return all_chosen([], decision.otherwise)
        return decision.otherwise

    def _matches(
        self, branch: _Branch, values: Mapping[str, Json], changed: Collection[str], open: Mapping[str, str]
    ) -> bool:
        """Return whether a rule matches, or raise where that is not known; one that is skipped does not."""
        skips = self.decision.on_missing == SKIP
        if branch.conditions is None:
            looked = branch.looked
            if looked is not None and looked.isdisjoint(changed) and looked.isdisjoint(open):
                if branch.failed is not None and not skips:
                    raise Undecided(f"rule {branch.name} cannot be decided: {branch.failed}")
                return branch.matched
            raise Unknown(f"rule {branch.name} is a predicate in the agent's code, which `runs.replay` runs")
        doubt: str | None = None
        gap: Gap | None = None
        for key, op, operand, on_record in branch.conditions:
            if key in open:
                doubt = doubt or open[key]
            elif not on_record:
                doubt = doubt or f"rule {branch.name} was hidden or cut in the record"
            elif op != "exists" and not is_whole(values.get(key)):
                doubt = doubt or f"{key} was hidden or cut in the record"
            else:
                held, error = holds(values, key, op, operand)
                if held is False:
                    return False
                if held is None:
                    gap = gap or Gap(branch.name, key, error or NO_FACT, True)
        if gap is not None or not branch.conditions:
            if skips:
                return False  # whatever an open fact may be: it matches in no case
            raise Undecided(f"rule {branch.name} cannot be decided: {NO_CONDITION if gap is None else gap.clause}")
        if doubt is not None:
            raise Unknown(doubt)
        return True


def _has_rules(decision: Decision) -> bool:
    """Return whether the rules are on record, of which there may be none."""
    return decision.rules_on_record and SNAPSHOT not in decision.attributes


def rules_key(body: Mapping[str, Any]) -> bytes:
    """Return bytes that are the same for recorded decisions, by their bodies, that differ in facts and place alone.

    `Remade` of one of them says what each would come to. Of a rule that is data, what it compared belongs to the facts.
    """
    parts: list[Any] = [*map(body.get, _DECIDING), SNAPSHOT in mapping(body.get("attributes"))]
    rules = body.get("rules")
    parts.append(len(rules) if type(rules) is list else None)
    for rule in rules if type(rules) is list else ():
        if type(rule) is dict and type(when := rule.get("when")) is dict:
            parts += (when, rule.get("label"), rule.get("chosen"), rule.get("predicate"))
        else:
            parts.append(rule)
    return form.serialise_plain(parts)  # however it spells a float, it is no other float's spelling


_DECIDING: Final = ("untried", "chosen", "default", "mode", "otherwise", "on_missing", "chosen_by", "omitted")
"""What else of a decision `Remade` looks at, as its body calls it."""


def from_models(decision: Decision) -> dict[str, str]:
    """Return the facts that a model gave, each with why it is open today."""
    origins = {**decision.facts_origin, **{c.key: c.origin for c in decision.conditions}}
    return {
        key: f"{key} came from a model, which might answer otherwise now"
        for key, origin in origins.items()
        if isinstance(origin, dict) and origin.get("kind") == "model"
    }


def is_whole(value: Json) -> bool:
    """Return whether a recorded value is all there: neither hidden nor cut nor erased."""
    if isinstance(value, dict):
        return _MARKS.isdisjoint(value) and all(is_whole(item) for item in value.values())
    if isinstance(value, list):
        return all(is_whole(item) for item in value)
    return not (isinstance(value, str) and value in (REDACTED, ERASED))
