"""What is believed now, as plain SQL shows it: the same as the ledger says, for whoever may see it."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest
from tests.differential.histories import AGENTS, TENANTS, History, outcome

from woodrat import Ledger, NotFound
from woodrat.engines.postgres.connection import OWNER, READER
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.ledger import refold
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

Row = tuple[str, str, str, dict[str, Any], dict[str, int] | None, int]


def shown(url: str, tenant: str | None, role: str = READER) -> list[Row]:
    """Return the rows of the view as a role sees them."""
    with psycopg.connect(url) as connection:
        connection.execute(f"SET LOCAL ROLE {role}")
        if tenant is not None:
            connection.execute("SELECT set_config('woodrat.tenant', %s, true)", (tenant,))
        asked = 'SELECT tenant, type, key, fields, more, version FROM woodrat.state ORDER BY type COLLATE "C", key'
        return connection.execute(asked).fetchall()


def believed(ledger: Ledger) -> dict[tuple[str, str], tuple[Any, int]]:
    """Return what the ledger says of every group, under its smallest entity; of what is deleted nothing."""
    with ledger.context.engine.view(ledger.context.tenant) as view:
        refs = view.entities(None, view.head().position)
    found = {}
    for ref in refs:
        try:
            snapshot = ledger.show(str(ref))
        except NotFound:  # nothing live is said of it
            continue
        if not snapshot.deleted:
            found[snapshot.members[0].type, snapshot.members[0].key] = dict(snapshot.fields), snapshot.version
    return found


@pytest.mark.parametrize("seed", range(3))
def test_the_view_says_what_the_ledger_says(postgres_engine: PostgresEngine, seed: int) -> None:
    """After a random history, with groups, deletions and schemas, every row is what `show` answers."""
    chance, clock = random.Random(seed), FixedClock(seed=str(seed))
    histories = {tenant: History(chance) for tenant in TENANTS}
    for number in range(60):
        tenant, agent = chance.choice(TENANTS), chance.choice(AGENTS)
        name, call = histories[tenant].next()
        histories[tenant].learn(name, outcome(call, ledger_on(postgres_engine, tenant, agent, clock))[0])
        if number % 20 == 19:
            for each in dict.fromkeys(TENANTS):
                ledger = ledger_on(postgres_engine, each)
                while refold.step(ledger.context, 1_000):
                    pass
                rows = shown(postgres_engine.url, each)
                assert {tenant for tenant, *_ in rows} <= {each}
                found = {(type, key): (fields, version) for _, type, key, fields, _, version in rows}
                assert found == believed(ledger)
    ledger = ledger_on(postgres_engine, "t")
    before = shown(postgres_engine.url, "t")
    ledger.rebuild()
    assert shown(postgres_engine.url, "t") == before != []


def test_rows_are_those_of_whoever_asks(postgres_engine: PostgresEngine) -> None:
    """Without a tenant there are no rows, under one its own; the owner sees all of them, and hands out one tenant."""
    for tenant in ("a", "b"):
        ledger_on(postgres_engine, tenant).store([{"entity_type": "memo", "id": tenant, "text": 'é\\u0000"', "n": 1.5}])
    fields = {"id": "a", "text": 'é\\u0000"', "n": 1.5}
    assert shown(postgres_engine.url, None) == []
    assert shown(postgres_engine.url, "a") == [("a", "memo", "a", fields, None, 0)]
    assert [row[0] for row in shown(postgres_engine.url, None, OWNER)] == ["a", "b"]
    with psycopg.connect(postgres_engine.url) as connection:
        run = connection.execute
        run("CREATE SCHEMA dashboards AUTHORIZATION woodrat_owner")
        run(f"SET LOCAL ROLE {OWNER}")
        run("CREATE VIEW dashboards.b WITH (security_barrier) AS SELECT * FROM woodrat.state WHERE tenant = 'b'")
        run(f"SELECT set_config('woodrat.tenant', 'a', true), set_config('role', '{OWNER}', true)")
        assert run("SELECT key FROM dashboards.b").fetchall() == [("b",)]
        connection.rollback()


def test_large_collections_are_counted(postgres_engine: PostgresEngine) -> None:
    """A collection whose elements are kept one by one is left out of the fields, and named with how many it has."""
    ledger = ledger_on(postgres_engine, "t")
    ledger.schemas.register({"title": "memo", "properties": {"tags": {"type": "array", "x-woodrat-merge": "union"}}})
    ledger.store({"entity_type": "memo", "id": "1", "tags": [f"t{number}" for number in range(3)]})
    assert shown(postgres_engine.url, "t")[0][3]["tags"] == ["t0", "t1", "t2"]
    ledger.store({"entity_type": "memo", "id": "1", "tags": [f"t{number}" for number in range(2_000)]})
    (row,) = shown(postgres_engine.url, "t")
    assert row[3:] == ({"id": "1"}, {"tags": 2_000}, 2)
    ledger.delete("memo/1")
    assert shown(postgres_engine.url, "t") == []
    ledger.restore("memo/1")
    assert len(shown(postgres_engine.url, "t")) == 1
