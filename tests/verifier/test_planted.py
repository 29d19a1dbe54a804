"""Planted faults: with one check taken out of the verifier an attack goes through, so the attacks test the checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.verifier.both import Case, python
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
