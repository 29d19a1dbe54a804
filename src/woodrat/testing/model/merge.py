"""Merge: the meaning of observations of one entity or group, computed as slowly and plainly as the design text reads.

Written from DESIGN.md section 6 and docs/formats/merge.md. Nothing is shared with `woodrat.merge` but the order of JSON
values: where the two disagree, one of them is wrong. Every policy decides *parts* of a field: the value itself, each
element of a union, each object of `by_key` and each of its members. A part has a function that returns an observation's
statement about it, or `NOTHING`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.canon.order import order_key
from woodrat.state.observation import Observation

OwnPolicy = Callable[[list[Observation], str], Json]
"""A user's own policy: from the assertions that count and the field's name to the value."""
PolicyOf = Callable[[str], str | OwnPolicy]
"""The policy of a field: its name, `by_key:MEMBER`, or a user's own."""
Fits = Callable[[str, Json], bool]
"""Whether a value fits the field's subschema."""
Says = Callable[[Observation], Any]
"""An observation's statement about one part of a field, or `NOTHING`."""

NOTHING: Final[Any] = object()
DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
DECIMAL_CHARACTERS_MAX = 400
INTEGER_MAX = 2**53 - 1


class ModelFold:
    """The meaning of a set of observations for the entities that are folded together."""

    def __init__(
        self, observations: Iterable[Observation], policy_of: PolicyOf, fits: Fits, members: Iterable[Ref] | None = None
    ) -> None:
        self.everything = list({o.digest: o for o in observations}.values())
        self.members = frozenset(o.entity for o in self.everything) if members is None else frozenset(members)
        self.policy_of = policy_of
        self.fits = fits
        self.acting = [o for o in acting(self.everything) if o.entity in self.members]
        self.live = live_digests(acting(self.everything))

    def is_live(self, o: Observation) -> bool:
        """Return whether no live retraction of the same entity names an observation."""
        return o.digest in self.live

    @cached_property
    def exists(self) -> bool:
        """Whether a live observation is not a retraction."""
        return any(o.op != "retract" and self.is_live(o) for o in self.acting)

    def is_deleted(self, member: Ref) -> bool:
        """Return whether a live marker of the member that is not replaced is a delete."""
        markers = [o for o in self.acting if o.entity == member and o.op in ("delete", "restore")]

        def replaced(marker: Observation) -> bool:
            return any(marker.digest in m.replaces and (self.is_live(m) or replaced(m)) for m in markers)

        return any(m.op == "delete" and self.is_live(m) and not replaced(m) for m in markers)

    @cached_property
    def deleted_members(self) -> frozenset[Ref]:
        """Members that are deleted; they contribute nothing."""
        return frozenset(member for member in self.members if self.is_deleted(member))

    @property
    def deleted(self) -> bool:
        """Whether every member is deleted."""
        return bool(self.members) and self.deleted_members == self.members

    @cached_property
    def names(self) -> list[str]:
        """Every field that any observation states or removes from, with any outcome."""
        stating = [o for o in self.everything if o.op in ("assert", "correct") and o.entity in self.members]
        return sorted({name for o in stating for name in (*o.fields, *o.remove)})

    @cached_property
    def all_fields(self) -> dict[str, ModelField]:
        """Every field in `names`, by name."""
        return {name: ModelField(self, name) for name in self.names}

    @cached_property
    def fields(self) -> dict[str, ModelField]:
        """The fields that have a value, by name; empty for a deleted group."""
        if self.deleted:
            return {}
        return {name: field for name, field in self.all_fields.items() if field.value is not NOTHING}

    @property
    def values(self) -> dict[str, Json]:
        """The value of each field, by name."""
        return {name: field.value for name, field in self.fields.items()}


def acting(observations: Iterable[Observation]) -> list[Observation]:
    """Return the observations that have any effect: an audit event is never corrected, retracted or deleted."""
    return [o for o in observations if o.entity.type != "audit_event" or o.op == "assert"]


def live_digests(observations: Collection[Observation]) -> frozenset[bytes]:
    """Return the observations that no live retraction of the same entity names."""
    retractions = [o for o in observations if o.op == "retract"]
    known: dict[bytes, bool] = {}

    def live(o: Observation) -> bool:
        if o.digest not in known:
            named = (r for r in retractions if o.digest in r.replaces and r.entity == o.entity)
            known[o.digest] = not any(live(r) for r in named)
        return known[o.digest]

    return frozenset(o.digest for o in observations if live(o))


class ModelField:
    """One field of a fold: the claims on it and the value they make."""

    def __init__(self, fold: ModelFold, name: str) -> None:
        self.fold = fold
        self.name = name
        self.policy = fold.policy_of(name)
        # A deleted member contributes nothing. The fields of a deleted group are still computed.
        gone = frozenset() if fold.deleted else fold.deleted_members
        self.stating = [
            o
            for o in fold.acting
            if o.op in ("assert", "correct") and o.entity not in gone and (name in o.fields or name in o.remove)
        ]
        self.corrections = [c for c in self.stating if c.op == "correct" and self.fits(c)]
        """Fitting corrections, live or not."""
        self.live_corrections = [c for c in self.corrections if fold.is_live(c)]
        self.assertions = [a for a in self.stating if a.op == "assert" and self.fits(a) and fold.is_live(a)]
        """Live fitting assertions."""

    @property
    def key(self) -> str | None:
        """The member that identifies objects under `by_key`."""
        policy = self.policy if isinstance(self.policy, str) else ""
        return policy.removeprefix("by_key:") if policy.startswith("by_key:") else None

    @property
    def claims(self) -> list[Observation]:
        """Live fitting claims."""
        return self.assertions + self.live_corrections

    @property
    def misfits(self) -> list[Observation]:
        """Live claims that do not fit."""
        return [o for o in self.stating if self.fold.is_live(o) and not self.fits(o)]

    def fits(self, o: Observation) -> bool:
        """Return whether a claim fits its subschema and its policy takes it."""
        removed = o.remove.get(self.name, ())
        if removed and self.policy != "union" and self.key is None:
            return False
        if self.key is not None and not all(isinstance(text, str) for text in removed):
            return False
        if self.name not in o.fields:
            return True
        value = o.fields[self.name]
        if self.key is not None and not (
            isinstance(value, list)
            and all(isinstance(each, dict) and isinstance(each.get(self.key), str) for each in value)
        ):
            return False
        if self.policy in ("union", "append") and not isinstance(value, list):
            return False
        if self.policy == "sum" and exact(value) is None:
            return False
        return self.fold.fits(self.name, value)

    # Parts

    def standing(self, says: Says) -> list[Observation]:
        """Return the live corrections of a part that no correction of the part replaces."""
        speaking = [c for c in self.corrections if says(c) is not NOTHING]

        def replaced(o: Observation) -> bool:
            return any(o.digest in c.replaces and (self.fold.is_live(c) or replaced(c)) for c in speaking)

        return [c for c in speaking if self.fold.is_live(c) and not replaced(c)]

    def deciding(self, says: Says) -> list[Observation]:
        """Return the claims that decide a part: standing corrections, else assertions."""
        return self.standing(says) or [a for a in self.assertions if says(a) is not NOTHING]

    def winner(self, says: Says) -> Observation:
        """Return the claim that decides a mentioned part."""
        return top(self.deciding(says), says)

    def stated(self, o: Observation) -> Json:
        """Return the value that an observation states; null where it only removes."""
        return o.fields.get(self.name)

    # Values

    @cached_property
    def value(self) -> Any:
        """The value of the field, or `NOTHING`."""
        if not self.claims:
            return NOTHING
        if self.policy == "union":
            return [element for element in self.elements if self.says_of(element)(self.winner(self.says_of(element)))]
        if self.key is not None:
            return [self.object(text) for text in self.texts if self.is_in(text)]
        if self.policy in ("sum", "append"):
            return self.total()
        if self.standing(self.stated):
            return self.stated(self.winner(self.stated))
        if callable(self.policy):
            return self.policy(self.assertions, self.name)
        return self.stated(self.highest(self.assertions))

    def highest(self, claims: Iterable[Observation]) -> Observation:
        """Return the highest of some assertions by the policy's rank; of equal ones that with the smallest digest."""
        assert self.policy in RANKS, f"no such policy: {self.policy}"
        if self.policy == "min":
            return min(claims, key=lambda o: (order_key(self.stated(o)), o.digest))
        rank = RANKS[self.policy]
        return max(claims, key=lambda o: (*rank(o, order_key(self.stated(o))), _reversed(o.digest)))

    # union: whether each element is in

    @cached_property
    def elements(self) -> list[Json]:
        """The elements that a live claim mentions, in the order of values."""
        spoken = [element for o in self.claims for element in (*(self.stated(o) or ()), *o.remove.get(self.name, ()))]  # type: ignore[misc]
        return [element for _, element in sorted({order_key(element): element for element in spoken}.items())]

    def says_of(self, element: Json) -> Says:
        """Return the part that says whether an element is in; an observation that has it in both says in."""

        def says(o: Observation) -> Any:
            if any(same(element, each) for each in self.stated(o) or ()):  # type: ignore[union-attr]
                return True
            return False if any(same(element, each) for each in o.remove.get(self.name, ())) else NOTHING

        return says

    # by_key: whether each object is in, and each of its members

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the objects that a live claim mentions, by UTF-8 bytes."""
        stated = {str(each[self.key]) for o in self.claims for each in self.stated(o) or ()}  # type: ignore
        removed = {str(text) for o in self.claims for text in o.remove.get(self.name, ())}
        return sorted(stated | removed, key=lambda text: text.encode())

    def part(self, text: str, member: str | None = None) -> Says:
        """Return the part that says whether an object is in, or the value of one of its members."""

        def says(o: Observation) -> Any:
            objects: list[Any] = [each for each in self.stated(o) or () if each[self.key] == text]  # type: ignore
            if member is None:
                return True if objects else False if text in o.remove.get(self.name, ()) else NOTHING
            return max((each[member] for each in objects if member in each), key=order_key, default=NOTHING)

        return says

    def is_in(self, text: str) -> bool:
        """Return whether an object is in."""
        return self.part(text)(self.winner(self.part(text))) is True

    def members(self, text: str) -> list[str]:
        """Return the members of an object with a claim left, except the identifying one."""
        objects: list[Any] = [each for o in self.claims for each in self.stated(o) or ()]  # type: ignore[union-attr]
        stated = {str(name) for each in objects if each[self.key] == text for name in each}
        return sorted(name for name in stated - {self.key} if self.deciding(self.part(text, name)))

    def object(self, text: str) -> dict[str, Json]:
        """Return an object with all members that are decided."""
        parts = {name: self.part(text, name) for name in self.members(text)}
        return {**{name: part(self.winner(part)) for name, part in parts.items()}, str(self.key): text}

    # sum and append: the contribution of each original

    @cached_property
    def originals(self) -> list[Observation]:
        """Assertions that a correction may replace, whether they are live and fit or not."""
        return [a for a in self.stating if a.op == "assert"]

    def of_original(self, original: Observation) -> Says:
        """Return the part for corrections of one original: those that name it and no other."""

        def says(c: Observation) -> Any:
            named = [a.digest for a in self.originals if a.digest in c.replaces]
            return self.stated(c) if c.op == "correct" and named == [original.digest] else NOTHING

        return says

    def contribution(self, original: Observation) -> Observation | None:
        """Return the replacement of an original: a correction, itself, or None."""
        standing = self.standing(self.of_original(original))
        if standing:
            return top(standing, self.stated)
        return original if original in self.assertions else None

    @cached_property
    def contributions(self) -> list[tuple[Observation, Observation]]:
        """The originals that contribute, in their order, each with its contribution."""
        ordered = sorted(self.originals, key=lambda o: (o.observed_at, order_key(self.stated(o)), o.digest))
        return [(original, claim) for original in ordered if (claim := self.contribution(original)) is not None]

    def total(self) -> Any:
        """Return the sum of all contributions, or the list of their elements."""
        values: list[Any] = [self.stated(claim) for _, claim in self.contributions]
        if not values:
            return NOTHING
        return exact_sum(values) if self.policy == "sum" else [element for value in values for element in value]


RANKS: Final[dict[Any, Callable[[Observation, Any], tuple[Any, ...]]]] = {
    "latest": lambda o, value: (o.observed_at, o.priority, value),
    "highest_priority": lambda o, value: (o.priority, o.observed_at, value),
    "first": lambda o, value: (_reversed(o.observed_at.encode()), o.priority, value),
    "max": lambda o, value: (value,),
    "min": lambda o, value: (value,),
}
"""How policies rank assertions; the larger wins, under `min` the smaller."""


def top(claims: Iterable[Observation], says: Says) -> Observation:
    """Return the highest claim on a part by the rank of `latest`; of equal ones the one with the smallest digest."""
    return max(claims, key=lambda o: (*RANKS["latest"](o, order_key(says(o))), _reversed(o.digest)))


def same(a: Json, b: Json) -> bool:
    """Return whether two values are the same; 1 and true are not."""
    return order_key(a) == order_key(b)


def exact(value: Json) -> Fraction | None:
    """Return a term of a sum exactly, or None for any other value."""
    if type(value) is int:
        return Fraction(value)
    if isinstance(value, str) and len(value) <= DECIMAL_CHARACTERS_MAX and DECIMAL.fullmatch(value):
        return Fraction(value)
    return None


def exact_sum(values: list[Json]) -> Json:
    """Return the sum of terms: an integer if all are and it is in range, else decimal text."""
    total = sum((exact(value) or Fraction(0) for value in values), Fraction(0))
    if all(type(value) is int for value in values) and abs(total) <= INTEGER_MAX:
        return int(total)
    places = 0
    while (total * 10**places).denominator != 1:
        places += 1
    digits = str(abs(int(total * 10**places))).rjust(places + 1, "0")
    cut = len(digits) - places
    return ("-" if total < 0 else "") + digits[:cut] + ("." + digits[cut:] if places else "")


def _reversed(data: bytes) -> tuple[int, ...]:
    """Return a key that sorts bytes of one length in reverse."""
    return tuple(-byte for byte in data)
