"""Comparing runs from async code."""

from __future__ import annotations

import asyncio

import woodrat


def test_runs_of_two_async_ledgers_are_compared() -> None:
    """`await ledger.runs.diff(…, other=…)` takes an async ledger or a plain one, and crowds are awaited too."""

    async def compared() -> tuple[str, str, str]:
        one, other = await woodrat.aopen(":memory:"), await woodrat.aopen(":memory:")
        (first,) = await one.runs.import_({"id": "a", "steps": [{"kind": "tool", "name": "pay", "result": 1}]})
        (second,) = await other.runs.import_({"id": "b", "steps": [{"kind": "tool", "name": "pay", "result": 2}]})
        found = await one.runs.diff(first, second, other=other)
        again = await one.runs.diff(first, second, other=other.target)
        crowd = await one.runs.group([first])
        return found.sentence, again.sentence, crowd.sentence

    sentence, again, crowd = asyncio.run(compared())
    assert sentence == again
    assert sentence == (
        "They parted at step 1, the tool pay: called with the same arguments it returned 1 in the first run and 2 in "
        "the second."
    )
    assert crowd == "There is one run, and none to compare it with."
