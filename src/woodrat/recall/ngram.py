"""Ngram: the built-in embedder. Hashed words, pairs of words and pieces of words, in whole numbers only.

The same text has the same vector on every machine and in every version of Python: tokens are cut by pinned rules, a
feature's place is the digest of its bytes, and nothing is weighed by how often it occurs elsewhere. It knows no
meaning, only spelling. `docs/formats/recall.md` is the specification; any change to it is another embedder id.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Final

from woodrat.recall.vectors import COMPONENT_MAX
from woodrat.state.tokens import tokens

DIMENSION: Final = 384
"""Components of a vector."""

WORD: Final = 9
"""Weight of a word."""
NUMBERED: Final = 24
"""Weight of a word with a digit in it: what is asked about is mostly named by one."""
LITTLE: Final = 1
"""Weight of a little word, and of a pair with one in it."""
PAIR: Final = 3
"""Weight of two words in a row."""
PIECE: Final = 3
"""Weight of three characters in a row within a word, its ends included."""
PIECE_CHARACTERS: Final = 3
PIECES_FROM: Final = 4
"""Only words of at least so many characters are cut into pieces."""

LITTLE_WORDS: Final = frozenset(
    """
    a about an and are as at be been but by can could did do does for from had has have how i if in into is it its may
    me my no not of on or our should so than that the their them then there these they this those to us was we were
    what when where which who whom whose why will with would you your
    """.split()  # noqa: SIM905
)
"""Words that say how something is asked rather than what about."""

_DIGITS = frozenset("0123456789")
_START, _END = "\x02", "\x03"  # no token holds them
_REMEMBERED = 65_536  # words and pairs; most texts of one ledger are made of few

Feature = tuple[int, int]
"""Where a feature adds to a vector, and how much."""


class Ngram:
    """The embedder `ngram-v1`."""

    id: Final = "ngram-v1"
    dimension: Final = DIMENSION

    def embed(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """Return the vector of each text."""
        return [vector(text) for text in texts]


def vector(text: str) -> array[int]:
    """Return the vector of a text. Each feature counts once, however often the text has it."""
    found = list(tokens(text))
    sums = [0] * DIMENSION
    for word in dict.fromkeys(found):
        for place, weight in _of_word(word):
            sums[place] += weight
    for pair in dict.fromkeys(pairwise(found)):
        place, weight = _of_pair(*pair)
        sums[place] += weight
    if max(sums) > COMPONENT_MAX or min(sums) < -COMPONENT_MAX:
        sums = [max(-COMPONENT_MAX, min(COMPONENT_MAX, value)) for value in sums]
    return array("b", sums)


@lru_cache(_REMEMBERED)
def _of_pair(one: str, other: str) -> Feature:
    """Return the feature of two words in a row."""
    return _feature(f"pair\0{one}\0{other}", LITTLE if not LITTLE_WORDS.isdisjoint((one, other)) else PAIR)


@lru_cache(_REMEMBERED)
def _of_word(word: str) -> tuple[Feature, ...]:
    """Return the features of one word; its pieces count once each."""
    if not _DIGITS.isdisjoint(word):
        return (_feature(f"word\0{word}", NUMBERED),)
    if word in LITTLE_WORDS:
        return (_feature(f"word\0{word}", LITTLE),)
    found = [_feature(f"word\0{word}", WORD)]
    if len(word) >= PIECES_FROM:
        ended = _START + word + _END
        starts = range(len(ended) - PIECE_CHARACTERS + 1)
        pieces = dict.fromkeys(ended[start : start + PIECE_CHARACTERS] for start in starts)
        found += [_feature(f"piece\0{piece}", PIECE) for piece in pieces]
    return tuple(found)


def _feature(name: str, weight: int) -> Feature:
    """Return a feature's place and signed weight: the first bit of its digest is the sign, the rest the place."""
    number = int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
    return (number & ~(1 << 63)) % DIMENSION, -weight if number >> 63 else weight
