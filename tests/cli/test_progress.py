"""Bars on long work: for a terminal, and for nobody else."""

from __future__ import annotations

import io

import pytest

import woodrat
from woodrat.cli.progress import BAR_WIDTH, bar
from woodrat.testing.clock import FixedClock


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_bar_grows_and_is_wiped_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar is drawn over itself, only when it changes, and leaves an empty line."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with bar("Rebuilding", "entries") as tell:
        assert tell is not None
        for done in range(100_001):
            tell(done, 100_000)
    drawn = terminal.getvalue().split("\r")
    assert drawn[1] == "Rebuilding …"
    assert drawn[-3].startswith(f"Rebuilding  [{'#' * BAR_WIDTH}]  100 % of 100000 entries")
    assert drawn[-2].strip() == ""
    assert len(drawn[-2]) == len(drawn[-3])
    assert drawn[-1] == ""
    assert len(drawn) < 200


def test_a_bar_fits_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow terminal cuts the bar, so that it never breaks into a second line."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "30")
    with bar("Rebuilding", "entries") as tell:
        assert tell is not None
        tell(1, 2)
    assert max(len(part) for part in terminal.getvalue().split("\r")) == 29


@pytest.mark.parametrize(("stream", "term"), [(io.StringIO(), "xterm"), (Terminal(), "dumb")], ids=["pipe", "dumb"])
def test_nobody_watches_a_pipe(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, term: str) -> None:
    """In a pipe, and on a terminal that cannot go back, nothing is drawn and nothing has to be told."""
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", term)
    with bar("Rebuilding", "entries") as tell:
        assert tell is None
    assert stream.getvalue() == ""


def test_the_library_tells_how_far_it_is() -> None:
    """`rebuild`, `prove_order` and `infer` call `progress` with what is done and what there is, at last the whole."""
    ledger = woodrat.open(":memory:", clock=FixedClock())
    ledger.store([{"entity_type": "thing", "name": f"{number}"} for number in range(200)])
    told: list[tuple[int, int]] = []

    def tell(done: int, whole: int) -> None:
        told.append((done, whole))

    ledger.prove_order(shuffles=3, progress=tell)
    assert told == [(1, 3), (2, 3), (3, 3)]
    for work, whole in (
        (lambda: ledger.rebuild(tell), 200),
        (lambda: ledger.schemas.infer("thing", progress=tell), 200),
    ):
        told.clear()
        work()
        assert told[-1] == (whole, whole)
        assert told == sorted(set(told))


def test_work_that_is_seldom_long_draws_when_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar that does not come at once leaves the terminal alone until it is told something."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with bar("Indexing", "entries", at_once=False):
        pass
    assert terminal.getvalue() == ""
    with bar("Indexing", "entries", at_once=False) as tell:
        assert tell is not None
        tell(1, 2)
    assert "50 % of 2 entries" in terminal.getvalue()
