"""Recall: the commands that find past runs for a question, and rebuild the index behind that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.cli.command import UPDATE, Answer, Call
from woodrat.cli.progress import bar
from woodrat.cli.tables import DIM, GREEN, YELLOW, Paper, time

if TYPE_CHECKING:
    from woodrat.recall.reader import Recall


def recall(call: Call) -> Answer:
    """Find the runs a question is about."""
    found = call.ask(call.caught_up(), embedder=call.given.embedder)
    return Answer(found.to_json(), lambda paper: _print(paper, found))


def _print(paper: Paper, found: Recall) -> None:
    if found:
        for line in found.text.split("\n"):
            paper.line(line)
        for hit in found.hits:
            paper.line(f"  {paper.id(hit.run)}, score {hit.score:.3f} with what it {hit.passage}", DIM)
    else:
        paper.line(f"No run passes the threshold of {found.threshold:g} in the scope {found.scope}.", YELLOW)
    if found.rejected:
        paper.line("Closest runs below the threshold:")
        cells = [
            (f"{each.score:.3f}", each.reason, each.query or "", time(each.started_at), each.run)
            for each in found.rejected
        ]
        paper.table(("SCORE", "REASON", "QUESTION", "STARTED AT", "RUN"), cells)


def reindex(call: Call) -> Answer:
    """Embed all runs again."""
    ledger = call.ledger(UPDATE)
    with bar("Reindexing", "entries") as tell:
        found = call.ask(ledger, embedder=call.given.embedder, progress=tell)

    def text(paper: Paper) -> None:
        paper.line(f"Indexed {found.passages} passages of {found.runs} runs with {found.embedder}.", GREEN)

    return Answer(found.to_json(), text)
