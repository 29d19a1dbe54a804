"""Values of every type that a shape can say, generated, and classes of a program to make them of."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pydantic
from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.runs import values
from woodrat.runs.recorder.restoration import Restored, restored
from woodrat.runs.shape import shape_of


class Colour(Enum):
    RED = "red"
    ONE = 1.0


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Right(Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass(frozen=True)
class Quote:
    price: Any
    currency: Any = "EUR"


@dataclasses.dataclass(slots=True)
class Line:
    text: Any
    amount: float = 1.0


Pair = namedtuple("Pair", "second first")


class Struct(msgspec.Struct, frozen=True):
    zip: Any
    city: Any = 1.0


@attrs.define
class Place:
    zip: Any
    city: Any = None


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    zip: int
    at: datetime
    amount: float = 2.0
    price: Decimal = Decimal("1.50")
    lasted: timedelta = timedelta(days=1, seconds=2)
    inner: Quote | None = None
    raw: bytes = b"x"


class Words(str):
    __slots__ = ()


class Table(dict[str, Any]):
    pass


class Row(list[Any]):
    pass


KEYS = st.text(max_size=4)
SIMPLE = st.one_of(st.none(), st.booleans(), st.integers(-100, 100), st.text(max_size=8))
LEAVES = st.one_of(
    SIMPLE,
    st.integers(),
    st.floats(),
    st.integers(-5, 5).map(float),
    st.sampled_from([-0.0, 0.0, 89.0, 1e15, 1e17, 1e21, 1e22, 2**53, -(2**53) - 1, 10**200]),
    st.complex_numbers(),
    st.binary(max_size=80),
    st.binary(max_size=20).map(bytearray),
    st.text(st.characters(exclude_categories=()), max_size=5),
    st.decimals(),
    st.fractions(),
    st.uuids(),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([None, UTC, ZoneInfo("Europe/Berlin")])),
    st.times(),
    st.timedeltas(),
    st.sampled_from([*Colour, *Level, *Right, Right.READ | Right.WRITE]),
    st.text("ab/.", min_size=1, max_size=6).map(PurePosixPath),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=5).map(Words),
)
HASHABLE = st.one_of(st.integers(), st.text(max_size=5), st.decimals(allow_nan=False), st.binary(max_size=5))
ANY_KEY = st.one_of(
    KEYS, st.integers(), st.booleans(), st.none(), st.floats(), st.dates(), st.uuids(), st.just((1, "a"))
)
MODELS = st.builds(
    Model,
    zip=st.integers(0, 9),
    at=st.datetimes(timezones=st.just(UTC)),
    amount=st.integers(0, 9).map(float),
    inner=st.one_of(st.none(), st.builds(Quote, st.integers())),
    lasted=st.timedeltas(),
)


def _grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
        st.dictionaries(ANY_KEY, inner, max_size=3),
        st.dictionaries(KEYS, inner, max_size=3).map(OrderedDict),
        st.dictionaries(KEYS, inner, max_size=3).map(lambda found: defaultdict(list, found)),
        st.dictionaries(KEYS, inner, max_size=3).map(MappingProxyType),
        st.dictionaries(KEYS, inner, max_size=3).map(Table),
        st.lists(inner, max_size=3).map(Row),
        st.dictionaries(KEYS, st.integers(1, 9), max_size=3).map(Counter),
        st.lists(inner, max_size=3).map(lambda found: deque(found, maxlen=7)),
        st.sets(HASHABLE, max_size=4),
        st.frozensets(HASHABLE, max_size=4),
        st.builds(Quote, inner, inner),
        st.builds(Line, inner, st.integers(0, 5).map(float)),
        st.builds(Pair, inner, inner),
        st.builds(Struct, inner, inner),
        st.builds(Place, inner, inner),
        MODELS,
        st.integers(2, 4).flatmap(lambda count: inner.map(lambda item: [{"b": item, "a": 1}] * count)),
    )


# Level by level, and drawn: Hypothesis would print a strategy of strategies at length.
_LEVELS: list[st.SearchStrategy[Any]] = [LEAVES]


@st.composite
def _of_level(draw: st.DrawFn, depth: int) -> Any:
    return draw(_LEVELS[depth])


for _depth in range(3):
    _LEVELS.append(st.one_of(_of_level(0), _grown(_of_level(_depth))))
ANYTHING = _of_level(3)
PLAIN_JSON = st.recursive(
    st.one_of(SIMPLE, st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=20,
)


def recorded(value: object) -> tuple[Json, Json, tuple[str, ...]]:
    """Return what the log holds of a value: its JSON and its shape, as they are read back; and what has no shape."""
    kept = values.bounded(value, values.RESULT_BYTES_MAX)
    shape, problems = shape_of(value, kept)
    return form.decode(form.serialise(kept)), form.decode(form.serialise(shape)), problems


def again(value: object) -> Restored:
    """Return a value as a replay gets it."""
    kept, shape, problems = recorded(value)
    assert problems == (), problems
    return restored(kept, shape)


def same(one: Any, other: Any) -> bool:
    """Return whether two values cannot be told apart: types, order, spelling, and JSON where there is some."""
    if type(one) is not type(other):
        return False
    if isinstance(one, set | frozenset):  # the order of a set is Python's own, and may differ between two equal sets
        return one == other and sorted(map(repr, one)) == sorted(map(repr, other))
    if isinstance(one, dict | MappingProxyType):
        pairs = zip(one.items(), other.items(), strict=False)
        return len(one) == len(other) and all(same(a, c) and same(b, d) for (a, b), (c, d) in pairs)
    if isinstance(one, list | tuple | deque):
        return len(one) == len(other) and all(map(same, one, other))
    if (names := values.field_names(one)) is not None:
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, pydantic.BaseModel):
        parts = (one.__dict__, one.__pydantic_extra__, one.__pydantic_fields_set__)
        return same(parts, (other.__dict__, other.__pydantic_extra__, other.__pydantic_fields_set__))
    return repr(one) == repr(other) and (_is_nan(one) or one == other)


def _is_nan(value: Any) -> bool:
    if isinstance(value, complex):
        return math.isnan(value.real) or math.isnan(value.imag)
    return value.is_nan() if isinstance(value, Decimal) else bool(value != value)


def dumped(value: object) -> str:
    """Return a value as an agent would put it into a prompt."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return json.dumps(value, default=repr, skipkeys=True)
