"""Odd traces: whatever spans say and however they are joined, they become a run, and the same one in any order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.otlp.test_translation import shown, taken_in

from woodrat.importers.span_entries import entries
from woodrat.importers.spans import Span

NAMES = (
    *("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind", "ai.operationId", "gen_ai.tool.name"),
    *("gen_ai.request.model", "gen_ai.response.id", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt"),
    *("gen_ai.completion", "gen_ai.prompt.0.content", "gen_ai.system_instructions", "gen_ai.usage.input_tokens"),
    *("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "tool.status", "input.value", "output.value"),
    *(
        "llm.input_messages.0.message.role",
        "llm.input_messages.0.message.content",
        "llm.input_messages.1.x",
        "llm.prompts",
    ),
    *(
        "llm.output_messages.0.message.content",
        "llm.invocation_parameters",
        "llm.token_count.prompt",
        "tool.parameters",
    ),
    *(
        "ai.prompt",
        "ai.prompt.messages",
        "ai.response.text",
        "ai.response.toolCalls",
        "ai.toolCall.args",
        "ai.toolCall.result",
    ),
    *("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response", "gcp.vertex.agent.tool_response", "crew_tasks"),
    *("traceloop.entity.input", "traceloop.entity.output", "final_result", "session.id", "user.id", "agent.name", "x"),
)
WORDS = (
    *("chat", "execute_tool", "invoke_agent", "decision", "LLM", "TOOL", "AGENT", "CHAIN", "tool", "workflow", "error"),
    *("ai.toolCall", "ai.generateText", "ai.generateText.doGenerate", "msg_1", "user", "Hi", "", "{", "[]", "null"),
)
KEYS = (
    *(
        "role",
        "content",
        "text",
        "parts",
        "type",
        "messages",
        "data",
        "kwargs",
        "lc",
        "id",
        "output",
        "outputs",
        "inputs",
    ),
    *(
        "tool_calls",
        "generations",
        "raw",
        "tasks_output",
        "raw_output",
        "is_error",
        "status",
        "config",
        "contents",
        "args",
    ),
)
KINDS = ("human", "ai", "tool", "text", "tool_call", "constructor", "user", "assistant")
plain = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.sampled_from((*WORDS, *KINDS)))
nested = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
values = st.one_of(plain, nested, nested.map(json.dumps))
events = st.fixed_dictionaries(
    {
        "name": st.sampled_from(("exception", "gen_ai.choice", "gen_ai.user.message", "gen_ai.content.prompt", "x")),
        "time_ns": st.integers(0, 2**64),
        "attributes": st.dictionaries(
            st.sampled_from(("content", "message", "message.content", "gen_ai.event.content", "gen_ai.prompt")),
            values,
            max_size=3,
        ),
    }
)


@st.composite
def traces(draw: st.DrawFn) -> tuple[Span, ...]:
    """Draw spans of one trace: parents may be missing, themselves or each other, and clocks are anybody's."""
    count = draw(st.integers(1, 6))
    ids = [f"{number:016x}" for number in range(1, count + 1)]
    found = []
    for id in ids:
        start = 1_780_000_000_000_000_000 + draw(st.integers(-5_000, 5_000))
        found.append(
            Span(
                "ab" * 16,
                id,
                draw(st.sampled_from((None, *ids, "ff" * 8))),
                draw(st.sampled_from(("", "handle", "execute_tool f"))),
                start,
                start + draw(st.sampled_from((0, 1, 999, 10_000_000))),
                attributes=draw(st.dictionaries(st.sampled_from(NAMES), values, max_size=6)),
                events=tuple(draw(st.lists(events, max_size=2))),
                links=({"trace": "cd" * 16, "span": "ef" * 8},) * draw(st.integers(0, 1)),
                kind=draw(st.integers(-1, 7)),
                status=draw(st.integers(0, 2)),
                flags=draw(st.sampled_from((0, 0x100, 0x300))),
            )
        )
    return tuple(found)


@given(traces(), st.randoms(use_true_random=False))
def test_any_spans_are_a_run_in_any_order(spans: tuple[Span, ...], random: Any) -> None:
    """Nothing a span says keeps it from being recorded, and neither order nor batches show in the record."""
    shuffled = list(spans)
    random.shuffle(shuffled)
    assert shown(taken_in(*((span,) for span in shuffled))) == shown(taken_in(spans))


@given(traces())
def test_any_run_can_be_compared(spans: tuple[Span, ...]) -> None:
    """Whatever was recorded is shown, told and compared with itself."""
    ledger = taken_in(spans)
    for run in ledger.runs.list().items:
        assert ledger.runs.show(run.id).narrative
        assert ledger.runs.diff(run.id, run.id).same


DEPTHS = (60, 70, 300, 900, 5_000)
SHAPES = (
    *(("[", "", "]"), ('{"content":', '"x"', "}"), ('{"messages":[', "", "]}"), ('[{"content":', '"x"', "}]")),
    *(('{"tool_call":', "{}", "}"), ('{"data":', "{}", "}"), ('{"output":', "{}", "}"), ('{"inputs":', "{}", "}")),
)


@pytest.mark.parametrize(("opened", "inside", "closed"), SHAPES)
@pytest.mark.parametrize("operation", ["chat", "execute_tool", "invoke_agent", "x"])
def test_deep_values_are_no_trouble(opened: str, inside: str, closed: str, operation: str) -> None:
    """Values and names nested without end are kept like any other, and what else the span says counts."""
    for depth in DEPTHS:
        deep = opened * depth + inside + closed * depth
        for name in ("gen_ai.input.messages", "gen_ai.output.messages", "input.value", "output.value", "gen_ai.prompt"):
            said = {"gen_ai.operation.name": operation, name: deep, f"llm.input_messages{'.0' * depth}": "x", "k": "v"}
            event = {"name": "gen_ai.choice", "time_ns": 0, "attributes": {f"message{'.a' * depth}": deep}}
            span = Span("ab" * 16, "cd" * 8, None, "x", 1, 2, attributes=said, events=(event,))
            assert any(entry.get("attributes", {}).get("k") == "v" for entry in entries([span], "a"))
