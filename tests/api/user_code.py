"""User code that is type-checked and never run: real parameters and results, here, there and awaited.

`mypy --strict`, which `python3 dev.py lint` and `test` run, is the test. Every verb has the record it returns, and
every mistake in a call is an error of the kind its comment names: a comment without its error is an error itself.
"""
# mypy: warn-unused-ignores

from __future__ import annotations

from typing import assert_type

import woodrat
from woodrat.api.aio import AsyncLedger
from woodrat.api.ledger import Ledger
from woodrat.ledger.pages import Page
from woodrat.ledger.reads import EntityConflict
from woodrat.ledger.report import Report
from woodrat.merge.diff import Changes
from woodrat.merge.snapshot import Snapshot
from woodrat.proofs.proof import Capsule
from woodrat.runs.record import RunRecord
from woodrat.runs.recorder.calls import Call
from woodrat.state.asof import Stored
from woodrat.state.fact import Fact
from woodrat.state.schema import Schema


@woodrat.tool
def lookup(application: str) -> dict[str, int]:
    return {"score": 580}


@woodrat.tool(once=True)
async def pay(amount: int) -> str:
    return "paid"


class Desk:
    @woodrat.tool
    def ask(self, question: str) -> int:
        return len(question)


def here() -> None:
    with woodrat.open(":memory:", agent="crm") as ledger:
        assert_type(ledger, Ledger)
        assert_type(ledger.store([{"entity_type": "contact", "name": "Ana"}], priority=1), Report)
        assert_type(ledger.runs.show("run_a"), RunRecord)
        assert_type(ledger.at(0).show("contact/Ana"), Snapshot)
        assert_type(ledger.schemas.list(), Page[Schema])
        for conflict in ledger.conflicts():
            assert_type(conflict, EntityConflict)
        assert_type(ledger.diff(0), Changes)
        assert_type(lookup("42"), dict[str, int])
        ledger.store([{}], prio=1)  # type: ignore[call-arg]
        ledger.runs.show(42)  # type: ignore[arg-type]
        lookup(42)  # type: ignore[arg-type]
        assert_type(lookup.call("42"), Call)
        assert_type(lookup.call("42").fact("/score"), Fact)
        lookup.call(42)  # type: ignore[arg-type]
        assert_type(Desk().ask("why?"), int)
        assert_type(Desk().ask.call("why?"), Call)
        Desk().ask(42)  # type: ignore[arg-type]


async def there() -> None:
    async with await woodrat.aopen("http://localhost:8787", key="wrat_") as ledger:
        assert_type(ledger, AsyncLedger)
        assert_type(await ledger.store([{"entity_type": "contact", "name": "Ana"}]), Report)
        assert_type(await ledger.runs.show("run_a"), RunRecord)
        assert_type(await ledger.proofs.capsule("run_a"), Capsule)
        assert_type(await pay(3), str)
        assert_type(await pay.call(3), Call)
        await pay.call("3")  # type: ignore[arg-type]
        past = await ledger.at(0)
        assert_type(await past.show("contact/Ana"), Snapshot)
        async for stored in await ledger.observations(limit=10):
            assert_type(stored, Stored)
        await ledger.store([{}], prio=1)  # type: ignore[call-arg]
        await ledger.show(42)  # type: ignore[arg-type]
        await woodrat.aopen(":memory:", agnt="crm")  # type: ignore[call-arg]
