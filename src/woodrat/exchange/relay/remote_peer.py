"""Remote peer: the side of a sync behind a server. Entries are sent as the lines of an exported log.

A pull is one long answer; if the connection breaks, it resumes after the last received entry. A push is sent in parts
of whole writes, each of which may be repeated. So neither end holds more than a part in memory.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, cast

from woodrat import record_json
from woodrat.canon.digest import FORMAT
from woodrat.engines.records import BEFORE_ALL
from woodrat.errors import Fault, NotFound, Refused, Unavailable, shown
from woodrat.exchange.lines import LineReader, Misfit, line, whole
from woodrat.exchange.relay.peers import Mark, Peer, Start
from woodrat.exchange.server import InterruptedAnswer, Server
from woodrat.exchange.verbs import files
from woodrat.exchange.verbs.export import NOTHING_EXPORTED, ExportedLog, last_whole, not_ours
from woodrat.exchange.verbs.importer import NOTHING_TAKEN, Imported, is_database

if TYPE_CHECKING:
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry

NOT_SYNCED: Final = "Nothing was exchanged."
PAGE_ENTRIES: Final = 1_000
"""Approximate number of entries per request: whole writes, so it may be exceeded."""
PAGE_BYTES: Final = 1_048_576
"""Size from which no further write is added to a part."""
MEMORY_BYTES: Final = 8 * 1_048_576
"""Size of a part in memory; one long write may exceed it, and goes to a file."""
ANSWER_SECONDS: Final = 600.0
"""Time limit for the import of a part: an erasure in it derives everything again."""
TRIES_MAX: Final = 5
"""Most interruptions of an answer without any progress."""


class RemoteHead(NamedTuple):
    """The position and the leaf of a log behind a server."""

    log: str | None
    position: int
    root: str
    leaves: list[bytes | None]
    taken: Mark | None


class Far:
    """A log behind a server."""

    trusted = False

    def __init__(self, server: Server) -> None:
        self.name = server.address
        self._server = server

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    def ask(self, positions: Sequence[int] = (), log: str | None = None, moment: Moment | None = None) -> RemoteHead:
        """Return the end of the log; refuse other servers, and other formats."""
        asked = {"position": [str(one) for one in positions], "log": log, "as_of": moment}
        try:
            said = self._server.get("/v1/log/leaves", asked)
        except NotFound as missing:
            if moment is not None:
                raise
            raise self._strange("does not report its leaves, as servers of this release do") from missing
        except Unavailable as problem:
            if problem.details.get("status", 500) >= 500:
                raise
            said = None
        if not isinstance(said, Mapping) or not {"format", "position", "root", "leaves", "taken"} <= said.keys():
            raise self._strange("does not answer as a Woodrat server does")
        if said["format"] != FORMAT:
            raise self._strange(f"keeps logs of format {said['format']}, and this release format {FORMAT}")
        try:
            leaves = [None if leaf is None else bytes.fromhex(leaf) for leaf in said["leaves"]]
            taken = said["taken"] and Mark(int(said["taken"]["position"]), bytes.fromhex(said["taken"]["leaf"]))
            if len(leaves) != len(positions):
                raise ValueError
            return RemoteHead(said.get("log"), int(said["position"]), str(said["root"]), leaves, taken)
        except (TypeError, ValueError, KeyError) as error:
            raise self._strange("does not answer as a Woodrat server does") from error

    def _strange(self, problem: str) -> Refused:
        remedy = "Check the address, and use the same release of Woodrat on both ends."
        return Refused([Fault("other", f"{self.name} {problem}", remedy)], NOT_SYNCED)

    def head(self) -> tuple[str | None, int]:
        found = self.ask()
        return found.log, found.position

    def leaves(self, positions: Sequence[int]) -> list[bytes | None]:
        return self.ask(positions).leaves

    def taken(self, log: str) -> Mark | None:
        return self.ask(log=log).taken

    def entries(self, after: int, through: int | None = None) -> Iterator[tuple[str, Entry]]:
        end = self.ask(moment=through).position
        tries = 0
        while after < end or tries == 0:
            try:
                asked = {"after": after if after > BEFORE_ALL else None, "as_of": through}
                for _, entry in LineReader(_Lines(self._server.stream("/v1/log", asked))):
                    yield f"position {entry.position} of {self.name}", entry
                    after, tries = entry.position, 0
                if after >= end:
                    return
                raise InterruptedAnswer(self.name, None)  # an answer that ends normally is complete
            except InterruptedAnswer as broken:
                tries += 1
                if tries >= TRIES_MAX:
                    raise broken.told() from broken
                self._server.pause(tries)

    def note(self, log: str, taken: Mark) -> None:
        with _page() as nothing:
            self._send(nothing, log, taken, held=True)

    def take(self, giver: Peer, start: Start, progress: Progress | None, through: int | None = None) -> Imported:
        def told(found: Imported) -> None:
            if progress is not None:
                progress(found.entries, max(start.end - start.after.position, found.entries))

        return self.give(giver.entries(start.after.position, through), start.log, start.after, told)

    def give(
        self,
        placed: Iterator[tuple[str, Entry]],
        log: str | None,
        before: Mark,
        told: Callable[[Imported], object],
    ) -> Imported:
        """Send entries in parts, each of whole writes, in order."""
        found: Imported | None = None
        for page, last in _pages(placed):
            with page:
                more = self._send(page, log, before)
            found = more if found is None else found.then(more)
            told(found)
            if last is not None:
                before = Mark(last.position, last.leaf())
        assert found is not None, "there is one part at least"
        return found

    def _send(self, page: BinaryIO, log: str | None, before: Mark, *, held: bool = False) -> Imported:
        leaf = None if before.leaf is None else before.leaf.hex()
        asked = {"log": log, "after": None if leaf is None else before.position, "leaf": leaf, "held": held or None}
        try:
            said = self._server.send_lines("/v1/log", asked, page)
        except Refused as refusal:
            faults = [Fault(f"{self.name}: {one.path}", one.problem, one.remedy) for one in refusal.faults]
            raise Refused(faults, str(refusal).rpartition("\n")[2]) from refusal
        try:
            imported: Imported = record_json.read(Imported, said)
        except (TypeError, KeyError) as error:
            raise self._strange("does not answer as a Woodrat server does") from error
        return imported

    def fingerprint(self) -> str:
        found: str = self._server.get("/v1/fingerprint")["fingerprint"]
        return found


class _Lines:
    """Parts of an answer as lines."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []

    def readline(self, size: int, /) -> bytes:
        """Return the next line, or the rest of the last one; it may not be longer than `size`."""
        length = sum(map(len, self._rest))
        while not self._lines:
            part = next(self._parts, None)
            if part is None:
                last, self._rest = b"".join(self._rest), []
                return last
            *ended, rest = part.split(b"\n")
            if ended:
                ended[0] = b"".join((*self._rest, ended[0]))
                self._lines.extend(ended)
                self._rest, length = [], 0
            self._rest.append(rest)
            length += len(rest)
            if length > size and not self._lines:
                return b"".join(self._rest)
        return self._lines.popleft() + b"\n"


def _pages(placed: Iterator[tuple[str, Entry]]) -> Iterator[tuple[BinaryIO, Entry | None]]:
    """Yield entries as lines in parts of whole writes, each with its last entry; one empty part if there are none."""
    page, count, left = _page(), 0, 0
    last: Entry | None = None
    sent = False
    for _, entry in placed:
        if entry.envelope.length is not None:
            left = entry.envelope.length
        page.write(line(entry))
        count, left, last = count + 1, left - 1, entry
        if left <= 0 and (count >= PAGE_ENTRIES or page.tell() >= PAGE_BYTES):
            yield page, last
            page, count, sent = _page(), 0, True
    if count or not sent:
        yield page, last


def _page() -> BinaryIO:
    return cast("BinaryIO", SpooledTemporaryFile(MEMORY_BYTES))


def import_file(server: Server, source: Any, progress: Progress | None = None) -> Imported:
    """Send an exported log to a server for import, from a path or an open binary file."""
    far = Far(server)
    if hasattr(source, "read"):
        return _import(far, source, lambda done: None)
    path = files.path_in(source, "file", NOTHING_TAKEN)
    if is_database(path, NOTHING_TAKEN):
        problem = f"{path} is a database, not an exported log"
        raise Refused([Fault("file", problem, "Use sync to join it with the server's.")], NOTHING_TAKEN)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return _import(far, file, lambda done: progress is not None and size and progress(done, size))


def _import(far: Far, file: BinaryIO, told: Callable[[int], object]) -> Imported:
    reader = LineReader(file)
    before: list[Imported] = []

    def taken(found: Imported) -> None:
        before[:] = [found]
        told(reader.read_bytes)

    try:
        return far.give(iter(reader), None, Mark(BEFORE_ALL, None), taken)
    except Misfit as misfit:
        outcome = f"{before[0].entries} entries before it were sent and imported." if before else NOTHING_TAKEN
        raise misfit.told(outcome) from misfit


def export(
    server: Server,
    out: Any,
    *,
    after: int,
    through: Moment,
    force: bool,
    resume: bool,
    progress: Progress | None,
) -> ExportedLog:
    """Write the log of a server to a path or an open binary file, as `export.export` does; every line is checked."""
    far = Far(server)
    asked = far.ask(moment=None if through == "now" else through)
    if type(after) is not int or not BEFORE_ALL <= after <= asked.position:
        problem = f"got {shown(after)}; the log ends at {asked.position}"
        raise Refused([Fault("after", problem, "Send a position of this log, or -1 for all of it.")], NOTHING_EXPORTED)
    if hasattr(out, "write"):
        return _export(far, asked, out, after, None, progress)
    path = files.path_in(out, "out", NOTHING_EXPORTED)
    if resume and os.path.exists(path):
        return _go_on(far, asked, path, progress)
    files.check_free(path, "out", NOTHING_EXPORTED, force=force)
    with files.written(path, NOTHING_EXPORTED) as file:
        return _export(far, asked, file, after, path, progress)


def _go_on(far: Far, asked: RemoteHead, path: str, progress: Progress | None) -> ExportedLog:
    """Append new entries of the log to an export, after checking that its last whole write is the server's."""
    try:
        with open(path, "r+b") as file:
            last, end = last_whole(file)
            if last is not None and far.leaves([last.position]) != [last.leaf()]:
                raise not_ours(last)
            after = BEFORE_ALL if last is None else last.position
            file.truncate(end)
            file.seek(end)
            to = asked if asked.position >= after else asked._replace(position=after)
            found = _export(far, to, file, after, path, progress)
            file.flush()
            os.fsync(file.fileno())
            return found
    except OSError as error:
        raise files.unwritable(path, error, "The earlier export is unchanged.") from error


def _export(
    far: Far, asked: RemoteHead, stream: BinaryIO, after: int, out: str | None, progress: Progress | None
) -> ExportedLog:
    digest, count, size = hashlib.sha256(), 0, 0
    try:
        for write in whole(far.entries(after, asked.position), lambda entry: None):
            data = b"".join(line(one.entry) for one in write)
            stream.write(data)
            digest.update(data)
            size += len(data)
            count += len(write)
            if progress is not None:
                progress(count, asked.position - after)
    except Misfit as misfit:
        raise misfit.told(NOTHING_EXPORTED) from misfit
    return ExportedLog(
        entries=count,
        after=after,
        through=asked.position,
        log=asked.log,
        root=asked.root,
        written_bytes=size,
        sha256=digest.hexdigest(),
        out=out,
    )
