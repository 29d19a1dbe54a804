"""Lists: observations, events, sources, interpretations, recent changes and counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.errors import NotFound
from woodrat.ledger import plans, reads, sources
from woodrat.ledger.moments import open_reader
from woodrat.neotoma import counting, shapes
from woodrat.neotoma.calls import Given, moment, page, window
from woodrat.state.asof import Stored
from woodrat.state.observation import stored

if TYPE_CHECKING:
    from woodrat.api.past import Past
    from woodrat.ledger.read import Reader
    from woodrat.state.observation import Observation


WRITE_MAX: Final = 10_000
"""Entries after the first one of a write to search for its observations."""


def observations(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return observations, the newest first: of an entity, a type or a source, or all."""
    since = moment(given, "updated_since", "created_since")
    kept = [
        item
        for item in _sought(past, given)
        if (since is None or item.observation.observed_at >= since)
        and ("entity_type" not in given or item.observation.entity.type == given["entity_type"])
        and ("observation_id" not in given or item.observation.id == given["observation_id"])
    ]
    kept.sort(key=lambda item: item.observation.observed_at, reverse=True)
    told = [shapes.observation(item) for item in kept]
    if "source_id" in given and not given["source_id"].startswith("obs_"):
        told = [item for item in told if item["source_id"] == given["source_id"]]
    return page("observations", told, given)


def _sought(past: Past, given: Given) -> Iterable[Stored]:
    """Return candidates for the requested observations: one by its id, those of an entity or a write, or all."""
    named = given.get("observation_id") or given.get("source_id", "")
    if not named.startswith("obs_"):
        return reads.observations(past.context, given.get("entity_id"))
    with open_reader(past.context) as reader:
        found = plans.find_observation(reader, named)
        if found is None:
            return ()
        if "observation_id" in given:
            return (found,)
        return _written_with(reader, found)


def _written_with(reader: Reader, first: Stored) -> list[Stored]:
    """Return the observations of the write that begins with this one: they are consecutive, with one time."""
    entries = reader.view.entries(first.position - 1, min(first.position + WRITE_MAX, reader.asof.position))
    kept: list[Stored] = []
    recorded: str | None = None
    for entry in entries:
        recorded = entry.recorded_at if recorded is None else recorded
        if entry.recorded_at != recorded:
            break
        if entry.kind == "observation" and entry.body is not None:
            kept.append(Stored(entry.position, stored(entry.body)))
    return kept


def timeline(past: Past, given: Given, done: Any) -> dict[str, Any]:
    limit, offset = window(given)
    found = reads.timeline(
        past.context, since=moment(given, "since", "start_date"), until=moment(given, "until", "end_date")
    )
    if "entity_id" in given:
        found = tuple(event for event in found if event.observation.entity.id == given["entity_id"])
    told = [shapes.event(event) for event in reversed(found)]
    if "event_type" in given:
        told = [event for event in told if event["event_type"] == given["event_type"]]
    return {"events": told[offset : offset + limit], "total": len(told), "limit": limit, "offset": offset}


def event(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return one event of the timeline: an observation."""
    found = shapes.observation_named(past, given["event_id"])
    if found is not None:
        return {"event": shapes.event_of(found)}
    raise NotFound(f"There is no event {given['event_id']}. Nothing was read. `timeline` lists them.")


def _latest(past: Past, count: int) -> list[Stored]:
    """Return the last observations of the log, the latest first; it is read from its end, in windows that grow."""
    with open_reader(past.context) as reader:
        end, window = reader.asof.position, 2 * count
        while True:
            begin = max(-1, end - window)
            kept = list(reads.stored_after(reader, begin))
            if len(kept) >= count or begin == -1:
                return kept[::-1][:count]
            window *= 4


def recent(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return the latest entries."""
    limit, offset = window({"limit": 50, **given})
    kept = _latest(past, offset + limit + 1)
    items = [
        {
            "record_type": "observation",
            "id": item.observation.id,
            "activity_at": item.observation.observed_at,
            "title": f"{item.observation.entity}: {item.observation.op}",
            "entity_id": item.observation.entity.id,
            "entity_name": item.observation.entity.key,
            "entity_type": item.observation.entity.type,
            "source_id": shapes.observation(item)["source_id"],
        }
        for item in kept[offset : offset + limit]
    ]
    return {"items": items, "has_more": len(kept) > offset + limit, "limit": limit, "offset": offset}


def source_list(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return deliveries of sources, the latest first."""
    told = [shapes.source(past, item) for item in sources.deliveries(past.context)[::-1]]
    for name, member in (("search", "original_filename"), ("mime_type", "mime_type")):
        if name in given:
            told = [item for item in told if given[name].lower() in str(item[member] or "").lower()]
    return page("sources", told, given)


def source(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return one source."""
    return source_named(past, given["source_id"])


def source_named(past: Past, id: str) -> dict[str, Any]:
    """Return a source by its id; records that were stored go by the id of the first observation."""
    if not id.startswith("obs_"):
        return shapes.source(past, sources.deliveries_of(past.context, id)[0])
    said = shapes.observation_named(past, id)
    if said is None:
        raise NotFound(f"There is no source {id}. Nothing was read. `sources` lists them.")
    return {
        "id": id,
        "content_hash": said.digest.hex(),
        "mime_type": "application/json",
        "original_filename": None,
        "source_type": "structured",
        "file_size": len(_records(said)),
        "created_at": said.observed_at,
        "provenance": {"client_name": said.agent},
    }


def source_content(past: Past, given: Given, done: Any) -> bytes:
    """Return the content of a source as received; for stored records, the first as JSON."""
    said = shapes.observation_named(past, given["source_id"]) if given["source_id"].startswith("obs_") else None
    return sources.content(past.context, given["source_id"]) if said is None else _records(said)


def _records(said: Observation) -> bytes:
    return form.encode({"entities": [{"entity_type": said.entity.type, **(said.fields or {})}]})


def instance_policy(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return the stored policy of this instance; it is shown and not enforced."""
    found = past.query(entity_type="instance_policy", limit=1).items
    if not found:
        return {"policy": None, "entity_id": None}
    return {"policy": shapes.fields(found[0]), "entity_id": found[0].entity.id}


def interpretations(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return readings of sources, the latest first."""
    found = [item for item in sources.interpretations(past.context) if given.get("source_id") in (None, item.source)]
    return page("interpretations", [shapes.interpretation(item) for item in found[::-1]], given)


def stats(past: Past, given: Given, done: Any) -> dict[str, Any]:
    by_type, relations = counting.by_type(past.context)
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
