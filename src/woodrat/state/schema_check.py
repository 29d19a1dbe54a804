"""Schema check: everything wrong with a document that is to become a schema."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Final

from woodrat.canon import ids
from woodrat.errors import Fault, pointer_part, shown
from woodrat.state.redaction import REDACTED
from woodrat.state.schema_faults import TYPE_WORDS, either, json_type, plain, said
from woodrat.state.schema_keywords import (
    ELSEWHERE,
    MARK,
    MERGE,
    PLACES,
    PROPERTY,
    REDACT,
    TOP,
    VERSION,
    PolicyName,
    PolicyTraits,
)
from woodrat.state.schema_subset import Counting, pointed_at
from woodrat.state.validator import DIALECT, compiles, errors, meta

RESERVED_FIELDS: Final = frozenset({"entity_type", "$"})
"""Keys of a stored record that are never fields."""

PATTERN_BYTES_MAX: Final = 10_000
"""Largest compiled form of a pattern, as the engine measures it."""

JSON_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def entity_type(document: dict[str, Any], stated: str | None) -> tuple[str, list[Fault]]:
    """Return the entity type that a document describes, and its faults."""
    if stated is not None:
        return stated, ids.type_faults(stated, "type")
    title = document.get("title")
    if not isinstance(title, str):
        remedy = 'Name the type, or put it into the schema as "title".'
        return "", [Fault("/title", "the schema does not name its entity type", remedy)]
    if ids.type_faults(title, "/title"):
        problem = f"the title {plain(title)} is not an entity type such as tool_config"
        return "", [Fault("/title", problem, "Name the type beside the schema, or change its title.")]
    return title, []


def version_faults(document: dict[str, Any], asked: int | None) -> list[Fault]:
    """Return the conflict between the requested and the stated version."""
    if asked is None:
        return []
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        problem = f"a version is a whole number from 1 up, got {shown(asked)}"
        return [Fault("version", problem, "Ask for a whole number from 1 up, or for none.")]
    if document.get(VERSION, asked) != asked:
        problem = f"the schema states version {shown(document[VERSION])}, but the call names {asked}"
        return [Fault(f"/{VERSION}", problem, "State one of the two.")]
    return []


def document_faults(document: dict[str, Any]) -> list[Fault]:
    """Return the faults of the document as a JSON Schema, and every misplaced Woodrat keyword."""
    faults = []
    for error in () if meta().is_valid(document) else errors(meta(), document):
        path = "".join(f"/{pointer_part(str(step))}" for step in error.instance_path)
        faults.append(Fault(path, f"not JSON Schema: {said(error)[0]}", f"Write it as {DIALECT} says."))
    if document.get("type", "object") != "object":
        problem = f'the top-level type of an entity is "object", got {shown(document["type"])}'
        faults.append(Fault("/type", problem, 'Write "object", or leave it out.'))
    if "$ref" in document:
        problem = "a $ref at the top level hides the fields of the type"
        faults.append(Fault("/$ref", problem, "Write the referenced subschema at the top level."))
    counting = Counting(document)
    parts = counting.parts
    anchors: dict[str, str] = {}
    for path, anchor in ((path, schema.get("$anchor")) for path, schema in parts):
        if isinstance(anchor, str) and anchors.setdefault(anchor, path) != path:
            problem = f"{plain(anchor)} is also the name of another subschema, {anchors[anchor] or 'the whole'}"
            faults.append(Fault(path, problem, "Give each its own name."))
    properties = document.get("properties")
    fields = {id(each) for each in properties.values()} if isinstance(properties, dict) else frozenset()
    known = {id(each) for _, each in parts}
    for path, schema in parts:
        place = TOP if schema is document else PROPERTY if id(schema) in fields else ELSEWHERE
        faults += _keyword_faults(schema, path, place)
        faults += _reference_faults(schema, path, counting, known)
        faults += _pattern_faults(schema, path)
    for name in sorted(RESERVED_FIELDS & properties.keys()) if isinstance(properties, dict) else ():
        problem = f"{name} is reserved in stored records and cannot be a field"
        faults.append(Fault(f"/properties/{name}", problem, "Give the field another name."))
    return faults


def _keyword_faults(schema: dict[str, Any], path: str, place: str) -> list[Fault]:
    """Return a fault for every Woodrat keyword that is unknown or misplaced."""
    faults = []
    for keyword in sorted(key for key in schema if key.startswith(MARK)):
        if keyword not in PLACES:
            ends = [known.removeprefix(MARK) for known in PLACES]
            close = near(keyword.removeprefix(MARK), ends)
            remedy = f"Did you mean {MARK}{close[0]}?" if close else f"Known are {', '.join(PLACES)}."
            faults.append(Fault(f"{path}/{pointer_part(keyword)}", f"unknown keyword {keyword}", remedy))
        elif PLACES[keyword] != place:
            problem = f"{keyword} has no meaning here"
            faults.append(Fault(f"{path}/{keyword}", problem, f"It belongs {PLACES[keyword]}."))
    return faults


def _reference_faults(schema: dict[str, Any], path: str, counting: Counting, known: Collection[int]) -> list[Fault]:
    """Return the faults of a subschema's references and of its name."""
    faults = []
    target = schema.get("$ref")
    if isinstance(target, str):
        if not target.startswith("#"):
            problem = f"$ref {plain(target)} points outside the schema"
            remedy = "Copy the referenced subschema into $defs, and point there with #/$defs/…."
            faults.append(Fault(f"{path}/$ref", problem, remedy))
        elif not isinstance(found := counting.target(target), bool) and id(found) not in known:
            problem = f"$ref {plain(target)} points at nothing"
            faults.append(Fault(f"{path}/$ref", problem, "Point at a subschema of this document."))
    dialect = schema.get("$schema", DIALECT)
    if isinstance(dialect, str) and dialect.rstrip("#") != DIALECT:
        problem = f"the dialect {plain(dialect)} is not understood"
        faults.append(Fault(f"{path}/$schema", problem, f"Write the schema in JSON Schema 2020-12 ({DIALECT})."))
    if path and "$id" in schema:
        problem = "an $id below the top level would change the meaning of references"
        faults.append(Fault(f"{path}/$id", problem, "Leave it out, and point with #/…."))
    return faults


def _pattern_faults(schema: dict[str, Any], path: str) -> list[Fault]:
    """Return the faults of the patterns in one subschema."""
    patterns = [(f"{path}/pattern", schema.get("pattern"))]
    named = schema.get("patternProperties")
    for name in named if isinstance(named, dict) else ():
        patterns.append((f"{path}/patternProperties/{pointer_part(name)}", name))
    found = ((where, pattern, _pattern_fault(pattern)) for where, pattern in patterns if isinstance(pattern, str))
    return [
        Fault(where, f"the pattern {plain(pattern)} {fault[0]}", fault[1]) for where, pattern, fault in found if fault
    ]


def _pattern_fault(pattern: str) -> tuple[str, str] | None:
    """Return the fault of a pattern, with the remedy."""
    # Whether a claim fits is part of the merged state, and Unicode's tables change from release to release.
    if re.search(r"(?<!\\)(?:\\\\)*\\[pP]|\(\?[a-zA-Z-]", pattern):
        return "uses \\p or a flag, whose meaning differs between machines", "List the characters or ranges instead."
    if compiles(pattern, PATTERN_BYTES_MAX):
        return None
    if compiles(pattern):
        remedy = "Count fewer repetitions, and state lengths with minLength and maxLength."
        return f"is too large: compiled it takes more than {PATTERN_BYTES_MAX} bytes", remedy
    if re.search(r"\(\?<?[=!]|\\[1-9]|\\k<", pattern):
        remedy = "Write it without (?=…), (?!…), (?<=…), (?<!…), \\1 and \\k<…>, or as several patterns under allOf."
        return "looks around or back, which no linear-time engine can match", remedy
    return "is not a regular expression", "Write it as ECMA 262 says."


def policy_faults(document: dict[str, Any], field: str, policy: PolicyName, traits: PolicyTraits | None) -> list[Fault]:
    """Return the faults of a field's policy, given the properties of the policy."""
    path = f"/properties/{pointer_part(field)}/{MERGE}"
    if traits is None:
        remedy = "Use a policy that this ledger has, or register your own first."
        return [Fault(path, f"unknown merge policy {plain(str(policy))}", remedy)]
    # A sum takes text too, but only that of numbers.
    if document["properties"][field].get(REDACT) is True and (
        "string" not in traits.json_types or traits.name == "sum"
    ):
        problem = f"{field}: the policy {policy} cannot hold {REDACTED}, which replaces a redacted value"
        return [Fault(path, problem, f"Change the policy, or leave {REDACT} out.")]
    takes = traits.json_types | ({"integer"} if "number" in traits.json_types else frozenset())
    possible = _possible_types(document["properties"][field], document, {})
    if takes & possible:
        return [] if policy.member is None else _keyed_faults(document, field, policy.member, path)
    taken = either(TYPE_WORDS[name] for name in sorted(traits.json_types))
    problem = f"{field}: the policy {policy} takes {taken}, which its field never holds"
    return [Fault(path, problem, "Change the policy or the field's type.")]


def _keyed_faults(document: dict[str, Any], field: str, member: str, path: str) -> list[Fault]:
    """Return the faults of a `by_key` field, by the schema of its elements."""
    items = document["properties"][field].get("items", True)
    if "object" not in _possible_types(items, document, {}):
        problem = f"{field}: by_key takes objects, which its elements never are"
        return [Fault(path, problem, "Change the policy or the type of its items.")]
    members = items.get("properties") if isinstance(items, dict) else None
    stated = members.get(member, True) if isinstance(members, dict) else True
    if "string" not in _possible_types(stated, document, {}):
        problem = f'{field}: by_key identifies objects by the text of "{member}", which never is text'
        return [Fault(path, problem, "Name another member, or let it be text.")]
    return []


def _possible_types(schema: object, document: dict[str, Any], known: dict[str, frozenset[str]]) -> frozenset[str]:
    """Return JSON types that a value of `schema` may have; possibly more, never fewer.

    `known` holds the answer for each followed reference, and all types for references still being followed.
    """
    if not isinstance(schema, dict):
        return frozenset() if schema is False else JSON_TYPES
    types = JSON_TYPES
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
            known[target] = JSON_TYPES
            known[target] = _possible_types(pointed_at(document, target), document, known)
        types &= known.get(target, JSON_TYPES)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            types &= frozenset().union(*(_possible_types(each, document, known) for each in schema[keyword]))
    for each in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        types &= _possible_types(each, document, known)
    return types


def near(name: str, known: Iterable[str]) -> list[str]:
    """Return the likely intended name, if there is one."""
    from difflib import get_close_matches  # only errors need it

    return get_close_matches(name, list(known), 1)
