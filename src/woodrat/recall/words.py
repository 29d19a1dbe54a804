"""Words: how recall reads a text. Terms without accents and endings, what they mean in other words, and misspellings.

Endings are those of Snowball's English stemmer. Everything else is pinned: folds and the table of concepts are data of
this package. So the same text has the same terms on every machine. `docs/formats/recall.md` is the specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Final, NamedTuple

from woodrat.state.tokens import spans

ENGLISH, SPANISH, GERMAN, FRENCH, PORTUGUESE = "en", "es", "de", "fr", "pt"
FOREIGN: Final = (SPANISH, GERMAN, FRENCH, PORTUGUESE)
"""Languages of which questions are looked up in the table of concepts, in the order of its columns."""

_PLAIN: Final = {
    "a": "àáâãäåāăąÀÁÂÃÄÅĀĂĄ",
    "c": "çćĉċčÇĆĈĊČ",
    "d": "ďđĎĐð",
    "e": "èéêëēĕėęěÈÉÊËĒĔĖĘĚ",
    "g": "ĝğġģĜĞĠĢ",
    "i": "ìíîïĩīĭįıÌÍÎÏĨĪĬĮİ",
    "l": "ĺļľłĹĻĽŁ",
    "n": "ñńņňÑŃŅŇ",
    "o": "òóôõöøōŏőÒÓÔÕÖØŌŎŐ",
    "r": "ŕŗřŔŖŘ",
    "s": "śŝşšŚŜŞŠș",
    "t": "ţťŧŢŤŦț",
    "u": "ùúûüũūŭůűųÙÚÛÜŨŪŬŮŰŲ",
    "y": "ýÿÝŸ",
    "z": "źżžŹŻŽ",
    "ss": "ßẞ",
    "ae": "æÆ",
    "oe": "œŒ",
    "'": "’‘`´",
}
_FOLD: Final = str.maketrans({mark: plain for plain, marks in _PLAIN.items() for mark in marks})

LITTLE: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split())
    for language, words in {
        ENGLISH: """
            a about after all also an and any anyone anything are as at be been before being but by can could did do
            does doing done for from had has have having he her hers him his how i if in into is it its just may me
            might mine more most much my no nor not now of off on once one only or other our ours out over own s same
            she should so some something such t than that the their theirs them then there these they thing things
            this those through to too under until up us very was we were what when where which while who whom whose
            why will with would you your yours re ve ll d m don didn doesn isn wasn weren won couldn shouldn wouldn
            hasn haven hadn aren please ever still yet again let get got go goes going went come came
        """,
        SPANISH: """
            a al algo alguien ante antes aun aunque cada como con cual cuales cuando cuanto de del desde donde dos el
            ella ellos en entre era es esa ese eso esta estaba este esto fue ha habia hace hacia han hasta hay la las le
            les lo los mas me mi muy nada ni no nos nuestra nuestro o os para pero por porque que quien quienes se sea
            ser si sin sobre son su sus tambien te tiene tu tus un una unas uno unos y ya
        """,
        GERMAN: """
            aber alle als am an auch auf aus bei beim bin bis da damit das dass dem den denn der des die diese dieser
            dieses doch du durch ein eine einem einen einer eines er es fur gab gegen gibt hat hatte haben hatten ich
            ihm ihn ihr ihre im in ist ja kann kein keine mit nach nicht noch nur ob oder sein seine sich sie sind so
            uber um und uns unser unsere unter vom von vor war waren warum was wegen welche welchem welchen welcher
            welches wem wen wenn wer werden wie wieso wieviel wir wird wo wurde wurden zu zum zur hatten
        """,
        FRENCH: """
            a au aussi aux avec avait avons ce cela ces cet cette combien comme comment d dans de des dont du elle elles
            en est et etait ete eu fait il ils j je l la le les leur leurs lui ma mais me mes moi mon n ne nos notre
            nous on ont ou par pas pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se ses si son
            sont sur t ta te tes toi ton tu un une vos votre vous y
        """,
        PORTUGUESE: """
            a ao aos aquela aquele as ate com como da das de dela dele deles do dos e ela elas ele eles em entre era
            essa esse esta este eu foi foram ha isso isto ja la lhe mais mas me meu minha muito na nao nas nem no nos
            nossa nosso num numa o os ou para pela pelo por porque quais qual quando quanto que quem se sem ser seu seus
            sob sobre sua suas tambem te tem tinha um uma umas uns voce
        """,
    }.items()
}
"""Words that say how something is asked rather than what about, by language, without accents."""

NEGATIONS: Final = frozenset(
    [
        "not",
        "no",
        "never",
        "without",
        "n",
        "nt",
        "don",
        "didn",
        "doesn",
        "isn",
        "wasn",
        "weren",
        "won",
        "couldn",
        "wouldn",
        "nicht",
        "kein",
        "keine",
        "nunca",
        "nao",
        "pas",
    ]
)
"""Words after which a word means its opposite."""


def fold(text: str) -> str:
    """Return a text without the accents of Latin letters."""
    return text.translate(_FOLD)


@lru_cache(65_536)
def stem(word: str) -> str:
    """Return a folded word without its ending; one with a digit in it, or of another script, stays as it is."""
    if len(word) <= 3 or not word.isascii() or not word.isalpha():
        return word
    # Imported by its own name: the package would hand out another implementation where one is installed.
    from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]

    return str(EnglishStemmer().stemWord(word))  # one for each word: it holds the word, and threads would share it


def terms(text: str) -> Iterator[str]:
    """Yield the terms of a text in order: its tokens, folded and without their endings."""
    for token, _, _ in spans(fold(text)):
        yield stem(token)


NEGATED: Final = "!"
"""What a term begins with that stands after a negation: `not approved` has `approv` and `!approv`."""
NEGATED_TOKENS: Final = 2
"""How many tokens of a passage after a negation it is about."""


def passage_terms(text: str) -> Iterator[str]:
    """Yield the terms of a passage: those of its text, and after a negation the negated ones that have an opposite."""
    negated = 0
    for token, _, _ in spans(fold(text)):
        term = stem(token)
        yield term
        if token in NEGATIONS:
            negated = NEGATED_TOKENS
        elif negated:
            negated -= 1
            if any(number in opposites() for number in concepts().english.get(term, ())):
                yield NEGATED + term


# How common a word is


LITTLE_PART, CONCEPT_PART, OTHER_PART = 0.3, 0.002, 0.0002
"""About what part of all short texts has a little word in it, a word of a concept, any other word."""


@lru_cache(65_536)
def commonness(word: str) -> float:
    """Return about what part of all short texts has a word in it."""
    if word in LITTLE[ENGLISH]:
        return LITTLE_PART
    return CONCEPT_PART if stem(word) in concepts().english else OTHER_PART


def is_known(word: str) -> bool:
    """Return whether a word is one of the common words of English that are listed here."""
    return word in LITTLE[ENGLISH] or stem(word) in concepts().english


# Concepts


class Concepts(NamedTuple):
    """The table of concepts."""

    stems: tuple[tuple[str, ...], ...]
    """By concept its English words, as stems."""
    english: Mapping[str, tuple[int, ...]]
    """Concepts by English stem."""
    foreign: Mapping[str, Mapping[str, tuple[int, ...]]]
    """Concepts by the beginning of a word, by language."""


@cache
def concepts() -> Concepts:
    """Return the table of concepts."""
    text = resources.files("woodrat.recall").joinpath("concepts.txt").read_text(encoding="utf-8")
    stems: list[tuple[str, ...]] = []
    english: dict[str, tuple[int, ...]] = {}
    foreign: dict[str, dict[str, tuple[int, ...]]] = {language: {} for language in FOREIGN}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        number = len(stems)
        columns = line.split("|")
        own = tuple(dict.fromkeys(stem(word.replace("-", "")) for word in columns[0].split()))
        stems.append(own)
        for word in own:
            english[word] = (*english.get(word, ()), number)
        for language, column in zip(FOREIGN, columns[1:], strict=True):
            for form in dict.fromkeys(column.split()):
                # A form without * is a whole word; the mark at its end is one that no word has.
                key = form[:-1] if form.endswith("*") else form + "\0"
                if len(key) > 1:
                    foreign[language][key] = (*foreign[language].get(key, ()), number)
    return Concepts(tuple(stems), english, foreign)


def concepts_of(word: str, language: str) -> tuple[int, ...]:
    """Return the concepts of a folded word of a question in a language; the longest beginning that is listed counts."""
    table = concepts()
    if language == ENGLISH:
        return table.english.get(stem(word), ())
    forms = table.foreign[language]
    whole = word + "\0"
    for size in range(len(whole), 1, -1):
        found = forms.get(whole[:size])
        # Short beginnings name nothing in a long word.
        if found is not None and (size >= 3 or size >= len(word) - 1):
            return found
    return ()


@cache
def shared_names() -> frozenset[str]:
    """Return names that everybody shares: a question may say Portugal where a memory says Lisbon."""
    text = resources.files("woodrat.recall").joinpath("shared_names.txt").read_text(encoding="utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())


OPPOSITES: Final = (
    ("approve", "reject"),
    ("renew", "cancel"),
    ("keep", "delete"),
    ("increase", "decrease"),
    ("start", "stop"),
    ("prefer", "hate"),
    ("agree", "disagree"),
    ("cheap", "expensive"),
    ("arrive", "lose"),
    ("deliver", "lose"),
    ("pay", "debt"),
    ("allow", "stop"),
    ("accept", "reject"),
    ("good", "bad"),
    ("refund", "reject"),
    ("hire", "reject"),
)
"""Words each of which means the other after a negation."""


@cache
def opposites() -> Mapping[int, tuple[int, ...]]:
    """Return by concept those that it means after a negation."""
    english = concepts().english
    found: dict[int, set[int]] = {}
    for one, other in OPPOSITES:
        for here, there in ((one, other), (other, one)):
            for number in english.get(stem(here), ())[:1]:
                found.setdefault(number, set()).update(english.get(stem(there), ())[:1])
    return {number: tuple(sorted(others)) for number, others in found.items()}


def language_of(tokens: Iterable[str]) -> str:
    """Return the language of a question by its little words; English where nothing tells."""
    words = list(tokens)
    counts = {language: sum(word in little for word in words) for language, little in LITTLE.items()}
    best = max(counts, key=lambda language: (counts[language], language == ENGLISH))
    return best if counts[best] > counts[ENGLISH] else ENGLISH


# Misspellings

TYPO_CHARACTERS_MIN: Final = 4
"""Shorter words have no misspellings: too many others are one letter away."""


def pieces(word: str) -> frozenset[str]:
    """Return the pairs of letters of a word, its ends included: misspellings share most of them."""
    ended = f"\x02{word}\x03"
    return frozenset(ended[at : at + 2] for at in range(len(ended) - 1))


def distance_allowed(word: str) -> int:
    """Return how many letters may be wrong in a word of this length."""
    return 0 if len(word) < TYPO_CHARACTERS_MIN else 1 if len(word) < 8 else 2


def distance(one: str, other: str, limit: int) -> int:
    """Return how many letters were left out, added, changed or swapped with the next; more than `limit` is one more."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, there in enumerate(other, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != there))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == there:
                least = min(least, older[j - 2] + 1)
            row.append(least)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)
