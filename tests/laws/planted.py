"""Planted policies: each breaks a law in a way that a careful person could miss; and one that breaks none."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from woodrat.canon.form import Json
from woodrat.merge import Claim, FoldHistory, Held, JoinPolicy, Policy, Shown
from woodrat.merge.additive import Append, Sum, SumHeld, Term
from woodrat.merge.by_key import ByKey, Keyed
from woodrat.merge.claim import Said
from woodrat.merge.elements import Parts
from woodrat.merge.packing import Packer
from woodrat.merge.policy import Misfit
from woodrat.merge.rank import LATEST
from woodrat.merge.ranked import Ranked, RankedHeld
from woodrat.merge.union import Union
from woodrat.state.schema_keywords import PolicyName


def _named(name: str) -> PolicyName:
    return PolicyName(name, 1, "0" * 64)


LONGEST = JoinPolicy(
    PolicyName("longest", 1, "1" * 64),
    lift=lambda claim: claim.value,
    join=lambda a, b: max(a, b, key=lambda text: (len(str(text)), str(text))),
    read=lambda joined: joined,
    json_types=frozenset({"string"}),
)
"""A good policy of a user's own: the longest text; of equally long ones the largest."""


class Best(Ranked):
    """The claim of the highest rank; of several equal ones the first to arrive."""

    def rank(self, claim: Claim) -> tuple[Any, ...]:
        return (claim.observed_at, claim.priority, claim.order, claim.digest)

    def lift(self, claim: Claim) -> Any:
        return claim

    def join(self, a: Any, b: Any) -> Any:
        return b if self.rank(b) > self.rank(a) else a

    def read(self, joined: Any) -> tuple[Json, Claim]:
        return joined.value, joined


class ByArrival(Best):
    """The first to arrive wins."""

    name = _named("by_arrival")

    def rank(self, claim: Claim) -> tuple[Any, ...]:
        return ()


class NoTieBreak(Best):
    """The latest wins; of two at the same time the one that came first, whatever it says."""

    name = _named("no_tie_break")

    def rank(self, claim: Claim) -> tuple[Any, ...]:
        return (claim.observed_at,)


class WallClock(Ranked):
    """What was folded last by the machine's clock wins."""

    name = _named("wall_clock")

    def lift(self, claim: Claim) -> Any:
        return time.perf_counter_ns(), claim

    def join(self, a: Any, b: Any) -> Any:
        return max(a, b, key=lambda pair: pair[0])

    def read(self, joined: Any) -> tuple[Json, Claim]:
        return joined[1].value, joined[1]


class RandomId(Ranked):
    """Every claim gets a fresh id, and the largest wins."""

    name = _named("random_id")

    def lift(self, claim: Claim) -> Any:
        return uuid.uuid4().hex, claim

    def join(self, a: Any, b: Any) -> Any:
        return max(a, b, key=lambda pair: pair[0])

    def read(self, joined: Any) -> tuple[Json, Claim]:
        return joined[1].value, joined[1]


class DictOrder(Ranked):
    """Each agent's latest claim in a dict; the first entry wins, and entries stand in the order of arrival."""

    name = _named("dict_order")

    def lift(self, claim: Claim) -> Any:
        return {claim.agent: claim}

    def join(self, a: Any, b: Any) -> Any:
        joined = dict(a)
        for agent, claim in b.items():
            joined[agent] = LATEST.top([joined.get(agent, claim), claim])
        return joined

    def read(self, joined: Any) -> tuple[Json, Claim]:
        claim = next(iter(joined.values()))
        return claim.value, claim


class LocaleSort(Best):
    """The largest text wins under a collation that ignores case; what it takes for equal is left to arrival."""

    name = _named("locale_sort")
    json_types = frozenset({"string"})

    def rank(self, claim: Claim) -> tuple[Any, ...]:
        return (str(claim.value).casefold(),)


class ByCounter(Ranked):
    """Claims are numbered as they come in, and the highest number wins: a position by another name."""

    name = _named("by_counter")

    def __init__(self) -> None:
        self._given: dict[bytes, int] = {}

    def lift(self, claim: Claim) -> Any:
        # Remembered per digest, so that asking again gives the same answer; the order of first sight still shows.
        return self._given.setdefault(claim.digest, len(self._given)), claim

    def join(self, a: Any, b: Any) -> Any:
        return max(a, b, key=lambda pair: pair[0])

    def read(self, joined: Any) -> tuple[Json, Claim]:
        return joined[1].value, joined[1]


class Average(Ranked):
    """The mean of mean and newcomer: commutative, and neither associative nor idempotent."""

    name = _named("average")
    json_types = frozenset({"integer"})

    def lift(self, claim: Claim) -> Any:
        return claim.value, claim

    def join(self, a: Any, b: Any) -> Any:
        return (a[0] + b[0]) // 2, LATEST.top([a[1], b[1]])

    def read(self, joined: Any) -> tuple[Json, Claim]:
        return joined[0], joined[1]


class FloatSum(Sum):
    """Adds doubles, in the order in which they come."""

    name = _named("float_sum")
    json_types = frozenset({"integer"})

    def fold(self, claims: Sequence[Claim], live: Collection[bytes], originals: Mapping[bytes, Claim]) -> Held:
        alive = [claim for claim in claims if claim.digest in live]
        return (reduce(lambda total, c: total + _float(c), alive, 0.0), LATEST.top(alive)) if alive else None

    def extend(self, held: Held, claim: Claim, name: str, known: FoldHistory, misfit: Misfit) -> Held:
        total, latest = held or (0.0, claim)
        return total + _float(claim), LATEST.top([latest, claim])

    def show(self, held: Held) -> Shown:
        return Shown(str(held[0]), held[1].said, (held[1].digest,), False)

    def standing(self, held: Held) -> frozenset[bytes]:
        return frozenset()

    def by_arrival(self, held: Held) -> bool:
        return False


def _float(claim: Claim) -> float:
    assert isinstance(claim.value, int)
    return claim.value / 10


class DoubleSum(Sum):
    """Counts a correction beside its original instead of in its place."""

    name = _named("double_sum")
    json_types = frozenset({"integer"})

    def put(self, held: SumHeld | None, old: Term | None, new: Term) -> SumHeld:
        return super().put(held, None, new)


class LateAppend(Append):
    """A stand-in takes its own place in the list, by its own clock."""

    name = _named("late_append")

    def show(self, held: Held) -> Shown:
        def place(term: Term) -> tuple[Any, ...]:
            claim = term.claim or term.original
            return claim.observed_at, term.original.order, term.original.digest

        shown = super().show(held)
        claims = [term.claim for term in sorted(held.parts.values(), key=place) if term.claim is not None]
        return replace(shown, value=[element for c in claims if isinstance(c.value, list) for element in c.value])


class NoRemoval(Union):
    """A union that says it takes elements out and does not."""

    name = _named("no_removal")

    def statements(self, claim: Claim) -> dict[bytes, tuple[bool, Json]]:
        return super().statements(Claim(claim.said, claim.value))


class ForgetfulUnion(Union):
    """Keeps what is in; what was taken out is forgotten, so that a late assertion brings it back."""

    name = _named("forgetful_union")

    def extend(self, held: Held, claim: Claim, name: str, known: FoldHistory, misfit: Misfit) -> Held:
        extended = super().extend(held, claim, name, known, misfit)
        kept = {element: slot for element, slot in extended.parts.items() if slot.winner.stated}
        return extended.but(Parts.of(kept))


class ForgetfulObjects(ByKey):
    """An object that is taken out is forgotten with its members, so that it comes back without them."""

    def __init__(self) -> None:
        super().__init__("name")
        self.name = _named("forgetful_objects")

    def extend(self, held: Held, claim: Claim, name: str, known: FoldHistory, misfit: Misfit) -> Held:
        extended = super().extend(held, claim, name, known, misfit)
        kept = {key: part if part.is_in else part._replace(members={}) for key, part in extended.parts.items()}
        return extended.but(Parts.of(kept))


class SweepingCorrection(ByKey):
    """A correction of an object takes the place of earlier ones in all its members, not only in those it states."""

    def __init__(self) -> None:
        super().__init__("name")
        self.name = _named("sweeping_correction")

    def _extend(self, old: Keyed | None, text: str, members: Mapping[str, Json] | None, said: Said) -> Keyed:
        new = super()._extend(old, text, members, said)
        if not said.corrects:
            return new
        rest = {
            name: slot._replace(standing=tuple(s for s in slot.standing if s.said.digest not in said.replaces))
            for name, slot in new.members.items()
        }
        kept = {name: slot for name, slot in rest.items() if slot.said is not None or slot.standing}
        return new._replace(members=kept)


class FirstMember(ByKey):
    """Of members stated at the same time the one that arrived first is shown."""

    def __init__(self) -> None:
        super().__init__("name")
        self.name = _named("first_member")

    def _extend(self, old: Keyed | None, text: str, members: Mapping[str, Json] | None, said: Said) -> Keyed:
        new = super()._extend(old, text, members, said)
        if old is None or said.corrects:
            return new
        first = {
            name: slot
            if slot.said is None or slot.said.observed_at != said.observed_at
            else old.members.get(name, slot)
            for name, slot in new.members.items()
        }
        return new._replace(members=first)


class LossyPacking(Union):
    """Merges well, and forgets corrections when its state is put away and read back."""

    name = _named("lossy_packing")

    def pack(self, held: Held, packer: Packer) -> Any:
        slots = {key: slot._replace(standing=()) for key, slot in held.parts.items() if slot.said is not None}
        return super().pack(held.but(Parts.of(slots)), packer)


class CorrectionByClock(Best):
    """A correction is a claim like any other: the latest wins."""

    name = _named("correction_by_clock")

    def show(self, held: RankedHeld) -> Shown:
        claim = LATEST.top([*held.standing.values(), *([held.joined] if held.joined is not None else [])])
        return Shown(claim.value, claim.said, (claim.digest,), bool(held.standing))


class RevivingChain(Best):
    """Only live corrections replace: withdrawing the middle of a chain revives its beginning."""

    name = _named("reviving_chain")

    def fold(self, claims: Sequence[Claim], live: Collection[bytes], originals: Mapping[bytes, Claim]) -> Held:
        return super().fold([claim for claim in claims if claim.digest in live], live, originals)


class InPlace(Ranked):
    """Keeps a list and adds to it in place, so that what was kept before changes under its reader."""

    name = _named("in_place")

    def lift(self, claim: Claim) -> Any:
        return [claim]

    def join(self, a: Any, b: Any) -> Any:
        a.extend(b)
        a.sort(key=lambda claim: (claim.observed_at, claim.priority, claim.order, claim.digest))
        return a

    def read(self, joined: Any) -> tuple[Json, Claim]:
        return joined[-1].value, joined[-1]


class FirstShown(Best):
    """The right value, with whichever of several equal claims came first as its provenance."""

    name = _named("first_shown")

    def rank(self, claim: Claim) -> tuple[Any, ...]:
        return (claim.order,)


class LooseEquality(Best):
    """The largest as Python compares: true is 1, and whichever of the two came first is kept."""

    name = _named("loose_equality")
    json_types = frozenset({"boolean", "integer"})

    def rank(self, claim: Claim) -> tuple[Any, ...]:
        return (claim.value,)


BAD: Sequence[Callable[[], Policy]] = (
    ByArrival,
    NoTieBreak,
    WallClock,
    RandomId,
    DictOrder,
    LocaleSort,
    ByCounter,
    Average,
    FloatSum,
    DoubleSum,
    LateAppend,
    NoRemoval,
    ForgetfulUnion,
    ForgetfulObjects,
    SweepingCorrection,
    FirstMember,
    LossyPacking,
    CorrectionByClock,
    RevivingChain,
    InPlace,
    FirstShown,
    LooseEquality,
)
