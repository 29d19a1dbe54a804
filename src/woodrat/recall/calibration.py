"""Calibration: from what a question and a memory have in common to a score between 0 and 1.

The score is a logistic function of a few features, fitted on the questions that `bench/retrieval` sets apart for it
and on none that it reports on. It is shifted so that 0.5 is where nothing stored is answered with nothing. No feature
depends on how much is stored. `docs/formats/recall.md` describes them; `bench/retrieval/fit.py` fits their weights.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple


class Features(NamedTuple):
    """What a question and a memory have in common."""

    dense: float | None
    """Cosine of the question and the nearest passage, on the scale of the embedder; none without vectors."""
    coverage: float
    """How much of what the question tells the memory has, 0 to 1."""
    nearest: float
    """The same of the one passage that has most of it."""
    mass: float
    """How much that is, however much the question tells: 0 to 1."""
    missing_name: float
    """Weight of the rarest name of the question that the memory lacks, 0 to 1."""
    focus: float
    """How much of the nearest passage the question speaks of, 0 to 1."""
    headed: float
    """How much of the names of the question the passage is headed by: what a fact is of, who speaks; 0 to 1."""
    timely: float
    """1 where the question says when, and the memory was said then."""
    foreign: float
    """1 where the question is asked in another language than English, else 0."""
    identified: float
    """1 where the question names it by number, 0.5 where it may, -1 where it has another number there, 0 otherwise."""
    against: float
    """Weight of what the question says and the memory says the opposite of."""
    ahead: float = 0.0
    """How far its cosine is ahead of the next memory's; 0 for all but the nearest."""


NAMES: Final = (
    "one",
    "dense",
    "dense2",
    "coverage",
    "nearest",
    "mass",
    "missing_name",
    "focus",
    "headed",
    "timely",
    "foreign",
    "both",
    "foreign coverage",
    "dense alone",
    "ahead alone",
    "said",
)
"""The terms of the sum, in the order of the weights."""
DENSE: Final = frozenset({"dense", "dense2", "both", "dense alone", "ahead alone"})
"""Those that there are with vectors only."""
IDENTIFIED: Final = 6.0
"""What is added for a memory that the question names by number: it decides, and is not fitted."""
AGAINST: Final = 2.0
"""What is taken off where a memory says the opposite of the question; not fitted."""
CLEAR: Final = 0.35
"""From which cosine on a passage may have the same meaning in other words."""
WORDED: Final = 0.5
"""How much in common in words is no paraphrase: vectors of texts that share a rare word are near in any case."""
AHEAD_MAX: Final = 0.25
"""How far ahead is as far as can be told apart."""
NEXT_MIN: Final = 0.2
"""The cosine that the next memory has at least: among a few memories the nearest is ahead of nothing."""
BEHIND: Final = 0.5
"""What comes after the best memory is behind it by so much of the difference of their sums. Where a question has an
answer at all, what else is near may answer it too."""

HYBRID: Final = (-7.65, 8.14, 4.97, 1.27, 0.0, 3.37, -5.33, 0.0, 0.0, 2.95, 0.38, 0.27, 3.79, 1.91, 3.87, 3.31)
"""Weights with vectors."""
LEXICAL: Final = (-7.64, 0.0, 0.0, 2.49, 0.96, 5.01, -7.06, 4.66, 0.77, 1.55, 0.16, 0.0, 0.83, 0.0, 0.0, 3.13)
"""Weights without."""


def terms(features: Features) -> tuple[float, ...]:
    """Return the terms of the sum."""
    dense = 0.0 if features.dense is None else max(0.0, min(1.2, features.dense))
    wordless = 1.0 - min(1.0, features.mass / WORDED)
    return (
        1.0,
        dense,
        dense * dense,
        features.coverage,
        features.nearest,
        features.mass,
        features.missing_name,
        features.focus,
        features.headed,
        features.timely,
        features.foreign,
        dense * features.coverage,
        features.foreign * features.coverage,
        max(0.0, dense - CLEAR) * wordless,
        features.ahead * (1.0 - features.coverage),
        features.coverage * features.mass,
    )


def fixed(features: Features) -> float:
    """Return the part of the sum whose weights are not fitted."""
    named = features.identified
    return IDENTIFIED * named * abs(named) - AGAINST * features.against


def total(features: Features) -> float:
    """Return the sum that a score is made from."""
    weights = LEXICAL if features.dense is None else HYBRID
    return sum(weight * term for weight, term in zip(weights, terms(features), strict=True)) + fixed(features)


def behind(own: float, best: float) -> float:
    """Return the sum of a memory beside the best one."""
    return best - BEHIND * (best - own) if own < best else own


def score(sum: float) -> float:
    """Return a score, to six digits: the last ones of a logarithm are not the same on every machine."""
    return round(1.0 / (1.0 + math.exp(-max(-40.0, min(40.0, sum)))), 6)
