"""Undoing: a write that fails takes back what it changed, and costs the next one nothing where that is nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from woodrat import Ledger, Refused
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.testing.ledgers import ledger_on

ANA = {"entity_type": "contact", "name": "Ana Rivera", "city": "Lund"}
BAD = {"entity_type": "contact", "name": "Ana Rivera", "city": 42}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(tmp_path / "agents.db")
    yield engine
    engine.close()


def alone(engine: SqliteEngine) -> AbstractContextManager[None]:
    """One write, one commit."""
    return nullcontext()


def shared(engine: SqliteEngine) -> AbstractContextManager[None]:
    """Several writes in one commit."""
    return engine.together()


def at_hand(engine: SqliteEngine, ledger: Ledger) -> int:
    """Return how many entities of a tenant the writer has at hand."""
    memory = engine._writer._memory.get(ledger.tenant)
    return 0 if memory is None else len(memory.entities)


@pytest.mark.parametrize("way", [alone, shared])
def test_a_refused_write_forgets_nothing(
    engine: SqliteEngine, way: Callable[[SqliteEngine], AbstractContextManager[None]]
) -> None:
    """What is known of entities outlasts a call that is refused before anything was written."""
    ledger = ledger_on(engine)
    with way(engine):
        ledger.store(ANA)
        with pytest.raises(Refused, match="expected text, got 42"):
            ledger.store(BAD)
        assert at_hand(engine, ledger) == 1
        ledger.store({**ANA, "city": "Porto"})
    assert ledger.show("contact/Ana Rivera").fields["city"] == "Porto"
    assert len(list(ledger.observations("contact/Ana Rivera"))) == 2
    assert ledger.rebuild().agreed


@pytest.mark.parametrize("way", [alone, shared])
def test_a_write_that_changed_something_is_forgotten(
    engine: SqliteEngine, way: Callable[[SqliteEngine], AbstractContextManager[None]]
) -> None:
    """What a write that was undone made known counts no more, and the next one starts from the tables."""
    ledger = ledger_on(engine)
    ledger.store(ANA)
    with way(engine):
        assert ledger.store({**ANA, "city": "Oslo"}, dry_run=True).changes
        assert at_hand(engine, ledger) == 0
        ledger.store({**ANA, "company": "Acme"})
    assert ledger.show("contact/Ana Rivera").fields == {"city": "Lund", "company": "Acme", "name": "Ana Rivera"}
    assert ledger.rebuild().agreed
