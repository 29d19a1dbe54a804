"""Work: the verbs of runs, which read, explain and record what agents did."""

from __future__ import annotations

import io
from collections.abc import Iterator

from bench.growth import loans, shapes
from bench.growth.case import Case, Facts
from bench.growth.loans import LOANS, loan, run_id
from bench.growth.meter import CALLS_MAX
from bench.growth.people import picked
from bench.growth.slope import ALL, ANSWER, PAGE
from woodrat.api.ledger import Ledger


def cases() -> Iterator[Case]:
    """Yield the rows."""
    yield Case("runs.list by verdict", "runs.list", PAGE, LOANS, _by_verdict)
    yield Case("runs.list by status", "runs.list", PAGE, LOANS, _by_status)
    yield Case("runs.list by a rare agent", "runs.list", PAGE, LOANS, _by_agent)
    yield Case("runs.list since", "runs.list", PAGE, LOANS, _since)
    yield Case("runs.list of a conversation", "runs.list", PAGE, LOANS, _of_conversation)
    yield Case("runs.list about an entity", "runs.list", PAGE, LOANS, _about)
    yield Case("runs.show", "runs.show", ANSWER, LOANS, _show)
    yield Case("runs.steps", "runs.steps", ANSWER, LOANS, _steps)
    yield Case("runs.diff", "runs.diff", ANSWER, LOANS, _diff)
    yield Case("runs.group about an entity", "runs.group", ANSWER, LOANS, _group_few)
    yield Case("runs.group about a busy entity", "runs.group", ALL, LOANS, _group, repeats=False)
    yield Case("runs.judge", "runs.judge", ANSWER, LOANS, _judge)
    yield Case("runs.evaluate", "runs.evaluate", ANSWER, LOANS, _evaluate)
    yield Case("runs.import_", "runs.import_", ANSWER, LOANS, _import)
    yield Case("runs.replay, one run", "runs.replay", ANSWER, LOANS, _replay)
    yield Case("runs.resume", "runs.resume", ANSWER, LOANS, _resume, _interrupt)
    yield Case("runs.continue_", "runs.continue_", ANSWER, LOANS, _continue, _interrupt)
    yield Case("runs.fork", "runs.fork", ANSWER, LOANS, _fork)
    yield Case("run, read, decide, call, answer", "run", ANSWER, LOANS, _record)
    yield Case("recorded", "recorded", ANSWER, LOANS, _recorded)
    yield Case("why", "why", PAGE, LOANS, _why)
    yield Case("recall", "recall", ANSWER, LOANS, _recall)
    yield Case("recall, after a run", "recall", ANSWER, LOANS, _recall_after_run, _recall_first)
    yield Case("reindex", "reindex", ALL, LOANS, _reindex, repeats=False)
    yield Case("sql, all entities", "sql", ALL, LOANS, _sql)
    yield Case("lineage of a run", "lineage", PAGE, LOANS, _lineage)
    yield Case("impact of an observation", "impact", PAGE, LOANS, _impact)
    yield Case("impact of an agent", "impact", ALL, LOANS, _impact_agent, repeats=False)
    yield Case("stale, long history", "stale", ALL, shapes.HISTORY, _stale_subject)
    yield Case("follow_stale", "follow_stale", ANSWER, LOANS, _follow_stale)
    yield Case("what_if, one run", "what_if", ANSWER, LOANS, _what_if_one)
    yield Case("what_if, sweep", "what_if", ALL, LOANS, _sweep, repeats=False)
    yield Case("bisect, decision", "bisect", ANSWER, LOANS, _bisect)
    yield Case("training.export", "training.export", ALL, LOANS, _export, repeats=False)


def _some_run(facts: Facts, number: int) -> str:
    return run_id(picked(number, facts["size"] // 5) * 5 + 2)


def _some_loan(facts: Facts, number: int) -> str:
    return loan(picked(number, facts["loans"] - 1))


def _by_verdict(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(ledger.runs.list(verdict="bad").items) == 3


def _by_status(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(ledger.runs.list(status="error").items) == 3


def _by_agent(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(ledger.runs.list(agent=loans.RARE_AGENT).items) == 3


def _since(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.runs.list(since=facts["since_last"]).items


def _of_conversation(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.runs.list(conversation=f"about {_some_loan(facts, number)}").items


def _about(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.runs.list(subject=_some_loan(facts, number)).items


def _show(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.runs.show(_some_run(facts, number)).decisions


def _steps(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.runs.steps(_some_run(facts, number), skip=1, limit=2).items


def _diff(ledger: Ledger, facts: Facts, number: int) -> None:
    ledger.runs.diff(_some_run(facts, number), _some_run(facts, number + 1))


def _group_few(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.runs.group(subject=_some_loan(facts, number)).main


def _group(ledger: Ledger, facts: Facts, _: int) -> None:
    """Group a fifth of the runs, which is as many as are grouped at most."""
    assert ledger.runs.group(subject=loans.BUSY).main


def _judge(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.runs.judge(_some_run(facts, number), "good", reason=f"look {number}").position


def _evaluate(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.runs.evaluate(_some_run(facts, number), against="now", name=f"evaluation {number}").position


def _import(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.runs.import_({"query": f"Approve #{number}?", "answer": "Rejected."})


def _replay(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.runs.replay(_some_run(facts, number), loans.approve).same


def _interrupt(ledger: Ledger, facts: Facts) -> Facts:
    """Begin runs that nobody ends."""
    interrupted = []
    for number in range(CALLS_MAX + 1):
        ref = _some_loan(facts, number)
        run = ledger.run(loans.question(ref), subject=ref, inputs={"loan": ref}).start()
        run.show(ref)
        interrupted.append(run.id)
    return {"interrupted": interrupted}


def _resume(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.runs.resume(facts["interrupted"][number], loans.approve)


def _fork(ledger: Ledger, facts: Facts, number: int) -> None:
    forked = ledger.runs.fork(_some_run(facts, number), loans.approve, at=1, set={"fields.creditScore": 720})
    assert forked.run != _some_run(facts, number)


def _continue(ledger: Ledger, facts: Facts, number: int) -> None:
    with ledger.runs.continue_(facts["interrupted"][number], ends=True) as run:
        run.answer("done")


def _record(ledger: Ledger, facts: Facts, number: int) -> None:
    assert loans.record(ledger, _some_loan(facts, number))


def _recorded(ledger: Ledger, facts: Facts, number: int) -> None:
    @ledger.recorded("Should we approve {ref}?", subject="{ref}")
    def approve(ref: str) -> str:
        return "yes"

    assert approve(_some_loan(facts, number)) == "yes"


def _why(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.why(_some_loan(facts, number)).items


def _recall(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.recall(loans.question(_some_loan(facts, number)), threshold=0.1).hits


def _recall_first(ledger: Ledger, facts: Facts) -> Facts:
    _recall(ledger, facts, 0)
    return {}


def _recall_after_run(ledger: Ledger, facts: Facts, number: int) -> None:
    _record(ledger, facts, number)
    _recall(ledger, facts, number)


def _sql(ledger: Ledger, facts: Facts, _: int) -> None:
    ledger.sql("SELECT type, count(*) FROM entities GROUP BY type")


def _reindex(ledger: Ledger, facts: Facts, _: int) -> None:
    ledger.reindex()


def _lineage(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.lineage(_some_run(facts, number))


def _impact(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.impact(facts["observations"][1]).runs


def _impact_agent(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.impact(agent=loans.AGENT).runs


def _stale_subject(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.stale(same=True).items


def _follow_stale(ledger: Ledger, facts: Facts, number: int) -> None:
    chosen = picked(number, (facts["loans"] - 2) * 4 // 5)
    ref = loan(chosen // 4 * 5 + chosen % 4 + 1)  # one in five has changed already
    after = ledger.position
    record = {"entity_type": "loan", "creditScore": 500 - number, "$": {"key": ref.partition("/")[2]}}
    ledger.store(record, observed_at="2026-01-01T00:00:00Z")
    assert list(ledger.follow_stale(after=after, wait=lambda: False))


def _what_if_one(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.what_if(_some_run(facts, number), thresholds=loans.THRESHOLD).flip == 1


def _sweep(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.what_if(sweep="creditScore=590..610").rows


def _bisect(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.bisect(loan(0), where=["creditScore lt 600"])


def _export(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.training.export("sft", out=io.StringIO(), record=False).rows
