"""Import notes: the ledger's memory of imported logs. It is derived, and safe to lose."""

from __future__ import annotations

from typing import Final

from woodrat.log.tree import HASH_BYTES
from woodrat.merge.packing import garbled

TAKEN: Final = "taken/"
"""Prefix of the notes about the imported part of other logs."""


def mark(log: str) -> str:
    """Return the name of the note about another log: its last imported position and the leaf there.

    The leaf reveals a log that was cut back and continued differently.
    """
    return TAKEN + log


def mark_bytes(position: int, leaf: bytes) -> bytes:
    """Return the noted position and leaf of another log."""
    return str(position).encode() + leaf


def noted_mark(noted: bytes, log: str) -> tuple[int, bytes]:
    """Return the noted position and leaf of another log; `Corrupt` if the note cannot be read."""
    position, leaf = noted[:-HASH_BYTES], noted[-HASH_BYTES:]
    try:
        return int(position), leaf
    except (TypeError, ValueError) as error:
        raise garbled(f"Import state of {log}") from error
