"""Observation: one immutable statement about one entity, named by the digest of its canonical body.

An observation states everything its rank can depend on: when it was seen, since when it holds, the agent, the priority,
and the earlier observations it names. Its place in a log is no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, ClassVar, Final

from woodrat.canon import form, ids, moment
from woodrat.canon.digest import prefix as digest_prefix
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.record_json import Describe
from woodrat.state import locator

ASSERT, CORRECT, RETRACT, DELETE, RESTORE = "assert", "correct", "retract", "delete", "restore"
OPS = frozenset({ASSERT, CORRECT, RETRACT, DELETE, RESTORE})
STATING = frozenset({ASSERT, CORRECT})
"""Ops that state values."""
MARKERS = frozenset({DELETE, RESTORE})
"""Ops that mark an entity as deleted or restored."""

FIELDS_MAX = 2_000
"""Most fields one observation may state."""
FIELD_BYTES_MAX = 256
"""Longest field name, in UTF-8 bytes."""
SHOWN_NAME_MAX = 40
"""Longest excerpt of a field name in a fault's path."""
NAMES_MAX = 10_000
"""Most observations one observation may name in `replaces` or in `saw`."""
REASON_BYTES_MAX = 4_096
"""Longest reason, in UTF-8 bytes."""

_NONE: Final[frozenset[bytes]] = frozenset()
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_KIND: Final = digest_prefix("observation")
_blank: Final = object.__new__
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_RUN_ID = re.compile(r"[a-z]{3}_[A-Za-z0-9_.-]{1,60}")
PLAIN_PARTS: Final = 7
"""Number of members of a plain assertion without `assigned`: five of its own, its entity and its fields."""
_PLAIN_TYPES: Final = frozenset({(str, dict, dict, str, str, int, str), (str, bool, dict, dict, str, str, int, str)})
"""Their types, in canonical order, without `assigned` and with it."""
_PLAIN_KEYS: Final = frozenset({"agent", "entity", "fields", "observed_at", "op", "priority", "valid_from"})
_ASSIGNED_KEYS: Final = _PLAIN_KEYS | {"assigned"}
_ENTITY_KEYS: Final = frozenset({"key", "type"})
_OPTIONAL = ("confidence", "interpretation", "locator", "match", "reason", "run", "source", "step")
_KEYS = frozenset(
    {
        "agent",
        "assigned",
        "entity",
        "fields",
        "observed_at",
        "op",
        "priority",
        "remove",
        "replaces",
        "saw",
        "valid_from",
        *_OPTIONAL,
    }
)


class Observation:
    """One statement about one entity; never changed once made. Equal digests are equal observations."""

    COMPACT: ClassVar = ("id", "entity", "op", "agent", "observed_at", "fields", "remove")
    """Its members in lists."""

    __slots__ = (
        "agent",
        "assigned",
        "body",
        "digest",
        "entity",
        "fields",
        "fits",
        "observed_at",
        "op",
        "optional",
        "priority",
        "remove",
        "replaces",
        "saw",
        "valid_from",
    )

    def __init__(
        self,
        entity: Ref,
        op: str,
        fields: Mapping[str, Json],
        remove: Mapping[str, tuple[Json, ...]],
        observed_at: str,
        valid_from: str,
        agent: str,
        priority: int,
        replaces: frozenset[bytes],
        saw: frozenset[bytes],
        optional: Mapping[str, Json],
        body: bytes,
        digest: bytes,
        fits: bytes | None = None,
        assigned: bool = False,
    ) -> None:
        self.entity = entity
        """Its entity; recorded, never recomputed."""
        self.op = op
        """`assert`, `correct`, `retract`, `delete` or `restore`."""
        self.fields = fields
        """Field values stated; empty for retractions and markers."""
        self.remove = remove
        """Elements taken out of collections, by field."""
        self.observed_at = observed_at
        """When the writer saw it (fixed-width UTC)."""
        self.assigned = assigned
        """Whether the log set `observed_at`, because the writer stated none: it is when the statement arrived."""
        self.valid_from = valid_from
        """Since when it is true (fixed-width UTC)."""
        self.agent = agent
        """Who says so."""
        self.priority = priority
        """Trust in the writer; larger wins if the policy uses it."""
        self.replaces = replaces
        """Digests that it names: the observations that a correction or marker replaces, or a retraction withdraws."""
        self.saw = saw
        """Digests of claims the writer had read before saying this."""
        self.optional = optional
        """`run`, `step`, `source`, `locator`, `interpretation`, `confidence`, `match`, `reason`, if stated."""
        self.body = body
        """Canonical bytes; the digest and the log commit to these."""
        self.digest = digest
        """SHA-256 of kind, format and body."""
        self.fits = fits
        """Digest of the schema that its values are known to fit, so that no merge checks again; no part of the
        statement."""

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Observation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Observation({self.id}, {self.body.decode()})"

    @property
    def id(self) -> ids.ObservationId:
        """The short name people see."""
        return ids.ObservationId(ids.id_of("observation", self.digest))

    @property
    def name(self) -> str:
        """The full name other observations use."""
        return ids.name("observation", self.digest)

    @property
    def stated(self) -> frozenset[str]:
        """Fields this observation speaks about, by value or by removal."""
        return frozenset(self.fields) | frozenset(self.remove)

    def to_json(self) -> dict[str, Any]:
        """Return the body as plain JSON, with the observation's own id."""
        body: dict[str, Any] = form.decode(self.body)
        return {"id": self.id, **body}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Observation:
        """Return the observation that `to_json` wrote; `ValueError` where its id is not that of the rest."""
        observation = stored(form.encode({name: part for name, part in value.items() if name in _KEYS}))
        if value["id"] != observation.id:
            raise ValueError(f"the body of {value['id']} is that of {observation.id}")
        return observation

    @staticmethod
    def json_schema(describe: Describe) -> dict[str, Any]:
        """Return the JSON Schema of the output of `to_json`."""
        text, names = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
        properties: dict[str, Any] = {
            "id": {**text, "description": "The short name people see."},
            "entity": {
                "type": "object",
                "description": "Its subject.",
                "required": ["key", "type"],
                "properties": {"key": text, "type": text},
            },
            "op": {"enum": sorted(OPS), "description": "What it does."},
            "agent": {**text, "description": "Who says so."},
            "observed_at": {**text, "description": "When the writer saw it."},
            "valid_from": {**text, "description": "Since when it is true."},
            "priority": {"type": "integer", "description": "Trust in the writer."},
        }
        return {
            "type": "object",
            "description": "One statement about one entity: the body of its entry, and its id.",
            "required": list(properties),
            "properties": {
                **properties,
                "assigned": {"const": True, "description": "There if the log set `observed_at`."},
                "fields": {"type": "object", "description": "Field values stated."},
                "remove": {"type": "object", "description": "Elements taken out of collections, by field."},
                "replaces": {**names, "description": "Names of observations it replaces or withdraws."},
                "saw": {**names, "description": "Names of observations the writer had read before."},
                **{name: {"description": "As far as stated."} for name in _OPTIONAL},
            },
        }


def say(
    entity: Ref,
    op: str,
    *,
    agent: str,
    observed_at: str,
    valid_from: str | None = None,
    fields: Mapping[str, Json] | None = None,
    remove: Mapping[str, Iterable[Json]] | None = None,
    priority: int = 0,
    replaces: Iterable[bytes] = (),
    saw: Iterable[bytes] = (),
    assigned: bool = False,
    **optional: Json,
) -> Observation:
    """Return the observation with these parts; default for `valid_from`: `observed_at`.

    The parts are checked as if they came from outside: `Refused` lists every fault.
    """
    body: dict[str, Any] = {
        "agent": agent,
        "entity": entity.to_json(),
        "observed_at": observed_at,
        "op": op,
        "priority": priority,
        "valid_from": observed_at if valid_from is None else valid_from,
    }
    if fields:
        body["fields"] = dict(fields)
    if remove:
        body["remove"] = {name: list(elements) for name, elements in remove.items()}
    if names := sorted(ids.name("observation", d) for d in set(replaces)):
        body["replaces"] = names
    if names := sorted(ids.name("observation", d) for d in set(saw)):
        body["saw"] = names
    body.update({key: value for key, value in optional.items() if value is not None})
    if assigned:
        body["assigned"] = True
    found = body_faults(body)
    if found:
        raise Refused(found)
    return stored(form.encode(body))


class Voice:
    """Members that all assertions of one call share: agent, times, certainty. It makes the assertions.

    Its parts were checked at the border; of an assertion only the size is checked.
    """

    __slots__ = (
        "_head",
        "_tail",
        "agent",
        "assigned",
        "observed_at",
        "optional",
        "priority",
        "saw",
        "valid_from",
    )

    def __init__(
        self,
        agent: str,
        observed_at: str,
        valid_from: str | None,
        priority: int,
        saw: frozenset[bytes] = _NONE,
        optional: Mapping[str, Json] = _NOTHING,
        assigned: bool = False,
    ) -> None:
        self.agent = agent
        self.assigned = assigned
        self.observed_at = observed_at
        self.valid_from = observed_at if valid_from is None else valid_from
        self.priority = priority
        self.saw = saw
        self.optional = {key: value for key, value in optional.items() if value is not None} if optional else _NOTHING
        # Keys are sorted: `entity` and `fields` are between `confidence` and `interpretation`.
        if not self.optional and not saw:
            head = b'{"agent":%b,"assigned":true,"entity":{"key":' if assigned else b'{"agent":%b,"entity":{"key":'
            self._head = head % form.spell_text(agent)
            self._tail = b',"observed_at":"%b","op":"assert","priority":%d,"valid_from":"%b"}' % (
                observed_at.encode(),
                priority,
                self.valid_from.encode(),
            )
            return
        # Inside a text quotation marks are escaped, so these bytes occur nowhere else.
        before, _, after = form.serialise({**self._parts(), "entity": 0}).partition(b',"entity":0,')
        self._head = before + b',"entity":{"key":'
        self._tail = b"," + after

    def _parts(self) -> dict[str, Any]:
        """Return the members of every assertion besides its own."""
        parts: dict[str, Any] = {
            "agent": self.agent,
            "observed_at": self.observed_at,
            "op": ASSERT,
            "priority": self.priority,
            "valid_from": self.valid_from,
            **self.optional,
        }
        if self.saw:
            parts["saw"] = sorted(ids.name("observation", digest) for digest in self.saw)
        if self.assigned:
            parts["assigned"] = True
        return parts

    def assertion(
        self,
        entity: Ref,
        fields: Mapping[str, Json],
        remove: Mapping[str, Iterable[Json]] = _NOTHING,
        spelled: bytes | None = None,
        fits: bytes | None = None,
    ) -> Observation:
        """Return the assertion of these values.

        `spelled` are the canonical bytes of `fields`, and `fits` the digest of a schema they fit, where they are known.
        """
        removed: Mapping[str, tuple[Json, ...]] = _NOTHING
        if fields and not remove:
            if spelled is None:
                spelled = form.serialise(fields)
            key = form.spell_text(entity.key)
            body = b'%b%b,"type":"%b"},"fields":%b%b' % (self._head, key, entity.type.encode(), spelled, self._tail)
        else:
            removed = {name: tuple(elements) for name, elements in remove.items()}
            body = form.serialise(self._whole(entity, fields, removed))
        if len(body) > form.BODY_BYTES_MAX:
            form.encode(self._whole(entity, fields, removed))
        # Part by part, as in `stored`.
        found: Observation = _blank(Observation)
        found.entity = entity
        found.op = ASSERT
        found.fields = fields
        found.remove = removed
        found.observed_at = self.observed_at
        found.valid_from = self.valid_from
        found.agent = self.agent
        found.priority = self.priority
        found.replaces = _NONE
        found.saw = self.saw
        found.optional = self.optional
        found.body = body
        found.digest = sha256(_KIND + body).digest()
        found.fits = fits
        found.assigned = self.assigned
        return found

    def _whole(
        self, entity: Ref, fields: Mapping[str, Json], removed: Mapping[str, tuple[Json, ...]]
    ) -> dict[str, Any]:
        body = {**self._parts(), "entity": entity.to_json()}
        if fields:
            body["fields"] = fields
        if removed:
            body["remove"] = {name: list(elements) for name, elements in removed.items()}
        return body


def stored(body: bytes, read: Any = None) -> Observation:
    """Return the observation with this checked canonical body; `read` is its parsed value, if known."""
    value: dict[str, Any] = form.decode(body) if read is None else read
    entity = value["entity"]
    # Part by part: logs are read by the hundred thousand, and a call with all of them takes twice as long.
    found: Observation = _blank(Observation)
    found.entity = tuple.__new__(Ref, (entity["type"], entity["key"]))
    found.op = value["op"]
    found.observed_at = value["observed_at"]
    found.valid_from = value["valid_from"]
    found.agent = value["agent"]
    found.priority = value["priority"]
    found.body = body
    found.digest = sha256(_KIND + body).digest()
    found.fits = None
    known = value.get
    fields = known("fields")
    assigned = found.assigned = "assigned" in value
    if fields and len(value) == PLAIN_PARTS + assigned:
        found.fields = fields
        found.remove = found.optional = _NOTHING
        found.replaces = found.saw = _NONE
        return found
    removed, replaces, saw = known("remove"), known("replaces"), known("saw")
    found.fields = _NOTHING if fields is None else fields
    found.remove = {name: tuple(elements) for name, elements in removed.items()} if removed else _NOTHING
    found.replaces = _digests(replaces) if replaces else _NONE
    found.saw = _digests(saw) if saw else _NONE
    found.optional = {key: value[key] for key in _OPTIONAL if key in value}
    return found


def is_canonical(body: bytes, value: dict[str, Any]) -> bool:
    """Return True if a body is in canonical form, given its parsed value: the result of `form.is_canonical`."""
    if tuple(map(type, value.values())) in _PLAIN_TYPES:
        fields, entity = value.get("fields"), value.get("entity")
        if fields and entity and form.are_plain(fields.values()) and form.are_plain(entity.values()):
            return form.is_spelled(body, value)
    return form.is_canonical(body, value)


def counts_by(body: bytes, effective: bytes) -> bool:
    """Return True if the observation of a stored body may count at an effective time, judged from bytes alone.

    `valid_from` is the last part of every body. A retraction always counts, and a body that looks like one may.
    """
    return body[-29:-2] <= effective or b'"op":"retract"' in body


def admit(body: bytes) -> Observation:
    """Return the observation in bytes from elsewhere; refuse another spelling, a wrong shape, or unstable values."""
    plain = _at_a_glance(body)
    if plain is not None:
        if not _is_plain_assertion(plain) and (found := _part_faults(plain, "")):
            raise Refused(found)
        return stored(body, plain)
    value = form.parse(body)
    found = body_faults(value)
    if found:
        raise Refused(found)
    if form.encode(value) != body:
        raise Refused(
            [Fault("", "the body is not in canonical form", "Write it as RFC 8785 does; docs/formats has the rules.")]
        )
    return stored(body)


def _at_a_glance(body: bytes) -> dict[str, Any] | None:
    """Return the object that bytes spell, if they are its canonical form and any door lets it in; else None.

    None means that this found no fault: `form.parse` and `form.faults` are slower and exact.
    """
    try:
        value: Any = form.decode(body)
    except ValueError:
        return None
    # Bytes that re-serialise unchanged have no duplicate key and no other spelling of anything.
    return value if isinstance(value, dict) and form.quick(value) == body else None


def _is_plain_assertion(value: dict[str, Any]) -> bool:
    """Return True if a body is a plain, valid assertion; `_part_faults` checks the others, and finds the faults.

    Most bodies of a log are, and share their agent, their type and the names of their fields.
    """
    keys = value.keys()
    if keys != _PLAIN_KEYS and not (keys == _ASSIGNED_KEYS and value["assigned"] is True):
        return False
    entity, fields, seen = value["entity"], value["fields"], value["observed_at"]
    return (
        value["op"] == ASSERT
        and type(entity) is dict
        and entity.keys() == _ENTITY_KEYS
        and type(key := entity["key"]) is str
        and key != ""
        # printable text contains no control character, and four times its length bounds its bytes
        and key.isprintable()
        and len(key) * 4 <= ids.KEY_BYTES_MAX
        and type(entity["type"]) is type(value["agent"]) is str
        and _are_sound(entity["type"], value["agent"])
        and type(value["priority"]) is int
        and abs(value["priority"]) <= form.INTEGER_MAX
        and type(fields) is dict
        and 0 < len(fields) <= FIELDS_MAX
        and _are_plain_names(tuple(fields))
        and moment.is_fixed(seen)
        and (value["valid_from"] == seen or moment.is_fixed(value["valid_from"]))
    )


@lru_cache(maxsize=256)
def _are_sound(type: str, agent: str) -> bool:
    return not ids.type_faults(type) and not ids.agent_faults(agent)


@lru_cache(maxsize=256)
def _are_plain_names(names: tuple[str, ...]) -> bool:
    return all(map(_PLAIN_NAME.fullmatch, names))


def body_faults(value: object, path: str = "") -> list[Fault]:
    """Return all faults of an observation's body, whoever wrote it."""
    found = form.faults(value, path)
    if found:
        return found
    if not isinstance(value, dict):
        return [Fault(path, f"expected an object, got {shown(value)}", "Send an observation's body.")]
    return _part_faults(value, path)


def _part_faults(value: Mapping[str, Any], path: str) -> list[Fault]:
    """Return the faults of the parts of a body, a valid JSON object."""
    found: list[Fault] = []
    for key in sorted(set(value) - _KEYS):
        found.append(Fault(f"{path}/{pointer_part(key)}", "unknown part of an observation", "Leave it out."))
    missing = {"agent", "entity", "observed_at", "op", "priority", "valid_from"} - set(value)
    for key in sorted(missing):
        found.append(Fault(f"{path}/{key}", "missing", "State it."))
    if missing:
        return found
    op = value["op"]
    if not isinstance(op, str) or op not in OPS:
        found.append(Fault(f"{path}/op", f"unknown op {shown(op)}", f"Use one of {', '.join(sorted(OPS))}."))
    entity = value["entity"]
    if not isinstance(entity, dict) or set(entity) != {"key", "type"}:
        found.append(Fault(f"{path}/entity", f"expected type and key, got {shown(entity)}", "Send both as text."))
    else:
        found += ids.ref_faults(entity["type"], entity["key"], f"{path}/entity")
    found += ids.agent_faults(value["agent"], f"{path}/agent")
    for key in ("observed_at", "valid_from"):
        fault = moment.fault(value[key], f"{path}/{key}")
        if fault is None and not moment.is_fixed(value[key]):
            fault = Fault(f"{path}/{key}", "not fixed-width UTC", "Write it as 2026-01-05T09:00:00.000000Z.")
        if fault is not None:
            found.append(fault)
    if "assigned" in value and value["assigned"] is not True:
        remedy = "Send true where the log set observed_at; leave it out otherwise."
        found.append(Fault(f"{path}/assigned", f"got {shown(value['assigned'])}", remedy))
    found += priority_faults(value["priority"], f"{path}/priority")
    found += stating_faults(value.get("fields"), value.get("remove"), path)
    found += _names_faults(value, path)
    found += _shape_faults(value, path)
    found += optional_faults(value, path)
    if "locator" in value and "source" not in value and "interpretation" not in value:
        problem = "a locator needs a source"
        found.append(Fault(f"{path}/locator", problem, "Name the source or the interpretation, or leave it out."))
    return found


def priority_faults(value: object, path: str) -> list[Fault]:
    """Return the fault of a priority."""
    if type(value) is int and abs(value) <= form.INTEGER_MAX:
        return []
    return [Fault(path, f"expected an integer, got {shown(value)}", "Send a whole number; larger is more trusted.")]


def stating_faults(fields: object, remove: object, path: str) -> list[Fault]:
    """Return the faults of the values and removals in an observation."""
    found: list[Fault] = []
    if fields is not None and not isinstance(fields, dict):
        return [Fault(f"{path}/fields", f"expected an object, got {shown(fields)}", "Send fields by name.")]
    if remove is not None and not isinstance(remove, dict):
        return [
            Fault(f"{path}/remove", f"expected an object, got {shown(remove)}", "Send arrays of elements by field.")
        ]
    count = len(fields or ()) + len(remove or ())
    if count > FIELDS_MAX:
        found.append(Fault(f"{path}/fields", f"{count} fields", f"Send at most {FIELDS_MAX} fields in one record."))
    for part in (fields or {}, remove or {}):
        for name in part:
            if not _PLAIN_NAME.fullmatch(name):
                found += field_name_faults(name, path)
    for name, elements in (remove or {}).items():
        if not isinstance(elements, list) or not elements:
            found.append(
                Fault(
                    f"{path}/remove/{pointer_part(name)}",
                    f"expected a list of elements, got {shown(elements)}",
                    "List the elements to remove.",
                )
            )
    return found


def field_name_faults(name: str, path: str) -> list[Fault]:
    """Return the fault of a field's name."""
    found = ids.text_faults(name, path, FIELD_BYTES_MAX, "field name")
    return [Fault(f"{path}/{pointer_part(name[:SHOWN_NAME_MAX])}", f.problem, f.remedy) for f in found]


def optional_faults(value: Mapping[str, Any], path: str) -> list[Fault]:
    """Return the faults of the optional parts of an observation."""
    found: list[Fault] = []
    confidence = value.get("confidence")
    if confidence is not None and (type(confidence) not in (int, float) or not 0 <= confidence <= 1):
        found.append(Fault(f"{path}/confidence", f"got {shown(confidence)}", "Send a number from 0 to 1."))
    reason = value.get("reason")
    if reason is not None and (not isinstance(reason, str) or not reason or _bytes(reason) > REASON_BYTES_MAX):
        found.append(Fault(f"{path}/reason", f"got {shown(reason)}", f"Send text of 1 to {REASON_BYTES_MAX} bytes."))
    source = value.get("source")
    if source is not None and (not isinstance(source, str) or ids.digest_of("source", source) is None):
        found.append(Fault(f"{path}/source", f"not a source's name: {shown(source)}", "Name a stored source."))
    for key, prefix in (("run", "run_"), ("interpretation", "int_")):
        text = value.get(key)
        if text is not None and not (isinstance(text, str) and _RUN_ID.fullmatch(text) and text.startswith(prefix)):
            found.append(Fault(f"{path}/{key}", f"got {shown(text)}", f"Send an id that begins with {prefix}."))
    if isinstance(reason, str):
        found += form.faults(reason, f"{path}/reason")
    if "locator" in value:
        found += locator.faults(value["locator"], f"{path}/locator")
    match = value.get("match")
    if match is not None and not _is_match(match):
        remedy = 'Leave it out, or send {"fold": …, "rule": …} as a ledger recorded it.'
        found.append(Fault(f"{path}/match", f"got {shown(match)}", remedy))
    step = value.get("step")
    if step is not None and (type(step) is not int or not 0 <= step <= form.INTEGER_MAX or "run" not in value):
        found.append(Fault(f"{path}/step", f"got {shown(step)}", "Send a whole number, together with the run."))
    return found


def _is_match(value: object) -> bool:
    """Return True if a value states how a record was matched: the fold, and the identity rule."""
    return (
        isinstance(value, dict)
        and value.keys() == {"fold", "rule"}
        and all(isinstance(part, str) and part and not form.faults(part) for part in value.values())
    )


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _names_faults(value: Mapping[str, Any], path: str) -> list[Fault]:
    found: list[Fault] = []
    for key in ("replaces", "saw"):
        if key not in value:
            continue
        names = value[key]
        if not isinstance(names, list) or not names or len(names) > NAMES_MAX:
            remedy = f"List 1 to {NAMES_MAX} observation names, or leave it out."
            found.append(Fault(f"{path}/{key}", f"got {shown(names)}", remedy))
            continue
        for index, text in enumerate(names):
            if not isinstance(text, str) or ids.digest_of("observation", text) is None:
                problem = f"not an observation's full name: {shown(text)}"
                found.append(Fault(f"{path}/{key}/{index}", problem, "Use obs_ and all 52 characters."))
        if not found and names != sorted(set(names)):
            found.append(Fault(f"{path}/{key}", "names repeat or are out of order", "Sort them, each once."))
    return found


def _shape_faults(value: Mapping[str, Any], path: str) -> list[Fault]:
    """The allowed parts for each op."""
    op = value["op"]
    found: list[Fault] = []
    states = bool(value.get("fields")) or bool(value.get("remove"))
    for key in ("fields", "remove"):
        if key in value and not value[key]:
            found.append(Fault(f"{path}/{key}", "empty", "Leave it out."))
    if op in STATING and not states:
        found.append(Fault(f"{path}/fields", "states nothing", "State at least one field."))
    if op not in STATING and states:
        found.append(Fault(f"{path}/fields", f"a {op} states no values", "Leave fields and remove out."))
    if op == RETRACT and "replaces" not in value:
        found.append(Fault(f"{path}/replaces", "a retraction names nothing", "Name the observations it withdraws."))
    if op == ASSERT and "replaces" in value:
        found.append(Fault(f"{path}/replaces", "an assertion replaces nothing", "Send a correction."))
    return found


def _digests(names: Iterable[str]) -> frozenset[bytes]:
    found = frozenset(ids.digest_of("observation", name) for name in names)
    assert None not in found, "a stored body names observations in full"
    return found  # type: ignore[return-value]
