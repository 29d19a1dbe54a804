"""Spelling: what is believed of entities as JSON, spelled once as long as it stays what it is.

Where a value came from takes far longer to tell than to look at. As long as nothing at all was committed, an answer is
given again as it is. After a commit an entity is looked at again: of packed state of the very same bytes under the same
rules only the position changes. So nothing ever has to be taken back.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.ledger.ledger import Ledger
    from woodrat.state.snapshot import Snapshot

KEPT_BYTES_MAX: Final = 16 * 1_048_576
"""How many bytes of answers are kept at hand, at most."""
EACH_BYTES_MAX: Final = 65_536
"""The longest answer that is kept at hand."""
TOLD_MAX: Final = 4_096
"""How many answers are given again as they are."""
_POSITION: Final = b',"position":'


class Shown(NamedTuple):
    """A snapshot as it is sent."""

    body: bytes
    """JSON, as `orjson` makes it of `to_json`."""
    version: int
    """The entity's version."""


class Spelling:
    """Answers `show` of the present. One event loop uses it; no lock is needed."""

    def __init__(
        self, stamp: Callable[[], bytes | None], *, bytes_max: int = KEPT_BYTES_MAX, told_max: int = TOLD_MAX
    ) -> None:
        self._now = stamp
        self._bytes_max, self._told_max = bytes_max, told_max
        self._stamp: bytes | None = None
        self._told: dict[tuple[str, str], Shown] = {}
        """Answers by tenant and reference, good as long as nothing was committed since `_stamp`."""
        self._kept: OrderedDict[tuple[Any, ...], tuple[bytes, bytes]] = OrderedDict()
        """What stands before and after the position, by likeness, those used last at the end."""
        self.bytes = 0
        """How many bytes are kept by likeness."""

    def show(self, ledger: Ledger, ref: str) -> Shown:
        """Return what is believed about an entity."""
        stamp = self._now()  # before the entity is looked at: what is newer than the stamp is never told for it
        if stamp != self._stamp or stamp is None:
            self._told.clear()
            self._stamp = stamp
        found = self._told.get((ledger.tenant, ref))
        if found is None:
            snapshot = ledger.show(ref)
            found = Shown(self.spell(snapshot), snapshot.version)
            if stamp is not None and len(self._told) < self._told_max and len(found.body) <= EACH_BYTES_MAX:
                self._told[ledger.tenant, ref] = found
        return found

    def spell(self, snapshot: Snapshot) -> bytes:
        """Return a snapshot as JSON."""
        likeness = snapshot.likeness
        if likeness is None:
            return orjson.dumps(snapshot.to_json())
        found = self._kept.get(likeness)
        if found is not None:
            self._kept.move_to_end(likeness)
            return b"%b%d%b" % (found[0], snapshot.position, found[1])
        told = orjson.dumps(snapshot.to_json())
        if len(told) <= EACH_BYTES_MAX:
            # Position, version and digest come last, and the last two hold nothing that anybody said.
            start = told.rindex(_POSITION) + len(_POSITION)
            self._keep(likeness, told[:start], told[told.index(b",", start) :])
        return told

    def _keep(self, likeness: tuple[Any, ...], before: bytes, after: bytes) -> None:
        self._kept[likeness] = (before, after)
        self.bytes += _size(likeness, (before, after))
        while self.bytes > self._bytes_max:
            self.bytes -= _size(*self._kept.popitem(last=False))


def _size(likeness: tuple[Any, ...], around: tuple[bytes, bytes]) -> int:
    return len(likeness[0]) + len(around[0]) + len(around[1])
