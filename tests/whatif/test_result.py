"""The pure parts of what-if: what is supposed, the stretches of a sweep, and how they are counted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from tests.explain.test_stale import decided

from woodrat.canon.form import Json
from woodrat.errors import Fault, Refused
from woodrat.explain.remake import FLIP, SAME, UNKNOWN, UNMOVED, DecisionNow, Remade
from woodrat.runs.rules import Rule, evaluate
from woodrat.whatif.result import CHOICES_MAX, Tally, joined, overall, segments
from woodrat.whatif.supposition import Supposition, Sweep, suppose


def supposed(**given: Any) -> Supposition:
    """Return a supposition that has nothing wrong."""
    faults: list[Fault] = []
    found = suppose(faults, **given)
    assert not faults
    return found


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1..4", (1, 2, 3, 4)),
        ("1..4:2", (1, 3)),
        ("-1..1", (-1, 0, 1)),
        ("0.1..0.4:0.1", (0.1, 0.2, 0.3, 0.4)),
        ("0..1:0.5", (0, 0.5, 1)),
        ("7..7", (7,)),
        ("a,b,c", ("a", "b", "c")),
        ("1, 2,1.0", (1, 2)),
        ("true,null,1.5", (True, None, 1.5)),
        ('"1",1', ("1", 1)),
    ],
)
def test_the_values_of_a_sweep(text: str, values: tuple[Json, ...]) -> None:
    """A range counts exactly, whatever binary fractions make of its step; a list has each value once."""
    for sweep in (f"x={text}", {"x": text}):
        assert supposed(sweep=sweep).sweep == Sweep("x", values)


def test_what_is_supposed_is_told_whole() -> None:
    """Facts stand under their names and fields under reference and field; what is not supposed is empty."""
    found = supposed(set={"loan/42#score": 1, "age": 2}, without="obs_x", thresholds={"risk.a.b.lt": 3})
    assert found.to_json() == {
        "without": ["obs_x"],
        "without_agents": [],
        "facts": {"age": 2},
        "fields": {"loan/42#score": 1},
        "rules": {},
        "thresholds": {"risk.a.b.lt": 3},
        "sweep": None,
    }
    assert list(found.field_values()) == [("loan/42", "score", 1)]
    assert supposed(sweep="a=1..3").to_json()["sweep"] == {"name": "a", "values": [1, 2, 3]}


def test_a_cursor_is_bound_to_what_is_supposed_in_the_same_words_as_ever() -> None:
    """What goes into the digest of a cursor has keys of its own, whatever the fields are called."""
    found = supposed(
        set={"loan/42#score": 1, "age": 2}, without="obs_x", without_agents="a", thresholds={"risk.a.b.lt": 3}
    )
    assert found.question() == {
        "without": ["obs_x"],
        "withoutAgents": ["a"],
        "set": {"loan/42#score": 1, "age": 2},
        "thresholds": {"risk.a.b.lt": 3},
    }
    rules = [{"chosen": 1, "when": {"a": {"lt": 2}}, "label": "Low"}, {"chosen": 2, "when": {"a": 3}}]
    assert supposed(rules={"risk": rules}).question() == {"rules": {"risk": rules}}
    assert supposed(sweep="a=1..3").question() == {"sweep": {"name": "a", "first": 1, "last": 3, "values": 3}}


OPERANDS = st.one_of(st.integers(-6, 6), st.sampled_from([-2.5, 0.5, 3.0, "a", None, True, [1]]))
CONDITIONS = st.one_of(
    st.tuples(st.sampled_from(["eq", "ne"]), OPERANDS),
    st.tuples(
        st.sampled_from(["gt", "gte", "lt", "lte"]), st.one_of(st.integers(-6, 6), st.sampled_from([-2.5, 3.0, "a"]))
    ),
    st.tuples(st.sampled_from(["in", "not_in"]), st.lists(OPERANDS, max_size=3)),
    st.tuples(st.just("exists"), st.booleans()),
)


@given(
    conditions=st.lists(st.tuples(CONDITIONS, CONDITIONS), min_size=1, max_size=4),
    low=st.integers(-8, 4),
    size=st.integers(0, 12),
    step=st.sampled_from(["1", "2", "0.5"]),
    mode=st.sampled_from(["decide", "select"]),
    on_missing=st.sampled_from(["raise", "skip"]),
)
def test_stretches_equal_every_value_by_itself(
    conditions: list[tuple[tuple[str, Json], tuple[str, Json]]],
    low: int,
    size: int,
    step: str,
    mode: str,
    on_missing: str,
) -> None:
    """Evaluating one value of each stretch is evaluating all of them."""
    rules = [Rule(number, {"creditScore": dict(pair)}) for number, pair in enumerate(conditions)]
    try:
        evaluate({"creditScore": 0}, rules, mode=mode, on_missing=on_missing)
    except Refused:
        reject()  # it could not have been decided, so there is no record of it
    made = decided(0, rules, mode, on_missing=on_missing)
    remade = Remade(made)
    sweep = supposed(sweep=f"creditScore={low}..{low + size}:{step}").sweep
    assert sweep is not None
    assert sweep.ascending
    found = segments(sweep, True, [*remade.operands("creditScore"), 0])
    assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])]
    assert found[-1][1] == len(sweep.values)
    for start, stop in found:
        once = remade.by({"creditScore": sweep.values[start]}, {"creditScore"}, {})
        for value in sweep.values[start:stop]:
            try:
                verdict = evaluate({"creditScore": value}, rules, "manual-review", mode, on_missing=on_missing)
            except Refused:
                assert once.outcome == "unknown"
            else:
                assert once.outcome != "unknown"
                assert once.chosen == verdict.chosen


def test_other_rules_and_operands_make_a_decision_another_one() -> None:
    """A threshold counts where its fact and operator stand in a rule; a bare value is `eq`."""
    made = decided(580, [Rule("a", {"creditScore": {"lt": 600, "gt": 100}}), Rule("b", {"creditScore": 700})])
    assert Remade(made, None, [("creditScore", "lt", 500)]).on({}).chosen == "manual-review"
    same = Remade(made, None, [("creditScore", "lt", 600), ("creditScore", "eq", 700), ("age", "lt", 1)])
    assert (same.altered, same.met) == (False, {0, 1})
    other = Remade(made, [Rule("c", {"creditScore": {"gte": 580}})])
    assert (other.altered, other.on({}).chosen) == (True, "c")
    assert Remade(made, []).on({}).chosen == "manual-review"


def test_an_open_fact_is_unknown_unless_the_rule_fails_without_it() -> None:
    """A condition that is known to fail settles its rule."""
    made = decided(580, [Rule("a", {"creditScore": {"lt": 600}, "mood": "good"})], facts={"mood": "good"})
    remade = Remade(made)
    assert remade.on({}, {"mood": "why"}) == DecisionNow(UNKNOWN, None, None, "why")
    found = remade.by({"creditScore": 700, "mood": "good"}, {"creditScore"}, {"mood": "why"})
    assert (found.outcome, found.chosen) == (FLIP, "manual-review")


def test_neighbours_that_come_to_the_same_are_one_range() -> None:
    """The reason of the value on record gives way, as it is true of that value alone."""
    sweep = Sweep("x", tuple(range(6)))
    same, unmoved = DecisionNow(SAME, "a", "A", "rule A matches"), DecisionNow(SAME, "a", "A", UNMOVED)
    flip, unknown = DecisionNow(FLIP, 1, "A", ""), DecisionNow(UNKNOWN, None, None, "why")
    found = joined(sweep, [(0, 1, unmoved), (1, 2, same), (2, 3, unmoved), (3, 4, flip), (4, 6, unknown)])
    assert [(part.first, part.last, part.now) for part in found] == [(0, 2, same), (3, 3, flip), (4, 5, unknown)]
    assert [part.sentence for part in found] == ["0..2: a (as recorded)", "3: 1", "4..5: unknown: why"]
    assert overall(found).outcome == FLIP
    assert overall(found[:1]).outcome == SAME
    assert overall([found[0], found[2]]).reason == "why"


def test_a_table_counts_every_choice_and_the_rest_together() -> None:
    """Values that Python takes for equal and JSON does not are counted apart; too many choices are not."""
    sweep = Sweep("x", (1, 2))
    tally = Tally(sweep)
    for chosen in (1, True, "1"):
        tally.add(0, 2, DecisionNow(FLIP, chosen, None, ""))
    tally.add(1, 2, DecisionNow(UNKNOWN, None, None, "why"))
    first, second = tally.rows()
    assert (len(first.choices), first.unknown, second.unknown, second.flip) == (3, 0, 1, 3)
    many = Tally(Sweep("x", (1,)))
    for number in range(CHOICES_MAX + 5):
        many.add(0, 1, DecisionNow(FLIP, number, None, ""))
    (row,) = many.rows()
    assert {str(one.chosen): one.decisions for one in row.choices}["(others)"] == 5
