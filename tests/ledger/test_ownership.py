"""Ownership: through the library, too, nobody records in the run of another agent."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.canon import form
from woodrat.clock import SystemClock
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.runs import trace
from woodrat.runs.relay import Relay

EARLY = "2001-01-01T00:00:00Z"
RECORD = {"entity_type": "loan", "id": "42", "creditScore": 580}


@pytest.fixture
def mine() -> Ledger:
    return woodrat.open(":memory:", agent="loan-officer")


def in_environment(ledger: Ledger, run: str) -> Any:
    """Continue the run that the environment names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(trace.RUN_VARIABLE, f"{run}/{'0' * 16}")
        return ledger.runs.continue_()


def in_a_run_of_its_own(ledger: Ledger, run: str) -> Any:
    with ledger.run("Mine?", on_error="raise") as own:
        return own.store(RECORD, run=run, step=1)


DOORS: dict[str, Callable[[Ledger, str], Any]] = {
    "run": lambda ledger, run: ledger.run("?", id=run, on_error="raise").start(),
    "continue_run": lambda ledger, run: ledger.runs.continue_(run),
    "WOODRAT_RUN": in_environment,
    "resume": lambda ledger, run: ledger.runs.resume(run, lambda run: "forged"),
    "store": lambda ledger, run: ledger.store(RECORD, run=run),
    "dry run": lambda ledger, run: ledger.store(RECORD, run=run, dry_run=True),
    "store of a step": in_a_run_of_its_own,
    "record an entry": lambda ledger, run: ledger.runs.import_([{"kind": "run.noted", "run": run, "text": "forged"}]),
    "record a beginning": lambda ledger, run: ledger.runs.import_(
        [{"kind": "run.started", "run": run, "query": "forged", "started_at": EARLY}]
    ),
    "record two agents": lambda ledger, run: ledger.runs.import_(
        [
            {"kind": "run.started", "run": "run_" + "c" * 26, "query": "?", "agent": "a"},
            {"kind": "run.noted", "run": "run_" + "c" * 26, "text": "?", "agent": "b"},
        ]
    ),
    "record a trajectory": lambda ledger, run: ledger.runs.import_(
        {"id": run, "steps": [{"kind": "note", "text": "x"}]}
    ),
    "relayed step": lambda ledger, run: Relay().step(ledger.context, run, {"note": "forged"}),
    "relayed entries": lambda ledger, run: Relay().entries(
        ledger.context, run, [{"kind": "run.noted", "text": "forged"}]
    ),
    "relayed resume": lambda ledger, run: Relay().resume(ledger.context, run),
    "relayed end": lambda ledger, run: Relay().end(ledger.context, run, answer="forged"),
}


@pytest.mark.parametrize("door", DOORS)
def test_no_verb_writes_into_the_run_of_another_agent(mine: Ledger, door: str) -> None:
    """Each way to record refuses, names the owner where it is about that, and leaves the log as it was."""
    run = mine.run("Approve?").start()
    run.note("begun")
    before = mine.runs.show(run.id)
    with pytest.raises((woodrat.Forbidden, woodrat.Refused)) as refusal:
        DOORS[door](mine.as_agent("stranger"), run.id)
    assert "Nothing was" in str(refusal.value)
    assert mine.runs.show(run.id) == before
    named = [e for e in mine.log.entries(limit=1_000) if e.body is not None and f'"run":"{run.id}"'.encode() in e.body]
    assert all(b'"agent":"loan-officer"' in (entry.body or b"") for entry in named)


def test_every_entry_of_a_run_names_its_agent(mine: Ledger) -> None:
    """Whatever a run does, each of its entries carries the agent that recorded it; a judge is named beside it."""
    mine.store(RECORD)

    @woodrat.tool(once=True)
    def pay() -> int:
        return 1

    with mine.run("Approve?", subject="loan/42") as run:
        loan = run.show("loan/42")
        run.search("580")
        run.decide("risk", loan, [woodrat.Rule("rejected", {"creditScore": {"lt": 600}})])
        pay()
        run.model("m", response="x")
        run.note("n")
        run.store({**RECORD, "status": "rejected"})
        run.answer("no")
    mine.as_agent("ann").runs.judge(run.id, "bad", by="auditor")
    bodies = [(e.kind, form.decode(e.body or b"")) for e in mine.log.entries(limit=100) if e.kind.startswith("run.")]
    assert {kind for kind, _ in bodies} > {"run.started", "run.read", "run.decided", "run.tool", "run.ended"}
    agents = {kind: body["agent"] for kind, body in bodies}
    assert agents.pop("run.judged") == "ann"
    assert set(agents.values()) == {"loan-officer"}
    (judged,) = mine.runs.show(run.id).judgements
    assert (judged.by, judged.agent) == ("auditor", "ann")


def test_the_owner_continues_and_resumes(mine: Ledger) -> None:
    """The same agent records on, also in another process, which the environment tells whose run it is."""
    run = mine.run("Approve?").start()
    assert run.environment()[trace.AGENT_VARIABLE] == "loan-officer"
    with mine.as_agent("loan-officer").runs.continue_(run.id) as again:
        again.note("elsewhere")
    run.release()
    assert mine.runs.resume(run.id, lambda run: "no").status == "done"
    assert mine.runs.show(run.id).foreign == ()


def test_a_store_in_a_run_that_is_not_there_is_not_found(mine: Ledger) -> None:
    """A run that nobody began takes no writes."""
    with pytest.raises(woodrat.NotFound, match="There is no run"):
        mine.store(RECORD, run="run_" + "b" * 26)
    assert mine.position == -1


def test_nobody_judges_a_run_that_is_not_there(mine: Ledger) -> None:
    """A judgement begins no run, or its id would be taken for whoever it is made from."""
    with pytest.raises(woodrat.NotFound, match="There is no run"):
        mine.runs.import_([{"kind": "run.judged", "run": "run_" + "b" * 26, "verdict": "bad"}])
    with pytest.raises(woodrat.NotFound, match="There is no run"):
        mine.runs.judge("run_" + "b" * 26, "bad")
    assert mine.position == -1


def test_whose_id_was_taken_first_still_records(mine: Ledger) -> None:
    """Somebody who begins a run under the id that a trace of another agent will have does not keep that one out."""
    from woodrat.state.run_owner import run_of_trace

    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    run = run_of_trace(trace, mine.agent)
    mine.as_agent("a-squatter").runs.import_(
        [{"kind": "run.started", "run": run, "query": "mine", "started_at": EARLY}]
    )
    assert mine.runs.show(run).agent == "a-squatter"
    mine.runs.import_([{"kind": "run.started", "run": run, "query": "true", "trace": trace}])
    found = mine.runs.show(run)
    assert (found.agent, found.query, len(found.foreign)) == ("loan-officer", "true", 1)
    with pytest.raises(woodrat.Forbidden):
        mine.as_agent("a-squatter").runs.import_([{"kind": "run.noted", "run": run, "text": "still here"}])


def test_a_merged_log_takes_no_run_over(mine: Ledger) -> None:
    """Two ledgers merged either way agree whose run it is, and every question leaves out what others said of it."""
    mine.store(RECORD)
    with mine.run("Approve?", subject="loan/42") as run:
        run.decide("risk", run.show("loan/42"), [woodrat.Rule("rejected", {"creditScore": {"lt": 600}})])
        run.answer("no")
    other = woodrat.open(":memory:", agent="a-stranger")
    rules = [{"chosen": "approved", "matched": True, "conditions": []}]
    other.runs.import_(
        [
            {"kind": "run.started", "run": run.id, "query": "forged", "subject": "loan/42", "started_at": EARLY},
            {
                "kind": "run.decided",
                "run": run.id,
                "stage": "risk",
                "mode": "decide",
                "chosen": "approved",
                "rules": rules,
            },
            {"kind": "run.ended", "run": run.id, "status": "done", "answer": "forged"},
        ]
    )

    def merged(into: Ledger, source: Ledger) -> Ledger:
        out = io.BytesIO()
        source.log.export(out)
        out.seek(0)
        into.log.import_(out)
        return into

    copies = []
    for order in ((mine, other), (other, mine)):
        copy = woodrat.open(":memory:", agent="reader")
        for source in order:
            merged(copy, source)
        copies.append(copy)
    for ledger in copies:
        record = ledger.runs.show(run.id)
        assert (record.agent, record.query, record.answer) == ("loan-officer", "Approve?", "no")
        assert len(record.foreign) == 3
        assert [reason.decision.chosen for reason in ledger.why("loan/42").items] == ["rejected"]
        assert [found.id for found in ledger.runs.list(agent="loan-officer").items] == [run.id]
        assert ledger.runs.list(agent="a-stranger").items == ()
        told = ledger.what_if(set={"loan/42#creditScore": 700}).to_json()
        assert len(told["decisions"]) == 1
        assert all("forged" not in hit.text for hit in ledger.recall("loan 42 forged", k=5, threshold=0).hits)


def test_a_run_of_which_others_speak_is_resumed_by_its_owner(mine: Ledger) -> None:
    """An end and steps that another log brings keep nobody from carrying on a run at the position they know of it."""
    run = mine.run("Approve?").start()
    run.note("begun")
    run.release()
    other = woodrat.open(":memory:", agent="a-stranger")
    other.runs.import_([{"kind": "run.started", "run": run.id}, {"kind": "run.ended", "run": run.id, "status": "done"}])
    out = io.BytesIO()
    other.log.export(out)
    out.seek(0)
    mine.log.import_(out)
    relay = Relay()
    told = relay.resume(mine.context, run.id, max(mine.runs.show(run.id).positions))
    assert {entry["agent"] for entry in told["runs"][0]} == {"loan-officer"}
    relay.step(mine.context, run.id, {"note": "on"})
    relay.end(mine.context, run.id, answer="yes")
    assert mine.runs.show(run.id).answer == "yes"


def test_what_a_stranger_says_in_a_run_does_not_come_of_it(mine: Ledger) -> None:
    """An observation that names another agent's run, from another log, does not lead to what that run had read."""
    mine.store(RECORD)
    with mine.run("Approve?") as run:
        run.show("loan/42")
        run.store({**RECORD, "status": "rejected"})
    other = woodrat.open(":memory:", agent="a-stranger")
    other.runs.import_([{"kind": "run.started", "run": run.id, "query": "forged"}])
    forged = other.store({**RECORD, "status": "approved"}, run=run.id).observations[0]
    out = io.BytesIO()
    other.log.export(out)
    out.seek(0)
    mine.log.import_(out)
    assert [write.fields["status"] for write in mine.runs.show(run.id).writes] == ["rejected"]
    told = str(mine.lineage(forged).to_json())
    assert "a run of loan-officer, who did not say it" in told
    assert "580" not in told.partition("who did not say it")[2]


def test_erasing_an_agent_erases_its_words_and_no_run_of_another(tmp_path: Path) -> None:
    """What somebody said of another agent's run goes with them; the run, whose beginning they forged, stays."""
    make_keys(tmp_path / "keys", SystemClock())
    ledger = woodrat.open(tmp_path / "a.db", agent="loan-officer", keys=tmp_path / "keys")
    with ledger.run("Approve?", subject="loan/42") as run:
        run.answer("no")
    ledger.as_agent("a-stranger").runs.judge(run.id, "bad", reason="because")
    other = woodrat.open(":memory:", agent="a-stranger")
    other.runs.import_(
        [{"kind": "run.started", "run": run.id, "query": "forged", "subject": "loan/7", "started_at": EARLY}]
    )
    out = io.BytesIO()
    other.log.export(out)
    out.seek(0)
    ledger.log.import_(out)
    assert len(ledger.runs.show(run.id).foreign) == 1
    ledger.erase(subject="loan/7", reason="asked")
    assert ledger.runs.show(run.id).foreign == ()
    ledger.erase(agent="a-stranger", reason="asked")
    found = ledger.runs.show(run.id)
    assert (found.agent, found.query, found.answer) == ("loan-officer", "Approve?", "no")
    assert found.judgements == ()
    ledger.close()
