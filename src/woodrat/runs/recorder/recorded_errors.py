"""Recorded errors: an exception that a call raised, made again from its type and message.

The agent's code catches it by its type and shows it by its text, so both are as they were. Nothing is imported: a class
that is not here cannot be what the agent's code catches.
"""

from __future__ import annotations

import builtins
import sys
from ast import literal_eval
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from woodrat.canon.form import Json

NOTE: Final = "This error was recorded when the run was first carried out; the call was not made again."


def recorded_error(error: Json) -> Exception:
    """Return the exception that a recorded error was, as nearly as this process can make it."""
    recorded = error if isinstance(error, dict) else {}
    name, message = str(recorded.get("type", "Exception")), str(recorded.get("message", ""))
    module, _, short = name.rpartition(".")
    kind = getattr(sys.modules.get(module) if module else builtins, short, None)
    try:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise TypeError("no exception of this program")
        made = _made(kind, message)
    except Exception:
        made = RuntimeError(f"{name}: {message}")
    made.add_note(NOTE)
    return made


def _made(kind: Any, message: str) -> Exception:
    """Return an exception of a class whose text is this message, without `__init__`: nobody knows its arguments."""
    argument: object = message
    if kind.__str__ is KeyError.__str__:
        argument = _shown_as(message)
    elif kind.__str__ not in _TEXT_OF_ARGUMENT:
        # Its text comes from attributes that only its constructor sets.
        about = {"__str__": lambda self: message, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
        kind = type(kind)(kind.__name__, (kind,), about)
    made: Exception = kind.__new__(kind, argument)
    made.args = () if not message else (argument,)
    return made


_TEXT_OF_ARGUMENT: Final = frozenset({BaseException.__str__, OSError.__str__, ImportError.__str__})
"""How exceptions show themselves whose text is their one argument."""


class _Key:
    """A key that is only known by how it was shown."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _shown_as(text: str) -> object:
    """Return what Python shows by a text: the text of a `KeyError` is its key, as `repr` shows it."""
    try:
        key = literal_eval(text)
    except Exception:
        return _Key(text)
    return key if repr(key) == text else _Key(text)
