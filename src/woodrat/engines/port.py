"""The engine port: the few verbs every engine answers.

An engine keeps one log per tenant and, beside it, indexes and merge state that can be dropped and rebuilt. It
neither merges nor decides: the ledger does, inside the engine's transaction. `through` is always inclusive and
bounds an answer to what the log held at that position, so that every read can be asked of the past.

SQLite, in a file or in memory, and PostgreSQL have the core, `Engine`, `View` and `Transaction`; what stands at the end
only one of them has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from woodrat.canon.ids import Ref, TenantId
from woodrat.log.entry import Entry, Write
from woodrat.log.tree import Frontier, Nodes
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.state.asof import Stored
from woodrat.state.meaning import Meaning
from woodrat.state.observation import Observation

if TYPE_CHECKING:
    from woodrat.log.check import Row

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


class Asks(NamedTuple):
    """What a write will ask first."""

    key: tuple[str, str] | None
    """The agent and the idempotency key whose receipt it looks for."""
    entities: Sequence[Ref]
    """The entities it speaks of, as far as that is known."""


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


class View(Protocol):
    """Consistent reading of one tenant."""

    def head(self) -> Head:
        """Return the end of the log."""

    def entry(self, position: int) -> Entry | None:
        """Return one entry."""

    def bodies(self, positions: Collection[int], kinds: Collection[str] | None = None) -> Mapping[int, KindedBody]:
        """Return kind and body of the entries at some positions, found in one look; those erased are left out."""

    def entries(
        self, after: int = BEFORE_ALL, through: int | None = None, kinds: Collection[str] | None = None
    ) -> Iterator[Entry]:
        """Yield entries in order of position."""

    def leaves(self, size: int) -> Sequence[bytes]:
        """Return the leaf hashes of the first `size` entries."""

    def nodes(self) -> Nodes:
        """Return what knows the roots of the log's complete subtrees, for proofs; good while the view is open."""

    def rows(self, after: int, through: int) -> Iterator[Row]:
        """Yield the log as it is stored, in order of position; nothing of it is checked."""

    def receipts(self) -> Iterator[tuple[str, str, Receipt]]:
        """Yield what idempotency keys were used for, as (agent, key, receipt), by agent and key."""

    def extent(self) -> int:
        """Return how many entries there are as stored: the position of the last, and one."""

    def body_bytes(self) -> int:
        """Return how many bytes the bodies of all entries have."""

    def structure(self) -> list[Mismatch]:
        """Check what holds the tables, and that every row belongs to a tenant and to a position of its log."""

    def derived(self, table: str, name: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a derived table in the order of their keys, as they compare with those of any engine.

        Entities come as type and key, and ids as positions. `name` is that of an ordered index.
        """

    def states_of(self, ref: Ref) -> tuple[Sequence[StoredState], Sequence[StoredPart]]:
        """Return the merge states and the parts of collections stored under an entity, unread, both by position."""

    def repeated(self) -> Sequence[int]:
        """Return the positions of observations whose digests begin as that of another, in order."""

    def index_names(self) -> Sequence[str]:
        """Return the names of the ordered indexes that have rows."""

    def notes(self) -> Mapping[str, bytes]:
        """Return what is noted about the derived data, by name."""

    def cloned(self) -> int:
        """Return the position through which the log was taken over from another ledger, as it was; before all if not.

        While that is the end of the log, the next write begins under a new log name.
        """

    def merged(self, log: str, through: int) -> tuple[int, int] | None:
        """Return which entry of another log, that position or the one nearest below it, came in here, and where.

        None where nothing of it that far was merged in, or the log ends before `through` as far as is known here.
        """

    def position_at(self, moment: str) -> int:
        """Return the last position recorded at or before a moment; the one before all if there is none."""

    def receipt(self, agent: str, key: str) -> Receipt | None:
        """Return what an agent's idempotency key was used for."""

    def observation(self, name: bytes | str, through: int | None = None) -> Stored | None:
        """Return the observation with this digest or this short id."""

    def known(self, observations: Sequence[Observation]) -> Collection[bytes]:
        """Return the digests of those of these observations that the log holds."""

    def ids(self, kind: str, prefix: str, limit: int) -> list[str]:
        """Return the ids of a kind (observation, entity) that begin with a prefix, at most `limit`.

        They come in the order of their digests. The prefix is that of the kind and at least one character more.
        """

    def namers(self, digest: bytes, through: int) -> Sequence[Stored]:
        """Return the observations that name this digest in `replaces`, by position."""

    def named(self, digests: Sequence[bytes], through: int) -> Collection[bytes]:
        """Return those of these digests that an observation names in `replaces`: those with `namers`."""

    def observations(self, entity: bytes, after: int, through: int) -> Sequence[Stored]:
        """Return the observations of one entity, by position."""

    def version(self, entity: bytes, through: int) -> int | None:
        """Return the position of the last observation of an entity."""

    def entity(self, name: bytes | str, through: int | None = None) -> Ref | None:
        """Return the entity with this digest or this short id, if anything was ever said of it."""

    def entities(
        self,
        type: str | None,
        through: int,
        *,
        after: Ref | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Sequence[Ref]:
        """Return every entity anything was ever said of, by type and then key, both as UTF-8 bytes.

        With `after`, those that come after it in that order, or before it with `reverse`; at most `limit` of them. A
        page costs what it returns, whatever else there is, but for entities that were not yet known at `through`.
        """

    def touched(self, after: int, through: int) -> Collection[Ref]:
        """Return the entities with an observation after one position and up to another."""

    def scan(
        self,
        index: str,
        prefix: bytes = b"",
        *,
        through: int | None = None,
        after: bytes | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Sequence[tuple[bytes, bytes]]:
        """Return the rows of an index whose keys begin with a prefix, as (key, value), by key.

        With `through`, those that were true at that position, otherwise those that are now. With `after`, those that
        come after a key in that order, or before it with `reverse`; at most `limit` of them. A page costs what it
        returns and, for a position of the past, what it passes that was not true then.
        """

    def count(self, index: str, prefix: bytes = b"", *, through: int | None = None) -> int:
        """Return how many rows of an index have keys that begin with a prefix, now or at a position."""

    def find(self, index: str, prefixes: Sequence[bytes], *, limit: int | None = None) -> Sequence[tuple[bytes, bytes]]:
        """Return the rows of an index that are true now and begin with any of these prefixes, as (key, value), by key.

        With `limit`, at most so many for each prefix. No prefix begins another.
        """

    def lives(self, index: str, prefix: bytes = b"") -> Sequence[IndexRow]:
        """Return every row of an index whose key begins with a prefix, those that ended too, by key and `since`."""

    def at_hand(self, index: str) -> dict[Any, Any]:
        """Return where readers keep what they made of an index; it is empty again once any row of the index changed.

        An engine that has nowhere to keep it gives an empty one each time.
        """

    def meta(self, name: str) -> bytes | None:
        """Return what is noted under a name about the derived data, such as how far an index goes."""

    def kept(self, root: Ref, through: int, rules: Rules) -> Kept | None:
        """Return the latest merge state kept under a fold's smallest entity, not after `through`.

        One folded under rules that merge otherwise does not count. The parts of its large collections are
        read when they are asked for, as long as the view is open.
        """

    def standings(self, refs: Sequence[Ref], through: int, rules: Mapping[str, Rules]) -> Sequence[Standing | None]:
        """Return what is held of each of these entities, in order: its version and what `kept` returns, in one look.

        `rules` are those of each type. `None` stands for an entity of which nothing was said.
        """

    def current(self, ref: Ref, through: int, rules: Rules) -> Current | None:
        """Return the merge state kept of an entity, if it was folded alone and nothing was said of it since.

        `None` says nothing; `kept` and `observations` always do.
        """

    def kept_by(self, root: Ref, effective: str, through: int, rules: Rules) -> tuple[Kept, Sequence[Stored]] | None:
        """Return the latest merge state kept of a lone entity, not after `through`, all of which was true by a time.

        With it come the observations after it that were true by then too, and retractions, by position. One folded
        under rules that merge otherwise does not count; `None` asks for a whole fold.
        """


class Transaction(View, Protocol):
    """One write: everything in it becomes durable together, or nothing of it ever was."""

    def append(self, writes: Sequence[Write], meanings: Sequence[Meaning]) -> None:
        """Add writes at the end of the log, one after the other, with what the bodies of all their entries mean."""

    def erase(self, positions: Iterable[int], receipts: Iterable[tuple[str, str]]) -> None:
        """Remove bodies and nonces at these positions for ever, and what these (agent, key) were used for.

        Headers and leaves stay. What is derived from them stays too, until `forget` or `drop_derived`. Bytes may be
        left in the files until `Engine.purge`.
        """

    def note_clone(self) -> None:
        """Note that the log as it is now was taken over from another ledger."""

    def keep(self, folds: Iterable[tuple[Kept, Rules, bool]]) -> None:
        """Keep merge state of folds as the current ones, each with its rules; those marked also along the history.

        The parts of large collections are kept one by one: a row for each that is new or changed, true from the
        position of the state on. What follows from a state that was kept costs what changed since.
        """

    def last_kept(self, roots: Sequence[Ref]) -> Sequence[LastKept | None]:
        """Return the amounts of the last merge states kept along histories, each under a fold's smallest entity."""

    def claim(self, agent: str, key: str, receipt: Receipt) -> None:
        """Note what an idempotency key was used for."""

    def put(self, rows: Iterable[IndexRow]) -> None:
        """Add rows to indexes. One that is true now, under a key that has such a row already, changes nothing."""

    def end(self, position: int, rows: Iterable[tuple[str, bytes]]) -> None:
        """End rows, by index and key: they are no longer true from a position on. Those that are not there are not.

        One that began at the position itself was never true, and is forgotten.
        """

    def drop(self, index: str, prefix: bytes = b"") -> None:
        """Forget every row of an index whose key begins with a prefix, those that ended too."""

    def set_meta(self, name: str, value: bytes | None) -> None:
        """Note something about the derived data under a name, or with none nothing any more."""

    def drop_derived(self) -> None:
        """Forget everything but the log and its receipts. A view opened before still shows what was forgotten."""

    def forget(self, entities: Collection[Ref], rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
        """Forget what rows of the log were noted to mean, and all that is kept of some entities.

        The rows are in order, as they were before any was erased, and have every observation of the entities. Named
        indexes are left as they are.
        """

    def derive(self, rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
        """Note again what rows of the log mean, as `append` did, in order: those that are left after `forget`.

        After `drop_derived` these are all rows there are.
        """


class Storage(Protocol):
    """What an engine keeps in files, byte for byte, as far as one tenant is concerned."""

    @property
    def shared(self) -> bool:
        """Whether the files hold other tenants too."""

    def files(self) -> Sequence[str]:
        """Return every file that can hold bytes of a tenant's, as paths."""

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return some bytes of one of the files; fewer at its end, none of one that is gone. No lock is taken."""

    def holding(self, data: bytes, *, others: bool) -> int:
        """Return how many rows of the tenant hold some bytes; of `others`, those of all but the server's own."""


class Engine(Protocol):
    """A place that keeps logs."""

    name: str
    location: str | None
    """The file that the logs are in, as an absolute path; none where they are in no file."""

    def elsewhere(self) -> Callable[[], Engine] | None:
        """Return what opens the same logs in another process, to read; `None` where they are in this one alone."""

    def view(self, tenant: TenantId) -> AbstractContextManager[View]:
        """Open a consistent view of a tenant; one that never wrote is empty."""

    def transaction(self, tenant: TenantId) -> AbstractContextManager[Transaction]:
        """Open the one write a tenant can have at a time. Leaving by an exception undoes all of it."""

    def purge(self) -> bool:
        """Take out of every file what erasures left there; return whether nothing is left to do.

        Someone who still reads the past, or writes, can be in the way: then it is to be called again.
        """

    def purged(self) -> bool:
        """Return whether no erasure waits for a purge."""

    def storage(self, tenant: TenantId) -> Storage:
        """Return the bytes of what is kept, to be searched for what a tenant has erased."""

    def together(self, tenants: Iterable[TenantId] = ()) -> AbstractContextManager[None]:
        """Make the transactions this thread opens until it is left durable together, when it is left.

        Each is still whole or not at all: one that is left by an exception is undone by itself. Nothing may be answered
        before it is left; leaving it by an exception undoes all of them. It is not opened twice. `tenants` are those
        that will be written to, as far as is known: whoever shares commits takes them in one order, so that
        no two wait for each other. A write to another may be `Unavailable` while somebody else writes to it.
        """

    def tenants(self) -> list[str]:
        """Return the names of the tenants that have a log, sorted; for whoever looks after the engine, not for one."""

    def close(self) -> None:
        """Give up what the engine holds; nothing that was acknowledged is lost."""


# What an engine may answer besides.


@runtime_checkable
class LooksAhead(Protocol):
    """An engine that is far away: what a write will ask is asked along with its beginning."""

    def transaction_asking(self, tenant: TenantId, asks: Asks) -> AbstractContextManager[Transaction]:
        """Open the one write a tenant can have at a time, as `transaction` does."""


@runtime_checkable
class Products(Protocol):
    """A view that multiplies vectors, so that whoever searches them need not hold them."""

    def products(self, index: str, vector: bytes) -> tuple[bytes, bytes]:
        """Return the keys of an index of vectors, one after the other, and the dot products of a vector with each.

        A product is four bytes, big-endian and signed. They are exact, and come in no particular order. Vectors of
        another dimension are left out.
        """

    def squares(self, index: str, after: bytes = b"") -> tuple[bytes, bytes]:
        """Return the keys of an index of vectors after one of them, and the dot product of each vector with itself."""


@runtime_checkable
class Shows(Protocol):
    """A view that shows merged values in plain SQL, beside the state."""

    def misshown(self, folds: Iterable[tuple[Ref, MergeState | None, Rules | None, int]]) -> Iterator[Ref]:
        """Yield the entities of which the engine shows something else beside the state: fields, or the version.

        Of each come its state and rules, if it is the smallest of a fold, and the last position that touched that.
        """


@runtime_checkable
class Stamps(Protocol):
    """An engine that tells cheaply whether anything was committed."""

    def stamp(self) -> bytes | None:
        """Return what stays the same as long as nothing is committed, by whomever; `None` where that is not known.

        It never comes back once it has changed, and asking for it costs next to nothing.
        """


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


@runtime_checkable
class Compacts(Protocol):
    """An engine whose file may keep copies of what was erased, until it is rewritten while writers wait."""

    def blockers(self) -> Sequence[str]:
        """Return who is in the way of a purge, as far as that is known."""

    def estimate(self) -> Compaction:
        """Return what a compaction would take."""

    def compact(self) -> Compaction:
        """Rewrite the file; `purge` has to follow. `Unavailable` if there is too little space."""


@runtime_checkable
class BeyondReach(Protocol):
    """A storage that other programs keep copies of, by design."""

    def beyond_reach(self) -> Sequence[tuple[str, str]]:
        """Return what still holds what was erased, and what whoever runs it has to do, each as a pair."""


@runtime_checkable
class Settings(Protocol):
    """An engine behind which a server stands, with settings of its own."""

    def settings(self) -> dict[str, Any]:
        """Return what server, database and connections are set to, as people read it."""


@runtime_checkable
class Replicas(Protocol):
    """An engine that has copies of its logs elsewhere, which follow it a little behind."""

    def view_at(self, tenant: TenantId, through: int) -> AbstractContextManager[View]:
        """Open a view that has all entries up to a position, and maybe not the latest ones."""


@runtime_checkable
class Shared(Protocol):
    """An engine that several servers use at once: what one commits the others hear of, and duties go to one of them."""

    def heard(self) -> bytes | None:
        """Return what is another a moment after anything was committed, by whomever; `None` while that is not known.

        What was committed a moment ago may not have been heard of yet: it tells when to look, not what is the case.
        """

    def listen(self, wake: Callable[[], object]) -> None:
        """Have a function called, by another thread, whenever something was heard."""

    def has_duty(self, name: str) -> bool:
        """Return whether a duty is this process's, as long as it lives and reaches the database.

        Two may take it for theirs for some seconds after a connection was cut: what they do must bear that.
        """
