"""The PostgreSQL engine passes the contract suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from woodrat.engines.engine import Engine
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.testing.contract import EngineContract

EXAMPLES = 5
"""How many examples a law gets here."""


class TestPostgresEngine(EngineContract):
    """Every rule of the contract, on a database."""

    @pytest.fixture(autouse=True)
    def _databases(self, postgres_database: Callable[[], str]) -> Iterator[None]:
        self._made: list[PostgresEngine] = []
        self._database = postgres_database
        # Laws run in full on the engines in this process; each question to a server takes longer than an answer here.
        before = settings.get_current_profile_name()
        settings.register_profile("server", settings.get_profile(before), max_examples=EXAMPLES)
        settings.load_profile("server")
        yield
        settings.load_profile(before)
        for engine in self._made:
            engine.close()

    def make_engine(self) -> Engine:
        engine = PostgresEngine(self._database())
        self._made.append(engine)
        return engine
