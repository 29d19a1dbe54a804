"""Proofs: the commands that create keys, sign checkpoints and write proofs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from woodrat.cli import inputs
from woodrat.cli.command import READ, UPDATE, CommandResult, Invocation
from woodrat.cli.tables import BOLD, DIM, GREEN, YELLOW, Paper
from woodrat.engines import private
from woodrat.errors import Fault, Refused, Unavailable

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger

STANDARD = "-"
"""The name for standard input or output instead of a file."""
VERIFIERS = ("woodrat_verify.py", "woodrat-verify.mjs")
"""The stand-alone verifiers, as files of the package."""


def init(call: Invocation) -> CommandResult:
    """Make the keys that are not there yet."""
    from woodrat.proofs.verbs import keys

    found = keys.init(call.keys, name=call.given.name)

    def text(paper: Paper) -> None:
        folder = found.keys.folder
        if found.made:
            paper.line(f"Created keys in {folder}:", GREEN)
            for path in found.made:
                paper.line(f"  {os.path.basename(path)}")
        else:
            paper.line(f"The keys in {folder} exist already. Nothing was changed.", GREEN)
        if found.verifier is None:
            paper.line(f"There is no signer: {keys.NO_EXTRA} Then run init again.", YELLOW)
            return
        paper.line("Give this verifier key to everyone who checks your capsules, over a channel they trust:")
        paper.line(f"  {found.verifier}", BOLD)
        paper.line(
            "Back this folder up, separately from the database. Anyone with signer.key can sign in your name; "
            "without seen/, a truncated database would go unnoticed.",
            DIM,
        )

    return CommandResult(found.to_json(), text)


def checkpoint(call: Invocation) -> CommandResult:
    """Sign the current log."""
    new_epoch = call.given.new_epoch
    path = None if call.is_served else call.path
    # A file of 0 bytes that is accepted becomes a ledger; otherwise nothing is written to the database.
    emptied = new_epoch is not None and path is not None and os.path.isfile(path) and not os.path.getsize(path)
    signed = call.ask(call.ledger(UPDATE if emptied else READ))
    if call.given.out is not None:
        _write(call.given.out, signed.note.encode())

    def text(paper: Paper) -> None:
        if not signed.new:
            paper.line("No new entries since the last checkpoint:", DIM)
        for line in signed.note.rstrip("\n").split("\n"):
            paper.line(line)

    return CommandResult(signed.to_json(), text)


def prove(call: Invocation) -> CommandResult:
    """Prove that an entry is in the log, or that one checkpoint extends another."""
    given = call.given
    if (given.what is None) is (given.old is None):
        problem = "expected either an observation or --from with an older checkpoint"
        raise Refused([Fault("woodrat prove", problem, "Name one of the two.")], "Nothing was proven.")
    if given.new is not None and given.old is None:
        raise Refused(
            [Fault("--to", "it needs --from", "Add --from with the older checkpoint.")], "Nothing was proven."
        )
    ledger = _ledger(call)
    found: Any
    if given.what is not None:
        found = call.ask(ledger)
        size = found.checkpoint.checkpoint.size
        told = (
            f"entry {found.entry.position} ({found.entry.kind}) is in the log, under the checkpoint of {size} entries."
        )
    else:
        found = ledger.proofs.prove_consistency(_read(given.old), None if given.new is None else _read(given.new))
        told = "the newer checkpoint extends the older one."
    return _document(call, found, told)


def capsule(call: Invocation) -> CommandResult:
    """Write one file that proves a run, a decision, an observation or a field."""
    found = call.ask(_ledger(call))
    size = found.checkpoint.checkpoint.size
    told = f"{len(found.proofs)} entries, under the checkpoint of {size}."
    beside: list[str] = []
    if call.given.with_verifier:
        if call.given.out == STANDARD:
            problem = "standard output has no folder to put them in"
            raise Refused([Fault("--with-verifier", problem, "Name a file with --out.")], "Nothing was written.")
        beside = _verifiers(os.path.dirname(os.path.abspath(call.given.out)))
    return _document(call, found, told, beside)


def _document(call: Invocation, found: Any, told: str, beside: list[str] | None = None) -> CommandResult:
    """Write a document to its file, and describe it on a terminal; without a file it is the answer itself."""
    out, data = call.given.out, found.to_bytes()
    if out is None or out == STANDARD:

        def whole(paper: Paper) -> None:
            paper.line(data.decode().rstrip("\n"))

        return CommandResult(None, whole, plain=True)
    _write(out, data)

    def text(paper: Paper) -> None:
        paper.line(f"Wrote {out}: {told}", GREEN)
        paper.line("Check it with: woodrat-verify FILE --key VKEY", DIM)
        for path in beside or ():
            paper.line(f"  {path}", DIM)

    return CommandResult({"out": out, "bytes": len(data), "says": told, "verifiers": beside or []}, text)


def _ledger(call: Invocation) -> Ledger:
    """Return the ledger read-only: the memory of the signer is beside the keys."""
    return call.ledger(READ)


def _verifiers(folder: str) -> list[str]:
    """Copy the stand-alone verifiers to a folder."""
    from importlib import resources

    made = []
    for name in VERIFIERS:
        path = os.path.join(folder, name)
        _write(path, resources.files("woodrat.verifier").joinpath(name).read_bytes())
        made.append(path)
    return made


def _read(path: str) -> bytes:
    """Return a note from a file."""
    return inputs.read(path, "note", "Nothing was proven.")


def _write(path: str, data: bytes) -> None:
    """Write a file that appears when it is complete."""
    if path == STANDARD:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    partial = f"{path}.partial"
    try:
        with open(partial, "wb", opener=private.opener) as file:
            file.write(data)
        os.replace(partial, path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        message = (
            f"{path}: {reason}. The signed checkpoint stays valid; no file was written. Name another file with --out."
        )
        raise Unavailable(message, {"path": path}) from error
