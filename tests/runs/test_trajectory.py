"""Trajectories: runs recorded by other tools, stored once, and compared with each other and with ours."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.test_reader import opened

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.runs import json_values, trajectory
from woodrat.state import validator

TRACES = Path(__file__).parent / "traces"


def trace(name: str) -> Any:
    """Return a trace as a file holds it: one document, or one object a line."""
    text = (TRACES / name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()] if name.endswith("l") else json.loads(text)


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """An empty ledger."""
    return opened(InMemoryEngine())


MINIMAL: dict[str, Any] = {"steps": [{"kind": "tool", "name": "pay", "result": "ok"}]}

SENTENCES = {
    "transcripts": (
        [trace("openai-net30.json"), trace("openai-net45.json")],
        "They parted at step 2, the tool get_contract: called with the same arguments it returned payment_terms=Net-30 "
        "in the first run and payment_terms=Net-45 in the second; the answer follows from it.",
    ),
    "spans": (
        trace("spans.jsonl"),
        'They parted at step 2, the tool orders: called with the same arguments it returned {"paid": true} in the '
        "first run and failed with TimeoutError: no answer in 5 s in the second; the answer follows from it.",
    ),
    "minimal": (
        trace("minimal.jsonl"),
        "They parted at step 1, the read of loan/42: creditScore was 580 in the first run and 710 in the second; "
        "the decision risk and the answer follow from it.",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_traces_of_other_tools_are_compared(ledger: woodrat.Ledger, name: str) -> None:
    """Two runs of each kind of trace end in the sentence expected, recorded or not; recording twice changes nothing."""
    documents, sentence = SENTENCES[name]
    runs = ledger.runs.import_(documents)
    assert len(runs) == 2
    assert ledger.runs.diff(*runs).sentence == sentence
    position = ledger.position
    assert ledger.runs.import_(documents) == runs
    assert ledger.position == position
    assert ledger.runs.group([documents]).sentence.startswith("No two of 2 runs agree; one parts at step")


def test_documents_are_compared_without_recording(ledger: woodrat.Ledger) -> None:
    """A document stands for its run on either side, and nothing is written."""
    one, other = trace("minimal.jsonl")
    sentence = SENTENCES["minimal"][1]
    assert ledger.runs.diff(one, other).sentence == sentence
    assert ledger.position == -1
    (run,) = ledger.runs.import_(one)
    assert ledger.runs.diff(run, other).sentence == sentence
    assert ledger.runs.diff(run, {**one, "agent": ledger.agent}).sentence == "They are one and the same run."


def test_a_transcript_becomes_models_and_tools(ledger: woodrat.Ledger) -> None:
    """Messages of the assistant are calls of the model, its tool calls calls of tools, in the order they were asked."""
    (id,) = ledger.runs.import_(trace("openai-net45.json"))
    found = ledger.runs.show(id)
    assert (found.query, found.answer) == ("When is kline to pay invoice 118?", "kline is to pay by 19 February 2026.")
    assert [(call.name, call.args, call.result) for call in found.tool_calls] == [
        ("get_contract", {"client": "kline"}, {"payment_terms": "Net-45"}),
        ("get_invoice", {"number": 118}, {"issued": "2026-01-05"}),
    ]
    assert [call.model for call in found.models] == ["gpt-4o-mini"] * 2
    assert found.models[0].parameters == {"temperature": 0}
    assert (found.input_tokens, found.output_tokens) == (310, 42)
    assert found.attributes == {"id": "chatcmpl-trace-9c4"}


def test_a_tool_call_without_a_result_is_not_known_to_have_returned(ledger: woodrat.Ledger) -> None:
    """A transcript that breaks off after a tool call: nobody knows what came of it."""
    messages = [*trace("openai-net30.json")["messages"][:3]]
    (id,) = ledger.runs.import_({"messages": messages, "status": "interrupted"})
    found = ledger.runs.show(id)
    assert (found.status, [call.begun for call in found.tool_calls]) == ("interrupted", [True, True])


def test_a_completion_stands_beside_its_request(ledger: woodrat.Ledger) -> None:
    """`choices` of a response, put beside the request, are the last message; old function calls are tool calls."""
    asked = [
        {"role": "user", "content": [{"type": "text", "text": "Pay?"}]},
        {"role": "assistant", "content": None, "function_call": {"name": "pay", "arguments": "not JSON"}},
        {"role": "function", "name": "pay", "content": "done"},
    ]
    (id,) = ledger.runs.import_(
        {"messages": asked, "choices": [{"message": {"role": "assistant", "content": "Paid."}}]}
    )
    found = ledger.runs.show(id)
    assert (found.query, found.answer) == ("Pay?", "Paid.")
    assert [(call.args, call.result) for call in found.tool_calls] == [({"arguments": "not JSON"}, "done")]


def test_spans_may_be_nested_and_have_odd_times(ledger: woodrat.Ledger) -> None:
    """`child_runs` are steps, chains are notes, and a time that cannot be read is kept as it was and orders nothing."""
    tool = {"id": "b", "run_type": "tool", "name": "pay", "inputs": {"n": 1}, "outputs": {"output": "ok"}}
    chain = {"id": "c", "run_type": "chain", "name": "inner", "start_time": "yesterday", "child_runs": [tool]}
    (run,) = ledger.runs.import_({"id": "a", "run_type": "chain", "name": "Pay", "inputs": {}, "child_runs": [chain]})
    found = ledger.runs.show(run)
    assert (found.query, found.started_at, [note.text for note in found.notes]) == ("Pay", None, ["inner"])
    assert [(call.name, call.args, call.result) for call in found.tool_calls] == [("pay", {"n": 1}, "ok")]


def test_an_imported_run_is_a_run_like_any_other(ledger: woodrat.Ledger) -> None:
    """Without any times it is shown, asked about, recalled, traced and exported."""
    (run, _) = ledger.runs.import_(trace("minimal.jsonl"))
    record = ledger.runs.show(run)
    assert "Marginal credit" in record.narrative
    assert [reason.decision.evidence for reason in ledger.why("loan/42").items] == [
        {"creditScore": 710},
        {"creditScore": 580},
    ]
    assert ledger.recall("why was application 42 rejected?", threshold=0.1).hits
    assert ledger.lineage(run)
    rows = io.StringIO()
    assert ledger.training.export("sft", out=rows).rows == 2
    assert "Rejected." in rows.getvalue()


def test_times_are_optional_and_never_go_back(ledger: woodrat.Ledger) -> None:
    """Steps keep the order of the document; one without a time has that of the step before it."""
    times = [None, "2026-01-05T09:00:02Z", None, "2026-01-05T10:00:01+01:00"]
    steps = [{"kind": "note", "text": str(n), **({} if t is None else {"started_at": t})} for n, t in enumerate(times)]
    (id,) = ledger.runs.import_({"id": "x", "steps": steps})
    found = ledger.runs.show(id)
    assert [note.text for note in found.notes] == ["0", "1", "2", "3"]
    assert {note.started_at for note in found.notes} == {"2026-01-05T09:00:02.000000Z"} == {found.started_at}
    (bare,) = ledger.runs.import_(MINIMAL)
    assert ledger.runs.show(bare).started_at is None
    assert [run.id for run in ledger.runs.list().items] == [bare, id]


def test_what_is_not_known_is_kept(ledger: woodrat.Ledger) -> None:
    """Members that the format does not have are attributes of the run; hidden keys are hidden everywhere."""
    document = {
        "id": "x",
        "tags": ["a"],
        "attributes": {"team": "legal"},
        "redact": ["iban"],
        "inputs": {"iban": "DE1"},
        "steps": [{"kind": "read", "entity": "client/kim", "values": {"iban": "DE1"}, "latency": 3}],
    }
    (id,) = ledger.runs.import_(document)
    found = ledger.runs.show(id)
    assert found.attributes == {"id": "x", "tags": ["a"], "team": "legal"}
    assert (found.inputs, found.reads[0].values) == ({"iban": "[REDACTED]"}, {"iban": "[REDACTED]"})
    with ledger.context.engine.view(ledger.tenant) as view:
        bodies = [entry.body for entry in view.entries(-1, view.head().position)]
    assert b'"attributes":{"latency":3}' in (bodies[1] or b"")
    assert not any(b"DE1" in (body or b"") for body in bodies)


def test_evidence_leads_to_where_it_came_from(ledger: woodrat.Ledger) -> None:
    """The values of a decision are found by name and value among reads, results and inputs; others are stated."""
    steps = [
        {"kind": "read", "entity": "loan/42", "values": {"score": 580}},
        {"kind": "tool", "name": "fraud", "id": "s1", "result": {"risk": "low"}},
        {"kind": "decision", "stage": "s", "chosen": 1, "evidence": {"score": 580, "risk": "low", "n": 2, "x": 9}},
    ]
    (id,) = ledger.runs.import_({"inputs": {"n": 2}, "steps": steps})
    origins = ledger.runs.show(id).decisions[0].facts_origin
    assert {name: origin["kind"] for name, origin in origins.items()} == {
        "score": "read",
        "risk": "tool",
        "n": "input",
        "x": "stated",
    }
    assert origins["risk"]["span"] == "s1"


@pytest.mark.parametrize(
    ("result", "value", "path"),
    [
        ({"score": 580}, 580, "/score"),
        ({"data": [{"score": 580, "low": 300}]}, 580, "/data/0/score"),
        ({"score": 580, "last": 580}, 580, None),
        ({"ok": True, "n": 7}, True, None),
        ({"amount": 4_200}, 4_200, None),
    ],
)
def test_a_renamed_fact_keeps_its_link_to_the_only_result_that_has_it(
    ledger: woodrat.Ledger, result: Any, value: Any, path: str | None
) -> None:
    """A value that one result has once, under another name, is linked by value.

    Twice, too short to tell anything, or also an input, it is stated. The recorder and an import say the same.
    """
    with ledger.run("?", inputs={"limit": 4_200}) as run:
        run.tool("bureau", lambda: result)
        run.decide("s", {"creditScore": value}, [{"chosen": 1, "when": {"creditScore": {"exists": True}}}])
    steps = [
        {"kind": "tool", "name": "bureau", "id": "s1", "result": result},
        {"kind": "decision", "stage": "s", "chosen": 1, "evidence": {"creditScore": value}},
    ]
    (id,) = ledger.runs.import_({"inputs": {"limit": 4_200}, "steps": steps})
    for found in (ledger.runs.show(run.id), ledger.runs.show(id)):
        origin = found.decisions[0].facts_origin["creditScore"]
        assert (origin["kind"], origin.get("path"), origin.get("by")) == (
            ("stated", None, None) if path is None else ("tool", path, "value")
        )
        if path is not None:
            assert origin["span"] == found.tool_calls[0].span


def test_an_id_of_ours_stays_and_others_are_derived(ledger: woodrat.Ledger) -> None:
    """A run id is kept; any other id always gives the same one; without an id the content names the run."""
    own = "run_" + "b" * 26
    assert ledger.runs.import_({**MINIMAL, "id": own}) == (own,)
    (foreign,) = ledger.runs.import_({**MINIMAL, "id": "trace-1"})
    assert ledger.runs.import_({**MINIMAL, "id": "trace-1", "query": "More is known now."}) == (foreign,)
    assert ledger.runs.show(foreign).query == "More is known now."
    (one,), (two,) = ledger.runs.import_(MINIMAL), ledger.runs.import_({**MINIMAL, "answer": 1})
    assert len({own, foreign, one, two}) == 4


def test_a_step_told_otherwise_is_refused(ledger: woodrat.Ledger) -> None:
    """A trace may grow; but another account of a step under the same id is refused, whole, and never a second step."""
    pay, mail = {"kind": "tool", "name": "pay", "result": "ok"}, {"kind": "tool", "name": "mail"}
    (run,) = ledger.runs.import_({"id": "x", "steps": [pay, mail], "status": "interrupted"})
    assert ledger.runs.import_({"id": "x", "steps": [pay, {**mail, "result": 1}, pay], "answer": "Paid."}) == (run,)
    found, position = ledger.runs.show(run), ledger.position
    assert [(call.name, call.begun) for call in found.tool_calls] == [("pay", False), ("mail", False), ("pay", False)]
    assert (found.status, found.answer) == ("done", "Paid.")
    for again in (
        {"id": "x", "steps": [{**pay, "result": "no"}]},
        [MINIMAL | {"id": "y"}, {"id": "y", "steps": [pay | {"args": {"a": 1}}]}],
    ):
        with pytest.raises(woodrat.Refused, match=r"step 1 \(tool\) is already recorded differently"):
            ledger.runs.import_(again)
    assert ledger.position == position


def test_nulls_are_what_is_not_there(ledger: woodrat.Ledger) -> None:
    """Many tools write null for what they do not know; a null result, response or choice is one."""
    bare = {"id": "x", "steps": [{"kind": "tool", "name": "pay", "result": None}]}
    nulls = {"id": "x", "query": None, "inputs": None, "error": None, "steps": [
        {"kind": "tool", "name": "pay", "result": None, "error": None, "started_at": None, "args": None}
    ]}  # fmt: skip
    assert ledger.runs.import_(bare) == ledger.runs.import_(nulls)
    (run,) = ledger.runs.import_(nulls)
    assert [(call.begun, call.result) for call in ledger.runs.show(run).tool_calls] == [(False, None)]
    assert ledger.runs.diff(run, bare).same


@pytest.mark.parametrize("kind", [["tool"], {}, 3])
def test_kinds_that_are_no_text_are_refused(ledger: woodrat.Ledger, kind: Any) -> None:
    """A kind of another type is a fault like any other, of entries and of steps."""
    for document in ([{"kind": kind}], {"steps": [{"kind": kind}]}, [{"kind": "run.started"}, {"kind": kind}]):
        with pytest.raises(woodrat.Refused, match="Nothing was recorded"):
            ledger.runs.import_(document)


def test_steps_alone_are_a_run(ledger: woodrat.Ledger) -> None:
    """A list of steps, or one step a line, is one run."""
    (id,) = ledger.runs.import_([{"kind": "tool", "name": "pay", "result": 1}, {"kind": "note", "text": "paid"}])
    assert [call.name for call in ledger.runs.show(id).tool_calls] == ["pay"]


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        ({"steps": [{"kind": "tool"}, {"kind": "fly"}, {"kind": "read", "entity": 3}, 7]},
         ["/steps/0", "/steps/1/kind", "/steps/2/entity", "/steps/3"]),
        ({"steps": [{"kind": "note", "text": "a"}], "query": 3, "status": "asleep", "subject": "loan"},
         ["/query", "/subject", "/status"]),
        ({"steps": [{"kind": "note", "text": "a", "started_at": "soon"}], "started_at": "2026-01-05"},
         ["/started_at", "/steps/0/started_at"]),
        ({"steps": [{"kind": "note", "text": "a", "id": "x"}, {"kind": "note", "text": "b", "id": "x"}]},
         ["/steps/1/id"]),
        ({"format": "woodrat-trajectory/9", "steps": []}, ["/format"]),
        ([MINIMAL, {"steps": [{"kind": "decision"}]}], ["/1/steps/0", "/1/steps/0"]),
        ([{"kind": "note", "text": "a"}, {"kind": "fly"}], ["/1/kind"]),
        ({"messages": {}}, ["/messages"]),
        ([MINIMAL, 3], ["/1"]),
        ({"messages": [{"role": 5}, 3, {"role": "tool", "tool_call_id": "x"},
                       {"role": "assistant", "tool_calls": [{}]}], "steps": []},
         ["/steps", "/messages/0/role", "/messages/1", "/messages/2/tool_call_id", "/messages/3/tool_calls"]),
    ],
)  # fmt: skip
def test_documents_at_fault_are_refused_whole(ledger: woodrat.Ledger, document: Any, paths: list[str]) -> None:
    """Every fault is named with the JSON Pointer of the value, nothing is recorded, and comparing refuses it too."""
    with pytest.raises(woodrat.Refused, match="Nothing was recorded") as refusal:
        ledger.runs.import_(document)
    assert sorted(fault.path for fault in refusal.value.faults) == sorted(paths)
    assert ledger.position == -1
    with pytest.raises(woodrat.Refused, match="Nothing was read") as refusal:
        ledger.runs.diff(document, MINIMAL)
    assert sorted(fault.path for fault in refusal.value.faults) == sorted(f"first{path}" for path in paths)


def test_what_cannot_be_compared_says_what_to_do(ledger: woodrat.Ledger) -> None:
    """A told run, a snapshot, several runs and what is no run at all."""
    (run,) = ledger.runs.import_(MINIMAL)
    for document, words in (
        ({"query": "?", "steps": [{"read": "a/b"}]}, "Record it with `woodrat runs import` first"),
        (ledger.runs.show(run).snapshot(), "shows results and responses only in part"),
        ([MINIMAL, {**MINIMAL, "id": "x"}], "there are 2 runs in it"),
        ([], "there is no run in it"),
        ({}, "expected a trajectory"),
    ):
        with pytest.raises(woodrat.Refused, match=words):
            ledger.runs.diff(run, document)


def test_the_schema_is_one() -> None:
    """The schema that is shipped is JSON Schema 2020-12, and knows every kind of step."""
    validator.meta().validate(json_values.schema("trajectory.json"))
    assert (
        set(json_values.schema("trajectory.json")["$defs"]["step"]["properties"]["kind"]["enum"])
        == trajectory.STEP_KINDS
    )


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
VALUES = st.one_of(st.integers(-9, 9), TEXT, st.none())
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=3)
ANY_STEP = st.one_of(
    st.fixed_dictionaries({"kind": st.just("read"), "entity": TEXT.filter(bool), "values": OBJECTS}),
    st.fixed_dictionaries({"kind": st.just("tool"), "name": st.sampled_from("ab"), "args": OBJECTS, "result": VALUES}),
    st.fixed_dictionaries({"kind": st.just("model"), "response": VALUES}, optional={"messages": st.lists(OBJECTS)}),
    st.fixed_dictionaries({"kind": st.just("decision"), "stage": st.just("s"), "chosen": VALUES, "evidence": OBJECTS}),
    st.fixed_dictionaries({"kind": st.just("note"), "text": TEXT}),
)


@given(st.lists(ANY_STEP, min_size=1, max_size=6))
def test_importing_twice_changes_nothing(steps: list[Any]) -> None:
    """The second import of any trajectory appends nothing, and its record is the one read from the document."""
    ledger = opened(InMemoryEngine())
    document = {"steps": steps}
    (run,) = ledger.runs.import_(document)
    position = ledger.position
    assert ledger.runs.import_(document) == (run,)
    assert ledger.position == position
    assert ledger.runs.diff(run, document).same
