"""Progress: a bar on the terminal during long work; nothing without a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from woodrat.cli.tables import columns

BAR_WIDTH = 24

Tell = Callable[[int, int | None], object]
"""Called with the amount done and the total; None if the total is unknown."""


@contextmanager
def bar(what: str, unit: str, *, at_once: bool = True) -> Iterator[Tell | None]:
    """Yield a function that draws a bar on standard error, such as `Rebuilding [###···] 42 of 100 entries`; None in a
    pipe.

    Work that is rarely long draws nothing before its first progress, instead of `at_once`. The bar is always wiped at
    the end, so that later output starts where it would have without a bar.
    """
    stream = sys.stderr
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    width = columns(stream) - 1
    drawn = ""

    def draw(text: str) -> None:
        nonlocal drawn
        # Draw only on a change, so a million steps cost no more than the columns and percents of the bar.
        if text != drawn:
            shorter, drawn = len(drawn) - len(text), text
            stream.write("\r" + text + " " * shorter)
            stream.flush()

    def tell(done: int, whole: int | None) -> None:
        if whole is None:
            draw(f"{what}  {done} {unit}"[:width])
            return
        share = done / whole if whole else 1.0
        full = int(share * BAR_WIDTH)
        text = f"{what}  [{'#' * full}{'·' * (BAR_WIDTH - full)}]  {int(share * 100):>3} % of {whole} {unit}"
        draw(text[:width])

    try:
        if at_once:
            draw(f"{what} …"[:width])
        yield tell
    finally:
        if drawn:
            stream.write("\r" + " " * len(drawn) + "\r")
            stream.flush()
