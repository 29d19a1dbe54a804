"""Bounding: whatever an agent hands over becomes JSON within its bound, and nothing raises."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import threading
import uuid
from collections import OrderedDict, UserDict, deque, namedtuple
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.runs import values
from woodrat.runs.values import REDACTED, TRUNCATED, UNSERIALISABLE, bounded, is_whole, plain

JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-form.INTEGER_MAX, form.INTEGER_MAX),
        st.floats(allow_nan=False, allow_infinity=False).filter(lambda n: not form.faults(n)),
        st.text().filter(lambda t: not form.faults(t)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(st.text(max_size=5).filter(lambda t: not form.faults(t)), inner, max_size=5),
    ),
    max_leaves=20,
)
ANYTHING = st.recursive(
    st.one_of(
        JSON,
        st.floats(),
        st.integers(),
        st.binary(),
        st.text(),
        st.complex_numbers(),
        st.datetimes(),
        st.decimals(),
        st.uuids(),
        st.fractions(),
        st.functions(),
        st.builds(object),
    ),
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.binary()), inner),
        st.sets(st.one_of(st.integers(), st.text(), st.none())),
    ),
    max_leaves=10,
)


@given(JSON)
def test_json_stays_as_it_is(value: Any) -> None:
    """What canonical form takes is kept as it is, when it fits."""
    assert form.same(bounded(value, 1_000_000), value)
    assert is_whole(bounded(value)) or REDACTED in str(value) or "$" in str(value)


@given(ANYTHING, st.integers(0, 500))
def test_anything_becomes_json_within_its_bound(value: Any, bytes_max: int) -> None:
    """Any value becomes JSON that canonical form takes: itself within the bound, or a mark of known size."""
    kept = bounded(value, bytes_max)
    data = form.encode(kept)
    assert len(data) <= bytes_max or values.is_mark(kept) or not isinstance(kept, str | list | dict)
    assert len(data) <= max(bytes_max, 4_096)


@given(JSON)
def test_a_cut_value_says_what_it_was(value: Any) -> None:
    """A value beyond its bound is replaced by its length, the digest of its canonical form and its beginning."""
    data = form.serialise(value)
    kept = bounded(value, 8)
    if len(data) > 8 and isinstance(value, list | dict) and not values.is_mark(value):
        assert isinstance(kept, dict)
        assert kept == {
            TRUNCATED: {
                "bytes": len(data),
                "digest": hashlib.sha256(data).hexdigest(),
                "preview": data.decode()[: values.PREVIEW_CHARACTERS_MAX],
            }
        }


@given(ANYTHING)
def test_nothing_under_a_hidden_key_is_kept(value: Any) -> None:
    """A key to be hidden shows `[REDACTED]` at any depth, whatever it held."""
    kept = bounded({"open": 1, "secret": value, "deep": [{"secret": value}]}, 1_000_000, {"secret"})
    assert kept == {"open": 1, "secret": REDACTED, "deep": [{"secret": REDACTED}]}


class Colour(Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


@dataclasses.dataclass
class Loan:
    id: int
    ssn: str = "123"


class Model(pydantic.BaseModel):
    id: int
    at: datetime


class Struct(msgspec.Struct):
    id: int


class Text(str):
    __slots__ = ()


class Foreign:
    """A model of another library, whose model_dump takes nothing."""

    def model_dump(self) -> dict[str, int]:
        return {"id": 1}


Pair = namedtuple("Pair", "one two")
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ((1, 2), [1, 2]),
        (deque([1, 2]), [1, 2]),
        ({3, 1, "a"}, [1, 3, "a"]),
        (frozenset({2, 1}), [1, 2]),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (UserDict({"a": 1}), {"a": 1}),
        ({1: "a", 2: "b"}, {"1": "a", "2": "b"}),
        ({None: 1, 2.5: 2, (1, 2): 3}, {"null": 1, "2.5": 2, "(1, 2)": 3}),
        (Loan(1), {"id": 1, "ssn": "123"}),
        (Model(id=1, at=NOON), {"id": 1, "at": "2026-01-05T12:00:00Z"}),
        (Struct(1), {"id": 1}),
        (Foreign(), {"id": 1}),
        (Pair(1, 2), {"one": 1, "two": 2}),
        (Colour.RED, "red"),
        (Number.ONE, 1),
        (Text("a"), "a"),
        (NOON, "2026-01-05T12:00:00+00:00"),
        (date(2026, 1, 5), "2026-01-05"),
        (timedelta(seconds=90), "0:01:30"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.50"), "1.50"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (-0.0, 0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_a_json_form_is_kept_in_it(value: object, kept: object) -> None:
    """Sequences, mappings, records, enums, times and the like are kept as JSON that says the same."""
    found = plain(value)
    assert form.same(found, kept)  # type: ignore[arg-type]
    assert is_whole(found)


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Hostile:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("class")


class Broken(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        raise RuntimeError("items")


def _cyclic() -> Any:
    items: list[Any] = [1]
    items.append({"again": items})
    return items


def _deep() -> Any:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        2**53,
        10**6_000,
        1e20,
        "a\0b",
        "\ud800",
        b"bytes",
        bytearray(b"bytes"),
        memoryview(b"bytes"),
        {1: 1, "1": 2},
        Unshowable(),
        Broken(a=1),
        ValueError("x"),
        Loan,
        len,
        (n for n in [1]),
        threading.Lock(),
        _cyclic(),
        _deep(),
        1j,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_say_is_marked(value: object) -> None:
    """What has no JSON form is marked in its place, with its type and how Python shows it, and never raises."""
    kept = bounded({"value": value})
    assert UNSERIALISABLE in str(kept)
    assert not is_whole(kept)
    form.encode(kept)


def test_an_object_that_refuses_everything_is_marked() -> None:
    """An object that raises whatever is asked of it is marked all the same."""
    assert UNSERIALISABLE in str(bounded([Hostile()]))


def test_a_mark_is_the_same_in_every_process() -> None:
    """Addresses are taken out of what Python shows, so equal arguments are recognised after a restart."""
    one, other = object(), object()
    assert repr(one) != repr(other)
    assert plain(one) == plain(other) == {UNSERIALISABLE: {"type": "object", "repr": "<object object at 0x…>"}}


def test_a_generator_is_not_used_up() -> None:
    """Looking at an iterator takes nothing out of it."""
    items = iter([1, 2])
    bounded({"items": items})
    assert list(items) == [1, 2]


def test_an_object_that_holds_itself_is_kept_up_to_there() -> None:
    """A cycle is marked where it closes."""
    loan = Loan(1)
    loan.ssn = loan  # type: ignore[assignment]
    kept = plain(loan)
    assert isinstance(kept, dict)
    assert kept["id"] == 1
    assert kept["ssn"] == {UNSERIALISABLE: {"type": f"{__name__}.Loan", "repr": "it holds itself"}}


@pytest.mark.parametrize(
    "value",
    [
        "x" * 50_000_000,
        b"x" * 50_000_000,
        ["x" * 1_000] * 50_000,
        [{"a": number, "b": "x" * 20} for number in range(1_000_000)],
        {str(number): number for number in range(1_000_000)},
    ],
    ids=["text", "bytes", "long parts", "many parts", "many keys"],
)
@pytest.mark.timeout(30)
def test_fifty_megabytes_are_bounded(value: object) -> None:
    """A result of 50 MB is replaced by a small mark, in a time that grows with its size at most."""
    kept = bounded(value)
    assert values.is_mark(kept)
    assert len(form.encode(kept)) < 1_000


def test_parts_beyond_the_limit_are_not_walked() -> None:
    """A value of too many parts is marked without a digest, with the beginning of it, hidden keys hidden."""
    value = [{"n": number, "secret": number} for number in range(values.PARTS_MAX + 1)]
    kept = bounded(value, hidden={"secret"})
    assert isinstance(kept, dict)
    cut = kept[TRUNCATED]
    assert isinstance(cut, dict)
    assert set(cut) == {"bytes", "preview"}
    assert str(cut["preview"]).startswith('[{"n":0,"secret":"[REDACTED]"}')


def test_text_is_cut_visibly() -> None:
    """Text where text is asked for is cut at its bound and says how long it was; anything becomes text."""
    assert values.text("short") == "short"
    assert values.text("é" * 10, 5) == "éé… [20 bytes]"
    assert values.text({"a": 1}) == '{"a":1}'
    assert values.text("a\0\ud800") == "a\\x00\\ud800"


def test_errors_are_type_and_message() -> None:
    """An exception is its type, with its module unless built in, and its message; even one that cannot be shown."""

    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert values.error(ValueError("no")) == {"type": "ValueError", "message": "no"}
    assert values.error(msgspec.ValidationError("no"))["type"] == "msgspec.ValidationError"
    assert "Silent" in str(values.error(Silent())["type"])


def test_a_body_that_is_too_long_loses_its_longest_part_first() -> None:
    """Should an entry still be too long, its longest parts are cut until it fits."""
    data = values.fit({"run": "run_x", "short": "a" * 100, "long": "b" * 10_000}, 5_000)
    body = form.decode(data)
    assert body["run"] == "run_x"
    assert body["short"] == "a" * 100
    assert TRUNCATED in body["long"]
