"""Serving: the commands that start a server, and manage its keys and webhooks."""

from __future__ import annotations

import ipaddress
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from woodrat.cli.command import CREATE, READ, CommandResult, Invocation
from woodrat.cli.tables import BOLD, DIM, GREEN, YELLOW, Paper, time
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.server import wire

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.server.app import App
    from woodrat.server.erasures import Window
    from woodrat.server.gateway import Endpoint
    from woodrat.server.keys import Keyring
    from woodrat.server.limits import Limits
    from woodrat.server.webhooks import Hooks


NO_KEY = "No key was created."


def serve(call: Invocation) -> CommandResult:
    """Serve the ledger over HTTP until interrupted."""
    from woodrat.engines import private
    from woodrat.engines.open import is_postgres
    from woodrat.server import access, listen, logs, supervisor
    from woodrat.server.erasures import window
    from woodrat.server.limits import Limits
    from woodrat.server.serve import Serving

    given = call.given
    post = supervisor.post()
    faults = []
    if not 1 <= given.workers <= supervisor.WORKERS_MAX:
        faults.append(Fault("--workers", f"got {given.workers}", f"Use 1 to {supervisor.WORKERS_MAX}."))
    elif given.workers > 1 and not is_postgres(call.db):
        problem = f"{given.workers} processes cannot serve one file, which one of them writes"
        faults.append(Fault("--workers", problem, "Leave it out, or keep the ledger in PostgreSQL."))
    if not 0 <= given.port <= 65_535:
        faults.append(Fault("--port", f"got {given.port}", "Use 1 to 65535, or 0 for any free port."))
    if (given.tls_cert is None) != (given.tls_key is None):
        faults.append(Fault("--tls-cert", "a certificate needs its key", "Add both --tls-cert and --tls-key."))
    elif given.tls_cert is not None:
        faults += listen.certificate_faults(Path(given.tls_cert), Path(given.tls_key))
    if given.calls_per_second is not None and given.calls_per_second < 1:
        faults.append(Fault("--calls-per-second", f"got {given.calls_per_second}", "Use 1 or more, or leave it out."))
    if call.tenant.startswith(access.OWN_TENANTS):
        problem = f"{call.tenant} is reserved for the server itself"
        faults.append(Fault("--tenant", problem, "Name another tenant."))
    compact_window = None if given.compact_window is None else window(given.compact_window)
    ring = keyring(call, CREATE)
    reached = f"others can reach {given.host}, and there is no API key"
    exposed = Fault("--host", reached, "Create a key with `woodrat keys create`, or serve on 127.0.0.1.")
    if not ring.all() and not _is_loopback(given.host):
        faults.append(exposed)
    if not ring.all() and given.behind_proxy:
        problem = "a proxy forwards calls of others, and there is no API key, so anybody could call"
        remedy = "Create a key with `woodrat keys create`, or leave --behind-proxy out to serve only this machine."
        faults.append(Fault("--behind-proxy", problem, remedy))
    if faults:
        raise Refused(faults, listen.NOT_STARTED)
    address, port = listen.place(given.host, given.port) if post is None else (listen.address_of(given.host), post.port)
    if not ring.all() and not _is_loopback(address):  # localhost may resolve to another address
        raise Refused([exposed], listen.NOT_STARTED)
    keyed = ring.any
    logs.configure(given.log_level)
    scheme = "http" if given.tls_cert is None else "https"
    place = call.path or call.engine(CREATE).location or ":memory:"
    how = "with API keys" if keyed else f"without API keys, tenant {call.tenant} only"
    if post is None:
        several = f", by {given.workers} processes" if given.workers > 1 else ""
        print(
            f"Serving {place} at {scheme}://{listen.spelled(given.host, port)}, {how}{several}.",
            file=sys.stderr,
        )
    if given.workers > 1 and post is None:
        with listen.reserved(address, port):
            code = supervisor.Supervisor(given.workers, port).run()
        return CommandResult({"served": True}, _stopped, code=code)
    limits = Limits()
    names = (*limits.hosts, *([given.host] if given.host not in limits.hosts else []), *given.name)
    limits = Limits(
        hosts=names,
        origins=tuple(given.origin),
        proxied=given.behind_proxy,
        local=_is_loopback(address) and not given.behind_proxy,
        calls_per_second=given.calls_per_second,
    )
    serving = Serving(
        application(call, ring, limits, compact_window),
        address,
        port,
        tls_cert=None if given.tls_cert is None else Path(given.tls_cert),
        tls_key=None if given.tls_key is None else Path(given.tls_key),
        lifeline=None if post is None else post.lifeline,
    )
    if call.path is not None and private.is_open_to_all(call.path):
        told = f"Warning: every user of this machine can read {call.path}, with all tenants. Run: chmod 600 {call.path}"
        print(told, file=sys.stderr)
    serving.run()
    return (
        CommandResult({"served": True}, _stopped)
        if post is None
        else CommandResult(None, lambda paper: None, plain=True)
    )


def _stopped(paper: Paper) -> None:
    paper.line("Stopped. Acknowledged writes are safe.", GREEN)


def application(call: Invocation, ring: Keyring, limits: Limits, compact_window: Window | None = None) -> App:
    """Return the server's application: the ledgers of a database, with all endpoints beside the routes."""
    from woodrat.clock import SystemClock
    from woodrat.inspector.site import InspectorSite
    from woodrat.ledger.own_policy import registry
    from woodrat.proofs.verbs.folder import keys_for
    from woodrat.server import logs
    from woodrat.server.app import App
    from woodrat.server.deliveries import Deliveries
    from woodrat.server.keys import OpenAtFirst

    clock = SystemClock()
    return App(
        call.engine(CREATE),
        ring if ring.any else OpenAtFirst(ring, call.tenant, call.agent),
        clock=clock,
        policies=registry(()),
        endpoints=endpoints(),
        site=InspectorSite(),
        proofs=keys_for(call.db, call.keys),
        strict=os.environ.get("WOODRAT_STRICT") or False,
        redact=os.environ.get("WOODRAT_REDACT"),
        limits=limits,
        compact_window=compact_window,
        deliveries=Deliveries(
            _hooks(call, CREATE),
            lambda tenant: _ledger(call, CREATE, tenant),
            clock,
            lambda event, told: logs.event(event, **told),
            partial(call.engine(CREATE).has_duty, "webhooks"),
        ),
    )


def endpoints() -> tuple[Endpoint, ...]:
    """Return the endpoints beside the routes: MCP, Neotoma's clients and OpenTelemetry."""
    from woodrat.mcp.endpoint import McpEndpoint
    from woodrat.neotoma.endpoint import NeotomaEndpoint
    from woodrat.otlp.endpoint import OtlpEndpoint

    return McpEndpoint(), NeotomaEndpoint(), OtlpEndpoint()


def keyring(call: Invocation, mode: str) -> Keyring:
    """Return the keys of the database."""
    from woodrat.clock import SystemClock
    from woodrat.server.keys import KEYS_TENANT, Keyring

    ring = Keyring(_ledger(call, mode, KEYS_TENANT), SystemClock())
    ring.refresh()
    return ring


def _ledger(call: Invocation, mode: str, tenant: str) -> Ledger:
    from woodrat.api.ledger import Ledger
    from woodrat.api.maintenance import check_put_back
    from woodrat.clock import SystemClock
    from woodrat.ledger.own_policy import registry

    check_put_back(call.engine(mode), tenant, call.keys)
    return Ledger(
        call.engine(mode),
        tenant=tenant,
        agent=call.agent,
        clock=SystemClock(),
        policies=registry(()),
        keys=call.keys,
    )


def _hooks(call: Invocation, mode: str) -> Hooks:
    from woodrat.clock import SystemClock
    from woodrat.server.webhooks import WEBHOOKS_TENANT, Hooks

    return Hooks(_ledger(call, mode, WEBHOOKS_TENANT), SystemClock())


def create(call: Invocation) -> CommandResult:
    """Make a key, and show its secret this once."""
    from woodrat.server.access import GRANTS

    given = call.given
    if not given.grant:
        remedy = f"Add --grant with {', '.join(GRANTS)}, one for a type such as write:contact, or '*'."
        raise Refused([Fault("--grant", "missing; a key has no grants by default", remedy)], NO_KEY)
    key, secret = keyring(call, CREATE).create(
        call.tenant,
        given.agent,
        given.grant,
        name=given.name,
        priority_max=given.priority_max,
        expires_at=given.expires_at,
    )

    def text(paper: Paper) -> None:
        paper.line(secret, BOLD)
        paper.line(f"  {key.id}: tenant {key.tenant}, agent {key.agent}, {', '.join(key.grants)}", DIM)
        paper.line("  Save it now: only its digest is stored, and it is never shown again.", YELLOW)

    return CommandResult({**key.to_json(), "key": secret}, text)


def keys(call: Invocation) -> CommandResult:
    """List keys."""
    found = keyring(call, READ).all()

    def text(paper: Paper) -> None:
        if not found:
            paper.line("No API keys.")
            return
        rows = [
            (key.id, key.tenant, key.agent, ", ".join(key.grants), key.name or "", time(key.expires_at), _state(key))
            for key in found
        ]
        paper.table(("ID", "TENANT", "AGENT", "GRANTS", "NAME", "EXPIRES AT", "STATE"), rows)

    rows = [key.to_json() for key in found]
    return CommandResult(wire.listing(rows), text, rows)


def revoke(call: Invocation) -> CommandResult:
    """Revoke a key."""
    key = keyring(call, CREATE).revoke(call.given.key, call.given.reason)
    return CommandResult(key.to_json(), lambda paper: paper.line(f"Revoked {key.id}.", GREEN))


def audit(call: Invocation) -> CommandResult:
    """List the reads of a key, or of all keys."""
    from woodrat.server.audit import AUDIT_TENANT, looked, named

    id = call.given.key
    if id is not None and id not in {key.id for key in keyring(call, READ).all()}:
        problem = f"{shown(id)}: unknown key. Nothing was read. `woodrat keys list` lists them."
        raise NotFound(problem, {"key": id})
    ledger = _ledger(call, READ, AUDIT_TENANT)
    found = named(ledger, list(looked(ledger, id)))

    def text(paper: Paper) -> None:
        if not found:
            paper.line("Nothing was read.")
            return
        rows = [
            (
                time(one.at),
                one.key,
                one.agent,
                one.verb,
                one.target or "",
                one.as_of or "now",
                str(one.count),
                one.outcome,
            )
            for one in found
        ]
        paper.table(("AT", "KEY", "AGENT", "VERB", "WHAT", "AS OF", "TIMES", "OUTCOME"), rows)

    rows = [one.to_json() for one in found]
    return CommandResult(wire.listing(rows), text, rows)


def tenants(call: Invocation) -> CommandResult:
    """List the tenants with a log."""
    names = [name for name in call.engine(READ).tenants() if not name.startswith("woodrat.")]
    rows = [{"tenant": name, "position": _ledger(call, READ, name).position} for name in names]

    def text(paper: Paper) -> None:
        if rows:
            paper.table(("TENANT", "POSITION"), [(str(row["tenant"]), str(row["position"])) for row in rows])
        else:
            paper.line("No tenants.")

    return CommandResult(wire.listing(rows), text, rows)


def add_webhook(call: Invocation) -> CommandResult:
    """Add a webhook."""
    given = call.given
    after = given.after if given.after is not None else _ledger(call, CREATE, call.tenant).position
    hook = _hooks(call, CREATE).add(call.tenant, given.url, given.secret_file, given.kind, after=after)
    return CommandResult(hook.to_json(), lambda paper: paper.line(f"{hook.id}: {hook.tenant} → {hook.url}", GREEN))


def webhooks(call: Invocation) -> CommandResult:
    """List webhooks."""
    found = _hooks(call, READ).all()

    def text(paper: Paper) -> None:
        if not found:
            paper.line("No webhooks.")
            return
        rows = [(hook.id, hook.tenant, hook.url, ", ".join(hook.kinds) or "all", str(hook.position)) for hook in found]
        paper.table(("ID", "TENANT", "URL", "KINDS", "POSITION"), rows)

    rows = [hook.to_json() for hook in found]
    return CommandResult(wire.listing(rows), text, rows)


def remove_webhook(call: Invocation) -> CommandResult:
    """Remove a webhook."""
    _hooks(call, CREATE).remove(call.given.webhook)
    return CommandResult(
        {"removed": call.given.webhook}, lambda paper: paper.line(f"Removed {call.given.webhook}.", GREEN)
    )


def dead_letters(call: Invocation) -> CommandResult:
    """List dead letters."""
    rows = _hooks(call, READ).dead(call.given.webhook)

    def text(paper: Paper) -> None:
        if not rows:
            paper.line("No failed deliveries.")
            return
        shown = [
            (time(row["at"]), row["webhook"], f"{row['first']}–{row['last']}", str(row["tries"]), row["problem"])
            for row in rows
        ]
        paper.table(("AT", "WEBHOOK", "POSITIONS", "TRIES", "PROBLEM"), shown)

    return CommandResult(wire.listing(rows), text, rows)


def retry_webhook(call: Invocation) -> CommandResult:
    """Have dead letters delivered again."""
    given = call.given
    count = _hooks(call, CREATE).retry(given.webhook, given.first)
    told = f"A running server will send {count} {'delivery' if count == 1 else 'deliveries'} again."
    return CommandResult({"webhook": given.webhook, "retried": count}, lambda paper: paper.line(told, GREEN))


def _state(key: Any) -> str:
    return "revoked" if key.revoked else "active"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
