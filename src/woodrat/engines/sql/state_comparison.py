"""Comparing: what two views of a tenant keep of its entities, set side by side without being read.

Most of it is the same to the byte, or but for the order of members, which means nothing. Whatever is not told to be the
same here has to be looked at more closely.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Protocol

from woodrat.canon.ids import Ref

Row = tuple[Any, ...]
"""Number, type, key, first and last observation of an entity, the position that its state is true for, and the state;
then how many states are kept along its history (or whether any is), and whether parts of collections are kept apart."""


class KeptStates(Protocol):
    """What one view keeps of entities."""

    def entities(self) -> Iterator[Row]:
        """Yield the rows of all entities, by type and key."""

    def past(self, row: Row) -> Iterator[tuple[Any, ...]]:
        """Yield the states kept along the history of the entity whose row came last, by position."""


def unlike(new: KeptStates, old: KeptStates) -> Iterator[tuple[Ref, bool]]:
    """Yield the entities of which two views may keep different states, and whether both know the entity or neither."""
    ours, theirs = new.entities(), old.entities()
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
        elif mine[8] or other[8]:
            yield Ref(*name), True  # kept state does not hold all of it
        elif not (_same_present(mine, other) and _same_past(new.past(mine), old.past(other))):
            yield Ref(*name), True
        left = next(ours, None) if mine is not None else left
        right = next(theirs, None) if other is not None else right


def _same_present(one: Row, other: Row) -> bool:
    """Return whether two rows of one entity hold the same state, both of them true up to its last observation."""
    last, at, state = one[4:7]
    other_last, other_at, other_state = other[4:7]
    if None in (at, state, other_at, other_state):
        return (at, state) == (other_at, other_state)
    return last == other_last and last <= at and last <= other_at and bool(state == other_state)


def _same_past(one: Iterator[tuple[Any, ...]], other: Iterator[tuple[Any, ...]]) -> bool:
    """Return whether the same states are kept along a history."""
    for left, right in zip_longest(one, other):
        if left is None or right is None or left[:3] != right[:3] or left[3] != right[3]:
            return False
    return True
