"""Recorded values: a value of the agent's code as bounded JSON, and its shape.

Most results are plain JSON already. Such a value is copied and its shape made in one pass, a step for each object and
list: rows of a table share what was found out about the first one. Everything else is walked by `values`, and its
shape is made by `shape_of`, which is the definition: for plain JSON both give the same.
"""

from __future__ import annotations

from collections.abc import Container
from math import copysign, isfinite
from typing import Any, Final, NamedTuple

import orjson

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.runs import values
from woodrat.runs.shape import PLAIN, SHAPE_BYTES_MAX, Node, order_of, shape_of
from woodrat.runs.values import NOTHING, REDACTED

OBJECTS_MAX: Final = 1_024
"""Most kinds of objects whose common keys are cached."""
OBJECT_CHARACTERS_MAX: Final = 1_024
"""Longest keys of such an object, all together."""

_STILL: Final = frozenset({str, int, bool, type(None)})
_JSON: Final = _STILL | {float, dict, list}
_NUL: Final = b"\\u0000"
_SPELLING_FACTOR: Final = 8  # no number is so much longer in canonical form than orjson spells it


class RecordedValue(NamedTuple):
    """What is recorded of a value."""

    json: Json
    """The value as JSON, or the mark of one that is too long."""
    shape: list[Json] | None
    """What the JSON does not say; none where that alone gives back the same value."""
    problems: tuple[str, ...]
    """Parts that cannot be restored, each with its type and where it is."""


def recorded_value(value: object, bytes_max: int, hidden: Container[str] = NOTHING) -> RecordedValue:
    """Return a value as JSON of at most `bytes_max` canonical bytes without what is hidden, and its shape."""
    kind = type(value)
    if kind is dict or kind is list:
        plain = plain_value(value, bytes_max, hidden)
        if plain is not None:
            return plain
    recorded = values.bounded(value, bytes_max, hidden)
    return RecordedValue(recorded, *shape_of(value, recorded))


def plain_value(value: Any, bytes_max: int, hidden: Container[str] = NOTHING) -> RecordedValue | None:
    """Return what is recorded of a dict or list that is plain JSON within all bounds; none where it is not.

    None says nothing against the value: `values` and `shape_of` take longer and know.
    """
    copier = _Copier(hidden)
    try:
        json, number = (copier.object if type(value) is dict else copier.array)(value, values.DEPTH_MAX)
        data = orjson.dumps(json, option=orjson.OPT_STRICT_INTEGER)
    except Exception:  # another type, a number or text that JSON cannot say, a value that holds itself
        return None
    size = len(data) * _SPELLING_FACTOR if copier.has_odd_floats else len(data)
    if size > bytes_max or copier.size > SHAPE_BYTES_MAX // 8 or _NUL in data:
        return None
    return RecordedValue(json, None if number == PLAIN else [*copier.nodes], ())


class _NotPlain(Exception):
    """The value is not plain JSON, or is beyond a bound."""


class _Copier:
    """One plain value being copied."""

    __slots__ = ("_hidden", "_known", "_parts", "_rows", "has_odd_floats", "nodes", "size")

    def __init__(self, hidden: Container[str]) -> None:
        self.nodes: list[Node] = []
        self.size = 0
        """At most an eighth of how many bytes the nodes take."""
        self.has_odd_floats = False
        """Whether there are floats that orjson and canonical form may spell differently."""
        self._hidden = hidden
        self._known: dict[tuple[Any, ...], int] = {}
        self._rows: dict[_Key, _Row] = {}
        self._parts = 0

    def object(self, value: dict[str, Any], depth: int) -> tuple[dict[str, Any], int]:
        """Return a copy of an object, and the number of its node."""
        made = value.copy()  # first of all: another thread may change the value meanwhile
        self._count(len(made), depth)
        key = (tuple(made), tuple(map(type, made.values())))
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._row(key)
        about, places, hides, number = row
        for name in hides:
            made[name] = REDACTED
        if not places:
            return made, number
        numbers = [PLAIN] * len(made)
        for at, name, kind in places:
            item = made[name]
            if kind is float:
                made[name], numbers[at] = self._float(item)
            elif kind is dict:
                made[name], numbers[at] = self.object(item, depth - 1)
            else:
                made[name], numbers[at] = self.array(item, depth - 1)
        return made, self._numbered(about, numbers)

    def array(self, value: list[Any], depth: int) -> tuple[list[Any], int]:
        """Return a copy of a list, and the number of its node."""
        made = value.copy()
        self._count(len(made), depth)
        kinds = set(map(type, made))
        if kinds <= _STILL:
            return made, PLAIN
        if not kinds <= _JSON:
            raise _NotPlain
        numbers = [PLAIN] * len(made)
        for at, item in enumerate(made):
            kind = type(item)
            if kind is dict:
                made[at], numbers[at] = self.object(item, depth - 1)
            elif kind is list:
                made[at], numbers[at] = self.array(item, depth - 1)
            elif kind is float:
                made[at], numbers[at] = self._float(item)
        return made, self._numbered((), numbers)

    def _count(self, parts: int, depth: int) -> None:
        self._parts += parts
        if depth <= 0 or self._parts > values.PARTS_MAX:
            raise _NotPlain

    def _row(self, key: _Key) -> _Row:
        """Return what objects with these keys and types have in common."""
        common = _commons.get(key)
        if common is None:
            common = _common(key)
        about, places = common
        hides = tuple([name for name in key[0] if name in self._hidden]) if self._hidden else ()
        if hides:
            places = tuple([place for place in places if place[1] not in hides])
        return about, places, hides, PLAIN if places or not about else self._add(about)

    def _float(self, value: float) -> tuple[float, int]:
        """Return a float as canonical form has it, and the number of its node."""
        if value.is_integer():
            if abs(value) > form.INTEGER_MAX:
                raise _NotPlain
            is_negative_zero = not value and copysign(1.0, value) < 0
            return int(value), self._add(_NEGATIVE_ZERO if is_negative_zero else _FLOAT)
        if not 1e-4 <= abs(value) < 1e15:
            if not isfinite(value):
                raise _NotPlain
            self.has_odd_floats = True
        return value, PLAIN

    def _numbered(self, about: tuple[Any, ...], numbers: list[int]) -> int:
        """Return the number of the node of a container, whose members have these."""
        first = numbers[0]
        if numbers.count(first) == len(numbers):
            if first != PLAIN:
                about = (*about, ("parts", first))
        else:
            while numbers[-1] == PLAIN:
                numbers.pop()
            about = (*about, ("parts", tuple(numbers)))
        return self._add(about) if about else PLAIN

    def _add(self, about: tuple[tuple[str, Any], ...]) -> int:
        """Return the number of a node; equal ones are one."""
        number = self._known.get(about)
        if number is None:
            node: Node = {}
            for name, item in about:
                if type(item) is tuple:
                    self.size += len(item)
                    node[name] = [*item]
                else:
                    node[name] = item
            self.nodes.append(node)
            number = self._known[about] = len(self.nodes)
        return number


_FLOAT: Final = (("type", "float"),)
_NEGATIVE_ZERO: Final = (("type", "negative_zero"),)


_Key = tuple[tuple[str, ...], tuple[type, ...]]
"""The keys of an object, and the types of its members."""
_Common = tuple[tuple[Any, ...], tuple[tuple[int, str, type], ...]]
"""What objects have in common: what their node says beside the parts, and the members to be looked at in each."""
_Row = tuple[tuple[Any, ...], tuple[tuple[int, str, type], ...], tuple[str, ...], int]
"""The same in one value, with the keys that are hidden and, where no member has to be looked at, their node."""
_commons: dict[_Key, _Common] = {}


def _common(key: _Key) -> _Common:
    """Return what objects with these keys and types have in common, and remember it."""
    names, kinds = key
    if not _JSON.issuperset(kinds) or any(type(name) is not str for name in names):
        raise _NotPlain
    order = order_of(names)
    places = [
        (at, name, kind)
        for at, (name, kind) in enumerate(zip(names, kinds, strict=True))
        if kind is float or kind is dict or kind is list
    ]
    common = (() if order is None else (("order", order),), tuple(places))
    if sum(map(len, names)) + len(names) <= OBJECT_CHARACTERS_MAX:
        if len(_commons) >= OBJECTS_MAX:
            _commons.clear()
        _commons[key] = common
    return common
