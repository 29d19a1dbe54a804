"""Entities: how Neotoma's clients look for them and read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import reads
from woodrat.neotoma import counting, lists, relationships, shapes
from woodrat.neotoma import names as neotoma_names
from woodrat.neotoma.calls import PAGE, Given, moment, window
from woodrat.state import packs

if TYPE_CHECKING:
    from woodrat.api.past import Past
    from woodrat.merge.snapshot import Snapshot

BOOKKEEPING: Final = frozenset(
    {
        *("conversation", "conversation_message", "conversation_turn", "context_event"),
        *("tool_invocation", "tool_invocation_failure"),
    }
)
"""Types of records that agents write about themselves."""


def entities(past: Past, given: Given, done: Any) -> dict[str, Any]:
    limit, offset = window(given)
    if given.get("cursor", "").isdecimal():
        offset = int(given["cursor"])
    order = _order(past, given)
    since, until = moment(given, "since", "updated_since", "created_since"), moment(given, "until")
    types, conditions = _types(given), _conditions(given)
    found: Iterable[Snapshot]
    if order is None and not (_words(given) or conditions or since or until):
        listed = _all(past, given, min(PAGE, offset + limit))
        found = list(islice((one for one in listed if types(one.entity.type)), offset, offset + limit))
        total = counting.entities(past.context, given.get("entity_type"), types)
    else:
        found = [
            one
            for one in _all(past, given)
            if types(one.entity.type) and _seen_within(one, since, until) and _fulfils(one, conditions)
        ]
        if order is not None:
            found.sort(key=order, reverse=given.get("sort_order") == "desc")
        total, found = len(found), found[offset : offset + limit]
    versions = {kind: shapes.version(past, kind) for kind in {one.entity.type for one in found}}
    shown_ = [{**shapes.entity(one), "schema_version": versions[one.entity.type]} for one in found]
    end = offset + len(shown_)
    more = {"next_cursor": str(end)} if end < total else {}
    mode = "search" if _words(given) else "list"
    return {"entities": shown_, "total": total, "limit": limit, "offset": offset, "search_mode": mode, **more}


def _words(given: Given) -> str | None:
    return given.get("search") or given.get("search_query") or given.get("query")


def _types(given: Given) -> Callable[[str], bool]:
    """Return True if a type is among the requested ones."""
    wanted = {neotoma_names.type_of(str(name)) for name in given.get("entity_types", ())}
    left_out = BOOKKEEPING if given.get("exclude_bookkeeping") and "entity_type" not in given else frozenset()
    return lambda kind: kind not in left_out and (not wanted or kind in wanted)


def _conditions(given: Given) -> Mapping[str, Any]:
    """Return the conditions on fields, by the path of the field."""
    filters: dict[str, Any] = given.get("snapshot_filters", {})
    faults = []
    for name, condition in filters.items():
        said = condition if isinstance(condition, dict) else {}
        op = said.get("op")
        if not isinstance(op, str) or op not in _OPERATORS or "value" not in said:
            remedy = f"Send an op ({', '.join(_OPERATORS)}) and a value."
            faults.append(Fault(f"snapshot_filters/{name}", f"got {shown(condition)}", remedy))
    if faults:
        raise Refused(faults, "Nothing was read.")
    return filters


def _fulfils(snapshot: Snapshot, conditions: Mapping[str, Any]) -> bool:
    """Return True if an entity matches the requested values."""
    fields = shapes.fields(snapshot) if conditions else {}
    return all(
        _OPERATORS[condition["op"]](_followed(fields, name), condition["value"])
        for name, condition in conditions.items()
    )


def _followed(value: Any, path: str) -> Any:
    """Return the member at a dotted path; None if there is none."""
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _same(value: Any, wanted: Any) -> bool:
    return value is not None and (value == wanted or _text(value) == _text(wanted))


def _text(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _before(value: Any, wanted: Any, *, or_same: bool) -> bool:
    """Return True if a value is below another: as numbers if both are, else as text."""
    if value is None or wanted is None:
        return False
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (value, wanted))
    one, other = (value, wanted) if numbers else (_text(value), _text(wanted))
    return bool(one < other or (or_same and one == other))


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, list):
        return any(_same(one, wanted) for one in value)
    return value is not None and _text(wanted).lower() in _text(value).lower()


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": _same,
    "in": lambda value, wanted: isinstance(wanted, list) and any(_same(value, one) for one in wanted),
    "gt": lambda value, wanted: _before(wanted, value, or_same=False),
    "lt": lambda value, wanted: _before(value, wanted, or_same=False),
    "gte": lambda value, wanted: _before(wanted, value, or_same=True),
    "lte": lambda value, wanted: _before(value, wanted, or_same=True),
    "contains": _contains,
    "contains_word": lambda value, wanted: value is not None and _text(wanted).lower() in _text(value).lower().split(),
}
"""Operators of a condition on a field."""


def _order(past: Past, given: Given) -> Callable[[Snapshot], Any] | None:
    """Return the sort key of entities: a name, a time or a field, as text; default: the order of lists here."""
    stated, way = given.get("sort_by"), given.get("sort_order", "asc")
    known = ("entity_id", "canonical_name", "last_observation_at", "observation_count", "submitted_at")
    faults = []
    if way not in ("asc", "desc"):
        faults.append(Fault("sort_order", f"got {shown(way)}", "Send asc or desc."))
    if stated is not None and stated not in known and not stated.startswith("snapshot."):
        faults.append(Fault("sort_by", f"got {shown(stated)}", f"Send {', '.join(known)} or snapshot.FIELD."))
    if faults:
        raise Refused(faults, "Nothing was read.")
    if stated is None or (stated == "canonical_name" and "entity_type" in given):
        return None  # of one type, a list here has the order of keys, which are the names
    if stated.startswith("snapshot."):
        name = stated.removeprefix("snapshot.")
        return lambda snapshot: (str(snapshot.fields.get(name, "")), snapshot.entity.id)
    if stated == "observation_count":
        return lambda snapshot: (len(reads.observations(past.context, snapshot.entity)), snapshot.entity.id)
    if stated == "submitted_at":
        return lambda snapshot: (str(snapshot.fields.get("created_at", "")), snapshot.entity.id)
    if stated == "last_observation_at":
        return lambda snapshot: (shapes.last_observed(snapshot) or "", snapshot.entity.id)
    return lambda snapshot: (snapshot.entity.key if stated == "canonical_name" else "", snapshot.entity.id)


def _all(past: Past, given: Given, at_a_time: int = PAGE) -> Iterator[Snapshot]:
    """Yield the entities of a type or with some words, page by page, as they are consumed."""
    words, kind = _words(given), given.get("entity_type")
    where = _where(given)
    descending = given.get("sort_order") == "desc"
    cursor: str | None = None
    while True:
        if words:
            hits = past.search(words, entity_type=kind, limit=at_a_time, cursor=cursor)
            found, cursor = [hit.snapshot for hit in hits.items], hits.cursor
        else:
            page = past.query(entity_type=kind, where=where, limit=at_a_time, cursor=cursor, descending=descending)
            found, cursor = list(page.items), page.cursor
        yield from (snapshot for snapshot in found if not shapes.is_relation(snapshot))
        if cursor is None:
            return


def _where(given: Given) -> dict[str, Any] | None:
    """Return the conditions on fields that an index can answer, relaxed if necessary: results are filtered again.

    A number may be stored as text and queried as a number, or the reverse.
    """
    shown_as_text = {name for names in packs.text_collections(packs.NEOTOMA).values() for name in names}
    found: dict[str, Any] = {}
    for name, condition in given.get("snapshot_filters", {}).items():
        wanted = condition["value"] if condition["op"] == "in" else [condition["value"]]
        if condition["op"] not in ("eq", "in") or "." in name or name in shown_as_text or not isinstance(wanted, list):
            continue
        if wanted and all(isinstance(one, str | int | float | bool) for one in wanted):
            found[name] = {"in": list({_typed(one): one for said in wanted for one in _spellings(said)}.values())}
    return found or None


def _spellings(value: Any) -> Iterator[Any]:
    """Yield a value, and its forms as text or as JSON."""
    yield value
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except ValueError:
            return
        if isinstance(read, int | float | bool):
            yield read
    else:
        yield _text(value)


def _typed(value: Any) -> tuple[str, Any]:
    return type(value).__name__, value


def _seen_within(snapshot: Snapshot, since: str | None, until: str | None) -> bool:
    if since is None and until is None:
        return True
    latest = shapes.last_observed(snapshot) or ""
    return (since is None or latest >= since) and (until is None or latest < until)


def by_identifier(past: Past, given: Given, done: Any) -> dict[str, Any]:
    words, kind = given["identifier"], given.get("entity_type")
    found = _identified(past, words, kind, given.get("by"))
    if found is None:
        return {"entities": [], "total": 0, "match_mode": "none"}
    told = shapes.whole(past, found) if "by" in given else shapes.identified(past, found)
    if given.get("include_observations"):
        kept = sorted(reads.observations(past.context, found.entity), key=lambda item: item.observation.observed_at)
        told["observations"] = [shapes.observation(item) for item in kept[::-1][: given.get("observations_limit", 20)]]
    return {**told, "entities": [told], "total": 1, "match_mode": "direct"}


def _identified(past: Past, words: str, kind: str | None, by: str | None) -> Snapshot | None:
    """Return the entity with an id, a reference, a key or an identifying value; only letter case may differ.

    With `by`, the entity with the value in that field.
    """
    for ref in () if by else (words, f"{kind}/{words}" if kind else None):
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
        names = (
            [snapshot.fields.get(by)]
            if by
            else [
                snapshot.entity.key,
                *(
                    snapshot.fields.get(name)
                    for name in (*neotoma_names.IDS, *neotoma_names.NAMES, "canonical_name", "aliases")
                ),
            ]
        )
        said = [item for name in names for item in (name if isinstance(name, list) else [name])]
        if any(isinstance(item, str) and item.lower() == sought for item in said):
            return snapshot
    return None


def snapshot(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """One entity, also as known (`at_ingested`) or true (`at`) at a time."""
    known, true = moment(given, "at_ingested"), moment(given, "at")
    then = past if known is None and true is None else past.at(known, valid_at=true)
    return shapes.whole(then, _live_entity(then, given["entity_id"]))


def _live_entity(past: Past, ref: str) -> Snapshot:
    """Return an entity that is not deleted."""
    found = past.show(ref)
    if found.deleted:
        raise NotFound(f"{found.entity}: it was deleted. Nothing was read. `restore_entity` takes that back.")
    return found


def related(past: Past, given: Given, done: Any) -> dict[str, Any]:
    limit, _ = window(given)
    start, found = relationships.fitting(past, given, given.get("max_hops", 1))
    others = dict.fromkeys(ref for item in found for ref in (item.start, item.end) if ref != start)
    shown_ = list(others)[:limit] if given.get("include_entities", True) else []
    return {
        "entities": [shapes.entity(past.show(ref)) for ref in shown_],
        "relationships": [shapes.relationship(item) for item in found],
        "total_entities": len(others),
        "hops_traversed": max((item.depth for item in found), default=0),
    }


def field_provenance(past: Past, given: Given, done: Any) -> dict[str, Any]:
    ref, name = given["entity_id"], given["field"]
    verdicts = past.blame(ref, name).get(name, ())
    told = {item.observation.id: item for item in reads.observations(past.context, ref)}
    named = [verdict.observation for verdict in verdicts]
    listed = [shapes.observation(told[id]) for id in named if id in told]
    return {"field": name, "entity_id": ref, "observation_ids": named, "observations": listed}


def one(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return one entity with its number of observations."""
    return shapes.whole(past, _live_entity(past, given["entity_id"]))


def edges(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return the relationships from an entity and to it."""
    start, found = relationships.fitting(past, given)
    outgoing = [shapes.relationship(item) for item in found if item.start == start]
    incoming = [shapes.relationship(item) for item in found if item.start != start]
    return {"outgoing": outgoing, "incoming": incoming, "relationships": [*outgoing, *incoming]}


def duplicates(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return entities that share an identifying value and so may be one."""
    limit, _ = window(given)
    found = past.duplicates(given["entity_type"], limit=limit).items
    told = [
        {
            "entity_a": {"id": ids[0], "entity_type": given["entity_type"]},
            "entity_b": {"id": ids[1], "entity_type": given["entity_type"]},
            "score": 1.0,
            "matched_fields": item.rule.split("+"),
        }
        for item in found
        if len(ids := [past.show(ref).entity.id for ref in item.entities]) > 1
    ]
    return {"candidates": told, "entity_type": given["entity_type"], "threshold": None}


def neighborhood(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return an entity with its relationships, neighbours, observations and events; or a source."""
    if given.get("node_type") == "source":
        return {
            "node_id": given["node_id"],
            "node_type": "source",
            "source": lists.source_named(past, given["node_id"]),
        }
    told = {"entity_id": given["node_id"], "limit": given.get("limit", 100)}
    center = one(past, told, None)
    around = related(past, told, None)
    found = {"node_id": given["node_id"], "node_type": "entity", "entity": center, "entity_snapshot": center}
    found |= {"related_entities": around["entities"], "total_count": around["total_entities"]}
    found["has_more"] = around["total_entities"] > len(around["entities"])
    if given.get("include_relationships", True):
        found["relationships"] = around["relationships"]
    kept = reads.observations(past.context, given["node_id"])
    if given.get("include_observations"):
        found["observations"] = [shapes.observation(item) for item in kept]
    if given.get("include_sources", True):
        named = dict.fromkeys(item.observation.optional.get("source") for item in kept)
        found["sources"] = [lists.source_named(past, id) for id in map(shapes.short, named) if id is not None]
    if given.get("include_events", True):
        found["timeline_events"] = [shapes.event_of(item.observation) for item in kept]
    return found
