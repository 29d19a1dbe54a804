"""Redaction: values that never reach the log, selected by their key; a marker shows that there was a value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from woodrat.errors import Fault, Refused, shown

REDACTED: Final = "[REDACTED]"
"""Placeholder of a redacted value."""
PATTERNS_MAX: Final = 1_000
"""Most patterns in one setting."""


class Hidden(frozenset[str]):
    """Keys to redact, as patterns: `*` matches any text, and ASCII case does not count.

    `"user_token" in Hidden(["*_token"])` is true; the set itself holds the patterns.
    """

    _any: re.Pattern[str] | None

    def __new__(cls, patterns: Iterable[str] = ()) -> Hidden:
        """Return the keys that any of these patterns means."""
        made = super().__new__(cls, patterns)
        parts = [".*".join(map(re.escape, pattern.split("*"))) for pattern in made]
        made._any = re.compile("|".join(parts), re.IGNORECASE | re.ASCII | re.DOTALL) if parts else None
        return made

    def __contains__(self, key: object) -> bool:
        return self._any is not None and isinstance(key, str) and self._any.fullmatch(key) is not None

    def __or__(self, other: Collection[Any]) -> Hidden:
        """Return the keys that these or others mean."""
        return Hidden((*self, *other))


NOTHING: Final[frozenset[str]] = frozenset()
"""No key is to be hidden. A plain set, because it is checked for every recorded key."""


def hiding(known: frozenset[str], further: object, outcome: str = "Nothing was recorded.") -> frozenset[str]:
    """Return keys to redact, extended by a setting."""
    if not further:
        return known
    more = hidden(further, outcome)
    return Hidden((*known, *more)) if more else known


def hidden(given: object, outcome: str = "Nothing was opened.") -> frozenset[str]:
    """Return the keys a setting hides: patterns, or one text with commas between them."""
    if given is None:
        return NOTHING
    if isinstance(given, Hidden):
        return given
    items = [item.strip() for item in given.split(",")] if isinstance(given, str) else given
    if not isinstance(items, list | tuple | set | frozenset) or len(items) > PATTERNS_MAX:
        remedy = f"Send at most {PATTERNS_MAX} patterns, such as password and *_token."
        raise Refused([Fault("redact", f"expected patterns of keys, got {shown(given)}", remedy)], outcome)
    wrong = [item for item in items if not isinstance(item, str) or not item.strip("*")]
    if wrong and not isinstance(given, str):
        problem = f"{shown(wrong[0])} is not a pattern of keys"
        raise Refused([Fault("redact", problem, "Name a key; * may match a part of it.")], outcome)
    return Hidden(item for item in items if item and isinstance(item, str)) or NOTHING


def taken_out(value: Any, keys: Collection[str]) -> Any:
    """Return a value without the values under these keys, at any depth; the value itself if there are none."""
    if isinstance(value, Mapping):
        found = {key: REDACTED if key in keys else taken_out(item, keys) for key, item in value.items()}
        return value if all(found[key] is item for key, item in value.items()) else found
    if isinstance(value, list | tuple):
        items = [taken_out(item, keys) for item in value]
        return value if all(map(_is, items, value)) else items
    return value


def _is(one: object, other: object) -> bool:
    return one is other
