"""Requests as Neotoma's clients, command line and agents send them, with the answers that they read.

A scenario is a list of calls; `$1.entities.0.entity_id` in one is that part of the answer to call 1. What stands in the
expected answer has to be there; there may be more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.server.conftest import Start, engine, start

__all__ = ["engine", "start"]

ANA = {"entity_type": "contact", "name": "Ana Rivera", "email": "ana@example.org"}
TASK = {"entity_type": "task", "title": "Ship", "status": "todo"}
SEED = ("POST", "store", {"entities": [ANA, TASK], "idempotency_key": "seed"}, 200, {"entities_created": 2})
LINK = (
    *("POST", "create_relationship"),
    {
        "source_entity_id": "$0.entities.0.entity_id",
        "target_entity_id": "$0.entities.1.entity_id",
        "relationship_type": "WORKS_ON",
    },
    *(200, {"success": True}),
)
WIDGET = {
    "entity_type": "widget_gadget",
    "schema_definition": {
        "fields": {"name": {"type": "string", "required": True}, "parts": {"type": "array"}},
        "canonical_name_fields": ["name"],
    },
    "reducer_config": {"merge_policies": {"parts": {"strategy": "merge_array"}}},
    "schema_version": "1.0",
    "activate": True,
}
AGAIN = {"entity_type": "widget_gadget", "name": "W1"}

SCENARIOS: dict[str, list[tuple[Any, ...]]] = {
    "the command line lists and shows": [
        SEED,
        ("GET", "entities", {"entity_type": "contact", "limit": "10"}, 200, {"total": 1, "limit": 10, "offset": 0}),
        ("GET", "entities", {"search": "Ana"}, 200, {"total": 1, "search_mode": "search"}),
        ("GET", "entities/$0.entities.0.entity_id", {}, 200, {"entity_type": "contact", "observation_count": 1}),
        ("GET", "entities/$0.entities.0.entity_id/observations", {}, 200, {"total": 1}),
        ("GET", "entities/ent_000000000000000000000000", {}, 404, {"error_code": "RESOURCE_NOT_FOUND"}),
        ("GET", "entities/duplicates", {"entity_type": "contact"}, 200, {"candidates": []}),
        ("GET", "stats", {}, 200, {"total_entities": 2, "entities_by_type": {"contact": 1, "task": 1}}),
        ("GET", "observations", {}, 200, {"total": 2}),
        ("GET", "observations", {"entity_id": "$0.entities.0.entity_id"}, 200, {"total": 1}),
        ("GET", "observations", {"entity_id": "ent_000000000000000000000000"}, 200, {"total": 0, "observations": []}),
        ("POST", "observations/query", {"entity_type": "task"}, 200, {"total": 1}),
        ("GET", "timeline", {"start_date": "2020-01-01"}, 200, {"total": 2}),
        ("GET", "timeline/$0.entities.0.observation_id", {}, 200, {"event": {"event_type": "contact_assert"}}),
        ("GET", "sources", {}, 200, {"sources": [], "total": 0}),
        ("GET", "interpretations", {}, 200, {"interpretations": [], "total": 0}),
        ("GET", "record_activity", {"limit": "1"}, 200, {"has_more": True, "limit": 1}),
        ("GET", "session", {}, 200, {"authenticated": True}),
        ("GET", "health", {}, 200, {"ok": True}),
    ],
    "relationships are listed and shown": [
        SEED,
        LINK,
        ("GET", "relationships", {}, 200, {"total": 1}),
        ("GET", "relationships", {"relationship_type": "PART_OF"}, 200, {"total": 0, "relationships": []}),
        ("GET", "relationships", {"source_entity_id": "$0.entities.0.entity_id"}, 200, {"total": 1}),
        ("GET", "relationships", {"source_entity_id": "$0.entities.1.entity_id"}, 200, {"total": 0}),
        ("GET", "relationships/$1.relationship_key", {}, 200, {"relationship_type": "WORKS_ON"}),
        ("GET", "entities/$0.entities.1.entity_id/relationships", {}, 200, {"outgoing": []}),
        ("POST", "retrieve_graph_neighborhood", {"node_id": "$0.entities.0.entity_id"}, 200, {"node_type": "entity"}),
        ("POST", "list_relationships", {"entity_id": "ent_000000000000000000000000"}, 200, {"total": 0}),
    ],
    "schemas are registered and extended": [
        ("GET", "schemas", {"keyword": "invoice"}, 200, {"total": 1}),
        ("GET", "schemas/invoice", {}, 200, {"entity_type": "invoice", "active": True}),
        ("GET", "schemas/widget_gadget", {}, 404, {"error_code": "RESOURCE_NOT_FOUND"}),
        ("POST", "register_schema", WIDGET, 200, {"success": True, "schema_version": "1"}),
        ("POST", "store", {"entities": [{**AGAIN, "parts": ["a"]}]}, 200, {"observations_created": 1}),
        ("POST", "store", {"entities": [{**AGAIN, "parts": ["b"]}]}, 200, {"entities_created": 0}),
        ("GET", "entities/$4.entities.0.entity_id", {}, 200, {"snapshot": {"name": "W1", "parts": ["a", "b"]}}),
        (
            *("POST", "update_schema_incremental"),
            {"entity_type": "widget_gadget", "fields_to_add": [{"field_name": "grams", "field_type": "number"}]},
            *(200, {"success": True, "schema_version": "2"}),
        ),
        ("POST", "describe_entity_type", {"entity_type": "widget_gadget"}, 200, {"schema_version": "2"}),
        (
            *("POST", "update_schema_incremental"),
            {"entity_type": "nobody_knows", "fields_to_add": [{"field_name": "a", "field_type": "string"}]},
            *(404, {"error_code": "RESOURCE_NOT_FOUND"}),
        ),
        ("POST", "store", {"entities": [{"entity_type": "widget_gadget", "colour": "red"}]}, 200, {}),
    ],
    "entities are merged and split": [
        SEED,
        ("POST", "store", {"entities": [{"entity_type": "contact", "name": "A. Rivera"}]}, 200, {}),
        (
            *("POST", "entities/merge"),
            {"from_entity_id": "$1.entities.0.entity_id", "to_entity_id": "$0.entities.0.entity_id"},
            *(200, {"success": True}),
        ),
        ("POST", "store", {"entities": [{**TASK, "session_tag": "later"}], "idempotency_key": "later"}, 200, {}),
        *[
            (
                *("POST", "entities/split"),
                {
                    "source_entity_id": "$0.entities.1.entity_id",
                    "predicate": {"observation_field_equals": {"field": "session_tag", "value": tag}},
                    "new_entity": {"entity_type": "task", "canonical_name": "split-target"},
                    "idempotency_key": f"split-{tag}",
                },
                status,
                answer,
            )
            for tag, status, answer in (
                ("later", 200, {"observations_moved": 1, "replayed": False}),
                ("later", 200, {"observations_moved": 1, "replayed": True}),
                ("never", 400, {"error_code": "VALIDATION_ERROR"}),
            )
        ],
        ("GET", "entities/$4.new_entity_id", {}, 200, {"snapshot": {"session_tag": "later", **{"title": "Ship"}}}),
        ("GET", "entities/$0.entities.1.entity_id", {}, 200, {"snapshot": {"status": "todo", "title": "Ship"}}),
    ],
    "a source is read": [
        (
            *("POST", "store"),
            {"file_content": "a,b\n1,2\n", "mime_type": "text/csv", "original_filename": "t.csv"},
            *(200, {"unstructured": {"file_size": 8}}),
        ),
        (
            *("POST", "interpretations/create"),
            {"source_id": "$0.source_id", "entities": [{**TASK, "title": "Sum up"}], "idempotency_key": "r1"},
            *(200, {"success": True, "observations_created": 1}),
        ),
        ("GET", "interpretations", {"source_id": "$0.source_id"}, 200, {"total": 1}),
        ("GET", "sources", {"search": "t.csv"}, 200, {"total": 1}),
        ("GET", "sources/$0.source_id", {}, 200, {"original_filename": "t.csv"}),
        ("GET", "observations", {"source_id": "$0.source_id"}, 200, {"total": 1}),
        SEED,
        (
            *("POST", "create_interpretation"),
            {"source_id": "$6.source_id", "entities": [{"entity_type": "task", "title": "Read"}]},
            *(200, {"success": True}),
        ),
        (
            *("POST", "create_interpretation"),
            {"source_id": "00000000-0000-0000-0000-000000000999", "entities": [TASK]},
            *(404, {"error_code": "RESOURCE_NOT_FOUND"}),
        ),
    ],
    "agents look for what they know": [
        SEED,
        ("POST", "retrieve_entity_by_identifier", {"identifier": "ANA@example.org"}, 200, {"total": 1}),
        ("POST", "retrieve_entity_by_identifier", {"identifier": "Zzz"}, 200, {"entities": [], "total": 0}),
        (
            *("POST", "retrieve_entities"),
            {"entity_type": "task", "snapshot_filters": {"status": {"op": "eq", "value": "todo"}}},
            *(200, {"total": 1}),
        ),
        (
            *("POST", "entities/query"),
            {"snapshot_filters": {"status": {"op": "in", "value": ["done"]}}},
            *(200, {"total": 0, "entities": []}),
        ),
        ("POST", "entities/query", {"snapshot_filters": {"status": {"op": "like", "value": "x"}}}, 400, {}),
        ("POST", "entities/query", {"entity_types": ["contact", "task"], "limit": 1}, 200, {"next_cursor": "1"}),
        ("POST", "list_recent_changes", {}, 200, {"has_more": False}),
        ("POST", "delete_entity", {"entity_id": "ent_nonexistent000000000000", "entity_type": "task"}, 404, {}),
    ],
    "a form is sent": [
        ("POST", "submit/feedback_note", {"fields": {"title": "Hello"}}, 404, {"error_code": "RESOURCE_NOT_FOUND"}),
        (
            *("POST", "store"),
            {
                "entities": [
                    {
                        "entity_type": "submission_config",
                        "config_key": "intake",
                        "target_entity_type": "feedback_note",
                        "active": True,
                    }
                ]
            },
            *(200, {}),
        ),
        ("POST", "submit_entity", {"entity_type": "feedback_note", "fields": {"title": "Hello"}}, 200, {}),
        ("GET", "entities/$2.entity_id", {}, 200, {"snapshot": {"title": "Hello"}}),
    ],
}


def filled(value: Any, answers: list[Any]) -> Any:
    """Return a request with parts of earlier answers in it."""
    match value:
        case dict():
            return {name: filled(one, answers) for name, one in value.items()}
        case list():
            return [filled(one, answers) for one in value]
        case str() if "$" in value:
            before, _, path = value.partition("$")
            path, slash, rest = path.partition("/")
            number, *parts = path.split(".")
            found = answers[int(number)]
            for part in parts:
                found = found[int(part)] if isinstance(found, list) else found[part]
            return f"{before}{found}{slash}{rest}"
    return value


def holds(found: Any, expected: Any) -> bool:
    """Return whether an answer has all that is expected of it."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            name in found and holds(found[name], expected[name]) for name in expected
        )
    return bool(found == expected)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_recorded_requests_are_answered(start: Start, scenario: str) -> None:
    """Each call has the status and the members that its caller reads."""
    server = start()
    answers: list[Any] = []
    for method, path, body, status, expected in SCENARIOS[scenario]:
        address = f"/neotoma/{quote(filled(path, answers))}"
        given = filled(body, answers)
        if method == "GET":
            address += f"?{urlencode(given)}" if given else ""
            answer = server.call("GET", address, key="dev-local")
        else:
            answer = server.call("POST", address, given, key="dev-local")
        assert answer.status == status, (path, answer.body)
        assert holds(answer.json, expected), (path, answer.body)
        answers.append(answer.json)


RECORDINGS = json.loads(Path(__file__).with_name("recordings.json").read_text("utf-8"))


@pytest.mark.parametrize("program", RECORDINGS)
def test_requests_of_its_own_programs_are_answered(start: Start, program: str) -> None:
    """What its command line and clients sent in a side-by-side run gets the status and the members it got then."""
    server = start()
    answers: list[Any] = []
    for call in RECORDINGS[program]:
        path, query, body = (filled(call.get(name), answers) for name in ("path", "query", "body"))
        address = f"/neotoma{path}" + (f"?{urlencode(query)}" if query else "")
        sent = b"" if body is None and call["method"] == "POST" else body
        answer = server.call(
            call["method"], address, sent, key="dev-local", headers={"Content-Type": "application/json"}
        )
        assert answer.status == call["status"], (call["as"], path, answer.body)
        found = answer.json if answer.headers["content-type"].startswith("application/json") else None
        assert set(call["members"]) <= set(found or ()), (call["as"], path, answer.body)
        answers.append(found)


def test_a_file_comes_back_as_it_was(start: Start) -> None:
    """The content of a source is answered byte by byte, as data."""
    server = start()
    stored = server.call(
        "POST", "/neotoma/store", {"file_content": "<b>hi</b>", "mime_type": "text/html"}, key="k"
    ).json
    answer = server.call("GET", f"/neotoma/sources/{stored['source_id']}/content", key="k")
    assert (answer.body, answer.headers["content-type"]) == (b"<b>hi</b>", "application/octet-stream")


ORDERS = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]


@pytest.mark.parametrize("at", ["record", "call"])
def test_stated_times_make_order_irrelevant(start: Start, at: str) -> None:
    """Three records with times, of which one comes from a sensor, give one state in whatever order they are sent."""
    server = start()
    told = [
        ({"status": "todo", "description": "one"}, "2026-01-05T09:00:00Z", "human"),
        ({"status": "done", "description": "two"}, "2026-01-07T09:00:00Z", "llm_summary"),
        ({"status": "late", "description": "three"}, "2026-01-06T09:00:00Z", "sensor"),
    ]
    for order in ORDERS:
        title = f"Ship {order}"
        for number in order:
            fields, seen, source = told[number]
            record = {"entity_type": "task", "title": title, **fields}
            body: dict[str, Any] = {"entities": [record], "observation_source": source}
            (record if at == "record" else body)["observed_at"] = seen
            last = server.call("POST", "/neotoma/store", body, key="k")
            assert last.status == 200, last.body
    found = server.call("POST", "/neotoma/entities/query", {"entity_type": "task"}, key="k").json["entities"]
    assert len(found) == len(ORDERS)
    for one in found:
        del one["snapshot"]["title"]
        assert one["snapshot"] == {"status": "done", "description": "three"}


Sent = tuple[dict[str, Any], dict[str, Any]]
"""A record without what names it, and what its call says of it."""
DAYS = ("2026-01-05T09:00:00Z", "2026-01-06T09:00:00Z", "2026-01-07T09:00:00Z")


def _scenarios() -> Iterator[tuple[str, str, list[Sent], dict[str, Any]]]:
    """Yield scenarios of three records: a name, a type, what is sent, and what is believed in the end."""
    for kind, field, collects in (("task", "status", False), ("contact", "phone", False), ("task", "tags", True)):
        low, mid, high = (([value] if collects else value) for value in ("a", "b", "c"))
        every = "a, b, c" if collects else None
        timed = list(zip((high, low, mid), DAYS, strict=True))
        one: list[Sent] = [({field: value, "observed_at": day}, {}) for value, day in timed]
        yield f"{field}: times in records", kind, one, {field: every or "b"}
        called = [({field: value}, {"observed_at": day}) for value, day in timed]
        yield f"{field}: times of calls", kind, called, {field: every or "b"}
        tied: list[Sent] = [({field: value, "observed_at": DAYS[0]}, {}) for value, _ in timed]
        yield f"{field}: one time, the larger value", kind, tied, {field: every or "c"}
        ranked = [(record, {"source_priority": rank}) for (record, _), rank in zip(tied, (5, 9, 1), strict=True)]
        yield f"{field}: one time, the larger priority", kind, ranked, {field: every or "a"}
        trusted = [(record, {"source_priority": rank}) for (record, _), rank in zip(one, (9, 5, 1), strict=True)]
        yield f"{field}: times and priorities", kind, trusted, {field: every or ("c" if field == "phone" else "b")}
        sources = ("sync", "sensor", "human")
        told = [(record, {"observation_source": by}) for (record, _), by in zip(one, sources, strict=True)]
        yield f"{field}: where it came from", kind, told, {field: every or ("a" if field == "phone" else "b")}
        partly: list[Sent] = [one[0], ({"description": "d", "observed_at": DAYS[2]}, {}), one[1]]
        yield f"{field}: a record without it", kind, partly, {field: "a, c" if collects else "a", "description": "d"}
    same: Sent = ({"status": "x", "observed_at": DAYS[1]}, {})
    yield "the same record three times", "task", [same, same, same], {"status": "x"}


def test_no_scenario_depends_on_its_order(start: Start) -> None:
    """22 scenarios, each in six orders: with times there is one state, and ties of time follow the documented rules."""
    server = start()
    scenarios = list(_scenarios())
    assert len(scenarios) == 22
    for name, kind, sent, expected in scenarios:
        for order in ORDERS:
            label = f"{name} {order}"
            named = {"entity_type": kind, **({"title": label} if kind == "task" else {"name": label})}
            for number in order:
                record, call = sent[number]
                answer = server.call("POST", "/neotoma/store", {"entities": [{**named, **record}], **call}, key="k")
                assert answer.status == 200, answer.body
            found = answer.json["entities"][0]["entity_snapshot_after"]
            assert {field: found.get(field) for field in expected} == expected, (name, order)


def test_without_times_arrival_decides_and_is_told(start: Start) -> None:
    """The later call wins, and `conflicts --arrival` names the field."""
    server = start()
    for status in ("done", "todo"):
        server.call("POST", "/neotoma/store", {"entities": [{**TASK, "status": status}]}, key="k")
    (found,) = server.call("POST", "/neotoma/entities/query", {"entity_type": "task"}, key="k").json["entities"]
    assert found["snapshot"]["status"] == "todo"
    listed = server.call("GET", "/v1/conflicts?arrival=true").json["items"]
    assert [item["field"] for item in listed if item["entity"] == "task/Ship"] == ["status"]
