"""Watching: what a store costs while decisions that depend on the entity are watched, against the same unwatched."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import ExitStack

import woodrat
from bench.rows import Row
from bench.runs import RULES, grow
from bench.stage import Stage
from bench.timing import Figure, take_turns
from woodrat.api.ledger import Ledger

STORES = 20
"""Stores of a turn: what they cost the watcher is spread over them, as in a burst."""


def rows() -> list[Row]:
    """Return what is measured."""
    return [
        Row(
            "watch",
            "store to an entity with {s.runs:,} dependent decisions, another field, watched / not",
            1.1,
            _watched("note"),
        ),
        Row("watch-used", "the same, the field that they depend on", 1.5, _watched("creditScore")),
    ]


def _watched(field: str) -> Callable[[Stage], Figure]:
    def measure(stage: Stage) -> Figure:
        with ExitStack() as stack:
            paths = [stage.folder / f"watch-{field}-{side}.db" for side in ("ours", "against")]
            ours, against = (stack.enter_context(woodrat.open(str(path), agent="bench")) for path in paths)
            for ledger in (ours, against):
                _depend(ledger, stage.scale.runs)
            reported: list[int] = []
            subscription = ours.on_stale(lambda decisions: reported.append(len(decisions)))
            numbers = itertools.count()
            turns = ([next(numbers) for _ in range(STORES)] for _ in range(100))

            def store(ledger: Ledger, number: int) -> None:
                ledger.store({"entity_type": "loan", "id": "42", field: 550 + number % 200})

            figure = take_turns(
                turns,
                lambda number: store(ours, number),
                lambda number: store(against, number),
                warm=1,
                seconds=stage.scale.seconds,
            )
            # Writes in quick succession are reported together, and what comes out as before is not.
            ours.store({"entity_type": "loan", "id": "42", field: 1})
            subscription.flush()
            assert bool(reported) is (field != "note"), "what depends on another field is not reported"
            return figure

    return measure


def _depend(ledger: Ledger, count: int) -> None:
    """Make decisions that depend on one field of one entity, each in a run of its own."""
    ledger.store({"entity_type": "loan", "id": "42", "creditScore": 650, "dti": 0.41, "note": 0})
    for _ in range(count):
        with ledger.run("Should we approve application #42?", subject="loan/42") as run:
            run.decide("classify-risk", run.show("loan/42"), RULES, default="manual-review")
    ledger.why("loan/42", limit=1)  # the index has caught up
    grow(ledger)
