"""Schema keywords: Woodrat's additions to JSON Schema, and their values in a document."""

from __future__ import annotations

import re
from typing import Any, Final

from woodrat.canon import ids
from woodrat.canon.form import Json
from woodrat.errors import Fault, pointer_part, shown
from woodrat.records import dataclass, field
from woodrat.state.identity_rules import DEFAULT_RULES, IdentityRule, parse_rules

MARK: Final = "x-woodrat"
VERSION: Final = "x-woodrat-version"
IDENTITY: Final = "x-woodrat-identity"
MERGE: Final = "x-woodrat-merge"
INDEX: Final = "x-woodrat-index"
TEXT: Final = "x-woodrat-text"
REDACT: Final = "x-woodrat-redact"

TOP: Final = "at the top level of the schema"
PROPERTY: Final = "on a property directly under the top-level `properties`"
ELSEWHERE: Final = "elsewhere"
MEMBER_BYTES_MAX: Final = 256
"""Longest name of the identifying member under `by_key`."""
PLACES: Final = {VERSION: TOP, IDENTITY: TOP, MERGE: PROPERTY, INDEX: PROPERTY, TEXT: PROPERTY, REDACT: PROPERTY}


@dataclass(frozen=True, slots=True)
class PolicyName:
    """Which merge policy a field has: a built-in one by name, or a user's own by name, version and code."""

    name: str
    """The policy's name."""
    version: int | None = None
    """Version of a user's own policy."""
    code: str | None = None
    """SHA-256 of the code of a user's own policy, in lower-case hex."""
    member: str | None = None
    """For `by_key`, the member whose text identifies an object."""

    def to_json(self) -> Json:
        """Return the name as a schema writes it."""
        if self.member is not None:
            return {self.name: self.member}
        if self.version is None and self.code is None:
            return self.name
        return {"code": self.code, "name": self.name, "version": self.version}

    def __str__(self) -> str:
        if self.member is not None:
            return f"{self.name}:{self.member}"
        return self.name if self.version is None else f"{self.name}@{self.version}"


@dataclass(frozen=True, slots=True)
class PolicyTraits:
    """The properties of a policy that a schema checks before a field may have it."""

    name: str
    """The policy's name."""
    json_types: frozenset[str]
    """JSON types of the values it can take; `number` covers `integer`."""


LATEST: Final = PolicyName("latest")
"""The policy of every field that names none."""
BY_KEY: Final = "by_key"
"""The policy that identifies objects by the text of a member, which a schema names: `{"by_key": "name"}`."""
COLLECTIONS: Final = frozenset({"union", "append", BY_KEY})
"""Names of the policies whose values are collections."""


@dataclass(slots=True)
class Keywords:
    """The values of our keywords in their own places, and their faults."""

    version: int = 1
    identity: tuple[IdentityRule, ...] = ()
    policies: dict[str, PolicyName] = field(default_factory=dict)
    flagged: dict[str, list[str]] = field(default_factory=lambda: {INDEX: [], TEXT: [], REDACT: []})
    required: tuple[str, ...] = ()
    faults: list[Fault] = field(default_factory=list)


def read_keywords(document: dict[str, Any]) -> Keywords:
    """Read the keywords of `document`; a fault does not stop the reading."""
    read = Keywords()
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
    """Return the only allowed fields of a record, or None if the schema allows others."""
    closed = document.get("additionalProperties") is False
    elsewhere = any(keyword in document for keyword in ("patternProperties", "allOf", "anyOf", "oneOf", "if"))
    properties = document.get("properties", {})
    return frozenset(properties) if closed and not elsewhere and isinstance(properties, dict) else None


def _policy_name(stated: object, path: str, faults: list[Fault]) -> PolicyName | None:
    """Return the policy stated at `path`; add its faults to `faults`."""
    remedy = 'Write the name of a policy, {"by_key": "name"}, or {"name", "version", "code"} for one of your own.'
    if stated == BY_KEY:
        problem = "by_key does not name the member that identifies objects"
        faults.append(Fault(path, problem, 'Write {"by_key": "name"}, with the name of that member.'))
        return None
    if isinstance(stated, str) and stated:
        return PolicyName(stated)
    if isinstance(stated, dict) and stated.keys() == {BY_KEY}:
        return _keyed(stated[BY_KEY], f"{path}/{BY_KEY}", faults)
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


def _keyed(member: object, path: str, faults: list[Fault]) -> PolicyName | None:
    """Return the policy that identifies objects by the text of a member."""
    if not isinstance(member, str):
        problem = f"by_key names the member that identifies objects, got {shown(member)}"
        faults.append(Fault(path, problem, "Write the name of a member as text."))
        return None
    found = ids.text_faults(member, path, MEMBER_BYTES_MAX, "member name")
    faults += found
    return None if found else PolicyName(BY_KEY, member=member)
