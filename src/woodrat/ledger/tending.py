"""Tending: the verbs that care for a ledger as a whole.

They hand over to `keeping/` and `exchange/`, which stand above the rest of this folder; these are imported by the verb
that needs them, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.canon import ids
from woodrat.canon.ids import TenantId
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.past import Past
from woodrat.ledger.reading import Reader
from woodrat.ledger.writing import Writer
from woodrat.views.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike
    from typing import BinaryIO

    from woodrat.clock import Clock
    from woodrat.engines.port import Engine, Meaning, View
    from woodrat.exchange.backup import Backup
    from woodrat.exchange.export import ExportedLog
    from woodrat.exchange.syncing import Synced
    from woodrat.exchange.taking import Imported
    from woodrat.ledger.indexing import Reindexed
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.moments import Moment
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

    def export_log(
        self,
        out: str | PathLike[str] | BinaryIO,
        *,
        after: int = -1,
        through: Moment = "now",
        force: bool = False,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> ExportedLog:
        """Write the log as JSON lines, one for each entry, to a path or an open binary file.

        `after` and `through` bound it to whole writes. A path appears when all is written and replaces nothing unless
        `force` says so; with `resume` an export that is there gets what the log has gained since.
        """
        from woodrat.exchange import export
        from woodrat.ledger.moments import resolve_moment

        def last(view: View) -> int:
            return resolve_moment(view, through, export.NOTHING_EXPORTED)

        return export.export(
            self._engine, self.tenant, out, after=after, through=last, force=force, resume=resume, progress=progress
        )

    def import_log(self, source: str | PathLike[str] | BinaryIO, *, progress: Progress | None = None) -> Imported:
        """Take in an exported log, from a path or an open binary file; importing it again changes nothing.

        An empty ledger becomes its clone, with the same positions and roots, and so does one that was cloned from its
        beginning. Into any other the entries are merged. `progress` is called with how many bytes are done.
        """
        from woodrat.exchange import taking

        return taking.import_file(self._writer, source, progress)

    def sync(
        self,
        other: str | PathLike[str] | Ledger,
        *,
        pull: bool = True,
        push: bool = True,
        progress: Progress | None = None,
    ) -> Synced:
        """Exchange entries with another ledger, so that both hold the same; from an exported log they are only taken.

        `other` is the file of a ledger, of which this tenant is meant, a ledger that is open, or an exported log.
        """
        from typing import cast

        from woodrat.exchange import syncing

        return syncing.sync(cast("Ledger", self), other, pulls=pull, pushes=push, progress=progress)

    def backup(self, out: str | PathLike[str], *, force: bool = False, progress: Progress | None = None) -> Backup:
        """Write a file with the logs of all tenants as they are at one moment, while others go on writing.

        It is looked at before it is put in its place, and replaces nothing unless `force` says so. It can be opened as
        it is; `woodrat.copy` restores it through any position.
        """
        from woodrat.exchange import backup

        return backup.backup(self._engine, out, force=force, progress=progress)

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
