"""Sources: a reading that is ended by whoever holds it, once."""

from __future__ import annotations

import pytest

import woodrat


@pytest.fixture
def ledger() -> woodrat.Ledger:
    return woodrat.open(":memory:", agent="reader")


def ends(ledger: woodrat.Ledger) -> int:
    """Return how many ends of interpretations the log holds."""
    return sum(entry.kind == "interpretation.ended" for entry in ledger.log.entries())


def test_a_reading_ends_once(ledger: woodrat.Ledger) -> None:
    """Ended again, by the same object or by one that continued it, it stays as it was."""
    reading = ledger.interpretations.begin(ledger.sources.add(b"Ana lives in Vic."), model="small-1")
    reading.store({"entity_type": "contact", "name": "Ana", "city": "Vic"})
    reading.end(usage={"tokens": 7})
    reading.end("error", error="too late")
    ledger.interpretations.continue_(reading.id).end("error", error="too late")
    assert ends(ledger) == 1
    [found] = ledger.interpretations.list()
    assert (found.status, found.usage) == ("done", {"tokens": 7})


def test_a_reading_that_somebody_else_ended_has_ended(ledger: woodrat.Ledger) -> None:
    """Whoever began it does not know of the end, and the log does; other readings that ended do not count."""
    source = ledger.sources.add(b"Ana lives in Vic.")
    reading, other = ledger.interpretations.begin(source), ledger.interpretations.begin(source)
    other.end()
    ledger.interpretations.continue_(reading.id).end("error", error="it gave up")
    reading.end()
    assert ends(ledger) == 2
    assert [found.status for found in ledger.interpretations.list()] == ["error", "done"]


def test_a_call_sent_again_goes_on_with_its_reading(ledger: woodrat.Ledger) -> None:
    """With an idempotency key the second beginning is the first one, ended or not."""
    source = ledger.sources.add(b"Ana lives in Vic.")
    first = ledger.interpretations.begin(source, idempotency_key="k")
    again = ledger.interpretations.begin(source, idempotency_key="k")
    assert again.id == first.id
    first.end()
    again.end("error", error="too late")
    ledger.interpretations.begin(source, idempotency_key="k").end("error", error="too late")
    assert [found.status for found in ledger.interpretations.list()] == ["done"]
