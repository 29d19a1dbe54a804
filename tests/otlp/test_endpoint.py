"""Endpoint: a real exporter sends its spans to a server on loopback, and they are runs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.commands import Cli, cli, db
from tests.server.conftest import Start, engine, keyring, start
from tests.server.server import Server

from woodrat.api.runs import Runs
from woodrat.errors import Fault, Refused
from woodrat.server.keys import Keyring

__all__ = ["cli", "db", "engine", "keyring", "start"]

FIXTURES = Path(__file__).parent / "fixtures"
JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}


def bad_span() -> bytes:
    """Return a recorded request in which a span has no id."""
    document = json.loads((FIXTURES / "genai.json").read_text("utf-8"))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["spanId"] = ""
    return json.dumps(document).encode()


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_real_exporter_is_understood(start: Start, keyring: Keyring, compression: str) -> None:
    """Spans of the OpenTelemetry SDK, sent by its own exporter with a key, are a run of the key's agent."""
    pytest.importorskip("opentelemetry.sdk", reason="the OpenTelemetry SDK is not installed")
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

    _, key = keyring.create("support", "collector", ["run", "read"])
    server = start(keyring)
    results = []

    class Noting(OTLPSpanExporter):
        def export(self, spans):  # type: ignore[no-untyped-def]
            results.append(super().export(spans))
            return results[-1]

    exporter = Noting(
        f"http://127.0.0.1:{server.port}/v1/traces",
        headers={"authorization": f"Bearer {key}"},
        compression=Compression(compression),
        timeout=10,
    )
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("tests")
    asked = {"openinference.span.kind": "AGENT", "input.value": "Refund #42?", "agent.name": "somebody-else"}
    with tracer.start_as_current_span("agent", attributes=asked) as root:
        with tracer.start_as_current_span("lookup", attributes={"gen_ai.tool.name": "lookup", "odd.name": "kept"}):
            pass
        root.set_attribute("output.value", "Yes.")
    provider.shutdown()
    assert results == [SpanExportResult.SUCCESS] * 2
    (listed,) = server.call("GET", "/v1/runs", key=key).json["items"]
    run = server.call("GET", f"/v1/runs/{listed['id']}", key=key).json
    assert (run["query"], run["answer"], run["agent"]) == ("Refund #42?", "Yes.", "collector")
    assert [call["name"] for call in run["tool_calls"]] == ["lookup"]


def test_json_is_taken_and_answered(start: Start) -> None:
    """JSON in, JSON out; packed or not, and sent twice it is one run."""
    server = start()
    data = (FIXTURES / "openinference.json").read_bytes()
    for headers, body in ((JSON, data), ({**JSON, "Content-Encoding": "gzip"}, gzip.compress(data))):
        answer = server.call("POST", "/v1/traces", body, headers=headers)
        assert (answer.status, answer.json) == (200, {})
    assert len(server.call("GET", "/v1/runs").json["items"]) == 1


def test_rejected_spans_are_counted_in_the_answer(start: Start) -> None:
    """Spans that cannot be recorded are a partial success, in either encoding; the others are recorded."""
    from woodrat.importers import spans
    from woodrat.otlp import endpoint

    server = start()
    answer = server.call("POST", "/v1/traces", bad_span(), headers=JSON)
    partial = answer.json["partialSuccess"]
    assert (answer.status, partial["rejectedSpans"]) == (200, "1")
    assert "spanId" in partial["errorMessage"]
    assert len(server.call("GET", "/v1/runs").json["items"]) == 1
    proto = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    told = proto.ExportTraceServiceResponse.FromString(endpoint.accepted(spans.from_json(bad_span())))
    assert told.partial_success.rejected_spans == 1
    assert told.partial_success.error_message == partial["errorMessage"]


def test_what_is_wrong_is_said_in_the_encoding_of_the_request(start: Start) -> None:
    """Errors are a status message with code and text: protobuf for protobuf, JSON for JSON."""
    server = start()
    wrong = server.call("POST", "/v1/traces", b"{", headers=JSON)
    assert (wrong.status, wrong.json["code"]) == (400, 3)
    assert "Nothing was recorded" in wrong.json["message"]
    other = server.call("POST", "/v1/traces", b"\xff\xff", headers=PROTOBUF)
    assert (other.status, other.headers["content-type"]) == (400, "application/x-protobuf")
    assert other.body.startswith(b"\x08\x03\x12")
    assert server.call("POST", "/v1/traces", b"x", headers={"Content-Type": "text/plain"}).status == 415
    assert server.call("GET", "/v1/traces").status == 405
    assert server.call("POST", "/v1/traces", b"", headers=PROTOBUF).status == 200


def many(runs: int) -> dict[str, object]:
    """Return a request with as many traces of one span."""
    spans = [
        {
            "traceId": f"{number:032x}",
            "spanId": f"{number:016x}",
            "name": f"q{number}",
            "startTimeUnixNano": "1780000000",
        }
        for number in range(1, runs + 1)
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def test_a_long_batch_is_several_writes(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a long batch are written some at a time, so that others write between; one refused fails no other."""
    monkeypatch.setattr("woodrat.otlp.endpoint.PART_ENTRIES", 4)
    server = start()
    assert server.call("POST", "/v1/traces", many(6)).json == {}
    entries = server.call("GET", "/v1/log").json["items"]
    lengths = [entry["envelope"]["length"] for entry in entries if "length" in entry["envelope"]]
    assert len(entries) == sum(lengths)
    assert len(lengths) > 1
    assert len(server.call("GET", "/v1/runs").json["items"]) == 6
    whole = Runs.import_

    def failing(runs: Runs, part: list[dict[str, object]]) -> tuple[str, ...]:
        if any(entry["span"] == f"{7:016x}" for entry in part):
            raise Refused([Fault("entries", "are not wanted", "Keep them.")])
        return whole(runs, part)

    monkeypatch.setattr(Runs, "import_", failing)
    told = server.call("POST", "/v1/traces", many(9)).json["partialSuccess"]
    assert 0 < int(told["rejectedSpans"]) < 9
    assert "are not wanted" in told["errorMessage"]


def test_a_key_needs_the_grant_to_record_runs(start: Start, keyring: Keyring) -> None:
    """Without a key nothing is taken in, nor with one that may only read and write."""
    _, key = keyring.create("support", "a", ["read", "write", "correct", "manage"])
    server: Server = start(keyring)
    data = (FIXTURES / "genai.json").read_bytes()
    assert server.call("POST", "/v1/traces", data, headers=JSON).status == 401
    assert server.call("POST", "/v1/traces", data, headers=JSON, key=key).status == 403
    assert server.call("GET", "/v1/runs", key=key).json["items"] == []


def test_a_file_of_spans_is_imported(cli: Cli, tmp_path: Path) -> None:
    """`import otlp` records the runs of a file once, in JSON or protobuf, and says what it left out."""
    first = cli("import", "otlp", str(FIXTURES / "openinference.json")).json
    assert (first["spans"], len(first["runs"]), first["rejected"]) == (6, 1, [])
    assert cli("import", "otlp", str(FIXTURES / "openinference.json")).json["added"] == 0
    shown = cli("runs", "show", first["runs"][0]).json
    assert (shown["names"], shown["decisions"][0]["chosen"]) == (["lending", "loan-officer"], "rejected")
    (tmp_path / "bad.json").write_bytes(bad_span())
    (left,) = cli("import", "otlp", str(tmp_path / "bad.json"), "--as", "me").json["rejected"]
    assert left["path"] == "span 1"
    assert cli("import", "otlp", "-", stdin=b"").code == 2
    compared = cli("runs", "diff", first["runs"][0], first["runs"][0])
    assert compared.code == 0
