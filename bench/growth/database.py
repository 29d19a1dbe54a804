"""The database: ledgers of the stock on a PostgreSQL server, each a copy of the file with the same bytes.

A ledger is copied once, with its indexes made there, and every case gets a database that has it as its template.
What a call costs is the work of both sides: of the process that calls, and of all processes of the server.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from tests import postgres

import woodrat
from bench.growth import processes
from bench.growth.meter import Meter, in_child
from woodrat.engines.postgres.migration import migrate
from woodrat.ledger import indexer

SETTINGS = {"autovacuum": "off"}
"""How the server is started, beside what tests set: a vacuum would be counted with whatever is called meanwhile."""


class Database:
    """A PostgreSQL server for a run, with the ledgers of the stock in it; a context manager."""

    def __init__(self, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        """How long a copy may take."""
        self._own = postgres.Own(**SETTINGS)
        self._made: dict[Path, str] = {}
        self._numbers = itertools.count()

    def __enter__(self) -> Database:
        self._own.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._own.__exit__(*error)

    @contextmanager
    def copy(self, file: Path, indexes: tuple[Any, ...]) -> Iterator[str]:
        """Lend a database with the ledger of a file, and these indexes up to date; yield its address."""
        template = self._made.get(file)
        if template is None:
            template = self._made[file] = self._take_over(file, indexes)
        name = f"case_{next(self._numbers)}"
        self._run(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield postgres.of(self._own.url, name)
        finally:
            self._run(f"DROP DATABASE {name} WITH (FORCE)")

    def meter(self) -> Meter:
        """Return what counts the work of the server too."""
        assert self._own.pid is not None
        return ServerMeter(self._own.pid)

    def _take_over(self, file: Path, indexes: tuple[Any, ...]) -> str:
        name = f"ledger_{len(self._made)}"
        self._run(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        url = postgres.of(self._own.url, name)
        migrate(url)

        def work() -> Iterator[dict[str, Any]]:
            woodrat.copy(file, url)
            if indexes:
                with woodrat.open(url, agent="indexer") as ledger:
                    while indexer.go_on(ledger.context, indexes):
                        pass
            yield {}

        problem = in_child(work, self._seconds_max).problem
        if problem is not None:
            raise SystemExit(f"{file} could not be copied to PostgreSQL: {problem}")
        return name

    def _run(self, statement: str) -> None:
        with psycopg.connect(self._own.url, autocommit=True) as connection:
            connection.execute(statement)


class ServerMeter(Meter):
    """Counts what this process and a server work, those of its processes that have ended included."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self._pid = pid
        self._seen: dict[int, float] = {}

    def _worked_seconds(self) -> float:
        self._seen.update((each, processes.worked_seconds([each])) for each in processes.tree(self._pid))
        return super()._worked_seconds() + sum(self._seen.values())
