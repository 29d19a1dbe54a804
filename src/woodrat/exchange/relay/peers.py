"""Peers: the two sides of a sync, and the point where their logs meet. A peer is a local log, or one behind a server.

A peer remembers the imported part of another log under that log's name, with the position and the leaf there. This is
derived and safe to lose. A log that was truncated and continued differently has another leaf there, and is imported
from the point where the two diverge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from woodrat.canon.digest import FORMAT
from woodrat.engines.engine import Engine
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.view import View
from woodrat.exchange.admission import meaning_of, stored_meaning
from woodrat.exchange.index import mark, mark_bytes, noted_mark
from woodrat.exchange.verbs.export import root_at
from woodrat.exchange.verbs.importer import Imported, Taking
from woodrat.ledger import reads

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry

PART_ENTRIES: Final = 1_000
"""Entries of another log read at a time, so that no old pages are held for long."""
PART_BYTES: Final = 4 * 1_048_576
"""Bytes of bodies read at a time; a single entry may exceed it."""
PROBES_MAX: Final = 32
"""Leaves per request, when searching for the point where two logs diverge."""


class Mark(NamedTuple):
    """A place in another log."""

    position: int
    """Which entry."""
    leaf: bytes | None
    """Its leaf; none before all entries."""


class Start(NamedTuple):
    """Where to start importing another log."""

    log: str | None
    """The log's name."""
    after: Mark
    """All entries up to here are imported."""
    same: bool
    """Whether the log that takes it in is the same up to there."""
    end: int
    """Its last known end."""


class Peer(Protocol):
    """One of the two that sync."""

    name: str
    """Its name, for people."""
    trusted: bool
    """Whether its entries come from a Woodrat engine, which checked them on arrival."""

    def head(self) -> tuple[str | None, int]:
        """Return the name and the last position of its log."""

    def leaves(self, positions: Sequence[int]) -> list[bytes | None]:
        """Return the leaves at some positions; None for positions beyond the end."""

    def taken(self, log: str) -> Mark | None:
        """Return the imported part of another log, if it is remembered."""

    def entries(self, after: int, through: int | None = None) -> Iterator[tuple[str, Entry]]:
        """Yield the entries after a position, up to another one, each with its place.

        Default: to the end, so that no erased entry comes without its erasure.
        """

    def take(self, giver: Peer, start: Start, progress: Progress | None, through: int | None = None) -> Imported:
        """Import the log of another peer; imported entries stay, even if the rest fails."""

    def note(self, log: str, taken: Mark) -> None:
        """Remember up to which position it holds another log."""

    def fingerprint(self) -> str:
        """Return the fingerprint of its state."""


def meeting(giver: Peer, taker: Peer) -> Start:
    """Return the position from which one peer imports the log of another."""
    log, end = giver.head()
    if log is None:
        return Start(None, Mark(BEFORE_ALL, None), False, BEFORE_ALL)
    marked = taker.taken(log)
    common = _common(giver, taker, min(end, taker.head()[1]))
    if (
        marked is not None
        and common.position < marked.position <= end
        and giver.leaves([marked.position])[0] == (marked.leaf)
    ):
        return Start(log, marked, False, end)
    return Start(log, common, common.position > BEFORE_ALL, end)


def _common(one: Peer, other: Peer, high: int) -> Mark:
    """Return the last position at which two logs are equal; -1 if they have no common prefix.

    Logs equal at one position are equal at all earlier ones: nonces are random, so it is one history.
    """
    found = Mark(BEFORE_ALL, None)
    while found.position < high:
        low, count = found.position, min(PROBES_MAX, high - found.position)
        probes = [low + (high - low) * number // count for number in range(1, count + 1)]
        for position, ours, theirs in zip(probes, one.leaves(probes), other.leaves(probes), strict=True):
            if ours is None or ours != theirs:
                high = position - 1
                break
            found = Mark(position, ours)
    return found


class Near:
    """A log that is here: in an engine of this process."""

    trusted = True

    def __init__(self, context: Context, name: str, *, writes: bool = True) -> None:
        self.name = name
        self._writes = writes
        self._context = context
        self._engine, self._tenant = context.engine, context.tenant

    def head(self) -> tuple[str | None, int]:
        with self._engine.view(self._tenant) as view:
            head = view.head()
        return head.log, head.position

    def leaves(self, positions: Sequence[int]) -> list[bytes | None]:
        with self._engine.view(self._tenant) as view:
            return [leaf_at(view, position) for position in positions]

    def taken(self, log: str) -> Mark | None:
        with self._engine.view(self._tenant) as view:
            return marked(view, log)

    def entries(self, after: int, through: int | None = None) -> Iterator[tuple[str, Entry]]:
        for part in parts(self._engine, self._tenant, after, through):
            for entry in part:
                entry.check()
                yield f"position {entry.position}", entry

    def take(self, giver: Peer, start: Start, progress: Progress | None, through: int | None = None) -> Imported:
        course = Taking(self._context, overlaps=start.same)

        def settled() -> None:
            if course.parted:  # a clone is found to be one by its leaves
                self._note(start.log, course.last)
            if progress is not None:
                progress(course.offered, max(start.end - start.after.position, course.offered))

        meaning = stored_meaning if giver.trusted else meaning_of
        found = course.take(giver.entries(start.after.position, through), settled, meaning=meaning)
        self._note(start.log, course.last)
        return found

    def _note(self, log: str | None, last: Entry | None) -> None:
        if log is not None and last is not None:
            self.note(log, Mark(last.position, last.leaf()))

    def note(self, log: str, taken: Mark) -> None:
        note(self._context, log, taken)

    def came(self, after: int, count: int) -> bool:
        """Return True if the log ends `count` entries after a position, all of them first written elsewhere."""
        if self.head()[1] != after + count:
            return False
        found = parts(self._engine, self._tenant, after, after + count)
        return all(entry.envelope.origin is not None for part in found for entry in part)

    def fingerprint(self) -> str:
        return reads.followed_fingerprint(self._context) if self._writes else reads.fingerprint(self._context)


def leaf_at(view: View, position: int) -> bytes | None:
    """Return the leaf at a position of a log."""
    entry = view.entry(position)
    return None if entry is None else entry.leaf()


def marked(view: View, log: str) -> Mark | None:
    """Return the imported part of another log, if it is remembered."""
    noted = view.meta(mark(log))
    return None if noted is None else Mark(*noted_mark(noted, log))


def note(context: Context, log: str, taken: Mark) -> None:
    """Remember the imported position of another log."""
    assert taken.leaf is not None, "an imported log has a leaf"
    with context.engine.transaction(context.tenant) as write:
        write.set_meta(mark(log), mark_bytes(taken.position, taken.leaf))


def parts(
    engine: Engine, tenant: TenantId, after: int, through: int | None = None, bytes_max: int = PART_BYTES
) -> Iterator[list[Entry]]:
    """Yield the entries after a position in parts, to the current end of the log or to a position.

    If something was erased meanwhile, it continues to the new end, where the erasure is.
    """
    end = through
    while end is None or after < end:
        part: list[Entry] = []
        size = 0
        with engine.view(tenant) as view:
            head = view.head().position
            end = head if end is None else end
            for entry in view.entries(after, min(after + PART_ENTRIES, end)):
                part.append(entry)
                size += 0 if entry.body is None else len(entry.body)
                if size >= bytes_max:
                    break
        if not part:
            return
        if through is None and any(entry.body is None for entry in part):
            end = head
        yield part
        after = part[-1].position


def standing(view: View, position: int, positions: Sequence[int], log: str | None) -> dict[str, Any]:
    """Return the answer to another peer as plain JSON: the end of the log, leaves, and the imported part of `log`."""
    taken = None if log is None else marked(view, log)
    return {
        "format": FORMAT,
        "log": None if position == BEFORE_ALL else view.head().log,
        "position": position,
        "root": root_at(view, position + 1),
        "leaves": [None if at > position or (leaf := leaf_at(view, at)) is None else leaf.hex() for at in positions],
        "taken": None
        if taken is None or taken.leaf is None
        else {"position": taken.position, "leaf": taken.leaf.hex()},
    }
