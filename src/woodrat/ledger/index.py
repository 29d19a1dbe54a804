"""Shelving: indexes of the log on an engine's shelves, which trail it and catch up.

An index puts each entry it knows on shelves by name. It is brought up to date before the present is asked about, in
transactions of bounded length; whatever its shelves do not cover is read from the log instead, with the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from woodrat.errors import Unavailable
from woodrat.log.entry import Entry
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.port import Engine, Transaction, View
    from woodrat.ledger.rebuild import Progress

INDEX_ENTRIES: Final = 10_000
"""How much of the log one transaction puts on shelves at most; writers wait no longer than that."""


@dataclass(frozen=True, slots=True)
class Index:
    """Which entries lie on which shelves."""

    name: str
    """The shelf that says how far the others go; it holds nothing itself."""
    kinds: frozenset[str]
    """The kinds of entries that lie on shelves."""
    shelves: Callable[[Entry], set[str]]
    """Returns the shelves an entry lies on."""


def catch_up(
    engine: Engine,
    tenant: TenantId,
    index: Index,
    entries_max: int = INDEX_ENTRIES,
    *,
    progress: Progress | None = None,
) -> None:
    """Bring the shelves of an index up to date, in transactions of bounded length.

    Shelves that cannot be written to now stay behind: what they lack is read from the log by each question. `progress`
    is called with how much is done and how much there is, if it takes more than one transaction.
    """
    with engine.view(tenant) as view:
        first, head = view.shelved(index.name), view.head().position
    done = first
    while done < head:
        if progress is not None and head - first > entries_max:
            progress(done - first, head - first)
        try:
            with engine.transaction(tenant) as write:
                done, head = _put_by(write, index, entries_max), write.head().position
        except Unavailable:
            return


def _put_by(write: Transaction, index: Index, entries_max: int) -> int:
    """Put the next part of the log on its shelves; return the position they are then true for."""
    before = write.shelved(index.name)
    position = min(write.head().position, before + entries_max)
    found: dict[str, list[tuple[int, bytes]]] = {}
    for entry in write.entries(before, position, index.kinds):
        for name in index.shelves(entry):
            found.setdefault(name, []).append((entry.position, b""))
    for name, items in sorted(found.items()):
        write.shelve(name, position, items)
    write.shelve(index.name, position, ())
    return position


class Shelves:
    """The shelves of an index, as one view shows them through a position."""

    def __init__(self, view: View, through: int, index: Index) -> None:
        self._view = view
        self._through = through
        self._index = index
        self._tail: dict[str, list[int]] | None = None

    def on(self, name: str) -> list[int]:
        """Return the positions on a shelf, and those of the part of the log it does not cover."""
        if self._tail is None:
            self._tail = {}
            covered = self._view.shelved(self._index.name)
            for entry in self._view.entries(covered, self._through, self._index.kinds):
                for shelf in self._index.shelves(entry):
                    self._tail.setdefault(shelf, []).append(entry.position)
        found = {position for position, _ in self._view.shelf(name) if position <= self._through}
        return sorted(found.union(self._tail.get(name, ())))

    def entries(self, name: str) -> list[Entry]:
        """Return the entries on a shelf, by position, without those whose bodies were erased."""
        found = (self._view.entry(position) for position in self.on(name))
        return [entry for entry in found if entry is not None and entry.body is not None]
