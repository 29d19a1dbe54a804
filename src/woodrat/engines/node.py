"""Node: the table of the roots of complete subtrees, from which frontiers and proofs are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.engines.tables import damaged
from woodrat.errors import Corrupt
from woodrat.log.tree import HASH_BYTES, node_hash

if TYPE_CHECKING:
    from woodrat.engines.tables import Tables

NODE_STEP = 4
"""Roots of complete subtrees are kept at every so many levels; those between are made from 16 below."""


class Nodes:
    """The roots of complete subtrees, for frontiers and proofs."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def subtree_root(self, start: int, end: int, /) -> bytes:
        """Return the root over the leaves from `start` to before `end`, an aligned power of two of them."""
        width = end - start
        height = width.bit_length() - 1
        if height % NODE_STEP == 0 and height:
            found = self._tables.value("node", tenant=self._tables.tenant_number, height=height, place=start >> height)
            if type(found) is not bytes or len(found) != HASH_BYTES:
                raise _stale(end - 1)
            return found
        if height < NODE_STEP:
            hashes = [row[0] for row in self._tables.select("leaves", **self._tables.bounds(start - 1, end - 1))]
            if len(hashes) != width:
                raise damaged(end - 1, "leaf")
        else:
            part = 1 << (height - height % NODE_STEP)
            hashes = [self.subtree_root(at, at + part) for at in range(start, end, part)]
        return _joined(hashes)

    def check_last(self, size: int) -> None:
        """Refuse a tree in which, of any height kept, the last subtree is not what those below it make."""
        for height in range(NODE_STEP, size.bit_length(), NODE_STEP):
            end = size >> height << height
            start = end - (1 << height)
            half = (start + end) // 2
            if self.subtree_root(start, end) != node_hash(self.subtree_root(start, half), self.subtree_root(half, end)):
                raise _stale(end - 1)


def _stale(position: int) -> Corrupt:
    """Return the error for a kept root of a subtree that is gone, or is not that of what is below it."""
    return Corrupt(
        f"Position {position}: its node is gone or is not what was written. Nothing was changed. Run "
        "`woodrat rebuild`, which makes it again from the log; if a checkpoint is held elsewhere, verify against it "
        "first, since a rewritten log looks like this too.",
        {"position": position, "damage": "node"},
    )


def _joined(hashes: list[bytes]) -> bytes:
    """Return the root over a power of two of subtrees."""
    while len(hashes) > 1:
        hashes = [node_hash(*hashes[i : i + 2]) for i in range(0, len(hashes), 2)]
    return bytes(hashes[0])
