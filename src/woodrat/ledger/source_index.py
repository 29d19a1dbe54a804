"""Where sources and their readings are found: deliveries, readings, and the observations that name where they are from.

Their rows are put with their entries (`state/entry_rows.py`).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from woodrat.canon import ids
from woodrat.ledger.index import WALK_ROWS, WALK_ROWS_MIN, Lookup
from woodrat.merge.packing import garbled
from woodrat.state import interpretation, observation, source
from woodrat.state.asof import Stored
from woodrat.state.entry_rows import (
    BEGUN,
    BLOCK,
    BLOCKS,
    DELIVERED,
    ENDED,
    LINE,
    MARKS,
    POSITION_BYTES,
    READING,
    SAID,
    SAID_BY,
    SOURCES,
    STARTED,
    position_of,
    term_key,
    text_prefix,
)
from woodrat.state.interpretation import Interpretation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from woodrat.engines.view import View
    from woodrat.log.entry import Entry
    from woodrat.state.source import Delivery

SAID_ROWS: Final = 128
"""How many rows are asked for at once where observations are walked."""
READINGS_GATHERED: Final = 64
"""How many readings are looked up at once."""
_KINDS: Final = {mark: kind for kind, mark in MARKS.items()}


def said(view: View, through: int, term: str) -> list[Stored]:
    """Return the observations listed under a term that the log held at a position, in order."""
    entries = Lookup(view, through, SAID).entries(term)
    return [Stored(entry.position, observation.stored(entry.body)) for entry in entries if entry.body is not None]


def said_after(view: View, through: int, term: str, after: int) -> Iterator[Stored]:
    """Yield the observations listed under a term after a position, in order; it costs what it yields."""
    lookup = Lookup(view, through, SAID)
    while positions := lookup.positions_after(term, after, SAID_ROWS):
        for position in positions:
            entry = view.entry(position)
            if entry is not None and entry.body is not None:
                yield Stored(position, observation.stored(entry.body))
        after = positions[-1]


def said_by(view: View, through: int, agent: str) -> Iterator[Stored]:
    """Yield the observations of an agent that the log held at a position, in order, found by block."""
    for key, _ in Lookup(view, through, BLOCKS).scan(text_prefix(SAID_BY + agent)):
        first = position_of(key) * BLOCK
        for entry in view.entries(first - 1, min(first + BLOCK - 1, through), {"observation"}):
            if entry.body is not None:
                stored = Stored(entry.position, observation.stored(entry.body))
                if stored.observation.agent == agent:
                    yield stored


class SourceLookup:
    """Deliveries and readings, as one view shows them through a position."""

    def __init__(self, view: View, through: int) -> None:
        self._view = view
        self._through = through
        self._index = Lookup(view, through, SOURCES)

    def entries_of_reading(self, id: str) -> list[Entry]:
        """Return how a reading began and ended, by position."""
        return self._index.entries(READING + id)

    def entries_of_source(self, name: str) -> list[Entry]:
        """Return the deliveries of a source as entries, by position; it goes by its whole name."""
        return self._index.entries(DELIVERED + name)

    def reading(self, id: str) -> Interpretation | None:
        """Return a reading of a source."""
        return _reading(self.entries_of_reading(id))

    def deliveries(self, digest: bytes) -> list[Delivery]:
        """Return the deliveries of a source, by position."""
        entries = self.entries_of_source(ids.name("source", digest))
        return [source.stored(entry.body) for entry in entries if entry.body is not None]

    def readings_after(self, after: int) -> Iterator[tuple[int, Interpretation]]:
        """Yield the readings that first began after a position, in order, each with where it did."""
        begun = self._begun_after(after)
        while some := list(islice(begun, READINGS_GATHERED)):
            lines = self._lines({id for _, id in some})
            for position, id in some:
                if next((at for at, kind, _ in lines[id] if kind == STARTED), None) == position:
                    bodies = {kind: body for _, kind, body in lines[id]}
                    try:
                        found = interpretation.stored(bodies[STARTED], bodies.get(ENDED))
                    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
                        raise garbled(f"The index {SOURCES}") from error
                    yield position, found

    def _begun_after(self, after: int) -> Iterator[tuple[int, str]]:
        """Yield where readings began after a position, with their ids; one that came twice comes twice."""
        prefix = text_prefix(BEGUN)
        last, size = None if after < 0 else term_key(BEGUN, after), WALK_ROWS_MIN
        while True:
            rows = self._index.scan(prefix, after=last, limit=size)
            yield from ((position_of(key), _id_in(value)) for key, value in rows)
            if len(rows) < size:
                return
            last, size = rows[-1][0], min(size * 4, WALK_ROWS)

    def _lines(self, ids: Collection[str]) -> dict[str, list[tuple[int, str, bytes]]]:
        """Return how some readings began and ended, by position: where, which of both, and the body."""
        sought = {text_prefix(LINE + id): id for id in ids}
        # Rows go with their entries and end by nothing else, so the past has those of the present up to there.
        rows = self._view.find(SOURCES, sorted(sought)) if sought else ()
        found: dict[str, list[tuple[int, str, bytes]]] = {id: [] for id in ids}
        for key, value in rows:
            id, position = sought.get(key[:-POSITION_BYTES]), position_of(key)
            if id is not None and position <= self._through:
                kind = _KINDS.get(value[:1])
                if kind is None:
                    raise garbled(f"The index {SOURCES}")
                found[id].append((position, kind, value[1:]))
        return found


def _id_in(value: bytes) -> str:
    try:
        return value.decode()
    except ValueError as error:
        raise garbled(f"The index {SOURCES}") from error


def _reading(entries: list[Entry]) -> Interpretation | None:
    bodies = {entry.kind: entry.body for entry in entries}
    started = bodies.get(STARTED)
    return None if started is None else interpretation.stored(started, bodies.get(ENDED))
