"""The derived data after an erasure: the concerned part is forgotten, and derived again.

Merge states, search, the rows of state and of entries and the fingerprint are derived again by entity
(`ledger/derived_part.py`); rows by run and by decision, which depend on several entries, here. An erasure of a large
part of a log derives everything again instead. Both ways give the same result, and `verify` and a rebuild find no
difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from woodrat.explain.index import touched
from woodrat.ledger import entry_index
from woodrat.ledger import index as log_index
from woodrat.ledger.derived_part import DerivedPart, replace_rows
from woodrat.ledger.index import Lookup
from woodrat.recall import index as recall_index
from woodrat.runs import index as run_index
from woodrat.runs.index import listing
from woodrat.runs.index.terms import NAME
from woodrat.state.meaning import RunEntry

if TYPE_CHECKING:
    from woodrat.engines.records import IndexRow
    from woodrat.engines.transaction import Transaction
    from woodrat.log.entry import Entry
    from woodrat.merge import Policy


class AffectedData:
    """The derived data of some entries and their entities, before the erasure."""

    def __init__(self, write: Transaction, policies: Mapping[str, Policy], positions: Sequence[int]) -> None:
        self._write, self._policies, self._positions = write, policies, positions
        self._part = DerivedPart(write, policies, positions)
        self.is_small = self._part.is_small
        """True if it is small enough to derive separately; otherwise everything is derived again."""
        if not self.is_small:
            return
        self._part.note()
        gone = set(positions)
        entries = [write.entry(position) for position in positions]
        self._entries: list[Entry] = [entry for entry in entries if entry is not None and entry.body is not None]
        steps = [
            meaning
            for row, meaning in zip(self._part.rows, self._part.meanings, strict=True)
            if row.position in gone and isinstance(meaning, RunEntry)
        ]
        self._runs = sorted({step.run for step in steps})
        self._through = write.head().position
        self._listed = sorted(listing.touched_runs(write, self._through, self._entries, self._part.entities))
        self._decisions = self._affected_decisions()
        self._rows = list(self._followed())

    def derive_again(self) -> None:
        """Derive it again, now that the entries are gone."""
        write = self._write
        self._part.derive_again(self._positions)
        replace_rows(write, self._rows, ())
        write.put(list(self._followed()))
        # Passages contain the words of facts, notes and runs, and vectors are made from them.
        for name in write.notes():
            if name == recall_index.PASSAGES or name.startswith(recall_index.VECTORS):
                log_index.forget(write, name)

    def _followed(self) -> Iterator[IndexRow]:
        """Yield the rows that depend on several entries, as the log has them now."""
        yield from run_index.lives(self._write, self._runs, self._through)
        yield from listing.lives(self._write, self._listed, self._through)
        yield from touched.lives(self._write, self._decisions, self._through)

    def _affected_decisions(self) -> list[int]:
        """Return the positions of decisions that are erased, that rest on the entities, or whose runs lose a read."""
        write = self._write
        lookup = Lookup(write, self._through, NAME)
        found: set[int] = {entry.position for entry in self._entries if entry.kind == "run.decided"}
        for ref in self._part.entities:
            found.update(run_index.evidence_positions(lookup, ref))
        if any(entry.kind == "run.read" for entry in self._entries):
            for run in self._runs:
                entries = entry_index.run_entries(write, run, write.head().position)
                found.update(entry.position for entry in entries if entry.kind == "run.decided")
        return sorted(found)
