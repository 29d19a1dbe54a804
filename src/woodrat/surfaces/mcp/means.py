"""Means: how tools reach the ledger, whatever they are called through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from woodrat.frozen import dataclass

if TYPE_CHECKING:
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.relaying import Relay
    from woodrat.surfaces.access import Caller

CALLER: Final = "woodrat.caller"
"""Where a request over HTTP says who calls: put there by the application, which has checked the key."""
NEEDS_EXTRA: Final = "MCP needs the extra `mcp`. Nothing was done. Install it: pip install 'woodrat[mcp]'."


@dataclass(frozen=True, slots=True)
class Means:
    """How tools reach the ledger."""

    ledger: Callable[[Caller], Ledger]
    """Gives the ledger of a caller."""
    read: Callable[[Callable[[], Any]], Awaitable[Any]]
    """Does something that only reads."""
    write: Callable[[Callable[[], Any]], Awaitable[Any]]
    """Does something that writes, durably before it answers."""
    relay: Relay
    """Runs that are told step by step."""
