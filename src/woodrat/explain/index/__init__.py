"""The index of traces: who read an observation or leaned on a decision, what was said from where, what was exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.explain.index import touched
from woodrat.explain.references import references_of
from woodrat.ledger import index as log_index
from woodrat.ledger.index import Index
from woodrat.runs import steps
from woodrat.runs.steps import Decision, Read
from woodrat.training import index as training_index

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry

READ_BY: Final = "read/"
"""Reads and decisions that name an observation; its id follows."""
SAID_FROM: Final = "from/"
"""Observations that name a source or a reading; its name follows."""
SAID_BY: Final = "by/"
"""Observations of an agent; its name follows."""
DELIVERED: Final = "delivered/"
"""Deliveries of a source; its name follows."""
CITED: Final = "cited/"
"""Decisions with a fact that is what another decision chose; its run and span follow, or run and stage if recalled."""
RECALLED: Final = "recalled/"
"""Recalls that found a run; its id follows."""
READING: Final = "reading/"
"""The beginning and the end of a reading; its id follows."""

_KINDS: Final = frozenset(
    {"observation", "schema", "received", "interpretation.started", "interpretation.ended", "run.read", "run.decided"}
)


def _terms(entry: Entry) -> set[str]:
    """Return the terms an entry is listed under."""
    if entry.body is None or entry.kind == "schema":
        return set()
    body: Any = form.decode(entry.body)
    if not isinstance(body, dict):
        return set()
    if entry.kind in ("run.read", "run.decided"):
        part = steps.part_of(entry.kind, entry.position, body)
        assert isinstance(part, Read | Decision)
        named = {READ_BY + id for id in part.observations}
        if isinstance(part, Read):
            run = body.get("run")
            if part.effective is not None and isinstance(run, str):
                named.add(touched.EFFECTIVE + run)
            return named.union(RECALLED + recalled.run for recalled in part.recalled)
        cited = references_of(part.origins)
        named.update(decision_term(*key) for key in cited.decisions)
        return named.union(stage_term(*key) for key in cited.stages)
    if entry.kind == "received":
        return {DELIVERED + body["source"]}
    if entry.kind != "observation":
        return {READING + body["interpretation"]}
    terms = {SAID_BY + body["agent"]}
    terms.update(SAID_FROM + body[name] for name in ("source", "interpretation") if isinstance(body.get(name), str))
    return terms | training_index.terms(body)


def decision_term(run: str, span: str) -> str:
    """Return the term of the decisions that were made on what a decision chose."""
    return f"{CITED}{run}/{span}"


def stage_term(run: str, stage: str) -> str:
    """Return the term of the decisions that were made on what a recalled run chose at a stage."""
    return f"{CITED}{run}#{stage}"


INDEX: Final = Index(training_index.TRACES, _KINDS, _terms, follow=touched.follow)
"""Where recorded reads and the sources of observations are found, and decisions whose evidence was touched."""


def catch_up(context: Context, progress: Progress | None = None) -> None:
    """Bring the index of traces up to date; one that cannot be written to now stays behind."""
    log_index.catch_up(context.engine, context.tenant, INDEX, progress=progress)
