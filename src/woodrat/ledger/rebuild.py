"""Rebuilding: everything derived, made again from the log alone and compared with what was kept.

It is one transaction: until it is done every reader sees what was there before, and a failure leaves all of it. The
log is walked in chunks, so memory does not grow with its length.
"""

from __future__ import annotations

from collections.abc import Mapping

from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.errors import Corrupt
from woodrat.ledger import find
from woodrat.ledger.comparison import TABLES, Comparison
from woodrat.ledger.derive import derive_again
from woodrat.ledger.progress import Progress
from woodrat.merge import Policy
from woodrat.merge.packing import UNREADABLE
from woodrat.record_json import Record, derived
from woodrat.records import dataclass
from woodrat.state import fingerprint


@dataclass(frozen=True, slots=True)
class Rebuilt(Record):
    """What a rebuild made, and what it found wrong."""

    position: int
    """The position everything derived is true for."""
    entries: int
    """Entries of the log."""
    observations: int
    """Observations among them."""
    entities: int
    """Entities they speak of."""
    repaired: tuple[str, ...]
    """Entities whose kept state disagreed with the log, as references, sorted; it agrees now."""
    fingerprint: str
    """One digest of the whole state, from the log alone."""

    @derived
    def agreed(self) -> bool:
        """Whether everything kept was what the log says."""
        return not self.repaired


def rebuild(
    engine: Engine, tenant: TenantId, policies: Mapping[str, Policy], progress: Progress | None = None
) -> Rebuilt:
    """Make everything derived again from the log, compare it with what was kept, and keep the new."""
    with engine.transaction(tenant) as write, engine.view(tenant) as old:
        size = write.head().size
        observations, root = derive_again(write, policies, progress)
        comparison = Comparison(old, write, policies, wrong_max=None)
        try:
            comparison.table(TABLES[0])
            comparison.states()
            repaired = {found.entity for found in comparison.wrong if found.entity is not None}
        except (Corrupt, *UNREADABLE):
            repaired = set(write.entities(None, size - 1))  # what was kept cannot be read: none of it is known to agree
        if progress is not None:
            progress(size, size)
        return Rebuilt(
            position=size - 1,
            entries=size,
            observations=observations,
            entities=sum(map(len, find.entity_pages(write, None, size - 1))),
            repaired=tuple(sorted(map(str, repaired))),
            fingerprint=fingerprint.text(root),
        )
