"""Vectors: whole numbers of one byte, exact scores."""

from __future__ import annotations

import math
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.errors import Refused
from woodrat.recall import vectors

floats = st.floats(allow_nan=False, allow_infinity=False, width=32)


def test_whole_numbers_in_range_stay_as_they_are() -> None:
    """What an embedder gives as whole numbers of one byte is kept as it is."""
    assert vectors.pack([1, -2, 127], 3) == array("b", [1, -2, 127]).tobytes()
    assert vectors.pack(array("b", [1, -2, 127]), 3) == array("b", [1, -2, 127]).tobytes()


@pytest.mark.parametrize(
    ("given", "expected"),
    [([0.5, -0.25, 0.1], [127, -64, 25]), ([200, 100, 0], [127, 64, 0]), ([0.0, 0.0, 0.0], [0, 0, 0])],
)
def test_other_numbers_are_scaled_to_the_range(given: list[float], expected: list[int]) -> None:
    """The largest component becomes the largest allowed, the others in proportion, rounded half to even."""
    assert list(vectors.components(vectors.pack(given, 3))) == expected


@pytest.mark.parametrize(
    "given", [[1.0, math.nan, 0.0], [math.inf, 0.0, 0.0], [1.0, "x", 0.0], [1.0, None, 0.0], [1.0, 2.0], []]
)
def test_what_is_no_vector_is_refused(given: list[Any]) -> None:
    """A vector with a component that is no finite number, or of another length, is refused."""
    with pytest.raises(Refused, match="embedder: it gave"):
        vectors.pack(given, 3)


@pytest.mark.parametrize("dimension", [1, 2, 384, 1_040, 1_041, 3_072, vectors.DIMENSION_MAX])
def test_no_dot_product_leaves_what_a_float32_holds(dimension: int) -> None:
    """Even two vectors of the largest components have a dot product that a float32 holds exactly."""
    largest = vectors.component_max(dimension)
    assert 1 <= largest <= vectors.COMPONENT_MAX
    assert dimension * largest * largest <= 2**24


@given(st.lists(floats, min_size=8, max_size=8).filter(any))
def test_packing_hardly_changes_a_direction(values: list[float]) -> None:
    """A packed vector points where the vector points."""
    top = max(map(abs, values))
    scaled = [value / top for value in values]
    packed = list(vectors.components(vectors.pack(values, 8)))
    product = sum(one * other for one, other in zip(scaled, packed, strict=True))
    length = math.sqrt(sum(one * one for one in scaled) * sum(other * other for other in packed))
    assert product / length > 0.999


@pytest.mark.parametrize("dimension", [0, -1, vectors.DIMENSION_MAX + 1, 3.0, None, True])
def test_a_dimension_out_of_range_is_a_fault(dimension: object) -> None:
    """An embedder whose dimension is not a number in range is at fault."""
    assert vectors.dimension_faults(dimension)
