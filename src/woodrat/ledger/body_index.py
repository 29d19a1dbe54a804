"""The index of bodies: where entries are found by kind and body, for whoever takes entries of other logs in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.canon.digest import digest
from woodrat.ledger.index import Index
from woodrat.log.entry import KINDS

if TYPE_CHECKING:
    from woodrat.log.entry import Entry


def body_term(kind: str, body: bytes) -> str:
    """Return the term under which entries of this kind and body are listed."""
    return digest(kind, body).hex()


def _terms(entry: Entry) -> set[str]:
    return set() if entry.body is None else {body_term(entry.kind, entry.body)}


INDEX: Final = Index("bodies", KINDS - {"observation", "schema", "source"}, _terms)
"""Where entries are found by kind and body; the kinds left out have indexes of their own."""
