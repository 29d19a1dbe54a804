"""An agent that can be killed in the middle: run as a process it dies where it is told, resumed it does not.

`python -m tests.runs.dying FILE EFFECTS WHERE` begins a run and kills itself with signal 9 at WHERE. FILE may be the
address of a server, with a key in `WOODRAT_TOKEN`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import woodrat
from woodrat.runs.recorder.decisions import decide
from woodrat.runs.recorder.run import Run
from woodrat.runs.recorder.tools import tool
from woodrat.runs.rules import Rule

PLACES = ("after start", "after read", "after lookup", "inside pay", "after pay", "after decision", "after write")
RULES = [
    Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    Rule("approved", {"creditScore": {"gte": 700}}, label="Good credit"),
]


def agent_with(effects: Path, die_at: str | None = None) -> Any:
    """Return an agent that leaves a line in `effects` for everything it does to the world."""

    def reached(place: str) -> None:
        if place == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def effect(what: str) -> None:
        with effects.open("a") as file:
            file.write(what + "\n")
            file.flush()
            os.fsync(file.fileno())

    @tool
    def lookup(number: int) -> dict[str, Any]:
        effect("lookup")
        return {"score": 580, "number": number}

    @tool(once=True)
    def pay(amount: int) -> str:
        effect("pay")
        reached("inside pay")
        return f"paid {amount}"

    def agent(run: Run) -> str:
        reached("after start")
        loan = run.show("loan/42")
        reached("after read")
        lookup(42)
        reached("after lookup")
        receipt = pay(100)
        reached("after pay")
        verdict = decide("classify-risk", loan, RULES, default="manual-review")
        reached("after decision")
        run.store({"entity_type": "loan", "$": {"key": "42"}, "status": verdict.chosen})
        reached("after write")
        return f"{verdict.chosen}, {receipt}"

    return agent


def main() -> None:
    file, effects, place = sys.argv[1:]
    key = os.environ.get("WOODRAT_TOKEN")
    ledger: Any = woodrat.open(file, agent="loan-officer") if key is None else woodrat.open(file, key=key)
    ledger.store({"entity_type": "loan", "$": {"key": "42"}, "creditScore": 580})
    with ledger.run("Should we approve application #42?", subject="loan/42", inputs={"application": 42}) as run:
        print(run.id, flush=True)
        run.answer(agent_with(Path(effects), place)(run))


if __name__ == "__main__":
    main()
