"""Contrast: how two steps that stand side by side differ, in which parts of their values, and the words for it.

A part that differs is a difference in *behaviour*, unless it is prose in other words (*wording*) or made up anew by
every run and used nowhere (*set aside*).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.compare.noise import RANDOM_ID, around, names_span, reworded, steady, volatile_kind
from woodrat.compare.value_difference import (
    CHANGED,
    RENAMED,
    Difference,
    differences,
    opened,
)
from woodrat.records import dataclass
from woodrat.runs import messages
from woodrat.runs.messages import without_call_ids
from woodrat.runs.record import RunRecord
from woodrat.runs.run_fields import DONE
from woodrat.runs.steps import Condition, Decision, ModelCall, Read, ToolCall, Tried, Write
from woodrat.runs.values import REDACTED

VALUE_CHARACTERS_MAX: Final = 80
"""How much of a value a sentence shows."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What a sentence calls the two sides of a comparison."""

    first: str = "the first run"
    """The first side."""
    second: str = "the second run"
    """The second side."""
    again: str = "the second"
    """The second side, right after the first was named."""

    def both(self, first: str, second: str) -> str:
        """Return what the two sides have, in words."""
        return f"{first} in {self.first} and {second} in {self.again}"

    def pair(self, first: Json, second: Json) -> str:
        """Return two values that the two sides have, in short."""
        return self.both(short(first), short(second))

    def name(self, which: int) -> str:
        """Return what a side is called, 0 for the first."""
        return self.second if which else self.first


RUNS: Final = Sides()
"""Two runs, as they were named."""


# Words


def short(value: Json) -> str:
    """Return a value in short, on one line."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = " ".join(text.split())
    return text if len(text) <= VALUE_CHARACTERS_MAX else text[: VALUE_CHARACTERS_MAX - 1] + "…"


def listed(items: Sequence[str]) -> str:
    """Return items as a sentence lists them."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def more(count: int, one: str) -> str:
    """Return that so many more differ, in brackets; nothing for none."""
    return "" if count < 1 else f" (one more {one} differs)" if count == 1 else f" ({count} more {one}s differ)"


def values(found: Mapping[str, Json]) -> str:
    """Return values by name, in short."""
    return ", ".join(f"{name}={short(value)}" for name, value in found.items())


def done(part: Any, beside: Any = None) -> str:
    """Return what a step did, in short; of fields only those that differ from the step beside it, where some do."""
    if isinstance(part, Read):
        names = changed_fields(part, beside) if isinstance(beside, Read) else []
        told = {name: value for name, value in part.values.items() if name in names or not names}
        return short(values(told) or "(no fields)") if part.found else "(nothing known)"
    if isinstance(part, ToolCall):
        return f"{short(part.args)} → {result(part)}"
    if isinstance(part, ModelCall):
        return result(part, beside)
    if isinstance(part, Decision):
        by = "by default" if part.default else part.by(short) if part.rule is None else short(part.rule)
        return f"{short(part.chosen)} ({by})"
    assert isinstance(part, Write)
    names = differing(part.fields, beside.fields) if isinstance(beside, Write) else []
    said = {name: value for name, value in part.fields.items() if name in names or not names}
    return short(values(said) or part.op)


def result(part: ToolCall | ModelCall, beside: Any = None) -> str:
    """Return what came of a call, in short; of a model beside another, that by which they differ."""
    if part.errored:
        return f"failed: {failure(part.error)}"
    if isinstance(part, ToolCall):
        return "(no result is recorded)" if part.begun else short(part.result)
    return _gist(part.response, beside.response if isinstance(beside, ModelCall) else None)


def both_done(p: Any, q: Any) -> tuple[str | None, str | None]:
    """Return what two steps side by side did, in short; none for the one that is not there."""
    if isinstance(p, ModelCall) and isinstance(q, ModelCall) and not p.errored and not q.errored:
        one, two = (short(messages.gist(call.response)) for call in (p, q))
        return (one, two) if one != two else (done(p, q), done(q, p))
    if isinstance(p, ToolCall) and isinstance(q, ToolCall):
        args = short(p.args)  # which mostly are the same on both sides
        other = args if form.same(p.args, q.args) else short(q.args)
        return f"{args} → {result(p)}", f"{other} → {result(q)}"
    return None if p is None else done(p, q), None if q is None else done(q, p)


def compared(part: Any) -> dict[str, Json]:
    """Return what of a step is compared with the step beside it, by name."""
    if isinstance(part, Read):
        return {"values": dict(part.values), "found": part.found, "fields": dict(part.fields)}
    if isinstance(part, ToolCall):
        return {"args": part.args, "result": part.result, "error": part.error, "begun": part.begun}
    if isinstance(part, ModelCall):
        answer, asked = without_call_ids(part.response), without_call_ids(part.messages)
        told = {"answer": answer, "error": part.error, "messages": asked, "parameters": dict(part.parameters)}
        return {**told, "model": part.model, "request": part.request}
    if isinstance(part, Decision):
        looked = {name: value for name, (value, _) in facts_looked_at(part).items()}
        asked = [[{"key": c.key, "op": c.op, "operand": c.operand} for c in rule.conditions] for rule in part.rules]
        return {"chosen": part.chosen, "rule": part.rule, "facts": looked, "rules": asked, "mode": part.mode}
    assert isinstance(part, Write)
    return {"op": part.op, "fields": dict(part.fields), "remove": dict(part.remove)}


def came(part: ToolCall | ModelCall, verb: str) -> str:
    """Return what came of a call, as the rest of a clause."""
    return f"failed with {failure(part.error)}" if part.errored else f"{verb} {result(part)}"


def results_text(p: Any, q: Any, verb: str, sides: Sides) -> str:
    """Return what came of two calls that were asked the same; of two objects the members that differ."""
    if p.errored or q.errored or getattr(p, "begun", False) or getattr(q, "begun", False):
        return sides.both(came(p, verb), came(q, verb))
    one, other = (call.result if isinstance(call, ToolCall) else without_call_ids(call.response) for call in (p, q))
    return f"{verb} {apart(one, other, sides)}"


def apart(one: Json, other: Json, sides: Sides) -> str:
    """Return two values that differ, in short; of two objects only the members that do."""
    if isinstance(one, dict) and isinstance(other, dict) and (names := differing(one, other)):
        told = (values({n: found[n] for n in names if n in found}) or f"no {names[0]}" for found in (one, other))
        return sides.both(*(short(text) for text in told))
    return sides.pair(one, other)


def failure(error: Json) -> str:
    """Return an error, in short."""
    if isinstance(error, dict) and isinstance(error.get("type"), str):
        message = error.get("message")
        if message and error["type"] == "Exception":  # which says nothing
            return short(message)
        return short(f"{error['type']}: {message}" if message else error["type"])
    return short(error)


def ending(record: RunRecord) -> str:
    """Return how a run ended, in short."""
    if record.status == DONE:
        return "(no answer)" if record.answer is None else short(record.answer)
    return record.status if record.error is None else f"{record.status}: {failure(record.error)}"


# What differs


def same_all(pairs: Iterable[tuple[Any, Any]]) -> bool:
    """Tell whether the two values of every pair are one."""
    return all(form.same(one, other) for one, other in pairs)


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Return the names whose values differ, or that only one has."""
    return [n for n in sorted({*a, *b}) if n not in a or n not in b or not form.same(a[n], b[n])]


def same_start(a: RunRecord, b: RunRecord) -> bool:
    """Tell whether two runs were asked the same, about the same, with the same inputs."""
    return (a.query, a.subject) == (b.query, b.subject) and not differing(a.inputs, b.inputs)


def same_step(p: Any, q: Any) -> bool:
    """Tell whether two steps side by side asked the same and came to the same."""
    if isinstance(p, Read):
        return p.found == q.found and not changed_fields(p, q)
    if isinstance(p, ToolCall):
        return p.begun == q.begun and same_all(((p.args, q.args), (p.result, q.result), (p.error, q.error)))
    if isinstance(p, ModelCall):
        answers = (without_call_ids(p.response), without_call_ids(q.response))
        return same_request(p, q) and p.model == q.model and same_all((answers, (p.error, q.error)))
    if isinstance(p, Decision):
        return not choice_differs(p, q) and rule_change(p, q) is None and not evidence(p, q)
    assert isinstance(p, Write)
    return p.op == q.op and not differing(p.fields, q.fields) and not differing(p.remove, q.remove)


def same_request(p: ModelCall, q: ModelCall) -> bool:
    """Tell whether two calls of models asked the same, in the same way."""
    if differing(p.parameters, q.parameters):
        return False
    if p.request is not None and q.request is not None:
        # A digest takes ids of calls in; where only these differ, it says no more than they do.
        return p.request == q.request or (not form.same(p.messages, q.messages) and _same_messages(p, q))
    return _same_messages(p, q)


def _same_messages(p: ModelCall, q: ModelCall) -> bool:
    return form.same(without_call_ids(p.messages), without_call_ids(q.messages))


def choice_differs(p: Decision, q: Decision) -> bool:
    """Tell whether two decisions came to different choices, or to one by different rules."""
    return p.default != q.default or not same_all(((p.chosen, q.chosen), (p.rule, q.rule)))


def facts_looked_at(decision: Decision) -> dict[str, tuple[Json, Mapping[str, Any]]]:
    """Return what a decision looked at by name, each with its origin."""
    found: dict[str, tuple[Json, Mapping[str, Any]]] = {}
    for condition in decision.conditions:
        found.setdefault(condition.key, (condition.actual, condition.origin))
    for name, value in decision.facts.items():
        origin = decision.facts_origin.get(name)
        found.setdefault(name, (value, origin if isinstance(origin, dict) else {}))
    return found


def evidence(p: Decision, q: Decision) -> list[str]:
    """Return the names of what both looked at and saw otherwise, those that turned a condition first."""
    one, other = facts_looked_at(p), facts_looked_at(q)
    named = [name for name in sorted({*one} & {*other}) if not names_span(name)]
    differ = [name for name in named if not _same_fact(one[name], other[name], p, q)]
    turned = {c.key for x, y in zip(p.rules, q.rules, strict=False) for c, d in _compared(x, y) if c.result != d.result}
    return sorted(differ, key=lambda name: (name not in turned, name))


def _same_fact(
    one: tuple[Json, Mapping[str, Any]], other: tuple[Json, Mapping[str, Any]], p: Decision, q: Decision
) -> bool:
    """Tell whether two decisions saw one value; of hidden ones the observations tell, or else what was chosen."""
    if one[0] != REDACTED or other[0] != REDACTED:
        return form.same(one[0], other[0])
    if one[1].get("kind") == other[1].get("kind") == "read":
        return form.same(one[1].get("observations"), other[1].get("observations"))
    return not choice_differs(p, q)


def _compared(x: Tried, y: Tried) -> list[tuple[Condition, Condition]]:
    """Return the comparisons that two rules both made."""
    pairs = zip(x.conditions, y.conditions, strict=False)
    return [(c, d) for c, d in pairs if (c.key, c.op) == (d.key, d.op)]


def rule_change(p: Decision, q: Decision, sides: Sides = RUNS) -> tuple[str, dict[str, Any]] | None:
    """Return how the rules of two decisions differ, as far as both were tried; none when they do not."""
    for number, (x, y) in enumerate(zip(p.rules, q.rules, strict=False), 1):
        name = f"the rule {x.label}" if x.label is not None else f"rule {number}"
        if x.label != y.label:
            text = f"rule {number} was {sides.both(short(x.label), short(y.label))}"
            return text, {"rule": number, "first": x.label, "second": y.label}
        for c, d in _compared(x, y):
            if not form.same(c.operand, d.operand) and (x.predicate is None or not _is_fact(p, q, c, d)):
                asked = (f"{c.key} {condition_text(c)}", condition_text(d))
                found = {"rule": x.label, "key": c.key, "op": c.op, "first": c.operand, "second": d.operand}
                return f"{name} asked for {sides.both(*asked)}", found
        for what, one, other in (
            ("asked for", x.when, y.when),
            ("was the function", x.predicate, y.predicate),
            ("led to", x.chosen, y.chosen),
        ):
            if not form.same(one, other):
                text = f"{name} {what} {sides.both(short(one), short(other))}"
                return text, {"rule": x.label, "first": one, "second": other}
    if p.mode != q.mode:
        return f"it took {sides.both(p.mode, q.mode)}", {"first": p.mode, "second": q.mode}
    for fewer, further, which in ((p, q, 1), (q, p, 0)):
        if fewer.default and not fewer.omitted and len(fewer.rules) < len(further.rules):
            added = further.rules[len(fewer.rules)].label
            return f"only {sides.name(which)} had the rule {short(added)}", {"rule": added}
    if p.default and q.default and not form.same(p.chosen, q.chosen):
        text = f"no rule matched, and the default was {sides.both(short(p.chosen), short(q.chosen))}"
        return text, {"first": p.chosen, "second": q.chosen}
    return None


_OPERATORS: Final = {
    "eq": "of",
    "ne": "other than",
    "lt": "below",
    "lte": "of at most",
    "gt": "above",
    "gte": "of at least",
    "in": "among",
    "not_in": "not among",
    "matches": "like",
}


def condition_text(condition: Condition) -> str:
    """Return what a condition asks of a fact, in words."""
    if condition.op == "exists":
        return "to be there" if condition.operand else "not to be there"
    return f"{_OPERATORS.get(condition.op, condition.op)} {short(condition.operand)}"


def _is_fact(p: Decision, q: Decision, c: Condition, d: Condition) -> bool:
    """Tell whether a function compared with a value that was given to it: then the value differs, not the rule."""
    return any(form.same(value, c.operand) for value in p.facts.values()) and any(
        form.same(value, d.operand) for value in q.facts.values()
    )


def changed_fields(p: Read, q: Read) -> list[str]:
    """Return the fields that two reads showed otherwise; of hidden values the observations tell."""
    hidden = [
        name
        for name, value in p.values.items()
        if value == REDACTED == q.values.get(name) and shown(p, name) != shown(q, name)
    ]
    return sorted([*differing(p.values, q.values), *hidden])


def shown(read: Read, name: str) -> tuple[str, Json] | None:
    """Return the winning observation of a field and what it showed."""
    item = read.fields.get(name)
    return (str(item.get("observation")), item.get("value")) if isinstance(item, dict) else None


def message(message: Json, beside: Json = None) -> str:
    """Return a message of a request, in short; beside another, that by which they differ."""
    return _gist(message, beside)


def _gist(said: Json, beside: Json) -> str:
    """Return what a message comes to; all of it where that is what the one beside it comes to as well."""
    told = short(messages.gist(said))
    if (
        beside is None
        or told != short(messages.gist(beside))
        or form.same(without_call_ids(said), without_call_ids(beside))
    ):
        return told
    return short(said)


def request_text(record: RunRecord) -> str:
    """Return what a run was asked and given, in short."""
    given = values(record.inputs)
    return short("; ".join(text for text in (record.query or "", given) if text) or "(nothing is known)")


# Parts of values

PATH_CHARACTERS_MAX: Final = 400
"""How much of a path a sentence shows, its end."""


@dataclass(frozen=True, slots=True)
class Differences:
    """The parts in which two values differ, by what a difference there means."""

    behaviour: tuple[Difference, ...]
    """What may have made a difference, in the order of the first value."""
    wording: tuple[Difference, ...]
    """Prose in other words, and data spelled otherwise."""
    set_aside: tuple[tuple[Difference, str], ...]
    """What every run makes up anew, with its kind."""


NO_DIFFERENCES: Final = Differences((), (), ())


def classify(first: Json, second: Json, matters: Callable[[Json, Json], bool], *, prose: bool = True) -> Differences:
    """Return in what two values differ; `matters` tells of two volatile values whether a run used either.

    Without `prose` texts are data: what a tool returned counts word for word.
    """
    behaviour: list[Difference] = []
    wording: list[Difference] = []
    aside: list[tuple[Difference, str]] = []
    for found in differences(first, second):
        name = found.path or ""
        kind = _volatile(found, name)
        if kind is not None and (names_span(name) or not matters(found.first, found.second)):
            aside.append((found, kind))
        elif found.kind == CHANGED and (_same_data(found) or (prose and _reworded(found, name))):
            wording.append(found)
        else:
            behaviour.append(found)
    return Differences(tuple(behaviour), tuple(wording), tuple(aside))


def _volatile(found: Difference, name: str) -> str | None:
    if found.kind == CHANGED:
        return volatile_kind(name, found.first, found.second)
    if found.kind == RENAMED and steady(found.path) == steady(found.other_path):
        same = isinstance(found.first, dict | list) or found.first == found.second
        return RANDOM_ID if same else volatile_kind(name, found.first, found.second)
    return None


def _reworded(found: Difference, name: str) -> bool:
    return reworded(found.first, found.second, name.rpartition(".")[2].split("[")[0])


def _same_data(found: Difference) -> bool:
    """Return whether two texts hold the same data in other spelling."""
    one, two = opened(found.first), opened(found.second)
    return one is not found.first and two is not found.second and not differences(one, two)


# Words


def difference_text(found: Difference, sides: Sides) -> str:
    """Return in words what the two sides have in one place, with the path and both values."""
    path, other = _path(found.path), _path(found.other_path)
    match found.kind:
        case "renamed" | "moved" if _same(found):
            if isinstance(found.first, dict | list):
                return f"{sides.both(path, other)}, with the same content"
            return f"{sides.both(path, other)}, with the same value {short(found.first)}"
        case "added":
            return sides.both(f"no {other}", f"{other}={short(found.second)}")
        case "removed":
            return sides.both(f"{path}={short(found.first)}", f"no {path}")
        case "reordered":
            one, two = _first_apart(found.first, found.second)
            return f"{path or 'the items'} in another order: {sides.both(one, two)}"
    one, two = pair_of(found.first, found.second)
    return sides.both(_named(path, one), _named(other, two))


def part_texts(name: str, found: Difference) -> tuple[str, str]:
    """Return what each side has in one part of a value of this name, with its path."""

    def side(path: str | None, text: str) -> str:
        if path is None:
            return f"{name}: nothing there"
        place = f"{name}{path}" if path.startswith("[") else f"{name}.{path}" if path else name
        return f"{_path(place)}: {text}"

    one, two = pair_of(found.first, found.second)
    return side(found.path, one), side(found.other_path, two)


def pair_of(first: Json, second: Json) -> tuple[str, str]:
    """Return two values that differ in short; of long texts the words that differ, and a type where that tells."""
    if isinstance(first, str) and isinstance(second, str) and first and second:
        return around(first, second)
    one, two = short(first), short(second)
    if one != two:
        return one, two
    if type(first) is not type(second) or not isinstance(first, dict | list):
        return _json(first), _json(second)
    return around(_json(first), _json(second))


def _same(found: Difference) -> bool:
    return type(found.first) is type(found.second) and not differences(found.first, found.second)


def _first_apart(first: Json, second: Json) -> tuple[str, str]:
    if isinstance(first, list) and isinstance(second, list):
        for place, (one, two) in enumerate(zip(first, second, strict=False)):
            if differences(one, two):
                pair = pair_of(one, two)
                return f"[{place}]={pair[0]}", f"[{place}]={pair[1]}"
    return pair_of(first, second)


def _named(path: str, value: str) -> str:
    return f"{path}={value}" if path else value


def _path(path: str | None) -> str:
    found = path or ""
    return found if len(found) <= PATH_CHARACTERS_MAX else f"…{found[-PATH_CHARACTERS_MAX:]}"


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
