"""The ground floor of the third merge: canonical bytes, names, and the order of values.

Written from docs/formats/capsule.md (section 3), canonical-form.md and ids.md alone.
"""

from __future__ import annotations

import base64
import hashlib
import re
from fractions import Fraction
from typing import Any

import rfc8785

REDACTED = "[REDACTED]"
ERASED = "[ERASED]"
LARGEST = 2**53 - 1
REF_TYPE = re.compile(r"[a-z][a-z0-9_]{0,63}")


def canonical(value: Any) -> bytes:
    """Return the one spelling of a value."""
    return rfc8785.dumps(value)


def sha(data: bytes) -> str:
    """Return SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def digest(kind: str, body: bytes) -> bytes:
    """Return the digest of a record (ids.md section 1)."""
    return hashlib.sha256(b"woodrat/" + kind.encode() + b"/0\n" + body).digest()


def name(kind: str, body: bytes) -> str:
    """Return the full name of a record."""
    return kind_prefix(kind) + base64.b32encode(digest(kind, body)).decode().lower().rstrip("=")


def kind_prefix(kind: str) -> str:
    """Return how the names of a kind begin."""
    return {"observation": "obs_", "source": "src_", "schema": "sch_"}[kind]


def is_text(value: Any) -> bool:
    """A JSON string."""
    return isinstance(value, str)


def is_integer(value: Any) -> bool:
    """A number without a fraction from -(2^53 - 1) to 2^53 - 1."""
    return type(value) is int and abs(value) <= LARGEST


def is_whole(value: Any) -> bool:
    """A number without a fraction from 0 to 2^53 - 1."""
    return is_integer(value) and value >= 0


def is_number(value: Any) -> bool:
    """Any JSON number; `true` is none."""
    return type(value) in (int, float)


def same(one: Any, two: Any) -> bool:
    """Whether two values have the same canonical bytes."""
    return canonical(one) == canonical(two)


def rank(value: Any) -> tuple[Any, ...]:
    """Return what orders values as canonical-form.md section 4 says."""
    if value is None or isinstance(value, bool):
        return (0, 0 if value is None else 1 + value)
    if is_number(value):
        return (1, Fraction(value))
    if isinstance(value, str):
        return (2, value.encode())
    if isinstance(value, list):
        return (3, [rank(item) for item in value])
    return (4, canonical(value))
