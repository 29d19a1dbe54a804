"""Rewards: what other tools call the success of a run, as a verdict and a score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from woodrat.canon import form
from woodrat.runs.run_fields import BAD, GOOD, SCORED

REWARDS: Final = ("reward", "score", "success", "passed", "correct", "is_correct", "is_corrected", "resolved")
"""What other tools call the reward of a run; the first that is there counts."""
_ELSEWHERE: Final = ("reward_info", "other_data", "metadata", "evaluation", "eval", "info")
"""Members of a document in which a reward may stand."""
_WORDS: Final = {
    **dict.fromkeys(("true", "yes", "pass", "success", "succeeded", "correct", "thumbs_up", *GOOD), True),
    **dict.fromkeys(("false", "no", "fail", "failure", "incorrect", "wrong", "thumbs_down", *BAD), False),
}


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
