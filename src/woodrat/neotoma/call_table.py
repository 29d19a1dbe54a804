"""The call table: every address and tool of Neotoma's clients, and the call behind it.

A path may have parts in braces, which are arguments. Calls that are not offered are listed with their replacements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.errors import NotFound
from woodrat.neotoma import (
    changes,
    entities,
    lists,
    names,
    registry,
    relationships,
    store_calls,
    subscriptions,
    turns,
)
from woodrat.neotoma.calls import ClientCall, Given, window
from woodrat.server.access import CORRECT, MANAGE, WRITE

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger

_WINDOW: Final = ("limit", "offset")


def _entity(given: Given) -> Mapping[str, Any]:
    return {"ref": given["entity_id"]}


def _of_type(given: Given) -> Mapping[str, Any]:
    return {"entity_type": given.get("entity_type")}


def _about_records(given: Given) -> Mapping[str, Any]:
    return {"records": given.get("entities", []), "priority": store_calls.priority(given)}


def _relates_records(given: Given) -> Iterator[Mapping[str, Any]]:
    """Yield the relations between records of a call and with others, and the entities that records are about."""
    records = given.get("entities", [])
    for item in given.get("relationships", ()):
        if isinstance(item, dict):
            yield relationships.link(item, records)
    yield from (
        {"ref": record["target_id"]} for record in records if isinstance(record, dict) and "target_id" in record
    )


def _relates_all(given: Given) -> Iterator[Mapping[str, Any]]:
    yield from (relationships.link(item) for item in given["relationships"] if isinstance(item, dict))


def _about_split(given: Given) -> Mapping[str, Any]:
    new = given["new_entity"]
    kind = names.type_of(str(new.get("entity_type")))
    return {"ref": given["source_entity_id"], "other": new.get("target_entity_id"), "records": [{"entity_type": kind}]}


def _none(name: str) -> dict[str, Any]:
    return {name: [], "total": 0, "limit": 100, "offset": 0}


STORE: Final = ClientCall(
    store_calls.answer,
    takes=(
        *("entities", "relationships", "idempotency_key", "source_priority", "observation_source", "observed_at"),
        *("commit", "file_content", "file_path", "mime_type", "original_filename", "file_idempotency_key"),
        "interpretation",
    ),
    grant=WRITE,
    write=store_calls.stored,
    about=_about_records,
    relates=_relates_records,
    soon=store_calls.soon,
)
_QUERY: Final = ClientCall(
    entities.entities,
    takes=(
        *(*_WINDOW, "entity_type", "entity_types", "search", "search_query", "query", "since", "until", "cursor"),
        *("updated_since", "created_since", "sort_by", "sort_order", "snapshot_filters", "exclude_bookkeeping"),
    ),
    about=_of_type,
)
_ONE: Final = ClientCall(entities.one, ("entity_id",), about=_entity)
_SNAPSHOT: Final = ClientCall(entities.snapshot, ("entity_id",), ("at", "at_ingested"), about=_entity)
_OF_ENTITY: Final = ClientCall(
    lists.observations,
    ("entity_id",),
    (*_WINDOW, "updated_since", "created_since"),
    about=_entity,
    empty=_none("observations"),
)
_OBSERVATIONS: Final = ClientCall(
    lists.observations,
    takes=(*_WINDOW, "observation_id", "entity_id", "entity_type", "source_id", "updated_since", "created_since"),
    empty=_none("observations"),
)
_EVENTS: Final = ClientCall(
    lists.timeline,
    takes=(*_WINDOW, "since", "until", "start_date", "end_date", "entity_id", "event_type"),
    empty=_none("events"),
)
_TYPES: Final = ClientCall(registry.listed, takes=(*_WINDOW, "search", "keyword", "entity_type"))
_TYPE: Final = ClientCall(registry.one, ("entity_type",), about=_of_type)
_STATS: Final = ClientCall(lists.stats, takes=("by",))
_RECENT: Final = ClientCall(lists.recent, takes=(*_WINDOW, "record_types", "since", "entity_type"))
_PROVENANCE: Final = ClientCall(entities.field_provenance, ("entity_id", "field"), about=_entity)
_MERGE: Final = ClientCall(
    changes.merged,
    ("from_entity_id", "to_entity_id"),
    ("merge_reason", "idempotency_key"),
    CORRECT,
    changes.merge,
    lambda given: {"one": given["from_entity_id"], "other": given["to_entity_id"]},
)
_SPLIT: Final = ClientCall(
    changes.split_answer,
    ("source_entity_id", "predicate", "new_entity", "idempotency_key"),
    ("reason",),
    CORRECT,
    changes.split,
    _about_split,
    tests=True,
)
_READING: Final = ClientCall(
    store_calls.interpretation_answer,
    ("source_id", "entities"),
    ("interpretation_config", "relationships", "idempotency_key"),
    WRITE,
    store_calls.interpreted,
    _about_records,
    _relates_records,
)
_SUBMIT: Final = ClientCall(
    store_calls.submission_answer,
    ("entity_type",),
    ("fields", "initial_message"),
    WRITE,
    store_calls.submitted,
    lambda given: {"records": [{"entity_type": given["entity_type"]}]},
)
_RELATIONS: Final = ClientCall(
    lambda past, given, done: relationships.listed(past, given, window(given)),
    takes=("entity_id", *relationships.ENDS, "direction", *_WINDOW),
    empty={**_none("relationships"), "total_count": 0},
)
_RELATION: Final = ClientCall(lambda past, given, done: relationships.snapshot(past, given), relationships.ENDS)


def _mark(verb: str) -> ClientCall:
    return ClientCall(
        changes.changed,
        ("entity_id",),
        ("entity_type", "reason", "idempotency_key"),
        CORRECT,
        changes.marked(verb),
        _entity,
    )


def _mark_relation(verb: str) -> ClientCall:
    return ClientCall(
        changes.ended,
        relationships.ENDS,
        ("reason", "idempotency_key"),
        CORRECT,
        partial(relationships.mark, verb),
        relationships.link,
    )


def _kept_beside(change: Callable[[Ledger, Given], dict[str, Any]], *needs: str) -> ClientCall:
    """Return a call whose answer is its own result: webhooks are kept beside the log of a tenant, not in it."""
    return ClientCall(lambda past, given, done: done, needs, grant=MANAGE, write=change)


_TURN: Final = ClientCall(turns.summary, ("conversation_id", "turn_key"))


def _no_peer(past: Any, given: Given, done: Any) -> dict[str, Any]:
    raise NotFound(f"There is no peer {given['peer_id']}. Nothing was read. {_SYNC}")


_SYNC: Final = "Ledgers exchange entries with `woodrat sync URL`, and state does not depend on order."


def _user(past: Any, given: Given, done: Any) -> dict[str, Any]:
    return {"user_id": past.context.tenant, "agent": past.context.agent, "authenticated": True}


POSTS: Final[Mapping[str, ClientCall]] = {
    "store": STORE,
    "store_structured": STORE,
    "store_unstructured": STORE,
    "entities/query": _QUERY,
    "retrieve_entities": _QUERY,
    "entities/merge": _MERGE,
    "merge_entities": _MERGE,
    "entities/split": _SPLIT,
    "split_entity": _SPLIT,
    "retrieve_entity_by_identifier": ClientCall(
        entities.by_identifier,
        ("identifier",),
        ("entity_type", "by", "limit", "include_observations", "observations_limit"),
    ),
    "get_entity_snapshot": _SNAPSHOT,
    "retrieve_entity_snapshot": _SNAPSHOT,
    "list_observations": _OF_ENTITY,
    "observations/query": _OBSERVATIONS,
    "timeline": _EVENTS,
    "list_timeline_events": _EVENTS,
    "retrieve_related_entities": ClientCall(
        entities.related,
        ("entity_id",),
        ("relationship_type", "relationship_types", "direction", "max_hops", "limit", "include_entities"),
        empty={"entities": [], "relationships": [], "total_entities": 0, "hops_traversed": 0},
    ),
    "retrieve_graph_neighborhood": ClientCall(
        entities.neighborhood,
        ("node_id",),
        (
            *("node_type", "limit", "offset", "include_relationships", "include_sources", "include_events"),
            "include_observations",
        ),
    ),
    "list_relationships": _RELATIONS,
    "relationships/snapshot": _RELATION,
    "get_relationship_snapshot": _RELATION,
    "create_relationship": ClientCall(
        changes.relation,
        relationships.ENDS,
        ("metadata", "idempotency_key"),
        WRITE,
        relationships.relate,
        relationships.link,
    ),
    "create_relationships": ClientCall(
        relationships.all_told,
        ("relationships",),
        (),
        WRITE,
        relationships.relate_all,
        lambda given: {"ref": ""},
        _relates_all,
    ),
    "delete_relationship": _mark_relation("delete"),
    "restore_relationship": _mark_relation("restore"),
    "correct": ClientCall(
        changes.changed,
        ("entity_id",),
        ("corrections", "entity_type", "field", "value", "reason", "idempotency_key"),
        CORRECT,
        changes.correct,
        _entity,
    ),
    "schemas": _TYPES,
    "list_entity_types": _TYPES,
    "describe_entity_type": _TYPE,
    "register_schema": ClientCall(
        registry.answer,
        ("entity_type", "schema_definition"),
        ("reducer_config", "schema_version"),
        MANAGE,
        registry.register,
        _of_type,
    ),
    "update_schema_incremental": ClientCall(
        registry.answer,
        ("entity_type",),
        ("fields_to_add", "fields_to_remove", "canonical_name_fields", "schema_version"),
        MANAGE,
        registry.update,
        _of_type,
    ),
    "interpretations/create": _READING,
    "create_interpretation": _READING,
    "submit/{entity_type}": _SUBMIT,
    "submit_entity": _SUBMIT,
    "stats": _STATS,
    "get_entity_type_counts": _STATS,
    "list_recent_changes": _RECENT,
    "list_peers": ClientCall(lambda past, given, done: {"peers": []}),
    "get_field_provenance": _PROVENANCE,
    "retrieve_field_provenance": _PROVENANCE,
    "delete_entity": _mark("delete"),
    "restore_entity": _mark("restore"),
    "get_authenticated_user": ClientCall(_user),
    "get_session_identity": ClientCall(_user),
    "entities/{entity_id}/batch_correct": ClientCall(
        changes.all_corrected,
        ("entity_id", "changes"),
        ("expected_last_observation_at", "overwrite", "idempotency_prefix"),
        CORRECT,
        changes.correct_all,
        _entity,
    ),
    "turn_summary": _TURN,
    "neotoma_turn_summary": _TURN,
    "subscribe": ClientCall(
        subscriptions.subscribed,
        ("delivery_method",),
        ("entity_types", "entity_ids", "event_types", "webhook_url", "webhook_secret", "max_failures"),
        MANAGE,
        subscriptions.subscribe,
    ),
    "unsubscribe": _kept_beside(subscriptions.unsubscribe, "subscription_id"),
    "list_subscriptions": _kept_beside(subscriptions.listed),
    "get_subscription_status": _kept_beside(subscriptions.status, "subscription_id"),
}
"""POST calls, by path and by the name of the tool."""

GETS: Final[Mapping[str, ClientCall]] = {
    "entities": _QUERY,
    "entities/duplicates": ClientCall(entities.duplicates, ("entity_type",), ("limit", "threshold"), about=_of_type),
    "entities/{entity_id}": _ONE,
    "entities/{entity_id}/observations": _OF_ENTITY,
    "entities/{entity_id}/relationships": ClientCall(entities.edges, ("entity_id",)),  # it reveals other types, too
    "observations": _OBSERVATIONS,
    "timeline": _EVENTS,
    "timeline/{event_id}": ClientCall(lists.event, ("event_id",)),
    "relationships": ClientCall(
        lambda past, given, done: relationships.every(past, given),
        takes=(*relationships.ENDS, *_WINDOW),
        empty=_none("relationships"),
    ),
    "relationships/{relationship_key}": ClientCall(
        lambda past, given, done: relationships.by_key(past, given["relationship_key"]), ("relationship_key",)
    ),
    "schemas": _TYPES,
    "schemas/{entity_type}": _TYPE,
    "sources": ClientCall(lists.source_list, takes=(*_WINDOW, "search", "mime_type", "source_type")),
    "sources/{source_id}": ClientCall(lists.source, ("source_id",)),
    "sources/{source_id}/content": ClientCall(lists.source_content, ("source_id",)),
    "interpretations": ClientCall(lists.interpretations, takes=(*_WINDOW, "source_id")),
    "stats": _STATS,
    "record_activity": _RECENT,
    "session": ClientCall(_user),
    "me": ClientCall(_user),
    "health": ClientCall(lambda past, given, done: {"ok": True}),
    "instance-policy": ClientCall(lists.instance_policy, about=lambda given: {"entity_type": "instance_policy"}),
    "peers": ClientCall(lambda past, given, done: {"peers": []}),
    "peers/{peer_id}": ClientCall(_no_peer, ("peer_id",)),
}
"""GET calls, by path."""

NOT_OFFERED: Final[Mapping[str, str]] = {
    "events/stream": "GET /v1/log with accept: text/event-stream streams new entries.",
    "peers": _SYNC,
    "add_peer": _SYNC,
    "sync": _SYNC,
    "resolve_sync_conflict": "A sync leaves nothing to resolve: `woodrat conflicts` lists fields on which "
    "agents disagree.",
    "agents": "Agents are named by API keys: `woodrat keys`.",
    "issues": "It files issues of Neotoma itself.",
    "analyze_schema_candidates": "`woodrat schemas infer TYPE` makes a schema from stored values.",
    "get_schema_recommendations": "`woodrat schemas infer TYPE` makes a schema of what is stored.",
    "audit_undeclared_fragments": "Fields need no declaration here; `raw_fragments` holds values with another type.",
    "health_check_snapshots": "`woodrat verify` proves that snapshots agree with the log.",
    "recompute_snapshots_by_type": "`woodrat rebuild` makes snapshots from the log again.",
    "observations/create": "Send the record to `store`.",
    "bundles": "`woodrat schemas add-pack` registers sets of schemas.",
    "get_file_url": "GET sources/SOURCE_ID/content answers with the file.",
}
"""Calls that are not offered, by the beginning of their path, and their replacements."""


class Found(NamedTuple):
    """The call behind an address."""

    verb: ClientCall
    """What is called."""
    arguments: dict[str, str]
    """The arguments in the path."""


def find(method: str, address: str) -> Found | None:
    """Return the call of a path; None if there is none for this method."""
    table = {"POST": POSTS, "GET": GETS}.get(method, {})
    verb = table.get(address)
    if verb is not None:
        return Found(verb, {})
    for pattern, path in _PATTERNS.get(method, ()):
        match = pattern.fullmatch(address)
        if match is not None:
            return Found(table[path], match.groupdict())
    return None


def methods(address: str) -> list[str]:
    """Return the methods that an address has."""
    return [method for method in ("GET", "POST") if find(method, address) is not None]


def reason(address: str) -> str | None:
    """Return why a path is not offered; None for an unknown path."""
    stated = (NOT_OFFERED.get(address), NOT_OFFERED.get(address.partition("/")[0]))
    return next((text for text in stated if text is not None), None)


def _patterns(table: Mapping[str, ClientCall]) -> Iterator[tuple[re.Pattern[str], str]]:
    for path in table:
        if "{" in path:
            yield re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>.+?)", path)), path


_PATTERNS: Final = {
    method: sorted(_patterns(table), key=lambda found: -len(found[1]))
    for method, table in (("GET", GETS), ("POST", POSTS))
}
"""Addresses with arguments, the longest first."""
