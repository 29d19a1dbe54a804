"""The search: from a question to memories. Words and vectors propose candidates; one calibrated score ranks them.

What a question names by number decides where it exists. A question about a run never comes before that run, however
much nearer one question is to another. What was not found is explained.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from woodrat.recall import calibration, times, words
from woodrat.recall.calibration import AHEAD_MAX, NEXT_MIN, Features
from woodrat.recall.identifiers import Identifier, codes_with
from woodrat.recall.passage_index import (
    DECISION,
    FOLLOW_UP,
    OFFERED,
    PLAIN,
    RUN,
    SCHEME_FROM,
    WORDLESS,
    IndexedMemory,
    PassageIndex,
)
from woodrat.recall.passages import FACT
from woodrat.recall.query import QueryTerm, RecallQuery, strong, weak
from woodrat.recall.times import TimeWords
from woodrat.records import dataclass, replace

REJECTED_MAX: Final = 5
"""How many rejected candidates an answer lists."""
CANDIDATES: Final = 48
"""How many memories words and vectors propose each."""
IDENTIFIED_MAX: Final = 2_000
"""How many memories that a question names by number are looked at: the latest of them."""
NUMPY_FROM: Final = 2_000
"""Below so many rows words are counted without numpy, which takes longer to import."""
MASS_FULL: Final = 1.4
"""How much has to be in common to be as much as can be: two rare words."""
DISTINCT_DIGITS: Final = 4
"""A number of so many digits names one thing by itself."""
HEAD_CHARACTERS_MAX: Final = 80
"""How long the head of a passage is, before its first colon."""
CROWDING: Final = 0.6
"""A run that decided nothing comes after one that decided, where that one scores at least so much of it."""


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """What is looked for, and among what."""

    query: RecallQuery
    """The question."""
    vector: Any
    """Its vector as a numpy array of whole components; none without an embedder."""
    square: float
    """The square of the vector's length."""
    held: Any
    """Its dot products with the rows whose vectors the engine holds, by row; none where it holds none for us."""
    scale: Callable[[float], float]
    """Brings a cosine of the embedder to the scale of the calibration."""
    k: int
    """How many memories are wanted."""
    threshold: float
    """Least score."""
    through: int
    """The position it is asked at, inclusive."""
    principal: str | None = None
    """Only what was recorded on behalf of this one."""
    conversation: str | None = None
    """Only what was recorded in this conversation."""
    since: int | None = None
    """Only what was said at or after this moment, in microseconds."""
    until: int | None = None
    """Only what was said before this moment."""
    window: tuple[int, int] | None = None
    """What the question itself says about when, as first and after; only what was said then counts."""
    window_terms: frozenset[str] = frozenset()
    """The months and days that it says so with; what speaks of them counts too, whenever it was said."""
    not_from: frozenset[str] = frozenset()
    """Agents whose words are left out."""
    readable: Callable[[str, str], bool] | None = None
    """Says whether a memory (kind, what it is of) may be read; none where all may."""
    without: frozenset[str] = frozenset()
    """Runs that are not looked at: those that ask."""


@dataclass(frozen=True, slots=True)
class RecallMatch:
    """One memory, as a search found it."""

    kind: str
    """`run`, `fact`, `note` or `document`."""
    of: str
    """The run, the entity or the piece of a source."""
    score: float
    """How sure it is that this answers the question, 0 to 1."""
    passage: str
    """Kind of the nearest passage."""
    position: int
    """The entry it comes from."""
    text: str
    """What the nearest passage says."""
    at: int
    """When it was said, in microseconds; 0 where that is not known."""
    reason: str | None = None
    """Why it was rejected; none for a hit."""


@dataclass(frozen=True, slots=True)
class RecallMatches:
    """What a search found."""

    hits: tuple[RecallMatch, ...]
    """Memories that passed, best first."""
    rejected: tuple[RecallMatch, ...]
    """The nearest of those that did not, when fewer passed than were wanted; follow-up questions last."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its score."""

    memory: IndexedMemory
    row: int
    """The nearest passage."""
    features: Features
    matched: frozenset[str]
    """The terms that it has in common with the question."""
    reason: str | None = None
    """Why it is no hit, whatever it scores."""
    sum: float = 0.0
    """What its score is made from, by itself."""
    score: float = 0.0
    """How sure it is that this answers the question, beside the others, 0 to 1."""


def search(index: PassageIndex, asked: RecallQuestion) -> RecallMatches:
    """Return the best memories for a question."""
    searching = MemorySearch(index, asked)
    return searching.matches()


class MemorySearch:
    """One question on its way through an index."""

    def __init__(self, index: PassageIndex, asked: RecallQuestion) -> None:
        self.index, self.asked = index, asked
        self.rows = index.rows_until(asked.through)
        self.numpy: Any = None if asked.vector is None and self.rows < NUMPY_FROM else _numpy()
        self._dated = frozenset(
            index.memory_of[row] for term in asked.window_terms for row in index.postings.get(term, ())
        )
        """Memories that speak of the months or days that the question names."""

    def matches(self) -> RecallMatches:
        """Return what was found."""
        asked = self.asked
        judged = self.scored()
        hits = [each for each in judged if each.reason is None and each.score >= asked.threshold]
        hits = self._behind_decisions(hits)
        near = [each for each in judged if each.reason is not None or each.score < asked.threshold]
        found = tuple(self._match(each) for each in hits[: asked.k])
        if len(found) >= asked.k:
            return RecallMatches(found, ())
        near.sort(key=lambda each: (self._is_follow_up(each.memory), -each.score, each.memory.of))
        below = f"its score is below the threshold {asked.threshold:g}"
        rejected = tuple(self._match(each, each.reason or below) for each in near[:REJECTED_MAX])
        return RecallMatches(found, rejected)

    def scored(self) -> list[Scored]:
        """Return the candidates with their scores, best first; of equal ones those that decided, then the earlier ones.

        What was asked later in the same words asks about what was there before.
        """
        strengths = [self._strengths(term) for term in self.asked.query.terms]
        cosines = self._cosines()
        candidates = self._candidates(strengths, cosines)
        identified = self._identified(strong(self.asked.query))
        perhaps = self._identified(weak(self.asked.query))
        candidates.update(identified or ())
        candidates.update(perhaps or ())
        found = [
            self._candidate(self.index.memories[number], strengths, cosines, identified, perhaps)
            for number in sorted(candidates)
            if self.index.memories[number].of not in self.asked.without
        ]
        present = self._summed([each for each in found if each is not None])
        present.sort(key=lambda each: (-each.score, self._tier(each.memory), each.memory.since, each.memory.of))
        return present

    def _summed(self, found: list[Scored]) -> list[Scored]:
        """Return candidates with their scores: each beside the best of those that can be a hit."""
        open = [each for each in found if each.reason is None]
        near = sorted((each.features.dense or 0.0 for each in open), reverse=True)
        summed = []
        for each in found:
            dense = each.features.dense
            features = each.features
            if dense is not None and each.reason is None and dense >= near[0]:
                following = max(NEXT_MIN, near[1] if len(near) > 1 else 0.0)
                features = features._replace(ahead=max(0.0, min(AHEAD_MAX, dense - following)))
            summed.append(replace(each, features=features, sum=calibration.total(features)))
        best = max((each.sum for each in summed if each.reason is None), default=None)
        return [
            replace(each, score=calibration.score(each.sum if best is None else calibration.behind(each.sum, best)))
            for each in summed
        ]

    # Which memories may be seen

    def sees(self, memory: IndexedMemory) -> bool:
        """Return whether a memory was there, is in scope, and may be read."""
        asked = self.asked
        if not memory.since <= asked.through < memory.until:
            return False
        if memory.kind == RUN and memory.started >= self.rows:
            return False
        if asked.readable is not None and not asked.readable(memory.kind, memory.of):
            return False
        if asked.principal is None and asked.conversation is None:
            return True
        run = memory if memory.kind == RUN else self.index.current.get(memory.run or "")
        if run is None:
            return False
        return (asked.principal is None or run.principal == asked.principal) and (
            asked.conversation is None or run.conversation == asked.conversation
        )

    def _rows(self, memory: IndexedMemory) -> list[int]:
        """Return the passages of a memory that count."""
        index, left_out = self.index, self.asked.not_from
        return [
            row
            for row in memory.rows
            if row < self.rows and index.kinds[row] not in WORDLESS and index.agents[row] not in left_out
        ]

    # Words

    def _strengths(self, term: QueryTerm) -> Any:
        """Return by memory how much it has of a term."""
        index = self.index
        if self.numpy is None:
            found: dict[int, float] = {}
            for form, counts in reversed(term.forms):
                rows = index.postings.get(form)
                for row in () if rows is None else rows[: bisect_left(rows, self.rows)]:
                    found[index.memory_of[row]] = counts
            return found
        numpy = self.numpy
        strengths = numpy.zeros(len(index.memories) + 1, numpy.float32)
        memory_of = numpy.frombuffer(index.memory_of, numpy.int64)
        for form, counts in reversed(term.forms):
            rows = index.postings.get(form)
            if rows is not None:
                part = numpy.frombuffer(rows, numpy.int64)
                strengths[memory_of[part[: numpy.searchsorted(part, self.rows)]]] = counts
        return strengths

    # Vectors

    def _cosines(self) -> Any:
        """Return the cosine of the question with every row, or none."""
        asked, index, numpy = self.asked, self.index, self.numpy
        if asked.vector is None or not asked.square:
            return None
        products = index.products(asked.vector, self.rows, asked.held)
        if products is None:
            return None
        both = numpy.frombuffer(index.squares, numpy.float64)[: len(products)] * asked.square
        return numpy.where(both > 0, products, 0.0) / numpy.sqrt(numpy.where(both > 0, both, 1.0))

    # Candidates

    def _candidates(self, strengths: Sequence[Any], cosines: Any) -> set[int]:
        """Return the memories that words or vectors propose.

        Where the question is about a time, these are the best of that time, and the best of all times: what is no hit
        for its time alone is listed as such.
        """
        index, asked = self.index, self.asked
        chosen = self._proposed(strengths, cosines, None)
        if asked.since is not None or asked.until is not None or asked.window is not None:
            chosen |= self._proposed(strengths, cosines, [self._untimely(memory) is None for memory in index.memories])
        return chosen

    def _proposed(self, strengths: Sequence[Any], cosines: Any, timely: Sequence[bool] | None) -> set[int]:
        """Return the memories that words or vectors propose, of all times or of those that count."""
        index, numpy = self.index, self.numpy
        terms = self.asked.query.terms
        chosen: set[int] = set()
        if numpy is None:
            totals: dict[int, float] = {}
            for term, found in zip(terms, strengths, strict=True):
                for number, counts in found.items():
                    totals[number] = totals.get(number, 0.0) + term.weight * counts
            totals.pop(-1, None)
            visible = (
                (total, number)
                for number, total in totals.items()
                if (timely is None or timely[number]) and self.sees(index.memories[number])
            )
            chosen.update(number for _, number in sorted(visible, key=lambda each: (-each[0], each[1]))[:CANDIDATES])
            return chosen
        whole = numpy.zeros(len(index.memories) + 1, numpy.float32)
        for term, found in zip(terms, strengths, strict=True):
            whole += numpy.float32(term.weight) * found
        whole = whole[:-1]
        memory_of = index.memory_of
        if timely is not None:
            counts = numpy.array([*timely, False], numpy.float32)  # a row of no memory has the number -1
            whole = whole * counts[:-1]
            if cosines is not None:
                cosines = cosines * counts[numpy.frombuffer(memory_of, numpy.int64)[: len(cosines)]]
        chosen.update(self._best(whole, lambda place: place))
        if cosines is not None and len(cosines):
            chosen.update(self._best(cosines, lambda row: memory_of[row]))
        return chosen

    def _best(self, totals: Any, memory_at: Callable[[int], int]) -> list[int]:
        """Return the visible memories with the highest totals; each is looked at until there are enough."""
        numpy, found = self.numpy, dict[int, None]()
        size, done = CANDIDATES * 2, 0
        while done < len(totals) and len(found) < CANDIDATES:
            size = min(size, len(totals))
            places = numpy.argpartition(-totals, size - 1)[:size] if size < len(totals) else numpy.arange(len(totals))
            order = places[numpy.lexsort((places, -totals[places]))]
            for place in order[done:].tolist():
                if totals[place] <= 0:
                    return list(found)
                number = memory_at(place)
                if number >= 0 and number not in found and self.sees(self.index.memories[number]):
                    found[number] = None
                    if len(found) >= CANDIDATES:
                        break
            done, size = size, size * 8
        return list(found)

    # Identifiers

    def _identified(self, names: Sequence[Identifier]) -> frozenset[int] | None:
        """Return the memories that a question names by number; none where it names nothing.

        Where no memory speaks of all that it names but some speak of each, the question compares, and any counts.
        """
        if not names:
            return None
        speaking: list[set[int]] = []
        for name in names:
            found = {self.index.memory_of[row] for row in self._rows_with(name) if row < self.rows}
            found.discard(-1)
            timely = {number for number in found if self._untimely(self.index.memories[number]) is None}
            latest = {*sorted(found)[-IDENTIFIED_MAX:], *sorted(timely)[-IDENTIFIED_MAX:]}
            visible = {number for number in latest if self.sees(self.index.memories[number])}
            speaking.append({number for number in visible if not _contradicts(self.index.memories[number], name)})
        everything = set.intersection(*speaking)
        if not everything and all(speaking):
            everything = set.union(*speaking)
        return frozenset(everything)

    def _rows_with(self, name: Identifier) -> Iterable[int]:
        """Yield the rows that speak of an identifier: by naming it, or by having it after the same word."""
        yield from self.index.named.get(name.token, ())
        if name.before:
            yield from self.index.paired.get(str(name), ())

    # The score

    def _candidate(
        self,
        memory: IndexedMemory,
        strengths: Sequence[Any],
        cosines: Any,
        identified: frozenset[int] | None,
        perhaps: frozenset[int] | None,
    ) -> Scored | None:
        rows = self._rows(memory)
        if not rows or not self.sees(memory):
            return None
        asked, terms, number = self.asked, self.asked.query.terms, memory.number
        partial = len(rows) < sum(self.index.kinds[row] not in WORDLESS for row in memory.rows)
        own = {row: self._terms_of(row) for row in rows}
        has: list[float] = []
        for term, found in zip(terms, strengths, strict=True):
            counts = float(found.get(number, 0.0) if self.numpy is None else found[number])
            if counts and (partial or memory.until <= self.asked.through):
                counts = max((c for form, c in term.forms if any(form in said for said in own.values())), default=0.0)
            has.append(counts)
        whole = asked.query.weight or 1.0
        mass = sum(term.weight * counts for term, counts in zip(terms, has, strict=True))
        near_row, near_mass = self._nearest(rows, own)
        dense = self._dense(rows, cosines)
        if dense is not None:
            near_row = dense[1] if dense[0] > 0.35 or not near_mass else near_row
        missing = [term for term, counts in zip(terms, has, strict=True) if not counts]
        said = frozenset[str]().union(*own.values())
        timely = asked.window is not None and asked.window[0] <= memory.at < asked.window[1]
        features = Features(
            None if dense is None else asked.scale(dense[0]),
            mass / whole,
            near_mass / whole,
            min(1.0, mass / MASS_FULL),
            max((term.weight for term in missing if term.is_name), default=0.0),
            self._focus(own[near_row]),
            self._headed(near_row),
            1.0 if timely else 0.0,
            0.0 if asked.query.language == words.ENGLISH else 1.0,
            self._named(memory, identified, perhaps),
            max((t.weight for t in terms if said & t.opposed and not said & t.meant), default=0.0),
        )
        reason = None
        if self._is_follow_up(memory):
            reason = "it answers from memory and decides nothing itself"
        elif identified is not None and number not in identified:
            reason = self._not_named(memory)
        else:
            reason = self._untimely(memory)
        matched = frozenset(term.word for term, counts in zip(terms, has, strict=True) if counts)
        return Scored(memory, near_row, features, matched, reason)

    def _named(self, memory: IndexedMemory, identified: frozenset[int] | None, perhaps: frozenset[int] | None) -> float:
        """Return whether a question names a memory by number, or another one of its kind."""
        if identified is not None and memory.number in identified:
            return 1.0
        if perhaps is not None and memory.number in perhaps:
            return 0.5
        return -1.0 if any(self._has_another(memory, name) for name in weak(self.asked.query)) else 0.0

    def _has_another(self, memory: IndexedMemory, name: Identifier) -> bool:
        """Return whether a memory has another number where the question has this one: loan 4107 for loan 4999.

        Only of words that name things by number: one that a reference begins with, or that many numbers follow.
        """
        if not name.before or name.before.endswith("ed") or memory.kind not in (RUN, FACT):
            return False
        there = [pair for pair in memory.asked_pairs if pair.rpartition(" ")[0] == name.before]
        other = [pair.rpartition(" ")[2] for pair in there if pair.rpartition(" ")[2] in memory.asked_names]
        if not other or str(name) in there:
            return False
        if len(self.index.numbered.get(name.before, ())) >= SCHEME_FROM:
            return True
        texts = [self.index.texts[row].lower() for row in memory.rows]
        return any(f"{name.before}/{token}" in text for token in other for text in texts)

    def _headed(self, row: int) -> float:
        """Return how much of the question's names a passage is headed by: the part before its first colon."""
        names = [term for term in self.asked.query.terms if term.is_name]
        head, colon, _ = self.index.texts[row][:HEAD_CHARACTERS_MAX].partition(": ")
        if not names or not colon:
            return 0.0
        heading = frozenset(words.terms(head))
        has = sum(term.weight for term in names if any(form in heading for form, _ in term.forms))
        return has / sum(term.weight for term in names)

    def _terms_of(self, row: int) -> frozenset[str]:
        return frozenset(words.passage_terms(self.index.texts[row]))

    def _nearest(self, rows: Sequence[int], own: Mapping[int, frozenset[str]]) -> tuple[int, float]:
        """Return the passage with most of the question, and how much that is."""
        best, most = rows[0], 0.0
        for row in rows:
            said = own[row]
            mass = sum(t.weight * next((c for form, c in t.forms if form in said), 0.0) for t in self.asked.query.terms)
            if mass > most:
                best, most = row, mass
        return best, most

    def _focus(self, said: frozenset[str]) -> float:
        """Return how much of a passage the question speaks of."""
        little = words.LITTLE[words.ENGLISH]
        content = {term for term in said if term not in little}
        forms = {form for term in self.asked.query.terms for form, _ in term.forms}
        return len(content & forms) / len(content) if content else 0.0

    def _dense(self, rows: Sequence[int], cosines: Any) -> tuple[float, int] | None:
        if cosines is None:
            return None
        found = [(float(cosines[row]), -row) for row in rows if row < len(cosines) and self.index.squares[row]]
        if not found:
            return None
        best, row = max(found)
        return best, -row

    def _not_named(self, memory: IndexedMemory) -> str:
        names = strong(self.asked.query)
        own = frozenset(memory.rows)
        lacking = [
            str(name)
            for name in names
            if own.isdisjoint(row for row in self._rows_with(name) if row < self.rows) or _contradicts(memory, name)
        ]
        return f"it does not speak of {' and '.join(lacking or map(str, names))}"

    # Time

    def _untimely(self, memory: IndexedMemory) -> str | None:
        """Return why a memory is no hit by when it was said; none where that is no reason."""
        asked, at = self.asked, memory.at
        if asked.since is not None and at < asked.since:
            return "it is older than what was asked for"
        if asked.until is not None and at >= asked.until:
            return "it is later than what was asked for"
        if asked.window is None or asked.window[0] <= at < asked.window[1] or memory.number in self._dated:
            return None  # one that speaks of January itself may be what is asked about
        return "it was not said in the time asked about"

    # Order

    def _is_follow_up(self, memory: IndexedMemory) -> bool:
        return memory.kind == RUN and memory.offered(self.rows) == FOLLOW_UP

    def _tier(self, memory: IndexedMemory) -> int:
        return OFFERED.index(kind) if memory.kind == RUN and (kind := memory.offered(self.rows)) in OFFERED else 0

    def _behind_decisions(self, hits: list[Scored]) -> list[Scored]:
        """Return hits in order: a run that only asks about a decision comes after the run that made it."""
        ordered: list[Scored] = []
        waiting: list[tuple[Scored, set[int]]] = []
        leading = {each.memory.number: each for each in hits if self._leads(each.memory)}
        for each in hits:
            before = {number for number in leading if self._asks_about(each, leading[number])}
            waiting.append((each, before))
        done: set[int] = set()
        while waiting:
            place = next((place for place, (_, before) in enumerate(waiting) if before <= done), 0)
            each, _ = waiting.pop(place)
            done.add(each.memory.number)
            ordered.append(each)
        return ordered

    def _leads(self, memory: IndexedMemory) -> bool:
        return memory.kind == RUN and memory.offered(self.rows) == DECISION

    def _asks_about(self, one: Scored, other: Scored) -> bool:
        """Return whether a run is a question about another that decided: it recalled it, or both are about the same."""
        memory, decision = one.memory, other.memory
        if memory.kind != RUN or memory is decision:
            return False
        recalled = {run for row, run in memory.recalls if row < self.rows}
        if decision.of in recalled:
            return True
        if memory.offered(self.rows) == DECISION:
            return False
        if memory.offered(self.rows) != PLAIN:
            return True  # it decided again, from memory, and does not say from which
        return (
            decision.started < memory.started
            and other.score >= CROWDING * one.score
            and self._weight(one.matched & other.matched) >= 0.5 * self._weight(one.matched)
        )

    def _weight(self, matched: frozenset[str]) -> float:
        return sum(term.weight for term in self.asked.query.terms if term.word in matched)

    def _match(self, scored: Scored, reason: str | None = None) -> RecallMatch:
        index, memory = self.index, scored.memory
        return RecallMatch(
            memory.kind,
            memory.of,
            scored.score,
            index.kinds[scored.row],
            index.positions[scored.row],
            index.texts[scored.row],
            memory.at,
            reason,
        )


def _contradicts(memory: IndexedMemory, name: Identifier) -> bool:
    """Return whether what a run was asked has another number where the question has this one: application 43.

    Or the number in another code: PROJ-12 where the question has JIRA-12.
    """
    there = [pair for pair in memory.asked_pairs if pair.rpartition(" ")[0] == name.before]
    if there and str(name) not in there:
        return True
    # A plain number is a name only after its word: the record loan/42 is not what "card 42" means.
    plain = name.token.isdigit() and len(name.token) < DISTINCT_DIGITS
    if memory.kind != RUN and plain and name.before and not there and name.code not in memory.asked_names:
        return True
    if not name.code or (there and name.code.startswith(name.before)):
        return False
    codes = codes_with(name.token, memory.asked_names)
    return bool(codes) and name.code not in codes


class Narrowed(NamedTuple):
    """A question whose words about time narrow the search."""

    text: str
    """The question without those words, which are not what it asks about."""
    window: tuple[int, int] | None
    """The first instant that counts, and the first that does not; none where it is not narrowed."""
    terms: frozenset[str]
    """The months and days that were named."""


def narrowed(text: str, said: TimeWords | None, index: PassageIndex) -> Narrowed:
    """Return a question as its words about time narrow it.

    Words that are counted from the present do. A month or a date may be what is asked about instead: it narrows where
    anything was said then.
    """
    if said is None:
        return Narrowed(text, None, frozenset())
    first, after = times.micros(said.since), times.micros(said.until)
    if not said.relative and not any(first <= memory.at < after for memory in index.memories):
        return Narrowed(text, None, frozenset())
    names = frozenset[str]() if said.relative else times.names_in(said.words)
    return Narrowed(f"{text[: said.start]} {text[said.end :]}", (first, after), names)


def _numpy() -> Any:
    """Return numpy, where it is installed."""
    from importlib import import_module

    try:
        return import_module("numpy")
    except ImportError:
        return None
