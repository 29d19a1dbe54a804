"""Origins: where the values of a decision came from, in words that people know.

A value from a tool names the tool, what it was called with and what it returned; the span of the call tells people
nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from woodrat.records import replace
from woodrat.runs import steps
from woodrat.runs.steps import Condition, Decision, ModelCall, ToolCall, Tried

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from woodrat.canon.form import Json

CALL_CHARACTERS_MAX: Final = 160
"""How much of a call, with its arguments, a line shows."""
RETURNED_CHARACTERS_MAX: Final = 120
"""How much of a result a line shows."""


def call_words(call: ToolCall | ModelCall) -> str:
    """Return a call as people write it, such as `lookup_credit_bureau(application=42)`."""
    if isinstance(call, ModelCall):
        return f"model {call.model}" if call.model else "a model"
    if isinstance(call.args, dict):
        stated = ", ".join(f"{name}={_spelled(item)}" for name, item in call.args.items())
    else:
        stated = "" if call.args is None else _spelled(call.args)
    return _cut(f"{call.name}({stated})", CALL_CHARACTERS_MAX)


def _spelled(value: Json) -> str:
    return _cut(json.dumps(value, ensure_ascii=False, sort_keys=True), CALL_CHARACTERS_MAX)


def _cut(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


def origin_words(origin: Mapping[str, Any]) -> str:
    """Return where a value came from, in words; observations are left to whoever shows them."""
    match origin.get("kind"):
        case "read":
            if origin.get("entity") is None:
                return "something that was erased"
            return f"{origin['entity']}#{origin.get('field')}"
        case "input":
            return f"input {origin.get('name')}"
        case "tool" | "model" as kind:
            path = f" at {origin['path']}" if origin.get("path") else ""
            returned = f", which returned {origin['returned']}" if origin.get("returned") else ""
            return f"{origin.get('call') or f'a {kind} call that is not on record'}{path}{returned}"
    return "stated by the agent"


def recorded_origin(origin: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a value came from as it is recorded, without the words for the call."""
    return {name: item for name, item in origin.items() if name not in ("call", "returned")}


def with_calls(decisions: Iterable[Decision], calls: Iterable[ToolCall | ModelCall]) -> tuple[Decision, ...]:
    """Return the decisions with the calls of their origins, which the decisions name only by span."""
    by_span: dict[str, ToolCall | ModelCall] = {}
    for call in calls:
        if call.span and not getattr(call, "begun", False):
            by_span.setdefault(call.span, call)
    return tuple(_with_calls(decision, by_span) if by_span else decision for decision in decisions)


def _with_calls(decision: Decision, calls: Mapping[str, ToolCall | ModelCall]) -> Decision:
    if not any(origin.get("span") in calls for origin in decision.origins):
        return decision

    def named(origin: Any) -> Any:
        call = calls.get(origin.get("span", "")) if isinstance(origin, dict) else None
        if call is None:
            return origin
        returned = call.result if isinstance(call, ToolCall) else call.response
        words = {"call": call_words(call), "returned": _cut(steps.preview(returned), RETURNED_CHARACTERS_MAX)}
        return {**origin, **words}

    def condition(one: Condition) -> Condition:
        return replace(one, origin=named(one.origin)) if one.origin.get("span") in calls else one

    def rule(one: Tried) -> Tried:
        return replace(one, conditions=tuple(map(condition, one.conditions))) if one.conditions else one

    return replace(
        decision,
        rules=tuple(map(rule, decision.rules)),
        facts_origin={key: named(origin) for key, origin in decision.facts_origin.items()},
    )
