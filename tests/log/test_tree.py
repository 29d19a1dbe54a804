"""The tree is RFC 6962's: published roots and proofs, and no other proof is believed.

The eight leaves, their roots and their proofs are the test vectors of the Certificate Transparency reference
implementation (google/certificate-transparency, merkletree tests), published today in transparency-dev/merkle,
testonly/constants.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.errors import Corrupt
from woodrat.log import tree

SIZE = 128

CT_LEAVES = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
CT_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
CT_INCLUSION = {
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (1, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
CT_CONSISTENCY = {
    (1, 1): [],
    (1, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}


def reference_root(data: list[bytes]) -> bytes:
    """MTH of RFC 6962 section 2.1, word for word, over leaf data."""
    if not data:
        return hashlib.sha256(b"").digest()
    if len(data) == 1:
        return hashlib.sha256(b"\x00" + data[0]).digest()
    k = 1
    while 2 * k < len(data):
        k *= 2
    return hashlib.sha256(b"\x01" + reference_root(data[:k]) + reference_root(data[k:])).digest()


def reference_sides(index: int, size: int) -> str:
    """On which side the sibling stands, root first, on the way to leaf `index`."""
    if size == 1:
        return ""
    k = 1
    while 2 * k < size:
        k *= 2
    return "R" + reference_sides(index, k) if index < k else "L" + reference_sides(index - k, size - k)


def shape(old: int, new: int) -> tuple[bool, str]:
    """What a verifier of a consistency proof goes by: whether the old root is the seed, and the sides."""
    lowest = old & -old
    sides = reference_sides(old - 1, new)
    return old == lowest, sides[: len(sides) - (lowest.bit_length() - 1)]


DATA = [b"leaf %d" % number for number in range(SIZE)]
LEAVES = [tree.leaf_hash(data) for data in DATA]
NODES = tree.Leaves(LEAVES)
ROOTS = [reference_root(DATA[:size]) for size in range(SIZE + 1)]


def hexes(hashes: tuple[bytes, ...]) -> list[str]:
    return [item.hex() for item in hashes]


def flipped(data: bytes, at: int, mask: int = 1) -> bytes:
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def hash_mutants(hashes: tuple[bytes, ...], masks: range | tuple[int, ...]) -> Iterator[tuple[bytes, ...]]:
    """Every way to change one byte of one hash, by every mask."""
    for number, item in enumerate(hashes):
        for at in range(len(item)):
            for mask in masks:
                yield (*hashes[:number], flipped(item, at, mask), *hashes[number + 1 :])


def length_mutants(hashes: tuple[bytes, ...]) -> Iterator[tuple[bytes, ...]]:
    """Proofs with a hash too many, one too few, and hashes of wrong lengths."""
    for number in range(len(hashes) + 1):
        for extra in (bytes(32), LEAVES[0], b""):
            yield (*hashes[:number], extra, *hashes[number:])
    for number, item in enumerate(hashes):
        yield (*hashes[:number], *hashes[number + 1 :])
        for wrong in (item[:-1], item + b"\x00", b""):
            yield (*hashes[:number], wrong, *hashes[number + 1 :])
    if len(hashes) > 1:
        yield tuple(reversed(hashes))
        yield (b"".join(hashes),)


def test_published_roots() -> None:
    """The root of every prefix of the eight published leaves is the published one."""
    leaves = [tree.leaf_hash(data) for data in CT_LEAVES]
    assert [tree.root(leaves[:size]).hex() for size in range(9)] == CT_ROOTS
    assert tree.EMPTY_ROOT.hex() == CT_ROOTS[0]


def test_published_inclusion_proofs() -> None:
    """The published inclusion proofs are the ones made here."""
    leaves = [tree.leaf_hash(data) for data in CT_LEAVES]
    for (index, size), proof in CT_INCLUSION.items():
        assert hexes(tree.inclusion_proof(leaves, index, size)) == proof


def test_published_consistency_proofs() -> None:
    """The published consistency proofs are the ones made here."""
    leaves = [tree.leaf_hash(data) for data in CT_LEAVES]
    for (old, new), proof in CT_CONSISTENCY.items():
        assert hexes(tree.consistency_proof(leaves, old, new)) == proof


def test_every_inclusion_proof_verifies() -> None:
    """Every leaf of every tree of up to 128 leaves has a proof that verifies."""
    for size in range(1, SIZE + 1):
        for index in range(size):
            proof = tree.inclusion_proof(NODES, index, size)
            assert len(proof) == len(reference_sides(index, size))
            assert tree.verify_inclusion(LEAVES[index], index, size, proof, ROOTS[size])


def test_every_consistency_proof_verifies() -> None:
    """Every two trees of up to 128 leaves of one log have a proof that verifies."""
    for new in range(SIZE + 1):
        for old in range(new + 1):
            proof = tree.consistency_proof(NODES, old, new)
            assert tree.verify_consistency(old, new, ROOTS[old], ROOTS[new], proof)


@pytest.mark.parametrize(("sizes", "masks"), [(range(1, 5), range(1, 256)), (range(5, 34), (0x01, 0x80))])
def test_no_changed_inclusion_proof_verifies(sizes: range, masks: range | tuple[int, ...]) -> None:
    """Changing any byte of the leaf, the proof or the root makes an inclusion proof fail."""
    for size in sizes:
        for index in range(size):
            proof = tree.inclusion_proof(NODES, index, size)
            for leaf, root, *changed in hash_mutants((LEAVES[index], ROOTS[size], *proof), masks):
                assert not tree.verify_inclusion(leaf, index, size, changed, root)


@pytest.mark.parametrize(("sizes", "masks"), [(range(2, 5), range(1, 256)), (range(5, 34), (0x01, 0x80))])
def test_no_changed_consistency_proof_verifies(sizes: range, masks: range | tuple[int, ...]) -> None:
    """Changing any byte of the proof or of either root makes a consistency proof fail."""
    for new in sizes:
        for old in range(1, new):
            proof = tree.consistency_proof(NODES, old, new)
            for old_root, new_root, *changed in hash_mutants((ROOTS[old], ROOTS[new], *proof), masks):
                assert not tree.verify_consistency(old, new, old_root, new_root, changed)


def test_no_changed_hash_verifies_in_larger_trees() -> None:
    """Changing any one hash of a proof makes it fail, in every tree of up to 128 leaves."""
    for new in range(1, SIZE + 1):
        for old in range(1, new):
            inclusion = tree.inclusion_proof(NODES, old, new)
            for number, item in enumerate(inclusion):
                changed = (*inclusion[:number], flipped(item, (old + number) % 32), *inclusion[number + 1 :])
                assert not tree.verify_inclusion(LEAVES[old], old, new, changed, ROOTS[new])
            proof = tree.consistency_proof(NODES, old, new)
            for number, item in enumerate(proof):
                changed = (*proof[:number], flipped(item, (old + number) % 32), *proof[number + 1 :])
                assert not tree.verify_consistency(old, new, ROOTS[old], ROOTS[new], changed)


def test_proofs_of_other_lengths_are_refused() -> None:
    """A hash too many, a hash too few or a hash of another length makes any proof fail."""
    for new in range(1, 34):
        for index in range(new):
            proof = tree.inclusion_proof(NODES, index, new)
            for changed in length_mutants(proof):
                assert not tree.verify_inclusion(LEAVES[index], index, new, changed, ROOTS[new])
        for old in range(new + 1):
            proof = tree.consistency_proof(NODES, old, new)
            for changed in length_mutants(proof):
                assert not tree.verify_consistency(old, new, ROOTS[old], ROOTS[new], changed)


def test_leaf_and_root_of_other_lengths_are_refused() -> None:
    """A leaf or a root that is not 32 bytes long verifies nothing."""
    for wrong in (b"", bytes(31), bytes(33)):
        assert not tree.verify_inclusion(wrong, 0, 1, (), wrong)
        assert not tree.verify_consistency(1, 1, wrong, wrong, ())
        assert not tree.verify_consistency(0, 0, wrong, wrong, ())
        assert not tree.verify_consistency(0, 1, tree.EMPTY_ROOT, wrong, ())


def test_other_index_is_refused() -> None:
    """A proof holds for its own index only, whatever index is claimed."""
    for size in range(1, 34):
        for index in range(size):
            proof = tree.inclusion_proof(NODES, index, size)
            for claimed in range(-2, size + 3):
                verdict = tree.verify_inclusion(LEAVES[index], claimed, size, proof, ROOTS[size])
                assert verdict == (claimed == index)


def test_other_size_is_refused_where_the_path_differs() -> None:
    """A claimed size that puts the leaf on another path fails; one with the same path is told apart by its root."""
    for size in range(1, 66):
        for index in range(size):
            proof = tree.inclusion_proof(NODES, index, size)
            for claimed in (size - 1, size + 1):
                same = claimed > index and reference_sides(index, claimed) == reference_sides(index, size)
                assert tree.verify_inclusion(LEAVES[index], index, claimed, proof, ROOTS[size]) == same
                if claimed >= 0:
                    assert not tree.verify_inclusion(LEAVES[index], index, claimed, proof, ROOTS[claimed])


def test_other_sizes_of_a_consistency_proof_are_refused() -> None:
    """A consistency proof holds for its own older size only, and for no newer size with another path."""
    for new in range(2, 66):
        for old in range(1, new):
            proof = tree.consistency_proof(NODES, old, new)
            for claimed in (old - 1, old + 1):
                assert not tree.verify_consistency(claimed, new, ROOTS[old], ROOTS[new], proof)
                assert not tree.verify_consistency(claimed, new, ROOTS[claimed], ROOTS[new], proof)
            for claimed in (new - 1, new + 1):
                same = claimed > old and shape(old, claimed) == shape(old, new)
                assert tree.verify_consistency(old, claimed, ROOTS[old], ROOTS[new], proof) == same
                assert not tree.verify_consistency(old, claimed, ROOTS[old], ROOTS[claimed], proof)


def test_impossible_sizes_are_refused() -> None:
    """Negative numbers, an index outside the tree, an older tree larger than the newer and huge sizes all fail."""
    leaf, root = LEAVES[0], ROOTS[1]
    assert tree.verify_inclusion(leaf, 0, 1, (), root)
    for index, size in ((0, 0), (1, 1), (-1, 1), (0, -1), (-1, 0), (-1, -1), (0, tree.SIZE_MAX + 1), (2**200, 2**201)):
        assert not tree.verify_inclusion(leaf, index, size, (), root)
    for old, new in ((1, 0), (2, 1), (-1, 1), (-1, -1), (1, -1), (-1, 0), (tree.SIZE_MAX + 1, tree.SIZE_MAX + 1)):
        assert not tree.verify_consistency(old, new, root, root, ())


def test_empty_tree_is_a_prefix_of_every_tree() -> None:
    """The older size 0 takes an empty proof, and only with the root of the empty tree."""
    for size in range(0, 10):
        assert tree.verify_consistency(0, size, tree.EMPTY_ROOT, ROOTS[size], ())
        assert not tree.verify_consistency(0, size, ROOTS[1], ROOTS[size], ())
        assert not tree.verify_consistency(0, size, tree.EMPTY_ROOT, ROOTS[size], (ROOTS[1],))
    assert not tree.verify_consistency(0, 0, ROOTS[1], ROOTS[1], ())
    assert not tree.verify_consistency(0, 0, tree.EMPTY_ROOT, ROOTS[1], ())


def test_a_tree_is_consistent_with_itself_only() -> None:
    """Equal sizes need equal roots and an empty proof."""
    for size in range(1, 20):
        assert tree.verify_consistency(size, size, ROOTS[size], ROOTS[size], ())
        assert not tree.verify_consistency(size, size, ROOTS[size], ROOTS[size + 1], ())
        assert not tree.verify_consistency(size, size, ROOTS[size], ROOTS[size], (ROOTS[size],))


def test_a_forked_log_is_not_consistent() -> None:
    """No proof made from a log that changed an old leaf verifies against the old root."""
    for changed in range(16):
        forked = tree.Leaves([*LEAVES[:changed], tree.leaf_hash(b"forged"), *LEAVES[changed + 1 :]])
        for old in range(changed + 1, 20):
            new = old + 13
            proof = tree.consistency_proof(forked, old, new)
            root = tree.Frontier.at(forked, new).root()
            assert not tree.verify_consistency(old, new, ROOTS[old], root, proof)


@given(st.lists(st.binary(max_size=8), max_size=70))
def test_frontier_root_is_the_recursive_root(data: list[bytes]) -> None:
    """Appending leaves one by one ends in the root that RFC 6962 defines by recursion."""
    leaves = [tree.leaf_hash(item) for item in data]
    one_by_one = tree.Frontier()
    for leaf in leaves:
        one_by_one = one_by_one.append(leaf)
    assert one_by_one.root() == reference_root(data) == tree.root(leaves)
    assert one_by_one == tree.Frontier().extend(leaves) == tree.Frontier.at(leaves, len(leaves))


@given(st.integers(0, SIZE), st.integers(0, SIZE))
def test_frontier_can_be_continued(first: int, second: int) -> None:
    """A frontier that was stored and read back grows as if it had never been put away."""
    low, high = sorted((first, second))
    stored = tree.Frontier().extend(LEAVES[:low]).to_bytes()
    assert tree.Frontier.from_bytes(stored).extend(LEAVES[low:high]).root() == ROOTS[high]


def test_frontier_bytes_of_another_length_are_corrupt() -> None:
    """Bytes that no frontier writes are refused as corrupt."""
    good = tree.Frontier().extend(LEAVES[:7]).to_bytes()
    assert len(good) == 8 + 3 * 32
    for bad in (b"", good[:-1], good + b"\x00", good[:8], b"\x00" * 7, b"\xff" * 8 + good[8:]):
        with pytest.raises(Corrupt):
            tree.Frontier.from_bytes(bad)


def test_proofs_ask_for_few_complete_subtrees() -> None:
    """A proof over stored nodes asks for complete subtrees only, and for no more than twice the height of the tree."""

    class Counted:
        def __init__(self) -> None:
            self.asked: list[tuple[int, int]] = []

        def subtree_root(self, start: int, end: int, /) -> bytes:
            self.asked.append((start, end))
            return NODES.subtree_root(start, end)

    for new in range(1, SIZE + 1):
        for old in range(1, new):
            counted = Counted()
            assert tree.inclusion_proof(counted, old, new) == tree.inclusion_proof(NODES, old, new)
            inclusion = len(counted.asked)
            tree.consistency_proof(counted, old, new)
            assert max(inclusion, len(counted.asked) - inclusion) <= 2 * new.bit_length()
            assert all((end - start).bit_count() == 1 and start % (end - start) == 0 for start, end in counted.asked)
