"""Retold: of two tellings of one call one counts, and calls that merely stand inside others all do."""

from __future__ import annotations

from typing import Any

import pytest

from woodrat.runs.duplicate_spans import MODEL, NOTE, TOOL, retold

OTEL: dict[str, Any] = {"otel": {"name": "x"}}
USED: dict[str, Any] = {"usage": {"input": 11, "output": 7}}


def told(kind: str, span: str, under: str | None = None, **said: Any) -> tuple[str, dict[str, Any]]:
    """Return an entry that came as a span."""
    attributes = {**OTEL, **said.pop("attributes", {})}
    return kind, {"span": span, "attributes": attributes, **({"under": under} if under else {}), **said}


@pytest.mark.parametrize(
    ("entries", "hidden"),
    [
        ([told(MODEL, "a", **USED), told(MODEL, "b", "a", **USED)], {"b"}),
        ([told(MODEL, "a"), told(MODEL, "b", "a", **USED)], {"a"}),
        ([told(MODEL, "a"), told(MODEL, "b", "a")], {"b"}),
        ([told(MODEL, "a"), told(MODEL, "b", "a"), told(MODEL, "c", "b", **USED)], {"a", "b"}),
        ([told(MODEL, "a"), told(MODEL, "b", "a", **USED), told(MODEL, "c", "a", **USED)], {"a"}),
        ([told(MODEL, "a", **USED), told(NOTE, "n", "a"), told(MODEL, "b", "n", **USED)], {"b"}),
        ([told(MODEL, "a", **USED), told(TOOL, "t", "a", name="f"), told(MODEL, "b", "t", **USED)], set()),
        ([told(MODEL, "a", **USED), told(MODEL, "b", **USED)], set()),
        ([told(MODEL, "a", "b", **USED), told(MODEL, "b", "a", **USED)], set()),
    ],
    ids=["outer", "inner-used", "neither", "chain", "attempts", "note-between", "tool-between", "beside", "cycle"],
)
def test_a_model_call_inside_another_is_the_same_call(entries: Any, hidden: set[str]) -> None:
    """The call that says its tokens is kept, of several the outer one; what a tool between them asks is its own."""
    assert retold(entries) == hidden


def test_calls_with_one_answer_are_one_call() -> None:
    """Of calls whose answer has the same id the fullest is kept, wherever they stand."""
    named: dict[str, Any] = {"attributes": {"gen_ai.response.id": "msg_1"}}
    full, bare = told(MODEL, "b", response="So.", **named), told(MODEL, "a", **USED, **named)
    other = told(MODEL, "c", attributes={"gen_ai.response.id": "msg_2"})
    assert retold([full, bare, other]) == {"a"}
    assert retold([other, bare, full]) == {"a"}


@pytest.mark.parametrize(
    ("outer", "inner", "hidden"),
    [
        ({"name": "f", "args": {"a": 1}, "result": 2}, {"name": "f", "args": {}}, {"inner"}),
        ({"name": "f", "args": {"a": 1}}, {"name": "f", "args": {"a": 1}, "result": 2}, {"outer"}),
        ({"name": "f", "args": {"a": 1}}, {"name": "f", "args": {"a": 2}}, set()),
        ({"name": "f", "args": {"a": 1}}, {"name": "g", "args": {"a": 1}}, set()),
    ],
)
def test_a_tool_inside_itself_is_one_call(outer: Any, inner: Any, hidden: set[str]) -> None:
    """A tool of the same name and arguments, or without any, is the call around it; with others it is not."""
    assert retold([told(TOOL, "outer", **outer), told(TOOL, "inner", "outer", **inner)]) == hidden


def test_what_a_recorder_wrote_is_never_told_twice() -> None:
    """Calls that did not come as spans all count, inside of each other too."""
    entries = [(MODEL, {"span": "a", **USED}), (MODEL, {"span": "b", "under": "a", **USED})]
    assert retold(entries) == frozenset()


def test_a_deep_trace_costs_what_its_length_does() -> None:
    """Calls inside of each other without end are looked at a few levels up only, and one of them counts."""
    chain = [told(MODEL, "0", **USED), *(told(MODEL, str(n), str(n - 1)) for n in range(1, 20_000))]
    assert len(retold(chain)) == 19_999
