"""Measuring: every question of both corpora, by recall as it is, by BM25 alone, and by vectors alone."""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from bench.retrieval import written
from bench.retrieval.corpus import Corpus, Question, make, store
from woodrat.recall import index as recall_index
from woodrat.recall import words
from woodrat.recall.passage_index import PassageIndex

KINDS = ("identifier", "same", "typo", "paraphrase", "language", "negation", "time", "fact", "note", "follow-up")
GOALS = {"identifier": 100, "same": 98, "typo": 90, "paraphrase": 60, "time": 85, "language": 50}
"""Right first, in percent, where a goal is set by kind."""
FIRST, FIVE, FALSE = 75, 88, 3
"""Goals over all kinds: right first, in the first five, false; in percent."""
K1, B = 1.2, 0.75
DRAWN, WRITTEN = "drawn", "written"
CORPORA: dict[str, Callable[[], Corpus]] = {DRAWN: make, WRITTEN: written.make}
"""The corpora that are reported on; goals are set for the first."""

Answer = Callable[[str], Sequence[str]]
"""Returns what is found for a question, best first."""


def index_of(ledger: Any) -> PassageIndex:
    """Return the index that recall has of a ledger in this process."""
    (cached,) = recall_index.CACHED_INDEXES[ledger.context.engine].values()
    return cached.index


def by_bm25(index: PassageIndex) -> Answer:
    """Return plain BM25 over the same passages, with the same terms, and no threshold."""
    rows = [row for row, text in enumerate(index.texts) if text]
    counts = {row: Counter(words.terms(index.texts[row])) for row in rows}
    sizes = {row: sum(count.values()) for row, count in counts.items()}
    mean = sum(sizes.values()) / len(sizes)
    having = Counter(term for count in counts.values() for term in count)

    def answer(question: str) -> list[str]:
        scores: dict[str, float] = {}
        for row in rows:
            total = 0.0
            for term in set(words.terms(question)):
                if count := counts[row][term]:
                    rare = math.log(1 + (len(rows) - having[term] + 0.5) / (having[term] + 0.5))
                    total += rare * count * (K1 + 1) / (count + K1 * (1 - B + B * sizes[row] / mean))
            of = index.memories[index.memory_of[row]].of
            scores[of] = max(scores.get(of, 0.0), total)
        return sorted(scores, key=lambda of: (-scores[of], of))[:5]

    return answer


def by_vectors(index: PassageIndex, embedder: Any) -> Answer:
    """Return the nearest vectors alone, with no threshold."""
    import numpy

    from woodrat.recall import embedders, vectors

    rows = [row for row, square in enumerate(index.squares) if square]
    matrix = index.vectors[rows]
    lengths = numpy.sqrt([index.squares[row] for row in rows])

    def answer(question: str) -> list[str]:
        wanted = vectors.as_numpy(embedders.embed(embedder, [question])[0])
        order = numpy.argsort(-(matrix @ wanted) / lengths, kind="stable")[:60]
        return list(dict.fromkeys(index.memories[index.memory_of[rows[place]]].of for place in order))[:5]

    return answer


def by_recall(ledger: Any, embedder: Any = None, threshold: float = 0.5) -> Answer:
    """Return recall as it is, at its default threshold or another."""
    return lambda asked: [hit.ref for hit in ledger.recall(asked, k=5, threshold=threshold, embedder=embedder).hits]


Tally = dict[str, list[int]]
"""By kind: questions, right first, in the first five, anything found."""


def measure(
    questions: Sequence[Question], names: dict[str, str], answer: Answer, misses: list[Any] | None = None
) -> Tally:
    """Ask every question; return how it went by kind."""
    found: Tally = defaultdict(lambda: [0, 0, 0, 0])
    for question in questions:
        gold = {names[ref] for ref in question.gold}
        answers = list(answer(question.text))
        tally = found[question.kind]
        tally[0] += 1
        tally[1] += bool(answers and answers[0] in gold)
        tally[2] += bool(gold.intersection(answers[:5]))
        tally[3] += bool(answers)
        if misses is not None and (
            (gold and answers[:1] and answers[0] not in gold) or (gold and not answers) or (not gold and answers)
        ):
            misses.append((question, answers))
    return found


def report(tallies: dict[str, Tally]) -> list[str]:
    """Return a table: by kind and way of finding, right first and in the first five, in percent."""
    lines = [f"{'kind':<12}{'asked':>6}  " + "".join(f"{way:>20}" for way in tallies)]
    kinds = [kind for kind in KINDS if any(kind in tally for tally in tallies.values())]
    for kind in (*kinds, "all"):
        cells, asked = [], 0
        for tally in tallies.values():
            chosen = [tally[each] for each in kinds] if kind == "all" else [tally[kind]]
            asked, first, five = (sum(each[place] for each in chosen) for place in range(3))
            cells.append(f"{100 * first / max(asked, 1):>11.0f} %{100 * five / max(asked, 1):>5.0f} %")
        lines.append(f"{kind:<12}{asked:>6}  " + "".join(f"{cell:>20}" for cell in cells))
    nothing = next(iter(tallies.values()))["nothing"]
    if nothing[0]:
        cells = [f"{tally['nothing'][3]:>11} of {tally['nothing'][0]}" for tally in tallies.values()]
        lines.append(f"{'false':<12}{nothing[0]:>6}  " + "".join(f"{cell:>20}" for cell in cells))
    return lines


def main(arguments: Sequence[str]) -> int:
    """Run the bench; return 1 where a goal is missed on the drawn corpus."""
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("--corpus", choices=CORPORA, action="append", help="one of the corpora alone")
    parser.add_argument("--embedder", default=None, help="another embedder, or none")
    parser.add_argument("--misses", action="store_true", help="list the questions that went wrong")
    given = parser.parse_args(arguments)
    status = 0
    for name in given.corpus or CORPORA:
        tally = measured(name, CORPORA[name](), given.embedder, given.misses)
        status |= name == DRAWN and not reached(tally)
    return status


def measured(name: str, corpus: Corpus, embedder: str | None, with_misses: bool) -> Tally:
    """Measure one corpus and print how it went; return the tally of recall."""
    ledger, names = store(corpus)
    questions = [question for question in corpus.questions if not question.fit]
    print(f"{name}: {len(corpus.runs)} runs, {len(corpus.facts)} facts, {len(corpus.notes)} notes", end="; ")
    print(f"{len(questions)} questions")
    begun = time.process_time()
    first = ledger.recall("warm up", embedder=embedder)
    print(f"embedder {first.embedder}, {time.process_time() - begun:.1f} s of CPU for the first recall")
    misses: list[Any] = []
    tallies = {
        "recall": measure(questions, names, by_recall(ledger, embedder), misses),
        "no threshold": measure(questions, names, by_recall(ledger, embedder, threshold=0.0)),
    }
    index = index_of(ledger)
    tallies["BM25 alone"] = measure(questions, names, by_bm25(index))
    if first.embedder != "none":
        from woodrat.recall import embedders

        tallies["vectors alone"] = measure(questions, names, by_vectors(index, embedders.check(embedder)))
    print("\n".join(report(tallies)))
    for question, answers in misses if with_misses else ():
        wanted = [names[ref] for ref in question.gold]
        print(f"{question.kind}: {question.text}\n   wanted {wanted}, found {answers[:3]}")
    ledger.close()
    return tallies["recall"]


def reached(tally: Tally) -> bool:
    """Return whether all goals are reached."""
    asked = sum(tally[kind][0] for kind in KINDS)
    first, five = (100 * sum(tally[kind][place] for kind in KINDS) / asked for place in (1, 2))
    nothing = tally["nothing"]
    return (
        first >= FIRST
        and five >= FIVE
        and all(100 * tally[kind][1] >= goal * tally[kind][0] for kind, goal in GOALS.items())
        and 100 * nothing[3] <= FALSE * nothing[0]
    )


__all__ = ["Corpus", "main"]
