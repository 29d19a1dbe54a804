"""Separation: what bad runs of a group did and good ones did not.

Every feature is tried by an exact test that is corrected for how many were tried. Of those that tell bad runs apart,
one that follows from another is not named beside it: of features that the same runs have, the earliest is named; where
one feature is what several earlier ones lead to, these are. What is left is tried again on the runs that have none of
those named, so that independent causes are each named with their share.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Final

from woodrat.canon.form import Json
from woodrat.compare import exact_test
from woodrat.compare.contrast import short
from woodrat.compare.features import (
    ENDING,
    FACT,
    NUMBER,
    ORDER,
    ORIGIN,
    START,
    STEP,
    Feature,
    FeatureRuns,
    FeatureSlot,
    FeatureTable,
    clause,
    is_long_text,
    value_of,
)
from woodrat.compare.verdicts import JUDGES, REWARD, STATUS, Verdicts
from woodrat.record_json import Record, derived
from woodrat.records import dataclass

TRAITS_MAX: Final = 5
"""How many independent traits are named."""
HINTS_MAX: Final = 3
"""How many traits are shown that chance could explain, where nothing else was found."""
COMPANIONS_MAX: Final = 5
"""How many further traits of the same runs are listed with one."""
ALIKE: Final = 0.9
"""How much two features must share of the runs that have either, to say the same (0 to 1)."""
COVERED: Final = 0.85
"""How much of a feature earlier ones must explain to be named in its place (0 to 1)."""
ORDERED_MAX: Final = 16
"""How many different steps are compared for their order, the most common ones."""
CUTS: Final = 8
"""Into how many parts the numbers of a slot are cut, each cut one feature."""
CATEGORIES_MAX: Final = 8
"""Up to how many different numbers in a slot count as values rather than as amounts."""

_RANKS: Final = {
    kind: rank
    for rank, kinds in enumerate(
        (
            ("input", "agent", "code", "model", "parameter", STEP),
            ("read", "argument", "decision", "write"),
            (FACT, "result", "error", NUMBER),
            ("given", "repeat"),
            (ORIGIN, ORDER),
        )
    )
    for kind in kinds
}
"""Of features of one step, which is named first."""
_PLAIN_LACKS: Final = frozenset({STEP, "repeat", "given"})
"""Kinds of which it says much that a run does not have them; of a value it says more which one it has."""


@dataclass(frozen=True, slots=True)
class Trait(Record):
    """Something that tells bad runs from good ones."""

    text: str
    """What those runs did, as a clause: `called refund with method cash`."""
    kind: str
    """`step`, `argument`, `result`, `error`, `read`, `decision`, `fact`, `write`, `input`, `model`, `parameter`,
    `agent`, `code`, `given`, `origin`, `repeat`, `order` or `number`."""
    name: str
    """The tool, entity, stage or model it is about."""
    path: str
    """Which argument, member or field of it; of an order the later step."""
    value: Json
    """The value there; of a number the bound, of an origin where it came from, of a repeat how often."""
    present: bool
    """Whether bad runs have it; false where they lack what good ones have."""
    step: int
    """The step at which this can be seen first, in the middle one of these runs; 0 for what was given to them."""
    bad: int
    """How many bad runs have it, or lack it."""
    good: int
    """How many good runs do."""
    bad_total: int
    """How many bad runs there are."""
    good_total: int
    """How many good runs there are."""
    p_value: float
    """How likely chance alone does this, corrected for all that was compared."""
    usual: Json
    """The value that most good runs have in its place; none where there is no such thing."""
    usual_good: int
    """How many good runs have that."""
    companions: tuple[str, ...]
    """What else these same runs have in common, earliest first."""

    @derived
    def share(self) -> float:
        """What part of the bad runs has it, from 0 to 1."""
        return _ratio(self.bad, self.bad_total)

    @derived
    def bad_rate(self) -> float:
        """What part of the runs that have it is bad."""
        return _ratio(self.bad, self.bad + self.good)

    @derived
    def bad_rate_otherwise(self) -> float:
        """What part of the other runs is bad."""
        others = self.bad_total - self.bad
        return _ratio(others, others + self.good_total - self.good)


def _ratio(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


@dataclass(frozen=True, slots=True)
class Separation(Record):
    """What separates the bad runs of a group from the good ones."""

    good: int
    """How many runs are good."""
    bad: int
    """How many are bad."""
    unjudged: int
    """How many are neither, and take no part."""
    sources: tuple[str, ...]
    """Where the verdicts come from: `judges`, `reward` or `status`."""
    compared: int
    """How many different features were compared."""
    traits: tuple[Trait, ...]
    """What separates them, each with its share, that of the most bad runs first; none where chance explains it all."""
    unexplained: int
    """How many bad runs have none of these traits."""
    earliest_step: int | None
    """The first step at which a bad run can be told apart; 0 before the first, none where nothing separates them."""
    hints: tuple[Trait, ...]
    """Where nothing separates them, what comes closest; chance alone could do it."""
    complete: bool
    """Whether every feature was compared; false where there were more than can be followed."""
    sentence: str
    """All of it in a few plain sentences."""


def separate(table: FeatureTable, verdicts: Verdicts) -> Separation:
    """Return what separates the bad runs of a table from its good ones."""
    return _Separating(table, verdicts).result()


class _Candidate:
    """A feature in the direction in which it speaks of bad runs."""

    __slots__ = ("carriers", "feature", "log_p", "present", "step")

    def __init__(self, feature: int, present: bool, carriers: int, log_p: float, step: float) -> None:
        self.feature, self.present, self.carriers, self.log_p, self.step = feature, present, carriers, log_p, step


class _Separating:
    """The runs of a table being separated; sets of runs are whole numbers with one bit a run."""

    def __init__(self, table: FeatureTable, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self._table = table
        self._bad = _bits(n for n, good in enumerate(verdicts.good) if good is False)
        self._good = _bits(n for n, good in enumerate(verdicts.good) if good is True)
        self._judged = self._bad | self._good
        self._features = list(table.features)
        self._places = list(table.places)
        self._sets: list[int] = []
        self._first_steps: dict[tuple[int, bool], float] = {}

    def result(self) -> Separation:
        """Return what separates them."""
        bad, good = self._bad.bit_count(), self._good.bit_count()
        compared, explained = 0, 0
        traits: tuple[Trait, ...] = ()
        hints: tuple[Trait, ...] = ()
        if bad and good:
            self._derive()
            self._sets = [_bits(places.runs) & self._judged for places in self._places]
            tests = self._tests()
            tried = exact_test.comparisons((members.bit_count() for members in tests), bad, bad + good)
            compared = len(tests)
            chosen = self._chosen(tests, tried)
            for candidate, _ in chosen:
                explained |= candidate.carriers
            traits = tuple(self._trait(candidate, tried, alike) for candidate, alike in chosen)
            traits = tuple(sorted(traits, key=lambda trait: (-trait.bad, trait.step, trait.text)))
            hints = () if traits else self._hints(tests, tried)
        unexplained = (self._bad & ~explained).bit_count()
        return Separation(
            good=good,
            bad=bad,
            unjudged=len(self._verdicts.good) - good - bad,
            sources=self._verdicts.sources,
            compared=compared,
            traits=traits,
            unexplained=unexplained,
            earliest_step=min((trait.step for trait in traits), default=None),
            hints=hints,
            complete=not self._table.full,
            sentence=_sentence(self._verdicts, good, bad, compared, traits, unexplained, hints),
        )

    # What is compared

    def _derive(self) -> None:
        """Add what only shows when all runs are known: the order of steps, and amounts above a bound."""
        for feature, places in (*self._orders(), *self._bounds()):
            self._features.append(feature)
            self._places.append(places)

    def _orders(self) -> Iterator[tuple[Feature, FeatureRuns]]:
        steps = [n for n, feature in enumerate(self._table.features) if feature.kind == STEP]
        steps.sort(key=lambda n: (-len(self._table.places[n].runs), self._table.features[n].name))
        followed = set(steps[:ORDERED_MAX])
        before: dict[tuple[int, int], FeatureRuns] = {}
        for run, track in enumerate(self._table.tracks):
            order = [(step, number) for step, number in track.order if step in followed]
            for place, (later, number) in enumerate(order):
                for earlier, _ in order[:place]:
                    places = before.get((earlier, later)) or before.setdefault((earlier, later), FeatureRuns())
                    places.runs.append(run)
                    places.steps.append(number)
        for (earlier, later), places in before.items():
            if (later, earlier) in before:  # else it says no more than that both were there
                names = self._table.features[earlier].name, self._table.features[later].name
                yield Feature(ORDER, *names, None), places

    def _bounds(self) -> Iterator[tuple[Feature, FeatureRuns]]:
        for slot, (runs, numbers, steps) in self._table.numbers.items():
            if slot.kind == ENDING or len(self._table.slots.get(slot, ())) <= CATEGORIES_MAX:
                continue
            ordered = sorted(numbers)
            cuts = sorted({ordered[len(ordered) * part // CUTS] for part in range(1, CUTS)})
            for bound in cuts:
                places = FeatureRuns()
                for run, number, step in zip(runs, numbers, steps, strict=True):
                    if number >= bound:
                        places.runs.append(run)
                        places.steps.append(step)
                name = f"{slot.kind} {slot.name}"
                yield Feature(NUMBER, name, slot.path, int(bound) if bound.is_integer() else bound), places

    def _tests(self) -> dict[int, list[int]]:
        """Return the different sets of runs, each with the features it has; a set and its opposite are one."""
        tests: dict[int, list[int]] = {}
        for number, members in enumerate(self._sets):
            if members and members != self._judged and self._features[number].kind != ENDING:
                opposite = self._judged & ~members
                tests.setdefault(min(members, opposite), []).append(number)
        return tests

    # What is named

    def _chosen(self, tests: dict[int, list[int]], tried: int) -> list[tuple[_Candidate, list[_Candidate]]]:
        """Return what is named, each with what says the same."""
        remaining = self._judged
        chosen: list[tuple[_Candidate, list[_Candidate]]] = []
        while len(chosen) < TRAITS_MAX:
            candidates = [
                candidate
                for numbers in tests.values()
                if exact_test.is_significant(self._log_p(self._sets[numbers[0]] & remaining, remaining), tried)
                for number in numbers
                if (candidate := self._candidate(number, remaining)) is not None
            ]
            if not candidates:
                break
            strongest = min(candidates, key=lambda item: (item.log_p, *self._rank(item)))
            named = self._led_to(strongest, candidates, remaining, tried) or [strongest]
            for candidate in named[: TRAITS_MAX - len(chosen)]:
                alike = [item for item in candidates if _likeness(item.carriers, candidate.carriers) >= ALIKE]
                alike.sort(key=self._rank)
                first = self._plainest(alike)
                chosen.append((self._whole(first), alike))
                remaining &= ~first.carriers & ~candidate.carriers
            if not (remaining & self._bad and remaining & self._good):
                break
        return chosen

    def _plainest(self, alike: Sequence[_Candidate]) -> _Candidate:
        """Return the first of features that say the same; of one that runs lack, the value they have in its place."""
        first = alike[0]
        slot = self._features[first.feature].slot
        if first.present or slot not in self._table.slots:
            return first
        return next((item for item in alike if item.present and self._features[item.feature].slot == slot), first)

    def _led_to(
        self, strongest: _Candidate, candidates: Sequence[_Candidate], remaining: int, tried: int
    ) -> list[_Candidate]:
        """Return the earlier features that lead to one, where several do together; none where it stands for itself."""
        bad = strongest.carriers & self._bad
        inside = [
            item
            for item in candidates
            if item.step < strongest.step
            and (item.carriers & strongest.carriers).bit_count() >= COVERED * item.carriers.bit_count()
            and _likeness(item.carriers, strongest.carriers) < ALIKE
        ]
        named: list[_Candidate] = []
        left, runs = bad, remaining
        while inside and left.bit_count() > (1 - COVERED) * bad.bit_count():
            best = min(inside, key=lambda item: (-(item.carriers & left).bit_count(), *self._rank(item)))
            again = self._candidate(best.feature, runs)
            if again is None or again.present != best.present or not exact_test.is_significant(again.log_p, tried):
                return []
            named.append(best)
            left &= ~best.carriers
            runs &= ~best.carriers
            inside = [item for item in inside if item.carriers & left]
        return named if left.bit_count() <= (1 - COVERED) * bad.bit_count() and len(named) > 1 else []

    def _candidate(self, number: int, remaining: int) -> _Candidate | None:
        """Return a feature among some of the runs, in the direction in which it speaks of bad ones."""
        members = self._sets[number] & remaining
        runs, bad = remaining.bit_count(), (self._bad & remaining).bit_count()
        carriers = members.bit_count()
        if not carriers or carriers == runs:
            return None
        present = (members & self._bad).bit_count() * runs >= carriers * bad
        held = members if present else remaining & ~members
        return _Candidate(number, present, held, self._log_p(members, remaining), self._step(number, present))

    def _whole(self, candidate: _Candidate) -> _Candidate:
        """Return a candidate with all runs that have it, those of other traits included."""
        members = self._sets[candidate.feature]
        carriers = members if candidate.present else self._judged & ~members
        # What a trait explains among the runs that others leave is what it was chosen for.
        return _Candidate(candidate.feature, candidate.present, carriers, candidate.log_p, candidate.step)

    def _log_p(self, members: int, runs: int) -> float:
        """Return the p-value of a set among some of the runs."""
        bad = (runs & self._bad).bit_count()
        return exact_test.log_p(members.bit_count(), (members & self._bad).bit_count(), bad, runs.bit_count())

    def _step(self, number: int, present: bool) -> float:
        """Return the step at which a feature is seen first, in the middle one of the runs that have it."""
        step = self._first_steps.get((number, present))
        if step is None:
            places, good = self._places[number], self._verdicts.good
            steps = [step for run, step in zip(places.runs, places.steps, strict=True) if good[run] is not present]
            step = self._first_steps[number, present] = median(steps) if steps else float(START)
        return step

    def _rank(self, candidate: _Candidate) -> tuple[int, int, int, int, str]:
        """Return which of features that say the same is named: the earliest, then the plainest."""
        feature = self._features[candidate.feature]
        vague = 0 if candidate.present or feature.kind in _PLAIN_LACKS else 3
        return (
            round(candidate.step),
            _RANKS.get(feature.kind, 5) + vague,
            len(feature.path),
            0 if "/" in feature.name else 1,
            repr(feature),
        )

    def _hints(self, tests: dict[int, list[int]], tried: int) -> tuple[Trait, ...]:
        """Return what comes closest to separating the runs."""
        by_p = {members: self._log_p(members, self._judged) for members in tests}
        limit = sorted(by_p.values())[: HINTS_MAX * 4][-1:]
        closest = [
            min(alike, key=self._rank)
            for members, numbers in tests.items()
            if by_p[members] <= limit[0]
            and (alike := [item for n in numbers if (item := self._candidate(n, self._judged)) is not None])
        ]
        hints: list[_Candidate] = []
        for candidate in sorted(closest, key=lambda item: (item.log_p, *self._rank(item))):
            if not is_long_text(self._features[candidate.feature].value) and all(
                _likeness(candidate.carriers, item.carriers) < ALIKE for item in hints
            ):
                hints.append(candidate)
        return tuple(self._trait(hint, tried, [hint]) for hint in hints[:HINTS_MAX])

    def _trait(self, candidate: _Candidate, tried: int, alike: Sequence[_Candidate]) -> Trait:
        feature = self._features[candidate.feature]
        compared = candidate.present and feature.kind != ORIGIN
        usual, usual_good = self._usual(feature) if compared else (None, 0)
        texts = [self._clause(item) for item in alike]
        text = self._clause(candidate)
        return Trait(
            text=text,
            kind=feature.kind,
            name=feature.name,
            path=feature.path,
            value=value_of(feature.value),
            present=candidate.present,
            step=round(candidate.step),
            bad=(candidate.carriers & self._bad).bit_count(),
            good=(candidate.carriers & self._good).bit_count(),
            bad_total=self._bad.bit_count(),
            good_total=self._good.bit_count(),
            p_value=exact_test.corrected(candidate.log_p, tried),
            usual=usual,
            usual_good=usual_good,
            companions=tuple(list(dict.fromkeys(each for each in texts if each != text))[:COMPANIONS_MAX]),
        )

    def _clause(self, candidate: _Candidate) -> str:
        return clause(self._features[candidate.feature], candidate.present)

    def _usual(self, feature: Feature) -> tuple[Json, int]:
        """Return the other value that most good runs have in the slot of a feature, and how many."""
        others = [
            n for n in self._table.slots.get(FeatureSlot(*feature[:3]), ()) if self._features[n].value != feature.value
        ]
        counted = [((self._sets[n] & self._good).bit_count(), n) for n in others]
        count, number = max(counted, key=lambda item: (item[0], repr(self._features[item[1]])), default=(0, -1))
        return (value_of(self._features[number].value), count) if count else (None, 0)


def _bits(runs: Iterable[int] | array[int]) -> int:
    """Return a set of runs as a whole number."""
    listed = list(runs)
    if not listed:
        return 0
    held = bytearray(max(listed) // 8 + 1)
    for run in listed:
        held[run >> 3] |= 1 << (run & 7)
    return int.from_bytes(held, "little")


def _likeness(one: int, other: int) -> float:
    """Return how much two sets share of what is in either."""
    either = (one | other).bit_count()
    return (one & other).bit_count() / either if either else 1.0


# The sentence

_SOURCES: Final = {JUDGES: "by their judges", REWARD: "by reward", STATUS: "by how they ended"}


def _sentence(
    verdicts: Verdicts,
    good: int,
    bad: int,
    compared: int,
    traits: Sequence[Trait],
    unexplained: int,
    hints: Sequence[Trait],
) -> str:
    if verdicts.undecided is not None and not bad and not good:
        return f"Nothing is known of good and bad runs: {verdicts.undecided}."
    judged = bad + good
    sources = " and ".join(_SOURCES[source] for source in verdicts.sources)
    if not bad or not good:
        return f"All {judged} judged runs are {'good' if good else 'bad'} ({sources}); there is nothing to tell apart."
    counts = f"{bad} of {judged} judged runs {'is' if bad == 1 else 'are'} bad ({sources})"
    tried = f"{compared:,} feature{'' if compared == 1 else 's'} compared"
    if not traits:
        text = f"{counts}. Nothing they did separates bad from good beyond chance ({tried})"
        if not hints:
            return f"{text}."
        if not exact_test.is_significant(exact_test.smallest_log_p(bad, bad, judged), 1):
            text = f"{counts}, too few to tell anything from chance ({tried})"
        return f"{text}; the closest: {_spread(hints[0])}, which chance could do (p {_p(hints[0].p_value)})."
    clauses = "; ".join(f"{_spread(trait)}{_usual_words(trait)}, {_when(trait)}" for trait in traits)
    sentence = f"{counts}. What separates them: {clauses}. "
    worst = max(trait.p_value for trait in traits)
    each, most = ("this", "") if len(traits) == 1 else ("each of these", " or less")
    sentence += f"Chance alone would do {each} with p {_p(worst)}{most}, corrected for {tried}."
    if unexplained:
        has = "bad run has" if unexplained == 1 else "bad runs have"
        sentence += f" {unexplained} {has} none of it."
    return sentence


def _spread(trait: Trait) -> str:
    """Return how a trait is spread over bad and good runs."""
    return f"{trait.bad} of {trait.bad_total} bad runs and {trait.good} of {trait.good_total} good ones {trait.text}"


def _usual_words(trait: Trait) -> str:
    return f" ({trait.usual_good} good ones had {short(trait.usual)})" if trait.usual_good else ""


def _when(trait: Trait) -> str:
    return "known from the start" if trait.step == START else f"seen at step {trait.step}"


def _p(value: float) -> str:
    return "< 0.000001" if value < 1e-6 else "< 0.001" if value < 1e-3 else f"= {value:.2g}"
