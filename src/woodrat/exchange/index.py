"""Taken: what a ledger keeps about logs that it takes in. It is derived, and safe to lose."""

from __future__ import annotations

from typing import Final

from woodrat.log.tree import HASH_BYTES
from woodrat.merge.packing import garbled

TAKEN: Final = "taken/"
"""What the names begin with under which is noted how far other logs were taken in."""


def mark(log: str) -> str:
    """Return the name under which is noted how far another log was taken in: the position there and its leaf.

    By the leaf a log that was cut back and went on otherwise is told apart.
    """
    return TAKEN + log


def mark_bytes(position: int, leaf: bytes) -> bytes:
    """Return how far another log was taken in as it is noted."""
    return str(position).encode() + leaf


def noted_mark(noted: bytes, log: str) -> tuple[int, bytes]:
    """Return the position and the leaf that are noted of another log; `Corrupt` where they cannot be read."""
    position, leaf = noted[:-HASH_BYTES], noted[-HASH_BYTES:]
    try:
        return int(position), leaf
    except (TypeError, ValueError) as error:
        raise garbled(f"How far {log} was taken in") from error
