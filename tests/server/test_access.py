"""Keys: what they bind, and what nobody can do without them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.server.server import Server

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.errors import NotFound, Refused
from woodrat.ledger.own_policy import registry
from woodrat.server.access import ANYONE
from woodrat.server.keys import KEYS_TENANT, Keyring, OpenAtFirst
from woodrat.server.route import Route
from woodrat.server.routes import ROUTES
from woodrat.server.webhooks import WEBHOOKS_TENANT, Hooks

Start = Callable[..., Server]
RECORD = {"records": {"entity_type": "contact", "name": "Ana", "city": "Lugo"}}


def test_a_key_says_who_writes_and_where(start: Start, keyring: Keyring) -> None:
    """Tenant and agent come from the key; another tenant's key sees nothing of it."""
    _, ours = keyring.create("lending", "loan-officer", ["*"])
    _, theirs = keyring.create("sales", "crm", ["*"])
    server = start(keyring)
    assert server.call("POST", "/v1/store", RECORD, key=ours).status == 200
    shown = server.call("GET", "/v1/entities/contact/Ana", key=ours).json
    assert shown["blame"]["city"]["agent"] == "loan-officer"
    missing = server.call("GET", "/v1/entities/contact/Ana", key=theirs)
    never = server.call("GET", "/v1/entities/contact/Bob", key=theirs)
    assert missing.status == never.status == 404
    assert missing.json["detail"].replace("Ana", "Bob") == never.json["detail"]


def test_nothing_opens_without_a_key(start: Start, keyring: Keyring) -> None:
    """Every route refuses a missing, malformed, unknown, altered and revoked key alike, and says nothing else."""
    key, revoked = keyring.create("lending", "a", ["*"])
    _, good = keyring.create("lending", "b", ["*"])
    keyring.revoke(key.id)
    server = start(keyring)
    altered = good[:-1] + ("a" if good[-1] != "a" else "b")
    answers = {
        (route.verb, token): server.call(route.method, re.sub(r"\{.*?\}", "x/y", route.path), route.example, key=token)
        for route in ROUTES
        for token in (None, "", "nonsense", "wrat_a_b", altered, revoked)
    }
    assert [call for call, answer in answers.items() if answer.status != 401] == []
    assert {answer.headers["www-authenticate"] for answer in answers.values()} == {"Bearer"}
    for route in ROUTES:
        assert len({answer.json["detail"] for (verb, _), answer in answers.items() if verb == route.verb}) == 1, route


def test_a_key_without_the_grant_is_forbidden(start: Start, keyring: Keyring) -> None:
    """A key that carries every grant but the one a route needs is refused there, and nothing is written."""
    from woodrat.server.access import GRANTS

    keys = {
        lacking: keyring.create("lending", "a", [grant for grant in GRANTS if grant != lacking])[1]
        for lacking in sorted({route.grant for route in ROUTES if route.grant != ANYONE})
    }
    server = start(keyring)
    told: dict[str, Any] = {}
    for route in ROUTES:
        if route.grant == ANYONE:
            continue
        path = re.sub(r"\{.*?\}", "contact/Ana", route.path)
        need = {p.spelled: "1" for p in route.params if p.required and p.inside == "query"}
        asked = "&".join(f"{name}={value}" for name, value in need.items())
        answer = server.call(route.method, f"{path}?{asked}", route.example, key=keys[route.grant])
        if (answer.status, answer.json["code"]) != (403, "forbidden") or answer.json["details"]["grant"] != route.grant:
            told[route.verb] = answer.json
    assert told == {}


def test_grants_may_be_for_types(start: Start, keyring: Keyring) -> None:
    """A key for one type works on that type alone, and where no type is named not at all."""
    _, key = keyring.create("lending", "a", ["read:contact", "write:contact"])
    server = start(keyring)
    assert server.call("POST", "/v1/store", RECORD, key=key).status == 200
    other: dict[str, Any] = {"records": [RECORD["records"], {"entity_type": "loan", "id": "42"}]}
    assert server.call("POST", "/v1/store", other, key=key).status == 403
    related = {"records": {**RECORD["records"], "$": {"relate": [{"type": "owes", "to": "loan/42"}]}}}
    assert server.call("POST", "/v1/store", related, key=key).status == 403
    assert server.call("GET", "/v1/entities?entity_type=contact", key=key).status == 200
    assert server.call("GET", "/v1/entities?entity_type=loan", key=key).status == 403
    assert server.call("GET", "/v1/entities", key=key).status == 403
    assert server.call("GET", "/v1/log", key=key).status == 403
    assert server.call("GET", "/v1/history/contact/Ana", key=key).status == 200
    # What leads on to other entities is closed, whatever it begins at.
    for path in ("related/contact/Ana", "why/contact/Ana", "runs?subject=contact/Ana", "lineage?of=contact/Ana%23city"):
        assert server.call("GET", f"/v1/{path}", key=key).status == 403, path
    group = {"runs": ["run_aaaaaaaaaaaaaaaaaaaaaaaaaa"], "subject": "contact/Ana"}
    assert server.call("POST", "/v1/runs/group", group, key=key).status == 403
    entity = server.call("GET", "/v1/entities/contact/Ana", key=key).json["entity_id"]
    assert server.call("GET", f"/v1/entities/{entity}", key=key).status == 403


def test_a_key_for_a_type_learns_nothing_of_others_by_writing(start: Start, keyring: Keyring) -> None:
    """Neither a condition on an entity of another type nor a relation to one says whether it is there."""
    _, key = keyring.create("lending", "a", ["write:contact"])
    _, other = keyring.create("lending", "b", ["*"])
    server = start(keyring)
    assert server.call("POST", "/v1/store", {"records": {"entity_type": "loan", "id": "42"}}, key=other).status == 200
    for ref in ("loan/42", "loan/none", "ent_aaaaaaaaaaaaaaaaaaaaaaaaaa"):
        condition = {**RECORD, "if_version": {ref: 0}}
        assert server.call("POST", "/v1/store", condition, key=key).status == 403, ref
        related = {"records": {**RECORD["records"], "$": {"relate": [{"type": "contact", "to": ref}]}}}
        assert server.call("POST", "/v1/store", related, key=key).status == 403, ref
    assert server.call("POST", "/v1/store", {**RECORD, "if_version": {"contact/Ana": None}}, key=key).status == 200


def test_every_key_is_told_whose_it_is(start: Start, keyring: Keyring) -> None:
    """Whoever has a key may ask as whom and for which tenant it speaks, whatever it carries."""
    _, key = keyring.create("lending", "crm", ["write:contact"])
    assert start(keyring).call("GET", "/v1/caller", key=key).json == {"tenant": "lending", "agent": "crm"}


def test_from_the_first_key_on_every_call_needs_one(start: Start, keyring: Keyring) -> None:
    """A server that was started without keys is shut by the first, and stays so when that is revoked."""
    access = OpenAtFirst(keyring, "default", "http")
    server = start(access)
    assert server.call("GET", "/v1/caller").json == {"tenant": "default", "agent": "http"}
    key, secret = keyring.create("lending", "a", ["*"])
    access.refresh()
    assert server.call("GET", "/v1/caller").status == 401
    assert server.call("GET", "/v1/caller", key=secret).json["tenant"] == "lending"
    keyring.revoke(key.id)
    access.refresh()
    assert [server.call("GET", "/v1/caller", key=each).status for each in (None, secret)] == [401, 401]


def test_priority_is_bounded_by_the_key(start: Start, keyring: Keyring) -> None:
    """Neither a call nor a record may state more than the key allows."""
    _, key = keyring.create("lending", "a", ["*"], priority_max=10)
    server = start(keyring)
    assert server.call("POST", "/v1/store", {**RECORD, "priority": 10}, key=key).status == 200
    assert server.call("POST", "/v1/store", {**RECORD, "priority": 11}, key=key).status == 403
    inside = {"records": {**RECORD["records"], "$": {"priority": 11}}}
    assert server.call("POST", "/v1/store", inside, key=key).status == 403


def test_a_key_ends_by_itself(start: Start, keyring: Keyring) -> None:
    """A key that is over opens nothing."""
    _, key = keyring.create("lending", "a", ["*"], expires_at="2026-01-01T00:00:00Z")
    assert start(keyring).call("GET", "/v1/conflicts", key=key).status == 401


def test_what_is_kept_of_a_key_is_no_key(keyring: Keyring, tmp_path: Any) -> None:
    """No file holds the secret; the list of keys has none, and says who is revoked."""
    key, secret = keyring.create("lending", "a", ["*"], name="laptop")
    keyring.revoke(key.id, "lost")
    assert [(found.name, found.revoked) for found in keyring.all()] == [("laptop", True)]
    tail = secret.rpartition("_")[2].encode()
    assert all(tail not in file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    assert keyring.revoke(key.id).revoked
    with pytest.raises(NotFound, match="unknown key"):
        keyring.revoke("key_x")


def test_a_key_amiss_is_refused_with_all_faults(keyring: Keyring) -> None:
    """Tenant, agent, grants, priority and time are checked together, and no key is made."""
    with pytest.raises(Refused) as refused:
        keyring.create("a b", "", ["fly", "write:Contact"], priority_max="1", expires_at="soon")  # type: ignore[arg-type]
    assert {fault.path for fault in refused.value.faults} == {"tenant", "agent", "grants", "priority_max", "expires_at"}
    with pytest.raises(Refused, match="is reserved for the server itself"):
        keyring.create(KEYS_TENANT, "a", ["*"])
    assert keyring.all() == ()


MARKER = "marker"
"""What every text of the one tenant has in it."""


@pytest.fixture
def filled(
    start: Start, keyring: Keyring, engine: SqliteEngine, tmp_path: Path
) -> tuple[Server, str, str, dict[str, str]]:
    """Two tenants, one full of marked things, with the ids of these."""
    _, ours = keyring.create("lending", f"{MARKER}-agent", ["*"])
    _, theirs = keyring.create("sales", "crm", ["*"])
    server = start(keyring)

    def post(path: str, body: Any) -> Any:
        return server.call("POST", path, body, key=ours).json

    records = [{"entity_type": f"{MARKER}_type", "id": f"{MARKER}-{n}", "city": f"{MARKER}-city"} for n in "12"]
    said = post("/v1/store", {"records": records})
    ref = f"{MARKER}_type/{MARKER}-1"
    post("/v1/schemas", {"schema": {"title": f"{MARKER}_type", "properties": {f"{MARKER}_field": {}}}})
    source = post("/v1/sources", {"text": f"{MARKER} text", "name": f"{MARKER}.txt"})["source"]
    post("/v1/tag", {"name": f"{MARKER}-tag"})
    rule = {"chosen": MARKER, "when": {"city": f"{MARKER}-city"}}
    steps = [{"decide": {"stage": f"{MARKER}-stage", "facts": ref, "rules": [rule]}}]
    told = {"query": f"{MARKER} question #42?", "subject": ref, "steps": steps, "answer": f"{MARKER} answer"}
    run = post("/v1/runs/import", {"document": told})["items"][0]
    going = post("/v1/runs", {"query": f"{MARKER} going"})["run"]
    reading = post("/v1/interpretations", {"source": source, "model": f"{MARKER}-model"})["interpretation"]
    names = {"ref": ref, "run": run, "going": going, "source": source, "observation": said["observations"][0]}
    names["interpretation"] = reading
    secret = tmp_path / "hook.secret"
    secret.write_text("a secret of many bytes")
    secret.chmod(0o600)
    kept = Ledger(engine, tenant=WEBHOOKS_TENANT, agent="operator", clock=SystemClock(), policies=registry(()))
    hooks = Hooks(kept, SystemClock())
    hook = hooks.add("lending", f"https://{MARKER}.example.org/", str(secret))
    hooks.bury(hook, 0, 1, 8, MARKER)
    names["webhook"] = hook.id
    return server, ours, theirs, names


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.verb)
def test_a_tenant_is_closed_to_the_keys_of_others(
    filled: tuple[Server, str, str, dict[str, str]], route: Route
) -> None:
    """Whatever another tenant's key asks, also by ids that leaked, it is told nothing and changes nothing there."""
    server, ours, theirs, names = filled
    by_name = {
        "ref": names["ref"],
        "run": names["going"] if route.writes else names["run"],
        "prefix": names["observation"][:12],
        "entity_type": f"{MARKER}_type",
        "of": names["observation"],
        "query": "m",
        "question": "what of #42?",
        "first": names["run"],
        "second": names["run"],
        "from": "0",
        "to": "1",
        "interpretation": names["interpretation"],
        "webhook": names["webhook"],
        "key": "key_" + ours.split("_")[1],
        "one": names["ref"],
        "other": names["ref"].replace("-1", "-2"),
        "observations": [names["observation"]],
        "runs": [names["run"]],
        "what": names["ref"],
        "source": names["source"],
        "field": "note",
        "pack": "neotoma",
    }
    path = re.sub(r"\{(.*?)\}", lambda found: quote(str(by_name[found[1]])), route.path)
    asked = [
        f"{p.spelled}={quote(str(by_name[p.spelled]))}" for p in route.params if p.required and p.inside == "query"
    ]
    if route.verb == "impact":
        asked = [f"of={names['observation']}"]
    asked += ["details=true"] if route.has_details else []
    body = None
    if route.method == "POST":
        known = {p.spelled: by_name[p.spelled] for p in route.params if p.inside == "body" and p.spelled in by_name}
        body = {**route.example, **{name: value for name, value in known.items() if name in route.example}}
        if route.verb == "relate":
            body |= {"from": by_name["ref"], "to": by_name["other"]}
    before = server.call("GET", "/v1/log?limit=1000", key=ours).body
    answer = server.call(route.method, f"{path}?{'&'.join(asked)}", body, key=theirs)
    # What the caller sent may come back in a refusal; nothing else of the other tenant may.
    sent = {text for text in (*map(str, by_name.values()), path) if MARKER in text}

    def told(body: bytes) -> str:
        said = body.decode()
        for text in sorted(sent, key=len, reverse=True):
            said = said.replace(text, "").replace(quote(text), "")
        return said

    assert MARKER not in told(answer.body), answer.body
    assert answer.status in (200, 400, 403, 404), answer.body
    assert server.call("GET", "/v1/log?limit=1000", key=ours).body == before
    telling = (
        "show",
        "observations",
        "runs_show",
        "runs_steps",
        "runs_text",
        "why",
        "runs_list",
        "sources_list",
        "schemas_list",
        "log_entries",
    )
    if route.verb in (*telling, "sources_show", "timeline"):
        # The same question of the tenant's own key shows that there was something to be told.
        assert MARKER in told(server.call(route.method, f"{path}?{'&'.join(asked)}", body, key=ours).body)


def test_who_may_not_read_is_not_told_what_was_believed(start: Start, keyring: Keyring) -> None:
    """Reports of writes, of steps and of dry runs tell of the state they met only to keys that may read its types."""
    _, full = keyring.create("lending", "b", ["*"])
    server = start(keyring)
    assert server.call("POST", "/v1/store", RECORD, key=full).status == 200
    other = {"records": {**RECORD["records"], "city": "Vic"}, "dry_run": True}
    for grants, may in (
        (["write"], False),
        (["write", "read:loan"], False),
        (["write:contact", "read:contact"], True),
        (["write", "read"], True),
        (["*"], True),
    ):
        _, key = keyring.create("lending", "a", [*grants, *(["run"] if grants != ["*"] else [])])
        keyring.refresh()
        report = server.call("POST", "/v1/store", other, key=key)
        assert report.status == 200
        assert (b"Lugo" in report.body, bool(report.json["changes"])) == (may, may), grants
        run = server.call("POST", "/v1/runs", {"query": "?"}, key=key).json["run"]
        step = {"step": {"store": {**RECORD["records"], "city": f"of {grants}"}}}
        told = server.call("POST", f"/v1/runs/{run}/steps", step, key=key)
        assert told.status == 200
        assert bool(told.json["report"]["changes"]) is may, grants
        assert server.call("POST", "/v1/store", RECORD, key=full).status == 200


def test_who_evaluates_may_read(start: Start, keyring: Keyring) -> None:
    """What differs between a run and a moment is told to those alone who may read everything."""
    _, key = keyring.create("lending", "a", ["run", "read:contact"])
    _, reader = keyring.create("lending", "a", ["run", "read"])
    server = start(keyring)
    run = server.call("POST", "/v1/runs", {"query": "?"}, key=key).json["run"]
    server.call("POST", f"/v1/runs/{run}/end", {"answer": "no"}, key=key)
    refused = server.call("POST", f"/v1/runs/{run}/evaluate", {"against": "now"}, key=key)
    assert (refused.status, refused.json["details"]["grant"]) == (403, "read")
    assert server.call("POST", f"/v1/runs/{run}/evaluate", {"against": "now"}, key=reader).status == 200


def test_nobody_speaks_in_a_run_of_another(start: Start, keyring: Keyring) -> None:
    """Without `manage` no entry reaches the run of another agent, and none is said in another's name."""
    _, ours = keyring.create("lending", "a", ["run", "read"])
    _, theirs = keyring.create("lending", "b", ["run", "read"])
    _, operator = keyring.create("lending", "operator", ["run", "read", "manage"])
    server = start(keyring)
    run = server.call("POST", "/v1/runs", {"query": "Approve?"}, key=theirs).json["run"]
    own = server.call("POST", "/v1/runs", {"query": "Approve?"}, key=ours).json["run"]
    before = server.call("GET", f"/v1/runs/{run}", key=ours).json
    forged: list[Any] = [
        [{"kind": "run.noted", "run": run, "text": "forged"}],
        [{"kind": "run.ended", "run": run, "status": "done", "answer": "forged"}],
        [{"kind": "run.started", "query": "?"}, {"kind": "run.judged", "by": "b", "verdict": "bad"}],
        [{"kind": "run.started", "agent": "b", "query": "?"}],
        {"query": "?", "agent": "b", "answer": "forged"},
        {"agent": "b", "steps": [{"kind": "tool", "name": "t", "result": 1}]},
    ]
    for document in forged:
        answer = server.call("POST", "/v1/runs/import", {"document": document}, key=ours)
        assert answer.status == 403, document
    for entry in ({"kind": "run.judged", "verdict": "good"}, {"kind": "run.noted", "text": "x", "agent": "b"}):
        answer = server.call("POST", f"/v1/runs/{own}/entries", {"entries": [entry]}, key=ours)
        assert answer.status in (400, 403), entry
    assert server.call("GET", f"/v1/runs/{run}", key=ours).json == before
    _, writer = keyring.create("lending", "a", ["write"])
    assert server.call("POST", "/v1/store", {**RECORD, "run": run, "step": 1}, key=writer).status == 404
    assert server.call("POST", "/v1/store", {**RECORD, "run": own, "step": 1}, key=writer).status == 200
    assert server.call("GET", f"/v1/runs/{run}", key=ours).json == before
    told = [{"kind": "run.started", "query": "?"}, {"kind": "run.judged", "verdict": "good"}]
    (mine,) = server.call("POST", "/v1/runs/import", {"document": told}, key=ours).json["items"]
    reader = woodrat.open(f"http://127.0.0.1:{server.port}", key=ours)
    record = reader.runs.show(mine)
    assert (record.agent, record.judgements[0].by) == ("a", "a")
    assert server.call("POST", "/v1/runs/import", {"document": forged[0]}, key=operator).status == 403
    named = [{**forged[0][0], "agent": "b"}]
    assert server.call("POST", "/v1/runs/import", {"document": named}, key=operator).status == 200
    judged = [{"kind": "run.judged", "run": run, "verdict": "bad"}]
    assert server.call("POST", "/v1/runs/import", {"document": judged}, key=ours).status == 200
    (judgement,) = reader.runs.show(run).judgements
    assert (judgement.verdict, judgement.by, judgement.agent) == ("bad", "a", "a")


def test_a_key_is_made_for_something(keyring: Keyring) -> None:
    """Nobody gets a key for everything by saying nothing: the grants are always named, and there is at least one."""
    with pytest.raises(TypeError):
        keyring.create("lending", "a")  # type: ignore[call-arg]
    with pytest.raises(Refused):
        keyring.create("lending", "a", [])


def test_recall_tells_a_key_of_its_types_alone(start: Start, keyring: Keyring) -> None:
    """A key that may read contacts gets no other facts, notes, documents or runs, nor near misses of them."""
    _, every = keyring.create("lending", "desk", ["*"])
    _, narrow = keyring.create("lending", "crm", ["read:contact"])
    server = start(keyring)
    for record in ({"entity_type": "contact", "name": "Ana", "city": "Lugo"}, {"entity_type": "loan", "id": "Lugo-7"}):
        assert server.call("POST", "/v1/store", {"records": record}, key=every).status == 200
    said = {"text": "The Lugo office closes in May"}
    assert server.call("POST", "/v1/remember", said, key=every).status == 200
    wide = "/v1/recall?question=Lugo&k=10&threshold=0"
    assert {hit["kind"] for hit in server.call("GET", wide, key=every).json["hits"]} == {"fact", "note"}
    assert server.call("GET", f"{wide}&entity_type=loan", key=narrow).status == 403
    assert server.call("GET", f"{wide}&entity_type=contact&entity_type=loan", key=narrow).status == 403
    for asked in (wide, f"{wide}&entity_type=contact"):
        found = server.call("GET", asked, key=narrow).json
        assert [hit["ref"] for hit in found["hits"]] == ["contact/Ana"]
        assert not found["rejected"]
        assert "office" not in str(found)
    _, two = keyring.create("lending", "crm", ["read:contact", "read:loan"])
    for asked in (wide, f"{wide}&entity_type=contact&entity_type=loan"):
        found = server.call("GET", asked, key=two).json
        assert {hit["ref"] for hit in found["hits"]} == {"contact/Ana", "loan/Lugo-7"}
        assert "office" not in str(found)
    _, writer = keyring.create("lending", "crm", ["write"])
    assert server.call("GET", wide, key=writer).status == 403
