"""Erase: the command that erases for good."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from woodrat.cli.command import READ, UPDATE, CommandResult, Invocation
from woodrat.cli.progress import bar
from woodrat.cli.tables import BOLD, DIM, GREEN, RED, YELLOW, Paper
from woodrat.errors import Fault, Refused, Unavailable
from woodrat.server import wire

if TYPE_CHECKING:
    from woodrat.erasure.certificate import Certificate
    from woodrat.erasure.verbs.byte_scan import Compaction, Finished

NO_ERASURE = "Nothing was erased."


def erase(call: Invocation) -> CommandResult:
    """Erase the named data, after a confirmation; or finish pending erasures."""
    given = call.given
    if given.compact and not given.finish:
        problem = "--compact belongs to --finish"
        raise Refused([Fault("woodrat erase", problem, "Add --finish, or leave out --compact.")], NO_ERASURE)
    if given.finish or given.again:
        return _finish(call) if given.finish else _again(call)
    if given.reason is None:
        problem = "missing: --reason"
        remedy = "Say why with --reason; it is stored in the log, so do not name anybody in it."
        raise Refused([Fault("woodrat erase", problem, remedy)], NO_ERASURE)
    if given.dry_run:
        return _told(call.ask(call.ledger(READ)), None)
    ledger = call.ledger(UPDATE)
    if not given.yes:
        _ask(call.ask(ledger, dry_run=True))
    out = None if given.out is None else _opened(given.out)
    try:
        with bar("Erasing", "entries") as tell:
            certificate = call.ask(ledger, progress=tell)
    except BaseException:
        if out is not None:
            os.close(out)
            os.unlink(given.out)
        raise
    if out is not None:
        import json

        with os.fdopen(out, "w", encoding="utf-8") as file:
            file.write(json.dumps(certificate.to_json(), indent=2) + "\n")
    return _told(certificate, given.out)


def _finish(call: Invocation) -> CommandResult:
    """Remove the remains of erasures from the files, and search for them if their bytes are known."""
    _check_alone(call, "--finish")
    given = call.given
    if given.dry_run:
        return _estimated(call.ledger(READ).finish_erasure(dry_run=True))
    found = call.ledger(UPDATE).finish_erasure(compact=given.compact)

    def text(paper: Paper) -> None:
        if found.compaction is not None:
            _compacted(paper, found.compaction)
        if not found.purged:
            who = f" ({', '.join(found.blockers)})" if found.blockers else ""
            paper.line(f"Pending: somebody is still reading an older state, or writing{who}.", YELLOW)
            paper.line("Try again when they have finished.", YELLOW)
        elif not found.searched:
            paper.line("Nothing erased is left to remove from the files.", GREEN)
            paper.line("The files were not searched: no erasure that the key here belongs to waits for it.", DIM)
        else:
            _searched(paper, found)
            for certificate in found.certificates:
                paper.line(f"  finished: the erasure at {certificate.position}", DIM)

    done = found.purged and not found.hits
    return CommandResult(found.to_json(), text, code=wire.DONE if done else wire.FOUND_SOMETHING)


def _estimated(found: Finished) -> CommandResult:
    """Print the cost of compacting the file."""

    def text(paper: Paper) -> None:
        if found.compaction is None:
            paper.line("This ledger is in no file that could be compacted.", DIM)
            return
        paper.line(f"Compacting the file would take about {found.compaction.estimated_seconds} s. Writers would wait.")
        if found.compaction.needed_bytes is not None:
            paper.line(f"  free disk space needed: {found.compaction.needed_bytes} bytes", DIM)

    return CommandResult(found.to_json(), text)


def _compacted(paper: Paper, found: Compaction) -> None:
    """Print the result of compacting the file."""
    sizes = "" if found.size_bytes is None else f": {found.size_bytes} bytes, now {found.size_after_bytes}"
    paper.line(f"Compacted the file in {found.seconds} s (estimate: {found.estimated_seconds} s){sizes}.", GREEN)


def _searched(paper: Paper, found: Finished | Certificate) -> None:
    """Print the result of searching the files."""
    if found.complete:
        size = "" if found.scanned_bytes is None else f" ({found.scanned_bytes} bytes)"
        paper.line(f"  searched, nothing left: {', '.join(found.scanned) or 'none'}{size}", GREEN)
    for file, count in found.hits.items():
        paper.line(f"  {file}: still contains erased data, {count} times", RED)


def _again(call: Invocation) -> CommandResult:
    """Repeat the erasures of another copy of this ledger."""
    _check_alone(call, "--again")
    found = call.ledger(UPDATE, put_back=True).erase_again()

    def text(paper: Paper) -> None:
        if not found:
            paper.line("This ledger contains nothing that was erased elsewhere.", GREEN)
        for certificate in found:
            _told(certificate, None).text(paper)

    complete = all(certificate.complete for certificate in found)
    return CommandResult([c.to_json() for c in found], text, code=wire.DONE if complete else wire.FOUND_SOMETHING)


def _check_alone(call: Invocation, option: str) -> None:
    given = call.given
    if given.what is not None or given.agent is not None or given.subject is not None or (given.finish and given.again):
        problem = f"{option} cannot be combined with anything to erase"
        raise Refused([Fault("woodrat erase", problem, f"Omit the entities to erase, or {option}.")], NO_ERASURE)


def _ask(planned: Certificate) -> None:
    """Ask for confirmation on a terminal; refuse without one."""
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        problem = "it cannot be undone, and there is no terminal to ask for confirmation"
        raise Refused([Fault("woodrat erase", problem, "Check with --dry-run, then add --yes.")], NO_ERASURE)
    entries = sum(planned.kinds.values())
    replaced = sum(planned.resaid.values())
    sys.stderr.write(f"{entries} entries will be erased, {replaced} of them replaced by versions without it.\n")
    sys.stderr.write("This cannot be undone. Type yes to continue: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != "yes":
        raise Refused([Fault("woodrat erase", "the answer was not yes", "Type yes, or add --yes.")], NO_ERASURE)


def _opened(path: str) -> int:
    """Open the file for the certificate before anything is erased: afterwards it could not be made again."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Refused([Fault("--out", f"{path} exists already", "Name a new file.")], NO_ERASURE) from None
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}. {NO_ERASURE} Name another file.", {"path": path}) from error


def _told(found: Certificate, out: str | None) -> CommandResult:
    def text(paper: Paper) -> None:
        entries = sum(found.kinds.values())
        if found.dry_run:
            paper.line(f"{entries} entries would be erased. {NO_ERASURE}", BOLD)
        else:
            paper.line(f"{entries} entries erased at {found.position}.", GREEN)
        for kind, count in found.kinds.items():
            again = found.resaid.get(kind, 0)
            paper.line(f"  {kind:<22}  {count:>7}" + (f"   replaced: {again}" if again else ""))
        places = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found.positions)
        paper.line(f"  positions: {places}", DIM)
        if found.quoting:
            paper.line(f"  found by text they quote: {', '.join(map(str, found.quoting))}")
        for name, length in found.short.items():
            paper.line(f"  {name}: too short to search for in text ({length} characters)", YELLOW)
        for name, positions in found.shared.items():
            paper.line(f"  {name}: also stated by others, at {', '.join(map(str, positions))}", YELLOW)
        for field in found.returned:
            paper.line(f"  {field}: now shows an older value", YELLOW)
        if not found.dry_run:
            _searched(paper, found)
            for one in found.stays:
                paper.line(f"  stays: {one.what}: {one.why}", DIM)
        for warning in found.warnings:
            paper.line(f"  {warning}", DIM)
        if out is not None:
            paper.line(f"  certificate: {out}")

    code = wire.DONE if found.dry_run or found.complete else wire.FOUND_SOMETHING
    return CommandResult(found.to_json(), text, code=code)
