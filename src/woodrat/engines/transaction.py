"""Transaction: one write of one tenant; everything in it becomes durable together, or nothing of it ever was.

It reads what it has written itself. Rows of the log and of indexes are handed to the engine at once. Changes of the
table of entities are written at the end, or before it is asked for in SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from woodrat.canon.ids import Ref
from woodrat.engines import codec
from woodrat.engines.entry import EntryWrites
from woodrat.engines.index import IndexWrites
from woodrat.engines.node import Nodes
from woodrat.engines.observation import NOWHERE
from woodrat.engines.receipt import ReceiptWrites
from woodrat.engines.state import StateWrites
from woodrat.engines.view import View
from woodrat.log.entry import Write
from woodrat.log.tree import Frontier
from woodrat.state.meaning import Meaning
from woodrat.state.observation import Observation

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.log.check import Row


class Transaction(StateWrites, EntryWrites, IndexWrites, ReceiptWrites, View):
    """One write. What each table is given stands with that table; here is what concerns several."""

    def begin_write(self, sound: set[TenantId]) -> None:
        """Begin without anything written; an engine calls it once the tables are there."""
        self._sound = sound
        self._new, self._changed, self._met, self._last_entity = [], {}, {}, None
        self._said, self._before, self._said_of = [], {}, None
        self._derived: Frontier | None = None
        """The tree as far as the log was derived from again, once everything was dropped."""
        self._is_dropped = False
        self._may_be_unmet, self._dropped_met = True, False
        memory = self.memory
        self._known_before = memory.head, memory.number, memory.cloned, memory.joins

    def take_back(self) -> None:
        """Forget what this write has changed of what is known of the tenant: it was undone, and its neighbours stay."""
        memory = self.memory
        memory.head, memory.number, memory.cloned, memory.joins = self._known_before
        memory.at_hand.clear()
        memory.notes.clear()
        memory.latest.clear()
        memory.logs.clear()
        if self._dropped_met:
            memory.entities.clear()
        for known in self._met.values():
            memory.entities.pop(known.digest, None)

    def append(self, writes: Sequence[Write], meanings: Sequence[Meaning]) -> None:
        """Add writes at the end of the log, one after the other, with what the bodies of all their entries mean."""
        first = self.head().size
        count = self.append_entries(writes)
        assert count == len(meanings), "every entry has its meaning"
        self.index_observations(first, meanings)

    def erase(self, positions: Iterable[int], receipts: Iterable[tuple[str, str]]) -> None:
        """Remove bodies and nonces at these positions for ever, and what these (agent, key) were used for.

        Headers and leaves stay. What is derived from them stays too, until `forget` or `drop_derived`. Bytes may be
        left in the files until `Engine.purge`.
        """
        with self.erasing():
            self.many("erase_body", [(self.base + position,) for position in positions])
            self.many("erase_receipt", [(self.tenant_number, *name) for name in receipts])

    def drop_derived(self) -> None:
        """Forget everything but the log and its receipts. A view opened before still shows what was forgotten."""
        self.drop_tables()
        self._new.clear()  # what was noted and not written goes with the rest
        self._changed.clear()
        self.memory.forget()
        self._met.clear()
        self._dropped_met = True
        self._anchor_at = NOWHERE
        self.forget_said()
        self._derived = None
        self._is_dropped = True
        self._last_entity = None
        self._may_be_unmet = False

    def forget(self, entities: Collection[Ref], rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
        """Forget what rows of the log were noted to mean, and all that is kept of some entities.

        The rows are in order, as they were before any was erased, and have every observation of the entities. Named
        indexes are left as they are.
        """
        self.forget_said()
        base, said, naming = self.base, list[tuple[int]](), list[tuple[int, int]]()
        for row, meaning in zip(rows, meanings, strict=True):
            if isinstance(meaning, Observation):
                id = base + row.position
                said.append((id,))
                naming += [(codec.head(name), id) for name in meaning.replaces]
        found = [known for ref in entities if (known := self.known_entity(ref.digest)) is not None]
        numbers = [(known.number,) for known in found]
        self.flush()
        self.many("drop_said", said)
        self.many("drop_naming", naming)
        for query in ("drop_kept", "drop_elements", "drop_anchors", "drop_late", "drop_entity"):
            self.many(query, numbers)
        self.memory.forget()
        self._met.clear()
        self._dropped_met = True
        self._anchor_at = NOWHERE
        self._last_entity = None
        self._missing.clear()

    def derive(self, rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
        """Note again what rows of the log mean, as `append` did, in order: those that are left after `forget`.

        After `drop_derived` these are all rows there are.
        """
        first = rows[0].position
        # The log is derived from in parts, so that memory does not grow with its length.
        self.forget_said()
        if self.memory.is_full:
            self._drop_from_memory()
        if not self._is_dropped:
            for start, end in _runs([row.position for row in rows]):
                self.index_observations(rows[start].position, meanings[start:end])
            return
        if self._derived is None or self._derived.size != first:
            self._derived = Frontier.at(Nodes(self), first)
        self._derived = self.grow(self._derived, [row.leaf for row in rows])
        self.index_observations(first, meanings)
        self.memory.head = None  # it rests on the subtrees just kept


def _runs(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield from where to where positions follow one another without a gap."""
    start = 0
    for end in range(1, len(positions) + 1):
        if end == len(positions) or positions[end] != positions[end - 1] + 1:
            yield start, end
            start = end
