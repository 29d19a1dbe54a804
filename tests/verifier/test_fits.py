"""Whether a value fits: the verifier's small evaluator agrees with the library that the ledger checks claims by."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from woodrat.canon import form
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


@settings(max_examples=150, deadline=None)
@given(SUBSCHEMAS, PLAIN, PLAIN, st.lists(VALUES, min_size=1, max_size=5))
def test_values_fit_as_the_ledger_says(subschema: Any, one: Any, two: Any, values: list[Any]) -> None:
    """Of every subschema of known keywords within the limits, both say the same of every value."""
    document = {"properties": {"field": subschema}, "$defs": {"one": one, "two": two}}
    found = Compiled(document, form.serialise(document))
    assume(found.beyond is None)
    compiled = found.claim("field").validator
    for value in values:
        assert fits(document, "field", value) is compiled.is_valid(value), (subschema, value)


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
