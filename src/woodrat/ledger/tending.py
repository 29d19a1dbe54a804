"""Tending: the verbs that care for a ledger as a whole.

They hand over to `keeping/` and `exchange/`, which stand above the rest of this folder; these are imported by the verb
that needs them, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.canon import ids
from woodrat.canon.ids import TenantId
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.erased import Erasures
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.past import Past
from woodrat.ledger.reading import Reader
from woodrat.ledger.writing import Writer
from woodrat.state import redaction
from woodrat.views.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from woodrat.canon.ids import Ref
    from woodrat.clock import Clock
    from woodrat.engines.port import Engine, Meaning
    from woodrat.keeping.certificate import Certificate
    from woodrat.ledger.indexing import Reindexed
    from woodrat.ledger.proving import OrderProof
    from woodrat.ledger.rebuilding import Progress, Rebuilt
    from woodrat.ledger.report import Report
    from woodrat.ledger.within import Within
    from woodrat.ledger.writing import Draft
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
        keys: str | PathLike[str] | None = None,
        redact: Iterable[str] | None = None,
    ) -> None:
        found = ids.tenant_faults(tenant) + ids.agent_faults(agent, "agent")
        if found:
            raise Refused(found)
        self._keys = keys
        self._hidden = redaction.hidden(redact)
        super().__init__(engine, TenantId(tenant), policies, erasures=Erasures(self._erasure_key))
        self.agent = agent
        self._clock = clock
        self._strict = strict
        self._writer = Writer(engine, self.tenant, clock, agent, policies, self._erasures)
        self._within: Within | None = None

    def admit(self, bodies: Iterable[tuple[str, bytes]]) -> Report:
        """Take in observations and schemas another log holds, as (kind, canonical body).

        What does not fit a schema is accepted and kept as a loser that says so; what is known changes nothing.
        """
        from woodrat.state import observation, schema

        meanings: list[Meaning] = []
        for kind, body in bodies:
            if kind == "observation":
                meanings.append(observation.admit(body))
            elif kind == "schema":
                meanings.append(schema.admit(body))
            else:
                raise Refused([Fault("kind", f"cannot admit {shown(kind)}", "Send observations and schemas.")])
        return self._writer.write("admit", {}, lambda draft: self._admit(draft, meanings))

    def _admit(self, draft: Draft, meanings: Sequence[Meaning]) -> None:
        from woodrat.ledger import proving

        if self._erasures is not None and self._erasures.follow(draft.view):
            from woodrat.keeping import erasing

            meanings, late, hints = erasing.admitted(
                self._erasures, meanings, draft.agent, draft.log, draft.recorded_at
            )
            draft.hints += hints
            if late is not None:
                draft.add("erasure", late)
        proving.admit(draft, meanings)

    def _erasure_key(self) -> bytes | None:
        from woodrat.keeping.keys import Keys

        return Keys.open(self._keys).erasure

    def erase(
        self,
        what: str | Ref | None = None,
        *,
        reason: str,
        agent: str | None = None,
        subject: str | Ref | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Certificate:
        """Forget for ever an entity, a field as REF#field, a source, all an `agent` said, or a `subject` with its runs.

        Bodies and nonces go from every file, with all that names or quotes them; what must stay is said again without
        them, and every earlier proof still holds. `dry_run` says what would go. It is one transaction that makes
        everything derived anew, and other writers wait for it. The erasure key is needed; `keys` of `open` names its
        folder.
        """
        from woodrat.keeping import erasing
        from woodrat.keeping.keys import Keys
        from woodrat.ledger import ambient

        if ambient.current_replay(self._engine, self.tenant) is not None:
            problem = "a replay erases nothing"
            raise Refused([Fault("erase", problem, "Erase outside of it.")], outcome="Nothing was erased.")
        assert self._erasures is not None, "a ledger knows of its erasures"
        return erasing.erase(
            self._engine,
            self.tenant,
            what=what,
            agent=agent,
            subject=subject,
            reason=reason,
            by=self.agent,
            keys=Keys.open(self._keys),
            clock=self._clock,
            policies=self._policies,
            erasures=self._erasures,
            dry_run=dry_run,
            progress=progress,
        )

    def erase_again(self) -> tuple[Certificate, ...]:
        """Erase what was erased in another copy of this ledger, by what the keys folder remembers.

        It is what to do with a backup that was restored, or a copy that was made before.
        """
        from woodrat.keeping import erasing
        from woodrat.keeping.keys import Keys

        assert self._erasures is not None, "a ledger knows of its erasures"
        return tuple(
            erasing.erase_again(
                self._engine,
                self.tenant,
                keys=Keys.open(self._keys),
                erasures=self._erasures,
                by=self.agent,
                clock=self._clock,
                policies=self._policies,
            )
        )

    def finish_erasure(self) -> bool:
        """Take out of every file what erasures left there; return whether nothing is left to do.

        It is needed only after an erasure that somebody was in the way of; opening the ledger does it too.
        """
        return self._engine.purge()

    def fingerprint(self, *, provenance: bool = False) -> str:
        """Return one digest of the whole state: equal for equal sets of observations, in whatever order they came.

        It is brought up to date from the entities that changed since it was last asked for.
        """
        from woodrat.state import fingerprint

        if provenance:
            return super().fingerprint(provenance=True)
        with self._engine.transaction(self.tenant) as write:
            position, tree = write.fingerprint()
            before = Reader(write, AsOf(position), self._policies)
            now = Reader(write, AsOf(write.head().position), self._policies)
            tree = now.fingerprint_since(position, tree, before)
            write.keep_fingerprint(now.asof.position, tree)
            return fingerprint.text(tree.root())

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
