"""Tokens: what a follow-up question costs with each projection, against replaying the transcript of the same runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import woodrat
from bench.rows import Row
from bench.stage import Stage
from bench.timing import Figure
from woodrat.runs.projection import PROJECTIONS, injected
from woodrat.runs.record import RunRecord
from woodrat.runs.rules import Rule
from woodrat.runs.words import tokens

RUNS = 20
"""How many runs are told."""
GOALS = {"decisions": 0.25}
"""The share of the transcript that a projection is to stay below."""

SYSTEM = """You are a loan officer's assistant. Look every application up, ask the credit bureau, and weigh income,
debt and history before you classify the risk. Never approve an application with a credit score below 600. Explain
your decision in one or two sentences, name the figures that settled it, and do not promise anything."""


def rows() -> list[Row]:
    """Return one row for each projection."""
    return [
        Row(
            f"tokens-{name}",
            f"tokens of a prompt block with `{name}`, against the transcript of the same run",
            GOALS.get(name),
            _measure(name),
        )
        for name in PROJECTIONS
    ]


def _measure(projection: str) -> Callable[[Stage], Figure]:
    return lambda stage: cost(projection)


def cost(projection: str) -> Figure:
    """Return the mean cost of a run as a prompt block, and that of its transcript, in tokens as budgets count them."""
    records = recorded()
    ours = sum(tokens(injected(record, projection)) for record in records) / len(records)
    against = sum(tokens(transcript(record)) for record in records) / len(records)
    return Figure(ours, against, "tokens", len(records))


def transcript(record: RunRecord) -> str:
    """Return what an agent would be given to go on with a run: the messages of its last model call, and the answer."""
    last = record.models[-1]
    assert isinstance(last.messages, list)
    lines = [json.dumps(message, ensure_ascii=False) for message in last.messages]
    return "\n".join([*lines, json.dumps({"role": "assistant", "content": record.answer}, ensure_ascii=False)])


@cache
def recorded() -> tuple[RunRecord, ...]:
    """Return the records of runs as an agent with two tools and four model calls makes them."""
    random = Random("tokens")
    ledger = woodrat.open(":memory:", tenant="lending", agent="loan-officer")
    found = []
    for number in range(30, 30 + RUNS):
        ledger.store({"entity_type": "loan", "id": str(number), **_application(random)})
        found.append(_run(ledger, number, random))
    return tuple(ledger.runs.show(id) for id in found)


def _run(ledger: woodrat.Ledger, number: int, random: Random) -> str:
    question = f"Should we approve application #{number}?"
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    rules = [
        Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
        Rule("approved", {"creditScore": {"gte": 700}, "debtToIncome": {"lt": 0.43}}, label="Good credit"),
    ]
    with ledger.run(
        question, subject=f"loan/{number}", conversation=f"app-{number}", inputs={"application": number}
    ) as run:

        def ask(response: str) -> None:
            run.model("small-1", messages=list(messages), response=response, usage={"input": 900, "output": 40})
            messages.append({"role": "assistant", "content": response})

        def use(name: str, result: dict[str, Any], **given: Any) -> None:
            with run.tool(name, **given) as call:
                call.result = result
            messages.append({"role": "tool", "name": name, "content": json.dumps(result)})

        loan = run.show(f"loan/{number}")
        messages.append({"role": "tool", "name": "show", "content": json.dumps(dict(loan.fields))})
        ask("I will ask the bureau for the applicant's accounts.")
        use("lookup_credit_bureau", _bureau(random), application_id=str(number))
        ask("Now the employer, to confirm the income.")
        use(
            "confirm_income", {"employer": "Northwind Traders", "monthly": 4_200, "since": "2021-03-01"}, id=str(number)
        )
        ask("The figures agree with the application; the score settles it.")
        verdict = run.decide("classify-risk", loan, rules, default="manual-review")
        run.store({"entity_type": "loan", "id": str(number), "status": verdict.chosen})
        answer = f"Application #{number}: {str(verdict.chosen).upper()}. Credit score {loan.fields['creditScore']}."
        ask(answer)
        run.answer(answer)
    return run.id


def _application(random: Random) -> dict[str, Any]:
    return {
        "applicant": random.choice(["Ana Rivera", "Bo Ek", "Cleo Marsh"]),
        "amount": random.randrange(5_000, 80_000, 500),
        "months": random.choice([24, 36, 48, 60]),
        "purpose": random.choice(["car", "kitchen", "debt consolidation", "education"]),
        "creditScore": random.randrange(540, 800),
        "debtToIncome": round(random.uniform(0.1, 0.6), 2),
        "monthlyIncome": random.randrange(2_000, 9_000, 100),
        "employedSince": f"20{random.randrange(10, 24)}-0{random.randrange(1, 10)}-01",
    }


def _bureau(random: Random) -> dict[str, Any]:
    accounts = [
        {
            "id": f"acc-{random.randrange(10**6):06d}",
            "kind": random.choice(["card", "mortgage", "car loan", "overdraft"]),
            "opened": f"20{random.randrange(10, 25)}-{random.randrange(1, 13):02d}-15",
            "balance": random.randrange(0, 20_000),
            "late": random.randrange(0, 4),
        }
        for _ in range(12)
    ]
    return {"status": "ok", "accounts": accounts, "inquiries": random.randrange(0, 6)}
