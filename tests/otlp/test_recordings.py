"""Recordings: what the exporters of real frameworks sent becomes runs that read alike, whoever instrumented them.

How they were made is told in fixtures/frameworks/README.md.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.otlp.test_translation import shown, taken_in

from woodrat.importers import spans
from woodrat.importers.span_entries import entries
from woodrat.importers.spans import Span, SpanBatch
from woodrat.otlp.endpoint import record

FOLDER = Path(__file__).parent / "fixtures" / "frameworks"
RECORDED: dict[str, tuple[Span, ...]] = {
    path.stem: spans.from_json(path.read_bytes()).spans for path in sorted(FOLDER.glob("*.json"))
}
QUESTION = "Is a refund due for order #42?"
PAIRS = sorted(name for name, told in RECORDED.items() if len({span.trace for span in told}) == 2)
WITHOUT_TOOLS = {"openinference-openai", "openllmetry-anthropic"}
"""Those whose agent is a loop of its own, so that nobody tells of its tools."""
WITHOUT_MODELS = {"openinference-crewai"}
NAMELESS = {*WITHOUT_TOOLS, "openinference-langchain", "langsmith", "google-adk", "openinference-crewai"}
"""Those that name no agent."""


def runs(name: str) -> list[Any]:
    """Return the runs of a recording, the first one first."""
    ledger = taken_in(RECORDED[name])
    return [ledger.runs.show(run.id) for run in ledger.runs.list().items][::-1]


@cache
def shown_at_once(name: str) -> Any:
    """Return what is shown of a recording that came in order, in one batch."""
    return shown(taken_in(RECORDED[name]))


@pytest.mark.parametrize("name", PAIRS)
def test_a_turn_of_an_agent_is_one_run(name: str) -> None:
    """Each trace is one run with question, answer, agent, model calls, tool call and tokens, each counted once."""
    for run, answer, paid in zip(runs(name), ("A refund is due.", "Nothing was paid."), (True, False), strict=True):
        assert (run.query, run.answer.strip(), run.status) == (QUESTION, answer, "done")
        assert (run.agent, run.names) == ("collector", ("desk",) if name in NAMELESS else ("desk", "refunds"))
        models = [] if name in WITHOUT_MODELS else ["small-1", "small-1"]
        assert [call.model for call in run.models] == models
        assert (run.input_tokens, run.output_tokens) == (11 * len(models), 7 * len(models))
        assert [call.response for call in run.models[1:]] == [answer for _ in models[1:]]
        expected = [] if name in WITHOUT_TOOLS else [("lookup_order", {"order": "42", "paid": paid}, False)]
        assert [(call.name, call.result, call.errored) for call in run.tool_calls] == expected
        for call in run.tool_calls:
            assert call.args == ({"input": "42"} if name == "openinference-langchain" else {"order": "42"})


@pytest.mark.parametrize("name", PAIRS)
def test_two_turns_part_where_the_tool_answered_otherwise(name: str) -> None:
    """Ids made anew in every run part nothing: what the tool returned, or the model was told, differs first."""
    ledger = taken_in(RECORDED[name])
    second, first = ledger.runs.list().items
    parted = ledger.runs.diff(first.id, second.id)
    assert parted.cause is not None
    assert parted.cause.kind == ("prompt" if name in WITHOUT_TOOLS else "tool")
    assert "paid" in parted.sentence
    assert parted.sentence.endswith("the answer follows from it.")


@pytest.mark.parametrize("name", sorted(RECORDED))
@settings(max_examples=settings.default.max_examples // 4)  # type: ignore[union-attr]
@given(data=st.data())
def test_order_and_batches_do_not_matter_to_any_framework(name: str, data: st.DataObject) -> None:
    """The spans of a recording in any order, in any batches, some of them sent again, give the same run records."""
    told = RECORDED[name]
    sent = [*data.draw(st.permutations(told)), *data.draw(st.lists(st.sampled_from(told), max_size=3))]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(sent) - 1), max_size=5)))
    batches = [tuple(sent[start:end]) for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    assert shown(taken_in(*batches)) == shown_at_once(name)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_the_same_recording_twice_changes_nothing(name: str) -> None:
    """A recording that is sent again, span by span, appends no entry."""
    ledger = taken_in(RECORDED[name])
    position = ledger.position
    for span in reversed(RECORDED[name]):
        record(ledger, SpanBatch((span,)), named=True)
    assert ledger.position == position


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_nothing_of_a_recording_is_lost(name: str) -> None:
    """Every attribute of every span is a part of its entries or kept under its own name."""
    for one in RECORDED[name]:
        text = json.dumps(entries([one], "a", named=True), ensure_ascii=False)
        for key, value in one.attributes.items():
            if key.endswith((".message.role", ".message_content.type")) or key in text:
                continue  # whose message an answer is goes without saying
            told = value if isinstance(value, str) else json.dumps(value)
            parts = json.loads(told) if told[:1] in ("{", "[") else told
            leaves = re.findall(r"[\w#]+", json.dumps(parts, ensure_ascii=False))
            assert all(leaf in text for leaf in leaves), (one.name, key, value)


@pytest.mark.parametrize("name", ["ai-sdk-6-failing-tool", "strands-failing-tool"])
def test_a_tool_that_failed_is_told_to_the_model(name: str) -> None:
    """A tool's failure is its own, also where only its message says so; the run goes on and is done."""
    (run,) = runs(name)
    (call,) = run.tool_calls
    assert (call.errored, "no such order" in call.error["message"]) == (True, True)
    assert (run.status, run.answer.strip()) == ("done", "Nothing was paid.")


def test_a_model_that_failed_ends_the_run() -> None:
    """Where nobody says what was asked the root's name does, and the error is that of the model and of the run."""
    (run,) = runs("openai-agents-failing-model")
    assert (run.query, run.status, run.models[0].errored) == ("Agent workflow", "error", True)
    assert "the model is overloaded" in run.error["message"]


def test_a_call_that_two_instrumentations_tell_is_counted_once() -> None:
    """Of a framework's call and its client's call inside it, one is shown, and its tokens are counted once."""
    (run,) = runs("pydantic-ai-and-openai")
    assert [(call.model, call.input_tokens, call.output_tokens) for call in run.models] == [("small-1", 11, 7)] * 2
    assert (run.input_tokens, run.output_tokens, run.answer) == (22, 14, "A refund is due.")
