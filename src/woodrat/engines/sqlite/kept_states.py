"""Kept states: what one view of a file keeps of entities, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from woodrat.engines.sql.state_comparison import Row
    from woodrat.engines.sql.tables import Tables


class SqliteKeptStates:
    """What one view keeps of entities."""

    def __init__(self, view: Tables) -> None:
        self._view = view

    def entities(self) -> Iterator[Row]:
        """Yield the rows of all entities, by type and key."""
        return iter(self._view.select("entities_kept", tenant=self._view.tenant_number))

    def past(self, row: Row) -> Iterator[tuple[Any, ...]]:
        """Yield the states kept along the history of an entity; of most there are none, which its row says."""
        return iter(self._view.select("kept_of", entity=row[0]) if row[7] else ())
