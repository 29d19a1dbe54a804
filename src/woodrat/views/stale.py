"""Stale: past decisions whose evidence is believed otherwise now, made again on what is believed now.

Rules that are data are evaluated again exactly. Where the answer would need a predicate of the agent's code, a model,
or rules that are not on record, it is *unknown*, with the reason; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.frozen import dataclass
from woodrat.log.erasure import ERASED
from woodrat.runs.bounding import REDACTED
from woodrat.runs.parts import SELECT, Decision, Tried
from woodrat.runs.rule import NO_FACT, Rule, evaluate
from woodrat.state.fact import Fact
from woodrat.views.lineage import shown

SAME, FLIP, UNKNOWN = "same", "flip", "unknown"
"""What would come of a decision now."""
OUTCOMES: Final = frozenset({SAME, FLIP, UNKNOWN})

_MARKS: Final = frozenset({"$truncated", "$unserialisable"})


@dataclass(frozen=True, slots=True)
class Belief:
    """One fact that a decision was made on, as it was believed then and as it is believed now."""

    key: str
    """What the decision calls it."""
    entity: str
    """The entity it was read from."""
    field: str
    """The field."""
    before: Json
    """What was believed; null also where nothing was."""
    now: Json
    """What is believed now; null also where nothing is."""
    missing: bool
    """Whether nothing is believed now."""
    observations: tuple[str, ...]
    """The observations behind it then."""
    observations_now: tuple[str, ...]
    """The observations behind it now."""
    change: str
    """`corrected`, `retracted`, `superseded`, `deleted`, or `stated` where there was nothing before."""
    reason: str
    """Why the earlier one no longer holds, in a clause."""

    def to_json(self) -> dict[str, Any]:
        """Return the belief as plain JSON."""
        return {
            "key": self.key,
            "entity": self.entity,
            "field": self.field,
            "before": self.before,
            "now": self.now,
            "missing": self.missing,
            "observations": list(self.observations),
            "observationsNow": list(self.observations_now),
            "change": self.change,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Again:
    """What a decision would come to on other facts."""

    outcome: str
    """`same`, `flip` or `unknown`."""
    chosen: Json
    """What would be chosen; null where that is not known."""
    rule: Json
    """Label of the rule that would match, a list of them under `select`."""
    reason: str
    """Why, in a clause."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A decision whose evidence is believed otherwise now."""

    run: str
    """The run it was made in."""
    agent: str | None
    """Who decided."""
    query: str | None
    """What was asked."""
    subject: str | None
    """The entity the run is about."""
    answer: Json
    """What the run answered."""
    decision: Decision
    """What was decided, by which rule and on what evidence."""
    beliefs: tuple[Belief, ...]
    """What is believed otherwise now, both beliefs side by side."""
    again: Again
    """What would be decided now."""

    @property
    def outcome(self) -> str:
        """`flip`, `same` or `unknown`."""
        return self.again.outcome

    @property
    def chosen_now(self) -> Json:
        """What would be chosen now; null where that is not known."""
        return self.again.chosen

    @property
    def sentence(self) -> str:
        """What would come of the decision now, in a few words."""
        if self.outcome == FLIP:
            return f"would flip to {shown(self.again.chosen)}"
        return "would stay the same" if self.outcome == SAME else f"unknown: {self.again.reason}"

    def to_json(self) -> dict[str, Any]:
        """Return the decision with both beliefs as plain JSON."""
        return {
            "runId": self.run,
            "agent": self.agent,
            "query": self.query,
            "subject": self.subject,
            "finalContent": self.answer,
            "stageId": self.decision.stage,
            "chosen": self.decision.chosen,
            "rule": self.decision.rule,
            "decidedAt": self.decision.started_at or None,
            "position": self.decision.position,
            "outcome": self.outcome,
            "chosenNow": self.again.chosen,
            "ruleNow": self.again.rule,
            "reason": self.again.reason,
            "sentence": self.sentence,
            "beliefs": [belief.to_json() for belief in self.beliefs],
        }


class _Unknown(Exception):
    """Ends an evaluation that cannot be exact."""


def whole(value: Json) -> bool:
    """Return whether a recorded value is all there: neither hidden nor cut nor erased."""
    if isinstance(value, dict):
        return _MARKS.isdisjoint(value) and all(whole(item) for item in value.values())
    if isinstance(value, list):
        return all(whole(item) for item in value)
    return not (isinstance(value, str) and value in (REDACTED, ERASED))


def again(decision: Decision, now: Mapping[str, Fact]) -> Again:
    """Return what a decision would come to if these facts, by the names it gave them, had been so."""
    try:
        return _again(decision, now)
    except _Unknown as problem:
        return Again(UNKNOWN, None, None, str(problem))


def _again(decision: Decision, now: Mapping[str, Fact]) -> Again:
    values = given(decision)
    changed: set[str] = set()
    for key, fact in now.items():
        if fact.missing:
            changed.update({key} if values.pop(key, fact) is not fact else ())
        elif key not in values or not form.same(values[key], fact.value):
            values[key] = fact.value
            changed.add(key)
    if decision.omitted.get("rules"):
        raise _Unknown("some of its rules are not on record")
    chosen: list[Json] = []
    labels: list[Json] = []
    for index, tried in enumerate((*decision.rules, *(decision.untried or ()))):
        if _matches(tried, index < len(decision.rules), decision, values, changed):
            chosen.append(tried.chosen)
            labels.append(tried.label)
            if decision.mode != SELECT:
                break
    if decision.mode == SELECT:
        taken: Json = chosen or _otherwise(decision, [] if decision.otherwise is None else [decision.otherwise])
        rule: Json = labels
    else:
        taken = chosen[0] if chosen else _otherwise(decision, decision.otherwise)
        rule = labels[0] if labels else None
    if not whole(taken):
        raise _Unknown("what would be chosen was hidden or cut in the record")
    by = f"rule {shown(rule)} matches" if labels else "no rule matches"
    return Again(SAME if form.same(taken, decision.chosen) else FLIP, taken, rule, by)


def given(decision: Decision) -> dict[str, Json]:
    """Return the facts a decision was made on, by name, as far as they are on record."""
    values = dict(decision.facts)
    for condition in decision.conditions:
        there = condition.result is condition.operand if condition.op == "exists" else condition.error != NO_FACT
        if there and condition.actual is not None:
            values.setdefault(condition.key, condition.actual)
    return values


def _otherwise(decision: Decision, stated: Json) -> Json:
    """Return what is chosen when no rule matches."""
    if decision.default:
        return decision.chosen
    if decision.untried is None:
        raise _Unknown("the rule that matched no longer does, and the rules after it are not on record")
    return stated


def _matches(tried: Tried, was_tried: bool, decision: Decision, values: Mapping[str, Json], changed: set[str]) -> bool:
    """Return whether a rule matches these values."""
    name = shown(tried.label if tried.label is not None else tried.predicate or tried.chosen)
    if not isinstance(tried.when, dict):
        if was_tried and changed.isdisjoint(condition.key for condition in tried.conditions):
            return tried.matched
        raise _Unknown(f"rule {name} is a predicate in the agent's code")
    origins = {condition.key: condition.origin for condition in decision.conditions}
    for key in tried.when:
        origin = origins.get(key) or decision.facts_origin.get(key)
        if isinstance(origin, dict) and origin.get("kind") == "model":
            raise _Unknown(f"{key} came from a model, which might answer otherwise now")
        if not whole(values.get(key)):
            raise _Unknown(f"{key} was hidden or cut in the record")
    if not whole(tried.when):
        raise _Unknown(f"rule {name} was hidden or cut in the record")
    return evaluate(values, [Rule(tried.chosen, tried.when, tried.label)]).default is False
