"""The indexes of runs: what they decided on, wrote and started, and who judged them; and the lists that runs are in.

Here are the rows that an entry makes by itself, and those of decisions by the subject of their run; `listing.py` has
those of lists. The write of an entry puts them (`log_rows.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.engines.records import BEFORE_ALL, IndexRow
from woodrat.ledger import entry_index
from woodrat.ledger.log_rows import Listed
from woodrat.runs import steps
from woodrat.runs.index import listing
from woodrat.runs.index.terms import (
    ABOUT,
    DECIDED,
    EVALUATION,
    EVIDENCE,
    INSIDE,
    JUDGED,
    LEANS,
    NAME,
    TRACED,
    WROTE,
)
from woodrat.state.entry_rows import position_key, term_key, text_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from woodrat.canon.ids import Ref
    from woodrat.engines.view import View
    from woodrat.ledger.index import Lookup
    from woodrat.runs.steps import Decision


def rows(entry: Listed) -> Iterator[IndexRow]:
    """Yield the rows that an entry makes by itself."""
    position, at = entry.position, position_key(entry.position)
    if entry.kind == "run.decided":
        for term in set(_evidence(entry.once(steps.decision_of))):
            yield IndexRow(NAME, text_prefix(term) + at, position)
    elif entry.kind == "run.started":
        parent, traced = listing.beginning(entry)
        if parent is not None:
            yield IndexRow(NAME, text_prefix(INSIDE + parent) + at, position)
        if traced is not None:
            yield IndexRow(NAME, text_prefix(TRACED + traced) + at, position)
    elif entry.kind == "observation":
        said = entry.said
        run, subject = said.optional.get("run"), said.fields.get("subject")
        if isinstance(run, str):
            yield IndexRow(NAME, text_prefix(WROTE + run) + at, position)
        if said.entity.type == EVALUATION and isinstance(subject, str):
            yield IndexRow(NAME, text_prefix(JUDGED + subject) + at, position)


def _evidence(made: Decision) -> Iterator[str]:
    """Yield the terms of a decision: by entity and field, and by entity and time."""
    began = made.started_at or ""
    read = ((origin.get("entity"), origin.get("field")) for origin in made.origins if origin.get("kind") == "read")
    texts = {(entity, field if isinstance(field, str) else "") for entity, field in read if isinstance(entity, str)}
    ids: dict[str, str] = {}
    for entity, field in texts:
        ref = steps.ref(entity)
        if ref is not None:
            ids[entity] = ref.id
            yield f"{EVIDENCE}{ids[entity]}/{field}"
            yield f"{DECIDED}{ids[entity]}/{began}"
    for entity, field in _read_fields(made):
        if entity in ids:
            yield f"{LEANS}{ids[entity]}/{field}"


def _read_fields(made: Decision) -> Iterator[tuple[str, str]]:
    """Yield the fields of entities that a decision depends on: what its rules looked at, or would on other values.

    What it was given besides cannot change what it comes to. One without conditions depends on all it was given.
    """
    compared = [condition.origin for condition in made.conditions]
    rules = (*made.rules, *(made.untried or ()))
    asked = {key for rule in rules if isinstance(rule.when, dict) for key in rule.when}
    given = [origin for key, origin in made.facts_origin.items() if not compared or key in asked]
    for origin in (*compared, *given):
        entity, field = origin.get("entity"), origin.get("field")
        if origin.get("kind") == "read" and isinstance(field, str) and isinstance(entity, str):
            yield entity, field


def concerned(view: View, entries: Sequence[Listed]) -> Sequence[Listed]:
    """Return those of some new entries of one kind that `follow` has to see."""
    return [entry for entry in entries if entry.kind != "observation"]


def follow(view: View, after: int, through: int, entries: Sequence[Listed]) -> Iterator[IndexRow]:
    """Yield the rows of decisions by the subjects that their runs were ever said to be about.

    A subject may be said after a decision. Such a row never ends: whoever reads it looks at the run itself.
    """
    subjects: dict[str, dict[str, int]] = {}
    for entry in entries:
        if entry.kind not in ("run.started", "run.decided") or entry.run is None:
            continue
        run = entry.run
        if run not in subjects:
            subjects[run] = listing.subjects_of(view, run, through)
        if entry.kind == "run.decided":
            started_at = steps.text(entry.value.get("started_at")) or ""
            for id, said in subjects[run].items():
                yield _about(id, started_at, entry.position, max(said, entry.position))
        elif entry.position in subjects[run].values() and entry_index.has_run(view, run, entry.position - 1):
            ids = [id for id, said in subjects[run].items() if said == entry.position]
            for step in entry_index.run_entries(view, run, after):
                if step.kind == "run.decided" and step.body is not None:
                    started_at = steps.text(Listed.of(step).value.get("started_at")) or ""
                    yield from (_about(id, started_at, step.position, entry.position) for id in ids)


def _about(subject: str, started_at: str, position: int, since: int) -> IndexRow:
    return IndexRow(NAME, term_key(f"{ABOUT}{subject}/{started_at}", position), since)


def lives(view: View, runs: Iterable[str], through: int) -> Iterator[IndexRow]:
    """Yield every row of the decisions of some runs by their subjects, up to a position, as the log has them now."""
    for run in runs:
        entries = entry_index.run_entries(view, run, through)
        listed = [Listed.of(entry) for entry in entries if entry.body is not None]
        yield from follow(view, BEFORE_ALL, through, listed)


def evidence_term(ref: Ref, field: str = "") -> str:
    """Return the term of the decisions with evidence read from a field of an entity; what those of all begin with."""
    return f"{EVIDENCE}{ref.id}/{field}"


def leaning_positions(lookup: Lookup, ref: Ref, fields: Iterable[str] | None) -> set[int]:
    """Return the positions of the decisions that depend on some fields of an entity; none: on any of them."""
    if fields is None:
        return set(lookup.positions_below(evidence_term(ref)))
    if not lookup.has_below(evidence_term(ref)):
        return set()  # asked once, instead of field by field: on most entities nothing was decided
    return {position for field in fields for position in lookup.positions(f"{LEANS}{ref.id}/{field}")}
