"""Ledgers that exchange entries in any order end with the same state; doing it again changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from woodrat import Ledger
from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.exchange.verbs.copy import copy_log
from woodrat.ledger.moments import last_whole
from woodrat.log.entry import Entry
from woodrat.state.schema import Schema
from woodrat.testing.clock import FixedClock
from woodrat.testing.histories import Telling, tellings
from woodrat.testing.ledgers import ledger_on

EXAMPLES = 300 if os.environ.get("WOODRAT_LAWS") == "full" else 20
PROFILE = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
Making = Callable[[], Engine]


def entries(ledger: Ledger) -> list[Entry]:
    """Return all entries of a ledger."""
    with ledger.context.engine.view(ledger.tenant) as view:
        return list(view.entries())


def held(ledger: Ledger) -> set[tuple[str, bytes | None]]:
    """Return what a ledger holds, as a set of kinds and bodies."""
    return {(entry.kind, entry.body) for entry in entries(ledger)}


def tell(ledger: Ledger, telling: Telling, extras: Sequence[str]) -> None:
    """Say what a telling says, in writes of up to three, with a run, a tag or a source in between."""
    said = list(telling.said)
    for number, extra in enumerate(extras):
        part, said = said[:3], said[3:]
        if part:
            ledger.admit(("schema" if isinstance(one, Schema) else "observation", one.body) for one in part)
        if extra == "run":
            with ledger.run(f"Question {number}?", subject="thing/a") as run:
                run.note("looked")
                if found := ledger.query(entity_type="thing").items:
                    run.show(str(found[0].entity))
                run.answer("Yes.")
        elif extra == "tag" and entries(ledger):
            ledger.tag(f"tag-{number}")
        elif extra == "source":
            ledger.sources.add(f"letter {number}".encode(), name=f"{number}.txt")
        elif extra == "store":
            ledger.store({"entity_type": "contact", "name": "Ana", "city": f"c{number}"})
    if said:
        ledger.admit(("schema" if isinstance(one, Schema) else "observation", one.body) for one in said)


EXTRAS = st.lists(st.sampled_from(("run", "tag", "source", "store", "")), min_size=1, max_size=3)


def exchanged(data: st.DataObject, make: Making, count: int) -> None:
    """Let ledgers with random histories sync in random pairs and directions until nothing moves, and compare them."""
    ledgers: list[Ledger] = []
    for number in range(count):
        clock = FixedClock(f"202{number}-01-01T00:00:00.000000Z", seed=str(number))
        ledger = ledger_on(make(), agent=f"agent-{number}", clock=clock)
        if number and data.draw(st.booleans(), "is a clone"):
            ledger.log.sync(data.draw(st.sampled_from(ledgers)), push=False)
        tell(ledger, data.draw(tellings(size_max=4)), data.draw(EXTRAS))
        ledgers.append(ledger)
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    for a, b in data.draw(st.lists(st.sampled_from(pairs), max_size=4)):
        pull = data.draw(st.booleans())
        ledgers[a].log.sync(ledgers[b], pull=pull, push=not pull or data.draw(st.booleans()))
        if data.draw(st.booleans()):
            tell(ledgers[a], data.draw(tellings(size_max=2)), data.draw(EXTRAS))
    order = data.draw(st.permutations(pairs))
    for _ in range(count):  # news of one may have to come by way of all others
        for a, b in order:
            ledgers[a].log.sync(ledgers[b], push=False)
    heads = [len(entries(ledger)) for ledger in ledgers]
    assert len({ledger.fingerprint() for ledger in ledgers}) == 1
    assert len({frozenset(held(ledger)) for ledger in ledgers}) == 1
    for a, b in order:
        synced = ledgers[a].log.sync(ledgers[b])
        assert synced.same
        assert not any(found and found.changed for found in (synced.pulled, synced.pushed))
    assert [len(entries(ledger)) for ledger in ledgers] == heads
    for ledger in ledgers:
        came = [(entry.kind, entry.body) for entry in entries(ledger) if entry.envelope.origin is not None]
        assert len(came) == len(set(came)), "what is known is not taken in again"
        assert ledger.rebuild().agreed
        assert ledger.fingerprint() == ledgers[0].fingerprint()


@given(st.data(), st.integers(2, 4))
@PROFILE
def test_exchange_in_any_order_ends_in_one_state(data: st.DataObject, count: int) -> None:
    """Ledgers that exchange entries of all kinds end with one fingerprint and one set of entries, then stay still."""
    exchanged(data, InMemoryEngine, count)


@given(st.data())
@settings(PROFILE, max_examples=EXAMPLES // 3)
def test_exchange_between_files_ends_in_one_state(data: st.DataObject) -> None:
    """The same holds for SQLite, and between SQLite and memory."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        made = 0

        def make() -> Engine:
            nonlocal made
            made += 1
            if made == 2:
                return InMemoryEngine()
            engine = SqliteEngine(Path(folder) / f"{made}.db")
            stack.callback(engine.close)
            return engine

        exchanged(data, make, 3)


@given(st.data())
@PROFILE
def test_a_copy_through_any_position_is_the_state_then(data: st.DataObject) -> None:
    """Restored through a position, whole writes of it, a ledger has the root and fingerprint that its as-of has."""
    ledger = ledger_on(InMemoryEngine())
    tell(ledger, data.draw(tellings(size_max=5)), data.draw(EXTRAS))
    with ledger.context.engine.view(ledger.tenant) as view:
        size = view.head().size
        through = last_whole(view, data.draw(st.integers(0, size - 1)) if size else -1)
        if through < 0:
            return
    target = ledger_on(InMemoryEngine(), clock=FixedClock(seed="copy"))
    found = copy_log(ledger.context.engine, TenantId("t"), target.context, through)
    assert found.fingerprint == ledger.at(through).fingerprint() == target.fingerprint()
    assert entries(target) == entries(ledger)[: through + 1]
    assert target.rebuild().agreed
    target.store({"entity_type": "thing", "id": "new"})
    assert entries(target)[-1].log != entries(ledger)[0].log


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_what_does_not_fit_is_taken_in_and_loses(names: str) -> None:
    """A claim that a schema of the other ledger refuses is merged in, kept as a loser, and both agree."""
    ledgers = {name: ledger_on(InMemoryEngine(), agent=name, clock=FixedClock(seed=name)) for name in names}
    ledgers["a"].schemas.register(
        {"title": "thing", "properties": {"city": {"type": "string"}}, "x-woodrat-identity": [["id"]]}
    )
    ledgers["a"].store({"entity_type": "thing", "id": "1", "city": "Vic"}, observed_at="2025-01-01T00:00:00Z")
    ledgers["b"].store({"entity_type": "thing", "id": "1", "city": 7}, observed_at="2025-06-01T00:00:00Z")
    one, other = ledgers.values()
    assert one.log.sync(other).same
    assert {ledger.show("thing/1").fields["city"] for ledger in ledgers.values()} == {"Vic"}
