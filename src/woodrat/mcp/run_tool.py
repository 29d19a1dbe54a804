"""Recording: the actions of the tool `run`, by which an agent records its own work call by call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.errors import Fault, Refused
from woodrat.server.answers import step_told

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.runs.relay import Relay


def start(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """Begin a run."""
    key = given.pop("idempotency_key", None)
    return relay.start(ledger.context, given, key)


def step(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """Record one step; what it read or wrote is the answer."""
    return step_told(relay.step(ledger.context, given["run"], given["step"], given.get("idempotency_key")))


def decide(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """Decide by rules, and record it; what is wrong with a rule, and a rule that is unknown, is refused."""
    run, key = given.pop("run"), given.pop("idempotency_key", None)
    try:
        return step_told(relay.step(ledger.context, run, {"decide": given}, key))
    except Refused as refusal:
        # That a decision is a step inside is nothing to whoever called the tool.
        faults = [Fault(f.path.removeprefix("/step/decide"), f.problem, f.remedy) for f in refusal.faults]
        raise Refused(faults, str(refusal).rpartition("\n")[2]) from refusal


def end(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """End a run."""
    run, key = given.pop("run"), given.pop("idempotency_key", None)
    return relay.end(ledger.context, run, key, **given)
