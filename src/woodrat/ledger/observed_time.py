"""Observed time: the observations of a log in the order in which things were seen, by an index that trails the log."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING, Any, Final

from woodrat.ledger import index as log_index
from woodrat.ledger.index import WALK_ROWS, WALK_ROWS_MIN, Index, Lookup
from woodrat.ledger.pages import strange_cursor
from woodrat.merge.timeline import Event
from woodrat.state import observation
from woodrat.state.asof import Stored
from woodrat.state.entry_rows import position_key, position_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from woodrat.context import Context
    from woodrat.ledger.read import Reader
    from woodrat.log.entry import Entry


def _pairs(entry: Entry) -> list[tuple[bytes, bytes]]:
    if entry.body is None:
        return []
    said = observation.stored(entry.body)
    return [(_key(said.observed_at, said.digest) + position_key(entry.position), b"")]


def _key(observed_at: str, digest: bytes) -> bytes:
    return observed_at.encode() + b"\0" + digest


INDEX: Final = Index("observed", frozenset({"observation"}), pairs=_pairs)
"""Where observations are found by when things were seen; of one time by their digests."""

Place = tuple[str, str]
"""A place in a timeline: the time, and the digest in hex."""


def catch_up(context: Context) -> None:
    """Bring the index up to date for a question about any moment; one that cannot be written to now stays behind."""
    log_index.catch_up(context.engine, context.tenant, INDEX)


def walk(
    reader: Reader, since: str | None, until: str | None, place: tuple[Any, ...] | None
) -> Iterator[tuple[Place, Event]]:
    """Yield what was seen from `since` to before `until`, after a place, in that order, each with its own place."""
    lookup = Lookup(reader.view, reader.asof.position, INDEX)
    first = b"" if since is None else since.encode()
    if place is not None:
        try:
            seen = _key(place[0], bytes.fromhex(place[1]))
        except ValueError:
            raise strange_cursor() from None
        first = max(first, seen + b"\xff" * 8)  # the position that ends its key is at most this
    last = None if until is None else until.encode()
    recent = sorted(key for entry in lookup.tail for key, _ in _pairs(entry) if key > first)
    for key in merge(_listed(lookup, first), recent):
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
    """Yield the keys of the index after one, as far as it goes."""
    last, size = first or None, WALK_ROWS_MIN
    while True:
        rows = lookup.scan(b"", after=last, limit=size)
        yield from (key for key, _ in rows)
        if len(rows) < size:
            return
        last, size = rows[-1][0], min(size * 4, WALK_ROWS)
