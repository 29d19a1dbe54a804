"""The table: rows as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench.growth.case import Case
from bench.growth.row import Row

_COST = 9
_CALLS = {"cold": "first", "warm": "then"}
"""What stands before the costs of each kind of call."""


class Table:
    """Lines of one width, which can be printed as rows come."""

    def __init__(self, cases: Iterable[Case]) -> None:
        names = [name for case in cases for name in (case.name, _title(case.world.name, case.world.unit))]
        self._width = max(map(len, names))

    def header(self, world_name: str, unit: str, sizes: Sequence[int]) -> str:
        """Return the columns of the rows on one kind of ledger."""
        columns = "".join(f"{size:>{_COST},}" for size in sizes)
        title = _title(world_name, unit)
        costs = "  ".join(f"{calls}{columns}  slope " for calls in _CALLS.values())
        return f"\n{title:{self._width}}  kind    goal  {costs}  × show   peak MB, from → to"

    def line(self, row: Row) -> str:
        """Return a measured row."""
        parts = [f"{row.case.name:{self._width}}", f"{row.case.kind:<6}", f"{row.case.goal:4.2f}"]
        for name, costs in (("cold", row.cold), ("warm", row.warm)):
            parts.append(" " * len(_CALLS[name]) + "".join(_cost(costs, size) for size in row.sizes))
            slope = row.slopes[name]
            caught_up = name == "cold" and row.goals["cold"] > row.goals["warm"]
            parts.append("    - " if slope is None else f"{slope:5.2f}{'*' if caught_up else ' '}")
        parts.append("     -" if row.shows is None else f"{row.shows:6.1f}")
        parts.append(_growth(row.memory))
        parts.append(_outcome(row))
        return "  ".join(parts)

    @staticmethod
    def footer(rows: Sequence[Row]) -> str:
        """Return how many goals are met."""
        met = sum(row.met for row in rows)
        failed = [row.case.name for row in rows if not row.cold and not row.warm]
        text = f"\n{met} of {len(rows)} rows meet their goal. "
        text += "Costs in ms of the processor, bytes where a row says so; * brought indexes up to date."
        return text + (f"\nNot measured at any size: {', '.join(failed)}." if failed else "")


def _outcome(row: Row) -> str:
    return "met" if row.met else f"missed: {', '.join(row.misses)}"


def _title(world_name: str, unit: str) -> str:
    return f"{world_name}: {unit}"


def _growth(memory: Mapping[int, int]) -> str:
    """Return the peak at the smallest and at the largest size, in megabytes."""
    if not memory:
        return f"{'-':>14}"
    return f"{memory[min(memory)] / 1e6:.1f} → {memory[max(memory)] / 1e6:.1f}".rjust(14)


def _cost(costs: Mapping[int, float], size: int) -> str:
    if size not in costs:
        return f"{'-':>{_COST}}"
    cost = costs[size]
    return f"{cost:>{_COST},.{2 if cost < 10 else 1 if cost < 100 else 0}f}"
