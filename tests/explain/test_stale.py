"""A decision made again on other facts: same, flip, or unknown and why."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runs.story import loan, record

from woodrat.canon.form import Json
from woodrat.explain.remake import DecisionNow, Remade, from_models, is_whole
from woodrat.runs import steps
from woodrat.runs.facts import facts_of
from woodrat.runs.rules import Rule, body_of, evaluate
from woodrat.runs.steps import Decision
from woodrat.state.fact import Fact

RULES = [
    Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal"),
    Rule("approved", {"creditScore": {"gte": 700}}, label="Good"),
]


def decided(score: int, rules: list[Rule] = RULES, mode: str = "decide", **given: Any) -> Decision:
    """Return a decision as its entry says it."""
    facts = facts_of({"creditScore": score, **given.pop("facts", {})}, lambda name, value: None)
    hidden = given.pop("hidden", frozenset())
    verdict = evaluate(facts, rules, "manual-review", mode, hidden=hidden, **given)
    said = body_of(verdict, facts, hidden)
    found = steps.part_of("run.decided", 1, {"stage": "risk", **said})
    assert isinstance(found, Decision)
    return found


def now(value: Json, name: str = "creditScore") -> dict[str, Fact]:
    """Return one fact as it is believed now."""
    return {name: Fact(name, value, {"kind": "read"})}


def remake(decision: Decision, now: dict[str, Fact]) -> DecisionNow:
    """Return what a decision would come to on these facts."""
    return Remade(decision).on(now, from_models(decision))


@pytest.mark.parametrize(
    ("before", "after", "outcome", "chosen"),
    [
        (580, 640, "flip", "manual-review"),
        (580, 700, "flip", "approved"),
        (580, 599, "same", "rejected"),
        (640, 580, "flip", "rejected"),
        (640, 650, "same", "manual-review"),
        (710, 580, "flip", "rejected"),
    ],
)
def test_data_rules_are_evaluated_again(before: int, after: int, outcome: str, chosen: str) -> None:
    """Also the rules after the match and the default count: they are on record."""
    found = remake(decided(before), now(after))
    assert (found.outcome, found.chosen) == (outcome, chosen)


def test_select_takes_every_branch_again() -> None:
    """Under select the list of all branches is compared."""
    rules = [Rule("low", {"creditScore": {"lt": 600}}), Rule("odd", {"creditScore": {"in": [581, 641]}})]
    made = decided(581, rules, "select")
    assert made.chosen == ["low", "odd"]
    assert remake(made, now(580)).chosen == ["low"]
    assert remake(made, now(700)).chosen == ["manual-review"]
    assert remake(made, now(581)).outcome == "same"


def test_a_fact_that_is_gone_is_missing() -> None:
    """A rule on a fact that nobody believes any more is unknown, and so is the decision, unless it skips such rules."""
    gone = {"creditScore": Fact("creditScore", None, {"kind": "read"}, missing=True)}
    found = remake(decided(580), gone)
    assert (found.outcome, found.chosen) == ("unknown", None)
    assert found.reason == "rule Marginal cannot be decided: there is no fact creditScore"
    skipped = remake(decided(580, on_missing="skip"), gone)
    assert (skipped.outcome, skipped.chosen) == ("flip", "manual-review")


def test_a_rule_that_another_condition_settles_is_not_unknown() -> None:
    """A fact that is gone leaves a decision as it is where something else of its rule is false."""
    rules = [Rule("a", {"creditScore": {"lt": 600}, "age": {"lt": 18}}), Rule("b", {"age": {"gte": 18}})]
    gone = {"creditScore": Fact("creditScore", None, {"kind": "read"}, missing=True)}
    assert remake(decided(580, rules, facts={"age": 40}), gone).outcome == "same"
    text = {"creditScore": Fact("creditScore", "580", {"kind": "read"})}
    assert remake(decided(580, rules[:1], facts={"age": 10}), text).reason == (
        "rule a cannot be decided: creditScore cannot be compared: text and a number have no order"
    )
    several = remake(decided(580, rules, "select", facts={"age": 10}), gone)
    assert (several.outcome, several.reason) == ("unknown", "rule a cannot be decided: there is no fact creditScore")


def test_a_faulty_rule_of_another_recorder_is_unknown() -> None:
    """What no rule could be here is on record as it was told, and making the decision again says what is wrong."""
    rules = [{"chosen": "rejected", "when": {"score": {"less_than": 600}}, "matched": False, "conditions": []}]
    body = {"stage": "risk", "chosen": "approved", "default": True, "rules": rules, "facts": {"score": 580}}
    made = steps.part_of("run.decided", 1, body)
    assert isinstance(made, Decision)
    found = remake(made, {"score": Fact("score", 570, {"kind": "stated"})})
    assert found.outcome == "unknown"
    assert found.reason.startswith(
        'rule rejected cannot be decided: score cannot be compared: unknown operator "less_than"'
    )


def test_old_records_do_not_name_the_rules_after_the_match() -> None:
    """Where the record ends with the match, what would come instead is unknown; where the match holds it is not."""
    (made,) = record(loan()).decisions
    assert made.untried is None
    assert remake(made, now(590)).outcome == "same"
    found = remake(made, now(640))
    assert (found.outcome, found.chosen) == ("unknown", None)
    assert found.reason == "the rule that matched no longer does, and the rules after it are not on record"


def test_a_predicate_is_unknown_unless_it_saw_nothing_of_it() -> None:
    """Code is not run again; a predicate that looked at other facts only answers as it did."""
    old = Rule("old", lambda facts: facts["age"] > 60)
    made = decided(580, [old, *RULES], facts={"age": 30})
    assert remake(made, now(640)).chosen == "manual-review"
    assert "is a predicate in the agent's code" in remake(made, now(70, "age")).reason
    after = decided(580, [RULES[0], old], facts={"age": 30})
    assert remake(after, now(640)).outcome == "unknown"
    assert remake(after, now(590)).outcome == "same"


def test_what_came_from_a_model_is_unknown() -> None:
    """A fact that a model gave might be another now; a rule that fails without it needs no model."""
    rules = [Rule("a", {"mood": {"eq": "good"}, "creditScore": {"lt": 600}})]
    made = decided(580, rules, facts={"mood": Fact("mood", "good", {"kind": "model", "span": "1"})})
    found = remake(made, now(590))
    assert (found.outcome, found.reason) == ("unknown", "mood came from a model, which might answer otherwise now")
    assert remake(made, now(640)).chosen == "manual-review"


def test_a_rule_in_doubt_does_not_matter_where_all_lead_to_one_branch() -> None:
    """Whether a rule matches that would choose what is chosen anyway changes nothing."""
    rules = [Rule("a", {"mood": "good"}), Rule("a", {"creditScore": {"lt": 600}})]
    made = decided(580, rules, facts={"mood": Fact("mood", "bad", {"kind": "model", "span": "1"})})
    assert (remake(made, now(590)).outcome, remake(made, now(590)).rule) == ("same", None)
    assert remake(made, now(640)).outcome == "unknown"


def test_what_was_hidden_is_unknown() -> None:
    """A value or an operand that was redacted cannot be compared."""
    made = decided(580, hidden=frozenset({"creditScore"}))
    assert "580" not in repr(made)
    assert "700" not in repr(made)
    assert remake(made, now(640)).outcome == "unknown"
    assert not is_whole({"a": ["[REDACTED]"]})
    assert not is_whole({"$truncated": {}})
