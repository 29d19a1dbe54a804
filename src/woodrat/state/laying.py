"""Laying: the observations of one entity folded one after the other, in place.

A pass over a whole log folds every entity from its first observation on and looks at the states between only now and
then. A laying therefore changes in place and makes merge state when it is asked for. What it takes is what nearly all
observations are: assertions that fit, of fields under `latest` and under ranked policies. Everything else it hands to
`merge.extend`, which is the definition: a laying never says anything that `extend` would not.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from woodrat.state import merge
from woodrat.state.merge import MergeState, Rules, Stratum
from woodrat.state.observation import ASSERT, Observation
from woodrat.state.policy import Claim, Held, Known
from woodrat.state.policy.claim import said_of
from woodrat.state.policy.ranked import LATEST

NAMES_MAX = 64
"""How many sets of fields are counted apart before they are added up."""


class Laying:
    """The fold of one entity under way."""

    __slots__ = ("_corrected", "_counts", "_held", "_live", "_state", "_strata", "observations", "rules", "until")

    def __init__(self, state: MergeState, rules: Rules) -> None:
        assert len(state.members) == 1, "a group is folded whole"
        self.rules = rules
        """The rules it is folded under."""
        self._begin(state)

    def _begin(self, state: MergeState) -> None:
        self._state = state
        """What was folded when it was last asked for."""
        self._strata: tuple[Stratum, ...] = state.strata
        self._held = state.held
        policy = self.rules.policy
        self._corrected = {name for name in state.held if policy(name) is LATEST} if state.held else ()
        self._counts: dict[tuple[str, ...], int] = {}
        self._live = state.live
        self.observations = state.observations
        """Distinct observations folded."""
        self.until = state.until

    def state(self) -> MergeState:
        """Return the merge state of all that was folded."""
        if self._counts:
            before = self._state
            claims = dict(before.claims)
            for names, times in self._counts.items():
                for name in names:
                    claims[name] = claims[name] + times if name in claims else times
            self._state = MergeState(
                before.members,
                before.schema,
                self._strata,
                self._held,
                claims,
                before.misfits,
                before.markers,
                self._live,
                self.observations,
                self.until,
            )
            self._counts = {}
        return self._state

    def hand_over(self) -> None:
        """Take note that whoever keeps the parts of collections was told of those in the state."""
        state = merge.handed_over(self.state())
        if state is not self._state:
            self._begin(state)

    def add(self, observation: Observation, known: Known) -> bool:
        """Fold one more observation in; False when only a whole fold can tell, as `merge.extend` says it.

        Nothing may be added after that.
        """
        if observation.op == ASSERT and not observation.remove and self._assert(observation, known):
            return True
        state = merge.extend(self.state(), observation, self.rules, known)
        if state is None:
            return False
        self._begin(state)
        return True

    def _assert(self, observation: Observation, known: Known) -> bool:
        """Fold in an assertion that needs no closer look; False leaves everything as it was."""
        fields: Any = observation.fields
        if len(self._counts) >= NAMES_MAX:
            self.state()
        rules, names = self.rules, tuple(fields)
        apart = rules.apart(names)
        if (
            apart is None
            or observation.replaces
            or (self._corrected and not self._corrected.isdisjoint(names))
            or not (observation.fits == self._state.schema or rules.fit(fields))
            or known.namers(observation.digest)
        ):
            return False
        said, laid = said_of(observation), fields
        if apart:
            held: dict[str, Held] = {**self._held}
            for name in apart:
                claim, policy = Claim(said, fields[name]), rules.policy(name)
                if policy.misfit(claim, True) is not None:
                    return False
                held[name] = policy.extend(held.get(name), claim, name, known, partial(_fits, rules, name))
            self._held = held
            laid = {name: value for name, value in fields.items() if name not in apart}
            names = (*laid, *apart)  # the order in which `extend` counts them
        if laid:
            self._strata = merge.lay(self._strata, said, laid)
        self._counts[names] = self._counts.get(names, 0) + 1
        self._live += 1
        self.observations += 1
        if observation.valid_from > self.until:
            self.until = observation.valid_from
        return True


def _fits(rules: Rules, name: str, claim: Claim, states_value: bool) -> bool:
    return rules.misfit(name, claim, states_value) is None
