"""Proof: that an entry is in the log under a checkpoint, that one checkpoint extends another, and capsules of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.canon.digest import FORMAT
from woodrat.log.checkpoint import Checkpoint
from woodrat.log.entry import Entry
from woodrat.record_json import Hex, Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


NOT_PROVEN: Final = "Nothing was proven."


@dataclass(frozen=True, slots=True)
class Signed(Record):
    """A checkpoint and the note that carries it."""

    checkpoint: Checkpoint
    """What it says."""
    note: str
    """The signed note, to be handed out byte for byte."""
    new: bool
    """True if it was signed now; otherwise no entry was added since the last one."""


@dataclass(frozen=True, slots=True)
class Proof(Record):
    """Proves that one entry is in a log at its position, under a signed checkpoint."""

    entry: Entry
    """The entry, whole; without its body where that was erased."""
    hashes: tuple[Hex, ...]
    """The way from its leaf to the root, as RFC 6962 orders it."""
    checkpoint: Signed
    """The checkpoint it leads to."""

    def document(self) -> dict[str, Any]:
        """Return the proof as the document that both verifiers read."""
        return {
            "woodrat": "proof",
            "format": FORMAT,
            "checkpoint": self.checkpoint.note,
            "entry": self.entry.to_json(),
            "proof": [item.hex() for item in self.hashes],
        }

    def to_bytes(self) -> bytes:
        """Return the document for a file, in which every byte counts."""
        return written(self.document())


@dataclass(frozen=True, slots=True)
class ConsistencyProof(Record):
    """Proves that the log under one checkpoint is a prefix of the log under another."""

    old: str
    """The note of the older checkpoint."""
    new: str
    """The note of the newer one."""
    hashes: tuple[Hex, ...]
    """The consistency proof, as RFC 6962 orders it."""

    def document(self) -> dict[str, Any]:
        """Return the proof as the document that both verifiers read."""
        return {
            "woodrat": "consistency",
            "format": FORMAT,
            "from": self.old,
            "to": self.new,
            "proof": [item.hex() for item in self.hashes],
        }

    def to_bytes(self) -> bytes:
        """Return the document as it is written to a file, where every byte counts."""
        return written(self.document())


def written(document: dict[str, Any]) -> bytes:
    """Return a document as canonical JSON with a line feed at its end."""
    return form.serialise(document) + b"\n"


NO_CAPSULE: Final = "No capsule was made."


@dataclass(frozen=True, slots=True)
class Capsule(Record):
    """The claim, and the entries that show it."""

    claim: Mapping[str, Any]
    """The values that the verifiers recompute."""
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
