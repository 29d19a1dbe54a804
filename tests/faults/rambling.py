"""Rambling: ledgers told at random, by every verb there is; the same seed tells the same."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any, Final

from woodrat import Ledger, NotFound, Refused
from woodrat.engines.engine import Engine
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import THING, THING_2, ledger_on

TENANTS: Final = ("default", "other")
CITIES: Final = ("Barcelona", "Madrid", "Vic", "Girona", "L'Hospitalet", "Ærøskøbing")
TIMES: Final = ("2025-03-01T09:00:00Z", "2025-06-01T09:00:00Z", "2025-09-01T09:00:00.5Z", None)


def ramble(engine: Engine, seed: int, steps: int = 40) -> dict[str, Ledger]:
    """Tell several tenants something at random; return their ledgers."""
    chance = Random(seed)
    clock = FixedClock(seed=str(seed))
    found: dict[str, Ledger] = {}
    for tenant in TENANTS:
        agents = [ledger_on(engine, tenant, agent, clock) for agent in ("ada", "bob")]
        teller = _Teller(chance, agents)
        for _ in range(chance.randint(steps // 2, steps)):
            with suppress(NotFound, Refused):  # such as a merge of what is merged already
                chance.choice(_Teller.VERBS)(teller)
        found[tenant] = agents[0]
    return found


class _Teller:
    """Says something about a few entities."""

    def __init__(self, chance: Random, agents: list[Ledger]) -> None:
        self._chance, self._agents = chance, agents
        self._said: list[str] = []
        self._keys = 0
        self.store()

    @property
    def _agent(self) -> Ledger:
        return self._chance.choice(self._agents)

    def _ref(self) -> str:
        return self._chance.choice([f"contact/Ana {self._chance.randint(0, 3)}", f"thing/{self._chance.randint(0, 2)}"])

    def _record(self) -> dict[str, Any]:
        chance = self._chance
        if chance.random() < 0.5:
            number = chance.randint(0, 3)
            return {"entity_type": "contact", "name": f"Ana {number}", "city": chance.choice(CITIES)}
        return {
            "entity_type": "thing",
            "id": str(chance.randint(0, 2)),
            "city": chance.choice(CITIES),
            "rank": chance.choice([1, 2.5, "high", None]),
            "best": chance.randint(0, 9),
            "tags": chance.sample(["a", "b", "c", "é"], 2),
            "total": chance.choice([1, 7, "0.1"]),
            "log": [chance.choice(CITIES)],
            "email": f"{chance.randint(0, 1)}@example.com",
        }

    def store(self) -> None:
        """Store a few records, some with a key, some at stated times."""
        chance = self._chance
        given: dict[str, Any] = {}
        if chance.random() < 0.4:
            self._keys += 1
            given["idempotency_key"] = f"key-{self._keys}"
        if (when := chance.choice(TIMES)) is not None:
            given["observed_at"] = when
        if chance.random() < 0.3:
            given["valid_from"] = chance.choice(TIMES[:3])
        if chance.random() < 0.3:
            given["priority"] = chance.randint(-1, 2)
        report = self._agent.store([self._record() for _ in range(chance.randint(1, 9))], **given)
        self._said += report.observations

    def correct(self) -> None:
        """Correct a city."""
        report = self._agent.correct(self._ref(), {"city": self._chance.choice(CITIES)}, reason="so it is")
        self._said += report.observations

    def retract(self) -> None:
        """Withdraw anything that was said."""
        report = self._agent.retract(self._chance.choice(self._said))
        self._said += report.observations

    def mark(self) -> None:
        """Delete or restore."""
        self._chance.choice([self._agent.delete, self._agent.restore])(self._ref())

    def relate(self) -> None:
        """Relate two entities."""
        self._agent.relate(self._ref(), self._chance.choice(["knows", "owns"]), self._ref(), fields={"since": 2020})

    def join(self) -> None:
        """Join two entities of a type, or part what was joined."""
        one, two = (f"contact/Ana {self._chance.randint(0, 3)}" for _ in range(2))
        if self._chance.random() < 0.7:
            self._agent.merge(one, two)
        else:
            self._agent.split(one)

    def register(self) -> None:
        """Register one or the other schema."""
        self._agent.schemas.register(dict(self._chance.choice([THING, THING_2])))

    def read(self) -> None:
        """Take in a letter, and interpret it."""
        ledger, chance = self._agent, self._chance
        letter = ledger.sources.add(chance.choice(CITIES).encode() * chance.randint(1, 50), name="letter")
        with ledger.interpretations.start(letter, model="small-1", prompt="Where?", extractor="lines-1") as reading:
            self._said += reading.store(self._record()).observations

    def run(self) -> None:
        """Record a run that reads, decides and writes."""
        ref = self._ref()
        with self._agent.run(f"Is {ref} near?", subject=ref, inputs={"amount": 7}) as run:
            rules = [{"chosen": "near", "when": {"amount": {"lt": 10}}, "label": "Little"}]
            run.decide("nearness", {"amount": run.input("amount")}, rules, default="far")
            run.tool("measure", lambda: {"km": 3})
            run.store(self._record())
            run.answer("It is near.")

    def tag(self) -> None:
        """Tag the moment."""
        self._agent.tag(f"tag-{self._chance.randint(0, 9)}")

    def derive(self) -> None:
        """Ask for something that is derived on demand, or make everything again."""
        ledger, chance = self._agent, self._chance
        asked = chance.randint(0, 5)
        if asked == 0:
            ledger.fingerprint()
        elif asked == 1:
            ledger.search("ana")
        elif asked == 2:
            ledger.recall("Is it near?")
        elif asked == 3:
            ledger.reindex()
        elif asked == 4:
            ledger.impact(chance.choice(self._said))
        else:
            ledger.rebuild()

    VERBS = (store, store, store, correct, retract, mark, relate, join, register, read, run, tag, derive, derive)
