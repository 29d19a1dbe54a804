"""What the answers of writes show to keys that may not read: what they sent, and ids; on every surface."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.mcp.test_access import CALLS, posted
from tests.server.server import Server

from woodrat.api.ledger import Ledger
from woodrat.cli.serve import endpoints
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.neotoma.call_table import POSTS
from woodrat.proofs.verbs.keys import make
from woodrat.server import access
from woodrat.server.app import App
from woodrat.server.keys import KEYS_TENANT, Keyring
from woodrat.server.routes import ROUTES

MARK = "zq-"
"""What begins every stored text that no caller sends."""
WRITING = ["write", "correct", "run", "manage"]
HIDDEN = f"contact/{MARK}hidden"
ANA = {"entity_type": "contact", "name": "Ana"}


class Filled(NamedTuple):
    """A server with what others stored."""

    server: Server
    full: str
    keys: dict[str, str]
    """Keys without `read`, and with it for another type only, by a name."""
    names: dict[str, str]
    """Ids of what is stored."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    folder: Path = tmp_path_factory.mktemp("unread")
    clock = SystemClock()
    make(str(folder / "keys"), clock)
    engine = SqliteEngine(folder / "served.db")
    keyring = Keyring(Ledger(engine, tenant=KEYS_TENANT, agent="operator", clock=clock, policies=registry(())), clock)
    _, full = keyring.create("lending", "desk", ["*"])
    secrets = {
        "unread": keyring.create("lending", "crm", WRITING)[1],
        "another": keyring.create("lending", "crm", [*WRITING, "read:task"])[1],
        "write": keyring.create("lending", "crm", ["write"])[1],
        "runner": keyring.create("lending", "crm", ["write", "run"])[1],
        "one type": keyring.create("lending", "crm", ["write:contact"])[1],
        "narrow": keyring.create("lending", "crm", ["write:contact", "write:knows", "correct:contact"])[1],
    }
    app = App(engine, keyring, clock=clock, policies=registry(()), endpoints=endpoints(), proofs=str(folder / "keys"))
    with Server(app) as server:
        yield Filled(server, full, secrets, _stored(server, full))
    engine.close()


def _stored(server: Server, full: str) -> dict[str, str]:
    def post(path: str, body: Any) -> Any:
        answer = server.call("POST", f"/v1/{path}", body, key=full)
        assert answer.status == 200, answer.body
        return answer.json

    contact = {"entity_type": "contact", "city": f"{MARK}city", "notes": [f"{MARK}note"]}
    said = post(
        "store",
        {
            "records": [
                {**contact, "name": "Ana"},
                {**contact, "name": "Eva"},
                *({**contact, "name": f"{MARK}{name}"} for name in ("hidden", "twin", "gone", "other")),
                {"entity_type": "loan", "id": f"{MARK}loan", "score": f"{MARK}score"},
            ]
        },
    )
    knows = {"from": HIDDEN, "type": "knows", "to": f"contact/{MARK}other", "fields": {"since": f"{MARK}since"}}
    related = post("relate", knows)
    post("merge", {"one": HIDDEN, "other": f"contact/{MARK}twin"})
    post("delete", {"ref": f"contact/{MARK}gone", "reason": f"{MARK}reason"})
    post("schemas", {"schema": {"title": "loan", "properties": {f"{MARK}field": {"type": "string"}}}})
    source = post("sources", {"text": f"{MARK}text", "name": f"{MARK}name"})["source"]

    def id_of(ref: str) -> str:
        found: str = server.call("GET", f"/v1/entities/{ref}", key=full).json["entity_id"]
        return found

    names = {name: id_of(f"contact/{MARK}{name}") for name in ("hidden", "twin", "gone", "other")}
    return {**names, "loan": id_of(f"loan/{MARK}loan"), "source": source, "observation": said["observations"][2]} | {
        "knows": related["observations"][0]
    }


def rest(names: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return a body for every write of REST, by verb, in an order in which each can be carried out."""
    hidden, other, gone = names["hidden"], names["other"], names["gone"]
    return {
        "store": {"records": [{**ANA, "city": "sent", "$": {"relate": [{"type": "knows", "to": "contact/Eva"}]}}]},
        "remember": {"text": "Calls before noon.", "about": hidden},
        "correct": {"ref": hidden, "fields": {"city": "sent"}},
        "retract": {"observations": [names["observation"]]},
        "restore": {"ref": gone},
        "delete": {"ref": gone},
        "relate": {"from": hidden, "type": "trusts", "to": other, "fields": {"since": "sent"}},
        "merge": {"one": hidden, "other": other},
        "split": {"ref": hidden},
        "tag": {"name": "release"},
        "schemas_register": {"schema": {"title": "loan", "properties": {"score": {"type": "string"}}}, "version": 2},
        "schemas_add_pack": {"dry_run": True},
        "sources_add": {"text": f"{MARK}text"},
        "interpretations_start": {"source": names["source"]},
        "interpretations_store": {"records": [{**ANA, "city": "read"}]},
        "interpretations_end": {},
        "runs_start": {"query": "Approve?"},
        "runs_step": {"step": {"change": {"verb": "correct", "ref": hidden, "fields": {"city": "step"}}}},
        "runs_entries": {"entries": [{"kind": "run.noted", "text": "checked"}]},
        "runs_resume": {},
        "runs_end": {"answer": "No."},
        "runs_judge": {"verdict": "good"},
        "runs_import": {"document": {"query": "?", "steps": [{"store": {**ANA, "city": "told"}}], "answer": "No."}},
        "erase": {"what": hidden, "reason": "asked to", "dry_run": True},
        "erase_again": {},
        "finish_erasure": {},
        "rebuild": {},
        "reindex": {},
        "proofs_checkpoint": {},
        "log_import": {"entries": []},
        "admit": {"bodies": []},
        "webhooks_add": {"url": "https://hooks.example.org/woodrat"},
        "webhooks_retry": {},
        "webhooks_remove": {},
        "keys_revoke": {},
    }


FORBIDDEN = {"runs_evaluate"}
"""Writes that need `read`, as they say what is stored."""
EMPTY_HANDED = {"webhooks_retry": 404, "keys_revoke": 404}
"""Writes that find nothing to do here."""


@pytest.mark.parametrize("kind", ["unread", "another"])
def test_rest_shows_no_state_to_keys_that_may_not_read(filled: Filled, kind: str) -> None:
    """The answer of every write holds what its caller sent, and ids: no value, and no name behind an id."""
    bodies = rest(filled.names)
    routes = {route.verb: route for route in ROUTES if route.writes}
    assert routes.keys() == bodies.keys() | FORBIDDEN, "a new write needs a call here"
    made = {"pack": "neotoma", "key": "key_none"}
    for verb, body in bodies.items():
        route = routes[verb]
        path = route.path.format(**made)
        answer = filled.server.call(route.method, path, body, key=filled.keys[kind])
        assert answer.status == EMPTY_HANDED.get(verb, 200), (verb, answer.body)
        assert MARK not in answer.body.decode().replace(f"{MARK}text", ""), (verb, answer.body)
        made |= {name: answer.json[name] for name in ("run", "interpretation") if name in answer.json}
        made |= {"webhook": answer.json["id"]} if verb == "webhooks_add" else {}
    whole = filled.server.call("POST", "/v1/correct", bodies["correct"] | {"dry_run": True}, key=filled.full)
    assert whole.status == 200
    assert HIDDEN in whole.body.decode()


def test_errors_name_entities_as_their_caller_did(filled: Filled) -> None:
    """What is refused of an entity that was named by its id does not say the name behind it to a key without `read`."""
    names, key = filled.names, filled.keys["unread"]
    apart = {"one": names["hidden"], "other": names["loan"]}
    condition = {"ref": names["hidden"], "fields": {"city": "x"}, "if_version": 1}
    pair = {"relationship_type": "SAME_AS", "source_entity_id": apart["one"], "target_entity_id": apart["other"]}
    refused = [
        filled.server.call("POST", "/v1/merge", apart, key=key),
        filled.server.call("POST", "/v1/split", {"ref": names["loan"]}, key=key),
        filled.server.call("POST", "/v1/correct", condition, key=key),
        posted(filled.server, key, "change", {"action": "merge", **apart}),
        called(filled, key, "create_relationship", pair),
        called(filled, key, "create_relationships", {"relationships": [pair]}),
    ]
    assert [answer.status for answer in refused] == [400, 404, 412, 200, 400, 200]
    assert not [answer.body for answer in refused if MARK in answer.body.decode()]
    assert names["loan"] in refused[0].json["detail"]
    assert HIDDEN in filled.server.call("POST", "/v1/merge", apart, key=filled.full).json["detail"]


def mcp(names: dict[str, str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return arguments for every action of MCP that writes, in an order in which each can be carried out."""
    hidden, other, gone = names["hidden"], names["other"], names["gone"]
    return {
        ("store", ""): {"records": [{**ANA, "city": "mcp"}]},
        ("remember", ""): {"text": "Calls at noon.", "about": hidden},
        ("change", "correct"): {"ref": hidden, "fields": {"city": "mcp"}},
        ("change", "retract"): {"observations": [names["observation"]]},
        ("change", "restore"): {"ref": gone},
        ("change", "delete"): {"ref": gone},
        ("change", "relate"): {"from": hidden, "type": "trusts", "to": other},
        ("change", "merge"): {"one": hidden, "other": other},
        ("change", "split"): {"ref": hidden},
        ("run", "start"): {"query": "Approve?"},
        ("run", "step"): {"step": {"change": {"verb": "correct", "ref": hidden, "fields": {"city": "mcp step"}}}},
        ("run", "decide"): {"stage": "s", "facts": {"a": 1}, "rules": [{"chosen": "x", "when": {"a": 1}}]},
        ("run", "end"): {"answer": "No."},
        ("sources", "add"): {"content": "sent"},
        ("schemas", "register"): {"schema": {"title": "loan", "properties": {"mcp": {"type": "string"}}}},
    }


@pytest.mark.parametrize("kind", ["unread", "another"])
def test_mcp_shows_no_state_to_keys_that_may_not_read(filled: Filled, kind: str) -> None:
    """The answer of every action that writes holds what its caller sent, and ids; whole records hold no more."""
    calls = mcp(filled.names)
    assert calls.keys() == {(tool, name) for tool, name, action in CALLS if action.writes}, "a new action needs a call"
    run: dict[str, str] = {}
    for (tool, action), given in calls.items():
        sent = {**given, **({"action": action} if action else {}), **(run if tool == "run" and run else {})}
        for details in (False, True) if (tool, action) not in _ONCE else (True,):
            answer = posted(filled.server, filled.keys[kind], tool, {**sent, "details": details})
            result = answer.json["result"]
            assert not result["isError"], (tool, action, result)
            assert MARK not in answer.body.decode(), (tool, action, result)
        run |= {"run": result["structuredContent"]["run"]} if action == "start" else {}


_ONCE = {("change", "split"), ("run", "start"), ("run", "end"), ("change", "delete"), ("change", "restore")}
"""Actions that can be carried out once."""


def neotoma(names: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return a body for every call of Neotoma's clients that writes, in an order in which each can be carried out."""
    hidden, other = names["hidden"], names["other"]
    ends = {"relationship_type": "KNOWS", "source_entity_id": hidden, "target_entity_id": other}
    store: dict[str, Any] = {
        "entities": [{**ANA, "city": "n"}, {"entity_type": "contact", "target_id": hidden, "city": "n"}]
    }
    store["relationships"] = [{"relationship_type": "KNOWS", "source_index": 0, "target_entity_id": hidden}]
    reading = {"source_id": names["source"], "entities": [{**ANA, "city": "read"}]}
    schema = {"entity_type": "loan", "schema_definition": {"fields": {"score": {"type": "string"}}}}
    gone = {"entity_id": names["gone"]}
    hook = {"delivery_method": "webhook", "webhook_url": "https://hooks.example.org/n"}
    return {
        "store": {"entities": [{**ANA, "city": "alone"}]},
        "store_structured": store,
        "store_unstructured": {"file_content": f"{MARK}text", "mime_type": "text/plain"},
        "correct": {"entity_id": hidden, "corrections": {"city": "n"}},
        BATCH: {"entity_id": hidden, "changes": [{"field": "city", "value": "b"}]},
        "restore_entity": gone,
        "delete_entity": gone,
        "create_relationship": ends,
        "create_relationships": {"relationships": [ends, {"relationship_type": "X"}]},
        "delete_relationship": ends,
        "restore_relationship": ends,
        "entities/merge": {"from_entity_id": other, "to_entity_id": hidden},
        "merge_entities": {"from_entity_id": other, "to_entity_id": names["twin"]},
        "interpretations/create": reading,
        "create_interpretation": {**reading, "source_id": names["observation"]},
        "submit/{entity_type}": {"entity_type": "contact", "fields": {"name": "Ana", "city": "sub"}},
        "submit_entity": {"entity_type": "contact", "fields": {"name": "Ana", "city": "sub2"}},
        "register_schema": schema,
        "update_schema_incremental": {"entity_type": "loan", "fields_to_add": [{"field_name": "more"}]},
        "subscribe": hook,
        "list_subscriptions": {},
        "get_subscription_status": {"subscription_id": "{subscription_id}"},
        "unsubscribe": {"subscription_id": "{subscription_id}"},
    }


BATCH = "entities/{entity_id}/batch_correct"
SPLITS = {"entities/split", "split_entity"}
"""Calls that say how many observations fit a condition."""


def called(filled: Filled, key: str, name: str, body: dict[str, Any]) -> Any:
    """Call an address of Neotoma's clients; arguments in braces stand in it."""
    path = re.sub(r"\{(.*?)\}", lambda found: str(body[found[1]]), name)
    rest = {each: value for each, value in body.items() if f"{{{each}}}" not in name}
    return filled.server.call("POST", f"/neotoma/{path}", rest, key=key)


@pytest.mark.parametrize("kind", ["unread", "another"])
def test_neotoma_shows_no_state_to_keys_that_may_not_read(filled: Filled, kind: str) -> None:
    """The answer of every call that writes holds what its caller sent, and ids."""
    config = {"entity_type": "submission_config", "name": "c", "target_entity_type": "contact", "active": True}
    assert called(filled, filled.full, "store", {"entities": [config]}).status == 200
    bodies = neotoma(filled.names)
    assert bodies.keys() | SPLITS == {name for name, verb in POSTS.items() if verb.write is not None}
    subscription = ""
    for name, body in bodies.items():
        body = json.loads(json.dumps(body).replace("{subscription_id}", subscription))
        answer = called(filled, filled.keys[kind], name, body)
        assert answer.status == 200, (name, answer.body)
        assert MARK not in answer.body.decode(), (name, answer.body)
        subscription = answer.json.get("subscription_id", subscription)
    late = {**bodies[BATCH], "expected_last_observation_at": "2020-01-01T00:00:00Z"}
    refused = called(filled, filled.keys[kind], BATCH, late)
    assert (refused.status, refused.json["details"]) == (409, {})
    predicate = {"observation_field_equals": {"field": "city", "value_starts_with": MARK}}
    split = {"source_entity_id": filled.names["hidden"], "predicate": predicate, "idempotency_key": "s"}
    split["new_entity"] = {"entity_type": "contact", "canonical_name": "n"}
    for name in SPLITS:
        assert called(filled, filled.keys[kind], name, split).json["details"] == {"grant": "read"}


def test_who_may_read_is_answered_whole(filled: Filled) -> None:
    """Keys with `read` for what they write get whole entities from Neotoma's calls, and reports with changes."""
    body = {"entities": [{**ANA, "city": "whole"}]}
    (item,) = called(filled, filled.full, "store", body).json["entities"]
    assert (item["canonical_name"], item["entity_snapshot_after"]["city"]) == ("Ana", "whole")
    report = filled.server.call("POST", "/v1/correct", {"ref": HIDDEN, "fields": {"city": "x"}}, key=filled.full).json
    assert (report["entities"], bool(report["changes"])) == ([HIDDEN], True)


def test_answers_that_show_state_are_caught(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: answers that do not ask whether their caller may read show what others stored."""
    monkeypatch.setattr(access, "may_hear", lambda caller, given: True)
    key, hidden = filled.keys["unread"], filled.names["hidden"]
    corrected = {"ref": hidden, "fields": {"city": "planted"}, "dry_run": True}
    shown = [
        filled.server.call("POST", "/v1/correct", corrected, key=key),
        posted(filled.server, key, "change", {"action": "correct", **corrected}),
        called(filled, key, "correct", {"entity_id": hidden, "corrections": {"name": "planted"}}),
        called(filled, key, "store", {"entities": [{"entity_type": "contact", "name": "Eva"}]}),
    ]
    assert [MARK in answer.body.decode() for answer in shown] == [True] * 4


def joining(one: str, other: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return every way to say that two entities are one: the surface, the address or tool, and what is sent."""
    names = {"source_entity_id": one, "target_entity_id": other}
    pair = {"relationship_type": "SAME_AS", **names}
    related = {"start": one, "type": "same_as", "end": other}
    record = {"entity_type": "contact", "name": one.partition("/")[2]}
    entities = [record, {"entity_type": "contact", "name": other.partition("/")[2]}]
    places = {"relationship_type": "Same_As", "source_index": 0, "target_index": 1}
    return [
        ("rest", "merge", {"one": one, "other": other}),
        ("rest", "relate", {"from": one, "type": "same_as", "to": other}),
        ("rest", "store", {"records": {**record, "$": {"relate": [{"type": "same_as", "to": other}]}}}),
        ("rest", "store", {"records": {"entity_type": "same_as", "from": one, "to": other}}),
        ("rest", "runs/{run}/steps", {"step": {"change": {"verb": "relate", **related}}}),
        ("rest", "runs/{run}/steps", {"step": {"change": {"verb": "merge", "one": one, "other": other}}}),
        ("rest", "runs/import", {"document": {"query": "?", "steps": [{"change": {"verb": "relate", **related}}]}}),
        ("mcp", "change", {"action": "merge", "one": one, "other": other}),
        ("mcp", "change", {"action": "relate", "from": one, "type": "same_as", "to": other}),
        ("mcp", "run", {"action": "step", "run": "{run}", "step": {"change": {"verb": "relate", **related}}}),
        ("neotoma", "create_relationship", pair),
        ("neotoma", "create_relationships", {"relationships": [pair]}),
        ("neotoma", "merge_entities", {"from_entity_id": one, "to_entity_id": other}),
        ("neotoma", "store", {"entities": entities, "relationships": [places]}),
        ("neotoma", "store", {"entities": entities[:1], "relationships": [{**pair, "source_index": 0}]}),
        ("neotoma", "restore_relationship", pair),
    ]


@pytest.mark.parametrize("kind", ["write", "one type"])
def test_joining_entities_needs_the_grant_to_correct(filled: Filled, kind: str) -> None:
    """Two entities become one for keys with `correct` alone, whatever the call is named and wherever it is sent."""
    server = filled.server
    ones = "contact/One", "contact/Two"
    records = [{"entity_type": "contact", "name": ref.partition("/")[2]} for ref in ones]
    assert server.call("POST", "/v1/store", {"records": records}, key=filled.full).status == 200
    run = server.call("POST", "/v1/runs", {"query": "?"}, key=filled.keys["runner"]).json["run"]
    for surface, name, sent in joining(*ones):
        given = json.loads(json.dumps(sent).replace("{run}", run))
        key = filled.keys["runner" if "run" in name else kind]
        if surface == "mcp":
            content = posted(server, key, name, given).json["result"]["structuredContent"]
        elif surface == "rest":
            content = server.call("POST", f"/v1/{name.replace('{run}', run)}", given, key=key).json
        else:
            content = called(filled, key, name, given).json
        stated = "store" if surface == "rest" and name == "store" else None
        assert stated or content["details"] == {"grant": "correct"}, (surface, name, content)
        related = server.call("GET", "/v1/related/contact/One", key=filled.full).json["items"]
        assert related == [], (surface, name)


def test_a_relation_needs_the_grants_of_its_type_and_ends(filled: Filled) -> None:
    """A key relates entities by Neotoma's calls where it may write their types and the relation's, as by `relate`."""
    entities = [{"entity_type": "contact", "name": name} for name in ("Three", "Four")]
    for kind, type, status in (
        ("one type", "KNOWS", 403),
        ("narrow", "KNOWS", 200),
        ("narrow", "OWES", 403),
        ("narrow", "SAME_AS", 200),
    ):
        places = {"relationship_type": type, "source_index": 0, "target_index": 1}
        stored = called(filled, filled.keys[kind], "store", {"entities": entities, "relationships": [places]})
        pair = {"source_entity_id": "contact/Three", "target_entity_id": "contact/Four", "relationship_type": type}
        made = called(filled, filled.keys[kind], "create_relationship", pair)
        assert (stored.status, made.status) == (status, status), (kind, type, stored.body, made.body)
        sent = {"from": "contact/Three", "type": type.lower(), "to": "contact/Four"}
        assert filled.server.call("POST", "/v1/relate", sent, key=filled.keys[kind]).status == status, (kind, type)
