"""Bulk store: many records are stored in batches, each whole or not at all, and a summary reports the result.

A batch is one call of `store`. Its idempotency key is made from the command's key and the batch's number, so that the
same command on the same file continues where it ended: stored batches are answered from their receipts.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from woodrat.cli.command import CommandResult
from woodrat.cli.progress import bar
from woodrat.cli.record_lines import FAULTS_MAX
from woodrat.cli.tables import GREEN, YELLOW
from woodrat.errors import Fault, Refused, WoodratError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from woodrat.cli.record_lines import RecordBatch, RecordFile
    from woodrat.cli.tables import Paper
    from woodrat.ledger.report import Report

SHOWN_MAX: Final = 20
"""Most conflicts, fields decided by arrival, and hints listed in a summary; it counts all of them."""
KEY_SUFFIX_BYTES: Final = 12
"""Extra length of a batch's key over the command's."""


class Summary:
    """The result of storing many records, so far."""

    def __init__(self, file: str, *, keyed: bool, dry_run: bool) -> None:
        self.file = file
        self._keyed = keyed
        self.dry_run = dry_run
        self.records = self.batches = self.known = self.repeated = 0
        self.first_position: int | None = None
        self.position: int | None = None
        self._counts = {"conflicts": 0, "by_arrival": 0}
        self._shown: dict[str, dict[str, None]] = {"conflicts": {}, "by_arrival": {}, "hints": {}}

    def add(self, report: Report, records: int) -> None:
        """Take the report of one batch into account."""
        self.records += records
        self.batches += 1
        self.position = report.position
        if report.repeated and self._keyed:
            self.repeated += records
        else:
            self.known += len(report.known)
        if report.positions and not report.repeated and self.first_position is None:
            self.first_position = report.positions[0]
        for name, shown in self._shown.items():
            items: tuple[str, ...] = getattr(report, name)
            if name in self._counts:
                self._counts[name] += len(items)
            for item in items:
                if len(shown) == SHOWN_MAX:
                    break
                shown[item] = None

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain JSON."""
        return {
            "file": self.file,
            "records": self.records,
            "batches": self.batches,
            "known": self.known,
            "repeated": self.repeated,
            "first_position": self.first_position,
            "position": self.position,
            "conflict_count": self._counts["conflicts"],
            "conflicts": list(self._shown["conflicts"]),
            "by_arrival_count": self._counts["by_arrival"],
            "by_arrival": list(self._shown["by_arrival"]),
            "hints": list(self._shown["hints"]),
            "dry_run": self.dry_run,
        }

    def text(self, paper: Paper) -> None:
        """Print the summary for people."""
        batches = "1 batch" if self.batches == 1 else f"{self.batches} batches"
        what = f"{self.records} records of {self.file} in {batches}"
        if self.dry_run:
            paper.line(f"Dry run: nothing was written. {what} can be stored.", GREEN)
        elif self.first_position is None and not self.repeated:
            paper.line(f"Nothing new: {what} are already known, at position {self.position}.", GREEN)
        elif self.repeated == self.records:
            paper.line(f"Stored earlier with this idempotency key: {what}. Nothing was written now.", GREEN)
        else:
            paper.line(f"Stored {what}, at positions {self.first_position} to {self.position}.", GREEN)
        if self.repeated and self.repeated < self.records:
            paper.line(f"  {self.repeated} of them were stored by an earlier call with this idempotency key")
        if self.known and self.first_position is not None:
            paper.line(f"  {self.known} of them were already known")
        self._line(paper, "conflicts", "in conflict now", "`woodrat conflicts` lists them")
        self._line(paper, "by_arrival", "decided by arrival alone", "no observation time was given")
        for hint in self._shown["hints"]:
            paper.line(f"  {hint}", YELLOW)

    def _line(self, paper: Paper, name: str, what: str, more: str) -> None:
        count = self._counts[name]
        if count:
            fields = "1 field" if count == 1 else f"{count} fields"
            paper.line(f"  {fields} {what}, such as {next(iter(self._shown[name]))}; {more}", YELLOW)


class BulkStore:
    """One command that stores the records of a file in batches.

    `store` stores the records of one batch under a key, or tries to (`dry_run`), and returns its report.
    """

    def __init__(
        self, file: RecordFile, key: str | None, store: Callable[..., Report], *, dry_run: bool, total: int | None
    ) -> None:
        self._file = file
        self._key = key
        self._store = store
        self._dry_run = dry_run
        self._total = total
        self._last_line = 0
        self.summary = Summary(file.name, keyed=key is not None, dry_run=dry_run)

    def reports(self, batches: Iterator[RecordBatch]) -> Iterator[Report]:
        """Store batch after batch, and yield the report of each."""
        with bar("Storing", "records") as tell:
            for batch in batches:
                try:
                    report = self._stored(batch, chain([batch], batches))
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(self._interrupted(batch)) from None
                self.summary.add(report, len(batch.records))
                self._last_line = batch.lines[-1]
                if tell is not None:
                    tell(self.summary.records, self._total)
                yield report

    def answer(self, batches: Iterator[RecordBatch]) -> CommandResult:
        """Store all batches; return the result."""
        for _ in self.reports(batches):
            pass
        return CommandResult(self.summary.to_json(), self.summary.text)

    def _stored(self, batch: RecordBatch, rest: Iterator[RecordBatch]) -> Report:
        if batch.faults:
            raise self._refused(rest)
        records = _unrelated(batch) if self._dry_run and batch.number > 1 else batch.records
        try:
            return self._store(records, self._batch_key(batch.number), self._dry_run)
        except Refused as refusal:
            if any(fault.path.startswith("/") for fault in refusal.faults):
                raise self._refused(rest) from None
            raise Refused(refusal.faults, self._outcome(batch)) from None
        except WoodratError as error:
            if batch.number == 1:
                raise
            raise type(error)(f"{self._place(batch)}: {error} {self._outcome(batch)}", error.details) from error

    def _batch_key(self, number: int) -> str | None:
        return self._key if self._key is None or number == 1 else f"{self._key}/{number}"

    def _refused(self, rest: Iterator[RecordBatch]) -> Refused:
        """Return the refusal of a batch and of all after it: nothing more is stored, and every bad line is named."""
        faults: list[Fault] = []
        first: RecordBatch | None = None
        unseen = ""
        for batch in rest:
            first = first or batch
            faults += batch.faults
            records = batch.records if batch is first else _unrelated(batch)
            try:
                if records:
                    self._store(records, None, True)
            except Refused as refusal:
                faults += self._file.placed(refusal, batch)
            if len(faults) >= FAULTS_MAX:
                unseen = f"Lines after {max(batch.lines, default=0)} were not looked at. "
                break
        assert first is not None
        if not faults:
            problem = "it was refused, and would be taken now"
            faults = [Fault(self._place(first), problem, "Run the same command again.")]
        return Refused(faults, unseen + self._outcome(first))

    def _place(self, batch: RecordBatch) -> str:
        return f"{self._file.name} lines {batch.lines[0]} to {batch.lines[-1]}" if batch.lines else self._file.name

    def _outcome(self, batch: RecordBatch) -> str:
        """Return the state of the data after a refused batch."""
        if self._dry_run or batch.number == 1:
            return "Nothing was written."
        stored = f"Lines 1 to {self._last_line} were stored, up to position {self.summary.position}"
        return f"{stored}; nothing after them was written. {self._resume()}"

    def _interrupted(self, batch: RecordBatch) -> str:
        if self._dry_run:
            return "Nothing was written."
        ends = f"{batch.lines[0]} to {batch.lines[-1]}" if batch.lines else "after them"
        before = f"Lines 1 to {self._last_line} are stored. " if self._last_line else ""
        return f"{before}Lines {ends} are stored whole or not at all, and nothing after them is. {self._resume()}"

    def _resume(self) -> str:
        """Return the way to continue."""
        if self._key is not None:
            return "Run the same command again with the same idempotency key: stored records are not stored twice."
        after = self._last_line + 1
        return (
            f"To continue, store the file from line {after} on. With --idempotency-key, running the same command again "
            "would do that."
        )


def _unrelated(batch: RecordBatch) -> list[Any]:
    """Return the records of a dry-run batch without relations: their targets may not be stored yet."""
    return [
        {**record, "$": {name: value for name, value in about.items() if name != "relate"}}
        if isinstance(record, dict) and isinstance(about := record.get("$"), dict) and "relate" in about
        else record
        for record in batch.records
    ]


def check_key(key: str | None, bytes_max: int) -> None:
    """Refuse a key that has no room for the numbers of batches."""
    if key is not None and len(key.encode(errors="replace")) > bytes_max - KEY_SUFFIX_BYTES:
        problem = f"{len(key.encode(errors='replace'))} bytes, and a file in batches needs {KEY_SUFFIX_BYTES} more"
        remedy = f"Use a key of at most {bytes_max - KEY_SUFFIX_BYTES} bytes."
        raise Refused([Fault("--idempotency-key", problem, remedy)])


def summarised(report: Report, file: str, records: int, key: str | None) -> CommandResult:
    """Return the answer of one call that stored many records."""
    summary = Summary(file, keyed=key is not None, dry_run=report.dry_run)
    summary.add(report, records)
    return CommandResult(summary.to_json(), summary.text)
