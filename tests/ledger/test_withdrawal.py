"""After a retraction the state is what a whole fold gives, from a state that was kept before what it withdraws."""

from __future__ import annotations

import random
from typing import Any

import pytest

from woodrat.canon.ids import Ref
from woodrat.engines.records import Kept
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import withdrawal
from woodrat.ledger.own_policy import registry
from woodrat.ledger.read import Reader
from woodrat.state.asof import AsOf
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import THING, fold_at, ledger_on, same_state

REF = Ref("thing", "1")


@pytest.mark.parametrize("seed", range(6))
def test_state_after_retractions_is_that_of_a_fold(seed: int) -> None:
    """Whatever is retracted, and however often, every moment reads as a whole fold of it does."""
    chance = random.Random(seed)
    engine, clock = InMemoryEngine(), FixedClock()
    ledgers = [ledger_on(engine, agent=agent, clock=clock) for agent in ("ada", "bob", "cyd")]
    ledgers[0].schemas.register(THING)
    told: list[str] = []
    for number in range(60):
        ledger = chance.choice(ledgers)
        roll = chance.random()
        if told and roll < 0.25:
            recent = told[-6:] if chance.random() < 0.7 else told
            ledger.retract(chance.sample(recent, min(len(recent), chance.choice((1, 1, 2)))))
        elif len(told) > 8 and roll < 0.35:
            ledger.correct(REF, {"city": chance.choice("abc")})
        else:
            record = {"entity_type": "thing", "id": "1", "city": chance.choice("abc"), "rank": chance.randrange(3)}
            record |= {"tags": [chance.choice("xyz")], "total": chance.randrange(4), "log": [number]}
            kept = {"entity_type", "id", *chance.sample(sorted(record), 3)}
            about: dict[str, Any] = (
                {"observed_at": f"2025-01-0{chance.randrange(1, 9)}T00:00:00Z"} if chance.random() < 0.3 else {}
            )
            fields = {name: value for name, value in record.items() if name in kept}
            told += ledger.store(fields, **about).observations
    with engine.view(ledgers[0].tenant) as view:
        for position in range(view.head().position + 1):
            reader = Reader(view, AsOf(position), registry(()))
            rules = reader.rules("thing")
            assert same_state(reader.state(REF), fold_at(view, [REF], rules, position), rules), position
    assert ledgers[0].verify(deep=True).sound
    assert ledgers[0].rebuild().agreed


def test_a_retraction_folds_what_came_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """A retraction of something recent begins at a state kept shortly before it, and not at the first observation."""
    ledger = ledger_on(InMemoryEngine())
    ledger.schemas.register(THING)
    reports = [ledger.store({"entity_type": "thing", "id": "1", "city": "abc"[n % 3], "tags": [n]}) for n in range(50)]
    folded: list[int] = []
    base_of = withdrawal._base

    def noted(*given: Any) -> Kept | None:
        base = base_of(*given)
        folded.append(-1 if base is None else base.position)
        return base

    monkeypatch.setattr(withdrawal, "_base", noted)
    report = ledger.retract(reports[-3].observations[0])
    assert folded
    assert all(reports[-3].position - 9 <= position < reports[-3].position for position in folded)
    assert report.changes[0].fields
    assert ledger.rebuild().agreed


@pytest.mark.parametrize("seed", range(12))
def test_state_without_old_assertions_is_that_of_a_fold(seed: int) -> None:
    """What is withdrawn counts no longer, whether or not it was anybody's latest word."""
    chance = random.Random(seed)
    engine, clock = InMemoryEngine(), FixedClock()
    ledgers = [ledger_on(engine, agent=agent, clock=clock) for agent in ("ada", "bob")]
    ref = Ref("memo", "1")
    told: list[str] = []
    for _ in range(40):
        ledger = chance.choice(ledgers)
        if told and chance.random() < 0.4:
            ledger.retract(chance.sample(told, min(len(told), chance.choice((1, 1, 2)))))
        else:
            fields = {name: chance.choice("aaab") for name in chance.sample("xyz", 2)}
            about: dict[str, Any] = {"observed_at": "2025-01-01T00:00:00Z"} if chance.random() < 0.3 else {}
            told += ledger.store({"entity_type": "memo", "id": "1", **fields}, **about).observations
    with engine.view(ledgers[0].tenant) as view:
        for position in range(view.head().position + 1):
            reader = Reader(view, AsOf(position), registry(()))
            rules = reader.rules("memo")
            assert same_state(reader.state(ref), fold_at(view, [ref], rules, position), rules), position
    assert ledgers[0].verify(deep=True).sound
