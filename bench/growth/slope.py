"""The slope: how cost grows with size, as the exponent of a power law.

Cost that stays the same has slope 0, cost in proportion to size has slope 1, pairwise work has slope 2. It is the
least-squares line through the logarithms, so that every size counts the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

PAGE, ANSWER, ALL = "page", "answer", "all"
"""What a call returns: a page of a list, a single answer, or everything."""
GOALS: Mapping[str, float] = {PAGE: 0.15, ANSWER: 0.15, ALL: 1.05}
"""The largest slope of each."""
SHOWS_MAX = 20.0
"""How many times the cost of one `show` a page may cost on the largest ledger."""
COST_MIN = 1e-6
"""A cost below this is taken for this: a logarithm needs more than nothing."""


def slope_of(costs: Mapping[int, float]) -> float | None:
    """Return the slope of costs by size; none with fewer than two sizes."""
    if len(costs) < 2:
        return None
    xs = [math.log(size) for size in costs]
    ys = [math.log(max(cost, COST_MIN)) for cost in costs.values()]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - x_mean) ** 2 for x in xs)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / spread


def cost_at(costs: Mapping[int, float], size: int) -> float | None:
    """Return what the line through the costs comes to at another size; none with fewer than two sizes."""
    slope = slope_of(costs)
    if slope is None:
        return None
    largest = max(costs)
    return costs[largest] * math.pow(size / largest, max(slope, 0.0))
