"""Agents: the commands that connect programs with agents to the ledger."""

from __future__ import annotations

import json
import os
import sys

from woodrat.cli.command import CREATE, CommandResult, Invocation
from woodrat.cli.tables import DIM, GREEN, YELLOW, Paper
from woodrat.errors import Fault, Refused


def mcp(call: Invocation) -> CommandResult:
    """Serve the ledger to one MCP client over standard input and output."""
    if call.is_served:
        problem = "it needs the database file, and --db is the address of a server"
        remedy = "Connect the client to the server itself: `woodrat init --client … --db ADDRESS` writes the entry."
        raise Refused([Fault("woodrat mcp", problem, remedy)], "Nothing was done.")
    from woodrat.mcp import stdio
    from woodrat.server import logs

    logs.configure("warning")
    ledger = call.ledger(CREATE)
    if sys.stdin is not None and sys.stdin.isatty():
        print(
            "This waits for an MCP client, one JSON message per line: see `woodrat init --client`. Ctrl-C stops it.",
            file=sys.stderr,
        )
    stdio.serve(ledger)
    # Standard output belongs to the protocol; nothing else may be printed.
    return CommandResult({}, lambda paper: None, plain=True)


def import_otlp(call: Invocation) -> CommandResult:
    """Record the spans of a file as runs."""
    from woodrat.cli import inputs
    from woodrat.importers import spans
    from woodrat.otlp import endpoint
    from woodrat.runs.recordings import NOTHING_RECORDED

    file = call.given.file
    data = inputs.read(file, "FILE", NOTHING_RECORDED)
    if not data.strip():
        problem = Fault("standard input" if file == "-" else file, "it is empty", "Send OTLP as protobuf or JSON.")
        raise Refused([problem], NOTHING_RECORDED)
    # Protobuf of this message begins with the tag of its only field, JSON with a brace.
    batch = spans.from_json(data) if data.lstrip()[:1] in (b"{", b"[") else spans.from_protobuf(data)
    if batch.rejected and not batch.spans:
        raise Refused(batch.rejected, NOTHING_RECORDED)
    ledger = call.ledger(CREATE)
    before = ledger.position
    found = endpoint.record(ledger, batch, named=call.given.as_agent is None)
    added = ledger.position - before

    def text(paper: Paper) -> None:
        for run in found:
            paper.line(f"Imported {run}.", GREEN)
        paper.line(f"{len(batch.spans)} spans, {added} new entries.", DIM)
        for fault in batch.rejected:
            paper.line(f"Left out {fault.path}: {fault.problem}. {fault.remedy}", YELLOW)

    rejected = [fault.to_json() for fault in batch.rejected]
    return CommandResult({"runs": list(found), "spans": len(batch.spans), "added": added, "rejected": rejected}, text)


def init(call: Invocation) -> CommandResult:
    """Make keys, or make the ledger known to a program with agents."""
    given = call.given
    if given.client is None and given.print:
        remedy = "Add --client, or leave --print out to create keys."
        raise Refused([Fault("--print", "it needs --client", remedy)], "Nothing was written.")
    if given.client is not None and given.name is not None:
        remedy = "Run init twice: once to create keys, once for the client."
        raise Refused(
            [Fault("--name", "it names a signer and cannot be combined with --client", remedy)], "Nothing was written."
        )
    if given.client is None:
        from woodrat.cli import proofs

        return proofs.init(call)
    from pathlib import Path

    from woodrat.mcp import clients

    client = clients.CLIENTS[given.client]
    if call.is_served:
        stated = [option for option, item in (("--tenant", given.tenant), ("--as", given.as_agent)) if item is not None]
        if stated:
            faults = [Fault(option, "the API key of a server decides this", "Leave it out.") for option in stated]
            raise Refused(faults, clients.NOT_WRITTEN)
        ours = clients.entry_of_server(client, str(call.db), keyed="WOODRAT_TOKEN" in os.environ)
    else:
        if call.path is None:
            problem = Fault("--db", f"{call.db} is gone when the command ends", "Name a file.")
            raise Refused([problem], clients.NOT_WRITTEN)
        agent = call.agent if given.as_agent is not None or os.environ.get("WOODRAT_AGENT") else client.name
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
            paper.line(f"Nothing was written. It belongs in {path}.", DIM)
        else:
            paper.line(f"{'Written to' if changed else 'Already in'} {path}; restart {client.name}.", GREEN)

    return CommandResult({"client": client.name, "path": str(path), "written": changed, "entry": shown}, text)


def _keys_of(call: Invocation) -> str | None:
    """Return the named folder of keys, which a client would not know; it must contain keys."""
    stated = call.keys or os.environ.get("WOODRAT_SIGNING_KEYS")
    if not stated:
        return None
    from woodrat.proofs.verbs.keys import Keys

    return os.path.abspath(Keys.open(stated).folder)
