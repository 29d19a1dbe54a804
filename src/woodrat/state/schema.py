"""Schema: the fields of an entity type, the checks on them, and a merge policy per field.

A schema is a JSON Schema 2020-12 document with a few keywords of our own, and an entry of the log like any other.
Checks come in two strengths. A claim is checked against its own property alone, because that answer takes part in
the merge and may not depend on what else was sent. A record is checked against the whole document, at a surface,
before anything is written; only `required` waits for the snapshot, since a record may state part of an entity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.canon.digest import digest as digest_of
from woodrat.canon.form import Json
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.records import dataclass, field
from woodrat.state.expansion import SCHEMA_STEPS_MAX, Expansion, pointed_at, subschemas, unquoted
from woodrat.state.identity import DEFAULT_RULES, Rule, parse_rules
from woodrat.state.redaction import REDACTED
from woodrat.state.schema_faults import TYPE_WORDS, cut, either, plain, said, steps
from woodrat.state.validator import (
    DIALECT,
    RECORD_FAULTS_MAX,
    Checks,
    bounded,
    checkable,
    compiled,
    errors,
    meta,
    validator,
)

if TYPE_CHECKING:
    # Loaded where it is first used: many commands end without checking a value, and it is slow to load.
    import jsonschema_rs

SCHEMA_BYTES_MAX: Final = 262_144
"""Longest canonical body of a schema."""
OPEN_MAX: Final = 1_024
"""How many types without a schema a process keeps the stand-in of."""

RESERVED_FIELDS: Final = frozenset({"entity_type", "$"})
"""Keys of a stored record that are never fields."""

_MARK: Final = "x-woodrat"
VERSION: Final = "x-woodrat-version"
IDENTITY: Final = "x-woodrat-identity"
MERGE: Final = "x-woodrat-merge"
INDEX: Final = "x-woodrat-index"
TEXT: Final = "x-woodrat-text"
REDACT: Final = "x-woodrat-redact"

_TOP: Final = "at the top level of the schema"
_PROPERTY: Final = "on a property directly under the top-level `properties`"
_ELSEWHERE: Final = "elsewhere"
_PLACES: Final = {VERSION: _TOP, IDENTITY: _TOP, MERGE: _PROPERTY, INDEX: _PROPERTY, TEXT: _PROPERTY, REDACT: _PROPERTY}

_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


@dataclass(frozen=True, slots=True)
class PolicyName:
    """Which merge policy a field has: a built-in one by name, or a user's own by name, version and code."""

    name: str
    """The policy's name."""
    version: int | None = None
    """Version of a user's own policy."""
    code: str | None = None
    """SHA-256 of the code of a user's own policy, in lower-case hex."""

    def to_json(self) -> Json:
        """Return the name as a schema writes it."""
        if self.version is None and self.code is None:
            return self.name
        return {"code": self.code, "name": self.name, "version": self.version}

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class PolicyTraits:
    """What a schema has to know of a policy before a field may have it."""

    name: str
    """The policy's name."""
    json_types: frozenset[str]
    """JSON types of the values it can take; `number` covers `integer`."""


LATEST: Final = PolicyName("latest")
"""The policy of every field that names none."""


def _is_short(elements: list[Json], length_max: int) -> bool:
    """Return whether a list is of texts alone and within a number of canonical bytes for certain."""
    try:
        characters = len("".join(elements))  # type: ignore[arg-type]
    except TypeError:
        return False
    return 6 * characters + 3 * len(elements) + 2 <= length_max


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of one entity type, at one version. Equal digests of one type are equal schemas."""

    type: str
    """The entity type it describes."""
    version: int = field(compare=False)
    """The stated version; 0 for a type without a schema."""
    document: Mapping[str, Json] = field(compare=False, repr=False)
    """The JSON Schema, with `x-woodrat-version` filled in. Read it; never change it."""
    digest: bytes
    """SHA-256 of kind, format and body; 32 zero bytes for a type without a schema."""
    body: bytes = field(compare=False, repr=False)
    """Canonical bytes of {"schema", "type"}; empty for a type without a schema."""
    identity: tuple[Rule, ...] = field(compare=False, repr=False)
    """Rules that make a key, in the order in which they are tried."""
    policies: Mapping[str, PolicyName] = field(compare=False, repr=False)
    """Merge policies by field, where the schema names one."""
    indexed: frozenset[str] = field(compare=False, repr=False)
    """Fields kept ready for `--where`."""
    searchable: frozenset[str] = field(compare=False, repr=False)
    """Fields whose text `search` looks into."""
    redacted: frozenset[str] = field(compare=False, repr=False)
    """Fields whose values never reach the log."""
    required: tuple[str, ...] = field(compare=False, repr=False)
    """Fields every snapshot must have after a write, in the order of the document."""

    @property
    def id(self) -> str:
        """The short name people see."""
        return ids.id_of("schema", self.digest)

    @property
    def rank(self) -> tuple[int, bytes]:
        """What schemas of one type are ordered by: the highest is in force."""
        return self.version, self.digest

    @property
    def is_open(self) -> bool:
        """Whether this stands for a type without a schema, whose fields are all free."""
        return not self.body

    @property
    def properties(self) -> Mapping[str, Json]:
        """Subschemas by field, as the document writes them."""
        return self.document.get("properties") or {}  # type: ignore[return-value]

    def policy_of(self, field: str) -> PolicyName:
        """Return the merge policy of `field`: `latest` unless the schema says otherwise."""
        return self.policies.get(field, LATEST)

    def claim_fault(self, field: str, value: Json) -> str | None:
        """Return why `value` does not fit the subschema of `field`, or None; an undescribed field takes anything.

        Nothing but the value and the field's own subschema counts, so a claim fits or not by itself.
        """
        if not self.body:
            return None
        found = compiled(self.body)
        passing = found.passing.get(field)
        if passing is not None:
            length_max, is_valid = passing
            kind = type(value)
            if kind is str:
                short = len(value) <= length_max  # type: ignore[arg-type]
            elif kind is list:
                short = _is_short(value, length_max)  # type: ignore[arg-type]
            else:
                short = kind is int
            if short and is_valid(value):
                return None
        if found.beyond is not None:
            return self.beyond
        if field not in self.properties or (value == REDACTED and field in self.redacted):
            return None
        checks = found.claim(field)
        found.passing[field] = checks.length_max, checks.validator.is_valid
        if type(value) is not str or len(value) > checks.length_max:
            problem = checks.beyond(value)
            if problem is not None:
                return problem
        if checks.validator.is_valid(value):
            return None
        problems = ((steps(error.instance_path), said(error)[0]) for error in checks.errors(value))
        where, problem = min(problems, default=("", "it does not fit, and is too large to say where"))
        return f"{where.lstrip('.')}: {problem}" if where else problem

    @property
    def beyond(self) -> str | None:
        """Why nothing fits this schema, as a clause: it is larger than any check may be. None for nearly every one."""
        beyond = None if self.is_open else compiled(self.body).beyond
        return beyond and f'nothing fits version {self.version} of schema "{self.type}": {beyond}'

    def takes(self, fields: Mapping[str, Json], length: int | None = None) -> bool:
        """Return whether a record as sent fits the document; nothing is required of it.

        `length` is that of canonical bytes in which the fields stand, where it is known.
        """
        if self.is_open:
            return True
        found = compiled(self.body)
        if found.beyond is not None:
            return False
        checks = found.record()
        if (length is None or length > checks.length_max) and checks.beyond(fields) is not None:
            return False
        if checks.validator.is_valid(fields):
            return True
        hidden = self._hidden(fields)
        if not hidden or not checks.explains(fields):
            return False
        return next(self._errors(checks, fields, hidden), None) is None

    def _hidden(self, fields: Mapping[str, Json]) -> set[str]:
        """Return the fields of a record whose values are redacted: of those nothing is known."""
        return {name for name in self.redacted if fields.get(name) == REDACTED}

    def _errors(
        self, checks: Checks, fields: Mapping[str, Json], hidden: Collection[str]
    ) -> Iterator[jsonschema_rs.ValidationError]:
        """Yield what is wrong with a record, redacted values apart."""
        for error in checks.errors(dict(fields)):
            if not error.instance_path or error.instance_path[0] not in hidden:
                yield error

    def record_faults(self, fields: Mapping[str, Json], path: str) -> list[Fault]:
        """Return every fault of a record as it was sent, apart from missing required fields.

        `path` is where the record stands in the input. An array under `union` or `append` is checked as given.
        """
        if self.takes(fields):
            return []
        if (beyond := self.beyond) is not None:
            return [Fault(path, beyond, f"Register {self._new_version()} that is smaller.")]
        checks = compiled(self.body).record()
        if (problem := checks.beyond(fields)) is not None:
            remedy = f"Send less in one record, or make the check simpler in {self._new_version()}."
            return [Fault(path, f"{self.type}: {problem}", remedy)]
        if not checks.explains(fields):
            return self._field_faults(fields, path)
        faults: dict[Fault, None] = {}
        for error in self._errors(checks, fields, self._hidden(fields)):
            faults.update(dict.fromkeys(self._faults_of(error, path)))
        return sorted(faults, key=lambda fault: (fault.path, fault.problem))[:RECORD_FAULTS_MAX]

    def _field_faults(self, fields: Mapping[str, Json], path: str) -> list[Fault]:
        """Return the fields of a record that do not fit; the record is too large to look for all that is wrong."""
        found = [
            Fault(
                f"{path}/{pointer_part(name)}",
                f"{self.type}.{name}: {problem}",
                f"Send a value that fits, or change the field in {self._new_version()}.",
            )
            for name, value in fields.items()
            if (problem := self.claim_fault(name, value)) is not None
        ]
        problem = f"{self.type}: the record does not fit, and is too large to say where"
        return found or [Fault(path, problem, f"Send less in one record, or change {self._new_version()}.")]

    def required_faults(self, snapshot_fields: Mapping[str, Json], path: str) -> list[Fault]:
        """Return a fault for every required field that the snapshot after a write would lack."""
        return [
            Fault(
                f"{path}/{pointer_part(name)}",
                f"{self.type}.{name}: is required and has no value",
                f"Send it too, or make it optional in {self._new_version()}.",
            )
            for name in self.required
            if name not in snapshot_fields
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the schema as plain JSON, with its id; `problem` says why nothing fits one beyond the limit."""
        found = {"id": self.id, "type": self.type, "version": self.version, "schema": dict(self.document)}
        return found if self.beyond is None else {**found, "problem": self.beyond}

    def _new_version(self) -> str:
        return f'a new version of schema "{self.type}" (now {self.version})'

    def _faults_of(self, error: jsonschema_rs.ValidationError, path: str) -> Iterator[Fault]:
        """Yield what one error of the library means, in plain words."""
        here = path + "".join(f"/{pointer_part(str(step))}" for step in error.instance_path)
        subject = self.type + steps(error.instance_path)
        if error.kind.name in ("additionalProperties", "unevaluatedProperties"):
            instance = error.instance if isinstance(error.instance, dict) else {}
            for name in error.kind.as_dict()["unexpected"]:
                near = [] if error.instance_path else _near(name, self.properties)
                meant = f'Did you mean "{near[0]}"? ' if near else ""
                problem = f"{subject}.{name}: unknown field, with {shown(instance.get(name))}"
                remedy = f"{meant}Leave it out, or add the field in {self._new_version()}."
                yield Fault(f"{here}/{pointer_part(name)}", problem, remedy)
            return
        problem, wish = said(error)
        yield Fault(here, f"{subject}: {problem}", f"Send {wish}, or change the field in {self._new_version()}.")


@lru_cache(maxsize=OPEN_MAX)
def OPEN(type: str) -> Schema:
    """Return what stands in for the schema of a type that has none: every field is free, under `latest`."""
    return Schema(type, 0, {}, bytes(32), b"", DEFAULT_RULES, {}, frozenset(), frozenset(), frozenset(), ())


@lru_cache(maxsize=OPEN_MAX)
def _name(digest: bytes) -> str:
    return ids.name("schema", digest)


def schema_name(schema: Schema | None) -> str | None:
    """Return the full name of a schema; none for a type without one."""
    return None if schema is None or schema.is_open else _name(schema.digest)


def winning(schemas: Iterable[Schema]) -> Schema | None:
    """Return the schema in force among those of one type: the highest version, then the highest digest."""
    return max(schemas, key=lambda schema: schema.rank, default=None)


def stored(body: bytes) -> Schema:
    """Return the schema that a log entry holds, trusting what was checked before it was written.

    Keywords that this version does not understand are refused, since guessing would give another state.
    """
    content = form.decode(body)
    assert isinstance(content, dict), "a schema entry holds an object"
    assert content.keys() == {"schema", "type"}, "a schema entry holds a schema and a type"
    type, document = content["type"], content["schema"]
    assert isinstance(type, str), "an entity type is text"
    assert isinstance(document, dict), "a schema is an object"
    read = _read(document)
    if read.faults:
        raise Refused(read.faults, "The stored schema was left as it is; a newer Woodrat may understand it.")
    digest = digest_of("schema", body)
    assert len(digest) == 32, "a digest has 32 bytes"
    return Schema(
        type,
        read.version,
        document,
        digest,
        body,
        read.identity or DEFAULT_RULES,
        read.policies,
        frozenset(read.flagged[INDEX]),
        frozenset(read.flagged[TEXT]),
        frozenset(read.flagged[REDACT]),
        read.required,
    )


def admit(body: bytes) -> Schema:
    """Return the schema in bytes from elsewhere, or refuse: other spelling, wrong shape, not a schema at all.

    A policy need not be known here; a ledger without its code refuses to fold the type, not to hold the schema. Nor
    need the schema be within the limit of steps; nothing fits one that is not.
    """
    value = form.parse(body)
    if not isinstance(value, dict) or value.keys() != {"schema", "type"} or not isinstance(value["type"], str):
        problem = f"expected a schema and a type, got {shown(value)}"
        raise Refused([Fault("", problem, "Send the body of a schema entry.")])
    if form.serialise(value) != body:
        raise Refused([Fault("", "the body is not in canonical form", "Write it as RFC 8785 does.")])
    everything = frozenset(_TYPES)
    found = parse_schema(
        value["schema"], value["type"], policies=lambda name: PolicyTraits(str(name), everything), foreign=True
    )
    if found.body != body:
        raise Refused([Fault(f"/schema/{VERSION}", "missing", "State the version.")])
    return found


def parse_schema(
    document: object,
    type: str | None = None,
    *,
    policies: Callable[[PolicyName], PolicyTraits | None],
    version: int | None = None,
    foreign: bool = False,
) -> Schema:
    """Return the schema that `document` states for `type`, or for the type its `title` names.

    `policies` tells what is known of a policy, or None. `version` is used where the document states none; without
    either it is 1. One that is `foreign`, and so in a log already, may be beyond the limit of steps; it is taken and
    never used for a check. `Refused` lists every fault.
    """
    if not isinstance(document, Mapping):
        remedy = 'Send a JSON Schema, such as {"title": "contact", "properties": {}}.'
        raise Refused([Fault("", f"a schema is an object, got {shown(document)}", remedy)])
    copy = form.normal(dict(document))
    assert isinstance(copy, dict), "an object stays an object"
    type, type_faults = _entity_type(copy, type)
    faults = type_faults + _version_faults(copy, version)
    copy.setdefault(VERSION, version if version is not None else 1)
    body = form.encode({"schema": copy, "type": type})
    if len(body) > SCHEMA_BYTES_MAX:
        problem = f"the schema has {len(body)} bytes, more than {SCHEMA_BYTES_MAX}"
        remedy = "Shorten descriptions and lists of values, or split the type."
        raise Refused([*faults, Fault("", problem, remedy)])
    expansion = Expansion(copy)
    faults += _document_faults(copy, expansion)
    if not foreign:
        faults += _size_faults(copy, expansion)
    read = _read(copy)
    faults += read.faults
    for name, policy in read.policies.items():
        faults += _policy_faults(copy, name, policy, policies(policy))
    if not faults and expansion.beyond is None:
        # Last, and only on a sound document: what the library still finds has no better words than its own.
        try:
            validator(checkable(bounded(copy, expansion)))
        except ValueError as error:
            faults.append(Fault("", f"not a usable JSON Schema: {cut(str(error))}", "Correct the document."))
    if faults:
        raise Refused(sorted(dict.fromkeys(faults), key=lambda fault: (fault.path, fault.problem)))
    return stored(body)


# Reading our own keywords


@dataclass(slots=True)
class _Read:
    """What our keywords say in their own places, and what is wrong with how they say it."""

    version: int = 1
    identity: tuple[Rule, ...] = ()
    policies: dict[str, PolicyName] = field(default_factory=dict)
    flagged: dict[str, list[str]] = field(default_factory=lambda: {INDEX: [], TEXT: [], REDACT: []})
    required: tuple[str, ...] = ()
    faults: list[Fault] = field(default_factory=list)


def _read(document: dict[str, Any]) -> _Read:
    """Read the keywords of `document`; a fault does not stop the reading."""
    read = _Read()
    version = document.get(VERSION)
    if isinstance(version, int) and not isinstance(version, bool) and version >= 1:
        read.version = version
    else:
        remedy = "State a whole number from 1 up, or leave it out."
        read.faults.append(Fault(f"/{VERSION}", f"a version is a whole number from 1 up, got {shown(version)}", remedy))
    if IDENTITY in document:
        read.identity, faults = parse_rules(document[IDENTITY], f"/{IDENTITY}", _only_fields(document))
        read.faults += faults
    required = document.get("required", [])
    if isinstance(required, list):
        read.required = tuple(name for name in required if isinstance(name, str))
    properties = document.get("properties", {})
    for name, subschema in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(subschema, dict):
            continue
        path = f"/properties/{pointer_part(name)}"
        if MERGE in subschema:
            policy = _policy_name(subschema[MERGE], f"{path}/{MERGE}", read.faults)
            if policy is not None:
                read.policies[name] = policy
        for keyword, names in read.flagged.items():
            stated = subschema.get(keyword, False)
            if not isinstance(stated, bool):
                problem = f"{keyword} is true or false, got {shown(stated)}"
                read.faults.append(Fault(f"{path}/{keyword}", problem, "Write true or false."))
            elif stated:
                names.append(name)
    for rule in read.identity or DEFAULT_RULES:
        for name in sorted({part.field for part in rule.parts}.intersection(read.flagged[REDACT])):
            problem = f"{name} identifies an entity, and a redacted value identifies nothing"
            remedy = f"Leave {REDACT} out, or state an {IDENTITY} without {name}."
            read.faults.append(Fault(f"/properties/{pointer_part(name)}/{REDACT}", problem, remedy))
    return read


def _only_fields(document: dict[str, Any]) -> frozenset[str] | None:
    """Return the only fields a record may have, or None where the schema leaves room for others."""
    closed = document.get("additionalProperties") is False or document.get("unevaluatedProperties") is False
    elsewhere = any(keyword in document for keyword in ("patternProperties", "allOf", "anyOf", "oneOf", "if"))
    properties = document.get("properties", {})
    return frozenset(properties) if closed and not elsewhere and isinstance(properties, dict) else None


def _policy_name(stated: object, path: str, faults: list[Fault]) -> PolicyName | None:
    """Return the policy stated at `path`; what is wrong with it is added to `faults`."""
    remedy = 'Write the name of a policy, or {"name", "version", "code"} for one of your own.'
    if isinstance(stated, str) and stated:
        return PolicyName(stated)
    if not isinstance(stated, dict) or stated.keys() != {"name", "version", "code"}:
        faults.append(Fault(path, f"expected a merge policy, got {shown(stated)}", remedy))
        return None
    name, version, code = stated["name"], stated["version"], stated["code"]
    before = len(faults)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        problem = f"a policy's name is lower-case letters, digits and _, got {shown(name)}"
        faults.append(Fault(f"{path}/name", problem, "Give the policy such a name."))
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        problem = f"a policy's version is a whole number from 1 up, got {shown(version)}"
        faults.append(Fault(f"{path}/version", problem, "State the version of the policy's code."))
    if not isinstance(code, str) or not re.fullmatch(r"[0-9a-f]{64}", code):
        problem = f"a policy's code is named by 64 lower-case hex digits, got {shown(code)}"
        faults.append(Fault(f"{path}/code", problem, "State the SHA-256 of the policy's code."))
    return PolicyName(name, version, code) if len(faults) == before else None


# Checking a document


def _entity_type(document: dict[str, Any], stated: str | None) -> tuple[str, list[Fault]]:
    """Return the entity type a document describes, and what is wrong with it."""
    if stated is not None:
        return stated, ids.type_faults(stated, "type")
    title = document.get("title")
    if not isinstance(title, str):
        remedy = 'Name the type, or put it into the schema as "title".'
        return "", [Fault("/title", "the schema does not say which entity type it describes", remedy)]
    if ids.type_faults(title, "/title"):
        problem = f"the title {plain(title)} is no entity type, such as tool_config"
        return "", [Fault("/title", problem, "Name the type beside the schema, or change its title.")]
    return title, []


def _version_faults(document: dict[str, Any], asked: int | None) -> list[Fault]:
    """Return what is wrong between the version asked for and the version stated."""
    if asked is None:
        return []
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        problem = f"a version is a whole number from 1 up, got {shown(asked)}"
        return [Fault("version", problem, "Ask for a whole number from 1 up, or for none.")]
    if document.get(VERSION, asked) != asked:
        problem = f"the schema states version {shown(document[VERSION])}, but {asked} was asked for"
        return [Fault(f"/{VERSION}", problem, "State one of the two.")]
    return []


def _document_faults(document: dict[str, Any], expansion: Expansion) -> list[Fault]:
    """Return what is wrong with the document as a JSON Schema, and every keyword of ours in a wrong place."""
    faults = []
    for error in () if meta().is_valid(document) else errors(meta(), document):
        path = "".join(f"/{pointer_part(str(step))}" for step in error.instance_path)
        faults.append(Fault(path, f"not JSON Schema: {said(error)[0]}", f"Write it as {DIALECT} says."))
    if document.get("type", "object") != "object":
        problem = f'the top-level type of an entity is "object", got {shown(document["type"])}'
        faults.append(Fault("/type", problem, 'Write "object", or leave it out.'))
    if "$ref" in document:
        problem = "a $ref at the top level hides the fields of the type"
        faults.append(Fault("/$ref", problem, "Write what it points at at the top level."))
    parts = list(subschemas(document))
    stated = [(path, schema.get(key)) for path, schema in parts for key in ("$anchor", "$dynamicAnchor")]
    anchors: dict[str, str] = {}
    for path, anchor in stated:
        if isinstance(anchor, str) and anchors.setdefault(anchor, path) != path:
            problem = f"{plain(anchor)} is the name of another subschema too, {anchors[anchor] or 'the whole'}"
            faults.append(Fault(path, problem, "Give each its own name."))
    properties = document.get("properties")
    fields = {id(each) for each in properties.values()} if isinstance(properties, dict) else frozenset()
    for path, schema in parts:
        place = _TOP if schema is document else _PROPERTY if id(schema) in fields else _ELSEWHERE
        faults += _keyword_faults(schema, path, place)
        faults += _reference_faults(document, schema, path, anchors)
        faults += _pattern_faults(schema, path, compile=expansion.beyond is None)
    for name in sorted(RESERVED_FIELDS & properties.keys()) if isinstance(properties, dict) else ():
        problem = f"{name} is reserved in stored records and cannot be a field"
        faults.append(Fault(f"/properties/{name}", problem, "Give the field another name."))
    return faults


def _keyword_faults(schema: dict[str, Any], path: str, place: str) -> list[Fault]:
    """Return a fault for every keyword of ours that is unknown or stands in a wrong place."""
    faults = []
    for keyword in sorted(key for key in schema if key.startswith(_MARK)):
        if keyword not in _PLACES:
            ends = [known.removeprefix(_MARK) for known in _PLACES]
            near = _near(keyword.removeprefix(_MARK), ends)
            remedy = f"Did you mean {_MARK}{near[0]}?" if near else f"Known are {', '.join(_PLACES)}."
            faults.append(Fault(f"{path}/{pointer_part(keyword)}", f"there is no keyword {keyword}", remedy))
        elif _PLACES[keyword] != place:
            problem = f"{keyword} stands where it has no meaning"
            faults.append(Fault(f"{path}/{keyword}", problem, f"It belongs {_PLACES[keyword]}."))
    return faults


def _reference_faults(
    document: dict[str, Any], schema: dict[str, Any], path: str, anchors: Collection[str]
) -> list[Fault]:
    """Return what is wrong with where a subschema points to and what it calls itself."""
    faults = []
    for keyword in ("$ref", "$dynamicRef"):
        target = schema.get(keyword)
        if not isinstance(target, str):
            continue
        if not target.startswith("#"):
            problem = f"{keyword} {plain(target)} leads out of the schema"
            remedy = "Copy what it points at into $defs, and point there with #/$defs/…."
            faults.append(Fault(f"{path}/{keyword}", problem, remedy))
        elif pointed_at(document, target) is None and unquoted(target[1:]) not in anchors:
            problem = f"{keyword} {plain(target)} points at nothing"
            faults.append(Fault(f"{path}/{keyword}", problem, "Point at a subschema of this document."))
    dialect = schema.get("$schema", DIALECT)
    if isinstance(dialect, str) and dialect.rstrip("#") != DIALECT:
        problem = f"the dialect {plain(dialect)} is not understood"
        faults.append(Fault(f"{path}/$schema", problem, f"Write the schema in JSON Schema 2020-12 ({DIALECT})."))
    if path and "$id" in schema:
        problem = "an $id below the top level would change what references mean"
        faults.append(Fault(f"{path}/$id", problem, "Leave it out, and point with #/…."))
    return faults


def _size_faults(document: dict[str, Any], expansion: Expansion) -> list[Fault]:
    """Return that the schema is too large where every reference is followed, and which fields make it so."""
    if expansion.beyond is None:
        return []
    if expansion.endless:
        remedy = "Let it lead back to itself only from members or elements, as under properties or items."
        return [Fault("", f"the schema cannot be used: {expansion.beyond}", remedy)]
    remedy = "Refer to a subschema fewer times, describe less of what is nested, or split the type."
    properties = document.get("properties")
    found = [
        Fault(f"/properties/{pointer_part(name)}", f"{name}: {steps} of the steps", remedy)
        for name, each in (properties.items() if isinstance(properties, dict) else ())
        if (steps := expansion.steps_of(each)) > SCHEMA_STEPS_MAX
    ]
    return [Fault("", f"the schema is too large: {expansion.beyond}", remedy), *found]


def _pattern_faults(schema: dict[str, Any], path: str, *, compile: bool) -> list[Fault]:
    """Return what is wrong with the patterns of one subschema."""
    patterns = [(f"{path}/pattern", schema.get("pattern"))]
    named = schema.get("patternProperties")
    for name in named if isinstance(named, dict) else ():
        patterns.append((f"{path}/patternProperties/{pointer_part(name)}", name))
    faults = []
    for where, pattern in patterns:
        if not isinstance(pattern, str):
            continue
        # Whether a claim fits is part of the merged state, and Unicode's tables change from release to release.
        if re.search(r"(?<!\\)(?:\\\\)*\\[pP]|\(\?[a-zA-Z-]", pattern):
            problem = f"the pattern {plain(pattern)} uses \\p or a flag, whose meaning differs between machines"
            faults.append(Fault(where, problem, "List the characters or ranges instead."))
            continue
        if not compile:
            continue
        try:
            validator({"pattern": pattern})
        except ValueError:
            problem = f"{plain(pattern)} is no regular expression"
            faults.append(Fault(where, problem, "Write it as ECMA 262 says."))
    return faults


def _policy_faults(
    document: dict[str, Any], field: str, policy: PolicyName, traits: PolicyTraits | None
) -> list[Fault]:
    """Return what is wrong with a field having a policy, given what is known of the policy."""
    path = f"/properties/{pointer_part(field)}/{MERGE}"
    if traits is None:
        remedy = "Use a policy that this ledger has, or register your own first."
        return [Fault(path, f"there is no merge policy {plain(str(policy))}", remedy)]
    # A sum takes text too, but only that of numbers.
    if document["properties"][field].get(REDACT) is True and (
        "string" not in traits.json_types or traits.name == "sum"
    ):
        problem = f"{field}: the policy {policy} cannot hold {REDACTED}, which stands for a redacted value"
        return [Fault(path, problem, f"Change the policy, or leave {REDACT} out.")]
    takes = traits.json_types | ({"integer"} if "number" in traits.json_types else frozenset())
    possible = _possible_types(document["properties"][field], document, {})
    if takes & possible:
        return []
    taken = either(TYPE_WORDS[name] for name in sorted(traits.json_types))
    problem = f"{field}: the policy {policy} takes {taken}, which its field never holds"
    return [Fault(path, problem, "Change the policy or the field's type.")]


def _possible_types(schema: object, document: dict[str, Any], known: dict[str, frozenset[str]]) -> frozenset[str]:
    """Return JSON types a value of `schema` may have; more than it allows, never fewer.

    `known` holds the answer for each reference followed so far, and everything for those still being followed.
    """
    if not isinstance(schema, dict):
        return frozenset() if schema is False else _TYPES
    types = _TYPES
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        types &= frozenset(name for name in names if isinstance(name, str)) | (
            {"integer"} if "number" in names else frozenset()
        )
    if isinstance(schema.get("enum"), list):
        types &= frozenset(json_type(value) for value in schema["enum"])
    if "const" in schema:
        types &= {json_type(schema["const"])}
    target = schema.get("$ref")
    if isinstance(target, str):
        if target not in known and len(known) < 100:
            known[target] = _TYPES
            known[target] = _possible_types(pointed_at(document, target), document, known)
        types &= known.get(target, _TYPES)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            types &= frozenset().union(*(_possible_types(each, document, known) for each in schema[keyword]))
    for each in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        types &= _possible_types(each, document, known)
    return types


def _near(name: str, known: Iterable[str]) -> list[str]:
    """Return the known name that was probably meant, if there is one."""
    from difflib import get_close_matches  # only what is wrong asks for it

    return get_close_matches(name, list(known), 1)


def json_type(value: object) -> str:
    """Return the JSON type of `value`, `integer` for a number without a fraction."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if value == int(value) else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
