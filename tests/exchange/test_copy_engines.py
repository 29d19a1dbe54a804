"""Copying a log between engines: the same bytes, roots, proofs and answers, also after a copy was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import woodrat
from woodrat import Refused
from woodrat.exchange.verbs.copy import shown_place
from woodrat.proofs.verbs.keys import init

RECORDS = 1_200

COPY = """
import sys, woodrat
woodrat.copy(sys.argv[1], sys.argv[2], keys=sys.argv[3], progress=lambda done, all: print(done, flush=True))
"""


def test_a_ledger_goes_to_postgresql_and_back(postgres_url: str, tmp_path: Path) -> None:
    """A log with schemas, an erasure and runs is the same in both: entries, roots, checkpoints, state and receipts."""
    path, back, keys = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "keys"
    init(keys)
    with woodrat.open(path, keys=keys) as ledger:
        first = ledger.store(
            [{"entity_type": "contact", "name": "Ana Rivera", "city": "Vic"}, {"entity_type": "memo", "id": "1"}],
            idempotency_key="k",
        )
        with ledger.run("why", subject="contact/Ana Rivera") as run:
            run.note("looked")
            run.answer("so")
        fingerprint, head = ledger.fingerprint(), ledger.position
        checkpoint = ledger.proofs.checkpoint().checkpoint
        entries = _lines(ledger)
    there = woodrat.copy(path, postgres_url, keys=keys)
    again = woodrat.copy(postgres_url, back, keys=keys)
    assert there.root == again.root == bytes(checkpoint.root).hex()
    assert there.entries == checkpoint.size
    assert there.fingerprint == again.fingerprint == fingerprint
    assert there.entries == again.entries == head + 1
    for place in (postgres_url, back):
        with woodrat.open(place) as copied:
            assert _lines(copied) == entries
            assert copied.fingerprint() == fingerprint
            assert copied.verify(deep=True).sound
            repeated = copied.store(
                [{"entity_type": "contact", "name": "Ana Rivera", "city": "Vic"}, {"entity_type": "memo", "id": "1"}],
                idempotency_key="k",
            )
            assert (repeated.position, repeated.repeated) == (first.position, True)
            assert copied.position == head


def _lines(ledger: woodrat.Ledger) -> list[str]:
    return [str(entry.to_json()) for entry in ledger.log.entries(limit=1_000)]


def test_a_copy_that_was_killed_goes_on(postgres_url: str, tmp_path: Path) -> None:
    """What a killed copy left is neither made anew nor taken for another log, in a database as in a file."""
    path = tmp_path / "a.db"
    with woodrat.open(path) as ledger:
        ledger.store([{"entity_type": "memo", "id": str(number)} for number in range(100)])
        for number in range(100, RECORDS, 100):
            ledger.store([{"entity_type": "memo", "id": str(part)} for part in range(number, number + 100)])
        fingerprint = ledger.fingerprint()
    for target in (postgres_url, str(tmp_path / "b.db")):
        command = [sys.executable, "-c", COPY, str(path), target, str(tmp_path / "keys")]
        copying = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert copying.stdout is not None
        assert int(copying.stdout.readline()) < RECORDS
        os.kill(copying.pid, signal.SIGKILL)
        copying.communicate()
        with woodrat.open(target if target == postgres_url else f"{target}.part", readonly=True) as partial:
            begun = partial.position + 1
        assert begun > 0
        if target != postgres_url:
            assert not os.path.exists(target)
        found = woodrat.copy(path, target, keys=tmp_path / "keys")
        assert found.fingerprint == fingerprint
        with woodrat.open(target) as copied:
            assert copied.position == found.through
            assert copied.verify().sound
            copied.store({"entity_type": "memo", "id": "own"})
        with pytest.raises(Refused, match=r"entries of default already, which"):
            woodrat.copy(path, target, keys=tmp_path / "keys")


def test_a_target_with_another_log_is_refused(postgres_url: str, tmp_path: Path) -> None:
    """A target that holds something else of this tenant is left as it is, and no message shows a password."""
    for place, name in ((tmp_path / "a.db", "1"), (postgres_url, "2")):
        with woodrat.open(place) as ledger:
            ledger.store({"entity_type": "memo", "id": name})
    with pytest.raises(Refused, match="not the beginning of the log to copy"):
        woodrat.copy(tmp_path / "a.db", postgres_url)
    with pytest.raises(Refused, match="is the ledger to copy"):
        woodrat.copy(postgres_url, postgres_url)
    assert shown_place("postgresql://ana:secret@db/agents") == "postgresql://ana@db/agents"
