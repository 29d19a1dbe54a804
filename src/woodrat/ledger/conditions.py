"""Conditions: what a query asks of fields, how people write it, and when it holds.

A condition is `field=value`, or a field, an operator and an operand: `{"age": {"gte": 18, "lt": 65}}`, as text
`age gte 18`. A collection (`union`, `by_key`, `append`) fulfils a condition when it does as a whole or one of its
elements does. A range holds for numbers against a number and for texts against a text, and for nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.order import order_key
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.merge import snapshot
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.state import observation
from woodrat.state.schema_keywords import COLLECTIONS

CONDITIONS_MAX: Final = 100
"""Most conditions of one query."""
IN_VALUES_MAX: Final = 1_000
"""Most values that `in` looks for."""
EQ, IN, LT, LTE, GT, GTE, PREFIX, EXISTS = "eq", "in", "lt", "lte", "gt", "gte", "prefix", "exists"
OPERATORS: Final = (EQ, IN, LT, LTE, GT, GTE, PREFIX, EXISTS)
RANGES: Final = frozenset({LT, LTE, GT, GTE})
_FORM: Final = "Write the field, = and the value: city=Barcelona; or a field, an operator and a value: age gte 18."
_TEXT: Final = re.compile(rf"(?P<field>[^\s=]+)\s+(?P<op>{'|'.join(OPERATORS)})\s+(?P<operand>.*)", re.DOTALL)


class Condition(NamedTuple):
    """What is asked of one field."""

    field: str
    """The field."""
    op: str
    """One of `OPERATORS`."""
    operand: Json
    """What it is compared with."""

    def question(self) -> list[Json]:
        """Return the condition as JSON: what a cursor is made for."""
        return [self.field, self.operand] if self.op == EQ else [self.field, self.op, self.operand]


def read_conditions(where: object, faults: list[Fault]) -> list[Condition]:
    """Return what must hold, given by field or as texts; all that is wrong is added to `faults`."""
    stated: list[tuple[object, str | None, object, str]] = []
    if isinstance(where, str):
        where = [where]
    if isinstance(where, Mapping):
        stated = [(name, None, value, f"where/{pointer_part(str(name))}") for name, value in where.items()]
    elif isinstance(where, list | tuple):
        for number, text in enumerate(where):
            parts = _from_text(text) if isinstance(text, str) else None
            if parts is not None:
                stated.append((*parts, f"where/{number}"))
            else:
                faults.append(Fault(f"where/{number}", f"expected field=value, got {shown(text)}", _FORM))
    elif where is not None:
        problem = f"expected values by field, got {shown(where)}"
        faults.append(Fault("where", problem, "Send an object, or a list of texts such as city=Barcelona."))
    if len(stated) > CONDITIONS_MAX:
        faults.append(Fault("where", f"{len(stated)} conditions", f"Send at most {CONDITIONS_MAX}."))
    conditions: list[Condition] = []
    for field, op, operand, path in stated[:CONDITIONS_MAX]:
        conditions += _conditions(field, op, operand, path, faults)
    return conditions


def _from_text(text: str) -> tuple[str, str | None, Json] | None:
    """Return the field, the operator if there is one, and the operand that a text writes."""
    if (found := _TEXT.fullmatch(text)) is not None:
        return found["field"], found["op"], _literal(found["operand"])
    name, equals, value = text.partition("=")
    return (name, None, _literal(value)) if equals else None


def _literal(text: str) -> Json:
    """Return the value a condition's text writes: JSON where it is, else the text itself."""
    try:
        return form.parse(text)
    except Refused:
        return text


def _conditions(field: object, op: str | None, operand: object, path: str, faults: list[Fault]) -> list[Condition]:
    """Return what is asked of one field: a value, an operator, or an object of operators."""
    wrong = form.faults(operand, path)
    if not isinstance(field, str):
        wrong.append(Fault(path, f"expected a field, got {shown(field)}", "Send the field's name as text."))
    else:
        wrong += observation.field_name_faults(field, path)
    asked: Mapping[Any, Any] = {op or EQ: operand}
    if op is None and isinstance(operand, Mapping) and any(name in OPERATORS for name in operand):
        asked = operand
    for name, value in asked.items():
        problem = _fault(name, value)
        if problem is not None:
            wrong.append(Fault(path if asked is not operand else f"{path}/{pointer_part(str(name))}", *problem))
    faults += wrong
    return [] if wrong else [Condition(str(field), name, form.normal(value)) for name, value in asked.items()]


def _fault(op: object, operand: object) -> tuple[str, str] | None:
    """Return what is wrong with an operator and its operand, and what to do."""
    if op not in OPERATORS:
        problem = f"unknown operator {shown(op)}; use {', '.join(OPERATORS)}"
        return problem, 'To compare with an object, write {"eq": {…}}.'
    problem = f"{op} got {shown(operand)}"
    if op == IN:
        if not isinstance(operand, list | tuple):
            return problem, "Send a list of values."
        if len(operand) > IN_VALUES_MAX:
            return f"in got a list of {len(operand)} values", f"Send at most {IN_VALUES_MAX}, or ask in parts."
    elif op in RANGES and type(operand) not in (int, float, str):
        return problem, "Send a number or a text; nothing else has an order."
    elif op == PREFIX and not isinstance(operand, str):
        return problem, "Send the beginning as text."
    elif op == EXISTS and type(operand) is not bool:
        return problem, "Send true or false."
    return None


# Whether they hold


def all_hold(state: MergeState, rules: Rules, conditions: Iterable[Condition]) -> bool:
    """Return whether a fold fulfils all conditions."""
    asked = list(conditions)
    if not asked:
        return True
    values = snapshot.fields_of(state, rules, {condition.field for condition in asked})
    return all(_holds(values, condition, collects(rules, condition.field)) for condition in asked)


def collects(rules: Rules, name: str) -> bool:
    """Return whether the values of a field are collections."""
    return rules.schema.policy_of(name).name in COLLECTIONS


def _holds(values: Mapping[str, Json], condition: Condition, is_collection: bool) -> bool:
    name, op, operand = condition
    if op == EXISTS:
        return (name in values) is operand
    if name not in values:
        return False
    value, test = values[name], _test(op, operand)
    return test(value) or (is_collection and isinstance(value, list) and any(map(test, value)))


def _test(op: str, operand: Json) -> Callable[[Json], bool]:
    """Return what tells whether a value, or an element, is one that is asked for."""
    if op == EQ:
        key = order_key(operand)  # equal exactly when the canonical bytes are
        return lambda value: order_key(value) == key
    if op == IN:
        assert isinstance(operand, list)
        keys = {order_key(each) for each in operand}
        return lambda value: order_key(value) in keys
    if op == PREFIX:
        assert isinstance(operand, str)
        return lambda value: isinstance(value, str) and value.startswith(operand)
    kinds = (str,) if isinstance(operand, str) else (int, float)
    limit: Any = operand
    compare: dict[str, Callable[[Any], bool]] = {
        LT: lambda value: value < limit,
        LTE: lambda value: value <= limit,
        GT: lambda value: value > limit,
        GTE: lambda value: value >= limit,
    }
    holds = compare[op]
    return lambda value: type(value) in kinds and holds(value)
