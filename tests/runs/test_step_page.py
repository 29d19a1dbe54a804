"""Pages of steps: together they are the run, step by step in order, as `runs show --step` numbers them."""

from __future__ import annotations

import pytest

import woodrat
from woodrat.api.verbs import verbs
from woodrat.errors import NotFound, Refused
from woodrat.runs.step_order import STEP_KINDS

RULES = [woodrat.Rule("rejected", {"score": {"lt": 600}}, label="Low score")]


@pytest.fixture(scope="module")
def ledger() -> woodrat.Ledger:
    ledger = woodrat.open(":memory:", agent="officer")
    ledger.store({"entity_type": "loan", "id": "42", "score": 580})
    with ledger.run("Approve #42?", subject="loan/42", inputs={"application": 42}) as run:
        loan = run.show("loan/42")
        run.tool("bureau", lambda number: {"score": number}, 580)
        run.model("small-1", response="no", messages=[{"role": "user", "content": "Summarise."}])
        run.note("checked")
        verdict = run.decide("risk", loan, RULES, default="review")
        run.store({"entity_type": "loan", "id": "42", "status": verdict.chosen})
        run.answer("rejected")
    ledger.runs.judge(run.id, "good")
    return ledger


def test_pages_are_the_run(ledger: woodrat.Ledger) -> None:
    """Page after page gives every step once, in order, and each page says the same of the run as a whole."""
    record = ledger.runs.show(ledger.runs.list().items[0].id)
    pages = [ledger.runs.steps(record.id, skip=skip, limit=2) for skip in range(0, 8, 2)]
    items = [step for page in pages for step in page.items]
    assert [step.number for step in items] == [1, 2, 3, 4, 5, 6]
    assert [step.kind for step in items] == ["read", "tool", "model", "note", "decision", "write"]
    assert {page.total for page in pages} == {6}
    assert [page.skipped for page in pages] == [0, 2, 4, 6]
    assert {(page.run.id, page.query, page.answer, len(page.judgements)) for page in pages} == {
        (record.id, "Approve #42?", "rejected", 1)
    }
    assert [items[0].read, items[1].tool, items[2].model] == [record.reads[0], record.tool_calls[0], record.models[0]]
    assert items[4].decision == record.decisions[0]
    assert items[4].decision is not None
    assert items[4].decision.margin is not None
    assert items[5].writes == record.writes


def test_a_page_can_begin_at_a_step(ledger: woodrat.Ledger) -> None:
    """A step is named by its number; what stands before it is counted."""
    run = ledger.runs.list().items[0].id
    number = ledger.runs.steps(run).items[3].number
    page = ledger.runs.steps(run, step=number, limit=1)
    assert (page.skipped, [step.number for step in page.items]) == (3, [number])
    with pytest.raises(NotFound, match="has no step 99; it has steps"):
        ledger.runs.steps(run, step=99)


def test_pages_of_each_kind_are_the_run(ledger: woodrat.Ledger) -> None:
    """Steps of one kind are counted and skipped by themselves, and those of all kinds are the run."""
    run = ledger.runs.list().items[0].id
    whole = ledger.runs.steps(run).items
    for kind in STEP_KINDS:
        of_kind = [step for step in whole if step.kind == kind]
        pages = [ledger.runs.steps(run, kind=kind, skip=skip, limit=1) for skip in range(len(of_kind) + 1)]
        assert [step for page in pages for step in page.items] == of_kind
        assert of_kind, kind
        assert [(page.total, page.skipped) for page in pages] == [(len(of_kind), n) for n in range(len(of_kind) + 1)]
    (decision,) = ledger.runs.steps(run, kind="decision").items
    assert ledger.runs.steps(run, kind="decision", step=decision.number).items == (decision,)
    with pytest.raises(NotFound, match=f"has no step {decision.number} of kind note; it has steps 4 to 4"):
        ledger.runs.steps(run, kind="note", step=decision.number)


def test_every_kind_of_step_can_be_asked_for() -> None:
    (parameter,) = [each for each in verbs()["runs.steps"].parameters if each.name == "kind"]
    assert parameter.kind.schema["enum"] == [*STEP_KINDS]


def test_what_is_wrong_is_said_at_once(ledger: woodrat.Ledger) -> None:
    run = ledger.runs.list().items[0].id
    with pytest.raises(Refused) as refusal:
        ledger.runs.steps(run, skip=-1, step="x", limit=0)  # type: ignore[arg-type]
    assert [fault.path for fault in refusal.value.faults] == ["skip", "step", "limit"]
    with pytest.raises(Refused) as unknown:
        ledger.runs.steps(run, kind="decisions")
    (fault,) = unknown.value.faults
    assert fault.path == "kind"
    assert '"decisions"' in fault.problem
    assert fault.remedy == "Send one of read, tool, model, decision, note, write."
    with pytest.raises(Refused, match="both say where to begin"):
        ledger.runs.steps(run, skip=1, step=2)
    with pytest.raises(NotFound):
        ledger.runs.steps("run_aaaaaaaaaaaaaaaaaaaaaaaaaa")


def test_steps_have_the_numbers_of_their_recorder() -> None:
    """Numbers are those that a fork takes; writes of one call are one step, and a judgement is none."""
    ledger = woodrat.open(":memory:", agent="a")
    inner = woodrat.tool(lambda x: x, name="inner")
    outer = woodrat.tool(lambda x: inner(x) + 1, name="outer")
    with ledger.run("?") as run:
        run.store([{"entity_type": "loan", "id": "1"}, {"entity_type": "loan", "id": "2"}])
        outer(3)
        run.decided("plan", "Postgres", because="many writers")
    ledger.runs.judge(run.id, "good")
    items = ledger.runs.steps(run.id).items
    assert [(step.number, step.kind, step.inside, step.depth) for step in items] == [
        (1, "write", None, 0),
        (2, "tool", None, 0),
        (3, "tool", 2, 1),
        (4, "decision", None, 0),
    ]
    assert len(items[0].writes) == 2


def test_steps_without_numbers_of_their_own_are_counted() -> None:
    """Where an import numbers all steps alike, they are counted from 1 in time order; agents keep their names."""
    ledger = woodrat.open(":memory:", agent="a")
    call = {"kind": "run.tool", "step": 1}
    first = {**call, "span": "s1", "started_at": "2026-01-05T09:00:01.000000Z", "attributes": {"agent": "planner"}}
    second = {**call, "span": "s2", "started_at": "2026-01-05T09:00:02.000000Z", "under": "s1"}
    (run,) = ledger.runs.import_([{"kind": "run.started", "query": "?"}, second, first, {"kind": "run.ended"}])
    items = ledger.runs.steps(run).items
    assert [(step.number, step.agent, step.inside) for step in items] == [(1, "planner", None), (2, None, 1)]
