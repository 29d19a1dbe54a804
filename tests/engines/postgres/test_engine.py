"""The PostgreSQL engine: several writers, lost connections, and how often it asks the server."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest
from tests.round_trips import cut_commit

import woodrat
from woodrat import Refused, Unavailable
from woodrat.canon.ids import TenantId
from woodrat.engines.postgres.connection import shown_address
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.log import tree
from woodrat.testing.ledgers import ledger_on

WRITER = """
import sys, threading, woodrat
url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
ledger = [woodrat.open(url, tenant="t", agent=f"{name}-{n}") for n in range(2)]
def write(n):
    for number in range(count):
        report = ledger[n].store({"entity_type": "memo", "id": f"{name}-{n}-{number}"}, idempotency_key=str(number))
        print(report.position, f"{name}-{n}-{number}", flush=True)
threads = [threading.Thread(target=write, args=(n,)) for n in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_eight_writers_in_four_processes(postgres_url: str, postgres_engine: PostgresEngine) -> None:
    """Positions have no gaps, and what was acknowledged is where it was said to be; who follows misses nothing."""
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, postgres_url, f"p{n}", "8"], stdout=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    followed: list[int] = []
    while any(process.poll() is None for process in started):
        with postgres_engine.view(TenantId("t")) as view:
            followed += [entry.position for entry in view.entries(after=len(followed) - 1)]
    told = [line.split() for process in started for line in (process.communicate()[0] or "").splitlines()]
    assert [process.returncode for process in started] == [0] * 4
    assert sorted(int(position) for position, _ in told) == list(range(64))
    with postgres_engine.view(TenantId("t")) as view:
        entries = list(view.entries())
        head = view.head()
    followed += [entry.position for entry in entries[len(followed) :]]
    assert followed == [entry.position for entry in entries] == list(range(64))
    assert len({entry.log for entry in entries}) == 1
    assert [entry.recorded_at for entry in entries] == sorted({entry.recorded_at for entry in entries})
    assert head.frontier.root() == tree.root(entry.leaf() for entry in entries)
    ledger = ledger_on(postgres_engine)
    for position, key in told:
        assert ledger.show(f"memo/{key}").version == int(position)
    assert ledger.verify().sound


def test_a_lost_connection_is_made_anew(postgres_url: str, postgres_engine: PostgresEngine) -> None:
    """When the server has ended every connection, the next call works as if nothing had happened."""
    ledger = ledger_on(postgres_engine)
    ledger.store({"entity_type": "memo", "id": "1"})
    for number in (2, 3):
        ledger.show("memo/1")
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert ledger.store({"entity_type": "memo", "id": str(number)}).position == number - 1
    assert ledger.verify().sound


@pytest.mark.parametrize("arrived", [True, False])
def test_a_connection_lost_in_the_commit_is_settled(
    postgres_engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    """A commit that nobody answered is looked for in the log: it is acknowledged if it is there, and refused if not."""
    ledger = ledger_on(postgres_engine)
    ledger.store({"entity_type": "memo", "id": "1"})
    cut_commit(monkeypatch, partial(_wait_for_size, postgres_engine, 2) if arrived else None)
    if arrived:
        assert ledger.store({"entity_type": "memo", "id": "2"}, idempotency_key="k").position == 1
    else:
        with pytest.raises(Unavailable, match=r"Nothing of this call was written") as told:
            ledger.store({"entity_type": "memo", "id": "2"}, idempotency_key="k")
        assert isinstance(told.value.__cause__, psycopg.OperationalError)
    again = ledger.store({"entity_type": "memo", "id": "2"}, idempotency_key="k")
    assert (again.position, again.repeated) == (1, arrived)
    assert ledger.verify().sound


def _wait_for_size(engine: PostgresEngine, size: int) -> None:
    for _ in range(1000):
        with psycopg.connect(engine.url) as other:
            if other.execute("SELECT size FROM woodrat.head WHERE tenant = 't'").fetchone() == (size,):
                return
    raise AssertionError("the commit did not arrive")


def memo(key: str, number: int) -> dict[str, Any]:
    return {"entity_type": "memo", "id": key, "n": number}


def test_an_undone_write_of_a_shared_commit_leaves_nothing(postgres_engine: PostgresEngine) -> None:
    """After a dry run or a refusal its neighbours go on as if it had never been."""
    ledger = ledger_on(postgres_engine)
    with postgres_engine.together():
        ledger.store([memo("1", 1), memo("2", 1)])
        ledger.store([memo("1", 9), memo("new", 9)], dry_run=True)
        with pytest.raises(Refused):
            ledger.store(memo("", 9))
        assert ledger.store([memo("new", 2), memo("1", 2)], idempotency_key="k").positions == (2, 3)
        ledger.store(memo("new", 9), dry_run=True, idempotency_key="k2")
        assert ledger.store([memo("new", 2), memo("1", 2)], idempotency_key="k").repeated
    assert [ledger.show(f"memo/{key}").fields["n"] for key in ("1", "2", "new")] == [2, 1, 2]
    assert ledger.verify().sound


def test_what_cannot_be_reached_is_said_without_a_password(postgres_url: str) -> None:
    """An address that is wrong is named without its password, at once."""
    with pytest.raises(Unavailable, match="cannot be reached") as told:
        PostgresEngine("postgresql://ana:secret@127.0.0.1:1/agents")
    assert "secret" not in str(told.value)
    assert "ana@127.0.0.1:1/agents" in str(told.value)
    with pytest.raises((Refused, Unavailable)) as missing:
        PostgresEngine(postgres_url.replace("/woodrat_", "/nothing_"))
    assert "does not exist" in str(missing.value)
    with pytest.raises(Refused, match="cannot be read"):
        PostgresEngine("postgresql://host/db?nonsense")
    assert (
        shown_address("postgresql://ana:secret@[::1]:5432/agents?sslmode=require")
        == "postgresql://ana@[::1]:5432/agents"
    )


def test_sync_by_address_is_refused() -> None:
    """An address of PostgreSQL is not taken for a file or for memory: it says what to do instead."""
    with woodrat.open(":memory:") as ledger, pytest.raises(Refused, match=r"address of PostgreSQL.*export its log"):
        ledger.log.sync("postgresql://db.example/agents")


def test_a_commit_is_heard_however_late_and_after_a_lost_connection(
    postgres_url: str, postgres_engine: PostgresEngine
) -> None:
    """What other programs commit is heard, a transaction that began long before too; so is what nobody listened to."""
    woken = threading.Event()
    postgres_engine.listen(woken.set)
    _until(lambda: postgres_engine.heard() is not None)
    with psycopg.connect(postgres_url) as late:
        late.execute("SELECT pg_current_xact_id()")  # it is under way from here on
        _until_heard(postgres_engine, lambda: ledger_on(postgres_engine).store({"entity_type": "memo", "id": "1"}))
        _until_quiet(postgres_engine)
        _until_heard(postgres_engine, late.commit)
        woken.clear()
        _end_others(late)
        assert woken.wait(60)
        _until(lambda: postgres_engine.heard() is not None)
        other = PostgresEngine(postgres_url)
        try:
            _until_heard(postgres_engine, lambda: ledger_on(other).store({"entity_type": "memo", "id": "2"}))
        finally:
            other.close()


def _until_heard(engine: PostgresEngine, act: Callable[[], object]) -> None:
    before = engine.heard()
    act()
    _until(lambda: engine.heard() not in (None, before))


def _until_quiet(engine: PostgresEngine) -> None:
    """Wait until nothing more is heard of what was committed before."""
    before = None
    while before != engine.heard():
        before = engine.heard()
        time.sleep(0.5)


def test_a_duty_is_one_servers_and_goes_to_another(postgres_url: str) -> None:
    """Of two servers one has a duty; when it ends, or its connection does, the other has it, and never both."""
    one, two = PostgresEngine(postgres_url), PostgresEngine(postgres_url)
    try:
        _until(lambda: one.has_duty("webhooks"))
        assert not two.has_duty("webhooks")
        _until(lambda: two.has_duty("indexing"))
        assert not one.has_duty("indexing")
        one.close()
        _until(lambda: two.has_duty("webhooks"))
        assert not one.has_duty("webhooks")
        with psycopg.connect(postgres_url, autocommit=True) as other:
            _end_others(other)
        _until(lambda: not two.has_duty("webhooks"))
        _until(lambda: two.has_duty("webhooks"))
    finally:
        one.close()
        two.close()


def test_a_foreign_trigger_that_raises_is_named_as_one(postgres_url: str, postgres_engine: PostgresEngine) -> None:
    """A trigger that somebody else made on our tables undoes the write, which says so in a sentence."""
    ledger = ledger_on(postgres_engine)
    ledger.store({"entity_type": "memo", "id": "1"})
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not today'; END $$")
        other.execute("CREATE TRIGGER theirs BEFORE INSERT ON woodrat.entry FOR EACH ROW EXECUTE FUNCTION no()")
        with pytest.raises(Unavailable, match=r"did not make hindered this call \(not today\)\. Nothing of this call"):
            ledger.store({"entity_type": "memo", "id": "2"})
        other.execute("DROP TRIGGER theirs ON woodrat.entry")
    ledger.store({"entity_type": "memo", "id": "2"})


def _end_others(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold in time"
        time.sleep(0.01)
