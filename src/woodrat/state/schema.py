"""Schema: the fields of an entity type, the checks on them, and a merge policy per field.

A schema is a JSON Schema 2020-12 document with a few Woodrat keywords, and an entry of the log like any other.
Checks come in two strengths. A claim is checked against its own property alone, because that answer takes part in the
merge and must not depend on the rest of the call. A record is checked against the whole document, at a surface, before
anything is written; only `required` waits for the snapshot, since a record may state part of an entity.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from woodrat.canon import form, ids
from woodrat.canon.digest import digest as digest_of
from woodrat.canon.form import Json
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.record_json import Describe, object_schema
from woodrat.records import dataclass, field
from woodrat.state.identity_rules import DEFAULT_RULES, IdentityRule
from woodrat.state.redaction import REDACTED
from woodrat.state.schema_check import (
    JSON_TYPES,
    document_faults,
    entity_type,
    near,
    policy_faults,
    version_faults,
)
from woodrat.state.schema_faults import cut, said, steps
from woodrat.state.schema_keywords import (
    IDENTITY,
    INDEX,
    LATEST,
    REDACT,
    TEXT,
    VERSION,
    PolicyName,
    PolicyTraits,
    read_keywords,
)
from woodrat.state.schema_subset import subset_faults
from woodrat.state.validator import RECORD_FAULTS_MAX, Checks, checkable, compiled, validator

if TYPE_CHECKING:
    # Loaded where it is first used: many commands end without checking a value, and it is slow to load.
    import jsonschema_rs

_DESCRIBING: Final = frozenset({"title", "description", "examples", "$comment"})
_TOP_APART: Final = _DESCRIBING | {VERSION, IDENTITY, "required"}
_PROPERTY_APART: Final = _DESCRIBING | {INDEX, TEXT}
"""Keywords of a document and of a field that merging ignores."""

SCHEMA_BYTES_MAX: Final = 262_144
"""Longest canonical body of a schema."""
OPEN_MAX: Final = 1_024
"""Cache size: default schemas of types without a schema."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of one entity type, at one version. Equal digests of one type are equal schemas."""

    COMPACT: ClassVar = ("id", "type", "version")
    """Its members in lists."""

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
    identity: tuple[IdentityRule, ...] = field(compare=False, repr=False)
    """Rules that make a key, in the order of precedence."""
    policies: Mapping[str, PolicyName] = field(compare=False, repr=False)
    """Merge policies by field, where the schema names one."""
    indexed: frozenset[str] = field(compare=False, repr=False)
    """Fields indexed for `--where`."""
    searchable: frozenset[str] = field(compare=False, repr=False)
    """Fields whose text `search` covers."""
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
        """The sort key of schemas of one type: the highest is in force."""
        return self.version, self.digest

    @property
    def is_open(self) -> bool:
        """True if this is the default of a type without a schema, whose fields are all free."""
        return not self.body

    @property
    def properties(self) -> Mapping[str, Json]:
        """Subschemas by field, as the document writes them."""
        return self.document.get("properties") or {}  # type: ignore[return-value]

    @property
    def merging(self) -> bytes:
        """Digest of everything that the schema says about merging.

        Observations have the same merge state under two schemas of one type that agree in it. Descriptions, identity,
        indexes and checks at surfaces have no part in it.
        """
        if self.is_open:
            return digest_of("merging", form.serialise({}))
        if compiled(self.body).beyond is not None:
            return self.digest
        document = {name: value for name, value in self.document.items() if name not in _TOP_APART}
        if self.properties:
            document["properties"] = {
                name: {key: value for key, value in each.items() if key not in _PROPERTY_APART}
                if isinstance(each, dict)
                else each
                for name, each in self.properties.items()
            }
        return digest_of("merging", form.serialise(document))

    def additions(self, before: Schema) -> frozenset[str] | None:
        """Return the fields described here that an earlier schema leaves free, if the two agree in everything else.

        Descriptions and checks at surfaces may differ. `None` if other properties change too: for example, if the first
        searchable fields are marked, since a search then skips all others.
        """
        if not (before.body and self.body) or compiled(self.body).beyond or compiled(before.body).beyond:
            return None
        old, new = before.properties, self.properties
        apart = {*_DESCRIBING, VERSION, "properties", "required"}
        rest, rest_before = (
            {name: value for name, value in document.items() if name not in apart}
            for document in (self.document, before.document)
        )
        agree = rest == rest_before and all(name in new and new[name] == how for name, how in old.items())
        if not agree or bool(before.searchable) != bool(self.searchable):
            return None
        return frozenset(new.keys() - old.keys())

    def policy_of(self, field: str) -> PolicyName:
        """Return the merge policy of `field`: `latest` unless the schema says otherwise."""
        return self.policies.get(field, LATEST)

    def claim_fault(self, field: str, value: Json) -> str | None:
        """Return why `value` does not fit the subschema of `field` as a merge asks it, or None.

        Only the value and the field's own subschema count, so a claim fits or not on its own. Enumerations and
        formats are ignored, and an undescribed field takes anything.
        """
        if not self.body:
            return None
        found = compiled(self.body)
        is_valid = found.passing.get(field)
        if is_valid is not None and is_valid(value):
            return None
        if found.beyond is not None:
            return self.beyond
        if field not in self.properties or (value == REDACTED and field in self.redacted):
            return None
        checks = found.claim(field)
        found.passing[field] = checks.validator.is_valid
        return self._problem(checks, value)

    @staticmethod
    def _problem(checks: Checks, value: Json) -> str | None:
        """Return the fault of a field's value, or None."""
        if checks.validator.is_valid(value):
            return None
        problems = ((steps(error.instance_path), said(error)[0]) for error in checks.errors(value))
        where, problem = min(problems, default=("", "it does not fit, and is too large to find the place"))
        return f"{where.lstrip('.')}: {problem}" if where else problem

    @property
    def beyond(self) -> str | None:
        """Why nothing fits this schema, as a clause: it is outside the supported subset. None for nearly all."""
        beyond = None if self.is_open else compiled(self.body).beyond
        return beyond and f'nothing fits version {self.version} of schema "{self.type}": {beyond}'

    def takes(self, fields: Mapping[str, Json]) -> bool:
        """Return True if a record as sent fits the document; `required` is not checked."""
        if self.is_open:
            return True
        found = compiled(self.body)
        if found.beyond is not None:
            return False
        checks = found.record()
        if checks.validator.is_valid(fields):
            return True
        hidden = self._hidden(fields)
        if not hidden or not checks.explains(fields):
            return False
        return next(self._errors(checks, fields, hidden), None) is None

    def _hidden(self, fields: Mapping[str, Json]) -> set[str]:
        """Return the redacted fields of a record, whose values are unknown."""
        return {name for name in self.redacted if fields.get(name) == REDACTED}

    def _errors(
        self, checks: Checks, fields: Mapping[str, Json], hidden: Collection[str]
    ) -> Iterator[jsonschema_rs.ValidationError]:
        """Yield the faults of a record, apart from redacted values."""
        for error in checks.errors(dict(fields)):
            if not error.instance_path or error.instance_path[0] not in hidden:
                yield error

    def record_faults(self, fields: Mapping[str, Json], path: str) -> list[Fault]:
        """Return every fault of a record as sent, apart from missing required fields.

        `path` is the place of the record in the input. A collection is checked as given.
        """
        if self.takes(fields):
            return []
        if (beyond := self.beyond) is not None:
            return [Fault(path, beyond, f"Register {self._new_version()} within the subset.")]
        checks = compiled(self.body).record()
        if not checks.explains(fields):
            return self._field_faults(fields, path)
        faults: dict[Fault, None] = {}
        for error in self._errors(checks, fields, self._hidden(fields)):
            faults.update(dict.fromkeys(self._faults_of(error, path)))
        return sorted(faults, key=lambda fault: (fault.path, fault.problem))[:RECORD_FAULTS_MAX]

    def _field_faults(self, fields: Mapping[str, Json], path: str) -> list[Fault]:
        """Return the fields of a record that do not fit; the record is too large to look for all that is wrong."""
        checks, hidden = compiled(self.body), self._hidden(fields)
        described = [(name, value) for name, value in fields.items() if name in self.properties and name not in hidden]
        found = [
            Fault(
                f"{path}/{pointer_part(name)}",
                f"{self.type}.{name}: {problem}",
                f"Send a value that fits, or change the field in {self._new_version()}.",
            )
            for name, value in described
            if (problem := self._problem(checks.stated(name), value)) is not None
        ]
        problem = f"{self.type}: the record does not fit, and is too large to find the place"
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
        """Return the schema as plain JSON, with its id; `problem` says why nothing fits a schema outside the subset."""
        return {
            "id": self.id,
            "type": self.type,
            "version": self.version,
            "schema": dict(self.document),
            "problem": self.beyond,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Schema:
        """Return the schema that `to_json` wrote; `ValueError` where its id is not that of the rest."""
        if value["version"] == 0:
            return OPEN(value["type"])
        schema = stored(form.encode({"schema": value["schema"], "type": value["type"]}))
        if value["id"] != schema.id:
            raise ValueError(f"the body of {value['id']} is that of {schema.id}")
        return schema

    @staticmethod
    def json_schema(describe: Describe) -> dict[str, Any]:
        """Return the JSON Schema of the output of `to_json`."""
        properties = {
            "id": ("The short name people see.", str),
            "type": ("The entity type it describes.", str),
            "version": ("The stated version; 0 for a type without a schema.", int),
            "schema": ("The JSON Schema, with `x-woodrat-version` filled in.", Mapping[str, Any]),
            "problem": ("Why nothing fits it; null for nearly every schema.", str | None),
        }
        return object_schema(describe, "The schema of one entity type, at one version.", properties)

    def _new_version(self) -> str:
        return f'a new version of schema "{self.type}" (now {self.version})'

    def _faults_of(self, error: jsonschema_rs.ValidationError, path: str) -> Iterator[Fault]:
        """Yield the faults behind one error of the library, in plain words."""
        here = path + "".join(f"/{pointer_part(str(step))}" for step in error.instance_path)
        subject = self.type + steps(error.instance_path)
        if error.kind.name == "additionalProperties":
            instance = error.instance if isinstance(error.instance, dict) else {}
            for name in error.kind.as_dict()["unexpected"]:
                close = [] if error.instance_path else near(name, self.properties)
                meant = f'Did you mean "{close[0]}"? ' if close else ""
                problem = f"{subject}.{name}: unknown field, with {shown(instance.get(name))}"
                remedy = f"{meant}Leave it out, or add the field in {self._new_version()}."
                yield Fault(f"{here}/{pointer_part(name)}", problem, remedy)
            return
        problem, wish = said(error)
        yield Fault(here, f"{subject}: {problem}", f"Send {wish}, or change the field in {self._new_version()}.")


@lru_cache(maxsize=OPEN_MAX)
def OPEN(type: str) -> Schema:
    """Return the schema of a type without one: every field is free, under `latest`."""
    return Schema(type, 0, {}, bytes(32), b"", DEFAULT_RULES, {}, frozenset(), frozenset(), frozenset(), ())


@lru_cache(maxsize=OPEN_MAX)
def _name(digest: bytes) -> str:
    return ids.name("schema", digest)


def schema_name(schema: Schema | None) -> str | None:
    """Return the full name of a schema; None for a type without one."""
    return None if schema is None or schema.is_open else _name(schema.digest)


def winning(schemas: Iterable[Schema]) -> Schema | None:
    """Return the schema in force among those of one type: the highest version, then the highest digest."""
    return max(schemas, key=lambda schema: schema.rank, default=None)


def stored(body: bytes) -> Schema:
    """Return the schema in a log entry, which was checked before it was written.

    Unknown keywords are refused, since guessing would give another state.
    """
    content = form.decode(body)
    assert isinstance(content, dict), "a schema entry holds an object"
    assert content.keys() == {"schema", "type"}, "a schema entry holds a schema and a type"
    type, document = content["type"], content["schema"]
    assert isinstance(type, str), "an entity type is text"
    assert isinstance(document, dict), "a schema is an object"
    read = read_keywords(document)
    if read.faults:
        raise Refused(read.faults, "The stored schema is unchanged; a newer Woodrat may understand it.")
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
    need the schema be within the subset and its limits; nothing fits a schema outside.
    """
    value = form.parse(body)
    if not isinstance(value, dict) or value.keys() != {"schema", "type"} or not isinstance(value["type"], str):
        problem = f"expected a schema and a type, got {shown(value)}"
        raise Refused([Fault("", problem, "Send the body of a schema entry.")])
    if form.serialise(value) != body:
        raise Refused([Fault("", "the body is not in canonical form", "Write it as RFC 8785 does.")])
    everything = JSON_TYPES
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
    """Return the schema that `document` states for `type`, or for the type that its `title` names.

    `policies` returns the properties of a policy, or None. `version` is used if the document states none; without
    either it is 1. A `foreign` schema, which is in a log already, may be outside the subset; it is accepted and never
    used for a check. `Refused` lists every fault.
    """
    if not isinstance(document, Mapping):
        remedy = 'Send a JSON Schema, such as {"title": "contact", "properties": {}}.'
        raise Refused([Fault("", f"a schema is an object, got {shown(document)}", remedy)])
    copy = form.normal(dict(document))
    assert isinstance(copy, dict), "an object stays an object"
    type, type_faults = entity_type(copy, type)
    faults = type_faults + version_faults(copy, version)
    copy.setdefault(VERSION, version if version is not None else 1)
    body = form.encode({"schema": copy, "type": type})
    if len(body) > SCHEMA_BYTES_MAX:
        problem = f"the schema has {len(body)} bytes, more than {SCHEMA_BYTES_MAX}"
        remedy = "Shorten descriptions and lists of values, or split the type."
        raise Refused([*faults, Fault("", problem, remedy)])
    faults += document_faults(copy)
    outside = subset_faults(copy)
    if not foreign:
        faults += outside
    read = read_keywords(copy)
    faults += read.faults
    for name, policy in read.policies.items():
        faults += policy_faults(copy, name, policy, policies(policy))
    if not faults and not outside:
        # Last, and only on a sound document: for other faults the library has its own messages.
        try:
            validator(checkable(copy))
        except ValueError as error:
            faults.append(Fault("", f"not a usable JSON Schema: {cut(str(error))}", "Correct the document."))
    if faults:
        raise Refused(sorted(dict.fromkeys(faults), key=lambda fault: (fault.path, fault.problem)))
    return stored(body)
