"""Power cuts: a writing session on a disk that remembers, and what must hold in every state a cut could leave."""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from tests.faults.disk import ACKNOWLEDGED, BEGUN, Crashes, Recorder, State, cuts

from woodrat import Ledger
from woodrat.canon.ids import TenantId
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.log import tree
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

FILE: Final = "l.db"
TENANTS: Final = ("acme", "globex", "initech")
WRITES: Final = 26
"""How many writes a session makes."""
WAL_PAGES: Final = 40
"""Size at which a session's write-ahead log is taken over: small, so that it happens often."""
OBSERVED: Final = "2025-06-01T09:00:00Z"

Ends = dict[str, tuple[int, bytes]]
"""Size and root of each tenant's log."""


def place() -> str | None:
    """Return where to put states: in memory, where the machine has a place for that."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(dir=place()) as name:
        yield Path(name)


# A session


def tenant_for(number: int) -> str:
    """Return whose log a write goes to; the writes about one note go to one log."""
    return TENANTS[(number // 9 if number % 9 in (0, 1, 3, 7) else number) % len(TENANTS)]


def deed(ledger: Ledger, seed: int, number: int) -> None:
    """Carry out one write of a session under its own key; each adds at least one entry."""
    chance = random.Random(seed * 1000 + number)
    key = f"key-{number}"
    kind = number % 9
    note = f"memo/{number - number % 9}"
    if kind == 1:
        ledger.correct(note, {"by": f"hand {number}"}, observed_at=OBSERVED, idempotency_key=key)
    elif kind == 3:
        ledger.delete(note, observed_at=OBSERVED, idempotency_key=key)
    elif kind == 5:
        ledger.sources.add(chance.randbytes(chance.randrange(20_000)) + key.encode(), name=key, idempotency_key=key)
    elif kind == 7:
        ledger.restore(note, observed_at=OBSERVED, idempotency_key=key)
    else:
        records: list[dict[str, Any]] = [{"entity_type": "memo", "id": f"{number}", "text": "x" * chance.randrange(99)}]
        for index in range(chance.randrange(12)):
            city = f"{number}.{index}"
            records.append({"entity_type": "contact", "name": f"{chance.randrange(5)}", "city": city})
        if kind == 4:
            records.append({"entity_type": "paper", "id": f"{number}", "text": "long " * chance.randrange(12_000)})
        ledger.store(records, observed_at=OBSERVED, idempotency_key=key)


def ends(engine: SqliteEngine) -> Ends:
    """Return the end of each tenant's log."""
    found: Ends = {}
    for tenant in TENANTS:
        with engine.view(TenantId(tenant)) as view:
            head = view.head()
            found[tenant] = (head.size, head.frontier.root())
    return found


@dataclass
class Session:
    """What was written, and where each log ended after each write."""

    seed: int
    disk: Recorder
    ends: list[Ends] = field(default_factory=list)


def session(seed: int, disk: Recorder, path: Path) -> Session:
    """Write to a new file, take its log over now and then, keep a reader in the way, close it and open it again."""
    found = Session(seed, disk)
    clock = FixedClock(seed=str(seed))
    patch = pytest.MonkeyPatch()
    patch.setattr("woodrat.engines.sqlite.write_ahead_log.WAL_PAGES", WAL_PAGES)
    patch.setattr("woodrat.engines.sqlite.write_ahead_log.LARGE_BYTES", 2 * WAL_PAGES * 4096)
    engine = SqliteEngine(path, vfs=disk.name)
    try:
        found.ends.append(ends(engine))
        with contextlib.ExitStack() as reader:
            for number in range(WRITES):
                if number == WRITES // 3:
                    reader.enter_context(engine.view(TenantId(TENANTS[0]))).head()
                elif number == WRITES // 2:
                    reader.close()
                elif number == 2 * WRITES // 3:
                    engine.close()
                    engine = SqliteEngine(path, vfs=disk.name)
                ledger = ledger_on(engine, tenant_for(number), clock=clock)
                disk.mark(BEGUN)
                deed(ledger, seed, number)
                disk.mark(ACKNOWLEDGED)
                found.ends.append(ends(engine))
                if number % 6 == 2:
                    ledger.fingerprint()
    finally:
        engine.close()
        patch.undo()
    return found


# What must hold


class Broken(Exception):
    """A state in which something acknowledged is lost, or something is half there."""

    def __init__(self, kind: str, what: object) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind


def examine(path: Path, known: Sequence[Ends], crashes: Crashes, seed: int, thorough: int) -> None:
    """Raise `Broken` unless the file holds every acknowledged write whole, and nothing that was not written.

    The logs must end as after the last acknowledged write, or as after the one that had begun. Every `thorough` also
    looks at every entry, sends the next write again and again, or rebuilds what is derived.
    """
    try:
        engine = SqliteEngine(path)
    except Exception as error:
        raise Broken("unopened", repr(error)) from error
    try:
        sound = engine._writer.connection.execute("PRAGMA integrity_check").get
        if sound != "ok":
            raise Broken("damaged", sound)
        now = ends(engine)
        allowed = known[crashes.acknowledged : crashes.begun + 1]
        if now not in allowed:
            sizes = [{tenant: size for tenant, (size, _) in one.items()} for one in (now, *allowed)]
            whole = now in known
            raise Broken("lost" if whole else "partial", f"the logs end at {sizes[0]}, not at one of {sizes[1:]}")
        if thorough % 4 == 0:
            _check_entries(engine)
        if thorough % 4 == 1 and crashes.acknowledged < WRITES:
            _retry(engine, known, crashes.acknowledged, seed)
        if thorough % 16 == 3:
            for tenant in TENANTS:
                if not ledger_on(engine, tenant).rebuild().agreed:
                    raise Broken("derived", f"what is derived in {tenant} is not what the log gives")
            if ends(engine) != now:
                raise Broken("derived", "a rebuild changed the log")
    except Broken:
        raise
    except Exception as error:
        raise Broken("damaged", repr(error)) from error
    finally:
        engine.close()


def _check_entries(engine: SqliteEngine) -> None:
    """Every entry is what was written, and every write whole."""
    for tenant in TENANTS:
        with engine.view(TenantId(tenant)) as view:
            entries = list(view.entries())
            leaves = list(view.leaves(len(entries)))
            root = view.head().frontier.root()
        for entry in entries:
            entry.check()
        if leaves != [entry.leaf() for entry in entries] or tree.root(leaves) != root:
            raise Broken("damaged", f"the tree of {tenant} is not that of its entries")
        at = 0
        while at < len(entries):
            length = entries[at].envelope.length
            if length is None or {entry.envelope.write for entry in entries[at : at + length]} != {at}:
                raise Broken("partial", f"the write at {at} of {tenant} is not whole")
            at += length
        if at != len(entries):
            raise Broken("partial", f"the last write of {tenant} is not whole")


def _retry(engine: SqliteEngine, known: Sequence[Ends], number: int, seed: int) -> None:
    """The write that was not acknowledged, sent again as often as one likes, is there once."""
    ledger = ledger_on(engine, tenant_for(number), clock=FixedClock(seed="again"))
    for _ in range(2):
        deed(ledger, seed, number)
        sizes, wanted = (
            {tenant: size for tenant, (size, _) in one.items()} for one in (ends(engine), known[number + 1])
        )
        if sizes != wanted:
            raise Broken("repeated", f"after a retry the logs end at {sizes}, not at {wanted}")


# The regime


@dataclass
class Tally:
    """What became of the states of a session."""

    states: Counter[str] = field(default_factory=Counter)
    """How many different states were looked at, by how they were made."""
    broken: Counter[str] = field(default_factory=Counter)
    """How many of them were broken, by what was wrong."""
    examples: list[str] = field(default_factory=list)
    """The first of these."""

    @property
    def share(self) -> float:
        """Which part was broken."""
        return self.broken.total() / self.states.total()


def cut_everywhere(
    seed: int,
    wanted: int,
    *,
    drops_syncs: bool = False,
    around: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
) -> Tally:
    """Record a session, and look at so many different states of it, spread over all its points.

    `around` is entered while the session is recorded, and left before its states are looked at.
    """
    chance = random.Random(seed)
    tally, seen = Tally(), set[tuple[object, ...]]()
    disk = Recorder(drops_syncs=drops_syncs)
    with folder() as live, around():
        found = session(seed, disk, live / FILE)
    disk.unregister()
    # Each round takes other states at every point; a short one takes every so many points.
    step = max(1, 3 * len(disk.log) // wanted)
    rounds = 0
    with folder() as ground:
        while tally.states.total() < wanted and rounds < 50:
            first = chance.randrange(step)
            for at, crashes in enumerate(cuts(disk.log, chance)):
                if at % step != first:
                    continue
                makers = (crashes.mixed,) * 2 if rounds else (crashes.all, crashes.synced, crashes.mixed)
                for make in makers:
                    _look(make(), crashes, found, ground, tally, seen, f"seed {seed}, point {at}")
            rounds += 1
    return tally


def _look(
    state: State,
    crashes: Crashes,
    found: Session,
    ground: Path,
    tally: Tally,
    seen: set[tuple[object, ...]],
    where: str,
) -> None:
    if state.key in seen:
        return
    seen.add(state.key)
    tally.states[state.how] += 1
    state.put(ground)
    try:
        examine(ground / FILE, found.ends, crashes, found.seed, tally.states.total())
    except Broken as broken:
        tally.broken[broken.kind] += 1
        if len(tally.examples) < 5:
            tally.examples.append(f"{where}, {state.how}, {crashes.acknowledged} acknowledged: {broken}")
