"""Restoring: recorded JSON becomes the value that the agent's code had, by its shape.

A shape comes from the log, which others may have written. Nothing is imported by a name from there, and no constructor
of a class runs: objects are made empty and their fields are set. What does not fit is left as its JSON, and named.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from enum import EnumMeta
from types import MappingProxyType, MemberDescriptorType
from typing import Any, Final, NamedTuple

from woodrat.canon.form import Json
from woodrat.errors import pointer_part
from woodrat.log.erasure import ERASED
from woodrat.records import fields_of, is_record
from woodrat.runs import values
from woodrat.runs.class_families import class_named, family_of, is_combinable, private_defaults
from woodrat.runs.shape import FACTORIES, PLAIN, PROBLEMS_MAX, Node, canonical_names
from woodrat.runs.single_values import leaf
from woodrat.runs.values import REDACTED


class Restored(NamedTuple):
    """A value as the agent's code had it."""

    value: Any
    """The value; where something does not fit, its JSON in that place."""
    problems: tuple[str, ...]
    """What does not fit, and where."""
    is_whole: bool
    """Whether nothing in it was cut, hidden or erased, or could not be kept."""


def restored(value: Json, shape: Json, *, typed: bool = True) -> Restored:
    """Return a recorded value as it was; not `typed`, as JSON with the order of its keys and the spelling of floats.

    Nothing raises, whatever the shape is.
    """
    if shape is None:
        return Restored(value, (), values.is_whole(value))
    if not isinstance(shape, list) or not shape:
        gone = {REDACTED: "hidden", ERASED: "erased"}.get(shape if isinstance(shape, str) else "", "cut or malformed")
        return Restored(value, (f"the whole value: its shape was {gone}",), values.is_whole(value))
    restorer = _Restorer(shape, typed)
    try:
        made = restorer.part(value, len(shape), "")
    except Exception as problem:
        told = f"the whole value: its shape does not fit ({type(problem).__name__})"
        return Restored(value, (told,), values.is_whole(value))
    return Restored(made, tuple(restorer.problems), restorer.is_whole)


def standard(name: str) -> Any:
    """Return a class of the standard library by the name that shapes have for it."""
    import decimal
    import fractions
    import pathlib
    import uuid
    import zoneinfo

    return {
        "decimal": decimal.Decimal,
        "fraction": fractions.Fraction,
        "uuid": uuid.UUID,
        "zone": zoneinfo.ZoneInfo,
        "PosixPath": pathlib.PosixPath,
        "PurePosixPath": pathlib.PurePosixPath,
        "WindowsPath": pathlib.WindowsPath,
        "PureWindowsPath": pathlib.PureWindowsPath,
    }[name]


class _Misfit(Exception):
    """A node does not fit the value it stands for; the message says why."""


class _Restorer:
    """One value being restored."""

    def __init__(self, shape: list[Json], typed: bool) -> None:
        self._shape = shape
        self._typed = typed
        self.problems: list[str] = []
        self.is_whole = True

    def part(self, value: Json, number: Json, path: str) -> Any:
        """Return one part of the value, by the number of its node."""
        if number == PLAIN and type(number) is int:
            self.is_whole = self.is_whole and values.is_whole(value)
            return value
        before = len(self.problems)
        try:
            return self._made(value, self._node(number), path)
        except _Misfit as misfit:
            why = str(misfit)
        except Exception as problem:
            why = f"its shape does not fit ({type(problem).__name__})"
        if len(self.problems) < PROBLEMS_MAX and before <= len(self.problems):
            self.problems.append(f"{path or 'the top'}: {why}")
        self.is_whole = self.is_whole and values.is_whole(value)
        return value

    def _node(self, number: Json) -> Node:
        if type(number) is not int or not 1 <= number <= len(self._shape):
            raise _Misfit("its shape does not fit (no such node)")
        node = self._shape[number - 1]
        if not isinstance(node, dict):
            raise _Misfit("its shape does not fit (no node)")
        return node

    def _made(self, value: Json, node: Node, path: str) -> Any:
        kind = node.get("type")
        if kind is None:
            return self._dict(value, node, path) if isinstance(value, dict) else self._list(value, node, path)
        if not isinstance(kind, str):
            raise _Misfit("its shape does not fit (no type)")
        if not self._typed and (kind not in ("float", "negative_zero") or values.is_mark(value)):
            return self._untyped(value, node, path)
        if "class" in node and kind != "path":
            return self._of_class(kind, value, node, path)
        if (make := _SEQUENCES.get(kind)) is not None:
            return make(self._list(value, node, path))
        if kind == "deque":
            return deque(self._list(value, node, path), node.get("maxlen"))  # type: ignore[arg-type]
        if kind == "default_dict":
            factory = FACTORIES[str(node["factory"])] if "factory" in node else None
            return defaultdict(factory, self._dict(value, node, path))
        if (wrap := _MAPPINGS.get(kind)) is not None:
            return wrap(self._dict(value, node, path))
        return leaf(kind, value, node, standard)

    def _untyped(self, value: Json, node: Node, path: str) -> Any:
        """Return a part as JSON, its members in their order."""
        if isinstance(value, dict) and not values.is_mark(value):
            return self._dict(value, node, path)
        if isinstance(value, list):
            return self._list(value, node, path)
        inner = node.get("parts", PLAIN)
        return self.part(value, inner, path) if inner != PLAIN else self.part(value, PLAIN, path)

    # -- containers

    def _list(self, value: Json, node: Node, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise _Misfit("its shape does not fit (it is no list)")
        parts = _numbers(node.get("parts", PLAIN), len(value))
        return [self.part(item, parts[at], f"{path}/{at}") for at, item in enumerate(value)]

    def _members(self, value: Json, node: Node, path: str) -> list[tuple[str, Any]]:
        """Return the members of an object in their order, restored."""
        if not isinstance(value, dict):
            raise _Misfit("its shape does not fit (it is no object)")
        names = canonical_names(value)
        order = node.get("order")
        if order is not None:
            if not isinstance(order, list) or not _is_permutation(order, len(names)):
                raise _Misfit("its shape does not fit (the order of its keys)")
            names = [names[place] for place in order]  # type: ignore[index]
        parts = _numbers(node.get("parts", PLAIN), len(names))
        return [
            (name, self.part(value[name], parts[at], f"{path}/{pointer_part(name)}")) for at, name in enumerate(names)
        ]

    def _dict(self, value: Json, node: Node, path: str) -> dict[Any, Any]:
        members = self._members(value, node, path)
        if "keys" not in node or not self._typed:
            return dict(members)
        numbers = _numbers(node["keys"], len(members))
        found: dict[Any, Any] = {}
        for at, (name, item) in enumerate(members):
            found[self.part(name, numbers[at], f"{path}/{pointer_part(name)}")] = item
        if len(found) != len(members):
            raise _Misfit("its shape does not fit (its keys)")
        return found

    # -- classes of the program

    def _of_class(self, kind: str, value: Json, node: Node, path: str) -> Any:
        path_of_class = node["class"]
        cls = class_named(path_of_class) if isinstance(path_of_class, str) else None
        if cls is None:
            raise _Misfit(f"there is no class {values.text(path_of_class, 200)} in this program")
        if family_of(cls) != kind:
            raise _Misfit(f"{values.text(path_of_class, 200)} is not a class that can be restored as {kind}")
        make: Callable[[Any, Json, Node, str], Any] | None = getattr(self, f"_make_{kind}", None)
        return self._extended(kind, cls, value, node, path) if make is None else make(cls, value, node, path)

    def _make_enum(self, cls: Any, value: Json, node: Node, path: str) -> Any:
        assert isinstance(cls, EnumMeta)
        member = cls._member_map_.get(str(node.get("member")))
        if "member" not in node and is_combinable(cls) and type(value) is int:
            member = cls(value)
        if member is None:
            raise _Misfit(f"{cls.__name__} has no member {values.text(node.get('member'), 200)}")
        return member

    def _make_named_tuple(self, cls: Any, value: Json, node: Node, path: str) -> Any:
        members = dict(self._members(value, node, path))
        _check_names(cls, members, cls._fields)
        return tuple.__new__(cls, [members[name] for name in cls._fields])

    def _make_dataclass(self, cls: Any, value: Json, node: Node, path: str) -> Any:
        members = dict(self._members(value, node, path))
        names = fields_of(cls) if is_record(cls) else _dataclass_names(cls)
        return _filled(cls, members, names)

    def _make_attrs(self, cls: Any, value: Json, node: Node, path: str) -> Any:
        members = dict(self._members(value, node, path))
        return _filled(cls, members, [attribute.name for attribute in cls.__attrs_attrs__])

    def _make_msgspec(self, cls: Any, value: Json, node: Node, path: str) -> Any:
        members = dict(self._members(value, node, path))
        _check_names(cls, members, cls.__struct_fields__)
        # These classes have no constructor of their own, and with every field given no default is made.
        return cls(**members)

    def _make_pydantic(self, cls: Any, value: Json, node: Node, path: str) -> Any:
        members = self._members(value, node, path)
        fields, computed = cls.model_fields, cls.model_computed_fields
        held = {name: item for name, item in members if name in fields}
        further = {name: item for name, item in members if name not in fields and name not in computed}
        if further and cls.model_config.get("extra") != "allow":
            raise _Misfit(f"{cls.__name__} has no field {values.text(next(iter(further)), 200)}")
        if fields.keys() - held.keys():
            raise _Misfit(f"{cls.__name__} has further fields")
        was_set = {name for name, _ in members if name not in computed}
        if "set" in node:
            places = node["set"]
            assert isinstance(places, list)
            was_set = {members[place][0] for place in places}  # type: ignore[index]
        made = object.__new__(cls)
        for name, item in (
            ("__dict__", held),
            ("__pydantic_fields_set__", was_set),
            ("__pydantic_extra__", further if cls.model_config.get("extra") == "allow" else None),
            ("__pydantic_private__", private_defaults(cls) if cls.__private_attributes__ else None),
        ):
            object.__setattr__(made, name, item)
        return made

    def _extended(self, kind: str, cls: Any, value: Json, node: Node, path: str) -> Any:
        """Return an object of a class that extends one of Python's own, made as that one is."""
        match kind:
            case "dict":
                mapping = dict.__new__(cls)
                for key, item in self._dict(value, node, path).items():
                    dict.__setitem__(mapping, key, item)
                return mapping
            case "list":
                sequence = list.__new__(cls)
                list.extend(sequence, self._list(value, node, path))
                return sequence
            case "set":
                elements = set.__new__(cls)
                set.update(elements, self._list(value, node, path))
                return elements
            case "tuple" | "frozenset":
                base: Any = tuple if kind == "tuple" else frozenset
                return base.__new__(cls, self._list(value, node, path))
            case "str" | "int" | "float":
                simple = self.part(value, node.get("parts", PLAIN), path)
                single: Any = {"str": str, "int": int, "float": float}[kind]
                if type(simple) is not single:
                    raise _Misfit("its shape does not fit (another value)")
                return single.__new__(cls, simple)
        raise _Misfit(f"its shape does not fit ({values.text(kind, 100)})")


_SEQUENCES: Final[Mapping[str, Callable[[list[Any]], Any]]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_MAPPINGS: Final[Mapping[str, Callable[[dict[Any, Any]], Any]]] = {
    "ordered_dict": OrderedDict,
    "counter": Counter,
    "mapping_proxy": MappingProxyType,
}


def _numbers(parts: Json, count: int) -> list[Json]:
    """Return the number of each member's node."""
    if not isinstance(parts, list):
        return [parts] * count
    if len(parts) > count:
        raise _Misfit("its shape does not fit (more parts)")
    return [*parts, *[PLAIN] * (count - len(parts))]


def _is_permutation(order: list[Json], count: int) -> bool:
    return len(order) == count and all(type(place) is int for place in order) and set(order) == set(range(count))


def _check_names(cls: type, members: Mapping[str, Any], names: Any) -> None:
    if members.keys() != set(names):
        raise _Misfit(f"the fields of {cls.__name__} are not those that were recorded")


def _dataclass_names(cls: Any) -> list[str]:
    from dataclasses import fields

    return [field.name for field in fields(cls)]


def _filled(cls: Any, members: Mapping[str, Any], names: Any) -> Any:
    """Return an object of a class with its fields set, without any code of the class."""
    _check_names(cls, members, names)
    for name in members:
        held = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None)
        if hasattr(type(held), "__set__") and not isinstance(held, MemberDescriptorType):
            raise _Misfit(f"{cls.__name__}.{name} is set by code")
    made = object.__new__(cls)
    for name, item in members.items():
        object.__setattr__(made, name, item)
    return made
