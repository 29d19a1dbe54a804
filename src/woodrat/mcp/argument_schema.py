"""Argument schemas: the JSON Schemas that arguments of tools are checked against, from the parameter kinds of their
verbs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from woodrat.api.verb import Parameter
from woodrat.mcp.action import LIMIT

RECORD: Final = {"type": "object", "properties": {"entity_type": {"type": "string"}}, "required": ["entity_type"]}
"""A record to store, in the detail that agents need; the ledger reports all other faults."""
NUMBERS_TOO: Final = frozenset({"as_of"})
"""Arguments that are text in an address, and may be sent as the number that reports have."""


def schema_of(parameter: Parameter) -> dict[str, Any]:
    """Return the JSON Schema that an argument is checked against: types, without formats of text.

    The ledger reports invalid references, ids and limits in better words.
    """
    schema = _schema(parameter.kind.schema)
    if parameter is LIMIT:
        schema |= {name: LIMIT.kind.schema[name] for name in ("minimum", "maximum")}
    if parameter.name in NUMBERS_TOO:
        schema["type"] = [schema["type"], "integer"]
    return schema


_CHECKED: Final = frozenset({"type", "items", "enum", "minProperties", "maxProperties"})
_ANY: Final = ["string", "number", "boolean", "array", "object", "null"]


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return dict(RECORD)
    if "anyOf" in schema:
        return _alternatives([_schema(each) for each in schema["anyOf"]])
    if not schema:
        return {"type": _ANY}
    checked = {name: value for name, value in schema.items() if name in _CHECKED}
    if "items" in checked:
        checked["items"] = _schema(checked["items"])
    for name in ("properties", "required"):
        if name in schema:
            checked[name] = schema[name]
    return checked


def _alternatives(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one schema for several: their types, the first first, but of one or a list of them the list."""
    match schemas:
        case [one, {"type": "array", "items": several}] if one == several:
            schemas = [schemas[1], one]
    types = [name for each in schemas for name in (each["type"] if isinstance(each["type"], list) else [each["type"]])]
    inside = {
        name: each[name] for each in reversed(schemas) for name in ("items", "properties", "required") if name in each
    }
    return {"type": list(dict.fromkeys(types)), **inside}
