"""Proofs: checkpoints, proofs and capsules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.api.verb import MANAGE, READ, verb
from woodrat.errors import Fault, Refused

if TYPE_CHECKING:
    from woodrat.api.namespace import Writable
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

    def __init__(self, ledger: Writable) -> None:
        self.ledger = ledger
        self.context = ledger.context

    @verb(post="/v1/proofs/checkpoints", command="checkpoint", grant=MANAGE, alone=True, example={})
    def checkpoint(self, *, new_epoch: NewEpoch | None = None) -> Signed:
        """Sign the length of the log and its root.

        Return a signed checkpoint of the log as it is now; the last one, where nothing was added since.

        A history shorter than the last checkpoint, or another one, is `Corrupt` and is not signed. `new_epoch` is the
        reason for which the operator accepts it all the same: the old checkpoint is put aside, and the new says so.
        """
        signing = self._signer()
        return signing.sign() if new_epoch is None else signing.begin_epoch(new_epoch)

    @verb(get="/v1/proofs/checkpoints", at_moment=False, wide=True)
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """List the checkpoints that the log must extend.

        Return the checkpoints this log must go on from; none without keys, or before the first was signed.
        """
        signing = self.ledger.signing
        return () if signing is None else signing.checkpoints()

    @verb(get="/v1/proofs/{what}", command="prove [OBS]", at_moment=False, wide=True)
    def prove(self, what: EntryArg) -> Proof:
        """Prove that an observation is in the log under a checkpoint.

        Return the proof that an observation, or the entry at a position, is in the log under a checkpoint.

        It is the last checkpoint if that covers the entry, else one signed now.
        """
        from woodrat.proofs.verbs import prove

        return prove.prove(self.context, self._signer(), what)

    @verb(post="/v1/proofs/consistency", grant=READ, wide=True, example={"old": "woodrat"})
    def prove_consistency(self, old: OldCheckpoint, new: NewCheckpoint | None = None) -> ConsistencyProof:
        """Prove that a checkpoint extends an older one.

        Return the proof that one checkpoint of this log goes on from an older one; `new` left out is one of now.
        """
        from woodrat.proofs.verbs import prove

        return prove.prove_consistency(self.context, self._signer(), old, new)

    @verb(get="/v1/proofs/capsule/{what}", command="capsule RUN|OBS|REF#field", at_moment=False, wide=True)
    def capsule(self, what: CapsuleOf) -> Capsule:
        """Prove a decision, an observation or a field, offline.

        Return one document that proves a run, a decision (`RUN#stage`), an observation or `type/key#field`.

        It speaks of the log as of its checkpoint, and is checked offline by `woodrat-verify`.
        """
        from woodrat.proofs.verbs import prove

        return prove.capsule(self.context, self._signer(), what)

    def _signer(self) -> Signing:
        if self.ledger.signing is None:
            remedy = "Make some with `woodrat init`, or name their folder: keys=, --signing-keys, WOODRAT_SIGNING_KEYS."
            raise Refused([Fault("keys", "this ledger was opened without keys", remedy)], "Nothing was signed.")
        return self.ledger.signing
