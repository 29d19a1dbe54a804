"""Vectors: whole numbers of one byte, so that a score does not depend on the machine or on the order of adding.

A dot product of whole numbers is exact. Its cosine is one square root and one division, which IEEE 754 rounds the
same way everywhere. `docs/formats/recall.md` is the specification.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from operator import mul
from typing import Any, Final

from woodrat.errors import Fault, Refused, shown

DIMENSION_MAX: Final = 8_192
"""Most components of a vector."""
COMPONENT_MAX: Final = 127
"""Largest component, either side of zero."""
_EXACT = 2**24  # every whole number up to here is one float32


def component_max(dimension: int) -> int:
    """Return how large a component may be, so that no dot product leaves what a float32 holds exactly."""
    return min(COMPONENT_MAX, math.isqrt(_EXACT // dimension))


def pack(values: Sequence[Any], dimension: int) -> bytes:
    """Return a vector as bytes, one signed byte each.

    Whole numbers within range stay as they are. Everything else is scaled, so that the largest component becomes the
    largest allowed, and rounded half to even: an angle changes by far less than two embedders differ.
    """
    if len(values) != dimension:
        raise Refused([_fault(f"{len(values)} components where its dimension is {dimension}")], "Nothing was scored.")
    largest = component_max(dimension)
    if isinstance(values, array) and values.typecode == "b" and largest == COMPONENT_MAX and min(values) >= -largest:
        return values.tobytes()
    if all(type(value) is int and -largest <= value <= largest for value in values):
        return array("b", values).tobytes()
    try:
        floats = [float(value) for value in values]
    except (TypeError, ValueError, OverflowError):
        raise Refused([_fault("a component that is not a number")], "Nothing was scored.") from None
    if not all(map(math.isfinite, floats)):
        raise Refused([_fault("a component that is not finite")], "Nothing was scored.")
    top = max(map(abs, floats))
    if top == 0:
        return bytes(dimension)
    return array("b", [round(value / top * largest) for value in floats]).tobytes()


def _fault(problem: str) -> Fault:
    return Fault("embedder", f"it gave {problem}", "Use one that gives lists of finite numbers of one length.")


def components(vector: bytes) -> array[int]:
    """Return the components of a packed vector."""
    return array("b", vector)


def square(vector: bytes) -> int:
    """Return the square of a vector's length."""
    values = components(vector)
    return sum(map(mul, values, values))


def dimension_faults(dimension: object) -> list[Fault]:
    """Return what is wrong with a dimension."""
    if type(dimension) is int and 1 <= dimension <= DIMENSION_MAX:
        return []
    return [Fault("embedder", f"its dimension is {shown(dimension)}", f"Use one with 1 to {DIMENSION_MAX} components.")]


def as_numpy(vector: bytes) -> Any:
    """Return the components of a packed vector as a numpy array."""
    from numpy import float32, frombuffer, int8

    return frombuffer(vector, int8).astype(float32)
