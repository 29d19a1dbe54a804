"""Rule: what a decision is made by, and the exact evaluation of it.

Rules that are data can be evaluated again later with the same answer: values are compared as canonical JSON, patterns
are of a pinned language. Nothing a rule does raises: what cannot be compared is kept as an error and does not hold,
and the next rule is tried. docs/formats/runs.md has the table of operators.
"""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.errors import Fault, Refused, shown
from woodrat.frozen import dataclass
from woodrat.runs import bounding, hiding, pattern
from woodrat.runs.bounding import NOTHING, REDACTED
from woodrat.runs.fact import Facts, number_or_plain
from woodrat.runs.parts import SELECT, Condition, Decision, Tried, conditions_json, evidence_of
from woodrat.state.redaction import taken_out

if TYPE_CHECKING:
    from collections.abc import Collection

    from woodrat.canon.form import Json

DECIDE: Final = "decide"
"""The mode that takes the first rule that matches."""

IN_VALUES_MAX: Final = 1_000
"""Longest list `in` and `not_in` look through."""
RULES_MAX: Final = 1_000
"""Most rules one decision records; those that matched are recorded beyond it."""
CONDITIONS_MAX: Final = 1_000
"""Most conditions one decision records."""

NOTHING_DECIDED: Final = "Nothing was decided."
NO_FACT: Final = "there is no such fact"
NO_CONDITION: Final = "the rule has no condition"


@dataclass(frozen=True, slots=True)
class Rule:
    """One branch of a decision: what is chosen when something holds."""

    chosen: Any
    """What is chosen when the rule matches."""
    when: Any
    """Conditions by fact (`{"creditScore": {"lt": 600}}`, a bare value means `eq`), or a predicate over the facts."""
    label: str | None = None
    """What people call the rule."""

    def to_json(self) -> dict[str, Any]:
        """Return the rule as plain JSON; of a predicate only its name."""
        found: dict[str, Any] = {"chosen": bounding.plain(self.chosen)}
        if callable(self.when):
            found["predicate"] = predicate_name(self.when)
        else:
            found["when"] = _wanted(self.when)
        return found if self.label is None else {**found, "label": bounding.text(self.label)}

    @staticmethod
    def from_json(value: object, path: str = "") -> Rule:
        """Return the rule that JSON from outside states, or refuse its shape; operators are judged when it is tried."""
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
            found.append(Fault(f"{path}/{name}", "no such part of a rule", "Send chosen, when and label."))
        for name in ("chosen", "when"):
            if name not in value:
                found.append(Fault(f"{path}/{name}", "missing", "State it."))
        if not isinstance(value.get("when", {}), dict):
            problem = f"expected conditions by fact, got {shown(value['when'])}"
            found.append(Fault(f"{path}/when", problem, 'Send an object such as {"creditScore": {"lt": 600}}.'))
        if not isinstance(value.get("label", ""), str):
            found.append(Fault(f"{path}/label", f"got {shown(value['label'])}", "Send the label as text."))
        if found:
            raise Refused(found, NOTHING_DECIDED)
        return Rule(value["chosen"], value["when"], value.get("label"))


def rules_from_json(value: object, path: str = "/rules") -> tuple[Rule, ...]:
    """Return the rules that a JSON array from outside states, or refuse it with the faults of all of them."""
    if not isinstance(value, list):
        problem = f"expected a list of rules, got {shown(value)}"
        raise Refused([Fault(path, problem, "Send an array.")], NOTHING_DECIDED)
    rules: list[Rule] = []
    faults: list[Fault] = []
    for index, item in enumerate(value):
        try:
            rules.append(Rule.from_json(item, f"{path}/{index}"))
        except Refused as refusal:
            faults += refusal.faults
    if faults:
        raise Refused(faults, NOTHING_DECIDED)
    return tuple(rules)


@dataclass(frozen=True, slots=True)
class Verdict:
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

    @property
    def default(self) -> bool:
        """Whether no rule matched."""
        return not self.matched

    @property
    def rule(self) -> Any:
        """Label of the rule that matched; under `select` a tuple of them."""
        if self.mode == SELECT:
            return self.labels
        return self.labels[0] if self.labels else None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Everything compared, rule after rule."""
        return tuple(condition for rule in self.rules for condition in rule.conditions)

    @property
    def evidence(self) -> dict[str, Json]:
        """The values that the rules which matched looked at, by name, and `threshold` if there was one to compare with.

        A fact that is itself called `threshold` keeps its name.
        """
        return evidence_of(self.rules)

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain JSON, as a run record shows a decision."""
        found: dict[str, Any] = {
            "stageId": self.stage,
            "chosen": bounding.plain(self.chosen),
            "rule": list(self.labels) if self.mode == SELECT else self.rule,
            "evidence": self.evidence,
            "conditions": conditions_json(self.rules),
            "rules": [rule.to_json() for rule in self.rules],
            "default": self.default,
            "mode": self.mode,
            "rationale": self.rationale,
        }
        return found if self.run is None else {**found, "run": self.run, "span": self.span}


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
    )


def as_rules(given: object) -> tuple[Rule, ...]:
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
            found.append(Rule.from_json(item, f"/rules/{index}"))
        except Refused as refusal:
            faults += refusal.faults
    if faults:
        raise Refused(faults, NOTHING_DECIDED)
    return tuple(found)


def evaluate(
    facts: Facts | Mapping[str, Any],
    rules: Iterable[Rule],
    default: object = None,
    mode: str = DECIDE,
    *,
    hidden: Collection[str] = NOTHING,
    **about: Any,
) -> Verdict:
    """Try rules on facts and return the verdict: the first that matches, or under `select` all that do.

    When none matches, the default is chosen; under `select` a list as it is, anything else as a list of it, and none as
    an empty one. Facts under a key to be hidden are compared as they are and shown as `[REDACTED]`. `about` is what
    else the verdict says: stage, rationale, run and span.
    """
    if not isinstance(facts, Facts):
        facts = Facts({bounding.text(name): number_or_plain(value) for name, value in facts.items()}, {}, None)
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


def all_chosen(chosen: list[Any], default: Any) -> list[Any]:
    """Return what `select` takes: the branches that matched, or else the default, which may be a list of them."""
    if chosen or default is None:
        return chosen
    return list(default) if isinstance(default, list | tuple) else [default]


def body_of(verdict: Verdict, facts: Facts, hidden: Collection[str] = NOTHING) -> dict[str, Json]:
    """Return what a `run.decided` entry says of a verdict, within its bounds."""
    room = bounding.Budget()
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
    values = bounding.Budget(bounding.VALUE_BYTES_MAX)
    body: dict[str, Json] = {
        "mode": verdict.mode,
        "chosen": bounding.bounded(verdict.chosen, hidden=hidden),
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
            body["otherwise"] = bounding.bounded(verdict.otherwise, hidden=hidden)
    if verdict.mode == SELECT:
        body["rule"] = list(verdict.labels)
    elif verdict.rule is not None:
        body["rule"] = verdict.rule
    if any(omitted.values()):
        body["omitted"] = {name: count for name, count in omitted.items() if count}
    return body


def _untried(rule: Rule, hidden: Collection[str]) -> Tried:
    """Return a rule that was not tried, as a record shows it."""
    label = None if rule.label is None else bounding.text(rule.label)
    chosen = bounding.plain(rule.chosen, hidden)
    if callable(rule.when):
        return Tried(label, chosen, False, (), predicate=predicate_name(rule.when))
    return Tried(label, chosen, False, (), when=shown_when(_wanted(rule.when), hidden))


def _untried_body(rule: Tried, room: bounding.Budget) -> dict[str, Json]:
    body: dict[str, Json] = {"chosen": room.take(rule.chosen)}
    if rule.label is not None:
        body["label"] = rule.label
    if rule.predicate is not None:
        body["predicate"] = rule.predicate
    else:
        body["when"] = room.take(rule.when, bounding.VALUE_BYTES_MAX)
    return body


def shown_when(when: Json, hidden: Collection[str]) -> Json:
    """Return conditions as they may be shown."""
    return when if hidden is NOTHING else hiding.when(when, hidden)


def _shown(values: Mapping[str, Json], name: str, hidden: Collection[str]) -> Json:
    """Return a fact as it may be shown."""
    if hidden is NOTHING:
        return values[name]
    return REDACTED if name in hidden else bounding.plain(values[name], hidden)


def _rule_body(rule: Tried, facts: Facts, room: bounding.Budget, conditions_max: int) -> dict[str, Json]:
    body: dict[str, Json] = {"chosen": room.take(rule.chosen), "matched": rule.matched}
    if rule.label is not None:
        body["label"] = rule.label
    if rule.predicate is not None:
        body["predicate"] = rule.predicate
    else:
        body["when"] = room.take(rule.when, bounding.VALUE_BYTES_MAX)
    conditions: list[Json] = []
    for condition in rule.conditions[:conditions_max]:
        said: dict[str, Json] = {"key": condition.key, "result": condition.result}
        if condition.op:
            said["op"] = condition.op
            said["operand"] = room.take(condition.operand)
        if condition.key in facts.values:
            said["actual"] = room.take(condition.actual)
        said["origin"] = dict(condition.origin)
        if condition.error is not None:
            said["error"] = condition.error
        conditions.append(said)
    body["conditions"] = conditions
    if rule.error is not None:
        body["error"] = rule.error
    return body


# -- one rule ---------------------------------------------------------------------------------------------------------


def predicate_name(predicate: object) -> str:
    """Return what a predicate is called: its module and name."""
    try:
        name = getattr(predicate, "__qualname__", None) or type(predicate).__qualname__
        module = getattr(predicate, "__module__", None) or type(predicate).__module__
        return bounding.text(f"{module}.{name}")
    except Exception:
        return "it cannot be named"


def _wanted(when: object) -> Json:
    """Return conditions as JSON that compares as it should."""
    if type(when) is not dict and not isinstance(when, Mapping):
        return bounding.plain(when)
    found: dict[str, Json] = {}
    for key, wanted in when.items():
        if type(wanted) is dict or isinstance(wanted, Mapping):
            found[bounding.text(key)] = {bounding.text(op): number_or_plain(value) for op, value in wanted.items()}
        else:
            found[bounding.text(key)] = number_or_plain(wanted)
    return found


def _try(rule: Rule, facts: Facts, hidden: Collection[str]) -> Tried:
    label = None if rule.label is None else bounding.text(rule.label)
    chosen = bounding.plain(rule.chosen, hidden)
    if callable(rule.when):
        looks = _Looks(facts, hidden)
        matched, error = _ask(rule.when, looks)
        conditions = looks.conditions(matched)
        return Tried(label, chosen, matched, conditions, predicate=predicate_name(rule.when), error=error)
    when = _wanted(rule.when)
    if not isinstance(when, dict) or bounding.is_mark(when):
        error = f"expected conditions by fact or a predicate, got {bounding.type_name(rule.when)}"
        return Tried(label, chosen, False, (), when=shown_when(when, hidden), error=error)
    conditions = tuple(_conditions(when, facts, hidden))
    matched = bool(conditions) and all(condition.result for condition in conditions)
    error = None if when else NO_CONDITION
    return Tried(label, chosen, matched, conditions, when=shown_when(when, hidden), error=error)


def _conditions(when: Mapping[str, Json], facts: Facts, hidden: Collection[str]) -> Iterator[Condition]:
    for key, wanted in when.items():
        if isinstance(wanted, dict) and not bounding.is_mark(wanted):
            for op, operand in wanted.items():
                yield _condition(key, op, operand, facts, hidden)
            if not wanted:
                yield _said(key, "", None, False, "there is no operator", facts, hidden)
        else:
            yield _condition(key, "eq", wanted, facts, hidden)


def _condition(key: str, op: str, operand: Json, facts: Facts, hidden: Collection[str]) -> Condition:
    result, error = holds(facts.values, key, op, operand)
    return _said(key, op, operand, result, error, facts, hidden)


def holds(values: Mapping[str, Json], key: str, op: str, operand: Json) -> tuple[bool, str | None]:
    """Return whether one condition holds on these values, and what is wrong with it where it cannot be compared."""
    try:
        if op == "exists":
            if type(operand) is not bool:
                raise Incomparable(f"exists takes true or false, not {_kind(operand)}")
            return (key in values) is operand, None
        if op not in _OPERATORS:
            raise Incomparable(f"there is no operator {bounding.text(op, 64)}; use one of {', '.join(OPERATORS)}")
        if key not in values:
            raise Incomparable(NO_FACT)
        return _OPERATORS[op](values[key], operand), None
    except (Incomparable, pattern.PatternError) as problem:
        return False, str(problem)


def _said(
    key: str, op: str, operand: Json, result: bool, error: str | None, facts: Facts, hidden: Collection[str]
) -> Condition:
    actual = facts.values.get(key)
    if hidden is not NOTHING:
        if key in hidden:
            actual = REDACTED if key in facts.values else None
            operand = REDACTED if op else None
        else:
            actual, operand = bounding.plain(actual, hidden), bounding.plain(operand, hidden)
    return Condition(key, op, operand, actual, result, facts.origin(key), error)


class Incomparable(ValueError):
    """Two values that an operator cannot compare."""


def _kind(value: Json) -> str:
    if bounding.is_mark(value):
        return "something that is no JSON"
    if value is None:
        return "null"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "an array", dict: "an object"}
    return kinds[type(value)]


def _same(actual: Json, operand: Json) -> bool:
    for side in (actual, operand):
        if bounding.is_mark(side):
            raise Incomparable("what is no JSON, or too long to walk, equals nothing")
    return form.same(actual, operand)


_NUMBERS: Final = frozenset({int, float})


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Json, Json], bool]:
    def ask(actual: Json, operand: Json) -> bool:
        kinds = {type(actual), type(operand)}
        # Python compares integers with floats exactly, and text by code point, which is the order of UTF-8 bytes.
        if kinds <= _NUMBERS or kinds == {str}:
            return compare(actual, operand)
        raise Incomparable(f"{_kind(actual)} and {_kind(operand)} have no order")

    return ask


def _member(actual: Json, operand: Json) -> bool:
    if not isinstance(operand, list):
        raise Incomparable(f"expected a list of values, got {_kind(operand)}")
    if len(operand) > IN_VALUES_MAX:
        raise Incomparable(f"the list has {len(operand)} values, where {IN_VALUES_MAX} is the limit")
    return any(_same(actual, item) for item in operand)


def _matches(actual: Json, operand: Json) -> bool:
    if not isinstance(operand, str):
        raise Incomparable(f"expected a pattern as text, got {_kind(operand)}")
    wanted = pattern.read(operand)
    if not isinstance(actual, str):
        raise Incomparable(f"a pattern is found in text, not in {_kind(actual)}")
    return wanted.found_in(actual)


_OPERATORS: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "eq": _same,
    "ne": lambda actual, operand: not _same(actual, operand),
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "in": _member,
    "not_in": lambda actual, operand: not _member(actual, operand),
    "matches": _matches,
}
OPERATORS: Final = (*_OPERATORS, "exists")
"""The operators of conditions, by name."""


# -- predicates -------------------------------------------------------------------------------------------------------


def _ask(predicate: Callable[..., Any], looks: _Looks) -> tuple[bool, Json]:
    """Return what a predicate says, and what went wrong while it was asked."""
    try:
        said = predicate(FactView(looks))
        if isinstance(said, Awaitable):
            close = getattr(said, "close", None)
            if callable(close):
                close()
            return False, "a predicate answers at once; this one has to be awaited"
        return bool(said), None
    except Exception as problem:
        found = bounding.error(problem)
        # The message may quote a value that is to be hidden.
        return False, {**found, "message": REDACTED} if looks.touched_hidden else found


class _Looks:
    """What a predicate looks at and compares, as it happens."""

    def __init__(self, facts: Facts, hidden: Collection[str]) -> None:
        self._facts = facts
        self._hidden = hidden
        self._compared: list[tuple[str, str, Json, bool]] = []
        self._looked: dict[str, None] = {}

    @property
    def values(self) -> Mapping[str, Json]:
        return self._facts.values

    def has(self, key: object) -> bool:
        """Return whether there is such a fact, and note that it was asked for."""
        name = bounding.text(key)
        self._looked[name] = None
        if name in self._facts.values:
            return True
        self.compare(name, "exists", True, False)
        return False

    def compare(self, key: str, op: str, operand: object, result: bool) -> None:
        """Note a comparison; the same one twice in a row counts once."""
        self._looked[key] = None
        said = (key, op, number_or_plain(operand), result)
        if len(self._compared) < CONDITIONS_MAX and said not in self._compared[-1:]:
            self._compared.append(said)

    @property
    def touched_hidden(self) -> bool:
        """Whether a fact that is to be hidden, or that holds one, was looked at."""
        values = self._facts.values
        return any(
            key in self._hidden or taken_out(values.get(key), self._hidden) is not values.get(key)
            for key in self._looked
        )

    def conditions(self, matched: bool) -> tuple[Condition, ...]:
        """Return what was compared, and then what was only looked at, with the answer of the whole predicate."""
        facts, hidden = self._facts, self._hidden
        found = [_said(key, op, operand, result, None, facts, hidden) for key, op, operand, result in self._compared]
        compared = {condition.key for condition in found}
        looked = (key for key in self._looked if key not in compared)
        return (*found, *(_said(key, "", None, matched, None, facts, hidden) for key in looked))


class FactView(Mapping[str, Any]):
    """The facts as a predicate sees them: `view["score"] < 600`, `view.score`, `view.get("score")`, `"score" in view`.

    What is looked at is recorded, and so is every comparison of a number or a text with something else. What is done
    with a value otherwise (arithmetic, calling its methods) works as ever and is recorded as having looked at it.
    """

    def __init__(self, looks: _Looks) -> None:
        self.__looks = looks
        self.__given: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if not self.__looks.has(key):
            raise KeyError(key)
        if key not in self.__given:
            self.__given[key] = _recording(key, self.__looks.values[key], self.__looks.compare)
        return self.__given[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{NO_FACT}: {name}") from None

    def __contains__(self, key: object) -> bool:
        found = self.__looks.has(key)
        if found:
            self.__looks.compare(str(key), "exists", True, True)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.__looks.values))

    def __len__(self) -> int:
        return len(self.__looks.values)


_Compare = Callable[[str, str, object, bool], None]


def _recording(key: str, value: Json, compare: _Compare) -> Any:
    """Return a value that records how it is compared, where Python lets one; of a container, a copy."""
    kind = _RECORDING.get(type(value))
    if kind is not None:
        return kind(key, value, compare)
    return form.decode(form.serialise(value)) if isinstance(value, list | dict) else value


def _recording_type(base: type, name: str) -> Callable[[str, Json, _Compare], Any]:
    """Make a subclass of `base` whose comparisons are recorded."""

    def asks(op: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def ask(self: Any, other: Any) -> Any:
            operand = base_of(other)
            result = function(base_of(self), operand)
            if type(result) is bool:
                self._compare(self._key, op, operand, result)
            return result

        return ask

    functions = {"lt": operator.lt, "lte": operator.le, "gt": operator.gt, "gte": operator.ge}
    space: dict[str, Any] = {
        f"__{function.__name__}__": asks(op, function)
        for op, function in {**functions, "eq": operator.eq, "ne": operator.ne}.items()
    }
    # Pickled or copied it is a plain value.
    space["__reduce_ex__"] = lambda self, protocol: (base, (base_of(self),))
    made = type(name, (base,), {**space, "__hash__": base.__hash__, "__module__": __name__})

    def make(key: str, value: Json, compare: _Compare) -> Any:
        found = made(value)
        found._key, found._compare = key, compare
        return found

    return make


def base_of(value: Any) -> Any:
    """Return a recording value as the plain one it is; anything else as it is."""
    if type(value).__module__ != __name__:
        return value
    for base in (str, int, float):
        if isinstance(value, base):
            return base.__str__(value) if base is str else base(value)
    return value


_RECORDING: Final[Mapping[type, Callable[[str, Json, _Compare], Any]]] = {
    str: _recording_type(str, "Text"),
    int: _recording_type(int, "Whole"),
    float: _recording_type(float, "Real"),
}
