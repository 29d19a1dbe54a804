"""A write asks an engine as often for many records as for few: each question is a round trip where it is a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from woodrat import Ledger
from woodrat.canon.ids import TenantId
from woodrat.engines.sqlite.cached_connection import CachedConnection
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.engines.sqlite.transaction import SqliteTransaction
from woodrat.testing.ledgers import ledger_on

FREE = frozenset({"at_hand", "flush", "trim"})
"""What an engine answers without asking anybody, and what it does itself at the end."""


class _Counting:
    """A transaction that counts what it is asked."""

    def __init__(self, write: SqliteTransaction, calls: Counter[str]) -> None:
        self._write, self._calls = write, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._write, name)
        if not callable(found) or name in FREE:
            return found

        def counted(*arguments: Any, **options: Any) -> Any:
            self._calls[name] += 1
            return found(*arguments, **options)

        return counted


class CountingEngine(InMemoryEngine):
    """An engine, as one whose every answer takes a round trip."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def opening(self, writer: CachedConnection, tenant: TenantId) -> Any:
        return _Counting(super().opening(writer, tenant), self.calls)

    def count(self, call: Callable[[], object]) -> Counter[str]:
        """Return how often each question is asked while something is done; rows are put once or not at all."""
        self.calls = Counter()
        call()
        assert self.calls.pop("put", 0) <= 2
        return self.calls


@pytest.fixture
def engine() -> CountingEngine:
    return CountingEngine()


@pytest.fixture
def ledger(engine: CountingEngine) -> Ledger:
    return ledger_on(engine)


def records(start: int, count: int, said: int = 0) -> list[dict[str, Any]]:
    return [
        {"entity_type": "memo", "id": str(number), "email": f"{number}@example.com", "text": f"{number} {said}"}
        for number in range(start, start + count)
    ]


def test_a_batch_asks_as_often_as_one_record(engine: CountingEngine, ledger: Ledger) -> None:
    """Stores of new entities, of known ones and of those whose state is due to be kept ask a fixed number of times."""
    first = ledger.store(records(0, 1))
    assert first.positions
    new = [engine.count(lambda: ledger.store(records(1, 1))), engine.count(lambda: ledger.store(records(2, 90)))]
    assert new[0] == new[1]
    for said in range(1, 17):
        one = engine.count(partial(ledger.store, records(0, 1, said)))
        many = engine.count(partial(ledger.store, records(1, 91, said)))
        assert one == many, said
        assert sum(one.values()) <= 12
    assert sum(new[0].values()) <= 14


def test_the_cost_of_asking_does_not_grow_with_groups_elsewhere(engine: CountingEngine, ledger: Ledger) -> None:
    """Where some entities are joined, others are told apart from them in one look."""
    ledger.store(records(0, 200))
    ledger.merge("memo/0", "memo/1")
    few = engine.count(lambda: ledger.store(records(2, 2, 1)))
    many = engine.count(lambda: ledger.store(records(10, 90, 1)))
    assert few == many
    assert many["find"] == 1


def test_a_rebuild_asks_by_the_part_and_not_by_the_record(engine: CountingEngine, ledger: Ledger) -> None:
    """Deriving everything again asks for a part of the log at a time."""
    ledger.store(records(0, 200))
    ledger.store(records(0, 200, 1))
    engine.calls = Counter()
    ledger.rebuild()
    calls = engine.calls
    assert calls["standings"] <= 6
    assert calls["named"] <= 4
    assert not calls["namers"]
