"""A real framework that instruments itself: an agent of Pydantic AI with a scripted model, over the real exporter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from tests.server.conftest import Start, engine, start
from tests.server.server import Server

from woodrat.cli.main import main

__all__ = ["engine", "start"]

QUESTION = "Is a refund due for order #42?"


def ask(server: Server, paid: bool) -> str:
    """Let an agent look an order up, whose model answers by what it is told; its spans go to the server."""
    provider = TracerProvider()
    exporter = OTLPSpanExporter(f"http://127.0.0.1:{server.port}/v1/traces", timeout=10)
    provider.add_span_processor(BatchSpanProcessor(exporter))

    def model(history: list[Any], info: Any) -> ModelResponse:
        if len(history) == 1:
            return ModelResponse(parts=[ToolCallPart("lookup_order", {"order": "42"})])
        found = history[-1].parts[0].content
        return ModelResponse(parts=[TextPart("A refund is due." if found["paid"] else "Nothing was paid.")])

    settings = InstrumentationSettings(tracer_provider=provider)
    agent = Agent(
        FunctionModel(model, model_name="small-1"),
        name="refunds",
        capabilities=[Instrumentation(settings=settings)],
    )

    @agent.tool_plain
    def lookup_order(order: str) -> dict[str, bool]:
        return {"paid": paid}

    answer: str = agent.run_sync(QUESTION).output
    provider.shutdown()
    return answer


def test_a_pydantic_ai_agent_leaves_runs(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its spans are one run with its question, answer, tool and models; `runs show` and `runs diff` read them."""
    server = start()
    assert ask(server, paid=True) == "A refund is due."
    assert ask(server, paid=False) == "Nothing was paid."
    second, first = (
        server.call("GET", f"/v1/runs/{listed['id']}").json for listed in server.call("GET", "/v1/runs").json["items"]
    )
    assert ([name for name in first["names"] if name == "refunds"], first["query"], first["answer"]) == (
        ["refunds"],
        QUESTION,
        "A refund is due.",
    )
    assert [call["name"] for call in first["tool_calls"]] == ["lookup_order"]
    assert len(first["models"]) == 2

    def woodrat(*words: str) -> Any:
        assert main([*words, "--db", str(tmp_path / "served.db"), "-o", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    shown = woodrat("runs", "show", first["id"])
    assert (shown["status"], shown["tool_calls"][0]["result"]) == ("done", {"paid": True})
    parted = woodrat("runs", "diff", first["id"], second["id"])
    assert (parted["same"], parted["cause"]["kind"]) == (False, "tool")
    assert "lookup_order" in parted["sentence"]
