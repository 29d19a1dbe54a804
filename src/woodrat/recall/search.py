"""The search: from a question to runs. Identifiers first, then similarity, then the threshold.

Runs that decided come before runs that did not, and no question about a decision comes before that decision, however
much nearer one question is to another. What was not found is explained.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from woodrat.recall import score as recall_score
from woodrat.recall.identifiers import Identifier, codes_with
from woodrat.recall.passage_index import DECISION, FOLLOW_UP, KINDS, OFFERED, REDECIDED, WORDLESS, PassageIndex
from woodrat.recall.score import Scores
from woodrat.records import dataclass

REJECTED_MAX: Final = 5
"""How many rejected candidates an answer lists."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for, and among what."""

    vector: bytes
    """Vector of the question."""
    identifiers: tuple[Identifier, ...]
    """What it names by number."""
    k: int
    """How many runs are wanted."""
    threshold: float
    """Least score."""
    through: int
    """The position it is asked at, inclusive."""
    principal: str | None = None
    """Only runs on behalf of this one."""
    conversation: str | None = None
    """Only runs of this conversation."""
    since: int | None = None
    """Only runs that began at or after this moment, in microseconds."""
    without: frozenset[str] = frozenset()
    """Runs that are not looked at: those that ask."""


@dataclass(frozen=True, slots=True)
class Match:
    """One run, as a search found it."""

    run: str
    """The run."""
    score: float
    """Cosine of the question and the run's nearest passage."""
    passage: str
    """Kind of that passage: `asked`, `decided` or `answered`."""
    position: int
    """The entry it comes from."""
    reason: str | None = None
    """Why it was rejected; none for a hit."""


@dataclass(frozen=True, slots=True)
class Matches:
    """What a search found."""

    hits: tuple[Match, ...]
    """Runs that passed, best first."""
    rejected: tuple[Match, ...]
    """The nearest of those that did not, when fewer passed than were wanted; follow-up questions last."""


def search(index: PassageIndex, asked: Question) -> Matches:
    """Return the best runs for a question; of equal scores the smaller id comes first."""
    until = bisect_left(index.positions, asked.through + 1)
    among = _scope(index, asked)
    gate = _gate(index, asked, among, until)
    visible = among if gate is None else gate
    scores = Scores(index, asked.vector, until, visible)
    searching = _Searching(index, asked, until, None if visible is None else frozenset(visible))
    hits: list[Match] = []
    for kind in OFFERED:
        if len(hits) < asked.k:
            hits += searching.best(scores, kind, asked.k - len(hits))
    if len(hits) >= asked.k:
        return Matches(tuple(hits), ())
    if not hits and gate is not None:
        # Nothing passed: show what came nearest, whatever it names.
        scores = Scores(index, asked.vector, until, among)
    nearest = searching.nearest(scores, frozenset(match.run for match in hits))
    passed = None if gate is None else frozenset(gate)
    return Matches(tuple(hits), tuple(_explained(index, match, asked, until, passed) for match in nearest))


def _scope(index: PassageIndex, asked: Question) -> list[int] | None:
    """Return the runs a question may see; nothing said means all of the tenant's."""
    among: list[int] | None = None
    if asked.principal is not None:
        among = index.of_principal.get(asked.principal, [])
    if asked.conversation is not None:
        found = index.of_conversation.get(asked.conversation, [])
        among = found if among is None else sorted(set(among).intersection(found))
    return among


# The gate


def _gate(index: PassageIndex, asked: Question, among: Sequence[int] | None, until: int) -> list[int] | None:
    """Return the runs that may be scored, sorted: those that speak of everything the question names by number.

    Where no run speaks of all of it but some run speaks of each, the question compares, and any of them may be
    scored. Nothing named means that every run may be.
    """
    if not asked.identifiers:
        return None
    visible = None if among is None else frozenset(among)
    speaking: list[set[int]] = []
    for name in asked.identifiers:
        found = {index.run_of[row] for row in _rows_with(index, name) if row < until}
        if visible is not None:
            found &= visible
        offered = {number for number in found if index.kind(number, until) in OFFERED}
        speaking.append({number for number in offered if not _contradicts(index, number, name)})
    everything = set.intersection(*speaking)
    if not everything and all(speaking):
        everything = set.union(*speaking)
    return sorted(everything)


def _rows_with(index: PassageIndex, name: Identifier) -> Iterator[int]:
    """Yield the rows that speak of an identifier: by naming it, or by having it after the same word."""
    yield from index.named.get(name.token, ())
    if name.before:
        yield from index.paired.get(str(name), ())


def _contradicts(index: PassageIndex, number: int, name: Identifier) -> bool:
    """Return whether what a run was asked has another number where the question has this one: application 43.

    Or the number in another code: PROJ-12 where the question has JIRA-12.
    """
    there = [pair for pair in index.asked_pairs[number] if pair.rpartition(" ")[0] == name.before]
    if there and str(name) not in there:
        return True
    if not name.code or (there and name.code.startswith(name.before)):
        return False
    codes = codes_with(name.token, index.asked_names[number])
    return bool(codes) and name.code not in codes


# The best


class _Searching:
    """One question on its way through an index."""

    def __init__(self, index: PassageIndex, asked: Question, until: int, visible: frozenset[int] | None) -> None:
        self._index = index
        self._asked = asked
        self._until = until
        self._visible = visible
        self._later: dict[int, tuple[float, int]] = {}
        """Runs that decided, but in answer to a question about a run that passes as well."""

    def best(self, scores: Scores, kind: int, wanted: int) -> list[Match]:
        """Return the best runs of a kind that reach the threshold, each with its nearest passage."""
        index, asked = self._index, self._asked
        found = dict(self._later) if kind == REDECIDED else {}
        for group in scores.descending((kind,), asked.threshold, asked.since):
            for score, row in group:
                number = index.run_of[row]
                if number in found or number in self._later or not self._counts(number, row):
                    continue
                if kind == DECISION and any(map(self._passes, self._recalled_by(number))):
                    self._later[number] = score, row
                else:
                    found[number] = score, row
            if len(found) >= wanted and kind != REDECIDED:
                break
        return self._ranked(found, wanted)

    def nearest(self, scores: Scores, without: frozenset[str]) -> list[Match]:
        """Return the runs that came nearest, of any age and score; follow-up questions after all others."""
        index = self._index
        listed: list[Match] = []
        for kinds in (OFFERED, (FOLLOW_UP,)):
            wanted = REJECTED_MAX - len(listed)
            found: dict[int, tuple[float, int]] = {}
            for group in scores.descending(kinds) if wanted else ():
                for score, row in group:
                    number = index.run_of[row]
                    if number not in found and self._counts(number, row) and index.ids[number] not in without:
                        found[number] = score, row
                if len(found) >= wanted:
                    break
            listed += self._ranked(found, wanted)
        return listed

    def _counts(self, number: int, row: int) -> bool:
        return self._index.kinds[row] != WORDLESS and self._index.ids[number] not in self._asked.without

    def _ranked(self, found: dict[int, tuple[float, int]], wanted: int) -> list[Match]:
        index = self._index
        ranked = sorted(found.items(), key=lambda item: (-item[1][0], index.ids[item[0]]))
        return [
            Match(index.ids[number], score, KINDS[index.kinds[row]], index.positions[row])
            for number, (score, row) in ranked[:wanted]
        ]

    def _recalled_by(self, number: int) -> Iterator[int]:
        """Yield the runs that a run recalled, as far as they are known here."""
        for row, run in self._index.recalls.get(number, ()):
            if row < self._until and run in self._index.number:
                yield self._index.number[run]

    def _passes(self, number: int) -> bool:
        """Return whether a run that decided would itself be a hit."""
        index, asked = self._index, self._asked
        if self._visible is not None and number not in self._visible:
            return False
        too_old = asked.since is not None and index.began[number] < asked.since
        if too_old or index.kind(number, self._until) != DECISION:
            return False
        rows = [row for row in index.rows[number] if row < self._until and index.kinds[row] != WORDLESS]
        return max(recall_score.score(index, asked.vector, rows), default=-2.0) >= asked.threshold


def _explained(index: PassageIndex, match: Match, asked: Question, until: int, gate: frozenset[int] | None) -> Match:
    """Return a match with the reason why it is no hit."""
    number = index.number[match.run]
    if index.kind(number, until) == FOLLOW_UP:
        reason = "it answers from memory and decides nothing itself"
    elif gate is not None and number not in gate:
        own = frozenset(index.rows[number])
        missing = [
            str(name)
            for name in asked.identifiers
            if own.isdisjoint(row for row in _rows_with(index, name) if row < until)
            or _contradicts(index, number, name)
        ]
        reason = f"it does not speak of {' and '.join(missing)}"
    elif asked.since is not None and index.began[number] < asked.since:
        reason = "it is older than the ttl"
    else:
        reason = f"its score is below the threshold {asked.threshold:g}"
    return Match(match.run, match.score, match.passage, match.position, reason)
