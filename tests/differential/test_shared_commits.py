"""Writes that share a commit against the same, each with a commit of its own: the same bytes, reports and refusals."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.differential.histories import AGENTS, TENANTS, History, Verb, compare, outcome

from woodrat import Ledger, WoodratError
from woodrat.clock import Clock
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.engines.transaction import Transaction
from woodrat.testing.ledgers import ledger_on

FULL: Final = os.environ.get("WOODRAT_FAULTS", "quick") == "full"
HISTORIES, OPERATIONS = (80, 30) if FULL else (8, 12)
GROUPS: Final = 4
"""Histories are run in so many tests, so that they can be spread."""
WRITES: Final = frozenset(
    {"store", "correct", "retract", "delete", "restore", "relate", "merge", "split", "register", "source", "tag"}
)


class StillClock:
    """A clock that moves only when it is told to, and draws nothing: how often it is asked does not show."""

    def __init__(self) -> None:
        self.second = 0

    def now(self) -> str:
        return f"2026-01-01T00:{self.second // 60:02}:{self.second % 60:02}.000000Z"

    def random(self, count: int) -> bytes:
        return bytes(count)


Told = tuple[str, str, Verb]
"""A call that writes: the tenant, the agent, the call."""


def _store(given: dict[str, Any], ledger: Ledger) -> Any:
    return ledger.store(**given)


def calls_at_once(chance: random.Random, histories: dict[str, History], number: int) -> Iterator[Told]:
    """Yield calls that arrive together: some again under their key, some that lean on what another of them says."""
    said: list[tuple[str, str, dict[str, Any]]] = []
    for place in range(8):
        tenant, agent, roll = chance.choice(TENANTS), chance.choice(AGENTS), chance.random()
        if roll < 0.4:
            name = ""
            while name not in WRITES:
                name, call = histories[tenant].next()
            yield tenant, agent, call
            continue
        if said and roll < 0.45:
            tenant, agent, given = chance.choice(said)
        elif roll < 0.55:
            given = {"records": {"entity_type": "thing", "id": f"{number}-{place}"}, "idempotency_key": f"n{number}"}
            tenant, agent = TENANTS[0], AGENTS[0]
        elif said and roll < 0.65:
            records = chance.choice(said)[2]["records"]
            to = f"thing/{records['id']}" if isinstance(records, dict) and "id" in records else "thing/1"
            record = {"entity_type": "thing", "id": f"to {number}-{place}", "$": {"relate": [{"type": "on", "to": to}]}}
            given = {"records": record}
        else:
            given = {"records": {"entity_type": "thing", "id": f"{chance.randrange(30)}", **histories[tenant].fields()}}
        if chance.random() < 0.2:
            given = {**given, "dry_run": True}
        said.append((tenant, agent, given))
        yield tenant, agent, partial(_store, given)


def shared(engine: Engine, clock: Clock, calls: Sequence[Told]) -> list[bytes]:
    """Return what comes of some calls that share a commit, in the order given."""
    with engine.together():
        return [outcome(call, ledger_on(engine, who, agent, clock))[1] for who, agent, call in calls]


def run(seed: int, one: Engine, other: Engine) -> None:
    """Run one history, its writes sharing commits on the one side, and compare."""
    chance = random.Random(seed)
    histories = {tenant: History(chance) for tenant in TENANTS}
    clock: Clock = (still := StillClock())
    for number in range(OPERATIONS):
        still.second += chance.choice((0, 1))
        tenant, agent = chance.choice(TENANTS), chance.choice(AGENTS)
        name, call = histories[tenant].next()
        (found, expected), (_, got) = (outcome(call, ledger_on(e, tenant, agent, clock)) for e in (one, other))
        assert got == expected, f"seed {seed}, call {number} ({name}) differs"
        histories[tenant].learn(name, found)
        calls = list(calls_at_once(chance, histories, number))
        alone = [outcome(call, ledger_on(other, who, agent, clock)) for who, agent, call in calls]
        assert shared(one, clock, calls) == [spelled for _, spelled in alone], f"seed {seed}, after call {number}"
        for (who, _, _), (found, _) in zip(calls, alone, strict=True):
            histories[who].learn("store", found)
    for tenant in dict.fromkeys(TENANTS):
        compare(one, other, tenant, chance)


def engines(folder: Path, seed: int) -> Iterator[tuple[Engine, Engine]]:
    """Yield pairs of new engines: of memory, of files."""
    yield InMemoryEngine(), InMemoryEngine()
    files = SqliteEngine(folder / f"{seed}.db"), SqliteEngine(folder / f"{seed}-other.db")
    yield files
    for engine in files:
        engine.close()


@pytest.mark.parametrize("group", range(GROUPS))
def test_writes_that_share_a_commit_are_writes_one_after_the_other(tmp_path: Path, group: int) -> None:
    """They leave the log, the reports, the refusals and the state of writes in that order; dry runs leave nothing."""
    for seed in range(group, HISTORIES, GROUPS):
        for one, other in engines(tmp_path, seed):
            run(seed, one, other)


def test_an_undo_that_forgets_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault is found: a dry run whose neighbours go on from what it had changed in memory."""
    monkeypatch.setattr(Transaction, "take_back", lambda self: None)
    with pytest.raises((AssertionError, WoodratError)):
        _run_some()


def _run_some() -> None:
    for seed in range(40):
        run(seed, InMemoryEngine(), InMemoryEngine())
