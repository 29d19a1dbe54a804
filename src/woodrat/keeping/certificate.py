"""Certificate: what an erasure took, for whoever asked for it and for whoever audits it. It holds no erased value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from woodrat.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Certificate:
    """What one erasure did, or would do."""

    scope: str
    """What it was asked for by: `entity`, `field`, `source`, `agent` or `subject`."""
    reason: str
    """Why."""
    agent: str
    """Who asked for it."""
    tenant: str
    """Whose log it is."""
    log: str | None
    """The log's name."""
    erased_at: str | None
    """The log's time of the erasure; none for a dry run."""
    position: int | None
    """Position of the `erasure` entry; none for a dry run."""
    positions: tuple[tuple[int, int], ...]
    """Positions whose bodies and nonces are gone, as ranges, first and last included."""
    kinds: Mapping[str, int]
    """How many entries went, by kind."""
    resaid: Mapping[str, int]
    """How many were said again without the erased parts, by kind."""
    resaid_ids: tuple[str, ...]
    """Ids of the observations and sources that were said again, as they are now."""
    returned: tuple[str, ...]
    """Fields, as REF#field, that show another value now: one that stood below what went."""
    receipts: int
    """Idempotency keys that were forgotten, because their reports or requests held what went."""
    quoting: tuple[int, ...]
    """Positions that were found by a text they quote."""
    short: Mapping[str, int]
    """Fields with values too short to be looked for in texts, and the length of the shortest."""
    shared: Mapping[str, tuple[int, ...]]
    """Fields with values that others state too, and positions where they do; there they still stand."""
    unsearched: int
    """Recorded values that had been cut for their size, whose missing parts nobody can search."""
    derived: tuple[str, ...]
    """What is derived from the log, and was dropped and made again without what went."""
    purged: bool
    """Whether nothing of it is left in the files; otherwise someone was in the way, and `finish` completes it."""
    hits: Mapping[str, int]
    """Per file, how often a text that went was found in it afterwards; empty when nowhere."""
    scanned: tuple[str, ...]
    """Files that were searched for it, byte by byte."""
    root_before: str
    """Root of the log's tree before, in hex."""
    root: str
    """Root of the log's tree afterwards, in hex. Every proof against an earlier root still holds."""
    dry_run: bool
    """Whether nothing was erased."""
    warnings: tuple[str, ...]
    """What is left to do elsewhere."""

    @property
    def complete(self) -> bool:
        """Whether it is gone from every file of the store."""
        return not self.dry_run and self.purged and not self.hits

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as plain JSON."""
        return {
            "scope": self.scope,
            "reason": self.reason,
            "agent": self.agent,
            "tenant": self.tenant,
            "log": self.log,
            "erased_at": self.erased_at,
            "position": self.position,
            "positions": [list(pair) for pair in self.positions],
            "kinds": dict(self.kinds),
            "resaid": dict(self.resaid),
            "resaid_ids": list(self.resaid_ids),
            "returned": list(self.returned),
            "receipts": self.receipts,
            "quoting": list(self.quoting),
            "short": dict(self.short),
            "shared": {name: list(found) for name, found in self.shared.items()},
            "unsearched": self.unsearched,
            "derived": list(self.derived),
            "purged": self.purged,
            "hits": dict(self.hits),
            "scanned": list(self.scanned),
            "root_before": self.root_before,
            "root": self.root,
            "complete": self.complete,
            "dry_run": self.dry_run,
            "warnings": list(self.warnings),
        }
