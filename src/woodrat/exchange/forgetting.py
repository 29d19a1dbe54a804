"""Forgetting: the one place where entries that are about to be taken in meet erasures, theirs and ours."""

from __future__ import annotations

from collections.abc import Sequence

from woodrat.engines.port import Transaction
from woodrat.errors import Fault, Refused
from woodrat.ledger.moments import erased_here
from woodrat.ledger.writing import Writer
from woodrat.log import erasure
from woodrat.log.entry import Entry

KIND = erasure.KIND


def admissible(writer: Writer, arriving: Sequence[Entry]) -> Sequence[Entry]:
    """Return those of arriving entries that may be merged in: none that was erased here.

    An erasure among them has to be carried out here before what it names can be told apart. This version carries out
    none, and refuses it rather than keep what another ledger was asked to forget.
    """
    for entry in arriving:
        if entry.kind == KIND:
            problem = f"position {entry.position} of {entry.log} is an erasure, which cannot be carried out here"
            remedy = "Use a version that can erase, with the same erasure key, or import into an empty ledger."
            raise Refused([Fault(KIND, problem, remedy)])
    return arriving


def follow(write: Transaction, arriving: Sequence[Entry]) -> None:
    """See to it that a clone which goes on holds nothing that was erased in the log it is a clone of.

    An erasure that comes with the whole log finds its entries erased. One that comes later finds them here, and this
    version, which cannot erase, refuses it.
    """
    for entry in arriving:
        if entry.kind == KIND and entry.body is not None:
            for position in (at for first, last in erased_here(write, entry) for at in range(first, last + 1)):
                held = write.entry(position) if position < entry.position else None
                if held is not None and held.body is not None:
                    problem = f"position {entry.position} is an erasure of position {position}, which is still here"
                    remedy = "Make the clone anew from a new export, and destroy this one."
                    raise Refused([Fault(KIND, problem, remedy)])
