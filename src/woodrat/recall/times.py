"""Times in questions: `last Monday`, `in March`, `two weeks ago`, as a stretch of time.

Days are those of UTC. What was said of the past means the latest such time: in November, `in March` is this year's
March and `in December` last year's.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Final

from woodrat.canon import moment
from woodrat.recall import words
from woodrat.record_json import Record
from woodrat.records import dataclass

_MONTHS: Final = (
    "january jan enero januar janvier janeiro",
    "february feb febrero februar fevrier fevereiro",
    "march mar marzo marz maerz mars marco",
    "april apr abril avril",
    "may mayo mai maio",
    "june jun junio juni juin junho",
    "july jul julio juli juillet julho",
    "august aug agosto aout",
    "september sep sept septiembre septembre setembro",
    "october oct octubre oktober octobre outubro",
    "november nov noviembre novembre novembro",
    "december dec diciembre dezember decembre dezembro",
)
_DAYS: Final = (
    "monday lunes montag lundi segunda-feira",
    "tuesday martes dienstag mardi terca-feira",
    "wednesday miercoles mittwoch mercredi quarta-feira",
    "thursday jueves donnerstag jeudi quinta-feira",
    "friday viernes freitag vendredi sexta-feira",
    "saturday sabado samstag samedi",
    "sunday domingo sonntag dimanche",
)
_MONTH_OF: Final = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_DAY_OF: Final = {name: number for number, names in enumerate(_DAYS) for name in names.split()}
_NUMBERS: Final = {
    word: number
    for number, said in enumerate(
        [
            "a an one un una ein eine une um uma",
            "two dos zwei deux dois duas",
            "three tres drei trois",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
        ],
        1,
    )
    for word in said.split()
}
_UNIT_DAYS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}
_QUARTER: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1": 1, "2": 2, "3": 3, "4": 4}

_month = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_day = "|".join(sorted(_DAY_OF, key=len, reverse=True))
_number = "|".join(_NUMBERS)
_PREPOSITION = "(?:in|during|en|im|em|durante|since|from|of|back in|for)"
_PATTERNS: Final = tuple(
    (name, re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])"))
    for name, pattern in (
        ("date", r"(?:on )?([0-9]{4})-([0-9]{2})-([0-9]{2})"),
        ("day_month", rf"(?:on |am |el |le )?(?:the )?([0-9]{{1,2}})(?:st|nd|rd|th|er|\.)? (?:of |de )?({_month})(?:,? (?:de )?([0-9]{{4}}))?"),
        ("month_day", rf"(?:on )?({_month}) ([0-9]{{1,2}})(?:st|nd|rd|th)?(?:,? ([0-9]{{4}}))?(?! ?%)"),
        ("month", rf"{_PREPOSITION} (?:early |late |mid-?|the month of )?({_month})(?: (?:of |de )?([0-9]{{4}}))?"),
        ("month", rf"({_month}) ([0-9]{{4}})"),
        ("last_month", rf"(?:last|this past) ({_month})"),
        ("quarter", r"(?:in |during )?(?:the )?(?:q([1-4])|(first|second|third|fourth) quarter)(?: (?:of )?([0-9]{4}))?"),
        ("year", rf"{_PREPOSITION} ([12][0-9]{{3}})"),
        ("today", r"today|this morning|this afternoon|tonight|hoy|heute|aujourd'hui|hoje"),
        ("yesterday", r"yesterday|last night|ayer|gestern|hier|ontem"),
        ("before_yesterday", r"the day before yesterday|anteayer|vorgestern|avant-hier|anteontem"),
        ("weekday", rf"(?:on |last |this |this past |past |el |el pasado |am |letzten |le |na |na ultima )*({_day})(?: pasado| passado| passada| dernier)?(?: last week)?"),
        ("ago", rf"(?:about |around )?([0-9]{{1,3}}|{_number}|a couple of|a few|several) (day|week|month|year)s? (?:ago|back|earlier)"),
        ("within", rf"(?:in |over |during |within )?the (?:last|past) (?:([0-9]{{1,3}}|{_number}|couple of|few|several) )?(day|week|month|year)s?"),
        ("this", r"this (week|month|year)|(?:diese|dieser) (?:woche)|esta (?:semana)|cette (?:semaine)"),
        ("last", r"last (week|month|year|quarter)"),
        ("last_week", r"la semana pasada|letzte woche|la semaine derniere|(?:na )?semana passada"),
        ("last_month_foreign", r"el mes pasado|letzten monat|le mois dernier|(?:no )?mes passado"),
        ("last_year", r"el ano pasado|letztes jahr|l'annee derniere|l'an dernier|(?:no )?ano passado"),
    )
)  # fmt: skip
_ANY: Final = re.compile(r"(?:\b(?:a|an|any|every|each|most|some)|\bon a) $")
"""What a day of the week stands after that is no day in particular."""


@dataclass(frozen=True, slots=True)
class TimeWords(Record):
    """What a question says about when, and how it was understood."""

    words: str
    """The words of the question."""
    since: str
    """The first instant that they mean (UTC)."""
    until: str
    """The first instant after what they mean (UTC)."""
    relative: bool
    """Whether they are counted from the present, as `last Monday`; `in March 2025` is not, and may be part of what is
    asked about instead."""
    start: int = 0
    """Where in the question they begin."""
    end: int = 0
    """Where they end."""


def understood(question: str, now: str) -> TimeWords | None:
    """Return the stretch of time that a question asks about at the moment `now`; none where it names none."""
    text = _lowered(question)
    today = date.fromisoformat(now[:10])
    found: list[TimeWords] = []
    for name, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if name == "weekday" and _ANY.search(text, 0, match.start()):
                continue
            stretch = _stretch(name, match, today)
            if stretch is None:
                continue
            first, after = stretch
            found.append(
                TimeWords(
                    question[match.start() : match.end()].strip(),
                    f"{first.isoformat()}T00:00:00.000000Z",
                    f"{after.isoformat()}T00:00:00.000000Z",
                    _is_relative(name, match[0]),
                    match.start(),
                    match.end(),
                )
            )
    # The longest words tell most: "the day before yesterday", and not "yesterday".
    return max(found, key=lambda each: (each.end - each.start, -each.start), default=None)


def names_in(said: str) -> frozenset[str]:
    """Return the months and days of the week among some words about time, as terms of passages have them."""
    found = (word for word in re.split(r"[^\w-]+", _lowered(said)) if word in _MONTH_OF or word in _DAY_OF)
    return frozenset(map(words.stem, found))


def _is_relative(name: str, said: str) -> bool:
    """Return whether words are counted from the present; a day of the week alone may be what is asked about."""
    if name == "weekday":
        return any(mark in said for mark in ("last", "past", "pasad", "passad", "letzt", "dernier", "ultim"))
    return name not in ("date", "day_month", "month_day", "month", "year", "quarter")


def _lowered(question: str) -> str:
    """Return a question in lower case without accents, letter for letter, so that places stay the same."""
    return "".join(folded if len(folded := words.fold(letter).lower()) == 1 else letter for letter in question)


def _stretch(name: str, match: re.Match[str], today: date) -> tuple[date, date] | None:
    try:
        return _known_stretch(name, match, today)
    except (ValueError, OverflowError):
        return None


def _known_stretch(name: str, match: re.Match[str], today: date) -> tuple[date, date] | None:
    one = timedelta(days=1)
    if name == "date":
        day = date(int(match[1]), int(match[2]), int(match[3]))
        return day, day + one
    if name in ("day_month", "month_day"):
        number, month = (match[1], match[2]) if name == "day_month" else (match[2], match[1])
        day = date(int(match[3]) if match[3] else today.year, _MONTH_OF[month], int(number))
        if not match[3] and day > today:
            day = day.replace(year=day.year - 1)
        return day, day + one
    if name in ("month", "last_month"):
        month = _MONTH_OF[match[1]]
        year = int(match[2]) if name == "month" and match[2] else today.year - (month > today.month)
        if name == "last_month" and month == today.month:
            year -= 1
        return _of_month(year, month)
    if name == "quarter":
        quarter = int(match[1]) if match[1] else _QUARTER[match[2]]
        year = int(match[3]) if match[3] else today.year - ((quarter - 1) * 3 + 1 > today.month)
        return date(year, quarter * 3 - 2, 1), _of_month(year, quarter * 3)[1]
    if name == "year":
        return date(int(match[1]), 1, 1), date(int(match[1]) + 1, 1, 1)
    if name == "today":
        return today, today + one
    if name == "yesterday":
        return today - one, today
    if name == "before_yesterday":
        return today - 2 * one, today - one
    if name == "weekday":
        if match[0].strip() in ("mar",):
            return None
        back = (today.weekday() - _DAY_OF[match[1]] - 1) % 7 + 1
        if "this" in match[0] and back == 7:
            back = 0
        day = today - back * one
        return day, day + one
    if name == "ago":
        days = _count(match[1]) * _UNIT_DAYS[match[2]]
        # "Three weeks ago" is not to the day.
        slack = {"day": 0, "week": 3, "month": 15, "year": 180}[match[2]]
        day = today - days * one
        return day - slack * one, day + (slack + 1) * one
    if name == "within":
        return today - _count(match[1] or "one") * _UNIT_DAYS[match[2]] * one, today + one
    if name in ("this", "last", "last_week", "last_month_foreign", "last_year"):
        unit = {"last_week": "week", "last_month_foreign": "month", "last_year": "year"}.get(name) or match[1] or "week"
        return _whole(unit, today, back=name != "this")
    return None


def _whole(unit: str, today: date, *, back: bool) -> tuple[date, date]:
    """Return this week, month or year, or the one before."""
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return monday, monday + timedelta(days=7)
    if unit == "year":
        year = today.year - back
        return date(year, 1, 1), date(year + 1, 1, 1)
    if unit == "quarter":
        number = today.year * 4 + (today.month - 1) // 3 - back
        return date(number // 4, number % 4 * 3 + 1, 1), _of_month(number // 4, number % 4 * 3 + 3)[1]
    number = today.year * 12 + today.month - 1 - back
    return _of_month(number // 12, number % 12 + 1)


def _of_month(year: int, month: int) -> tuple[date, date]:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _count(said: str) -> int:
    if said.isdigit():
        return int(said)
    return _NUMBERS.get(said) or {"a couple of": 2, "couple of": 2, "a few": 3, "few": 3, "several": 4}[said]


def micros(fixed: str) -> int:
    """Return a time of fixed width in microseconds."""
    return moment.to_micros(fixed)
