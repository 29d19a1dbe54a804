"""Runs read back: records, lists, and why; the same at every moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runs.story import RUN, Said, at, body, condition, loan, origin, write, write_entry

import woodrat
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.runs.projection import project
from woodrat.runs.recorder import current
from woodrat.runs.recorder.decisions import decide
from woodrat.runs.rules import Rule
from woodrat.testing.clock import FixedClock

FRIDAY = "2026-01-09T09:00:00.000000Z"


def opened(engine: Engine, tenant: str = "lending") -> woodrat.Ledger:
    """Return a ledger on an engine."""
    return woodrat.Ledger(engine, tenant=tenant, agent="loan-officer", clock=FixedClock(FRIDAY), policies=registry(()))


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An empty engine."""
    made: Engine = InMemoryEngine()
    yield made
    made.close()


@pytest.fixture
def ledger(engine: Engine) -> woodrat.Ledger:
    """An empty ledger."""
    return opened(engine)


def named(number: int) -> str:
    """Return the id of a run."""
    letters = "".join("abcdefghij"[int(digit)] for digit in f"{number:04d}")
    return f"run_{letters:a>26}"


def ids_of(page: Any) -> list[str]:
    """Return the ids of the runs on a page."""
    return [item.id for item in page.items]


def everything(ask: Callable[..., Any], **given: Any) -> list[Any]:
    """Return all items, page by page."""
    found: list[Any] = []
    cursor = None
    while True:
        page = ask(cursor=cursor, **given)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


# One run


def test_a_run_is_read_back_with_what_it_wrote(ledger: woodrat.Ledger) -> None:
    """A record has the run's entries and the observations that carry its id, also those said after its end."""
    ledger.store({"entity_type": "loan", "id": "42", "creditScore": 580})
    write(ledger, loan())
    ledger.store({"entity_type": "loan", "id": "42", "status": "rejected"}, run=RUN, step=4)
    ledger.store({"entity_type": "loan", "id": "43", "status": "open"})
    found = ledger.runs.show(RUN)
    assert found.answer == "Application #42: REJECTED. Credit (580) below floor (600)."
    assert found.decisions[0].evidence == {"creditScore": 580, "threshold": 600}
    assert [(w.entity, dict(w.fields), w.step) for w in found.writes] == [
        ("loan/42", {"id": "42", "status": "rejected"}, 4)
    ]
    assert found.to_json()["writes"][0]["position"] == found.writes[0].position


def test_an_unknown_run_is_not_found(ledger: woodrat.Ledger) -> None:
    """A run nobody recorded, one of another tenant and one of later are not found; an id that is no text is refused."""
    first = write(ledger, loan())
    for past, id in ((ledger, named(1)), (ledger.at(first - 1), RUN), (opened(ledger.context.engine, "other"), RUN)):
        with pytest.raises(woodrat.NotFound, match="There is no run"):
            past.runs.show(id)
    with pytest.raises(woodrat.Refused, match="expected a run's id"):
        ledger.runs.show(42)  # type: ignore[arg-type]


def test_a_run_at_an_earlier_moment_is_what_was_known_then(ledger: woodrat.Ledger) -> None:
    """As of the middle of a run its record ends there, whatever came later."""
    first = write(ledger, loan())
    ledger.store({"entity_type": "loan", "id": "42", "status": "rejected"}, run=RUN)
    whole = ledger.runs.show(RUN)
    then = ledger.at(first + 3).runs.show(RUN)
    assert (then.status, then.decisions, then.writes, then.answer) == ("interrupted", (), (), None)
    assert len(then.reads) == 1
    write_entry(ledger, "run.judged", body(9, verdict="bad"))
    assert ledger.at(first + 3).runs.show(RUN) == then
    assert ledger.at(ledger.position - 1).runs.show(RUN) == whole


class Recorder:
    """Something that records a run."""


def test_a_run_is_running_while_this_process_records_it(ledger: woodrat.Ledger) -> None:
    """Without an end a run is interrupted, unless this process is recording it and its recorder is still there."""
    write(ledger, loan()[:3])
    assert ledger.runs.show(RUN).status == "interrupted"
    recorder = Recorder()
    current.add_recorder(RUN, recorder, lambda other: False)
    assert ledger.runs.show(RUN).status == "running"
    assert ids_of(ledger.runs.list(status="running")) == [RUN]
    current.remove_recorder(RUN, recorder)
    assert ledger.runs.show(RUN).status == "interrupted"
    current.add_recorder(RUN, recorder, lambda other: False)
    del recorder
    assert ledger.runs.show(RUN).status == "interrupted"


def test_a_run_is_a_moment(ledger: woodrat.Ledger) -> None:
    """Reading at a run reads at its basis, the end of the log when it began."""
    ledger.store({"entity_type": "loan", "id": "42", "creditScore": 580})
    log = ledger.position
    with ledger.context.engine.view(ledger.tenant) as view:
        name = view.head().log
    write(ledger, loan(basis={"log": name, "position": log}))
    ledger.store({"entity_type": "loan", "id": "42", "creditScore": 720})
    assert ledger.at(RUN).position == log
    assert ledger.at(RUN).show("loan/42").fields["creditScore"] == 580
    write(ledger, loan(named(1)))
    assert ledger.at(named(1)).show("loan/42").fields["creditScore"] == 720
    write(ledger, loan(named(2), basis={"log": "log_elsewhere", "position": 0}))
    with pytest.raises(woodrat.NotFound, match="read another log"):
        ledger.at(named(2))
    with pytest.raises(woodrat.NotFound, match="There is no run"):
        ledger.at(named(3))


# Lists


def test_runs_come_newest_first_page_by_page(ledger: woodrat.Ledger) -> None:
    """Every run is on exactly one page, those the log heard of last first, also when runs are added between pages."""
    for number in range(7):
        write(ledger, loan(named(number), number)[:2])
        ledger.store({"entity_type": "loan", "id": str(number)})
    expected = [named(number) for number in reversed(range(7))]
    assert ids_of(ledger.runs.list()) == expected
    assert [record.id for record in everything(ledger.runs.list, limit=2)] == expected
    first = ledger.runs.list(limit=3)
    write(ledger, loan(named(99)))
    assert ids_of(ledger.runs.list(limit=3, cursor=first.cursor)) == expected[3:6]


def test_a_run_that_was_begun_twice_is_listed_once(ledger: woodrat.Ledger) -> None:
    """Imports may say the beginning of a run again; it is listed where the log first heard of it."""
    write(ledger, loan(named(1)))
    write(ledger, loan(named(2)))
    write(ledger, loan(named(1))[:1])
    write_entry(ledger, "run.started", body(0, named(1), agent="other", code="2"))
    assert ids_of(ledger.runs.list()) == [named(2), named(1)]


def test_runs_are_found_by_what_they_say(ledger: woodrat.Ledger) -> None:
    """Each filter keeps the runs that fit it, and filters add up."""
    write(ledger, loan(named(1), 42))
    write(ledger, loan(named(2), 43, score=720))
    write(ledger, loan(named(3), 42, recall=True)[:2])
    other = [("run.started", body(60, named(4), agent="clerk", principal="bob", conversation="desk"))]
    write(ledger, other)
    error = {"type": "E", "message": "m"}
    write_entry(ledger, "run.ended", body(61, named(4), agent="clerk", status="error", error=error))
    write_entry(ledger, "run.judged", body(9, named(2), verdict="good", by="ann"))
    asked: list[tuple[dict[str, Any], list[int]]] = [
        ({"agent": "clerk"}, [4]),
        ({"agent": "nobody"}, []),
        ({"subject": "loan/42"}, [3, 1]),
        ({"subject": "loan/42", "status": "done"}, [1]),
        ({"conversation": "app-43"}, [2]),
        ({"principal": "ann"}, [3, 2, 1]),
        ({"status": "error"}, [4]),
        ({"status": "interrupted"}, [3]),
        ({"verdict": "good"}, [2]),
        ({"since": at(1)}, [4]),
        ({"until": at(60)}, [3, 2, 1]),
        ({"since": at(0), "until": at(61)}, [4, 3, 2, 1]),
    ]
    for given, numbers in asked:
        assert ids_of(ledger.runs.list(**given)) == [named(number) for number in numbers], given


def test_a_subject_is_the_whole_group(ledger: woodrat.Ledger) -> None:
    """Runs about an entity are found by any entity it is joined with."""
    ledger.store([{"entity_type": "loan", "id": "42"}, {"entity_type": "loan", "id": "old-42"}])
    write(ledger, loan())
    ledger.merge("loan/42", "loan/old-42")
    assert ids_of(ledger.runs.list(subject="loan/old-42")) == [RUN]
    assert len(ledger.why("loan/old-42").items) == 1


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"status": "asleep"}, "status"),
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"subject": "nothing"}, "subject"),
        ({"since": "someday"}, "since"),
        ({"agent": 3}, "agent"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"pipeline": 7}, "pipeline"),
    ],
)
def test_a_question_at_fault_is_refused(ledger: woodrat.Ledger, given: dict[str, Any], path: str) -> None:
    """Each argument at fault is named."""
    with pytest.raises(woodrat.Refused) as refusal:
        ledger.runs.list(**given)
    assert [fault.path.split("/")[0] for fault in refusal.value.faults] == [path]


def test_a_cursor_fits_its_own_question_only(ledger: woodrat.Ledger) -> None:
    """A cursor of one list is refused by another."""
    for number in range(3):
        write(ledger, loan(named(number))[:1])
    cursor = ledger.runs.list(limit=1).cursor
    with pytest.raises(woodrat.Refused, match="not a cursor of this question"):
        ledger.runs.list(limit=1, agent="loan-officer", cursor=cursor)


# Groups


def test_a_pipeline_groups_its_step_runs(ledger: woodrat.Ledger) -> None:
    """Runs that name a pipeline are its runs, and so are those they started, at any depth."""
    write(ledger, loan(named(1), using={"pipeline": "pipeline/nightly"}))
    write(ledger, loan(named(2), parent={"run": named(1), "span": "0" * 16}))
    write(ledger, loan(named(3), parent={"run": named(2), "span": "0" * 16}))
    write(ledger, loan(named(4), parent={"run": named(2), "span": "0" * 16}, using={"pipeline": "pipeline/other"}))
    write(ledger, loan(named(5), parent={"run": named(9), "span": "0" * 16}))
    assert ids_of(ledger.runs.list(pipeline="pipeline/nightly")) == [named(3), named(2), named(1)]
    assert ids_of(ledger.runs.list(pipeline="pipeline/other")) == [named(4)]


def test_a_session_groups_the_runs_of_its_conversation(ledger: woodrat.Ledger) -> None:
    """Runs that name a session, runs it lists, and runs of its conversation that name no other belong to it."""
    session = {"entity_type": "agent_session", "id": "s1", "conversation": "app-42", "runs": [named(3)]}
    ledger.store([session, {"entity_type": "agent_session", "id": "s2"}])
    write(ledger, loan(named(1), 42))
    write(ledger, loan(named(2), 43, using={"agent_session": "agent_session/s1"}))
    write(ledger, loan(named(3), 44))
    write(ledger, loan(named(4), 42, using={"agent_session": "agent_session/s2"}))
    write(ledger, loan(named(5), 45))
    assert ids_of(ledger.runs.list(session="agent_session/s1")) == [named(3), named(2), named(1)]
    assert ids_of(ledger.runs.list(session="agent_session/s2")) == [named(4)]


def test_an_evaluation_judges_a_run(ledger: woodrat.Ledger) -> None:
    """An `evaluation` whose subject is a run stands among its judgements, as it is believed at that moment."""
    write(ledger, loan())
    said = {"entity_type": "evaluation", "name": "nightly", "subject": RUN, "verdict": "failed", "score": 0.2}
    report = ledger.store({**said, "judge": "grader", "baseline": "@known-good"}, observed_at="2026-01-06T00:00:00Z")
    found = ledger.runs.show(RUN)
    assert [(j.verdict, j.by, j.score, j.against) for j in found.judgements] == [
        ("failed", "grader", 0.2, "@known-good")
    ]
    assert (found.verdict, found.judgements[0].evaluation) == ("failed", f'evaluation/["nightly","{RUN}"]')
    ledger.store({**said, "verdict": "passed"}, observed_at="2026-01-07T00:00:00Z")
    assert ledger.runs.show(RUN).verdict == "passed"
    assert ledger.at(report.position).runs.show(RUN).verdict == "failed"
    assert ids_of(ledger.runs.list(verdict="passed")) == [RUN]


# Why


def test_why_tells_the_decision_its_evidence_and_the_answer(ledger: woodrat.Ledger) -> None:
    """Friday asks why Monday rejected loan 42: the decision, its time and place, what settled it, what was answered."""
    first = write(ledger, loan())
    write(ledger, loan(named(1), number=43, score=720))
    reason = ledger.why("loan/42").items[0]
    assert (reason.run, reason.agent, reason.subject) == (RUN, "loan-officer", "loan/42")
    assert (reason.decided_at, reason.position) == (at(4), first + 4)
    assert (reason.decision.chosen, reason.decision.rule) == ("rejected", "Marginal credit")
    assert reason.decision.evidence == {"creditScore": 580, "threshold": 600}
    assert reason.answer == "Application #42: REJECTED. Credit (580) below floor (600)."
    assert list(reason.to_json()) == [
        *("run", "agent", "query", "subject", "principal", "conversation", "status", "verdict", "decision", "answer"),
        *("position", "decided_at"),
    ]
    assert len(ledger.why("loan/42").items) == 1
    assert ledger.why("loan/44").items == ()
    assert opened(ledger.context.engine, "other").why("loan/42").items == ()


def test_why_is_newest_first_and_pages(ledger: woodrat.Ledger) -> None:
    """Decisions come by the time they were made, latest first, each on one page; questions about them do not."""
    for number in (3, 1, 2):
        said = [(kind, {**given, "started_at": at(given["step"] + number * 60)}) for kind, given in loan(named(number))]
        write(ledger, said)
    write(ledger, [("run.started", body(0, named(9), subject="loan/42", query="Why?", recall=True))])
    found = everything(ledger.why, ref="loan/42", limit=2)
    assert [reason.run for reason in found] == [named(3), named(2), named(1)]


def leaning() -> list[Said]:
    """Return a run about a customer that decides on the score of loan 42 in one stage, and on nothing in another."""
    rule = {"label": "r", "chosen": "yes", "matched": True, "conditions": [condition("score", "lt", 600, 580, True)]}
    rule["conditions"][0]["origin"] = origin("creditScore", "loan/42")  # type: ignore[index]
    stated = {"label": "s", "chosen": "no", "matched": True, "conditions": []}
    return [
        ("run.started", body(0, named(7), agent="risk", subject="customer/ana")),
        ("run.decided", body(70, named(7), agent="risk", stage="watch", chosen="yes", rule="r", rules=[rule])),
        ("run.decided", body(71, named(7), agent="risk", stage="call", chosen="no", rule="s", rules=[stated])),
    ]


def test_why_finds_decisions_of_other_runs_that_leaned_on_it(ledger: woodrat.Ledger) -> None:
    """A decision in a run about something else counts when its evidence was read from the entity."""
    write(ledger, loan())
    write(ledger, leaning())
    assert [(r.run, r.decision.stage) for r in ledger.why("loan/42").items] == [
        (named(7), "watch"),
        (RUN, "classify-risk"),
    ]
    assert [r.decision.stage for r in ledger.why("customer/ana").items] == ["call", "watch"]


def test_why_at_an_earlier_moment(ledger: woodrat.Ledger) -> None:
    """As of a past moment only the decisions made by then are told, before and after the index has seen later ones."""
    write(ledger, loan())
    then = ledger.position
    before = ledger.at(then).why("loan/42")
    write(ledger, leaning())
    assert len(ledger.why("loan/42").items) == 2
    assert ledger.at(then).why("loan/42") == before
    assert len(before.items) == 1


def test_a_reference_at_fault_is_refused(ledger: woodrat.Ledger) -> None:
    """What is no reference is refused; an entity id that nobody has is not found."""
    with pytest.raises(woodrat.Refused, match="ref"):
        ledger.why("loan")
    with pytest.raises(woodrat.Refused, match="ref"):
        ledger.why(None)  # type: ignore[arg-type]
    with pytest.raises(woodrat.NotFound):
        ledger.why("ent_" + "a" * 26)


# The index


def test_a_rebuild_leads_to_the_same_answers(ledger: woodrat.Ledger) -> None:
    """What is found by rows of the write is found by those of a rebuild, now and at a moment of the past."""
    write(ledger, loan())
    ledger.store({"entity_type": "loan", "id": "42", "status": "rejected"}, run=RUN, step=4)
    ledger.store({"entity_type": "evaluation", "name": "n", "subject": RUN, "verdict": "failed"})
    write(ledger, leaning())
    past = ledger.at(ledger.position)
    found = past.runs.show(RUN), past.why("loan/42"), past.runs.list()
    assert (ledger.runs.show(RUN), ledger.why("loan/42"), ledger.runs.list()) == found
    ledger.rebuild()
    assert (past.runs.show(RUN), past.why("loan/42"), past.runs.list()) == found


def test_a_file_that_cannot_be_written_answers_too(tmp_path: Path) -> None:
    """A ledger opened for reading alone reads what its index lacks from the log."""
    path = tmp_path / "one.db"
    engine = SqliteEngine(path)
    write(opened(engine), loan())
    engine.close()
    readonly = SqliteEngine(path, readonly=True)
    try:
        assert len(opened(readonly).why("loan/42").items) == 1
        assert opened(readonly).runs.show(RUN).decisions[0].chosen == "rejected"
    finally:
        readonly.close()


def test_a_decision_without_a_reference_for_an_entity_is_no_trouble(ledger: woodrat.Ledger) -> None:
    """An imported origin may name anything as its entity; no index lists it, and nothing fails."""
    rule: dict[str, Any] = {"matched": True, "conditions": [condition("a", "eq", 1, 1, True)]}
    rule["conditions"][0]["origin"] = {"kind": "read", "entity": "no reference", "observations": "none"}
    write(ledger, [("run.started", body(0)), ("run.decided", body(1, stage="s", rules=[rule]))])
    assert ledger.runs.show(RUN).decisions[0].observations == frozenset()
    assert ledger.why("loan/42").items == ()


# Through the recorder


def test_the_loan_story_is_read_back_as_it_was_recorded(ledger: woodrat.Ledger) -> None:
    """A run recorded as it happens has the evidence, the origin of every value, and what was written after it."""
    ledger.store({"entity_type": "runbook", "name": "credit", "revision": 3})
    score = ledger.store({"entity_type": "loan", "id": "42", "creditScore": 580}).observations[0]
    rules = [Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit")]
    with ledger.run(
        "Should we approve application #42?",
        subject="loan/42",
        conversation="app-42",
        inputs={"application": 42},
        runbook="runbook/credit",
        pipeline="pipeline/lending",
        session="agent_session/monday",
    ) as run:
        seen = run.show("loan/42")
        with run.tool("bureau", application_id="42") as call:
            call.result = {"hits": 1}
        verdict = decide("classify-risk", seen, rules, default="manual-review")
        run.store({"entity_type": "loan", "id": "42", "status": verdict.chosen})
        run.answer("Application #42: REJECTED.")
    found = ledger.runs.show(run.id)
    decision = found.decisions[0]
    assert decision.to_json()["evidence"] == verdict.evidence == {"creditScore": 580, "threshold": 600}
    assert decision.observations == {score}
    assert (found.status, found.answer, found.problems) == ("done", "Application #42: REJECTED.", ())
    assert [write.fields["status"] for write in found.writes] == ["rejected"]
    assert [(used["type"], used["entity"]) for used in found.in_force] == [("runbook", "runbook/credit")]
    assert (
        ids_of(ledger.runs.list(pipeline="pipeline/lending"))
        == ids_of(ledger.runs.list(session="agent_session/monday"))
        == [run.id]
    )
    assert [reason.decision.chosen for reason in ledger.why("loan/42").items] == ["rejected"]
    assert "Stage classify-risk" in project(found, "commits").splitlines()[2]
    assert 'status="rejected"' in project(found, "commits").splitlines()[3]
    ledger.runs.judge(run.id, "bad", preferred="Rejected: 580 is below 600.", by="ann", about=None)
    assert (ledger.runs.show(run.id).verdict, ledger.runs.show(run.id).preferred is not None) == ("bad", True)


def test_a_run_that_raises_ends_as_an_error(ledger: woodrat.Ledger) -> None:
    """The error is in the record, with the evidence so far."""
    run = ledger.run("?")

    def fails() -> None:
        with run:
            run.note("before")
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        fails()
    found = ledger.runs.show(run.id)
    assert (found.status, found.error) == ("error", {"type": "ValueError", "message": "boom"})
    assert [note.text for note in found.notes] == ["before"]


def test_a_run_is_running_until_its_block_is_left(ledger: woodrat.Ledger) -> None:
    """Inside its block a run reads as running, also in lists and at moments of its own past; afterwards as done."""
    with ledger.run("?") as run:
        assert ledger.runs.show(run.id).status == "running"
        assert ledger.at(ledger.position).runs.show(run.id).status == "running"
        assert ids_of(ledger.runs.list(status="running")) == [run.id]
    assert ledger.runs.show(run.id).status == "done"
    assert ledger.runs.list(status="running").items == ()
