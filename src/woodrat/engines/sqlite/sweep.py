"""The sweep: after an erasure every free byte of the file becomes zero, some pages at a time, while others write.

Free pages and the gaps in others hold copies of what was erased from long before it was: rows move as they grow, and
SQLite leaves what it moved. Nothing but free bytes is written, and SQLite never reads those, so that a step which is
cut short anywhere leaves the same database.

A step has the writers' turn. It takes the write-ahead log over, so that the file is the whole database, and holds
SQLite's own write lock, so that it stays so. It cleans the next pages in the file itself, flushes them, and notes how
far it came in a commit, by which all other connections drop the pages they have cached.

Between two steps others write. Pages move then, and one that was not cleaned yet may come to stand where one was. So
the note names the generation of the write-ahead log it was committed to: what changed since is in its frames, and is
cleaned once more. A reader that stays open from one step to the next keeps the frames. If a process is killed and
others then write so much that the log begins anew, the sweep begins at the first page, where it finds most of it clean.

When the last page is done, nothing erased is in any page, and none can come back. What is left to do is to cut the
write-ahead log off, for which those who still read the past must have ended.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import apsw

from woodrat.engines.sqlite import page_format
from woodrat.engines.sqlite.connection import connect, is_purged
from woodrat.engines.sqlite.page_format import Header, Span, UnknownFormat
from woodrat.engines.sqlite.wal_index import Generation, WalIndex

if TYPE_CHECKING:
    from woodrat.engines.sqlite.connected import Connected
    from woodrat.engines.sqlite.gate import Gate

STEP_PAGES: Final = 256
"""How many pages are cleaned while writers wait, besides those that were written since the step before."""
PATIENCE_MILLISECONDS: Final = 10_000
"""How long a sweep waits for those who still read the past, or write, before it is put off."""
BUSY_MILLISECONDS: Final = 20
"""How long writers wait with it for short reads to end."""
PAUSE_SECONDS: Final = 0.03
"""How long it waits by itself before it asks again."""
VACUUM_BYTES_MAX: Final = 1 << 30
"""Up to this size a file that is laid out otherwise is made anew in memory; beyond it, in a file without a name."""
FIRST_PAGE: Final = 1
SWEPT: Final = 0
"""Where the cursor stands once every page is clean."""


class Swept(Protocol):
    """The engine whose file is swept."""

    path: str
    vfs: str | None
    gate: Gate

    def take(self) -> Connected:
        """Return a connection to read by."""

    def give_back(self, reader: Connected) -> None:
        """Take it back."""


class _Note(NamedTuple):
    """How far a sweep came, as it is noted in the file."""

    cursor: int
    """The next page to be cleaned."""
    salt: int | None
    """The generation of the write-ahead log whose frames tell what changed since."""


class _Step(Enum):
    """What came of one step."""

    DONE = "done"
    """Nothing is left to do."""
    FURTHER = "further"
    """It came further."""
    BUSY = "busy"
    """Someone was in the way."""


def sweep(engine: Swept) -> bool:
    """Clean the file and cut the write-ahead log off, if an erasure asks for it; return False if someone is in the way.

    What is done by then is not done again.
    """
    connection = connect(engine.path, vfs=engine.vfs)
    try:
        if is_purged(connection):
            return True
        sweeping = _Sweep(engine, connection)
        try:
            return sweeping.run()
        finally:
            sweeping.close()
    finally:
        connection.close()


class _Sweep:
    def __init__(self, engine: Swept, connection: apsw.Connection) -> None:
        self._engine, self._connection = engine, connection
        connection.authorizer = None
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.set_wal_hook(self._grown)
        real = os.path.realpath(engine.path)
        self._index = WalIndex(real)
        # By way of SQLite, which knows when a descriptor of the file may be closed.
        self._file = apsw.VFSFile(engine.vfs or "", real, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])
        self._reader: Connected | None = None
        self._page_size = 0
        self._frames = 0

    def close(self) -> None:
        """Give up what it holds."""
        self._let_go()
        self._file.xClose()

    def run(self) -> bool:
        """Take steps until all is done; return False if someone was in the way for too long."""
        waited = 0.0
        while True:
            try:
                step = self._step()
            except (apsw.BusyError, apsw.LockedError):
                step = _Step.BUSY
            if step is _Step.DONE:
                return True
            if step is _Step.FURTHER:
                waited = 0.0
                continue
            if waited >= PATIENCE_MILLISECONDS / 1000:
                return False
            threading.Event().wait(PAUSE_SECONDS)
            waited += PAUSE_SECONDS + BUSY_MILLISECONDS / 1000

    def _step(self) -> _Step:
        with self._engine.gate.turn():
            note = self._note()
            if note is None:
                return _Step.DONE
            if note.cursor == SWEPT:
                return self._cut(note)
            generation = self._index.generation()
            try:
                if generation is None:
                    raise UnknownFormat("the index of the write-ahead log cannot be read")
                return self._clean(note, generation)
            except UnknownFormat:
                return self._make_anew(note)

    def _note(self) -> _Note | None:
        for row in self._connection.execute("SELECT cursor, salt FROM purge"):
            return _Note(*row)
        return None

    def _clean(self, note: _Note, generation: Generation) -> _Step:
        """Clean the next pages, and those before them that were written since."""
        changed = self._index.pages(generation) if note.salt == generation.salt else None
        if changed is None:
            note, changed, before = _Note(FIRST_PAGE, note.salt), set(), note
        else:
            before = note
        if not self._take_over(generation):
            self._hold()
            return _Step.BUSY
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            if self._index.generation() != generation:  # the gate did not hold somebody back
                return _Step.BUSY
            self._page_size = generation.page_size
            header = page_format.header_of(self._read(1, 0, page_format.HEADER_BYTES))
            if header.page_size != self._page_size:
                raise UnknownFormat(f"pages have {header.page_size} bytes, and {self._page_size} in the log")
            end = min(note.cursor + STEP_PAGES, header.pages + 1)
            pages = [*sorted(page for page in changed if page < note.cursor), *range(note.cursor, end)]
            if self._clean_pages(header, pages):
                self._file.xSync(apsw.SQLITE_SYNC_FULL)
            salt = (generation.salt + 1) & 0xFFFFFFFF if generation.frames else generation.salt
            after = _Note(end if end <= header.pages else SWEPT, salt)
            # What is noted is read here for the first time in this transaction: its page may be one of those.
            if not self._put(before, after):
                return _Step.BUSY
            run("COMMIT")
        finally:
            self._undo()
        self._correct(after)
        self._hold()
        return _Step.FURTHER

    def _take_over(self, generation: Generation) -> bool:
        """Take the write-ahead log over into the file; return whether that was all, and nobody reads from it."""
        self._let_go()
        self._connection.execute("PRAGMA shrink_memory")
        busy, frames, done = next(iter(self._connection.execute("PRAGMA wal_checkpoint(RESTART)")))
        return not busy and frames == done == generation.frames

    def _put(self, before: _Note, after: _Note) -> bool:
        """Note how far it came, unless somebody erased more meanwhile."""
        statement = "UPDATE purge SET cursor = ?, salt = ? WHERE cursor = ? AND salt IS ?"
        self._connection.execute(statement, (*after, *before))
        return self._connection.changes() == 1

    def _correct(self, note: _Note) -> None:
        """Note the generation that the last commit began, where it could not be told before."""
        found = self._index.generation()
        if found is None or found.salt == note.salt:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            if self._index.generation() == found and found.frames == self._frames:
                self._put(note, note._replace(salt=found.salt))
                self._connection.execute("COMMIT")
        finally:
            self._undo()

    def _clean_pages(self, header: Header, pages: list[int]) -> bool:
        """Make the free bytes of some pages zero; return whether any were not."""
        size = header.page_size
        free = page_format.free_pages(header, self._read)
        wrote = False
        for number in pages:
            if number in free:
                wrote |= self._clear(number, self._read(number, 0, size), free[number])
                continue
            if number > header.pages or (number - 1) * size == page_format.LOCK_BYTE:
                continue
            page = self._read(number, 0, size)
            if not page_format.is_tree(page, number):
                continue  # the rest of a row: what is free in it is known where the row begins
            spans, chains = page_format.free_spans(page, number)
            wrote |= self._clear(number, page, spans)
            for chain in chains:
                last, span = page_format.chain_end(chain, header, self._read)
                wrote |= self._clear(last, self._read(last, 0, size), [span])
        return wrote

    def _clear(self, number: int, page: bytes, spans: list[Span]) -> bool:
        wrote = False
        for first, after in spans:
            if page[first:after].strip(b"\0"):
                self._file.xWrite(bytes(after - first), (number - 1) * self._page_size + first)
                wrote = True
        return wrote

    def _read(self, number: int, first: int, size: int) -> bytes:
        data = self._file.xRead(size, (number - 1) * self._page_size + first)
        if len(data) != size:
            raise UnknownFormat(f"page {number} is not in the file")
        return data

    def _cut(self, note: _Note) -> _Step:
        """Cut the write-ahead log off, and note that nothing is left to do."""
        self._let_go()
        run = self._connection.execute
        busy, _, _ = next(iter(run("PRAGMA wal_checkpoint(TRUNCATE)")))
        if busy:
            return _Step.BUSY
        run("DELETE FROM purge WHERE cursor = ? AND salt IS ?", note)
        return _Step.DONE if self._connection.changes() else _Step.FURTHER

    def _make_anew(self, note: _Note) -> _Step:
        """Make the file anew, which holds writers up for as long as it takes: it is laid out otherwise than we know."""
        self._let_go()
        run = self._connection.execute
        if os.path.getsize(self._engine.path) > VACUUM_BYTES_MAX:
            run("PRAGMA temp_store = FILE")
        run("PRAGMA secure_delete = ON")
        run("VACUUM")
        self._put(note, _Note(SWEPT, note.salt))
        return _Step.FURTHER

    def _hold(self) -> None:
        """Read from the write-ahead log until the next step, so that it does not begin anew."""
        self._let_go()
        self._reader = reader = self._engine.take()
        reader.connection.execute("BEGIN")
        reader.connection.execute("SELECT count(*) FROM purge").get  # noqa: B018 - from here on it is this moment

    def _let_go(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            try:
                with suppress(apsw.SQLError):
                    reader.connection.execute("ROLLBACK")
            finally:
                self._engine.give_back(reader)

    def _undo(self) -> None:
        if not self._connection.getautocommit():
            self._connection.execute("ROLLBACK")

    def _grown(self, connection: apsw.Connection, name: str, frames: int) -> int:
        self._frames = frames
        return apsw.SQLITE_OK
