"""Counting: how many entities there are, without reading what is believed of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from woodrat.ledger.find import folds
from woodrat.ledger.moments import open_reader
from woodrat.state.relation import endpoints

if TYPE_CHECKING:
    from woodrat.context import Context


def entities(context: Context, entity_type: str | None, is_wanted: Callable[[str], bool]) -> int:
    """Return how many entities a list has, of one type or of all that are wanted; relations are none of them."""
    counts, _ = by_type(context, entity_type)
    return sum(count for kind, count in counts.items() if is_wanted(kind))


def by_type(context: Context, entity_type: str | None = None) -> tuple[Counter[str], int]:
    """Return how many entities there are of each type, or of one, and how many relations; deleted ones do not count."""
    counts: Counter[str] = Counter()
    relations = 0
    with open_reader(context) as reader:
        for ref, state in folds(reader, entity_type):
            if state.deleted:
                continue
            if endpoints(ref) is None:
                counts[ref.type] += 1
            else:
                relations += 1
    return counts, relations
