"""A real framework, instrumented by itself: run where it is installed, as it is no dependency of ours."""

from __future__ import annotations

from typing import Any

import pytest
from tests.surfaces.http.conftest import Start, engine, start

__all__ = ["engine", "start"]


def test_a_pydantic_ai_agent_leaves_a_run(start: Start) -> None:
    """An agent of Pydantic AI with a scripted model sends its own spans, and they are one run with its tool call."""
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="Pydantic AI is not installed")
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")
    exporting = pytest.importorskip("opentelemetry.sdk.trace.export")
    http = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    messages = pytest.importorskip("pydantic_ai.messages")
    functions = pytest.importorskip("pydantic_ai.models.function")
    capabilities = pytest.importorskip("pydantic_ai.capabilities")
    instrumented = pytest.importorskip("pydantic_ai.models.instrumented")

    server = start()
    provider = sdk.TracerProvider()
    exporter = http.OTLPSpanExporter(f"http://127.0.0.1:{server.port}/v1/traces", timeout=10)
    provider.add_span_processor(exporting.BatchSpanProcessor(exporter))

    def model(history: list[Any], info: Any) -> Any:
        if len(history) == 1:
            return messages.ModelResponse(parts=[messages.ToolCallPart("lookup_order", {"order": "42"})])
        return messages.ModelResponse(parts=[messages.TextPart("A refund is due.")])

    agent = pydantic_ai.Agent(
        functions.FunctionModel(model, model_name="small-1"),
        name="refunds",
        capabilities=[
            capabilities.Instrumentation(settings=instrumented.InstrumentationSettings(tracer_provider=provider))
        ],
    )

    @agent.tool_plain  # type: ignore[untyped-decorator]
    def lookup_order(order: str) -> dict[str, bool]:
        return {"paid": True}

    assert agent.run_sync("Is a refund due for order #42?").output == "A refund is due."
    provider.shutdown()
    (run,) = server.call("GET", "/v1/runs").json["runs"]
    assert (run["agent"], run["query"]) == ("refunds", "Is a refund due for order #42?")
    assert run["finalContent"] == "A refund is due."
    assert [call["name"] for call in run["toolCalls"]] == ["lookup_order"]
    assert len(run["models"]) == 2
