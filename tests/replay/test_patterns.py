"""Every documented way to make a run is recorded and replayed: the same, no tool or model called, nothing written."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest
from tests.replay import patterns
from tests.replay.patterns import NAMES, Pattern
from tests.replay.test_verbs import log_of

import woodrat
from woodrat.api.aio import AsyncLedger
from woodrat.api.ledger import Ledger
from woodrat.errors import Refused
from woodrat.replay import verbs as replay_verbs
from woodrat.replay.result import Replayed
from woodrat.runs.recorder.log import LocalLog

ROOT = Path(__file__).parents[2]


def recorded(ledger: Ledger, name: str) -> tuple[str, Pattern]:
    """Record a run as a pattern does, and return the first outer one."""
    patterns.prepare(ledger)
    known = {record.id for record in ledger.runs.list(limit=100)}
    pattern = patterns.patterns(ledger)[name]
    pattern.call()
    made = [run for run in ledger.runs.list(limit=100) if run.id not in known and run.parent is None]
    patterns.change(ledger)
    return made[-1].id, pattern


def replayed(ledger: Ledger, run: str, pattern: Pattern) -> Replayed:
    """Replay a run with the ledger it is made for."""
    if pattern.is_async:
        return asyncio.run(AsyncLedger(ledger).runs.replay(run, pattern.agent))
    return ledger.runs.replay(run, pattern.agent)


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_pattern_replays_as_the_same(name: str) -> None:
    """The unchanged function replays as the same after everything it read has changed, and nothing is called."""
    with woodrat.open(":memory:", agent="loan-officer") as ledger:
        run, pattern = recorded(ledger, name)
        before, called = log_of(ledger), list(patterns.CALLS)
        for _ in range(3):
            found = replayed(ledger, run, pattern)
            assert found.same, str(found.runs[0])
            assert found.runs[0].steps > 0
        assert called == patterns.CALLS
        assert log_of(ledger) == before


@pytest.fixture(scope="module")
def recorded_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A file with a run of every pattern, and their ids."""
    path = tmp_path_factory.mktemp("patterns") / "one.db"
    with woodrat.open(path, agent="loan-officer") as ledger:
        return path, {name: recorded(ledger, name)[0] for name in NAMES}


ELSEWHERE = [name for name, pattern in patterns.patterns(woodrat.open(":memory:")).items() if not pattern.is_async]
"""The patterns that need no async ledger: a command has none."""


def test_patterns_replay_in_another_process(
    recorded_file: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own imports each function by name, with a ledger of its own on the file, and finds the same."""
    path, runs = recorded_file
    monkeypatch.setenv("WOODRAT_PATTERNS", str(path))
    monkeypatch.setattr("sys.path", [str(ROOT), *sys.path])
    with woodrat.open(path, agent="loan-officer") as ledger:
        before = log_of(ledger)
        for name in ELSEWHERE:
            agent = patterns.patterns(ledger)[name].agent
            function = f"tests.replay.patterns:{name}"
            found = replay_verbs.replay(ledger.run_log(), runs[name], agent, jobs=1, function=function)
            assert found.same, f"{name}: {found.runs[0]}"
        assert log_of(ledger) == before


@pytest.mark.parametrize("name", ["handed", "begins", "decorated", "takes_keyed_turn", "wraps", "begins_soon"])
def test_patterns_replay_by_the_command(recorded_file: tuple[Path, dict[str, str]], name: str) -> None:
    """`woodrat runs replay RUN --with module:function` finds the same."""
    path, runs = recorded_file
    words = [sys.executable, "-m", "woodrat", "--db", str(path), "runs", "replay", runs[name]]
    given = {**os.environ, "WOODRAT_PATTERNS": str(path), "PYTHONPATH": str(ROOT)}
    words += ["--with", f"tests.replay.patterns:{name}"]
    done = subprocess.run(words, env=given, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["counts"] == {"runs": 1, "same": 1}


class Killed(BaseException):
    """Ends a process, as far as a run sees."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("begins_twice", "streaming_soon")])
def test_an_interrupted_pattern_is_resumed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that lost its end is resumed by the same function: answered from the log, no tool or model called again."""
    with woodrat.open(":memory:", agent="loan-officer") as ledger:
        monkeypatch.setattr(LocalLog, "end", _unended(LocalLog.end))
        run, pattern = recorded(ledger, name)
        monkeypatch.undo()
        status = ledger.runs.show(run).status
        assert status == "interrupted"
        called = list(patterns.CALLS)
        raised: Exception | None = None
        try:
            if pattern.is_async:
                asyncio.run(AsyncLedger(ledger).runs.resume(run, pattern.agent))
            else:
                ledger.runs.resume(run, pattern.agent)
        except TimeoutError as error:
            raised = error
        assert called == patterns.CALLS, raised
        assert ledger.runs.show(run).status == ("error" if name == "begins_and_fails" else "done")


def _unended(end: Any) -> Any:
    """Return an end that is not recorded, but for the run that is recalled."""

    def ended(self: LocalLog, run: Any, begun: Any, body: dict[str, Any]) -> Any:
        return (
            end(self, run, begun, body) if run.asked.startswith("Should we") or run.asked.endswith("first?") else None
        )

    return ended


def test_what_a_function_does_outside_of_its_run_is_no_part_of_it() -> None:
    """Tools before and after the run are plain; its inputs are what it is called with."""
    with woodrat.open(":memory:", agent="loan-officer") as ledger:
        outside: list[str] = []

        @woodrat.tool
        def look(where: str) -> str:
            outside.append(where)
            return where

        def agent(number: int) -> str:
            look("before")
            with ledger.run("Inside?", inputs={"number": number}) as run:
                run.answer(look("inside"))
            look("after")
            return "returned"

        agent(1)
        (run,) = ledger.runs.list().items
        assert ledger.runs.replay(run.id, agent).same
        assert outside == ["before", "inside", "after", "before", "after"]


def test_a_run_that_is_begun_otherwise_is_told() -> None:
    """Another question, other inputs, and a function that begins nothing are divergences with both sides."""
    with woodrat.open(":memory:", agent="loan-officer") as ledger:

        def agent(number: int, text: str = "Approve application number one?", further: int = 0) -> None:
            with ledger.run(text, inputs={"number": number + further}) as run:
                run.answer(number)

        agent(1)
        (run,) = ledger.runs.list().items
        assert ledger.runs.replay(run.id, agent).same
        other = ledger.runs.replay(run.id, lambda number: agent(number, "Approve application number two?")).runs[0]
        assert [each.kind for each in other.divergences] == ["beginning"]
        assert "one" in str(other.divergence)
        assert "two" in str(other.divergence)
        inputs = ledger.runs.replay(run.id, lambda number: agent(number, further=6)).runs[0].divergence
        assert inputs is not None
        assert (inputs.kind, inputs.old, inputs.new) == ("beginning", {"number": 1}, {"number": 7})
        none = ledger.runs.replay(run.id, lambda: None).runs[0].divergence
        assert none is not None
        assert (none.kind, none.what) == ("missing", "beginning of the run")


def test_a_function_that_asks_for_what_the_run_has_not_is_told() -> None:
    """Parameters that the run has nothing for are named, with what it has; an input that was hidden is not made up."""
    with woodrat.open(":memory:", agent="loan-officer") as ledger:
        with ledger.run("Approve?", inputs={"number": 1, "secret": "x"}, redact=["secret"]) as run:
            run.answer("yes")
        told = str(ledger.runs.replay(run.id, lambda number, colour: None).runs[0].divergence)
        assert "needs colour" in told
        assert "number, secret" in told
        hidden = ledger.runs.replay(run.id, lambda secret: None).runs[0].divergence
        assert str(hidden) == "input secret: it was not stored whole, so the recording cannot answer"


def test_a_resume_that_begins_another_run_is_refused() -> None:
    """The run stays interrupted where the function begins another one, or none."""
    with woodrat.open(":memory:", agent="loan-officer") as ledger:
        id = ledger.run("Approve?", inputs={"number": 1}).start().id

        def agent(number: int) -> None:
            with ledger.run("Something else?", inputs={"number": number}):
                pass

        with pytest.raises(Refused, match="began another run"):
            ledger.runs.resume(id, agent)
        with pytest.raises(Refused, match="was to begin it"):
            ledger.runs.resume(id, lambda number: None)
        assert ledger.runs.show(id).status == "interrupted"


def test_a_resume_of_parallel_calls_pays_for_none_twice() -> None:
    """Where one of several parallel calls is missing, the others answer from the log, whichever comes first."""
    with woodrat.open(":memory:", agent="loan-officer") as ledger:
        calls: list[int] = []
        broken = True

        def ask(number: int) -> int:
            calls.append(number)
            if number == 0 and broken:
                raise Killed
            return number * 10

        def agent(run: Any) -> list[int]:
            with run.executor(1) as pool:
                futures = [pool.submit(run.tool, "ask", ask, number) for number in range(4)]
                wait(futures)
                return [future.result().result for future in futures]

        run = ledger.run("Ask all?").start()
        original = run.record_step
        run.record_step = lambda kind, begun, *bodies: (  # type: ignore[method-assign]
            None if bodies[0].get("errored") else original(kind, begun, *bodies)
        )
        with run.current(), pytest.raises(Killed):
            agent(run)
        id = run.id
        run.release()
        assert calls == [0, 1, 2, 3]
        broken = False
        resumed = ledger.runs.resume(id, agent)
        assert resumed.answer == [0, 10, 20, 30]
        assert calls == [0, 1, 2, 3, 0]


def test_a_model_is_not_paid_twice_for_the_same_request() -> None:
    """After a step that the log does not hold, a model still answers a request that it does hold."""
    with woodrat.open(":memory:", agent="loan-officer") as ledger:
        asked: list[str] = []

        def answer() -> str:
            asked.append("model")
            return "said"

        def agent(run: Any, further: bool = False) -> str:
            if further:
                run.tool("new", lambda: 1)
            messages = [{"role": "user", "content": "Say it."}]
            return str(run.model("small-1", answer, messages=messages).result)

        run = ledger.run("Say?").start()
        with run.current():
            agent(run)
        id = run.id
        del run
        assert ledger.runs.resume(id, lambda run: agent(run, True)).answer == "said"
        assert asked == ["model"]


def test_a_function_may_write_before_and_after_its_run() -> None:
    """What it writes through the ledger outside of its run is no part of it, and is not written again."""
    with woodrat.open(":memory:", agent="loan-officer") as ledger:
        entities: list[Any] = []

        def agent(number: int) -> None:
            before = ledger.store({"entity_type": "loan", "id": str(number), "score": 580})
            entities.append((before.entities, bool(before.observations)))
            with ledger.run("Approve?", inputs={"number": number}) as run:
                run.answer(run.show(f"loan/{number}").fields["score"])
            ledger.correct(f"loan/{number}", {"score": 900})

        agent(7)
        (run,) = ledger.runs.list().items
        position = ledger.position
        found = ledger.runs.replay(run.id, agent)
        assert found.same, str(found.runs[0])
        assert entities == [(("loan/7",), True)] * 2
        assert ledger.position == position


def test_a_run_that_was_running_when_it_was_recalled_is_shown_so() -> None:
    """Whether a recalled run had ended is answered as of then, also where its recorder has come or gone since."""
    with woodrat.open(":memory:", agent="loan-officer") as ledger:

        def agent(run: Any) -> str:
            found = run.recall("Approve loan #1?", projection="full", k=2)
            return f"{sorted((hit.run, hit.record.status) for hit in found.hits)} {found.text}"

        runs = [ledger.run("Approve loan #1?").start() for _ in range(2)]
        for each in runs:
            each.decide("risk", {"score": 1}, [], default="high")
        stopped = runs.pop().id
        del each
        with ledger.run("Go?") as run:
            run.answer(agent(run))
        assert "'running'" in str(run.answered)
        assert "'interrupted'" in str(run.answered)
        runs[0].end(answer="no")
        found = ledger.runs.replay(run.id, agent)
        assert found.same, str(found.runs[0])
        ledger.runs.resume(stopped, lambda run: "yes")
        assert ledger.runs.replay(run.id, agent).same


def test_decisions_inside_tools_are_reported_as_not_made_again() -> None:
    """A tool is answered from the recording, so a decision inside it is not made again, and the answer says so."""
    ledger = woodrat.open(":memory:", agent="officer")
    floor = 600

    @woodrat.tool
    def classify(score: int) -> str:
        rules = [woodrat.Rule("low", {"score": {"lt": floor}})]
        first = woodrat.decide("classify", {"score": score}, rules, default="high")
        return str(woodrat.decide("repeat", {"score": score}, rules, default="high").chosen or first.chosen)

    def agent(run: woodrat.Run) -> str:
        return classify(580)

    with ledger.run("Classify it") as run:
        run.answer(agent(run))
    floor = 500  # other rules inside the tool, which nobody asks again
    found = ledger.runs.replay(run.id, agent)
    (one,) = found.runs
    assert (one.same, one.not_made_again) == (True, 2)
    assert found.summary() == "1 of 1 runs are the same; 2 decisions inside tools were not made again."
    assert str(one).endswith("same; 2 decisions inside tools were not made again")


def test_a_read_of_the_ledger_inside_a_run_replays_as_it_was() -> None:
    """`ledger.show` inside a run is a read of that run: a replay shows what it showed then."""
    ledger = woodrat.open(":memory:", agent="officer")
    ledger.store({"entity_type": "loan", "id": "42", "score": 580})

    def agent(run: woodrat.Run) -> int:
        return int(str(ledger.show("loan/42").fields["score"]))

    with ledger.run("What is the score?") as run:
        run.answer(agent(run))
    assert [(read.entity, read.within) for read in ledger.runs.show(run.id).reads] == [("loan/42", None)]
    ledger.store({"entity_type": "loan", "id": "42", "score": 710})
    assert ledger.runs.replay(run.id, agent).same
    assert ledger.show("loan/42").fields["score"] == 710
