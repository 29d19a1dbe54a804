"""Writing: where a write goes is for its context to say."""

from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import woodrat
from woodrat.api.ledger import with_stand_in
from woodrat.context import Context
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import facts, reads, subscriptions
from woodrat.ledger.subscriptions import Notices
from woodrat.ledger.write import Call
from woodrat.testing.ledgers import ledger_on

ANA = {"entity_type": "contact", "name": "Ana"}


class Answering:
    """Takes every write and answers what it was told to."""

    def __init__(self, answer: object) -> None:
        self.calls: list[Call] = []
        self._answer = answer

    def take(self, call: Call) -> Any:
        self.calls.append(call)
        return self._answer


def test_a_stand_in_takes_what_is_written() -> None:
    """It is handed the verb and the arguments, answers in place of the log, and the log stays as it is."""
    ledger = woodrat.open(":memory:", agent="a")
    stand_in = Answering("an answer")
    beside = with_stand_in(ledger, stand_in)
    assert beside.store(ANA, idempotency_key="k") == "an answer"
    assert facts.tag(ledger.context.taken_by(stand_in), "first") == "an answer"
    assert [(call.verb, call.key) for call in stand_in.calls] == [("store", "k"), ("tag", None)]
    assert ledger.position == -1
    assert ledger.store(ANA).position >= 0, "the ledger it was made from writes to its log"


class Listening:
    """Notes the writes it hears of."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int, int]] = []

    def wrote(self, context: Context, first: int, last: int) -> None:
        self.heard.append((context.agent, first, last))

    def stop(self) -> None:
        self.heard.append(("stop", 0, 0))


def test_listeners_hear_of_durable_writes_to_their_log() -> None:
    """Each write once, after the commit that it shares; nothing of other tenants, dry runs and what is known."""
    engine = InMemoryEngine()
    ledger, other, listener = ledger_on(engine), ledger_on(engine, "other"), Listening()
    subscriptions.listen(engine, ledger.tenant, listener)
    things = [{"entity_type": "thing", "id": str(number)} for number in range(3)]
    ledger.store(things, observed_at="2026-01-01T00:00:00Z")
    other.store(things)
    ledger.store({"entity_type": "thing", "id": "9"}, dry_run=True)
    ledger.store(things, observed_at="2026-01-01T00:00:00Z")
    assert listener.heard == [(ledger.agent, 0, 2)]
    notices = Notices()
    with notices, engine.together():
        ledger.as_agent("b").store({"entity_type": "thing", "id": "4"})
        assert len(listener.heard) == 1, "it is not durable yet"
    notices.send()
    assert listener.heard[1:] == [("b", 3, 3)]
    ledger.close()
    assert listener.heard[2:] == [("stop", 0, 0)]


def test_listeners_do_not_keep_an_engine_alive() -> None:
    """What listens goes with the engine it listens to."""
    engine = InMemoryEngine()
    subscriptions.listen(engine, ledger_on(engine).tenant, Listening())
    gone = ref(engine)
    del engine
    gc.collect()
    assert gone() is None


def test_a_room_reads_with_a_context_alone() -> None:
    """What the library answers, a function of the context answers, at whatever moment."""
    ledger = woodrat.open(":memory:", agent="a")
    ledger.store({**ANA, "city": "Vic"})
    first = ledger.position
    ledger.store({**ANA, "city": "Olot"})
    assert reads.show(ledger.context, "contact/Ana") == ledger.show("contact/Ana")
    assert reads.show(ledger.context.at(first, None), "contact/Ana").fields["city"] == "Vic"
