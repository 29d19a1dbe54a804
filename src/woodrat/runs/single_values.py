"""Single values: types of Python that are recorded as one text or number, read back from that.

Everything here takes what it is given for what others may have written: it is checked before it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from types import MappingProxyType
from typing import Any, Final

from woodrat.canon.form import Json
from woodrat.runs import values
from woodrat.runs.values import UNSERIALISABLE

LEAVES: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("decimal", "Decimal"): "decimal",
        ("uuid", "UUID"): "uuid",
        ("fractions", "Fraction"): "fraction",
        ("datetime", "date"): "date",
        ("datetime", "datetime"): "datetime",
        ("datetime", "time"): "time",
        ("datetime", "timedelta"): "timedelta",
        **{("pathlib", name): "path" for name in ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath")},
    }
)
"""Types of the standard library that are kept as one text, by name, so that nothing is imported only to be asked."""
KEYS: Final = {int: "int", float: "float", bool: "bool", type(None): "null", tuple: "literal", bytes: "literal"}
"""How the types of keys that are no text are called."""

_TIMEDELTA: Final = re.compile(
    r"(?:(?P<days>-?\d{1,9}) days?, )?(?P<hours>\d{1,2}):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:\.(?P<micros>\d{6}))?"
)
_ISO_DURATION: Final = re.compile(
    r"-?P(?:(?P<years>\d{1,7})Y)?(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?:(?P<hours>\d{1,2})H)?(?:(?P<minutes>\d{1,2})M)?(?:(?P<seconds>\d{1,2})(?:\.(?P<micros>\d{1,6}))?S)?)?"
)
_FRACTION: Final = re.compile(r"-?\d{1,4000}(/\d{1,4000})?")
_ESCAPE: Final = re.compile(r"%([0-9A-F]{2})")


def leaf(kind: str, value: Json, node: Mapping[str, Json], standard: Callable[[str], Any]) -> Any:
    """Return a value without parts from its JSON; `standard` gives a class of the standard library by its name.

    Whatever does not fit raises.
    """
    match kind:
        case "float" | "int" | "complex":
            return _number(kind, value)
        case "negative_zero":
            if value != 0 or type(value) is not int:
                raise ValueError("not zero")
            return -0.0
        case "bool" | "null":
            return {"true": True, "false": False, "null": None}[_text(value)]
        case "text":
            return from_data(node).decode("utf-8", "surrogatepass")
        case "bytes" | "bytearray":
            data = value.encode() if isinstance(value, str) else from_data(node)
            return data if kind == "bytes" else bytearray(data)
        case "decimal" | "uuid":
            return standard(kind)(_text(value))
        case "fraction":
            if _FRACTION.fullmatch(_text(value)) is None:
                raise ValueError("not a fraction")
            return standard(kind)(value)
        case "date":
            return date.fromisoformat(_text(value))
        case "datetime" | "time":
            made = (datetime if kind == "datetime" else time).fromisoformat(_text(value))
            changes: dict[str, Any] = {"fold": 1} if node.get("fold") == 1 else {}
            if "zone" in node:
                changes["tzinfo"] = standard("zone")(_text(node["zone"]))
            return made.replace(**changes) if changes else made
        case "timedelta":
            return _duration(_text(value))
        case "literal":
            if len(_text(value)) > values.PREVIEW_CHARACTERS_MAX:
                raise ValueError("too long")
            from ast import literal_eval

            return literal_eval(_text(value))
        case "path":
            return standard(_text(node.get("class")))(_text(value))
    raise ValueError(f"unknown type {kind!r}")


def _number(kind: str, value: Json) -> Any:
    mark = value.get(UNSERIALISABLE) if isinstance(value, dict) else None
    spelled = mark.get("repr") if isinstance(mark, dict) else value
    if isinstance(spelled, str):
        if len(spelled) > values.PREVIEW_CHARACTERS_MAX:
            raise ValueError("not whole")
        return {"float": float, "int": int, "complex": complex}[kind](spelled)
    if kind != "float" or type(spelled) not in (int, float):
        raise ValueError("not a number")
    return float(spelled)  # type: ignore[arg-type]


def _duration(text: str) -> timedelta:
    """Return a duration as Python spells it, or as models do (`P1DT2H`)."""
    found = _TIMEDELTA.fullmatch(text) or _ISO_DURATION.fullmatch(text)
    if found is None:
        raise ValueError("not a duration")
    days, hours, minutes, seconds = (int(found[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    days += 365 * int(found.groupdict().get("years") or 0)
    made = timedelta(days, hours * 3_600 + minutes * 60 + seconds, int((found["micros"] or "0").ljust(6, "0")))
    return -made if text.startswith("-P") else made


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value


def to_data(data: bytes) -> dict[str, Json]:
    """Return bytes as text: as they are where they are text, else with what is none escaped (`%FF`).

    Words stay readable, so that an erasure finds them.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and "\0" not in text:
        return {"text": text}
    told = re.sub("%(?=[0-9A-F]{2})", "%25", data.decode("utf-8", "surrogateescape")).replace("\0", "%00")
    return {"escaped": re.sub("[\udc80-\udcff]", lambda found: f"%{ord(found[0]) - 0xDC00:02X}", told)}


def from_data(node: Mapping[str, Json]) -> bytes:
    """Return the bytes that a node holds."""
    if "text" in node:
        return _text(node["text"]).encode()
    parts = _ESCAPE.split(_text(node.get("escaped")))
    return b"".join(bytes([int(part, 16)]) if at % 2 else part.encode() for at, part in enumerate(parts))
