"""Tracing: what impact and replay cost, against reading the entries they are about once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import woodrat
from bench.records import Records
from bench.rows import Row
from bench.runs import RULES
from bench.stage import Stage
from bench.timing import Figure, take_turns
from woodrat.api.ledger import Ledger
from woodrat.canon import form
from woodrat.ledger import entry_index
from woodrat.runs.recorder.run import Run

READERS = 3
"""Runs that read the observation asked about."""
OTHERS = 20
"""One other run for so many entries of the log, the rest being observations."""


def rows() -> list[Row]:
    """Return what is measured."""
    return [
        Row("impact", "impact of {s.long:,} entries / reading the entries it finds once", 15, _impact),
        Row("impact-size", "impact in a ledger ten times as long ({s.long:,} entries)", 1.5, _impact_size),
        Row("replay", "replay of the first run of {s.long:,} entries / reading its entries once", 15, _replay),
    ]


class Leaned(NamedTuple):
    """A ledger with an observation that a few of its runs read."""

    ledger: Ledger
    observation: str
    runs: list[str]

    def impact(self, _: object = None) -> None:
        """Ask what leaned on the observation."""
        found = self.ledger.impact(self.observation)
        assert [run.run for run in found.runs] == self.runs

    def read(self, _: object = None) -> None:
        """Read the observation and all entries of the runs that read it."""
        with self.ledger.context.engine.view(self.ledger.tenant) as view:
            stored = view.observation(self.observation)
            assert stored is not None
            through = view.head().position
            for run in self.runs:
                for entry in entry_index.run_entries(view, run, through):
                    assert entry.body is not None
                    form.decode(entry.body)


def _leaned(path: Path, entries: int) -> Leaned:
    """Return a ledger of so many entries, whose readers stand at its beginning, in its middle and at its end."""
    ledger = woodrat.open(path, agent="bench")
    said = ledger.store({"entity_type": "loan", "id": "42", "creditScore": 580}).observations[0]
    records = Records(path.stem)
    runs: list[str] = []
    for part in range(READERS):
        while ledger.position < entries * part // (READERS - 1):
            room = max(1, min(1_000, entries * part // (READERS - 1) - ledger.position))
            batch = records.batch(range(room))
            ledger.store(batch.records, observed_at=batch.observed_at)
            for number in range(room // OTHERS):
                ledger.store({"entity_type": "loan", "id": f"other{number}", "creditScore": number})
                _decided(ledger, f"other{number}")
        runs.append(_decided(ledger, "42"))
    found = Leaned(ledger, said, runs)
    found.impact()  # the index has caught up
    return found


def _decided(ledger: Ledger, loan: str) -> str:
    with ledger.run(f"Approve {loan}?", subject=f"loan/{loan}", inputs={"loan": loan}) as run:
        run.answer(approve(run))
    return run.id


def approve(run: Run) -> Any:
    """Decide a loan, as the agent that is replayed."""
    found = run.show(f"loan/{run.inputs['loan']}")
    run.tool("lookup_credit_bureau", _look_up, run.inputs["loan"])
    return run.decide("classify-risk", found, RULES, default="manual-review").chosen


def _look_up(loan: str) -> dict[str, object]:
    return {"loan": loan, "history": ["paid", "paid", "late"]}


def _with(stage: Stage, sizes: list[int], measure: Callable[[list[Leaned]], Figure]) -> Figure:
    made = [_leaned(stage.folder / f"leaned{size}.db", size) for size in sizes]
    try:
        return measure(made)
    finally:
        for each in made:
            each.ledger.close()
        for path in stage.folder.glob("leaned*"):
            path.unlink()


def _turns(stage: Stage, ours: Callable[[None], object], against: Callable[[None], object]) -> Figure:
    return take_turns(itertools.repeat([None], 220), ours, against, warm=20, seconds=stage.scale.seconds)


def _impact(stage: Stage) -> Figure:
    return _with(stage, [stage.scale.long], lambda made: _turns(stage, made[0].impact, made[0].read))


def _impact_size(stage: Stage) -> Figure:
    """The same question in a long ledger, against one of a tenth of its length."""
    sizes = [stage.scale.long, stage.scale.long // 10]
    return _with(stage, sizes, lambda made: _turns(stage, made[0].impact, made[1].impact))


def _replay(stage: Stage) -> Figure:
    """Replay by code that did not change; what follows in the log must not matter."""

    def measure(made: list[Leaned]) -> Figure:
        (one,) = made
        first = one.runs[0]
        alone = one._replace(runs=[first])

        def replay(_: object) -> None:
            assert one.ledger.runs.replay(first, approve).same

        return _turns(stage, replay, alone.read)

    return _with(stage, [stage.scale.long], measure)
