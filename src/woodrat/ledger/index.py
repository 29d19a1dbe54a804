"""Indexes of the log: entries by what they say, in an engine's ordered indexes. They trail the log and catch up.

An index lists each entry it knows under terms. It is brought up to date before the present is asked about, in
transactions of bounded length; whatever it does not cover is read from the log instead, with the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from woodrat.engines.port import BEFORE_ALL, IndexRow
from woodrat.errors import Unavailable
from woodrat.ledger.erasures import erased_since
from woodrat.log.entry import Entry
from woodrat.merge.packing import garbled
from woodrat.records import dataclass
from woodrat.state.entry_rows import POSITION_BYTES, position_key, position_of

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.port import Engine, Transaction, View
    from woodrat.ledger.progress import Progress

INDEX_ENTRIES: Final = 10_000
"""How much of the log one transaction brings into an index at most; writers wait no longer than that."""
WALK_ROWS_MIN: Final = 64
WALK_ROWS: Final = 1_000
"""How many rows a walk over an index asks the engine for at a time: few at first, where a page may need no more."""
STANDING: Final = -2
"""What `follow` gives as the `since` of a row that was listed before and ends now."""


def _nothing(_: Entry) -> Iterable[Any]:
    return ()


@dataclass(frozen=True, slots=True)
class Index:
    """Which entries are listed, and under what."""

    name: str
    """Of the index; under it the engine notes how far it goes, too."""
    kinds: frozenset[str]
    """The kinds of entries that are listed."""
    terms: Callable[[Entry], Iterable[str]] = _nothing
    """Returns the terms an entry is listed under, each once."""
    pairs: Callable[[Entry], Iterable[tuple[bytes, bytes]]] = _nothing
    """Returns the rows of an entry that are no terms, as (key, value)."""
    follow: Callable[[View, int, int, Sequence[Entry]], Iterable[IndexRow]] | None = None
    """Yields the rows that depend on earlier entries, too.

    It is given a view in which the rows of the entries themselves are listed, the positions after which and through
    which the log was read, and the entries of it that are of the index's kinds, in order. Rows that were true before
    and end here come with `until`.
    """


def term_prefix(term: str) -> bytes:
    """Return what the keys of all that is listed under a term begin with."""
    return term.encode() + b"\0"  # no text holds it, so that no term begins another


def term_key(term: str, position: int) -> bytes:
    """Return the key under which a position is listed under a term."""
    return term_prefix(term) + position_key(position)


def rows_of(index: Index, entry: Entry) -> Iterator[IndexRow]:
    """Yield the rows that an entry makes by itself."""
    name, position = index.name, entry.position
    for term in index.terms(entry):
        yield IndexRow(name, term_key(term, position), position)
    for key, value in index.pairs(entry):
        yield IndexRow(name, key, position, value)


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

    What is to be listed is worked out in a view; writers wait only while it is put down, and while rows are worked out
    that depend on earlier ones. Where something was erased between the two, it is worked out again.
    """
    while True:
        with engine.view(tenant) as view:
            before, head = covered(view, index.name), view.head().position
            position = min(head, before + entries_max)
            entries = list(view.entries(before, position, index.kinds))
            rows = [row for entry in entries for row in rows_of(index, entry)]
        with engine.transaction(tenant) as write:
            reached = covered(write, index.name)
            if reached != before:
                return reached  # somebody else went on meanwhile
            if erased_since(write, head):
                continue
            if rows:
                write.put(rows)
            if index.follow is not None and entries:
                _carry_out(write, index.follow(write, before, position, entries))
            cover(write, index.name, position)
            return position


class Tail:
    """The part of a log that an index does not cover, as far as it was read.

    Whoever asks again and again hands the same one to each question: each entry is then read once.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        """The index."""
        self.covered = BEFORE_ALL
        """The position that the index goes to."""
        self.entries: list[Entry] = []
        """The entries of its kinds since, in order."""
        self._through = BEFORE_ALL
        self._is_read = False
        self._positions: dict[str, list[int]] = {}
        self._termed = 0

    def __len__(self) -> int:
        """How many entries it holds."""
        return len(self.entries)

    def follow(self, view: View, through: int) -> None:
        """Read on to a position; what the index covers by now is forgotten."""
        reached = covered(view, self.index.name)
        if not self._is_read or reached < self.covered or reached >= self._through:
            self.covered = self._through = reached
            self.entries, self._positions, self._termed, self._is_read = [], {}, 0, True
        if through > self._through:
            self.entries += view.entries(self._through, through, self.index.kinds)
            self._through = through

    def by_term(self) -> Mapping[str, Sequence[int]]:
        """Return the positions of the entries under each term, in order."""
        for entry in self.entries[self._termed :]:
            for term in self.index.terms(entry):
                self._positions.setdefault(term, []).append(entry.position)
        self._termed = len(self.entries)
        return self._positions


def _carry_out(write: Transaction, rows: Iterable[IndexRow]) -> None:
    """Put rows; those that were true before and have an end now are ended."""
    ending: dict[int, list[tuple[str, bytes]]] = {}
    fresh: list[IndexRow] = []
    for row in list(rows):
        if row.since == STANDING:
            assert row.until is not None
            ending.setdefault(row.until, []).append((row.name, row.key))
        else:
            fresh.append(row)
    for position in sorted(ending):
        write.end(position, ending[position])
    if fresh:
        write.put(fresh)


class Lookup:
    """An index, as one view shows it through a position."""

    def __init__(self, view: View, through: int, index: Index, tail: Tail | None = None) -> None:
        self._view = view
        self._through = through
        self._index = index
        self._tail = Tail(index) if tail is None else tail
        self._is_read = False
        self._is_past: bool | None = None

    def _read_tail(self) -> Tail:
        if not self._is_read:
            self._tail.follow(self._view, self._through)
            self._is_read = True
        return self._tail

    @property
    def covered(self) -> int:
        """The position that the index goes to."""
        return self._read_tail().covered

    @property
    def tail(self) -> Sequence[Entry]:
        """The entries of its kinds that the index does not cover, in order."""
        entries = self._read_tail().entries
        return (
            entries
            if not entries or entries[-1].position <= self._through
            else [entry for entry in entries if entry.position <= self._through]
        )

    @property
    def through(self) -> int | None:
        """The position that rows are asked for at: none where that is the present, which costs less."""
        if self._is_past is None:
            self._is_past = self._through < self._view.head().position
        return self._through if self._is_past else None

    def has_below(self, beginning: str) -> bool:
        """Return whether any entry belongs under a term that begins so."""
        if self.scan(beginning.encode(), limit=1):
            return True
        return any(term.startswith(beginning) for term in self._read_tail().by_term())

    def positions(self, term: str) -> list[int]:
        """Return the positions of the entries listed under a term, and of those that the index does not cover."""
        found = {position_of(key) for key, _ in self.scan(term_prefix(term))}
        found.update(self._read_tail().by_term().get(term, ()))
        return sorted(position for position in found if position <= self._through)

    def positions_after(self, term: str, after: int, limit: int) -> list[int]:
        """Return the positions of the entries listed under a term after one, in order, at most so many."""
        last = None if after < 0 else term_key(term, after)
        found = {position_of(key) for key, _ in self.scan(term_prefix(term), after=last, limit=limit)}
        found.update(position for position in self._read_tail().by_term().get(term, ()) if position > after)
        return sorted(position for position in found if position <= self._through)[:limit]

    def positions_under(self, beginning: str, endings: Iterable[str]) -> dict[str, list[int]]:
        """Return the positions under terms of one beginning whose rows never end, by ending; those without left out."""
        if not self.has_below(beginning):
            return {}  # asked once, instead of term by term
        sought = {term_prefix(beginning + ending): ending for ending in endings}
        found: dict[str, set[int]] = {}
        for key, _ in self.find(sorted(sought)):
            found.setdefault(sought[key[:-POSITION_BYTES]], set()).add(position_of(key))
        recent = self._read_tail().by_term()
        for ending in sought.values() if recent else ():
            if listed := recent.get(beginning + ending):
                found.setdefault(ending, set()).update(listed)
        within = {name: sorted(at for at in positions if at <= self._through) for name, positions in found.items()}
        return {name: positions for name, positions in within.items() if positions}

    def walk_back(self, term: str, before: int) -> Iterator[int]:
        """Yield the positions listed under a term before one, the last first, as far as the index goes."""
        last, size = term_key(term, max(0, min(before, self._through + 1))), WALK_ROWS_MIN
        while True:
            rows = self.scan(term_prefix(term), after=last, reverse=True, limit=size)
            yield from (position_of(key) for key, _ in rows)
            if len(rows) < size:
                return
            last, size = rows[-1][0], min(size * 4, WALK_ROWS)

    def positions_below(self, beginning: str) -> list[int]:
        """Return the positions of the entries listed under any term that begins so, each once."""
        positions = {position_of(key) for key, _ in self.scan(beginning.encode())}
        for term, recent in self._read_tail().by_term().items():
            positions.update(recent if term.startswith(beginning) else ())
        return sorted(positions)

    def entries(self, term: str) -> list[Entry]:
        """Return the entries listed under a term, by position, without those whose bodies were erased."""
        found = (self._view.entry(position) for position in self.positions(term))
        return [entry for entry in found if entry is not None and entry.body is not None]

    def find(self, keys: Sequence[bytes]) -> Sequence[tuple[bytes, bytes]]:
        """Return the rows of the index with these keys, sorted, of those that never end: of any moment, in one look."""
        return self._view.find(self._index.name, keys) if keys else ()

    def scan(
        self, prefix: bytes, *, after: bytes | None = None, reverse: bool = False, limit: int | None = None
    ) -> Sequence[tuple[bytes, bytes]]:
        """Return rows of the index, as far as it goes, whose keys begin with a prefix."""
        return self._view.scan(
            self._index.name, prefix, through=self.through, after=after, reverse=reverse, limit=limit
        )


def is_listed(view: View, name: str, term: str) -> bool:
    """Return whether an index, as far as it goes, lists anything under a term."""
    return bool(view.scan(name, term_prefix(term), limit=1))
