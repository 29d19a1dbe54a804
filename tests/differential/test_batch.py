"""Writes that are merged in one pass against the same, one after the other: the same bytes, reports and refusals."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.differential.histories import AGENTS, TENANTS, History, compare, outcome, plain

from woodrat import Ledger, WoodratError
from woodrat.api.ledger import with_stand_in
from woodrat.clock import Clock
from woodrat.engines.port import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import batch
from woodrat.ledger import write as write_path
from woodrat.testing.ledgers import ledger_on, spelled

FULL: Final = os.environ.get("WOODRAT_FAULTS", "quick") == "full"
HISTORIES, OPERATIONS = (80, 30) if FULL else (8, 12)
GROUPS: Final = 4
"""Histories are run in so many tests, so that they can be spread."""


class StillClock:
    """A clock that moves only when it is told to, and draws nothing: how often it is asked does not show."""

    def __init__(self) -> None:
        self.second = 0

    def now(self) -> str:
        return f"2026-01-01T00:{self.second // 60:02}:{self.second % 60:02}.000000Z"

    def random(self, count: int) -> bytes:
        return bytes(count)


Given = tuple[str, str, dict[str, Any]]
"""A call of `store`: the tenant, the agent, the arguments."""


def stores(chance: random.Random, histories: dict[str, History], number: int) -> Iterator[Given]:
    """Yield calls that arrive together: some again under their key, some that lean on what another of them says."""
    told: list[Given] = []
    for place in range(8):
        tenant, agent, roll = chance.choice(TENANTS), chance.choice(AGENTS), chance.random()
        if told and roll < 0.1:
            tenant, agent, given = chance.choice(told)
        elif roll < 0.25:
            given = {"records": {"entity_type": "thing", "id": f"{number}-{place}"}, "idempotency_key": f"n{number}"}
            tenant, agent = TENANTS[0], AGENTS[0]
        elif told and roll < 0.35:
            said = chance.choice(told)[2]["records"]
            to = f"thing/{said['id']}" if isinstance(said, dict) and "id" in said else "thing/1"
            record = {"entity_type": "thing", "id": f"to {number}-{place}", "$": {"relate": [{"type": "on", "to": to}]}}
            given = {"records": record}
        elif roll < 0.7:
            given = {"records": {"entity_type": "thing", "id": f"{chance.randrange(30)}", **histories[tenant].fields()}}
        else:
            given = histories[tenant].store()
        told.append((tenant, agent, given))
    yield from told


def gathered(engine: Engine, clock: Clock, calls: list[Given]) -> list[bytes]:
    """Return what comes of some calls that are carried out together, in the order given."""
    found: list[Any] = []
    with engine.together():
        waiting = batch.Batch()
        for tenant, agent, given in calls:
            before = len(waiting.calls)
            try:
                with_stand_in(ledger_on(engine, tenant, agent, clock), waiting).store(**given)
            except WoodratError as error:
                found.append(error)
            if len(waiting.calls) > before:
                found.append(waiting.calls[-1])
        waiting.carry_out()
    for place, one in enumerate(found):
        if isinstance(one, write_path.Call):
            found[place] = one.report if one.error is None else one.error
    return [
        spelled([type(one).__name__, one.to_json()]) if isinstance(one, WoodratError) else spelled(["done", plain(one)])
        for one in found
    ]


def _store(given: dict[str, Any], ledger: Ledger) -> Any:
    return ledger.store(**given)


def run(seed: int, one: Engine, other: Engine) -> None:
    """Run one history, its stores gathered on the one side, and compare."""
    chance = random.Random(seed)
    histories = {tenant: History(chance) for tenant in TENANTS}
    clock = StillClock()
    for number in range(OPERATIONS):
        clock.second += chance.choice((0, 1))
        tenant, agent = chance.choice(TENANTS), chance.choice(AGENTS)
        name, call = histories[tenant].next()
        (found, expected), (_, got) = (outcome(call, ledger_on(e, tenant, agent, clock)) for e in (one, other))
        assert got == expected, f"seed {seed}, call {number} ({name}) differs"
        histories[tenant].learn(name, found)
        calls = list(stores(chance, histories, number))
        expected_all = []
        for who, agent, given in calls:
            found, told = outcome(partial(_store, given), ledger_on(other, who, agent, clock))
            histories[who].learn("store", found)
            expected_all.append(told)
        assert gathered(one, clock, calls) == expected_all, f"seed {seed}, after call {number}"
    for tenant in dict.fromkeys(TENANTS):
        compare(one, other, tenant, chance)


def engines(folder: Path, seed: int) -> Iterator[tuple[Engine, Engine]]:
    """Yield pairs of new engines: of memory, of files."""
    yield InMemoryEngine(), InMemoryEngine()
    files = SqliteEngine(folder / f"{seed}.db"), SqliteEngine(folder / f"{seed}-other.db")
    yield files
    for engine in files:
        engine.close()


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count how many calls are gathered at a time."""
    found: list[int] = []
    write = batch.SharedPass.write

    def counting(self: Any) -> Any:
        found.append(len(self.members))
        return write(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch.SharedPass, "write", counting)
        yield found


@pytest.mark.parametrize("group", range(GROUPS))
def test_gathered_writes_are_writes_one_after_the_other(tmp_path: Path, group: int) -> None:
    """Stores carried out together leave the log, the reports, the refusals and the state of stores in that order."""
    with counted() as sizes:
        for seed in range(group, HISTORIES, GROUPS):
            for one, other in engines(tmp_path, seed):
                run(seed, one, other)
    assert sum(size for size in sizes if size > 1) > sum(sizes) / 3, f"hardly anything was gathered: {sizes}"


def _at_once(self: Any) -> Any:
    return [range(len(self.members))]


def _without_order(self: Any) -> Any:
    return ROUNDS(self)[::-1]


ROUNDS: Final = batch.SharedPass._rounds
TAKE: Final = batch.SharedPass.take


def _refused_at_once(self: Any, call: Any) -> bool:
    members, self.members = self.members, []
    try:
        return bool(TAKE(self, call))
    finally:
        members += self.members
        self.members = members


@pytest.mark.parametrize(
    ("method", "fault"),
    [("_rounds", _at_once), ("_rounds", _without_order), ("take", _refused_at_once)],
)
def test_careless_gathering_is_found(monkeypatch: pytest.MonkeyPatch, method: str, fault: Callable[..., Any]) -> None:
    """A planted fault is found: calls merged at once or out of order, refusals that came too soon."""
    monkeypatch.setattr(batch.SharedPass, method, fault)
    with pytest.raises(AssertionError):
        _run_some()


def _run_some() -> None:
    for seed in range(40):
        run(seed, InMemoryEngine(), InMemoryEngine())
