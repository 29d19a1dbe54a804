"""Verify: the command that checks everything, and its report for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.cli.command import READ, CommandResult, Invocation
from woodrat.cli.progress import bar
from woodrat.cli.tables import DIM, GREEN, RED, YELLOW, Paper
from woodrat.errors import Fault, Refused
from woodrat.server import wire

if TYPE_CHECKING:
    from woodrat.verify.report import Finding, Verified

SHOWN_MAX = 20
"""Most findings listed in full; JSON has them all."""
NOTE_BYTES_MAX = 1_048_576
"""Largest file with a checkpoint."""


def verify(call: Invocation) -> CommandResult:
    """Work everything out again from the log, and compare."""
    given = call.given
    checkpoints = [_note(path, "--checkpoint") for path in given.checkpoints]
    key = None if given.key is None else _note(given.key, "--key")
    ledger = call.ledger(READ, put_back=True)
    with bar("Verifying", "entries") as tell:
        found = call.ask(ledger, checkpoints=checkpoints, key=key, embedder=given.embedder, progress=tell)
    code = wire.EXIT_CODES["corrupt"] if found.log_damaged else wire.DONE if found.sound else wire.FOUND_SOMETHING
    return CommandResult(found.to_json(), lambda paper: _print(paper, found), code=code)


def _note(path: str, option: str) -> str:
    """Return the text of a checkpoint, or of a key."""
    try:
        with open(path, "rb") as file:
            data = file.read(NOTE_BYTES_MAX)
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        fault = Fault(option, f"{path} cannot be read ({reason})", "Name a file of text that can be read.")
        raise Refused([fault], "Nothing was verified.") from error


def _print(paper: Paper, found: Verified) -> None:
    if found.sound:
        paper.line(f"The ledger is sound: {found.entries} entries, {found.entities} entities.", GREEN)
    elif found.log_damaged:
        where = "" if found.first is None else f" The first bad position is {found.first}."
        paper.line(f"The log is damaged.{where}", RED)
    elif any(one.damage == "behind" for one in found.damage):
        paper.line("The log is intact, but it is an older copy than the signing keys remember.", YELLOW)
    else:
        where = "" if found.first is None else f" The first position affected is {found.first}."
        paper.line(f"The log is intact, but data derived from it is out of date.{where}", YELLOW)
    for one in found.damage[:SHOWN_MAX]:
        paper.line(f"  {_where(one)}: {one.problem} ({one.damage})", RED if one.log else YELLOW)
    if len(found.damage) > SHOWN_MAX:
        paper.line(f"  … and {len(found.damage) - SHOWN_MAX} more")
    for remedy in dict.fromkeys(one.remedy for one in found.damage):
        paper.line(f"  {remedy}")
    for each in found.notices:
        paper.line(f"  {each}", YELLOW)
    for each in found.unchecked:
        paper.line(f"  not checked: {each}", YELLOW)
    paper.line(f"  checked: {', '.join(found.checked)}", DIM)
    paper.line(f"  root of {found.entries} entries: {found.root}", DIM)
    if found.fingerprint is not None:
        paper.line(f"  {found.fingerprint}", DIM)
    if found.tail:
        last = found.entries - 1
        paper.line(f"  no checkpoint covers {found.covered} to {last}", DIM)


def _where(one: Finding) -> str:
    parts = [] if one.position is None else [f"position {one.position}"]
    return ", ".join(parts + ([] if one.entity is None else [one.entity])) or "ledger"
