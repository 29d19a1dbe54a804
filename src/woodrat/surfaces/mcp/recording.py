"""Recording: the actions of the tool `run`, by which an agent records its own work call by call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.surfaces.answers import step_told

if TYPE_CHECKING:
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.relaying import Relay


def start(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """Begin a run."""
    key = given.pop("idempotency_key", None)
    return relay.start(ledger, given, key)


def step(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """Record one step; what it read or wrote is the answer."""
    return step_told(relay.step(ledger, given["run"], given["step"], given.get("idempotency_key")))


def decide(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """Decide by rules, and record it."""
    run, key = given.pop("run"), given.pop("idempotency_key", None)
    return step_told(relay.step(ledger, run, {"decide": given}, key))


def end(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """End a run."""
    run, key = given.pop("run"), given.pop("idempotency_key", None)
    return relay.end(ledger, run, key, **given)
