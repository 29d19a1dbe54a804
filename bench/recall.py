"""Recall: questions over many runs, against a bare numpy scan of the very vectors they are answered from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import woodrat
from bench.rows import Row
from bench.stage import Stage
from bench.timing import Figure, take_turns
from woodrat.api.ledger import Ledger
from woodrat.canon import form
from woodrat.canon.digest import base32
from woodrat.canon.ids import Ref
from woodrat.ledger.write import Draft, Writer
from woodrat.recall import index as recall_index
from woodrat.recall import vectors, words
from woodrat.state.meaning import RunEntry

RUNS_QUICK = (1_000, 10_000)
RUNS = (1_000, 10_000, 100_000)
"""How many runs there are."""
GOAL_RUNS, GOAL = 100_000, 3.0
"""What is asked for, and of how many runs."""
PER_WRITE = 2_000

WORDS = """
account address agent amount appeal approval area audit balance bank batch branch budget building claim client
collateral company contract cost country credit customer damage deadline debt decision delay delivery deposit discount
document driver employer energy equipment estate evidence exception export factory fee field flat fleet freight garden
grant growth harbour history holiday hotel house income increase index industry insurance interest inventory invoice
journey kitchen labour lawyer lease letter liability licence limit machine market material meeting merger model month
mortgage note notice office order owner parcel partner payment pension permit plan policy port premium price product
profit project property proposal quality quarter rate reason record refund region rent repair report request reserve
review risk road roof salary sale school season service shipment shop signature site source staff stock store student
summer supplier supply survey system tax tenant term ticket tool trade transfer travel truck vehicle vendor visit
wage wall warehouse waste water weather winter workshop
""".split()  # noqa: SIM905


def rows(quick: bool) -> list[Row]:
    """Return what is measured: recall over more and more runs; only the last has a goal."""
    return [
        Row(
            f"recall-{runs}",
            f"recall over {runs:,} runs, against one numpy product with the same vectors",
            GOAL if runs == GOAL_RUNS else None,
            _measure(runs),
        )
        for runs in (RUNS_QUICK if quick else RUNS)
    ]


def _measure(runs: int) -> Callable[[Stage], Figure]:
    return lambda stage: recall(stage.folder / f"recall-{runs}.db", runs, stage.scale.seconds)


def recall(path: Path, runs: int, seconds: float) -> Figure:
    """Measure questions that name nothing by number, so that every vector is compared."""
    numpy: Any = import_module("numpy")  # the extra `recall`
    random = Random(path.stem)
    with woodrat.open(path, agent="bench") as ledger:
        fill(ledger, runs, random)
        embedder = HashedWords()
        ledger.reindex(embedder)
        kept = recall_index.cached_index(ledger.context, embedder)
        assert ledger.recall("warm", threshold=0, embedder=embedder) is not None
        matrix = kept.index.vectors[: len(kept.index)]

        def ours(question: str) -> None:
            ledger.recall(question, embedder=embedder)

        def against(question: str) -> Any:
            wanted = vectors.as_numpy(vectors.pack(embedder.embed([question])[0], embedder.dimension))
            return int(numpy.argmax(matrix @ wanted))

        turns = ([f"Why was the {' '.join(random.sample(WORDS, 3))} refused?"] * 3 for _ in range(60))
        return take_turns(turns, ours, against, warm=2, seconds=seconds)


class HashedWords:
    """Bags of words as vectors of the size of the model's: what is measured is the search, not the model."""

    id, dimension = "bench-hashed-words", 384

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vector of each text."""
        found = []
        for text in texts:
            vector = [0.0] * self.dimension
            for term in words.terms(text):
                vector[crc32(term.encode()) % self.dimension] += 1.0
            found.append(vector)
        return found


def fill(ledger: Ledger, runs: int, random: Random) -> None:
    """Record so many runs, many in one write: how they came is not measured here."""
    numbers = count()
    for first in range(0, runs, PER_WRITE):
        some = [entry for _ in range(min(PER_WRITE, runs - first)) for entry in run_entries(next(numbers), random)]

        def plan(draft: Draft, some: list[tuple[str, bytes, RunEntry]] = some) -> None:
            for kind, body, meaning in some:
                draft.add(kind, body, meaning)

        Writer(ledger.context).write("bench", {}, plan)


def run_entries(number: int, random: Random) -> Iterator[tuple[str, bytes, RunEntry]]:
    """Yield the entries of one run: what was asked, one decision, the answer."""
    id = f"run_{base32(number.to_bytes(16, 'big'))}"
    subject = Ref("request", str(number))
    about, score = " ".join(random.sample(WORDS, 5)), random.randrange(300, 850)
    chosen = "refused" if score < 600 else "granted"
    condition = {"key": "score", "op": "lt", "operand": 600, "actual": score, "result": score < 600}
    bodies: tuple[tuple[str, dict[str, Any]], ...] = (
        ("run.started", {"agent": "bench", "query": f"Should we grant the {about}?", "subject": str(subject)}),
        (
            "run.decided",
            {
                "stage": "grant",
                "mode": "decide",
                "chosen": chosen,
                "rule": "Score",
                "rules": [{"label": "Score", "chosen": chosen, "matched": True, "conditions": [condition]}],
            },
        ),
        ("run.ended", {"status": "done", "answer": f"Request {number} for the {about} was {chosen}, score {score}."}),
    )
    for step, (kind, said) in enumerate(bodies):
        place = {"run": id, "step": step, "span": f"{step:016x}", "started_at": "2026-01-01T00:00:00.000000Z"}
        yield kind, form.encode({**place, **said}), RunEntry(id, subject if kind == "run.started" else None)
