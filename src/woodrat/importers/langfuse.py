"""Langfuse: traces and their observations, which correspond to spans."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.errors import Fault, shown
from woodrat.importers import span_tree, wrappers
from woodrat.importers.format import Format
from woodrat.importers.span_files import dotted, hex_id, nanoseconds
from woodrat.importers.spans import ERROR, NANOS_MAX, Span
from woodrat.records import replace
from woodrat.runs.rewards import named_score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from woodrat.importers.format import ParsedDocument
    from woodrat.runs.recordings import Placed

_OBSERVATION_KINDS: Final = {
    "GENERATION": "LLM",
    "EMBEDDING": "EMBEDDING",
    "TOOL": "TOOL",
    "RETRIEVER": "RETRIEVER",
    "GUARDRAIL": "GUARDRAIL",
    "AGENT": "AGENT",
    "CHAIN": "CHAIN",
    "EVALUATOR": "EVALUATOR",
}
"""What Langfuse calls an observation, and OpenInference a span; the others say it in their attributes, if at all."""
_OBSERVATION_TYPES: Final = frozenset({*_OBSERVATION_KINDS, "SPAN", "EVENT"})
_MADE_BY_STORE: Final = frozenset(
    {"id", "traceId", "parentObservationId", "type", "name", "startTime", "endTime", "input", "output", "model"}
    | {"modelParameters", "usageDetails", "usage", "level", "statusMessage", "metadata", "projectId", "createdAt"}
    | {"updatedAt", "internalModelId", "scores", "promptTokens", "completionTokens", "totalTokens", "unit"}
    | {"inputUsage", "outputUsage", "totalUsage", "toolCalls", "toolCallNames", "toolDefinitions"}
)
"""Members of an observation that map to members of a span, or only concern storage."""


def _is_observation(item: Mapping[str, Any]) -> bool:
    return "traceId" in item and str(item.get("type")) in _OBSERVATION_TYPES


def _is_trace(document: Mapping[str, Any]) -> bool:
    return isinstance(document.get("observations"), list)


def _spans(
    documents: Iterable[tuple[Mapping[str, Any], list[Placed], str]], faults: list[Fault]
) -> tuple[list[Span], list[dict[str, Any]]]:
    """Return the spans of traces of Langfuse, each with its observations and its place, and their scores."""
    found: list[Span] = []
    judged: list[dict[str, Any]] = []
    for trace, listed, path in documents:
        before = len(faults)
        id = trace.get("id")
        named = id if isinstance(id, str) and id else next((item.get("traceId") for item, _ in listed), None)
        if not isinstance(named, str) or not named:
            faults.append(Fault(f"{path}/id", f"the trace id is {shown(id)}", "Send the trace with its id."))
            continue
        for item, place in listed:
            if not isinstance(item.get("id"), str) or not item["id"]:
                problem = f"the id is {shown(item.get('id'))}"
                faults.append(Fault(f"{place}/id", problem, "Send each observation with its id, as text."))
            if nanoseconds(item.get("startTime")) is None:
                problem = f"it began at {shown(item.get('startTime'))}"
                faults.append(Fault(f"{place}/startTime", problem, "Send when it began, as RFC 3339."))
        once = span_tree.each_once(listed, "id", faults)
        span_tree.check_parents(once, "id", "parentObservationId", faults)
        if len(faults) > before:
            continue
        hexed = hex_id(named, 32)
        known = {item["id"] for item, _ in once}
        made = [_observed(item, hexed, known) for item, _ in once]
        roots = [span for span in made if span.parent is None]
        outer = _trace_span(trace, hexed, made)
        if outer is not None and (len(roots) != 1 or roots[0].name != outer.name):
            made = [outer, *(span if span.parent is not None else _inside(span, outer.id) for span in made)]
        elif outer is not None:
            made = [_with_trace(span, outer) if span is roots[0] else span for span in made]
        found += made
        judged += [{"trace": hexed, **each} for each in _scores(trace, once)]
    return found, judged


def _trace_span(trace: Mapping[str, Any], hexed: str, made: list[Span]) -> Span | None:
    """Return the span of a trace itself; None if nothing but its id is known."""
    if not trace.keys() - {"id", "scores"}:
        return None
    said: dict[str, Any] = {}
    for name, value in (("input.value", trace.get("input")), ("output.value", trace.get("output"))):
        if value is not None:
            said[name] = _as_text(_unquoted(value))
    for name, member in (("session.id", "sessionId"), ("user.id", "userId")):
        if isinstance(trace.get(member), str):
            said[name] = trace[member]
    said |= {
        f"langfuse.trace.{name}": trace[name]
        for name in ("tags", "release", "version", "environment")
        if trace.get(name)
    }
    stated = nanoseconds(trace.get("timestamp"))
    start = min([span.start_ns for span in made] or [stated or 0])
    if not 0 < start <= NANOS_MAX:
        return None
    metadata = _unquoted(trace.get("metadata"))
    resource = metadata.get("resourceAttributes") if isinstance(metadata, Mapping) else None
    return Span(
        trace=hexed,
        id=sha256(f"{hexed} trace".encode()).hexdigest()[:16],
        parent=None,
        name=str(trace.get("name") or "trace"),
        start_ns=start,
        end_ns=max([start, *(span.end_ns for span in made)]),
        attributes=said,
        resource=dict(resource) if isinstance(resource, Mapping) else {},
    )


def _inside(span: Span, parent: str) -> Span:
    return replace(span, parent=parent)


def _with_trace(span: Span, trace: Span) -> Span:
    """Return the root of a trace with the members that only the trace has."""
    return replace(
        span, attributes={**trace.attributes, **span.attributes}, resource={**trace.resource, **span.resource}
    )


def _observed(item: Mapping[str, Any], trace: str, known: set[str]) -> Span:
    metadata = _unquoted(item.get("metadata"))
    metadata = metadata if isinstance(metadata, Mapping) else {}
    attributes = metadata.get("attributes")
    said: dict[str, Any] = dotted(attributes) if isinstance(attributes, Mapping) else {}
    kind = _OBSERVATION_KINDS.get(str(item.get("type")))
    if kind is not None:
        said["openinference.span.kind"] = kind
    for name, member in (("input.value", "input"), ("output.value", "output")):
        value = _unquoted(item.get(member))
        if value is not None:
            said[name] = _as_text(value)
    answered = _unquoted(item.get("output"))
    if kind == "LLM" and isinstance(answered, Mapping) and "role" in answered:
        said.setdefault("gen_ai.output.messages", _as_text([dict(answered)]))
    if isinstance(item.get("model"), str) and item["model"]:
        said.setdefault("llm.model_name", item["model"])
    parameters = _unquoted(item.get("modelParameters"))
    if isinstance(parameters, Mapping) and parameters:
        said.setdefault("llm.invocation_parameters", _as_text(dict(parameters)))
    usage = item.get("usageDetails") or item.get("usage") or {}
    for name, members in _USAGE.items():
        counts = (usage.get(member) for member in members) if isinstance(usage, Mapping) else ()
        count = next((count for count in counts if type(count) is int and count >= 0), None)
        if count is not None:
            said.setdefault(name, count)
    if kind == "TOOL":
        said.setdefault("tool.name", str(item.get("name") or "tool"))
    if kind == "AGENT" and isinstance(item.get("name"), str):
        said.setdefault("agent.name", item["name"])
    rest = {
        name: value for name, value in metadata.items() if name not in ("attributes", "resourceAttributes", "scope")
    }
    rest |= {name: value for name, value in item.items() if name not in _MADE_BY_STORE}
    said |= {f"langfuse.{name}": value for name, value in rest.items() if value not in (None, [], {}, "", 0)}
    start, end = nanoseconds(item.get("startTime")), nanoseconds(item.get("endTime"))
    assert start is not None
    parent = item.get("parentObservationId")
    resource = metadata.get("resourceAttributes")
    return Span(
        trace=trace,
        id=hex_id(item["id"], 16),
        parent=hex_id(parent, 16) if isinstance(parent, str) and parent in known else None,
        name=str(item.get("name") or ""),
        start_ns=start,
        end_ns=start if end is None else max(start, end),
        attributes=said,
        status=ERROR if item.get("level") == "ERROR" else 0,
        message=str(item.get("statusMessage") or ""),
        resource=dict(resource) if isinstance(resource, Mapping) else {},
    )


_USAGE: Final = {
    "llm.token_count.prompt": ("input", "promptTokens", "prompt_tokens", "input_tokens"),
    "llm.token_count.completion": ("output", "completionTokens", "completion_tokens", "output_tokens"),
}


def _scores(trace: Mapping[str, Any], listed: list[Placed]) -> Iterator[dict[str, Any]]:
    """Yield the scores of a trace and of its observations."""
    places = [(trace.get("scores"), None), *((item.get("scores"), item["id"]) for item, _ in listed)]
    for scores, of in places:
        for score in scores if isinstance(scores, list) else ():
            if isinstance(score, Mapping):
                value = score.get("value")
                if score.get("dataType") == "BOOLEAN" and value in (0, 1):
                    value = bool(value)
                elif score.get("dataType") == "CATEGORICAL" or value is None:
                    value = score.get("stringValue")
                id = score.get("observationId") or of
                about = hex_id(id, 16) if isinstance(id, str) else None
                found = named_score(score.get("name"), value, about=about, reason=score.get("comment"))
                if found is not None:
                    yield found


def _unquoted(value: Any) -> Any:
    """Return a value that may be JSON as text, or JSON as text as text."""
    for _ in range(2):
        if isinstance(value, str) and value[:1] == '"' and value[-1:] == '"' and len(value) > 1:
            value = wrappers.loaded(value)
        else:
            value = wrappers.parsed(value)
    return value


def _as_text(value: Any) -> Any:
    """Return a value as an attribute of a span has it: an object or a list as JSON text."""
    return form.serialise(value).decode() if isinstance(value, dict | list) else value


def _read_traces(items: Sequence[Placed], reading: ParsedDocument) -> None:
    for item, path in items:
        trace = item["trace"] if isinstance(item.get("trace"), dict) else item
        where = f"{path}/observations"
        observed: list[Placed] = []
        for number, each in enumerate(item["observations"]):
            if isinstance(each, dict):
                observed.append((each, f"{where}/{number}"))
            else:
                remedy = "Send the trace with its observations, as an export has it."
                problem = f"expected an observation, got {shown(each)}"
                reading.faults.append(Fault(f"{where}/{number}", problem, remedy))
        about = {name: value for name, value in trace.items() if name != "observations"}
        _read([(about, observed, path)], reading)


def _read_observations(items: Sequence[Placed], reading: ParsedDocument) -> None:
    by_trace: dict[str, list[Placed]] = {}
    for item, path in items:
        by_trace.setdefault(str(item["traceId"]), []).append((item, path))
    _read([({"id": name}, listed, listed[0][1]) for name, listed in by_trace.items()], reading)


def _read(traces: Iterable[tuple[Mapping[str, Any], list[Placed], str]], reading: ParsedDocument) -> None:
    spans, judged = _spans(traces, reading.faults)
    reading.spans += spans
    reading.judged += judged


FORMATS: Final = (
    Format("Langfuse observations", _is_observation, _read_observations, parts=True),
    Format("Langfuse trace", _is_trace, _read_traces),
)
