"""Serving: the verbs that start a server and look after its keys."""

from __future__ import annotations

import ipaddress
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from woodrat.errors import Fault, Refused
from woodrat.surfaces import wire
from woodrat.surfaces.cli.calling import CREATE, READ, Answer, Call
from woodrat.surfaces.cli.paper import BOLD, DIM, GREEN, YELLOW, Paper, time

if TYPE_CHECKING:
    from woodrat.surfaces.access import Access, Keyring

NOT_STARTED = "Nothing was started."


def serve(call: Call) -> Answer:
    """Serve the ledger over HTTP until interrupted."""
    from woodrat.clock import SystemClock
    from woodrat.ledger.policies import registry
    from woodrat.surfaces import access
    from woodrat.surfaces.http.app import App, Limits
    from woodrat.surfaces.http.serving import Serving

    given = call.given
    faults = []
    if not 0 <= given.port <= 65_535:
        faults.append(Fault("--port", f"got {given.port}", "Send 1 to 65535, or 0 for any that is free."))
    if (given.tls_cert is None) != (given.tls_key is None):
        faults.append(Fault("--tls-cert", "certificate and key go together", "Give --tls-cert and --tls-key."))
    ring = keyring(call, CREATE)
    if not ring.all() and not _is_loopback(given.host):
        remedy = "Make one with `woodrat keys create`, or serve on 127.0.0.1."
        faults.append(Fault("--host", f"{given.host} can be reached by others, and there is no key", remedy))
    if faults:
        raise Refused(faults, NOT_STARTED)
    keys: Access = ring if ring.all() else access.Open(call.tenant, call.agent)
    limits = Limits()
    names = (*limits.hosts, *([given.host] if given.host not in limits.hosts else []), *given.name)
    app = App(
        call.engine(CREATE),
        keys,
        clock=SystemClock(),
        policies=registry(()),
        limits=Limits(hosts=names, origins=tuple(given.origin)),
    )
    serving = Serving(
        app,
        given.host,
        given.port,
        tls_cert=None if given.tls_cert is None else Path(given.tls_cert),
        tls_key=None if given.tls_key is None else Path(given.tls_key),
    )
    told = "with keys" if keys is ring else f"without keys, tenant {call.tenant} alone"
    scheme = "http" if given.tls_cert is None else "https"
    print(f"Serving {call.path or ':memory:'} at {scheme}://{given.host}:{given.port}, {told}.", file=sys.stderr)
    serving.run()
    return Answer({"served": True}, lambda paper: paper.line("Stopped. What was acknowledged is safe.", GREEN))


def keyring(call: Call, mode: str) -> Keyring:
    """Return the keys of the database."""
    from woodrat.clock import SystemClock
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.policies import registry
    from woodrat.surfaces.access import KEYS_TENANT, Keyring

    clock = SystemClock()
    ledger = Ledger(call.engine(mode), tenant=KEYS_TENANT, agent=call.agent, clock=clock, policies=registry(()))
    ring = Keyring(ledger, clock)
    ring.refresh()
    return ring


def create(call: Call) -> Answer:
    """Make a key, and show its secret this once."""
    given = call.given
    key, secret = keyring(call, CREATE).create(
        call.tenant,
        given.for_agent,
        given.grant or ["*"],
        name=given.name,
        priority_max=given.priority_max,
        expires_at=given.expires_at,
    )

    def text(paper: Paper) -> None:
        paper.line(secret, BOLD)
        paper.line(f"  {key.id}: tenant {key.tenant}, agent {key.agent}, {', '.join(key.grants)}", DIM)
        paper.line("  Keep it now: only its digest is stored, and it is not shown again.", YELLOW)

    return Answer({**key.to_json(), "key": secret}, text)


def keys(call: Call) -> Answer:
    """List keys."""
    found = keyring(call, READ).all()

    def text(paper: Paper) -> None:
        if not found:
            paper.line("There are no keys.")
            return
        rows = [
            (key.id, key.tenant, key.agent, ", ".join(key.grants), key.name or "", time(key.expires_at), _state(key))
            for key in found
        ]
        paper.table(("ID", "TENANT", "AGENT", "GRANTS", "NAME", "EXPIRES AT", "STATE"), rows)

    rows = [key.to_json() for key in found]
    return Answer(wire.listing("keys", rows), text, rows)


def revoke(call: Call) -> Answer:
    """Revoke a key."""
    key = keyring(call, CREATE).revoke(call.given.key, call.given.reason)
    return Answer(key.to_json(), lambda paper: paper.line(f"{key.id} opens nothing any more.", GREEN))


def _state(key: Any) -> str:
    return "revoked" if key.revoked else "in force"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
