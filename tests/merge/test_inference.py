"""Inferring: a schema that everything it was made from fits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import woodrat
from woodrat.canon import form
from woodrat.merge import inference
from woodrat.state.schema import SCHEMA_BYTES_MAX
from woodrat.state.schema_keywords import MERGE
from woodrat.testing.clock import FixedClock


def ledger() -> woodrat.Ledger:
    """Return an empty ledger."""
    return woodrat.open(":memory:", clock=FixedClock())


def doc(key: str = "1", **fields: Any) -> dict[str, Any]:
    """Return a record."""
    return {"entity_type": "doc", "id": key, **fields}


def test_types_are_those_seen() -> None:
    """A field takes the types its values had; numbers with a fraction make it a number."""
    one = ledger()
    one.store(
        [doc("1", a=1, b=1, c="x", d=None, e={"k": 1}), doc("2", a=2.5, b=2, c=True, d="t", e={"k": 2, "l": "x"})]
    )
    found = one.schemas.infer("doc")
    assert found == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "doc",
        "type": "object",
        "properties": {
            "a": {"type": "number"},
            "b": {"type": "integer"},
            "c": {"type": ["boolean", "string"]},
            "d": {"type": ["null", "string"]},
            "e": {
                "type": "object",
                "properties": {"k": {"type": "integer"}, "l": {"type": "string"}},
                "required": ["k"],
            },
            "id": {"type": "string"},
        },
        "required": ["a", "b", "c", "d", "e", "id"],
    }
    assert one.schemas.register(found).id is not None


def test_a_field_some_lack_is_optional() -> None:
    """Only what every entity has is required; deleted entities do not count."""
    one = ledger()
    one.store([doc("1", a=1, b=1), doc("2", a=1), doc("3")])
    one.delete("doc/3")
    assert one.schemas.infer("doc")["required"] == ["a", "id"]


def test_arrays_whose_elements_repeat_merge_by_union() -> None:
    """Elements that come again in another claim on the same entity make a set; elsewhere an array is a value."""
    one = ledger()
    one.store(doc(tags=["a", "b"], steps=["x"], pair=[1, 1], mixed=[1]))
    one.store(doc(tags=["b", "c"], steps=["y"], pair=[1, 1], mixed=[1]))
    one.store(doc(mixed="x"))
    one.store(doc("2", steps=["x"]))
    found = one.schemas.infer("doc")["properties"]
    assert {name: MERGE in subschema for name, subschema in found.items()} == {
        "id": False,
        "tags": True,
        "steps": False,
        "pair": False,
        "mixed": False,
    }
    assert found["tags"] == {"type": "array", "items": {"type": "string"}, MERGE: "union"}


def test_withdrawn_claims_are_not_seen() -> None:
    """A retracted claim leaves no type behind; a losing one does, since it must still fit."""
    one = ledger()
    wrong = one.store(doc(a="x")).observations[0]
    one.store(doc(a=1))
    assert one.schemas.infer("doc")["properties"]["a"] == {"type": ["integer", "string"]}
    one.retract(wrong)
    assert one.schemas.infer("doc")["properties"]["a"] == {"type": "integer"}


def test_what_the_schema_in_force_says_is_kept() -> None:
    """Identity, policies and marks of the schema in force stay, whatever the values look like."""
    one = ledger()
    one.schemas.register(
        {
            "title": "doc",
            "x-woodrat-identity": [["no"]],
            "properties": {
                "total": {"x-woodrat-merge": "sum", "x-woodrat-index": True},
                "tags": {"x-woodrat-merge": "union", "x-woodrat-text": True},
            },
        }
    )
    one.store([{"entity_type": "doc", "no": "7", "total": 3, "tags": ["x"]}])
    found = one.schemas.infer("doc")
    assert found["x-woodrat-identity"] == [["no"]]
    assert found["properties"]["total"] == {"type": "integer", "x-woodrat-merge": "sum", "x-woodrat-index": True}
    assert found["properties"]["tags"]["x-woodrat-merge"] == "union"
    assert found["properties"]["tags"]["x-woodrat-text"] is True
    one.schemas.register(found)
    assert one.show("doc/7").fields == {"no": "7", "tags": ["x"], "total": 3}


def test_nothing_stored_is_not_found() -> None:
    """There is nothing to infer from nothing."""
    with pytest.raises(woodrat.NotFound):
        ledger().schemas.infer("doc")
    with pytest.raises(woodrat.Refused):
        ledger().schemas.infer("No")


def test_a_schema_too_long_describes_fewer_fields() -> None:
    """Very many fields of very long names still give a schema that can be registered."""
    one = ledger()
    for part in range(3):
        many = {f"{part}-{number}-" + "é" * 120: {"x": {"y": number}} for number in range(400)}
        one.store({**doc(), **many})
    found = one.schemas.infer("doc")
    assert 0 < len(found["properties"]) <= inference.FIELDS_MAX
    assert len(form.serialise(found)) < SCHEMA_BYTES_MAX
    one.schemas.register(found)


def test_objects_with_very_many_keys_are_mappings() -> None:
    """An object whose keys keep changing is described by its type alone."""
    one = ledger()
    one.store([doc(str(number), scores={f"k{number}": 1}) for number in range(inference.KEYS_MAX + 1)])
    assert one.schemas.infer("doc")["properties"]["scores"] == {"type": "object"}


NAMES = st.sampled_from(["a", "b", "c/d", "e~f", "g%h", "é", "properties", "$ref", "x-woodrat-merge", "type", "\u200b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([0.5, 1e21, 1e300, "", "x", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2),
    max_leaves=6,
)
RECORDS = st.tuples(st.sampled_from("12"), st.dictionaries(NAMES, VALUES, max_size=4), st.integers(0, 3))


@given(st.lists(RECORDS, min_size=1, max_size=8))
def test_everything_stored_fits_what_is_inferred(records: list[tuple[str, dict[str, Any], int]]) -> None:
    """Every snapshot fits the schema, before and after it is registered, and no claim becomes a misfit."""
    one = ledger()
    for key, fields, turn in records:
        report = one.store(doc(key, **fields))
        if turn == 0:
            one.retract(report.observations[0])
        elif turn == 1 and "a" in fields:
            one.correct(f"doc/{key}", {"a": fields["a"]})
    try:
        found = one.schemas.infer("doc")
    except woodrat.NotFound:
        return
    before = one.query().items
    one.schemas.register(found)
    schema = one.schemas.show("doc")
    after = one.query().items
    assert len(before) == len(after)
    for snapshot in (*before, *after):
        assert schema.record_faults(snapshot.fields, "") == []
        assert schema.required_faults(snapshot.fields, "") == []
    assert all(origin.misfits == 0 for snapshot in after for origin in snapshot.blame.values())
    assert one.schemas.infer("doc")["properties"].keys() == found["properties"].keys()
