"""Comparison: how a recorded step and its replay differ, in facts, rules and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from woodrat.canon import form
from woodrat.replay.result import BEGINNING, Divergence, RuleChange
from woodrat.runs.rules import rule_said

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from woodrat.canon.form import Json

    Body = dict[str, Any]


def fact_changes(then: Json, now: Json, *, partial: bool) -> dict[str, Json]:
    """Return the facts that differ, by name; a side that has none leaves it out.

    Of `partial` facts only those that were looked at are recorded: one that stands on one side alone says nothing.
    """
    old, new = (each if isinstance(each, dict) else {} for each in (then, now))
    found: dict[str, Json] = {}
    for name in sorted(old.keys() & new.keys() if partial else old.keys() | new.keys()):
        if name not in old or name not in new or not form.same(old[name], new[name]):
            sides = (("old", old), ("new", new))
            found[name] = {side: values[name] for side, values in sides if name in values}
    return found


def rule_change(then: Body, now: Body, rules: Sequence[Json], facts: Mapping[str, Json]) -> RuleChange | None:
    """Return the first rule that differs from the recorded one, or the first that answers otherwise by itself."""
    listed, untried = _objects(then.get("rules")), _objects(then.get("untried"))
    known: list[Json] = [rule_said(each) for each in (*listed, *untried)]
    for index, old in enumerate(known):
        new = rules[index] if index < len(rules) else None
        if new is None or not form.same(old, new):
            return _change(index, old, new)
    if (then.get("default") is True or "untried" in then) and len(rules) > len(known) and "omitted" not in then:
        return _change(len(known), None, rules[len(known)])
    if not facts:
        for index, (one, other) in enumerate(zip(listed, now["rules"], strict=False)):
            if one.get("matched") != other.get("matched"):
                return _change(index, known[index], rules[index])
    return None


def _objects(value: Json) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _change(index: int, old: Any, new: Any) -> RuleChange:
    label = next((each["label"] for each in (new, old) if each is not None and each["label"] is not None), None)
    sides = [None if each is None else {name: v for name, v in each.items() if v is not None} for each in (old, new)]
    return RuleChange(index + 1, label, sides[0], sides[1])


def beginning_divergence(name: str, then: Json, now: Json) -> Divergence:
    """Return that a run is begun with something else than it was."""
    return Divergence(BEGINNING, f"beginning of the run: {name}", 0, then, now)


def step_number(body: Mapping[str, Any] | None) -> int | None:
    """Return the number of a recorded step, where it has one."""
    step = None if body is None else body.get("step")
    return step if type(step) is int else None


def step_words(kind: str, body: Body) -> str:
    """Return a recorded step in words."""
    match kind:
        case "run.tool":
            return f"tool {body.get('name')}"
        case "run.model":
            return f"model {body.get('model')}"
        case "run.decided":
            return f"decision {body.get('stage')}"
    return f"read {body.get('entity')}" if body.get("within") is None else str(body["within"])


def asked_by(kind: str, body: Body) -> Json:
    """Return what a recorded step was asked, or what it chose."""
    match kind:
        case "run.tool" | "run.read":
            return cast("Json", body.get("args"))
        case "run.model":
            return {"request": body.get("request")}
    return cast("Json", body.get("chosen"))
