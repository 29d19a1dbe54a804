"""The replay law: an agent that is a function of what the run hands it replays as the same, whatever it does with it.

Agents are made of random operations. Planted faults in the replay must each be caught by the same law.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import woodrat
from woodrat.replay.reader import Playback
from woodrat.runs.recorder import current
from woodrat.runs.recorder.calls import Call

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-1_000, 1_000) | st.text("abc é", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(lambda made: dict(sorted(made.items())))
    ),
    max_leaves=6,
)
"""The values that tools and models return; widen them here."""

OPERATIONS = ("tool", "model", "show", "recall", "decide", "store", "pool", "dumps", "sort", "stream", "inner", "fail")
AGENTS = st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 3)), min_size=1, max_size=8)
RULES = [woodrat.Rule("low", {"score": {"lt": 600}}, label="Low")]


class Agent:
    """A function made of operations; what it sees goes into all that it does later."""

    def __init__(self, operations: list[tuple[str, int]], answers: list[Any]) -> None:
        self.operations, self.answers = operations, answers
        self.calls = 0

    def outside(self, *_: Any) -> Any:
        """Answer as the world does: never the same twice."""
        self.calls += 1
        return {"n": self.calls, "value": self.answers[self.calls % len(self.answers)]}

    def __call__(self, run: Any) -> str:
        seen: list[Any] = []
        for name, number in self.operations:
            seen.append(getattr(self, name)(run, number, json.dumps(seen)))
        return json.dumps(seen)

    def tool(self, run: Any, number: int, seen: str) -> Any:
        return run.tool("look", self.outside, number).result

    def model(self, run: Any, number: int, seen: str) -> Any:
        return run.model("m", self.outside, messages=[{"role": "user", "content": f"{number}: {seen}"}]).result

    def show(self, run: Any, number: int, seen: str) -> Any:
        return dict(run.show("loan/1").fields)

    def recall(self, run: Any, number: int, seen: str) -> Any:
        return (run if number % 2 else run.ledger).recall("Approve loan #1?").text

    def decide(self, run: Any, number: int, seen: str) -> Any:
        return run.decide(f"stage-{number}", run.show("loan/1"), RULES, default="high").chosen

    def store(self, run: Any, number: int, seen: str) -> Any:
        return run.store({"entity_type": "note", "id": str(number), "text": seen[-100:]}).position

    def pool(self, run: Any, number: int, seen: str) -> Any:
        with run.executor(3) as pool:
            made = [pool.submit(run.tool, "same", self.outside, 0) for _ in range(4)]
            return [future.result().result for future in made]

    def dumps(self, run: Any, number: int, seen: str) -> Any:
        return run.tool("say", self.outside, f"{json.dumps(seen, indent=number)}").result

    def sort(self, run: Any, number: int, seen: str) -> Any:
        return sorted(str(item) for item in run.tool("look", self.outside, number).result.items())

    def stream(self, run: Any, number: int, seen: str) -> Any:
        return list(run.tool("stream", lambda: (self.outside() for _ in range(number))).result)

    def inner(self, run: Any, number: int, seen: str) -> Any:
        with run.ledger.run(f"Inner {number}?") as inner:
            inner.answer(inner.tool("look", self.outside, number).result)
        return inner.answered

    def fail(self, run: Any, number: int, seen: str) -> Any:
        def broken() -> None:
            raise ValueError(f"{number} {self.outside()}")

        try:
            run.tool("broken", broken)
        except ValueError as error:
            return str(error)


def check(operations: list[tuple[str, int]], answers: list[Any]) -> None:
    """Record an agent, change the world, and replay it: the same, without a call."""
    with woodrat.open(":memory:", agent="tester") as ledger:
        ledger.store({"entity_type": "loan", "id": "1", "score": 580})
        with ledger.run("Approve loan #1?", subject="loan/1") as earlier:
            earlier.decide("risk", earlier.show("loan/1"), RULES, default="high")
            earlier.answer("rejected")
        agent = Agent(operations, answers)
        with ledger.run("Go?") as run:
            run.answer(agent(run))
        ledger.correct("loan/1", {"score": 900})
        with ledger.run("Approve loan #1?", subject="loan/1") as later:
            later.decide("risk", later.show("loan/1"), RULES, default="high")
            later.answer("approved")
        calls = agent.calls
        found = ledger.runs.replay(run.id, agent)
        assert found.same, str(found.runs[0])
        assert agent.calls == calls


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(AGENTS, st.lists(PLAIN, min_size=1, max_size=4))
def test_an_agent_replays_as_the_same(operations: list[tuple[str, int]], answers: list[Any]) -> None:
    """Whatever an agent does with what the run hands it, it replays as the same."""
    check(operations, answers)


ALL = [(name, 2) for name in OPERATIONS]


def test_all_operations_replay_as_the_same() -> None:
    """One agent that does everything once."""
    check(ALL, [1, "a"])


def test_planted_recall_of_the_present(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recall that is answered from the present is caught."""
    monkeypatch.setattr(Playback, "recall", lambda self, args, as_of: None)
    with pytest.raises(AssertionError):
        check([("recall", 1), ("model", 1)], [1])


def test_planted_order_of_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers to equal calls of threads in another order than the recorded one are caught."""
    original = Playback._find

    def last_first(self: Any, key: Any, fits: Any, **given: Any) -> Any:
        if key in self._waiting:
            self._waiting[key].reverse()
        self._before = {}
        return original(self, key, fits, **given)

    monkeypatch.setattr(Playback, "_find", last_first)
    with pytest.raises(AssertionError):
        check([("pool", 1)], [1])


def test_planted_tool_that_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that is called instead of answered is caught."""
    monkeypatch.setattr(Playback, "tool", lambda self, name, args, once: None)
    monkeypatch.setattr(Call, "_close", lambda self, error: None)
    with pytest.raises(AssertionError):
        check([("tool", 1)], [1])


def test_planted_prompt_that_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay that answers another prompt with the recorded response is not the same; a blind one is found out."""

    def replay_with(text: str) -> bool:
        with woodrat.open(":memory:") as ledger:

            def agent(run: Any, said: str) -> Any:
                return run.model("m", lambda: "said", messages=[{"role": "user", "content": said}]).result

            with ledger.run("Go?") as run:
                run.answer(agent(run, "one"))
            return ledger.runs.replay(run.id, lambda run: agent(run, text)).same

    assert replay_with("one")
    assert not replay_with("two")
    monkeypatch.setattr(Playback, "model", lambda self, model, *_: self._next_named("model", model))
    assert replay_with("two"), "the fault is planted"


def test_planted_extra_call_that_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that was not recorded ends the replay with a divergence; a replay that drops it is found out."""

    def replay_more() -> bool:
        with woodrat.open(":memory:") as ledger:
            with ledger.run("Go?") as run:
                run.answer("done")

            def agent(run: Any) -> str:
                run.tool("extra", lambda: 1)
                return "done"

            return ledger.runs.replay(run.id, agent).same

    assert not replay_more()
    empty = {"span": "x", "result": None}
    monkeypatch.setattr(Playback, "tool", lambda self, name, args, once: empty)
    assert replay_more(), "the fault is planted"


def test_the_last_step_is_known_by_thread() -> None:
    """What a thread comes after is its own: another thread does not change it."""
    current.mark_step("run_a", "one")
    assert current.last_step("run_a", "start") == "one"
    assert current.last_step("run_b", "start") == "start"
