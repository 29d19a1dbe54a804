"""The story of two agents over HTTP, and what every route has in common."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from tests.server.server import Server

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.ledger.own_policy import registry
from woodrat.server.openapi import document
from woodrat.server.route import Route
from woodrat.server.routes import ROUTES
from woodrat.server.webhooks import hooks_beside

ANA = "/v1/entities/contact/Ana%20Rivera"


def said(city: str, **about: Any) -> dict[str, Any]:
    return {"records": [{"entity_type": "contact", "name": "Ana Rivera", "city": city}], **about}


def test_keys_may_hold_anything(server: Server) -> None:
    """An entity whose key has slashes, question marks and letters of any script is found under its address."""
    key = "org/repo?x=1#y é 日本"
    server.call("POST", "/v1/store", {"records": {"entity_type": "repo", "stars": 1, "$": {"key": key}}})
    assert server.call("GET", f"/v1/entities/repo/{quote(key)}").json["entity"] == f"repo/{key}"


def test_a_condition_has_one_winner(server: Server) -> None:
    """`If-Match` with the version that was read is taken once; the second is told that it is outdated."""
    server.call("POST", "/v1/store", said("Barcelona"))
    tag = server.call("GET", ANA).headers["etag"]
    correction = {"ref": "contact/Ana Rivera", "fields": {"city": "Girona"}}
    assert server.call("POST", "/v1/correct", correction, headers={"If-Match": tag}).status == 200
    late = server.call("POST", "/v1/correct", correction, headers={"If-Match": tag})
    assert (late.status, late.json["code"]) == (412, "outdated")
    amiss = server.call("POST", "/v1/delete", {"ref": "contact/Ana Rivera"}, headers={"If-Match": tag})
    assert (amiss.status, amiss.json["details"]["faults"][0]["path"]) == (400, "If-Match")


def test_a_key_makes_sending_again_safe(server: Server) -> None:
    """The same `Idempotency-Key` is stored once; with another body it is refused."""
    headers = {"Idempotency-Key": "crm-42"}
    first = server.call("POST", "/v1/store", said("Barcelona"), headers=headers).json
    again = server.call("POST", "/v1/store", said("Barcelona"), headers=headers).json
    assert (again["repeated"], again["position"]) == (True, first["position"])
    other = server.call("POST", "/v1/store", said("Girona"), headers=headers)
    assert (other.status, other.json["details"]["faults"][0]["path"]) == (400, "idempotency_key")


def test_records_may_come_a_line_each(server: Server) -> None:
    """JSON lines are one write; a bad line refuses all of them and says which it is."""
    lines = [json.dumps({"entity_type": "thing", "id": str(n)}) for n in range(100)]
    headers = {"Content-Type": "application/x-ndjson"}
    stored = server.call("POST", "/v1/store?priority=3", "\n".join(lines).encode(), headers=headers).json
    assert len(stored["observations"]) == 100
    assert server.call("GET", "/v1/entities/thing/7").json["blame"]["id"]["priority"] == 3
    bad = server.call("POST", "/v1/store", b'{"entity_type":"thing","id":"x"}\n{"entity_type":', headers=headers)
    assert bad.status == 400
    assert bad.json["details"]["faults"][0]["path"] == "line 2"
    assert server.call("GET", "/v1/entities/thing/x").status == 404


def test_bodies_and_answers_may_be_packed(server: Server) -> None:
    """gzip is taken in both directions."""
    packed = gzip.compress(json.dumps(said("Barcelona")).encode())
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert server.call("POST", "/v1/store", packed, headers=headers).status == 200
    answer = server.call("GET", "/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(answer.body))["openapi"] == "3.1.0"


def test_all_faults_are_told_at_once(server: Server) -> None:
    """What is unknown, missing or of another type is one problem document with every fault."""
    answer = server.call("GET", "/v1/search?limit=many&depth=2")
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert [fault["path"] for fault in answer.json["details"]["faults"]] == ["limit", "depth", "query"]
    body = server.call("POST", "/v1/store", {"recods": [], "x": 1}).json
    assert [fault["path"] for fault in body["details"]["faults"]] == ["/recods", "/x", "/records"]
    assert "Nothing was written." in body["detail"]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.verb)
def test_every_route_answers_its_example(server: Server, route: Route) -> None:
    """Each route of the table is reached, and answers its own example or what it has not got as documented."""
    server.call("POST", "/v1/store", said("Barcelona"))
    path = re.sub(r"\{ref\}", "contact/Ana%20Rivera", route.path)
    path = path.replace("{prefix}", "last").replace("{pack}", "neotoma")
    path = re.sub(
        r"\{entity_type\}", "contact", re.sub(r"\{(source|run|interpretation|webhook|key|what)\}", "none", path)
    )
    need = {
        "query": "ana",
        "question": "why?",
        "of": "contact/Ana Rivera#city",
        "from": "0",
        "to": "1",
        "first": "a",
        "second": "b",
        "field": "tags",
    }
    asked = [f"{p.spelled}={quote(need[p.spelled])}" for p in route.params if p.required and p.inside == "query"]
    if route.verb == "impact":
        asked = ["agent=http"]
    answer = server.call(route.method, f"{path}?{'&'.join(asked)}", route.example)
    documented = document("1")["paths"][route.path][route.method.lower()]["responses"]
    assert str(answer.status) in documented
    # Without keys there is nothing to sign with, and nothing to recognise by what was erased.
    keyed = ("proofs_checkpoint", "proofs_prove", "proofs_prove_consistency", "proofs_capsule", "erase", "webhooks_add")
    if route.verb in keyed:
        assert (answer.status, answer.json["details"]["faults"][0]["path"]) == (400, "keys")
        return
    assert answer.status in (200, 404), answer.body
    if "none" not in path and route.verb not in (
        "retract",
        "relate",
        "merge",
        "runs_diff",
        "interpretations_start",
        "interpretations_diff",
        "restore",
        "split",
        "runs_group",
        "what_if",
        "elements",
    ):
        assert answer.status == 200, answer.body
    assert answer.headers["x-request-id"]


def test_elements_of_a_collection_come_by_page(server: Server) -> None:
    """A large collection is told in part, with how many elements it has, and its elements come page by page."""
    tags = [f"tag {number:04}" for number in range(1_200)]
    server.call("POST", "/v1/store", {"records": [{"entity_type": "contact", "name": "Ana Rivera", "tags": tags}]})
    shown = server.call("GET", ANA).json
    assert (shown["fields"]["tags"], shown["more"]) == (tags[:1_000], {"tags": 1_200})
    first = server.call("GET", "/v1/elements/contact/Ana%20Rivera?field=tags&limit=700").json
    assert (first["elements"], first["total"]) == (tags[:700], 1_200)
    rest = server.call("GET", f"/v1/elements/contact/Ana%20Rivera?field=tags&cursor={first['cursor']}").json
    assert rest["elements"] == tags[700:]
    assert rest["cursor"] is None
    whole = server.call("GET", f"{ANA}?details=true")
    assert (whole.json["fields"]["tags"], whole.json["more"]) == (tags, {})
    assert whole.headers["etag"] != server.call("GET", ANA).headers["etag"]
    for path in ("/v1/entities?", "/v1/search?query=ana&"):
        (short,), (every,) = (server.call("GET", path + how).json["items"] for how in ("", "details=true"))
        assert len(short.get("snapshot", short)["fields"]["tags"]) == 1_000
        assert every.get("snapshot", every)["fields"]["tags"] == tags
    with woodrat.open(f"http://127.0.0.1:{server.port}") as ledger:
        assert ledger.show("contact/Ana Rivera").fields["tags"] == tags
    answer = server.call("GET", "/v1/elements/contact/Ana%20Rivera?field=name")
    assert (answer.status, answer.json["details"]["faults"][0]["path"]) == (400, "field")


def test_what_is_not_there(server: Server) -> None:
    """Addresses, methods and media types that are not there are said to be so, with what is."""
    assert server.call("GET", "/v1/nothing").status == 404
    answer = server.call("DELETE", "/v1/store")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert server.call("POST", "/v1/store", b"x", headers={"Content-Type": "text/plain"}).status == 415
    assert server.call("HEAD", "/healthz").body == b""


def test_a_field_is_named_as_everywhere(server: Server) -> None:
    """REF#field names a field in an address too, with its # written as %23, and a tag takes a position as a number."""
    position = server.call("POST", "/v1/store", said("Barcelona")).json["position"]
    named = server.call("GET", "/v1/blame/contact/Ana%20Rivera%23city").json
    assert named == server.call("GET", "/v1/blame/contact/Ana%20Rivera?field=city").json
    assert list(named["claims"]) == ["city"]
    assert server.call("POST", "/v1/tag", {"name": "then", "moment": position}).status == 200
    assert server.call("GET", "/v1/position?as_of=@then").json["position"] == position


def test_a_type_of_problem_has_one_title(server: Server) -> None:
    """Whatever status a problem comes with, its title is that of its type, and the line of a body is named once."""
    told = [
        server.call("GET", "/v1/entities?limit=x"),
        server.call("PUT", "/v1/entities"),
        server.call("POST", "/v1/store", b"x", headers={"Content-Type": "text/plain"}),
        server.call("POST", "/v1/store", b"{}\n{bad", headers={"Content-Type": "application/x-ndjson"}),
    ]
    assert [answer.status for answer in told] == [400, 405, 415, 400]
    assert {(answer.json["type"], answer.json["title"]) for answer in told} == {
        ("urn:woodrat:problem:refused", "Invalid request")
    }
    assert "line 2: not JSON at column 2" in told[-1].json["detail"]


def test_it_tells_how_it_is(server: Server) -> None:
    """Health, readiness and measures are there, and the reference page loads nothing from elsewhere."""
    assert server.call("GET", "/healthz").json == {"status": "ok"}
    assert server.call("GET", "/readyz").json == {"status": "ok"}
    server.call("GET", "/v1/conflicts")
    measures = server.call("GET", "/metrics").body.decode()
    assert 'woodrat_requests_total{verb="conflicts",status="200"} 1' in measures
    page = server.call("GET", "/docs").body.decode()
    assert all(route.path in page.replace("&#x27;", "'") for route in ROUTES)
    assert "http://" not in page
    assert "src=" not in page


def test_the_keys_of_a_tenant_are_listed_and_revoked_over_http(start: Any, keyring: Any) -> None:
    """By keys of that tenant that may manage; a revoked key opens nothing, and no answer holds a secret."""
    _, ours = keyring.create("lending", "operator", ["manage"])
    lost, secret = keyring.create("lending", "laptop", ["read"], name="on the road")
    foreign, theirs = keyring.create("sales", "operator", ["*"])
    server = start(keyring)
    listed = server.call("GET", "/v1/keys", key=ours)
    assert {(key["agent"], key["name"], key["revoked"]) for key in listed.json["items"]} == {
        ("operator", None, False),
        ("laptop", "on the road", False),
    }
    assert [key["id"] for key in listed.json["items"]] == sorted(key["id"] for key in listed.json["items"])
    assert secret.encode() not in listed.body
    assert server.call("GET", "/v1/keys", key=secret).status == 403
    for key in (lost.id, "key_nobody"):
        assert server.call("POST", f"/v1/keys/{key}/revoke", {}, key=theirs).status == 404
    assert server.call("POST", f"/v1/keys/{foreign.id}/revoke", {}, key=ours).status == 404
    assert server.call("GET", "/v1/health", key=secret).status == 200
    revoked = server.call("POST", f"/v1/keys/{lost.id}/revoke", {"reason": "laptop lost"}, key=ours).json
    assert (revoked["id"], revoked["revoked"]) == (lost.id, True)
    keyring.refresh()
    assert server.call("GET", "/v1/health", key=secret).status == 401


def test_health_says_how_far_the_indexes_go(server: Server) -> None:
    server.call("POST", "/v1/store", said("Barcelona"))
    health = server.call("GET", "/v1/health").json
    assert health["position"] == server.call("GET", "/v1/position").json["position"]
    assert {"state", "recall"} <= {index["name"] for index in health["indexes"]}
    assert all(index["position"] + index["lacking"] == health["position"] for index in health["indexes"])
    assert health["recorded_at"] is not None


def test_webhooks_are_kept_over_http(start: Any, keyring: Any, engine: Any, tmp_path: Any) -> None:
    """A tenant's webhooks are added with a secret shown once, listed, retried and removed by keys that may manage."""
    woodrat.init(tmp_path / "keys")
    _, ours = keyring.create("lending", "operator", ["*"])
    _, theirs = keyring.create("sales", "operator", ["*"])
    server = start(keyring, proofs=str(tmp_path / "keys"))
    wanted = {"url": "https://hooks.example.org/woodrat", "kinds": ["observation"], "after": 0}
    made = server.call("POST", "/v1/webhooks", wanted, key=ours).json
    files = list((tmp_path / "keys" / "webhooks").iterdir())
    assert [(file.read_text().strip(), file.stat().st_mode & 0o777) for file in files] == [(made["secret"], 0o600)]
    (listed,) = server.call("GET", "/v1/webhooks", key=ours).json["items"]
    assert listed == {name: value for name, value in made.items() if name != "secret"}
    assert server.call("GET", "/v1/webhooks", key=theirs).json["items"] == []
    path = f"/v1/webhooks/{made['id']}"
    for action in ("remove", "retry"):
        assert server.call("POST", f"{path}/{action}", {}, key=theirs).status == 404
    assert server.call("POST", f"{path}/retry", {}, key=ours).status == 404
    hooks = hooks_beside(Ledger(engine, tenant="lending", agent="a", clock=SystemClock(), policies=registry(())))
    hooks.bury(hooks.all()[0], 3, 5, 8, "status 500")
    (letter,) = server.call("GET", "/v1/webhooks/dead-letters", key=ours).json["items"]
    assert (letter["first"], letter["problem"]) == (3, "status 500")
    assert server.call("GET", "/v1/webhooks/dead-letters", key=theirs).json["items"] == []
    assert server.call("POST", f"{path}/retry", {"first": 3}, key=ours).json["retried"] == 1
    bad = server.call("POST", "/v1/webhooks", {"url": "http://example.org", "kinds": ["x", 1], "after": -5}, key=ours)
    assert [fault["path"] for fault in bad.json["details"]["faults"]] == ["url", "kinds", "kinds", "after"]
    for host in ("127.0.0.1", "localhost", "[::1]", "10.0.0.5", "[::ffff:10.0.0.5]", "a.internal", "169.254.0.1"):
        inside = server.call("POST", "/v1/webhooks", {"url": f"https://{host}/x"}, key=ours)
        assert (inside.status, inside.json["details"]["faults"][0]["path"]) == (400, "url"), host
    near = start(keyring, proofs=str(tmp_path / "keys"), local=True)
    assert near.call("POST", "/v1/webhooks", {"url": "http://127.0.0.1:9/x", "after": 0}, key=theirs).status == 200
    assert server.call("POST", f"{path}/remove", {}, key=ours).json == {"removed": made["id"]}
    assert server.call("GET", "/v1/webhooks", key=ours).json["items"] == []
