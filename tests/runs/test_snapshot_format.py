"""Snapshots of runs: written, read back, and the same again apart from what cannot be kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runs.story import loan, record

import woodrat
from woodrat.errors import Fault
from woodrat.explain.remake import UNMOVED
from woodrat.runs import json_values
from woodrat.runs.snapshot_format import KEPT_BYTES_MAX
from woodrat.state import validator

Snapshot = dict[str, Any]

MINIMAL: Snapshot = {
    "query": "Approve #42?",
    "finalContent": "Rejected.",
    "decisions": [{"stageId": "risk", "chosen": "rejected", "rule": "Marginal", "evidence": {"creditScore": 580}}],
    "toolCalls": [{"name": "bureau", "args": {"id": 42}, "resultPreview": '{"creditScore": 580}', "errored": False}],
}
NOT_HERE = "it was made elsewhere, and its rules are not on record"
OF_THE_LOG = ("position", "positions", "linked", "erased", "foreign")
"""What is said of the log that a snapshot was written from."""


def kept(value: Any) -> Any:
    """Return a snapshot without what cannot be kept."""
    if isinstance(value, dict):
        return {name: kept(item) for name, item in value.items() if name not in OF_THE_LOG}
    return [kept(item) for item in value] if isinstance(value, list) else value


def imported(document: Any, **about: Any) -> tuple[woodrat.Ledger, woodrat.RunRecord]:
    """Return a fresh ledger and the one run that importing a document twice makes in it."""
    ledger = woodrat.open(":memory:", agent="importer", **about)
    (run,) = ledger.runs.import_(json.loads(json.dumps(document)))
    position = ledger.position
    assert ledger.runs.import_(json.loads(json.dumps(document))) == (run,)
    assert ledger.position == position
    return ledger, ledger.runs.show(run)


def again(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot after it was imported somewhere else and exported from there."""
    return imported(snapshot)[1].snapshot()


def story() -> tuple[woodrat.Ledger, str]:
    """Return a ledger with a run that does everything."""
    ledger = woodrat.open(":memory:", agent="loan-officer")
    ledger.store({"entity_type": "loan", "id": "42", "creditScore": 580, "income": 10})
    with ledger.run("Approve #42?", subject="loan/42", principal="ann", inputs={"application": 42}, code="v7") as run:
        loan = run.show("loan/42")
        run.search("nobody knows")
        run.query(entity_type="loan")
        run.tool("bureau", lambda number: {"score": number, "many": list(range(500))}, 580)
        run.tool("short", lambda: {"b": 1, "a": ["ä"]})
        with pytest.raises(ValueError, match="no"):
            run.tool("broken", fails)
        run.model("small-1", response="no", messages=[{"role": "user"}], usage={"input": 3, "output": 1})
        run.note("checked", {"by": "rule"})
        rules = [{"chosen": "rejected", "when": {"creditScore": {"lt": 600}}, "label": "Marginal"}]
        run.decide("risk", loan, rules, default="review")
        run.select("tags", {"a": 1}, [{"chosen": "x", "when": {"a": 1}}, {"chosen": "y", "when": {"a": 2}}])
        run.decide("rest", {"a": 1}, [{"chosen": "y", "when": {"a": 2}}], default="z")
        run.decide("lacking", {}, [{"chosen": "y", "when": {"gone": 2}}], default="z", on_missing="skip")
        run.decide("plan", loan, [{"chosen": "Postgres", "when": {"income": 10}}], rationale="many writers")
        run.store({"entity_type": "loan", "id": "42", "status": "rejected"})
        run.answer({"said": "rejected"})
    ledger.runs.judge(run.id, "good", reason="as the rules say")
    return ledger, run.id


def fails() -> None:
    """Fail, as a tool may."""
    raise ValueError("no")


def test_a_run_that_does_everything_comes_back() -> None:
    """Exported, imported elsewhere and exported again it is the same; decisions are not made again."""
    ledger, run = story()
    snapshot = ledger.runs.show(run).snapshot()
    validator.meta().validate(json_values.schema("snapshot.json"))
    elsewhere, found = imported(snapshot)
    assert kept(found.snapshot()) == kept(snapshot)
    assert found.id == run
    assert (found.agent, found.query, found.answer) == ("loan-officer", "Approve #42?", {"said": "rejected"})
    assert (found.started_at, found.ended_at, found.input_tokens) == (snapshot["startedAt"], snapshot["endedAt"], 3)
    assert [(d.stage, d.chosen, d.rule, d.evidence, d.rules) for d in found.decisions[:1]] == [
        ("risk", "rejected", "Marginal", {"creditScore": 580, "threshold": 600}, ())
    ]
    assert all("snapshot" in decision.attributes for decision in found.decisions)
    assert found.previews_only
    assert not ledger.runs.show(run).previews_only
    elsewhere.store({"entity_type": "loan", "id": "42", "creditScore": 700, "income": 10})
    for stale in elsewhere.stale(same=True):
        assert (stale.now.outcome, stale.now.reason) == ("unknown", NOT_HERE)
    for change in {"loan/42#creditScore": 800}, {"loan/42#creditScore": 1}:
        outcomes = {(each.outcome, each.now.reason) for each in elsewhere.what_if(run, set=change, same=True).decisions}
        assert outcomes <= {("unknown", NOT_HERE), ("same", UNMOVED)}
    cut: Any = found.tool_calls[0].result
    assert cut["$truncated"]["preview"].startswith('{"many": [0, 1')
    assert [call.result for call in found.tool_calls[1:]] == [{"a": ["ä"], "b": 1}, None]
    elsewhere.runs.judge(run, "bad")
    judged = elsewhere.runs.show(run).snapshot()
    assert (judged["verdict"], len(judged["judgements"])) == ("bad", 1)


def test_the_recorded_story_comes_back() -> None:
    """The record of the loan story, interrupted at any of its entries too, is the same after a journey."""
    every = loan()
    for length in range(1, len(every) + 1):
        snapshot = record(every[:length]).snapshot()
        assert kept(again(snapshot)) == kept(snapshot)


def test_the_keys_of_a_snapshot_are_those_of_its_page() -> None:
    """Every key that is written stands on the page of the format."""
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs/formats/snapshot.md").read_text()
    ledger, run = story()
    keys: set[str] = set()
    snapshot = ledger.runs.show(run).snapshot()
    for name, value in snapshot.items():
        keys.add(name)
        if name in ("decisions", "toolCalls", "models", "reads", "notes", "judgements", "writes"):
            assert value, name
            keys.update(key for item in value for key in item)
    for decision in snapshot["decisions"]:
        keys.update(key for part in ("rules", "conditions") for item in decision[part] for key in item)
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []


def test_a_snapshot_of_another_tool() -> None:
    """Question, answer, decisions and tool calls alone are enough; calls come before the decisions made on them."""
    _, found = imported(MINIMAL)
    assert (found.query, found.answer, found.status, found.agent) == ("Approve #42?", "Rejected.", "done", "importer")
    assert [type(step).__name__ for step in found.steps] == ["ToolCall", "Decision"]
    (call,), (decision,) = found.tool_calls, found.decisions
    assert (call.result, call.errored) == ({"creditScore": 580}, False)
    assert (decision.stage, decision.rule, decision.evidence) == ("risk", "Marginal", {"creditScore": 580})
    assert decision.facts_origin["creditScore"]["kind"] == "tool"
    assert found.started_at is None
    written = found.snapshot()
    assert kept(again(written)) == kept(written)
    for name in ("query", "finalContent"):
        assert written[name] == MINIMAL[name]


def test_what_nobody_knows_is_kept() -> None:
    """Keys of another tool come back where they stood; nulls count as left out."""
    document = {
        **MINIMAL,
        "runId": "trace-8f3a",
        "vendor": {"region": "eu", "retries": [1, None]},
        "iterations": 3,
        "durationMs": 12.5,
        "tokenUsage": {"input": 7, "output": None, "cached": 2} | {"output": 1},
        "subject": None,
        "status": None,
        "narrative": "told by another tool",
        "decisions": [{**MINIMAL["decisions"][0], "confidence": 0.5, "rationale": None}],
        "toolCalls": [{"name": "a", "args": [1], "errored": True, "error": None}, {"name": "b", "result": {"id": 1}}],
        "models": [{"model": "m", "temperature": 0}],
        "notes": [{"text": "seen", "by": "x"}],
        "reads": [{"entity": None}, {"entity": "loan/42", "fields": {"score": {"value": 1}, "odd": 2}}],
    }
    ledger, found = imported(document)
    written = found.snapshot()
    assert (written["vendor"], written["iterations"], written["durationMs"]) == (document["vendor"], 3, 12.5)
    assert written["tokenUsage"] == {"input": 7, "output": 1, "cached": 2}
    assert (found.input_tokens, found.duration_ms) == (7, 12.5)
    assert written["decisions"][0]["confidence"] == 0.5
    assert [(c["args"], c["errored"], c["error"]) for c in written["toolCalls"]] == [
        ([1], True, None),
        ({}, False, None),
    ]
    assert (written["toolCalls"][1]["begun"], written["toolCalls"][1]["result"]) == (True, {"id": 1})
    assert (written["models"][0]["temperature"], written["notes"][0]["by"]) == (0, "x")
    assert written["reads"][1]["fields"] == {"score": {"value": 1}, "odd": 2}
    assert written["runId"] == found.id != "trace-8f3a"
    assert found.attributes["id"] == "trace-8f3a"
    assert written["narrative"] == "told by another tool" != found.narrative
    assert kept(again(written)) == kept(written)
    other = woodrat.open(":memory:", agent="somebody else")
    assert other.runs.import_(document) != (found.id,)
    assert ledger.runs.list().items[0].id == found.id


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        ({"finalContent": "x", "query": 5, "toolCalls": {}}, ["/query", "/toolCalls"]),
        (
            {"finalContent": "x", "decisions": [{"stageId": "", "rule": 3}, 4], "startedAt": "yesterday"},
            ["/decisions/0", "/decisions/0/stageId", "/decisions/0/rule", "/decisions/1", "/startedAt"],
        ),
        (
            {
                "toolCalls": [
                    {"args": {}},
                    {"name": "t", "resultPreview": 5, "errored": "no", "startedAt": "x", "step": -1},
                ]
            },
            [
                "/toolCalls/0",
                "/toolCalls/1/resultPreview",
                "/toolCalls/1/errored",
                "/toolCalls/1/step",
                "/toolCalls/1/startedAt",
            ],
        ),
        (
            {"tokenUsage": {"input": -1, "output": "1"}, "status": "over"},
            ["/tokenUsage/input", "/tokenUsage/output", "/status"],
        ),
        ({"runId": "", "subject": "forty-two", "inputs": []}, ["/runId", "/subject", "/inputs"]),
        ({"runId": "x", "status": "running", "finalContent": "y"}, ["/finalContent"]),
        ([MINIMAL, {**MINIMAL, "models": [{"model": 1}], "notes": [{}]}], ["/1/models/0/model", "/1/notes/0"]),
    ],
)
def test_snapshots_at_fault_are_refused_whole(document: Any, paths: list[str]) -> None:
    """All faults of all snapshots at once, each with the JSON Pointer of the value; nothing is recorded."""
    ledger = woodrat.open(":memory:")
    with pytest.raises(woodrat.Refused) as refusal:
        ledger.runs.import_(document)
    assert sorted(fault.path for fault in refusal.value.faults) == sorted(paths)
    assert str(refusal.value).endswith("Nothing was recorded.")
    assert not ledger.log.entries()


def test_a_run_of_this_log_is_not_imported_into_it() -> None:
    """The log says more of its own runs than a snapshot does, also where the run has no steps."""
    ledger, run = story()
    with ledger.run("Nothing to do?") as other:
        other.answer("No.")
    for id in (run, other.id):
        snapshot, position = ledger.runs.show(id).snapshot(), ledger.position
        with pytest.raises(woodrat.Refused, match="the log already has it, with complete results"):
            ledger.runs.import_(snapshot)
        assert ledger.position == position
        (copy,) = ledger.runs.import_({**snapshot, "runId": None})
        assert copy != id
        assert kept({**ledger.runs.show(copy).snapshot(), "runId": id}) == kept(snapshot)


def test_a_snapshot_that_has_grown_adds_what_is_new() -> None:
    """A run that was exported while it ran and again when it was over is one run."""
    ledger = woodrat.open(":memory:", agent="loan-officer")
    with ledger.run("Approve #42?") as run:
        run.note("first")
        before = ledger.runs.show(run.id).snapshot()
        run.note("second")
        run.answer("No.")
    assert before["status"] == "running"
    elsewhere, found = imported(before)
    assert (found.status, found.answer) == ("interrupted", None)
    elsewhere.runs.import_(ledger.runs.show(run.id).snapshot())
    whole = elsewhere.runs.show(run.id)
    assert (whole.status, whole.answer, [note.text for note in whole.notes]) == ("done", "No.", ["first", "second"])


def test_steps_in_a_muddle() -> None:
    """Times that not all steps have do not sort them; a time that goes back is shown as it was stated."""
    times = ["2026-01-05T09:00:05Z", "2026-01-05T10:00:01+01:00"]
    calls = [{"name": name, "resultPreview": name, "startedAt": at} for name, at in zip("ab", times, strict=True)]
    _, found = imported({**MINIMAL, "toolCalls": calls})
    assert [call["startedAt"] for call in found.snapshot()["toolCalls"]] == ["2026-01-05T09:00:05.000000Z", times[1]]
    assert [type(step).__name__ for step in found.steps] == ["ToolCall", "ToolCall", "Decision"]
    _, found = imported({"toolCalls": calls})
    assert [call.name for call in found.tool_calls] == ["b", "a"]


def test_long_keys_are_not_kept() -> None:
    """Beside the run there is room for so much; the longest key goes first, and the rest of the run is whole."""
    document = {**MINIMAL, "runId": "x", "long": "y" * (KEPT_BYTES_MAX + 1), "short": 1, "finalContent": "z" * 100_000}
    _, found = imported(document)
    written = found.snapshot()
    assert ("long" in written, written["short"], found.attributes["id"]) == (False, 1, "x")
    assert written["finalContent"]["$truncated"]["bytes"] == 100_002


def test_hidden_keys_stay_hidden() -> None:
    """Values under hidden keys are nowhere in the log: not in evidence, conditions, rules, results or kept keys."""
    ledger = woodrat.open(":memory:", agent="a")
    with ledger.run("Approve?", inputs={"ssn": "123-45-6789"}) as run:
        run.tool("lookup", lambda: {"ssn": "123-45-6789", "more": "x" * 300})
        run.tool("short", lambda: {"ssn": "123-45-6789"})
        run.decide("same", {"ssn": "123-45-6789"}, [{"chosen": "yes", "when": {"ssn": "123-45-6789"}}])
    snapshot = {**ledger.runs.show(run.id).snapshot(), "further": {"ssn": "123-45-6789"}}
    assert "123-45-6789" in json.dumps(snapshot)
    for elsewhere, _ in (imported(snapshot, redact=["ssn"]), imported({**snapshot, "redact": ["ssn"]})):
        assert all("123-45-6789" not in json.dumps(entry.to_json()) for entry in elsewhere.log.entries())


def test_what_a_run_is_known_by_cannot_be_laid_over() -> None:
    """Attributes of a run's own cannot make its snapshot say another answer, question, choice or status."""
    ledger = woodrat.open(":memory:", agent="a")
    lie = {"finalContent": "Yes.", "query": "Other?", "status": "error", "decisions": [], "runId": "x", "agent": "b"}
    with ledger.run("Approve?", attributes={"snapshot": lie}) as run:
        run.decide("risk", {"a": 1}, [{"chosen": "no", "when": {"a": 1}}])
        run.answer("No.")
    found = ledger.runs.show(run.id).snapshot()
    assert (found["finalContent"], found["query"], found["status"]) == ("No.", "Approve?", "done")
    assert (found["runId"], found["agent"], len(found["decisions"])) == (run.id, "a", 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | st.text("aä…\n", max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text("abc", min_size=1, max_size=2), JSON, max_size=3)
RULES = st.lists(
    st.fixed_dictionaries(
        {
            "chosen": JSON,
            "when": st.dictionaries(st.sampled_from("ab"), st.fixed_dictionaries({"eq": JSON}), min_size=1),
        },
        optional={"label": st.text("xyz", max_size=3)},
    ),
    min_size=1,
    max_size=3,
)
Step = Callable[[woodrat.Run], object]


def decides(verb: str, facts: Any, rules: Any, default: Any) -> Step:
    """Return the step that decides."""
    return lambda run: getattr(run, verb)("stage", facts, rules, default=default, on_missing="skip")


STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda args, result: lambda run: run.tool("t", lambda **_: result, **args), OBJECTS, JSON),
    st.builds(lambda response: lambda run: run.model("m", messages=[], response=response), JSON),
    st.builds(lambda text, data: lambda run: run.note(text, data), st.text(max_size=5), JSON),
    st.builds(decides, st.just("decide"), OBJECTS, RULES, JSON),
    st.builds(decides, st.just("select"), OBJECTS, RULES, st.lists(JSON, max_size=2)),
    st.builds(lambda: lambda run: run.show("thing/1")),
    st.builds(lambda: lambda run: run.search("none")),
    st.builds(lambda value: lambda run: run.store({"entity_type": "thing", "id": "1", "a": value}), st.integers(0, 9)),
)


@given(st.lists(STEPS, max_size=5), JSON, OBJECTS)
@settings(max_examples=40, deadline=None)
def test_any_run_comes_back_the_same(steps: list[Step], answer: Any, inputs: Any) -> None:
    """Whatever a run did, its snapshot is the same after a journey, apart from what is said of the other log."""
    ledger = woodrat.open(":memory:", agent="a")
    ledger.store({"entity_type": "thing", "id": "1", "a": 1})
    with ledger.run("?", inputs=inputs) as run:
        for step in steps:
            step(run)
        run.answer(answer)
    snapshot = json.loads(json.dumps(ledger.runs.show(run.id).snapshot()))
    assert kept(again(snapshot)) == kept(snapshot)


ANY_SNAPSHOT = st.fixed_dictionaries(
    {"finalContent": JSON},
    optional={
        "query": st.text(max_size=3) | st.none() | st.integers(),
        "runId": st.text("ab", max_size=2) | st.none(),
        "startedAt": st.sampled_from(["2026-01-05T09:00:00Z", "no", None]),
        "decisions": st.lists(OBJECTS | st.fixed_dictionaries({"stageId": st.just("s"), "chosen": JSON, "x": JSON})),
        "toolCalls": JSON
        | st.lists(st.fixed_dictionaries({"name": st.just("t"), "args": JSON, "resultPreview": JSON})),
        "models": st.lists(OBJECTS, max_size=2),
        "reads": st.lists(OBJECTS, max_size=2),
        "tokenUsage": JSON,
        "error": JSON,
        "more": JSON,
    },
)


@given(ANY_SNAPSHOT)
@settings(max_examples=150, deadline=None)
def test_anything_is_imported_or_refused(document: Snapshot) -> None:
    """A snapshot is refused with faults inside it, or imported; then what is written comes back the same."""
    ledger = woodrat.open(":memory:", agent="a")
    faults: list[Fault] = []
    try:
        (run,) = ledger.runs.import_(document)
    except woodrat.Refused as refusal:
        faults += refusal.faults
    if faults:
        assert all(fault.path.startswith("/") for fault in faults)
        assert not ledger.log.entries()
        return
    written = ledger.runs.show(run).snapshot()
    assert written["finalContent"] == document["finalContent"]
    assert kept(again(written)) == kept(written)
