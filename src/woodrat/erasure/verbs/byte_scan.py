"""The byte scan: after an erasure, every file is searched for what went, from its first byte to its last.

It takes one pass over the files, holds no lock, and can be broken off and gone on with where it stopped. What is sought
is held in memory alone, by the process that erased: written down anywhere it would be one more copy to erase. A process
that only finishes an erasure of another therefore searches nothing, and says so.

A file that tenants share is searched as a whole. Where another tenant holds the very same bytes, finding them says
nothing of this one, and must not show: then the rows of this tenant are searched instead.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from woodrat.erasure.quotes import Finder
from woodrat.record_json import Record, derived
from woodrat.records import dataclass, field

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.engines.port import Engine

SCAN_BYTES: Final = 4 * 1_048_576
"""How much of a file is searched at a time."""
FEW: Final = 512
"""Up to this many texts are looked for one by one, each as fast as the machine can."""
ROWS: Final = "rows"
"""Where something was found that stands in no file."""

_PENDING: WeakKeyDictionary[Engine, dict[TenantId, list[ByteScan]]] = WeakKeyDictionary()
"""Searches that did not come to their end, by engine and tenant."""
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Finished(Record):
    """How far it came with what an erasure left in the files."""

    purged: bool
    """Whether the files were made anew without what went; otherwise someone was in the way."""
    searched: bool
    """Whether every file was searched afterwards; only the process that erased knows what to look for."""
    scanned: tuple[str, ...] = ()
    """The files that were searched."""
    scanned_bytes: int | None = None
    """How many bytes that was; none where other tenants' bytes are among them."""
    hits: Mapping[str, int] = field(default_factory=dict)
    """Per file, how often something that went was found in it."""

    @derived
    def complete(self) -> bool:
        """Whether all files were searched and nothing was found."""
        return self.purged and self.searched and not self.hits


UNFINISHED: Final = Finished(purged=False, searched=False)
"""Nothing was done yet."""


class ByteScan:
    """One search of all files for some bytes; `go_on` begins it, or goes on where it was broken off."""

    def __init__(self, engine: Engine, tenant: TenantId, sought: Iterable[bytes]) -> None:
        self._storage = engine.storage(tenant)
        self.sought = frozenset(sought)
        self._overlap = max(map(len, self.sought), default=1) - 1
        self._waiting: list[str] | None = None
        self._offset = 0
        self._bytes = 0
        self._scanned: list[str] = []
        self._found: dict[str, Counter[bytes]] = {}
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


def purge(engine: Engine, tenant: TenantId, sought: Iterable[bytes]) -> Finished:
    """Take what was erased out of every file, and search them for it. What is put off or broken off can be finished."""
    return _purge(engine, tenant, ByteScan(engine, tenant, sought))


def finish(context: Context) -> Finished:
    """Purge if that is due, and go on with the searches that were put off, if this process knows what to look for."""
    engine, tenant = context.engine, context.tenant
    with _LOCK:
        waiting = _PENDING.get(engine, {}).pop(tenant, [])
    if not waiting:
        return Finished(purged=engine.purge(), searched=False)
    scan = waiting[0]
    if len(waiting) > 1:
        scan = ByteScan(engine, tenant, frozenset().union(*(one.sought for one in waiting)))
    return _purge(engine, tenant, scan)


def _purge(engine: Engine, tenant: TenantId, scan: ByteScan) -> Finished:
    try:
        if engine.purge():
            scan.go_on()
    finally:
        if scan.finished is None:
            with _LOCK:
                _PENDING.setdefault(engine, {}).setdefault(tenant, []).append(scan)
    return scan.finished or UNFINISHED
