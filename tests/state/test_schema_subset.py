"""The subset of JSON Schema: what is refused by name, what is counted, and what the worst within the limits costs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from woodrat import Refused
from woodrat.canon import form
from woodrat.state.schema import Schema, admit, parse_schema
from woodrat.state.schema_subset import CHECKS_AT_ONE_VALUE_MAX, CHECKS_MAX, SLOW, Counting

WORST = 100
"""How many times as long as reading its bytes the check of the costliest record may take."""


def parse(document: dict[str, Any]) -> Schema:
    """Return the schema a document states of `thing`."""
    return parse_schema(document, "thing", policies=lambda name: None)


def foreign(document: dict[str, Any]) -> Schema:
    """Return the schema that an entry from elsewhere holds."""
    return admit(form.encode({"schema": {"x-woodrat-version": 1, **document}, "type": "thing"}))


def faults(document: dict[str, Any]) -> dict[str, str]:
    """Return the problems of a document that is refused, by path."""
    with pytest.raises(Refused) as refused:
        parse(document)
    assert all(fault.remedy for fault in refused.value.faults)
    assert "Nothing was written." in str(refused.value)
    return {fault.path: fault.problem for fault in refused.value.faults}


def of_x(subschema: Any, **definitions: Any) -> dict[str, Any]:
    """Return a schema with one field."""
    return {"properties": {"x": subschema}, "$defs": definitions}


def chained(levels: int, step: Any) -> dict[str, Any]:
    """Return a schema of definitions, each of which is made from a reference to the next."""
    made = {f"d{n}": step({"$ref": f"#/$defs/d{n + 1}"}) for n in range(levels)}
    return of_x({"$ref": "#/$defs/d0"}, **made, **{f"d{levels}": {"minLength": 1}})


BOMBS: Mapping[str, dict[str, Any]] = {
    **{keyword: chained(40, lambda ref, k=keyword: {k: [ref, ref]}) for keyword in ("allOf", "anyOf", "oneOf")},
    "two properties": chained(40, lambda ref: {"properties": {"a": ref, "b": ref}}),
    "items": chained(40, lambda ref: {"items": {"anyOf": [ref, ref]}}),
    "if": chained(30, lambda ref: {"if": ref, "then": ref, "else": ref}),
    "dependentSchemas": chained(40, lambda ref: {"dependentSchemas": {"a": ref, "b": ref}}),
    "a chain": chained(3_000, lambda ref: ref),
    "nested by 30": of_x({"anyOf": [{"oneOf": [{"allOf": [{"minLength": 1}] * 30}] * 30}] * 4}),
    "many patterns": of_x({"allOf": [{"pattern": f"a{n}b"} for n in range(20)]}),
    "many names": of_x({"patternProperties": {f"^{n}": {} for n in range(20)}}),
    "numbers": of_x({"items": {"enum": [n / 2 for n in range(20)]}}),
    "fractions": of_x({"items": {"allOf": [{"multipleOf": n / 100} for n in range(1, 20)]}}),
    "unique": of_x({"allOf": [{"uniqueItems": True, "minItems": n} for n in range(20)]}),
    "texts and a number": of_x({"items": {"enum": [*(f"v{n}" for n in range(300)), 1], "type": ["string", "integer"]}}),
    "sizes": of_x({"items": {"anyOf": [{"minimum": n + 0.5} for n in range(20)]}}),
    "long enumerations": {
        "$defs": {"n": {"enum": list(range(500))}},
        "properties": {f"f{n}": {"$ref": "#/$defs/n"} for n in range(100)},
    },
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_is_refused_and_harmless(bomb: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema with too many checks is refused; one from elsewhere is held, never compiled, and nothing fits it."""
    said = " ".join(faults(bomb).values())
    assert f"more than {CHECKS_MAX} checks" in said or f"more than {CHECKS_AT_ONE_VALUE_MAX} checks" in said
    schema = foreign(bomb)
    monkeypatch.setattr("woodrat.state.validator.validator", None)
    assert str(schema.beyond).startswith('nothing fits version 1 of schema "thing": ')
    assert schema.claim_fault("x", "a") == schema.claim_fault("undescribed", "a") == schema.beyond
    assert not schema.takes({"x": "a"})
    assert [fault.problem for fault in schema.record_faults({"x": "a"}, "/0")] == [schema.beyond]


def test_everything_outside_the_subset_is_named_at_once() -> None:
    """One refusal lists each keyword, reference and pattern that is not supported, with its place."""
    document = {
        "properties": {
            "a": {"$ref": "#/$defs/tree"},
            "b": {"$dynamicRef": "#node", "unevaluatedItems": False},
            "c": {"pattern": "^(?=a)b"},
            "d": {"pattern": r"(a)\1", "patternProperties": {"(?<!x)y": {}}},
            "e": {"pattern": "[ab]{2000}"},
            "f": {"$ref": "#"},
        },
        "unevaluatedProperties": False,
        "$defs": {"tree": {"items": {"$ref": "#/$defs/tree"}}, "n": {"$dynamicAnchor": "node"}},
    }
    found = faults(document)
    assert found == {
        "/$defs/n/$dynamicAnchor": "$dynamicAnchor is not supported",
        "/$defs/tree/items/$ref": 'the $ref "#/$defs/tree" leads back to itself',
        "/properties/b/$dynamicRef": "$dynamicRef is not supported",
        "/properties/b/unevaluatedItems": "unevaluatedItems is not supported",
        "/properties/c/pattern": 'the pattern "^(?=a)b" looks around or back, which no linear-time engine can match',
        "/properties/d/pattern": 'the pattern "(a)\\1" looks around or back, which no linear-time engine can match',
        "/properties/d/patternProperties/(?<!x)y": (
            'the pattern "(?<!x)y" looks around or back, which no linear-time engine can match'
        ),
        "/properties/e/pattern": 'the pattern "[ab]{2000}" is too large: compiled it takes more than 10000 bytes',
        "/properties/f/$ref": 'the $ref "#" leads back to itself',
        "/unevaluatedProperties": "unevaluatedProperties is not supported",
    }


@pytest.mark.parametrize("reference", ["#/$defs/a%20b", "#here", "#/properties/x/items"])
def test_references_back_are_found_however_they_are_spelled(reference: str) -> None:
    """A reference by a quoted pointer, by an anchor or into a field is followed like any other."""
    loop = {"$anchor": "here", "allOf": [{"$ref": reference}]}
    found = faults({"properties": {"x": {"items": {"$ref": "#/$defs/a%20b"}}}, "$defs": {"a b": loop}})
    assert any("leads back to itself" in problem for problem in found.values())


def test_a_reference_points_at_a_subschema() -> None:
    """What stands under a keyword that nobody knows is no subschema, so nothing hides there."""
    assert "/properties/x/$ref" in faults(
        {"properties": {"x": {"$ref": "#/hidden"}}, "hidden": {"unevaluatedItems": 1}}
    )


LIMIT = CHECKS_AT_ONE_VALUE_MAX
RANDOM = "abbabaaabbbaabab"


@pytest.mark.parametrize(
    ("subschema", "value"),
    [
        ({"items": {"anyOf": [{"const": f"x{n}"} for n in range(LIMIT - 3)]}}, ["a"] * 200_000),
        ({"items": {"allOf": [{"minLength": 0}] * (LIMIT - 3)}}, ["a"] * 200_000),
        ({"uniqueItems": True}, [n / 2 for n in range(100_000)]),
        ({"items": {"uniqueItems": True}}, [[n + 0.5 for n in range(15)]] * 10_000),
        ({"items": {"enum": [f"v{n}" for n in range(5_000)]}}, ["v4999"] * 100_000),
        ({"items": {"type": "integer", "multipleOf": 7}}, [1e300] * 140_000),
        ({"items": {"minimum": 0.5, "maximum": 2}}, [0.75] * 200_000),
        ({"items": {"minimum": 0, "multipleOf": 0.01}}, [123456.78] * 90_000),
        ({"items": {"const": 0.5}}, [0.5] * 200_000),
        ({"patternProperties": {"[ab]c": True, "d[ef]": True}}, {f"k{n}": n for n in range(70_000)}),
        ({"pattern": "a(?:[ab]?){60}c"}, RANDOM * 60_000),
        ({"allOf": [{"contains": {"type": "string"}, "minContains": 0}] * 60}, [1] * 400_000),
    ],
)
def test_the_worst_within_the_limits_is_checked_fast(subschema: Any, value: Any) -> None:
    """No check of a record of the largest size takes longer than a multiple of reading its bytes."""
    schema = parse(of_x(subschema))
    record = {"x": value}
    body = form.encode(record)
    schema.takes({"x": None})  # compiled
    start = time.process_time()
    form.parse(body)
    read = time.process_time() - start
    start = time.process_time()
    fits = schema.takes(record)
    if not fits:
        assert schema.record_faults(record, "")
        assert schema.claim_fault("x", value)
    assert time.process_time() - start <= WORST * max(read, 0.01), (read, time.process_time() - start)


# The page, read naively: everything is followed each time it is met, and nothing is remembered


def naive(schema: Any, document: Any) -> tuple[int, int]:
    """Return the checks of a subschema in all and at one value, outside of elements."""
    if not isinstance(schema, dict):
        return 1, 1
    own = 1 + SLOW * ("pattern" in schema) + SLOW * (schema.get("uniqueItems") is True)
    beside = [*schema.get("allOf", ()), *schema.get("anyOf", ())] + [schema[k] for k in ("not", "items") if k in schema]
    if "$ref" in schema:
        beside.append(document["$defs"][schema["$ref"].rpartition("/")[2]])
    together = [naive(each, document) for each in beside]
    apart = [naive(each, document) for each in schema.get("properties", {}).values()]
    most = own + sum(each[1] for each in together) + max((each[1] for each in apart), default=0)
    return own + sum(each[0] for each in together + apart), most


def _with(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {},
        optional={
            "allOf": st.lists(inner, max_size=3),
            "anyOf": st.lists(inner, max_size=3),
            "not": inner,
            "items": inner,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "pattern": st.just("a"),
            "uniqueItems": st.booleans(),
        },
    )


PARTS = st.recursive(st.booleans(), _with, max_leaves=5)


@settings(deadline=None)
@given(st.lists(PARTS, min_size=1, max_size=4), PARTS)
def test_checks_are_counted_as_the_page_says(parts: list[Any], field: Any) -> None:
    """Counting each subschema once gives what following every reference gives."""
    steps = [{"allOf": [part, {"$ref": f"#/$defs/d{n + 1}"}] * 2} for n, part in enumerate(parts)]
    named = {f"d{n}": each for n, each in enumerate(steps)} | {f"d{len(parts)}": True}
    document = {"$defs": named, "properties": {"x": {"$ref": "#/$defs/d0"}, "y": field}}
    total, most = naive(document, document)
    counted = Counting(document).count(document)
    assert counted == (total, most) or (min(counted[1], most) > CHECKS_AT_ONE_VALUE_MAX)
