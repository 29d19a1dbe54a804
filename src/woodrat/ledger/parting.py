"""Parting: where two recorded runs part, with what the log knows of the observations they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.canon import ids
from woodrat.canon.ids import Ref
from woodrat.errors import Refused
from woodrat.ledger import recounting
from woodrat.state import source
from woodrat.views.divergence import Divergence, compare
from woodrat.views.statement import Statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from woodrat.ledger.recounting import Recounter
    from woodrat.views.asof import Stored


def runs_diff(recounter: Recounter, first: object, second: object) -> Divergence:
    """Return where two runs part and why; `NotFound` when either is not here."""
    a = recounting.run_record(recounter, first)
    b = a if first == second else recounting.run_record(recounter, second)
    return compare(a, b, LogLineage(recounter))


class LogLineage:
    """What one log knows at one as-of of the observations that runs read; observations are found by their ids."""

    def __init__(self, recounter: Recounter) -> None:
        self._reader, self._view, self._through = recounter.reader, recounter.view, recounter.through
        self.log = recounter.view.head().log

    def statement(self, observation: str) -> Statement | None:
        """Return an observation by its id; none where it is not here, or came later."""
        found = self._view.observation_by_id(observation)
        return None if found is None or found.position > self._through else self._told(found)

    def between(self, entity: str, after: int, through: int) -> Sequence[Statement]:
        """Return what was said of an entity, and of those it is joined with, after one position and up to another."""
        ref = _ref(entity)
        if ref is None:
            return ()
        found = self._reader.stored(self._reader.group(ref), after)
        return [self._told(stored) for stored in found if stored.position <= through]

    def schemas(self, entity: str, after: int, through: int) -> tuple[int, int] | None:
        """Return the versions of the schema in force for an entity at both positions, where they differ."""
        ref = _ref(entity)
        if ref is None:
            return None
        found = [self._view.schema(ref.type, min(position, self._through)) for position in (after, through)]
        before, now = (0 if schema is None else schema.version for schema in found)
        return None if before == now else (before, now)

    def _told(self, stored: Stored) -> Statement:
        said, entry = stored.observation, self._view.entry(stored.position)
        named, run = said.optional.get("source"), said.optional.get("run")
        digest = ids.digest_of("source", named) if isinstance(named, str) else None
        return Statement(
            observation=said.id,
            entity=str(said.entity),
            op=said.op,
            agent=said.agent,
            position=stored.position,
            recorded_at=None if entry is None else entry.recorded_at,
            fields=dict(said.fields),
            replaces=tuple(sorted(ids.id_of("observation", digest) for digest in said.replaces)),
            source=None if digest is None else ids.id_of("source", digest),
            source_name=None if digest is None else self._called(digest),
            run=run if isinstance(run, str) else None,
        )

    def _called(self, digest: bytes) -> str | None:
        """Return what a source was called when it first came: its delivery is in the same write as its content."""
        position = self._view.source(digest)
        if position is None:
            return None
        for entry in self._view.entries(position, min(position + 1, self._through), {"received"}):
            if entry.body is not None and (delivery := source.stored(entry.body)).source == digest:
                return delivery.name
        return None


def _ref(text: str) -> Ref | None:
    try:
        return ids.parse_ref(text)
    except Refused:
        return None
