"""Registry: schemas as Neotoma's clients list, read, register and extend them.

A schema there has field types, merge strategies and rules for the canonical name. Here it is a JSON Schema, and every
registered one is in force at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import schemas
from woodrat.neotoma import shapes, types
from woodrat.neotoma.calls import Given, page
from woodrat.neotoma.names import type_of
from woodrat.state import builtin, packs

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.state.schema import Schema

POLICIES: Final[Mapping[str, str]] = {
    "last_write": "latest",
    "highest_priority": "highest_priority",
    "most_specific": "latest",
    "merge_array": "union",
}
"""Merge strategies and their policies here; specificity does not exist here, so the latest wins."""
FIELD_TYPES: Final[Mapping[str, Any]] = {
    **{name: name for name in ("string", "number", "boolean", "array", "object")},
    "date": ["string", "integer"],
}
"""Types of fields and their JSON Schema."""


def listed(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return the schemas in force: of the log, of the pack, and built-in ones."""
    sought = str(given.get("search") or given.get("keyword") or "").lower()
    found: dict[str, Schema] = {**builtin.schemas(), **types.published()}
    found |= {schema.type: schema for schema in schemas.schemas(past.context)}
    told = [shapes.schema(found[name]) for name in sorted(found)]
    told = [item for item in told if sought in item["entity_type"]]
    if "entity_type" in given:
        told = [item for item in told if item["entity_type"] == given["entity_type"]]
    return {**page("schemas", told, {"limit": 1_000, **given}), "entity_types": told}


def one(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return the schema of a type."""
    return shapes.schema(_in_force(past, given["entity_type"]))


def register(ledger: Ledger, given: Given) -> Any:
    """Register a schema as the next version of its type."""
    definition, reducer = given["schema_definition"], given.get("reducer_config", {})
    fields = definition.get("fields", {})
    if not isinstance(fields, dict):
        raise Refused([Fault("schema_definition/fields", f"got {shown(fields)}", "Send fields by name.")])
    faults: list[Fault] = []
    properties = {
        name: _property(name, about.get("type") if isinstance(about, dict) else about, None, faults)
        for name, about in fields.items()
    }
    policies = reducer.get("merge_policies", {})
    for name, policy in policies.items() if isinstance(policies, dict) else ():
        strategy = policy.get("strategy") if isinstance(policy, dict) else policy
        stated = fields.get(name, {})
        kind = stated.get("type", "string") if isinstance(stated, dict) else stated
        properties[name] = _property(name, kind, strategy, faults)
    rules = _rules(definition.get("canonical_name_fields"), faults)
    if faults:
        raise Refused(faults)
    return _registered(ledger, type_of(given["entity_type"]), properties, rules)


def update(ledger: Ledger, given: Given) -> Any:
    """Register the next version of a type's schema with fields added, fields taken out, or other rules."""
    kind = type_of(given["entity_type"])
    document: dict[str, Any] = dict(_in_force(ledger, kind).document)
    properties: dict[str, Any] = dict(document.get("properties", {}))
    faults: list[Fault] = []
    for number, about in enumerate(given.get("fields_to_add", ())):
        said = about if isinstance(about, dict) else {}
        name = said.get("field_name")
        if not isinstance(name, str) or not name:
            faults.append(Fault(f"fields_to_add/{number}/field_name", f"got {shown(name)}", "Send the field's name."))
            continue
        properties[name] = _property(name, said.get("field_type"), said.get("reducer_strategy"), faults)
    for number, name in enumerate(given.get("fields_to_remove", ())):
        if isinstance(name, str):
            properties.pop(name, None)
        else:
            faults.append(Fault(f"fields_to_remove/{number}", f"got {shown(name)}", "Send the field's name."))
    rules = _rules(given.get("canonical_name_fields"), faults) or document.get("x-woodrat-identity")
    if not any(name in given for name in ("fields_to_add", "fields_to_remove", "canonical_name_fields")):
        remedy = "Send fields_to_add, fields_to_remove or canonical_name_fields."
        faults.append(Fault("fields_to_add", "there is nothing to change", remedy))
    if faults:
        raise Refused(faults)
    document.pop("x-woodrat-version", None)
    return _registered(ledger, kind, properties, rules, document)


def answer(past: Past, given: Given, report: Any) -> dict[str, Any]:
    """Return the schema after a change of it."""
    told = one(past, {"entity_type": type_of(given["entity_type"])}, None)
    return {
        "success": True,
        "schema": told,
        "schema_version": told["schema_version"],
        "fields_removed": given.get("fields_to_remove", []),
        "canonical_name_fields": told["schema_definition"]["canonical_name_fields"],
    }


def _registered(
    ledger: Ledger, kind: str, properties: Mapping[str, Any], rules: Any, document: Mapping[str, Any] | None = None
) -> Any:
    whole = {"title": kind, "type": "object", **(document or {}), "properties": dict(properties)}
    whole |= {"x-woodrat-identity": rules} if rules else {}
    return ledger.schemas.register(whole, entity_type=kind)


def _in_force(past: Past, kind: str) -> Schema:
    try:
        return past.schemas.show(kind)
    except NotFound:
        if kind in types.published():
            return types.published()[kind]
        raise


def _property(name: str, kind: Any, strategy: Any, faults: list[Fault]) -> dict[str, Any]:
    """Return the subschema of a field; its faults are added to `faults`."""
    if kind is not None and not (isinstance(kind, str) and kind in FIELD_TYPES):
        faults.append(Fault(f"fields/{name}", f"got the type {shown(kind)}", f"Send one of {', '.join(FIELD_TYPES)}."))
    if strategy is not None and not (isinstance(strategy, str) and strategy in POLICIES):
        problem = f"got the strategy {shown(strategy)}"
        faults.append(Fault(f"merge_policies/{name}", problem, f"Send one of {', '.join(POLICIES)}."))
    policy = POLICIES.get(str(strategy), "latest")
    found = {"type": "array" if policy in packs.COLLECTIONS else FIELD_TYPES.get(str(kind), "string")}
    return {**found, **({"x-woodrat-merge": policy} if policy != "latest" else {})}


def _rules(stated: Any, faults: list[Fault]) -> list[list[str]]:
    """Return identity rules: a flat list is one rule of several fields, a list with a composite has alternatives."""
    if stated is None:
        return []
    if not isinstance(stated, list) or not stated:
        faults.append(Fault("canonical_name_fields", f"got {shown(stated)}", "Send a list of fields or composites."))
        return []
    if all(isinstance(rule, str) for rule in stated):
        return [list(stated)]
    rules = []
    for rule in stated:
        parts = [rule] if isinstance(rule, str) else rule.get("composite") if isinstance(rule, dict) else None
        if not isinstance(parts, list) or not parts or not all(isinstance(part, str) for part in parts):
            faults.append(
                Fault("canonical_name_fields", f"got {shown(rule)}", "Send a field or a composite of fields.")
            )
        else:
            rules.append(list(parts))
    return rules
