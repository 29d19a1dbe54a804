"""Exchanging: the verbs by which logs leave a ledger, come into one, meet, and are kept elsewhere."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from woodrat.cli.command import CREATE, READ, Answer, Call, say
from woodrat.cli.progress import bar
from woodrat.cli.tables import DIM, GREEN, YELLOW, Paper

if TYPE_CHECKING:
    from woodrat.exchange.verbs.importer import Imported


def export_log(call: Call) -> Answer:
    """Write the log as JSON lines."""
    given = call.given
    to_output = given.out in (None, "-")
    ledger = call.ledger(READ)
    out: Any = sys.stdout.buffer if to_output else given.out
    sys.stdout.flush()
    with bar("Exporting", "entries", at_once=not to_output) as tell:
        found = ledger.export_log(
            out, after=given.after, through=given.through, force=given.force, resume=given.resume, progress=tell
        )
    what = f"Wrote {found.entries} entries, through position {found.through}"
    if to_output:
        # The lines are the output; what became of them is told beside it.
        out.flush()
        sys.stderr.write(f"{what}; root {found.root}.\n")
        return Answer(None, lambda paper: None, plain=True)

    def text(paper: Paper) -> None:
        paper.line(f"{what}, to {found.out}.", GREEN)
        paper.line(f"  root {found.root}", DIM)

    return Answer(found.to_json(), text)


def import_log(call: Call) -> Answer:
    """Take in an exported log."""
    source: Any = sys.stdin.buffer if call.given.file == "-" else call.given.file
    ledger = call.ledger(CREATE)
    with bar("Importing", "bytes") as tell:
        found = ledger.import_log(source, progress=tell)

    def text(paper: Paper) -> None:
        paper.line(_told(found), GREEN if found.changed else YELLOW)
        paper.line(f"  the log ends at {found.position}, root {found.root}", DIM)

    return Answer(found.to_json(), text)


def _told(found: Imported) -> str:
    """Say in a sentence what was taken in."""
    parts = [f"{found.cloned} as they are"] if found.cloned else []
    parts += [f"{found.merged} merged in"] if found.merged else []
    parts += [f"{found.known} known already"] if found.known else []
    parts += [f"{found.erased} erased"] if found.erased else []
    parts += [f"{found.erasures} erasures carried out here"] if found.erasures else []
    return f"{found.entries} entries: {', '.join(parts) or 'nothing to take in'}."


def sync(call: Call) -> Answer:
    """Exchange entries with another ledger."""
    given = call.given
    ledger = call.ledger(CREATE)
    one_way = given.pull or given.push
    served = given.other.startswith(("http://", "https://"))
    key = given.key if given.key is not None else os.environ.get("WOODRAT_KEY") if served else None
    with bar("Syncing", "entries") as tell:
        found = ledger.sync(
            given.other, key=key, pull=given.pull or not one_way, push=given.push or not one_way, progress=tell
        )

    def text(paper: Paper) -> None:
        for name, half in (("pulled", found.pulled), ("pushed", found.pushed)):
            if half is not None:
                paper.line(f"{name} {_told(half)}", GREEN if half.changed else DIM)
        if found.other_fingerprint is not None:
            same = "Both hold the same state." if found.same else "The other one holds another state."
            paper.line(same, GREEN if found.same else YELLOW)
        paper.line(f"  {found.fingerprint}", DIM)

    return Answer(found.to_json(), text)


def copy(call: Call) -> Answer:
    """Copy a log into another ledger."""
    from woodrat.exchange.verbs.copy import copy as copied

    given = call.given
    with bar("Copying", "entries") as tell:
        found = copied(
            given.source,
            given.target,
            tenant=call.tenant,
            through=given.through,
            keys=call.keys,
            agent=call.agent,
            progress=tell,
        )
    for warning in found.warnings:
        say(warning)

    def text(paper: Paper) -> None:
        paper.line(f"Copied {found.entries} entries, through position {found.through}, to {given.target}.", GREEN)
        if found.erasures:
            paper.line(f"  {found.erasures} erasures made after that came along", YELLOW)
        if found.again:
            paper.line(f"  {found.again} erasures that the keys remember were carried out in it", YELLOW)
        paper.line(f"  {found.fingerprint}", DIM)
        paper.line(f"  root {found.root}", DIM)

    return Answer(found.to_json(), text)


def backup(call: Call) -> Answer:
    """Write a backup of the whole file."""
    ledger = call.ledger(READ)
    with bar("Backing up", "pages") as tell:
        found = ledger.backup(call.given.file, force=call.given.force, progress=tell)

    def text(paper: Paper) -> None:
        paper.line(f"Wrote {found.path}: {found.written_bytes} bytes, {len(found.tenants)} tenants.", GREEN)
        for name, held in found.tenants.items():
            paper.line(f"  {name}: {held['size']} entries, root {held['root']}", DIM)

    return Answer(found.to_json(), text)
