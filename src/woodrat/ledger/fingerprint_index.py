"""The kept fingerprint: its leaves, and the nodes of its upper levels, in an ordered index of the engine.

Leaves stand in parts by the first three nibbles of the entity's digest. Over each part, and over the two levels above,
the hash of the node is kept: after a write one part and its way up are hashed again, and the root is one row. The tree
itself is never held in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

from woodrat.engines.port import BEFORE_ALL, IndexRow
from woodrat.errors import Unavailable
from woodrat.ledger import index as log_index
from woodrat.ledger import state_steps
from woodrat.ledger.erasures import erased_since
from woodrat.ledger.state_index import Fold, Progress, Rows, StateIndex, progress_of
from woodrat.merge import snapshot
from woodrat.merge.packing import garbled
from woodrat.merge.rules import Rules
from woodrat.state import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from woodrat.canon.ids import Ref, TenantId
    from woodrat.engines.port import Engine, Transaction, View
    from woodrat.merge import Policy

NAME: Final = "fingerprint"
"""The index of leaves and nodes; under the same name is noted how far it goes."""
LEVELS: Final = 3
"""Nodes are kept over parts of as many nibbles, and of fewer."""
RENEWED_FROM: Final = 256
"""With as many parts changed, all nodes are made anew once the leaves are there."""

BUILD_LEAVES: Final = 5_000
"""How many leaves are put at a time when all are made anew."""

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
    return progress_of(view, NAME).position


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


def top(pairs: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """Return the hash of the node over all of these leaves, which come in order; none over none."""
    return nodes(pairs).get(_node_key(0, 0))


def _is_renewed(view: View) -> bool:
    """Return whether the nodes are those of the leaves."""
    return view.meta(_NODES) == view.meta(NAME)


def _note_nodes(write: Transaction) -> None:
    write.set_meta(_NODES, write.meta(NAME))


def _rehash(write: Transaction, parts: Iterable[bytes]) -> None:
    """Hash some parts and their way up again."""
    places = {int.from_bytes(part, "big") for part in parts}
    made: dict[bytes, bytes | None] = {}
    for place in places:
        part = place.to_bytes(_PART_BYTES, "big")
        made[_node_key(LEVELS, place)] = fingerprint.subtree_hash(leaves(write, part))
    _set(write, made)
    for depth in range(LEVELS - 1, -1, -1):
        places, made = {place >> 4 for place in places}, {}
        for place in places:
            first = _node_key(depth + 1, place << 4)
            below = dict(write.scan(NAME, first[:-1], after=_before(first), limit=16))
            children = [below.get(_node_key(depth + 1, place << 4 | nibble)) for nibble in range(16)]
            made[_node_key(depth, place)] = fingerprint.branch_hash(depth, children)
        _set(write, made)


def _before(key: bytes) -> bytes | None:
    """Return a key before which all those stand that come before another; none where the other is the first."""
    return key[:-1] + bytes([key[-1] - 1]) + b"\xff" if key[-1] else None


def _set(write: Transaction, values: Mapping[bytes, bytes | None]) -> None:
    """Put rows in place of those with the same keys, or nothing, at once; what ends where it began is gone."""
    keys = sorted(values)
    write.end(0, [(NAME, key) for key in keys])
    write.put([IndexRow(NAME, key, 0, value) for key in keys if (value := values[key]) is not None])


def take_in(write: Transaction, values: Mapping[bytes, bytes | None], through: Progress) -> None:
    """Put leaves in place of those that entities have, or with none in place of nothing, by entity digest.

    It goes so far then. The nodes are those of the leaves, unless so much changed that all are to be made anew.
    """
    parts = {_part(entity) for entity in values}
    is_kept = _is_renewed(write) and len(parts) < RENEWED_FROM and not through.filling
    _set(write, {leaf_key(entity): value for entity, value in values.items()})
    if is_kept:
        _rehash(write, parts)
    write.set_meta(NAME, through.to_bytes())
    if is_kept:
        _note_nodes(write)


def _rows(fold: Fold) -> Rows:
    return {(NAME, leaf_key(fold.root.digest)): snapshot.value_digest(fold.state, fold.rules)}


def _alike(one: Rules, other: Rules) -> bool:
    return one.merging == other.merging


def _keep(write: Transaction, present: Mapping[Ref, Rows], through: Progress) -> None:
    values: dict[bytes, bytes | None] = {}
    for ref, rows in present.items():
        values[ref.digest] = rows.get((NAME, leaf_key(ref.digest)))
    take_in(write, values, through)


INDEX: Final = StateIndex(NAME, (NAME,), _rows, _alike, _keep)
"""The leaves, as an index of state: of the present alone."""


def build(write: Transaction, head: int, pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Put all leaves in place of what is there; it is true for a position then."""
    write.drop(NAME)
    left = iter(pairs)
    while some := list(islice(left, BUILD_LEAVES)):
        write.put([leaf_row(entity, value) for entity, value in sorted(some)])
    log_index.cover(write, NAME, head)
    _put_nodes(write, nodes(leaves(write)))


def renew(engine: Engine, tenant: TenantId) -> None:
    """Make all nodes anew from the leaves, if they are not theirs and the leaves are those of the end of the log."""
    with engine.view(tenant) as view:
        known = progress_of(view, NAME)
        if known.position == BEFORE_ALL or not _is_whole(view) or _is_renewed(view):
            return
        made, head = nodes(leaves(view)), view.head().position
    with engine.transaction(tenant) as write:
        if progress_of(write, NAME) == known and not erased_since(write, head):
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
    if not _is_whole(view) or not _is_renewed(view):
        return None
    rows = view.scan(NAME, _node_key(0, 0), limit=1)
    return fingerprint.whole(rows[0][1] if rows else None)


def followed(engine: Engine, tenant: TenantId, policies: Mapping[str, Policy]) -> bytes | None:
    """Return the root for the end of the log, brought up to date; none where nothing can be written.

    Everything is folded in views, while others write. Only where they write faster than this can follow, the few
    entries that are left are taken in before anybody writes more.
    """
    try:
        for _ in range(3):
            if state_steps.catch_up(engine, tenant, policies, (INDEX,), few=0):
                return None  # it ends early only where nothing can be written
            renew(engine, tenant)
            with engine.view(tenant) as view:
                found = root(view)
            if found is not None:
                return found
        with engine.transaction(tenant) as write:
            while not _is_whole(write):
                state_steps.Step(write, (INDEX,), policies).put_down(write)
            if not _is_renewed(write):
                _put_nodes(write, nodes(leaves(write)))
            return root(write)
    except Unavailable:
        return None


def _is_whole(view: View) -> bool:
    """Return whether the leaves are those of the end of the log."""
    known = progress_of(view, NAME)
    return not known.filling and known.position >= view.head().position
