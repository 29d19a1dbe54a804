"""Fact: a named value with its origin; what decisions are made on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.canon.form import Json

Origin = Mapping[str, Any]
"""Where a value came from, in the shape of docs/formats/runs.md."""

STATED: Final[Origin] = {"kind": "stated"}
"""The origin of a value that nothing in the run accounts for."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value with its origin; hand it to `decide` under its own name, or under another in a mapping."""

    name: str
    """What it is called: the field, the input, the last part of the path."""
    value: Json
    """The value; null when there is none."""
    origin: Origin
    """Where it came from."""
    missing: bool = False
    """Whether there is no such value at its origin."""

    def to_json(self) -> dict[str, Any]:
        """Return the fact as plain JSON."""
        found: dict[str, Any] = {"name": self.name, "value": self.value, "origin": dict(self.origin)}
        return {**found, "missing": True} if self.missing else found
