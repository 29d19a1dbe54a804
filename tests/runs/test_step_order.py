"""Steps of a run in time order, each with a number that people can call it by."""

from __future__ import annotations

from typing import Any

import woodrat
from woodrat.runs.step_order import numbered_steps
from woodrat.runs.steps import Decision, ModelCall, Part, ToolCall


def numbers(ledger: woodrat.Ledger, run: str) -> list[tuple[int, str, int | None]]:
    """Return number, kind and the step around it of every step."""
    found = numbered_steps(ledger.runs.show(run))
    kinds = {Part: "", ToolCall: "tool", ModelCall: "model", Decision: "decision", tuple: "writes"}
    return [(step.number, kinds.get(type(step.part), "other"), step.inside) for step in found]


def test_a_step_has_the_number_of_its_recorder() -> None:
    """Numbers are those that a fork takes, writes count as one step each call, and a judgement is no step."""
    ledger = woodrat.open(":memory:", agent="a")

    @woodrat.tool
    def outer(x: int) -> int:
        return inner(x) + 1

    @woodrat.tool
    def inner(x: int) -> int:
        return x

    with ledger.run("?") as run:
        run.store([{"entity_type": "loan", "id": "1"}, {"entity_type": "loan", "id": "2"}])
        outer(3)
        run.decided("plan", "Postgres", because="many writers")
    ledger.runs.judge(run.id, "good")
    assert numbers(ledger, run.id) == [(1, "writes", None), (2, "tool", None), (3, "tool", 2), (4, "decision", None)]
    record = ledger.runs.show(run.id)
    steps = numbered_steps(record)
    assert [len(step.part) for step in steps if isinstance(step.part, tuple)] == [2]
    assert [step.depth for step in steps] == [0, 0, 1, 0]
    assert {step.number for step in steps if isinstance(step.part, Part)} == {call.step for call in record.steps[:-1]}


def test_steps_without_numbers_of_their_own_are_counted() -> None:
    """Where an import numbers all steps alike, they are counted from 1 in time order; agents keep their names."""
    ledger = woodrat.open(":memory:", agent="a")
    tool: dict[str, Any] = {"kind": "run.tool", "step": 1}
    entries = [
        {"kind": "run.started", "query": "?", "agent": "a"},
        {**tool, "span": "s2", "started_at": "2026-01-05T09:00:02.000000Z", "name": "b", "under": "s1"},
        {**tool, "span": "s1", "started_at": "2026-01-05T09:00:01.000000Z", "name": "a",
         "attributes": {"agent": "planner"}},
        {"kind": "run.ended"},
    ]  # fmt: skip
    (run,) = ledger.runs.import_(entries)
    steps = numbered_steps(ledger.runs.show(run))
    assert [step.part.name for step in steps if isinstance(step.part, ToolCall)] == ["a", "b"]
    assert [(step.number, step.agent, step.inside) for step in steps] == [(1, "planner", None), (2, None, 1)]
