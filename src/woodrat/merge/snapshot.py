"""Snapshot: the merged state of one entity, or of a group joined by `same_as`, at one as-of.

A snapshot is derived and never written by callers. Each value names the observation that set it, its policy and its
number of claims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.merge import Claim, Policy, fold
from woodrat.merge.fold import FieldState, MergeState
from woodrat.merge.policy import Held
from woodrat.merge.rules import Rules
from woodrat.record_json import Describe, Record, form_of, object_schema, read
from woodrat.records import dataclass
from woodrat.state import fingerprint
from woodrat.state.fact import Fact
from woodrat.state.match import Match
from woodrat.state.schema import schema_name
from woodrat.state.schema_keywords import COLLECTIONS

TOLD_MAX = 1_000
"""Most elements of a collection, and observations behind it, in the JSON of a snapshot unless it is `whole`."""


@dataclass(frozen=True, slots=True)
class Origin(Record):
    """Where the value of one field came from."""

    observation: ids.ObservationId
    """The observation that set the value; for a collection or a sum, the latest one."""
    agent: str
    """Who said so."""
    observed_at: str
    """When they saw it."""
    priority: int
    """The priority they claimed."""
    policy: str
    """The merge policy that chose it."""
    claims: int
    """Number of live claims on the field."""
    misfits: int
    """Number of other live claims that do not fit the schema or the policy."""
    corrected: bool
    """Whether a correction is in effect on the field."""
    observations: tuple[ids.ObservationId, ...]
    """All observations that set the value, by digest; for a sum only the one shown."""
    by_arrival: bool = False
    """Whether the value, or an element of it, was decided only by arrival: no observation time was given."""
    because: str | None = None
    """The reason of the correction in effect on the field; None without one."""


_ORIGIN: Final = form_of(Origin)


@dataclass(frozen=True, slots=True)
class Contender(Record):
    """One of the claims in conflict."""

    COMPACT: ClassVar = ("observation", "agent", "observed_at", "value")
    """The members in a list."""

    observation: ids.ObservationId
    """The observation that makes it."""
    agent: str
    """Who said so."""
    observed_at: str
    """When they saw it."""
    value: Json
    """What they said."""
    corrects: bool
    """Whether it is a correction."""
    assigned: bool = False
    """Whether the log set the time, because they stated none."""
    removed: tuple[Json, ...] = ()
    """Elements that are out of a collection because they took them out, where that was decided by arrival."""


@dataclass(frozen=True, slots=True)
class Conflict(Record):
    """A field on which the latest claims of two agents differ, neither having seen the other's.

    Or, if fields decided only by arrival are requested, one of those.
    """

    field: str
    """The field."""
    claims: tuple[Contender, ...]
    """The claims in conflict, by digest; one of them may be the winner.

    For a field decided only by arrival, the winner first, then the claims of another value that are their agents'
    latest.
    """
    by_arrival: bool = False
    """Whether the field was decided only by arrival: no observation time was given."""


class Snapshot:
    """The state of one entity at one moment; immutable.

    Values and provenance are computed on first access.
    """

    COMPACT: ClassVar = ("entity", "fields", "more", "version")
    """What a list shows of it."""

    entity: Ref
    """The entity."""
    members: tuple[Ref, ...]
    """All entities folded into it, by digest; itself alone unless joined by `same_as`."""
    deleted: bool
    """Whether it is deleted; it then shows no fields."""
    position: int
    """The log position it was read at."""
    version: int
    """Position of the last entry about it: `if_version` compares it."""
    more: Mapping[str, int]
    """Collections cut to their first elements, with their sizes; empty unless read from cut JSON."""

    def __init__(self, entity: Ref, state: MergeState, rules: Rules, position: int, version: int) -> None:
        self.__dict__.update(
            entity=entity,
            members=state.members,
            deleted=state.deleted,
            position=position,
            version=version,
            more={},
            _state=fold.in_memory(state),
            _rules=rules,
        )

    @cached_property
    def fields(self) -> Mapping[str, Json]:
        """The value of each field, by name."""
        if self.deleted:
            return {}
        found = fold.values(self._state, self._rules)
        return {name: form.copied(found[name]) for name in sorted(found)}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a snapshot is immutable; {name} stays unchanged")

    def __repr__(self) -> str:
        return f"Snapshot({self.entity}, {self.fields!r}, position={self.position})"

    _rules: Rules
    _state: MergeState

    @cached_property
    def _held(self) -> Mapping[str, FieldState]:
        """The state of each shown field."""
        return {name: held for name in self.fields if (held := self._state.field(name)) is not None}

    @cached_property
    def _ids(self) -> dict[bytes, ids.ObservationId]:
        """Cache of id texts: fields share few observations, and spelling their ids takes longer than all the rest."""
        return {}

    def _id(self, digest: bytes) -> ids.ObservationId:
        known = self._ids.get(digest)
        if known is None:
            known = self._ids[digest] = ids.ObservationId(ids.id_of("observation", digest))
        return known

    def corrections(self) -> set[bytes]:
        """Return the corrections in effect on its fields, except in large collections."""
        found: set[bytes] = set()
        for name, held in self._state.held.items():
            if not self.deleted and len(getattr(held, "parts", ())) <= TOLD_MAX:
                found |= self._rules.policy(name).standing(held)
        return found

    def with_reasons(self, reasons: Mapping[bytes, str]) -> Snapshot:
        """Return the same snapshot with the reasons of corrections."""
        copy = self.__class__.__new__(self.__class__)
        copy.__dict__.update(self.__dict__, _reasons=reasons)
        copy.__dict__.pop("blame", None)
        return copy

    _reasons: Mapping[bytes, str] = {}

    def _because(self, policy: Policy, held: Held, shown: bytes) -> str | None:
        """Return the reason of the shown correction; for a collection, the reasons of all in effect."""
        # A correction in effect on another field may be shown here if none is, such as for an empty union.
        standing = policy.standing(held) & self._reasons.keys()
        if shown in standing:
            return self._reasons[shown]
        return "; ".join(dict.fromkeys(self._reasons[digest] for digest in sorted(standing))) or None

    @cached_property
    def blame(self) -> Mapping[str, Origin]:
        """Where each value came from."""
        found: dict[str, Origin] = {}
        by_arrival = fold.by_arrival(self._state, self._rules)
        for name, held in self._held.items():
            policy = self._rules.policy(name)
            shown = policy.show(held.held)
            found[name] = Origin(
                observation=self._id(shown.said.digest),
                agent=shown.said.agent,
                observed_at=shown.said.observed_at,
                priority=shown.said.priority,
                policy=str(policy.name),
                claims=held.claims,
                misfits=held.misfits,
                corrected=shown.corrected,
                observations=tuple(map(self._id, shown.observations)),
                by_arrival=name in by_arrival,
                because=self._because(policy, held.held, shown.said.digest) if self._reasons else None,
            )
        return found

    @cached_property
    def _named(self) -> dict[str, list[str]]:
        """The observations behind the fields asked for so far: a decision asks for one several times."""
        return {}

    def behind(self, name: str) -> list[str]:
        """Return the observations that set a field's value, without working out the blame of the others."""
        if "blame" in self.__dict__:
            origin = self.blame.get(name)
            return [] if origin is None else [str(id) for id in origin.observations]
        found = self._named.get(name)
        if found is None:
            field = self._state.field(name) if name in self.fields else None
            shown = () if field is None else self._rules.policy(name).show(field.held).observations
            found = self._named[name] = [str(self._id(digest)) for digest in shown]
        return found.copy()

    def fact(self, name: str) -> Fact:
        """Return one field as a fact, to be handed to a decision: its value, and the observations that set it."""
        return Fact(
            name,
            self.fields.get(name),
            {
                "kind": "read",
                "entity": str(self.entity),
                "field": name,
                "observations": self.behind(name),
                "position": self.position,
            },
            missing=name not in self.fields,
        )

    @cached_property
    def schema(self) -> str | None:
        """Full name of the schema it was merged under; None for a type without one."""
        return schema_name(self._rules.schema)

    @cached_property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The fields in conflict, by name."""
        found: list[tuple[str, tuple[Contender, ...]]] = []
        for name in sorted(contested(self._state, self._rules)):
            field = self._state.field(name)
            assert field is not None, "a field in conflict has claims"
            claims = self._rules.policy(name).contest(field.held)
            found.append((name, tuple(map(self._contender, claims))))
        if not found:
            return ()
        by_arrival = fold.by_arrival(self._state, self._rules)
        return tuple(Conflict(name, claims, name in by_arrival) for name, claims in found)

    def arrivals(self) -> tuple[Conflict, ...]:
        """Return the fields that were decided only by arrival, by name, with their competing claims."""
        names = sorted(fold.by_arrival(self._state, self._rules) & self.fields.keys())
        claims = ((name, self._rules.policy(name).arrived(self._held[name].held)) for name in names)
        return tuple(Conflict(name, tuple(map(self._contender, found)), True) for name, found in claims)

    def _contender(self, claim: Claim) -> Contender:
        said = claim.said
        id, value = self._id(said.digest), form.copied(claim.value)
        return Contender(id, said.agent, said.observed_at, value, said.corrects, said.assigned, claim.removed)

    @cached_property
    def problem(self) -> str | None:
        """Why it shows no field although some were stated: nothing fits the schema in force."""
        return self._rules.beyond

    @cached_property
    def digest(self) -> str:
        """Digest of the values alone: equal digests are equal states."""
        return value_digest(self._state, self._rules).hex()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Snapshot):
            return NotImplemented
        return form.serialise(self.whole().to_json()) == form.serialise(other.whole().to_json())

    def __hash__(self) -> int:
        return hash((self.entity, self.position, self.digest))

    matched: Match | None = None
    """How the entity was found, where that was by a value that identifies it and not by its key."""

    def matched_by(self, match: Match | None) -> Snapshot:
        """Return the same snapshot with how its entity was found."""
        if match is None:
            return self
        copy = self.__class__.__new__(self.__class__)
        copy.__dict__.update(self.__dict__, matched=match)
        return copy

    def whole(self) -> Snapshot:
        """Return the same snapshot, whose JSON has every element of a collection and every observation behind it."""
        copy = self.__class__.__new__(self.__class__)
        copy.__dict__.update(self.__dict__, _is_whole=True)
        return copy

    _is_whole = False

    def to_json(self) -> dict[str, Any]:
        """Return the snapshot as plain JSON. A collection is cut to its first elements and their first observations,
        and `more` has its size; `whole` has all of them.
        """
        fields, more = dict(self.fields), dict(self.more)
        blame = {}
        for name, origin in self.blame.items():
            blame[name] = origin_json = _ORIGIN.write(origin)
            if origin.policy.partition(":")[0] not in COLLECTIONS or self._is_whole:
                continue
            value = fields[name]
            if isinstance(value, list) and len(value) > TOLD_MAX:
                fields[name], more[name] = value[:TOLD_MAX], len(value)
            if len(origin.observations) > TOLD_MAX:
                origin_json["observations"] = list(origin.observations[:TOLD_MAX])
        found = {} if self.matched is None else {"matched": self.matched.to_json()}
        return {
            "entity": str(self.entity),
            "entity_id": self.entity.id,
            "entity_type": self.entity.type,
            **found,
            "members": [str(member) for member in self.members],
            "deleted": self.deleted,
            "fields": fields,
            "more": more,
            "blame": blame,
            "conflicts": [conflict.to_json() for conflict in self.conflicts],
            "problem": self.problem,
            "schema": self.schema,
            # A server relies on these being the last: only they change while nobody writes about the entity.
            "position": self.position,
            "version": self.version,
            "digest": self.digest,
        }

    def to_compact_json(self) -> dict[str, Any]:
        """Return the compact form: the entity, its values and its version, not their origins."""
        fields, more = dict(self.fields), dict(self.more)
        if not self._is_whole:
            for name, value in self.fields.items():
                if (
                    isinstance(value, list)
                    and len(value) > TOLD_MAX
                    and str(self._rules.policy(name).name).partition(":")[0] in COLLECTIONS
                ):
                    fields[name], more[name] = value[:TOLD_MAX], len(value)
        return {"entity": str(self.entity), "fields": fields, "more": more, "version": self.version}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Snapshot:
        """Return the snapshot from the output of `to_json`: equal if it was `whole`, else with the parts that were not
        cut.
        """
        snapshot = cls.__new__(cls)
        snapshot.__dict__.update(
            entity=ids.parse_ref(value["entity"], "entity"),
            members=tuple(ids.parse_ref(member, "members") for member in value["members"]),
            deleted=value["deleted"],
            fields=value["fields"],
            position=value["position"],
            version=value["version"],
            more=value.get("more", {}),
            blame=read(Mapping[str, Origin], value["blame"]),
            conflicts=read(tuple[Conflict, ...], value["conflicts"]),
            digest=value["digest"],
            problem=value.get("problem"),
            schema=value.get("schema"),
        )
        if "matched" in value:
            snapshot.__dict__["matched"] = read(Match, value["matched"])
        return snapshot

    @staticmethod
    def json_schema(describe: Describe) -> dict[str, Any]:
        """Return the JSON Schema of the output of `to_json`."""
        properties = {
            "entity": ("The entity asked about.", str),
            "entity_id": ("Its id.", str),
            "entity_type": ("Its type.", str),
            "members": ("All entities folded into it; itself alone unless joined by `same_as`.", tuple[str, ...]),
            "deleted": ("Whether it is deleted; it then shows no fields.", bool),
            "fields": ("The value of each field; of a large collection the first elements.", Mapping[str, Any]),
            "more": ("Sizes of collections cut to their first elements.", Mapping[str, int]),
            "blame": ("Where each value came from.", Mapping[str, Origin]),
            "conflicts": ("The fields in conflict, by name.", tuple[Conflict, ...]),
            "problem": ("Why it shows no field although some were stated.", str | None),
            "schema": ("Full name of the schema it was merged under; null for a type without one.", str | None),
            "position": ("The log position it was read at.", int),
            "version": ("Position of the last entry that touched it: what `if_version` compares.", int),
            "digest": ("Digest of the values alone: equal digests are equal states.", str),
        }
        found = object_schema(describe, "The state of one entity at one moment.", properties)
        told = "How the entity was found, where that was by a value that identifies it; else it is not there."
        found["properties"]["matched"] = {**describe(Match), "description": told}
        return found


def take(entity: Ref, state: MergeState, rules: Rules, *, position: int, version: int) -> Snapshot:
    """Return the snapshot that merge state shows of `entity`."""
    return Snapshot(entity, state, rules, position, version)


def fields_of(state: MergeState, rules: Rules, names: Iterable[str] | None = None) -> dict[str, Json]:
    """Return the values of some fields, or of all, as `take` would show them."""
    if state.deleted:
        return {}
    return fold.values(state, rules, None if names is None else frozenset(names))


def contested(state: MergeState, rules: Rules, names: Collection[str] | None = None) -> set[str]:
    """Return which of some fields, or of all, are in conflict."""
    if not state.exists or state.deleted:
        return set()
    return fold.contested(state, rules, names)


def decided_by_arrival(state: MergeState, rules: Rules, names: Iterable[str]) -> set[str]:
    """Return which of some fields were decided only by arrival."""
    return set() if not state.exists or state.deleted else fold.by_arrival(state, rules, names)


def value_digest(state: MergeState, rules: Rules, *, provenance: bool = False) -> bytes:
    """Return the digest of a fold's values, as the fingerprint uses it; without provenance."""
    fields: dict[str, Json] = {}
    plain = True
    if not state.deleted:
        values = fold.values(state, rules)
        plain = form.are_plain(values.values()) and "".join(values).isascii()
        for name, value in values.items():
            entry: dict[str, Json] = {"policy": rules.policy_text(name), "value": value}
            if provenance:
                field = state.field(name)
                assert field is not None, "a field with a value has claims"
                shown = rules.policy(name).show(field.held)
                names = sorted(ids.name("observation", digest) for digest in shown.observations)
                entry["observations"] = list[Json](names)
            fields[name] = entry
    entities: list[Json] = [{"key": member.key, "type": member.type} for member in state.members]
    return fingerprint.value_digest({"deleted": state.deleted, "entities": entities, "fields": fields}, plain=plain)
