"""Loans: a ledger of runs that decide on loans, in which everything grows with the number of runs.

Each run reads a loan, decides on it by rules that are data, calls a tool and answers. Four runs are about each loan,
and one run in five is about the busy one. One in five was judged. Three runs, whatever the size, are of another agent,
ended in an error and were judged bad. One loan in five changed afterwards, so that its decisions would
come out differently.

One run is recorded by the library; the entries of the others are spelled after its, and are imported in batches.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import woodrat
from bench.growth import ordinary
from bench.growth.case import Facts, World
from woodrat.api.ledger import Ledger
from woodrat.canon import moment
from woodrat.canon.digest import base32
from woodrat.runs.recorder.run import Run

AGENT, RARE_AGENT = "loan-officer", "pilot"
RULES = [
    woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    woodrat.Rule("approved", {"creditScore": {"gte": 700}}, label="Good credit"),
]
THRESHOLD = {"classify-risk.creditScore.lt": 660}
"""With this in the rules, every decision would come out differently."""
SCORE, LOW_SCORE = 650, 550
BATCH = 500
"""Runs of one import."""
BEGIN_MICROS = moment.to_micros("2025-01-01T00:00:00.000000Z")
BUSY = "loan/busy"
PER_LOAN = 5
"""Runs about one loan."""


def approve(run: Run) -> Any:
    """Decide on a loan, as the agent that is recorded, replayed and resumed."""
    ref = str(run.inputs["loan"])
    loan = run.show(ref)
    verdict = run.decide("classify-risk", loan, RULES, default="manual-review")
    run.tool("lookup_credit_bureau", look_up, ref)
    return f"{ref}: {verdict.chosen}"


def look_up(loan: str) -> dict[str, object]:
    """Answer as a credit bureau would."""
    return {"loan": loan, "history": ["paid", "paid", "late"]}


def record(ledger: Ledger, ref: str) -> str:
    """Record one run about a loan; return its id."""
    with ledger.run(
        question(ref), subject=ref, conversation=f"about {ref}", principal="ann", inputs={"loan": ref}
    ) as run:
        run.answer(approve(run))
    return run.id


def question(ref: str) -> str:
    """Return what a run about a loan was asked."""
    return f"Should we approve {ref}, application #{ref.partition('/')[2]}?"


def loan(number: int) -> str:
    """Return the reference of a numbered loan."""
    return f"loan/{number:06d}"


def run_id(number: int) -> str:
    """Return the id of a numbered run."""
    return "run_" + base32(hashlib.sha256(b"%d" % number).digest()[:16])


def subject(number: int) -> str:
    """Return the loan that a numbered run is about."""
    return BUSY if number % 5 == 4 else loan(number // PER_LOAN)


def build(path: Path, size: int) -> Facts:
    """Build the ledger."""
    loans = size // PER_LOAN + 1
    with woodrat.open(path, agent=AGENT) as ledger:
        ordinary.store(ledger)
        refs = [BUSY, *map(loan, range(loans))]
        observations: dict[str, str] = {}
        for start in range(0, len(refs), 5_000):
            part = refs[start : start + 5_000]
            report = ledger.store([_record(ref, SCORE) for ref in part], observed_at="2024-12-01T00:00:00Z")
            observations.update(zip(part, report.observations, strict=True))
        template = _Template(ledger)
        for start in range(0, size, BATCH):
            entries: list[dict[str, Any]] = []
            for number in range(start, min(start + BATCH, size)):
                rare = number in (1, size // 2, size - 1)
                entries += template.entries(number, subject(number), observations[subject(number)], rare=rare)
            ledger.runs.import_(entries)
        head = ledger.position
        changed = [_record(loan(number), LOW_SCORE) for number in range(0, loans, 5)]
        for start in range(0, len(changed), 5_000):
            ledger.store(changed[start : start + 5_000], observed_at="2025-12-01T00:00:00Z")
        return {
            "loans": loans,
            "head": head,
            "since_last": _moment(size - 1),
            "observations": [observations[loan(number)] for number in (0, loans // 2)],
        }


def _record(ref: str, score: int) -> dict[str, Any]:
    kind, _, key = ref.partition("/")
    return {"entity_type": kind, "id": key, "creditScore": score, "$": {"key": key}}


def _moment(number: int, step: int = 0) -> str:
    return moment.from_micros(BEGIN_MICROS + number * 60_000_000 + step * 1_000_000)


class _Template:
    """The entries of a run that was recorded, from which those of others are spelled."""

    def __init__(self, ledger: Ledger) -> None:
        first = ledger.position
        self._ref = loan(0)
        self._run = record(ledger, self._ref)
        ledger.runs.judge(self._run, "good")
        read = ledger.show(self._ref)
        self._observation = read.blame["creditScore"].observation
        self._entries = [(entry.kind, json.loads(entry.body or b"")) for entry in ledger.log.entries(after=first)]

    def entries(self, number: int, ref: str, observation: str, *, rare: bool) -> Iterator[dict[str, Any]]:
        """Yield the entries of a numbered run about a loan; a rare one failed and was judged bad."""
        key, own = self._ref.partition("/")[2], ref.partition("/")[2]
        text = {self._run: run_id(number), self._observation: observation, self._ref: ref}
        text |= {f"#{key}": f"#{own}", f'"{key}"': f'"{own}"'}
        for step, (kind, body) in enumerate(self._entries):
            judged = kind == "run.judged"
            if judged and not rare and number % 5:
                continue
            spelled = json.dumps(body)
            for old, new in text.items():
                spelled = spelled.replace(old, new)
            entry = json.loads(spelled)
            entry.update(kind=kind, span=f"{number:012x}{step:04x}", started_at=_moment(number, step))
            if rare:
                entry.update({"agent": RARE_AGENT}, **({"verdict": "bad", "by": RARE_AGENT} if judged else {}))
                if kind == "run.ended":
                    entry.update(status="error", error={"type": "TimeoutError", "message": "no answer"})
                    entry.pop("answer")
            yield entry


LOANS = World("loans", "runs", (1_000, 10_000, 50_000), build, ordinary.shown)
