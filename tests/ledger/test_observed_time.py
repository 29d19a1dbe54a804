"""Timelines by index: the same as sorting all observations, at every position, page by page."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import reads
from woodrat.ledger.own_policy import registry
from woodrat.ledger.pages import make_cursor
from woodrat.merge.timeline import Event
from woodrat.state import entry_rows
from woodrat.testing.clock import FixedClock

TIMES = [f"2026-01-0{day}T00:00:00.000000Z" for day in range(1, 6)]


def opened() -> woodrat.Ledger:
    """Return an empty ledger."""
    clock = FixedClock("2026-01-09T09:00:00.000000Z")
    return woodrat.Ledger(InMemoryEngine(), tenant="t", agent="ann", clock=clock, policies=registry(()))


def pages(past: woodrat.Past, since: str | None, until: str | None, limit: int) -> list[Event]:
    """Return a timeline, asked for page by page."""
    events: list[Event] = []
    cursor = None
    while True:
        page = past.timeline(since=since, until=until, limit=limit, cursor=cursor)
        assert len(page.items) <= limit
        events += page.items
        cursor = page.cursor
        if cursor is None:
            return events


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    said=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(TIMES), st.integers(0, 3)), min_size=1, max_size=10),
    since=st.none() | st.sampled_from(TIMES),
    until=st.none() | st.sampled_from(TIMES),
    limit=st.integers(1, 4),
)
def test_a_timeline_by_index_is_all_that_was_seen_sorted(
    said: list[tuple[str, str, int]], since: str | None, until: str | None, limit: int
) -> None:
    """At every position the pages of a timeline are all observations by then, sorted."""
    ledger = opened()
    for id, time, value in said:
        ledger.store({"entity_type": "sensor", "id": id, "value": value}, observed_at=time, valid_from=TIMES[value])
    for position in range(ledger.position + 1):
        for past in (ledger.at(position), ledger.at(position, valid_at=TIMES[1])):
            expected = list(reads.timeline(past.context, since=since, until=until))
            assert pages(past, since, until, limit) == expected
    assert ledger.verify(deep=True).sound


def test_a_planted_fault_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is not what the log says is found by verify."""
    ledger = opened()
    with monkeypatch.context() as patch:
        patch.setattr(entry_rows, "observed_key", lambda observed_at, digest: b"2020\0" + digest)
        ledger.store({"entity_type": "sensor", "id": "a", "value": 1}, observed_at=TIMES[0])
    assert not ledger.verify(deep=True).sound


def test_a_forged_cursor_is_refused() -> None:
    """A cursor whose place no page of a timeline can have is refused."""
    ledger = opened()
    ledger.store({"entity_type": "sensor", "id": "a", "value": 1}, observed_at=TIMES[0])
    question = woodrat.canon.form.serialise(["timeline", None, None])
    for place in (["no time", "no hex"], [1, 2], ["2026"]):
        with pytest.raises(woodrat.Refused, match="cursor"):
            ledger.timeline(cursor=make_cursor(question, [0, None, *place]))
