"""Keys: no tool does anything without one, and none does more than it carries."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from tests.mcp.conftest import over_http, refused, run, told
from tests.server.conftest import Start
from tests.server.server import Server
from tests.server.test_audit import lines

from woodrat.mcp import tools
from woodrat.mcp.action import Action
from woodrat.server.access import GRANTS
from woodrat.server.keys import KEYS_TENANT, Keyring

__all__ = ["lines"]

FILLED: dict[str, Any] = {
    "records": [{"entity_type": "contact", "name": "Ana", "city": "Lugo"}],
    "ref": "contact/Ana",
    "other": "contact/Bea",
    "type": "knows",
    "observations": ["obs_d2fjsh5trd3wfuioa2iscubxg2"],
    "from": "contact/Ana",
    "to": "contact/Bea",
    "one": "contact/Ana",
    "question": "Why?",
    "query": "Why?",
    "run": "run_" + "a" * 26,
    "step": {"note": "x"},
    "stage": "risk",
    "facts": {},
    "rules": [{"chosen": "x", "when": {"a": 1}}],
    "first": "run_" + "a" * 26,
    "second": "run_" + "b" * 26,
    "of": "run_" + "a" * 26,
    "entity_type": "contact",
    "source": "src_" + "a" * 26,
    "content": "x",
    "text": "Call before noon.",
    "schema": {"title": "loan", "properties": {"creditScore": {"type": "integer"}}},
}
DIFF = {"from": "0", "to": "now"}
"""The tool whose `from` and `to` are moments."""
CALLS = [(tool.name, name, action) for tool in tools.tools().values() for name, action in tool.actions.items()]


def arguments(tool: str, name: str, action: Action) -> dict[str, Any]:
    """Return arguments that an action takes."""
    filled = FILLED | (DIFF if tool == "diff" else {})
    found = {need: filled[need] for need in (*action.needed, *action.one_of[:1])}
    return {"action": name, **found} if name else found


def posted(server: Server, key: str | None, tool: str, given: dict[str, Any]) -> Any:
    """Call a tool with one plain request, as any program may."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": given}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    return server.call("POST", "/mcp", body, key=key, headers=headers)


def test_no_tool_answers_without_a_key(start: Start, keyring: Keyring) -> None:
    """Every tool and action refuses a missing, wrong, altered and revoked key alike, before anything is read."""
    gone, revoked = keyring.create("lending", "a", ["*"])
    _, good = keyring.create("lending", "b", ["*"])
    keyring.revoke(gone.id)
    server = start(keyring)
    said = set()
    for tool, name, action in CALLS:
        given = arguments(tool, name, action)
        for token in (None, "nonsense", good[:-1] + ("a" if good[-1] != "a" else "b"), revoked):
            answer = posted(server, token, tool, given)
            assert answer.status == 401, (tool, name, token)
            assert answer.headers["www-authenticate"] == "Bearer"
            said.add(answer.json["detail"])
    assert len(said) == 1


def test_no_action_goes_beyond_the_grants(start: Start, keyring: Keyring) -> None:
    """A key with every grant but the one an action needs is told so by the tool, and nothing is written."""
    lacking = {grant: keyring.create("lending", "a", [g for g in GRANTS if g != grant])[1] for grant in GRANTS}
    _, reader = keyring.create("lending", "b", ["read"])
    server = start(keyring)
    for tool, name, action in CALLS:
        answer = posted(server, lacking[action.grant], tool, arguments(tool, name, action))
        assert answer.status == 200, answer.body
        result = answer.json["result"]
        assert result["isError"] is True, (tool, name)
        assert result["structuredContent"]["code"] == "forbidden", result
        assert result["structuredContent"]["details"] == {"grant": action.grant}
    assert server.call("GET", "/v1/fingerprint", key=reader).json["position"] == -1


MORE: dict[str, Any] = {
    **FILLED,
    **{"name": "x.txt", "media_type": "text/plain", "offset": 0, "about": "contact/Ana", "match": "existing"},
    **{"observed_at": "2026-01-05T09:00:00Z", "valid_from": "2026-01-05T09:00:00Z", "as_of": "now"},
    **{"valid_at": "2026-06-01T00:00:00Z", "priority": 1, "limit": 5, "field": "city", "dry_run": True},
    **{"skip": 1, "differing": True},
    **{"fields": {"city": "Vigo"}, "remove": {}, "reason": "x", "k": 1, "threshold": 0.5, "projection": "decisions"},
    **{"scope": "tenant", "budget": 100, "subject": "contact/Ana", "conversation": "c", "principal": "p"},
    **{"inputs": {}, "default": None, "rationale": "x", "answer": "x", "status": "done", "agent": "a", "details": True},
    **{"without": [], "set": {"a": 1}, "thresholds": {}, "where": ["city=Lugo"], "idempotency_key": "k", "ttl": 60},
    **{"without_agents": ["a"], "sweep": "creditScore=1..3", "subject_type": "loan", "same": True, "saw": []},
    **{
        "since": "2026-01-01T00:00:00Z",
        "until": "2027-01-01T00:00:00Z",
        "verdict": "good",
        "session": "agent_session/a",
    },
    **{"pipeline": "pipeline/a", "excerpts": True, "arrival": True, "depth": 2, "sort": "city", "descending": True},
    **{"key": "k", "replaces": [], "if_version": 1, "version": 2, "cursor": "x", "on_missing": "skip", "facts": {}},
    **{"not_from": ["a"], "interpretation": "int_aaaaaaaaaaaaaaaaaaaaaaaaaa"},
}
OTHER_TYPES: dict[tuple[str, str], Any] = {
    ("explain", "rules"): {"risk": FILLED["rules"]},
    ("store", "step"): 1,
    ("remember", "step"): 1,
}
"""Arguments that are something else in one tool than in the others."""


def test_every_argument_reaches_its_verb(start: Start) -> None:
    """Called with all arguments it takes, each action is answered or refused in words; none of them is our mistake."""
    server = start()
    for name in ("Ana", "Bea"):
        posted(server, None, "store", {"records": [{"entity_type": "contact", "name": name, "city": "Lugo"}]})
    for tool, name, action in CALLS:
        filled = MORE | (DIFF if tool == "diff" else {})
        filled |= {argument: value for (owner, argument), value in OTHER_TYPES.items() if owner == tool}
        assert action.parameters.keys() <= filled.keys(), "a new argument needs a value here"
        needs = (*action.needed, *action.one_of[:1])
        takes = [take for take in action.parameters if take not in (*needs, *action.one_of)]
        for names in ((*needs, *takes), *((*needs, take) for take in takes)):
            sent = {each: filled[each] for each in names}
            answer = posted(server, None, tool, {"action": name, **sent} if name else sent)
            result = answer.json["result"]
            content = result["structuredContent"]
            assert not result["isError"] or content["code"] != "unavailable", (tool, name, sent, result)
            ill_typed = content.get("code") == "refused" and "expected" in content["message"]
            assert not ill_typed, (tool, name, sent, result)


def test_a_step_needs_what_it_does(start: Start, keyring: Keyring) -> None:
    """A key that may record runs neither reads nor writes by way of a step."""
    _, recorder = keyring.create("lending", "officer", ["run"])
    _, narrow = keyring.create("lending", "clerk", ["run", "read:loan", "write:loan"])
    server = start(keyring)
    steps: list[tuple[dict[str, Any], str]] = [
        ({"read": "loan/42"}, "read"),
        ({"store": {"entity_type": "loan", "id": "42"}}, "write"),
        ({"decide": {"stage": "s", "facts": "loan/42", "rules": []}}, "read"),
    ]

    async def story() -> None:
        async with over_http(server, recorder) as client:
            name = (await told(client, "run", action="start", query="Approve?"))["run"]
            for step, grant in steps:
                error = await refused(client, "run", action="step", run=name, step=step)
                assert (error["code"], error["details"]) == ("forbidden", {"grant": grant})
            rules = FILLED["rules"]
            error = await refused(client, "run", action="decide", run=name, stage="s", facts="loan/42", rules=rules)
            assert error["details"] == {"grant": "read"}
        async with over_http(server, narrow) as client:
            mine = (await told(client, "run", action="start", query="Approve?"))["run"]
            await told(client, "run", action="step", run=mine, step=steps[1][0])
            other = {"store": {"entity_type": "contact", "name": "Ana"}}
            assert (await refused(client, "run", action="step", run=mine, step=other))["code"] == "forbidden"
            theirs = await refused(client, "run", action="step", run=name, step={"note": "mine now"})
            assert theirs["code"] == "not_found"  # who may not read is not told that it is there

    run(story())


def test_a_grant_for_a_type_opens_that_type_alone(start: Start, keyring: Keyring) -> None:
    """A key for one type shows entities of it, and nothing that leads on to others: reasons, lineage, lists of all."""
    _, narrow = keyring.create("lending", "a", ["read:contact", "write:contact"])
    server = start(keyring)
    assert not posted(server, narrow, "store", {"records": FILLED["records"]}).json["result"]["isError"]
    assert not posted(server, narrow, "show", {"ref": "contact/Ana"}).json["result"]["isError"]
    assert not posted(server, narrow, "search", {"entity_type": "contact"}).json["result"]["isError"]
    refused_calls: list[tuple[str, dict[str, Any]]] = [
        ("show", {"ref": "loan/42"}),
        ("search", {"query": "Ana"}),
        ("why", {"ref": "contact/Ana"}),
        ("explain", {"action": "lineage", "of": "contact/Ana#city"}),
        ("related", {"ref": "contact/Ana"}),
        ("history", {"action": "timeline"}),
        ("history", {"action": "observations"}),
        ("runs", {"action": "list", "subject": "contact/Ana"}),
        ("sources", {"action": "list"}),
        ("change", {"action": "relate", "from": "contact/Ana", "type": "knows", "to": "contact/Ana"}),
        ("store", {"records": [{"entity_type": "loan", "id": "42"}]}),
    ]
    for tool, given in refused_calls:
        result = posted(server, narrow, tool, given).json["result"]
        assert result["structuredContent"]["code"] == "forbidden", tool


def test_a_key_opens_its_own_tenant_alone(start: Start, keyring: Keyring) -> None:
    """What one tenant's agent stores, another's neither finds nor reads as a resource."""
    _, ours = keyring.create("lending", "a", ["*"])
    _, theirs = keyring.create("sales", "b", ["*"])
    server = start(keyring)

    async def story() -> None:
        async with over_http(server, ours) as client:
            await told(client, "store", records=FILLED["records"])
        async with over_http(server, theirs) as client:
            assert (await told(client, "search", query="Ana"))["items"] == []
            assert (await refused(client, "show", ref="contact/Ana"))["code"] == "not_found"
            with pytest.raises(MCPError) as error:
                await client.read_resource("woodrat://entities/contact/Ana")
            assert error.value.data["code"] == "not_found"
            with pytest.raises(MCPError):
                await client.read_resource("woodrat://elsewhere/x")

    run(story())
    assert KEYS_TENANT not in ("lending", "sales")


HELD = ("{ref}", "{ent}", "{obs}", "{run}")
ASKED: dict[str, list[Any]] = {
    "ref": ["{ref}", "{ent}"],
    "other": ["{ref}", "{ent}"],
    "observations": [["{obs}"]],
    "replaces": [["{obs}"]],
    "of": ["{ref}#city", "{obs}", "{run}", "{run}#risk"],
    **{name: ["{run}"] for name in ("run", "first", "second", "as_of")},
    **{name: ["{ref}", "{ent}", "{run}"] for name in ("from", "to", "one")},
    "without": [["{obs}"]],
    "subject": ["{ref}"],
    "set": [{"{ref}#city": "Vigo"}],
}
"""What each argument that takes a name is asked by."""


def _filled(given: Any, held: dict[str, str]) -> Any:
    text = json.dumps(given)
    for name, value in held.items():
        text = text.replace(name, value)
    return json.loads(text)


def test_what_is_anothers_is_as_what_is_not_there(start: Start, keyring: Keyring) -> None:
    """Every argument of every action, given another tenant's names, gets the answer that names of nothing get."""
    _, ours = keyring.create("lending", "a", ["*"])
    _, theirs = keyring.create("sales", "b", ["*"])
    server = start(keyring)

    def call(key: str, tool: str, **given: Any) -> dict[str, Any]:
        found: dict[str, Any] = posted(server, key, tool, given).json["result"]
        return found

    def said(tool: str, **given: Any) -> dict[str, Any]:
        found: dict[str, Any] = call(ours, tool, **given)["structuredContent"]
        return found

    secret = "contact/Zenobia"
    obs = said("store", records=[{"entity_type": "contact", "name": "Zenobia", "city": "Lugo"}])["observations"][0]
    run = said("run", action="start", query="Zenobia?", subject=secret)["run"]
    rules = [{"chosen": "kept", "when": {"city": "Lugo"}}]
    said("run", action="decide", run=run, stage="risk", ref=secret, rules=rules)
    entity = said("show", ref=secret, details=True)["entity_id"]
    held = dict(zip(HELD, (secret, entity, obs, run), strict=True))
    nothing = {name: value[:-1] + ("b" if value[-1] == "a" else "a") for name, value in held.items()}
    for record in (*FILLED["records"], {"entity_type": "contact", "name": "Bea"}):
        assert not call(theirs, "store", records=[record])["isError"]
    asked = 0
    for tool, name, action in sorted(CALLS, key=lambda call: call[2].writes):  # what is written here is read by nothing
        for taken in action.parameters:
            for value in ASKED.get(taken, ()) if (tool, taken) != ("store", "run") else ():
                others = arguments(tool, name, action)
                others = {each: said for each, said in others.items() if each not in action.one_of}
                given = {**others, **({"facts": {}} if action.one_of and taken != "ref" else {}), taken: value}
                answers = []
                for names in (held, nothing):
                    text = json.dumps(call(theirs, tool, **_filled(given, names)))
                    for brace, known in names.items():
                        text = text.replace(known, brace)
                    assert "Zenobia" not in text
                    answers.append(text)
                done = [json.loads(answer)["isError"] is False for answer in answers]
                assert done[0] == done[1], given
                # Only what two writes of the same came to has places of its own in the log.
                assert answers[0] == answers[1] or (done[0] and action.writes), given
                asked += 1
    assert asked > 40


def test_a_resource_needs_the_grant_to_read(start: Start, keyring: Keyring) -> None:
    """A key that may only write reads no resource and lists none."""
    _, writer = keyring.create("lending", "a", ["write"])
    server = start(keyring)

    async def story() -> None:
        async with over_http(server, writer) as client:
            for ask in (client.list_resources(), client.read_resource("woodrat://entities/contact/Ana")):
                with pytest.raises(MCPError) as error:
                    await ask
                assert error.value.data["code"] == "forbidden"

    run(story())


def test_logs_tell_of_a_call_without_its_contents(
    start: Start, keyring: Keyring, lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call is logged with its tool, tenant and key, and a failure of ours by its class: nothing that was sent."""
    key, secret = keyring.create("lending", "a", ["*"])
    server = start(keyring)

    def fail(*_: object, **__: object) -> None:
        raise ValueError("marker-failure")

    posted(server, secret, "store", {"records": [{"entity_type": "contact", "name": "marker-name"}]})
    posted(server, secret, "marker-tool", {})
    monkeypatch.setattr("woodrat.api.past.Past.search", fail)
    assert posted(server, secret, "search", {"query": "marker-word"}).json["result"]["isError"] is True
    monkeypatch.setattr("woodrat.api.runs.PastRuns.list", fail)
    body = {"jsonrpc": "2.0", "id": 1, "method": "resources/list"}
    error = server.call("POST", "/mcp", body, key=secret).json["error"]
    assert (error["code"], error["data"]["code"]) == (-32603, "unavailable")
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    requests = [line for line in told if line["event"] == "request"]
    assert [line.get("tool") for line in requests] == ["store", None, "search", None]
    assert {(line["verb"], line["tenant"], line["key"]) for line in requests} == {("mcp", "lending", key.id)}
    assert [line["error"] for line in told if line["event"] == "failed"] == ["ValueError", "ValueError"]
    assert "marker" not in lines.getvalue()


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01"])
def test_a_client_of_any_revision_is_answered_in_it(start: Start, revision: str) -> None:
    """A client gets the revision it asks for, and one that nobody knows the latest that has a beginning."""
    server = start()
    hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    agreed = server.call("POST", "/mcp", body).json["result"]["protocolVersion"]
    assert agreed == ("2025-11-25" if revision == "1999-01-01" else revision)
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "show", "arguments": {"ref": "a/b"}}}
    answer = server.call("POST", "/mcp", call, headers={"MCP-Protocol-Version": agreed, "Mcp-Session-Id": "any"})
    assert (answer.status, answer.json["result"]["isError"]) == (200, True)


def test_the_address_takes_posts_of_bounded_size(start: Start) -> None:
    """There are no sessions to open or end, and the limits of any other address hold here too."""
    server = start(body_bytes_max=2_000)
    for method in ("GET", "DELETE"):
        answer = server.call(method, "/mcp")
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert server.call("POST", "/mcp", b"x" * 3_000, headers={"Content-Type": "application/json"}).status == 413
    plain = server.call("POST", "/mcp", b"{}", headers={"Content-Type": "text/plain"})
    assert (plain.status, plain.json["code"]) == (415, "refused")
    foreign = server.call("POST", "/mcp", {}, headers={"Origin": "https://evil.example"})
    assert foreign.status == 403
