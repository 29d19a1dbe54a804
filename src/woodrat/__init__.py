"""Woodrat: the replayable state layer and causal decision memory for AI agents.

ledger = woodrat.open("agents.db", tenant="lending", agent="loan-officer")
ledger.store([{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}])
ledger.show("contact/Ana Rivera").fields["city"]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from woodrat.ledger.opening import open_ledger as open
from woodrat.ledger.past import Past
from woodrat.ledger.policies import own_policy
from woodrat.ledger.report import Report
from woodrat.state.models import Merge
from woodrat.state.snapshot import Snapshot

if TYPE_CHECKING:
    from woodrat.ledger.asynchronous import AsyncLedger

__all__ = [
    "AsyncLedger",
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
    "aopen",
    "open",
    "own_policy",
]


async def aopen(*arguments: Any, **given: Any) -> AsyncLedger:
    """Open a ledger as `open` does; its verbs are coroutines."""
    # asyncio is slow to import, and a command line never needs it.
    from woodrat.ledger import asynchronous

    return await asynchronous.aopen(*arguments, **given)


def __getattr__(name: str) -> Any:
    if name == "AsyncLedger":
        from woodrat.ledger.asynchronous import AsyncLedger

        return AsyncLedger
    raise AttributeError(f"module 'woodrat' has no attribute {name!r}")
