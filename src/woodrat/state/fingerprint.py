"""Fingerprint: one digest over the values of a tenant's state.

The digest is the root of a collapsed 16-ary radix tree over entity digests. Such a tree has one shape per set, so the
order of insertions and removals does not show in it. Two trees are compared without walking equal subtrees.

A tree is immutable; `put` and `remove` return another one that shares all but one path with it. Hashes are computed on
demand, and cached.

The bytes are specified in docs/formats/fingerprint.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from woodrat.canon.digest import base32, digest
from woodrat.canon.form import Json, serialise, serialise_plain

DIGEST_BYTES = 32
"""Length of entity digests, value digests and roots."""

NIBBLES = 2 * DIGEST_BYTES
"""Depth of the tree at most: every entity digest is 64 nibbles, high nibble first."""


class _Leaf:
    """One entity and the digest of its value."""

    __slots__ = ("_hash", "entity", "value")

    depth: Final = NIBBLES
    """A leaf lies below every branching."""
    count: Final = 1

    def __init__(self, entity: bytes, value: bytes) -> None:
        self.entity = entity
        self.value = value
        self._hash: bytes | None = None

    def hash(self) -> bytes:
        if self._hash is None:
            self._hash = _leaf_hash(self.entity, self.value)
        return self._hash


class _TreeBranch:
    """A place where the entity digests below differ for the first time: two children or more."""

    __slots__ = ("_hash", "bitmap", "children", "count", "depth", "entity")

    def __init__(self, depth: int, bitmap: int, children: tuple[_Node, ...]) -> None:
        assert 0 <= depth < NIBBLES
        assert len(children) == bitmap.bit_count() >= 2, "one child per bit, and at least two"
        assert all(child.depth > depth for child in children)
        self.depth: int = depth
        self.bitmap = bitmap
        self.children = children
        self.count: int = sum(child.count for child in children)
        # Any entity below would do: all share their first `depth` nibbles.
        self.entity: bytes = children[0].entity
        self._hash: bytes | None = None

    def hash(self) -> bytes:
        if self._hash is None:
            self._hash = _branch_hash(self.depth, self.bitmap, (child.hash() for child in self.children))
        return self._hash

    def child(self, nibble: int) -> _Node | None:
        """Return the child that begins with `nibble`, if there is one."""
        return self.children[_slot(self.bitmap, nibble)] if self.bitmap & _bit(nibble) else None

    def replacing(self, nibble: int, child: _Node | None) -> _Node:
        """Return this branch with another child at `nibble`, or without one; a branch with one child becomes that
        child.
        """
        bit, at = _bit(nibble), _slot(self.bitmap, nibble)
        before, after = self.children[:at], self.children[at + bool(self.bitmap & bit) :]
        if child is not None:
            return _TreeBranch(self.depth, self.bitmap | bit, (*before, child, *after))
        rest = before + after
        return rest[0] if len(rest) == 1 else _TreeBranch(self.depth, self.bitmap & ~bit, rest)


_Node: TypeAlias = _Leaf | _TreeBranch


class Tree:
    """The value digests of a set of entities, by entity digest. Trees of equal contents are equal."""

    __slots__ = ("node",)

    def __init__(self, node: _Node | None = None) -> None:
        self.node = node

    @classmethod
    def build(cls, pairs: Iterable[tuple[bytes, bytes]]) -> Tree:
        """Return the tree of these (entity, value) digests at once; of several for one entity the last counts."""
        leaves = dict(pairs)
        for entity, value in leaves.items():
            _check(entity, value)
        return cls(_built([_Leaf(entity, leaves[entity]) for entity in sorted(leaves)]) if leaves else None)

    def put(self, entity: bytes, value: bytes) -> Tree:
        """Return the tree in which `entity` has this value; the same tree if it has it already."""
        _check(entity, value)
        if self.node is None:
            return Tree(_Leaf(entity, value))
        node = _put(self.node, entity, value)
        return self if node is self.node else Tree(node)

    def remove(self, entity: bytes) -> Tree:
        """Return the tree without `entity`; the same tree if it is not there."""
        _check(entity)
        node = None if self.node is None else _remove(self.node, entity)
        return self if node is self.node else Tree(node)

    def get(self, entity: bytes) -> bytes | None:
        """Return the value digest of `entity`, or None."""
        _check(entity)
        node = self.node
        while isinstance(node, _TreeBranch):
            node = node.child(_nibble(entity, node.depth))
        return node.value if node is not None and node.entity == entity else None

    def root(self) -> bytes:
        """Return the digest of the whole tree."""
        return digest("fingerprint.empty", b"") if self.node is None else self.node.hash()

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield (entity, value) digests, in order of the entity's."""
        for leaf in _leaves(self.node):
            yield leaf.entity, leaf.value

    def __iter__(self) -> Iterator[bytes]:
        """Yield the entity digests in order."""
        return (leaf.entity for leaf in _leaves(self.node))

    def __contains__(self, entity: bytes) -> bool:
        return self.get(entity) is not None

    def __len__(self) -> int:
        return 0 if self.node is None else self.node.count

    def __eq__(self, other: object) -> bool:
        return self.root() == other.root() if isinstance(other, Tree) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.root())

    def __repr__(self) -> str:
        return f"<Tree {text(self.root())} of {len(self)}>"


EMPTY = Tree()
"""The tree of no entities."""


def differing(a: Tree, b: Tree) -> Iterator[bytes]:
    """Yield, in order, the entity digests whose value differs, or which only one tree has.

    Subtrees with equal hashes are skipped, so the work is proportional to the differences.
    """
    return _differing(a.node, b.node)


def subtree_hash(pairs: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """Return the hash of the node over these (entity, value) digests; None over none.

    It equals that of the tree over them, without building the tree.
    """
    leaves = sorted(dict(pairs).items())
    for entity, value in leaves:
        _check(entity, value)
    return _hash_over(leaves) if leaves else None


def _hash_over(leaves: list[tuple[bytes, bytes]]) -> bytes:
    """Return the hash of the node over leaves in order, as `_built` makes it."""
    if len(leaves) == 1:
        return _leaf_hash(*leaves[0])
    depth = _shared(leaves[0][0], leaves[-1][0])
    groups: dict[int, list[tuple[bytes, bytes]]] = {}
    for leaf in leaves:
        groups.setdefault(_nibble(leaf[0], depth), []).append(leaf)
    return _branch_hash(depth, sum(map(_bit, groups)), map(_hash_over, groups.values()))


def _leaf_hash(entity: bytes, value: bytes) -> bytes:
    return digest("fingerprint.leaf", entity + value)


def _branch_hash(depth: int, bitmap: int, children: Iterable[bytes]) -> bytes:
    return digest("fingerprint.node", bytes([depth]) + bitmap.to_bytes(2, "big") + b"".join(children))


def branch_hash(depth: int, children: Sequence[bytes | None]) -> bytes | None:
    """Return the hash of the node over sixteen parts that differ at a depth, from the hash of each, or none over none.

    If only one part is non-empty, it is that part's.
    """
    there = [child for child in children if child is not None]
    if len(there) < 2:
        return there[0] if there else None
    bitmap = sum(_bit(nibble) for nibble, child in enumerate(children) if child is not None)
    return _branch_hash(depth, bitmap, there)


def whole(node: bytes | None) -> bytes:
    """Return the digest of a whole tree from the hash of its root node; None for an empty tree."""
    return digest("fingerprint.empty", b"") if node is None else node


def text(root: bytes) -> str:
    """Return a root as people see it: `fp_` and all 52 characters of its base32."""
    assert len(root) == DIGEST_BYTES
    return "fp_" + base32(root)


def value_digest(state: Json, *, plain: bool = False) -> bytes:
    """Return the digest of one entity's value: JSON of the shape docs/formats/fingerprint.md gives.

    `plain` means that it contains no floats, and that all its keys are ASCII.
    """
    return digest("fingerprint.value", serialise_plain(state) if plain else serialise(state))


def _check(entity: bytes, value: bytes | None = None) -> None:
    assert len(entity) == DIGEST_BYTES, "an entity digest has 32 bytes"
    assert value is None or len(value) == DIGEST_BYTES, "a value digest has 32 bytes"


def _nibble(entity: bytes, depth: int) -> int:
    byte = entity[depth >> 1]
    return byte & 15 if depth & 1 else byte >> 4


def _bit(nibble: int) -> int:
    """Return the nibble's place in a bitmap: nibble 0 is the most significant of the 16 bits."""
    return 0x8000 >> nibble


def _slot(bitmap: int, nibble: int) -> int:
    """Return the number of children before `nibble`."""
    return (bitmap >> (16 - nibble)).bit_count()


def _shared(a: bytes, b: bytes) -> int:
    """Return the number of leading nibbles that two entity digests share."""
    distance = int.from_bytes(a, "big") ^ int.from_bytes(b, "big")
    return NIBBLES - (distance.bit_length() + 3) // 4


def _forked(depth: int, a: _Node, b: _Node) -> _TreeBranch:
    """Return the branch at `depth` over two nodes that part there."""
    at_a, at_b = _nibble(a.entity, depth), _nibble(b.entity, depth)
    return _TreeBranch(depth, _bit(at_a) | _bit(at_b), (a, b) if at_a < at_b else (b, a))


def _built(leaves: list[_Leaf]) -> _Node:
    """Return the tree over leaves sorted by entity; a prefix of the first and the last is shared by all."""
    if len(leaves) == 1:
        return leaves[0]
    depth = _shared(leaves[0].entity, leaves[-1].entity)
    groups: dict[int, list[_Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(_nibble(leaf.entity, depth), []).append(leaf)
    return _TreeBranch(depth, sum(map(_bit, groups)), tuple(_built(group) for group in groups.values()))


def _put(node: _Node, entity: bytes, value: bytes) -> _Node:
    shared = _shared(node.entity, entity)
    if shared < node.depth:
        return _forked(shared, node, _Leaf(entity, value))
    if isinstance(node, _Leaf):
        return node if node.value == value else _Leaf(entity, value)
    nibble = _nibble(entity, node.depth)
    old = node.child(nibble)
    new = _Leaf(entity, value) if old is None else _put(old, entity, value)
    return node if new is old else node.replacing(nibble, new)


def _remove(node: _Node, entity: bytes) -> _Node | None:
    if isinstance(node, _Leaf):
        return None if node.entity == entity else node
    nibble = _nibble(entity, node.depth)
    old = node.child(nibble)
    new = None if old is None else _remove(old, entity)
    return node if new is old else node.replacing(nibble, new)


def _leaves(node: _Node | None) -> Iterator[_Leaf]:
    waiting = [] if node is None else [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _Leaf):
            yield node
        else:
            waiting.extend(reversed(node.children))


def _entities(node: _Node | None) -> Iterator[bytes]:
    return (leaf.entity for leaf in _leaves(node))


def _differing(a: _Node | None, b: _Node | None) -> Iterator[bytes]:
    """Yield the differences of two nodes in the same place."""
    if a is b:
        return
    if a is None or b is None:
        yield from _entities(a)
        yield from _entities(b)
        return
    if a.hash() == b.hash():
        return
    shared = min(_shared(a.entity, b.entity), a.depth, b.depth)
    if shared < min(a.depth, b.depth):
        # They diverge above both: neither subtree contains the other.
        low, high = (a, b) if a.entity < b.entity else (b, a)
        yield from _entities(low)
        yield from _entities(high)
    elif shared == NIBBLES:
        yield a.entity
    else:
        for nibble in range(16):
            yield from _differing(_below(a, shared, nibble), _below(b, shared, nibble))


def _below(node: _Node, depth: int, nibble: int) -> _Node | None:
    """Return the part of `node` at `nibble` of `depth`: a child, itself if it lies wholly there, or None."""
    if isinstance(node, _TreeBranch) and node.depth == depth:
        return node.child(nibble)
    return node if _nibble(node.entity, depth) == nibble else None
