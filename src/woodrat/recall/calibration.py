"""Calibration: from what a question and a memory have in common to a score between 0 and 1.

The score is a logistic function of a few features, fitted on the questions that `bench/retrieval` sets apart for it
and on none that it reports on. It is shifted so that 0.5 is where nothing stored is answered with nothing.
`docs/formats/recall.md` says what the features are, `docs/decisions/0079` how they were fitted.
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
    missing: float
    """Weight of the rarest term of the question that the memory lacks, 0 to 1."""
    missing_name: float
    """Weight of the rarest name of the question that the memory lacks, 0 to 1."""
    focus: float
    """How much of the nearest passage the question speaks of, 0 to 1."""
    foreign: float
    """1 where the question is asked in another language than English, else 0."""
    identified: float
    """1 where the question names it by number, 0.5 where it may, 0 where it names none."""


NAMES: Final = (
    "one",
    "dense",
    "dense2",
    "coverage",
    "nearest",
    "mass",
    "missing",
    "missing_name",
    "focus",
    "foreign",
    "both",
)
"""The terms of the sum, in the order of the weights."""
IDENTIFIED: Final = 6.0
"""What is added for a memory that the question names by number: it decides, and is not fitted."""

HYBRID: Final = (-6.53, 4.69, 3.42, 1.37, 1.86, 2.89, 0.0, -6.48, 1.9, 1.68, 1.07)
"""Weights with vectors."""
LEXICAL: Final = (-7.11, 0.0, 0.0, 1.89, 3.28, 2.98, 0.0, -7.94, 5.95, 0.28, 0.0)
"""Weights without."""


def terms(features: Features) -> tuple[float, ...]:
    """Return the terms of the sum."""
    dense = 0.0 if features.dense is None else max(0.0, min(1.2, features.dense))
    return (
        1.0,
        dense,
        dense * dense,
        features.coverage,
        features.nearest,
        features.mass,
        features.missing,
        features.missing_name,
        features.focus,
        features.foreign,
        dense * features.coverage,
    )


def score(features: Features) -> float:
    """Return the score of a memory, to six digits: the last ones of a logarithm are not the same on every machine."""
    weights = LEXICAL if features.dense is None else HYBRID
    total = sum(weight * term for weight, term in zip(weights, terms(features), strict=True))
    total += IDENTIFIED * features.identified**2
    return round(1.0 / (1.0 + math.exp(-max(-40.0, min(40.0, total)))), 6)
