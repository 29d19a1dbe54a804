"""Supposition: the change that a caller supposes, parsed.

A *supposition* removes something (observations, sources, interpretations, agents) or replaces a value, rule or
threshold. A *sweep* supposes one value after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.errors import Fault, Refused, shown
from woodrat.record_json import Record
from woodrat.records import dataclass, field
from woodrat.runs.operators import OPERATORS, operator_faults
from woodrat.runs.rules import Rule, as_rules

SWEEP_VALUES_MAX: Final = 10_000
"""How many values a sweep tries at most."""

_RANGE: Final = re.compile(r"(-?\d{1,15}(?:\.\d{1,15})?)\.\.(-?\d{1,15}(?:\.\d{1,15})?)(?::(.*))?", re.ASCII)
_STEP: Final = re.compile(r"\d{1,15}(?:\.\d{1,15})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sweep(Record):
    """One value after the other, supposed of one fact or field."""

    name: str
    """The fact, or the field as `REF#field`."""
    values: tuple[Json, ...]
    """The values, in the order they are tried."""

    @property
    def ascending(self) -> bool:
        """Whether the values are numbers, each greater than the one before."""
        values = self.values
        return all(type(value) in (int, float) for value in values) and all(
            low < high  # type: ignore[operator]
            for low, high in pairwise(values)
        )


@dataclass(frozen=True, slots=True)
class Supposition(Record):
    """All that is supposed at once, checked for its form."""

    without: tuple[str, ...] = ()
    """Observations, sources and interpretations that were never there, by id."""
    without_agents: tuple[str, ...] = ()
    """Agents who never said anything."""
    facts: Mapping[str, Json] = field(default_factory=dict)
    """Other values of facts, by the name that decisions give them."""
    fields: Mapping[str, Json] = field(default_factory=dict)
    """Other values of fields, by `REF#field`, as if a correction had always stood there."""
    rules: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    """Other rules, by stage."""
    thresholds: Mapping[str, Json] = field(default_factory=dict)
    """Other operands of recorded rules, by `stage.fact.operator`."""
    sweep: Sweep | None = None
    """The values to try."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is supposed."""
        named = (self.without, self.without_agents, self.facts, self.fields, self.rules, self.thresholds)
        return self.sweep is None and not any(named)

    def field_values(self) -> Iterator[tuple[str, str, Json]]:
        """Yield reference, field and value of each supposed field."""
        for full, value in self.fields.items():
            ref, _, name = full.rpartition("#")
            yield ref, name, value

    def question(self) -> dict[str, Any]:
        """Return the part that a cursor is bound to; the cursor's digest covers it, so its keys stay."""
        sweep = self.sweep
        asked = {
            "without": list(self.without),
            "withoutAgents": list(self.without_agents),
            "set": {**self.fields, **self.facts},
            "rules": {stage: [rule.to_json() for rule in rules] for stage, rules in self.rules.items()},
            "thresholds": dict(self.thresholds),
            "sweep": sweep
            and {"name": sweep.name, "first": sweep.values[0], "last": sweep.values[-1], "values": len(sweep.values)},
        }
        return {name: value for name, value in asked.items() if value}


def suppose(
    faults: list[Fault],
    *,
    without: object = (),
    without_agents: object = (),
    set: object = None,
    rules: object = None,
    thresholds: object = None,
    sweep: object = None,
) -> Supposition:
    """Return the caller's supposition; faults of its form are added to `faults`."""
    facts: dict[str, Json] = {}
    fields: dict[str, Json] = {}
    for name, value in _mapping("set", set, "facts or REF#field", faults):
        faults += form.faults(value, f"set {name}")
        if "#" in name:
            if _is_field("set", name, faults):
                fields[name] = value
        else:
            facts[name] = value
    named = _texts("without", without, faults)
    for id in named:
        if not id.startswith(("obs_", "src_", "int_")):
            remedy = (
                "Name an observation (obs_…), a source (src_…) or an interpretation (int_…); "
                "use without_agents for agents."
            )
            faults.append(Fault("without", f"{shown(id)} is none of these", remedy))
    agents = _texts("without_agents", without_agents, faults)
    for agent in agents:
        faults += ids.agent_faults(agent, "without_agents")
    found = Supposition(
        without=named,
        without_agents=agents,
        facts=facts,
        fields=fields,
        rules=_rules(rules, faults),
        thresholds=_thresholds(thresholds, faults),
        sweep=None if sweep is None else _sweep(sweep, faults),
    )
    if found.sweep is not None and (found.sweep.name in facts or found.sweep.name in fields):
        faults.append(Fault("sweep", f"{found.sweep.name} is set as well", "Set it or sweep it."))
    if found.is_empty and not faults:
        remedy = "Take something away (without) or put something in its place (set, rules, thresholds, sweep)."
        faults.append(Fault("what-if", "nothing is changed", remedy))
    return found


def _is_field(argument: str, name: str, faults: list[Fault]) -> bool:
    ref, _, last = name.rpartition("#")
    if not last:
        faults.append(Fault(argument, f"{shown(name)} names no field", "Name it as type/key#field."))
        return False
    if "/" in ref or not ref.strip():  # else it is an id, or a value that identifies the entity
        try:
            ids.parse_ref(ref, argument)
        except Refused as refusal:
            faults += refusal.faults
            return False
    return True


def _mapping(argument: str, given: object, of: str, faults: list[Fault]) -> Iterator[tuple[str, Any]]:
    if given is None:
        return
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        faults.append(Fault(argument, f"expected values by name, got {shown(given)}", f"Send a mapping of {of}."))
        return
    yield from given.items()


def _texts(argument: str, given: object, faults: list[Fault]) -> tuple[str, ...]:
    items = (given,) if isinstance(given, str) else given
    if not isinstance(items, Iterable) or isinstance(items, Mapping | bytes):
        faults.append(Fault(argument, f"expected a list of texts, got {shown(given)}", "Send a list of texts."))
        return ()
    found: dict[str, None] = {}
    for item in items:
        if isinstance(item, str):
            found[item] = None
        else:
            faults.append(Fault(argument, f"expected text, got {shown(item)}", "Send it as text."))
    return tuple(found)


def _rules(given: object, faults: list[Fault]) -> dict[str, tuple[Rule, ...]]:
    found: dict[str, tuple[Rule, ...]] = {}
    for stage, rules in _mapping("rules", given, "lists of rules by stage", faults):
        try:
            found[stage] = tuple(Rule.from_json(rule.to_json()) for rule in as_rules(rules))
        except Refused as refusal:
            # A predicate fails here too: it has no `when`.
            faults += [fault.under(f"rules {stage}") for fault in refusal.faults]
    return found


def _thresholds(given: object, faults: list[Fault]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, value in _mapping("thresholds", given, "operands by stage.fact.operator", faults):
        rest, _, op = name.rpartition(".")
        if "." not in rest.strip("."):
            remedy = f"Name it as stage.fact.operator, the operator one of {', '.join(OPERATORS)}."
            faults.append(Fault("thresholds", f"{shown(name)} is not a threshold", remedy))
            continue
        wrong = operator_faults(op, value, f"thresholds {name}") or form.faults(value, f"thresholds {name}")
        if wrong:
            faults += wrong
            continue
        found[name] = value
    return found


_SWEEP_FORM: Final = "Write NAME=LOW..HIGH, NAME=LOW..HIGH:STEP, or NAME=a,b,c."


def _sweep(given: object, faults: list[Fault]) -> Sweep | None:
    """Return a sweep from its text, or from a mapping of one name to its values."""
    if isinstance(given, str):
        name, equals, text = given.partition("=")
        if not equals or not name:
            faults.append(Fault("sweep", f"{shown(given)} names no values", _SWEEP_FORM))
            return None
        values = _values(text, faults)
    elif isinstance(given, Mapping) and len(given) == 1 and isinstance(next(iter(given)), str):
        ((name, listed),) = given.items()
        if isinstance(listed, str):
            values = _values(listed, faults)
        elif isinstance(listed, Iterable) and not isinstance(listed, Mapping | bytes):
            values = _some(listed, faults)
        else:
            faults.append(Fault("sweep", f"expected a list of values, got {shown(listed)}", _SWEEP_FORM))
            return None
    else:
        faults.append(Fault("sweep", f"expected one name with its values, got {shown(given)}", _SWEEP_FORM))
        return None
    if "#" in name and not _is_field("sweep", name, faults):
        return None
    return Sweep(name, values) if values else None


def _some(listed: Iterable[Any], faults: list[Fault]) -> tuple[Json, ...]:
    found: dict[bytes, Json] = {}
    for number, value in enumerate(listed):
        if number >= SWEEP_VALUES_MAX:
            faults.append(_too_many(f"more than {SWEEP_VALUES_MAX}"))
            return ()
        wrong = form.faults(value, f"sweep/{number}")
        faults += wrong
        if not wrong:
            found.setdefault(form.serialise(value), value)
    if not found and not faults:
        faults.append(Fault("sweep", "there is no value to try", _SWEEP_FORM))
    return tuple(found.values())


def _too_many(count: object) -> Fault:
    return Fault("sweep", f"{count} values", f"Try at most {SWEEP_VALUES_MAX}: a shorter range, or a greater step.")


def _values(text: str, faults: list[Fault]) -> tuple[Json, ...]:
    match = _RANGE.fullmatch(text)
    if match is None:
        if ".." in text:
            faults.append(Fault("sweep", f"{shown(text)} is not a range of numbers", _SWEEP_FORM))
            return ()
        return _some((_value(item.strip()) for item in text.split(",") if item.strip()), faults)
    low, high = Fraction(match[1]), Fraction(match[2])
    if match[3] is not None and (not _STEP.fullmatch(match[3]) or not Fraction(match[3])):
        faults.append(Fault("sweep", f"{shown(match[3])} is not a step", "Send a number above 0 after the colon."))
        return ()
    step = Fraction(match[3] or 1)
    if low > high:
        faults.append(Fault("sweep", f"{match[1]}..{match[2]} contains no value", "Put the smaller number first."))
        return ()
    count = int((high - low) // step) + 1
    if count > SWEEP_VALUES_MAX:
        faults.append(_too_many(count))
        return ()
    return tuple(_number(low + step * number) for number in range(count))


def _number(value: Fraction) -> Json:
    return int(value) if value.denominator == 1 else float(value)


def _value(text: str) -> Json:
    try:
        return form.parse(text)
    except Refused:
        return text
