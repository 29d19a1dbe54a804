"""Options: the arguments of a verification, checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from woodrat.errors import Fault, Refused, shown
from woodrat.log.check import Held
from woodrat.log.checkpoint import Checkpoint, SignedNote, VerifierKey
from woodrat.log.tree import HASH_BYTES, SIZE_MAX

NOT_VERIFIED: Final = "Nothing was verified."
_REMEDY = "Send the text of a signed note, or a size and a root in hex."


def check_checkpoints(given: Iterable[object], key: str | None = None) -> tuple[Held, ...]:
    """Return checkpoints: each given as one, as the text of its note, or as (size, root in hex).

    With a verifier key a note counts only if that key signed it; without one it is taken at its word.
    """
    found: list[Held] = []
    faults: list[Fault] = []
    signer: VerifierKey | None = None
    if key is not None:
        try:
            signer = VerifierKey.parse(key.strip() if isinstance(key, str) else key, "key")
        except Refused as refusal:
            faults += refusal.faults
    for number, one in enumerate(given):
        try:
            found.append(_held(one, signer, f"checkpoints/{number}"))
        except Refused as refusal:
            faults += refusal.faults
        except (TypeError, ValueError) as error:
            problem = f"not a checkpoint: {error}"
            faults.append(Fault(f"checkpoints/{number}", problem, _REMEDY))
    if faults:
        raise Refused(faults, NOT_VERIFIED)
    return tuple(found)


def _held(one: object, signer: VerifierKey | None, path: str) -> Held:
    if isinstance(one, Held):
        return one
    if isinstance(one, Checkpoint):
        return Held(one.log, one.size, one.root)
    if isinstance(one, str):
        note = SignedNote.parse(one, path)
        said = Checkpoint.parse(note.text if signer is None else note.opened([signer], path), path)
        return Held(said.log, said.size, said.root)
    if not isinstance(one, tuple | list) or len(one) != 2:
        raise ValueError(f"got {shown(one)}")
    size, root = one
    if type(size) is not int or not 0 <= size <= SIZE_MAX:
        raise ValueError(f"the size is {shown(size)}")
    if not isinstance(root, str) or len(root) != 2 * HASH_BYTES:
        raise ValueError(f"the root is {shown(root)}")
    return Held(None, size, bytes.fromhex(root))
