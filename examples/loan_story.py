"""The loan story: Monday's agent rejects an application; on Friday somebody else asks why.

    python examples/loan_story.py [DATABASE]

Nothing is downloaded and no model is called: `small_model` stands for one, and answers from what it is given alone.
"""

from __future__ import annotations

import re
import sys
from tempfile import TemporaryDirectory

import woodrat

RULES = [
    woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    woodrat.Rule("approved", {"creditScore": {"gte": 700}}, label="Good credit"),
]


@woodrat.tool
def lookup_credit_bureau(application: int) -> dict[str, int]:
    """Return what a credit bureau says; recorded as a tool call when it is called inside a run."""
    return {"creditScore": 580 if application == 42 else 605 + application}


def loan_officer(ledger: woodrat.Ledger, application: int) -> str:
    """Decide about an application, as the agent does that works on Mondays."""
    loan = f"loan/{application}"
    with ledger.run(
        f"Should we approve application #{application}?",
        subject=loan,
        conversation=f"app-{application}",
        principal="ann",
        inputs={"application": application},
    ) as run:
        run.store({"entity_type": "loan", **lookup_credit_bureau(application), "$": {"key": str(application)}})
        verdict = woodrat.decide("classify-risk", run.show(loan), RULES, default="manual-review")
        answer = f"Application #{application}: {verdict.chosen}."
        run.answer(answer)
    return answer


def small_model(prompt: str) -> str:
    """Answer from the prompt, as a small model does: it knows nothing but what it is handed."""
    evidence = re.search(r"evidence: creditScore=(\d+), threshold=(\d+)", prompt)
    decided = re.search(r"Decided classify-risk at (\S+): ", prompt)
    if evidence is None or decided is None:
        return "I have no record of that."
    return f"Its credit score was {evidence[1]}, below the floor of {evidence[2]}; decided at {decided[1]}."


def main(database: str) -> None:
    """Tell the story on a database."""
    lending = woodrat.open(database, tenant="lending", agent="loan-officer")

    print("Monday, in conversation app-42, for ann:")
    print(" ", loan_officer(lending, 42))
    for application in range(30, 50):
        if application != 42:
            loan_officer(lending, application)
    print("  and nineteen applications much like it, #30 to #49.")

    print("\nFriday, in conversation app-42-followup, for bob, five times:")
    memory = woodrat.memory(lending, k=1, threshold=0.5, projection="decisions", scope="tenant")
    question = "Why was application #42 rejected?"
    for _ in range(5):
        with memory.turn(question, conversation="app-42-followup", principal="bob") as turn:
            print(" ", turn.answer(small_model(turn.inject)))

    print("\nWhat the small model was given:")
    print(memory.recall(question).text)

    print("\nWithin the conversation of Friday alone:")
    narrow = lending.recall(question, scope="conversation", conversation="app-42-followup")
    print("  nothing" if not narrow else narrow.text)

    print("\nAbout an application that never was:")
    miss = lending.recall("Why was application #50 rejected?")
    print("  nothing; the nearest:", miss.rejected[0].text, "but", miss.rejected[0].reason)

    lending.close()

    print("\nFor another tenant of the same database:")
    with woodrat.open(database, tenant="insurance") as insurance:
        other = insurance.recall(question)
    print("  nothing" if not other and not other.rejected else other.text)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with TemporaryDirectory() as folder:
            main(f"{folder}/loans.db")
