"""Planted faults: with one check taken out of the verifier an attack goes through, so the attacks test the checks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.verifier.both import NODE, Case, essence, javascript, python
from tests.verifier.forgeries import FORGERIES
from tests.verifier.forging import RUN, Forger, decision, one_read, rule, stated

from woodrat.canon import form
from woodrat.verifier import woodrat_verify

CLAIM = {"kind": "run", "run": RUN}


def hidden_read() -> tuple[Forger, bytes]:
    forger = Forger()
    one_read(forger, actual=700, shown="[REDACTED]")
    return forger, forger.capsule(CLAIM)


def no_rules() -> tuple[Forger, bytes]:
    forger = Forger()
    forger.step("run.started", 0)
    forger.step("run.decided", 1, **decision(chosen="approved", default=False))
    forger.ended(2)
    return forger, forger.capsule(CLAIM)


def false_condition() -> tuple[Forger, bytes]:
    forger = Forger()
    forger.step("run.started", 0)
    forger.step("run.decided", 1, **decision(rule(stated("x", "lt", 600, 700, True))))
    forger.ended(2)
    return forger, forger.capsule(CLAIM)


def missing_step() -> tuple[Forger, bytes]:
    forger = Forger()
    at = one_read(forger)
    return forger, forger.capsule(CLAIM, [position for position in range(at["ended"] + 1) if position != at["decided"]])


def missing_schema() -> tuple[Forger, bytes]:
    forger = Forger()
    at = one_read(forger)
    return forger, forger.capsule(CLAIM, range(1, at["ended"] + 1))


def surplus() -> tuple[Forger, bytes]:
    forger = Forger()
    one_read(forger)
    forger.observe({"score": 1}, "loan/99")
    return forger, forger.capsule(CLAIM)


def foreign() -> tuple[Forger, bytes]:
    forger = Forger()
    one_read(forger)
    forger.step("run.noted", 9, agent="web", text="me too")
    return forger, forger.capsule(CLAIM)


def misfit() -> tuple[Forger, bytes]:
    forger = Forger()
    at, _ = forger.schema()
    forger.observe({"score": 500})
    winner, _ = forger.observe({"score": 580}, at="2026-02-01T00:00:00.000000Z")
    claim = {"kind": "field", "entity": "loan/42", "field": "score", "value": 500, "misfits": [winner], "schema": at}
    return forger, forger.capsule(claim)


def blank() -> tuple[Forger, bytes]:
    forger = Forger()
    at = one_read(forger)
    judged = forger.step("run.judged", 4, verdict="bad")
    document: Any = form.parse(forger.capsule(CLAIM))
    document["entries"][judged].update(nonce=None, body=None)
    assert at["ended"] + 1 == judged
    return forger, form.serialise(document) + b"\n"


def nothing(*given: Any) -> None:
    """Check nothing."""


FAULTS: dict[str, tuple[Callable[[], tuple[Forger, bytes]], str, Any]] = {
    "R8, D10: values are not compared": (hidden_read, "compare", lambda *given: set()),
    "D8: what was chosen is not compared": (no_rules, "check_chosen", nothing),
    "D5: conditions are not evaluated": (false_condition, "evaluate", lambda *given: woodrat_verify.NOT_EVALUATED),
    "S5: steps are not counted": (missing_step, "check_numbers", nothing),
    "R4: the schema is whichever is there": (missing_schema, "read_schema", nothing),
    "B5: anything may be in a capsule": (surplus, "Capsule.check_places", nothing),
    "S2: anybody's entries count": (foreign, "check_steps", nothing),
    "F5: claims are set aside at will": (misfit, "check_misfits", nothing),
    "B2: a blank entry needs no erasure": (blank, "Capsule.check_blanks", nothing),
}


LIES: dict[str, tuple[str, str]] = {
    "G11: writes may overlap": ("write_overlaps_others", "check_writes"),
    "G11: the clock may go back": ("clock_goes_back", "check_writes"),
    "S6: a number is taken twice": ("two_decisions_of_one_number", "check_unique"),
    "S6: a step beyond the end": ("step_beyond_the_end", "check_unique"),
    "S7: numbers in any order": ("steps_numbered_out_of_order", "check_ascending"),
    "S10: nothing was found, with fields": ("nothing_found_and_fields", "check_found"),
    "R10: the loser beside the winner": ("loser_cited_beside_the_winner", "check_merge"),
    "R10: the loser beside its correction": ("loser_cited_beside_its_correction", "check_merge"),
    "S8: skipped is not named": ("call_left_out_as_skipped", "skipped"),
    "S9: imported is not named": ("evidence_after_the_decision_and_merged_in", "imported"),
    "R10: winner is not named": ("losers_left_out", "winner"),
    "D10: decision is not named": ("decision_of_a_run_that_is_not_there", "decision"),
    "D10: recall is not named": ("recall_of_a_run_that_is_not_there", "recall"),
}
"""A forgery, and the check of the verifier, or the part it names, without which the forgery is proven."""


@pytest.fixture(scope="module")
def lies() -> dict[str, tuple[Case, dict[str, Any]]]:
    """Return a forged file for each, with the verdict of JavaScript where there is a node."""
    made = {forgery.name: forgery.make for forgery in FORGERIES}
    wanted = sorted({lie for lie, _ in LIES.values()})
    files = [made[lie](Random(f"{lie} 0")) for lie in wanted]
    cases = [Case(lie, file.data, file.key) for lie, file in zip(wanted, files, strict=True)]
    others = python(cases) if NODE is None else javascript(cases)
    return {case.name: (case, other) for case, other in zip(cases, others, strict=True)}


@pytest.mark.parametrize("fault", LIES)
def test_a_lie_is_proven_where_its_check_is_gone(
    fault: str, lies: dict[str, tuple[Case, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the one check Python says that the lie is proven, and differs from JavaScript, which has it still."""
    lie, check = LIES[fault]
    case, other = lies[lie]
    assert essence(python([case])[0]) == essence(other)
    if hasattr(woodrat_verify, check):
        monkeypatch.setattr(woodrat_verify, check, nothing)
    else:
        lower = woodrat_verify.Report.lower
        monkeypatch.setattr(
            woodrat_verify.Report, "lower", lambda self, part, *at: None if part == check else lower(self, part, *at)
        )
    found = python([case])[0]
    assert found["verdict"] == "proven", found
    assert essence(found) != essence(other)


@pytest.mark.parametrize("fault", FAULTS)
def test_an_attack_goes_through_where_its_check_is_gone(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier as it is refuses the file; without the one check it does not."""
    attack, name, instead = FAULTS[fault]
    forger, data = attack()
    case = Case(fault, data, str(forger.keys.verifier))
    assert python([case])[0]["verdict"] == "refused"
    owner: Any = woodrat_verify
    for part in name.split(".")[:-1]:
        owner = getattr(owner, part)
    monkeypatch.setattr(owner, name.rpartition(".")[2], instead)
    found = python([case])[0]
    assert found["verdict"] == "proven", found
