"""A third merge, in plain code: groups, folds, policies and whether a value fits.

Written from docs/formats/merge.md, schema.md and section 3 of capsule.md alone. An observation is a `Said`; nothing
here knows of logs or positions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Context, Decimal
from typing import Any, NamedTuple

from tests.verifier.plain_values import (
    REDACTED,
    REF_TYPE,
    canonical,
    digest,
    is_integer,
    is_number,
    is_text,
    is_whole,
    name,
    rank,
    same,
)

COLLECTIONS = ("union", "sum", "append")
DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
EXACT = Context(prec=5000)


class Said(NamedTuple):
    """One observation and where it stands."""

    position: int
    name: str
    digest: bytes
    body: dict[str, Any]

    @property
    def id(self) -> str:
        return self.name[:30]

    @property
    def op(self) -> str:
        return str(self.body["op"])

    @property
    def entity(self) -> str:
        return f"{self.body['entity']['type']}/{self.body['entity']['key']}"

    @property
    def replaces(self) -> list[str]:
        return list(self.body.get("replaces", []))

    def states(self, field: str) -> bool:
        """Whether it makes a claim on the field: a value, or elements taken out."""
        return self.op in ("assert", "correct") and (field in self.fields or field in self.body.get("remove", {}))

    @property
    def fields(self) -> dict[str, Any]:
        return dict(self.body.get("fields", {}))


def said(position: int, body: dict[str, Any]) -> Said:
    """Return an observation by its body."""
    data = canonical(body)
    return Said(position, name("observation", data), digest("observation", data), body)


# Which observations act, markers, groups (merge.md 1 to 3)


def live_ones(observations: Iterable[Said]) -> set[str]:
    """Return the names of observations that no live retraction of the same entity names."""
    acting = [o for o in observations if o.body["entity"]["type"] != "audit_event" or o.op == "assert"]
    known: dict[str, bool] = {}

    def live(one: Said) -> bool:
        if one.name not in known:
            known[one.name] = not any(
                live(other)
                for other in acting
                if other.op == "retract" and one.name in other.replaces and other.entity == one.entity
            )
        return known[one.name]

    return {one.name for one in acting if live(one)}


def is_deleted(entity: str, observations: Iterable[Said], live: set[str]) -> bool:
    """Whether any live marker that is not replaced is a delete."""
    markers = [o for o in observations if o.entity == entity and o.op in ("delete", "restore")]
    if entity.startswith("audit_event/"):
        return False

    def replaced(one: Said) -> bool:
        return any(one.name in other.replaces and (other.name in live or replaced(other)) for other in markers)

    return any(one.op == "delete" and one.name in live and not replaced(one) for one in markers)


def ends(entity: dict[str, Any]) -> tuple[str, str] | None:
    """Return the two entities that a relation of type `same_as` connects, where its key says two."""
    if entity["type"] != "same_as":
        return None
    try:
        pair = json.loads(entity["key"])
        if canonical(pair) != entity["key"].encode():
            return None
    except (ValueError, RecursionError, UnicodeEncodeError):
        return None
    if not (isinstance(pair, list) and len(pair) == 2 and all(is_text(ref) and is_ref(ref) for ref in pair)):
        return None
    one, two = pair
    kind = one.split("/")[0]
    if one.encode() >= two.encode() or kind != two.split("/")[0] or kind == "same_as":
        return None
    return one, two


def is_ref(text: str) -> bool:
    """Whether a text is a reference, as ids.md section 4 says."""
    kind, slash, key = text.partition("/")
    controls = any(ord(letter) < 0x20 or 0x7F <= ord(letter) <= 0x9F for letter in key)
    return bool(slash and REF_TYPE.fullmatch(kind) and 1 <= len(key.encode()) <= 1024 and not controls)


def group(entity: str, observations: Iterable[Said]) -> set[str]:
    """Return the entities that relations among these observations connect with one."""
    relations = [o for o in observations if ends(o.body["entity"])]
    live = live_ones(relations)
    joined: list[tuple[str, str]] = []
    for one in relations:
        both = ends(one.body["entity"])
        exists = any(o.entity == one.entity and o.name in live and o.op != "retract" for o in relations)
        if both and exists and not is_deleted(one.entity, relations, live):
            joined.append(both)
    members = {entity}
    while True:
        further = {ref for pair in joined if members & set(pair) for ref in pair} - members
        if not further:
            return members
        members |= further


# Policies (schema.md, merge.md 4 and 5)


def property_of(schema: dict[str, Any] | None, field: str) -> Any:
    """Return the subschema of a field; None where there is none."""
    return None if schema is None else schema.get("properties", {}).get(field)


def policy_of(schema: dict[str, Any] | None, field: str) -> Any:
    """Return the policy of a field by a schema."""
    found = property_of(schema, field)
    return found.get("x-woodrat-merge", "latest") if isinstance(found, dict) else "latest"


def is_own(policy: Any) -> bool:
    """Whether a policy is the user's own."""
    return isinstance(policy, dict) and set(policy) == {"name", "version", "code"}


def key_member(policy: Any) -> str | None:
    """Return the member by whose text a policy tells objects apart, if it does (schema.md)."""
    if not isinstance(policy, dict) or list(policy) != ["by_key"] or not is_text(policy["by_key"]):
        return None
    member: str = policy["by_key"]
    controls = any(ord(letter) < 0x20 or 0x7F <= ord(letter) <= 0x9F for letter in member)
    return member if 1 <= len(member.encode()) <= 256 and not controls else None


def is_collection(policy: Any) -> bool:
    """Whether a policy makes collections or sums."""
    return key_member(policy) is not None or (is_text(policy) and policy in COLLECTIONS)


def is_hidden_field(schema: dict[str, Any] | None, field: str) -> bool:
    """Whether the schema keeps a field's values out of the log."""
    found = property_of(schema, field)
    return isinstance(found, dict) and found.get("x-woodrat-redact") is True


def takes(policy: Any, claim: Said, field: str) -> bool:
    """Whether a policy takes a claim (merge.md 4)."""
    member = key_member(policy)
    if field in claim.body.get("remove", {}) and policy != "union" and member is None:
        return False
    if member is not None and not all(is_text(text) for text in claim.body.get("remove", {}).get(field, [])):
        return False
    if field not in claim.fields:
        return True
    value = claim.fields[field]
    if member is not None:
        if not isinstance(value, list):
            return False
        texts = [each.get(member) if isinstance(each, dict) else None for each in value]
        return all(is_text(text) for text in texts)
    if policy in ("union", "append"):
        return isinstance(value, list)
    if policy == "sum":
        return is_integer(value) or (is_text(value) and len(value) <= 400 and DECIMAL.fullmatch(value) is not None)
    return True


# The fold (merge.md 2 to 5)


class Fold:
    """One field of a group over the observations shown; `fits` says which claims fit."""

    def __init__(self, members: set[str], observations: Iterable[Said], field: str, fits: Callable[[Said], bool]):
        ours = [o for o in observations if o.entity in members]
        self.field = field
        self.live = live_ones(ours)
        gone = {member for member in members if is_deleted(member, ours, self.live)}
        acting = [o for o in ours if not (o.entity.startswith("audit_event/") and o.op != "assert")]
        self.claims = [o for o in acting if o.entity not in gone and o.states(field)]
        self.fitting = [o for o in self.claims if fits(o)]
        self.corrections = [o for o in self.fitting if o.op == "correct"]

    def is_replaced(self, one: Said, among: list[Said]) -> bool:
        """Whether a correction among these replaces a claim."""
        return any(one.name in o.replaces and (o.name in self.live or self.is_replaced(o, among)) for o in among)

    def standing(self, among: list[Said]) -> list[Said]:
        """Return the live corrections that are not replaced."""
        return [o for o in among if o.name in self.live and not self.is_replaced(o, among)]

    def assertions(self) -> list[Said]:
        """Return the live fitting assertions."""
        return [o for o in self.fitting if o.op == "assert" and o.name in self.live]

    def value_of(self, one: Said) -> Any:
        return one.fields.get(self.field)

    def latest(self, one: Said) -> tuple[Any, ...]:
        """Return the rank of a claim under `latest`."""
        return (one.body["observed_at"], one.body["priority"], rank(self.value_of(one)))

    def value(self, policy: Any) -> list[Any]:
        """Return the field's value in a list, or an empty list where it has none."""
        member = key_member(policy)
        if member is not None:
            return self.by_key(member)
        if is_collection(policy):
            return {"union": self.union, "sum": self.sum, "append": self.append}[policy]()
        best = self.winner(policy)
        return [] if best is None else [self.value_of(best)]

    def winner(self, policy: Any) -> Said | None:
        """Return the observation that sets a field of one winner; of equal ones that of the smallest digest."""
        standing = sorted(self.standing(self.corrections), key=lambda o: o.digest)
        if standing:
            return max(standing, key=self.latest)
        claims = sorted(self.assertions(), key=lambda o: o.digest)
        if not claims:
            return None
        if policy == "latest":
            best = max(claims, key=self.latest)
        elif policy == "highest_priority":
            best = max(claims, key=lambda o: (o.body["priority"], o.body["observed_at"], rank(self.value_of(o))))
        elif policy == "first":
            earliest = min(o.body["observed_at"] for o in claims)
            claims = [o for o in claims if o.body["observed_at"] == earliest]
            best = max(claims, key=lambda o: (o.body["priority"], rank(self.value_of(o))))
        elif policy == "max":
            best = max(claims, key=lambda o: rank(self.value_of(o)))
        else:
            assert policy == "min"
            best = min(claims, key=lambda o: rank(self.value_of(o)))
        return best

    def union(self) -> list[Any]:
        if not any(o.name in self.live for o in self.fitting):
            return []
        elements: dict[bytes, Any] = {}
        inside: dict[str, set[bytes]] = {}
        outside: dict[str, set[bytes]] = {}
        for one in self.fitting:
            for where, listed in (
                (inside, one.fields.get(self.field, [])),
                (outside, one.body.get("remove", {}).get(self.field, [])),
            ):
                where[one.name] = {canonical(element) for element in listed}
                elements |= {canonical(element): element for element in listed}
        found = []
        for spelled, element in elements.items():
            speaking = [o for o in self.fitting if spelled in inside[o.name] | outside[o.name]]
            standing = self.standing([o for o in speaking if o.op == "correct"])
            heard = standing or [o for o in speaking if o.op == "assert" and o.name in self.live]
            statements = [
                (o.body["observed_at"], o.body["priority"], is_in)
                for o in heard
                for is_in, where in ((True, inside), (False, outside))
                if spelled in where[o.name]
            ]
            if statements and max(statements)[2]:
                found.append(element)
        return [sorted(found, key=rank)]

    def by_key(self, key: str) -> list[Any]:
        if not any(o.name in self.live for o in self.fitting):
            return []
        objects: dict[str, set[str]] = {}
        for one in self.fitting:
            for text in one.body.get("remove", {}).get(self.field, []):
                objects.setdefault(text, set())
            for each in one.fields.get(self.field, []):
                objects.setdefault(each[key], set()).update(each.keys() - {key})
        found = []
        for text in sorted(objects, key=lambda text: text.encode()):
            if self.settled(key, text, None) == [True]:
                members = {member: self.settled(key, text, member) for member in objects[text]}
                found.append({key: text, **{member: held[0] for member, held in members.items() if held}})
        return [found]

    def settled(self, key: str, text: str, member: str | None) -> list[Any]:
        """Return what holds of a member of an object, or of whether it is in, in a list; an empty one if nothing."""
        stated: dict[str, Any] = {}
        for one in self.fitting:
            if member is None and text in one.body.get("remove", {}).get(self.field, []):
                stated[one.name] = False
            meant = [each for each in one.fields.get(self.field, []) if each[key] == text]
            if member is None and meant:
                stated[one.name] = True
            elif member is not None and any(member in each for each in meant):
                stated[one.name] = max((each[member] for each in meant if member in each), key=rank)
        speaking = [o for o in self.fitting if o.name in stated]
        standing = self.standing([o for o in speaking if o.op == "correct"])
        heard = standing or [o for o in speaking if o.op == "assert" and o.name in self.live]
        if not heard:
            return []
        best = max(heard, key=lambda o: (o.body["observed_at"], o.body["priority"], rank(stated[o.name])))
        return [stated[best.name]]

    def originals(self) -> list[tuple[Said, Any]]:
        """Return (original, what it contributes) for `sum` and `append`."""
        originals = {o.name: o for o in self.claims if o.op == "assert"}
        stands_for: dict[str, list[Said]] = {}
        for correction in self.corrections:
            named = [replaced for replaced in set(correction.replaces) if replaced in originals]
            if len(named) == 1:
                stands_for.setdefault(named[0], []).append(correction)
        contributions = []
        for original in originals.values():
            standing = self.standing(stands_for.get(original.name, []))
            if standing:
                contributions.append((original, self.value_of(max(standing, key=self.latest))))
            elif original in self.fitting and original.name in self.live:
                contributions.append((original, self.value_of(original)))
        return contributions

    def sum(self) -> list[Any]:
        values = [value for _, value in self.originals()]
        if not values:
            return []
        total = Decimal(0)
        for value in values:
            total = EXACT.add(total, Decimal(value))
        if all(is_integer(value) for value in values) and abs(total) <= 2**53 - 1:
            return [int(total)]
        text = format(total, "f")
        if "." in text:
            text = text.rstrip("0").rstrip(".")
        return ["0" if text in ("-0", "") else text]

    def append(self) -> list[Any]:
        found = self.originals()
        if not found:
            return []
        found.sort(key=lambda pair: (pair[0].body["observed_at"], rank(self.value_of(pair[0])), pair[0].digest))
        return [[element for _, value in found for element in value]]


# Does a value fit? (capsule.md section 3)

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
IGNORED = [
    "$defs",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "x-woodrat-merge",
    "x-woodrat-index",
    "x-woodrat-text",
    "x-woodrat-redact",
]
REFERENCE = re.compile(r"#/\$defs/([^/~%]*)", re.DOTALL)


class NotEvaluated(Exception):
    """More steps, or deeper, than the page allows."""


def referred(document: dict[str, Any], text: Any) -> list[Any]:
    """Return the subschema a `$ref` leads to in a list, or an empty list."""
    found = REFERENCE.fullmatch(text) if is_text(text) else None
    defs = document.get("$defs")
    if found is None or not isinstance(defs, dict) or found[1] not in defs:
        return []
    return [defs[found[1]]]


def is_known(subschema: Any, document: dict[str, Any], reached: set[str] | None = None) -> bool:
    """Whether a subschema, and all in it or reached from it, has known keywords of the right shapes only."""
    reached = set() if reached is None else reached
    if isinstance(subschema, bool):
        return True
    if not isinstance(subschema, dict):
        return False

    def known(other: Any) -> bool:
        return is_known(other, document, reached)

    for keyword, given in subschema.items():
        if keyword in IGNORED or keyword == "const":
            shaped = True
        elif keyword == "type":
            names = given if isinstance(given, list) else [given]
            shaped = bool(names) and all(is_text(each) and each in TYPES for each in names)
        elif keyword == "enum":
            shaped = isinstance(given, list)
        elif keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            shaped = is_number(given)
        elif keyword in ("minLength", "maxLength", "minItems", "maxItems"):
            shaped = is_whole(given)
        elif keyword in ("items", "additionalProperties", "not"):
            shaped = known(given)
        elif keyword == "properties":
            shaped = isinstance(given, dict) and all(known(each) for each in given.values())
        elif keyword == "required":
            shaped = isinstance(given, list) and all(is_text(each) for each in given)
        elif keyword in ("anyOf", "allOf", "oneOf"):
            shaped = isinstance(given, list) and bool(given) and all(known(each) for each in given)
        elif keyword == "$ref":
            target = referred(document, given)
            shaped = bool(target)
            if target and given not in reached:
                reached.add(given)
                shaped = known(target[0])
        else:
            shaped = False
        if not shaped:
            return False
    return True


def is_of_type(value: Any, kind: str) -> bool:
    """Whether a value has a type of JSON Schema."""
    if kind == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    if kind == "number":
        return is_number(value)
    if kind == "null":
        return value is None
    classes = {"boolean": bool, "string": str, "array": list, "object": dict}
    return isinstance(value, classes[kind])


class Evaluation:
    """One value against one known subschema, counted in steps."""

    def __init__(self, document: dict[str, Any]):
        self.document = document
        self.steps = 0

    def apply(self, subschema: Any, value: Any, depth: int = 1, enums: bool = False) -> bool:
        self.steps += 1
        if self.steps > 10_000 or depth > 100:
            raise NotEvaluated
        if isinstance(subschema, bool):
            return subschema
        # A list, not `all` over a generator: every keyword is applied, whatever the others gave.
        return all([self.keyword(subschema, word, given, value, depth, enums) for word, given in subschema.items()])  # noqa: C419

    def keyword(self, subschema: dict[str, Any], word: str, given: Any, value: Any, depth: int, enums: bool) -> bool:
        def inner(other: Any, inside: Any) -> bool:
            return self.apply(other, inside, depth + 1, enums or word in ("not", "oneOf"))

        if word == "type":
            return any(is_of_type(value, kind) for kind in (given if isinstance(given, list) else [given]))
        if word == "enum":
            return not enums or any(same(value, each) for each in given)
        if word == "const":
            return same(value, given)
        if word == "not":
            return not inner(given, value)
        if word == "$ref":
            return inner(referred(self.document, given)[0], value)
        if word in ("anyOf", "allOf", "oneOf"):
            held = sum([inner(each, value) for each in given])
            return {"anyOf": held > 0, "allOf": held == len(given), "oneOf": held == 1}[word]
        if is_number(value):
            if word == "minimum":
                return bool(rank(value) >= rank(given))
            if word == "maximum":
                return bool(rank(value) <= rank(given))
            if word == "exclusiveMinimum":
                return bool(rank(value) > rank(given))
            if word == "exclusiveMaximum":
                return bool(rank(value) < rank(given))
        if is_text(value) and word in ("minLength", "maxLength"):
            return bool(len(value) >= given if word == "minLength" else len(value) <= given)
        if isinstance(value, list):
            if word == "minItems":
                return bool(len(value) >= given)
            if word == "maxItems":
                return bool(len(value) <= given)
            if word == "items":
                return all([inner(given, item) for item in value])  # noqa: C419
        if isinstance(value, dict):
            if word == "required":
                return all(each in value for each in given)
            if word == "properties":
                return all([inner(given[key], value[key]) for key in given if key in value])  # noqa: C419
            if word == "additionalProperties":
                named = subschema.get("properties", {})
                return all([inner(given, value[key]) for key in value if key not in named])  # noqa: C419
        return True


WEIGHTS = {"pattern": 80, "patternProperties": 80, "uniqueItems": 80, "dependentRequired": 2}
IN_ELEMENTS = {"items", "contains", "additionalProperties", "patternProperties", "propertyNames"}
SUBSCHEMAS: dict[str, type] = {
    **dict.fromkeys(("not", "if", "then", "else", "contentSchema", *IN_ELEMENTS), object),
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas", "dependencies"), dict),
    **dict.fromkeys(("$defs", "definitions"), dict),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), list),
}
"""Keywords that hold a subschema, an object of them, or a list of them."""


def parts_of(subschema: dict[str, Any], keyword: str) -> list[Any]:
    """Return the subschemas under one keyword."""
    kind, given = SUBSCHEMAS[keyword], subschema.get(keyword)
    if kind is object:
        return [given] if keyword in subschema else []
    if isinstance(given, dict) and kind is dict:
        return list(given.values())
    return given if isinstance(given, list) and kind is list else []


def table(subschema: dict[str, Any], elements: bool) -> int:
    """Return the checks of a subschema alone, by the table of schema.md."""
    found = 1
    for keyword, weight in WEIGHTS.items():
        given = subschema.get(keyword)
        times = len(given) if isinstance(given, dict) else keyword == "pattern" or given is True
        found += weight * times if keyword in subschema else 0
    listed = subschema["enum"] if isinstance(subschema.get("enum"), list) else []
    numbers = [each for each in listed if is_number(each) or isinstance(each, (list, dict))]
    found += len(listed) if numbers else 0
    if elements:
        const = subschema.get("const")
        compared = len(numbers) + (is_number(const) or isinstance(const, (list, dict)))
        kinds = subschema.get("type", "number")
        whole = ("integer", "null", "boolean", "string")
        fractions = any(each not in whole for each in (kinds if isinstance(kinds, list) else [kinds]))
        found += compared * (150 if fractions else 20)
        limits = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} & subschema.keys()
        found += len(limits) * (80 if fractions else 20)
        divisor = subschema.get("multipleOf")
        found += 30 if is_number(divisor) and not is_of_type(divisor, "integer") else 0
    return found


def is_within(schema: dict[str, Any]) -> bool:
    """Whether each subschema of a document, taken by itself, is within the subset and limits of schema.md."""
    counted: dict[tuple[int, bool], tuple[int, int] | None] = {}

    def checks(part: Any, elements: bool) -> tuple[int, int]:
        """Return the checks in all and at one value; what is asked for while it is being counted leads back."""
        if not isinstance(part, dict):
            return 1, 1
        key = id(part), elements
        if key in counted:
            found = counted[key]
            if found is None:
                raise NotEvaluated
            return found
        counted[key] = None
        inner = {
            keyword: [checks(each, elements or keyword in IN_ELEMENTS) for each in parts_of(part, keyword)]
            for keyword in SUBSCHEMAS.keys() - {"$defs", "definitions", "contentSchema"}
        }
        if "$ref" in part:
            target = referred(schema, part["$ref"])
            if not target:
                raise NotEvaluated
            inner["$ref"] = [checks(target[0], elements)]
        alone = table(part, elements)
        together = [one for word, ones in inner.items() if word not in ("properties", "prefixItems") for _, one in ones]
        apart = [one for word in ("properties", "prefixItems") for _, one in inner[word]]
        total = alone + sum(each for ones in inner.values() for each, _ in ones)
        found = counted[key] = total, alone + sum(together) + max(apart, default=0)
        if found[0] > 20_000 or found[1] > 200:
            raise NotEvaluated
        return found

    def all_of(part: Any) -> Iterator[Any]:
        yield part
        for keyword in SUBSCHEMAS if isinstance(part, dict) else ():
            for each in parts_of(part, keyword):
                yield from all_of(each)

    refused = {"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems"}
    try:
        return all(
            checks(part, False) and not (isinstance(part, dict) and refused & part.keys()) for part in all_of(schema)
        )
    except (NotEvaluated, RecursionError):
        return False


def removal_fits(schema: dict[str, Any] | None) -> bool | None:
    """Whether a claim that removes fits, as far as the schema goes; None is: not evaluated."""
    return True if schema is None or is_within(schema) else None


def fits(schema: dict[str, Any] | None, field: str, value: Any) -> bool | None:
    """Whether a value fits the subschema of its field; None is: not evaluated."""
    found = property_of(schema, field)
    if schema is not None and not is_within(schema):
        return None
    if schema is None or found is None:
        return True
    if value == REDACTED and is_hidden_field(schema, field):
        return True
    if len(canonical(schema)) > 20_000 or not is_known(found, schema):
        return None
    try:
        return Evaluation(schema).apply(found, value)
    except NotEvaluated:
        return None
