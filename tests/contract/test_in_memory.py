"""SQLite in memory keeps the contract of logs, writes and reads: views and writes share one connection there.

What is derived and how it is verified is the same SQL as in a file, where the whole contract is kept.
"""

from __future__ import annotations

import sys

import pytest

from woodrat.engines.sqlite.in_memory import InMemoryEngine

# Before the first import, so that a failing assertion of the suite shows its values.
if "woodrat.testing.contract" not in sys.modules:
    pytest.register_assert_rewrite("woodrat.testing.contract")

from woodrat.testing.contract.log import LogContract
from woodrat.testing.contract.read import ReadingContract
from woodrat.testing.contract.write import WritingContract


class TestInMemoryEngine(LogContract, WritingContract, ReadingContract):
    """The contract of a log, in memory."""

    def make_engine(self) -> InMemoryEngine:
        return InMemoryEngine()
