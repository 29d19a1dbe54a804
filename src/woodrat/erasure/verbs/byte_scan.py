"""Byte scan: after an erasure, every file is searched for erased data, from its first byte to its last.

The search terms are kept, sealed, until a search finds none of them (`pending_search.py`). Without the erasure key
there is no search, and the certificate says so. A search takes one pass over the files while a view is open: SQLite
then keeps every version of a page since, so nothing moves from an unsearched part to a searched one. An interrupted
search starts again.

If it finds something, the file has to be compacted while writers wait; `finish` does so on request.

A file that tenants share is searched as a whole. If another tenant has the same bytes, a match proves nothing about
this one, and must not be visible: then the rows of this tenant are searched instead.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from woodrat.erasure.certificate import COMPACT, FINISH, STILL, Certificate, Stays
from woodrat.erasure.quotes import Finder
from woodrat.erasure.verbs import pending_search
from woodrat.record_json import Record, derived
from woodrat.records import dataclass, field, replace

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.engines import records
    from woodrat.engines.engine import Engine, Storage
    from woodrat.erasure.verbs.pending_search import PendingSearch

SCAN_BYTES: Final = 4 * 1_048_576
"""Bytes of a file searched at a time."""
FEW: Final = 512
"""Up to this many texts are searched one by one, each at full machine speed."""
ROWS: Final = "rows"
"""The place of a match that is in no file."""

Compact = Literal["never", "if_found", "always"]
"""When the file is compacted: never, if the search found something, or in any case."""


@dataclass(frozen=True, slots=True)
class Compaction(Record):
    """Cost of rewriting the file without the erased data, estimated or measured."""

    estimated_seconds: float
    """Estimated time that other writers would wait."""
    seconds: float | None
    """Time that they waited; None without a compaction."""
    size_bytes: int | None
    """How large the file was before; none, as all sizes, in a file that tenants share."""
    size_after_bytes: int | None
    """How large it is afterwards."""
    needed_bytes: int | None
    """Required free disk space."""


@dataclass(frozen=True, slots=True)
class Finished(Record):
    """The progress of removing erased data from the files."""

    purged: bool
    """True if no file keeps older versions of its contents; otherwise a reader is in the way."""
    searched: bool
    """True if every file was searched afterwards; the search terms are sealed with the erasure key."""
    scanned: tuple[str, ...] = ()
    """The files that were searched."""
    scanned_bytes: int | None = None
    """Number of searched bytes; None if other tenants' bytes are among them."""
    hits: Mapping[str, int] = field(default_factory=dict)
    """Per file, the number of matches of erased bytes."""
    certificates: tuple[Certificate, ...] = ()
    """The effects of the erasures behind the search."""
    blockers: tuple[str, ...] = ()
    """The blocking process, if known."""
    compaction: Compaction | None = None
    """The cost of compacting the file, measured or estimated; None if it was not necessary."""

    @derived
    def complete(self) -> bool:
        """Whether all files were searched without a match."""
        return self.purged and self.searched and not self.hits


def scan(engine: Engine, tenant: TenantId, sought: Iterable[bytes], words: Iterable[bytes] = ()) -> Finished:
    """Search all files for some bytes; without files, the rows of the tenant.

    `words` count only if no row contains them: they may have been written again since.
    """
    storage, texts, again = engine.storage(tenant), frozenset(sought), frozenset(words)
    files = storage.files()
    scanned: list[str] = []
    found: dict[str, Counter[bytes]] = {}
    searched = 0
    if files:
        with engine.view(tenant) as view:
            view.head()  # from here on pages are not moved
            for path in files:
                name = os.path.basename(path)
                found[name] = Counter()
                searched += _count(storage, path, texts | again, found[name])
                scanned.append(name)
    shared = storage.shared
    hits = {name: count for name, counted in found.items() if (count := _counted(storage, counted, again, shared))}
    if not scanned and (rows := sum(storage.holding(text, others=False) for text in texts)):
        hits[ROWS] = rows
    return Finished(True, True, tuple(scanned), None if shared else searched, hits)


def _count(storage: Storage, path: str, sought: frozenset[bytes], found: Counter[bytes]) -> int:
    """Count occurrences of some bytes in a file; return the number of searched bytes."""
    overlap = max(map(len, sought), default=1) - 1
    done = 0
    while True:
        start = max(0, done - overlap)
        data = storage.read(path, start, done - start + SCAN_BYTES)
        fresh = len(data) - (done - start)
        if fresh <= 0:
            return done
        # A match that ends in the previous part was counted there.
        found.update(text for at, text in _places(data, sought) if start + at + len(text) > done)
        done += fresh


def _counted(storage: Storage, found: Counter[bytes], words: frozenset[bytes], shared: bool) -> int:
    """Return the number of matches that neither another tenant nor a row with the word explains."""
    count = 0
    for text, times in found.items():
        if shared and storage.holding(text, others=True):
            count += 0 if text in words else storage.holding(text, others=False)
        elif text not in words or not storage.holding(text, others=False):
            count += times
    return count


def _places(data: bytes, sought: frozenset[bytes]) -> Iterable[tuple[int, bytes]]:
    """Yield the position and the bytes of each match."""
    if len(sought) > FEW:
        yield from Finder(sought).places(data)
        return
    for text in sought:
        at = data.find(text)
        while at >= 0:
            yield at, text
            at = data.find(text, at + 1)


def finish(
    context: Context, own: PendingSearch | None = None, *, compact: Compact = "if_found", dry_run: bool = False
) -> Finished:
    """Remove erased data from every file, and search the files for it; compact the file if that is necessary and
    requested.

    Without the erasure key the files are not searched, and no erasure is declared complete. `own` is the search of an
    erasure that was just made, where it is too large to be noted. A dry run estimates the cost of a compaction.
    """
    engine, tenant = context.engine, context.tenant
    if dry_run:
        estimated = _compaction(engine, tenant, engine.estimate()) if engine.compacts else None
        return Finished(engine.purged(), searched=False, compaction=estimated)
    search = _pending(context) or own
    compaction: Compaction | None = None
    if engine.compacts and compact == "always":
        compaction = _compaction(engine, tenant, engine.compact())
    finished = _searched(engine, tenant, search)
    if engine.compacts and finished.hits and compact == "if_found":
        compaction = _compaction(engine, tenant, engine.compact())
        finished = _searched(engine, tenant, search)
    finished = replace(finished, compaction=compaction)
    if search is None or not finished.searched:
        return finished
    if not engine.compacts or compaction is not None or not finished.hits:
        pending_search.settle(engine, tenant, search)
        completed = [_completed(one, finished) for one in search.certificates]
    else:
        completed = [_completed(one, finished, COMPACT) for one in search.certificates]
    return replace(finished, certificates=tuple(with_copies(engine, tenant, one) for one in completed))


def _pending(context: Context) -> PendingSearch | None:
    """Return the pending search terms, if this key sealed them."""
    if context.erasures is None:
        return None
    with context.engine.view(context.tenant) as view:
        if not pending_search.is_pending(view):
            return None
        return pending_search.pending(view, context.erasures.keys.erasure)


def _searched(engine: Engine, tenant: TenantId, search: PendingSearch | None) -> Finished:
    """Empty the write-ahead log, then search the files."""
    if not engine.purge():
        return Finished(purged=False, searched=False, blockers=tuple(engine.blockers()))
    if search is None:
        return Finished(purged=True, searched=False)
    return scan(engine, tenant, search.sought, search.words)


def _compaction(engine: Engine, tenant: TenantId, found: records.Compaction) -> Compaction:
    """Return the cost of a compaction, without the sizes of a file that several tenants share."""
    shared = engine.storage(tenant).shared
    return Compaction(
        found.estimated_seconds,
        found.seconds,
        None if shared else found.size_bytes,
        None if shared else found.size_after_bytes,
        None if shared else found.needed_bytes,
    )


def with_copies(engine: Engine, tenant: TenantId, certificate: Certificate) -> Certificate:
    """Return a certificate that also names the copies around the storage, such as a server's write-ahead log."""
    copies = engine.storage(tenant).beyond_reach()
    return replace(certificate, stays=(*certificate.stays, *(Stays(what, why) for what, why in copies)))


def _completed(certificate: Certificate, finished: Finished, remedy: str = STILL) -> Certificate:
    """Return a certificate with the results of the purge and the search."""
    warnings = tuple(text for text in certificate.warnings if text != FINISH)
    if finished.hits:
        warnings = (remedy, *warnings)
    return replace(
        certificate,
        purged=finished.purged,
        searched=finished.searched,
        hits=dict(finished.hits),
        scanned=finished.scanned,
        scanned_bytes=finished.scanned_bytes,
        warnings=warnings,
    )
