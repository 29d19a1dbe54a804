"""Merge: a set of observations becomes merge state, which a snapshot shows.

The result depends on the set alone. `fold` is the definition; `extend` adds one more observation to a stored state and
must give the same result as `fold` for all of them. Neither knows a log, a position or a clock.

An observation is *live* unless a live retraction of its own entity names it. Names are digests, so no observation can
name one that names it, and the recursion terminates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, NamedTuple

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.merge import Claim, FoldHistory, Held, claim_of, rank
from woodrat.merge.claim import Said, differ, replaced, said_of
from woodrat.merge.elements import CollectionState, Parts
from woodrat.merge.rank import arrived_later
from woodrat.merge.ranked import LATEST, RankedHeld
from woodrat.merge.rules import Rules
from woodrat.records import dataclass
from woodrat.state.observation import ASSERT, DELETE, MARKERS, RETRACT, STATING, Observation


@dataclass(frozen=True, slots=True)
class Marker:
    """A delete or restore that is not replaced."""

    digest: bytes
    """The observation."""
    deletes: bool
    """Whether it deletes; otherwise it restores."""


@dataclass(frozen=True, slots=True)
class FieldState:
    """The state of one field."""

    claims: int
    """Live claims that fit."""
    misfits: int
    """Live claims that do not fit the schema or the policy; they stay as losers."""
    held: Held
    """The policy's state; `None` if the field has no value."""


class Stratum(NamedTuple):
    """The remaining part of one assertion: the fields on which it is its agent's latest claim."""

    said: Said
    """The assertion."""
    values: dict[str, Json]
    """Its values of them."""


class MergeState(NamedTuple):
    """The result of one fold: an entity, or a group of entities joined by `same_as`.

    Fields under `latest` without corrections are stored together, assertion by assertion: most records state the same
    fields again and again, so one more costs about as much as one dictionary. Every other field is stored by its
    policy.
    """

    members: tuple[Ref, ...]
    """The entities folded together, by digest; mostly one."""
    merging: bytes
    """Digest of the merge-related part of the schema that it was folded under."""
    strata: tuple[Stratum, ...]
    """The strata, from the lowest rank to the highest; equal ranks by digest."""
    against: Mapping[str, str]
    """Of the fields in strata, the last time when a live claim differed from the winner's value."""
    held: Mapping[str, Held]
    """The policy states of the other fields with a value."""
    claims: Mapping[str, int]
    """Number of fitting live claims, by field."""
    misfits: Mapping[str, int]
    """The number of live claims that do not fit, by field; fields without any are omitted."""
    markers: Mapping[bytes, tuple[Marker, ...]]
    """Standing markers of each member that has any, by digest."""
    live: int
    """Live statements and markers; with none the entity does not exist."""
    observations: int
    """Distinct observations folded, live or not."""
    until: str
    """The latest `valid_from` among them, retractions aside; empty without any."""
    body_bytes: int
    """Total size of the bodies of these observations."""

    @property
    def exists(self) -> bool:
        """Whether the entity has any live observation."""
        return self.live > 0

    @property
    def deleted(self) -> bool:
        """Whether every member is deleted."""
        return bool(self.markers) and all(_deletes(self.markers.get(member.digest, ())) for member in self.members)

    @property
    def names(self) -> set[str]:
        """Every field with a live claim."""
        return {*self.claims, *self.misfits}

    def field(self, name: str) -> FieldState | None:
        """Return the state of one field; `None` when it has no live claim."""
        claims, misfits = self.claims.get(name, 0), self.misfits.get(name, 0)
        if not claims and not misfits:
            return None
        held = self.held.get(name)
        return FieldState(claims, misfits, _gathered(self.strata, name) if held is None else held)


def live_digests(observations: Mapping[bytes, Observation]) -> set[bytes]:
    """Return the digests of those observations that no live retraction withdraws."""
    retractors: dict[bytes, list[bytes]] = {}
    for digest, observation in observations.items():
        if observation.op == RETRACT:
            for name in observation.replaces:
                target = observations.get(name)
                if target is not None and target.entity == observation.entity:
                    retractors.setdefault(name, []).append(digest)
    withdrawn: dict[bytes, bool] = {}
    for start in retractors:
        waiting = [start]
        while waiting:
            # Depth first without recursion: a chain of retractions may be longer than Python's stack.
            digest = waiting[-1]
            unknown = [r for r in retractors.get(digest, ()) if r in retractors and r not in withdrawn]
            if unknown and digest not in withdrawn:
                waiting.extend(unknown)
                continue
            withdrawn[digest] = any(not withdrawn.get(r, False) for r in retractors.get(digest, ()))
            waiting.pop()
    return {digest for digest in observations if not withdrawn.get(digest, False)}


def fold(
    observations: Iterable[Observation], members: Iterable[Ref], rules: Rules, only: Collection[str] | None = None
) -> MergeState:
    """Return the merge state these observations of `members` support; repetitions count once.

    With `only`, other fields are ignored, as if nobody had stated them.
    """
    group = tuple(sorted(members, key=lambda ref: ref.digest))
    everything = {observation.digest: observation for observation in observations}
    assert all(o.entity in group for o in everything.values()), "only observations of the members are folded"
    acting = {digest: o for digest, o in everything.items() if rules.acts(o)}
    live = live_digests(acting)
    markers = _standing_markers(acting, live)
    deleted = {digest for digest, standing in markers.items() if _deletes(standing)}
    if len(deleted) == len(group):
        deleted = set()  # all of it is deleted: the fields are stored for a restore
    claims: dict[str, list[Claim]] = {}
    originals: dict[str, dict[bytes, Claim]] = {}
    fitting: dict[str, int] = {}
    misfits: dict[str, int] = {}
    for digest, observation in acting.items():
        if observation.op not in STATING or observation.entity.digest in deleted:
            continue
        said = said_of(observation)
        for name in observation.stated:
            if only is not None and name not in only:
                continue
            claim = claim_of(observation, name, said)
            fits = rules.misfit(name, claim, name in observation.fields) is None
            if fits:
                claims.setdefault(name, []).append(claim)
            if observation.op == ASSERT:
                originals.setdefault(name, {})[digest] = claim
            if digest in live:
                counts = fitting if fits else misfits
                counts[name] = counts.get(name, 0) + 1
    held: dict[str, Held] = {}
    laid: dict[bytes, Stratum] = {}
    against: dict[str, str] = {}
    for name in {*fitting, *misfits}:
        policy = rules.policy(name)
        found = policy.fold(claims.get(name, []), live, originals.get(name, {}))
        if policy is LATEST and found is not None and not found.standing:
            for claim in found.agents.values():
                laid.setdefault(claim.digest, Stratum(claim.said, {})).values[name] = claim.value
            asserted = (claim for claim in claims[name] if claim.digest in live and not claim.corrects)
            others = [claim.observed_at for claim in asserted if differ(claim.value, found.joined.value)]
            if others:
                against[name] = max(others)
        elif found is not None:
            held[name] = found
    strata = tuple(sorted(laid.values(), key=cmp_to_key(_compare)))
    alive = sum(1 for digest in live if acting[digest].op != RETRACT)
    until = max((o.valid_from for o in everything.values() if o.op != RETRACT), default="")
    count, size = len(everything), sum([len(o.body) for o in everything.values()])
    return MergeState(group, rules.merging, strata, against, held, fitting, misfits, markers, alive, count, until, size)


def extend(state: MergeState, observation: Observation, rules: Rules, known: FoldHistory) -> MergeState | None:
    """Add one more observation, or return `None` when only a whole fold can tell.

    `observation` is not among those already folded, and `known` answers for exactly those. The cost does not depend on
    the number of observations.
    """
    assert observation.entity in state.members and rules.merging == state.merging
    op, until = observation.op, state.until
    if op != RETRACT and observation.valid_from > until:
        until = observation.valid_from
    count, size = state.observations + 1, state.body_bytes + len(observation.body)
    if not rules.acts(observation):
        return state._replace(observations=count, until=until, body_bytes=size)
    if op == RETRACT or known.namers(observation.digest):
        return None
    if observation.replaces:
        named = (namer for name in observation.replaces for namer in known.namers(name))
        if any(namer.op == RETRACT for namer in named):
            return None
    if len(state.members) > 1 and (op in MARKERS or any(map(_deletes, state.markers.values()))):
        return None
    if op in STATING:
        return _stated(state, observation, rules, known, (state.live + 1, count, until, size))
    member = observation.entity.digest
    others = (m for m in state.markers.get(member, ()) if m.digest not in observation.replaces)
    standing = sorted([*others, Marker(observation.digest, op == DELETE)], key=lambda m: m.digest)
    markers = {**state.markers, member: tuple(standing)}
    return state._replace(markers=markers, live=state.live + 1, observations=count, until=until, body_bytes=size)


def _stated(
    state: MergeState, observation: Observation, rules: Rules, known: FoldHistory, counts: tuple[int, int, str, int]
) -> MergeState:
    """Add an observation's fields."""
    members, merging, strata, against, held, claims, misfits, markers, *_ = state
    fields, remove, said = observation.fields, observation.remove, said_of(observation)
    # Mostly the values were checked against this very schema, and only policies other than `latest` need a check.
    fit = observation.fits == rules.digest or rules.fit(fields)
    laid: dict[str, Json] = fields  # type: ignore[assignment]
    claims = {**claims}
    rest: Iterable[str] = ()
    if said.corrects or remove or not fit:
        laid, rest = {}, observation.stated
    elif not rules.only_latest or held:
        rest = rules.others(fields).union(held.keys() & fields.keys())
        laid = {name: value for name, value in laid.items() if name not in rest} if rest else laid
    for name in laid:
        claims[name] = claims[name] + 1 if name in claims else 1
    now: dict[str, Held] = {**held} if rest else held  # type: ignore[assignment]
    for name in rest:
        claim, policy = Claim(said, fields.get(name), remove.get(name, ())), rules.policy(name)
        if rules.misfit(name, claim, name in fields) is not None:
            misfits = {**misfits, name: misfits.get(name, 0) + 1}
            continue
        claims[name] = claims.get(name, 0) + 1
        old = now.get(name)
        if policy is LATEST and old is None:
            if not said.corrects:
                laid[name] = claim.value
                continue
            old, strata = _gathered(strata, name), _without(strata, name)
            against = {other: at for other, at in against.items() if other != name}
        found = policy.extend(old, claim, name, known, rules.misfit)
        if found is not None:
            now[name] = found
    if laid:
        strata, against = lay(strata, against, said, laid)
    return MergeState(members, merging, strata, against, now, claims, misfits, markers, *counts)


def lay(
    strata: tuple[Stratum, ...], against: Mapping[str, str], said: Said, values: dict[str, Json]
) -> tuple[tuple[Stratum, ...], Mapping[str, str]]:
    """Add an assertion to strata: return them, and the last time when another value than the winner's was observed."""
    new: dict[str, str] = {}
    compare = rank.LATEST.compare
    # Common case: it ranks above all strata, whatever its values, and no two of these are equal.
    is_highest, upper = True, said
    for lower, _ in reversed(strata):
        if compare(upper, lower) <= 0:
            is_highest = False
            break
        upper = lower
    if is_highest:
        left: Set[str] = values.keys()
        for theirs, stated in reversed(strata):
            both = stated.keys() & left
            for name in both:
                value, old = values[name], stated[name]
                # Common case: a repetition. Of other types than text Python takes 1 and true for equal.
                if (value != old or type(value) is not str) and differ(value, old):
                    new[name] = max(theirs.observed_at, against.get(name, ""))
            left = left - both
    else:
        for name, value in values.items():
            for _, stated in reversed(strata):
                if name in stated:
                    break
            else:
                continue
            if value == stated[name] and type(value) is str:
                continue
            winner = _winner(strata, name)
            if differ(value, winner.value):
                wins = rank.LATEST.higher(winner, Claim(said, value)) is not winner
                last = winner.observed_at if wins else said.observed_at
                new[name] = max(last, against.get(name, ""))
    kept: list[Stratum] = []
    mine = values
    for stratum in strata:
        other, stated = stratum
        if other.agent != said.agent or stated.keys().isdisjoint(mine):
            kept.append(stratum)
            continue
        above = 1 if is_highest else compare(said, other)
        if above > 0:
            if stated.keys() <= mine.keys():
                continue
            lost: Collection[str] = mine.keys()
        elif above < 0:
            lost, mine = (), {name: value for name, value in mine.items() if name not in stated}
        else:
            claims = ((name, Claim(other, stated[name]), Claim(said, mine[name])) for name in stated if name in mine)
            lost = {name for name, old, claim in claims if rank.LATEST.higher(old, claim) is claim}
            mine = {name: value for name, value in mine.items() if name in lost or name not in stated}
        rest = {name: value for name, value in stated.items() if name not in lost} if lost else stated
        if rest:
            kept.append(Stratum(other, rest))
    if mine:
        place, stratum = len(kept), Stratum(said, mine)
        while place and not is_highest and _compare(stratum, kept[place - 1]) < 0:
            place -= 1
        kept.insert(place, stratum)
    return tuple(kept), {**against, **new} if new else against


def _compare(one: Stratum, other: Stratum) -> int:
    """Compare two strata: by rank, then by digest."""
    found = rank.LATEST.compare(one.said, other.said)
    return found or (1 if one.said.digest > other.said.digest else -1)


def _winner(strata: Sequence[Stratum], name: str) -> Claim:
    """Return the winner of a field that is stored in strata."""
    found: Claim | None = None
    for said, values in reversed(strata):
        if found is not None and rank.LATEST.compare(found.said, said):
            break
        if name in values:
            claim = Claim(said, values[name])
            found = claim if found is None else rank.LATEST.higher(found, claim)
    assert found is not None, "only called for a field in strata"
    return found


def _gathered(strata: Iterable[Stratum], name: str) -> Held:
    """Return the state that the policy `latest` would have for a field in strata."""
    agents = {s.said.agent: Claim(s.said, s.values[name]) for s in strata if name in s.values}
    return RankedHeld(rank.LATEST.top(agents.values()), {}, agents) if agents else None


def _without(strata: Iterable[Stratum], name: str) -> tuple[Stratum, ...]:
    """Return strata without a field."""
    rest = (Stratum(s.said, {n: v for n, v in s.values.items() if n != name}) for s in strata)
    return tuple(stratum for stratum in rest if stratum.values)


def values(state: MergeState, rules: Rules, names: Collection[str] | None = None) -> dict[str, Json]:
    """Return the value of every field that has one, by name; with `names` of these alone."""
    strata = state.strata
    found: dict[str, Json] = {}
    for _, stated in strata:
        found.update(stated)
    for below, above in pairwise(strata):
        if not rank.LATEST.compare(above.said, below.said):
            # On a par the value decides, field by field.
            found.update((name, _winner(strata, name).value) for name in above.values)
    if names is not None:
        found = {name: value for name, value in found.items() if name in names}
    for name, held in state.held.items():
        if names is None or name in names:
            found[name] = rules.policy(name).value(held)
    return found


def valued(state: MergeState) -> set[str]:
    """Return the fields that have a value."""
    return {*state.held, *(name for stratum in state.strata for name in stratum.values)}


def contested(state: MergeState, rules: Rules, names: Collection[str] | None = None) -> set[str]:
    """Return which of some fields, or of all, two agents state differently, neither having seen the other's claim."""
    held, strata = state.held, state.strata
    # Equal values do not conflict, and one stratum belongs to one agent.
    asked = {*held, *state.against} if len(strata) > 1 else set(held)
    if names is not None:
        asked.intersection_update(names)
    return {name for name in asked if rules.policy(name).contest(held.get(name) or _gathered(strata, name))}


def by_arrival(state: MergeState, rules: Rules, names: Iterable[str] | None = None) -> set[str]:
    """Return which of some fields, or of all, were decided only by arrival."""
    held, against = state.held, state.against
    asked = {*held, *against}
    if names is not None:
        asked.intersection_update(names)
    return {
        name
        for name in asked
        if (
            rules.policy(name).by_arrival(held[name])
            if name in held
            else arrived_later(_winner(state.strata, name).said, against[name])
        )
    }


def is_spread(state: MergeState) -> bool:
    """Return True if there is a collection whose parts are stored one by one."""
    for kept in state.held.values():  # noqa: SIM110 - called several times for every record; a generator shows
        if type(kept) is not RankedHeld and getattr(kept, "is_spread", False):
            return True
    return False


def spread(state: MergeState) -> dict[str, CollectionState[Any]]:
    """Return the states of collections whose parts are stored one by one, by field."""
    return {name: kept for name, kept in state.held.items() if getattr(kept, "is_spread", False)}


def with_parts(state: MergeState, change: Callable[[str, CollectionState[Any]], Parts[Any]]) -> MergeState:
    """Return a state with the parts of its spread collections elsewhere; unchanged if there are none."""
    if not is_spread(state):
        return state
    found = spread(state)
    return state._replace(held={**state.held, **{name: held.but(change(name, held)) for name, held in found.items()}})


def handed_over(state: MergeState) -> MergeState:
    """Return a state after its new parts were saved."""
    return with_parts(state, lambda name, held: held.parts.handed_over())


def in_memory(state: MergeState) -> MergeState:
    """Return a state fully in memory, so that it outlives the view it was read in."""
    return with_parts(state, lambda name, held: held.parts.in_memory())


def empty(members: Iterable[Ref], rules: Rules) -> MergeState:
    """Return the merge state of an empty set."""
    group = tuple(members)
    if len(group) > 1:
        group = tuple(sorted(group, key=lambda ref: ref.digest))
    return MergeState(group, rules.merging, (), {}, {}, {}, {}, {}, 0, 0, "", 0)


def standing_corrections(state: MergeState, names: Iterable[str], rules: Rules) -> frozenset[bytes]:
    """Return the effective corrections on any of these fields: a new correction replaces them."""
    found: set[bytes] = set()
    for name in names:
        held = state.held.get(name)
        if held is not None:
            found |= rules.policy(name).standing(held)
    return frozenset(found)


def standing_markers(state: MergeState, member: Ref) -> frozenset[bytes]:
    """Return the effective markers on a member: a new delete or restore replaces them."""
    return frozenset(marker.digest for marker in state.markers.get(member.digest, ()))


def is_deleted(state: MergeState, member: Ref) -> bool:
    """Return True if this one member is deleted, whatever the state of the others."""
    return _deletes(state.markers.get(member.digest, ()))


def _deletes(standing: Collection[Marker]) -> bool:
    return any(marker.deletes for marker in standing)


def _standing_markers(acting: Mapping[bytes, Observation], live: set[bytes]) -> dict[bytes, tuple[Marker, ...]]:
    by_member: dict[bytes, list[Observation]] = {}
    for observation in acting.values():
        if observation.op in MARKERS:
            by_member.setdefault(observation.entity.digest, []).append(observation)
    found: dict[bytes, tuple[Marker, ...]] = {}
    for member, markers in by_member.items():
        gone = replaced({m.digest: m.replaces for m in markers}, live)
        standing = [Marker(m.digest, m.op == DELETE) for m in markers if m.digest in live and m.digest not in gone]
        if standing:
            found[member] = tuple(sorted(standing, key=lambda marker: marker.digest))
    return found


class Folding:
    """A fold that grows by one observation at a time; it implements `FoldHistory` for the observations so far."""

    def __init__(self, members: Iterable[Ref], rules: Rules) -> None:
        self.rules = rules
        self.state = empty(members, rules)
        self.observations: dict[bytes, Observation] = {}
        self._namers: dict[bytes, list[Observation]] = {}

    def add(self, observation: Observation) -> MergeState:
        """Fold one more in; one already folded changes nothing."""
        if observation.digest not in self.observations:
            extended = extend(self.state, observation, self.rules, self)
            self.observations[observation.digest] = observation
            for name in observation.replaces:
                self._namers.setdefault(name, []).append(observation)
            if extended is None:
                extended = fold(self.observations.values(), self.state.members, self.rules)
            self.state = extended
        return self.state

    def find(self, digest: bytes) -> Observation | None:
        return self.observations.get(digest)

    def namers(self, digest: bytes) -> Collection[Observation]:
        return self._namers.get(digest, ())
