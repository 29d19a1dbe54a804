"""Dataclasses made late behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from woodrat import records

T = TypeVar("T")


def both(**given: Any) -> tuple[Any, Any]:
    """Return one class twice: made by the standard library, and by `woodrat.records`."""
    made = []
    for library in (dataclasses, records):
        field: Any = library.field

        class Point:
            """A place."""

            kind: ClassVar[str] = "point"
            x: int
            y: int = 0
            tags: list[str] = field(default_factory=list)
            note: str = field(default="", compare=False)
            hidden: bytes = field(default=b"", repr=False)
            late: int = field(default=7, init=False, compare=False)

            def twice(self) -> int:
                return self.x * 2

        decorator: Any = library.dataclass
        made.append(decorator(**given)(Point))
    return made[0], made[1]


WAYS = [
    {"frozen": True, "slots": True},
    {"frozen": True},
    {"slots": True},
    {},
    {"frozen": True, "eq": False},
    {"frozen": True, "slots": True, "eq": False},
]


@pytest.mark.parametrize("given", WAYS, ids=str)
def test_instances_behave_alike(given: dict[str, Any]) -> None:
    """Arguments, defaults, text, equality and hash are those of the standard library."""
    outcomes = []
    for kind in both(**given):
        found: list[Any] = [str(inspect.signature(kind)), kind.__doc__, kind.__match_args__, kind.kind]
        found += [repr(kind(1)), repr(kind(1, 2, ["a"], "n", b"h")), kind(3).twice(), kind(1).late]
        found += [kind(1, hidden=b"x").hidden, kind(1).tags is not kind(1).tags]
        found += [kind(1, 2) == kind(1, 2), kind(1) == kind(2), kind(1, note="a") == kind(1), kind(1) == 1]
        found += [kind(1).__eq__(1), kind.__hash__ is None, hasattr(kind(1), "__dict__")]
        wrong: tuple[Any, ...]
        for wrong in ((), (1, 2, [], "", b"", 9)):
            with pytest.raises(TypeError):
                kind(*wrong)
        with pytest.raises(TypeError):
            kind(1, nothing=2)
        outcomes.append(found)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("given", WAYS, ids=str)
def test_fields_can_be_set_exactly_where_the_standard_library_lets_them(given: dict[str, Any]) -> None:
    """A frozen record cannot be changed; the error is the one everybody catches."""
    for kind in both(**given):
        one = kind(1)
        if given.get("frozen"):
            with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
                one.x = 2
            with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
                del one.x
            assert one.x == 1
        else:
            one.x = 2
            assert one.x == 2


def test_equal_records_have_equal_hashes() -> None:
    """The hash is over the fields that are compared."""

    @records.dataclass(frozen=True, slots=True)
    class Pair:
        a: int
        b: str = records.field(compare=False)

    assert hash(Pair(1, "x")) == hash(Pair(1, "y")) == hash((1,))
    assert {Pair(1, "x"): 1}[Pair(1, "z")] == 1


def test_what_a_class_states_itself_is_left_alone() -> None:
    """Methods that the class defines are kept; `__post_init__` is called."""

    @records.dataclass(frozen=True, slots=True)
    class Own:
        a: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "a", self.a + 1)

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    assert Own(1).a == 2
    assert (Own(1) == 3, hash(Own(1)), repr(Own(1))) == (True, 5, "own")


@records.dataclass(frozen=True, slots=True)
class Base(Generic[T]):
    """What another record begins with."""

    a: T
    b: int = 2


@records.dataclass(frozen=True, slots=True)
class Derived(Base[T]):
    """A record that has more."""

    c: int = 3


class Further(Derived[int]):
    """A plain class on top of a record."""


def test_fields_are_inherited() -> None:
    """The fields of a base come first; each class makes methods of its own."""
    assert Derived(1) == Derived(1, 2, 3) != Derived(1, 2, 4)
    assert repr(Derived("x", c=5)) == "Derived(a='x', b=2, c=5)"
    assert Base(1) != Derived(1)
    assert Base(1) == Base(1, 2)
    extended = Further(1)
    extended.more = 1  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        extended.a = 2  # type: ignore[misc]


def test_records_can_be_copied_and_pickled() -> None:
    """A copy, deep or not, and a pickle are equal to the record."""
    one = Derived([1], 2, 3)
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one


@pytest.mark.parametrize("replace", [dataclasses.replace, records.replace], ids=["standard", "own"])
def test_replace_changes_the_fields_named(replace: Any) -> None:
    """Either `replace` makes a record anew, through `__init__`."""
    _, kind = both(frozen=True, slots=True)
    changed = replace(kind(1, 2), y=3)
    assert (changed.x, changed.y) == (1, 3)
    with pytest.raises(ValueError, match="late"):
        replace(kind(1), late=1)
    with pytest.raises(TypeError):
        replace(kind(1), nothing=1)


def test_the_standard_library_knows_these_classes() -> None:
    """`fields`, `asdict`, `is_dataclass` and inheriting from one work as with any other dataclass."""
    standard, own = both(frozen=True, slots=True)
    assert dataclasses.is_dataclass(own)
    about = [[(f.name, f.init, f.repr, f.compare) for f in dataclasses.fields(kind)] for kind in (standard, own)]
    assert about[0] == about[1]
    one: Any = own
    assert dataclasses.asdict(one(1)) == dataclasses.asdict(standard(1))
    extended = dataclasses.make_dataclass("Extended", [("z", int, 1)], bases=(one,), frozen=True)
    assert extended(1).z == 1
    assert [f.name for f in dataclasses.fields(extended)][:2] == ["x", "y"]


def test_nothing_is_compiled_before_it_is_used() -> None:
    """Making a class neither compiles a method nor imports what the standard library would."""
    code = (
        "import sys, woodrat.records as f\n"
        "class C:\n  __annotations__ = {'a': 'int'}\n"
        "D = f.dataclass(frozen=True, slots=True)(C)\n"
        "assert type(vars(D)['__init__']).__name__ == '_Late'\n"
        "assert D(1).a == 1 and callable(vars(D)['__init__']) and type(vars(D)['__eq__']).__name__ == '_Late'\n"
        "assert 'dataclasses' not in sys.modules and 'inspect' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-I", "-c", code], check=True)


def test_every_record_is_made_late() -> None:
    """No module takes `dataclass` from the standard library, which would compile its methods on import.

    Adapters do where their framework does: it reads their fields, and costs far more to import.
    """
    source = Path(__file__).resolve().parent.parent / "src" / "woodrat"
    files = [file for file in source.rglob("*.py") if file.name != "records.py" and file.parent.name != "adapters"]
    assert [file.name for file in files if "\nfrom dataclasses import" in file.read_text("utf-8")] == []
