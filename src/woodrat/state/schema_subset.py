"""Schema subset: the part of JSON Schema that a schema may use, so that no check of a record takes long.

The validating library holds the interpreter until it is done, so a schema that could keep it busy is refused by name:
recursive references, `$dynamicRef`, `unevaluated*`, and more checks than the limits of docs/formats/schema.md allow.
`schema_check` refuses patterns outside a linear-time engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from woodrat.errors import Fault, pointer_part

CHECKS_MAX: Final = 20_000
"""Most checks of a schema, references followed."""
CHECKS_AT_ONE_VALUE_MAX: Final = 200
"""Most checks that may meet at one value."""
SLOW: Final = 80
"""Cost, in checks, of a pattern, of unique items, and in elements of the size of a number."""
DIVISION: Final = 30
"""Additional cost of a multiple of a fraction, in elements."""
FRACTION: Final = 150
"""Cost of a comparison with a possibly fractional number, in checks per element."""
NUMERIC: Final = 20
"""Cost of a comparison of whole numbers, in elements."""

_ONE: Final = frozenset(
    {"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"}
)
_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
_LISTED: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NOT_APPLIED: Final = frozenset({"$defs", "definitions", "contentSchema"})
_REPEATED: Final = frozenset({"additionalProperties", "contains", "items", "patternProperties", "propertyNames"})
"""Keywords whose subschemas apply to many elements or members."""
_APART: Final = frozenset({"properties", "prefixItems"})
"""Keywords whose subschemas apply to one value each."""
_REFUSED: Final = {
    "$dynamicRef": "Refer with $ref.",
    "$dynamicAnchor": "Name it with $anchor, and refer with $ref.",
    "$recursiveRef": "Refer with $ref.",
    "unevaluatedProperties": "Use additionalProperties beside the properties it allows.",
    "unevaluatedItems": "Use items beside prefixItems.",
}
"""Keywords outside the subset, with alternatives."""
_SIZES: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def subschemas(schema: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (path, subschema) for `schema` and all below it; data in `enum`, `const` and such is passed over."""
    waiting = [(path, schema)]
    while waiting:
        path, here = waiting.pop()
        if isinstance(here, dict):
            yield path, here
            for _, at, each in _below(here):
                waiting.append((path + at, each))


def _below(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (keyword, path, subschema) for the direct subschemas of one."""
    for keyword, each in schema.items():
        if keyword in _ONE:
            yield keyword, f"/{keyword}", each
        elif keyword in _NAMED and isinstance(each, dict):
            for name, inner in each.items():
                yield keyword, f"/{keyword}/{pointer_part(name)}", inner
        elif keyword in _LISTED and isinstance(each, list):
            for number, inner in enumerate(each):
                yield keyword, f"/{keyword}/{number}", inner


def pointed_at(document: Mapping[str, Any], reference: str) -> object:
    """Return the target of a `#/…` reference, or None."""
    pointer = unquoted(reference[1:])
    if pointer and not pointer.startswith("/"):
        return None
    found: object = document
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isascii() and name.isdecimal() and int(name[:9]) < len(found):
            found = found[int(name[:9])]
        else:
            return None
    return found


def unquoted(text: str) -> str:
    """Return text with its percent codes decoded."""
    if "%" not in text:
        return text
    from urllib.parse import unquote  # slow to load, and few schemas need it

    return unquote(text)


def subset_faults(document: Mapping[str, Any]) -> list[Fault]:
    """Return everything in a document that is outside the subset or its limits, patterns apart."""
    counting = Counting(document)
    faults: list[Fault] = []
    for path, schema in counting.parts:
        for keyword in sorted(_REFUSED.keys() & schema.keys()):
            faults.append(Fault(f"{path}/{keyword}", f"{keyword} is not supported", _REFUSED[keyword]))
    faults += counting.recursive_faults()
    return faults or counting.limit_faults()


class Counting:
    """The checks of one document, each subschema counted once however often it is referred to."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.parts = list(subschemas(document))
        self._document = document
        self._paths = {id(schema): path for path, schema in self.parts}
        self._known: dict[tuple[int, bool], tuple[int, int]] = {}
        self._following: list[int] = []
        self._recursive: dict[str, str] = {}
        self._anchors = {f"#{schema['$anchor']}": schema for _, schema in self.parts if "$anchor" in schema}

    def recursive_faults(self) -> list[Fault]:
        """Return the references that lead back to their own place."""
        for _, schema in self.parts:
            if "$ref" in schema:
                self.count(schema)
        remedy = 'Write out the existing levels, and leave deeper values open: {"type": "object"}.'
        return [
            Fault(path, f'the $ref "{target}" leads back to itself', remedy)
            for path, target in sorted(self._recursive.items())
        ]

    def limit_faults(self) -> list[Fault]:
        """Return the fault of too many checks, in total or at one value."""
        total, most = self.count(self._document)
        faults = []
        if total > CHECKS_MAX:
            problem = f"the schema has more than {CHECKS_MAX} checks with all references followed"
            faults.append(Fault("", problem, "Refer to a subschema fewer times, or split the type."))
        if most > CHECKS_AT_ONE_VALUE_MAX:
            remedy = "Combine fewer subschemas, patterns and numbers there, or describe fewer nested values."
            properties = self._document.get("properties")
            named = properties.items() if isinstance(properties, dict) else ()
            fields = [(f"/properties/{pointer_part(name)}", self.count(each)[1]) for name, each in named]
            heavy = [at for at, count in fields if count > CHECKS_AT_ONE_VALUE_MAX] or [""]
            problem = f"more than {CHECKS_AT_ONE_VALUE_MAX} checks may meet at one value"
            faults += [Fault(at, problem, remedy) for at in heavy]
        return faults

    def target(self, reference: str) -> object:
        """Return the target of a reference within the document, or None."""
        return self._anchors.get(f"#{unquoted(reference[1:])}") or pointed_at(self._document, reference)

    def count(self, schema: object, repeated: bool = False) -> tuple[int, int]:
        """Return the checks of a subschema in all, and the most of them that may meet at one value."""
        if not isinstance(schema, dict):
            return 1, 1
        key = id(schema), repeated
        if key in self._known:
            return self._known[key]
        if len(self._following) > CHECKS_AT_ONE_VALUE_MAX:
            return 1, CHECKS_AT_ONE_VALUE_MAX + 1  # so many inside each other are that many at one value
        self._following.append(id(schema))
        total = most = _own(schema, repeated)
        apart = 0
        for keyword, _, each in _below(schema):
            if keyword in _NOT_APPLIED:
                continue
            inner, at_one = self.count(each, repeated or keyword in _REPEATED)
            total += inner
            if keyword in _APART:
                apart = max(apart, at_one)
            else:
                most += at_one
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            target = self.target(reference)
            if id(target) in self._following:
                self._recursive[f"{self._paths.get(id(schema), '')}/$ref"] = reference
            else:
                inner, at_one = self.count(target, repeated)
                total, most = total + inner, most + at_one
        self._following.pop()
        self._known[key] = total, most + apart
        return self._known[key]


def _own(schema: Mapping[str, Any], repeated: bool) -> int:
    """Return the checks of a subschema without those of its subschemas."""
    count = 1 + (SLOW if "pattern" in schema else 0) + (SLOW if schema.get("uniqueItems") is True else 0)
    for keyword in ("patternProperties", "dependentRequired"):
        named = schema.get(keyword)
        count += (SLOW if keyword == "patternProperties" else 2) * len(named) if isinstance(named, dict) else 0
    options = schema.get("enum")
    compared = [each for each in options if _is_slow(each)] if isinstance(options, list) else []
    count += len(options) if compared and isinstance(options, list) else 0  # for plain texts one comparison is enough
    compared += [schema["const"]] if "const" in schema and _is_slow(schema["const"]) else []
    if not repeated:
        return count
    types = schema.get("type")
    whole = set(types if isinstance(types, list) else [types]) <= {"integer", "null", "boolean", "string"}
    divisor = schema.get("multipleOf")
    if isinstance(divisor, float) and not divisor.is_integer():
        count += DIVISION
    sizes = sum(name in schema for name in _SIZES)
    return count + (NUMERIC if whole else SLOW) * sizes + (NUMERIC if whole else FRACTION) * len(compared)


def _is_slow(value: object) -> bool:
    """Return True if a comparison with a value is slow: with a number, or with a container that may hold some."""
    return value is not None and not isinstance(value, bool | str)
