"""Proving: that an entry is in the log under a checkpoint, and that one checkpoint goes on from another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.canon.digest import FORMAT
from woodrat.errors import Corrupt, Fault, NotFound, Refused, shown
from woodrat.log import tree
from woodrat.log.checkpoint import opened
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.port import Engine, View
    from woodrat.log.entry import Entry
    from woodrat.proofs.verbs.signer import Signed, Signing

NOT_PROVEN: Final = "Nothing was proven."


@dataclass(frozen=True, slots=True)
class Proof:
    """That one entry stands in a log at its position, under a signed checkpoint."""

    entry: Entry
    """The entry, whole; without its body where that was erased."""
    hashes: tuple[bytes, ...]
    """The way from its leaf to the root, as RFC 6962 orders it."""
    checkpoint: Signed
    """The checkpoint it leads to."""

    def to_json(self) -> dict[str, Any]:
        """Return the proof as the document that both verifiers read."""
        return {
            "woodrat": "proof",
            "format": FORMAT,
            "checkpoint": self.checkpoint.note,
            "entry": self.entry.to_json(),
            "proof": [item.hex() for item in self.hashes],
        }

    def to_bytes(self) -> bytes:
        """Return the document as it is written to a file, where every byte counts."""
        return written(self.to_json())


@dataclass(frozen=True, slots=True)
class Growth:
    """That the log under one checkpoint is the beginning of the log under another."""

    old: str
    """The note of the older checkpoint."""
    new: str
    """The note of the newer one."""
    hashes: tuple[bytes, ...]
    """The consistency proof, as RFC 6962 orders it."""

    def to_json(self) -> dict[str, Any]:
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
        return written(self.to_json())


def written(document: dict[str, Any]) -> bytes:
    """Return a document as canonical JSON with a line feed at its end."""
    return form.serialise(document) + b"\n"


def position_of(view: View, what: object) -> int:
    """Return the position that an observation's id or name, or a position itself, stands for."""
    remedy = "Name an observation (obs_…) or a position of the log."
    if isinstance(what, bool) or not isinstance(what, int | str):
        raise Refused([Fault("what", f"got {shown(what)}", remedy)], NOT_PROVEN)
    if isinstance(what, str) and what.isascii() and what.isdigit() and len(what) < 17:
        what = int(what)
    if isinstance(what, int):
        if not 0 <= what < view.head().size:
            problem = f"There is no entry {what}: the log has {view.head().size}. {NOT_PROVEN} {remedy}"
            raise NotFound(problem, {"position": what})
        return what
    digest = ids.digest_of("observation", what)
    if digest is None and not ids.is_id("observation", what):
        raise Refused([Fault("what", f"{shown(what)} is neither", remedy)], NOT_PROVEN)
    head = view.head().position
    found = view.observation_by_id(what) if digest is None else view.observation(digest, head)
    if found is None:
        problem = f"There is no observation {what} here. {NOT_PROVEN} `observations list` shows those there are."
        raise NotFound(problem, {"observation": what})
    return found.position


def proof_of(view: View, position: int, signed: Signed) -> Proof:
    """Return the proof of one entry; one that does not hold is never handed out."""
    entry = view.entry(position)
    size = signed.checkpoint.size
    assert entry is not None and position < size, "the checkpoint covers the entry"
    hashes = tree.inclusion_proof(view.nodes(), position, size)
    if not tree.verify_inclusion(entry.leaf(), position, size, hashes, signed.checkpoint.root):
        raise Corrupt(
            f"entry {position}: it does not lead to the root of its checkpoint, {signed.checkpoint.root.hex()}. "
            f"{NOT_PROVEN} Stop writing and verify the ledger.",
            {"position": position, "damage": "leaf"},
        )
    return Proof(entry, hashes, signed)


def prove(engine: Engine, tenant: TenantId, signing: Signing, what: object) -> Proof:
    """Return the proof of an observation, or of the entry at a position."""
    with engine.view(tenant) as view:
        position = position_of(view, what)
    signed = signing.covering(position)
    with engine.view(tenant) as view:
        return proof_of(view, position, signed)


def growth(engine: Engine, tenant: TenantId, signing: Signing, old: object, new: object) -> Growth:
    """Return the proof that one checkpoint goes on from another; the newer one left out is one of now."""
    verifier = signing.keys.verifier
    first = opened(old, [verifier], "from")
    if new is None:
        new = signing.sign().note
    second = opened(new, [verifier], "to")
    assert isinstance(old, str | bytes) and isinstance(new, str | bytes)
    with engine.view(tenant) as view:
        head = view.head()
        for path, point in (("from", first), ("to", second)):
            if point.size > head.size:
                problem = f"it covers {point.size} entries, and this ledger has {head.size}: entries are missing here"
                raise Corrupt(
                    f"{path}: {problem}. {NOT_PROVEN} Put the whole database back.",
                    {"damage": "truncated", "size": head.size, "checkpoint": point.to_json()},
                )
        if first.size > second.size:
            problem = f"it covers {first.size} entries, and the other one {second.size}"
            raise Refused([Fault("from", problem, "Name the older checkpoint first.")], NOT_PROVEN)
        hashes = tree.consistency_proof(view.nodes(), first.size, second.size)
    if not tree.verify_consistency(first.size, second.size, first.root, second.root, hashes):
        raise Corrupt(
            f"The checkpoint of {second.size} entries does not go on from that of {first.size} in this ledger. "
            f"{NOT_PROVEN} One of them is of another history; verify the ledger.",
            {"damage": "forked", "from": first.to_json(), "to": second.to_json()},
        )
    return Growth(_text(old), _text(new), hashes)


def _text(note: str | bytes) -> str:
    return note if isinstance(note, str) else note.decode("utf-8")
