"""Noise: differences that say nothing about behaviour: values that every run makes up anew, and prose in other words.

*Volatile* values are random ids, times and durations. A difference counts as volatile only where both sides are of one
kind. Whether a run used the value later is for the comparison to know: what was used is never set aside.

*Prose* is what people and models write to be read. Two prose texts count as another wording of one thing unless each
names a number, an id, an address or a proper name that the other does not.
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


def volatile_kind(path: str, first: Json, second: Json) -> str | None:
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
        return _TOKENS.fullmatch(value) is not None or volatile_kind(name, value, f"{value}0") is not None
    return volatile_kind(name, value, value) is not None


def volatile_tokens(text: str) -> list[str]:
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


# Prose

SHOWN_CHARACTERS_MAX: Final = 80
"""How much of a text is shown around the place at which it differs."""
LEAD_CHARACTERS_MAX: Final = 24
"""How much of what two texts share is shown before that place."""
PROSE_WORDS_MIN: Final = 6
"""How many words a text needs to be prose."""
NAMED_PROSE_WORDS_MIN: Final = 4
"""The same under a name that promises prose, such as `summary`."""
FUNCTION_WORDS_MIN: Final = 0.2
"""Which share of the words of prose are small words such as `the` and `to`."""

_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_CODE: Final = re.compile(
    r"[{}<>=;|\\]|\(\)|://|^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|ALTER|DROP)\s", re.IGNORECASE
)
_SENTENCE_END: Final = re.compile(r"[.!?。！？…]\s*$|[.!?]\s+\S")
_FACT: Final = re.compile(r"[\w+.-]+@[\w.-]+\w|[#$€£]?\w[\w.,:/%-]*")
_PROPER: Final = re.compile(r"(?<=[a-z0-9,;:'’\"(] )['\"(]?([A-Z][\w’'-]+)")
_PROSE_NAME: Final = re.compile(
    r"(?:^|_)(?:thoughts?|thinking|reasoning|rationale|summary|explanation|comments?|message|body|notes?|text|content"
    r"|prose|reply|greeting|question|instructions?)$"
)
_NUMBERS_TEXT: Final = "two three four five six seven eight nine ten eleven twelve"
_NUMBERS: Final = {word: str(number) for number, word in enumerate(_NUMBERS_TEXT.split(), 2)}
_FUNCTION_WORDS_TEXT: Final = (
    "a about all also am an and any are as at be been but by can could did do does for from had has have he her his how"
    " i if in into is it its just like me my need no not of on or our please she should so that the their them then"
    " there they this to up us want was we were what when which will with would you your"
    " der die das und ist nicht ein eine ich sie es mit auf für zu den dem von bitte"
    " le la les un une et est je vous il elle pour de du des que qui dans en pas el los las y es una por con para"
    " o os as e um uma com não di il che per non"
)
_FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS_TEXT.split())
_FORMS_OF_ADDRESS_TEXT: Final = (
    "customer client user agent sir madam team support assistant hello hi thanks thank dear mr mrs ms i"
)
_FORMS_OF_ADDRESS: Final = frozenset(_FORMS_OF_ADDRESS_TEXT.split())


def is_prose(value: Json, name: str = "") -> bool:
    """Return whether a value is text written to be read; `name` is what it stands under."""
    if not isinstance(value, str) or len(value) < 12 or value.lstrip()[:1] in ("{", "["):
        return False
    words = [word.lower() for word in _WORD.findall(value)]
    if _PROSE_NAME.search(snake(name)):
        return len(words) >= NAMED_PROSE_WORDS_MIN
    if len(words) < PROSE_WORDS_MIN or _CODE.search(value):
        return False
    small = sum(word in _FUNCTION_WORDS for word in words)
    if small >= max(2, FUNCTION_WORDS_MIN * len(words)):
        return True
    return len(words) >= 2 * PROSE_WORDS_MIN and _SENTENCE_END.search(value) is not None


def reworded(first: Json, second: Json, name: str = "") -> bool:
    """Return whether two values are prose that may say the same in other words."""
    if not (is_prose(first, name) and is_prose(second, name)):
        return False
    assert isinstance(first, str)
    assert isinstance(second, str)
    return not conflict(first, second)


def conflict(first: str, second: str) -> bool:
    """Return whether each of two texts names a number, an id, an address or a proper name that the other does not."""
    one, two = (str(steady(text)) for text in (first, second))
    numbers = _facts(one), _facts(two)
    if numbers[0] - numbers[1] and numbers[1] - numbers[0]:
        return True
    words = [{word.lower() for word in _WORD.findall(text)} for text in (one, two)]
    names = [_names(text) - other for text, other in ((one, words[1]), (two, words[0]))]
    return bool(names[0] and names[1])


def _facts(text: str) -> set[str]:
    found = set()
    for token in _FACT.findall(text):
        plain = token.rstrip(".,:/%-").lstrip("#$€£").lower()
        if any(letter.isdigit() for letter in plain):
            number = plain.replace(",", "")
            found.add(number.rstrip("0").rstrip(".") if re.fullmatch(r"\d+\.\d+", number) else number)
        elif "@" in plain:
            found.add(plain)
        elif plain in _NUMBERS:
            found.add(_NUMBERS[plain])
    return found


def _names(text: str) -> set[str]:
    return {name.lower() for name in _PROPER.findall(text)} - _FORMS_OF_ADDRESS


def around(first: str, second: str) -> tuple[str, str]:
    """Return two texts on one line each, of long ones the place at which they first differ."""
    one, two = " ".join(first.split()), " ".join(second.split())
    if one == two:
        one, two = repr(first)[1:-1], repr(second)[1:-1]
    if max(len(one), len(two)) <= SHOWN_CHARACTERS_MAX:
        return one, two
    start = 0
    if not (start := _shared(one, two)):
        return _cut(one, 0), _cut(two, 0)
    lead = max(0, start - LEAD_CHARACTERS_MAX)
    space = one.find(" ", lead, start)
    begin = 0 if start <= LEAD_CHARACTERS_MAX else space + 1 if space >= 0 else lead
    return _cut(one, begin), _cut(two, begin)


def _shared(one: str, two: str) -> int:
    """Return how many characters two texts begin with alike."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _cut(text: str, begin: int) -> str:
    end = begin + SHOWN_CHARACTERS_MAX
    return ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")
