"""Base: how a contract gets its engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from woodrat.engines.port import (
    Engine,
)


class Contract:
    """What every engine must do. Subclass it, name the subclass Test…, and say how an engine is made."""

    def make_engine(self) -> Engine:
        """Return a fresh, empty engine."""
        raise NotImplementedError

    @pytest.fixture
    def engine(self) -> Iterator[Engine]:
        """A fresh engine, closed afterwards."""
        engine = self.make_engine()
        yield engine
        engine.close()
