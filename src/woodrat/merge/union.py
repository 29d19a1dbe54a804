"""Union: a collection whose elements are asserted and removed one by one; corrections speak per element."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import orjson

from woodrat.canon.form import Json
from woodrat.canon.order import order_bytes, order_key
from woodrat.merge.claim import Claim, Said, arrived_later, claim_of, label, later, replaced, top
from woodrat.merge.elements import Gathered, Parts
from woodrat.merge.packing import Packer, Unpacker, pack_said, spelled, unpack_said
from woodrat.merge.policy import Fits, Held, Known, Policy, Shown
from woodrat.records import dataclass, replace
from woodrat.state.schema_keywords import PolicyName


@dataclass(frozen=True, slots=True)
class Statement:
    """One observation's word on one element of a collection."""

    present: bool
    """Whether the element is said to be in."""
    value: Json
    """The element."""
    said: Said
    """The observation that says so; its time and priority rank the statement."""

    @property
    def rank(self) -> tuple[Any, ...]:
        """As `latest`; at equal rank the assertion beats the removal."""
        return self.said.observed_at, self.said.priority, self.present


@dataclass(frozen=True, slots=True)
class Slot:
    """What is held about one element."""

    asserted: Statement | None
    """The highest live statement of an assertion."""
    standing: tuple[Statement, ...]
    """Live corrections of this element that nothing replaces, by digest."""
    against: str = ""
    """The latest `observed_at` of a live assertion that says the opposite of the highest; empty without one."""

    @property
    def by_arrival(self) -> bool:
        """Whether only arrival decided that the element is in, or out."""
        if not self.standing:
            assert self.asserted is not None
            said = self.asserted.said
            return said.assigned and "" != self.against < said.observed_at
        winner = _best(self.standing)
        others = [statement for statement in self.standing if statement.present != winner.present]
        return bool(others) and arrived_later(winner.said, _best(others).said)

    @property
    def winner(self) -> Statement:
        """The statement that decides whether the element is in."""
        best = _best(self.standing) if self.standing else self.asserted
        assert best is not None, "a slot holds at least one statement"
        return best


def _best(statements: Iterable[Statement]) -> Statement:
    def better(a: Statement, b: Statement) -> Statement:
        if a.rank == b.rank:
            return a if a.said.digest < b.said.digest else b
        return a if a.rank > b.rank else b

    return reduce(better, statements)


def _stated(slot: Slot, statement: Statement) -> Slot:
    """Return a slot once one more assertion spoke of its element."""
    highest, against = slot.asserted, slot.against
    if highest is None:
        return replace(slot, asserted=statement)
    best = _best((highest, statement))
    if highest.present != statement.present:
        # What was highest so far is later than all that said the same; it may have become the opposite.
        other = highest if best is statement else statement
        against = other.said.observed_at if best is statement else max(against, other.said.observed_at)
    if best is highest and against == slot.against:
        return slot
    return replace(slot, asserted=best, against=against)


class UnionHeld(Gathered[Slot]):
    """What a union keeps: a slot for each element anyone spoke of."""

    __slots__ = ("arrived", "at_hand", "latest", "parts", "size")

    def __init__(self, parts: Parts[Slot], size: int, arrived: int, latest: Said, at_hand: Claim | None = None) -> None:
        self.parts = parts
        self.size = size
        self.arrived = arrived
        """How many elements are in, or out, only by arrival."""
        self.latest = latest
        """Who made the latest live claim; shown while no element is in."""
        self.at_hand = at_hand
        """That claim, where it need not be looked up. It may be as long as the collection, so it is not kept."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnionHeld):
            return NotImplemented
        mine, theirs = (self.size, self.arrived, self.latest), (other.size, other.arrived, other.latest)
        return mine == theirs and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]

    def but(self, parts: Parts[Slot]) -> UnionHeld:
        return UnionHeld(parts, self.size, self.arrived, self.latest, self.at_hand)

    @staticmethod
    def pack_part(part: Slot) -> bytes:
        return orjson.dumps([spelled(part.winner.value), *_pack_slot(part, pack_said)[1:]])

    @staticmethod
    def unpack_part(packed: bytes) -> Slot:
        return _unpack_slot(orjson.loads(packed), unpack_said)

    @staticmethod
    def show_part(part: Slot) -> list[Json]:
        winner = part.winner
        return [winner.value] if winner.present else []


def _pack_slot(slot: Slot, say: Callable[[Said], Any]) -> list[Any]:
    found = [
        slot.winner.value,
        slot.asserted and [say(slot.asserted.said), slot.asserted.present],
        [[say(s.said), s.present] for s in slot.standing],
    ]
    return [*found, slot.against] if slot.against else found


def _unpack_slot(packed: list[Any], said_of: Callable[[Any], Said]) -> Slot:
    value, asserted, standing, *against = packed
    best = asserted and Statement(asserted[1], value, said_of(asserted[0]))
    stood = tuple(Statement(present, value, said_of(said)) for said, present in standing)
    return Slot(best, stood, *against)


class Union(Policy):
    """Elements asserted and not removed, in the one order of JSON values; each element ranks as `latest`."""

    name = PolicyName("union")
    json_types = frozenset({"array"})
    removes = True

    def refuses(self, value: Json) -> str | None:
        return None if isinstance(value, list) else "union takes an array of elements"

    def statements(self, claim: Claim) -> dict[bytes, Statement]:
        """Return the claim's word on each element it speaks of, by the element."""
        key = order_bytes
        found = {key(value): Statement(False, value, claim.said) for value in claim.removed}
        # Asserted after removed: at equal rank the assertion wins, within one claim too.
        elements = claim.value if isinstance(claim.value, list) else []
        found.update({key(value): Statement(True, value, claim.said) for value in elements})
        return found

    def fold(self, claims: Sequence[Claim], live: Collection[bytes], originals: Mapping[bytes, Claim]) -> Held:
        alive = [claim for claim in claims if claim.digest in live]
        if not alive:
            return None
        spoken: dict[bytes, list[Statement]] = {}
        for claim in claims:
            for element, statement in self.statements(claim).items():
                spoken.setdefault(element, []).append(statement)
        slots: dict[bytes, Slot] = {}
        for element, statements in spoken.items():
            corrected = {s.said.digest: s for s in statements if s.said.corrects}
            gone = replaced({digest: s.said.replaces for digest, s in corrected.items()}, live)
            standing = tuple(corrected[d] for d in sorted(corrected) if d in live and d not in gone)
            asserted = [s for s in statements if not s.said.corrects and s.said.digest in live]
            if standing or asserted:
                best = _best(asserted) if asserted else None
                against = (s.said.observed_at for s in asserted if best is not None and s.present != best.present)
                slots[element] = Slot(best, standing, max(against, default=""))
        latest = top(alive)
        present = sum(slot.winner.present for slot in slots.values())
        arrived = sum(slot.by_arrival for slot in slots.values())
        return UnionHeld(Parts.of(slots), present, arrived, latest.said, latest)

    def extend(self, held: Held, claim: Claim, name: str, known: Known, fits: Fits) -> Held:
        slots: Parts[Slot] = held.parts if held else Parts(0)
        changed: dict[bytes, Slot] = {}
        size, arrived = (held.size, held.arrived) if held else (0, 0)
        for element, statement in self.statements(claim).items():
            slot = slots.get(element)
            if slot is not None:
                size -= slot.winner.present
                arrived -= slot.by_arrival
            else:
                slot = Slot(None, ())
            if claim.corrects:
                standing = [s for s in slot.standing if s.said.digest not in claim.replaces]
                standing = sorted([*standing, statement], key=lambda s: s.said.digest)
                new = replace(slot, standing=tuple(standing))
            else:
                new = _stated(slot, statement)
            size += new.winner.present
            arrived += new.by_arrival
            if new is not slot:
                changed[element] = new
        return UnionHeld(slots.put(changed), size, arrived, *self._latest(held, claim, name, known))

    @staticmethod
    def _latest(held: UnionHeld | None, claim: Claim, name: str, known: Known) -> tuple[Said, Claim | None]:
        """Return the later of the latest claim and another one, and the claim itself where it is at hand."""
        if held is None:
            return claim.said, claim
        said, new = held.latest, claim.said
        if (new.observed_at, new.priority) > (said.observed_at, said.priority):
            return new, claim
        latest = held.at_hand
        if latest is None:
            # Only claims of equal time and priority are told apart by their values, and have to be looked up.
            if (new.observed_at, new.priority) < (said.observed_at, said.priority):
                return said, None
            found = known.find(said.digest)
            assert found is not None, "what is held was folded"
            latest = claim_of(found, name)
        latest = later(latest, claim)
        return latest.said, latest

    def show(self, held: Held) -> Shown:
        slots = held.parts.values()
        winners = (slot.winner for slot in slots)
        present = sorted((s for s in winners if s.present), key=lambda s: order_key(s.value))
        best = _best(present).said if present else held.latest
        return Shown(
            value=[s.value for s in present],
            said=best,
            observations=tuple(sorted({s.said.digest for s in present} or {best.digest})),
            corrected=any(slot.standing for slot in slots),
        )

    def elements(self, held: Held) -> list[Json]:
        slots = held.parts.values()
        return [s.winner.value for s in slots if s.winner.present or (s.asserted is not None and s.asserted.present)]

    def standing(self, held: Held) -> frozenset[bytes]:
        return frozenset(s.said.digest for slot in held.parts.values() for s in slot.standing)

    def pack(self, held: Held, packer: Packer) -> Any:
        return [[_pack_slot(slot, packer.said) for slot in held.parts.values()], self.pack_rest(held, packer)]

    def unpack(self, packed: Any, unpacker: Unpacker) -> Held:
        slots = (_unpack_slot(slot, unpacker.said) for slot in packed[0])
        parts = {order_bytes(slot.winner.value): slot for slot in slots}
        return self.unpack_rest(packed[1], Parts.of(parts), unpacker)

    def pack_rest(self, held: Held, packer: Packer) -> Any:
        return [packer.said(held.latest), held.size, held.arrived]

    def unpack_rest(self, packed: Any, parts: Parts[Any], unpacker: Unpacker) -> Held:
        return UnionHeld(parts, packed[1], packed[2], unpacker.said(packed[0]))

    gathered = UnionHeld

    def by_arrival(self, held: Held) -> bool:
        return bool(held.arrived)

    def arrived(self, held: Held) -> tuple[Claim, ...]:
        """Return what was decided by arrival, by observation: elements that are in by it, and those that are out.

        The latest comes first.
        """
        found: dict[bytes, tuple[Said, list[Json], list[Json]]] = {}
        for slot in held.parts.values():
            if slot.by_arrival:
                winner = slot.winner
                _, present, gone = found.setdefault(winner.said.digest, (winner.said, [], []))
                (present if winner.present else gone).append(winner.value)
        ordered = sorted(found.values(), key=lambda each: (each[0].observed_at, each[0].digest), reverse=True)
        return tuple(
            Claim(said, sorted(present, key=order_key), tuple(sorted(gone, key=order_key)))
            for said, present, gone in ordered
        )

    def verdicts(self, held: Held, claims: Sequence[Claim]) -> list[tuple[bool, str]]:
        deciders: dict[bytes, tuple[bytes, bool]] = {}
        for element, slot in held.parts.items():
            deciders[element] = slot.winner.said.digest, slot.by_arrival
        return [self._verdict(claim, deciders) for claim in claims]

    def _verdict(self, claim: Claim, deciders: Mapping[bytes, tuple[bytes, bool]]) -> tuple[bool, str]:
        """Return what became of a claim, given which observation decides each element, and whether by arrival."""
        spoken = self.statements(claim)
        deciding = [deciders[element] for element in spoken if element in deciders]
        mine = [by_arrival for digest, by_arrival in deciding if digest == claim.digest]
        if mine:
            arrived = sum(mine)
            how = f", {arrived} of them because it arrived later; no observation time was given" if arrived else ""
            return True, f"decides {len(mine)} of the {len(spoken)} elements it speaks of{how}"
        if not spoken:
            return False, "speaks of no element"
        others = {digest for digest, _ in deciding}
        more = " and others" if len(others) > 1 else ""
        return False, f"every element it speaks of is decided by {label(min(others))}{more}"
