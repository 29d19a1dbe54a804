"""Timelines by index: the same as sorting all observations, at every position, page by page."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import entry_index, observed_time, reads
from woodrat.ledger.own_policy import registry
from woodrat.ledger.pages import make_cursor
from woodrat.merge.timeline import Event
from woodrat.state import entry_rows
from woodrat.testing.clock import FixedClock

RECORDED = "2026-01-09T09:00:03.000000Z"
TIMES = [f"2026-01-0{day}T00:00:00.000000Z" for day in range(1, 6)]


def opened(step_micros: int = 1_000_000) -> woodrat.Ledger:
    """Return an empty ledger."""
    clock = FixedClock("2026-01-09T09:00:00.000000Z", step_micros)
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
    said=st.lists(
        st.tuples(
            st.sampled_from("ab"), st.sampled_from([*TIMES, RECORDED, "alone", "alone", "batch"]), st.integers(0, 3)
        ),
        min_size=1,
        max_size=12,
    ),
    since=st.none() | st.sampled_from([*TIMES, RECORDED]),
    until=st.none() | st.sampled_from([*TIMES, RECORDED]),
    limit=st.integers(1, 4),
    step=st.sampled_from([0, 1_000_000]),
    block=st.sampled_from([2, 64]),
)
def test_a_timeline_by_index_is_all_that_was_seen_sorted(
    said: list[tuple[str, str, int]], since: str | None, until: str | None, limit: int, step: int, block: int
) -> None:
    """At every position the pages of a timeline are all observations by then, sorted."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (entry_rows, entry_index, observed_time):
            patch.setattr(module, "BLOCK", block)
        compare(opened(step), said, since, until, limit)


def compare(
    ledger: woodrat.Ledger, said: list[tuple[str, str, int]], since: str | None, until: str | None, limit: int
) -> None:
    """Store observations, and compare every timeline of them with all of them, sorted."""
    for number, (id, time, value) in enumerate(said):
        record = {"entity_type": "sensor", "id": id, "value": value * 100 + number}
        if time == "alone":
            ledger.store(record)  # it is seen when it is recorded
        elif time == "batch":
            ledger.store([{**record, "id": id + str(item)} for item in range(value + 1)])
        else:
            ledger.store(record, observed_at=time, valid_from=TIMES[value])
    for position in range(ledger.position + 1):
        for past in (ledger.at(position), ledger.at(position, valid_at=TIMES[1])):
            expected = list(reads.timeline(past.context, since=since, until=until))
            assert pages(past, since, until, limit) == expected
    assert ledger.verify(deep=True).sound


def test_most_stores_put_no_rows_of_their_own() -> None:
    """What is seen when it is recorded is found by blocks of the log: of times and of each agent one row."""
    ledger = opened()
    ledger.store({"entity_type": "sensor", "id": "a", "value": 0})
    for number in range(1, 140):
        ledger.as_agent("bob" if number < 30 else "ann").store({"entity_type": "sensor", "id": "a", "value": number})
    with ledger.context.engine.view(ledger.tenant) as view:
        assert list(view.lives(entry_rows.OBSERVED)) == []
        found = [row.key.partition(b"\0")[0] for row in view.lives(entry_rows.BLOCKS)]
    assert sorted(found) == [b"by/ann"] * 3 + [b"by/bob"] + [b"seen"] * 3
    assert [ledger.impact(agent=agent).counts.observations for agent in ("ann", "bob")] == [111, 29]


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
