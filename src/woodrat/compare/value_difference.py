"""Value difference: what differs between two JSON values, part by part, each with its path.

Parts that were renamed, moved, reordered or given another type are recognised as such, at any depth. Text that holds a
JSON object or array is looked into, since many tools return their result as text. The cost is about that of reading
both values once; only lists that differ in the middle are aligned, up to a named length.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from woodrat.canon.form import Json
from woodrat.record_json import Record
from woodrat.records import dataclass

CHANGED, ADDED, REMOVED = "changed", "added", "removed"
RENAMED, MOVED, REORDERED, RETYPED = "renamed", "moved", "reordered", "retyped"

ALIGNED_MAX: Final = 25_000_000
"""How many pairs of items of two lists are looked at to align them; longer ones are compared place by place."""
SIMILAR_NAMES: Final = 0.6
"""How similar two names must be for a value that changed, or says little, to count as renamed (0 to 1)."""
SIMILAR_PARTS: Final = 0.5
"""How much two objects under different names must share to be one that was renamed (0 to 1)."""
RIVALS_MAX: Final = 64
"""How many members without a partner are compared by similarity; beyond that only equal values are renamed."""
DEPTH_MAX: Final = 100
"""How deep values are looked into; below it they are compared as a whole."""
_PLAIN_NAME: Final = re.compile(r"[^\s.\[\]\"]+")
_IDENTITIES: Final = ("id", "key", "name", "code", "sku", "uuid", "title", "email")
"""Members that tell the items of a list apart, best first; any member that ends in `_id` counts like `id`."""


@dataclass(frozen=True, slots=True)
class Difference(Record):
    """One part in which two values differ."""

    kind: str
    """`changed`, `added`, `removed`, `renamed`, `moved`, `reordered` or `retyped`."""
    path: str | None
    """Where it stands in the first value, such as `address.state` or `items[2]`; empty for all of it, none if added."""
    other_path: str | None
    """Where it stands in the second value; none if removed."""
    first: Json
    """What the first value has there."""
    second: Json
    """What the second value has there."""


def differences(first: Json, second: Json) -> tuple[Difference, ...]:
    """Return in what two values differ, in the order of the first value; none where they are the same."""
    if type(first) is type(second) and first == second and not isinstance(first, list | dict | bool):
        return ()
    found = _Walk().run(first, second)
    return tuple(found)


def opened(value: Json) -> Json:
    """Return what a text holds where that is a JSON object or array; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        held = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return held if isinstance(held, dict | list) else value


def joined(path: str, name: str | int) -> str:
    """Return the path of a member or an item."""
    if isinstance(name, int):
        return f"{path}[{name}]"
    if not _PLAIN_NAME.fullmatch(name):
        return f"{path}[{json.dumps(name, ensure_ascii=False)}]"
    return f"{path}.{name}" if path else name


class _Walk:
    """One comparison of two values."""

    def __init__(self) -> None:
        self._marks: dict[int, int] = {}
        self._opened: list[Json] = []
        """What texts hold; kept so that nothing else takes its place in memory while it is looked at by identity."""

    def run(self, first: Json, second: Json) -> list[Difference]:
        found = list(self._compare(first, second, "", "", 0))
        return self._moved(found)

    # Equal parts

    def mark(self, value: Json) -> int:
        """Return a number that equal values share, as canonical JSON has it: 1 is 1.0 and not true."""
        kind = type(value)
        if kind is str:
            return hash(value)
        if kind is bool or value is None:
            return hash(("fixed", value))
        if kind is not dict and kind is not list:
            return hash(("number", value))
        known = self._marks.get(id(value))
        if known is None:
            if kind is dict:
                known = hash(frozenset((name, self.mark(item)) for name, item in value.items()))  # type: ignore[union-attr]
            else:
                known = hash(("list", *map(self.mark, value)))  # type: ignore[arg-type]
            self._marks[id(value)] = known
        return known

    def same(self, first: Json, second: Json) -> bool:
        return self.mark(first) == self.mark(second)

    def open(self, value: Json) -> Json:
        held = opened(value)
        if held is not value:
            self._opened.append(held)
        return held

    # The walk

    def _compare(self, first: Json, second: Json, path: str, other: str, depth: int) -> Iterator[Difference]:
        if self.same(first, second):
            return
        if isinstance(first, str) or isinstance(second, str):
            one, two = self.open(first), self.open(second)
            if type(one) is type(two) and isinstance(one, dict | list):
                if not self.same(one, two):
                    yield from self._compare(one, two, path, other, depth + 1)
                    return
                yield Difference(CHANGED, path, other, first, second)  # the same data, spelled otherwise
                return
        if depth < DEPTH_MAX and isinstance(first, dict) and isinstance(second, dict):
            yield from self._objects(first, second, path, other, depth)
        elif depth < DEPTH_MAX and isinstance(first, list) and isinstance(second, list):
            yield from self._lists(first, second, path, other, depth)
        else:
            yield Difference(RETYPED if retyped(first, second) else CHANGED, path, other, first, second)

    def _objects(
        self, first: dict[str, Json], second: dict[str, Json], path: str, other: str, depth: int
    ) -> Iterator[Difference]:
        gone = [name for name in first if name not in second]
        come = [name for name in second if name not in first]
        renamed = self._renamed(first, second, gone, come)
        taken = set(renamed.values())
        for name, value in first.items():
            here = joined(path, name)
            if name in second:
                yield from self._compare(value, second[name], here, joined(other, name), depth + 1)
            elif name in renamed:
                there, beside = joined(other, renamed[name]), second[renamed[name]]
                yield Difference(RENAMED, here, there, value, beside)
                if isinstance(value, dict | list) and not self.same(value, beside):
                    yield from self._compare(value, beside, here, there, depth + 1)
            else:
                yield Difference(REMOVED, here, None, value, None)
        for name in come:
            if name not in taken:
                yield Difference(ADDED, None, joined(other, name), None, second[name])

    def _renamed(
        self, first: Mapping[str, Json], second: Mapping[str, Json], gone: list[str], come: list[str]
    ) -> dict[str, str]:
        """Return which members of two objects are one under another name."""
        if not gone or not come:
            return {}
        found: dict[str, str] = {}
        before, after = self._by_mark(first, gone), self._by_mark(second, come)
        for mark, names in before.items():
            others = after.get(mark, [])
            if len(names) == len(others) == 1 and (says_much(first[names[0]]) or len(gone) == len(come) == 1):
                found[names[0]] = others[0]
            elif others:
                found.update(_paired(names, others, alike))
        gone = [name for name in gone if name not in found]
        come = [name for name in come if name not in set(found.values())]
        if len(gone) > RIVALS_MAX or len(come) > RIVALS_MAX:
            return found

        def likeness(name: str, new: str) -> float:
            one, two = first[name], second[new]
            if type(one) is not type(two) and not retyped(one, two):
                return 0.0
            if isinstance(one, dict | list):
                shared = self._shared(one, two)
                return shared if shared >= SIMILAR_PARTS else 0.0
            return alike(name, new)

        found.update(_paired(gone, come, likeness))
        return found

    def _by_mark(self, value: Mapping[str, Json], names: Sequence[str]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for name in names:
            found.setdefault(self.mark(value[name]), []).append(name)
        return found

    def _shared(self, first: Json, second: Json) -> float:
        """Return how much of two values is the same, from 0 to 1."""
        one, two = Counter(self._leaves(first)), Counter(self._leaves(second))
        total = max(sum(one.values()), sum(two.values()))
        return sum((one & two).values()) / total if total else 0.0

    def _leaves(self, value: Json) -> Iterator[Hashable]:
        todo: list[tuple[str | None, Json]] = [(None, value)]
        while todo:
            name, item = todo.pop()
            if isinstance(item, dict):
                todo.extend(item.items())
            elif isinstance(item, list):
                todo.extend((name, inner) for inner in item)
            else:
                yield name, self.mark(item)

    def _lists(self, first: list[Json], second: list[Json], path: str, other: str, depth: int) -> Iterator[Difference]:
        marks = [self.mark(item) for item in first], [self.mark(item) for item in second]
        if len(first) == len(second) and Counter(marks[0]) == Counter(marks[1]):
            yield Difference(REORDERED, path, other, first, second)
            return
        for i, j in self._side_by_side(first, second, marks):
            if i is None:
                assert j is not None
                yield Difference(ADDED, None, joined(other, j), None, second[j])
            elif j is None:
                yield Difference(REMOVED, joined(path, i), None, first[i], None)
            else:
                yield from self._compare(first[i], second[j], joined(path, i), joined(other, j), depth + 1)

    def _side_by_side(
        self, first: list[Json], second: list[Json], marks: tuple[list[int], list[int]]
    ) -> list[tuple[int | None, int | None]]:
        """Return the items of two lists side by side: equal ones, then those of one identity, then by their order."""
        identities = _identities(first, second)
        if identities is not None:
            places = {mark: j for j, mark in enumerate(identities[1])}
            both = [(i, places.get(mark)) for i, mark in enumerate(identities[0])]
            known = set(identities[0])
            return [*both, *((None, j) for j, mark in enumerate(identities[1]) if mark not in known)]
        start, end = 0, 0
        shorter = min(len(first), len(second))
        while start < shorter and marks[0][start] == marks[1][start]:
            start += 1
        while end < shorter - start and marks[0][-1 - end] == marks[1][-1 - end]:
            end += 1
        one, two = len(first) - end, len(second) - end
        if (one - start) * (two - start) > ALIGNED_MAX:
            pairs: list[tuple[int | None, int | None]] = [(i, i) for i in range(start, min(one, two))]
            pairs += [(i, None) for i in range(min(one, two), one)]
            return pairs + [(None, j) for j in range(min(one, two), two)]
        found: list[tuple[int | None, int | None]] = []
        gap: tuple[list[int], list[int]] = ([], [])

        def close() -> None:
            found.extend(self._gap(first, second, *gap))
            gap[0].clear()
            gap[1].clear()

        for i, j in align(marks[0][start:one], marks[1][start:two]):
            if i is not None and j is not None:
                close()
            elif i is not None:
                gap[0].append(start + i)
            elif j is not None:
                gap[1].append(start + j)
        close()
        return found

    def _gap(
        self, first: list[Json], second: list[Json], one: list[int], two: list[int]
    ) -> list[tuple[int | None, int | None]]:
        """Return the items between two equal ones side by side; objects that share more stand beside each other."""
        if len(one) == len(two) or not (0 < len(one) <= RIVALS_MAX and 0 < len(two) <= RIVALS_MAX):
            count = min(len(one), len(two))
            rest: list[tuple[int | None, int | None]] = [(i, None) for i in one[count:]]
            return [*zip(one, two, strict=False), *rest, *((None, j) for j in two[count:])]
        likeness = {
            (str(i), str(j)): self._shared(first[i], second[j])
            for i in one
            for j in two
            if type(first[i]) is type(second[j])
        }
        pairs = _paired(list(map(str, one)), list(map(str, two)), lambda i, j: likeness.get((i, j), 0.0))
        taken = set(pairs.values())
        both = [(i, int(pairs[str(i)]) if str(i) in pairs else None) for i in one]
        return [*both, *((None, j) for j in two if str(j) not in taken)]

    # What went in one place and came in another

    def _moved(self, found: list[Difference]) -> list[Difference]:
        gone = [item for item in found if item.kind == REMOVED]
        come = [item for item in found if item.kind == ADDED]
        if not gone or not come:
            return found
        places: dict[int, list[tuple[int, str, Json]]] = {}
        leaves: dict[int, int] = {}
        for number, item in enumerate(come):
            assert item.other_path is not None
            for path, value in _parts(item.second, item.other_path):
                places.setdefault(self.mark(value), []).append((number, path, value))
            leaves[number] = _size(item.second)
        moves: dict[int, Difference] = {}
        for item in gone:
            if not says_much(item.first):
                continue
            there = places.get(self.mark(item.first), [])
            if len(there) == 1:
                number, path, value = there[0]
                moves[id(item)] = Difference(MOVED, item.path, path, item.first, value)
                leaves[number] -= _size(item.first)
                there.clear()
        whole = {id(item) for number, item in enumerate(come) if leaves[number] <= 0}
        return [moves.get(id(item), item) for item in found if id(item) not in whole]


def _parts(value: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Yield a value and everything inside it, with their paths."""
    todo = [(path, value)]
    while todo:
        here, item = todo.pop()
        yield here, item
        if isinstance(item, dict):
            todo.extend((joined(here, name), inner) for name, inner in item.items())
        elif isinstance(item, list):
            todo.extend((joined(here, place), inner) for place, inner in enumerate(item))


def _size(value: Json) -> int:
    """Return how many plain values a value is made of; an empty object counts for one."""
    return sum(1 for _, item in _parts(value, "") if not isinstance(item, dict | list) or not item)


def _paired(names: Sequence[str], others: Sequence[str], likeness: Any) -> dict[str, str]:
    """Return which names belong together, the most alike first; those that are not alike at all stay alone."""
    ranked = sorted(
        ((likeness(name, other), -i, -j) for i, name in enumerate(names) for j, other in enumerate(others)),
        reverse=True,
    )
    found: dict[str, str] = {}
    taken: set[int] = set()
    for score, i, j in ranked:
        if score <= 0:
            break
        if names[-i] not in found and -j not in taken:
            found[names[-i]] = others[-j]
            taken.add(-j)
    return found


def alike(name: str, other: str) -> float:
    """Return how similar two names are, from 0 to 1; 0 where they are too different to be one name."""
    one, two = _words(name), _words(other)
    if one == two:
        return 1.0
    shared = len(set(one) & set(two)) / max(len(set(one)), len(set(two)), 1)
    ratio = max(shared, SequenceMatcher(None, "".join(one), "".join(two), autojunk=False).ratio())
    return ratio if ratio >= SIMILAR_NAMES else 0.0


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+", name)]


def says_much(value: Json) -> bool:
    """Return whether a value is unlikely to be met twice by chance."""
    if isinstance(value, str):
        return len(value) > 2
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return abs(value) > 20 or not float(value).is_integer()
    return any(says_much(item) for item in (value.values() if isinstance(value, dict) else value))


def retyped(first: Json, second: Json) -> bool:
    """Return whether two values of different types say the same: `89` and `"89"`, a value and a list of it alone."""
    if isinstance(first, list) != isinstance(second, list):
        listed, other = (first, second) if isinstance(first, list) else (second, first)
        return isinstance(listed, list) and len(listed) == 1 and type(listed[0]) is type(other) and listed[0] == other
    if isinstance(first, dict | list) or isinstance(second, dict | list) or type(first) is type(second):
        return False
    one, two = _spelled(first), _spelled(second)
    if one == two:
        return True
    try:
        return math.isclose(float(one), float(two), rel_tol=0, abs_tol=0)
    except ValueError:
        return False


def _spelled(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value).strip()
    return {"none": "null", "": "null"}.get(text.lower(), text.lower() if text.lower() in ("true", "false") else text)


def _identities(first: Sequence[Json], second: Sequence[Json]) -> tuple[list[Hashable], list[Hashable]] | None:
    """Return what tells the objects of two lists apart, where one member does in both lists and they share some."""
    one, two = ([item for item in side if isinstance(item, dict)] for side in (first, second))
    if not one or not two or len(one) < len(first) or len(two) < len(second):
        return None
    shared = set(one[0]).intersection(*one[1:], *two)
    ranked = sorted(
        (_IDENTITIES.index(base), name)
        for name in shared
        if (base := "id" if name.lower().endswith(("_id", "id")) else name.lower()) in _IDENTITIES
    )
    for _, name in ranked:
        sides = tuple([(type(item[name]).__name__, item[name]) for item in side] for side in (one, two))
        plain = all(isinstance(value, str | int) for side in sides for _, value in side)
        if plain and all(len(set(side)) == len(side) for side in sides) and set(sides[0]) & set(sides[1]):
            return list(sides[0]), list(sides[1])
    return None


Pair = tuple[int | None, int | None]
"""Places of two items side by side; none where one has no partner."""


def align(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    """Return two sequences side by side with as many equal items beside each other as their order allows.

    Equal beginnings are taken as they are, so that of a loop the last turns are the ones without a partner. The rest
    is a longest common subsequence, found a row of bits at a time: one long addition for each item of `b`, whatever
    repeats.
    """
    start = 0
    while start < len(a) and start < len(b) and a[start] == b[start]:
        start += 1
    places: dict[Hashable, int] = {}
    for place, item in enumerate(a[start:]):
        places[item] = places.get(item, 0) | 1 << place
    width = len(a) - start
    every = (1 << width) - 1
    row, rows = every, []
    for item in b[start:]:
        hit = row & places.get(item, 0)
        row = ((row + hit) | (row - hit)) & every
        rows.append(row)
    found: list[Pair] = []
    i, j = width, len(rows)
    while i and j:
        bit = 1 << (i - 1)
        if rows[j - 1] & bit:
            i -= 1
            found.append((start + i, None))
        else:
            j -= 1
            if j and not rows[j - 1] & bit:
                found.append((None, start + j))
            else:
                i -= 1
                found.append((start + i, start + j))
    found += [(None, start + place) for place in reversed(range(j))]
    found += [(start + place, None) for place in reversed(range(i))]
    return [(place, place) for place in range(start)] + found[::-1]
