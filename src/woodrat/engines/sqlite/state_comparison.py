"""Comparing: what two views of a tenant keep of its entities, set side by side without being read.

Most of it is the same to the byte, or but for the order of members, which means nothing. Whatever is not told to be the
same here has to be looked at more closely.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from woodrat.canon.ids import Ref
from woodrat.merge import packed_state

if TYPE_CHECKING:
    from woodrat.engines.sql.tables import Tables


def unlike(new: Tables, old: Tables) -> Iterator[tuple[Ref, bool]]:
    """Yield the entities of which two views may keep different states, and whether both know the entity or neither."""
    ours, theirs = _entities(new), _entities(old)
    new_spread, old_spread = _spread(new), _spread(old)
    left, right = next(ours, None), next(theirs, None)
    while left is not None or right is not None:
        name = min(row[1:3] for row in (left, right) if row is not None)
        mine = left if left is not None and left[1:3] == name else None
        other = right if right is not None and right[1:3] == name else None
        if mine is None or other is None:
            only: Any = mine or other
            yield Ref(*name), only[3] < 0
        elif (mine[3] < 0) != (other[3] < 0):
            yield Ref(*name), False
        elif mine[0] in new_spread or other[0] in old_spread:
            yield Ref(*name), True  # kept state does not hold all of it
        elif not (_same_present(mine, other) and _same_past(_kept(new, mine[0]), _kept(old, other[0]))):
            yield Ref(*name), True
        left = next(ours, None) if mine is not None else left
        right = next(theirs, None) if other is not None else right


def _entities(view: Tables) -> Iterator[tuple[Any, ...]]:
    return iter(view.select("entities_kept", tenant=view.tenant_number))


def _spread(view: Tables) -> set[int]:
    return {number for (number,) in view.select("entities_spread", tenant=view.tenant_number)}


def _kept(view: Tables, number: int) -> Iterator[tuple[Any, ...]]:
    return iter(view.select("kept_of", entity=number))


def _same_present(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Return whether two rows of one entity hold the same state, both of them true up to its last observation."""
    last, at, state = one[4:]
    other_last, other_at, other_state = other[4:]
    if state is None or other_state is None:
        return state is other_state
    return last == other_last and last <= at and last <= other_at and packed_state.same_packed(state, other_state)


def _same_past(one: Iterator[tuple[Any, ...]], other: Iterator[tuple[Any, ...]]) -> bool:
    """Return whether the same states are kept along a history."""
    for left, right in zip(one, other, strict=False):
        if left[:3] != right[:3] or not packed_state.same_packed(left[3], right[3]):
            return False
    return next(one, None) is None and next(other, None) is None
