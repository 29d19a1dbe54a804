"""Where the parts of a collection are kept does not show: in merge state, or one by one from the second part on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.test_ledger_laws import ENGINES, admitted

from woodrat.canon.form import serialise
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.merge import elements
from woodrat.testing.histories import Telling, batches, tellings
from woodrat.testing.ledgers import answers

pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800)]


@pytest.fixture(autouse=True, scope="module")
def _spread_early() -> Iterator[None]:
    """Have every collection of more than one part kept part by part."""
    before, elements.INSIDE_MAX = elements.INSIDE_MAX, 1
    yield
    elements.INSIDE_MAX = before


def said_within(writes: list[Telling]) -> bytes:
    """Return all that a ledger says whose collections lie within its merge state, now and halfway."""
    before, elements.INSIDE_MAX = elements.INSIDE_MAX, 1_000_000
    try:
        ledger = admitted(InMemoryEngine(), writes)
        return serialise([answers(ledger), answers(ledger.at(ledger.position // 2))])
    finally:
        elements.INSIDE_MAX = before


@given(make_engine=ENGINES, data=st.data())
def test_where_parts_are_kept_does_not_show(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """Every answer, present and past, is the same; what is kept verifies, and is the same when it is made again."""
    writes = data.draw(batches(data.draw(tellings())))
    ledger = admitted(make_engine(), writes)
    if ledger.position < 0:
        return
    said = [answers(ledger), answers(ledger.at(ledger.position // 2))]
    assert serialise(said) == said_within(writes)
    found = ledger.verify()
    assert found.sound, found.damage
    assert ledger.rebuild().agreed
    assert serialise([answers(ledger), answers(ledger.at(ledger.position // 2))]) == serialise(said)
    found = ledger.verify()
    assert found.sound, found.damage
