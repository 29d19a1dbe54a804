"""Wording: the faults of a value in plain words instead of a validator's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from woodrat.errors import SHOWN_CHARACTERS_MAX, shown

if TYPE_CHECKING:
    import jsonschema_rs

OPTIONS_SHOWN_MAX: Final = 8
"""Most allowed values or forms listed in a message."""

TYPE_WORDS: Final = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "text",
}


_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} character(s)",
    "maxLength": "at most {} character(s)",
    "minItems": "at least {} element(s)",
    "maxItems": "at most {} element(s)",
    "minProperties": "at least {} key(s)",
    "maxProperties": "at most {} key(s)",
    "pattern": "text that matches {}",
}


def said(error: jsonschema_rs.ValidationError) -> tuple[str, str]:
    """Return the fault as one clause, and the remedy, to follow the word "Send"."""
    keyword, details, value = error.kind.name, error.kind.as_dict(), error.instance
    if keyword == "type":
        wish = either(TYPE_WORDS[name] for name in sorted(details["types"], key=lambda name: name == "null"))
    elif keyword == "enum":
        wish = one_of(details["options"])
    elif keyword == "const":
        wish = plain(details["expected_value"])
    elif keyword in _LIMITS:
        (limit,) = details.values()
        wish = _LIMITS[keyword].replace("(s)", "" if limit == 1 else "s").format(cut(str(limit)))
    elif keyword == "uniqueItems":
        wish = "an array without repeated elements"
    elif keyword == "required":
        return f"{plain(details['property'])} is missing", f"{plain(details['property'])} too"
    elif keyword == "additionalProperties":
        names = ", ".join(plain(name) for name in details["unexpected"][:OPTIONS_SHOWN_MAX])
        return f"unknown key {names}", f"it without {names}"
    elif keyword in ("anyOf", "oneOf") and _alternatives(error):
        wish = _alternatives(error)
    elif keyword in ("anyOf", "oneOf"):
        several = type(error.kind).__name__.endswith("OneOfMultipleValid")
        which = "more than one" if several else "none"
        return f"{shown(value)} fits {which} of the forms allowed here", "a value that fits one of them"
    elif keyword == "falseSchema":
        return f"no value is allowed here, got {shown(value)}", "it without a value here"
    else:
        return cut(error.message), "a value that fits"
    return f"expected {wish}, got {shown(value)}", wish


def _alternatives(error: jsonschema_rs.ValidationError) -> str:
    """Return the forms a value could have had under `anyOf` or `oneOf`; empty where they do not fit into a clause."""
    wishes: dict[str, None] = {}
    for branch in error.kind.as_dict()["context"]:
        here = [inner for inner in branch if list(inner.instance_path) == list(error.instance_path)]
        if not here:
            return ""
        problem, wish = said(here[0])
        if not problem.startswith("expected "):
            return ""
        wishes[wish] = None
    ordered = sorted(wishes, key=lambda wish: wish == "null")
    return either(ordered) if len(ordered) <= OPTIONS_SHOWN_MAX else ""


def one_of(options: Sequence[object]) -> str:
    """Return allowed values as prose, cut at a named number."""
    if len(options) == 1:
        return plain(options[0])
    more = len(options) - OPTIONS_SHOWN_MAX
    names = ", ".join(plain(option) for option in options[:OPTIONS_SHOWN_MAX])
    return f"one of {names}" + (f" and {more} more" if more > 0 else "")


def plain(value: object) -> str:
    """Render `value` as `shown` does, without its kind."""
    return shown(value).rsplit(" (", 1)[0]


def either(words: Iterable[str]) -> str:
    """Return alternatives as prose: `a`, `a or b`, `a, b or c`."""
    listed = list(words)
    return " or ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)


def steps(path: Iterable[str | int]) -> str:
    """Return a path into a value as people write it: `.address.zip`, `.tags[0]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def cut(text: str) -> str:
    """Return the first line of `text`, cut where a value in a message would be."""
    line = text.partition("\n")[0]
    return line if len(line) <= 2 * SHOWN_CHARACTERS_MAX else line[: 2 * SHOWN_CHARACTERS_MAX] + "…"


def json_type(value: object) -> str:
    """Return the JSON type of `value`, `integer` for a number without a fraction."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if value == int(value) else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
