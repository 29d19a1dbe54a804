"""`python3 dev.py bench --postgres`: stores on PostgreSQL against raw rows of the same bytes on the same server.

The server is started for the run, from the wheel that tests use, with the settings that make a commit durable; SQLite
is measured beside it, in the same minutes. Every row has two ratios: by the clock, and by what the processor worked on
either side, the server's processes included, which says more on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from tests import postgres

import woodrat
from bench import place, postgres_servers, table
from bench.growth.processes import tree, worked_seconds
from bench.records import AGENTS, Records
from bench.stage import Pair, Said, Told
from woodrat.engines.postgres.migration import migrate
from woodrat.ledger.committer import Committer

BATCH, DEPTH = 1_000, 5
"""Entities of a ledger, all of which are spoken of by a batch, and observations of each before anything is measured."""
SINGLES, BATCHES = 400, 12
"""How many stores and batches are measured."""
CLIENTS, CALLS = 32, 12
"""Who writes at once, and how many writes each makes."""
PROCESSES = (1, 2, 4)
"""How many processes write at once, each to a tenant of its own."""
DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "autovacuum": "on"}
"""How the server is started."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One row, for one engine."""

    engine: str
    title: str
    ours_us: float
    """By the clock, the median of turns, for one record or call."""
    against_us: float
    ours_work_us: float
    """What the processor worked for it, on both sides of the connection."""
    against_work_us: float
    goal: float | None
    turns: int

    @property
    def value(self) -> float:
        """Ours over the other side, by the clock."""
        return self.ours_us / self.against_us

    @property
    def work(self) -> float:
        """Ours over the other side, by the work of the processor."""
        return self.ours_work_us / self.against_work_us

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached by the clock."""
        return None if self.goal is None else self.value <= self.goal


class PostgresRaw:
    """One table of rows under a number, through psycopg alone."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._connection.execute("CREATE TABLE said (id bigint PRIMARY KEY, body bytea NOT NULL)")
        self._next = 0

    def add(self, row: tuple[bytes]) -> None:
        """Insert one row, in a commit of its own."""
        self._next += 1
        self._connection.execute("INSERT INTO said VALUES (%s, %b)", (self._next, row[0]))

    def add_all(self, rows: Sequence[tuple[bytes]]) -> None:
        """Copy many rows in one transaction."""
        with (
            self._connection.cursor() as cursor,
            cursor.copy("COPY said FROM STDIN (FORMAT BINARY)") as copy,
        ):
            copy.set_types(["int8", "bytea"])
            for (body,) in rows:
                self._next += 1
                copy.write_row((self._next, body))

    def add_arrays(self, rows: Sequence[tuple[bytes]]) -> None:
        """Insert many rows from arrays, in a commit of their own."""
        numbers = list(range(self._next + 1, self._next + 1 + len(rows)))
        self._next += len(rows)
        bodies = [body for (body,) in rows]
        self._connection.execute("INSERT INTO said SELECT * FROM unnest(%s::bigint[], %b::bytea[])", (numbers, bodies))

    def close(self) -> None:
        self._connection.close()


class PostgresPair(Pair):
    """A ledger and a raw table with the same bodies, in two databases of one server."""

    def __init__(self, folder: Path, url: str, raw_url: str, entities: int) -> None:
        Told.__init__(self, folder / "postgres", url)
        self.entities = entities
        self.raw: Any = PostgresRaw(raw_url)


def measure(
    engine: str,
    title: str,
    turns: Iterable[Sequence[Said]],
    ours: Callable[[Said], object],
    against: Callable[[Said], object],
    worked: Callable[[], float],
    *,
    per: int = 1,
    warm: int,
    goal: float | None,
) -> Figure:
    """Let both sides take turns; return medians of the clock, and the mean of the work."""
    clock: tuple[list[float], list[float]] = ([], [])
    work = [0.0, 0.0]
    for number, items in enumerate(turns):
        for side, call in enumerate((against, ours)):
            worked_before, before = worked(), time.perf_counter()
            for item in items:
                call(item)
            took, worked_for = time.perf_counter() - before, worked() - worked_before
            if number >= warm:
                clock[side].append(took / per * 1e6)
                work[side] += worked_for / per * 1e6
    count = len(clock[0])
    against_us, ours_us = map(median, clock)
    return Figure(engine, title, ours_us, against_us, work[1] / count, work[0] / count, goal, count)


def pair_rows(engine: str, pair: Pair, worked: Callable[[], float], quick: bool) -> Iterator[Figure]:
    """Yield what a single store and a batch take, against raw rows of the same bytes."""
    goals = (2.5, 10.0) if engine == "postgres" else (None, None)
    share = 4 if quick else 1
    yield measure(
        engine,
        "one store / one raw INSERT, committed",
        pair.said(1, turns=SINGLES // share + 20),
        lambda said: pair.store(said.batch),
        lambda said: pair.raw.add(said.rows[0]),
        worked,
        warm=20,
        goal=goals[0],
    )
    yield measure(
        engine,
        f"batch of {BATCH:,}, a record / raw COPY or bulk insert, a row",
        pair.said(BATCH, turns=max(4, BATCHES // share) + 2),
        lambda said: pair.store(said.batch),
        lambda said: pair.raw.add_all(said.rows),
        worked,
        per=BATCH,
        warm=2,
        goal=goals[1],
    )


def arrays_row(pair: PostgresPair, worked: Callable[[], float], quick: bool) -> Figure:
    """Return what a record of a batch takes on PostgreSQL, against a raw row of arrays."""
    return measure(
        "postgres",
        f"batch of {BATCH:,}, a record / raw INSERT from arrays, a row",
        pair.said(BATCH, turns=max(4, BATCHES // (4 if quick else 1)) + 2),
        lambda said: pair.store(said.batch),
        lambda said: pair.raw.add_arrays(said.rows),
        worked,
        per=BATCH,
        warm=2,
        goal=None,
    )


def group_row(engine: str, told: Told, worked: Callable[[], float]) -> Figure:
    """Return what a call takes where 32 clients share commits, as a server has it, against a commit for each call."""
    batches = [[told.records.batch([number]) for _ in range(CALLS)] for number in range(CLIENTS)]
    both: list[tuple[float, float]] = []
    with Committer(told.ledger.context.engine) as committer:
        shared = {agent: told.ledger.as_agent(agent) for agent in AGENTS}

        def grouped(batch: Any) -> None:
            ledger = shared[batch.agent]
            committer.submit(lambda: ledger.store(batch.records, observed_at=batch.observed_at)).result()

        for call in (told.store, grouped, told.store, grouped):

            def client(several: list[Any], call: Callable[[Any], object] = call) -> None:
                for batch in several:
                    call(batch)

            threads = [threading.Thread(target=client, args=(several,)) for several in batches]
            worked_before, before = worked(), time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            calls = CLIENTS * CALLS / 1e6
            both.append(((time.perf_counter() - before) / calls, (worked() - worked_before) / calls))
            batches = [[told.records.batch([number]) for _ in range(CALLS)] for number in range(CLIENTS)]
    (_, _), (_, _), alone, together = both
    title = f"{CLIENTS} clients: a store in a shared commit / one commit each"
    goal = 0.2 if engine == "postgres" else None
    return Figure(engine, title, together[0], alone[0], together[1], alone[1], goal, 1)


def _write(url: str, tenant: str, begin: Any, seconds: float, done: Any, end: Any) -> None:
    """Store single records to a tenant for some seconds; say how many, and what the processor worked for them."""
    records = Records(tenant)
    with woodrat.open(url, tenant=tenant, agent=AGENTS[0]) as ledger:
        batch = records.batch(range(100))
        ledger.store(batch.records, observed_at=batch.observed_at)
        begin.wait()
        count, until, before = 0, time.perf_counter() + seconds, time.process_time()
        while time.perf_counter() < until:
            batch = records.batch([count % 100])
            ledger.store(batch.records, observed_at=batch.observed_at)
            count += 1
        done.put((count, time.process_time() - before))
        end.wait()  # what the server worked is read while its processes are there


def process_rows(url: str, server: int | None, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield what 1, 2 and 4 processes store, each to a tenant of its own."""
    context = multiprocessing.get_context("spawn")
    for number in PROCESSES:
        begin, done, end = context.Barrier(number + 1), context.Queue(), context.Barrier(number + 1)
        processes = [
            context.Process(target=_write, args=(url, f"tenant-{number}-{each}", begin, seconds, done, end))
            for each in range(number)
        ]
        for process in processes:
            process.start()
        begin.wait()
        before = _worked_of(server)
        counts = [done.get() for _ in processes]
        worked = _worked_of(server) - before
        end.wait()
        for process in processes:
            process.join()
        calls = sum(count for count, _ in counts)
        yield {
            "processes": number,
            "stores_a_second": calls / seconds,
            "client_work_us": sum(work for _, work in counts) / calls * 1e6,
            "server_work_us": worked / calls * 1e6,
        }


_WORKED: dict[int, float] = {}
"""What the processes of the server worked until they were last seen."""


def _worked_of(pid: int | None) -> float:
    """Return what a server worked, processes that have ended included."""
    if pid is not None:
        _WORKED.update((each, worked_seconds([each])) for each in tree(pid))
        return sum(_WORKED.values())
    return 0.0


@contextmanager
def server() -> Iterator[tuple[str, int | None]]:
    """Give a durable server, and its process; or that of `WOODRAT_TEST_PG`, whose work nobody sees."""
    given = os.environ.get("WOODRAT_TEST_PG")
    if given:
        yield given, None
        return
    url, pid, folder = postgres.start(**DURABLE)
    try:
        yield url, pid
    finally:
        postgres.stop(pid, folder)


def _database(url: str, name: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    return postgres.of(url, name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; fail when a goal is missed."""
    parser = argparse.ArgumentParser(prog="bench --postgres", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--dir", type=Path, help="where SQLite writes; on a disk, or nothing is learnt")
    given = parser.parse_args(arguments)
    figures: list[Figure] = []
    with ExitStack() as stack:
        folder = stack.enter_context(place.folder(given.dir))
        url, pid = stack.enter_context(server())
        ledger_url, raw_url = _database(url, "woodrat_bench"), _database(url, "woodrat_bench_raw")
        migrate(ledger_url)
        pairs = {
            "postgres": PostgresPair(folder, ledger_url, raw_url, BATCH),
            "sqlite": Pair(folder / "sqlite.db", BATCH),
        }
        for engine, pair in pairs.items():
            stack.callback(pair.close)
            pair.load(BATCH, 2 if given.quick else DEPTH)

            def worked(of: int | None = pid if engine == "postgres" else None) -> float:
                return time.process_time() + _worked_of(of)

            rows = [*pair_rows(engine, pair, worked, given.quick), group_row(engine, pair, worked)]
            if isinstance(pair, PostgresPair):
                rows.append(arrays_row(pair, worked, given.quick))
            for figure in rows:
                figures.append(figure)
                if not given.json:
                    print(_line(figure), flush=True)
        seconds = 2.0 if given.quick else 5.0
        processes = list(process_rows(ledger_url, pid, seconds))
        servers = list(postgres_servers.rows(ledger_url, PROCESSES, seconds, lambda: _worked_of(pid)))
    if given.json:
        shown = [{**asdict(each), "value": each.value, "work": each.work, "met": each.met} for each in figures]
        print(json.dumps({"rows": shown, "processes": processes, "servers": servers}, indent=2))
    else:
        for each in processes:
            print(
                f"{each['processes']} processes, a tenant each: {each['stores_a_second']:,.0f} stores/s, work of one "
                f"{each['client_work_us']:,.0f} µs here and {each['server_work_us']:,.0f} µs on the server"
            )
        for each in servers:
            print(
                f"{each['servers']} servers, a tenant and {postgres_servers.CLIENTS} clients each: "
                f"{each['stores_a_second']:,.0f} stores/s over HTTP, work of one {each['server_work_us']:,.0f} µs in "
                f"`woodrat serve` and {each['database_work_us']:,.0f} µs in PostgreSQL"
            )
    return 1 if any(figure.met is False for figure in figures) else 0


def _line(figure: Figure) -> str:
    goal = "-" if figure.goal is None else f"{figure.goal:g}×"
    mark = {True: "met", False: "missed", None: ""}[figure.met]
    return (
        f"{figure.engine:<9} {figure.title:<62} {figure.value:5.2f}× (work {figure.work:5.2f}×) goal {goal:>5} "
        f"{table.quantity(figure.ours_us, 'µs'):>9} / {table.quantity(figure.against_us, 'µs'):>9}  work "
        f"{table.quantity(figure.ours_work_us, 'µs')} / {table.quantity(figure.against_work_us, 'µs')} {mark}"
    ).rstrip()


if __name__ == "__main__":
    sys.exit(main())
