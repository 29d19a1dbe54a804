"""Class families: classes of the agent's program, and by which rules an object of one is restored from its fields.

A class is found by its name among what is imported already. Nothing is imported, and no code of a class runs.
"""

from __future__ import annotations

import sys
from enum import Enum, Flag
from types import ModuleType
from typing import Any, Final


def class_path(kind: type) -> str:
    """Return how a shape names a class."""
    return f"{kind.__module__}:{kind.__qualname__}"


def class_named(path: str) -> type | None:
    """Return the class of a name, if this program has it already; nothing is imported, and no code runs."""
    module, _, name = path.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = found.__dict__.get(part) if isinstance(found, ModuleType | type) else None
    return found if isinstance(found, type) else None


def family_of(kind: type) -> str | None:
    """Return by which rules an object of a class is restored; none for one that cannot be, whatever it holds."""
    if any("__del__" in base.__dict__ for base in kind.__mro__):
        return None
    if issubclass(kind, Enum):
        return "enum"
    if _is_model(kind):
        return "pydantic"
    if _is_struct(kind):
        has_code = hasattr(kind, "__post_init__") or type(kind).__module__.partition(".")[0] != "msgspec"
        return None if has_code else "msgspec"
    if isinstance(getattr(kind, "__dataclass_fields__", None), dict):
        return "dataclass" if _is_free(kind) else None
    if issubclass(kind, tuple):
        return "named_tuple" if isinstance(getattr(kind, "_fields", None), tuple) else "tuple"
    if isinstance(getattr(kind, "__attrs_attrs__", None), tuple):
        return "attrs" if _is_free(kind) else None
    if kind.__module__ == "numpy":
        return None
    return next((base.__name__ for base in _BASES if issubclass(kind, base)), None)


_SIMPLE: Final = frozenset({str, int, bool, type(None)})
_BASES: Final = (dict, list, set, frozenset, str, int, float)


def _is_free(kind: type) -> bool:
    """Return whether an empty object of a class can be made without any code of the class."""
    try:
        object.__new__(kind)
    except TypeError:
        return False
    return True


def _is_model(kind: type) -> bool:
    # Where each class is made: `pydantic` itself imports them only when it is asked for them.
    if (model := class_named("pydantic.main:BaseModel")) is None or not issubclass(kind, model):
        return False
    root = class_named("pydantic.root_model:RootModel")
    return root is None or not issubclass(kind, root)


def _is_struct(kind: type) -> bool:
    struct = class_named("msgspec:Struct")
    return struct is not None and issubclass(kind, struct)


def is_combinable(kind: Any) -> bool:
    """Return whether members of an enum are put together by Python itself."""
    if not issubclass(kind, Flag):
        return False
    return all(getattr(kind, name).__func__ is getattr(Flag, name).__func__ for name in ("_missing_",))


def private_defaults(kind: Any) -> dict[str, Any] | None:
    """Return the private attributes of a model as they are at first; none where some are made by code."""
    found: dict[str, Any] = {}
    for name, about in kind.__private_attributes__.items():
        if about.default_factory is not None:
            return None
        if type(about.default) in _SIMPLE:
            found[name] = about.default
    return found
