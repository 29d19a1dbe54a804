"""Memory tables: one tenant's log and everything derived from it, as the memory engine holds them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Any

from woodrat.canon.ids import Ref
from woodrat.engines.port import BEFORE_ALL, IndexRow, Kept, LastKept, Receipt, next_prefix
from woodrat.log.entry import Entry
from woodrat.log.tree import Frontier
from woodrat.records import dataclass, field
from woodrat.state.asof import Stored

Versions = tuple[tuple[int, bytes | None], ...]
"""A part of a collection from position to position."""


class MemoryIndex:
    """One ordered index."""

    __slots__ = ("keys", "lives")

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        """Every key that ever had a row, sorted."""
        self.lives: dict[bytes, tuple[IndexRow, ...]] = {}
        """By key the rows it had, by position; only the last can be true now."""

    def between(self, prefix: bytes, after: bytes | None = None, *, reverse: bool = False) -> Iterator[bytes]:
        """Yield the keys that begin with a prefix, in order, from after one on."""
        start, end = bisect_left(self.keys, prefix), bisect_left(self.keys, next_prefix(prefix))
        if after is not None and reverse:
            end = min(end, bisect_left(self.keys, after))
        elif after is not None:
            start = max(start, bisect_right(self.keys, after))
        for place in range(end - 1, start - 1, -1) if reverse else range(start, end):
            yield self.keys[place]

    def set(self, key: bytes, lives: tuple[IndexRow, ...]) -> None:
        """Let a key have these rows; without any it is gone."""
        if key in self.lives and not lives:
            del self.lives[key]
            del self.keys[bisect_left(self.keys, key)]
        elif lives:
            if key not in self.lives:
                insort(self.keys, key)
            self.lives[key] = lives


@dataclass(slots=True)
class MemoryTables:
    """One tenant's log and everything derived from it."""

    entries: list[Entry] = field(default_factory=list)
    recorded: list[str] = field(default_factory=list)
    leaves: list[bytes] = field(default_factory=list)
    frontier: Frontier = field(default_factory=Frontier)
    observations: dict[bytes, Stored] = field(default_factory=dict)
    in_order: list[Stored] = field(default_factory=list)
    observation_ids: dict[str, Stored] = field(default_factory=dict)
    namers: dict[bytes, list[Stored]] = field(default_factory=dict)
    by_entity: dict[bytes, list[Stored]] = field(default_factory=dict)
    entity_ids: dict[str, Ref] = field(default_factory=dict)
    by_name: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Types and keys of all entities, sorted."""
    current: dict[bytes, Kept] = field(default_factory=dict)
    lasting: dict[bytes, list[Kept]] = field(default_factory=dict)
    last_kept: dict[bytes, LastKept] = field(default_factory=dict)
    elements: dict[bytes, dict[str, dict[bytes, Versions]]] = field(default_factory=dict)
    """By the smallest entity of a fold, field and key: what was kept of a part of a collection, by position."""
    receipts: dict[tuple[str, str], Receipt] = field(default_factory=dict)
    cloned: int = BEFORE_ALL
    merged: dict[str, dict[int, int]] = field(default_factory=dict)
    indexes: dict[str, MemoryIndex] = field(default_factory=dict)
    meta: dict[str, bytes] = field(default_factory=dict)
    at_hand: dict[str, dict[Any, Any]] = field(default_factory=dict)
    """By index what readers made of it, until a row of it changes."""
