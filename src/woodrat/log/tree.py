"""Tree: one RFC 6962 Merkle tree per log, its root and its two proofs.

An inclusion proof shows that a leaf is in the tree of a given size. A consistency proof shows that one tree is a
prefix of another. Both are lists of subtree roots, nearest to the leaves first, as RFC 6962 section 2.1 orders them.

A proof does not tell every two sizes apart: trees of five and six leaves have the same path to leaf 0. Size and root
therefore belong together and are signed together, in the checkpoint.

The proofs are written over `SubtreeNodes`, which returns complete subtrees only. An engine that stores those
answers a proof in O(log n).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from woodrat.errors import Corrupt
from woodrat.records import dataclass

HASH_BYTES = 32
_LENGTH = frozenset({HASH_BYTES})
"""Length of every leaf hash, node hash and root."""

SIZE_MAX = 2**53 - 1
"""Largest tree: positions are JSON integers."""

EMPTY_ROOT = hashlib.sha256(b"").digest()
"""Root of the tree without leaves."""

_SIZE_BYTES = 8


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf; the 0x00 keeps a leaf from passing for a node."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of the node over two subtree roots."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class SubtreeNodes(Protocol):
    """The roots of a log's complete subtrees."""

    def subtree_root(self, start: int, end: int, /) -> bytes:
        """Return the root over leaves `start` to `end`, `end` excluded.

        Asked only where `end - start` is a power of two and divides `start`, so the answer never changes once
        the log has grown to `end`.
        """
        ...


class Leaves:
    """Leaf hashes in order, with every complete subtree over them precomputed: O(n) once, O(1) per question."""

    __slots__ = ("_levels",)

    def __init__(self, leaves: Iterable[bytes]) -> None:
        level = list(leaves)
        assert all(len(leaf) == HASH_BYTES for leaf in level), "a leaf hash has 32 bytes"
        self._levels = [level]
        while len(level) > 1:
            level = [node_hash(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
            self._levels.append(level)

    def __len__(self) -> int:
        return len(self._levels[0])

    def subtree_root(self, start: int, end: int, /) -> bytes:
        """Return the root of the complete subtree over leaves `start` to `end`, `end` excluded."""
        width = end - start
        assert width > 0 and width & (width - 1) == 0 and start % width == 0, "only complete subtrees are stored"
        return self._levels[width.bit_length() - 1][start // width]


Source: TypeAlias = SubtreeNodes | Sequence[bytes]
"""The source of proofs: stored nodes, or the leaf hashes."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """The right edge of a tree: all that is needed to append to it and to know its root."""

    size: int = 0
    """Number of leaves of the tree."""
    roots: tuple[bytes, ...] = ()
    """Roots of its complete subtrees, largest first: one for every 1 in the binary spelling of `size`."""

    def __post_init__(self) -> None:
        assert 0 <= self.size <= SIZE_MAX, "a tree has between 0 and 2**53 - 1 leaves"
        assert len(self.roots) == self.size.bit_count(), "one root for every 1 in the size"
        assert _LENGTH.issuperset(map(len, self.roots)), "a root has 32 bytes"

    @classmethod
    def at(cls, source: Source, size: int) -> Frontier:
        """Return the frontier of the first `size` leaves of `source`."""
        nodes = _nodes(source)
        return cls(size, tuple(nodes.subtree_root(start, end) for start, end in _complete(0, size)))

    def append(self, leaf: bytes) -> Frontier:
        """Return the frontier with one more leaf hash: at most log n hashes, one on average."""
        return self.extend((leaf,))

    def extend(self, leaves: Iterable[bytes]) -> Frontier:
        """Return the frontier with these leaf hashes appended in order."""
        size, roots = self.size, list(self.roots)
        for leaf in leaves:
            assert len(leaf) == HASH_BYTES, "a leaf hash has 32 bytes"
            carried, rest = leaf, size
            # Adding a leaf is adding one to a binary number: every trailing 1 is a subtree that doubles.
            while rest & 1:
                carried, rest = node_hash(roots.pop(), carried), rest >> 1
            roots.append(carried)
            size += 1
        return Frontier(size, tuple(roots))

    def grow(self, leaves: Sequence[bytes]) -> tuple[Frontier, list[list[bytes]]]:
        """Return the frontier with these leaf hashes appended, and the complete subtrees that they end.

        The subtrees are their roots by height, the leaves themselves first, each level from left to right.
        """
        sha256 = hashlib.sha256
        old = list(self.roots)  # the smallest comes last
        if len(leaves) == 1:
            carried, before = leaves[0], self.size
            alone = [[carried]]
            while before & 1:
                carried, before = sha256(b"\x01" + old.pop() + carried).digest(), before >> 1
                alone.append([carried])
            return Frontier(self.size + 1, (*old, carried)), alone
        new: list[bytes] = []  # the smallest comes first
        ended: list[list[bytes]] = []
        level, before = list(leaves), self.size
        while level:
            ended.append(level)
            joined = [old.pop(), *level] if before & 1 else level
            if len(joined) & 1:
                new.append(joined[-1])
            pairs = zip(joined[::2], joined[1::2], strict=False)
            level = [sha256(b"\x01" + left + right).digest() for left, right in pairs]
            before >>= 1
        return Frontier(self.size + len(leaves), (*old, *reversed(new))), ended

    def root(self) -> bytes:
        """Return the root of the tree."""
        return _fold(self.roots)

    def to_bytes(self) -> bytes:
        """Return the size as eight bytes, big end first, and the roots after it."""
        return self.size.to_bytes(_SIZE_BYTES, "big") + b"".join(self.roots)

    @classmethod
    def from_bytes(cls, data: bytes) -> Frontier:
        """Parse the output of `to_bytes`; anything else is `Corrupt`."""
        size = int.from_bytes(data[:_SIZE_BYTES], "big")
        if size > SIZE_MAX or len(data) != _SIZE_BYTES + HASH_BYTES * size.bit_count():
            raise Corrupt(
                f"stored frontier: {len(data)} bytes do not fit a tree of {size} leaves. Nothing was changed. "
                "Rebuild the derived tables, then verify the ledger.",
                {"damage": "frontier", "bytes": len(data), "size": size},
            )
        return cls(size, tuple(data[at : at + HASH_BYTES] for at in range(_SIZE_BYTES, len(data), HASH_BYTES)))


def root(leaves: Iterable[bytes]) -> bytes:
    """Return the root of the tree over these leaf hashes."""
    return Frontier().extend(leaves).root()


def inclusion_proof(source: Source, index: int, size: int) -> tuple[bytes, ...]:
    """Return the proof that leaf `index` is in the tree of the first `size` leaves."""
    assert 0 <= index < size <= SIZE_MAX, "the leaf lies inside the tree"
    nodes = _nodes(source)
    return tuple(_range_root(nodes, step.start, step.end) for step in reversed(_path(index, index + 1, size)))


def consistency_proof(source: Source, old: int, new: int) -> tuple[bytes, ...]:
    """Return the proof that the first `old` leaves of the tree of `new` leaves are the older tree.

    It is empty when `old` is 0 or `new`: then comparing the two roots is enough.
    """
    assert 0 <= old <= new <= SIZE_MAX, "the older tree is not larger than the newer"
    if old in (0, new):
        return ()
    nodes = _nodes(source)
    start = _last_complete(old)
    hashes = [_range_root(nodes, step.start, step.end) for step in reversed(_path(start, old, new))]
    if start:
        # Unless the older tree is one complete subtree, the verifier must know the point where both trees diverge.
        hashes.insert(0, nodes.subtree_root(start, old))
    return tuple(hashes)


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Return True if `proof` shows that the leaf hash `leaf` is number `index` of the `size` leaves under `root`."""
    if not (0 <= index < size <= SIZE_MAX and _all_hashes((leaf, root, *proof))):
        return False
    steps = _path(index, index + 1, size)
    if len(proof) != len(steps):
        return False
    found = leaf
    for step, sibling in zip(reversed(steps), proof, strict=True):
        found = node_hash(sibling, found) if step.left else node_hash(found, sibling)
    return found == root


def verify_consistency(old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Return True if `proof` shows that the tree under `old_root` is a prefix of the tree under `new_root`.

    Every tree starts with the empty one, so `old_size` 0 takes an empty proof, and only with the empty root.
    """
    if not (0 <= old_size <= new_size <= SIZE_MAX and _all_hashes((old_root, new_root, *proof))):
        return False
    if old_size == new_size:
        return not proof and old_root == new_root and (old_size > 0 or old_root == EMPTY_ROOT)
    if old_size == 0:
        return not proof and old_root == EMPTY_ROOT
    start = _last_complete(old_size)
    steps = _path(start, old_size, new_size)
    siblings = list(proof) if start else [old_root, *proof]
    if len(siblings) != len(steps) + 1:
        return False
    old_found = new_found = siblings[0]
    for step, sibling in zip(reversed(steps), siblings[1:], strict=True):
        if step.left:
            old_found = node_hash(sibling, old_found)
            new_found = node_hash(sibling, new_found)
        else:
            new_found = node_hash(new_found, sibling)
    return old_found == old_root and new_found == new_root


@dataclass(frozen=True, slots=True)
class _PathStep:
    """One branching on the way down from the root."""

    start: int
    """First leaf under the sibling."""
    end: int
    """The leaf after its last."""
    left: bool
    """Whether the sibling is to the left of the path."""


def _path(start: int, end: int, size: int) -> list[_PathStep]:
    """Return the siblings on the way from the root down to the subtree over `start` to `end`, root first.

    The shape of a proof is defined only here: making and checking one walk the same steps.
    """
    steps = []
    low, high = 0, size
    while (low, high) != (start, end):
        middle = low + _split(high - low)
        if end <= middle:
            steps.append(_PathStep(middle, high, left=False))
            high = middle
        else:
            assert start >= middle, "a subtree of the tree never lies across a branching"
            steps.append(_PathStep(low, middle, left=True))
            low = middle
    return steps


def _split(width: int) -> int:
    """Return the largest power of two below `width`: the number of leaves on the left."""
    assert width > 1
    return 1 << ((width - 1).bit_length() - 1)


def _last_complete(size: int) -> int:
    """Return the start of the smallest, rightmost complete subtree of a tree of `size` leaves."""
    return size & (size - 1)


def _complete(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the complete subtrees that cover `start` to `end`, largest first."""
    while start < end:
        width = 1 << ((end - start).bit_length() - 1)
        yield start, start + width
        start += width


def _range_root(nodes: SubtreeNodes, start: int, end: int) -> bytes:
    """Return the root of any subtree, the ragged one at the right edge too."""
    return _fold([nodes.subtree_root(low, high) for low, high in _complete(start, end)])


def _fold(roots: Sequence[bytes]) -> bytes:
    """Join complete subtrees, largest first, into one root."""
    if not roots:
        return EMPTY_ROOT
    found = roots[-1]
    for left in reversed(roots[:-1]):
        found = node_hash(left, found)
    return found


def _nodes(source: Source) -> SubtreeNodes:
    return Leaves(source) if isinstance(source, Sequence) else source


def _all_hashes(hashes: Iterable[bytes]) -> bool:
    return all(len(item) == HASH_BYTES for item in hashes)
