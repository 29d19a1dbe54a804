"""Compact JSON: the short form of records in lists, unless the caller wants details.

A record class lists in `COMPACT` the members in a list: its reference, its values, and the keys for further calls.
Other members, such as the origin of each value, are available on request. The remaining members have the same names and
form as in the whole record (`record_json.py`), so one reader handles both. A class without `COMPACT` is short enough to
be shown whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args, get_origin

from woodrat.record_json import (
    Describe,
    Form,
    NamedForm,
    component,
    form_of,
    is_optional,
    shown_types,
    texts,
)
from woodrat.records import is_record

PREFIX = "Compact"
"""Prefix of the name of a compact record in a document."""


@cache
def compact_form(kind: Any) -> Form:
    """Return the write-only form of a type with only the members of `COMPACT`."""
    origin, inside = get_origin(kind), get_args(kind)
    if not is_shortened(kind):
        return form_of(kind)
    if origin is tuple and inside[-1] is ...:
        one = compact_form(inside[0])

        def listed(describe: Describe) -> dict[str, Any]:
            return {"type": "array", "items": compact_schema(inside[0], describe)}

        return Form(lambda items: [one.write(item) for item in items], _unreadable, listed)
    if hasattr(kind, "to_compact_json"):
        return Form(kind.to_compact_json, _unreadable, lambda describe: _chosen(kind, describe))
    if hasattr(kind, "from_json"):
        return Form(lambda value: _picked(kind, value), _unreadable, lambda describe: _chosen(kind, describe))
    return _record(origin or kind, dict(zip(getattr(origin, "__parameters__", ()), inside, strict=True)))


def members(kind: Any) -> tuple[str, ...] | None:
    """Return the members of a record in lists; None if all."""
    named: tuple[str, ...] | None = getattr(kind, "COMPACT", None)
    return kind.compact_members() if hasattr(kind, "compact_members") else named


def is_shortened(kind: Any) -> bool:
    """Return True if compact values of a type have fewer members than whole ones."""
    return members(kind) is not None or any(is_shortened(part) for part in get_args(kind))


def _unreadable(value: Any) -> Any:
    raise TypeError("a compact record can be written and not read")


def _picked(kind: Any, value: Any) -> dict[str, Any]:
    whole = value.to_json()
    return {name: whole[name] for name in members(kind) or () if name in whole}


def _record(kind: Any, meaning: Mapping[Any, Any]) -> Form:
    """Return the form of a record that is written by its fields."""
    all_types = shown_types(kind, meaning)
    types = {name: all_types[name] for name in members(kind) or all_types}
    forms = [(name, is_optional(kind, name), compact_form(each)) for name, each in types.items()]

    def write(value: Any) -> dict[str, Any]:
        found = {}
        for name, optional, form in forms:
            part = getattr(value, name)
            if part or not optional:
                found[name] = form.write(part)
        return found

    def schema(describe: Describe) -> dict[str, Any]:
        said = texts(kind)
        properties = {
            name: {**compact_schema(each, describe), **({"description": said[name]} if name in said else {})}
            for name, each in types.items()
        }
        required = [name for name, optional, _ in forms if not optional]
        return {"type": "object", "description": _sentence(kind), "required": required, "properties": properties}

    return Form(write, _unreadable, schema)


def _sentence(kind: Any) -> str:
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def _chosen(kind: Any, describe: Describe) -> dict[str, Any]:
    """Return the schema of a class that describes itself, with only the compact members."""
    whole = kind.json_schema(describe)
    properties = {name: whole["properties"][name] for name in members(kind) or ()}
    required = [name for name in whole["required"] if name in properties]
    return {**whole, "required": required, "properties": properties}


def compact_schema(kind: Any, describe: Describe) -> dict[str, Any]:
    """Return the JSON Schema of compact values of a type; `describe` does so for whole values."""
    return describe(CompactKind(kind)) if is_shortened(kind) else describe(kind)


class CompactKind(NamedForm):
    """A type with compact values."""

    def __init__(self, kind: Any) -> None:
        named = is_record(get_origin(kind) or kind) or hasattr(kind, "from_json")
        self.kind, self.name = kind, PREFIX + component(kind) if named else ""

    def schema(self, describe: Describe) -> dict[str, Any]:
        """Return the JSON Schema of its values."""
        return compact_form(self.kind).schema(describe)
