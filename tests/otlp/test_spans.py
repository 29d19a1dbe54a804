"""Spans: protobuf and JSON of one request are the same spans, and a bad one is left out by itself."""

from __future__ import annotations

import base64
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from woodrat.errors import Refused
from woodrat.importers import spans

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.json"))


def as_protobuf(document: dict[str, Any]) -> bytes:
    """Return a request in OTLP's JSON as protobuf, ids read as the hex they are."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def rewritten(value: Any, name: str = "") -> Any:
        if name in ("traceId", "spanId", "parentSpanId"):
            return base64.b64encode(bytes.fromhex(value)).decode()
        if isinstance(value, dict):
            return {key: rewritten(item, key) for key, item in value.items()}
        return [rewritten(item) for item in value] if isinstance(value, list) else value

    parse = import_module("google.protobuf.json_format").ParseDict
    data: bytes = parse(rewritten(document), ExportTraceServiceRequest()).SerializeToString()
    return data


def request(**given: Any) -> bytes:
    """Return a request of one span."""
    span = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "x", "startTimeUnixNano": "1780000000000000000", **given}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_both_encodings_are_the_same_spans(path: Path) -> None:
    """Protobuf and JSON of a recorded request read alike, with ids as hex in both."""
    pytest.importorskip("opentelemetry.proto", reason="the extra otlp is not installed")
    document = json.loads(path.read_text("utf-8"))
    found = spans.from_json(path.read_bytes())
    assert found == spans.from_protobuf(as_protobuf(document))
    assert not found.rejected
    assert len(found.spans) >= 4


def test_values_of_every_type_are_plain() -> None:
    """Texts, booleans, numbers, lists, mappings and bytes become JSON; 64-bit numbers may come as text."""
    typed: dict[str, Any] = {
        "text": {"stringValue": "a"},
        "flag": {"boolValue": True},
        "whole": {"intValue": "9007199254740993"},
        "double": {"doubleValue": 0.5},
        "odd": {"doubleValue": "NaN"},
        "list": {"arrayValue": {"values": [{"intValue": 1}, {}]}},
        "map": {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}},
        "bytes": {"bytesValue": "AAE="},
    }
    data = request(attributes=[{"key": name, "value": value} for name, value in typed.items()])
    (span,) = spans.from_json(data).spans
    assert span.attributes == {
        "text": "a",
        "flag": True,
        "whole": 9007199254740993,
        "double": 0.5,
        "odd": "nan",
        "list": [1, None],
        "map": {"k": "v"},
        "bytes": {"base64": "AAE="},
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"traceId": "0" * 32},
        {"traceId": "q83v"},
        {"traceId": None},
        {"spanId": "cd"},
        {"parentSpanId": "zz" * 8},
        {"startTimeUnixNano": "0"},
        {"startTimeUnixNano": "99999999999999999999"},
    ],
)
def test_a_span_of_no_trace_is_rejected_by_itself(wrong: dict[str, Any]) -> None:
    """Ids that are none and times that cannot be are told of one by one; the spans beside them count."""
    good, bad = json.loads(request()), json.loads(request(**wrong))
    good["resourceSpans"] += bad["resourceSpans"]
    batch = spans.from_json(json.dumps(good))
    assert (len(batch.spans), len(batch.rejected)) == (1, 1)
    assert batch.rejected[0].path == "span 1"


def test_names_and_numbers_of_kinds_are_one() -> None:
    """Enumerated values may be numbers or names; an end before the beginning counts as the beginning."""
    named = request(kind="SPAN_KIND_SERVER", status={"code": "STATUS_CODE_ERROR"}, endTimeUnixNano="5")
    (span,) = spans.from_json(named).spans
    assert (span.kind, span.status, span.end_ns) == (2, 2, span.start_ns)


def test_several_requests_a_line_each_are_read() -> None:
    """A file that a collector wrote holds one request a line."""
    assert len(spans.from_json(request() + b"\n" + request(spanId="ef" * 8) + b"\n").spans) == 2


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"[]", b'"x"', b"[" * 100_000, b"\xff\xfe"),
        *(b'{"resourceSpans": "x"}', b'{"resourceSpans": [5]}', b'{"resourceSpans": [{"scopeSpans": {}}]}'),
    ],
)
def test_what_is_no_request_is_refused(data: bytes) -> None:
    """Other JSON and other bytes are refused, with nothing recorded."""
    with pytest.raises(Refused, match="Nothing was recorded"):
        spans.from_json(data)


def test_bytes_that_are_no_protobuf_are_refused() -> None:
    """Protobuf that does not parse is refused."""
    pytest.importorskip("opentelemetry.proto", reason="the extra otlp is not installed")
    with pytest.raises(Refused, match="protobuf"):
        spans.from_protobuf(b"\xff\xff\xff")


def test_a_parent_of_zeros_is_none() -> None:
    """Some exporters write the parent of a root as zeros; it is a root."""
    pytest.importorskip("opentelemetry.proto", reason="the extra otlp is not installed")
    sent = request(parentSpanId="0" * 16)
    for batch in (spans.from_json(sent), spans.from_protobuf(as_protobuf(json.loads(sent)))):
        (found,) = batch.spans
        assert (found.parent, batch.rejected) == (None, ())


@pytest.mark.parametrize("document", [{"resource_spans": []}, {"spans": []}, {"name": "x", "query": "y"}])
def test_a_document_of_something_else_is_refused(document: dict[str, Any]) -> None:
    """What holds none of OTLP's signals is not taken as an empty request: its spans would be lost without a word."""
    with pytest.raises(Refused, match="resourceSpans: is missing"):
        spans.from_json(json.dumps(document))


def test_other_signals_are_passed_over() -> None:
    """A file of a collector may hold logs and metrics between the traces."""
    lines = [b'{"resourceMetrics": []}', request(), b'{"resourceLogs": []}', b"{}"]
    assert len(spans.from_json(b"\n".join(lines)).spans) == 1
