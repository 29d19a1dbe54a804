"""Tending: the verbs that care for a ledger as a whole.

They hand over to `keeping/` and `exchange/`, which stand above the rest of this folder; these are imported by the verb
that needs them, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.canon import ids
from woodrat.canon.ids import TenantId
from woodrat.errors import Fault, Refused, Unavailable, shown
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.past import Past
from woodrat.ledger.reading import Reader
from woodrat.ledger.writing import Writer
from woodrat.views.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from woodrat.clock import Clock
    from woodrat.engines.port import Engine, Meaning
    from woodrat.ledger.indexing import Reindexed
    from woodrat.ledger.proving import OrderProof
    from woodrat.ledger.rebuilding import Progress, Rebuilt
    from woodrat.ledger.report import Report
    from woodrat.ledger.within import Within
    from woodrat.recall.embedders import Embedder
    from woodrat.state.policy import Policy


class Tended(Past):
    """One tenant's ledger with the verbs that speak of all of it."""

    def __init__(
        self,
        engine: Engine,
        *,
        tenant: str,
        agent: str,
        clock: Clock,
        policies: Mapping[str, Policy],
        strict: bool = False,
    ) -> None:
        found = ids.tenant_faults(tenant) + ids.agent_faults(agent, "agent")
        if found:
            raise Refused(found)
        super().__init__(engine, TenantId(tenant), policies)
        self.agent = agent
        self._clock = clock
        self._strict = strict
        self._writer = Writer(engine, self.tenant, clock, agent, policies)
        self._within: Within | None = None

    def admit(self, bodies: Iterable[tuple[str, bytes]]) -> Report:
        """Take in observations and schemas another log holds, as (kind, canonical body).

        What does not fit a schema is accepted and kept as a loser that says so; what is known changes nothing.
        """
        from woodrat.ledger import proving
        from woodrat.state import observation, schema

        meanings: list[Meaning] = []
        for kind, body in bodies:
            if kind == "observation":
                meanings.append(observation.admit(body))
            elif kind == "schema":
                meanings.append(schema.admit(body))
            else:
                raise Refused([Fault("kind", f"cannot admit {shown(kind)}", "Send observations and schemas.")])
        return self._writer.write("admit", {}, lambda draft: proving.admit(draft, meanings))

    def fingerprint(self, *, provenance: bool = False) -> str:
        """Return one digest of the whole state: equal for equal sets of observations, in whatever order they came.

        It is brought up to date from the entities that changed since it was last asked for. Where nothing can be
        written, it is made from all of them and not kept.
        """
        from woodrat.state import fingerprint

        if provenance:
            return super().fingerprint(provenance=True)
        try:
            with self._engine.transaction(self.tenant) as write:
                position, tree = write.fingerprint()
                before = Reader(write, AsOf(position), self._policies)
                now = Reader(write, AsOf(write.head().position), self._policies)
                tree = now.fingerprint_since(position, tree, before)
                write.keep_fingerprint(now.asof.position, tree)
                return fingerprint.text(tree.root())
        except Unavailable:
            return super().fingerprint()

    def rebuild(self, progress: Progress | None = None) -> Rebuilt:
        """Make everything derived again from the log alone, and say of which entities something else was kept.

        It is one transaction: readers see the old until it is done, and other writers wait. `progress` is called with
        how many entries are done and how many there are. The log itself is never changed.
        """
        from woodrat.ledger import rebuilding

        return rebuilding.rebuild(self._engine, self.tenant, self._policies, progress)

    def reindex(self, embedder: Embedder | str | None = None, *, progress: Progress | None = None) -> Reindexed:
        """Embed all runs again for `recall`, and keep the vectors in place of those of this embedder.

        `recall` does this by itself for what is new. It is needed after a change of embedder on a long log. `progress`
        is called with how many entries are done and how many there are.
        """
        from woodrat.ledger import indexing
        from woodrat.recall import embedders

        return indexing.reindex(self._engine, self.tenant, embedders.check(embedder), progress)

    def _now(self) -> str | None:
        return self._clock.now()

    def prove_order(self, *, shuffles: int = 100, progress: Progress | None = None) -> OrderProof:
        """Feed everything this ledger holds in `shuffles` other orders to fresh ledgers, and compare the states.

        `progress` is called with how many orders are done and how many there are.
        """
        from woodrat.ledger import proving

        if type(shuffles) is not int or shuffles < 1:
            raise Refused([Fault("shuffles", f"got {shown(shuffles)}", "Send a number above 0.")], outcome=NO_READ)
        with self._reader() as reader:
            position = reader.asof.position
            refs = reader.view.entities(None, position)
            meanings: list[Meaning] = [stored.observation for stored in reader.stored(refs)]
            for entity_type in reader.view.schema_types(position):
                meanings += reader.view.schemas(entity_type, position)
            expected = reader.fingerprint().root()
        return proving.prove_order(meanings, shuffles, expected, self._policies, self._clock, progress)
