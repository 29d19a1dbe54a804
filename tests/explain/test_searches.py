"""Searches for impacts are remembered between pages, and forgotten once something was erased."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runs.story import loan, write
from tests.runs.test_reader import named

import woodrat
from woodrat.explain import verbs
from woodrat.explain.reader.impact import ImpactSearch
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[woodrat.Ledger]:
    """An empty ledger with keys."""
    make_keys(tmp_path / "keys", FixedClock())
    with woodrat.open(tmp_path / "a.db", agent="loan-officer", keys=tmp_path / "keys") as opened:
        yield opened


def test_a_page_by_cursor_does_not_search_again(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages that a cursor leads to are those of one search, until something is erased."""
    ledger.store({"entity_type": "loan", "id": "42", "creditScore": 580})
    said = ledger.observations("loan/42").items[0].observation.id
    for number in range(5):
        write(ledger, loan(named(number), observation=said))
    expected = [each.run for each in ledger.impact(said, limit=100).runs]
    made: list[object] = []

    class Counted(ImpactSearch):
        """A search that is counted."""

        def __init__(self, *given: object) -> None:
            made.append(given)
            super().__init__(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(verbs, "ImpactSearch", Counted)
    page = ledger.impact(said, limit=2)
    runs, cursors = [each.run for each in page.runs], [page.cursor]
    while page.cursor is not None:
        page = ledger.impact(said, limit=2, cursor=page.cursor)
        runs += [each.run for each in page.runs]
        cursors.append(page.cursor)
    assert (len(made), len(runs)) == (1, 5)
    assert runs == expected
    ledger.store({"entity_type": "person", "id": "1", "name": "Ann"})
    ledger.impact(said, limit=2, cursor=cursors[0])
    assert len(made) == 1, "a write changes nothing about the past"
    ledger.erase("person/1", reason="asked to")
    ledger.impact(said, limit=2, cursor=cursors[0])
    assert len(made) == 2
