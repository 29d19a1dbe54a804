"""Spoken times: words, dates and `datetime` objects are times before anything is done, and every answer says which."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

import woodrat
from woodrat.testing.clock import FixedClock

DAY = "2025-12-30"
IN_MADRID = "2025-12-29T23:00:00.000000Z"
"""When that day begins there."""

READS: dict[str, Callable[[Any], Any]] = {
    "timeline": lambda ledger: ledger.timeline(since=DAY),
    "runs.list": lambda ledger: ledger.runs.list(since=DAY),
    "runs.group": lambda ledger: ledger.runs.group(agent="a", since=DAY),
    "recall": lambda ledger: ledger.recall("Ana", since=DAY),
    "what_if": lambda ledger: ledger.what_if(set={"x": 1}, since=DAY),
}
"""Reads that take `since`."""


def opened(zone: str | None = None) -> woodrat.Ledger:
    """Return a ledger with a run, by the clock of a zone."""
    clock = FixedClock()
    setattr(clock, "zone", zone)  # noqa: B010 - of a clock that is fixed otherwise
    ledger = woodrat.open(":memory:", agent="a", clock=clock)
    with ledger.run("Call?") as run:
        run.answer("yes")
    return ledger


@pytest.mark.parametrize("name", READS)
def test_every_read_says_what_words_meant(name: str) -> None:
    """The answer has the time in UTC, by the zone that the ledger was opened with; a timestamp needs no words."""
    assert READS[name](opened()).times == {"since": f"{DAY}T00:00:00.000000Z"}
    assert READS[name](opened("Europe/Madrid")).times == {"since": IN_MADRID}
    assert READS[name](opened()).to_json()["times"] == {"since": f"{DAY}T00:00:00.000000Z"}


@pytest.mark.parametrize("said", [DAY, date(2025, 12, 30), datetime(2025, 12, 30, tzinfo=UTC)], ids=str)
@pytest.mark.parametrize("name", ["observed_at", "valid_from"])
def test_a_record_may_say_its_times_in_words(name: str, said: object) -> None:
    """Inside `$` a day is a time too; the report says which, by where it stands, and the caller's record stays."""
    ledger = opened()
    record = {"entity_type": "contact", "name": "Ana", "$": {name: said}}
    report = ledger.store([record])
    assert report.times == {f"/0/$/{name}": f"{DAY}T00:00:00.000000Z"}
    assert record["$"] == {name: said}
    assert getattr(ledger.observations("contact/Ana").items[0].observation, name) == f"{DAY}T00:00:00.000000Z"


def test_a_key_stands_for_the_time_that_was_meant() -> None:
    """The same words on the same day are the same request; on another day they are another, which is refused."""
    ledger = woodrat.open(":memory:", agent="a", clock=FixedClock(step_micros=3_600_000_000))
    record = {"entity_type": "contact", "name": "Ana", "$": {"observed_at": "yesterday"}}
    assert ledger.store(record, idempotency_key="k").times == {"/$/observed_at": "2025-12-31T00:00:00.000000Z"}
    assert ledger.store(record, idempotency_key="k").repeated
    while ledger.context.clock.now() < "2026-01-02":
        pass
    with pytest.raises(woodrat.Refused, match="idempotency_key"):
        ledger.store(record, idempotency_key="k")


def test_a_time_that_is_none_is_refused_where_it_stands() -> None:
    """What no calendar has is refused with its path."""
    with pytest.raises(woodrat.Refused, match=r"/0/\$/observed_at"):
        opened().store([{"entity_type": "contact", "name": "Ana", "$": {"observed_at": "soon"}}])
