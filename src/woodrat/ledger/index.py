"""Shelving: indexes of the log on an engine's shelves, which trail it and catch up.

An index puts each entry it knows on shelves by name. It is brought up to date before the present is asked about, in
transactions of bounded length; whatever its shelves do not cover is read from the log instead, with the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


class Tail:
    """The part of a log that the shelves of an index do not cover, as far as it was read.

    Whoever asks again and again hands the same one to each question: each entry is then read once.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._covered = self._through = self._count = 0
        self._positions: dict[str, list[int]] | None = None

    def __len__(self) -> int:
        """How many entries it holds."""
        return self._count

    def follow(self, view: View, through: int) -> None:
        """Read on to a position; what the shelves cover by now is forgotten."""
        covered = view.shelved(self._index.name)
        if self._positions is None or covered < self._covered or covered >= self._through:
            self._positions, self._covered, self._through, self._count = {}, covered, covered, 0
        for entry in view.entries(self._through, through, self._index.kinds):
            self._count += 1
            for name in self._index.shelves(entry):
                self._positions.setdefault(name, []).append(entry.position)
        self._through = max(self._through, through)

    def on(self, name: str) -> Sequence[int]:
        """Return the positions that belong on a shelf, by position."""
        return () if self._positions is None else self._positions.get(name, ())


class Shelves:
    """The shelves of an index, as one view shows them through a position."""

    def __init__(self, view: View, through: int, index: Index, tail: Tail | None = None) -> None:
        self._view = view
        self._through = through
        self._tail = Tail(index) if tail is None else tail
        self._is_read = False

    def _read_tail(self) -> Tail:
        if not self._is_read:
            self._tail.follow(self._view, self._through)
            self._is_read = True
        return self._tail

    def has(self, name: str) -> bool:
        """Return whether anything lies on a shelf, or belongs there, at whatever position."""
        return bool(self._read_tail().on(name)) or next(iter(self._view.shelf(name)), None) is not None

    def on(self, name: str) -> list[int]:
        """Return the positions on a shelf, and those of the part of the log it does not cover."""
        found = {position for position, _ in self._view.shelf(name)}
        found.update(self._read_tail().on(name))
        return sorted(position for position in found if position <= self._through)

    def entries(self, name: str) -> list[Entry]:
        """Return the entries on a shelf, by position, without those whose bodies were erased."""
        found = (self._view.entry(position) for position in self.on(name))
        return [entry for entry in found if entry is not None and entry.body is not None]
