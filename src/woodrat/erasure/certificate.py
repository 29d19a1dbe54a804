"""Certificate: the effects of an erasure, for its requester and for auditors. It holds no erased value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from woodrat import record_json
from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.erasure.plan import Plan


FINISH: Final = "Pending: someone is reading an older state or writing. Run `woodrat erase --finish` later."
"""Notice while erased bytes are still in the files."""
COMPACT: Final = (
    "Pending: the file still holds copies in its free space. `woodrat erase --finish` compacts it, and writers wait "
    "meanwhile."
)
"""Notice after a search that found erased bytes."""
STILL: Final = "A text that went still stands in a file; the entries at `shared` positions may hold it."
"""Notice if the search still finds erased bytes in a compacted file."""


@dataclass(frozen=True, slots=True)
class Stays(Record):
    """Something that an erasure leaves, and why."""

    what: str
    """Its name."""
    why: str
    """The reason why it stays, and what it reveals."""


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
"""Remains of every erasure."""


def what_stays(plan: Plan) -> tuple[Stays, ...]:
    """Return the remains of one erasure, with the reasons."""
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
    """The effects of one erasure, done or planned."""

    scope: str
    """Its scope: `entity`, `field`, `source`, `agent` or `subject`."""
    reason: str
    """Why."""
    agent: str
    """Who asked for it."""
    tenant: str
    """The tenant."""
    log: str | None
    """The log's name."""
    erased_at: str | None
    """The log's time of the erasure; none for a dry run."""
    position: int | None
    """Position of the `erasure` entry; none for a dry run."""
    positions: tuple[tuple[int, int], ...]
    """Positions whose bodies and nonces are gone, as inclusive ranges."""
    kinds: Mapping[str, int]
    """How many entries went, by kind."""
    resaid: Mapping[str, int]
    """How many were said again without the erased parts, by kind."""
    resaid_ids: tuple[str, ...]
    """Ids of the observations and sources that were said again, as they are now."""
    returned: tuple[str, ...]
    """Fields, as REF#field, that show another value now: a claim that lost against the erased one."""
    receipts: int
    """Forgotten idempotency keys, whose reports or requests held erased data."""
    quoting: tuple[int, ...]
    """Positions that were found by a text they quote."""
    short: Mapping[str, int]
    """Fields with values too short to be looked for in texts, and the length of the shortest."""
    shared: Mapping[str, tuple[int, ...]]
    """Fields with values that others state too, and positions where they do; there they still stand."""
    unsearched: int
    """Recorded values that cannot be searched whole: cut for their size, or bytes that are no text."""
    derived: tuple[str, ...]
    """Derived data that was dropped and made again without the erased data."""
    purged: bool
    """True if no file keeps older versions of its pages; otherwise a reader is in the way, and `finish` completes it.
    """
    searched: bool
    """Whether every file was searched for it afterwards, from the first byte to the last."""
    hits: Mapping[str, int]
    """Per file, how often a text that went was found in it afterwards; empty when nowhere."""
    scanned: tuple[str, ...]
    """Files that were searched byte by byte; None for a ledger without files, whose rows were searched."""
    scanned_bytes: int | None
    """How many bytes that was; none in files that hold other tenants' bytes too."""
    stays: tuple[Stays, ...]
    """Remains that are related to it, and why they must or may stay."""
    root_before: str
    """Root of the log's tree before, in hex."""
    root: str
    """Root of the log's tree afterwards, in hex. Every proof against an earlier root still holds."""
    dry_run: bool
    """Whether nothing was erased."""
    warnings: tuple[str, ...]
    """Work left elsewhere."""

    @record_json.derived
    def complete(self) -> bool:
        """Whether every file of the store was searched and holds nothing of it; never true without a search."""
        return not self.dry_run and self.purged and self.searched and not self.hits
