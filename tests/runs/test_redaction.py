"""Hiding in entries that were made elsewhere: a shape that may hold what is hidden goes with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from tests.runs.shaped import ANYTHING

from woodrat.canon import form
from woodrat.runs import values
from woodrat.runs.redaction import without
from woodrat.runs.shape import SHAPED, shape_of
from woodrat.runs.values import REDACTED
from woodrat.state.redaction import Hidden

HIDDEN = Hidden(["secret", "*_token"])


def entry(kind: str, value: Any) -> dict[str, Any]:
    """Return an entry as a recorder elsewhere makes it that hides nothing."""
    kept = values.plain(value)
    shape = shape_of(value, kept).shape
    return form.normal({"run": "run_1", SHAPED[kind]: kept, "shape": shape})  # type: ignore[return-value]


@pytest.mark.parametrize("kind", SHAPED)
@pytest.mark.parametrize(
    "value",
    [
        {"z": 1.0, "secret": b"\xff hunter2"},
        {"z": 1.0, "deep": [{"API_token": "hunter2\0"}]},
        {"secret": {"name": "hunter2"}},
        {"z": (1,), "deep": {"secret": b"hunter2" * 50}},
    ],
)
def test_the_shape_of_a_value_with_hidden_parts_goes(kind: str, value: Any) -> None:
    """The shape was made before anything was hidden, so all of it goes; nothing hidden is left."""
    found = without(kind, {**entry(kind, value), "shape": [{"type": "bytes", "text": "hunter2"}]}, HIDDEN)
    assert found["shape"] == REDACTED
    assert b"hunter2" not in form.serialise(found)


@pytest.mark.parametrize("kind", SHAPED)
def test_the_shape_of_a_value_without_hidden_parts_stays(kind: str) -> None:
    """A value in which nothing is hidden keeps its shape."""
    told = entry(kind, {"z": 1.0, "open": b"\xff", "deep": [{"b": (1,), "a": 2}]})
    found = without(kind, told, HIDDEN)
    assert found["shape"] == told["shape"]
    assert found[SHAPED[kind]] == told[SHAPED[kind]]


@pytest.mark.parametrize("kind", SHAPED)
def test_the_shape_of_a_value_that_was_cut_goes(kind: str) -> None:
    """The preview of a value that was cut there is taken out, and so is a shape beside it."""
    cut: Any = {"$truncated": {"bytes": 9, "preview": "hunter2"}}
    found = without(kind, {"run": "run_1", SHAPED[kind]: cut, "shape": [{"type": "bytes", "text": "hunter2"}]}, HIDDEN)
    assert found["shape"] == REDACTED
    assert b"hunter2" not in form.serialise(found)


@settings(max_examples=60, deadline=None)
@given(ANYTHING)
def test_what_is_left_does_not_depend_on_what_was_hidden(value: Any) -> None:
    """Whatever stood under a hidden key, the entry is the same afterwards."""
    entries = [
        without("run.tool", entry("run.tool", {"z": 1.0, "secret": part, "rows": [{"secret": part}]}), HIDDEN)
        for part in (value, b"\xff hunter2")
    ]
    assert form.same(*entries)
    assert entries[0]["shape"] == REDACTED
