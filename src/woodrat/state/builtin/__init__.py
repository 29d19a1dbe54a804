"""Builtin: the types every ledger knows, one JSON Schema each.

They are ordinary schemas of version 1. A tenant that needs other fields registers a higher version of the type.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from ...canon import form
from ..schema import Schema, stored

TYPES: Final = (
    "action",
    "agent_session",
    "audit_event",
    "company",
    "contact",
    "contract",
    "document",
    "entity_graph",
    "evaluation",
    "note",
    "pipeline",
    "runbook",
    "task",
    "tool_config",
)
"""The built-in types, in alphabetical order; each has a file of its name beside this one."""

FROZEN_TYPES: Final = frozenset({"audit_event"})
"""Types whose entities are never corrected, retracted or deleted, so that an audit trail stays unchanged."""


_FORMATS: Final[Mapping[str, Mapping[str, Any]]] = {
    "company": {
        "domain": {"format": "domain"},
        "domains": {"items": {"type": "string", "format": "domain"}},
        "founded_on": {"format": "date or year"},
    },
    "contract": {"expires_on": {"format": "date"}},
    "task": {"due_at": {"format": "date or date-time"}},
}
"""Formats that surfaces check in addition to the formats in the files, by type and field.

The schemas are in logs, so their bytes stay; checks of surfaces apply to those logs too.
"""


def with_formats(schema: Schema) -> Mapping[str, Any]:
    """Return the document of a schema with all formats checked when a record is written."""
    further = _FORMATS.get(schema.type)
    if further is None or schema.version != 1:
        return schema.document
    stated: Any = schema.document.get("properties", {})
    properties: dict[str, Any] = dict(stated)
    properties |= {name: {**properties[name], **keywords} for name, keywords in further.items() if name in properties}
    return {**schema.document, "properties": properties}


def document(type: str) -> dict[str, Any]:
    """Return the JSON Schema of a built-in type, as its file writes it."""
    from importlib import resources  # slow to import, and most reads find the schema in the log

    text = resources.files(__package__).joinpath(f"{type}.json").read_bytes()
    found: dict[str, Any] = form.parse(text)  # type: ignore[assignment]
    return found


@lru_cache(maxsize=1)
def schemas() -> Mapping[str, Schema]:
    """Return the built-in schemas by type; read once, on the first call.

    The files are part of the package and a test checks every one of them, so they are trusted like entries of a log.
    """
    return MappingProxyType({type: stored(form.encode({"schema": document(type), "type": type})) for type in TYPES})
