"""Plan: the data to forget, and all entries removed or rewritten with it."""

from __future__ import annotations

from collections import Counter
from typing import Final

from woodrat.canon.ids import Ref
from woodrat.erasure.quotes import Quoted
from woodrat.log.erasure import Erasure, Link
from woodrat.records import dataclass, field
from woodrat.state.meaning import Meaning

NO_ERASURE: Final = "Nothing was erased."


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope: exactly one of these, and the field only with an entity."""

    kind: str
    """`entity`, `field`, `source`, `agent` or `subject`."""
    ref: Ref | None = None
    """The entity, for `entity`, `field` and `subject`."""
    field: str | None = None
    """The field, for `field`."""
    source: bytes | None = None
    """Digest of the source."""
    agent: str | None = None
    """The agent."""
    records: Erasure | None = None
    """An erasure of another ledger, of exactly the records that it lists."""


@dataclass(slots=True)
class Plan:
    """Everything to remove, and the rewritten entries that replace it."""

    positions: list[int] = field(default_factory=list)
    """Where bodies and nonces go, in order."""
    items: list[tuple[str, bytes, Meaning]] = field(default_factory=list)
    """Rewritten entries: kind, body, meaning."""
    receipts: list[tuple[str, str]] = field(default_factory=list)
    """Idempotency keys whose reports quote erased data, as (agent, key)."""
    macs: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    links: dict[str, Link] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    """Number of removed entries, by kind."""
    resaid: Counter[str] = field(default_factory=Counter)
    """Number of rewritten entries, by kind."""
    touched: set[Ref] = field(default_factory=set)
    """Surviving entities with erased or rewritten observations."""
    quoting: list[int] = field(default_factory=list)
    """Positions found by a text they quote."""
    short: dict[str, int] = field(default_factory=dict)
    """Fields whose values are too short for a search in texts, with the length of the shortest."""
    shared: dict[str, list[int]] = field(default_factory=dict)
    """Fields whose values other observations state too, with the positions of those."""
    unsearched: int = 0
    """Values of runs that could not be searched whole: cut when they were recorded, or bytes that are no text."""
    ids: set[str] = field(default_factory=set)
    """Short ids of erased data."""
    through: int = -1
    """The position through which the log was searched."""
    refs: frozenset[Ref] = frozenset()
    """The entities that are erased, or lose a field."""
    named: frozenset[str] = frozenset()
    """Short ids of all erased or rewritten entries, and of runs that lose a part: entries that name one are affected.
    """
    receipts_seen: set[int] = field(default_factory=set)
    """Hashes of the idempotency keys whose receipts were searched."""
    quoted: Quoted = field(default_factory=lambda: Quoted(()))
    """Texts to search for in other entries."""
    sought: frozenset[bytes] = frozenset()
    """Bytes that no file may hold afterwards."""
