"""Moment: timestamps as UTC text of one width, so that the order of text is the order of time.

`2024-05-01T14:00:00+02:00` becomes `2024-05-01T12:00:00.000000Z`. A time that cannot be kept exactly is refused, never
rounded.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Final

from woodrat.errors import Fault, Refused, shown

CHARACTERS: Final = 27
"""Length of every fixed-width moment."""

EXAMPLE: Final = "2024-05-01T14:00:00+02:00"

_FIXED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))?"
)
_LONG_YEAR = re.compile(r"[+-]?[0-9]{5,}-")
_DATE_ONLY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def parse(text: object, path: str = "") -> str:
    """Return an RFC 3339 timestamp as fixed-width UTC text, or raise `Refused`."""
    result = _read(text, path)
    if isinstance(result, Fault):
        raise Refused([result])
    return result


def fault(text: object, path: str = "") -> Fault | None:
    """Return the fault of a timestamp, or None if `parse` accepts it."""
    result = _read(text, path)
    return result if isinstance(result, Fault) else None


def is_fixed(text: object) -> bool:
    """Return True if `text` is a real moment in fixed-width form already, which `parse` returns unchanged."""
    if type(text) is not str or len(text) != CHARACTERS or _FIXED.fullmatch(text) is None:
        return False
    return _is_second(text[:19])


@lru_cache(maxsize=64)
def _is_second(text: str) -> bool:
    """Return True if text in the form of a second is a real one; the result is cached per second."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return text[11:13] != "24"  # later Pythons take it for midnight


def from_micros(micros_since_epoch: int) -> str:
    """Return the moment a number of microseconds after 1970-01-01T00:00:00Z; raise ValueError outside 0001 .. 9999."""
    seconds, micros = divmod(micros_since_epoch, 1_000_000)
    return f"{_second(seconds)}.{micros:06d}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    """Return the second a number of seconds after 1970-01-01T00:00:00, as text; the result is cached."""
    days, rest = divmod(seconds, 86_400)
    minutes, second = divmod(rest, 60)
    hour, minute = divmod(minutes, 60)
    ordinal = days + _EPOCH_DAY
    if not date.min.toordinal() <= ordinal <= date.max.toordinal():
        raise ValueError(f"{days} days after 1970 lie outside the years 0001 to 9999")
    return f"{date.fromordinal(ordinal).isoformat()}T{hour:02d}:{minute:02d}:{second:02d}"


@lru_cache(maxsize=64)
def _seconds(text: str) -> int:
    """Return the seconds from 1970-01-01T00:00:00 to a second written as text; raise ValueError if there is none."""
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"not a time of day: {shown(text)}")
    days = date(int(text[:4]), int(text[5:7]), int(text[8:10])).toordinal() - _EPOCH_DAY
    return ((days * 24 + hour) * 60 + minute) * 60 + second


@lru_cache(maxsize=64)
def to_micros(fixed: str) -> int:
    """Return the microseconds from 1970-01-01T00:00:00Z to a fixed-width moment; raise ValueError for other text."""
    if _FIXED.fullmatch(fixed) is None:
        raise ValueError(f"not a fixed-width moment: {shown(fixed)}")
    return _seconds(fixed[:19]) * 1_000_000 + int(fixed[20:26])


def _read(text: object, path: str) -> str | Fault:
    """Return the fixed-width form, or the first thing that is wrong."""
    if type(text) is not str:
        return Fault(
            path, f"expected a timestamp as text, got {shown(text)}", f"Send RFC 3339 text, such as {EXAMPLE}."
        )
    if is_fixed(text):
        return text
    match = _RFC3339.fullmatch(text)
    if match is None:
        return _shape_fault(text, path)
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction, sign, offset_hours, offset_minutes = match.groups()[6:]
    if fraction is not None and len(fraction) > 6:
        problem = f"{shown(text)} has {len(fraction)} digits after the second, where 6 (microseconds) is the limit"
        return Fault(path, problem, "Send microseconds at most; keep finer times in a field of their own, as text.")
    if year == 0:
        return Fault(path, f"{shown(text)} is in the year 0000", "Send a year from 0001 to 9999.")
    if hour == 24:
        return Fault(path, f"{shown(text)} has the hour 24", "Send 00:00:00 of the next day.")
    if second == 60:
        return Fault(path, f"{shown(text)} is a leap second", "Send second 59, or second 00 of the next minute.")
    if hour > 24 or minute > 59 or second > 60:
        return Fault(path, f"{shown(text)} is not a time of day", "Send 00:00:00 to 23:59:59.")
    try:
        moment = datetime(year, month, day, hour, minute, second, int((fraction or "").ljust(6, "0")))
    except ValueError:
        return Fault(path, f"{shown(text)} is not a day of the calendar", "Send a date that exists.")
    if not text.endswith(("Z", "z")) and sign is None:
        return Fault(
            path,
            f"{shown(text)} has no UTC offset",
            "Append Z for UTC, or an offset such as +02:00.",
        )
    if sign is not None:
        hours, minutes = int(offset_hours), int(offset_minutes)
        if hours > 23 or minutes > 59:
            return Fault(path, f"{shown(text)} has an offset beyond 23:59", "Send an offset from -23:59 to +23:59.")
        offset = timedelta(hours=hours, minutes=minutes)
        try:
            moment = moment - offset if sign == "+" else moment + offset
        except OverflowError:
            problem = f"{shown(text)} lies outside the years 0001 to 9999 in UTC"
            return Fault(path, problem, "Send a moment from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999Z.")
    return moment.isoformat(timespec="microseconds") + "Z"  # without timespec, isoformat omits a zero fraction


def _shape_fault(text: str, path: str) -> Fault:
    """Return the reason why `text` is not RFC 3339, as exactly as possible."""
    if not text.isascii():
        problem = f"{shown(text)} holds characters other than ASCII"
        return Fault(path, problem, f"Write digits 0 to 9 and plain signs, such as {EXAMPLE}.")
    if _LONG_YEAR.match(text):
        return Fault(path, f"{shown(text)} has a year of more than four digits", "Send a year from 0001 to 9999.")
    if _DATE_ONLY.fullmatch(text):
        try:
            date.fromisoformat(text)
        except ValueError:  # a time would not help it
            return Fault(path, f"{shown(text)} is not a day of the calendar", "Send a date that exists.")
        problem = f"{shown(text)} is a date without a time"
        return Fault(path, problem, f"Add time and offset, such as {text}T00:00:00Z.")
    if text[10:11] == " " and _RFC3339.fullmatch(text[:10] + "T" + text[11:]):
        return Fault(path, f"{shown(text)} has a space between date and time", "Write T between date and time.")
    return Fault(path, f"{shown(text)} is not an RFC 3339 timestamp", f"Send text such as {EXAMPLE}.")
