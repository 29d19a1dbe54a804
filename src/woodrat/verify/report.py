"""Verified: the scope of a verification, its findings, and the remedies."""

from __future__ import annotations

from typing import Final

from woodrat.record_json import Record, derived
from woodrat.records import dataclass

RESTORE: Final = "Stop writing, keep a copy of the file, and restore a backup or a synced ledger that verifies."
REBUILD: Final = "Run `woodrat rebuild`: it is made again from the log, which is sound."
REINDEX: Final = "Run `woodrat reindex`: it is made again from the log, which is sound."
COPY: Final = "Run `woodrat rebuild`; if that fails, or the finding stays, copy the ledger into a new file."

REMEDIES: Final = {
    "tree": REBUILD
    + " If a checkpoint is held elsewhere, verify against it first: a rewritten log looks like this too.",
    "vectors": REINDEX,
    "layout": "Somebody changed the file by hand. Copy the ledger into a new file.",
    "behind": "Writes are refused until this is accepted with `woodrat checkpoint --new-epoch REASON`, or until the "
    "newer database is put back.",
    "switched": "Restore the database from a backup or a synced ledger, or, if you replaced it yourself, accept it "
    "with `woodrat checkpoint --new-epoch REASON`.",
    "origin": "Verify against a checkpoint of this log; if it is one, " + RESTORE[0].lower() + RESTORE[1:],
}
"""The remedy for a class of damage, if other than restoring the log or rebuilding derived data."""


@dataclass(frozen=True, slots=True)
class Finding(Record):
    """One thing that is not as it should be."""

    damage: str
    """Its class, such as `commitment`, `position` or `state`; docs/reference/verify.md lists them."""
    log: bool
    """Whether the log itself is damaged; otherwise only derived data is stale."""
    position: int | None
    """The first position it concerns, where it concerns one."""
    entity: str | None
    """The entity it concerns, as a reference, where it concerns one."""
    problem: str
    """The problem, in one clause."""
    remedy: str
    """The remedy."""

    def __str__(self) -> str:
        where = [f"position {self.position}"] if self.position is not None else []
        where += [self.entity] if self.entity is not None else []
        return f"{', '.join(where) or 'ledger'}: {self.problem} ({self.damage}). {self.remedy}"


def finding(damage: str, log: bool, position: int | None, entity: object, problem: str) -> Finding:
    """Return a finding with its remedy."""
    remedy = REMEDIES.get(damage) or (RESTORE if log else COPY if damage == "file" else REBUILD)
    return Finding(damage, log, position, None if entity is None else str(entity), problem, remedy)


@dataclass(frozen=True, slots=True)
class Verified(Record):
    """The scope and the findings of a verification."""

    position: int
    """The last checked position; -1 for an empty ledger."""
    entries: int
    """Entries of the log."""
    observations: int
    """Observations among them."""
    entities: int
    """Entities whose state was folded again; none when the log is damaged."""
    logs: tuple[str, ...]
    """The names the log was written under, by first use."""
    root: str
    """The root of the tree over all entries, from the entries alone, in hex."""
    fingerprint: str | None
    """One digest of the whole state, from the log alone; None when the log is damaged."""
    checked: tuple[str, ...]
    """The checked parts: `file`, `log`, `checkpoints`, `receipts`, `state`, `search`, `vectors`."""
    unchecked: tuple[str, ...]
    """What could not be looked at, and why."""
    covered: int
    """Number of entries that the given checkpoints cover; no checkpoint covers later ones."""
    damage: tuple[Finding, ...]
    """The findings: the log's first, each by position."""
    notices: tuple[str, ...] = ()
    """Notices that are not damage: a clock far ahead of this machine's, an accepted epoch."""

    @derived
    def sound(self) -> bool:
        """Whether there are no findings."""
        return not self.damage

    @derived
    def log_damaged(self) -> bool:
        """Whether the log itself is damaged."""
        return any(found.log for found in self.damage)

    @derived
    def first(self) -> int | None:
        """The first bad position: of the log if it is damaged, else of derived data."""
        worst = [found for found in self.damage if found.log] or self.damage
        return min((found.position for found in worst if found.position is not None), default=None)

    @derived
    def tail(self) -> int:
        """Number of entries that no checkpoint covers."""
        return self.entries - self.covered


@dataclass(frozen=True, slots=True)
class OrderProof(Record):
    """The result of writing a set in many orders."""

    observations: int
    """Number of shuffled observations."""
    shuffles: int
    """Number of tried orders."""
    fingerprint: str
    """The fingerprint of the ledger itself."""
    differing: tuple[int, ...]
    """Seeds of the orders that ended in another fingerprint; empty when order does not matter."""

    @derived
    def holds(self) -> bool:
        """Whether every order ended in the same state."""
        return not self.differing
