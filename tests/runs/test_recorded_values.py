"""Recorded values: what is plain JSON is recorded in one pass, exactly as the definition has it."""

from __future__ import annotations

import json
from collections import OrderedDict
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.runs.shaped import ANYTHING, PLAIN_JSON

from woodrat.canon import form
from woodrat.runs import recorded_values, values
from woodrat.runs.recorded_values import plain_value, recorded_value
from woodrat.runs.shape import SHAPE_BYTES_MAX, shape_of
from woodrat.state.redaction import Hidden

BYTES_MAX = values.RESULT_BYTES_MAX


class Level(IntEnum):
    LOW = 1


class Key(StrEnum):
    A = "a"


class Words(str):
    __slots__ = ()


def check(value: object, hidden: frozenset[str] = values.NOTHING, bytes_max: int = BYTES_MAX) -> None:
    """Compare what is recorded of a value with its definition: bytes, order in memory, shape and problems."""
    recorded = recorded_value(value, bytes_max, hidden)
    defined = values.bounded(value, bytes_max, hidden)
    assert form.serialise(recorded.json) == form.serialise(defined)
    assert in_order(recorded.json) == in_order(defined)
    assert (recorded.shape, recorded.problems) == shape_of(value, defined)


def in_order(value: Any) -> Any:
    """Return a value so that the order of keys counts."""
    if isinstance(value, dict):
        return [(name, in_order(item)) for name, item in value.items()]
    return [in_order(item) for item in value] if isinstance(value, list) else value


# Keys of a few rows over and over, as tables have them, and every float that canonical form spells in its own way.
FLOATS = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 89.0, -1.0, 1.5, 1e-5, 1e-7, 1e15, 9007199254740991.0, 9007199254740992.0, 1e21, 1e300]
    ),
    st.floats(),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), FLOATS)
NAMES = st.sampled_from(["id", "city", "amount", "b", "a", "é", "\uffff", "\U00010000", "secret", "$truncated", "\0"])
TABLES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(NAMES, inner, max_size=4),
        st.lists(st.fixed_dictionaries({"id": inner, "amount": FLOATS, "city": SCALARS}), max_size=4),
    ),
    max_leaves=30,
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(TABLES, PLAIN_JSON, ANYTHING), st.sampled_from([values.NOTHING, Hidden(["secret", "c*"])]))
@example({"b": [1.0, {"b": -0.0, "a": 0.0}], "a": []}, values.NOTHING)
@example({"\U00010000": 1, "\uffff": 2}, values.NOTHING)
@example({"\uffff": 1, "\U00010000": 2}, values.NOTHING)
@example([{"b": 1, "a": 2.0}, {"b": 1, "a": 2.5}, {"b": 1, "a": 2}, {"b": Level.LOW, "a": 2}], values.NOTHING)
def test_a_value_is_recorded_as_it_is_defined(value: Any, hidden: frozenset[str]) -> None:
    """One pass over plain JSON gives the bytes, the shape and the problems that two walks give."""
    check(value, hidden)
    check(value, hidden, bytes_max=60)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.lists(PLAIN_JSON), st.dictionaries(st.text(max_size=4), PLAIN_JSON)))
def test_plain_json_takes_one_pass(value: Any) -> None:
    """JSON without odd text and odd numbers is not walked a second time."""
    if "\\u0000" not in json.dumps(value) and not has_large_floats(value):
        assert plain_value(value, BYTES_MAX) is not None


def has_large_floats(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(has_large_floats, value.values() if isinstance(value, dict) else value))
    return type(value) is float and value.is_integer() and abs(value) > form.INTEGER_MAX


SHARED: list[Any] = []
for _ in range(30):
    SHARED = [SHARED, SHARED]
HOLDING_ITSELF: list[Any] = []
HOLDING_ITSELF += [HOLDING_ITSELF, HOLDING_ITSELF]
DEEP: Any = 1
for _ in range(41):
    DEEP = {"b": DEEP, "a": 1}


@pytest.mark.parametrize(
    "value",
    [
        {"a": (1,)},
        {"a": Level.LOW},
        {Key.A: 1},
        [{"a": 1}, {Key.A: 1}],
        [{"a": 1}, {Words("a"): 1}],
        {"a": Words("a")},
        {"a": UUID(int=1)},
        {"a": OrderedDict(b=1)},
        {"a": b"x"},
        {1: 1},
        {"a": float("nan")},
        {"a": [float("-inf")]},
        {"a": 2**53},
        {"a": 1e20},
        {"a": "\ud800"},
        {"\ud800": 1},
        {"a": "\0"},
        {"\0": 1},
        {"a": HOLDING_ITSELF},
        DEEP,
        {"a": "x" * BYTES_MAX},
        {f"{number:05}": number for number in range(SHAPE_BYTES_MAX // 8 + 1, 0, -1)},
    ],
)
def test_all_else_is_left_to_the_definition(value: Any) -> None:
    """What is no plain JSON, or beyond a bound, is not taken for plain JSON, however much it looks like it."""
    assert plain_value(value, BYTES_MAX) is None
    check(value)


def test_hidden_values_take_one_pass_too() -> None:
    """What stands under a hidden key is in neither the JSON nor the shape, and costs no second walk."""
    rows = [{"id": 1, "secret": part, "amount": 2.0} for part in (1.0, {"b": 1.0, "a": 2}, "x", [1.0])]
    recorded = plain_value(rows, BYTES_MAX, Hidden(["secret"]))
    assert recorded is not None
    assert recorded.json == [{"id": 1, "secret": values.REDACTED, "amount": 2}] * 4
    assert recorded.shape == [{"type": "float"}, {"order": [1, 2, 0], "parts": [0, 0, 1]}, {"parts": 2}]
    check(rows, Hidden(["secret"]))


def test_a_value_that_holds_a_part_very_often_ends() -> None:
    """A part that stands twice in a part that stands twice, and so on, is not copied without end."""
    assert plain_value(SHARED, BYTES_MAX) is None


def test_the_recorded_value_is_a_copy() -> None:
    """What the agent does with its value later does not change what is recorded."""
    value: dict[str, Any] = {"b": [{"z": 1, "a": [1]}], "a": {}}
    recorded = recorded_value(value, BYTES_MAX)
    value["b"][0]["z"] = 2
    value["b"][0]["a"].append(2)
    value["a"]["x"] = 1
    assert recorded.json == {"b": [{"z": 1, "a": [1]}], "a": {}}


def test_what_is_remembered_is_bounded() -> None:
    """Of any number of kinds of objects only some are remembered, and none with very long keys."""
    for number in range(recorded_values.OBJECTS_MAX * 2):
        check({f"key {number}": number, "a": 1})
    check({"k" * (recorded_values.OBJECT_CHARACTERS_MAX + 1): 1, "a": 1})
    remembered = recorded_values._commons
    assert len(remembered) <= recorded_values.OBJECTS_MAX
    assert max(len(name) for names, _ in remembered for name in names) <= recorded_values.OBJECT_CHARACTERS_MAX
