"""Lines: an entry as one line of JSON, and a stream of entries as whole writes.

A line is `Entry.to_json` in one spelling: keys in its order, no spaces, the body as the canonical bytes it has in the
log. So a log has one export, byte for byte, on every engine.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from woodrat.canon import form
from woodrat.canon.digest import FORMAT
from woodrat.errors import Corrupt, Fault, Refused, shown
from woodrat.exchange.admission import meaning_of
from woodrat.log.entry import Entry
from woodrat.state.meaning import Meaning

LINE_BYTES_MAX: Final = 256 * 1_048_576
"""Longest line that is read; no entry is that long."""
REMEDY: Final = "Export the log again, and import that file."


def line(entry: Entry) -> bytes:
    """Return an entry as a line of JSON, with its end."""
    if entry.body is None:
        body = b"null"
    elif entry.kind == "source":
        body = b'{"base64":"%b"}' % base64.b64encode(entry.body)
    else:
        body = entry.body
    nonce = b"null" if entry.nonce is None else b'"%b"' % entry.nonce.hex().encode()
    envelope = ",".join(f'"{key}":{form.serialise(value).decode()}' for key, value in entry.envelope.to_json().items())
    head = (
        f'{{"format":{FORMAT},"log":{form.serialise(entry.log).decode()},"position":{entry.position},'
        f'"recorded_at":"{entry.recorded_at}","kind":"{entry.kind}","envelope":{{{envelope}}},'
        f'"commitment":"{entry.commitment.hex()}","nonce":'
    )
    return b'%b%b,"body":%b}\n' % (head.encode(), nonce, body)


class Misfit(Exception):
    """An invalid line."""

    def __init__(self, place: str, problems: Iterable[Fault], *, corrupt: bool = False) -> None:
        self.place = place
        self.faults = [fault.under(place) for fault in problems]
        self.corrupt = corrupt

    def told(self, outcome: str) -> Refused | Corrupt:
        """Return the error for it; `outcome` describes the fate of earlier lines."""
        if self.corrupt:
            problem = "; ".join(f"{fault.path}: {fault.problem}" for fault in self.faults)
            return Corrupt(f"{problem}. {outcome} {REMEDY}", {"place": self.place})
        return Refused(self.faults, outcome)


class Lined(Protocol):
    """A source of lines."""

    def readline(self, size: int, /) -> bytes:
        """Return the next line with its end; empty at the end of the file."""


class LineReader:
    """The entries of an exported log, read line by line; each is checked on its own."""

    def __init__(self, stream: Lined) -> None:
        self._stream = stream
        self.number = 0
        """The line read last; the first is 1."""
        self.read_bytes = 0
        """Number of bytes read."""

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        while data := self._stream.readline(LINE_BYTES_MAX):
            self.number += 1
            self.read_bytes += len(data)
            place = f"line {self.number}"
            yield place, self._entry(place, data)

    @staticmethod
    def _entry(place: str, data: bytes) -> Entry:
        if not data.endswith(b"\n"):
            raise Misfit(place, [Fault("", "the line is cut off", REMEDY)])
        try:
            value: Any = form.decode(data)  # the commitment admits one body, however it is spelled here
        except ValueError as error:
            raise Misfit(place, [Fault("", f"not an exported entry ({error})", REMEDY)]) from None
        return entry_of(place, value)


def entry_of(place: str, value: Any) -> Entry:
    """Return the entry in a JSON value, checked on its own."""
    if not isinstance(value, dict):
        raise Misfit(place, [Fault("", f"expected an exported entry, got {shown(value)}", REMEDY)])
    try:
        return Entry.from_json(value)
    except Refused as refusal:
        raise Misfit(place, refusal.faults) from None
    except Corrupt as damage:
        problem = str(damage).partition(". ")[0]
        raise Misfit(place, [Fault("", problem, REMEDY)], corrupt=True) from None


class Arrived(NamedTuple):
    """An entry from elsewhere, and its meaning for the indexes."""

    entry: Entry
    meaning: Meaning


def whole(
    placed: Iterable[tuple[str, Entry]], meaning_of: Callable[[Entry], Meaning] = meaning_of
) -> Iterator[list[Arrived]]:
    """Yield the entries of a log write by write; `Misfit` where they are not one log without a gap, each in order."""
    write: list[Arrived] = []
    length, place = 0, ""
    last: Entry | None = None
    names: set[str] = set()
    for place, entry in placed:
        problem = _gap(entry, last, names) or (_misfit_reason(entry, write[0].entry) if write else _inside(entry, last))
        if problem is not None:
            raise Misfit(place, [Fault("", problem, REMEDY)])
        try:
            meaning = meaning_of(entry)
        except Refused as refusal:
            raise Misfit(place, refusal.faults) from None
        if not write:
            length = entry.envelope.length or 0
        names.add(entry.log)
        write.append(Arrived(entry, meaning))
        last = entry
        if len(write) == length:
            yield write
            write = []
    if write:
        first = write[0].entry.position
        problem = f"the log ends inside the write at {first}: {len(write)} of {length} entries are there"
        raise Misfit(place, [Fault("", problem, REMEDY)])


def _gap(entry: Entry, last: Entry | None, names: set[str]) -> str | None:
    if last is None:
        return None
    if entry.position != last.position + 1:
        return f"position {entry.position} of {entry.log} follows position {last.position} of {last.log}"
    if entry.log != last.log and entry.log in names:
        return f"{entry.log} continues after {last.log} began; these entries belong to two logs"
    return None


def _inside(entry: Entry, last: Entry | None) -> str | None:
    """Say why an entry cannot be the first of a write."""
    if entry.envelope.length is None:
        return f"position {entry.position} is inside the write at {entry.envelope.write}, which is not whole"
    if last is not None and entry.recorded_at <= last.recorded_at:
        return f"position {entry.position} was recorded at {entry.recorded_at}, not after the write before it"
    return None


def _misfit_reason(entry: Entry, first: Entry) -> str | None:
    """Say why an entry cannot be the next of a write that has begun."""
    if entry.envelope.write != first.position:
        return f"position {entry.position} is not of the write at {first.position}, which is not whole"
    if (entry.log, entry.recorded_at) != (first.log, first.recorded_at):
        return f"position {entry.position} has another log or time than its write, which begins at {first.position}"
    return None
