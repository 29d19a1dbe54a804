"""A PostgreSQL server that fails: killed, cut off in a commit, with a full disk. Nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests import postgres
from tests.faults.processes import FULL, ROOT
from tests.round_trips import cut_commit
from tests.server.server import Server

from woodrat import Unavailable
from woodrat.api.ledger import Ledger
from woodrat.canon.ids import TenantId
from woodrat.clock import SystemClock
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.engines.postgres.migration import migrate
from woodrat.ledger.committer import Committer
from woodrat.ledger.own_policy import registry
from woodrat.server.app import App
from woodrat.server.keys import Open
from woodrat.testing.ledgers import ledger_on

PATIENCE = 60.0
ROUNDS = 60 if FULL else 12
ONE, TWO = TenantId("one"), TenantId("two")


@pytest.mark.parametrize("arrived", [True, False])
def test_a_shared_commit_that_is_cut_is_settled_for_all(
    postgres_engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    """Calls of two tenants that share a commit are all acknowledged, or all told that nothing was written."""
    ledgers = [ledger_on(postgres_engine, tenant) for tenant in (ONE, TWO)]
    for ledger in ledgers:
        ledger.store({"entity_type": "memo", "id": "0"})
    cut = cut_commit(monkeypatch, partial(_wait_for_size, postgres_engine, TWO, 2) if arrived else None)
    outcomes = _shared(postgres_engine, ledgers, "1")
    assert cut
    for outcome in outcomes:
        if arrived:
            assert getattr(outcome, "position", None) == 1
        else:
            assert isinstance(outcome, Unavailable)
            assert "Nothing of this call was written" in str(outcome)
    for ledger in ledgers:
        again = ledger.store({"entity_type": "memo", "id": "1"}, idempotency_key="1")
        assert (again.position, again.repeated) == (1, arrived)
        assert ledger.verify().sound


def _shared(engine: PostgresEngine, ledgers: list[Ledger], id: str) -> list[Any]:
    """Store one record in each ledger, in one commit; return the reports, or what went wrong."""
    held = threading.Event()
    with Committer(engine) as committer:
        committer.submit(held.wait)  # what is submitted meanwhile shares a commit
        futures = [
            committer.submit(
                lambda ledger=ledger: ledger.store({"entity_type": "memo", "id": id}, idempotency_key=id),  # type: ignore[misc]
                tenant=ledger.tenant,
            )
            for ledger in ledgers
        ]
        held.set()
        return [future.exception() or future.result() for future in futures]


def _wait_for_size(engine: PostgresEngine, tenant: str, size: int) -> None:
    with psycopg.connect(engine.url, autocommit=True) as other:
        for _ in range(1_000):
            row = other.execute("SELECT size FROM woodrat.head WHERE tenant = %s", (tenant,)).fetchone()
            if row == (size,):
                return
    raise AssertionError("the commit did not arrive")


def test_shared_commits_of_two_servers_never_wait_for_each_other(
    postgres_url: str, postgres_engine: PostgresEngine
) -> None:
    """Two servers write the same tenants in opposite order, from their first entries on: no call fails."""
    other = PostgresEngine(postgres_url)
    together = threading.Barrier(2)

    def write(one: PostgresEngine, tenants: list[TenantId]) -> list[Any]:
        ledgers = [ledger_on(one, tenant, agent=f"{id(one)}") for tenant in tenants]
        outcomes: list[Any] = []
        for number in range(ROUNDS):
            together.wait(PATIENCE)
            outcomes += _shared(one, ledgers, f"{tenants[0]}-{number}")
        return outcomes

    try:
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(write, postgres_engine, [ONE, TWO]), pool.submit(write, other, [TWO, ONE])]
            outcomes = [outcome for future in both for outcome in future.result(PATIENCE)]
    finally:
        other.close()
    assert [outcome for outcome in outcomes if isinstance(outcome, BaseException)] == []
    for tenant in (ONE, TWO):
        assert ledger_on(postgres_engine, tenant).position == 2 * ROUNDS - 1
        assert ledger_on(postgres_engine, tenant).verify().sound


@pytest.fixture(scope="module")
def own() -> Iterator[postgres.Own]:
    """A server that may be killed."""
    if os.environ.get("WOODRAT_TEST_PG"):
        pytest.skip("WOODRAT_TEST_PG names a server that is not ours to kill")
    with postgres.Own() as server:
        migrate(server.url)
        yield server


def test_a_server_that_is_killed_and_started_again(own: postgres.Own, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls fail with what to do while it is away and go on by themselves after it; each is stored once."""
    monkeypatch.setattr("woodrat.engines.postgres.engine.CONNECT_SECONDS", 2)
    engine = PostgresEngine(own.url)
    acknowledged: dict[str, int] = {}
    failed: list[Unavailable] = []
    done = threading.Event()

    def write(name: int) -> None:
        ledger = ledger_on(engine, "killed", agent=f"writer-{name}")
        number = 0
        while not done.is_set():
            id = f"{name}-{number}"
            try:
                report = ledger.store({"entity_type": "memo", "id": id}, idempotency_key=id)
            except Unavailable as problem:
                failed.append(problem)
                done.wait(0.2)
                continue
            acknowledged[id] = report.position
            number += 1

    writers = [threading.Thread(target=write, args=(name,)) for name in range(3)]
    app = App(engine, Open("killed", "reader"), clock=SystemClock(), policies=registry(()))
    served = Server(app).__enter__()
    try:
        for writer in writers:
            writer.start()
        _until(lambda: len(acknowledged) > 20)
        own.end(signal.SIGKILL)
        _until(lambda: len(failed) > 0)
        absent = _cli(own.url, "show", "memo/0-0", "--tenant", "killed", "-o", "json")
        assert absent.returncode == 4
        assert "cannot be reached" in absent.stderr
        answer = served.call("GET", "/v1/entities/memo/0-0", timeout=PATIENCE)  # it is waited for a connection first
        assert (answer.status, answer.json["code"]) == (503, "unavailable")
        assert answer.headers["content-type"] == "application/problem+json"
        before = len(acknowledged)
        own.start()
        _until(lambda: len(acknowledged) > before + 20)
        _until(lambda: served.call("GET", "/v1/entities/memo/0-0", timeout=PATIENCE).status == 200)
    finally:
        if own.pid is None:  # other tests use it too
            own.start()
        done.set()
        served.__exit__()
        for writer in writers:
            writer.join(PATIENCE)
    ledger = ledger_on(engine, "killed")
    for id, position in acknowledged.items():
        assert ledger.show(f"memo/{id}").version == position
    with engine.view(TenantId("killed")) as view:
        written = len(list(view.entries(kinds={"observation"})))
    assert len(acknowledged) <= written <= len(acknowledged) + len(writers), "a key is stored once"
    assert ledger.verify().sound
    engine.close()


def _cli(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}", "WOODRAT_DB": url}
    command = [sys.executable, "-m", "woodrat", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold in time"
        time.sleep(0.02)


@contextmanager
def _small_disk(folder: Path, owner: Path, size: str = "12M") -> Iterator[Path]:
    """Give a folder on a file system of a few megabytes."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        shutil.rmtree(folder)
        pytest.skip("a small file system cannot be mounted here")
    try:
        about = owner.stat()
        os.chown(folder, about.st_uid, about.st_gid)
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk(own: postgres.Own) -> None:
    """What does not fit is refused with what to do, all that was acknowledged stays, and with room it goes on."""
    with _small_disk(own.folder / "small", own.folder) as folder:
        with psycopg.connect(own.url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
            connection.execute("CREATE DATABASE small TEMPLATE template0 ENCODING 'UTF8' TABLESPACE small")
        url = postgres.of(own.url, "small")
        migrate(url)
        engine = PostgresEngine(url)
        ledger = ledger_on(engine, "full")
        stored = 0
        try:

            def fill() -> None:
                nonlocal stored
                while stored < 1_000:
                    ledger.store(_large(stored), idempotency_key=str(stored))
                    stored += 1

            with pytest.raises(Unavailable, match="the disk of the server is full") as told:
                fill()
            assert "Nothing of this call was written" in str(told.value)
            assert stored > 0
            refused = _cli(url, "store", "--tenant", "full", "--json", '{"entity_type": "memo", "id": "x"}')
            assert refused.returncode in (0, 4), "a small one may still fit"
            assert ledger.show("memo/0").version == 0
            subprocess.run(["mount", "-o", "remount,size=64M", str(folder)], check=True)
            again = ledger.store(_large(stored), idempotency_key=str(stored))
            assert not again.repeated
            for number in range(stored + 1):
                assert ledger.show(f"memo/{number}").fields["text"] == _large(number)["text"]
            assert ledger.verify().sound
        finally:
            engine.close()
            with psycopg.connect(own.url, autocommit=True) as connection:
                connection.execute("DROP DATABASE small WITH (FORCE)")
                connection.execute("DROP TABLESPACE small")


def test_a_full_disk_of_the_write_ahead_log() -> None:
    """The server breaks off and cannot recover: a call is told; with room it starts, and each call is there once."""
    if os.environ.get("WOODRAT_TEST_PG"):
        pytest.skip("WOODRAT_TEST_PG names a server that is not ours to kill")
    own = postgres.Own()
    try:
        own.make()
        with _small_disk(own.folder / "wal", own.folder, "40M") as folder:
            log = own.data / "pg_wal"
            shutil.copytree(log, folder, dirs_exist_ok=True)
            for path in (folder, *folder.rglob("*")):
                shutil.chown(path, own.folder.stat().st_uid, own.folder.stat().st_gid)
            shutil.rmtree(log)
            log.symlink_to(folder)
            own.start()
            try:
                _fill_write_ahead_log(own, folder)
            finally:
                own.stop()
    finally:
        own.remove()


def _fill_write_ahead_log(own: postgres.Own, folder: Path) -> None:
    migrate(own.url)
    engine = PostgresEngine(own.url)
    ledger = ledger_on(engine, "full")
    stored = 0
    try:

        def fill() -> None:
            nonlocal stored
            while stored < 1_000:
                ledger.store(_large(stored), idempotency_key=str(stored))
                stored += 1

        with pytest.raises(Unavailable) as told:
            fill()
        # Mostly it is the commit that finds no room; the process that writes the log in the background may come first.
        assert re.search(
            "cannot be reached.*Nothing of this call was written|during the commit.*stored once", str(told.value)
        )
        assert stored > 0
        # It breaks off at once, begins to recover, finds no room for the next segment either, and gives up.
        assert own.ended(within=PATIENCE) == 1
        assert re.search(
            r'PANIC:  could not write to file "pg_wal/[^\n]*No space left on device\n'
            r".*reinitializing\n.*redo done.*FATAL:  could not write to file \"pg_wal/[^\n]*No space left on device\n"
            r".*shutting down due to startup process failure\n.*database system is shut down\n$",
            own.log(),
            re.DOTALL,
        ), own.log()
        subprocess.run(["mount", "-o", "remount,size=256M", str(folder)], check=True)
        own.start()
        again = ledger.store(_large(stored), idempotency_key=str(stored))
        assert again.position == stored
        for number in range(stored + 1):
            assert ledger.show(f"memo/{number}").fields["text"] == _large(number)["text"]
        assert ledger.position == stored, "nothing is there twice"
        assert ledger.verify().sound
    finally:
        engine.close()


def _large(number: int) -> dict[str, Any]:
    """Return a record that takes a hundred kilobytes, however it is packed."""
    return {"entity_type": "memo", "id": str(number), "text": _noise(number)}


def _noise(number: int) -> str:
    return random.Random(number).randbytes(50_000).hex()
