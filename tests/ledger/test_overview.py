"""The overview: every entry is counted on the day it was recorded, however the days are spread."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import woodrat
from woodrat.errors import Refused
from woodrat.testing.clock import FixedClock


class SetClock(FixedClock):
    """A clock that shows the moment it is set to."""

    moment = "2026-11-03T23:59:59.999999Z"

    def now(self) -> str:
        return self.moment


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path, clock: SetClock) -> Iterator[woodrat.Ledger]:
    place = ":memory:" if request.param == "memory" else str(tmp_path / "a.db")
    with woodrat.open(place, clock=clock) as opened:
        yield opened


def test_days_count_what_was_recorded_on_them(ledger: woodrat.Ledger, clock: SetClock) -> None:
    """A day ends at midnight in UTC, days without entries are there too, and today counts as far as it goes."""
    for number, at in enumerate(
        [
            "2026-11-03T23:59:59.999999Z",
            "2026-11-04T00:00:00.000000Z",
            "2026-11-04T12:00:00.000000Z",
            "2026-11-10T08:00:00.000000Z",
        ]
    ):
        clock.moment = at
        ledger.store({"entity_type": "thing", "id": str(number)})
    first, second, last = 1, 2, 1
    overview = ledger.overview(days=9)
    assert [(item.day, item.entries) for item in overview.days] == [
        ("2026-11-02", 0),
        ("2026-11-03", first),
        ("2026-11-04", second),
        *((f"2026-11-{day:02}", 0) for day in range(5, 10)),
        ("2026-11-10", last),
    ]
    assert (overview.position, overview.recorded_at) == (ledger.position, "2026-11-10T08:00:00.000000Z")
    assert sum(item.entries for item in ledger.overview(days=2).days) == last


def test_an_empty_log_has_an_overview(ledger: woodrat.Ledger) -> None:
    """Nothing was recorded: every day is 0."""
    overview = ledger.overview(days=3)
    assert (overview.position, overview.recorded_at, overview.checkpoint) == (-1, None, None)
    assert [item.entries for item in overview.days] == [0, 0, 0]


@pytest.mark.parametrize("days", [0, 367, True, "7"])
def test_a_strange_number_of_days_is_refused(ledger: woodrat.Ledger, days: object) -> None:
    with pytest.raises(Refused, match="days: expected a whole number from 1 to 366"):
        ledger.overview(days=days)  # type: ignore[arg-type]


def test_the_last_checkpoint_is_named(tmp_path: Path) -> None:
    woodrat.init(tmp_path / "keys")
    with woodrat.open(tmp_path / "a.db", keys=tmp_path / "keys") as ledger:
        ledger.store({"entity_type": "thing", "id": "1"})
        signed = ledger.proofs.checkpoint()
        assert ledger.overview().checkpoint == signed.checkpoint
