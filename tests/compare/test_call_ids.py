"""Ids that providers make up for calls of tools say nothing, wherever they stand."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runs.story import body, entries

from woodrat.compare.divergence import compare
from woodrat.compare.groups import gather
from woodrat.runs.messages import without_call_ids
from woodrat.runs.record import record_of


@pytest.mark.parametrize(
    "shape",
    [
        lambda id: {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": id, "name": "f", "arguments": {"id": 7}}],
        },
        lambda id: {"tool_calls": [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        lambda id: {"content": [{"type": "tool_use", "id": id, "name": "f", "input": {}}]},
        lambda id: [{"role": "tool", "tool_call_id": id, "content": "x"}],
        lambda id: {"type": "function_call", "call_id": id, "id": "fc_" + id, "name": "f", "arguments": "{}"},
        lambda id: {"name": "f", "args": {}, "id": id},
    ],
)
def test_ids_of_calls_are_left_out(shape: Any) -> None:
    """In the shapes of every provider two calls that differ by id alone are one, and what is said stays."""
    assert shape("call_1") != shape("call_2")
    assert without_call_ids(shape("call_1")) == without_call_ids(shape("call_2"))
    assert "f" in str(without_call_ids(shape("call_1"))) or "x" in str(without_call_ids(shape("call_1")))


@pytest.mark.parametrize(
    "value", [{"id": "42", "name": "Ana"}, {"name": "f", "arguments": {"id": "42"}}, "x", None, [1]]
)
def test_other_ids_stay(value: Any) -> None:
    """An id of anything else, such as of an order among the arguments, counts."""
    assert without_call_ids(value) == value


def test_runs_that_differ_by_ids_of_calls_are_the_same() -> None:
    """A model that asked for the same tool under another id did the same, in a comparison and in a crowd."""

    def run(id: str, order: str = "42") -> Any:
        called = {"parts": [{"type": "tool_call", "id": id, "name": "lookup", "arguments": {"order": order}}]}
        answered = [{"role": "tool", "tool_call_id": id, "content": "paid"}]
        name = f"run_{id * 26}"
        said = entries(
            [
                ("run.started", body(0, name, query="?")),
                ("run.model", body(1, name, model="m", request="a" * 64, response=called)),
                ("run.model", body(2, name, model="m", request=id * 64, messages=answered, response="due")),
                ("run.ended", body(3, name, status="done", answer="due")),
            ]
        )
        return record_of(name, said)

    assert compare(run("a"), run("b")).same
    assert gather([run("a"), run("b"), run("c")]).same
    assert compare(run("a"), run("b", "43")).cause.kind == "output"  # type: ignore[union-attr]
