"""Neotoma: the requests its Python client makes, in its field names, answered as it reads them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.server.conftest import Start, engine, keyring, start
from tests.server.server import Server

from woodrat.canon.ids import TenantId
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.neotoma.call_table import GETS, NOT_OFFERED, POSTS
from woodrat.proofs.verbs.keys import make
from woodrat.server.keys import Keyring

__all__ = ["engine", "keyring", "start"]

Post = Callable[..., Any]
PAGE = (Path(__file__).parents[2] / "docs/reference/neotoma.md").read_text("utf-8")
ANA = {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}


@pytest.fixture
def server(start: Start) -> Server:
    return start()


@pytest.fixture
def post(server: Server) -> Post:
    """Send what the client sends: JSON to the base URL and a path, with the token it has when none is configured."""

    def call(path: str, body: Any, status: int = 200) -> Any:
        answer = server.call("POST", f"/neotoma{path}", body, key="dev-local")
        assert answer.status == status, answer.body
        return answer.json

    return call


def test_stored_entities_come_back(post: Post) -> None:
    """What is stored is found by type, by words, by name and by id, with the observation behind each field."""
    stored = post("/store", {"entities": [ANA], "idempotency_key": "crm-1"})
    (item,) = stored["entities"]
    assert (item["entity_type"], item["action"], stored["replayed"]) == ("contact", "created", False)
    assert stored["structured"]["entities"] == stored["entities"]
    again = post("/store", {"entities": [ANA], "idempotency_key": "crm-1"})
    assert (again["replayed"], again["entities"][0]["entity_id"]) == (True, item["entity_id"])
    listed = post("/entities/query", {"entity_type": "contact", "limit": 10, "offset": 0})
    assert (listed["total"], listed["limit"], listed["offset"]) == (1, 10, 0)
    assert listed["entities"][0]["snapshot"] == {"city": "Barcelona", "name": "Ana Rivera"}
    found = post("/retrieve_entity_by_identifier", {"identifier": "ana rivera"})
    shown = post("/get_entity_snapshot", {"entity_id": item["entity_id"]})
    assert found["entity_id"] == shown["entity_id"] == item["entity_id"]
    assert shown["provenance"]["city"] == item["observation_id"]
    assert (shown["observation_count"], shown["canonical_name"]) == (1, "Ana Rivera")
    assert post("/entities/query", {"search": "Ana"})["total"] == 1
    assert post("/entities/query", {"entity_type": "contact", "since": "2100-01-01T00:00:00Z"})["total"] == 0


def test_later_words_win_and_both_stay(post: Post) -> None:
    """A second store updates the entity; observations, newest first, keep both, and the page is as asked for."""
    first = post("/store", {"entities": [ANA], "idempotency_key": "a"})["entities"][0]
    second = post("/store", {"entities": [{**ANA, "city": "Girona"}], "idempotency_key": "b"})["entities"][0]
    assert (second["entity_id"], second["action"]) == (first["entity_id"], "matched_existing")
    kept = post("/list_observations", {"entity_id": first["entity_id"], "limit": 1, "offset": 0})
    assert (kept["total"], [item["fields"]["city"] for item in kept["observations"]]) == (2, ["Girona"])
    events = post("/timeline", {"since": "2020-01-01", "limit": 10})["events"]
    assert {event["entity_id"] for event in events} == {first["entity_id"]}
    assert len(events) == 2
    provenance = post("/retrieve_field_provenance", {"entity_id": first["entity_id"], "field": "city"})
    assert len(provenance["observations"]) == 2


def test_a_chat_turn_is_one_call(post: Post) -> None:
    """Conversation and message are stored together with their relationship, and the next turn joins the same ones."""
    turn: dict[str, Any] = {
        "entities": [
            {"entity_type": "conversation", "conversation_id": "conv-1", "title": "Conversation conv-1"},
            {"entity_type": "conversation_message", "role": "user", "content": "Hello", "turn_key": "conv-1:t1"},
        ],
        "relationships": [{"relationship_type": "PART_OF", "source_index": 1, "target_index": 0}],
        "idempotency_key": "conversation-conv-1-t1-user",
    }
    user = post("/store", turn)
    assert [item["observation_index"] for item in user["entities"]] == [0, 1]
    conversation, message = (item["entity_id"] for item in user["entities"])
    assert user["relationships_created"] == [
        {"relationship_type": "PART_OF", "source_entity_id": message, "target_entity_id": conversation}
    ]
    reply = {
        "entities": [
            {"entity_type": "conversation", "conversation_id": "conv-1"},
            {
                "entity_type": "conversation_message",
                "role": "assistant",
                "content": "Hi",
                "turn_key": "conv-1:t1:assistant",
            },
        ],
        "relationships": [
            {"relationship_type": "PART_OF", "source_index": 1, "target_index": 0},
            {"relationship_type": "REFERS_TO", "source_index": 1, "target_entity_id": message},
            {"relationship_type": "REFERS_TO", "source_index": 1, "target_entity_id": "ent_" + "a" * 26},
        ],
        "idempotency_key": "conversation-conv-1-t1-assistant",
    }
    assistant = post("/store", reply)
    assert assistant["entities"][0]["entity_id"] == conversation
    assert len(assistant["relationships_created"]) == 2
    (refused,) = assistant["relationships_refused"]
    assert (refused["relationship_index"], refused["code"]) == (2, "RELATIONSHIP_ENDPOINT_NOT_FOUND")
    related = post("/retrieve_related_entities", {"entity_id": conversation, "relationship_type": "PART_OF"})
    assert {item["snapshot"]["content"] for item in related["entities"]} == {"Hello", "Hi"}
    outgoing = post("/retrieve_related_entities", {"entity_id": conversation, "direction": "outgoing"})
    assert outgoing["entities"] == []
    assert post("/entities/query", {})["total"] == 3


def test_relationships_and_corrections(post: Post) -> None:
    """Entities are related by id, a correction holds against later claims, and deleting can be taken back."""
    entities = [ANA, {"entity_type": "company", "name": "Kline"}]
    ana, kline = (item["entity_id"] for item in post("/store", {"entities": entities})["entities"])
    given = {"relationship_type": "WORKS_AT", "source_entity_id": ana, "target_entity_id": kline}
    made = post("/create_relationship", {**given, "metadata": {"since": 2020}})
    assert (made["relationship_key"], made["snapshot"]) == (f"WORKS_AT:{ana}:{kline}", {"since": 2020})
    corrected = post("/correct", {"entity_id": ana, "corrections": {"city": "Girona"}})
    assert (corrected["success"], corrected["snapshot"]["city"]) == (True, "Girona")
    post("/store", {"entities": [ANA]})
    assert post("/get_entity_snapshot", {"entity_id": ana})["snapshot"]["city"] == "Girona"
    one = post("/correct", {"entity_id": ana, "entity_type": "contact", "field": "city", "value": "Vic"})
    assert one["snapshot"]["city"] == "Vic"
    assert post("/delete_entity", {"entity_id": ana})["deleted"] is True
    assert post("/restore_entity", {"entity_id": ana})["deleted"] is False
    bob = post("/store", {"entities": [{"entity_type": "contact", "name": "A. Rivera"}]})["entities"][0]["entity_id"]
    assert post("/merge_entities", {"from_entity_id": bob, "to_entity_id": ana})["success"] is True


def test_relationships_are_listed_ended_and_taken_up_again(post: Post) -> None:
    """A relationship is known by its type and ends: it is listed, shown, ended and taken up again by these."""
    entities = [ANA, {"entity_type": "company", "name": "Kline"}, {"entity_type": "company", "name": "Acme"}]
    ana, kline, acme = (item["entity_id"] for item in post("/store", {"entities": entities})["entities"])
    works = {"relationship_type": "WORKS_AT", "source_entity_id": ana, "target_entity_id": kline}
    wrong = {"relationship_type": "WORKS_AT", "source_entity_id": ana, "target_entity_id": "ent_" + "a" * 26}
    made = post("/create_relationships", {"relationships": [{**works, "metadata": {"since": 2020}}, wrong, {}]})
    assert (made["success"], made["requested"], made["created_count"], made["error_count"]) == (False, 3, 1, 2)
    assert [error["index"] for error in made["errors"]] == [1, 2]
    post("/create_relationship", {**works, "target_entity_id": acme})
    listed = post("/list_relationships", {"entity_id": ana, "limit": 1})
    assert (listed["total_count"], len(listed["relationships"])) == (2, 1)
    assert post("/list_relationships", {"entity_id": ana, "direction": "inbound"})["total"] == 0
    (between,) = post("/list_relationships", {"source_entity_id": ana, "target_entity_id": kline})["relationships"]
    assert (between["relationship_type"], between["metadata"]) == ("WORKS_AT", {"since": 2020})
    shown = post("/get_relationship_snapshot", works)
    assert (shown["snapshot"]["snapshot"], len(shown["observations"])) == ({"since": 2020}, 1)
    assert post("/delete_relationship", {**works, "reason": "left"})["deleted"] is True
    assert post("/list_relationships", {"entity_id": ana})["total"] == 1
    assert post("/restore_relationship", works)["deleted"] is False
    assert post("/list_relationships", {"entity_id": ana})["total"] == 2
    for path in ("/delete_relationship", "/get_relationship_snapshot"):
        assert post(path, {**works, "relationship_type": "KNOWS"}, 404)["error_code"] == "RESOURCE_NOT_FOUND"
    assert "entity_id" in post("/list_relationships", {"relationship_type": "KNOWS"}, 400)["message"]


def test_lists_are_sorted_and_bounded_as_asked(post: Post) -> None:
    """Entities come sorted by a name, time or field, and dates alone are times in every address."""
    for name, city in (("Ana", "Vic"), ("Bob", "Olot"), ("Cleo", "Ripoll")):
        post("/store", {"entities": [{"entity_type": "contact", "name": name, "city": city}]})

    def names(**asked: Any) -> list[str]:
        found = post("/entities/query", {"entity_type": "contact", **asked})["entities"]
        return [item["canonical_name"] for item in found]

    assert names(sort_by="snapshot.city") == ["Bob", "Cleo", "Ana"]
    assert names(sort_by="last_observation_at", sort_order="desc") == ["Cleo", "Bob", "Ana"]
    assert names(sort_by="canonical_name", sort_order="desc", limit=1, offset=1) == ["Bob"]
    assert names(since="2020-01-01", until="2100-01-01") == ["Ana", "Bob", "Cleo"]
    assert names(until="2020-01-01") == []
    refused = post("/entities/query", {"sort_by": "colour", "sort_order": "up"}, 400)
    assert [fault["path"] for fault in refused["details"]["faults"]] == ["sort_order", "sort_by"]
    assert "Nothing was read." in post("/entities/query", {"since": "soon"}, 400)["message"]
    (event,) = post("/timeline", {"event_type": "contact_assert", "limit": 1})["events"]
    assert post("/timeline", {"event_type": "task_assert"})["events"] == []
    past = {"entity_id": event["entity_id"], "at_ingested": "2020-01-01"}
    assert post("/get_entity_snapshot", past, 404)["error_code"] == "RESOURCE_NOT_FOUND"
    assert post("/list_observations", {"entity_id": event["entity_id"], "updated_since": "2100-01-01"})["total"] == 0
    sideways = {"entity_id": event["entity_id"], "direction": "sideways"}
    assert "outgoing" in post("/retrieve_related_entities", sideways, 400)["message"]


def test_deleting_twice_with_one_key_is_deleting_once(post: Post) -> None:
    """Changes heed their idempotency key as stores do."""
    ana = post("/store", {"entities": [ANA]})["entities"][0]["entity_id"]
    deleted = [post("/delete_entity", {"entity_id": ana, "idempotency_key": "d1"}) for _ in range(2)]
    assert deleted[0]["observation_id"] == deleted[1]["observation_id"]
    assert post("/stats", {})["total_observations"] == 2


def test_types_and_counts(post: Post) -> None:
    """Schemas are listed with their fields, and stats count entities by type, apart from relationships."""
    post(
        "/store",
        {
            "entities": [ANA, {"entity_type": "task", "title": "Ship"}],
            "relationships": [{"relationship_type": "DEPENDS_ON", "source_index": 1, "target_index": 0}],
        },
    )
    (schema,) = post("/schemas", {"search": "contact"})["schemas"]
    found = [item["entity_type"] for item in post("/schemas", {"search": "cont"})["schemas"]]
    assert found == ["contact", "context_event", "contract"]  # published, before anything of the second was stored
    assert "city" in schema["schema_definition"]["fields"]
    assert schema["entity_type"] == "contact"
    stats = post("/stats", {})
    assert stats["entities_by_type"] == {"contact": 1, "task": 1}
    assert (stats["total_entities"], stats["total_relationships"]) == (2, 1)


def test_files_are_sources(post: Post) -> None:
    """File content is kept as a source, and entities sent with it name it."""
    file = {
        "file_content": base64.b64encode(b"Net-30").decode(),
        "mime_type": "text/plain",
        "original_filename": "c.txt",
    }
    stored = post("/store", {"entities": [ANA], **file})
    assert stored["unstructured"]["file_size"] == 6
    (seen,) = post("/list_observations", {"entity_id": stored["entities"][0]["entity_id"]})["observations"]
    assert seen["source_id"] == stored["unstructured"]["source_id"]
    for text in ("date,amount\n2026-04-01,1200.00\n", "test", "%"):
        plain = post("/store", {"file_content": text, "mime_type": "text/csv", "original_filename": "t.csv"})
        assert plain["unstructured"]["file_size"] == len(text)


def test_a_trial_writes_nothing(post: Post) -> None:
    """With commit false the answer says what would be, and nothing is there after."""
    planned = post("/store", {"entities": [ANA, ANA], "commit": False})
    assert [item["action"] for item in planned["entities"]] == ["would_create", "would_create"]
    assert post("/entities/query", {})["total"] == 0


def test_types_without_a_schema_are_known_by_what_they_have(post: Post) -> None:
    """A record without any field that names it is an entity of its own; one that names another entity is that one."""
    note = post("/store", {"entities": [{"entity_type": "remark", "body": "Call back", "n": 1}]})["entities"][0]
    assert note["canonical_name"].startswith("record:")
    assert note["identity_basis"] == "record"
    named = post("/store", {"entities": [{"entity_type": "remark", "target_id": note["entity_id"], "n": 2}]})
    assert named["entities"][0]["entity_id"] == note["entity_id"]


def test_what_its_hooks_write_keeps_apart(post: Post) -> None:
    """Sessions that share a title are several conversations, and tools of one turn several invocations."""
    title = {"entity_type": "conversation", "title": "Claude Code session"}
    sessions = [post("/store", {"entities": [{**title, "session_id": name}]})["entities"][0] for name in ("s1", "s2")]
    assert [item["canonical_name"] for item in sessions] == ["s1", "s2"]
    whole = post("/store", {"entities": [{**title, "session_id": "s1", "conversation_id": "c1"}]})["entities"][0]
    assert whole["canonical_name"] == "c1"
    used = {"entity_type": "tool_invocation", "turn_key": "s1:t1", "status": None, "has_error": False}
    calls = [
        post("/store", {"entities": [{**used, "tool_name": name}]})["entities"][0]["entity_id"]
        for name in ("Read", "Bash", "Read")
    ]
    assert (calls[0] != calls[1], calls[0] == calls[2]) == (True, True)
    turn = {"entity_type": "conversation_turn", "session_id": "s1", "turn_id": "t1", "turn_key": "s1:t1"}
    first = post("/store", {"entities": [{**turn, "harness": "a"}]})["entities"][0]
    second = post("/store", {"entities": [{**turn, "model": "small-1"}]})["entities"][0]
    assert second["entity_id"] == first["entity_id"]
    assert second["entity_snapshot_after"] == {
        **{name: value for name, value in turn.items() if name != "entity_type"},
        **{"harness": "a", "model": "small-1"},
    }


def test_types_and_nulls_are_taken_as_its_callers_mean_them(post: Post) -> None:
    """A type in other letters is the same type wherever it is named, and null says nothing of a schema's field."""
    stored = post("/store", {"entities": [{"entity_type": "Contact", "name": "Bo", "city": None}]})["entities"][0]
    assert (stored["entity_type"], stored["entity_snapshot_after"]) == ("contact", {"name": "Bo"})
    assert post("/entities/query", {"entity_type": "CONTACT"})["total"] == 1
    post("/store", {"entities": [{"entity_type": "Blog-Post", "title": "X"}]})
    assert post("/retrieve_entity_by_identifier", {"identifier": "X", "entity_type": "blog post"})["entity_type"] == (
        "blog_post"
    )


def test_a_key_for_other_content_has_its_own_code(post: Post) -> None:
    """The second use of a key for something else is told apart from other refusals, by the code that is known there."""
    post("/store", {"entities": [ANA], "idempotency_key": "k"})
    error = post("/store", {"entities": [{**ANA, "city": "Vic"}], "idempotency_key": "k"}, 400)
    assert error["error_code"] == "ERR_IDEMPOTENCY_MISMATCH"
    assert post("/store", {"entities": [ANA], "idempotency_key": "\0"}, 400)["error_code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/get_entity_snapshot", {"entity_id": "ent_1a2b3c"}, 404, "RESOURCE_NOT_FOUND"),
        ("/correct", {"entity_id": "nobody", "corrections": {"a": 1}}, 404, "RESOURCE_NOT_FOUND"),
        ("/get_entity_snapshot", {"entity_id": "ent_" + "a" * 26}, 404, "RESOURCE_NOT_FOUND"),
        ("/get_entity_snapshot", {}, 400, "VALIDATION_ERROR"),
        ("/store", {"entities": "x", "colour": 1}, 400, "VALIDATION_ERROR"),
        ("/store", {"entities": [{"name": "x"}]}, 400, "VALIDATION_ERROR"),
        ("/store", {"file_path": "/etc/passwd"}, 400, "VALIDATION_ERROR"),
        ("/store", {}, 400, "VALIDATION_ERROR"),
        ("/entities/query", {"limit": 0}, 400, "VALIDATION_ERROR"),
        ("/burn", {}, 404, "RESOURCE_NOT_FOUND"),
        ("/subscribe", {"delivery_method": "mail"}, 400, "VALIDATION_ERROR"),
        ("/subscribe", {"delivery_method": "webhook"}, 400, "VALIDATION_ERROR"),
        ("/peers", {"peer_id": "p1"}, 501, "NOT_OFFERED"),
        ("/peers/p1/sync", {}, 501, "NOT_OFFERED"),
    ],
)
def test_errors_have_the_shape_its_clients_know(post: Post, path: str, body: Any, status: int, code: str) -> None:
    """An error has a code, a message that says what became of the data, details and the id of the request."""
    error = post(path, body, status)
    assert (error["error_code"], set(error)) == (code, {"error_code", "message", "details", "trace_id"})
    assert "Nothing was" in error["message"]


ODD: tuple[Any, ...] = ("x", -1, 1.5, True, [], {}, [[]], ["x"], {"a": 1}, 10**30)
"""Values of every type."""
INSIDE: tuple[tuple[str, dict[str, Any]], ...] = (
    *(
        ("store", {"entities": [{"entity_type": "contact", "name": "A", each: "?"}]})
        for each in ("$", "target_id", "x")
    ),
    ("store", {"entities": [{"entity_type": "?"}]}),
    *(
        ("store", {"entities": [ANA], "relationships": [{**{"source_index": 0, "target_index": 0}, each: "?"}]})
        for each in ("relationship_type", "source_index", "target_entity_id", "metadata")
    ),
    ("store", {"entities": [ANA], "relationships": ["?"]}),
    ("create_relationships", {"relationships": ["?"]}),
    *(
        ("split_entity", {"predicate": {each: "?"}})
        for each in ("observed_at_gte", "source_id_in", "observation_field_equals")
    ),
    ("split_entity", {"predicate": {"observation_field_equals": {"field": "?", "value": "?"}}}),
    ("split_entity", {"new_entity": {"entity_type": "?", "canonical_name": "?"}}),
    ("register_schema", {"schema_definition": {"fields": {"a": {"type": "?"}}}}),
    ("register_schema", {"schema_definition": {"fields": "?", "canonical_name_fields": "?"}}),
    ("register_schema", {"reducer_config": {"merge_policies": {"a": {"strategy": "?"}}}}),
    ("update_schema_incremental", {"fields_to_remove": ["?"]}),
    ("update_schema_incremental", {"fields_to_add": [{"field_name": "b", "field_type": "?", "reducer_strategy": "?"}]}),
    ("entities/query", {"snapshot_filters": {"city": {"op": "?", "value": "?"}}}),
)
"""Arguments with a place inside for a value."""


def test_a_value_of_any_type_is_answered(server: Server, post: Post) -> None:
    """Whatever an argument, or a part of one, is sent as, it is taken or refused; nothing fails."""
    stored = post("/store", {"entities": [ANA, {"entity_type": "company", "name": "Kline"}]})["entities"]
    ana, kline = (item["entity_id"] for item in stored)
    good: dict[str, Any] = {
        **dict.fromkeys(("entity_id", "source_entity_id", "from_entity_id", "node_id", "identifier"), ana),
        **{"target_entity_id": kline, "to_entity_id": kline, "relationship_type": "KNOWS", "entities": [ANA]},
        **{"changes": [{"field": "city", "value": "x"}], "schema_definition": {"fields": {}}, "entity_type": "contact"},
        **{
            "predicate": {"observed_at_gte": "2020-01-01"},
            "idempotency_key": "k",
            "field": "city",
            "relationships": [],
        },
        **{"new_entity": {"entity_type": "contact", "canonical_name": "z"}, "source_id": stored[0]["observation_id"]},
    }
    calls = []
    for name, verb in POSTS.items():
        needed = {need: good.get(need, "x") for need in verb.needs}
        for value in ODD:
            calls += [(name, {**needed, each: value}) for each in (*verb.needs, *verb.takes)]
            for inside, given in INSIDE:
                if inside == name:
                    filled = json.loads(json.dumps(given).replace('"?"', json.dumps(value)))
                    calls.append((name, {**needed, **filled}))
    connection = server.connect()
    for name, body in calls:
        path = re.sub(r"\{(\w+)\}", lambda found: quote(str(body.pop(found[1])) or "x", safe=""), name)  # noqa: B023
        headers = {"Content-Type": "application/json", "Authorization": "Bearer k"}
        connection.request("POST", f"/neotoma/{path}", json.dumps(body), headers)
        response = connection.getresponse()
        said = response.read()
        assert response.status in (200, 400, 404, 405, 409, 501), (name, body, said)
    connection.close()


def test_keys_and_grants_hold(start: Start, keyring: Keyring) -> None:
    """Every address refuses a missing or wrong key; one without the grant is forbidden, and tenants stay apart."""
    _, reader = keyring.create("lending", "auditor", ["read"])
    _, writer = keyring.create("lending", "crm", ["write", "correct"])
    _, other = keyring.create("sales", "crm", ["*"])
    server = start(keyring)
    filled: dict[str, Any] = {"entities": [ANA], "relationships": [], "predicate": {}, "new_entity": {}}
    filled |= {
        "schema_definition": {},
        **dict.fromkeys(("relationship_type", "identifier", "field", "entity_type"), "x"),
    }
    for name, verb in POSTS.items():
        path = name.replace("{entity_type}", "x")
        body = {need: filled.get(need, "ent_" + "a" * 26) for need in verb.needs if f"{{{need}}}" not in name}
        for key in (None, "dev-local"):
            answer = server.call("POST", f"/neotoma/{path}", body, key=key)
            assert (answer.status, answer.json["error_code"]) == (401, "AUTH_REQUIRED"), name
        lacking = reader if verb.write is not None else writer
        answer = server.call("POST", f"/neotoma/{path}", body, key=lacking)
        assert (answer.status, answer.json["error_code"]) == (403, "FORBIDDEN"), name
    for name, verb in GETS.items():
        path = name.format(**dict.fromkeys(verb.needs, "ent_" + "a" * 26))
        assert server.call("GET", f"/neotoma/{path}").status == 401, name
        assert server.call("GET", f"/neotoma/{path}?entity_type=x", key=writer).status == 403, name
    assert server.call("POST", "/neotoma/store", {"entities": [ANA]}, key=writer).status == 200
    assert server.call("POST", "/neotoma/entities/query", {}, key=other).json["total"] == 0
    assert server.call("GET", "/neotoma/store", key=reader).status == 405


def test_a_key_for_one_type_reaches_no_other(start: Start, keyring: Keyring) -> None:
    """It writes records of its type, with the schema of the pack, and neither splits into another nor lists all."""
    _, key = keyring.create("lending", "crm", ["read:contact", "write:contact", "correct:contact"])
    server = start(keyring)
    assert server.call("POST", "/neotoma/store", {"entities": [ANA]}, key=key).status == 200
    assert (
        server.call("POST", "/neotoma/store", {"entities": [{"entity_type": "task", "title": "x"}]}, key=key).status
        == 403
    )
    predicate = {"observation_field_equals": {"field": "city", "value": "Barcelona"}}
    split = {"source_entity_id": "contact/Ana Rivera", "predicate": predicate, "idempotency_key": "s"}
    for kind, status in (("task", 403), ("contact", 400)):
        body = {**split, "new_entity": {"entity_type": kind, "canonical_name": "n"}}
        assert server.call("POST", "/neotoma/entities/split", body, key=key).status == status
    for path in ("observations", "relationships", "stats", "entities/contact/Ana Rivera/relationships", "timeline"):
        assert server.call("GET", f"/neotoma/{quote(path)}", key=key).status == 403, path
    assert server.call("GET", "/neotoma/entities?entity_type=contact", key=key).json["total"] == 1
    assert (
        server.call("POST", "/neotoma/register_schema", {"entity_type": "a", "schema_definition": {}}, key=key).status
        == 403
    )


def test_every_address_is_described() -> None:
    """The page names every address and tool, and what is not offered."""
    posted = [name for name in POSTS if f"`{name}`" not in PAGE]
    got = [name for name in GETS if f"`GET {name}`" not in PAGE]
    assert (posted, got, [name for name in NOT_OFFERED if f"`{name}`" not in PAGE]) == ([], [], [])


def test_calls_that_share_a_commit_do_not_disturb_each_other(post: Post) -> None:
    """Many stores at once, each with a relationship that cannot be made and an entity named twice, come out whole."""
    missing = {"relationship_type": "REFERS_TO", "source_index": 0, "target_entity_id": "ent_" + "a" * 26}
    good = {"relationship_type": "PART_OF", "source_index": 0, "target_index": 2}

    def call(number: int) -> Any:
        note = {"entity_type": "remark", "name": f"note {number}", "n": number}
        entities = [note, {**note, "m": 1}, {"entity_type": "thread", "name": f"thread {number % 3}"}]
        return post("/store", {"entities": entities, "relationships": [missing, good], "idempotency_key": f"k{number}"})

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(call, range(36)))
    for answer in answers:
        first, again, _ = (item["entity_id"] for item in answer["entities"])
        assert first == again
        assert len(answer["relationships_created"]) == len(answer["relationships_refused"]) == 1
    counted = post("/stats", {})
    assert counted["entities_by_type"] == {"remark": 36, "thread": 3}
    assert counted["total_relationships"] == 36


def test_a_refused_store_leaves_the_log_as_it_was(start: Start, engine: SqliteEngine) -> None:
    """A type gets its schema in the write of its first record: where that is refused, nothing at all was written."""
    server = start()
    bad = [{"entity_type": "invoice", "invoice_number": "7"}, {"entity_type": "task", "title": "x" * 2_000_000}]
    answer = server.call("POST", "/neotoma/store", {"entities": bad}, key="k")
    assert (answer.status, "Nothing was written." in answer.json["message"]) == (400, True)
    with engine.view(TenantId("default")) as view:
        assert view.head().size == 0
    planned = server.call("POST", "/neotoma/store", {"entities": [bad[0]], "commit": False}, key="k").json
    assert planned["entities"][0]["action"] == "would_create"
    with engine.view(TenantId("default")) as view:
        assert view.head().size == 0
    stored = server.call("POST", "/neotoma/store", {"entities": [bad[0]]}, key="k").json
    assert stored["entities"][0]["action"] == "created"
    with engine.view(TenantId("default")) as view:
        assert [entry.kind for entry in view.entries(-1)] == ["schema", "observation"]


def test_a_type_with_the_built_in_schema_gets_the_packs(start: Start) -> None:
    """What was stored by the built-in schema is merged by that of the pack, with the first record here."""
    server = start()
    kept = {"entity_type": "contact", "name": "Ana Rivera", "email": "ana@example.org", "notes": ["first"]}
    assert server.call("POST", "/v1/store", {"records": [kept]}).status == 200
    told = {"entity_type": "contact", "email": "ana@example.org", "notes": "second", "connected_on": "2026-01-05"}
    (stored,) = server.call("POST", "/neotoma/store", {"entities": [told]}, key="k").json["entities"]
    assert stored["entity_snapshot_after"]["notes"] == "first\nsecond"
    assert server.call("GET", "/neotoma/schemas/contact", key="k").json["schema_version"] == "2"
    assert server.call("GET", "/v1/entities/contact/ana@example.org").json["fields"]["notes"] == ["first", "second"]


def test_several_fields_are_corrected_at_once(post: Post) -> None:
    """One write has all changes; where the entity was observed since the caller looked, it has none."""
    post("/store", {"entities": [ANA]})
    seen = post("/get_entity_snapshot", {"entity_id": "contact/Ana Rivera"})
    address = f"/entities/{seen['entity_id']}/batch_correct"
    changes = [{"field": "city", "value": "Girona"}, {"field": "role", "value": "cook"}]
    looked = {"expected_last_observation_at": seen["last_observation_at"]}
    done = post(address, {"changes": changes, **looked})
    assert (done["status"], done["snapshot"]["city"], len(done["applied"])) == ("applied", "Girona", 2)
    assert post(address, {"changes": changes[:1], **looked}, 409)["error_code"] == "CONFLICT"
    assert post(address, {"changes": changes[:1], **looked, "overwrite": True})["success"]
    assert post(address, {"changes": [{"field": 1}]}, 400)["error_code"] == "VALIDATION_ERROR"


def test_a_turn_is_summed_up(post: Post) -> None:
    """What the answer refers to was stored, what the question refers to was read; the rest is an error."""
    turn = [
        {"entity_type": "conversation", "conversation_id": "c1"},
        {"entity_type": "conversation_message", "turn_key": "c1:1", "role": "user", "content": "Hi"},
        {"entity_type": "conversation_message", "turn_key": "c1:1:assistant", "role": "assistant", "content": "Yes"},
        {"entity_type": "task", "title": "Call"},
        {"entity_type": "contact", "name": "Ana Rivera"},
    ]
    ends = [("PART_OF", 1, 0), ("PART_OF", 2, 0), ("REFERS_TO", 2, 3), ("REFERS_TO", 1, 4)]
    links = [{"relationship_type": kind, "source_index": start, "target_index": end} for kind, start, end in ends]
    post("/store", {"entities": turn, "relationships": links})
    found = post("/turn_summary", {"conversation_id": "c1", "turn_key": "c1:1:assistant"})
    assert found["status_line"] == "msg 2/2, stored 1, retrieved 1"
    assert [one["entity_type"] for one in (*found["stored"], *found["retrieved"])] == ["task", "contact"]
    post("/turn_summary", {"conversation_id": "c1", "turn_key": "nope"}, 404)
    post("/turn_summary", {"conversation_id": "c1"}, 400)


def test_subscriptions_are_webhooks(start: Start, tmp_path: Path) -> None:
    """A webhook is added with a secret that is shown once, listed without it, and removed; the stream is named."""
    make(str(tmp_path / "keys"), SystemClock())
    server = start(proofs=str(tmp_path / "keys"))

    def call(path: str, body: Any, status: int = 200) -> Any:
        answer = server.call("POST", f"/neotoma/{path}", body, key="dev-local")
        assert answer.status == status, answer.body
        return answer.json

    hook = {"delivery_method": "webhook", "webhook_url": "https://hooks.example.org/x", "entity_types": ["task"]}
    made = call("subscribe", hook)
    assert (len(made["webhook_secret"]), len(made["warnings"])) == (64, 1)
    (listed,) = call("list_subscriptions", {})["subscriptions"]
    assert (listed["subscription_id"], "webhook_secret" in listed) == (made["subscription_id"], False)
    named = {"subscription_id": made["subscription_id"]}
    assert call("get_subscription_status", named)["subscription"]["consecutive_failures"] == 0
    assert call("unsubscribe", named) == {"success": True}
    call("get_subscription_status", named, 404)
    call("subscribe", {**hook, "webhook_url": "https://127.0.0.1/x"}, 400)
    assert call("subscribe", {"delivery_method": "sse"})["stream"] == "/v1/log"
