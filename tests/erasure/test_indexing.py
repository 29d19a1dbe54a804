"""Erasing while indexes go on: a step that read what is erased by now puts none of it down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat import Ledger
from woodrat.api.trailing_indexes import TRAILING
from woodrat.canon.ids import TenantId
from woodrat.engines.transaction import Transaction
from woodrat.ledger import indexer, refold
from woodrat.recall import index as recall_index

SECRET = "Barcelona"
ANA = {"entity_type": "contact", "name": "Ana Rivera", "city": SECRET}
APART = ("recall vectors", "refold")
"""What has nothing to read here: these wait for a model, or for a new schema."""


def bring_on(ledger: Ledger) -> None:
    """Bring all indexes up to date."""
    while indexer.go_on(ledger.context, TRAILING):
        pass


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    woodrat.init(tmp_path / "keys")
    with woodrat.open(tmp_path / "a.db", agent="crm", keys=tmp_path / "keys") as found:
        found.store([ANA, {"entity_type": "contact", "name": "Bo", "city": "Lund"}])
        with found.run("Where does Ana live?", subject="contact/Ana Rivera") as run:
            run.show("contact/Ana Rivera")
            run.answer(f"In {SECRET}.")
        yield found


def erase_in_between(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have Ana erased before the next transaction begins, whatever it is for; return what is noted of that."""
    engine, done = ledger.context.engine, list[str]()
    begin = engine.transaction

    def transaction(tenant: TenantId) -> AbstractContextManager[Transaction]:
        if not done:
            done.append("begun")
            ledger.erase("contact/Ana Rivera", reason="asked to be forgotten")
        return begin(tenant)

    monkeypatch.setattr(engine, "transaction", transaction)
    return done


def rows_with_the_secret(ledger: Ledger) -> set[str]:
    """Return the indexes that hold it, in words as search has them or as it was written."""
    forms = (SECRET.encode(), SECRET.lower().encode())
    with ledger.context.engine.view(ledger.tenant) as view:
        names = view.index_names()
        rows = ((name, row) for name in names for row in view.lives(name))
        return {name for name, row in rows if any(form in row.key or form in row.value for form in forms)}


@pytest.mark.parametrize("name", [index.name for index in TRAILING if index.name not in APART])
def test_a_step_that_read_what_is_erased_puts_none_of_it_down(
    name: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever index goes on: nothing of it is in any row, and the log agrees with all that is derived."""
    (chosen,) = (index for index in TRAILING if index.name == name)
    done = erase_in_between(ledger, monkeypatch)
    for _ in range(20):
        chosen.go_on(ledger.context, 1_000)
    assert done, "there was something to read"
    monkeypatch.undo()
    assert rows_with_the_secret(ledger) == set()
    bring_on(ledger)
    assert rows_with_the_secret(ledger) == set()
    assert ledger.verify(deep=True).sound


def test_states_kept_anew_hold_nothing_that_was_erased(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema has states of its type folded again; what is erased between the fold and the write stays away."""
    ledger.schemas.register(
        {"title": "contact", "properties": {"name": {"type": "string"}, "city": {"type": "string", "maxLength": 40}}}
    )
    context = ledger.context
    done = erase_in_between(ledger, monkeypatch)
    while refold.go_on(context.engine, context.tenant, context.policies):
        pass
    assert done, "there were states to keep anew"
    monkeypatch.undo()
    assert ledger.verify(deep=True).sound
    with pytest.raises(woodrat.NotFound):
        ledger.show("contact/Ana Rivera")


def test_a_step_that_does_not_ask_is_caught(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: steps write whatever they read."""
    monkeypatch.setattr(recall_index, "erased_since", lambda *given: False)
    (chosen,) = (index for index in TRAILING if index.name == "recall")
    assert erase_in_between(ledger, monkeypatch) == []
    chosen.go_on(ledger.context, 1_000)
    assert rows_with_the_secret(ledger)


def test_recall_reads_a_log_with_an_erasure_far_behind_its_beginning_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was erased before a log is read for the first time is no reason to begin again, part after part."""
    monkeypatch.setattr(recall_index, "CHUNK_ENTRIES", 4)
    for number in range(12):
        ledger.store({"entity_type": "city", "name": f"City {number}", "mayor": f"Mayor {number}"})
    ledger.erase("contact/Ana Rivera", reason="asked to be forgotten")
    ledger.store({"entity_type": "city", "name": "Girona", "mayor": "Lluc"})
    forgotten: list[Any] = []
    forget = recall_index.CachedIndex.forget

    def count(self: recall_index.CachedIndex, spare: bool = False) -> None:
        forgotten.append(forget(self, spare))

    monkeypatch.setattr(recall_index.CachedIndex, "forget", count)
    found = recall_index.cached_index(ledger.context, None)
    recall_index.follow(ledger.context, None, found)
    assert not forgotten
    assert any("Lluc" in text for text in found.index.texts)
    ledger.erase("city/Girona", reason="asked to be forgotten")
    recall_index.follow(ledger.context, None, found)
    assert len(forgotten) == 1
    assert not any("Lluc" in text for text in found.index.texts)
