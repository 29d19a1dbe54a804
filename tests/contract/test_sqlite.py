"""The SQLite engine passes the contract suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from woodrat.engines.port import Engine
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
