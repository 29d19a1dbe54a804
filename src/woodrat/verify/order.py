"""Proving that order does not matter: the same set, fed in many orders to fresh ledgers, ends in one fingerprint."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from woodrat.canon.ids import TenantId
from woodrat.clock import Clock
from woodrat.context import Context
from woodrat.engines import cancellation
from woodrat.engines.memory import MemoryEngine
from woodrat.engines.port import Meaning
from woodrat.ledger.plans import admit
from woodrat.ledger.read import Reader
from woodrat.ledger.write import Writer
from woodrat.merge import Policy
from woodrat.records import dataclass
from woodrat.state import fingerprint
from woodrat.state.asof import AsOf
from woodrat.state.observation import Observation

if TYPE_CHECKING:
    from woodrat.ledger.rebuild import Progress

BATCH_MAX = 200
"""Most entries that one shuffled write takes."""


@dataclass(frozen=True, slots=True)
class OrderProof:
    """What came of feeding a set in many orders."""

    observations: int
    """How many observations were shuffled."""
    shuffles: int
    """How many orders were tried."""
    fingerprint: str
    """The fingerprint of the ledger itself."""
    differing: tuple[int, ...]
    """Seeds of the orders that ended in another fingerprint; empty when order does not matter."""

    @property
    def holds(self) -> bool:
        """Whether every order ended in the same state."""
        return not self.differing

    def to_json(self) -> dict[str, Any]:
        """Return the proof as plain JSON."""
        return {
            "observations": self.observations,
            "shuffles": self.shuffles,
            "fingerprint": self.fingerprint,
            "differing": list(self.differing),
            "holds": self.holds,
        }


def prove_order(
    meanings: Sequence[Meaning],
    shuffles: int,
    expected: bytes,
    policies: Mapping[str, Policy],
    clock: Clock,
    progress: Progress | None = None,
) -> OrderProof:
    """Feed observations and schemas in `shuffles` orders, each in batches of its own, with repetitions."""
    differing: list[int] = []
    for seed in range(shuffles):
        chance = random.Random(seed)
        order = [*meanings, *chance.sample(list(meanings), min(len(meanings), 10))]
        chance.shuffle(order)
        writer = Writer(Context(MemoryEngine(), TenantId("order"), policies, clock, "prove-order"))
        start = 0
        while start < len(order):
            cancellation.check()
            batch = order[start : start + chance.randint(1, BATCH_MAX)]
            start += len(batch)
            writer.write("admit", {}, lambda draft, batch=batch: admit(draft, batch))  # type: ignore[misc]
        with writer.engine.view(writer.tenant) as view:
            root = Reader(view, AsOf(view.head().position), policies).fingerprint().root()
        if root != expected:
            differing.append(seed)
        if progress is not None:
            progress(seed + 1, shuffles)
    count = sum(isinstance(meaning, Observation) for meaning in meanings)
    return OrderProof(count, shuffles, fingerprint.text(expected), tuple(differing))
