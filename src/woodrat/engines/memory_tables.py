"""Memory tables: one tenant's log and everything derived from it, as the memory engine holds them."""

from __future__ import annotations

from woodrat.canon.ids import Ref
from woodrat.engines.port import BEFORE_ALL, Kept, LastKept, Receipt
from woodrat.log.entry import Entry
from woodrat.log.tree import Frontier
from woodrat.records import dataclass, field
from woodrat.state import fingerprint
from woodrat.state.asof import Stored
from woodrat.state.schema import Schema
from woodrat.state.tokens import Words

Versions = tuple[tuple[int, bytes | None], ...]
"""A part of a collection from position to position."""


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
    relations: dict[bytes, list[tuple[int, Ref]]] = field(default_factory=dict)
    sharing: dict[tuple[str, str, str], list[Ref]] = field(default_factory=dict)
    schemas: dict[str, list[tuple[int, Schema]]] = field(default_factory=dict)
    sources: dict[bytes, int] = field(default_factory=dict)
    source_ids: dict[str, bytes] = field(default_factory=dict)
    current: dict[bytes, Kept] = field(default_factory=dict)
    lasting: dict[bytes, list[Kept]] = field(default_factory=dict)
    last_kept: dict[bytes, LastKept] = field(default_factory=dict)
    elements: dict[bytes, dict[str, dict[bytes, Versions]]] = field(default_factory=dict)
    """By the smallest entity of a fold, field and key: what was kept of a part of a collection, by position."""
    receipts: dict[tuple[str, str], Receipt] = field(default_factory=dict)
    cloned: int = BEFORE_ALL
    merged: dict[str, dict[int, int]] = field(default_factory=dict)
    fingerprint: tuple[int, fingerprint.Tree] = (BEFORE_ALL, fingerprint.EMPTY)
    indexed: int = BEFORE_ALL
    words: dict[Ref, Words] = field(default_factory=dict)
    runs: dict[str, list[int]] = field(default_factory=dict)
    runs_about: dict[bytes, list[int]] = field(default_factory=dict)
    shelves: dict[str, tuple[int, dict[int, bytes]]] = field(default_factory=dict)
