"""Record: a caller's input to `store`, parsed once at the border.

`entity_type` is reserved, every other plain key is a field, and `$` holds metadata of the claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from woodrat.canon import form, ids, moment
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.records import dataclass
from woodrat.state import locator
from woodrat.state.observation import optional_faults, priority_faults, stating_faults

RECORDS_MAX = 100_000
"""Most records one call may store."""
SHAPES_MAX = 256
"""Cache size for valid shapes of records, each a type and names of fields."""
SHAPE_NAMES_MAX = 64
"""Most names of a shape that is remembered."""

_ABOUT = frozenset(
    {"confidence", "key", "locator", "observed_at", "priority", "reason", "relate", "remove", "source", "valid_from"}
)


_SCALARS: Final = frozenset({str, int, bool, type(None)})
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_PLAIN_REST: Final = (_NOTHING, None, None, None, None, None, None, None, None, ())
"""The parts of a record without metadata, after its fields."""
_make: Final = tuple.__new__
_sound: dict[tuple[str, ...], bytes] = {}
"""Shapes of records that were looked at, and how each states its type."""


@dataclass(frozen=True, slots=True)
class Relate:
    """A relation stated inside a record, from the record's entity to another."""

    path: str
    """Its place in the input."""
    type: str
    """The relation type."""
    to: Ref
    """The other end."""
    key: str | None
    """Distinguishes several relations between the same two entities."""
    fields: Mapping[str, Json]
    """Further fields of the relation."""


class Record(NamedTuple):
    """One parsed record; nothing about it has been compared with a schema or a log yet."""

    path: str
    """Where it stands in the input."""
    data: bytes
    """Canonical bytes of the record as sent."""
    type: str
    """The entity type."""
    fields: dict[str, Json]
    """Values by field."""
    spelled: bytes | None = None
    """Canonical bytes of `fields`, where they are known."""
    remove: Mapping[str, list[Json]] = _NOTHING
    """Elements to take out of collections, by field."""
    key: str | None = None
    """The entity's key, where it is stated rather than made by an identity rule."""
    observed_at: str | None = None
    valid_from: str | None = None
    priority: int | None = None
    source: str | None = None
    confidence: float | None = None
    reason: str | None = None
    locator: bytes | None = None
    """Where in its source the record was read, as canonical bytes."""
    relate: tuple[Relate, ...] = ()


def parse_records(value: object, faults: list[Fault]) -> list[Record]:
    """Return the records of a call, a list of objects or one object; add the faults of the others to `faults`."""
    if isinstance(value, dict):
        items: list[tuple[str, object]] = [("", value)]
    elif isinstance(value, list):
        items = [(f"/{index}", item) for index, item in enumerate(value)]
    else:
        problem = f"expected a list of records or one record, got {shown(value)}"
        faults.append(Fault("", problem, 'Send [{"entity_type": …, …}, …].'))
        return []
    if not items:
        faults.append(Fault("", "the list is empty", "Send at least one record."))
    if len(items) > RECORDS_MAX:
        problem = f"{len(items)} records in one call"
        faults.append(Fault("", problem, f"Send at most {RECORDS_MAX}; several calls may follow each other."))
        return []
    records: list[Record] = []
    for path, item in items:
        found: list[Fault] = []
        record = _plain(item, path) or _record(item, path, found)
        faults += found
        if record is not None:
            records.append(record)
    return records


def _plain(item: object, path: str) -> Record | None:
    """Return the record if it has only a type and fields and passes a quick check; else None."""
    if type(item) is not dict or "$" in item:
        return None
    kind = item.get("entity_type")
    if type(kind) is not str or len(item) < 2:
        return None
    shape = (kind, *item)
    pair = _sound.get(shape)
    flat = _SCALARS.issuperset(map(type, item.values()))
    # Checked names need no second check, and values of scalars only have to be spelled.
    # Copied, because the caller may change the original later.
    copied = None if pair is None else item.copy() if flat else _shallow_copy(item)
    if pair is not None and copied is not None:
        data = form.quick_flat(copied)
        if data is None:
            return None
        fields: dict[str, Json] = copied
        del fields["entity_type"]
    else:
        data = form.quick(item, outer=1)
        if data is None:
            return None
        fields = form.decode(data)
        del fields["entity_type"]
        if pair is None:
            if ids.type_faults(kind) or stating_faults(fields, None, path):
                return None
            pair = _remember(shape)
        if not flat and data.count(b"{") > 1:
            return Record(path, data, kind, fields)
    # A quotation mark inside a text is escaped, and no value is a nested object: so these bytes occur only at the type.
    spelled = data.replace(pair, b"", 1)
    if len(spelled) == len(data):
        spelled = data.replace(b"," + pair[:-1], b"", 1)
    # As `Record(…)`, in half the time.
    return _make(Record, (path, data, kind, fields, spelled, *_PLAIN_REST))


def _shallow_copy(item: dict[str, Any]) -> dict[str, Any] | None:
    """Return a copy of an object that holds only scalars without floats, and lists of such; None of any other."""
    found = item.copy()
    for name, value in item.items():
        kind = type(value)
        if kind is list:
            if not _SCALARS.issuperset(map(type, value)):
                return None
            found[name] = value[:]
        elif kind not in _SCALARS:
            return None
    return found


def _remember(shape: tuple[str, ...]) -> bytes:
    """Remember that a shape is valid; return the key under which a record of it states its type."""
    pair = b'"entity_type":"%b",' % shape[0].encode()
    if len(shape) <= SHAPE_NAMES_MAX:
        if len(_sound) >= SHAPES_MAX:
            _sound.clear()
        _sound[shape] = pair
    return pair


def _record(item: object, path: str, faults: list[Fault]) -> Record | None:
    wrong = form.faults(item, path, outer=1)
    if wrong:
        faults += wrong
        return None
    if not isinstance(item, dict):
        faults.append(Fault(path, f"expected an object, got {shown(item)}", "Send each record as an object."))
        return None
    data = form.serialise(item)
    if len(data) > form.BODY_BYTES_MAX:
        problem = f"the record has {len(data)} bytes, where {form.BODY_BYTES_MAX} bytes is the limit"
        faults.append(Fault(path, problem, "Send less in one record, or store the content as a source."))
        return None
    value: dict[str, Any] = form.decode(data)
    type = value.pop("entity_type", None)
    if type is None:
        faults.append(Fault(f"{path}/entity_type", "missing", "Name its type, such as contact."))
    else:
        faults += ids.type_faults(type, f"{path}/entity_type")
    about = value.pop("$", {})
    if not isinstance(about, dict):
        problem = f"expected an object, got {shown(about)}"
        faults.append(Fault(f"{path}/$", problem, "Put metadata of the claim there, such as key or priority."))
        return None
    for key in sorted(set(about) - _ABOUT):
        known = ", ".join(sorted(_ABOUT))
        faults.append(
            Fault(f"{path}/$/{pointer_part(key)}", "unknown name", f"Use {known}; plain keys of the record are fields.")
        )
    faults += stating_faults(value, None, path) + stating_faults(None, about.get("remove"), f"{path}/$")
    times: dict[str, str | None] = {}
    for key in ("observed_at", "valid_from"):
        times[key] = parse_moment(about.get(key), f"{path}/$/{key}", faults)
    if about.get("priority") is not None:
        faults += priority_faults(about["priority"], f"{path}/$/priority")
    key = about.get("key")
    if key is not None:
        faults += ids.text_faults(key, f"{path}/$/key", ids.KEY_BYTES_MAX, "key")
    source = about.get("source")
    if source is not None and not isinstance(source, str):
        faults.append(Fault(f"{path}/$/source", f"got {shown(source)}", "Name a stored source by its id."))
    faults += optional_faults({k: about[k] for k in ("confidence", "reason") if k in about}, f"{path}/$")
    where = about.get("locator")
    if where is not None:
        faults += locator.faults(where, f"{path}/$/locator")
    relate = _relations(about.get("relate"), f"{path}/$/relate", faults)
    if faults:
        return None
    return Record(
        path=path,
        data=data,
        type=type,
        fields=value,
        remove=about.get("remove") or {},
        key=key,
        observed_at=times["observed_at"],
        valid_from=times["valid_from"],
        priority=about.get("priority"),
        source=source,
        confidence=about.get("confidence"),
        reason=about.get("reason"),
        locator=None if where is None else form.serialise(where),
        relate=relate,
    )


def parse_moment(value: object, path: str, faults: list[Fault]) -> str | None:
    """Return a timestamp in fixed width; add its faults to `faults`. `None` stays `None`."""
    if value is None:
        return None
    if moment.is_fixed(value):
        return value  # type: ignore[return-value]
    try:
        return moment.parse(value, path)
    except Refused as refusal:
        faults += refusal.faults
        return None


def _relations(value: object, path: str, faults: list[Fault]) -> tuple[Relate, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        faults.append(Fault(path, f"expected a list, got {shown(value)}", 'Send [{"type": …, "to": "type/key"}].'))
        return ()
    found: list[Relate] = []
    for index, item in enumerate(value):
        here = f"{path}/{index}"
        if not isinstance(item, dict) or not {"type", "to"} <= set(item) <= {"type", "to", "key", "fields"}:
            faults.append(Fault(here, f"got {shown(item)}", 'Send {"type": …, "to": "type/key"}, and key or fields.'))
            continue
        wrong = ids.type_faults(item["type"], f"{here}/type")
        if item.get("key") is not None:
            wrong += ids.text_faults(item["key"], f"{here}/key", ids.KEY_BYTES_MAX, "key")
        wrong += stating_faults(item.get("fields"), None, here)
        try:
            to = ids.parse_ref(item["to"], f"{here}/to")
        except Refused as refusal:
            wrong += refusal.faults
        if wrong:
            faults += wrong
            continue
        found.append(Relate(here, item["type"], to, item.get("key"), item.get("fields") or {}))
    return tuple(found)
