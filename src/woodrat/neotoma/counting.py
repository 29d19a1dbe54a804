"""Counting: numbers of entities, from the rows that lists use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from woodrat.ledger.find import count_relations, count_shown, types_in_order
from woodrat.ledger.moments import open_reader

if TYPE_CHECKING:
    from woodrat.context import Context


def entities(context: Context, entity_type: str | None, is_wanted: Callable[[str], bool]) -> int:
    """Return the number of entities in a list, of one type or of all wanted ones, without relations."""
    counts, _ = by_type(context, entity_type)
    return sum(count for kind, count in counts.items() if is_wanted(kind))


def by_type(context: Context, entity_type: str | None = None) -> tuple[dict[str, int], int]:
    """Return the number of entities of each type, or of one, and of relations; deleted ones do not count."""
    counts: dict[str, int] = {}
    all_relations = 0
    with open_reader(context) as reader:
        for kind in types_in_order(reader, entity_type):
            relations = count_relations(reader, kind)
            all_relations += relations
            if found := count_shown(reader, kind) - relations:
                counts[kind] = found
    return counts, all_relations
