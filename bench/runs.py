"""Runs: what it costs to record a decision and a tool call, each durable, against raw commits of the same bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import woodrat
from bench.raw import Raw, page_bytes
from bench.rows import Row
from bench.stage import Stage
from bench.timing import Figure, take_turns
from woodrat.api.ledger import Ledger
from woodrat.canon import form
from woodrat.engines.sqlite.connection import WAL_PAGES
from woodrat.runs import steps
from woodrat.runs.recorder.run import Run

RULES = [
    woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    woodrat.Rule("approved", {"creditScore": {"gte": 700}, "dti": {"lt": 0.43}}, label="Good credit"),
]
FACTS = {"creditScore": 650, "dti": 0.41}


def rows() -> list[Row]:
    """Return what is measured."""
    return [
        Row("decide", "decide with two data rules / one raw commit of the same bytes", 2, _against_raw(decide)),
        Row("tool", "a recorded tool call / one raw commit of the same bytes", 2, _against_raw(_call)),
        Row("many-runs", "a decision after {s.runs:,} runs / after none", 1.5, _many_runs),
        Row("sweep", "what-if of {s.runs:,} decisions at 101 values / reading these decisions once", 6, _sweep),
    ]


def decide(run: Run) -> object:
    """Make the decision that is measured."""
    return run.decide("classify-risk", FACTS, RULES, default="manual-review")


def _call(run: Run) -> object:
    return run.tool("lookup_credit_bureau", _look_up, "42")


def _look_up(application: str) -> dict[str, object]:
    return {"application": application, "score": 650, "history": ["paid", "paid", "late"]}


def _against_raw(step: Callable[[Run], object]) -> Callable[[Stage], Figure]:
    def measure(stage: Stage) -> Figure:
        path = stage.folder / f"runs{step.__name__}.db"
        with woodrat.open(str(path)) as ledger:
            raw = Raw(path.with_suffix(".raw.db"), page_bytes(path))
            try:
                raw.grow()
                grow(ledger)
                with begin(ledger) as run:
                    step(run)
                    body = last_body(ledger)
                    turns = itertools.repeat([(body,)], 550)
                    return take_turns(turns, lambda _: step(run), raw.add, warm=50, seconds=stage.scale.seconds)
            finally:
                raw.close()

    return measure


def _many_runs(stage: Stage) -> Figure:
    """Decisions in a ledger with many runs, against those in one that has just begun."""
    with (
        woodrat.open(str(stage.folder / "runs-few.db")) as few,
        woodrat.open(str(stage.folder / "runs-many.db")) as many,
    ):
        for number in range(stage.scale.runs):
            with many.run(f"Should we approve application #{number}?", subject=f"loan/{number}") as earlier:
                decide(earlier)
        with begin(few) as one, begin(many) as other:
            return take_turns(
                _nothing(550), lambda _: decide(other), lambda _: decide(one), warm=50, seconds=stage.scale.seconds
            )


def _sweep(stage: Stage) -> Figure:
    """A sweep over all decisions of a ledger, against reading and parsing their entries."""
    count = stage.scale.runs
    with woodrat.open(str(stage.folder / "runs-sweep.db")) as ledger:
        ledger.store([{"entity_type": "loan", "id": str(number), **FACTS} for number in range(count)])
        for number in range(count):
            with ledger.run(f"Should we approve application #{number}?", subject=f"loan/{number}") as run:
                run.decide("classify-risk", run.show(f"loan/{number}"), RULES, default="manual-review")

        def sweep(_: object) -> None:
            found = ledger.what_if(sweep="creditScore=550..650")
            assert found.rows[0].flip == count, "at 550 every decision comes out otherwise"

        def read(_: object) -> None:
            with ledger.context.engine.view(ledger.tenant) as view:
                for entry in view.entries(kinds={"run.decided"}):
                    assert entry.body is not None
                    steps.part_of(entry.kind, entry.position, form.decode(entry.body))

        seconds = stage.scale.seconds
        return take_turns(_nothing(20), sweep, read, per=count, per_against=count, warm=1, seconds=seconds)


def grow(ledger: Ledger) -> None:
    """Grow the write-ahead log of a ledger to where it is taken over: a commit into one that still grows costs more."""
    ledger.store([{"entity_type": "filling", "id": str(number), "text": "x" * 2_000} for number in range(WAL_PAGES)])


def last_body(ledger: Ledger) -> bytes:
    """Return the body of the last entry."""
    with ledger.context.engine.view(ledger.tenant) as view:
        last = view.entry(view.head().position)
    assert last is not None
    assert last.body is not None
    return last.body


def _nothing(turns: int) -> Iterator[list[None]]:
    return itertools.repeat([None], turns)


def begin(ledger: Ledger) -> Run:
    """Return the run whose steps are measured."""
    return ledger.run("Should we approve application #42?", subject="loan/42", inputs={"application": 42})
