"""Order: one total order of all JSON values, as a key to compare by and as bytes to sort by."""

from __future__ import annotations

import struct
from typing import Any, cast

from woodrat.canon.form import Json, serialise
from woodrat.errors import shown


def order_key(value: Json) -> tuple[Any, ...]:
    """Return a key that puts all JSON values into one total order; equal exactly when the canonical bytes are.

    null < false < true < numbers < text by UTF-8 bytes < arrays by their elements, then the shorter < objects by
    canonical bytes. Integers and floats are compared by their exact values.
    """
    kind = type(value)
    if kind is str:
        return (4, value)  # Python compares text by code point, which is the order of UTF-8 bytes
    if kind is int or kind is float:
        return (3, value)  # Python compares int with float exactly, without converting either
    if value is None:
        return (0,)
    if kind is bool:
        return (2,) if value else (1,)
    if kind is list:
        return (5, tuple(map(order_key, cast("list[Json]", value))))
    if kind is dict:
        return (6, serialise(value))
    raise TypeError(f"not a JSON value: {shown(value)}")


_NUMBER = struct.Struct(">d")
_SIGN = 1 << 63
_ALL_BITS = (1 << 64) - 1
_BITS = struct.Struct(">Q")


def order_bytes(value: Json) -> bytes:
    """Return bytes that sort as `order_key` does, and are equal exactly when the canonical bytes are.

    No value's bytes are a prefix of another's. Derived data is sorted by them; they are no format.
    """
    kind = type(value)
    if kind is str:
        # Text contains no NUL, nor does canonical JSON: NUL terminates variable-length parts, and sorts before any
        # continuation.
        return b"\x05%b\0" % cast("str", value).encode()
    if kind is int or kind is float:
        # Integers in range are doubles. With the sign bit flipped, and all bits of negative numbers, they sort like
        # numbers.
        (bits,) = _BITS.unpack(_NUMBER.pack(cast("float", value)))
        return b"\x04" + _BITS.pack(_ALL_BITS - bits if bits & _SIGN else bits | _SIGN)
    if value is None:
        return b"\x01"
    if kind is bool:
        return b"\x03" if value else b"\x02"
    if kind is list:
        return b"\x06%b\0" % b"".join(map(order_bytes, cast("list[Json]", value)))
    if kind is dict:
        return b"\x07%b\0" % serialise(value)
    raise TypeError(f"not a JSON value: {shown(value)}")
