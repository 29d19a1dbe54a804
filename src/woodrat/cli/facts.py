"""Facts: the commands that write."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from woodrat.cli import inputs
from woodrat.cli.command import CREATE, UPDATE, Answer, Call
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
    about: dict[str, Any] = {
        "observed_at": given.observed_at,
        "valid_from": given.valid_from,
        "idempotency_key": given.idempotency_key,
        "priority": given.priority,
        "run": given.run,
        "if_version": given.if_version,
    }
    content = None if given.source is None else inputs.read(given.source, "--source")
    ledger = call.ledger(CREATE)
    many = isinstance(records, list) and len(records) >= MANY_RECORDS
    with bar(f"Storing {len(records)} records", "records") if many else nullcontext():
        return told(_stored(ledger, records, about, content, given), "Stored")


def _stored(ledger: Ledger, records: Any, about: dict[str, Any], content: bytes | None, given: Any) -> Report:
    """Store records, after the source they come from if there is one."""
    if content is None:
        return ledger.store(records, **about, dry_run=given.dry_run)
    # A refused record must not leave its source behind, so all is tried before the first write.
    trial = ledger.store(_unlocated(records, content), **{**about, "idempotency_key": None}, dry_run=True)
    if given.dry_run:
        return trial
    # Two writes need two keys; the first is made from the second, so that sending the call again repeats both.
    key = None if given.idempotency_key is None else f"{given.idempotency_key}/source"
    about["source"] = ledger.sources.add(content, name=file_name(given.source), idempotency_key=key)
    return ledger.store(records, **about)


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
    given = call.given
    values, gone = inputs.once(given.set, "--set"), inputs.several(given.remove, "--remove")
    if not values and not gone:
        raise Refused([Fault("--set", "nothing to correct", "Add a field and its value, such as --set city=Girona.")])
    report = call.ledger(UPDATE).correct(
        given.ref,
        values,
        remove=gone or None,
        reason=given.reason,
        replaces=given.replaces,
        observed_at=given.observed_at,
        valid_from=given.valid_from,
        priority=given.priority,
        idempotency_key=given.idempotency_key,
        if_version=given.if_version,
        dry_run=given.dry_run,
    )
    return told(report, "Corrected")


def retract(call: Call) -> Answer:
    """Withdraw observations."""
    return told(call.ledger(UPDATE).retract(call.given.observations, **_stating(call)), "Retracted")


def delete(call: Call) -> Answer:
    """Mark an entity as deleted."""
    return told(call.ledger(UPDATE).delete(call.given.ref, **_stating(call)), "Deleted")


def restore(call: Call) -> Answer:
    """Bring a deleted entity back."""
    return told(call.ledger(UPDATE).restore(call.given.ref, **_stating(call)), "Restored")


def relate(call: Call) -> Answer:
    """Relate two entities."""
    given = call.given
    said = inputs.once(given.set, "--set") or None
    ledger = call.ledger(UPDATE)
    report = ledger.relate(given.start, given.type, given.end, key=given.key, fields=said, **_stating(call))
    return told(report, "Related")


def merge(call: Call) -> Answer:
    """Say that two entities are one."""
    return told(call.ledger(UPDATE).merge(call.given.one, call.given.other, **_stating(call)), "Merged")


def split(call: Call) -> Answer:
    """Part an entity from those it was merged with."""
    return told(call.ledger(UPDATE).split(call.given.ref, call.given.other, **_stating(call)), "Split")


def tag(call: Call) -> Answer:
    """Name a moment."""
    given = call.given
    ledger = call.ledger(UPDATE)
    named = ledger.at(given.moment).position if given.moment != "now" else None
    report = ledger.tag(given.name, given.moment, idempotency_key=given.idempotency_key)
    # The tag's own entry is the last one; `now` meant the one before it.
    position = named if named is not None else report.position - len(report.positions)

    def text(paper: Paper) -> None:
        paper.line(f"@{given.name} is position {position}.", GREEN)

    return Answer({**report.to_json(), "tag": given.name, "tagged": position}, text)


def _stating(call: Call) -> dict[str, Any]:
    given = call.given
    return {
        "reason": given.reason,
        "observed_at": given.observed_at,
        "idempotency_key": given.idempotency_key,
        "dry_run": given.dry_run,
    }


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
