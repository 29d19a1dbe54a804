"""Indexes: trailing indexes are derived again in the scratch database, up to the ledger's position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from woodrat.engines.records import VECTORS, IndexRow, Mismatch
from woodrat.engines.view import View
from woodrat.errors import Corrupt
from woodrat.exchange import index as exchange_index
from woodrat.ledger import fingerprint_index, refold, state_index, state_rows, state_steps
from woodrat.ledger import index as log_index
from woodrat.ledger.comparison import differing
from woodrat.ledger.identifying_values import SHARING, prefix_of_rule
from woodrat.recall import index as recall_index

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.context import Context
    from woodrat.ledger.comparison import Comparison
    from woodrat.ledger.state_index import Progress
    from woodrat.recall.embedders import Embedder

WORDS: Final = frozenset({state_rows.WORD, state_rows.RELATION_WORD, state_rows.ROOT})
"""The indexes of words."""
ROWS: Final = 1_000
"""Rows inserted at a time."""
UNREADABLE: Final = (AttributeError, TypeError, ValueError, Corrupt)
"""What reading a note of the wrong shape may raise."""


def check_notes(view: View) -> Iterator[Mismatch]:
    """Compare the stored positions of indexes and of other logs with the end of the log, which may be truncated."""
    end = view.head().position
    for name, noted in view.notes().items():
        try:
            if name.startswith(exchange_index.TAKEN):
                exchange_index.noted_mark(noted, name)  # a position of another log; only its format can be checked here
            elif (
                any(one.position > end for one in refold.waiting(view))
                if name == refold.NAME
                else state_index.reached(view) > end
                if name == state_index.NAME
                else fingerprint_index.position(view) > end
                if name == fingerprint_index.NAME
                else (name == recall_index.PASSAGES or name.startswith(VECTORS)) and log_index.covered(view, name) > end
            ):
                problem = f"the index {name} names a position after the end of the log"
                yield Mismatch("truncated", end + 1, None, problem, log=True)
        except UNREADABLE:
            yield Mismatch("index", None, None, f"the note {name} cannot be read")


class Followed:
    """The indexes, derived again up to the ledger's positions."""

    def __init__(self, view: View, scratch: Context, tell: Callable[[], object]) -> None:
        self._view, self._scratch, self._tell = view, scratch, tell
        self.passed_over = {*state_rows.INDEXES, recall_index.PASSAGES}
        """The names of the ordered indexes that are not compared."""
        self.unchecked: set[str] = set()
        """What could not be compared, and why."""
        self.wrong: list[Mismatch] = []
        """The faults of their positions."""

        self._vectors: set[str] = set()

    def is_compared(self, name: str) -> bool:
        """Return whether an ordered index is compared."""
        return name not in self.passed_over and (not name.startswith(VECTORS) or name in self._vectors)

    # Rows of states

    def states(self, *, deep: bool) -> None:
        """Derive the rows of states, and the leaves of the fingerprint. Words are compared only in depth."""
        try:
            known = state_index.progress_of(self._view)
        except UNREADABLE:
            pass  # `check_notes` names it
        else:
            if self._follow(known, words=deep):
                self.passed_over.difference_update(state_rows.INDEXES)
                self.passed_over.update(() if deep else WORDS)
            elif known.filling:
                self.unchecked.add("the state index: it handles a new schema in other steps")
            else:
                problem = f"the index {state_index.NAME} ends at {known.position}, where no write ends"
                self.wrong.append(Mismatch("index", None, None, problem))
        self._leaves()

    def _follow(self, known: Progress, *, words: bool) -> bool:
        """Advance the index to the ledger's position, even in the middle of a new schema."""
        engine, tenant, policies = self._scratch.engine, self._scratch.tenant, self._scratch.policies
        while True:
            with engine.view(tenant) as view:
                reached = state_index.progress_of(view)
            if reached == known or reached.position > known.position:
                return reached == known
            entries = min(state_steps.STEP_ENTRIES, known.position - reached.position)
            if not state_steps.go_on(engine, tenant, policies, max(entries, 1), words=words):
                return False
            self._tell()

    def _leaves(self) -> None:
        """Roll the leaves of the fingerprint back from the end of the log to the ledger's position."""
        try:
            known = fingerprint_index.position(self._view)
        except UNREADABLE:
            return
        with self._scratch.engine.transaction(self._scratch.tenant) as write:
            if known < write.head().position:
                fingerprint_index.turn_back(write, self._scratch.policies, known)

    # Passages and vectors

    def passages(self, embedder: Embedder | None) -> None:
        """Derive passages, and with an embedder its vectors; vectors of other embedders are skipped."""
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


def _put(put: Callable[[Iterable[IndexRow]], None], rows: Iterable[IndexRow]) -> None:
    left = iter(rows)
    while some := list(islice(left, ROWS)):
        put(some)


def compare(view: View, right: View, comparison: Comparison, followed: Followed) -> None:
    """Compare all ordered indexes but the fingerprint."""
    waiting = tuple(prefix_of_rule(one.type, rule) for one in refold.waiting(view) for rule in one.rules)
    for name in sorted({*view.index_names(), *right.index_names()}):
        if name == fingerprint_index.NAME or not followed.is_compared(name):
            continue
        part = "search" if name in WORDS else "vectors" if name.startswith(VECTORS) else "index"
        # Values by identity rules that wait may be noted already or not.
        comparison.index(name, part, (lambda key: key.startswith(waiting)) if waiting and name == SHARING else None)


def fingerprint_faults(view: View, right: View) -> Iterator[Mismatch]:
    """Yield nodes of the stored fingerprint that differ from the log's at its position."""
    try:
        position, agreed = fingerprint_index.position(view), True
        for leaf, wanted in differing(fingerprint_index.leaves(view), fingerprint_index.leaves(right), 1):
            agreed = False
            entity = right.entity((leaf or wanted or ())[0], position)
            yield Mismatch("fingerprint", None, entity, f"its stored leaf for position {position} differs")
        if agreed and not fingerprint_index.has_its_nodes(view):
            yield Mismatch("fingerprint", None, None, f"a stored node for position {position} differs")
    except Corrupt as error:
        yield Mismatch("fingerprint", None, None, str(error))
