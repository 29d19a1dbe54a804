"""Bisect: the commands that find the write that changed an answer, and the fewest observations behind one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from woodrat.cli import inputs
from woodrat.cli.command import CommandResult, Invocation
from woodrat.cli.progress import bar
from woodrat.cli.tables import BOLD, DIM, GREEN, RED, YELLOW, Paper, changed, fields, time, value
from woodrat.errors import Fault, Refused
from woodrat.server import wire

if TYPE_CHECKING:
    from woodrat.bisect.reduction import Reduction
    from woodrat.bisect.search import Flip
    from woodrat.compare.cause import Statement

NO_READ = "Nothing was read."


def bisect(call: Invocation) -> CommandResult:
    """Find a flip."""
    call.arguments()  # report errors in the arguments before opening the database
    past = call.past()
    with bar("Bisecting", "folds") as tell:
        found = call.ask(past, progress=tell)

    def text(paper: Paper) -> None:
        paper.line(found.sentence, BOLD if found else YELLOW)
        if found.flip is not None:
            _flip(paper, found.flip)

    return CommandResult(found.to_json(), text, code=wire.DONE if found else wire.FOUND_SOMETHING)


def _flip(paper: Paper, flip: Flip) -> None:
    before = f"position {flip.before}" if flip.before >= 0 else "the empty ledger"
    paper.line(f"  position {flip.position}, recorded {time(flip.recorded_at)}; before it: {before}", DIM)
    for change in flip.changes:
        if change.existed != change.exists:
            paper.line(f"  {change.entity} {'became known' if change.exists else 'is no longer known'}")
        if change.was_deleted != change.is_deleted:
            paper.line(f"  {change.entity} was {'deleted' if change.is_deleted else 'restored'}")
        for field in change.fields:
            paper.line(f"  {change.entity}#{changed(field)}")
    if flip.chosen is not None:
        sides = zip(flip.chosen, flip.undecided, strict=True)
        was, now = (value(chosen) if why is None else f"(nothing: {why})" for chosen, why in sides)
        paper.line(f"  chosen: {was} → {now}")
    for type, (old, new) in flip.schemas.items():
        paper.line(f"  schema {type}: version {old} → {new}")
    for said in flip.statements:
        paper.line(f"  {_said(said)}", DIM)


def _said(said: Statement) -> str:
    source = "" if said.source is None else f" from {said.source_name or said.source}"
    run = "" if said.run is None else f" in {said.run}"
    names = f" {', '.join(said.replaces)}" if said.replaces else ""
    told = f" {fields(said.fields)}" if said.fields else ""
    return f"{said.observation} by {said.agent}{source}{run}: {said.op}{names} {said.entity}{told}"


def reduce(call: Invocation) -> CommandResult:
    """Find a minimal set of observations, or check a given one."""
    given = call.given
    if given.check is not None:
        return _check(call)
    call.arguments()  # what is wrong with them is said before the database is opened
    past = call.past()
    with bar("Reducing", "observations") as tell:
        found = call.ask(past, out=None if given.out == "-" else given.out, progress=tell)
    if given.out == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(found.to_bytes())
        sys.stdout.buffer.flush()
        return CommandResult(None, lambda paper: None, plain=True)

    def text(paper: Paper) -> None:
        paper.line(found.sentence, BOLD)
        _members(paper, found)
        if given.out is not None:
            paper.line(f"Written to {given.out}; `woodrat reduce --check` checks it anywhere.", DIM)

    return CommandResult({**found.to_json(), "out": given.out}, text)


def _members(paper: Paper, found: Reduction) -> None:
    for member in found.members:
        told = f" {fields(member.fields)}" if member.fields else ""
        removed = (
            f" without {fields({name: list(items) for name, items in member.remove.items()})}" if member.remove else ""
        )
        paper.line(f"  {member.id} by {member.agent}: {member.op} {member.entity}{told}{removed}")
    for scheme in found.schemas:
        paper.line(f"  schema {scheme.type}, version {scheme.version}", DIM)


def _check(call: Invocation) -> CommandResult:
    from woodrat.bisect.reduction import OUTCOME
    from woodrat.bisect.verbs import check_reduction

    given = call.given
    names = (
        "what",
        "where",
        "exists",
        "deleted",
        "rules",
        "default",
        "chosen",
        "out",
        "folds_max",
        "as_of",
        "valid_at",
    )
    further = [name for name in names if getattr(given, name)]
    if further:
        named = "REF" if further[0] == "what" else f"--{further[0].replace('_', '-')}"
        problem = f"it cannot be combined with {named}"
        raise Refused([Fault("--check", problem, "Name only the file: it contains the question.")], OUTCOME)
    found = check_reduction(inputs.read(given.check, "--check", OUTCOME))

    def text(paper: Paper) -> None:
        paper.line(found.sentence, GREEN if found.same else RED)
        _members(paper, found.reduction)

    return CommandResult(found.to_json(), text, code=wire.DONE if found.same else wire.FOUND_SOMETHING)
