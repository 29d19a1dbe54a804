"""The ids that begin with a prefix, as the library returns them."""

from __future__ import annotations

from typing import Any

import pytest

import woodrat
from woodrat.errors import Refused
from woodrat.testing.clock import FixedClock


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """A ledger with two observations, a source and two runs."""
    found = woodrat.open(":memory:", clock=FixedClock())
    for city in ("Barcelona", "Porto"):
        found.store({"entity_type": "contact", "name": "Ana Rivera", "city": city})
    found.sources.add(b"Net-30", name="contract.txt")
    for number in (1, 2):
        found.runs.import_({"query": f"Run {number}?", "answer": "yes"})
    return found


def test_ids_are_found_by_their_beginning(ledger: woodrat.Ledger) -> None:
    """Observations, entities, sources and runs are found by any beginning, a whole id by itself."""
    observations = [item.observation.id for item in ledger.observations()]
    for id in observations:
        assert ledger.ids(id) == (id,)
        assert ledger.ids(id[:12]) == (id,)
    assert ledger.ids(ledger.show("contact/Ana Rivera").entity.id[:8]) == (ledger.show("contact/Ana Rivera").entity.id,)
    assert ledger.ids(ledger.sources.list().items[0].source[:6]) == (ledger.sources.list().items[0].source,)
    assert ledger.ids("obs_" + ("a" if not observations[0].startswith("obs_a") else "b") * 26) == ()


def test_last_is_the_latest_run_of_the_moment(ledger: woodrat.Ledger) -> None:
    """`last` is the run the log heard of last, at the moment read at; without runs it is nothing."""
    second, first = (run.id for run in ledger.runs.list())
    assert ledger.ids("last") == (second,)
    assert ledger.at(ledger.runs.show(second).positions[0] - 1).ids("last") == (first,)
    assert ledger.at(0).ids("last") == ()
    assert set(ledger.ids(second[:5])) == {id for id in (first, second) if id.startswith(second[:5])}


@pytest.mark.parametrize(
    "prefix", ["", "obs", "obs_", "xyz_aaa", "sch_aaa", "obs_AAA", "obs_" + "a" * 27, "contact/a", 3, None]
)
def test_what_begins_no_id_is_refused(ledger: woodrat.Ledger, prefix: Any) -> None:
    """A text that no id can begin with is refused by name, with the beginnings there are."""
    with pytest.raises(Refused, match=r"prefix: expected the beginning of an id.*ent_, int_, obs_, run_, src_"):
        ledger.ids(prefix)
