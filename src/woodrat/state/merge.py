"""Merge: a set of observations becomes merge state, which a snapshot shows.

The result depends on the set alone. `fold` is the definition; `extend` folds one more observation into what
was kept and must give what `fold` would give for all of them. Neither knows a log, a position or a clock.

An observation is *live* unless a live retraction of its own entity names it. Names are digests, so no
observation can name one that names it, and the recursion ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import orjson

from woodrat.canon.ids import Ref
from woodrat.errors import Unavailable
from woodrat.state.builtin import FROZEN_TYPES
from woodrat.state.observation import ASSERT, DELETE, MARKERS, RETRACT, STATING, Observation
from woodrat.state.policy import BUILTIN, Claim, Held, Known, Policy, claim_of
from woodrat.state.policy.claim import replaced, said_of
from woodrat.state.policy.packing import Packer, Unpacker, digest_text, text_digest
from woodrat.state.schema import PolicyName, Schema


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


@dataclass(frozen=True, slots=True)
class MergeState:
    """All that is kept of one fold: an entity, or a group of entities joined by `same_as`."""

    members: tuple[Ref, ...]
    """The entities folded together, by digest; mostly one."""
    schema: bytes
    """Digest of the schema it was folded under."""
    fields: Mapping[str, FieldState]
    """Every field with a live claim."""
    markers: Mapping[bytes, tuple[Marker, ...]]
    """Standing markers of each member that has any, by digest."""
    live: int
    """Live statements and markers; with none the entity does not exist."""
    observations: int
    """Distinct observations folded, live or not."""

    @property
    def exists(self) -> bool:
        """Whether anything live is said of it."""
        return self.live > 0

    @property
    def deleted(self) -> bool:
        """Whether every member is deleted."""
        return bool(self.markers) and all(_deletes(self.markers.get(member.digest, ())) for member in self.members)


class Rules:
    """A schema together with the policies it names: what a merge needs to know of a type."""

    def __init__(self, schema: Schema, policies: Mapping[str, Policy] = BUILTIN) -> None:
        self.schema = schema
        self._policies = policies
        self._by_field: dict[str, Policy] = {}
        self._described = schema.properties.keys()
        self.frozen = schema.type in FROZEN_TYPES

    def policy(self, name: str) -> Policy:
        """Return the policy of a field, or refuse to fold where its code is not here."""
        found = self._by_field.get(name)
        if found is None:
            found = self._by_field[name] = find_policy(self.schema.policy_of(name), self._policies)
        return found

    def misfit(self, name: str, claim: Claim, states_value: bool) -> str | None:
        """Return why a claim does not fit its field, or `None`."""
        if states_value and name in self._described:
            problem = self.schema.claim_fault(name, claim.value)
            if problem is not None:
                return problem
        return self.policy(name).misfit(claim, states_value)

    def acts(self, observation: Observation) -> bool:
        """Return whether an observation has any effect; on a frozen type only assertions do."""
        return not self.frozen or observation.op == ASSERT


def find_policy(name: PolicyName, policies: Mapping[str, Policy]) -> Policy:
    """Return the policy of this name, version and code."""
    found = policies.get(str(name))
    if found is None or found.name != name:
        raise Unavailable(
            f"Merge policy {name} with code {name.code} is not loaded here, so nothing that needs it is folded. "
            "Nothing was written. Open the ledger with that policy.",
            {"policy": name.to_json()},
        )
    return found


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


def fold(observations: Iterable[Observation], members: Iterable[Ref], rules: Rules) -> MergeState:
    """Return the merge state these observations of `members` support; repetitions count once."""
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
    counts: dict[str, list[int]] = {}
    for digest, observation in acting.items():
        if observation.op not in STATING or observation.entity.digest in deleted:
            continue
        said = said_of(observation)
        for name in observation.stated:
            claim = claim_of(observation, name, said)
            fits = rules.misfit(name, claim, name in observation.fields) is None
            if fits:
                claims.setdefault(name, []).append(claim)
            if observation.op == ASSERT:
                originals.setdefault(name, {})[digest] = claim
            if digest in live:
                counts.setdefault(name, [0, 0])[0 if fits else 1] += 1
    fields = {
        name: FieldState(fitting, misfits, rules.policy(name).fold(claims.get(name, []), live, originals.get(name, {})))
        for name, (fitting, misfits) in counts.items()
    }
    alive = sum(1 for digest in live if acting[digest].op != RETRACT)
    return MergeState(group, rules.schema.digest, fields, markers, alive, len(everything))


def extend(state: MergeState, observation: Observation, rules: Rules, known: Known) -> MergeState | None:
    """Fold one more observation in, or answer `None` when only a whole fold can tell.

    `observation` is not among those already folded, and `known` answers for exactly those. The cost does not
    depend on how many there are.
    """
    assert observation.entity in state.members and rules.schema.digest == state.schema
    counted = replace(state, observations=state.observations + 1)
    if not rules.acts(observation):
        return counted
    if observation.op == RETRACT or known.namers(observation.digest):
        return None
    if any(namer.op == RETRACT for name in observation.replaces for namer in known.namers(name)):
        return None
    grouped = len(state.members) > 1
    if grouped and (observation.op in MARKERS or any(map(_deletes, state.markers.values()))):
        return None
    if observation.op in MARKERS:
        member = observation.entity.digest
        others = (m for m in state.markers.get(member, ()) if m.digest not in observation.replaces)
        marker = Marker(observation.digest, observation.op == DELETE)
        standing = tuple(sorted([*others, marker], key=lambda m: m.digest))
        return replace(counted, markers={**state.markers, member: standing}, live=state.live + 1)
    fields = dict(state.fields)
    said = said_of(observation)
    for name in observation.stated:
        claim = claim_of(observation, name, said)
        old = fields.get(name, FieldState(0, 0, None))
        if rules.misfit(name, claim, name in observation.fields) is not None:
            fields[name] = replace(old, misfits=old.misfits + 1)
            continue

        def fits(other: Claim, states_value: bool, name: str = name) -> bool:
            return rules.misfit(name, other, states_value) is None

        held = rules.policy(name).extend(old.held, claim, name, known, fits)
        fields[name] = FieldState(old.claims + 1, old.misfits, held)
    return replace(counted, fields=fields, live=state.live + 1)


def empty(members: Iterable[Ref], rules: Rules) -> MergeState:
    """Return the merge state of nothing."""
    return fold((), members, rules)


def standing_corrections(state: MergeState, names: Iterable[str], rules: Rules) -> frozenset[bytes]:
    """Return the corrections that stand on any of these fields: what a new correction of them replaces."""
    found: set[bytes] = set()
    for name in names:
        field = state.fields.get(name)
        if field is not None and field.held is not None:
            found |= rules.policy(name).standing(field.held)
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


def pack(state: MergeState, rules: Rules) -> bytes:
    """Return merge state as bytes that `unpack` gives back; derived data, and no format."""
    packer = Packer()
    fields = {
        name: [field.claims, field.misfits, None if field.held is None else rules.policy(name).pack(field.held, packer)]
        for name, field in state.fields.items()
    }
    markers = [
        [digest_text(member), [[digest_text(marker.digest), marker.deletes] for marker in standing]]
        for member, standing in state.markers.items()
    ]
    members = [[member.type, member.key] for member in state.members]
    schema = digest_text(state.schema)
    return orjson.dumps([packer.saids, members, schema, fields, markers, state.live, state.observations])


def unpack(data: bytes, rules: Rules) -> MergeState | None:
    """Return merge state from bytes; `None` when it was folded under another schema than that of `rules`."""
    saids, members, schema, fields, markers, live, observations = orjson.loads(data)
    if text_digest(schema) != rules.schema.digest:
        return None
    unpacker = Unpacker(saids)
    return MergeState(
        members=tuple(Ref(type, key) for type, key in members),
        schema=rules.schema.digest,
        fields={
            name: FieldState(claims, misfits, held and rules.policy(name).unpack(held, unpacker))
            for name, (claims, misfits, held) in fields.items()
        },
        markers={
            text_digest(member): tuple(Marker(text_digest(digest), deletes) for digest, deletes in standing)
            for member, standing in markers
        },
        live=live,
        observations=observations,
    )


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
