"""Fields: times, tokens and verdicts, as other tools write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from woodrat.canon import form, moment
from woodrat.runs.account import BAD, GOOD, SCORED

_SENT: Final = (
    *("input", "prompt_tokens", "input_tokens", "promptTokens", "inputTokens", "promptTokenCount", "prompt"),
    *("total_prompt_tokens", "request_tokens"),
)
_CAME: Final = (
    *("output", "completion_tokens", "output_tokens", "completionTokens", "outputTokens", "candidatesTokenCount"),
    *("completion", "total_completion_tokens", "response_tokens"),
)
REWARDS: Final = ("reward", "score", "success", "passed", "correct", "is_correct", "is_corrected", "resolved")
"""What other tools call the reward of a run; the first that is there counts."""
_ELSEWHERE: Final = ("reward_info", "other_data", "metadata", "evaluation", "eval", "info")
"""Members of a document in which a reward may stand."""
_WORDS: Final = {
    **dict.fromkeys(("true", "yes", "pass", "success", "succeeded", "correct", "thumbs_up", *GOOD), True),
    **dict.fromkeys(("false", "no", "fail", "failure", "incorrect", "wrong", "thumbs_down", *BAD), False),
}
_MILLISECONDS_FROM: Final = 100_000_000_000
"""From here on a time that is a number counts milliseconds, and further on microseconds and nanoseconds."""
_SECONDS_MAX: Final = 4_102_444_800
"""The latest time that is read: the year 2100."""


class Times(NamedTuple):
    """Times of a document, under our names."""

    fields: dict[str, str]
    """The times."""
    used: frozenset[str]
    """The members of the document that they were read from."""


def moment_fields(item: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> Times:
    """Return the times of an item under our names; each may be called so, or as the names beside it.

    One that cannot be read is left where it is.
    """
    found: dict[str, str] = {}
    used: set[str] = set()
    for ours, theirs in names.items():
        for name in (ours, *theirs):
            time = time_of(item.get(name))
            if time is not None:
                found[ours] = time
                used.add(name)
                break
    return Times(found, frozenset(used))


def time_of(value: Any) -> str | None:
    """Return a time as RFC 3339: text, which is UTC where it says no offset, or a number since 1970."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        seconds = abs(value)
        while seconds >= _MILLISECONDS_FROM:
            seconds /= 1_000
        if not value > 0 or not seconds <= _SECONDS_MAX:
            return None
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    if not isinstance(value, str) or len(value) > 64:
        return None
    text = value.strip().replace(" ", "T", 1) if " " in value.strip()[:11] else value.strip()
    bare = "T" in text and not text.endswith(("Z", "z")) and "+" not in text and text.count("-") == 2
    spelled = f"{text}Z" if bare else text
    return spelled if moment.fault(spelled) is None else None


def duration_ms(start: Any, end: Any) -> int | None:
    """Return how long something took by its two times; none where one is not known, or they are the wrong way round."""
    times = [time_of(start), time_of(end)]
    micros = [moment.to_micros(moment.parse(time)) for time in times if time is not None]
    return (micros[1] - micros[0]) // 1_000 if len(micros) == 2 and micros[1] >= micros[0] else None


def tokens(usage: Any) -> dict[str, int]:
    """Return tokens read and written, as far as a mapping says them."""
    stated = usage if isinstance(usage, Mapping) else {}
    found = {}
    for ours, names in (("input", _SENT), ("output", _CAME)):
        counts = (stated.get(name) for name in names)
        count = next((int(c) for c in counts if type(c) in (int, float) and 0 <= c <= form.INTEGER_MAX), None)  # type: ignore[operator, arg-type]
        if count is not None:
            found[ours] = count
    return found


# Verdicts


def verdict(value: Any, *, binary: bool = True) -> dict[str, Any] | None:
    """Return what a reward says: a verdict, and a score where it is a number.

    With `binary` 1 is good and 0 is bad; any other number is a score alone, since nobody says which are good.
    """
    if isinstance(value, bool):
        return {"verdict": "good" if value else "bad", "score": int(value)}
    if isinstance(value, int | float):
        if form.faults(value):
            return None
        word = SCORED if not binary or value not in (0, 1) else "good" if value == 1 else "bad"
        return {"verdict": word, "score": value}
    if isinstance(value, str) and 0 < len(value.strip()) <= 64:
        word = value.strip()
        known = _WORDS.get(word.lower())
        if known is not None:
            return {"verdict": "good" if known else "bad"}
        try:
            return verdict(float(word), binary=binary)
        except ValueError:
            return {"verdict": word} if not binary else None
    return None


def reward_of(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the verdict that a document's reward is: at its top, or in a member where tools put it."""
    inner = (document[name] for name in _ELSEWHERE if isinstance(document.get(name), Mapping))
    for place in (document, *inner):
        for name in REWARDS:
            if name in place and (found := verdict(place[name], binary=name != "score")) is not None:
                return {**found, "by": name}
    return None


def named_score(name: Any, value: Any, *, about: Any = None, reason: Any = None) -> dict[str, Any] | None:
    """Return the verdict that a named score is, such as another tool's feedback."""
    found = verdict(value, binary=False)
    if found is None:
        return None
    called = name if isinstance(name, str) and name else "score"
    found["by"] = called if called in REWARDS else f"score {called}"[:256]
    if isinstance(about, str) and about:
        found["about"] = about
    if isinstance(reason, str) and reason:
        found["reason"] = reason
    return found
