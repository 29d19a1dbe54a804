"""Woodrat: the replayable state layer and causal decision memory for AI agents.

ledger = woodrat.open(":memory:", tenant="lending", agent="loan-officer")
ledger.store([{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}])
ledger.show("contact/Ana Rivera").fields["city"]
"""

from __future__ import annotations

from collections.abc import Iterable

from woodrat.clock import Clock, SystemClock
from woodrat.engines.memory import MemoryEngine
from woodrat.errors import (
    Corrupt,
    Fault,
    Forbidden,
    NotFound,
    Outdated,
    Refused,
    Unavailable,
    WoodratError,
)
from woodrat.ledger.ledger import Ledger
from woodrat.ledger.past import Past
from woodrat.ledger.policies import own_policy, registry
from woodrat.ledger.report import Report
from woodrat.state.models import Merge
from woodrat.state.policy import Policy
from woodrat.state.snapshot import Snapshot

__all__ = [
    "Corrupt",
    "Fault",
    "Forbidden",
    "Ledger",
    "Merge",
    "NotFound",
    "Outdated",
    "Past",
    "Refused",
    "Report",
    "Snapshot",
    "Unavailable",
    "WoodratError",
    "open",
    "own_policy",
]


def open(
    db: str = ":memory:",
    *,
    tenant: str = "default",
    agent: str = "library",
    policies: Iterable[Policy] = (),
    strict: bool = False,
    clock: Clock | None = None,
) -> Ledger:
    """Open a ledger for one tenant, written to by one agent.

    `policies` are merge policies of your own that schemas here may name; `strict` refuses types without a schema.
    """
    if db != ":memory:":
        problem = f"no engine for {db!r}"
        raise Refused([Fault("db", problem, 'Use ":memory:".')], outcome="Nothing was opened.")
    return Ledger(
        MemoryEngine(),
        tenant=tenant,
        agent=agent,
        clock=clock or SystemClock(),
        policies=registry(policies),
        strict=strict,
    )
