"""Agents: the verbs that bring the ledger to programs with agents."""

from __future__ import annotations

import json
import os
import sys

from woodrat.errors import Fault, Refused
from woodrat.surfaces.cli.calling import CREATE, Answer, Call
from woodrat.surfaces.cli.paper import DIM, GREEN, Paper


def mcp(call: Call) -> Answer:
    """Serve the ledger to one MCP client over standard input and output."""
    from woodrat.surfaces.mcp import stdio

    stdio.serve(call.ledger(CREATE))
    # Standard output is the protocol's; nothing of ours comes after it.
    return Answer({}, lambda paper: None, plain=True)


def init(call: Call) -> Answer:
    """Make the ledger known to a program with agents."""
    from pathlib import Path

    from woodrat.surfaces.mcp import clients

    given = call.given
    if given.client is None:
        remedy = f"Name a client: --client {', '.join(clients.CLIENTS)}."
        raise Refused([Fault("--client", "there is nothing to do without it", remedy)], "Nothing was written.")
    if call.path is None:
        raise Refused(
            [Fault("--db", f"{call.db} ends with the command", "Name a file.")], outcome="Nothing was written."
        )
    client = clients.CLIENTS[given.client]
    agent = call.agent if given.agent is not None or os.environ.get("WOODRAT_AGENT") else client.name
    ours = clients.entry(client, os.path.abspath(call.path), call.tenant, agent)
    path = clients.place(client, Path.cwd(), os.environ, sys.platform)
    before = path.read_text("utf-8") if path.exists() else None
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
