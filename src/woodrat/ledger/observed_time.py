"""Observed time: the observations of a log in the order in which things were seen."""

from __future__ import annotations

from contextlib import suppress
from heapq import merge
from typing import TYPE_CHECKING, Any

from woodrat.canon.moment import from_micros, to_micros
from woodrat.ledger.index import WALK_ROWS, WALK_ROWS_MIN, Lookup
from woodrat.ledger.pages import strange_cursor
from woodrat.merge.timeline import Event
from woodrat.state import observation
from woodrat.state.asof import Stored
from woodrat.state.entry_rows import (
    BLOCK,
    BLOCKS,
    OBSERVED,
    SEEN,
    observed_key,
    position_key,
    position_of,
    term_key,
    text_prefix,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from woodrat.engines.view import View
    from woodrat.ledger.read import Reader


Place = tuple[str, str]
"""A place in a timeline: the time, and the digest in hex."""


def walk(
    reader: Reader, since: str | None, until: str | None, place: tuple[Any, ...] | None
) -> Iterator[tuple[Place, Event]]:
    """Yield what was seen from `since` to before `until`, after a place, in that order, each with its own place."""
    lookup = Lookup(reader.view, reader.asof.position, OBSERVED)
    first = b"" if since is None else since.encode()
    if place is not None:
        try:
            seen = observed_key(place[0], bytes.fromhex(place[1]))
        except ValueError:
            raise strange_cursor() from None
        first = max(first, seen + b"\xff" * 8)  # the position that ends its key is at most this
    last = None if until is None else until.encode()
    for key in merge(_listed(lookup, first), _recorded(reader.view, reader.asof.position, first)):
        if last is not None and key >= last:
            return
        entry = reader.view.entry(position_of(key))
        if entry is None or entry.body is None:
            continue
        stored = Stored(entry.position, observation.stored(entry.body))
        if reader.asof.selects(stored):
            said = stored.observation
            yield (said.observed_at, said.digest.hex()), Event(said.observed_at, stored.position, said)


def _listed(lookup: Lookup, first: bytes) -> Iterator[bytes]:
    """Yield the keys of the index after one."""
    last, size = first or None, WALK_ROWS_MIN
    while True:
        rows = lookup.scan(b"", after=last, limit=size)
        yield from (key for key, _ in rows)
        if len(rows) < size:
            return
        last, size = rows[-1][0], min(size * 4, WALK_ROWS)


def _recorded(view: View, through: int, first: bytes) -> Iterator[bytes]:
    """Yield the keys after one of what was seen when it was recorded, each in a write of its own: as the log has it."""
    start = 0
    with suppress(ValueError, OverflowError):  # a time before all others, or that no cursor has
        start = view.position_at(from_micros(to_micros(first.partition(b"\0")[0].decode()) - 1)) + 1
    last, size = term_key(SEEN, start // BLOCK - 1) if start >= BLOCK else None, WALK_ROWS_MIN
    at, keys = "", list[bytes]()
    while True:
        rows = view.scan(BLOCKS, text_prefix(SEEN), after=last, limit=size)
        for key, _ in rows:
            place = position_of(key) * BLOCK
            for entry in view.entries(max(place, start) - 1, min(place + BLOCK - 1, through), {"observation"}):
                if entry.recorded_at != at:
                    yield from sorted(keys)
                    at, keys = entry.recorded_at, []
                if entry.envelope.length == 1 and entry.body is not None:
                    said = observation.stored(entry.body)
                    if said.observed_at == at:
                        found = observed_key(at, said.digest) + position_key(entry.position)
                        keys += [found] if found > first else []
        if len(rows) < size:
            break
        last, size = rows[-1][0], min(size * 4, WALK_ROWS)
    yield from sorted(keys)
