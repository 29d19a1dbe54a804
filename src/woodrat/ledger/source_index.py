"""Where sources and their readings are found: deliveries, readings, and the observations that name where they are from.

Two indexes that trail the log. That of deliveries and readings takes in their entries alone, so that it costs what they
are, whatever else the log holds. That of observations lists each by its agent, its source and its reading.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.ledger import index as log_index
from woodrat.ledger.index import WALK_ROWS, WALK_ROWS_MIN, Index, Lookup, term_key, term_prefix
from woodrat.merge.packing import garbled
from woodrat.state import interpretation, observation, source
from woodrat.state.asof import Stored
from woodrat.state.entry_rows import POSITION_BYTES, position_of
from woodrat.state.interpretation import Interpretation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from woodrat.context import Context
    from woodrat.engines.port import View
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry
    from woodrat.state.source import Delivery

DELIVERED: Final = "delivered/"
"""Deliveries of a source; its name follows."""
READING: Final = "reading/"
"""The beginning and the end of a reading; its id follows."""
BEGUN: Final = "begun"
"""Where readings begin; the rows hold their ids."""
LINE: Final = "line/"
"""What is recorded of a reading; its id follows, and the rows hold the bodies of its beginning and of its end."""
SAID_FROM: Final = "from/"
"""Observations that name a source or a reading; its name follows."""
SAID_BY: Final = "by/"
"""Observations of an agent; its name follows."""

SAID_ROWS: Final = 128
"""How many rows are asked for at once where observations are walked."""

STARTED: Final = "interpretation.started"
ENDED: Final = "interpretation.ended"
RECEIVED: Final = "received"


def _terms(entry: Entry) -> tuple[str, ...]:
    if entry.body is None:
        return ()
    body: Any = form.decode(entry.body)
    return (DELIVERED + body["source"] if entry.kind == RECEIVED else READING + body["interpretation"],)


def _pairs(entry: Entry) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows by which a list tells of a reading without looking at its entries."""
    if entry.body is None or entry.kind == RECEIVED:
        return
    id = form.decode(entry.body)["interpretation"]
    if entry.kind == STARTED:
        yield term_key(BEGUN, entry.position), id.encode()
    yield term_key(LINE + id, entry.position), _MARKS[entry.kind] + entry.body


def _said_terms(entry: Entry) -> set[str]:
    if entry.body is None:
        return set()
    body: Any = form.decode(entry.body)
    terms = {SAID_BY + body["agent"]}
    terms.update(SAID_FROM + body[name] for name in ("source", "interpretation") if isinstance(body.get(name), str))
    return terms


_MARKS: Final = {STARTED: b"+", ENDED: b"-"}
_KINDS: Final = {mark: kind for kind, mark in _MARKS.items()}
"""What stands before a body in a row."""
READINGS_GATHERED: Final = 64
"""How many readings are looked up at once."""
INDEX: Final = Index("sources", frozenset({RECEIVED, STARTED, ENDED}), _terms, _pairs)
"""Where deliveries and readings are found."""
SAID: Final = Index("said", frozenset({"observation"}), _said_terms)
"""Where observations are found by who said them, and from which source or reading."""


def catch_up(context: Context, *, said: bool = False, progress: Progress | None = None) -> None:
    """Bring the index of sources up to date for a question about the present, and that of observations with `said`.

    One that cannot be written to now stays behind.
    """
    if context.moment == "now":
        log_index.catch_up(context.engine, context.tenant, INDEX, progress=progress)
        if said:
            log_index.catch_up(context.engine, context.tenant, SAID, progress=progress)


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


class SourceLookup:
    """Deliveries and readings, as one view shows them through a position."""

    def __init__(self, view: View, through: int) -> None:
        self._view = view
        self._through = through
        self._index = Lookup(view, through, INDEX)

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
                        raise garbled(f"The index {INDEX.name}") from error
                    yield position, found

    def _begun_after(self, after: int) -> Iterator[tuple[int, str]]:
        """Yield where readings began after a position, with their ids; one that came twice comes twice."""
        prefix = term_prefix(BEGUN)
        last, size = None if after < 0 else term_key(BEGUN, after), WALK_ROWS_MIN
        while True:
            rows = self._index.scan(prefix, after=last, limit=size)
            yield from ((position_of(key), _id_in(value)) for key, value in rows)
            if len(rows) < size:
                break
            last, size = rows[-1][0], min(size * 4, WALK_ROWS)
        for entry in self._index.tail:
            if entry.kind == STARTED and entry.position > after:
                yield from (
                    (position_of(key), value.decode()) for key, value in _pairs(entry) if key.startswith(prefix)
                )

    def _lines(self, ids: Collection[str]) -> dict[str, list[tuple[int, str, bytes]]]:
        """Return how some readings began and ended, by position: where, which of both, and the body."""
        sought = {term_prefix(LINE + id): id for id in ids}
        # Rows go with their entries and end by nothing else, so the past has those of the present up to there.
        rows = list(self._view.find(INDEX.name, sorted(sought)))
        rows += (pair for entry in self._index.tail for pair in _pairs(entry))
        found: dict[str, list[tuple[int, str, bytes]]] = {id: [] for id in ids}
        for key, value in rows:
            id, position = sought.get(key[:-POSITION_BYTES]), position_of(key)
            if id is not None and position <= self._through:
                kind = _KINDS.get(value[:1])
                if kind is None:
                    raise garbled(f"The index {INDEX.name}")
                found[id].append((position, kind, value[1:]))
        return found


def _id_in(value: bytes) -> str:
    try:
        return value.decode()
    except ValueError as error:
        raise garbled(f"The index {INDEX.name}") from error


def _reading(entries: list[Entry]) -> Interpretation | None:
    bodies = {entry.kind: entry.body for entry in entries}
    started = bodies.get(STARTED)
    return None if started is None else interpretation.stored(started, bodies.get(ENDED))
