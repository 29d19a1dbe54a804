"""Record JSON: names as in Python, derived values, type variables, and a schema that describes what is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

import jsonschema_rs
import pytest

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.record_json import IN_PYTHON_ONLY, Record, derived, read, schemas, write
from woodrat.records import dataclass, field

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Side(Record):
    """One side.

    It has more to say below.
    """

    entity: Ref
    """The entity."""
    value: Json = None
    """What it holds, however
    long that is told."""


@dataclass(frozen=True, slots=True)
class Shape(Record):
    """What only others are."""

    name: str
    """What it is called."""


@dataclass(frozen=True, slots=True)
class Round(Shape):
    """A circle."""

    radius: float = 1.0


@dataclass(frozen=True, slots=True)
class Square(Shape):
    """A square."""

    edge: int = 1


@dataclass(frozen=True, slots=True)
class Whole(Record, Generic[T]):
    """All there is."""

    sides: tuple[Side, ...]
    pair: tuple[int, str]
    shape: Shape | None
    items: tuple[T, ...]
    mode: Literal["fast", "slow"] = "fast"
    data: bytes = b""
    named: Mapping[str, Side] = field(default_factory=dict)
    counted: Mapping[int, str] = field(default_factory=dict)
    inner: Whole[T] | None = None
    call: Any = field(default=None, compare=False, metadata=IN_PYTHON_ONLY)

    @derived
    def count(self) -> int:
        """How many sides it has."""
        return len(self.sides)

    @property
    def unseen(self) -> int:
        """What JSON does not show."""
        return 0


ANA = Side(Ref("contact", "Ana"), {"a": [1]})
WHOLE: Whole[Side] = Whole(
    (ANA,),
    (1, "x"),
    Round("o", 2.5),
    (ANA,),
    "slow",
    b"\xff",
    {"a": ANA},
    {3: "c"},
    Whole((), (2, "y"), None, ()),
    call=print,
)
SIDE = {"entity": "contact/Ana", "value": {"a": [1]}}


def test_fields_stand_under_their_names_and_derived_values_beside_them() -> None:
    """A field is written under its name, and a derived property too; what is for Python alone is not."""
    told = WHOLE.to_json()
    assert told == {
        "sides": [SIDE],
        "pair": [1, "x"],
        "shape": {"record": "Round", "name": "o", "radius": 2.5},
        "items": [SIDE],
        "mode": "slow",
        "data": "/w==",
        "named": {"a": SIDE},
        "counted": [[3, "c"]],
        "inner": {
            **{"sides": [], "pair": [2, "y"], "shape": None, "items": [], "mode": "fast", "data": "", "named": {}},
            **{"counted": [], "inner": None, "count": 0},
        },
        "count": 1,
    }


def test_a_record_is_read_back_whole() -> None:
    """Reading gives the record again; what is unknown is ignored, what is missing has its default or is an error."""
    told = write(Whole[Side], WHOLE)
    assert read(Whole[Side], {**told, "later": 1}) == WHOLE
    assert read(Side, {"entity": "contact/Ana"}) == Side(Ref("contact", "Ana"))
    with pytest.raises(TypeError):
        read(Side, {"value": 1})
    with pytest.raises(TypeError, match="not read"):
        read(Whole, told)


def test_the_schema_describes_what_is_written() -> None:
    """What is written fits the schema; a value of another type, and a missing field, do not."""
    (schema,), components = schemas(Whole[Side])
    assert schema == {"$ref": "#/components/schemas/SideWhole"}
    document = {**schema, "components": {"schemas": components}}
    told = write(Whole[Side], WHOLE)
    validator = jsonschema_rs.Draft202012Validator(document)
    validator.validate(told)
    for wrong in (
        {**told, "pair": ["x"]},
        {**told, "shape": {"name": "o"}},
        {**told, "mode": "late"},
        {**told, "items": [{}]},
        {name: value for name, value in told.items() if name != "count"},
    ):
        assert not validator.is_valid(wrong)
    assert components["Side"]["description"] == "One side."
    assert components["Side"]["properties"]["value"] == {"description": "What it holds, however long that is told."}
    count = components["SideWhole"]["properties"]["count"]
    assert count == {"type": "integer", "description": "How many sides it has."}
    assert components["TaggedRound"]["properties"]["name"]["description"] == "What it is called."
