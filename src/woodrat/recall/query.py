"""The query: a question as recall looks for it. Its terms with their weights, what else could be meant by them, and
the identifiers it names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from woodrat.recall import words
from woodrat.recall.identifiers import Identifier, NumberNames, naming
from woodrat.records import dataclass
from woodrat.state.tokens import spans

if TYPE_CHECKING:
    from woodrat.recall.passage_index import PassageIndex

TERMS_MAX: Final = 48
"""How many terms of a question are looked for: the first of them. What follows is read by the embedder alone."""
BACKGROUND: Final = 200
"""How many texts of common English a log is weighed together with, so that a log of three entries has rare words."""
EXACT, OTHER_WORD = 1.0, 0.7
"""How much a passage has of a term: the term itself, another word for it."""
OPPOSITE, DENIED = 1.0, 0.4
"""How much a passage has of a term after a negation: its opposite, the term itself."""
MISSPELLED: Final = (1.0, 0.9, 0.75)
"""The same of a term that is misspelled, by how many letters are wrong."""
SPELLINGS_MAX: Final = 4
"""How many words one misspelled word may stand for."""
NAME_MIN: Final = 3
"""Shorter words that begin with a capital are no names."""


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """One term of a question."""

    word: str
    """As it was written, folded."""
    forms: tuple[tuple[str, float], ...]
    """The terms of passages that count as it, each with how much it counts; the most first."""
    weight: float
    """How much it tells, 0 to 1: rare words tell more."""
    is_name: bool
    """Whether it is written as a name is."""
    meant: frozenset[str] = frozenset()
    """Of a term with an opposite, the terms of passages that say what is meant."""
    opposed: frozenset[str] = frozenset()
    """Those that say the opposite."""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """A question as it is looked for."""

    text: str
    """The question."""
    terms: tuple[QueryTerm, ...]
    """What it is about."""
    language: str
    """The language it is asked in."""
    named: NumberNames
    """What it names by number."""

    @property
    def weight(self) -> float:
        """How much all terms tell together."""
        return sum(term.weight for term in self.terms)


def query_of(question: str, index: PassageIndex, until: int) -> RecallQuery:
    """Return a question as it is looked for among the first rows of an index."""
    folded = words.fold(question)
    found = list(spans(folded))
    language = words.language_of(token for token, _, _ in found[: 4 * TERMS_MAX])
    little = words.LITTLE[language] | words.LITTLE[words.ENGLISH]
    table = words.concepts()
    terms: dict[str, QueryTerm] = {}
    negated, skip, first = 0, False, True
    for place, (token, start, _) in enumerate(found):
        if skip:
            skip = False
            continue
        if token in words.NEGATIONS:
            negated = 4
        negated -= 1
        begins, first = first, _ends_sentence(folded, start, token)
        following = found[place + 1][0] if place + 1 < len(found) else ""
        joined = words.stem(token) + words.stem(following) if language == words.ENGLISH else ""
        if following and joined in table.english and following in (*little, "back", "down", "off"):
            concept, skip = table.english[joined], True
        elif token in little or _is_little_misspelled(token, index):
            continue
        else:
            concept = words.concepts_of(token, language)
        if token in terms or len(terms) >= TERMS_MAX:
            continue
        capital = folded[start : start + 1].isupper() and not begins and language != words.GERMAN
        is_name = capital and len(token) >= NAME_MIN and not any(letter.isdigit() for letter in token)
        if token in words.shared_names() and not index.has_word(token):
            is_name = False
        against = negated > 0
        terms[token] = _term(token, concept, against, language, index, until, is_name)
    return RecallQuery(question, tuple(terms.values()), language, naming(question))


def _is_little_misspelled(token: str, index: PassageIndex) -> bool:
    """Return whether a word that nobody knows is a misspelled little word, such as `wehre`."""
    if len(token) < words.TYPO_CHARACTERS_MIN or words.is_known(token) or index.has_word(token):
        return False
    return any(
        len(little) >= words.TYPO_CHARACTERS_MIN and words.distance(token, little, 1) <= 1
        for little in words.LITTLE[words.ENGLISH]
    )


def _ends_sentence(text: str, start: int, token: str) -> bool:
    """Return whether a sentence ends with a word, so that the next begins with a capital in any case."""
    return text[start + len(token) : start + len(token) + 1] in (".", "!", "?", ":", '"')


def _term(
    token: str,
    concept: tuple[int, ...],
    negated: bool,
    language: str,
    index: PassageIndex,
    until: int,
    is_name: bool,
) -> QueryTerm:
    own = words.stem(token)
    table = words.concepts()
    same = {own, *(word for number in concept for word in table.stems[number])}
    contrary = {other for number in concept for other in words.opposites().get(number, ())}
    other = {word for number in contrary for word in table.stems[number]} - same
    forms: dict[str, float] = dict.fromkeys(same, OTHER_WORD)
    forms[own] = EXACT
    meant, opposed = same | _negated(other), other | _negated(same)
    if contrary and negated:
        meant, opposed = opposed, meant
        forms = dict.fromkeys(same, DENIED) | dict.fromkeys(meant, OPPOSITE)
    elif contrary:
        forms |= dict.fromkeys(_negated(other), OTHER_WORD)
    if own not in index.postings:
        for word, counts in _spellings(token, index):
            forms[words.stem(word)] = max(forms.get(words.stem(word), 0.0), counts)
    count = len(index.postings.get(own, ()))
    if not count:
        # Of a misspelled or foreign word, how rare what it stands for is tells how much it tells.
        standing = [len(index.postings[form]) for form in forms if form in index.postings]
        count = min(standing, default=0)
    common = words.commonness(token)
    if language != words.ENGLISH and not is_name and own not in index.postings:
        common = max(common, 0.001)
    return QueryTerm(
        token,
        tuple(sorted(forms.items(), key=lambda form: (-form[1], form[0]))),
        weight(count, common, len(index)),
        is_name,
        frozenset(meant if contrary else ()),
        frozenset(opposed if contrary else ()),
    )


def _negated(stems: set[str]) -> set[str]:
    return {words.NEGATED + stem for stem in stems}


def weight(count: int, common: float, size: int) -> float:
    """Return the weight of a term in `count` of `size` passages, and in a share `common` of English texts."""
    whole = size + BACKGROUND
    rare = math.log(whole / (count + BACKGROUND * common + 0.5)) / math.log(whole / 0.5)
    return float(max(0.05, rare) ** 1.5)


def _spellings(token: str, index: PassageIndex) -> list[tuple[str, float]]:
    """Return the words of the passages that a word may be a misspelling of, nearest first."""
    limit = words.distance_allowed(token)
    if not limit or any(letter.isdigit() for letter in token):
        return []
    own = words.pieces(token)
    found: list[tuple[int, str]] = []
    # The first letter is seldom wrong; where it is, it was swapped with the second.
    for first in dict.fromkeys((token[0], token[1])):
        for word in index.spelled.get(first, ()):
            if abs(len(word) - len(token)) > limit or len(own & words.pieces(word)) < len(own) - 3 * limit:
                continue
            wrong = words.distance(token, word, limit)
            if wrong <= limit and (wrong < 2 or len(word) >= 7):
                found.append((wrong, word))
    found.sort()
    return [(word, MISSPELLED[wrong]) for wrong, word in found[:SPELLINGS_MAX]]


def strong(query: RecallQuery) -> tuple[Identifier, ...]:
    """Return the identifiers of a question that can be nothing else: with #, or codes such as ORD-88220."""
    return query.named.hashed or tuple(each for each in query.named.coded if _is_distinct(each))


def _is_distinct(found: Identifier) -> bool:
    """Return whether a code names one thing: an address, or letters and digits joined, or four digits and more."""
    digits = sum(letter.isdigit() for letter in found.code or found.token)
    return "@" in found.token or bool(found.code and digits >= 2) or digits >= 3 or bool(digits and not found.code)


def weak(query: RecallQuery) -> tuple[Identifier, ...]:
    """Return what else of a question may name something by number."""
    if query.named.hashed:
        return query.named.coded + query.named.bare
    return tuple(each for each in query.named.coded if not _is_distinct(each)) + query.named.bare
