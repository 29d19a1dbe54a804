"""Operators: what a condition can ask of a fact, and what is wrong with one that can never be answered.

A condition holds, does not hold, or is *unknown*: the fact is missing, or the operator cannot compare it (text against
a number, say). `exists` is never unknown. What no fact could ever satisfy, such as an operator that does not exist or a
pattern that does not compile, is refused when a rule is created. docs/formats/runs.md has the table.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.errors import Fault, pointer_part, shown
from woodrat.runs import pattern
from woodrat.runs import values as run_values
from woodrat.runs.facts import number_or_plain

if TYPE_CHECKING:
    from woodrat.canon.form import Json

IN_VALUES_MAX: Final = 1_000
"""Longest list `in` and `not_in` look through."""

NO_FACT: Final = "there is no such fact"
NO_CONDITION: Final = "the rule has no condition"
NO_OPERATOR: Final = "there is no operator"
WHEN_FORM: Final = 'Send conditions by fact, such as {"creditScore": {"lt": 600}}.'


class Incomparable(ValueError):
    """Two values that an operator cannot compare."""


def holds(values: Mapping[str, Json], key: str, op: str, operand: Json) -> tuple[bool | None, str | None]:
    """Return whether one condition holds on these values; none where that is unknown, with what is wrong."""
    try:
        if op == "exists":
            if type(operand) is not bool:
                raise Incomparable(f"exists takes true or false, not {_kind(operand)}")
            return (key in values) is operand, None
        if op not in _OPERATORS:
            raise Incomparable(unknown_operator(op) if op else NO_OPERATOR)
        if key not in values:
            raise Incomparable(NO_FACT)
        return _OPERATORS[op](values[key], operand), None
    except (Incomparable, pattern.PatternError) as problem:
        return None, str(problem)


def _kind(value: Json) -> str:
    if run_values.is_mark(value):
        return "something that is no JSON"
    if value is None:
        return "null"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "an array", dict: "an object"}
    return kinds.get(type(value), "something that is no JSON")


def _same(actual: Json, operand: Json) -> bool:
    for side in (actual, operand):
        if type(side) in _CONTAINERS and has_mark(side):
            raise Incomparable("what is no JSON, or too long to walk, equals nothing")
    return form.same(actual, operand)


_CONTAINERS: Final = frozenset({dict, list})
_NUMBERS: Final = frozenset({int, float})
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def has_mark(value: Json) -> bool:
    """Return whether a value is, or holds, one that stands for something JSON cannot say."""
    todo: list[Json] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            if run_values.is_mark(item):
                return True
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
    return False


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
    # What Python takes for different is different: of a long list few items are looked at. To Python, 1 is also true.
    if type(actual) in _SCALARS and _SCALARS.issuperset(map(type, operand)):
        return actual in operand and any(item == actual and _same(actual, item) for item in operand)
    return any(_same(actual, item) for item in operand)


def _matches(actual: Json, operand: Json) -> bool:
    if not isinstance(operand, str):
        raise Incomparable(f"expected a pattern as text, got {_kind(operand)}")
    wanted = pattern.read(operand)
    if not isinstance(actual, str):
        raise Incomparable(f"a pattern is found in text, not in {_kind(actual)}")
    return wanted.found_in(actual)


_OPERATORS: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "eq": _same,
    "ne": lambda actual, operand: not _same(actual, operand),
    "in": _member,
    "not_in": lambda actual, operand: not _member(actual, operand),
    "matches": _matches,
}
OPERATORS: Final = (*_OPERATORS, "exists")
"""The operators of conditions, by name."""


# What can never be answered


def plain_when(when: Mapping[Any, Any]) -> dict[str, Json]:
    """Return conditions as JSON that compares as it should."""
    found: dict[str, Json] = {}
    for key, wanted in when.items():
        if type(wanted) is dict or isinstance(wanted, Mapping):
            found[run_values.text(key)] = {run_values.text(op): _plain_operand(value) for op, value in wanted.items()}
        else:
            found[run_values.text(key)] = _plain_operand(wanted)
    return found


def copied_when(when: Mapping[str, Json]) -> dict[str, Json]:
    """Return conditions that are plain already as others may hold them; what they do to the copy changes no rule."""
    return {
        key: {op: _copied(operand) for op, operand in wanted.items()} if type(wanted) is dict else _copied(wanted)
        for key, wanted in when.items()
    }


def _copied(operand: Json) -> Json:
    return run_values.plain(operand) if type(operand) in _CONTAINERS else operand


def _plain_operand(operand: object) -> Json:
    """Return an operand as JSON; the members of a list are compared one by one, so each is a number where it can be."""
    if type(operand) is list or type(operand) is tuple:
        return [number_or_plain(item) for item in operand]
    if type(operand) is set or type(operand) is frozenset:
        return sorted((number_or_plain(item) for item in operand), key=form.serialise)
    return number_or_plain(operand)


def when_faults(when: object, path: str) -> list[Fault]:
    """Return what is wrong with the conditions of a rule: all that could never be answered, whatever the facts are."""
    if not isinstance(when, Mapping):
        problem = f"expected conditions by fact or a predicate, got {shown(when)}"
        return [Fault(path, problem, WHEN_FORM)]
    if not when:
        remedy = f"{WHEN_FORM} What is chosen when no rule matches is the default of the decision."
        return [Fault(path, NO_CONDITION, remedy)]
    found: list[Fault] = []
    for key, wanted in when.items():
        if not isinstance(key, str):
            found.append(Fault(path, f"expected the name of a fact, got {shown(key)}", "Send names as text."))
            continue
        if run_values.text(key) != key:  # cut or cleaned it might be the name of another fact
            remedy = f"Use at most {run_values.ITEM_BYTES_MAX} bytes of text without surrogates or NUL."
            found.append(Fault(path, f"{shown(key)} cannot be the name of a fact", remedy))
            continue
        found += wanted_faults(wanted, f"{path}/{pointer_part(key)}")
    return found


def wanted_faults(wanted: object, path: str) -> list[Fault]:
    """Return what is wrong with all that is asked of one fact: an object of operators, or a value it must equal."""
    if not isinstance(wanted, Mapping):
        return operator_faults("eq", wanted, path)
    if not wanted:
        return [Fault(path, NO_OPERATOR, f'Use {_LISTED}; to compare with an empty object, write {{"eq": {{}}}}.')]
    found: list[Fault] = []
    for op, operand in wanted.items():
        found += operator_faults(op, operand, f"{path}/{pointer_part(op)}" if isinstance(op, str) else path)
    return found


def operator_faults(op: object, operand: object, path: str) -> list[Fault]:
    """Return what is wrong with one operator and what it compares with."""
    if not isinstance(op, str) or op not in OPERATORS:
        return [Fault(path, unknown_operator(op), _meant(op))]
    plain = _plain_operand(operand)
    problem, remedy = f"{op} got {shown(operand)}", ""
    if has_mark(plain):
        problem = f"{problem}, which JSON cannot express"
        remedy = "Send a text, a number, a boolean, null, a list or an object."
    elif op == "exists":
        remedy = "" if type(plain) is bool else "Send true or false."
    elif op in ("in", "not_in"):
        if not isinstance(plain, list):
            remedy = "Send a list of values."
        elif len(plain) > IN_VALUES_MAX:
            problem = f"{op} got a list of {len(plain)} values"
            remedy = f"Send at most {IN_VALUES_MAX}, or split the rule."
    elif op in ("lt", "lte", "gt", "gte"):
        is_ordered = type(plain) in (int, float, str)
        remedy = "" if is_ordered else "Send a number or a text; nothing else has an order."
    elif op == "matches":
        if not isinstance(plain, str):
            remedy = "Send a pattern as text."
        else:
            try:
                pattern.read(plain)
            except pattern.PatternError as error:
                problem = f"{problem}: {error}"
                remedy = "Send a pattern of the language that docs/formats/runs.md describes."
    return [Fault(path, problem, remedy)] if remedy else []


def unknown_operator(op: object) -> str:
    """Return what is wrong with an operator that there is not."""
    name = shown(op).removesuffix(" (text)") if isinstance(op, str) else shown(op)
    return f"unknown operator {name}; use {_LISTED}"


_LISTED: Final = ", ".join(OPERATORS)
_EQUAL_TO_OBJECT: Final = 'To compare with an object, write {"eq": {…}}.'

_SYNONYMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("<", "less", "less_than", "below", "under", "before", "smaller", "smaller_than"), "lt"),
    **dict.fromkeys(("<=", "=<", "le", "at_most", "max", "maximum", "less_or_equal", "less_than_or_equal"), "lte"),
    **dict.fromkeys((">", "greater", "greater_than", "more", "more_than", "above", "over", "after"), "gt"),
    **dict.fromkeys((">=", "=>", "ge", "at_least", "min", "minimum", "greater_or_equal"), "gte"),
    **dict.fromkeys(("greater_than_or_equal",), "gte"),
    **dict.fromkeys(("=", "==", "===", "equal", "equals", "equal_to", "is"), "eq"),
    **dict.fromkeys(("!=", "!==", "<>", "not", "neq", "not_equal", "not_equals", "is_not", "isnt"), "ne"),
    **dict.fromkeys(("one_of", "any_of", "among", "within"), "in"),
    **dict.fromkeys(("nin", "notin", "none_of", "not_one_of", "not_among"), "not_in"),
    **dict.fromkeys(("regex", "regexp", "re", "pattern", "like", "match", "~", "contains"), "matches"),
    **dict.fromkeys(("exist", "present", "is_present", "has", "defined", "is_null", "missing"), "exists"),
}
"""What people write for an operator, and the operator they mean."""


def _meant(op: object) -> str:
    """Return which operator may be meant by one that there is not."""
    if not isinstance(op, str):
        return "Send the operator as text."
    name = op.strip().lower().lstrip("$").replace(" ", "_").replace("-", "_")
    meant = name if name in OPERATORS else _SYNONYMS.get(name) or _SYNONYMS.get(name.replace("_", ""))
    if meant is None:
        from difflib import get_close_matches

        close = get_close_matches(name[:64], [*OPERATORS, *_SYNONYMS], n=1, cutoff=0.75)
        meant = None if not close else _SYNONYMS.get(close[0], close[0])
    return _EQUAL_TO_OBJECT if meant is None else f"Did you mean {meant}?"
