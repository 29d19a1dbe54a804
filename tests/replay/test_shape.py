"""Replay and resume that hold: the agent is handed what it was handed, whatever it does with it."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.runs.shaped import ANYTHING, Quote

import woodrat

RUNS = 1_000 if os.environ.get("WOODRAT_LAWS") == "full" else 60


@pytest.fixture
def ledger() -> Iterator[woodrat.Ledger]:
    opened = woodrat.open(":memory:", agent="clerk")
    yield opened
    opened.close()


class Client:
    """A model in the manner of OpenAI: it asks for a tool once, and then answers with what it was told."""

    def __init__(self) -> None:
        self.calls = 0

    def create(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        self.calls += 1
        last = messages[-1]
        if last["role"] == "user":
            asked = {"id": "call_1", "function": {"name": "account", "arguments": last["content"]}, "type": "function"}
            return {"role": "assistant", "content": None, "tool_calls": [asked], "logprob": -1.0}
        return {
            "role": "assistant",
            "content": f"told {last['content']}",
            "usage": {"output_tokens": 2, "input_tokens": 7},
        }


def account(number: int) -> dict[str, Any]:
    return {
        "owner": {"zip": "12", "city": "Paris", "since": datetime(2020, 1, 1 + number % 28, tzinfo=UTC)},
        "balance": float(number),
        "rate": Decimal("1.50") + number,
        "moves": [{"to": "b", "amount": 10.0}, {"to": "a", "amount": -0.0}],
        "quote": Quote(Decimal(number)),
    }


class Agent:
    """A loop of model and tool, with one rule."""

    def __init__(self, limit: float = 500.0) -> None:
        self.client, self.limit = Client(), limit

    def __call__(self, run: woodrat.Run) -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": json.dumps(run.inputs)}]
        while True:
            asked = list(messages)
            answer = run.model("small-1", partial(self.client.create, asked), messages=asked).result
            messages.append(answer)
            if not answer.get("tool_calls"):
                break
            for call in answer["tool_calls"]:
                number = json.loads(call["function"]["arguments"])["number"]
                result = run.tool("account", account, number).result
                if result["balance"] >= self.limit:
                    result["note"] = "rich"
                content = json.dumps(result, default=str) + f" {result['rate']} {result['quote']} {list(result)}"
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        return json.dumps(messages)


def record(ledger: woodrat.Ledger, count: int) -> list[str]:
    """Record runs of the agent, one for each number."""
    runs, agent = [], Agent(limit=count / 2)
    for number in range(count):
        with ledger.run("How much?", inputs={"number": number, "currency": "EUR"}) as run:
            run.answer(agent(run))
        runs.append(run.id)
    return runs


def test_an_unchanged_loop_replays_as_the_same(ledger: woodrat.Ledger) -> None:
    """Every recorded run of an OpenAI-style loop replays as the same, and calls no model."""
    runs, agent = record(ledger, RUNS), Agent(limit=RUNS / 2)
    found = ledger.runs.replay(runs, agent)
    assert found.same, found.table()
    assert len(found.runs) == RUNS
    assert agent.client.calls == 0
    assert all(run.problems == () for run in found.runs)


def test_a_changed_rule_shows_in_the_runs_it_affects_alone(ledger: woodrat.Ledger) -> None:
    """With another limit exactly the runs between the two limits differ."""
    runs = record(ledger, RUNS)
    found = ledger.runs.replay(runs, Agent(limit=RUNS / 2 + 10))
    assert [run.run for run in found.differing] == runs[RUNS // 2 : RUNS // 2 + 10]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), ANYTHING, max_size=3), ANYTHING, ANYTHING)
def test_an_agent_that_is_a_function_of_its_run_replays_as_the_same(
    ledger: woodrat.Ledger, inputs: dict[str, Any], result: Any, response: Any
) -> None:
    """Whatever a tool returns, a model answers or the run is given, the agent sees the same in a replay."""

    def told(value: Any) -> str:
        if isinstance(value, set | frozenset):
            return f"{type(value).__name__}{sorted(map(told, value))}"
        if isinstance(value, dict):
            return f"{type(value).__name__}{[(told(key), told(item)) for key, item in value.items()]}"
        if isinstance(value, list | tuple):
            return f"{type(value).__name__}{[told(item) for item in value]}"
        if dataclasses.is_dataclass(value):
            return f"{type(value).__name__}{[told(getattr(value, f.name)) for f in dataclasses.fields(value)]}"
        return "?" if "{" in repr(value) else repr(value)

    def agent(run: woodrat.Run) -> str:
        first = told(run.tool("lookup", lambda: result).result)
        second = told(run.model("small-1", lambda: response, messages=[first]).result)
        return f"{first} {second} {told(run.inputs)}"

    with ledger.run("?", inputs=inputs) as run:
        run.answer(agent(run))
    found = ledger.runs.replay(run.id, agent)
    assert found.same, found.table()


def test_a_resumed_run_is_handed_what_it_was(ledger: woodrat.Ledger) -> None:
    """A run that stopped goes on with the values it had: the model is not paid for again."""
    agent = Agent()
    run = ledger.run("How much?", inputs={"number": 7, "currency": "EUR"}).start()
    with run.current():
        agent(run)
    run.release()
    paid = agent.client.calls
    found = ledger.runs.resume(run.id, agent)
    assert agent.client.calls == paid
    assert found.unused == 0


def test_what_cannot_be_restored_is_named_in_the_run_and_in_its_replay(ledger: woodrat.Ledger) -> None:
    """The run names the type, the step and the place; so does a replay in a program without the class."""

    def agent(run: woodrat.Run) -> str:
        return str(type(run.tool("lookup", lambda: {"a": [Gone(id=1)]}).result["a"][0]).__name__)

    global Gone
    Gone = dataclasses.make_dataclass("Gone", ["id"], namespace={"__module__": __name__})
    with ledger.run("?") as run:
        run.answer(agent(run))
    assert run.problems == []
    made, Gone = Gone, dict
    found = ledger.runs.replay(run.id, agent).runs[0]
    why = f"{__name__}:Gone is not a class that can be restored as dataclass"
    assert found.problems == (f"tool lookup, step 1: cannot be restored: /a/0: {why}",)
    assert made is not Gone
    assert not found.same
    with ledger.run("?") as run:
        run.tool("lookup", lambda: {"a": [object()]})
    assert ledger.runs.show(run.id).problems == (
        "tool lookup, step 1: cannot be restored: object at /a/0: it is kept as a text that shows it",
    )


Gone: Any = None
