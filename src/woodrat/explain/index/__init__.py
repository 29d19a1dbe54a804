"""The index of traces: who read an observation or leaned on a decision, and what was exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.explain.index import touched
from woodrat.explain.references import references_of
from woodrat.ledger import index as log_index
from woodrat.ledger.index import Index
from woodrat.runs import steps
from woodrat.runs.steps import Read
from woodrat.training import index as training_index

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry

READ_BY: Final = "read/"
"""Reads and decisions that name an observation; its id follows."""
CITED: Final = "cited/"
"""Decisions with a fact that is what another decision chose; its run and span follow, or run and stage if recalled."""
RECALLED: Final = "recalled/"
"""Recalls that found a run; its id follows."""

MOMENT: Final = "moment/"
"""Reads that asked for a moment, or for what was true by a time; the run's id follows."""

_KINDS: Final = frozenset({"observation", "schema", "run.read", "run.decided"})


def _terms(entry: Entry) -> set[str]:
    """Return the terms an entry is listed under."""
    if entry.body is None or entry.kind == "schema":
        return set()
    if entry.kind == "observation" and b'"audit_event"' not in entry.body:
        return set()  # looking for a word in the bytes costs a fraction of reading them
    body: Any = form.decode(entry.body)
    if not isinstance(body, dict):
        return set()
    if entry.kind == "run.read":
        read = steps.part_of(entry.kind, entry.position, body)
        assert isinstance(read, Read)
        named = {READ_BY + id for id in read.observations}
        run = body.get("run")
        if read.effective is not None and isinstance(run, str):
            named.add(touched.EFFECTIVE + run)
        if isinstance(run, str) and (read.effective is not None or not read.present):
            named.add(MOMENT + run)
        return named.union(RECALLED + recalled.run for recalled in read.recalled)
    if entry.kind == "run.decided":
        cited = references_of(steps.decision_origins(body).all)
        named = {READ_BY + id for id in cited.observations}
        named.update(decision_term(*key) for key in cited.decisions)
        return named.union(stage_term(*key) for key in cited.stages)
    return training_index.terms(body)


def decision_term(run: str, span: str) -> str:
    """Return the term of the decisions that were made on what a decision chose."""
    return f"{CITED}{run}/{span}"


def stage_term(run: str, stage: str) -> str:
    """Return the term of the decisions that were made on what a recalled run chose at a stage."""
    return f"{CITED}{run}#{stage}"


INDEX: Final = Index(training_index.TRACES, _KINDS, _terms, follow=touched.follow)
"""Where recorded reads and exports are found, and decisions whose evidence was touched."""


def catch_up(context: Context, progress: Progress | None = None) -> None:
    """Bring the index of traces up to date; one that cannot be written to now stays behind."""
    log_index.catch_up(context.engine, context.tenant, INDEX, progress=progress)
