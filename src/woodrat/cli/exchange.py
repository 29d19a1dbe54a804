"""Exchange: the commands that move logs out of a ledger and into one, and back them up."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from woodrat.canon.ids import TenantId
from woodrat.cli.command import CREATE, READ, CommandResult, Invocation, say
from woodrat.cli.progress import bar
from woodrat.cli.tables import DIM, GREEN, RED, YELLOW, Paper
from woodrat.engines.open import is_postgres
from woodrat.errors import Fault, NotFound, Refused
from woodrat.server import wire

if TYPE_CHECKING:
    from collections.abc import Iterable

    from woodrat.engines.engine import Engine
    from woodrat.exchange.verbs.copy import Copied
    from woodrat.exchange.verbs.importer import Imported
    from woodrat.verify.report import Verified

NOT_RESTORED = "Nothing was restored."
NOT_VERIFIED = "Nothing was verified."


def export_log(call: Invocation) -> CommandResult:
    """Write the log as JSON lines."""
    given = call.given
    to_output = given.out in (None, "-")
    ledger = call.ledger(READ)
    out: Any = sys.stdout.buffer if to_output else given.out
    sys.stdout.flush()
    with bar("Exporting", "entries", at_once=not to_output) as tell:
        found = ledger.log.export(
            out, after=given.after, through=given.through, force=given.force, resume=given.resume, progress=tell
        )
    what = f"Wrote {found.entries} entries, through position {found.through}"
    if to_output:
        # the lines are the output; the summary goes to standard error
        out.flush()
        sys.stderr.write(f"{what}; root {found.root}.\n")
        return CommandResult(None, lambda paper: None, plain=True)

    def text(paper: Paper) -> None:
        paper.line(f"{what}, to {found.out}.", GREEN)
        paper.line(f"  root {found.root}", DIM)

    return CommandResult(found.to_json(), text)


def import_log(call: Invocation) -> CommandResult:
    """Take in an exported log."""
    source: Any = sys.stdin.buffer if call.given.file == "-" else call.given.file
    ledger = call.ledger(CREATE)
    with bar("Importing", "bytes") as tell:
        found = ledger.log.import_(source, progress=tell)

    def text(paper: Paper) -> None:
        paper.line(_import_summary(found), GREEN if found.changed else YELLOW)
        paper.line(f"  the log ends at {found.position}, root {found.root}", DIM)

    return CommandResult(found.to_json(), text)


def _import_summary(found: Imported) -> str:
    """Summarise an import in a sentence."""
    parts = [f"{found.cloned} unchanged"] if found.cloned else []
    parts += [f"{found.merged} merged in"] if found.merged else []
    parts += [f"{found.known} known already"] if found.known else []
    parts += [f"{found.erased} erased"] if found.erased else []
    parts += [f"{found.erasures} erasures carried out here"] if found.erasures else []
    return f"{found.entries} entries: {', '.join(parts) or 'nothing to import'}."


def sync(call: Invocation) -> CommandResult:
    """Exchange entries with another ledger."""
    given = call.given
    ledger = call.ledger(CREATE)
    one_way = given.pull or given.push
    served = given.other.startswith(("http://", "https://"))
    key = given.key if given.key is not None else os.environ.get("WOODRAT_TOKEN") if served else None
    with bar("Syncing", "entries") as tell:
        found = ledger.log.sync(
            given.other, key=key, pull=given.pull or not one_way, push=given.push or not one_way, progress=tell
        )

    def text(paper: Paper) -> None:
        for name, half in (("pulled", found.pulled), ("pushed", found.pushed)):
            if half is not None:
                paper.line(f"{name} {_import_summary(half)}", GREEN if half.changed else DIM)
        if found.other_fingerprint is not None:
            same = "Both hold the same state." if found.same else "The other one has a different state."
            paper.line(same, GREEN if found.same else YELLOW)
        paper.line(f"  {found.fingerprint}", DIM)

    return CommandResult(found.to_json(), text)


def copy(call: Invocation) -> CommandResult:
    """Copy a log into another ledger."""
    from woodrat.exchange.verbs.copy import copy as copied
    from woodrat.exchange.verbs.copy import shown_place

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
    refused = _refusals(call, given.target, [call.tenant])

    def text(paper: Paper) -> None:
        paper.line(
            f"Copied {found.entries} entries, through position {found.through}, to {shown_place(given.target)}.", GREEN
        )
        if found.erasures:
            paper.line(f"  {found.erasures} erasures made after that came along", YELLOW)
        if found.again:
            paper.line(f"  {found.again} erasures that the keys remember were carried out in it", YELLOW)
        paper.line(f"  {found.fingerprint}", DIM)
        paper.line(f"  root {found.root}", DIM)
        for problem in refused.values():
            paper.line(f"  {problem}", YELLOW)

    return CommandResult({**found.to_json(), "refused": refused.get(call.tenant)}, text)


def backup(call: Invocation) -> CommandResult:
    """Write a backup of the whole file."""
    ledger = call.ledger(READ)
    with bar("Backing up", "pages") as tell:
        found = ledger.log.backup(call.given.file, force=call.given.force, progress=tell)

    def text(paper: Paper) -> None:
        paper.line(f"Wrote {found.path}: {found.written_bytes} bytes, {len(found.tenants)} tenants.", GREEN)
        for name, held in found.tenants.items():
            paper.line(f"  {name}: {held['size']} entries, root {held['root']}", DIM)

    return CommandResult(found.to_json(), text)


def restore(call: Invocation) -> CommandResult:
    """Restore every tenant of a backup into a new file, which appears when all of them are in it, or on a server.

    Where the signing keys remember more than the backup holds, nothing is written to it until that was accepted.
    """
    from woodrat.exchange.verbs.backup import BESIDE
    from woodrat.exchange.verbs.copy import copy as copied
    from woodrat.exchange.verbs.copy import shown_place
    from woodrat.proofs.verbs.signer import check_reason

    path, reason = call.path, call.given.accept
    target = path if path is not None else call.db
    if target is None or not (path is not None or is_postgres(target)):
        fault = Fault("--db", "a database in memory is gone with this command", "Name a new file.")
        raise Refused([fault], NOT_RESTORED)
    if path is not None and os.path.exists(path):
        remedy = "Name a new file with --db. `woodrat copy` adds one tenant to an existing file."
        raise Refused([Fault("--db", f"{path} exists already", remedy)], NOT_RESTORED)
    if reason is not None:
        check_reason(reason, "--accept", NOT_RESTORED)
    engine = _backup(call, NOT_RESTORED)
    try:
        tenants = engine.tenants()
    finally:
        engine.close()
    # A server's tables receive one tenant after another; a killed copy resumes.
    partial = target if path is None else f"{path}.restoring"
    restored: dict[str, Copied] = {}
    try:
        for tenant in tenants:
            with bar(f"Restoring {tenant}", "entries") as tell:
                restored[tenant] = copied(
                    call.given.file, partial, tenant=tenant, keys=call.keys, agent=call.agent, progress=tell
                )
        if path is not None:
            os.replace(partial, path)
    finally:
        for end in BESIDE if path is not None else ():
            if os.path.exists(partial + end):
                os.unlink(partial + end)
    for warning in dict.fromkeys(warning for tenant in restored.values() for warning in tenant.warnings):
        say(warning)
    epochs = {} if reason is None else _accept(call, target, reason, tenants)
    refused = _refusals(call, target, tenants)

    def text(paper: Paper) -> None:
        paper.line(f"Restored {len(restored)} tenants to {shown_place(target)}.", GREEN)
        for name, tenant in restored.items():
            again = f", {tenant.again} erasures carried out again" if tenant.again else ""
            paper.line(f"  {name}: {tenant.entries} entries{again}, root {tenant.root}", DIM)
            if name in epochs:
                paper.line(f"  {name}: accepted as epoch {epochs[name]}", GREEN)
            if name in refused:
                paper.line(f"  {name}: {refused[name]}", YELLOW)
        if reason is not None and not epochs:
            paper.line("Nothing had to be accepted: the signing keys remember no more than was restored.", DIM)

    told = {name: tenant.to_json() for name, tenant in restored.items()}
    return CommandResult({"db": shown_place(target), "tenants": told, "refused": refused, "epochs": epochs}, text)


def _refusals(call: Invocation, db: str, tenants: Iterable[str]) -> dict[str, str]:
    """Return the tenants of a database to which nothing can be written, because the signing keys remember a longer log,
    and why.
    """
    from woodrat.engines.open import engine_for
    from woodrat.proofs.verbs.folder import keys_for
    from woodrat.proofs.verbs.keys import Keys
    from woodrat.proofs.verbs.signer import refusals

    folder = keys_for(db, call.keys)
    if folder is None:
        return {}
    engine = engine_for(db, readonly=True)
    try:
        found = refusals(engine, Keys(folder), map(TenantId, tenants))
    finally:
        engine.close()
    return {tenant: str(error) for tenant, error in found.items()}


def _accept(call: Invocation, db: str, reason: str, tenants: Iterable[str]) -> dict[str, int]:
    """Begin a new epoch for every tenant whose log the signing keys contradict; return their number."""
    from woodrat.clock import SystemClock
    from woodrat.engines.open import engine_for
    from woodrat.proofs.verbs.folder import keys_for
    from woodrat.proofs.verbs.keys import Keys
    from woodrat.proofs.verbs.signer import Signing, refusals

    folder = keys_for(db, call.keys)
    if folder is None:
        return {}
    keys, clock, engine = Keys(folder), SystemClock(), engine_for(db, readonly=True)
    try:
        return {
            tenant: Signing(engine, tenant, keys, clock, tell=lambda text: None).begin_epoch(reason).checkpoint.epoch
            for tenant in refusals(engine, keys, map(TenantId, tenants))
        }
    finally:
        engine.close()


def verify(call: Invocation) -> CommandResult:
    """Check every log in a backup."""
    from woodrat.api.ledger import Ledger
    from woodrat.clock import SystemClock
    from woodrat.ledger.own_policy import registry

    engine = _backup(call, NOT_VERIFIED)
    reports: dict[str, Verified] = {}
    try:
        for tenant in engine.tenants():
            ledger = Ledger(engine, tenant=tenant, agent=call.agent, clock=SystemClock(), policies=registry(()))
            with bar(f"Verifying {tenant}", "entries") as tell:
                reports[tenant] = ledger.verify(deep=call.given.deep, progress=tell)
    finally:
        engine.close()
    damaged = any(report.log_damaged for report in reports.values())
    sound = all(report.sound for report in reports.values())

    def text(paper: Paper) -> None:
        for name, report in reports.items():
            state = "sound" if report.sound else "damaged log" if report.log_damaged else "derived data is out of date"
            style = GREEN if report.sound else RED if report.log_damaged else YELLOW
            paper.line(f"{name}: {state}, {report.entries} entries, {report.entities} entities", style)
            for finding in report.damage:
                paper.line(f"  {finding.problem} ({finding.damage})", style)

    code = wire.EXIT_CODES["corrupt"] if damaged else wire.DONE if sound else wire.FOUND_SOMETHING
    answer = {"file": call.given.file, "tenants": {name: report.to_json() for name, report in reports.items()}}
    return CommandResult(answer, text, code=code)


def _backup(call: Invocation, outcome: str) -> Engine:
    """Open a backup for reading alone."""
    from woodrat.engines.open import engine_for

    path = call.given.file
    if not os.path.isfile(path):
        remedy = "Name a file that `woodrat backup create` wrote."
        raise NotFound(f"There is no backup {path}. {outcome} {remedy}", {"file": path})
    return engine_for(path, readonly=True)


def import_neotoma(call: Invocation) -> CommandResult:
    """Import a Neotoma database, or compare one with this ledger."""
    from woodrat.api.ledger import Ledger
    from woodrat.neotoma.comparison import compare
    from woodrat.neotoma.database import NOTHING_IMPORTED, opened
    from woodrat.neotoma.importer import Importer

    given = call.given
    with opened(given.file, given.user) as database:  # before a ledger is made, so that a bad file leaves nothing
        ledger = call.ledger(CREATE)
        if not isinstance(ledger, Ledger):
            remedy = "Import into a file with --db, then `woodrat sync` it with the server."
            raise Refused([Fault("--db", "a database is imported where the ledger is", remedy)], NOTHING_IMPORTED)
        with bar("Importing", "rows") as tell:
            found = Importer(ledger, database, tell).run()
        checked = None
        if given.check:
            with bar("Comparing", "snapshots") as tell:
                checked = compare(ledger, database, tell)

    def text(paper: Paper) -> None:
        rows = ", ".join(f"{count} {table.replace('_', ' ')}" for table, count in found.rows.items() if count)
        paper.line(f"Read {rows or 'no rows'}: {found.added} new entries.", GREEN if found.added else YELLOW)
        if found.apart:
            paper.line(
                f"  {found.apart} entities share an identifying value with another and have their id in their key", DIM
            )
        if found.unread:
            paper.line(f"  not Neotoma's, and not read: {', '.join(found.unread)}", YELLOW)
        for problem in found.problems:
            paper.line(f"  {problem}", YELLOW)
        if found.not_kept > len(found.problems):
            paper.line(f"  and {found.not_kept - len(found.problems)} more", YELLOW)
        if checked is not None:
            paper.line(f"{checked.same} of {checked.snapshots} snapshots are the same here.", GREEN)
            for reason, count in checked.reasons.items():
                paper.line(f"  {count}: {reason}", DIM)
            for item in checked.differences:
                paper.line(f"  {item.entity}#{item.field} is {item.here!r}, there {item.there!r}")

    told = found.to_json() | ({"check": checked.to_json()} if checked is not None else {})
    return CommandResult(told, text)
