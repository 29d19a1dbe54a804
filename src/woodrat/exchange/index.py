"""Taken: what a ledger keeps on shelves about logs that it takes in. It is derived, and safe to lose."""

from __future__ import annotations

from typing import Final

from woodrat.canon.digest import digest
from woodrat.engines.port import ELSEWHERE
from woodrat.ledger.index import Index
from woodrat.log.entry import KINDS, Entry

_BODIES: Final = "bodies/"


def body_shelf(kind: str, body: bytes) -> str:
    """Return the shelf on which entries of this kind and body lie."""
    return _BODIES + digest(kind, body).hex()


def _shelves(entry: Entry) -> set[str]:
    return set() if entry.body is None else {body_shelf(entry.kind, entry.body)}


INDEX: Final = Index("bodies", KINDS - {"observation", "schema", "source"}, _shelves)
"""Where entries are found by kind and body; the kinds left out have indexes of their own."""


def mark(log: str) -> str:
    """Return the shelf that says how far another log was taken in: true for a position of that log.

    It holds one thing, the leaf there, by which a log that was cut back and went on otherwise is told apart.
    """
    return ELSEWHERE + log
