"""The kept fingerprint: its leaves, and the nodes of its upper levels, in an ordered index of the engine.

Leaves stand in parts by the first three nibbles of the entity's digest. Over each part, and over the two levels above,
the hash of the node is kept: after a write one part and its way up are hashed again, and the root is one row. The tree
itself is never held in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Final

from woodrat.engines import cancellation
from woodrat.engines.port import IndexRow
from woodrat.errors import Unavailable
from woodrat.ledger import index as log_index
from woodrat.ledger.read import Reader, changed
from woodrat.merge import snapshot
from woodrat.merge.packing import garbled
from woodrat.state import fingerprint
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from woodrat.canon.ids import Ref, TenantId
    from woodrat.engines.port import Engine, Transaction, View
    from woodrat.ledger.progress import Progress
    from woodrat.merge import Policy

NAME: Final = "fingerprint"
"""The index of leaves and nodes; under the same name is noted how far it goes."""
STEP_ENTRIES: Final = 2_000
"""How many entries one step takes in."""
LEVELS: Final = 3
"""Nodes are kept over parts of as many nibbles, and of fewer."""
RENEWED_FROM: Final = 256
"""With as many parts changed, all nodes are made anew once the leaves are there."""

_NODES: Final = "fingerprint.nodes"
_LEAF, _NODE = b"l", b"n"
_PART_BYTES: Final = 2


def leaf_key(entity: bytes) -> bytes:
    """Return where the leaf of an entity stands."""
    return _LEAF + _part(entity) + entity


def _part(entity: bytes) -> bytes:
    return (int.from_bytes(entity[:_PART_BYTES], "big") >> 4).to_bytes(_PART_BYTES, "big")


def _node_key(level: int, place: int) -> bytes:
    return _NODE + bytes([level]) + place.to_bytes(_PART_BYTES, "big")


def leaf_row(entity: bytes, value: bytes) -> IndexRow:
    """Return the row of a leaf; rows of this index say nothing about positions."""
    return IndexRow(NAME, leaf_key(entity), 0, value)


def leaves(view: View, part: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """Yield the leaves of a part, or all, as (entity, value) digests in order."""
    prefix, after = _LEAF + part, None
    while True:
        rows = view.scan(NAME, prefix, after=after, limit=log_index.WALK_ROWS)
        for key, value in rows:
            entity = key[len(_LEAF) + _PART_BYTES :]
            if len(entity) != fingerprint.DIGEST_BYTES or len(value) != fingerprint.DIGEST_BYTES:
                raise garbled("The fingerprint that is kept")
            yield entity, value
        if len(rows) < log_index.WALK_ROWS:
            return
        after = rows[-1][0]


def position(view: View) -> int:
    """Return the position that the kept fingerprint is true for."""
    return log_index.covered(view, NAME)


def nodes(pairs: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return every node that is kept over these leaves, which come in order, by key."""
    found: dict[bytes, bytes] = {}
    level: dict[int, bytes] = {}
    for part, some in groupby(pairs, key=lambda pair: _part(pair[0])):
        hashed = fingerprint.subtree_hash(some)
        assert hashed is not None, "a part that is there has leaves"
        level[int.from_bytes(part, "big")] = hashed
    for depth in range(LEVELS, -1, -1):
        found.update((_node_key(depth, place), hashed) for place, hashed in level.items())
        if depth:
            above: dict[int, bytes] = {}
            for place in {place >> 4 for place in level}:
                over = fingerprint.branch_hash(depth - 1, [level.get(place << 4 | nibble) for nibble in range(16)])
                assert over is not None, "something lies below"
                above[place] = over
            level = above
    return found


def _is_renewed(view: View) -> bool:
    """Return whether the nodes are those of the leaves."""
    return view.meta(_NODES) == view.meta(NAME)


def _note_nodes(write: Transaction) -> None:
    write.set_meta(_NODES, write.meta(NAME))


def _rehash(write: Transaction, parts: Iterable[bytes]) -> None:
    """Hash some parts and their way up again."""
    places = {int.from_bytes(part, "big") for part in parts}
    for place in places:
        part = place.to_bytes(_PART_BYTES, "big")
        _set(write, _node_key(LEVELS, place), fingerprint.subtree_hash(leaves(write, part)))
    for depth in range(LEVELS - 1, -1, -1):
        places = {place >> 4 for place in places}
        for place in places:
            first = _node_key(depth + 1, place << 4)
            below = dict(write.scan(NAME, first[:-1], after=_before(first), limit=16))
            children = [below.get(_node_key(depth + 1, place << 4 | nibble)) for nibble in range(16)]
            _set(write, _node_key(depth, place), fingerprint.branch_hash(depth, children))


def _before(key: bytes) -> bytes | None:
    """Return a key before which all those stand that come before another; none where the other is the first."""
    return key[:-1] + bytes([key[-1] - 1]) + b"\xff" if key[-1] else None


def _set(write: Transaction, key: bytes, value: bytes | None) -> None:
    write.drop(NAME, key)
    if value is not None:
        write.put([IndexRow(NAME, key, 0, value)])


def take_in(write: Transaction, values: Mapping[bytes, bytes | None], through: int) -> None:
    """Put leaves in place of those that entities have, or with none in place of nothing, by entity digest.

    It is true for a position then. The nodes are too, unless so much changed that all are to be made anew.
    """
    parts = {_part(entity) for entity in values}
    is_kept = _is_renewed(write) and len(parts) < RENEWED_FROM
    for entity, value in sorted(values.items()):
        _set(write, leaf_key(entity), value)
    if is_kept:
        _rehash(write, parts)
    log_index.cover(write, NAME, through)
    if is_kept:
        _note_nodes(write)


def build(write: Transaction, head: int, pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Put all leaves in place of what is there; it is true for a position then."""
    write.drop(NAME)
    found = sorted(pairs)
    write.put([leaf_row(entity, value) for entity, value in found])
    log_index.cover(write, NAME, head)
    _put_nodes(write, nodes(found))


def catch_up(
    engine: Engine,
    tenant: TenantId,
    policies: Mapping[str, Policy],
    entries_max: int | None = None,
    *,
    progress: Progress | None = None,
) -> int:
    """Bring the kept fingerprint up to date, a bounded step at a time, or on by about so many entries.

    Return how many it lacks. What changed is folded in a view; writers wait only while it is put down.
    """
    first: int | None = None
    while True:
        with engine.view(tenant) as view:
            head, done = view.head().position, position(view)
            first = done if first is None else first
            if done >= head:
                break
            if entries_max is not None and done - first >= entries_max:
                return head - done
            end = min(head, done + STEP_ENTRIES)
            values = _changed_values(view, policies, done, end)
        if progress is not None and head - first > STEP_ENTRIES:
            progress(done - first, head - first)
        with engine.transaction(tenant) as write:
            if position(write) == done:
                take_in(write, values, end)
    _renew(engine, tenant)
    return 0


def _changed_values(view: View, policies: Mapping[str, Policy], after: int, through: int) -> dict[bytes, bytes | None]:
    """Return the value digests of what changed between two positions, by the digest of each fold's smallest entity."""
    before, now = Reader(view, AsOf(after), policies), Reader(view, AsOf(through), policies)
    stale: set[Ref] = set()
    for ref in changed(view, after, through):
        stale.update(before.group(ref))
        stale.update(now.group(ref))
    values: dict[bytes, bytes | None] = {}
    for ref in stale:
        cancellation.check()
        state = now.state(ref) if now.group(ref)[0] == ref else None
        there = state is not None and state.exists
        values[ref.digest] = snapshot.value_digest(state, now.rules(ref.type)) if there and state is not None else None
    return values


def _renew(engine: Engine, tenant: TenantId) -> None:
    """Make all nodes anew from the leaves, if they are not theirs."""
    with engine.view(tenant) as view:
        if _is_renewed(view):
            return
        done, made = position(view), nodes(leaves(view))
    with engine.transaction(tenant) as write:
        if position(write) == done:
            _put_nodes(write, made)


def _put_nodes(write: Transaction, made: Mapping[bytes, bytes]) -> None:
    write.drop(NAME, _NODE)
    write.put([IndexRow(NAME, key, 0, hashed) for key, hashed in made.items()])
    _note_nodes(write)


def has_its_nodes(view: View) -> bool:
    """Return whether the nodes that are kept are those of the leaves, or are still to be made."""
    return not _is_renewed(view) or dict(view.scan(NAME, _NODE)) == nodes(leaves(view))


def root(view: View) -> bytes | None:
    """Return the root of the kept fingerprint, if it is that of the end of the log."""
    if position(view) != view.head().position or not _is_renewed(view):
        return None
    rows = view.scan(NAME, _node_key(0, 0), limit=1)
    return fingerprint.whole(rows[0][1] if rows else None)


def followed(engine: Engine, tenant: TenantId, policies: Mapping[str, Policy]) -> bytes | None:
    """Return the root for the end of the log, brought up to date; none where nothing can be written."""
    for _ in range(3):  # somebody may write meanwhile
        try:
            catch_up(engine, tenant, policies)
        except Unavailable:
            return None
        with engine.view(tenant) as view:
            found = root(view)
        if found is not None:
            return found
    with engine.transaction(tenant) as write:
        done, head = position(write), write.head().position
        take_in(write, _changed_values(write, policies, done, head), head)
        if not _is_renewed(write):
            _put_nodes(write, nodes(leaves(write)))
        return root(write)
