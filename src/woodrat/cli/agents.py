"""Agents: the verbs that bring the ledger to programs with agents."""

from __future__ import annotations

import json
import os
import sys

from woodrat.cli.command import CREATE, Answer, Call
from woodrat.cli.tables import DIM, GREEN, YELLOW, Paper
from woodrat.errors import Fault, Refused


def mcp(call: Call) -> Answer:
    """Serve the ledger to one MCP client over standard input and output."""
    if call.is_served:
        problem = "it needs the database itself, and this one is behind an address"
        remedy = "Have the client call it there: `woodrat init --client … --db ADDRESS` writes the entry."
        raise Refused([Fault("woodrat mcp", problem, remedy)], "Nothing was done.")
    from woodrat.mcp import stdio
    from woodrat.server import logs

    logs.configure("warning")
    ledger = call.ledger(CREATE)
    if sys.stdin is not None and sys.stdin.isatty():
        print(
            "A client speaks to this, a JSON message a line: see `woodrat init --client`. Ctrl-C ends it.",
            file=sys.stderr,
        )
    stdio.serve(ledger)
    # Standard output is the protocol's; nothing of ours comes after it.
    return Answer({}, lambda paper: None, plain=True)


def import_otlp(call: Call) -> Answer:
    """Record the spans of a file as runs."""
    from woodrat.cli import inputs
    from woodrat.otlp import endpoint, spans

    file = call.given.file
    data = inputs.read(file, "FILE", spans.NOT_RECORDED)
    if not data.strip():
        problem = Fault(
            "standard input" if file == "-" else file, "there is nothing in it", "Send OTLP, or JSON of it."
        )
        raise Refused([problem], spans.NOT_RECORDED)
    # Protobuf of this message begins with the tag of its only field, JSON with a brace.
    batch = spans.from_json(data) if data.lstrip()[:1] in (b"{", b"[") else spans.from_protobuf(data)
    ledger = call.ledger(CREATE)
    before = ledger.position
    found = endpoint.record(ledger, batch, named=call.given.agent is None)
    added = ledger.position - before

    def text(paper: Paper) -> None:
        for run in found:
            paper.line(f"Recorded {run}.", GREEN)
        paper.line(f"{len(batch.spans)} spans, {added} new entries.", DIM)
        for fault in batch.rejected:
            paper.line(f"Left out {fault.path}: {fault.problem}. {fault.remedy}", YELLOW)

    rejected = [fault.to_json() for fault in batch.rejected]
    return Answer({"runs": list(found), "spans": len(batch.spans), "added": added, "rejected": rejected}, text)


def init(call: Call) -> Answer:
    """Make keys, or make the ledger known to a program with agents."""
    given = call.given
    if given.client is None and given.print:
        remedy = "Name a client with --client, or leave --print out to make keys."
        raise Refused([Fault("--print", "only the entry of a client can be shown", remedy)], "Nothing was written.")
    if given.client is not None and given.name is not None:
        remedy = "Call init twice: once to make keys, once for the client."
        raise Refused([Fault("--name", "it names a signer, and a client has none", remedy)], "Nothing was written.")
    if given.client is None:
        from woodrat.cli import proofs

        return proofs.init(call)
    from pathlib import Path

    from woodrat.mcp import clients

    client = clients.CLIENTS[given.client]
    if call.is_served:
        stated = [name for name in ("tenant", "agent") if getattr(given, name) is not None]
        if stated:
            faults = [Fault(f"--{name}", "the key of a server says it", "Leave it out.") for name in stated]
            raise Refused(faults, clients.NOT_WRITTEN)
        ours = clients.entry_of_server(client, str(call.db), keyed="WOODRAT_KEY" in os.environ)
    else:
        if call.path is None:
            problem = Fault("--db", f"{call.db} ends with the command", "Name a file.")
            raise Refused([problem], clients.NOT_WRITTEN)
        agent = call.agent if given.agent is not None or os.environ.get("WOODRAT_AGENT") else client.name
        ours = clients.entry(client, os.path.abspath(call.path), call.tenant, agent, _keys_of(call))
    path = clients.place(client, Path.cwd(), os.environ, sys.platform)
    before = path.read_bytes() if path.exists() else None
    document = clients.merged(client, before, ours, str(path))
    changed = not given.print and clients.write(path, document)
    shown = {client.under: {clients.NAME: document[client.under][clients.NAME]}}

    def text(paper: Paper) -> None:
        for line in json.dumps(shown, indent=2, ensure_ascii=False).splitlines():
            paper.line(line)
        if given.print:
            paper.line(f"Nothing was written. It belongs into {path}.", DIM)
        else:
            paper.line(f"{'Written to' if changed else 'Already in'} {path}; restart {client.name}.", GREEN)

    return Answer({"client": client.name, "path": str(path), "written": changed, "entry": shown}, text)


def _keys_of(call: Call) -> str | None:
    """Return the folder of keys that was named, which a client would not know of; there must be keys in it."""
    stated = call.keys or os.environ.get("WOODRAT_KEYS")
    if not stated:
        return None
    from woodrat.proofs.verbs.keys import Keys

    return os.path.abspath(Keys.open(stated).folder)
