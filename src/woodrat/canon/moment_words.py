"""Moment words: times as people say them, such as `yesterday`, `2d` or `last monday`, as fixed-width UTC text.

Days are those of UTC and mean their first instant, so `2026-11-16`, `yesterday` and `last monday` are midnights;
`2d` is the same time of day, two days ago.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from woodrat.canon import moment

EXAMPLES: Final = "yesterday, 2d or last monday"

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"([0-9]{1,6})([smhdw])(?: ago)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def resolve(text: str, now: str) -> str | None:
    """Return the time that words mean at the moment `now`; None where they are none of ours.

    `today` and `yesterday` are days, `last monday` is the latest Monday before today, and `90s`, `30m`, `12h`, `2d`
    and `1w` lie that long ago. A date is its first instant.
    """
    words = text.strip().lower()
    if words == "now":
        return now
    today = date.fromisoformat(now[:10])
    if ago := _AGO.fullmatch(words):
        return _micros(moment.to_micros(now) - int(ago[1]) * _SECONDS[ago[2]] * 1_000_000)
    if _DATE.fullmatch(words):
        try:
            return _midnight(date.fromisoformat(words).toordinal())
        except ValueError:
            return None  # no calendar has it, which whoever reads timestamps says best
    if words in ("today", "yesterday"):
        return _midnight(today.toordinal() - (words == "yesterday"))
    first, _, day = words.partition(" ")
    if first == "last" and day in _DAYS:
        return _midnight(today.toordinal() - ((today.weekday() - _DAYS.index(day) - 1) % 7 + 1))
    return None


def _midnight(ordinal: int) -> str | None:
    return None if ordinal < 1 else f"{date.fromordinal(ordinal).isoformat()}T00:00:00.000000Z"


def _micros(micros: int) -> str | None:
    try:
        return moment.from_micros(micros)
    except ValueError:
        return None
