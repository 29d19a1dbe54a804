"""Rules: refused when they could never be answered, evaluated exactly, everything looked at kept as evidence."""

from __future__ import annotations

import copy
import json
import pickle
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.test_values import ANYTHING, JSON

from woodrat.canon import form
from woodrat.errors import Refused
from woodrat.runs import rules as rule
from woodrat.runs import values
from woodrat.runs.facts import Facts, at_pointer, facts_of, pointer_to
from woodrat.runs.operators import has_mark
from woodrat.runs.predicates import CONDITIONS_MAX
from woodrat.runs.rules import Rule, Verdict, as_rules, body_of, evaluate, rules_from_json
from woodrat.runs.steps import SELECT, Decision, part_of
from woodrat.runs.values import REDACTED
from woodrat.state.fact import Fact

SCORES = [Rule("approved", {"score": {"gt": 700}}), Rule("review", {"score": {"gt": 600}})]


def unlinked(name: str, value: object) -> None:
    """Nothing was read."""


def tried(verdict: Verdict) -> list[bool]:
    """Return of each rule tried whether it matched."""
    return [each.matched for each in verdict.rules]


def holds(actual: object, op: str, operand: object) -> bool:
    """Return whether one condition holds, and see that it has no error."""
    verdict = evaluate({"x": actual}, [Rule("yes", {"x": {op: operand}})])
    assert verdict.conditions[0].error is None, verdict.conditions[0].error
    return verdict.matched == (0,)


def problem(actual: object, op: str, operand: object) -> str:
    """Return why a condition could not be compared."""
    rules = [Rule("yes", {"x": {op: operand}}), Rule("next", {"x": {"exists": True}})]
    with pytest.raises(Refused, match="rule 1 is unknown: x cannot be compared"):
        evaluate({"x": actual}, rules)
    verdict = evaluate({"x": actual}, rules, on_missing="skip")
    assert verdict.chosen == "next"
    assert verdict.unknown == (0,)
    assert verdict.conditions[0].result is None
    return str(verdict.conditions[0].error)


def refused(*given: Any, **named: Any) -> list[tuple[str, str, str]]:
    """Return why a rule is refused when it is created: where, what, and what to do."""
    with pytest.raises(Refused) as refusal:
        Rule(*given, **named)
    assert str(refusal.value).endswith("The rule was not created.")
    return [(fault.path, fault.problem, fault.remedy) for fault in refusal.value.faults]


@pytest.mark.parametrize(
    ("score", "chosen", "matches"),
    [(750, "approved", [True]), (650, "review", [False, True]), (500, "rejected", [False, False])],
)
def test_rules_are_tried_up_to_the_match(score: int, chosen: str, matches: list[bool]) -> None:
    """The first rule that matches is taken; those before it are kept as unmatched, those after it are not tried."""
    verdict = evaluate({"score": score}, SCORES, "rejected")
    assert verdict.chosen == chosen
    assert tried(verdict) == matches
    assert verdict.default is (chosen == "rejected")


def test_all_conditions_of_a_rule_are_kept() -> None:
    """A rule of two conditions, one of which does not hold, is unmatched, and the other is kept as true."""
    rules = [Rule("approved", {"creditScore": {"gt": 700}, "dti": {"lt": 0.43}})]
    verdict = evaluate({"creditScore": 750, "dti": 0.5}, rules, "review")
    assert verdict.chosen == "review"
    assert [(c.key, c.op, c.operand, c.actual, c.result) for c in verdict.conditions] == [
        ("creditScore", "gt", 700, 750, True),
        ("dti", "lt", 0.43, 0.5, False),
    ]


def test_several_operators_on_one_fact_must_all_hold() -> None:
    """Operators of one fact are joined by and."""
    between = [Rule("middle", {"score": {"gte": 600, "lt": 700}})]
    assert [evaluate({"score": score}, between).chosen for score in (599, 600, 699, 700)] == [
        None,
        "middle",
        "middle",
        None,
    ]


def _generates(view: Any) -> Any:
    yield view.score > 5


async def _asks_later(view: Any) -> bool:
    return True


async def _generates_later(view: Any) -> Any:
    yield True


_HOLDS_ITSELF: list[Any] = []
_HOLDS_ITSELF.append(_HOLDS_ITSELF)


@pytest.mark.parametrize(
    ("when", "path", "error"),
    [
        ({"score": {"less_than": 600}}, "/when/score/less_than", 'unknown operator "less_than"; use lt, lte, gt, gte'),
        ({"score": {5: 600}}, "/when/score", "unknown operator 5 (number)"),
        ({"score": {"LT": 600}}, "/when/score/LT", 'unknown operator "LT"'),
        ({"a/b": {"<": 6}}, "/when/a~1b/<", 'unknown operator "<"'),
        ({"address": {"city": "Girona"}}, "/when/address/city", 'unknown operator "city"'),
        ({"score": {}}, "/when/score", "there is no operator"),
        ({}, "/when", "the rule has no condition"),
        ("score > 5", "/when", "expected conditions by fact or a predicate"),
        (None, "/when", "expected conditions by fact or a predicate, got null"),
        ([("score", 5)], "/when", "expected conditions by fact or a predicate"),
        ({5: {"lt": 600}}, "/when", "expected the name of a fact, got 5 (number)"),
        ({"k" * 5_000: 1}, "/when", "cannot be the name of a fact"),
        ({"\ud800": 1}, "/when", "cannot be the name of a fact"),
        ({"score": {"in": list(range(1_001))}}, "/when/score/in", "a list of 1001 values"),
        ({"score": {"not_in": tuple(range(1_001))}}, "/when/score/not_in", "a list of 1001 values"),
        ({"score": {"in": 5}}, "/when/score/in", "in got 5 (number)"),
        ({"score": {"in": "580"}}, "/when/score/in", 'in got "580" (text)'),
        ({"score": {"not_in": {"a": 1}}}, "/when/score/not_in", "not_in got 1 key (object)"),
        ({"score": {"lt": None}}, "/when/score/lt", "lt got null"),
        ({"score": {"gt": True}}, "/when/score/gt", "gt got true (boolean)"),
        ({"score": {"gte": [1]}}, "/when/score/gte", "gte got 1 element (array)"),
        ({"score": {"lte": {"a": 1}}}, "/when/score/lte", "lte got 1 key (object)"),
        ({"score": {"lt": float("nan")}}, "/when/score/lt", "which JSON cannot express"),
        ({"score": {"lt": 2**60}}, "/when/score/lt", "which JSON cannot express"),
        ({"score": {"eq": b"bytes"}}, "/when/score/eq", "which JSON cannot express"),
        ({"score": {"eq": [1, {"a": b"bytes"}]}}, "/when/score/eq", "which JSON cannot express"),
        ({"score": object()}, "/when/score", "which JSON cannot express"),
        ({"score": {"in": [1, object()]}}, "/when/score/in", "which JSON cannot express"),
        ({"score": {"ne": _HOLDS_ITSELF}}, "/when/score/ne", "which JSON cannot express"),
        ({"name": {"matches": "("}}, "/when/name/matches", 'matches got "(" (text): at character 1 of the pattern'),
        ({"name": {"matches": 5}}, "/when/name/matches", "matches got 5 (number)"),
        ({"score": {"exists": 1}}, "/when/score/exists", "exists got 1 (number)"),
        ({"score": {"exists": "false"}}, "/when/score/exists", 'exists got "false" (text)'),
        (_asks_later, "/when", "has to be awaited"),
        (_generates, "/when", "this one is a generator"),
        (_generates_later, "/when", "has to be awaited"),
        (dict, "/when", "a class is not a predicate"),
    ],
)
def test_a_rule_that_no_facts_could_answer_is_refused_when_it_is_created(when: Any, path: str, error: str) -> None:
    """An unknown operator, an impossible operand and a wrong type are named at creation, in the library and as JSON."""
    ((where, what, remedy),) = refused("never", when)
    assert where == path
    assert error in what
    assert remedy
    if not callable(when) and not form.faults({"when": when}):
        with pytest.raises(Refused) as refusal:
            rules_from_json([{"chosen": "never", "when": when}])
        assert [fault.path for fault in refusal.value.faults] == [f"/rules/0{path}"]


def test_all_that_is_wrong_with_a_rule_is_named_at_once() -> None:
    """Every fault of one rule is told, and which operator may be meant."""
    found = refused(
        "x", {"a": {"less_than": 1, "regexp": "b", "$gte": 3, "nearby": 4}, "b": {"in": 5}, "c": {}}, label=5
    )
    assert [(path, remedy.split(" ")[-1]) for path, _, remedy in found[:3]] == [
        ("/when/a/less_than", "lt?"),
        ("/when/a/regexp", "matches?"),
        ("/when/a/$gte", "gte?"),
    ]
    assert found[3] == (
        "/when/a/nearby",
        'unknown operator "nearby"; use lt, lte, gt, gte, eq, ne, in, not_in, matches, exists',
        'To compare with an object, write {"eq": {…}}.',
    )
    assert [path for path, _, _ in found[4:]] == ["/when/b/in", "/when/c", "/label"]


def test_the_rule_that_approved_in_silence_is_refused() -> None:
    """A slip in an operator never falls through to the default."""
    with pytest.raises(Refused, match=r'unknown operator "less_than"; use .*Did you mean lt\?'):
        evaluate({"score": 580}, [Rule("rejected", {"score": {"less_than": 600}})], "approved")


def test_what_becomes_of_the_conditions_later_changes_no_rule() -> None:
    """A rule keeps its own copy; neither who gave it nor who was shown it can change it."""
    when: Any = {"score": {"lt": 600, "in": [580, 590]}}
    made = Rule("rejected", when)
    when["score"]["less_than"] = when["score"].pop("lt")
    when["score"]["in"].clear()
    verdict = evaluate({"score": 580}, [made])
    verdict.to_json()["rules"][0]["when"]["score"]["in"].clear()
    made.to_json()["when"]["score"].clear()
    assert evaluate({"score": 580}, [made]).chosen == "rejected"
    assert pickle.loads(pickle.dumps(made)) == made == copy.deepcopy(made)
    # Whoever changes it all the same gets no silent answer.
    for broken in ({"less_than": 600}, {}, {"exists": 1}, {"in": 5}, {"matches": "("}):
        made.when["score"] = broken
        with pytest.raises(Refused, match="rule 1 is unknown"):
            evaluate({"score": 580}, [made], "approved")
    made.when.clear()
    with pytest.raises(Refused, match="the rule has no condition"):
        evaluate({"score": 580}, [made], "approved")


def _raises(view: Any) -> bool:
    raise RuntimeError(f"no {view['score']}")


def _forgets_to_answer(view: Any) -> None:
    view.score > 5  # noqa: B015


@pytest.mark.parametrize(
    ("when", "error", "why"),
    [
        ({"nothing": {"lt": 1}}, "there is no such fact", "there is no fact nothing"),
        ({"nothing": {"ne": 1}}, "there is no such fact", "there is no fact nothing"),
        ({"nothing": {"not_in": [1]}}, "there is no such fact", "there is no fact nothing"),
        ({"nothing": None}, "there is no such fact", "there is no fact nothing"),
        ({"score": {"lt": "600"}}, "a number and text have no order", "score cannot be compared: a number and text"),
        ({"none": {"lt": 600}}, "null and a number have no order", "none cannot be compared: null and a number"),
        ({"score": {"matches": "5"}}, "a pattern is found in text, not in a number", "score cannot be compared"),
        ({"odd": {"eq": 1}}, "what is no JSON", "odd cannot be compared: what is no JSON"),
        ({"odds": {"ne": [1]}}, "what is no JSON", "odds cannot be compared: what is no JSON"),
        (_raises, "no 580", "RuntimeError: no 580"),
        (_forgets_to_answer, "it answered nothing", "it answered nothing"),
        (lambda view: view.get("nothing"), "it answered nothing", "there is no fact nothing"),
        (lambda view: view["nothing"] > 5, "nothing", "there is no fact nothing"),
        (lambda view: view.nothing > 5, "there is no such fact: nothing", "there is no fact nothing"),
        (lambda view: view["score"] > "a", "not supported between", "TypeError: "),
        (lambda view: _asks_later(view), "awaited", "has to be awaited"),
    ],
)
def test_a_rule_that_cannot_be_answered_is_unknown(when: Any, error: str, why: str) -> None:
    """Nothing is decided by an unknown rule before the first match; skipped on request, it is kept with its reason."""
    facts = {"score": 580, "name": "ann", "odd": object(), "odds": [object()], "none": None}
    rules = [Rule("never", when, label="Odd"), Rule("next", {"score": 580})]
    for mode in ("decide", SELECT):
        with pytest.raises(Refused) as refusal:
            evaluate(facts, rules, "default", mode, stage="risk")
        (fault,) = refusal.value.faults
        assert fault.path == "decision risk"
        assert fault.problem.startswith("rule Odd is unknown: ")
        assert why in fault.problem
        assert "on_missing" in fault.remedy
        assert str(refusal.value).endswith("Nothing was decided.")
        verdict = evaluate(facts, rules, "default", mode, on_missing="skip")
        assert verdict.chosen == ("next" if mode == "decide" else ["next"])
        assert tried(verdict) == [False, True]
        assert verdict.unknown == (0,)
        said = json.dumps(verdict.to_json()["rules"][0])
        assert error in said
        assert '"error"' in said
        body: Any = body_of(verdict, facts_of(facts, unlinked))
        assert body["on_missing"] == "skip"
        assert body["rules"][0]["unknown"] is True
        assert "unknown" not in body["rules"][1]
    # After the first match it is not tried.
    assert evaluate(facts, rules[::-1]).chosen == "next"


def test_a_rule_with_a_false_condition_is_not_unknown() -> None:
    """One condition that is false settles a rule, whatever else of it is missing."""
    rules = [Rule("a", {"nothing": {"lt": 1}, "score": {"lt": 500}, "none": {"gt": 1}})]
    verdict = evaluate({"score": 580, "none": None}, rules, "default")
    assert (verdict.chosen, verdict.unknown) == ("default", ())
    assert [condition.result for condition in verdict.conditions] == [None, False, None]
    body: Any = body_of(verdict, facts_of({"score": 580, "none": None}, unlinked))
    assert ["result" in condition for condition in body["rules"][0]["conditions"]] == [False, True, False]
    assert "on_missing" not in body


def test_every_unknown_rule_before_the_match_is_named() -> None:
    """Nobody has to ask twice to learn of the second missing fact."""
    rules = [Rule("a", {"a": 1, "b": {"lt": 1}}), Rule("b", {"score": 1}), Rule("c", {"c": 1}), Rule("d", {"score": 2})]
    with pytest.raises(Refused) as refusal:
        evaluate({"score": 2}, [*rules, Rule("e", {"e": 1})])
    assert [fault.problem for fault in refusal.value.faults] == [
        "rule 1 is unknown: there is no fact a",
        "rule 1 is unknown: there is no fact b",
        "rule 3 is unknown: there is no fact c",
    ]


def test_exists_is_never_unknown() -> None:
    """Whether there is a fact can always be told."""
    for there in (True, False):
        verdict = evaluate({}, [Rule("yes", {"x": {"exists": there}})], "no")
        assert verdict.chosen == ("no" if there else "yes")
        assert verdict.unknown == ()


def test_equality_is_that_of_canonical_json() -> None:
    """1 and 1.0 are one number, true is not 1, text is not a number, and objects are equal whatever their order."""
    assert holds(1, "eq", 1.0)
    assert not holds(True, "eq", 1)
    assert not holds(0, "eq", False)
    assert not holds("1", "eq", 1)
    assert holds({"a": 1, "b": 2}, "eq", {"b": 2, "a": 1.0})
    assert not holds([1, 2], "eq", [2, 1])
    assert holds(None, "eq", None)
    assert holds(1, "ne", True)
    assert holds(1.0, "in", [True, 1])
    assert holds(True, "not_in", [1, "true"])


def test_order_is_within_numbers_and_within_text() -> None:
    """Numbers are compared exactly, text by UTF-8 bytes."""
    assert holds(2**53 - 1, "gt", float(2**53 - 2))
    assert holds(2**53 - 1, "lt", 1e22)
    assert holds(0.1, "gt", 0.09999999999999999)
    assert holds(1, "gte", 1.0)
    assert holds(1, "lte", 1.0)
    assert not holds(1, "lt", 1.0)
    assert holds("Z", "lt", "a")
    assert holds("\uffff", "lt", "\U00010000")  # by UTF-16 code units it would be the other way round
    assert problem([1], "lt", 2) == "an array and a number have no order"
    assert problem({}, "gt", "a") == "an object and text have no order"


def test_existence_is_that_of_the_key() -> None:
    """A null exists; nothing else but `exists` holds for a fact that is not there."""
    assert holds(None, "exists", True)
    assert evaluate({}, [Rule("yes", {"x": {"exists": False}})]).chosen == "yes"
    assert evaluate({}, [Rule("yes", {"x": {"exists": True}})]).chosen is None


def test_patterns_are_searched_for() -> None:
    """`matches` finds a pattern anywhere in a text."""
    assert holds("app-42-followup", "matches", r"\b42\b")
    assert not holds("app-421", "matches", r"\b42\b")
    assert holds("ANN", "matches", "(?i)^ann$")


def test_a_bare_value_means_equal_to_it() -> None:
    """`{"status": "open"}` is `{"status": {"eq": "open"}}`; an object is always operators."""
    assert evaluate({"status": "open"}, [Rule("yes", {"status": "open"})]).chosen == "yes"
    assert evaluate({"tags": ["a"]}, [Rule("yes", {"tags": ["a"]})]).chosen == "yes"
    with pytest.raises(Refused, match="To compare with an object"):
        Rule("yes", {"x": {"a": 1}})
    assert evaluate({"x": {"a": 1}}, [Rule("yes", {"x": {"eq": {"a": 1}}})]).chosen == "yes"


def test_decimals_are_numbers_where_a_double_spells_them() -> None:
    """A decimal from a database is compared as the number it is; one that no double spells is text."""
    assert holds(Decimal("0.43"), "eq", 0.43)
    assert holds(Decimal("600.00"), "lt", 700)
    assert holds(650, "gt", Decimal("600"))
    assert holds(Decimal("600.00"), "in", [Decimal("600"), "x"])
    assert holds(600, "in", (Decimal("600.0"),))
    assert holds(600, "in", {Decimal("600.0"), "x"})
    assert "text" in problem(Decimal("0.12345678901234567890123"), "lt", 1)


def test_evidence_is_what_the_matched_rule_looked_at() -> None:
    """Evidence has each fact of the matched rule, and the threshold where there is exactly one scalar operand."""
    rejected = Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit")
    verdict = evaluate({"creditScore": 580, "name": "ann"}, [rejected])
    assert verdict.rule == "Marginal credit"
    assert verdict.evidence == {"creditScore": 580, "threshold": 600}
    both = evaluate({"a": 1, "b": 2}, [Rule("x", {"a": {"lt": 5}, "b": {"lt": 5}})])
    assert both.evidence == {"a": 1, "b": 2}
    listed = evaluate({"a": 1}, [Rule("x", {"a": {"in": [1, 2]}})])
    assert listed.evidence == {"a": 1}
    own = evaluate({"threshold": 1}, [Rule("x", {"threshold": {"lt": 5}})])
    assert own.evidence == {"threshold": 1}
    assert evaluate({"a": 1}, [Rule("x", {"a": 2})], "default").evidence == {}


def test_select_takes_every_rule_that_matches() -> None:
    """`select` tries all rules and gives a list; without a match, a list of the default, or none."""
    rules = [
        Rule("a", {"x": {"gt": 1}}, label="A"),
        Rule("b", {"x": {"gt": 9}}, label="B"),
        Rule("c", {"x": {"gt": 2}}),
    ]
    verdict = evaluate({"x": 5}, rules, "z", SELECT)
    assert verdict.chosen == ["a", "c"]
    assert verdict.rule == ("A", None)
    assert tried(verdict) == [True, False, True]
    assert evaluate({"x": 0}, rules, "z", SELECT).chosen == ["z"]
    assert evaluate({"x": 0}, rules, None, SELECT).chosen == []


# -- predicates


def test_a_predicates_comparisons_are_conditions() -> None:
    """What a predicate compares is kept with operator and operand, whichever side it stands on."""
    verdict = evaluate(
        {"score": 580, "name": "ann", "rate": 0.5},
        [Rule("x", lambda view: 600 > view.score and view["name"] == "ann" and view.get("rate") <= 0.5)],  # noqa: SIM300
    )
    assert verdict.chosen == "x"
    assert [(c.key, c.op, c.operand, c.actual, c.result) for c in verdict.conditions] == [
        ("score", "lt", 600, 580, True),
        ("name", "eq", "ann", "ann", True),
        ("rate", "lte", 0.5, 0.5, True),
    ]


def test_what_a_predicate_only_looks_at_has_the_answer_of_the_whole() -> None:
    """A fact used in arithmetic, or a container, is kept with its value and the predicate's own result."""
    facts = {"debt": 50, "income": 100, "tags": ["vip"], "open": True}
    rules = [
        Rule("never", lambda view: view.debt / view.income > 0.9 and view.tags),
        Rule("x", lambda view: "vip" in view.tags and view.open),
    ]
    verdict = evaluate(facts, rules)
    assert [(c.key, c.op, c.actual, c.result) for c in verdict.rules[0].conditions] == [
        ("debt", "", 50, False),
        ("income", "", 100, False),
    ]
    assert [(c.key, c.op, c.actual, c.result) for c in verdict.rules[1].conditions] == [
        ("tags", "", ["vip"], True),
        ("open", "", True, True),
    ]


def test_a_predicate_may_ask_what_there_is() -> None:
    """Asking for a fact that is not there is kept, whether by `in`, by `get` or by its name."""
    verdict = evaluate({"a": 1}, [Rule("x", lambda view: "b" not in view and view.get("c") is None and "a" in view)])
    assert verdict.chosen == "x"
    assert [(c.key, c.op, c.result) for c in verdict.conditions] == [
        ("b", "exists", False),
        ("c", "exists", False),
        ("a", "exists", True),
    ]


def test_a_predicate_cannot_change_the_facts() -> None:
    """A container handed to a predicate is a copy, and values work as plain ones do."""

    def meddles(view: Any) -> bool:
        view["tags"].append("new")
        assert {view["name"]: 1}["ann"] == 1
        assert view["name"].upper() + "!" == "ANN!"
        assert json.dumps(view["score"] + 1) == "581"
        assert isinstance(view["score"], int)
        assert sorted(view) == ["name", "score", "tags"]
        return len(view) == 3

    facts = {"tags": ["vip"], "name": "ann", "score": 580}
    verdict = evaluate(facts, [Rule("x", meddles)])
    assert verdict.rules[0].error is None
    assert verdict.chosen == "x"
    assert facts["tags"] == ["vip"]


def test_a_predicate_that_compares_without_end_is_kept_up_to_the_limit() -> None:
    """A predicate in a loop records so many comparisons and no more."""
    verdict = evaluate({"x": 1}, [Rule("x", lambda view: all(view.x < n for n in range(2, 5_000)))])
    assert verdict.chosen == "x"
    assert len(verdict.conditions) == CONDITIONS_MAX


# -- hiding


def test_a_hidden_fact_is_compared_and_not_shown() -> None:
    """A redacted key decides as it is and shows `[REDACTED]`: in conditions, evidence, rules, errors and the entry."""

    def quotes(view: Any) -> bool:
        raise ValueError(f"bad {view['ssn']}")

    rules = [Rule("never", quotes), Rule("known", {"ssn": "123-45-6789", "age": {"gt": 18}})]
    facts = Facts({"ssn": "123-45-6789", "age": 40, "more": {"ssn": "123-45-6789"}}, {}, None)
    with pytest.raises(Refused, match=r"ValueError: \[REDACTED\]"):
        evaluate(facts, rules, hidden=frozenset({"ssn"}))
    verdict = evaluate(facts, rules, hidden=frozenset({"ssn"}), on_missing="skip")
    assert verdict.chosen == "known"
    assert verdict.evidence["ssn"] == REDACTED
    assert verdict.evidence["age"] == 40
    for said in (verdict.to_json(), body_of(verdict, facts, frozenset({"ssn"}))):
        assert "123-45-6789" not in json.dumps(said)
        assert REDACTED in json.dumps(said)


# -- as JSON


def test_rules_have_a_json_form() -> None:
    """Rules as data go to JSON and back; malformed ones are refused with all their faults."""
    given = [{"chosen": "a", "when": {"x": {"lt": 1}}, "label": "A"}, {"chosen": 1, "when": {"x": None}}]
    assert [each.to_json() for each in rules_from_json(given)] == given
    with pytest.raises(Refused) as refusal:
        rules_from_json([{"chosen": "a"}, 5, {"chosen": 1, "when": [], "label": 2, "more": 3}])
    assert [fault.path for fault in refusal.value.faults] == [
        "/rules/0/when",
        "/rules/1",
        "/rules/2/more",
        "/rules/2/when",
        "/rules/2/label",
    ]
    with pytest.raises(Refused, match="expected a list of rules"):
        rules_from_json({})


@pytest.mark.parametrize("given", [5, "rules", {"chosen": 1, "when": {"x": 1}}, [5], None])
def test_rules_that_are_none_are_refused(given: object) -> None:
    """What is no list of rules is the caller's mistake and says so."""
    with pytest.raises(Refused, match="Nothing was decided"):
        rule.as_rules(given)


PLAIN = JSON.filter(lambda value: not isinstance(value, dict) and not has_mark(value))
CONDITIONS = st.one_of(
    st.tuples(st.sampled_from(["eq", "ne"]), JSON.filter(lambda value: not has_mark(value))),
    st.tuples(st.sampled_from(["lt", "lte", "gt", "gte"]), st.one_of(st.integers(-3, 3), st.sampled_from(["a", 0.5]))),
    st.tuples(st.sampled_from(["in", "not_in"]), st.lists(PLAIN, max_size=4)),
    st.tuples(st.just("exists"), st.booleans()),
    st.tuples(st.just("matches"), st.sampled_from(["a", "^a.*", "b|c"])),
)
WHEN = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.one_of(PLAIN, st.lists(CONDITIONS, min_size=1, max_size=3).map(dict)),
    min_size=1,
    max_size=3,
)
RULES = st.lists(st.builds(Rule, JSON, WHEN, st.one_of(st.none(), st.text(max_size=5))), max_size=4)
FACTS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.one_of(JSON, st.integers(-3, 3), st.sampled_from(["a", "abc"])),
    max_size=4,
)


@given(FACTS, RULES, st.sampled_from(["decide", SELECT]))
def test_data_rules_evaluated_again_give_the_same(facts: dict[str, Any], rules: list[Rule], mode: str) -> None:
    """From what an entry keeps of facts and rules, the decision comes out again exactly."""
    given_facts = facts_of(facts, unlinked)
    verdict = evaluate(given_facts, rules, "default", mode, on_missing="skip")
    body = form.decode(values.fit(body_of(verdict, given_facts)))
    again = [Rule(each["chosen"], each["when"], each.get("label")) for each in body["rules"]]
    second = evaluate(body["facts"], again, "default", mode, on_missing="skip")
    assert form.same(values.plain(second.chosen), body["chosen"])
    assert tried(second) == [each["matched"] for each in body["rules"]]
    assert second.matched == verdict.matched
    results = [sorted((c["key"], c["op"], str(c.get("result"))) for c in each["conditions"]) for each in body["rules"]]
    assert results == [sorted((c.key, c.op, str(c.result)) for c in each.conditions) for each in second.rules]
    assert second.unknown == tuple(n for n, each in enumerate(body["rules"]) if each.get("unknown"))


@given(FACTS, RULES)
def test_the_record_of_a_decision_has_the_same_evidence(facts: dict[str, Any], rules: list[Rule]) -> None:
    """A verdict and the run record made from its entry agree on what was chosen, why, and on what evidence."""
    given_facts = facts_of(facts, unlinked)
    verdict = evaluate(given_facts, rules, "default", on_missing="skip")
    body = form.decode(values.fit({"stage": "s", **body_of(verdict, given_facts)}))
    decision = part_of("run.decided", 0, body)
    assert isinstance(decision, Decision)
    assert decision.default is verdict.default
    assert form.same(decision.evidence, verdict.evidence)
    assert form.same(decision.chosen, values.plain(verdict.chosen))
    assert decision.rule == verdict.rule
    assert [each.unknown for each in decision.rules] == [each.unknown for each in verdict.rules]


@given(
    st.dictionaries(st.text(max_size=3), ANYTHING, max_size=3),
    st.lists(st.tuples(ANYTHING, ANYTHING, ANYTHING), max_size=3),
)
def test_whatever_a_rule_is_made_of_it_is_refused_or_there_is_a_verdict(
    facts: dict[str, Any], given_rules: list[tuple[Any, Any, Any]]
) -> None:
    """Nothing but a refusal keeps a rule from being created, and what is created is evaluated and recorded."""
    rules: list[Rule] = []
    for made_of in given_rules:
        with suppress(Refused):
            rules.append(Rule(*made_of))
    given_facts = facts_of(facts, unlinked)
    verdict = evaluate(given_facts, rules, "default", SELECT, on_missing="skip")
    form.encode(form.decode(values.fit(body_of(verdict, given_facts))))
    json.dumps(verdict.to_json())


def test_very_many_rules_and_conditions_are_kept_up_to_their_limits() -> None:
    """Beyond their number rules and conditions are left out, the entry says how many, and the match is always there."""
    rules = [Rule(str(n), {"x": n, "y": {"exists": True}}) for n in range(1_500)]
    facts = facts_of({"x": 1_499, "y": 1}, unlinked)
    verdict = evaluate(facts, rules)
    assert verdict.chosen == "1499"
    body = body_of(verdict, facts)
    kept = body["rules"]
    assert isinstance(kept, list)
    assert len(kept) == rule.RULES_MAX + 1
    assert isinstance(kept[-1], dict)
    assert kept[-1]["matched"] is True
    assert body["omitted"] == {"rules": 499, "conditions": 1_002}
    assert len(form.encode(body)) < form.BODY_BYTES_MAX


def test_large_values_are_bounded_in_the_entry_alone() -> None:
    """A decision on values beyond their bound is made on the whole values; the entry shows that they were cut."""
    long = "x" * 100_000
    facts = facts_of({"text": long, "many": list(range(1_000))}, unlinked)
    verdict = evaluate(facts, [Rule("yes", {"text": long})])
    assert verdict.chosen == "yes"
    body = body_of(verdict, facts)
    assert form.encode(body).count(values.TRUNCATED.encode()) >= 3
    assert len(form.encode(body)) < 10_000


def test_ten_thousand_long_operands_fit_one_entry() -> None:
    """An entry stays within its limit however much its rules compare with."""
    rules = [Rule(n, {f"k{n}": "v" * 4_000}) for n in range(1_000)]
    facts = facts_of({f"k{n}": "w" * 4_000 for n in range(1_000)}, unlinked)
    assert len(values.fit(body_of(evaluate(facts, rules), facts))) < form.BODY_BYTES_MAX


# -- facts


def test_facts_come_in_many_shapes() -> None:
    """A mapping, facts by themselves, one fact, and objects with fields are facts; a number is not."""
    origin = {"kind": "input", "name": "n"}
    assert facts_of({"a": Fact("n", 1, origin)}, unlinked).origin("a") == origin
    assert facts_of([Fact("n", 1, origin), Fact("m", 2, origin)], unlinked).values == {"n": 1, "m": 2}
    assert facts_of(Fact("n", 1, origin), unlinked).values == {"n": 1}
    missing = facts_of({"a": Fact("n", None, origin, missing=True)}, unlinked)
    assert missing.values == {}
    for wrong in (5, "text", None, [1, 2]):
        with pytest.raises(Refused, match="expected facts"):
            facts_of(wrong, unlinked)


def test_pointers_lead_into_results() -> None:
    """A JSON Pointer finds members and elements, and says when it leads nowhere."""
    value: Any = {"a/b": [{"~": 1}], "": 2}
    assert at_pointer(value, "") == (True, value)
    assert at_pointer(value, "/a~1b/0/~0") == (True, 1)
    assert at_pointer(value, "/") == (True, 2)
    assert at_pointer(value, "/a~1b/1") == (False, None)
    assert at_pointer(value, "/a~1b/x") == (False, None)
    assert at_pointer(value, pointer_to("a/b"))[0]
    with pytest.raises(Refused, match="JSON Pointer"):
        at_pointer(value, "a")


@pytest.mark.parametrize(
    ("default", "chosen"),
    [(None, []), ("mail", ["mail"]), (["mail", "post"], ["mail", "post"]), ([], []), (("mail",), ["mail"])],
)
def test_the_default_of_a_selection_may_be_a_list(default: Any, chosen: list[str]) -> None:
    """What `select` chooses is a list; a default that is one is taken as it is, also when a run is resumed."""
    assert evaluate({"x": 1}, [Rule("never", {"x": 2})], default, SELECT).chosen == chosen
    assert evaluate({"x": 2}, [Rule("sms", {"x": 2})], default, SELECT).chosen == ["sms"]


def test_rules_that_are_none_are_refused_all_at_once() -> None:
    """What is no rule is named by its place, a predicate in an object too, and nothing is decided."""
    given = [Rule("a", {"x": 1}), ("b", {"x": 1}), {"chosen": "c", "when": lambda facts: True}, {"when": {"x": 1}}, "d"]
    with pytest.raises(Refused) as refusal:
        as_rules(given)
    assert [fault.path for fault in refusal.value.faults] == [
        "/rules/1",
        "/rules/2/when",
        "/rules/3/chosen",
        "/rules/4",
    ]
    assert "woodrat.Rule" in str(refusal.value)
    assert str(refusal.value).endswith("Nothing was decided.")


def test_the_conditions_of_the_match_are_recorded_first() -> None:
    """However many rules are tried before it, the rule that matches keeps its conditions, and so its evidence."""
    rules = [Rule(number, {"x": {"gt": number + 10}}) for number in range(1_500)]
    verdict = evaluate({"x": 5}, [*rules, Rule("hit", {"x": 5, "y": {"exists": False}})])
    body: Any = body_of(verdict, facts_of({"x": 5}, unlinked))
    assert body["omitted"] == {"rules": 500, "conditions": 2}
    assert [condition["key"] for condition in body["rules"][-1]["conditions"]] == ["x", "y"]
    assert sum(len(each["conditions"]) for each in body["rules"]) == CONDITIONS_MAX
    made = part_of("run.decided", 0, {**body, "run": "run_x", "step": 1, "span": "s", "stage": "s"})
    assert isinstance(made, Decision)
    assert made.evidence == {"x": 5, "y": None, "threshold": 5}


def test_a_value_that_is_pickled_or_copied_is_a_plain_one() -> None:
    """A predicate may hand what it looks at to another process, or copy it."""
    facts = {"name": "Ana", "score": 5, "rate": 0.5}

    def same(view: Any) -> bool:
        kept = [pickle.loads(pickle.dumps(view[name])) for name in facts]
        return [type(value) for value in kept] == [str, int, float] and copy.deepcopy(view["score"]) == 5

    verdict = evaluate(facts, [Rule("yes", same)])
    assert (verdict.chosen, verdict.rules[0].error) == ("yes", None)


def test_members_of_an_origin_that_have_another_shape_are_left_out() -> None:
    """Whatever an entry of another recorder says of an origin, who follows it finds text, numbers and ids alone."""
    told = {"kind": "read", "entity": [1], "field": 5, "position": {}, "observations": 7, "path": [], "more": {"a": 1}}
    condition = {"key": "x", "result": True, "origin": told}
    body: dict[str, Any] = {"run": "r", "span": "s", "stage": "s", "rules": [{"conditions": [condition, {"key": "y"}]}]}
    body["facts_origin"] = {"x": {"kind": "tool", "span": [], "observations": ["obs_a", 5]}, "y": 5}
    made = part_of("run.decided", 0, body)
    assert isinstance(made, Decision)
    first, second = made.conditions
    assert first.origin == {"kind": "read", "observations": [], "more": {"a": 1}}
    assert second.origin == {"kind": "stated"}
    assert made.facts_origin == {"x": {"kind": "tool", "observations": ["obs_a"]}, "y": {"kind": "stated"}}
