"""Element state: the merge state of one element or member that observations state separately.

Such a thing is an element of a union, an object of a collection under `by_key`, or a member of such an object. For the
first two a statement says whether they are in, for a member its value. Statements rank as `latest` does, and standing
corrections of the same thing come first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Self, TypeVar

from woodrat.canon.form import Json
from woodrat.canon.order import order_key
from woodrat.merge.claim import Claim, Said, claim_of, differ, replaced
from woodrat.merge.elements import INSIDE_MAX, CollectionState, Parts
from woodrat.merge.policy import FoldHistory
from woodrat.merge.rank import LATEST, arrived_later

Part = TypeVar("Part")


class SlotStatement(NamedTuple):
    """One observation's word on one thing."""

    stated: Json
    """Whether the thing is in; for a member, its value."""
    said: Said
    """The observation with the statement; its time and priority rank it."""

    @property
    def order(self) -> tuple[Any, ...]:
        """The place of the statement in the order of values, in which "in" ranks above "out"."""
        return order_key(self.stated)


class Slot(NamedTuple):
    """The state of one thing."""

    about: Json
    """The thing: an element, the text that names an object, or the name of a member."""
    said: Said | None
    """The agent of the highest live statement of an assertion; None if only corrections mention the thing."""
    stated: Json
    """The content of that statement."""
    standing: tuple[SlotStatement, ...] = ()
    """Live corrections of this thing that are not replaced, by digest."""
    against: str = ""
    """The latest `observed_at` of a live assertion that differs from the highest; empty without one."""

    @property
    def by_arrival(self) -> bool:
        """Whether the outcome was decided only by arrival."""
        if not self.standing:
            assert self.said is not None
            return arrived_later(self.said, self.against)
        if len(self.standing) == 1:
            return False
        winner = LATEST.top(self.standing)
        others = [statement for statement in self.standing if differ(statement.stated, winner.stated)]
        return bool(others) and arrived_later(winner.said, LATEST.top(others).said.observed_at)

    @property
    def winner(self) -> SlotStatement:
        """The statement that holds."""
        if self.standing:
            return LATEST.top(self.standing)
        assert self.said is not None, "a slot holds at least one statement"
        return SlotStatement(self.stated, self.said)


def settle(about: Json, statements: Sequence[SlotStatement], live: Collection[bytes]) -> Slot | None:
    """Return the state of a thing, given all statements about it; `None` if none of them is live."""
    corrected = {s.said.digest: s for s in statements if s.said.corrects}
    standing: tuple[SlotStatement, ...] = ()
    if corrected:
        gone = replaced({digest: s.said.replaces for digest, s in corrected.items()}, live)
        standing = tuple(corrected[d] for d in sorted(corrected) if d in live and d not in gone)
    asserted = [s for s in statements if not s.said.corrects and s.said.digest in live]
    if asserted:
        highest = LATEST.top(asserted)
        against = max((s.said.observed_at for s in asserted if differ(s.stated, highest.stated)), default="")
        return Slot(about, highest.said, highest.stated, standing, against)
    return Slot(about, None, False, standing) if standing else None


def state_again(slot: Slot, stated: Json, said: Said) -> Slot:
    """Return a slot after one more assertion about its thing."""
    about, highest, was, standing, against = slot
    if highest is None:
        return Slot(about, said, stated, standing, against)
    old, new = SlotStatement(was, highest), SlotStatement(stated, said)
    wins = LATEST.higher(old, new) is new
    if differ(stated, was):
        # The highest so far is later than all equal ones; if it lost, it is now one that differs.
        against = highest.observed_at if wins else max(against, said.observed_at)
    elif not wins:
        return slot
    return Slot(about, said, stated, standing, against) if wins else slot._replace(against=against)


def correct(slot: Slot, stated: Json, said: Said) -> Slot:
    """Return a slot after one more correction of its thing, which nothing names."""
    standing = [s for s in slot.standing if s.said.digest not in said.replaces]
    standing = sorted([*standing, SlotStatement(stated, said)], key=lambda s: s.said.digest)
    return slot._replace(standing=tuple(standing))


def pack_slot(slot: Slot, say: Callable[[Said], Any]) -> list[Any]:
    """Return a slot as JSON; `say` spells an observation."""
    about, said, stated, standing, against = slot
    found = [
        about,
        None if said is None else [say(said), stated],
        [[say(statement.said), statement.stated] for statement in standing] if standing else (),
    ]
    if against:
        found.append(against)
    return found


def unpack_slot(packed: Sequence[Any], said_of: Callable[[Any], Said]) -> Slot:
    """Return the slot that was packed."""
    about, asserted, standing, *against = packed
    said, stated = (None, False) if asserted is None else (said_of(asserted[0]), asserted[1])
    stood = tuple([SlotStatement(stated, said_of(said)) for said, stated in standing]) if standing else ()
    return Slot(about, said, stated, stood, *against)


class SlotsHeld(CollectionState[Part]):
    """The state of a collection whose elements are stated separately."""

    __slots__ = ("arrived", "at_hand", "is_spread", "latest", "parts", "size")

    def __init__(self, parts: Parts[Part], size: int, arrived: int, latest: Said, at_hand: Claim | None = None) -> None:
        self.parts = parts
        self.is_spread = parts.count > INSIDE_MAX
        self.size = size
        self.arrived = arrived
        """How many parts were decided only by arrival: elements that are in or out, members of those that are in."""
        self.latest = latest
        """The agent of the latest live claim; shown while no element is in."""
        self.at_hand = at_hand
        """That claim, where it need not be looked up. It may be as long as the collection, so it is not stored."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = (self.size, self.arrived, self.latest), (other.size, other.arrived, other.latest)
        return mine == theirs and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]

    def but(self, parts: Parts[Part]) -> Self:
        return type(self)(parts, self.size, self.arrived, self.latest, self.at_hand)


def latest_claim(held: SlotsHeld[Any] | None, claim: Claim, name: str, known: FoldHistory) -> tuple[Said, Claim | None]:
    """Return what the later claim says, of the latest held one and `claim`; and that claim itself if it is at hand."""
    if held is None:
        return claim.said, claim
    said, new = held.latest, claim.said
    above = LATEST.compare(new, said)
    if above > 0:
        return new, claim
    latest = held.at_hand
    if latest is None:
        if above < 0:
            return said, None
        # Only claims that are otherwise equal are compared by their values, and have to be looked up.
        found = known.find(said.digest)
        assert found is not None, "the state comes from a fold"
        latest = claim_of(found, name)
    latest = LATEST.higher(latest, claim)
    return latest.said, latest
