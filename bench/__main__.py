"""`python3 dev.py bench [--json]`: one table of ratios. Both sides of a ratio run interleaved; medians are compared."""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import orjson

import woodrat
from woodrat.canon import form
from woodrat.canon.digest import digest

ROUNDS = 15
"""How often each side of a ratio is measured."""


@dataclass(frozen=True)
class Row:
    """One measured ratio and its goal."""

    name: str
    ratio: float
    goal: float
    ours_us: float
    against_us: float

    @property
    def met(self) -> bool:
        return self.ratio <= self.goal


def ratio(
    name: str, ours: Callable[[], object], against: Callable[[], object], goal: float, repeat: int = 1, scale: int = 1
) -> Row:
    """Measure two things in turns and compare their medians; `scale` is how many units of work one call is."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for side, call in enumerate((ours, against)):
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            times[side].append((time.perf_counter() - start) / repeat / scale * 1e6)
    left, right = (statistics.median(side) for side in times)
    return Row(name, left / right, goal, left, right)


RECORD = {f"field{number}": f"a value of some length, number {number}" for number in range(9)} | {"count": 42}


def canonical_form() -> Row:
    return ratio(
        "canonical form of a flat record / orjson with sorted keys",
        lambda: form.encode(RECORD),
        lambda: orjson.dumps(RECORD, option=orjson.OPT_SORT_KEYS),
        goal=8,
        repeat=2_000,
    )


def digests() -> Row:
    body = form.encode(RECORD)
    return ratio(
        "digest of a body / bare SHA-256 of it",
        lambda: digest("observation", body),
        lambda: hashlib.sha256(body).digest(),
        goal=3,
        repeat=2_000,
    )


def _entity(observations: int) -> woodrat.Ledger:
    ledger = woodrat.open(":memory:")
    for start in range(0, observations, 1_000):
        ledger.store(
            [
                {"entity_type": "counter", "name": "c", "value": number, "label": "x"}
                for number in range(start, min(start + 1_000, observations))
            ]
        )
    return ledger


def history_does_not_count() -> list[Row]:
    small, large = _entity(100), _entity(10_000)
    position = large.position // 2
    record = {"entity_type": "counter", "name": "c", "label": "y"}
    return [
        ratio(
            "write to an entity with 10,000 observations / with 100",
            lambda: large.store(record),
            lambda: small.store(record),
            goal=1.5,
            repeat=20,
        ),
        ratio(
            "show of an entity with 10,000 observations / with 100",
            lambda: large.show("counter/c"),
            lambda: small.show("counter/c"),
            goal=1.5,
            repeat=50,
        ),
        ratio(
            "as-of in the middle of 10,000 observations / current show",
            lambda: large.at(position).show("counter/c"),
            lambda: large.show("counter/c"),
            goal=20,
            repeat=5,
        ),
    ]


def main() -> int:
    """Measure everything, print it, and fail when a goal is missed."""
    rows = [canonical_form(), digests(), *history_does_not_count()]
    if "--json" in sys.argv[1:]:
        print(json.dumps([{**asdict(row), "met": row.met} for row in rows], indent=2))
    else:
        width = max(len(row.name) for row in rows)
        print(f"{'':{width}}  {'ratio':>7}  {'goal':>6}  {'ours':>10}  {'against':>10}")
        for row in rows:
            mark = "" if row.met else "  missed"
            print(
                f"{row.name:{width}}  {row.ratio:6.2f}×  {row.goal:5g}×"
                f"  {row.ours_us:7.1f} µs  {row.against_us:7.1f} µs{mark}"
            )
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
