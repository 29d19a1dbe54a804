"""Candidates: the runs that may fit a question, in the order of lists, found by index instead of by reading records.

A run's place is where the log first heard how it began. Every part of a question is a stream of places that can be
asked for the next one from any place on; what fits all parts is found by asking them in turn, so that a page costs what
it passes over in the rarest of them. A run that is listed may turn out not to fit: whoever asks looks at the run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from woodrat.merge.packing import garbled
from woodrat.runs.index.terms import BEGAN, EVERY, LISTS
from woodrat.state.entry_rows import position_key, position_of, text_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from woodrat.ledger.index import Lookup

ROWS_MIN: Final = 64
ROWS_MAX: Final = 4_096
"""How many rows a stream asks the engine for at a time: few at first, more the further it has to go."""
WINDOW_MAX: Final = 1_024
"""Up to how many runs of a window of time are sorted by their places; a wider one is gone through in their order."""


class Candidate(NamedTuple):
    """A run that may fit a question."""

    place: int
    """Where the log first heard how it began."""
    run: str
    """Its id."""


def run_in(value: bytes) -> str:
    """Return the run that a row names; `Corrupt` if it names none."""
    try:
        return value.decode()
    except ValueError as error:
        raise garbled(f"The index {LISTS}") from error


class Stream(Protocol):
    """Candidates in the order of lists; the places it is asked for only go on."""

    def next(self, place: int) -> Candidate | None:
        """Return the first candidate from a place on, that place included; none when there is no more."""


class Order(NamedTuple):
    """An index in one of the two orders of lists."""

    lookup: Lookup
    oldest_first: bool

    def is_before(self, one: int, other: int) -> bool:
        """Return whether a place comes before another."""
        return one < other if self.oldest_first else one > other

    def beyond(self, place: int) -> int:
        """Return the place that comes next."""
        return place + 1 if self.oldest_first else place - 1


class Listed:
    """The runs listed under a term."""

    def __init__(self, order: Order, term: str) -> None:
        self._order = order
        self._prefix = text_prefix(term)
        self._rows: list[Candidate] = []
        self._at = 0
        self._whole = False
        self._size = ROWS_MIN

    def next(self, place: int) -> Candidate | None:
        """Return the first candidate from a place on."""
        before = self._order.is_before
        while True:
            while self._at < len(self._rows):
                candidate = self._rows[self._at]
                if not before(candidate.place, place):
                    return candidate
                self._at += 1
                if self._at < len(self._rows) and before(self._rows[-1].place, place):
                    self._at = len(self._rows)  # it is further off than what was fetched
            if self._whole or place < 0:
                return None
            self._fetch(place)

    def _fetch(self, place: int) -> None:
        """Fetch rows from a place on until some of them are candidates, or there is no more."""
        reverse = not self._order.oldest_first
        self._rows, self._at = [], 0
        while not self._rows and not self._whole:
            # Keys are compared as bytes: nothing stands between a place and the one next to it.
            edge = place + 1 if reverse else place - 1
            after = None if edge < 0 else self._prefix + position_key(edge)
            rows = self._order.lookup.scan(self._prefix, after=after, reverse=reverse, limit=self._size)
            self._whole = len(rows) < self._size
            self._rows = [candidate for key, value in rows if (candidate := self.candidate(key, value)) is not None]
            self._size = min(self._size * 4, ROWS_MAX)
            place = self._order.beyond(position_of(rows[-1][0])) if rows else place

    def candidate(self, key: bytes, value: bytes) -> Candidate | None:
        """Return the candidate that a row tells of."""
        return Candidate(position_of(key), run_in(value.partition(b"\0")[0]))


class Timed(Listed):
    """Every run that began within a window of time, found by going through all of them in order."""

    def __init__(self, order: Order, since: str | None, until: str | None) -> None:
        super().__init__(order, EVERY)
        self._since = None if since is None else since.encode()
        self._until = None if until is None else until.encode()

    def candidate(self, key: bytes, value: bytes) -> Candidate | None:
        """Return the candidate that a row tells of, unless it began at another time."""
        began = value.partition(b"\0")[2]
        if (self._since is not None and began < self._since) or (self._until is not None and began >= self._until):
            return None
        return super().candidate(key, value)


class Few:
    """Candidates that are at hand."""

    def __init__(self, order: Order, candidates: Iterable[Candidate]) -> None:
        self._order = order
        self._sorted = sorted(candidates)
        self._places = [candidate.place for candidate in self._sorted]

    def next(self, place: int) -> Candidate | None:
        """Return the first candidate from a place on."""
        if self._order.oldest_first:
            number = bisect_left(self._places, place)
            return self._sorted[number] if number < len(self._sorted) else None
        number = bisect_right(self._places, place)
        return self._sorted[number - 1] if number else None


class AnyOf:
    """What is in any of several streams."""

    def __init__(self, order: Order, streams: Sequence[Stream]) -> None:
        self._order = order
        self._streams = list(streams)

    def next(self, place: int) -> Candidate | None:
        """Return the first candidate from a place on; what has no more is not asked again, as places only go on."""
        before, first = self._order.is_before, None
        for stream in tuple(self._streams):
            candidate = stream.next(place)
            if candidate is None:
                self._streams.remove(stream)
            elif first is None or before(candidate.place, first.place):
                first = candidate
        return first


class AllOf:
    """What is in all of several streams."""

    def __init__(self, order: Order, streams: Sequence[Stream]) -> None:
        self._order = order
        self._streams = streams

    def next(self, place: int) -> Candidate | None:
        """Return the first candidate from a place on."""
        while True:
            furthest = place
            candidate: Candidate | None = None
            for stream in self._streams:
                candidate = stream.next(furthest)
                if candidate is None:
                    return None
                furthest = candidate.place
            if candidate is not None and all(self._is_at(stream, furthest) for stream in self._streams[:-1]):
                return candidate
            place = furthest

    def _is_at(self, stream: Stream, place: int) -> bool:
        candidate = stream.next(place)
        return candidate is not None and candidate.place == place


def window(order: Order, since: str | None, until: str | None) -> Stream:
    """Return the runs that began from `since` to before `until`."""
    prefix = BEGAN.encode()
    after = None if since is None else prefix + since.encode()  # a time that is stated ends in NUL, and comes after
    rows = order.lookup.scan(prefix, after=after, limit=WINDOW_MAX)
    end = None if until is None else prefix + until.encode()
    inside = [(key, value) for key, value in rows if end is None or key < end]
    if len(rows) == WINDOW_MAX and len(inside) == WINDOW_MAX:
        return Timed(order, since, until)
    return Few(order, (Candidate(position_of(key), run_in(value)) for key, value in inside))


def walk(order: Order, stream: Stream, place: int) -> Iterator[Candidate]:
    """Yield all candidates from a place on, in order."""
    while (candidate := stream.next(place)) is not None:
        yield candidate
        place = order.beyond(candidate.place)
