"""Wording: which texts are prose, whether two of them name other facts, and where two long texts differ.

Prose is what people and models write to be read: it is worded anew every time. Two prose texts count as another
wording of one thing unless each names a number, an id, an address or a proper name that the other does not.
"""

from __future__ import annotations

import re
from typing import Final

from woodrat.canon.form import Json
from woodrat.compare import volatile
from woodrat.compare.volatile import snake

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
    one, two = (str(volatile.steady(text)) for text in (first, second))
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
