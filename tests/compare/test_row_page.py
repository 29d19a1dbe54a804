"""Pages of rows: together they are the whole comparison, and each page says of the whole what the whole says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compare.test_divergence import SECOND, STEPS, ran, tool
from tests.runs.story import Said

import woodrat
from woodrat.compare.divergence import Divergence, RowPage, StepPair, compare, page_of
from woodrat.errors import Refused
from woodrat.records import replace


def whole_of(found: Divergence) -> Divergence:
    """Return what is said of a comparison as a whole."""
    return replace(found, rows=(), skipped=0, set_aside=(), reordered=())


@given(STEPS, STEPS, st.integers(1, 5), st.booleans())
def test_pages_together_are_the_whole(one: list[Said], two: list[Said], limit: int, differing: bool) -> None:
    """Page after page gives every row once, in order, of all rows and of those that differ."""
    whole = compare(ran(*one), ran(*two, id=SECOND))
    wanted = [row for row in whole.rows if not differing or row.mark != "same"]
    assert (whole.total, whole.differing) == (len(whole.rows), sum(row.mark != "same" for row in whole.rows))
    rows: list[StepPair] = []
    asides: list[Any] = []
    reordered: list[int] = []
    for skip in range(0, len(wanted) + limit, limit):
        page = page_of(whole, RowPage(skip, limit, differing))
        assert len(page.rows) <= limit
        assert page.skipped == min(skip, len(wanted)) == len(rows)
        assert whole_of(page) == whole_of(whole)
        rows += page.rows
        asides += page.set_aside
        reordered += page.reordered
    assert rows == wanted
    there = {row.step for row in wanted}
    assert asides == [aside for aside in whole.set_aside if aside.step in there]
    assert reordered == [step for step in whole.reordered if step in there]


@given(STEPS, STEPS, st.integers(1, 5), st.booleans())
def test_a_page_without_a_start_has_the_row_where_they_part(
    one: list[Said], two: list[Said], limit: int, differing: bool
) -> None:
    """It is one of the pages of that length; the first where nothing differs."""
    whole = compare(ran(*one), ran(*two, id=SECOND))
    page = page_of(whole, RowPage(None, limit, differing))
    assert page.skipped % limit == 0
    assert page == page_of(whole, RowPage(page.skipped, limit, differing))
    if whole.step is None:
        assert page.skipped == 0
    else:
        assert whole.step in [row.step for row in page.rows]


@pytest.fixture(scope="module")
def ledger() -> woodrat.Ledger:
    ledger = woodrat.open(":memory:", agent="crawler")
    for last in ("a", "b"):
        with ledger.run("Read it all") as run:
            for page in range(30):
                run.tool("read_page", lambda page: page, page)
            run.tool("read_page", lambda page, last=last: last, 30)
            run.answer(last)
    return ledger


def test_the_verb_returns_pages(ledger: woodrat.Ledger) -> None:
    """Without any of the three it returns all rows; a limit alone leads to where they part."""
    second, first = (run.id for run in ledger.runs.list().items)
    whole = ledger.runs.diff(first, second)
    assert (whole.total, whole.differing, whole.skipped, len(whole.rows), whole.step) == (33, 2, 0, 33, 31)
    page = ledger.runs.diff(first, second, limit=10)
    assert (page.skipped, [row.step for row in page.rows]) == (30, [30, 31, 32])
    assert whole_of(page) == whole_of(whole)
    assert ledger.runs.diff(first, second, skip=0, limit=10).rows == whole.rows[:10]
    assert [row.step for row in ledger.runs.diff(first, second, differing=True).rows] == [31, 32]
    assert ledger.runs.diff(first, second, skip=99).skipped == 33


def test_what_is_wrong_is_said_at_once(ledger: woodrat.Ledger) -> None:
    with pytest.raises(Refused) as refusal:
        ledger.runs.diff("x", "y", skip=-1, limit=0, differing=1, other="z")  # type: ignore[arg-type]
    assert [fault.path for fault in refusal.value.faults] == ["skip", "limit", "differing", "other"]
    assert "Send 1 to 1000; skip leads to the rest." in str(refusal.value)


def test_a_run_beside_itself_has_no_row_that_differs() -> None:
    """Then a page of rows that differ is empty, and counts say how long the runs are."""
    found = page_of(compare(ran(tool()), ran(tool(), id=SECOND)), RowPage(None, 10, differing=True))
    assert (found.rows, found.total, found.differing, found.skipped) == ((), 3, 0, 0)
