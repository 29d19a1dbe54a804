"""A few examples of the laws on PostgreSQL, with those of the other engines as they stand.

Laws are about what is stored and found, and each engine has to keep them; the contract suite and the differential test
ask more of this engine for the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.laws import test_ledger_laws as laws

from woodrat.engines.port import Engine
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


@pytest.mark.parametrize("law", [laws.test_law_1_order, laws.test_law_2_increment], ids=lambda law: law.__name__)
def test_laws_hold_on_postgresql(make_engine: Callable[[], Engine], law: Callable[..., None]) -> None:
    """The set decides the state, and what is kept is what folding gives."""
    inner = law.hypothesis.inner_test  # type: ignore[attr-defined]

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def tried(data: st.DataObject) -> None:
        inner(make_engine=make_engine, data=data)

    tried()
