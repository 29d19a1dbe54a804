"""The recall index: passages and their vectors, which trail the log.

Both are kept in ordered indexes of the engine: passages once, vectors by embedder. An index in memory is brought up to
the head of the log before it is searched: passages all of them, vectors as many as take a few seconds. What has no
vector yet is found by its words. On a server a question brings it on only if that takes a moment; the rest is done in
the background, a step at a time. What a process cannot keep (a read-only ledger) it keeps to itself, and the answers
are the same. Nothing here happens in the way of a write.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from woodrat.engines.records import BEFORE_ALL, IndexRow
from woodrat.engines.records import VECTORS as VECTORS
from woodrat.errors import Corrupt, Fault, Refused, Unavailable
from woodrat.ledger import index as log_index
from woodrat.ledger.erasures import erased_since
from woodrat.merge.packing import UNREADABLE
from woodrat.recall import embedders, vectors
from woodrat.recall.index.log_passages import Placed, fresh_rows, write_floor
from woodrat.recall.passage_index import PassageIndex, unpack_row
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.state.entry_rows import position_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from woodrat.context import Context
    from woodrat.engines.engine import Engine
    from woodrat.engines.view import View
    from woodrat.ledger.progress import Progress
    from woodrat.merge import Policy
    from woodrat.recall.embedders import Embedder

CATCH_UP_MAX: Final = 1_000
"""How many passages a recall embeds by itself with an embedder that is not built in; more is asked for by `reindex`."""
EMBEDDED_MAX: Final = 5_000
"""How many passages a recall embeds with the built-in model; the rest is found by its words until then."""
CHUNK_PASSAGES: Final = 256
"""How many passages are embedded between two writes of vectors."""
CHUNK_ENTRIES: Final = 1_024
"""How many entries of the log are looked through at a time."""
KEPT_FROM: Final = 64
"""Passages are kept so many at a time: making them again costs less than a write."""
WAITING_MAX: Final = 65_536
"""How many rows wait while nothing can be written; a process that has more keeps them to itself."""
INDEXES_MAX: Final = 16
"""How many indexes are kept in memory for one engine; the least recently asked is let go first."""
MATRIX_BYTES_MAX: Final = 32 * 2**20
"""Where an engine multiplies, no process holds more bytes of vectors than that: 21,845 of 384 components."""

PASSAGES: Final = "recall.passages"
"""The index of passages."""

_ORDINAL_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Reindexed(Record):
    """What a reindex made."""

    embedder: str
    """Id of the embedder."""
    dimension: int
    """How many components its vectors have."""
    runs: int
    """Runs that have passages."""
    passages: int
    """Passages that were embedded."""
    position: int
    """The position the vectors are true for."""


class CachedIndex:
    """An index in memory, and what of it is not kept yet."""

    def __init__(self, dimension: int) -> None:
        self.lock = threading.RLock()
        self.index = PassageIndex(dimension)
        self.waiting: list[Placed] = []
        """Passages to be kept."""
        self.kept = BEFORE_ALL
        """The position that the kept passages go to."""
        self.vectors = BEFORE_ALL
        """Every passage up to here that was believed when it was reached has a vector."""
        self.seen: dict[str, int] = {}
        """How far the engine was seen to keep each index; one that goes less far by now was dropped, as rebuilds do."""

        self.head = BEFORE_ALL
        """Where the log ended when it was last read from; what was erased since may still be in memory."""
        self.spare: PassageIndex | None = None
        """The index of before something was erased: a text that is still there has the vector it had."""

    def forget(self, spare: bool = False) -> None:
        """Begin again from nothing; after an erasure with the vectors at hand that were there."""
        self.spare = self.index if spare and self.index.vectors is not None else None
        self.index = PassageIndex(self.index.dimension)
        self.waiting.clear()
        self.seen.clear()
        self.kept = self.vectors = self.head = BEFORE_ALL

    def is_outdated(self, view: View) -> bool:
        """Return whether anything was erased since the log was read: what is in memory may hold it."""
        return self.head != BEFORE_ALL and erased_since(view, self.head)

    def forget_dropped(self, view: View, name: str) -> None:
        """Begin again from nothing if an index was dropped since."""
        if log_index.covered(view, name) < self.seen.get(name, BEFORE_ALL):
            self.forget()


_IndexKey = tuple[str, str, int]
"""Tenant, id of the embedder, dimension."""
CACHED_INDEXES: weakref.WeakKeyDictionary[Engine, OrderedDict[_IndexKey, CachedIndex]] = weakref.WeakKeyDictionary()
"""The indexes that this process has in memory, by engine."""
_CACHED_INDEXES_LOCK = threading.Lock()


def cached_index(context: Context, embedder: Embedder | None) -> CachedIndex:
    """Return the index of what a tenant remembers under an embedder, as this process has it so far."""
    dimension = 0 if embedder is None else embedders.dimension_of(embedder)
    key = (context.tenant, "" if embedder is None else embedder.id, dimension)
    with _CACHED_INDEXES_LOCK:
        of_engine = CACHED_INDEXES.setdefault(context.engine, OrderedDict())
        if key not in of_engine:
            of_engine[key] = CachedIndex(dimension)
        of_engine.move_to_end(key)
        while len(of_engine) > INDEXES_MAX:
            of_engine.popitem(last=False)
        return of_engine[key]


def follow(
    context: Context,
    embedder: Embedder | None,
    cached: CachedIndex,
    progress: Progress | None = None,
    *,
    whole: bool = False,
) -> None:
    """Bring an index up to the head of the log: its passages, then as many vectors as a question may wait for.

    With the `whole` all vectors are made. An embedder that is not built in is refused where a recall would have to make
    more than a few, since it may be far away and cost money.
    """
    follow_passages(context, cached)
    if embedder is not None:
        follow_vectors(context, embedder, cached, progress, whole=whole)


def follow_briefly(context: Context, embedder: Embedder | None, cached: CachedIndex) -> bool:
    """Bring an index up to the head of the log if that takes a moment: no more than a step; return whether it is there.

    Otherwise it is left as it is kept: `go_on` brings it on in the background.
    """
    with context.engine.view(context.tenant) as view:
        if _look(view, cached) - cached.index.position > CHUNK_ENTRIES:
            return False
    follow_passages(context, cached)
    if embedder is not None:
        follow_vectors(context, embedder, cached, lacking_max=STEP_PASSAGES)
    return embedder is None or not lacking(cached.index)


# Passages


def _look(view: View, cached: CachedIndex) -> int:
    """Load the kept passages without erased ones; return the end of the log."""
    head = view.head().position
    if head < cached.index.position or cached.is_outdated(view):
        cached.forget(spare=head >= cached.index.position)
    cached.head = head
    _load(view, cached)
    return head


def follow_passages(context: Context, cached: CachedIndex, entries_max: int | None = None) -> None:
    """Bring the passages of an index up to the head of the log, or on by about so many entries."""
    first: int | None = None
    while True:
        with context.engine.view(context.tenant) as view:
            head = _look(view, cached)
            first = cached.index.position if first is None else first
            through = _next_end(view, cached.index.position, head)
            for placed in fresh_rows(view, cached.index, context.policies, through):
                cached.index.add(*placed)
                cached.waiting.append(placed)
            cached.index.position = through
        if len(cached.waiting) >= KEPT_FROM or entries_max is not None:
            _keep_passages(context, cached)
        if len(cached.waiting) > WAITING_MAX:
            cached.waiting.clear()  # nothing can be written here; what is in memory answers
            cached.kept = through
        if through >= head or (entries_max is not None and through - first >= entries_max):
            return


def _next_end(view: View, after: int, head: int) -> int:
    """Return the end of a write that lies about so many entries further on: a write is taken in as a whole."""
    end = write_floor(view, min(head, after + CHUNK_ENTRIES))
    if end <= after < head:  # one write is longer than that
        begun = view.entry(after + 1)
        assert begun is not None and begun.envelope.length is not None
        end = after + begun.envelope.length
    return max(end, after)


def _key(position: int, ordinal: int) -> bytes:
    return position_key(position) + ordinal.to_bytes(_ORDINAL_BYTES, "big")


def _place(key: bytes) -> tuple[int, int]:
    return int.from_bytes(key[:-_ORDINAL_BYTES], "big"), int.from_bytes(key[-_ORDINAL_BYTES:], "big")


def _last_key(position: int) -> bytes | None:
    """Return what comes after every key of a position and before those of the next; none before all."""
    return None if position < 0 else _key(position + 1, 0)[:-1]


def _values(view: View, name: str, after: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield what an index keeps after a position: position, ordinal, value."""
    last = _last_key(after)
    while True:
        rows = view.scan(name, after=last, limit=log_index.WALK_ROWS)
        for key, value in rows:
            yield (*_place(key), value)
        if len(rows) < log_index.WALK_ROWS:
            return
        last = rows[-1][0]


def _load(view: View, cached: CachedIndex) -> None:
    """Load the kept passages that are not in the index yet."""
    index, kept = cached.index, log_index.covered(view, PASSAGES)
    if kept <= index.position:
        return
    try:
        for position, ordinal, data in _values(view, PASSAGES, index.position):
            index.add(position, ordinal, unpack_row(data))
    except (*UNREADABLE, Refused, AssertionError) as error:
        cached.forget()
        raise Corrupt(
            f"{PASSAGES}: a passage that is kept for recall cannot be read. Nothing was changed, and the log is not "
            "what is damaged. `woodrat reindex` makes the passages again.",
            {"index": PASSAGES},
        ) from error
    index.position = cached.kept = cached.seen[PASSAGES] = kept
    cached.waiting.clear()


def _keep_passages(context: Context, cached: CachedIndex) -> None:
    """Keep the passages that wait for it; while nothing can be written they go on waiting."""
    index = cached.index
    try:
        with context.engine.transaction(context.tenant) as write:
            kept = log_index.covered(write, PASSAGES)
            if kept < cached.kept or cached.is_outdated(write):
                return  # it was dropped since; whoever makes it again begins at the beginning
            if kept < index.position:
                write.put(
                    [
                        IndexRow(PASSAGES, _key(position, ordinal), position, row.pack())
                        for position, ordinal, row in cached.waiting
                        if position > kept
                    ]
                )
                log_index.cover(write, PASSAGES, index.position)
    except (Unavailable, Refused):
        return
    cached.waiting.clear()
    cached.kept = index.position
    cached.seen[PASSAGES] = max(kept, index.position)


def kept_passages(view: View, policies: Mapping[str, Policy], through: int) -> Iterator[IndexRow]:
    """Yield the passages that are kept up to a position, made anew."""
    index = PassageIndex(0)
    while index.position < through:
        end = _next_end(view, index.position, through)
        for placed in fresh_rows(view, index, policies, end):
            index.add(*placed)
            yield IndexRow(PASSAGES, _key(placed.position, placed.ordinal), placed.position, placed.row.pack())
        index.position = end


def kept_vectors(view: View, embedder: Embedder, name: str) -> Iterator[IndexRow]:
    """Yield the vectors that are kept, made anew from the passages that are kept."""
    texts = {(position, ordinal): unpack_row(data).text for position, ordinal, data in _values(view, PASSAGES, -1)}
    places = [(position, ordinal) for position, ordinal, _ in _values(view, name, -1)]
    for start in range(0, len(places), CHUNK_PASSAGES):
        chunk = places[start : start + CHUNK_PASSAGES]
        made = embedders.embed(embedder, [texts.get(place, "") for place in chunk])
        for (position, ordinal), vector in zip(chunk, made, strict=True):
            yield IndexRow(name, _key(position, ordinal), position, vector)


# Vectors


def follow_vectors(
    context: Context,
    embedder: Embedder,
    cached: CachedIndex,
    progress: Progress | None = None,
    *,
    whole: bool = False,
    passages_max: int | None = None,
    lacking_max: int | None = None,
) -> None:
    """Make the vectors that an index lacks, as many as may be waited for; they are kept as they are made.

    None is made where more than `lacking_max` are lacking.
    """
    name, index = VECTORS + embedder.id, cached.index
    with context.engine.view(context.tenant) as view:
        if cached.is_outdated(view):
            return  # whoever asks next begins with what is left
        if index.unheld is None and view.multiplies and _matrix_bytes(index) > MATRIX_BYTES_MAX:
            index.let_engine_multiply()
            cached.vectors = BEFORE_ALL  # what it holds is to be seen
        _load_vectors(view, name, cached)
    spared = [] if cached.spare is None else _spared(index, cached.spare)
    cached.spare = None
    rows_lacking = lacking(index)
    if spared:
        through = index.positions[rows_lacking[0]] - 1 if rows_lacking else index.position
        _keep_vectors(context, name, cached, spared, through)
    built_in = embedders.is_built_in(embedder)
    if not built_in and not whole and len(rows_lacking) > CATCH_UP_MAX:
        raise Refused([_unindexed(embedder)], "Nothing was scored.")
    if lacking_max is not None and len(rows_lacking) > lacking_max:
        return
    most = len(rows_lacking) if whole else passages_max or (EMBEDDED_MAX if built_in else CATCH_UP_MAX)
    chosen = rows_lacking[:most]
    for start in range(0, len(chosen), CHUNK_PASSAGES):
        rows = chosen[start : start + CHUNK_PASSAGES]
        made = embed_rows(index, embedder, rows)
        done = start + len(rows)
        through = index.position if done == len(rows_lacking) else index.positions[rows_lacking[done]] - 1
        _keep_vectors(context, name, cached, made, through)
        if progress is not None:
            progress(done, len(chosen))
    if not rows_lacking and cached.vectors < index.position:
        if passages_max is not None:  # the indexer notes how far they go; a question need not wait for that
            _keep_vectors(context, name, cached, (), index.position)
        cached.vectors = index.position


def embed_rows(index: PassageIndex, embedder: Embedder, rows: Sequence[int]) -> list[tuple[int, bytes]]:
    """Embed rows of an index that have no vector; return each with its vector."""
    made = embedders.embed(embedder, [index.texts[row] for row in rows])
    for row, vector in zip(rows, made, strict=True):
        index.set_vector(row, vectors.as_numpy(vector), vectors.square(vector))
    return list(zip(rows, made, strict=True))


def _spared(index: PassageIndex, before: PassageIndex) -> list[tuple[int, bytes]]:
    """Give the rows of an index the vectors that their texts had before; return each with its vector."""
    from numpy import int8

    known = {before.texts[row]: row for row, square in enumerate(before.squares) if square}
    found = []
    for row in lacking(index):
        if (at := known.get(index.texts[row])) is not None:
            vector = before.vectors[at].astype(int8).tobytes()
            index.set_vector(row, before.vectors[at], vectors.square(vector))
            found.append((row, vector))
    return found


def lacking(index: PassageIndex) -> list[int]:
    """Return the rows without a vector that are believed now, in order."""
    return sorted(
        row
        for row in index.unembedded
        if index.memory_of[row] >= 0 and index.memories[index.memory_of[row]].until > index.position
    )


def _load_vectors(view: View, name: str, cached: CachedIndex) -> None:
    """Take over the vectors that are kept and are not in the index yet."""
    index, kept = cached.index, log_index.covered(view, name)
    if kept <= cached.vectors:
        return
    if index.unheld is not None:
        _load_squares(view, name, index, cached.vectors)
    else:
        rows = {
            (index.positions[row], index.ordinals[row]): row
            for row in index.unembedded
            if index.positions[row] > cached.vectors or cached.vectors == BEFORE_ALL
        }
        for position, ordinal, vector in _values(view, name, cached.vectors):
            row = rows.get((position, ordinal))
            if row is not None:
                _check_dimension(vector, index)
                index.set_vector(row, vectors.as_numpy(vector), vectors.square(vector))
    cached.vectors = min(kept, index.position)
    cached.seen[name] = kept


def _check_dimension(vector: bytes, index: PassageIndex) -> None:
    if len(vector) != index.dimension:
        raise Refused([other_dimension(len(vector), index.dimension)], "Nothing was scored.")


def _matrix_bytes(index: PassageIndex) -> int:
    """Return how many bytes the vectors of all rows of an index take in memory."""
    return len(index) * index.dimension * 4


def _load_squares(view: View, name: str, index: PassageIndex, after: int) -> None:
    """Note which rows' vectors the engine holds that the index does not know of yet."""
    assert view.multiplies and index.unheld is not None, "an engine that multiplies goes on doing so"
    last = _last_key(after)
    for _, vector in view.scan(name, after=last, limit=1):
        _check_dimension(vector, index)
    rows, squares = _by_row(index, *view.squares(name, last or b""))
    for row, square in zip(rows.tolist(), squares.tolist(), strict=True):
        if row in index.unembedded or row in index.unheld:
            index.hold(row, square)


def _by_row(index: PassageIndex, keys: bytes, numbers: bytes) -> tuple[Any, Any]:
    """Return which rows of an index stand under keys, and the number that an engine gave with each, as numpy arrays."""
    import numpy

    # Keys of one length sort as their bytes do, which is the order of the rows.
    place = numpy.dtype([("position", ">u8"), ("ordinal", ">u4")])
    known = numpy.empty(len(index), place)
    known["position"] = numpy.frombuffer(index.positions, numpy.int64)
    known["ordinal"] = numpy.frombuffer(index.ordinals, numpy.int64)
    bytewise = f"S{place.itemsize}"
    sought = numpy.frombuffer(keys, bytewise)
    rows = numpy.searchsorted(known.view(bytewise), sought)
    there = rows < len(index)
    there[there] = known.view(bytewise)[rows[there]] == sought[there]
    return rows[there], numpy.frombuffer(numbers, ">i4")[there]


def held_products(context: Context, embedder: Embedder | None, cached: CachedIndex, vector: bytes) -> Any:
    """Return the dot products of a vector with rows whose vectors the engine holds, by row; none where all are here.

    The engine is asked as it is now, whatever moment a question is about: an index knows which rows were there then.
    """
    index = cached.index
    if embedder is None or index.unheld is None:
        return None
    import numpy

    with context.engine.view(context.tenant) as view:
        assert view.multiplies, "an engine that multiplies goes on doing so"
        rows, numbers = _by_row(index, *view.products(VECTORS + embedder.id, vector))
    products, lost = numpy.zeros(len(index)), numpy.frombuffer(index.squares, numpy.float64) > 0
    products[rows] = numbers
    lost[rows] = False
    gone = [row for row in numpy.flatnonzero(lost).tolist() if row not in index.unheld]
    for row in gone:  # somebody dropped them since the index was followed; they are made again next time
        index.lose(row)
    if gone:
        cached.vectors = BEFORE_ALL
    return products


def _keep_vectors(
    context: Context, name: str, cached: CachedIndex, made: Sequence[tuple[int, bytes]], through: int
) -> None:
    """Keep vectors; where nothing can be written they stay in memory."""
    index = cached.index
    if cached.waiting:
        _keep_passages(context, cached)
    try:
        with context.engine.transaction(context.tenant) as write:
            kept = log_index.covered(write, name)
            if kept < cached.vectors or cached.is_outdated(write):
                return  # it was dropped since; whoever makes it again begins at the beginning
            write.put(
                [
                    IndexRow(name, _key(index.positions[row], index.ordinals[row]), index.positions[row], vector)
                    for row, vector in made
                    if index.positions[row] > kept
                ]
            )
            if through > kept:
                log_index.cover(write, name, through)
    except (Unavailable, Refused):
        return
    if index.unheld is not None:
        for row, _ in made:
            if index.positions[row] > kept:
                index.hold(row, int(index.squares[row]))
    cached.vectors = max(cached.vectors, through)
    cached.seen[name] = max(kept, through)


def _unindexed(embedder: Embedder) -> Fault:
    problem = f"more than {CATCH_UP_MAX} passages have no vectors of {embedder.id} yet"
    remedy = "Make them with `reindex` and this embedder, or use the one they were made with."
    return Fault("embedder", problem, remedy)


def other_dimension(kept: int, given: int) -> Fault:
    """Return the fault of an embedder whose vectors are not those that were kept under its id."""
    problem = f"vectors kept under its id have {kept} components, its own have {given}"
    return Fault("embedder", problem, "Reindex with this embedder, or give it an id of its own.")


def is_in_memory(context: Context) -> bool:
    """Return whether this process holds an index of what a tenant remembers: somebody recalled here."""
    with _CACHED_INDEXES_LOCK:
        return any(tenant == context.tenant for tenant, _, _ in CACHED_INDEXES.get(context.engine, ()))


STEP_PASSAGES: Final = 64
"""How many passages one step of the indexer embeds: about half a second. A recall on a server embeds no more either."""


def go_on(context: Context) -> bool:
    """Take a step with the index that recalls look at; return whether there is more to do, and it can be done."""
    embedder = embedders.check(None)
    cached = cached_index(context, embedder)
    if _is_done(context, cached):
        return False
    step = passages_go_on if embedder is None else vectors_go_on
    return step(context, CHUNK_ENTRIES) and not _is_done(context, cached)


def _is_done(context: Context, cached: CachedIndex) -> bool:
    with cached.lock, context.engine.view(context.tenant) as view:
        index = cached.index
        return index.position >= view.head().position and not (index.dimension and lacking(index))


def passages_go_on(context: Context, entries_max: int) -> bool:
    """Take in about so many entries more, for the indexer; return whether that went on."""
    cached = cached_index(context, None)
    with cached.lock:
        with context.engine.view(context.tenant) as view:
            cached.forget_dropped(view, PASSAGES)
        before = cached.index.position
        follow_passages(context, cached, entries_max)
        return cached.index.position != before or _kept_position(context) < cached.index.position


def _kept_position(context: Context) -> int:
    with context.engine.view(context.tenant) as view:
        return log_index.covered(view, PASSAGES)


def vectors_go_on(context: Context, entries_max: int) -> bool:
    """Make some vectors of the built-in model, for the indexer, once the passages are there; return whether it went on.

    Whoever asks meanwhile waits for one step at most.
    """
    embedder = embedders.check(None)
    if embedder is None:
        return False
    cached = cached_index(context, embedder)
    with cached.lock:
        with context.engine.view(context.tenant) as view:
            cached.forget_dropped(view, VECTORS + embedder.id)
            before = _look(view, cached), cached.index.position, cached.vectors
        if before[0] - before[1] > CHUNK_ENTRIES:
            follow_passages(context, cached, entries_max)
        else:
            follow_passages(context, cached)
            follow_vectors(context, embedder, cached, passages_max=STEP_PASSAGES)
        return (cached.index.position, cached.vectors) != before[1:]


def vectors_position(view: View) -> int:
    """Return how far the vectors of the built-in model go; where it is not installed, nothing is lacking."""
    embedder = embedders.check(None)
    return view.head().position if embedder is None else log_index.covered(view, VECTORS + embedder.id)


def passages_position(view: View) -> int:
    """Return how far the passages go."""
    return log_index.covered(view, PASSAGES)


def reindex(context: Context, embedder: Embedder | None, progress: Progress | None = None) -> Reindexed:
    """Make all passages and vectors again, and put them in place of those that are kept."""
    cached = cached_index(context, embedder)
    with cached.lock:
        with context.engine.transaction(context.tenant) as write:
            log_index.forget(write, PASSAGES)
            if embedder is not None:
                log_index.forget(write, VECTORS + embedder.id)
        cached.forget()
        follow(context, embedder, cached, progress, whole=True)
        if cached.waiting:
            _keep_passages(context, cached)
        index = cached.index
        runs = sum(memory.kind == "run" for memory in index.memories)
        id = embedders.NONE if embedder is None else embedder.id
        return Reindexed(id, index.dimension, runs, sum(map(bool, index.texts)), index.position)
