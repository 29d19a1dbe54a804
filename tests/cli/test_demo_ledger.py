"""The ledger of the demonstration holds what the stories of the guide need."""

from __future__ import annotations

from pathlib import Path

import pytest

import woodrat
from woodrat.cli import demo_ledger
from woodrat.clock import SystemClock


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> woodrat.Ledger:
    path: Path = tmp_path_factory.mktemp("demo") / "demo.db"
    demo_ledger.make(path)
    return woodrat.open(path, readonly=True)


def test_it_verifies(ledger: woodrat.Ledger) -> None:
    assert ledger.verify().damage == ()


def test_the_rejection_of_loan_42_would_flip_since_maria_corrected_the_score(ledger: woodrat.Ledger) -> None:
    (stale,) = [line for line in ledger.stale().items if line.subject == "loan/42"]
    assert (stale.decision.chosen, stale.outcome, stale.now.chosen) == ("rejected", "flip", "approved")
    (verdict, *_) = ledger.blame("loan/42", "creditScore")["creditScore"]
    assert (verdict.agent, verdict.value) == ("maria", 720)
    assert "mixed up" in str(stale.to_json())


def test_two_runs_with_the_same_inputs_part_where_billing_read_the_invoice(ledger: woodrat.Ledger) -> None:
    runs = ledger.runs.list(subject="contract/kline").items
    sentence = ledger.runs.diff(runs[-1].id, runs[0].id).sentence
    assert "billing-bot wrote payment_terms Net-45" in sentence
    assert "invoice-118.txt" in sentence


def test_something_is_disputed_and_something_is_there_twice(ledger: woodrat.Ledger) -> None:
    assert {line.field for line in ledger.conflicts().items} == {"city", "payment_terms"}
    (pair,) = ledger.duplicates().items
    assert pair.value == "ana@rivera.example"


def test_the_story_ends_before_today_and_its_days_are_apart(ledger: woodrat.Ledger) -> None:
    times = [entry.recorded_at for entry in ledger.log.entries()]
    assert times == sorted(times)
    assert len({time[:10] for time in times}) >= 10
    assert times[-1] < SystemClock().now()
