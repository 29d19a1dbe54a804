"""Observed time: the observations of a log in the order in which things were seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.ledger.index import WALK_ROWS, WALK_ROWS_MIN, Lookup
from woodrat.ledger.pages import strange_cursor
from woodrat.merge.timeline import Event
from woodrat.state import observation
from woodrat.state.asof import Stored
from woodrat.state.entry_rows import OBSERVED, observed_key, position_of

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    for key in _listed(lookup, first):
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
