"""Owner: whose run it is follows from the set of its entries, and nobody takes it over afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.story import AGENT, RUN, Said, at, body, entries, loan, record

from woodrat.canon.ids import Ref
from woodrat.runs.record import record_of, status_of
from woodrat.runs.steps import Write
from woodrat.state.observation import say
from woodrat.state.run_owner import bound_run, fresh_run, is_bound, owned, owner_of, run_of_foreign, run_of_trace

SPAN = "00f067aa0ba902b7"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
AGENTS = st.sampled_from(["a", "b", "loan-officer"])


def started(run: str, agent: str, **said: Any) -> Said:
    return "run.started", body(0, run, agent=agent, **said)


@given(
    st.lists(st.tuples(st.sampled_from(["run.started", "run.noted", "run.ended", "run.judged"]), AGENTS)), st.randoms()
)
def test_the_owner_is_a_function_of_the_set(said: list[tuple[str, str]], random: random.Random) -> None:
    """In any order, and however often they come, the same entries name the same owner and leave the same record."""
    told = [(kind, body(step, agent=agent)) for step, (kind, agent) in enumerate(said)]
    again = [*told, *told[:2]]
    random.shuffle(again)
    assert owner_of(RUN, told) == owner_of(RUN, again)
    one, other = record_of(RUN, entries(told)), record_of(RUN, entries(again))
    assert (one.agent, one.steps and [s.span for s in one.steps]) == (
        other.agent,
        other.steps and [s.span for s in other.steps],
    )


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (fresh_run("2026-01-05T09:00:00.000000Z", "z", SPAN), {"span": SPAN}),
        (bound_run(b"\0" * 6, "z", SPAN), {"span": SPAN}),
        (run_of_trace(TRACE, "z"), {"trace": TRACE}),
        (run_of_foreign("thread-7", "z"), {"attributes": {"id": "thread-7"}}),
    ],
    ids=["recorded", "by a key", "a trace", "a foreign id"],
)
def test_nobody_takes_over_a_run_whose_id_is_made_from_its_owner(run: str, said: dict[str, Any]) -> None:
    """Neither an earlier time nor a smaller name nor the same members make another agent the owner."""
    own = started(run, "z", **said)
    assert is_bound(run, own[1])
    for forged in (
        started(run, "a", started_at="1999-01-01T00:00:00.000000Z", **said),
        started(run, "a", span="0" * 16, attributes={"id": run}, trace=run),
        ("run.ended", body(0, run, agent="a", answer="forged", status="done")),
    ):
        assert owner_of(run, [forged, own]) == owner_of(run, [own, forged]) == "z"
        found = record_of(run, entries([forged, own, ("run.noted", body(3, run, agent="z", text="mine"))]))
        assert (found.agent, found.foreign, found.positions) == ("z", (10,), (11, 12))
        assert (found.status, found.answer, [note.text for note in found.notes]) == ("interrupted", None, ["mine"])


def test_of_beginnings_that_no_id_is_made_from_the_smallest_agent_counts() -> None:
    """A time that a caller states decides nothing, and a step decides nothing where there is a beginning."""
    late, early = started(RUN, "b", started_at=at(50)), started(RUN, "c", started_at=at(1))
    assert owner_of(RUN, [late, early]) == "b"
    assert owner_of(RUN, [("run.noted", body(1, agent="a")), late]) == "b"
    assert owner_of(RUN, [("run.noted", body(1, agent="b")), ("run.noted", body(1, agent="a"))]) == "a"
    assert owner_of(RUN, [("run.judged", body(1, agent="a"))]) is None


def test_what_other_agents_say_is_no_part_of_a_record() -> None:
    """Steps, ends and writes of others are listed by position alone; judgements count, and say whose they are."""
    foreign = [
        ("run.decided", body(7, agent="b", stage="classify-risk", chosen="approved", rules=[])),
        ("run.ended", body(8, agent="b", status="error", answer="forged")),
        ("run.noted", {name: value for name, value in body(9).items() if name != "agent"}),
        ("run.judged", body(10, agent="b", verdict="bad", by="ann")),
    ]
    written = [
        Write.of(
            30 + number, say(Ref("loan", "42"), "assert", agent=agent, observed_at=at(4), fields={"x": number}, run=RUN)
        )
        for number, agent in enumerate([AGENT, "b"])
    ]
    found, alone = record([*loan(), *foreign], written), record()
    assert found.foreign == (17, 18, 19, 31)
    assert (found.agent, found.answer, found.status) == (alone.agent, alone.answer, alone.status)
    assert [decision.chosen for decision in found.decisions] == ["rejected"]
    assert [write.position for write in found.writes] == [30]
    assert [(judged.verdict, judged.by, judged.agent) for judged in found.judgements] == [("bad", "ann", "b")]
    assert found.to_json()["foreign"] == [17, 18, 19, 31]
    assert not set(found.foreign) & set(found.positions)


def test_how_a_run_stands_is_for_its_owner_to_say() -> None:
    """An end that another agent tells of does not end a run."""
    said = [*loan()[:-1], ("run.ended", body(6, agent="b", status="done"))]
    assert status_of(RUN, entries(said)) == record(said).status == "interrupted"
    assert len(owned(RUN, entries(said))) == len(said) - 1


def by_arrival(run: str, said: Sequence[Said]) -> str:
    """Planted: whoever's beginning came first owns the run."""
    return next(str(told["agent"]) for kind, told in said if kind == "run.started")


def by_time(run: str, said: Sequence[Said]) -> str:
    """Planted: whoever states the earliest beginning owns the run, as it once was."""
    return min((told["started_at"], str(told["agent"])) for kind, told in said if kind == "run.started")[1]


def by_name(run: str, said: Sequence[Said]) -> str:
    """Planted: the smallest name owns the run, whomever its id is made from."""
    return min(str(told["agent"]) for kind, told in said if kind == "run.started")


@pytest.mark.parametrize("rule", [owner_of, by_arrival, by_time, by_name])
def test_rules_by_which_a_run_can_be_taken_over_are_found(rule: Callable[[str, Sequence[Said]], str | None]) -> None:
    """Of two beginnings the one that fits the id counts, in either order; each planted rule fails at that."""
    run = fresh_run(at(3), "z", SPAN)
    own, forged = started(run, "z", span=SPAN, started_at=at(3)), started(run, "a", started_at=at(1))
    holds = {rule(run, [own, forged]), rule(run, [forged, own])} == {"z"}
    assert holds is (rule is owner_of)
