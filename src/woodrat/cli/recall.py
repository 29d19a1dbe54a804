"""Recall: the commands that find past runs for a question, and rebuild the index behind that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.cli.command import UPDATE, Answer, Call
from woodrat.cli.progress import bar
from woodrat.cli.tables import DIM, GREEN, YELLOW, Paper, time
from woodrat.errors import Fault, Refused

if TYPE_CHECKING:
    from woodrat.recall.reader import Recall


def recall(call: Call) -> Answer:
    """Find the runs a question is about."""
    given = call.given
    asked: dict[str, Any] = {
        name: getattr(given, name)
        for name in ("scope", "principal", "conversation", "k", "projection", "budget", "ttl", "embedder")
        if getattr(given, name) is not None
    }
    if given.threshold is not None:
        asked["threshold"] = _number(given.threshold)
    found = call.caught_up().recall(given.question, **asked)
    return Answer(found.to_json(), lambda paper: _print(paper, found))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        fault = Fault("--threshold", f'expected a number, got "{text}"', "Use a number from -1 to 1, such as 0.5.")
        raise Refused([fault], "Nothing was read.") from None


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
        found = ledger.reindex(embedder=call.given.embedder, progress=tell)

    def text(paper: Paper) -> None:
        paper.line(f"Indexed {found.passages} passages of {found.runs} runs with {found.embedder}.", GREEN)

    return Answer(found.to_json(), text)
