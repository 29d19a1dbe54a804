"""The replay law: an agent that is a function of what the run hands it replays as the same, whatever it does with it.

Its sister: an agent that is not, because it does something else by what is outside, is reported as different. Agents
are made of random operations, as plain functions, coroutines and generators of both kinds. Faults that are planted in
the replay must each be caught by one of the two laws.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

import woodrat
from woodrat.replay.reader import Playback
from woodrat.runs.recorder import current
from woodrat.runs.recorder.calls import Call
from woodrat.runs.recorder.restoration import _Restorer

IS_FULL = os.environ.get("WOODRAT_LAWS") == "full"


class Colour(Enum):
    RED = "red"
    BLUE = 2.0


@dataclasses.dataclass(frozen=True)
class Quote:
    price: Any
    currency: Any = "EUR"


class Pair(NamedTuple):
    second: Any
    first: Any


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-1_000, 1_000)
    | st.text("abc é", max_size=5)
    | st.sampled_from([89.0, -0.0, 0.0, 1e22, 0.1, float("inf")])
    | st.decimals(-1_000, 1_000, places=2)
    | st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1), timezones=st.sampled_from([None, UTC]))
    | st.dates(date(2000, 1, 1), date(2030, 1, 1))
    | st.timedeltas(timedelta(-9), timedelta(9))
    | st.binary(max_size=5)
    | st.uuids()
    | st.sampled_from(Colour)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from("abcde"), inner, max_size=3)
        | st.builds(Quote, inner, inner)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=6,
)
"""The values that tools and models return."""

OPERATIONS = (
    *("tool", "model", "block", "show", "search", "query", "history", "blame", "observations", "timeline", "recall"),
    *("decide", "store", "pool", "dumps", "compute", "walk", "stream", "inner", "fail", "soon", "gather", "inputs"),
)
LEAKS = (
    *("prompt", "argument", "answer", "extra_tool", "extra_model", "extra_read", "extra_recall", "extra_run"),
    *("left_out", "fact", "written", "question", "raised"),
)
"""How an agent may depend on what is outside."""
STEPS = st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 3))
AGENTS = st.lists(STEPS, min_size=1, max_size=8)
FORMS = ("plain", "coroutine", "generator", "async_generator")
RULES = [woodrat.Rule("low", {"score": {"lt": 600}}, label="Low")]
QUESTION = "Approve loan #1?"
TERMS = {"rate": 2.0, "fees": [{"to": "b", "amount": 10.0}, {"to": "a", "amount": 0.5}], "base": 89.0}


def spell(value: Any, number: int) -> str:
    """Return a value as agents spell it: with options of `json.dumps`, in an f-string, or part by part."""
    match number:
        case 0:
            return json.dumps(value, default=repr)
        case 1:
            return json.dumps(value, default=str, indent=1, ensure_ascii=False, separators=(",", " = "))
        case 2:
            return f"{value} {value!r}"
    return parts(value)


def parts(value: Any) -> str:
    """Return a value in the order of its parts, each with its type."""
    name = type(value).__name__
    if isinstance(value, dict):
        return f"{name}[{' '.join(f'{key}:{parts(item)}' for key, item in value.items())}]"
    if isinstance(value, list | tuple):
        return f"{name}[{' '.join(parts(item) for item in value)}]"
    if isinstance(value, Quote):
        return f"{name}[{parts(value.price)} {parts(value.currency)}]"
    return f"{name}:{value!r}"


def compute(value: Any) -> Any:
    """Return what comes of reckoning with every part of a value."""
    match value:
        case dict():
            return {key: compute(item) for key, item in value.items()}
        case Quote():
            return dataclasses.replace(value, price=compute(value.price))
        case Pair():
            return value._replace(first=compute(value.second), second=compute(value.first))
        case list() | tuple():
            return type(value)(compute(item) for item in value)
        case bool() | None | str():
            return value
        case Decimal():
            try:
                return value / 3 + Decimal("0.10")
            except InvalidOperation as error:
                return str(error)
        case int() | float() | timedelta():
            return value * 3 / 4
        case date():
            return value + timedelta(days=1), value.isoformat()
        case bytes():
            return value + b"!", value.hex()
        case UUID():
            return value.int % 97
        case Enum():
            return value.name, value is Colour.RED
    raise AssertionError(f"no such value is generated: {value!r}")


class Agent:
    """A function made of operations; what it sees goes into all that it does later."""

    def __init__(self, operations: list[tuple[str, int]], answers: list[Any]) -> None:
        self.operations, self.answers = operations, answers
        self.calls = 0
        self.is_changed = False
        """Whether what is outside has changed, on which only the leaks depend."""
        self.look_soon = woodrat.tool(self._look_soon)

    def outside(self, *_: Any) -> Any:
        """Answer as the world does: never the same twice."""
        self.calls += 1
        return {"value": self.answers[self.calls % len(self.answers)], "n": self.calls}

    async def _look_soon(self, number: int) -> Any:
        await asyncio.sleep(0.001 * (number % 2))
        return self.outside()

    # -- the four forms of a function

    def plain(self, run: Any) -> str:
        seen: list[Any] = []
        for name, number in self.operations:
            seen.append(self.settled(getattr(self, name)(run, number, spell(seen, number))))
        return spell(seen, 0) + spell(seen, 3)

    async def coroutine(self, run: Any) -> str:
        seen: list[Any] = []
        for name, number in self.operations:
            result = getattr(self, name)(run, number, spell(seen, number))
            seen.append(await result if asyncio.iscoroutine(result) else result)
        return spell(seen, 2)

    def generator(self, run: Any) -> Iterator[str]:
        seen: list[Any] = []
        for name, number in self.operations:
            seen.append(self.settled(getattr(self, name)(run, number, spell(seen, number))))
            yield spell(seen[-1], number)

    async def async_generator(self, run: Any) -> AsyncIterator[str]:
        seen: list[Any] = []
        for name, number in self.operations:
            result = getattr(self, name)(run, number, spell(seen, number))
            seen.append(await result if asyncio.iscoroutine(result) else result)
            yield spell(seen[-1], number)

    def settled(self, result: Any) -> Any:
        return asyncio.run(result) if asyncio.iscoroutine(result) else result

    def answer(self, run: Any, form: str) -> str:
        """Return what the function answers, as the program that records it gets it."""
        function = getattr(self, form)
        if form == "plain":
            return str(function(run))
        if form == "coroutine":
            return str(asyncio.run(function(run)))
        if form == "generator":
            return "".join(function(run))

        async def collected() -> str:
            return "".join([item async for item in function(run)])

        return asyncio.run(collected())

    # -- operations

    def tool(self, run: Any, number: int, seen: str) -> Any:
        return run.tool("look", self.outside, number).result

    def model(self, run: Any, number: int, seen: str) -> Any:
        return run.model("m", self.outside, messages=[{"role": "user", "content": f"{number}: {seen}"}]).result

    def block(self, run: Any, number: int, seen: str) -> Any:
        with run.tool("block", number=number) as call:
            call.result = {"seen": len(seen), "inner": run.tool("look", self.outside, seen).result}
        return call.result

    def inputs(self, run: Any, number: int, seen: str) -> Any:
        return dict(run.inputs)

    def show(self, run: Any, number: int, seen: str) -> Any:
        return dict(run.show("loan/1").fields)

    def search(self, run: Any, number: int, seen: str) -> Any:
        return run.search("Porto", limit=1 + number).to_json()

    def query(self, run: Any, number: int, seen: str) -> Any:
        return [dict(found.fields) for found in run.query(entity_type="loan")]

    def history(self, run: Any, number: int, seen: str) -> Any:
        return run.history("loan/1", "terms" if number % 2 else None).to_json()

    def blame(self, run: Any, number: int, seen: str) -> Any:
        return {name: [each.to_json() for each in found] for name, found in run.blame("loan/1").items()}

    def observations(self, run: Any, number: int, seen: str) -> Any:
        return run.observations("loan/1").to_json()

    def timeline(self, run: Any, number: int, seen: str) -> Any:
        return run.timeline().to_json()

    def recall(self, run: Any, number: int, seen: str) -> Any:
        return (run if number % 2 else run.ledger).recall(QUESTION, projection="full", k=2).to_json()

    def decide(self, run: Any, number: int, seen: str) -> Any:
        return run.decide(f"stage-{number}", run.show("loan/1"), RULES, default="high").chosen

    def store(self, run: Any, number: int, seen: str) -> Any:
        return run.store({"entity_type": "memo", "id": str(number), "text": seen[-100:]}).position

    def pool(self, run: Any, number: int, seen: str) -> Any:
        with run.executor(3) as pool:
            made = [pool.submit(run.tool, "same", self.outside, 0) for _ in range(4)]
            return [future.result().result for future in made]

    def dumps(self, run: Any, number: int, seen: str) -> Any:
        return run.tool("say", self.outside, f"{json.dumps(seen, indent=number)}").result

    def compute(self, run: Any, number: int, seen: str) -> Any:
        return compute(run.tool("look", self.outside, number).result["value"])

    def walk(self, run: Any, number: int, seen: str) -> Any:
        found = run.model("m", self.outside, messages=[{"role": "user", "content": f"walk {number}"}]).result
        return [list(found), parts(found)]

    def stream(self, run: Any, number: int, seen: str) -> Any:
        return list(run.tool("stream", lambda: (self.outside() for _ in range(number))).result)

    def inner(self, run: Any, number: int, seen: str) -> Any:
        with run.ledger.run(f"Inner {number}?") as inner:
            inner.answer(spell(inner.tool("look", self.outside, number).result, number))
        return inner.answered

    def fail(self, run: Any, number: int, seen: str) -> Any:
        def broken() -> None:
            raise ValueError(f"{number} {self.outside()}")

        try:
            run.tool("broken", broken)
        except ValueError as error:
            return str(error)

    async def soon(self, run: Any, number: int, seen: str) -> Any:
        return await self.look_soon(number)

    async def gather(self, run: Any, number: int, seen: str) -> Any:
        return await asyncio.gather(*(self.look_soon(each) for each in range(number + 1)))

    # -- leaks: what is done depends on what is outside

    def prompt(self, run: Any, number: int, seen: str) -> Any:
        told = f"{seen} at {self.is_changed}"
        return run.model("m", self.outside, messages=[{"role": "user", "content": told}]).result

    def argument(self, run: Any, number: int, seen: str) -> Any:
        return run.tool("look", self.outside, {"number": number, "now": self.is_changed}).result

    def written(self, run: Any, number: int, seen: str) -> Any:
        run.store({"entity_type": "memo", "id": "leak", "text": f"{self.is_changed}"})

    def fact(self, run: Any, number: int, seen: str) -> Any:
        facts = {"score": 700 if self.is_changed else 500}
        return len(str(run.decide("leak", facts, RULES, default="high").labels))

    def question(self, run: Any, number: int, seen: str) -> Any:
        with run.ledger.run(f"Changed: {self.is_changed}?") as inner:
            inner.answer("none")

    def extra_tool(self, run: Any, number: int, seen: str) -> Any:
        return run.tool("extra", self.outside).result if self.is_changed else None

    def extra_model(self, run: Any, number: int, seen: str) -> Any:
        return run.model("extra", self.outside, messages=[]).result if self.is_changed else None

    def extra_read(self, run: Any, number: int, seen: str) -> Any:
        if self.is_changed:
            run.at(0).history("loan/1")

    def extra_recall(self, run: Any, number: int, seen: str) -> Any:
        if self.is_changed:
            run.recall("Who asked about loan #1?")

    def extra_run(self, run: Any, number: int, seen: str) -> Any:
        if self.is_changed:
            with run.ledger.run("Nobody asked this"):
                pass

    def left_out(self, run: Any, number: int, seen: str) -> Any:
        if not self.is_changed:
            run.tool("extra", lambda: "nothing")

    def raised(self, run: Any, number: int, seen: str) -> Any:
        if self.is_changed:
            raise ValueError("changed")

    def leaked_answer(self, run: Any, number: int, seen: str) -> Any:
        return self.is_changed


def replay(operations: list[tuple[str, int]], answers: list[Any], form: str) -> str | None:
    """Record an agent, change the world and replay it; return how it differs. No tool or model is ever called."""
    with woodrat.open(":memory:", agent="tester") as ledger:
        ledger.store({"entity_type": "loan", "id": "1", "score": 580, "terms": TERMS, "city": "Porto"})
        with ledger.run(QUESTION, subject="loan/1", inputs={"z": 1.0, "a": {"d": -0.0, "b": 2}}) as earlier:
            earlier.tool("terms", lambda: TERMS)
            earlier.decide("risk", earlier.show("loan/1"), RULES, default="high")
            earlier.answer({"state": "rejected", "score": 89.0})
        agent = Agent(operations, answers)
        with ledger.run("Go?", inputs={"given": answers[0], "amount": 89.0}) as run:
            run.answer(agent.answer(run, form))
        ledger.correct("loan/1", {"score": 900, "terms": {"base": 1}})
        with ledger.run(QUESTION, subject="loan/1") as later:
            later.decide("risk", later.show("loan/1"), RULES, default="high")
            later.answer("approved")
        calls, agent.is_changed = agent.calls, True
        position = ledger.position
        found = ledger.runs.replay(run.id, getattr(agent, form))
        assert agent.calls == calls, "a tool or a model was called"
        assert ledger.position == position, "something was written"
        assert found.runs[0].problems == ()
        return None if found.same else str(found.runs[0])


def check_same(operations: list[tuple[str, int]], answers: list[Any], form: str = "plain") -> None:
    """The law for one agent."""
    assert replay(operations, answers, form) is None


def check_different(operations: list[tuple[str, int]], leak: str, place: int, form: str = "plain") -> None:
    """The sister law for one agent, in which a leak is put somewhere."""
    at = place % (len(operations) + 1)
    name = "leaked_answer" if leak == "answer" else leak
    found = replay([*operations[:at], (name, 3), *operations[at:]], ["a", 1.0], form)
    assert found is not None, f"{leak} was not reported"


def law(examples: int, phases: tuple[Phase, ...] = tuple(Phase)) -> None:
    """Check the law with agents at random."""

    @settings(max_examples=examples, phases=phases, **QUIET)
    @given(AGENTS, st.lists(VALUES, min_size=1, max_size=4), st.sampled_from(FORMS))
    def holds(operations: list[tuple[str, int]], answers: list[Any], form: str) -> None:
        check_same(operations, answers, form)

    holds()


def sister_law(examples: int, phases: tuple[Phase, ...] = tuple(Phase)) -> None:
    """Check the sister law with agents at random."""

    @settings(max_examples=examples, phases=phases, **QUIET)
    @given(st.lists(STEPS, max_size=4), st.sampled_from(LEAKS), st.integers(0, 4), st.sampled_from(FORMS))
    def holds(operations: list[tuple[str, int]], leak: str, place: int, form: str) -> None:
        check_different(operations, leak, place, form)

    holds()


QUIET: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "report_multiple_bugs": False,
    "database": None,
}


def test_an_agent_replays_as_the_same() -> None:
    """Whatever an agent does with what the run hands it, it replays as the same."""
    law(1_000 if IS_FULL else 40)


def test_an_agent_that_depends_on_what_is_outside_is_reported() -> None:
    """Whatever an agent does otherwise than it did is a difference, and nothing is called or written."""
    sister_law(1_000 if IS_FULL else 60)


ALL = [(name, 2) for name in OPERATIONS]
EVERYTHING = [
    {"z": 89.0, "a": -0.0, "m": [Decimal("1.50"), (1, 2.0)]},
    Quote(datetime(2020, 1, 1, tzinfo=UTC), Colour.BLUE),
    Pair(b"\xff", UUID(int=7)),
    [timedelta(1, 2), date(2020, 1, 2), None],
]


@pytest.mark.parametrize("form", FORMS)
def test_all_operations_replay_as_the_same(form: str) -> None:
    """One agent of each form that does everything once."""
    check_same(ALL, EVERYTHING, form)


@pytest.mark.parametrize("asked", [{"threshold": 0}, {"threshold": 1}, {"threshold": 0, "not_from": ["other"]}])
def test_the_line_that_was_nearest_is_recalled_again(asked: dict[str, Any]) -> None:
    """Of an entity with many lines, a replay shows first the one that was nearest then, be it a hit or a near miss."""

    def agent(run: Any) -> str:
        found = run.recall("Which house has a roof of green slate?", **asked).to_json()
        assert "slate" in (found["hits"] or found["rejected"])[0]["text"].partition(";")[0]
        return spell(found, 0)

    with woodrat.open(":memory:", agent="tester") as ledger:
        long = {f"part{number}": f"{number} " + "x" * 90 for number in range(6)}
        ledger.store({"entity_type": "house", "id": "7", **long, "roof": "green slate"})
        with ledger.run("Go?") as run:
            run.answer(agent(run))
        ledger.correct("house/7", {"roof": "straw"})
        found = ledger.runs.replay(run.id, agent)
        assert found.same, str(found.runs[0])


@pytest.mark.parametrize("leak", LEAKS)
def test_every_leak_is_reported(leak: str) -> None:
    """Each way to depend on what is outside, between other steps."""
    check_different([("tool", 1), ("show", 1)], leak, 1)


# Planted faults


def caught(checked: Callable[..., None]) -> None:
    """Check that a law finds the fault that is planted, with agents at random."""
    with pytest.raises((AssertionError, Flaky)):
        checked(400, (Phase.generate,))


def _node_without(monkeypatch: pytest.MonkeyPatch, drops: Callable[[dict[str, Any]], bool]) -> None:
    original = _Restorer._made

    def made(self: Any, value: Any, node: dict[str, Any], path: str) -> Any:
        return value if drops(node) else original(self, value, node, path)

    monkeypatch.setattr(_Restorer, "_made", made)


def test_planted_lost_order_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that come back sorted are caught."""
    original = _Restorer._members

    def members(self: Any, value: Any, node: dict[str, Any], path: str) -> Any:
        return original(self, value, {name: part for name, part in node.items() if name != "order"}, path)

    monkeypatch.setattr(_Restorer, "_members", members)
    caught(law)


@pytest.mark.parametrize("tag", ["float", "negative_zero", "decimal", "tuple", "datetime", "enum", "dataclass"])
def test_planted_lost_tag_of_a_type(monkeypatch: pytest.MonkeyPatch, tag: str) -> None:
    """A float that comes back as an integer, or any other value as its JSON, is caught."""
    _node_without(monkeypatch, lambda node: node.get("type") == tag)
    caught(law)


def test_planted_recall_of_the_present(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recall that is answered from the present is caught."""
    monkeypatch.setattr(Playback, "recall", lambda self, args, as_of: None)
    caught(law)


def test_planted_read_of_the_present(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that is answered from the present is caught."""
    monkeypatch.setattr(Playback, "read", lambda self, verb, args, as_of, effective: None)
    caught(law)


def test_planted_order_of_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers to equal calls of threads in another order than the recorded one are caught."""
    original = Playback._find

    def last_first(self: Any, key: Any, fits: Any, **given: Any) -> Any:
        if key in self._waiting:
            self._waiting[key].reverse()
        self._before = {}
        return original(self, key, fits, **given)

    monkeypatch.setattr(Playback, "_find", last_first)
    caught(law)


def test_planted_tool_that_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that is called instead of answered is caught."""
    monkeypatch.setattr(Playback, "tool", lambda self, name, args, once: None)
    monkeypatch.setattr(Call, "_close", lambda self, error: None)
    caught(law)


def test_planted_prompt_that_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorded response to another prompt is caught."""
    monkeypatch.setattr(Playback, "model", lambda self, model, *_: self._next_named("model", model))
    caught(sister_law)


def test_planted_extra_call_that_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that was not recorded, and is answered with something made up, is caught."""
    original = Playback.tool

    def tool(self: Any, name: str, args: Any, once: bool) -> Any:
        return {"span": "x", "result": None} if name == "extra" else original(self, name, args, once=once)

    monkeypatch.setattr(Playback, "tool", tool)
    caught(sister_law)


def test_planted_left_out_call_that_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorded call that is not made any more, and that nobody looks for, is caught."""
    monkeypatch.setattr(Playback, "_compare_steps", lambda self: None)
    caught(sister_law)


def test_planted_write_that_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write of something else that is answered as if it were the recorded one is caught."""
    from woodrat.replay import reader

    monkeypatch.setattr(Playback, "take", lambda self, call: reader._nothing(0))
    monkeypatch.setattr(Playback, "_unwritten", lambda self: [])
    caught(sister_law)


def test_the_last_step_is_known_by_thread() -> None:
    """What a thread comes after is its own: another thread does not change it."""
    current.mark_step("run_a", "one")
    assert current.last_step("run_a", "start") == "one"
    assert current.last_step("run_b", "start") == "start"
