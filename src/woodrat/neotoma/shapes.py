"""Shapes: entities, observations, relationships and schemas as Neotoma's clients know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon.ids import ID_CHARACTERS
from woodrat.errors import NotFound
from woodrat.ledger import plans, reads
from woodrat.ledger.moments import open_reader
from woodrat.neotoma.names import FRAGMENTS
from woodrat.state import packs
from woodrat.state.relation import endpoints

if TYPE_CHECKING:
    from woodrat.api.past import Past
    from woodrat.ledger.reads import Related
    from woodrat.merge.snapshot import Snapshot
    from woodrat.merge.timeline import Event
    from woodrat.state.asof import Stored
    from woodrat.state.interpretation import Interpretation
    from woodrat.state.observation import Observation
    from woodrat.state.schema import Schema
    from woodrat.state.source import Delivery

REMARKS: Final = frozenset({"notes"})
LINES, WORDS = "\n", ", "
"""Separators for collections shown as text: of remarks, and of words."""


UNREAD: Final = frozenset(
    {
        *("success", "status", "replayed", "commit", "structured", "unstructured", "entities", "entity_id"),
        *("observation_id", "observation_index", "observations_created", "source_id", "interpretation_id", "applied"),
        *("field", "value", "content_hash", "file_size", "unknown_fields", "unknown_fields_count", "warnings"),
        *("store_warnings", "code", "relationships", "relationships_created", "relationships_refused"),
        *("relationship_index", "relationship_type", "relationship_key", "source_entity_id", "target_entity_id"),
        *("requested", "created_count", "error_count", "errors", "index", "relationship", "merged_at"),
        *("schema_version", "fields_removed", "conversation_id", "guest_access_token", "subscription_id", "stream"),
        *("webhook_secret", "subscriptions", "subscription", "delivery_method", "webhook_url", "active", "position"),
        "consecutive_failures",
    }
)
"""Members of the answer to a write for a key without `read`: its own input, and ids. Other members are dropped."""
SENT: Final = frozenset({"value", "relationship"})
"""Parts of an answer that repeat the request, with any content."""


def unread(answer: Any) -> Any:
    """Return the answer to a write without stored data: no state, no names, not whether an entity was known."""
    if isinstance(answer, list):
        return [unread(item) for item in answer]
    if not isinstance(answer, dict):
        return answer
    return {name: value if name in SENT else unread(value) for name, value in answer.items() if name in UNREAD}


def entity(snapshot: Snapshot) -> dict[str, Any]:
    """Return the state of an entity; provenance names the observation that set each field."""
    latest = last_observed(snapshot)
    return {
        "id": snapshot.entity.id,
        "entity_id": snapshot.entity.id,
        "entity_type": snapshot.entity.type,
        "canonical_name": snapshot.entity.key,
        "snapshot": fields(snapshot),
        "raw_fragments": snapshot.fields.get(FRAGMENTS, {}),
        "provenance": {name: origin.observation for name, origin in snapshot.blame.items()},
        "last_observation_at": latest,
        "computed_at": latest,
        "merged_to_entity_id": None,
        "deleted": snapshot.deleted,
    }


def last_observed(snapshot: Snapshot) -> str | None:
    """Return the time of the latest observation behind an entity's state."""
    return max((origin.observed_at for origin in snapshot.blame.values()), default=None)


def fields(snapshot: Snapshot) -> dict[str, Any]:
    """Return the fields of an entity; a collection that is text in Neotoma's type of that name is shown as text."""
    found = {name: value for name, value in snapshot.fields.items() if name != FRAGMENTS}
    for name in packs.text_collections(packs.NEOTOMA).get(snapshot.entity.type, ()):
        elements = found.get(name)
        if isinstance(elements, list):
            texts = [element for element in elements if isinstance(element, str)]
            found[name] = (LINES if name in REMARKS else WORDS).join(texts) if len(texts) == len(elements) else elements
    return found


def whole(past: Past, snapshot: Snapshot) -> dict[str, Any]:
    """Return an entity with the members that need its observations: their number, and the first time."""
    kept = reads.observations(past.context, snapshot.entity)
    seen = [item.observation.observed_at for item in kept]
    return {
        **entity(snapshot),
        "entity_type_label": label(snapshot.entity.type),
        "schema_version": version(past, snapshot.entity.type),
        "observation_count": len(kept),
        "aliases": snapshot.fields.get("aliases", []),
        "created_at": min(seen, default=None),
        "updated_at": max(seen, default=None),
        "user_id": past.context.tenant,
    }


def identified(past: Past, snapshot: Snapshot) -> dict[str, Any]:
    """Return an entity as in a search result: its state is one level down."""
    told = whole(past, snapshot)
    inner = (
        *("entity_id", "entity_type", "schema_version", "canonical_name", "snapshot", "computed_at"),
        *("observation_count", "last_observation_at", "provenance", "user_id"),
    )
    return {**told, "snapshot": {name: told[name] for name in inner}}


def label(entity_type: str) -> str:
    """Return a type's label."""
    return entity_type.replace("_", " ").capitalize()


def version(past: Past, entity_type: str) -> str:
    """Return the version of a type's schema; of a type without one, 0."""
    try:
        return str(past.schemas.show(entity_type).version)
    except NotFound:
        return "0"


def observation(item: Stored) -> dict[str, Any]:
    """Return one observation."""
    said = item.observation
    return {
        "id": said.id,
        "entity_id": said.entity.id,
        "entity_type": said.entity.type,
        "source_id": short(said.optional.get("source")),
        "interpretation_id": short(said.optional.get("interpretation")),
        "observed_at": said.observed_at,
        "specificity_score": 1.0,
        "source_priority": said.priority,
        "observation_source": None,
        "identity_basis": None,
        "fields": dict(said.fields or {}),
        "operation": said.op,
        "provenance": {"client_name": said.agent},
    }


def observation_named(past: Past, id: str) -> Observation | None:
    """Return the observation with an id; None if there is none."""
    with open_reader(past.context) as reader:
        found = plans.find_observation(reader, id)
    return None if found is None else found.observation


def event(found: Event) -> dict[str, Any]:
    """Return the event of an observation."""
    return event_of(found.observation)


def event_of(said: Observation) -> dict[str, Any]:
    """Return an observation as something that was seen at a time."""
    return {
        "id": said.id,
        "event_type": f"{said.entity.type}_{said.op}",
        "event_timestamp": said.observed_at,
        "event_date": said.observed_at[:10],
        "entity_name": said.entity.key,
        "entity_type": said.entity.type,
        "source_id": short(said.optional.get("source")),
        "entity_id": said.entity.id,
        "entity_ids": [said.entity.id],
        "properties": dict(said.fields or {}),
        "provenance": {"client_name": said.agent},
    }


def relationship(found: Related) -> dict[str, Any]:
    """Return one relationship."""
    return related(found.type, found.start.id, found.end.id, found.fields)


def related(type: str, start: str, end: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a relationship by its parts; types are written in capitals there."""
    name = type.upper()
    return {
        "id": f"{name}:{start}:{end}",
        "relationship_key": f"{name}:{start}:{end}",
        "relationship_type": name,
        "source_entity_id": start,
        "target_entity_id": end,
        "snapshot": dict(said),
        "metadata": dict(said),
        "is_live": 1,
    }


def schema(found: Schema) -> dict[str, Any]:
    """Return the schema of a type; required fields are shown and not enforced, there as here."""
    fields = {}
    for name, about in found.properties.items():
        stated = about.get("type") if isinstance(about, dict) else None
        kind = stated[0] if isinstance(stated, list) and stated else stated
        fields[name] = {"type": _FIELD_TYPES.get(str(kind), "string"), "required": name in found.required}
    policies = {
        name: {"strategy": STRATEGIES.get(str(found.policies.get(name, "latest")), "last_write")} for name in fields
    }
    rules = [
        {"composite": [part.field for part in rule.parts]} if len(rule.parts) > 1 else rule.parts[0].field
        for rule in found.identity
    ]
    return {
        "id": found.id,
        "entity_type": found.type,
        "schema_version": str(found.version),
        "field_names": sorted(fields),
        "field_summary": fields,
        "schema_definition": {"fields": fields, "canonical_name_fields": rules},
        "reducer_config": {"merge_policies": policies},
        "active": True,
        "metadata": {"label": label(found.type)},
    }


_FIELD_TYPES: Final = {
    **{name: name for name in ("string", "number", "boolean", "array", "object")},
    "integer": "number",
}
STRATEGIES: Final = {"latest": "last_write", "highest_priority": "highest_priority", "union": "merge_array"}
"""What our policies are called there, where they have a name."""


def source(past: Past, found: Delivery) -> dict[str, Any]:
    """Return one delivery of a source."""
    return {
        "id": found.source,
        "content_hash": found.source_digest.hex(),
        "mime_type": found.media_type,
        "original_filename": found.name,
        "source_type": "file_upload",
        "created_at": found.received_at,
        "provenance": {"client_name": found.agent},
    }


def interpretation(found: Interpretation) -> dict[str, Any]:
    """Return one reading of a source."""
    return {
        "id": found.id,
        "source_id": found.source,
        "interpretation_config": {
            **dict(found.configuration),
            **({"model": found.model} if found.model is not None else {}),
        },
        "status": {"done": "completed", "error": "failed"}.get(found.status, "running"),
        "started_at": found.started_at,
        "completed_at": found.ended_at,
        "error_message": found.error,
    }


def short(name: Any) -> str | None:
    """Return a name as the id that people see."""
    return None if name is None else str(name)[: len("src_") + ID_CHARACTERS]


def is_relation(snapshot: Snapshot) -> bool:
    """Return True if an entity represents a relation, which Neotoma does not list among entities."""
    return endpoints(snapshot.entity) is not None
