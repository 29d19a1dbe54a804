"""Report: the answer to a write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.views.diff import FieldChange


@dataclass(frozen=True, slots=True)
class Change:
    """What a write changed in one entity."""

    entity: str
    """The entity, as a reference."""
    deleted: tuple[bool, bool]
    """Whether it was and is deleted."""
    fields: tuple[FieldChange, ...]
    """Fields before and after, by name."""

    def to_json(self) -> dict[str, Any]:
        """Return the change as plain JSON."""
        return {
            "entity": self.entity,
            "deleted": list(self.deleted),
            "fields": [field.to_json() for field in self.fields],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What a write did."""

    position: int
    """The log's position after the write: reading as of it shows the write."""
    positions: tuple[int, ...]
    """Positions of the entries written; empty when there was nothing new to say."""
    observations: tuple[str, ...]
    """Ids of the observations stated, new or known, in the order stated."""
    known: tuple[str, ...]
    """Those of them that the log already held."""
    entities: tuple[str, ...]
    """Entities spoken of, as references, in the order stated."""
    changes: tuple[Change, ...]
    """What changed, by entity."""
    conflicts: tuple[str, ...]
    """Fields that are in conflict now and were not before, as `type/key#field`."""
    hints: tuple[str, ...]
    """What the caller may want to know, as sentences."""
    repeated: bool = False
    """Whether this is the answer of an earlier call, given again; nothing was written now."""
    dry_run: bool = False
    """Whether nothing was written because the caller asked for that."""
    id: str | None = None
    """Id of the source, schema or interpretation the write made or found, where it did."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        return {
            "position": self.position,
            "positions": list(self.positions),
            "observations": list(self.observations),
            "known": list(self.known),
            "entities": list(self.entities),
            "changes": [change.to_json() for change in self.changes],
            "conflicts": list(self.conflicts),
            "hints": list(self.hints),
            "repeated": self.repeated,
            "dry_run": self.dry_run,
            "id": self.id,
        }

    def to_bytes(self) -> bytes:
        """Return the report as it is kept with an idempotency key."""
        return form.serialise(self.to_json())

    def again(self) -> Report:
        """Return the report as the answer to a repeated call."""
        return replace(self, repeated=True)


def from_bytes(data: bytes) -> Report:
    """Return the report kept with an idempotency key."""
    value: dict[str, Any] = form.decode(data)
    changes = tuple(
        Change(
            change["entity"],
            (change["deleted"][0], change["deleted"][1]),
            tuple(map(_field_change, change["fields"])),
        )
        for change in value["changes"]
    )
    return Report(
        position=value["position"],
        positions=tuple(value["positions"]),
        observations=tuple(value["observations"]),
        known=tuple(value["known"]),
        entities=tuple(value["entities"]),
        changes=changes,
        conflicts=tuple(value["conflicts"]),
        hints=tuple(value["hints"]),
        repeated=value["repeated"],
        dry_run=value["dry_run"],
        id=value["id"],
    )


def _field_change(value: dict[str, Json]) -> FieldChange:
    return FieldChange(
        str(value["field"]), "before" in value, value.get("before"), "after" in value, value.get("after")
    )
