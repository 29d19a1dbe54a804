"""The snapshot format: a run as one object with camelCase keys, written and read (docs/formats/snapshot.md).

Reading makes a trajectory of it. What a trajectory has no place for (the rules of a decision, keys of another tool) is
kept as attributes beside the step it belongs to, and stands in the snapshot again when the run is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, moment
from woodrat.errors import Fault, Refused, shown
from woodrat.records import replace
from woodrat.runs import json_values, redaction
from woodrat.runs.origin import recorded_origin
from woodrat.runs.projection import project
from woodrat.runs.run_fields import INTERRUPTED, RUNNING, SNAPSHOT, RunFields
from woodrat.runs.steps import Decision, Judgement, ModelCall, Note, Part, Read, ToolCall, Tried, Write, preview
from woodrat.runs.values import REDACTED, TRUNCATED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from woodrat.record_json import Record

KEPT_BYTES_MAX: Final = 32_768
"""How much is kept beside one step, or beside the run, of what has no place of its own; the longest goes first."""

_MARKS: Final = frozenset({"runId", "finalContent", "toolCalls", "tokenUsage"})
"""Keys of which none is in any other document that holds a run."""
_STEPS: Final = {"reads": Read, "toolCalls": ToolCall, "models": ModelCall, "decisions": Decision, "notes": Note}
"""The lists of a snapshot, in the order in which steps stand of which nothing says when they were."""
_LISTS: Final = (
    ("decisions", "decisions"),
    ("toolCalls", "tool_calls"),
    ("models", "models"),
    ("judgements", "judgements"),
    ("notes", "notes"),
)
"""The lists of steps that are written as they stand in a record, in the order of the format."""
_ABOUT: Final = {
    "runId": "id",
    "agent": "agent",
    "query": "query",
    "subject": "subject",
    "principal": "principal",
    "conversation": "conversation",
    "inputs": "inputs",
    "code": "code",
    "startedAt": "started_at",
    "endedAt": "ended_at",
    "durationMs": "duration_ms",
    "finalContent": "answer",
    "error": "error",
    "tokenUsage": "usage",
    "recall": "recall",
    "redact": "redact",
}
"""What a trajectory calls what it has a place for."""
_OWN: Final = frozenset(
    {"runId", "agent", "query", "subject", "principal", "conversation", "inputs", "code", "startedAt", "endedAt"}
    | {"finalContent", "status", "recall", "redact", "linked", "positions", "erased", "foreign"}
    | _STEPS.keys()
)
"""What is always said of the run as it is in this log."""
_OWN_OF_STEP: Final = frozenset({"stageId", "chosen", "rule", "evidence", "mode", "name", "text", "position"})
"""What is always said of a step as it is in this log."""
_TIMES: Final = frozenset({"startedAt", "endedAt"})
_MAY_BE_NULL: Final = frozenset({"chosen", "rule"})


# Writing


def write(record: RunFields) -> dict[str, Any]:
    """Return a run as a snapshot."""
    attributes = dict(record.attributes)
    kept = attributes.pop(SNAPSHOT, None)
    if isinstance(kept, dict):
        attributes.pop("id", None)
    found: dict[str, Any] = {
        "runId": record.id,
        **_stated(record, "agent", "names", "subject", "started_at", "ended_at", "status", "query"),
        "finalContent": record.answer,
        "iterations": record.iterations,
        **{name: [_step(step) for step in getattr(record, ours)] for name, ours in _LISTS[:2]},
        "narrative": project(record, "narrative"),
        "durationMs": record.duration_ms,
        "tokenUsage": {"input": record.input_tokens, "output": record.output_tokens},
        "reads": [_step(read) for read in record.reads],
        "writes": [_write(write) for write in record.writes],
        **{name: [_step(step) for step in getattr(record, ours)] for name, ours in _LISTS[2:]},
        **_stated(record, "verdict", "principal", "conversation", "inputs", "code", "basis", "parent"),
        **(_stated(record, "forked_from") if record.forked_from is not None else {}),
        **_stated(record, "trace", "linked", "session", "pipeline", "using", "recall"),
        "attributes": attributes,
        **_stated(record, "error", "problems", "positions", "erased", "foreign"),
    }
    # Who judged the run here says more of it than who judged it elsewhere.
    own = _OWN | ({"judgements", "verdict"} if record.judgements else set())
    return _with(found, kept, own)


def _with(found: dict[str, Any], kept: object, own: Collection[str]) -> dict[str, Any]:
    """Return what is written, with what an imported snapshot said besides."""
    if not isinstance(kept, dict):
        return found
    return found | {name: value for name, value in kept.items() if name not in own}


def _step(step: Part) -> dict[str, Any]:
    place: dict[str, Any] = {"startedAt": step.started_at, "step": step.step, "span": step.span}
    if step.under is not None:
        place["under"] = step.under
    found = {**_SAID[type(step)](step), **place, "position": step.position}
    return _with(found, step.attributes.get(SNAPSHOT), _OWN_OF_STEP)


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "stageId": decision.stage,
        **_stated(decision, "chosen", "rule", "evidence"),
        "conditions": [*_conditions(decision.rules)],
        "rules": [_rule(rule) for rule in decision.rules],
        **_stated(decision, "default", "mode", "rationale"),
        **({"omitted": dict(decision.omitted)} if decision.omitted else {}),
        **({"on_missing": decision.on_missing} if decision.on_missing is not None else {}),
        **({"chosenBy": dict(decision.chosen_by)} if decision.chosen_by is not None else {}),
    }


def _conditions(rules: Iterable[Tried]) -> Iterator[dict[str, Any]]:
    """Yield all that some rules compared, rule after rule; `tried` counts the rules from 0."""
    for index, rule in enumerate(rules):
        for condition in rule.conditions:
            yield {
                **_stated(condition, "key", "op", "operand", "actual", "result"),
                "origin": recorded_origin(condition.origin),
                **({} if condition.error is None else {"error": condition.error}),
                "rule": rule.label,
                "tried": index,
            }


def _rule(rule: Tried) -> dict[str, Any]:
    found: dict[str, Any] = {"rule": rule.label, "chosen": rule.chosen, "matched": rule.matched}
    if rule.unknown:
        found["unknown"] = True
    optional = {"when": rule.when, "predicate": rule.predicate, "error": rule.error}
    return found | {name: value for name, value in optional.items() if value is not None}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    return {
        **_stated(call, "name", "args"),
        "resultPreview": call.preview,
        **_stated(call, "errored", "error", "duration_ms"),
        **({"once": True} if call.once else {}),
        **({"begun": True} if call.begun else {}),
    }


def _model_call(call: ModelCall) -> dict[str, Any]:
    return {
        **_stated(call, "model", "request", "parameters"),
        "responsePreview": None if call.response is None else preview(call.response),
        "tokenUsage": {"input": call.input_tokens, "output": call.output_tokens},
        **_stated(call, "errored", "error", "duration_ms"),
    }


def _read(read: Read) -> dict[str, Any]:
    names = ("entity", "found", "fields", "as_of", "present", "log", "effective", "within", "args")
    return _stated(read, *names) | ({"recalled": [hit.to_json() for hit in read.recalled]} if read.recalled else {})


def _note(note: Note) -> dict[str, Any]:
    return _stated(note, "text", "data")


def _judgement(judgement: Judgement) -> dict[str, Any]:
    names = ("verdict", "preferred", "by", "reason", "score", "against", "about", "evaluation", "agent")
    return _stated(judgement, *names)


_SAID: Final[Mapping[type[Part], Any]] = {
    Decision: _decision,
    ToolCall: _tool_call,
    ModelCall: _model_call,
    Read: _read,
    Note: _note,
    Judgement: _judgement,
}
"""What each kind of step says besides when and where it was."""


def _write(write: Write) -> dict[str, Any]:
    found = _stated(write, "entity", "op", "fields", "observation", "observed_at", "step", "position")
    return found if not write.remove else {**found, "remove": dict(write.remove)}


def _stated(record: Record, *names: str) -> dict[str, Any]:
    """Return some fields of a record under their names in camelCase."""
    found: dict[str, Any] = {}
    for name in names:
        first, *rest = name.split("_")
        value = getattr(record, name)
        value = dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value
        found[first + "".join(map(str.capitalize, rest))] = value
    return found


# Reading


def is_snapshot(item: object) -> bool:
    """Return whether a document is a run in this format."""
    if not isinstance(item, dict):
        return False
    decisions = item.get("decisions")
    staged = isinstance(decisions, list) and any(isinstance(one, dict) and "stageId" in one for one in decisions)
    return staged or not _MARKS.isdisjoint(item)


def trajectory_of(document: Mapping[str, Any], path: str, faults: list[Fault]) -> dict[str, Any] | None:
    """Return the trajectory that a snapshot is; none where it is at fault, and everything wrong is in `faults`."""
    said = json_values.without_nulls(document, _STEPS, _MAY_BE_NULL)
    wrong = _faults(said, path)
    if wrong:
        faults += wrong
        return None
    found = {ours: said[theirs] for theirs, ours in _ABOUT.items() if theirs in said}
    status = said.get("status")
    if status is not None:
        found["status"] = INTERRUPTED if status == RUNNING else status
    ids: set[str] = set()
    found["steps"] = [_told(kind, item, ids) for kind, item in _in_order(said)]
    return found


def with_rest(
    document: Mapping[str, Any], plain: Mapping[str, Any], record: RunFields, hidden: Collection[str]
) -> dict[str, Any]:
    """Return the `plain` trajectory of a snapshot with all that it says besides; `record` is the run that it makes."""
    said = json_values.without_nulls(document, _STEPS, _MAY_BE_NULL)
    items = (item for _, item in _in_order(said))
    steps = [
        {**step, "attributes": {SNAPSHOT: _rest(item, _step(part), _OWN_OF_STEP, hidden)}}
        for step, item, part in zip(plain["steps"], items, record.steps, strict=True)
    ]
    if hidden:
        steps = [_without_traces(step, hidden) for step in steps]
    made = write(replace(record, attributes={}))
    return {**plain, "steps": steps, "attributes": {SNAPSHOT: _rest(said, made, _OWN, hidden)}}


def _in_order(said: Mapping[str, Any]) -> list[tuple[type[Part], dict[str, Any]]]:
    """Return the steps of a snapshot in one order: by time, number and span, as far as all of them say so."""
    items = [(kind, item) for name, kind in _STEPS.items() for item in said.get(name, ())]
    by = [name for name in ("startedAt", "step", "span") if all(name in item for _, item in items)]
    return sorted(items, key=lambda one: [moment.parse(one[1][n]) if n == "startedAt" else one[1][n] for n in by])


def _told(kind: type[Part], item: Mapping[str, Any], ids: set[str]) -> dict[str, Any]:
    """Return a step as a trajectory has it."""
    names = {"startedAt": "started_at", "under": "under", "durationMs": "duration_ms"}
    step: dict[str, Any] = {ours: item[theirs] for theirs, ours in names.items() if theirs in item}
    if "span" in item:  # the reads of one search share a span
        number = 1
        while (id := item["span"] if number == 1 else f"{item['span']}.{number}") in ids:
            number += 1
        ids.add(id)
        step["id"] = id
    if kind is Read:
        fields = item.get("fields", {})
        shown = {name: field["value"] for name, field in fields.items() if isinstance(field, dict) and "value" in field}
        step |= {"kind": "read", "values": shown, "found": "entity" in item and item.get("found", True)}
        return step | ({"entity": item["entity"]} if "entity" in item else {})
    if kind is Decision:
        step |= {"kind": "decision", "stage": item["stageId"], "chosen": item["chosen"]}
        step |= {name: item[name] for name in ("evidence", "rationale", "mode") if name in item}
        # That no rule matched is said by a null; the evidence of such a decision would then not be shown.
        if item.get("rule") is not None or (item.get("default") is True and not item.get("evidence")):
            step["rule"] = item.get("rule")
        return step
    if kind is Note:
        return {**step, "kind": "note", **{name: item[name] for name in ("text", "data") if name in item}}
    if item.get("errored") is True or "error" in item:
        step["error"] = item.get("error", "")
    if kind is ToolCall:
        args = item.get("args", {})
        step |= {"kind": "tool", "name": item["name"], "args": args if isinstance(args, dict) else {"arguments": args}}
        return step | ({"result": _result(item["resultPreview"])} if "resultPreview" in item else {})
    step |= {"kind": "model", **{name: item[name] for name in ("model", "request", "parameters") if name in item}}
    if "tokenUsage" in item:
        step["usage"] = item["tokenUsage"]
    return step | ({"response": _result(item["responsePreview"])} if "responsePreview" in item else {})


def _result(text: str) -> Any:
    """Return what a preview shows: a mark where it was cut, an object or array that it spells, or else the text."""
    if text.endswith("…"):
        return {TRUNCATED: {"bytes": len(text.encode()) - len("…".encode()), "preview": text[:-1]}}
    if text[:1] in ("{", "["):
        try:
            value = form.parse(text)
        except Refused:
            return text
        return value if preview(value) == text else text
    return text


def _without_traces(step: dict[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    """Return a step without what may show a hidden value although its key is not there.

    That is the text of a result that was cut, and the `threshold` that a hidden fact was compared with.
    """
    found = dict(step)
    evidence = found.get("evidence", {})
    if "threshold" in evidence and any(name in hidden for name in evidence):
        found["evidence"] = {**evidence, "threshold": REDACTED}
    for name in ("result", "response"):
        cut = found.get(name)
        if isinstance(cut, dict) and TRUNCATED in cut:
            found[name] = {TRUNCATED: {"bytes": cut[TRUNCATED]["bytes"]}}
    return found


def _rest(
    said: Mapping[str, Any], made: Mapping[str, Any], own: Collection[str], hidden: Collection[str]
) -> dict[str, Any]:
    """Return what a snapshot says and what was made of it does not, within a bound."""
    rest: dict[str, Any] = {}
    for name, value in said.items():
        # A narrative cites entries of the log that it was told from, and would cite others here.
        if name in own or (name != "narrative" and name in made and _is_same(name, value, made[name])):
            continue
        if hidden:
            if name in ("resultPreview", "responsePreview", "narrative"):
                continue  # text that may show what is hidden
            value = _shown(name, value, hidden)
        rest[name] = value
    if said.get("errored") is True and "error" not in said:
        rest["error"] = None
    sizes = sorted((len(form.serialise({name: value})), name) for name, value in rest.items())
    room, kept = KEPT_BYTES_MAX, {}
    for size, name in sizes:
        room -= size
        if room < 0:
            break
        kept[name] = rest[name]
    return kept


def _is_same(name: str, value: Any, made: Any) -> bool:
    if name in _TIMES and made is not None:
        return bool(moment.parse(value) == made)
    return form.same(value, made)


def _shown(name: str, value: Any, hidden: Collection[str]) -> Any:
    """Return what is kept of a decision without the values of facts that are to be hidden."""
    if name == "conditions" and isinstance(value, list):
        return [redaction.condition(one, hidden) for one in value]
    if name == "rules" and isinstance(value, list):
        return [redaction.rule(one, hidden) for one in value]
    return value


# Checking


def _faults(said: Mapping[str, Any], path: str) -> list[Fault]:
    """Return everything wrong with a snapshot, each fault with the JSON Pointer of the value."""
    faults = json_values.schema_faults("snapshot.json", said, path)
    timed = [(path, said)]
    for name in _STEPS:
        listed = said.get(name)
        timed += [(f"{path}/{name}/{n}", one) for n, one in enumerate(listed if isinstance(listed, list) else ())]
    for where, item in timed:
        for name in sorted(_TIMES & item.keys()) if isinstance(item, dict) else ():
            fault = moment.fault(item[name], f"{where}/{name}") if isinstance(item[name], str) else None
            faults += [fault] if fault is not None else []
    if said.get("status") in (INTERRUPTED, RUNNING):
        for name in ("finalContent", "endedAt", "error"):
            if name in said:
                problem = f"there is one, and the status is {shown(said['status'])}"
                faults.append(Fault(f"{path}/{name}", problem, "Leave out one of the two."))
    return faults
