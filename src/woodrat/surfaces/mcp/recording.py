"""Recording: the actions of the tool `run`, by which an agent records its own work call by call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from woodrat.surfaces.access import READ, WRITE

if TYPE_CHECKING:
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.relaying import Relay


def start(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """Begin a run."""
    key = given.pop("idempotency_key", None)
    return relay.start(ledger, given, key)


def step(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """Record one step; what it read or wrote is the answer."""
    return relay.step(ledger, given["run"], given["step"], given.get("idempotency_key"))


def decide(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """Decide by rules, and record it."""
    run, key = given.pop("run"), given.pop("idempotency_key", None)
    return relay.step(ledger, run, {"decide": given}, key)


def end(ledger: Ledger, relay: Relay, given: dict[str, Any]) -> dict[str, Any]:
    """End a run."""
    run, key = given.pop("run"), given.pop("idempotency_key", None)
    return relay.end(ledger, run, key, **given)


def step_needs(given: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Return what a key needs besides for a step that reads or writes."""
    for kind, said in given["step"].items():
        if kind == "read":
            yield READ, {"ref": said}
        elif kind == "store":
            yield WRITE, {"records": said}
        elif kind in ("decide", "select"):
            yield from decision_needs(said if isinstance(said, Mapping) else {})


def decision_needs(given: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Return what a key needs besides for a decision on what is read of an entity."""
    if isinstance(given.get("facts"), str):
        yield READ, {"ref": given["facts"]}
