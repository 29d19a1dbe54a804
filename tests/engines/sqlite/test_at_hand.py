"""At hand: a read sees whatever was committed before, and a connection keeps no more of it than a bound."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import woodrat
from woodrat import Snapshot
from woodrat.canon.ids import Ref
from woodrat.engines.records import KEPT_EVERY, Kept
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.errors import NotFound, Refused, Unavailable
from woodrat.ledger import reads, refold
from woodrat.merge.rules import rules_of
from woodrat.state.schema import OPEN
from woodrat.testing.ledgers import ledger_on

ANA = "person/Ana"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(tmp_path / "one.db")
    yield engine
    engine.close()


def person(name: str = "Ana", **fields: Any) -> dict[str, Any]:
    return {"entity_type": "person", "name": name, **fields}


def refold_all(ledger: woodrat.Ledger) -> None:
    """Fold what waits for it."""
    while refold.go_on(ledger.context.engine, ledger.tenant, ledger.context.policies):
        pass


def test_what_another_process_writes_is_seen(engine: SqliteEngine) -> None:
    """A read sees what was committed through another connection at once, schemas and joins included."""
    ledger, other = ledger_on(engine), ledger_on(SqliteEngine(engine.path))
    ledger.store([person(age=1), person("A.")])
    assert ledger.show(ANA).fields == {"age": 1, "name": "Ana"}
    other.store({**person(age=3), "$": {"observed_at": "2020-01-01T00:00:00Z"}})
    assert ledger.show(ANA).position == other.position
    assert ledger.show(ANA).version == other.show(ANA).version
    assert ledger.show(ANA).fields["age"] == 1
    other.schemas.register({"title": "person", "properties": {"age": {"type": "integer", "x-woodrat-merge": "max"}}})
    assert ledger.show(ANA).fields["age"] == 3, "it waits to be folded again, and is folded for whoever asks"
    refold_all(other)
    assert ledger.show(ANA).fields["age"] == 3
    assert ledger.show(ANA).blame["age"].policy == other.show(ANA).blame["age"].policy == "max"
    other.merge(ANA, "person/A.")
    assert len(ledger.show(ANA).members) == 2
    other.store(person("Cy"))
    assert ledger.show("person/Cy").fields == {"name": "Cy"}
    other.delete("person/Cy")
    assert ledger.show("person/Cy").deleted
    other.context.engine.close()


def test_a_read_of_an_entity_looks_it_up_once(engine: SqliteEngine) -> None:
    """Once the tenant is known, showing an entity asks for its row, and what is at hand is not asked for again."""
    ledger = ledger_on(engine)
    ledger.store([person(), person("Bo")])
    assert ledger.show(ANA).fields == {"name": "Ana"}
    reader = engine.take()
    said: list[str] = []

    def note(cursor: object, sql: str, bindings: object) -> bool:
        said.append(sql)
        return True

    reader.connection.exec_trace = note
    engine.give_back(reader)
    assert ledger.show("person/Bo").fields == {"name": "Bo"}
    frame = ["BEGIN", "ROLLBACK"]
    assert [sql for sql in said if not sql.startswith("PRAGMA")] == [frame[0], engine.queries["entity"], frame[1]]
    said.clear()
    assert ledger.show("person/Bo").fields == {"name": "Bo"}
    assert [sql for sql in said if not sql.startswith("PRAGMA")] == frame


def test_the_past_is_not_the_present(engine: SqliteEngine) -> None:
    """A read of the past is answered for its moment, on either clock, whatever the present is and whoever wrote it."""
    ledger, other = ledger_on(engine), ledger_on(SqliteEngine(engine.path))
    days = [f"2020-{age // 28 + 1:02d}-{age % 28 + 1:02d}T00:00:00Z" for age in range(1, 3 * KEPT_EVERY + 1)]
    positions = [
        (ledger if age % 2 else other).store(person(age=age), observed_at=day).position
        for age, day in enumerate(days, 1)
    ]
    assert ledger.show(ANA).fields["age"] == len(days)
    for age, (position, day) in enumerate(zip(positions, days, strict=True), 1):
        assert ledger.at(position).show(ANA).fields["age"] == age
        assert ledger.at(valid_at=day).show(ANA).fields["age"] == age
    ledger.retract(ledger.observations(ANA).items[8].observation.id)
    assert ledger.at(positions[8]).show(ANA).fields["age"] == 9
    registered = other.schemas.register({"title": "person", "properties": {"age": {"x-woodrat-merge": "min"}}}).position
    assert ledger.at(positions[2]).show(ANA).fields["age"] == 3, "under the schema of then"
    for _ in range(2):
        assert ledger.at(registered).show(ANA).fields["age"] == 1
        refold_all(other)
    other.store(person("A.", age=0))
    other.merge(ANA, "person/A.")
    assert ledger.show(ANA).fields["age"] == 0
    assert ledger.at(registered).show(ANA).fields["age"] == 1
    other.context.engine.close()


def test_what_is_not_there_is_not_shown(engine: SqliteEngine) -> None:
    """What nobody spoke of, what is another tenant's, what is withdrawn and what cannot be a name has its answer."""
    ledger = ledger_on(engine)
    ledger.store(person())
    with pytest.raises(NotFound):
        ledger_on(engine, tenant="u").show(ANA)
    names = ("nothing like it", "person/\ud800", "Person/Ana", "person/", "/", "ent_" + "a" * 26, "", "person/Bo")
    for wrong in names:
        assert reads.show_soon(ledger.context, wrong) is None
        with pytest.raises((Refused, NotFound)):
            ledger.show(wrong)
    ledger.delete(ANA)
    assert ledger.show(ANA).deleted
    ledger.restore(ANA)
    assert ledger.show(ANA).fields == {"name": "Ana"}
    ledger.store(person("Bo"))
    ledger.retract(ledger.observations("person/Bo").items[0].observation.id)
    with pytest.raises(NotFound):
        ledger.show("person/Bo")


def test_what_a_caller_changes_stays_with_the_caller(engine: SqliteEngine) -> None:
    """Values taken out of a snapshot can be changed, and no later read shows it."""
    ledger = ledger_on(engine)
    ledger.store(person(tags=["a"], home={"city": "Vic"}))
    looks: list[Callable[[], Snapshot]] = [
        lambda: ledger.show(ANA),
        lambda: ledger.at(ledger.position).show(ANA),
        lambda: ledger.query(entity_type="person").items[0],
    ]
    for look in looks:
        found: Any = look().fields
        found["tags"].append("b")
        found["home"]["city"] = "Olot"
        found["name"] = "Bo"
        for again in looks:
            assert again().fields == {"home": {"city": "Vic"}, "name": "Ana", "tags": ["a"]}
    same = "2020-01-01T00:00:00Z"
    ledger.store(person(tags=["b"]), observed_at=same)
    ledger_on(engine, agent="other").store(person(tags=["c"]), observed_at=same)
    for claim in ledger.show(ANA).conflicts[0].claims:
        cast("list[str]", claim.value).append("z")
    assert all("z" not in cast("list[str]", claim.value) for claim in ledger.show(ANA).conflicts[0].claims)


def test_a_closed_engine_is_not_looked_at(engine: SqliteEngine) -> None:
    """Looking at an engine that is closed says so."""
    ledger = ledger_on(engine)
    ledger.store(person())
    assert ledger.show(ANA)
    engine.close()
    with pytest.raises(Unavailable, match="closed"):
        ledger.show(ANA)
    with pytest.raises(Unavailable, match="closed"):
        engine.stamp()


def test_a_stamp_changes_with_every_commit_and_with_nothing_else(engine: SqliteEngine) -> None:
    """A stamp stays the same while an engine is read or a write is undone, and is another after anybody's commit."""
    ledger, other = ledger_on(engine), ledger_on(SqliteEngine(engine.path))
    ledger.store(person())
    seen = [engine.stamp()]
    assert seen[0] is not None
    others = other.context.engine.stamp()
    assert others is not None
    ledger.show(ANA)
    ledger.store(person("Bo"), dry_run=True)
    assert engine.stamp() == seen[0]
    for number in range(20):
        (ledger if number % 2 else other).store(person(age=number))
        seen.append(engine.stamp())
    assert len(set(seen)) == len(seen)
    assert other.context.engine.stamp() != others
    other.context.engine.close()


def test_asking_for_a_stamp_lets_no_lock_go(engine: SqliteEngine) -> None:
    """While somebody writes, asking for the stamp, first or again, gives no other process the turn to write."""
    ledger = ledger_on(engine)
    ledger.store(person())
    script = (
        "import apsw, sys; c = apsw.Connection(sys.argv[1])\n"
        "try: c.execute('BEGIN IMMEDIATE'); print('got in')\nexcept apsw.BusyError: print('waits')"
    )

    def other() -> str:
        words = [sys.executable, "-c", script, engine.path]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    for _ in range(2):
        with engine.transaction(ledger.tenant):
            again = SqliteEngine(engine.path, readonly=True)
            assert engine.stamp() is not None
            assert again.stamp() is not None
            assert other() == "waits"
            again.close()
            assert other() == "waits"
    assert other() == "got in"


def test_entities_used_lately_stay_at_hand(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the entities a connection keeps at hand, those that nobody asked for the longest time go first."""
    monkeypatch.setattr("woodrat.engines.cache.ENTITIES_READ_MAX", 2)
    ledger = ledger_on(engine)
    ledger.store([person(name) for name in "abcd"])
    at = ledger.position
    with engine.view(ledger.tenant) as view:
        for name in "ab":
            assert view.entity(Ref("person", name).digest, at) is not None
        assert view.entity(Ref("person", "a").digest, at) is not None
        assert view.entity(Ref("person", "c").digest, at) is not None
    with engine.view(ledger.tenant) as view:
        assert {known.ref.key for known in view.memory.entities.values()} == {"a", "c"}


def test_a_walk_keeps_no_more_than_a_bound(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entities are let go of inside the view, and what is looked up together is there, however much it is."""
    monkeypatch.setattr("woodrat.engines.cache.ENTITIES_READ_MAX", 3)
    ledger = ledger_on(engine)
    names = [f"p{number}" for number in range(20)]
    ledger.store([person(name) for name in names])
    at = ledger.position
    digests = [Ref("person", name).digest for name in names]
    with engine.view(ledger.tenant) as view:
        for digest in digests:
            assert view.entity(digest, at) is not None
            assert len(view.memory.entities) <= 4
        view.find_entities([*digests, Ref("person", "nobody").digest])
        assert len(view.memory.entities) == 20
        assert all(view.entity(digest, at) is not None for digest in digests)
        assert view.entity(Ref("person", "nobody").digest, at) is None
    with engine.view(ledger.tenant) as view:
        assert len(view.memory.entities) <= 3


def test_a_walk_within_a_write_keeps_no_more_than_twice_the_bound(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write lets go of entities that it looked at long ago, and what it changed of them is written all the same."""
    monkeypatch.setattr("woodrat.engines.cache._entities_max", 3)
    ledger = ledger_on(engine)
    names = [f"p{number:02d}" for number in range(20)]
    ledger.store([person(name) for name in names])
    refs = [Ref("person", name) for name in names]
    rules = rules_of(OPEN("person"), {})
    sizes: list[int] = []
    with engine.transaction(ledger.tenant) as write:
        at = write.head().position
        for ref in refs:
            kept = write.kept(ref, at, rules)
            assert kept is not None
            sizes.append(kept.state.body_bytes + 1)
            write.keep([(Kept(at, kept.state._replace(body_bytes=sizes[-1])), rules, False)])
            assert len(write.memory.entities) <= 7
        standings = write.standings(refs, at, {"person": rules})
        assert [found.kept.state.body_bytes for found in standings if found and found.kept] == sizes
    with engine.view(ledger.tenant) as view:
        states = [view.kept(ref, at, rules) for ref in refs]
        assert [kept.state.body_bytes for kept in states if kept] == sizes


def test_tenants_share_what_a_connection_keeps(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tenants are read through one connection, it keeps no more entities than of one."""
    monkeypatch.setattr("woodrat.engines.cache.ENTITIES_READ_MAX", 4)
    monkeypatch.setattr("woodrat.engines.cache.SWITCHES", 1)
    ledgers = [ledger_on(engine, tenant=f"t{number}") for number in range(6)]
    for ledger in ledgers:
        ledger.store([person(name) for name in "ab"])
    for ledger in ledgers:
        with engine.view(ledger.tenant) as view:
            assert all(view.entity(Ref("person", name).digest, 1) is not None for name in "ab")
    (reader,) = engine._idle
    assert sum(len(memory.entities) for memory in reader._memory.values()) <= 6


def test_large_entities_do_not_stay_at_hand(engine: SqliteEngine) -> None:
    """What takes much memory is forgotten once it was used, by whoever writes it and whoever reads it."""
    ledger = ledger_on(engine)
    ledger.store([person("a"), person("b", tags=[f"tag {number}" for number in range(2_000)])])
    with engine.transaction(ledger.tenant) as write:
        assert [known.ref.key for known in write.memory.entities.values()] == ["a"]
    at = ledger.position
    with engine.view(ledger.tenant) as view:
        for name in "ab":
            assert view.entity(Ref("person", name).digest, at) is not None
    with engine.view(ledger.tenant) as view:
        assert [known.ref.key for known in view.memory.entities.values()] == ["a"]
    ledger.store(person("b", tags=["one more"]))
    assert ledger.show("person/b").fields["tags"] == ["one more"]
