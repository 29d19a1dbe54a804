"""Predicate: a yes-or-no question about state, as data that can be asked of any state, anywhere, with the same answer.

It asks entities for values (`where`, as a query does), for conditions (`when`, as a rule does), whether they exist or
are deleted; or it makes a decision again and asks whether it chooses one branch. All that it asks must hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.explain.lineage import shown as worded
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.runs import rules as rule
from woodrat.runs.facts import Facts
from woodrat.runs.missing_facts import SKIP
from woodrat.runs.operators import NO_CONDITION, OPERATORS, holds, operator_faults, wanted_faults
from woodrat.runs.predicates import predicate_name
from woodrat.runs.rules import DECIDE, RAISE, Rule
from woodrat.runs.steps import SELECT
from woodrat.state.observation import field_name_faults

CONDITIONS_MAX: Final = 100
"""Most entities, values, conditions or rules that one predicate holds of each."""
UNKNOWN_SAID_MAX: Final = 3
"""How many reasons why nothing can be decided a sentence names."""
NOT_ASKED: Final = "Nothing was read."


class Believed(NamedTuple):
    """The state of one entity, as far as predicates need it."""

    exists: bool
    """True if any live observation is about it."""
    deleted: bool
    """Whether it is deleted."""
    fields: Mapping[str, Json]
    """Values by field; none of a deleted one."""
    collections: frozenset[str] = frozenset()
    """Its fields with collection policies."""


UNKNOWN: Final = Believed(False, False, {})
"""The state of an entity without observations."""

Look = Callable[[Ref], Believed]
"""Returns the state of an entity."""


@dataclass(frozen=True, slots=True)
class EntityConditions(Record):
    """Conditions on one entity."""

    entity: Ref
    """The entity."""
    when: Mapping[str, Json]
    """Conditions by field, as a rule has them: `{"creditScore": {"lt": 600}}`."""
    where: tuple[tuple[str, Json], ...] = ()
    """Fields and values they must have, as a query asks: a collection must hold the value."""
    exists: bool | None = None
    """Whether it must exist."""
    deleted: bool | None = None
    """Whether it must be deleted."""

    def holds(self, believed: Believed) -> bool:
        """Return True if all of it holds."""
        if self.exists is not None and believed.exists is not self.exists:
            return False
        if self.deleted is not None and believed.deleted is not self.deleted:
            return False
        if not all(_has(believed, name, value) for name, value in self.where):
            return False
        return not self.when or _matches(self.when, believed.fields)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields it looks at, in order."""
        return tuple(dict.fromkeys([*self.when, *(name for name, _ in self.where)]))

    def clauses(self) -> Iterable[str]:
        """Yield the conditions, in words."""
        if self.exists is not None:
            yield f"{self.entity} {'exists' if self.exists else 'does not exist'}"
        if self.deleted is not None:
            yield f"{self.entity} is {'' if self.deleted else 'not '}deleted"
        for name, value in self.where:
            yield f"{self.entity}#{name} = {worded(value)}"
        for name, wanted in self.when.items():
            for op, operand in wanted.items() if isinstance(wanted, dict) else (("eq", wanted),):
                yield f"{self.entity}#{name} {op} {worded(operand)}"

    def document(self) -> dict[str, Any]:
        """Return the question for a reduction's file, without empty members."""
        found: dict[str, Any] = {"entity": str(self.entity)}
        if self.when:
            found["when"] = dict(self.when)
        if self.where:
            found["where"] = [[name, value] for name, value in self.where]
        stated = {"exists": self.exists, "deleted": self.deleted}
        return {**found, **{name: value for name, value in stated.items() if value is not None}}


def _has(believed: Believed, name: str, value: Json) -> bool:
    if name not in believed.fields:
        return False
    held = believed.fields[name]
    if name in believed.collections and isinstance(held, list):
        return any(form.same(item, value) for item in held) or form.same(held, value)
    return form.same(held, value)


def _matches(when: Mapping[str, Json], fields: Mapping[str, Json]) -> bool:
    """Return True if all conditions hold; a condition on a missing or incomparable field does not."""
    for name, wanted in when.items():
        for op, operand in wanted.items() if isinstance(wanted, dict) else (("eq", wanted),):
            if holds(fields, name, op, operand)[0] is not True:
                return False
    return True


@dataclass(frozen=True, slots=True)
class FieldRead(Record):
    """Where a fact is read from."""

    entity: Ref
    """The entity."""
    field: str
    """The field."""


@dataclass(frozen=True, slots=True)
class Choice(Record):
    """A decision by rules that are data, made on state, and the branch it is asked about."""

    rules: tuple[Rule, ...]
    """The rules, in order."""
    chosen: Json
    """The branch: the predicate holds where this is chosen."""
    reads: Mapping[str, FieldRead]
    """Facts that are read from state, by name."""
    facts: Mapping[str, Json]
    """Facts that are not, as they were."""
    default: Json = None
    """The choice if no rule matches."""
    mode: str = DECIDE
    """`decide` takes the first rule that matches, `select` all of them."""
    stage: str | None = None
    """The choice to test."""
    on_missing: str = RAISE
    """Whether a rule that is unknown makes the decision fail (`raise`), or is skipped (`skip`)."""

    def choose(self, look: Look) -> Json:
        """Return the choice in a state; `Refused` names the rules that are unknown there, and why."""
        values = dict(self.facts)
        for name, read in self.reads.items():
            fields = look(read.entity).fields
            if read.field in fields:
                values[name] = fields[read.field]
        facts = Facts(values, {}, None)
        found = rule.evaluate(facts, self.rules, self.default, self.mode, on_missing=self.on_missing, stage=self.stage)
        chosen: Json = found.chosen
        return chosen

    def undecided(self, look: Look) -> str | None:
        """Return the reason why no decision is possible in a state; None if one is."""
        try:
            self.choose(look)
        except Refused as refusal:
            return "; ".join(fault.problem for fault in refusal.faults[:UNKNOWN_SAID_MAX])
        return None

    def holds(self, look: Look) -> bool:
        """Return True if the branch is chosen; if no decision is possible, none is."""
        try:
            return form.same(self.choose(look), self.chosen)
        except Refused:
            return False

    def clauses(self) -> Iterable[str]:
        """Yield the question, in words."""
        yield f"{self.stage or 'the decision'} chooses {worded(self.chosen)}"

    def document(self) -> dict[str, Any]:
        """Return the decision as a reduction's file has it."""
        return {
            "stage": self.stage,
            "mode": self.mode,
            "rules": [item.to_json() for item in self.rules],
            "default": self.default,
            "facts": dict(self.facts),
            "reads": {name: {"entity": str(read.entity), "field": read.field} for name, read in self.reads.items()},
            "chosen": self.chosen,
            **({"on_missing": SKIP} if self.on_missing == SKIP else {}),
        }


@dataclass(frozen=True, slots=True)
class Predicate(Record):
    """A question about state; it holds when everything it asks is so."""

    entities: tuple[EntityConditions, ...] = ()
    """Conditions on entities, each once."""
    decision: Choice | None = None
    """The decision that must choose a branch, if one is asked about."""

    def holds(self, look: Look) -> bool:
        """Return the answer in one state."""
        return all(asked.holds(look(asked.entity)) for asked in self.entities) and (
            self.decision is None or self.decision.holds(look)
        )

    @property
    def looked(self) -> dict[Ref, tuple[str, ...]]:
        """The entities it looks at and which fields of each; no field where only the entity itself counts."""
        found: dict[Ref, dict[str, None]] = {}
        for asked in self.entities:
            found.setdefault(asked.entity, {}).update(dict.fromkeys(asked.fields))
        for read in self.decision.reads.values() if self.decision is not None else ():
            found.setdefault(read.entity, {})[read.field] = None
        return {ref: tuple(fields) for ref, fields in found.items()}

    @property
    def text(self) -> str:
        """The question in words."""
        parts = [clause for asked in self.entities for clause in asked.clauses()]
        return " and ".join([*parts, *(self.decision.clauses() if self.decision is not None else ())])

    def document(self) -> dict[str, Any]:
        """Return the predicate as a reduction's file has it, from which `predicate_from_json` makes it again."""
        found: dict[str, Any] = {}
        if self.entities:
            found["entities"] = [asked.document() for asked in self.entities]
        if self.decision is not None:
            found["decision"] = self.decision.document()
        return found


EMPTY_REMEDY: Final = "Say what must hold: a value, a condition, that it exists or is deleted, or what is to be chosen."


# Predicates as JSON


def predicate_from_json(value: object, path: str = "predicate", outcome: str = NOT_ASKED) -> Predicate:
    """Return the predicate that JSON from outside states, or refuse it with all that is wrong."""
    faults = form.faults(value, path)
    predicate = Predicate()
    if not faults:
        predicate = _predicate(value, path, faults)
    if not faults and not predicate.looked:
        faults.append(Fault(path, "it has no condition", EMPTY_REMEDY))
    if faults:
        raise Refused(faults, outcome)
    return predicate


def _predicate(value: object, path: str, faults: list[Fault]) -> Predicate:
    parts = _object(value, path, {"entities", "decision"}, faults)
    entities = parts.get("entities", [])
    if not isinstance(entities, list) or len(entities) > CONDITIONS_MAX:
        problem = f"expected a list of at most {CONDITIONS_MAX}, got {shown(entities)}"
        faults.append(Fault(f"{path}/entities", problem, "List the conditions on each entity."))
        entities = []
    asked = [_asked(item, f"{path}/entities/{number}", faults) for number, item in enumerate(entities)]
    stated = parts.get("decision")
    choice = None if stated is None else _choice(stated, f"{path}/decision", faults)
    return Predicate(tuple(item for item in asked if item is not None), choice)


def _object(value: object, path: str, known: set[str], faults: list[Fault]) -> dict[str, Any]:
    if not isinstance(value, dict):
        faults.append(Fault(path, f"expected an object, got {shown(value)}", f"Send {', '.join(sorted(known))}."))
        return {}
    for name in sorted(set(value) - known):
        remedy = f"Use {', '.join(sorted(known))}."
        faults.append(Fault(f"{path}/{pointer_part(name)}", "unknown part of a predicate", remedy))
    return value


def _ref(value: object, path: str, faults: list[Fault]) -> Ref | None:
    try:
        return ids.parse_ref(value, path)
    except Refused as refusal:
        faults += refusal.faults
        return None


def _asked(value: object, path: str, faults: list[Fault]) -> EntityConditions | None:
    parts = _object(value, path, {"entity", "when", "where", "exists", "deleted"}, faults)
    ref = _ref(parts.get("entity"), f"{path}/entity", faults)
    when, where = parts.get("when", {}), parts.get("where", [])
    faults += when_faults(when, f"{path}/when")
    if not isinstance(where, list) or not all(_is_pair(pair) for pair in where) or len(where) > CONDITIONS_MAX:
        remedy = 'Send [field, value] for each, such as [["city", "Girona"]].'
        faults.append(Fault(f"{path}/where", f"expected values by field, got {shown(where)}", remedy))
        where = []
    for name in ("exists", "deleted"):
        if not isinstance(parts.get(name, True), bool):
            faults.append(Fault(f"{path}/{name}", f"got {shown(parts[name])}", "Send true or false."))
    if isinstance(value, dict) and not set(parts) & {"when", "where", "exists", "deleted"}:
        faults.append(Fault(path, "it has no condition on the entity", EMPTY_REMEDY))
    if ref is None or not isinstance(when, dict):
        return None
    pairs = tuple((pair[0], pair[1]) for pair in where)
    return EntityConditions(ref, when, pairs, parts.get("exists"), parts.get("deleted"))


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)


def _choice(value: object, path: str, faults: list[Fault]) -> Choice | None:
    known = {"stage", "mode", "rules", "default", "facts", "reads", "chosen", "on_missing"}
    parts = _object(value, path, known, faults)
    rules: tuple[Rule, ...] = ()
    try:
        rules = rule.rules_from_json(parts.get("rules"), f"{path}/rules")
    except Refused as refusal:
        faults += refusal.faults
    faults += rules_faults(rules, f"{path}/rules")
    mode, stage, facts, stated = (parts.get(name) for name in ("mode", "stage", "facts", "reads"))
    if mode not in (None, DECIDE, SELECT):
        faults.append(Fault(f"{path}/mode", f"got {shown(mode)}", f"Send {DECIDE} or {SELECT}."))
    on_missing = parts.get("on_missing", RAISE)
    faults += rule.check_on_missing(on_missing, f"{path}/on_missing")
    if not isinstance(stage, str | None):
        faults.append(Fault(f"{path}/stage", f"got {shown(stage)}", "Send the stage as text."))
    if not isinstance(facts, dict | None):
        faults.append(Fault(f"{path}/facts", f"got {shown(facts)}", "Send values by name."))
    if "chosen" not in parts:
        faults.append(Fault(f"{path}/chosen", "missing", "Name the branch in question."))
    reads: dict[str, FieldRead] = {}
    for name, read in _object(
        stated, f"{path}/reads", set(stated) if isinstance(stated, dict) else set(), faults
    ).items():
        where = f"{path}/reads/{pointer_part(name)}"
        told = _object(read, where, {"entity", "field"}, faults)
        ref, field = _ref(told.get("entity"), f"{where}/entity", faults), told.get("field")
        if not isinstance(field, str):
            faults.append(Fault(f"{where}/field", f"got {shown(field)}", "Send the field's name."))
        elif ref is not None:
            reads[name] = FieldRead(ref, field)
    if faults:
        return None
    return Choice(rules, parts["chosen"], reads, facts or {}, parts.get("default"), mode or DECIDE, stage, on_missing)


def rules_faults(rules: Iterable[Rule], path: str) -> list[Fault]:
    """Return the faults of rules that are to be tried on state: each must be data and have conditions."""
    found: list[Fault] = []
    count = 0
    for count, item in enumerate(rules, 1):
        if callable(item.when):
            problem = f"{predicate_name(item.when)} is code"
            found.append(Fault(f"{path}/{count - 1}/when", problem, 'Send conditions: {"creditScore": {"lt": 600}}.'))
        else:
            found += when_faults(item.when, f"{path}/{count - 1}/when") or (
                [] if item.when else [Fault(f"{path}/{count - 1}/when", NO_CONDITION, "State one.")]
            )
    if not 1 <= count <= CONDITIONS_MAX:
        found.append(Fault(path, f"{count} rules", f"Send 1 to {CONDITIONS_MAX}."))
    return found


def when_faults(when: object, path: str) -> list[Fault]:
    """Return the faults of conditions by field: one that a decision would record as an error is refused here."""
    if not isinstance(when, Mapping):
        remedy = 'Send an object such as {"creditScore": {"lt": 600}}.'
        return [Fault(path, f"expected conditions by field, got {shown(when)}", remedy)]
    found = form.faults(when, path)
    if found:
        return found
    if len(when) > CONDITIONS_MAX:
        found.append(Fault(path, f"{len(when)} conditions", f"Send at most {CONDITIONS_MAX}."))
    for name, wanted in when.items():
        where = f"{path}/{pointer_part(name)}"
        found += field_name_faults(name, path)
        found += wanted_faults(wanted, where)
    return found


# Predicates as text


_OPS = "|".join(sorted(OPERATORS, key=len, reverse=True))
_OF_ENTITY = re.compile(
    rf"(?P<ref>(?:[a-z][a-z0-9_]*/|ent_).*?)#(?P<field>[^\s=#]+)(?:=(?P<value>.*)|\s+(?P<op>{_OPS})\s+(?P<operand>.*))",
    re.DOTALL,
)
_OF_FIELD = re.compile(rf"(?P<field>[^\s=]+)\s+(?P<op>{_OPS})\s+(?P<operand>.*)", re.DOTALL)


class ConditionText(NamedTuple):
    """One condition as people write it."""

    ref: str | None
    """The entity it names itself."""
    field: str
    """The field."""
    op: str | None
    """The operator; None for a plain value, as in a query."""
    value: Json
    """The value or operand."""


def parse_condition(text: str) -> ConditionText | None:
    """Return the condition a text writes: `city=Girona`, `creditScore lt 600`, or either after `REF#`; else `None`."""
    found = _OF_ENTITY.fullmatch(text) or _OF_FIELD.fullmatch(text)
    if found is None:
        name, equals, value = text.partition("=")
        # `a <= 5`, `a == 5` and `a = 5` are slips: nobody has a field of such a name.
        slips = name != name.strip() or name.endswith(("<", ">", "!")) or value.startswith("=")
        return ConditionText(None, name, None, _literal(value)) if equals and name and not slips else None
    parts = found.groupdict()
    op = parts["op"]
    value = parts["operand"] if op is not None else parts["value"]
    return ConditionText(parts.get("ref"), parts["field"], op, _literal(value))


_NO_OPERATOR = re.compile(r"(?:(?:[a-z][a-z0-9_]*/|ent_)\S*#)?[^\s=#]+\s+(?P<op>[^\s=]+=?)\s+\S.*", re.DOTALL)


def operator_slip(text: str) -> Fault | None:
    """Return the fault of a text that reads like a condition with an unknown operator."""
    found = _NO_OPERATOR.fullmatch(text)
    return None if found is None else next(iter(operator_faults(found["op"], None, "")), None)


def _literal(text: str) -> Json:
    try:
        return form.parse(text)
    except Refused:
        return text
