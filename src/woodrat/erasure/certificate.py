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
STILL: Final = "An erased text still occurs in a file; the entries at `shared` positions may contain it."
"""Notice if the search still finds erased bytes in a compacted file."""


@dataclass(frozen=True, slots=True)
class Stays(Record):
    """Something that an erasure leaves, and why."""

    what: str
    """Its name."""
    why: str
    """The reason why it stays, and the information it reveals."""


ALWAYS: Final = (
    Stays(
        "positions, times, kinds and commitments of the erased entries",
        "every earlier proof needs them; the nonces that salted the commitments are gone, so nothing can be guessed",
    ),
    Stays(
        "commitments to the requests of the writes they were in",
        "proofs need them; the nonce of each is gone, with key, digest and report",
    ),
    Stays(
        "the erasure entry, here and in the keys folder: requester, time, reason, and MACs of records, names and keys",
        "they stop its return; without the erasure key nothing can be tried against them",
    ),
    Stays(
        "MACs of the targets of reads, in a server's read audit",
        "the audit names the reader, and never the target; without the erasure key nobody can test guesses against "
        "the MACs",
    ),
    Stays(
        "backups, copies and exports made before",
        "they are out of reach; copies that are opened, restored or imported with the keys folder are erased too",
    ),
    Stays(
        "data kept by the file system, the disk and the server's callers",
        "old blocks, swap space, logs and answers already given are below or beyond the ledger",
    ),
)
"""Remains of every erasure."""


def what_stays(plan: Plan) -> tuple[Stays, ...]:
    """Return the remains of one erasure, with the reasons."""
    found = list(ALWAYS)
    if plan.short:
        why = "they are too short for a search in texts; values under a name that identifies their owner are gone"
        found.append(Stays(f"values of {', '.join(sorted(plan.short))} inside texts of others", why))
    if plan.shared:
        why = "others state the same; the positions are listed under shared"
        found.append(Stays(f"values of {', '.join(sorted(plan.shared))} where others state them", why))
    if plan.unsearched:
        why = "a cut value has only its beginning, and bytes contain no words; their runs did not read the erased data"
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
    """The requester."""
    tenant: str
    """The tenant."""
    log: str | None
    """The log's name."""
    erased_at: str | None
    """The log's time of the erasure; None for a dry run."""
    position: int | None
    """Position of the `erasure` entry; None for a dry run."""
    positions: tuple[tuple[int, int], ...]
    """Positions with removed bodies and nonces, as inclusive ranges."""
    kinds: Mapping[str, int]
    """Number of erased entries, by kind."""
    resaid: Mapping[str, int]
    """Number of entries rewritten without the erased parts, by kind."""
    resaid_ids: tuple[str, ...]
    """Current ids of the rewritten observations and sources."""
    returned: tuple[str, ...]
    """Fields, as REF#field, with another value now: a claim that lost against the erased one."""
    receipts: int
    """Forgotten idempotency keys, whose reports or requests contained erased data."""
    quoting: tuple[int, ...]
    """Positions that were found by a text they quote."""
    short: Mapping[str, int]
    """Fields with values too short for a search in texts, and the length of the shortest."""
    shared: Mapping[str, tuple[int, ...]]
    """Fields with values that other entries state too, and the positions of those."""
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
    """Per file, how often erased text was found in it afterwards; empty if nowhere."""
    scanned: tuple[str, ...]
    """Files searched byte by byte; None for a ledger without files, whose rows were searched."""
    scanned_bytes: int | None
    """Number of searched bytes; None in files shared with other tenants."""
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
        """Whether every file of the store was searched and contains none of it; never true without a search."""
        return not self.dry_run and self.purged and self.searched and not self.hits
