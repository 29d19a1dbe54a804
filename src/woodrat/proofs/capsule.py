"""Capsule: one file that proves an observation, a field or a decision to somebody who has nothing of ours.

It holds entries of the log with their inclusion proofs, the checkpoint they lead to, and what is claimed of them. Who
reads it needs the signer's public key and one of the two stand-alone verifiers, which work the claim out again from the
entries. Nothing is in it that they do not check. The format is in docs/formats/capsule.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon.digest import FORMAT
from woodrat.proofs.proof import Proof, Signed, written
from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_CAPSULE: Final = "No capsule was made."


@dataclass(frozen=True, slots=True)
class Capsule(Record):
    """What is claimed, and the entries that show it."""

    claim: Mapping[str, Any]
    """What the verifiers work out again."""
    proofs: tuple[Proof, ...]
    """The entries with their proofs, by position."""
    checkpoint: Signed
    """The checkpoint they lead to."""

    def document(self) -> dict[str, Any]:
        """Return the capsule as the document that both verifiers read."""
        entries = [{**proof.entry.to_json(), "proof": [item.hex() for item in proof.hashes]} for proof in self.proofs]
        return {
            "woodrat": "capsule",
            "format": FORMAT,
            "claim": {**self.claim, "positions": [proof.entry.position for proof in self.proofs]},
            "checkpoint": self.checkpoint.note,
            "entries": entries,
        }

    def to_bytes(self) -> bytes:
        """Return the document as it is written to a file, where every byte counts."""
        return written(self.document())
