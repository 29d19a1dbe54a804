"""Merge: a set of observations becomes merge state, which a snapshot shows.

The result depends on the set alone. `fold` is the definition; `extend` folds one more observation into what
was kept and must give what `fold` would give for all of them. Neither knows a log, a position or a clock.

An observation is *live* unless a live retraction of its own entity names it. Names are digests, so no
observation can name one that names it, and the recursion ends.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.merge import Claim, Held, Known, claim_of
from woodrat.merge.claim import PLAIN, Said, differ, later, replaced, said_of, top
from woodrat.merge.elements import Gathered, Parts
from woodrat.merge.ranked import LATEST, RankedHeld
from woodrat.merge.rules import Rules
from woodrat.records import dataclass
from woodrat.state.observation import ASSERT, DELETE, MARKERS, RETRACT, STATING, Observation

_make: Final = tuple.__new__
"""Makes a named tuple in half the time; used where there is one for every observation."""
_NO_NAMES: Final[frozenset[str]] = frozenset()
PAIRS_MAX: Final = 16
"""Up to how many claims comparing each with each is the fastest way to see whether two differ."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A delete or restore that nothing replaces."""

    digest: bytes
    """The observation."""
    deletes: bool
    """Whether it deletes; otherwise it restores."""


@dataclass(frozen=True, slots=True)
class FieldState:
    """What is kept of one field."""

    claims: int
    """Live claims that fit."""
    misfits: int
    """Live claims that do not fit the schema or the policy; they are kept as losers."""
    held: Held
    """What the policy keeps; `None` where the field has no value."""


class Stratum(NamedTuple):
    """What one assertion still says: the fields on which it is its agent's latest word."""

    said: Said
    """The assertion."""
    values: dict[str, Json]
    """What it says of them."""


class MergeState(NamedTuple):
    """All that is kept of one fold: an entity, or a group of entities joined by `same_as`.

    Fields under `latest` on which no correction stands are kept together, assertion by assertion: most records
    state the same fields again and again, and one more then costs about as much as one dictionary. Every other
    field is kept by its policy.
    """

    members: tuple[Ref, ...]
    """The entities folded together, by digest; mostly one."""
    merging: bytes
    """Digest of what the schema that it was folded under says about merging."""
    strata: tuple[Stratum, ...]
    """What is said under `latest`, from the lowest rank to the highest; at equal rank by digest."""
    rivals: Mapping[str, bool]
    """Of the fields in strata, those with a live claim of another value than the winner's.

    True where every such claim was observed earlier than the winner, False where one was observed at the same time.
    """
    held: Mapping[str, Held]
    """What the policies of the other fields with a value keep."""
    claims: Mapping[str, int]
    """How many live claims that fit each field has."""
    misfits: Mapping[str, int]
    """How many live claims that do not fit a field has; fields without any are left out."""
    markers: Mapping[bytes, tuple[Marker, ...]]
    """Standing markers of each member that has any, by digest."""
    live: int
    """Live statements and markers; with none the entity does not exist."""
    observations: int
    """Distinct observations folded, live or not."""
    until: str
    """The latest `valid_from` among them, retractions aside; empty without any."""
    body_bytes: int
    """How many bytes the bodies of all these observations have."""

    @property
    def exists(self) -> bool:
        """Whether anything live is said of it."""
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
        """Return what is kept of one field; `None` when it has no live claim."""
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

    With `only`, fields of other names are left out of it, as if nobody had stated them.
    """
    group = tuple(sorted(members, key=lambda ref: ref.digest))
    everything = {observation.digest: observation for observation in observations}
    assert all(o.entity in group for o in everything.values()), "only observations of the members are folded"
    acting = {digest: o for digest, o in everything.items() if rules.acts(o)}
    live = live_digests(acting)
    markers = _standing_markers(acting, live)
    deleted = {digest for digest, standing in markers.items() if _deletes(standing)}
    if len(deleted) == len(group):
        deleted = set()  # all of it is deleted: what the fields would be is kept for a restore
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
    rivals: dict[str, bool] = {}
    for name in {*fitting, *misfits}:
        policy = rules.policy(name)
        found = policy.fold(claims.get(name, []), live, originals.get(name, {}))
        if policy is LATEST and found is not None and not found.standing:
            for claim in found.agents.values():
                laid.setdefault(claim.digest, Stratum(claim.said, {})).values[name] = claim.value
            winner, value = found.joined, found.joined.value
            text = type(value) is str  # most are, and Python tells text from all else
            others = [
                claim.observed_at
                for claim in claims[name]
                if (claim.value != value if text else differ(claim.value, value))
                and not claim.corrects
                and claim.digest in live
            ]
            if others:
                rivals[name] = max(others) < winner.observed_at
        elif found is not None:
            held[name] = found
    alive = sum(1 for digest in live if acting[digest].op != RETRACT)
    strata = tuple(sorted(laid.values(), key=height))
    merging = rules.merging
    until = max((o.valid_from for o in everything.values() if o.op != RETRACT), default="")
    count, size = len(everything), sum([len(o.body) for o in everything.values()])
    return MergeState(group, merging, strata, rivals, held, fitting, misfits, markers, alive, count, until, size)


def extend(state: MergeState, observation: Observation, rules: Rules, known: Known) -> MergeState | None:
    """Fold one more observation in, or answer `None` when only a whole fold can tell.

    `observation` is not among those already folded, and `known` answers for exactly those. The cost does not
    depend on how many there are.
    """
    if known.namers(observation.digest) and rules.acts(observation):
        return None
    return extend_unnamed(state, observation, rules, known)


def extend_unnamed(state: MergeState, observation: Observation, rules: Rules, known: Known) -> MergeState | None:
    """Do as `extend` does, of an observation that none of those already folded names."""
    assert observation.entity in state.members and rules.merging == state.merging
    op, until = observation.op, state.until
    if observation.valid_from > until and op != RETRACT:
        until = observation.valid_from
    if (
        op == ASSERT
        and observation.fits == rules.digest
        and not (observation.remove or observation.replaces)
        and len(state.members) == 1
    ):  # nearly always: a lone entity, and values that were checked against this very schema
        return _fitting(state, observation, rules, known, until)
    count, size = state.observations + 1, state.body_bytes + len(observation.body)
    if op != ASSERT and not rules.acts(observation):
        return state._replace(observations=count, until=until, body_bytes=size)
    if op == RETRACT:
        return None
    if observation.replaces and any(
        namer.op == RETRACT for name in observation.replaces for namer in known.namers(name)
    ):
        return None
    grouped = len(state.members) > 1
    if grouped and (op in MARKERS or any(map(_deletes, state.markers.values()))):
        return None
    if op in MARKERS:
        member = observation.entity.digest
        others = (m for m in state.markers.get(member, ()) if m.digest not in observation.replaces)
        marker = Marker(observation.digest, op == DELETE)
        standing = tuple(sorted([*others, marker], key=lambda m: m.digest))
        return state._replace(
            markers={**state.markers, member: standing},
            live=state.live + 1,
            observations=count,
            until=until,
            body_bytes=size,
        )
    if op != ASSERT or observation.remove or not (observation.fits == rules.digest or rules.fit(observation.fields)):
        return _stated(state, observation, rules, known, until)
    return _fitting(state, observation, rules, known, until)


def _fitting(state: MergeState, observation: Observation, rules: Rules, known: Known, until: str) -> MergeState:
    """Fold in an assertion of values that all fit, and that nothing names."""
    fields, kept = observation.fields, state.held
    rest: AbstractSet[str] = _NO_NAMES if rules.only_latest else rules.others(fields)
    if kept and not kept.keys() <= rest:
        rest = {name for name in fields if name in kept or name in rest}
    said = said_of(observation)
    stated: dict[str, Json] = fields  # type: ignore[assignment]
    members, merging, strata, rivals, held, counts, misfits, markers, live, observations, _, size = state
    size += len(observation.body)
    claims = {**counts}
    for name in fields:
        claims[name] = claims[name] + 1 if name in claims else 1
    if rest:
        stated, held = {**fields}, {**kept}
        for name in rest:
            value, policy, old = stated.pop(name), rules.policy(name), kept.get(name)
            if old is not None and policy.outranks(old, value):
                continue  # what loses to what is held leaves no trace but its count
            claim = Claim(said, value)
            if policy.misfit(claim, True) is not None:
                misfits = {**misfits, name: misfits.get(name, 0) + 1}
                claims[name] -= 1
                if not claims[name]:
                    del claims[name]
                continue
            new = policy.extend(old, claim, name, known, rules.fits(name))
            if new is not None:
                held[name] = new
    if stated:  # an assertion that says nothing else leaves no stratum
        strata, rivals = lay_with_rivals(strata, rivals, said, stated)
    found: MergeState = _make(
        MergeState,
        (members, merging, strata, rivals, held, claims, misfits, markers, live + 1, observations + 1, until, size),
    )
    return found


def lay_with_rivals(
    strata: tuple[Stratum, ...], rivals: Mapping[str, bool], said: Said, values: dict[str, Json]
) -> tuple[tuple[Stratum, ...], Mapping[str, bool]]:
    """Return strata and rivals once an assertion is laid on them: what `lay` and `rivals_with` say."""
    observed_at, agent = said.observed_at, said.agent
    if not strata:
        return (_make(Stratum, (said, values)),), rivals
    top, below = strata[-1]
    if top.observed_at >= observed_at or False in rivals.values():
        return lay(strata, said, values), rivals_with(strata, rivals, observed_at, values)
    # Mostly it is later than all of them: it wins, and takes away what its agent said of the same fields.
    new = []
    for name, value in values.items():
        if name not in rivals:
            if name in below:
                other = below[name]
            else:
                for _, stated in strata[-2::-1]:
                    if name in stated:
                        other = stated[name]
                        break
                else:
                    continue
            # Text that is equal is the same; of anything else Python takes 1 and true for equal.
            if (value != other or type(value) is not str) and differ(value, other):
                new.append(name)
    if new:
        rivals = {**rivals, **dict.fromkeys(new, True)}
    kept = []
    stated_now = values.keys()
    for stratum in strata:
        other_said, old = stratum
        if other_said.agent != agent:
            kept.append(stratum)
        elif not old.keys() <= stated_now:
            left = {name: value for name, value in old.items() if name not in values}
            kept.append(stratum if len(left) == len(old) else Stratum(other_said, left))
    kept.append(_make(Stratum, (said, values)))
    return tuple(kept), rivals


def _stated(state: MergeState, observation: Observation, rules: Rules, known: Known, until: str) -> MergeState:
    """Fold in what a statement says of its fields, one by one."""
    said = said_of(observation)
    laid: dict[str, Json] = {}
    members, merging, strata, rivals, kept, counts, misfits, markers, live, observations, _, _ = state
    held, claims = {**kept}, {**counts}
    for name in observation.stated:
        policy = rules.policy(name)
        claim = claim_of(observation, name, said)
        states_value = name in observation.fields
        if rules.misfit(name, claim, states_value) is not None:
            misfits = {**misfits, name: misfits.get(name, 0) + 1}
            continue
        claims[name] = claims.get(name, 0) + 1
        if policy is LATEST and not said.corrects and name not in held:
            laid[name] = claim.value
            continue
        old = held.get(name)
        if policy is LATEST and old is None:
            old, strata = _gathered(strata, name), _without(strata, name)
            rivals = {other: earlier for other, earlier in rivals.items() if other != name}
        new = policy.extend(old, claim, name, known, rules.fits(name))
        if new is not None:
            held[name] = new
    if laid:
        strata, rivals = lay_with_rivals(strata, rivals, said, laid)
    size = state.body_bytes + len(observation.body)
    found: MergeState = _make(
        MergeState,
        (members, merging, strata, rivals, held, claims, misfits, markers, live + 1, observations + 1, until, size),
    )
    return found


def height(stratum: Stratum) -> tuple[str, int, bytes]:
    """Return where a stratum stands among others."""
    said = stratum.said
    return said.observed_at, said.priority, said.digest


def lay(strata: tuple[Stratum, ...], said: Said, values: dict[str, Json]) -> tuple[Stratum, ...]:
    """Lay an assertion on top of what its agent said before, or under it, by rank."""
    agent, observed_at, priority = said.agent, said.observed_at, said.priority
    kept: list[Stratum] = []
    if not strata or strata[-1].said.observed_at < observed_at:
        # Mostly it is later than all of them, and takes away what its agent said of the same fields.
        stated = values.keys()
        for stratum in strata:
            other, old = stratum
            if other.agent != agent:
                kept.append(stratum)
            elif not old.keys() <= stated:
                left = {name: value for name, value in old.items() if name not in values}
                kept.append(stratum if len(left) == len(old) else Stratum(other, left))
        kept.append(_make(Stratum, (said, values)))
        return tuple(kept)
    mine = dict(values)
    on_top = True
    for stratum in strata:
        other = stratum.said
        rank = (other.observed_at, other.priority)
        if rank >= (observed_at, priority):
            on_top = False
        if other.agent != agent or stratum.values.keys().isdisjoint(mine):
            kept.append(stratum)
            continue
        if rank < (observed_at, priority):
            if not stratum.values.keys() <= mine.keys():
                kept.append(Stratum(other, {name: v for name, v in stratum.values.items() if name not in mine}))
        elif rank > (observed_at, priority):
            mine = {name: value for name, value in mine.items() if name not in stratum.values}
            kept.append(stratum)
        else:
            theirs = dict(stratum.values)
            for name in theirs.keys() & mine.keys():
                one, two = Claim(other, theirs[name]), Claim(said, mine[name])
                del (theirs if later(one, two) is two else mine)[name]
            if theirs:
                kept.append(Stratum(other, theirs))
    if mine:
        stratum = Stratum(said, mine)
        if on_top:
            kept.append(stratum)
        else:
            insort(kept, stratum, key=height)
    return tuple(kept)


def rivals_with(
    strata: Sequence[Stratum], rivals: Mapping[str, bool], observed_at: str, values: Mapping[str, Json]
) -> Mapping[str, bool]:
    """Return `rivals` of some strata once an assertion is laid on them, which is not laid yet."""
    if not strata:
        return rivals
    top, below = strata[-1]
    latest = top.observed_at < observed_at
    if len(strata) == 1 and top.observed_at <= observed_at:
        # Nearly always. Text that is equal is the same; of anything else Python takes 1 and true for equal.
        odd = [
            name
            for name, value in values.items()
            if (below.get(name, value) != value or type(value) is not str)
            and name in below
            and not (latest and rivals.get(name))
        ]
        if latest:
            new = {name: True for name in odd if name in rivals or differ(values[name], below[name])}
            if False in rivals.values():
                new.update({name: True for name, earlier in rivals.items() if not earlier and name in values})
        else:  # whichever wins, the other was observed at the same time
            new = {name: False for name in odd if differ(values[name], below[name])}
        return {**rivals, **new} if new else rivals
    if latest:
        return _rivals_below(strata, rivals, values)
    new = {}
    for name, value in values.items():
        rival = rivals.get(name)
        for height in range(len(strata) - 1, -1, -1):
            said, stated = strata[height]
            if name not in stated:
                continue
            at = said.observed_at
            if at == observed_at:
                # Whichever wins, the other was observed at the same time.
                alone = not height or strata[height - 1].said.observed_at < at
                winner = stated[name] if alone else _gathered(strata, name).joined.value
                earlier = False if differ(value, winner) else None
            elif rival is None:
                earlier = True if differ(value, stated[name]) else None
            else:
                # One of equal time is earlier than a new winner, whatever that says.
                earlier = True if at < observed_at and not rival else None
            if earlier is not None:
                new[name] = earlier
            break
    return {**rivals, **new} if new else rivals


def _rivals_below(
    strata: Sequence[Stratum], rivals: Mapping[str, bool], values: Mapping[str, Json]
) -> Mapping[str, bool]:
    """Return `rivals` with an assertion later than all strata: it wins, and all it differs from was seen earlier."""
    new: dict[str, bool] = {}
    if False in rivals.values():
        new = {name: True for name, earlier in rivals.items() if not earlier and name in values}
    for name, value in values.items():
        if name in rivals:
            continue
        for _, stated in reversed(strata):
            if name in stated:
                other = stated[name]
                if (value != other or type(value) is not str) and differ(value, other):
                    new[name] = True
                break
    return {**rivals, **new} if new else rivals


def by_arrival(state: MergeState, rules: Rules, names: Iterable[str] | None = None) -> set[str]:
    """Return which of some fields, or of all, were decided only by arrival."""
    rivals, kept, strata = state.rivals, state.held, state.strata
    if not kept and len(strata) <= 1:
        if not rivals or not strata[0][0].assigned:
            return set()
        return {name for name in (rivals if names is None else names) if rivals.get(name)}
    found: set[str] = set()
    for name in (*rivals, *kept) if names is None else names:
        if name in kept:
            if rules.policy(name).by_arrival(kept[name]):
                found.add(name)
        elif rivals.get(name) and _winner(strata, name).assigned:
            found.add(name)
    return found


def _winner(strata: Sequence[Stratum], name: str) -> Said:
    """Return who wins a field that lies in strata."""
    found: Said | None = None
    for said, values in reversed(strata):
        if name in values:
            if found is None:
                found = said
            elif (found.observed_at, found.priority) == (said.observed_at, said.priority):
                winner: Said = _gathered(strata, name).joined.said
                return winner
            else:
                break
    assert found is not None, "a field with a rival has a winner"
    return found


def arrived(state: MergeState, rules: Rules, name: str) -> tuple[Claim, ...]:
    """Return the claims to show of a field that was decided only by arrival, the winner first."""
    held = state.held.get(name)
    return rules.policy(name).arrived(_gathered(state.strata, name) if held is None else held)


def _gathered(strata: Iterable[Stratum], name: str) -> Held:
    """Return what the policy `latest` would keep of a field that lies in strata."""
    agents = {s.said.agent: Claim(s.said, s.values[name]) for s in strata if name in s.values}
    return RankedHeld(top(agents.values()), {}, agents) if agents else None


def is_contested(strata: Sequence[Stratum], name: str) -> bool:
    """Return whether two agents differ on a field that lies in strata, neither having seen what the other says.

    It is what `latest` calls a contest; only what is no plain value, is of several types, or is stated by many is asked
    of it.
    """
    claims = [(said, values[name]) for said, values in strata if name in values]
    if len(claims) < 2:
        return False
    first = claims[0][1]
    kind = type(first)
    if kind not in PLAIN or any(type(value) is not kind for _, value in claims):
        return bool(LATEST.contest(_gathered(strata, name)))
    if all(value == first for _, value in claims):
        return False
    if len(claims) > PAIRS_MAX:
        return bool(LATEST.contest(_gathered(strata, name)))
    return any(
        value != other and said.digest not in saying.saw and saying.digest not in said.saw
        for index, (said, value) in enumerate(claims)
        for saying, other in claims[:index]
    )


def _without(strata: Iterable[Stratum], name: str) -> tuple[Stratum, ...]:
    """Return strata without a field."""
    rest = (
        Stratum(s.said, {n: v for n, v in s.values.items() if n != name}) if name in s.values else s for s in strata
    )
    return tuple(stratum for stratum in rest if stratum.values)


def values(state: MergeState, rules: Rules, names: Collection[str] | None = None) -> dict[str, Json]:
    """Return the value of every field that has one, by name; with `names` of these alone."""
    found: dict[str, Json] = {}
    tied: set[str] = set()
    below: Said | None = None
    last: Collection[str] = ()
    level: set[str] | None = None
    for said, stated in state.strata:
        if below is not None and (below.observed_at, below.priority) == (said.observed_at, said.priority):
            level = set(last) if level is None else level
            tied.update(level.intersection(stated))
            level.update(stated)
        else:
            level = None
        found.update(stated)
        below, last = said, stated
    for name in tied:
        # Equal ranks are settled field by field, by value and then by digest.
        found[name] = _gathered(state.strata, name).joined.value
    if names is not None:
        found = {name: value for name, value in found.items() if name in names}
    for name, held in state.held.items():
        if names is None or name in names:
            found[name] = rules.policy(name).value(held)
    return found


def valued(state: MergeState) -> set[str]:
    """Return the fields that have a value."""
    return {*state.held, *(name for stratum in state.strata for name in stratum.values)}


def is_spread(state: MergeState) -> bool:
    """Return whether there is a collection whose parts are kept one by one."""
    for kept in state.held.values():  # noqa: SIM110 - asked several times of every record; a generator shows
        if type(kept) is not RankedHeld and getattr(kept, "is_spread", False):
            return True
    return False


def spread(state: MergeState) -> dict[str, Gathered[Any]]:
    """Return what is held of the collections whose parts are kept one by one, by field."""
    return {name: kept for name, kept in state.held.items() if getattr(kept, "is_spread", False)}


def with_parts(state: MergeState, change: Callable[[str, Gathered[Any]], Parts[Any]]) -> MergeState:
    """Return a state with the parts of its spread collections elsewhere; one without any as it is."""
    if not state.held or not is_spread(state):
        return state
    found = spread(state)
    return state._replace(held={**state.held, **{name: held.but(change(name, held)) for name, held in found.items()}})


def handed_over(state: MergeState) -> MergeState:
    """Return a state whose parts whoever keeps them was told of."""
    return with_parts(state, lambda name, held: held.parts.handed_over())


def in_memory(state: MergeState) -> MergeState:
    """Return a state all of which is in memory, so that it outlasts the view it was read in."""
    return with_parts(state, lambda name, held: held.parts.in_memory())


def empty(members: Iterable[Ref], rules: Rules) -> MergeState:
    """Return the merge state of nothing."""
    group = tuple(members)
    if len(group) > 1:
        group = tuple(sorted(group, key=lambda ref: ref.digest))
    return MergeState(group, rules.merging, (), {}, {}, {}, {}, {}, 0, 0, "", 0)


def standing_corrections(state: MergeState, names: Iterable[str], rules: Rules) -> frozenset[bytes]:
    """Return the corrections that stand on any of these fields: what a new correction of them replaces."""
    found: set[bytes] = set()
    for name in names:
        held = state.held.get(name)
        if held is not None:
            found |= rules.policy(name).standing(held)
    return frozenset(found)


def standing_markers(state: MergeState, member: Ref) -> frozenset[bytes]:
    """Return the markers that stand on a member: what a new delete or restore of it replaces."""
    return frozenset(marker.digest for marker in state.markers.get(member.digest, ()))


def is_deleted(state: MergeState, member: Ref) -> bool:
    """Return whether this one member is deleted, whatever the others are."""
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


class _Unnamed:
    """Knows of observations that nothing names, and of no others: enough for assertions."""

    def find(self, digest: bytes) -> None:
        return None

    def namers(self, digest: bytes) -> tuple[()]:
        return ()


UNNAMED: Final[Known] = _Unnamed()


class Folding:
    """A fold that grows by one observation at a time; it answers for what it has folded as `Known`."""

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
