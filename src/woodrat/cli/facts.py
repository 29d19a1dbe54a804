"""Facts: the commands that write."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from woodrat.cli import inputs
from woodrat.cli.command import CREATE, UPDATE, Answer, Call, at_moment
from woodrat.cli.progress import bar
from woodrat.cli.tables import DIM, GREEN, YELLOW, Paper, changed
from woodrat.errors import Fault, Refused
from woodrat.state import locator

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.ledger.report import Report

MANY_RECORDS = 1_000
"""From how many records on a terminal is told that they are being stored."""


def store(call: Call) -> Answer:
    """Store records from `--json` or `--file`."""
    given = call.given
    if (given.json is None) == (given.file is None):
        problem = "no records" if given.json is None else "--json and --file are both given"
        raise Refused([Fault("woodrat store", problem, "Send records with either --json or --file.")])
    records: Any = inputs.document(given.json, "--json") if given.json is not None else inputs.records(given.file)
    content = None if given.source is None else inputs.read(given.source, "--source")
    ledger = call.ledger(CREATE)
    many = isinstance(records, list) and len(records) >= MANY_RECORDS
    with bar(f"Storing {len(records)} records", "records") if many else nullcontext():
        return told(_stored(call, ledger, records, content), "Stored")


def _stored(call: Call, ledger: Ledger, records: Any, content: bytes | None) -> Report:
    """Store records, after the source they come from if there is one."""
    given = call.given
    report: Report
    if content is None:
        report = call.ask(ledger, records=records)
        return report
    # A refused record must not leave its source behind, so all is tried before the first write.
    report = call.ask(ledger, records=_unlocated(records, content), idempotency_key=None, dry_run=True)
    if given.dry_run:
        return report
    # Two writes need two keys; the first is made from the second, so that sending the call again repeats both.
    key = None if given.idempotency_key is None else f"{given.idempotency_key}/source"
    source = ledger.sources.add(content, name=file_name(given.source), idempotency_key=key)
    report = call.ask(ledger, records=records, source=source)
    return report


def _unlocated(records: Any, content: bytes) -> Any:
    """Return records without locators into a source that is not stored yet; refuse those that it contradicts."""
    faults: list[Fault] = []
    source = locator.Content(content)
    several = isinstance(records, list)
    found = []
    for number, record in enumerate(records if several else [records]):
        about = record.get("$") if isinstance(record, dict) else None
        if isinstance(about, dict) and about.get("locator") is not None and about.get("source") is None:
            path = f"{f'/{number}' if several else ''}/$/locator"
            wrong = locator.faults(about["locator"], path)
            faults += wrong or locator.mismatches(about["locator"], source, path)
            record = {**record, "$": {name: value for name, value in about.items() if name != "locator"}}
        found.append(record)
    if faults:
        raise Refused(faults)
    return found if several else found[0]


def correct(call: Call) -> Answer:
    """Correct fields of an entity."""
    call.arguments()  # what is wrong with them is said before the database is opened
    if not call.given.fields and not call.given.remove:
        raise Refused([Fault("--set", "nothing to correct", "Add a field and its value, such as --set city=Girona.")])
    return told(call.ask(call.ledger(UPDATE)), "Corrected")


def retract(call: Call) -> Answer:
    """Withdraw observations."""
    return told(call.ask(call.ledger(UPDATE)), "Retracted")


def delete(call: Call) -> Answer:
    """Mark an entity as deleted."""
    return told(call.ask(call.ledger(UPDATE)), "Deleted")


def restore(call: Call) -> Answer:
    """Bring a deleted entity back."""
    return told(call.ask(call.ledger(UPDATE)), "Restored")


def relate(call: Call) -> Answer:
    """Relate two entities."""
    return told(call.ask(call.ledger(UPDATE)), "Related")


def merge(call: Call) -> Answer:
    """Say that two entities are one."""
    return told(call.ask(call.ledger(UPDATE)), "Merged")


def split(call: Call) -> Answer:
    """Part an entity from those it was merged with."""
    return told(call.ask(call.ledger(UPDATE)), "Split")


def tag(call: Call) -> Answer:
    """Name a moment."""
    given = call.given
    ledger = call.ledger(UPDATE)
    named = at_moment(ledger, given.moment, "M").position if given.moment != "now" else None
    report = call.ask(ledger)
    # The tag's own entry is the last one; `now` meant the one before it.
    position = named if named is not None else report.position - len(report.positions)

    def text(paper: Paper) -> None:
        paper.line(f"@{given.name} is position {position}.", GREEN)

    return Answer({**report.to_json(), "tag": given.name, "tagged": position}, text)


def file_name(path: str) -> str:
    """Return what to call a file: its name without folders."""
    return "standard input" if path == "-" else path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def told(report: Report, verb: str) -> Answer:
    """Return the answer that a write's report is."""

    def text(paper: Paper) -> None:
        paper.line(_first_line(report, verb), GREEN)
        for entity in dict.fromkeys(report.entities):
            paper.line(f"  {entity}")
            for change in report.changes:
                if change.entity == entity:
                    if change.was_deleted != change.is_deleted:
                        paper.line(f"    {'deleted' if change.is_deleted else 'restored'}")
                    for field in change.fields:
                        paper.line(f"    {changed(field)}")
        for observation in report.observations:
            known = " (already known)" if observation in report.known else ""
            paper.line(f"  {observation}{known}", DIM)
        for conflict in report.conflicts:
            paper.line(f"  in conflict now: {conflict}; `woodrat blame '{conflict}'` says who won and why", YELLOW)
        for name in report.by_arrival:
            why = "decided by arrival alone: a value arrived later; no observation time was given"
            paper.line(f"  {name} is {why}", YELLOW)
        for hint in report.hints:
            paper.line(f"  {hint}", YELLOW)

    return Answer(report.to_json(), text)


def _first_line(report: Report, verb: str) -> str:
    if report.dry_run:
        return "Dry run: nothing was written. This is what would change:"
    if report.repeated:
        return f"{verb} earlier with this idempotency key, at position {report.position}. Nothing was written now."
    if not report.positions:
        return f"Nothing new: this is already known, at position {report.position}."
    return f"{verb} at position {report.position}."
