"""Record JSON: names as in Python, derived values, type variables, and a schema that describes what is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

import jsonschema_rs
import pytest

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.record_json import IN_PYTHON_ONLY, Describe, Hex, Record, derived, object_schema, read, schemas, write
from woodrat.records import dataclass, field, kinds_of

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


@dataclass(frozen=True, slots=True)
class Degrees(Record):
    """A class that is made of fields and has a form of its own."""

    kelvin: float

    def to_json(self) -> dict[str, Any]:
        """Return it as people say it."""
        return {"celsius": self.kelvin - 273}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Degrees:
        """Return what `to_json` wrote."""
        return cls(value["celsius"] + 273)

    @staticmethod
    def json_schema(describe: Describe) -> dict[str, Any]:
        """Return the JSON Schema of what `to_json` writes."""
        return object_schema(describe, "How warm it is.", {"celsius": ("Degrees.", float)})


@dataclass(frozen=True, slots=True)
class Weather(Record):
    """What holds such a class."""

    now: Degrees
    hours: tuple[Degrees, ...]
    digest: Hex
    parts: tuple[Hex, ...] = ()


WEATHER = Weather(Degrees(280), (Degrees(281), Degrees(282)), b"\x00\xff", (b"\x01", b""))


def test_a_class_with_a_form_of_its_own_is_written_and_read_by_it() -> None:
    """A class that has `from_json` is written by its own `to_json` wherever it stands, made of fields or not."""
    told = WEATHER.to_json()
    assert told == {
        "now": {"celsius": 7},
        "hours": [{"celsius": 8}, {"celsius": 9}],
        "digest": "00ff",
        "parts": ["01", ""],
    }
    assert read(Weather, told) == WEATHER
    (schema,), components = schemas(Weather)
    assert components["Degrees"]["properties"] == {"celsius": {"type": "number", "description": "Degrees."}}
    assert components["Weather"]["properties"]["now"] == {"$ref": "#/components/schemas/Degrees"}
    jsonschema_rs.validator_for({**schema, "components": {"schemas": components}}).validate(told)


@dataclass(frozen=True, slots=True)
class Point(Record):
    """A record of plain values."""

    x: int
    tags: tuple[str, ...] = ()
    named: Mapping[str, int] = field(default_factory=dict)

    @derived
    def double(self) -> int:
        """Twice as far."""
        return 2 * self.x


@dataclass(frozen=True, slots=True)
class Tree(Record):
    """A record that holds records of plain values, and of its own class."""

    points: tuple[Point, ...]
    branches: tuple[Tree, ...] = ()


def test_records_of_plain_values_are_written_where_they_stand() -> None:
    """Lists of flat records are written as the records write themselves; what is written shares nothing with them."""
    tags, named = ("a",), {"n": 1}
    tree = Tree((Point(1, tags, named), Point(2)), (Tree((Point(3),)),))
    told = tree.to_json()
    assert told["points"] == [point.to_json() for point in tree.points]
    assert told["points"][0] == {"x": 1, "tags": ["a"], "named": {"n": 1}, "double": 2}
    assert told["branches"] == [{"points": [Point(3).to_json()], "branches": []}]
    told["points"][0]["named"]["n"] = 9
    assert named == {"n": 1}
    assert read(Tree, tree.to_json()) == tree


def test_only_classes_made_of_fields_are_kinds_of_a_record() -> None:
    """A class that merely extends a record, such as what a record was made from, is no kind of it."""

    class Draft(Shape):
        """What a record is made from."""

    assert kinds_of(Shape) == [Round, Square]
    (schema,), components = schemas(Shape)
    assert schema == {"$ref": "#/components/schemas/Shape"}
    assert len(components["Shape"]["oneOf"]) == 2
    assert Draft.__mro__[1] is Shape
