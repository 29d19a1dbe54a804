"""Moment words: times as people say them, such as `yesterday`, `2d` or `last monday`, as fixed-width UTC text.

Days are in the given time zone, else UTC, and mean their first instant, so `2026-11-16`, `yesterday` and `last monday`
are midnights there; `2d` is the same time of day, two days ago. Zones are looked up on the speaker's machine; the time
is sent and recorded in UTC. A period such as `March` or `last week` has a beginning and an end, and the caller picks
one.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from woodrat.canon import moment
from woodrat.errors import Fault, Refused, shown

EXAMPLES: Final = "yesterday, 2d or last monday"
Time = str | date
"""A time as callers send it: text, a `date`, or a `datetime`, which is a date too."""

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"([0-9]{1,6})([smhdw])(?: ago)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_CLOCK = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def resolve(text: str, now: str, zone: str | None = None) -> str | None:
    """Return the time that words mean at the moment `now`; None for other words.

    `today` and `yesterday` are days, `last monday` is the latest Monday before today, and `90s`, `30m`, `12h`, `2d` and
    `1w` lie that long ago. A date is its first instant.
    """
    if _CLOCK.match(text) is not None:
        return None
    words = text.strip().lower()
    if words == "now":
        return now
    if ago := _AGO.fullmatch(words):
        return _micros(moment.to_micros(now) - int(ago[1]) * _SECONDS[ago[2]] * 1_000_000)
    if _DATE.fullmatch(words):
        try:
            return _midnight(date.fromisoformat(words).toordinal(), zone)
        except ValueError:
            return None  # not a calendar date: the timestamp parser reports it best
    if words in ("today", "yesterday"):
        return _midnight(_today(now, zone).toordinal() - (words == "yesterday"), zone)
    first, _, day = words.partition(" ")
    if first == "last" and day in _DAYS:
        today = _today(now, zone)
        return _midnight(today.toordinal() - ((today.weekday() - _DAYS.index(day) - 1) % 7 + 1), zone)
    return None


def period(text: str, now: str, zone: str | None = None) -> tuple[str, str] | None:
    """Return the first instants of a period and of the next one; None if words are no period.

    Periods are months (`2026-03`, `March`, `in March 2025`), `this` and `last` `week`, `month` and `year`. A month
    without its year is the latest one that has begun.
    """
    words = text.strip().lower().removeprefix("in ").removeprefix("the ").split()
    today = _today(now, zone)
    if len(words) == 1 and (month := _MONTH.fullmatch(words[0])):
        return _months(zone, int(month[1]) * 12 + int(month[2]) - 1, 1)
    if words and (number := _month_number(words[0])) is not None:
        if len(words) == 1:
            return _months(zone, (today.year - (number > today.month)) * 12 + number - 1, 1)
        year = words[1] if len(words) == 2 else ""
        return _months(zone, int(year) * 12 + number - 1, 1) if re.fullmatch("[0-9]{4}", year) else None
    match words:
        case ["this" | "last" as which, "week"]:
            monday = today.toordinal() - today.weekday() - 7 * (which == "last")
            return _between(zone, monday, monday + 7)
        case ["this" | "last" as which, "month"]:
            return _months(zone, today.year * 12 + today.month - 1 - (which == "last"), 1)
        case ["this" | "last" as which, "year"]:
            return _months(zone, (today.year - (which == "last")) * 12, 12)
    return None


def _month_number(word: str) -> int | None:
    """Return the number of a month by its name or the first three letters of it."""
    names = [name for name in _MONTHS if word in (name, name[:3])]
    return _MONTHS.index(names[0]) + 1 if names else None


def _months(zone: str | None, first: int, count: int) -> tuple[str, str] | None:
    """Return a period of whole months, the first of them counted from the year 0."""
    try:
        start, end = (date(month // 12, month % 12 + 1, 1).toordinal() for month in (first, first + count))
    except ValueError:
        return None
    return _between(zone, start, end)


def _between(zone: str | None, start: int, end: int) -> tuple[str, str] | None:
    first, after = _midnight(start, zone), _midnight(end, zone)
    return None if first is None or after is None else (first, after)


def spoken(value: object, now: str, zone: str | None = None) -> object:
    """Return the time of words, a date or a `datetime`, as fixed-width text; anything else unchanged.

    A `datetime` without an offset is in the zone.
    """
    if isinstance(value, str):
        return resolve(value, now, zone) or value
    if isinstance(value, datetime):
        return _fixed(value if value.tzinfo is not None else value.replace(tzinfo=_zone(zone))) or value
    if isinstance(value, date):
        return _midnight(value.toordinal(), zone) or value
    return value


def _zone(name: str | None) -> tzinfo:
    if name is None or name.upper() == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        remedy = "Name one of the IANA list, such as Europe/Madrid; where a machine has none, install tzdata."
        raise Refused([Fault("zone", f"unknown time zone {shown(name)}", remedy)]) from None


def _today(now: str, zone: str | None) -> date:
    return datetime.fromisoformat(now[:26] + "+00:00").astimezone(_zone(zone)).date()


def _midnight(ordinal: int, zone: str | None) -> str | None:
    if ordinal < 1:
        return None
    day = date.fromordinal(ordinal)
    if zone is None:
        return f"{day.isoformat()}T00:00:00.000000Z"
    return _fixed(datetime(day.year, day.month, day.day, tzinfo=_zone(zone)))


def _fixed(time: datetime) -> str | None:
    """Return a time with its zone as text, where the calendar has it in UTC."""
    try:
        offset = time.utcoffset() or timedelta(0)
        return (time.replace(tzinfo=None) - offset).isoformat(timespec="microseconds") + "Z"
    except OverflowError:
        return None


def _micros(micros: int) -> str | None:
    try:
        return moment.from_micros(micros)
    except ValueError:
        return None
