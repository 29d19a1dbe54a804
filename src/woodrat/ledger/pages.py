"""Pages: how every list is cut into pages, and what leads from one page to the next.

All pages of a list are read as of the position of the first, so that together they are the list as it was once,
whatever is written between them. A cursor holds that position, the valid time and the place where a page ended; it
fits only the question it was given for. What a place is, each list decides for itself: an offset where the whole list
is computed anyway, the rank of the last item where it is not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from woodrat.canon import form
from woodrat.canon.digest import base32, digest, unbase32
from woodrat.canon.form import Json
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.moments import NO_READ, open_reader, resolve_moment
from woodrat.ledger.read import PAGE_MAX as PAGE_MAX
from woodrat.record_json import IN_PYTHON_ONLY, WHEN_SET, Record
from woodrat.records import dataclass, replace
from woodrat.records import field as record_field
from woodrat.state.match import Match

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from woodrat.context import Context
    from woodrat.ledger.read import Reader

_CHECK_BYTES: Final = 8


class ListItem(Protocol):
    """What a list holds: records."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON."""


T = TypeVar("T", bound=ListItem)
Walk = Callable[["Reader", tuple[Any, ...] | None], Iterator[tuple[tuple[Any, ...], T]]]
"""Yields the items of a list after a place, or all of them, each with its own place."""
R = TypeVar("R")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Page(Record, Generic[T]):
    """Some items of a list, in order; false when there are none.

    Iterating goes on to the pages that follow, and asks for them as it does; `async for` does so without blocking.
    """

    items: tuple[T, ...]
    """The items of this page."""
    cursor: str | None
    """What to ask with for the items that follow; `None` when there are none."""
    position: int
    """The log position it was read at; that of the first page."""
    following: Callable[[], Page[T]] | None = record_field(
        default=None, compare=False, repr=False, metadata=IN_PYTHON_ONLY
    )
    """Reads the page that follows; None where there is none, or nobody can."""
    matched: Match | None = record_field(default=None, metadata=WHEN_SET)
    """How the entity that the list is about was found, where that was by a value that identifies it."""
    times: Mapping[str, str] = record_field(default=MappingProxyType({}), metadata=WHEN_SET)
    """What times that were asked for in words turned out to be, by argument."""

    def __iter__(self) -> Iterator[T]:
        page: Page[T] | None = self
        while page is not None:
            yield from page.items
            page = page.next_page()

    async def __aiter__(self) -> AsyncIterator[T]:
        from asyncio import to_thread

        page: Page[T] | None = self
        while page is not None:
            for item in page.items:
                yield item
            page = None if page.cursor is None else await to_thread(page.next_page)

    def __bool__(self) -> bool:
        return bool(self.items)

    def next_page(self) -> Page[T] | None:
        """Return the page that follows, as of the same position; `None` after the last."""
        return None if self.cursor is None or self.following is None else self.following()

    def followed_by(self, following: Callable[[], Page[T]]) -> Page[T]:
        """Return the page with what reads the page that follows."""
        return self if self.cursor is None else replace(self, following=following)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page of which list is asked for, checked."""

    question: bytes
    """What was asked; a cursor belongs to it."""
    limit: int
    """How many items at most."""
    position: int
    """The log position to read at: that of the first page."""
    valid_at: str | None
    """Only what was true by this time counts; None: whenever it was true."""
    place: tuple[Any, ...] | None
    """Where the page before ended; None: this is the first."""

    def cursor_at(self, place: Sequence[Json]) -> str:
        """Return the cursor of a page that ends at a place."""
        return make_cursor(self.question, [self.position, self.valid_at, *place])

    def place_of(self, *kinds: type) -> tuple[Any, ...] | None:
        """Return the place, made of values of these kinds; `Refused` where no page of this list returned the cursor."""
        if self.place is None or [type(part) for part in self.place] == list(kinds):
            return self.place
        raise strange_cursor()

    def pin(self, context: Context) -> Context:
        """Return the context at the position that all pages of the list are read at."""
        return context.at(self.position, context.valid_at)


def page_request(
    context: Context, question: Json, limit: object, cursor: object, faults: list[Fault] | None = None
) -> PageRequest:
    """Return which page is asked for; `Refused` says all that is wrong, after the `faults` of the question itself.

    A question with faults need not be plain JSON; of its cursor only the form is checked.
    """
    faults = [] if faults is None else faults
    serialised = b"" if faults else form.serialise(question)
    faults += limit_faults(limit)
    place = read_cursor(cursor, serialised, faults)
    with context.view() as view:
        position = resolve_moment(view, context.moment, clock=context.clock)
    if place is not None and serialised:
        fault = _moment_fault(place, position, context.valid_at)
        faults += [] if fault is None else [fault]
    if faults:
        raise Refused(faults, NO_READ)
    assert isinstance(limit, int)
    if place is None:
        return PageRequest(serialised, limit, position, context.valid_at, None)
    return PageRequest(serialised, limit, place[0], context.valid_at, tuple(place[2:]))


def limit_faults(limit: object, *, rest: str = "a cursor") -> list[Fault]:
    """Return what is wrong with the length of a page; `rest` is what leads to the rest."""
    if type(limit) is int and 1 <= limit <= PAGE_MAX:
        return []
    return [Fault("limit", f"got {shown(limit)}", f"Send 1 to {PAGE_MAX}; {rest} leads to the rest.")]


def _moment_fault(place: list[Any], reached: int, valid_at: str | None) -> Fault | None:
    """Return why a cursor cannot be followed at a moment, if so.

    A moment that lies later is in order: `now` and `yesterday` have moved on by the time the next page is asked for.
    """
    if len(place) < 2 or type(place[0]) is not int:
        return Fault("cursor", "it is not the cursor of a list", "Send the cursor exactly as a page returned it.")
    if place[0] > reached:
        problem = f"it is from position {place[0]}, and this moment only reaches {reached}"
        return Fault("cursor", problem, "Use it at the ledger and moment that returned it, or start without one.")
    if place[1] != valid_at:
        given = "no valid time" if place[1] is None else f"the valid time {place[1]}"
        return Fault("cursor", f"it is from a list with {given}", "Send the same valid time, or no cursor.")
    return None


def strange_cursor() -> Refused:
    """Return the error for a cursor that no page of a list returned."""
    problem = Fault("cursor", "it is not the cursor of this list", "Send the cursor exactly as a page returned it.")
    return Refused([problem], NO_READ)


def cut(items: Sequence[T], request: PageRequest) -> Page[T]:
    """Return the page asked for of a list that was computed whole; iterating goes on in what was computed."""
    (start,) = request.place_of(int) or (0,)
    return _cut(items, request, max(start, 0))


def _cut(items: Sequence[T], request: PageRequest, start: int) -> Page[T]:
    end = start + request.limit
    page = Page(tuple(items[start:end]), request.cursor_at([end]) if len(items) > end else None, request.position)
    return page.followed_by(lambda: _cut(items, request, end))


def read_list(context: Context, request: PageRequest, compute: Callable[[Context], Sequence[T]]) -> Page[T]:
    """Return the page asked for of a list that `compute` returns whole, at the position of the first page."""
    return cut(compute(request.pin(context)), request)


def walked_page(
    context: Context, request: PageRequest, kinds: Sequence[type], walk: Walk[T], opened: Reader | None = None
) -> Page[T]:
    """Return the page asked for of a list that is found item by item, from any place on: it costs what it returns.

    A place is made of values of `kinds`. Iterating walks on from where a page ended. `opened` is a reader at the
    position of the request, where there is one.
    """
    place = request.place_of(*kinds)
    with open_reader(request.pin(context)) if opened is None else nullcontext(opened) as reader:
        found = list(islice(walk(reader, place), request.limit + 1))
    items, matched = tuple(item for _, item in found[: request.limit]), reader.matched
    if len(found) <= request.limit:
        return Page(items, None, request.position, matched=matched)
    end = found[request.limit - 1][0]
    rest, later = replace(request, place=end), context.within(None)
    following = lambda: walked_page(later, rest, kinds, walk)  # noqa: E731
    return Page(items, request.cursor_at(end), request.position, following, matched)


def ranked_page(
    opened: S,
    reopen: Callable[[], AbstractContextManager[S]],
    request: PageRequest,
    ranked: Sequence[R],
    show: Callable[[Sequence[R], S], tuple[T, ...]],
    place: Callable[[R], Sequence[Json]],
    start: int = 0,
    more: tuple[int, Callable[[Sequence[Json]], Page[T]]] | None = None,
) -> Page[T]:
    """Return a page of what was found, in order, where finding it takes all of it and showing it a part at a time.

    `opened` is what it is shown from. Iterating shows the rest of what was found, from what `reopen` opens. With `more`
    only so many were looked for, a whole number of pages and one: it asks for what follows a place.
    """
    end = start + request.limit
    items = show(ranked[start:end], opened)
    if len(ranked) <= end:
        return Page(items, None, request.position)

    def following() -> Page[T]:
        if more is not None and end >= more[0]:
            return more[1](place(ranked[end - 1]))
        with reopen() as again:
            return ranked_page(again, reopen, request, ranked, show, place, end, more)

    return Page(items, request.cursor_at(place(ranked[end - 1])), request.position, following)


# Cursors


def make_cursor(question: bytes, place: list[Json]) -> str:
    """Return a place in the answer to a question as text; it fits no other question."""
    body = form.serialise(place)
    return base32(digest("cursor", question + b"\n" + body)[:_CHECK_BYTES] + body)


def read_cursor(cursor: object, question: bytes, faults: list[Fault]) -> list[Any] | None:
    """Return the place a cursor holds; one that is damaged or belongs to another question is a fault.

    Where the question itself has faults it is empty, and only the form of the cursor is checked.
    """
    if cursor is None:
        return None
    place = place_in(cursor, question)
    if place is None:
        remedy = "Send the cursor exactly as a page returned it, with the same question, or start again without one."
        faults.append(Fault("cursor", f"{shown(cursor)} is not a cursor of this question", remedy))
    return place


def place_in(cursor: object, question: bytes = b"") -> list[Any] | None:
    """Return the place a cursor holds, if it belongs to a question; none otherwise."""
    data = unbase32(cursor) if isinstance(cursor, str) else None
    if data is None:
        return None
    body = data[_CHECK_BYTES:]
    if question and digest("cursor", question + b"\n" + body)[:_CHECK_BYTES] != data[:_CHECK_BYTES]:
        return None
    try:
        place: Any = form.decode(body)
    except (Refused, ValueError):
        return None
    return place if isinstance(place, list) else None
