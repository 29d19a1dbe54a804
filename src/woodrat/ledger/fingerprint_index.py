"""The kept fingerprint: its leaves, and the nodes of its upper levels, in an ordered index of the engine.

Leaves stand in parts by the first three nibbles of the entity's digest. Over each part, and over the two levels above,
the hash of the node is kept. It is brought up to date when somebody asks for it, from the entities that changed since:
of few parts, each part and its way up are hashed again, and the root is one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Final

from woodrat.canon.ids import Ref
from woodrat.engines import cancellation
from woodrat.engines.records import BEFORE_ALL, IndexRow
from woodrat.errors import Unavailable
from woodrat.ledger.erasures import erased_since
from woodrat.ledger.find import chunks, folds
from woodrat.ledger.read import Reader
from woodrat.ledger.transitions import touched
from woodrat.merge import snapshot
from woodrat.merge.packing import garbled
from woodrat.state import fingerprint, schema
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from woodrat.canon.ids import TenantId
    from woodrat.engines.engine import Engine
    from woodrat.engines.transaction import Transaction
    from woodrat.engines.view import View
    from woodrat.merge import Policy

NAME: Final = "fingerprint"
"""The index of leaves and nodes; under the same name is noted how far it goes."""
LEVELS: Final = 3
"""Nodes are kept over parts of as many nibbles, and of fewer."""
RENEWED_FROM: Final = 256
"""With as many parts changed, all nodes are made anew once the leaves are there."""

ROWS: Final = 5_000
"""How many leaves are read or written at a time."""

_LEAF, _NODE = b"l", b"n"
_PART_BYTES: Final = 2


def leaf_key(entity: bytes) -> bytes:
    """Return where the leaf of an entity stands."""
    return _LEAF + _part(entity) + entity


def _part(entity: bytes) -> bytes:
    return (int.from_bytes(entity[:_PART_BYTES], "big") >> 4).to_bytes(_PART_BYTES, "big")


def _node_key(level: int, place: int) -> bytes:
    return _NODE + bytes([level]) + place.to_bytes(_PART_BYTES, "big")


def leaves(view: View, part: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """Yield the leaves of a part, or all, as (entity, value) digests in order."""
    prefix, after = _LEAF + part, None
    while True:
        rows = view.scan(NAME, prefix, after=after, limit=ROWS)
        for key, value in rows:
            entity = key[len(_LEAF) + _PART_BYTES :]
            if len(entity) != fingerprint.DIGEST_BYTES or len(value) != fingerprint.DIGEST_BYTES:
                raise garbled("The fingerprint that is kept")
            yield entity, value
        if len(rows) < ROWS:
            return
        after = rows[-1][0]


def position(view: View) -> int:
    """Return the position that the kept fingerprint is true for; the one before all if there is none."""
    noted = view.meta(NAME)
    try:
        return BEFORE_ALL if noted is None else int(noted)
    except ValueError as error:
        raise garbled("The fingerprint that is kept") from error


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


def put_leaves(write: Transaction, leaves_of: Mapping[bytes, bytes | None], through: int) -> None:
    """Replace the leaves of entities, by digest, or remove those that are None; it is true for a position then."""
    parts = {_part(entity) for entity in leaves_of}
    _set(write, {leaf_key(entity): value for entity, value in leaves_of.items()})
    if len(parts) < RENEWED_FROM and position(write) != BEFORE_ALL:
        _rehash(write, parts)
    else:
        write.drop(NAME, _NODE)
        write.put([IndexRow(NAME, key, 0, hashed) for key, hashed in nodes(leaves(write)).items()])
    write.set_meta(NAME, str(through).encode())


def has_its_nodes(view: View) -> bool:
    """Return whether the nodes that are kept are those of the leaves."""
    return dict(view.scan(NAME, _NODE)) == nodes(leaves(view))


def root(view: View) -> bytes | None:
    """Return the root of the kept fingerprint, if it is that of the end of the log."""
    if position(view) < view.head().position:
        return None
    rows = view.scan(NAME, _node_key(0, 0), limit=1)
    return fingerprint.whole(rows[0][1] if rows else None)


# Bringing it up to date


def followed(engine: Engine, tenant: TenantId, policies: Mapping[str, Policy]) -> bytes | None:
    """Return the root for the end of the log, brought up to date; None if nothing can be written.

    Entities are folded in views, while others write. Only if they write faster than this can follow, the last ones are
    folded while writers wait.
    """
    try:
        for _ in range(3):
            with engine.view(tenant) as view:
                found = root(view)
                if found is not None:
                    return found
                before, head = position(view), view.head().position
                changed = changed_leaves(view, policies)
            with engine.transaction(tenant) as write:
                if position(write) == before and not erased_since(write, head):
                    put_leaves(write, changed, head)
        with engine.transaction(tenant) as write:
            put_leaves(write, changed_leaves(write, policies), write.head().position)
            return root(write)
    except Unavailable:
        return None


def changed_leaves(view: View, policies: Mapping[str, Policy]) -> dict[bytes, bytes | None]:
    """Return the leaves, at the end of the log, of all entities that changed since the kept ones, by digest."""
    before, now = position(view), Reader(view, AsOf(view.head().position), policies)
    if before == BEFORE_ALL:
        found = folds(now, None)
        return {ref.digest: snapshot.value_digest(state, now.rules(ref.type)) for ref, state in found}
    changed = _changed(view, policies, before)
    return _leaves_of(view, policies, changed, before, now.asof.position)


def _changed(view: View, policies: Mapping[str, Policy], before: int) -> list[Ref]:
    """Return the entities that may have changed since a position."""
    head = view.head().position
    then, now = (Reader(view, AsOf(at), policies) for at in (before, head))
    spoken: set[Ref] = set(view.touched(before, head))
    for entry in view.entries(before, head, {"schema"}):
        if entry.body is not None:
            type = schema.stored(entry.body).type
            if then.rules(type).merging != now.rules(type).merging:
                spoken.update(view.entities(type, head))
    return touched(spoken)


def _leaves_of(
    view: View, policies: Mapping[str, Policy], refs: Iterable[Ref], before: int, through: int
) -> dict[bytes, bytes | None]:
    """Return the leaves of some entities, and of those they were or are joined with, as of a position."""
    found: dict[bytes, bytes | None] = {}
    for some in chunks(refs):
        cancellation.check()
        then, now = (Reader(view, AsOf(at), policies) for at in (before, through))  # readers keep all they fold
        now.gather(some)
        for ref in some:
            for member in (*then.group(ref), *now.group(ref)):
                state = now.state(member)
                is_leaf = state.exists and now.group(member)[0] == member
                found[member.digest] = snapshot.value_digest(state, now.rules(member.type)) if is_leaf else None
    return found


def redo(write: Transaction, policies: Mapping[str, Policy], refs: Iterable[Ref]) -> None:
    """Make the leaves of entities again after their past was changed, for the position that the fingerprint goes to."""
    through = position(write)
    if through != BEFORE_ALL:
        put_leaves(write, _leaves_of(write, policies, refs, through, through), through)


def turn_back(write: Transaction, policies: Mapping[str, Policy], through: int) -> None:
    """Make the fingerprint that of an earlier position."""
    if through == BEFORE_ALL:
        write.drop(NAME)
        write.set_meta(NAME, None)
    else:
        refs = {
            member
            for ref in _changed(write, policies, through)
            for at in (through, write.head().position)
            for member in Reader(write, AsOf(at), policies).group(ref)
        }
        put_leaves(write, _leaves_of(write, policies, refs, through, through), through)


def build(write: Transaction, policies: Mapping[str, Policy]) -> bytes:
    """Make the fingerprint of the end of the log from all entities, and return its root."""
    if write.head().position == BEFORE_ALL:
        return fingerprint.whole(None)
    write.drop(NAME)
    write.set_meta(NAME, None)
    put_leaves(write, changed_leaves(write, policies), write.head().position)
    found = root(write)
    assert found is not None, "it was just made"
    return found
