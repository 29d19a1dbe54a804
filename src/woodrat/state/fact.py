"""Fact: a named value with its origin, the material of decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.canon.form import Json

Origin = Mapping[str, Any]
"""Where a value came from, in the shape of docs/formats/runs.md."""

STATED: Final[Origin] = {"kind": "stated"}
"""The origin of a value without a source in the run."""


@dataclass(frozen=True, slots=True)
class Fact(Record):
    """A value with its origin; pass it to `decide` under its own name, or under another in a mapping."""

    name: str
    """Its name: the field, the input, the last part of the path."""
    value: Json
    """The value; null if there is none."""
    origin: Origin
    """Where it came from."""
    missing: bool = False
    """Whether its origin has no such value."""
