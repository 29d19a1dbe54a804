"""JSON values: what other tools write into their files, as the values that a log can keep.

Recordings have numbers and texts that canonical JSON has no spelling for, and one of them must not cost the whole file:
negative zero becomes 0; an integer beyond 2^53, NaN and the infinities become text; halves of surrogate pairs and NUL
are written as escapes. A text of more than 16 MiB is a fault, and so is a result, a response or any other value of a
step that takes more: nobody reads it in a record, and most of it would be cut.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.errors import Fault, Refused, pointer_part
from woodrat.runs import values
from woodrat.state import schema_faults as state_faults
from woodrat.state import validator

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    import jsonschema_rs

TEXT_CHARACTERS_MAX: Final = 16 * 1_048_576
"""Longest text in an imported document."""
VALUE_CHARACTERS_MAX: Final = TEXT_CHARACTERS_MAX
"""How many characters the texts of one value may have, with one for each of its parts."""
_ONE_VALUE: Final = frozenset({"content", "result", "output", "outputs", "response", "args", "arguments"})
"""Members that are one value of a step in every format; too long a one is told of before anything is made of it."""
_FAULTS_MAX: Final = 100
"""After how many faults a document is not looked at any further."""


def parse(data: str | bytes) -> Any:
    """Return the value of JSON text as other tools write it; raise `Refused` for what is not JSON."""
    try:
        return form.parse(data)
    except Refused as refusal:
        try:
            return json.loads(data, object_pairs_hook=_members)
        except (ValueError, RecursionError):
            raise refusal from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    return found


def long_values(values: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Yield a fault for each value of a step that is too long to be kept."""
    for name, value in values.items():
        size = _characters(value)
        if size > VALUE_CHARACTERS_MAX:
            problem = f"it has more than {size} characters, and {VALUE_CHARACTERS_MAX} is the limit of one value"
            remedy = "Cut it before it is imported, or store it as a source."
            yield Fault(f"{path}/{pointer_part(name)}", problem, remedy)


def _characters(value: Any) -> int:
    """Return how many characters the texts and parts of a value have; counting stops beyond the limit."""
    kind = type(value)
    if kind is str:
        return len(value)
    if kind is not dict and kind is not list:
        return 1
    count, level = 0, [value]
    while level and count <= VALUE_CHARACTERS_MAX:
        inner: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str:
                count += len(item)
            elif kind is dict:
                count += sum(map(len, item))
                inner += item.values()
            elif kind is list:
                inner += item
        count += len(level)
        level = inner
    return count


def keepable(document: object, faults: list[Fault]) -> Any:
    """Return a document with nothing in it that a log cannot keep; what cannot be helped is added to `faults`."""
    return _kept(document, "", 1, faults)


def _kept(value: Any, path: str, depth: int, faults: list[Fault]) -> Any:
    kind = type(value)
    if kind is str:
        if len(value) > TEXT_CHARACTERS_MAX:
            problem = f"the text has {len(value)} characters, and {TEXT_CHARACTERS_MAX} is the limit"
            faults.append(Fault(path, problem, "Cut it before it is imported, or store it as a source."))
            return ""
        return value if value.isascii() and "\0" not in value else values.clean(value)
    if kind is bool or value is None:
        return value
    if kind is int:
        return value if -form.INTEGER_MAX <= value <= form.INTEGER_MAX else _digits(value)
    if kind is float:
        return _number(value)
    if kind is not dict and kind is not list:
        faults += form.faults(value, path)
        return None
    if depth > form.DEPTH_MAX or len(faults) > _FAULTS_MAX:
        if depth > form.DEPTH_MAX:
            problem = f"arrays and objects are nested more than {form.DEPTH_MAX} deep"
            faults.append(Fault(path, problem, "Send a flatter value, or send the inner part as JSON text."))
        return None
    if kind is list:
        items = [_kept(item, f"{path}/{number}", depth + 1, faults) for number, item in enumerate(value)]
        return items if any(one is not other for one, other in zip(items, value, strict=True)) else value
    found: dict[str, Any] = {}
    changed = False
    for name, item in value.items():
        if type(name) is not str:
            faults += form.faults({name: None}, path)
            continue
        if name in _ONE_VALUE and type(item) in (dict, list) and (long := [*long_values({name: item}, path)]):
            faults += long
            continue
        key = name if name.isascii() and "\0" not in name else values.clean(name)
        found[key] = _kept(item, f"{path}/{pointer_part(name)}", depth + 1, faults)
        changed = changed or found[key] is not item or key is not name
    return found if changed else value


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python prints no integer of more than 4,300 digits
        return f"an integer of {number.bit_length()} bits"


def _number(number: float) -> Any:
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return 0
    return str(int(number)) if number.is_integer() and form.INTEGER_MAX < abs(number) < 1e21 else number


# Documents of the exchange formats


@lru_cache(maxsize=2)
def schema(file: str) -> dict[str, Any]:
    """Return the JSON Schema of an exchange format, as its file writes it."""
    from importlib import resources

    found: Any = form.parse(resources.files(__package__).joinpath(file).read_bytes())
    assert isinstance(found, dict)
    return found


@lru_cache(maxsize=2)
def _validator(file: str) -> jsonschema_rs.Draft202012Validator:
    return validator.validator(validator.checkable(schema(file)))


def schema_faults(file: str, document: Any, path: str) -> list[Fault]:
    """Return where a document does not fit the schema of its format, each fault with the JSON Pointer of the value."""
    faults = []
    for error in validator.errors(_validator(file), document):
        problem, wish = state_faults.said(error)
        where = path + "".join(f"/{pointer_part(str(step))}" for step in error.instance_path)
        faults.append(Fault(where, problem, f"Send {wish}."))
    return faults


def without_nulls(document: Mapping[str, Any], lists: Iterable[str], telling: Collection[str]) -> dict[str, Any]:
    """Return a document without the nulls by which many tools say that something is not there, in its lists too."""
    found = {name: value for name, value in document.items() if value is not None}
    for name in lists:
        if isinstance(found.get(name), list):
            found[name] = [
                {key: value for key, value in item.items() if value is not None or key in telling}
                if isinstance(item, dict)
                else item
                for item in found[name]
            ]
    return found
