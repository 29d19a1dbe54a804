"""The memory engine keeps the contract; it is the reference for the others."""

from __future__ import annotations

import sys

import pytest

from woodrat.engines.memory import MemoryEngine

# Before the first import, so that a failing assertion of the suite shows its values.
if "woodrat.testing.contract" not in sys.modules:
    pytest.register_assert_rewrite("woodrat.testing.contract")

from woodrat.testing.contract import EngineContract


class TestMemoryEngine(EngineContract):
    """The contract, on the memory engine."""

    def make_engine(self) -> MemoryEngine:
        return MemoryEngine()
