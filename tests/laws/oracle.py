"""The oracle: what a group of entities shows, worked out as slowly and plainly as the design text reads.

Nothing here is shared with `woodrat.merge.fold` or its policies, apart from the order of JSON values: everything
is asked anew for every question, nothing is kept. It is written from DESIGN.md, section 6; where the two disagree
one of them is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypedDict

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.canon.order import order_key
from woodrat.state.observation import Observation

Values = Callable[[list[Observation], str], Json]
"""A user's own policy: from assertions that count and the field's name to the value."""
Fits = Callable[[str, Json], bool]
"""Whether a value fits the field's subschema."""

CONTESTED = ("latest", "highest_priority", "first")
DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
INTEGER_MAX = 2**53 - 1


class Answer(TypedDict):
    """What is believed about the group."""

    exists: bool
    deleted: bool
    fields: dict[str, Json]
    conflicts: set[str]
    by_arrival: set[str]
    winners: dict[str, set[bytes]]
    """By field, the digests of the observations that win; not of a user's own policies."""


def answer(
    observations: Collection[Observation],
    policies: Mapping[str, str | Values],
    fits: Fits,
    members: Iterable[Ref] | None = None,
) -> Answer:
    """Return what these observations of one group show; a field that `policies` leaves out is under `latest`.

    `members` left out are the entities spoken of.
    """
    everything = acting(observations)
    group = set(members) if members is not None else {o.entity for o in observations}
    ours = [o for o in everything if o.entity in group]

    def live(o: Observation) -> bool:
        return is_live(o, everything)

    def marker_replaced(marker: Observation) -> bool:
        return any(
            m.op in ("delete", "restore")
            and m.entity == marker.entity
            and marker.digest in m.replaces
            and (live(m) or marker_replaced(m))
            for m in ours
        )

    def deleted(member: Ref) -> bool:
        return any(o.entity == member and o.op == "delete" and live(o) and not marker_replaced(o) for o in ours)

    exists = any(o.op != "retract" and live(o) for o in ours)
    if group and all(deleted(member) for member in group):
        return Answer(exists=exists, deleted=True, fields={}, conflicts=set(), by_arrival=set(), winners={})

    gone = {member for member in group if deleted(member)}
    speaking = [o for o in ours if o.op in ("assert", "correct") and o.entity not in gone]
    fields: dict[str, Json] = {}
    conflicts: set[str] = set()
    by_arrival: set[str] = set()
    winners: dict[str, set[bytes]] = {}
    for name in sorted({name for o in speaking for name in (*o.fields, *o.remove)}):
        field = _Field(name, policies.get(name, "latest"), speaking, live, fits)
        value = field.value()
        if value is not _NOTHING:
            fields[name] = value
            if not callable(field.policy):
                winners[name] = {o.digest for o in field.winners()}
            if field.in_conflict():
                conflicts.add(name)
            if field.by_arrival():
                by_arrival.add(name)
    return Answer(
        exists=exists, deleted=False, fields=fields, conflicts=conflicts, by_arrival=by_arrival, winners=winners
    )


def acting(observations: Iterable[Observation]) -> list[Observation]:
    """Return those that have any effect, each once: an audit event is never corrected, retracted or deleted."""
    distinct = {o.digest: o for o in observations}
    return [o for o in distinct.values() if o.entity.type != "audit_event" or o.op == "assert"]


def is_live(o: Observation, everything: list[Observation]) -> bool:
    """Return whether no live retraction of the same entity names `o`."""
    return not any(
        r.op == "retract" and o.digest in r.replaces and r.entity == o.entity and is_live(r, everything)
        for r in everything
    )


_NOTHING: Any = object()


def _same(a: Json, b: Json) -> bool:
    return order_key(a) == order_key(b)


@dataclass
class _Field:
    """One field of one group. An observation states it by `fields` or by `remove`; one that only removes says null."""

    name: str
    policy: str | Values
    speaking: list[Observation]
    """Assertions and corrections of members that are not deleted, about any field."""
    live: Callable[[Observation], bool]
    fits_schema: Fits

    @property
    def key(self) -> str | None:
        """The member that tells objects apart under `by_key`."""
        found = self.policy if isinstance(self.policy, str) else ""
        return found.removeprefix("by_key:") if found.startswith("by_key:") else None

    # -- claims ------------------------------------------------------------------------------------------------------

    def stating(self) -> list[Observation]:
        """Return all that speak of the field, by value or by removal."""
        return [o for o in self.speaking if self.name in o.fields or self.name in o.remove]

    def fitting(self, o: Observation) -> bool:
        if self.name in o.remove and self.policy != "union" and self.key is None:
            return False
        if self.key is not None and not all(isinstance(text, str) for text in o.remove.get(self.name, ())):
            return False
        if self.name not in o.fields:
            return True
        value = o.fields[self.name]
        if self.key is not None:
            if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
                return False
            texts = [each.get(self.key) for each in value]  # type: ignore[union-attr]
            if not all(isinstance(text, str) for text in texts):
                return False
        if self.policy in ("union", "append") and not isinstance(value, list):
            return False
        if self.policy == "sum" and exact(value) is None:
            return False
        return self.fits_schema(self.name, value)

    def claims(self, op: str) -> list[Observation]:
        """Return what is live and fits."""
        return [o for o in self.stating() if o.op == op and self.fitting(o) and self.live(o)]

    def replacers(self, o: Observation) -> list[Observation]:
        """Return the fitting corrections, live or not, that name `o` and state the field."""
        return [c for c in self.stating() if c.op == "correct" and o.digest in c.replaces and self.fitting(c)]

    def replaced(self, o: Observation) -> bool:
        return any(self.live(c) or self.replaced(c) for c in self.replacers(o))

    def standing(self) -> list[Observation]:
        return [c for c in self.claims("correct") if not self.replaced(c)]

    # -- ranks -------------------------------------------------------------------------------------------------------

    def latest(self, o: Observation) -> tuple[Any, ...]:
        return o.observed_at, o.priority, order_key(o.fields.get(self.name))

    def top(self, claims: list[Observation]) -> Observation:
        """Return the highest as `latest` ranks; of equals the one with the smallest digest."""
        best = max(self.latest(o) for o in claims)
        return min((o for o in claims if self.latest(o) == best), key=lambda o: o.digest)

    # -- values ------------------------------------------------------------------------------------------------------

    def value(self) -> Any:
        if not self.claims("assert") and not self.claims("correct"):
            return _NOTHING
        if self.policy == "union":
            return self.union()
        if self.key is not None:
            return [self.object(text) for text in self.texts() if self.present(text)]
        if self.policy in ("sum", "append"):
            return self.terms()
        if self.standing():
            return self.top(self.standing()).fields[self.name]
        claims = self.claims("assert")
        if callable(self.policy):
            return self.policy(claims, self.name)
        values = [o.fields[self.name] for o in claims]
        if self.policy == "max":
            return max(values, key=order_key)
        if self.policy == "min":
            return min(values, key=order_key)
        if self.policy == "highest_priority":
            return max(claims, key=lambda o: (o.priority, o.observed_at, order_key(o.fields[self.name]))).fields[
                self.name
            ]
        if self.policy == "first":
            earliest = min(o.observed_at for o in claims)
            claims = [o for o in claims if o.observed_at == earliest]
            return max(claims, key=lambda o: (o.priority, order_key(o.fields[self.name]))).fields[self.name]
        assert self.policy == "latest", f"no such policy: {self.policy}"
        return self.top(claims).fields[self.name]

    def says(self, o: Observation, element: Json) -> bool | None:
        """Return whether `o` puts `element` in (True, also when it takes it out as well), out (False) or neither."""
        value = o.fields.get(self.name, [])
        if isinstance(value, list) and any(_same(element, e) for e in value):
            return True
        return False if any(_same(element, e) for e in o.remove.get(self.name, ())) else None

    def union(self) -> list[Json]:
        return sorted((element for element in self.spoken() if self.is_in(element)), key=order_key)

    def spoken(self) -> list[Json]:
        """Return the elements that any live claim speaks of."""
        spoken: list[Json] = []
        for o in self.claims("assert") + self.claims("correct"):
            for element in [*o.fields.get(self.name, []), *o.remove.get(self.name, ())]:  # type: ignore[misc]
                if not any(_same(element, other) for other in spoken):
                    spoken.append(element)
        return spoken

    def deciding(self, element: Json) -> list[Observation]:
        """Return what decides whether an element is in: standing corrections, or else assertions."""

        def replaced(o: Observation) -> bool:
            return any(self.says(c, element) is not None and (self.live(c) or replaced(c)) for c in self.replacers(o))

        corrections = [c for c in self.claims("correct") if self.says(c, element) is not None and not replaced(c)]
        assertions = [a for a in self.claims("assert") if self.says(a, element) is not None]
        return corrections or assertions

    def is_in(self, element: Json) -> bool:
        deciding = self.deciding(element)
        if not deciding:
            return False
        best = max((o.observed_at, o.priority) for o in deciding)
        return any(self.says(o, element) is True for o in deciding if (o.observed_at, o.priority) == best)

    # -- objects told apart by a member: each part of one (`member`, or None for whether it is in) is decided by itself

    def texts(self) -> list[str]:
        """Return the texts of the objects that any live claim speaks of, in order of their UTF-8 bytes."""
        claims = self.claims("assert") + self.claims("correct")
        stated = {str(each[self.key]) for o in claims for each in o.fields.get(self.name, [])}  # type: ignore
        removed = {str(text) for o in claims for text in o.remove.get(self.name, ())}
        return sorted(stated | removed, key=lambda text: text.encode())

    def part(self, o: Observation, text: str, member: str | None) -> Any:
        """Return what `o` says of a part of an object: of the object itself whether it is in; `_NOTHING` if nothing."""
        meant: list[Any] = [each for each in o.fields.get(self.name, []) if each[self.key] == text]  # type: ignore
        if meant and member is None:
            return True
        if meant:  # where one claim has it twice, the largest counts
            return max((each[member] for each in meant if member in each), key=order_key, default=_NOTHING)
        return False if member is None and text in o.remove.get(self.name, ()) else _NOTHING

    def parts(self, text: str) -> list[str]:
        """Return the members that any live claim states of an object, but for the one that names it."""
        found: set[str] = set()
        for o in self.claims("assert") + self.claims("correct"):
            for each in o.fields.get(self.name, []):  # type: ignore[union-attr]
                if each[self.key] == text:  # type: ignore[index, call-overload]
                    found |= each.keys() - {self.key}  # type: ignore[union-attr]
        return sorted(member for member in found if self.settling(text, member))

    def settling(self, text: str, member: str | None) -> list[tuple[Any, ...]]:
        """Return what decides a part, the highest last: time, priority, order of what is said, digest, and who says so.

        Of equal ones the smallest digest is the highest.
        """

        def says(o: Observation) -> bool:
            return self.part(o, text, member) is not _NOTHING

        def replaced(o: Observation) -> bool:
            return any(says(c) and (self.live(c) or replaced(c)) for c in self.replacers(o))

        corrections = [c for c in self.claims("correct") if says(c) and not replaced(c)]
        deciding = corrections or [a for a in self.claims("assert") if says(a)]
        ranked = [
            (o.observed_at, o.priority, order_key(self.part(o, text, member)), [-byte for byte in o.digest], o)
            for o in deciding
        ]
        return sorted(ranked, key=lambda rank: rank[:4])

    def present(self, text: str) -> bool:
        return self.part(self.settling(text, None)[-1][-1], text, None) is True

    def object(self, text: str) -> dict[str, Json]:
        members = {m: self.part(self.settling(text, m)[-1][-1], text, m) for m in self.parts(text)}
        return {**members, str(self.key): text}

    def part_by_arrival(self, text: str, member: str | None) -> bool:
        *rest, top = self.settling(text, member)
        others = [rank[-1] for rank in rest if rank[2] != top[2]]
        winner: Observation = top[-1]
        return winner.assigned and bool(others) and all(o.observed_at < winner.observed_at for o in others)

    def original(self, c: Observation) -> Observation | None:
        """Return the one assertion that a correction of a sum or a list stands in for."""
        named = [a for a in self.stating() if a.op == "assert" and a.digest in c.replaces]
        return named[0] if len(named) == 1 else None

    def stand_in(self, original: Observation) -> Observation | None:
        standing = self.stand_ins(original)
        return self.top(standing) if standing else None

    def stand_ins(self, original: Observation) -> list[Observation]:
        """Return the standing corrections of an original."""

        def ours(c: Observation) -> bool:
            found = self.original(c)
            return found is not None and found.digest == original.digest

        def replaced(o: Observation) -> bool:
            return any(ours(c) and (self.live(c) or replaced(c)) for c in self.replacers(o))

        return [c for c in self.claims("correct") if ours(c) and not replaced(c)]

    def terms(self) -> Any:
        counting: list[tuple[Observation, Json]] = []
        for original in [a for a in self.stating() if a.op == "assert"]:
            stand_in = self.stand_in(original)
            if stand_in is not None:
                counting.append((original, stand_in.fields[self.name]))
            elif self.live(original) and self.fitting(original):
                counting.append((original, original.fields[self.name]))
        if not counting:
            return _NOTHING
        if self.policy == "sum":
            return _total([value for _, value in counting])
        counting.sort(key=lambda it: (it[0].observed_at, order_key(it[0].fields.get(self.name)), it[0].digest))
        return [element for _, value in counting for element in value]  # type: ignore[union-attr]

    # -- arrival -----------------------------------------------------------------------------------------------------

    def by_arrival(self) -> bool:
        """Return whether only arrival decided the value, or an element of it."""
        if self.policy == "union":
            return any(self.element_by_arrival(element) for element in self.spoken())
        if self.key is not None:
            return any(
                self.part_by_arrival(text, None)
                or (self.present(text) and any(self.part_by_arrival(text, member) for member in self.parts(text)))
                for text in self.texts()
            )
        if self.policy in ("sum", "append"):
            originals = [a for a in self.stating() if a.op == "assert"]
            return any(self.later_by_arrival(self.stand_ins(original)) for original in originals)
        if self.standing():
            return self.later_by_arrival(self.standing())
        claims = self.claims("assert")
        if self.policy == "latest":
            return self.later_by_arrival(claims)
        if self.policy == "highest_priority":
            trusted = max(o.priority for o in claims)
            return self.later_by_arrival([o for o in claims if o.priority == trusted])
        if self.policy != "first":
            return False

        def rank(o: Observation) -> tuple[Any, ...]:
            later = sum(other.observed_at > o.observed_at for other in claims)
            return later, o.priority, order_key(o.fields[self.name]), [-byte for byte in o.digest]

        winner = max(claims, key=rank)
        others = [o for o in claims if not _same(o.fields[self.name], winner.fields[self.name])]
        best = max(others, key=rank, default=None)
        return best is not None and best.assigned and best.observed_at > winner.observed_at

    def later_by_arrival(self, claims: list[Observation]) -> bool:
        """Return whether the highest as `latest` ranks is that only because it arrived later than any other value."""
        if not claims:
            return False
        winner = self.top(claims)
        others = [o for o in claims if not _same(o.fields[self.name], winner.fields[self.name])]
        return winner.assigned and bool(others) and all(o.observed_at < winner.observed_at for o in others)

    def element_by_arrival(self, element: Json) -> bool:
        deciding = self.deciding(element)
        if not deciding:
            return False
        best = max((o.observed_at, o.priority, self.says(o, element) is True) for o in deciding)
        equal = [o for o in deciding if (o.observed_at, o.priority, self.says(o, element) is True) == best]
        winner = min(equal, key=lambda o: o.digest)
        others = [o for o in deciding if self.says(o, element) is not self.says(winner, element)]
        return winner.assigned and bool(others) and all(o.observed_at < winner.observed_at for o in others)

    # -- winners -----------------------------------------------------------------------------------------------------

    def winners(self) -> list[Observation]:
        """Return the observations that win the field, which has a value."""
        if self.policy == "union":
            elements = self.union()
            if not elements:
                return [self.top(self.claims("assert") + self.claims("correct"))]
            return [self.puts_in(element) for element in elements]
        if self.key is not None:
            texts = [text for text in self.texts() if self.present(text)]
            if not texts:
                return [self.top(self.claims("assert") + self.claims("correct"))]
            return [self.settling(text, member)[-1][-1] for text in texts for member in (None, *self.parts(text))]
        if self.policy in ("sum", "append"):
            originals = [a for a in self.stating() if a.op == "assert"]
            counting = {a.digest: a for a in originals if self.counted(a) is not None}
            if self.policy == "sum":
                counting = {a.digest: a for a in [self.top(list(counting.values()))]}
            return [c for a in counting.values() if (c := self.counted(a)) is not None]
        if self.standing():
            return [self.top(self.standing())]
        value = self.value()
        equal = [o for o in self.claims("assert") if _same(o.fields[self.name], value)]
        if self.policy in ("latest", "highest_priority"):
            best = max(
                (o.observed_at, o.priority) if self.policy == "latest" else (o.priority, o.observed_at) for o in equal
            )
            equal = [o for o in equal if best in ((o.observed_at, o.priority), (o.priority, o.observed_at))]
        elif self.policy == "first":
            earliest = min(o.observed_at for o in equal)
            highest = max(o.priority for o in equal if o.observed_at == earliest)
            equal = [o for o in equal if (o.observed_at, o.priority) == (earliest, highest)]
        return [min(equal, key=lambda o: o.digest)]

    def counted(self, original: Observation) -> Observation | None:
        """Return what an original contributes: the correction that stands in for it, itself, or nothing."""
        stand_in = self.stand_in(original)
        return stand_in or (original if self.live(original) and self.fitting(original) else None)

    def puts_in(self, element: Json) -> Observation:
        """Return the statement that decides that an element is in; of equal ones that with the smallest digest."""
        deciding = self.deciding(element)
        best = max((o.observed_at, o.priority) for o in deciding)
        winning = [o for o in deciding if (o.observed_at, o.priority) == best and self.says(o, element)]
        return min(winning, key=lambda o: o.digest)

    # -- conflicts ---------------------------------------------------------------------------------------------------

    def in_conflict(self) -> bool:
        if self.policy not in CONTESTED:
            return False
        agents = {o.agent for o in self.claims("assert")}
        last = [self.top([o for o in self.claims("assert") if o.agent == agent]) for agent in agents]
        standing = self.standing()
        if standing:
            winner = self.top(standing)
            corrected = winner.fields[self.name]
            return any(not _same(c.fields[self.name], corrected) for c in standing) or any(
                o.observed_at > winner.observed_at and not _same(o.fields[self.name], corrected) for o in last
            )
        return any(
            not _same(a.fields[self.name], b.fields[self.name]) and a.digest not in b.saw and b.digest not in a.saw
            for a in last
            for b in last
        )


def exact(value: Json) -> Fraction | None:
    """Return a term of a sum exactly, or None for what is no term."""
    if type(value) is int:
        return Fraction(value)
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        whole, _, part = value.lstrip("-").partition(".")
        size = Fraction(int(whole)) + (Fraction(int(part), 10 ** len(part)) if part else 0)
        return -size if value.startswith("-") else size
    return None


def _total(values: list[Json]) -> Json:
    total = sum((exact(value) or Fraction(0) for value in values), Fraction(0))
    if all(type(value) is int for value in values) and abs(total) <= INTEGER_MAX:
        return int(total)
    places = 0
    while (total * 10**places).denominator != 1:
        places += 1
    digits = str(abs(int(total * 10**places))).rjust(places + 1, "0")
    cut = len(digits) - places
    return ("-" if total < 0 else "") + digits[:cut] + ("." + digits[cut:] if places else "")
