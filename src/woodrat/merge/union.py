"""Union: a collection whose elements are asserted and removed one by one; corrections apply per element."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import orjson

from woodrat.canon.form import Json
from woodrat.canon.order import order_bytes, order_key
from woodrat.merge.claim import Claim, Said, label
from woodrat.merge.element_state import (
    Slot,
    SlotsHeld,
    SlotStatement,
    correct,
    latest_claim,
    pack_slot,
    settle,
    state_again,
    unpack_slot,
)
from woodrat.merge.elements import Parts
from woodrat.merge.packing import Packer, Unpacker, pack_said, spelled, unpack_said
from woodrat.merge.policy import FoldHistory, Held, Misfit, Policy, Shown
from woodrat.merge.rank import LATEST
from woodrat.state.schema_keywords import PolicyName

_make: Final = tuple.__new__


def _is_in(slot: Slot) -> bool:
    """Return whether an element is in."""
    return bool(slot.winner.stated if slot.standing else slot.stated)


class UnionHeld(SlotsHeld[Slot]):
    """The state of a union: a slot for each mentioned element."""

    __slots__ = ()

    @staticmethod
    def pack_part(part: Slot) -> bytes:
        return orjson.dumps([spelled(part.about), *pack_slot(part, pack_said)[1:]])

    @staticmethod
    def unpack_part(packed: bytes) -> Slot:
        return unpack_slot(orjson.loads(packed), unpack_said)

    @staticmethod
    def show_part(part: Slot) -> list[Json]:
        return [part.about] if part.winner.stated else []


class Union(Policy):
    """Elements asserted and not removed, in the one order of JSON values; each element ranks as `latest`."""

    name = PolicyName("union")
    json_types = frozenset({"array"})
    removes = True

    def refuses(self, value: Json) -> str | None:
        return None if isinstance(value, list) else "union takes an array of elements"

    def statements(self, claim: Claim) -> dict[bytes, tuple[bool, Json]]:
        """Return, by element, whether the claim puts it in, and the element."""
        key = order_bytes
        found = {key(value): (False, value) for value in claim.removed} if claim.removed else {}
        # Asserted after removed: at equal rank the assertion wins, within one claim too.
        for value in claim.value if isinstance(claim.value, list) else ():
            # Text, which most are, as `order_bytes` has it.
            found[b"\x05%b\0" % value.encode() if type(value) is str else key(value)] = True, value
        return found

    def fold(self, claims: Sequence[Claim], live: Collection[bytes], originals: Mapping[bytes, Claim]) -> Held:
        alive = [claim for claim in claims if claim.digest in live]
        if not alive:
            return None
        spoken: dict[bytes, list[SlotStatement]] = {}
        values: dict[bytes, Json] = {}
        for claim in claims:
            for element, (present, value) in self.statements(claim).items():
                spoken.setdefault(element, []).append(SlotStatement(present, claim.said))
                values[element] = value
        slots: dict[bytes, Slot] = {}
        for element, statements in spoken.items():
            slot = settle(values[element], statements, live)
            if slot is not None:
                slots[element] = slot
        latest = LATEST.top(alive)
        size = sum(slot.winner.stated is True for slot in slots.values())
        arrived = sum(slot.by_arrival for slot in slots.values())
        return UnionHeld(Parts.of(slots), size, arrived, latest.said, latest)

    def extend(self, held: Held, claim: Claim, name: str, known: FoldHistory, misfit: Misfit) -> Held:
        slots: Parts[Slot] = held.parts if held else Parts(0)
        changed: dict[bytes, Slot] = {}
        size, arrived, added = (held.size, held.arrived, 0) if held else (0, 0, 0)
        said, find = claim.said, slots.finder()
        corrects = said.corrects
        for element, (present, value) in self.statements(claim).items():
            slot = find(element)
            if slot is None:
                added += 1
                if not corrects:
                    changed[element] = _make(Slot, (value, said, present, (), ""))
                    size += present
                    continue
                slot = Slot(value, None, False)
            else:
                size -= _is_in(slot)
                arrived -= slot.by_arrival
            if corrects:
                new = correct(slot, present, said)
            else:
                new = state_again(slot, present, said)
            size += _is_in(new)
            arrived += new.by_arrival
            if new is not slot:
                changed[element] = new
        return UnionHeld(slots.put(changed, added), size, arrived, *latest_claim(held, claim, name, known))

    def show(self, held: Held) -> Shown:
        slots = held.parts.values()
        present = [winner for slot in slots if (winner := slot.winner).stated]
        shown = LATEST.top(present).said if present else held.latest
        return Shown(
            value=self.value(held),
            said=shown,
            observations=tuple(sorted({winner.said.digest for winner in present} or {shown.digest})),
            corrected=any(slot.standing for slot in slots),
        )

    def value(self, held: Held) -> Json:
        present = [slot.about for slot in held.parts.values() if _is_in(slot)]
        return sorted(present, key=order_key) if len(present) > 1 else present

    def others(self, held: Held, value: Json) -> list[Json]:
        stated = {order_bytes(element) for element in value} if isinstance(value, list) else set()
        slots = [(key, slot) for key, slot in held.parts.items() if slot.winner.stated or slot.stated]
        return [slot.about for key, slot in sorted(slots) if key not in stated]

    def standing(self, held: Held) -> frozenset[bytes]:
        return frozenset(s.said.digest for slot in held.parts.values() for s in slot.standing)

    def pack(self, held: Held, packer: Packer) -> Any:
        # Elements that are in without any contrary statement, as nearly all are: two columns, not a row each.
        values: list[Json] = []
        places: list[int] = []
        others: list[Slot] = []
        place_of, known_places = packer.said, packer.places
        for _, slot in sorted(held.parts.whole().items()):
            value, said, present, standing, against = slot
            if present and said is not None and not (standing or against):
                values.append(value)
                place = known_places.get(said[0])
                places.append(place_of(said) if place is None else place)
            else:
                others.append(slot)
        # After the columns, in the order of unpacking: so observations get the same indexes again.
        return [values, places, [pack_slot(slot, place_of) for slot in others], self.pack_rest(held, packer)]

    def unpack(self, packed: Any, unpacker: Unpacker) -> Held:
        values, places, others, rest = packed
        said_of = unpacker.said
        slots = [Slot(value, said_of(place), True) for value, place in zip(values, places, strict=True)]
        slots += [unpack_slot(slot, said_of) for slot in others]
        return self.unpack_rest(rest, Parts.of({order_bytes(slot.about): slot for slot in slots}), unpacker)

    def pack_rest(self, held: Held, packer: Packer) -> Any:
        return [packer.said(held.latest), held.size, held.arrived]

    def unpack_rest(self, packed: Any, parts: Parts[Any], unpacker: Unpacker) -> Held:
        return UnionHeld(parts, packed[1], packed[2], unpacker.said(packed[0]))

    gathered = UnionHeld

    def by_arrival(self, held: Held) -> bool:
        return bool(held.arrived)

    def arrived(self, held: Held) -> tuple[Claim, ...]:
        """Return parts decided by arrival, by observation: elements that are in by it, and elements that are out.

        The latest comes first.
        """
        found: dict[bytes, tuple[Said, list[Json], list[Json]]] = {}
        for slot in held.parts.values():
            if slot.by_arrival:
                winner = slot.winner
                _, present, gone = found.setdefault(winner.said.digest, (winner.said, [], []))
                (present if winner.stated else gone).append(slot.about)
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
        """Return the fate of a claim, given the observation that decides each element, and whether by arrival."""
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
