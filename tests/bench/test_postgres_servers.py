"""Several servers on one PostgreSQL database, as the bench measures them; no figure is judged here."""

from __future__ import annotations

from bench import postgres_servers

import woodrat


def test_two_servers_store_for_their_tenants(postgres_url: str) -> None:
    """Each server stores records of its own tenant over HTTP, and what the database worked is shared out to calls."""
    worked = iter((1.0, 3.0))
    (row,) = postgres_servers.rows(postgres_url, (2,), 1.5, lambda: next(worked))
    assert row["stores_a_second"] > 0
    assert row["server_work_us"] > 0
    assert row["database_work_us"] > 0
    for tenant in ("served-2-0", "served-2-1"):
        with woodrat.open(postgres_url, tenant=tenant, readonly=True) as ledger:
            assert ledger.position > postgres_servers.ENTITIES
