"""Bounding: whatever an agent's code hands over becomes JSON of a known size.

Nothing here ever raises for a value: what JSON cannot say, what is too long and what is to be hidden is shown as such,
in the shapes of docs/formats/runs.md. Cost is proportional to the value, up to a named number of parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from enum import Enum
from hashlib import sha256
from operator import index
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.canon.order import order_key
from woodrat.log.erasure import ERASED
from woodrat.record_json import IN_PYTHON_ONLY
from woodrat.records import fields_of, is_record
from woodrat.state.redaction import NOTHING as NOTHING
from woodrat.state.redaction import REDACTED as REDACTED

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from woodrat.canon.form import Json

VALUE_BYTES_MAX: Final = 65_536
"""Bound of an argument list, inputs, messages, facts, a rule's `when`, an answer; also of long text."""
RESULT_BYTES_MAX: Final = 262_144
"""Bound of what a tool returned or a model answered: what two runs are compared by, and a replay answers with."""
ITEM_BYTES_MAX: Final = 4_096
"""Bound of one actual, operand or field read; also of short text."""
ENTRY_BYTES_MAX: Final = 262_144
"""How much one entry holds before its further values are shown without a preview."""
PREVIEW_CHARACTERS_MAX: Final = 256
"""How much of a value that was cut, or that is no JSON, is shown."""
PARTS_MAX: Final = 250_000
"""How many parts of a value are walked."""
DEPTH_MAX: Final = 40
"""How many levels of a value are kept; an entry has some of its own around them."""

TRUNCATED: Final = "$truncated"
UNSERIALISABLE: Final = "$unserialisable"

_TROUBLE = re.compile("[\0\ud800-\udfff]")
_ADDRESS = re.compile(r"\b0x[0-9A-Fa-f]{4,}")
_GLIMPSE_ITEMS = 32  # of a value too long to walk, that many items are enough for a preview
_GLIMPSE_LEVELS = 3
_SCALAR_BYTES = 16  # what a number, a boolean or null counts for
_FULL_BYTES_MAX = 64  # what is kept of a value as it is when its entry is full


def bounded(
    value: object,
    bytes_max: int = VALUE_BYTES_MAX,
    hidden: Container[str] = NOTHING,
    *,
    preview_characters: int = PREVIEW_CHARACTERS_MAX,
) -> Json:
    """Return `value` as JSON of at most `bytes_max` canonical bytes, or as the mark of one that is longer."""
    return _measured(plain(value, hidden), bytes_max, preview_characters)[0]


def _measured(found: Json, bytes_max: int, preview_characters: int) -> tuple[Json, int]:
    """Return a value within its bound, and about how many bytes it takes."""
    if type(found) is str:
        if len(found) * 6 + 2 <= bytes_max:
            return found, len(found) + 2  # it fits even if every character needs an escape
    elif type(found) is not list and type(found) is not dict:
        return found, _SCALAR_BYTES
    data = form.serialise(found)
    if len(data) <= bytes_max or is_mark(found):
        return found, len(data)
    return {TRUNCATED: _cut(found, data, preview_characters)}, 128 + preview_characters


def _cut(value: Json, data: bytes, preview_characters: int) -> dict[str, Json]:
    """Return what the mark of a value says that is cut, given its canonical bytes."""
    cut: dict[str, Json] = {"bytes": len(data), "digest": sha256(data).hexdigest()}
    if preview_characters:
        shown = value if isinstance(value, str) else data[: preview_characters * 4].decode("utf-8", "ignore")
        cut["preview"] = shown[:preview_characters]
    return cut


def plain(value: object, hidden: Container[str] = NOTHING) -> Json:
    """Return `value` as JSON of whatever length; only one with too many parts is cut."""
    kind = type(value)
    if value is None or kind is bool:
        return value  # type: ignore[return-value]
    if kind is str and value.isascii() and "\0" not in value:  # type: ignore[attr-defined, operator]
        return value  # type: ignore[return-value]
    if kind is int and -form.INTEGER_MAX <= value <= form.INTEGER_MAX:  # type: ignore[operator]
        return value  # type: ignore[return-value]
    if kind is float:
        return _float(value)  # type: ignore[arg-type]
    walk = _Walk(hidden)
    try:
        return walk.value(value, 0)
    except _TooManyParts:
        return {TRUNCATED: {"bytes": walk.parts * 2, "preview": _glimpse(value, hidden)}}
    except Exception:  # not even the recursion limit, or a hostile __class__, may break the agent
        return _unserialisable(value)


def is_whole(value: Json) -> bool:
    """Return whether nothing in a recorded value was cut, hidden, replaced or erased."""
    todo: list[Json] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str) and item in (REDACTED, ERASED):
            return False
        if isinstance(item, dict):
            if is_mark(item):
                return False
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
    return True


def shows(recorded: Json, value: Json) -> bool:
    """Return whether a recorded value is this one: whole, cut, or with parts of it hidden."""
    if recorded == REDACTED or form.same(recorded, value):
        return True
    if isinstance(recorded, dict) and is_cut(recorded):
        whole = _cut(value, form.serialise(value), PREVIEW_CHARACTERS_MAX)
        cut = recorded[TRUNCATED]
        return cut == whole or cut == {name: whole[name] for name in ("bytes", "digest")}
    if isinstance(recorded, dict) and isinstance(value, dict):
        return recorded.keys() == value.keys() and all(shows(recorded[name], value[name]) for name in value)
    if isinstance(recorded, list) and isinstance(value, list):
        return len(recorded) == len(value) and all(map(shows, recorded, value))
    return False


def is_cut(value: object) -> bool:
    """Return whether a recorded value stands for a longer one."""
    return type(value) is dict and len(value) == 1 and TRUNCATED in value


def is_mark(value: object) -> bool:
    """Return whether a recorded value stands for one that could not be kept."""
    return type(value) is dict and len(value) == 1 and (TRUNCATED in value or UNSERIALISABLE in value)


def text(value: object, bytes_max: int = ITEM_BYTES_MAX) -> str:
    """Return `value` as text of bounded length that JSON can hold; a cut is shown."""
    if type(value) is str:
        if len(value) <= bytes_max and value.isascii() and "\0" not in value:
            return value
    elif not isinstance(value, str):
        found = plain(value)
        value = found if isinstance(found, str) else form.serialise(found).decode()
    printable = clean(str(value))
    data = printable.encode()
    if len(data) <= bytes_max:
        return printable
    return f"{data[:bytes_max].decode(errors='ignore')}… [{len(data)} bytes]"


def error(problem: BaseException) -> dict[str, Json]:
    """Return an exception as type and message."""
    try:
        said = str(problem)
    except Exception:
        said = _repr(problem)
    return {"type": type_name(problem), "message": text(said)}


def type_name(value: object) -> str:
    """Return the name of a value's type, with its module unless it is built in."""
    kind = type(value)
    module, name = kind.__module__, kind.__qualname__
    return clean(name if module == "builtins" else f"{module}.{name}")


class Budget:
    """How much one entry has room for: values that come late in a long one are shown without a preview."""

    def __init__(self, bytes_max: int = ENTRY_BYTES_MAX) -> None:
        self._left = bytes_max

    def take(self, value: Json, bytes_max: int = ITEM_BYTES_MAX) -> Json:
        """Return plain JSON bounded to `bytes_max`, or to nearly nothing once the entry is full."""
        kind = type(value)
        if kind is int or kind is float or kind is bool or value is None:
            self._left -= _SCALAR_BYTES
            return value
        if self._left > 0:
            found, size = _measured(value, bytes_max, PREVIEW_CHARACTERS_MAX)
        else:
            found, size = _measured(value, _FULL_BYTES_MAX, 0)
        self._left -= size
        return found


def fit(body: dict[str, Json], bytes_max: int = form.BODY_BYTES_MAX) -> bytes:
    """Return the canonical bytes of a body; should it still be too long, its longest parts are cut first."""
    data = form.serialise(body)
    if len(data) <= bytes_max:
        return data
    sizes = sorted(((len(form.serialise(value)), name) for name, value in body.items()), reverse=True)
    for _, name in sizes:
        body = {**body, name: bounded(body[name], ITEM_BYTES_MAX)}
        data = form.serialise(body)
        if len(data) <= bytes_max:
            break
    return data


class _TooManyParts(Exception):
    """The value is not walked any further."""


class _Walk:
    """One walk through one value."""

    __slots__ = ("_hidden", "_inside", "parts")

    def __init__(self, hidden: Container[str]) -> None:
        self._hidden = hidden
        self._inside: set[int] = set()
        self.parts = 0

    def value(self, value: Any, depth: int) -> Json:
        kind = type(value)
        if kind is str:
            # Mostly plain letters, told without a further call.
            if value.isascii() and "\0" not in value:
                return value  # type: ignore[no-any-return]
            return value if _is_text(value) else _unserialisable(value)
        if kind is bool or value is None:
            return value  # type: ignore[no-any-return]
        if kind is int:
            in_range = -form.INTEGER_MAX <= value <= form.INTEGER_MAX
            return value if in_range else _unserialisable(value)
        if kind is float:
            return _float(value)
        if kind is dict:
            return self._inner(value, depth, self._mapping)
        if kind is list or kind is tuple:
            return self._inner(value, depth, self._sequence)
        try:
            return self._foreign(value, depth)
        except _TooManyParts:
            raise
        except Exception:
            return _unserialisable(value)

    def _inner(self, value: Any, depth: int, walk: Callable[[Any, int], Json]) -> Json:
        if id(value) in self._inside:
            return _mark(value, "it holds itself")
        if depth >= DEPTH_MAX:
            return _mark(value, f"more than {DEPTH_MAX} levels")
        self.parts += len(value)
        if self.parts > PARTS_MAX:
            raise _TooManyParts
        self._inside.add(id(value))
        try:
            return walk(value, depth + 1)
        finally:
            self._inside.discard(id(value))

    def _sequence(self, value: Any, depth: int) -> Json:
        # A copy first: another thread may change the value meanwhile.
        return [self.value(item, depth) for item in list(value)]

    def _mapping(self, value: Any, depth: int) -> Json:
        found: dict[str, Json] = {}
        for key, item in list(value.items()):
            name = key if type(key) is str and _is_text(key) else _key(key)
            if name in found:
                return _mark(value, "several of its keys are one as text")
            found[name] = REDACTED if name in self._hidden else self.value(item, depth)
        return found

    def _set(self, value: Any, depth: int) -> Json:
        return sorted((self.value(item, depth) for item in list(value)), key=order_key)

    def _foreign(self, value: Any, depth: int) -> Json:
        kind = type(value)
        if isinstance(value, Enum):
            return self.value(value.value, depth + 1) if depth < DEPTH_MAX else _unserialisable(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return _bytes(value)
        if isinstance(value, type):
            return _unserialisable(value)
        if callable(getattr(kind, "model_dump", None)):
            return self._inner(_dumped(value), depth, self._mapping)
        names = field_names(value)
        if names is not None:
            fields = {name: getattr(value, name) for name in names}
            return self._cyclic(value, fields, depth)
        if isinstance(value, Mapping):
            return self._inner(value, depth, self._mapping)
        if isinstance(value, set | frozenset):
            return self._inner(value, depth, self._set)
        if isinstance(value, list | tuple) or (kind.__module__, kind.__name__) == ("collections", "deque"):
            return self._inner(value, depth, self._sequence)
        if isinstance(value, str):
            return self.value(str.__str__(value), depth)
        if isinstance(value, int):
            return self.value(int(value), depth)
        if isinstance(value, float):
            return _float(float(value))
        if isinstance(value, datetime | date | time):
            return value.isoformat()
        if isinstance(value, timedelta) or (kind.__module__, kind.__name__) in _TEXTS:
            return self.value(str(value), depth)
        if kind.__module__.startswith("woodrat.") and callable(getattr(kind, "to_json", None)):
            return self.value(value.to_json(), depth)
        if kind.__module__ == "numpy" and hasattr(kind, "tolist"):
            return self._array(value, depth)
        if hasattr(kind, "__fspath__"):
            return self.value(value.__fspath__(), depth)
        if hasattr(kind, "__index__"):
            return self.value(index(value), depth)
        return _unserialisable(value)

    def _array(self, value: Any, depth: int) -> Json:
        if value.size > PARTS_MAX - self.parts:
            return _unserialisable(value)
        return self.value(value.tolist(), depth)

    def _cyclic(self, value: object, fields: dict[str, Any], depth: int) -> Json:
        """Walk the fields of an object that may hold itself."""
        if id(value) in self._inside:
            return _mark(value, "it holds itself")
        self._inside.add(id(value))
        try:
            return self._inner(fields, depth, self._mapping)
        finally:
            self._inside.discard(id(value))


_TEXTS: Final = frozenset({("decimal", "Decimal"), ("uuid", "UUID"), ("fractions", "Fraction")})
"""Types that are kept as their text; by name, so that nothing is imported only to be asked for."""


def field_names(value: Any) -> Iterable[str] | None:
    """Return the names of an object's fields, if it is one that has them: dataclass, named tuple, msgspec, attrs."""
    kind = type(value)
    if is_record(kind):
        return [name for name, field in fields_of(kind).items() if field.metadata is not IN_PYTHON_ONLY]
    if (fields := getattr(kind, "__dataclass_fields__", None)) is not None:
        from dataclasses import fields as of

        return [field.name for field in of(value)] if isinstance(fields, dict) else None
    if isinstance(value, tuple) and isinstance(names := getattr(kind, "_fields", None), tuple):
        return names
    if isinstance(names := getattr(kind, "__struct_fields__", None), tuple):
        return names
    if isinstance(found := getattr(kind, "__attrs_attrs__", None), tuple):
        return [attribute.name for attribute in found]
    return None


def _dumped(value: Any) -> Mapping[str, Any]:
    try:
        found = value.model_dump(mode="json")
    except Exception:  # another library's model_dump, or a field that has no JSON
        found = value.model_dump()
    if not isinstance(found, Mapping):
        raise TypeError("model_dump gave no mapping")
    return found


def _key(key: object) -> str:
    if isinstance(key, str):
        return clean(str.__str__(key))
    found = plain(key)
    if isinstance(found, str):
        return found
    return text(found) if isinstance(found, int | float | bool | None) else _repr(key)


def _float(number: float) -> Json:
    if not math.isfinite(number) or (number.is_integer() and form.INTEGER_MAX < abs(number) < 1e21):
        return _unserialisable(number)
    return number if number != 0 else 0


def _is_text(value: str) -> bool:
    if value.isascii():
        return "\0" not in value
    return not _TROUBLE.search(value)


def clean(value: str) -> str:
    """Return text with halves of surrogate pairs and NUL written as escapes."""
    if _is_text(value):
        return value
    return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def _bytes(value: bytes | bytearray | memoryview) -> Json:
    data = bytes(value)
    shown = repr(data[: PREVIEW_CHARACTERS_MAX // 4])
    marked: dict[str, Json] = {"type": type_name(value), "repr": shown, "bytes": len(data)}
    return {UNSERIALISABLE: {**marked, "digest": sha256(data).hexdigest()}}


def _unserialisable(value: object) -> Json:
    return _mark(value, _repr(value))


def _mark(value: object, shown: str) -> Json:
    try:
        name = type_name(value)
    except Exception:
        name = "object"
    return {UNSERIALISABLE: {"type": name, "repr": shown}}


def _repr(value: object) -> str:
    """Return how Python shows a value, the same in every process: without addresses, and cut."""
    try:
        if type(value) is int and value.bit_length() > 4_096:
            shown = f"an integer of {value.bit_length()} bits"
        else:
            shown = repr(value if type(value) is not str else value[: PREVIEW_CHARACTERS_MAX * 2])
        shown = _ADDRESS.sub("0x…", shown[: PREVIEW_CHARACTERS_MAX * 8])
    except Exception:
        return "it cannot be shown"
    shown = clean(shown)
    return shown if len(shown) <= PREVIEW_CHARACTERS_MAX else shown[:PREVIEW_CHARACTERS_MAX] + "…"


def _glimpse(value: object, hidden: Container[str]) -> str:
    """Return the beginning of a value that is too long to walk, in the order it has."""
    try:
        found = _Walk(hidden).value(_few(value, hidden, _GLIMPSE_LEVELS), 0)
        return form.serialise(found).decode()[:PREVIEW_CHARACTERS_MAX]
    except Exception:
        return _repr(type(value))


def _few(value: object, hidden: Container[str], levels: int) -> object:
    if type(value) is dict:
        items = [pair for pair, _ in zip(value.items(), range(_GLIMPSE_ITEMS), strict=False)]
        shown = {key: REDACTED if type(key) is str and key in hidden else item for key, item in items}
        return {key: _few(item, hidden, levels - 1) for key, item in shown.items()} if levels else "…"
    if type(value) in (list, tuple):
        return [_few(item, hidden, levels - 1) for item in value[:_GLIMPSE_ITEMS]] if levels else "…"  # type: ignore[index]
    return value if type(value) in (str, int, float, bool, type(None)) else _mark(value, "…")
