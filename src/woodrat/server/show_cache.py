"""Spelling: what is believed of entities as JSON, spelled once as long as it stays what it is.

Where a value came from takes far longer to tell than to look at. As long as a tenant's log does not grow, an answer is
given again as it is: nothing was committed at all, or one look at an entity shows that the log ends where it did. When
it has grown an entity is looked at again; of packed state of the very same bytes under the same rules only the position
changes. So nothing that the log says ever has to be taken back; what is derived from it may be repaired without the log
growing, and whoever serves forgets the answers themselves from time to time.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from woodrat.ledger import reads

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.api.ledger import Ledger
    from woodrat.merge.snapshot import Snapshot

KEPT_BYTES_MAX: Final = 4 * 1_048_576
"""How many bytes of answers are kept at hand, at most: as they are, and as much again by what they tell of."""
EACH_BYTES_MAX: Final = 65_536
"""The longest answer that is kept at hand."""
_POSITION: Final = b',"position":'


class Shown(NamedTuple):
    """A snapshot as it is sent."""

    body: bytes
    """The snapshot as JSON."""
    tag: bytes
    """The entity tag: the entity's version, and a digest of all that is told but the position it was read at."""
    partial: bool = False
    """Whether a large collection is shown in part."""


def shown(snapshot: Snapshot) -> Shown:
    """Return a snapshot as it is sent."""
    told, around, partial = _told(snapshot)
    return Shown(told, _tag(snapshot.version, *around), partial)


def _told(snapshot: Snapshot) -> tuple[bytes, tuple[bytes, bytes], bool]:
    """Return a snapshot as JSON, what stands before and after the position in it, and whether it is shown in part."""
    said = snapshot.to_json()
    told = orjson.dumps(said)
    # Position, version and digest come last, and the last two hold nothing that anybody said.
    start = told.rindex(_POSITION) + len(_POSITION)
    return told, (told[:start], told[told.index(b",", start) :]), bool(said["more"])


def _tag(version: int, *parts: bytes) -> bytes:
    """Return the tag of an answer; weak, as the position in it moves on while nothing is said of the entity.

    The version alone would not do: another schema, or an erasure, changes what is told of an entity nobody spoke of.
    """
    found = blake2b(digest_size=8)
    for part in parts:
        found.update(part)
    return b'W/"%d-%b"' % (version, found.hexdigest().encode())


class Spelling:
    """Answers `show` of the present. One event loop uses it; no lock is needed."""

    def __init__(self, stamp: Callable[[], bytes | None], *, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._now = stamp
        self._bytes_max = bytes_max
        self._stamp: bytes | None = None
        self._sure: set[str] = set()
        """Tenants whose logs are known to have ended where `answers` says when the stamp was `_stamp`."""
        self.answers: dict[str, tuple[int, dict[str, Shown]]] = {}
        """By tenant the end of its log, and the answers given at it by reference."""
        self.told_bytes = 0
        """How many bytes of answers are kept as they are."""
        self.parts: OrderedDict[tuple[Any, ...], tuple[bytes, bytes, bytes]] = OrderedDict()
        """What stands before and after the position, and the tag, by likeness; those used last at the end."""
        self.kept_bytes = 0
        """How many bytes are kept by likeness."""

    def show(self, ledger: Ledger, ref: str, *, details: bool = False) -> Shown | None:
        """Return what is believed about an entity; `None` where one look does not tell, as of a large collection."""
        found = self._show(ledger, ref)
        return None if found is None or (details and found.partial) else found

    def _show(self, ledger: Ledger, ref: str) -> Shown | None:
        tenant = ledger.tenant
        stamp = self._now()  # before the entity is looked at: what is newer than the stamp is never told for it
        if stamp is None or stamp != self._stamp:
            self._stamp = stamp
            self._sure.clear()
        elif tenant in self._sure:
            found = self.answers[tenant][1].get(ref)
            if found is not None:
                return found
        snapshot = reads.show_soon(ledger.context, ref)
        if snapshot is None:
            return None
        position, told = self.answers.get(tenant) or (None, {})
        if position != snapshot.position:
            self.told_bytes -= sum(len(shown.body) for shown in told.values())
            told = {}
            self.answers[tenant] = (snapshot.position, told)
        if stamp is not None:
            self._sure.add(tenant)
        found = told.get(ref)
        if found is None:
            found = self.spell(snapshot)
            self._tell_again(told, ref, found)
        return found

    def forget(self) -> None:
        """Look at every entity again before it is told of: derived data may have been repaired, the log as it was."""
        self.answers.clear()
        self._sure.clear()
        self.told_bytes = 0

    def _tell_again(self, told: dict[str, Shown], ref: str, shown: Shown) -> None:
        """Keep an answer as it is; where there are too many, begin anew."""
        if len(shown.body) > EACH_BYTES_MAX:
            return
        if self.told_bytes + len(shown.body) > self._bytes_max:
            for _, answers in self.answers.values():
                answers.clear()
            self.told_bytes = 0
        told[ref] = shown
        self.told_bytes += len(shown.body)

    def spell(self, snapshot: Snapshot) -> Shown:
        """Return a snapshot as it is sent."""
        likeness = snapshot.likeness
        if likeness is None:
            return shown(snapshot)
        found = self.parts.get(likeness)
        if found is not None:
            self.parts.move_to_end(likeness)
            before, after, tag = found
            return Shown(b"%b%d%b" % (before, snapshot.position, after), tag)
        told, around, partial = _told(snapshot)
        tag = _tag(snapshot.version, *around)
        if len(told) <= EACH_BYTES_MAX and not partial:
            self._keep(likeness, (*around, tag))
        return Shown(told, tag, partial)

    def _keep(self, likeness: tuple[Any, ...], kept: tuple[bytes, bytes, bytes]) -> None:
        self.parts[likeness] = kept
        self.kept_bytes += _size(likeness, kept)
        while self.kept_bytes > self._bytes_max:
            self.kept_bytes -= _size(*self.parts.popitem(last=False))


def _size(likeness: tuple[Any, ...], kept: tuple[bytes, bytes, bytes]) -> int:
    return len(likeness[0]) + sum(map(len, kept))
