"""Merge check: what a merge asks of a claim. It is the subschema of the property, without the enumerations in it.

Which values are known changes from release to release, and may not move what was merged before: surfaces ask for it,
and a merge asks for shapes. `enum` is left out of the property's subschema and of those that it applies in a way that
takes more values where they do. Within `not`, `if`, `oneOf` and the like it stays: left out there, a schema would take
other values, not more.
"""

from __future__ import annotations

from typing import Any, Final

from woodrat.canon import form
from woodrat.state.schema_subset import subschemas

_ONE: Final = frozenset({"then", "else", "items", "additionalProperties"})
_LISTED: Final = frozenset({"allOf", "anyOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
"""Keywords under which enumerations are left out; under all others subschemas are asked as they stand."""


def is_asked_as_it_stands(body: bytes) -> bool:
    """Return whether a merge asks a schema as it stands: it enumerates nothing."""
    return b'"enum"' not in body


def without_enumerations(document: dict[str, Any], stands_at: str) -> dict[str, Any]:
    """Return a document as a merge asks it. What stays as it stands refers to the document at an address, as it is."""
    found: dict[str, Any] = _relaxed(form.decode(form.encode(document)), stands_at)
    return found


def _relaxed(schema: Any, stands_at: str) -> Any:
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _ONE:
            found[keyword] = _relaxed(value, stands_at)
        elif keyword in _LISTED and isinstance(value, list):
            found[keyword] = [_relaxed(each, stands_at) for each in value]
        elif keyword in _NAMED and isinstance(value, dict):
            found[keyword] = {name: _relaxed(each, stands_at) for name, each in value.items()}
        elif keyword != "enum":
            found[keyword] = value
    rest = {keyword: value for keyword, value in found.items() if keyword not in _ONE | _LISTED | _NAMED}
    for _, part in subschemas(rest):
        if part is not rest and isinstance(part.get("$ref"), str):
            part["$ref"] = stands_at + part["$ref"]
    return found
