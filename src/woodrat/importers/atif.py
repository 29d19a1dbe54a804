"""ATIF: the Agent Trajectory Interchange Format, an agent and its steps, each of a `source`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault
from woodrat.importers import transcript
from woodrat.importers.fields import tokens
from woodrat.importers.format import Format

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from woodrat.importers.format import ParsedDocument
    from woodrat.runs.recordings import Placed


def _is_atif(document: Mapping[str, Any]) -> bool:
    version = document.get("schema_version")
    return isinstance(version, str) and version.startswith("ATIF") and isinstance(document.get("steps"), list)


def _trajectory(document: Mapping[str, Any], path: str, faults: list[Fault]) -> dict[str, Any] | None:
    """Return an ATIF document as a trajectory: its steps are the turns of a chat."""
    agent = document.get("agent") if isinstance(document.get("agent"), dict) else {}
    assert isinstance(agent, dict)
    said: list[Any] = []
    origin: list[int] = []
    """The step of each message."""
    for number, step in enumerate(document["steps"]):
        # the transcript reports the fault of an invalid step
        said += _turns(step, agent) if isinstance(step, dict) else [step]
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


def _turns(step: Mapping[str, Any], agent: Mapping[str, Any]) -> list[Any]:
    """Return a step as messages: its text with its tool calls, and their results."""
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
            # An observation without a tool call is not a tool result.
            answers = id is not None or bool(step.get("tool_calls"))
            about = {"role": "tool", "tool_call_id": id} if answers else {"role": "user", "name": "observation"}
            found.append({**about, "content": came})
    return found


def _read(items: Sequence[Placed], reading: ParsedDocument) -> None:
    for item, path in items:
        found = _trajectory(item, path, reading.faults)
        if found is not None:
            reading.trajectories.append((found, path))


FORMATS: Final = (Format("ATIF", _is_atif, _read),)
