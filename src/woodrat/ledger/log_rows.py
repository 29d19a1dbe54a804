"""Log rows: what rooms list of the entries of a log, such as decisions by their evidence and runs in lists.

A room says in a `Listing` which entries concern it, and gives two functions: the rows of an entry by itself, and the
rows that depend on earlier entries, too. The write that appends an entry puts its rows, in one transaction; a rebuild
derives the same. `explain/index` declares the rooms, and nothing can be written before it is imported: the
ledger does not know them.
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from woodrat.canon import form
from woodrat.engines.records import BEFORE_ALL
from woodrat.state.meaning import RunEntry, meaning_of
from woodrat.state.observation import Observation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from woodrat.engines.records import IndexRow
    from woodrat.engines.transaction import Transaction
    from woodrat.engines.view import View
    from woodrat.log.entry import Entry
    from woodrat.state.meaning import Meaning

STANDING: Final = -2
"""What `follow` gives as the `since` of a row that was listed before and ends now."""
PASS_ENTRIES: Final = 10_000
"""How much of the log a pass over all of it follows at a time."""
CHANGING: Final = frozenset({"observation", "schema"})
"""The kinds of entries that change what is believed."""
_EMPTY: Final = None
"""Under what it is kept at hand whether an index has any rows."""


LogEntry = tuple[int, str, "bytes | None", "Meaning"]
"""An entry: its position, its kind, its body unless that was erased, and what it means, where that is known."""
Made = TypeVar("Made")


class Listed:
    """An entry that rows are made of; it is read once, whoever asks."""

    __slots__ = ("_made", "_meaning", "_value", "body", "kind", "position")

    def __init__(self, position: int, kind: str, body: bytes, meaning: Meaning = None) -> None:
        self.position, self.kind, self.body = position, kind, body
        self._meaning = meaning
        self._value: Any = None
        self._made: dict[Any, Any] = {}

    @classmethod
    def of(cls, entry: Entry) -> Listed:
        """Return an entry of the log that is not erased."""
        assert entry.body is not None
        return cls(entry.position, entry.kind, entry.body)

    @property
    def value(self) -> Any:
        """Its body, decoded."""
        if self._value is None:
            self._value = form.decode(self.body)
        return self._value

    def once(self, make: Callable[[Any], Made], of: Any = None) -> Made:
        """Return what a function makes of its body, or `of` what another made of that; it is made once."""
        found: Made | None = self._made.get(make)
        if found is None:
            found = self._made[make] = make(self.value if of is None else of)
        return found

    @property
    def meaning(self) -> Meaning:
        """What it means."""
        if self._meaning is None:
            self._meaning = meaning_of(self.kind, self.body)
        return self._meaning

    @property
    def run(self) -> str | None:
        """The run that it is an entry of."""
        return self.meaning.run if isinstance(self.meaning, RunEntry) else None

    @property
    def said(self) -> Observation:
        """What it says, if it is an observation."""
        assert isinstance(self.meaning, Observation)
        return self.meaning


class Room(Protocol):
    """The functions by which a room lists entries; a module has them."""

    def rows(self, entry: Listed) -> Iterable[IndexRow]:
        """Return the rows that an entry makes by itself."""

    def concerned(self, view: View, entries: Sequence[Listed]) -> Sequence[Listed]:
        """Return those of some new entries of one kind that `follow` has to see; one too many only costs time."""

    def follow(self, view: View, after: int, through: int, entries: Sequence[Listed]) -> Iterable[IndexRow]:
        """Return the rows that depend on earlier entries, too, and begin or end with some entries.

        The rows of the entries themselves are in the view. The entries are those of the listing between two positions,
        in order. Rows that were true before and end here come with `until`, and `STANDING` as their `since`.
        """


class Listing(NamedTuple):
    """Which entries concern a room."""

    name: str
    """The room."""
    kinds: Mapping[str, Sequence[bytes]]
    """Their kinds, each with bytes of which a body that concerns it contains one."""
    load: Callable[[], Room]
    """Imports the room, once an entry concerns it."""
    changing: str = ""
    """An index of the room, whose rows any entry of the kinds `CHANGING` may end as long as it has any."""


_declared: list[Listing] = []


def declare(*listings: Listing) -> None:
    """Declare the rooms that list entries."""
    _declared[:] = listings
    _by_kind.cache_clear()


@cache
def _by_kind(kind: str) -> tuple[tuple[Sequence[bytes], str, Listing], ...]:
    assert _declared, "the rooms that list entries are declared: import woodrat.explain.index"
    found = [(one.kinds.get(kind, ()), one.changing if kind in CHANGING else "", one) for one in _declared]
    return tuple((marks, changing, one) for marks, changing, one in found if marks or changing)


def is_empty(view: View, index: str) -> bool:
    """Return whether an index has no rows now; that it stays so is remembered."""
    at_hand = view.at_hand(index)
    found: bool | None = at_hand.get(_EMPTY)
    if found is None:
        found = at_hand[_EMPTY] = not view.scan(index, limit=1)
    return found


class Concerned:
    """The entries among some, in order, that concern rooms, by room."""

    def __init__(self, view: View, entries: Sequence[LogEntry]) -> None:
        self._by_room: dict[str, tuple[Listing, list[Listed]]] = {}
        empty: dict[str, bool] = {}
        for position, kind, body, meaning in entries:
            if body is None:
                continue
            entry: Listed | None = None
            for marks, changing, listing in _by_kind(kind):
                for mark in marks:
                    if mark in body:
                        break
                else:
                    if not changing:
                        continue
                    if changing not in empty:
                        empty[changing] = is_empty(view, changing)
                    if empty[changing]:
                        continue
                entry = entry or Listed(position, kind, body, meaning)
                self._by_room.setdefault(listing.name, (listing, []))[1].append(entry)
        for listing, several in self._by_room.values():
            if empty.get(listing.changing):
                # Rows that may end with the other entries begin among these.
                there = {one.position for one in several}
                for position, kind, body, meaning in entries:
                    if body is not None and kind in CHANGING and position not in there:
                        several.append(Listed(position, kind, body, meaning))
                several.sort(key=attrgetter("position"))

    def rows(self) -> Iterator[IndexRow]:
        """Yield the rows that the entries make by themselves."""
        for listing, entries in self._by_room.values():
            room = listing.load()
            for entry in entries:
                yield from room.rows(entry)

    def narrow(self, view: View) -> None:
        """Leave out the entries that `follow` need not see; their own rows were made."""
        for name, (listing, entries) in list(self._by_room.items()):
            # Entries of several kinds may concern each other.
            if len({entry.kind for entry in entries}) == 1:
                left = listing.load().concerned(view, entries)
                if left:
                    self._by_room[name] = listing, list(left)
                else:
                    del self._by_room[name]

    def follow(self, write: Transaction, after: int, through: int) -> None:
        """Put and end the rows that depend on earlier entries, too, of entries that were just written."""
        rows: list[IndexRow] = []
        for listing, entries in self._by_room.values():
            rows += listing.load().follow(write, after, through, entries)
        if rows:
            _carry_out(write, rows)

    def followed(self, view: View, after: int, through: int) -> Iterator[IndexRow]:
        """Yield the rows that depend on earlier entries, too, of any part of the log."""
        for listing, entries in self._by_room.values():
            yield from listing.load().follow(view, after, through, entries)


def follow_all(write: Transaction) -> None:
    """Put the rows that depend on earlier entries, too, of the whole log; those of the entries themselves are there."""
    head = write.head().position
    for after in range(BEFORE_ALL, head, PASS_ENTRIES):
        through = min(after + PASS_ENTRIES, head)
        concerned = Concerned(write, entries_between(write, after, through))
        _carry_out(write, list(concerned.followed(write, after, through)))


def entries_between(view: View, after: int, through: int) -> list[LogEntry]:
    """Return the entries between two positions that may concern a room."""
    kinds = frozenset(kind for listing in _declared for kind in (*listing.kinds, *CHANGING))
    return [(entry.position, entry.kind, entry.body, None) for entry in view.entries(after, through, kinds)]


def _carry_out(write: Transaction, rows: Sequence[IndexRow]) -> None:
    """Put rows; those that were true before and have an end now are ended."""
    ending: dict[int, list[tuple[str, bytes]]] = {}
    fresh: list[IndexRow] = []
    for row in rows:
        if row.since == STANDING:
            assert row.until is not None
            ending.setdefault(row.until, []).append((row.name, row.key))
        else:
            fresh.append(row)
    for position in sorted(ending):
        write.end(position, ending[position])
    if fresh:
        write.put(fresh)
