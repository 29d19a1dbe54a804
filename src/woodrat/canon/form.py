"""Form: canonical JSON, one spelling per value.

The bytes are those of RFC 8785 (JCS). Two functions guard the entrance: `faults` for Python values and `parse` for JSON
text. Both refuse values that are not stable under parse, print and parse; neither ever changes a value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias, cast

import orjson

from woodrat.errors import Fault, Refused, pointer_part, shown

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A JSON value in Python."""

INTEGER_MAX: Final = 2**53 - 1
"""Largest magnitude of an integer; every integer up to here has one double and one spelling."""

DEPTH_MAX: Final = 64
"""Deepest nesting of arrays and objects, including the outermost."""

BODY_BYTES_MAX: Final = 1_048_576
"""Longest canonical form of one value (1 MiB). No value with more parts than this can fit, so walks stop there."""

_EXPONENT_FROM = 1e21  # from here on JCS prints an exponent, so the number reads back as the same float
_SCALARS = frozenset({str, int, bool, type(None)})
_CONTAINERS = frozenset({list, dict})
_NUL = b"\\u0000"  # how orjson spells it; an escaped backslash before it only costs a second look
_PLAIN_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER


# -- from values to bytes ---------------------------------------------------------------------------------------------


def encode(value: object) -> bytes:
    """Return the canonical bytes of `value`, or raise `Refused` with everything that is wrong with it.

    `1.0` and `1` are the same value with one spelling, `1`.
    """
    data: bytes | None = None
    if _is_plain(value):
        try:
            data = orjson.dumps(value, option=_PLAIN_OPTIONS)
        except orjson.JSONEncodeError:  # an integer out of range or a lone surrogate: the walk below finds its place
            data = None
        else:
            if b"\\u0000" in data:  # NUL, or a backslash before u0000: the walk tells them apart
                data = None
    if data is None:
        found = faults(value)
        if found:
            raise Refused(found)
        data = _spell(value)
    if len(data) > BODY_BYTES_MAX:
        raise Refused([_too_long(f"{len(data)} bytes in canonical form", "")])
    return data


def decode(data: bytes) -> Any:
    """Return the value of canonical bytes that `encode` wrote, without checks.

    A float with an integral value is spelled and parsed as an integer: `1.0` is read as `1`.
    """
    return orjson.loads(data)


def normal(value: object) -> Json:
    """Return `value` as it will be read back, `decode(encode(value))`; raise `Refused` as `encode` does."""
    return cast(Json, decode(encode(value)))


class Spelled(bytes):
    """Canonical bytes of a value."""


def copied(value: Json) -> Json:
    """Return a copy that its receiver may change."""
    if type(value) is list:
        return [copied(item) for item in value]
    if type(value) is dict:
        return {name: copied(item) for name, item in value.items()}
    return value


def serialise(value: object) -> bytes:
    """Return the RFC 8785 bytes of an internal value, without checks and limits of size or depth.

    Raise ValueError or TypeError for values outside RFC 8785: NaN, infinities, lone surrogates, types that JSON lacks,
    and integers that no double holds, since two of them would share their bytes.
    """
    if type(value) in _SCALARS or _is_plain(value):
        try:
            return orjson.dumps(value, option=_PLAIN_OPTIONS)
        except orjson.JSONEncodeError:
            pass  # an integer beyond INTEGER_MAX may still be a double; anything else fails again below, by name
    return _spell(value)


def serialise_plain(value: object) -> bytes:
    """Like `serialise`, for a value without floats whose keys are all ASCII; does not walk it."""
    try:
        return orjson.dumps(value, option=_PLAIN_OPTIONS)
    except orjson.JSONEncodeError:
        return serialise(value)


def is_canonical(data: bytes, value: object) -> bool:
    """Return True if bytes are the RFC 8785 spelling of the value that `decode` reads from them."""
    if type(value) is dict and _is_shallow(value):
        return is_spelled(data, value)
    return _is_serialised(data, value)


def is_spelled(data: bytes, value: object) -> bool:
    """Return the result of `is_canonical` for a value known to have no floats."""
    try:
        # Without floats and without keys beyond U+FFFF, orjson with sorted keys writes the same bytes as RFC 8785.
        if data.isascii():
            return orjson.dumps(value, option=_PLAIN_OPTIONS) == data
    except (TypeError, ValueError):
        return False
    return _is_serialised(data, value)


def are_plain(values: Iterable[object]) -> bool:
    """Return True if all values are scalars other than floats."""
    return _SCALARS.issuperset(map(type, values))


def _is_serialised(data: bytes, value: object) -> bool:
    try:
        return serialise(value) == data
    except (TypeError, ValueError):
        return False


def _is_shallow(value: dict[str, Any]) -> bool:
    """Return True if an object holds only scalars other than floats, and containers of such."""
    for item in value.values():
        kind = type(item)
        if kind is dict:
            if not are_plain(item.values()):
                return False
        elif kind is list:
            if not are_plain(item):
                return False
        elif kind not in _SCALARS:
            return False
    return True


def spell_text(text: str) -> bytes:
    """Return the canonical bytes of text that a door let in."""
    return orjson.dumps(text)


def quick(value: object, outer: int = 0) -> bytes | None:
    """Return the canonical bytes of a valid value if a quick look shows that it is valid; else None.

    None does not mean invalid: `faults` and `encode` take longer and decide. `outer` is as for `faults`.
    """
    if _is_plain(value, DEPTH_MAX - outer):
        try:
            data = orjson.dumps(value, option=_PLAIN_OPTIONS)
        except orjson.JSONEncodeError:
            return None
        if _NUL not in data and len(data) <= BODY_BYTES_MAX:
            return data
    return None


def quick_flat(value: dict[str, Any]) -> bytes | None:
    """Do as `quick` does for an object that holds only text, integers, booleans, null and lists of these.

    Its names are sound.
    """
    try:
        data = orjson.dumps(value, option=_PLAIN_OPTIONS)
    except orjson.JSONEncodeError:
        return None
    return data if _NUL not in data and len(data) <= BODY_BYTES_MAX else None


def _is_plain(value: object, depth_max: int = DEPTH_MAX) -> bool:
    """Return True if orjson, sorting keys, spells `value` as RFC 8785 does, or does not spell it at all.

    orjson itself checks integers (`OPT_STRICT_INTEGER`), that text is Unicode and that keys are exactly text. Checked
    here: exact types of values; keys without characters beyond U+FFFF, where UTF-16 order differs from code point
    order; floats that both spell without an exponent and with a fraction; the depth and number of parts that a body may
    have.
    """
    kind = type(value)
    if kind not in _CONTAINERS:
        return kind in _SCALARS or (kind is float and _is_plain_float(cast(float, value)))
    keys: list[str] = []
    if _walk(value, depth_max, BODY_BYTES_MAX, keys) < 0:  # type: ignore[arg-type]
        return False
    try:
        joined = "".join(keys)
    except TypeError:  # a key that is no text at all
        return False
    return joined.isascii() or max(joined) <= "\uffff"


def _walk(container: list[Any] | dict[str, Any], depth: int, room: int, keys: list[str]) -> int:
    """Collect the keys of plain values; return the remaining budget of parts, negative for other values.

    Room bounds the walk through a value that holds itself, or one part very often.
    """
    room -= len(container)
    if depth == 0 or room < 0:
        return -1
    if type(container) is dict:
        keys += container
        items: Iterable[Any] = container.values()
    else:
        items = container
    for item in items:
        kind = type(item)
        if kind is str or kind is int or item is None or kind is bool:
            continue
        if kind is dict or kind is list:
            room = _walk(item, depth - 1, room, keys)
            if room < 0:
                return -1
        elif kind is not float or not _is_plain_float(item):
            return -1
    return room


def _is_plain_float(number: float) -> bool:
    return 1e-4 <= abs(number) < 1e15 and not number.is_integer()


def _spell(value: object) -> bytes:
    """Write `value` piece by piece, as RFC 8785 says; slower than orjson, exact for everything, as deep as you like."""
    written: list[bytes] = []
    todo: list[Any] = [_piece(value)]  # containers still to open, and finished bytes, the next one last
    while todo:
        item = todo.pop()
        if type(item) is bytes:
            written.append(item)
        elif not item:
            written.append(b"[]" if type(item) is list else b"{}")
        elif (data := _spell_flat(item)) is not None:
            written.append(data)
        elif type(item) is list:
            todo.append(b"]")
            for child in reversed(item):
                todo.append(_piece(child))
                todo.append(b",")
            todo[-1] = b"["
        else:
            todo.append(b"}")
            for key in _keys_descending(item):
                todo.append(_piece(item[key]))
                todo.append(b"," + orjson.dumps(key) + b":")
            todo[-1] = b"{" + todo[-1][1:]
    return b"".join(written)


def _spell_flat(item: list[Any] | dict[Any, Any]) -> bytes | None:
    """Return the bytes of a container that holds only scalars without floats, if orjson spells it as RFC 8785 does."""
    if not are_plain(item.values() if type(item) is dict else item):
        return None
    try:
        if type(item) is list or "".join(item).isascii():
            return orjson.dumps(item, option=_PLAIN_OPTIONS)
    except TypeError:  # a non-text key, a non-JSON integer, or a lone surrogate: the walk reports each
        pass
    return None


def _keys_descending(item: dict[Any, Any]) -> list[str]:
    """Return the keys by their UTF-16 code units, last first; that is code point order while all stay below U+10000."""
    for key in item:
        if type(key) is not str:
            raise TypeError(f"a key is not text: {shown(key)}")
    if (joined := "".join(item)).isascii() or max(joined) <= "\uffff":
        return sorted(item, reverse=True)
    return sorted(item, key=lambda key: key.encode("utf-16-be", "surrogatepass"), reverse=True)


def _piece(value: object) -> object:
    """Return the bytes of a scalar; a container unchanged."""
    kind = type(value)
    if kind in _CONTAINERS:
        return value
    if kind is float:
        return _spell_float(cast(float, value))
    if kind is int:
        number = cast(int, value)
        if -INTEGER_MAX <= number <= INTEGER_MAX:
            return b"%d" % number
        try:
            nearest = float(number)
        except OverflowError:
            nearest = math.inf
        if nearest != number:
            raise ValueError(f"no double holds {shown(value)}")
        return _spell_float(nearest)
    if kind in _SCALARS:
        return orjson.dumps(value)
    raise TypeError(f"not a JSON value: {shown(value)}")


def _spell_float(number: float) -> bytes:
    """Spell a double as ECMAScript does (RFC 8785, 3.2.2.3): shortest digits, an exponent outside 1e-6 .. 1e21."""
    if not math.isfinite(number):
        raise ValueError(f"RFC 8785 has no spelling for {number!r}")
    if number == 0:
        return b"0"  # also for -0.0, as ECMAScript prints it
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)  # the position of the decimal point, counted from the first digit
    digits = whole + fraction
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        text = digits + "0" * (point - count)
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = digits[0] + ("." + digits[1:] if count > 1 else "") + f"e{point - 1:+d}"
    return (("-" if number < 0 else "") + text).encode("ascii")


# -- refused values ----------------------------------------------------------------------------------------------------

_Trail: TypeAlias = "tuple[_Trail, str | int] | None"
"""The steps down to a value, last one first; turned into a path only to report a fault."""


def faults(value: object, path: str = "", outer: int = 0) -> list[Fault]:
    """Return everything in `value` that has no stable canonical form, in the order of the value; `path` leads to it.

    Only exact JSON types pass: a subclass (an enum member, an OrderedDict) may print as something other than it is.
    Below `DEPTH_MAX` and beyond `BODY_BYTES_MAX` parts nothing is checked: one fault reports it. `outer` is the number
    of containers around the value.
    """
    found: list[Fault] = []
    todo: list[tuple[Any, _Trail, int]] = [(value, None, 1 + outer)]
    parts, deep = 0, False
    while todo:
        item, trail, depth = todo.pop()
        kind = type(item)
        if kind is str:
            if fault := _text_fault(item, "the text", path, trail):
                found.append(fault)
        elif kind is int:
            if not -INTEGER_MAX <= item <= INTEGER_MAX:
                found.append(_integer_fault(shown(item), _pointer(path, trail)))
        elif kind is float:
            if fault := _float_fault(item, path, trail):
                found.append(fault)
        elif kind is list or kind is dict or kind is _Repeating:
            if depth > DEPTH_MAX:
                if not deep:
                    found.append(_too_deep(_pointer(path, trail)))
                deep = True
                continue
            parts += len(item)
            if parts > BODY_BYTES_MAX:
                found.append(_too_long(f"more than {BODY_BYTES_MAX} parts", path))
                return found
            if kind is list:
                todo.extend((item[index], (trail, index), depth + 1) for index in range(len(item) - 1, -1, -1))
            else:
                todo.extend(reversed(_members(item, path, trail, depth, found)))
        elif kind is _Literal:
            found.append(Fault(_pointer(path, trail), item.problem, item.remedy))
        elif item is not None and kind is not bool:
            found.append(_foreign_fault(item, _pointer(path, trail)))
    return found


def _members(
    item: dict[Any, Any] | _Repeating, path: str, trail: _Trail, depth: int, found: list[Fault]
) -> list[tuple[Any, _Trail, int]]:
    """Return the values of an object with the steps to them; add the faults of its keys to `found`."""
    members: list[tuple[Any, _Trail, int]] = []
    seen: set[str] = set()
    for key, child in item.items():
        if type(key) is not str:
            found.append(Fault(_pointer(path, trail), f"the key {shown(key)} is not text", "Send keys as text."))
            members.append((child, (trail, shown(key)), depth + 1))
            continue
        here = (trail, key)
        if fault := _text_fault(key, "the key", path, here):
            found.append(fault)
        if key in seen:
            found.append(
                Fault(
                    _pointer(path, here),
                    f"the key {shown(key)} appears more than once in one object",
                    "Send each key once; send several values as an array.",
                )
            )
        seen.add(key)
        members.append((child, here, depth + 1))
    return members


def _text_fault(text: str, what: str, path: str, trail: _Trail) -> Fault | None:
    if text.isascii():
        if "\0" not in text:
            return None
    elif not _TEXT_TROUBLE.search(text):
        return None
    if "\0" in text:
        return Fault(_pointer(path, trail), f"{what} {shown(text)} holds NUL (U+0000)", "Send it without NUL.")
    return Fault(
        _pointer(path, trail),
        f"{what} {shown(text)} holds half a surrogate pair, which is not a character",
        "Send whole characters, or the bytes as base64 text.",
    )


_TEXT_TROUBLE = re.compile("[\0\ud800-\udfff]")


def _float_fault(number: float, path: str, trail: _Trail) -> Fault | None:
    if not math.isfinite(number):
        return Fault(
            _pointer(path, trail),
            f"{number!r} is not a JSON number",
            "Send null, or send it as text.",
        )
    if number == 0 and math.copysign(1.0, number) < 0:
        return _negative_zero("-0.0", _pointer(path, trail))
    if number.is_integer() and INTEGER_MAX < abs(number) < _EXPONENT_FROM:
        return _integer_fault(shown(number), _pointer(path, trail))
    return None


def _integer_fault(what: str, pointer: str) -> Fault:
    return Fault(
        pointer,
        f"{what} is an integer beyond ±{INTEGER_MAX} (2^53 - 1) and not stable: other readers round it",
        "Send it as text.",
    )


def _negative_zero(what: str, pointer: str) -> Fault:
    return Fault(pointer, f"{what} is negative zero, which JSON prints as 0", "Send 0, or send it as text.")


def _too_deep(pointer: str) -> Fault:
    return Fault(
        pointer,
        f"arrays and objects are nested more than {DEPTH_MAX} deep",
        "Send a flatter value, or send the inner part as JSON text.",
    )


def _too_long(what: str, pointer: str) -> Fault:
    return Fault(
        pointer,
        f"the value is too long: {what}, where {BODY_BYTES_MAX} bytes is the limit",
        "Send it in several parts, or store it as a source.",
    )


def _foreign_fault(item: object, pointer: str) -> Fault:
    remedies = (_REMEDIES[base.__name__] for base in type(item).__mro__ if base.__name__ in _REMEDIES)
    remedy = next(remedies, "Send null, a boolean, a number, text, a list or a dict.")
    return Fault(pointer, f"a Python {type(item).__name__} is not a JSON value", remedy)


# by name, so that no module is imported only for a refusal
_REMEDIES: Final = {
    "str": "Send a plain str: its value, not a member of an enum or another subclass.",
    "int": "Send a plain int: its value, not a member of an enum or another subclass.",
    "float": "Send a plain float, or send it as text.",
    "dict": "Send a plain dict.",
    "list": "Send a plain list.",
    "tuple": "Send a list.",
    "set": "Send a sorted list.",
    "frozenset": "Send a sorted list.",
    "bytes": "Send it as base64 text, or store it as a source.",
    "bytearray": "Send it as base64 text, or store it as a source.",
    "Decimal": "Send it as text.",
    "UUID": "Send it as text.",
    "datetime": "Send it as RFC 3339 text with an offset.",
    "date": "Send it as text.",
}


def _pointer(path: str, trail: _Trail) -> str:
    """Return `path` and the steps after it as a JSON Pointer (RFC 6901) that can be printed anywhere."""
    steps: list[str] = []
    while trail is not None:
        trail, step = trail
        steps.append("/" + pointer_part(str(step)))
    return path + "".join(reversed(steps))


# -- from text to values ----------------------------------------------------------------------------------------------


class _Literal:
    """Stands in a parsed value for a literal that was refused, until the walk knows its path."""

    __slots__ = ("problem", "remedy")

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy


class _Repeating:
    """Stands in a parsed value for an object that has a key twice; keeps every member."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs

    def __len__(self) -> int:
        return len(self.pairs)

    def items(self) -> list[tuple[str, Any]]:
        return self.pairs


class _ParseHooks:
    """The hooks of one parse; `doubtful` after anything that the walk must check."""

    __slots__ = ("doubtful",)

    def __init__(self) -> None:
        self.doubtful = False

    def _refuse(self, fault: Fault) -> _Literal:
        self.doubtful = True
        return _Literal(fault.problem, fault.remedy)

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Repeating:
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        self.doubtful = True
        return _Repeating(pairs)

    def integer(self, literal: str) -> int | _Literal:
        if len(literal) <= 17:
            number = int(literal)
            if -INTEGER_MAX <= number <= INTEGER_MAX and literal != "-0":
                return number
            if number == 0:
                return self._refuse(_negative_zero(literal, ""))
        return self._refuse(_integer_fault(_cut(literal), ""))

    def floating(self, literal: str) -> int | float | _Literal:
        number = float(literal)
        if not number.is_integer():  # has a fraction, or is infinite
            if math.isinf(number):
                return self._refuse(Fault("", f"{_cut(literal)} is beyond the largest double", "Send it as text."))
            return number
        if number == 0:
            if any(digit in "123456789" for digit in re.split("[eE]", literal, maxsplit=1)[0]):
                return self._refuse(
                    Fault("", f"{_cut(literal)} is closer to zero than any double but zero", "Send it as text.")
                )
            if literal.startswith("-"):
                return self._refuse(_negative_zero(_cut(literal), ""))
        if abs(number) <= INTEGER_MAX:
            return int(number)
        if abs(number) < _EXPONENT_FROM:
            return self._refuse(_integer_fault(_cut(literal), ""))
        return number

    def constant(self, literal: str) -> _Literal:
        return self._refuse(Fault("", f"{literal} is not a JSON number", "Send null, or send it as text."))


def parse(text: str | bytes) -> Json:
    """Return the value of JSON text from outside, or raise `Refused` with all its faults.

    Strict RFC 8259 in UTF-8. Faults of numbers and keys are reported all at once; malformed text stops at its first
    fault, with line and column. Numbers become the nearest double, and integral ones become integers, so the result
    equals `decode(encode(result))`. The caller limits the length: a batch may be longer than a body.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            problem = f"byte 0x{text[error.start]:02x} at offset {error.start} is not UTF-8"
            raise Refused([Fault("", problem, "Send the text in UTF-8.")]) from None
    elif not text.isascii() and (half := _SURROGATE.search(text)):
        problem = f"the text holds half a surrogate pair at {_place(text, half.start())}"
        raise Refused([Fault("", problem, "Send whole characters, or the bytes as base64 text.")])
    if text.startswith("\ufeff"):
        raise Refused([Fault("", "the text begins with a byte order mark", "Send UTF-8 without a byte order mark.")])
    if (bracket := _first_too_deep(text)) is not None:
        fault = _too_deep("")
        raise Refused([Fault("", f"{fault.problem} at {_place(text, bracket)}", fault.remedy)])
    reader = _ParseHooks()
    decoder = json.JSONDecoder(
        object_pairs_hook=reader.pairs,
        parse_int=reader.integer,
        parse_float=reader.floating,
        parse_constant=reader.constant,
    )
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Refused([_malformed(text, error)]) from None
    # half a surrogate pair and NUL can only come from an escape: their raw forms are refused earlier
    if (reader.doubtful or "\\u" in text) and (found := faults(value)):
        raise Refused(found)
    return cast(Json, value)


_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)


def _first_too_deep(text: str) -> int | None:
    """Return the place of the first bracket beyond `DEPTH_MAX`, so that no parser recurses further; else None."""
    if text.count("[") + text.count("{") <= DEPTH_MAX:
        return None
    depth = 0
    for match in _TEXT_OR_BRACKET.finditer(text):
        token = text[match.start()]
        if token == "[" or token == "{":
            depth += 1
            if depth > DEPTH_MAX:
                return match.start()
        elif token != '"':
            depth -= 1
    return None


_EXPECTED = (
    ("Expecting value", "expected a value", "Send one JSON value."),
    ("Expecting property name", "expected a key in double quotes", "Write keys as text in double quotes."),
    ("Expecting ':'", "expected ':' after the key", "Write a colon between key and value."),
    ("Expecting ','", "expected ',' or the closing bracket", "Write a comma between members."),
    ("Illegal trailing comma", "expected no comma before the closing bracket", "Leave out the last comma."),
    ("Extra data", "expected the end of the text after the value", "Send one JSON value and nothing after it."),
    ("Unterminated string", "expected '\"' at the end of the text that begins here", "Close the text."),
    ("Invalid control character", "expected no control character inside text", "Write it as an escape, such as \\n."),
    ("Invalid \\escape", 'expected one of "\\/bfnrtu after a backslash', "Write a backslash as \\\\."),
    ("Invalid \\uXXXX", "expected four hexadecimal digits after \\u", "Write the escape with four digits."),
)


def _malformed(text: str, error: json.JSONDecodeError) -> Fault:
    """Return the token that the parser expected, in words that do not depend on the parser's version."""
    expected, remedy = error.msg, "Send valid JSON (RFC 8259)."
    for begins, ours, ours_remedy in _EXPECTED:
        if error.msg.startswith(begins):
            expected, remedy = ours, ours_remedy
            break
    got = ascii(text[error.pos : error.pos + 1]) if error.pos < len(text) else "the end of the text"
    return Fault("", f"not JSON at {_place(text, error.pos)}: {expected}, got {got}", remedy)


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line} column {position - text.rfind(chr(10), 0, position)}"


def _cut(literal: str) -> str:
    return literal if len(literal) <= 40 else f"{literal[:40]}… ({len(literal)} characters)"


# -- equality ---------------------------------------------------------------------------------------------------------


def same(a: Json, b: Json) -> bool:
    """Return True if two values have equal canonical bytes, so that 1 and true differ."""
    if type(a) is type(b) and (type(a) is str or type(a) is int):
        return a == b
    return serialise(a) == serialise(b)
