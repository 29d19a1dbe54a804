"""The engines against each other: one random history, the same bytes, answers and refusals on every engine.

One side is a SQLite database in memory. The other changes between two engines on one file or one database, and closes
and reopens them, at random: what a process keeps at hand must not show.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from tests.differential.histories import AGENTS, TENANTS, History, compare, outcome

from woodrat.engines.engine import Engine
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

FULL: Final = os.environ.get("WOODRAT_FAULTS", "quick") == "full"
HISTORIES, OPERATIONS = (300, 50) if FULL else (10, 25)
GROUPS: Final = 10
"""Histories are run in so many tests, so that they can be spread."""


@dataclass
class Pair:
    """Two engines on one file or one database, closed and reopened by chance."""

    make: Callable[[], Engine]
    chance: random.Random
    engines: list[Engine | None] = field(default_factory=lambda: [None, None])
    reopened: int = 0

    def pick(self) -> Engine:
        """Return one of them, mostly the first."""
        which = 0 if self.chance.random() < 0.8 else 1
        if self.chance.random() < 0.08:
            self.close()
            self.reopened += 1
        found = self.engines[which]
        if found is None:
            found = self.engines[which] = self.make()
        return found

    def close(self) -> None:
        for engine in self.engines:
            if engine is not None:
                engine.close()
        self.engines = [None, None]


def run(seed: int, make: Callable[[], Engine], operations: int) -> dict[str, int]:
    """Run one history on both engines and compare; return how often calls were done and refused."""
    chance = random.Random(seed)
    memory, files = InMemoryEngine(), Pair(make, random.Random(seed))
    clocks = [FixedClock(seed=str(seed)), FixedClock(seed=str(seed))]
    histories = {tenant: History(chance) for tenant in TENANTS}
    counts = {"done": 0, "refused": 0}
    told: list[str] = []
    try:
        for _ in range(operations):
            tenant, agent, strict = chance.choice(TENANTS), chance.choice(AGENTS), chance.random() < 0.05
            name, call = histories[tenant].next()
            told.append(f"{tenant} {agent} {name}")
            sides = [(memory, clocks[0]), (files.pick(), clocks[1])]
            (found, expected), (_, got) = (
                outcome(call, ledger_on(engine, tenant, agent, clock, strict=strict)) for engine, clock in sides
            )
            assert got == expected, f"seed {seed}, call {len(told)} ({told[-1]}) differs"
            histories[tenant].learn(name, found)
            counts["done" if expected.startswith(b'["done"') else "refused"] += 1
        for tenant in dict.fromkeys(TENANTS):
            compare(memory, files.pick(), tenant, chance)
    finally:
        files.close()
    counts["reopened"] = files.reopened
    return counts


@pytest.mark.parametrize("group", range(GROUPS))
def test_engines_answer_alike(tmp_path: Path, group: int) -> None:
    """Equal calls give equal entries, ids, reports, answers and refusals on every engine, reopened or not."""
    total = {"done": 0, "refused": 0, "reopened": 0}
    for seed in range(group * HISTORIES // GROUPS, (group + 1) * HISTORIES // GROUPS):
        for name, count in run(seed, partial(SqliteEngine, tmp_path / f"{seed}.db"), OPERATIONS).items():
            total[name] += count
        for file in tmp_path.iterdir():
            file.unlink()
    assert total["done"] > total["refused"] / 4, f"a history of refusals compares little: {total}"


@pytest.mark.parametrize("group", range(GROUPS if FULL else 2))
def test_postgresql_answers_alike(postgres_database: Callable[[], str], group: int) -> None:
    """The same histories on PostgreSQL; few of them unless all faults are asked for, as a server is slow to ask."""
    count = HISTORIES // GROUPS if FULL else 1
    for seed in range(group * count, (group + 1) * count):
        counts = run(seed, partial(PostgresEngine, postgres_database()), OPERATIONS)
        assert counts["done"] > 0


FORGOTTEN: Final = ("set_entity", "add_naming", "add_index_row", "add_receipt")


@pytest.mark.parametrize("query", FORGOTTEN)
def test_an_engine_that_forgets_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    """A planted fault is found: an engine that leaves out one of its statements differs within a few histories."""
    opened = SqliteEngine.__init__

    def forgetful(self: SqliteEngine, path: str | Path, *, readonly: bool = False) -> None:
        opened(self, path, readonly=readonly)
        text = self.queries[query]
        empty = text.replace("VALUES", "SELECT * FROM (VALUES") + ") WHERE false" if "VALUES" in text else text
        self.queries = {**self.queries, query: empty if "VALUES" in text else f"{text} AND false"}

    monkeypatch.setattr(SqliteEngine, "__init__", forgetful)
    with pytest.raises(AssertionError):
        _run_some(tmp_path)


def _run_some(folder: Path) -> None:
    for seed in range(40):
        run(seed, partial(SqliteEngine, folder / f"{seed}.db"), OPERATIONS)
