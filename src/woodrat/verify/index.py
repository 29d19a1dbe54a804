"""Shelved: what lies on shelves, worked out again from the log: indexes of runs and traces, and vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.engines.port import ELSEWHERE, Audit, View
from woodrat.exchange import index as exchange_index
from woodrat.explain import index as trace_index
from woodrat.log.tree import HASH_BYTES
from woodrat.recall import index as recall_index
from woodrat.recall.ngram import Ngram
from woodrat.runs import reader as run_reader
from woodrat.training import index as training_index

if TYPE_CHECKING:
    from woodrat.recall.embedders import Embedder

INDEXES: Final = (run_reader.SHELVING, trace_index.INDEX, training_index.INDEX, exchange_index.INDEX)
"""The indexes that lie on shelves."""


def compare(view: View, audit: Audit, embedder: Embedder | None) -> set[str]:
    """Compare what lies on shelves with what the log says belongs there; return what could not be compared.

    Vectors are made again with the built-in embedder, and with the one given; those of others are left out.
    """
    unchecked: set[str] = set()
    for index in INDEXES:
        for entry in view.entries(through=view.shelved(index.name), kinds=index.kinds):
            for name in sorted(index.shelves(entry)):
                audit.shelved(name, entry.position, b"")
    loaded = {known.id: known for known in (Ngram(), embedder) if known is not None}
    for name in audit.shelves():
        if name.startswith(ELSEWHERE):
            # What it says is of another log; here it can only be seen to be of the right shape.
            for position, leaf in view.shelf(name):
                if position == 0 and len(leaf) == HASH_BYTES:
                    audit.shelved(name, position, leaf)
        elif name.startswith(recall_index.SHELF):
            id = name.removeprefix(recall_index.SHELF)
            if id in loaded:
                before = len(audit.wrong)
                for position, item in recall_index.shelf_items(view, loaded[id], view.shelved(name)):
                    audit.shelved(name, position, item)
                audit.wrong[before:] = [wrong._replace(part="vectors") for wrong in audit.wrong[before:]]
            else:
                count = sum(1 for _ in view.shelf(name))
                audit.seen["shelf"] = audit.seen.get("shelf", 0) + count
                unchecked.add(f"vectors of {id}: the embedder is not loaded; give it to check them")
    return unchecked
