"""Messages: what cannot be taken is answered in words, under its own id, and never reaches a tool."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.server import Server

from woodrat.mcp.messages import REVISION, answer_to

RECORD = b'{"entity_type":"contact","name":"Ana","city":%s}'


@pytest.fixture(autouse=True)
def nothing_is_collected() -> Iterator[None]:
    """Keep what earlier tests left behind from being finalised where a message has used up the stack."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def calling(arguments: bytes, id: bytes = b"7") -> bytes:
    """Return a call of `store`, byte for byte."""
    start = b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"store","arguments":' % id
    return start + arguments + b"}}"


def storing(city: bytes) -> bytes:
    """Return a call that stores one record."""
    return calling(b'{"records":[%s]}' % (RECORD % city))


@pytest.mark.parametrize(
    "message",
    [
        {"id": 1, "method": "ping"},
        {"id": "a", "method": "tools/call", "params": {"name": "show", "arguments": None}},
        {"id": 0, "method": "tools/call", "params": {"name": "show"}},
        {"method": "notifications/initialized"},
        {"id": 1, "result": {}},
        {"id": 1, "error": {"code": 1, "message": "x"}},
    ],
)
def test_what_can_be_taken_is_not_answered_here(message: dict[str, Any]) -> None:
    """Requests, notifications and answers go on to the SDK."""
    assert answer_to(json.dumps({"jsonrpc": "2.0", **message}).encode()) is None


@pytest.mark.parametrize(
    ("data", "id", "code", "path"),
    [
        (b"hello", None, -32700, ""),
        (b"", None, -32700, ""),
        (b'{"jsonrpc":"2.0","id":1,', None, -32700, ""),
        (b"[" * 100_000, None, -32700, ""),
        (b"5", None, -32600, ""),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, -32600, ""),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600, "/id"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600, "/id"),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600, "/id"),
        (b'{"id":3,"method":"ping"}', 3, -32600, "/jsonrpc"),
        (b'{"jsonrpc":"2.0","id":3}', 3, -32600, "/method"),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","method":"pong"}', 3, -32600, "/method"),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}', 3, -32602, "/params"),
        (b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{}}', 3, -32602, "/params/name"),
        (calling(b'"{}"'), 7, -32602, "/params/arguments"),
    ],
)
def test_what_is_no_message_is_told_so(data: bytes, id: object, code: int, path: str) -> None:
    """Text that is no JSON, JSON that is no message, and parameters that are amiss have the codes of JSON-RPC."""
    answer = answer_to(data)
    assert answer is not None
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert answer["error"]["data"]["details"]["faults"][0]["path"] == path
    assert answer["error"]["message"].endswith("Nothing was done.")


@pytest.mark.parametrize(
    ("city", "said"),
    [
        (b'"Lugo","city":"Vigo"', "appears more than once"),
        (b'"\\ud83d"', "half a surrogate pair"),
        (b'"Lugo\xff"', "is not UTF-8"),
        (b"1e999", "beyond the largest double"),
        (b"12345678901234567890", "beyond"),
        (b"[" * 80 + b"]" * 80, "are nested more than"),
    ],
)
def test_a_value_that_would_be_altered_is_refused_by_its_tool(city: bytes, said: str) -> None:
    """Arguments that no reader would read alike are refused as by the tool, so that the model hears of it."""
    answer = answer_to(storing(city))
    assert answer is not None
    result = answer["result"]
    assert (answer["id"], result["isError"], result["structuredContent"]["code"]) == (7, True, "refused")
    assert said in result["content"][0]["text"]
    assert "resultType" not in result


def test_faults_are_placed_in_the_arguments() -> None:
    """The place of a fault is told as by the tool itself, and since 2026-07-28 a result says that it is whole."""
    told = b'{"records":[%s],"_":1}' % (RECORD % b'"a","city":"b"')
    modern = calling(told)[:-2] + b',"_meta":{"%s":"2026-07-28"}}}' % REVISION.encode()
    answer = answer_to(modern)
    assert answer is not None
    assert answer["result"]["structuredContent"]["details"]["faults"][0]["path"] == "/records/0/city"
    assert answer["result"]["resultType"] == "complete"


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_looked_at_in_peace(data: bytes) -> None:
    """Whatever comes, the answer is one of JSON-RPC, or there is none."""
    for sent in (data, calling(data), calling(b"{}", data)):
        answer = answer_to(sent)
        if answer is not None:
            assert answer["jsonrpc"] == "2.0"
            assert ("error" in answer) != ("result" in answer)
            json.dumps(answer).encode()


def test_nothing_altered_is_stored_over_http(served: Server) -> None:
    """A body with two equal keys, broken text or an id that is none is refused, and the log stays as it was."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    for data in (storing(b'"Lugo","city":"Vigo"'), storing(b'"Lugo\xff"'), storing(b'"\\ud83d"')):
        answer = served.call("POST", "/mcp", data, headers=headers)
        assert (answer.status, answer.json["id"], answer.json["result"]["isError"]) == (200, 7, True)
    for id in (b"null", b"1.5"):
        answer = served.call("POST", "/mcp", calling(b'{"records":[%s]}' % (RECORD % b'"Lugo"'), id), headers=headers)
        assert (answer.status, answer.json["error"]["code"]) == (400, -32600)
    batch = served.call("POST", "/mcp", b"[" + storing(b'"Lugo"') + b"]", headers=headers)
    assert (batch.status, batch.json["id"]) == (400, None)
    assert served.call("GET", "/v1/fingerprint").json["position"] == -1


@pytest.mark.parametrize(
    "headers", [{"Content-Type": "Application/JSON; charset=utf-8"}, {"Accept": "*/*"}, {"Accept": "application/json"}]
)
def test_headers_are_taken_as_http_means_them(served: Server, headers: dict[str, str]) -> None:
    """A media type has no case, and who names none to answer with takes JSON."""
    sent = {"Content-Type": "application/json", **headers}
    answer = served.call("POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', headers=sent)
    assert (answer.status, answer.json) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})
