"""Training rows: what a run teaches, and in which shape."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.story import RUN, Said, at, body, condition, entries, loan, record
from tests.runs.test_record import bodies

import woodrat
from woodrat.runs.conversation import answer_turn, conversation
from woodrat.runs.record import RunRecord, record_of
from woodrat.training import rows as training_rows
from woodrat.training.rows import LeftOut, Lesson, lesson


def learned(said: list[Said]) -> Lesson:
    """Return the lesson of a run that is fit to be one."""
    found = lesson(record(said))
    assert isinstance(found, Lesson), found
    return found


def left_out(found: object) -> str:
    """Return why a run was left out."""
    assert isinstance(found, LeftOut)
    return found.reason


def judged(said: list[Said], *verdicts: dict[str, Any]) -> list[Said]:
    """Return a run that was judged afterwards."""
    return [*said, *(("run.judged", body(50 + number, **given)) for number, given in enumerate(verdicts))]


ANSWER = "Application #42: REJECTED. Credit (580) below floor (600)."


def test_a_run_is_a_conversation() -> None:
    """The question with its inputs, each read and tool call with its result, what was said and decided, the answer."""
    messages = conversation(record())
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert messages[0].content == 'Should we approve application #42?\n\nInputs: {"application": 42}'
    assert [(use.name, dict(use.arguments)) for use in messages[1].calls] == [("show", {"ref": "loan/42"})]
    assert messages[2].content == '{"fields": {"creditScore": 580}}'
    assert messages[4].content == '{"hits": 1}'
    assert messages[5].content == (
        "The score settles it.\nDecision classify-risk: rejected. Rule: Marginal credit. "
        f"Evidence: creditScore = 580, threshold = 600.\n{ANSWER}"
    )
    assert [message.positions for message in messages] == [(10,), (11,), (11,), (12,), (12,), (13, 14, 16)]


@given(st.lists(bodies(), max_size=8))
def test_results_follow_their_calls_whatever_was_recorded(said: list[Said]) -> None:
    """Without requests on record a user begins, every call is followed by its result, and no result by another."""
    said = [(kind, {name: value for name, value in given.items() if name != "messages"}) for kind, given in said]
    messages = conversation(record_of(RUN, entries(said)))
    assert messages[0].role == "user"
    for before, after in pairwise(messages):
        if before.calls:
            assert (after.role, after.answers) == ("tool", before.calls[0])
        else:
            assert after.role == "assistant"


def test_what_happens_inside_a_tool_is_the_tools_own_affair() -> None:
    """Reads and calls inside a tool are left out of the conversation; a decision inside it is told."""
    inner = {"under": f"{1:016x}"}
    said = [
        ("run.started", body(0, query="?")),
        ("run.tool", body(1, name="outer", args={}, result="done")),
        ("run.tool", body(2, name="inner", args={}, result="x", **inner)),
        ("run.read", body(3, entity="loan/42", fields={}, **inner)),
        ("run.decided", body(4, stage="s", chosen="c", default=True, rules=[], **inner)),
        ("run.ended", body(5, status="done", answer="a")),
    ]
    messages = conversation(record(said))
    assert [use.name for message in messages for use in message.calls] == ["outer"]
    assert messages[-1].content == "Decision s: c. No rule matched.\na"


def test_entities_that_one_verb_returned_are_one_result() -> None:
    """A search is one call, with all it found."""
    found: dict[str, Any] = {"within": "search", "args": {"query": "ana"}, "log": "l", "position": 3}
    reads = [
        ("run.read", {**body(1, entity=f"contact/{name}", found=True, **found), "span": "s"}) for name in ("a", "b")
    ]
    messages = conversation(record([("run.started", body(0, query="?")), *reads, ("run.ended", body(2, answer="x"))]))
    assert [(use.name, dict(use.arguments)) for use in messages[1].calls] == [("search", {"query": "ana"})]
    assert [row["entity"] for row in json.loads(messages[2].content)] == ["contact/a", "contact/b"]
    assert messages[2].positions == (11, 12)


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ("plain", "plain"),
        ({"content": "anthropic or message"}, "anthropic or message"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "tool_use"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"choices": [{"message": {"role": "assistant", "content": "openai"}}]}, "openai"),
        ({"choices": [{"message": {"content": None, "tool_calls": []}}]}, None),
        ({"output_text": "responses"}, "responses"),
        ({"message": {"content": "ollama"}}, "ollama"),
        ({"$truncated": {"bytes": 9, "preview": "x"}}, None),
        ({"label": 1}, None),
        (None, None),
    ],
)
def test_the_text_of_a_response_is_found(response: Any, text: str | None) -> None:
    """Responses as clients give them have their text read; others have none."""
    found = answer_turn(response)
    assert (None if found is None else found.content) == text


# Conversations


def turns_of(row: dict[str, Any]) -> list[Any]:
    """Return the turns of a row: who, what, and the tools that are called with their arguments."""
    return [
        (
            m["role"],
            m.get("content"),
            [(c["function"]["name"], c["function"]["arguments"]) for c in m.get("tool_calls", ())],
        )
        for m in row["messages"]
    ]


def test_a_chat_is_told_turn_by_turn() -> None:
    """Every turn of an imported chat is in its row, in order and as it was written; results name their calls.

    Neighbouring turns of the assistant stay apart, parallel calls are one turn, and tools have their descriptions. A
    row for OpenAI ends with the assistant, as its fine-tuning wants it.
    """
    weather = {
        "type": "function",
        "function": {"name": "weather", "description": "Now.", "parameters": {"type": "object"}},
    }

    def call(id: str, city: str) -> dict[str, Any]:
        return {"id": id, "type": "function", "function": {"name": "weather", "arguments": json.dumps({"city": city})}}

    chat: list[dict[str, Any]] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Let me see."},
        {"role": "assistant", "content": "Which cities?"},
        {"role": "user", "content": "Oslo and Rome"},
        {"role": "assistant", "content": None, "tool_calls": [call("a", "Oslo"), call("b", "Rome")]},
        {"role": "tool", "tool_call_id": "b", "content": '{"sky":  "blue", "air": 21.0}'},
        {"role": "tool", "tool_call_id": "a", "content": "rain"},
        {"role": "assistant", "content": "Rain in Oslo, sun in Rome."},
        {"role": "user", "content": "Thanks"},
    ]
    ledger = woodrat.open(":memory:", agent="importer")
    (run,) = ledger.runs.import_({"messages": chat, "tools": [weather]})
    found = lesson(ledger.runs.show(run))
    assert isinstance(found, Lesson)
    row = training_rows.sft_row(found, "trl")
    asked = [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]
    told: list[Any] = [(m["role"], m["content"], []) for m in chat]
    told[5:8] = [("assistant", None, asked), ("tool", "rain", []), ("tool", '{"sky":  "blue", "air": 21.0}', [])]
    assert turns_of(row) == told
    assert [m["tool_call_id"] for m in row["messages"][6:8]] == [c["id"] for c in row["messages"][5]["tool_calls"]]
    assert json.loads(row["tools"]) == [weather]
    assert [m[:2] for m in turns_of(training_rows.sft_row(found, "openai"))] == [m[:2] for m in told[:-1]]


def asked(step: int, response: Any, *messages: dict[str, Any], **given: Any) -> Said:
    """Return a model call with its request."""
    return "run.model", body(step, messages=list(messages), response=response, **given)


def test_the_conversation_is_the_thread_that_ends_in_the_answer() -> None:
    """A call about something else is no part of it; an answer that was asked for again counts once; cut turns stay."""
    system, question = {"role": "system", "content": "s1"}, {"role": "user", "content": "q"}
    spoke, more = {"role": "assistant", "content": "a1"}, {"role": "user", "content": "more"}
    said = [
        ("run.started", body(0, query="q")),
        asked(1, "a0", system, question),
        asked(2, "a1", system, question),
        asked(3, "a title", {"role": "user", "content": "Give this a title"}),
        asked(4, "a2", {"role": "system", "content": "s2"}, spoke, more),
        ("run.ended", body(5, status="done", answer="a2")),
    ]
    turns = [(turn.role, turn.content) for turn in conversation(record(said))]
    assert turns == [("system", "s2"), ("user", "q"), ("assistant", "a1"), ("user", "more"), ("assistant", "a2")]


def test_an_answer_of_the_code_is_a_turn_after_what_was_decided() -> None:
    """Where code decides on what a model said, the answer is a turn of its own; a request that was cut makes no row."""
    rules = [{"label": "a", "chosen": 1, "matched": True, "conditions": [condition("x", "gt", 1, 2, True)]}]
    said = [
        ("run.started", body(0, query="q")),
        asked(1, "low", {"role": "user", "content": "Rate it"}),
        ("run.decided", body(2, stage="s", chosen="no", rule="a", rules=rules)),
        ("run.ended", body(3, status="done", answer="Rejected")),
    ]
    assert [(turn.role, turn.content) for turn in conversation(record(said))] == [
        ("user", "Rate it"),
        ("assistant", "low"),
        ("assistant", "Decision s: no. Rule: a. Evidence: x = 2, threshold = 1.\nRejected"),
    ]
    said[1][1]["messages"] = {"$truncated": {"bytes": 99_999}}
    assert left_out(lesson(record(said))).startswith("its recorder could not keep")


# Rows


def test_an_sft_row_for_trl() -> None:
    """Messages with arguments as objects, tools as the JSON text of a list of schemas, and where the row is from."""
    row = training_rows.sft_row(learned(loan()), "trl")
    assert list(row) == ["messages", "tools", "metadata"]
    assert row["messages"][3] == {
        "role": "assistant",
        "tool_calls": [
            {
                "id": "call_2",
                "type": "function",
                "function": {"name": "lookup_credit_bureau", "arguments": {"application_id": "42"}},
            }
        ],
    }
    assert row["messages"][4] == {
        "role": "tool",
        "tool_call_id": "call_2",
        "name": "lookup_credit_bureau",
        "content": '{"hits": 1}',
    }
    tools = json.loads(row["tools"])
    assert [tool["function"]["name"] for tool in tools] == ["lookup_credit_bureau", "show"]
    assert tools[0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"application_id": {"type": "string"}},
        "required": ["application_id"],
    }
    assert row["metadata"] == {
        "kind": "sft",
        "runs": [RUN],
        "entries": [[10, 11, 12, 13, 14, 15, 16]],
        "agents": ["loan-officer"],
        "verdicts": [""],
    }


def test_an_sft_row_for_openai() -> None:
    """Arguments are JSON text, calls have ids that results name, tools are a list."""
    row = training_rows.sft_row(learned(loan()), "openai")
    call = row["messages"][3]["tool_calls"][0]
    assert call["function"] == {"name": "lookup_credit_bureau", "arguments": '{"application_id": "42"}'}
    assert row["messages"][4] == {"role": "tool", "tool_call_id": call["id"], "content": '{"hits": 1}'}
    assert [tool["type"] for tool in row["tools"]] == ["function", "function"]


def test_names_of_tools_fit_openai() -> None:
    """A name with other signs or too long is spelled as OpenAI takes it, in calls and schemas alike."""
    said = loan()
    said[2][1]["name"] = "bureau.look up" + "x" * 80
    row = training_rows.sft_row(learned(said), "openai")
    name = row["messages"][3]["tool_calls"][0]["function"]["name"]
    assert name == ("bureau_look_up" + "x" * 80)[:64]
    assert name in {tool["function"]["name"] for tool in row["tools"]}


def test_tools_known_from_their_configuration_keep_their_schema() -> None:
    """A schema that is known is used instead of one inferred from the calls."""
    known = {"lookup_credit_bureau": {"description": "Asks the bureau.", "parameters": {"type": "object"}}}
    found = lesson(record(), known)
    assert isinstance(found, Lesson)
    assert found.tools["lookup_credit_bureau"] == known["lookup_credit_bureau"]


def test_inferred_parameters_fit_every_call() -> None:
    """Arguments of several calls give types together, and only those that every call has are required."""
    said = loan()
    said.insert(
        3, ("run.tool", body(2, name="lookup_credit_bureau", args={"application_id": 42, "deep": True}, result=1))
    )
    said[3][1]["span"] = "other"
    tool = learned(said).tools["lookup_credit_bureau"]["parameters"]
    assert tool["properties"] == {"application_id": {"type": ["integer", "string"]}, "deep": {"type": "boolean"}}
    assert tool["required"] == ["application_id"]


@pytest.mark.parametrize(("verdict", "label"), [("good", True), ("passed", True), ("bad", False), ("failed", False)])
def test_a_kto_row(verdict: str, label: bool) -> None:
    """The last message with what led to it, and whether it is good."""
    row = training_rows.kto_row(learned(judged(loan(), {"verdict": verdict})), "trl")
    assert list(row) == ["prompt", "completion", "label", "tools", "metadata"]
    assert (len(row["prompt"]), len(row["completion"]), row["label"]) == (5, 1, label)
    assert row["completion"][0]["content"].endswith(ANSWER)


def test_a_preferred_answer_makes_a_pair() -> None:
    """The better answer against the one given, after one and the same prompt."""
    said = judged(loan(), {"verdict": "bad", "preferred": "Rejected: 580 is below 600."})
    row = training_rows.preferred_row(learned(said), "trl")
    assert isinstance(row, dict)
    assert list(row) == ["prompt", "chosen", "rejected", "tools", "metadata"]
    assert row["chosen"] == [{"role": "assistant", "content": "Rejected: 580 is below 600."}]
    assert row["rejected"] == [{"role": "assistant", "content": ANSWER}]
    assert [message["role"] for message in row["prompt"]] == ["user", "assistant", "tool", "assistant", "tool"]
    same = judged(loan(), {"verdict": "good", "preferred": ANSWER})
    assert left_out(training_rows.preferred_row(learned(same), "trl")) == "the preferred answer equals its own"


def hasty() -> list[Said]:
    """Return a run with Monday's input that decides without asking the bureau."""
    said = [item for item in loan() if item[0] != "run.tool"]
    return judged(said, {"verdict": "bad"})


def test_a_pair_is_cut_at_the_first_difference() -> None:
    """Two runs share their prompt up to the first message that differs, and nothing after it is told."""
    good, bad = learned(judged(loan(), {"verdict": "good"})), learned(hasty())
    row = training_rows.pair_row(good, bad, "trl")
    assert isinstance(row, dict)
    assert len(row["prompt"]) == 3
    assert row["chosen"][0]["tool_calls"][0]["function"]["name"] == "lookup_credit_bureau"
    assert row["rejected"][0]["content"].startswith("The score settles it.")
    assert len(row["chosen"]) == len(row["rejected"]) == 1
    assert row["metadata"]["runs"] == [RUN, RUN]


def test_a_pair_for_openai() -> None:
    """OpenAI's own three keys, with the shared messages and tools under `input`."""
    row = training_rows.pair_row(learned(judged(loan(), {"verdict": "good"})), learned(hasty()), "openai")
    assert isinstance(row, dict)
    assert list(row) == ["input", "preferred_output", "non_preferred_output", "metadata"]
    assert list(row["input"]) == ["messages", "tools", "parallel_tool_calls"]


def test_runs_that_part_at_what_a_tool_returned_make_no_pair() -> None:
    """Where the world differed and not the choice, there is nothing to prefer."""
    other = loan()
    other[2][1]["result"] = {"hits": 2}
    row = training_rows.pair_row(learned(loan()), learned(other), "trl")
    assert "at a tool's result" in left_out(row)
    assert "it did the same as" in left_out(training_rows.pair_row(learned(loan()), learned(loan()), "trl"))


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.sampled_from(["trl", "openai"]))
def test_both_sides_of_a_pair_follow_the_same_prompt(shared: int, one: int, other: int, flavour: str) -> None:
    """Whatever two runs share, the prompt is the beginning of both, and chosen and rejected differ."""

    def run(tail: list[str]) -> Lesson:
        names = [*(f"shared{number}" for number in range(shared)), *tail]
        calls = [("run.tool", body(1 + n, name=name, args={"n": n}, result=n)) for n, name in enumerate(names)]
        end = ("run.ended", body(20, status="done", answer=f"after {len(tail)}"))
        return learned([("run.started", body(0, query="?")), *calls, end])

    good, bad = run([f"good{number}" for number in range(one)]), run([f"bad{number}" for number in range(other)])
    row = training_rows.pair_row(good, bad, flavour)
    if isinstance(row, LeftOut):
        assert one == other == 0
        return
    prompt = row["prompt"] if flavour == "trl" else row["input"]["messages"]
    chosen, rejected = (
        (row["chosen"], row["rejected"]) if flavour == "trl" else (row["preferred_output"], row["non_preferred_output"])
    )
    assert chosen != rejected
    for found, side in ((good, chosen), (bad, rejected)):
        whole = training_rows.sft_row(found, flavour)["messages"]
        assert whole[: len(prompt) + 1] == [*prompt, *side]


def test_steps_of_a_good_run_are_good() -> None:
    """Each message of the assistant, a call with its result, is a step."""
    row = training_rows.process_row(learned(judged(loan(), {"verdict": "good"})), None)
    assert isinstance(row, dict)
    assert list(row) == ["prompt", "completions", "labels", "metadata"]
    assert isinstance(row["prompt"], str)
    assert row["completions"][1] == 'lookup_credit_bureau({"application_id": "42"})\n-> {"hits": 1}'
    assert row["labels"] == [True, True, True]


def test_a_bad_run_is_good_up_to_where_it_parts_from_a_good_one() -> None:
    """With a good run of the same input beside it, the steps before they part are good and the rest are not."""
    good, bad = learned(judged(loan(), {"verdict": "good"})), learned(hasty())
    row = training_rows.process_row(bad, good)
    assert isinstance(row, dict)
    assert row["labels"] == [True, False]
    assert "judge a step" in left_out(training_rows.process_row(bad, None))


def test_a_judged_step_keeps_its_verdict() -> None:
    """A step that was judged bad messages the run there; one judged good stays good."""
    said = judged(loan(), {"verdict": "bad"}, {"verdict": "bad", "by": "x", "about": f"{2:016x}"})
    row = training_rows.process_row(learned(said), None)
    assert isinstance(row, dict)
    assert row["labels"] == [True, False, False]
    said = judged(said, {"verdict": "good", "by": "y", "about": f"{4:016x}"})
    row = training_rows.process_row(learned(said), None)
    assert isinstance(row, dict)
    assert row["labels"] == [True, False, True]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda said: said[:-1], "it did not end well (interrupted)"),
        (lambda said: [*said[:-1], ("run.ended", body(6, status="error"))], "it did not end well (error)"),
        (lambda said: [("run.started", body(0)), *said[1:]], "nothing was asked"),
        (lambda said: [*said[:3], ("run.ended", body(6, status="done"))], "nothing was answered"),
        (lambda said: [("run.started", {**said[0][1], "recall": True}), *said[1:]], "it answered from memory"),
        (
            lambda said: [*said[:-1], ("run.ended", body(6, status="done", answer={"$truncated": {"bytes": 9}}))],
            "its recorder could not keep",
        ),
    ],
)
def test_runs_that_teach_nothing_are_left_out(change: Any, reason: str) -> None:
    """A run that failed, asked or answered nothing, answered from memory, or was cut is left out, with the reason."""
    assert left_out(lesson(record(change(loan())))).startswith(reason)


def test_runs_with_the_same_input_are_found_together() -> None:
    """Question, subject and inputs make the input; who ran, when and in which conversation does not."""

    def given(**changed: Any) -> RunRecord:
        said = loan()
        return record([("run.started", {**said[0][1], **changed}), *said[1:]])

    first = training_rows.pair_key(given())
    assert training_rows.pair_key(given(agent="other", conversation="c", principal="p", started_at=at(9))) == first
    for changed in ({"query": "?"}, {"subject": "loan/43"}, {"inputs": {"application": 43}}):
        assert training_rows.pair_key(given(**changed)) != first


@pytest.mark.parametrize(("kind", "flavour"), [("ppo", "trl"), ("sft", "gemini"), (None, None), (["sft"], "trl")])
def test_unknown_kinds_and_flavours_are_refused(kind: Any, flavour: Any) -> None:
    """The refusal says which there are."""
    with pytest.raises(woodrat.Refused, match=r"Send one of .*\nNothing was exported|Send one of"):
        training_rows.check(kind, flavour)


def test_a_decision_under_select_is_told_as_a_list() -> None:
    """Several branches and rules read as JSON."""
    rules = [{"label": "a", "chosen": 1, "matched": True, "conditions": [condition("x", "gt", 1, 2, True)]}]
    said = [
        ("run.started", body(0, query="?")),
        ("run.decided", body(1, stage="s", mode="select", chosen=[1, 2], rule=["a", "b"], rules=rules)),
        ("run.ended", body(2, answer={"ok": True})),
    ]
    assert conversation(record(said))[-1].content == (
        'Decision s: [1, 2]. Rule: ["a", "b"]. Evidence: x = 2, threshold = 1.\n{"ok": true}'
    )
