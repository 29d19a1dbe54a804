"""Conditions: what is still so is not sent again, and what is not so any more is not written over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Start
from tests.server.server import Answer, Server

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry

ANA = "/v1/entities/contact/Ana"


def store(server: Server, name: str = "Ana", headers: dict[str, str] | None = None, **fields: Any) -> Answer:
    return server.call(
        "POST", "/v1/store", {"records": {"entity_type": "contact", "name": name, **fields}}, headers=headers
    )


def test_what_a_reader_has_is_not_sent_again(server: Server) -> None:
    """A reader who names the tag of what they have, alone or in a list, weak or not, or says *, has it."""
    store(server, city="Vic")
    first = server.call("GET", ANA)
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "no-store"
    store(server, "Bob")  # moves the position, and says nothing of Ana
    for named in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        for method in ("GET", "HEAD"):
            same = server.call(method, ANA, headers={"If-None-Match": named})
            assert (same.status, same.body, same.headers["etag"]) == (304, b"", tag), named
            assert "content-type" not in same.headers
    for named in ('"other"', "nonsense", "17", ""):
        assert server.call("GET", ANA, headers={"If-None-Match": named}).status == 200, named
    store(server, city="Olot")
    changed = server.call("GET", ANA, headers={"If-None-Match": tag})
    assert (changed.status, changed.json["fields"]["city"]) == (200, "Olot")
    assert server.call("GET", f"{ANA}?as_of=1", headers={"If-None-Match": tag}).status == 304
    assert server.call("GET", "/v1/entities/contact/Eve", headers={"If-None-Match": "*"}).status == 404


def test_another_schema_is_another_answer(server: Server) -> None:
    """A tag stands for all that is told: another schema changes it, and not the version."""
    store(server, score=2)
    store(server, score=1)
    before = server.call("GET", ANA)
    schema = {"title": "contact", "properties": {"score": {"type": "integer", "x-woodrat-merge": "max"}}}
    register = {"schema": schema, "entity_type": "contact"}
    assert server.call("POST", "/v1/schemas", register).status == 200
    after = server.call("GET", ANA, headers={"If-None-Match": before.headers["etag"]})
    assert (after.status, after.json["version"]) == (200, before.json["version"])
    assert after.headers["etag"] != before.headers["etag"]


def test_what_was_erased_is_not_still_so(server: Server, engine: SqliteEngine, tmp_path: Path) -> None:
    """Nobody is told that what they have of something erased is still so."""
    store(server, city="Vic", phone="the number that goes")
    tag = server.call("GET", ANA).headers["etag"]
    woodrat.init(tmp_path / "keys")
    ledger = Ledger(
        engine, tenant="default", agent="operator", clock=SystemClock(), policies=registry(()), keys=tmp_path / "keys"
    )
    ledger.erase("contact/Ana#phone", reason="asked to")
    for path in (ANA, f"{ANA}?as_of=1"):
        answer = server.call("GET", path, headers={"If-None-Match": tag})
        assert answer.status != 304
        assert b"the number that goes" not in answer.body


def test_the_document_is_sent_once(server: Server) -> None:
    """The document and its page have tags of their own."""
    for path in ("/openapi.json", "/docs"):
        tag = server.call("GET", path).headers["etag"]
        assert server.call("GET", path, headers={"If-None-Match": tag}).status == 304


def test_what_must_be_new_is_written_once(server: Server) -> None:
    """`If-None-Match: *` writes what is not known yet, all of a call or nothing of it."""
    new = {"If-None-Match": "*"}
    assert store(server, headers=new, city="Vic").status == 200
    late = store(server, headers=new, city="Olot")
    assert (late.status, late.json["code"], late.json["details"]["expected"]) == (412, "outdated", "new")
    both = {"records": [{"entity_type": "contact", "name": name} for name in ("Bob", "Ana")]}
    assert server.call("POST", "/v1/store", both, headers=new).status == 412
    assert server.call("GET", "/v1/entities/contact/Bob").status == 404
    for condition in ('"1"', "nonsense"):
        amiss = store(server, headers={"If-None-Match": condition})
        assert (amiss.status, amiss.json["details"]["faults"][0]["path"]) == (400, "If-None-Match")
    correction = {"ref": "contact/Ana", "fields": {"city": "Girona"}}
    assert server.call("POST", "/v1/correct", correction, headers=new).status == 400


def test_a_condition_may_name_several_versions_or_any(server: Server) -> None:
    """`If-Match` holds for one of several tags, weak or bare; * for what is known; no other tag holds."""
    version = store(server, city="Vic").json["position"]
    tag = server.call("GET", ANA).headers["etag"]
    for named in (tag, f'"7777", {tag}', f'"{version}"', str(version), f'W/"{version}"', "*"):
        body = {"records": {"entity_type": "contact", "name": "Ana", "city": "Olot"}, "dry_run": True}
        assert server.call("POST", "/v1/store", body, headers={"If-Match": named}).status == 200, named
    for named in ('"7777"', '"7777", "7778"', '"abc"'):
        late = store(server, headers={"If-Match": named})
        assert (late.status, late.json["code"]) == (412, "outdated"), named
    assert store(server, "Eve", headers={"If-Match": "*"}).status == 412
    for named in ("nonsense", '"1", *', '"1', ""):
        amiss = store(server, headers={"If-Match": named})
        assert (amiss.status, amiss.json["details"]["faults"][0]["path"]) == (400, "If-Match"), named
    read = server.call("GET", ANA, headers={"If-Match": tag})
    assert (read.status, read.json["detail"].rpartition("\n")[2]) == (400, "Nothing was read.")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])
def test_what_is_read_takes_no_other_method(server: Server, path: str) -> None:
    """What is there to be read refuses every other method, and says which there are."""
    for method in ("POST", "DELETE", "OPTIONS"):
        answer = server.call(method, path)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD"), method
    assert server.call("HEAD", path).status == 200


def test_nothing_is_no_body(server: Server) -> None:
    """A body of null is refused where an object is due, even where every argument may be left out."""
    answer = server.call("POST", "/v1/rebuild", b"null", headers={"Content-Type": "application/json"})
    assert (answer.status, answer.json["details"]["faults"][0]["path"]) == (400, "(body)")


def test_a_moment_that_is_none_is_named_as_it_was_sent(server: Server) -> None:
    """What is wrong with `as_of` is said of `as_of`."""
    for query in ("as_of=soon", "as_of=", "valid_at=soon"):
        answer = server.call("GET", f"/v1/entities?{query}")
        assert answer.json["details"]["faults"][0]["path"] == query.partition("=")[0]


def test_lines_say_what_is_wrong_with_each(start: Start) -> None:
    """Of records that come a line each all faults are told at once, by line, and nothing is written."""
    server = start()
    lines = {"Content-Type": "application/x-ndjson"}
    good = b'{"entity_type": "contact", "name": "Ana"}'
    bad = b"\n".join([b"", good, b"{bad", b'{"entity_type": "BAD"}', b"[1]", good])
    answer = server.call("POST", "/v1/store", bad, headers=lines)
    assert answer.status == 400
    assert [f["path"] for f in answer.json["details"]["faults"]] == ["line 3", "line 4/entity_type", "line 5"]
    answer = server.call("POST", "/v1/store", b"\n\n" + good + b'\r\n{"entity_type": "BAD"}', headers=lines)
    assert [f["path"] for f in answer.json["details"]["faults"]] == ["line 4/entity_type"]
    assert server.call("GET", "/v1/position").json["position"] == -1
    answer = server.call("POST", "/v1/store?prio=1&priority=x&step=y", good, headers=lines)
    faults = {fault["path"]: fault for fault in answer.json["details"]["faults"]}
    assert set(faults) == {"prio", "priority", "step"}
    assert "priority" in faults["prio"]["remedy"]
    assert "records" not in faults["prio"]["remedy"]
    assert server.call("POST", "/v1/store?priority=3&dry_run=true", good + b"\r\n", headers=lines).status == 200
    version = server.call("POST", "/v1/store?if_version=new", good, headers=lines).json["position"]
    assert server.call("POST", "/v1/store?if_version=new", good, headers=lines).status == 412
    assert server.call("POST", f"/v1/store?if_version={version}", good, headers=lines).status == 200


def test_a_part_of_the_log_ends_where_it_was_asked_to(server: Server) -> None:
    """`limit` and `as_of` bound the lines of the log; what has no end refuses both."""
    for name in ("Ana", "Bob", "Eve"):
        store(server, name)
    lines, events = {"Accept": "application/x-ndjson"}, {"Accept": "text/event-stream"}
    whole = server.call("GET", "/v1/log", headers=lines).body.splitlines()
    assert server.call("GET", "/v1/log?after=0&limit=2", headers=lines).body.splitlines() == whole[1:3]
    assert server.call("GET", "/v1/log?as_of=1", headers=lines).body.splitlines() == whole[:2]
    for query in ("limit=1", "as_of=1"):
        refused = server.call("GET", f"/v1/log?{query}", headers=events)
        assert (refused.status, refused.json["details"]["faults"][0]["path"]) == (400, query[:-2])
    for headers in (lines, events, {}):
        assert server.call("GET", "/v1/log?after=-2", headers=headers).status == 400
        assert server.call("GET", "/v1/log?limit=0", headers=headers).status == 400


def test_a_server_may_require_stated_times(start: Start) -> None:
    """With strict times a write without `observed_at` gets 400, by REST and at /neotoma, and one with it is stored."""
    server = start(strict="times")
    record = {"entity_type": "contact", "name": "Ana", "city": "Girona"}
    refused = server.call("POST", "/v1/store", {"records": [record]})
    assert (refused.status, refused.json["code"]) == (400, "refused")
    assert "no time is stated, and this ledger requires one" in refused.json["detail"]
    assert server.call("POST", "/neotoma/store", {"entities": [record], "idempotency_key": "k"}).status == 400
    stated = {"records": [record], "observed_at": "2026-01-05T09:00:00Z"}
    assert server.call("POST", "/v1/store", stated).status == 200
