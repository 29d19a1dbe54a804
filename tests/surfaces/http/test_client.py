"""The library's verbs on a ledger behind a server: the same stories, the same records, the same errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.surfaces.http.server import Server

import woodrat
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.ledger import Ledger
from woodrat.ledger.policies import registry
from woodrat.ledger.remote import RemoteLedger
from woodrat.ledger.transport import Transport
from woodrat.surfaces.access import Keyring
from woodrat.testing.contract import answers_about, tell

Start = Callable[..., Server]
ANA = {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}


class Here:
    """A ledger behind a server, with the two verbs of the story that only a ledger here has."""

    def __init__(self, remote: Any, here: Ledger) -> None:
        self._remote, self._here = remote, here

    def __getattr__(self, name: str) -> Any:
        return getattr(self._here if name in ("interpretation", "admit") else self._remote, name)


@pytest.fixture
def agents(start: Start, keyring: Keyring, engine: SqliteEngine) -> tuple[Any, Any, Ledger]:
    """The ledgers of two agents behind a server, and the same ledger here."""
    keys = [keyring.create("t", agent)[1] for agent in "ab"]
    server = start(keyring)
    remote = [woodrat.open(f"http://127.0.0.1:{server.port}", key=key) for key in keys]
    here = [Ledger(engine, tenant="t", agent=agent, clock=SystemClock(), policies=registry(())) for agent in "ab"]
    return Here(remote[0], here[0]), Here(remote[1], here[1]), here[0]


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
        "schemas": past.schemas(),
        "deliveries": past.deliveries(),
        "interpretations": past.interpretations(),
        "duplicates": past.duplicates(),
        "query": past.query(limit=5),
        "search": past.search("ana"),
        "entities": {str(ref): answers_about(past, ref) for ref in refs},
        "entries": past.entries(),
    }


def test_the_story_is_the_same_behind_a_server(agents: tuple[Any, Any, Ledger]) -> None:
    """Told through a server, the story of every verb leaves a ledger that says the same there and here, at any time."""
    a, b, here = agents
    reports = [report for report in tell(a, b) if report is not None]
    assert all(isinstance(report, woodrat.Report) for report in reports)
    assert said(a) == said(here)
    for moment in (0, 5, "@before", reports[20].position):
        assert said(a.at(moment)) == said(here.at(moment))
    assert a.at(effective="2025-06-02T00:00:00Z").show("contact/Ana Rivera") == here.at(
        effective="2025-06-02T00:00:00Z"
    ).show("contact/Ana Rivera")
    last = here.position
    assert a.diff(3, last) == here.diff(3, last)
    assert a.diff(3, "now", "thing/1") == here.diff(3, "now", "thing/1")
    assert a.diff_against(a.show("thing/2")) == ()
    assert a.content(here.deliveries()[0].id) == b"Ana Rivera, Tarragona\n"
    assert a.schema("thing") == here.schema("thing")
    assert a.infer("company") == here.infer("company")
    assert here.blame("contact/Ana Rivera", "city") == a.blame("contact/Ana Rivera", "city")
    assert {claim.agent for claim in a.blame("contact/Ana Rivera")["city"]} == {"a", "b"}


def test_runs_are_told_as_they_are_here(agents: tuple[Any, Any, Ledger]) -> None:
    """Records of runs, reasons, recall, lineage, impact, stale decisions and what-if say what they say here."""
    a, _, here = agents
    a.store({"entity_type": "loan", "id": "42", "creditScore": 580})
    rules = [{"chosen": "rejected", "when": {"creditScore": {"lt": 600}}}]
    steps = [{"decide": {"stage": "risk", "facts": "loan/42", "rules": rules, "default": "approved"}}]
    runs = [
        a.record({"query": "Approve #42?", "subject": "loan/42", "steps": steps, "answer": "no"})[0] for _ in range(2)
    ]
    a.judge(runs[0], "good", score=0.5)
    said = a.correct("loan/42", {"creditScore": 700}).observations[0]
    assert a.run_record(runs[0]) == here.run_record(runs[0])
    assert [one.runId for one in a.runs(subject="loan/42").items] == [one.id for one in here.runs().items]
    assert a.why("loan/42").items == here.why("loan/42").items
    assert a.recall("Approve #42?") == here.recall("Approve #42?")
    assert not a.recall("something else entirely?")
    assert a.lineage(f"{runs[0]}#risk") == here.lineage(f"{runs[0]}#risk")
    assert a.impact(said) == here.impact(said)
    assert a.stale().items == here.stale().items
    assert len(a.stale().items) == 2
    assert a.runs_diff(*runs) == here.runs_diff(*runs)
    assert a.runs_group(runs) == here.runs_group(runs)
    assert a.what_if(runs[0], set={"loan/42#creditScore": 650}) == here.what_if(
        runs[0], set={"loan/42#creditScore": 650}
    )
    flip: dict[str, Any] = {"what": "loan/42", "when": {"creditScore": {"gte": 600}}}
    assert a.bisect(**flip) == here.bisect(**flip)
    assert a.bisect(**flip)


@pytest.mark.parametrize(
    "call",
    [
        lambda ledger: ledger.show("contact/Nobody"),
        lambda ledger: ledger.show("no reference"),
        lambda ledger: ledger.store([{"entity_type": "contact"}, {"name": "x"}]),
        lambda ledger: ledger.store({**ANA, "x": float("nan")}),
        lambda ledger: ledger.store(ANA, observed_at="yesterday"),
        lambda ledger: ledger.store(ANA, if_version=99),
        lambda ledger: ledger.correct("contact/Nobody", {"city": "Vic"}),
        lambda ledger: ledger.retract("obs_none"),
        lambda ledger: ledger.register({"title": "x", "properties": {"a": {"type": "fly"}}}),
        lambda ledger: ledger.at("tomorrow"),
        lambda ledger: ledger.at(effective="soon"),
        lambda ledger: ledger.search("ana", limit=0),
        lambda ledger: ledger.query(cursor="broken"),
        lambda ledger: ledger.related("contact/Ana Rivera", depth=99),
        lambda ledger: ledger.elements("contact/Ana Rivera", "name"),
        lambda ledger: ledger.content("src_none"),
        lambda ledger: ledger.run_record("run_none"),
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
    assert len(here.observations()) == 1


def test_a_server_that_is_not_there_is_unavailable() -> None:
    """After a few tries the error says so, and that sending it again is safe."""
    with pytest.raises(woodrat.Unavailable, match="no answer"), fast():
        woodrat.open("http://127.0.0.1:1").store(ANA)


@contextmanager
def fast() -> Iterator[None]:
    """Wait no longer than needed between tries."""
    from woodrat.ledger import transport

    before = transport.WAIT_SECONDS_MAX
    transport.WAIT_SECONDS_MAX = 0.0  # type: ignore[misc]
    try:
        yield
    finally:
        transport.WAIT_SECONDS_MAX = before  # type: ignore[misc]


def test_a_wrong_key_and_wrong_arguments(start: Start, keyring: Keyring) -> None:
    """Without a key that opens something every call is forbidden; what a key says cannot be said besides."""
    keyring.create("t", "a")
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


def test_what_it_cannot_do_is_not_there(agents: tuple[Any, Any, Ledger]) -> None:
    """It is a ledger behind a server: verbs that need the caller's code are no attributes of it."""
    remote: Any = agents[0]._remote
    assert isinstance(remote, RemoteLedger)
    assert not hasattr(remote, "replay")


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
        assert run.select("flags", {"creditScore": 580}, rules).chosen == ("rejected",)
        assert run.tool("bureau", lambda number: {"score": number}, 580) == {"score": 580}
        with pytest.raises(ZeroDivisionError):
            run.tool("broken", lambda: 1 // 0)
        run.model("small-1", response="no", usage={"input": 3, "output": 1})
        run.note("checked", {"by": "rule"})
        run.store({"entity_type": "loan", "id": "42", "status": "rejected"})
        run.answer("Rejected.")
    record = here.run_record(run.id)
    assert (record.status, record.answer, record.agent) == ("done", "Rejected.", "a")
    assert [decision.stage for decision in record.decisions] == ["classify-risk", "flags"]
    assert record.decisions[0].entities == ("loan/42",)
    assert [(call.name, call.errored) for call in record.tool_calls] == [("bureau", False), ("broken", True)]
    assert len(record.models) == len(record.writes) == 1
    assert [note.text for note in record.notes] == ["checked"]
    with pytest.raises(woodrat.Refused, match="code"):
        run.decide("s", {"x": 1}, [woodrat.Rule("y", lambda facts: True)])
    with pytest.raises(RuntimeError), a.run("Fail?") as failed:
        raise RuntimeError("no")
    assert (here.run_record(failed.id).status, failed.ended) == ("error", True)


def test_it_can_be_awaited(start: Start) -> None:
    """`aopen` gives the same verbs as coroutines."""
    server = start()

    async def work() -> Any:
        ledger = await woodrat.aopen(f"http://127.0.0.1:{server.port}")
        await ledger.store(ANA)
        return await ledger.show("contact/Ana Rivera")

    assert asyncio.run(work()).fields["city"] == "Barcelona"
