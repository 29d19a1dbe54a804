"""Run JSON: a run record as `runs show -o json` prints it, as the entries that make such a record again.

What a run wrote is no part of its entries. The observations are not said again: the import keeps them as the attribute
`writes`, and the record has them from there. Positions are those of the log that the run was recorded in and are not
kept. What a record works out (words for calls, margins, the verdict) is worked out again.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.errors import Fault, shown
from woodrat.runs.origin import recorded_origin
from woodrat.runs.run_fields import WRITES
from woodrat.state import observation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MARKS: Final = frozenset({"id", "status", "tool_calls", "models", "decisions", "positions"})
"""What only the JSON of a run record has together."""
_KINDS: Final = {
    "reads": "run.read",
    "tool_calls": "run.tool",
    "models": "run.model",
    "decisions": "run.decided",
    "notes": "run.noted",
    "judgements": "run.judged",
}
_PLACE: Final = ("step", "span", "started_at", "under", "attributes")
_BODY: Final = {
    "reads": ("entity", "log", "effective", "found", "fields", "within", "args"),
    "tool_calls": ("name", "args", "result", "errored", "error", "duration_ms", "once", "begun"),
    "models": ("model", "request", "messages", "parameters", "response", "duration_ms", "errored", "error"),
    "decisions": (
        *("stage", "chosen", "rule", "default", "mode", "rationale", "facts", "facts_origin", "omitted"),
        *("otherwise", "on_missing", "chosen_by"),
    ),
    "notes": ("text", "data"),
    "judgements": ("verdict", "preferred", "by", "reason", "score", "against", "about", "evaluation", "agent"),
}
"""Members of a step that its entry has under the same name."""
_SAID_BY_NULL: Final = {"tool_calls": "result", "models": "response", "decisions": "chosen"}
"""Members that say something by being null."""
_FALSE: Final = frozenset({"errored", "once", "begun"})
"""Members that entries leave out where they are false."""
_ABOUT: Final = (
    *("names", "query", "subject", "principal", "conversation", "inputs", "code", "basis", "parent", "trace"),
    *("forked_from", "using", "started_at"),
)


def is_run_record(item: Any) -> bool:
    """Return whether an item is the JSON of a run record."""
    return isinstance(item, dict) and item.keys() >= _MARKS


def entries_of(record: Mapping[str, Any], path: str, faults: list[Fault]) -> list[dict[str, Any]]:
    """Return the entries of a run; what is wrong with its JSON is added to `faults`."""
    before = len(faults)
    run, agent = record.get("id"), record.get("agent")
    if not isinstance(run, str) or observation.optional_faults({"run": run}, ""):
        faults.append(Fault(f"{path}/id", f"got {shown(run)}", "Send the id of a run, as `runs show -o json` has it."))
    if agent is not None:
        faults += ids.agent_faults(agent, f"{path}/agent")
    for name in _KINDS:
        listed = record.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(step, dict) for step in listed):
            problem = f"expected a list of objects, got {shown(listed)}"
            faults.append(Fault(f"{path}/{name}", problem, "Send the run as `runs show -o json` prints it."))
    if record.get("status") not in ("done", "error", "cancelled", "interrupted", "running"):
        problem = f"got {shown(record.get('status'))}"
        faults.append(Fault(f"{path}/status", problem, "Send done, error, cancelled, interrupted or running."))
    if isinstance(record.get("erased"), list) and record["erased"]:
        problem = f"{len(record['erased'])} entries of the run were erased"
        faults.append(Fault(f"{path}/erased", problem, "Import a run that is whole, or its entries (`log export`)."))
    if len(faults) > before:
        return []
    found = [{"kind": "run.started", **_entry(record, 0), **_started(record)}]
    for name, kind in _KINDS.items():
        for step in record.get(name, []):
            found.append({"kind": kind, **_entry(record, None), **_step(name, step)})
    return [*found, *_ended(record, 1 + max([0, *(_whole(entry.get("step")) for entry in found)]))]


def same_run(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two records in JSON say the same of a run, wherever they stand: they make the same entries."""
    faults: list[Fault] = []
    made: list[Any] = [entries_of(record, "", faults) for record in (one, other)]
    return form.same(made[0], made[1]) and not faults


def _entry(record: Mapping[str, Any], step: int | None) -> dict[str, Any]:
    named = {"run": record["id"], **({"agent": record["agent"]} if record.get("agent") is not None else {})}
    if step is None:
        return named
    span = sha256(f"{record['id']} {step}".encode()).hexdigest()[:16]
    return {**named, "step": step, "span": span}


def _started(record: Mapping[str, Any]) -> dict[str, Any]:
    body = {name: record[name] for name in _ABOUT if record.get(name) not in (None, [], {})}
    if record.get("recall") is True:
        body["recall"] = True
    further = dict(record["attributes"]) if isinstance(record.get("attributes"), dict) else {}
    if record.get("writes"):
        further[WRITES] = [
            {name: value for name, value in write.items() if name != "position"} for write in _objects(record["writes"])
        ]
    return body | ({"attributes": further} if further else {})


def _step(name: str, step: Mapping[str, Any]) -> dict[str, Any]:
    nothing = _SAID_BY_NULL.get(name)
    body = {key: step[key] for key in (*_PLACE, *_BODY[name]) if step.get(key) is not None}
    body = {key: value for key, value in body.items() if key not in _FALSE or value is not False}
    if body.get("attributes") == {}:
        del body["attributes"]
    if name == "reads":
        if step.get("as_of") is not None:
            body["position"] = step["as_of"]
            if step.get("present") is False:
                body["as_of"] = step["as_of"]
    elif name == "models":
        body.setdefault("request", step.get("request_digest"))
        body["usage"] = {"input": step.get("input_tokens", 0), "output": step.get("output_tokens", 0)}
    elif name == "decisions":
        rules = [_without_nulls(rule) for rule in _objects(step.get("rules"))]
        if rules or step.get("default") is True:  # one that was chosen without rules lists none
            body["rules"] = rules
        if isinstance(body.get("facts_origin"), dict):
            body["facts_origin"] = {name: _origin(origin) for name, origin in body["facts_origin"].items()}
        if step.get("untried") is not None:
            body["untried"] = [_without_nulls(rule) for rule in _objects(step["untried"])]
    if nothing is not None and nothing in step and not (body.get("errored") or body.get("begun")):
        body[nothing] = step[nothing]
    return {key: value for key, value in body.items() if value is not None or key == nothing}


def _ended(record: Mapping[str, Any], step: int) -> Iterator[dict[str, Any]]:
    if record["status"] not in ("done", "error", "cancelled"):
        return
    body: dict[str, Any] = {"kind": "run.ended", **_entry(record, step), "status": record["status"]}
    body |= {name: record[name] for name in ("answer", "error", "duration_ms") if record.get(name) is not None}
    if record.get("ended_at") is not None:
        body["started_at"] = record["ended_at"]
    if record.get("noted_problems"):
        body["problems"] = record["noted_problems"]
    body["usage"] = {"input": record.get("input_tokens", 0), "output": record.get("output_tokens", 0)}
    yield body


def _without_nulls(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule as an entry has it: without the nulls of the record, and unknown only where it is."""
    found = {name: value for name, value in rule.items() if value is not None and name != "conditions"}
    if found.get("unknown") is False:
        del found["unknown"]
    if "conditions" in rule:
        found["conditions"] = [
            {
                name: _origin(value) if name == "origin" else value
                for name, value in each.items()
                if value is not None or name == "actual"
            }
            for each in _objects(rule["conditions"])
        ]
    return found


def _origin(origin: Any) -> Any:
    """Return where a value came from as an entry has it, without the words that a record adds."""
    return recorded_origin(origin) if isinstance(origin, dict) else origin


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _whole(value: Any) -> int:
    return value if type(value) is int else 0
