"""Reduce: a 1-minimal set of observations that still shows a result of a ledger.

Delta debugging: observations are left out in large pieces first, then one by one, until no single one can go without
losing the result. A guess that narrows the set is tested by folding, like everything else, so the result never rests on
it. The result depends only on the order of the observations.

A set shows a predicate if it holds on the state of that set alone, and each member is withdrawn in it exactly if it is
withdrawn in the ledger. So a retracted claim never stands for a belief, and the retractions that its members depend on
are part of the set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from woodrat.bisect.predicate import Predicate
from woodrat.bisect.subset import RulesOf, Subset, retracts
from woodrat.errors import Fault, Refused
from woodrat.state.observation import MARKERS, RETRACT, STATING, Observation
from woodrat.state.relation import SAME_AS

FOLDS_MAX: Final = 10_000
"""Default limit of folded sets."""

Tell = Callable[[int, int], object]
"""Called with the numbers of observations known to be unnecessary and of all."""


class Reduced(NamedTuple):
    """The remaining set."""

    members: tuple[Observation, ...]
    """The observations that are needed, in the order given; each of them is."""
    folds: int
    """How many sets were folded."""


class NotShown(Exception):
    """The whole set does not show the predicate."""


class Trial:
    """Tries sets: does this one still show the predicate?"""

    def __init__(self, whole: Sequence[Observation], predicate: Predicate, rules_of: RulesOf, folds_max: int) -> None:
        self._predicate = predicate
        self._rules_of = rules_of
        self._only = frozenset(name for names in predicate.looked.values() for name in names)
        self._folds_max = folds_max
        self.live: frozenset[bytes] | None = None
        """Digests of the live observations of the whole set; None if nothing is withdrawn."""
        if retracts(whole):
            self.live = frozenset(Subset(whole, rules_of).live())
        self.folds = 0

    def shows(self, observations: Sequence[Observation]) -> bool:
        """Return True if these observations show the predicate by themselves."""
        if self.folds >= self._folds_max:
            problem = f"after {self.folds} folds there are {len(observations)} observations left to be tried"
            remedy = "Allow more folds, or ask for something that fewer observations take part in."
            raise Refused([Fault("folds_max", problem, remedy)], "Nothing was written.")
        self.folds += 1
        subset = Subset(observations, self._rules_of, self._only)
        return self._predicate.holds(subset.look) and self._as_withdrawn(observations, subset)

    def _as_withdrawn(self, observations: Iterable[Observation], subset: Subset) -> bool:
        if self.live is None:
            return True
        live = subset.live()
        return all((o.digest in live) == (o.digest in self.live) for o in observations)


def reduce(
    observations: Sequence[Observation],
    predicate: Predicate,
    rules_of: RulesOf,
    *,
    folds_max: int = FOLDS_MAX,
    tell: Tell | None = None,
) -> Reduced:
    """Return a 1-minimal set that shows the predicate; `NotShown` where all of them do not.

    A predicate that holds on nothing at all needs nothing.
    """
    trial = Trial(observations, predicate, rules_of, folds_max)
    if not trial.shows(observations):
        raise NotShown
    if trial.shows(()):
        return Reduced((), trial.folds)
    current = list(observations)
    for guess in (_stating(predicate), _standing(trial), _behind(current, predicate, rules_of)):
        smaller = [observation for observation in current if guess(observation)]
        if len(smaller) < len(current) and trial.shows(smaller):
            current = smaller
    kept = _thinned(current, trial.shows, len(observations), tell)
    return Reduced(tuple(kept), trial.folds)


Guess = Callable[[Observation], bool]


def _stating(predicate: Predicate) -> Guess:
    """Observations that state none of the fields in question are rarely needed."""
    names = {name for fields in predicate.looked.values() for name in fields}
    return lambda o: o.op not in STATING or o.entity.type == SAME_AS or not names.isdisjoint(o.stated)


def _standing(trial: Trial) -> Guess:
    """Withdrawn observations and retractions are rarely needed."""
    live = trial.live
    return lambda o: live is None or (o.op != RETRACT and o.digest in live)


def _behind(observations: Sequence[Observation], predicate: Predicate, rules_of: RulesOf) -> Guess:
    """The observation behind a value mostly decides it."""
    subset = Subset(observations, rules_of)
    digests = {digest for ref, names in predicate.looked.items() for digest in subset.behind(ref, names)}
    return lambda o: o.digest in digests or o.op in MARKERS or o.entity.type == SAME_AS


def _thinned(
    current: list[Observation], shows: Callable[[Sequence[Observation]], bool], whole: int, tell: Tell | None
) -> list[Observation]:
    """Leave out piece after piece, each half as long as those before; then one by one, until none can go."""
    size = max(1, len(current) // 2)
    while True:
        start, removed = 0, False
        while start < len(current):
            rest = current[:start] + current[start + size :]
            if rest and shows(rest):
                current, removed = rest, True
            else:
                start += size
            if tell is not None:
                tell(whole - len(current), whole)
        if size > 1:
            size //= 2
        elif not removed:
            return current


def removable(members: Sequence[Observation], predicate: Predicate, rules_of: RulesOf) -> tuple[Observation, ...]:
    """Return the members without which the others still show the predicate; none of a 1-minimal set."""
    trial = Trial(members, predicate, rules_of, len(members) + 1)
    return tuple(one for one in members if trial.shows([o for o in members if o is not one]))
