"""Span files: spans as SDKs and trace stores write them into files, rather than as OTLP.

Phoenix (its REST API, its data frames as rows), the console exporters of the Python and the JavaScript SDK, and
any-agent. All are converted to OTLP spans, so that one translation makes runs of them. An id that is no hex of
OTLP's length is replaced by a digest of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import moment
from woodrat.errors import Fault, shown
from woodrat.importers import span_tree
from woodrat.importers.fields import time_of
from woodrat.importers.format import Format
from woodrat.importers.spans import ERROR, NANOS_MAX, Span
from woodrat.runs.rewards import named_score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from woodrat.importers.format import ParsedDocument
    from woodrat.runs.recordings import Placed

_HEX: Final = {32: re.compile(r"(?:0x)?([0-9a-f]{32})"), 16: re.compile(r"(?:0x)?([0-9a-f]{16})")}
_STORED: Final = frozenset({"id", "name", "context", "parent_id", "start_time", "end_time", "status_code"})


def is_span(item: Any) -> bool:
    """Return whether an item is a span as a tool writes it into a file."""
    if not isinstance(item, Mapping):
        return False
    if "context.span_id" in item and "context.trace_id" in item:
        return True
    context = item.get("context", item.get("spanContext"))
    return isinstance(context, Mapping) and bool({"trace_id", "traceId"} & context.keys()) and "name" in item


# ------------------------------------------------------------------------------------------------------------- spans


def _spans(items: Iterable[Placed], faults: list[Fault]) -> tuple[list[Span], list[dict[str, Any]]]:
    """Return spans of files, and their evaluations; an unreadable span is a fault."""
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
    start = nanoseconds(item.get("start_time", item.get("startTime")))
    if start is None:
        problem = f"it began at {shown(item.get('start_time', item.get('startTime')))}"
        faults.append(Fault(f"{path}/start_time", problem, "Send when the span began, as RFC 3339."))
    attributes = item.get("attributes") or {}
    if not isinstance(attributes, Mapping):
        faults.append(Fault(f"{path}/attributes", f"got {shown(attributes)}", "Send the attributes by name."))
    if len(faults) > before or start is None:
        return None
    end = nanoseconds(item.get("end_time", item.get("endTime")))
    said = dotted(attributes)
    kind = item.get("span_kind")
    if isinstance(kind, str) and kind.isupper() and kind != "UNKNOWN":
        said.setdefault("openinference.span.kind", kind)
    status, words = _status(item)
    resource = item.get("resource")
    about = resource.get("attributes", resource.get("_attributes")) if isinstance(resource, Mapping) else None
    return Span(
        trace=hex_id(item["trace"], 32),
        id=hex_id(item["span"], 16),
        parent=None if item["above"] is None else hex_id(item["above"], 16),
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
    """Return the OTLP status code of a span, and its status message."""
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
            at = nanoseconds(event.get("timestamp", event.get("time"))) or 0
            attributes = dict(said) if isinstance(said, Mapping) else {}
            yield {"name": str(event.get("name") or ""), "time_ns": at, "attributes": attributes}


def _annotations(item: Mapping[str, Any], span: str) -> Iterator[dict[str, Any]]:
    """Yield a span's Phoenix annotations."""
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


# ----------------------------------------------------------------------------------------------------------- values


def hex_id(id: str, count: int) -> str:
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


def nanoseconds(value: Any) -> int | None:
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


def dotted(attributes: Mapping[str, Any], levels: int = 12) -> dict[str, Any]:
    """Return attributes by their whole names; some tools nest them by the parts between the dots."""
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, Mapping) and value and levels and not name.endswith((".value", "metadata", "parameters")):
            found |= {f"{name}.{rest}": inner for rest, inner in dotted(value, levels - 1).items()}
        else:
            found[name] = value
    return found


def _read(items: Sequence[Placed], reading: ParsedDocument) -> None:
    spans, judged = _spans(items, reading.faults)
    reading.spans += spans
    reading.judged += judged


FORMATS: Final = (Format("spans", is_span, _read, parts=True),)
