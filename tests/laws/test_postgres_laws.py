"""A few examples of the laws on PostgreSQL, with those of the other engines as they stand.

Laws are about what is stored and found, and each engine has to keep them; the contract suite and the differential test
ask more of this engine for the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.laws import test_ledger_laws as laws

from woodrat.engines.engine import Engine
from woodrat.engines.postgres.engine import PostgresEngine

pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800)]

EXAMPLES = max(2, settings().max_examples // 30)
"""How many examples of each law are tried."""


@pytest.fixture
def make_engine(postgres_database: Callable[[], str]) -> Iterator[Callable[[], Engine]]:
    """What makes engines, each on a database of its own."""
    made: list[PostgresEngine] = []

    def make() -> Engine:
        made.append(PostgresEngine(postgres_database()))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


LAWS = [
    law
    for law in vars(laws).values()
    if hasattr(law, "hypothesis") and {*signature(law.hypothesis.inner_test).parameters} == {"make_engine", "data"}
]
"""Every law about an engine and whatever happens to it."""


def test_the_laws_are_there() -> None:
    """All of them are among these: order, increment, history, whole, once, provenance, sticking, fence, and changes."""
    numbers = {law.__name__.removeprefix("test_law_")[0] for law in LAWS}
    assert numbers >= set("12345678")


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_hold_on_postgresql(make_engine: Callable[[], Engine], law: Any) -> None:
    """What holds on every other engine holds here."""
    inner = law.hypothesis.inner_test

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def tried(data: st.DataObject) -> None:
        inner(make_engine=make_engine, data=data)

    tried()
