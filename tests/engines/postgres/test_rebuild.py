"""Rebuilding on PostgreSQL: in few questions, and whatever differs is named."""

from __future__ import annotations

import random

import psycopg
import pytest
from tests.differential.histories import AGENTS, TENANTS, History, outcome
from tests.round_trips import RoundTrips

from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.ledger.rebuild import Rebuilt
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

DAMAGE = (
    """UPDATE entity SET state = decode(replace(encode(state, 'escape'), 'Lisbon', 'Prague'), 'escape')
       WHERE key = '3'""",
    """UPDATE kept SET state = decode(replace(encode(state, 'escape'), 'Lisbon', 'Prague'), 'escape')
       WHERE entity = (SELECT id FROM entity WHERE key = '4')""",
    "UPDATE entity SET state = state || '\\x00' WHERE key = '5'",
    "UPDATE entity SET state_at = NULL WHERE key = '6'",
    "DELETE FROM kept WHERE entity = (SELECT id FROM entity WHERE key = '7')",
    "UPDATE entity SET state = NULL, state_at = NULL WHERE key = '8'",
    "DELETE FROM entity WHERE key = '9'",
    "UPDATE entity SET key = 'other' WHERE key = '10'",
)
"""Of twelve things, what differs from the log; what is only missing (7 and 8) is no disagreement."""


def damaged(engine: PostgresEngine, tenant: str) -> None:
    """Store long histories, with a large collection, and damage what was derived from them."""
    ledger = ledger_on(engine, tenant)
    for round in range(20):
        ledger.store([{"entity_type": "thing", "id": str(n), "city": "Lisbon", "n": round} for n in range(12)])
    schema = {"title": "list", "properties": {"tags": {"type": "array", "x-woodrat-merge": "union"}}}
    ledger.schemas.register(schema)
    ledger.store({"entity_type": "list", "id": "long", "tags": [f"tag {n}" for n in range(2_000)]})
    with psycopg.connect(engine.url) as connection:
        connection.execute("SET search_path = woodrat")
        for statement in DAMAGE:
            assert connection.execute(statement).rowcount > 0, statement
        connection.execute("UPDATE head SET changes = changes + 1")


def rebuilt(engine: PostgresEngine, tenant: str) -> Rebuilt:
    """Rebuild, and see that nothing is left to repair."""
    made = ledger_on(engine, tenant).rebuild()
    again = ledger_on(engine, tenant).rebuild()
    assert again.agreed
    assert again.fingerprint == made.fingerprint
    return made


def test_what_is_repaired_is_what_differs(postgres_engine: PostgresEngine) -> None:
    """Every entity whose row or states differ from the log is named, and none of which a state is only missing."""
    damaged(postgres_engine, "t")
    names = ("10", "3", "4", "5", "6", "9", "other")
    assert rebuilt(postgres_engine, "t").repaired == tuple(f"thing/{name}" for name in names)


@pytest.mark.parametrize("seed", range(2))
def test_a_sound_history_agrees(postgres_engine: PostgresEngine, seed: int) -> None:
    """After a random history a rebuild finds nothing to repair."""
    chance, clock = random.Random(seed), FixedClock(seed=str(seed))
    history = History(chance)
    for _ in range(120):
        name, call = history.next()
        history.learn(name, outcome(call, ledger_on(postgres_engine, TENANTS[0], chance.choice(AGENTS), clock))[0])
    rebuilt = ledger_on(postgres_engine, TENANTS[0], clock=clock).rebuild()
    assert rebuilt.agreed, rebuilt.repaired


def test_entities_are_compared_many_at_a_time(postgres_engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild asks no question for each entity, whether states are kept along its history or not."""
    trips = RoundTrips().install(monkeypatch)
    counts = []
    for entities, rounds in ((50, 20), (500, 2), (1_000, 1)):
        ledger = ledger_on(postgres_engine, str(entities))
        for round in range(rounds):
            ledger.store([{"entity_type": "thing", "id": str(n), "n": round} for n in range(entities)])
        trips.clear()
        assert ledger.rebuild().agreed
        counts.append(len(trips.taken()))
    assert max(counts) < min(counts) + 20, counts
    assert max(counts) < 120, counts
