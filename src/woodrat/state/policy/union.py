"""Union: a collection whose elements are asserted and removed one by one; corrections speak per element."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.frozen import dataclass, replace
from woodrat.state.policy.claim import Claim, Fits, Held, Known, Policy, Said, Shown, label, later, replaced, top
from woodrat.state.policy.packing import Packer, Unpacker
from woodrat.state.schema import PolicyName


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


@dataclass(frozen=True, slots=True)
class UnionHeld:
    """What a union keeps."""

    slots: Mapping[bytes, Slot]
    """What is held about each element, by its canonical bytes."""
    latest: Claim
    """The latest live claim; it is shown while no element is in."""


class Union(Policy):
    """Elements asserted and not removed, in the one order of JSON values; each element ranks as `latest`."""

    name = PolicyName("union")
    json_types = frozenset({"array"})
    removes = True

    def refuses(self, value: Json) -> str | None:
        return None if isinstance(value, list) else "union takes an array of elements"

    def statements(self, claim: Claim) -> dict[bytes, Statement]:
        """Return the claim's word on each element it speaks of."""
        found = {form.serialise(value): Statement(False, value, claim.said) for value in claim.removed}
        # Asserted after removed: at equal rank the assertion wins, within one claim too.
        elements = claim.value if isinstance(claim.value, list) else []
        found.update({form.serialise(value): Statement(True, value, claim.said) for value in elements})
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
                slots[element] = Slot(_best(asserted) if asserted else None, standing)
        return UnionHeld(slots, top(alive))

    def extend(self, held: Held, claim: Claim, name: str, known: Known, fits: Fits) -> Held:
        slots: Mapping[bytes, Slot] = held.slots if held else {}
        changed: dict[bytes, Slot] = {}
        for element, statement in self.statements(claim).items():
            slot = slots.get(element, Slot(None, ()))
            if claim.corrects:
                standing = [s for s in slot.standing if s.said.digest not in claim.replaces]
                standing = sorted([*standing, statement], key=lambda s: s.said.digest)
                changed[element] = replace(slot, standing=tuple(standing))
            else:
                best = statement if slot.asserted is None else _best((slot.asserted, statement))
                changed[element] = replace(slot, asserted=best)
        return UnionHeld({**slots, **changed}, later(held.latest, claim) if held else claim)

    def show(self, held: Held) -> Shown:
        winners = (slot.winner for slot in held.slots.values())
        present = sorted((s for s in winners if s.present), key=lambda s: form.order_key(s.value))
        best = _best(present).said if present else held.latest.said
        return Shown(
            value=[s.value for s in present],
            said=best,
            observations=tuple(sorted({s.said.digest for s in present} or {best.digest})),
            corrected=any(slot.standing for slot in held.slots.values()),
        )

    def elements(self, held: Held) -> list[Json]:
        slots = held.slots.values()
        return [s.winner.value for s in slots if s.winner.present or (s.asserted is not None and s.asserted.present)]

    def standing(self, held: Held) -> frozenset[bytes]:
        return frozenset(s.said.digest for slot in held.slots.values() for s in slot.standing)

    def pack(self, held: Held, packer: Packer) -> Any:
        slots = [
            [
                slot.winner.value,
                slot.asserted and [packer.said(slot.asserted.said), slot.asserted.present],
                [[packer.said(s.said), s.present] for s in slot.standing],
            ]
            for slot in held.slots.values()
        ]
        return [slots, packer.claim(held.latest)]

    def unpack(self, packed: Any, unpacker: Unpacker) -> Held:
        slots = {}
        for value, asserted, standing in packed[0]:
            best = asserted and Statement(asserted[1], value, unpacker.said(asserted[0]))
            others = tuple(Statement(present, value, unpacker.said(place)) for place, present in standing)
            slots[form.serialise(value)] = Slot(best, others)
        return UnionHeld(slots, unpacker.claim(packed[1]))

    def verdict(self, held: Held, claim: Claim, claims: Sequence[Claim]) -> tuple[bool, str]:
        spoken = self.statements(claim)
        deciders = {element: slot.winner.said.digest for element in spoken if (slot := held.slots.get(element))}
        mine = sum(digest == claim.digest for digest in deciders.values())
        if mine:
            return True, f"decides {mine} of the {len(spoken)} elements it speaks of"
        if not spoken:
            return False, "speaks of no element"
        others = sorted(set(deciders.values()))
        more = " and others" if len(others) > 1 else ""
        return False, f"every element it speaks of is decided by {label(others[0])}{more}"
