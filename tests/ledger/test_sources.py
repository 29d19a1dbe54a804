"""Sources: a reading that is ended by whoever holds it, once."""

from __future__ import annotations

import json

import pytest

import woodrat
from woodrat.ledger.pages import Page
from woodrat.state.asof import Stored


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


def test_readings_and_deliveries_by_index_are_those_of_the_log(ledger: woodrat.Ledger) -> None:
    """At every position, whatever part of the log the index covers, pages, `show` and `diff` say what the log says."""
    sources = [ledger.sources.add(f"letter {number % 2}".encode(), name=f"{number}.txt") for number in range(4)]
    readings = [ledger.interpretations.begin(source, model=f"m{number}") for number, source in enumerate(sources)]
    ledger.interpretations.list()  # the index goes this far, and later questions about the past go on from there
    for number in (2, 0, 3):
        readings[number].store({"entity_type": "contact", "name": "Ana", "city": f"City {number}"})
        readings[number].end()
    for position in range(ledger.position + 1):
        past = ledger.at(position)
        entries = [entry for entry in ledger.log.entries() if entry.position <= position]
        bodies = [(entry.kind, json.loads(entry.body or b"")) for entry in entries if entry.kind != "source"]
        began = [body["interpretation"] for kind, body in bodies if kind == "interpretation.started"]
        ended = {body["interpretation"] for kind, body in bodies if kind == "interpretation.ended"}
        found = list(past.interpretations.list(limit=1))
        assert [reading.id for reading in found] == began
        assert {reading.id for reading in found if reading.status == "done"} == ended
        assert [past.interpretations.show(id) for id in began] == found
        for source in {delivery.source for delivery in past.sources.list()}:
            delivered = [delivery for delivery in past.sources.list() if delivery.source == source]
            assert list(past.sources.show(source)) == delivered
        if len(began) == 4:
            said = {body["interpretation"]: body for kind, body in bodies if kind == "observation"}
            compared = past.interpretations.diff(readings[2].id, readings[0].id).entities
            assert bool(compared) == (readings[2].id in said or readings[0].id in said)
    with pytest.raises(woodrat.NotFound, match="There is no interpretation"):
        ledger.interpretations.diff(readings[0].id, "int_" + "a" * 26)
    assert ledger.verify(deep=True).sound


def test_observations_are_listed_by_source_and_by_reading(ledger: woodrat.Ledger) -> None:
    """A page at a time, at a past moment too, and beside a reference; what was withdrawn is still listed."""
    first, second = ledger.sources.add(b"Ana, Bea and Cleo"), ledger.sources.add(b"Dora")
    ledger.store({"entity_type": "contact", "name": "Ana", "city": "Vic"})
    readings = []
    for source, people in ((first, ("Ana", "Bea")), (second, ("Dora",)), (first, ("Ana", "Cleo"))):
        with ledger.interpretations.start(source, model="small-1") as reading:
            reading.store([{"entity_type": "contact", "name": name} for name in people])
        readings.append(reading.id)
    before = ledger.position
    ledger.store({"entity_type": "contact", "name": "Eva"}, source=first)

    def names(page: Page[Stored]) -> list[str]:
        return [stored.observation.entity.key for stored in page]

    assert names(ledger.observations(source=first)) == ["Ana", "Bea", "Ana", "Cleo", "Eva"]
    assert names(ledger.observations(source=first, limit=1)) == ["Ana", "Bea", "Ana", "Cleo", "Eva"]
    assert names(ledger.at(before).observations(source=first, limit=3)) == ["Ana", "Bea", "Ana", "Cleo"]
    assert names(ledger.observations(interpretation=readings[2])) == ["Ana", "Cleo"]
    assert names(ledger.observations(source=second, interpretation=readings[2])) == []
    assert names(ledger.observations("contact/Ana", source=first)) == ["Ana", "Ana"]


def test_observations_of_an_unknown_source_or_reading_are_not_found(ledger: woodrat.Ledger) -> None:
    with pytest.raises(woodrat.NotFound, match=r"There is no source src_a"):
        ledger.observations(source="src_" + "a" * 26)
    with pytest.raises(woodrat.NotFound, match=r"There is no interpretation int_a"):
        ledger.observations(interpretation="int_" + "a" * 26)
    with pytest.raises(woodrat.Refused) as refused:
        ledger.observations(source=7, interpretation=8, limit=0)  # type: ignore[arg-type]
    assert [fault.path for fault in refused.value.faults] == ["source", "interpretation", "limit"]
