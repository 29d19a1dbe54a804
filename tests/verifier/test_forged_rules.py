"""Rules under three values, as an operator who holds the signing key writes them: what does not hold is not proven."""

from __future__ import annotations

from typing import Any

import pytest
from tests.verifier.forging import RUN, Forger, decision, one_read, rule, stated


def refused(found: dict[str, Any]) -> tuple[str, str]:
    """Return code and record of a refusal."""
    assert found["verdict"] == "refused", found["says"]
    return found["code"], found["record"]


def test_an_honest_decision_is_proven() -> None:
    """What the forgeries below change one thing about is proven as it stands."""
    forger = Forger()
    one_read(forger)
    assert forger.verdict()["verdict"] == "proven"
    assert forger.verdict({"kind": "decision", "run": RUN, "stage": "s"})["verdict"] == "proven"


def unknown(key: str, op: str, operand: Any, **more: Any) -> dict[str, Any]:
    """Return a condition whose fact is missing or cannot be compared."""
    condition = {"key": key, "op": op, "operand": operand, "origin": {"kind": "stated"}, "error": "no such fact"}
    return {**condition, **more}


def decided(forger: Forger, body: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict on a run that decides once."""
    forger.step("run.started", 0)
    forger.step("run.decided", 1, **body)
    forger.ended(2)
    return forger.verdict()


def test_an_unknown_rule_needs_leave_to_be_passed_over() -> None:
    """A rule with a missing fact and no false condition is unknown, and only `on_missing` lets a decision go on."""
    passed = {**rule(unknown("x", "lt", 600)), "unknown": True}
    taken = {**rule(stated("y", "eq", 1, 1, True)), "chosen": "b"}
    assert decided(Forger(), decision(passed, taken, on_missing="skip"))["verdict"] == "proven"
    assert refused(decided(Forger(), decision(passed, taken))) == ("decision", "entry 1")
    false = {**rule(unknown("x", "lt", 600), stated("y", "eq", 2, 1, False))}
    assert decided(Forger(), decision(false, taken))["verdict"] == "proven"
    assert refused(decided(Forger(), decision({**false, "unknown": True}, taken))) == ("decision", "entry 1")


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        (unknown("x", "lt", 600, actual="580"), "proven"),
        (unknown("x", "in", 600, actual="580"), "proven"),
        (stated("x", "lt", 600, "580", True), "refused"),
        (stated("x", "less_than", 600, 580, True), "refused"),
        (unknown("x", "lt", 600, actual=580), "refused"),
        (unknown("x", "exists", True), "refused"),
        ({**unknown("x", "exists", True), "result": True}, "refused"),
        (unknown("x", "exists", 1, actual=1), "refused"),
    ],
)
def test_conditions_come_out_as_they_are_recorded(condition: dict[str, Any], verdict: str) -> None:
    """A condition that cannot be compared is unknown, never true or false; `exists` is never unknown."""
    tried = rule(condition)
    if "result" not in condition:
        tried["unknown"] = True
    found = decided(Forger(), decision(tried, chosen="no", on_missing="skip"))
    assert found["verdict"] == verdict, found["says"]


def test_a_fact_that_is_there_is_not_said_to_be_missing() -> None:
    """A condition without a value is refused where its origin has one."""
    forger = Forger()
    origin = {"kind": "input", "name": "x"}
    forger.step("run.started", 0, inputs={"x": 580})
    tried = {**rule(unknown("x", "lt", 600, origin=origin)), "unknown": True}
    at = forger.step("run.decided", 1, **decision(tried, chosen="approved", on_missing="skip"))
    forger.ended(2)
    assert refused(forger.verdict()) == ("evidence", f"entry {at}")


def test_models_patterns_and_code_are_never_proven() -> None:
    """What is not evaluated is named: a choice without rules, a pattern, a predicate."""
    choice = {"stage": "s", "mode": "decide", "chosen": "x", "default": False}
    pattern = decision(rule(stated("x", "matches", "^c", "calm", True)))
    code = decision({"chosen": "yes", "predicate": "agents.angry", "matched": True, "conditions": []})
    for body, part in ((choice, "choice 1"), (pattern, "matches 1"), (code, "predicate 1")):
        found = decided(Forger(), body)
        assert (found["verdict"], found["parts"]) == ("consistent", [part])
