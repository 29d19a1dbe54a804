"""Replay, resume and fork of runs that were recorded through a server: the same as here, and nothing goes out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.replay import patterns
from tests.server.server import Server

import woodrat
from woodrat.api.aio import AsyncLedger
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.keys import Keyring

Start = Callable[..., Server]


@pytest.fixture
def served(start: Start, keyring: Keyring, engine: SqliteEngine) -> Iterator[tuple[Any, Ledger]]:
    """A ledger behind a server, and the same ledger here."""
    key = keyring.create("t", "loan-officer", ["*"])[1]
    server = start(keyring)
    with woodrat.open(f"http://127.0.0.1:{server.port}", key=key) as remote:
        yield (
            remote,
            Ledger(engine, tenant="t", agent="loan-officer", clock=SystemClock(), policies=registry(())),
        )


@pytest.mark.parametrize("name", patterns.NAMES)
def test_a_pattern_that_is_recorded_through_a_server_replays_as_the_same(served: tuple[Any, Ledger], name: str) -> None:
    """Every way to make a run, on a ledger behind a server: the same, nothing is called and nothing is sent."""
    remote, here = served
    patterns.prepare(remote)
    known = {record.id for record in remote.runs.list(limit=100)}
    pattern = patterns.patterns(remote)[name]
    pattern.call()
    made = [run for run in here.runs.list(limit=100) if run.id not in known and run.parent is None]
    patterns.change(remote)
    position, called = here.position, list(patterns.CALLS)
    if pattern.is_async:
        found = asyncio.run(AsyncLedger(remote).runs.replay(made[-1].id, pattern.agent))
    else:
        found = remote.runs.replay(made[-1].id, pattern.agent)
    assert found.same, str(found.runs[0])
    assert found.runs[0].steps > 0
    assert called == patterns.CALLS
    assert here.position == position


def test_a_recall_inside_a_run_on_a_server_is_a_read_of_it(served: tuple[Any, Ledger]) -> None:
    """It is recorded with its position and what it found; the runs that ask are not among the answers."""
    remote, here = served
    patterns.prepare(remote)
    (known,) = remote.runs.list().items
    with remote.run(patterns.QUESTION, subject="loan/42") as outer:
        with remote.run(patterns.QUESTION, subject="loan/42") as run:
            found = run.recall(patterns.QUESTION, k=3)
            remote.at(1).recall("Why was application #50 rejected?")
            run.answer(found.text)
        outer.answer("asked")
    reads = here.runs.show(run.id).reads
    assert [hit.run for hit in found.hits] == [known.id]
    assert not {near.ref for near in found.rejected} & {run.id, outer.id}
    assert found.text == here.recall(patterns.QUESTION).text
    assert [(read.as_of, [hit.run for hit in read.recalled]) for read in reads] == [
        (found.position, [known.id]),
        (1, []),
    ]


def test_a_resumed_run_on_a_server_recalls_what_it_recalled(served: tuple[Any, Ledger]) -> None:
    """The recording answers, though the present would say something else, and a decision names where it comes from."""
    remote, here = served
    patterns.prepare(remote)
    texts: list[str] = []

    def agent(run: Any) -> str:
        found = remote.recall(patterns.QUESTION)
        texts.append(found.text)
        run.decide("again", {"risk": found.hits[0].record.decisions[0].chosen}, [], default="none")
        return str(found.text)

    run = remote.run("What do we know?").start()
    with run.current():
        texts.append(remote.recall(patterns.QUESTION).text)
    run.release()
    patterns.change(remote)
    assert remote.recall(patterns.QUESTION, k=2).text != texts[0]
    resumed = remote.runs.resume(run.id, agent)
    assert texts == [resumed.answer, resumed.answer]
    assert len(here.runs.show(run.id).reads) == 1


def test_a_resumed_run_on_a_server_has_the_text_of_facts_notes_and_documents(served: tuple[Any, Ledger]) -> None:
    """What they said then is told again, though the present says something else."""
    remote, here = served
    remote.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Girona"})
    remote.remember("Ana Rivera prefers calls before noon")
    remote.sources.add(b"The fire drill takes place every first Tuesday at noon.", name="handbook.md")
    asked = ("Where does Ana Rivera live?", "Does Ana Rivera prefer calls before noon?", "When is the fire drill?")

    def recalled() -> list[Any]:
        return [[(hit.kind, hit.text, hit.agent, hit.score) for hit in remote.recall(each, k=2).hits] for each in asked]

    run = remote.run("What do we know?").start()
    with run.current():
        then = recalled()
    run.release()
    assert [hits[0][0] for hits in then] == ["fact", "note", "document"]
    remote.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Lugo"})
    again: list[Any] = []

    def agent(run: Any) -> str:
        again.extend(recalled())
        return "done"

    remote.runs.resume(run.id, agent)
    assert again == then
    assert len(here.runs.show(run.id).reads) == 3


WRITES: dict[str, Callable[[Any], object]] = {
    "store": lambda ledger: ledger.store({"entity_type": "loan", "id": "9", "score": 1}),
    "correct": lambda ledger: ledger.correct("loan/42", {"creditScore": 1}),
    "source": lambda ledger: ledger.sources.add(b"text", name="text"),
    "judge": lambda ledger: ledger.runs.judge(ledger.runs.list().items[-1].id, "good"),
    "import": lambda ledger: ledger.runs.import_({"query": "?", "steps": [], "answer": "no"}),
    "tag": lambda ledger: ledger.tag("now"),
    "admit": lambda ledger: ledger.admit([]),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("is_local", [False, True])
def test_a_write_through_a_server_does_not_go_out_in_a_replay(
    served: tuple[Any, Ledger], name: str, is_local: bool
) -> None:
    """The agent is stopped there, wherever its run was recorded, and the server hears nothing of it."""
    remote, here = served
    patterns.prepare(remote)

    def agent(run: Any) -> str:
        run.tool("look", lambda: 1)
        WRITES[name](remote)
        return "done"

    home = woodrat.open(":memory:") if is_local else remote
    with home.run("Write past it?") as run:
        run.answer(agent(run))
    position = here.position
    found = home.runs.replay(run.id, agent).runs[0].divergence
    assert found is not None
    assert found.kind == "not_kept"
    assert "past the run, to a server" in str(found)
    assert here.position == position


def test_what_is_written_to_a_server_after_the_run_is_no_part_of_it(served: tuple[Any, Ledger]) -> None:
    """A function that begins its run itself and writes afterwards replays as the same, and nothing goes out."""
    remote, here = served

    def agent(number: int) -> None:
        with remote.run("Go?", inputs={"number": number}) as run:
            run.answer(number)
        remote.store({"entity_type": "memo", "id": str(number), "text": "after"})

    agent(7)
    position = here.position
    (run,) = remote.runs.list().items
    assert remote.runs.replay(run.id, agent).same
    assert here.position == position


def test_a_fork_on_a_server_recalls_what_was_recalled(served: tuple[Any, Ledger]) -> None:
    """A recall before the edit is answered from the recording, and is a read of the fork too."""
    remote, here = served
    patterns.prepare(remote)

    def agent(run: Any) -> str:
        known = remote.recall(patterns.QUESTION).text
        return f"{known} {run.tool('look', lambda: 1).result}"

    with remote.run("What do we know?") as run:
        run.answer(agent(run))
    patterns.change(remote)
    forked = remote.runs.fork(run.id, agent, at=2, set={"result": 5})
    assert forked.answer == f"{run.answered[:-1]}5"
    reads = [here.runs.show(id).reads for id in (run.id, forked.run)]
    assert [hit.run for hit in reads[1][0].recalled] == [hit.run for hit in reads[0][0].recalled]
    assert reads[1][0].as_of == reads[0][0].as_of
