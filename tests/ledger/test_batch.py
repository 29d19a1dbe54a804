"""Plain writes that share a commit are merged in one pass."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from woodrat import Corrupt, Ledger, Refused, Report
from woodrat.api.ledger import with_stand_in
from woodrat.engines.port import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.engines.sqlite.transaction import SqliteTransaction
from woodrat.ledger import batch
from woodrat.ledger.batch import Batch
from woodrat.ledger.committer import Committer
from woodrat.merge.diff import FieldChange
from woodrat.testing.ledgers import ledger_on, log_of


@pytest.fixture
def engine() -> Iterator[Engine]:
    found: Engine = InMemoryEngine()
    yield found
    found.close()


@pytest.fixture
def appended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many writes were appended at a time."""
    found: list[int] = []
    append = SqliteTransaction.append

    def counting(self: Any, writes: Any, meanings: Any) -> None:
        found.append(len(writes))
        append(self, writes, meanings)

    monkeypatch.setattr(SqliteTransaction, "append", counting)
    return found


def together(engine: Engine, writes: list[Any]) -> list[Future[Report]]:
    """Carry writes out that wait together, and may be gathered."""
    with Committer(engine) as committer:
        started, free = threading.Event(), threading.Event()

        def busy() -> None:
            started.set()
            free.wait(10)

        committer.submit(busy)
        started.wait(10)
        futures: list[Future[Report]] = [committer.submit_report(write) for write in writes]
        free.set()
        wait(futures, 10)
    return futures


def store_into(ledger: Ledger, record: dict[str, Any], given: dict[str, Any], batch: Batch | None) -> Report:
    return (ledger if batch is None else with_stand_in(ledger, batch)).store(record, **given)


def stores(ledger: Ledger, *records: dict[str, Any], **given: Any) -> list[Any]:
    return [partial(store_into, ledger, {"entity_type": "thing", **record}, given) for record in records]


def test_writes_about_different_entities_are_appended_at_once(engine: Engine, appended: list[int]) -> None:
    """Twenty writes about twenty entities are one append; each has positions, a time and a report of its own."""
    ledger = ledger_on(engine)
    reports = [future.result() for future in together(engine, stores(ledger, *({"id": str(n)} for n in range(20))))]
    assert appended == [20]
    assert [report.positions for report in reports] == [(n,) for n in range(20)]
    assert [report.entities for report in reports] == [(f"thing/{n}",) for n in range(20)]
    entries = log_of(engine)["entries"]
    assert [entry["envelope"]["length"] for entry in entries] == [1] * 20
    assert len({entry["recorded_at"] for entry in entries}) == 20
    assert ledger.rebuild().agreed


def test_writes_about_one_entity_are_merged_one_after_the_other(engine: Engine, appended: list[int]) -> None:
    """What two writes say of one entity is appended at once and told apart: each reports what it changed itself."""
    ledger = ledger_on(engine)
    first, other, second = (
        future.result()
        for future in together(engine, stores(ledger, {"id": "1", "n": 1}, {"id": "2"}, {"id": "1", "n": 2}))
    )
    assert appended == [3]
    assert first.changes[0].fields[1] == FieldChange("n", False, None, True, 1)
    assert second.changes[0].fields == (FieldChange("n", True, 1, True, 2),)
    assert other.entities == ("thing/2",)
    assert ledger.show("thing/1").fields == {"id": "1", "n": 2}
    assert ledger.rebuild().agreed


def test_a_large_collection_is_merged_call_by_call(engine: Engine, appended: list[int]) -> None:
    """Of a collection whose elements are rows each call reports the elements it added itself."""
    ledger = ledger_on(engine)
    ledger.schemas.register({"title": "thing", "properties": {"tags": {"type": "array", "x-woodrat-merge": "union"}}})
    ledger.store({"entity_type": "thing", "id": "1", "tags": [f"t{n}" for n in range(200)]})
    reports = [
        f.result() for f in together(engine, stores(ledger, *({"id": "1", "tags": [f"n{n}"]} for n in range(3))))
    ]
    assert [report.changes[0].fields[0].after for report in reports] == [["n0"], ["n1"], ["n2"]]
    tags = ledger.show("thing/1").fields["tags"]
    assert isinstance(tags, list)
    assert len(tags) == 203
    assert ledger.rebuild().agreed


def test_many_writes_about_one_entity_keep_its_history(engine: Engine) -> None:
    """Forty writes about one entity, gathered: every moment in between reads as if they had come alone."""
    one, other = ledger_on(engine), ledger_on(engine, "other")
    together(engine, stores(one, *({"id": "1", "n": n} for n in range(40))))
    for n in range(40):
        other.store({"entity_type": "thing", "id": "1", "n": n})
    for position in range(40):
        assert one.at(position).show("thing/1").fields == other.at(position).show("thing/1").fields
    assert one.fingerprint() == other.fingerprint()
    assert one.rebuild().agreed


def test_a_refused_call_leaves_the_others_together(engine: Engine, appended: list[int]) -> None:
    """A call that is refused is left out, and the others are none the worse for it."""
    ledger = ledger_on(engine)
    futures = together(engine, stores(ledger, {"id": "1"}, {}, {"id": "2"}, {"id": "3"}))
    assert [type(future.exception()) for future in futures] == [type(None), Refused, type(None), type(None)]
    assert sum(appended) == 3
    assert len(ledger.query().items) == 3


def test_a_key_used_twice_at_once_is_one_write(engine: Engine) -> None:
    """The same call twice under one key is stored once, and both get its report."""
    ledger = ledger_on(engine)
    futures = together(engine, stores(ledger, {"id": "1"}, {"id": "2"}, {"id": "1"}, idempotency_key="k"))
    first, other, second = futures
    assert second.result() == first.result().again()
    assert isinstance(other.exception(), Refused)
    assert ledger.position == 0


def test_tenants_and_agents_are_kept_apart(engine: Engine, appended: list[int]) -> None:
    """Agents of one tenant are gathered, each named by its own; another tenant has a log and a gathering of its own."""
    ada, bob, far = ledger_on(engine, agent="ada"), ledger_on(engine, agent="bob"), ledger_on(engine, "far")
    calls = [*stores(ada, {"id": "1"}), *stores(far, {"id": "1"}), *stores(bob, {"id": "2"}), *stores(far, {"id": "2"})]
    assert all(future.exception() is None for future in together(engine, calls))
    assert appended == [2, 2]
    assert [seen.observation.agent for ref in ("thing/1", "thing/2") for seen in ada.observations(ref)] == [
        "ada",
        "bob",
    ]
    assert far.position == 1


def test_a_failure_while_merging_falls_on_its_own_call(tmp_path: Path, appended: list[int]) -> None:
    """Kept state that cannot be read fails the one call that needs it; its neighbours are stored."""
    path = tmp_path / "damaged.db"
    engine = SqliteEngine(path)
    ledger_on(engine).store([{"entity_type": "thing", "id": str(n)} for n in range(4)])
    engine.close()
    file = apsw.Connection(str(path))
    file.execute("UPDATE entity SET state = x'ff00ff' WHERE key = '2'")
    file.close()
    appended.clear()
    engine = SqliteEngine(path)
    ledger = ledger_on(engine)
    futures = together(engine, stores(ledger, *({"id": str(n), "n": n} for n in range(4))))
    assert [type(future.exception()) for future in futures] == [type(None), type(None), Corrupt, type(None)]
    assert [ledger.show(f"thing/{n}").fields.get("n") for n in (0, 1, 3)] == [0, 1, 3]
    engine.close()


def test_what_fails_together_is_carried_out_one_by_one(
    engine: Engine, appended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should merging fail for whatever reason, all of it is undone and each call has its turn."""

    def fail(*given: Any) -> Any:
        raise RuntimeError("planted")

    monkeypatch.setattr(batch.SharedPass, "_merged", fail)
    ledger = ledger_on(engine)
    reports = [future.result() for future in together(engine, stores(ledger, {"id": "1"}, {"id": "2"}, {"id": "3"}))]
    assert appended == [3, 1, 1, 1]
    assert [report.positions for report in reports] == [(0,), (1,), (2,)]
    assert ledger.rebuild().agreed


def test_a_value_two_calls_share_is_hinted_to_the_later(engine: Engine) -> None:
    """Of two entities that share an identifying value the later call is told, as if it had come later."""
    ledger = ledger_on(engine)
    ledger.schemas.register(
        {"title": "thing", "properties": {}, "x-woodrat-identity": [["id"], ["email"]]},
    )
    first, second = (
        future.result()
        for future in together(engine, stores(ledger, {"id": "1", "email": "a@b.c"}, {"id": "2", "email": "a@b.c"}))
    )
    assert first.hints == ()
    assert "thing/2 and thing/1 share" in second.hints[0]


def test_what_a_schema_hides_stays_hidden_however_often_a_call_is_planned(engine: Engine) -> None:
    """A call that has to come later is planned again: it hides the same, and its key stands for the same request."""
    ledger = ledger_on(engine)
    ledger.schemas.register({"title": "thing", "properties": {"pin": {"x-woodrat-redact": True}}})
    calls = [
        partial(
            store_into, ledger, {"entity_type": "thing", "id": "1", "pin": f"secret {n}"}, {"idempotency_key": f"k{n}"}
        )
        for n in range(3)
    ]
    assert all(future.exception() is None for future in together(engine, calls))
    assert "secret" not in str(log_of(engine))
    assert all(call(None).repeated for call in calls)
