"""Leaves of a fingerprint as `verify` holds them."""

from __future__ import annotations

import pickle
import random

import pytest

from woodrat.state.fingerprint import Tree
from woodrat.verify.index import root_of
from woodrat.verify.leaves import Leaves


@pytest.mark.parametrize("count", [0, 1, 2, 400])
def test_packed_leaves_make_the_same_tree(count: int) -> None:
    """Whatever order they come in, and from how many processes, their root is that of the tree over all of them."""
    chance = random.Random(count)
    pairs = [(chance.randbytes(32), chance.randbytes(32)) for _ in range(count)]
    parts = [Leaves(), Leaves()]
    for entity, value in pairs:
        chance.choice(parts).add(entity, value)
    leaves = Leaves()
    for part in parts:
        leaves.take(pickle.loads(pickle.dumps(part)))
    assert len(leaves) == count
    assert list(leaves.items()) == sorted(pairs)
    assert root_of(leaves) == Tree.build(pairs).root()
