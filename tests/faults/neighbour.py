"""A second process for the tests of a second SQLite: it does what a line of input says, and answers in a line of JSON.

open FILE, store ID (and says where), close, race N (store N memos, opening and closing between them)
gate FILE (whether the gate is free), check FILE (the positions of every memo, in a log that was found sound)
plain (from now on this system has no locks of descriptors)
"""

from __future__ import annotations

import json
import sys
from typing import Final

from tests.faults.processes import TENANT, check_log

import woodrat
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.sqlite import file_lock, writer_queue
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.testing.ledgers import ledger_on

EVERY: Final = 5
"""How many memos are stored in a race before the ledger is closed and opened again."""


def main() -> None:
    """Do what the input says until it ends."""
    ledger: woodrat.Ledger | None = None
    file = ""
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        answer: object = "done"
        if command == "plain":
            file_lock.SET_LOCK = None
        elif command == "open":
            file = argument
            ledger = woodrat.open(file, agent="neighbour")
        elif command == "race":
            answer = _race(file, int(argument))
        elif command == "gate":
            answer = _is_free(argument + writer_queue.SUFFIX)
        elif command == "check":
            answer = _positions(argument)
        else:
            assert ledger is not None
            if command == "store":
                answer = ledger.store({"entity_type": "memo", "id": argument}).position
            else:
                ledger.close()
        print(json.dumps(answer), flush=True)


def _race(file: str, count: int) -> dict[str, int]:
    stored = {}
    for first in range(0, count, EVERY):
        with woodrat.open(file, agent="neighbour") as ledger:
            for number in range(first, min(first + EVERY, count)):
                stored[f"raced {number}"] = ledger.store({"entity_type": "memo", "id": f"raced {number}"}).position
    return stored


def _is_free(path: str) -> bool:
    import fcntl

    with open(path, "r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, writer_queue.GATE)
        except OSError:
            return False
    return True


def _positions(file: str) -> dict[str, list[int]]:
    engine = SqliteEngine(file)
    try:
        check_log(engine)
        assert ledger_on(engine, TENANT).verify().sound
        with engine.view(TENANT) as view:
            head = view.head().position
            memos = [ref for ref in view.entities(None, head) if ref.type == "memo"]
            return {ref.key: [one.position for one in view.observations(ref.digest, BEFORE_ALL, head)] for ref in memos}
    finally:
        engine.close()


if __name__ == "__main__":
    main()
