"""Leaves: what the fingerprint of a log is made of, in as few bytes as it takes.

There is one for every entity, so a million of them must fit into memory, and into what a process hands back: each is
two digests, one after the other, among others that begin with the same byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from woodrat.state import fingerprint

_DIGEST: Final = fingerprint.DIGEST_BYTES
_LEAF: Final = 2 * _DIGEST


class Leaves:
    """(entity, value) digests, of which each entity has one."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: dict[int, bytearray] = {}

    def __len__(self) -> int:
        return sum(map(len, self._parts.values())) // _LEAF

    def add(self, entity: bytes, value: bytes) -> None:
        """Add the leaf of an entity."""
        self._parts.setdefault(entity[0], bytearray()).extend(entity + value)

    def take(self, others: Leaves) -> None:
        """Add the leaves of other entities."""
        for first, part in others._parts.items():
            self._parts.setdefault(first, bytearray()).extend(part)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all leaves, by entity; a part of them is in memory twice meanwhile."""
        for first in sorted(self._parts):
            part = bytes(self._parts[first])
            for leaf in sorted(part[at : at + _LEAF] for at in range(0, len(part), _LEAF)):
                yield leaf[:_DIGEST], leaf[_DIGEST:]
