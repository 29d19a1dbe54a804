"""A part of the derived data: what follows from some entries, and all that is kept of the entities they speak of.

An erasure changes the past of a few entities. What was derived of them is looked at before, forgotten, and derived
again from what is left. Nothing else is touched, and the result is that of deriving everything again (`derive.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from woodrat.ledger import entry_index, identifying_values, refold, state_redo
from woodrat.ledger.identifying_values import said_values
from woodrat.ledger.read import Reader
from woodrat.ledger.state_redo import component
from woodrat.ledger.transitions import advance, spoken_of, touched
from woodrat.state import schema
from woodrat.state.asof import AsOf
from woodrat.state.meaning import meaning_of
from woodrat.state.observation import Observation
from woodrat.state.relation import SAME_AS

if TYPE_CHECKING:
    from woodrat.canon.ids import Ref
    from woodrat.engines.records import IndexRow
    from woodrat.engines.transaction import Transaction
    from woodrat.engines.view import View
    from woodrat.log.check import Row
    from woodrat.merge import Policy
    from woodrat.state.meaning import Meaning

SHARE_MAX: Final = 4
"""Of a log of which more than one entry in so many is concerned, everything is derived again: that is faster then."""


class DerivedPart:
    """What is derived of some entries and entities, as it is before they change."""

    def __init__(self, write: Transaction, policies: Mapping[str, Policy], positions: Iterable[int]) -> None:
        self._write, self._policies = write, policies
        self._head = write.head().position
        rows = {position: next(write.rows(position - 1, position)) for position in positions}
        meanings = {position: meaning_of(row.kind, row.body) for position, row in rows.items()}
        self.entities = _concerned(write, spoken_of(meanings.values()), self._head)
        """The entities they speak of, and all that was ever joined with those."""
        for ref in self.entities:
            for position, said in write.observations(ref.digest, -1, self._head):
                if position not in rows:
                    rows[position] = next(write.rows(position - 1, position))
                    meanings[position] = said
        self.rows: Sequence[Row] = [rows[position] for position in sorted(rows)]
        """The entries, and every observation of the entities, in order."""
        self.meanings: Sequence[Meaning] = [meanings[position] for position in sorted(rows)]
        """What they mean."""

    @property
    def is_small(self) -> bool:
        """Whether to derive it again costs less than to derive everything."""
        return len(self.rows) * SHARE_MAX <= self._head + 1

    def note(self) -> None:
        """Take note of what trails the log."""
        write, policies = self._write, self._policies
        refold.finish_forgetting(write)
        self._rows_of_state = state_redo.rows_about(write, policies, self.entities)
        now = Reader(write, AsOf(self._head), policies)
        self._values = [(ref, said_values(now, ref)) for ref in self.entities]

    def derive_again(self, gone: Iterable[int]) -> None:
        """Forget all of it, and derive it again without the entries at some positions, which were erased."""
        write, policies = self._write, self._policies
        identifying_values.forget(write, self._values)
        entry_index.forget(write, self.rows, self.meanings)
        write.forget(self.entities, self.rows, self.meanings)
        erased = set(gone)
        schemas = self._schemas()
        for row, meaning in zip(self.rows, self.meanings, strict=True):
            if row.position not in erased and isinstance(meaning, Observation):
                while schemas and schemas[-1][0] < row.position:
                    self._refold(*schemas.pop())
                self._take(row, meaning)
        while schemas:
            self._refold(*schemas.pop())
        now = Reader(write, AsOf(self._head), policies)
        identifying_values.note(write, ((ref, said_values(now, ref)) for ref in self.entities))
        entry_index.renew_blocks(write, self.rows, self.meanings)
        state_redo.redo(write, policies, self._rows_of_state)

    def _take(self, row: Row, said: Observation) -> None:
        """Note what an observation means, and merge it as a write did."""
        write, policies, position = self._write, self._policies, row.position
        before = Reader(write, AsOf(position - 1), policies)
        before.remember([said.entity])
        entry_index.derive(write, [row], [said])
        advance(write, before, Reader(write, AsOf(position), policies), position, [said])

    def _schemas(self) -> list[tuple[int, str]]:
        """Return where schemas stand from which on the entities' types merge otherwise, the last first."""
        types = {ref.type for ref in self.entities}
        entries = self._write.entries(through=self._head, kinds={"schema"})
        found = [(entry.position, schema.stored(entry.body).type) for entry in entries if entry.body is not None]
        return [
            (position, type)
            for position, type in reversed(found)
            if type in types and self._merges_otherwise(position, type)
        ]

    def _merges_otherwise(self, position: int, type: str) -> bool:
        """Return whether a type merges otherwise from a position on."""
        was, now = (Reader(self._write, AsOf(at), self._policies).rules(type) for at in (position - 1, position))
        return was.merging != now.merging

    def _refold(self, position: int, type: str) -> None:
        """Keep the states of entities whose type has a new schema, as the write of the schema did."""
        after = Reader(self._write, AsOf(position), self._policies)
        known = [
            ref for ref in self.entities if ref.type == type and self._write.version(ref.digest, position) is not None
        ]
        self._write.keep(refold.states_anew(after, known).values())


def _concerned(view: View, spoken: Iterable[Ref], head: int) -> list[Ref]:
    """Return entities, all that was ever joined with them, and what joined them."""
    found: dict[Ref, None] = {}
    for ref in touched(sorted(spoken)):
        if ref in found:
            continue
        found[ref] = None
        if ref.type != SAME_AS and entry_index.joined(view, ref.digest):
            members, edges = component(view, ref, head)
            found.update(dict.fromkeys(sorted({*members, *edges})))
    return list(found)


def replace_rows(write: Transaction, old: Iterable[IndexRow], new: Iterable[IndexRow]) -> None:
    """Put rows of indexes in place of others, of which nothing is left, nor in the past."""
    for name, key in dict.fromkeys((row.name, row.key) for row in old):
        write.drop(name, key)
    write.put(new)
