"""Certificate: what an erasure took, for whoever asked for it and for whoever audits it. It holds no erased value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from woodrat import record_json
from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.erasure.plan import Plan


FINISH: Final = "Pending: someone is reading an older state or writing. Run `woodrat erase --finish` later."
"""What is said of an erasure whose bytes are still in the files."""
COMPACT: Final = (
    "Pending: the file still holds copies in its free space. `woodrat erase --finish` compacts it, and writers wait "
    "meanwhile."
)
"""What is said of an erasure after which the search found something."""
STILL: Final = "A text that went still stands in a file; the entries at `shared` positions may hold it."
"""What is said if the search still finds something in a file that was compacted."""


@dataclass(frozen=True, slots=True)
class Stays(Record):
    """Something that an erasure leaves, and why."""

    what: str
    """What it is."""
    why: str
    """Why it stays, and what it gives away."""


ALWAYS: Final = (
    Stays(
        "positions, times, kinds and commitments of the erased entries",
        "every earlier proof needs them; the nonces that salted the commitments are gone, so nothing can be guessed",
    ),
    Stays(
        "commitments to the requests of the writes they were in",
        "proofs need them; each had a nonce of its own, which is gone with key, digest and report",
    ),
    Stays(
        "the erasure entry, here and in the keys folder: who asked, when, why, and MACs of records, names and keys",
        "they stop its return; without the erasure key nothing can be tried against them",
    ),
    Stays(
        "MACs of what was looked up, in a server's read audit",
        "the audit says who looked, and never at whom; without the erasure key nothing can be tried against them",
    ),
    Stays(
        "backups, copies and exports made before",
        "they are out of reach; the keys folder has those that are opened, restored or imported with it forget too",
    ),
    Stays(
        "what the file system, the disk and the server's callers keep",
        "old blocks, swap space, logs and answers already given are below or beyond the ledger",
    ),
)
"""What every erasure leaves."""


def what_stays(plan: Plan) -> tuple[Stays, ...]:
    """Return what one erasure leaves, and why."""
    found = list(ALWAYS)
    if plan.short:
        why = "they are too short to be looked for in texts; where a name says whose they are, they are gone"
        found.append(Stays(f"values of {', '.join(sorted(plan.short))} inside texts of others", why))
    if plan.shared:
        why = "others state the same; the positions are listed under shared"
        found.append(Stays(f"values of {', '.join(sorted(plan.shared))} where others state them", why))
    if plan.unsearched:
        why = "of a cut value only the beginning was kept, and bytes say no words; their runs did not read what went"
        found.append(Stays(f"{plan.unsearched} values of runs that were cut or are bytes", why))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Certificate(Record):
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
    """Recorded values that nobody can search whole: cut for their size, or bytes that are no text."""
    derived: tuple[str, ...]
    """What is derived from the log, and was dropped and made again without what went."""
    purged: bool
    """Whether no file keeps older versions of its pages; otherwise someone is in the way, and `finish` completes it."""
    searched: bool
    """Whether every file was searched for it afterwards, from the first byte to the last."""
    hits: Mapping[str, int]
    """Per file, how often a text that went was found in it afterwards; empty when nowhere."""
    scanned: tuple[str, ...]
    """Files that were searched for it, byte by byte; none where nothing is kept in files and rows were searched."""
    scanned_bytes: int | None
    """How many bytes that was; none in files that hold other tenants' bytes too."""
    stays: tuple[Stays, ...]
    """What is left that has to do with it, and why it must or may stay."""
    root_before: str
    """Root of the log's tree before, in hex."""
    root: str
    """Root of the log's tree afterwards, in hex. Every proof against an earlier root still holds."""
    dry_run: bool
    """Whether nothing was erased."""
    warnings: tuple[str, ...]
    """What is left to do elsewhere."""

    @record_json.derived
    def complete(self) -> bool:
        """Whether every file of the store was searched and holds nothing of it; never true without a search."""
        return not self.dry_run and self.purged and self.searched and not self.hits
