"""Erased: what a ledger knows of its own erasures, so that what is gone stays gone and says so.

Nothing here is asked while the log holds no erasure, and without the erasure key nothing can be told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from woodrat.canon.ids import Ref
from woodrat.context import ErasureKeys, Erasures
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.view import View
from woodrat.errors import NotFound
from woodrat.log import erasure

SEARCH: Final = "erasure_search"
"""Where it is noted what an unfinished erasure still has to look for, sealed."""
FORGETTING: Final = "forgetting"
"""Noted while what was taken over from elsewhere is still to be made to forget."""
UNFINISHED: Final = (SEARCH, FORGETTING)
"""Notes about erasures that are not finished. They do not follow from the log, so a rebuild leaves them as they are."""


def erased_since(view: View, position: int) -> bool:
    """Return whether anything was erased after a position.

    Whoever reads in a view and writes later, as every step of an index does, asks it in the transaction that writes:
    what was read by then may hold what is gone by now.
    """
    return next(view.entries(position, kinds={erasure.KIND}), None) is not None


class LogErasures:
    """The erasures of one tenant's log, read once and followed."""

    def __init__(self, keys: Callable[[], ErasureKeys]) -> None:
        self._find = keys
        self._keys: ErasureKeys | None = None
        self._key: bytes | None = None
        self._through = BEFORE_ALL
        self._lock = threading.Lock()
        self._macs: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._links: dict[str, erasure.Link] = {}
        self._used: dict[str, int] = {}

    def follow(self, view: View) -> bool:
        """Take in what was erased since; return whether anything was ever erased and the key is here."""
        head = view.head().position
        if head > self._through:
            with self._lock:
                for entry in view.entries(self._through, head, {erasure.KIND}):
                    if entry.body is not None:
                        found = erasure.stored(entry.body)
                        self._macs.update(dict.fromkeys(found.macs, entry.position))
                        self._names.update(dict.fromkeys(found.names, entry.position))
                        self._links.update(found.links)
                        if entry.envelope.origin is None:  # idempotency keys are local to the log that took them
                            self._used.update(dict.fromkeys(found.keys, entry.position))
                self._through = head
        if not self._macs:
            return False
        if self._key is None:
            self._key = self.keys.erasure
        return self._key is not None

    @property
    def keys(self) -> ErasureKeys:
        """The folder of keys."""
        if self._keys is None:
            self._keys = self._find()
        return self._keys

    @property
    def key(self) -> bytes | None:
        """The erasure key, once it was needed."""
        return self._key

    @property
    def macs(self) -> frozenset[str]:
        """What was erased, as MACs."""
        return frozenset(self._macs)

    def record(self, kind: str, body: bytes) -> int | None:
        """Return the position of the erasure that took a record; `follow` comes first."""
        return None if self._key is None else self._macs.get(erasure.record_mac(self._key, kind, body))

    def name(self, name: str) -> int | None:
        """Return the position of the erasure that took what goes by a name."""
        return None if self._key is None else self._names.get(erasure.name_mac(self._key, name))

    def idempotency_key(self, agent: str, key: str) -> int | None:
        """Return the position of the erasure that took what an agent's idempotency key was used for."""
        if self._key is None or not self._used:
            return None
        return self._used.get(erasure.idempotency_mac(self._key, agent, key))

    def field(self, ref: Ref, field: str) -> bool:
        """Return whether a field of an entity was erased."""
        return self.name(erasure.field_name(ref, field)) is not None

    def link(self, digest: bytes) -> erasure.Link | None:
        """Return what stands in place of an erased observation; none of one that was not erased."""
        return None if self._key is None else self._links.get(erasure.digest_mac(self._key, digest))


_NAMED = ("entity", "observation", "run", "source", "interpretation")


def told(view: View, erasures: Erasures, missing: NotFound) -> NotFound:
    """Return an error about something that is not there; one that says so where it was erased."""
    for part in _NAMED:
        name = missing.details.get(part)
        if isinstance(name, str) and erasures.follow(view):
            position = erasures.name(name)
            if position is not None:
                return NotFound(
                    f"{name}: erased at {position}. Nothing was changed. "
                    "The entry there says who asked for it, when and why.",
                    {**missing.details, "erased_at": position},
                )
    return missing
