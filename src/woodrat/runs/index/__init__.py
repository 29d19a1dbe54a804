"""The indexes of runs: what they decided on, wrote and started, and who judged them; and the lists that runs are in.

Here are the rows that an entry makes by itself, and those of decisions by the subject of their run; `listing.py` has
those of lists. The write of an entry puts them (`log_rows.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.canon import form
from woodrat.engines.records import BEFORE_ALL, IndexRow
from woodrat.ledger import entry_index
from woodrat.ledger.index import Lookup
from woodrat.ledger.log_rows import Listed
from woodrat.runs import steps
from woodrat.runs.index import listing
from woodrat.runs.index.terms import (
    ABOUT,
    EVALUATION,
    GIVEN,
    INSIDE,
    JUDGED,
    LEANS,
    NAME,
    TRACED,
    WROTE,
)
from woodrat.state.entry_rows import position_key, term_key, text_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from woodrat.canon.ids import Ref
    from woodrat.engines.view import View
    from woodrat.log.entry import Entry
    from woodrat.runs.steps import Decision


def rows(entry: Listed) -> Iterator[IndexRow]:
    """Yield the rows that an entry makes by itself."""
    position, at = entry.position, position_key(entry.position)
    if entry.kind == "run.decided":
        made = entry.once(steps.decision_of)
        for id, fields in entry.once(_evidence, made).items():
            yield _about(id, made.started_at or "", position, position)
            for field, leans in fields.items():
                yield IndexRow(NAME, text_prefix(f"{LEANS if leans else GIVEN}{id}/{field}") + at, position)
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


def _evidence(made: Decision) -> dict[str, dict[str, bool]]:
    """Return the fields that a decision was read from, by entity and field, and whether it depends on each.

    It depends on what its rules looked at, or would on other values; what it was given besides cannot change what it
    comes to. One without conditions depends on all it was given.
    """
    compared = [(condition.key, condition.origin) for condition in made.conditions]
    rules = (*made.rules, *(made.untried or ()))
    asked = {key for rule in rules if isinstance(rule.when, dict) for key in rule.when}
    found: dict[str, dict[str, bool]] = {}
    by_entity: dict[str, dict[str, bool] | None] = {}
    for place, (key, origin) in enumerate((*compared, *made.facts_origin.items())):
        entity = origin.get("entity") if isinstance(origin, dict) and origin.get("kind") == "read" else None
        if not isinstance(entity, str):
            continue
        if entity not in by_entity:
            ref = steps.ref(entity)
            by_entity[entity] = None if ref is None else found.setdefault(ref.id, {})
        fields = by_entity[entity]
        if fields is not None:
            field = origin.get("field")
            depends = place < len(compared) or not compared or key in asked
            name = field if isinstance(field, str) else ""
            fields[name] = fields.get(name, False) or (depends and name is field)
    return found


def concerned(view: View, entries: Sequence[Listed]) -> Sequence[Listed]:
    """Return those of some new entries of one kind that `follow` has to see."""
    return [entry for entry in entries if entry.kind != "observation"]


def follow(view: View, after: int, through: int, entries: Sequence[Listed]) -> Iterator[IndexRow]:
    """Yield the rows of decisions by the subjects that their runs were ever said to be about, unless read from them.

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
            yield from _by_subject(entry, subjects[run])
        elif entry.position in subjects[run].values() and entry_index.has_run(view, run, entry.position - 1):
            begun = {id: said for id, said in subjects[run].items() if said == entry.position}
            for step in entry_index.run_entries(view, run, after):
                if step.kind == "run.decided" and step.body is not None:
                    yield from _by_subject(Listed.of(step), begun)


def _by_subject(entry: Listed, subjects: Mapping[str, int]) -> Iterator[IndexRow]:
    """Yield the rows of a decision by subjects of its run that it was not read from: by those it is listed itself."""
    if subjects:
        made = entry.once(steps.decision_of)
        read = entry.once(_evidence, made)
        for id, said in subjects.items():
            if id not in read:
                yield _about(id, made.started_at or "", entry.position, max(said, entry.position))


def _about(subject: str, started_at: str, position: int, since: int) -> IndexRow:
    return IndexRow(NAME, term_key(f"{ABOUT}{subject}/{started_at}", position), since)


def lives(view: View, runs: Iterable[str], through: int) -> Iterator[IndexRow]:
    """Yield every row of the decisions of some runs by their subjects, up to a position, as the log has them now."""
    for run in runs:
        entries = entry_index.run_entries(view, run, through)
        listed = [Listed.of(entry) for entry in entries if entry.body is not None]
        yield from follow(view, BEFORE_ALL, through, listed)


def evidence_positions(lookup: Lookup, ref: Ref, field: str | None = None) -> list[int]:
    """Return the positions of the decisions with evidence read from an entity, or from one field of it, in order."""
    if field is None:
        return sorted({at for term in (GIVEN, LEANS) for at in lookup.positions_below(f"{term}{ref.id}/")})
    return sorted({at for term in (GIVEN, LEANS) for at in lookup.positions(f"{term}{ref.id}/{field}")})


def inside(view: View, run: str, through: int) -> list[str]:
    """Return the runs that a run started, in the order in which the log heard of them."""
    entries = Lookup(view, through, NAME).entries(INSIDE + run)
    return list(dict.fromkeys(form.decode(entry.body or b"{}")["run"] for entry in entries))


def written(view: View, run: str, through: int) -> list[Entry]:
    """Return the observations that carry a run, by position."""
    return Lookup(view, through, NAME).entries(WROTE + run)


def leaning_positions(lookup: Lookup, ref: Ref, fields: Iterable[str] | None) -> set[int]:
    """Return the positions of the decisions that depend on some fields of an entity; none: on any of them."""
    if fields is None:
        return set(evidence_positions(lookup, ref))
    if not lookup.has_below(f"{LEANS}{ref.id}/"):
        return set()  # asked once, instead of field by field: on most entities nothing was decided
    return {position for field in fields for position in lookup.positions(f"{LEANS}{ref.id}/{field}")}
