"""Rank: which of two claims counts more.

A rank compares the contents of two observations, criterion by criterion, and then their values. Equal ranks are
therefore equal values, and the digest only chooses which of several equal claims is shown. Ranks are defined only here:
`show`, blame, reports and every engine follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cmp_to_key, reduce
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from woodrat.merge.claim import Claim, Said


class Ranking(Protocol):
    """Anything that ranks: a claim on a field, or a statement about one element."""

    @property
    def said(self) -> Said:
        """The observation that makes it."""

    @property
    def order(self) -> Any:
        """The place of its value in the one total order of JSON values."""


R = TypeVar("R", bound=Ranking)


class Criterion(NamedTuple):
    """One step of a rank."""

    key: Callable[[Said], Any]
    """The part of an observation that is compared."""
    larger: bool
    """Whether the larger one wins; otherwise the smaller one."""
    wins: str
    """Why the winner won."""
    loses: str
    """Why the loser lost."""


class Rank:
    """An order of claims: criteria, and then the larger or the smaller value."""

    def __init__(self, *criteria: Criterion, larger_value: bool = True) -> None:
        self.criteria = criteria
        self.larger_value = larger_value

    def compare(self, one: Said, other: Said) -> int:
        """Return 1 if the first observation ranks above the second without its value, -1 if below, and 0 if equal."""
        for key, larger, _, _ in self.criteria:
            left, right = key(one), key(other)
            if left != right:
                return 1 if (left > right) is larger else -1
        return 0

    def higher(self, one: R, other: R) -> R:
        """Return the claim that ranks higher; of equal ones the one with the smaller digest."""
        first, second = one.said, other.said
        for key, larger, _, _ in self.criteria:
            left, right = key(first), key(second)
            if left != right:
                return one if (left > right) is larger else other
        left, right = one.order, other.order
        if left == right:
            return one if first.digest < second.digest else other
        return one if (left > right) is self.larger_value else other

    def top(self, claims: Iterable[R]) -> R:
        """Return the highest of some claims."""
        return reduce(self.higher, claims)

    def sort_key(self) -> Callable[[Ranking], Any]:
        """Return the sort key of claims from the highest to the lowest."""
        return cmp_to_key(lambda one, other: 0 if one is other else -1 if self.higher(one, other) is one else 1)

    def reason(self, claim: Ranking, other: Ranking) -> str | None:
        """Return why a claim ranks above another, or below it; `None` if they are equal."""
        for key, larger, wins, loses in self.criteria:
            mine, theirs = key(claim.said), key(other.said)
            if mine != theirs:
                return wins if (mine > theirs) is larger else loses
        if claim.order == other.order:
            return None
        return "larger value" if claim.order > other.order else "smaller value"


OBSERVED_LATER: Final = Criterion(attrgetter("observed_at"), True, "observed later", "observed earlier")
OBSERVED_EARLIER: Final = Criterion(attrgetter("observed_at"), False, "observed earlier", "observed later")
PRIORITY: Final = Criterion(attrgetter("priority"), True, "higher priority", "lower priority")

LATEST: Final = Rank(OBSERVED_LATER, PRIORITY)
HIGHEST_PRIORITY: Final = Rank(PRIORITY, OBSERVED_LATER)
FIRST: Final = Rank(OBSERVED_EARLIER, PRIORITY)
MAX: Final = Rank()
MIN: Final = Rank(larger_value=False)


def arrived_later(winner: Said, rival_at: str) -> bool:
    """Return whether one ranks above a rival, as `latest` ranks, only because it arrived later.

    An assigned time is the time of arrival; the real time of observation may be earlier. So a winner with an assigned
    time may have been observed before its rival; one that states a time later than the rival's arrival may not.
    """
    return winner.assigned and "" != rival_at < winner.observed_at


def corrected_by_arrival(standing: Collection[Claim]) -> bool:
    """Return whether the highest of some standing corrections was decided only by arrival."""
    if len(standing) < 2:
        return False
    winner = LATEST.top(standing)
    rivals = [claim for claim in standing if claim.order != winner.order]
    return bool(rivals) and arrived_later(winner.said, LATEST.top(rivals).said.observed_at)
