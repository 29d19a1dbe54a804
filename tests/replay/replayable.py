"""Agents that other processes can import, to be replayed by them."""

from __future__ import annotations

import os
import signal
from typing import Any

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.runs.recorder.run import Run


def record(ledger: Ledger, number: int) -> str:
    """Record a run of the agent about a loan whose score grows with its number."""
    ledger.store({"entity_type": "loan", "id": str(number), "creditScore": 580 + 10 * number})
    about: dict[str, Any] = {"subject": f"loan/{number}", "inputs": {"number": number}}
    with ledger.run(f"Approve #{number}?", **about) as run:
        run.answer(approve(run))
    return str(run.id)


def decided(run: Any, threshold: int) -> str:
    """Decide by a threshold."""
    loan = run.show(f"loan/{run.inputs['number']}")
    rules = [woodrat.Rule("rejected", {"creditScore": {"lt": threshold}}, label="Marginal credit")]
    return str(run.decide("classify-risk", loan, rules, default="approved").chosen)


def approve(run: Run) -> str:
    """Decide as it was recorded."""
    return decided(run, 600)


def approve_620(run: Run) -> str:
    """Decide by another threshold."""
    return decided(run, 620)


async def approve_soon(run: Any) -> str:
    """Decide as it was recorded, in a loop."""
    loan = await run.show(f"loan/{run.inputs['number']}")
    rules = [woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit")]
    return str((await run.decide("classify-risk", loan, rules, default="approved")).chosen)


def asks(run: Run) -> Any:
    """Ask a tool that was never asked."""
    return run.tool("bureau", lambda number: number, run.inputs["number"]).result


def dies(run: Run) -> str:
    """Print, and end in several ways."""
    number = run.inputs["number"]
    print("looking at", number)
    if number == 1:
        os._exit(3)
    if number == 4:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 6:
        raise ValueError("seven")
    return approve(run)


def loops(run: Run) -> str:
    """Go on for ever about one loan."""
    while run.inputs["number"] == 2:
        pass
    return approve(run)


class Officer:
    """An agent with a state that other processes do not have."""

    def approve(self, run: Run) -> str:
        """Decide as it was recorded."""
        return approve(run)
