"""The run record: a function of the set of a run's entries."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.story import AGENT, OBSERVATION, RUN, Said, at, body, condition, entries, entry, loan, record

from woodrat.canon.ids import Ref
from woodrat.runs.record import record_of
from woodrat.runs.steps import Judgement, Write
from woodrat.state.meaning import RUN_KINDS
from woodrat.state.observation import say

OTHER = "run_cccccccccccccccccccccccccc"

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
CITED = ("position", "positions", "start", "end", "foreign", "narrative")
"""What a record says of where its entries stand."""
KEYS = sorted(
    {"agent", "query", "subject", "inputs", "using", "parent", "basis", "status", "answer", "error", "usage", "name"}
    | {"entity", "fields", "found", "stage", "chosen", "rule", "rules", "args", "result", "begun", "once", "errored"}
    | {"text", "verdict", "by", "preferred", "about", "duration_ms", "model", "response", "parameters"}
)


@st.composite
def bodies(draw: st.DrawFn) -> Said:
    """An entry of a run, often with the time, step or span of another, sometimes with values of any shape."""
    kind = draw(st.sampled_from(sorted(RUN_KINDS)))
    said: dict[str, Any] = {"run": RUN}
    said["step"] = draw(st.integers(0, 2))
    said["span"] = draw(st.sampled_from(["a", "b"]))
    said["started_at"] = at(draw(st.integers(0, 2)))
    said.update(draw(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3)))
    if draw(st.booleans()):
        said["status"] = draw(st.sampled_from(["done", "error", "cancelled", "lost"]))
    return kind, said


@given(st.lists(bodies(), max_size=8), st.lists(st.integers(0, 20), max_size=3), st.randoms())
def test_a_record_is_a_function_of_the_set_of_entries(
    said: list[Said], erased: list[int], random: random.Random
) -> None:
    """Any order and any repetition of the same entries gives the same record, down to its JSON."""
    given = [*entries(said), *(entry(100 + number, "run.noted", None) for number in set(erased))]
    shuffled = [*given, *random.choices(given, k=5)] if given else []
    random.shuffle(shuffled)
    first, second = record_of(RUN, given), record_of(RUN, shuffled)
    assert first == second
    assert first.to_json() == second.to_json()


@given(st.lists(bodies(), max_size=6), st.integers(0, 50))
def test_the_same_bodies_at_other_positions_differ_in_citations_only(said: list[Said], shift: int) -> None:
    """Where entries stand is cited and takes no part in what the record says; the same body twice counts once."""

    def bare(found: Any) -> Any:
        if isinstance(found, dict):
            return {key: bare(item) for key, item in found.items() if key not in CITED}
        return [bare(item) for item in found] if isinstance(found, list) else found

    once = record_of(RUN, entries(said)).to_json()
    again = record_of(RUN, [*entries(said[::-1], 60 + shift), *entries(said, 500)]).to_json()
    assert bare(once) == bare(again)


def test_mondays_run_in_the_shape_of_the_design() -> None:
    """The record of the loan story has every key of the design, and the evidence that settled it."""
    found = record().to_json()
    assert found["id"] == RUN
    assert (found["agent"], found["subject"], found["status"]) == ("loan-officer", "loan/42", "done")
    assert found["query"] == "Should we approve application #42?"
    assert found["answer"] == "Application #42: REJECTED. Credit (580) below floor (600)."
    assert found["started_at"] == at(0)
    assert (found["iterations"], found["duration_ms"]) == (1, 6000)
    assert (found["input_tokens"], found["output_tokens"]) == (120, 9)
    decision = found["decisions"][0]
    assert (decision["stage"], decision["chosen"]) == ("classify-risk", "rejected")
    assert decision["evidence"] == {"creditScore": 580, "threshold": 600}
    assert [rule["matched"] for rule in decision["rules"]] == [True]
    assert decision["rules"][0]["conditions"][0]["origin"]["observations"] == [OBSERVATION]
    call = found["tool_calls"][0]
    assert (call["name"], call["result"], call["errored"]) == ("lookup_credit_bureau", {"hits": 1}, False)
    assert "steps" not in found
    assert found["reads"][0]["fields"]["creditScore"]["value"] == 580
    assert found["models"][0]["model"] == "small-1"
    assert found["notes"][0]["text"] == "told the applicant"
    assert (found["principal"], found["conversation"], found["inputs"]) == ("ann", "app-42", {"application": 42})
    assert found["narrative"].startswith("loan-officer began run")
    assert found["writes"] == found["judgements"] == found["erased"] == []


def test_a_run_without_decisions_has_an_empty_list() -> None:
    """`decisions` is there and empty when nothing was decided."""
    found = record([("run.started", body(0, query="Hello?")), ("run.ended", body(1, status="done"))])
    assert found.decisions == ()
    assert found.to_json()["decisions"] == []


@pytest.mark.parametrize(
    ("ends", "recording", "status"),
    [
        ([], False, "interrupted"),
        ([], True, "running"),
        ([{"status": "done"}], True, "done"),
        ([{"status": "error", "error": {"type": "ValueError", "message": "no"}}], False, "error"),
        ([{"status": "cancelled"}], False, "cancelled"),
        ([{"status": "done"}, {"status": "error"}], False, "error"),
        ([{"status": "who knows", "error": {"type": "E", "message": ""}}], False, "error"),
        ([{}], False, "done"),
    ],
)
def test_how_a_run_stands(ends: list[dict[str, Any]], recording: bool, status: str) -> None:
    """The latest end says how a run ended; without one it is interrupted, unless its recorder lives."""
    said = [("run.started", body(0)), *(("run.ended", body(9 + number, **end)) for number, end in enumerate(ends))]
    assert record(said, recording=recording).status == status


def test_the_latest_end_holds_whatever_came_first() -> None:
    """Of several ends the one with the latest time holds: answer, error and duration are its own."""
    said: list[Said] = [
        ("run.ended", body(5, status="done", answer="at last")),
        ("run.started", body(0)),
        ("run.ended", body(2, status="error", error={"type": "E", "message": "m"}, answer="half")),
    ]
    found = record(said)
    assert (found.status, found.answer, found.error, found.duration_ms) == ("done", "at last", None, 5000)


def test_a_run_whose_beginning_is_missing() -> None:
    """Without a start the record has what the other entries say, and the time of the first step."""
    found = record(loan()[1:])
    assert (found.agent, found.query, found.subject, found.start) == ("loan-officer", None, None, None)
    assert found.started_at == at(1)
    assert found.decisions[0].chosen == "rejected"


def test_late_spans_end_in_the_same_record() -> None:
    """Steps that reach the log after the end take their place by time."""
    said = loan()
    late = [*said[:1], said[-1], *said[1:-1]]
    assert [step.step for step in record(late).steps] == [1, 2, 3, 4, 5]


def test_erased_entries_are_named_and_missing() -> None:
    """An entry whose body is gone is listed by its position, and what it said is not in the record."""
    given = entries(loan())
    gone = entry(given[4].position, "run.decided", None)
    found = record_of(RUN, [*given[:4], gone, *given[5:]])
    assert (found.decisions, found.erased) == ((), (14,))
    assert found.answer is not None


def test_entries_of_another_run_do_not_count() -> None:
    """A body that names another run takes no part."""
    mixed = [*entries(loan()), *entries(loan(OTHER, number=43), 50)]
    assert record_of(RUN, mixed) == record()


def test_a_once_tool_is_one_call() -> None:
    """The beginning of a call and its result are one call; a beginning alone says that nobody knows its outcome."""
    begun = body(1, name="pay", args={}, once=True, begun=True)
    settled = {**begun, "result": "paid", "errored": False, "duration_ms": 3}
    del settled["begun"]
    both = record([("run.tool", begun), ("run.tool", settled)])
    assert [(call.name, call.result, call.begun) for call in both.tool_calls] == [("pay", "paid", False)]
    alone = record([("run.tool", begun)])
    assert [(call.begun, call.preview) for call in alone.tool_calls] == [(True, None)]
    assert alone.to_json()["tool_calls"][0]["begun"] is True


def test_equal_steps_stay_distinct() -> None:
    """Two calls that are alike in everything but their span are two calls."""
    one, other = body(1, name="ping", args={}), {**body(1, name="ping", args={}), "span": "f" * 16}
    assert len(record([("run.tool", one), ("run.tool", other)]).tool_calls) == 2


def decided(rules: Sequence[dict[str, Any]], **said: Any) -> Any:
    """Return the one decision of a run that tried these rules."""
    return record([("run.decided", body(1, stage="s", rules=list(rules), **said))]).decisions[0]


def test_evidence_is_what_the_matching_rule_looked_at() -> None:
    """Rules that did not match are under `conditions` only, and a threshold is there when there is one operand."""
    low = {"label": "low", "chosen": "no", "matched": False, "conditions": [condition("dti", "gt", 0.43, 0.2, False)]}
    score = condition("score", "gt", 600, 650, True)
    one = {"label": "one", "chosen": "a", "matched": True, "conditions": [score]}
    two = {**one, "conditions": [score, condition("dti", "lt", 0.43, 0.2, True)]}
    listed = {**one, "conditions": [condition("state", "in", ["x", "y"], "x", True)]}
    there = {**one, "conditions": [condition("state", "exists", True, "x", True)]}
    assert decided([low, one], chosen="a", rule="one").evidence == {"score": 650, "threshold": 600}
    assert decided([two], chosen="a", rule="one").evidence == {"score": 650, "dti": 0.2}
    assert decided([listed], chosen="a", rule="one").evidence == {"state": "x"}
    assert decided([there], chosen="a", rule="one").evidence == {"state": "x"}
    assert decided([low], chosen="no", default=True).evidence == {}


def test_a_fact_called_threshold_keeps_its_name() -> None:
    """The operand never hides a fact of that name."""
    rule = {"matched": True, "conditions": [condition("threshold", "lt", 5, 3, True)]}
    assert decided([rule]).evidence == {"threshold": 3}


def test_usage_adds_up_where_the_end_does_not_say() -> None:
    """Tokens are those the end states, else the sum over the model calls."""
    calls = [("run.model", body(n, model="m", usage={"input": 10, "output": 2})) for n in (1, 2)]
    found = record([*calls, ("run.ended", body(3, status="done"))])
    assert (found.input_tokens, found.output_tokens, found.iterations) == (20, 4, 2)
    stated = record([*calls, ("run.ended", body(3, status="done", usage={"input": 25, "output": 5}))])
    assert (stated.input_tokens, stated.output_tokens) == (25, 5)


def test_judges_agree_or_are_mixed() -> None:
    """The verdict is the one word of all judges, the latest of each; judgements of a step do not count."""

    def judged(*said: tuple[str | None, str, str | None]) -> str | None:
        return record(
            [
                (
                    "run.judged",
                    body(n, verdict=verdict, **({"by": by} if by else {}), **({"about": about} if about else {})),
                )
                for n, (by, verdict, about) in enumerate(said)
            ]
        ).verdict

    assert judged() is None
    assert judged(("ann", "bad", None), ("ann", "good", None)) == "good"
    assert judged(("ann", "bad", None), ("bob", "good", None)) == "mixed"
    assert judged(("ann", "good", None), ("bob", "good", None), ("cyd", "bad", "0" * 16)) == "good"


def test_an_evaluation_judges_too() -> None:
    """A judgement kept as an entity stands beside those of the run, in order of time."""
    outside = Judgement(
        7, 0, "", at(8), None, {}, "failed", None, "grader", None, 0.2, None, None, "evaluation/nightly"
    )
    found = record([*loan(), ("run.judged", body(7, verdict="bad", by="ann"))], judgements=[outside, outside])
    assert [(j.by, j.evaluation) for j in found.judgements][:2] == [("ann", None), ("grader", "evaluation/nightly")]
    assert found.verdict == "mixed"


def test_writes_are_the_observations_that_carry_the_run() -> None:
    """A write shows what was said, by position, each observation once."""
    said = say(
        Ref("loan", "42"), "assert", agent=AGENT, observed_at=at(4), fields={"status": "rejected"}, run=RUN, step=4
    )
    first, second = Write.of(20, said), Write.of(19, said)
    found = record(writes=[first, first])
    assert [write.to_json()["fields"] for write in found.writes] == [{"status": "rejected"}]
    assert found.writes[0].step == 4
    assert second.position == 19


def test_groups_and_versions_in_force_are_read_from_using() -> None:
    """`using` of the beginning says which session and pipeline a run is part of, and which versions it worked by."""
    using = {
        "agent_session": "agent_session/s1",
        "pipeline": "pipeline/nightly",
        "runbook": [{"entity": "runbook/credit", "observation": OBSERVATION, "version": 3}],
        "tool_config": [{"entity": "tool_config/bureau", "observation": OBSERVATION, "version": 9}],
    }
    found = record(loan(using=using))
    assert (found.session, found.pipeline) == ("agent_session/s1", "pipeline/nightly")
    assert [(item["type"], item["version"]) for item in found.in_force] == [("runbook", 3), ("tool_config", 9)]
    assert "In force: runbook runbook/credit, version 3" in found.narrative


def test_what_a_run_leaned_on() -> None:
    """The observations read and those behind evidence are what the run leaned on."""
    assert record().observations == {OBSERVATION}
    assert record().decisions[0].entities == ("loan/42",)


def test_results_are_previewed_at_a_bound() -> None:
    """A long result is whole in the record and cut in its preview; one that its recorder cut shows that preview."""
    long = record([("run.tool", body(1, name="t", args={}, result="x" * 1000))]).tool_calls[0]
    assert (len(str(long.to_json()["result"])), len(long.preview or "")) == (1000, 257)
    cut = {"$truncated": {"bytes": 9, "digest": "00", "preview": "begins so"}}
    assert record([("run.tool", body(1, name="t", args={}, result=cut))]).tool_calls[0].preview == "begins so…"
