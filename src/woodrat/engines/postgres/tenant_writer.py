"""TenantWriter: one tenant as a process that writes knows it, and what a write of it will ask."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from woodrat.canon import moment
from woodrat.engines import codec
from woodrat.engines.cache import Memory
from woodrat.engines.postgres.prefetch import Question
from woodrat.engines.postgres.statements import NumberColumn, all_compiled
from woodrat.engines.tables import ALL

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.records import Asks


class TenantWriter:
    """One tenant as a process that writes knows it, and the turn to write to it."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.memory = Memory()
        self.standing: Sequence[Question] = ()
        """What a write asks that knows nothing of the tenant, whatever it writes."""
        self.is_shared = False
        """Whether somebody else wrote before the last write of this process: then it is likely again."""
        self.changes: int | None = None
        """How many changes the tenant had when this was known."""

    def note_change(self) -> None:
        """Note that a commit of this process changed the tenant."""
        assert self.changes is not None
        self.changes += 1

    def forget(self) -> None:
        """Forget everything: what was known may not have come to be."""
        self.memory, self.changes = Memory(), None


def end_of(tenant: TenantId, memory: Memory) -> dict[str, Any]:
    """Return the end of a tenant's log as the row of its head has it."""
    head = memory.head
    assert head is not None, "a write was carried out"
    recorded_at = None if head.recorded_at is None else moment.to_micros(head.recorded_at)
    frontier = head.frontier.to_bytes()
    return {"tenant": tenant, "log": head.log, "size": head.size, "recorded_at": recorded_at, "frontier": frontier}


def _question(tenant: TenantId, query: str, **values: Any) -> Question:
    return Question(all_compiled()[query].parts[0], {"limit": ALL, **values, "tenant": tenant})


def first_questions(tenant: TenantId, place: TenantWriter, asks: Asks) -> list[Question]:
    """Return what a write will ask, as far as it is not known here."""
    found = list(place.standing) if place.is_shared else []
    if asks.key is not None:
        found.append(_question(tenant, "receipt", agent=asks.key[0], key=asks.key[1]))
    known = {} if place.is_shared else place.memory.entities
    unknown = sorted({codec.head(ref.digest) for ref in asks.entities if ref.digest not in known})
    if len(unknown) == 1:
        found.append(_question(tenant, "entity", digest=unknown[0]))
    elif unknown:
        found.append(_question(tenant, "entities_by_digest", digests=NumberColumn(unknown)))
    if unknown:
        found.append(_question(tenant, "last_entity"))
    return found
