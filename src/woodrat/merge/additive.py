"""Additive policies: they add up one contribution for each original observation; a correction replaces one."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import Any

import orjson

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.order import order_bytes
from woodrat.merge.claim import (
    Claim,
    claim_of,
    first_namers,
    label,
    replaced_by,
    unreplaced,
)
from woodrat.merge.elements import INSIDE_MAX, CollectionState, Parts
from woodrat.merge.packing import Packer, PartPacker, Unpacker
from woodrat.merge.policy import FoldHistory, Held, Misfit, Policy, Shown
from woodrat.merge.rank import LATEST, corrected_by_arrival
from woodrat.records import dataclass, replace
from woodrat.state.observation import ASSERT
from woodrat.state.schema_keywords import PolicyName

TERM_CHARACTERS_MAX = 400
"""Longest decimal text a sum takes as one term."""


@dataclass(frozen=True, slots=True)
class Term:
    """One original observation's contribution, and the corrections that replace it."""

    original: Claim
    """The original; it keeps its place in a list even when it is withdrawn."""
    counts: bool
    """Whether the original itself is live and fits."""
    standing: tuple[Claim, ...]
    """Its live corrections that are not replaced, by digest; one of them counts."""

    @property
    def claim(self) -> Claim | None:
        """The claim that counts."""
        return LATEST.top(self.standing) if self.standing else self.original if self.counts else None

    @property
    def by_arrival(self) -> bool:
        """Whether only arrival decided which of several corrections counts."""
        return corrected_by_arrival(self.standing)


class _Corrected:
    """The blame of a term with corrections, computed once."""

    __slots__ = ("by_arrival", "counts", "standing")

    def __init__(self, term: Term) -> None:
        self.counts = LATEST.top(term.standing)
        """The correction that counts."""
        self.standing = {claim.digest for claim in term.standing}
        """All that stand."""
        self.by_arrival = term.by_arrival
        """Whether only arrival decided between them."""


class Terms(Policy):
    """A policy that adds up contributions, one for each original observation."""

    def fold(self, claims: Sequence[Claim], live: Collection[bytes], originals: Mapping[bytes, Claim]) -> Held:
        fitting = {claim.digest for claim in claims}
        corrections: dict[bytes, list[Claim]] = {}
        for claim in claims:
            named = claim.replaces & originals.keys()
            if claim.corrects and len(named) == 1:  # otherwise void: it corrects no single original
                corrections.setdefault(next(iter(named)), []).append(claim)
        terms: list[Term] = []
        for digest, original in originals.items():
            standing = unreplaced(corrections.get(digest, []), live)
            terms.append(Term(original, digest in live and digest in fitting, tuple(standing)))
        counting = [term for term in terms if term.claim is not None]
        return self.gather(counting) if counting else None

    def extend(self, held: Held, claim: Claim, name: str, known: FoldHistory, misfit: Misfit) -> Held:
        if not claim.corrects:
            return self.put(held, None, Term(claim, True, ()))
        named = [
            found
            for found in map(known.find, claim.replaces)
            if found is not None and found.op == ASSERT and name in found.stated
        ]
        if len(named) != 1:
            return held  # void, as in `fold`
        original = claim_of(named[0], name)
        old = self.term(held, original) or Term(original, misfit(name, original, name in named[0].fields) is None, ())
        others = (c for c in old.standing if c.digest not in claim.replaces)
        standing = tuple(sorted([claim, *others], key=lambda c: c.digest))
        return self.put(held, old, replace(old, standing=standing))

    def arrived(self, held: Held) -> tuple[Claim, ...]:
        found: list[Claim] = []
        for term in self.stood_in(held):
            if term.by_arrival and term.claim is not None:
                others = [c for c in term.standing if c.order != term.claim.order]
                found += (term.claim, *others)
        return tuple(found)

    def verdicts(self, held: Held, claims: Sequence[Claim]) -> list[tuple[bool, str]]:
        namers = first_namers(claims)
        corrected = {term.original.digest: _Corrected(term) for term in self.stood_in(held)}
        verdicts = []
        for claim in claims:
            if claim.corrects:
                verdicts.append(self._correction_verdict(claim, corrected, namers))
            elif (term := corrected.get(claim.digest)) is not None:
                verdicts.append((False, f"correction {label(term.counts.digest)} stands in for it"))
            else:
                verdicts.append((True, "counts"))
        return verdicts

    @staticmethod
    def _correction_verdict(
        claim: Claim, corrected: Mapping[bytes, _Corrected], namers: Mapping[bytes, bytes]
    ) -> tuple[bool, str]:
        for original in sorted(claim.replaces & corrected.keys()):
            term = corrected[original]
            if term.counts.digest == claim.digest:
                how = "; it arrived later, and no observation time was given" if term.by_arrival else ""
                return True, f"stands in for {label(original)}{how}"
            if claim.digest in term.standing:
                return False, f"correction {label(term.counts.digest)} of the same original ranks higher"
        if claim.digest in namers:
            return False, replaced_by(claim, namers)
        return False, "names no single original that it could stand in for"

    @abstractmethod
    def term(self, held: Held, original: Claim) -> Term | None:
        """Return the stored term of an original; a sum stores only terms with corrections."""

    @abstractmethod
    def stood_in(self, held: Held) -> list[Term]:
        """Return all terms with corrections, by original."""

    @staticmethod
    def pack_terms(terms: Mapping[bytes, Term], packer: Packer) -> list[Any]:
        """Return terms as JSON."""
        ordered = (terms[key] for key in sorted(terms))
        return [[packer.claim(t.original), t.counts, [packer.claim(c) for c in t.standing]] for t in ordered]

    @staticmethod
    def unpack_terms(packed: list[Any], unpacker: Unpacker) -> dict[bytes, Term]:
        """Return the terms that were packed."""
        found = {}
        for original, counts, standing in packed:
            term = Term(unpacker.claim(original), counts, tuple(unpacker.claim(c) for c in standing))
            found[term.original.digest] = term
        return found

    @abstractmethod
    def gather(self, terms: Sequence[Term]) -> Held:
        """Return the state for these terms, which all count."""

    @abstractmethod
    def put(self, held: Held, old: Term | None, new: Term) -> Held:
        """Return the state with `new` in place of `old`."""


_DECIMAL = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Amount:
    """An exact decimal: `digits` divided by ten to the power of `scale`, in lowest form."""

    digits: int
    scale: int

    def __add__(self, other: Amount) -> Amount:
        scale = max(self.scale, other.scale)
        digits = self.digits * 10 ** (scale - self.scale) + other.digits * 10 ** (scale - other.scale)
        while scale and digits % 10 == 0:
            digits, scale = digits // 10, scale - 1
        return Amount(digits, scale)

    def __neg__(self) -> Amount:
        return Amount(-self.digits, self.scale)

    def __str__(self) -> str:
        whole, part = divmod(abs(self.digits), 10**self.scale)
        sign = "-" if self.digits < 0 else ""
        return f"{sign}{whole}.{part:0{self.scale}d}" if self.scale else f"{sign}{whole}"


_NOTHING = Amount(0, 0)


def amount(value: Json) -> Amount | None:
    """Return the exact amount of an integer or of decimal text; `None` for anything else, floats included."""
    if type(value) is int:
        return Amount(value, 0)
    if isinstance(value, str) and len(value) <= TERM_CHARACTERS_MAX and (match := _DECIMAL.fullmatch(value)):
        sign, whole, part = match[1], match[2], match[3] or ""
        return Amount(int(sign + whole + part), len(part)) + _NOTHING
    return None


@dataclass(frozen=True, slots=True)
class SumHeld:
    """The state of a sum."""

    total: Amount
    """The exact sum of all terms that count."""
    texts: int
    """Number of decimal texts among them; with none the sum is an integer while in range."""
    latest: Term
    """The term whose original is the latest; its counted observation is shown as provenance."""
    corrected: Mapping[bytes, Term]
    """The terms with corrections, by original."""


class Sum(Terms):
    """The exact sum over distinct observations of integers or decimal text; floats do not fit."""

    name = PolicyName("sum")
    json_types = frozenset({"integer", "number", "string"})

    def refuses(self, value: Json) -> str | None:
        return 'sum takes an integer or decimal text such as "12.50"' if amount(value) is None else None

    def gather(self, terms: Sequence[Term]) -> Held:
        return reduce(lambda held, term: self.put(held, None, term), terms, None)

    def put(self, held: SumHeld | None, old: Term | None, new: Term) -> SumHeld:
        total, texts = (held.total, held.texts) if held else (_NOTHING, 0)
        for term, sign in ((old, -1), (new, 1)):
            if term is not None and (counting := term.claim) is not None:
                part = amount(counting.value)
                assert part is not None, "only fitting claims are summed"
                total = total + (part if sign > 0 else -part)
                texts += sign * isinstance(counting.value, str)
        corrected = held.corrected if held else {}
        if new.standing:
            corrected = {**corrected, new.original.digest: new}
        latest = new
        if held is not None and held.latest.original.digest != new.original.digest:
            latest = new if LATEST.higher(held.latest.original, new.original) is new.original else held.latest
        return SumHeld(total, texts, latest, corrected)

    def term(self, held: SumHeld | None, original: Claim) -> Term | None:
        return held.corrected.get(original.digest) if held else None

    def stood_in(self, held: SumHeld) -> list[Term]:
        return [held.corrected[digest] for digest in sorted(held.corrected)]

    def by_arrival(self, held: SumHeld) -> bool:
        return any(term.by_arrival for term in held.corrected.values())

    def pack(self, held: SumHeld, packer: Packer) -> Any:
        # Digits as text: a sum may exceed JSON numbers.
        total = [str(held.total.digits), held.total.scale]
        latest = self.pack_terms({b"": held.latest}, packer)
        return [total, held.texts, latest, self.pack_terms(held.corrected, packer)]

    def unpack(self, packed: Any, unpacker: Unpacker) -> SumHeld:
        (digits, scale), texts, latest, corrected = packed
        terms = self.unpack_terms(corrected, unpacker)
        (shown,) = self.unpack_terms(latest, unpacker).values()
        return SumHeld(Amount(int(digits), scale), texts, shown, terms)

    def show(self, held: SumHeld) -> Shown:
        in_range = not held.texts and abs(held.total.digits) <= form.INTEGER_MAX
        value: Json = held.total.digits if in_range else str(held.total)
        shown = held.latest.claim
        assert shown is not None, "only terms that count are held"
        return Shown(value, shown.said, (shown.digest,), bool(held.corrected))

    def standing(self, held: SumHeld) -> frozenset[bytes]:
        return frozenset(c.digest for term in held.corrected.values() for c in term.standing)


class AppendHeld(CollectionState[Term]):
    """The state of a list: a term for each original, by its place in the list."""

    __slots__ = ("arrived", "is_spread", "parts", "size")

    def __init__(self, parts: Parts[Term], size: int, arrived: int) -> None:
        self.parts = parts
        self.is_spread = parts.count > INSIDE_MAX
        self.size = size
        self.arrived = arrived
        """Number of originals whose counting correction was decided only by arrival."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AppendHeld):
            return NotImplemented
        return (self.size, self.arrived) == (other.size, other.arrived) and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]

    def but(self, parts: Parts[Term]) -> AppendHeld:
        return AppendHeld(parts, self.size, self.arrived)

    @staticmethod
    def pack_part(part: Term) -> bytes:
        packer = PartPacker()
        return orjson.dumps([Terms.pack_terms({b"": part}, packer), packer.saids])

    @staticmethod
    def unpack_part(packed: bytes) -> Term:
        terms, saids = orjson.loads(packed)
        (term,) = Terms.unpack_terms(terms, Unpacker(saids)).values()
        return term

    @staticmethod
    def show_part(part: Term) -> list[Json]:
        claim = part.claim
        if claim is None:
            return []
        assert isinstance(claim.value, list), "only arrays are appended"
        return claim.value


def _place(original: Claim) -> bytes:
    """Return a key that sorts like the originals of a list: by time, value and digest."""
    return original.observed_at.encode() + order_bytes(original.value) + original.digest


class Append(Terms):
    """A list ordered by (observed_at, value, digest); each claim is an array whose elements keep their order."""

    name = PolicyName("append")
    json_types = frozenset({"array"})
    gathered = AppendHeld

    def refuses(self, value: Json) -> str | None:
        return None if isinstance(value, list) else "append takes an array of elements"

    def gather(self, terms: Sequence[Term]) -> Held:
        if not terms:
            return None
        parts = {_place(term.original): term for term in terms}
        size = sum(len(AppendHeld.show_part(term)) for term in terms)
        return AppendHeld(Parts.of(parts), size, sum(term.by_arrival for term in terms))

    def put(self, held: AppendHeld | None, old: Term | None, new: Term) -> Held:
        parts, size, arrived = (held.parts, held.size, held.arrived) if held else (Parts[Term](0), 0, 0)
        place = _place(new.original)
        size += len(AppendHeld.show_part(new))
        arrived += new.by_arrival
        if old is not None and place in parts:
            size -= len(AppendHeld.show_part(old))
            arrived -= old.by_arrival
        return AppendHeld(parts.put({place: new}), size, arrived)

    def term(self, held: AppendHeld | None, original: Claim) -> Term | None:
        return held.parts.get(_place(original)) if held else None

    def stood_in(self, held: AppendHeld) -> list[Term]:
        found = [term for term in held.parts.values() if term.standing]
        return sorted(found, key=lambda term: term.original.digest)

    def by_arrival(self, held: AppendHeld) -> bool:
        return bool(held.arrived)

    def pack(self, held: AppendHeld, packer: Packer) -> Any:
        return [self.pack_terms(held.parts, packer), self.pack_rest(held, packer)]

    def unpack(self, packed: Any, unpacker: Unpacker) -> AppendHeld:
        terms = self.unpack_terms(packed[0], unpacker).values()
        return self.unpack_rest(packed[1], Parts.of({_place(term.original): term for term in terms}), unpacker)

    def pack_rest(self, held: AppendHeld, packer: Packer) -> Any:
        return [held.size, held.arrived]

    def unpack_rest(self, packed: Any, parts: Parts[Any], unpacker: Unpacker) -> AppendHeld:
        return AppendHeld(parts, *packed)

    def show(self, held: AppendHeld) -> Shown:
        terms = [term for _, term in sorted(held.parts.items())]
        claims = [claim for term in terms if (claim := term.claim) is not None]
        value = [element for term in terms for element in AppendHeld.show_part(term)]
        observations = tuple(sorted(claim.digest for claim in claims))
        return Shown(value, LATEST.top(claims).said, observations, any(term.standing for term in terms))

    def standing(self, held: AppendHeld) -> frozenset[bytes]:
        return frozenset(c.digest for term in held.parts.values() for c in term.standing)
