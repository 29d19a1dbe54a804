"""Tending: the verbs that care for a ledger as a whole.

They call `proofs/`, `erasure/`, `verify/` and `exchange/`; only the verb that needs one of these imports it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from woodrat.api.past import Past
from woodrat.api.verb import MANAGE, verb
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

    from woodrat.api.parameters import (
        CompactFile,
        CompactionDryRun,
        DayCountArg,
        Deep,
        ErasedAgent,
        ErasedSubject,
        ErasedThing,
        ErasureDryRun,
        ErasureReason,
        HeldCheckpoints,
        Shuffles,
        VerifierKey,
        WithProvenance,
    )
    from woodrat.clock import Clock
    from woodrat.engines.engine import Engine
    from woodrat.erasure.certificate import Certificate
    from woodrat.erasure.verbs.byte_scan import Finished
    from woodrat.ledger.overview import Overview
    from woodrat.ledger.progress import Progress
    from woodrat.ledger.rebuild import Rebuilt
    from woodrat.ledger.report import Report
    from woodrat.ledger.write import Draft
    from woodrat.merge import Policy
    from woodrat.proofs.verbs.keys import Keys
    from woodrat.proofs.verbs.signer import Signing
    from woodrat.recall.embedders import Embedder
    from woodrat.recall.index import Reindexed
    from woodrat.state.meaning import Meaning
    from woodrat.verify.report import OrderProof, Verified


class CheckpointWarning(UserWarning):
    """A checkpoint could not be signed, or the ledger does not extend its last one."""


STRICT: Final = ("types", "times")
"""The checks that `strict` can enable."""


def strictness(stated: bool | str | Iterable[str] | None) -> frozenset[str]:
    """Return the checks that a ledger enables: `types` (also for true) and `times`; texts have commas between."""
    if stated is None or isinstance(stated, bool):
        return frozenset(STRICT[:1] if stated else ())
    names = [name.strip() for name in (stated.split(",") if isinstance(stated, str) else stated)]
    unknown = [name for name in names if name and name not in STRICT]
    if unknown:
        problem = f"unknown strictness {', '.join(map(shown, unknown))}"
        raise Refused(
            [Fault("strict", problem, f"Use {' or '.join(STRICT)}, with a comma between both.")], "Nothing was opened."
        )
    return frozenset(filter(None, names))


def signing_for(
    engine: Engine, tenant: str, folder: str, clock: Clock, *, every: int | None, tell: Callable[[str], None]
) -> Signing:
    """Return the signer of a tenant's log, by the keys of a folder; warn if the log contradicts its last checkpoint."""
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
    """Refuse a file that contains data that was erased from it, according to the keys folder."""
    folder = keys_folder(keys)
    if os.path.isdir(os.path.join(folder, "erased")):
        from woodrat.erasure.reader import memory
        from woodrat.proofs.verbs.keys import Keys

        memory.check(engine, TenantId(tenant), Keys(folder))


def _keys_at(folder: str | PathLike[str] | None) -> Keys:
    from woodrat.proofs.verbs.keys import Keys

    return Keys.at(folder)


class Maintenance(Past):
    """One tenant's ledger with the verbs that concern all of it."""

    def __init__(
        self,
        engine: Engine,
        *,
        tenant: str,
        agent: str,
        clock: Clock,
        policies: Mapping[str, Policy],
        strict: bool | str | Iterable[str] = False,
        signing: Signing | None = None,
        keys: str | PathLike[str] | None = None,
        redact: Iterable[str] | None = None,
        served: bool = False,
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
                strict=strictness(strict),
                served=served,
            )
        )
        self.signing = signing
        self.erased_again: tuple[Certificate, ...] = ()
        """Certificates of erasures repeated on opening with `erase_again`."""

    def _write_context(self) -> Context:
        """Return the context of a write; while an agent is replayed on this log, its recording takes the writes."""
        return current.write_context(self.context)

    @property
    def agent(self) -> str:
        """Who writes."""
        return self.context.agent

    @property
    def notices(self) -> tuple[str, ...]:
        """Problems with checkpoints since the ledger was opened: one that contradicts it, one not signed."""
        return () if self.signing is None else tuple(self.signing.notices)

    def admit(self, bodies: Iterable[tuple[str, bytes]]) -> Report:
        """Import observations and schemas of another log, as (kind, canonical body).

        Values that violate a schema are accepted as losing claims with that reason; known entries change nothing.
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

    @verb(
        post="/v1/erase",
        command="erase [REF|REF#field|SRC]",
        grant=MANAGE,
        alone=True,
        example={"what": "contact/Ana Rivera", "reason": "asked to be forgotten", "dry_run": True},
    )
    def erase(
        self,
        what: ErasedThing | None = None,
        *,
        reason: ErasureReason,
        agent: ErasedAgent | None = None,
        subject: ErasedSubject | None = None,
        dry_run: ErasureDryRun = False,
        progress: Progress | None = None,
    ) -> Certificate:
        """Erase something for good; earlier proofs still hold.

        Erases an entity, a field as REF#field, a source, everything an `agent` stated, or a `subject` with its runs.

        Bodies and nonces are removed from every file, with everything that names or quotes them; entries that must stay
        are written again without them, and every earlier proof still holds. `dry_run` only reports the entries to
        erase. Other writers wait only for short steps. The erasure key is required; `keys` of `open` names its folder.
        """
        from woodrat.erasure.verbs import erase as erasure_verbs

        if self._write_context().stand_in is not None:
            problem = "not possible during a replay"
            raise Refused([Fault("erase", problem, "Erase outside the replay.")], outcome="Nothing was erased.")
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
        """Let the signer check and sign writes that bypass `Writer`."""
        if self.signing is not None:
            self.signing.check()
        yield
        if self.signing is not None:
            self.signing.wrote(self.position)

    @verb(post="/v1/erase-again", grant=MANAGE, alone=True, example={})
    def erase_again(self) -> tuple[Certificate, ...]:
        """Repeat the erasures of another copy of this ledger, for example after restoring a backup.

        The keys folder remembers all erasures. Use it for a restored backup, or a copy made before the erasure.
        """
        from woodrat.erasure.verbs import erase as erasure_verbs

        # Skip the signer: an older copy contradicts it, and erasing there must not wait.
        return tuple(erasure_verbs.erase_again(self.context))

    @verb(post="/v1/finish-erasure", grant=MANAGE, alone=True, example={})
    def finish_erasure(self, *, compact: CompactFile = False, dry_run: CompactionDryRun = False) -> Finished:
        """Finish pending erasures: remove their bytes from the files, and search them.

        It is needed after an erasure that another process blocked, that was interrupted, or whose search found erased
        bytes. It returns the certificates of the erasures it finished. If the search still finds erased bytes, it
        compacts a SQLite file with `VACUUM`, once for all erasures: writers wait until it is done, and `compaction`
        reports the time. `compact` always compacts; `dry_run` estimates the cost.
        """
        from woodrat.erasure.verbs import byte_scan

        return byte_scan.finish(self.context, compact="always" if compact else "if_found", dry_run=dry_run)

    def fingerprint(self, *, provenance: WithProvenance = False) -> str:
        """Compute one digest of the whole state.

        It is the same for the same set of observations, in any order of arrival. It is updated from the entities
        that changed since the last call. On a read-only ledger it is computed from all entities and not stored.
        """
        return super().fingerprint(provenance=True) if provenance else reads.followed_fingerprint(self.context)

    @verb(post="/v1/rebuild", command="rebuild", grant=MANAGE, alone=True, example={})
    def rebuild(self, progress: Progress | None = None) -> Rebuilt:
        """Rebuild everything derived from the log, and compare.

        Returns the entities whose stored state was wrong.

        It is one transaction: readers see the old state until the commit, and other writers wait. The log itself is
        never changed. `progress` is called with the number of entries that are done and the total.
        """
        from woodrat.ledger import rebuild as rebuilding

        return rebuilding.rebuild(self.context.engine, self.tenant, self.context.policies, progress)

    @verb(post="/v1/reindex", command="reindex", grant=MANAGE, alone=True, example={})
    def reindex(self, embedder: Embedder | str | None = None, *, progress: Progress | None = None) -> Reindexed:
        """Rebuild the index that recall searches.

        Embeds all runs again, and replaces the stored vectors of this embedder.

        `recall` does this itself for new runs; you need it only after changing the embedder on a long log.
        `progress` is called with the number of entries that are done and the total.
        """
        from woodrat.recall import embedders
        from woodrat.recall import index as recall_index

        return recall_index.reindex(self.context, embedders.check(embedder), progress)

    @verb(get="/v1/overview", at_moment=False, wide=True)
    def overview(self, *, days: DayCountArg = 30) -> Overview:
        """Show the end of the log, its growth day by day, and its last checkpoint."""
        from woodrat.ledger.overview import overview

        checkpoints = () if self.signing is None else self.signing.checkpoints()
        return overview(self.context, days, checkpoints[-1] if checkpoints else None)

    @verb(get="/v1/verify", command="verify", at_moment=False, wide=True)
    def verify(
        self,
        *,
        deep: Deep = False,
        checkpoints: HeldCheckpoints = (),
        key: VerifierKey | None = None,
        embedder: Embedder | str | None = None,
        progress: Progress | None = None,
    ) -> Verified:
        """Check the log and everything derived from it.

        Recomputes everything from the log alone, and returns each mismatch with its place and remedy.

        Nothing is written, so it can run beside writers and on a read-only ledger. With keys, the log is compared with
        the last signed checkpoint, and with the keys folder's notes about this file and tenant. `checkpoints` are
        additional ones, kept elsewhere, each as the text of its note or a (size, root in hex); `key` is the verifier
        key that must have signed them. `deep` also compares the search index, the indexes of the log and vectors; pass
        `embedder` to check the vectors of a custom one. It takes free disk space for a copy of the log, which is
        removed again: beside the file, or in the folder that TMPDIR names.
        """
        from woodrat.recall import embedders
        from woodrat.verify import verbs as verify_verbs
        from woodrat.verify.options import check_checkpoints

        signing = self.signing
        found = verify_verbs.verify(
            self.context,
            deep=deep,
            checkpoints=check_checkpoints(checkpoints, key),
            signed=check_checkpoints(() if signing is None else signing.checkpoints()),
            remembered=check_checkpoints(() if signing is None else signing.remembered()),
            earlier=() if signing is None else signing.earlier(),
            embedder=None if embedder is None else embedders.check(embedder),
            progress=progress,
        )
        hints = (
            skew_of(self.context.engine, self.tenant, self.context.clock),
            None if signing is None else signing.epoch_notice(),
        )
        return replace(found, notices=(*found.notices, *(hint for hint in hints if hint is not None)))

    def _now(self) -> str | None:
        return self.context.clock.now()

    @verb(get="/v1/prove-order", command="prove-order", at_moment=False, wide=True)
    def prove_order(self, *, shuffles: Shuffles = 100, progress: Progress | None = None) -> OrderProof:
        """Check that order of arrival does not matter.

        Feeds everything in this ledger to new ledgers in `shuffles` other orders, and compares the states. `progress`
        is called with the number of orders that are done and the total.
        """
        from woodrat.verify import verbs as verify_verbs

        return verify_verbs.prove_order(self.context, shuffles, progress)
