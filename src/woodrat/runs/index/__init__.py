"""The indexes of runs: what they decided on, wrote and started, and who judged them; and the lists that runs are in.

All about them is declared here: the terms that an entry is listed under by itself, and the rows that depend on earlier
entries too, of decisions by subject (`decisions.py`) and of lists (`listing.py`). They trail the log and are brought up
to date before the present is asked about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.ledger import index as log_index
from woodrat.ledger.index import INDEX_ENTRIES, Index
from woodrat.runs import steps, trace
from woodrat.runs.index import decisions, grounds, listing
from woodrat.runs.index.terms import (
    DECIDED,
    EVALUATION,
    EVIDENCE,
    INSIDE,
    JUDGED,
    LEANS,
    LISTS,
    NAME,
    TRACED,
    WROTE,
)
from woodrat.state.meaning import RUN_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from woodrat.canon.ids import Ref, TenantId
    from woodrat.engines.port import Engine
    from woodrat.ledger.index import Lookup
    from woodrat.log.entry import Entry
    from woodrat.runs.steps import DecisionOrigins

_KINDS: Final = frozenset({"observation", "run.started", "run.decided"})
_LIST_KINDS: Final = frozenset({"observation", "schema", *RUN_KINDS})


def _terms(entry: Entry) -> set[str]:
    """Return the terms an entry is listed under."""
    data = entry.body
    if data is None:
        return set()
    if entry.kind == "run.decided":
        body: Any = form.decode(data)
        return set(_evidence(body)) if isinstance(body, dict) else set()
    if entry.kind == "run.started":
        if b'"parent"' not in data and b'"trace"' not in data:
            return set()
        began: Any = form.decode(data)
        parent, traced = began.get("parent"), trace.trace_of(began.get("trace"))
        above = parent.get("run") if isinstance(parent, dict) else None
        terms = {INSIDE + above} if isinstance(above, str) else set()
        return terms if traced is None else {*terms, TRACED + traced}
    # Most observations carry no run; looking for the key in the bytes costs a fraction of reading them.
    terms = set()
    if b'"run":"' in data or b'"type":"evaluation"' in data:
        body = form.decode(data)
        if isinstance(run := body.get("run"), str):
            terms.add(WROTE + run)
        subject = body.get("fields", {}).get("subject")
        if body["entity"]["type"] == EVALUATION and isinstance(subject, str):
            terms.add(JUDGED + subject)
    return terms


def _evidence(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the terms of a decision: by entity and field, and by entity and time."""
    origins = steps.decision_origins(body)
    began = steps.text(body.get("started_at")) or ""
    read = ((origin.get("entity"), origin.get("field")) for origin in origins.all if origin.get("kind") == "read")
    texts = {(entity, field if isinstance(field, str) else "") for entity, field in read if isinstance(entity, str)}
    ids: dict[str, str] = {}
    for entity, field in texts:
        ref = steps.ref(entity)
        if ref is not None:
            ids[entity] = ref.id
            yield f"{EVIDENCE}{ids[entity]}/{field}"
            yield f"{DECIDED}{ids[entity]}/{began}"
    for entity, field in _read_fields(origins):
        if entity in ids:
            yield f"{LEANS}{ids[entity]}/{field}"


def _read_fields(origins: DecisionOrigins) -> Iterator[tuple[str, str]]:
    """Yield the fields of entities that a decision depends on: what its rules looked at, or would on other values.

    What it was given besides cannot change what it comes to. One without conditions depends on all it was given.
    """
    given = [origin for key, origin in origins.facts.items() if not origins.conditions or key in origins.asked]
    for origin in (*origins.conditions, *given):
        entity, field = origin.get("entity"), origin.get("field")
        if origin.get("kind") == "read" and isinstance(field, str) and isinstance(entity, str):
            yield entity, field


def evidence_term(ref: Ref, field: str = "") -> str:
    """Return the term of the decisions with evidence read from a field of an entity; what those of all begin with."""
    return f"{EVIDENCE}{ref.id}/{field}"


def _list_terms(entry: Entry) -> set[str]:
    """Return the terms of an entry by which it is known which runs it may list otherwise."""
    data = entry.body
    if data is None or entry.kind not in ("observation", "run.started"):
        return set()
    if entry.kind == "observation" and b'"type":"evaluation"' not in data:
        return set()
    return {term for term in _terms(entry) if term.startswith((INSIDE, JUDGED))}


INDEX: Final = Index(NAME, _KINDS, _terms, grounds.pairs, decisions.follow)
"""Where what runs did is found."""
LIST_INDEX: Final = Index(LISTS, _LIST_KINDS, _list_terms, follow=listing.follow)
"""Where lists find runs."""


DECISIONS: Final = Index(NAME, frozenset({"run.decided"}), _terms, grounds.pairs)
"""The same, for whoever asks about decisions alone: what is not covered yet is read sooner."""


def catch_up(engine: Engine, tenant: TenantId, entries_max: int = INDEX_ENTRIES, *, lists: bool = False) -> None:
    """Bring the index of runs up to date, and that of their lists; one that cannot be written to now stays behind."""
    log_index.catch_up(engine, tenant, INDEX, entries_max)
    if lists:
        log_index.catch_up(engine, tenant, LIST_INDEX, entries_max)


def leaning_positions(lookup: Lookup, ref: Ref, fields: Iterable[str] | None) -> set[int]:
    """Return the positions of the decisions that depend on some fields of an entity; none: on any of them."""
    if fields is None:
        return set(lookup.positions_below(evidence_term(ref)))
    if not lookup.has_below(evidence_term(ref)):
        return set()  # asked once, instead of field by field: on most entities nothing was decided
    return {position for field in fields for position in lookup.positions(f"{LEANS}{ref.id}/{field}")}
