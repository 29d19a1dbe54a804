"""The context of a ledger behind an address."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from woodrat.clock import Clock


class RemoteContext(NamedTuple):
    """The part of a context that there is without an engine."""

    valid_at: str | None
    """What was true by this time alone counts; None: whenever it was true."""
    clock: Clock
    """Time and fresh ids, here."""
    hidden: frozenset[str]
    """Keys whose values do not leave this process."""
