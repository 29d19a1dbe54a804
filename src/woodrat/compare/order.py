"""Order: whether two steps may be taken in either order without it making a difference.

A step depends on another where it was handed an identifier that the other returned first, or where one of them changes
something and both name the same thing, or one changes what the other looked up; where one only looks, plain words such
as a city's name do not count. Looking up twice, or changing two different things, may happen in any order. Choices keep
their order.
"""

from __future__ import annotations

import re
from typing import Final

from woodrat.canon.form import Json
from woodrat.compare.usage import asked_with, came_of, identifies, marks
from woodrat.runs.steps import Decision, Part, Read, ToolCall, Write

_LOOKUPS_TEXT: Final = (
    "get list search find read lookup look fetch check verify validate query show view describe count calculate compute"
    " estimate is has retrieve load think plan see inspect browse compare measure know"
)
_LOOKUPS: Final = frozenset(_LOOKUPS_TEXT.split())
"""First words of the names of tools that change nothing."""


def only_looks(part: Part | Write) -> bool:
    """Return whether a step changes nothing, as far as its kind and its name tell."""
    if isinstance(part, ToolCall):
        words = re.findall(r"[A-Z]?[a-z]+", part.name)
        return bool(words) and words[0].lower() in _LOOKUPS
    return isinstance(part, Read)


def bound_by_effect(part: Part | Write, other: Part | Write) -> bool:
    """Return whether the order of two steps matters for what they change, or for what they choose."""
    if isinstance(part, Decision) or isinstance(other, Decision):
        return True
    if only_looks(part) and only_looks(other):
        return False
    shared = {*marks(_names(part))}.intersection(marks(_names(other)))
    if any(identifies(mark) for mark in shared) or (shared and not only_looks(part) and not only_looks(other)):
        return True
    return _acts_on(part, other) or _acts_on(other, part)


def _acts_on(part: Part | Write, other: Part | Write) -> bool:
    """Return whether a step changes something by an identifier that another, which only looks, returned."""
    if only_looks(part) or not only_looks(other):
        return False
    returned = {*marks(came_of(other))}
    return any(identifies(mark) and mark in returned for mark in marks(asked_with(part)))


def _names(part: Part | Write) -> Json:
    if isinstance(part, Read | Write):
        return part.entity
    return asked_with(part)
