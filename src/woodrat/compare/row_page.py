"""Row pages: some rows of two runs side by side, with what is said of the two as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from woodrat.compare.divergence import SAME
from woodrat.records import replace

if TYPE_CHECKING:
    from woodrat.compare.divergence import Divergence


class RowPage(NamedTuple):
    """Which rows of a comparison are asked for."""

    skip: int | None
    """How many rows to leave out, the first ones; none where the page with the row at which they part is meant."""
    limit: int | None
    """How many rows at most; none for all that are left."""
    differing: bool
    """Whether only rows that differ are listed, and counted by `skip`."""


def page_of(found: Divergence, page: RowPage) -> Divergence:
    """Return a comparison with the rows of a page, and with what was set aside and reordered in these alone."""
    rows = [row for row in found.rows if not (page.differing and row.mark == SAME)]
    skip = page.skip
    if skip is None:
        parting = next((place for place, row in enumerate(rows) if row.step == found.step), 0)
        skip = 0 if page.limit is None else parting - parting % page.limit
    shown_rows = rows[skip : None if page.limit is None else skip + page.limit]
    steps = {row.step for row in shown_rows}
    return replace(
        found,
        rows=tuple(shown_rows),
        skipped=min(skip, len(rows)),
        set_aside=tuple(aside for aside in found.set_aside if aside.step in steps),
        reordered=tuple(step for step in found.reordered if step in steps),
    )
