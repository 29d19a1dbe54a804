"""What an erasure makes of the derived data: just what it concerns is forgotten, and derived again.

Merge states, search, the rows of state and the fingerprint are derived again by entity (`ledger/derived_part.py`); the
indexes of the log by entry, by run and by decision, as listed here. An erasure of a large part of a log derives
everything again instead. Either way the same is derived, and `verify` and a rebuild find nothing to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from woodrat.explain import index as trace_index
from woodrat.explain.index import touched
from woodrat.ledger import body_index, entry_index, observed_time, source_index
from woodrat.ledger import index as log_index
from woodrat.ledger.derived_part import DerivedPart, replace_rows
from woodrat.ledger.index import Lookup
from woodrat.recall import index as recall_index
from woodrat.runs import index as run_index
from woodrat.runs.index import decisions, listing
from woodrat.state.meaning import Step
from woodrat.training import index as training_index

if TYPE_CHECKING:
    from woodrat.engines.port import IndexRow, Transaction
    from woodrat.ledger.index import Index
    from woodrat.log.entry import Entry
    from woodrat.merge import Policy

BY_ENTRY: Final[Sequence[Index]] = (
    observed_time.INDEX,
    run_index.INDEX,
    run_index.LIST_INDEX,
    trace_index.INDEX,
    training_index.INDEX,
    body_index.INDEX,
    source_index.INDEX,
    source_index.SAID,
)
"""The indexes that list entries. `verify` goes by the same list."""


class Concerned:
    """The derived data that some entries and the entities they speak of have to do with, as it is before they go."""

    def __init__(self, write: Transaction, policies: Mapping[str, Policy], positions: Sequence[int]) -> None:
        self._write, self._policies, self._positions = write, policies, positions
        self._part = DerivedPart(write, policies, positions)
        self.is_small = self._part.is_small
        """Whether it is little enough to be derived again by itself; otherwise everything is."""
        if not self.is_small:
            return
        self._part.note()
        gone = set(positions)
        entries = [write.entry(position) for position in positions]
        self._entries: list[Entry] = [entry for entry in entries if entry is not None and entry.body is not None]
        self._reaches = {index.name: log_index.covered(write, index.name) for index in BY_ENTRY}
        steps = [
            meaning
            for row, meaning in zip(self._part.rows, self._part.meanings, strict=True)
            if row.position in gone and isinstance(meaning, Step)
        ]
        self._runs = sorted({step.run for step in steps})
        through = self._reaches[run_index.LIST_INDEX.name]
        self._listed = sorted(listing.touched_runs(write, through, self._entries, self._part.entities))
        self._decisions = self._leaning()
        self._rows = [*self._entry_rows(), *self._followed()]

    def derive_again(self) -> None:
        """Derive it again, now that the entries are gone."""
        write = self._write
        self._part.derive_again(self._positions)
        replace_rows(write, self._rows, ())
        write.put(list(self._followed()))
        # Passages hold the words of facts, notes and runs, and vectors are made of them.
        for name in write.notes():
            if name == recall_index.PASSAGES or name.startswith(recall_index.VECTORS):
                log_index.forget(write, name)

    def _entry_rows(self) -> Iterator[IndexRow]:
        """Yield the rows that the entries make by themselves."""
        for index in BY_ENTRY:
            for entry in self._entries:
                if entry.kind in index.kinds and entry.position <= self._reaches[index.name]:
                    yield from log_index.rows_of(index, entry)

    def _followed(self) -> Iterator[IndexRow]:
        """Yield the rows that depend on other entries too, as the log has them now."""
        write, reaches = self._write, self._reaches
        yield from decisions.lives(write, self._runs, reaches[run_index.INDEX.name])
        yield from listing.lives(write, self._listed, reaches[run_index.LIST_INDEX.name])
        yield from touched.lives(write, self._decisions, reaches[trace_index.INDEX.name])

    def _leaning(self) -> list[int]:
        """Return the positions of decisions that go, that rest on the entities, or whose runs lose a read."""
        write = self._write
        lookup = Lookup(write, write.head().position, run_index.DECISIONS)
        found: set[int] = {entry.position for entry in self._entries if entry.kind == "run.decided"}
        for ref in self._part.entities:
            found.update(lookup.positions_below(run_index.evidence_term(ref)))
        if any(entry.kind == "run.read" for entry in self._entries):
            for run in self._runs:
                entries = entry_index.run_entries(write, run, write.head().position)
                found.update(entry.position for entry in entries if entry.kind == "run.decided")
        return sorted(found)
