"""Means: how surfaces beside the routes reach the ledger; keys, audit and commits stay with the application alone."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from woodrat.records import dataclass
from woodrat.server.body import BodyLimits

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.runs.relay import Relay
    from woodrat.server.access import Caller
    from woodrat.server.heavy_reads import Job
    from woodrat.server.requests import Exchange


def _unlimited(writes: bool) -> BodyLimits:
    return BodyLimits(sys.maxsize, sys.maxsize)


async def _nothing(found: Exchange, caller: Caller, limits: BodyLimits, parse: Callable[[bytes], Any]) -> Any:
    raise AssertionError("there are no requests with bodies here")


@dataclass(frozen=True, slots=True)
class Means:
    """How tools reach the ledger."""

    ledger: Callable[[Caller], Ledger]
    """Gives the ledger of a caller."""
    allow: Callable[[Caller, str, str, Mapping[str, Any]], None]
    """Raises `Forbidden` unless a caller may do this: the verb's name, the grant it needs, its arguments."""
    read: Callable[[Caller, Callable[[], Any], Job | None], Awaitable[Any]]
    """Does something that only reads, in turn and off the way of other requests; elsewhere if the job is heavy."""
    write: Callable[[Caller, Callable[[], Any]], Awaitable[Any]]
    """Does something that writes, durably before it answers."""
    relay: Relay
    """Runs that are told step by step."""
    body_limits: Callable[[bool], BodyLimits] = _unlimited
    """Says how much of a body is taken, of a call that writes or one that only reads."""
    take: Callable[[Exchange, Caller, BodyLimits, Callable[[bytes], Any]], Awaitable[Any]] = _nothing
    """Makes values of a request's body; of a long one in turn, and off the way of other requests."""
