"""Verdicts: which runs of a group are good and which are bad, by their judges, a reward, or how they ended.

A judge's word counts before a reward. How a run ended counts only where no run of the group has either: that an agent
reached its end says little about whether it did right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from woodrat.records import dataclass
from woodrat.runs.record import RunRecord
from woodrat.runs.rewards import REWARDS
from woodrat.runs.run_fields import BAD, CANCELLED, DONE, ERROR, GOOD

_WORDS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("true", "yes", "pass", "success", "correct", *GOOD), 1.0),
    **dict.fromkeys(("false", "no", "fail", "failure", "incorrect", *BAD), 0.0),
}

JUDGES, REWARD, STATUS = "judges", "reward", "status"
"""Where verdicts come from."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What is known of how one run went."""

    judged: bool | None
    """Whether its judges call it good; none without any, where they differ, and for words of their own."""
    reward: float | None
    """Its reward, or the score that a judge gave it."""
    status: str
    """How it ended."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Which runs of a group are good."""

    good: tuple[bool | None, ...]
    """For each run whether it is good; none where that is not known."""
    sources: tuple[str, ...]
    """Where that comes from: `judges`, `reward` or `status`."""
    undecided: str | None = None
    """Why rewards say nothing, where they do not."""


def verdict_of(record: RunRecord) -> RunVerdict:
    """Return what is known of how a run went."""
    word = record.verdict
    judged = True if word in GOOD else False if word in BAD else None
    scores = [_number(judgement.score) for judgement in record.judgements if judgement.about is None]
    reward = next((score for score in reversed(scores) if score is not None), None)
    if reward is None:
        stated = (_number(record.attributes.get(name)) for name in REWARDS)
        reward = next((number for number in stated if number is not None), None)
    return RunVerdict(judged, reward, record.status)


def settle(verdicts: list[RunVerdict], reward_min: float | None = None) -> Verdicts:
    """Return which runs are good; `reward_min` is the smallest reward of a good one, 1 where all are 0 or 1."""
    rewards = {each.reward for each in verdicts if each.reward is not None and each.judged is None}
    undecided = None
    if reward_min is None and rewards and not rewards <= {0.0, 1.0}:
        undecided = (
            f"rewards lie between {min(rewards):g} and {max(rewards):g}, and nothing says which are good; "
            "set reward_min to the smallest good one"
        )
        rewards = set()
    least = 1.0 if reward_min is None else reward_min
    used: set[str] = set()
    good: list[bool | None] = []
    for each in verdicts:
        if each.judged is not None:
            good.append(each.judged)
            used.add(JUDGES)
        elif rewards and each.reward is not None:
            good.append(each.reward >= least)
            used.add(REWARD)
        else:
            good.append(None)
    if not used and undecided is None:
        good = [
            True if each.status == DONE else False if each.status in (ERROR, CANCELLED) else None for each in verdicts
        ]
        used = {STATUS} if False in good else set()
        good = good if used else [None] * len(good)
    return Verdicts(tuple(good), tuple(sorted(used)), undecided)


def _number(value: Any) -> float | None:
    if isinstance(value, bool | int | float):
        return float(value)
    return _WORDS.get(value.strip().lower()) if isinstance(value, str) else None
