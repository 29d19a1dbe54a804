"""Content: detects the type of a recording file from its bytes, and yields the documents in it.

JSON, JSON with one document a line, CSV with a header, or OTLP in protobuf. A file of lines, a long JSON array and CSV
are read piece by piece, so that a long file is never in memory as a whole.
"""

from __future__ import annotations

import csv
import re
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault, Refused
from woodrat.importers import spans, table
from woodrat.records import dataclass
from woodrat.runs import json_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LINES_SUFFIXES: Final = (".jsonl", ".ndjson")
"""Suffixes of files with one document per line, whatever their first line."""
SUFFIXES: Final = (".json", *LINES_SUFFIXES, ".csv", ".pb", ".binpb")
"""Names of files that a folder of recordings is searched for."""
HEAD_BYTES: Final = 16 * 1_048_576
"""Bytes read to detect the type of a file; its first line may be long."""
LINE_BYTES_MAX: Final = 64 * 1_048_576
"""Longest line of a file."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},]', re.DOTALL)
"""Tokens for splitting an array: strings, which may contain anything, brackets and commas."""
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class FileType(Enum):
    """The type of a file."""

    JSON = "JSON"
    LINES = "JSON lines"
    CSV = "CSV"
    PROTOBUF = "OTLP in protobuf"


@dataclass(frozen=True, slots=True)
class Piece:
    """One document of a file."""

    place: str
    """Its place in the file."""
    value: Any = None
    """What it says."""
    faults: tuple[Fault, ...] = ()
    """Its fault; then there is no value."""


def kind_of(head: bytes, name: str = "") -> FileType:
    """Return the type of a file, by its first bytes and its name."""
    start = head.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if name.endswith(".csv"):
        return FileType.CSV
    if name.endswith(LINES_SUFFIXES):
        return FileType.LINES
    if head[:1] == b"\n" and start[:1] not in (b"{", b"[") and _is_binary(head):
        return FileType.PROTOBUF
    if start[:1] == b"{":
        return FileType.LINES if _is_lines(start) else FileType.JSON
    return FileType.CSV if _is_csv(start) else FileType.JSON


def document(data: bytes, name: str = "") -> tuple[Any, list[str]]:
    """Return the content of a file as one document, with the place of each item of a list; raise `Refused`."""
    data = data.removeprefix(_BYTE_ORDER_MARK)
    kind = kind_of(data[:HEAD_BYTES], name)
    if not data.strip():
        raise Refused([Fault("", "it is empty", "Send recorded runs as JSON, one per line, or as CSV.")])
    if kind is FileType.JSON:
        return json_values.parse(data), []
    if kind is FileType.PROTOBUF:
        return spans.document_of_protobuf(data), []
    listed = [*(rows(decoded(data).splitlines(keepends=True)) if kind is FileType.CSV else lines(data.split(b"\n")))]
    faults = [fault.under(piece.place) for piece in listed for fault in piece.faults]
    if faults:
        raise Refused(faults)
    return [piece.value for piece in listed], [piece.place for piece in listed]


def decoded(data: bytes) -> str:
    """Return text in UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        raise Refused([Fault("", problem, "Send the text in UTF-8.")]) from None


def lines(listed: Iterable[bytes]) -> Iterator[Piece]:
    """Yield the documents of a file with one on each line; empty lines are passed over."""
    for number, line in enumerate(listed, 1):
        stripped = line.strip(b"\r\n")
        if number == 1:
            stripped = stripped.removeprefix(_BYTE_ORDER_MARK)
        if stripped.strip():
            yield _parsed(stripped, f" line {number}")


def _parsed(data: bytes, place: str) -> Piece:
    try:
        return Piece(place, json_values.parse(data))
    except Refused as refusal:
        # The parser sees every piece as line 1; the line in the file is more useful.
        faults = (Fault(f.path, f.problem.replace("line 1 column", "column", 1), f.remedy) for f in refusal.faults)
        return Piece(place, faults=tuple(faults))


def elements(data: Any) -> Iterator[Piece]:
    """Yield the elements of a JSON array, each with its number; text that is not a complete array is a fault."""
    depth, start, number, closed = 0, 0, 0, False
    for token in _TOKEN.finditer(data):
        mark = token.group()
        if mark in (b"[", b"{"):
            depth += 1
            if depth == 1:
                start = token.end()
        elif mark in (b"]", b"}"):
            depth -= 1
        if (depth == 1 and mark == b",") or depth == 0:
            element = bytes(data[start : token.start()])
            if element.strip() or mark == b"," or number:
                yield _parsed(element, f"/{number}")
            start, number, closed = token.end(), number + 1, depth == 0
            if closed:
                break
    if not closed or bytes(data[start : start + 4_096]).strip():
        problem = "something follows the array" if closed else "the array is not closed"
        yield Piece("", faults=(Fault("", problem, "Send the file as exported; was it cut off?"),))


def rows(text: Iterable[str]) -> Iterator[Piece]:
    """Yield the rows of CSV with a header; cells that are JSON of an object or a list are read as that."""
    limit = csv.field_size_limit(table.CELL_CHARACTERS_MAX)
    count = 0
    try:
        for number, row in table.rows(text):
            count += 1
            place = f" row {number}" if number else ""
            yield Piece(place, faults=row) if isinstance(row, tuple) else Piece(place, row)
    except csv.Error as error:
        count += 1
        yield Piece(
            "", faults=(Fault("", f"is not CSV ({error})", "Send CSV with a header, quoted as RFC 4180 says."),)
        )
    finally:
        csv.field_size_limit(limit)
    if not count:
        yield Piece("", faults=(Fault("", "it has no rows", "Send a header and at least one row."),))


def _is_binary(head: bytes) -> bool:
    """Return whether bytes are no text; the ids of a trace are random bytes."""
    if _CONTROL.search(head):
        return True
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start < len(head) - 4  # an incomplete character is dropped
    return False


def _is_lines(start: bytes) -> bool:
    """Return True if the first object is followed by other objects on lines of their own."""
    first, _, rest = start.partition(b"\n")
    if not rest.strip():
        return False
    try:
        json_values.parse(first)
    except Refused:
        return False
    return True


def _is_csv(start: bytes) -> bool:
    """Return True if data begins with a header line of columns, at least one of them known."""
    first, newline, _ = start.partition(b"\n")
    if not newline or start[:1] == b"[":
        return False
    try:
        names = next(csv.reader([first.decode("utf-8")]), [])
    except (UnicodeDecodeError, csv.Error):
        return False
    return len(names) > 1 and not table.COLUMNS.isdisjoint(name.strip() for name in names)
