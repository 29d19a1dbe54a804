"""What differs between two values: the exact part, however deep, and what became of it."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.compare.value_difference import Difference, differences, joined

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


def told(first: Any, second: Any) -> list[tuple[str, str | None, str | None]]:
    """Return kind and paths of each difference."""
    return [(found.kind, found.path, found.other_path) for found in differences(first, second)]


@given(JSON, JSON)
@settings(max_examples=300, deadline=None)
def test_values_differ_in_something_unless_they_are_the_same(first: Any, second: Any) -> None:
    """There are no differences exactly where the canonical forms are the same, either way round."""
    assert (differences(first, second) == ()) == form.same(first, second)
    assert differences(first, copy.deepcopy(first)) == ()
    assert bool(differences(second, first)) == bool(differences(first, second))


@given(JSON, JSON)
@settings(max_examples=200, deadline=None)
def test_every_path_leads_to_its_value(first: Any, second: Any) -> None:
    """A difference shows what stands at its paths."""
    for found in differences(first, second):
        if found.path is not None:
            assert form.same(at(first, found.path), found.first)
        if found.other_path is not None:
            assert form.same(at(second, found.other_path), found.second)


def at(value: Any, path: str) -> Any:
    """Return what stands at a path."""
    todo = [("", value)]
    while todo:
        here, item = todo.pop()
        if here == path and (here or item is value):
            return item
        if isinstance(item, dict):
            todo += [(joined(here, name), inner) for name, inner in item.items()]
        elif isinstance(item, list):
            todo += [(joined(here, place), inner) for place, inner in enumerate(item)]
    raise AssertionError(f"nothing at {path}")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"a": 1}, {"a": 2}, [("changed", "a", "a")]),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, [("changed", "a.b[1].c", "a.b[1].c")]),
        ({"a.b": 1}, {"a.b": 2}, [("changed", '["a.b"]', '["a.b"]')]),
        ({"a": 1}, {"a": "1"}, [("retyped", "a", "a")]),
        ({"a": 89.0}, {"a": "89"}, [("retyped", "a", "a")]),
        ({"a": True}, {"a": 1}, [("changed", "a", "a")]),
        ({"a": "x"}, {"a": ["x"]}, [("retyped", "a", "a")]),
        ({"a": None}, {}, [("removed", "a", None)]),
        ({}, {"a": None}, [("added", None, "a")]),
        ({"province": "NY"}, {"state": "NY"}, [("renamed", "province", "state")]),
        ({"x": 1, "customer_name": "A"}, {"x": 1, "customerName": "B"}, [("renamed", "customer_name", "customerName")]),
        ({"a": [1, 2, 3]}, {"a": [3, 1, 2]}, [("reordered", "a", "a")]),
        ([1, 2, 3, 4], [1, 3, 4], [("removed", "[1]", None)]),
        ([1, 2], [1, 9, 2], [("added", None, "[1]")]),
        ({"a": "Girona", "b": {}}, {"b": {"city": "Girona"}}, [("moved", "a", "b.city")]),
        ({"name": "Ana", "city": "Girona"}, {"data": {"name": "Ana", "city": "Girona"}}, None),
        (
            [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}],
            [{"id": 2, "n": "b"}, {"id": 1, "n": "c"}],
            [("changed", "[0].n", "[1].n")],
        ),
        ('{"a": {"province": "NY"}}', '{"a": {"state": "NY"}}', [("renamed", "a.province", "a.state")]),
        ({"text": '[{"a": 1}]'}, {"text": '[{"a": 2}]'}, [("changed", "text[0].a", "text[0].a")]),
        ("plain", "other", [("changed", "", "")]),
    ],
)
def test_each_kind_of_difference_is_called_by_its_name(first: Any, second: Any, expected: Any) -> None:
    """Changed, added, removed, renamed, moved, reordered and retyped parts, each with its path on both sides."""
    if expected is None:
        assert told(first, second) == [("moved", "name", "data.name"), ("moved", "city", "data.city")]
    else:
        assert told(first, second) == expected


def grown(rng: random.Random, depth: int, size: int) -> dict[str, Any]:
    """Return an object of some depth with members that say different things, about so many characters long."""
    words = ["amount", "status", "line", "owner", "region", "total", "note", "batch", "unit", "limit"]
    node: dict[str, Any] = {f"{word}_{rng.randrange(99)}": f"{word} {rng.random()}" for word in rng.sample(words, 4)}
    node["rows"] = [{"id": number, "value": rng.random(), "label": f"row {number}"} for number in range(size // 60 + 1)]
    return (
        {"part": node, "count": rng.randrange(1000)} if depth <= 1 else {"inside": grown(rng, depth - 1, size), **node}
    )


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("size", [10, 1_000, 100_000])
def test_a_renamed_key_is_named_at_any_depth_in_a_value_of_any_length(depth: int, size: int) -> None:
    """One key is renamed somewhere inside; that is all that is told, with both names."""
    rng = random.Random(depth * 1_000 + size)
    first = grown(rng, depth, size)
    second = copy.deepcopy(first)
    node = second
    for _ in range(depth - 1):
        node = node["inside"]
    node = node["part"]
    old = next(name for name in node if name != "rows")
    node["renamed_now"] = node.pop(old)
    path = "inside." * (depth - 1) + "part."
    for one, two in ((first, second), (json.dumps(first), json.dumps(second))):
        assert told(one, two) == [("renamed", path + old, path + "renamed_now")]


def test_long_lists_are_compared_in_bounded_memory() -> None:
    """Lists too long to be aligned are compared place by place; the difference is still found."""
    first: list[Any] = [{"v": number} for number in range(20_000)]
    second: list[Any] = [{"v": number + 1} for number in range(20_000)]
    second[0], second[-1] = {"v": -5}, {"v": -7}
    found = differences(first, second)
    assert isinstance(found[0], Difference)
    assert found[0].path == "[0].v"
