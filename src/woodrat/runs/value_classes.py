"""Value classes: the values of one fact, split by what the conditions of rules can tell apart.

All values of a class (a cell) answer every condition alike. Numbers are split at what they are compared with, texts as
well where an order of texts is asked for, and by patterns; further there are the other values that are named, all that
are not, and no value at all. Whether some text fits several patterns is tried by examples, and where none is found for
a combination, `problem` says so.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.runs import pattern
from woodrat.runs.margin import MISSING, NUMBER, OTHER, TEXT, Region
from woodrat.runs.operators import holds
from woodrat.runs.steps import listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from woodrat.canon.form import Json

Truth = tuple["bool | None", ...]
"""What each condition on a fact says; none where it is unknown."""

_ORDERS: Final = frozenset({"lt", "lte", "gt", "gte"})
_EQUALS: Final = frozenset({"eq", "ne"})
_MEMBERS: Final = frozenset({"in", "not_in"})
PATTERNS_MAX: Final = 6
"""How many patterns on one fact are combined with each other."""


class _Cell(NamedTuple):
    """Values that all conditions answer alike."""

    kind: str
    truth: Truth
    point: bool
    """Whether it is one value."""
    value: Json
    """That value."""
    low: Any = None
    """What its values are above; none where there is no such bound."""
    high: Any = None
    """What its values are below; none where there is no such bound."""
    vector: tuple[bool, ...] = ()
    """Of texts, which of the patterns are found in it."""


class Axis:
    """The values of one fact, by what the conditions on it say."""

    def __init__(self, key: str, conditions: Sequence[tuple[str, Json]], values: Mapping[str, Json]) -> None:
        self._key = key
        self._conditions = conditions
        self._missing = key not in values
        self._was = values.get(key)
        self.kind = MISSING if self._missing else _kind(self._was)
        """The kind of the value that the fact had."""
        self.problem: str | None = None
        """Why some values may not have been covered."""
        self.current = self._truth(values)
        """What the conditions said."""
        operands = list(_operands(conditions))
        self._patterns = [*dict.fromkeys(str(operand) for op, operand in conditions if op == "matches")]
        self._has_text_order = any(op in _ORDERS and isinstance(operand, str) for op, operand in conditions)
        numbers = sorted({_plain_number(item) for item in operands if _kind(item) == NUMBER})
        texts = sorted({item for item in operands if isinstance(item, str)})
        self._cells = [*self._numbers(numbers), *self._texts(texts), *self._others(operands)]
        self._cells.append(_Cell(MISSING, self._truth({}), True, None))
        self.classes: list[Truth] = [*dict.fromkeys(cell.truth for cell in self._cells if cell.truth != self.current)]
        """All other things that the conditions can say."""

    def _truth(self, values: Mapping[str, Json]) -> Truth:
        return tuple(holds(values, self._key, op, operand)[0] for op, operand in self._conditions)

    def _of(self, value: Json) -> Truth:
        return self._truth({self._key: value})

    def _numbers(self, points: list[int | float]) -> Iterator[_Cell]:
        low: int | float | None = None
        for high in (*points, None):
            example = _number_between(low, high)
            if example is not None:
                yield _Cell(NUMBER, self._of(example), False, None, low, high)
            if high is not None:
                yield _Cell(NUMBER, self._of(high), True, high)
            low = high

    def _texts(self, points: list[str]) -> Iterator[_Cell]:
        for point in points:
            if not self._has_text_order:
                yield _Cell(TEXT, self._of(point), True, point)
        low: str | None = None
        for high in (*points, None) if self._has_text_order else (None,):
            yield from self._between(low, high, points)
            if high is not None:
                yield _Cell(TEXT, self._of(high), True, high)
            low = high

    def _between(self, low: str | None, high: str | None, points: Collection[str]) -> Iterator[_Cell]:
        """Yield the cells of texts between two others, by the patterns they match."""
        least = _text_after(low, high, points if not self._has_text_order else ())
        if least is None:
            return
        if not self._patterns:
            yield _Cell(TEXT, self._of(least), False, None, low, high)
            return
        vectors: dict[tuple[bool, ...], str] = {}
        for text in (least, *self._examples(low or "")):
            inside = (low is None or text > low) and (high is None or text < high) and text not in points
            if inside:
                vectors.setdefault(self._vector(text), text)
        if len(vectors) < 2 ** len(self._patterns):
            listed = ", ".join(self._patterns)
            self.problem = f"whether a text fits was only tried by examples, for the patterns on {self._key}: {listed}"
        for vector, text in vectors.items():
            yield _Cell(TEXT, self._of(text), False, None, low, high, vector)

    def _vector(self, text: str) -> tuple[bool, ...]:
        return tuple(holds({"": text}, "", "matches", wanted)[0] is True for wanted in self._patterns)

    def _examples(self, prefix: str) -> Iterator[str]:
        """Yield texts that fit some patterns and not others."""
        fitting = [example for wanted in self._patterns[:PATTERNS_MAX] if (example := pattern.read(wanted).example())]
        plain = [self._was] if isinstance(self._was, str) else []
        plain += ["", "\x01", " ", "0", "a", "A", "-", "~", "0a", "zz zz", "\U0010ffff", *fitting]
        plain += [f"{one}{gap}{other}" for one in fitting for other in fitting if one != other for gap in ("", " ")]
        plain += [f"{one}{extra}" for one in fitting for extra in ("\x01", "0", "a", " ")]
        plain += [f"{extra}{one}" for one in fitting for extra in ("\x01", "0", "a", " ")]
        yield from plain
        if prefix:
            yield from (f"{prefix}{text}" for text in plain)

    def _others(self, operands: Iterable[Json]) -> Iterator[_Cell]:
        named = {form.serialise(item): item for item in operands if _kind(item) == OTHER}
        if isinstance(self._was, bool) or any(isinstance(item, bool) for item in named.values()):
            named |= {form.serialise(item): item for item in (True, False)}
        for item in named.values():
            yield _Cell(OTHER, self._of(item), True, item)
        unnamed: Json = None
        while form.serialise(unnamed) in named:
            unnamed = [unnamed]
        yield _Cell(OTHER, self._of(unnamed), False, None)

    # What to call them

    def regions(self, truths: Collection[Truth]) -> tuple[Region, ...]:
        """Return the values for which the conditions say one of these things, the nearest to the fact's value first."""
        chosen = [cell for cell in self._cells if cell.truth in truths]
        found: list[tuple[tuple[int, float], Region]] = []
        for kind in (NUMBER, TEXT, OTHER, MISSING):
            cells = [cell for cell in chosen if cell.kind == kind]
            if cells:
                everything = [cell for cell in self._cells if cell.kind == kind]
                found += ((self._rank(region), region) for region in self._joined(kind, cells, everything, truths))
        return tuple(region for _, region in sorted(found, key=lambda item: item[0]))

    def _rank(self, region: Region) -> tuple[int, float]:
        """Return what regions are sorted by: the same kind first, then the nearest."""
        same = region.kind == self.kind
        if same and isinstance(self._was, bool):
            named = [region.conditions.get("eq"), *listed(region.conditions.get("in"))]
            same = any(isinstance(item, bool) for item in named)
        distance = 0.0
        if same and region.kind == NUMBER:
            bounds = [region.conditions[op] for op in (*_ORDERS, "eq") if op in region.conditions]
            distance = min((abs(float(bound) - float(self._was)) for bound in bounds), default=0.0)  # type: ignore[arg-type]
        return (0 if same else 2 if region.kind == MISSING else 1, distance)

    def _joined(
        self, kind: str, chosen: list[_Cell], everything: list[_Cell], truths: Collection[Truth]
    ) -> Iterator[Region]:
        if kind == MISSING:
            yield Region(MISSING, {})
            return
        rest = [cell for cell in everything if cell not in chosen]
        if all(cell.point for cell in rest):
            # All but a few values.
            yield Region(kind, _none_of([cell.value for cell in rest]))
            if (
                kind == OTHER
                and isinstance(self._was, bool)
                and (not self._was) in (c.value for c in chosen if c.point)
            ):
                yield Region(OTHER, {"eq": not self._was})
            return
        ordered = kind == NUMBER or (kind == TEXT and self._has_text_order)
        if ordered:
            yield from self._stretches(kind, everything, truths)
            return
        points = [cell.value for cell in chosen if cell.point]
        if points:
            yield Region(kind, {"eq": points[0]} if len(points) == 1 else {"in": points})
        for cell in chosen:
            if not cell.point:
                named = [other.value for other in everything if other.point]
                yield self._patterned(kind, _none_of(named), cell)

    def _stretches(self, kind: str, everything: list[_Cell], truths: Collection[Truth]) -> Iterator[Region]:
        """Yield values in order, in as few stretches as there are."""
        # Where patterns split a stretch, it counts as a whole only if all its parts are meant and all were tried.
        split = {(c.low, c.high) for c in everything if not c.point and (c.truth not in truths or self.problem)}
        run: list[_Cell] = []
        for cell in everything:
            meant = cell.truth in truths
            if meant and (cell.point or kind == NUMBER or (cell.low, cell.high) not in split):
                run.append(cell)
                continue
            if run:
                yield Region(kind, _bounds(run))
            run = []
            if meant:
                yield self._patterned(kind, _bounds([cell]), cell)
        if run:
            yield Region(kind, _bounds(run))

    def _patterned(self, kind: str, conditions: dict[str, Json], cell: _Cell) -> Region:
        if not cell.vector:
            return Region(kind, conditions)
        pairs = list(zip(self._patterns, cell.vector, strict=True))
        fits, others = (tuple(p for p, found in pairs if found is wanted) for wanted in (True, False))
        return Region(kind, conditions, fits, others)


def _kind(value: Json) -> str:
    return TEXT if isinstance(value, str) else NUMBER if type(value) in (int, float) else OTHER


def _plain_number(value: Any) -> int | float:
    return int(value) if float(value).is_integer() and abs(value) <= form.INTEGER_MAX else value


def _operands(conditions: Iterable[tuple[str, Json]]) -> Iterator[Json]:
    for op, operand in conditions:
        if op in _ORDERS or op in _EQUALS:
            yield operand
        elif op in _MEMBERS and isinstance(operand, list):
            yield from operand


def _none_of(values: list[Json]) -> dict[str, Json]:
    return {} if not values else {"ne": values[0]} if len(values) == 1 else {"not_in": values}


def _bounds(run: Sequence[_Cell]) -> dict[str, Json]:
    """Return the conditions that hold for a stretch of cells that follow each other, and for nothing else."""
    first, last = run[0], run[-1]
    if len(run) == 1 and first.point:
        return {"eq": first.value}
    found: dict[str, Json] = {}
    if first.point:
        found["gte"] = first.value
    elif first.low is not None:
        found["gt"] = first.low
    if last.point:
        found["lte"] = last.value
    elif last.high is not None:
        found["lt"] = last.high
    return found


def _number_between(low: int | float | None, high: int | float | None) -> int | float | None:
    """Return a number above one and below another; none where there is none."""
    if low is None or high is None:
        bound = high if low is None else low
        if bound is None:
            return 0
        near = bound - 1 if low is None else bound + 1
        if near == bound or abs(near) > form.INTEGER_MAX:
            near = math.nextafter(bound, -math.inf if low is None else math.inf)
        return near if math.isfinite(near) else None
    whole = math.floor(low) + 1
    if low < whole < high and abs(whole) <= form.INTEGER_MAX:
        return whole
    for near in (low / 2 + high / 2, math.nextafter(low, math.inf)):
        if low < near < high:
            return near
    return None


def _text_after(low: str | None, high: str | None, points: Collection[str]) -> str | None:
    """Return a text after one and before another that is none of some; none where there is none."""
    # The first text of all is empty, and the first after another is that with the least character added.
    text = "" if low is None else low + "\x01"
    while text in points:
        text += "\x01"
    return text if high is None or text < high else None
