"""Recordings of other tools: what each format becomes, and what of it is kept."""

# ruff: noqa: E501

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from tests.runs.test_reader import opened

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.runs.conversation import conversation
from woodrat.runs.record import RunRecord

TRACE, ROOT, INNER = "ab" * 16, "1" * 16, "2" * 16


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """An empty ledger."""
    return opened(InMemoryEngine())


def only(ledger: woodrat.Ledger, document: Any) -> RunRecord:
    """Return the record of the one run in a document; importing it again changes nothing."""
    (run,) = ledger.runs.import_(copy.deepcopy(document))
    position = ledger.position
    assert ledger.runs.import_(document) == (run,)
    assert ledger.position == position
    return ledger.runs.show(run)


# Transcripts

CALLS: dict[str, list[Any]] = {
    "openai": [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "terms", "arguments": '{"client": "kline"}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"days": 30}'},
    ],
    "no ids, Python literals": [
        {"role": "assistant", "tool_calls": [{"function": {"name": "terms", "arguments": "{'client': 'kline'}"}}]},
        {"role": "tool", "content": '{"days": 30}'},
    ],
    "function_call": [
        {"role": "assistant", "function_call": {"name": "terms", "arguments": '{"client": "kline"}'}},
        {"role": "function", "name": "terms", "content": '{"days": 30}'},
    ],
    "responses": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "terms", "arguments": '{"client": "kline"}'},
        {"type": "function_call_output", "call_id": "c1", "output": '{"days": 30}'},
    ],
    "anthropic": [
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "terms", "input": {"client": "kline"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": '{"days": 30}'}]},
    ],
    "gemini": [
        {"role": "model", "parts": [{"functionCall": {"name": "terms", "args": {"client": "kline"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "terms", "response": {"days": 30}}}]},
    ],
    "langchain": [
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "terms", "args": {"client": "kline"}, "id": "1"}]}},
        {"type": "tool", "data": {"content": '{"days": 30}', "tool_call_id": "1", "name": "terms"}},
    ],
    "ai sdk": [
        {"role": "assistant", "content": [
            {"type": "tool-call", "toolCallId": "1", "toolName": "terms", "input": {"client": "kline"}}]},
        {"role": "tool", "content": [
            {"type": "tool-result", "toolCallId": "1", "toolName": "terms", "output": {"type": "json", "value": {"days": 30}}}]},
    ],
    "pydantic ai": [
        {"kind": "response", "parts": [
            {"part_kind": "tool-call", "tool_name": "terms", "args": {"client": "kline"}, "tool_call_id": "1"}]},
        {"kind": "request", "parts": [
            {"part_kind": "tool-return", "tool_name": "terms", "content": {"days": 30}, "tool_call_id": "1"}]},
    ],
    "agentdojo": [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "function": "terms", "args": {"client": "kline"}, "placeholder_args": None}]},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "content": '{"days": 30}'}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", CALLS)
def test_calls_of_every_shape_have_their_results(ledger: woodrat.Ledger, shape: str) -> None:
    """A tool call and its result become one step, matched by id, by name or by order, and two turns of the chat."""
    said = [{"role": "user", "content": "When?"}, *CALLS[shape], {"role": "assistant", "content": "In 30 days."}]
    run = only(ledger, {"messages": said})
    assert [(call.name, call.args, call.result) for call in run.tool_calls] == [
        ("terms", {"client": "kline"}, {"days": 30})
    ]
    assert (run.query, run.answer, len(run.models)) == ("When?", "In 30 days.", 2)
    turns = conversation(run)
    assert [turn.role for turn in turns] == ["user", "assistant", "tool", "assistant"]
    assert (turns[2].answers, json.loads(turns[2].content)) == (turns[1].calls[0], {"days": 30})


def test_no_role_is_refused(ledger: woodrat.Ledger) -> None:
    """A role that nobody knows is the name of an agent; one that hands over decides to."""
    run = only(ledger, {"question": "How tall?", "history": [
        {"role": "human", "content": "How tall is it?"},
        {"role": "Planner (thought)", "content": "Somebody has to look."},
        {"role": "Planner (-> Browser)", "content": "Look it up."},
        {"role": "Browser", "content": "381 m"},
    ], "is_correct": False})  # fmt: skip
    assert run.names == ("Browser", "Planner")
    assert [model.attributes["agent"] for model in run.models] == ["Planner", "Planner", "Browser"]
    assert run.models[0].attributes["role"] == "Planner (thought)"
    assert [(each.stage, each.chosen) for each in run.decisions] == [("handoff from Planner", "Browser")]
    assert (run.query, run.answer, run.verdict) == ("How tall?", "381 m", "bad")
    assert [each.id for each in ledger.runs.list(agent="Browser")] == [run.id]
    assert not ledger.runs.list(agent="human").items


def test_in_a_chat_of_agents_users_are_agents(ledger: woodrat.Ledger) -> None:
    """Where several users have names, `user` only means that somebody else speaks; a lone one is a user."""
    said = [
        {"role": "user", "name": name, "content": f"I am {name}."} for name in ("Solver", "Checker", "Solver")
    ]  # fmt: skip
    run = only(ledger, {"messages": [*said, {"role": "assistant", "name": "Checker", "content": "Right."}]})
    assert [model.attributes["agent"] for model in run.models] == ["Solver", "Checker", "Solver", "Checker"]
    lone = only(ledger, {"messages": [{"role": "user", "name": "ann", "content": "Hi"}, {"role": "ai", "text": "Hi"}]})
    assert (lone.query, lone.names, len(lone.models)) == ("Hi", (), 1)
    assert lone.models[0].messages == [{"role": "user", "name": "ann", "content": "Hi"}]


@pytest.mark.parametrize(
    ("column", "verdict", "score"),
    [
        ({"reward": 1.0}, "good", 1), ({"reward": 0}, "bad", 0), ({"reward": 0.4}, "scored", 0.4),
        ({"score": 1}, "scored", 1), ({"passed": True}, "good", 1), ({"success": "no"}, "bad", None),
        ({"reward_info": {"reward": 1.0}}, "good", 1), ({"info": {"note": "x"}}, None, None),
    ],
)  # fmt: skip
def test_a_reward_is_a_verdict(ledger: woodrat.Ledger, column: Any, verdict: str | None, score: Any) -> None:
    """A reward becomes what was thought of the run, and stays among its attributes with all other columns."""
    run = only(ledger, {"traj": [{"role": "user", "content": "Hi"}], "task_id": 17, **column})
    assert run.verdict == verdict
    assert [judgement.score for judgement in run.judgements] == ([score] if verdict else [])
    assert run.attributes == {"task_id": 17, **column}


def test_rewards_separate_groups(ledger: woodrat.Ledger) -> None:
    """`runs group` takes the imported rewards, with the smallest good one where they are not 0 and 1."""
    runs = ledger.runs.import_([
        {"task": "a", "messages": [{"role": "user", "content": f"{n}"}], "score": n / 4} for n in range(5)
    ])  # fmt: skip
    group = ledger.runs.group(runs, reward_min=0.5)
    assert ledger.runs.show(runs[0]).verdict == "scored"
    assert "reward" in json.dumps(group.to_json())


def test_lists_and_what_is_around_them(ledger: woodrat.Ledger) -> None:
    """A bare list of messages is one run; an object around runs is opened, and what it says beside them is kept."""
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    assert only(ledger, said).answer == "Hello"
    whole = {
        "info": {"model": "small-1"},
        "simulations": [{"id": "a", "messages": said}, {"id": "b", "messages": said}],
    }
    runs = [ledger.runs.show(run) for run in ledger.runs.import_(whole)]
    assert [run.attributes["document"] for run in runs] == [{"info": {"model": "small-1"}}] * 2


def test_rows_of_csv_are_runs(ledger: woodrat.Ledger) -> None:
    """A row has messages in a column, is a message of a conversation, or has a question and an answer."""
    whole = 'messages,reward,task\n"[{""role"": ""user"", ""content"": ""Hi""}]",0.0,7\n'
    run = only(ledger, whole)
    assert (run.query, run.verdict, run.attributes["task"]) == ("Hi", "bad", "7")
    apart = "conversation_id,role,content\na,user,Hi\nb,user,Bye\na,assistant,Hello\n"
    listed = [ledger.runs.show(id) for id in ledger.runs.import_(apart)]
    assert [(each.query, each.answer) for each in listed] == [("Hi", "Hello"), ("Bye", None)]
    pair = only(ledger, "question,answer,correct\nWhen?,Now,true\n")
    assert (pair.query, pair.answer, pair.verdict) == ("When?", "Now", "good")
    with pytest.raises(woodrat.Refused, match=r"row 3.*it has 1 cells, and the header has 2"):
        ledger.runs.import_("question,answer\n1,2\n1\n")


# Exports of trace stores

LANGSMITH: dict[str, Any] = {
    "id": "r", "trace_id": "r", "run_type": "chain", "name": "agent", "inputs": {"input": "When?"},
    "outputs": {"output": "In 30 days."}, "start_time": "2026-01-05T09:00:00", "end_time": "2026-01-05T09:00:04",
    "feedback_stats": {"correctness": {"n": 1, "avg": 0.5}},
    "child_runs": [
        {"id": "m1", "run_type": "llm", "name": "ChatOpenAI", "start_time": 1767603601000, "error": "TimeoutError: slow"},
        {"id": "m2", "run_type": "llm", "name": "ChatOpenAI", "start_time": 1767603602000,
         "inputs": {"messages": [{"role": "user", "content": "When?"}]},
         "outputs": {"choices": [{"message": {"role": "assistant", "content": "In 30 days."}}],
                     "usage_metadata": {"input_tokens": 9, "output_tokens": 3}}},
        {"id": "t", "run_type": "tool", "name": "terms", "start_time": 1767603603000,
         "inputs": {"input": "{'client': 'kline'}"}, "outputs": {"output": {"days": 30}}},
    ],
}  # fmt: skip


def test_langsmith_runs_nested_flat_and_apart(ledger: woodrat.Ledger) -> None:
    """Nested, flat under `runs`, and as beginnings and ends: retries, tokens and feedback are kept."""
    run = only(ledger, LANGSMITH)
    assert [(model.errored, model.response) for model in run.models] == [(True, None), (False, "In 30 days.")]
    assert (run.models[1].input_tokens, run.models[1].output_tokens) == (9, 3)
    assert [(call.name, call.args, call.result) for call in run.tool_calls] == [
        ("terms", {"client": "kline"}, {"days": 30})
    ]
    assert [(each.by, each.score, each.verdict) for each in run.judgements] == [("score correctness", 0.5, "scored")]
    spans = [{name: value for name, value in LANGSMITH.items() if name != "child_runs"}]
    spans += [{"trace_id": "r", "parent_run_id": "r", **child} for child in LANGSMITH["child_runs"]]
    flat = [{**span, "trace_id": "flat"} for span in spans]
    assert len(only(ledger, {"runs": flat}).steps) == len(run.steps)
    ends = ("outputs", "end_time", "error")
    post = [{name: value for name, value in span.items() if name not in ends} for span in spans]
    patch = [{"id": span["id"], **{name: span[name] for name in ends if name in span}} for span in spans]
    again = only(ledger, {"post": [{**each, "trace_id": "apart"} for each in post], "patch": patch})
    assert (again.answer, len(again.steps)) == (run.answer, len(run.steps))


LANGFUSE: dict[str, Any] = {
    "trace": {"id": "trace-1", "name": "support", "timestamp": "2026-01-05T09:00:00Z", "input": '"When?"',
              "output": '"In 30 days."', "sessionId": "s1",
              "scores": [{"name": "helpful", "value": 1, "dataType": "BOOLEAN", "comment": "yes"}]},
    "observations": [
        {"id": "t1", "traceId": "trace-1", "parentObservationId": "a1", "type": "TOOL", "name": "terms",
         "startTime": "2026-01-05T09:00:02Z", "input": '{"client": "kline"}', "output": {"days": 30}},
        {"id": "a1", "traceId": "trace-1", "parentObservationId": None, "type": "AGENT", "name": "helper",
         "startTime": "2026-01-05T09:00:00Z"},
        {"id": "g1", "traceId": "trace-1", "parentObservationId": "a1", "type": "GENERATION", "name": "chat",
         "model": "small-1", "startTime": "2026-01-05T09:00:01Z", "usageDetails": {"input": 9, "output": 3},
         "input": [{"role": "user", "content": "When?"}], "output": {"role": "assistant", "content": "In 30 days."}},
        {"id": "g2", "traceId": "trace-1", "parentObservationId": "a1", "type": "GENERATION", "name": "chat",
         "startTime": "2026-01-05T09:00:03Z", "level": "ERROR", "statusMessage": "rate limit"},
    ],
}  # fmt: skip


def test_a_langfuse_export_is_a_run(ledger: woodrat.Ledger) -> None:
    """Observations in any order become steps; errors, tokens, names and scores are kept."""
    run = only(ledger, LANGFUSE)
    assert (run.query, run.answer, run.conversation, run.names) == ("When?", "In 30 days.", "s1", ("helper",))
    assert [(call.name, call.args, call.result) for call in run.tool_calls] == [
        ("terms", {"client": "kline"}, {"days": 30})
    ]
    assert [(model.model, model.errored) for model in run.models] == [("small-1", False), (None, True)]
    assert (run.models[0].input_tokens, run.models[0].response) == (9, "In 30 days.")
    (judgement,) = run.judgements
    assert (judgement.verdict, judgement.by, judgement.reason) == ("good", "score helpful", "yes")
    assert len(only(ledger, [{**each, "traceId": "other"} for each in LANGFUSE["observations"]]).steps) == 3


def phoenix(**further: Any) -> list[dict[str, Any]]:
    """Return spans as Phoenix gives them."""
    return [
        {"name": "turn", "context": {"trace_id": TRACE, "span_id": ROOT}, "span_kind": "AGENT", "parent_id": None,
         "start_time": "2026-01-05T09:00:00+00:00", "end_time": "2026-01-05T09:00:04+00:00", "status_code": "OK",
         "attributes": {"input.value": "When?", "output.value": "In 30 days.", "agent.name": "helper"}, **further},
        {"name": "terms", "context": {"trace_id": TRACE, "span_id": INNER}, "span_kind": "TOOL", "parent_id": ROOT,
         "start_time": "2026-01-05T09:00:01+00:00", "end_time": "2026-01-05T09:00:02+00:00", "status_code": "ERROR",
         "status_message": "no such client", "attributes": {"tool": {"name": "terms"}, "input.value": '{"client": "k"}'},
         "annotations": [{"name": "relevance", "result": {"label": "irrelevant", "score": 0.1, "explanation": "no"}}]},
    ]  # fmt: skip


def test_spans_of_phoenix_are_a_run(ledger: woodrat.Ledger) -> None:
    """As its API lists them, as rows of a data frame, and as the console exporters write them."""
    run = only(ledger, phoenix())
    assert (run.query, run.answer, run.names) == ("When?", "In 30 days.", ("helper",))
    (call,) = run.tool_calls
    assert (call.name, call.args, call.error) == (
        "terms",
        {"client": "k"},
        {"type": "Exception", "message": "no such client"},
    )
    assert [(each.by, each.score, each.about) for each in run.judgements] == [("score relevance", 0.1, INNER)]
    rows = [
        {"name": each["name"], "span_kind": each["span_kind"], "parent_id": each["parent_id"],
         "start_time": each["start_time"], "status_code": each["status_code"],
         "context.span_id": each["context"]["span_id"], "context.trace_id": "cd" * 16,
         **{f"attributes.{name}": value for name, value in each["attributes"].items()}}
        for each in phoenix()
    ]  # fmt: skip
    assert [call.name for call in only(ledger, rows).tool_calls] == ["terms"]
    console: dict[str, Any] = {"name": "chat", "context": {"trace_id": f"0x{'ef' * 16}", "span_id": "0x3333333333333333"}, "parent_id": None,
               "start_time": "2026-01-05T09:00:00.5Z", "status": {"status_code": "OK"}, "events": [],
               "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-1"},
               "resource": {"attributes": {"service.name": "desk"}}}  # fmt: skip
    made = only(ledger, console)
    assert (made.trace, made.names, [model.model for model in made.models]) == ("ef" * 16, ("desk",), ["small-1"])
    script = {"name": "chat", "spanContext": {"traceId": "12" * 16, "spanId": "4" * 16}, "startTime": [1767603600, 5],
              "attributes": {"ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "small-1"}}  # fmt: skip
    assert [model.model for model in only(ledger, [script]).models] == ["small-1"]


def test_otlp_is_imported_like_any_other(ledger: woodrat.Ledger) -> None:
    """A request in OTLP's JSON is a document too; its service and its agent are names that find the run."""
    span = {"traceId": TRACE, "spanId": ROOT, "name": "invoke_agent", "startTimeUnixNano": "1767603600000000000",
            "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}},
                           {"key": "gen_ai.agent.name", "value": {"stringValue": "helper"}}]}  # fmt: skip
    about = {"attributes": [{"key": "service.name", "value": {"stringValue": "desk"}}]}
    request = {"resourceSpans": [{"resource": about, "scopeSpans": [{"spans": [span]}]}]}
    run = only(ledger, request)
    assert run.names == ("desk", "helper")
    for name in (*run.names, run.agent):
        assert [each.id for each in ledger.runs.list(agent=name)] == [run.id]
    with pytest.raises(woodrat.Refused, match="spanId is"):
        ledger.runs.import_({"resourceSpans": [{"scopeSpans": [{"spans": [span, {**span, "spanId": "0"}]}]}]})


# Agents


def test_atif_and_the_agents_sdk(ledger: woodrat.Ledger) -> None:
    """Steps of an ATIF trajectory, and what the OpenAI Agents SDK exports of itself: handoffs are decisions."""
    atif = only(ledger, {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "finance", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "When?"},
            {"step_id": 2, "source": "agent", "message": "", "metrics": {"prompt_tokens": 5, "completion_tokens": 2},
             "tool_calls": [{"tool_call_id": "c", "function_name": "terms", "arguments": {"client": "kline"}}],
             "observation": {"results": [{"source_call_id": "c", "content": "30 days"}]}},
            {"step_id": 3, "source": "agent", "message": "In 30 days."},
        ]})  # fmt: skip
    assert (atif.query, atif.answer, atif.names, atif.code) == ("When?", "In 30 days.", ("finance",), "1")
    assert [(call.name, call.result) for call in atif.tool_calls] == [("terms", "30 days")]
    span = {"object": "trace.span", "trace_id": "trace_1", "started_at": "2026-01-05T09:00:00Z", "error": None}
    sdk = only(ledger, {"data": [
        {**span, "id": "s3", "parent_id": "s1", "span_data": {"type": "handoff", "from_agent": "Triage", "to_agent": "Desk"}},
        {**span, "id": "s2", "parent_id": "s1", "span_data": {"type": "function", "name": "terms", "input": "{}", "output": "30"}},
        {**span, "id": "s1", "parent_id": None, "span_data": {"type": "agent", "name": "Triage"}},
        {"object": "trace", "id": "trace_1", "workflow_name": "Support"},
    ]})  # fmt: skip
    assert (sdk.query, sdk.names) == ("Support", ("Triage",))
    assert [(each.stage, each.chosen) for each in sdk.decisions] == [("handoff from Triage", "Desk")]
    assert [(call.name, call.attributes) for call in sdk.tool_calls] == [("terms", {"agent": "Triage"})]


# Our own exports

TOLD: dict[str, Any] = {
    "query": "Approve #42?", "subject": "loan/42", "conversation": "app-42", "inputs": {"application": 42},
    "steps": [
        {"read": "loan/42"},
        {"tool": {"name": "bureau", "args": {"id": "42"}, "result": None}},
        {"tool": {"name": "fraud", "error": {"type": "TimeoutError", "message": "too slow"}}},
        {"model": {"model": "small-1", "messages": [{"role": "user", "content": "?"}], "response": "no"}},
        {"decide": {"stage": "risk", "facts": "loan/42", "default": "review",
                    "rules": [{"chosen": "reject", "when": {"score": {"lt": 600}}, "label": "low"},
                              {"chosen": "accept", "when": {"score": {"gt": 700}}}]}},
        {"store": [{"entity_type": "loan", "id": "42", "status": "rejected"}]},
        {"note": "told the applicant"},
    ],
    "answer": "Rejected.",
}  # fmt: skip


def test_a_run_record_is_imported_again(ledger: woodrat.Ledger) -> None:
    """The JSON of `runs show` makes the same run elsewhere; here it changes nothing, and another account is refused."""
    ledger.store({"entity_type": "loan", "id": "42", "score": 580})
    (run,) = ledger.runs.import_(TOLD)
    ledger.runs.judge(run, "good", by="ann", score=0.5)
    exported = json.loads(json.dumps(ledger.runs.show(run).to_json()))
    position = ledger.position
    assert ledger.runs.import_(exported) == (run,)
    assert ledger.position == position
    other = opened(InMemoryEngine())
    copied = only(other, exported)
    places = {"position", "positions", "start", "end", "narrative", "margin", "unchecked"}

    def told(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: told(inner) for name, inner in value.items() if name not in places}
        return [told(item) for item in value] if isinstance(value, list) else value

    assert told(copied.to_json()) == told(exported)
    assert [write.observation for write in copied.writes] == [write["observation"] for write in exported["writes"]]
    with pytest.raises(woodrat.Refused, match="says something else of it"):
        ledger.runs.import_({**exported, "answer": "Accepted."})
    with pytest.raises(woodrat.Refused, match="/status"):
        other.runs.import_({**exported, "status": "asleep", "reads": 3})


def test_an_entry_of_a_causal_memory_is_a_snapshot(ledger: woodrat.Ledger) -> None:
    """A memory's entry, or its whole list, is opened; its conversation, its times and its narrative are kept."""
    value = {"query": "Watch it?", "finalContent": "Yes.", "iterations": 1, "decisions": [], "toolCalls": [],
             "durationMs": 5, "tokenUsage": {"input": 1, "output": 1}}  # fmt: skip
    value["narrative"] = "It was watched."
    entry: dict[str, Any] = {"id": "snap-1", "value": value, "source": {"identity": {"conversationId": "c1"}}}
    entry |= {"createdAt": 1_767_603_600_005, "updatedAt": 1_767_603_700_000}
    (run,) = ledger.runs.import_({"entries": [entry], "cursor": None})
    found = ledger.runs.show(run)
    assert (found.answer, found.conversation) == ("Yes.", "c1")
    assert (found.started_at, found.ended_at) == ("2026-01-05T09:00:00.000000Z", "2026-01-05T09:00:00.005000Z")
    written = found.snapshot()
    assert (written["createdAt"], written["updatedAt"]) == (entry["createdAt"], entry["updatedAt"])
    assert written["narrative"] == "It was watched."


def test_runs_by_name_and_an_answer_beside_the_spans(ledger: woodrat.Ledger) -> None:
    """An object of runs, each by its name, is these runs; what stands as the final output beside spans is the answer."""
    turns = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Hello."}]
    runs = ledger.runs.import_({"parent": {"id": "1", "messages": turns}, "child": {"id": "2", "messages": turns}})
    assert [ledger.runs.show(run).answer for run in runs] == ["Hello.", "Hello."]
    spans = [{**span, "parent_id": "f" * 16} if span.get("parent_id") is None else span for span in phoenix()]
    for span in spans:
        span["attributes"] = {key: value for key, value in span["attributes"].items() if not key.startswith("output")}
    (run,) = ledger.runs.import_({"spans": spans, "final_output": "It is done."})
    assert (ledger.runs.show(run).answer, ledger.runs.show(run).status) == ("It is done.", "done")


def test_searches_for_tools_are_steps(ledger: woodrat.Ledger) -> None:
    """A tool that the model's own side runs has no call id; its output belongs to the call before it."""
    run = only(ledger, {
        "input": [{"role": "user", "content": "Rate?"}],
        "output": [
            {"type": "tool_search_call", "id": "tsc_1", "call_id": None, "execution": "server",
             "arguments": {"paths": ["rates"]}, "status": "completed"},
            {"type": "tool_search_output", "id": "tso_1", "call_id": None, "execution": "server",
             "tools": [{"name": "rates"}], "status": "completed"},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "rates", "arguments": "{}"},
        ],
    })  # fmt: skip
    assert [(call.name, call.args, call.result) for call in run.tool_calls] == [
        ("tool_search", {"paths": ["rates"]}, [{"name": "rates"}]),
        ("rates", {}, None),
    ]
