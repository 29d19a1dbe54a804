"""Trailing indexes: the indexes of every room that are updated after the writes."""

from __future__ import annotations

from woodrat.ledger import refold
from woodrat.ledger.indexer import STATE, Trailing
from woodrat.recall import index as recall_index

TRAILING: tuple[Trailing, ...] = (
    STATE,
    Trailing("recall", recall_index.passages_position, recall_index.passages_go_on, recall_index.is_in_memory),
    Trailing("recall vectors", recall_index.vectors_position, recall_index.vectors_go_on, recall_index.is_in_memory),
    Trailing(refold.NAME, refold.position, refold.step),
)
"""Everything that the indexer brings up to date."""
