"""Contract: the required behaviour of every engine, as one suite of tests.

    from woodrat.testing.contract import EngineContract

    class TestMine(EngineContract):
        def make_engine(self) -> Engine:
            return MyEngine(...)

The suite speaks to the engine as the ledger does and, where only the port can show it, directly. What it tells the
engine is shipped beside it: `ledgers` has a story that uses every verb (`tell`) and reads everything a ledger can say
(`answers`), `tellings` generates sets of observations and schemas of several entities, `crashing` has an engine that
fails where it is told to.
"""

from __future__ import annotations

from woodrat.testing.contract.derive import DerivingContract
from woodrat.testing.contract.log import LogContract
from woodrat.testing.contract.read import ReadingContract
from woodrat.testing.contract.verify import VerifyingContract
from woodrat.testing.contract.write import WritingContract

__all__ = ["EngineContract"]


class EngineContract(LogContract, WritingContract, ReadingContract, DerivingContract, VerifyingContract):
    """What every engine must do. Subclass it, name the subclass Test…, and define how to make an engine."""
