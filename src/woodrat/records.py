"""Records: dataclasses whose methods are compiled on first use, and properties that JSON shows.

`dataclass`, `field` and `replace` mean the same as in the standard library, for the features used here, and its
`fields`, `asdict` and `is_dataclass` accept these classes too. The standard library compiles half a dozen methods for
every class while it is imported, which takes about a millisecond each; a command that shows one entity imports some
forty classes and makes instances of a few. Here `__init__`, `__eq__` and `__hash__` are compiled on the first call.

As with slots in the standard library, the class is created again: its methods cannot use `super()` without arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import Self


def is_record(kind: Any) -> bool:
    """Return whether a class is made here, of fields."""
    return isinstance(kind, type) and hasattr(kind, _PLAN)


def kinds_of(kind: Any) -> list[type]:
    """Return the subclasses made here; the class each was made from may still exist, and is not one."""
    extended: list[type] = kind.__subclasses__()
    return [other for other in extended if _PLAN in vars(other)]


def fields_of(kind: type) -> Plan:
    """Return the fields of a class by name, those of its bases first."""
    plan: Plan = getattr(kind, _PLAN)
    return plan


class Deferrable:
    """A record of which some fields may be computed on first access: `deferred` makes such a record.

    A caller that lists many of them and looks at few pays for those. To everybody else it is a record like any other.
    """

    __slots__ = ("_work_out",)

    @classmethod
    def deferred(cls, work_out: Callable[[str], Mapping[str, Any]], **known: Any) -> Self:
        """Return a record with its known fields; `work_out` returns others: at least the requested one.

        It may be called at any later time, in any thread, and perhaps twice, so it must not depend on mutable state or
        on open resources.
        """
        record = cls.__new__(cls)
        for name, value in known.items():
            _set_field(record, name, value)
        _set_field(record, "_work_out", work_out)
        return record

    if not TYPE_CHECKING:  # a type checker would accept every attribute

        def __getattr__(self, name: str) -> Any:
            """Return a field that has no value yet."""
            if name not in getattr(type(self), _PLAN, ()):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            for field, value in self._work_out(name).items():
                _set_field(self, field, value)
            return object.__getattribute__(self, name)


_set_field = object.__setattr__


class _Missing:
    """Marks a default that was not stated."""

    def __repr__(self) -> str:
        return "<factory>"  # as a default in a signature, where each call makes the value


MISSING = _Missing()
_PLAN = "__woodrat_fields__"
"""The attribute with a class's fields by name, those of its bases first."""


class Field:
    """A class's declaration of one of its fields."""

    __slots__ = ("annotation", "compare", "default", "factory", "init", "metadata", "name", "repr")

    def __init__(
        self, default: Any, factory: Any, init: bool, repr: bool, compare: bool, metadata: Mapping[str, Any] | None
    ) -> None:
        self.name, self.annotation = "", ""
        self.default, self.factory = default, factory
        self.init, self.repr, self.compare = init, repr, compare
        self.metadata = metadata


Plan = dict[str, Field]
_Slot: Any = type(Field.__dict__["name"])
"""The type of a slot on its class."""


def _field(
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    init: bool = True,
    repr: bool = True,
    compare: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Any:
    """Say more about a field than its type and a plain default."""
    return Field(default, default_factory, init, repr, compare, metadata)


def _replace(record: Any, /, **changes: Any) -> Any:
    """Return a record like this one, with these fields changed."""
    if not hasattr(record, _PLAN):
        import dataclasses

        return dataclasses.replace(record, **changes)
    for name, about in getattr(record, _PLAN).items():
        if not about.init:
            if name in changes:
                raise ValueError(f"field {name} is not given to __init__ and cannot be replaced")
        elif name not in changes:
            changes[name] = getattr(record, name)
    return record.__class__(**changes)


def _dataclass(*, frozen: bool = False, slots: bool = False, eq: bool = True) -> Callable[[type], type]:
    """Return the decorator that makes a dataclass of a class."""
    return lambda cls: _made(cls, frozen, slots, eq)


def _made(cls: type, frozen: bool, slots: bool, eq: bool) -> type:
    plan: Plan = {}
    for base in cls.__mro__[-1:0:-1]:
        assert _PLAN in base.__dict__ or "__dataclass_fields__" not in base.__dict__, "bases are made here too"
        plan.update(base.__dict__.get(_PLAN, ()))
    inherited = frozenset(plan)
    space = dict(cls.__dict__)
    for name, annotation in cls.__annotations__.items():
        if annotation.startswith("ClassVar"):
            continue
        given = space.pop(name, MISSING)
        about = given if type(given) is Field else Field(given, MISSING, True, True, True, None)
        about.name, about.annotation = name, annotation
        plan[name] = about
        if not slots and about.default is not MISSING:
            space[name] = about.default
    added: dict[str, Any] = {
        _PLAN: plan,
        "__match_args__": tuple(name for name, about in plan.items() if about.init),
        "__dataclass_fields__": _Standard(frozen, eq),
        "__dataclass_params__": _Standard(frozen, eq),
        "__init__": _Late(_init),
        "__repr__": _repr,
    }
    if eq:
        added["__eq__"] = _Late(_eq)
        # A class that states __eq__ alone has been given a __hash__ of None by Python.
        if space.get("__hash__") is None:
            space["__hash__"] = _Late(_hash) if frozen else None
    if frozen:
        added["__setattr__"], added["__delattr__"] = _refuse_set, _refuse_delete
    if slots:
        added["__slots__"] = tuple(name for name in plan if name not in inherited)
        if frozen:
            added["__getstate__"], added["__setstate__"] = _state, _set_state
    for name in ("__dict__", "__weakref__"):
        space.pop(name, None)
    made: type = type(cls)(cls.__name__, cls.__bases__, added | space)
    made.__qualname__ = cls.__qualname__
    return made


class _Late:
    """A method that is compiled on first access, and then stored in the class itself."""

    __slots__ = ("_compile", "_name", "_owner")

    def __init__(self, compile: Callable[[type, Plan], Any]) -> None:
        self._compile = compile

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        method = self._compile(self._owner, getattr(self._owner, _PLAN))
        method.__module__, method.__qualname__ = self._owner.__module__, f"{self._owner.__qualname__}.{self._name}"
        setattr(self._owner, self._name, method)
        return method if instance is None else method.__get__(instance)


class _Standard:
    """The dataclass protocol of the standard library, made on first access."""

    __slots__ = ("_eq", "_frozen", "_name", "_owner")

    def __init__(self, frozen: bool, eq: bool) -> None:
        self._frozen, self._eq = frozen, eq

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        import dataclasses

        fields = []
        for name, about in getattr(self._owner, _PLAN).items():
            stated: dict[str, Any] = {"init": about.init, "repr": about.repr, "compare": about.compare}
            stated["metadata"] = about.metadata
            if about.default is not MISSING:
                stated["default"] = about.default
            if about.factory is not MISSING:
                stated["default_factory"] = about.factory
            fields.append((name, about.annotation, dataclasses.field(**stated)))
        like = dataclasses.make_dataclass(self._owner.__name__, fields, frozen=self._frozen, eq=self._eq)
        found = like.__dict__[self._name]
        setattr(self._owner, self._name, found)
        return found


# Methods, as text


def _function(signature: str, lines: list[str], known: dict[str, Any]) -> Any:
    exec(f"def {signature}:\n  " + "\n  ".join(lines or ["pass"]), known)
    return known[signature.partition("(")[0]]


def _init(owner: type, plan: Plan) -> Any:
    """Write `__init__`. Frozen fields are set past `__setattr__`: by the slot itself, if there is one."""
    known: dict[str, Any] = {"_missing": MISSING, "_set": object.__setattr__}
    plain: bool = owner.__dict__.get("__setattr__") is not _refuse_set
    parameters, lines = ["self"], []
    for name, about in plan.items():
        value, default = name, ""
        if about.factory is not MISSING:
            known[f"_new_{name}"] = about.factory
            value, default = f"_new_{name}()", "=_missing"
            if about.init:
                value += f" if {name} is _missing else {name}"
        elif about.default is not MISSING:
            known[f"_default_{name}"] = about.default
            default = f"=_default_{name}"
            value = name if about.init else f"_default_{name}"
        elif not about.init:
            continue
        if about.init:
            parameters.append(name + default)
        slot = getattr(owner, name, None)
        if plain:
            lines.append(f"self.{name} = {value}")
        elif isinstance(slot, _Slot):
            known[f"_set_{name}"] = slot.__set__
            lines.append(f"_set_{name}(self, {value})")
        else:
            lines.append(f"_set(self, {name!r}, {value})")
    if hasattr(owner, "__post_init__"):
        lines.append("self.__post_init__()")
    method = _function(f"__init__({', '.join(parameters)})", lines, known)
    method.__annotations__ = {name: about.annotation for name, about in plan.items() if about.init} | {"return": None}
    return method


def _compared(owner: str, plan: Plan) -> str:
    return "(" + "".join(f"{owner}.{name}, " for name, about in plan.items() if about.compare) + ")"


def _eq(_: type, plan: Plan) -> Any:
    same = f"  return {_compared('self', plan)} == {_compared('other', plan)}"
    lines = ["if other.__class__ is self.__class__:", same, "return NotImplemented"]
    return _function("__eq__(self, other)", lines, {})


def _hash(_: type, plan: Plan) -> Any:
    return _function("__hash__(self)", [f"return hash({_compared('self', plan)})"], {})


# Methods that all classes share


def _repr(self: Any) -> str:
    said = (f"{name}={getattr(self, name)!r}" for name, about in getattr(self, _PLAN).items() if about.repr)
    return f"{self.__class__.__qualname__}({', '.join(said)})"


def _refuse(self: Any, name: str, what: str) -> None:
    """Refuse to change a field; a subclass that is not a dataclass may have additional attributes."""
    if _PLAN in type(self).__dict__ or name in getattr(self, _PLAN):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot {what} field {name!r}")


def _refuse_set(self: Any, name: str, value: object) -> None:
    _refuse(self, name, "assign to")
    object.__setattr__(self, name, value)


def _refuse_delete(self: Any, name: str) -> None:
    _refuse(self, name, "delete")
    object.__delattr__(self, name)


def _state(self: Any) -> dict[str, Any]:
    return {name: getattr(self, name) for name in getattr(self, _PLAN) if hasattr(self, name)}


def _set_state(self: Any, state: dict[str, Any]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)


if not TYPE_CHECKING:
    dataclass, field, replace = _dataclass, _field, _replace
