"""TenantWriter: one tenant as a process that writes knows it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from woodrat.canon import moment
from woodrat.engines.cache import Memory
from woodrat.engines.postgres.prefetch import Habit, first_questions
from woodrat.engines.postgres.statements import all_compiled
from woodrat.engines.postgres.wire import Command
from woodrat.engines.tables import ALL

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.records import Asks


class TenantWriter:
    """What a writing process knows of one tenant, and the lock by which its threads take turns."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.memory = Memory()
        self.habit = Habit()
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


def write_questions(tenant: TenantId, place: TenantWriter, asks: Asks) -> list[Command]:
    """Return what a write will ask, as far as it is not known here."""
    found = first_questions(tenant, asks, None if place.is_shared else place.memory)
    if any(question.part is not all_compiled()["receipt"].parts[0] for question in found):
        found.append(Command(all_compiled()["last_entity"].parts[0], {"limit": ALL, "tenant": tenant}))
    return [*(place.habit.questions if place.is_shared else ()), *found]
