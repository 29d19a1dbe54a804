"""Volatile: values that are made up anew by every run, such as random ids and times, and so say nothing.

A difference counts as volatile only where both sides are of one volatile kind. Whether a run used the value later is
for the comparison to know: what was used is never set aside.
"""

from __future__ import annotations

import re
from typing import Final

from woodrat.canon.form import Json

TIME, RANDOM_ID, DURATION = "time", "random id", "duration"
"""The kinds of volatile values."""

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_ULID = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
_HEX = r"(?=[0-9a-fA-F]*[0-9])(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{12,}"
_PREFIXED = (
    r"(?:call|chatcmpl|cmpl|msg|req|resp|run|thread|step|asst|toolu|tool|trace|span|session|sess|evt|event|fc|rs|lc_run|lc"
    r"|obs|ent|src|int|gen|id)[-_]{1,2}(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{8,}"
)
_MOMENT = (
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s?(?:Z|UTC|[+-]\d{2}:?\d{2}))?"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2}(?: GMT)?"
)
_TOKENS: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?P<time>{_MOMENT})|(?P<id>{_UUID}|{_PREFIXED}|{_ULID}|{_HEX}))(?![A-Za-z0-9])"
)
"""What is volatile wherever it stands in a text."""
_TIME_NAME: Final = re.compile(
    r"(?:^|_)(?:at|time|timestamp|ts|created|updated|modified|expires|expiry|now|started|ended|epoch|date_?time)(?:_|$)"
)
_ID_NAME: Final = re.compile(
    r"(?:^|_)(?:(?:request|response|trace|span|session|correlation|message|msg|call|tool_call|run|event|transaction|job)_?"
    r"(?:id|uuid|guid)|uuid|guid|ulid|nonce|etag|checksum|fingerprint|system_fingerprint|salt|signature|cursor)(?:_|$)"
)
_SPAN_NAME: Final = re.compile(r"(?:^|_)(?:span(?:_?id)?|trace_?id|traceparent)$")
"""Names of what a tracer calls a step: new in every run, and never what a run is about."""
_DURATION_NAME: Final = re.compile(
    r"(?:^|_)(?:duration|elapsed|latency|took|response_time|processing_time|runtime|uptime)(?:_|$)"
)
_EPOCH: Final = ((9.0e8, 2.2e9), (9.0e11, 2.2e12), (9.0e14, 2.2e15), (9.0e17, 2.2e18))
"""Seconds, milliseconds, microseconds and nanoseconds since 1970, from 1998 to 2039."""
_TOKEN_LIKE: Final = re.compile(r"(?=.*\d)[A-Za-z0-9+/=_.:-]{6,}")


def volatile(path: str, first: Json, second: Json) -> str | None:
    """Return the kind of volatile value that two values under one path are; none where their difference may matter."""
    name = snake(path.rpartition(".")[2].split("[")[0])
    if isinstance(first, str) and isinstance(second, str):
        return _texts(name, first, second)
    numbers = [value for value in (first, second) if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < 2:
        return None
    if _DURATION_NAME.search(name):
        return DURATION
    if _TIME_NAME.search(name) and any(all(low <= abs(n) <= high for n in numbers) for low, high in _EPOCH):
        return TIME
    return None


def _texts(name: str, first: str, second: str) -> str | None:
    one, two = _TOKENS.sub(_kind, first), _TOKENS.sub(_kind, second)
    if one == two and first != second:
        return TIME if "\0time" in one and "\0id" not in one else RANDOM_ID
    if _ID_NAME.search(name) and _TOKEN_LIKE.fullmatch(first) and _TOKEN_LIKE.fullmatch(second):
        return RANDOM_ID
    return None


def _kind(found: re.Match[str]) -> str:
    return f"\0{found.lastgroup}\0"


def is_volatile(name: str, value: Json) -> bool:
    """Return whether a value looks as if every run made it up anew, by itself or by the name it stands under."""
    if isinstance(value, str):
        return _TOKENS.fullmatch(value) is not None or volatile(name, value, f"{value}0") is not None
    return volatile(name, value, value) is not None


def tokens(text: str) -> list[str]:
    """Return what is volatile in a text."""
    return [match.group() for match in _TOKENS.finditer(text)]


def steady_text(spelled: str) -> str:
    """Return a value spelled as JSON with what is volatile in it replaced by its kind, by its look or by its name."""
    found = _TOKENS.sub(_kind, spelled)
    return _MEMBER.sub(_member, found) if _NAMES.search(found) else found


_NAMES: Final = re.compile(
    r"(?i)(?:id|uid|nonce|etag|checksum|fingerprint|salt|signature|cursor|at|time|ts|stamp|created|updated|modified"
    r"|expires|expiry|now|started|ended|epoch|duration|elapsed|latency|took)(?:_ms|_s|ms)?\":"
)
"""Whether a spelled value may have a member whose name says that it is volatile."""
_MEMBER: Final = re.compile(r'"([A-Za-z][\w-]*)":(?:"([A-Za-z0-9+/=_.:-]{6,})"|(-?\d[\d.eE+-]*))')


def _member(found: re.Match[str]) -> str:
    name, text, number = snake(found[1]), found[2], found[3]
    if text is not None:
        kept = not (_ID_NAME.search(name) and _TOKEN_LIKE.fullmatch(text))
    else:
        size = abs(float(number)) if _DURATION_NAME.search(name) or _TIME_NAME.search(name) else 0.0
        timed = _TIME_NAME.search(name) and any(low <= size <= high for low, high in _EPOCH)
        kept = not (_DURATION_NAME.search(name) or timed)
    return found.group() if kept else f'"{found[1]}":\0'


def steady(value: Json) -> Json:
    """Return a value with what is volatile in its texts replaced by its kind, so that two runs can be compared."""
    if isinstance(value, str):
        return _TOKENS.sub(_kind, value)
    if isinstance(value, list):
        return [steady(item) for item in value]
    if isinstance(value, dict):
        return {name: steady(item) for name, item in value.items()}
    return value


def snake(name: str) -> str:
    """Return a name in lower case with underscores: `requestId` is `request_id`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[-\s]+", "_", name).lower()


def names_span(path: str) -> bool:
    """Return whether a value goes by a name that tracers give to steps."""
    return _SPAN_NAME.search(snake(path.rpartition(".")[2].split("[")[0])) is not None
