"""Fitting: the weights of `recall/calibration.py`, from the questions that are set apart for it.

Of each question its candidates compete with each other and with the answer that there is none. The sum is then shifted
so that at 0.5 four in a hundred questions about nothing have an answer: many were chosen to be near to what is stored.
Run it with `python -m bench.retrieval.fit`; it prints the weights.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from bench.retrieval import practice
from bench.retrieval.corpus import NOW, Question, make, store
from bench.retrieval.measure import index_of
from woodrat.canon import moment
from woodrat.recall import calibration, embedders, times, vectors
from woodrat.recall.query import query_of
from woodrat.recall.search import MemorySearch, RecallQuestion, narrowed

FALSE_RATE = 0.04
"""What part of the questions about nothing may have an answer; those here are near to what is stored on purpose."""
SIGNS = {"missing_name": -1}
"""Terms whose weights are at most 0; all others but the first are at least 0."""
FREE = frozenset({"one", "both"})
"""Terms whose weights may have either sign."""
PRACTICE = 2
"""How often the practice corpus counts."""
CANDIDATES = 96
"""How many candidates of a question count: those nearest by vector and by words."""
CLEARANCE = 0.12
"""How far the first question that may have no answer is below."""
RIDGE = 1e-3
STEPS = 2_000


def asked(index: Any, text: str, embedder: Any) -> RecallQuestion:
    """Return a question as recall asks it."""
    now = moment.from_micros(int(NOW.timestamp() * 1_000_000))
    said = times.understood(text, now)
    vector = None if embedder is None else vectors.as_numpy(embedders.embed(embedder, [text])[0])
    narrow = narrowed(text, said, index)
    return RecallQuestion(
        query=query_of(narrow.text, index, len(index)),
        vector=vector,
        held=None,
        square=0.0 if vector is None else float(vector @ vector),
        scale=lambda cosine: cosine,
        k=5,
        threshold=0.5,
        through=index.position,
        window=narrow.window,
        window_terms=narrow.terms,
    )


def examples(index: Any, names: dict[str, str], questions: Sequence[Question], embedder: Any) -> Iterator[Any]:
    """Yield for each question its candidates: (terms of the sum, the part that is not fitted, whether right)."""
    for question in questions:
        gold = {names[ref] for ref in question.gold}
        scored = MemorySearch(index, asked(index, question.text, embedder)).scored()
        rows = [
            (calibration.terms(each.features), calibration.fixed(each.features), each.memory.of in gold)
            for each in scored
            if each.reason is None and (each.features.dense is None) == (embedder is None)
        ]
        yield question, rows


def fit(data: Sequence[Any], with_dense: bool) -> Any:
    """Return the weights: of each question the likelihood that the right candidate is chosen among all, or none is.

    That there is no answer is one more candidate, whose sum is 0. So what decides the order also decides the threshold.
    A weight with a sign that makes no sense is held at 0.
    """
    asked_, width = [], 0
    for question, rows in data:
        chosen = sorted(rows, key=lambda row: -(row[0][1] + row[0][3]))[:CANDIDATES]
        chosen += [row for row in rows if row[2] and row not in chosen]
        if chosen and (not question.gold or any(row[2] for row in chosen)):
            asked_.append(chosen)
            width = max(width, len(chosen) + 1)
    names = calibration.NAMES
    x = numpy.zeros((len(asked_), width, len(names)))
    given = numpy.full((len(asked_), width), -1e9)
    right = numpy.zeros((len(asked_), width))
    given[:, 0] = 0.0
    for place, chosen in enumerate(asked_):
        for number, (terms, fixed, is_right) in enumerate(chosen, 1):
            x[place, number], given[place, number], right[place, number] = terms, fixed, is_right
        right[place, 0] = not right[place].any()
    low = [-numpy.inf if name in FREE or SIGNS.get(name) == -1 else 0.0 for name in names]
    high = [0.0 if SIGNS.get(name) == -1 else numpy.inf for name in names]
    if not with_dense:
        low = [0.0 if name in calibration.DENSE else least for name, least in zip(names, low, strict=True)]
        high = [0.0 if name in calibration.DENSE else most for name, most in zip(names, high, strict=True)]
    beta, mean, square = (numpy.zeros(len(names)) for _ in range(3))
    for step in range(1, STEPS + 1):  # Adam: the sums of candidates differ much in size
        sums = x @ beta + given
        part = numpy.exp(sums - sums.max(axis=1, keepdims=True))
        part /= part.sum(axis=1, keepdims=True)
        aim = part * right
        aim /= numpy.maximum(aim.sum(axis=1, keepdims=True), 1e-12)
        slope = numpy.einsum("qc,qck->k", part - aim, x) / len(asked_) + RIDGE * numpy.r_[0.0, beta[1:]]
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        beta = beta - 0.05 * (mean / (1 - 0.9**step)) / (numpy.sqrt(square / (1 - 0.999**step)) + 1e-8)
        beta = numpy.clip(beta, low, high)
    return beta


def shift(data: Sequence[Any], beta: Any) -> float:
    """Return the sum above which as many questions about nothing as may have a candidate."""
    tops = sorted(
        (
            max((float(numpy.array(terms) @ beta) + fixed for terms, fixed, _ in rows), default=-40.0)
            for question, rows in data
            if not question.gold
        ),
        reverse=True,
    )
    return tops[int(len(tops) * FALSE_RATE)] + CLEARANCE


def main() -> int:
    """Fit both sets of weights and print them."""
    for embedder in (embedders.check(None), None):
        data = []
        for corpus, times_ in ((make(), 1), (practice.make(), PRACTICE)):
            ledger, names = store(corpus)
            ledger.recall("warm up", embedder=embedder if embedder is not None else "none")
            questions = [each for each in corpus.questions if each.fit or times_ > 1]
            data += list(examples(index_of(ledger), names, questions, embedder)) * times_
            ledger.close()
        beta = fit(data, embedder is not None)
        beta[0] -= shift(data, beta)
        print("HYBRID" if embedder is not None else "LEXICAL", tuple(round(float(each), 2) for each in beta))
    return 0


if __name__ == "__main__":
    sys.exit(main())
