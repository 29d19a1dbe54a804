"""How Python classes become JSON Schemas."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NewType, Optional

import msgspec
import pydantic
import pytest

from woodrat.errors import Refused
from woodrat.state.models import Merge, document_of, type_name
from woodrat.state.schema import Schema, parse_schema
from woodrat.state.schema_keywords import PolicyName, PolicyTraits

SETTINGS: dict[str, Any] = {"identity": [["email"]], "version": 2, "merge": {"tags": "union"}}
UserId = NewType("UserId", str)


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


@dataclasses.dataclass
class Address:
    zip: str
    kind: Literal["home", "work"] = "home"


@dataclasses.dataclass
class Everything:
    text: str
    whole: int
    number: float
    flag: bool
    nothing: None
    anything: Any
    words: list[str]
    bare: list  # type: ignore[type-arg]
    pair: tuple[int, str]
    many: tuple[float, ...]
    sequence: Sequence[int]
    lookup: dict[str, int]
    mapping: Mapping[str, Any]
    maybe: Optional[str]  # noqa: UP045 - both spellings are translated
    either: int | str
    choice: Literal["a", 1, None]
    colour: Colour
    moment: datetime.datetime
    amount: decimal.Decimal | None
    address: Address
    addresses: list[Address]
    user: UserId
    noted: Annotated[str, "a remark"]
    defaulted: int = 3
    made: list[int] = dataclasses.field(default_factory=list)
    shared: ClassVar[int] = 0


@dataclasses.dataclass
class Node:
    name: str
    below: list[Node] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class PlainContact:
    __woodrat__ = SETTINGS
    email: str
    tags: list[str] = dataclasses.field(default_factory=list)
    notes: Annotated[list[str], Merge("append")] = dataclasses.field(default_factory=list)
    city: str | None = None


class ModelContact(pydantic.BaseModel):
    __woodrat__ = SETTINGS
    email: str
    tags: list[str] = []
    notes: Annotated[list[str], Merge("append")] = []
    city: str | None = None


class StructContact(msgspec.Struct):
    __woodrat__ = SETTINGS
    email: str
    tags: list[str] = []
    notes: Annotated[list[str], Merge("append")] = []
    city: str | None = None


class RecursiveModel(pydantic.BaseModel):
    name: str
    notes: Annotated[list[str], Merge("append")] = []
    below: list[RecursiveModel] = []


class RenamedModel(pydantic.BaseModel):
    full_name: Annotated[str, Merge("first")] = pydantic.Field(alias="fullName")


class RenamedStruct(msgspec.Struct, rename="camel"):
    full_name: Annotated[str, Merge("first")]


class UnspeakableModel(pydantic.BaseModel):
    call: Callable[[], int]


@dataclasses.dataclass
class Marked:
    tags: list[str] = dataclasses.field(metadata={"merge": "union", "index": True, "text": True, "unit": "words"})


@dataclasses.dataclass
class Unspeakable:
    good: str
    bad: set[int]
    worse: list[dict[int, complex]]
    inner: list[UnspeakableInner]


@dataclasses.dataclass
class UnspeakableInner:
    odd: bytes


@dataclasses.dataclass
class Unresolvable:
    other: Missing  # type: ignore[name-defined]  # noqa: F821


def parsed(model: object) -> Schema:
    document, type = document_of(model)
    return parse_schema(document, type, policies=lambda name: PolicyTraits(name.name, frozenset({"array", "string"})))


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("Contact", "contact"),
        ("AuditEvent", "audit_event"),
        ("HTTPCall", "http_call"),
        ("OAuth2Token", "o_auth2_token"),
        ("tool_config", "tool_config"),
        ("_Private", "private"),
        ("A", "a"),
    ],
)
def test_a_class_names_its_type(name: str, type: str) -> None:
    """The entity type is the class name in snake case."""
    assert type_name(name) == type


def test_a_json_schema_is_taken_as_it_is() -> None:
    """A dict is a JSON Schema already and names no type."""
    document = {"title": "thing", "properties": {"x": {"type": "string"}}}
    assert document_of(document) == (document, None)


def test_every_annotation_has_its_schema() -> None:
    """Annotations of a dataclass become the subschemas they mean; fields without default are required."""
    document, type = document_of(Everything)
    assert type == document["title"] == "everything"
    assert document["properties"] == {
        "text": {"type": "string"},
        "whole": {"type": "integer"},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "nothing": {"type": "null"},
        "anything": {},
        "words": {"type": "array", "items": {"type": "string"}},
        "bare": {"type": "array"},
        "pair": {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
        "many": {"type": "array", "items": {"type": "number"}},
        "sequence": {"type": "array", "items": {"type": "integer"}},
        "lookup": {"type": "object", "additionalProperties": {"type": "integer"}},
        "mapping": {"type": "object"},
        "maybe": {"type": ["string", "null"]},
        "either": {"type": ["integer", "string"]},
        "choice": {"enum": ["a", 1, None]},
        "colour": {"enum": ["red", 2]},
        "moment": {"type": "string", "format": "date-time"},
        "amount": {"type": ["string", "null"]},
        "address": {"$ref": "#/$defs/Address"},
        "addresses": {"type": "array", "items": {"$ref": "#/$defs/Address"}},
        "user": {"type": "string"},
        "noted": {"type": "string"},
        "defaulted": {"type": "integer"},
        "made": {"type": "array", "items": {"type": "integer"}},
    }
    assert document["required"] == list(document["properties"])[:-2]
    assert document["$defs"] == {
        "Address": {
            "type": "object",
            "properties": {"zip": {"type": "string"}, "kind": {"enum": ["home", "work"]}},
            "required": ["zip"],
        }
    }
    assert parsed(Everything).claim_fault("address", {"zip": 3}) == "zip: expected text, got 3 (number)"


def test_metadata_marks_a_field() -> None:
    """Metadata of a dataclass field sets policy, index and text; other metadata is left alone."""
    schema = parsed(Marked)
    assert schema.policies == {"tags": PolicyName("union")}
    assert schema.indexed == schema.searchable == {"tags"}


@pytest.mark.parametrize("model", [PlainContact, ModelContact, StructContact])
def test_three_kinds_of_classes_say_the_same(model: type) -> None:
    """Settings and markers work alike on dataclasses, Pydantic models and msgspec structs."""
    schema = parsed(model)
    assert schema.type == type_name(model.__name__)
    assert schema.version == 2
    assert [rule.text for rule in schema.identity] == ["email"]
    assert schema.policies == {"tags": PolicyName("union"), "notes": PolicyName("append")}
    assert schema.required == ("email",)
    assert schema.claim_fault("email", 3) == "expected text, got 3 (number)"
    assert schema.claim_fault("city", 3) == "expected text or null, got 3 (number)"


@pytest.mark.parametrize("model", [Node, RecursiveModel])
def test_a_class_that_holds_itself_is_refused(model: type) -> None:
    """A recursive class is refused with the place that leads back and what to write instead."""
    with pytest.raises(Refused, match=r"/\$ref.*leads back to itself") as refused:
        parsed(model)
    assert "Write out the existing levels" in str(refused.value)


@pytest.mark.parametrize("model", [RenamedModel, RenamedStruct])
def test_a_renamed_field_keeps_its_marker(model: type) -> None:
    """A marker follows the name that JSON has for the field."""
    assert parsed(model).policies == {"fullName": PolicyName("first")}


def test_a_json_schema_of_a_recursive_model_works_too() -> None:
    """A dict whose fields hide behind a top-level reference is unfolded."""
    document, _ = document_of(RecursiveModel.model_json_schema())
    assert "$ref" not in document
    assert set(document["properties"]) == {"name", "notes", "below"}


def test_unknown_annotations_are_refused_with_their_fields() -> None:
    """Every annotation without a JSON Schema is named by the path of its field."""
    with pytest.raises(Refused) as refused:
        document_of(Unspeakable)
    assert [fault.path for fault in refused.value.faults] == [
        "Unspeakable/bad",
        "Unspeakable/worse",
        "Unspeakable/inner/UnspeakableInner/odd",
    ]


def test_annotations_that_cannot_be_read_are_refused() -> None:
    """A name that cannot be found is reported, not raised."""
    with pytest.raises(Refused, match="Missing"):
        document_of(Unresolvable)


def test_what_pydantic_cannot_describe_is_refused() -> None:
    """A model without a JSON Schema is refused like any other input."""
    with pytest.raises(Refused):
        document_of(UnspeakableModel)


@pytest.mark.parametrize("model", [3, "contact", None, int, PlainContact("a"), Colour, len])
def test_anything_else_is_refused(model: object) -> None:
    """The refusal names what was given and what is accepted."""
    with pytest.raises(Refused, match="Pass a dataclass, a Pydantic model, a msgspec struct or a JSON Schema"):
        document_of(model)


@pytest.mark.parametrize(
    "settings", [3, {"identify": []}, {"merge": "union"}, {"merge": {"nowhere": "union"}}, {"merge": ["tags"]}]
)
def test_bad_settings_are_refused(settings: object) -> None:
    """`__woodrat__` holds known settings of fields that exist."""
    model = dataclasses.make_dataclass("Thing", [("tags", list[str])], namespace={"__woodrat__": settings})
    with pytest.raises(Refused, match="__woodrat__"):
        document_of(model)


def test_flags_may_be_listed() -> None:
    """Index and text take a list of fields."""
    namespace = {"__woodrat__": {"index": ["name"], "text": ("name",)}}
    schema = parsed(dataclasses.make_dataclass("Thing", [("name", str)], namespace=namespace))
    assert schema.indexed == schema.searchable == {"name"}


def test_no_model_library_is_loaded_without_need() -> None:
    """Neither Pydantic nor msgspec is imported for a dataclass."""
    code = (
        "import dataclasses, sys; from woodrat.state.models import document_of;"
        "document_of(dataclasses.make_dataclass('Thing', [('name', str)]));"
        "print(sorted({'pydantic', 'msgspec'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "[]\n"
