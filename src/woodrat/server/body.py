"""Body: a request body, limited while it arrives: its bytes, its unpacked size, its number of values.

A byte of JSON can become a hundred bytes of objects, and a byte of gzip a thousand bytes of JSON. So values are counted
in the bytes themselves before anything is built from them: commas, brackets and braces outside of text.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Final

from woodrat.canon import form
from woodrat.errors import Fault, Refused
from woodrat.records import dataclass
from woodrat.server.problems import NOTHING_DONE, Rejected
from woodrat.state.record import parse_records

STEP_BYTES: Final = 65_536
"""Bytes unpacked or counted at a time; other requests run between two steps."""
MEMBERS_MAX: Final = 1_000
"""Most members of one gzip stream: each costs time, and may be empty."""
_GZIP: Final = 16 + zlib.MAX_WBITS
"""Tells zlib to expect gzip's header and trailer."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Limits of a body."""

    bytes_max: int
    """Longest body, unpacked."""
    values_max: int
    """Most values in it: members, elements and their contents."""


class GzipReader:
    """A gzip stream, decompressed as it arrives; it may have several members in a row."""

    def __init__(self) -> None:
        self._member, self._members = zlib.decompressobj(_GZIP), 1

    @property
    def whole(self) -> bool:
        """True if the stream is complete so far."""
        return self._member.eof

    def take(self, part: bytes) -> Iterator[bytes]:
        """Yield the unpacked bytes of a part, step by step; the caller may stop at any step."""
        while part:
            if self._member.eof:
                self._members += 1
                if self._members > MEMBERS_MAX:
                    raise zlib.error(f"it has more than {MEMBERS_MAX} members")
                self._member = zlib.decompressobj(_GZIP)
            yield self._member.decompress(part, STEP_BYTES)
            part = self._member.unused_data if self._member.eof else self._member.unconsumed_tail


class ValueCount:
    """Counts the values of JSON text as it arrives; the text may be cut anywhere and need not be valid."""

    def __init__(self, values_max: int, *, lines: bool = False) -> None:
        self._values_max = values_max
        self._marks = (b",", b"[", b"{", b"\n") if lines else (b",", b"[", b"{")
        self._inside = False
        self._cut = b""
        self.values = 1
        """Number of values so far."""

    def take(self, part: bytes) -> bool:
        """Count a part of the text; return True if the limit still holds."""
        for start in range(0, len(part), STEP_BYTES):
            self._take(self._cut + part[start : start + STEP_BYTES])
            if self.values > self._values_max:
                return False
        return True

    def _take(self, text: bytes) -> None:
        # An escape that is cut in two waits for its other half.
        odd = (len(text) - len(text.rstrip(b"\\"))) % 2
        self._cut, text = (b"\\", text[:-1]) if odd else (b"", text)
        pieces = text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[self._inside :: 2])
        self.values += sum(map(outside.count, self._marks))
        self._inside ^= len(pieces) % 2 == 0


class TakenBody:
    """The received part of a body."""

    __slots__ = ("_count", "_counted", "_limits", "_lines", "parts", "size")

    def __init__(self, limits: BodyLimits, *, lines: bool) -> None:
        self.parts: list[bytes] = []
        self._limits, self._lines, self.size = limits, lines, 0
        self._count: ValueCount | None = None
        self._counted = 0

    def add(self, part: bytes) -> None:
        """Add a part; a part that exceeds a limit is refused."""
        self.parts.append(part)
        self.size += len(part)
        limits = self._limits
        if self.size > limits.bytes_max:
            raise too_large(limits.bytes_max)
        if self.size > limits.values_max:  # a value takes at least one byte, so shorter bodies need no count
            self._count = self._count or ValueCount(limits.values_max, lines=self._lines)
            uncounted, self._counted = self.parts[self._counted :], len(self.parts)
            if not all(map(self._count.take, uncounted)):
                text = (
                    f"The body has more than {limits.values_max} values (members and elements), which is the limit. "
                    f"{NOTHING_DONE} Send it in several calls."
                )
                raise Rejected(413, text, ((b"connection", b"close"),))


class HeldBytes:
    """Memory for long bodies, shared by all requests."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max, self.held = bytes_max, 0

    def take(self, size: int) -> None:
        """Reserve bytes, or refuse the request."""
        if self.held + size > self._bytes_max:
            text = (
                f"The bodies being read already hold {self.held} bytes, and {self._bytes_max} is the limit. "
                f"{NOTHING_DONE} Send the same call again later, or less at a time."
            )
            raise Rejected(503, text, ((b"retry-after", b"5"), (b"connection", b"close")), code="unavailable")
        self.held += size

    def give_back(self, size: int) -> None:
        """Release bytes."""
        self.held -= size


def too_large(bytes_max: int, size: int | None = None) -> Rejected:
    """Return the error for a body that is too long."""
    told = "more" if size is None else f"{size} bytes"
    text = f"The body has {told}, and {bytes_max} bytes is the limit. {NOTHING_DONE} Send it in several calls."
    return Rejected(413, text, ((b"connection", b"close"),))


def document(data: bytes, path: str = "") -> Any:
    """Return the value of a JSON body; faults name their place in it."""
    if not data.strip():
        raise Refused([Fault(path or "(body)", "it is empty", "Send a JSON object.")])
    return form.parse(data)


def recordings(data: bytes, path: str = "") -> Any:
    """Return the value of a body with recordings of other tools (docs/reference/recording.md).

    A `document` of type text is the text of a file.
    """
    from woodrat.importers import content
    from woodrat.runs import json_values

    if not data.strip():
        return document(data, path)
    faults: list[Fault] = []
    value = json_values.keepable(json_values.parse(data), faults)
    if not faults and isinstance(value, dict) and isinstance(value.get("document"), str):
        try:
            value = {**value, "document": content.document(value["document"].encode())[0]}
        except Refused as refusal:
            faults += [fault.under("/document") for fault in refusal.faults]
        else:
            value = json_values.keepable(value, faults)
    if faults:
        raise Refused(faults)
    return value


class JsonLines(dict[str, list[Any]]):
    """A body of JSON lines, wrapped as the argument that it fills; `numbers` are the line numbers."""

    def __init__(self, records: list[Any], numbers: list[int]) -> None:
        super().__init__(records=records)
        self.numbers = numbers

    def refused(self, refusal: Refused) -> Refused:
        """Return the faults of records by line number instead of index."""
        faults = [fault if (line := self._line(fault)) is None else line for fault in refusal.faults]
        return Refused(faults, str(refusal).rpartition("\n")[2])

    def _line(self, fault: Fault) -> Fault | None:
        _, _, rest = fault.path.partition("/")
        number, slash, within = rest.partition("/")
        if fault.path[:1] != "/" or not number.isdecimal() or int(number) >= len(self.numbers):
            return None
        return Fault(f"line {self.numbers[int(number)]}{slash}{within}", fault.problem, fault.remedy)


def lines(data: bytes) -> JsonLines:
    """Return the records of a body of JSON lines; all faults name their line."""
    records: list[Any] = []
    numbers: list[int] = []
    faults: list[Fault] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                records.append(form.parse(line.strip(b"\r")))
                numbers.append(number)
            except Refused as refusal:
                # the parser says "line 1" for a line parsed alone; here it has another number
                told = [
                    (f.path, f.problem.replace(" at line 1 column ", " at column "), f.remedy) for f in refusal.faults
                ]
                faults += [Fault(f"line {number}{path}", problem, remedy) for path, problem, remedy in told]
    found = JsonLines(records, numbers)
    if faults and records:
        amiss: list[Fault] = []
        parse_records(records, amiss)
        faults = sorted([*faults, *(found.refused(Refused(amiss)).faults if amiss else ())], key=_by_line)
    if not records and not faults:
        faults.append(Fault("(body)", "it is empty", "Send one record per line."))
    if faults:
        raise Refused(faults)
    return found


def _by_line(fault: Fault) -> int:
    number = fault.path.removeprefix("line ").partition("/")[0]
    return int(number) if number.isdecimal() else 0
