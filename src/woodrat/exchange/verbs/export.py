"""Export: a log as lines of JSON, from any position on, with memory that does not grow with it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.view import View
from woodrat.errors import Fault, Refused, shown
from woodrat.exchange import lines
from woodrat.exchange.verbs import files
from woodrat.ledger.moments import resolve_moment, write_of
from woodrat.log.tree import Frontier
from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry

NOTHING_EXPORTED: Final = "Nothing was exported."
TELL_ENTRIES: Final = 1_000
"""Number of entries between two progress reports."""
TAIL_BYTES: Final = 65_536
"""Bytes read at a time from the end of a file to find its last line."""


@dataclass(frozen=True, slots=True)
class ExportedLog(Record):
    """The result of an export."""

    entries: int
    """How many entries."""
    after: int
    """The position before the first one; -1 for the whole log."""
    through: int
    """The position of the last one; with it the log had the root below."""
    log: str | None
    """Name of the log."""
    root: str
    """Root of the log's tree through that position, in hex: a clone has the same."""
    written_bytes: int
    """Number of bytes written."""
    sha256: str
    """Digest of the written bytes."""
    out: str | None
    """The file; None for a stream."""


def root_at(view: View, size: int) -> str:
    """Return the root of the tree over the first entries, in hex."""
    head = view.head()
    frontier = head.frontier if size == head.size else Frontier().extend(view.leaves(size))
    return frontier.root().hex()


def check_range(view: View, after: object, through: int) -> int:
    """Return the start position; refuse one that does not exist, or that splits a write."""
    head = view.head().position
    if type(after) is not int or not BEFORE_ALL <= after <= head:
        problem = f"got {shown(after)}; the log ends at {head}"
        raise Refused([Fault("after", problem, "Send a position of this log, or -1 for all of it.")], NOTHING_EXPORTED)
    for name, position in (("after", after), ("through", through)):
        if position > BEFORE_ALL:
            start, end = write_of(view, position)
            if position != end:
                problem = f"position {position} is inside the write from {start} to {end}"
                remedy = f"Use {end}, or {start - 1}: a write cannot be split."
                raise Refused([Fault(name, problem, remedy)], NOTHING_EXPORTED)
    return after


def export(
    context: Context,
    out: Any,
    *,
    after: object,
    through: Moment,
    force: bool,
    resume: bool,
    progress: Progress | None,
) -> ExportedLog:
    """Write a log to a path or an open binary file."""
    with context.engine.view(context.tenant) as view:
        last = resolve_moment(view, through, NOTHING_EXPORTED, context.clock)
        if hasattr(out, "write"):
            return _write(view, out, check_range(view, after, last), last, None, progress)
        path = files.path_in(out, "out", NOTHING_EXPORTED)
        if resume and os.path.exists(path):
            return _go_on(view, path, last, progress)
        first = check_range(view, after, last)
        special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
        if special:  # a pipe or a device cannot be replaced atomically
            with open(path, "wb") as stream:
                return _write(view, stream, first, last, path, progress)
        files.check_free(path, "out", NOTHING_EXPORTED, force=force)
        with files.written(path, NOTHING_EXPORTED) as file:
            return _write(view, file, first, last, path, progress)


def _write(
    view: View, stream: BinaryIO, after: int, through: int, out: str | None, progress: Progress | None
) -> ExportedLog:
    digest, count, size = hashlib.sha256(), 0, 0
    for entry in view.entries(after, through):
        data = lines.line(entry)
        stream.write(data)
        digest.update(data)
        size += len(data)
        count += 1
        if progress is not None and count % TELL_ENTRIES == 0:
            progress(count, through - after)
    return ExportedLog(
        entries=count,
        after=after,
        through=through,
        log=view.head().log,
        root=root_at(view, through + 1),
        written_bytes=size,
        sha256=digest.hexdigest(),
        out=out,
    )


def _go_on(view: View, path: str, through: int, progress: Progress | None) -> ExportedLog:
    """Append new entries of the log to an export, after checking that its last whole write is ours."""
    try:
        with open(path, "r+b") as file:
            last, end = _last_write(view, file)
            file.truncate(end)
            file.seek(end)
            found = _write(view, file, last, max(through, last), path, progress)
            file.flush()
            os.fsync(file.fileno())
            return found
    except OSError as error:
        raise files.unwritable(path, error, "The earlier export is unchanged.") from error


def _last_write(view: View, file: BinaryIO) -> tuple[int, int]:
    """Return the last position that an export holds with its whole write, and where its line ends."""
    for entry, end in _backwards(file):
        held = view.entry(entry.position)
        if held is None or held.leaf() != entry.leaf():
            raise not_ours(entry)
        if write_of(view, entry.position)[1] == entry.position:
            return entry.position, end
    return BEFORE_ALL, 0


def last_whole(file: BinaryIO) -> tuple[Entry | None, int]:
    """Return the last entry of the last whole write that an export holds, by its lines, and where that ends."""
    last: Entry | None = None
    whole_end = 0
    for entry, end in _backwards(file):
        if last is None:
            last, whole_end = entry, end
        if entry.position == last.envelope.write:
            if entry.envelope.length == last.position - entry.position + 1:
                return last, whole_end
            last = None
    return None, 0


def _backwards(file: BinaryIO) -> Iterator[tuple[Entry, int]]:
    """Yield the entries of an export from the last whole line on, each with where its line ends."""
    end = _line_end(file, file.seek(0, os.SEEK_END))
    while end:
        start = _line_end(file, end - 1)
        file.seek(start)
        try:
            ((_, entry),) = lines.LineReader(file_part(file, end - start))
        except lines.Misfit as misfit:
            raise misfit.told("The file is unchanged.") from misfit
        yield entry, end
        end = start


def file_part(file: BinaryIO, size: int) -> BinaryIO:
    """Return the next bytes of a file as a stream of their own."""
    import io

    return io.BytesIO(file.read(size))


def _line_end(file: BinaryIO, before: int) -> int:
    """Return the end of the last whole line before an offset; 0 if there is none."""
    while before > 0:
        start = max(0, before - TAIL_BYTES)
        file.seek(start)
        found = file.read(before - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        before = start
    return 0


def not_ours(entry: Entry) -> Refused:
    problem = f"it ends with position {entry.position} of {entry.log}, which differs from this log"
    return Refused(
        [Fault("out", problem, "Name the export of this log, or another file.")], "The file was left as it is."
    )
