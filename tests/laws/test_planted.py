"""The shipped law checks find what is wrong with planted policies, and nothing in good ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from tests.laws.planted import BAD, LONGEST, ByArrival

from woodrat.merge import Policy
from woodrat.testing.generators import POLICIES
from woodrat.testing.laws import check_policy

pytestmark = pytest.mark.laws

EXAMPLES = max(25, min(200, settings.default.max_examples // 3))  # type: ignore[union-attr]
"""Histories per law for good policies; `test_merge_laws` tries the built-in ones on many more."""


@pytest.mark.parametrize("planted", BAD)
def test_a_planted_policy_is_refuted(planted: Callable[[], Policy]) -> None:
    """A policy that breaks a law is refuted, and the message names the law."""
    with pytest.raises(AssertionError, match=r"the law of \w+ is broken|answers the same question"):
        check_policy(planted(), 120, shrink=False)


def test_a_refutation_is_told_by_a_small_history() -> None:
    """What a user reads names the law and the few observations that show it broken."""
    with pytest.raises(AssertionError) as refuted:
        check_policy(ByArrival())
    told = str(refuted.value).splitlines()
    assert told[0].startswith("the law of order is broken: folding the same set")
    assert told[-3] == "observations, in order of arrival:"
    assert all(line.startswith("  ") and " assert x=" in line for line in told[-2:])


@pytest.mark.parametrize("policy", [*POLICIES.values(), LONGEST], ids=lambda policy: str(policy.name))
def test_a_good_policy_passes(policy: Policy) -> None:
    """Every built-in policy and a good policy of a user's own pass all checks."""
    check_policy(policy, EXAMPLES)
