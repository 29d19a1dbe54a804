"""Policy: one way of merging the claims of a field, and the interface of all policies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from woodrat.canon.form import Json
from woodrat.errors import shown
from woodrat.merge.claim import Claim, Said
from woodrat.records import dataclass
from woodrat.state.observation import Observation
from woodrat.state.schema_faults import TYPE_WORDS, either, json_type
from woodrat.state.schema_keywords import PolicyName, PolicyTraits

if TYPE_CHECKING:
    from woodrat.merge.elements import CollectionState, Parts
    from woodrat.merge.packing import Packer, Unpacker

ALL_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of a policy for its claims."""

    value: Json
    """The merged value."""
    said: Said
    """The observation shown as its provenance."""
    observations: tuple[bytes, ...]
    """All observations that set the value, by digest; for a sum only the one shown."""
    corrected: bool
    """Whether a correction is in effect on the field."""


class FoldHistory(Protocol):
    """The facts about earlier observations that an incremental fold may query."""

    def find(self, digest: bytes) -> Observation | None:
        """Return the observation with this digest, if it is part of the fold."""

    def namers(self, digest: bytes) -> Collection[Observation]:
        """Return the observations of the fold that name this digest in `replaces`."""


Held = Any
"""A policy's state of a field; opaque to everyone but the policy, equal if the claims are equal.

`None` where no claim takes part: the field then has no value.
"""

Misfit = Callable[[str, Claim, bool], str | None]
"""Says why a claim does not fit a field, given whether it states a value or only removals; `None` where it fits."""


class Policy(ABC):
    """One way of merging the claims of a field."""

    name: PolicyName
    json_types: frozenset[str] = ALL_TYPES
    contested: bool = False
    """Whether differing claims of two agents count as a conflict."""
    removes: bool = False
    """Whether `remove` is meaningful."""
    gathered: type[CollectionState[Any]] | None = None
    """The state of a collection: part by part, so that parts can be stored one by one."""

    @property
    def traits(self) -> PolicyTraits:
        """The properties of the policy that a schema needs."""
        return PolicyTraits(str(self.name), self.json_types)

    def refuses(self, value: Json) -> str | None:
        """Return why this policy cannot take a value, or `None`."""
        if self.json_types is ALL_TYPES:
            return None
        kind = json_type(value)
        if kind in self.json_types or (kind == "integer" and "number" in self.json_types):
            return None
        return f"{self.name} takes {either(TYPE_WORDS[name] for name in sorted(self.json_types))}"

    def takes(self, value: Json) -> bool:
        """Return True if a surface accepts a value; it may be stricter than a merge."""
        return self.refuses(value) is None

    def problems(self, value: Json) -> Iterator[tuple[str, str]]:
        """Yield why a surface does not take a value, part by part: where in it, as a pointer, and the problem."""
        refused = self.refuses(value)
        if refused is not None:
            yield "", f"{refused}, got {shown(value)}"

    def misfit(self, claim: Claim, states_value: bool) -> str | None:
        """Return why this policy cannot take a claim, or `None`."""
        if claim.removed and (refused := self.refuses_removal(claim.removed)) is not None:
            return refused
        return self.refuses(claim.value) if states_value and self.json_types is not ALL_TYPES else None

    def removal_of(self, element: Json) -> Json:
        """Return the stored form of an element to remove, given as people write it."""
        return element

    def refuses_removal(self, removed: Sequence[Json]) -> str | None:
        """Return why this policy cannot take these elements out, or `None`."""
        return None if self.removes else f"only union and by_key take elements out; this field merges by {self.name}"

    @abstractmethod
    def fold(self, claims: Sequence[Claim], live: Collection[bytes], originals: Mapping[bytes, Claim]) -> Held:
        """Merge all fitting claims of a field.

        `live` holds the digests that are not withdrawn, `originals` every assertion on the field, fitting or not.
        """

    @abstractmethod
    def extend(self, held: Held, claim: Claim, name: str, known: FoldHistory, misfit: Misfit) -> Held:
        """Fold one more live claim in.

        The caller has checked that no known observation names the claim and that no observation it names is withdrawn.
        """

    @abstractmethod
    def show(self, held: Held) -> Shown:
        """Return the merged value and where it came from."""

    def value(self, held: Held) -> Json:
        """Return the merged value alone."""
        return self.show(held).value

    def others(self, held: Held, value: Json) -> list[Json]:
        """Return the elements that a correction removes when it states all elements of a collection, in order.

        That is every other element that is in, or would be if corrections did not exclude it.
        """
        return []

    @abstractmethod
    def standing(self, held: Held) -> frozenset[bytes]:
        """Return the corrections in effect on the field."""

    @abstractmethod
    def verdicts(self, held: Held, claims: Sequence[Claim]) -> list[tuple[bool, str]]:
        """Return for each claim whether it takes part in the value, and why, in a clause.

        `claims` are all claims of the field that are live and fit. The cost grows with them, not with their pairs.
        """

    @abstractmethod
    def pack(self, held: Held, packer: Packer) -> Any:
        """Return the state as JSON; never called for `None`."""

    @abstractmethod
    def unpack(self, packed: Any, unpacker: Unpacker) -> Held:
        """Return the unpacked state."""

    def pack_rest(self, held: Held, packer: Packer) -> Any:
        """Return the state of a collection without its parts, as JSON."""
        raise NotImplementedError

    def unpack_rest(self, packed: Any, parts: Parts[Any], unpacker: Unpacker) -> Held:
        """Return the unpacked state, with its parts."""
        raise NotImplementedError

    def contest(self, held: Held) -> tuple[Claim, ...]:
        """Return the claims in conflict, by digest; none unless the policy is contested."""
        return ()

    def by_arrival(self, held: Held) -> bool:
        """Return whether the value, or an element of it, was decided only by arrival (docs/formats/merge.md)."""
        return False

    def arrived(self, held: Held) -> tuple[Claim, ...]:
        """Return the claims to show in that case, the winner first; of the others, the stored ones."""
        return ()
