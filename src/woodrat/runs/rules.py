"""Rule: what a decision is made by, and the exact evaluation of it.

A rule that no facts could ever answer (an operator that does not exist, say) is refused when it is created. One that is
tried matches, does not match, or is *unknown*: no condition of it is false, and a fact it asks for is missing or cannot
be compared. A decision by an unknown rule fails and says so, unless such rules are to be skipped.

Rules that are data can be evaluated again later with the same answer: values are compared as canonical JSON, patterns
are of a pinned language. docs/formats/runs.md has the table of operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.errors import Fault, Refused, shown
from woodrat.record_json import Record, derived
from woodrat.records import dataclass, replace
from woodrat.runs import missing_facts, redaction
from woodrat.runs import values as run_values
from woodrat.runs.facts import Facts, decision_fact, number_or_plain
from woodrat.runs.missing_facts import SKIP
from woodrat.runs.operators import NO_CONDITION, copied_when, holds, plain_when, when_faults
from woodrat.runs.predicates import CONDITIONS_MAX, Looks, ask, predicate_faults, predicate_name, said
from woodrat.runs.steps import SELECT, Condition, Decision, Tried, evidence_of
from woodrat.runs.values import NOTHING, REDACTED

if TYPE_CHECKING:
    from collections.abc import Collection

    from woodrat.canon.form import Json
    from woodrat.state.fact import Fact

DECIDE: Final = "decide"
"""The mode that takes the first rule that matches."""

RAISE: Final = "raise"
"""What a decision does with a rule that is unknown, unless it is to `skip` such rules: it fails."""

RULES_MAX: Final = 1_000
"""Most rules one decision records; those that matched are recorded beyond it."""

NOTHING_DECIDED: Final = "Nothing was decided."
NOT_CREATED: Final = "The rule was not created."


@dataclass(frozen=True, slots=True)
class Rule:
    """One branch of a decision: what is chosen when something holds.

    `Refused` names everything that is wrong with it, when it is created. It keeps its conditions as plain JSON of its
    own, so what becomes of the object it was given changes nothing.
    """

    chosen: Any
    """What is chosen when the rule matches."""
    when: Any
    """Conditions by fact (`{"creditScore": {"lt": 600}}`, a bare value means `eq`), or a predicate over the facts."""
    label: str | None = None
    """What people call the rule."""

    def __post_init__(self) -> None:
        """Refuse what could never be answered, once, so that no decision has to look for it."""
        is_code = callable(self.when)
        faults = predicate_faults(self.when, "/when") if is_code else when_faults(self.when, "/when")
        if self.label is not None and not isinstance(self.label, str):
            faults.append(Fault("/label", f"got {shown(self.label)}", "Send the label as text."))
        if faults:
            raise Refused(faults, NOT_CREATED)
        if not is_code:
            object.__setattr__(self, "when", plain_when(self.when))

    def to_json(self) -> dict[str, Any]:
        """Return the rule as plain JSON; of a predicate only its name."""
        # Not derived: this is the form in which rules are sent and recorded, and a predicate is a function.
        found: dict[str, Any] = {"chosen": run_values.plain(self.chosen)}
        if callable(self.when):
            found["predicate"] = predicate_name(self.when)
        else:
            found["when"] = copied_when(self.when)
        return found if self.label is None else {**found, "label": run_values.text(self.label)}

    @staticmethod
    def from_json(value: object, path: str = "") -> Rule:
        """Return the rule that JSON from outside states, or refuse it with everything that is wrong."""
        if not isinstance(value, dict):
            problem, remedy = (
                f"expected a rule, got {shown(value)}",
                'Send woodrat.Rule(…) or {"chosen": …, "when": {…}}.',
            )
            raise Refused([Fault(path, problem, remedy)], NOTHING_DECIDED)
        if callable(value.get("when")):
            problem = f"a predicate has no JSON, got {shown(value['when'])}"
            raise Refused([Fault(f"{path}/when", problem, "Send woodrat.Rule(chosen, predicate).")], NOTHING_DECIDED)
        found: list[Fault] = form.faults(value, path)
        if found:
            raise Refused(found, NOTHING_DECIDED)
        for name in sorted(set(value) - {"chosen", "when", "label"}):
            found.append(Fault(f"{path}/{name}", "unknown part of a rule", "Send chosen, when and label."))
        for name in ("chosen", "when"):
            if name not in value:
                found.append(Fault(f"{path}/{name}", "missing", "State it."))
        if "label" in value and value["label"] is None:
            found.append(Fault(f"{path}/label", "got null", "Send the label as text, or leave it out."))
        try:
            # Where a part is missing, the others are judged all the same.
            rule = Rule(value.get("chosen"), value.get("when", _ANY), value.get("label"))
        except Refused as refusal:
            found += [fault.under(path) for fault in refusal.faults]
        if found:
            raise Refused(found, NOTHING_DECIDED)
        return rule


_ANY: Final[Mapping[str, Json]] = {"any": {"exists": True}}
"""Conditions that nothing is wrong with."""


def rules_from_json(value: object, path: str = "/rules") -> tuple[Rule, ...]:
    """Return the rules that a JSON array from outside states, or refuse it with the faults of all of them."""
    if not isinstance(value, list):
        problem = f"expected a list of rules, got {shown(value)}"
        raise Refused([Fault(path, problem, "Send an array.")], NOTHING_DECIDED)
    return as_rules(value, path)


@dataclass(frozen=True, slots=True)
class Verdict(Record):
    """What a decision came to, and by which rule."""

    mode: str
    """`decide` takes the first rule that matches, `select` all of them."""
    chosen: Any
    """What was chosen, as the rule or the default gave it; a list under `select`."""
    matched: tuple[int, ...]
    """Which rules matched, counted from 0 among those given."""
    labels: tuple[str | None, ...]
    """Their labels."""
    rules: tuple[Tried, ...]
    """The rules tried, up to and including the match, with all their conditions."""
    stage: str | None = None
    """What was decided."""
    rationale: str | None = None
    """What the agent itself says about it."""
    run: str | None = None
    """The run it was recorded in; none when there was no run."""
    span: str | None = None
    """The step of the run."""
    untried: tuple[Tried, ...] = ()
    """The rules after the match, which were not looked at."""
    otherwise: Any = None
    """What would have been chosen had no rule matched."""
    on_missing: str = RAISE
    """Whether a rule that is unknown makes the decision fail (`raise`), or is skipped (`skip`)."""
    chosen_by: Mapping[str, Any] | None = None
    """Who chose without rules: `{"model", "span", "step"}` of the model's call, or `{"agent"}`; none for rules."""
    based_on: Mapping[str, Json] | None = None
    """The facts that a choice without rules is based on, by name; none for rules."""

    @derived
    def unknown(self) -> tuple[int, ...]:
        """Which rules were unknown and are skipped, counted from 0 among those tried."""
        return tuple(number for number, rule in enumerate(self.rules) if rule.unknown)

    @derived
    def default(self) -> bool:
        """Whether no rule matched."""
        return not self.matched and self.chosen_by is None

    @derived
    def rule(self) -> Any:
        """Label of the rule that matched; under `select` a tuple of them."""
        if self.mode == SELECT:
            return self.labels
        return self.labels[0] if self.labels else None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Everything compared, rule after rule."""
        return tuple(condition for rule in self.rules for condition in rule.conditions)

    @derived
    def evidence(self) -> dict[str, Json]:
        """The values that the rules which matched looked at, by name, and `threshold` if there was one to compare with.

        A fact that is itself called `threshold` keeps its name. Of a choice without rules, what it is based on.
        """
        return evidence_of(self.rules) if self.based_on is None else dict(self.based_on)

    def facts(self) -> dict[str, Fact]:
        """Return what was chosen as a fact that a later decision can be based on, under the name of the stage."""
        name, chosen = self.stage or "decision", run_values.plain(self.chosen)
        return {name: decision_fact(name, chosen, self.run, self.span)}

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain JSON."""
        # What is chosen may be any object of Python.
        chosen, otherwise = run_values.plain(self.chosen), run_values.plain(self.otherwise)
        told = Record.to_json(replace(self, chosen=chosen, otherwise=otherwise))
        return {**told, "rule": list(self.labels)} if self.mode == SELECT else told


def verdict_of(decision: Decision, run: str) -> Verdict:
    """Return the verdict that a recorded decision was."""
    matched = tuple(number for number, tried in enumerate(decision.rules) if tried.matched)
    return Verdict(
        mode=decision.mode,
        chosen=decision.chosen,
        matched=matched,
        labels=tuple(decision.rules[number].label for number in matched),
        rules=decision.rules,
        stage=decision.stage,
        rationale=decision.rationale,
        run=run,
        span=decision.span,
        untried=decision.untried or (),
        otherwise=decision.otherwise,
        on_missing=decision.on_missing or RAISE,
        chosen_by=decision.chosen_by,
        based_on=None if decision.chosen_by is None else decision.facts,
    )


def as_rules(given: object, path: str = "/rules") -> tuple[Rule, ...]:
    """Return rules as a caller gave them: `Rule`s, or objects in their JSON form."""
    if isinstance(given, Rule):
        given = (given,)
    if type(given) is not list and (not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping)):
        problem = f"expected a list of rules, got {shown(given)}"
        raise Refused([Fault("rules", problem, "Send a list of woodrat.Rule.")], NOTHING_DECIDED)
    found: list[Rule] = []
    faults: list[Fault] = []
    for index, item in enumerate(given):
        if isinstance(item, Rule):
            found.append(item)
            continue
        try:
            found.append(Rule.from_json(item, f"{path}/{index}"))
        except Refused as refusal:
            faults += refusal.faults
    if faults:
        raise Refused(faults, NOTHING_DECIDED)
    return tuple(found)


def check_on_missing(on_missing: object, path: str = "on_missing") -> list[Fault]:
    """Return what is wrong with what a caller wants done about rules that are unknown."""
    if isinstance(on_missing, str) and on_missing in (RAISE, SKIP):
        return []
    return [Fault(path, f"got {shown(on_missing)}", f"Send {RAISE} or {SKIP}.")]


def evaluate(
    facts: Facts | Mapping[str, Any],
    rules: Iterable[Rule],
    default: object = None,
    mode: str = DECIDE,
    *,
    hidden: Collection[str] = NOTHING,
    on_missing: str = RAISE,
    **about: Any,
) -> Verdict:
    """Try rules on facts and return the verdict: the first that matches, or under `select` all that do.

    `Refused` names each rule that is unknown, and why: before the first match, under `select` anywhere; with
    `on_missing="skip"` such rules are skipped. When none matches, the default is chosen; under `select` a list as it
    is, anything else as a list of it, and none as an empty one. Facts under a key to be hidden are compared as they are
    and shown as `[REDACTED]`. `about` is what else the verdict says: stage, rationale, run and span.
    """
    verdict = attempt(facts, rules, default, mode, hidden=hidden, on_missing=on_missing, **about)
    refusal = refusal_of(verdict)
    if refusal is not None:
        raise refusal
    return verdict


def attempt(
    facts: Facts | Mapping[str, Any],
    rules: Iterable[Rule],
    default: object = None,
    mode: str = DECIDE,
    *,
    hidden: Collection[str] = NOTHING,
    **about: Any,
) -> Verdict:
    """Try rules as `evaluate` does, and return what came of it; it is no verdict where `refusal_of` tells why not."""
    if not isinstance(facts, Facts):
        facts = Facts({run_values.text(name): number_or_plain(value) for name, value in facts.items()}, {}, None)
    tried: list[Tried] = []
    matched: list[int] = []
    chosen: list[object] = []
    labels: list[str | None] = []
    coming = iter(rules)
    for index, rule in enumerate(coming):
        result = _try(rule, facts, hidden)
        tried.append(result)
        if result.matched:
            matched.append(index)
            chosen.append(rule.chosen)
            labels.append(result.label)
            if mode == DECIDE:
                break
    taken: object = all_chosen(chosen, default) if mode == SELECT else chosen[0] if chosen else default
    untried = tuple(_untried(rule, hidden) for rule in coming)
    rest = {"untried": untried, "otherwise": default, **about}
    return Verdict(mode, taken, tuple(matched), tuple(labels), tuple(tried), **rest)


def refusal_of(verdict: Verdict) -> Refused | None:
    """Return why nothing was decided; none where rules that are unknown are to be skipped, or there are none."""
    # All rules tried come before the first match, and under `select` all are tried.
    if verdict.on_missing == SKIP or not any(rule.unknown for rule in verdict.rules):
        return None
    return Refused(missing_facts.refusal_faults(verdict.stage, missing_facts.gaps_of(verdict.rules)), NOTHING_DECIDED)


def all_chosen(chosen: list[Any], default: Any) -> list[Any]:
    """Return what `select` takes: the branches that matched, or else the default, which may be a list of them."""
    if chosen or default is None:
        return chosen
    return list(default) if isinstance(default, list | tuple) else [default]


def body_of(verdict: Verdict, facts: Facts, hidden: Collection[str] = NOTHING) -> dict[str, Json]:
    """Return what a `run.decided` entry says of a verdict, within its bounds."""
    room = run_values.Budget()
    kept = [rule for index, rule in enumerate(verdict.rules) if index < RULES_MAX or rule.matched]
    # What the decision rests on comes first: the conditions of the rules that matched take the room of the others.
    left = {True: CONDITIONS_MAX, False: 0}
    left[False] = max(0, CONDITIONS_MAX - sum(len(rule.conditions) for rule in kept if rule.matched))
    rules: list[Json] = []
    omitted = {"rules": len(verdict.rules) - len(kept), "conditions": 0}
    for rule in kept:
        room_left = left[rule.matched]
        rules.append(_rule_body(rule, facts, room, room_left))
        omitted["conditions"] += max(0, len(rule.conditions) - room_left)
        left[rule.matched] = max(0, room_left - len(rule.conditions))
    names = list(facts.values)
    further: set[str] = set()
    if facts.partial:
        looked_at = {condition.key for rule in verdict.rules for condition in rule.conditions}
        for rule in verdict.untried:
            further.update(rule.when if isinstance(rule.when, dict) else ())
        names = [name for name in names if name in looked_at or name in further]
    values = run_values.Budget(run_values.VALUE_BYTES_MAX)
    body: dict[str, Json] = {
        "mode": verdict.mode,
        "chosen": run_values.bounded(verdict.chosen, hidden=hidden),
        "default": verdict.default,
        "rules": rules,
        "facts": {name: values.take(_shown(facts.values, name, hidden)) for name in names},
        "facts_origin": {name: dict(facts.origin(name)) for name in [*names, *sorted(further.difference(names))]},
    }
    # What comes after the match is of no use now. It tells what would be decided if the facts turned out to be others.
    if not verdict.default:
        if len(kept) + len(verdict.untried) <= RULES_MAX:
            body["untried"] = [_untried_body(rule, room) for rule in verdict.untried]
        if verdict.otherwise is not None:
            body["otherwise"] = run_values.bounded(verdict.otherwise, hidden=hidden)
    if verdict.mode == SELECT:
        body["rule"] = list(verdict.labels)
    elif verdict.rule is not None:
        body["rule"] = verdict.rule
    if verdict.on_missing == SKIP:
        body["on_missing"] = SKIP
    if any(omitted.values()):
        body["omitted"] = {name: count for name, count in omitted.items() if count}
    return body


def choice_body(verdict: Verdict, facts: Facts, hidden: Collection[str] = NOTHING) -> dict[str, Json]:
    """Return what a `run.decided` entry says of a choice without rules, within its bounds."""
    room = run_values.Budget(run_values.VALUE_BYTES_MAX)
    return {
        "mode": DECIDE,
        "chosen": run_values.bounded(verdict.chosen, hidden=hidden),
        "chosen_by": dict(verdict.chosen_by or {}),
        "default": False,
        "facts": {name: room.take(_shown(facts.values, name, hidden)) for name in facts.values},
        "facts_origin": {name: dict(facts.origin(name)) for name in facts.values},
    }


def _untried(rule: Rule, hidden: Collection[str]) -> Tried:
    """Return a rule that was not tried, as a record shows it."""
    label = None if rule.label is None else run_values.text(rule.label)
    chosen = run_values.plain(rule.chosen, hidden)
    if callable(rule.when):
        return Tried(label, chosen, False, (), predicate=predicate_name(rule.when))
    return Tried(label, chosen, False, (), when=shown_when(copied_when(rule.when), hidden))


def _untried_body(rule: Tried, room: run_values.Budget) -> dict[str, Json]:
    body: dict[str, Json] = {"chosen": room.take(rule.chosen)}
    if rule.label is not None:
        body["label"] = rule.label
    if rule.predicate is not None:
        body["predicate"] = rule.predicate
    else:
        body["when"] = room.take(rule.when, run_values.VALUE_BYTES_MAX)
    return body


def shown_when(when: Json, hidden: Collection[str]) -> Json:
    """Return conditions as they may be shown."""
    return when if hidden is NOTHING else redaction.when(when, hidden)


def rule_said(said: Mapping[str, Any], hidden: Collection[str] = NOTHING) -> dict[str, Json]:
    """Return what tells rules apart, within the bounds that a record of them has."""
    return {
        "label": said.get("label"),
        "chosen": run_values.bounded(said.get("chosen"), run_values.ITEM_BYTES_MAX, hidden),
        "when": run_values.bounded(shown_when(said.get("when"), hidden), run_values.VALUE_BYTES_MAX),
        "predicate": said.get("predicate"),
    }


def _shown(values: Mapping[str, Json], name: str, hidden: Collection[str]) -> Json:
    """Return a fact as it may be shown."""
    if hidden is NOTHING:
        return values[name]
    return REDACTED if name in hidden else run_values.plain(values[name], hidden)


def _rule_body(rule: Tried, facts: Facts, room: run_values.Budget, conditions_max: int) -> dict[str, Json]:
    body: dict[str, Json] = {"chosen": room.take(rule.chosen), "matched": rule.matched}
    if rule.unknown:
        body["unknown"] = True
    if rule.label is not None:
        body["label"] = rule.label
    if rule.predicate is not None:
        body["predicate"] = rule.predicate
    else:
        body["when"] = room.take(rule.when, run_values.VALUE_BYTES_MAX)
    conditions: list[Json] = []
    for condition in rule.conditions[:conditions_max]:
        told: dict[str, Json] = {"key": condition.key}
        if condition.result is not None:
            told["result"] = condition.result
        if condition.op:
            told["op"] = condition.op
            told["operand"] = room.take(condition.operand)
        if condition.key in facts.values:
            told["actual"] = room.take(condition.actual)
        told["origin"] = dict(condition.origin)
        if condition.error is not None:
            told["error"] = condition.error
        conditions.append(told)
    body["conditions"] = conditions
    if rule.error is not None:
        body["error"] = rule.error
    return body


# -- one rule ---------------------------------------------------------------------------------------------------------


def _try(rule: Rule, facts: Facts, hidden: Collection[str]) -> Tried:
    label = None if rule.label is None else run_values.text(rule.label)
    chosen = run_values.plain(rule.chosen, hidden)
    if callable(rule.when):
        looks = Looks(facts, hidden)
        answer, error = ask(rule.when, looks)
        conditions = looks.conditions(answer)
        name = predicate_name(rule.when)
        return Tried(label, chosen, answer is True, conditions, predicate=name, error=error, unknown=answer is None)
    when = copied_when(rule.when)
    conditions = tuple(_conditions(when, facts, hidden))
    results = [condition.result for condition in conditions]
    # Not all of a rule that is changed after it was created is refused: without a condition it is unknown.
    unknown = False not in results and (None in results or not results)
    matched = not unknown and False not in results
    error = None if when else NO_CONDITION
    return Tried(label, chosen, matched, conditions, when=shown_when(when, hidden), error=error, unknown=unknown)


def _conditions(when: Mapping[str, Json], facts: Facts, hidden: Collection[str]) -> Iterator[Condition]:
    for key, wanted in when.items():
        if isinstance(wanted, dict) and not run_values.is_mark(wanted):
            for op, operand in wanted.items() or (("", None),):
                result, error = holds(facts.values, key, op, operand)
                yield said(key, op, operand, result, error, facts, hidden)
        else:
            result, error = holds(facts.values, key, "eq", wanted)
            yield said(key, "eq", wanted, result, error, facts, hidden)
