"""The ledger of the demonstration: three weeks of a small lending team, made with the library alone.

It holds the examples of the guide: two agents who disagree on a city, two runs with the same inputs and different ends,
and a loan rejected on a score that the bureau corrected later. It has its own clock, so the story always ends now.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from woodrat.canon import moment
from woodrat.clock import SystemClock

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger

LOAN_RULES = (
    {"chosen": "rejected", "when": {"creditScore": {"lt": 600}}, "label": "Marginal credit"},
    {"chosen": "approved", "when": {"creditScore": {"gte": 700}}, "label": "Good credit"},
)
CONTRACT_RULES = (
    {"chosen": "standard procedure", "when": {"payment_terms": "Net-30"}, "label": "Short terms"},
    {"chosen": "escalate", "when": {"payment_terms": {"ne": "Net-30"}}, "label": "Long terms"},
)
REPORT = """Iberia Credit Bureau
Credit report

Applicant: Ana Rivera
Date of birth: 4 May 1988
Credit score: 580
Open accounts: 3
Missed payments in 24 months: 2
"""
LETTER = """Iberia Credit Bureau
Correction of a credit report

Our report on Ana Rivera mixed up two people of that name.
Credit score: 720
Missed payments in 24 months: 0
"""
INVOICE = "Kline GmbH\nInvoice 118\nPayment within 45 days.\n"
SCORES = (612, 688, 701, 745, 590, 633, 719, 702, 655, 598, 640, 730)
"""The bureau's scores of applications 30 to 41."""
DAY = 24 * 60 * 60 * 1_000_000


class StoryClock(SystemClock):
    """A clock that is set from day to day, and advances by itself in between."""

    def __init__(self, began: int) -> None:
        super().__init__()
        self._now = began

    def now(self) -> str:
        """Return the moment of the story, two seconds after the last one."""
        self._now += 2_000_000
        return moment.from_micros(self._now)

    def next_day(self, days: int = 1, hour: int = 9) -> None:
        """Advance to a later day, at an hour of it."""
        self._now = (self._now // DAY + days) * DAY + hour * 3_600_000_000


DAYS = 14
"""Days between the start of the examples and today; they end before today."""


def story_clock() -> StoryClock:
    """Return a clock that starts so early that the story ends now."""
    return StoryClock((moment.to_micros(SystemClock().now()) // DAY - DAYS) * DAY + 9 * 3_600_000_000)


def fill(ledger: Ledger, clock: StoryClock) -> None:
    """Tell the story on an empty ledger that was opened with this clock."""
    _contacts(ledger, clock)
    _loans(ledger, clock)
    _contracts(ledger, clock)
    _afterwards(ledger, clock)


def _contacts(ledger: Ledger, clock: StoryClock) -> None:
    """Two agents see different cities; one of them receives a second record of the same person."""
    crm, web = ledger.as_agent("crm"), ledger.as_agent("web")
    crm.store(
        [
            {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"},
            {"entity_type": "contact", "name": "Tomas Beck", "city": "Girona"},
            {"entity_type": "contact", "name": "Mei Tanaka", "city": "Lisbon"},
            {
                "entity_type": "company",
                "name": "Kline GmbH",
                "$": {"relate": [{"type": "employs", "to": "contact/Tomas Beck"}]},
            },
        ]
    )
    clock.next_day()
    web.store({"entity_type": "contact", "name": "Ana Rivera", "city": "San Francisco"})
    web.store({"entity_type": "contact", "name": "A. Rivera", "email": "ana@rivera.example"})
    clock.next_day()
    crm.store({"entity_type": "contact", "name": "Mei Tanaka", "city": "Porto"})
    crm.store(
        {
            "entity_type": "contact",
            "name": "Ana Rivera",
            "email": "ana@rivera.example",
            "$": {"key": "Ana Rivera"},
        }
    )
    ledger.remember("Ana prefers calls before noon", about="contact/Ana Rivera")


def _decide(ledger: Ledger, application: int, applicant: str, score: int | None = None) -> str:
    """Decide about one application; a score comes from the bureau's interface, else from its report."""
    loan = f"loan/{application}"
    with ledger.run(
        f"Should we approve application #{application}?",
        subject=loan,
        conversation=f"app-{application}",
        principal="ann",
        inputs={"application": application},
    ) as run:
        if score is not None:
            with run.tool("lookup_credit_bureau", application=application, applicant=applicant) as call:
                call.result = {"creditScore": score, "open_accounts": application % 4}
            run.store({"entity_type": "loan", "id": str(application), "applicant": applicant, **call.result})
        verdict = run.decide("classify-risk", run.show(loan), LOAN_RULES, default="manual-review")
        with run.model("small-1", messages=_prompt(application, verdict)) as reply:
            reply.response = _letter(application, verdict.chosen)
            reply.usage = {"input": 212 + application, "output": 31}
        run.store({"entity_type": "loan", "id": str(application), "status": verdict.chosen})
        run.answer(reply.response)
    return run.id


def _prompt(application: int, verdict: Any) -> list[dict[str, str]]:
    told = f"Application #{application} was decided: {verdict.chosen}. Evidence: {dict(verdict.evidence)}."
    return [
        {"role": "system", "content": "You write to applicants. Two sentences, plain and kind. Never invent a reason."},
        {"role": "user", "content": told},
    ]


def _letter(application: int, chosen: str) -> str:
    endings = {
        "rejected": "was rejected: the credit score is below the floor of 600.",
        "approved": "was approved.",
    }
    return f"Application #{application} {endings.get(chosen, 'is with a colleague, who will call you.')}"


def _loans(ledger: Ledger, clock: StoryClock) -> None:
    """Thirteen applications; the last one's score is read from a document, and belongs to another person."""
    officer, reader = ledger.as_agent("loan-officer"), ledger.as_agent("report-reader")
    names = ("Tomas Beck", "Mei Tanaka", "Ola Nilsen", "Jan Peeters", "Rosa Marin", "Lea Fischer")
    judged = {"approved": "good", "rejected": "good"}
    for index, score in enumerate(SCORES):
        if index % 4 == 0:
            clock.next_day()
        run = _decide(officer, 30 + index, names[index % len(names)], score)
        verdict = judged.get(str(officer.runs.show(run).decisions[-1].chosen))
        if verdict is not None:
            officer.runs.judge(run, verdict, by="ann")
    clock.next_day()
    report = reader.sources.add(REPORT.encode(), name="credit-report-rivera.txt")
    with reader.interpretations.start(report, model="reader-2", prompt="List the facts of this credit report.") as read:
        read.store(
            {
                "entity_type": "loan",
                "id": "42",
                "applicant": "Ana Rivera",
                "creditScore": 580,
                "open_accounts": 3,
                "$": {
                    "locator": {"line": 6, "quote": "Credit score: 580"},
                    "relate": [{"type": "applicant", "to": "contact/Ana Rivera"}],
                },
            }
        )
    rejected = _decide(officer, 42, "Ana Rivera")
    clock.next_day(3)
    letter = ledger.as_agent("maria").sources.add(LETTER.encode(), name="bureau-correction-rivera.txt")
    ledger.as_agent("maria").correct(
        "loan/42",
        {"creditScore": 720},
        reason="The bureau wrote that it had mixed up two people of the same name.",
        source=letter,
    )
    officer.runs.judge(rejected, "bad", by="maria", preferred="Ask the bureau to confirm the score before rejecting.")
    clock.next_day()
    _decide(officer, 42, "Ana Rivera")


def _pay(ledger: Ledger) -> str:
    """Decide how kline pays; the same question and the same inputs every time."""
    with ledger.run("How is kline to pay?", subject="contract/kline", inputs={"invoice": 118}) as run:
        with run.tool("credit_check", client="kline") as check:
            check.result = {"limit": 50_000, "currency": "EUR"}
        chosen = run.decide("payment-terms", run.show("contract/kline"), CONTRACT_RULES, default="ask").chosen
        run.answer("Use the standard procedure." if chosen == "standard procedure" else "Escalate to legal.")
    return run.id


def _contracts(ledger: Ledger, clock: StoryClock) -> None:
    """The same pipeline before and after another agent reads an invoice."""
    bot, billing = ledger.as_agent("contract-bot"), ledger.as_agent("billing-bot")
    ledger.as_agent("sales").store({"entity_type": "contract", "id": "kline", "payment_terms": "Net-30"})
    for _ in range(3):
        bot.runs.judge(_pay(bot), "good", by="sales")
    clock.next_day()
    invoice = billing.sources.add(INVOICE.encode(), name="invoice-118.txt")
    for model, value in (("reader-1", "Net-30"), ("reader-2", "Net-45")):
        with billing.interpretations.start(invoice, model=model, prompt="Which payment terms?") as reading:
            reading.store(
                {
                    "entity_type": "contract",
                    "id": "kline",
                    "payment_terms": value,
                    "$": {"locator": {"line": 3, "quote": "Payment within 45 days."}},
                }
            )
    bot.runs.judge(_pay(bot), "bad", by="sales")


def _afterwards(ledger: Ledger, clock: StoryClock) -> None:
    """An auditor asks why, a run fails, and the release is tagged."""
    support = ledger.as_agent("support")
    clock.next_day()
    question = "Why was application #42 rejected?"
    with support.run(question, conversation="app-42-followup", principal="bob", recall=True) as run:
        loan = run.show("loan/42")
        run.answer(
            "It was rejected on a credit score of 580, under the floor of 600. The bureau corrected the score to "
            f"{loan.fields['creditScore']} since, and the application is {loan.fields['status']} now."
        )
    run = ledger.as_agent("contract-bot").run("How is nordwind to pay?", inputs={"invoice": 119})
    with suppress(TimeoutError), run, run.tool("credit_check", client="nordwind"):
        raise TimeoutError("the bureau did not answer within 30 s")
    ledger.tag("quarter-end")


def make(path: str | os.PathLike[str], *, tenant: str = "default") -> None:
    """Make the demonstration's ledger in a new file."""
    from woodrat.api.open import open_ledger

    clock = story_clock()
    with open_ledger(path, tenant=tenant, agent="ann", clock=clock) as ledger:
        fill(ledger, clock)
