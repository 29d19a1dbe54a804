"""Recorded runs are replayed: the same code gives the same, other code is found out, and nothing is ever written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.explain.test_reader import counted

import woodrat
from woodrat.api.aio import AsyncLedger
from woodrat.api.aio_run import AsyncRun
from woodrat.api.ledger import Ledger
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import NotFound, Refused
from woodrat.merge import BUILTIN
from woodrat.replay import verbs as replay_verbs
from woodrat.replay.result import KINDS, Replayed
from woodrat.replay.verbs import outer_runs
from woodrat.runs import values
from woodrat.runs.recorder.run import Run
from woodrat.runs.rules import Rule
from woodrat.testing.clock import FixedClock

Agent = Callable[[Run], Any]


def opened(engine: InMemoryEngine | None = None, tenant: str = "lending") -> Ledger:
    """Return a ledger in memory whose clock repeats."""
    return Ledger(
        engine or InMemoryEngine(), tenant=tenant, agent="loan-officer", clock=FixedClock(), policies=dict(BUILTIN)
    )


@pytest.fixture
def ledger() -> Ledger:
    found = opened()
    found.store({"entity_type": "loan", "$": {"key": "42"}, "creditScore": 580})
    return found


def log_of(ledger: Ledger) -> list[Any]:
    """Return everything the log of a ledger holds, byte for byte."""
    with ledger.context.engine.view(ledger.tenant) as view:
        return [(e.position, e.kind, e.recorded_at, e.body, e.leaf(), e.envelope.to_json()) for e in view.entries()]


def recorded(ledger: Ledger, agent: Agent, **about: Any) -> str:
    """Record a run of an agent and return its id."""
    with ledger.run("Approve?", **about) as run:
        result = agent(run)
        if result is not None:
            run.answer(result)
    return run.id


def replayed(ledger: Ledger, run: str, agent: Callable[..., Any], **given: Any) -> Replayed:
    """Replay a run; the log must come out of it byte for byte as it was."""
    before = log_of(ledger)
    found = ledger.runs.replay(run, agent, **given)
    assert log_of(ledger) == before
    return found


def first(found: Replayed) -> tuple[str, str]:
    """Return kind and step of the first divergence of the only run."""
    assert len(found.runs) == 1
    divergence = found.runs[0].divergence
    assert divergence is not None
    return divergence.kind, divergence.what


class Officer:
    """An agent with one threshold, a tool it counts the calls of, and a write."""

    def __init__(self, threshold: int = 600) -> None:
        self.threshold = threshold
        self.calls: list[int] = []

    def bureau(self, number: int) -> dict[str, int]:
        """Return a score."""
        self.calls.append(number)
        return {"score": 500 + number % 200}

    def __call__(self, run: Run) -> str:
        number = run.inputs["number"]
        loan = run.show(f"loan/{number}")
        score = run.tool("bureau", self.bureau, number)
        rules = [
            Rule("refused", {"amount": {"gt": 9_000}}, label="Too much"),
            Rule("rejected", {"score": {"lt": self.threshold}}, label="Marginal credit"),
        ]
        facts = {"amount": loan.fact("amount"), "score": score.fact("/score")}
        chosen = run.decide("classify-risk", facts, rules, default="approved").chosen
        run.note(f"{number} is {chosen}")
        run.store({"entity_type": "loan", "$": {"key": str(number)}, "status": chosen})
        return f"#{number}: {chosen}"


@pytest.fixture(scope="module")
def busy() -> tuple[Ledger, list[str]]:
    """A ledger with three hundred recorded runs, whose loans were changed afterwards."""
    ledger, officer, ids = opened(), Officer(), []
    for number in range(300):
        ledger.store({"entity_type": "loan", "$": {"key": str(number)}, "amount": number})
        ids.append(recorded(ledger, officer, inputs={"number": number}, subject=f"loan/{number}"))
    for number in range(300):
        ledger.store({"entity_type": "loan", "$": {"key": str(number)}, "amount": 10_000})
    return ledger, ids


def test_unchanged_code_is_the_same(busy: tuple[Ledger, list[str]]) -> None:
    """Every run of unchanged code is the same, no tool is called, and the log is byte for byte as before."""
    ledger, ids = busy
    before, officer, told = log_of(ledger), Officer(), []
    found = ledger.runs.replay(ids, officer, progress=lambda done, whole: told.append((done, whole)))
    assert found.same
    assert found.counts == {"runs": 300, "same": 300}
    assert found.summary() == "300 of 300 runs are the same."
    assert officer.calls == []
    assert told[0] == (0, 300)
    assert told[-1] == (300, 300)
    assert log_of(ledger) == before


def test_another_threshold_lists_exactly_the_runs_it_decides_otherwise(busy: tuple[Ledger, list[str]]) -> None:
    """One threshold changed: those runs differ whose decision does, each with the rule that differs."""
    ledger, ids = busy
    before = log_of(ledger)
    found = ledger.runs.replay(ids, Officer(threshold=620))
    wanted = [id for number, id in enumerate(ids) if 600 <= 500 + number % 200 < 620]
    assert [run.run for run in found.differing] == wanted
    assert found.counts == {"runs": 300, "same": 300 - len(wanted), "decision": len(wanted)}
    divergence = found.differing[0].divergence
    assert divergence is not None
    assert divergence.rule is not None
    assert (divergence.old, divergence.new, divergence.facts) == ("approved", "rejected", None)
    assert (divergence.rule.number, divergence.rule.label) == (2, "Marginal credit")
    assert str(divergence) == (
        "decision classify-risk: approved became rejected; "
        "rule 2 (Marginal credit) was score lt 600 and is score lt 620"
    )
    assert found.table().count("\n") == len(wanted)
    assert log_of(ledger) == before


def test_what_follows_from_a_decision_is_told_too(busy: tuple[Ledger, list[str]]) -> None:
    """After a divergence the agent goes on for as long as the recording answers: here to the write it never made."""
    ledger, ids = busy
    run = ledger.runs.replay(ids[100], Officer(threshold=620)).runs[0]
    assert [each.kind for each in run.divergences] == ["decision", "not_recorded"]
    assert run.divergences[1].what == "write store"
    assert 'status: "rejected" where the recording has "approved"' in str(run.divergences[1])
    assert "then write store" in str(run)


def test_outcomes_are_plain_json(busy: tuple[Ledger, list[str]]) -> None:
    """What comes of a replay says itself in JSON, counts first."""
    ledger, ids = busy
    found = ledger.runs.replay(ids[100:102], Officer(threshold=601)).to_json()
    assert found["same"] is False
    assert found["counts"] == {"runs": 2, "same": 1, "decision": 1}
    assert found["runs"][0]["divergence"]["rule"]["old"]["when"] == {"score": {"lt": 600}}
    assert found["runs"][1]["divergence"] is None
    assert values.plain(found) == found


def test_a_tool_with_new_arguments_is_not_in_the_recording(ledger: Ledger) -> None:
    """A tool called with arguments it was not recorded with is neither called nor made up."""
    calls: list[str] = []

    def bureau(id: str) -> dict[str, int]:
        calls.append(id)
        return {"hits": 1}

    def agent(run: Run, id: str = "42") -> Any:
        try:
            return run.tool("bureau", bureau, id).result
        except Exception:
            return "caught"

    run = recorded(ledger, agent)
    found = replayed(ledger, run, lambda run: agent(run, "43"))
    assert first(found) == ("not_recorded", "tool bureau")
    assert str(found.runs[0].divergence) == ('tool bureau: not in the recording; id: "43" where the recording has "42"')
    assert calls == ["42"]
    assert replayed(ledger, run, lambda run: agent(run, "43"), live=["bureau"]).same
    assert calls == ["42", "43"]


def test_equal_calls_are_answered_in_order(ledger: Ledger) -> None:
    """Calls with the same name and arguments get their answers in the order they were recorded."""
    answers = iter([1, 2, 3])

    def agent(run: Run) -> list[int]:
        return [run.tool("dice", lambda: next(answers)).result for _ in range(3)]

    run = recorded(ledger, agent)
    assert replayed(ledger, run, agent).runs[0].answer == [1, 2, 3]
    assert replayed(ledger, run, agent).same


def test_models_answer_from_the_recording(ledger: Ledger) -> None:
    """The same request has its recorded response; another prompt is not in the recording."""
    asked: list[str] = []

    def agent(run: Run, prompt: str = "Why?") -> Any:
        def answer() -> str:
            asked.append(prompt)
            return "Because."

        return run.model("small-1", answer, messages=[prompt]).result

    run = recorded(ledger, agent)
    assert replayed(ledger, run, agent).same
    assert first(replayed(ledger, run, lambda run: agent(run, "How?"))) == ("not_recorded", "model small-1")
    assert asked == ["Why?"]


def test_reads_are_answered_as_of_then(ledger: Ledger) -> None:
    """A read shows what it showed, whatever was corrected since; a read that is new shows what was known then."""

    def agent(run: Run) -> Any:
        return run.show("loan/42").fields["creditScore"]

    def looks_further(run: Run) -> Any:
        run.show("loan/42")
        return run.query(entity_type="loan").items[0].fields["creditScore"]

    run = recorded(ledger, agent)
    ledger.correct("loan/42", {"creditScore": 640})
    assert replayed(ledger, run, agent).runs[0].answer == 580
    assert replayed(ledger, run, agent).same
    found = replayed(ledger, run, looks_further)
    assert first(found) == ("extra", "query")
    assert found.runs[0].answer == 580


def test_pages_are_answered_as_of_then(ledger: Ledger) -> None:
    """Pages are read again at the position of the first; the usual limit is not recorded, as it was before pages."""
    ledger.store([{"entity_type": "loan", "$": {"key": str(n)}, "creditScore": n} for n in range(50, 57)])

    def agent(run: Run) -> list[Any]:
        scores: list[Any] = [snapshot.fields["creditScore"] for snapshot in run.query(entity_type="loan", limit=3)]
        first = run.observations("loan/42", limit=1)
        rest = run.observations("loan/42", limit=1, cursor=first.cursor).items if first.cursor else ()
        lists = (run.observations("loan/42"), run.history("loan/42"), run.timeline(), run.conflicts())
        return [*scores, *(len(list(page)) for page in lists), len(rest)]

    ledger.store({"entity_type": "loan", "$": {"key": "42"}, "creditScore": 600})
    run = recorded(ledger, agent)
    asked = {(read.within, tuple(sorted(read.args or ()))) for read in ledger.runs.show(run).reads}
    assert {("query", ("cursor", "entity_type", "limit")), ("observations", ("ref",)), ("timeline", ())} <= asked
    ledger.store([{"entity_type": "loan", "$": {"key": str(n)}, "creditScore": -n} for n in range(40, 60)])
    assert replayed(ledger, run, agent).same


def test_missing_and_extra_steps_are_named(ledger: Ledger) -> None:
    """What is recorded and not asked for any more is missing; a decision that was not made is extra."""

    def agent(run: Run) -> str:
        run.tool("bureau", lambda: 1)
        run.show("loan/42")
        run.decide("a", {"x": 1}, [Rule("yes", {"x": 1})])
        run.store({"entity_type": "loan", "$": {"key": "42"}, "status": "seen"})
        return "done"

    def decides(run: Run) -> str:
        run.decide("b", {"x": 1}, [Rule("yes", {"x": 1})])
        return agent(run)

    run = recorded(ledger, agent)
    found = replayed(ledger, run, lambda run: "done").runs[0]
    assert [(each.kind, each.what) for each in found.divergences] == [
        ("missing", "tool bureau"),
        ("missing", "read loan/42"),
        ("missing", "decision a"),
        ("missing", "write loan/42"),
    ]
    assert first(replayed(ledger, run, decides)) == ("extra", "decision b")


def test_another_answer_is_a_divergence(ledger: Ledger) -> None:
    """The same steps with another answer differ at the answer."""
    run = recorded(ledger, lambda run: "yes")
    found = replayed(ledger, run, lambda run: "no")
    assert first(found) == ("answer", "answer")
    assert str(found.runs[0].divergence) == "answer: yes became no"


def test_a_new_rule_other_facts_and_another_predicate_are_told_apart(ledger: Ledger) -> None:
    """The cause of another decision is the rule that differs, or else the facts, or the predicate's own code."""

    def deciding(rules: list[Rule], facts: Any = None, default: str = "open") -> Agent:
        return lambda run: run.decide("gate", facts or {"x": 1}, rules, default).chosen

    run = recorded(ledger, deciding([Rule("a", {"x": 2})]))
    told = [
        str(replayed(ledger, run, agent).runs[0].divergence)
        for agent in (
            deciding([Rule("a", {"x": 2}), Rule("b", {"x": 1}, label="One")]),
            deciding([Rule("a", {"x": 2})], {"x": 2}),
            deciding([Rule("a", {"x": 2})], default="shut"),
        )
    ]
    assert told == [
        "decision gate: open became b; rule 2 (One) is new: x eq 1",
        "decision gate: open became a; x was 1 and is 2",
        "decision gate: open became shut; the rules are the same; the default is not",
    ]
    limit = 0

    def above(facts: Any) -> bool:
        return bool(facts["x"] > limit)

    run = recorded(ledger, deciding([Rule("a", above)]))
    limit = 5
    divergence = replayed(ledger, run, deciding([Rule("a", above)])).runs[0].divergence
    assert str(divergence).endswith("rule 1 answers otherwise")


def test_an_agent_that_raises_is_told(ledger: Ledger) -> None:
    """An exception that was not recorded is a divergence; the one that was is the same."""

    def fails(run: Run) -> None:
        raise ValueError("no")

    run = recorded(ledger, lambda run: "yes")
    found = replayed(ledger, run, fails)
    assert first(found) == ("raised", "agent")
    assert str(found.runs[0].divergence) == "agent: raised ValueError: no; recorded was no error"
    with pytest.raises(ValueError, match="no"):
        recorded(ledger, fails)
    failed = ledger.runs.list(status="error").items[0].id
    assert replayed(ledger, failed, fails).same
    assert first(replayed(ledger, failed, lambda run: None)) == ("raised", "agent")


def test_a_recorded_error_of_a_tool_is_raised_again(ledger: Ledger) -> None:
    """A tool that failed fails again without being called."""
    calls: list[int] = []

    def fetch() -> None:
        calls.append(1)
        raise KeyError("gone")

    def agent(run: Run) -> str:
        try:
            run.tool("fetch", fetch)
        except KeyError:
            return "handled"
        return "fetched"

    run = recorded(ledger, agent)
    assert replayed(ledger, run, agent).same
    assert calls == [1]


def test_an_agent_that_loops_is_stopped(ledger: Ledger) -> None:
    """An agent that goes on for ever is stopped after a named number of steps, even one that catches everything."""

    def loops(run: Run) -> None:
        while True:
            try:
                run.note("again")
            except Exception:
                continue

    run = recorded(ledger, lambda run: "yes")
    found = replayed(ledger, run, loops, steps_max=50)
    assert first(found) == ("steps", "steps")
    assert found.runs[0].steps == 50


def test_an_agent_that_prints_is_let(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    """What an agent prints is printed."""
    run = recorded(ledger, lambda run: "yes")

    def prints(run: Run) -> str:
        print("hello")
        return "yes"

    assert replayed(ledger, run, prints).same
    assert capsys.readouterr().out == "hello\n"


def test_async_agents_are_replayed(ledger: Ledger) -> None:
    """An async function is replayed in a loop of its own, also when called from inside one."""

    async def fetch(id: str) -> str:
        raise AssertionError("called")

    async def agent(run: Run) -> Any:
        found = await asyncio.gather(*(run.tool("fetch", fetch, id) for id in "ab"))
        return [call.result for call in found]

    def answers(run: Run) -> Any:
        return [run.tool("fetch", lambda id: id.upper(), id).result for id in "ab"]

    run = recorded(ledger, answers)
    assert replayed(ledger, run, agent).same

    async def inside_a_loop() -> Replayed:
        return replayed(ledger, run, agent)

    assert asyncio.run(inside_a_loop()).same

    async def other(run: Run) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(run.tool("fetch", fetch, "c"))

    assert first(replayed(ledger, run, other)) == ("not_recorded", "tool fetch")


def test_async_ledgers_replay(ledger: Ledger) -> None:
    """An async ledger gives an async function runs of its own kind."""

    async def agent(run: AsyncRun) -> Any:
        return (await run.show("loan/42")).fields["creditScore"]

    run = recorded(ledger, lambda run: run.show("loan/42").fields["creditScore"])
    assert asyncio.run(AsyncLedger(ledger).runs.replay(run, agent)).same


def test_functions_made_runs_are_given_their_inputs(ledger: Ledger) -> None:
    """A function that `recorded` made is replayed with the arguments it was called with."""
    factor = 2

    @ledger.recorded("Double {number}?")
    def double(number: int) -> int:
        return number * factor

    double(4)
    run = ledger.runs.list().items[0].id
    assert replayed(ledger, run, double).same
    factor = 3
    assert str(replayed(ledger, run, double).runs[0].divergence) == "answer: 8 became 12"


def test_nothing_is_written_past_the_run(ledger: Ledger) -> None:
    """Writes through the ledger inside a replay are not carried out, in threads neither, and the agent is told."""

    def agent(run: Run) -> str:
        return "yes"

    def writes(run: Run) -> str:
        ledger.store({"entity_type": "loan", "$": {"key": "43"}, "creditScore": 1})
        return "yes"

    def writes_in_a_thread(run: Run) -> str:
        def work() -> None:
            run.store({"entity_type": "loan", "$": {"key": "43"}, "creditScore": 1})

        thread = threading.Thread(target=woodrat.carry(work), daemon=True)
        hook, threading.excepthook = threading.excepthook, lambda args: None
        try:
            thread.start()
            thread.join()
        finally:
            threading.excepthook = hook
        return "yes"

    run = recorded(ledger, agent)
    found = replayed(ledger, run, writes)
    assert first(found) == ("not_kept", "write store")
    assert "write with run.store" in str(found.runs[0].divergence)
    assert first(replayed(ledger, run, writes_in_a_thread)) == ("not_recorded", "write store")


def test_readings_are_gone_on_with(ledger: Ledger) -> None:
    """A reading of a source that is recorded is the same reading when its run is replayed, and when it is resumed."""
    source = ledger.sources.add(b"Ann lives in Bath.", name="letter")

    def agent(run: Run) -> str:
        with run.interpretation(source, model="small-1") as reading:
            reading.store({"entity_type": "contact", "name": "Ann", "city": "Bath"})
        return "read"

    assert replayed(ledger, recorded(ledger, agent), agent).same
    run = ledger.run("Cut?").start()
    with run.current():
        agent(run)
    id = run.id
    del run
    before = len(list(ledger.observations("contact/Ann")))
    assert ledger.runs.resume(id, agent).status == "done"
    assert len(list(ledger.interpretations.list())) == 2
    assert len(list(ledger.observations("contact/Ann"))) == before


def test_threads_and_pools_of_the_agent_are_replayed(ledger: Ledger) -> None:
    """What an agent does in threads is answered too; one that outlives the replay does nothing for real."""
    calls: list[str] = []
    go, threads = threading.Event(), []
    late: list[str] = []

    @woodrat.tool
    def fetch(id: str) -> str:
        calls.append(id)
        return id.upper()

    def agent(run: Run) -> list[str]:
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(fetch("a")))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(2) as pool:
            return found + list(pool.map(fetch, "bc"))

    def leaves_one_behind(run: Run) -> list[str]:
        def work() -> None:
            go.wait()
            try:
                fetch("a")
            except BaseException as error:
                late.append(type(error).__name__)

        threads.append(threading.Thread(target=work))
        threads[0].start()
        return agent(run)

    with woodrat.carry_threads():
        run = recorded(ledger, agent)
        assert sorted(calls) == ["a", "b", "c"]
        assert replayed(ledger, run, agent).same
        assert replayed(ledger, run, leaves_one_behind).same
        go.set()
        threads[0].join()
    assert late == ["ReplayStopped"]
    assert len(calls) == 3


def test_a_thread_of_the_run_is_replayed(ledger: Ledger) -> None:
    """Threads and pools that the run itself makes are answered from the recording; a plain one is no part of it."""
    calls: list[str] = []

    @woodrat.tool
    def fetch(id: str) -> str:
        calls.append(id)
        return id.upper()

    def agent(run: Run) -> list[str]:
        found: list[str] = []
        mine = run.thread(lambda: found.append(fetch("a")))
        plain = threading.Thread(target=fetch, args=("plain",))
        for thread in (mine, plain):
            thread.start()
            thread.join()
        with run.executor(2) as pool:
            return found + list(pool.map(fetch, "bc"))

    run = recorded(ledger, agent)
    assert [call.name for call in ledger.runs.show(run).tool_calls] == ["fetch"] * 3
    assert replayed(ledger, run, agent).same
    assert calls.count("plain") == 2
    assert len(calls) == 5


def test_a_write_is_answered_with_its_old_report(ledger: Ledger) -> None:
    """What a write reported then it reports now, positions and all."""
    known = {"entity_type": "loan", "$": {"key": "42"}, "creditScore": 580}
    ledger.store(known, observed_at="2025-12-30T00:00:00Z")

    def agent(run: Run) -> Any:
        return run.store(known, observed_at="2025-12-30T00:00:00Z").to_json()

    with ledger.run("Again?") as run:
        run.answer(agent(run))
    assert replayed(ledger, run.id, agent).same


def test_blocks_are_compared_with_what_they_came_to(ledger: Ledger) -> None:
    """The code of a block runs; the steps inside answer from the recording, and another result is a divergence."""
    result = 1

    def agent(run: Run) -> str:
        with run.tool("search", text="x") as call:
            run.tool("inner", lambda: 1)
            woodrat.decide("inside", {"x": 1}, [Rule("yes", {"x": 1})])
            call.result = result
        return "done"

    run = recorded(ledger, agent)
    assert replayed(ledger, run, agent).same
    result = 2
    assert str(replayed(ledger, run, agent).runs[0].divergence) == "tool search: its block returned 2; 1 was recorded"


def test_steps_inside_an_answered_call_do_not_happen(ledger: Ledger) -> None:
    """What happened inside a tool that the recording answers is not missed."""

    def agent(run: Run) -> Any:
        return run.tool("outer", lambda: run.tool("inner", lambda: 1).result).result

    run = recorded(ledger, agent)
    assert replayed(ledger, run, agent).same
    assert replayed(ledger, run, agent, live="outer").same


def test_runs_inside_are_replayed_with_the_one_around(ledger: Ledger) -> None:
    """A run inside answers from its own recording; one that was not there is not begun."""
    threshold, asked = 600, "Score?"

    def agent(run: Run) -> Any:
        with ledger.run(asked, inputs={"id": "42"}) as inner:
            loan = inner.show("loan/42")
            rules = [Rule("low", {"creditScore": {"lt": threshold}})]
            inner.answer(woodrat.decide("score", loan, rules, "high").chosen)
        return "scored"

    run = recorded(ledger, agent)
    assert outer_runs(ledger.context) == [run]
    assert replayed(ledger, run, agent).same
    threshold = 500
    found = replayed(ledger, run, agent).runs[0]
    assert [each.what for each in found.divergences] == ["decision score", "answer of the run inside (Score?)"]
    asked = "Other?"
    assert first(replayed(ledger, run, agent)) == ("not_recorded", "run inside")
    assert first(replayed(ledger, run, lambda run: "scored")) == ("missing", "run inside (Score?)")


def test_an_interrupted_run_is_compared_as_far_as_it_goes(ledger: Ledger) -> None:
    """Where the recording breaks off the replay ends, and what came before is the same."""
    calls: list[str] = []

    def agent(run: Run) -> Any:
        run.tool("one", lambda: calls.append("one"))
        run.tool("two", lambda: calls.append("two"))
        return "done"

    run = ledger.run("Cut?").start()
    run.tool("one", lambda: None)
    id = run.id
    del run
    found = replayed(ledger, id, agent).runs[0]
    assert found.same
    assert found.interrupted
    assert calls == []
    assert ledger.runs.show(id).status == "interrupted"
    assert first(replayed(ledger, id, lambda run: run.tool("two", lambda: 1).result)) == ("not_recorded", "tool two")


def test_results_that_were_not_kept_are_said(ledger: Ledger) -> None:
    """A result that the log cut or hid is not there to answer with."""

    def agent(run: Run) -> str:
        run.tool("download", lambda: "x" * 1_000_000)
        return "done"

    found = replayed(ledger, recorded(ledger, agent), agent)
    assert first(found) == ("not_kept", "tool download")
    assert "not stored whole" in str(found.runs[0].divergence)


def test_hidden_values_do_not_count_as_different(ledger: Ledger) -> None:
    """What was redacted in the recording is redacted in the replay, and compares as the same."""

    def agent(run: Run) -> str:
        run.tool("login", lambda password: "ok", password="secret")
        return str(run.decide("gate", {"password": "secret"}, [Rule("in", {"password": "secret"})]).chosen)

    run = recorded(ledger, agent, redact=["password"])
    assert replayed(ledger, run, agent).same


def test_unknown_runs_are_not_found(ledger: Ledger) -> None:
    """Runs that are not here, another tenant's among them, are named, and none is replayed."""
    calls: list[str] = []
    mine = recorded(ledger, lambda run: "yes")
    other = opened(ledger.context.engine, tenant="other")  # type: ignore[arg-type]
    theirs = recorded(other, lambda run: "yes")
    for unknown in (theirs, "run_nothing"):
        with pytest.raises(NotFound, match=f"There is no run {unknown} here. Nothing was replayed") as caught:
            ledger.runs.replay([mine, unknown], lambda run: calls.append(run.id))
        assert caught.value.details == {"runs": [unknown]}
    with pytest.raises(NotFound, match="There are no runs"):
        ledger.runs.replay(["run_a", "run_b"], lambda run: None)
    assert calls == []


@pytest.mark.parametrize(
    ("runs", "agent", "given", "words"),
    [
        (7, print, {}, "expected a run's id or several"),
        ([7], print, {}, "expected a run's id, got 7"),
        ([], "print", {}, "expected a function"),
        ([], print, {"steps_max": 0}, "steps_max"),
        ([], print, {"live": [7]}, "Name tools as text"),
    ],
)
def test_bad_arguments_are_refused(ledger: Ledger, runs: Any, agent: Any, given: Any, words: str) -> None:
    """What is no run, no function or no number is refused before anything happens."""
    with pytest.raises(Refused, match=words):
        ledger.runs.replay(runs, agent, **given)


def test_records_name_their_runs_and_none_is_none(ledger: Ledger) -> None:
    """Run records stand for their runs, each is replayed once, and no run at all is the same."""
    run = recorded(ledger, lambda run: "yes")
    assert len(ledger.runs.replay([*ledger.runs.list().items, run], lambda run: "yes").runs) == 1
    assert ledger.runs.replay([], lambda run: "yes").same
    assert ledger.runs.replay(ledger.runs.list().items, lambda run: "no").counts.keys() <= {"runs", "same", *KINDS}


def test_a_ledger_open_for_reading_alone_is_enough(tmp_path: Path) -> None:
    """Nothing is written, so a file that must not be written to can be replayed."""
    path = tmp_path / "agents.db"
    officer = Officer()
    with woodrat.open(path, agent="loan-officer") as ledger:
        ledger.store({"entity_type": "loan", "$": {"key": "1"}, "amount": 1})
        run = recorded(ledger, officer, inputs={"number": 1})
    with woodrat.open(path, readonly=True) as ledger:
        assert replayed(ledger, run, officer).same


def test_a_replayed_run_is_not_a_running_one(ledger: Ledger) -> None:
    """While it is replayed a run reads as it did: what ended has ended."""
    run = recorded(ledger, lambda run: "done")
    seen: list[str] = []

    def agent(again: Run) -> str:
        seen.append(ledger.runs.show(run).status)
        return "done"

    ledger.runs.replay(run, agent)
    assert seen == ["done"]


def test_a_resumed_block_answers_what_is_inside(ledger: Ledger) -> None:
    """Steps inside a block of an interrupted run are answered when it is resumed, and recorded once."""

    def agent(run: Run) -> str:
        with run.tool("search", text="x") as call:
            run.tool("inner", lambda: 1)
            call.result = 1
        return "done"

    run = ledger.run("Cut?").start()
    with run.current():
        agent(run)
    id = run.id
    del run
    ledger.runs.resume(id, agent)
    assert [call.name for call in ledger.runs.show(id).tool_calls] == ["search", "inner"]


def test_what_follows_in_the_log_is_not_read(busy: tuple[Ledger, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay of an early run reads that run, however many came after it, once the index of runs has caught up."""
    ledger, ids = busy
    ledger.why("loan/1")
    read = counted(ledger.context.engine, monkeypatch)
    assert ledger.runs.replay(ids[0], Officer()).same
    assert read() < 60, "three hundred runs follow"


def test_what_a_run_wrote_and_started_is_found(ledger: Ledger) -> None:
    """What a run wrote and started, and what the runs it started did, is found, also for a run named beside it."""

    def agent(run: Run) -> str:
        run.store({"entity_type": "loan", "$": {"key": "42"}, "status": "seen"})
        with ledger.run("Inside") as inner:
            inner.store({"entity_type": "loan", "$": {"key": "42"}, "note": "x"})
            with ledger.run("Deep inside") as deep:
                deep.answer("deep")
        return "done"

    outer = recorded(ledger, agent)
    deep, inner = (record.id for record in ledger.runs.list().items if record.id != outer)
    for runs in ([outer], [deep, inner, outer]):
        around = replay_verbs.find_related(ledger.context, runs)
        assert around.kin == {outer: [inner], inner: [deep]}
        assert {run: len(written) for run, written in around.writes.items()} == {outer: 1, inner: 1}
    assert replayed(ledger, outer, agent).same
