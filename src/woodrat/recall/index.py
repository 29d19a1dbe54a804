"""The index of vectors: those of a tenant's runs, which trail the log.

They are kept in an ordered index of the engine, by embedder. An index in memory is brought up to the head of
the log before it is searched: from there as far as that goes, the rest by embedding. What a process cannot put there (a
read-only ledger) it keeps to itself, and the answers are the same.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.engines.port import BEFORE_ALL
from woodrat.errors import Corrupt, Fault, Refused, Unavailable
from woodrat.ledger import index as log_index
from woodrat.merge.packing import UNREADABLE
from woodrat.recall import embedders
from woodrat.recall.ngram import Ngram
from woodrat.recall.passage_index import NEVER, PassageIndex, row_of, unpack_row
from woodrat.recall.passages import KIND_OF, READ, RECALL_MARK, STARTED, Passage, RunStart, passage, start_of
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.state.meaning import leaves
from woodrat.state.run_owner import is_bound, is_part, owner_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from woodrat.context import Context
    from woodrat.engines.port import Engine, View
    from woodrat.ledger.progress import Progress
    from woodrat.recall.embedders import Embedder

CATCH_UP_MAX: Final = 1_000
"""How many passages a recall embeds by itself with an embedder that is not built in; more is asked for by `reindex`."""
CHUNK_PASSAGES: Final = 512
"""About how many passages are embedded between two writes of vectors."""
CHUNK_ENTRIES: Final = 1_024
"""How many entries of the log are looked through at a time."""
KEPT_FROM: Final = 64
"""The built-in embedder's vectors are kept so many at a time: making them again costs less than a write."""
WAITING_MAX: Final = 65_536
"""How many vectors wait while nothing can be written; a process that has more keeps them to itself."""
INDEXES_MAX: Final = 16
"""How many indexes are kept in memory for one engine; the least recently asked is let go first."""

VECTORS: Final = "recall/"
"""What the names of indexes of vectors begin with; the embedder's id follows."""

ERASURE: Final = "erasure"


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
        self.waiting: list[tuple[int, bytes]] = []
        """Items to be kept, packed."""
        self.waiting_after = BEFORE_ALL
        """Everything after this position is waiting."""

    def forget(self) -> None:
        """Begin again from nothing."""
        self.index = PassageIndex(self.index.dimension)
        self.waiting.clear()
        self.waiting_after = BEFORE_ALL


_IndexKey = tuple[str, str, int]
"""Tenant, id of the embedder, dimension."""
CACHED_INDEXES: weakref.WeakKeyDictionary[Engine, OrderedDict[_IndexKey, CachedIndex]] = weakref.WeakKeyDictionary()
"""The indexes that this process has in memory, by engine."""
_CACHED_INDEXES_LOCK = threading.Lock()


def cached_index(context: Context, embedder: Embedder) -> CachedIndex:
    """Return the index of a tenant's runs under an embedder, as this process has it so far."""
    key = (context.tenant, embedder.id, embedders.dimension_of(embedder))
    with _CACHED_INDEXES_LOCK:
        of_engine = CACHED_INDEXES.setdefault(context.engine, OrderedDict())
        if key not in of_engine:
            of_engine[key] = CachedIndex(key[2])
        of_engine.move_to_end(key)
        while len(of_engine) > INDEXES_MAX:
            of_engine.popitem(last=False)
        return of_engine[key]


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A passage that has no vector yet."""

    position: int
    run: str
    passage: Passage
    body: dict[str, Any]


def follow(
    context: Context,
    embedder: Embedder,
    cached: CachedIndex,
    progress: Progress | None = None,
    *,
    whole: bool = False,
) -> None:
    """Bring an index up to the head of the log: from what is kept as far as it goes, then by embedding.

    An embedder that is not built in is refused when that is more than a few passages, unless the `whole` is wanted.
    """
    name = VECTORS + embedder.id
    built_in = isinstance(embedder, Ngram)
    bounded = not built_in and not whole
    while True:
        with context.engine.view(context.tenant) as view:
            head = view.head().position
            if head < cached.index.position or _erased(view, cached.index.position):
                cached.forget()
            _load(view, name, cached)
            if bounded and not _few(view, cached.index.position, head):
                raise Refused([_unindexed(embedder)], "Nothing was scored.")
            bounded = False
            fresh, through = _fresh(view, cached.index, head)
        made = embedders.embed(embedder, [found.passage.text for found in fresh])
        for found, vector in zip(fresh, made, strict=True):
            stored = vector if found.passage.text else b""
            row = row_of(found.run, found.passage, stored, found.body)
            cached.index.add(found.position, row)
            if cached.waiting_after != NEVER:
                cached.waiting.append((found.position, row.pack()))
        cached.index.position = through
        if len(cached.waiting) > WAITING_MAX:
            cached.waiting.clear()
            cached.waiting_after = NEVER
        if cached.waiting and (not built_in or len(cached.waiting) >= KEPT_FROM or progress is not None):
            _keep(context, name, cached)
        if progress is not None:
            progress(through + 1, head + 1)
        if through >= head:
            return


def _unindexed(embedder: Embedder) -> Fault:
    problem = f"more than {CATCH_UP_MAX} passages have no vectors of {embedder.id} yet"
    remedy = "Make them with `reindex` and this embedder, or use the one they were made with."
    return Fault("embedder", problem, remedy)


def _few(view: View, after: int, head: int) -> bool:
    """Return whether a recall may embed by itself what stands between two positions."""
    count = 0
    while after < head and count <= CATCH_UP_MAX:
        through = min(head, after + CHUNK_ENTRIES)
        entries = view.entries(after, through, KIND_OF)
        count += sum(entry.kind != READ or RECALL_MARK in (entry.body or b"") for entry in entries)
        after = through
    return count <= CATCH_UP_MAX


def _erased(view: View, after: int) -> bool:
    """Return whether anything was erased since; vectors of what is gone must go too."""
    return after > BEFORE_ALL and next(view.entries(after, kinds={ERASURE}), None) is not None


def _load(view: View, name: str, cached: CachedIndex) -> None:
    """Take over what is kept and is not in the index yet."""
    index, true_for = cached.index, log_index.covered(view, name)
    if true_for <= index.position or _erased(view, true_for):
        return
    try:
        for position, data in log_index.values(view, name, index.position):
            index.add(position, unpack_row(data))
    except Refused:
        cached.forget()
        raise
    except UNREADABLE as error:
        cached.forget()
        raise Corrupt(
            f"{name}: a vector that is kept for recall cannot be read. Nothing was changed, and the log is not what "
            "is damaged. `woodrat reindex` makes the vectors again.",
            {"index": name},
        ) from error
    index.position = true_for
    cached.waiting.clear()
    cached.waiting_after = true_for


def _fresh(view: View, index: PassageIndex, head: int) -> tuple[list[_Fresh], int]:
    """Return the next passages without a vector, and the position they reach to."""
    found: list[_Fresh] = []
    starts: dict[str, RunStart] = {}
    agents: dict[str, str] = {}
    taken: dict[tuple[str, str], int] = {}
    through = index.position
    while through < head and len(found) < CHUNK_PASSAGES:
        # An engine may hold all that it is asked for at once, so it is asked for a part of the log at a time.
        after, through = through, min(head, through + CHUNK_ENTRIES)
        for entry in view.entries(after, through, KIND_OF):
            if entry.kind == READ and (entry.body is None or RECALL_MARK not in entry.body):
                continue
            body: Any = None if entry.body is None else form.decode(entry.body)
            run = body.get("run") if isinstance(body, dict) else None
            if not isinstance(run, str) or leaves(body, "started_at"):
                continue  # a start that says no more than that there is such a run has no word to look for
            if entry.kind == STARTED and is_bound(run, body):
                agents[run] = body["agent"]
            elif entry.kind != STARTED and not is_part(entry.kind, body, _owner(view, run, entry.position, agents)):
                continue  # what another agent says of a run is no part of it
            kind = KIND_OF[entry.kind]
            before = taken.get((run, kind), 0)
            if not index.takes(run, kind, before):
                continue
            if entry.kind == STARTED and (run not in starts or not leaves(body, "query")):
                starts[run] = start_of(body)
            elif run not in starts:
                starts[run] = start_of(started(view, run, entry.position) or {})
            said = passage(entry.kind, body, starts[run])
            if said is not None:
                found.append(_Fresh(entry.position, run, said, body))
                taken[run, kind] = before + 1
    return found, through


def started(view: View, run: str, through: int) -> Mapping[str, Any] | None:
    """Return what a run's `run.started` says, if it has come; of several the first that leaves the question to none."""
    found: Mapping[str, Any] | None = None
    starts = _starts(view, run, through)
    owner = owner_of(run, [(STARTED, body) for body in starts])
    for body in starts:
        if is_part(STARTED, body, owner):
            if not leaves(body, "query"):
                return body
            found = found or body
    return found


def _owner(view: View, run: str, through: int, known: dict[str, str]) -> str | None:
    """Return who owns a run, by what the log held of it at a position; those whose ids are made from them are known."""
    if run in known:
        return known[run]
    starts = _starts(view, run, through)
    for body in starts:
        if is_bound(run, body):
            known[run] = body["agent"]
            return known[run]
    entries = [(entry.kind, form.decode(entry.body)) for entry in view.run(run, through) if entry.body is not None]
    return owner_of(run, [(kind, body) for kind, body in entries if isinstance(body, dict)])


def _starts(view: View, run: str, through: int) -> list[Mapping[str, Any]]:
    bodies = [form.decode(e.body) for e in view.run(run, through) if e.kind == STARTED and e.body is not None]
    return [body for body in bodies if isinstance(body, dict)]


def kept_items(view: View, embedder: Embedder, through: int) -> Iterator[tuple[int, bytes]]:
    """Yield what is kept of an embedder's vectors up to a position, made anew: (position, packed item)."""
    index = PassageIndex(embedders.dimension_of(embedder))
    while index.position < through:
        fresh, reached = _fresh(view, index, through)
        made = embedders.embed(embedder, [found.passage.text for found in fresh])
        for found, vector in zip(fresh, made, strict=True):
            row = row_of(found.run, found.passage, vector if found.passage.text else b"", found.body)
            index.add(found.position, row)
            yield found.position, row.pack()
        index.position = reached


def _keep(context: Context, name: str, cached: CachedIndex) -> None:
    """Keep the vectors that wait for it; while nothing can be written they go on waiting."""
    index = cached.index
    try:
        with context.engine.transaction(context.tenant) as write:
            true_for = log_index.covered(write, name)
            if true_for < cached.waiting_after:
                return  # it was dropped since; whoever makes it again begins at the beginning
            if _erased(write, true_for):
                log_index.forget(write, name)
                true_for = BEFORE_ALL
                if cached.waiting_after > BEFORE_ALL:
                    return
            if true_for < index.position:
                log_index.put(write, name, index.position, [item for item in cached.waiting if item[0] > true_for])
    except (Unavailable, Refused):
        return
    cached.waiting.clear()
    cached.waiting_after = index.position


def reindex(context: Context, embedder: Embedder, progress: Progress | None = None) -> Reindexed:
    """Embed every passage of a tenant's runs again and put the vectors in place of those that are kept."""
    cached = cached_index(context, embedder)
    with cached.lock:
        with context.engine.transaction(context.tenant) as write:
            log_index.forget(write, VECTORS + embedder.id)
        cached.forget()
        follow(context, embedder, cached, progress or _silent, whole=True)
        index = cached.index
        return Reindexed(embedder.id, index.dimension, len(index.ids), len(index), index.position)


def _silent(done: int, whole: int) -> None:
    """Take a report of progress and say nothing."""
