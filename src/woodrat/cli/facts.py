"""Facts: the commands that write."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any

from woodrat.cli import inputs
from woodrat.cli.bulk_store import BulkStore, check_key, summarised
from woodrat.cli.command import CREATE, UPDATE, CommandResult, Invocation, at_moment
from woodrat.cli.progress import bar
from woodrat.cli.record_lines import BATCH_RECORDS, RecordFile
from woodrat.cli.tables import DIM, GREEN, YELLOW, Paper, changed, match_line
from woodrat.errors import Fault, Refused
from woodrat.state import locator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from woodrat.ledger.report import Report


def store(call: Invocation) -> CommandResult:
    """Store records from `--json` or `--file`."""
    given = call.given
    if (given.json is None) == (given.file is None):
        problem = "no records" if given.json is None else "--json and --file are both given"
        raise Refused([Fault("woodrat store", problem, "Send records with either --json or --file.")])
    if given.json is not None:
        records = inputs.document(given.json, "--json")
        return told(_Storing(call).store(records, given.idempotency_key, given.dry_run), "Stored")
    with ExitStack() as open_files:
        file = open_files.enter_context(RecordFile(given.file))
        answer = _store_lines(call, file) if file.is_lines() else _store_document(call, file)
        if answer.streams:
            open_files.pop_all()  # it is read on while the answer is printed
        return answer


def _store_document(call: Invocation, file: RecordFile) -> CommandResult:
    """Store a file with one JSON value in one call, whatever the number of records."""
    given = call.given
    records: Any = file.document()
    storing = _Storing(call)
    if not isinstance(records, list) or len(records) <= BATCH_RECORDS:
        return told(storing.store(records, given.idempotency_key, given.dry_run), "Stored")
    with bar(f"Storing {len(records)} records", "records"):
        report = storing.store(records, given.idempotency_key, given.dry_run)
    if given.details:
        return told(report, "Stored")
    return summarised(report, file.name, len(records), given.idempotency_key)


def _store_lines(call: Invocation, file: RecordFile) -> CommandResult:
    """Store a file with one record per line: in one call if it is one batch, else batch by batch."""
    given = call.given
    batches = file.batches()
    first, second = next(batches), next(batches, None)
    if second is None:
        if first.faults:
            raise Refused(first.faults)
        try:
            return told(_Storing(call).store(first.records, given.idempotency_key, given.dry_run), "Stored")
        except Refused as refusal:
            raise Refused(file.placed(refusal, first)) from None
    if given.if_version is not None:
        problem = f"the file has more than {BATCH_RECORDS} records, which are stored in batches"
        raise Refused([Fault("--if-version", problem, "Use it with one batch, or leave it out.")])
    from woodrat.ledger.write import KEY_BYTES_MAX

    check_key(given.idempotency_key, KEY_BYTES_MAX)
    total = file.checked() if file.is_readable_twice else None
    bulk = BulkStore(file, given.idempotency_key, _Storing(call).store, dry_run=given.dry_run, total=total)
    every = chain([first, second], batches)
    if not given.details:
        return bulk.answer(every)

    def stored() -> Iterator[Report]:
        with file:
            yield from bulk.reports(every)

    reports = stored()

    def text(paper: Paper) -> None:
        for report in reports:
            told(report, "Stored").text(paper)
        bulk.summary.text(paper)

    return CommandResult(None, text, lines=(report.to_json() for report in reports), streams=True)


class _Storing:
    """Stores records as a command says, after their source if it names one."""

    def __init__(self, call: Invocation) -> None:
        self._call = call
        self._content = None if call.given.source is None else inputs.read(call.given.source, "--source")
        self._ledger = call.ledger(CREATE)
        self._source: str | None = None

    def store(self, records: Any, key: str | None, dry_run: bool) -> Report:
        """Store records under a key, or try to."""
        call, ledger, content = self._call, self._ledger, self._content
        # only values that differ from the typed ones: errors name options for those
        made: dict[str, Any] = {}
        if key != call.given.idempotency_key:
            made["idempotency_key"] = key
        if dry_run != call.given.dry_run:
            made["dry_run"] = dry_run
        report: Report
        if content is None:
            report = call.ask(ledger, records=records, **made)
            return report
        if self._source is None:
            # A refused record must not leave its source behind, so all is tried before the first write.
            tried: Report = call.ask(
                ledger, records=_unlocated(records, content), **{**made, "idempotency_key": None, "dry_run": True}
            )
            if dry_run:
                return tried
            # Two writes need two keys; the first is made from the second, so that sending the call again repeats both.
            source_key = None if key is None else f"{key}/source"
            name = file_name(call.given.source)
            self._source = str(ledger.sources.add(content, name=name, idempotency_key=source_key))
        report = call.ask(ledger, records=records, source=self._source, **made)
        return report


def _unlocated(records: Any, content: bytes) -> Any:
    """Return records without locators into a source that is not stored yet; refuse locators that contradict it."""
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


def remember(call: Invocation) -> CommandResult:
    """Keep a sentence as a note."""
    return told(call.ask(call.ledger(CREATE)), "Remembered")


def correct(call: Invocation) -> CommandResult:
    """Correct fields of an entity."""
    call.arguments()  # report errors in the arguments before opening the database
    if not call.given.fields and not call.given.remove:
        raise Refused([Fault("--set", "nothing to correct", "Add a field and its value, such as --set city=Girona.")])
    return told(call.ask(call.ledger(UPDATE)), "Corrected")


def retract(call: Invocation) -> CommandResult:
    """Withdraw observations."""
    return told(call.ask(call.ledger(UPDATE)), "Retracted")


def delete(call: Invocation) -> CommandResult:
    """Mark an entity as deleted."""
    return told(call.ask(call.ledger(UPDATE)), "Deleted")


def restore(call: Invocation) -> CommandResult:
    """Bring a deleted entity back."""
    return told(call.ask(call.ledger(UPDATE)), "Restored")


def relate(call: Invocation) -> CommandResult:
    """Relate two entities."""
    return told(call.ask(call.ledger(UPDATE)), "Related")


def merge(call: Invocation) -> CommandResult:
    """Declare that two entities are the same."""
    return told(call.ask(call.ledger(UPDATE)), "Merged")


def split(call: Invocation) -> CommandResult:
    """Split an entity from the entities it was merged with."""
    return told(call.ask(call.ledger(UPDATE)), "Split")


def tag(call: Invocation) -> CommandResult:
    """Name a moment."""
    given = call.given
    ledger = call.ledger(UPDATE)
    named = at_moment(ledger, given.moment, "M").position if given.moment != "now" else None
    report = call.ask(ledger)
    # the tag's own entry is the last one; `now` meant the entry before it
    position = named if named is not None else report.position - len(report.positions)

    def text(paper: Paper) -> None:
        paper.line(f"@{given.name} is position {position}.", GREEN)

    return CommandResult({**report.to_json(), "tag": given.name, "tagged": position}, text)


def file_name(path: str) -> str:
    """Return the name of a file without folders."""
    return "standard input" if path == "-" else path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def told(report: Report, verb: str) -> CommandResult:
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
        for match in report.matched:
            paper.line(f"  {match_line(match)}", YELLOW)
        for observation in report.observations:
            known = " (already known)" if observation in report.known else ""
            paper.line(f"  {observation}{known}", DIM)
        for conflict in report.conflicts:
            paper.line(
                f"  in conflict now: {conflict}; `woodrat blame '{conflict}'` shows all claims and the reasons", YELLOW
            )
        for name in report.by_arrival:
            why = "decided by arrival alone: a value arrived later; no observation time was given"
            paper.line(f"  {name} is {why}", YELLOW)
        for hint in report.hints:
            paper.line(f"  {hint}", YELLOW)

    return CommandResult(report.to_json(), text)


def _first_line(report: Report, verb: str) -> str:
    if report.dry_run:
        return "Dry run: nothing was written. Changes, if it were written:"
    if report.repeated and len(report.known) == len(report.observations):
        return f"Nothing new: this is already known, at position {report.position}."
    if report.repeated:
        return f"{verb} earlier with this idempotency key, at position {report.position}. Nothing was written now."
    if not report.positions:
        return f"Nothing new: this is already known, at position {report.position}."
    return f"{verb} at position {report.position}."
