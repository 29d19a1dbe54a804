"""Claim: one observation's word on one field, and what every policy has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.records import dataclass
from woodrat.state.observation import CORRECT, Observation
from woodrat.state.schema import PolicyName, PolicyTraits, json_type
from woodrat.state.schema_faults import TYPE_WORDS, either

if TYPE_CHECKING:
    from woodrat.merge.elements import Gathered, Parts
    from woodrat.merge.packing import Packer, Unpacker

ALL_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


class Said(NamedTuple):
    """What an observation says of itself: all that a rank can depend on besides the value."""

    digest: bytes
    """The observation."""
    observed_at: str
    """When its writer saw it."""
    priority: int
    """The writer's stated priority."""
    agent: str
    """Who says so."""
    corrects: bool
    """Whether it is a correction."""
    replaces: frozenset[bytes]
    """Observations a correction names."""
    saw: frozenset[bytes]
    """Observations its writer had read."""
    assigned: bool = False
    """Whether the log set `observed_at`, which is then when it arrived; no rank depends on it."""


class Claim:
    """One observation's word on one field. Never changed once made.

    `value` is what it states, `None` also where it only removes elements; `removed` are those elements; `order` is the
    value's place in the one total order of JSON values, worked out when a comparison first needs it.
    """

    __slots__ = ("_order", "removed", "said", "value")

    def __init__(self, said: Said, value: Json, removed: tuple[Json, ...] = ()) -> None:
        self.said = said
        self.value = value
        self.removed = removed
        self._order: tuple[Any, ...] | None = None

    @property
    def order(self) -> tuple[Any, ...]:
        if self._order is None:
            self._order = form.order_key(self.value)
        return self._order

    @property
    def digest(self) -> bytes:
        return self.said.digest

    @property
    def observed_at(self) -> str:
        return self.said.observed_at

    @property
    def priority(self) -> int:
        return self.said.priority

    @property
    def agent(self) -> str:
        return self.said.agent

    @property
    def corrects(self) -> bool:
        return self.said.corrects

    @property
    def replaces(self) -> frozenset[bytes]:
        return self.said.replaces

    @property
    def saw(self) -> frozenset[bytes]:
        return self.said.saw

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Claim):
            return NotImplemented
        if self.said != other.said or self.order != other.order:
            return False
        return [form.order_key(value) for value in self.removed] == [form.order_key(value) for value in other.removed]

    def __hash__(self) -> int:
        return hash(self.said.digest)

    def __repr__(self) -> str:
        return f"Claim({label(self.digest)}, {self.value!r}, removed={self.removed!r})"


def said_of(observation: Observation) -> Said:
    """Return what an observation says of itself."""
    return Said(
        observation.digest,
        observation.observed_at,
        observation.priority,
        observation.agent,
        observation.op == CORRECT,
        observation.replaces,
        observation.saw,
        observation.assigned,
    )


def claim_of(observation: Observation, name: str, said: Said | None = None) -> Claim:
    """Return the claim `observation` makes on the field `name`, which it states."""
    return Claim(said or said_of(observation), observation.fields.get(name), observation.remove.get(name, ()))


@dataclass(frozen=True, slots=True)
class Shown:
    """What a policy makes of the claims it holds."""

    value: Json
    """The merged value."""
    said: Said
    """The observation shown as its provenance."""
    observations: tuple[bytes, ...]
    """All observations that set the value, by digest; for a sum only the one shown."""
    corrected: bool
    """Whether a correction stands on the field."""


class Known(Protocol):
    """What an incremental fold may ask about the observations folded before."""

    def find(self, digest: bytes) -> Observation | None:
        """Return the observation with this digest, if it is part of the fold."""

    def namers(self, digest: bytes) -> Collection[Observation]:
        """Return the observations of the fold that name this digest in `replaces`."""


Held = Any
"""What a policy keeps of a field; opaque to everyone but the policy, equal where the claims are equal.

`None` where no claim takes part: the field then has no value.
"""

Fits = Callable[[Claim, bool], bool]
"""Whether a claim (and whether it states a value, or only removals) fits the field's schema and policy."""


class Policy(ABC):
    """One way of merging the claims of a field."""

    name: PolicyName
    json_types: frozenset[str] = ALL_TYPES
    contested: bool = False
    """Whether differing claims of two agents count as a conflict."""
    removes: bool = False
    """Whether `remove` means anything."""
    gathered: type[Gathered[Any]] | None = None
    """What is held where values are collections: part by part, so that parts can be kept one by one."""

    @property
    def traits(self) -> PolicyTraits:
        """What a schema needs to know of the policy."""
        return PolicyTraits(str(self.name), self.json_types)

    def refuses(self, value: Json) -> str | None:
        """Return why this policy cannot take a value, or `None`."""
        if self.json_types is ALL_TYPES:
            return None
        kind = json_type(value)
        if kind in self.json_types or (kind == "integer" and "number" in self.json_types):
            return None
        return f"{self.name} takes {either(TYPE_WORDS[name] for name in sorted(self.json_types))}"

    def misfit(self, claim: Claim, states_value: bool) -> str | None:
        """Return why this policy cannot take a claim, or `None`."""
        if claim.removed and not self.removes:
            return f"only union takes elements out; this field merges by {self.name}"
        return self.refuses(claim.value) if states_value else None

    @abstractmethod
    def fold(self, claims: Sequence[Claim], live: Collection[bytes], originals: Mapping[bytes, Claim]) -> Held:
        """Merge all fitting claims of a field.

        `live` holds the digests that are not withdrawn, `originals` every assertion on the field, fitting or not.
        """

    @abstractmethod
    def extend(self, held: Held, claim: Claim, name: str, known: Known, fits: Fits) -> Held:
        """Fold one more live claim in.

        The caller has made sure that nothing known names the claim and that nothing it names is withdrawn.
        """

    @abstractmethod
    def show(self, held: Held) -> Shown:
        """Return the merged value and where it came from."""

    def value(self, held: Held) -> Json:
        """Return the merged value alone."""
        return self.show(held).value

    def elements(self, held: Held) -> list[Json]:
        """Return the elements a collection has, or would have if corrections did not keep them out."""
        return []

    @abstractmethod
    def standing(self, held: Held) -> frozenset[bytes]:
        """Return the corrections that stand on the field."""

    @abstractmethod
    def verdict(self, held: Held, claim: Claim, claims: Sequence[Claim]) -> tuple[bool, str]:
        """Return whether a live, fitting claim takes part in the value, and why, in a clause; `claims` are all such."""

    @abstractmethod
    def pack(self, held: Held, packer: Packer) -> Any:
        """Return what is held as JSON; never called for `None`."""

    @abstractmethod
    def unpack(self, packed: Any, unpacker: Unpacker) -> Held:
        """Return what was packed."""

    def packed_value(self, packed: Any, unpacker: Unpacker) -> Json:
        """Return the merged value of what was packed."""
        return self.value(self.unpack(packed, unpacker))

    def pack_rest(self, held: Held, packer: Packer) -> Any:
        """Return what is held of a collection besides its parts, as JSON."""
        raise NotImplementedError

    def unpack_rest(self, packed: Any, parts: Parts[Any], unpacker: Unpacker) -> Held:
        """Return what was packed, with its parts."""
        raise NotImplementedError

    def contest(self, held: Held) -> tuple[Claim, ...]:
        """Return the claims in conflict, by digest; none unless the policy is contested."""
        return ()

    def by_arrival(self, held: Held) -> bool:
        """Return whether the value, or an element of it, was decided only by arrival (docs/formats/merge.md)."""
        return False

    def arrived(self, held: Held) -> tuple[Claim, ...]:
        """Return the claims to show where that is so, the winner first; of the others those that are held."""
        return ()


def replaced(namers: Mapping[bytes, frozenset[bytes]], live: Collection[bytes]) -> set[bytes]:
    """Return the digests replaced by these observations, each given with the digests it names.

    An observation is replaced when one that names it is live, or is itself replaced: so withdrawing the
    middle of a chain revives nothing below it.
    """
    gone: set[bytes] = set()
    waiting = [digest for digest in namers if digest in live]
    while waiting:
        for digest in namers[waiting.pop()]:
            if digest not in gone:
                gone.add(digest)
                if digest in namers:
                    waiting.append(digest)
    return gone


def unreplaced(corrections: Iterable[Claim], live: Collection[bytes]) -> list[Claim]:
    """Return the live corrections that no other of them replaces, by digest."""
    by_digest = {claim.digest: claim for claim in corrections}
    gone = replaced({digest: claim.replaces for digest, claim in by_digest.items()}, live)
    return [by_digest[digest] for digest in sorted(by_digest) if digest in live and digest not in gone]


def latest_rank(claim: Claim) -> tuple[Any, ...]:
    """Return the rank `latest` gives a claim."""
    return claim.observed_at, claim.priority, claim.order


def later(a: Claim, b: Claim) -> Claim:
    """Return the higher of two claims as `latest` ranks; of equal ones that with the smaller digest."""
    left, right = a.said, b.said
    if left.observed_at != right.observed_at:
        return a if left.observed_at > right.observed_at else b
    if left.priority != right.priority:
        return a if left.priority > right.priority else b
    if a.order != b.order:
        return a if a.order > b.order else b
    return smaller_digest(a, b)


def top(claims: Iterable[Claim]) -> Claim:
    """Return the highest claim as `latest` ranks."""
    return reduce(later, claims)


def arrived_later(winner: Said, rival: Said) -> bool:
    """Return whether one ranks above the other, as `latest` ranks, only because it arrived later.

    An assigned time is when a statement arrived, and nobody says when it was seen before that. So a winner whose time
    was assigned may have been seen before its rival; one that states a time later than the rival arrived may not.
    """
    return winner.assigned and rival.observed_at < winner.observed_at


def corrected_by_arrival(standing: Collection[Claim]) -> bool:
    """Return whether the highest of some standing corrections was decided only by arrival."""
    if len(standing) < 2:
        return False
    winner = top(standing)
    rivals = [claim for claim in standing if claim.order != winner.order]
    return bool(rivals) and arrived_later(winner.said, top(rivals).said)


def smaller_digest(a: Claim, b: Claim) -> Claim:
    """Return which of two equal claims is shown."""
    return a if a.said.digest < b.said.digest else b


def label(digest: bytes) -> str:
    """Return how a sentence names an observation."""
    return ids.id_of("observation", digest)


def replaced_by(claim: Claim, claims: Sequence[Claim]) -> str:
    """Return the clause that says which correction replaced a claim."""
    namers = sorted(c.digest for c in claims if c.corrects and claim.digest in c.replaces)
    return (
        f"replaced by correction {label(namers[0])}" if namers else "replaced by a correction that was replaced itself"
    )
