"""Receipts: a repeated call is answered as it was the first time, whatever has been written since."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
from tests.differential.histories import AGENTS, History, Verb

from woodrat import Ledger, Report, WoodratError
from woodrat.canon import form
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.testing.ledgers import EARLY, LATE, ledger_on

KEYED = ("store", "correct", "retract", "delete", "restore", "relate", "merge", "split")


def kept(engine: Engine, key: str) -> Any:
    """Return what is kept with an idempotency key."""
    with engine.view("t") as view:  # type: ignore[arg-type]
        receipt = view.receipt("a", key)
        assert receipt is not None
        return form.decode(receipt.report)


def test_what_the_log_says_is_not_kept() -> None:
    """A plain write keeps its positions alone; what was known already and hints are kept, for they were of then."""
    engine = InMemoryEngine()
    ledger = ledger_on(engine)
    one, two = ({"entity_type": "thing", "id": key, "n": 1} for key in "ab")
    ledger.store([one, two], observed_at=EARLY, idempotency_key="plain")
    assert kept(engine, "plain") == {"positions": [0, 1]}
    report = ledger.store([one, {**one, "n": 2}], observed_at=EARLY, idempotency_key="known")
    assert kept(engine, "known") == {
        "positions": [2, 2],
        "known": list(report.known),
        "observations": list(report.observations),
    }
    ledger.delete("thing/a")
    hinted = ledger.store({**one, "n": 3}, observed_at=LATE, idempotency_key="hinted")
    assert kept(engine, "hinted") == {"positions": [4, 4], "hints": list(hinted.hints)}
    registered = ledger.schemas.register({"title": "other"}, idempotency_key="schema")
    assert kept(engine, "schema") == {"positions": [5, 5], "id": registered.id}


def _call(name: str, given: dict[str, Any], ledger: Ledger) -> Any:
    return getattr(ledger, name)(**given)


def repeatable(history: History, key: str) -> tuple[str, Verb]:
    """Return a write of a history, under a key; and its name."""
    while True:
        before = len(history.calls)
        name, _ = history.next()
        if name in KEYED and len(history.calls) > before:
            given = {part: value for part, value in history.calls[-1][1].items() if part != "dry_run"}
            return name, partial(_call, name, {**given, "idempotency_key": key})


@pytest.mark.parametrize("seed", range(6))
def test_a_repeated_call_is_answered_as_at_first(seed: int) -> None:
    """Whatever came after, schemas, merges and retractions too: every report is the same again, part by part."""
    chance = random.Random(seed)
    engine, history = InMemoryEngine(), History(chance)
    first: list[tuple[Ledger, Verb, Report]] = []
    for number in range(90):
        ledger = ledger_on(engine, agent=chance.choice(AGENTS))
        is_keyed = chance.random() < 0.85
        name, call = repeatable(history, f"{number}") if is_keyed else history.next()
        try:
            report = call(ledger)
        except WoodratError:
            continue
        history.learn(name, report)
        if isinstance(report, Report) and report.positions and not (report.repeated or report.dry_run):
            report.to_json()  # it is worked out when it is looked at
            if is_keyed:
                first.append((ledger, call, report))
    assert len(first) > 10
    position = ledger.position
    assert [call(ledger) for ledger, call, _ in first] == [report.again() for _, _, report in first]
    assert ledger.position == position
