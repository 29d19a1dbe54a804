"""LangSmith: runs as its SDK sends them and its export functions write them, one trajectory for each trace.

A run (a span, in other words) has a `run_type`. Runs come flat with `trace_id` and `parent_run_id`, nested in
`child_runs`, under `runs`, or as `post` and `patch`, which carry the beginning and the end of a run separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault, shown
from woodrat.importers import span_tree, wrappers
from woodrat.importers.fields import duration_ms, time_of, tokens
from woodrat.importers.format import Format
from woodrat.runs import chat_message as chat
from woodrat.runs.rewards import named_score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.importers.format import ParsedDocument
    from woodrat.runs.recordings import Placed

LEVELS_MAX: Final = 60
"""Deepest nesting of runs."""
_QUESTIONS: Final = ("input", "question", "query", "prompt", "text")
_ANSWERS: Final = ("output", "answer", "text", "content", "result")


def _is_run(item: Mapping[str, Any]) -> bool:
    return "run_type" in item


def _is_batch(document: Mapping[str, Any]) -> bool:
    """Return True if a document comes from the SDK: with separate beginnings and ends."""
    return isinstance(document.get("post"), list)


def _batch_runs(document: Mapping[str, Any], faults: list[Fault]) -> list[Placed]:
    """Return the runs of an SDK document, each joined with its end."""
    posted = [(run, f"/post/{number}") for number, run in enumerate(document["post"])]
    patched = document.get("patch")
    late = [(run, f"/patch/{number}") for number, run in enumerate(patched if isinstance(patched, list) else ())]
    found: dict[str, Placed] = {}
    for run, path in [*posted, *late]:
        if not isinstance(run, dict):
            faults.append(Fault(path, f"expected a run, got {shown(run)}", "Send the runs as the SDK wrote them."))
            continue
        # A patch of the JavaScript SDK names no id, and ends its dotted order with it.
        id = str(run.get("id") or str(run.get("dotted_order") or run.get("trace_id") or "")[-36:])
        begun = found.get(id)
        said = {name: value for name, value in run.items() if value not in (None, [], {})}
        found[id] = (run, path) if begun is None else ({**begun[0], **said}, begun[1])
    return list(found.values())


def _trajectories(runs: Iterable[Placed], faults: list[Fault]) -> list[tuple[dict[str, Any], str]]:
    """Return the trajectories of runs, one for each trace, with the place of its first run."""
    flat = [placed for run, path in runs for placed in _flat(run, path, faults)]
    found = []
    for trace in span_tree.by_trace(flat, ("trace_id", "root_id")):
        before = len(faults)
        spans = span_tree.each_once(trace, "id", faults)
        span_tree.check_parents(spans, "id", "parent_run_id", faults)
        if len(faults) == before:
            found.append((_trace([span for span, _ in spans]), trace[0][1]))
    return found


def _flat(run: Any, path: str, faults: list[Fault], outer: Mapping[str, Any] | None = None) -> Iterator[Placed]:
    """Yield a run and the runs inside it, each with its parent."""
    todo: list[tuple[Any, str, Mapping[str, Any] | None, int]] = [(run, path, outer, 0)]
    while todo:
        item, where, above, level = todo.pop(0)
        if not isinstance(item, dict) or level > LEVELS_MAX:
            problem = f"got {shown(item)}" if level <= LEVELS_MAX else f"runs are nested more than {LEVELS_MAX} deep"
            faults.append(Fault(where, problem, "Send runs as LangSmith writes them."))
            continue
        if above is not None:
            item = {"parent_run_id": above.get("id"), "trace_id": above.get("trace_id") or above.get("id"), **item}
        elif item.get("trace_id") is None and item.get("parent_run_id") is None and item.get("child_runs"):
            item = {**item, "trace_id": item.get("id")}
        inner = item.get("child_runs")
        yield {name: value for name, value in item.items() if name != "child_runs"}, where
        if isinstance(inner, list):
            todo += [(child, f"{where}/child_runs/{n}", item, level + 1) for n, child in enumerate(inner)]


def _trace(spans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the trajectory of one trace: its root is the run, models and tools are its steps."""
    known = {str(span["id"]) for span in spans if span.get("id") is not None}
    root = next((span for span in spans if str(span.get("parent_run_id")) not in known), spans[0])
    inputs, outputs = _object(root.get("inputs")), root.get("outputs")
    found: dict[str, Any] = {"id": str(root.get("trace_id") or root.get("id") or "")}
    if not found["id"]:
        del found["id"]
    found["inputs"] = inputs
    question = next((inputs[name] for name in _QUESTIONS if isinstance(inputs.get(name), str)), None)
    if question is not None:
        found["query"] = question
        found["inputs"] = {name: value for name, value in inputs.items() if value is not question}
    elif (asked := wrappers.question(inputs)) is not None:
        found["query"] = asked
    elif isinstance(root.get("name"), str):
        found["query"] = root["name"]
    answer = _answer(outputs)
    if answer is not None:
        found["answer"] = answer
    if root.get("error"):
        found["error"] = _error(root["error"])
    found |= _times(root, ended=True)
    metadata = _object(_object(root.get("extra")).get("metadata"))
    conversation = span_tree.text_of(metadata, "session_id", "thread_id", "conversation_id")
    if conversation is not None:
        found["conversation"] = conversation
    usage = tokens(root) or _usage(root)
    if usage:
        found["usage"] = usage
    further = {
        name: root[name] for name in ("tags", "session_name", "total_cost", "reference_example_id") if root.get(name)
    }
    if metadata:
        further["metadata"] = metadata
    names = {name for span in spans for name in _names(span)}
    if names:
        found["names"] = sorted(names)
    if further:
        found["attributes"] = further
    inner = [span for span in spans if span is not root]
    inner.sort(key=lambda span: (time_of(span.get("start_time")) or "", str(span.get("dotted_order") or "")))
    alone = [root] if root.get("run_type") in ("llm", "tool", "retriever", "embedding") and not inner else []
    found["steps"] = [_step(span, root.get("id")) for span in [*inner, *alone]]
    judged = [each for span in spans for each in _feedback(span, None if span is root else span.get("id"))]
    return {**found, "judgements": judged} if judged else found


def _names(span: Mapping[str, Any]) -> Iterator[str]:
    """Yield the agent name in a span."""
    metadata = _object(_object(span.get("extra")).get("metadata"))
    for name in ("lc_agent_name", "ls_agent_name", "agent_name"):
        if isinstance(metadata.get(name), str) and metadata[name]:
            yield metadata[name][:256]


def _step(span: Mapping[str, Any], root: Any) -> dict[str, Any]:
    step: dict[str, Any] = {}
    if span.get("id") is not None:
        step["id"] = str(span["id"])
    if span.get("parent_run_id") is not None and span["parent_run_id"] != root:
        step["under"] = str(span["parent_run_id"])
    step |= _times(span)
    if span.get("error"):
        step["error"] = _error(span["error"])
    agent = next(_names(span), None)
    if agent is not None:
        step["attributes"] = {"agent": agent}
    kind, name = span.get("run_type"), str(span.get("name") or span.get("run_type") or "step")
    inputs, outputs = span.get("inputs"), span.get("outputs")
    if kind in ("llm", "embedding"):
        extra, asked_with = _object(span.get("extra")), _object(inputs)
        parameters = {**_object(extra.get("invocation_params"))}
        metadata = _object(extra.get("metadata"))
        model = metadata.get("ls_model_name") or parameters.get("model") or asked_with.get("model") or name
        asked = wrappers.messages(asked_with) or _first(inputs, ("messages", "prompts"))
        step |= {"kind": "model", "model": str(model), "messages": asked if isinstance(asked, list) else [asked]}
        step["parameters"] = {key: value for key, value in parameters.items() if key != "model"}
        usage = _usage(span) or tokens(span)
        if usage:
            step["usage"] = usage
        return step if outputs is None else {**step, "response": _response(outputs)}
    if kind in ("tool", "retriever"):
        named = _object(inputs)
        stated = chat.parsed_arguments(named["input"]) if named.keys() == {"input"} else inputs
        step |= {"kind": "tool", "name": name, "args": stated if isinstance(stated, dict) else {"input": stated}}
        if outputs is None:
            return step
        result, failed = wrappers.result(_first(outputs, ("output", "documents")))
        return {**step, **({"error": str(result)} if failed and "error" not in step else {"result": result})}
    error = step.pop("error", None)
    return {**step, "kind": "note", "text": name, **({} if error is None else {"data": {"error": error}})}


def _response(outputs: Any) -> Json:
    """Return a model's answer: its text if that is all, or the text and its tool calls."""
    told: Any = None
    choices = _object(outputs).get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        told = choices[0].get("message")
    elif isinstance(outputs, dict) and "generations" in outputs:
        told = next(iter(wrappers.messages(outputs) or ()), None)
    elif chat.unwrapped(_first(outputs, _ANSWERS)) is not None:
        told = _first(outputs, _ANSWERS)
    if isinstance(told, str):
        return told
    turn = next(iter(chat.turns(told) or ()), None) if isinstance(told, dict) else None
    if turn is None:
        return _first(outputs, _ANSWERS)
    calls: list[Json] = [{"name": call.name, "args": call.args} for call in turn.calls]
    content: Json = turn.content
    return {"content": content, "tool_calls": calls} if calls else content


def _answer(outputs: Any) -> Json:
    found = _first(outputs, _ANSWERS)
    if isinstance(outputs, dict) and found is outputs and ("choices" in outputs or "generations" in outputs):
        return _response(outputs)
    told: Json = wrappers.answer(found)
    return told


def _usage(span: Mapping[str, Any]) -> dict[str, int]:
    outputs = _object(span.get("outputs"))
    found = tokens(outputs.get("usage_metadata")) or tokens(outputs.get("usage"))
    if not found:
        found = tokens(_object(outputs.get("llm_output")).get("token_usage"))
    return found


def _feedback(span: Mapping[str, Any], about: Any) -> Iterator[dict[str, Any]]:
    """Yield the evaluations of a run: single feedback, or the averages in the list of runs."""
    listed = span.get("feedback")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            value = each.get("score") if each.get("score") is not None else each.get("value")
            found = named_score(each.get("key"), value, about=about, reason=each.get("comment"))
            if found is not None:
                yield found
    if not listed:
        for key, stats in _object(span.get("feedback_stats")).items():
            average = stats.get("avg") if isinstance(stats, dict) else None
            found = named_score(key, average, about=about)
            if found is not None:
                yield found


def _times(span: Mapping[str, Any], ended: bool = False) -> dict[str, Any]:
    """Return the times of a run under Woodrat's names; an unreadable time keeps its own name."""
    found: dict[str, Any] = {}
    for ours, theirs in (("started_at", "start_time"), ("ended_at", "end_time"))[: 2 if ended else 1]:
        if span.get(theirs) is not None:
            time = time_of(span[theirs])
            found |= {theirs: span[theirs]} if time is None else {ours: time}
    if not ended and (lasted := duration_ms(span.get("start_time"), span.get("end_time"))) is not None:
        found["duration_ms"] = lasted
    return found


def _error(error: Any) -> Any:
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return {"message": error["message"], **({"type": error["type"]} if isinstance(error.get("type"), str) else {})}
    return str(error)


def _first(found: Any, names: Iterable[str]) -> Json:
    """Return the member that holds a result, or else all of it."""
    if isinstance(found, dict):
        for name in names:
            if name in found:
                value: Json = found[name]
                return value
    whole: Json = found
    return whole


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _read_runs(items: Sequence[Placed], reading: ParsedDocument) -> None:
    reading.trajectories += _trajectories(items, reading.faults)


def _read_batches(items: Sequence[Placed], reading: ParsedDocument) -> None:
    for item, path in items:
        before = len(reading.faults)
        runs = _batch_runs(item, reading.faults)
        if len(reading.faults) == before:
            reading.trajectories += _trajectories([(run, f"{path}{at}") for run, at in runs], reading.faults)


FORMATS: Final = (
    Format("LangSmith", _is_run, _read_runs, parts=True),
    Format("LangSmith batch", _is_batch, _read_batches),
    Format("LangSmith run", _is_run, _read_runs),
)
