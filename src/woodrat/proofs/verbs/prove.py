"""Proving: documents for verifiers without Woodrat, each under a signed checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.errors import Corrupt, Fault, Refused, Unavailable, shown
from woodrat.explain.reader.tracer import Tracer
from woodrat.ledger.moments import at, open_reader
from woodrat.log import tree
from woodrat.log.checkpoint import opened
from woodrat.proofs.proof import NO_CAPSULE, NOT_PROVEN, Capsule, ConsistencyProof, Proof
from woodrat.proofs.reader import CapsuleEntries, gather_run, position_of, proof_of
from woodrat.runs.reader.run_reader import RunReader

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.proofs.proof import Signed
    from woodrat.proofs.verbs.signer import Signing

_WHAT: Final = "Name a run, a decision as RUN#stage, an observation (obs_…), or a field as type/key#field."


def prove(context: Context, signer: Signing, what: object) -> Proof:
    """Return the proof of an observation, or of the entry at a position."""
    with context.engine.view(context.tenant) as view:
        position = position_of(view, what)
    signed = signer.covering(position)
    with context.engine.view(context.tenant) as view:
        return proof_of(view, position, signed)


def prove_consistency(context: Context, signer: Signing, old: object, new: object) -> ConsistencyProof:
    """Return the proof that one checkpoint extends another; default for the newer one: a current checkpoint."""
    verifier = signer.keys.verifier
    first = opened(old, [verifier], "from")
    if new is None:
        new = signer.sign().note
    second = opened(new, [verifier], "to")
    assert isinstance(old, str | bytes) and isinstance(new, str | bytes)
    with context.engine.view(context.tenant) as view:
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
            f"The checkpoint of {second.size} entries does not extend that of {first.size} in this ledger. "
            f"{NOT_PROVEN} One of them belongs to another history; verify the ledger.",
            {"damage": "forked", "from": first.to_json(), "to": second.to_json()},
        )
    return ConsistencyProof(_text(old), _text(new), hashes)


def _text(note: str | bytes) -> str:
    return note if isinstance(note, str) else note.decode("utf-8")


def capsule(context: Context, signer: Signing, what: object) -> Capsule:
    """Return a capsule of a run, a decision, an observation or a field, as of the checkpoint that it ends in."""
    if not isinstance(what, str):
        raise Refused([Fault("what", f"expected text, got {shown(what)}", _WHAT)], NO_CAPSULE)
    if not what.startswith(("run_", "obs_")) and (not what.partition("#")[0] or "#" not in what):
        raise Refused([Fault("what", f"{shown(what)} names no field", _WHAT)], NO_CAPSULE)
    signed = _latest(signer)
    with open_reader(at(context, signed.checkpoint.size - 1)) as reader:
        tracer = Tracer(RunReader(reader))
        gathered = CapsuleEntries(tracer)
        if what.startswith("run_"):
            claim = gather_run(gathered, what)
        elif what.startswith("obs_"):
            claim = gathered.observation(what)
        else:
            claim = gathered.field(*what.rsplit("#", 1))
        gathered.erasures()
        proofs = tuple(proof_of(tracer.view, position, signed) for position in sorted(gathered.positions))
    return Capsule(claim, proofs, signed)


def _latest(signer: Signing) -> Signed:
    """Return a current checkpoint; the last one if none can be signed here."""
    try:
        return signer.sign()
    except (Unavailable, Refused):
        return signer.covering(0)
