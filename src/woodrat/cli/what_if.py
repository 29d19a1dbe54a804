"""What if: the command that shows how recorded decisions would change with other facts or rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.cli import inputs
from woodrat.cli.command import CommandResult, Invocation
from woodrat.cli.progress import bar
from woodrat.cli.runs import refuse_valid_at
from woodrat.cli.tables import BOLD, DIM, GREEN, YELLOW, Paper, time, value
from woodrat.errors import Fault, Refused

if TYPE_CHECKING:
    from woodrat.whatif.result import FactChange, Supposed, SweepRow, WhatIf

NO_READ = "Nothing was read."
_STYLES = {"flip": YELLOW, "same": GREEN, "unknown": DIM}


def what_if(call: Invocation) -> CommandResult:
    """Show how recorded decisions would have ended."""
    refuse_valid_at(call)
    given = call.given
    made = _parsed_arguments(call)
    # Read-only: nothing is written, and a file without write permission will do.
    past = call.past()
    with bar("Supposing", "entries") as tell:
        found = call.ask(past, **made, progress=tell)
    more = None if found.cursor is None else f"More: add --cursor {found.cursor}"

    def text(paper: Paper) -> None:
        # below a table of many, single decisions are shown only on request
        listed = not found.rows or given.run or given.limit is not None
        for decision in found.decisions if listed else ():
            _decision(paper, decision)
        if found.rows:
            _table(paper, found)
        if more is not None and listed:
            paper.line(more, DIM)
        for note in found.notes:
            paper.line(note, YELLOW)
        paper.line(found.sentence, BOLD)
        if found.unaffected:
            paper.line(f"{found.unaffected} other decisions do not depend on it.", DIM)

    lines = [row.to_json() for row in found.rows] or [decision.to_json() for decision in found.decisions]
    return CommandResult(found.to_json(), text, lines, note=more)


def _parsed_arguments(call: Invocation) -> dict[str, Any]:
    """Return the arguments that are typed in another form than in the library; refuse all faults at once."""
    given = call.given
    faults: list[Fault] = []
    if bool(given.run) is given.all:
        problem = "--all cannot be combined with runs" if given.run else "no decisions to ask about"
        faults.append(Fault("RUN", problem, "Name runs, or add --all."))
    made: dict[str, Any] = {}
    try:
        made["rules"] = _rules(given)
    except Refused as refusal:
        faults += refusal.faults
    try:
        call.arguments({"rules"})
    except Refused as refusal:
        faults += refusal.faults
    if faults:
        raise Refused(faults, NO_READ)
    return made


def _rules(given: Any) -> Any:
    """Return rules by stage from a file; a bare list belongs to the one stage in the call."""
    if given.rules is None:
        return None
    found = inputs.document(inputs.read(given.rules, "--rules", NO_READ), given.rules, NO_READ)
    if not isinstance(found, list):
        return found
    stages = {run.partition("#")[2] for run in given.run}
    stage = given.stage or (stages.pop() if len(stages) == 1 else None)
    if not stage:
        problem = "a list of rules does not name its stage"
        raise Refused([Fault("--rules", problem, 'Add --stage, or write {"stage": […]}.')], NO_READ)
    return {stage: found}


def _decision(paper: Paper, found: Supposed) -> None:
    decision = found.decision
    told = "would differ at some values" if found.ranges and found.outcome == "flip" else found.now.sentence
    paper.line(f"{decision.stage}={value(decision.chosen)} {told}", _STYLES[found.outcome])
    about = "" if found.subject is None else f" about {found.subject}"
    where = f"{paper.id(found.run)}{about}; position {decision.position}"
    paper.line(f"  decided {time(decision.started_at)} in {where}", DIM)
    for change in found.changes:
        paper.line(f"  {_change(change)}")
    for part in found.ranges:
        paper.line(f"  {part.sentence}")
    if not found.ranges and found.outcome != "unknown":
        paper.line(f"  then {found.now.reason}")


def _change(change: FactChange) -> str:
    where = change.key if change.entity is None else f"{change.entity}#{change.field}"
    now = "(nothing)" if change.missing else value(change.now)
    behind = "" if not change.observations else f", from {', '.join(change.observations)}"
    instead = "" if not change.observations_now else f", from {', '.join(change.observations_now)}"
    return f"{where}: {value(change.before)}{behind} → {now}{instead}"


def _table(paper: Paper, found: WhatIf) -> None:
    """Print the outcome for each value; neighbouring values with the same outcome share a row."""
    import json

    choices = {json.dumps(one.chosen, sort_keys=True): one.chosen for row in found.rows for one in row.choices}
    sweep = found.supposition.sweep
    assert sweep is not None
    merged: list[tuple[SweepRow, SweepRow]] = []
    for row in found.rows:
        same = merged and _counts(merged[-1][0]) == _counts(row)
        merged[-1:] = [(merged[-1][0], row)] if same else [*merged[-1:], (row, row)]
    cells: list[list[str]] = []
    for first, last in merged:
        counts = {json.dumps(one.chosen, sort_keys=True): one.decisions for one in first.choices}
        span = value(first.value) if first is last else f"{value(first.value)}..{value(last.value)}"
        cells.append(
            [span, *(str(counts.get(name, 0)) for name in choices), str(first.flip), str(first.unknown)],
        )
    heads = (sweep.name, *(value(choice) for choice in choices.values()), "DIFFER", "UNKNOWN")
    paper.table(heads, cells)


def _counts(row: SweepRow) -> tuple[Any, ...]:
    return row.choices, row.flip, row.unknown
