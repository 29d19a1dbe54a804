"""What trails the log: the indexes of every room that are brought up to date after the writes."""

from __future__ import annotations

from woodrat.explain import index as trace_index
from woodrat.ledger import identity_backlog, observed_time, refold, source_index
from woodrat.ledger.indexer import STATE, Trailing, of_log
from woodrat.recall import index as recall_index
from woodrat.runs import index as run_index

TRAILING: tuple[Trailing, ...] = (
    STATE,
    of_log(run_index.INDEX),
    of_log(run_index.LIST_INDEX),
    of_log(observed_time.INDEX),
    of_log(source_index.INDEX),
    of_log(source_index.SAID),
    of_log(trace_index.INDEX),
    Trailing("recall", recall_index.passages_position, recall_index.passages_go_on, recall_index.is_in_memory),
    Trailing("recall vectors", recall_index.vectors_position, recall_index.vectors_go_on, recall_index.is_in_memory),
    Trailing(refold.NAME, refold.position, refold.step),
    Trailing(identity_backlog.NAME, identity_backlog.position, identity_backlog.step),
)
"""Everything that the indexer brings up to date."""
