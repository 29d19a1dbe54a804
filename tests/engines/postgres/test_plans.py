"""How PostgreSQL carries statements out: rows are looked for by their key, however few there were at first."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import psycopg
import pytest
from tests.postgres import Databases

from woodrat.canon.ids import TenantId
from woodrat.engines.postgres.connection import ERASER, OWNER, WRITER, arguments, configure
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.engines.postgres.statements import Part, named
from woodrat.engines.postgres.view import FIRST_PAGE, PostgresView
from woodrat.engines.postgres.wire import Connection
from woodrat.testing.ledgers import ledger_on

WHOLE = {
    "queries.sql": {
        *("open", "lock", "set_head", "tenants", "purge_due", "other_tenant"),  # a tenant has one row there
        *("logs", "add_log", "receipts", "last_entity", "drop_derived"),
    },
    "comparison.sql": {
        *(
            "head",
            "unowned_body",
            "unowned_origin",
            "odd_clones",
            "orphans",
            "beyond",
            "notes",
            "index_names",
            "repeated",
        ),
        *("log_bytes", "last_id", "derived_entity", "derived_state", "derived_kept", "derived_element", "derived_said"),
        *("derived_naming", "derived_late", "derived_anchor", "derived_node"),
    },
}
"""Statements that are about a whole tenant, or read one end of it; all others are given keys, or a range of them."""
ONCE = {"joins", "state_of"}
"""Those that are seldom asked, and may read a tenant that has hardly any entities."""
LISTS = ("entities", "entities_reversed", "entities_of_type", "scan", "scan_reversed", "entries", "rows")
"""Statements that give a page."""
ROLES = {"erase_body": ERASER, "erase_receipt": ERASER, "purge_done": OWNER}
"""Statements that another role runs."""
TENANT_ALONE = re.compile(r"Index Cond: \(tenant = \S+\)$", re.MULTILINE)
"""Reads all rows of a tenant."""
PLACE = re.compile(r"(?<![:\w]):([a-z_]+)")


@pytest.fixture
def connection(postgres_url: str) -> Iterator[Connection]:
    """A connection with the settings of the engine."""
    with Connection.connect(postgres_url, **arguments()) as connection:
        if connection.info.server_version < 160000:
            pytest.skip("PostgreSQL 15 does not show the plan that is kept for all values")
        configure(connection, WRITER)
        yield connection


def plans(connection: Connection, text: str) -> Iterator[str]:
    """Yield the plans that are kept for all values of the parts of a statement."""
    for part in text.split(";\n"):
        names: dict[str, int] = {}
        for name in PLACE.findall(part):
            names.setdefault(name, len(names) + 1)
        numbered = PLACE.sub(partial(_numbered, names), part)
        if numbered.strip(" ;\n"):
            rows = connection.execute(f"EXPLAIN (GENERIC_PLAN) {numbered}", prepare=False).fetchall()
            yield "\n".join(row[0] for row in rows)


def _numbered(names: dict[str, int], found: re.Match[str]) -> str:
    return f"${names[found[1]]}"


def fill(engine: PostgresEngine, entities: int) -> None:
    """Store so many entities."""
    ledger = ledger_on(engine)
    for start in range(0, entities, 1_000):
        ledger.store([{"entity_type": "memo", "id": str(start + number)} for number in range(1_000)])


@pytest.mark.parametrize("entities", [0, 2_000, 8_000])
def test_what_is_sought_is_looked_for_by_its_key(
    postgres_engine: PostgresEngine, connection: Connection, entities: int
) -> None:
    """No statement but those about a whole tenant reads all its rows, and no page sorts all there is."""
    fill(postgres_engine, entities)
    checked = 0
    for file, whole in WHOLE.items():
        assert whole <= named(file).keys()
        for name, text in named(file).items():
            if name in whole or (name in ONCE and not entities) or "vector" in text:
                continue  # vectors are compared all, where the server has them
            connection.execute(f"SET ROLE {ROLES.get(name, WRITER)}")
            for found in plans(connection, text):
                checked += 1
                assert "Join Filter" not in found, f"{name}:\n{found}"
                assert "Materialize" not in found, f"{name}:\n{found}"
                assert not TENANT_ALONE.search(found), f"{name}:\n{found}"
                assert "Seq Scan" not in found, f"{name}:\n{found}"
            connection.execute(f"SET ROLE {WRITER}")
    assert checked > 80
    for name in LISTS:
        (found,) = plans(connection, named()[name])
        assert "Sort" not in found, f"{name}:\n{found}"


def test_a_page_of_the_log_reads_little_more_than_itself(
    postgres_engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ten entries of a log are read without the next thousand; all of them are read in few questions."""
    ledger_on(postgres_engine).store([{"entity_type": "memo", "id": str(number)} for number in range(1_200)])
    asked: list[int] = []
    ask = PostgresView.ask

    def counted(self: PostgresView, part: Part, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        rows = ask(self, part, values)
        asked.append(len(rows))
        return rows

    monkeypatch.setattr(PostgresView, "ask", counted)
    with postgres_engine.view(TenantId("t")) as view:
        assert [entry.position for entry in islice(view.entries(), 10)] == list(range(10))
        assert sum(asked) <= FIRST_PAGE
        asked.clear()
        assert [entry.position for entry in view.entries()] == list(range(1_200))
        assert len(asked) == 3


def test_a_plan_for_empty_tables_does_not_stay(postgres_server: str) -> None:
    """A process that began with an empty database reads about as many entities for a batch as the batch speaks of."""
    databases = Databases(postgres_server)  # of its own: what others read of theirs may be counted late
    try:
        with databases.lent() as lend:
            engine = PostgresEngine(url := lend())
            ledger = ledger_on(engine)
            batch = [{"entity_type": "memo", "id": str(number), "text": "first"} for number in range(1_500)]
            for few in (batch[:1], batch[:1]):
                ledger.store(few)
            ledger.store(batch)
            for turn in range(10):
                ledger.store([{**record, "text": f"turn {turn}"} for record in batch[turn * 20 : turn * 20 + 20]])
            engine.close()
            assert 0 < _entities_read(url) < len(batch) * 3
            # Read once for each batch they would be ten times that.
    finally:
        databases.drop()


def _entities_read(url: str) -> int:
    """Return how many rows of entities were read through indexes; those who read have left."""
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(100):
            left = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
                "AND backend_type = 'client backend'"
            ).fetchone()
            if left == (0,):
                break
            time.sleep(0.05)
        row = connection.execute(
            "SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE schemaname = 'woodrat' AND relname = 'entity'"
        ).fetchone()
        assert row is not None
        return int(row[0])
