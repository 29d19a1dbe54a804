"""A streaming replica: the past is read from it as far as it has got, and from the server beyond that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest
from tests import postgres

from woodrat import Refused
from woodrat.engines.postgres.connection import addresses
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.engines.postgres.migration import migrate
from woodrat.testing.ledgers import ledger_on


@pytest.fixture
def servers() -> Iterator[tuple[postgres.Own, postgres.Own]]:
    """A server with tables of woodrat, and its replica."""
    # Nothing is synchronised to disk, and one process copies the other's files.
    with postgres.Own(wal_level="replica", max_wal_senders="4") as first:
        migrate(first.url)
        second = postgres.Own(hot_standby="on")
        try:
            second.run(
                *("pg_basebackup", "-D", str(second.data), "-h", str(first.folder), "-U", "postgres"),
                *("-R", "-X", "stream", "-c", "fast", "--no-sync"),
            )
            second.data.chmod(0o700)
            second.start()
            yield first, second
        finally:
            second.remove()


def test_the_past_is_read_from_a_replica(servers: tuple[postgres.Own, postgres.Own]) -> None:
    """As of a position that the replica has it answers, and alike; what it has not got yet the server answers."""
    first, second = servers
    url = f"{first.url}&replica={quote(second.url, safe='')}"
    engine = PostgresEngine(url)
    replica = engine.replica
    assert replica is not None
    try:
        ledger = ledger_on(engine)
        for number in range(4):
            ledger.store({"entity_type": "memo", "id": "1", "n": number})
        _until_it_has(second, ledger.position)
        at = [ledger.at(position) for position in range(4)]
        assert [past.show("memo/1").fields["n"] for past in at] == [0, 1, 2, 3]
        alone = PostgresEngine(first.url)
        there = [ledger_on(alone).at(position).fingerprint() for position in range(4)]
        alone.close()
        assert [past.fingerprint() for past in at] == there
        assert replica.reads >= 8
        given = replica.reads
        assert ledger.show("memo/1").fields["n"] == 3
        assert replica.reads == given, "the present is read where it is written"
        with psycopg.connect(second.url, autocommit=True) as standby:
            standby.execute("SELECT pg_wal_replay_pause()")
            assert ledger.store({"entity_type": "memo", "id": "1", "n": 4}).position == 4
            assert ledger.at(4).show("memo/1").fields["n"] == 4
            assert replica.behind >= 1
            assert ledger.at(3).show("memo/1").fields["n"] == 3
            assert replica.reads > given
            standby.execute("SELECT pg_wal_replay_resume()")
        _until_it_has(second, 4)
        given = replica.reads
        assert ledger.at(4).show("memo/1").fields["n"] == 4
        assert replica.reads > given
        second.end()
        assert ledger.at(2).show("memo/1").fields["n"] == 2, "a replica that is away is done without"
        assert ledger.store({"entity_type": "memo", "id": "1", "n": 5}).position == 5
    finally:
        engine.close()


def _until_it_has(server: postgres.Own, position: int) -> None:
    deadline = time.monotonic() + 60
    with psycopg.connect(server.url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            row = connection.execute("SELECT size FROM woodrat.head WHERE tenant = 't'").fetchone()
            if row is not None and row[0] > position:
                return
            time.sleep(0.05)
    raise AssertionError("the replica did not follow")


def test_another_database_is_not_a_replica(postgres_server: str) -> None:
    """A database that is no copy of the ledger's is refused when it would be read, and a bad parameter at once."""
    url = postgres.of(postgres_server, postgres.TEMPLATE)
    engine = PostgresEngine(f"{url}&replica={quote(postgres_server, safe='')}")
    try:
        ledger = ledger_on(engine)
        with pytest.raises(Refused, match="is no replica of"):
            ledger.at(-1).fingerprint()
    finally:
        engine.close()
    for wrong in ("replica=agents.db", "replica=postgresql%3A%2F%2Fa&replica=postgresql%3A%2F%2Fb"):
        with pytest.raises(Refused, match="the address of one replica"):
            PostgresEngine(f"{url}&{wrong}")
    assert addresses("postgresql:///a?host=x&replica=postgresql%3A%2F%2Fb%2Fc%3Fuser%3Dd&user=e") == (
        "postgresql:///a?host=x&user=e",
        "postgresql://b/c?user=d",
    )
