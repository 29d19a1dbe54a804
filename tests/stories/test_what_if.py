"""A policy is reconsidered: 5,000 recorded decisions are asked what each credit score would have come to."""

from __future__ import annotations

from collections import Counter

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.testing.ledgers import ledger_on

RULES = [
    woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    woodrat.Rule("review", {"tone": {"eq": "angry"}}, label="Angry"),
    woodrat.Rule("approved", {"creditScore": {"gte": 620}}, label="Good credit"),
]


def test_a_sweep_over_5000_decisions_asks_no_model() -> None:
    """Every decision by data is made again at 101 values; with a model between it is unknown, and that is not asked."""
    ledger = ledger_on(InMemoryEngine())
    scores = [500 + number * 7 % 211 for number in range(5_000)]
    ledger.store([{"entity_type": "loan", "id": str(n), "creditScore": score} for n, score in enumerate(scores)])
    asked = 0

    def model() -> dict[str, str]:
        nonlocal asked
        asked += 1
        return {"tone": "calm"}

    for first in range(0, 5_000, 10):
        with ledger.run("Approve these?") as run:
            for number in range(first, first + 10):
                facts = {"creditScore": run.show(f"loan/{number}").fact("creditScore")}
                if number == first:
                    facts["tone"] = run.model("small-1", model).fact("/tone")
                run.decide("risk", facts, RULES, default="manual", on_missing="skip")
    assert asked == 500
    head = ledger.position
    found = ledger.what_if(sweep="creditScore=550..650", stage="risk")
    assert (asked, ledger.position) == (500, head)
    assert [row.value for row in found.rows] == list(range(550, 651))
    for row in (row for row in found.rows if row.value in (550, 599, 600, 605, 619, 620, 650)):
        assert isinstance(row.value, int)
        wanted: Counter[str] = Counter()
        differ = 0
        for number, score in enumerate(scores):
            recorded = _chosen(score)
            # A rejection comes before the rule that needs the model; where nothing changes, it said what it said.
            if number % 10 == 0 and row.value >= 600 and row.value != score:
                wanted["unknown"] += 1
            else:
                wanted[_chosen(row.value)] += 1
                differ += _chosen(row.value) != recorded
        counted = {str(one.chosen): one.decisions for one in row.choices}
        assert counted == {k: v for k, v in wanted.items() if k != "unknown"}
        assert (row.flip, row.unknown) == (differ, wanted["unknown"])
    assert all("needs model small-1" in one.now.reason for one in found.decisions if one.outcome == "unknown")


def _chosen(score: int) -> str:
    return "rejected" if score < 600 else "approved" if score >= 620 else "manual"
