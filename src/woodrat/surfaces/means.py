"""Means: how surfaces beside the routes reach the ledger; keys, audit and commits stay with the application alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from woodrat.frozen import dataclass

if TYPE_CHECKING:
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.relaying import Relay
    from woodrat.surfaces.access import Caller


@dataclass(frozen=True, slots=True)
class Means:
    """How tools reach the ledger."""

    ledger: Callable[[Caller], Ledger]
    """Gives the ledger of a caller."""
    allow: Callable[[Caller, str, str, Mapping[str, Any]], None]
    """Raises `Forbidden` unless a caller may do this: the verb's name, the grant it needs, its arguments."""
    read: Callable[[Callable[[], Any]], Awaitable[Any]]
    """Does something that only reads, off the way of other requests."""
    write: Callable[[Callable[[], Any]], Awaitable[Any]]
    """Does something that writes, durably before it answers."""
    relay: Relay
    """Runs that are told step by step."""
