"""As-of: the coordinate a read is answered at, on two clocks.

`position` bounds what was known, `effective` what was true: first the observations are selected, then they are
merged, so an answer about the past is what a merge at that time would have given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from woodrat.record_json import Describe
from woodrat.records import dataclass
from woodrat.state.observation import RETRACT, Observation


class Stored(NamedTuple):
    """An observation and its place in the log."""

    position: int
    """Where it stands."""
    observation: Observation
    """What it says."""

    def to_json(self) -> dict[str, Any]:
        """Return the observation as plain JSON, with its position beside its own keys."""
        return {"position": self.position, **self.observation.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Stored:
        """Return what `to_json` wrote."""
        return cls(value["position"], Observation.from_json(value))

    @staticmethod
    def compact_members() -> tuple[str, ...]:
        """Return what a list shows of it; as `COMPACT` of other records, which a named tuple cannot have."""
        return ("position", *Observation.COMPACT)

    @staticmethod
    def json_schema(describe: Describe) -> dict[str, Any]:
        """Return the JSON Schema of what `to_json` writes."""
        said = Observation.json_schema(describe)
        position = {"type": "integer", "description": "Where it stands in the log."}
        return {
            **said,
            "description": "An observation and its place in the log.",
            "required": ["position", *said["required"]],
            "properties": {"position": position, **said["properties"]},
        }


@dataclass(frozen=True, slots=True)
class AsOf:
    """A place on both clocks."""

    position: int
    """The last position that counts, inclusive."""
    effective: str | None = None
    """Only what was true by then counts (fixed-width UTC); left out, everything known does."""

    def selects(self, stored: Stored) -> bool:
        """Return whether an observation counts here; a retraction does whatever its `valid_from` is."""
        if stored.position > self.position:
            return False
        observation = stored.observation
        return self.effective is None or observation.op == RETRACT or observation.valid_from <= self.effective

    def select(self, stored: Iterable[Stored]) -> Iterator[Observation]:
        """Yield the observations that count here."""
        return (item.observation for item in stored if self.selects(item))
