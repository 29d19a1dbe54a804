"""Verifying on PostgreSQL: in few questions, whatever the history, and down to what plain SQL shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

import woodrat
from woodrat import Ledger
from woodrat.engines.postgres.connection import READER, configure
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.engines.postgres.statements import Part, all_compiled
from woodrat.engines.postgres.wire import Command, Connection, Rows
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on


@pytest.fixture
def engine(postgres_database: Callable[[], str]) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(postgres_database())
    yield engine
    engine.close()


def change(engine: PostgresEngine, statement: str) -> None:
    """Change rows as the superuser, past everything that would object, and let every reader see it."""
    with psycopg.connect(engine.url) as connection:
        connection.execute("SET search_path = woodrat")
        assert connection.execute(statement).rowcount > 0, statement
        connection.execute("UPDATE head SET changes = changes + 1")


def found(ledger: Ledger) -> set[tuple[str, str | None, bool]]:
    """Return what a verification finds: the damage, the entity, and whether it is the log's."""
    return {(one.damage, one.entity, one.log) for one in ledger.verify().damage}


@pytest.mark.parametrize(
    "fault",
    [
        """fields = jsonb_set(fields, '{city}', '"Paris"')""",
        "fields = fields - 'city'",
        "fields = 'null'",
        "fields = NULL",
        """more = '{"tags": 3}'""",
        "version = last + 1",
    ],
)
def test_what_plain_sql_shows_is_compared(engine: PostgresEngine, fault: str) -> None:
    """A change of what the view `woodrat.state` shows is found, the entity named, and mended by a rebuild."""
    ledger = ledger_on(engine, "t")
    ledger.store([{"entity_type": "thing", "id": str(n), "city": "Lisbon", "n": 1e23} for n in range(5)])
    assert found(ledger) == set()
    change(engine, f"UPDATE entity SET {fault} WHERE key = '3'")
    assert found(ledger) == {("state", "thing/3", False)}
    ledger.rebuild()
    assert found(ledger) == set()


def test_a_member_of_a_group_shows_nothing(engine: PostgresEngine) -> None:
    """Of entities that are one, the smallest shows what is believed of all; whatever another shows is found."""
    ledger = ledger_on(engine, "t")
    ledger.store([{"entity_type": "thing", "id": id, "city": "Lisbon"} for id in "ab"])
    ledger.merge("thing/a", "thing/b")
    assert found(ledger) == set()
    change(engine, """UPDATE entity SET fields = '{"city": "Lisbon"}' WHERE type = 'thing' AND fields = 'null'""")
    ((damage, entity, _),) = found(ledger)
    assert (damage, str(entity).partition("/")[0]) == ("state", "thing")


@pytest.mark.parametrize("end", ["erase the join", "erase a member", "split"])
def test_the_version_of_a_group_is_compared(engine: PostgresEngine, tmp_path: Path, end: str) -> None:
    """The version shown of a group is the last position that touched any of it, also once it is no group."""
    make_keys(tmp_path / "keys", FixedClock())
    ledger = woodrat.open(engine.url, tenant="t", keys=tmp_path / "keys", agent="a", clock=FixedClock())
    ledger.store([{"entity_type": "thing", "id": id, "city": "Lisbon"} for id in "abc"])
    ledger.merge("thing/a", "thing/b")
    ledger.store({"entity_type": "thing", "id": "b", "city": "Porto"})
    assert found(ledger) == set()
    change(engine, "UPDATE entity SET version = version + 1 WHERE type = 'thing' AND jsonb_typeof(fields) = 'object'")
    ((damage, entity, _),) = found(ledger)
    assert (damage, str(entity).partition("/")[0]) == ("state", "thing")
    ledger.rebuild()
    assert found(ledger) == set()
    (edge,) = (one.observation for one in ledger.observations().items if one.observation.entity.type == "same_as")
    if end == "erase the join":
        ledger.erase(str(edge.entity), reason="wrong")
    elif end == "erase a member":
        ledger.erase("thing/b", reason="asked for")
    else:
        ledger.retract(edge.id, reason="wrong")
    assert found(ledger) == set()
    ledger.close()


def count_statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the statements that are run from now on."""
    run, seen = Connection.exchange, list[str]()

    def noting(self: Connection, commands: Sequence[Command]) -> list[Rows]:
        seen.extend(str(command.part) for command in commands)
        return run(self, commands)

    monkeypatch.setattr(Connection, "exchange", noting)
    return seen


def test_questions_are_asked_for_many_entities_at_once(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verification reads table by table, and asks nothing for each entity."""
    counts = {}
    for tenant, size in (("few", 200), ("many", 2_000)):
        ledger = ledger_on(engine, tenant)
        for round in range(3):
            ledger.store([{"entity_type": "thing", "id": str(n), "n": n + round} for n in range(size)])
        with monkeypatch.context() as patch:
            seen = count_statements(patch)
            assert ledger.verify().sound
            counts[tenant] = len(seen)
    assert 0 < counts["many"] < counts["few"] + 60


def test_a_fingerprint_takes_in_many_entities_at_once(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first fingerprint asks and writes for hundreds of entities at a time, and is that of a rebuild."""
    ledger = ledger_on(engine, "t")
    ledger.store([{"entity_type": "thing", "id": str(n), "n": n} for n in range(2_000)])
    with monkeypatch.context() as patch:
        seen = count_statements(patch)
        made = ledger.fingerprint()
        assert 0 < len(seen) < 400
    assert made == ledger.rebuild().fingerprint
    assert ledger.verify().sound


@pytest.mark.parametrize(
    ("statement", "damage"),
    [
        ("DELETE FROM said WHERE id = 7", "index"),
        ("UPDATE said SET previous = 1 WHERE id = 12", "index"),
        ("DELETE FROM late WHERE entity = (SELECT id FROM entity WHERE key = '2')", "index"),
        ("DELETE FROM naming", "index"),
        ("UPDATE kept SET state = state || '\\x00' WHERE entity = (SELECT id FROM entity WHERE key = '2')", "state"),
        ("UPDATE entity SET state = state || '\\x00' WHERE key = '2'", "state"),
        ("DELETE FROM index_row WHERE name = 'entity.state'", "index"),
    ],
)
def test_each_table_is_compared(engine: PostgresEngine, statement: str, damage: str) -> None:
    """A row of any table that is gone or another is found, and the entity named that it is about."""
    ledger = ledger_on(engine, "t")
    for number in range(150):
        ledger.store({"entity_type": "thing", "id": str(number % 5), "n": number})
    said = ledger.observations("thing/2").items[0].observation.id
    ledger.retract(said, reason="wrong")
    assert found(ledger) == set()
    with psycopg.connect(engine.url) as connection:
        names = {row[0] for row in connection.execute("SELECT DISTINCT name FROM woodrat.index_row")}
    change(engine, statement.replace("entity.state", sorted(names)[0]))
    parts = found(ledger)
    assert (damage, False) in {(part, log) for part, _, log in parts}
    assert any(entity is not None for _, entity, _ in parts), parts


@pytest.mark.parametrize(
    ("file", "name", "values"),
    [
        ("queries.sql", "bodies_at", {"ids": range(50), "low": 0, "high": 10_000}),
        ("queries.sql", "entities_by_digest", {"digests": range(50)}),
        ("queries.sql", "are_said", {"digests": range(50), "low": 0, "high": 10_000}),
    ],
)
def test_what_is_named_is_looked_up_by_its_key(
    engine: PostgresEngine, file: str, name: str, values: dict[str, Any]
) -> None:
    """A statement that is given names reads the rows of these and not those of the whole tenant, whatever its size."""
    ledger = ledger_on(engine, "default")
    for round in range(3):
        ledger.store([{"entity_type": "thing", "id": str(n), "n": n + round} for n in range(1_000)])
    statement = all_compiled(file)[name]
    given = {**values, **statement.arrays({key: list(values[key]) for key in statement.columns}), "tenant": "default"}
    with Connection.connect(engine.url, autocommit=True, prepare_threshold=0) as connection:
        configure(connection, READER)
        (part,) = statement.parts
        explained = Part("")
        explained.names, explained.text = part.names, "EXPLAIN ANALYZE " + part.text
        beginning = (Command("BEGIN"), Command("SELECT set_config('woodrat.tenant', 'default', true)"))
        (*_, rows) = connection.exchange((*beginning, Command(explained, given)))
        plan = "\n".join(row[0] for row in rows)
    assert "Join Filter" not in plan, plan
    assert "Materialize" not in plan, plan
