"""The exact test: p-values of a table of two by two, and their correction for how many were tried."""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, isclose, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.compare import exact_test


def twice_the_tail(carriers: int, bad_carriers: int, bad: int, runs: int) -> Fraction:
    """Return the p-value by counting every way to choose the carriers."""

    def ways(count: int) -> int:
        return comb(bad, count) * comb(runs - bad, carriers - count) if 0 <= count <= carriers else 0

    above = bad_carriers * runs >= carriers * bad
    tail = range(bad_carriers, carriers + 1) if above else range(bad_carriers + 1)
    return min(Fraction(1), 2 * Fraction(sum(map(ways, tail)), comb(runs, carriers)))


@given(st.data())
def test_it_counts_every_way(data: st.DataObject) -> None:
    """The p-value is twice the smaller tail of all ways to choose as many runs, and never above one."""
    runs = data.draw(st.integers(2, 40))
    bad, carriers = data.draw(st.integers(1, runs - 1)), data.draw(st.integers(1, runs - 1))
    bad_carriers = data.draw(st.integers(max(0, carriers - (runs - bad)), min(carriers, bad)))
    p = exp(exact_test.log_p(carriers, bad_carriers, bad, runs))
    assert isclose(p, twice_the_tail(carriers, bad_carriers, bad, runs), rel_tol=1e-9)
    assert exact_test.smallest_log_p(carriers, bad, runs) <= log(p) + 1e-9


def test_large_groups_do_not_underflow() -> None:
    """A feature of exactly the bad half of 10,000 runs has a p-value far below what a float holds."""
    assert exact_test.log_p(5_000, 5_000, 5_000, 10_000) < -6_000
    assert exact_test.corrected(exact_test.log_p(5_000, 5_000, 5_000, 10_000), 1_000) == 0


@pytest.mark.parametrize(("carriers", "bad"), [(0, 3), (10, 3), (4, 0), (4, 10)])
def test_what_cannot_tell_runs_apart(carriers: int, bad: int) -> None:
    """A feature of no run or of all, and runs of one verdict, say nothing."""
    assert exact_test.log_p(carriers, min(carriers, bad), bad, 10) == 0


def test_only_what_could_be_significant_is_counted() -> None:
    """Features that too few runs have to ever be significant do not make the others less so."""
    common, rare = [50] * 20, [1] * 10_000
    assert exact_test.comparisons(common, 50, 200) == 20
    assert exact_test.comparisons([*common, *rare], 50, 200) <= 21
    assert exact_test.comparisons([], 50, 200) == 1


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 29))
def test_the_correction_is_enough(carriers: list[int], bad: int) -> None:
    """No more features than were counted could have been significant, which is what bounds all errors together."""
    tried = exact_test.comparisons(carriers, bad, 30)
    able = [n for n in carriers if exact_test.is_significant(exact_test.smallest_log_p(n, bad, 30), tried)]
    assert len(able) <= tried
