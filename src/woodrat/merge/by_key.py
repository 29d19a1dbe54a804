"""By key: a collection of objects identified by the text of one member; each merges member by member.

An observation's statement about an object has two kinds of parts, decided separately: whether the object is in or out,
like an element of a union, and the value of each other member, like a field under `latest`. An object that is out keeps
its members, and shows them again once it is in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from woodrat.canon.form import Json
from woodrat.canon.order import order_bytes, order_key
from woodrat.errors import pointer_part, shown
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
from woodrat.merge.packing import Packer, PartPacker, Unpacker, spelled
from woodrat.merge.policy import FoldHistory, Held, Misfit, Policy, Shown
from woodrat.merge.rank import LATEST
from woodrat.state.schema_keywords import BY_KEY, PolicyName

NAMED_MAX = 5
"""Most objects and members in one clause of blame."""
MEMBERS_MAX = 256
"""Cache size for policies by identifying member."""


class Keyed(NamedTuple):
    """The merge state of one object."""

    key: str
    """The member that identifies objects."""
    presence: Slot
    """Whether it is in; concerns the identifying text."""
    members: Mapping[str, Slot]
    """The slots of its other members, by name."""

    @property
    def is_in(self) -> bool:
        """Whether the object is in."""
        presence = self.presence
        return bool(presence.winner.stated if presence.standing else presence.stated)

    @property
    def value(self) -> dict[str, Json]:
        """The object."""
        members = {name: (s.winner.stated if s.standing else s.stated) for name, s in self.members.items()}
        return dict(sorted({**members, self.key: self.presence.about}.items()))

    @property
    def shown(self) -> Iterator[Slot]:
        """The slots that take part in the value: for an object that is out, only that one."""
        yield self.presence
        if self.is_in:
            yield from self.members.values()

    @property
    def arrived(self) -> int:
        """How many of these slots were decided only by arrival."""
        return sum(slot.by_arrival for slot in self.shown)


class KeyedHeld(SlotsHeld[Keyed]):
    """The state: each mentioned object, by its identifying text."""

    __slots__ = ()

    @staticmethod
    def pack_part(part: Keyed) -> bytes:
        packer = PartPacker()
        return orjson.dumps([_pack(part, packer.said, spelled), packer.saids])

    @staticmethod
    def unpack_part(packed: bytes) -> Keyed:
        parts, saids = orjson.loads(packed)
        return _unpack(parts, Unpacker(saids).said)

    @staticmethod
    def show_part(part: Keyed) -> list[Json]:
        return [part.value] if part.is_in else []


def _pack(part: Keyed, say: Callable[[Said], Any], spell: Callable[[Json], Any]) -> list[Any]:
    members = [_spelled(pack_slot(part.members[name], say), spell) for name in sorted(part.members)]
    return [part.key, pack_slot(part.presence, say), members]


def _spelled(packed: list[Any], spell: Callable[[Json], Any]) -> list[Any]:
    """Return a packed slot with expanded values."""
    about, asserted, standing, *against = packed
    if asserted is not None:
        asserted = [asserted[0], spell(asserted[1])]
    return [about, asserted, [[said, spell(stated)] for said, stated in standing], *against]


def _unpack(packed: Sequence[Any], said_of: Callable[[Any], Said]) -> Keyed:
    key, presence, members = packed
    slots = (unpack_slot(member, said_of) for member in members)
    return Keyed(key, unpack_slot(presence, said_of), {str(slot.about): slot for slot in slots})


Spoken = dict[str, dict[str, Json] | None]
"""By identifying text, a claim's statement about an object: its members, or None if it removes the object."""


class ByKey(Policy):
    """Objects identified by the text of one member, in order of that text; each merges member by member."""

    json_types = frozenset({"array"})
    removes = True
    gathered = KeyedHeld

    def __init__(self, member: str) -> None:
        self.member = member
        """The member whose text identifies objects."""
        self.name = PolicyName(BY_KEY, member=member)

    def refuses(self, value: Json) -> str | None:
        return next((problem for _, problem in self._misfits(value)), None)

    def takes(self, value: Json) -> bool:
        return next(self.problems(value), None) is None

    def problems(self, value: Json) -> Iterator[tuple[str, str]]:
        yield from self._misfits(value)
        texts: set[str] = set()
        for index, element in enumerate(value) if isinstance(value, list) else ():
            text = element.get(self.member) if isinstance(element, dict) else None
            if isinstance(text, str) and text in texts:
                problem = f'{self.name} takes one object of each "{self.member}", but {shown(text)} is there twice'
                yield f"/{index}/{pointer_part(self.member)}", problem
            elif isinstance(text, str):
                texts.add(text)

    def _misfits(self, value: Json) -> Iterator[tuple[str, str]]:
        """Also yield values that a merge cannot take."""
        if not isinstance(value, list):
            yield "", f"{self.name} takes an array of objects, got {shown(value)}"
            return
        for index, element in enumerate(value):
            if not isinstance(element, dict):
                yield f"/{index}", f"{self.name} takes objects, and element {index} is {shown(element)}"
                continue
            text = element.get(self.member)
            if not isinstance(text, str):
                got = f"{shown(text)} there" if self.member in element else "none"
                problem = f'{self.name} takes objects with text in "{self.member}", and element {index} has {got}'
                yield f"/{index}/{pointer_part(self.member)}", problem

    def removal_of(self, element: Json) -> Json:
        # An object is identified by its text alone, so the caller may pass it as shown.
        text = element.get(self.member) if isinstance(element, dict) else None
        return text if isinstance(text, str) else element

    def refuses_removal(self, removed: Sequence[Json]) -> str | None:
        for element in removed:
            if not isinstance(element, str):
                return f'{self.name} takes objects out by the text of "{self.member}", got {shown(element)}'
        return None

    def spoken(self, claim: Claim) -> Spoken:
        """Return a valid claim's statements about objects."""
        found: Spoken = dict.fromkeys(map(str, claim.removed)) if claim.removed else {}
        # Stated after removed: at equal rank the assertion wins, within one claim too.
        for element in claim.value if isinstance(claim.value, list) else ():
            members: dict[str, Json] = {**element}  # type: ignore[dict-item]
            text = str(members.pop(self.member))
            other = found.get(text)
            if other:  # the same object again: of equal rank the larger value counts, as between claims
                both = ((name, value) for each in (other, members) for name, value in each.items())
                members = dict(sorted(both, key=lambda pair: order_key(pair[1])))
            found[text] = members
        return found

    def fold(self, claims: Sequence[Claim], live: Collection[bytes], originals: Mapping[bytes, Claim]) -> Held:
        alive = [claim for claim in claims if claim.digest in live]
        if not alive:
            return None
        presence: dict[str, list[SlotStatement]] = {}
        values: dict[str, dict[str, list[SlotStatement]]] = {}
        for claim in claims:
            for text, members in self.spoken(claim).items():
                presence.setdefault(text, []).append(SlotStatement(members is not None, claim.said))
                for name, value in members.items() if members else ():
                    values.setdefault(text, {}).setdefault(name, []).append(SlotStatement(value, claim.said))
        parts: dict[bytes, Keyed] = {}
        for text, statements in presence.items():
            slot = settle(text, statements, live)
            if slot is not None:
                settled = (settle(name, said, live) for name, said in values.get(text, {}).items())
                members_now = {str(member.about): member for member in settled if member is not None}
                parts[order_bytes(text)] = Keyed(self.member, slot, members_now)
        latest = LATEST.top(alive)
        size, arrived = sum(part.is_in for part in parts.values()), sum(part.arrived for part in parts.values())
        return KeyedHeld(Parts.of(parts), size, arrived, latest.said, latest)

    def extend(self, held: Held, claim: Claim, name: str, known: FoldHistory, misfit: Misfit) -> Held:
        parts: Parts[Keyed] = held.parts if held else Parts(0)
        changed: dict[bytes, Keyed] = {}
        size, arrived, added = (held.size, held.arrived, 0) if held else (0, 0, 0)
        for text, members in self.spoken(claim).items():
            key = order_bytes(text)
            old: Keyed | None = parts.get(key)
            if old is None:
                added += 1
            else:
                size -= old.is_in
                arrived -= old.arrived
            new = changed[key] = self._extend(old, text, members, claim.said)
            size += new.is_in
            arrived += new.arrived
        return KeyedHeld(parts.put(changed, added), size, arrived, *latest_claim(held, claim, name, known))

    def _extend(self, old: Keyed | None, text: str, members: Mapping[str, Json] | None, said: Said) -> Keyed:
        """Return the state of an object after one more claim about it."""
        change = correct if said.corrects else state_again
        presence = Slot(text, None, False) if old is None else old.presence
        slots = {} if old is None else old.members
        if members:
            slots = {**slots}
            for name, value in members.items():
                slots[name] = change(slots.get(name) or Slot(name, None, False), value, said)
        return Keyed(self.member, change(presence, members is not None, said), slots)

    def show(self, held: Held) -> Shown:
        parts: list[Keyed] = list(held.parts.values())
        winners = [slot.winner for part in parts if part.is_in for slot in part.shown]
        # All shown objects count alike, however many members each states.
        said = LATEST.top(SlotStatement(None, winner.said) for winner in winners).said if winners else held.latest
        return Shown(
            value=self.value(held),
            said=said,
            observations=tuple(sorted({winner.said.digest for winner in winners} or {said.digest})),
            corrected=any(slot.standing for part in parts for slot in part.shown),
        )

    def value(self, held: Held) -> Json:
        return [part.value for _, part in sorted(held.parts.items(), key=lambda item: item[0]) if part.is_in]

    def others(self, held: Held, value: Json) -> list[Json]:
        stated = self.spoken(Claim(held.latest, value))
        present = (part.presence for part in held.parts.values() if part.is_in or part.presence.stated)
        return [text for text in sorted(str(slot.about) for slot in present) if text not in stated]

    def standing(self, held: Held) -> frozenset[bytes]:
        return frozenset(
            statement.said.digest
            for part in held.parts.values()
            for slot in (part.presence, *part.members.values())
            for statement in slot.standing
        )

    def pack(self, held: Held, packer: Packer) -> Any:
        parts = [_pack(part, packer.said, lambda value: value) for _, part in sorted(held.parts.items())]
        return [parts, self.pack_rest(held, packer)]

    def unpack(self, packed: Any, unpacker: Unpacker) -> Held:
        parts = (_unpack(part, unpacker.said) for part in packed[0])
        found = {order_bytes(part.presence.about): part for part in parts}
        return self.unpack_rest(packed[1], Parts.of(found), unpacker)

    def pack_rest(self, held: Held, packer: Packer) -> Any:
        return [packer.said(held.latest), held.size, held.arrived]

    def unpack_rest(self, packed: Any, parts: Parts[Any], unpacker: Unpacker) -> Held:
        return KeyedHeld(parts, packed[1], packed[2], unpacker.said(packed[0]))

    def by_arrival(self, held: Held) -> bool:
        return bool(held.arrived)

    def arrived(self, held: Held) -> tuple[Claim, ...]:
        """Return parts decided by arrival, by observation: objects that are in with such members, and objects that are
        out. The latest comes first.
        """
        found: dict[bytes, tuple[Said, dict[str, dict[str, Json]], list[Json]]] = {}
        for _, part in sorted(held.parts.items(), key=lambda item: item[0]):
            text = str(part.presence.about)
            for slot in part.shown:
                if not slot.by_arrival:
                    continue
                stated, said = slot.winner
                _, present, gone = found.setdefault(said.digest, (said, {}, []))
                if slot is part.presence and not stated:
                    gone.append(text)
                    continue
                members = present.setdefault(text, {self.member: text})
                if slot is not part.presence:
                    members[str(slot.about)] = stated
        ordered = sorted(found.values(), key=lambda each: (each[0].observed_at, each[0].digest), reverse=True)
        return tuple(Claim(said, [*present.values()], tuple(gone)) for said, present, gone in ordered)

    def verdicts(self, held: Held, claims: Sequence[Claim]) -> list[tuple[bool, str]]:
        return [self._verdict(claim, held.parts) for claim in claims]

    def _verdict(self, claim: Claim, parts: Mapping[bytes, Keyed]) -> tuple[bool, str]:
        """Return whether a claim decides anything, and which of its objects and members it decides, in words."""
        spoken = self.spoken(claim)
        if not spoken:
            return False, "speaks of no object"
        mine: list[str] = []
        others: set[bytes] = set()
        count = arrived = 0
        for text, members in sorted(spoken.items()):
            part = parts[order_bytes(text)]
            count += 1 + len(members or ())
            for slot in part.shown:
                name = None if slot is part.presence else str(slot.about)
                if name is not None and (members is None or name not in members):
                    continue
                if slot.winner.said.digest != claim.digest:
                    others.add(slot.winner.said.digest)
                    continue
                arrived += slot.by_arrival
                mine.append(text if name is None else f"{text}.{name}")
        if mine:
            how = f", {arrived} of them because it arrived later; no observation time was given" if arrived else ""
            more = f" and {len(mine) - NAMED_MAX} more" if len(mine) > NAMED_MAX else ""
            named = ", ".join(mine[:NAMED_MAX]) + more
            return True, f"decides {named} of the {count} objects and members it speaks of{how}"
        further = " and others" if len(others) > 1 else ""
        return False, f"every object it speaks of is decided by {label(min(others))}{further}"


@lru_cache(maxsize=MEMBERS_MAX)
def by_key(member: str) -> ByKey:
    """Return the policy for an identifying member: always the same instance for a member."""
    return ByKey(member)
