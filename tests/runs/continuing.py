"""A process that takes part in a run of another: told by its environment alone.

`python -m tests.runs.continuing FILE` decides something in the run it was started from and begins one inside of it.
"""

from __future__ import annotations

import sys

import woodrat
from woodrat.runs.recorder.decisions import decide
from woodrat.runs.rules import Rule


def main() -> None:
    ledger = woodrat.open(sys.argv[1], agent="loan-officer")
    with ledger.runs.continue_() as run:
        decide("elsewhere", {"creditScore": 580}, [Rule("yes", {"creditScore": {"lt": 600}})])
        run.store({"entity_type": "memo", "name": "n", "count": 1})
    with ledger.run("A run of its own") as own:
        pass
    print(run.id, own.id)


if __name__ == "__main__":
    main()
