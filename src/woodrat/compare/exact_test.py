"""Exact test: how likely chance alone makes a feature as unevenly spread over good and bad runs as it is.

This is Fisher's test of a table of two by two, corrected for how many features were tried (Bonferroni, counting only
those that could have been significant at all, after Tarone). Probabilities are natural logarithms, since those of large
groups are too small for a float.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import exp, inf, lgamma, log
from typing import Final

SIGNIFICANT: Final = 0.01
"""How likely it may be that anything is named that chance alone explains, all features together."""

_NEGLIGIBLE: Final = 1e-12


def log_p(carriers: int, bad_carriers: int, bad: int, runs: int) -> float:
    """Return the logarithm of the p-value of a feature that `carriers` of the runs have, `bad_carriers` of them bad.

    Both directions count: it is twice the smaller tail, and one at most.
    """
    if carriers == 0 or carriers == runs or bad in (0, runs):
        return 0.0
    lowest, highest = max(0, carriers - (runs - bad)), min(carriers, bad)
    above = bad_carriers * runs >= carriers * bad
    total, term, i = 1.0, 1.0, bad_carriers
    while (i < highest) if above else (i > lowest):
        if above:
            term *= (carriers - i) * (bad - i) / ((i + 1) * (runs - carriers - bad + i + 1))
            i += 1
        else:
            term *= i * (runs - carriers - bad + i) / ((carriers - i + 1) * (bad - i + 1))
            i -= 1
        total += term
        if term < total * _NEGLIGIBLE:
            break
    return min(0.0, log(2) + _log_point(carriers, bad_carriers, bad, runs) + log(total))


def smallest_log_p(carriers: int, bad: int, runs: int) -> float:
    """Return the smallest p-value that a feature of so many runs could have, however it were spread."""
    if carriers == 0 or carriers == runs or bad in (0, runs):
        return 0.0
    ends = (max(0, carriers - (runs - bad)), min(carriers, bad))
    return min(log_p(carriers, end, bad, runs) for end in ends)


def comparisons(carriers: Iterable[int], bad: int, runs: int) -> int:
    """Return by how many features p-values are multiplied, given how many runs have each of them.

    It is the smallest number that no more features than that could pass: those that are too rare or too common to ever
    be significant cannot be wrong, and need no correction. Which of the runs are bad plays no part.
    """
    known: dict[int, float] = {}
    reachable = []
    for count in carriers:
        if count not in known:
            known[count] = smallest_log_p(count, bad, runs)
        reachable.append(known[count])
    reachable.sort()
    # With k comparisons a feature must reach SIGNIFICANT / k. The more there are, the fewer can.
    for index, log_value in enumerate(reachable):
        if log_value > log(SIGNIFICANT) - log(index + 1):
            return index + 1
    return max(1, len(reachable))


def corrected(log_value: float, tried: int) -> float:
    """Return a p-value corrected for so many comparisons, from 0 to 1."""
    return min(1.0, exp(min(0.0, log_value + log(tried))))


def is_significant(log_value: float, tried: int) -> bool:
    """Tell whether a p-value is significant among so many comparisons."""
    return log_value + log(tried) <= log(SIGNIFICANT)


def _log_point(carriers: int, bad_carriers: int, bad: int, runs: int) -> float:
    """Return how likely exactly so many of the carriers are bad."""
    return (
        _log_choose(bad, bad_carriers) + _log_choose(runs - bad, carriers - bad_carriers) - _log_choose(runs, carriers)
    )


@lru_cache(maxsize=65_536)
def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) if 0 <= k <= n else -inf
