"""Redacting: what a caller sends, without what a schema or the ledger hides, before anything else looks at it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.errors import Fault, pointer_part
from woodrat.ledger import entry_index
from woodrat.records import replace
from woodrat.state.record import Record
from woodrat.state.redaction import REDACTED, taken_out

if TYPE_CHECKING:
    from woodrat.engines.view import View


def sent(records: object, hidden: Collection[str]) -> object:
    """Return records as sent, without what stands under hidden keys; what is no field keeps its place."""
    if not hidden:
        return records
    if isinstance(records, list):
        return [sent(record, hidden) for record in records]
    if not isinstance(records, Mapping):
        return records
    about = records.get("$")
    found = {
        key: value if key in ("entity_type", "$") else REDACTED if key in hidden else taken_out(value, hidden)
        for key, value in records.items()
    }
    if isinstance(about, Mapping):
        said = dict(about)
        if isinstance(about.get("relate"), list):
            said["relate"] = [_relation(link, hidden) for link in about["relate"]]
        if "remove" in about:
            said["remove"] = by_key(about["remove"], hidden, elements=True)
        if any(value is not records[key] for key, value in found.items()) or said != about:
            _unquote(said)
        found["$"] = said
    return found


def _unquote(about: dict[str, Any]) -> None:
    """Take out of what a record says of itself the words of its source: they say what is hidden in it too."""
    where = about.get("locator")
    if isinstance(where, Mapping) and "quote" in where:
        about["locator"] = {part: value for part, value in where.items() if part != "quote"}
        if not about["locator"]:
            del about["locator"]


def arguments(given: Mapping[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    """Return the arguments of a verb that writes, by name and as a caller sent them, without hidden values."""
    if not hidden:
        return dict(given)
    hide: Mapping[str, Callable[[Any], Any]] = {
        "records": lambda value: sent(value, hidden),
        "remove": lambda value: by_key(value, hidden, elements=True),
        **dict.fromkeys(("fields", "parameters", "configuration", "preferred"), lambda value: taken_out(value, hidden)),
    }
    return {name: hide[name](value) if name in hide else value for name, value in given.items()}


def _relation(link: object, hidden: Collection[str]) -> object:
    if not isinstance(link, Mapping) or not isinstance(link.get("fields"), Mapping):
        return link
    return {**link, "fields": taken_out(link["fields"], hidden)}


def fields_of(view: View, type: str) -> frozenset[str]:
    """Return the fields that the schema in force for a type hides."""
    found = entry_index.schema_of(view, type, view.head().position)
    return frozenset() if found is None else found.redacted


def type_of(view: View, ref: object) -> str:
    """Return the type of an entity given as reference or id; empty for what is neither."""
    if isinstance(ref, str) and ids.is_id("entity", ref):
        ref = view.entity(ref)
    return ref.type if isinstance(ref, ids.Ref) else str(ref).partition("/")[0]


def hide(view: View, type: str, fields: dict[str, Json], *removals: dict[str, Any]) -> bool:
    """Take out of values and removals, in place, what the schema of a type hides; return whether that was any."""
    names = fields_of(view, type)
    found = bool(names & fields.keys())
    for name in names & fields.keys():
        fields[name] = REDACTED
    for remove in removals:
        for name in names & remove.keys():
            remove[name] = [REDACTED]
            found = True
    return found


def by_key(fields: Any, hidden: Collection[str], *, elements: bool = False) -> Any:
    """Return values by field as sent, or `elements` of collections, without what stands under hidden keys."""
    if not hidden or not isinstance(fields, Mapping):
        return fields
    if elements:
        return {name: [REDACTED] if name in hidden else taken_out(value, hidden) for name, value in fields.items()}
    return taken_out(fields, hidden)


def values(fields: Mapping[str, Json], names: Collection[str]) -> dict[str, Json]:
    """Return values by field, without those of some."""
    return {name: REDACTED if name in names else value for name, value in fields.items()}


def by_schema(view: View, records: Sequence[Record]) -> list[Record] | None:
    """Return records without the values that schemas hide; none when they hide nothing here."""
    types = {record.type for record in records}
    for record in records:
        if record.relate:
            types.update([link.type for link in record.relate])
    through = view.head().position
    names: dict[str, frozenset[str]] = {}
    for type in types:
        known = entry_index.schema_of(view, type, through)
        if known is not None and known.redacted:
            names[type] = known.redacted
    return [_without(record, names) for record in records] if names else None


def _without(record: Record, names: Mapping[str, frozenset[str]]) -> Record:
    mine = names.get(record.type, frozenset())
    links = tuple(replace(link, fields=values(link.fields, names.get(link.type, ()))) for link in record.relate)
    if mine.isdisjoint(record.fields) and mine.isdisjoint(record.remove) and links == record.relate:
        return record
    given: dict[str, Any] = form.decode(record.data)
    for name in mine & given.keys():
        given[name] = REDACTED
    about = given.get("$", {})
    for link, said in zip(links, about.get("relate", ()), strict=True):
        if "fields" in said:
            said["fields"] = dict(link.fields)
    for name in mine & about.get("remove", {}).keys():
        about["remove"][name] = [REDACTED]
    _unquote(about)
    where = about.get("locator")
    return record._replace(
        locator=None if where is None else form.serialise(where),
        data=form.serialise(given),
        fields=values(record.fields, mine),
        spelled=None,
        remove={name: [REDACTED] if name in mine else elements for name, elements in record.remove.items()},
        relate=links,
    )


def quieted(view: View, records: object, faults: Sequence[Fault]) -> list[Fault]:
    """Return faults of records as sent, without the values of fields that schemas hide."""
    found: list[Fault] = []
    for fault in faults:
        record, steps = records, fault.path.split("/")[1:]
        if isinstance(records, list) and steps and steps[0].isdigit() and int(steps[0]) < len(records):
            record, steps = records[int(steps[0])], steps[1:]
        kind = record.get("entity_type") if isinstance(record, dict) else None
        found += _quiet(fault, steps[:1], fields_of(view, kind) if isinstance(kind, str) else ())
    return found


def quieted_fields(view: View, type: str, faults: Sequence[Fault]) -> list[Fault]:
    """Return faults of values at `/fields/…` or `/remove/…`, without the values that the schema of a type hides."""
    names = fields_of(view, type)
    return [quiet for fault in faults for quiet in _quiet(fault, fault.path.split("/")[2:3], names)]


def _quiet(fault: Fault, step: Sequence[str], names: Collection[str]) -> list[Fault]:
    if not step or step[0] not in map(pointer_part, names):
        return [fault]
    return [Fault(fault.path, "the value is not valid; it is redacted, so it is not shown", "Send another value.")]
