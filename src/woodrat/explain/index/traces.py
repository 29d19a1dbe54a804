"""The index of traces: who read an observation or leaned on a decision, and what was exported.

Decisions whose evidence was touched have an index of their own (`touched.py`). The write of an entry puts the rows of
both (`log_rows.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.engines.records import IndexRow
from woodrat.explain.index import touched
from woodrat.explain.index.touched import concerned as concerned
from woodrat.explain.index.touched import follow as follow
from woodrat.explain.references import references_of
from woodrat.runs import steps
from woodrat.runs.steps import Read
from woodrat.state.entry_rows import term_key
from woodrat.training.exports import EXPORTS, is_export

if TYPE_CHECKING:
    from collections.abc import Iterator

    from woodrat.ledger.log_rows import Listed

TRACES: Final = "traces"
"""Of the index."""
READ_BY: Final = "read/"
"""Reads and decisions that name an observation; its id follows."""
CITED: Final = "cited/"
"""Decisions with a fact that is what another decision chose; its run and span follow, or run and stage if recalled."""
RECALLED: Final = "recalled/"
"""Recalls that found a run; its id follows."""

MOMENT: Final = "moment/"
"""Reads that asked for a moment, or for what was true by a time; the run's id follows."""


def rows(entry: Listed) -> Iterator[IndexRow]:
    """Yield the rows that an entry makes by itself."""
    for term in _terms(entry):
        yield IndexRow(TRACES, term_key(term, entry.position), entry.position)
    if entry.kind == "run.read" and entry.run is not None and b'"effective"' in entry.body and _effective(entry):
        yield IndexRow(touched.EFFECTIVE, term_key(entry.run, entry.position), entry.position)


def _terms(entry: Listed) -> set[str]:
    """Return the terms an entry is listed under."""
    if entry.kind == "observation":
        return {EXPORTS} if b'"audit_event"' in entry.body and is_export(entry.said) else set()
    body: Any = entry.value if entry.kind in ("run.read", "run.decided") else None
    if not isinstance(body, dict):
        return set()
    if entry.kind == "run.read":
        read = steps.part_of(entry.kind, entry.position, body)
        assert isinstance(read, Read)
        named = {READ_BY + id for id in read.observations}
        if entry.run is not None and (read.effective is not None or not read.present):
            named.add(MOMENT + entry.run)
        return named.union(RECALLED + recalled.run for recalled in read.recalled)
    cited = references_of(entry.once(steps.decision_of).origins)
    named = {READ_BY + id for id in cited.observations}
    named.update(decision_term(*key) for key in cited.decisions)
    return named.union(stage_term(*key) for key in cited.stages)


def _effective(entry: Listed) -> bool:
    read = steps.part_of(entry.kind, entry.position, entry.value)
    return isinstance(read, Read) and read.effective is not None


def decision_term(run: str, span: str) -> str:
    """Return the term of the decisions that were made on what a decision chose."""
    return f"{CITED}{run}/{span}"


def stage_term(run: str, stage: str) -> str:
    """Return the term of the decisions that were made on what a recalled run chose at a stage."""
    return f"{CITED}{run}#{stage}"
