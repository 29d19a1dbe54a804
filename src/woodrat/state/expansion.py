"""Expansion: how large a schema is where every reference is followed, and what the check of a value may cost.

A few lines of references to references can stand for more checks than any machine ever makes. So a schema has a
size, counted in steps by rules that docs/formats/schema.md states, and so has the check of a value. What lies beyond
the limits is never handed to the library that checks. Counting looks at each subschema once, however often it is
referred to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.errors import pointer_part
from woodrat.records import dataclass, field
from woodrat.state import patterns

SCHEMA_STEPS_MAX: Final = 10_000
"""Most steps of a schema, references followed."""
NESTING_MAX: Final = 128
"""How many subschemas may stand inside each other, references followed."""
CHECK_STEPS_MAX: Final = 5_000_000
"""Most steps that the check of one value may take."""
SEARCHED_CHARACTERS_MAX: Final = 1_000
"""Longest text that a pattern which looks around or back is tried on; a longer one does not fit."""
COUNT_MAX: Final = 10**18
"""Where counting stops: this many, or more."""

_TEXT_STEP: Final = 16
"""How many characters of a text weigh as much as one value."""
_UNEVALUATED: Final = 3
"""How often the subschemas beside a keyword are asked that looks at what they left unevaluated."""
_UNIQUE_STEPS: Final = 50
_FRACTION_STEPS: Final = 250
_SEARCH_STEPS: Final = 200

_ONE: Final = frozenset(
    {
        *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"),
        *("unevaluatedItems", "unevaluatedProperties"),
    }
)
_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
_LISTED: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_HERE: Final = frozenset({"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
_COSTLY: Final = frozenset(
    {
        *(
            "const",
            "dependencies",
            "dependentRequired",
            "enum",
            "multipleOf",
            "pattern",
            "patternProperties",
            "required",
        ),
        *("unevaluatedItems", "unevaluatedProperties", "uniqueItems"),
    }
)
"""Keywords that make a subschema more than one step."""


def subschemas(schema: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (path, subschema) for `schema` and all below it; data in `enum`, `const` and such is passed over."""
    waiting = [(path, schema)]
    while waiting:
        path, here = waiting.pop()
        if isinstance(here, dict):
            yield path, here
            for keyword, each in here.items():
                if keyword in _ONE:
                    waiting.append((f"{path}/{keyword}", each))
                elif keyword in _NAMED and isinstance(each, dict):
                    waiting += [(f"{path}/{keyword}/{pointer_part(name)}", inner) for name, inner in each.items()]
                elif keyword in _LISTED and isinstance(each, list):
                    waiting += [(f"{path}/{keyword}/{number}", inner) for number, inner in enumerate(each)]


def pointed_at(document: Mapping[str, Any], reference: str) -> object:
    """Return what a `#/…` reference points at, or None."""
    pointer = unquoted(reference[1:])
    if pointer and not pointer.startswith("/"):
        return None
    found: object = document
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isascii() and name.isdecimal() and int(name[:9]) < len(found):
            found = found[int(name[:9])]
        else:
            return None
    return found


def unquoted(text: str) -> str:
    """Return text with what stands for its percent signs and codes."""
    if "%" not in text:
        return text
    from urllib.parse import unquote  # slow to load, and few schemas need it

    return unquote(text)


@dataclass(slots=True)
class _Node:
    """One subschema, with the numbers of those it applies."""

    own: int = 1
    """Its steps without those of other subschemas."""
    searches: bool = False
    """Whether its pattern looks around or back."""
    factor: int = 1
    """How often those for the same value count."""
    here: list[int] = field(default_factory=list)
    """Those for the same value that stand in it."""
    references: list[int] = field(default_factory=list)
    """Those for the same value that it refers to."""
    named: dict[str, int] = field(default_factory=dict)
    """Those for members of these names."""
    members: list[int] = field(default_factory=list)
    """Those for every member."""
    others: int | None = None
    """The one for members that `named` leaves out."""
    names: int | None = None
    """The one for the names of members."""
    first: list[int] = field(default_factory=list)
    """Those for the first elements."""
    rest: int | None = None
    """The one for elements after those."""
    elements: list[int] = field(default_factory=list)
    """Those for every element."""

    def inside(self) -> Iterator[int]:
        """Yield those for parts of the value."""
        yield from self.named.values()
        yield from self.members
        yield from self.first
        yield from self.elements
        for number in (self.others, self.names, self.rest):
            if number is not None:
                yield number


class Expansion:
    """The size of one schema, and what checks of values by it may cost."""

    __slots__ = (
        *("_applied", "_beside", "_closures", "_document", "_heights", "_loads", "_nodes", "_numbers", "_objects"),
        *("_places", "_sizes", "endless", "nesting", "steps"),
    )

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._objects: list[Mapping[str, Any]] = [{}]
        self._nodes = [_Node()]  # stands for true, false and whatever is no object
        self._numbers: dict[int, int] = {}
        self._read()
        self._beside = [[*node.here, *node.references] for node in self._nodes]
        """Those for the same value, by subschema."""
        self._places = [1] * len(self._nodes)
        """Steps at the value itself, by subschema."""
        self._heights = [1] * len(self._nodes)
        """How many stand inside each other beside the same value, by subschema."""
        self._sizes: list[tuple[int, int, bool]] = []
        """Steps, nesting and whether it leads back to itself, by subschema."""
        self._applied: dict[int, list[int]] = {}
        self._closures: dict[int, dict[int, int]] = {}
        self._loads: dict[int, list[int]] = {}
        order = _settled(self._beside)
        self.endless = order is None
        """Whether a reference leads back to where it stands without going into the value."""
        self.steps = COUNT_MAX
        """Steps of the schema; `COUNT_MAX` where there is no end to them."""
        self.nesting = COUNT_MAX
        """How many subschemas stand inside each other; `COUNT_MAX` where there is no end to it."""
        if order is not None:
            self._count(order)

    @property
    def beyond(self) -> str | None:
        """Why nothing is ever checked by this schema, as a clause; None where it is within the limits."""
        if self.endless:
            return "a reference leads back to where it stands without going into the value, so a check has no end"
        if self.steps > SCHEMA_STEPS_MAX:
            more = " or more" if self.steps == COUNT_MAX else ""
            return f"it has {self.steps}{more} steps where every reference is followed, over {SCHEMA_STEPS_MAX}"
        if self.nesting > NESTING_MAX:
            return f"{self.nesting} subschemas stand inside each other, references followed, over {NESTING_MAX}"
        return None

    def steps_of(self, subschema: object) -> int:
        """Return the steps of one subschema of this document."""
        return COUNT_MAX if self.endless else self._sizes[self._number(subschema)][0]

    def searching(self) -> list[Any]:
        """Return the subschemas whose pattern looks around or back."""
        return [self._objects[number] for number, node in enumerate(self._nodes) if node.searches]

    def load(self, subschema: object, depth: int) -> int:
        """Return the most steps that meet at one place in a value of this depth."""
        return max(self._loads_to(self._number(subschema), depth)[: depth + 1])

    def check_steps(self, subschema: object, value: Json) -> int:
        """Return the steps that the check of a value counts as."""
        depth, weight = weigh(value)
        return self.load(subschema, depth) * weight

    def length_max(self, subschema: object) -> int:
        """Return a number of canonical bytes up to which every value is within the limit; a longer one is weighed.

        Each value and each 16 characters take two bytes or more, and so does each level of depth.
        """
        number = self._number(subschema)
        steps, _, leads_back = self._sizes[number]
        if not leads_back:
            return 2 * (CHECK_STEPS_MAX // steps) - 2
        most, found = 0, 0
        for depth in range(form.DEPTH_MAX + 1):
            most = max(most, self._loads_to(number, depth)[depth])
            room = 2 * (CHECK_STEPS_MAX // most) - 2
            if room <= found:
                break
            # With more bytes than these a value may be deeper; after the last level there is no deeper one.
            found = room if depth == form.DEPTH_MAX else min(room, 2 * depth + 1)
        return found

    def _number(self, subschema: object) -> int:
        return self._numbers.get(id(subschema), 0)

    # Reading the document

    def _read(self) -> None:
        self._numbered(self._document)
        anchors: dict[str, list[object]] | None = None
        for number, schema in enumerate(self._objects):  # which grows meanwhile
            if number == 0:
                continue
            node = self._nodes[number]
            _own(schema, node)
            self._apply(schema, node)
            for keyword in ("$ref", "$dynamicRef"):
                reference = schema.get(keyword)
                if not isinstance(reference, str) or not reference.startswith("#"):
                    continue
                name = unquoted(reference[1:])
                if name and not name.startswith("/"):
                    anchors = _anchors(self._document) if anchors is None else anchors
                    node.references += [self._numbered(each) for each in anchors.get(name, ())]
                else:
                    node.references.append(self._numbered(pointed_at(self._document, reference)))

    def _numbered(self, schema: object) -> int:
        if not isinstance(schema, dict):
            return 0
        number = self._numbers.get(id(schema))
        if number is None:
            number = self._numbers[id(schema)] = len(self._nodes)
            self._nodes.append(_Node())
            self._objects.append(schema)
        return number

    def _apply(self, schema: Mapping[str, Any], node: _Node) -> None:
        """Note the subschemas that one applies, by what it applies them to."""
        numbered = self._numbered
        for keyword, each in schema.items():
            if keyword in _ONE:
                found = [numbered(each)]
            elif keyword in _LISTED:
                found = [numbered(inner) for inner in each] if isinstance(each, list) else []
            elif keyword == "properties" and isinstance(each, dict):
                node.named = {name: numbered(inner) for name, inner in each.items()}
                continue
            elif keyword in ("patternProperties", "dependentSchemas", "dependencies") and isinstance(each, dict):
                found = [numbered(inner) for inner in each.values()]
            else:
                continue
            if keyword in _HERE:
                node.here += found
            elif keyword in ("patternProperties", "unevaluatedProperties"):
                node.members += found
            elif keyword in ("contains", "unevaluatedItems"):
                node.elements += found
            elif keyword == "prefixItems":
                node.first = found
            elif keyword == "additionalProperties":
                node.others = found[0]
            elif keyword == "propertyNames":
                node.names = found[0]
            elif keyword == "items":
                node.rest = found[0]

    # Counting

    def _count(self, order: Iterable[int]) -> None:
        """Count the steps of every subschema; in `order`, each comes after all beside it."""
        for number in order:
            node, beside = self._nodes[number], self._beside[number]
            at_value = node.own + node.factor * sum(self._places[each] for each in beside)
            self._places[number] = min(at_value, COUNT_MAX)
            self._heights[number] = 1 + max((self._heights[each] for each in beside), default=0)
        below = [[*node.here, *node.inside()] for node in self._nodes]
        circles = _circles([[*low, *node.references] for low, node in zip(below, self._nodes, strict=True)])
        # A reference within a circle is not followed; without those nothing leads back.
        followed, cut = [], []
        for number, node in enumerate(self._nodes):
            followed.append([each for each in node.references if circles[each] != circles[number]])
            cut.append([each for each in node.references if circles[each] == circles[number]])
        order = _settled([[*low, *far] for low, far in zip(below, followed, strict=True)]) or ()
        self._sizes = [(1, 1, False)] * len(self._nodes)
        for number in order:
            node, sizes = self._nodes[number], self._sizes
            here = sum(sizes[each][0] for each in (*node.here, *followed[number]))
            here += sum(self._places[each] for each in cut[number])
            steps = node.own + node.factor * here + sum(sizes[each][0] for each in node.inside())
            under = [sizes[each] for each in (*below[number], *followed[number])]
            heights = (*(each[1] for each in under), *(self._heights[each] for each in cut[number]))
            leads_back = bool(cut[number]) or any(each[2] for each in under)
            sizes[number] = min(steps, COUNT_MAX), 1 + max(heights, default=0), leads_back
        # What such a reference points at counts once by itself: it may be reached in no other way.
        apart = {each for targets in cut for each in targets}
        steps = self._sizes[1][0] + sum(self._sizes[each][0] for each in apart)
        self.steps = min(steps + self._unused(), COUNT_MAX)
        self.nesting = max(self._sizes[each][1] for each in (1, *apart))

    def _unused(self) -> int:
        """Return the steps of definitions that nothing refers to, each without those of others."""
        found = 0
        for _, schema in subschemas(self._document):
            if id(schema) not in self._numbers:
                node = _Node()
                _own(schema, node)
                found += node.own
        return found

    def _closure(self, start: int) -> dict[int, int]:
        """Return how often each subschema meets the value that one is applied to."""
        found = self._closures.get(start)
        if found is None:
            within = _settled(self._beside, start)
            assert within is not None, "nothing leads back to itself beside the same value"
            found = dict.fromkeys(within, 0)
            found[start] = 1
            for number in reversed(within):
                factor = self._nodes[number].factor
                for each in self._beside[number]:
                    found[each] = min(found[each] + found[number] * factor, COUNT_MAX)
            self._closures[start] = found
        return found

    def _loads_to(self, start: int, depth: int) -> list[int]:
        """Return the most steps that meet at one place in a value, by how deep the place is, down to `depth`."""
        found = self._loads.get(start, [])
        if len(found) <= depth:
            roots = self._roots(start)
            rows = {root: self._loads.setdefault(root, [self._places[root]]) for root in roots}
            found = rows[start]
            for level in range(len(found), depth + 1):
                before = {root: row[level - 1] for root, row in rows.items()}
                if level > 1 and all(row[level - 1] == row[level - 2] for row in rows.values()):
                    # What follows from equal loads is equal again, however deep.
                    for row in rows.values():
                        row += row[-1:] * (depth + 1 - len(row))
                    break
                for root, row in rows.items():
                    if len(row) == level:
                        row.append(min(self._most_inside(root, before), COUNT_MAX))
        return found

    def _roots(self, start: int) -> list[int]:
        """Return the subschemas that are applied to a value of their own when one is, itself among them."""
        if start in self._applied:
            return self._applied[start]
        found = {start: None}
        waiting = [start]
        while waiting:
            for number in self._closure(waiting.pop()):
                for each in self._nodes[number].inside():
                    if each not in found:
                        found[each] = None
                        waiting.append(each)
        self._applied[start] = list(found)
        return self._applied[start]

    def _most_inside(self, root: int, load: Mapping[int, int]) -> int:
        """Return the most that meets at one member, name or element, given what each subschema brings there."""
        every = others = names = elements = rest = 0
        named: dict[str, int] = {}
        first: list[int] = []
        for number, times in self._closure(root).items():
            node = self._nodes[number]
            other = 0 if node.others is None else times * load[node.others]
            every += sum(times * load[each] for each in node.members)
            others += other
            for name, each in node.named.items():
                named[name] = named.get(name, 0) + times * load[each] - other
            names += 0 if node.names is None else times * load[node.names]
            elements += sum(times * load[each] for each in node.elements)
            later = 0 if node.rest is None else times * load[node.rest]
            rest += later
            first += [0] * (len(node.first) - len(first))
            for place, each in enumerate(node.first):
                first[place] += times * load[each] - later
        member = every + others + max(0, max(named.values(), default=0))
        return max(member, names, elements + rest + max(0, max(first, default=0)))


def weigh(value: Json) -> tuple[int, int]:
    """Return the depth of a value, and its weight: one for each value and name in it and for 16 characters of text."""
    depth, weight = 0, 0
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        item, level = waiting.pop()
        weight += 1
        depth = max(depth, level)
        if type(item) is str:
            weight += len(item) // _TEXT_STEP
        elif isinstance(item, Mapping):
            for name, each in item.items():
                weight += 1 + len(name) // _TEXT_STEP
                waiting.append((each, level + 1))
        elif isinstance(item, list | tuple):
            waiting.extend((each, level + 1) for each in item)
    return depth, weight


def _own(schema: Mapping[str, Any], node: _Node) -> None:
    """Count the steps of a subschema without those of others."""
    if _COSTLY.isdisjoint(schema):
        return
    own = 1
    if isinstance(schema.get("enum"), list):
        own += _values_in(schema["enum"]) - 1
    if "const" in schema:
        own += _values_in(schema["const"])
    if isinstance(schema.get("required"), list):
        own += len(schema["required"])
    for keyword in ("dependentRequired", "dependencies"):
        if isinstance(schema.get(keyword), dict):
            own += sum(1 + len(names) for names in schema[keyword].values() if isinstance(names, list))
    if schema.get("uniqueItems") is True:
        own += _UNIQUE_STEPS
    divisor = schema.get("multipleOf")
    if isinstance(divisor, float) and not divisor.is_integer():
        own += _FRACTION_STEPS
    if isinstance(schema.get("pattern"), str):
        length, node.searches = patterns.measure(schema["pattern"])
        own += length + (_SEARCH_STEPS if node.searches else 0)
    if isinstance(schema.get("patternProperties"), dict):
        for name in schema["patternProperties"]:
            length, searches = patterns.measure(name)
            own += COUNT_MAX if searches else 1 + length
    if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
        node.factor = _UNEVALUATED
    node.own = min(own, COUNT_MAX)


def _values_in(value: Json) -> int:
    """Return how many values there are in one, itself included."""
    count = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        count += 1
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return count


def _anchors(document: Mapping[str, Any]) -> dict[str, list[object]]:
    """Return the subschemas that give themselves a name."""
    found: dict[str, list[object]] = {}
    for _, schema in subschemas(document):
        for name in {schema.get("$anchor"), schema.get("$dynamicAnchor")}:
            if isinstance(name, str):
                found.setdefault(name, []).append(schema)
    return found


def _settled(after: list[list[int]], start: int | None = None) -> list[int] | None:
    """Return numbers so that each comes after all it leads to, from `start` or all of them; None in a circle."""
    order: list[int] = []
    state: dict[int, Iterator[int] | None] = {}
    for first in range(len(after)) if start is None else (start,):
        if first in state:
            continue
        state[first] = iter(after[first])
        path = [first]
        while path:
            ways = state[path[-1]]
            assert ways is not None, "what lies on the path is not settled"
            for each in ways:
                if each not in state:
                    state[each] = iter(after[each])
                    path.append(each)
                    break
                if state[each] is not None:
                    return None
            else:
                state[path[-1]] = None
                order.append(path.pop())
    return order


def _circles(after: Iterable[Iterable[int]]) -> list[int]:
    """Return a number for each, the same for those that lead to each other (Tarjan's strongly connected components)."""
    ways = [list(each) for each in after]
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    found = [-1] * len(ways)
    stack: list[int] = []
    for first in range(len(ways)):
        if first in index:
            continue
        path = [(first, iter(ways[first]))]
        index[first] = low[first] = len(index)
        stack.append(first)
        while path:
            here, rest = path[-1]
            for each in rest:
                if each not in index:
                    index[each] = low[each] = len(index)
                    stack.append(each)
                    path.append((each, iter(ways[each])))
                    break
                if found[each] < 0:
                    low[here] = min(low[here], index[each])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[here])
                if low[here] == index[here]:
                    while True:
                        member = stack.pop()
                        found[member] = here
                        if member == here:
                            break
    return found
