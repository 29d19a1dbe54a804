"""Honest and forged capsules, told by stories that know the verdict: both verifiers give that one.

250 honest and 750 forged capsules in ordinary runs, 1,000 and 3,000 with WOODRAT_LAWS=full; all from fixed seeds. That
each forgery meets the check it is meant for is shown by test_planted.py, which takes checks away.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.golden.make_capsules import signed_ledger
from tests.verifier import forge, forgeries
from tests.verifier.both import Case, verdicts

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.proofs.verbs.keys import make
from woodrat.testing.clock import FixedClock

pytestmark = pytest.mark.laws

FULL = os.environ.get("WOODRAT_LAWS") == "full"
HONEST = 1000 if FULL else 250
FORGED = 3000 if FULL else 750
TIMES = 14 if FULL else 3
REAL = 60 if FULL else 6
COMPARED = ("verdict", "code", "record", "parts")


def asked(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Return the verdicts of both verifiers, which must be the same."""
    return [{member: whole[member] for member in COMPARED} for whole in verdicts(cases)]


def expected(parts: list[str]) -> dict[str, Any]:
    """Return the verdict that these parts lower to."""
    word = "consistent" if parts else "proven"
    return {"verdict": word, "code": word, "record": None, "parts": parts}


def is_as_expected(verdict: dict[str, Any], wanted: str) -> bool:
    """Whether a forgery is refused with its code, or lowered to its part."""
    if wanted.startswith("+"):
        return verdict["verdict"] == "consistent" and wanted[1:] in [part.split(" ")[0] for part in verdict["parts"]]
    return bool(verdict["verdict"] == "refused" and verdict["code"] == wanted)


def test_honest_capsules_have_the_verdict_their_story_knows() -> None:
    """Every honest capsule is proven, or consistent with exactly the parts that its story hides, cuts or erases."""
    stories = [forge.honest(Random(f"honest {seed}")) for seed in range(HONEST)]
    cases = [Case(f"{at} {s.told}", forge.seal(s.document()), forge.KEY) for at, s in enumerate(stories)]
    found = asked(cases)
    wrong = [
        (case.name, verdict, story.parts())
        for case, verdict, story in zip(cases, found, stories, strict=True)
        if verdict != expected(story.parts())
    ]
    assert wrong == []
    assert len({verdict["verdict"] for verdict in found}) == 2


def test_forged_capsules_are_refused_or_lowered() -> None:
    """Every named forgery gets its code or part, and no mutated capsule is proven unless no byte of it changed."""
    made = [
        (forgery, forgery.make(Random(f"{forgery.name} {seed}")))
        for forgery in forgeries.FORGERIES
        for seed in range(TIMES)
    ]
    cases = [Case(f"{f.item} {f.name}", lie.data, lie.key, lie.against) for f, lie in made]
    found = asked(cases)
    wrong = [
        (case.name, verdict, lie.expected)
        for case, verdict, (_, lie) in zip(cases, found, made, strict=True)
        if not is_as_expected(verdict, lie.expected)
    ]
    assert wrong == []
    mutated, honest = [], []
    for seed in range(FORGED - len(made)):
        spoil = (forgeries.mutated_document, forgeries.mutated_body)[seed % 2]
        mutated.append(Case(f"{spoil.__name__} {seed}", spoil(Random(f"mutated {seed}")), forge.KEY))
        honest.append(forge.seal(forge.honest(Random(f"mutated {seed}")).document()))
    after = asked(mutated)
    assert [
        case.name
        for case, verdict, before in zip(mutated, after, honest, strict=True)
        if "document" in case.name and verdict["verdict"] == "proven" and case.data != before
    ] == []


def test_every_item_of_the_page_is_attacked() -> None:
    """No item of the page is without a forgery, but for those that only lower what honest stories show."""
    items = [*(f"G{n}" for n in range(1, 12)), "B1", "B2", "B4", "B5", "O1", *(f"F{n}" for n in range(1, 7))]
    items += [*(f"S{n}" for n in range(1, 11)), *(f"R{n}" for n in range(1, 11)), *(f"D{n}" for n in range(1, 11))]
    assert set(items) <= {forgery.item for forgery in forgeries.FORGERIES}


def ledger_capsules(rng: Random, folder: Path) -> tuple[str, dict[str, bytes]]:
    """Tell a random story to a real ledger, and return its key and capsules."""
    made = make(folder, FixedClock(seed="key"), "example.com/forgeries")
    ledger = signed_ledger(InMemoryEngine(), made.keys, tenant="forgeries")
    if rng.random() < 0.8:
        ledger.schemas.register(forge.SCHEMA | {"title": "loan", "properties": LEDGER_FIELDS})
    ids: list[str] = []
    for _ in range(rng.randrange(2, 6)):
        record = {"entity_type": "loan", "id": "42", "score": rng.randrange(300, 800), "flags": [rng.choice("abc")]}
        by = ledger.as_agent(rng.choice(["crm", "web"]))
        ids += by.store(record | {"paid": rng.choice([1, "0.5"])}, priority=rng.randrange(3)).observations
    if rng.random() < 0.4:
        ledger.retract(rng.choice(ids[1:]), reason="a typo")
    if rng.random() < 0.4:
        ledger.correct("loan/42", {"score": 555}, reason="by hand")
    hide = ["score"] if rng.random() < 0.3 else []
    with ledger.run("Approve?", subject="loan/42", inputs={"amount": rng.randrange(9)}, redact=hide) as run:
        loan = run.show("loan/42")
        rules = [
            woodrat.Rule("no", {"score": {"lt": rng.randrange(300, 800)}, "amount": {"gte": 3}}, label="Low"),
            woodrat.Rule("yes", {"score": {"gte": rng.randrange(300, 800)}}),
        ]
        run.decide("risk", {"score": loan.fact("score"), "amount": run.input("amount")}, rules, default="manual")
        run.select(
            "tell", {"amount": run.input("amount")}, [woodrat.Rule("mail", {"amount": {"gt": 4}})], default=["none"]
        )
        run.store({"entity_type": "memo", "id": "1", "text": "done"})
    asked_for = [ids[0], run.id, f"{run.id}#risk", f"{run.id}#tell", *(f"loan/42#{name}" for name in LEDGER_FIELDS)]
    files = {what: ledger.proofs.capsule(what).to_bytes() for what in asked_for}
    if rng.random() < 0.5:
        ledger.erase("loan/42#score", reason="a court said so")
        files |= {
            f"{what} erased": ledger.proofs.capsule(what).to_bytes()
            for what in (run.id, f"{run.id}#risk", "loan/42#flags")
        }
    return str(made.verifier), files


LEDGER_FIELDS: dict[str, Any] = {
    "id": {"type": "string"},
    "score": {"type": "integer", "x-woodrat-merge": "highest_priority"},
    "flags": {"type": "array", "x-woodrat-merge": "union"},
    "paid": {"x-woodrat-merge": "sum"},
}


def test_capsules_of_a_real_ledger_hold(tmp_path: Path) -> None:
    """What a ledger proves of random stories is proven or consistent."""
    cases = []
    for seed in range(REAL):
        key, files = ledger_capsules(Random(f"ledger {seed}"), tmp_path / str(seed))
        cases += [Case(f"{seed} {what}", data, key) for what, data in files.items()]
    found = asked(cases)
    wrong = [(case.name, v) for case, v in zip(cases, found, strict=True) if v["verdict"] == "refused"]
    assert wrong == []
