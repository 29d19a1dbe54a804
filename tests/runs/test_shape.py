"""Shapes: a recorded value comes back as the value that the agent's code had, or what cannot is named."""

from __future__ import annotations

import dataclasses
import sys
from collections import defaultdict
from decimal import Decimal
from types import ModuleType
from typing import Any

import msgspec
import numpy
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runs.shaped import ANYTHING, PLAIN_JSON, again, dumped, recorded, same

from woodrat.canon import form
from woodrat.runs import values
from woodrat.runs.class_families import family_of
from woodrat.runs.recorder.restoration import restored
from woodrat.runs.shape import DATA_BYTES_MAX, SHAPE_BYTES_MAX, has_escapes, shape_fault, shape_of
from woodrat.runs.single_values import from_data, to_data
from woodrat.runs.values import REDACTED

# -- the law ----------------------------------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(ANYTHING)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    """JSON and shape together give the same value: types, order of keys, spelling, `repr` and `json.dumps`."""
    made = again(value)
    assert made.problems == ()
    assert same(value, made.value)
    if "set(" not in repr(value) and "{" not in repr(value):  # the order of a set is Python's own
        assert repr(made.value) == repr(value)
    assert form.same(values.plain(made.value), values.plain(value))


@settings(max_examples=200, deadline=None)
@given(PLAIN_JSON)
def test_json_comes_back_with_its_order_and_floats(value: Any) -> None:
    """What `json.dumps` makes of a restored value is what it made of the value, letter for letter."""
    assert dumped(again(value).value) == dumped(value)


@settings(max_examples=300, deadline=None)
@given(st.one_of(ANYTHING, PLAIN_JSON))
def test_there_is_a_shape_only_where_it_is_needed(value: Any) -> None:
    """A value has no shape exactly where its canonical JSON already reads back as the same value."""
    kept, shape, _ = recorded(value)
    assert (shape is None) == same(value, kept)


@settings(deadline=None)
@given(ANYTHING)
def test_without_types_it_is_json(value: Any) -> None:
    """A function that makes a result from JSON gets JSON: canonically the same, in the order of the value."""
    kept, shape, _ = recorded(value)
    made = restored(kept, shape, typed=False)
    assert made.problems == ()
    assert form.same(values.plain(made.value), kept)  # negative zero is 0


@given(st.binary())
def test_bytes_are_kept_as_text(data: bytes) -> None:
    """Bytes come back from the text that stands for them; what is text in them stays readable."""
    node = to_data(data)
    assert from_data(form.decode(form.encode(node))) == data
    assert to_data(b"\xff\x00 Ada Lovelace 100% %41") == {"escaped": "%FF%00 Ada Lovelace 100% %2541"}


def test_equal_shapes_of_items_are_said_once() -> None:
    """A list of a thousand records of one kind has the shape of one."""
    value = [{"zip": "1", "amount": float(number), "city": None} for number in range(1_000)]
    _, shape, _ = recorded(value)
    assert shape == [{"type": "float"}, {"order": [2, 0, 1], "parts": [0, 1]}, {"parts": 2}]


# -- what cannot be restored ------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Cached:
    text: str

    def __post_init__(self) -> None:
        self.length = len(self.text)


@dataclasses.dataclass
class Deleted:
    text: str

    def __del__(self) -> None:
        """Do something when nobody holds it any more."""


class Posted(msgspec.Struct):
    text: str

    def __post_init__(self) -> None:
        """Run code of the class."""


class Secret(pydantic.BaseModel):
    secret: pydantic.SecretStr
    masked: str = "open"
    raw: bytes = b"0123"
    left_out: int = pydantic.Field(1, exclude=True)

    @pydantic.field_serializer("masked", "raw")
    def mask(self, value: object) -> str:
        return "***"


def local_class() -> Any:
    @dataclasses.dataclass
    class Local:
        text: str = "x"

    return Local()


HOLDING_ITSELF: dict[str, Any] = {}
HOLDING_ITSELF["self"] = HOLDING_ITSELF


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"a": [object()]}, "object at /a/0: it is kept as a text that shows it"),
        (local_class(), "tests.runs.test_shape.local_class.<locals>.Local at the top: its class has no name"),
        (Cached("x"), "tests.runs.test_shape.Cached at the top: it has attributes that are no fields"),
        (Deleted("x"), "tests.runs.test_shape.Deleted at the top: its class cannot be made from values"),
        (Posted("x"), "tests.runs.test_shape.Posted at the top: its class cannot be made from values"),
        (numpy.float64(1.5), "numpy.float64 at the top: its class cannot be made from values"),
        ({"x": b"x" * (DATA_BYTES_MAX + 1)}, f"bytes at /x: more than {DATA_BYTES_MAX} bytes are not kept"),
        ({"n": 10**300}, "int at /n: another value is kept"),
        ({"f": defaultdict(lambda: 1)}, "collections.defaultdict at /f: its default is made by code"),
        ({frozenset({1}): 1}, "frozenset at /frozenset({1}): another value is kept"),
        ([memoryview(b"x")], "memoryview at /0: it is kept as a text that shows it"),
        (HOLDING_ITSELF, "dict at /self: it is kept as a text that shows it"),
    ],
)
def test_what_cannot_be_restored_is_named(value: Any, named: str) -> None:
    """The type and the place of what no shape can say are named."""
    assert named in recorded(value)[2]


def test_what_a_model_hides_is_in_no_shape() -> None:
    """A field that a model does not show, or shows otherwise, is named; its value is nowhere."""
    value = Secret(secret=pydantic.SecretStr("hunter2"), masked="hunter3", raw=b"hunter4", left_out=1)
    kept, shape, problems = recorded(value)
    assert b"hunter" not in form.serialise([kept, shape, list(problems)])
    assert {problem.partition(":")[0] for problem in problems} == {
        "pydantic.types.SecretStr at /secret",
        "str at /masked",
        "bytes at /raw",
        "tests.runs.test_shape.Secret at the top",
    }


def test_a_shape_is_bounded() -> None:
    """A shape longer than its bound is left out, and that is named."""
    value = {f"{number:05}": number for number in range(30_000, 0, -1)}
    kept = values.plain(value)
    shape, problems = shape_of(value, kept)
    assert shape is None
    assert problems[0] == f"dict (the whole value): its shape is longer than {SHAPE_BYTES_MAX} bytes"


def test_a_value_that_changes_meanwhile_is_named() -> None:
    """Where the value is not any more what was recorded, the shape is left out, and nothing raises."""
    value = {"a": [1, (2,)]}
    kept = values.plain(value)
    value["a"].append(3)
    assert shape_of(value, kept).problems == ("list at /a: another value is kept",)


# -- redaction --------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(ANYTHING)
def test_nothing_hidden_is_in_a_shape(value: Any) -> None:
    """The shape of a value with a hidden part is the same whatever the part was."""
    shapes = []
    for part in (value, 1, b"\xff secret"):
        whole = {"open": 1.0, "secret": part, "deep": [{"secret": part, "a": (1,)}]}
        shape, problems = shape_of(whole, values.bounded(whole, values.RESULT_BYTES_MAX, {"secret"}))
        assert problems == ()
        shapes.append(shape)
    assert shapes[0] == shapes[1] == shapes[2]


def test_a_hidden_part_comes_back_as_hidden() -> None:
    """What is around a hidden value is restored; the value is not whole then."""
    whole = {"z": (1,), "secret": b"\xff"}
    kept = values.bounded(whole, 1_000, {"secret"})
    made = restored(form.normal(kept), shape_of(whole, kept).shape)
    assert made.value == {"z": (1,), "secret": REDACTED}
    assert list(made.value) == ["z", "secret"]
    assert made.problems == ()
    assert not made.is_whole


# -- a log that others wrote ------------------------------------------------------------------------------------------

RAN: list[str] = []


class Evil:
    """A class with code everywhere."""

    def __new__(cls, *given: object, **named: object) -> Evil:
        RAN.append("new")
        return object.__new__(cls)

    def __init__(self, *given: object) -> None:
        RAN.append("init")

    def __del__(self) -> None:
        RAN.append("del")


@dataclasses.dataclass
class Setter:
    text: str = "x"

    def __setattr__(self, name: str, value: object) -> None:
        RAN.append("setattr")

    def __post_init__(self) -> None:
        RAN.append("post_init")


class WithProperty:
    text = property(lambda self: 1, lambda self, value: RAN.append("setter"))
    __dataclass_fields__ = Setter.__dataclass_fields__


class ModelWithCode(pydantic.BaseModel):
    text: str = "x"

    def model_post_init(self, context: object) -> None:
        RAN.append("model_post_init")

    @pydantic.field_validator("text")
    @classmethod
    def check(cls, value: str) -> str:
        RAN.append("validator")
        return value


CLASSES = [
    "subprocess:Popen",
    "os:system",
    "builtins:eval",
    "builtins:object",
    "builtins:type",
    "antigravity:fly",
    "tempfile:TemporaryDirectory",
    "tests.runs.test_shape:Evil",
    "tests.runs.test_shape:WithProperty",
    "tests.runs.test_shape:RAN",
    "tests.runs.test_shape:Setter.__init__",
    "",
    ":",
    "os.path:sep",
    1,
    None,
]
FAMILIES = [
    "dataclass",
    "attrs",
    "pydantic",
    "msgspec",
    "named_tuple",
    "enum",
    "dict",
    "list",
    "set",
    "tuple",
    "str",
    "int",
    "float",
]


@pytest.mark.parametrize("name", CLASSES, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_class_that_a_log_names_runs(name: Any, family: str) -> None:
    """A class that is none of those restored, or that is not there, leaves the JSON, and is named; no code runs."""
    RAN.clear()
    assert {"os", "subprocess", "tempfile"} <= sys.modules.keys()  # they are there, and refused all the same
    before = set(sys.modules)
    given: list[Any] = [{"text": "ls"}, ["ls"], "ls", 1]
    for value in given:
        made = restored(value, [{"type": family, "class": name, "member": "text"}])
        assert made.value == value
        assert len(made.problems) == 1
    assert RAN == []
    assert set(sys.modules) == before


def test_to_ask_for_the_family_of_a_class_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that imports its parts when it is asked for them is not asked."""
    assert family_of(pydantic.RootModel[int]) is None
    monkeypatch.delitem(sys.modules, "pydantic.root_model")
    monkeypatch.delitem(vars(pydantic), "RootModel", raising=False)
    assert family_of(ModelWithCode) == "pydantic"
    assert family_of(Setter) == "dataclass"
    assert "pydantic.root_model" not in sys.modules


@pytest.mark.parametrize("path", ["Setter", "ModelWithCode"])
def test_objects_are_made_without_their_code(path: str) -> None:
    """Neither constructors, nor validators, nor `__setattr__` run when an object is restored."""
    RAN.clear()
    family = "dataclass" if path == "Setter" else "pydantic"
    made = restored({"text": "ls"}, [{"type": family, "class": f"tests.runs.test_shape:{path}"}])
    assert made.problems == ()
    assert made.value.text == "ls"
    assert RAN == []


SINGLE = ["decimal", "fraction", "date", "path", "bytes", "literal", "deque", "counter", "int", "float", "default_dict"]
RESTORED = [f"tests.runs.shaped:{name}" for name in ("Quote", "Model", "Pair", "Struct", "Place", "Colour", "Table")]
NODES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.one_of(st.sampled_from([*FAMILIES, *SINGLE]), st.integers()),
        "class": st.sampled_from([*(name for name in CLASSES if isinstance(name, str)), *RESTORED]),
        "order": st.one_of(st.lists(st.integers(-3, 5)), st.text()),
        "parts": st.one_of(st.integers(-3, 9), st.lists(st.integers(-3, 9)), st.text()),
        "keys": st.one_of(st.integers(-3, 9), st.lists(st.integers(-3, 9))),
        "text": st.one_of(st.text(), st.integers()),
        "escaped": st.text("%F0"),
        "member": st.text(),
        "set": st.lists(st.integers(-3, 5)),
        "maxlen": st.integers(-2, 5),
        "factory": st.sampled_from(["list", "eval", "open"]),
        "zone": st.sampled_from(["UTC", "../../etc/passwd", "/etc/passwd"]),
        "fold": st.integers(0, 2),
    },
)
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(max_size=5), inner)),
)


@settings(max_examples=500, deadline=None)
@given(JUNK, st.one_of(JUNK, st.lists(NODES, max_size=6), st.lists(st.one_of(NODES, JUNK), max_size=6)))
def test_no_shape_breaks_a_replay(value: Any, shape: Any) -> None:
    """Whatever stands in place of a shape, something is restored, and it is the JSON or a problem names it."""
    RAN.clear()
    made = restored(value, shape)
    assert isinstance(made.problems, tuple)
    assert len(made.problems) <= 5
    assert RAN == []


def test_a_shape_does_not_hang() -> None:
    """Text that would take for ever to read as a number is refused, and so is a value that is nested without end."""
    for kind, text in [("fraction", "1e999999999"), ("int", "9" * 100_000), ("literal", "(" * 100_000)]:
        made = restored(text, [{"type": kind}])
        assert made.value == text
        assert made.problems
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    made = restored(deep, [{"parts": 1}])
    assert made.problems


def test_a_shape_that_does_not_fit_leaves_that_part() -> None:
    """Only the part whose shape does not fit is left as JSON; the place and the reason are named."""
    value: Any = {"a": "not a number", "b": ["2.5"]}
    shape: Any = [{"type": "decimal"}, {"parts": 1}, {"order": [1, 0], "parts": [2, 1]}]
    made = restored(value, shape)
    assert made.value == {"b": [Decimal("2.5")], "a": "not a number"}
    assert made.problems == ("/a: its shape does not fit (InvalidOperation)",)


def test_classes_that_changed_since_are_named() -> None:
    """A class that has other fields now, or is gone, leaves the JSON, and the problem says so."""
    assert restored({"price": 1}, [{"type": "dataclass", "class": "tests.runs.shaped:Quote"}]).problems == (
        "the top: the fields of Quote are not those that were recorded",
    )
    assert restored("x", [{"type": "enum", "class": "tests.runs.shaped:Colour", "member": "BLUE"}]).problems == (
        "the top: Colour has no member BLUE",
    )
    assert restored({}, [{"type": "dataclass", "class": "tests.gone:Quote"}]).problems == (
        "the top: there is no class tests.gone:Quote in this program",
    )
    assert restored({}, [{"type": "dataclass", "class": "subprocess:Popen"}]).problems == (
        "the top: subprocess:Popen is not a class that can be restored as dataclass",
    )


def test_a_shape_from_elsewhere_is_checked() -> None:
    """What a recorder sends as a shape is a list of nodes within its bound."""
    assert shape_fault([{"order": [1, 0]}]) is None
    assert shape_fault("x") == 'expected a list of nodes, got "x" (text)'
    assert shape_fault([1]) is not None
    assert shape_fault([{"a": float("nan")}]) == "it holds what JSON cannot say"
    assert "longer than" in str(shape_fault([{"text": "x" * SHAPE_BYTES_MAX}]))
    assert has_escapes([{"escaped": "%FF"}])
    assert not has_escapes([{"text": "x"}])


def test_a_module_that_loads_by_itself_is_not_asked() -> None:
    """A module's `__getattr__` does not run for a name from the log."""
    module: Any = ModuleType("tests_lazy_module")
    module.__getattr__ = lambda name: RAN.append(name)
    sys.modules["tests_lazy_module"] = module
    RAN.clear()
    try:
        assert restored({}, [{"type": "dataclass", "class": "tests_lazy_module:Quote"}]).problems
    finally:
        del sys.modules["tests_lazy_module"]
    assert RAN == []
