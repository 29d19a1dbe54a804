"""Margins: the smallest change that flips a decision, the facts that did not matter, and the sources that would."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from tests.runs.margin_cases import (
    ABSENT,
    SMALL,
    WIDE,
    changed,
    chosen_on,
    decided,
    decisions,
    flipping,
    lies_in,
    names_change,
    smallest,
)

from woodrat.canon import form
from woodrat.runs import flip_search, value_classes
from woodrat.runs.flip_search import margin_of
from woodrat.runs.margin import FLIPS, NEVER, UNKNOWN, FactSource
from woodrat.runs.rules import Rule
from woodrat.runs.steps import Decision


def check_margin(decision: Decision, names: tuple[str, ...], domain: tuple[Any, ...]) -> None:
    """Compare the margin of a decision with what trying every value of the domain comes to."""
    found = margin_of(decision)
    size, every = smallest(decision, names, domain)
    recorded = (*decision.rules, *(decision.untried or ()))
    asked = {key for rule in recorded if isinstance(rule.when, dict) for key in rule.when}
    known = [name for name in names if name in asked or name in decision.facts]
    for flip in found.flips:
        for combination in _members(flip.facts, domain):
            chosen = chosen_on(decision, changed(decision.facts, combination))
            assert chosen is not ABSENT, (flip, combination)
            assert form.same(chosen, flip.chosen), (flip, combination)
    if not found.complete:
        assert found.reason
        return
    assert found.outcome == (FLIPS if every else NEVER)
    for part, change in every:
        assert names_change(found, part, change, chosen_on(decision, changed(decision.facts, change))), (part, change)
    assert {len(flip.facts) for flip in found.flips} <= {size}
    effective = {name for part, _ in every for name in part}
    assert set(found.without_effect) == {name for name in known if name not in effective}
    # Every fact there is was stated by the agent, which is one source.
    stated = tuple(name for name in names if name in asked and name in decision.fact_origins)
    flips = any(True for _ in flipping(decision, stated, domain)) if stated else False
    assert [sole.source.kind for sole in found.sources] == (["stated"] if flips else [])


def _members(changes: Any, domain: tuple[Any, ...]) -> Any:
    """Yield the combinations of values of the domain that a flip says lead to its choice."""
    from itertools import product

    inside = [[value for value in domain if any(lies_in(value, r) for r in change.to)] for change in changes]
    for values in product(*inside):
        yield dict(zip((change.fact for change in changes), values, strict=True))


@settings(max_examples=150)
@given(decisions(("x", "y"), SMALL))
def test_a_margin_is_what_trying_every_value_comes_to(decision: Decision | None) -> None:
    """On two facts the smallest changes, the facts without effect and the sole source equal those of brute force."""
    assume(decision is not None)
    assert decision is not None
    check_margin(decision, ("x", "y"), SMALL.domain)


@settings(max_examples=400)
@given(decisions(("x",), WIDE))
def test_a_margin_of_one_fact_is_what_trying_every_value_comes_to(decision: Decision | None) -> None:
    """So they do on one fact, with more values of it."""
    assume(decision is not None)
    assert decision is not None
    check_margin(decision, ("x",), WIDE.domain)


def _loan(score: Any = 580, **further: Any) -> Decision:
    rules = [
        Rule("rejected", {"creditScore": {"lt": 600}}, "Marginal credit"),
        Rule("rejected", {"income": {"lt": 1_000}, "collateral": False}, "No income"),
    ]
    decision = decided({"creditScore": score, **further}, rules, "approved")
    assert decision is not None
    return decision


def test_the_nearest_value_is_named() -> None:
    """A decision by a threshold names the threshold, and what was not asked for did not matter."""
    found = margin_of(_loan(580, income=3_000, collateral=True, name="Ana"))
    assert found.sentence == "with creditScore 600 or more instead of 580, approved would have been chosen"
    assert found.without_effect == ("collateral", "income", "name")
    assert (found.outcome, found.complete, found.reason) == (FLIPS, True, None)


def test_several_ways_are_told() -> None:
    """Each fact that flips the decision alone is named, with what would have been chosen."""
    found = margin_of(_loan(650, income=900, collateral=True))
    assert [flip.sentence for flip in found.flips] == [
        "with creditScore below 600 instead of 650, rejected would have been chosen",
        "with collateral false instead of true, rejected would have been chosen",
    ]


def test_two_facts_are_changed_where_one_is_not_enough() -> None:
    """Where two rules lead to one choice, both have to fail."""
    found = margin_of(_loan(580, income=900, collateral=False))
    assert [[change.fact for change in flip.facts] for flip in found.flips] == [
        ["creditScore", "collateral"],
        ["creditScore", "income"],
    ]
    assert found.flips[1].sentence == (
        "with creditScore 600 or more instead of 580 and income 1000 or more instead of 900, "
        "approved would have been chosen"
    )


def test_sources_of_several_facts_count_as_one() -> None:
    """A document that two facts came from would flip the decision where both have to change."""
    report, form_ = FactSource("document", "src_1", "report.pdf"), FactSource("document", "src_2", "form.pdf")
    decision = _loan(580, income=900, collateral=False)
    both = margin_of(decision, {"creditScore": (report,), "income": (report,), "collateral": (form_,)})
    assert [(sole.source.label, sole.facts) for sole in both.sources] == [("report.pdf", ("creditScore", "income"))]
    apart = margin_of(decision, {"creditScore": (report,), "income": (form_,), "collateral": (form_,)})
    assert apart.sources == ()


def test_code_models_and_imports_answer_unknown() -> None:
    """What no data rules made has no margin, and the reason is told."""
    by_code = decided({"score": 1}, [Rule("yes", lambda facts: facts["score"] > 0)], "no")
    assert by_code is not None
    found = margin_of(by_code)
    assert found.outcome == UNKNOWN
    assert "is a predicate in the agent's code" in found.sentence
    from woodrat.runs import steps

    imported = steps.part_of("run.decided", 1, {"stage": "risk", "chosen": "high", "facts": {"score": 1}})
    assert isinstance(imported, Decision)
    assert margin_of(imported).sentence == "unknown: it was decided without a rule, and no rules are on record"


def test_hidden_facts_answer_unknown() -> None:
    """A margin does not tell what a fact that was hidden might have been."""
    from woodrat.runs import steps

    rule = {"chosen": "no", "matched": True, "when": {"ssn": {"eq": "1"}}, "conditions": []}
    body = {"stage": "s", "chosen": "no", "rules": [rule], "untried": [], "facts": {"ssn": "[REDACTED]"}}
    decision = steps.part_of("run.decided", 1, body)
    assert isinstance(decision, Decision)
    assert margin_of(decision).sentence == "unknown: ssn was hidden or cut in the record"


def test_a_search_that_is_cut_off_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound on the work is part of the answer, and nothing is claimed of facts that were not tried."""
    names = [f"fact{number}" for number in range(14)]
    rules = [Rule("no", {name: {"lt": 5}}) for name in names]
    decision = decided({**dict.fromkeys(names, 1), "name": "Ana"}, rules, "yes")
    assert decision is not None
    found = margin_of(decision)
    assert (found.outcome, found.complete) == (UNKNOWN, False)
    assert found.sentence == "unknown: the search was cut off after 200000 comparisons"
    assert found.without_effect == ("name",)


def _broken(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    if fault == "bounds":
        true = value_classes._bounds

        def bounds(run: Any) -> Any:
            return {{"gte": "gt", "lte": "lt"}.get(op, op): operand for op, operand in true(run).items()}

        monkeypatch.setattr(value_classes, "_bounds", bounds)
    elif fault == "joined":
        monkeypatch.setattr(flip_search, "_joined", lambda blocks: blocks[:1])
    elif fault == "undecided":
        monkeypatch.setattr(flip_search, "_UNDECIDED", None)
    elif fault == "size":
        monkeypatch.setattr(flip_search, "combinations", lambda keys, size: [tuple(keys)])
    elif fault == "default":
        monkeypatch.setattr(flip_search._Search, "_otherwise", lambda self: self._decision.otherwise)
    else:
        monkeypatch.setattr(value_classes, "_none_of", lambda values: {})


@pytest.mark.parametrize("fault", ["bounds", "joined", "undecided", "size", "default", "none_of"])
def test_planted_faults_are_noticed(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """A search that is wrong in one place does not pass for brute force."""
    _broken(monkeypatch, fault)

    @settings(max_examples=400, database=None, phases=[Phase.generate])
    @given(decisions(("x", "y"), SMALL))
    def law(decision: Decision | None) -> None:
        assume(decision is not None)
        assert decision is not None
        check_margin(decision, ("x", "y"), SMALL.domain)

    with pytest.raises((AssertionError, ExceptionGroup)):
        law()
