"""Scores: the cosine of a question with every row of an index, exactly.

numpy makes it fast where it is installed and changes neither scores nor order: a float32 holds every product and sum
of two vectors exactly, and one square root and one division in float64 follow, which IEEE 754 rounds the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from woodrat.recall import vectors
from woodrat.recall.passage_index import DECISION, FOLLOW_UP, PLAIN, REDECIDED, PassageIndex

NUMPY_FROM: Final = 2_000
"""Below so many rows plain Python is done before numpy is imported."""
FIRST_GROUP: Final = 64
"""How many rows are put in order first; mostly no more are looked at."""

Group = list[tuple[float, int]]
"""Scores with their rows, the highest first and equal ones by row."""


class Scores:
    """The scores of some rows of an index, as far as it went once."""

    def __init__(self, index: PassageIndex, vector: bytes, until: int, runs: Sequence[int] | None) -> None:
        """Score the rows of some runs, or all, among the first `until`."""
        self._index = index
        self._until = until
        self._rows = None if runs is None else sorted(row for run in runs for row in index.rows[run] if row < until)
        self._numpy = load_numpy(until if self._rows is None else len(self._rows))
        if self._numpy is None:
            self._scores: Any = score(index, vector, range(until) if self._rows is None else self._rows)
        else:
            self._scores = _score_fast(self._numpy, index, vector, until, self._rows)

    def descending(
        self, kinds: tuple[int, ...], least: float | None = None, since: int | None = None
    ) -> Iterator[Group]:
        """Yield rows of some kinds of run, the highest score first, in groups between which no scores are equal."""
        return self._plainly(kinds, least, since) if self._numpy is None else self._fast(kinds, least, since)

    def _plainly(self, kinds: tuple[int, ...], least: float | None, since: int | None) -> Iterator[Group]:
        index, rows = self._index, range(self._until) if self._rows is None else self._rows
        found = [
            (score, row)
            for score, row in zip(self._scores, rows, strict=True)
            if (least is None or score >= least)
            and index.kind(index.run_of[row], self._until) in kinds
            and (since is None or index.began[index.run_of[row]] >= since)
        ]
        yield sorted(found, key=lambda pair: (-pair[0], pair[1]))

    def _fast(self, kinds: tuple[int, ...], least: float | None, since: int | None) -> Iterator[Group]:
        numpy, scores = self._numpy, self._scores
        places = numpy.arange(len(scores)) if least is None else numpy.flatnonzero(scores >= least)
        rows = places if self._rows is None else numpy.asarray(self._rows, numpy.int64)[places]
        allowed = self._mask(kinds, since)[numpy.frombuffer(self._index.run_of, numpy.int64)[rows]]
        scores, rows, size = scores[places[allowed]], rows[allowed], FIRST_GROUP
        while len(scores):
            floor = numpy.partition(scores, len(scores) - size)[len(scores) - size] if size < len(scores) else -2.0
            above = scores >= floor
            order = numpy.argsort(-scores[above], kind="stable")
            yield list(zip(scores[above][order].tolist(), rows[above][order].tolist(), strict=True))
            scores, rows, size = scores[~above], rows[~above], size * 8

    def _mask(self, kinds: tuple[int, ...], since: int | None) -> Any:
        """Return for each run whether it is of one of these kinds, as `PassageIndex.kind` says, and not too old."""
        numpy, index = self._numpy, self._index
        started, decided, recalled = (
            numpy.frombuffer(first_row, numpy.int64) < self._until
            for first_row in (index.started, index.decided, index.recalled)
        )
        marked = numpy.frombuffer(index.marked, numpy.int8) != 0
        decided_as = numpy.where(marked & ~recalled, REDECIDED, DECISION)
        kind = numpy.where(decided, decided_as, numpy.where(marked | recalled, FOLLOW_UP, PLAIN))
        mask = started & numpy.isin(kind, kinds)
        return mask if since is None else mask & (numpy.frombuffer(index.began, numpy.int64) >= since)


def score(index: PassageIndex, vector: bytes, rows: Sequence[int]) -> list[float]:
    """Return the cosine of a vector with each of these rows."""
    wanted, square, size = vectors.components(vector), vectors.square(vector), index.dimension
    scores = []
    for row in rows:
        block, at = divmod(row, index.block_rows)
        stored = vectors.components(bytes(index.blocks[block][at * size : (at + 1) * size]))
        scores.append(vectors.cosine(vectors.dot(wanted, stored), square, int(index.squares[row])))
    return scores


def _score_fast(numpy: Any, index: PassageIndex, vector: bytes, until: int, rows: list[int] | None) -> Any:
    """Do what `score` does, a block at a time."""
    wanted = numpy.frombuffer(vector, numpy.int8).astype(numpy.float32)
    squares = numpy.frombuffer(index.squares, numpy.float64)[:until]
    size = index.block_rows
    if rows is None:
        products = numpy.empty(until, numpy.float32)
        room = numpy.empty((size, index.dimension), numpy.float32)
        for first in range(0, until, size):
            count = min(size, until - first)
            numpy.copyto(room[:count], _matrix(numpy, index, first // size)[:count])
            numpy.dot(room[:count], wanted, out=products[first : first + count])
    else:
        order = numpy.asarray(rows, numpy.int64)
        squares = squares[order]
        products = numpy.empty(len(rows), numpy.float32)
        bounds = numpy.searchsorted(order, numpy.arange(0, until + size, size))
        for number, (begin, end) in enumerate(pairwise(bounds)):
            if begin < end:
                part = _matrix(numpy, index, number)[order[begin:end] - number * size]
                products[begin:end] = part.astype(numpy.float32) @ wanted
    both = squares * float(vectors.square(vector))
    return numpy.where(both > 0, products, 0.0) / numpy.sqrt(numpy.where(both > 0, both, 1.0))


def _matrix(numpy: Any, index: PassageIndex, block: int) -> Any:
    return numpy.frombuffer(index.blocks[block], numpy.int8).reshape(index.block_rows, index.dimension)


def load_numpy(rows: int) -> Any:
    """Return numpy, where it is installed and there are enough rows to be worth its import."""
    if rows < NUMPY_FROM:
        return None
    from importlib import import_module

    try:
        return import_module("numpy")
    except ImportError:
        return None
