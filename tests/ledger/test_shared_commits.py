"""Writes that share a commit: each is whole or not at all by itself, and what is known in memory follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from woodrat import Corrupt, Ledger, Refused, Report
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.testing.ledgers import ledger_on, log_of


@pytest.fixture
def engine() -> Iterator[Engine]:
    found: Engine = InMemoryEngine()
    yield found
    found.close()


def thing(key: object, **fields: Any) -> dict[str, Any]:
    return {"entity_type": "thing", "id": str(key), **fields}


def together(engine: Engine, writes: list[Callable[[], Any]]) -> list[Any]:
    """Return the answers of writes that share a commit, or what they raised."""
    answers: list[Any] = []
    with engine.together():
        for write in writes:
            try:
                answers.append(write())
            except Exception as error:
                answers.append(error)
    return answers


def test_each_write_has_positions_a_time_and_a_report_of_its_own(engine: Engine) -> None:
    """Twenty writes about four entities are twenty writes of the log; each reports what it changed itself."""
    ledger = ledger_on(engine)
    reports = together(engine, [partial(ledger.store, thing(n % 4, n=n)) for n in range(20)])
    assert [report.positions for report in reports] == [(n,) for n in range(20)]
    assert [change.after for report in reports for change in report.changes[0].fields[-1:]] == list(range(20))
    entries = log_of(engine)["entries"]
    assert [entry["envelope"]["length"] for entry in entries] == [1] * 20
    assert len({entry["recorded_at"] for entry in entries}) == 20
    for position in range(20):
        assert ledger.at(position).show(f"thing/{position % 4}").fields["n"] == position
    assert ledger.rebuild().agreed


UNDONE: list[Callable[[Ledger], Any]] = [
    lambda ledger: ledger.store([thing("a", n=99), thing("new")], dry_run=True),
    lambda ledger: ledger.correct("thing/a", {"n": 98}, dry_run=True),
    lambda ledger: ledger.merge("thing/a", "thing/b", dry_run=True),
    lambda ledger: ledger.schemas.register({"title": "thing", "properties": {"n": {"type": "integer"}}}, dry_run=True),
    lambda ledger: ledger.delete("thing/a", dry_run=True),
    lambda ledger: ledger.store(thing("")),
]


@pytest.mark.parametrize("undone", UNDONE)
def test_an_undone_write_leaves_nothing(engine: Engine, undone: Callable[[Ledger], Any]) -> None:
    """After a dry run or a refusal neighbours go on as if it had never been, on what is known in memory as well."""
    one, other = ledger_on(engine), ledger_on(InMemoryEngine())

    def calls(ledger: Ledger) -> list[Callable[[], Any]]:
        return [
            lambda: ledger.store([thing("a", n=1), thing("b", n=1)]),
            lambda: ledger.store(thing("a", n=2)),
            lambda: ledger.store([thing("new", n=3), thing("a", m=3)], idempotency_key="k"),
            lambda: ledger.store(thing("b", n="text")),
            lambda: ledger.store(thing("new", n=3), idempotency_key="k"),
        ]

    for call in calls(other)[:4]:
        call()
    first, *rest = calls(one)
    refused = Refused if undone is UNDONE[-1] else Report
    answers = together(engine, [first, lambda: undone(one), *rest, lambda: undone(one)])
    assert [type(answer) for answer in answers] == [Report, refused, Report, Report, Report, Refused, refused]
    assert one.fingerprint() == other.fingerprint()
    for ref in ("thing/a", "thing/b", "thing/new"):
        assert [item.position for item in one.observations(ref)] == [item.position for item in other.observations(ref)]
    assert one.store(thing("c", n=1)).position == other.store(thing("c", n=1)).position
    assert one.verify().sound
    assert one.rebuild().agreed


def test_an_undone_write_forgets_only_what_it_touched(tmp_path: Path) -> None:
    """What is known of other entities stays in memory, so that a dry run costs its neighbours nothing."""
    engine = SqliteEngine(tmp_path / "l.db")
    ledger = ledger_on(engine)

    def known() -> list[str]:
        return [str(known.ref) for known in engine._writer.of(ledger.tenant).entities.values()]

    with engine.together():
        ledger.store([thing(n) for n in range(5)])
        assert len(known()) == 5
        ledger.store([thing(1, n=1), thing(9)], dry_run=True)
        assert known() == ["thing/0", "thing/2", "thing/3", "thing/4"]
    engine.close()


def test_a_key_used_twice_at_once_is_one_write(engine: Engine) -> None:
    """The same call twice under one key is stored once, and both get its report; another call is refused."""
    ledger = ledger_on(engine)
    keys = (1, 2, 1)
    first, other, second = together(engine, [partial(ledger.store, thing(n), idempotency_key="k") for n in keys])
    assert second == first.again()
    assert isinstance(other, Refused)
    assert ledger.position == 0


def test_tenants_and_agents_are_kept_apart(engine: Engine) -> None:
    """Agents of one tenant write to one log, each under its own name; another tenant has a log of its own."""
    ada, bob, far = ledger_on(engine, agent="ada"), ledger_on(engine, agent="bob"), ledger_on(engine, "far")
    writers = [(ada, 1), (far, 1), (bob, 2), (far, 2)]
    together(engine, [partial(ledger.store, thing(n)) for ledger, n in writers])
    assert [item.observation.agent for n in (1, 2) for item in ada.observations(f"thing/{n}")] == ["ada", "bob"]
    assert far.position == 1


def test_damage_fails_the_call_that_meets_it(tmp_path: Path) -> None:
    """Kept state that cannot be read fails the one call that needs it; its neighbours are stored."""
    path = tmp_path / "damaged.db"
    engine = SqliteEngine(path)
    ledger_on(engine).store([thing(n) for n in range(4)])
    engine.close()
    file = apsw.Connection(str(path))
    file.execute("UPDATE entity SET state = x'ff00ff' WHERE key = '2'")
    file.close()
    engine = SqliteEngine(path)
    ledger = ledger_on(engine)
    answers = together(engine, [partial(ledger.store, thing(n, n=n)) for n in range(4)])
    assert [type(answer) for answer in answers] == [Report, Report, Corrupt, Report]
    assert [ledger.show(f"thing/{n}").fields.get("n") for n in (0, 1, 3)] == [0, 1, 3]
    with suppress(Corrupt):
        engine.close()


def test_a_value_two_calls_share_is_hinted_to_the_later(engine: Engine) -> None:
    """Of two entities that share an identifying value the later call is told."""
    ledger = ledger_on(engine)
    ledger.schemas.register({"title": "thing", "properties": {}, "x-woodrat-identity": [["id"], ["email"]]})
    first, second = together(engine, [partial(ledger.store, thing(n, email="a@b.c")) for n in (1, 2)])
    assert first.hints == ()
    assert "thing/2 and thing/1 share" in second.hints[0]
