"""The SQLite engine passes the contract suite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.connection import queries
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.testing.contract import EngineContract


class TestSqliteEngine(EngineContract):
    """Every rule of the contract, on a file."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self._path = tmp_path
        self._made = 0

    def make_engine(self) -> Engine:
        self._made += 1
        return SqliteEngine(self._path / f"{self._made}.db")


def test_both_ways_to_drop_what_is_derived_drop_the_same() -> None:
    """A tenant alone in its file loses the same tables as one among others, and all of them."""
    named = queries()
    some, all_of_it = (
        set(re.findall(r"DELETE FROM (\w+)", named[name])) for name in ("drop_derived", "drop_all_derived")
    )
    assert some == all_of_it
    assert {"entity", "kept", "element", "index_row"} <= some
