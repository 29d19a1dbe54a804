"""Indexes: how the rows of an index are looked up as of a position, and how far one that trails the log goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.engines.records import BEFORE_ALL, IndexRow
from woodrat.merge.packing import garbled
from woodrat.state.entry_rows import POSITION_BYTES, position_key, position_of, term_key, text_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from woodrat.engines.transaction import Transaction
    from woodrat.engines.view import View
    from woodrat.log.entry import Entry

WALK_ROWS_MIN: Final = 64
WALK_ROWS: Final = 1_000
"""How many rows a walk over an index asks the engine for at a time: few at first, where a page may need no more."""


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


class Lookup:
    """An index that rows are put in with their entries, as one view shows it through a position."""

    def __init__(self, view: View, through: int, name: str) -> None:
        self._view = view
        self._through = through
        self._name = name
        self._is_past: bool | None = None

    @property
    def through(self) -> int | None:
        """The position that rows are asked for at: none where that is the present, which costs less."""
        if self._is_past is None:
            self._is_past = self._through < self._view.head().position
        return self._through if self._is_past else None

    def has_below(self, beginning: str) -> bool:
        """Return whether any entry belongs under a term that begins so."""
        return bool(self.scan(beginning.encode(), limit=1))

    def positions(self, term: str) -> list[int]:
        """Return the positions of the entries listed under a term, in order."""
        return [position_of(key) for key, _ in self.scan(text_prefix(term))]

    def positions_after(self, term: str, after: int, limit: int) -> list[int]:
        """Return the positions of the entries listed under a term after one, in order, at most so many."""
        last = None if after < 0 else term_key(term, after)
        return [position_of(key) for key, _ in self.scan(text_prefix(term), after=last, limit=limit)]

    def positions_under(self, beginning: str, endings: Iterable[str]) -> dict[str, list[int]]:
        """Return the positions under terms of one beginning whose rows never end, by ending; those without left out."""
        if not self.has_below(beginning):
            return {}  # asked once, instead of term by term
        sought = {text_prefix(beginning + ending): ending for ending in endings}
        found: dict[str, list[int]] = {}
        for key, _ in self.find(sorted(sought)):
            if position_of(key) <= self._through:
                found.setdefault(sought[key[:-POSITION_BYTES]], []).append(position_of(key))
        return found

    def walk_back(self, term: str, before: int) -> Iterator[int]:
        """Yield the positions listed under a term before one, the last first."""
        last, size = term_key(term, max(0, min(before, self._through + 1))), WALK_ROWS_MIN
        while True:
            rows = self.scan(text_prefix(term), after=last, reverse=True, limit=size)
            yield from (position_of(key) for key, _ in rows)
            if len(rows) < size:
                return
            last, size = rows[-1][0], min(size * 4, WALK_ROWS)

    def positions_below(self, beginning: str) -> list[int]:
        """Return the positions of the entries listed under any term that begins so, each once."""
        return sorted({position_of(key) for key, _ in self.scan(beginning.encode())})

    def entries(self, term: str) -> list[Entry]:
        """Return the entries listed under a term, by position, without those whose bodies were erased."""
        found = (self._view.entry(position) for position in self.positions(term))
        return [entry for entry in found if entry is not None and entry.body is not None]

    def find(self, keys: Sequence[bytes]) -> Sequence[tuple[bytes, bytes]]:
        """Return the rows of the index with these keys, sorted, of those that never end: of any moment, in one look."""
        return self._view.find(self._name, keys) if keys else ()

    def scan(
        self, prefix: bytes, *, after: bytes | None = None, reverse: bool = False, limit: int | None = None
    ) -> Sequence[tuple[bytes, bytes]]:
        """Return rows of the index whose keys begin with a prefix."""
        return self._view.scan(self._name, prefix, through=self.through, after=after, reverse=reverse, limit=limit)
