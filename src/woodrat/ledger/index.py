"""Indexes of the log: entries by what they say, in an engine's ordered indexes. They trail the log and catch up.

An index lists each entry it knows under terms. It is brought up to date before the present is asked about, in
transactions of bounded length; whatever it does not cover is read from the log instead, with the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from woodrat.engines.port import BEFORE_ALL, IndexRow
from woodrat.errors import Unavailable
from woodrat.log.entry import Entry
from woodrat.merge.packing import garbled
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.port import Engine, Transaction, View
    from woodrat.ledger.progress import Progress

INDEX_ENTRIES: Final = 10_000
"""How much of the log one transaction brings into an index at most; writers wait no longer than that."""
WALK_ROWS: Final = 1_000
"""How many rows a walk over an index asks the engine for at a time."""
_POSITION_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Index:
    """Which entries are listed under which terms."""

    name: str
    """Of the index; under it the engine notes how far it goes, too."""
    kinds: frozenset[str]
    """The kinds of entries that are listed."""
    terms: Callable[[Entry], set[str]]
    """Returns the terms an entry is listed under."""


def position_key(position: int) -> bytes:
    """Return a position as a part of a key: keys that end in it sort by position."""
    return position.to_bytes(_POSITION_BYTES, "big")


def _prefix(term: str) -> bytes:
    return term.encode() + b"\0"  # no text holds it, so that no term begins another


def row(index: Index, term: str, position: int) -> IndexRow:
    """Return the row by which an entry is listed under a term."""
    return IndexRow(index.name, _prefix(term) + position_key(position), position)


def covered(view: View, name: str) -> int:
    """Return the position that an index goes to."""
    noted = view.meta(name)
    if noted is None:
        return BEFORE_ALL
    try:
        return int(noted)
    except (TypeError, ValueError) as error:
        raise garbled(f"How far the index {name} goes") from error


def cover(write: Transaction, name: str, position: int) -> None:
    """Note the position that an index goes to now."""
    write.set_meta(name, str(position).encode())


def forget(write: Transaction, name: str) -> None:
    """Empty an index; it goes nowhere then."""
    write.drop(name)
    write.set_meta(name, None)


def put(write: Transaction, name: str, position: int, values: Iterable[tuple[int, bytes]]) -> None:
    """List values by position in an index that goes to `position` then."""
    write.put([IndexRow(name, position_key(at), at, value) for at, value in values])
    cover(write, name, position)


def values(view: View, name: str, after: int = BEFORE_ALL) -> Iterator[tuple[int, bytes]]:
    """Yield the values of an index that lists them by position, from after one on."""
    last = None if after < 0 else position_key(after)
    while True:
        rows = view.scan(name, after=last, limit=WALK_ROWS)
        for key, value in rows:
            yield int.from_bytes(key, "big"), value
        if len(rows) < WALK_ROWS:
            return
        last = rows[-1][0]


def catch_up(
    engine: Engine,
    tenant: TenantId,
    index: Index,
    entries_max: int = INDEX_ENTRIES,
    *,
    progress: Progress | None = None,
) -> None:
    """Bring an index up to date, in transactions of bounded length.

    One that cannot be written to now stays behind: what it lacks is read from the log by each question. `progress`
    is called with how much is done and how much there is, if it takes more than one transaction.
    """
    with engine.view(tenant) as view:
        first, head = covered(view, index.name), view.head().position
    done = first
    while done < head:
        if progress is not None and head - first > entries_max:
            progress(done - first, head - first)
        try:
            done = go_on(engine, tenant, index, entries_max)
        except Unavailable:
            return


def go_on(engine: Engine, tenant: TenantId, index: Index, entries_max: int) -> int:
    """List the next part of the log; return the position the index goes to then.

    What is to be listed is worked out in a view; writers wait only while it is put down.
    """
    with engine.view(tenant) as view:
        before = covered(view, index.name)
        position = min(view.head().position, before + entries_max)
        entries = view.entries(before, position, index.kinds)
        rows = [row(index, term, entry.position) for entry in entries for term in index.terms(entry)]
    with engine.transaction(tenant) as write:
        reached = covered(write, index.name)
        if reached == before:  # nobody else went on meanwhile
            if rows:
                write.put(rows)
            cover(write, index.name, position)
            return position
    return reached


class Tail:
    """The part of a log that an index does not cover, as far as it was read.

    Whoever asks again and again hands the same one to each question: each entry is then read once.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        """The index."""
        self._covered = self._through = self._count = 0
        self._positions: dict[str, list[int]] | None = None

    def __len__(self) -> int:
        """How many entries it holds."""
        return self._count

    def follow(self, view: View, through: int) -> None:
        """Read on to a position; what the index covers by now is forgotten."""
        reached = covered(view, self.index.name)
        if self._positions is None or reached < self._covered or reached >= self._through:
            self._positions, self._covered, self._through, self._count = {}, reached, reached, 0
        for entry in view.entries(self._through, through, self.index.kinds):
            self._count += 1
            for term in self.index.terms(entry):
                self._positions.setdefault(term, []).append(entry.position)
        self._through = max(self._through, through)

    def positions(self, term: str) -> Sequence[int]:
        """Return the positions of the entries under a term, in order."""
        return () if self._positions is None else self._positions.get(term, ())


class Lookup:
    """An index, as one view shows it through a position."""

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

    def has(self, term: str) -> bool:
        """Return whether any entry belongs under a term, at whatever position."""
        return bool(self._read_tail().positions(term)) or is_listed(self._view, self._tail.index.name, term)

    def positions(self, term: str) -> list[int]:
        """Return the positions of the entries listed under a term, and of those that the index does not cover."""
        rows = self._view.scan(self._tail.index.name, _prefix(term), through=self._through)
        found = {int.from_bytes(key[-_POSITION_BYTES:], "big") for key, _ in rows}
        found.update(self._read_tail().positions(term))
        return sorted(position for position in found if position <= self._through)

    def entries(self, term: str) -> list[Entry]:
        """Return the entries listed under a term, by position, without those whose bodies were erased."""
        found = (self._view.entry(position) for position in self.positions(term))
        return [entry for entry in found if entry is not None and entry.body is not None]


def is_listed(view: View, name: str, term: str) -> bool:
    """Return whether an index, as far as it goes, lists anything under a term."""
    return bool(view.scan(name, _prefix(term), limit=1))
