"""As-of: the coordinate of a read, on two clocks.

`position` bounds knowledge, `effective` validity: observations are first selected, then merged, so an answer about the
past is the merge result at that time.
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
    """The observation."""

    def to_json(self) -> dict[str, Any]:
        """Return the observation as plain JSON, with its position beside its own keys."""
        return {"position": self.position, **self.observation.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Stored:
        """Parse the output of `to_json`."""
        return cls(value["position"], Observation.from_json(value))

    @staticmethod
    def compact_members() -> tuple[str, ...]:
        """Return its compact form for lists, as `COMPACT` of other records, which a named tuple cannot have."""
        return ("position", *Observation.COMPACT)

    @staticmethod
    def json_schema(describe: Describe) -> dict[str, Any]:
        """Return the JSON Schema of the output of `to_json`."""
        said = Observation.json_schema(describe)
        position = {"type": "integer", "description": "Its position in the log."}
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
    """Only statements true by then count (fixed-width UTC); None counts all known ones."""

    def selects(self, stored: Stored) -> bool:
        """Return True if an observation counts here; a retraction counts with any `valid_from`."""
        if stored.position > self.position:
            return False
        observation = stored.observation
        return self.effective is None or observation.op == RETRACT or observation.valid_from <= self.effective

    def select(self, stored: Iterable[Stored]) -> Iterator[Observation]:
        """Yield the observations that count here."""
        return (item.observation for item in stored if self.selects(item))
