"""Importer: whole writes of another log enter this one, as a clone if possible, else by merging.

Entries that this log holds already, at the same positions and bit by bit, are skipped; so an interrupted import
continues where it ended. If the logs diverge, or this ledger has writes of its own, entries are merged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from woodrat.erasure.verbs import arrivals
from woodrat.errors import Fault, NotFound, Refused, Unavailable
from woodrat.exchange.admission import meaning_of
from woodrat.exchange.lines import LineReader, Misfit, whole
from woodrat.exchange.verbs import files
from woodrat.exchange.verbs.clone import Whole, clone
from woodrat.exchange.verbs.merge import Merger
from woodrat.ledger import collector
from woodrat.log.entry import Entry
from woodrat.record_json import Record, derived
from woodrat.records import dataclass, replace
from woodrat.state.meaning import Meaning

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.ledger.progress import Progress

NOTHING_TAKEN: Final = "Nothing was imported."
BATCH_ENTRIES: Final = 1_000
"""Approximate number of entries per transaction: whole writes, so it may be exceeded."""
BATCH_BYTES: Final = 16 * 1_048_576
"""Approximate bytes of bodies per transaction."""
_SQLITE: Final = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Imported(Record):
    """The result of importing a log."""

    entries: int
    """Number of offered entries."""
    cloned: int
    """Number of entries copied unchanged, with their positions."""
    merged: int
    """Number of entries merged, as new entries of this log."""
    known: int
    """Number of entries that were here already."""
    erased: int
    """Number of entries that were already erased, there or here, and have no content."""
    erasures: int
    """Number of erasures repeated here: those in the log, and those that the keys folder remembers."""
    log: str | None
    """The name that this ledger's log continues under; None if its next write begins a new one."""
    position: int
    """The end of this log afterwards."""
    root: str
    """Root of its tree, in hex."""

    @derived
    def changed(self) -> bool:
        """Whether anything was imported."""
        return bool(self.cloned or self.merged)

    def then(self, more: Imported) -> Imported:
        """Return the sum of this and a later result."""
        counts = ("entries", "cloned", "merged", "known", "erased", "erasures")
        return replace(more, **{name: getattr(self, name) + getattr(more, name) for name in counts})


class Taking:
    """Imports the writes of one other log, in order; `overlaps` means that all earlier entries are equal."""

    def __init__(self, context: Context, *, overlaps: bool = False) -> None:
        if context.stand_in is not None:
            raise Refused([Fault("import", "not possible during a replay", "Import outside the replay.")])
        self._context = context
        self._merger: Merger | None = None
        self._waiting: list[Whole] = []
        self.parted = False
        """True once the logs have diverged, so that entries are merged."""
        self._overlaps = overlaps
        self._due = arrivals.Due(context)
        self.offered = self.cloned = self.merged = self.erased = self.erasures = 0
        self.last: Entry | None = None
        """The last entry that was imported, or found here."""

    def take(
        self,
        placed: Iterable[tuple[str, Entry]],
        progress: Callable[[], object] | None = None,
        *,
        meaning: Callable[[Entry], Meaning] = meaning_of,
    ) -> Imported:
        """Import a log; an entry that cannot be imported is refused, with the progress so far.

        `meaning` parses bodies: foreign bodies are checked, bodies from a Woodrat engine are not.
        """
        writes = whole(placed, meaning)
        try:
            more = True
            while more:
                with collector.held_off(BATCH_ENTRIES):
                    more = self._gather(writes)
                    self._settle()
                if more and progress is not None:
                    progress()
        except Misfit as misfit:
            self._settle()
            raise misfit.told(self._outcome()) from misfit
        except Refused as refusal:
            raise Refused(refusal.faults, self._outcome()) from refusal
        except Unavailable as problem:
            if self.last is None:
                raise
            said = f"Entries up to position {self.last.position} were imported, later ones were not: {problem}"
            raise Unavailable(said, problem.details) from problem
        self.erasures += self._due.settle()
        return self.imported()

    def _gather(self, writes: Iterator[Whole]) -> bool:
        """Queue the writes of one batch; return True if there may be more."""
        waiting = size = 0
        for write in writes:
            self._waiting.append(write)
            waiting += len(write)
            size += sum(len(one.entry.body) for one in write if one.entry.body is not None)
            if waiting >= BATCH_ENTRIES or size >= BATCH_BYTES:
                return True
        return False

    def _outcome(self) -> str:
        if self.last is None:
            return NOTHING_TAKEN
        return f"Earlier entries were imported, up to position {self.last.position}; import the whole log to continue."

    def imported(self) -> Imported:
        """Return the result."""
        with self._context.engine.view(self._context.tenant) as view:
            head, cloned = view.head(), view.cloned()
            return Imported(
                entries=self.offered,
                cloned=self.cloned,
                merged=self.merged,
                known=self.offered - self.cloned - self.merged - self.erased,
                erased=self.erased,
                erasures=self.erasures,
                log=None if cloned == head.position else head.log,
                position=head.position,
                root=head.frontier.root().hex(),
            )

    def _settle(self) -> None:
        """Import the queued writes."""
        writes, self._waiting = self._waiting, []
        while writes:
            same = 0 if self.parted else self._same(writes)
            self._count(writes[:same])
            writes = writes[same:]
            if not writes:
                return
            self.parted = self.parted or not self._goes_on(writes[0][0].entry)
            if not self.parted:
                if not clone(self._context, writes, self._due):
                    continue  # another writer wrote meanwhile, so check again
                self.cloned += sum(map(len, writes))
                self._overlaps = True  # later entries may have another log name, after a clone was written to
            else:
                arrived = [one for write in writes for one in write]
                if self._merger is None:
                    self._merger = Merger(self._context)
                new, erased, erasures = self._merger.merge(arrived)
                self.merged += new
                self.erasures += erasures
                self.erased += erased + sum(one.entry.body is None for one in arrived)
            self._count(writes)
            writes = []

    def _count(self, writes: list[Whole]) -> None:
        if writes:
            self.offered += sum(map(len, writes))
            self.last = writes[-1][-1].entry

    def _same(self, writes: list[Whole]) -> int:
        """Return the number of these writes that this log holds, at the same positions; at the first other one, the
        logs diverge."""
        count = 0
        with self._context.engine.view(self._context.tenant) as view:
            end = view.head().position
            for write in writes:
                first, last = write[0].entry, write[-1].entry
                if last.position > end:
                    break
                held = list(view.entries(first.position - 1, last.position))
                if [entry.leaf() for entry in held] != [one.entry.leaf() for one in write]:
                    self.parted = True
                    break
                self._overlaps = True
                self._due.look(held)  # entries imported earlier may not have had their erasures applied
                count += 1
        return count

    def _goes_on(self, first: Entry) -> bool:
        """Return True if a write extends this log as its clone; refuse a write that leaves a gap."""
        with self._context.engine.view(self._context.tenant) as view:
            head, cloned = view.head(), view.cloned()
        if cloned != head.position:
            return False
        theirs = head.size == 0 or self._overlaps or first.log == head.log
        if theirs and first.position > head.size:
            end = "is empty" if head.size == 0 else f"ends at {head.position}"
            problem = f"the file starts at position {first.position}, and this ledger {end}"
            remedy = f"Import the earlier entries too: export after position {head.position}."
            raise Refused([Fault("position", problem, remedy)], NOTHING_TAKEN)
        fits = head.recorded_at is None or first.recorded_at > head.recorded_at
        return theirs and fits and first.position == head.size


def import_file(context: Context, source: Any, progress: Progress | None = None) -> Imported:
    """Take in an exported log, from a path or an open binary file."""
    if hasattr(source, "read"):
        return Taking(context).take(LineReader(source))
    path = files.path_in(source, "file", NOTHING_TAKEN)
    if is_database(path, NOTHING_TAKEN):
        problem = f"{path} is a database, not an exported log"
        raise Refused([Fault("file", problem, "Use sync to join it with this one, or copy.")], NOTHING_TAKEN)
    try:
        with open(path, "rb") as file:
            reader = LineReader(file)
            size = os.fstat(file.fileno()).st_size
            told = None if progress is None or not size else lambda: progress(reader.read_bytes, size)
            return Taking(context).take(reader, told)
    except OSError as error:
        raise _unreadable(path, error, NOTHING_TAKEN) from error


def is_database(path: str, outcome: str) -> bool:
    """Return True if a file is a database; refuse an unreadable one."""
    try:
        if not os.path.isdir(path) and not os.path.isfile(path) and os.path.exists(path):
            return False  # a pipe, which can be read once
        with open(path, "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except FileNotFoundError:
        raise NotFound(
            f"There is no file {path}. {outcome} Name an exported log or a ledger's file.", {"path": path}
        ) from None
    except OSError as error:
        raise _unreadable(path, error, outcome) from error


def _unreadable(path: str, error: OSError, outcome: str) -> Unavailable:
    reason = error.strerror or str(error)
    return Unavailable(f"{path}: cannot be read ({reason}). {outcome} Fix it and try again.", {"path": path})
