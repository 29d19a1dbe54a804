"""Divergence: two runs side by side; one story for each class of cause, with the sentence it ends in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.story import Said, body, condition, entries

from woodrat.compare.cause import KINDS
from woodrat.compare.divergence import compare
from woodrat.compare.value_difference import align
from woodrat.runs.record import RunRecord, record_of
from woodrat.runs.steps import Write

FIRST, SECOND = "run_" + "a" * 26, "run_" + "b" * 26
LIMIT = 600


def read(score: Any = 580, entity: str = "loan/42", observation: str = "obs_a", **said: Any) -> Said:
    """Return a read of a loan's score."""
    fields = {"creditScore": {"observation": observation, "value": score}}
    return "run.read", {"entity": entity, "found": True, "fields": fields, **said}


def tool(name: str = "bureau", result: Any = 1, **args: Any) -> Said:
    """Return a call of a tool."""
    return "run.tool", {"name": name, "args": args, "result": result}


def model(response: str = "Fine.", request: str = "ab", **said: Any) -> Said:
    """Return a call of a model."""
    return "run.model", {"model": "small-1", "request": request, "response": response, **said}


def decided(score: Any = 580, limit: int = LIMIT, stage: str = "risk", **said: Any) -> Said:
    """Return a decision by a score; its origin is the read of loan/42 unless told otherwise."""
    low = score < limit
    compared = {**condition("creditScore", "lt", limit, score, low), **said}
    when = {"creditScore": {"lt": limit}}
    rule = {"label": "Low", "chosen": "no", "when": when, "matched": low, "conditions": [compared]}
    came = {"chosen": "no", "rule": "Low"} if low else {"chosen": "yes", "default": True}
    return "run.decided", {"stage": stage, "mode": "decide", "rules": [rule], **came}


def ran(
    *steps: Said, id: str = FIRST, answer: Any = "No.", status: str = "done", start: Mapping[str, Any] | None = None
) -> RunRecord:
    """Return the record of a run that took these steps."""
    began = {"agent": "loan-officer", "query": "Approve?", **(start or {})}
    said: list[Said] = [("run.started", body(0, id, **began))]
    said += [(kind, body(number, id, **found)) for number, (kind, found) in enumerate(steps, 1)]
    if status != "interrupted":
        said.append(("run.ended", body(len(steps) + 1, id, status=status, answer=answer)))
    return record_of(id, entries(said))


def other(*steps: Said, **given: Any) -> RunRecord:
    """Return the record of the second run; it answers otherwise unless told."""
    return ran(*steps, id=SECOND, **{"answer": "Yes.", **given})


STORIES: dict[str, tuple[RunRecord, RunRecord, str]] = {
    "input": (
        ran(tool(), start={"inputs": {"amount": 100}}),
        other(tool(), start={"inputs": {"amount": 200}}),
        "They parted at the start: the input amount was 100 in the first run and 200 in the second; "
        "the answer follows from it.",
    ),
    "state": (
        ran(tool(), read(580), decided(580)),
        other(tool(), read(640, observation="obs_b"), decided(640)),
        "They parted at step 2, the read of loan/42: creditScore was 580 in the first run and 640 in the second; "
        "the decision risk and the answer follow from it.",
    ),
    "tool": (
        ran(tool(result=580, id=42), decided(580, origin={"kind": "tool", "span": f"{1:016x}", "path": ""})),
        other(tool(result=640, id=42), decided(640, origin={"kind": "tool", "span": f"{1:016x}", "path": ""})),
        "They parted at step 1, the tool bureau: called with the same arguments it returned 580 in the first run and "
        "640 in the second; the decision risk and the answer follow from it.",
    ),
    "output": (
        ran(read(), model("Reject.")),
        other(read(), model("Approve.")),
        "They parted at step 2, the model small-1: asked the same it answered Reject. in the first run and "
        "Approve. in the second; the answer follows from it.",
    ),
    "model": (
        ran(model()),
        other(model("Hm.", request="cd", model="large-2")),
        "They parted at step 1, the model small-1: the model was small-1 in the first run and large-2 in the second; "
        "the answer follows from it.",
    ),
    "prompt": (
        ran(model(messages=[{"role": "user", "content": "Be strict."}])),
        other(model("Hm.", request="cd", messages=[{"role": "user", "content": "Be kind."}])),
        "They parted at step 1, the model small-1: message 1 of the request (the words of the user) was Be strict. in "
        "the first run and Be kind. in the second; the answer follows from it.",
    ),
    "parameters": (
        ran(model(parameters={"temperature": 0})),
        other(model("Hm.", request="cd", parameters={"temperature": 1})),
        "They parted at step 1, the model small-1: the parameter temperature was 0 in the first run and 1 in the "
        "second; the answer follows from it.",
    ),
    "rule": (
        ran(read(620), decided(620, 600)),
        other(read(620), decided(620, 650)),
        "They parted at step 2, the decision risk: the rule Low asked for creditScore below 600 in the first run and "
        "below 650 in the second; the answer follows from it.",
    ),
    "code": (
        ran(read(), start={"code": "v1"}),
        other(read(), tool("fraud"), start={"code": "v2"}),
        "They parted at step 2, the tool fraud: only the second run called it, and their code differs: v1 in the first "
        "run and v2 in the second; the answer follows from it.",
    ),
    "in_force": (
        ran(read(), start={"using": {"runbook": [{"entity": "runbook/risk", "version": 3}]}}),
        other(read(), tool("fraud"), start={"using": {"runbook": [{"entity": "runbook/risk", "version": 9}]}}),
        "They parted at step 2, the tool fraud: only the second run called it, and runbook/risk was version 3 in the "
        "first run and version 9 in the second; the answer follows from it.",
    ),
    "step": (
        ran(read(), tool("fraud"), decided()),
        other(read(), decided(), answer="No."),
        "They parted at step 2, the tool fraud: only the first run called it; the answer is the same.",
    ),
    "wording": (
        ran(tool("note", text="The customer would like to have a new card.")),
        other(tool("note", text="A new card is what the customer asks for.")),
        "They parted at step 1, the tool note: it was called with text=The customer would like to have a new card. in "
        "the first run and text=A new card is what the customer asks for. in the second; the answer follows from it.",
    ),
    "unrecorded": (
        ran(read()),
        other(read()),
        "They parted at the answer: it was No. in the first run and Yes. in the second, and nothing recorded before it "
        "differs.",
    ),
}


@pytest.mark.parametrize("kind", STORIES)
def test_each_cause_has_its_sentence(kind: str) -> None:
    """Two runs that part for one reason: the reason is named, and the sentence says all of it."""
    first, second, sentence = STORIES[kind]
    found = compare(first, second)
    assert found.cause is not None
    assert (found.cause.kind, found.sentence) == (kind, sentence)
    assert kind in KINDS
    back = compare(second, first)
    assert back.cause is not None
    assert (back.step, back.cause.kind) == (found.step, kind)
    assert found.to_json()["rows"][found.step]["cause"]["text"] in sentence


def test_every_class_of_causes_has_a_story() -> None:
    """Each kind has its sentence here or, where a log is needed, in the tests of the ledger and of forks."""
    assert {*STORIES, "edit", "schema", "nothing_in_common"} == {*KINDS}


poll = {"job": 7}
FAILED: Said = ("run.tool", {"name": "pay", "args": {}, "error": {"type": "TimeoutError", "message": "slow"}})


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (
            [tool("poll", "wait", **poll), tool("poll", "done", **poll)],
            [tool("poll", "wait", **poll), tool("poll", "wait", **poll), tool("poll", "done", **poll)],
            "They parted at step 2, the tool poll: called with the same arguments it returned done in the first run "
            "and wait in the second; the answer is the same.",
        ),
        (
            [tool("pay", "ok")],
            [FAILED, tool("pay", "ok")],
            "They parted at step 1, the tool pay: called with the same arguments it returned ok in the first run and "
            "failed with TimeoutError: slow in the second; the answer is the same.",
        ),
        (
            [tool("a"), tool("b"), tool("c")],
            [tool("b"), tool("a"), tool("c")],
            "They are the same in all 3 steps and in the answer, one step in another order that makes no difference.",
        ),
        (
            [tool("search", 1, q="x", page=1)],
            [tool("search", 1, q="y", page=1)],
            "They parted at step 1, the tool search: it was called with q=x in the first run and q=y in the second, "
            "and nothing recorded before it differs; the answer is the same.",
        ),
        (
            [tool("client", {"name": "Kim", "city": "Oslo"})],
            [tool("client", {"name": "Kim"})],
            "They parted at step 1, the tool client: called with the same arguments it returned city=Oslo in the first "
            "run and no city in the second; the answer is the same.",
        ),
    ],
    ids=["a loop once more", "a retry", "parallel steps", "other arguments", "a part of a result"],
)
def test_what_happens_to_real_agents(first: list[Said], second: list[Said], sentence: str) -> None:
    """Loops, retries, parallel steps and long results end in a sentence that says what happened, both ways round."""
    a, b = ran(*first), ran(*second, id=SECOND)
    assert compare(a, b).sentence == sentence
    assert compare(b, a).step == compare(a, b).step


def test_runs_that_do_not_differ_are_the_same() -> None:
    """Times, spans, ids and which observation shows a value make no difference; other code is told all the same."""
    first = ran(read(), decided(), start={"code": "v1"})
    second = ran(read(observation="obs_b"), decided(), id=SECOND, start={"code": "v1"})
    found = compare(first, second)
    assert (found.same, found.step, found.cause) == (True, None, None)
    assert found.sentence == "They are the same in all 2 steps and in the answer."
    assert {row.mark for row in found.rows} == {"same"}
    newer = ran(read(), decided(), id=SECOND, start={"code": "v2"})
    assert compare(first, newer).sentence.endswith(
        "though their code differs: v1 in the first run and v2 in the second."
    )
    assert compare(first, first).sentence == "They are one and the same run."


def test_runs_with_nothing_in_common_say_so() -> None:
    """No step of one is like a step of the other: there is no point at which they part."""
    found = compare(ran(read()), other(tool("weather"), start={"query": "Rain?"}))
    assert (found.same, found.step) == (False, None)
    assert found.cause is not None
    assert found.cause.kind == "nothing_in_common"
    assert found.sentence == (
        "They have nothing in common: no step of one has the kind and the name of a step of the other."
    )


def test_a_run_without_steps_can_be_compared() -> None:
    """Nothing was done in one, or in either."""
    assert compare(ran(), ran(id=SECOND)).sentence == "They are the same without a step and in the answer."
    assert compare(ran(read()), other()).step == 1
    stopped = compare(ran(read(), tool()), other(read(), status="interrupted"))
    assert stopped.sentence == (
        "They parted at step 2, the tool bureau: the second run stopped before it (interrupted); "
        "the answer follows from it."
    )


def test_an_inserted_step_of_a_loop_leaves_the_others_side_by_side() -> None:
    """Of calls of one tool those with the same arguments stand side by side; the one that is new has no partner."""
    first = ran(*(tool("fetch", number, page=number) for number in (1, 2, 3)), answer="No.")
    second = other(*(tool("fetch", number, page=number) for number in (1, 9, 2, 3)), answer="No.")
    assert [row.mark for row in compare(first, second).rows] == ["same", "same", "second", "same", "same", "same"]
    assert compare(first, second).step == compare(second, first).step == 2


def test_a_read_that_differs_shows_what_differs() -> None:
    """Of many fields a row has those that differ, so that they are seen in a narrow column; else all of them."""
    same = {name: {"observation": "obs_c", "value": "x" * 30} for name in ("a", "b")}
    first, second = (
        ("run.read", {"entity": "loan/42", "fields": {**same, "z": {"observation": "obs_z", "value": value}}})
        for value in (1, 2)
    )
    row = compare(ran(first), other(second)).rows[1]
    assert (row.first, row.second) == ("z=1", "z=2")
    assert (compare(ran(first), other(first)).rows[1].first or "").startswith("a=xxx")


def test_two_ways_on_are_both_named() -> None:
    """Where each run went on with a step of its own, the sentence has both."""
    found = compare(ran(read(), tool("fraud")), other(read(), tool("bureau"), answer="No."))
    assert "the first run went on with the tool fraud and the second with the tool bureau" in found.sentence


def test_a_decision_for_another_reason_is_told_apart() -> None:
    """A decision whose evidence is the same and whose rule is not does not follow from a read that differs."""
    first = ran(read(entity="client/kim"), read(), decided(580, 600))
    second = other(read(700, entity="client/kim"), read(), decided(580, 500))
    found = compare(first, second)
    assert found.sentence == (
        "They parted at step 1, the read of client/kim: creditScore was 580 in the first run and 700 in the second; "
        "apart from that, at step 3, the decision risk, the rule Low asked for creditScore below 600 in the first run "
        "and below 500 in the second; the answer follows from it."
    )
    assert [row.follows for row in found.rows] == [None, None, None, None, 3]


def test_a_decision_follows_the_read_it_leaned_on() -> None:
    """Of two reads that differ, the one the evidence came from is the one the decision follows from."""
    first = ran(read(1, entity="client/kim"), read(580), decided(580))
    second = other(read(2, entity="client/kim"), read(640), decided(640))
    assert [row.follows for row in compare(first, second).rows] == [None, None, None, 2, 2]


def test_hidden_values_are_told_apart_by_their_observations() -> None:
    """A value that was hidden differs where it came from another observation; it is never called the same evidence."""
    hidden = "[REDACTED]"

    def decision(chosen: str, observation: str, **said: Any) -> Said:
        origin = {"kind": "read", "entity": "loan/42", "field": "creditScore", "observations": [observation], **said}
        looked = {**condition("creditScore", "lt", 600, hidden, chosen == "no"), "origin": origin}
        rule = {"label": "Low", "chosen": "no", "matched": chosen == "no", "conditions": [looked]}
        return "run.decided", {"stage": "risk", "chosen": chosen, "default": chosen == "yes", "rules": [rule]}

    assert compare(ran(read(hidden)), ran(read(hidden), id=SECOND)).same
    first = ran(read(hidden, observation="obs_a"), decision("no", "obs_a"))
    found = compare(first, other(read(hidden, observation="obs_b"), decision("yes", "obs_b")))
    assert (found.step, [row.follows for row in found.rows]) == (1, [None, None, 1, 1])
    stated = ran(decision("no", "obs_a", kind="stated")), other(decision("yes", "obs_a", kind="stated"))
    assert (
        "creditScore is hidden, and what it chose was no in the first run and yes in the second"
        in compare(*stated).sentence
    )


def test_steps_after_a_choice_follow_from_it() -> None:
    """What only one run did after it chose otherwise follows from the choice, not from an earlier difference."""
    first = ran(read(1, entity="client/kim"), decided(580, 600))
    second = other(read(2, entity="client/kim"), decided(580, 500), tool("pay"))
    assert [row.follows for row in compare(first, second).rows] == [None, None, None, 2, 2]


def test_what_a_run_wrote_is_a_step() -> None:
    """A write stands after the step it was said in, and follows from the decision before it."""

    def wrote(record: RunRecord, status: str, observation: str) -> RunRecord:
        seen_at = "2026-01-05T09:00:00.000000Z"
        said = Write(20, observation, "loan/42", "assert", {"status": status}, {}, seen_at, 2, "loan-officer")
        began = [("run.started", body(0, record.id, query="Approve?", agent="loan-officer"))]
        limit = 600 if status == "no" else 500
        steps = [
            ("run.read", body(1, record.id, **read()[1])),
            ("run.decided", body(2, record.id, **decided(580, limit)[1])),
        ]
        later = [("run.tool", body(3, record.id, **tool("mail")[1]))]
        return record_of(record.id, entries(began + steps + later), [said])

    found = compare(wrote(ran(), "no", "obs_c"), wrote(other(), "yes", "obs_d"))
    assert [(row.label, row.mark, row.follows) for row in found.rows][2:5] == [
        ("decision risk", "differs", None),
        ("write of loan/42", "differs", 2),
        ("tool mail", "same", None),
    ]


def test_long_values_are_cut_and_stay_on_one_line() -> None:
    """A sentence is for reading: whatever a tool returned takes a bounded part of it."""
    found = compare(ran(tool(result="a\nb" * 5_000)), other(tool(result={"x": ["y"] * 5_000})))
    assert len(found.sentence) < 500
    assert "\n" not in found.sentence


STEPS = st.lists(
    st.one_of(
        st.builds(read, st.integers(0, 2), st.sampled_from(["loan/1", "loan/2"])),
        st.builds(lambda name, result, arg: tool(name, result, a=arg), st.sampled_from("ab"), *[st.integers(0, 1)] * 2),
        st.builds(model, st.sampled_from("xy"), st.sampled_from("pq")),
        st.builds(decided, st.integers(599, 601), st.just(600)),
    ),
    max_size=8,
)


@given(STEPS, STEPS)
def test_which_run_comes_first_does_not_matter(one: list[Said], two: list[Said]) -> None:
    """A run is the same as itself, and two runs part at the same step whichever is named first."""
    a, b = ran(*one), ran(*two, id=SECOND)
    assert compare(a, a).same
    assert compare(a, ran(*one, id=SECOND)).same
    there, back = compare(a, b), compare(b, a)
    assert (there.same, there.step) == (back.same, back.step)
    assert (there.cause and there.cause.kind) == (back.cause and back.cause.kind)
    assert [(row.label, row.first, row.second) for row in there.rows if row.kind != "model"] == [
        (row.label, row.second, row.first) for row in back.rows if row.kind != "model"
    ]
    for row in there.rows:
        explained = row.cause is not None or row.follows is not None
        assert explained == (row.mark != "same") or there.step is None


@given(st.lists(st.integers(0, 3), max_size=9), st.lists(st.integers(0, 3), max_size=9))
def test_alignment_keeps_the_order_and_pairs_as_many_as_it_can(a: list[int], b: list[int]) -> None:
    """Every item stands in one row, in order, and no other alignment has more equal items side by side."""
    pairs = align(a, b)
    assert [i for i, _ in pairs if i is not None] == list(range(len(a)))
    assert [j for _, j in pairs if j is not None] == list(range(len(b)))
    equal = [(i, j) for i, j in pairs if i is not None and j is not None]
    assert all(a[i] == b[j] for i, j in equal)
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    assert len(equal) == table[-1][-1]


class Counted:
    """A key that counts how often it is compared."""

    compared = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return isinstance(other, Counted) and self.value == other.value


@pytest.mark.parametrize("different", [1, 2, 7, 1_000])
def test_a_thousand_steps_are_aligned_with_a_few_comparisons_each(different: int) -> None:
    """Two runs of 1,000 steps, with loops or without: at most three comparisons of keys for each step."""
    Counted.compared = 0
    a = [Counted(number % different) for number in range(1_000)]
    b = [Counted((number * 3 + 1) % different) for number in range(1_000)]
    align(a, b)
    assert Counted.compared <= 3 * 2_000


def test_a_thousand_steps_are_compared_whole() -> None:
    """Two runs of 1,000 steps with one more in the middle of the second: it alone has no partner."""
    steps = [tool("fetch", number, page=number) for number in range(1_000)]
    found = compare(ran(*steps), other(*steps[:500], tool("fetch", 0, page=-1), *steps[500:], answer="No."))
    assert [row.step for row in found.rows if row.mark != "same"] == [501] == [found.step]
