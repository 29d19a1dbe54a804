"""Verbs: what Neotoma's clients call, by the verbs of the ledger.

What is written is committed before it is read again for the answer. As there, entities of a call are stored whole or
not at all, and a relationship that cannot be made is told of while they stay.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import reads, schemas, sources
from woodrat.neotoma import names as neotoma_names
from woodrat.neotoma import relationships, shapes, types
from woodrat.records import dataclass
from woodrat.server.access import CORRECT, READ, WRITE

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.ledger.report import Change, Report
    from woodrat.merge.snapshot import Snapshot
    from woodrat.neotoma.names import Named

Given = dict[str, Any]

LIMIT: Final = 100
LIMIT_MAX: Final = 1_000
"""How many of anything one answer holds, unless stated, and at most."""
PAGE: Final = 500
"""How many entities are read at a time where their number is asked for."""
_UNHEEDED: Final = (
    *("user_id", "observation_source", "strict", "include_snapshots", "include_merged", "external_actor"),
    *("format", "order_by", "source_id"),
)
"""What Neotoma takes and means nothing here: a key says whose ledger it is."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that clients call."""

    answer: Callable[[Past, Given, Any], dict[str, Any]]
    """Gives the answer, from what is asked and what the write came to."""
    needs: tuple[str, ...] = ()
    """Arguments it cannot do without."""
    takes: tuple[str, ...] = ()
    """Further arguments."""
    grant: str = READ
    """What a key needs for it."""
    write: Callable[[Ledger, Given], Any] | None = None
    """Writes, where it does."""
    about: Callable[[Given], Mapping[str, Any]] = lambda given: {}
    """The arguments by which a key's grants are looked at."""
    joins: Callable[[Given], bool] = lambda given: False
    """Whether a call is one `store` and its report, so that it may be merged in one pass with others."""


def checked(verb: Verb, body: Any) -> Given:
    """Return the arguments of a call; what is unknown, missing or of another type is refused at once."""
    if not isinstance(body, dict):
        raise Refused([Fault("(body)", f"expected an object, got {shown(body)}", "Send a JSON object.")])
    faults = []
    known = (*verb.needs, *verb.takes, *_UNHEEDED)
    for name in sorted(set(body) - set(known)):
        faults.append(Fault(name, "unknown field", f"Send {', '.join((*verb.needs, *verb.takes)) or 'none'}."))
    given = {name: value for name, value in body.items() if value is not None and name not in _UNHEEDED}
    faults += [Fault(name, "is missing", "Send it.") for name in verb.needs if name not in given]
    for name, value in given.items():
        kind = _TYPES.get(name, str)
        if name in known and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            faults.append(Fault(name, f"got {shown(value)}", f"Send {_WORDS[kind]}."))
    for name, least in (("limit", 1), ("offset", 0)):
        if type(given.get(name)) is int and given[name] < least:
            faults.append(Fault(name, f"got {given[name]}", f"Send {least} or more."))
    if faults:
        raise Refused(faults, "Nothing was written." if verb.write is not None else "Nothing was read.")
    return neotoma_names.known(given)


_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("limit", "offset", "source_priority", "max_hops"), int),
    **dict.fromkeys(("entities", "relationships", "relationship_types"), list),
    **dict.fromkeys(("corrections", "metadata"), dict),
    **dict.fromkeys(("commit", "include_entities"), bool),
    "value": object,
}
_WORDS: Final = {int: "a whole number", list: "a list", dict: "an object", bool: "true or false", str: "text"}


# ---------------------------------------------------------------------------------------------------------- storing


def _stored(ledger: Ledger, given: Given) -> dict[str, Any]:
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
        if not dry:
            types.adopt(ledger, given["entities"])
        named = names_of(ledger, given)
        records = [each.record for each in named]
        report = store(ledger, given, named, found["file"]["source_id"] if "file" in found else None)
        refs = [str(ref) for ref in report.entities]
        if len(refs) != len(records):
            # Some of them are one entity: each is asked for by itself.
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
        priority=given.get("source_priority"),
        source=source,
    )


def is_one_entity(given: Given) -> bool:
    """Return whether a call stores one entity and nothing else."""
    alone = not any(name in given for name in ("file_content", "file_path", "relationships"))
    return alone and len(given.get("entities", ())) == 1 and given.get("commit") is not False


def soon(ledger: Ledger, given: Given, named: list[Named], report: Report) -> dict[str, Any] | None:
    """Return the answer to a call that stored one entity, where one look at it tells; `None` where it takes longer."""
    (ref,) = report.entities
    snapshot = reads.glance(ledger.context, ref)
    if snapshot is None:
        return None
    done = stored_one(named, report)
    return _store_answer(ledger, given, {**done, "shown": {ref: snapshot}})


def stored_one(named: list[Named], report: Report) -> dict[str, Any]:
    """Return what a call came to that stored one entity."""
    return {"report": report, "refs": list(report.entities), "named": named, "made": [], "refused": []}


def _kept(ledger: Ledger, given: Given) -> dict[str, Any]:
    try:
        content = base64.b64decode(given["file_content"], validate=True)
    except ValueError as error:
        raise Refused([Fault("file_content", f"is not base64 ({error})", "Send base64 with padding.")]) from error
    source = ledger.sources.add(
        content,
        name=given.get("original_filename"),
        media_type=given.get("mime_type"),
        idempotency_key=given.get("file_idempotency_key"),
    )
    return {"source_id": source, "file_size": len(content), "entity_ids": []}


def _join(ledger: Ledger, relation: Any, number: int, refs: list[str], key: str | None, found: dict[str, Any]) -> None:
    """Make one relationship of a call, or tell why it was not made."""
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
    if type(index) is int and 0 <= index < len(refs):
        return refs[index]
    if isinstance(id, str):
        return id
    problem = f"got {shown(index if index is not None else id)}"
    remedy = f"Send {side}_index, a place in entities, or {side}_entity_id."
    raise Refused([Fault(f"{side}_index", problem, remedy)])


def _store_answer(past: Past, given: Given, done: dict[str, Any]) -> dict[str, Any]:
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
            item["action"] = _ACTIONS[report.dry_run][new]
            stored.append(item)
        found |= {"replayed": report.repeated, "entities": stored, "warnings": []}
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
    structured = dict(found)
    if "file" in done:
        found["unstructured"] = done["file"]
        found["source_id"] = done["file"]["source_id"]
    return {**found, "structured": structured}


_ACTIONS: Final = {False: ("updated", "created"), True: ("would_match_existing", "would_create")}
"""What became of an entity, and what would: known already, or new."""


def _reference(past: Past, ref: str, snapshot: Snapshot | None, dry_run: bool) -> dict[str, Any]:
    """Return an entity by its names, and as it is after a write; `snapshot` is that, where it was looked at already."""
    from woodrat.canon.ids import parse_ref

    parsed = parse_ref(ref) if snapshot is None else snapshot.entity
    found: dict[str, Any] = {"entity_id": parsed.id, "entity_type": parsed.type, "canonical_name": parsed.key}
    if dry_run:
        return found
    return {**found, "entity_snapshot_after": shapes.fields(snapshot or past.show(parsed))}


def _is_new(change: Change, fields: set[str]) -> bool:
    """Return whether an entity was not there before: all it has came with this write."""
    return not any(field.had for field in change.fields) and fields <= {field.field for field in change.fields}


# ---------------------------------------------------------------------------------------------------------- reading


def _entities(past: Past, given: Given, done: Any) -> dict[str, Any]:
    limit, offset = _window(given)
    order = _order(given)
    since, until = _moment(given, "since", "updated_since"), _moment(given, "until")
    found: Iterable[Snapshot] = (one for one in _all(past, given) if _seen_within(one, since, until))
    if order is not None:
        found = sorted(found, key=order, reverse=given.get("sort_order") == "desc")
    shown_: list[dict[str, Any]] = []
    total = 0
    for snapshot in found:
        if offset <= total < offset + limit:
            shown_.append(shapes.entity(snapshot))
        total += 1
    return {"entities": shown_, "total": total, "limit": limit, "offset": offset}


def _order(given: Given) -> Callable[[Snapshot], Any] | None:
    """Return what entities are sorted by: a name, a time or a field, as text; without it the order of a list here."""
    stated, way = given.get("sort_by"), given.get("sort_order", "asc")
    known = ("entity_id", "canonical_name", "last_observation_at")
    faults = []
    if way not in ("asc", "desc"):
        faults.append(Fault("sort_order", f"got {shown(way)}", "Send asc or desc."))
    if stated is not None and stated not in known and not stated.startswith("snapshot."):
        faults.append(Fault("sort_by", f"got {shown(stated)}", f"Send {', '.join(known)} or snapshot.FIELD."))
    if faults:
        raise Refused(faults, "Nothing was read.")
    if stated is None:
        return None
    if stated.startswith("snapshot."):
        name = stated.removeprefix("snapshot.")
        return lambda snapshot: (str(snapshot.fields.get(name, "")), snapshot.entity.id)
    return lambda snapshot: (str(shapes.entity(snapshot)[stated] or ""), snapshot.entity.id)


def _all(past: Past, given: Given) -> Iterator[Snapshot]:
    """Yield all entities that are asked for: Neotoma says how many there are, so all are read."""
    words, kind = given.get("search"), given.get("entity_type")
    descending = given.get("sort_order") == "desc"
    cursor: str | None = None
    while True:
        if words:
            hits = past.search(words, entity_type=kind, limit=PAGE, cursor=cursor)
            found, cursor = [hit.snapshot for hit in hits.items], hits.cursor
        else:
            page = past.query(entity_type=kind, limit=PAGE, cursor=cursor, descending=descending)
            found, cursor = list(page.items), page.cursor
        yield from (snapshot for snapshot in found if not shapes.is_relation(snapshot))
        if cursor is None:
            return


def _seen_within(snapshot: Snapshot, since: str | None, until: str | None) -> bool:
    if since is None and until is None:
        return True
    latest = shapes.entity(snapshot)["last_observation_at"] or ""
    return (since is None or latest >= since) and (until is None or latest < until)


def _window(given: Given) -> tuple[int, int]:
    return min(given.get("limit", LIMIT), LIMIT_MAX), given.get("offset", 0)


def _by_identifier(past: Past, given: Given, done: Any) -> dict[str, Any]:
    words, kind = given["identifier"], given.get("entity_type")
    found = _identified(past, words, kind)
    if found is None:
        raise NotFound(f"{shown(words)}: nothing matches. Nothing was read. Store it, or search for it.")
    told = shapes.whole(past, found)
    return {**told, "entities": [told], "total": 1}


def _identified(past: Past, words: str, kind: str | None) -> Snapshot | None:
    """Return the entity that an id, a reference, a key or an identifying value means, exactly but for letter case."""
    for ref in (words, f"{kind}/{words}" if kind else None):
        if ref is not None and (ref.startswith("ent_") or "/" in ref):
            try:
                return past.show(ref)
            except (NotFound, Refused):
                continue
    try:
        hits = [hit.snapshot for hit in past.search(words, entity_type=kind, limit=20).items]
    except Refused:
        return None  # no word to look for in it
    sought = words.strip().lower()
    for snapshot in hits:
        names = [
            snapshot.entity.key,
            *(
                snapshot.fields.get(name)
                for name in (*neotoma_names.IDS, *neotoma_names.NAMES, "canonical_name", "aliases")
            ),
        ]
        said = [item for name in names for item in (name if isinstance(name, list) else [name])]
        if any(isinstance(item, str) and item.lower() == sought for item in said):
            return snapshot
    return None


def _snapshot(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """One entity, also as it was known (`at_ingested`) or true (`at`) at a time."""
    known, true = _moment(given, "at_ingested"), _moment(given, "at")
    then = past if known is None and true is None else past.at(known, valid_at=true)
    return shapes.whole(then, then.show(given["entity_id"]))


def _observations(past: Past, given: Given, done: Any) -> dict[str, Any]:
    limit, offset = _window(given)
    since = _moment(given, "updated_since", "created_since")
    kept = [
        item
        for item in reads.observations(past.context, given["entity_id"])
        if since is None or item.observation.observed_at >= since
    ]
    kept.sort(key=lambda item: item.observation.observed_at, reverse=True)
    told = [shapes.observation(item) for item in kept[offset : offset + limit]]
    return {"observations": told, "total": len(kept), "limit": limit, "offset": offset}


def _timeline(past: Past, given: Given, done: Any) -> dict[str, Any]:
    limit, offset = _window(given)
    found = reads.timeline(
        past.context, since=_moment(given, "since", "start_date"), until=_moment(given, "until", "end_date")
    )
    if "entity_id" in given:
        found = tuple(event for event in found if event.observation.entity.id == given["entity_id"])
    told = [shapes.event(event) for event in reversed(found)]
    if "event_type" in given:
        told = [event for event in told if event["event_type"] == given["event_type"]]
    return {"events": told[offset : offset + limit], "total": len(told), "limit": limit, "offset": offset}


def _moment(given: Given, *names: str) -> str | None:
    """Return the first of these times that is given, in fixed width; a date alone is its beginning."""
    from woodrat.ledger.moments import timestamp

    for name in names:
        if name in given:
            text = given[name]
            return timestamp(f"{text}T00:00:00Z" if len(text) == len("2026-01-05") else text, name)
    return None


def _related(past: Past, given: Given, done: Any) -> dict[str, Any]:
    limit, _ = _window(given)
    start, found = relationships.fitting(past, given, given.get("max_hops", 1))
    others = dict.fromkeys(ref for item in found for ref in (item.start, item.end) if ref != start)
    shown_ = list(others)[:limit] if given.get("include_entities", True) else []
    return {
        "entities": [shapes.entity(past.show(ref)) for ref in shown_],
        "relationships": [shapes.relationship(item) for item in found],
        "total_entities": len(others),
        "hops_traversed": max((item.depth for item in found), default=0),
    }


def _schemas(past: Past, given: Given, done: Any) -> dict[str, Any]:
    from woodrat.state import builtin

    sought = str(given.get("search") or given.get("keyword") or "").lower()
    in_force = {**builtin.schemas(), **{schema.type: schema for schema in schemas.schemas(past.context)}}
    told = [shapes.schema(in_force[name].to_json()) for name in sorted(in_force)]
    told = [found for found in told if sought in found["entity_type"]]
    return {"schemas": told, "entity_types": told, "total": len(told)}


def _stats(past: Past, given: Given, done: Any) -> dict[str, Any]:
    by_type: dict[str, int] = {}
    relations = 0
    cursor: str | None = None
    while True:
        page = past.query(limit=PAGE, cursor=cursor)
        for snapshot in page.items:
            if shapes.is_relation(snapshot):
                relations += 1
            else:
                by_type[snapshot.entity.type] = by_type.get(snapshot.entity.type, 0) + 1
        cursor = page.cursor
        if cursor is None:
            break
    observations = len(reads.observations(past.context))
    deliveries = len(sources.deliveries(past.context))
    entities = sum(by_type.values())
    last = past.log.entries(after=past.position - 1, limit=1)
    return {
        "entities_by_type": dict(sorted(by_type.items(), key=lambda item: (-item[1], item[0]))),
        "total_entities": entities,
        "total_observations": observations,
        "total_relationships": relations,
        "total_events": observations,
        "total_interpretations": len(sources.interpretations(past.context)),
        "timeline_events": observations,
        "sources_count": deliveries,
        "last_updated": last[0].recorded_at if last else None,
        **{"entities": entities, "observations": observations, "relationships": relations, "sources": deliveries},
    }


def _field(past: Past, given: Given, done: Any) -> dict[str, Any]:
    ref, name = given["entity_id"], given["field"]
    verdicts = past.blame(ref, name).get(name, ())
    told = {item.observation.id: item for item in reads.observations(past.context, ref)}
    named = [verdict.observation for verdict in verdicts]
    listed = [shapes.observation(told[id]) for id in named if id in told]
    return {"field": name, "entity_id": ref, "observation_ids": named, "observations": listed}


# --------------------------------------------------------------------------------------------------------- changing


def _correct(ledger: Ledger, given: Given) -> Any:
    fields = dict(given.get("corrections", {}))
    if "field" in given:
        fields[given["field"]] = given.get("value")
    if not fields:
        raise Refused([Fault("corrections", "there is nothing to correct", "Send corrections, or field and value.")])
    return ledger.correct(
        given["entity_id"], fields, reason=given.get("reason"), idempotency_key=given.get("idempotency_key")
    )


def _changed(past: Past, given: Given, report: Any) -> dict[str, Any]:
    told = shapes.whole(past, past.show(given["entity_id"]))
    return {"success": True, "observation_id": next(iter(report.observations), None), **told}


def _relation(past: Past, given: Given, report: Any) -> dict[str, Any]:
    return {"success": True, **relationships.told(past, given, given.get("metadata", {}))}


def _ended(past: Past, given: Given, report: Any) -> dict[str, Any]:
    observation = next(iter(report.observations), None)
    return {"success": True, "observation_id": observation, **relationships.snapshot(past, given)["snapshot"]}


def _marked(verb: str) -> Callable[[Ledger, Given], Any]:
    return lambda ledger, given: getattr(ledger, verb)(
        given["entity_id"], reason=given.get("reason"), idempotency_key=given.get("idempotency_key")
    )


def _merge(ledger: Ledger, given: Given) -> Any:
    return ledger.merge(
        given["to_entity_id"],
        given["from_entity_id"],
        reason=given.get("merge_reason"),
        idempotency_key=given.get("idempotency_key"),
    )


def _merged(past: Past, given: Given, report: Any) -> dict[str, Any]:
    return {"success": True, **shapes.whole(past, past.show(given["to_entity_id"]))}


def _entity(given: Given) -> Mapping[str, Any]:
    return {"ref": given["entity_id"]}


def _ends(given: Given) -> Mapping[str, Any]:
    return {"start": given["source_entity_id"], "end": given["target_entity_id"]}


_WINDOW: Final = ("limit", "offset")
_STORE: Final = Verb(
    _store_answer,
    takes=(
        *("entities", "relationships", "idempotency_key", "source_priority", "commit", "file_content", "file_path"),
        *("mime_type", "original_filename", "file_idempotency_key"),
    ),
    grant=WRITE,
    write=_stored,
    about=lambda given: (
        {"records": given.get("entities", []), "priority": given.get("source_priority")}
        if not any(isinstance(item, dict) and _names_ids(item) for item in given.get("relationships", ()))
        else {"ref": "", "priority": given.get("source_priority")}
    ),
    joins=is_one_entity,
)
_QUERY: Final = Verb(
    _entities,
    takes=(*_WINDOW, "entity_type", "search", "since", "until", "updated_since", "sort_by", "sort_order"),
    about=lambda given: {"entity_type": given.get("entity_type")},
)
_SNAPSHOT: Final = Verb(_snapshot, ("entity_id",), ("at", "at_ingested"), about=_entity)
_EVENTS: Final = Verb(
    _timeline, takes=(*_WINDOW, "since", "until", "start_date", "end_date", "entity_id", "event_type")
)
_TYPES_LISTED: Final = Verb(_schemas, takes=("search", "keyword"))
_COUNTS: Final = Verb(_stats)
_PROVENANCE: Final = Verb(_field, ("entity_id", "field"), about=_entity)


def _names_ids(relation: Mapping[str, Any]) -> bool:
    """Return whether a relationship is with an entity of no stated type."""
    return "source_entity_id" in relation or "target_entity_id" in relation


VERBS: Final[Mapping[str, Verb]] = {
    "store": _STORE,
    "store_structured": _STORE,
    "entities/query": _QUERY,
    "retrieve_entities": _QUERY,
    "retrieve_entity_by_identifier": Verb(_by_identifier, ("identifier",), ("entity_type",)),
    "get_entity_snapshot": _SNAPSHOT,
    "retrieve_entity_snapshot": _SNAPSHOT,
    "list_observations": Verb(
        _observations, ("entity_id",), (*_WINDOW, "updated_since", "created_since"), about=_entity
    ),
    "timeline": _EVENTS,
    "list_timeline_events": _EVENTS,
    "retrieve_related_entities": Verb(
        _related,
        ("entity_id",),
        ("relationship_type", "relationship_types", "direction", "max_hops", "limit", "include_entities"),
    ),
    "list_relationships": Verb(
        lambda past, given, done: relationships.listed(past, given, _window(given)),
        takes=("entity_id", *relationships.ENDS, "direction", *_WINDOW),
    ),
    "get_relationship_snapshot": Verb(
        lambda past, given, done: relationships.snapshot(past, given), relationships.ENDS
    ),
    "create_relationship": Verb(
        _relation, relationships.ENDS, ("metadata", "idempotency_key"), WRITE, relationships.relate, _ends
    ),
    "create_relationships": Verb(
        relationships.all_told, ("relationships",), (), WRITE, relationships.relate_all, lambda given: {"ref": ""}
    ),
    "delete_relationship": Verb(
        _ended, relationships.ENDS, ("reason", "idempotency_key"), CORRECT, partial(relationships.mark, "delete"), _ends
    ),
    "restore_relationship": Verb(
        _ended,
        relationships.ENDS,
        ("reason", "idempotency_key"),
        CORRECT,
        partial(relationships.mark, "restore"),
        _ends,
    ),
    "correct": Verb(
        _changed,
        ("entity_id",),
        ("corrections", "entity_type", "field", "value", "reason", "idempotency_key"),
        CORRECT,
        _correct,
        _entity,
    ),
    "schemas": _TYPES_LISTED,
    "list_entity_types": _TYPES_LISTED,
    "stats": _COUNTS,
    "get_entity_type_counts": _COUNTS,
    "get_field_provenance": _PROVENANCE,
    "retrieve_field_provenance": _PROVENANCE,
    "delete_entity": Verb(
        _changed, ("entity_id",), ("entity_type", "reason", "idempotency_key"), CORRECT, _marked("delete"), _entity
    ),
    "restore_entity": Verb(
        _changed, ("entity_id",), ("entity_type", "reason", "idempotency_key"), CORRECT, _marked("restore"), _entity
    ),
    "merge_entities": Verb(
        _merged,
        ("from_entity_id", "to_entity_id"),
        ("merge_reason", "idempotency_key"),
        CORRECT,
        _merge,
        lambda given: {"one": given["from_entity_id"], "other": given["to_entity_id"]},
    ),
}
"""By address, and by the name of the tool."""
