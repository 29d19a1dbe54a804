"""Fixtures: the base of the contract's tests, and their shared checks."""

from __future__ import annotations

import hashlib
import io
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

from woodrat import Ledger, NotFound, Refused
from woodrat.canon import form
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.ledger.read import Reader
from woodrat.state.asof import AsOf
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import (
    EARLY,
    LATE,
    LATEST,
    THING,
    THING_2,
    answers,
    fold_at,
    indexes_of,
    kept_of,
    ledger_on,
    log_of,
    position_of,
    same_state,
    spelled,
)

LONG: Final = 220
"""Least number of observations in the long history of one entity."""


def log_that_repeats() -> bytes:
    """Return an exported log, valid in all its parts, with one observation at both positions 0 and 2."""
    ledger = ledger_on(InMemoryEngine(), agent="elsewhere", clock=FixedClock(seed="repeats"))
    for key in "ab":
        ledger.store({"entity_type": "memo", "id": key, "x": 1}, observed_at=EARLY)
    out = io.BytesIO()
    ledger.log.export(out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    nonce = bytes(range(16))
    again = {**lines[0], "position": 2, "nonce": nonce.hex(), "recorded_at": "2026-02-01T00:00:00.000000Z"}
    again["envelope"] = {**lines[0]["envelope"], "write": 2}
    again["commitment"] = hashlib.sha256(nonce + form.encode(again["body"])).hexdigest()
    return b"".join(json.dumps(line).encode() + b"\n" for line in (*lines, again))


def everything(engine: Engine, ledger: Ledger | None = None) -> Any:
    """Return all that can be read of tenant `t`, from the log, the ledger and the indexes."""
    keys = [("a", "k"), ("a", "k2"), ("a", "lleida"), ("b", "k")]
    past = (ledger or ledger_on(engine)).at("now")
    return log_of(engine), spelled(answers(past)), indexes_of(engine, "t", keys, past.context.policies)


def next_write_works(engine: Engine, key: str) -> None:
    ledger = ledger_on(engine, clock=FixedClock("2026-03-01T00:00:00.000000Z", seed="next"))
    size = position_of(engine) + 1
    report = ledger.store({"entity_type": "memo", "id": "next", "x": 1}, idempotency_key=key)
    assert report.positions == (size,) and not report.repeated
    assert ledger.show("memo/next").fields["x"] == 1
    assert ledger.fingerprint() == ledger.at("now").fingerprint()


def derived_is_true(engine: Engine) -> None:
    """Assert that all stored merge state of tenant `t` equals a fold of its observations."""
    ledger = ledger_on(engine)
    assert ledger.fingerprint() == ledger.at("now").fingerprint()
    policies = registry(())
    with engine.view(ledger.tenant) as view:
        head = view.head().position
        for ref in view.entities(None, head):
            kept = kept_of(view, ref, head)
            if kept is not None:
                rules = Reader(view, AsOf(kept.position), policies).rules(ref.type)
                assert same_state(kept.state, fold_at(view, kept.state.members, rules, kept.position), rules)


def long_history(engine: Engine) -> Ledger:
    """Say more than `LONG` things of thing/1 in every way a surface knows, by a fixed chance; return the ledger."""
    chance = random.Random(1)
    clock = FixedClock()
    ledgers = [ledger_on(engine, agent=agent, clock=clock) for agent in "ab"]
    ledgers[0].schemas.register(THING)
    said: list[str] = []
    originals: list[str] = []
    for number in range(LONG + 40):
        ledger = chance.choice(ledgers)
        when = chance.choice((None, None, EARLY, LATE, LATEST))
        deed = chance.choice(("store",) * 6 + ("correct", "correct", "stand in", "retract", "mark", "bulk"))
        try:
            if deed == "correct":
                field: tuple[str, Any] = chance.choice(
                    (
                        ("city", f"c{number}"),
                        ("tags", ["x", number]),
                        ("rank", number),
                        ("born", None),
                        ("best", -number),
                    )
                )
                report = ledger.correct("thing/1", dict([field]), observed_at=when, priority=chance.randint(-1, 1))
            elif deed == "stand in" and originals:
                field = chance.choice((("total", number), ("log", [number, number])))
                report = ledger.correct("thing/1", dict([field]), replaces=chance.choice(originals), observed_at=when)
            elif deed == "retract" and said:
                report = ledger.retract(chance.sample(said, min(2, len(said))), observed_at=when)
            elif deed == "mark":
                deleted = ledger.show("thing/1").deleted
                report = ledger.restore("thing/1") if deleted else ledger.delete("thing/1", observed_at=when)
            elif deed == "bulk":
                record = {"entity_type": "thing", "id": "1"}
                report = ledger.store([{**record, "total": number + n, "log": [n]} for n in range(3)], observed_at=when)
                originals.extend(report.observations)
            else:
                record = {"entity_type": "thing", "id": "1"}
                some = {
                    "city": f"s{number % 7}",
                    "rank": number % 5,
                    "born": number,
                    "best": chance.choice((number, str(number), [number])),
                    "tags": [number % 9, str(number % 3)],
                    "total": chance.choice((number, f"{number}.5")),
                    "log": [f"l{number}"],
                    "$": {"remove": {"tags": [chance.randint(0, 8)]}},
                }
                chosen = {name: some[name] for name in chance.sample(sorted(some), chance.randint(1, 4))}
                report = ledger.store({**record, **chosen}, observed_at=when, priority=chance.randint(-1, 1))
                if {"total", "log"} <= set(chosen):
                    originals.extend(report.observations)
        except (NotFound, Refused):
            continue
        said.extend(report.observations)
        if number == LONG // 2:
            ledgers[0].schemas.register(THING_2)
    return ledgers[0]


class Contract:
    """What every engine must do. Subclass it, name the subclass Test…, and define how to make an engine."""

    def make_engine(self) -> Engine:
        """Return a fresh, empty engine."""
        raise NotImplementedError

    @pytest.fixture
    def engine(self) -> Iterator[Engine]:
        """A fresh engine, closed afterwards."""
        engine = self.make_engine()
        yield engine
        engine.close()
