"""Shapes: what a value of the agent's code was in Python, beyond what its recorded JSON says.

JSON in canonical form sorts keys, spells 89.0 as 89 and knows no types. The shape of a value says what got lost: the
order of keys, floats, the types of Python. It is a list of nodes (docs/formats/runs.md, "Shapes"), made from the value
and from the JSON that was recorded of it, so what was hidden or cut is in neither. Where the JSON alone gives back the
same value there is no shape; finding that out is one pass over the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from math import copysign
from operator import is_
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.order import order_key
from woodrat.errors import pointer_part, shown
from woodrat.runs import values
from woodrat.runs.class_families import class_named, class_path, family_of, is_combinable, private_defaults
from woodrat.runs.single_values import KEYS, LEAVES, leaf, to_data
from woodrat.runs.values import REDACTED, TRUNCATED, field_names, type_name

SHAPE: Final = "shape"
"""The member of an entry that holds the shape of what it records."""
SHAPED: Final[Mapping[str, str]] = MappingProxyType(
    {"run.started": "inputs", "run.model": "response", "run.tool": "result"}
)
"""Of which member of an entry its shape is, by the entry's kind."""
SHAPE_BYTES_MAX: Final = 131_072
"""Longest shape that is recorded, in canonical form."""
DATA_BYTES_MAX: Final = 65_536
"""How many bytes of binary data a shape holds, all together."""
PROBLEMS_MAX: Final = 5
"""How many parts of one value are named that cannot be restored."""

PLAIN: Final = 0
"""Stands for the shape of a part that its JSON gives back as it was."""

Node = dict[str, Json]

_STILL: Final = frozenset({str, int, bool, type(None)})
_EXPONENT_FROM: Final = 1e21  # from here on canonical form spells a float so that it reads back as one
FACTORIES: Final = {kind.__name__: kind for kind in (list, dict, set, int, float, str, tuple, bool)}
"""What a dictionary with defaults may make them with, by name."""


class Shaped(NamedTuple):
    """The shape of a value, and what of it no shape can say."""

    shape: list[Json] | None
    """The nodes, the one of the whole value last; none where the recorded JSON gives back the same value."""
    problems: tuple[str, ...]
    """Parts that cannot be restored, each with its type and where it is."""


_NO_SHAPE: Final = Shaped(None, ())


def shape_of(value: object, recorded: Json) -> Shaped:
    """Return the shape of a value of which this JSON was recorded (`values.plain`, as it came from there)."""
    if value is recorded and type(value) in _STILL:
        return _NO_SHAPE
    if type(recorded) is dict and len(recorded) == 1 and TRUNCATED in recorded and not _is_in(recorded, value):
        return _NO_SHAPE  # it was cut, and the mark says so
    maker = _Maker()
    try:
        number = maker.part(value, recorded)
    except Exception as problem:  # a value that another thread changes meanwhile, or a class with its own ideas
        return Shaped(None, (f"{_name_of(value)} (the whole value): {type(problem).__name__} while it was recorded",))
    if number == PLAIN:
        return _NO_SHAPE if not maker.problems else Shaped(None, tuple(maker.problems))
    shape: list[Json] = [*maker.nodes]
    if maker.size > SHAPE_BYTES_MAX // 8 and len(form.serialise(shape)) > SHAPE_BYTES_MAX:
        told = f"{_name_of(value)} (the whole value): its shape is longer than {SHAPE_BYTES_MAX} bytes"
        return Shaped(None, (told, *maker.problems)[:PROBLEMS_MAX])
    return Shaped(shape, tuple(maker.problems))


def shape_fault(shape: object) -> str | None:
    """Return what is wrong with a shape that was made elsewhere, before anything is read from it."""
    if not isinstance(shape, list) or not all(isinstance(node, dict) for node in shape):
        return f"expected a list of nodes, got {shown(shape)}"
    if form.faults(shape):
        return "it holds what JSON cannot say"
    size = len(form.serialise(shape))
    return f"{size} bytes are longer than {SHAPE_BYTES_MAX}" if size > SHAPE_BYTES_MAX else None


def canonical_names(names: Iterable[str]) -> list[str]:
    """Return the keys of an object in the order of canonical form: by UTF-16 code units."""
    listed = list(names)
    joined = "".join(listed)
    if joined.isascii() or max(joined) <= "\uffff":
        return sorted(listed)
    return sorted(listed, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


def order_of(names: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return where each key stands in canonical order; none where they are in that order."""
    canonical = canonical_names(names)
    if canonical == [*names]:
        return None
    places = {name: place for place, name in enumerate(canonical)}
    return tuple([places[name] for name in names])


def has_escapes(shape: Json) -> bool:
    """Return whether a shape holds binary data that is no text, so that a search for words may miss some."""
    return isinstance(shape, list) and any(isinstance(node, dict) and "escaped" in node for node in shape)


class _Maker:
    """The shape of one value being made."""

    __slots__ = ("_classes", "_data", "_known", "_orders", "_trail", "nodes", "problems", "size")

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.problems: list[str] = []
        self.size = 0
        """At most an eighth of how many bytes the nodes take."""
        self._known: dict[Any, int] = {}
        self._orders: dict[tuple[str, ...], tuple[int, ...] | None] = {}
        self._classes: dict[type, str | None] = {}
        self._trail: list[tuple[Any, int]] = []
        self._data = 0

    def part(self, value: Any, recorded: Any) -> int:
        """Return the number of the node of a value, 0 for one that its JSON gives back."""
        kind = type(value)
        if kind is dict:
            if type(recorded) is dict and len(recorded) == len(value) and _is_in(recorded, value):
                return self._mapping(value, recorded, ())
        elif kind is list:
            if type(recorded) is list and len(recorded) == len(value):
                return self._sequence(value, recorded, ())
        elif kind is str or kind is int or kind is bool or value is None:
            if type(recorded) is kind and recorded == value:
                return PLAIN
        elif kind is float:
            if type(recorded) in (int, float) and recorded == value:
                return self._float(value)
        elif kind is tuple and type(recorded) is list and len(recorded) == len(value):
            return self._sequence(value, recorded, (("type", "tuple"),))
        if type(recorded) is str and recorded == REDACTED:
            return PLAIN
        return self._foreign(value, recorded)

    def _float(self, value: float) -> int:
        """Return the node of a float that JSON can say."""
        if not value.is_integer() or abs(value) >= _EXPONENT_FROM:
            return PLAIN
        return self._add((("type", "float" if value or copysign(1.0, value) > 0 else "negative_zero"),))

    # -- containers

    def _mapping(self, value: Mapping[Any, Any], recorded: dict[str, Any], about: tuple[Any, ...]) -> int:
        """Return the node of a mapping; its members stand in the same order in the JSON, as that was made from it."""
        names = tuple(recorded)
        if not all(map(is_, value, names)):
            about = (*about, *self._keys(value, names, recorded))
        return self._members(names, value.values(), recorded, about)

    def _members(
        self, names: tuple[str, ...], items: Iterable[Any], recorded: dict[str, Any], about: tuple[Any, ...]
    ) -> int:
        """Return the node of something with named members, whose values and JSON are in the same order."""
        if names in self._orders:
            order = self._orders[names]
        else:
            order = self._orders[names] = order_of(names)
        parts = self._parts(items, recorded.values(), recorded)
        if order is not None:
            about = (*about, ("order", order))
        return self._add((*about, ("parts", parts)) if parts else about) if parts or about else PLAIN

    def _sequence(self, value: Any, recorded: list[Any], about: tuple[Any, ...]) -> int:
        parts = self._parts(value, recorded, recorded)
        return self._add((*about, ("parts", parts)) if parts else about) if parts or about else PLAIN

    def _parts(self, items: Iterable[Any], recorded: Iterable[Any], inside: Any) -> int | tuple[int, ...]:
        """Return the numbers of the nodes of members: one number where all have the same, 0 where there is none."""
        if _STILL.issuperset(map(type, items)) and all(map(is_, items, recorded)):
            return PLAIN
        numbers: list[int] = []
        trail = self._trail
        for item, kept in zip(items, recorded, strict=True):
            if item is kept and type(item) is not float:
                numbers.append(PLAIN)
            elif type(item) is float and item is kept:
                numbers.append(self._float(item))
            else:
                trail.append((inside, len(numbers)))
                numbers.append(self.part(item, kept))
                trail.pop()
        first = numbers[0]
        if numbers.count(first) == len(numbers):
            return first
        while numbers[-1] == PLAIN:
            numbers.pop()
        return tuple(numbers)

    def _keys(self, value: Mapping[Any, Any], names: tuple[str, ...], recorded: Any) -> tuple[tuple[str, Any], ...]:
        """Return what a node says of keys that are no text, or were not kept as they are."""
        numbers: list[int] = []
        for key, name in zip(value, names, strict=True):
            self._trail.append((recorded, len(numbers)))
            numbers.append(self._key(key, name))
            self._trail.pop()
        if not any(numbers):
            return ()
        return (("keys", numbers[0] if numbers.count(numbers[0]) == len(numbers) else tuple(numbers)),)

    def _key(self, key: Any, name: str) -> int:
        if type(key) is str:
            return PLAIN if key == name else self._data_node("text", key, key.encode("utf-8", "surrogatepass"))
        if isinstance(key, Enum):
            return self._enum(key)
        kind = KEYS.get(type(key))
        return self._leaf(kind or LEAVES.get((type(key).__module__, type(key).__name__)), key, name)

    # -- everything else, in the order of `values`

    def _foreign(self, value: Any, recorded: Any) -> int:
        kind = type(value)
        is_marked = values.is_mark(recorded)
        if isinstance(value, Enum):
            return self._enum(value)
        if kind is str and is_marked:
            return self._data_node("text", value, value.encode("utf-8", "surrogatepass"))
        if kind is bytes or kind is bytearray:
            return self._bytes(value, recorded)
        if kind in (int, float, complex) and is_marked:
            return self._leaf(kind.__name__, value, recorded)
        if (tag := LEAVES.get((kind.__module__, kind.__name__))) is not None:
            return self._leaf(tag, value, recorded)
        if kind is set or kind is frozenset:
            return self._set(value, recorded, (("type", kind.__name__),))
        if not is_marked and (special := self._collection(value, recorded)) is not None:
            return special
        if is_marked or isinstance(value, type) or kind.__module__ == "builtins":
            return self._unknown(value, "it is kept as a text that shows it" if is_marked else "another value is kept")
        return self._object(value, recorded)

    def _collection(self, value: Any, recorded: Any) -> int | None:
        """Return the node of one of the collections of the standard library; none for anything else."""
        name = (type(value).__module__, type(value).__name__)
        if name == ("collections", "deque") and type(recorded) is list:
            limit = () if value.maxlen is None else (("maxlen", value.maxlen),)
            return self._sequence(list(value), recorded, (("type", "deque"), *limit))
        tag = {
            ("collections", "OrderedDict"): "ordered_dict",
            ("collections", "Counter"): "counter",
            ("collections", "defaultdict"): "default_dict",
            ("builtins", "mappingproxy"): "mapping_proxy",
        }.get(name)
        if tag is None or type(recorded) is not dict or len(recorded) != len(value):
            return None
        about: tuple[Any, ...] = (("type", tag),)
        if tag == "default_dict" and value.default_factory is not None:
            factory = getattr(value.default_factory, "__name__", None)
            if FACTORIES.get(str(factory)) is not value.default_factory:
                self._unknown(value, "its default is made by code")
            else:
                about = (*about, ("factory", factory))
        return self._mapping(value, recorded, about)

    def _object(self, value: Any, recorded: Any) -> int:
        """Return the node of an object of a class that the program has, from its fields or as what it extends."""
        kind = type(value)
        if kind not in self._classes:
            self._classes[kind] = family_of(kind) if class_named(class_path(kind)) is kind else None
        family = self._classes[kind]
        if family is None:
            why = "its class cannot be made from values"
            return self._unknown(value, why if class_named(class_path(kind)) is kind else "its class has no name")
        about: tuple[Any, ...] = (("type", family), ("class", class_path(kind)))
        if family == "pydantic":
            return self._model(value, recorded, about)
        names = field_names(value)
        if names is not None:
            return self._fields(value, tuple(names), recorded, about)
        self._check_further(value, ())
        if family == "dict" and type(recorded) is dict and len(recorded) == len(value):
            return self._mapping(value, recorded, about)
        if family in ("list", "tuple") and type(recorded) is list and len(recorded) == len(value):
            return self._sequence(list(value), recorded, about)
        if family in ("set", "frozenset"):
            return self._set(value, recorded, about)
        base = {"str": str, "int": int, "float": float}.get(family)
        if base is None:
            return self._unknown(value, "another value is kept")
        simple: Any = str.__str__(value) if base is str else base(value)
        made = base.__new__(kind, simple)
        inner = self.part(simple, recorded)
        return self._add((*about, ("parts", inner))) if type(made) is kind else self._unknown(value, "it is made anew")

    def _fields(self, value: Any, names: tuple[str, ...], recorded: Any, about: tuple[Any, ...]) -> int:
        if type(recorded) is not dict or tuple(recorded) != names:
            return self._unknown(value, "its fields are kept otherwise")
        self._check_further(value, names)
        return self._members(names, [getattr(value, name) for name in names], recorded, about)

    def _model(self, value: Any, recorded: Any, about: tuple[Any, ...]) -> int:
        """Return the node of a Pydantic model; what it computes is not part of it."""
        further = value.__pydantic_extra__ or {}
        computed = type(value).model_computed_fields
        held = {**value.__dict__, **further}
        if type(recorded) is not dict or recorded.keys() - held.keys() - computed.keys():
            return self._unknown(value, "its fields are kept otherwise")
        if held.keys() - recorded.keys() - computed.keys():
            self._unknown(value, "some of its fields are not kept")
        private, initial = value.__pydantic_private__ or {}, private_defaults(type(value))
        if initial is None or any(type(private[n]) not in _STILL or private[n] != initial.get(n) for n in private):
            self._unknown(value, "its private attributes are not kept")
        names = tuple(recorded)
        members = [held[name] if name in held and name not in computed else recorded[name] for name in names]
        was_set = value.__pydantic_fields_set__
        if not was_set.issuperset(name for name in names if name not in computed):
            about = (*about, ("set", tuple([place for place, name in enumerate(names) if name in was_set])))
        return self._members(names, members, recorded, about)

    def _check_further(self, value: Any, names: tuple[str, ...]) -> None:
        """Name an object that holds more than its fields; what it caches of them is made again."""
        kind = type(value)
        held = getattr(value, "__dict__", None)
        further = [name for name in held if name not in names] if isinstance(held, dict) else []
        if any(type(getattr(kind, name, None)).__name__ != "cached_property" for name in further):
            self._unknown(value, "it has attributes that are no fields")

    def _set(self, value: Any, recorded: Any, about: tuple[Any, ...]) -> int:
        """Return the node of a set: its elements in the order of their JSON."""
        if type(recorded) is not list or len(recorded) != len(value):
            return self._unknown(value, "another value is kept")
        pairs = [(values.plain(item), item) for item in list(value)]
        # Elements that are one as JSON (a decimal and its text) come in the order of their types.
        pairs.sort(key=lambda pair: (order_key(pair[0]), type_name(pair[1])))
        if not all(form.same(plain, kept) for (plain, _), kept in zip(pairs, recorded, strict=True)):
            return self._unknown(value, "something in it is hidden")
        parts = self._parts([item for _, item in pairs], [plain for plain, _ in pairs], recorded)
        return self._add((*about, ("parts", parts)) if parts else about)

    def _enum(self, value: Enum) -> int:
        kind = type(value)
        if class_named(class_path(kind)) is not kind:
            return self._unknown(value, "its class has no name")
        about = (("type", "enum"), ("class", class_path(kind)))
        if kind._member_map_.get(value.name or "") is value:
            return self._add((*about, ("member", value.name)))
        if is_combinable(kind) and kind(value.value) is value:
            return self._add(about)
        return self._unknown(value, "it is no member of its class")

    def _bytes(self, value: Any, recorded: Any) -> int:
        kind = type(value).__name__
        if isinstance(recorded, str):  # a model spelled it as text
            return self._leaf(kind, value, recorded)
        if not values.is_mark(recorded):
            return self._unknown(value, "another value is kept")
        return self._data_node(kind, value, bytes(value))

    def _data_node(self, kind: str, value: Any, data: bytes) -> int:
        if self._data + len(data) > DATA_BYTES_MAX:
            return self._unknown(value, f"more than {DATA_BYTES_MAX} bytes are not kept")
        self._data += len(data)
        return self._add((("type", kind), *to_data(data).items()))

    def _leaf(self, kind: str | None, value: Any, recorded: Any) -> int:
        """Return the node of a value without parts, if it comes back from its JSON exactly."""
        about: tuple[Any, ...] = (("type", kind),)
        if kind == "path":
            about = (*about, ("class", type(value).__name__))
        elif kind in ("datetime", "time"):
            zone = getattr(value.tzinfo, "key", None)
            if isinstance(zone, str) and type(value.tzinfo).__module__ == "zoneinfo":
                about = (*about, ("zone", zone))
            if value.fold:
                about = (*about, ("fold", 1))
        classes: dict[str, Any] = {"zone": lambda zone: value.tzinfo}
        try:
            made = leaf(str(kind), recorded, dict(about), lambda name: classes.get(name, type(value)))
        except Exception:
            return self._unknown(value, "another value is kept")
        if type(made) is not type(value) or repr(made) != repr(value):
            return self._unknown(value, "another value is kept")
        return self._add(about)

    def _unknown(self, value: Any, why: str) -> int:
        """Name a part that cannot be restored."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(f"{_name_of(value)} at {self._pointer()}: {why}")
        return PLAIN

    def _pointer(self) -> str:
        steps = [number if isinstance(inside, list) else [*inside][number] for inside, number in self._trail]
        return "".join("/" + pointer_part(str(step)) for step in steps) or "the top"

    def _add(self, about: tuple[tuple[str, Any], ...]) -> int:
        """Return the number of a node; equal ones are one."""
        number = self._known.get(about)
        if number is None:
            self.size += sum(len(item) if isinstance(item, str | tuple) else 2 for _, item in about)
            self.nodes.append({name: [*item] if type(item) is tuple else item for name, item in about})
            number = self._known[about] = len(self.nodes)
        return number


def _is_in(recorded: dict[str, Any], value: object) -> bool:
    """Return whether the JSON of a mapping is made of its members, and not a mark that stands for it."""
    return not values.is_mark(recorded) or (isinstance(value, Mapping) and next(iter(recorded)) in value)


def _name_of(value: object) -> str:
    try:
        return type_name(value)
    except Exception:
        return "object"
