"""Killed writers: what was acknowledged is there, whole and once, whenever the process died."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import apsw
import pytest
from tests.faults import writer
from tests.faults.processes import FULL, TENANT, Writing, check_acknowledged, check_derived, check_log

from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.errors import Corrupt
from woodrat.testing.ledgers import ledger_on

KILLS: Final = 300 if FULL else 12
"""How many writers are killed."""
LIVES: Final = 10 if FULL else 6
"""How many of them write to one file, one after the other."""
NAME: Final = "w"


@dataclass
class Life:
    """One file, and the writes that were acknowledged on it."""

    file: Path
    acknowledged: list[tuple[int, int]] = field(default_factory=list)

    @property
    def next(self) -> int:
        """The number of the write that was not acknowledged."""
        return self.acknowledged[-1][0] + 1 if self.acknowledged else 0

    def killed(self, chance: random.Random, *, opening: bool = False) -> None:
        """Let a process write, and kill it at some moment; with `opening` while it opens the file."""
        process = Writing(self.file, NAME, "--from", str(self.next))
        try:
            process.heard("opening")
            if not opening:
                process.heard("ready")
                process.go()
                process.acknowledges(chance.randrange(12))
            time.sleep(chance.random() * 0.03)  # no event says that a commit is half done
        finally:
            process.kill()
        self.acknowledged += process.acknowledged

    def check(self) -> None:
        """Assert all that must be true after a death, and that sending the last writes again changes nothing."""
        engine = SqliteEngine(self.file)
        try:
            check_log(engine)
            check_acknowledged(engine, NAME, self.acknowledged)
            check_derived(engine)
            ledger = ledger_on(engine, TENANT, NAME, SystemClock())
            if self.acknowledged:
                number, position = self.acknowledged[-1]
                again = writer.write(ledger, NAME, number)
                assert (again.repeated, again.position) == (True, position)
            # Nobody knows whether this one was stored: the client sends it again under its key.
            report = writer.write(ledger, NAME, self.next)
            self.acknowledged.append((self.next, report.position))
            check_log(engine)
            check_acknowledged(engine, NAME, self.acknowledged[-2:])
            assert writer.write(ledger, NAME, self.next - 1).repeated
        finally:
            engine.close()


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    """After kill -9 every acknowledged write is there, none is half there, and a retry stores one copy."""
    chance = random.Random(20260101)
    life = Life(tmp_path / "0.db")
    for kill in range(KILLS):
        if kill % LIVES == 0:
            life = Life(tmp_path / f"{kill}.db")
        life.killed(chance, opening=kill % LIVES == 0)
        life.check()
    assert life.next > LIVES


def test_a_writer_that_acknowledges_too_early_is_caught(tmp_path: Path) -> None:
    """A planted fault is found: a writer killed between its acknowledgement and its commit has lost a write."""
    life = Life(tmp_path / "early.db")
    for first in range(100, 400, 100):
        process = Writing(life.file, NAME, "--from", str(first), "--early")
        try:
            process.heard("ready")
            process.go()
            process.acknowledges(1)
        finally:
            process.kill()
        life.acknowledged += [(number, -1) for number, _ in process.acknowledged]
    with pytest.raises(AssertionError, match="was acknowledged and is there 0 times"):
        life.check()


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("DELETE FROM entry WHERE id = (SELECT max(id) FROM entry)", "of 9 entries"),
        ("DELETE FROM entry WHERE id = (SELECT max(id) - 2 FROM entry)", "gap"),
        ("UPDATE body SET body = X'7B7D' WHERE id = (SELECT max(id) FROM body)", "is not what was written"),
        ("UPDATE entry SET leaf = zeroblob(32) WHERE id = (SELECT max(id) - 1 FROM entry)", "leaf"),
        ("UPDATE index_row SET value = zeroblob(32) WHERE name = 'fingerprint'", "fingerprint"),
        ("DELETE FROM said WHERE id = (SELECT max(id) FROM said)", "entity|fold|state|times"),
        ("UPDATE entity SET state = (SELECT max(state) FROM entity), state_at = 5 WHERE type = 'tally'", "state|fold"),
        ("DELETE FROM receipt", "receipt"),
    ],
)
def test_the_check_finds_what_a_crash_could_leave(tmp_path: Path, damage: str, complaint: str) -> None:
    """A half write, a lost leaf or stale derived state, planted into a good file, is found by the check."""
    life = Life(tmp_path / "damaged.db")
    engine = SqliteEngine(life.file)
    ledger = ledger_on(engine, TENANT, NAME, SystemClock())
    for number in range(4):
        life.acknowledged.append((number, writer.write(ledger, NAME, number).position))
    ledger.fingerprint()
    engine.close()
    life.check()
    raw = apsw.Connection(str(life.file))
    for (trigger,) in list(raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")):
        raw.execute(f"DROP TRIGGER {trigger}")
    raw.execute(damage)
    assert raw.changes()
    raw.close()
    with pytest.raises((AssertionError, Corrupt), match=complaint):
        life.check()
