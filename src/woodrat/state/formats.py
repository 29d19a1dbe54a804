"""Formats: the checks of `format` in a schema on stored text, made at surfaces and never in a merge.

The checks are pinned and part of Woodrat: the same text is valid on every machine and under every version of a library.
Other formats are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from woodrat.canon.form import Json
from woodrat.errors import Fault, pointer_part, shown
from woodrat.state.redaction import REDACTED

DEPTH_MAX: Final = 16
"""Depth in a schema up to which formats are searched."""

# Patterns are compiled when a value is first checked: all of them take as long as a tenth of a short command.
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|[+-]([0-9]{2}):([0-9]{2}))"
_SURE_DATE_TIME = (
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])[Tt ]"
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?[Zz]"
)
"""Moments in UTC on days that every month has."""
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
_EMAIL = rf"(?a:[ \t]*[^\s@\"(),:;<>\[\\\]]+@{_LABEL}(?:\.{_LABEL})*[ \t]*)"
_URI = r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
_DOMAIN_LABEL = r"[A-Za-z0-9\u00a1-\U0010ffff](?:[A-Za-z0-9\u00a1-\U0010ffff-]{0,61}[A-Za-z0-9\u00a1-\U0010ffff])?"
_DOMAIN = rf"[ \t]*{_DOMAIN_LABEL}(?:\.{_DOMAIN_LABEL})*[ \t]*"
_YEAR = r"[0-9]{4}"
_UUID = r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"
_IPV4 = r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!$)|$)){4}"


def _is_date(text: str) -> bool:
    found = re.fullmatch(_DATE, text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] + leap


def _is_time(text: str) -> bool:
    found = re.fullmatch(_TIME, text)
    if found is None:
        return False
    hour, minute, second, off_hour, off_minute = (int(part or 0) for part in found.groups())
    return hour < 24 and minute < 60 and second < 61 and off_hour < 24 and off_minute < 60


def _is_date_time(text: str) -> bool:
    if re.fullmatch(_SURE_DATE_TIME, text) is not None:  # one comparison settles nearly all
        return True
    return text[10:11] in ("T", "t", " ") and _is_date(text[:10]) and _is_time(text[11:])


def _is_date_or_date_time(text: str) -> bool:
    return _is_date(text) or _is_date_time(text)


def _is_date_or_year(text: str) -> bool:
    return _is_date(text) or re.fullmatch(_YEAR, text) is not None


def _is_host(text: str) -> bool:
    return len(text) <= 253 and re.fullmatch(_HOST, text) is not None


def _matcher(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


CHECKS: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    "date": (_is_date, "a date such as 2026-01-05"),
    "date-time": (_is_date_time, "a time with its offset such as 2026-01-05T09:00:00Z"),
    "time": (_is_time, "a time of day with its offset such as 09:00:00Z"),
    "email": (_matcher(_EMAIL), "an e-mail address such as ana@example.org"),
    "hostname": (_is_host, "a host name such as example.org"),
    "ipv4": (_matcher(_IPV4), "an IPv4 address such as 192.0.2.1"),
    "uri": (_matcher(_URI), "an address with its scheme such as https://example.org"),
    "domain": (_matcher(_DOMAIN), "an internet domain such as example.org"),
    "date or date-time": (_is_date_or_date_time, "a date such as 2026-01-05, or a time with its offset"),
    "date or year": (_is_date_or_year, "a date such as 2026-01-05, or a year"),
    "uuid": (_matcher(_UUID), "a UUID such as 123e4567-e89b-12d3-a456-426614174000"),
}
"""Every checked format, with an example; those from `domain` to `date or year` are of built-in types.

Spaces around an e-mail address or a domain are allowed: identity trims them.
"""

Find = Callable[[Json, str], Iterator[Fault]]
"""Yields the faults of a value at a path."""
Fits = Callable[[Json], bool]
"""Whether a value fits a subschema, formats aside."""
COMBINED: Final = ("$ref", "allOf", "anyOf", "oneOf")
"""Keywords that apply other subschemas to the same value, which may have formats too."""


def compile_checks(document: Mapping[str, Any]) -> dict[str, Callable[[str], bool]]:
    """Return tests of text, by field, for fields that state a format and apply no other schema.

    They test text alone, as `compile_formats` does, without describing faults.
    """
    properties = document.get("properties")
    found = properties.items() if isinstance(properties, Mapping) else ()
    return {
        name: CHECKS[each["format"]][0]
        for name, each in found
        if isinstance(each, Mapping)
        and not any(keyword in each for keyword in COMBINED)
        and str(each.get("format")) in CHECKS
    }


def compile_formats(document: Mapping[str, Any], fits: Callable[[str], Fits]) -> dict[str, Find]:
    """Return checks of values, by field, for fields whose schema states a format anywhere.

    `fits` tests a value against the subschema at a pointer: a format counts only in a branch that the value takes.
    """
    properties = document.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    compiler = _Compiler(document, fits)
    made = (
        (name, compiler.compile(each, f"/properties/{pointer_part(name)}", f"{document.get('title')}.{name}", 0))
        for name, each in properties.items()
    )
    return {name: find for name, find in made if find is not None}


class _Compiler:
    """Finds the formats in the subschemas of one document."""

    def __init__(self, document: Mapping[str, Any], fits: Callable[[str], Fits]) -> None:
        self._document = document
        self._fits = fits

    def compile(self, schema: Any, pointer: str, name: str, depth: int) -> Find | None:
        """Return a check of a value against the formats in its schema; None if there are none.

        Formats are its own, those of its items and members, and those of subschemas applied to the same value.
        """
        if not isinstance(schema, Mapping) or depth > DEPTH_MAX:
            return None
        check = CHECKS.get(str(schema.get("format")))
        items = self.compile(schema.get("items"), f"{pointer}/items", name, depth + 1)
        members: dict[str, Find] = {}
        inside = schema.get("properties")
        for member, each in inside.items() if isinstance(inside, Mapping) else ():
            at = f"{pointer}/properties/{pointer_part(member)}"
            find = self.compile(each, at, f"{name}.{member}", depth + 1)
            if find is not None:
                members[member] = find
        same = self._applied(schema, pointer, name, depth)
        if check is None and items is None and not members:
            return None if not same else same[0] if len(same) == 1 else _all(same)

        def faults(value: Json, path: str) -> Iterator[Fault]:
            if isinstance(value, str):
                if check is not None and value != REDACTED and not check[0](value):
                    yield Fault(
                        path, f"{name}: got {shown(value)}, which is not {check[1]}", "Send it so, or leave it out."
                    )
            elif isinstance(value, list):
                for index, element in enumerate(value) if items is not None else ():
                    yield from items(element, f"{path}/{index}")  # type: ignore[misc]
            elif isinstance(value, dict):
                for member, find in members.items():
                    if member in value:
                        yield from find(value[member], f"{path}/{pointer_part(member)}")

        return _all([faults, *same]) if same else faults

    def _applied(self, schema: Mapping[str, Any], pointer: str, name: str, depth: int) -> list[Find]:
        """Return a check of a value against the formats of subschemas applied to the same value."""
        found: list[Find | None] = []
        ref = schema.get("$ref")
        if isinstance(ref, str) and ref.startswith("#/$defs/"):
            target = self._document.get("$defs", {}).get(ref.removeprefix("#/$defs/"))
            found.append(self.compile(target, ref[1:], name, depth + 1))
        for index, each in enumerate(_listed(schema, "allOf")):
            found.append(self.compile(each, f"{pointer}/allOf/{index}", name, depth + 1))
        for keyword in ("anyOf", "oneOf"):
            places = [(each, f"{pointer}/{keyword}/{index}") for index, each in enumerate(_listed(schema, keyword))]
            finds = [self.compile(each, at, name, depth + 1) for each, at in places]
            if any(find is not None for find in finds):
                branches = [(self._fits(at), find) for (_, at), find in zip(places, finds, strict=True)]
                found.append(_any(branches))
        return [find for find in found if find is not None]


def _listed(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else []


def _all(finds: Sequence[Find]) -> Find:
    """Return a check of a value against the formats of several subschemas that all apply."""

    def faults(value: Json, path: str) -> Iterator[Fault]:
        told: set[Fault] = set()
        for find in finds:
            for fault in find(value, path):
                if fault not in told:
                    told.add(fault)
                    yield fault

    return faults


def _any(branches: Sequence[tuple[Fits, Find | None]]) -> Find:
    """Return a check of a value against alternative branches: those that it fits apart from formats."""

    def faults(value: Json, path: str) -> Iterator[Fault]:
        wrong: list[Fault] = []
        for fits, find in branches:
            if fits(value):
                problems = [] if find is None else list(find(value, path))
                if not problems:
                    return
                wrong += problems
        yield from dict.fromkeys(wrong)

    return faults
