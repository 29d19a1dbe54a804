"""Whether a value fits: the verifiers' small evaluators agree with the library that the ledger checks claims by."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.state.test_schema_subset import BOMBS
from tests.verifier import plain_fold
from tests.verifier.both import NODE, javascript_fits

from woodrat.canon import form
from woodrat.state import builtin, packs
from woodrat.state.schema_subset import CHECKS_AT_ONE_VALUE_MAX, CHECKS_MAX, Counting
from woodrat.state.validator import Compiled
from woodrat.verifier.woodrat_verify import STEPS_MAX, fits

NUMBERS = st.sampled_from([0, 1, -1, 2, 1.5, -0.5, 1e21, 2**53 - 1, 10])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.sampled_from(["", "a", "ab", "é😀", "[REDACTED]"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
COUNTS = st.integers(0, 3)


def _with(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(TYPES, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
            "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=lambda value: form.serialise(value)),
            "const": VALUES,
            **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), NUMBERS),
            **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), COUNTS),
            **dict.fromkeys(("items", "additionalProperties", "not"), inner),
            "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
            "required": st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
            **dict.fromkeys(("anyOf", "allOf", "oneOf"), several),
            "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"]),
            "title": st.just("ignored"),
            "format": st.just("email"),
        },
    )


LEAVES = st.one_of(st.booleans(), _with(st.booleans()))
SUBSCHEMAS = st.recursive(LEAVES, _with, max_leaves=4)
PLAIN = st.one_of(
    st.booleans(),
    st.fixed_dictionaries(
        {}, optional={"type": TYPES, "minimum": NUMBERS, "maxLength": COUNTS, "enum": st.just([1, "a"])}
    ),
)


Asked = tuple[Any, str, Any]
"""A schema, a field and a value."""


def told(cases: list[Asked]) -> list[bool | None]:
    """Return what the verifier in Python says of each case, which that in JavaScript and the plain fold say too."""
    found = [fits(*case) for case in cases]
    assert [plain_fold.fits(*case) for case in cases] == found
    if NODE is not None:
        differing = [each for each in zip(cases, found, javascript_fits(cases), strict=True) if each[1] is not each[2]]
        assert differing == []
    return found


def is_beyond(document: dict[str, Any]) -> bool:
    """Return whether a ledger lets nothing fit a schema."""
    return Compiled(document, form.serialise(document)).beyond is not None


def test_values_fit_as_the_ledger_says() -> None:
    """Of every subschema of known keywords, all say the same of every value, and nothing of one beyond the limits."""
    cases: list[Asked] = []
    expected: list[bool | None] = []

    @settings(max_examples=150, deadline=None)
    @given(SUBSCHEMAS, PLAIN, PLAIN, st.lists(VALUES, min_size=1, max_size=5))
    def gather(subschema: Any, one: Any, two: Any, values: list[Any]) -> None:
        document = {"properties": {"field": subschema}, "$defs": {"one": one, "two": two}}
        found = Compiled(document, form.serialise(document))
        for value in values:
            cases.append((document, "field", value))
            expected.append(found.claim("field").validator.is_valid(value) if found.beyond is None else None)

    gather()
    wrong = [each for each in zip(cases, told(cases), expected, strict=True) if each[1] is not each[2]]
    assert wrong == []


# The limits of schema.md: what is beyond them takes nothing in a ledger, and is not evaluated here

AT_LIMIT: dict[str, tuple[int, Any]] = {
    "pattern": (81, {"pattern": "a"}),
    "uniqueItems": (81, {"uniqueItems": True}),
    "no unique items": (1, {"uniqueItems": False}),
    "names": (82, {"patternProperties": {"a": True}}),
    "dependentRequired": (3, {"dependentRequired": {"a": ["b"]}}),
    "enum of texts": (1, {"enum": ["a", None, True]}),
    "enum with a number": (4, {"enum": [1, "a", None]}),
    "elements of texts": (2, {"items": {"enum": ["a", "b"], "const": "a"}}),
    "elements of numbers": (153, {"items": {"enum": [1]}}),
    "elements of whole numbers": (44, {"items": {"type": "integer", "enum": [1, 2]}}),
    "elements that are one list": (152, {"contains": {"const": [1]}}),
    "sizes of elements": (82, {"items": {"minimum": 1}}),
    "sizes of whole elements": (42, {"items": {"type": ["integer", "null"], "multipleOf": 2, "maximum": 5}}),
    "fractions": (112, {"additionalProperties": {"multipleOf": 0.5}}),
    "a fraction of whole numbers": (52, {"items": {"type": "integer", "multipleOf": 0.5}}),
    "a size": (1, {"minimum": 0.5}),
    "nested": (5, {"anyOf": [True, {"allOf": [True, True]}]}),
    "if": (4, {"if": True, "then": True, "else": True}),
    "properties": (82, {"properties": {"a": {"pattern": "a"}, "b": {"not": True}}}),
    "elements apart": (82, {"prefixItems": [{"pattern": "a"}, True]}),
    "a diamond": (6, {"$ref": "#/$defs/d"}),
    "elements elsewhere": (83, {"items": {"$ref": "#/$defs/n"}}),
    "not applied": (1, {"contentSchema": {"pattern": "a"}, "$defs": {"x": {"pattern": "a"}}}),
}
"""Subschemas, and how many checks meet at one value by the table of the page."""
DEFINED: dict[str, Any] = {
    "d": {"allOf": [{"$ref": "#/$defs/e"}, {"$ref": "#/$defs/e"}]},
    "e": {"minLength": 1},
    "n": {"minimum": 1},
}
ASKED = (("x", "a"), ("x", "[REDACTED]"), ("undescribed", 1))


def filled(subschema: Any, checks: int) -> dict[str, Any]:
    """Return a schema with one field, and this many checks more than its subschema has."""
    field = {"allOf": [subschema, *[True] * (checks - 2)], "x-woodrat-redact": True}
    return {"properties": {"x": field}, "$defs": DEFINED}


@pytest.mark.parametrize(("checks", "subschema"), AT_LIMIT.values(), ids=AT_LIMIT)
def test_a_schema_at_the_limit_is_counted_as_the_ledger_counts(checks: int, subschema: Any) -> None:
    """With one check more than may meet at one value a schema is not evaluated, not even where it describes nothing."""
    within, over = (filled(subschema, CHECKS_AT_ONE_VALUE_MAX - checks + more) for more in (0, 1))
    assert Counting(within).count(within)[1] == CHECKS_AT_ONE_VALUE_MAX
    assert (is_beyond(within), is_beyond(over)) == (False, True)
    assert told([(within, *asked) for asked in ASKED])[1:] == [True, True]
    assert told([(over, *asked) for asked in ASKED]) == [None] * 3


def test_all_checks_are_counted_as_the_ledger_counts() -> None:
    """The limit on all checks holds with references followed, however short the schema is."""
    shared: dict[str, Any] = {f"f{n}": {"$ref": "#/$defs/d"} for n in range(200)}
    defs = {"d": {"allOf": [True] * 97}}
    within, over = (
        {"properties": {**shared, **{f"g{n}": True for n in range(many)}}, "$defs": defs} for many in (199, 200)
    )
    assert Counting(within).count(within)[0] == CHECKS_MAX
    assert (is_beyond(within), is_beyond(over)) == (False, True)
    assert told([(each, field, 1) for each in (within, over) for field in ("f0", "none")]) == [True, True, None, None]


OUTSIDE: dict[str, dict[str, Any]] = {
    **{
        f"{keyword} {where}": {"properties": {"y": {"type": "string"}}, where: {"x": {"items": {keyword: given}}}}
        for where in ("properties", "$defs")
        for keyword, given in {
            "$dynamicRef": "#n",
            "$dynamicAnchor": "n",
            "$recursiveRef": "#",
            "unevaluatedProperties": False,
            "unevaluatedItems": True,
        }.items()
    },
    "leads back": {"properties": {"x": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"items": {"$ref": "#/$defs/t"}}}},
    "leads back, unused": {"$defs": {"t": {"not": {"$ref": "#/$defs/u"}}, "u": {"items": {"$ref": "#/$defs/t"}}}},
    **BOMBS,
}


@pytest.mark.parametrize("document", OUTSIDE.values(), ids=OUTSIDE)
def test_a_schema_outside_the_subset_is_not_evaluated(document: dict[str, Any]) -> None:
    """Where nothing fits in a ledger, no verifier says that something does."""
    assert is_beyond(document)
    assert told([(document, *asked) for asked in ASKED]) == [None] * 3


def test_ordinary_schemas_are_within_the_limits() -> None:
    """Every type that comes with a ledger is evaluated where it has known keywords, and so is one with patterns."""
    shipped = [builtin.document(type) for type in builtin.TYPES]
    shipped += [packs.document("neotoma", type) for type in packs.facts("neotoma")]
    patterns = {"properties": {f"p{n}": {"pattern": f"^{n}"} for n in range(100)} | {"x": {"type": "string"}}}
    cases: list[Asked] = [(document, "undescribed", 1) for document in shipped]
    assert all(told(cases))
    assert told([(patterns, field, 1) for field in ("x", "p1", "none")]) == [False, None, True]


COSTLY: dict[str, Any] = {
    "pattern": st.just("a"),
    "uniqueItems": st.booleans(),
    "multipleOf": st.sampled_from([2, 0.5]),
    "dependentRequired": st.just({"a": ["b"], "c": []}),
    "unevaluatedItems": st.just(True),
    "type": st.one_of(TYPES, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
    "enum": st.sampled_from([[1], ["a", None], [[1], "a", {}]]),
    "const": st.sampled_from([1, "a", None, [1]]),
    **dict.fromkeys(("minimum", "exclusiveMaximum"), NUMBERS),
    "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two", "#/$defs/three"]),
}


def _costly(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    several = st.builds(lambda items, times: items * times, st.lists(inner, min_size=1, max_size=2), COUNTS)
    one = ("items", "not", "if", "then", "contains", "propertyNames", "additionalProperties")
    applied = {
        **dict.fromkeys(one, inner),
        **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), named),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), several),
    }
    few = st.lists(st.sampled_from(sorted({**COSTLY, **applied})), max_size=3, unique=True)
    return few.flatmap(lambda names: st.fixed_dictionaries({name: {**COSTLY, **applied}[name] for name in names}))


def test_limits_are_counted_as_the_ledger_counts() -> None:
    """Whatever the keywords: a field that no schema describes fits exactly where the ledger lets anything fit."""
    cases: list[Asked] = []
    expected: list[bool | None] = []
    parts = st.recursive(st.booleans(), _costly, max_leaves=8)

    @settings(max_examples=300, deadline=None)
    @given(parts, parts, parts, parts)
    def gather(field: Any, other: Any, one: Any, two: Any) -> None:
        used = {"properties": {"one": {"$ref": "#/$defs/one"}, "two": {"$ref": "#/$defs/two"}}}
        defs = {"one": one, "two": two, "three": {"minimum": 1}}
        document = {"properties": {"x": field, "y": other, "z": used}, "$defs": defs}
        cases.append((document, "undescribed", 1))
        expected.append(None if is_beyond(document) else True)

    gather()
    assert {True, None} == set(expected)
    wrong = [each for each in zip(cases, told(cases), expected, strict=True) if each[1] is not each[2]]
    assert wrong == []


def test_what_is_not_known_is_not_evaluated() -> None:
    """Other keywords, other references and other shapes leave it open; so does a value that takes too long."""
    unknown: list[Any] = [
        {"pattern": "a"},
        {"$ref": "#/properties/x"},
        {"$ref": "#/$defs/none"},
        {"type": "text"},
        {"anyOf": []},
    ]
    for subschema in unknown:
        assert fits({"properties": {"x": {"not": subschema}}, "$defs": {}}, "x", 1) is None
    assert fits({"properties": {}}, "x", 1) is True
    assert fits(None, "x", 1) is True
    loop = {"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert fits(loop, "x", 1) is None
    items = {"properties": {"x": {"items": True}}}
    assert fits(items, "x", [1] * (STEPS_MAX - 1)) is True
    assert fits(items, "x", [1] * STEPS_MAX) is None
    defs: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    assert fits({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, "d40": True}}, "x", 1) is None
    chain: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5_000)}
    assert fits({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**chain, "d5000": True}}, "x", 1) is None
    long: dict[str, Any] = {"properties": {"x": {"type": "integer"}, "y": {"enum": ["a" * 20_000]}}}
    assert fits(long, "x", 1) is None
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(99)}
    assert fits({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**chain, "d99": True}}, "x", 1) is None
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(20)}
    assert fits({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**chain, "d20": True}}, "x", 1) is True
