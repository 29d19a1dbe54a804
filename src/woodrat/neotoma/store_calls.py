"""Storing: records, their relationships and files, and readings of files.

Writes are committed before they are read again for the answer. As in Neotoma, entities of a call are stored whole
or not at all, and a relationship that cannot be made is reported while they stay.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import reads
from woodrat.ledger.sources import deliveries_of
from woodrat.neotoma import names as neotoma_names
from woodrat.neotoma import shapes
from woodrat.neotoma.calls import Given

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.ledger.report import Change, Report
    from woodrat.merge.snapshot import Snapshot
    from woodrat.neotoma.names import Named

PRIORITIES: Final[Mapping[str, int]] = {
    "sensor": 60,
    "workflow_state": 50,
    "llm_summary": 40,
    "human": 30,
    "import": 20,
    "sync": 10,
}
"""The priority of a record with an `observation_source` but no `source_priority`."""


def stored(ledger: Ledger, given: Given) -> dict[str, Any]:
    """Store entities and then their relationships; a file first, so that they name it as their source."""
    found: dict[str, Any] = {}
    key, dry = given.get("idempotency_key"), given.get("commit") is False
    if "file_path" in given:
        raise Refused([Fault("file_path", "files of the server are not read", "Send file_content, as base64.")])
    if "entities" not in given and "file_content" not in given:
        raise Refused([Fault("entities", "there is nothing to store", "Send entities, file_content or both.")])
    if "file_content" in given:
        found["file"] = _kept(ledger, given)
    if "entities" in given:
        named = names_of(ledger, given)
        records = [each.record for each in named]
        report = store(ledger, given, named, found["file"]["source_id"] if "file" in found else None)
        refs = [str(ref) for ref in report.entities]
        if len(refs) != len(records):
            # some of them are one entity: look up each separately
            refs = [str(ledger.store(record, dry_run=True).entities[0]) for record in records]
        found |= {"report": report, "refs": refs, "named": named, "made": [], "refused": []}
        for number, relation in enumerate(given.get("relationships", ()) if not dry else ()):
            _join(ledger, relation, number, refs, key, found)
    return found


def names_of(ledger: Ledger, given: Given) -> list[Named]:
    """Return the records of a call with their keys."""
    return [neotoma_names.record(ledger, entity) for entity in given["entities"]]


def store(ledger: Ledger, given: Given, named: list[Named], source: str | None = None) -> Report:
    """Store records that have their keys."""
    return ledger.store(
        [each.record for each in named],
        idempotency_key=given.get("idempotency_key"),
        dry_run=given.get("commit") is False,
        priority=priority(given),
        observed_at=given.get("observed_at"),
        source=source,
    )


def priority(given: Given) -> int | None:
    """Return the priority in a call, by number or by the origin of its records."""
    source = given.get("observation_source")
    if source is not None and source not in PRIORITIES:
        remedy = f"Send one of {', '.join(PRIORITIES)}."
        raise Refused([Fault("observation_source", f"got {shown(source)}", remedy)])
    stated: int | None = given.get("source_priority")
    return PRIORITIES.get(source) if stated is None and source is not None else stated


def soon(past: Past, given: Given, done: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer to a call that stored one entity, if one read is enough; `None` if it takes longer."""
    if len(given.get("entities", ())) != 1 or "file" in done or done["made"] or done["report"].dry_run:
        return None
    (ref,) = done["refs"]
    snapshot = reads.show_soon(past.context, ref)
    return None if snapshot is None else answer(past, given, {**done, "shown": {ref: snapshot}})


def _kept(ledger: Ledger, given: Given) -> dict[str, Any]:
    content = _content(given["file_content"], given.get("mime_type", ""))
    source = ledger.sources.add(
        content,
        name=given.get("original_filename"),
        media_type=given.get("mime_type"),
        idempotency_key=given.get("file_idempotency_key"),
    )
    return {
        "source_id": source,
        "content_hash": sha256(content).hexdigest(),
        "file_size": len(content),
        "deduplicated": len(deliveries_of(ledger.context, source)) > 1,
        "entities_created": 0,
        "observations_created": 0,
        "entity_ids": [],
    }


def _content(text: str, media_type: str) -> bytes:
    """Return the bytes of a file: decoded if base64, else the text itself.

    Words of a text may look like base64; they count as base64 if they decode to text.
    """
    try:
        found = base64.b64decode(text, validate=True) if text else b""
        if media_type.startswith("text/") or media_type in _TEXTS:
            found.decode()
    except ValueError:
        return text.encode()
    return found


_TEXTS: Final = frozenset({"application/json", "application/xml", "application/x-ndjson"})


def _join(ledger: Ledger, relation: Any, number: int, refs: list[str], key: str | None, found: dict[str, Any]) -> None:
    """Make one relationship of a call, or report why it was not made."""
    said = relation if isinstance(relation, dict) else {}
    type = str(said.get("relationship_type", ""))
    try:
        ends = [_end(said, side, refs) for side in ("source", "target")]
        once = None if key is None else f"{key}#relationship-{number}"
        ledger.relate(ends[0], type.lower(), ends[1], fields=said.get("metadata"), idempotency_key=once)
    except (Refused, NotFound) as error:
        code = "RELATIONSHIP_ENDPOINT_NOT_FOUND" if isinstance(error, NotFound) else "RELATIONSHIP_NOT_CREATED"
        told = {"relationship_index": number, "relationship_type": type, "code": code, "reason": str(error)}
        found["refused"].append(told)
    else:
        found["made"].append((type, *ends))


def _end(said: Mapping[str, Any], side: str, refs: list[str]) -> str:
    index, id = said.get(f"{side}_index"), said.get(f"{side}_entity_id")
    if id is None and isinstance(index, str):
        id = index  # an entity's id in place of a place, as agents send it
    if type(index) is int and 0 <= index < len(refs):
        return refs[index]
    if isinstance(id, str):
        return id
    problem = f"got {shown(index if index is not None else id)}"
    remedy = f"Send {side}_index, a place in entities, or {side}_entity_id."
    raise Refused([Fault(f"{side}_index", problem, remedy)])


def answer(past: Past, given: Given, done: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"success": True}
    if "report" in done:
        report = done["report"]
        changed = {str(change.entity): change for change in report.changes}
        observations = report.observations if len(report.observations) == len(done["refs"]) else ()
        stored = []
        for number, ref in enumerate(done["refs"]):
            item = _reference(past, ref, done.get("shown", {}).get(ref), report.dry_run)
            item["observation_index"] = number
            item |= done["named"][number].identity()
            if observations:
                item["observation_id"] = observations[number]
            new = ref in changed and _is_new(changed[ref], set(item.get("entity_snapshot_after", ())))
            item["action"] = _ACTIONS[report.dry_run][new and not report.repeated]
            item["resolver_path"] = [item["identity_basis"], f"existing_row:{'none' if new else 'matched'}"]
            if report.repeated:
                item["deduplicated"] = True
            stored.append(item)
        found |= {"replayed": report.repeated, "commit": not report.dry_run, "entities": stored}
        found |= {"warnings": [], "store_warnings": _warnings(stored, done["named"])}
        found["relationships_created"] = [
            {
                "relationship_type": type.upper(),
                "source_entity_id": past.show(start).entity.id,
                "target_entity_id": past.show(end).entity.id,
            }
            for type, start, end in done["made"]
        ]
        if done["refused"]:
            found["relationships_refused"] = done["refused"]
        created = [item for item in stored if item["action"] == "created"]
        unknown = sorted({name for named in done["named"] for name in named.misfits})
        found |= {
            "source_id": None if report.dry_run else next(iter(report.observations), None),
            "entities_created": len(created),
            "observations_created": 0 if report.repeated or report.dry_run else len(report.observations),
            "unknown_fields": unknown,
            "unknown_fields_count": len(unknown),
        }
    structured = dict(found)
    if "file" in done:
        found["unstructured"] = done["file"]
        found["source_id"] = done["file"]["source_id"]
        if "report" not in done:
            return {**found, **done["file"]}
    return {**found, "structured": structured}


def _warnings(stored: list[dict[str, Any]], named: list[Named]) -> list[dict[str, Any]]:
    """Return a warning for each value whose type differs from its schema."""
    return [
        {
            "code": "VALUE_OF_ANOTHER_TYPE",
            "message": f"{name} of a {item['entity_type']} has another type in its schema: it is in raw_fragments.",
            "observation_index": item["observation_index"],
            "entity_type": item["entity_type"],
            "entity_id": item["entity_id"],
        }
        for item, one in zip(stored, named, strict=True)
        for name in one.misfits
    ]


_ACTIONS: Final = {False: ("matched_existing", "created"), True: ("would_match_existing", "would_create")}
"""The outcome for an entity, done and planned: already known, or new."""


def _reference(past: Past, ref: str, snapshot: Snapshot | None, dry_run: bool) -> dict[str, Any]:
    """Return an entity by its names, in its state after a write; `snapshot` is that state, if already read."""
    from woodrat.canon.ids import parse_ref

    parsed = parse_ref(ref) if snapshot is None else snapshot.entity
    found: dict[str, Any] = {"entity_id": parsed.id, "entity_type": parsed.type, "canonical_name": parsed.key}
    if dry_run:
        return found
    return {**found, "entity_snapshot_after": shapes.fields(snapshot or past.show(parsed))}


def _is_new(change: Change, fields: set[str]) -> bool:
    """Return whether an entity was not there before: all it has came with this write."""
    return not any(field.had for field in change.fields) and fields <= {field.field for field in change.fields}


# --------------------------------------------------------------------------------------------------------- readings


def interpreted(ledger: Ledger, given: Given) -> dict[str, Any]:
    """Store an interpretation of a source."""
    source = source_of(ledger, given["source_id"])
    named = names_of(ledger, given)
    configured = given.get("interpretation_config", {})
    model = configured.get("model") or configured.get("model_id")
    reading = ledger.interpretations.begin(
        source,
        model=model if isinstance(model, str) else None,
        configuration=configured,
        idempotency_key=given.get("idempotency_key"),
    )
    key = given.get("idempotency_key")
    try:
        once = None if key is None else f"{key}#entities"
        report = reading.store([each.record for each in named], idempotency_key=once)
    except Refused as error:
        reading.end("error", error=str(error))
        raise
    reading.end()
    refs = [str(ref) for ref in report.entities]
    done: dict[str, Any] = {"report": report, "refs": refs, "named": named, "made": [], "refused": []}
    for number, relation in enumerate(given.get("relationships", ())):
        _join(ledger, relation, number, refs, key, done)
    return {**done, "interpretation": reading.id, "source": source}


def interpretation_answer(past: Past, given: Given, done: dict[str, Any]) -> dict[str, Any]:
    """Return the result of an interpretation."""
    told = answer(past, given, done)
    return {
        "success": True,
        "interpretation_id": done["interpretation"],
        "source_id": given["source_id"],
        **{name: told[name] for name in ("entities", "observations_created", "unknown_fields", "unknown_fields_count")},
        "relationships_created": told["relationships_created"],
    }


def source_of(ledger: Ledger, source_id: str) -> str:
    """Return the source that an id means: its own, or the records of the store that an observation belongs to."""
    if not source_id.startswith("obs_"):
        ledger.sources.show(source_id)
        return source_id
    item = shapes.observation_named(ledger, source_id)
    if item is not None:
        said = {"entity_type": item.entity.type, **(item.fields or {})}
        return ledger.sources.add(
            form.encode({"entities": [said]}),
            name=source_id,
            media_type="application/json",
            idempotency_key=f"neotoma-source-{source_id}",
        )
    raise NotFound(f"There is no source {source_id} here. Nothing was written. `sources` lists them.")


# ------------------------------------------------------------------------------------------------------- submissions


def submitted(ledger: Ledger, given: Given) -> dict[str, Any]:
    """Store a record of a type that an active `submission_config` opens."""
    kind = given["entity_type"]
    where = {"target_entity_type": kind, "active": True}
    if not ledger.query(entity_type="submission_config", where=where, limit=1).items:
        remedy = "Store a submission_config with this target_entity_type and active true first."
        raise NotFound(f"{kind}: no active submission_config. Nothing was written. {remedy}")
    return stored(ledger, {"entities": [{**given.get("fields", {}), "entity_type": kind}]})


def submission_answer(past: Past, given: Given, done: dict[str, Any]) -> dict[str, Any]:
    """Return the entity that a submission made."""
    (item,) = answer(past, given, done)["entities"]
    return {"entity_id": item["entity_id"], "conversation_id": None, "guest_access_token": None}
