"""The library's verbs on a ledger behind a server: the same stories, the same records, the same errors."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.runs import dying
from tests.server.server import Server

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.api.remote_run import carried_on
from woodrat.api.transport import Transport
from woodrat.cli.main import main
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.runs.summary import summary_of
from woodrat.server.keys import Keyring
from woodrat.testing.ledgers import answers_about

Start = Callable[..., Server]
ROOT = Path(__file__).resolve().parents[2]
ANA = {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}


@pytest.fixture
def agents(start: Start, keyring: Keyring, engine: SqliteEngine) -> tuple[Any, Any, Ledger]:
    """The ledgers of two agents behind a server, and the same ledger here."""
    keys = [keyring.create("t", agent, ["*"])[1] for agent in "ab"]
    server = start(keyring)
    remote = [woodrat.open(f"http://127.0.0.1:{server.port}", key=key) for key in keys]
    here = [Ledger(engine, tenant="t", agent=agent, clock=SystemClock(), policies=registry(())) for agent in "ab"]
    return remote[0], remote[1], here[0]


def said(past: Any) -> dict[str, Any]:
    """Return everything a ledger says at its moment that both kinds can say."""
    stored = past.observations()
    refs = dict.fromkeys(item.observation.entity for item in stored)
    return {
        "position": past.position,
        "fingerprint": past.fingerprint(),
        "provenance": past.fingerprint(provenance=True),
        "conflicts": past.conflicts(),
        "observations": stored,
        "timeline": past.timeline(),
        "schemas": past.schemas.list(),
        "deliveries": past.sources.list(),
        "interpretations": past.interpretations.list(),
        "duplicates": past.duplicates(),
        "values": past.values(),
        "query": past.query(limit=5),
        "query by conditions": past.query(where={"city": {"prefix": "B", "lt": "C"}}, sort="city", descending=True),
        "search": past.search("ana"),
        "entities": {str(ref): answers_about(past, ref) for ref in refs},
        "entries": past.log.entries(),
    }


RULES = [woodrat.Rule("rejected", {"score": {"lt": 600}}), woodrat.Rule("approved", {"score": {"gte": 600}})]


def decided(ledger: Any, score: int = 580) -> str:
    """Decide about a loan on what is known of it, and return the run."""
    ledger.store({"entity_type": "loan", "id": "42", "score": score})
    with ledger.run("Approve?", subject="loan/42") as run:
        run.decide("risk", run.show("loan/42"), RULES)
    found: str = run.id
    return found


def test_what_becomes_stale_is_followed_from_afar(agents: tuple[Any, Any, Ledger]) -> None:
    """A follower behind a server is told what one here is, whoever writes, from any position on, and once."""
    a, b, here = agents
    run = decided(a)
    begin = here.position
    b.correct("loan/42", {"score": 640})
    here.store({"entity_type": "loan", "id": "43", "score": 1})
    b.correct("loan/42", {"score": 580})
    b.correct("loan/42", {"score": 700})

    def followed(ledger: Any, **after: Any) -> list[Any]:
        return list(ledger.follow_stale(wait=lambda: False, **after))

    assert followed(a, after=begin) == followed(here, after=begin)
    assert [(one.run, one.now.chosen) for one in followed(a, after=begin)] == [(run, "approved")] * 2
    assert followed(a) == []
    assert followed(a, after="now") == []
    with pytest.raises(woodrat.NotFound):
        followed(a, after=10_000)

    async def first() -> Any:
        async with await woodrat.aopen(
            a.link.transport.address, key=a.link.transport._headers["Authorization"][7:]
        ) as ledger:
            async for one in ledger.follow_stale(after=begin):
                return one

    assert asyncio.run(first()) == followed(here, after=begin)[0]


@pytest.mark.filterwarnings("ignore::woodrat.StaleWarning")
def test_a_function_is_told_from_afar_what_becomes_stale(
    agents: tuple[Any, Any, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function that is told of stale decisions hears of every write behind the server, and may write."""
    a, b, here = agents
    monkeypatch.setattr("woodrat.api.remote_watch.PATIENCE_SECONDS", 1)
    run = decided(a)
    told: list[Any] = []
    heard = threading.Event()

    def hear(found: tuple[Any, ...]) -> None:
        told.extend((one.run, one.now.chosen) for one in found)
        heard.set()
        a.store({"entity_type": "memo", "id": str(len(told))})
        raise KeyError("planted")

    with a.on_stale(hear) as subscription:
        b.correct("loan/42", {"score": 640})
        assert heard.wait(20)
        heard.clear()
        here.correct("loan/42", {"score": 580})
        here.correct("loan/42", {"score": 700})
        assert subscription.flush(20)
        assert heard.is_set()
        assert not subscription.closed
    assert subscription.closed
    for thread in threading.enumerate():
        if thread.name == "woodrat-stale":
            thread.join(20)
    assert told == [(run, "approved")] * 2
    assert [type(problem) for problem in subscription.problems][:1] == [KeyError]
    with pytest.raises(woodrat.Refused):
        a.on_stale("print")


def test_waiting_for_what_becomes_stale_is_bounded(server: Server) -> None:
    """The server waits no longer than was asked for, and for no more seconds than it allows."""
    ledger = woodrat.open(f"http://127.0.0.1:{server.port}")
    ledger.store(ANA)
    assert server.call("GET", "/v1/stale/new?wait=20&after=-1").json == {"position": ledger.position, "decisions": []}
    for amiss in ("wait=21", "wait=-1", "wait=x", "after=99", "after=x"):
        assert server.call("GET", f"/v1/stale/new?{amiss}").status in (400, 404), amiss


def test_what_is_hidden_here_never_arrives_there(start: Start, keyring: Keyring, engine: SqliteEngine) -> None:
    """With `redact`, values under hidden keys are taken out of all that is written through a server."""
    key = keyring.create("t", "a", ["*"])[1]
    server = start(keyring)
    with woodrat.open(f"http://127.0.0.1:{server.port}", key=key, redact=["password"]) as ledger:
        secret = {"n": 1, "password": "hunter2-hunter2"}
        ledger.store([{"entity_type": "account", "id": "1", **secret}, {"entity_type": "account", "id": "2"}])
        ledger.correct("account/1", {"deep": [secret]})
        ledger.relate("account/1", "knows", "account/2", fields=secret)
        with ledger.run("?", subject="account/1", inputs=secret) as run:
            run.tool("t", lambda **given: given, **secret)
            run.decide("d", secret, [woodrat.Rule(secret, {"password": secret["password"]})], default=secret)
            run.store({"entity_type": "account", "id": "1", **secret})
            run.answer(secret)
        assert run.problems == []
        ledger.runs.judge(run.id, "bad", preferred=secret)
        ledger.runs.import_({"query": "?", "inputs": secret, "steps": [], "answer": "x"})
        ledger.runs.import_([{"kind": "run.started", "query": "?", "inputs": secret}])
        with ledger.interpretations.start(ledger.sources.add(b"x", name="x"), parameters=secret) as reading:
            reading.store({"entity_type": "account", "id": "3", **secret})
        bodies = [entry.body or b"" for entry in ledger.log.entries()]
    assert sum(b"[REDACTED]" in body for body in bodies) >= 12
    assert not [body for body in bodies if b"hunter2" in body]


def test_a_server_hides_what_it_is_told_to(start: Start, keyring: Keyring) -> None:
    """Entries of runs that are recorded elsewhere arrive whole, and are kept without what the server hides."""
    key = keyring.create("t", "a", ["*"])[1]
    server = start(keyring, redact="password")
    with woodrat.open(f"http://127.0.0.1:{server.port}", key=key) as ledger:
        with ledger.run("?", inputs={"password": "hunter2-hunter2"}) as run:
            run.tool("t", lambda **given: given, password="hunter2-hunter2")
            run.decide("d", {"password": "hunter2-hunter2"}, [woodrat.Rule("x", {"password": "hunter2-hunter2"})])
            run.answer({"password": "hunter2-hunter2"})
        bodies = [entry.body or b"" for entry in ledger.log.entries()]
    assert run.problems == []
    assert not [body for body in bodies if b"hunter2" in body]


def test_a_run_behind_a_server_may_recall_from_a_ledger_here(agents: tuple[Any, Any, Ledger]) -> None:
    """A ledger in this process answers a recall in a run that is recorded elsewhere, and notes nothing."""
    a, _, here = agents
    with here.run("Approve #42?") as known:
        known.answer("no")
    with a.run("Why was #42 not approved?") as run:
        found = here.recall("Approve #42?", threshold=0.3)
        run.answer("it was not")
    assert [hit.run for hit in found.hits] == [known.id]
    assert not here.runs.show(run.id).notes


def test_several_values_of_one_argument_reach_the_server(agents: tuple[Any, Any, Ledger]) -> None:
    """A list in an address is taken as one, and a name made of digits stays a name."""
    a, _, here = agents
    a.store([{"entity_type": "contact", "name": "Ana", "city": "Lugo"}, {"entity_type": "loan", "id": "Lugo-7"}])
    for asked in ({"entity_type": ["contact", "loan"]}, {"not_from": ["7", "8"]}, {"not_from": "7"}):
        found = a.recall("Lugo", k=5, threshold=0, **asked)
        assert found.hits
        assert found == here.recall("Lugo", k=5, threshold=0, **asked)


@pytest.mark.parametrize(
    "call",
    [
        lambda ledger: ledger.show("contact/Nobody"),
        lambda ledger: ledger.show("no reference"),
        lambda ledger: ledger.store([{"entity_type": "contact"}, {"name": "x"}]),
        lambda ledger: ledger.store({**ANA, "x": float("nan")}),
        lambda ledger: ledger.store(ANA, observed_at="some day"),
        lambda ledger: ledger.store(ANA, if_version=99),
        lambda ledger: ledger.correct("contact/Nobody", {"city": "Vic"}),
        lambda ledger: ledger.retract("obs_none"),
        lambda ledger: ledger.schemas.register({"title": "x", "properties": {"a": {"type": "fly"}}}),
        lambda ledger: ledger.at("tomorrow"),
        lambda ledger: ledger.at(valid_at="soon"),
        lambda ledger: ledger.search("ana", limit=0),
        lambda ledger: ledger.query(cursor="broken"),
        lambda ledger: ledger.related("contact/Ana Rivera", depth=99),
        lambda ledger: ledger.elements("contact/Ana Rivera", "name"),
        lambda ledger: ledger.sources.content("src_none"),
        lambda ledger: ledger.runs.show("run_none"),
    ],
)
def test_errors_are_the_same(agents: tuple[Any, Any, Ledger], call: Callable[[Any], Any]) -> None:
    """What is refused, not found or outdated is so by the same class, message and details."""
    a, _, here = agents
    here.store(ANA)
    with pytest.raises(woodrat.WoodratError) as expected:
        call(here)
    with pytest.raises(woodrat.WoodratError) as found:
        call(a)
    assert type(found.value) is type(expected.value)
    assert found.value.to_json() == expected.value.to_json()


def test_a_call_that_got_no_answer_is_one_write(agents: tuple[Any, Any, Ledger], monkeypatch: Any) -> None:
    """Whether the request or its answer is lost, sending it again by itself stores it once."""
    a, _, here = agents
    send = Transport._send
    lost = iter(["before", "after", "after", "no"])

    def losing(transport: Transport, *given: Any) -> Any:
        when = next(lost)
        if when == "before":
            raise ConnectionRefusedError
        found = send(transport, *given)
        if when == "after":
            raise ConnectionResetError
        return found

    monkeypatch.setattr(Transport, "_send", losing)
    report = a.store(ANA)
    assert report.repeated
    assert len(list(here.observations())) == 1


def test_a_server_that_is_not_there_is_unavailable() -> None:
    """After a few tries the error says that nothing was sent; what may have been taken is told apart from that."""
    with pytest.raises(woodrat.Unavailable, match=r"no answer .* Nothing was sent. .* `woodrat serve` runs"), fast():
        woodrat.open("http://127.0.0.1:1").store(ANA)


def test_a_call_that_may_have_been_taken_is_not_told_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one try was cut off and the next found nobody, whether the write was done is not known."""
    tries = iter([ConnectionResetError(), *[ConnectionRefusedError()] * 4])

    def failing(*_: object, **__: object) -> None:
        raise next(tries)

    monkeypatch.setattr(Transport, "_send", failing)
    with pytest.raises(woodrat.Unavailable, match="Whether it was done is not known"), fast():
        woodrat.open("http://127.0.0.1:1").store(ANA)


@contextmanager
def fast() -> Iterator[None]:
    """Wait no longer than needed between tries."""
    from woodrat.api import transport

    before = transport.WAIT_SECONDS_MAX
    transport.WAIT_SECONDS_MAX = 0.0  # type: ignore[misc]
    try:
        yield
    finally:
        transport.WAIT_SECONDS_MAX = before  # type: ignore[misc]


def test_a_wrong_key_and_wrong_arguments(start: Start, keyring: Keyring) -> None:
    """Without a key that opens something every call is forbidden; what a key says cannot be said besides."""
    keyring.create("t", "a", ["*"])
    server = start(keyring)
    address = f"http://127.0.0.1:{server.port}"
    with woodrat.open(address, key="wrat_x_y") as ledger, pytest.raises(woodrat.Forbidden):
        ledger.show("contact/Ana")
    for given in (
        {"db": address, "tenant": "other"},
        {"db": address, "strict": True},
        {"db": "http://user:pass@host"},
        {"db": "http://"},
        {"db": "http://h:99999"},
        {"db": address, "key": "né"},
        {"db": ":memory:", "key": "wrat_x_y"},
    ):
        with pytest.raises(woodrat.Refused, match="Nothing was opened"):
            woodrat.open(**given)


def test_a_run_is_recorded_through_the_server(agents: tuple[Any, Any, Ledger], monkeypatch: Any) -> None:
    """Reads, decisions, tools, models, notes, writes and the answer are recorded, each once though answers are lost."""
    a, _, here = agents
    a.store({"entity_type": "loan", "id": "42", "creditScore": 580})
    send, calls = Transport._send, iter(range(1_000))

    def losing(transport: Transport, *given: Any) -> Any:
        found = send(transport, *given)
        if next(calls) % 2 == 0:
            raise ConnectionResetError
        return found

    monkeypatch.setattr(Transport, "_send", losing)
    rules = [woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit")]
    with a.run("Approve #42?", subject="loan/42", inputs={"application": 42}) as run:
        loan = run.show("loan/42")
        verdict = run.decide("classify-risk", loan, rules, default="manual-review")
        assert (verdict.chosen, verdict.rule) == ("rejected", "Marginal credit")
        assert isinstance(verdict, woodrat.Verdict)
        assert run.select("flags", {"creditScore": 580}, rules).chosen == ["rejected"]
        assert run.tool("bureau", lambda number: {"score": number}, 580).result == {"score": 580}
        with pytest.raises(ZeroDivisionError):
            run.tool("broken", lambda: 1 // 0)
        run.model("small-1", response="no", usage={"input": 3, "output": 1})
        run.note("checked", {"by": "rule"})
        run.store({"entity_type": "loan", "id": "42", "status": "rejected"})
        run.answer("Rejected.")
    record = here.runs.show(run.id)
    assert (record.status, record.answer, record.agent) == ("done", "Rejected.", "a")
    assert [decision.stage for decision in record.decisions] == ["classify-risk", "flags"]
    assert record.decisions[0].entities == ("loan/42",)
    assert [(call.name, call.errored) for call in record.tool_calls] == [("bureau", False), ("broken", True)]
    assert len(record.models) == len(record.writes) == 1
    assert [note.text for note in record.notes] == ["checked"]
    with pytest.raises(RuntimeError), a.run("Fail?") as failed:
        raise RuntimeError("no")
    assert (here.runs.show(failed.id).status, failed.ended) == ("error", True)


def decide(ledger: Any, number: str = "42") -> Any:
    """An agent as users write it: it reads, calls a tool, decides in the current run, and writes."""
    with ledger.run(f"Approve #{number}?", subject=f"loan/{number}", inputs={"application": number}) as run:
        loan = run.show(f"loan/{number}")
        assert [hit.snapshot.entity for hit in run.search(number, entity_type="loan").items] == [loan.entity]
        bureau(number)
        verdict = woodrat.decide("risk", loan, [woodrat.Rule("rejected", lambda facts: facts["creditScore"] < 600)])
        with run.tool("letter", to="ann") as call:
            call.result = "sent"
        run.correct(f"loan/{number}", {"status": verdict.chosen}, reason="decided")
        run.answer(f"{verdict.chosen}")
    return run


@woodrat.tool(once=True)
def bureau(number: str) -> dict[str, Any]:
    """Look a number up."""
    return {"number": number, "score": 580}


def test_code_for_the_library_runs_unchanged(agents: tuple[Any, Any, Ledger]) -> None:
    """An agent with ambient decisions, predicates, tools, searches and writes is recorded as on a ledger here."""
    a, _, here = agents
    for ledger, number in ((a, "42"), (here, "43")):
        ledger.store({"entity_type": "loan", "id": number, "creditScore": 580})
    there, local = (here.runs.show(decide(ledger, n).id) for ledger, n in ((a, "42"), (here, "43")))
    assert (there.status, there.answer, there.problems) == ("done", "rejected", ())
    for record in (there, local):
        assert [type(step).__name__ for step in record.steps] == [
            *("Read", "Read", "ToolCall", "Decision", "ToolCall"),
        ]
        assert record.tool_calls[0].once
        assert not record.tool_calls[0].begun
        assert record.decisions[0].entities == (record.subject,)
        assert record.decisions[0].rules[0].predicate is not None
        assert [(write.op, write.fields) for write in record.writes] == [("correct", {"status": "rejected"})]
    assert [write.step for write in there.writes] == [write.step for write in local.writes]
    assert [step.step for step in there.steps] == [step.step for step in local.steps]
    assert a.runs.show(there.id) == there
    assert a.show("loan/42").fields["status"] == "rejected"
    assert a.runs.list(subject="loan/42").items == here.runs.list(subject="loan/42").items == (summary_of(there),)


def test_a_run_goes_on_though_the_server_was_away(agents: tuple[Any, Any, Ledger], monkeypatch: Any) -> None:
    """Steps that could not be sent wait for the next one, and are in the log once, in their order."""
    a, _, here = agents
    send, away = Transport._send, [False]

    def losing(transport: Transport, *given: Any) -> Any:
        if away[0]:
            raise ConnectionRefusedError
        return send(transport, *given)

    monkeypatch.setattr(Transport, "_send", losing)
    with fast(), a.run("Count?") as run:
        run.note("one")
        away[0] = True
        with pytest.warns(woodrat.RecordingWarning):
            run.note("two")
        away[0] = False
        run.note("three")
        run.answer(3)
    record = here.runs.show(run.id)
    assert [note.text for note in record.notes] == ["one", "two", "three"]
    assert (record.status, record.answer) == ("done", 3)
    with pytest.raises(woodrat.Refused, match="has ended"):
        a.link.transport.post(f"/v1/runs/{run.id}/entries", {"entries": [{"kind": "run.noted", "text": "late"}]})


def test_a_run_of_another_agent_takes_no_entries(agents: tuple[Any, Any, Ledger]) -> None:
    """Entries are taken from the agent whose run it is, of that run alone, and never another beginning."""
    a, b, here = agents
    run = a.run("Mine?").start()
    path = f"/v1/runs/{run.id}/entries"
    with pytest.raises(woodrat.Forbidden):
        b.link.transport.post(path, {"entries": [{"kind": "run.noted", "text": "x"}]})
    for entry in ({"kind": "run.started"}, {"kind": "run.noted", "run": "run_" + "b" * 26}, {"kind": "tag"}, 1):
        with pytest.raises(woodrat.Refused, match="Nothing was recorded"):
            a.link.transport.post(path, {"entries": [entry]})
    odd = {"kind": "run.read", "entity": "no reference", "fields": {"x": 1, "y": {"observation": 1}}}
    with pytest.raises(woodrat.Refused, match="is not an entity"):
        a.link.transport.post(path, {"entries": [odd]})
    run.end(answer="yes")
    assert here.runs.show(run.id).answer == "yes"


def test_memory_and_recorded_functions(agents: tuple[Any, Any, Ledger]) -> None:
    """`woodrat.memory` takes turns through a server, once for a key; `recorded` makes calls runs that know parents."""
    a, _, here = agents
    a.store({"entity_type": "loan", "id": "42", "creditScore": 580})
    decide(a)
    memory = woodrat.memory(a, threshold=0.1)
    for _ in range(2):
        with memory.turn("Why was #42 rejected?", key="friday") as turn:
            if not turn.known:
                assert "rejected" in turn.inject
                turn.answer("Its score.")
        assert turn.reply == "Its score."
    assert turn.known

    def plus_one(x: int) -> int:
        return x + 1

    add = a.recorded("Add {x}", subject="loan/42")(plus_one)

    with a.run("Outer?") as outer:
        assert add(1) == 2
    inner = here.runs.list(subject="loan/42").items[0]
    assert (inner.query, inner.answer, inner.parent and inner.parent["run"]) == ("Add 1", 2, outer.id)
    begun = a.run("Long?").start()
    with a.runs.continue_(begun.id, ends=True) as going:
        going.note("from elsewhere")
        going.answer("done")
    assert here.runs.show(begun.id).answer == "done"
    with pytest.raises(woodrat.Refused, match="it has ended"):
        a.runs.continue_(begun.id)


def test_runs_are_replayed_and_exported_from_a_copy(agents: tuple[Any, Any, Ledger], tmp_path: Any) -> None:
    """`replay` answers from the log that was fetched; rows for training are the same, and the export is on record."""
    a, _, here = agents
    a.store({"entity_type": "loan", "id": "42", "creditScore": 580})
    run = decide(a)

    def agent(run: Any) -> None:
        loan = run.show("loan/42")
        run.search("42", entity_type="loan")
        bureau("42")
        verdict = run.decide("risk", loan, [woodrat.Rule("rejected", lambda facts: facts["creditScore"] < 600)])
        with run.tool("letter", to="ann") as call:
            call.result = "sent"
        run.correct("loan/42", {"status": verdict.chosen}, reason="decided")
        run.answer("rejected")

    assert a.runs.replay(run.id, agent) == here.runs.replay(run.id, agent)
    assert a.runs.replay(run.id, agent).same
    a.runs.judge(run.id, "good")
    found = a.training.export("kto", out=tmp_path / "there.jsonl")
    here.training.export("kto", out=tmp_path / "here.jsonl", record=False)
    assert (tmp_path / "there.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()
    assert here.show(found.event).fields["action"] == "export.training"
    assert a.local_copy().fingerprint() == here.fingerprint()


@pytest.mark.parametrize("place", ["after start", "after lookup", "inside pay", "after pay", "after write"])
def test_a_killed_run_is_resumed_through_the_server(
    start: Start, keyring: Keyring, engine: SqliteEngine, tmp_path: Path, place: str
) -> None:
    """Kill -9 of an agent: what the server acknowledged answers, the run ends, and a `once` tool has run once."""
    key = keyring.create("t", "loan-officer", ["*"])[1]
    address, effects = f"http://127.0.0.1:{start(keyring).port}", tmp_path / "effects"
    effects.touch()
    words = [sys.executable, "-m", "tests.runs.dying", address, str(effects), place]
    env = {**os.environ, "WOODRAT_TOKEN": key}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == -9, done.stderr
    run, before = done.stdout.strip(), effects.read_text().split()
    here = Ledger(engine, tenant="t", agent="loan-officer", clock=SystemClock(), policies=registry(()))
    with woodrat.open(address, key=key) as ledger:
        assert ledger.runs.show(run).end is None
        if place == "inside pay":
            position = ledger.position
            with pytest.raises(woodrat.Refused, match=r"(?s)tool pay: it began.*stays interrupted"):
                ledger.runs.resume(run, dying.agent_with(effects))
            with pytest.raises(woodrat.Refused, match="needs cargo"):
                ledger.runs.resume(run, lambda cargo, weight: None, on_unknown="retry")
            assert (ledger.position, ledger.runs.show(run).end) == (position, None)
        found = ledger.runs.resume(run, dying.agent_with(effects), on_unknown=lambda name, args: "paid 100")
        assert isinstance(found, woodrat.Resumed)
        assert (found.run, found.status, found.answer) == (run, "done", "rejected, paid 100")
        assert found.unused == 0
        assert found.from_log > 0 or place == "after start"
        now = effects.read_text().split()
        assert (now.count("pay"), now.count("lookup")) == (1, 1)
        assert now[: len(before)] == before
        record = here.runs.show(run)
        assert (record.status, record.problems) == ("done", ())
        assert (len(record.decisions), len(record.reads), len(record.writes)) == (1, 1, 1)
        assert len(list(here.observations("loan/42"))) == 2
        with pytest.raises(woodrat.Refused, match=r"it has ended \(done\)"):
            ledger.runs.resume(run, dying.agent_with(effects))


def test_of_two_who_resume_a_run_one_is_refused(agents: tuple[Any, Any, Ledger], monkeypatch: Any) -> None:
    """Who knows less of a run than the log holds does not resume it; another agent never does."""
    a, b, _ = agents
    run = a.run("Check?").start()
    run.note("begun")
    known = a.runs.show(run.id)
    carried, _ = carried_on(a.run_log(), run.id, lambda run: None)
    monkeypatch.setattr("woodrat.api.remote.RemoteRuns.show", lambda *_, **__: known)
    with pytest.raises(woodrat.Refused, match="it was continued since") as refusal:
        a.runs.resume(run.id, lambda run: "twice")
    assert "Nothing was resumed" in str(refusal.value)
    monkeypatch.undo()
    with carried:
        carried.note("begun")
        carried.answer("once")
    assert a.runs.show(run.id).answer == "once"
    assert [note.text for note in a.runs.show(run.id).notes] == ["begun", "The run was resumed."]
    other = a.run("Check?").start()
    with pytest.raises(woodrat.Forbidden, match="belongs to agent 'a'"):
        b.runs.resume(other.id, lambda run: None)
    for given, told in ((("run_none", print), "run_none"), ((7, print), "expected a run's id")):
        with pytest.raises((woodrat.NotFound, woodrat.Refused), match=told):
            a.runs.resume(*given)
    with pytest.raises(woodrat.Refused, match="on_unknown"):
        a.runs.resume(other.id, print, on_unknown="maybe")


def test_a_run_is_forked_through_the_server(agents: tuple[Any, Any, Ledger]) -> None:
    """The agent's code runs here, answered from the recording to the edit; the fork is recorded at the server."""
    a, b, here = agents
    calls: list[Any] = []

    def bureau() -> Any:
        calls.append("bureau")
        return {"score": 640}

    def agent(run: Any) -> Any:
        run.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"})
        city = run.show("contact/Ana Rivera").fields["city"]
        score = run.tool("bureau", bureau).result["score"]
        run.model("small-1", lambda: calls.append(score))
        chosen = run.decided("plan", f"{city} {score}", because="so", on=[run.show("contact/Ana Rivera")]).chosen
        run.store({"entity_type": "contact", "name": "Ana Rivera", "score": score})
        return chosen

    with a.run("Check?", subject="contact/Ana Rivera") as run:
        run.answer(agent(run))
    (made,) = a.runs.show(run.id).decisions
    assert made.by(str) == "by model small-1 in step 4"
    calls.clear()
    for ledger in (a, here, b):
        found = ledger.runs.fork(run.id, agent, at=3, set={"result.score": 580})
        assert (found.status, found.answer, found.stopped) == ("done", "Barcelona 580", None)
        record = here.runs.show(found.run)
        assert record.forked_from is not None
        assert (record.forked_from["run"], record.agent) == (run.id, "b" if ledger is b else "a")
        assert [write.fields for write in record.writes] == [{"name": "Ana Rivera", "score": 580}]
        assert a.runs.diff(run.id, found.run).sentence.startswith("The edit is the cause: in the second run")
    assert calls == [580, 580, 580]
    with pytest.raises(woodrat.Refused, match="has no step 30"):
        a.runs.fork(run.id, agent, at=30, set={"result.score": 580})


def test_runs_inside_are_resumed_too(agents: tuple[Any, Any, Ledger], monkeypatch: Any) -> None:
    """What a run started inside another had done answers as well, and an ended one is not begun again."""
    a, _, here = agents
    done: list[str] = []

    def act(what: str) -> str:
        done.append(what)
        return what[0]

    def agent(run: Any) -> str:
        with a.run("Inner one?") as inner:
            first = inner.tool("one", act, "1st").result
            inner.answer(first)
        with a.run("Inner two?") as inner:
            second = inner.tool("two", act, "2nd").result
            if run.recording is None:
                raise KeyboardInterrupt
            inner.answer(second)
        return f"{first}{second}"

    outer = a.run("Outer?").start()
    finish = type(outer).finish
    with monkeypatch.context() as patch, outer.current():
        # As in a process that is killed: nothing is ended on the way out.
        patch.setattr(type(outer), "finish", lambda run, error: error or finish(run, error))
        with pytest.raises(KeyboardInterrupt):
            agent(outer)
    assert sorted((run.query, run.ended_at is not None) for run in a.runs.list().items) == [
        ("Inner one?", True),
        ("Inner two?", False),
        ("Outer?", False),
    ]
    found = a.runs.resume(outer.id, agent)
    assert (found.answer, found.unused, done) == ("12", 0, ["1st", "2nd"])
    assert sorted(run.status for run in here.runs.list().items) == ["done"] * 3


def test_readings_and_evaluations(agents: tuple[Any, Any, Ledger]) -> None:
    """A source is read through the server as a block, how it ended is on record, and a run is evaluated."""
    a, b, here = agents
    source = a.sources.add(b"Payment terms: Net-30.", name="contract.txt")
    with a.interpretations.start(source, model="small-1", prompt="terms?") as reading:
        reading.usage = {"input": 3}
        reading.store({"entity_type": "contract", "name": "kline", "payment_terms": "Net-30"})
    with pytest.raises(ZeroDivisionError), a.interpretations.start(source):
        raise ZeroDivisionError("no")
    first, second = here.interpretations.list()
    assert (first.status, first.model, first.usage, first.agent) == ("done", "small-1", {"input": 3}, "a")
    assert (second.status, second.error) == ("error", "ZeroDivisionError: no")
    assert a.interpretations.diff(first.id, second.id) == here.interpretations.diff(first.id, second.id)
    said = here.observations("contract/kline").items[0].observation
    assert said.optional["interpretation"] == first.id
    with pytest.raises(woodrat.NotFound):
        b.interpretations.continue_(first.id)
    with pytest.raises(woodrat.NotFound):
        a.interpretations.begin("src_" + "a" * 26)
    a.tag("good")
    run = a.runs.import_(
        {"query": "Terms?", "steps": [{"store": {"entity_type": "contract", "name": "kline", "x": 1}}]}
    )[0]
    report = a.runs.evaluate(run, against="@good")
    assert a.show(report.entities[0]).fields["verdict"] == "failed"


def test_runs_and_judgements_are_recorded_once(agents: tuple[Any, Any, Ledger]) -> None:
    """A document, entries and a judgement that are sent again with their key are on record once."""
    a, _, here = agents
    a.store({"entity_type": "loan", "id": "42", "creditScore": 580})
    rules = [{"chosen": "rejected", "when": {"creditScore": {"lt": 600}}}]
    steps = [
        {"read": {"verb": "search", "query": "42"}},
        {"decide": {"stage": "risk", "facts": "loan/42", "rules": rules}},
        {"change": {"verb": "correct", "ref": "loan/42", "fields": {"status": "rejected"}}},
    ]
    told = {"query": "Approve #42?", "subject": "loan/42", "steps": steps, "answer": "no"}
    ids = {a.runs.import_([told, told], idempotency_key="monday") for _ in range(3)}
    assert len(ids) == 1
    runs = ids.pop()
    assert len(set(runs)) == 2
    assert all(len(here.runs.show(run).steps) == 3 for run in runs)
    assert [here.runs.show(run).answer for run in runs] == ["no", "no"]
    entries = [{"kind": "run.started", "query": "?"}, {"kind": "run.ended", "status": "done"}]
    assert len({a.runs.import_(entries, idempotency_key="tuesday") for _ in range(2)}) == 1
    reports = [a.runs.judge(runs[0], "good", idempotency_key="fine") for _ in range(2)]
    assert [report.repeated for report in reports] == [False, True]
    assert len(here.runs.show(runs[0]).judgements) == 1
    with pytest.raises(woodrat.Refused, match="another request"):
        a.runs.judge(runs[0], "bad", idempotency_key="fine")


def test_a_ledger_is_cared_for_from_afar(start: Start, tmp_path: Any) -> None:
    """Checkpoints, proofs, capsules, verifying, rebuilding and erasing go through a server that has keys."""
    woodrat.init(tmp_path / "keys")
    server = start(proofs=str(tmp_path / "keys"))
    with woodrat.open(f"http://127.0.0.1:{server.port}") as ledger:
        assert (ledger.tenant, ledger.agent, ledger.as_agent("http")) == ("default", "http", ledger)
        with pytest.raises(woodrat.Refused, match="the key belongs"):
            ledger.as_agent("other")
        said = ledger.store(ANA).observations[0]
        old = ledger.proofs.checkpoint()
        ledger.store({"entity_type": "contact", "name": "Bo"})
        assert ledger.proofs.prove(said).entry.kind == "observation"
        assert ledger.proofs.prove_consistency(old.note).to_json()
        assert ledger.proofs.checkpoints()[-1].size > old.checkpoint.size
        assert ledger.proofs.capsule("contact/Ana Rivera#city").to_bytes().startswith(b"{")
        assert ledger.verify(deep=True, checkpoints=[old.note]).sound
        assert ledger.prove_order(shuffles=3).holds
        assert ledger.rebuild().repaired == ()
        assert ledger.reindex().to_json()
        assert ledger.reduce("contact/Bo", exists=True).members[0].entity.key == "Bo"
        would = ledger.erase("contact/Ana Rivera", reason="asked to", dry_run=True)
        assert (would.dry_run, ledger.show("contact/Ana Rivera").fields["city"]) == (True, "Barcelona")
        certificate = ledger.erase("contact/Ana Rivera", reason="asked to")
        assert isinstance(certificate, woodrat.Certificate)
        assert certificate.agent == "http"
        assert ledger.finish_erasure().purged
        with pytest.raises(woodrat.NotFound):
            ledger.show("contact/Ana Rivera")
        assert ledger.erase_again() == ()
        assert ledger.verify().sound
        bodies = [("observation", item.observation.body) for item in ledger.observations("contact/Bo")]
        assert ledger.admit(bodies).known


def test_agents_may_be_awaited(start: Start) -> None:
    """Behind `aopen` runs, moments and replays are awaited as on a ledger that is here."""
    server = start()

    async def work() -> Any:
        async with await woodrat.aopen(f"http://127.0.0.1:{server.port}") as ledger:
            await ledger.store({"entity_type": "loan", "id": "42", "creditScore": 580})
            async with ledger.run("Approve #42?", subject="loan/42") as run:
                loan = await run.show("loan/42")
                woodrat.decide("risk", loan, [{"chosen": "rejected", "when": {"creditScore": {"lt": 600}}}])
                run.answer("no")
            past = await ledger.at(0)
            assert (await past.show("loan/42")).fields["creditScore"] == 580

            async def agent(run: Any) -> None:
                loan = await run.show("loan/42")
                await run.decide("risk", loan, [{"chosen": "rejected", "when": {"creditScore": {"lt": 600}}}])
                run.answer("no")

            assert (await ledger.runs.replay(run.id, agent)).same
            begun = ledger.run("Approve #42?", subject="loan/42")
            await asyncio.to_thread(begun._run.start)
            resumed = await ledger.runs.resume(begun.id, agent)
            assert (resumed.status, resumed.answer) == ("done", "no")
            return await ledger.runs.show(run.id)

    record = asyncio.run(work())
    assert (record.status, record.decisions[0].chosen) == ("done", "rejected")


def test_commands_reach_a_server(
    start: Start, keyring: Keyring, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an address as database commands go to the server as the key's agent; what needs the file says so."""
    _, key = keyring.create("lending", "crm", ["*"])
    server = start(keyring)
    monkeypatch.setenv("WOODRAT_DB", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("WOODRAT_TOKEN", key)

    def woodrat(*words: str) -> tuple[int, Any]:
        code = main([*words, "-o", "json"])
        printed = capsys.readouterr()
        return code, json.loads(printed.out if code in (0, 1) else printed.err)

    assert woodrat("store", f"--json={json.dumps(ANA)}")[1]["entities"] == ["contact/Ana Rivera"]
    code, shown = woodrat("show", "contact/Ana Rivera", "--as", "crm", "--tenant", "lending")
    assert (code, shown["blame"]["city"]["agent"]) == (0, "crm")
    for words in (
        ("verify",),
        ("fingerprint",),
        ("prove-order", "--shuffles", "2"),
        ("schemas", "infer", "contact"),
        ("bisect", "contact/Ana Rivera", "--where", "city=Barcelona"),
        ("sources", "list"),
    ):
        assert woodrat(*words)[0] in (0, 1), words
    code, error = woodrat("show", "contact/Ana Rivera", "--as", "web", "--tenant", "sales")
    assert (code, [fault["path"] for fault in error["details"]["faults"]]) == (2, ["--tenant", "--as"])
    for words in (("keys", "list"), ("backup", "create", "x.db")):
        code, error = woodrat(*words)
        assert (code, error["code"]) == (2, "refused"), words
    monkeypatch.setenv("WOODRAT_TOKEN", "wrat_a_b")
    assert woodrat("show", "contact/Ana Rivera")[0] == 7


def test_a_missing_fact_is_as_loud_through_a_server(agents: tuple[Any, Any, Ledger]) -> None:
    """A run that is recorded elsewhere refuses, skips and tells what its rules lacked as one that is recorded here."""
    a, _, here = agents
    a.store({"entity_type": "loan", "id": "42", "name": "Ana"})
    rules = [woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit")]
    with a.run("Approve #42?") as run:
        loan = run.show("loan/42")
        with pytest.raises(woodrat.Refused, match="rule Marginal credit is unknown: there is no fact creditScore"):
            run.decide("risk", loan, rules, default="approved")
        with pytest.raises(woodrat.Refused, match="there is no fact creditScore"):
            woodrat.select("risk", loan, rules, default="approved")
        assert woodrat.decide("risk", loan, rules, default="approved", on_missing="skip").chosen == "approved"
    record = here.runs.show(run.id)
    assert record.noted_problems == record.problems == a.runs.show(run.id).problems
    assert len(record.problems) == 2
    assert [note.data["event"] for note in record.notes if isinstance(note.data, dict)] == ["undecided", "undecided"]
    (decision,) = record.decisions
    assert (decision.on_missing, decision.rules[0].unknown) == ("skip", True)
    assert a.runs.show(run.id) == record


def test_reads_inside_a_run_are_reads_of_it(agents: tuple[Any, Any, Ledger]) -> None:
    """`show`, `search` and `query` of a ledger behind a server are recorded in the run around them."""
    remote, _, here = agents
    remote.store({"entity_type": "loan", "id": "42", "score": 580})
    with remote.run("What is the score?") as run:
        assert remote.show("loan/42").fields["score"] == 580
        assert len(remote.search("42", entity_type="loan").items) == 1
        assert len(remote.query(entity_type="loan").items) == 1
        assert remote.at(run.basis).show("loan/42").fields["score"] == 580
    assert [read.within for read in here.runs.show(run.id).reads] == [None, "search", "query", None]
    assert remote.show("loan/42").fields["score"] == 580
    assert len(here.runs.show(run.id).reads) == 4
