"""Models: a JSON Schema from a Python class.

Dataclasses are translated here; Pydantic models and msgspec structs return their own JSON Schema. A class attribute
sets, for all three, properties that a type annotation cannot:

    __woodrat__ = {"identity": [["email"]], "version": 2, "merge": {"tags": "union"}}
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import decimal
import enum
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Final

from woodrat.canon.form import Json
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.state.schema_keywords import IDENTITY, INDEX, MERGE, REDACT, TEXT, VERSION

SETTINGS: Final = "__woodrat__"
"""Class attribute for everything that annotations cannot say."""

_TOP_SETTINGS = {"identity": IDENTITY, "version": VERSION}
_FIELD_SETTINGS = {"merge": MERGE, "index": INDEX, "text": TEXT, "redact": REDACT}
_NESTING_MAX = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Merge:
    """Marks a field's merge policy: `tags: Annotated[list[str], Merge("union")]`.

    Objects identified by a member: `steps: Annotated[list[Step], Merge("by_key", "name")]`.
    """

    name: str
    """Name of the policy."""
    member: str | None = None
    """For `by_key`, the member whose text identifies an object."""


def document_of(model: object) -> tuple[dict[str, Any], str | None]:
    """Return the JSON Schema of `model` and the entity type its class is named after.

    A JSON Schema is returned unchanged, without a type. `Refused` lists every annotation that has no JSON Schema.
    """
    if isinstance(model, Mapping):
        return _unwrapped(dict(model)), None
    if not isinstance(model, type):
        raise _not_a_model(model)
    if callable(getattr(model, "model_json_schema", None)):
        document = _of_pydantic(model)
    elif hasattr(model, "__struct_fields__"):
        document = _of_struct(model)
    elif dataclasses.is_dataclass(model):
        document = _of_dataclass(model)
    else:
        raise _not_a_model(model)
    name = type_name(model.__name__)
    document["title"] = name
    _apply_settings(document, model)
    return document, name


def type_name(class_name: str) -> str:
    """Return the entity type a class is named after: `AuditEvent` is `audit_event`, `HTTPCall` is `http_call`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name)
    return re.sub(r"_+", "_", words).strip("_").lower()


def _not_a_model(model: object) -> Refused:
    """Return the refusal of a value from which no schema can be made."""
    if isinstance(model, type):
        got = f"the class {model.__name__}"
    elif dataclasses.is_dataclass(model) or hasattr(model, "__struct_fields__") or hasattr(model, "model_dump"):
        got = f"an instance of {type(model).__name__}, where the class itself is needed"
    else:
        got = shown(model)
    remedy = "Pass a dataclass, a Pydantic model, a msgspec struct or a JSON Schema as a dict."
    return Refused([Fault("model", f"cannot make a schema from {got}", remedy)])


def _unwrapped(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the target of a top-level `$ref` in its place, as recursive models write it."""
    reference = document.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return document
    target = document.get("$defs", {}).get(reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~"))
    if not isinstance(target, dict):
        return document
    # A copy, since Woodrat's keywords go onto the properties here and have no meaning on those of the definition.
    unwrapped = {**copy.deepcopy(target), **{key: value for key, value in document.items() if key != "$ref"}}
    # Left among the definitions only if something else points there too.
    name = reference.removeprefix("#/$defs/")
    others = {key: value for key, value in document["$defs"].items() if key != name}
    if not _mentions([target, others], reference):
        unwrapped["$defs"] = others
    if not unwrapped.get("$defs", True):
        del unwrapped["$defs"]
    return unwrapped


def _mentions(value: object, reference: str) -> bool:
    """Return True if `value` holds `reference` as the target of a `$ref`, at any depth."""
    if isinstance(value, Mapping):
        return value.get("$ref") == reference or any(_mentions(each, reference) for each in value.values())
    return isinstance(value, list) and any(_mentions(each, reference) for each in value)


# Class settings besides annotations


def _apply_settings(document: dict[str, Any], model: type) -> None:
    """Add the contents of the class's `__woodrat__` to `document`."""
    settings = getattr(model, SETTINGS, None)
    if settings is None:
        return
    path = f"{model.__name__}.{SETTINGS}"
    known = ", ".join([*_TOP_SETTINGS, *_FIELD_SETTINGS])
    if not isinstance(settings, Mapping):
        raise Refused([Fault(path, f"expected a dict, got {shown(settings)}", f"Write a dict with {known}.")])
    faults = []
    for key, value in settings.items():
        if key in _TOP_SETTINGS:
            document[_TOP_SETTINGS[key]] = _plain(value)
        elif key in _FIELD_SETTINGS:
            # One policy per field for merge; a list of fields, or an equivalent mapping, for settings that are on or
            # off.
            by_field = dict.fromkeys(value, True) if isinstance(value, list | tuple) and key != "merge" else value
            if not isinstance(by_field, Mapping):
                problem = f"expected settings by field, got {shown(value)}"
                faults.append(Fault(f"{path}/{key}", problem, 'Write {"field": setting}.'))
                continue
            for name, setting in by_field.items():
                if name not in document.get("properties", {}):
                    remedy = "Name a field of the class, as JSON writes it."
                    faults.append(Fault(f"{path}/{key}", f"{model.__name__} has no field {shown(name)}", remedy))
                else:
                    _mark(document, name, _FIELD_SETTINGS[key], setting)
        else:
            faults.append(Fault(f"{path}/{key}", f"unknown setting {shown(key)}", f"Known are {known}."))
    if faults:
        raise Refused(faults)


def _mark(document: dict[str, Any], field: str, keyword: str, setting: object) -> None:
    """Add a Woodrat keyword to a property, beside its others."""
    subschema = document["properties"][field]
    if not isinstance(subschema, dict):
        # `true` means the same as an empty object, which has room for a keyword
        subschema = document["properties"][field] = {} if subschema is True else {"not": {}}
    subschema[keyword] = _plain(setting)


def _mark_markers(document: dict[str, Any], field: str, markers: Sequence[object]) -> None:
    """Add the merge policy in a field's `Annotated` to its property."""
    for marker in markers:
        if isinstance(marker, Merge) and field in document.get("properties", {}):
            _mark(document, field, MERGE, marker.name if marker.member is None else {marker.name: marker.member})


def _plain(value: object) -> Json:
    """Return a setting as JSON writes it: tuples are lists; the schema's own checks see to the rest."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value  # type: ignore[return-value]


# Pydantic and msgspec


def _of_pydantic(model: Any) -> dict[str, Any]:
    """Return the JSON Schema that Pydantic writes for a model, with the markers of its fields."""
    try:
        document = _unwrapped(model.model_json_schema())
    except (NameError, RuntimeError, TypeError) as error:  # base classes of Pydantic's errors
        problem = str(error).partition("\n")[0].rstrip(".")
        raise Refused([Fault(model.__name__, problem, "Use annotations Pydantic can describe.")]) from error
    for name, info in model.model_fields.items():
        shown_as = next((each for each in (info.validation_alias, info.alias) if isinstance(each, str)), name)
        _mark_markers(document, shown_as, info.metadata)
    return document


def _of_struct(model: Any) -> dict[str, Any]:
    """Return the JSON Schema that msgspec writes for a struct, with the markers of its fields."""
    import msgspec

    try:
        document = _unwrapped(msgspec.json.schema(model))
    except (NameError, TypeError) as error:
        problem = str(error).partition("\n")[0].rstrip(".")
        raise Refused([Fault(model.__name__, problem, "Use annotations msgspec can describe.")]) from error
    hints = typing.get_type_hints(model, include_extras=True)
    for name, encoded in zip(model.__struct_fields__, model.__struct_encode_fields__, strict=True):
        hint = hints.get(name)
        _mark_markers(document, encoded, getattr(hint, "__metadata__", ()))
    return document


# Dataclasses


def _of_dataclass(model: Any) -> dict[str, Any]:
    """Return the JSON Schema of a dataclass."""
    translation = _Translation()
    document = translation.of_class(model, model.__name__)
    translation.mark(document, model)
    if translation.faults:
        raise Refused(translation.faults)
    if translation.definitions:
        document["$defs"] = {name: translation.definitions[name] for name in sorted(translation.definitions)}
    return document


_SCALARS: Final[Mapping[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    decimal.Decimal: {"type": "string"},
}


class _Translation:
    """One dataclass on its way to a JSON Schema: the definitions made so far, and every fault."""

    def __init__(self) -> None:
        self.definitions: dict[str, dict[str, Any]] = {}
        self.faults: list[Fault] = []
        self._names: dict[type, str] = {}

    def of_class(self, model: Any, path: str) -> dict[str, Any]:
        """Return the object schema of a dataclass, its fields in their order."""
        document: dict[str, Any] = {"type": "object", "properties": {}}
        hints = self._hints(model, path)
        if hints is None:
            return document
        required = []
        for field in dataclasses.fields(model):
            subschema = self.of(hints[field.name], f"{path}/{pointer_part(field.name)}", 0)
            document["properties"][field.name] = subschema
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                required.append(field.name)
        if required:
            document["required"] = required
        return document

    def mark(self, document: dict[str, Any], model: Any) -> None:
        """Put markers and metadata on the entity's own fields; in classes below they have no meaning."""
        if self.faults:
            return
        hints = self._hints(model, model.__name__) or {}
        for field in dataclasses.fields(model):
            _mark_markers(document, field.name, getattr(hints[field.name], "__metadata__", ()))
            for key, keyword in _FIELD_SETTINGS.items():
                if key in field.metadata:
                    _mark(document, field.name, keyword, field.metadata[key])

    def _hints(self, model: Any, path: str) -> dict[str, Any] | None:
        """Return the annotations of a class, or None with a fault where a name in them is unknown."""
        try:
            return typing.get_type_hints(model, include_extras=True)
        except (NameError, TypeError) as error:
            remedy = "Define the classes it names at the top level of a module."
            self.faults.append(Fault(path, f"the annotations of {model.__name__} cannot be read: {error}", remedy))
            return None

    def of(self, hint: Any, path: str, depth: int) -> dict[str, Any]:
        """Return the subschema of one annotation."""
        if depth > _NESTING_MAX:
            self.faults.append(Fault(path, "the annotation is nested too deeply", "Use a separate class."))
            return {}
        try:
            if hint in _SCALARS:
                return dict(_SCALARS[hint])
        except TypeError:  # unhashable, so none of them
            pass
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            return self.of(inner[0], path, depth + 1)
        renamed = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)
        if renamed is not None and not isinstance(hint, type):  # a NewType, or an alias made by a `type` statement
            return self.of(renamed, path, depth + 1)
        if origin in (typing.Union, types.UnionType):
            return self._of_union(inner, path, depth)
        if origin is typing.Literal:
            return self._of_values(list(inner), path)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return self._of_values([member.value for member in hint], path)
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            return self._of_nested(hint, path)
        if hint is list or origin in (list, Sequence):
            items = self.of(inner[0], path, depth + 1) if inner else {}
            return {"type": "array", "items": items} if items else {"type": "array"}
        if hint is tuple or (origin is tuple and len(inner) == 2 and inner[1] is Ellipsis):
            items = self.of(inner[0], path, depth + 1) if inner else {}
            return {"type": "array", "items": items} if items else {"type": "array"}
        if origin is tuple:
            parts = [self.of(each, path, depth + 1) for each in inner]
            return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
        if hint is dict or (origin in (dict, Mapping) and inner[0] is str):
            values = self.of(inner[1], path, depth + 1) if inner else {}
            return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
        name = getattr(hint, "__name__", None) or repr(hint)
        remedy = "Use str, int, float, bool, None, list, tuple, dict[str, …], Literal, an Enum, Any or a dataclass."
        self.faults.append(Fault(path, f"the annotation {name} has no JSON Schema", remedy))
        return {}

    def _of_union(self, options: Sequence[Any], path: str, depth: int) -> dict[str, Any]:
        """Return the subschema of alternatives: a list of types where they are plain, else `anyOf`."""
        subschemas = [self.of(option, path, depth + 1) for option in options]
        if {} in subschemas:
            return {}
        if all(subschema.keys() == {"type"} and isinstance(subschema["type"], str) for subschema in subschemas):
            return {"type": [subschema["type"] for subschema in subschemas]}
        return {"anyOf": subschemas}

    def _of_values(self, values: list[object], path: str) -> dict[str, Any]:
        """Return the subschema of a choice between values."""
        for value in values:
            if value is not None and not isinstance(value, str | int | float):
                problem = f"{shown(value)} cannot be a choice in JSON"
                self.faults.append(Fault(path, problem, "Choose between text, numbers, booleans and null."))
        # The plain value, where a choice is a member of an enum that is also text or a number.
        return {"enum": [value.value if isinstance(value, enum.Enum) else value for value in values]}

    def _of_nested(self, model: type, path: str) -> dict[str, Any]:
        """Return a reference to the definition of a dataclass, made on first use."""
        name = self._names.get(model)
        if name is None:
            name, number = model.__name__, 2
            while name in self.definitions:
                name, number = f"{model.__name__}{number}", number + 1
            self._names[model] = name
            self.definitions[name] = {}
            self.definitions[name] = self.of_class(model, f"{path}/{model.__name__}")
        return {"$ref": f"#/$defs/{name}"}
