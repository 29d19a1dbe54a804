"""Lists of decisions read bodies without making decisions of them, and share what decisions by the same rules share."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.explain import remake
from woodrat.runs import steps
from woodrat.runs.run_fields import SNAPSHOT
from woodrat.runs.steps import Decision
from woodrat.state.fact import Fact

_scalars: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, 2, 0.5, "a", "b", "[redacted]", {"$truncated": {"bytes": 9}}]
)
_texts = st.sampled_from(["x", "y", "", 1, None])
_origins = st.one_of(
    st.sampled_from([{}, None, "told", {"kind": "model"}, {"kind": "stated"}, {"kind": 1}]),
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["read", "model"]), "entity": st.sampled_from(["loan/1", 1]), "field": _texts},
        optional={"observations": st.sampled_from([["obs_a"], ["obs_a", 1], "obs_a"]), "position": _scalars},
    ),
)
_ops = st.sampled_from(["lt", "eq", "exists", "", "between"])
_conditions = st.one_of(
    st.just("no condition"),
    st.fixed_dictionaries(
        {"key": _texts, "op": _ops, "operand": _scalars, "actual": _scalars, "origin": _origins},
        optional={
            "result": st.sampled_from([True, False, None]),
            "error": st.sampled_from(["there is no such fact", ""]),
        },
    ),
)
_whens = st.one_of(
    st.none(), st.dictionaries(st.sampled_from("xy"), st.one_of(_scalars, st.dictionaries(_ops, _scalars, max_size=2)))
)
_rules = st.one_of(
    st.just("no rule"),
    st.fixed_dictionaries(
        {"chosen": _scalars, "when": _whens},
        optional={
            "label": st.sampled_from(["low", 1, None]),
            "matched": st.booleans(),
            "unknown": st.booleans(),
            "predicate": st.sampled_from(["is_low", None]),
            "conditions": st.lists(_conditions, max_size=2),
        },
    ),
)
_facts = st.dictionaries(st.sampled_from("xy"), _scalars, max_size=2)
_made_on: dict[str, st.SearchStrategy[Any]] = {
    "facts": _facts,
    "facts_origin": st.dictionaries(st.sampled_from("xy"), _origins, max_size=2),
    "run": st.sampled_from(["run_a", "run_b"]),
}
_decided: dict[str, st.SearchStrategy[Any]] = {
    "rules": st.one_of(st.none(), st.lists(_rules, max_size=2)),
    "untried": st.one_of(st.none(), st.lists(_rules, max_size=1)),
    "chosen": _scalars,
    "default": st.booleans(),
    "mode": st.sampled_from(["decide", "select", None]),
    "otherwise": _scalars,
    "on_missing": st.sampled_from(["skip", None]),
    "chosen_by": st.sampled_from([None, {"model": "m"}]),
    "omitted": st.sampled_from([None, {"rules": 1}, {"conditions": 1}]),
    "attributes": st.sampled_from([None, {"snapshot": {}}]),
}
_bodies = st.fixed_dictionaries({}, optional={**_made_on, **_decided}).map(lambda body: form.decode(form.encode(body)))
_now = st.dictionaries(
    st.sampled_from("xy"), st.tuples(_scalars, st.booleans()).map(lambda told: Fact("x", told[0], {}, missing=told[1]))
)


def decision(body: dict[str, Any]) -> Decision:
    """Return the decision that a body records."""
    made = steps.part_of("run.decided", 7, body)
    assert isinstance(made, Decision)
    return made


def _share(bodies: tuple[dict[str, Any], dict[str, Any]], now: dict[str, Fact]) -> None:
    """Check that of two decisions by the same rules one says what the other would come to."""
    one, other = bodies
    if remake.rules_key(one) != remake.rules_key(other):
        return
    made = decision(other)
    values = made.known_facts
    kept = dict(values)
    assert remake.Remade(decision(one)).on(now, {}, values) == remake.Remade(made).on(now)
    assert values == kept, "what another decision was made on stays as it is"


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two bodies that mostly differ in what their rules compared, in their facts and in their run alone."""
    one = draw(_bodies)
    other = {**one, **draw(st.fixed_dictionaries({}, optional=_made_on))}
    if isinstance(one.get("rules"), list):
        changed = st.fixed_dictionaries({"conditions": st.lists(_conditions, max_size=1), "matched": st.booleans()})
        other["rules"] = [{**rule, **draw(changed)} if isinstance(rule, dict) else rule for rule in one["rules"]]
    if draw(st.booleans()):
        other.update(draw(st.fixed_dictionaries({}, optional=_decided)))
    return one, form.decode(form.encode(other))


@given(_pairs(), _now)
def test_decisions_by_the_same_rules_share_them(
    bodies: tuple[dict[str, Any], dict[str, Any]], now: dict[str, Fact]
) -> None:
    """What one says of other facts holds for all that differ in what they were made on alone."""
    _share(bodies, now)


RULE = {"when": {"x": {"lt": 3}}, "chosen": "no", "label": "low", "matched": False}
BODY = {"rules": [RULE], "facts": {"x": 5}, "chosen": "yes", "default": True, "mode": "decide", "untried": []}


@pytest.mark.parametrize(
    "other",
    [
        {"rules": [{**RULE, "when": {"x": {"lt": 9}}}]},
        {"rules": [{**RULE, "when": {"x": {"lt": 3.5}}}]},
        {"rules": [{**RULE, "chosen": "maybe"}]},
        {"rules": [{**RULE, "label": "very low"}]},
        {"rules": [RULE, RULE]},
        {"rules": []},
        {"rules": None},
        {"chosen": "no"},
        {"chosen": True},
        {"default": False},
        {"mode": "select"},
        {"otherwise": "yes"},
        {"untried": None},
        {"untried": [RULE]},
        {"on_missing": "skip"},
        {"chosen_by": {"model": "m"}},
        {"omitted": {"rules": 1}},
        {"attributes": {SNAPSHOT: {}}},
    ],
    ids=str,
)
def test_other_rules_are_not_shared(other: dict[str, Any]) -> None:
    """Whatever a decision depends on besides its facts keeps it apart from others."""
    assert remake.rules_key({**BODY, **other}) != remake.rules_key(BODY)


def test_what_differs_in_facts_is_shared() -> None:
    """Facts, what data rules compared, and where a decision was made do not keep it apart."""
    compared = {"key": "x", "op": "lt", "operand": 3, "actual": 7, "result": False, "origin": {"kind": "stated"}}
    other = {"rules": [{**RULE, "conditions": [compared]}], "facts": {"x": 7}, "run": "run_b", "span": "00", "step": 4}
    assert remake.rules_key({**BODY, **other}) == remake.rules_key(BODY)
