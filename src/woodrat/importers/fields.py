"""Fields: times and token counts, as other tools write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from woodrat.canon import form, moment

_SENT: Final = (
    *("input", "prompt_tokens", "input_tokens", "promptTokens", "inputTokens", "promptTokenCount", "prompt"),
    *("total_prompt_tokens", "request_tokens"),
)
_CAME: Final = (
    *("output", "completion_tokens", "output_tokens", "completionTokens", "outputTokens", "candidatesTokenCount"),
    *("completion", "total_completion_tokens", "response_tokens"),
)
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
    """Return the duration between two times; None if one is unknown, or they are in the wrong order."""
    times = [time_of(start), time_of(end)]
    micros = [moment.to_micros(moment.parse(time)) for time in times if time is not None]
    return (micros[1] - micros[0]) // 1_000 if len(micros) == 2 and micros[1] >= micros[0] else None


def tokens(usage: Any) -> dict[str, int]:
    """Return input and output tokens, if a mapping has them."""
    stated = usage if isinstance(usage, Mapping) else {}
    found = {}
    for ours, names in (("input", _SENT), ("output", _CAME)):
        counts = (stated.get(name) for name in names)
        count = next((int(c) for c in counts if type(c) in (int, float) and 0 <= c <= form.INTEGER_MAX), None)  # type: ignore[operator, arg-type]
        if count is not None:
            found[ours] = count
    return found
