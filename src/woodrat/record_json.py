"""Record JSON: records as plain JSON, and back, derived from their fields.

The form is whole. Every field has its Python name, then come derived properties (`derived`), so a program on the other
side of a server can restore the same record. A record that gains a field gains it here, in the wire form and in the
OpenAPI document.

A tuple is an array, `Hex` is hex, other bytes are base64, a reference is its text, a mapping with non-text keys is an
array of pairs. Where a field may hold records of several classes, `record` names the class. A reader ignores unknown
members, and gives missing fields their defaults. A class with its own `from_json` is written by its own `to_json`, and
may describe itself by `json_schema`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, NewType, TypeVar, Union, get_args, get_origin

from woodrat.canon.ids import Ref, parse_ref
from woodrat.records import fields_of, is_record, kinds_of

__all__ = (
    "IN_PYTHON_ONLY",
    "WHEN_SET",
    "Describe",
    "Form",
    "Hex",
    "NamedForm",
    "Record",
    "component",
    "derived",
    "form_of",
    "is_optional",
    "object_schema",
    "read",
    "schemas",
    "shown_types",
    "texts",
    "types_of",
    "write",
)

if TYPE_CHECKING:
    from builtins import bytes as Hex
    from builtins import property as derived
else:
    Hex = NewType("Hex", bytes)
    """Bytes that JSON has in hex, as of a digest."""

    class derived(property):
        """A property that JSON shows beside the fields; reading a record back leaves it out."""


class Record:
    """The result of a verb, or a part of it."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON: its fields and derived properties, by their names."""
        form = _FORMS.get(self.__class__) or _form(self.__class__)
        record: dict[str, Any] = form.write(self)
        return record


_TAG: Final = "record"
_PLAIN: Final[Mapping[Any, str]] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_OPEN: Final = (Any, object)
"""Types that are JSON already and are not converted."""


class Form:
    """How values of one type are written, read and described."""

    __slots__ = ("read", "schema", "write")

    def __init__(
        self,
        write: Callable[[Any], Any],
        read: Callable[[Any], Any],
        schema: Callable[[Describe], dict[str, Any]] = lambda _: {},
    ) -> None:
        self.write = write
        """Returns a value as plain JSON."""
        self.read = read
        """Returns the value that plain JSON states."""
        self.schema = schema
        """Returns its JSON Schema, given how to describe the types inside."""


_FORMS: Final[dict[type, Form]] = {}
"""Cache of forms by class: faster than `form_of`."""


def _form(kind: type) -> Form:
    return _FORMS.setdefault(kind, form_of(kind))


Describe = Callable[[Any], dict[str, Any]]
"""Returns the JSON Schema of a type; a reference where it is a record."""


def write(kind: Any, value: Any) -> Any:
    """Return a value of a type, such as `Page[Reason]`, as plain JSON."""
    return form_of(kind).write(value)


def read(kind: Any, value: Any) -> Any:
    """Return the value of a type that `write` wrote. An invalid value raises KeyError, TypeError or ValueError."""
    return form_of(kind).read(value)


class NamedForm:
    """Another form of a type, with its own name in documents."""

    kind: Any
    """The type."""
    name: str
    """The name; empty for a schema described inline."""

    def schema(self, describe: Describe) -> dict[str, Any]:
        """Return the JSON Schema of its values."""
        raise NotImplementedError


def schemas(*kinds: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the JSON Schema of each type, and by name the schemas of all records they refer to."""
    components: dict[str, Any] = {}

    def describe(kind: Any) -> dict[str, Any]:
        if isinstance(kind, NamedForm):
            if not kind.name:
                return kind.schema(describe)
            components[kind.name] = components.get(kind.name) or kind.schema(describe)
            return {"$ref": f"#/components/schemas/{kind.name}"}
        if not is_record(get_origin(kind) or kind) and not _has_own_form(kind):
            return form_of(kind).schema(describe)
        name = component(kind)
        if name not in components:
            components[name] = {}  # so that a record may contain records of its own class
            components[name] = form_of(kind).schema(describe)
        return {"$ref": f"#/components/schemas/{name}"}

    return [describe(kind) for kind in kinds], components


def component(kind: Any) -> str:
    """Return the name of a record in a document: `Page[Hit]` is `HitPage`."""
    return "".join(getattr(part, "__name__", "") for part in (*get_args(kind), get_origin(kind) or kind))


def _has_own_form(kind: Any) -> bool:
    """Return True if a class has its own methods for writing and reading, since it is more than its fields."""
    return isinstance(kind, type) and hasattr(kind, "from_json")


@cache
def form_of(kind: Any) -> Form:
    """Return how values of a type are written and read."""
    if kind in _PLAIN:
        name = _PLAIN[kind]
        return Form(_same, float if kind is float else _same, lambda _: {"type": name})
    if kind in _OPEN:
        return Form(_same, _same)
    if kind is bytes:
        return Form(_base64, _bytes, lambda _: _BASE64)
    if kind is Hex:
        return Form(bytes.hex, bytes.fromhex, lambda _: _HEX)
    if kind is Ref:
        return Form(str, parse_ref, lambda _: {"type": "string"})
    if isinstance(kind, TypeVar):
        return Form(lambda value: value.to_json(), _unreadable)
    if hasattr(kind, "__supertype__"):
        return form_of(kind.__supertype__)
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return Form(_same, _same, lambda _: {"enum": list(inside)})
    if origin in (Union, types.UnionType):
        return _one_of(inside)
    if origin is tuple:
        return _tuple(inside)
    if origin in (dict, Mapping):
        return _mapping(*inside)
    if origin is not None:
        return _record(origin, dict(zip(origin.__parameters__, inside, strict=True)))
    if _has_own_form(kind):
        return Form(kind.to_json, kind.from_json, getattr(kind, "json_schema", _any_object))
    assert is_record(kind), f"{kind} has a form"
    kinds = kinds_of(kind)
    return _one_of(tuple(kinds)) if kinds else _record(kind, {})


def _same(value: Any) -> Any:
    return value


def _unreadable(value: Any) -> Any:
    raise TypeError("a record of an unnamed type can be written and not read")


def _base64(value: bytes) -> str:
    from base64 import b64encode

    return b64encode(value).decode("ascii")


def _bytes(text: str) -> bytes:
    from base64 import b64decode

    return b64decode(text, validate=True)


_BASE64: Final = {"type": "string", "contentEncoding": "base64"}
_HEX: Final = {"type": "string", "contentEncoding": "base16"}


def _any_object(_: Describe) -> dict[str, Any]:
    return {"type": "object"}


# Records


def _record(kind: Any, meaning: Mapping[Any, Any]) -> Form:
    """Return the form of a record; `meaning` gives the types of its type variables.

    It is compiled on first use, since a record may contain records of its own class.
    """

    def write(value: Any) -> Any:
        if form.write is write:
            form.write = _writer(kind, meaning)
        return form.write(value)

    def read(value: Any) -> Any:
        if form.read is read:
            form.read = _reader(kind, meaning)
        return form.read(value)

    form = Form(write, read, lambda describe: _described(kind, meaning, describe))
    return form


def _writer(kind: Any, meaning: Mapping[Any, Any]) -> Callable[[Any], Any]:
    """Return the writer of a record, compiled as one expression, so that it is as fast as one by hand."""
    known: dict[str, Any] = {}
    write: Callable[[Any], Any] = eval(f"lambda r: {_expression(kind, meaning, 'r', known)}", known)
    return write


def _expression(kind: Any, meaning: Mapping[Any, Any], record: str, known: dict[str, Any]) -> str:
    """Return the Python expression that writes the record of that name; its functions are added to `known`."""
    parts = []
    for name, each in shown_types(kind, meaning).items():
        form, value = form_of(each), f"{record}.{name}"
        inside = get_args(each)
        if form.write is list:
            value = f"[*{value}]"
        elif form.write is dict:
            value = f"{{**{value}}}"
        elif get_origin(each) is tuple and inside[-1] is ... and _is_flat(inside[0]):
            value = f"[{_expression(inside[0], {}, 'i', known)} for i in {value}]"
        elif form.write is not _same:
            known[f"f_{name}"] = form
            value = f"f_{name}.write({value})"
        if is_optional(kind, name):
            parts.append(f"**({{{name!r}: {value}}} if {record}.{name} else {{}})")
        else:
            parts.append(f"{name!r}: {value}")
    return f"{{{', '.join(parts)}}}"


def _is_flat(kind: Any) -> bool:
    """Return True if a class has only plain values, and lists and mappings of those."""
    return (
        is_record(kind)
        and not _has_own_form(kind)
        and not kinds_of(kind)
        and all(form_of(each).write in (_same, list, dict) for each in shown_types(kind).values())
    )


def _reader(kind: Any, meaning: Mapping[Any, Any]) -> Callable[[Any], Any]:
    """Return the reader of a record."""
    forms = {name: form_of(each) for name, each in types_of(kind, meaning).items()}

    def read(value: Mapping[str, Any]) -> Any:
        return kind(**{name: form.read(value[name]) for name, form in forms.items() if name in value})

    return read


def _described(kind: Any, meaning: Mapping[Any, Any], describe: Describe) -> dict[str, Any]:
    said = texts(kind)
    properties = {
        name: {**describe(each), **({"description": said[name]} if name in said else {})}
        for name, each in shown_types(kind, meaning).items()
    }
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split("\n\n")[0].split()),
        "required": [name for name in properties if not is_optional(kind, name)],
        "properties": properties,
    }


def is_optional(kind: Any, name: str) -> bool:
    """Return True if JSON omits a field that equals its default."""
    return is_record(kind) and name in fields_of(kind) and fields_of(kind)[name].metadata is WHEN_SET


def object_schema(describe: Describe, text: str, properties: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties, each with a sentence and its type."""
    return {
        "type": "object",
        "description": text,
        "required": list(properties),
        "properties": {name: {**describe(kind), "description": each} for name, (each, kind) in properties.items()},
    }


@cache
def texts(kind: Any) -> dict[str, str]:
    """Return the one-line docstring below each field of a class, and of each derived property."""
    import ast
    import inspect
    from textwrap import dedent

    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if is_record(each):
            (written,) = ast.parse(dedent(inspect.getsource(each))).body
            assert isinstance(written, ast.ClassDef)
            for node, below in pairwise(written.body):
                match node, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        found[name] = text
        found |= {name: member.__doc__ or "" for name, member in vars(each).items() if isinstance(member, derived)}
    return {name: " ".join(text.split("\n\n")[0].split()) for name, text in found.items()}


def shown_types(kind: Any, meaning: Mapping[Any, Any] = {}) -> dict[str, Any]:
    """Return the type of all that JSON shows of a record."""
    return types_of(kind, meaning) | _derived_types(kind)


def types_of(kind: Any, meaning: Mapping[Any, Any] = {}) -> dict[str, Any]:
    """Return the type of each field that JSON shows."""
    return {
        name: _meant(_evaluated(field.annotation, _owner(kind, name)), meaning)
        for name, field in fields_of(kind).items()
        if field.metadata is not IN_PYTHON_ONLY
    }


WHEN_SET: Final[Mapping[str, Any]] = {"json": "when set"}
"""The metadata of a field that JSON omits if it equals its default."""
IN_PYTHON_ONLY: Final[Mapping[str, Any]] = {"json": False}
"""The metadata of a field that JSON does not show: `field(metadata=IN_PYTHON_ONLY)`."""


def _owner(kind: Any, name: str) -> Any:
    """Return the class that declares a field; its module resolves the annotation."""
    return next(each for each in reversed(kind.__mro__) if is_record(each) and name in fields_of(each))


def _derived_types(kind: Any) -> dict[str, Any]:
    found = {}
    for each in reversed(kind.__mro__):
        for name, member in vars(each).items():
            if isinstance(member, derived):
                found[name] = _evaluated(member.fget.__annotations__["return"], each)
    return found


def _meant(kind: Any, meaning: Mapping[Any, Any]) -> Any:
    """Return a type with its type variables replaced."""
    if not meaning or isinstance(kind, TypeVar):
        return meaning.get(kind, kind)
    open_parts = getattr(kind, "__parameters__", ())
    return kind[tuple(meaning[part] for part in open_parts)] if open_parts else kind


def _evaluated(annotation: str, owner: Any) -> Any:
    return eval(annotation, {}, _Names(owner.__module__))


class _Names(dict[str, Any]):
    """The names in a module's annotations; `Json` is not resolved further."""

    def __init__(self, module: str) -> None:
        super().__init__(vars(sys.modules[module]))
        self.update(_ALWAYS)


_ALWAYS: Final[Mapping[str, Any]] = {"Json": Any, "Mapping": Mapping, "tuple": tuple}


# Composite types


def _one_of(kinds: tuple[Any, ...]) -> Form:
    inner = [kind for kind in kinds if kind is not type(None)]
    optional = len(inner) < len(kinds)
    if len(inner) == 1:
        return _optional(form_of(inner[0]), lambda describe: describe(inner[0]))
    if all(is_record(kind) for kind in inner):
        forms = {kind.__name__: form_of(kind) for kind in inner}

        def told(value: Any) -> Any:
            name = type(value).__name__
            return {_TAG: name, **forms[name].write(value)}

        def described(describe: Describe) -> dict[str, Any]:
            return {"oneOf": [describe(_Tagged(kind)) for kind in inner]}

        form = Form(told, lambda value: forms[value[_TAG]].read(value), described)
    else:
        assert all(kind in _PLAIN or kind in _OPEN for kind in inner), f"{kinds} have no distinguishing member"
        form = Form(_same, _same, lambda _: {"anyOf": [{"type": _PLAIN[kind]} for kind in inner if kind in _PLAIN]})
    return _optional(form, form.schema) if optional else form


class _Tagged(NamedForm):
    """A record class whose JSON carries the name of the class."""

    def __init__(self, kind: Any) -> None:
        self.kind, self.name = kind, f"Tagged{kind.__name__}"

    def schema(self, describe: Describe) -> dict[str, Any]:
        """Return the schema of its records: one object, which makers of clients understand."""
        schema = form_of(self.kind).schema(describe)
        properties = {_TAG: {"type": "string", "const": self.kind.__name__}, **schema.get("properties", {})}
        return {**schema, "required": [_TAG, *schema.get("required", ())], "properties": properties}


def _optional(inner: Form, schema_of: Callable[[Describe], dict[str, Any]]) -> Form:
    def described(describe: Describe) -> dict[str, Any]:
        schema = schema_of(describe)
        kind = schema.get("type")
        if isinstance(kind, str | list):
            return {**schema, "type": [*([kind] if isinstance(kind, str) else kind), "null"]}
        return {"anyOf": [schema, {"type": "null"}]} if schema else {}

    if inner.write is _same and inner.read is _same:
        return Form(_same, _same, described)
    return Form(
        lambda value: None if value is None else inner.write(value),
        lambda value: None if value is None else inner.read(value),
        described,
    )


def _tuple(inside: tuple[Any, ...]) -> Form:
    if inside[-1] is ...:
        one = form_of(inside[0])

        def listed(describe: Describe) -> dict[str, Any]:
            return {"type": "array", "items": describe(inside[0])}

        if one.write is _same and one.read is _same:
            return Form(list, tuple, listed)
        return Form(
            lambda items: [one.write(item) for item in items],  # writing the first may compile its form
            lambda value: tuple(map(one.read, value)),
            listed,
        )
    each = tuple(map(form_of, inside))

    return Form(
        lambda items: [form.write(item) for form, item in zip(each, items, strict=True)],
        lambda value: tuple(form.read(item) for form, item in zip(each, value, strict=True)),
        lambda describe: _fixed(inside, describe),
    )


def _fixed(kinds: tuple[Any, ...], describe: Describe) -> dict[str, Any]:
    """Return the schema of an array that holds one item of each type.

    The order of types is left open: many tools for OpenAPI do not understand `prefixItems`.
    """
    described: list[dict[str, Any]] = []
    for kind in kinds:
        if (schema := describe(kind)) not in described:
            described.append(schema)
    items = described[0] if len(described) == 1 else {"anyOf": described}
    return {"type": "array", "items": items, "minItems": len(kinds), "maxItems": len(kinds)}


def _mapping(key: Any, held: Any) -> Form:
    inner, keys = form_of(held), form_of(key)
    if keys is not form_of(str):
        return Form(
            lambda value: [[keys.write(name), inner.write(item)] for name, item in value.items()],
            lambda value: {keys.read(name): inner.read(item) for name, item in value},
            lambda describe: {"type": "array", "items": _fixed((key, held), describe)},
        )

    def named(describe: Describe) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": describe(held)}

    if inner.write is _same and inner.read is _same:
        return Form(dict, _same, named)
    return Form(
        lambda value: {name: inner.write(item) for name, item in value.items()},
        lambda value: {name: inner.read(item) for name, item in value.items()},
        named,
    )
