"""Runs are recorded as they happen, land in the right run, survive a kill, and never break the agent."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.runs import dying

import woodrat
from woodrat.api.aio import AsyncLedger
from woodrat.api.ledger import Ledger
from woodrat.canon import form, ids
from woodrat.canon.ids import TenantId
from woodrat.engines.records import NOTHING_ASKED, Asks
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.engines.transaction import Transaction
from woodrat.errors import NotFound, Outdated, Refused, Unavailable
from woodrat.ledger import entry_index
from woodrat.merge import BUILTIN
from woodrat.runs import trace as run_trace
from woodrat.runs.recorder.current import carry
from woodrat.runs.recorder.decisions import decide, select
from woodrat.runs.recorder.resume import Resumed
from woodrat.runs.recorder.run import Run, current_run
from woodrat.runs.recorder.steps import RecordingWarning
from woodrat.runs.recorder.tools import tool
from woodrat.runs.rules import Rule
from woodrat.runs.values import REDACTED, TRUNCATED, UNSERIALISABLE
from woodrat.testing.clock import FixedClock

LOW = [Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit")]
YES = [Rule("yes", {"x": {"exists": True}})]
ROOT = Path(__file__).parents[2]


class Failing(InMemoryEngine):
    """An engine that is unavailable while told so, or fails in a way nobody foresaw."""

    def __init__(self) -> None:
        super().__init__()
        self.problem: Exception | None = None

    def transaction(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> Any:
        return self._transaction(tenant)

    @contextmanager
    def _transaction(self, tenant: TenantId) -> Iterator[Transaction]:
        if self.problem is not None:
            raise self.problem
        with InMemoryEngine.transaction(self, tenant) as write:
            yield write


def opened(engine: InMemoryEngine | None = None, tenant: str = "lending") -> Ledger:
    """Return a ledger in memory with a loan in it, whose clock repeats."""
    found = Ledger(engine or Failing(), tenant=tenant, agent="loan-officer", clock=FixedClock(), policies=dict(BUILTIN))
    found.store({"entity_type": "loan", "$": {"key": "42"}, "creditScore": 580, "applicant": "ann"})
    return found


@pytest.fixture
def ledger() -> Ledger:
    return opened()


@pytest.fixture(autouse=True)
def _nothing_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run of the process that runs the tests is taken for a parent."""
    monkeypatch.delenv("WOODRAT_RUN", raising=False)
    monkeypatch.delenv("TRACEPARENT", raising=False)


def entries(ledger: Ledger, run: str, *kinds: str) -> list[dict[str, Any]]:
    """Return the bodies of a run's entries, by position, each with its kind; only those of some kinds, if named."""
    with ledger.context.engine.view(ledger.tenant) as view:
        found = [
            entry for entry in entry_index.run_entries(view, run, view.head().position) if entry.kind.startswith("run.")
        ]
    bodies = [{"kind": entry.kind, **form.decode(entry.body or b"{}")} for entry in found]
    return [body for body in bodies if not kinds or body["kind"] in kinds]


def kinds(ledger: Ledger, run: str) -> list[str]:
    return [body["kind"].removeprefix("run.") for body in entries(ledger, run)]


def stages(ledger: Ledger, run: str) -> set[str]:
    return {body["stage"] for body in entries(ledger, run, "run.decided")}


def last(ledger: Ledger, run: str, kind: str) -> dict[str, Any]:
    return entries(ledger, run, kind)[-1]


# -- what is recorded


def test_a_run_is_recorded_step_by_step(ledger: Ledger) -> None:
    """Beginning, read, decision, tool, model, note and end are entries in order, each with run, step, span and time."""
    with ledger.run(
        "Should we approve application #42?",
        subject="loan/42",
        conversation="app-42",
        principal="ann",
        inputs={"application": 42},
        code="v7",
        attributes={"region": "eu"},
    ) as run:
        loan = run.show("loan/42")
        verdict = decide("classify-risk", loan, LOW, default="manual-review", rationale="policy 7")
        run.tool("bureau", lambda number: {"score": 581}, 42)
        run.model("small-1", lambda: "No.", messages=[{"role": "user", "content": "?"}], parameters={"t": 0})
        run.note("checked twice", {"times": 2})
        run.answer("REJECTED")
    assert verdict.chosen == "rejected"
    assert (verdict.run, verdict.stage) == (run.id, "classify-risk")
    found = entries(ledger, run.id)
    assert kinds(ledger, run.id) == ["started", "read", "decided", "tool", "model", "noted", "ended"]
    assert [body["step"] for body in found] == list(range(7))
    assert len({body["span"] for body in found}) == 7
    assert [body["started_at"] for body in found] == sorted(body["started_at"] for body in found)
    started, read, decided, called, asked, noted, ended = found
    assert {name: started[name] for name in ("agent", "query", "subject", "principal", "conversation", "code")} == {
        "agent": "loan-officer",
        "query": "Should we approve application #42?",
        "subject": "loan/42",
        "principal": "ann",
        "conversation": "app-42",
        "code": "v7",
    }
    assert started["inputs"] == {"application": 42}
    assert started["attributes"] == {"region": "eu"}
    assert started["basis"]["position"] == 0
    winner = ledger.show("loan/42").blame["creditScore"].observation
    assert read["fields"]["creditScore"] == {"observation": winner, "value": 580}
    assert (read["log"], read["position"], read["found"]) == (started["basis"]["log"], 1, True)
    assert decided["rule"] == "Marginal credit"
    assert decided["rationale"] == "policy 7"
    assert decided["facts"] == {"creditScore": 580}
    assert called["args"] == {"number": 42}
    assert called["result"] == {"score": 581}
    assert asked["response"] == "No."
    assert len(asked["request"]) == 64
    assert noted["data"] == {"times": 2}
    assert (ended["status"], ended["answer"]) == ("done", "REJECTED")
    assert run.problems == []
    assert run.status == "done"


def test_each_step_is_durable_when_it_returns(ledger: Ledger) -> None:
    """A step is in the log before the agent goes on; a run that is still open has no end."""
    with ledger.run("?") as run:
        assert kinds(ledger, run.id) == ["started"]
        run.note("one")
        assert kinds(ledger, run.id) == ["started", "noted"]
    assert kinds(ledger, run.id) == ["started", "noted", "ended"]


def test_a_run_without_decisions_has_none(ledger: Ledger) -> None:
    """Framework plumbing is never a decision: nothing but `decide` and `select` makes one."""
    with ledger.run("?") as run:
        run.tool("t", lambda: 1)
        run.show("loan/42")
        run.store({"entity_type": "memo", "name": "n"})
    assert entries(ledger, run.id, "run.decided") == []


def test_a_read_of_nothing_is_recorded(ledger: Ledger) -> None:
    """What was looked for and not found is a read too, and raises as ever."""
    with ledger.run("?") as run:
        with pytest.raises(NotFound):
            run.show("loan/43")
        with pytest.raises(Refused):
            run.show("no reference")
    assert [(body["entity"], body["found"]) for body in entries(ledger, run.id, "run.read")] == [("loan/43", False)]


def test_a_search_is_a_read_of_each_entity_found(ledger: Ledger) -> None:
    """Reads of many are one entry each under one span, and one that found nothing is kept as such."""
    ledger.store({"entity_type": "loan", "$": {"key": "43"}, "applicant": "ann"})
    with ledger.run("?") as run:
        assert len(run.search("ann").items) == 2
        assert len(run.query(entity_type="loan", where={"applicant": "ann"}).items) == 2
        assert run.query(entity_type="boat").items == ()
        run.history("loan/42")
        run.blame("loan/42", "applicant")
        run.observations("loan/42")
        run.related("loan/42")
        run.diff(0, 1)
        run.conflicts()
        run.timeline()
    reads = entries(ledger, run.id, "run.read")
    searched = [body for body in reads if body["within"] == "search"]
    assert [body["entity"] for body in searched] == ["loan/42", "loan/43"] or len(searched) == 2
    assert len({body["span"] for body in searched}) == 1
    assert searched[0]["args"] == {"query": "ann"}
    assert [(body["within"], body.get("entity"), body["found"]) for body in reads[4:]] == [
        ("query", None, False),
        ("history", "loan/42", True),
        ("blame", "loan/42", True),
        ("observations", "loan/42", True),
        ("related", "loan/42", True),
        ("diff", None, True),
        ("conflicts", None, True),
        ("timeline", None, True),
    ]


def test_pinned_reads_show_the_beginning(ledger: Ledger) -> None:
    """Reads at the run's basis stay the same while the world changes, and say that they were pinned."""
    with ledger.run("?") as run:
        ledger.store({"entity_type": "loan", "$": {"key": "42"}, "creditScore": 700})
        assert run.show("loan/42").fields["creditScore"] == 700
        assert run.pinned().show("loan/42").fields["creditScore"] == 580
        assert run.at(0).show("loan/42").fields["creditScore"] == 580
        assert run.at(valid_at="2020-01-01T00:00:00Z").query(entity_type="loan").items == ()
    reads = entries(ledger, run.id, "run.read")
    assert [body.get("as_of") for body in reads] == [None, 0, 0, None]
    assert reads[3]["effective"] == "2020-01-01T00:00:00.000000Z"


def test_writes_name_their_run_and_step_and_what_it_has_read(ledger: Ledger) -> None:
    """Every verb that writes carries run and step; a store names the claims its run has read of the entity."""
    ledger.store({"entity_type": "loan", "$": {"key": "7"}, "creditScore": 1})
    with ledger.run("?", agent="second") as run:
        seen = run.show("loan/42").blame["creditScore"].observation
        run.show("loan/7")
        said = [
            run.store({"entity_type": "loan", "$": {"key": "42"}, "creditScore": 590}),
            run.correct("loan/42", {"creditScore": 595}, reason="typo"),
            run.delete("loan/7"),
            run.restore("loan/7"),
            run.relate("loan/42", "like", "loan/7"),
            run.merge("loan/42", "loan/7"),
            run.split("loan/42"),
        ]
        said.append(run.retract(said[1].observations[0]))
    steps = [body["step"] for body in entries(ledger, run.id)]
    stored = {each.observation.id: each.observation for each in ledger.observations()}
    written = [stored[ids.ObservationId(report.observations[-1])] for report in said]
    assert {each.optional["run"] for each in written} == {run.id}
    assert [each.optional["step"] for each in written] == list(range(3, 11))
    assert steps == [0, 1, 2, 11]
    assert {ids.id_of("observation", digest) for digest in written[0].saw} == {seen}
    assert written[0].agent == "second"
    assert ledger.show("loan/42").conflicts == ()


def test_what_was_not_read_is_a_conflict(ledger: Ledger) -> None:
    """An agent that did not read the other's claim before saying otherwise is in conflict with it."""
    with ledger.run("?", agent="second") as run:
        run.store({"entity_type": "loan", "$": {"key": "42"}, "creditScore": 590})
    assert [conflict.field for conflict in ledger.show("loan/42").conflicts] == ["creditScore"]


def test_equal_writes_of_a_run_are_several(ledger: Ledger) -> None:
    """The same record said twice in a run is said twice: keys of a run tell equal calls apart."""
    with ledger.run("?") as run:
        first = run.store({"entity_type": "memo", "name": "n", "text": "a"})
        second = run.store({"entity_type": "memo", "name": "n", "text": "a"})
    assert not first.repeated
    assert not second.repeated
    assert first.observations != second.observations


def test_versions_in_force_are_recorded(ledger: Ledger) -> None:
    """The runbook and tool configurations in force, the pipeline and the session stand in the beginning."""
    report = ledger.store(
        [{"entity_type": "runbook", "name": "lending"}, {"entity_type": "tool_config", "name": "bureau"}]
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ledger.run(
            "?",
            runbook="runbook/lending",
            tool_configs=["tool_config/bureau", "tool_config/none"],
            pipeline="pipeline/nightly",
            session="agent_session/s1",
        ) as run:
            pass
    book, config = report.observations
    assert last(ledger, run.id, "run.started")["using"] == {
        "runbook": [
            {"entity": "runbook/lending", "observation": book, "version": ledger.show("runbook/lending").version}
        ],
        "tool_config": [
            {
                "entity": "tool_config/bureau",
                "observation": config,
                "version": ledger.show("tool_config/bureau").version,
            },
            {"entity": "tool_config/none"},
        ],
        "pipeline": "pipeline/nightly",
        "agent_session": "agent_session/s1",
    }
    assert "tool_config/none" in str(run.problems[0])
    assert "tool_config/none" in str(caught[0].message)


def test_a_run_is_found_by_its_subject(ledger: Ledger) -> None:
    """Lists find a run by its subject, given as a reference or as an entity's id."""
    snapshot = ledger.show("loan/42")
    with ledger.run("?", subject=snapshot.entity.id) as one, ledger.run("?", subject=snapshot.entity) as two:
        pass
    about = ledger.runs.list(subject="loan/42").items
    assert [(run.id, run.subject) for run in about] == [(two.id, "loan/42"), (one.id, "loan/42")]


# -- origins


def test_every_evidence_value_names_its_origin(ledger: Ledger) -> None:
    """Snapshot, fact, call, input, by value and stated: each value of a decision says where it came from (law 9)."""

    @tool
    def bureau(number: int) -> dict[str, Any]:
        return {"rating": "B", "nested": {"score": 5}}

    with ledger.run("?", inputs={"amount": 100, "currency": "EUR"}) as run:
        loan = run.show("loan/42")
        call = run.tool("lookup", lambda: {"nested": {"score": 5}, "list": [1]})
        bureau(42)
        model = run.model("small-1", lambda: {"risk": "low"})
        facts = {
            "score": loan.fact("creditScore"),
            "nothing": loan.fact("nothing"),
            "bureau": call.fact("/nested/score"),
            "lost": call.fact("/lost"),
            "amount": run.input("amount"),
            "gone": run.input("gone"),
            "risk": model.fact("/risk"),
            "creditScore": 580,
            "rating": "B",
            "currency": "EUR",
            "applicant": "bob",
        }
        verdict = decide("s", facts, [Rule("x", {name: {"exists": True} for name in facts})], "d")
        decide("snapshot", loan, LOW)
        decide("call", call, [Rule("x", {"list": [1]})])
    origins = entries(ledger, run.id, "run.decided")[0]["facts_origin"]
    observation = loan.blame["creditScore"].observation
    read = {"kind": "read", "entity": "loan/42", "field": "creditScore", "observations": [observation], "position": 1}
    spans = {body["name"]: body["span"] for body in entries(ledger, run.id, "run.tool")}
    assert origins["score"] == read
    assert origins["creditScore"] == {**read, "by": "value"}
    assert origins["bureau"] == {"kind": "tool", "span": spans["lookup"], "path": "/nested/score"}
    assert origins["rating"] == {"kind": "tool", "span": spans["bureau"], "path": "/rating", "by": "value"}
    assert origins["amount"] == {"kind": "input", "name": "amount"}
    assert origins["currency"] == {"kind": "input", "name": "currency", "by": "value"}
    assert origins["risk"]["kind"] == "model"
    assert origins["applicant"] == {"kind": "stated"}
    assert {"nothing", "lost", "gone"}.isdisjoint(origins)
    missing = {c.key for c in verdict.conditions if not c.result}
    assert missing == {"nothing", "lost", "gone"}
    for body in entries(ledger, run.id, "run.decided"):
        for tried in body["rules"]:
            for condition in tried["conditions"]:
                assert condition["origin"]["kind"] in ("read", "input", "tool", "model", "stated")
    assert entries(ledger, run.id, "run.decided")[1]["rules"][0]["conditions"][0]["origin"] == read
    assert entries(ledger, run.id, "run.decided")[2]["facts_origin"]["list"]["path"] == "/list"


def test_hidden_keys_are_never_written(ledger: Ledger) -> None:
    """A key to be hidden shows `[REDACTED]` wherever the run meets it, and decides as it is."""
    ledger.store({"entity_type": "person", "name": "p", "ssn": "123-45-6789"})

    @tool
    def lookup(ssn: str) -> dict[str, Any]:
        return {"ssn": ssn, "ok": True}

    with ledger.run("?", inputs={"ssn": "123-45-6789"}, redact=["ssn"]) as run:
        person = run.show("person/p")
        assert lookup("123-45-6789")["ssn"] == "123-45-6789"
        verdict = decide("known", person, [Rule("yes", {"ssn": "123-45-6789"})])
        run.model("m", lambda: {"ssn": "123-45-6789"}, parameters={"ssn": "123-45-6789"})
        run.note("n", {"deep": [{"ssn": "123-45-6789"}]})
        run.answer({"ssn": "123-45-6789"})
    assert verdict.chosen == "yes"
    assert verdict.evidence == {"ssn": REDACTED, "threshold": REDACTED}
    written = str(entries(ledger, run.id))
    assert "123-45-6789" not in written
    assert written.count(REDACTED) >= 10


# -- where the current run is


def test_a_decision_lands_in_the_run_around_it(ledger: Ledger) -> None:
    """A `decide` inside a tool, a carried thread or pool, and a helper lands in the run, under the tool it is in."""

    @tool
    def outer() -> str:
        def helper() -> str:
            return str(decide("in helper", {"x": 1}, YES).chosen)

        return helper()

    def work(number: int) -> str:
        return str(decide(f"pooled {number}", {"x": 1}, YES).chosen)

    with ledger.run("?") as run:
        outer()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(carry(work), range(4)))
        with run.executor(2) as mine:
            list(mine.map(work, range(4, 8)))
            mine.submit(outer).result()
        thread = threading.Thread(target=carry(work), args=(8,))
        thread.start()
        thread.join()
        context_run = __import__("contextvars").copy_context().run
        thread = threading.Thread(target=context_run, args=(work, 9))
        thread.start()
        thread.join()
        thread = run.thread(work, (10,), name="mine", daemon=True)
        assert (thread.name, thread.daemon) == ("mine", True)
        thread.start()
        thread.join()
        thread = run.thread(work, kwargs={"number": 11})
        thread.start()
        thread.join()
    assert current_run() is None
    assert stages(ledger, run.id) == {"in helper"} | {f"pooled {number}" for number in range(12)}
    spans = [body["span"] for body in entries(ledger, run.id, "run.tool")]
    inside = [body["under"] for body in entries(ledger, run.id, "run.decided") if body["stage"] == "in helper"]
    assert inside == spans
    assert all("under" not in body for body in entries(ledger, run.id, "run.decided") if body["stage"] != "in helper")
    steps = [body["step"] for body in entries(ledger, run.id)]
    assert len(set(steps)) == len(steps)


def test_a_plain_thread_is_in_no_run(ledger: Ledger) -> None:
    """A thread or pool that carries no run decides and calls tools as outside of one; nothing of Python is changed."""
    plain = (threading.Thread.start, ThreadPoolExecutor.submit)
    seen: list[Any] = []

    @tool
    def fetch() -> str:
        seen.append(current_run())
        return "fetched"

    def work() -> None:
        seen.append(decide("aside", {"x": 1}, YES).run)
        seen.append(fetch())

    with ledger.run("?") as run:
        assert (threading.Thread.start, ThreadPoolExecutor.submit) == plain
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(current_run).result() is None
    assert seen == [None, None, "fetched"]
    assert stages(ledger, run.id) == set()
    assert entries(ledger, run.id, "run.tool") == []


def test_a_thread_of_a_run_is_where_it_was_made(ledger: Ledger) -> None:
    """What a thread of a run records lies under the step it was made in, and is a problem after the run's end."""
    go = threading.Event()

    @tool
    def outer() -> threading.Thread:
        run = current_run()
        assert run is not None
        return run.thread(lambda: decide("inside", {"x": 1}, YES))

    def late() -> None:
        go.wait(30)
        decide("late", {"x": 1}, YES)

    with ledger.run("?") as run:
        call = run.tool("outer", outer)
        call.result.start()
        call.result.join()
        thread = run.thread(late)
        thread.start()
    go.set()
    with pytest.warns(RecordingWarning, match="it has ended"):
        thread.join()
    assert [body.get("under") for body in entries(ledger, run.id, "run.decided")] == [call.span]


def test_all_threads_carry_the_run_when_asked_to(ledger: Ledger) -> None:
    """A pool works for whoever submits, a thread that outlives its run has none, and all is put back by the last."""
    plain = (threading.Thread.start, ThreadPoolExecutor.submit)
    seen: list[object] = []
    go = threading.Event()

    def late() -> None:
        go.wait(30)
        seen.append(current_run())

    further = woodrat.carry_threads()
    with ThreadPoolExecutor(1) as pool, woodrat.carry_threads():
        with ledger.run("one") as one:
            assert pool.submit(current_run).result() is one
            thread = threading.Thread(target=late)
            thread.start()
        assert pool.submit(current_run).result() is None
        with ledger.run("two") as two:
            assert pool.submit(current_run).result() is two
            assert list(pool.map(lambda number: current_run(), range(2))) == [two, two]
        go.set()
        thread.join()
    assert seen == [None]
    assert (threading.Thread.start, ThreadPoolExecutor.submit) != plain
    further.stop()
    further.stop()
    assert (threading.Thread.start, ThreadPoolExecutor.submit) == plain


def test_parallel_runs_never_mix(ledger: Ledger) -> None:
    """Runs in parallel threads and tasks each keep what is theirs."""
    barrier = threading.Barrier(4)

    def threaded(number: int) -> tuple[str, int]:
        with ledger.run(f"thread {number}") as run:
            for step in range(5):
                barrier.wait(30)
                decide(f"{number}.{step}", {"x": 1}, YES)
        return run.id, number

    async def task(number: int) -> tuple[str, int]:
        async with ledger.run(f"task {number}") as run:
            for step in range(5):
                await asyncio.sleep(0)
                decide(f"{number}.{step}", {"x": 1}, YES)
                await asyncio.to_thread(decide, f"{number}.{step} away", {"x": 1}, YES)
        return run.id, number

    with ThreadPoolExecutor(4) as pool:
        for id, number in pool.map(threaded, range(4)):
            assert stages(ledger, id) == {f"{number}.{step}" for step in range(5)}

    async def gathered() -> list[tuple[str, int]]:
        return await asyncio.gather(*(task(number) for number in range(4)))

    for id, number in asyncio.run(gathered()):
        assert len(stages(ledger, id)) == 10
        assert {stage.split(".")[0] for stage in stages(ledger, id)} == {str(number)}


def test_gathered_tasks_record_into_the_run_around_them(ledger: Ledger) -> None:
    """Decisions and async tools inside `asyncio.gather` land in the run, each under its own call."""

    @tool
    async def ask(number: int) -> int:
        await asyncio.sleep(0)
        decide(f"asked {number}", {"x": number}, YES)
        return number * 2

    async def agent() -> Run:
        async with ledger.run("?") as run:
            assert await asyncio.gather(*(ask(number) for number in range(5))) == [0, 2, 4, 6, 8]
        assert await ask(7) == 14
        return run

    run = asyncio.run(agent())
    spans = {body["args"]["number"]: body["span"] for body in entries(ledger, run.id, "run.tool")}
    decided = entries(ledger, run.id, "run.decided")
    assert {body["stage"]: body["under"] for body in decided} == {f"asked {n}": spans[n] for n in range(5)}


def test_a_run_inside_a_run_names_its_parent(ledger: Ledger) -> None:
    """A nested run names the step that started it, is current inside its block, and leaves the outer one current."""

    @tool
    def delegate() -> str:
        with ledger.run("inner", agent="helper") as inner:
            decide("inner stage", {"x": 1}, YES)
        return inner.id

    with ledger.run("outer") as outer:
        inner = delegate()
        with ledger.run("second") as second:
            assert current_run() is second
        assert current_run() is outer
        with opened(tenant="other").run("other tenant") as other:
            pass
    span = last(ledger, outer.id, "run.tool")["span"]
    assert last(ledger, inner, "run.started")["parent"] == {"run": outer.id, "span": span}
    assert last(ledger, second.id, "run.started")["parent"] == {"run": outer.id, "span": outer.span}
    assert stages(ledger, outer.id) == set()
    assert stages(ledger, inner) == {"inner stage"}
    assert "parent" not in last(other.ledger, other.id, "run.started")
    with ledger.run("named", parent=outer) as named:
        pass
    assert last(ledger, named.id, "run.started")["parent"]["run"] == outer.id


def test_without_a_run_everything_is_plain() -> None:
    """Outside of a run tools are plain functions, decisions are made and not recorded."""

    @tool
    def double(number: int) -> int:
        return number * 2

    @tool
    async def later(number: int) -> int:
        return number * 3

    assert current_run() is None
    assert double(2) == 4
    assert asyncio.run(later(2)) == 6
    assert double.call(2).result == 4
    assert double.call(2).fact().origin == {"kind": "stated"}
    verdict = decide("s", {"creditScore": 580}, LOW)
    assert (verdict.chosen, verdict.run) == ("rejected", None)
    assert select("s", {"x": 1}, YES).chosen == ["yes"]
    assert carry(double)(3) == 6


def test_a_run_can_be_started_and_ended_by_hand(ledger: Ledger) -> None:
    """Where `with` cannot be used, `start` and `end` do the same, and `current` makes it the current run."""
    run = ledger.run("?").start()
    assert current_run() is None
    with run.current():
        decide("s", {"x": 1}, YES)
    run.end(answer="done", usage={"input": 5, "output": 6})
    assert kinds(ledger, run.id) == ["started", "decided", "ended"]
    assert last(ledger, run.id, "run.ended")["usage"] == {"input": 5, "output": 6}


# -- tools and models


def test_tools_are_recorded_by_the_names_of_their_arguments(ledger: Ledger) -> None:
    """Positional, keyword, starred arguments and methods are recorded as the function names them."""

    class Service:
        @tool(name="service")
        def call(self, one: int, *more: int, flag: bool = False, **other: str) -> int:
            return one

    @tool
    def plain(one: int, two: int = 2) -> int:
        return one

    with ledger.run("?") as run:
        Service().call(1, 2, 3, flag=True, extra="e")
        plain(two=5, one=1)
        run.tool("renamed", plain, 1)
        run.tool("builtin", max, 1, 2)
        with pytest.raises(TypeError):
            plain()  # type: ignore[call-arg]
        with pytest.raises(Refused, match="expected a function"):
            run.tool("wrong", 5)  # type: ignore[arg-type]
    called = [(body["name"], body["args"]) for body in entries(ledger, run.id, "run.tool")]
    assert called == [
        ("service", {"one": 1, "more": [2, 3], "flag": True, "extra": "e"}),
        ("plain", {"one": 1, "two": 5}),
        ("renamed", {"one": 1}),
        ("builtin", {"args": [1, 2]}),
        ("plain", {}),
    ]


def test_a_function_changed_in_place_is_recorded_by_its_new_names(ledger: Ledger) -> None:
    """A function that was given other code after a call is recorded as that code names its arguments."""

    def look(number: int) -> int:
        return number

    def look_again(application: int, *, twice: bool = True) -> int:
        return application

    with ledger.run("?") as run:
        run.tool("look", look, 1)
        run.tool("look", look, 1)
        look.__code__, look.__kwdefaults__ = look_again.__code__, look_again.__kwdefaults__
        run.tool("look", look, 1)
    called = [body["args"] for body in entries(ledger, run.id, "run.tool")]
    assert called == [{"number": 1}, {"number": 1}, {"application": 1}]


def test_a_tool_that_fails_is_recorded_and_raises(ledger: Ledger) -> None:
    """An error of a tool is kept with type and message, and the agent gets it."""

    @tool
    def fails() -> None:
        raise TimeoutError("too slow")

    with ledger.run("?") as run:
        with pytest.raises(TimeoutError):
            fails()
        with pytest.raises(KeyError), run.tool("block", number=1):
            raise KeyError("x")
    first, second = entries(ledger, run.id, "run.tool")
    assert (first["errored"], first["error"]) == (True, {"type": "TimeoutError", "message": "too slow"})
    assert "result" not in first
    assert second["error"]["type"] == "KeyError"
    assert last(ledger, run.id, "run.ended")["status"] == "done"


def test_a_call_can_be_a_block(ledger: Ledger) -> None:
    """Tools and models whose code is no function are blocks: set the result inside, sync or async."""

    async def agent(run: Run) -> None:
        async with run.model("m", messages=["hello"]) as call:
            await asyncio.sleep(0)
            call.result = {"text": "hi", "usage": {"input_tokens": 3, "output_tokens": 4}}
        async with run.tool("later") as call:
            call.result = 5

    with ledger.run("?") as run:
        with run.tool("bureau", number=42) as call:
            decide("inside", {"x": 1}, YES)
            call.result = {"score": 5}
        run.model("m", response="said", usage={"input": 1, "output": 2}, request={"whole": "request"})
        asyncio.run(agent(run))
    assert call.fact("/score").value == 5
    bodies = entries(ledger, run.id, "run.tool", "run.model", "run.decided")
    assert [body["kind"] for body in bodies] == ["run.decided", "run.tool", "run.model", "run.model", "run.tool"]
    assert bodies[0]["under"] == bodies[1]["span"]
    assert bodies[2]["usage"] == {"input": 1, "output": 2}
    assert bodies[3]["usage"] == {"input": 3, "output": 4}
    assert last(ledger, run.id, "run.ended")["usage"] == {"input": 4, "output": 6}


def test_equal_requests_have_equal_digests(ledger: Ledger) -> None:
    """The digest of a model's request depends on model, messages and parameters, not on the response."""
    with ledger.run("?") as run:
        run.model("m", lambda: "a", messages=["x"], parameters={"t": 0})
        run.model("m", lambda: "b", messages=["x"], parameters={"t": 0})
        run.model("m", lambda: "a", messages=["x"], parameters={"t": 1})
    one, two, three = (body["request"] for body in entries(ledger, run.id, "run.model"))
    assert one == two != three


def test_oversized_and_unserialisable_values_are_marked(ledger: Ledger) -> None:
    """A 50 MB result is bounded and marked, arguments that are no JSON are recorded as such; the agent gets its own."""

    @tool
    def dump(handle: object) -> str:
        return "x" * 50_000_000

    with ledger.run("?", inputs={"lock": threading.Lock()}) as run:
        assert len(dump(open)) == 50_000_000
        run.note("n" * 100_000, {1, 2, b"x"})
        run.answer(float("nan"))
    body = last(ledger, run.id, "run.tool")
    assert body["result"][TRUNCATED]["bytes"] == 50_000_002
    assert len(body["result"][TRUNCATED]["preview"]) == 256
    assert UNSERIALISABLE in body["args"]["handle"]
    assert UNSERIALISABLE in last(ledger, run.id, "run.started")["inputs"]["lock"]
    assert last(ledger, run.id, "run.noted")["text"].endswith("… [100000 bytes]")
    assert UNSERIALISABLE in last(ledger, run.id, "run.ended")["answer"]
    named = "inputs: cannot be restored: _thread.lock at /lock: it is kept as a text that shows it"
    assert last(ledger, run.id, "run.ended")["problems"] == [named]
    assert [str(problem) for problem in run.problems] == [named]


def test_very_long_arguments_and_queries_fit(ledger: Ledger) -> None:
    """A read of an entity with very many long fields, and a query of a megabyte, are recorded within the limits."""
    ledger.store({"entity_type": "wide", "name": "w", **{f"f{n}": "x" * 400 for n in range(1_500)}})
    with ledger.run("q" * 1_000_000, inputs={f"i{n}": "x" * 1_000 for n in range(1_000)}) as run:
        run.show("wide/w")
    assert run.problems == []
    read = last(ledger, run.id, "run.read")
    assert len(read["fields"]) == 1_501
    assert all(item["observation"].startswith("obs_") for item in read["fields"].values())
    assert TRUNCATED in last(ledger, run.id, "run.started")["inputs"]


# -- how a run ends


class Stopped(BaseException):
    """As trio and others cancel."""


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("no"), "error"),
        (KeyboardInterrupt(), "cancelled"),
        (asyncio.CancelledError(), "cancelled"),
        (GeneratorExit(), "cancelled"),
        (Stopped(), "cancelled"),
        (SystemExit(3), "error"),
        (SystemExit(0), "done"),
    ],
    ids=repr,
)
def test_an_exception_ends_the_run_and_goes_on(ledger: Ledger, error: BaseException, status: str) -> None:
    """What leaves the block ends the run as an error or as cancelled, with the evidence so far, and is raised again."""
    run = ledger.run("?")

    def agent() -> None:
        with run:
            decide("before", {"x": 1}, YES)
            raise error

    with pytest.raises(type(error)):
        agent()
    ended = last(ledger, run.id, "run.ended")
    assert ended["status"] == run.status == status
    assert kinds(ledger, run.id) == ["started", "decided", "ended"]
    assert ("error" in ended) is (status != "done")
    assert current_run() is None


def test_a_cancelled_task_ends_its_run(ledger: Ledger) -> None:
    """Cancelling a task in the middle of a tool records the tool as failed and the run as cancelled."""

    @tool
    async def waits(ready: asyncio.Event) -> None:
        ready.set()
        await asyncio.Event().wait()

    async def agent() -> str:
        found: list[str] = []
        ready = asyncio.Event()

        async def work() -> None:
            async with ledger.run("?") as run:
                found.append(run.id)
                await waits(ready)

        task = asyncio.create_task(work())
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return found[0]

    run = asyncio.run(agent())
    assert last(ledger, run, "run.tool")["error"]["type"] == "asyncio.exceptions.CancelledError"
    assert last(ledger, run, "run.ended")["status"] == "cancelled"


def test_a_run_ends_once(ledger: Ledger) -> None:
    """Ending a run twice, answering after its end and starting it twice are refused, each saying what to do."""
    with ledger.run("?") as run:
        run.end()
    with pytest.raises(Refused, match="has ended already"):
        run.end()
    with pytest.raises(Refused, match="it has ended"):
        run.answer("late")
    with pytest.raises(Refused, match="has started already"):
        run.start()
    with pytest.raises(Refused, match="has started already"), run:
        pass
    with pytest.raises(Refused, match="it has not started"):
        ledger.run("?").end()
    with pytest.raises(Refused, match="unknown status of a run"):
        ledger.run("?").start().end("finished")
    assert kinds(ledger, run.id) == ["started", "ended"]


def test_two_processes_cannot_both_end_a_run(ledger: Ledger) -> None:
    """The log itself refuses a second end, whoever sends it."""
    run = ledger.run("?").start()
    other = ledger.runs.continue_(run.id, ends=True)
    other.end()
    with pytest.raises(Refused, match="another process has ended it"):
        run.end()
    assert kinds(ledger, run.id).count("ended") == 1


def test_recording_into_an_ended_run_is_a_problem(ledger: Ledger) -> None:
    """After the end steps are not recorded: the agent goes on and is warned, or gets the error if it asked for that."""
    with ledger.run("?") as run:
        pass
    with pytest.warns(RecordingWarning, match="it has ended"):
        assert run.decide("late", {"x": 1}, YES).chosen == "yes"
    with pytest.warns(RecordingWarning, match="it has ended"):
        assert run.tool("late", lambda: 5).result == 5
    with pytest.warns(RecordingWarning, match="it has ended"):
        assert run.show("loan/42").fields["creditScore"] == 580
    with pytest.raises(Refused, match="Write through the ledger instead"):
        run.store({"entity_type": "memo", "name": "n"})
    assert len(run.problems) == 3
    assert kinds(ledger, run.id) == ["started", "ended"]
    with ledger.run("?", on_error="raise") as strict:
        pass
    with pytest.raises(Refused, match="Record before its end"):
        strict.note("late")


def test_a_step_that_began_before_the_end_may_come_after_it(ledger: Ledger) -> None:
    """A call still under way when the run ends is recorded when it is done."""
    go = threading.Event()
    with ledger.run("?") as run:
        begun = threading.Event()

        @tool
        def slow() -> int:
            begun.set()
            go.wait(30)
            return 1

        thread = threading.Thread(target=carry(slow))
        thread.start()
        begun.wait(30)
    go.set()
    thread.join()
    assert kinds(ledger, run.id) == ["started", "ended", "tool"]
    assert run.problems == []


def test_judging_is_possible_after_the_end(ledger: Ledger) -> None:
    """A run is judged by its id, during it or long after, by whoever says so."""
    with ledger.run("?") as run:
        run.judge("good")
    run.judge("bad", preferred="Approve", by="auditor", reason="wrong file", score=0.25, against="@release-3")
    ledger.runs.judge(run.id, "mixed", about=run.span, evaluation="evaluation/e1")
    first, second, third = entries(ledger, run.id, "run.judged")
    assert (first["verdict"], first["by"]) == ("good", "loan-officer")
    assert {name: second[name] for name in ("verdict", "preferred", "by", "reason", "score", "against")} == {
        "verdict": "bad",
        "preferred": "Approve",
        "by": "auditor",
        "reason": "wrong file",
        "score": 0.25,
        "against": "@release-3",
    }
    assert third["evaluation"] == "evaluation/e1"
    assert second["step"] > first["step"]


@pytest.mark.parametrize(
    "call",
    [
        lambda ledger: ledger.runs.judge("run_none", "good"),
        lambda ledger: ledger.runs.continue_("run_none"),
        lambda ledger: ledger.runs.resume("run_none", print),
        lambda ledger: ledger.run("?", parent="run_none").start(),
        lambda ledger: ledger.run("?", subject="ent_aaaaaaaaaaaaaaaaaaaaaaaaaa").start(),
    ],
)
def test_an_unknown_run_is_not_found(ledger: Ledger, call: Callable[[Ledger], object]) -> None:
    """A run that is not in this log is not found, and nothing is recorded."""
    before = ledger.position
    with pytest.raises(NotFound, match="There is no"):
        call(ledger)
    assert ledger.position == before


@pytest.mark.parametrize(
    ("call", "paths"),
    [
        (lambda ledger: ledger.run(5), ["query"]),
        (lambda ledger: ledger.run("?", subject="loan"), ["subject"]),
        (lambda ledger: ledger.run("?", inputs=[1], on_error="ignore"), ["inputs", "on_error"]),
        (lambda ledger: ledger.run("?", id="x", agent=""), ["id", "agent"]),
        (lambda ledger: ledger.run("?", parent=5, runbook=5, pipeline="p"), ["parent", "runbook", "pipeline"]),
        (lambda ledger: ledger.run("?", redact=5, traceparent="00-x"), ["redact", "traceparent"]),
        (lambda ledger: ledger.run("?", principal="", conversation="\n"), ["conversation", "principal"]),
        (lambda ledger: ledger.runs.judge(5, "", score="x"), ["verdict", "score", "run"]),
        (lambda ledger: ledger.runs.continue_(), ["run"]),
        (lambda ledger: ledger.runs.continue_(5), ["run"]),
        (lambda ledger: decide("", {}, []), ["stage"]),
        (lambda ledger: decide("s", 5, []), ["facts"]),
        (lambda ledger: decide("s", {}, 5), ["rules"]),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_refused_all_at_once(
    ledger: Ledger, call: Callable[[Ledger], object], paths: list[str]
) -> None:
    """What is wrong with the arguments is refused before anything is recorded, every fault at once."""
    before = ledger.position
    with pytest.raises(Refused) as refusal:
        call(ledger)
    assert [fault.path for fault in refusal.value.faults] == paths
    assert ledger.position == before


def test_an_id_is_used_once(ledger: Ledger) -> None:
    """A run may be given its id; another of the same id is refused."""
    with ledger.run("?", id="run_imported.1"):
        pass
    with pytest.raises(Refused, match="there is a run with this id"):
        ledger.run("?", id="run_imported.1").start()


# -- when recording fails


@pytest.mark.filterwarnings("ignore::woodrat.runs.recorder.steps.RecordingWarning")
def test_recording_problems_never_break_the_agent() -> None:
    """While the engine is unavailable the agent goes on; what waited is written with the next step that can be."""
    engine = Failing()
    ledger = opened(engine)
    engine.problem = Unavailable("The disk is full. Nothing was written. Make room.")
    with ledger.run("?") as run:
        verdict = decide("one", {"x": 1}, YES)
        assert run.tool("t", lambda: 5).result == 5
        with pytest.raises(Unavailable):
            run.store({"entity_type": "memo", "name": "n"})
        engine.problem = None
        run.note("back again")
        assert kinds(ledger, run.id) == ["started", "decided", "tool", "noted"]
        report = run.store({"entity_type": "memo", "name": "n"})
    assert verdict.chosen == "yes"
    assert not report.repeated
    assert len(run.problems) == 3
    assert "The disk is full" in last(ledger, run.id, "run.ended")["problems"][0]


@pytest.mark.filterwarnings("ignore::woodrat.runs.recorder.steps.RecordingWarning")
def test_an_end_that_could_not_be_written_is_flushed() -> None:
    """What waits when a run ends can be written later; until then the run reads as interrupted."""
    engine = Failing()
    ledger = opened(engine)
    with ledger.run("?") as run:
        engine.problem = Unavailable("Gone.")
        run.note("late")
    assert kinds(ledger, run.id) == ["started"]
    assert not run.flush()
    engine.problem = None
    assert run.flush()
    assert kinds(ledger, run.id) == ["started", "noted", "ended"]
    assert run.flush()


@pytest.mark.filterwarnings("ignore::woodrat.runs.recorder.steps.RecordingWarning")
def test_an_unforeseen_failure_does_not_break_the_agent_either() -> None:
    """Any exception while recording is a problem of the recording; the agent's own errors are still its own."""
    engine = Failing()
    ledger = opened(engine)
    with ledger.run("?") as run:
        engine.problem = RuntimeError("a mistake of ours")
        assert decide("one", {"x": 1}, YES).chosen == "yes"
    assert run.status == "done"
    with pytest.raises(ValueError, match="mine"), ledger.run("?") as second:
        raise ValueError("mine")
    assert second.problems
    assert len(run.problems) == 2


def test_problems_are_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    """A problem is a `RecordingWarning`, and one that is turned into an error still does not break the agent."""
    engine = Failing()
    ledger = opened(engine)
    with ledger.run("?") as run:
        engine.problem = Unavailable("Gone.")
        run.note("one")
        assert recwarn.pop(RecordingWarning).filename == __file__
        warnings.simplefilter("error")
        run.note("two")
        engine.problem = None
    assert len(run.problems) == 2


def test_problems_are_raised_where_asked_for() -> None:
    """With `on_error="raise"` a recording problem is an exception at the step that could not be recorded."""
    engine = Failing()
    ledger = opened(engine)
    run = ledger.run("?", on_error="raise")
    engine.problem = Unavailable("Gone.")
    with pytest.raises(Unavailable), run:
        pytest.fail("it must not begin")
    engine.problem = None
    with run:
        engine.problem = Unavailable("Gone.")
        with pytest.raises(Unavailable):
            decide("one", {"x": 1}, YES)
        with pytest.raises(Unavailable):
            run.note("two")
        engine.problem = None
    assert kinds(ledger, run.id) == ["started", "decided", "noted", "ended"]


def test_a_write_that_is_sent_again_is_stored_once() -> None:
    """A store whose answer was lost has the same key when it is sent again, so nothing is stored twice."""

    class Forgetful(Failing):
        @contextmanager
        def _transaction(self, tenant: TenantId) -> Iterator[Transaction]:
            with InMemoryEngine.transaction(self, tenant) as write:
                yield write
            if self.problem is not None:
                raise self.problem

    engine = Forgetful()
    ledger = opened(engine)
    with ledger.run("?") as run:
        engine.problem = Unavailable("The answer was lost.")
        with pytest.raises(Unavailable):
            run.store({"entity_type": "memo", "name": "n"})
        engine.problem = None
        assert run.store({"entity_type": "memo", "name": "n"}).repeated
    assert len(list(ledger.observations("memo/n"))) == 1


# -- after a crash


def killed(file: Path, effects: Path, place: str) -> str:
    """Run the agent in a process of its own, which kills itself with signal 9; return the run's id."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(woodrat.__file__).parents[1]), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "tests.runs.dying", str(file), str(effects), place],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == -9, done.stderr
    return done.stdout.strip()


SURVIVORS = {
    "after start": ["started"],
    "after read": ["started", "read"],
    "after lookup": ["started", "read", "tool"],
    "inside pay": ["started", "read", "tool", "tool"],
    "after pay": ["started", "read", "tool", "tool", "tool"],
    "after decision": ["started", "read", "tool", "tool", "tool", "decided"],
    "after write": ["started", "read", "tool", "tool", "tool", "decided"],
}


@pytest.mark.parametrize("place", dying.PLACES)
def test_a_killed_run_is_there_and_is_resumed(tmp_path: Path, place: str) -> None:
    """Kill -9 anywhere: every acknowledged step is there, resume finishes the run, a `once` tool has run once."""
    file, effects = tmp_path / "agents.db", tmp_path / "effects"
    effects.touch()
    run = killed(file, effects, place)
    with woodrat.open(file, agent="loan-officer") as ledger:
        assert kinds(ledger, run) == SURVIVORS[place]
        asked: list[tuple[str, Any]] = []

        def find_out(name: str, args: Any) -> str:
            asked.append((name, args))
            return "paid 100"

        resumed = ledger.runs.resume(run, dying.agent_with(effects), on_unknown=find_out)
        assert isinstance(resumed, Resumed)
        assert (resumed.run, resumed.status, resumed.answer) == (run, "done", "rejected, paid 100")
        assert resumed.unused == 0
        assert asked == ([("pay", {"amount": 100})] if place == "inside pay" else [])
        assert effects.read_text().split().count("pay") == 1
        acknowledged = place not in ("after start", "after read")
        assert effects.read_text().split().count("lookup") == 1, acknowledged
        assert len(list(ledger.observations("loan/42"))) == 2
        assert ledger.show("loan/42").fields["status"] == "rejected"
        assert kinds(ledger, run)[-1] == "ended"
        assert kinds(ledger, run).count("decided") == 1
        assert kinds(ledger, run).count("read") == 1
        assert kinds(ledger, run).count("ended") == 1
        with pytest.raises(Refused, match=r"it has ended \(done\)"):
            ledger.runs.resume(run, dying.agent_with(effects))


class Died(BaseException):
    """Where the process would have been killed."""


class Stage:
    """Where an agent dies the first time, and what it has done to the world."""

    def __init__(self, ledger: Ledger) -> None:
        assert isinstance(ledger.context.engine, Failing)
        self._engine = ledger.context.engine
        self.done: list[Any] = []
        self.dies = True

    def here(self) -> None:
        """Die, if this is the first time: from now on nothing is written any more."""
        if self.dies:
            self._engine.problem = Unavailable("The process is gone.")
            raise Died

    def interrupted(self, ledger: Ledger, agent: Callable[[Run], object], **given: Any) -> str:
        """Record an agent's run up to where it dies; return the run's id."""
        run = ledger.run("?", **given)

        def live() -> None:
            with run:
                found = agent(run)
                if asyncio.iscoroutine(found):
                    asyncio.run(found)

        self.dying(live)
        assert "ended" not in kinds(ledger, run.id)
        return run.id

    def dying(self, agent: Callable[[], object]) -> None:
        """Let something die, and the next process live."""
        self.dies = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecordingWarning)
            with pytest.raises(Died):
                agent()
        self._engine.problem, self.dies = None, False


def test_what_becomes_of_a_call_whose_end_is_unknown(ledger: Ledger) -> None:
    """`fail` refuses to resume and changes nothing, `retry` makes the call again, a function supplies the result."""
    stage = Stage(ledger)

    @tool(once=True)
    def pay(amount: int) -> str:
        stage.done.append(amount)
        stage.here()
        return "paid"

    def agent(run: Run) -> object:
        return pay(100)

    run = stage.interrupted(ledger, agent)
    assert [body.get("begun") for body in entries(ledger, run, "run.tool")] == [True]
    before = ledger.position
    with pytest.raises(Refused, match=r"whether it took effect is not known.*on_unknown='retry'") as refusal:
        ledger.runs.resume(run, agent)
    assert "Nothing was resumed; the run stays interrupted." in str(refusal.value)
    with pytest.raises(Refused, match="on_unknown"):
        ledger.runs.resume(run, agent, on_unknown="maybe")
    assert (ledger.position, ledger.runs.show(run).status, stage.done) == (before, "interrupted", [100])
    assert ledger.runs.resume(run, agent, on_unknown="retry").answer == "paid"
    assert stage.done == [100] * 2
    begun, done = entries(ledger, run, "run.tool")
    assert (begun["span"], begun["step"]) == (done["span"], done["step"])
    found = ledger.runs.resume(
        stage.interrupted(ledger, agent), agent, on_unknown=lambda name, args: f"{name} {args['amount']}"
    )
    assert found.answer == "pay 100"
    assert stage.done == [100] * 3


def test_a_call_whose_outcome_cannot_be_found_out_leaves_its_run_interrupted(ledger: Ledger) -> None:
    """Where `on_unknown` fails, neither the run, the run inside nor the tool around gets an end; an agent may go on."""
    stage = Stage(ledger)

    @tool(once=True)
    def pay(amount: int) -> str:
        stage.here()
        return "paid"

    @tool
    def settle() -> str:
        return pay(100)

    def agent(run: Run) -> object:
        with ledger.run("inner"):
            return settle()

    def careful(run: Run) -> object:
        with pytest.raises(Refused, match="It was not called again"):
            agent(run)
        return "asked a person"

    def unreachable(name: str, args: Any) -> object:
        raise ConnectionError("the bank does not answer")

    run = stage.interrupted(ledger, agent)
    with pytest.raises(Refused, match="tool pay: it began"):
        ledger.runs.resume(run, agent)
    for _ in range(2):
        with pytest.raises(Refused, match=r"on_unknown failed \(ConnectionError: the bank does not answer"):
            ledger.runs.resume(run, agent, on_unknown=unreachable)
    assert {each.status for each in ledger.runs.list()} == {"interrupted"}
    assert ledger.runs.resume(run, agent, on_unknown=lambda name, args: "found out").answer == "found out"
    run = stage.interrupted(ledger, agent)
    assert ledger.runs.resume(run, careful, on_unknown=unreachable).answer == "asked a person"


@pytest.mark.parametrize("verb", ["resume", "fork"])
def test_what_is_refused_before_the_agent_is_called_changes_nothing(ledger: Ledger, verb: str) -> None:
    """A function that cannot be called for the run is refused before anything is written, and the run can go on."""
    stage = Stage(ledger)
    run = stage.interrupted(ledger, lambda run: stage.here(), inputs={"amount": 7})
    before = ledger.position

    def other(cargo: str, weight: int) -> None:
        raise AssertionError("it is not called")

    asked: dict[str, Any] = {"at": 0, "set": {"inputs.amount": 8}} if verb == "fork" else {}
    with pytest.raises(Refused, match="needs cargo, weight"):
        getattr(ledger.runs, verb)(run, other, **asked)
    with pytest.raises(Refused, match="on_error"):
        ledger.runs.continue_(run, on_error="bogus")
    assert (ledger.position, ledger.runs.show(run).status) == (before, "interrupted")
    assert ledger.runs.resume("last", lambda run: run.inputs["amount"]).answer == 7


def test_a_supplied_result_is_recorded(ledger: Ledger) -> None:
    """What was found out about an unknown effect is kept, so that resuming once more does not ask again."""
    stage = Stage(ledger)

    @tool(once=True)
    def pay(amount: int) -> str:
        stage.here()
        return "paid"

    def agent(run: Run) -> object:
        said = pay(100)
        stage.here()
        return said

    run = stage.interrupted(ledger, agent)
    stage.dying(lambda: ledger.runs.resume(run, agent, on_unknown=lambda name, args: "found out"))
    assert ledger.runs.resume(run, agent).answer == "found out"


def test_a_once_tool_whose_result_was_too_long_is_not_repeated(ledger: Ledger) -> None:
    """An effect whose result could not be kept whole is never made again, not even by `retry`."""
    stage = Stage(ledger)

    @tool(once=True)
    def send() -> str:
        stage.done.append(1)
        return "x" * 300_000

    def agent(run: Run) -> object:
        sent = send()
        stage.here()
        return len(sent)

    run = stage.interrupted(ledger, agent)
    with pytest.raises(Refused, match="could not be kept whole"):
        ledger.runs.resume(run, agent, on_unknown="retry")
    assert ledger.runs.resume(run, agent, on_unknown=lambda name, args: "short").answer == 5
    assert len(stage.done) == 1


def test_an_acknowledged_failure_is_not_repeated(ledger: Ledger) -> None:
    """A `once` tool that failed, and whose failure is recorded, fails again without being called."""
    stage = Stage(ledger)

    @tool(once=True)
    def pay() -> None:
        stage.done.append(1)
        raise woodrat.WoodratError("refused by the bank")

    def agent(run: Run) -> object:
        try:
            pay()
        except woodrat.WoodratError as error:
            stage.here()
            return str(error)
        return "paid"

    assert ledger.runs.resume(stage.interrupted(ledger, agent), agent).answer == "refused by the bank"
    assert stage.done == [1]


def test_recorded_steps_answer_from_the_log(ledger: Ledger) -> None:
    """Tools, models, reads, decisions, notes and writes that are recorded are not done again; then it goes on live."""
    stage = Stage(ledger)

    @tool
    def lookup(number: int) -> dict[str, Any]:
        stage.done.append(("lookup", number))
        return {"n": number, "calls": len(stage.done)}

    @tool
    def fails() -> None:
        stage.done.append("fails")
        raise FileNotFoundError("gone")

    def model() -> str:
        stage.done.append("model")
        return "said"

    def predicate(view: Any) -> bool:
        stage.done.append("predicate")
        return bool(view.n == 1)

    def agent(run: Run) -> object:
        loan = run.show("loan/42")
        first, second = lookup(1), lookup(1)
        assert (first["calls"], second["calls"]) == (1, 2)
        try:
            fails()
        except FileNotFoundError as error:
            run.note(str(error))
        said = run.model("m", model, messages=["x"]).result
        verdict = decide("s", first, [Rule("one", predicate), Rule("two", {"n": 2})])
        report = run.store({"entity_type": "memo", "name": "n", "text": said})
        found = run.search("ann").items
        run.pinned().show("loan/42")
        with run.tool("block", number=1) as call:
            call.result = "block"
        stage.here()
        assert run.show("loan/42").fields["creditScore"] == 700
        lookup(3)
        return [loan.fields["creditScore"], verdict.chosen, report.observations, len(found), call.fact().value]

    run = stage.interrupted(ledger, agent)
    before = list(stage.done)
    assert before == [("lookup", 1), ("lookup", 1), "fails", "model", "predicate"]
    ledger.store({"entity_type": "loan", "$": {"key": "42"}, "creditScore": 700})
    ledger.store({"entity_type": "loan", "$": {"key": "43"}, "applicant": "ann"})
    recorded = len(entries(ledger, run))
    resumed = ledger.runs.resume(run, agent)
    assert stage.done == [*before, ("lookup", 3)]
    assert resumed.answer[:2] == [580, "one"]
    assert resumed.answer[3:] == [1, "block"]
    assert len(list(ledger.observations("memo/n"))) == 1
    assert resumed.from_log == 11
    assert resumed.unused == 0
    assert kinds(ledger, run)[recorded:] == ["noted", "read", "tool", "ended"]
    assert entries(ledger, run, "run.noted")[-1]["data"]["event"] == "resumed"
    assert resumed.to_json()["status"] == "done"


def test_the_first_unrecorded_step_ends_the_answering(ledger: Ledger) -> None:
    """After a step the log does not hold, recorded ones are done again; a `once` tool's effect still is not."""
    stage = Stage(ledger)

    @tool
    def lookup(number: int) -> int:
        stage.done.append(("lookup", number))
        return len(stage.done)

    @tool(once=True)
    def pay(amount: int) -> int:
        stage.done.append(("pay", amount))
        return len(stage.done)

    def agent(run: Run) -> object:
        results = [lookup(1)]
        if not stage.dies:
            lookup(2)  # today's code does more
        results += [lookup(3), pay(5)]
        stage.here()
        return results

    run = stage.interrupted(ledger, agent)
    resumed = ledger.runs.resume(run, agent)
    assert resumed.answer == [1, 5, 3]
    assert stage.done.count(("pay", 5)) == 1
    assert stage.done.count(("lookup", 3)) == 2
    assert resumed.unused == 1


def test_other_rules_or_facts_are_decided_anew(ledger: Ledger) -> None:
    """A recorded decision answers only for the same facts and the same rules."""
    stage = Stage(ledger)

    def agent(run: Run) -> object:
        floor = 600 if stage.dies else 500
        verdict = decide("risk", run.show("loan/42"), [Rule("rejected", {"creditScore": {"lt": floor}})], "ok")
        stage.here()
        return verdict.chosen

    run = stage.interrupted(ledger, agent)
    assert ledger.runs.resume(run, agent).answer == "ok"
    assert [body["chosen"] for body in entries(ledger, run, "run.decided")] == ["rejected", "ok"]


def test_what_happened_inside_an_answered_call_does_not_happen_again(ledger: Ledger) -> None:
    """Steps under a call that the log answers are not handed out to equal steps elsewhere."""
    stage = Stage(ledger)

    @tool
    def outer() -> str:
        return str(decide("s", {"x": 1}, YES).span)

    def agent(run: Run) -> object:
        outer()
        stage.here()
        return decide("s", {"x": 1}, YES).span

    run = stage.interrupted(ledger, agent)
    first = entries(ledger, run, "run.decided")[0]["span"]
    resumed = ledger.runs.resume(run, agent)
    assert resumed.answer != first
    assert resumed.unused == 0


def test_results_are_loaded_into_what_they_were(ledger: Ledger) -> None:
    """`load` makes of a recorded result what the function returns; without it the agent gets plain JSON."""
    stage = Stage(ledger)

    @tool(load=tuple)
    def pair() -> tuple[int, int]:
        return (1, 2)

    def agent(run: Run) -> object:
        found = pair()
        stage.here()
        return isinstance(found, tuple)

    run = stage.interrupted(ledger, agent)
    assert ledger.runs.resume(run, agent).answer is True


def test_parallel_steps_are_answered_whatever_their_order(ledger: Ledger) -> None:
    """Recorded steps of a pool are recognised by name and arguments, not by the order they come in."""
    stage = Stage(ledger)

    @tool
    def lookup(number: int) -> int:
        stage.done.append(number)
        return number * 10

    def agent(run: Run) -> object:
        numbers = range(6) if stage.dies else range(5, -1, -1)
        with run.executor(3) as pool:
            found = sorted(pool.map(lookup, numbers))
        stage.here()
        return found

    run = stage.interrupted(ledger, agent)
    assert ledger.runs.resume(run, agent).answer == [0, 10, 20, 30, 40, 50]
    assert len(stage.done) == 6


def test_runs_inside_a_resumed_run_are_carried_on_too(ledger: Ledger) -> None:
    """A run started inside is recognised by its beginning: its steps answer, its effects are not repeated."""
    stage = Stage(ledger)

    @tool(once=True)
    def pay(amount: int) -> str:
        stage.done.append(amount)
        return "paid"

    def agent(run: Run) -> object:
        with ledger.run("inner", inputs={"n": 1}) as whole:
            pay(1)
        with ledger.run("inner", inputs={"n": 2}) as part:
            pay(2)
            stage.here()
            pay(3)
        return [whole.id, part.id]

    run = stage.interrupted(ledger, agent)
    with ledger.context.engine.view(ledger.tenant) as view:
        bodies = [form.decode(entry.body or b"") for entry in view.entries(kinds={"run.started"})]
    inner = [body["run"] for body in bodies if body["query"] == "inner"]
    resumed = ledger.runs.resume(run, agent)
    assert resumed.answer == inner
    assert stage.done == [1, 2, 3]
    assert kinds(ledger, inner[0]) == ["started", "tool", "tool", "ended"]
    assert kinds(ledger, inner[1]) == ["started", "tool", "tool", "tool", "tool", "ended"]


def test_of_two_who_resume_at_once_one_is_told(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever resumes after the same entries uses the same key: the second is refused."""
    from woodrat.runs.recorder import resume
    from woodrat.runs.recorder.log import steps_of

    run = ledger.run("?").start().id
    steps = steps_of(ledger.context, run)
    resume.carried_on(ledger.run_log(), run, lambda run: None)
    monkeypatch.setattr(resume, "family", lambda context, run: [steps])  # read before the other's note was there
    with pytest.raises(Refused, match="another process resumed it"):
        ledger.runs.resume(run, lambda run: None)


def test_a_run_that_is_being_recorded_is_not_resumed(ledger: Ledger) -> None:
    """While this process records a run it reads as running and cannot be resumed; once nobody does, it can."""
    run = ledger.run("?").start()
    id = run.id
    assert ledger.runs.show(id).status == "running"
    with pytest.raises(Refused, match="this process is recording it"):
        ledger.runs.resume(id, lambda run: None)
    with ledger.runs.continue_(id):
        pass
    assert ledger.runs.show(id).status == "running"
    del run
    assert ledger.runs.show(id).status == "interrupted"
    assert ledger.runs.resume(id, lambda run: "done").answer == "done"
    assert ledger.runs.show(id).status == "done"


def test_a_resumed_run_hides_what_it_hid(ledger: Ledger) -> None:
    """Keys to be hidden are part of the beginning, so a run carried on hides them too."""
    stage = Stage(ledger)

    def agent(run: Run) -> object:
        run.note("before", {"ssn": "123"})
        stage.here()
        run.note("after", {"ssn": "123"})
        return None

    run = stage.interrupted(ledger, agent, redact=["ssn"])
    ledger.runs.resume(run, agent)
    assert "'123'" not in str(entries(ledger, run))


def test_an_async_agent_is_resumed(ledger: Ledger) -> None:
    """An async function is carried on in a loop of its own, or in the loop of an async ledger."""
    stage = Stage(ledger)

    @tool(once=True)
    async def pay(amount: int) -> str:
        stage.done.append(amount)
        return "paid"

    async def agent(run: Any) -> str:
        said = await pay(1)
        stage.here()
        return said

    asked = AsyncLedger(ledger)
    assert ledger.runs.resume(stage.interrupted(ledger, agent), agent).answer == "paid"
    assert asyncio.run(asked.runs.resume(stage.interrupted(ledger, agent), agent)).answer == "paid"
    run = stage.interrupted(ledger, agent)
    assert asyncio.run(asked.runs.resume(run, lambda run: asyncio.run(agent(run)))).answer == "paid"
    assert len(stage.done) == 3


# -- across processes


def test_a_run_reaches_another_process(tmp_path: Path) -> None:
    """A process started with the run's environment records into it, under the step that started it, and names it."""
    file = tmp_path / "agents.db"
    with woodrat.open(file, agent="loan-officer") as ledger:
        ledger.store({"entity_type": "loan", "$": {"key": "42"}, "creditScore": 580})

        @tool
        def spawn() -> str:
            run = current_run()
            assert run is not None
            path = os.pathsep.join([str(Path(woodrat.__file__).parents[1]), str(ROOT)])
            done = subprocess.run(
                [sys.executable, "-m", "tests.runs.continuing", str(file)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": path, **run.environment()},
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        with ledger.run("?") as run:
            run.show("loan/42")
            run.store({"entity_type": "memo", "name": "n", "count": 1})
            same, own = spawn().split()
            run.note("after")
        assert same == run.id
        span = last(ledger, run.id, "run.tool")["span"]
        decided = last(ledger, run.id, "run.decided")
        assert decided["under"] == span
        assert decided["facts_origin"]["creditScore"]["by"] == "value"
        assert last(ledger, own, "run.started")["parent"] == {"run": run.id, "span": span}
        assert len(list(ledger.observations("memo/n"))) == 2
        assert kinds(ledger, run.id).count("ended") == 1


def test_traceparents_go_in_and_out(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is its own trace; one that came with a traceparent stays in that trace, and names a run where it is one."""
    with ledger.run("?") as run:
        version, trace, span, flags = run.traceparent.split("-")
        assert (version, len(trace), span, flags) == ("00", 32, run.span, "01")
        inside = run.tool("t", lambda: run.traceparent).result
        assert inside.split("-")[1] == trace
        assert inside.split("-")[2] == last(ledger, run.id, "run.tool")["span"]
        outgoing = run.traceparent
    with ledger.run("?", traceparent=outgoing) as child:
        pass
    assert last(ledger, child.id, "run.started")["parent"] == {"run": run.id, "span": run.span}
    foreign = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with ledger.run("?", traceparent=foreign) as traced:
        assert traced.traceparent.split("-")[1] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert last(ledger, traced.id, "run.started")["trace"] == foreign
    monkeypatch.setenv("TRACEPARENT", foreign)
    with ledger.run("?") as told:
        pass
    assert last(ledger, told.id, "run.started")["trace"] == foreign
    monkeypatch.setenv("WOODRAT_RUN", "run_ofanotherlog/00f067aa0ba902b7")
    with ledger.run("?") as lost:
        pass
    assert not {"parent", "trace"} & set(last(ledger, lost.id, "run.started"))
    open_run = ledger.run("?").start()
    with ledger.runs.continue_(open_run.traceparent) as again:
        again.note("by trace")
    assert "noted" in kinds(ledger, open_run.id)
    assert run_trace.traced("00-" + "0" * 32 + "-00f067aa0ba902b7-01") is None
    assert run_trace.traced(None) is None


def test_a_continued_run_is_ended_by_whoever_is_to(ledger: Ledger) -> None:
    """Leaving a continued run leaves it open; with `ends` it ends there; an ended one cannot be continued."""
    run = ledger.run("?", inputs={"a": 1}).start()
    with ledger.runs.continue_(run.id) as again:
        assert again.inputs == {"a": 1}
        decide("s", {"x": 1}, YES)
    assert "ended" not in kinds(ledger, run.id)
    with ledger.runs.continue_(run.id, ends=True) as again:
        again.answer("done")
    assert last(ledger, run.id, "run.ended")["answer"] == "done"
    with pytest.raises(Refused, match="it has ended"):
        ledger.runs.continue_(run.id)


def test_an_answer_where_the_run_does_not_end_is_a_problem(ledger: Ledger) -> None:
    """An answer given by a process that only takes part would be lost, and says so."""
    run = ledger.run("?").start()
    with (
        pytest.raises(Refused, match="where it does not end"),
        ledger.runs.continue_(run.id, on_error="raise") as again,
    ):
        again.answer("lost")


# -- other forms


def test_a_function_can_be_a_run(ledger: Ledger) -> None:
    """`ledger.recorded` makes each call a run: arguments are inputs, templates are filled in, the result answers."""

    @ledger.recorded("Should we approve application #{number}?", subject="loan/{number}", conversation="app-{number}")
    def approve(number: int, urgent: bool = False) -> str:
        run = current_run()
        assert run is not None
        return f"{decide('s', run.show(f'loan/{number}'), LOW).chosen} by {run.id}"

    @ledger.recorded()
    async def later() -> str:
        return str(decide("s", {"x": 1}, YES).run)

    run = approve(42).split()[-1]
    started = last(ledger, run, "run.started")
    assert started["query"] == "Should we approve application #42?"
    assert (started["subject"], started["conversation"]) == ("loan/42", "app-42")
    assert started["inputs"] == {"number": 42, "urgent": False}
    assert last(ledger, run, "run.ended")["answer"].startswith("rejected by run_")
    second = asyncio.run(later())
    assert last(ledger, second, "run.started")["query"] == "later"

    @ledger.recorded("About {nothing}")
    def wrong() -> None: ...

    with pytest.raises(Refused, match="cannot fill in"):
        wrong()


@tool
def counting(count: int) -> Iterator[int]:
    """Count, deciding at every step."""
    for number in range(count):
        decide("count", {"x": number}, YES)
        yield number


@tool
async def counting_async(count: int) -> AsyncIterator[int]:
    """Count, deciding at every step."""
    for number in range(count):
        decide("count", {"x": number}, YES)
        yield number


def test_a_generator_is_a_tool_with_its_items(ledger: Ledger) -> None:
    """It is recorded when it was read to its end, closed or failed; what its reader decides meanwhile is not inside."""
    with ledger.run("?") as run:
        for _ in counting(2):
            decide("outside", {"x": 1}, YES)
        counting(5)  # nobody reads it
        begun: Any = counting(5)
        assert next(begun) == 0
        begun.close()

        async def read() -> list[int]:
            return [number async for number in counting_async(2)]

        assert asyncio.run(read()) == [0, 1]
        failing = run.tool("fails", lambda: (1 // (1 - number) for number in range(3))).result
        assert next(failing) == 1
        with pytest.raises(ZeroDivisionError):
            next(failing)
        assert list(run.tool("made", lambda: (number for number in range(3))).result) == [0, 1, 2]
    record = ledger.runs.show(run.id)
    results = [(body["name"], body.get("result")) for body in entries(ledger, run.id, "run.tool")]
    assert results == [
        ("counting", [0, 1]),
        ("counting", [0]),
        ("counting_async", [0, 1]),
        ("fails", [1]),
        ("made", [0, 1, 2]),
    ]
    spans = {call.span: call.name for call in record.tool_calls}
    decided = entries(ledger, run.id, "run.decided")
    inside = [spans[body["under"]] for body in decided if body["stage"] == "count"]
    assert inside == ["counting"] * 3 + ["counting_async"] * 2
    assert all("under" not in body for body in decided if body["stage"] == "outside")
    assert run.problems == []
    assert list(counting(2)) == [0, 1]


def test_a_generator_is_answered_from_the_log(ledger: Ledger) -> None:
    """When a run is resumed, a recorded generator yields its items again, and its code is not run."""
    ran: list[str] = []

    @tool(once=True)
    def parts() -> Iterator[str]:
        ran.append("parts")
        yield "a"
        yield "b"

    def agent(run: Run) -> Iterator[str]:
        yield from parts()
        if len(ran) == 1 and not run.recording:
            raise SystemExit(1)
        yield "c"

    begun = ledger.run("?").start()
    with begun.current(), pytest.raises(SystemExit):
        list(agent(begun))
    id = begun.id
    del begun
    assert ledger.runs.resume(id, agent).answer == "abc"
    assert ran == ["parts"]


def test_a_generator_can_be_a_run(ledger: Ledger) -> None:
    """The run lasts until the generator was read; pieces of text are its answer as one text, other items a list."""

    @ledger.recorded("Say {count}?")
    def say(count: int) -> Iterator[str]:
        for number in range(count):
            decide("say", {"x": number}, YES)
            yield f"{number} "

    @ledger.recorded("Count?")
    async def count() -> AsyncIterator[int]:
        yield 1
        decide("count", {"x": 1}, YES)
        yield 2

    said = say(3)
    assert ledger.runs.list().items == ()
    assert next(said) == "0 "
    assert current_run() is None
    assert ledger.runs.list().items[0].status == "running"
    assert "".join(said) == "1 2 "
    record = ledger.runs.list().items[0]
    assert (record.query, record.answer, record.status, record.counts.decisions) == ("Say 3?", "0 1 2 ", "done", 3)

    async def read() -> list[int]:
        return [number async for number in count()]

    assert asyncio.run(read()) == [1, 2]
    assert (ledger.runs.list().items[0].answer, ledger.runs.list().items[0].counts.decisions) == ([1, 2], 1)
    stopped: Any = say(3)
    next(stopped)
    stopped.close()
    assert (ledger.runs.list().items[0].answer, ledger.runs.list().items[0].status) == ("0 ", "done")
    failing: Any = say("x")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        next(failing)
    assert ledger.runs.list().items[0].status == "error"


def test_generators_take_what_they_are_sent(ledger: Ledger) -> None:
    """What a reader sends or throws into a recorded generator reaches it."""

    @tool
    def echo() -> Iterator[Any]:
        try:
            got = yield "ready"
            yield got
        except KeyError:
            yield "caught"

    with ledger.run("?"):
        one: Any = echo()
        assert (next(one), one.send(5)) == ("ready", 5)
        other: Any = echo()
        next(other)
        assert other.throw(KeyError()) == "caught"


def test_an_agent_that_yields_takes_no_turn(ledger: Ledger) -> None:
    """A generator cannot be wrapped into turns, and whoever tries is told what to do instead."""

    def agent(prompt: str) -> Iterator[str]:
        yield prompt

    with pytest.raises(Refused, match=r"turn\.answer"):
        woodrat.memory(ledger).wrap(agent)


def test_a_recorded_function_is_resumed_with_its_inputs(ledger: Ledger) -> None:
    """A function made by `recorded` is carried on by calling it with the inputs of its run."""
    stage = Stage(ledger)

    @tool(once=True)
    def pay(amount: int) -> str:
        stage.done.append(amount)
        return "paid"

    @ledger.recorded("Pay {amount}")
    def agent(amount: int) -> str:
        said = pay(amount)
        stage.here()
        return said

    stage.dying(lambda: agent(5))
    with ledger.context.engine.view(ledger.tenant) as view:
        run = next(form.decode(entry.body or b"")["run"] for entry in view.entries(kinds={"run.started"}))
    assert ledger.runs.resume(run, agent).answer == "paid"
    assert stage.done == [5]


def test_async_runs_through_an_async_ledger(tmp_path: Path) -> None:
    """`async with ledger.run(…)`: the same verbs as coroutines, the same entries, and the ambient run for the rest."""

    @tool
    async def bureau(number: int) -> dict[str, int]:
        await asyncio.sleep(0)
        return {"score": 1}

    async def story() -> tuple[str, AsyncLedger]:
        from woodrat.api.aio import aopen

        ledger = await aopen(tmp_path / "agents.db", agent="loan-officer")
        await ledger.store({"entity_type": "loan", "$": {"key": "42"}, "creditScore": 580})
        async with ledger.run("?", subject="loan/42", inputs={"a": 1}) as run:
            loan = await run.show("loan/42")
            assert loan.fact("creditScore").value == 580
            verdict = await run.decide("one", loan, LOW)
            assert verdict.chosen == "rejected"
            decide("two", loan, LOW)
            await bureau(1)
            call = await run.tool("named", bureau, 2)
            assert call.fact("/score").value == 1
            assert (await run.tool("sync", lambda: 5)).result == 5
            async with run.tool("block", x=1) as call:
                call.result = 1
            assert (await run.model("m", lambda: "said")).result == "said"

            async def said() -> str:
                return "later"

            assert (await run.model("m", said)).result == "later"
            assert (await run.model("m", lambda: said())).result == "later"
            await run.model("m", response="given")
            async with run.model("m") as call:
                call.result = "block"
            assert (await (await run.pinned()).show("loan/42")).fields["creditScore"] == 580
            assert (await run.store({"entity_type": "memo", "name": "n"})).position > 0
            await run.note("n")
            assert run.input("a").value == 1
            assert run.environment()["WOODRAT_RUN"].startswith(run.id)
            run.answer("no")
            assert current_run() is not None
        assert current_run() is None
        await ledger.runs.judge(run.id, "good")
        open_run = ledger.run("?")
        await open_run.start()
        async with ledger.runs.continue_(open_run.id, ends=True) as again:
            await again.note("again")

        @ledger.recorded("Twice {n}")
        async def twice(n: int) -> int:
            return n * 2

        assert await twice(2) == 4
        return run.id, ledger

    run, ledger = asyncio.run(story())
    counted = {kind: kinds(ledger.target, run).count(kind) for kind in set(kinds(ledger.target, run))}
    assert counted == {
        "started": 1,
        "read": 2,
        "decided": 2,
        "tool": 4,
        "model": 5,
        "noted": 1,
        "ended": 1,
        "judged": 1,
    }
    ledger.target.close()


def test_interpretations_are_part_of_the_run(ledger: Ledger) -> None:
    """What is read from a source inside a run names the run as well as the reading."""
    source = ledger.sources.add(b"a contract")
    with ledger.run("?") as run, run.interpretation(source, model="m") as reading:
        report = reading.store({"entity_type": "contract", "name": "kline"})
    said = next(each.observation for each in ledger.observations() if each.observation.id in report.observations)
    assert said.optional["run"] == run.id
    assert said.optional["interpretation"] == reading.id


def test_conditions_of_writes_are_the_callers(ledger: Ledger) -> None:
    """A write that is refused or outdated raises whatever the run was asked to do with problems."""
    with ledger.run("?") as run:
        with pytest.raises(Outdated):
            run.store({"entity_type": "loan", "$": {"key": "42"}, "creditScore": 1}, if_version=99)
        with pytest.raises(Refused):
            run.store({"entity_type": "loan"})
    assert run.problems == []


def test_a_run_in_an_empty_log_has_a_basis() -> None:
    """The very first write of a log may be a run; its basis is the position before all."""
    ledger = Ledger(InMemoryEngine(), tenant="t", agent="a", clock=FixedClock(), policies=dict(BUILTIN))
    with ledger.run("?") as run:
        assert run.basis == -1
        with pytest.raises(NotFound):
            run.pinned().show("loan/42")
    assert last(ledger, run.id, "run.started")["basis"]["position"] == -1


def test_a_clock_that_goes_back_does_not_reorder_a_run() -> None:
    """Steps of a recorder are never earlier than the ones before them, whatever the machine's clock does."""
    from woodrat.testing.clock import JumpingClock

    moments = [f"2026-01-01T00:00:{second:02d}Z" for second in (50, 40, 30, 20, 10)]
    ledger = Ledger(InMemoryEngine(), tenant="t", agent="a", clock=JumpingClock(moments), policies=dict(BUILTIN))
    with ledger.run("?") as run:
        for number in range(5):
            run.note(str(number))
    times = [body["started_at"] for body in entries(ledger, run.id)]
    assert times == sorted(times)
    assert len(set(times)) == len(times)
    assert last(ledger, run.id, "run.ended")["duration_ms"] >= 0


def test_a_run_recorded_elsewhere_is_resumed_whatever_its_shape(ledger: Ledger) -> None:
    """Parts of another shape count as left out: the run is carried on and explained, and nothing is raised for them."""
    run = "run_" + "b" * 26
    odd: list[Any] = [{"a": 1}, [1]]
    told: list[dict[str, Any]] = [{"kind": "run.started", "query": "?", "agent": "a"}]
    for number, value in enumerate(odd):
        told.append({"kind": "run.tool", "name": value, "args": {}, "result": 1})
        told.append({"kind": "run.model", "model": value, "request": value, "response": 1})
        told.append({"kind": "run.read", "entity": value, "position": value, "found": True, "within": value})
        origin = {"kind": "read", "entity": value, "position": value, "span": value}
        conditions = [{"key": "x", "op": "eq", "operand": 1, "actual": 1, "result": True, "origin": origin}]
        rules = [{"chosen": 1, "matched": True, "when": {"x": 1}, "conditions": conditions}]
        told.append({"kind": "run.decided", "stage": f"s{number}", "mode": value, "chosen": 1, "rules": rules})
    place = {"run": run, "started_at": "2026-01-01T00:00:00Z"}
    ledger.runs.import_([{**entry, **place, "span": f"{step:016x}", "step": step} for step, entry in enumerate(told)])
    assert ledger.lineage(run).to_json()["kind"] == "answer"
    owner = ledger.as_agent("a")
    assert owner.runs.resume(run, lambda run: run.show("loan/42").fields["creditScore"]).answer == 580


def test_what_a_model_answers_is_set_by_either_name() -> None:
    """The record calls it the response and a block sets the result: both are one value, and none is lost."""
    ledger = woodrat.open(":memory:")
    with ledger.run("Ask") as run:
        with run.model("m") as call:
            call.response = "by the record's name"
        with run.model("m") as other:
            other.result = "by the call's name"
        assert (call.result, other.response) == ("by the record's name", "by the call's name")
    assert [one.response for one in ledger.runs.show(run.id).models] == [call.result, other.result]
