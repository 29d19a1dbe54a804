"""Compact answers: the parts of a record that an agent needs, in few tokens.

Each function picks fields of one record of the library. Empty fields are omitted, long values are cut and state the
missing length, and `more` counts the omitted list items. Whole records are returned on request (`details`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from woodrat.ledger.elements import Elements
from woodrat.ledger.find import Hit

if TYPE_CHECKING:
    from woodrat.ledger.reads import Related
    from woodrat.ledger.report import Report
    from woodrat.merge.blame import Blame
    from woodrat.merge.blame import Verdict as ClaimVerdict
    from woodrat.merge.diff import EntityChange, FieldChange
    from woodrat.merge.snapshot import Conflict, Contender, Snapshot
    from woodrat.merge.timeline import Event, Step
    from woodrat.state.asof import Stored
    from woodrat.state.match import Match
    from woodrat.state.observation import Observation
    from woodrat.state.schema import Schema
    from woodrat.state.source import Delivery

Compact = dict[str, Any]

ITEMS_MAX: Final = 20
"""Most items of a list inside an answer."""
ELEMENTS_MAX: Final = 100
"""Most elements of a list value in the answer for one entity."""
VALUE_CHARACTERS_MAX: Final = 300
"""Longest value in a list of answers, as JSON."""
HIT_CHARACTERS_MAX: Final = 300
"""Longest entity in a list of hits, as JSON; only a longer reference exceeds it."""
HIT_FRAME: Final = 60
"""Share of it for the names of the parts."""
FOUND_CHARACTERS_MAX: Final = 80
"""Longest value in it."""
RECALLED_CHARACTERS_MAX: Final = 600
"""Longest hit of a recall, as JSON."""
SHOWN_CHARACTERS_MAX: Final = 4_000
"""Longest value in an answer about a single entity."""


def stated(**parts: Any) -> Compact:
    """Return the parts with content: neither null, false nor empty."""
    return {name: part for name, part in parts.items() if part is not None and part is not False and part not in _EMPTY}


_EMPTY: Final[tuple[Any, ...]] = ((), [], {}, "")


def short(value: Any, most: int = VALUE_CHARACTERS_MAX) -> Any:
    """Return a value; a longer one is cut, with the number of missing characters."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return value if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"


def short_values(values: Mapping[str, Any], most: int = VALUE_CHARACTERS_MAX) -> Compact:
    """Return values by name, each short."""
    return {name: short(value, most) for name, value in values.items()}


def listed(lists: Mapping[str, tuple[Sequence[Any], Callable[[Any], Any]]], **parts: Any) -> Compact:
    """Return parts with lists cut to their first items; `more` counts the others."""
    shown = {name: [write(item) for item in items[:ITEMS_MAX]] for name, (items, write) in lists.items()}
    more = {name: len(items) for name, (items, _) in lists.items() if len(items) > ITEMS_MAX}
    return stated(**parts, **shown, more=more)


# Entities


def snapshot(record: Snapshot) -> Compact:
    """The state of an entity."""
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
    """The state of an entity, or some elements of one of its collections."""
    return elements(record) if isinstance(record, Elements) else snapshot(record)


def found_entity(record: Snapshot | Hit) -> Compact:
    """One hit among many: as many fields as fit, fields with the search words first."""
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
    """The effect of a write; only changes that replaced a value are listed."""
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
    """The difference of two moments: of one entity, or of all with the positions of the moments."""
    if not hasattr(record, "changes"):
        return entity_change(record)
    moments = {"from": record.before, "to": record.after}
    return {**moments, "items": [entity_change(change) for change in record.changes]}


def _statement(record: Observation) -> Compact:
    """Agent, kind and time of a statement."""
    op = None if record.op == "assert" else record.op
    return stated(observation=record.id, agent=record.agent, observed_at=record.observed_at, op=op)


def observation(record: Observation) -> Compact:
    """The content of an observation."""
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
    """The content of an observation, and its position."""
    return {"position": record.position, **observation(record.observation)}


def step(record: Step) -> Compact:
    """The changes by one observation."""
    return listed(
        {"changes": (record.changes, field_change)},
        position=record.position,
        **_statement(record.observation),
        reason=short(record.observation.optional.get("reason")),
        deleted=record.deleted,
    )


def event(record: Event) -> Compact:
    """The observations of one time."""
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


def claims(record: Blame) -> Compact:
    """The claims on an entity, by field."""
    by_field = {field: [claim(each) for each in several] for field, several in record.items()}
    return {"entity": str(record.entity), "claims": by_field, "position": record.position}


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
