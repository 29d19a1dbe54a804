"""Agent traces: what the OpenAI Agents SDK exports of itself, and trajectories in the ATIF format.

An export of the SDK is `{"data": [...]}` of traces and their spans. ATIF is the Agent Trajectory Interchange Format:
an agent and its steps, each of a `source`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.errors import Fault
from woodrat.runs.foreign import message as chat
from woodrat.runs.foreign import span_tree, transcript
from woodrat.runs.foreign.fields import duration_ms, time_of, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from woodrat.canon.form import Json
    from woodrat.runs.foreign.span_tree import Placed


def is_agents_item(item: Any) -> bool:
    """Return whether an item is a trace or a span of the OpenAI Agents SDK."""
    return isinstance(item, dict) and item.get("object") in ("trace", "trace.span") and "id" in item


def agents_trajectories(items: Iterable[Placed], faults: list[Fault]) -> list[tuple[dict[str, Any], str]]:
    """Return the trajectories of traces, one for each, with the place where each came first."""
    named = [({"trace_id": item.get("id"), **item} if item["object"] == "trace" else item, at) for item, at in items]
    found = []
    for trace in span_tree.by_trace(named, ("trace_id",)):
        before = len(faults)
        listed = span_tree.each_once(trace, "id", faults)
        span_tree.check_parents(listed, "id", "parent_id", faults)
        if len(faults) == before:
            found.append((_agents_trace([item for item, _ in listed]), trace[0][1]))
    return found


def _agents_trace(items: list[dict[str, Any]]) -> dict[str, Any]:
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
    found["steps"] = [_agents_step(span, _within(span, agents, above)) for span in spans]
    answers = [step["response"] for step in found["steps"] if isinstance(step.get("response"), str)]
    if answers:
        found["answer"] = answers[-1]
    return found


def _agent(span: Mapping[str, Any]) -> str | None:
    data = span.get("span_data")
    name = data.get("name") if isinstance(data, dict) and data.get("type") == "agent" else None
    return name[:256] if isinstance(name, str) and name else None


def _within(span: Mapping[str, Any], agents: Mapping[str, str], above: Mapping[str, Any]) -> str | None:
    """Return the agent inside whose span a span is; there are no circles."""
    id = str(span["id"])
    while id not in agents:
        outer = above.get(id)
        if outer is None:
            return None
        id = str(outer)
    return agents[id]


def _agents_step(span: Mapping[str, Any], agent: str | None) -> dict[str, Any]:
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


# ATIF


def is_atif(document: Any) -> bool:
    """Return whether a document is a trajectory in the ATIF format."""
    version = document.get("schema_version") if isinstance(document, dict) else None
    return isinstance(version, str) and version.startswith("ATIF") and isinstance(document.get("steps"), list)


def atif_trajectory(document: Mapping[str, Any], path: str, faults: list[Fault]) -> dict[str, Any] | None:
    """Return an ATIF document as a trajectory: its steps are the turns of a chat."""
    agent = document.get("agent") if isinstance(document.get("agent"), dict) else {}
    assert isinstance(agent, dict)
    said: list[Any] = []
    origin: list[int] = []
    """Which step each message comes from."""
    for number, step in enumerate(document["steps"]):
        # The transcript says what is wrong with a step that is none.
        said += _atif_turns(step, agent) if isinstance(step, dict) else [step]
        origin += [number] * (len(said) - len(origin))
    about: dict[str, Any] = {"messages": said}
    if isinstance(document.get("session_id"), str):
        about["id"] = document["session_id"]
    if isinstance(agent.get("model_name"), str):
        about["model"] = agent["model_name"]
    if isinstance(agent.get("version"), str):
        about["code"] = agent["version"]
    names = [agent["name"]] if isinstance(agent.get("name"), str) and agent["name"] else []
    before = len(faults)
    found = transcript.trajectory_of(about, path, faults)
    if found is None or len(faults) > before:
        for place, fault in enumerate(faults[before:], before):
            index, _, rest = fault.path.removeprefix(f"{path}/messages/").partition("/")
            where = f"{path}/steps/{origin[int(index)]}/{rest}" if index.isdigit() else f"{path}/steps"
            faults[place] = Fault(where.rstrip("/"), fault.problem, fault.remedy)
        return None
    further = {
        name: document[name] for name in ("notes", "extra", "schema_version", "final_metrics") if document.get(name)
    }
    usage = tokens(document.get("final_metrics"))
    return {
        **found,
        **({"usage": usage} if usage else {}),
        **({"names": sorted({*names, *found.get("names", ())})} if names else {}),
        "attributes": {**further, "agent": agent},
    }


def _atif_turns(step: Mapping[str, Any], agent: Mapping[str, Any]) -> list[Any]:
    """Return a step as messages: what was said with the tools it calls, and what they returned."""
    source = step.get("source")
    turn: dict[str, Any] = {"role": "assistant" if source == "agent" else source, "content": step.get("message")}
    if source == "agent":
        calls = step.get("tool_calls")
        turn["tool_calls"] = calls
        turn["model"] = step.get("model_name")
        turn["usage"] = step.get("metrics")
        if step.get("reasoning_content"):
            turn["reasoning_content"] = step["reasoning_content"]
        if isinstance(agent.get("name"), str) and agent["name"]:
            turn["name"] = agent["name"]
    turn["timestamp"] = step.get("timestamp")
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    found = [turn]
    for result in results if isinstance(results, list) else ():
        if isinstance(result, dict):
            came = result.get("content", result.get("subagent_trajectory_ref"))
            id = result.get("source_call_id")
            # What the surroundings show without having been asked is no result of a tool.
            answers = id is not None or bool(step.get("tool_calls"))
            about = {"role": "tool", "tool_call_id": id} if answers else {"role": "user", "name": "observation"}
            found.append({**about, "content": came})
    return found
