"""Spans: the content of an OTLP request, from its protobuf or its JSON, as plain values.

Both encodings of one span give the same value. Ids in OTLP's JSON are hex, unlike those of protobuf's own JSON. A span
that cannot be a part of any trace is reported and skipped; the others count.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from woodrat.errors import Fault, Refused, Unavailable, shown
from woodrat.records import dataclass, field
from woodrat.runs.recordings import NOTHING_RECORDED

NEEDS_EXTRA: Final = (
    "Protobuf needs the extra `otlp`. Nothing was recorded. Install it: pip install 'woodrat[otlp]', or send JSON."
)
ERROR: Final = 2
"""The status code of a span that failed."""
REMOTE: Final = 0x300
"""Flags of a span whose parent is known to be in another process."""
NANOS_MAX: Final = 4_102_444_800_000_000_000
"""The latest valid time of a span: the year 2100."""
DEPTH_MAX: Final = 64
"""Deepest nesting of a value; deeper parts are dropped."""
_SIGNALS: Final = frozenset({"resourceSpans", "resourceLogs", "resourceMetrics"})
"""Members of an OTLP document; only the first is read."""
_TRACE = re.compile(r"[0-9a-f]{32}")
_SPAN = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Span:
    """One span."""

    trace: str
    """Id of its trace, 32 hex digits."""
    id: str
    """Its own id, 16 hex digits."""
    parent: str | None
    """Id of the parent span; None for a root."""
    name: str
    """Its name."""
    start_ns: int
    """When it began, in nanoseconds since 1970."""
    end_ns: int
    """When it ended; when it began, where that is not known."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Its attributes, as plain values."""
    events: tuple[Mapping[str, Any], ...] = ()
    """Its events: name, time and attributes of each."""
    links: tuple[Mapping[str, Any], ...] = ()
    """Other spans it names."""
    kind: int = 0
    """The span's kind, as OTLP counts them."""
    status: int = 0
    """How it ended, as OTLP counts it."""
    message: str = ""
    """Its status message."""
    resource: Mapping[str, Any] = field(default_factory=dict)
    """What produced it."""
    scope: str = ""
    """The instrumentation that made it."""
    flags: int = 0
    """The sender's OTLP flags about its parent."""

    @property
    def enters(self) -> bool:
        """Whether the trace enters its process here: it has no parent, or one in another process."""
        return self.parent is None or self.flags & REMOTE == REMOTE


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """The spans of one request."""

    spans: tuple[Span, ...]
    """Valid spans."""
    rejected: tuple[Fault, ...] = ()
    """Faults of the other spans, one each."""


def from_json(data: bytes | str) -> SpanBatch:
    """Return the spans of a request in JSON, or of several, one a line."""
    try:
        documents = [json.loads(data)]
    except ValueError as error:
        lines = data.splitlines()
        try:
            documents = [json.loads(line) for line in lines if line.strip()]
        except (ValueError, RecursionError):
            documents = []
        if len(documents) < 2:
            remedy = "Send an ExportTraceServiceRequest as OTLP writes it."
            raise Refused([Fault("(body)", f"is not JSON ({error})", remedy)], NOTHING_RECORDED) from error
    except RecursionError as error:
        remedy = "Send an ExportTraceServiceRequest as OTLP writes it."
        raise Refused([Fault("(body)", "is nested too deeply", remedy)], NOTHING_RECORDED) from error
    return from_documents(documents)


def from_documents(documents: Iterable[Any]) -> SpanBatch:
    """Return the spans of requests in JSON that were parsed already."""
    gathered = _Gathered()
    for document in documents:
        for resource_spans in _list(_telling(_object(document, "(body)")), "resourceSpans"):
            about = _object(resource_spans, "resourceSpans").get("resource") or {}
            resource = _attributes(_list(_object(about, "resource"), "attributes"))
            for scope_spans in _list(resource_spans, "scopeSpans"):
                named = _object(scope_spans, "scopeSpans").get("scope") or {}
                scope = str(_object(named, "scope").get("name") or "")
                for span in _list(scope_spans, "spans"):
                    gathered.add(_told(_object(span)), resource, scope)
    return gathered.batch()


def from_protobuf(data: bytes) -> SpanBatch:
    """Return the spans of a request in protobuf."""
    gathered = _Gathered()
    for resource_spans in _request(data).resource_spans:
        resource = _pairs(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                gathered.add(_decoded(span), resource, scope_spans.scope.name)
    return gathered.batch()


def _request(data: bytes) -> Any:
    try:
        decode_error: type[Exception] = import_module("google.protobuf.message").DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError as error:
        raise Unavailable(NEEDS_EXTRA) from error
    try:
        return ExportTraceServiceRequest.FromString(data)
    except decode_error as error:
        remedy = "Send an ExportTraceServiceRequest with its content type."
        raise Refused([Fault("(body)", f"is not protobuf ({error})", remedy)], NOTHING_RECORDED) from error


def document_of_protobuf(data: bytes) -> dict[str, Any]:
    """Return a request in protobuf as the document that OTLP writes in JSON."""
    request = _request(data)
    document: dict[str, Any] = import_module("google.protobuf.json_format").MessageToDict(
        request, use_integers_for_enums=True
    )
    for resource_spans in document.get("resourceSpans", ()):
        for scope_spans in resource_spans.get("scopeSpans", ()):
            for span in scope_spans.get("spans", ()):
                for item in (span, *span.get("links", ())):
                    for name in ("traceId", "spanId", "parentSpanId"):
                        if name in item:  # protobuf's own JSON has base64, OTLP's has hex
                            item[name] = base64.b64decode(item[name]).hex()
    return document


# ---------------------------------------------------------------------------------------------------- gathering


class _Gathered:
    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._rejected: list[Fault] = []
        self._count = 0

    def add(self, told: dict[str, Any], resource: Mapping[str, Any], scope: str) -> None:
        where, self._count = f"span {self._count}", self._count + 1
        fault = _fault(told, where)
        if fault is not None:
            self._rejected.append(fault)
            return
        told["end_ns"] = max(told["start_ns"], told["end_ns"])
        self._spans.append(Span(**told, resource=resource, scope=scope))

    def batch(self) -> SpanBatch:
        return SpanBatch(tuple(self._spans), tuple(self._rejected))


def _fault(told: Mapping[str, Any], where: str) -> Fault | None:
    """Return why a span can be part of no trace."""
    for name, pattern in (("trace", _TRACE), ("id", _SPAN), ("parent", _SPAN)):
        value = told[name]
        if name == "parent" and value is None:
            continue
        if not isinstance(value, str) or not pattern.fullmatch(value) or not value.strip("0"):
            digits = 32 if name == "trace" else 16
            spelled = {"trace": "traceId", "id": "spanId", "parent": "parentSpanId"}[name]
            return Fault(where, f"{spelled} is {shown(value)}", f"Send {digits} hex digits, not all of them 0.")
    if not 0 < told["start_ns"] <= NANOS_MAX or told["end_ns"] > NANOS_MAX:
        return Fault(where, f"it began at {told['start_ns']}", "Send startTimeUnixNano, nanoseconds since 1970.")
    return None


# ------------------------------------------------------------------------------------------------------------ JSON


def _object(value: Any, where: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if where:
        remedy = "Send an ExportTraceServiceRequest: an object with resourceSpans."
        raise Refused([Fault(where, f"expected an object, got {shown(value)}", remedy)], NOTHING_RECORDED)
    return {}


def _telling(document: dict[str, Any]) -> dict[str, Any]:
    """Return an OTLP document; None for a non-empty object without OTLP signals."""
    if document and not _SIGNALS & document.keys():
        remedy = "Send an ExportTraceServiceRequest: an object with resourceSpans."
        names = ", ".join(shown(name) for name in list(document)[:3])
        raise Refused([Fault("resourceSpans", f"is missing, there are {names}", remedy)], NOTHING_RECORDED)
    return document


def _list(value: Any, name: str) -> list[Any]:
    """Return a list by its name; empty if missing; any other type there means it is not OTLP."""
    found = value.get(name) if isinstance(value, dict) else None
    if found is not None and not isinstance(found, list):
        remedy = "Send an ExportTraceServiceRequest as OTLP writes it."
        raise Refused([Fault(name, f"expected an array, got {shown(found)}", remedy)], NOTHING_RECORDED)
    return found or []


def _told(span: Mapping[str, Any]) -> dict[str, Any]:
    status = _object(span.get("status") or {})
    parent = span.get("parentSpanId")
    return {
        "trace": _hex(span.get("traceId")),
        "id": _hex(span.get("spanId")),
        "parent": _parent(_hex(parent)),
        "name": str(span.get("name") or ""),
        "start_ns": _whole(span.get("startTimeUnixNano")),
        "end_ns": _whole(span.get("endTimeUnixNano")),
        "attributes": _attributes(_list(span, "attributes")),
        "events": tuple(
            {
                "name": str(_object(event).get("name") or ""),
                "time_ns": _whole(_object(event).get("timeUnixNano")),
                "attributes": _attributes(_list(event, "attributes")),
            }
            for event in _list(span, "events")
        ),
        "links": tuple(
            {"trace": _hex(_object(link).get("traceId")), "span": _hex(_object(link).get("spanId"))}
            for link in _list(span, "links")
        ),
        "kind": _named(span.get("kind"), _KINDS),
        "status": _named(status.get("code"), _CODES),
        "message": str(status.get("message") or ""),
        "flags": _whole(span.get("flags")),
    }


_KINDS: Final = {
    f"SPAN_KIND_{name}": number
    for number, name in enumerate(("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"))
}
_CODES: Final = {f"STATUS_CODE_{name}": number for number, name in enumerate(("UNSET", "OK", "ERROR"))}


def _named(value: Any, names: Mapping[str, int]) -> int:
    """Return an enumerated value: OTLP writes numbers, protobuf's own JSON names."""
    return names.get(value, 0) if isinstance(value, str) and not value.isdigit() else _whole(value)


def _hex(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _parent(id: Any) -> Any:
    """Return the id of a parent; a root has none, or one of all zeros."""
    return None if not id or (isinstance(id, str) and not id.strip("0")) else id


def _whole(value: Any) -> int:
    """Return a whole number, which JSON of 64-bit numbers writes as text."""
    if type(value) is int:
        return value
    if isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isascii():
        return int(value) if value.removeprefix("-").isdigit() else 0
    return int(value) if isinstance(value, float) and value.is_integer() else 0


def _attributes(listed: Iterable[Any], depth: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in listed:
        if isinstance(item, dict) and isinstance(item.get("key"), str):
            found.setdefault(item["key"], _value(item.get("value"), depth))
    return found


def _value(told: Any, depth: int = 0) -> Any:
    said = _object(told)
    if not said or depth >= DEPTH_MAX:
        return None
    name, value = next(iter(said.items()))
    if name == "intValue":
        return _whole(value)
    if name == "doubleValue":
        return _double(value)
    if name == "arrayValue":
        return [_value(item, depth + 1) for item in _list(value, "values")]
    if name == "kvlistValue":
        return _attributes(_list(value, "values"), depth + 1)
    if name == "bytesValue":
        return {"base64": value} if isinstance(value, str) else None
    return value if isinstance(value, str | bool) else None


def _double(value: Any) -> Any:
    """Return a number; values that JSON lacks stay text."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if found - found == 0 else str(found)


# -------------------------------------------------------------------------------------------------------- protobuf


def _decoded(span: Any) -> dict[str, Any]:
    return {
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": _parent(span.parent_span_id.hex()),
        "name": span.name,
        "start_ns": span.start_time_unix_nano,
        "end_ns": span.end_time_unix_nano,
        "attributes": _pairs(span.attributes),
        "events": tuple(
            {"name": event.name, "time_ns": event.time_unix_nano, "attributes": _pairs(event.attributes)}
            for event in span.events
        ),
        "links": tuple({"trace": link.trace_id.hex(), "span": link.span_id.hex()} for link in span.links),
        "kind": span.kind,
        "status": span.status.code,
        "message": span.status.message,
        "flags": span.flags,
    }


def _pairs(listed: Any, depth: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in listed:
        found.setdefault(item.key, _plain(item.value, depth))
    return found


def _plain(value: Any, depth: int = 0) -> Any:
    which = value.WhichOneof("value")
    if which is None or depth >= DEPTH_MAX:
        return None
    if which == "array_value":
        return [_plain(item, depth + 1) for item in value.array_value.values]
    if which == "kvlist_value":
        return _pairs(value.kvlist_value.values, depth + 1)
    if which == "bytes_value":
        return {"base64": base64.b64encode(value.bytes_value).decode("ascii")}
    return _double(value.double_value) if which == "double_value" else getattr(value, which)
