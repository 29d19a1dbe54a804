"""Span files: spans as SDKs and trace stores write them into files, rather than as OTLP.

Phoenix (its REST API, its data frames as rows), the console exporters of the Python and the JavaScript SDK, any-agent,
and Langfuse, whose observations are spans by another name. All become the spans that OTLP gives, so that one
translation makes runs of them. An id that is no hex of OTLP's length is replaced by a digest of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, moment
from woodrat.errors import Fault, shown
from woodrat.runs.foreign import span_tree, wrappers
from woodrat.runs.foreign.fields import named_score, time_of
from woodrat.runs.foreign.spans import ERROR, NANOS_MAX, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from woodrat.runs.foreign.span_tree import Placed

_HEX: Final = {32: re.compile(r"(?:0x)?([0-9a-f]{32})"), 16: re.compile(r"(?:0x)?([0-9a-f]{16})")}
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
"""Members of an observation that have a place in a span, or only say how it is stored."""
_STORED: Final = frozenset({"id", "name", "context", "parent_id", "start_time", "end_time", "status_code"})


def is_span(item: Any) -> bool:
    """Return whether an item is a span as a tool writes it into a file."""
    if not isinstance(item, Mapping):
        return False
    if "context.span_id" in item and "context.trace_id" in item:
        return True
    context = item.get("context", item.get("spanContext"))
    return isinstance(context, Mapping) and bool({"trace_id", "traceId"} & context.keys()) and "name" in item


def is_observation(item: Any) -> bool:
    """Return whether an item is an observation of Langfuse."""
    return isinstance(item, Mapping) and "traceId" in item and str(item.get("type")) in _OBSERVATION_TYPES


def is_langfuse_trace(document: Any) -> bool:
    """Return whether a document is a trace of Langfuse with its observations."""
    return isinstance(document, Mapping) and isinstance(document.get("observations"), list)


# ------------------------------------------------------------------------------------------------------------- spans


def spans(items: Iterable[Placed], faults: list[Fault]) -> tuple[list[Span], list[dict[str, Any]]]:
    """Return spans of files, and what was thought of them; a span that cannot be read is a fault."""
    flat = [({**_nested(item), "span": _own_id(item), "above": _above(item)}, path) for item, path in items]
    found: list[Span] = []
    judged: list[dict[str, Any]] = []
    for trace in span_tree.by_trace(flat, ("trace",)):
        listed = span_tree.each_once(trace, "span", faults)
        span_tree.check_parents(listed, "span", "above", faults)
        for item, path in listed:
            span = _span(item, path, faults)
            if span is not None:
                found.append(span)
                judged += [{"trace": span.trace, **each} for each in _annotations(item, span.id)]
    return found, judged


def _nested(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a span; a row of a data frame has the names of its members in one, with dots between."""
    if "context.span_id" not in item:
        context = item.get("context", item.get("spanContext"))
        assert isinstance(context, Mapping)
        return {**item, "trace": _plain_id(context.get("trace_id", context.get("traceId")), 32)}
    found: dict[str, Any] = {"attributes": {}}
    for name, value in item.items():
        first, dot, rest = name.partition(".")
        if dot and first == "attributes":
            found["attributes"][rest] = value
        elif not dot:
            found[name] = value
    return {**found, "context": {"span_id": item["context.span_id"]}, "trace": _plain_id(item["context.trace_id"], 32)}


def _own_id(item: Mapping[str, Any]) -> Any:
    context = item.get("context", item.get("spanContext"))
    found = item.get("context.span_id")
    if isinstance(context, Mapping):
        found = context.get("span_id", context.get("spanId"))
    return _plain_id(found)


def _above(item: Mapping[str, Any]) -> Any:
    parent = item.get("parent")
    found = parent.get("span_id", parent.get("spanId")) if isinstance(parent, Mapping) else None
    if found is None:
        outer = item.get("parentSpanContext")
        found = outer.get("spanId") if isinstance(outer, Mapping) else None
    found = found if found is not None else item.get("parent_id", item.get("parentSpanId", item.get("parentId")))
    found = _plain_id(found)
    return None if not found or not str(found).removeprefix("0x").strip("0") else found


def _plain_id(value: Any, digits: int = 16) -> Any:
    """Return an id as text; some tools write it as the number it is, which is text here where it is a long one."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and 16 < len(value) < 40 and len(value) != digits:
        value = int(value)
    return f"{value:0{digits}x}" if type(value) is int and value >= 0 else value


def _span(item: Mapping[str, Any], path: str, faults: list[Fault]) -> Span | None:
    before = len(faults)
    for name, member in (("trace id", "trace"), ("span id", "span")):
        if not isinstance(item.get(member), str) or not item[member]:
            problem = f"the {name} is {shown(item.get(member))}"
            faults.append(Fault(f"{path}/context", problem, "Send the ids of the span as text."))
    if item["above"] is not None and not isinstance(item["above"], str):
        faults.append(Fault(f"{path}/parent_id", f"got {shown(item['above'])}", "Send the parent's span id as text."))
    start = _nanos(item.get("start_time", item.get("startTime")))
    if start is None:
        problem = f"it began at {shown(item.get('start_time', item.get('startTime')))}"
        faults.append(Fault(f"{path}/start_time", problem, "Send when the span began, as RFC 3339."))
    attributes = item.get("attributes") or {}
    if not isinstance(attributes, Mapping):
        faults.append(Fault(f"{path}/attributes", f"got {shown(attributes)}", "Send the attributes by name."))
    if len(faults) > before or start is None:
        return None
    end = _nanos(item.get("end_time", item.get("endTime")))
    said = _dotted(attributes)
    kind = item.get("span_kind")
    if isinstance(kind, str) and kind.isupper() and kind != "UNKNOWN":
        said.setdefault("openinference.span.kind", kind)
    status, words = _status(item)
    resource = item.get("resource")
    about = resource.get("attributes", resource.get("_attributes")) if isinstance(resource, Mapping) else None
    return Span(
        trace=_digits(item["trace"], 32),
        id=_digits(item["span"], 16),
        parent=None if item["above"] is None else _digits(item["above"], 16),
        name=str(item.get("name") or ""),
        start_ns=start,
        end_ns=start if end is None else max(start, end),
        attributes=said,
        events=tuple(_events(item.get("events"))),
        status=status,
        message=words,
        resource=dict(about) if isinstance(about, Mapping) else {},
        scope=_scope(item),
    )


def _scope(item: Mapping[str, Any]) -> str:
    scope = item.get("instrumentationScope", item.get("instrumentation_scope"))
    return str(scope.get("name") or "") if isinstance(scope, Mapping) else ""


def _status(item: Mapping[str, Any]) -> tuple[int, str]:
    """Return how a span ended, as OTLP counts it, and what it says of it."""
    stated = item.get("status")
    code, words = item.get("status_code"), item.get("status_message")
    if isinstance(stated, Mapping):
        code = stated.get("status_code", stated.get("code", code))
        words = stated.get("description", stated.get("message", words))
    failed = code == ERROR or (isinstance(code, str) and code.upper().rpartition("_")[2].endswith("ERROR"))
    return (ERROR if failed else 0), words if isinstance(words, str) else ""


def _events(listed: Any) -> Iterator[dict[str, Any]]:
    for event in listed if isinstance(listed, list) else ():
        if isinstance(event, Mapping):
            said = event.get("attributes")
            at = _nanos(event.get("timestamp", event.get("time"))) or 0
            attributes = dict(said) if isinstance(said, Mapping) else {}
            yield {"name": str(event.get("name") or ""), "time_ns": at, "attributes": attributes}


def _annotations(item: Mapping[str, Any], span: str) -> Iterator[dict[str, Any]]:
    """Yield what Phoenix has as annotations of a span."""
    for place in ("annotations", "span_annotations"):
        listed = item.get(place)
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, Mapping):
                result: Any = each.get("result") if isinstance(each.get("result"), Mapping) else each
                value = result.get("score") if result.get("score") is not None else result.get("label")
                about = None if item["above"] is None else span
                found = named_score(each.get("name"), value, about=about, reason=result.get("explanation"))
                if found is not None:
                    yield found


# --------------------------------------------------------------------------------------------------------- Langfuse


def observations(
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
            if _nanos(item.get("startTime")) is None:
                problem = f"it began at {shown(item.get('startTime'))}"
                faults.append(Fault(f"{place}/startTime", problem, "Send when it began, as RFC 3339."))
        once = span_tree.each_once(listed, "id", faults)
        span_tree.check_parents(once, "id", "parentObservationId", faults)
        if len(faults) > before:
            continue
        hexed = _digits(named, 32)
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
    """Return the span that a trace itself is; none where nothing is known of it but its id."""
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
    stated = _nanos(trace.get("timestamp"))
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
    from woodrat.records import replace

    return replace(span, parent=parent)


def _with_trace(span: Span, trace: Span) -> Span:
    """Return the root of a trace with what only the trace says."""
    from woodrat.records import replace

    return replace(
        span, attributes={**trace.attributes, **span.attributes}, resource={**trace.resource, **span.resource}
    )


def _observed(item: Mapping[str, Any], trace: str, known: set[str]) -> Span:
    metadata = _unquoted(item.get("metadata"))
    metadata = metadata if isinstance(metadata, Mapping) else {}
    attributes = metadata.get("attributes")
    said: dict[str, Any] = _dotted(attributes) if isinstance(attributes, Mapping) else {}
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
    start, end = _nanos(item.get("startTime")), _nanos(item.get("endTime"))
    assert start is not None
    parent = item.get("parentObservationId")
    resource = metadata.get("resourceAttributes")
    return Span(
        trace=trace,
        id=_digits(item["id"], 16),
        parent=_digits(parent, 16) if isinstance(parent, str) and parent in known else None,
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
                about = _digits(id, 16) if isinstance(id, str) else None
                found = named_score(score.get("name"), value, about=about, reason=score.get("comment"))
                if found is not None:
                    yield found


# ----------------------------------------------------------------------------------------------------------- values


def _digits(id: str, count: int) -> str:
    """Return an id as OTLP has it: hex of a length; of any other id a digest."""
    found = _HEX[count].fullmatch(id.lower())
    if found is not None and found[1].strip("0"):
        return found[1]
    short = id.removeprefix("0x").lower()
    if (
        short.isalnum()
        and len(short) < count
        and re.fullmatch("[0-9a-f]+", short)
        and short.strip("0")
        and id[:2] == "0x"
    ):
        return short.zfill(count)
    return sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:count]


def _nanos(value: Any) -> int | None:
    """Return a time in nanoseconds since 1970; the JavaScript SDK writes seconds and nanoseconds as a pair."""
    if isinstance(value, list) and len(value) == 2 and all(type(part) is int for part in value):
        found = value[0] * 1_000_000_000 + value[1]
    elif type(value) is int and value > 100_000_000_000_000_000:
        found = value
    else:
        text = time_of(int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value)
        if text is None:
            return None
        found = moment.to_micros(moment.parse(text)) * 1_000
    return found if 0 < found <= NANOS_MAX else None


def _dotted(attributes: Mapping[str, Any], levels: int = 12) -> dict[str, Any]:
    """Return attributes by their whole names; some tools nest them by the parts between the dots."""
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, Mapping) and value and levels and not name.endswith((".value", "metadata", "parameters")):
            found |= {f"{name}.{rest}": inner for rest, inner in _dotted(value, levels - 1).items()}
        else:
            found[name] = value
    return found


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
