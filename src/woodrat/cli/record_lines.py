"""Record lines: the records of a file with one JSON object a line, read in batches and never held all at once."""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.cli import inputs
from woodrat.errors import Fault, Refused, shown
from woodrat.records import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from woodrat.canon.form import Json

BATCH_RECORDS: Final = 1_000
"""Records per batch; the last batch may have fewer, and so may batches of long records."""
BATCH_BYTES: Final = 4 * 1_048_576
"""Bytes of lines from which a batch is full."""
LINE_BYTES_MAX: Final = 16 * 1_048_576
"""Longest line that is read; a record of this length is refused anyway."""
FAULTS_MAX: Final = 1_000
"""Faults after which the rest of a file is skipped."""


@dataclass(slots=True)
class RecordBatch:
    """Records stored together, and their line numbers."""

    number: int
    """Which batch of the file it is, from 1."""
    records: list[Any] = field(default_factory=list)
    """The records."""
    lines: list[int] = field(default_factory=list)
    """The line number of each record."""
    faults: list[Fault] = field(default_factory=list)
    """Faults of lines that are not JSON."""
    size: int = 0
    """Bytes of its lines."""

    @property
    def is_full(self) -> bool:
        """Whether the next record belongs to another batch."""
        return len(self.records) + len(self.faults) >= BATCH_RECORDS or self.size >= BATCH_BYTES


class RecordFile:
    """A file of records, or standard input, during reading."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._stream: IO[bytes] = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115
        except (OSError, ValueError) as error:
            raise inputs.unreadable(path, "--file", error) from error
        self._head: list[bytes] = []
        self.name = "standard input" if path == "-" else path
        """Its name in errors."""

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._path != "-":
            self._stream.close()

    @property
    def is_readable_twice(self) -> bool:
        """Whether it can be read from its beginning again."""
        return self._path != "-" and os.path.isfile(self._path)

    def is_lines(self) -> bool:
        """Return True if it holds one record per line, by its name or by its first lines."""
        if self._path.endswith(inputs.LINES_SUFFIXES):
            return True
        first = self._next_written()
        if not first.lstrip().startswith(b"{"):
            return False
        try:
            form.parse(first.strip())
        except Refused:
            return False
        return bool(self._next_written())

    def _next_written(self) -> bytes:
        """Return the next line that is not blank; the reader continues with it."""
        while data := self._stream.readline(LINE_BYTES_MAX):
            self._head.append(data)
            if data.strip():
                return data
        return b""

    def document(self) -> Json:
        """Return the whole file as one JSON value."""
        data = b"".join(self._head)
        data += self._stream.read(max(inputs.INPUT_BYTES_MAX + 1 - len(data), 0))
        if len(data) > inputs.INPUT_BYTES_MAX:
            problem = f"{shown(self.name)} is one JSON value of more than {inputs.INPUT_BYTES_MAX} bytes"
            remedy = "Write one record per line (JSONL): such files of any length are stored in batches."
            raise Refused([Fault("--file", problem, remedy)])
        if not data.strip():
            raise self._empty()
        return inputs.document(data, self.name)

    def _empty(self) -> Refused:
        return Refused([Fault(self.name, "it is empty", "Send a JSON list of records, or one record per line.")])

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the records in batches that depend on the file alone: the same file has the same batches again."""
        batch = RecordBatch(1)
        for number, data in enumerate(self._lines(), 1):
            if not data.strip():
                continue
            if batch.is_full:
                yield batch
                batch = RecordBatch(batch.number + 1)
            batch.size += len(data)
            if len(data) > LINE_BYTES_MAX:
                problem = f"the line has more than {LINE_BYTES_MAX} bytes"
                batch.faults.append(Fault(f"{self.name} line {number}", problem, "Split the record."))
                continue
            try:
                batch.records.append(form.parse(data.strip()))
            except Refused as refusal:
                batch.faults += [inputs.on_line(fault, self.name, number) for fault in refusal.faults]
            else:
                batch.lines.append(number)
        if not batch.records and not batch.faults:
            raise self._empty()
        yield batch

    def _lines(self) -> Iterator[bytes]:
        yield from self._head
        self._head = []
        while data := self._stream.readline(LINE_BYTES_MAX + 1):
            yield data
            while not data.endswith(b"\n") and len(data) > LINE_BYTES_MAX:
                data = self._stream.readline(LINE_BYTES_MAX + 1)  # the rest of a line that is too long

    def checked(self) -> int:
        """Return the number of records, after reading all of it; refuse it for lines that are not JSON."""
        faults: list[Fault] = []
        count, last = 0, 0
        with RecordFile(self._path) as again:
            for batch in again.batches():
                faults += batch.faults
                count += len(batch.records)
                last = batch.lines[-1] if batch.lines else last
                if len(faults) >= FAULTS_MAX:
                    raise Refused(faults, f"Nothing was written. Lines after {last} were not looked at.")
        if faults:
            raise Refused(faults)
        return count

    def placed(self, refusal: Refused, batch: RecordBatch) -> list[Fault]:
        """Return the faults of a batch that was refused, by the lines of the file."""
        faults = []
        for fault in refusal.faults:
            index, slash, rest = fault.path.removeprefix("/").partition("/")
            if fault.path.startswith("/") and index.isdigit() and int(index) < len(batch.lines):
                path = f"{self.name} line {batch.lines[int(index)]}{slash}{rest}"
                faults.append(Fault(path, fault.problem, fault.remedy))
            else:
                faults.append(fault)
        return faults
