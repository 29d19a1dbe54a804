"""The oracle's ground floor: canonical bytes, names, value order, marks, and comparing two recorded values.

Written from docs/formats/capsule.md (section 3), canonical-form.md and ids.md alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import rfc8785

REDACTED = "[REDACTED]"
ERASED = "[ERASED]"
LARGEST = 2**53 - 1
HEX = re.compile(r"[0-9a-f]*")
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


def is_hex(value: Any, digits: int) -> bool:
    """Text of so many lower-case hex digits."""
    return isinstance(value, str) and len(value) == digits and HEX.fullmatch(value) is not None


def same(one: Any, two: Any) -> bool:
    """Whether two values have the same canonical bytes."""
    return canonical(one) == canonical(two)


def unbase64(text: Any) -> bytes | None:
    """Return the bytes of base64 with padding, where the text is the one spelling of them."""
    try:
        data = base64.b64decode(text, validate=True)
    except (ValueError, TypeError):
        return None
    return data if base64.b64encode(data).decode() == text else None


def parse(data: bytes, deepest: int) -> Any:
    """Return the value of canonical JSON; ValueError for anything else."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    if depth_of_text(data) > deepest + 1:
        raise ValueError("too deep")
    value = json.loads(data.decode("utf-8"), object_pairs_hook=once)
    if inside(value) > deepest:
        raise ValueError("too deep")
    for part in everything(value):
        for text in [part, *part] if isinstance(part, dict) else [part]:
            if isinstance(text, str) and "\0" in text:
                raise ValueError("U+0000")
        if type(part) is int and abs(part) > LARGEST:
            raise ValueError("an integer too large")
    if canonical(value) != data:
        raise ValueError("not the canonical spelling")
    return value


def inside(value: Any) -> int:
    """Return inside how many arrays and objects the deepest value lies."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return max((1 + inside(member) for member in members), default=0)


def depth_of_text(data: bytes) -> int:
    """Return how many arrays and objects are inside each other, by brackets outside of text."""
    depth = deepest = 0
    inside = escaped = False
    for byte in data:
        if inside:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                inside = False
        elif byte == 0x22:
            inside = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def everything(value: Any) -> Iterator[Any]:
    """Yield a value and all values in it."""
    yield value
    if isinstance(value, dict):
        for member in value.values():
            yield from everything(member)
    elif isinstance(value, list):
        for item in value:
            yield from everything(item)


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


# Marks (section 3)


def is_cut(value: Any) -> bool:
    """An object with the one member `$truncated`."""
    return isinstance(value, dict) and list(value) == ["$truncated"]


def cut_digest(value: dict[str, Any]) -> str | None:
    """Return the digest of a cut value, where it has one."""
    inside = value["$truncated"]
    found = inside.get("digest") if isinstance(inside, dict) else None
    return found if is_hex(found, 64) else None


def is_unserialisable(value: Any) -> bool:
    """An object with the one member `$unserialisable`."""
    return isinstance(value, dict) and list(value) == ["$unserialisable"]


def is_mark(value: Any) -> bool:
    """A cut value, or one that JSON cannot say."""
    return is_cut(value) or is_unserialisable(value)


def occurs(text: str, *values: Any) -> bool:
    """Whether a text is one of the values in these."""
    return any(part == text for value in values for part in everything(value) if isinstance(part, str))


def holds_cut(value: Any) -> bool:
    """Whether a cut value is in this one, or is it."""
    return any(is_cut(part) for part in everything(value))


def lower(text: str) -> str:
    """A-Z and a-z are one, and no other letters."""
    return "".join(chr(ord(letter) + 32) if "A" <= letter <= "Z" else letter for letter in text)


def covered(key: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns is the whole key, where `*` stands for any text."""
    for pattern in patterns:
        expression = ".*".join(re.escape(part) for part in lower(pattern).split("*"))
        if re.fullmatch(expression, lower(key), re.DOTALL):
            return True
    return False


def with_hidden(value: Any, hidden: frozenset[str]) -> Any:
    """Return the value with every member whose key is covered replaced, at any depth."""
    if isinstance(value, dict):
        return {key: REDACTED if covered(key, hidden) else with_hidden(value[key], hidden) for key in value}
    if isinstance(value, list):
        return [with_hidden(item, hidden) for item in value]
    return value


def compare(a: Any, b: Any, keys: Iterable[str], hidden: frozenset[str], again: bool) -> set[str] | None:
    """Return the reasons why two recorded values are alike, none of them needed where they are the same.

    None is: different.
    """
    keys = list(keys)
    if same(a, b):
        return set()
    if again and ERASED in [value for value in (a, b) if isinstance(value, str)]:
        return {"erased"}
    if is_cut(a) and is_cut(b):
        one, two = cut_digest(a), cut_digest(b)
        if one is None or two is None:
            return {"cut"}
        if one == two:
            return set()
        return {"cut"} if hidden else None
    if is_cut(a) or is_cut(b):
        short, whole = (a, b) if is_cut(a) else (b, a)
        known = cut_digest(short)
        if known is None:
            return {"cut"}
        if known in (sha(canonical(whole)), sha(canonical(with_hidden(whole, hidden)))):
            return set()
        return {"cut"} if occurs(REDACTED, whole) or holds_cut(whole) else None
    if REDACTED in [value for value in (a, b) if isinstance(value, str)]:
        return {"hidden"} if any(covered(key, hidden) for key in keys) else None
    if isinstance(a, dict) and isinstance(b, dict) and set(a) == set(b):
        return united(compare(a[key], b[key], [key], hidden, again) for key in a)
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return united(compare(x, y, keys, hidden, again) for x, y in zip(a, b, strict=True))
    return None


def united(found: Iterable[set[str] | None]) -> set[str] | None:
    """One different makes the whole different; otherwise the reasons are united."""
    reasons: set[str] = set()
    for each in found:
        if each is None:
            return None
        reasons |= each
    return reasons
