"""Syncing: two ledgers take in what the other holds, in either direction or both, and end with the same state.

How far another log was taken is remembered on a shelf: by its name, with the position and the leaf there. It is derived
and safe to lose. A log that was cut back and went on otherwise has another leaf there, and is taken from the beginning.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from woodrat.engines.port import BEFORE_ALL, Engine, View
from woodrat.errors import Fault, Refused
from woodrat.exchange import files, taking
from woodrat.exchange.admitting import stored_meaning
from woodrat.exchange.backup import same_file
from woodrat.exchange.taking import Imported, Taking
from woodrat.frozen import dataclass
from woodrat.ledger.opening import engine_for, path_of
from woodrat.ledger.taken import mark
from woodrat.ledger.writing import Writer

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.rebuilding import Progress
    from woodrat.log.entry import Entry

PART_ENTRIES: Final = 1_000
"""How much of another log is read at a time, so that nobody's old pages are held for long."""
NOT_SYNCED: Final = "Nothing was exchanged."


@dataclass(frozen=True, slots=True)
class Synced:
    """What came of a sync."""

    other: str
    """What the ledger was synced with."""
    pulled: Imported | None
    """What came from there; none if nothing was asked for."""
    pushed: Imported | None
    """What went there; none if nothing was sent."""
    fingerprint: str
    """Fingerprint of this ledger afterwards."""
    other_fingerprint: str | None
    """Fingerprint of the other one; none where it is a file of lines."""

    @property
    def same(self) -> bool:
        """Whether both ledgers now hold the same state."""
        return self.fingerprint == self.other_fingerprint

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain JSON."""
        return {
            "other": self.other,
            "pulled": None if self.pulled is None else self.pulled.to_json(),
            "pushed": None if self.pushed is None else self.pushed.to_json(),
            "fingerprint": self.fingerprint,
            "other_fingerprint": self.other_fingerprint,
            "same": self.same,
        }


def pull(writer: Writer, engine: Engine, tenant: TenantId, progress: Progress | None = None) -> Imported:
    """Take in what the log of another ledger holds and this one does not."""
    with engine.view(tenant) as theirs:
        head = theirs.head().position
        after, overlaps = _taken(writer, theirs)
    course = Taking(writer, overlaps=overlaps)
    told = None if progress is None else lambda: progress(course.offered, head - after)
    found = course.take(_placed(engine, tenant, after, head), told, meaning=stored_meaning)
    if head >= 0 and head > after:
        _note(writer, engine, tenant, head)
    return found


def _placed(engine: Engine, tenant: TenantId, after: int, through: int) -> Iterator[tuple[str, Entry]]:
    while after < through:
        with engine.view(tenant) as view:
            part = list(view.entries(after, min(after + PART_ENTRIES, through)))
        for entry in part:
            entry.check()
            yield f"position {entry.position}", entry
        after += len(part)


def _taken(writer: Writer, theirs: View) -> tuple[int, bool]:
    """Return through which position of another log everything was taken in before, and if it has the same here."""
    head = theirs.head()
    if head.log is None:
        return BEFORE_ALL, False
    with writer.engine.view(writer.tenant) as ours:
        marked = ours.shelved(mark(head.log))
        common = _common(ours, theirs)
        if marked > common and _leaf(theirs, marked) == next((leaf for _, leaf in ours.shelf(mark(head.log))), b""):
            return marked, False
        return common, common > BEFORE_ALL


def _common(ours: View, theirs: View) -> int:
    """Return the last position at which two logs hold the same write; before all if they have nothing in common.

    What is the same at one position is the same at all before it: nonces are random, so it is one history.
    """
    low, high = BEFORE_ALL, min(ours.head().position, theirs.head().position)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _leaf(ours, middle) == _leaf(theirs, middle) else (low, middle - 1)
    return low


def _leaf(view: View, position: int) -> bytes | None:
    entry = view.entry(position)
    return None if entry is None else entry.leaf()


def _note(writer: Writer, engine: Engine, tenant: TenantId, through: int) -> None:
    """Remember how far another log was taken in."""
    with engine.view(tenant) as theirs:
        log, leaf = theirs.head().log, _leaf(theirs, through)
    assert log is not None and leaf is not None, "a log that was taken in is there"
    with writer.engine.transaction(writer.tenant) as write:
        write.shelve(mark(log), through, [(0, leaf)])


def sync(ledger: Ledger, other: object, *, pulls: bool, pushes: bool, progress: Progress | None) -> Synced:
    """Exchange entries with another ledger, or take in those of an exported log; see `Ledger.sync`."""
    if not pulls and not pushes:
        raise Refused([Fault("sync", "neither direction is asked for", "Pull, push or both.")], NOT_SYNCED)
    if hasattr(other, "_writer"):
        return _exchange(ledger, cast("Ledger", other), "another ledger", pulls, pushes, progress)
    if isinstance(other, str) and other.startswith(("http://", "https://")):
        problem = "ledgers behind a server cannot be synced with yet"
        remedy = "Not yet: use a file, or `export log` there and `import log` here."
        raise Refused([Fault("sync", problem, remedy)], NOT_SYNCED)
    path = path_of(other) if isinstance(other, str | os.PathLike) else files.path_in(other, "other", NOT_SYNCED)
    if path is None:
        raise Refused([Fault("other", "nothing is kept in :memory:", "Name a file, or send a ledger.")], NOT_SYNCED)
    if taking.is_database(path, NOT_SYNCED):
        theirs = _opened(ledger, path, readonly=not pushes)
        try:
            return _exchange(ledger, theirs, path, pulls, pushes, progress)
        finally:
            theirs.close()
    if pushes and not pulls:
        problem = f"{path} is an exported log, which nothing is pushed to"
        raise Refused([Fault("other", problem, "Use `export log` to make it anew.")], NOT_SYNCED)
    pulled = taking.import_file(ledger._writer, path, progress)
    return Synced(path, pulled, None, ledger.fingerprint(), None)


def _opened(ledger: Ledger, path: str, *, readonly: bool) -> Ledger:
    own = getattr(ledger._engine, "path", None)
    if own is not None and same_file(own, path):
        raise _itself(path)
    return type(ledger)(
        engine_for(path, readonly=readonly),
        tenant=ledger.tenant,
        agent=ledger.agent,
        clock=ledger._clock,
        policies=ledger._policies,
        keys=ledger._keys,
    )


def _exchange(ledger: Ledger, other: Ledger, name: str, pulls: bool, pushes: bool, progress: Progress | None) -> Synced:
    if other._engine is ledger._engine and other.tenant == ledger.tenant:
        raise _itself(name)
    pulled = pull(ledger._writer, other._engine, other.tenant, progress) if pulls else None
    pushed = _push(ledger, other, progress) if pushes else None
    theirs = other.fingerprint() if pushes else other.at("now").fingerprint()
    return Synced(name, pulled, pushed, ledger.fingerprint(), theirs)


def _push(ledger: Ledger, other: Ledger, progress: Progress | None) -> Imported:
    """Give another ledger what this one holds, and remember that what it gained by that is known here."""
    with other._engine.view(other.tenant) as theirs:
        before = theirs.head().position
        all_taken = _taken(ledger._writer, theirs)[0] == before
    found = pull(other._writer, ledger._engine, ledger.tenant, progress)
    if all_taken and found.changed and found.position == before + found.merged + found.cloned:
        _note(ledger._writer, other._engine, other.tenant, found.position)
    return found


def _itself(name: str) -> Refused:
    return Refused([Fault("other", f"{name} is this ledger itself", "Name another one.")], NOT_SYNCED)
