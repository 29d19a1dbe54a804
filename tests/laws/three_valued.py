"""A second reading of docs/formats/runs.md: what rules come to on facts, written from the page and from nothing else.

It is slow, has no record and shares no code with the package. A condition is true, false or unknown (`None`), and so is
a rule.
"""

from __future__ import annotations

from typing import Any, NamedTuple

MISSING = object()
"""Stands for a fact that there is not."""


class Outcome(NamedTuple):
    """What a decision came to."""

    chosen: Any
    """What is chosen; nothing where the decision failed."""
    matched: tuple[int, ...]
    """The rules that matched, among those tried."""
    unknown: tuple[int, ...]
    """The rules that are unknown, among those tried."""
    failed: frozenset[tuple[int, str]] | None
    """Of a decision that failed, the rules that are unknown and the facts each lacks."""


def spelled(value: Any) -> Any:
    """Return a value as something that equals another if and only if the canonical bytes do."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value).__name__, value
    if isinstance(value, int | float):
        return "number", float(value)
    if isinstance(value, list):
        return "array", tuple(spelled(item) for item in value)
    return "object", frozenset((name, spelled(item)) for name, item in value.items())


def is_number(value: Any) -> bool:
    """Return whether a value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def condition(actual: Any, op: str, operand: Any) -> bool | None:
    """Return whether a condition holds; none where that is unknown."""
    if op == "exists":
        return (actual is not MISSING) is bool(operand)
    if actual is MISSING:
        return None
    if op in ("eq", "ne"):
        return bool(spelled(actual) == spelled(operand)) is (op == "eq")
    if op in ("in", "not_in"):
        return (spelled(actual) in [spelled(item) for item in operand]) == (op == "in")
    if op == "matches":  # the patterns that are tried are plain letters
        return str(operand) in actual if isinstance(actual, str) else None
    if not (is_number(actual) and is_number(operand)) and not (isinstance(actual, str) and isinstance(operand, str)):
        return None
    one, other = (actual, operand) if is_number(actual) else (actual.encode(), operand.encode())
    return bool({"lt": one < other, "lte": one <= other, "gt": one > other, "gte": one >= other}[op])


def conditions(when: dict[str, Any], facts: dict[str, Any]) -> list[tuple[str, bool | None]]:
    """Return each condition of a rule: the fact, and whether it holds."""
    found = []
    for fact, wanted in when.items():
        for op, operand in wanted.items() if isinstance(wanted, dict) else [("eq", wanted)]:
            found.append((fact, condition(facts.get(fact, MISSING), op, operand)))
    return found


def rule(when: dict[str, Any], facts: dict[str, Any]) -> bool | None:
    """Return whether a rule matches; none where it is unknown: nothing is false, and something is unknown."""
    results = [result for _, result in conditions(when, facts)]
    if any(result is False for result in results):
        return False
    return None if any(result is None for result in results) else True


def decision(
    facts: dict[str, Any], rules: list[tuple[Any, dict[str, Any]]], default: Any, mode: str, on_missing: str
) -> Outcome:
    """Return what a decision comes to: rules as what is chosen, and when."""
    matched: list[int] = []
    unknown: list[int] = []
    for number, (_, when) in enumerate(rules):
        result = rule(when, facts)
        if result is True:
            matched.append(number)
            if mode == "decide":
                break
        elif result is None:
            unknown.append(number)
    if unknown and on_missing != "skip":
        lacks = {(n, fact) for n in unknown for fact, result in conditions(rules[n][1], facts) if result is None}
        return Outcome(None, (), (), frozenset(lacks))
    taken = [rules[number][0] for number in matched]
    if mode == "select":
        chosen: Any = taken or ([] if default is None else default if isinstance(default, list) else [default])
    else:
        chosen = taken[0] if taken else default
    return Outcome(chosen, tuple(matched), tuple(unknown), None)
