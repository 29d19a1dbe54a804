"""Translating: recorded traces of both dialects become runs, whatever the order and the batches they arrive in."""

from __future__ import annotations

import json
import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import woodrat
from woodrat.importers import spans, wrappers
from woodrat.importers.span_entries import entries
from woodrat.importers.spans import Span, SpanBatch
from woodrat.otlp.endpoint import record
from woodrat.records import replace

FIXTURES = Path(__file__).parent / "fixtures"
GENAI = spans.from_json((FIXTURES / "genai.json").read_bytes()).spans
OPENINFERENCE = spans.from_json((FIXTURES / "openinference.json").read_bytes()).spans


def taken_in(*batches: tuple[Span, ...]) -> woodrat.Ledger:
    """Return a ledger that was sent these batches, one after the other."""
    ledger = woodrat.open(":memory:", agent="collector")
    for batch in batches:
        record(ledger, SpanBatch(batch), named=True)
    return ledger


def shown(ledger: woodrat.Ledger) -> list[Any]:
    """Return all run records without the places of their entries in the log, which tell of arrival."""

    def placeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: placeless(v)
                for k, v in value.items()
                if k not in ("position", "positions", "start", "end", "narrative")
            }
        return [placeless(item) for item in value] if isinstance(value, list) else value

    runs = (ledger.runs.show(run.id) for run in ledger.runs.list().items)
    return sorted((placeless(run.to_json()) for run in runs), key=lambda run: str(run["id"]))


def only(ledger: woodrat.Ledger) -> Any:
    """Return the one run of a ledger."""
    (name,) = {entry.to_json()["body"]["run"] for entry in ledger.log.entries()}
    return ledger.runs.show(name)


def span(id: int = 2, parent: int | None = 1, name: str = "x", start: int = 5_000, **given: Any) -> Span:
    """Return a span of a trace made by hand."""
    begun = 1_780_000_000_000_000_000 + start
    stated = {"end_ns": begun + 2_000_000, **given}
    return Span("ab" * 16, f"{id:016x}", None if parent is None else f"{parent:016x}", name, begun, **stated)


def test_a_trace_of_the_genai_conventions_is_a_run() -> None:
    """What an instrumented Pydantic AI agent sent is a run with question, model calls, tool call, usage and answer."""
    run = only(taken_in(GENAI))
    assert (run.query, run.agent, run.status) == ("Is a refund due for order #42?", "collector", "done")
    assert run.names == ("refunds", "support-desk")
    assert run.answer == "Order 42 is paid; a refund is due."
    assert (run.code, run.attributes["otel"]["resource"]["service.name"]) == ("1.4.0", "support-desk")
    (call,) = run.tool_calls
    assert (call.name, call.args, call.errored) == ("lookup_order", {"order": "42"}, False)
    assert [model.model for model in run.models] == ["small-1", "small-1"]
    assert (run.input_tokens, run.output_tokens) == (120, 19)


def test_a_trace_of_openinference_is_a_run() -> None:
    """Agent, retriever, tool, model, decision and chain spans each become what they stand for."""
    run = only(taken_in(OPENINFERENCE))
    assert (run.query, run.agent) == ("Should we approve application #42?", "collector")
    assert run.names == ("lending", "loan-officer")
    assert (run.subject, run.principal, run.conversation) == ("loan/42", "ann", "app-42")
    assert [call.name for call in run.tool_calls] == ["policy", "credit_bureau"]
    (decision,) = run.decisions
    assert (decision.stage, decision.chosen) == ("classify-risk", "rejected")
    assert decision.evidence == {"creditScore": 580, "threshold": 600}
    (model,) = run.models
    assert (model.model, model.parameters, model.response) == ("small-1", {"temperature": 0}, "Score is 580.")
    assert [note.text for note in run.notes] == ["format"]
    assert run.answer == "Application #42: REJECTED."


def test_runs_of_traces_answer_like_any_other() -> None:
    """Why, recall and the comparison of two runs read what came as spans."""
    ledger = taken_in(GENAI, OPENINFERENCE)
    (reason,) = ledger.why("loan/42").items
    assert reason.decision.chosen == "rejected"
    record = ledger.recall("should we approve application #42?", k=1).hits[0].record
    assert record is not None
    assert record.subject == "loan/42"
    first, second = (run.id for run in ledger.runs.list().items)
    assert ledger.runs.diff(first, second).to_json()


@pytest.mark.parametrize("known", [GENAI, OPENINFERENCE], ids=["genai", "openinference"])
def test_no_attribute_is_lost(known: tuple[Span, ...]) -> None:
    """Every attribute of a span is a part of its entry or kept under its own name."""
    for one in known:
        text = json.dumps(entries([one], "a", named=True), ensure_ascii=False)
        for name, value in one.attributes.items():
            if name.endswith(".message.role"):
                continue  # of an answer that is its text alone
            told = value if isinstance(value, str) else json.dumps(value)
            parts = json.loads(told) if told[:1] in ("{", "[") else told
            leaves = re.findall(r"[\w#.]+", json.dumps(parts, ensure_ascii=False))
            assert name in text or all(leaf in text for leaf in leaves), (name, value)


@given(st.data())
def test_order_and_batches_do_not_matter(data: st.DataObject) -> None:
    """The same spans in any order, in any batches, some of them sent again, give the same run records."""
    everything = (*GENAI, *OPENINFERENCE)
    order = data.draw(st.permutations(everything))
    again = data.draw(st.lists(st.sampled_from(everything), max_size=4))
    sent = [*order, *again]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(sent) - 1), max_size=5)))
    batches = [tuple(sent[start:end]) for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    assert shown(taken_in(*batches)) == shown(taken_in(everything))


def test_the_same_batch_twice_changes_nothing() -> None:
    """A batch that is sent again appends no entry."""
    ledger = taken_in(GENAI)
    position = ledger.position
    record(ledger, SpanBatch(GENAI), named=True)
    assert ledger.position == position


def test_a_root_that_comes_last_completes_the_run() -> None:
    """Until the root arrives, if ever, the run is listed as interrupted, with its steps; then it has its end."""
    root, inner = [s for s in GENAI if s.parent is None], tuple(s for s in GENAI if s.parent is not None)
    ledger = taken_in(inner)
    begun = only(ledger)
    assert (begun.status, begun.query, len(begun.tool_calls)) == ("interrupted", "Is a refund due for order #42?", 1)
    assert begun.started_at == begun.steps[0].started_at
    record(ledger, SpanBatch(tuple(root)), named=True)
    (run,) = ledger.runs.list().items
    assert run.status == "done"


def test_a_trace_that_comes_from_elsewhere_begins_where_it_enters() -> None:
    """A span whose parent is known to be in another process begins and ends the run for us, until the root arrives."""
    entry = span(2, 1, "serve", flags=0x301, attributes={"input.value": "Hi", "output.value": "Ho"})
    ledger = taken_in((span(3, 2, "inner"), entry))
    (run,) = ledger.runs.list().items
    assert (run.query, run.answer, run.status) == ("Hi", "Ho", "done")
    record(ledger, SpanBatch((span(1, None, "root", 0),)), named=True)
    assert only(ledger).query == "Hi"


def test_a_plain_root_leaves_the_word_to_the_agent_inside() -> None:
    """A root that knows neither question nor answer gives way to an agent below it; alone its name is the question."""
    root = span(1, None, "POST /chat", 0, end_ns=1_780_000_000_900_000_000, kind=2)
    inside = span(
        2, 1, "bot", attributes={"openinference.span.kind": "AGENT", "input.value": "Hi", "output.value": "Ho"}
    )
    assert (only(taken_in((root,))).query, only(taken_in((root,))).status) == ("POST /chat", "done")
    both = only(taken_in((inside,), (root,)))
    assert (both.query, both.answer, both.status) == ("Hi", "Ho", "done")


def test_a_span_that_failed_says_so() -> None:
    """An error status is the error of its step, with type and message of the exception; of a root, of the run."""
    exception = {"exception.type": "TimeoutError", "exception.message": "too slow"}
    events = ({"name": "exception", "time_ns": 1, "attributes": exception},)
    tool = span(attributes={"gen_ai.tool.name": "bureau"}, status=2, events=events)
    root = span(1, None, "run", 0, status=2, message="gave up")
    run = only(taken_in((tool, root)))
    (call,) = run.tool_calls
    assert (call.errored, call.error) == (True, {"type": "TimeoutError", "message": "too slow"})
    assert (run.status, run.error["message"]) == ("error", "gave up")


@pytest.mark.parametrize(
    ("attributes", "messages", "response"),
    [
        (
            {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi", "gen_ai.completion.0.content": "Ho"},
            [{"role": "user", "content": "Hi"}],
            "Ho",
        ),
        (
            {"gen_ai.system_instructions": "Be brief.", "input.value": "Hi", "output.value": '{"a": 1}'},
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
            {"a": 1},
        ),
        (
            {"llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f"},
            None,
            {"tool_calls": [{"tool_call": {"function": {"name": "f"}}}]},
        ),
    ],
)
def test_older_and_flat_spellings_are_read(attributes: dict[str, Any], messages: Any, response: Any) -> None:
    """Messages spread over attributes, instructions beside them and plain input and output all become a model call."""
    (entry,) = entries([span(attributes={"gen_ai.operation.name": "chat", **attributes})], "a")
    assert (entry.get("messages"), entry["response"]) == (messages, response)


def events(*told: tuple[str, dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return events of a span."""
    return tuple({"name": name, "time_ns": 0, "attributes": said} for name, said in told)


CALLS = [{"id": "c", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}]


@pytest.mark.parametrize(
    ("told", "messages", "response"),
    [
        (
            events(
                ("gen_ai.system.message", {"content": "Be brief.", "gen_ai.system": "openai"}),
                ("gen_ai.user.message", {"content": "Why?", "role": "human"}),
                ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": '{"content": "So."}'}),
            ),
            [{"role": "system", "content": "Be brief."}, {"role": "human", "content": "Why?"}],
            "So.",
        ),
        (
            events(
                ("gen_ai.assistant.message", {"tool_calls": json.dumps(CALLS)}),
                ("gen_ai.tool.message", {"id": "c", "content": "paid"}),
                ("gen_ai.choice", {"message.content": "Paid.", "message.role": "assistant"}),
            ),
            [{"role": "assistant", "tool_calls": CALLS}, {"role": "tool", "id": "c", "content": "paid"}],
            "Paid.",
        ),
        (
            events(
                ("gen_ai.user.message", {"gen_ai.event.content": '{"content": "Why?"}'}),
                ("gen_ai.choice", {"gen_ai.event.content": json.dumps({"message": {"tool_calls": CALLS}})}),
            ),
            [{"role": "user", "content": "Why?"}],
            {"role": "assistant", "tool_calls": CALLS},
        ),
        (
            events(
                ("gen_ai.content.prompt", {"gen_ai.prompt": '[{"role": "user", "content": "Why?"}]'}),
                ("gen_ai.content.completion", {"gen_ai.completion": '[{"role": "assistant", "content": "So."}]'}),
            ),
            [{"role": "user", "content": "Why?"}],
            "So.",
        ),
    ],
)
def test_messages_told_as_events_are_read(told: tuple[dict[str, Any], ...], messages: Any, response: Any) -> None:
    """Where a span holds no messages, the events of older instrumentation are its messages."""
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": "small-1"}
    (model,) = only(taken_in((span(attributes=attributes, events=told),))).models
    assert (model.messages, model.response) == (messages, response)


def test_a_run_ends_with_its_root_whoever_knows_the_answer() -> None:
    """A root without an answer leaves the word to the agent inside, and still says when the run was over."""
    asked = {"gen_ai.operation.name": "invoke_agent", "input.value": "Why?", "output.value": "So."}
    root = span(1, None, "POST /ask", 0, end_ns=1_780_000_000_900_000_000)
    inside = span(2, 1, "agent", 1_000_000, end_ns=1_780_000_000_500_000_000, attributes=asked)
    for order in ((root, inside), (inside, root)):
        run = only(taken_in(*((one,) for one in order)))
        assert (run.answer, run.ended_at, run.duration_ms) == ("So.", "2026-05-28T20:26:40.900000Z", 900)
    alone = only(taken_in((root,)))
    assert (alone.answer, alone.ended_at, alone.duration_ms) == (None, "2026-05-28T20:26:40.900000Z", 900)


def test_a_decision_without_a_rule_is_told_without_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A traced decision names no rule, and neither does what is shown of it."""
    from woodrat.cli.main import main

    said = {"openinference.span.kind": "DECISION", "woodrat.stage": "risk", "output.value": "rejected"}
    ledger = woodrat.open(tmp_path / "a.db", agent="collector")
    record(ledger, SpanBatch((span(1, None, "root"), span(attributes=said))), named=True)
    (run,) = ledger.runs.list().items
    words = {
        "show": main(["--db", str(tmp_path / "a.db"), "-o", "table", "runs", "show", run.id]),
        "diff": main(["--db", str(tmp_path / "a.db"), "-o", "table", "runs", "diff", run.id, run.id]),
    }
    shown = capsys.readouterr().out
    assert words == {"show": 0, "diff": 0}
    assert "risk=rejected without a rule" in shown
    assert "rejected (without a rule)" in shown
    assert "null" not in shown
    assert ledger.lineage(f"{run.id}#risk").label.endswith("without a rule")
    ledger.close()


def test_only_those_who_may_name_other_agents() -> None:
    """The run is the sender's; an agent's name counts where that is allowed and it can be one, and is never lost."""
    named = span(1, None, attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "boss"})
    odd = span(1, None, attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a\nb"})
    for one, trusted, name in ((named, False, None), (named, True, "boss"), (odd, True, None)):
        told = entries([one], "key-agent", named=trusted)
        assert {entry["agent"] for entry in told} == {"key-agent"}
        assert told[0].get("name") == name
        assert told[0]["attributes"]["gen_ai.agent.name"] == one.attributes["gen_ai.agent.name"]


def test_steps_within_a_microsecond_keep_their_order() -> None:
    """Times finer than the log writes them still order the steps."""
    later = span(3, 1, start=1_500, attributes={"gen_ai.tool.name": "second"})
    sooner = span(4, 1, start=1_499, attributes={"gen_ai.tool.name": "first"})
    assert [call.name for call in only(taken_in((later, sooner))).tool_calls] == ["first", "second"]


def test_hostile_values_are_bounded() -> None:
    """Huge, deep and odd values are marked or cut like anything else in a run, and the rest of the span counts."""
    deep = "[" * 5_000 + "]" * 5_000
    odd = {
        "gen_ai.tool.name": "t" * 10_000,
        "input.value": "x" * 300_000,
        "output.value": deep,
        "n": 2**63,
        "nul": "a\0b",
    }
    run = only(taken_in((span(attributes=odd),)))
    (call,) = run.tool_calls
    assert len(call.name) < 5_000
    assert "$truncated" in str(call.args)


def test_one_long_attribute_does_not_take_the_others_with_it() -> None:
    """Where attributes are too long together the long ones are cut, and the short ones stay."""
    run = only(taken_in((span(1, None, attributes={"woodrat.note": "kept", "body": "x" * 300_000}),)))
    assert run.attributes["woodrat.note"] == "kept"
    assert run.attributes["body"]["$truncated"]["bytes"] > 300_000


def chat(id: int, start: int, **attributes: Any) -> Span:
    """Return a model call inside the root."""
    return span(id, 1, "chat", start, attributes={"gen_ai.operation.name": "chat", **attributes})


def test_models_say_what_was_asked_and_answered_where_nobody_else_does() -> None:
    """The first question and the last answer of the models stand in, in any order; an agent's words come first."""
    root = span(1, None, "handle", 0, end_ns=1_780_000_000_900_000_000)
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Why?"}]}])
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "So."}], "finish_reason": "stop"}])
    first = chat(2, 1_000, **{"gen_ai.input.messages": asked, "gen_ai.output.messages": "[]"})
    last = chat(3, 5_000, **{"gen_ai.input.messages": asked, "gen_ai.output.messages": said})
    for order in ((root, first, last), (last, first, root), (first, root, last)):
        run = only(taken_in(*((one,) for one in order)))
        assert (run.query, run.answer, run.status) == ("Why?", "So.", "done")
    assert only(taken_in((root, first))).answer is None
    assert only(taken_in((first, last))).answer is None  # it has not ended
    told = {"openinference.span.kind": "AGENT", "input.value": "Really?", "output.value": "Yes."}
    agent = span(4, 1, "bot", 500, attributes=told)
    run = only(taken_in((root, first, last, agent)))
    assert (run.query, run.answer) == ("Really?", "Yes.")


def test_agents_inside_are_named_whatever_comes_first() -> None:
    """The run stays the sender's, and its record names all agents inside, in whatever order their spans come."""
    root = span(1, None, "handle", 0)
    inside = span(2, 1, "bot", 500, attributes={"openinference.span.kind": "AGENT", "agent.name": "refunds"})
    other = span(3, 2, "help", 600, attributes={"openinference.span.kind": "AGENT", "agent.name": "bank"})
    assert only(taken_in((root,))).names == ()
    for batches in permutations([(root,), (inside,), (other,)]):
        run = only(taken_in(*batches))
        assert (run.agent, run.names) == ("collector", ("bank", "refunds"))


def test_tokens_of_agents_inside_are_those_of_their_models() -> None:
    """What one of several agents says it used is not what the run used; what the root says is."""
    used = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    root = span(1, None, "handle", 0, end_ns=1_780_000_000_900_000_000)
    agents = [
        span(
            id,
            1,
            "bot",
            id * 1_000,
            attributes={"gen_ai.operation.name": "invoke_agent", "output.value": "So.", **used},
        )
        for id in (2, 4)
    ]
    calls = [
        span(id, id - 1, "chat", id * 1_000, attributes={"gen_ai.operation.name": "chat", **used}) for id in (3, 5)
    ]
    assert only(taken_in((root, *agents, *calls))).input_tokens == 20
    stated = span(
        1, None, "bot", 0, attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 25}
    )
    assert only(taken_in((stated, *calls))).input_tokens == 25


def test_what_a_model_answered_without_being_recorded_is_told(tmp_path: Path) -> None:
    """Two runs without recorded answers are the same as far as can be seen, and the comparison says how far that is."""
    ledger = woodrat.open(":memory:", agent="collector")
    for trace in ("aa" * 16, "bb" * 16):
        model = replace(chat(2, 1_000, **{"gen_ai.request.model": "small-1"}), trace=trace)
        record(ledger, SpanBatch((replace(span(1, None, "handle", 0), trace=trace), model)), named=True)
    first, second = (run.id for run in ledger.runs.list().items)
    sentence = ledger.runs.diff(first, second).sentence
    assert sentence == "They are the same in their one step and in the answer; of 2 model calls no answer is recorded."


@pytest.mark.parametrize(
    ("given", "question", "answer"),
    [
        ({"messages": [["user", "Why?"]]}, "Why?", {"messages": [["user", "Why?"]]}),
        ({"messages": [{"type": "human", "data": {"content": "Why?"}}]}, "Why?", None),
        ({"messages": [{"type": "ai", "content": "So.", "additional_kwargs": {}}]}, None, "So."),
        ({"messages": [{"lc": 1, "id": ["x", "AIMessage"], "kwargs": {"content": "So."}}]}, None, "So."),
        ({"messages": ["ChatMessage(role='user', id='7f')"]}, None, None),
        ({"task": "Why?", "stream": False}, "Why?", None),
        ({"raw": "So.", "tasks_output": []}, None, "So."),
        ({"inputs": {"messages": [["user", "Why?"]]}, "tags": [], "kwargs": {}}, "Why?", None),
        ([], None, None),
        ({}, None, None),
        (None, None, None),
        (7, None, None),
    ],
)
def test_wrappings_are_taken_off(given: Any, question: str | None, answer: Any) -> None:
    """Questions and answers are found inside what frameworks put around them; anything else stays as it is."""
    assert wrappers.question(given) == question
    assert wrappers.answer(given) == (given if answer is None else answer)


def test_a_run_whose_root_came_last_is_recalled_by_what_was_asked() -> None:
    """That there is a run is no passage of it: recall finds the question that came with the root, and its subject."""
    asked = {"input.value": "Approve application #42?", "output.value": "No.", "woodrat.subject": "loan/42"}
    root = span(1, None, "run", 0, attributes={"openinference.span.kind": "AGENT", **asked})
    ledger = taken_in((span(2, 1, "chat", 500),), (span(3, 1, "chat", 900),), (root,))
    hit = ledger.recall("approve application #42?", k=1)
    assert [(found.record.query, found.record.subject) for found in hit.hits if found.record is not None] == [
        ("Approve application #42?", "loan/42")
    ]
    assert not ledger.recall("chat", k=1).hits


def test_a_span_that_is_told_in_two_ways_is_one_step() -> None:
    """A span sent while it was going on and when it had ended, or by two ways, is one call: the fuller account."""
    root = span(1, None, "handle", 0)
    going = chat(2, 1_000, **{"gen_ai.request.model": "small-1"})
    begun = replace(going, end_ns=going.start_ns)
    ended = replace(
        going,
        end_ns=going.start_ns + 9_000_000,
        attributes={**going.attributes, "gen_ai.usage.input_tokens": 11, "gen_ai.completion.0.content": "So."},
    )
    elsewhere = replace(ended, resource={"service.name": "gateway"})
    for order in ((root, begun, ended, elsewhere), (elsewhere, ended, begun, root)):
        run = only(taken_in(*((one,) for one in order)))
        assert [(call.response, call.duration_ms) for call in run.models] == [("So.", 9)]
        assert run.input_tokens == 11


@pytest.mark.parametrize("count", [2**53, 2**63, -1])
def test_a_count_that_is_none_costs_no_span(count: int) -> None:
    """A number of tokens that no JSON reader keeps is taken for none, and the span counts."""
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": count}
    assert only(taken_in((span(1, None, "bot", 0, attributes=said),))).input_tokens == 0
