"""Background work and erasures: in every state that a kill or a power cut could leave, derived data can be trusted.

A session writes, registers schemas, takes steps of everything that trails the log, and erases. It is cut at many points
of what it wrote to the disk: with all of it there, as after `kill -9`, with nothing but what was flushed, and with some
of the rest. Whoever opens the file then must find that everything derived is what the log gives, finish what was begun,
and find no byte of what an erasure took.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import pytest
from tests.faults.cutting import FILE, folder
from tests.faults.disk import ACKNOWLEDGED, BEGUN, Crashes, Op, Recorder, State, cuts
from tests.faults.processes import FULL

from woodrat import Ledger
from woodrat.api.trailing_indexes import TRAILING
from woodrat.canon.ids import TenantId
from woodrat.engines.sqlite import connection
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.erasure.verbs import byte_scan, pending_search
from woodrat.ledger import indexer, refold, state_index, state_steps
from woodrat.ledger.read import Reader
from woodrat.merge import BUILTIN
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.state.asof import AsOf
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import fold_at, ledger_on, same_state

pytestmark = pytest.mark.timeout(3000 if FULL else 300)

SESSIONS: Final = 8 if FULL else 1
"""How many sessions are cut."""
STATES: Final = 900 if FULL else 36
"""How many different states are looked at in each."""
TENANT: Final = TenantId("t")
SECRET: Final = "zoe.zweig.of.zug"
"""What is erased: the key of an entity, and what others quote."""
POLICIES: Final = ("union", "append", "union")
ERASURE: Final = 11
"""Which write of a session erases."""


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure key, and steps that are short enough for a small log to need several."""
    make_keys(tmp_path / "keys", FixedClock())
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(tmp_path / "keys"))
    monkeypatch.setattr(refold, "STEP_ENTITIES", 2)
    monkeypatch.setattr(state_steps, "STEP_ENTITIES", 2)
    monkeypatch.setattr(byte_scan, "SCAN_BYTES", 40_000)


def schema(number: int) -> dict[str, Any]:
    """Return the next version of a schema, which merges one field otherwise."""
    tags = {"type": "array", "x-woodrat-merge": POLICIES[number % len(POLICIES)]}
    return {
        "title": "contact",
        "properties": {"tags": tags, "city": {"type": "string"}},
        "x-woodrat-identity": [["name"]],
    }


def deed(ledger: Ledger, seed: int, number: int) -> None:
    """Carry out one write of a session."""
    chance = random.Random(seed * 1000 + number)
    if number % 5 == 3:
        ledger.schemas.register(schema(number // 5))
    elif number == ERASURE:
        ledger.erase(f"contact/{SECRET}", reason="a request")
    elif number == 8:
        ledger.merge("contact/n1", "contact/n2")
    else:
        names = ["n1", "n2", "n3", *([SECRET] if number < ERASURE else [])]
        ledger.store(
            [
                {
                    "entity_type": "contact",
                    "name": name,
                    "tags": [f"t{number}", f"{name} {number}"],
                    "city": f"c{number}",
                }
                for name in chance.sample(names, 2 if number else len(names))
            ]
        )


def session(seed: int, disk: Recorder, path: Path) -> list[int]:
    """Write and take steps; return the size of the log after each write."""
    chance = random.Random(seed)
    opened = SqliteEngine(path, vfs=disk.name)
    sizes = [0]
    try:
        ledger = ledger_on(opened, TENANT, clock=FixedClock(seed=str(seed)))
        for number in range(15):
            disk.mark(BEGUN)
            deed(ledger, seed, number)
            disk.mark(ACKNOWLEDGED)
            sizes.append(ledger.position + 1)
            for _ in range(chance.randrange(6)):
                indexer.go_on(ledger.context, TRAILING, 4)
    finally:
        opened.close()
    return sizes


def examine(path: Path, sizes: list[int], crashes: Crashes) -> None:
    """Raise `AssertionError` unless the file holds what was acknowledged, and everything derived is right."""
    if crashes.begun > ERASURE:
        reading = SqliteEngine(path, readonly=True)
        with reading.view(TENANT) as view:
            assert view.purged() or pending_search.is_pending(view), "nobody knows what to search for"
        reading.close()
    opened = SqliteEngine(path)
    try:
        ledger = ledger_on(opened, TENANT, clock=FixedClock(seed="again"))
        size = ledger.position + 1
        assert size in sizes[crashes.acknowledged : crashes.begun + 1], "lost"
        check(opened, ledger)
        while indexer.go_on(ledger.context, TRAILING, 50):
            pass
        check(opened, ledger)
        assert opened.purged(), "no erasure waits"
        with opened.view(TENANT) as view:
            waits = pending_search.is_pending(view)
        finished = ledger.finish_erasure()
        assert finished.complete == waits, finished
        assert len(finished.certificates) == waits
        assert all(certificate.complete for certificate in finished.certificates)
    finally:
        opened.close()
    if size > sizes[ERASURE]:
        for file in path.parent.iterdir():
            assert SECRET.encode() not in file.read_bytes(), f"erased bytes are in {file.name}"


def check(opened: SqliteEngine, ledger: Ledger) -> None:
    """Compare everything derived with the log, and the states that readers find with whole folds."""
    report = ledger.verify(deep=True)
    assert report.sound, report.damage
    with opened.view(TENANT) as view:
        head = view.head().position
        for position in {head, head - 1, head // 2}:
            reader = Reader(view, AsOf(position), BUILTIN)
            for ref in view.entities(None, position):
                rules = reader.rules(ref.type)
                assert same_state(reader.state(ref), fold_at(view, reader.group(ref), rules, position), rules), ref


def erasing(log: Sequence[Op]) -> range:
    """Return the points of a session at which it erases."""
    begun = [at for at, op in enumerate(log) if op.kind == BEGUN]
    acknowledged = [at for at, op in enumerate(log) if op.kind == ACKNOWLEDGED]
    return range(begun[ERASURE], acknowledged[ERASURE] + 1)


def cut(seed: int, wanted: int, *, erasure: bool = False, until_wrong: bool = False) -> tuple[Counter[str], list[str]]:
    """Record a session and look at so many of its states; return how they were made, and what was wrong with some.

    With `erasure` they are states of the erasure, among them all that hold nothing but what was flushed. With
    `until_wrong` it ends with the first that is wrong.
    """
    chance = random.Random(seed)
    disk = Recorder()
    with folder() as live:
        sizes = session(seed, disk, live / FILE)
    disk.unregister()
    looked, wrong, seen = Counter[str](), list[str](), set[tuple[object, ...]]()
    points = len(disk.log) + 1
    among = erasing(disk.log) if erasure else range(points)
    chosen = set(chance.sample(among, min(len(among), wanted)))
    with folder() as ground:
        for at, crashes in enumerate(cuts(disk.log, chance)):
            if looked.total() >= wanted or not (at in chosen or (erasure and at in among)):
                continue
            makers: list[Callable[[], State]] = [crashes.all, crashes.synced, crashes.mixed]
            state = makers[at % 3]() if at in chosen else crashes.synced()
            if state.key in seen:
                continue
            seen.add(state.key)
            looked[state.how] += 1
            state.put(ground)
            try:
                examine(ground / FILE, sizes, crashes)
            except Exception as error:
                wrong.append(f"seed {seed}, point {at}, {state.how}, {crashes.acknowledged}: {error!r:.300}")
                if until_wrong:
                    break
    return looked, wrong


@pytest.mark.parametrize("seed", range(SESSIONS))
def test_no_cut_leaves_derived_data_that_is_wrong(seed: int) -> None:
    """Whenever a step or an erasure is cut, what is derived agrees with the log, and the work is finished after it."""
    looked, wrong = cut(seed, STATES)
    print(dict(looked))
    assert wrong == []
    assert all(looked[how] for how in ("all", "synced", "mixed"))


@pytest.mark.parametrize("seed", range(SESSIONS))
def test_an_erasure_that_is_cut_anywhere_is_finished(seed: int) -> None:
    """Wherever an erasure is cut, opening the file and finishing it leave no byte of it, and a complete certificate."""
    looked, wrong = cut(seed, STATES, erasure=True)
    print(dict(looked))
    assert wrong == []
    assert all(looked[how] for how in ("all", "synced", "mixed"))


def test_a_session_has_work_in_every_phase(tmp_path: Path) -> None:
    """The session that is cut has schemas that wait, indexes behind the log, and an erasure with its purge."""
    disk = Recorder()
    waits, behind = 0, set[str]()
    real = indexer.go_on

    def watched(context: Any, indexes: Any, entries_max: int) -> int:
        nonlocal waits
        with context.engine.view(TENANT) as view:
            waits += bool(refold.waiting(view))
            behind.update(one.name for one in indexer.positions(view, indexes) if one.lacking)
        return real(context, indexes, entries_max)

    with pytest.MonkeyPatch.context() as patch, folder() as live:
        patch.setattr(indexer, "go_on", watched)
        session(0, disk, live / FILE)
    disk.unregister()
    assert waits >= 3
    assert {"state", "recall", refold.NAME} <= behind


# Planted faults


def _early(patch: pytest.MonkeyPatch) -> None:
    """A step says that it is done before it is."""
    real = refold._set_waiting

    def set_waiting(write: Any, types: Any) -> None:
        real(write, types)
        write.execute("COMMIT")
        write.execute("BEGIN IMMEDIATE")

    patch.setattr(refold, "_state_anew", lambda reader, root: _torn(reader, root))
    patch.setattr(refold, "_set_waiting", set_waiting)


_ANEW = refold._state_anew


def _torn(reader: Reader, root: Any) -> Any:
    """Return a state that lacks an observation."""
    kept, rules, marked = _ANEW(reader, root)
    return kept._replace(state=kept.state._replace(observations=kept.state.observations + 1)), rules, marked


def _index_first(patch: pytest.MonkeyPatch) -> None:
    """The index notes how far it goes in a transaction of its own, before its rows."""
    real = state_steps.Step.put_down

    def put_down(self: Any, write: Any) -> None:
        write.set_meta(state_index.NAME, self.after.to_bytes())
        write.execute("COMMIT")
        write.execute("BEGIN IMMEDIATE")
        real(self, write)

    patch.setattr(state_steps.Step, "put_down", put_down)


def _late_note(patch: pytest.MonkeyPatch) -> None:
    """What to search for becomes durable after the erasure, in a transaction of its own."""
    real = pending_search.note

    def note(write: Any, *given: Any) -> Any:
        write.flush()
        write.execute("COMMIT")
        write.execute("BEGIN IMMEDIATE")
        return real(write, *given)

    patch.setattr(pending_search, "note", note)


def _not_overwritten(patch: pytest.MonkeyPatch) -> None:
    """What is freed stays in the file, and nobody searches for it."""
    real = connection.set_up

    def set_up(opened: apsw.Connection) -> None:
        real(opened)
        opened.authorizer = None
        opened.execute("PRAGMA secure_delete = OFF")
        opened.authorizer = connection.authorize

    patch.setattr(connection, "set_up", set_up)
    patch.setattr(byte_scan, "scan", lambda *_: byte_scan.Finished(purged=True, searched=True))


@pytest.mark.parametrize("fault", [_early, _index_first, _not_overwritten], ids=lambda fault: fault.__name__.strip("_"))
def test_a_planted_fault_is_caught(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """States that are wrong, rows that come after their mark, and bytes that are left are all found."""
    fault(monkeypatch)
    assert any(cut(seed, 30, until_wrong=True)[1] for seed in range(4 if FULL else 2))


@pytest.mark.parametrize("fault", [_late_note], ids=lambda fault: fault.__name__.strip("_"))
def test_a_planted_fault_of_an_erasure_is_caught(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An erasure that nobody can search for is found."""
    fault(monkeypatch)
    assert any(cut(seed, 60, erasure=True, until_wrong=True)[1] for seed in range(4 if FULL else 2))
