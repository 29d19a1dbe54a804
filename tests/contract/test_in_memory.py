"""SQLite in memory keeps the contract: views and writes share one connection there."""

from __future__ import annotations

import sys

import pytest

from woodrat.engines.sqlite.in_memory import InMemoryEngine

# Before the first import, so that a failing assertion of the suite shows its values.
if "woodrat.testing.contract" not in sys.modules:
    pytest.register_assert_rewrite("woodrat.testing.contract")

from woodrat.testing.contract import EngineContract


class TestInMemoryEngine(EngineContract):
    """The contract, in memory."""

    def make_engine(self) -> InMemoryEngine:
        return InMemoryEngine()
