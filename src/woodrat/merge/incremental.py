"""Laying: the observations of one entity folded one after the other, in place.

A pass over a whole log folds every entity from its first observation on and looks at the states between only now and
then. A laying therefore changes in place and makes merge state when it is asked for. What it takes is what nearly all
observations are: assertions that fit, of fields under `latest` and under ranked policies. Everything else it hands to
`merge.extend`, which is the definition: a laying never says anything that `extend` would not.

Under `latest` an assertion counts until its agent says more of the same fields later. Of assertions that state the
same fields, each later than all before, only the last of each agent is therefore laid, when a state is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from woodrat.merge import Claim, Held, Known, fold
from woodrat.merge.claim import differ, said_of
from woodrat.merge.fold import MergeState, Stratum
from woodrat.merge.policy import Fits
from woodrat.merge.ranked import LATEST, Ranked
from woodrat.merge.rules import Rules
from woodrat.merge.strata_index import StrataIndex
from woodrat.state.observation import ASSERT, Observation

NAMES_MAX = 64
"""How many sets of fields are counted apart before they are added up."""
STRATA_MAX = 32
"""With so many strata those of a field are looked up in an index."""


class Laying:
    """The fold of one entity under way."""

    __slots__ = (
        "_apart",
        "_corrected",
        "_counts",
        "_described",
        "_held",
        "_index",
        "_latest",
        "_names",
        "_newest",
        "_open",
        "_others",
        "_owned",
        "_rivals",
        "_state",
        "_strata",
        "_takes",
        "_times",
        "_waiting",
        "body_bytes",
        "observations",
        "rules",
        "until",
    )

    def __init__(self, state: MergeState, rules: Rules) -> None:
        assert len(state.members) == 1, "a group is folded whole"
        self.rules = rules
        """The rules it is folded under."""
        self._begin(state)

    def _begin(self, state: MergeState) -> None:
        self._state = state
        """What was folded when it was last asked for."""
        self._strata: tuple[Stratum, ...] = state.strata
        self._index: StrataIndex | None = None
        """The strata once there are many; those above are as they were then."""
        self._rivals: Mapping[str, bool] = state.rivals
        self._newest: Observation | None = None
        """The last of those that wait; nothing is later."""
        self._open: tuple[str, ...] = ()
        """Of the fields spoken of last, those in strata on which nobody is known to have said anything else."""
        self._waiting: dict[str, Observation] = {}
        """By agent, assertions of the fields spoken of last that are not laid yet: each is later than all before."""
        self._latest = state.strata[-1].said.observed_at if state.strata else ""
        """When the last of what is laid or waits to be was seen."""
        self._held: dict[str, Held] = state.held  # type: ignore[assignment]
        self._owned = False
        """Whether what is held is nobody else's, and can be changed."""
        policy = self.rules.policy
        self._corrected = {name for name in state.held if policy(name) is LATEST} if state.held else ()
        self._counts: dict[tuple[str, ...], int] = {}
        self._names: tuple[str, ...] = ()
        """The fields that the assertion before stated; what follows is known of them."""
        self._takes = self._described = False
        """Whether an assertion of them can be taken here, and whether the schema has to be asked whether it fits."""
        self._apart: tuple[tuple[str, Ranked, Fits], ...] = ()
        """Those of them that are not merged by `latest`, with their policies."""
        self._others: tuple[str, ...] = ()
        """The names of these."""
        self._times = 0
        """How many assertions of them were taken and are not counted yet."""
        self.observations = state.observations
        """Distinct observations folded."""
        self.until = state.until
        self.body_bytes = state.body_bytes

    def state(self) -> MergeState:
        """Return the merge state of all that was folded."""
        if self._times:
            self._settle()
        if self._counts:
            before = self._state
            claims = dict(before.claims)
            for names, times in self._counts.items():
                for name in names:
                    claims[name] = claims[name] + times if name in claims else times
            if self._index is not None:
                self._strata = self._index.all()
            self._state = MergeState(
                before.members,
                before.merging,
                self._strata,
                self._rivals,
                self._held,
                claims,
                before.misfits,
                before.markers,
                before.live + self.observations - before.observations,
                self.observations,
                self.until,
                self.body_bytes,
            )
            self._counts = {}
            self._owned = False
        return self._state

    def hand_over(self) -> None:
        """Take note that whoever keeps the parts of collections was told of those in the state."""
        state = fold.handed_over(self.state())
        if state is not self._state:
            self._begin(state)

    def add(self, observation: Observation, known: Known) -> bool:
        """Fold one more observation in; False when only a whole fold can tell, as `merge.extend` says it.

        Nothing may be added after that.
        """
        if observation.op == ASSERT and self._assert(observation, known):
            return True
        state = fold.extend(self.state(), observation, self.rules, known)
        if state is None:
            return False
        self._begin(state)
        return True

    def _assert(self, observation: Observation, known: Known) -> bool:
        """Fold in an assertion that needs no closer look; False leaves everything as it was."""
        fields = observation.fields
        names = tuple(fields)
        if names != self._names:
            self._turn_to(names)
        if (
            not self._takes
            or observation.remove
            or observation.replaces
            or (self._described and observation.fits != self.rules.digest and not self.rules.fit_described(fields))
            or known.namers(observation.digest)
        ):
            return False
        if self._apart and not self._hold(observation, fields, known):
            return False
        at = observation.observed_at
        if at > self._latest:
            if self._open:
                self._compare(observation, fields)
            self._waiting[observation.agent] = self._newest = observation
            self._latest = at
        else:
            self._lay_waiting()
            self._rival(observation)
            self._lay(observation)
        self._times += 1
        self.observations += 1
        self.body_bytes += len(observation.body)
        if observation.valid_from > self.until:
            self.until = observation.valid_from
        return True

    def _compare(self, observation: Observation, fields: Any) -> None:
        """Note where an assertion later than all before says something else than the last of them."""
        newest = self._newest
        if newest is None:
            if self._strata:
                self._rival(observation)
            return
        before = newest.fields
        new: list[str] | None = None
        for name in self._open:
            value, other = fields[name], before[name]
            if value is other or (type(value) is str and value == other) or not differ(value, other):
                continue
            if new is None:
                new = []
            new.append(name)
        if new is not None:
            self._rivals = {**self._rivals, **dict.fromkeys(new, True)}
            self._open = tuple([name for name in self._open if name not in new])

    def _rival(self, observation: Observation) -> None:
        """Note where what is laid next says something else than what is laid."""
        laid = self._laid(observation)
        strata = self._strata if self._index is None else self._index.about(laid)
        found = fold.rivals_with(strata, self._rivals, observation.observed_at, laid)
        if found is not self._rivals:
            self._rivals = found
            self._look_again()

    def _look_again(self) -> None:
        rivals, names = self._rivals, self._names
        if rivals:
            names = tuple([name for name in names if not rivals.get(name)])
        if self._others:
            names = tuple([name for name in names if name not in self._others])
        self._open = names

    def _turn_to(self, names: tuple[str, ...]) -> None:
        """Learn what an assertion of these fields asks for; they are mostly the same again and again."""
        if self._times:
            self._settle()
        if len(self._counts) >= NAMES_MAX:
            self.state()
        rules = self.rules
        others = rules.apart(names)
        self._names = names
        self._takes = others is not None and (not self._corrected or self._corrected.isdisjoint(names))
        self._described = rules.describes(names)
        self._others = others or ()
        self._apart = tuple([(name, rules.policy(name), partial(_fits, rules, name)) for name in self._others])  # type: ignore[misc]
        self._look_again()

    def _hold(self, observation: Observation, fields: Any, known: Known) -> bool:
        """Let the policies of the fields apart take in what is said of them; False leaves everything as it was."""
        held = self._held
        found: dict[str, Held] | None = None
        said = None
        for name, policy, fits in self._apart:
            value = fields[name]
            old = held.get(name)
            if old is not None and policy.outranks(old, value):
                continue
            if said is None:
                said = said_of(observation)
            claim = Claim(said, value)
            if policy.misfit(claim, True) is not None:
                return False
            new = policy.extend(old, claim, name, known, fits)
            if new is not old:
                if found is None:
                    found = {}
                found[name] = new
        if found is not None:
            if not self._owned:
                self._held, self._owned = {**held}, True
            self._held.update(found)
        return True

    def _settle(self) -> None:
        """Lay what waits, and count it."""
        self._lay_waiting()
        names = self._names
        if self._others:
            names = (*(name for name in names if name not in self._others), *self._others)  # as `extend` counts them
        self._counts[names] = self._counts.get(names, 0) + self._times
        self._times = 0

    def _lay_waiting(self) -> None:
        waiting = self._waiting
        if waiting:
            for observation in sorted(waiting.values(), key=_seen_at) if len(waiting) > 1 else waiting.values():
                self._lay(observation)
            waiting.clear()
            self._newest = None

    def _laid(self, observation: Observation) -> Any:
        laid: Any = observation.fields
        if self._others:
            laid = {name: value for name, value in laid.items() if name not in self._others}
        return laid

    def _lay(self, observation: Observation) -> None:
        laid = self._laid(observation)
        if not laid:
            return
        if self._index is None and len(self._strata) >= STRATA_MAX:
            self._index = StrataIndex(self._strata)
        if self._index is None:
            self._strata = fold.lay(self._strata, said_of(observation), laid)
        else:
            self._index.lay(said_of(observation), laid)


def _seen_at(observation: Observation) -> str:
    return observation.observed_at


def _fits(rules: Rules, name: str, claim: Claim, states_value: bool) -> bool:
    return rules.misfit(name, claim, states_value) is None
