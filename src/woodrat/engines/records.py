"""Records: what engines are given and give back, and the bounds they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from woodrat.canon.ids import Ref
from woodrat.log.tree import Frontier
from woodrat.merge.fold import MergeState

KEPT_EVERY = 8
"""Merge state is kept along the history at most once in so many observations of an entity."""


VECTORS = "recall/"
"""What the names of indexes of vectors begin with. Their values are vectors, a signed byte for each component; no dot
product of two of them leaves what a float32 holds exactly."""


BEFORE_ALL = -1
"""The position before the first entry."""


def next_prefix(prefix: bytes) -> bytes:
    """Return what comes after every key of an index that begins with a prefix, and after nothing else."""
    shorter = prefix.rstrip(b"\xff")
    return shorter[:-1] + bytes([shorter[-1] + 1]) if shorter else b"\xff"


class Head:
    """The end of a log."""

    __slots__ = ("_frontier", "log", "recorded_at", "size")

    def __init__(
        self, log: str | None, size: int, recorded_at: str | None, frontier: Frontier | Callable[[], Frontier]
    ) -> None:
        self.log = log
        """The log's name; none before its first entry."""
        self.size = size
        """How many entries there are; the next one takes this position."""
        self.recorded_at = recorded_at
        """When the last write was recorded."""
        self._frontier = frontier

    @property
    def frontier(self) -> Frontier:
        """The tree over all leaves."""
        if not isinstance(self._frontier, Frontier):
            self._frontier = self._frontier()
        return self._frontier

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Head):
            return NotImplemented
        return (self.log, self.size, self.recorded_at) == (other.log, other.size, other.recorded_at) and (
            self.frontier == other.frontier
        )

    def __hash__(self) -> int:
        return hash((self.log, self.size))

    @property
    def position(self) -> int:
        """Position of the last entry, or the one before all."""
        return self.size - 1


KindedBody = tuple[str, bytes]
"""The kind of an entry, and its body."""


class Kept(NamedTuple):
    """Merge state as it was after a position."""

    position: int
    """All of its entities' observations up to here are folded in."""
    state: MergeState
    """What they fold to."""


class Standing(NamedTuple):
    """What an engine holds of an entity that something was said of."""

    version: int
    """The position of its last observation."""
    kept: Kept | None
    """The latest merge state kept under it, as `kept` returns it."""


class Current(NamedTuple):
    """A lone entity as nothing said since has changed it."""

    state: MergeState
    """Its merge state."""
    version: int
    """The position of its last observation."""


class LastKept(NamedTuple):
    """The last merge state kept along a history, by its amounts."""

    observations: int
    """How many observations it was folded from."""
    body_bytes: int
    """How many bytes their bodies have."""
    state_bytes: int
    """How many bytes it was packed in, without the parts of collections that are kept one by one."""


class Receipt(NamedTuple):
    """What an idempotency key was used for."""

    request: bytes
    """Digest of the request as sent."""
    report: bytes
    """What the log does not say of the report that was given, as canonical JSON."""
    nonce: bytes
    """The request nonce, by which the write committed to key and request; empty in a copy made for a replay."""


class Scan(NamedTuple):
    """A look at the rows of an index whose keys begin with a prefix, as they are now: the first so many."""

    name: str
    """Of the index."""
    prefix: bytes
    limit: int
    reverse: bool = False
    after: bytes | None = None
    """The key after which it begins, or before it with `reverse`."""


class Find(NamedTuple):
    """A look at the rows of an index whose keys begin with any of some prefixes: the first so many of each."""

    name: str
    """Of the index."""
    prefixes: Sequence[bytes]
    limit: int


class Asks(NamedTuple):
    """What a view or a write will ask first."""

    key: tuple[str, str] | None = None
    """The agent and the idempotency key whose receipt it looks for."""
    entities: Sequence[Ref] = ()
    """The entities it speaks of, as far as that is known."""
    scans: Sequence[Scan] = ()
    """Where it will look in indexes."""
    find: Callable[[], Find | None] | None = None
    """Returns what it will look for if it does not know all of the entities."""


NOTHING_ASKED = Asks()
"""What is asked first by what says nothing of itself."""


class IndexRow(NamedTuple):
    """One row of a named ordered index, and from where to where in the log it is true."""

    name: str
    """Of the index."""
    key: bytes
    """Where it stands in it: rows sort by their keys. No key begins with the byte FF, and none begins another."""
    since: int
    """The position it is true from."""
    value: bytes = b""
    """What it says besides."""
    until: int | None = None
    """The position it is no longer true from; none while it is."""


class StoredState(NamedTuple):
    """Merge state as an engine stores it, unread: any part may be of another shape than it should."""

    position: int | None
    """The position it is true for."""
    packed: bytes | None
    """The state, packed without the parts of its large collections."""
    last: int | None = None
    """Along the history, the position of the entity's last observation at that time."""
    until: str | None = None
    """Along the history, the latest `valid_from` of an observation at that time; none for the present state."""


class StoredPart(NamedTuple):
    """One part of a collection from a position on, as an engine stores it."""

    position: int
    """All of its entities' observations up to here are folded in."""
    field: str
    """The field."""
    key: bytes
    """Which part; keys sort as the parts stand in the value."""
    packed: bytes | None
    """The part; none where it is gone."""


class Mismatch(NamedTuple):
    """Something an engine holds that is not what the log says."""

    part: str
    """What it is a part of: `file`, `layout`, `unowned`, `truncated`, `tree`, `index`, `entity`, `state`,
    `element`, `search`."""
    position: int | None
    """The position it is about, where it is about one."""
    entity: Ref | None
    """The entity it is about, where it is about one."""
    problem: str
    """What is wrong, in one clause."""
    log: bool = False
    """Whether the log itself is damaged, and not only what is derived from it."""


class Compaction(NamedTuple):
    """What it takes, or took, to rewrite the file of a database without what was erased."""

    size_bytes: int
    """How large the file is before."""
    needed_bytes: int
    """How much free disk space it takes."""
    estimated_seconds: float
    """How long writers would wait, about."""
    seconds: float | None = None
    """How long they waited; none if nothing was compacted."""
    size_after_bytes: int | None = None
    """How large the file is afterwards; none if nothing was compacted."""
