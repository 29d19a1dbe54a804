"""Logs: what lies between two reads of one entity, as one log tells it, or two.

Within one log positions say what came between. Two logs share no positions: there it is what one of them knew when it
was read and the other did not, observation by observation, since equal statements have one id everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from woodrat.compare.cause import Lineage, Statement
from woodrat.records import replace
from woodrat.runs.steps import Read

Stated = Sequence[Statement | None]
"""The observation that each of two reads showed, where it is known."""

FIRST, SECOND = "first", "second"
"""What the two sides are called."""


class Logs(Protocol):
    """What is known of what two reads showed, the first of each pair that of the first run."""

    @property
    def two(self) -> bool:
        """Whether each read is known to a ledger of its own."""

    def statement(self, side: int, observation: str) -> Statement | None:
        """Return what a side read, by its id; none where it is not known."""

    def between(self, entity: str, p: Read, q: Read) -> Sequence[Statement] | None:
        """Return what was said of an entity between two reads; none where nobody can say."""

    def schemas(self, entity: str, p: Read, q: Read) -> tuple[int, int] | None:
        """Return the versions of the schema in force at both reads, where they differ."""

    def newer(self, stated: Stated, shown: Sequence[bool], p: Read, q: Read) -> Sequence[int]:
        """Return the sides whose statement was news: none, one, or of two ledgers both.

        `shown` tells which of the reads showed anything.
        """


class OneLog:
    """Two reads that one log knows about."""

    two = False

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage

    def statement(self, side: int, observation: str) -> Statement | None:
        """Return an observation by its id."""
        return self._lineage.statement(observation)

    def _span(self, p: Read, q: Read) -> tuple[int, int] | None:
        """Return the positions of two reads in order, where both are of the log that is here."""
        one, other = (self._lineage.place(read.log, read.as_of) for read in (p, q))
        return None if one is None or other is None else (min(one, other), max(one, other))

    def between(self, entity: str, p: Read, q: Read) -> Sequence[Statement] | None:
        """Return what was said after the earlier read and up to the later one, by position."""
        span = self._span(p, q)
        return None if span is None else self._lineage.between(entity, *span)

    def schemas(self, entity: str, p: Read, q: Read) -> tuple[int, int] | None:
        """Return the versions in force at the earlier and at the later read, where they differ."""
        span = self._span(p, q)
        if span is None:
            return None
        before, now = (self._lineage.schema(entity, position) for position in span)
        return None if before is None or now is None or before == now else (before, now)

    def newer(self, stated: Stated, shown: Sequence[bool], p: Read, q: Read) -> Sequence[int]:
        """Return the side with the later statement, unless it was there before the earlier read already."""
        found = [(said.position, side) for side, said in enumerate(stated) if said is not None]
        if not found:
            return ()
        position, side = max(found)
        span = self._span(p, q)
        unknown = shown[1 - side] and stated[1 - side] is None
        return () if unknown or (span is not None and position <= span[0]) else (side,)


class TwoLogs:
    """Two reads, each known to a ledger of its own."""

    two = True

    def __init__(self, first: Lineage, second: Lineage) -> None:
        self._lineages = (first, second)

    def statement(self, side: int, observation: str) -> Statement | None:
        """Return an observation as the ledger of that side tells of it."""
        found = self._lineages[side].statement(observation)
        return None if found is None else _of(side, found)

    def between(self, entity: str, p: Read, q: Read) -> Sequence[Statement] | None:
        """Return what one ledger knew when it was read and the other did not, by the time it was recorded."""
        known = []
        for lineage, read in zip(self._lineages, (p, q), strict=True):
            place = lineage.place(read.log, read.as_of)
            if place is None:
                return None
            known.append({said.observation: said for said in lineage.between(entity, -1, place)})
        alone = [_of(s, said) for s in (0, 1) for id, said in known[s].items() if id not in known[1 - s]]
        return sorted(alone, key=lambda said: (said.recorded_at or "", said.observation))

    def schemas(self, entity: str, p: Read, q: Read) -> tuple[int, int] | None:
        """Return the versions in force in the first ledger and in the second, where they differ."""
        found = []
        for lineage, read in zip(self._lineages, (p, q), strict=True):
            place = lineage.place(read.log, read.as_of)
            if place is None:
                return None
            found.append(lineage.schema(entity, place))
        one, other = found
        return None if one is None or other is None or one == other else (one, other)

    def newer(self, stated: Stated, shown: Sequence[bool], p: Read, q: Read) -> Sequence[int]:
        """Return the sides whose statement the other ledger did not know when it was read."""
        found = []
        for side, said in enumerate(stated):
            if said is not None:
                lineage, read = self._lineages[1 - side], (q, p)[side]
                known = lineage.statement(said.observation)
                bound = lineage.place(read.log, read.as_of)
                if known is None or (bound is not None and known.position > bound):
                    found.append(side)
        return found


def _of(side: int, said: Statement) -> Statement:
    return replace(said, ledger=SECOND if side else FIRST)
