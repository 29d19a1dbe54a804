"""An export is kept in the log, and impact lists exactly the exports whose rows lean on what was asked about."""

from __future__ import annotations

import io
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.explain.test_reader import RULES, counted, decide, engine, ledger, opened, store

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.training import exports

__all__ = ["engine", "ledger"]  # fixtures: each engine


def exported(ledger: woodrat.Past, kind: str = "sft", **given: Any) -> tuple[bytes, Any]:
    """Return the bytes of an export, and what it came to."""
    out = io.BytesIO()
    found = ledger.training.export(kind, out=out, **given)
    return out.getvalue(), found


def test_impact_lists_the_exports_with_rows_that_lean_on_it(ledger: woodrat.Ledger, tmp_path: Path) -> None:
    """An export is listed with who made it, when, and how many rows lean on what was asked about; others are not."""
    bad, fine = store(ledger, creditScore=580), store(ledger, 43, creditScore=580)
    first = decide(ledger)
    assert exported(ledger)[1].rows == 1
    second, other = decide(ledger), decide(ledger, 43)
    out = tmp_path / "rows.jsonl"
    whole = ledger.as_agent("trainer").training.export("sft", out=out)
    _, narrow = exported(ledger, agent="nobody")
    found = ledger.impact(bad).exports
    assert [(one.leaning, one.rows, one.runs) for one in found] == [(1, 1, (first,)), (2, 3, (first, second))]
    named = found[1]
    assert (named.id, named.agent, named.out, named.kind) == (whole.event, "trainer", "rows.jsonl", "sft")
    assert named.sha256 == whole.sha256 == sha256(out.read_bytes()).hexdigest()
    assert (named.as_of, named.position > named.as_of) == (whole.position, True)
    assert [(one.leaning, one.runs) for one in ledger.impact(fine).exports] == [(1, (other,))]
    assert narrow.rows == 0
    assert str(tmp_path) not in json.dumps(ledger.show(str(whole.event)).to_json())
    assert "2 of 3 rows" in [node.label for node in ledger.impact(bad).tree.find("export")][1]
    assert ledger.impact(bad).to_json()["exports"][1]["leaning"] == 2
    assert ledger.at(found[1].position - 1).impact(bad).exports == found[:1]


def test_what_left_is_listed_after_the_retraction(ledger: woodrat.Ledger) -> None:
    """Once an observation is withdrawn, exports made before still lean on it, and those made after do not."""
    bad = store(ledger, creditScore=580)
    run = decide(ledger)
    _, before = exported(ledger)
    ledger.retract(bad, reason="wrong file")
    _, after = exported(ledger)
    assert (before.rows, after.rows) == (1, 0)
    assert [(one.id, one.runs) for one in ledger.impact(bad).exports] == [(before.event, (run,))]


def test_the_record_does_not_show_in_the_rows(ledger: woodrat.Ledger) -> None:
    """Exporting again gives the same bytes, with or without records, and also as of the first one's position."""
    store(ledger, creditScore=580)
    decide(ledger)
    first, told = exported(ledger)
    again, untold = exported(ledger, record=False)
    assert again == first
    assert untold.event is None
    assert exported(ledger.at(told.position))[0] == first
    assert told.sha256 == sha256(first).hexdigest()
    details: Any = ledger.show(told.event).fields["details"]
    assert (details["rows"], details["runs"]) == (1, 1)
    assert len(json.dumps(details)) < 1_000


def test_moments_are_recorded_and_read_only_ledgers_are_not(tmp_path: Path) -> None:
    """An export as of a past moment is listed as such; one that cannot be recorded, or is not to be, is not."""
    path = tmp_path / "one.db"
    with woodrat.open(path) as ledger:
        bad = store(ledger, creditScore=580)
        decide(ledger)
        then = ledger.position
        decide(ledger)
        _, past = exported(ledger.at(then))
        with woodrat.open(path, readonly=True) as other:
            assert exported(other)[1].event is None
            assert exported(other.at(then))[1].event is None
        exported(ledger, record=False)
        assert [(one.id, one.as_of, one.rows) for one in ledger.impact(bad).exports] == [(past.event, then, 1)]


def test_a_replay_records_no_export(ledger: woodrat.Ledger) -> None:
    """An agent that exports is replayed without a record."""
    store(ledger, creditScore=580)
    run = decide(ledger)
    head = ledger.position

    def agent(run: Any) -> str:
        exported(ledger)
        run.decide("classify-risk", run.show("loan/42"), RULES, default="manual-review")
        return "#42: rejected"

    assert ledger.runs.replay(run, agent).same
    assert ledger.position == head


@pytest.mark.parametrize(
    ("kind", "pair_by"), [("dpo", "input"), ("dpo", "conversation"), ("process-rl", "input"), ("kto", "input")]
)
def test_pairs_lean_on_what_either_run_leaned_on(ledger: woodrat.Ledger, kind: str, pair_by: str) -> None:
    """A row made of two runs is listed for what the good one read as well as for what the bad one read."""
    said = [store(ledger, number, creditScore=580) for number in (1, 2, 3)]

    def judged(number: int, answer: str, verdict: str) -> str:
        inputs = {"same": "for all"} if pair_by == "input" else {"number": number}
        with ledger.run("Approve?", inputs=inputs, conversation="c") as run:
            run.decide("classify-risk", run.show(f"loan/{number}"), RULES, default="manual-review")
            run.answer(answer)
        ledger.runs.judge(run.id, verdict)
        return str(run.id)

    good, bad = judged(1, "Rejected.", "good"), judged(2, "Approved.", "bad")
    decide(ledger, 3)
    rows, _ = exported(ledger, kind, pair_by=pair_by)
    found = [json.loads(line)["metadata"]["runs"] for line in rows.splitlines()]
    for id, run in zip(said, (good, bad, ""), strict=True):
        wanted = sum(run in runs for runs in found)
        assert [one.leaning for one in ledger.impact(id).exports] == ([wanted] if wanted else [])
    assert any(good in runs for runs in found)


ACTS = st.lists(
    st.tuples(st.sampled_from(["run", "judge", "retract", "export"]), st.integers(1, 3), st.integers(0, 3)),
    min_size=3,
    max_size=14,
)


@settings(max_examples=40, deadline=None)
@given(ACTS, st.booleans())
def test_impact_counts_what_the_files_hold(acts: list[tuple[str, int, int]], through_index: bool) -> None:
    """For every observation, impact counts the rows that name a run which had read it, in every file of every kind."""
    ledger = opened(InMemoryEngine())
    for number in (1, 2, 3):
        store(ledger, number, note="known whatever is withdrawn")
    said = {number: store(ledger, number, creditScore=580) for number in (1, 2, 3)}
    gone: set[int] = set()
    runs: list[tuple[str, int | None]] = []
    files: dict[str, list[list[str]]] = {}
    for act, number, choice in acts:
        if act == "run":
            with ledger.run("Approve?", inputs={"choice": choice % 2}) as run:
                loan = run.show(f"loan/{number}")
                run.decide("classify-risk", loan, RULES, default="manual-review", on_missing="skip")
                run.answer(f"Answer {choice}")
            runs.append((run.id, None if number in gone else number))
        elif act == "judge" and runs:
            ledger.runs.judge(runs[number % len(runs)][0], ("good", "bad", "passed", "unsure")[choice])
        elif act == "retract" and choice == 0:
            ledger.retract(said[number], reason="wrong")
            gone.add(number)
        elif act == "export":
            rows, told = exported(ledger, ("sft", "dpo", "kto", "process-rl")[choice])
            files[told.event] = [json.loads(line)["metadata"]["runs"] for line in rows.splitlines()]
    past: woodrat.Past = ledger if through_index else ledger.at(ledger.position)
    for number, id in said.items():
        readers = {run for run, read in runs if read == number}
        wanted = {event: sum(not readers.isdisjoint(row) for row in rows) for event, rows in files.items()}
        assert {one.id: one.leaning for one in past.impact(id).exports} == {e: n for e, n in wanted.items() if n}


def test_only_the_runs_concerned_are_looked_at(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it costs to look through an export does not grow with the runs in it that do not matter, nor with events."""
    bad = store(ledger, creditScore=580)
    decide(ledger)
    for number in range(100, 180):
        store(ledger, number, creditScore=580)
        decide(ledger, number)
        ledger.store({"entity_type": "audit_event", "id": str(number), "action": "login", "actor": "ann"})
    for kind in ("sft", "dpo"):
        exported(ledger, kind)
    read = counted(ledger.context.engine, monkeypatch)
    assert len(ledger.impact(bad).exports) == 1
    assert read() < 100, "a question reads what it finds, and no more"


def test_foreign_and_odd_events_are_passed_over(ledger: woodrat.Ledger) -> None:
    """An event that another log brought, or that somebody else wrote under this name, is no export of this log."""
    bad = store(ledger, creditScore=580)
    decide(ledger)
    _, told = exported(ledger)
    details: Any = ledger.show(told.event).fields["details"]
    for number, odd in enumerate(
        [None, {**details, "log": "log_other"}, {**details, "position": 10**9}, {**details, "kind": "poem"},
         {**details, "filters": {"since": "soon"}}, {**details, "filters": 7}, {"log": details["log"]}]
    ):  # fmt: skip
        event = {"entity_type": "audit_event", "id": f"odd{number}", "action": exports.ACTION, "actor": "x"}
        ledger.store({**event, **({} if odd is None else {"details": odd})})
    assert [one.id for one in ledger.impact(bad).exports] == [told.event]
