"""Diff: the differences between two states, exact enough that `apply(diff(a, b), a) == b`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.errors import Outdated
from woodrat.merge import fold
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.merge.snapshot import Snapshot, fields_of
from woodrat.record_json import WHEN_SET, Record
from woodrat.records import dataclass
from woodrat.records import field as record_field
from woodrat.state.match import Match


@dataclass(frozen=True, slots=True)
class Values(Record):
    """The values of one entity or group, without provenance."""

    members: tuple[str, ...]
    """The entities folded together, as references."""
    deleted: bool
    """Whether it is deleted."""
    fields: Mapping[str, Json]
    """Values by field."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Values:
        """Return the values a snapshot shows."""
        return cls(tuple(map(str, snapshot.members)), snapshot.deleted, snapshot.fields)

    @classmethod
    def of_state(cls, state: MergeState, rules: Rules) -> Values:
        """Return the values that merge state shows."""
        return cls(tuple(map(str, state.members)), state.deleted, fields_of(state, rules))


@dataclass(frozen=True, slots=True)
class FieldChange(Record):
    """One field before and after. `had` and `has` distinguish null from absent."""

    field: str
    """The field."""
    had: bool
    """Whether it had a value before."""
    before: Json
    """The value before; null where it had none."""
    has: bool
    """Whether it has a value after."""
    after: Json
    """The value after; null where it has none."""
    part: bool = False
    """Whether a large collection shows only its added and removed elements; false if all of them changed."""


@dataclass(frozen=True, slots=True)
class EntityChange(Record):
    """One entity before and after."""

    entity: str
    """The entity, or the smallest of a group, as a reference."""
    kind: str
    """`added`, `removed` or `changed`."""
    members_before: tuple[str, ...]
    """The group before."""
    members_after: tuple[str, ...]
    """The group after."""
    was_deleted: bool
    """Whether it was deleted before."""
    is_deleted: bool
    """Whether it is deleted after."""
    fields: tuple[FieldChange, ...]
    """Fields that differ, by name."""


@dataclass(frozen=True, slots=True)
class Changes(Record):
    """The differences between two states, by entity; iterable, and false when empty."""

    before: int | None
    """The log position that the earlier moment means; None: a state that was written down."""
    after: int
    """The log position that the later moment means."""
    changes: tuple[EntityChange, ...]
    """The entities that differ, by reference."""
    matched: Match | None = record_field(default=None, metadata=WHEN_SET)
    """How the entity was found, if by an identifying value."""

    def __iter__(self) -> Iterator[EntityChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


def field_changes(before: Mapping[str, Json], after: Mapping[str, Json]) -> tuple[FieldChange, ...]:
    """Return the fields whose values differ, by name; equal means equal canonical bytes, so 1 and true differ."""
    if not before:  # as if everything were sent for the first time
        return tuple([FieldChange(name, False, None, True, after[name]) for name in sorted(after)])
    found = []
    for name in sorted(set(before) | set(after)):
        had, has = name in before, name in after
        if had != has or not form.same(before[name], after[name]):
            found.append(FieldChange(name, had, before.get(name), has, after.get(name)))
    return tuple(found)


def collection_changes(before: MergeState, after: MergeState) -> dict[str, FieldChange | None]:
    """Return the changes in collections that are large before or after, by field; `None` if there are none.

    For a stored state, the cost depends on its changes only.
    """
    found: dict[str, FieldChange | None] = {}
    for name in sorted({*fold.spread(before), *fold.spread(after)}):
        old, new = before.held.get(name), after.held.get(name)
        if len({type(held) for held in (old, new) if held is not None}) > 1:
            continue  # another policy: compare the values
        had, has = old is not None and not before.deleted, new is not None and not after.deleted
        went: list[Json] = []
        came: list[Json] = []
        if had and has:
            assert old is not None and new is not None
            for key in sorted(new.parts.touched_since(old.parts)):
                was, now = ([] if p is None else new.show_part(p) for p in (old.parts.get(key), new.parts.get(key)))
                if not form.same(was, now):
                    went += was
                    came += now
        elif old is None and new is not None and has:
            # All of it is new. What deleting and restoring an entity hides and shows is not listed.
            came = [element for _, part in sorted(new.parts.items()) for element in new.show_part(part)]
        changed = had != has or went or came
        found[name] = (
            FieldChange(name, had, went if had else None, has, came if has else None, True) if changed else None
        )
    return found


_NOTHING = Values((), False, {})


def diff(before: Mapping[str, Values], after: Mapping[str, Values]) -> tuple[EntityChange, ...]:
    """Return the differences between two states, by entity."""
    changes = (entity_change(name, before.get(name), after.get(name)) for name in sorted(set(before) | set(after)))
    return tuple(change for change in changes if change is not None)


def entity_change(entity: str, before: Values | None, after: Values | None) -> EntityChange | None:
    """Return the difference of one entity between two states, each of which may lack it; None if there is none."""
    a, b = before or _NOTHING, after or _NOTHING
    fields = field_changes(a.fields, b.fields)
    if (before is None) == (after is None) and not fields and a.members == b.members and a.deleted == b.deleted:
        return None
    kind = "added" if before is None else "removed" if after is None else "changed"
    return EntityChange(entity, kind, a.members, b.members, a.deleted, b.deleted, fields)


def apply(changes: Iterable[EntityChange], state: Mapping[str, Values]) -> dict[str, Values]:
    """Return the state that a diff leads to; `Outdated` where it was not made from this state."""
    result = dict(state)
    for change in changes:
        here = result.get(change.entity)
        if (here is None) != (change.kind == "added"):
            raise _elsewhere(change.entity)
        values = here or _NOTHING
        if values.members != change.members_before or values.deleted != change.was_deleted:
            raise _elsewhere(change.entity)
        fields = dict(values.fields)
        for field in change.fields:
            had = field.field in fields
            if had != field.had or (had and not form.same(fields[field.field], field.before)):
                raise _elsewhere(f"{change.entity}#{field.field}")
            if field.has:
                fields[field.field] = field.after
            else:
                del fields[field.field]
        if change.kind == "removed":
            if fields:
                raise _elsewhere(change.entity)
            del result[change.entity]
        else:
            result[change.entity] = Values(change.members_after, change.is_deleted, fields)
    return result


def _elsewhere(what: str) -> Outdated:
    return Outdated(
        f"{what}: the diff was not made from this state. Nothing was changed. Make the diff again.", {"at": what}
    )
