"""A writing process for the fault tests: it writes, and acknowledges each write on its output once it is durable.

    python -m tests.faults.writer FILE NAME [--from N] [--early]

It says `opening` and `ready`, waits for a line of input, and then writes until its input ends, one line per write:
the write's number and the log's position after it. `--early` is a planted fault: it acknowledges before it writes.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from typing import Any, Final

import woodrat

THINGS: Final = 5
"""How many entities all writes of all processes speak of, besides one memo for each write."""


def marker(name: str, number: int) -> str:
    """Return the key of the memo that only this write makes."""
    return f"{name}-{number}"


def write(ledger: woodrat.Ledger, name: str, number: int) -> woodrat.Report:
    """Carry out one write under its own idempotency key; equal arguments make an equal request."""
    mine: dict[str, Any] = {"entity_type": "memo", "id": marker(name, number), "by": name}
    records: list[dict[str, Any]] = [mine]
    for offset in range(number % 5):
        thing = f"{(number + offset) % THINGS}"
        records.append({"entity_type": "contact", "name": thing, "city": f"{name} {number}.{offset}"})
        records.append({"entity_type": "tally", "id": thing, "seen": number, "by": name})
    if number % 7 == 3:
        mine["$"] = {"relate": [{"type": "about", "to": f"memo/{marker(name, number)}"}]}
    return ledger.store(records, idempotency_key=f"key-{name}-{number}", observed_at="2026-01-01T00:00:00Z")


def main() -> None:
    """Write until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("name")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--early", action="store_true")
    given = parser.parse_args()
    _say("opening")
    ledger = woodrat.open(given.file, agent=given.name)
    _say("ready")
    sys.stdin.readline()
    ended = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    number = given.first
    while not ended.is_set():
        if given.early:
            _say(f"{number} -1")
        report = write(ledger, given.name, number)
        if not given.early:
            _say(f"{number} {report.position}")
        if number % 16 == 1:
            ledger.fingerprint()
        number += 1
    ledger.close()


def _say(line: str) -> None:
    """Write a line past all buffers: what was said was said, even when the process dies."""
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    main()
