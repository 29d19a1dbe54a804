"""Runs recorded from documents: told ones and entries."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runs.story import RUN, loan
from tests.runs.test_reader import named, opened

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine

RULES = [
    {"chosen": "rejected", "when": {"creditScore": {"lt": 600}}, "label": "Marginal credit"},
    {"chosen": "approved", "when": {"creditScore": {"gte": 700}}, "label": "Good credit"},
]
TOLD: dict[str, Any] = {
    "query": "Should we approve application #42?",
    "subject": "loan/42",
    "conversation": "app-42",
    "principal": "ann",
    "agent": "loan-officer",
    "inputs": {"application": 42},
    "steps": [
        {"read": "loan/42"},
        {"tool": {"name": "bureau", "args": {"id": "42"}, "result": {"hits": 1}}},
        {"tool": {"name": "fraud", "error": {"type": "TimeoutError", "message": "too slow"}}},
        {"model": {"model": "small-1", "messages": [], "response": "Hm.", "usage": {"input": 10, "output": 1}}},
        {"decide": {"stage": "classify-risk", "facts": "loan/42", "rules": RULES, "default": "manual-review"}},
        {
            "select": {
                "stage": "flags",
                "facts": {"age": 17},
                "rules": [{"chosen": "minor", "when": {"age": {"lt": 18}}}],
            }
        },
        {"store": [{"entity_type": "loan", "id": "42", "status": "rejected"}]},
        {"note": "done"},
        {"note": {"text": "more", "data": [1]}},
    ],
    "answer": "Application #42: REJECTED.",
}


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """A ledger that knows the score of loan 42."""
    made = opened(InMemoryEngine())
    made.store({"entity_type": "loan", "id": "42", "creditScore": 580})
    return made


def test_a_told_run_is_recorded_with_its_evidence(ledger: woodrat.Ledger) -> None:
    """Reads are made and rules evaluated here, so evidence leads to observations; writes carry the run."""
    (id,) = ledger.runs.import_(TOLD)
    found = ledger.runs.show(id)
    assert (found.status, found.answer, found.agent) == ("done", "Application #42: REJECTED.", "loan-officer")
    assert [call.name for call in found.tool_calls] == ["bureau", "fraud"]
    assert (found.tool_calls[1].errored, found.tool_calls[1].error) == (
        True,
        {"type": "TimeoutError", "message": "too slow"},
    )
    risk, flags = found.decisions
    assert (risk.chosen, risk.rule, risk.evidence) == (
        "rejected",
        "Marginal credit",
        {"creditScore": 580, "threshold": 600},
    )
    assert risk.observations == {ledger.observations("loan/42").items[0].observation.id}
    assert (flags.chosen, flags.mode) == (["minor"], "select")
    assert [write.fields["status"] for write in found.writes] == ["rejected"]
    assert [note.text for note in found.notes] == ["done", "more"]
    assert (found.input_tokens, found.iterations) == (10, 1)
    assert ledger.why("loan/42").items[0].run == id


def test_several_runs_and_ends(ledger: woodrat.Ledger) -> None:
    """A list records several runs; an error or a status says how one ended."""
    found = ledger.runs.import_([{"query": "a", "error": "boom"}, {"query": "b", "status": "cancelled"}])
    records = [ledger.runs.show(id) for id in found]
    assert [(record.status, record.error) for record in records] == [
        ("error", {"type": "Exception", "message": "boom"}),
        ("cancelled", None),
    ]


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        ("text", [""]),
        ([], [""]),
        ({}, ["/query"]),
        ({"query": "?", "typo": 1, "status": "asleep"}, ["/typo", "/status"]),
        ({"query": "?", "steps": {}}, ["/steps"]),
        ({"query": "?", "steps": [{"read": 3}, {"fly": {}}, {"read": "a/b", "note": "x"}, 4]},
         ["/steps/0/read", "/steps/1", "/steps/2", "/steps/3"]),
        ({"query": "?", "steps": [{"decide": {"stage": "s", "facts": {}, "rules": [{"when": 1}]}}]},
         ["/steps/0/decide/rules/0/chosen", "/steps/0/decide/rules/0/when"]),
        ({"query": "?", "steps": [{"tool": {"args": {}}}, {"model": {"model": 1, "response": ""}}]},
         ["/steps/0/tool/name", "/steps/1/model/model"]),
        ([{"kind": "run.decided", "step": -1, "span": "", "run": "x y", "started_at": "soon"}, {"kind": "observation"}],
         ["/0/run", "/0/step", "/0/span", "/0/started_at", "/1/kind"]),
    ],
)  # fmt: skip
def test_documents_at_fault_are_refused_whole(ledger: woodrat.Ledger, document: Any, paths: list[str]) -> None:
    """Every fault is named with its place, and nothing is recorded."""
    before = ledger.position
    with pytest.raises(woodrat.Refused, match="Nothing was recorded") as refusal:
        ledger.runs.import_(document)
    assert [fault.path for fault in refusal.value.faults] == paths
    assert ledger.position == before


def test_a_step_that_is_refused_ends_the_run_as_an_error(ledger: woodrat.Ledger) -> None:
    """What was recorded up to there stays, and the run says why it ended."""
    with pytest.raises(woodrat.Refused):
        ledger.runs.import_(
            {"query": "?", "id": named(5), "steps": [{"note": "before"}, {"store": [{"entity_type": "x"}]}]}
        )
    found = ledger.runs.show(named(5))
    assert (found.status, [note.text for note in found.notes]) == ("error", ["before"])


def as_entries(said: Any) -> list[dict[str, Any]]:
    """Return entries as a file holds them."""
    return [{"kind": kind, **given} for kind, given in said]


def test_entries_are_taken_as_they_are_and_once(ledger: woodrat.Ledger) -> None:
    """Entries keep their own times and spans; recording the same file again changes nothing."""
    assert ledger.runs.import_(as_entries(loan())) == (RUN,)
    found, position = ledger.runs.show(RUN), ledger.position
    assert found.started_at == "2026-01-05T09:00:00.000000Z"
    assert found.decisions[0].evidence == {"creditScore": 580, "threshold": 600}
    assert ledger.runs.import_(as_entries(loan())) == (RUN,)
    assert (ledger.runs.show(RUN), ledger.position) == (found, position)


def test_entries_may_leave_out_what_every_body_has(ledger: woodrat.Ledger) -> None:
    """Run, step, span and time are filled in: one fresh run, steps in order, now; offsets become UTC."""
    (id,) = ledger.runs.import_(
        [
            {"kind": "run.started", "query": "?", "started_at": "2026-01-05T10:00:00+01:00"},
            {"kind": "run.ended", "status": "done"},
        ]
    )
    found = ledger.runs.show(id)
    assert id.startswith("run_")
    assert (found.started_at, found.status) == ("2026-01-05T09:00:00.000000Z", "done")
