"""Merge check: the check of a claim in a merge. It is the subschema of the property, without its enumerations.

The known values of an enumeration change from release to release, and may not change earlier merge results: surfaces
check them, and a merge checks shapes. `enum` is removed from the property's subschema and from subschemas where that
only admits more values. Within `not`, `if`, `oneOf` and the like it stays: without it, a schema would admit other
values, not more.
"""

from __future__ import annotations

from typing import Any, Final

from woodrat.canon import form
from woodrat.state.schema_subset import subschemas

_ONE: Final = frozenset({"then", "else", "items", "additionalProperties"})
_LISTED: Final = frozenset({"allOf", "anyOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
"""Keywords whose enumerations are ignored; under all others subschemas apply unchanged."""


def is_asked_as_it_stands(body: bytes) -> bool:
    """Return True if a merge uses a schema unchanged: it enumerates nothing."""
    return b'"enum"' not in body


def without_enumerations(document: dict[str, Any], stands_at: str) -> dict[str, Any]:
    """Return a document as a merge uses it. Unchanged parts refer to the document at an address."""
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
