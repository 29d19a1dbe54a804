"""Predicates: one language of conditions, as data and as text, with the same answer wherever it is asked."""

from __future__ import annotations

from typing import Any

import pytest

from woodrat.bisect.predicate import (
    UNKNOWN,
    Believed,
    Choice,
    ConditionText,
    EntityConditions,
    FieldRead,
    Predicate,
    parse_condition,
    predicate_from_json,
)
from woodrat.canon.ids import Ref
from woodrat.errors import Refused
from woodrat.records import replace
from woodrat.runs.rules import Rule

LOAN, ANA = Ref("loan", "42"), Ref("contact", "Ana Rivera")
STATE = {
    LOAN: Believed(True, False, {"creditScore": 580, "tags": ["new", "vip"], "list": [1]}, frozenset({"tags"})),
    ANA: Believed(True, True, {}),
}


def look(ref: Ref) -> Believed:
    """Answer for a state with one loan and one deleted contact."""
    return STATE.get(ref, UNKNOWN)


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        (EntityConditions(LOAN, {"creditScore": {"lt": 600}}), True),
        (EntityConditions(LOAN, {"creditScore": {"gte": 500, "lt": 580}}), False),
        (EntityConditions(LOAN, {"creditScore": 580}), True),
        (EntityConditions(LOAN, {"status": {"exists": False}}), True),
        (EntityConditions(LOAN, {"status": {"ne": "open"}}), False),
        (EntityConditions(LOAN, {}, (("creditScore", 580),)), True),
        (EntityConditions(LOAN, {}, (("creditScore", 580.5),)), False),
        (EntityConditions(LOAN, {}, (("tags", "vip"), ("tags", "new"))), True),
        (EntityConditions(LOAN, {}, (("tags", ["new", "vip"]),)), True),
        (EntityConditions(LOAN, {}, (("list", 1),)), False),
        (EntityConditions(LOAN, {}, (), True, False), True),
        (EntityConditions(ANA, {}, (), None, True), True),
        (EntityConditions(Ref("loan", "43"), {}, (), False), True),
        (EntityConditions(Ref("loan", "43"), {}, (), True), False),
    ],
)
def test_an_entity_is_asked_for_values_conditions_and_being(asked: EntityConditions, holds: bool) -> None:
    """Conditions are those of rules, values those of queries: a collection holds a value, a plain list is one."""
    predicate = Predicate((asked,))
    assert predicate.holds(look) is holds
    assert predicate_from_json(predicate.document()) == predicate


def test_all_that_is_asked_must_hold() -> None:
    """Several entities are a conjunction, told in words."""
    low, gone = (
        EntityConditions(LOAN, {"creditScore": {"lt": 600}}),
        EntityConditions(ANA, {}, (("city", "Girona"),), None, True),
    )
    assert Predicate((low,)).holds(look)
    assert not Predicate((low, gone)).holds(look)
    assert Predicate((low, gone)).text == (
        "loan/42#creditScore lt 600 and contact/Ana Rivera is deleted and contact/Ana Rivera#city = Girona"
    )
    assert Predicate((low, gone)).looked == {LOAN: ("creditScore",), ANA: ("city",)}


def test_a_decision_is_made_on_state_and_on_what_was_given() -> None:
    """Facts come from state where they were read, from the record where they were not; the branch is compared."""
    rules = (Rule("rejected", {"score": {"lt": 600}, "amount": {"gt": 100}}, "Low"), Rule("approved", {"score": 700}))
    choice = Choice(
        rules, "rejected", {"score": FieldRead(LOAN, "creditScore")}, {"amount": 500}, "manual", stage="risk"
    )
    predicate = Predicate((), choice)
    assert predicate.holds(look)
    assert not Predicate((), replace(choice, chosen="manual")).holds(lambda _: UNKNOWN), "nothing is decided there"
    assert choice.undecided(lambda _: UNKNOWN) == (
        "rule Low is unknown: there is no fact score; rule 2 is unknown: there is no fact score"
    )
    assert choice.undecided(look) is None
    skipping = replace(choice, chosen="manual", on_missing="skip")
    assert skipping.choose(lambda _: UNKNOWN) == "manual"
    assert predicate_from_json(Predicate((), skipping).document()) == Predicate((), skipping)
    assert predicate.text == "risk chooses rejected"
    assert predicate.looked == {LOAN: ("creditScore",)}
    assert predicate_from_json(predicate.document()) == predicate


def test_a_decision_stands_in_the_file_of_a_reduction_as_ever() -> None:
    """The file's words are those of its format: no label where a rule has none, `on_missing` only to skip."""
    rules = (Rule("rejected", {"score": {"lt": 600}}, "Low"), Rule("approved", {"score": 700}))
    choice = Choice(rules, "rejected", {"score": FieldRead(LOAN, "creditScore")}, {"amount": 500}, "manual")
    written = {
        "stage": None,
        "mode": "decide",
        "rules": [
            {"chosen": "rejected", "when": {"score": {"lt": 600}}, "label": "Low"},
            {"chosen": "approved", "when": {"score": 700}},
        ],
        "default": "manual",
        "facts": {"amount": 500},
        "reads": {"score": {"entity": "loan/42", "field": "creditScore"}},
        "chosen": "rejected",
    }
    assert Predicate((), choice).document() == {"decision": written}
    skipping = replace(choice, on_missing="skip")
    assert Predicate((), skipping).document() == {"decision": {**written, "on_missing": "skip"}}


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("city=Girona", ConditionText(None, "city", None, "Girona")),
        ("score=580", ConditionText(None, "score", None, 580)),
        ("first name=Ana", ConditionText(None, "first name", None, "Ana")),
        ("title=risk lt 5", ConditionText(None, "title", None, "risk lt 5")),
        ("creditScore lt 600", ConditionText(None, "creditScore", "lt", 600)),
        ("tags in [1, 2]", ConditionText(None, "tags", "in", [1, 2])),
        ("tags not_in [1]", ConditionText(None, "tags", "not_in", [1])),
        ("name matches ^A.*a$", ConditionText(None, "name", "matches", "^A.*a$")),
        ("loan/42#creditScore lte 600", ConditionText("loan/42", "creditScore", "lte", 600)),
        ("contact/Ana in Rivera#city=Girona", ConditionText("contact/Ana in Rivera", "city", None, "Girona")),
        ("issue/repo#12#state=open", ConditionText("issue/repo#12", "state", None, "open")),
        ("paint/1#colour=#fff", ConditionText("paint/1", "colour", None, "#fff")),
        ("creditScore", None),
        ("=5", None),
        ("creditScore <= 600", None),
        ("creditScore>=600", None),
        ("creditScore == 600", None),
        ("creditScore!=600", None),
        ("", None),
    ],
)
def test_conditions_are_written_as_text(text: str, condition: ConditionText | None) -> None:
    """`field=value` as a query has it, `field operator value` as a rule has it, and either after `REF#`."""
    assert parse_condition(text) == condition


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "expected an object"),
        ({}, "it has no condition"),
        ({"entities": []}, "it has no condition"),
        ({"entities": [{"entity": "loan/42"}]}, "it has no condition on the entity"),
        ({"entities": [{"entity": "loan/42", "when": {"a": {"near": 1}}}]}, 'unknown operator "near"'),
        ({"entities": [{"entity": "loan/42", "when": {"a": {}}}]}, "there is no operator"),
        ({"entities": [{"entity": "loan/42", "when": {"a": {"exists": 1}}}]}, "exists got 1"),
        ({"entities": [{"entity": "loan/42", "when": {"a": {"in": 1}}}]}, "in got 1"),
        ({"entities": [{"entity": "loan/42", "when": {"a": {"lt": [1]}}}]}, "lt got 1 element"),
        ({"entities": [{"entity": "loan/42", "when": {"a": {"matches": "("}}}]}, "/when/a"),
        ({"entities": [{"entity": "loan/42", "where": {"a": 1}}]}, "expected values by field"),
        ({"entities": [{"entity": "loan", "exists": True}]}, "/entities/0/entity"),
        ({"entities": [{"entity": "loan/42", "deleted": 1}]}, "got 1 (number)"),
        ({"sum": 1}, "unknown part of a predicate"),
        ({"decision": {"rules": [], "chosen": 1, "reads": {}}}, "0 rules"),
        ({"decision": {"rules": [{"chosen": 1, "when": {}}], "chosen": 1, "reads": {}}}, "the rule has no condition"),
        ({"decision": {"rules": [{"chosen": 1, "when": {"a": 1}}], "reads": {}}}, "/decision/chosen: missing"),
        ({"decision": {"rules": [{"chosen": 1, "when": {"a": 1}}], "chosen": 1, "reads": {"a": 1}}}, "/reads/a"),
    ],
)
def test_what_is_no_predicate_is_refused(value: Any, problem: str) -> None:
    """What a rule would record as an error is refused here, with its place: nobody is there to read the record."""
    with pytest.raises(Refused) as refused:
        predicate_from_json(value)
    assert problem in str(refused.value)
    assert str(refused.value).endswith("Nothing was read.")


def test_all_faults_come_at_once() -> None:
    """Every part that is wrong is named."""
    wrong = {"entities": [{"entity": "loan", "when": {"a": {"near": 1}, "b": {"in": 1}}, "exists": 1}], "sum": 1}
    with pytest.raises(Refused) as refused:
        predicate_from_json(wrong)
    assert len(refused.value.faults) == 5
