"""Inference: from the stored values of a type to a JSON Schema that they fit.

The result is a suggestion, to be read and edited before registration: it describes the stored values, not the intent.
It holds for its inputs: every live claim and every shown value fits it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.merge import Policy, fold
from woodrat.merge.rules import Rules
from woodrat.records import dataclass, field
from woodrat.state.observation import STATING, Observation
from woodrat.state.schema import SCHEMA_BYTES_MAX
from woodrat.state.schema_check import RESERVED_FIELDS
from woodrat.state.schema_keywords import IDENTITY, INDEX, MERGE, TEXT
from woodrat.state.schema_subset import subset_faults
from woodrat.state.validator import DIALECT

FIELDS_MAX: Final = 1_000
"""Most fields that are described, the most frequent first; a field that is not described takes any value."""
DEPTH_MAX: Final = 3
"""Deepest described level of objects and arrays inside a value."""
KEYS_MAX: Final = 50
"""Most described keys of an object inside a value; one with more counts as a mapping."""
ELEMENTS_MAX: Final = 100_000
"""Most elements of a field remembered to detect repetition."""

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


@dataclass(slots=True)
class _Seen:
    """The statistics of one place in many values."""

    depth: int
    types: set[str] = field(default_factory=set)
    objects: int = 0
    keys: dict[str, tuple[_Seen, int]] | None = field(default_factory=dict)
    elements: _Seen | None = None

    def add(self, value: Json) -> None:
        """Take one more value into account."""
        kind = "null" if value is None else _TYPES[type(value)]
        self.types.add(kind)
        if self.depth >= DEPTH_MAX:
            return
        if isinstance(value, list):
            for element in value:
                self.elements = self.elements or _Seen(self.depth + 1)
                self.elements.add(element)
        elif isinstance(value, dict):
            self.objects += 1
            for name, inner in value.items():
                if self.keys is not None:
                    seen, count = self.keys.get(name, (_Seen(self.depth + 1), 0))
                    seen.add(inner)
                    self.keys[name] = (seen, count + 1)
                    if len(self.keys) > KEYS_MAX:
                        self.keys = None

    def schema(self) -> dict[str, Json]:
        """Return the subschema that everything seen here fits."""
        types = self.types - {"integer"} if "number" in self.types else self.types
        found: dict[str, Json] = {}
        if types:
            found["type"] = next(iter(types)) if len(types) == 1 else list[Json](sorted(types))
        if self.elements is not None:
            found["items"] = self.elements.schema()
        if self.objects and self.keys:
            found["properties"] = {name: seen.schema() for name, (seen, _) in sorted(self.keys.items())}
            always = [name for name, (_, count) in sorted(self.keys.items()) if count == self.objects]
            if always:
                found["required"] = list[Json](always)
        return found


@dataclass(slots=True)
class _Field:
    """The statistics of one field."""

    seen: _Seen = field(default_factory=lambda: _Seen(0))
    entities: int = 0
    repeats: bool = False
    """Whether two claims on one entity name the same element."""
    listing: bool = False
    """Whether one claim names an element twice: a list, and no set."""
    counted: int = 0


def infer(entities: Iterable[tuple[Mapping[str, Json], Iterable[Observation]]], rules: Rules) -> dict[str, Any] | None:
    """Return a schema for the entities of a type, each given as its shown values and all its observations.

    The settings of the schema in force about identity, merging and indexes are preserved; `None` when there are no
    entities.
    """
    fields: dict[str, _Field] = {}
    count = 0
    for shown, observations in entities:
        count += 1
        for name, value in shown.items():
            found = fields.setdefault(name, _Field())
            found.entities += 1
            found.seen.add(value)
        _take_claims(fields, observations)
    if not count:
        return None
    # An unprintable name is left undescribed, and so takes anything: no reference can point at it.
    named = [name for name in fields if name not in RESERVED_FIELDS and name.isprintable()]
    named = sorted(named, key=lambda name: (-fields[name].entities, name))[:FIELDS_MAX]
    while True:
        document = _document(rules, {name: fields[name] for name in sorted(named)}, count)
        # Room for the version and the type, which are filled in when it is registered.
        short = len(form.serialise(document)) <= SCHEMA_BYTES_MAX - 1_000
        if (short and not subset_faults(document)) or not named:
            return document
        named = named[: len(named) // 2]


def _take_claims(fields: dict[str, _Field], observations: Iterable[Observation]) -> None:
    """Take the live claims on one entity into account."""
    everything = {observation.digest: observation for observation in observations}
    live = fold.live_digests(everything)
    elements: dict[str, set[bytes]] = {}
    for digest in sorted(live):
        observation = everything[digest]
        for name, value in observation.fields.items() if observation.op in STATING else ():
            found = fields.setdefault(name, _Field())
            found.seen.add(value)
            if not isinstance(value, list) or found.counted > ELEMENTS_MAX:
                continue
            named = {form.serialise(element) for element in value}
            known = elements.setdefault(name, set())
            found.counted += len(value)
            found.listing = found.listing or len(named) < len(value)
            found.repeats = found.repeats or not known.isdisjoint(named)
            known |= named


def _document(rules: Rules, fields: Mapping[str, _Field], count: int) -> dict[str, Any]:
    old = rules.schema
    properties: dict[str, Any] = {}
    for name, found in fields.items():
        properties[name] = subschema = found.seen.schema()
        if name in old.policies:
            subschema[MERGE] = old.policies[name].to_json()
            _make_room(subschema, rules.policy(name))
        elif found.seen.types == {"array"} and found.repeats and not found.listing:
            subschema[MERGE] = "union"
        subschema.update({TEXT: True} if name in old.searchable else {})
        subschema.update({INDEX: True} if name in old.indexed else {})
    document: dict[str, Any] = {"$schema": DIALECT, "title": old.type, "type": "object", "properties": properties}
    required = [name for name, found in fields.items() if found.entities == count]
    if required:
        document["required"] = required
    if IDENTITY in old.document:
        document[IDENTITY] = old.document[IDENTITY]
    return document


def _make_room(subschema: dict[str, Json], policy: Policy) -> None:
    """Let a field have the types that its policy needs, if none was seen; a schema must not contradict itself."""
    stated = subschema.get("type", [])
    types = {str(name) for name in stated} if isinstance(stated, list) else {str(stated)}
    takes = policy.json_types | ({"integer"} if "number" in policy.json_types else set())
    if types and not takes & (types | ({"integer"} if "number" in types else set())):
        subschema["type"] = list[Json](sorted(types | policy.json_types))
