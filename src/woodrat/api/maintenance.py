"""Tending: the verbs that care for a ledger as a whole.

They hand over to `proofs/`, `erasure/`, `verify/` and `exchange/`; these are imported by the verb
that needs them, and nowhere else.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from woodrat.api.past import Past
from woodrat.canon import ids
from woodrat.canon.ids import TenantId
from woodrat.context import Context
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import reads
from woodrat.ledger.clock_skew import skew_of
from woodrat.ledger.erasures import LogErasures
from woodrat.ledger.write import Writer
from woodrat.proofs.verbs.folder import keys_folder
from woodrat.records import replace
from woodrat.runs.recorder import current
from woodrat.state import redaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from os import PathLike
    from typing import BinaryIO

    from woodrat.canon.ids import Ref
    from woodrat.clock import Clock
    from woodrat.engines.port import Engine
    from woodrat.erasure.certificate import Certificate
    from woodrat.erasure.verbs.byte_scan import Finished
    from woodrat.exchange.server import Server
    from woodrat.exchange.verbs.backup import Backup
    from woodrat.exchange.verbs.export import ExportedLog
    from woodrat.exchange.verbs.importer import Imported
    from woodrat.exchange.verbs.sync import Synced
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.rebuild import Progress, Rebuilt
    from woodrat.ledger.report import Report
    from woodrat.ledger.write import Draft
    from woodrat.log.check import Held
    from woodrat.log.checkpoint import Checkpoint
    from woodrat.merge import Policy
    from woodrat.proofs.capsule import Capsule
    from woodrat.proofs.proof import Growth, Proof, Signed
    from woodrat.proofs.verbs.keys import Keys
    from woodrat.proofs.verbs.signer import Signing
    from woodrat.recall.embedders import Embedder
    from woodrat.recall.index import Reindexed
    from woodrat.state.meaning import Meaning
    from woodrat.verify.report import OrderProof, Verified


class CheckpointWarning(UserWarning):
    """A checkpoint could not be signed, or the ledger does not go on from its last one."""


def signing_for(
    engine: Engine, tenant: str, folder: str, clock: Clock, *, every: int | None, tell: Callable[[str], None]
) -> Signing:
    """Return the signer of a tenant's log, by the keys of a folder; tell of a log that its last checkpoint denies."""
    from woodrat.proofs.verbs.keys import Keys
    from woodrat.proofs.verbs.signer import EVERY, Signing

    found = ids.tenant_faults(tenant)
    if found:
        raise Refused(found)
    return Signing(
        engine, TenantId(tenant), Keys.open(folder), clock, every=EVERY if every is None else every, tell=tell
    )


def check_there(folder: str, path: str | None, tenant: str) -> None:
    """Refuse to read a file of 0 bytes where the keys folder remembers a log: it is not a ledger yet to be made."""
    from woodrat.proofs.verbs import locations

    locations.check_there(folder, path, tenant)


def check_put_back(engine: Engine, tenant: str, keys: str | PathLike[str] | None) -> None:
    """Refuse a file that holds what the keys folder remembers as erased in it."""
    folder = keys_folder(keys)
    if os.path.isdir(os.path.join(folder, "erased")):
        from woodrat.erasure.reader import memory
        from woodrat.proofs.verbs.keys import Keys

        memory.check(engine, TenantId(tenant), Keys(folder))


def _connected(address: str, key: str | None) -> Server:
    """Return a connection to the server at an address that syncs with it: a part may take long to take in."""
    from woodrat.api.transport import Transport
    from woodrat.clock import SystemClock
    from woodrat.exchange.relay.remote_peer import ANSWER_SECONDS

    return Transport(address, key, SystemClock(), timeout_seconds=ANSWER_SECONDS)


def _keys_at(folder: str | PathLike[str] | None) -> Keys:
    from woodrat.proofs.verbs.keys import Keys

    return Keys.at(folder)


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
        signing: Signing | None = None,
        keys: str | PathLike[str] | None = None,
        redact: Iterable[str] | None = None,
    ) -> None:
        found = ids.tenant_faults(tenant) + ids.agent_faults(agent, "agent")
        if found:
            raise Refused(found)
        super().__init__(
            Context(
                engine,
                TenantId(tenant),
                policies,
                clock,
                agent,
                erasures=LogErasures(partial(_keys_at, keys)),
                watch=signing,
                hidden=redaction.hidden(redact),
                keys=keys,
                strict=strict,
            )
        )
        self.agent = agent
        self._signing = signing
        self.erased_again: tuple[Certificate, ...] = ()
        """What was erased when the ledger was opened with `erase_again`, a certificate for each erasure."""

    def _write_context(self) -> Context:
        """Return the context of a write; while an agent is replayed on this log, its recording takes what it writes."""
        return current.write_context(self.context)

    @property
    def notices(self) -> tuple[str, ...]:
        """What went wrong around checkpoints since the ledger was opened: one that contradicts it, one not signed."""
        return () if self._signing is None else tuple(self._signing.notices)

    def checkpoint(self, *, new_epoch: str | None = None) -> Signed:
        """Return a signed checkpoint of the log as it is now; the last one, where nothing was added since.

        A history shorter than the last checkpoint, or another one, is `Corrupt` and is not signed. `new_epoch` is the
        reason for which the operator accepts it all the same: the old checkpoint is put aside, and the new says so.
        """
        signing = self._signer()
        return signing.sign() if new_epoch is None else signing.begin_epoch(new_epoch)

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Return the checkpoints this log must go on from; none without keys, or before the first was signed."""
        return () if self._signing is None else self._signing.checkpoints()

    def prove(self, what: str | int) -> Proof:
        """Return the proof that an observation, or the entry at a position, is in the log under a checkpoint.

        It is the last checkpoint if that covers the entry, else one signed now.
        """
        from woodrat.proofs.verbs import prove

        return prove.prove(self.context, self._signer(), what)

    def prove_growth(self, old: str | bytes, new: str | bytes | None = None) -> Growth:
        """Return the proof that one checkpoint of this log goes on from an older one; `new` left out is one of now."""
        from woodrat.proofs.verbs import prove

        return prove.growth(self.context, self._signer(), old, new)

    def capsule(self, what: str) -> Capsule:
        """Return one document that proves a run, a decision (`RUN#stage`), an observation or `type/key#field`.

        It speaks of the log as of its checkpoint, and is checked offline by `woodrat-verify`.
        """
        from woodrat.proofs.verbs import prove

        return prove.capsule(self.context, self._signer(), what)

    def _signer(self) -> Signing:
        if self._signing is None:
            remedy = "Make some with `woodrat init`, or name their folder: keys=, --signing-keys, WOODRAT_SIGNING_KEYS."
            raise Refused([Fault("keys", "this ledger was opened without keys", remedy)], "Nothing was signed.")
        return self._signing

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
        return Writer(self._write_context()).write("admit", {}, lambda draft: self._admit(draft, meanings))

    def _admit(self, draft: Draft, meanings: Sequence[Meaning]) -> None:
        from woodrat.ledger.plans import admit

        if self.context.erasures is not None and self.context.erasures.follow(draft.view):
            from woodrat.erasure.verbs import erase as erasure_verbs

            meanings, late, hints = erasure_verbs.admitted(
                self.context.erasures, meanings, draft.agent, draft.log, draft.recorded_at
            )
            draft.hints += hints
            if late is not None:
                draft.add("erasure", late)
        admit(draft, meanings)

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
        from woodrat.erasure.verbs import erase as erasure_verbs

        if self._write_context().stand_in is not None:
            problem = "a replay erases nothing"
            raise Refused([Fault("erase", problem, "Erase outside of it.")], outcome="Nothing was erased.")
        with self._guarded():
            return erasure_verbs.erase(
                self.context,
                what=what,
                agent=agent,
                subject=subject,
                reason=reason,
                dry_run=dry_run,
                progress=progress,
            )

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let the signer have its say before what is written past `Writer`, and hear of it afterwards."""
        if self._signing is not None:
            self._signing.check()
        yield
        if self._signing is not None:
            self._signing.wrote(self.position)

    def erase_again(self) -> tuple[Certificate, ...]:
        """Erase what was erased in another copy of this ledger, by what the keys folder remembers.

        It is what to do with a backup that was restored, or a copy that was made before.
        """
        from woodrat.erasure.verbs import erase as erasure_verbs

        # The signer is not asked: an older copy is what it contradicts, and forgetting there must not wait for it.
        return tuple(erasure_verbs.erase_again(self.context))

    def finish_erasure(self) -> Finished:
        """Take out of every file what erasures left there, and search the files; return how far it came.

        It is needed only after an erasure that somebody was in the way of, or that was broken off while it searched.
        Opening the ledger takes the bytes out too. Only the process that erased can search: no other knows for what.
        """
        from woodrat.erasure.verbs import byte_scan

        return byte_scan.finish(self.context)

    def fingerprint(self, *, provenance: bool = False) -> str:
        """Return one digest of the whole state: equal for equal sets of observations, in whatever order they came.

        It is brought up to date from the entities that changed since it was last asked for. Where nothing can be
        written, it is made from all of them and not kept.
        """
        return super().fingerprint(provenance=True) if provenance else reads.followed_fingerprint(self.context)

    def rebuild(self, progress: Progress | None = None) -> Rebuilt:
        """Make everything derived again from the log alone, and say of which entities something else was kept.

        It is one transaction: readers see the old until it is done, and other writers wait. `progress` is called with
        how many entries are done and how many there are. The log itself is never changed.
        """
        from woodrat.ledger import rebuild as rebuilding

        return rebuilding.rebuild(self.context.engine, self.tenant, self.context.policies, progress)

    def reindex(self, embedder: Embedder | str | None = None, *, progress: Progress | None = None) -> Reindexed:
        """Embed all runs again for `recall`, and keep the vectors in place of those of this embedder.

        `recall` does this by itself for what is new. It is needed after a change of embedder on a long log. `progress`
        is called with how many entries are done and how many there are.
        """
        from woodrat.recall import embedders
        from woodrat.recall import index as recall_index

        return recall_index.reindex(self.context, embedders.check(embedder), progress)

    def verify(
        self,
        *,
        deep: bool = False,
        checkpoints: Iterable[Held | Checkpoint | tuple[int, str] | str] = (),
        key: str | None = None,
        jobs: int | None = None,
        embedder: Embedder | str | None = None,
        progress: Progress | None = None,
    ) -> Verified:
        """Work everything out again from the log alone, and say what does not agree, where, and what to do about it.

        Nothing is written, so it can run beside writers and on a read-only ledger. With keys the log is compared with
        the last checkpoint signed, and with what the keys folder remembers of this file and tenant. `checkpoints` are
        further ones, held elsewhere, each the text of its note or a (size, root in hex), and `key` is the verifier key
        that must have signed them. `deep` compares the search index, shelves and vectors too, with `embedder` those of
        another than the built-in one. `jobs` are processes; left out, a long log gets some.
        """
        from woodrat.recall import embedders
        from woodrat.verify import verbs as verify_verbs
        from woodrat.verify.options import check_checkpoints, check_jobs

        found = verify_verbs.verify(
            self.context,
            deep=deep,
            checkpoints=(*check_checkpoints(checkpoints, key), *check_checkpoints(self.checkpoints())),
            remembered=check_checkpoints(() if self._signing is None else self._signing.remembered()),
            jobs=check_jobs(jobs),
            embedder=None if embedder is None else embedders.check(embedder),
            progress=progress,
        )
        hint = skew_of(self.context.engine, self.tenant, self.context.clock)
        return found if hint is None else replace(found, notices=(*found.notices, hint))

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
        from woodrat.exchange.verbs import export

        return export.export(
            self.context, out, after=after, through=through, force=force, resume=resume, progress=progress
        )

    def import_log(self, source: str | PathLike[str] | BinaryIO, *, progress: Progress | None = None) -> Imported:
        """Take in an exported log, from a path or an open binary file; importing it again changes nothing.

        An empty ledger becomes its clone, with the same positions and roots, and so does one that was cloned from its
        beginning. Into any other the entries are merged. `progress` is called with how many bytes are done.
        """
        from woodrat.exchange.verbs import importer

        return importer.import_file(self._write_context(), source, progress)

    def sync(
        self,
        other: str | PathLike[str] | Tended,
        *,
        key: str | None = None,
        pull: bool = True,
        push: bool = True,
        progress: Progress | None = None,
    ) -> Synced:
        """Exchange entries with another ledger, so that both hold the same; from an exported log they are only taken.

        `other` is the file of a ledger, of which this tenant is meant, a ledger that is open, an exported log, or the
        address of a server, whose tenant is that of the `key`. What came in stays when a connection breaks; called
        again, it goes on from there.
        """
        from woodrat.exchange.verbs import sync as exchange_sync

        there = current.write_context(other.context) if isinstance(other, Tended) else getattr(other, "server", other)
        return exchange_sync.sync(
            self._write_context(), there, key=key, pulls=pull, pushes=push, progress=progress, connect=_connected
        )

    def backup(self, out: str | PathLike[str], *, force: bool = False, progress: Progress | None = None) -> Backup:
        """Write a file with the logs of all tenants as they are at one moment, while others go on writing.

        It is looked at before it is put in its place, and replaces nothing unless `force` says so. It can be opened as
        it is; `woodrat.copy` restores it through any position.
        """
        from woodrat.exchange.verbs import backup

        return backup.backup(self.context, out, force=force, progress=progress)

    def _now(self) -> str | None:
        return self.context.clock.now()

    def prove_order(self, *, shuffles: int = 100, progress: Progress | None = None) -> OrderProof:
        """Feed everything this ledger holds in `shuffles` other orders to fresh ledgers, and compare the states.

        `progress` is called with how many orders are done and how many there are.
        """
        from woodrat.verify import verbs as verify_verbs

        return verify_verbs.prove_order(self.context, shuffles, progress)
