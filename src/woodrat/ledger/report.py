"""Report: the answer to a write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from woodrat.merge.diff import FieldChange
from woodrat.record_json import IN_PYTHON_ONLY, WHEN_SET, Record
from woodrat.records import dataclass, field, fields_of
from woodrat.state.match import Match


@dataclass(frozen=True, slots=True)
class Change(Record):
    """What a write changed in one entity."""

    entity: str
    """The entity, as a reference."""
    was_deleted: bool
    """Whether it was deleted before."""
    is_deleted: bool
    """Whether it is deleted after."""
    fields: tuple[FieldChange, ...]
    """Fields before and after, by name."""


@dataclass(slots=True, eq=False)
class Report(Record):
    """What a write did; never changed once made. What a caller may not look at is worked out when they do."""

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
    by_arrival: tuple[str, ...]
    """Fields the write speaks of that are decided only by arrival now, as `type/key#field`: no time was given."""
    hints: tuple[str, ...]
    """What the caller may want to know, as sentences."""
    repeated: bool
    """Whether this is the answer of an earlier call, given again; nothing was written now."""
    dry_run: bool
    """Whether nothing was written because the caller asked for that."""
    id: str | None
    """Id of the source, schema or interpretation the write made or found, where it did."""
    matched: tuple[Match, ...] = field(metadata=WHEN_SET)
    """Records that were attached to known entities, and how each was found; JSON has it only where there are any."""
    times: Mapping[str, str] = field(metadata=WHEN_SET)
    """What times that were said in words turned out to be, by argument; JSON has it only where there are any."""
    _rest: Callable[[], Mapping[str, Any]] | None = field(metadata=IN_PYTHON_ONLY)
    """Gives the parts that are not there yet."""

    def __init__(
        self, *, rest: Callable[[], Mapping[str, Any]] | None = None, repeated: bool = False, **parts: Any
    ) -> None:
        """`rest` gives the parts that are not given, when one of them is first asked for."""
        assert rest is not None or parts.keys() >= _STATED
        set_part = object.__setattr__
        set_part(self, "repeated", repeated)
        set_part(self, "dry_run", False)
        set_part(self, "id", None)
        set_part(self, "matched", ())
        set_part(self, "times", {})
        set_part(self, "_rest", rest)
        for name, value in parts.items():
            set_part(self, name, value)

    def __getattr__(self, name: str) -> Any:
        rest = None if name == "_rest" else self._rest
        if rest is None or name not in _PARTS:
            raise AttributeError(f"a report has no {name}")
        for part, value in rest().items():
            object.__setattr__(self, part, value)
        object.__setattr__(self, "_rest", None)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a report is not changed; {name} stays as it is")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Report):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _PARTS)

    def __hash__(self) -> int:
        return hash((self.position, self.observations))

    def __repr__(self) -> str:
        return f"Report({', '.join(f'{name}={getattr(self, name)!r}' for name in _PARTS)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _report, (parts(self),)

    def but(self, **parts: Any) -> Report:
        """Return the same report with some parts changed."""
        return Report(**{name: getattr(self, name) for name in _PARTS} | parts)

    def again(self) -> Report:
        """Return the report as the answer to a repeated call."""
        return self.but(repeated=True)


def parts(report: Report) -> dict[str, Any]:
    """Return all parts of a report by name."""
    return {name: getattr(report, name) for name in _PARTS}


def _report(parts: Mapping[str, Any]) -> Report:
    return Report(**parts)


_PARTS: Final = tuple(name for name in fields_of(Report) if name != "_rest")
_STATED: Final = frozenset(_PARTS) - {"repeated", "dry_run", "id", "matched", "times"}
