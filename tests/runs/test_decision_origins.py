"""Indexes read where the facts of a decision came from in its body, and find what the decision itself says."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from woodrat.runs import steps
from woodrat.runs.steps import Decision

STRANGE = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
ORIGIN = STRANGE | st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["read", "decision", "stated"]) | STRANGE,
        "entity": st.sampled_from(["loan/1", "loan/2", "nothing"]) | STRANGE,
        "field": st.sampled_from(["a", "b"]) | STRANGE,
        "observations": st.lists(st.sampled_from(["obs_1", "obs_2"]) | STRANGE, max_size=3) | STRANGE,
        "position": STRANGE,
    },
)
CONDITION = STRANGE | st.fixed_dictionaries({"key": st.sampled_from(["a", "b"])}, optional={"origin": ORIGIN})
RULE = STRANGE | st.fixed_dictionaries(
    {},
    optional={
        "conditions": st.lists(CONDITION, max_size=3) | STRANGE,
        "when": st.dictionaries(st.sampled_from(["a", "b"]), st.integers(), max_size=2) | STRANGE,
    },
)
BODY = st.fixed_dictionaries(
    {"run": st.just("run_1"), "span": st.just("s")},
    optional={
        "rules": st.lists(RULE, max_size=3) | STRANGE,
        "untried": st.lists(RULE, max_size=2) | STRANGE,
        "facts_origin": st.dictionaries(st.sampled_from(["a", "b", "c"]), ORIGIN, max_size=3) | STRANGE,
    },
)


@given(BODY)
def test_origins_read_from_a_body_are_those_of_the_decision(body: dict[str, Any]) -> None:
    """Whatever a body holds, members of another shape count as left out in both."""
    made = steps.part_of("run.decided", 7, body)
    assert isinstance(made, Decision)
    found = steps.decision_origins(body)
    assert found.all == made.origins
    assert found.conditions == tuple(condition.origin for condition in made.conditions)
    assert found.facts == made.facts_origin
    rules = (*made.rules, *(made.untried or ()))
    assert found.asked == {key for rule in rules if isinstance(rule.when, dict) for key in rule.when}
