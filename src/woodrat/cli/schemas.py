"""Schemas and sources: the commands about schemas, sources and interpretations."""

from __future__ import annotations

import sys
from typing import Any

from woodrat.cli import inputs
from woodrat.cli.command import CREATE, UPDATE, CommandResult, Invocation
from woodrat.cli.entities import page_answer, page_of
from woodrat.cli.facts import file_name, told
from woodrat.cli.progress import bar
from woodrat.cli.tables import BOLD, DIM, GREEN, YELLOW, Paper, changed, clean, fields, time, value
from woodrat.engines import private
from woodrat.errors import Fault, Refused
from woodrat.server import wire


def register(call: Invocation) -> CommandResult:
    """Register a schema."""
    given = call.given
    document: Any = inputs.document(inputs.read(given.model, "FILE"), given.model)
    report = call.ask(call.ledger(CREATE), model=document)
    return told(report, f"Registered {report.id}")


def add_pack(call: Invocation) -> CommandResult:
    """Register the schemas of a pack."""
    report = call.ask(call.ledger(CREATE))
    return told(report, f"Added the pack {call.given.pack}")


def check(call: Invocation) -> CommandResult:
    """Print the effect of registering a schema."""
    given = call.given
    given.trial = True
    document: Any = inputs.document(inputs.read(given.model, "FILE"), given.model)
    report = call.ask(call.ledger(UPDATE), model=document)

    def text(paper: Paper) -> None:
        paper.line(f"{given.model} is valid. It would be registered as {report.id}. Nothing was written.", GREEN)
        for hint in report.hints:
            paper.line(f"  {hint}")

    return CommandResult(report.to_json(), text)


def schemas(call: Invocation) -> CommandResult:
    """List the schemas in force."""
    from woodrat.state import builtin

    page = page_of(call, call.past())
    known = {schema.type: schema for schema in page.items}
    # a page has only schemas of the log; the whole list also has the built-in ones
    whole = call.given.limit is None and call.given.cursor is None
    rows = []
    for entity_type, schema in sorted({**(builtin.schemas() if whole else {}), **known}.items()):
        origin = "log" if entity_type in known else "built in"
        rows.append({"type": entity_type, "version": schema.version, "id": schema.id, "origin": origin})

    def text(paper: Paper) -> None:
        paper.table(("TYPE", "VERSION", "ID", "ORIGIN"), [[str(cell) for cell in row.values()] for row in rows])

    return page_answer(page, text, rows)


def schema(call: Invocation) -> CommandResult:
    """Show the schema in force for a type."""
    found = call.ask(call.past())

    def text(paper: Paper) -> None:
        paper.line(f"{found.type}, version {found.version}", BOLD)
        paper.line(f"  {found.id}", DIM)
        if found.beyond is not None:
            paper.line(f"  {found.beyond}", YELLOW)
        _properties(paper, dict(found.document))

    return CommandResult(found.to_json(), text)


def infer(call: Invocation) -> CommandResult:
    """Write a schema that fits the stored data."""
    past = call.past()
    with bar("Inferring", "entities") as tell:
        found = call.ask(past, progress=tell)

    def text(paper: Paper) -> None:
        paper.line(f"{call.given.entity_type}, inferred from stored values", BOLD)
        _properties(paper, found)
        paper.line("Save it with -o json, review it, and register it with `woodrat schemas register`.", DIM)

    return CommandResult(found, text)


def _properties(paper: Paper, document: dict[str, Any]) -> None:
    rows = []
    properties = document.get("properties")
    for name, about in (properties if isinstance(properties, dict) else {}).items():
        about = about if isinstance(about, dict) else {}
        kind = about.get("type", about.get("enum", ""))
        merge = about.get("x-woodrat-merge", "latest")
        rows.append((name, kind if isinstance(kind, str) else value(kind), value(merge), about.get("description", "")))
    paper.table(("FIELD", "TYPE", "MERGE", "DESCRIPTION"), rows)
    if document.get("x-woodrat-identity"):
        paper.line(f"  identity: {value(document['x-woodrat-identity'])}")


def add_source(call: Invocation) -> CommandResult:
    """Add a file as a source."""
    given = call.given
    content = inputs.read(given.file, "FILE")
    name = file_name(given.file) if given.name is None else given.name
    found = call.ask(call.ledger(CREATE), content=content, name=name)
    answer = {"source": found, "name": name, "bytes": len(content)}
    return CommandResult(answer, lambda paper: paper.line(f"Added {found} ({name}, {len(content)} bytes).", GREEN))


def sources(call: Invocation) -> CommandResult:
    """List every delivery of a source."""
    page = page_of(call, call.past())
    rows = [delivery.to_json() for delivery in page.items]

    def text(paper: Paper) -> None:
        if not rows:
            paper.line("No sources. `woodrat sources add FILE` adds one.")
            return
        cells = [(r["source"], r["name"], r["agent"], time(r["received_at"]), r["media_type"] or "") for r in rows]
        paper.table(("SOURCE", "NAME", "AGENT", "RECEIVED AT", "MEDIA TYPE"), cells)

    return page_answer(page, text, rows)


def source(call: Invocation) -> CommandResult:
    """Show a source, or write its content to a file."""
    given = call.given
    past = call.past()
    content = past.sources.content(given.source)
    deliveries = call.ask(past)
    found = wire.source(deliveries[0].source, content, deliveries)
    if given.out == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return CommandResult(None, lambda paper: None, plain=True)
    if given.out is not None:
        try:
            with open(given.out, "wb", opener=private.opener) as file:
                file.write(content)
        except (OSError, ValueError) as error:
            problem = f"cannot write {given.out}: {getattr(error, 'strerror', None) or error}"
            raise Refused([Fault("--out", problem, "Name a file that can be written.")]) from error
        answer = {"source": found["source"], "bytes": len(content), "out": given.out}
        return CommandResult(answer, lambda paper: paper.line(f"Wrote {len(content)} bytes to {given.out}.", GREEN))

    def text(paper: Paper) -> None:
        paper.line(f"{found['source']}, {len(content)} bytes", BOLD)
        cells = [(d.name, d.agent, time(d.received_at), d.media_type or "") for d in deliveries]
        paper.table(("NAME", "AGENT", "RECEIVED AT", "MEDIA TYPE"), cells)
        paper.line()
        if "text" not in found:
            paper.line("The content is not text; --out FILE saves it.", DIM)
            return
        for line in found["text"].splitlines():
            paper.line(clean(line))

    return CommandResult(found, text)


def interpretations(call: Invocation) -> CommandResult:
    """List the readings of sources."""
    page = page_of(call, call.past())
    rows = [reading.to_json() for reading in page.items]

    def text(paper: Paper) -> None:
        if not rows:
            paper.line("No interpretations.")
            return
        cells = [
            (r["id"], r["source"], r["model"] or r["extractor"] or "", r["status"], time(r["started_at"])) for r in rows
        ]
        paper.table(("INTERPRETATION", "SOURCE", "MODEL", "STATUS", "STARTED AT"), cells)

    return page_answer(page, text, rows)


def interpretation(call: Invocation) -> CommandResult:
    """Show one reading of a source."""
    found = call.ask(call.past()).to_json()

    def text(paper: Paper) -> None:
        for name, item in found.items():
            if item not in (None, {}):
                paper.line(f"  {name:<15} {fields(item) if isinstance(item, dict) else value(item)}")

    return CommandResult(found, text)


def interpretations_diff(call: Invocation) -> CommandResult:
    """Show how two readings differ."""
    past = call.past()
    found = call.ask(past)

    def text(paper: Paper) -> None:
        if not found.settings and not found.entities:
            paper.line("No difference: same settings, same content.")
            return
        paper.line("Settings" if found.settings else "Same settings.", BOLD)
        for setting in found.settings:
            paper.line(f"  {changed(setting)}")
        paper.line("Content" if found.entities else "Same content.", BOLD)
        for entity in found.entities:
            alone = {"added": " (only in the second)", "removed": " (only in the first)"}.get(entity.kind, "")
            paper.line(f"  {entity.entity}{alone}")
            for field in entity.fields:
                paper.line(f"    {changed(field)}")

    rows = [{"setting": True, **change.to_json()} for change in found.settings]
    rows += [change.to_json() for change in found.entities]
    return CommandResult({"position": past.position, **found.to_json()}, text, rows)
