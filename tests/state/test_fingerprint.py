"""The fingerprint depends on the set of entities and values, and on nothing else."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.state import fingerprint
from woodrat.state.fingerprint import EMPTY, Tree, differing, text, value_digest

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "fingerprint.json"

VALUES = [bytes([number]) * 32 for number in range(4)]


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def reference(pairs: dict[bytes, bytes], depth: int = 0) -> bytes:
    """The root as docs/formats/fingerprint.md defines it, nibble by nibble, over hexadecimal text."""
    if not pairs:
        return sha256(b"woodrat/fingerprint.empty/0\n")
    if len(pairs) == 1:
        ((entity, value),) = pairs.items()
        return sha256(b"woodrat/fingerprint.leaf/0\n" + entity + value)
    bits, hashes = "", b""
    for nibble in "0123456789abcdef":
        below = {entity: value for entity, value in pairs.items() if entity.hex()[depth] == nibble}
        if len(below) == len(pairs):
            return reference(pairs, depth + 1)
        bits += "1" if below else "0"
        hashes += reference(below, depth + 1) if below else b""
    return sha256(b"woodrat/fingerprint.node/0\n" + bytes([depth]) + int(bits, 2).to_bytes(2, "big") + hashes)


def entity_of(edits: list[tuple[int, str]]) -> bytes:
    """A digest of zeros with some nibbles changed, so that many share long beginnings."""
    nibbles = ["0"] * 64
    for at, nibble in edits:
        nibbles[at] = nibble
    return bytes.fromhex("".join(nibbles))


edits = st.lists(st.tuples(st.sampled_from([0, 1, 2, 30, 31, 62, 63]), st.sampled_from("017f")), max_size=4)
entities = st.one_of(st.builds(entity_of, edits), st.binary(min_size=32, max_size=32))
contents = st.dictionaries(entities, st.sampled_from(VALUES), max_size=25)


def built(pairs: dict[bytes, bytes]) -> Tree:
    return Tree.build(pairs.items())


def numbered(count: int) -> dict[bytes, bytes]:
    return {sha256(b"entity %d" % number): sha256(b"value %d" % number) for number in range(count)}


def golden_states() -> dict[str, dict[str, Any]]:
    """Leaf values of the shape the format page gives."""
    ada, bob = {"key": "ada@example.org", "type": "contact"}, {"key": "bob@example.org", "type": "contact"}
    city = {"policy": "latest", "value": "Oslo"}
    return {
        "plain": {"deleted": False, "entities": [ada], "fields": {"city": city}},
        "deleted": {"deleted": True, "entities": [ada], "fields": {}},
        "group": {
            "deleted": False,
            "entities": [ada, bob],
            "fields": {"city": city, "visits": {"policy": "sum", "value": "12.5"}},
        },
        "provenance": {
            "deleted": False,
            "entities": [bob],
            "fields": {"city": {**city, "observations": ["obs_" + "a" * 52]}},
        },
    }


def golden_trees() -> dict[str, dict[bytes, bytes]]:
    """Trees of every shape: none, one, parting at the first and at the last nibble, all sixteen ways, many."""
    return {
        "empty": {},
        "one": {bytes(32): VALUES[1]},
        "first nibble": {bytes(32): VALUES[1], entity_of([(0, "f")]): VALUES[2]},
        "last nibble": {bytes(32): VALUES[1], entity_of([(63, "1")]): VALUES[2]},
        "low nibble": {bytes(32): VALUES[1], entity_of([(1, "8")]): VALUES[2]},
        "two depths": {bytes(32): VALUES[1], entity_of([(63, "1")]): VALUES[2], entity_of([(2, "7")]): VALUES[3]},
        "sixteen": {entity_of([(5, nibble)]): VALUES[1] for nibble in "0123456789abcdef"},
        "thousand": numbered(1000),
    }


def golden_json() -> dict[str, Any]:
    """The golden file's contents. The thousand are SHA-256 of `entity N` and of `value N`, N from 0 to 999."""
    trees = {}
    for name, pairs in golden_trees().items():
        rows = {entity.hex(): pairs[entity].hex() for entity in sorted(pairs)} if len(pairs) < 100 else "numbered"
        trees[name] = {"leaves": rows, "root": built(pairs).root().hex(), "text": text(built(pairs).root())}
    values = [
        {"name": name, "state": state, "digest": value_digest(state).hex()} for name, state in golden_states().items()
    ]
    return {"trees": trees, "values": values}


def test_golden_roots_are_unchanged() -> None:
    """The golden trees and values have the golden digests."""
    assert json.loads(GOLDEN.read_text(encoding="utf-8")) == golden_json()


def test_golden_roots_follow_from_the_format() -> None:
    """Every golden root is what the format page says, worked out without the tree."""
    for name, row in json.loads(GOLDEN.read_text(encoding="utf-8"))["trees"].items():
        assert row["root"] == reference(golden_trees()[name]).hex()


def test_golden_value_digests_follow_from_the_format() -> None:
    """A value digest is SHA-256 over the domain and the canonical JSON of the value."""
    for row in json.loads(GOLDEN.read_text(encoding="utf-8"))["values"]:
        plain = json.dumps(row["state"], sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert row["digest"] == sha256(b"woodrat/fingerprint.value/0\n" + plain).hex()


def test_a_small_tree_by_hand() -> None:
    """Two entities that part at nibble 1 make one node: depth 1, bits for nibbles 0 and 8, two leaf hashes."""
    low, high = bytes(32), b"\x08" + bytes(31)
    leaves = [sha256(b"woodrat/fingerprint.leaf/0\n" + entity + VALUES[1]) for entity in (low, high)]
    root = sha256(b"woodrat/fingerprint.node/0\n" + b"\x01" + b"\x80\x80" + leaves[0] + leaves[1])
    assert built({low: VALUES[1], high: VALUES[1]}).root() == root


@given(contents)
def test_root_is_the_reference_root(pairs: dict[bytes, bytes]) -> None:
    """Built at once or one by one, the tree has the root the format page defines."""
    one_by_one = EMPTY
    for entity, value in pairs.items():
        one_by_one = one_by_one.put(entity, value)
    assert one_by_one.root() == built(pairs).root() == reference(pairs)


@given(contents, st.randoms(use_true_random=False))
def test_order_does_not_matter(pairs: dict[bytes, bytes], order: random.Random) -> None:
    """Any order of insertions gives the same root."""
    shuffled = list(pairs.items())
    order.shuffle(shuffled)
    tree = EMPTY
    for entity, value in shuffled:
        tree = tree.put(entity, value)
    assert tree == built(pairs)
    assert hash(tree) == hash(built(pairs))


@given(st.lists(st.tuples(entities, st.sampled_from([None, *VALUES])), max_size=40))
def test_any_history_of_changes_ends_in_the_same_tree(changes: list[tuple[bytes, bytes | None]]) -> None:
    """After any puts and removes the tree is the one built from what is left, and it says what is left."""
    tree, left = EMPTY, dict[bytes, bytes]()
    for entity, value in changes:
        if value is None:
            tree = tree.remove(entity)
            left.pop(entity, None)
        else:
            tree = tree.put(entity, value)
            left[entity] = value
        assert tree.get(entity) == value
        assert (entity in tree) == (value is not None)
    assert tree.root() == reference(left)
    assert len(tree) == len(left)
    assert list(tree) == sorted(left)
    assert list(tree.items()) == sorted(left.items())


@given(contents, entities, st.sampled_from(VALUES))
def test_remove_undoes_put(pairs: dict[bytes, bytes], entity: bytes, value: bytes) -> None:
    """Putting a new entity and removing it again leaves no trace, and the tree put into has not changed."""
    pairs.pop(entity, None)
    tree = built(pairs)
    before = tree.root()
    after = tree.put(entity, value)
    assert after.root() != before
    assert after.remove(entity).root() == before == tree.root()
    assert tree.get(entity) is None


@given(contents)
def test_a_change_of_nothing_is_the_same_tree(pairs: dict[bytes, bytes]) -> None:
    """Putting what is there and removing what is not return the tree itself."""
    tree = built(pairs)
    for entity, value in pairs.items():
        assert tree.put(entity, value) is tree
    missing = sha256(b"missing")
    assert tree.remove(missing) is tree


def test_an_update_shares_all_but_one_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """After one put into a large tree only the nodes on one path are hashed again."""
    tree = built(numbered(5000))
    tree.root()
    hashed: list[str] = []

    def counting(kind: str, body: bytes) -> bytes:
        hashed.append(kind)
        return sha256(f"woodrat/{kind}/0\n".encode() + body)

    monkeypatch.setattr(fingerprint, "digest", counting)
    tree.put(sha256(b"one more"), VALUES[0]).root()
    assert hashed.count("fingerprint.leaf") == 1
    assert len(hashed) < 10


def test_the_deepest_tree_works() -> None:
    """Entities that part at every one of the 64 nibbles are put, found, listed, compared and removed."""
    deep = {bytes(32): VALUES[0]} | {entity_of([(at, "1")]): VALUES[1] for at in range(64)}
    tree = EMPTY
    for entity, value in deep.items():
        tree = tree.put(entity, value)
    assert tree == built(deep)
    assert tree.root() == reference(deep)
    assert list(tree) == sorted(deep)
    assert list(differing(tree, EMPTY)) == sorted(deep)
    assert list(differing(tree, tree.put(bytes(32), VALUES[2]))) == [bytes(32)]
    for entity in deep:
        tree = tree.remove(entity)
    assert tree == EMPTY
    assert len(tree) == 0


def test_last_of_repeated_pairs_counts() -> None:
    """Building from several values of one entity keeps the last, as putting them would."""
    assert Tree.build([(bytes(32), VALUES[1]), (bytes(32), VALUES[2])]) == EMPTY.put(bytes(32), VALUES[2])


def test_every_byte_of_a_leaf_shows() -> None:
    """Changing any byte of an entity digest or of a value digest changes the root."""
    pairs = {sha256(b"a"): VALUES[1], sha256(b"b"): VALUES[2]}
    roots = {built(pairs).root()}
    for at in range(32):
        flip = bytes(at) + b"\x01" + bytes(31 - at)
        changed = bytes(x ^ y for x, y in zip(sha256(b"a"), flip, strict=True))
        roots.add(built({changed: VALUES[1], sha256(b"b"): VALUES[2]}).root())
        value = bytes(x ^ y for x, y in zip(VALUES[1], flip, strict=True))
        roots.add(built({**pairs, sha256(b"a"): value}).root())
    assert len(roots) == 65


@given(contents, contents, contents)
def test_differing_is_the_set_of_differences(
    a: dict[bytes, bytes], b: dict[bytes, bytes], common: dict[bytes, bytes]
) -> None:
    """`differing` yields, in order and once, exactly the entities whose value differs or which one tree lacks."""
    a, b = common | a, common | b
    expected = sorted(entity for entity in a | b if a.get(entity) != b.get(entity))
    assert list(differing(built(a), built(b))) == expected
    assert list(differing(built(b), built(a))) == expected


def test_differing_does_not_walk_what_is_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three changes among twenty thousand entities are found by looking at a few hundred places."""
    pairs = numbered(20_000)
    changed = dict(pairs)
    first, second, *_ = pairs
    changed[first] = VALUES[0]
    del changed[second]
    changed[sha256(b"one more")] = VALUES[0]
    a, b = built(pairs), built(changed)
    visits = 0
    original = fingerprint._differing

    def counting(x: Any, y: Any) -> Iterator[bytes]:
        nonlocal visits
        visits += 1
        return original(x, y)

    monkeypatch.setattr(fingerprint, "_differing", counting)
    assert list(differing(a, b)) == sorted([first, second, sha256(b"one more")])
    assert visits < 300
    visits = 0
    assert list(differing(a, built(pairs))) == []
    assert visits == 1


def test_text_shows_the_whole_digest() -> None:
    """The text of a fingerprint is `fp_` and 52 characters of lower-case base32."""
    shown = text(EMPTY.root())
    assert shown.startswith("fp_")
    assert len(shown) == 3 + 52
    assert set(shown[3:]) <= set("abcdefghijklmnopqrstuvwxyz234567")
    assert shown in repr(EMPTY)


def test_value_digest_ignores_the_order_of_keys() -> None:
    """The value digest is over canonical bytes: the order in which a dict was filled does not show."""
    assert value_digest({"a": 1, "b": [True, None]}) == value_digest({"b": [True, None], "a": 1})
    assert value_digest({"deleted": True}) != value_digest({"deleted": False})


def test_only_whole_digests_are_taken() -> None:
    """Entity and value digests have 32 bytes; anything else is our own mistake and stops at once."""
    for call in (
        lambda: EMPTY.put(bytes(31), bytes(32)),
        lambda: EMPTY.put(bytes(32), bytes(33)),
        lambda: EMPTY.remove(b""),
        lambda: EMPTY.get(b""),
        lambda: Tree.build([(b"", bytes(32))]),
        lambda: text(bytes(20)),
    ):
        with pytest.raises(AssertionError):
            call()


if __name__ == "__main__":  # A format decision was made: write the golden file anew.
    GOLDEN.write_text(json.dumps(golden_json(), indent=2) + "\n", encoding="utf-8")
