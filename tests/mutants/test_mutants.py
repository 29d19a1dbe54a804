"""Mutants: which changes are drawn, which tests they meet, and what becomes of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.mutants.__main__ import Test as Known
from tests.mutants.__main__ import function_around, meeting
from tests.mutants.draw import ROOMS, draw, mutants_of

SOURCE = Path(__file__).resolve().parents[2] / "src" / "woodrat"
CODE = '''"""Words."""

def f(a, b: int = 1):
    """More words, with a 1 < 2."""
    assert a < b
    if a <= b and not g(a, b):
        raise ValueError(f"{1 + 1}")
    a.x = b + 2
    return True
'''


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "code.py"
    path.write_text(CODE, "utf-8")
    return path


def test_each_place_is_changed_in_one_way(code: Path) -> None:
    """Comparisons, logic, numbers, arguments and statements change; words, assertions and annotations do not."""
    assert [mutant.name.partition(": ")[2] for mutant in mutants_of(code, "code.py")] == [
        "1 -> 2",
        "a <= b and not g(a, b) -> ((a <= b) or (not g(a, b)))",
        "a <= b -> (a < b)",
        "not g(a, b) -> g(a, b)",
        "g(a, b) -> g(b, a)",
        'raise ValueError(f"{1 + 1}") -> pass',
        "a.x = b + 2 -> pass",
        "b + 2 -> (b - 2)",
        "2 -> 3",
        "True -> False",
    ]


def test_a_mutant_is_code_that_differs(code: Path) -> None:
    """Every mutant of a real file can be compiled, and is other code than before."""
    for file in (code, SOURCE / "merge" / "rank.py", SOURCE / "server" / "access.py"):
        source = file.read_bytes()
        for mutant in mutants_of(file, "code.py"):
            changed = ast.parse(mutant.applied(source))
            assert ast.dump(changed) != ast.dump(ast.parse(source)), mutant.name


def test_a_seed_draws_the_same_mutants_from_every_room() -> None:
    """Each room has an equal share; the same seed draws the same, another seed others."""
    one, again, other = (draw(SOURCE, seed, 60) for seed in (1, 1, 2))
    assert one == again != other
    assert [sum(mutant.file.startswith(room) for mutant in one) for room in ROOMS] == [10] * len(ROOMS)


def test_a_mutant_meets_the_tests_that_call_its_function(code: Path) -> None:
    """Cheap files come first, for so many seconds; what is outside of functions meets the tests of its file."""
    known = [
        Known("slow.py::test_f", 9.0, frozenset({("code.py", 3)})),
        Known("quick.py::test_f", 1.0, frozenset({("code.py", 3)})),
        Known("quick.py::test_other", 1.0, frozenset({("code.py", 30)})),
        Known("none.py::test_none", 1.0, frozenset({("other.py", 3)})),
    ]
    head, *inside = (function_around(code.read_text("utf-8"), mutant) for mutant in mutants_of(code, "code.py"))
    assert head is None
    assert set(inside) == {("code.py", 3)}

    def names(function: tuple[str, int] | None, seconds: float) -> list[str]:
        return [test.name for test in meeting(function, "code.py", known, seconds)]

    assert names(inside[0], 60) == ["quick.py::test_f", "slow.py::test_f"]
    assert names(inside[0], 0.5) == ["quick.py::test_f"]
    assert names(None, 60) == ["quick.py::test_f", "quick.py::test_other", "slow.py::test_f"]
    assert names(("code.py", 99), 60) == []
