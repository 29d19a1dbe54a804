"""Power cuts: in every state a cut could leave, what was acknowledged is there, whole and once."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

import pytest
from tests.faults import cutting
from tests.faults.cutting import FILE, cut_everywhere, folder, session
from tests.faults.disk import ACKNOWLEDGED, SYNC, TRUNCATE, UNLINK, WRITE, Crashes, Op, Recorder
from tests.faults.processes import FULL

from woodrat.engines.sqlite import connection
from woodrat.engines.sqlite.transaction import SqliteTransaction

SESSIONS: Final = 12 if FULL else 2
"""How many sessions are cut."""
STATES: Final = 1_700 if FULL else 150
"""How many different states are looked at in each of them."""
PLANTED: Final = 600 if FULL else 150
"""How many states are looked at to find a planted fault."""


@pytest.mark.parametrize("seed", range(SESSIONS))
def test_no_power_cut_loses_what_was_acknowledged(seed: int) -> None:
    """Whenever the power is cut and whatever of the unflushed survives, every acknowledged write is there whole."""
    tally = cut_everywhere(seed, STATES)
    print(dict(tally.states))
    assert tally.examples == []
    assert tally.states.total() >= STATES
    assert all(tally.states[how] for how in ("all", "synced", "mixed"))


def test_a_session_has_all_that_can_go_wrong() -> None:
    """The session that is cut makes the file, grows, restarts and removes its log, and takes it over many times."""
    disk = Recorder()
    with folder() as live:
        found = session(0, disk, live / FILE)
    disk.unregister()
    log = disk.log
    done = [(op.kind, op.name) for op in log]
    began = done.index((ACKNOWLEDGED, ""))
    assert (WRITE, f"{FILE}-journal") in done[:began], "the file is made under a rollback journal"
    assert done[began:].count((SYNC, FILE)) >= 4, "the log is taken over into the file"
    assert done.count((UNLINK, f"{FILE}-wal")) == 2, "the log is removed on closing"
    headers = [op for op in log if op.kind == WRITE and op.name == f"{FILE}-wal" and (op.at, len(op.data)) == (0, 32)]
    assert len(headers) >= 4, "the log is begun anew"
    longest = max(op.at for op in log if op.kind == WRITE and op.name == f"{FILE}-wal")
    assert longest > 2 * cutting.WAL_PAGES * 4096, "a reader lets the log grow"
    assert (TRUNCATE, f"{FILE}-wal") in done, "once it has gone the log is cut"
    written = [{name for name in now if now[name] != before[name]} for before, now in pairwise(found.ends)]
    assert all(len(names) == 1 for names in written), "each write is of one tenant"
    assert set().union(*written) == set(cutting.TENANTS)


# Planted faults


def test_dropped_flushes_are_caught() -> None:
    """On a disk that only pretends to flush, at least half of the states have lost something."""
    for seed in range(4 if FULL else 2):
        tally = cut_everywhere(seed, PLANTED, drops_syncs=True)
        print(f"{tally.share:.0%} of {tally.states.total()}: {dict(tally.broken)}")
        assert tally.share >= 0.5
        assert tally.broken["lost"] > 0


@contextlib.contextmanager
def sloppily() -> Iterator[None]:
    """Let connections flush only when the log is taken over."""
    real = connection.set_up

    def set_up(made: Any) -> None:
        real(made)
        made.authorizer = None
        made.execute("PRAGMA synchronous = NORMAL")
        made.authorizer = connection.authorize

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "set_up", set_up)
        yield


def test_fewer_flushes_are_caught() -> None:
    """With `synchronous = NORMAL`, which skips the flush of a commit, acknowledged writes are lost."""
    tally = cut_everywhere(0, PLANTED, around=sloppily)
    print(f"{tally.share:.0%} of {tally.states.total()}: {dict(tally.broken)}")
    assert tally.broken["lost"] >= 10
    assert set(tally.broken) == {"lost"}, "nothing is half there"


@contextlib.contextmanager
def in_two_parts() -> Iterator[None]:
    """Let every write that has two entries or more be committed in two parts."""
    real = SqliteTransaction.__init__

    def init(self: SqliteTransaction, *given: Any) -> None:
        real(self, *given)
        run, many, added = self.execute, self._executemany, self.queries["add_entry"]

        def halved(statement: str, rows: Iterable[Any]) -> Any:
            rows = list(rows)
            if statement == added and len(rows) > 1:
                many(statement, rows[: len(rows) // 2])
                run("COMMIT")
                run("BEGIN IMMEDIATE")
                rows = rows[len(rows) // 2 :]
            return many(statement, rows)

        self._executemany = halved  # type: ignore[assignment]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteTransaction, "__init__", init)
        yield


def test_a_write_in_two_parts_is_caught() -> None:
    """An engine that commits a batch in two transactions is seen to leave half of it."""
    tally = cut_everywhere(0, PLANTED, around=in_two_parts)
    print(f"{tally.share:.0%} of {tally.states.total()}: {dict(tally.broken)}")
    assert tally.broken["partial"] + tally.broken["damaged"] >= 10
    assert tally.broken["lost"] == 0


# The model of the disk


def test_what_a_flush_promises() -> None:
    """A flush keeps what was written to its own file before; a new log's first flush keeps the names as well."""
    crashes = Crashes(random.Random(0))
    for op in (
        Op("link", 1, "a"),
        Op("write", 1, "a", 0, b"xy"),
        Op("sync", 1, "a"),
        Op("link", 2, "a-wal"),
        Op("write", 2, "a-wal", 0, b"one"),
    ):
        crashes.read(op)
    assert crashes.synced().files == {}
    assert crashes.all().files == {"a": b"xy", "a-wal": b"one"}
    crashes.read(Op("sync", 2, "a-wal"))
    assert crashes.synced().files == {"a": b"xy", "a-wal": b"one"}
    crashes.read(Op("write", 2, "a-wal", 1, b"NE!"))
    crashes.read(Op("write", 1, "a", 4, b"z"))
    crashes.read(Op("unlink", 2, "a-wal"))
    assert crashes.all().files == {"a": b"xy\0\0z"}
    assert crashes.synced().files == {"a": b"xy", "a-wal": b"one"}
    seen = {(bytes(files.get("a", b"")), bytes(files.get("a-wal", b"-"))) for files in _some(crashes)}
    assert {found[0] for found in seen} == {b"xy", b"xy\0\0z", b"xy\xa5\xa5z"}
    assert {found[1] for found in seen} >= {b"-", b"one", b"oNe", b"oNE", b"oNE!"}
    crashes.read(Op("failed sync", 1, "a"))
    crashes.read(Op("sync", 1, "a"))
    assert crashes.synced().files["a"] == b"xy", "what a failed flush dropped does not come back"


def _some(crashes: Crashes) -> Iterator[dict[str, bytes | bytearray]]:
    for _ in range(300):
        yield crashes.mixed().files
