"""Linking: where a plain value may have come from, found by its name and value."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from woodrat.canon import form
from woodrat.state.observation import NAMES_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.state.fact import Origin

LINKS_MAX: Final = 100_000
"""How many values of each kind are remembered."""

READS, CALLS, INPUTS = range(3)
"""Where a plain value may have come from; the first that knows it counts."""


class Links:
    """Values met in a run, by name and value, and the observations it has seen."""

    def __init__(self) -> None:
        self._found: tuple[dict[tuple[str, bytes], Origin], ...] = ({}, {}, {})
        self._seen: dict[Ref, dict[str, None]] = {}

    def add(self, where: int, name: str, value: Json, origin: Origin) -> None:
        """Remember a value; a later one of the same name and value counts instead."""
        known = self._found[where]
        if len(known) < LINKS_MAX:
            known[name, _spelled(value)] = origin

    def find(self, name: str, value: Json) -> Origin | None:
        """Return where a plain value of this name came from, marked as found by value."""
        key = (name, _spelled(value))
        for known in self._found:
            if (origin := known.get(key)) is not None:
                return {**origin, "by": "value"}
        return None

    def see(self, entity: Ref, observations: Iterable[str]) -> None:
        """Remember which observations of an entity were seen."""
        self._seen.setdefault(entity, {}).update(dict.fromkeys(observations))

    def seen(self, entities: Iterable[Ref]) -> list[str]:
        """Return the observations of these entities that were seen, the latest if they are very many."""
        return [id for entity in dict.fromkeys(entities) for id in self._seen.get(entity, ())][-NAMES_MAX:]


def _spelled(value: Json) -> bytes:
    data = form.serialise(value)
    return data if len(data) <= 64 else sha256(data).digest()
