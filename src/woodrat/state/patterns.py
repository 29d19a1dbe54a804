"""Patterns: how long a regular expression is with its repetitions written out, and whether it can search back.

Most patterns are matched in one pass over the text. Those that look around (`(?=…)`, `(?!…)`, `(?<=…)`, `(?<!…)`) or
back (`\\1`) are matched by trying, and may try a text from each of its characters on.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

LENGTH_MAX: Final = 10**18
"""Where counting stops: this long, or longer."""
_PLAIN_ESCAPES: Final = frozenset("dDwWsSbBnrtfv0xuc")
_COUNT: Final = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_GROUP: Final = re.compile(r"\(\?(?::|<[A-Za-z_$][A-Za-z0-9_$]*>|(<?[=!]))")
"""How a group begins: without a number, with a name, or one that looks around."""


class Measure(NamedTuple):
    """What a pattern costs."""

    length: int
    """Characters, classes and escapes in it, each as often as it is repeated by a count."""
    searches: bool
    """Whether it looks around or back, or does anything that is not known to need one pass."""


@lru_cache(maxsize=4_096)
def measure(pattern: str) -> Measure:
    """Return the length of a pattern and whether it searches; one that is not a regular expression gets some answer."""
    searches = False
    outer: list[int] = []
    length = last = at = 0
    while at < len(pattern):
        sign = pattern[at]
        at += 1
        if sign == "(":
            if pattern.startswith("?", at):
                group = _GROUP.match(pattern, at - 1)
                searches = searches or group is None or group[1] is not None
                at = at + 1 if group is None else group.end()
            outer.append(length)
            length = last = 0
            continue
        if sign == ")":
            last = max(length, 1)
            length = (outer.pop() if outer else 0) + last
            continue
        if sign in "*+?":
            # A plus after another quantifier would make it possessive.
            searches = searches or pattern.startswith("+", at)
            continue
        count = _COUNT.match(pattern, at - 1) if sign == "{" else None
        if count is not None:
            times = max(int(number[:20]) for number in (count[1], count[3] or "1"))
            length = min(length + last * (max(times, 1) - 1), LENGTH_MAX)
            last = min(last * max(times, 1), LENGTH_MAX)
            at = count.end()
            searches = searches or pattern.startswith("+", at)
            continue
        if sign == "\\":
            escaped = pattern[at : at + 1]
            searches = searches or (escaped.isalnum() and escaped not in _PLAIN_ESCAPES)
            at += 1
        elif sign == "[":
            at = _class_end(pattern, at)
        length, last = min(length + 1, LENGTH_MAX), 1
    return Measure(min(length + sum(outer), LENGTH_MAX), searches)


def _class_end(pattern: str, at: int) -> int:
    """Return where a class ends that begins before `at`: after the first bracket that nothing escapes."""
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1
