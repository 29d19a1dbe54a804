"""OpenAI Agents SDK: its exported traces and spans, as `{"data": [...]}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.importers import span_tree
from woodrat.importers.fields import duration_ms, time_of, tokens
from woodrat.importers.format import Format
from woodrat.runs import chat_message as chat

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.errors import Fault
    from woodrat.importers.format import ParsedDocument
    from woodrat.runs.recordings import Placed


def _is_item(item: Mapping[str, Any]) -> bool:
    return item.get("object") in ("trace", "trace.span") and "id" in item


def _trajectories(items: Iterable[Placed], faults: list[Fault]) -> list[tuple[dict[str, Any], str]]:
    """Return the trajectories of traces, one for each, with the place where each came first."""
    named = [({"trace_id": item.get("id"), **item} if item["object"] == "trace" else item, at) for item, at in items]
    found = []
    for trace in span_tree.by_trace(named, ("trace_id",)):
        before = len(faults)
        listed = span_tree.each_once(trace, "id", faults)
        span_tree.check_parents(listed, "id", "parent_id", faults)
        if len(faults) == before:
            found.append((_trace([item for item, _ in listed]), trace[0][1]))
    return found


def _trace(items: list[dict[str, Any]]) -> dict[str, Any]:
    about = next((item for item in items if item["object"] == "trace"), {})
    spans = [item for item in items if item["object"] != "trace"]
    spans.sort(key=lambda span: (time_of(span.get("started_at")) or "", time_of(span.get("ended_at")) or ""))
    found: dict[str, Any] = {"id": str(items[0]["trace_id"])}
    if isinstance(about.get("workflow_name"), str):
        found["query"] = about["workflow_name"]
    if isinstance(about.get("group_id"), str):
        found["conversation"] = about["group_id"]
    if about.get("metadata"):
        found["attributes"] = {"metadata": about["metadata"]}
    agents = {str(span["id"]): name for span in spans if (name := _agent(span)) is not None}
    above = {str(span["id"]): span.get("parent_id") for span in spans}
    if agents:
        found["names"] = sorted(set(agents.values()))
    times = [time for span in spans if (time := time_of(span.get("started_at"))) is not None]
    ends = [time for span in spans if (time := time_of(span.get("ended_at"))) is not None]
    found |= ({"started_at": min(times)} if times else {}) | ({"ended_at": max(ends)} if ends else {})
    found["steps"] = [_step(span, _within(span, agents, above)) for span in spans]
    answers = [step["response"] for step in found["steps"] if isinstance(step.get("response"), str)]
    if answers:
        found["answer"] = answers[-1]
    return found


def _agent(span: Mapping[str, Any]) -> str | None:
    data = span.get("span_data")
    name = data.get("name") if isinstance(data, dict) and data.get("type") == "agent" else None
    return name[:256] if isinstance(name, str) and name else None


def _within(span: Mapping[str, Any], agents: Mapping[str, str], above: Mapping[str, Any]) -> str | None:
    """Return the agent whose span contains a span; there are no circles."""
    id = str(span["id"])
    while id not in agents:
        outer = above.get(id)
        if outer is None:
            return None
        id = str(outer)
    return agents[id]


def _step(span: Mapping[str, Any], agent: str | None) -> dict[str, Any]:
    data = span.get("span_data") if isinstance(span.get("span_data"), dict) else {}
    assert isinstance(data, dict)
    step: dict[str, Any] = {"id": str(span["id"])}
    if span.get("parent_id") is not None:
        step["under"] = str(span["parent_id"])
    if (started := time_of(span.get("started_at"))) is not None:
        step["started_at"] = started
    if (lasted := duration_ms(span.get("started_at"), span.get("ended_at"))) is not None:
        step["duration_ms"] = lasted
    if agent is not None:
        step["attributes"] = {"agent": agent}
    error = span.get("error")
    failed = {} if not error else {"error": str(error.get("message", error)) if isinstance(error, dict) else str(error)}
    kind = data.get("type")
    if kind in ("generation", "response"):
        return step | _generation(data) | failed
    if kind in ("function", "mcp_tools"):
        stated = chat.parsed_arguments(data.get("input"))
        args = stated if isinstance(stated, dict) else {} if stated is None else {"input": stated}
        step |= {"kind": "tool", "name": str(data.get("name") or kind), "args": args}
        return step | (failed or ({"result": chat.parsed(data["output"])} if "output" in data else {}))
    if kind == "handoff":
        chosen = data.get("to_agent")
        return step | {"kind": "decision", "stage": f"handoff from {data.get('from_agent')}", "chosen": chosen}
    if kind == "guardrail":
        chosen = "tripped" if data.get("triggered") is True else "passed"
        return step | {"kind": "decision", "stage": f"guardrail {data.get('name')}", "chosen": chosen}
    rest = {name: value for name, value in data.items() if name not in ("type", "name")}
    return step | {"kind": "note", "text": str(data.get("name") or kind or "span"), "data": {**rest, **failed} or None}


def _generation(data: Mapping[str, Any]) -> dict[str, Any]:
    step: dict[str, Any] = {"kind": "model"}
    if isinstance(data.get("model"), str):
        step["model"] = data["model"]
    if isinstance(data.get("input"), list):
        step["messages"] = data["input"]
    elif data.get("input") is not None:
        step["messages"] = [{"role": "user", "content": data["input"]}]
    if isinstance(data.get("model_config"), dict):
        step["parameters"] = {name: value for name, value in data["model_config"].items() if value is not None}
    if usage := tokens(data.get("usage")):
        step["usage"] = usage
    came = data.get("output")
    listed = (
        [turn for item in came if isinstance(item, dict) for turn in chat.turns(item) or ()]
        if isinstance(came, list)
        else []
    )
    if listed:
        texts = [turn.content for turn in listed if isinstance(turn.content, str)]
        calls: list[Json] = [{"name": call.name, "args": call.args} for turn in listed for call in turn.calls]
        content = "\n".join(texts) if texts else None
        step["response"] = {"content": content, "tool_calls": calls} if calls else content
    elif came is not None:
        step["response"] = came
    if isinstance(data.get("response_id"), str):
        step["response_id"] = data["response_id"]
    return step


def _read(items: Sequence[Placed], reading: ParsedDocument) -> None:
    reading.trajectories += _trajectories(items, reading.faults)


FORMATS: Final = (Format("OpenAI Agents SDK", _is_item, _read, parts=True),)
