"""Proofs: checkpoints, proofs and capsules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.api.verb import MANAGE, READ, verb
from woodrat.errors import Fault, Refused

if TYPE_CHECKING:
    from woodrat.api.namespace import WritableLedger
    from woodrat.api.parameters import (
        CapsuleOf,
        EntryArg,
        NewCheckpoint,
        NewEpoch,
        OldCheckpoint,
    )
    from woodrat.log.checkpoint import Checkpoint
    from woodrat.proofs.proof import Capsule, ConsistencyProof, Proof, Signed
    from woodrat.proofs.verbs.signer import Signing


class Proofs:
    """The verbs of proofs."""

    def __init__(self, ledger: WritableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    @verb(post="/v1/proofs/checkpoints", command="checkpoint", grant=MANAGE, alone=True, example={})
    def checkpoint(self, *, new_epoch: NewEpoch | None = None) -> Signed:
        """Sign the length of the log and its root.

        Returns a checkpoint of the current log; the last one, if the log has not grown since.

        If the log is shorter than the last checkpoint, or differs from it, this raises `Corrupt` and nothing is signed.
        `new_epoch` is the operator's reason for accepting a log that contradicts its checkpoint: the old checkpoint is
        set aside, and the new one says so.
        """
        signing = self._signer()
        return signing.sign() if new_epoch is None else signing.begin_epoch(new_epoch)

    @verb(get="/v1/proofs/checkpoints", at_moment=False, wide=True)
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """List the checkpoints that the log must extend.

        There are none without keys, or before the first was signed.
        """
        signing = self.ledger.signing
        return () if signing is None else signing.checkpoints()

    @verb(get="/v1/proofs/{what}", command="prove [OBS]", at_moment=False, wide=True)
    def prove(self, what: EntryArg) -> Proof:
        """Prove that an observation is in the log under a checkpoint.

        `what` is an observation, or the position of an entry. The checkpoint is the last one if it covers the entry;
        otherwise one is signed now.
        """
        from woodrat.proofs.verbs import prove

        return prove.prove(self.context, self._signer(), what)

    @verb(post="/v1/proofs/consistency", grant=READ, wide=True, example={"old": "woodrat"})
    def prove_consistency(self, old: OldCheckpoint, new: NewCheckpoint | None = None) -> ConsistencyProof:
        """Prove that a checkpoint extends an older one.

        By default, `new` is a checkpoint of the current log.
        """
        from woodrat.proofs.verbs import prove

        return prove.prove_consistency(self.context, self._signer(), old, new)

    @verb(get="/v1/proofs/capsule/{what}", command="capsule RUN|OBS|REF#field", at_moment=False, wide=True)
    def capsule(self, what: CapsuleOf) -> Capsule:
        """Prove a decision, an observation or a field, offline.

        Returns one document about a run, a decision (`RUN#stage`), an observation or a field (`type/key#field`). It
        covers the log as of its checkpoint; `woodrat-verify` checks it offline.
        """
        from woodrat.proofs.verbs import prove

        return prove.capsule(self.context, self._signer(), what)

    def _signer(self) -> Signing:
        if self.ledger.signing is None:
            remedy = "Run `woodrat init`, or name the keys folder: keys=, --signing-keys, WOODRAT_SIGNING_KEYS."
            raise Refused([Fault("keys", "this ledger was opened without keys", remedy)], "Nothing was signed.")
        return self.ledger.signing
