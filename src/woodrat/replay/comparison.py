"""Comparison: how a recorded step and its replay differ, in facts, rules and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from woodrat.canon import form
from woodrat.compare.noise import around
from woodrat.compare.value_difference import differences, joined
from woodrat.replay.result import BEGINNING, Divergence, RuleChange, TextDifference
from woodrat.runs.rules import rule_said

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from woodrat.canon.form import Json

    Body = dict[str, Any]


def fact_changes(then: Json, now: Json, *, partial: bool) -> dict[str, Json]:
    """Return the differing facts, by name; a side without a fact leaves it out.

    Only the used ones of `partial` facts are recorded: a fact missing on one side proves nothing.
    """
    old, new = (each if isinstance(each, dict) else {} for each in (then, now))
    found: dict[str, Json] = {}
    for name in sorted(old.keys() & new.keys() if partial else old.keys() | new.keys()):
        if name not in old or name not in new or not form.same(old[name], new[name]):
            sides = (("old", old), ("new", new))
            found[name] = {side: values[name] for side, values in sides if name in values}
    return found


def rule_change(then: Body, now: Body, rules: Sequence[Json], facts: Mapping[str, Json]) -> RuleChange | None:
    """Return the first rule that differs from the recorded one, or the first with another result on equal facts."""
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
    what = f"beginning of the run: {name}"
    return Divergence(BEGINNING, what, 0, then, now, difference=value_words(then, now))


def decision_words(then: Json, now: Json, rule: RuleChange | None, facts: Mapping[str, Json]) -> TextDifference | None:
    """Return the first words in which two decisions differ: of the rule, else of a fact, else of the choice.

    The path begins with `rule N` or `facts`, or leads into the chosen value.
    """
    if rule is not None and not form.same(rule.old, rule.new):
        return _under(f"rule {rule.number}", rule.old, rule.new)
    for name, sides in facts.items():
        assert isinstance(sides, dict)
        if "old" not in sides or "new" not in sides:
            old, new = (_spelled(sides[side]) if side in sides else None for side in ("old", "new"))
            return TextDifference(None, None, joined("facts", name), old, new)
        return _under(joined("facts", name), sides["old"], sides["new"])
    return value_words(then, now)


def _under(place: str, then: Json, now: Json) -> TextDifference:
    """Return the first words in which two values differ, either of which may be None; its path begins with a place."""
    found = value_words(then, now)
    if found is None:
        old, new = (None if side is None else around(_spelled(side), "")[0] for side in (then, now))
        return TextDifference(None, None, place, old, new)
    separator = "." if found.path and not found.path.startswith("[") else ""
    return TextDifference(None, None, f"{place}{separator}{found.path}", found.old, found.new)


def write_words(then: Mapping[str, Any] | None, said: Json) -> TextDifference | None:
    """Return the first words in which a recorded observation and a record written now differ."""
    records = said.get("records", said.get("fields")) if isinstance(said, dict) else None
    if then is None or not isinstance(records, dict):
        return None
    fields = {name: value for name, value in records.items() if name != "entity_type"}
    return value_words(
        {name: value for name, value in then["fields"].items() if name in fields or name != "id"}, fields
    )


def value_words(then: Json, now: Json) -> TextDifference | None:
    """Return the first words in which two values differ; None if a side is missing or they are equal."""
    if then is None or now is None:
        return None
    for found in differences(then, now):
        path = found.path if found.path is not None else found.other_path or ""
        old = None if found.path is None else _spelled(found.first)
        new = None if found.other_path is None else _spelled(found.second)
        if found.kind == "renamed":
            return TextDifference(None, None, "", str(found.path), str(found.other_path))
        if old is not None and new is not None:
            old, new = around(old, new)
        else:
            old, new = (None if side is None else around(side, "")[0] for side in (old, new))
        return TextDifference(None, None, path, old, new)
    return None


def prompt_words(then: Body, messages: Json, parameters: Json) -> tuple[Json, Json, TextDifference | None]:
    """Return the first message in which two requests differ, recorded and current, and the first words."""
    old, new = then.get("messages"), messages
    if isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            one, two = (side[index] if index < len(side) else None for side in (old, new))
            if form.same(one, two):
                continue
            shown = one if isinstance(one, dict) else two
            role = shown.get("role", shown.get("type")) if isinstance(shown, dict) else None
            found = value_words(one, two)
            path = "" if found is None else found.path
            before, after = (None if one is None else _message(one), None if two is None else _message(two))
            if found is not None:
                before, after = found.old, found.new
            place = role if isinstance(role, str) else None
            return one, two, TextDifference(index + 1, place, path, before, after)
    elif old is not None and new is not None:
        return old, new, value_words(old, new)
    if not form.same(then.get("parameters") or {}, parameters or {}):
        changed = _under("parameters", then.get("parameters") or {}, parameters or {})
        return then.get("parameters"), parameters, changed
    return (None, None, None) if messages is None else (old, new, None)


def _message(message: Json) -> str:
    said = message.get("content") if isinstance(message, dict) else message
    return around(_spelled(said if said is not None else message), "")[0]


def _spelled(value: Json) -> str:
    return value if isinstance(value, str) else form.serialise(value).decode()


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
    """Return the request of a recorded step, or its choice."""
    match kind:
        case "run.tool" | "run.read":
            return cast("Json", body.get("args"))
        case "run.model":
            return cast("Json", body.get("messages"))
    return cast("Json", body.get("chosen"))
