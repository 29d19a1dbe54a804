"""Excerpts: the words of stored sources that observations point at, so that a value can be shown beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.canon import ids
from woodrat.ledger import entry_index
from woodrat.state import locator

if TYPE_CHECKING:
    from woodrat.engines.view import View
    from woodrat.state.observation import Observation


class Excerpts:
    """Reads excerpts from the sources that a log held at a position; each source is read once."""

    def __init__(self, view: View, through: int) -> None:
        self._view, self._through = view, through
        self._contents: dict[str, locator.Content | None] = {}

    def of(self, observation: Observation) -> str | None:
        """Return the words an observation points at; `None` where it points at none, or its source cannot show them."""
        where, source = observation.optional.get("locator"), observation.optional.get("source")
        if not isinstance(where, dict) or not isinstance(source, str):
            return None
        if source not in self._contents:
            content = source_content(self._view, source, self._through)
            self._contents[source] = None if content is None else locator.Content(content)
        found = self._contents[source]
        return None if found is None else locator.excerpt(where, found)


def source_content(view: View, name: str, through: int) -> bytes | None:
    """Return the content of a source, by its full name; `None` where the log did not hold it, or it was erased."""
    digest = ids.digest_of("source", name)
    position = None if digest is None else entry_index.source_position(view, digest)
    entry = None if position is None or position > through else view.entry(position)
    return None if entry is None else entry.body
