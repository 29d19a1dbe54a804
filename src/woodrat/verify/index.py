"""Indexes: what trails the log is derived anew in the scratch database, as far as it goes in the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from woodrat.engines.port import BEFORE_ALL, VECTORS, IndexRow, Mismatch, View
from woodrat.erasure.index import BY_ENTRY
from woodrat.errors import Corrupt
from woodrat.exchange import index as exchange_index
from woodrat.ledger import fingerprint_index, identity_backlog, refold, search_index, state_rows, state_steps
from woodrat.ledger import index as log_index
from woodrat.ledger.comparison import differing
from woodrat.ledger.find import entity_pages
from woodrat.ledger.identifying_values import SHARING, prefix_of_rule
from woodrat.ledger.indexer import STATE
from woodrat.ledger.read import Reader
from woodrat.ledger.state_index import progress_of
from woodrat.ledger.state_redo import redo, redo_leaves, rows_about
from woodrat.ledger.transitions import touched
from woodrat.recall import index as recall_index
from woodrat.state import schema
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.canon.ids import Ref
    from woodrat.context import Context
    from woodrat.ledger.comparison import Comparison
    from woodrat.ledger.state_index import Progress, StateIndex
    from woodrat.recall.embedders import Embedder

ROWS: Final = 1_000
"""How many rows are put at a time."""
UNREADABLE: Final = (AttributeError, TypeError, ValueError, Corrupt)
"""What reading a note of the wrong shape may raise."""


def check_notes(view: View) -> Iterator[Mismatch]:
    """Compare what is noted of indexes and of other logs with the end of the log, which may have been cut back."""
    end = view.head().position
    names = {*(index.name for index in BY_ENTRY), recall_index.PASSAGES}
    of_state = {index.name for index in STATE}
    for name, noted in view.notes().items():
        try:
            if name.startswith(exchange_index.TAKEN):
                exchange_index.noted_mark(noted, name)  # a position of another log; only its shape can be seen here
            elif (
                any(one.position > end for one in refold.waiting(view))
                if name == refold.NAME
                else any(one.position > end for one in identity_backlog.backlogs(view))
                if name == identity_backlog.NAME
                else progress_of(view, name).position > end
                if name in of_state
                else (name in names or name.startswith(VECTORS)) and log_index.covered(view, name) > end
            ):
                problem = f"the index {name} speaks of a position after the end of the log"
                yield Mismatch("truncated", end + 1, None, problem, log=True)
        except UNREADABLE:
            yield Mismatch("index", None, None, f"what is noted as {name} cannot be read")


class Followed:
    """The indexes that were derived anew as far as they go in a ledger."""

    def __init__(self, view: View, scratch: Context, tell: Callable[[], object]) -> None:
        self._view, self._scratch, self._tell = view, scratch, tell
        self.passed_over = {*(index.name for index in BY_ENTRY), *search_index.INDEX.indexes, recall_index.PASSAGES}
        """The names of the ordered indexes that are not compared."""
        self.unchecked: set[str] = set()
        """What could not be compared, and why."""

        self._vectors: set[str] = set()

    def is_compared(self, name: str) -> bool:
        """Return whether an ordered index is compared."""
        return name not in self.passed_over and (not name.startswith(VECTORS) or name in self._vectors)

    # Rows of states

    def states(self, *, deep: bool) -> None:
        """Derive the rows of states, those of words only in depth, and the leaves of the fingerprint."""
        groups: dict[Progress, list[StateIndex]] = {}
        for index in (state_rows.INDEX, search_index.INDEX) if deep else (state_rows.INDEX,):
            try:
                groups.setdefault(progress_of(self._view, index.name), []).append(index)
            except UNREADABLE:
                self.passed_over.update(index.indexes)  # `check_notes` names it
            else:
                self.passed_over.difference_update(index.indexes)
        for known, indexes in groups.items():
            self._follow(known, indexes)
        self._leaves()

    def _follow(self, known: Progress, indexes: list[StateIndex]) -> None:
        """Bring indexes to where they stand in the ledger, also where that is in the middle of a new schema."""
        engine, tenant, policies = self._scratch.engine, self._scratch.tenant, self._scratch.policies
        while True:
            with engine.view(tenant) as view:
                reached = progress_of(view, indexes[0].name)
            if reached.position >= known.position and (known.filling or not reached.filling):
                break
            entries = min(state_steps.STEP_ENTRIES, known.position - reached.position)
            state_steps.go_on(engine, tenant, policies, indexes, max(entries, 1))
            self._tell()
        if known.filling:
            with engine.transaction(tenant) as write:
                before = rows_about(write, policies, _of_types(write, dict(known.filling), known.position))
                for index in indexes:
                    write.set_meta(index.name, known.to_bytes())
                redo(write, policies, before)

    def _leaves(self) -> None:
        """Bring the leaves of the fingerprint, which speak of the end of the log, back to where they stand."""
        try:
            known = progress_of(self._view, fingerprint_index.NAME)
        except UNREADABLE:
            return
        policies = self._scratch.policies
        with self._scratch.engine.transaction(self._scratch.tenant) as write:
            head, start = write.head().position, known.base if known.filling else known.position
            if start >= head:
                return
            write.set_meta(fingerprint_index.NAME, known.to_bytes())
            if known.position < 0:
                write.drop(fingerprint_index.NAME)
                return
            start = max(start, BEFORE_ALL)
            old, new = Reader(write, AsOf(start), policies), Reader(write, AsOf(head), policies)
            spoken = touched(write.touched(start, head))
            refs = {member for ref in spoken for member in (*old.group(ref), *new.group(ref))}
            entries = write.entries(start, head, {"schema"})
            types = {schema.stored(entry.body).type for entry in entries if entry.body is not None}
            refs.update(_of_types(write, types.union(dict(known.filling)), head))
            redo_leaves(write, policies, refs)

    # Rows of entries, passages and vectors

    def entries(self) -> None:
        """Derive the rows of the indexes that list entries."""
        engine, tenant = self._scratch.engine, self._scratch.tenant
        for index in BY_ENTRY:
            end, reached = log_index.covered(self._view, index.name), BEFORE_ALL
            while reached < end:
                reached = log_index.go_on(engine, tenant, index, min(log_index.INDEX_ENTRIES, end - reached))
                self._tell()
            self.passed_over.discard(index.name)

    def passages(self, embedder: Embedder | None) -> None:
        """Derive passages, and with an embedder its vectors; those of others are left out."""
        engine, tenant, policies = self._scratch.engine, self._scratch.tenant, self._scratch.policies
        end = log_index.covered(self._view, recall_index.PASSAGES)
        with engine.transaction(tenant) as write:
            _put(write.put, recall_index.kept_passages(write, policies, end))
            self.passed_over.discard(recall_index.PASSAGES)
            for name in self._view.index_names():
                if not name.startswith(VECTORS):
                    continue
                id = name.removeprefix(VECTORS)
                if embedder is None or embedder.id != id:
                    self.unchecked.add(f"vectors of {id}: the embedder is not loaded; give it to check them")
                else:
                    _put(write.put, recall_index.kept_vectors(self._view, embedder, name))
                    self._vectors.add(name)


def _of_types(view: View, types: Iterable[str], through: int) -> list[Ref]:
    return [ref for type in sorted(types) for page in entity_pages(view, type, through) for ref in page]


def _put(put: Callable[[Iterable[IndexRow]], None], rows: Iterable[IndexRow]) -> None:
    left = iter(rows)
    while some := list(islice(left, ROWS)):
        put(some)


def compare(view: View, right: View, comparison: Comparison, followed: Followed) -> None:
    """Compare all ordered indexes but the fingerprint."""
    words = frozenset(search_index.INDEX.indexes)
    waiting = tuple(prefix_of_rule(one.type, rule) for one in identity_backlog.backlogs(view) for rule in one.rules)
    for name in sorted({*view.index_names(), *right.index_names()}):
        if name == fingerprint_index.NAME or not followed.is_compared(name):
            continue
        part = "search" if name in words else "vectors" if name.startswith(VECTORS) else "index"
        # Values by identity rules that wait may be noted already or not.
        comparison.index(name, part, (lambda key: key.startswith(waiting)) if waiting and name == SHARING else None)


def fingerprint_faults(view: View, right: View) -> Iterator[Mismatch]:
    """Yield what of the kept fingerprint is not what the log gives for its position."""
    try:
        position, agreed = fingerprint_index.position(view), True
        for leaf, wanted in differing(fingerprint_index.leaves(view), fingerprint_index.leaves(right), 1):
            agreed = False
            entity = right.entity((leaf or wanted or ())[0], position)
            yield Mismatch("fingerprint", None, entity, f"its leaf kept for position {position} is another")
        if agreed and not fingerprint_index.has_its_nodes(view):
            yield Mismatch("fingerprint", None, None, f"a node kept for position {position} is another")
    except Corrupt as error:
        yield Mismatch("fingerprint", None, None, str(error))
