"""Runs told step by step: kept at hand as far as there is room, and continued from the log beyond that."""

from __future__ import annotations

from pathlib import Path

import pytest

from woodrat import Forbidden, Ledger, NotFound, Refused
from woodrat.canon import moment
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.runs.recorder import current
from woodrat.runs.recorder.log import LocalLog
from woodrat.runs.recorder.start import begin
from woodrat.runs.relay import QUIET_MICROS, Relay
from woodrat.testing.clock import START
from woodrat.testing.ledgers import ledger_on

RULES = [{"chosen": "rejected", "when": {"score": {"lt": 600}}}]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return ledger_on(InMemoryEngine())


def test_runs_beyond_the_room_are_continued_from_the_log(ledger: Ledger) -> None:
    """With room for one, runs that take turns lose no step, and evidence still leads to what was read before."""
    ledger.store({"entity_type": "loan", "id": "1", "score": 580})
    relay = Relay(runs_max=1)
    runs = [str(relay.start(ledger.context, {"query": f"Approve {n}?"})["run"]) for n in range(2)]
    for run in runs:
        relay.step(ledger.context, run, {"read": "loan/1"})
    for run in runs:
        verdict = relay.step(
            ledger.context, run, {"decide": {"stage": "risk", "facts": {"score": 580}, "rules": RULES}}
        )
        assert verdict["verdict"].chosen == "rejected"
    assert sum(current.is_recorded(run) for run in runs) == 1
    for run in runs:
        relay.end(ledger.context, run, answer="no")
        record = ledger.runs.show(run)
        assert (record.status, record.answer) == ("done", "no")
        assert [decision.entities for decision in record.decisions] == [("loan/1",)]
    assert not any(current.is_recorded(run) for run in runs)


def test_a_run_that_was_forgotten_goes_on(ledger: Ledger) -> None:
    """What is no longer at hand is continued; what the log does not hold is not found."""
    relay = Relay()
    run = str(relay.start(ledger.context, {"query": "?"})["run"])
    relay.forget(ledger.tenant, run)
    relay.forget(ledger.tenant, run)
    relay.step(ledger.context, run, {"note": "x"})
    assert "x" in [note.text for note in ledger.runs.show(run).notes]
    with pytest.raises(NotFound):
        relay.step(ledger.context, "run_none", {"note": "x"})
    with pytest.raises(Forbidden):
        relay.step(ledger.as_agent("other").context, run, {"note": "x"})


def test_what_nothing_is_heard_of_is_no_longer_running(ledger: Ledger) -> None:
    """A run whose teller is silent for long reads as interrupted; told on, it goes on. Others stay at hand."""
    relay = Relay()
    silent, told, sent = (str(relay.start(ledger.context, {"query": "?"})["run"]) for _ in range(3))
    heard = moment.to_micros(ledger.context.clock.now())
    relay.step(ledger.context, told, {"note": "x"})
    relay.entries(
        ledger.context,
        sent,
        [{"kind": "run.noted", "run": sent, "step": 1, "span": "0" * 16, "started_at": START, "text": "y"}],
    )
    relay.let_go_of_quiet(moment.from_micros(heard))
    assert len(relay) == 3
    relay.let_go_of_quiet(moment.from_micros(heard + QUIET_MICROS))
    assert [ledger.runs.show(run).status for run in (silent, told, sent)] == ["interrupted", "running", "running"]
    assert len(relay) == 2
    relay.step(ledger.context, silent, {"note": "here again"})
    assert ledger.runs.show(silent).status == "running"
    relay.end(ledger.context, silent, answer="yes")
    assert ledger.runs.show(silent).answer == "yes"


def test_an_end_amiss_is_refused(ledger: Ledger) -> None:
    """Status, error and usage are checked together, and the run goes on."""
    relay = Relay()
    run = str(relay.start(ledger.context, {"query": "?"})["run"])
    with pytest.raises(Refused) as refused:
        relay.end(ledger.context, run, status="gone", error=1, usage=2)
    assert {fault.path for fault in refused.value.faults} == {"/status", "/error", "/usage"}
    assert relay.end(ledger.context, run, error={"type": "ValueError", "message": "no"})["status"] == "error"
    with pytest.raises(Refused):
        relay.end(ledger.context, run)


def test_a_run_without_a_ledger_recalls_and_decides(ledger: Ledger) -> None:
    """A run that was begun from a context alone is the current run as any other: a recall is a read of it."""
    run = begin(LocalLog(ledger.context), "Approve?").start()
    with run.current():
        assert ledger.recall("anything").hits == ()
        assert run.ledger is None
    run.end(answer="no")
    assert [read.within for read in ledger.runs.show(run.id).reads] == ["recall"]
