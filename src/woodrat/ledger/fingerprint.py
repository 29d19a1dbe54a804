"""Fingerprint: one digest of a tenant's whole state, made anew or brought up to date and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.errors import Unavailable
from woodrat.ledger.moments import open_reader
from woodrat.ledger.read import Reader
from woodrat.state.asof import AsOf
from woodrat.state.fingerprint import text

if TYPE_CHECKING:
    from woodrat.context import Context


def fingerprint(context: Context, *, provenance: bool = False) -> str:
    """Return the fingerprint of the state at the context's moment, made from all of it."""
    with open_reader(context) as reader:
        return text(reader.fingerprint(provenance=provenance).root())


def keep_fingerprint(context: Context) -> str:
    """Return the fingerprint of now, from the one kept and the entities that changed since; keep it.

    Where nothing can be written, it is made from all of them and not kept.
    """
    try:
        with context.engine.transaction(context.tenant) as write:
            position, tree = write.fingerprint()
            before = Reader(write, AsOf(position), context.policies)
            now = Reader(write, AsOf(write.head().position), context.policies)
            tree = now.fingerprint_since(position, tree, before)
            write.keep_fingerprint(now.asof.position, tree)
            return text(tree.root())
    except Unavailable:
        return fingerprint(context)
