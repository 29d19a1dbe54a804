"""Rebuilding: everything derived, made again from the log alone and compared with what was kept.

It is one transaction: until it is done every reader sees what was there before, and a failure leaves all of it. The
log is walked in chunks, so memory does not grow with its length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.port import BEFORE_ALL, Engine, Transaction, View
from woodrat.errors import Corrupt
from woodrat.ledger import find
from woodrat.ledger.derive import derive_again
from woodrat.ledger.progress import Progress
from woodrat.ledger.read import Reader
from woodrat.merge import Policy, packed_state
from woodrat.merge.packing import UNREADABLE
from woodrat.record_json import Record, derived
from woodrat.records import dataclass
from woodrat.state import fingerprint, schema
from woodrat.state.asof import AsOf


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
        try:
            repaired = _disagreeing(write, old, policies)
        except (Corrupt, *UNREADABLE):
            repaired = set(
                write.entities(None, size - 1)
            )  # what was kept cannot be read, so none of it is known to agree
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


def _disagreeing(write: Transaction, old: View, policies: Mapping[str, Policy]) -> set[Ref]:
    """Return the entities of which something else was known or kept than the log says."""
    wrong: set[Ref] = set()
    odd: set[Ref] = set()
    for ref, known in write.unlike(old):
        (odd if known else wrong).add(ref)
    if odd:
        versions: dict[str, list[int]] = {}
        for entry in write.entries(kinds={"schema"}):
            assert entry.body is not None
            versions.setdefault(schema.stored(entry.body).type, []).append(entry.position)
        now = Reader(write, AsOf(write.head().position), policies)
        # Only the smallest of a group has a state; the others may have one from the time before they were joined.
        for root in {now.group(ref)[0] for ref in odd}:
            if not _agrees(write, old, root, versions.get(root.type, []), policies):
                wrong.add(root)
    return wrong


def _agrees(write: Transaction, old: View, root: Ref, versions: Sequence[int], policies: Mapping[str, Policy]) -> bool:
    """Return whether what was kept of a fold, now and along its history, is what the log gives at those positions.

    State that is missing, or was folded under another schema, is no disagreement: reads fold on demand.
    """
    head = write.head().position
    for first, last in zip([BEFORE_ALL, *versions], [*(at - 1 for at in versions), head], strict=True):
        # From one schema to the next: what is kept counts only under the schema it was folded under.
        through = last
        while through >= first:
            rules = Reader(write, AsOf(through), policies).rules(root.type)
            # Parts of large collections are compared as they are now; along the history `verify` does.
            try:
                kept = old.kept(root, through, rules)
                if kept is None:
                    break
                state = Reader(write, AsOf(kept.position), policies).state(root)
                if not packed_state.same_state(kept.state, state, rules, apart=through != head):
                    return False
            except (Corrupt, *UNREADABLE):
                return False  # what was kept cannot even be read
            through = kept.position - 1
    return True
