"""Decisions by the subject of their run, in the order of their times: what `why` is asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.engines.port import BEFORE_ALL, IndexRow
from woodrat.ledger import entry_index
from woodrat.ledger.index import term_key
from woodrat.runs import steps
from woodrat.runs.index.terms import ABOUT, NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from woodrat.engines.port import View
    from woodrat.log.entry import Entry

_KINDS: Final = frozenset({"run.started", "run.decided"})


def follow(view: View, after: int, through: int, entries: Sequence[Entry]) -> Iterator[IndexRow]:
    """Yield the rows of decisions by the subjects that their runs were ever said to be about.

    A subject may be said after a decision. Such a row never ends: whoever reads it looks at the run itself.
    """
    for id, recent in runs_of(entries).items():
        subjects: dict[str, int] = {}
        decided: list[tuple[int, str]] = []
        before = [
            (entry, None)
            for entry in entry_index.run_entries(view, id, after)
            if entry.kind in _KINDS and entry.body is not None
        ]
        for entry, known in [*before, *recent]:
            assert entry.body is not None
            body: Any = form.decode(entry.body) if known is None else known
            if entry.kind == "run.decided":
                decided.append((entry.position, steps.text(body.get("started_at")) or ""))
            elif (subject := steps.ref(body.get("subject"))) is not None:
                subjects.setdefault(subject.id, entry.position)
        for subject_id, said in subjects.items():
            for position, started_at in decided:
                since = max(said, position)
                if since > after:
                    yield IndexRow(NAME, term_key(f"{ABOUT}{subject_id}/{started_at}", position), since)


def lives(view: View, runs: Iterable[str], through: int) -> Iterator[IndexRow]:
    """Yield every row of some runs up to a position, as the log has them now."""
    for run in runs:
        entries = [entry for entry in entry_index.run_entries(view, run, through) if entry.kind in _KINDS]
        yield from follow(view, BEFORE_ALL, through, entries)


def runs_of(entries: Iterable[Entry]) -> dict[str, list[tuple[Entry, Any]]]:
    """Return the runs that some entries begin or are decisions of, each with those entries and their bodies."""
    runs: dict[str, list[tuple[Entry, Any]]] = {}
    for entry in entries:
        if entry.kind in _KINDS and entry.body is not None:
            body: Any = form.decode(entry.body)
            if isinstance(body.get("run"), str):
                runs.setdefault(body["run"], []).append((entry, body))
    return runs
