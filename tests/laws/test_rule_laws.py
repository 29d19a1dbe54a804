"""Rules come to what docs/formats/runs.md says they come to; an evaluator that guesses is found out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.laws import three_valued
from tests.laws.three_valued import MISSING, Outcome

from woodrat import Refused, Rule
from woodrat.canon import form
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.explain import remake
from woodrat.records import replace
from woodrat.runs import operators, steps
from woodrat.runs import rules as rules_module
from woodrat.runs import values as run_values
from woodrat.runs.facts import facts_of
from woodrat.runs.rules import body_of, evaluate
from woodrat.runs.steps import Decision
from woodrat.testing.ledgers import ledger_on

pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800)]

PLANTED_EXAMPLES = 500
"""How many cases a planted fault may hide from."""

SCALARS = st.one_of(st.integers(-2, 3), st.sampled_from([0.5, 2.0, "a", "ab", "b", "", None, True, False]))
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.sampled_from("ab"), SCALARS, max_size=2))
ORDERED = st.one_of(st.integers(-2, 3), st.sampled_from([0.5, 2.0, "a", "ab", ""]))
CONDITIONS = st.one_of(
    st.tuples(st.sampled_from(["eq", "ne"]), VALUES),
    st.tuples(st.sampled_from(["lt", "lte", "gt", "gte"]), ORDERED),
    st.tuples(st.sampled_from(["in", "not_in"]), st.lists(VALUES, max_size=3)),
    st.tuples(st.just("exists"), st.booleans()),
    st.tuples(st.just("matches"), st.sampled_from(["a", "ab", "b"])),
)
WANTED = st.one_of(
    st.lists(CONDITIONS, min_size=1, max_size=2).map(dict), VALUES.filter(lambda value: not isinstance(value, dict))
)
WHEN = st.dictionaries(st.sampled_from(["x", "y", "z"]), WANTED, min_size=1, max_size=2)
RULES = st.lists(st.tuples(st.sampled_from(["p", "q", "r"]), WHEN), max_size=3)
FACTS = st.dictionaries(st.sampled_from(["x", "y", "z"]), VALUES, max_size=3)
CHANGES = st.dictionaries(st.sampled_from(["x", "y", "z"]), st.one_of(VALUES, st.just(MISSING)), max_size=2)
MODES = st.sampled_from(["decide", "select"])
ON_MISSING = st.sampled_from(["raise", "skip"])
DEFAULTS = st.sampled_from([None, "p", "d", ["d", "e"]])
LACKS = re.compile(r"rule (\d+) is unknown: (?:there is no fact (\w)|(\w) cannot be compared)")


def outcome(facts: dict[str, Any], rules: list[Rule], default: Any, mode: str, on_missing: str) -> Outcome:
    """Return what the package says a decision comes to."""
    try:
        verdict = evaluate(facts, rules, default, mode, on_missing=on_missing)
    except Refused as refusal:
        lacks = [LACKS.match(fault.problem) for fault in refusal.faults]
        found = {(int(told[1]) - 1, told[2] or told[3]) for told in lacks if told is not None}
        return Outcome(None, (), (), frozenset(found))
    return Outcome(verdict.chosen, verdict.matched, verdict.unknown, None)


def law(examples: int | None = None) -> Callable[[], None]:
    """Return the law: what rules come to is what the page says, and so it is when a record of them is made again."""

    @given(FACTS, CHANGES, RULES, DEFAULTS, MODES, ON_MISSING)
    def holds(
        facts: dict[str, Any],
        changes: dict[str, Any],
        told: list[tuple[Any, dict[str, Any]]],
        default: Any,
        mode: str,
        on_missing: str,
    ) -> None:
        rules = [Rule(chosen, when) for chosen, when in told]
        wanted = three_valued.decision(facts, told, default, mode, on_missing)
        assert outcome(facts, rules, default, mode, on_missing) == wanted
        if wanted.failed is not None:
            return
        made = recorded(facts, rules, default, mode, on_missing)
        assert tuple(n for n, rule in enumerate(made.rules) if rule.matched) == wanted.matched
        assert tuple(n for n, rule in enumerate(made.rules) if rule.unknown) == wanted.unknown
        for number, rule in enumerate(made.rules):
            results = sorted((condition.key, str(condition.result)) for condition in rule.conditions)
            assert results == sorted((key, str(held)) for key, held in three_valued.conditions(told[number][1], facts))
        # Made again on other facts, it comes to what it comes to on them, and what could not be decided is unknown.
        later = {key: value for key, value in {**facts, **changes}.items() if value is not MISSING}
        remade = remake.Remade(made).by(later, changes.keys(), {})
        then = three_valued.decision(later, told, default, mode, on_missing)
        if then.failed is None:
            assert remade.outcome != remake.UNKNOWN
            assert form.same(remade.chosen, then.chosen)
        else:
            assert remade.outcome == remake.UNKNOWN
            assert any(f" {fact}" in remade.reason for _, fact in then.failed)

    if examples is None:
        return holds
    few = settings(
        max_examples=examples,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    return few(holds)


def recorded(facts: dict[str, Any], rules: list[Rule], default: Any, mode: str, on_missing: str) -> Decision:
    """Return a decision as it is read from its entry."""
    given_facts = facts_of(facts, lambda name, value: None)
    verdict = evaluate(given_facts, rules, default, mode, on_missing=on_missing)
    body = form.decode(run_values.fit({"stage": "s", **body_of(verdict, given_facts)}))
    made = steps.part_of("run.decided", 0, body)
    assert isinstance(made, Decision)
    return made


def test_rules_come_to_what_the_page_says() -> None:
    """Matched, not matched or unknown, and failing where a rule is unknown: as a second reading of the page has it."""
    law()()


# Planted faults


def missing_is_false(values: Any, key: str, op: str, operand: Any) -> tuple[bool | None, str | None]:
    """Answer as evaluators once did: what is missing does not hold."""
    return (False, "there is no such fact") if key not in values and op != "exists" else HOLDS(values, key, op, operand)


def uncomparable_is_false(values: Any, key: str, op: str, operand: Any) -> tuple[bool | None, str | None]:
    """Take for false what cannot be compared."""
    held, error = HOLDS(values, key, op, operand)
    return (False if held is None and key in values else held), error


def ne_of_nothing_holds(values: Any, key: str, op: str, operand: Any) -> tuple[bool | None, str | None]:
    """Take a missing fact for one that is not equal."""
    return (True, None) if op in ("ne", "not_in") and key not in values else HOLDS(values, key, op, operand)


def exists_may_be_unknown(values: Any, key: str, op: str, operand: Any) -> tuple[bool | None, str | None]:
    """Say of `exists`, too, that it is unknown where there is no fact."""
    return (None, "there is no such fact") if op == "exists" and key not in values else HOLDS(values, key, op, operand)


def skips_in_silence(verdict: Any) -> None:
    """Skip a rule that is unknown without being asked to."""


def unknown_beats_false(rule: Rule, facts: Any, hidden: Any) -> Any:
    """Call a rule unknown although one of its conditions is false."""
    tried = TRY(rule, facts, hidden)
    return replace(tried, unknown=any(condition.result is None for condition in tried.conditions))


def unknown_matches(rule: Rule, facts: Any, hidden: Any) -> Any:
    """Let a rule match that nothing speaks against."""
    tried = TRY(rule, facts, hidden)
    return replace(tried, matched=tried.matched or tried.unknown, unknown=False)


HOLDS, TRY = operators.holds, rules_module._try


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (rules_module, "holds", missing_is_false),
        (rules_module, "holds", uncomparable_is_false),
        (rules_module, "holds", ne_of_nothing_holds),
        (rules_module, "holds", exists_may_be_unknown),
        (rules_module, "refusal_of", skips_in_silence),
        (rules_module, "_try", unknown_beats_false),
        (rules_module, "_try", unknown_matches),
        (remake, "holds", missing_is_false),
        (remake, "holds", uncomparable_is_false),
        (remake, "SKIP", None),
    ],
)
def test_a_planted_evaluator_is_refuted(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, fault: Callable[..., Any] | None
) -> None:
    """An evaluator that guesses, or passes over what it does not know, is found out by the law."""
    monkeypatch.setattr(module, name, fault)
    with pytest.raises(AssertionError):
        law(PLANTED_EXAMPLES)()


def test_what_refutes_planted_evaluators_passes_the_real_one() -> None:
    """The same cases have nothing to say against the evaluator as it is."""
    law(PLANTED_EXAMPLES)()


# In a run


@settings(max_examples=40)
@given(FACTS, RULES, MODES, ON_MISSING)
def test_a_run_names_every_fact_that_its_rules_did_not_get(
    facts: dict[str, Any], told: list[tuple[Any, dict[str, Any]]], mode: str, on_missing: str
) -> None:
    """Whatever a decision comes to, the run's problems and its narrative name each fact that a rule did not get."""
    ledger = ledger_on(InMemoryEngine())
    wanted = three_valued.decision(facts, told, "d", mode, on_missing)
    rules = [Rule(chosen, when) for chosen, when in told]
    run = ledger.run("Which?")
    failed = False
    with run:
        try:
            getattr(run, mode)("which", facts, rules, "d", on_missing=on_missing)
        except Refused:
            failed = True
    assert failed is (wanted.failed is not None)
    record = ledger.runs.show(run.id)
    assert len(record.decisions) == (0 if failed else 1)
    tried = wanted.matched[0] + 1 if mode == "decide" and wanted.matched else len(told)
    lacked = wanted.failed or {
        (number, fact)
        for number in range(tried)
        for fact, held in three_valued.conditions(told[number][1], facts)
        if held is None
    }
    said = "\n".join(record.problems)
    for number, fact in lacked:
        assert re.search(rf"rule {number + 1} [^;\n]*\b{fact}\b", said)
        assert re.search(rf"rule {number + 1} [^;\n]*\b{fact}\b", record.narrative)
    assert bool(record.problems) is bool(lacked)
    assert [str(problem) for problem in run.problems] == list(record.noted_problems) == list(record.problems)
