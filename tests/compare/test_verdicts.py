"""Verdicts: which runs are good, by their judges, a reward, or how they ended."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compare.test_divergence import FIRST, ran, tool
from tests.runs.story import body, entries

from woodrat.compare.verdicts import RunVerdict, settle, verdict_of
from woodrat.runs.record import RunRecord, record_of


def run(*judgements: dict[str, Any], **attributes: Any) -> RunRecord:
    """Return a run with what was thought of it."""
    started = ("run.started", body(0, FIRST, attributes=attributes))
    judged = [("run.judged", body(number, FIRST, **each)) for number, each in enumerate(judgements, 2)]
    return record_of(FIRST, entries([started, ("run.ended", body(1, FIRST, status="done")), *judged]))


def test_a_judges_word_counts_first() -> None:
    """A judge's word counts before a reward, and a word of their own is no verdict."""
    good = run({"verdict": "good", "by": "ann"}, reward=0)
    assert verdict_of(good) == RunVerdict(True, 0.0, "done")
    assert settle([verdict_of(good)]).good == (True,)
    odd = run({"verdict": "odd", "by": "ann"})
    assert settle([verdict_of(odd)]).good == (None,)


@pytest.mark.parametrize(
    ("attributes", "reward"),
    [
        ({"reward": 1}, 1.0),
        ({"score": 0.5}, 0.5),
        ({"passed": False}, 0.0),
        ({"success": "Yes"}, 1.0),
        ({"cost": 3}, None),
    ],
)
def test_rewards_of_imported_runs(attributes: dict[str, Any], reward: float | None) -> None:
    """A reward may be a number, a truth value or a word, under any of its usual names."""
    assert verdict_of(run(**attributes)).reward == reward


def test_a_score_is_a_reward() -> None:
    """The latest score of a judge counts as a reward where the word says nothing."""
    scored = run({"verdict": "rated", "by": "a", "score": 0.2}, {"verdict": "rated", "by": "a", "score": 1}, reward=0)
    assert verdict_of(scored).reward == 1


def test_rewards_between_need_a_bound() -> None:
    """Where rewards are not all 0 or 1, nobody guesses which are good; with a bound they are compared with it."""
    verdicts = [RunVerdict(None, reward, "done") for reward in (0.2, 0.6, 0.9, None)]
    settled = settle(verdicts)
    assert (settled.good, settled.sources) == ((None,) * 4, ())
    assert settled.undecided is not None
    assert "between 0.2 and 0.9" in settled.undecided
    assert settle(verdicts, 0.6).good == (False, True, True, None)
    assert settle(verdicts, 0.6).sources == ("reward",)


def test_how_runs_ended_counts_last() -> None:
    """An error is bad only where no run has a verdict or a reward; where all ended well, nothing is known."""
    done, failed = verdict_of(ran(tool())), verdict_of(ran(tool(), status="error"))
    cut = verdict_of(ran(tool(), status="interrupted"))
    assert settle([done, failed, cut]).good == (True, False, None)
    assert settle([done, failed, cut]).sources == ("status",)
    assert settle([done, done]).sources == ()
    assert settle([done, failed, RunVerdict(False, None, "done")]).good == (None, None, False)
