"""Fitting: the weights of `recall/calibration.py`, from the questions that the corpus sets apart for it.

Each candidate of each question is an example: right, or not. A question about nothing has only wrong ones, and counts
more, since one false answer costs more trust than one that is missing. The sum is then shifted so that at 0.5 one in
fifty questions about nothing has an answer. Run it with `python -m bench.retrieval.fit`; it prints the weights.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from bench.retrieval.corpus import NOW, Question, make, store
from bench.retrieval.measure import index_of
from woodrat.canon import moment
from woodrat.recall import calibration, embedders, times, vectors
from woodrat.recall.query import query_of
from woodrat.recall.search import Question as Asked
from woodrat.recall.search import Search, narrows

FALSE_RATE = 0.02
"""What part of questions about nothing may have an answer."""
SIGNS = {"missing": -1, "missing_name": -1}
"""Terms whose weights are at most 0; all others but the first are at least 0."""


def asked(index: Any, text: str, embedder: Any) -> Asked:
    """Return a question as recall asks it."""
    now = moment.from_micros(int(NOW.timestamp() * 1_000_000))
    said = times.understood(text, now)
    vector = None if embedder is None else vectors.as_numpy(embedders.embed(embedder, [text])[0])
    window = None if said is None else (times.micros(said.since), times.micros(said.until))
    narrowed = said is not None and window is not None and narrows(index, window, said.relative)
    bare = f"{text[: said.start]} {text[said.end :]}" if said is not None and narrowed else text
    return Asked(
        query=query_of(bare, index, len(index)),
        vector=vector,
        square=0.0 if vector is None else float(vector @ vector),
        scale=lambda cosine: cosine,
        k=5,
        threshold=0.5,
        through=index.position,
        window=window if narrowed else None,
    )


def examples(index: Any, names: dict[str, str], questions: Sequence[Question], embedder: Any) -> Iterator[Any]:
    """Yield for each question its candidates: (terms of the sum, whether right, whether excluded otherwise)."""
    for question in questions:
        gold = {names[ref] for ref in question.gold}
        search = Search(index, asked(index, question.text, embedder))
        scored = search.scored()
        judged = [search.judged(each) for each in scored]
        rows = [
            (calibration.terms(each.features), each.memory.of in gold)
            for each in judged
            if each.reason is None and (each.features.dense is None) == (embedder is None)
        ]
        yield question, rows


def fit(data: Sequence[Any], with_dense: bool) -> Any:
    """Return the weights: logistic regression by projected gradient descent, each question weighing the same."""
    features, labels, weights = [], [], []
    for question, rows in data:
        if not rows:
            continue
        wrong = max(sum(not right for _, right in rows), 1)
        for terms, right in sorted(rows, key=lambda row: -sum(row[0]))[:40]:
            features.append(terms)
            labels.append(float(right))
            weights.append(1.0 if right else (3.0 if not question.gold else 1.0) / min(wrong, 40) * 3)
    x, y, w = numpy.array(features), numpy.array(labels), numpy.array(weights)
    w /= w.sum()
    if not with_dense:
        x[:, [1, 2, 10]] = 0
    beta = numpy.zeros(x.shape[1])
    low = numpy.array([-numpy.inf, *(-numpy.inf if SIGNS.get(name) == -1 else 0.0 for name in calibration.NAMES[1:])])
    high = numpy.array([numpy.inf, *(0.0 if SIGNS.get(name) == -1 else numpy.inf for name in calibration.NAMES[1:])])
    speed = 4.0
    for _ in range(30_000):
        p = 1 / (1 + numpy.exp(-numpy.clip(x @ beta, -40, 40)))
        beta = numpy.clip(beta - speed * (x.T @ (w * (p - y)) + 0.0003 * numpy.r_[0, beta[1:]]), low, high)
    return beta


def shift(data: Sequence[Any], beta: Any, with_dense: bool) -> float:
    """Return the sum above which one in fifty questions about nothing has a candidate."""
    tops = []
    for question, rows in data:
        if not question.gold:
            values = [numpy.array(terms) @ beta for terms, _ in rows]
            tops.append(max(values, default=-40.0))
    tops.sort(reverse=True)
    place = int(len(tops) * FALSE_RATE)
    return float(tops[place]) + 0.05


def main() -> int:
    """Fit both sets of weights and print them."""
    corpus = make()
    for embedder in (embedders.check(None), None):
        ledger, names = store(corpus)
        ledger.recall("warm up", embedder=embedder if embedder is not None else "none")
        index = index_of(ledger)
        data = list(examples(index, names, [each for each in corpus.questions if each.fit], embedder))
        beta = fit(data, embedder is not None)
        beta[0] -= shift(data, beta, embedder is not None)
        print("HYBRID" if embedder is not None else "LEXICAL", [round(float(each), 2) for each in beta])
        ledger.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
