"""Zones: days and words are those of whoever says them, and are times in UTC before they are sent or written."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

import woodrat
from woodrat.api.link import over
from woodrat.api.verbs import verbs
from woodrat.canon.moment_words import resolve, spoken
from woodrat.clock import SystemClock
from woodrat.errors import Refused
from woodrat.ledger.spoken_times import MOMENTS, TIMES
from woodrat.testing.clock import FixedClock

NOW = "2026-11-17T23:30:00.000000Z"
MADRID = "Europe/Madrid"


@pytest.mark.parametrize(
    ("words", "in_utc", "in_madrid"),
    [
        ("today", "2026-11-17T00:00:00.000000Z", "2026-11-17T23:00:00.000000Z"),
        ("yesterday", "2026-11-16T00:00:00.000000Z", "2026-11-16T23:00:00.000000Z"),
        ("last Tuesday", "2026-11-10T00:00:00.000000Z", "2026-11-16T23:00:00.000000Z"),
        ("2026-07-01", "2026-07-01T00:00:00.000000Z", "2026-06-30T22:00:00.000000Z"),
        ("2d", "2026-11-15T23:30:00.000000Z", "2026-11-15T23:30:00.000000Z"),
    ],
)
def test_a_day_is_one_of_its_zone(words: str, in_utc: str, in_madrid: str) -> None:
    """A day begins at midnight of the stated zone, else of UTC; so long ago is the same everywhere."""
    assert resolve(words, NOW) == in_utc
    assert resolve(words, NOW, MADRID) == in_madrid


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (datetime(2026, 1, 5, 9, tzinfo=UTC), "2026-01-05T09:00:00.000000Z"),
        (datetime(2026, 1, 5, 9, 0, 0, 7, tzinfo=timezone(timedelta(hours=2))), "2026-01-05T07:00:00.000007Z"),
        (datetime(2026, 1, 5, 9), "2026-01-05T08:00:00.000000Z"),
        (date(2026, 7, 1), "2026-06-30T22:00:00.000000Z"),
    ],
)
def test_objects_are_times_too(value: object, meant: str) -> None:
    """A date and a `datetime` are times; one without an offset is one of the zone."""
    assert spoken(value, NOW, MADRID) == meant


@pytest.mark.parametrize("value", [7, None, "tomorrow", "@release", "run_x", "2026-01-05T09:00:00Z", datetime.max])
def test_what_is_no_time_in_words_stays_as_it_is(value: object) -> None:
    """Positions, tags, runs and timestamps are not touched."""
    assert spoken(value, NOW, "America/New_York" if value == datetime.max else None) == value or value is datetime.max


def test_a_zone_that_there_is_not_is_refused() -> None:
    """A misspelled zone is said to be one, when a day is first asked for."""
    ledger = woodrat.open(":memory:", zone="Europe/Madird")
    with pytest.raises(Refused, match=r"zone: unknown time zone \"Europe/Madird\""):
        ledger.at("yesterday")


def test_what_is_written_and_read_says_what_it_meant() -> None:
    """A report says what words meant, a page what its times were, and the observation has the time."""
    ledger = woodrat.open(":memory:", agent="crm", clock=FixedClock())
    now = ledger.context.clock.now()
    meant = resolve("yesterday", now)
    report = ledger.store({"entity_type": "contact", "name": "Ana"}, observed_at="yesterday")
    assert (report.times, report.hints) == ({"observed_at": meant}, ())
    (stored,) = ledger.observations("contact/Ana")
    assert stored.observation.observed_at == meant
    page = ledger.timeline(since="2d", until=now)
    assert list(page.times) == ["since"]
    assert page.to_json()["times"] == dict(page.times)
    assert len(page.items) == 1
    assert "times" not in ledger.timeline().to_json()
    assert not ledger.timeline(until="yesterday").items


def test_a_date_names_one_request() -> None:
    """The request that a key stands for has the time that was meant, so a date and its midnight are one request."""
    ledger = woodrat.open(":memory:", agent="crm")
    record = {"entity_type": "contact", "name": "Ana"}
    ledger.store(record, observed_at=date(2026, 1, 5), idempotency_key="k")
    assert ledger.store(record, observed_at="2026-01-05", idempotency_key="k").repeated


def test_times_are_resolved_before_they_are_sent() -> None:
    """A ledger behind a server sends times in UTC, by the zone of the caller, and the server resolves nothing."""
    sent: list[Any] = []

    class Transport:
        clock = SystemClock(MADRID)

    class Remote:
        class link:
            transport = Transport

            @staticmethod
            def call(verb: object, bound: Any) -> str:
                sent.append(bound)
                return "done"

    call = over(verbs()["store"])
    call(Remote(), [], observed_at="2026-07-01", valid_from=date(2026, 7, 1))
    over(verbs()["timeline"])(Remote(), since=datetime(2026, 7, 1, tzinfo=UTC), until="now")
    assert sent[0]["observed_at"] == sent[0]["valid_from"] == "2026-06-30T22:00:00.000000Z"
    assert sent[1]["since"] == "2026-07-01T00:00:00.000000Z"
    assert sent[1]["until"].endswith("Z")
    over(verbs()["diff"])(Remote(), "2026-07-01", "now")
    assert sent[2] == {"before": "2026-06-30T22:00:00.000000Z", "after": "now"}


def test_every_time_of_a_verb_is_resolved() -> None:
    """No verb takes a time under a name that would be sent in words."""
    named = {p.name for verb in verbs().values() for p in verb.parameters if p.kind.metavar in ("T", "M")}
    assert named - {"entity_type", "subject_type", "type"} <= {*TIMES, *MOMENTS}
