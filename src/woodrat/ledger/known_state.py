"""Comparing: what is believed with a state that was written down once, and one reading of a source with another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.moments import NO_READ
from woodrat.merge.diff import EntityChange, FieldChange, Values, diff, field_changes
from woodrat.merge.snapshot import Snapshot
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.state.interpretation import Interpretation
from woodrat.state.observation import Observation

_SHAPE = "Send snapshots as `show` and `entities list` give them: each with its entity and its fields."


@dataclass(frozen=True, slots=True)
class ReadingsDiff(Record):
    """How two readings differ: in how they were made, and in what they said."""

    before: str
    """Id of the first reading."""
    after: str
    """Id of the second."""
    settings: tuple[FieldChange, ...]
    """How they were made and how they ended, as far as that differs; such as `model` or `parameters.temperature`."""
    entities: tuple[EntityChange, ...]
    """What they said differently, by entity: `added` is said by the second alone, `removed` by the first alone."""


def readings_diff(before: Interpretation, after: Interpretation, observations: Iterable[Observation]) -> ReadingsDiff:
    """Return how two readings differ; what each said is the last it said of a field, in the order given."""
    said: dict[str, dict[str, dict[str, Json]]] = {before.id: {}, after.id: {}}
    for observation in observations:
        by = observation.optional.get("interpretation")
        if isinstance(by, str) and by in said:
            fields = said[by].setdefault(str(observation.entity), {})
            fields.update(observation.fields)
            # As a record writes it; no field can have such a name.
            fields.update((f"$.remove.{name}", list(elements)) for name, elements in observation.remove.items())
    values = (
        {entity: Values((entity,), False, fields) for entity, fields in said[id].items()}
        for id in (before.id, after.id)
    )
    settings = field_changes(_settings(before), _settings(after))
    return ReadingsDiff(before.id, after.id, settings, diff(*values))


def _settings(reading: Interpretation) -> dict[str, Json]:
    """Return how a reading was made and how it ended; not when, nor at what price."""
    stated = reading.to_json()
    names = ("source", "agent", "model", "prompt", "extractor", "status", "error")
    found: dict[str, Json] = {name: stated[name] for name in names if stated[name] is not None}
    for group in ("parameters", "configuration"):
        found.update((f"{group}.{name}", value) for name, value in stated[group].items())
    return found


def known_values(state: object, path: str = "against") -> dict[str, Values]:
    """Return the values of a state as snapshots tell it, by the reference of each one's first member.

    `state` is a list of snapshots, an object that has them under `entities`, or one snapshot. Of a snapshot `entity`
    and `fields` are needed, `members` and `deleted` are optional, and the rest says nothing about values.
    """
    faults: list[Fault] = []
    snapshots = _snapshots(state, path, faults)
    found: dict[str, Values] = {}
    for where, snapshot in snapshots:
        known = _values(snapshot, where, faults)
        if known is None:
            continue
        if known.members[0] in found:
            problem = f"{known.members[0]} appears more than once"
            faults.append(Fault(where, problem, "Send each entity once, as it was at one moment."))
        found[known.members[0]] = known
    if faults:
        raise Refused(faults, outcome=NO_READ)
    return found


def is_one(state: object) -> bool:
    """Return whether a state is that of one entity, as `show` gives it, and not a list of all there is."""
    return isinstance(state, Snapshot) or (isinstance(state, Mapping) and "items" not in state)


def _snapshots(state: object, path: str, faults: list[Fault]) -> list[tuple[str, object]]:
    listed = state
    if isinstance(state, Snapshot):
        return [(path, state)]
    if isinstance(state, Mapping):
        if "items" not in state:
            if "changes" in state:
                faults.append(Fault(path, "this is a diff of two states, not a state", _SHAPE))
                return []
            return [(path, state)]
        listed, path = state["items"], f"{path}/items"
        if state.get("cursor") is not None:
            problem = "it has a cursor: these are some of the entities, not all"
            faults.append(Fault(path, problem, "Send all of them, as `entities list --all` prints them."))
    if not isinstance(listed, list | tuple):
        faults.append(Fault(path, f"expected a list of snapshots, got {shown(listed)}", _SHAPE))
        return []
    return [(f"{path}/{number}", snapshot) for number, snapshot in enumerate(listed)]


def _values(snapshot: object, path: str, faults: list[Fault]) -> Values | None:
    told: Any = snapshot.more if isinstance(snapshot, Snapshot) else None
    if isinstance(snapshot, Mapping):
        told = snapshot.get("more")
    if told:
        problem = f"it has only the first elements of {', '.join(sorted(map(str, told)))}"
        faults.append(Fault(f"{path}/more", problem, "Compare with a position or a tag of the ledger instead."))
        return None
    if isinstance(snapshot, Snapshot):
        return Values.of(snapshot)
    if not isinstance(snapshot, Mapping):
        faults.append(Fault(path, f"expected a snapshot, got {shown(snapshot)}", _SHAPE))
        return None
    before = len(faults)
    entity = _reference(snapshot.get("entity"), f"{path}/entity", faults)
    fields: Any = snapshot.get("fields")
    if isinstance(fields, Mapping):
        fields = dict(fields)
        faults += form.faults(fields, f"{path}/fields")
    else:
        faults.append(Fault(f"{path}/fields", f"expected values by field, got {shown(fields)}", _SHAPE))
    stated = snapshot.get("members", [entity])
    if not isinstance(stated, list | tuple) or not stated:
        faults.append(
            Fault(f"{path}/members", f"expected references, got {shown(stated)}", "Leave it out, or list them.")
        )
        stated = ()
    members = [_reference(member, f"{path}/members/{n}", faults) for n, member in enumerate(stated) if entity]
    deleted = snapshot.get("deleted", False)
    if not isinstance(deleted, bool):
        faults.append(Fault(f"{path}/deleted", f"got {shown(deleted)}", "Send true or false, or leave it out."))
    if len(faults) > before:
        return None
    assert entity is not None and isinstance(deleted, bool)
    if entity not in members:
        faults.append(Fault(f"{path}/members", f"{entity} is not among them", "List the entity itself too."))
        return None
    # Groups go by their smallest member, whichever of them was asked for.
    ordered = sorted((ids.parse_ref(member) for member in members if member), key=lambda ref: ref.digest)
    return Values(tuple(map(str, ordered)), deleted, fields)


def _reference(text: object, path: str, faults: list[Fault]) -> str | None:
    try:
        return str(ids.parse_ref(text, path))
    except Refused as refusal:
        faults += refusal.faults
        return None
