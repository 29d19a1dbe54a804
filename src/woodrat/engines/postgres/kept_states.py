"""Kept states: what one view of a database keeps of entities, a page of them at a time.

A page, and the states kept along the histories of its entities, is bounded by number and by bytes. A history that is
longer is read by itself, in pages too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from woodrat.engines.port import BEFORE_ALL
from woodrat.engines.postgres.statements import NumberColumn

if TYPE_CHECKING:
    from woodrat.engines.sql.state_comparison import Row

ENTITIES: Final = 500
"""How many entities are read at a time."""
PAST: Final = 1_000
"""How many states along histories are."""
BYTES: Final = 4 * 1_048_576
"""With how many bytes of states a page of either ends."""


class PostgresKeptStates:
    """What one view keeps of entities; `select` asks it by the name of a statement."""

    def __init__(self, select: Callable[..., Sequence[tuple[Any, ...]]]) -> None:
        self._select = select
        self._past: dict[int, list[tuple[Any, ...]]] = {}
        """By number, the states along the histories of the entities of this page, as far as they were read ahead."""

    def entities(self) -> Iterator[Row]:
        """Yield the rows of all entities, by type and key."""
        type, key = "", ""
        while True:
            rows = self._select("entities_kept", type=type, key=key, limit=ENTITIES, bytes=BYTES)
            self._read_ahead(rows)
            yield from rows
            if len(rows) < ENTITIES and _bytes_of(rows, 6) < BYTES:
                return
            type, key = rows[-1][1:3]

    def _read_ahead(self, rows: Sequence[Row]) -> None:
        """Read the states along the histories of a page of entities in one look, without those that are many."""
        self._past = {}
        states, size = 0, 0
        for number, *_, count, is_spread, past_bytes in rows:
            if count and not is_spread and states + count <= PAST and size + past_bytes <= BYTES:
                states, size = states + count, size + past_bytes
                self._past[number] = []
        if self._past:
            for number, *state in self._select("kept_of_many", entities=NumberColumn(list(self._past))):
                self._past[number].append(tuple(state))

    def past(self, row: Row) -> Iterator[tuple[Any, ...]]:
        """Yield the states kept along the history of an entity of this page, by position."""
        number, count = row[0], row[7]
        if not count:
            return
        if (read := self._past.get(number)) is not None:
            yield from read
            return
        after = BEFORE_ALL
        while True:
            rows = self._select("kept_after", entity=number, after=after, limit=PAST, bytes=BYTES)
            yield from rows
            if len(rows) < PAST and _bytes_of(rows, 3) < BYTES:
                return
            after = rows[-1][0]


def _bytes_of(rows: Sequence[tuple[Any, ...]], column: int) -> int:
    """Return how many bytes the states of a page have."""
    return sum(len(row[column] or b"") for row in rows)
