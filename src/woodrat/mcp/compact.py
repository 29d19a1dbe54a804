"""Compact answers: what an agent needs to go on, in few tokens.

Each function takes a record of the library and picks from its fields. What is empty is left out, long values are cut
and say how much is missing, and `more` says how many items there are where only the first are listed. Whole records
are answered on request (`details`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from woodrat.ledger.elements import Elements
from woodrat.ledger.find import Hit

if TYPE_CHECKING:
    from woodrat.compare.divergence import Divergence
    from woodrat.explain.impact import AffectedRun, Impact
    from woodrat.explain.lineage import LineageTree, Node
    from woodrat.explain.stale import Belief, Stale
    from woodrat.ledger.reads import Related
    from woodrat.ledger.report import Report
    from woodrat.merge.blame import Verdict as ClaimVerdict
    from woodrat.merge.diff import EntityChange, FieldChange
    from woodrat.merge.snapshot import Conflict, Contender, Snapshot
    from woodrat.merge.timeline import Event, Step
    from woodrat.recall.reader import Recall
    from woodrat.runs.evidence import Evidence
    from woodrat.runs.reader import Reason
    from woodrat.runs.record import RunRecord
    from woodrat.runs.rules import Verdict
    from woodrat.runs.steps import Decision
    from woodrat.runs.summary import RunChoice, RunSummary
    from woodrat.state.asof import Stored
    from woodrat.state.match import Match
    from woodrat.state.observation import Observation
    from woodrat.state.schema import Schema
    from woodrat.state.source import Delivery
    from woodrat.whatif.result import Supposed, WhatIf

Compact = dict[str, Any]

ITEMS_MAX: Final = 20
"""How many items of a list inside an answer are listed."""
ELEMENTS_MAX: Final = 100
"""How many elements of a list that is a value are shown of one entity."""
VALUE_CHARACTERS_MAX: Final = 300
"""Longest value in a list of answers, as JSON."""
HIT_CHARACTERS_MAX: Final = 300
"""Longest entity in a list of those that were found, as JSON; only a longer reference makes it longer."""
HIT_FRAME: Final = 60
"""What of it the names of its parts take."""
FOUND_CHARACTERS_MAX: Final = 80
"""Longest value in it."""
RECALLED_CHARACTERS_MAX: Final = 600
"""Longest hit of a recall, as JSON."""
SHOWN_CHARACTERS_MAX: Final = 4_000
"""Longest value of the one entity that was asked for."""
NODES_MAX: Final = 100
"""How many nodes of a lineage are shown."""
NARRATIVE_TOKENS: Final = 1_000
"""How long the account of one run is."""


def stated(**parts: Any) -> Compact:
    """Return the parts that say something: not those that are none, false or empty."""
    return {name: part for name, part in parts.items() if part is not None and part is not False and part not in _EMPTY}


_EMPTY: Final[tuple[Any, ...]] = ((), [], {}, "")


def _answer(record: RunSummary | Reason | AffectedRun) -> Compact:
    """What a run answered, false and empty text included."""
    return {} if record.answer is None else {"answer": short(record.answer)}


def short(value: Any, most: int = VALUE_CHARACTERS_MAX) -> Any:
    """Return a value, or its first characters where it is longer, with how many are left out."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return value if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"


def short_values(values: Mapping[str, Any], most: int = VALUE_CHARACTERS_MAX) -> Compact:
    """Return values by name, each short."""
    return {name: short(value, most) for name, value in values.items()}


def listed(lists: Mapping[str, tuple[Sequence[Any], Callable[[Any], Any]]], **parts: Any) -> Compact:
    """Return parts with lists of which only the first items are shown; `more` says how many there are."""
    shown = {name: [write(item) for item in items[:ITEMS_MAX]] for name, (items, write) in lists.items()}
    more = {name: len(items) for name, (items, _) in lists.items() if len(items) > ITEMS_MAX}
    return stated(**parts, **shown, more=more)


# Entities


def snapshot(record: Snapshot) -> Compact:
    """What is believed about an entity."""
    fields, more = dict(record.fields), dict(record.more)
    for name, value in record.fields.items():
        if isinstance(value, list) and len(value) > ELEMENTS_MAX:
            fields[name], more[name] = value[:ELEMENTS_MAX], more.get(name, len(value))
    return {
        "entity": str(record.entity),
        "fields": short_values(fields, SHOWN_CHARACTERS_MAX),
        **stated(
            deleted=record.deleted,
            merged_with=[str(member) for member in record.members if member != record.entity],
            corrected={
                name: stated(agent=origin.agent, because=short(origin.because))
                for name, origin in record.blame.items()
                if origin.corrected
            },
            conflicts=[conflict.field for conflict in record.conflicts],
            problem=record.problem,
            more=more,
            matched=None if record.matched is None else _matched(record.matched),
        ),
        "version": record.version,
        "position": record.position,
    }


def elements(record: Elements) -> Compact:
    """Some elements of a collection."""
    return {
        "entity": str(record.entity),
        "field": record.field,
        "items": [short(element) for element in record.elements],
        "total": record.total,
        **stated(cursor=record.cursor),
        "position": record.position,
    }


def entity(record: Snapshot | Elements) -> Compact:
    """What is believed about an entity, or some elements of one of its collections."""
    return elements(record) if isinstance(record, Elements) else snapshot(record)


def found_entity(record: Snapshot | Hit) -> Compact:
    """One entity of many, found by words or by its values: as many fields as fit, those with the words first."""
    shown, exact = (record.snapshot, record.exact) if isinstance(record, Hit) else (record, False)
    with_words = record.fields if isinstance(record, Hit) else ()
    entity = str(shown.entity)
    left = HIT_CHARACTERS_MAX - HIT_FRAME - len(_json_text(entity))
    fields: Compact = {}
    names = [*with_words, *sorted(shown.fields, key=lambda name: len(_json_text(shown.fields[name])))]
    for name in names:
        if name in fields or name not in shown.fields:
            continue
        value = short(shown.fields[name], FOUND_CHARACTERS_MAX)
        cost = len(_json_text(name)) + len(_json_text(value)) + 2
        if cost <= left:
            fields[name], left = value, left - cost
    more = len(shown.fields) - len(fields)
    return {"entity": entity, "fields": fields, **stated(exact=exact, more_fields=more or None)}


def _json_text(value: Any) -> str:
    return orjson.dumps(value).decode()


def report(record: Report) -> Compact:
    """What a write did; of its changes those to values that were there before."""
    changes = [
        {"entity": change.entity, **field_change(field)}
        for change in record.changes
        for field in change.fields
        if field.had
    ]
    return {
        "position": record.position,
        **listed(
            {
                "entities": (record.entities, str),
                "observations": (record.observations, str),
                "known": (record.known, str),
                "changes": (changes, dict),
                "conflicts": (record.conflicts, str),
                "by_arrival": (record.by_arrival, str),
                "hints": (record.hints, str),
                "matched": (record.matched, _matched),
            },
            repeated=record.repeated,
            dry_run=record.dry_run,
            id=record.id,
        ),
    }


def _matched(record: Match) -> Compact:
    """How a record was found to mean a known entity."""
    return record.to_json()


def field_change(record: FieldChange) -> Compact:
    """One field before and after."""
    before = {"before": short(record.before)} if record.had else {}
    after = {"after": short(record.after)} if record.has else {}
    return {"field": record.field, **before, **after, **stated(part=record.part)}


def entity_change(record: EntityChange) -> Compact:
    """One entity before and after."""
    return listed({"fields": (record.fields, field_change)}, entity=record.entity, kind=record.kind)


def changes(record: Any) -> Compact:
    """What differs between two moments: one entity, or all of it with the positions that the moments mean."""
    if not hasattr(record, "changes"):
        return entity_change(record)
    moments = {"from": record.before, "to": record.after}
    return {**moments, "items": [entity_change(change) for change in record.changes]}


def _statement(record: Observation) -> Compact:
    """Who said what kind of thing, and when."""
    op = None if record.op == "assert" else record.op
    return stated(observation=record.id, agent=record.agent, observed_at=record.observed_at, op=op)


def observation(record: Observation) -> Compact:
    """What was said."""
    return {
        "entity": str(record.entity),
        **_statement(record),
        **stated(
            fields=short_values(record.fields),
            remove=short_values(record.remove),
            **{name: record.optional.get(name) for name in ("reason", "run", "source", "interpretation")},
        ),
    }


def stored(record: Stored) -> Compact:
    """What was said, and where it stands in the log."""
    return {"position": record.position, **observation(record.observation)}


def step(record: Step) -> Compact:
    """What one observation changed."""
    return listed(
        {"changes": (record.changes, field_change)},
        position=record.position,
        **_statement(record.observation),
        reason=short(record.observation.optional.get("reason")),
        deleted=record.deleted,
    )


def event(record: Event) -> Compact:
    """What was seen at one time."""
    return {"position": record.position, **observation(record.observation)}


def claim(record: ClaimVerdict) -> Compact:
    """One claim on a field, and why it won or lost."""
    return {
        "value": short(record.value),
        "wins": record.wins,
        "reason": record.reason,
        **stated(
            agent=record.agent,
            observed_at=record.observed_at,
            observation=record.observation,
            removed=[short(element) for element in record.removed],
            source=record.source,
            run=record.run,
            because=short(record.because),
            excerpt=short(record.excerpt),
        ),
    }


def claims(record: Mapping[str, Sequence[ClaimVerdict]]) -> Compact:
    """Claims by field."""
    return {field: [claim(each) for each in several] for field, several in record.items()}


def conflict(record: Any) -> Compact:
    """A field on which agents differ: the entity beside its conflict, or a conflict that names its entity."""
    entity, field = record if isinstance(record, tuple) else (record.entity, record)
    return {"entity": str(entity), **_field_conflict(field)}


def _field_conflict(record: Conflict) -> Compact:
    return {**listed({"claims": (record.claims, _contender)}, field=record.field, by_arrival=record.by_arrival)}


def _contender(record: Contender) -> Compact:
    return {
        "value": short(record.value),
        **stated(
            agent=record.agent,
            observed_at=record.observed_at,
            observation=record.observation,
            corrects=record.corrects,
            removed=[short(element) for element in record.removed],
        ),
    }


def related(record: Related) -> Compact:
    """One relation."""
    parts: Compact = {"type": record.type, "from": str(record.start), "to": str(record.end)}
    deeper = record.depth if record.depth > 1 else None
    return {**parts, **stated(fields=short_values(record.fields), depth=deeper), "relation": str(record.relation)}


# Sources and schemas


def delivery(record: Delivery) -> Compact:
    """One delivery of a source."""
    return stated(
        source=record.source,
        name=record.name,
        media_type=record.media_type,
        agent=record.agent,
        received_at=record.received_at,
    )


def schema(record: Schema) -> Compact:
    """The schema of one type."""
    return {"type": record.type, "version": record.version, "schema": dict(record.document)}


def listed_schema(record: Schema) -> Compact:
    """One schema of many: its fields alone."""
    return {"type": record.type, "version": record.version, "fields": sorted(record.properties)}


# Runs


def verdict(record: Verdict) -> Compact:
    """What a decision came to."""
    from woodrat.runs.values import plain

    return {
        "chosen": plain(record.chosen),
        **stated(
            rule=list(record.rule) if isinstance(record.rule, tuple) else record.rule,
            evidence=short_values(record.evidence),
            default=record.default,
            skipped_rules=list(record.unknown),
        ),
    }


def decision(record: Decision) -> Compact:
    """What was decided, and by which rule."""
    evidence = short_values(record.evidence)
    return {"stage": record.stage, "chosen": short(record.chosen), **stated(rule=record.rule, evidence=evidence)}


def _choice(record: RunChoice | Decision) -> Compact:
    return {"stage": record.stage, "chosen": short(record.chosen)}


def listed_run(record: RunSummary) -> Compact:
    """One run of many."""
    about = listed(
        {"decisions": (record.choices, _choice)},
        id=record.id,
        status=record.status,
        agent=record.agent,
        query=short(record.query),
        subject=record.subject,
        started_at=record.started_at,
        error=short(record.error),
        verdict=record.verdict,
    )
    return {**about, **_answer(record)}


def run(record: RunRecord) -> Compact:
    """One run, told in lines that end with the entry they come from."""
    from woodrat.runs.projection import project

    about = stated(agent=record.agent, subject=record.subject, verdict=record.verdict)
    return {
        "id": record.id,
        "status": record.status,
        **about,
        "narrative": project(record, "narrative", NARRATIVE_TOKENS),
    }


def divergence(record: Divergence) -> Compact:
    """Where two runs part: the sentence, and the steps that differ."""
    differing = [row for row in record.rows if row.mark != "same"]
    rows = [
        stated(step=row.step, kind=row.kind, label=row.label, mark=row.mark, first=row.first, second=row.second)
        for row in differing
    ]
    return {
        "same": record.same,
        "level": record.level,
        "sentence": record.sentence,
        **stated(wording=record.wording),
        **listed({"rows": (rows, short_values)}, first=record.first, second=record.second),
    }


def _since(item: Evidence) -> Compact:
    """What became of a fact after a decision was made on it."""
    since = item.since
    assert since is not None
    return {
        "fact": item.fact,
        "change": since.change,
        "now": short(since.now),
        **stated(agent=since.agent, because=short(since.because)),
    }


def reason(record: Reason) -> Compact:
    """One decision about an entity, and what its run answered."""
    return {
        "run": record.run,
        **decision(record.decision),
        **stated(
            agent=record.agent,
            decided_at=record.decided_at,
            query=short(record.query),
            verdict=record.verdict,
            margin=None if record.decision.margin is None else short(record.decision.margin.sentence),
            changed_since=[_since(item) for item in record.decision.looked_at if item.since is not None] or None,
        ),
        **_answer(record),
    }


def recall(record: Recall) -> Compact:
    """What was recalled, as text; where nothing was, what came near and why it does not count."""
    hits = [
        stated(kind=hit.kind, ref=hit.ref, score=round(hit.score, 3), at=hit.at, agent=hit.agent) for hit in record.hits
    ]
    rejected = [
        stated(kind=miss.kind, ref=miss.ref, score=round(miss.score, 3), reason=miss.reason, text=short(miss.text))
        for miss in record.rejected
    ]
    understood = None
    if record.understood is not None:
        understood = f"{record.understood.words}: {record.understood.since} to before {record.understood.until}"
    return {
        "found": bool(record.hits),
        "text": record.text,
        **stated(understood=understood, remark=record.remark),
        **listed({"hits": (hits, dict), "rejected": (rejected, dict)}, position=record.position),
    }


# Explanations


def lineage(record: LineageTree) -> Compact:
    """The way back to the sources: what each thing says, as a tree, and as a tree for each run further back."""
    left = [NODES_MAX]
    first = _node(record.trees[0], left)
    runs = []
    for tree in record.runs:
        if left[0] <= 0:
            break
        runs.append(_node(tree, left))
    more = {**first.pop("more", {}), **({"runs": record.run_count} if len(runs) < record.run_count else {})}
    limits = stated(depth=record.depth, left_out=record.left_out or None, cursor=record.cursor)
    return {**first, **stated(runs=runs, more=more or None), **limits}


def _node(record: Node, left: list[int]) -> Compact:
    left[0] -= 1
    shown: list[Compact] = []
    for below in record.nodes:
        if left[0] <= 0:
            break
        shown.append(_node(below, left))
    more = {"nodes": len(record.nodes)} if len(shown) < len(record.nodes) else None
    # Steps of a run have no name that anything can be asked by.
    id = None if record.kind in ("decision", "evidence", "read") else record.id
    return {"kind": record.kind, **stated(id=id), "label": short(record.label), **stated(nodes=shown, more=more)}


def impact(record: Impact) -> Compact:
    """What leaned on something: the runs, however far away, and the fields set from it now."""
    fields = [
        {"entity": won.entity, "field": won.field, "value": short(won.value), "observation": won.observation}
        for won in record.fields
    ]
    limits = {"depth": record.depth, "left_out": record.left_out or None, "cursor": record.cursor}
    remark = (
        None if record.runs else "No run read it. explain with the action stale lists decisions whose evidence changed."
    )
    return {
        "kind": record.kind,
        "id": record.id,
        **listed({"fields": (fields, dict), "runs": (record.runs, _leaning)}, exports=len(record.exports) or None),
        **stated(**limits, remark=remark),
        "counts": stated(**record.counts.to_json()),
        "position": record.position,
    }


def _leaning(record: AffectedRun) -> Compact:
    decisions = [affected.decision for affected in record.decisions]
    about = listed(
        {"decisions": (decisions, _choice)},
        run=record.run,
        agent=record.agent,
        query=short(record.query),
        subject=record.subject,
        status=record.status,
        distance=record.distance,
        through=record.through,
    )
    return {**about, **_answer(record)}


def stale(record: Stale) -> Compact:
    """A decision whose evidence has changed, and what it would be now."""
    return {
        "run": record.run,
        **_choice(record.decision),
        "outcome": record.outcome,
        "chosen_now": short(record.now.chosen),
        **listed({"changes": (record.beliefs, _belief)}, agent=record.agent, subject=record.subject),
        "sentence": record.sentence,
    }


def _belief(record: Belief) -> Compact:
    return {
        "entity": record.entity,
        "field": record.field,
        "before": short(record.before),
        "now": short(record.now),
        "reason": record.reason,
        **stated(changed_by=record.changed_by, because=short(record.because)),
    }


def what_if(record: WhatIf) -> Compact:
    """What recorded decisions would have been: how many differ, and which."""
    rows = [{"value": row.value, "same": row.same, "flip": row.flip, "unknown": row.unknown} for row in record.rows]
    return {
        "sentence": record.sentence,
        "same": record.same,
        "flip": record.flip,
        "unknown": record.unknown,
        "items": [_supposed(item) for item in record.decisions],
        **listed({"rows": (rows, dict), "notes": (record.notes, str)}, cursor=record.cursor),
        "position": record.position,
    }


def _supposed(record: Supposed) -> Compact:
    return {
        "run": record.run,
        **_choice(record.decision),
        "outcome": record.outcome,
        "chosen_now": short(record.now.chosen),
        **stated(subject=record.subject, sentence=short(record.sentence)),
    }
