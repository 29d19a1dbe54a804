"""A record whose shape was seen before is read as one whose shape was not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.errors import Fault
from woodrat.state import record

SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    st.integers(-(2**54), 2**54),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False),
    st.just('"entity_type":"thing",'),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(st.sampled_from("ab"), SCALARS, max_size=2))
RECORDS = st.dictionaries(st.sampled_from(["a", "entity", "id", "z"]), VALUES, min_size=1)


@given(RECORDS)
def test_a_shape_that_was_seen_before_changes_nothing(fields: dict[str, Any]) -> None:
    """Whether names were looked at before shows neither in what a record is read as nor in what is wrong with it."""
    sent = {"entity_type": "thing", **fields}
    faults: list[Fault] = []
    others: list[Fault] = []
    record._sound.clear()
    first = record.parse_records([sent], faults)
    record.parse_records([{"entity_type": "thing", **dict.fromkeys(fields, "x")}], [])
    second = record.parse_records([sent], others)
    assert (first, faults) == (second, others)
    for found in second:
        assert found.data == form.encode(sent)
        assert form.encode(found.fields) == form.encode(fields)
        assert found.spelled in (None, form.encode(fields))


@pytest.mark.parametrize("value", [["a", "b"], "a"])
def test_a_record_is_read_once(value: Any) -> None:
    """What a caller changes after a call does not reach what was read."""
    for _ in range(2):
        sent = {"entity_type": "thing", "id": "1", "value": value}
        (found,) = record.parse_records(sent, [])
        if isinstance(value, list):
            value.append("c")
        sent["value"] = 1
        assert found.fields["value"] == (["a", "b"] if isinstance(value, list) else "a")
        if isinstance(value, list):
            value.pop()
