"""The byte scan: after an erasure, every file is searched for what went, from its first byte to its last.

It takes one pass over the files, holds no lock, and can be broken off and gone on with where it stopped, by any process
that has the erasure key: what is sought is noted, sealed, until the search has come to its end (`pending_search.py`).
Without the key nothing can be searched, and that is said.

A file that tenants share is searched as a whole. Where another tenant holds the very same bytes, finding them says
nothing of this one, and must not show: then the rows of this tenant are searched instead.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.engines.port import BeyondReach
from woodrat.erasure.certificate import FINISH, Certificate, Stays
from woodrat.erasure.quotes import Finder
from woodrat.erasure.verbs import pending_search
from woodrat.record_json import Record, derived
from woodrat.records import dataclass, field, replace

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.engines.port import Engine
    from woodrat.erasure.verbs.pending_search import PendingSearch

SCAN_BYTES: Final = 4 * 1_048_576
"""How much of a file is searched at a time."""
FEW: Final = 512
"""Up to this many texts are looked for one by one, each as fast as the machine can."""
ROWS: Final = "rows"
"""Where something was found that stands in no file."""
NOTED_EVERY: Final = 16
"""After how many parts it is noted how far a search is."""


@dataclass(frozen=True, slots=True)
class Finished(Record):
    """How far it came with what an erasure left in the files."""

    purged: bool
    """Whether the files were made anew without what went; otherwise someone was in the way."""
    searched: bool
    """Whether every file was searched afterwards; what to look for is sealed with the erasure key."""
    scanned: tuple[str, ...] = ()
    """The files that were searched."""
    scanned_bytes: int | None = None
    """How many bytes that was; none where other tenants' bytes are among them."""
    hits: Mapping[str, int] = field(default_factory=dict)
    """Per file, how often something that went was found in it."""
    certificates: tuple[Certificate, ...] = ()
    """What the erasures did that were finished by it."""

    @derived
    def complete(self) -> bool:
        """Whether all files were searched and nothing was found."""
        return self.purged and self.searched and not self.hits


UNFINISHED: Final = Finished(purged=False, searched=False)
"""Nothing was done yet."""


class ByteScan:
    """One search of all files for some bytes; `go_on` begins it, or goes on where it was broken off.

    `place` is where another process broke it off, as `place` of that one had it.
    """

    def __init__(
        self, engine: Engine, tenant: TenantId, sought: Iterable[bytes], place: Mapping[str, Any] | None = None
    ) -> None:
        self._storage = engine.storage(tenant)
        self.sought = frozenset(sought)
        self._overlap = max(map(len, self.sought), default=1) - 1
        self._waiting: list[str] | None = None
        self._offset = 0
        self._bytes = 0
        self._scanned: list[str] = []
        self._found: dict[str, Counter[bytes]] = {}
        if place is not None:
            self._go_to(place)
        self.finished: Finished | None = None
        """What came of it, once it is done."""

    def go_on(self, progress: Callable[[int, int], object] | None = None) -> Finished:
        """Search what has not been searched yet. Whatever `progress` raises breaks it off, and nothing is lost."""
        storage = self._storage
        if self._waiting is None:
            self._waiting = list(storage.files())
        while self._waiting:
            path = self._waiting[0]
            if self._part(path):
                self._scanned.append(os.path.basename(path))
                self._offset = 0
                del self._waiting[0]
            if progress is not None:
                progress(self._bytes, self._bytes + self._left())
        shared = storage.shared
        hits = {name: count for name, found in self._found.items() if (count := self._counted(found, shared))}
        if not self._scanned and (rows := sum(storage.holding(text, others=False) for text in self.sought)):
            hits[ROWS] = rows
        self.finished = Finished(True, True, tuple(self._scanned), None if shared else self._bytes, hits)
        return self.finished

    def place(self) -> dict[str, Any]:
        """Return where it is, without a word of what is sought."""
        texts = sorted(self.sought)
        return {
            "waiting": [os.path.basename(path) for path in self._waiting or ()],
            "offset": self._offset,
            "bytes": self._bytes,
            "scanned": self._scanned,
            "found": {
                name: {str(texts.index(text)): count for text, count in found.items()}
                for name, found in self._found.items()
            },
        }

    def _go_to(self, place: Mapping[str, Any]) -> None:
        """Go on where another process was; a file that is gone since needs no search."""
        texts = sorted(self.sought)
        files = {os.path.basename(path): path for path in self._storage.files()}
        known = {*place["scanned"], *place["waiting"]}
        waiting = [name for name in place["waiting"] if name in files]
        if waiting == place["waiting"]:
            self._offset = place["offset"]
        self._waiting = [files[name] for name in (*waiting, *(name for name in files if name not in known))]
        self._bytes, self._scanned = place["bytes"], list(place["scanned"])
        self._found = {
            name: Counter({texts[int(number)]: count for number, count in found.items()})
            for name, found in place["found"].items()
        }

    def _part(self, path: str) -> bool:
        """Search the next part of a file; return whether it was the last."""
        start = max(0, self._offset - self._overlap)
        data = self._storage.read(path, start, self._offset - start + SCAN_BYTES)
        fresh = len(data) - (self._offset - start)
        if fresh <= 0:
            return True
        # What ends in the part that was searched before was counted then.
        found = Counter(text for at, text in _places(data, self.sought) if start + at + len(text) > self._offset)
        self._found.setdefault(os.path.basename(path), Counter()).update(found)
        self._offset += fresh
        self._bytes += fresh
        return fresh < SCAN_BYTES

    def _left(self) -> int:
        return max(0, sum(map(_size, self._waiting or ())) - self._offset)

    def _counted(self, found: Counter[bytes], shared: bool) -> int:
        """Return how often something was found that no other tenant explains."""
        if not shared:
            return found.total()
        count = 0
        for text, times in found.items():
            holding = self._storage.holding
            count += holding(text, others=False) if holding(text, others=True) else times
        return count


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _places(data: bytes, sought: frozenset[bytes]) -> Iterable[tuple[int, bytes]]:
    """Yield where which of some bytes stands."""
    if len(sought) > FEW:
        yield from Finder(sought).places(data)
        return
    for text in sought:
        at = data.find(text)
        while at >= 0:
            yield at, text
            at = data.find(text, at + 1)


def finish(context: Context, own: PendingSearch | None = None) -> Finished:
    """Take what was erased out of every file, and search them for it, from where it was broken off.

    Without the erasure key the files are not searched, and nothing is said to be complete. `own` is the search of an
    erasure that was just made, where it is too large to be noted.
    """
    engine, tenant, erasures = context.engine, context.tenant, context.erasures
    if not engine.purge():
        return UNFINISHED
    with engine.view(tenant) as view:
        key = None if erasures is None or not pending_search.is_pending(view) else erasures.keys.erasure
        search = pending_search.pending(view, key) or own
        place = None if search is None else pending_search.place(view, search)
    if search is None:
        return Finished(purged=True, searched=False)
    scan = ByteScan(engine, tenant, search.sought, place)
    parts = 0

    def noted(done: int, total: int) -> None:
        nonlocal parts
        parts += 1
        if parts % NOTED_EVERY == 0:
            pending_search.note_place(engine, tenant, search, scan.place())

    finished = scan.go_on(noted)
    pending_search.settle(engine, tenant, search)
    completed = (_completed(one, finished) for one in search.certificates)
    return replace(finished, certificates=tuple(with_copies(engine, tenant, one) for one in completed))


def with_copies(engine: Engine, tenant: TenantId, certificate: Certificate) -> Certificate:
    """Return a certificate that also names the copies around the storage, such as a server's write-ahead log."""
    storage = engine.storage(tenant)
    copies = storage.beyond_reach() if isinstance(storage, BeyondReach) else ()
    return replace(certificate, stays=(*certificate.stays, *(Stays(what, why) for what, why in copies)))


def _completed(certificate: Certificate, finished: Finished) -> Certificate:
    """Return a certificate with what the purge and the search came to."""
    warnings = tuple(text for text in certificate.warnings if text != FINISH)
    if finished.hits:
        still = "A text that went still stands in a file; the entries at `shared` positions may hold it."
        warnings = (still, *warnings)
    return replace(
        certificate,
        purged=finished.purged,
        searched=finished.searched,
        hits=dict(finished.hits),
        scanned=finished.scanned,
        scanned_bytes=finished.scanned_bytes,
        warnings=warnings,
    )
